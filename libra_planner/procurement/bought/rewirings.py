"""Rails of compared designs that are cheaper when wired otherwise, and what that changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from libra_planner.plain_text import joined
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.rails import Rewired
from libra_planner.procurement.ranking import Comparison

_CONDITION = "if its step stays as long"
_WORK = f"work per dollar {_CONDITION}"
_Told: TypeAlias = tuple[Candidate, Rewired, Mapping[str, list[str]]]
"""A design, its other wiring, and whom that would put it before, and by what."""


def wiring_texts(comparison: Comparison) -> Iterator[str]:
    """The cheaper wiring of the design to buy, and of others where it changes the order.

    Designs that are wired alike then stand in one text.
    """
    told = [*_told(comparison)]
    return _together(told, [_before(passed) for _, _, passed in told])


def short_wiring_texts(comparison: Comparison) -> Iterator[str]:
    """The same for a first page: of the others those that would be the one to buy."""
    best = comparison.candidates[comparison.chosen]
    told = [x for x in _told(comparison) if x[0] is best or best.letter in x[2]]
    ends = ("" if one is best else _first(best, passed) for one, _, passed in told)
    return _together(told, [*ends])


def _together(told: Sequence[_Told], ends: Sequence[str]) -> Iterator[str]:
    """Each wiring once, with what it saves of every design, and whom that puts before another."""
    found: dict[str, list[tuple[_Told, str]]] = {}
    for one, end in zip(told, ends, strict=True):
        found.setdefault(one[1].what, []).append((one, end))
    for group in found.values():
        (first, _), *rest = sorted(group, key=lambda pair: pair[0][0].letter)
        text = first[1].short(first[0].letter)
        text += "".join(f", of {x.letter} for {y.saved_text}" for (x, y, _), _ in rest)
        own = dict.fromkeys(end for _, end in group if end)
        whose = {end: [x.letter for (x, _, _), its in group if its == end] for end in own}
        ends = "; ".join(
            f"{joined(sorted(x), 'and')} {_plural(end) if len(x) > 1 else end}"
            for end, x in whose.items()
        )
        yield f"{text}: {ends}" if ends else text


def _plural(end: str) -> str:
    """The same of several designs."""
    return end.replace(_CONDITION, "if their steps stay as long")


def wiring_lines(comparison: Comparison) -> Iterator[str]:
    """The same with what makes it of a plan, for notes."""
    for one, found, passed in _told(comparison):
        yield f"Open for {one.letter}: {found.text}{passed_text(one, passed)}."


def _told(comparison: Comparison) -> Iterator[_Told]:
    """Those designs, their other wiring, and whom it would put them before, and by what.

    None whose other wiring is a compared design.
    """
    designs = [one.bought.design for one in comparison.candidates]
    for i in comparison.order:
        one = comparison.candidates[i]
        found = one.rewired
        if found is None or any(map(found.is_that_of, designs)):
            continue
        passed = passed_at(comparison, i, found.saved_usd)
        if i == comparison.chosen or passed:
            yield one, found, passed


def passed_text(one: Candidate, passed: Mapping[str, list[str]]) -> str:
    """Before whom a design would come, and by what, as the end of a sentence; empty for nobody."""
    return f": {one.letter} {_before(passed)}" if passed else ""


def _before(passed: Mapping[str, list[str]]) -> str:
    before = " and ".join(f"{letter} {' and '.join(by)}" for letter, by in passed.items())
    return f"would come before {before}" if passed else ""


def first_text(one: Candidate, best: Candidate, passed: Mapping[str, list[str]]) -> str:
    """That a design would be the one to buy, and on which condition; empty for that one itself.

    Parameters
    ----------
    one, best : the design, and the one to buy.
    passed : as :func:`passed_at` has it; the one to buy is among them.
    """
    return "" if one is best else f"{one.letter} {_first(best, passed)}"


def _first(best: Candidate, passed: Mapping[str, list[str]]) -> str:
    ways = " ".join(passed[best.letter])
    how = _CONDITION if _CONDITION in ways else ways
    return f"would come before {best.letter} {how}"


def passed_at(comparison: Comparison, i: int, less_usd: Decimal) -> Mapping[str, list[str]]:
    """Before whom a design would come for less money, and by what.

    Empty for nobody, and for the design to buy.

    Parameters
    ----------
    i : its index.
    less_usd : that its bill would be less.
    """
    if i == comparison.chosen:
        return {}
    designs = comparison.candidates
    prices = [float(one.bill.total_usd) for one in designs]
    left = 1 - float(less_usd) / prices[i] if prices[i] else 1.0
    moves = {
        name: [j for j in comparison.order if values[i] * left < values[j] < values[i]]
        for name, values in {"price": prices, _WORK: comparison.worth}.items()
        if name == "price" or comparison.times_s is not None
    }
    told: dict[str, list[str]] = {}
    for name, js in moves.items():
        if js:
            told.setdefault(designs[js[0]].letter, []).append(f"by {name}")
    return told
