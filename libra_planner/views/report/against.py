"""The design to buy against its neighbours and all others: what it saves, gives up, and why."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from libra_planner.plain_text import joined
from libra_planner.procurement.advice import Neighbour, Step, neighbours, steps
from libra_planner.procurement.bought.twins import equal_texts, tied, untwinned_ties
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison, in_order
from libra_planner.procurement.readiness import broken_texts
from libra_planner.procurement.run import HOUR_S
from libra_planner.procurement.terms.lead_times import lead_time, longest, sooner
from libra_planner.views import cells
from libra_planner.views.cells import Cell, Table, Value, number, round_delta_usd, round_usd, table
from libra_planner.views.report.bills import group_cell, lines_sum, words_of_kind
from libra_planner.views.report.offers import before_tax
from libra_planner.views.report.runs import tokens_text

_DAY_S = 24 * HOUR_S

_ROUNDING = 1e-9
"""Relative difference that is rounding."""
_UNTOLD, _LEAST_DAYS = 0.0005, 0.05
"""A share of a time, and days, below which one digit shows 0.0."""
_NIC_PLACE = "host"
"""Where every NIC is: no place to name."""
N_FIGURES = 2
"""Rows of the table of differences before those of parts."""


def named(one: Candidate) -> str:
    """Letter and name."""
    return f"{one.letter} ({one.proposal.name})"


def against_lines(comparison: Comparison) -> Iterator[str]:
    """How the design to buy compares: with its reference, then with the next cheaper and faster."""
    found = neighbours(comparison)
    for one in found:
        if one.index == comparison.reference:
            yield _of_reference(comparison, one)
    others = [_of_other(comparison, one) for one in found if one.index != comparison.reference]
    if text := " ".join((*_none(comparison, found), *others)):
        yield text


def _of_reference(comparison: Comparison, neighbour: Neighbour) -> str:
    """How the design to buy compares with the one that it is held against."""
    i, j = comparison.chosen, neighbour.index
    text = f"Against {_as(comparison, neighbour)}, it {_money(comparison, i, j)}"
    behind = (
        "" if j in comparison.eligible else f"; {comparison.letters[j]} {_behind(comparison, j)}"
    )
    if comparison.times_s is None:
        return f"{text}; the designs do not do the same work{behind}."
    return f"{text} and is {_speed(comparison, i, j)}: {_worth(comparison, i, j)}{behind}."


def _behind(comparison: Comparison, i: int) -> str:
    return comparison.candidates[i].behind_text


def _of_other(comparison: Comparison, neighbour: Neighbour) -> str:
    """What another design would save and lose, and why it is not the one to buy."""
    i, j = comparison.chosen, neighbour.index
    text = f"{_as(comparison, neighbour)}, {_money(comparison, j, i)}"
    if comparison.times_s is not None:
        text += f" and is {_speed(comparison, j, i)}"
    if j not in comparison.eligible:
        return f"{text}, but {_behind(comparison, j)}."
    if comparison.times_s is None:
        return f"{text}; the designs do not do the same work."
    return f"{text}: {comparison.letters[i]} does {_worth(comparison, i, j)}."


def _as(comparison: Comparison, one: Neighbour) -> str:
    return f"{named(comparison.candidates[one.index])}, {' and '.join(one.roles)}"


def _money(comparison: Comparison, i: int, j: int) -> str:
    """What one design costs less or more than another, in words."""
    one, other = comparison.candidates[i], comparison.candidates[j]
    saved = other.bill.total_usd - one.bill.total_usd
    if not saved:
        return "costs the same"
    how = "less" if saved > 0 else "more"
    return f"costs {round_usd(abs(saved)).shown} {how}{before_tax(one)}"


def _speed(comparison: Comparison, i: int, j: int) -> str:
    """How much shorter the step of one design is than another's, and what of the run that is."""
    times = comparison.times_s or [1.0] * len(comparison.candidates)
    shorter = 1 - times[i] / times[j]
    if abs(shorter) <= _ROUNDING:
        return "as fast"
    if abs(shorter) < _UNTOLD:
        return "as fast (within 0.1%)"
    days = _days(comparison, i, j)
    told = "" if days is None else f"{abs(days):,.1f}" if abs(days) >= _LEAST_DAYS else "under 0.1"
    run = f" ({told} days of the run)" if told else ""
    return f"{abs(shorter):.1%} {'faster' if shorter > 0 else 'slower'}{run}"


def _days(comparison: Comparison, i: int, j: int) -> float | None:
    """Days that the run of one design takes more than that of another, where both are known."""
    runs = [comparison.candidates[x].run for x in (i, j)]
    days = [run.expected_s / _DAY_S for run in runs if run and math.isfinite(run.expected_s)]
    return days[0] - days[1] if len(days) == len(runs) else None


def _worth(comparison: Comparison, i: int, j: int) -> str:
    """How much more work per dollar one design does than another."""
    worth = comparison.worth
    more = worth[j] / worth[i] - 1 if worth[i] else 0.0
    if abs(more) <= _ROUNDING:
        return "as much work per dollar"
    return f"{abs(more):.1%} {'more' if more > 0 else 'less'} work per dollar"


def _none(comparison: Comparison, found: Sequence[Neighbour]) -> Iterator[str]:
    """Of what there is no neighbour."""
    roles = {role for one in found for role in one.roles}
    known = {"cheaper": True, "faster": comparison.times_s is not None}
    words = [x for x, is_known in known.items() if is_known and f"the next {x}" not in roles]
    if found and words:
        yield f"No other design is {' or '.join(words)}."


def choice_notes(comparison: Comparison) -> Iterator[str]:
    """Ties, and a design that comes first but cannot be bought."""
    chosen = comparison.chosen
    yield from equal_texts(comparison)
    if text := tie_text(comparison, chosen, with_prices=True):
        yield text.strip()
    first = in_order(comparison.candidates, comparison.worth)[0]
    if first != chosen:
        name = named(comparison.candidates[first])
        yield f"{name} would be {comparison.criterion}, but {_behind(comparison, first)}."


def tie_text(comparison: Comparison, best: int, *, with_prices: bool) -> str:
    """Which designs the errors of step times do not tell from the best; empty for none (C23)."""
    found = untwinned_ties(comparison, best, with_prices=with_prices)
    if not found:
        return ""
    designs = comparison.candidates
    letters = joined([comparison.letters[i] for i in (best, *found)], "and")
    by = "work per dollar" if with_prices else "speed"
    text = f" {letters} cannot be told apart by {by}: step times may be off by"
    return f"{text} more.{_cheapest_of([designs[i] for i in (best, *found)], with_prices)}"


def _cheapest_of(designs: Sequence[Candidate], with_prices: bool) -> str:
    """Which of some designs that nothing else tells apart is cheapest, and once by how much.

    The first is the one to buy: another one is held against it.
    """
    first, second, *_ = sorted(designs, key=lambda one: one.bill.total_usd)
    saved = second.bill.total_usd - first.bill.total_usd
    other = second if first is designs[0] else designs[0]
    less = round_usd(other.bill.total_usd - first.bill.total_usd).shown
    among = "the cheapest of them" if len(designs) > 2 else "the cheaper of the two"
    by = f"{less} cheaper than {other.letter}{before_tax(first)}" if with_prices else among
    return f" {first.letter} is {by}." if saved else ""


def against_table(comparison: Comparison) -> Table | None:
    """The design to buy against each neighbour, in figures; none of a single design."""
    found = neighbours(comparison)
    if not found:
        return None
    one = comparison.candidates[comparison.chosen]
    run = f"{tokens_text(one.n_tokens)}, days"
    headings = [f"{one.letter} against", f"Price{before_tax(one)}", "Step time", run]
    rows = [_row(comparison, x) for x in found]
    has_run = any(row[3] != "" for row in rows)
    rows = rows if has_run else [[*row[:3], *row[4:]] for row in rows]
    headings = headings if has_run else headings[:3]
    missing = " ".join(_none(comparison, found))
    decides = "" if comparison.times_s is None else "; work per dollar decides"
    title = f"What {one.letter} saves and gives up{decides}"
    headings.append("Work per dollar")
    return table("against", title, headings, rows, note=missing, is_behind=True)


def _row(comparison: Comparison, neighbour: Neighbour) -> list[Value]:
    i, j, times = comparison.chosen, neighbour.index, comparison.times_s
    one, other = comparison.candidates[i], comparison.candidates[j]
    behind = "" if j in comparison.eligible else f"; {other.behind_text}"
    label = f"{_as(comparison, neighbour)}{behind}"
    at = [group_cell(x, "total") for x in (one, other)]
    saved = round_delta_usd(one.bill.total_usd - other.bill.total_usd, f"{at[0]}-{at[1]}")
    days, worth = _days(comparison, i, j), comparison.worth
    cell: Value = "" if days is None else cells.change(days, digits=1)
    if times is None:
        return [label, saved, "", cell, ""]
    more = f"{at[1]}*{times[j]!r}/({at[0]}*{times[i]!r})-1" if worth[i] else ""
    return [
        label,
        saved,
        cells.delta(times[i] / times[j] - 1),
        cell,
        cells.delta(worth[j] / worth[i] - 1 if worth[i] else None, more),
    ]


def considered_table(comparison: Comparison) -> Table | None:
    """The designs, the one to buy first, those that break rules last; none of a single design."""
    if len(comparison.candidates) < 2:
        return None
    one, has_times = comparison.candidates[comparison.chosen], comparison.times_s is not None
    run = f"{tokens_text(one.n_tokens)}, days"
    columns = {
        "Design": True,
        f"Price{before_tax(one)}": True,
        f"Price against {one.letter}": True,
        "Step time, s": True,
        f"Time against {one.letter}": has_times,
        run: comparison.has_run,
        f"Work per dollar against {one.letter}": has_times,
        _LEAD: longest(comparison) is not None,
        "Remarks": True,
    }
    told = columns.values()
    rows = [[*itertools.compress(_considered_row(comparison, i), told)] for i in comparison.order]
    decides = "work per dollar decides" if has_times else "the price decides"
    headings = [*itertools.compress(columns, told)]
    title = f"All designs, the one to buy first; {decides}"
    return table("considered", title, headings, rows, note=_lead_note(comparison))


_LEAD = "Longest lead time, days"


def _lead_note(comparison: Comparison) -> str:
    """Of how many parts nobody says a lead time, by design; empty where nobody says any.

    Those of the design to buy are named where its longest lead time is told.
    """
    said, best = [], lead_time(comparison.candidates[comparison.chosen])
    named_above = () if best.n_lead_days is None else best.unknown
    for one, found in zip(comparison.candidates, longest(comparison) or (), strict=False):
        if n := len(found.unknown):
            names = ", ".join(found.unknown[:_MOST_NAMES]) + ", ..." * (n > _MOST_NAMES)
            which = "" if found.unknown == named_above else f" ({names})"
            parts = "1 part" if n == 1 else f"{n} parts"
            said.append((one.letter, f"of {parts} no lead time is known{which}"))
    text = "; ".join(f"{whose}: {text}" for whose, text in cells.said_once(said))
    return f"{_LEAD}, as far as it is known. {text}." if text else ""


_MOST_NAMES = 4
"""Parts without a lead time that are named."""


def _considered_row(comparison: Comparison, i: int) -> list[Value]:
    """Figures of a design, beside those of the one to buy."""
    best, other = (comparison.candidates[x] for x in (comparison.chosen, i))
    times, worth = comparison.times_s, comparison.worth
    at = [group_cell(x, "total") for x in (best, other)]
    more = ""
    if times is not None and worth[i]:
        more = f"{at[0]}*{times[comparison.chosen]!r}/({at[1]}*{times[i]!r})-1"
    days = None if other.run is None else other.run.expected_s / _DAY_S
    return [
        named(other),
        round_usd(other.bill.total_usd, at[1]),
        round_delta_usd(_change_usd(comparison, i), f"{at[1]}-{at[0]}"),
        number(other.step_time_by(comparison.ranking.ranked_by), 3),
        "" if times is None else cells.delta(_ratio(times, i, comparison.chosen)),
        number(days if days is not None and math.isfinite(days) else None, 1),
        "" if times is None else cells.delta(_ratio(worth, comparison.chosen, i), more),
        cells.count(lead_time(other).n_lead_days),
        "; ".join(remarks(comparison, i)),
    ]


def _change_usd(comparison: Comparison, i: int) -> Any:
    """What a design costs more than the one to buy."""
    best, other = (comparison.candidates[x] for x in (comparison.chosen, i))
    return other.bill.total_usd - best.bill.total_usd


def _ratio(values: Any, i: int, j: int) -> float | None:
    """How much more the first is than the second, a share."""
    return float(values[i]) / float(values[j]) - 1 if values[j] else None


def remarks(comparison: Comparison, i: int) -> Iterator[str]:
    """Whether a design is bought, what it is to the one that is, and which rules it breaks."""
    if i == comparison.chosen:
        yield "to buy"
    roles = {x.index: x.roles for x in neighbours(comparison)}
    told = [role.removeprefix("the ") for role in roles.get(i, ())]
    yield from dict.fromkeys((*told, *_places(comparison, i)))
    if i in tied(comparison, comparison.chosen, with_prices=True):
        yield f"tied with {comparison.letters[comparison.chosen]}"
    if part := lead_time(comparison.candidates[i]).part:
        yield f"waits longest for {part}"
    yield from (f"breaks {text}" for text in broken_texts(comparison.candidates[i]))


def _places(comparison: Comparison, i: int) -> Iterator[str]:
    """Whether a design is the second best, or the second in price behind the one to buy."""
    totals = [one.bill.total_usd for one in comparison.candidates]
    kept = [j for j in comparison.order if j in comparison.eligible]
    if kept[1:2] == [i]:
        yield "next best"
    if totals[comparison.chosen] == min(totals[j] for j in kept):
        rest = [j for j in kept if totals[j] > totals[comparison.chosen]]
        if rest and i == min(rest, key=totals.__getitem__):
            yield "next cheapest"


def considered_payload(comparison: Comparison) -> list[dict[str, Any]]:
    """The key ``considered`` of ``report --json``: the designs in the order of the table."""
    times, worth, best = comparison.times_s, comparison.worth, comparison.chosen
    return [
        {
            "design": comparison.letters[i],
            "name": one.proposal.name,
            "total_usd": float(one.bill.total_usd),
            "change_usd": float(_change_usd(comparison, i)),
            "ranked_step_time_s": one.step_time_s,
            "time_change_fraction": None if times is None else _ratio(times, i, best),
            "work_per_usd_change_fraction": None if times is None else _ratio(worth, best, i),
            **_lead_payload(comparison, i),
            "remarks": [*remarks(comparison, i)],
        }
        for i in comparison.order
        for one in [comparison.candidates[i]]
    ]


def _lead_payload(comparison: Comparison, i: int) -> dict[str, Any]:
    found, other = lead_time(comparison.candidates[i]), sooner(comparison, i)
    return {
        "longest_lead_days": found.n_lead_days,
        "longest_lead_part": found.part or None,
        "unknown_lead_parts": list(found.unknown),
        "sooner_seller": other.offer.seller if other else None,
        "sooner_change_usd": float(other.change_usd) if other else None,
        "sooner_longest_lead_days": other.then.n_lead_days if other else None,
    }


def difference_table(comparison: Comparison) -> Table | None:
    """The lines that differ from the baseline, and their sum; none of a single design."""
    if comparison.reference is None:
        return None
    one, base = (comparison.candidates[i] for i in (comparison.chosen, comparison.reference))
    rows: list[list[Value]] = [
        *_figures(comparison, base, one),
        *(_step_row(step, base, one) for step in steps(base, one)),
    ]
    totals = [round_usd(x.bill.total_usd, group_cell(x, "total")) for x in (base, one)]
    moved = round_delta_usd(one.bill.total_usd - base.bill.total_usd, "[c2]-[c1]")
    return table(
        "difference",
        f"From {base.letter} to {one.letter}",
        ["What", base.letter, one.letter, "Difference"],
        rows,
        total=[f"Price of everything{before_tax(one)}", *totals, moved],
        note=(
            "Units with spares, of the lines that differ; of a part that both have elsewhere, all."
        ),
    )


def _figures(comparison: Comparison, base: Candidate, one: Candidate) -> Iterator[list[Value]]:
    """What the money is for."""
    pairs = [
        ("Step time, s", [x.step_time_by(comparison.ranking.ranked_by) for x in (base, one)], 3),
        ("Power, kW", [x.bill.power_w / 1000 for x in (base, one)], 0),
    ]
    for name, (before, after), digits in pairs:
        change = cells.delta(after / before - 1 if before else None)
        yield [name, number(before, digits), number(after, digits), change]


def _step_row(step: Step, base: Candidate, one: Candidate) -> list[Value]:
    sums = [lines_sum(x, lambda line: line.part.kind in step.kinds) for x in (base, one)]
    change = round_delta_usd(step.change_usd, f"{sums[1] or 0}-{sums[0] or 0}")
    units = step.n_units or (None, None)
    counts = [
        Cell("" if n is None else n, kind="count" if n is not None else cells.TEXT) for n in units
    ]
    return [step_name(step) + _other_part(step), *counts, change]


def _other_part(step: Step) -> str:
    """Which part takes another's place."""
    is_other = all(step.parts) and len({*step.parts}) > 1
    return f" ({step.parts[0]} to {step.parts[1]})" if is_other else ""


def _has_one_place(step: Step) -> bool:
    return len(step.places) == 1 and step.places != (_NIC_PLACE,)


def step_name(step: Step, n_most: int = 9) -> str:
    """What differs, in words: of many kinds the first few."""
    names = ", ".join(map(words_of_kind, step.kinds[:n_most]))
    names += ", ..." if len(step.kinds) > n_most else ""
    # Spares alone stand in for what a design has elsewhere: no place is that of both.
    names += f" at {step.places[0]}" if _has_one_place(step) and not step.is_stock else ""
    return names[:1].upper() + names[1:]
