"""Rails of compared designs that are cheaper when wired otherwise, and what that changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from libra_planner.plain_text import joined
from libra_planner.procurement.bill import ZERO
from libra_planner.procurement.bought.changes import (
    before_text,
    first_text,
    passed_at,
    passes_alone,
    plural,
    stays_text,
)
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.rails import Rewired
from libra_planner.procurement.ranking import Comparison


@dataclass(frozen=True)
class _Told:
    """A design whose other wiring is told.

    Parameters
    ----------
    one, found : the design, and its other wiring.
    is_best : whether it is the one to buy.
    end : whom that puts it before where every design has its other wiring; empty for nobody.
    is_first : whether it would come before the one to buy with this wiring, that as it is.
    same : letters of the designs that this wiring makes the same network, its own among them.
    """

    one: Candidate
    found: Rewired
    is_best: bool
    end: str
    is_first: bool
    same: tuple[str, ...]


def wiring_texts(comparison: Comparison) -> Iterator[str]:
    """The cheaper wiring of the design to buy, and of others where it changes the order.

    Designs that are wired alike then stand in one text. Whom a design would come before is told
    of designs that all have their other wiring, those without one as they are.
    """
    return _together(comparison, [*_told(comparison)])


def short_wiring_texts(comparison: Comparison) -> Iterator[str]:
    """The same for a first page: of the others those that alone would be the one to buy."""
    told = _told(comparison, is_brief=True)
    return _together(comparison, [x for x in told if x.is_best or x.is_first])


def _together(comparison: Comparison, told: Sequence[_Told]) -> Iterator[str]:
    """Each wiring once, with what it saves of every design, and whom that puts before another."""
    found: dict[str, list[_Told]] = {}
    for one in told:
        found.setdefault(one.found.what, []).append(one)
    for group in found.values():
        first, *rest = sorted(group, key=lambda x: (not x.is_best, x.one.letter))
        text = first.found.short(first.one.letter)
        text += "".join(f", of {x.one.letter} for {x.found.saved_text}" for x in rest)
        ends = "; ".join(_ends(comparison, [first, *rest]))
        yield f"{text}: {ends}" if ends else text


def _ends(comparison: Comparison, group: Sequence[_Told]) -> Iterator[str]:
    """What one wiring makes of the order; of the one to buy and others where all of them take it.

    Parameters
    ----------
    group : designs of one wiring; the one to buy is the first, if it has it.
    """
    best, with_best = comparison.letters[comparison.chosen], group[0].is_best and len(group) > 1
    lead = f"if {'both' if len(group) == 2 else 'all'} take it, " if with_best else ""
    told = []
    if any(x.is_first and not x.end and best not in x.same for x in group):
        told.append(f"{'' if with_best else 'with its own other wiring '}{stays_text(comparison)}")
    for end in dict.fromkeys(x.end for x in group if x.end):
        whose = [x.one.letter for x in group if x.end == end]
        said = plural(end) if with_best or len(whose) > 1 else end
        told.append(f"{joined(sorted(whose), 'and')} {said}")
    letters = {x.one.letter for x in group}
    for same in dict.fromkeys(tuple(y for y in x.same if y in letters) for x in group):
        if len(same) > 1:
            told.append(f"{joined(same, 'and')} are then the same network")
    yield from (f"{lead * (i == 0)}{text}" for i, text in enumerate(told))


def wiring_lines(comparison: Comparison) -> Iterator[str]:
    """The same with what makes it of a plan, for notes."""
    for x in _told(comparison):
        end = f": {x.one.letter} {x.end}" if x.end else ""
        yield f"Open for {x.one.letter}: {x.found.text}{end}."


def _told(comparison: Comparison, *, is_brief: bool = False) -> Iterator[_Told]:
    """Those designs, with what their other wirings change."""
    found, best = [*_rewired(comparison)], comparison.candidates[comparison.chosen]
    less_usd: list[Decimal] = [ZERO if x is None else x.saved_usd for x in found]
    for i in comparison.order:
        one, other, is_best = comparison.candidates[i], found[i], i == comparison.chosen
        same = [j for j, x in enumerate(found) if _is_same(other, x)]
        passed = passed_at(comparison, i, less_usd, same)
        is_first = passes_alone(comparison, i, less_usd)
        if other is not None and (is_best or passed or is_first):
            end = first_text(best, passed) if is_brief else before_text(passed)
            letters = tuple(comparison.letters[j] for j in same)
            yield _Told(one, other, is_best, end, is_first, letters)


def _rewired(comparison: Comparison) -> Iterator[Rewired | None]:
    """Other wirings by design; ``None`` for none, and where that is a compared design."""
    designs = [one.bought.design for one in comparison.candidates]
    for one in comparison.candidates:
        found = one.rewired
        yield None if found is None or any(map(found.is_that_of, designs)) else found


def _is_same(one: Rewired | None, other: Rewired | None) -> bool:
    """Whether two other wirings are one network: of the same sizes, NICs and price."""
    if one is None or other is None or one.usd != other.usd:
        return False
    nics = ([x.nic_Bps for x in found.design.dimensions] for found in (one, other))
    return one.is_that_of(other.design) and next(nics) == next(nics)
