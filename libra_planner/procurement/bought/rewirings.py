"""Rails of compared designs that are cheaper when wired otherwise, and what that changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.rails import Rewired
from libra_planner.procurement.ranking import Comparison

_WORK = "work per dollar if its step stays as long"


def wiring_texts(comparison: Comparison) -> Iterator[str]:
    """The cheaper wiring of the design to buy, and of others where it changes the order."""
    for one, found, passed in _told(comparison):
        yield f"{found.short(one.letter)}{passed_text(one, passed)}"


def short_wiring_texts(comparison: Comparison) -> Iterator[str]:
    """The same for a first page: of the others those that would be the one to buy."""
    best = comparison.candidates[comparison.chosen]
    for one, found, passed in _told(comparison):
        if one is best or best.letter in passed:
            first = "" if one is best else f", and {one.letter} would come before {best.letter}"
            yield f"{found.short(one.letter)}{first}"


def wiring_lines(comparison: Comparison) -> Iterator[str]:
    """The same with what makes it of a plan, for notes."""
    for one, found, passed in _told(comparison):
        yield f"Open for {one.letter}: {found.text}{passed_text(one, passed)}."


def _told(comparison: Comparison) -> Iterator[tuple[Candidate, Rewired, Mapping[str, list[str]]]]:
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
    before = " and ".join(f"{letter} {' and '.join(by)}" for letter, by in passed.items())
    return f": {one.letter} would come before {before}" if passed else ""


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
