"""The first screen: which design to buy, each answer with its reason in figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from libra_planner.evaluation import TimeModel
from libra_planner.procurement.bill import ZERO
from libra_planner.procurement.candidate import Candidate
from libra_planner.units import format_time, format_usd
from libra_planner.views.cells import Card, Chart, Section
from libra_planner.views.plan import WARNING, memory_lines
from libra_planner.views.report.bills import verdict
from libra_planner.views.report.comparison import Comparison, run_refusal, time_basis

_ROUNDING = 1e-9
"""Relative difference that is rounding."""


def decision_section(comparison: Comparison, charts: tuple[Chart, ...]) -> Section:
    """Cheapest, fastest, best per dollar."""
    ranking = comparison.ranking
    cards = [_cheapest(comparison, ranking.cheapest)]
    if ranking.fastest is not None and ranking.best_per_usd is not None:
        cards += [_fastest(comparison, ranking.fastest), _best(comparison, ranking.best_per_usd)]
    return Section(
        key="decision",
        title="Decision",
        sheet="Decision",
        paragraphs=(*ranked_by(comparison), _firmness(comparison)),
        warnings=_warnings(comparison),
        cards=tuple(cards),
        charts=charts,
        live=(verdict(comparison),) if len(comparison.candidates) > 1 else (),
        is_static=True,
    )


def ranked_by(comparison: Comparison) -> tuple[str, ...]:
    """Which step time everything is ranked by, and where models disagree on the order."""
    ranking = comparison.ranking
    text = time_basis(comparison)
    return (text, ranking.order_note) if ranking.order_note else (text,)


def _warnings(comparison: Comparison) -> tuple[str, ...]:
    found = []
    if comparison.missing:
        names = ", ".join(part.name for part in comparison.missing)
        found.append(f"Prices are missing: every total is without {names}.")
        if len({frozenset(one.bill.missing) for one in comparison.candidates}) > 1:
            found.append(
                "The designs lack different prices, so that which is cheapest, and which best per "
                "dollar, may come out otherwise."
            )
    if comparison.ranking.fastest is None:
        found.append(
            "The designs do not do the same work per step, as far as their plans tell, so no "
            "fastest and no best per dollar is named (C6)."
        )
    found += run_refusal(comparison)
    models: dict[str, list[str]] = {}
    for one in comparison.candidates:
        models.setdefault(_model(one), []).append(one.letter)
    if len(models) > 1:
        listed = "; ".join(f"{', '.join(letters)}: {model}" for model, letters in models.items())
        found.append(
            f"Step times are of different models, which is no merit of a design: {listed}."
        )
    found += _bought_otherwise(comparison.candidates)
    return tuple(found) + tuple(text for one in comparison.candidates for text in _faults(one))


def _bought_otherwise(candidates: Sequence[Candidate]) -> list[str]:
    """Tiers that are parts in one design and prices per GB/s in another."""
    parts: dict[str, list[str]] = {}
    linear: dict[str, list[str]] = {}
    for one in candidates:
        for built, _, is_parts in one.bought.dimensions:
            if built.fabric is not None:
                letters = (parts if is_parts else linear).setdefault(built.tier, [])
                letters += [one.letter] if one.letter not in letters else []
    return [
        f"Tier {tier} is not bought alike: as parts in {', '.join(parts[tier])}, per GB/s in "
        f"{', '.join(linear[tier])}, where optics, spares and power are not counted. Totals of "
        "the two do not compare."
        for tier in parts
        if tier in linear
    ]


def _faults(one: Candidate) -> list[str]:
    """What is wrong with a design by itself."""
    found = []
    if one.evaluation.violated:
        broken = "; ".join(violation.rule for violation in one.evaluation.violated)
        found.append(f"Design {one.letter} breaks rules of its plan: {broken}.")
    memory = (text for text in memory_lines(one.proposal.problem) if text.startswith(WARNING))
    found += [f"Design {one.letter}: {text.removeprefix(WARNING)}." for text in memory]
    found += [f"Design {one.letter}: {text}." for text in one.included_faults]
    for bridge in one.bridges if one.check is None else ():
        if bridge.oversubscription > 1:
            found.append(
                f"Design {one.letter}: the step time does not count that {bridge.place} "
                f"is oversubscribed {bridge.oversubscription:g}:1; "
                "check links by ecmp to count it (--check ecmp)."
            )
    if not one.facility.fits:
        found.append(f"A rack cannot power or hold a server of design {one.letter}.")
    return found


def _model(one: Candidate) -> str:
    """What the step time is a model of: the training loop, and how collectives take time."""
    problem = one.proposal.problem
    loops = [setting for setting in problem.settings if setting.startswith("loop ")]
    chunks = "ideal collectives" if problem.n_chunks is None else "collectives in chunks"
    return ", ".join([*loops, chunks])


def _answer(one: Candidate) -> str:
    return f"{one.letter}: {one.proposal.name}"


def _total(one: Candidate) -> str:
    return format_usd(float(one.bill.total_usd))


def _next(comparison: Comparison, best: int, value: Callable[[int], float]) -> int | None:
    """The runner-up; ``None`` for a single design."""
    others = [i for i in range(len(comparison.candidates)) if i != best]
    return min(others, key=value) if others else None


def _cheapest(comparison: Comparison, best: int) -> Card:
    designs = comparison.candidates
    one = designs[best]
    figure = _total(one) + (f" {comparison.without}" if comparison.without else "")
    second = _next(comparison, best, lambda i: float(designs[i].bill.total_usd))
    if second is None:
        reason = f"The only design; {_largest(one)}."
        return Card("Price", _answer(one), figure, reason)
    other = designs[second]
    saved = other.bill.total_usd - one.bill.total_usd
    share = float(saved / other.bill.total_usd) if other.bill.total_usd else 0.0
    if not saved:
        reason = f"As dear as {other.letter}, and listed before it."
    else:
        reason = (
            f"{format_usd(float(saved))} ({share:.1%}) less than {other.letter}"
            f"{_main_difference(one, other)}."
        )
    return Card("Cheapest", _answer(one), figure, reason)


def _largest(one: Candidate) -> str:
    by_price = one.bill.usd_by_price()
    if not by_price:
        return "nothing of it has a price"
    name, amount = next(iter(by_price.items()))
    return f"{name} is {float(amount / one.bill.total_usd):.0%} of the price"


def _main_difference(one: Candidate, other: Candidate) -> str:
    """The kind of part that makes most of the difference."""
    ours, theirs = (x.bill.usd_by(lambda line: line.part.kind) for x in (one, other))
    saved = {kind: theirs.get(kind, ZERO) - ours.get(kind, ZERO) for kind in [*theirs, *ours]}
    kind = max(saved, key=lambda key: saved[key], default="")
    amount = saved.get(kind, ZERO)
    return f", most of it {_PLURAL[kind]} ({format_usd(float(amount))} less)" if amount > 0 else ""


_PLURAL = {
    "npu": "NPUs",
    "server": "servers",
    "nic": "NICs",
    "switch": "switches",
    "optic": "optics",
    "copper": "copper cables",
    "active_optical": "active optical cables",
    "fibre": "fibres",
    "rack": "racks",
    "link": "links per GB/s",
}


def _fastest(comparison: Comparison, best: int) -> Card:
    designs, times = comparison.candidates, comparison.times_s or []
    one = designs[best]
    model = comparison.ranking.ranked_by
    step_time_s = one.step_time_by(model)
    figure = f"{format_time(step_time_s)} per step {model}"
    if comparison.ranking.time_unit == "token":
        figure += f", {1e-6 / times[best]:,.2f} M tokens/s"
    second = _next(comparison, best, lambda i: times[i])
    if second is None:
        compute = one.evaluation.compute_s / step_time_s
        return Card("Speed", _answer(one), figure, f"{compute:.0%} of a step is compute.")
    other = designs[second]
    gain = times[second] / times[best]
    reason = f"{gain:.3f}x as fast as {other.letter}: "
    waits, there = (format_time(_exposed_s(x, model)) for x in (one, other))
    reason += f"{waits} of a step waits on communication, there {there}."
    if gain - 1 < _ROUNDING:
        reason = f"As fast as {other.letter}, and listed before it."
    return Card("Fastest", _answer(one), figure, reason)


def _exposed_s(one: Candidate, model: TimeModel) -> float:
    return max(0.0, one.step_time_by(model) - one.evaluation.compute_s)


def _best(comparison: Comparison, best: int) -> Card:
    designs, times = comparison.candidates, comparison.times_s or []
    totals = [float(one.bill.total_usd) for one in designs]
    one = designs[best]
    figure = f"{times[best] * totals[best] / 1e6:,.1f} s M$ per step"
    if comparison.ranking.time_unit == "token" and totals[best]:
        figure = f"{1e6 / times[best] / totals[best]:,.1f} tokens/s per M$"
    figure += ", incomplete" if comparison.missing else ""
    second = _next(comparison, best, lambda i: totals[i] * times[i])
    if second is None:
        return Card("Performance per dollar", _answer(one), figure, "The only design.")
    faster = times[second] / times[best] - 1
    cheaper = 1 - totals[best] / totals[second] if totals[second] else 0.0
    more = (
        totals[second] * times[second] / (totals[best] * times[best]) - 1 if totals[best] else 0.0
    )
    if abs(more) < _ROUNDING:
        reason = f"As good as {designs[second].letter}, and listed before it."
        return Card("Best per dollar", _answer(one), figure, reason)
    reason = (
        f"{more:.2%} more work per dollar than {designs[second].letter}: "
        f"{_relative(faster, 'faster', 'slower')} and {_relative(cheaper, 'cheaper', 'dearer')}."
    )
    return Card("Best per dollar", _answer(one), figure, reason)


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
    flips = [
        f"{swing.price_name} ({', '.join(swing.flips)})"
        for swing in comparison.swings
        if swing.flips
    ]
    assumed = sum((one.bill.assumed_usd for one in comparison.candidates), ZERO)
    total = sum((one.bill.total_usd for one in comparison.candidates), ZERO)
    share = f"{float(assumed / total):.0%}" if total else "0%"
    moved = [
        f"all budgets at {budget.factor:.0%}{_unchecked(comparison)}"
        for budget in comparison.budgets
        if budget.changes
    ]
    changes = flips + moved
    if changes:
        firm = f"The ranking changes with: {'; '.join(changes)}."
    else:
        firm = "No single price and no budget moved by 20% changes the ranking."
    return f"{share} of the money rests on assumed prices. {firm}"


def _unchecked(comparison: Comparison) -> str:
    """Budgets move designs that nobody has checked."""
    is_checked = comparison.ranking.ranked_by is TimeModel.CHECKED
    return " (by step times before the check)" if is_checked else ""
