"""The first screen: which design to buy, each answer with its reason in figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from libra_planner.costs.quotes import TAX, quote_warnings, unpriced_note
from libra_planner.evaluation import TimeModel
from libra_planner.procurement.bill import ZERO
from libra_planner.procurement.bought.twins import is_order_within_error
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison, in_order
from libra_planner.procurement.readiness import blocked, used_in
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.units import format_time, gigabytes_per_s
from libra_planner.views.cells import Card, Section, round_usd
from libra_planner.views.links import counted
from libra_planner.views.report.against import (
    against_table,
    considered_table,
    difference_table,
    tie_text,
)
from libra_planner.views.report.basis import seller_verdict
from libra_planner.views.report.bills import verdict, words_of_kind
from libra_planner.views.report.costs import money_by_group, money_side_by_side
from libra_planner.views.report.designs import faster_text, ports_text, time_basis
from libra_planner.views.report.offers import before_tax
from libra_planner.views.report.page.room import fitted
from libra_planner.views.report.page.signing import sign_by
from libra_planner.views.report.recommendation import (
    brief,
    free_ports_lines,
    lead,
    points,
    points_title,
    price_text,
    rule_warnings,
    short_points,
    tabled,
)
from libra_planner.views.report.runs import run_refusal
from libra_planner.views.report.sensitivity import change_table
from libra_planner.views.report.strategies import on_links_text
from libra_planner.views.training.memory import WARNING, memory_lines

_ROUNDING = 1e-9
"""Relative difference that is rounding."""
_EQUAL = 0.005
"""Relative difference of step times that nobody buys for."""


def decision_section(comparison: Comparison) -> Section:
    """Cheapest, fastest, best per dollar."""
    notes = (
        time_basis(comparison),
        comparison.ranking.order_note if is_order_within_error(comparison) else "",
        _firmness(comparison),
        *free_ports_lines(comparison),
    )
    sentences = (
        ports_text(comparison),
        faster_text(comparison),
        on_links_text(comparison.candidates),
        *range_sentences(comparison),
        *_quotes(comparison),
    )
    paragraphs = tuple(filter(None, (*notes, *sentences)))
    several = (verdict(comparison),) if len(comparison.candidates) > 1 else ()
    made = money_by_group, against_table, considered_table, difference_table, change_table
    tables = tuple(filter(None, (make(comparison) for make in made)))
    if split := money_side_by_side(comparison):
        tables = (*tables, replace(split, is_behind=False))
    return fitted(
        Section(
            "decision",
            "Recommendation" if several else "The design",
            "Decision",
            lead=tuple(lead(comparison)),
            points_title=points_title(comparison),
            points=points(comparison),
            short_points=short_points(comparison),
            n_grave=len(blocked(comparison)),
            tabled=tabled(comparison),
            brief=tuple(brief(comparison)),
            paragraphs=paragraphs,
            warnings=tuple(_warnings(comparison)),
            cards=tuple(_cards(comparison)),
            tables=tables,
            sign_by=sign_by(comparison),
            live=(*several, *seller_verdict(comparison)),
            is_static=True,
        )
    )


def _warnings(comparison: Comparison) -> Iterator[str]:
    if comparison.missing:
        names = ", ".join(part.name for part in comparison.missing)
        yield f"Prices are missing: every total is without {names}."
        if len({frozenset(one.bill.missing) for one in comparison.candidates}) > 1:
            yield (
                "The designs lack different prices, so that which is cheapest, and which best per "
                "dollar, may come out otherwise."
            )
    if comparison.ranking.fastest is None:
        yield (
            "The designs do not do the same work per step, as far as their plans tell, so no "
            "fastest and no best per dollar is named."
        )
    yield from quote_warnings(used_in(comparison))
    yield from run_refusal(comparison)
    models: dict[str, list[str]] = {}
    for one in comparison.candidates:
        models.setdefault(_model(one), []).append(one.letter)
    if len(models) > 1:
        listed = "; ".join(f"{', '.join(letters)}: {model}" for model, letters in models.items())
        yield f"Step times are of different models, which is no merit of a design: {listed}."
    yield from _bought_otherwise(comparison.candidates)
    faults: dict[str, list[str]] = {}
    for one in comparison.candidates:
        for fault in _faults(one):
            faults.setdefault(fault, []).append(one.letter)
    yield from rule_warnings(comparison)
    for fault, letters in faults.items():
        yield f"Design{'s' if len(letters) > 1 else ''} {', '.join(letters)}: {fault}."


def _bought_otherwise(candidates: Sequence[Candidate]) -> list[str]:
    """Tiers that are parts in one design and prices per GB/s in another."""
    letters: dict[tuple[str, bool], dict[str, None]] = {}
    for one in candidates:
        for built, _, is_parts in one.bought.dimensions:
            if built.fabric is not None:
                letters.setdefault((built.tier, is_parts), {})[one.letter] = None
    return [
        f"Tier {tier} is not bought alike: as parts in {', '.join(parts)}, per GB/s in "
        f"{', '.join(letters[tier, False])}, where optics, spares and power are not counted. "
        "Totals of the two do not compare."
        for (tier, is_parts), parts in letters.items()
        if is_parts and (tier, False) in letters
    ]


def _faults(one: Candidate) -> Iterator[str]:
    """What is wrong with a design by itself."""
    memory = (text for text in memory_lines(one.proposal.problem) if text.startswith(WARNING))
    yield from (text.removeprefix(WARNING) for text in memory)
    yield from one.included_faults
    for bridge in one.bridges if one.check is None else ():
        if bridge.oversubscription > 1:
            yield (
                f"the step time does not count that {bridge.place} is oversubscribed "
                f"{bridge.oversubscription:g}:1; check links by ecmp to count it (--check ecmp)"
            )
    if not one.facility.n_servers_per_rack:
        yield "a rack cannot power or hold a server"
    yield from one.facility.rack_faults


def _model(one: Candidate) -> str:
    """What the step time is a model of: the training loop, and how collectives take time."""
    problem = one.proposal.problem
    loops = [setting for setting in problem.settings if setting.startswith("loop ")]
    chunks = "ideal collectives" if problem.step.model.n_chunks is None else "collectives in chunks"
    chunks = "measured collectives" if isinstance(problem.step.model, Calibrated) else chunks
    return ", ".join([*loops, chunks])


def _cards(comparison: Comparison) -> Iterator[Card]:
    yield _cheapest(comparison)
    ranking, times = comparison.ranking, comparison.times_s
    if ranking.fastest is not None and ranking.best_per_usd is not None and times is not None:
        yield _fastest(comparison, ranking.fastest, times)
        yield _best(comparison, ranking.best_per_usd, times)


def _runner_up(comparison: Comparison, best: int, values: Sequence[float]) -> int:
    """The second best, of the least value; the best itself where it is the only one."""
    ranked = in_order(comparison.candidates, values)
    return next((i for i in ranked if i != best), best)


def _card(
    pair: tuple[Candidate, Candidate],
    figure: str,
    alone: tuple[str, str],
    among: tuple[str, str],
    lead: str,
) -> Card:
    """An answer, with what it has before the runner-up, or as the only design.

    Parameters
    ----------
    pair, figure : the best design and the runner-up, and the figure of the best.
    alone : title and reason of an only design.
    among : title and adjective of one of several.
    lead : over the runner-up in words; empty for none.
    """
    (one, other), (title, reason) = pair, alone
    if other is not one:
        title, adjective = among
        reason = lead or f"As {adjective} as {other.letter}{_tie_break(one, other)}."
    return Card(title, f"{one.letter}: {one.proposal.name}", figure, reason)


def _tie_break(one: Candidate, other: Candidate) -> str:
    """Why the first of two that are as good is named before the other, in words."""
    saved = other.bill.total_usd - one.bill.total_usd
    if saved:
        return f", and {round_usd(saved).shown} cheaper"
    faster = one.step_time_s < other.step_time_s * (1 - _ROUNDING)
    return ", and faster" if faster else ", and alike in all else: its name comes first"


def _cheapest(comparison: Comparison) -> Card:
    designs, best = comparison.candidates, comparison.ranking.cheapest
    totals = [float(design.bill.total_usd) for design in designs]
    one, other = pair = designs[best], designs[_runner_up(comparison, best, totals)]
    saved, lead = other.bill.total_usd - one.bill.total_usd, ""
    if saved:
        lead = (
            f"{round_usd(saved).shown} ({other.bill.fraction_of(saved):.1%}) less"
            f"{before_tax(one)} than {other.letter}{_main_difference(one, other)}."
        )
    largest = [
        f"{name} is {one.bill.fraction_of(amount):.0%} of the price"
        for name, amount in one.bill.usd_by_price().items()
    ]
    reason = largest[0] if largest else "nothing of it has a price"
    low_usd, high_usd = one.bill.ends_usd
    ends = " by source" if low_usd < high_usd else ""
    figure = f"{price_text(one)}{ends}{before_tax(one)} {comparison.without}".strip()
    alone = ("Price", f"The only design; {reason}.")
    return _card(pair, figure, alone, ("Cheapest", "dear"), lead)


def _main_difference(one: Candidate, other: Candidate) -> str:
    """The kind of part that makes most of the difference."""
    ours, theirs = (x.bill.usd_by(lambda line: line.part.kind) for x in (one, other))
    saved = {kind: theirs.get(kind, ZERO) - ours.get(kind, ZERO) for kind in [*theirs, *ours]}
    kind = max(saved, key=lambda key: saved[key], default="")
    amount = saved.get(kind, ZERO)
    return (
        f", most of it {words_of_kind(kind)} ({round_usd(amount).shown} less)" if amount > 0 else ""
    )


def _fastest(comparison: Comparison, best: int, times: list[float]) -> Card:
    model, designs = comparison.ranking.ranked_by, comparison.candidates
    second = _runner_up(comparison, best, times)
    one, other = pair = designs[best], designs[second]
    gain, step_time_s = times[second] / times[best], one.step_time_by(model)
    waits, there = (
        format_time(max(0.0, x.step_time_by(model) - x.evaluation.compute_s)) for x in pair
    )
    fast = "As fast as" if gain - 1 < _EQUAL else f"{gain:.3f}x as fast as"
    text = f"{fast} {other.letter}: {waits} of a step waits on communication"
    figure = f"{format_time(step_time_s)} per step {model}"
    if comparison.ranking.time_unit == "token":
        figure += f", {1e-6 / times[best]:,.2f} M tokens/s"
    alone = ("Speed", f"{one.evaluation.compute_s / step_time_s:.0%} of a step is compute.")
    lead = f"{text}, there {there}." if gain - 1 >= _ROUNDING else ""
    card = _card(pair, figure, alone, ("Fastest", "fast"), lead)
    if other is one or gain - 1 >= _EQUAL:
        return card
    more = (_idle_text(one, other), tie_text(comparison, best, with_prices=False))
    return replace(card, reason="".join((card.reason, *more)))


def _idle_text(one: Candidate, other: Candidate) -> str:
    """Which tiers carry more in one of two designs that are as fast, which buys next to no time."""
    fabric, theirs = (x.proposal.problem.topology for x in (one, other))
    if fabric != theirs:
        return ""
    bought_Bps = (x.bought.design.bandwidth_Bps for x in (one, other))
    found = []
    for tier, *pair in zip(fabric.tiers, *bought_Bps, strict=True):
        least, most = sorted(map(gigabytes_per_s, pair))
        if most - least > _ROUNDING * most:
            found.append(f"{most:.4g} GB/s at {tier} instead of {least:.4g}")
    if not found:
        return ""
    buys, them = ("buys", "it") if len(found) == 1 else ("buy", "them")
    hidden = f"what crosses {them} is hidden behind compute or other links"
    return f" {' and '.join(found)} {buys} next to no time: {hidden}."


def _best(comparison: Comparison, best: int, times: list[float]) -> Card:
    designs = comparison.candidates
    totals = [float(one.bill.total_usd) for one in designs]
    products = [usd * time_s for usd, time_s in zip(totals, times, strict=True)]
    second = _runner_up(comparison, best, products)
    cheaper = 1 - totals[best] / totals[second] if totals[second] else 0.0
    speed = _relative(1 - times[best] / times[second], "faster", "slower")
    price = _relative(cheaper, "cheaper", "dearer")
    more = products[second] / products[best] - 1 if totals[best] else 0.0
    text = f"{more:.2%} more work per dollar than {designs[second].letter}: {speed} and {price}."
    figure = f"{products[best] / 1e6:,.1f} s M$ per step"
    if comparison.ranking.time_unit == "token" and totals[best]:
        figure = f"{1e6 / times[best] / totals[best]:,.1f} tokens/s per M$"
    figure += ", incomplete" if comparison.missing else ""
    alone, pair = ("Performance per dollar", "The only design."), (designs[best], designs[second])
    lead = text if abs(more) >= _ROUNDING else ""
    # Of the design to buy the first section says it.
    is_said = best == comparison.chosen and second != best
    lead += tie_text(comparison, best, with_prices=True) if lead and not is_said else ""
    return _card(pair, figure, alone, ("Best per dollar", "good"), lead)


def _relative(value: float, more: str, less: str) -> str:
    """A share in words.

    >>> _relative(0.0123, "faster", "slower"), _relative(-0.5, "cheaper", "dearer")
    ('1.23% faster', '50.00% dearer')
    >>> _relative(0.0, "faster", "slower")
    'neither faster nor slower'
    """
    if abs(value) < _ROUNDING:
        return f"neither {more} nor {less}"
    return f"{abs(value):.2%} {more if value >= 0 else less}"


def _firmness(comparison: Comparison) -> str:
    """Whether the ranking holds when prices and budgets move."""
    if len(comparison.candidates) == 1:
        return "One design: nothing is ranked."
    # Budgets move designs that nobody has checked.
    is_checked = comparison.ranking.ranked_by is TimeModel.CHECKED
    times = " (by step times before the check)" if is_checked else ""
    swings = [(swing.price_name, ", ".join(swing.flips)) for swing in comparison.swings]
    changes = [f"{name} ({flips})" for name, flips in swings if flips]
    budgets = (budget for budget in comparison.budgets if budget.changes)
    changes += [f"all budgets at {budget.factor:.0%}{times}" for budget in budgets]
    firm = "No single price and no budget moved by 20% changes the ranking."
    if changes:
        firm = f"The ranking changes with: {'; '.join(changes)}."
    return firm


def _quotes(comparison: Comparison) -> Iterator[str]:
    """How many quotes the bills rest on, and which they do not; none without quotes."""
    quotes = comparison.shop.quotes
    if not quotes:
        return
    used = used_in(comparison)
    n_prices = sum(quote.item != TAX for quote in used)
    holds = f"{counted(n_prices, 'price')} of {quotes[0].file} {'count' + 's' * (n_prices == 1)}"
    yield f"{holds} here: the section Offers names seller, day and part of each."
    items = {quote.item for quote in used}
    if unused := [quote.item for quote in quotes if quote.item not in items]:
        yield f"Quotes that no design uses: {', '.join(unused)}."
    if also := [f"{quote.item} ({quote.also})" for quote in used if quote.others]:
        chosen = [one.item for one in used if one.is_chosen]
        can = " and can be ordered" if any(x.is_short for y in used for x in y.others) else ""
        but = f", of {', '.join(chosen)} the one that the file chooses" if chosen else ""
        yield (
            f"Of several sellers the cheapest quote that holds{can} counts{but}. "
            f"Also quoted: {', '.join(also)}."
        )
    if note := unpriced_note(quotes):
        yield f"{note[:1].upper()}{note[1:]}."


def _range(one: Candidate) -> str:
    return " to ".join(round_usd(usd).shown for usd in one.bill.ends_usd)


def range_sentences(comparison: Comparison) -> Iterator[str]:
    """What the ranges of prices do to the totals and to the ranking (C22); none without ranges."""
    designs = comparison.candidates
    if any(low < high for low, high in (one.bill.ends_usd for one in designs)):
        totals = ", ".join(f"{one.letter} {_range(one)}" for one in designs)
        yield f"Sources of prices differ: totals are {totals}. {_ranking(comparison)}".strip()
    if parts := comparison.bill.without_range:
        several = "are prices" if len(parts) > 1 else "is a price"
        names = ", ".join(part.name for part in parts)
        yield f"Assumed, and without a range, {several} of {names}: totals may lie further apart."


def _ranking(comparison: Comparison) -> str:
    """Who can come first within the ranges; empty for one design."""
    letters, ranking = comparison.letters, comparison.ranking
    if len(letters) == 1:
        return ""
    can = [
        f"{letters[one.other]} can be {one.ranking}, by up to {one.lead_fraction:.1%} before "
        f"{letters[one.best]}"
        for one in comparison.rivals
    ]
    if can:
        return f"Within these ranges {'; '.join(can)}."
    cheapest, best = ranking.cheapest, ranking.best_per_usd
    stays = f"{letters[cheapest]} stays cheapest"
    if best is not None:
        whose = "" if best == cheapest else f"{letters[best]} "
        stays += f" and {whose}best per dollar"
    return f"At all prices within these ranges {stays}: what designs share moves them together."
