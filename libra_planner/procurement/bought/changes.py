"""What a change that several designs can have makes of their order: each with its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from libra_planner.procurement.bill import ZERO
from libra_planner.procurement.bought.twins import EQUAL
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison

_CONDITION = "if its step stays as long"
_WORK = f"work per dollar {_CONDITION}"


def passed_at(
    comparison: Comparison, i: int, less_usd: Sequence[Decimal], same: Collection[int] = ()
) -> Mapping[str, list[str]]:
    """Before whom a design would come where every design pays less, and by what.

    Empty for nobody, for the design to buy, for one without the change, and for one that breaks
    rules of its plan or that nobody sells. What is within 0.05 % then is equal.

    Parameters
    ----------
    i : its index.
    less_usd : by design, that its bill would be less; 0 of one that cannot have the change.
    same : designs that are then the same as it.
    """
    if i == comparison.chosen or not less_usd[i] or i not in comparison.eligible:
        return {}
    designs = comparison.candidates
    prices = [float(one.bill.total_usd) for one in designs]
    left = [1 - float(x) / usd if usd else 1.0 for x, usd in zip(less_usd, prices, strict=True)]
    moves = {
        name: [
            j
            for j in comparison.order
            if j not in same
            and values[i] * left[i] < (1 - EQUAL) * values[j] * left[j]
            and values[j] < values[i]
        ]
        for name, values in {"price": prices, _WORK: comparison.worth}.items()
        if name == "price" or comparison.times_s is not None
    }
    told: dict[str, list[str]] = {}
    for name, js in moves.items():
        if js:
            told.setdefault(designs[js[0]].letter, []).append(f"by {name}")
    return told


def passes_alone(comparison: Comparison, i: int, less_usd: Sequence[Decimal]) -> bool:
    """Whether a design would come before the one to buy if it alone paid less.

    Parameters
    ----------
    i, less_usd : as :func:`passed_at` has them.
    """
    alone = [x if j == i else ZERO for j, x in enumerate(less_usd)]
    return comparison.letters[comparison.chosen] in passed_at(comparison, i, alone)


def stays_text(comparison: Comparison) -> str:
    """That the design to buy stays that where all have their change, and on which condition."""
    text = f"{comparison.letters[comparison.chosen]} stays {comparison.criterion}"
    return text if comparison.times_s is None else f"{text} {plural(_CONDITION)}"


def before_text(passed: Mapping[str, list[str]]) -> str:
    """Before whom a design would come, and by what; empty for nobody."""
    before = " and ".join(f"{letter} {' and '.join(by)}" for letter, by in passed.items())
    return f"would come before {before}" if passed else ""


def first_text(best: Candidate, passed: Mapping[str, list[str]]) -> str:
    """That a design would come before the one to buy, and on which condition; else empty.

    Parameters
    ----------
    best : the one to buy.
    passed : as :func:`passed_at` has it.
    """
    ways = " ".join(passed.get(best.letter, ()))
    how = _CONDITION if _CONDITION in ways else ways
    return f"would come before {best.letter} {how}" if ways else ""


def plural(text: str) -> str:
    """A condition of one step, of several.

    >>> plural("would come before C if its step stays as long")
    'would come before C if their steps stay as long'
    """
    return text.replace(_CONDITION, "if their steps stay as long")
