"""What the design to buy is bought for, and what would change that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from libra_planner.costs.quotes import Quote
from libra_planner.procurement.bill import NETWORK, ZERO, Bill, Line
from libra_planner.procurement.bought.twins import tied, unequal, weights_of
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranges import Rival, rivals
from libra_planner.procurement.ranking import LEAST_SAVED, Comparison
from libra_planner.procurement.readiness import quote_of, used_in
from libra_planner.procurement.terms.least_orders import best_moved, change_usd_at, least_order

MOST_STEPS = 4
"""Kinds of parts that are told one by one; the rest is one step more."""

FARTHEST = 10.0
"""Factor on a price beyond which a break-even tells nothing."""


@dataclass(frozen=True)
class Step:
    """What one kind of part makes of the way from one price to another.

    Parameters
    ----------
    kinds : of parts.
    n_units : of both designs, spares included, without lines that both have alike; where what
        differs is spares alone in one, all of the parts; of kinds counted together nothing.
    change_usd : what the second design pays more.
    places : of the network where units of a kind differ, such as ``spine`` or ``leaf-spine``.
    parts : of either design that most money of these units goes to, by its price; empty for none.
    is_stock : whether a design has of what differs spares alone.
    """

    kinds: tuple[str, ...]
    n_units: tuple[int, int] | None
    change_usd: Decimal
    places: tuple[str, ...] = ()
    parts: tuple[str, str] = ("", "")
    is_stock: bool = False


def steps(base: Candidate, one: Candidate) -> tuple[Step, ...]:
    """The way from one bill's total to another's, by kinds of parts, largest first.

    Examples
    --------
    The changes add up to the difference of the totals, whatever is told in one.
    """
    bills = base.bill, one.bill
    usd = [bill.usd_by(_kind) for bill in bills]
    changes = {
        kind: usd[1].get(kind, ZERO) - usd[0].get(kind, ZERO)
        for kind in dict.fromkeys([*usd[0], *usd[1]])
    }
    ranked = sorted((x for x in changes if changes[x]), key=lambda kind: -abs(changes[kind]))
    n_told = MOST_STEPS if len(ranked) > MOST_STEPS + 1 else len(ranked)
    found = [_step(base, one, kind, changes[kind]) for kind in ranked[:n_told]]
    rest = tuple(ranked[n_told:])
    if rest:
        found.append(Step(rest, None, sum((changes[kind] for kind in rest), ZERO)))
    return tuple(found)


def _kind(line: Line) -> str:
    return line.part.kind


_Units: TypeAlias = Counter[tuple[tuple[Any, ...], int]]
"""How often units of a line, or a stock of spares, stand in a bill: by what they are of."""


def _step(base: Candidate, one: Candidate, kind: str, change_usd: Decimal) -> Step:
    """What one kind makes of the way: units in lines, and in stocks of spares, that are unlike."""
    ours, theirs = _n_bought(base, kind), _n_bought(one, kind)
    changed = ours - theirs, theirs - ours
    names = {line.part.name: line.part.price_name for x in (base, one) for line in x.bill.lines}
    parts = [names.get(_dearest(x), "") for x in changed]
    is_stock = any(x and all(len(key) == _SPARES for key, _ in x) for x in changed)
    places = _places([key for x in changed for key, _ in x])
    counted = changed
    if is_stock:  # Their spares are of lines that both have: nobody buys spares alone.
        which = {key[-2:] for x in changed for key, _ in x}
        counted = _only(ours, which), _only(theirs, which)
    before, after = (sum(n * n_lines for (_, n), n_lines in x.items()) for x in counted)
    return Step((kind,), (before, after), change_usd, places, (parts[0], parts[1]), is_stock)


def _only(units: _Units, which: Collection[tuple[Any, ...]]) -> _Units:
    """Those of some parts, by name and price."""
    return Counter({one: n for one, n in units.items() if one[0][-2:] in which})


def _dearest(units: _Units) -> str:
    """The part that most money of some units goes to; empty for none."""
    usd: dict[str, Decimal] = {}
    for (key, n), n_lines in units.items():
        *_, name, unit_usd = key
        usd[name] = usd.get(name, ZERO) + n * n_lines * (unit_usd or ZERO)
    return max(usd, key=usd.__getitem__, default="")


def _places(changed: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """Where units differ in the training network; empty where others do, too."""
    placed = [key for key in changed if len(key) > _SPARES]
    if not all(key[0] == NETWORK for key in placed):
        return ()
    return tuple(dict.fromkeys(str(key[1]).rsplit(", ", maxsplit=1)[-1] for key in placed))


_SPARES = 2
"""Length of the key of a stock of spares: it stands nowhere."""


def _n_bought(one: Candidate, kind: str) -> _Units:
    """Units of every line of a kind, and the spares of every part, wherever they stand."""
    lines = [line for line in one.bill.lines if line.part.kind == kind]
    spares = Counter[tuple[Any, ...]]()
    for x in lines:
        spares[x.part.name, x.part.unit_usd] += x.n_spares
    units = (((x.group, x.tier, x.part.name, x.part.unit_usd), x.n_units) for x in lines)
    return Counter([*units, *((key, n) for key, n in spares.items() if n)])


@dataclass(frozen=True)
class Neighbour:
    """A design that whoever signs for another one asks about.

    Parameters
    ----------
    index : of the design.
    roles : what it is to the design to buy, such as ``the baseline`` and ``the next cheaper``.
    """

    index: int
    roles: tuple[str, ...]


def neighbours(comparison: Comparison) -> tuple[Neighbour, ...]:
    """What the design to buy is held against, what ties with it, the next cheaper and faster."""
    totals = [float(one.bill.total_usd) for one in comparison.candidates]
    held = "the baseline" if comparison.reference == comparison.baseline else "the next best"
    pairs = (
        (held, comparison.reference),
        ("the next best", _next_tied(comparison)),
        ("the next cheaper", _next_below(comparison, totals)),
        ("the next faster", _next_below(comparison, comparison.times_s)),
    )
    found: dict[int, tuple[str, ...]] = {}
    for role, i in pairs:
        if i is not None and role not in found.get(i, ()):
            found[i] = (*found.get(i, ()), role)
    return tuple(Neighbour(i, roles) for i, roles in found.items())


def _next_tied(comparison: Comparison) -> int | None:
    """The second of the ranking, where errors of step times do not tell it from the first."""
    second = comparison.order[1:2]
    ties = tied(comparison, comparison.chosen, with_prices=True)
    return next((i for i in second if i in ties), None)


def _next_below(comparison: Comparison, values: Sequence[float] | None) -> int | None:
    """The design of the next smaller value than the one to buy, first of those that keep rules."""
    if values is None:
        return None
    most = values[comparison.chosen] * (1 - _ROUNDING)
    below = [i for i in comparison.order if values[i] < most]
    kept = [i for i in below if i in comparison.eligible]
    return max(kept or below, key=values.__getitem__, default=None)


_ROUNDING = 1e-9
"""Relative difference that is rounding."""


def price_rivals(comparison: Comparison) -> tuple[Rival, ...]:
    """Designs that can be the one to buy at prices within their ranges (C22)."""
    bills, times_s = [one.bill for one in comparison.candidates], comparison.times_s
    found = rivals(bills, comparison.chosen, comparison.criterion, times_s)
    return tuple(one for one in found if one.other in comparison.eligible)


@dataclass(frozen=True)
class BreakEven:
    """A price at which another design is the one to buy.

    Parameters
    ----------
    price_name : such as ``nic-400g``.
    factor : on the price now.
    unit_usd : the price now, where it is one part's.
    then : the design that comes first.
    quote : the offer that counts for it now, where somebody has quoted it.
    """

    price_name: str
    factor: float
    unit_usd: Decimal | None
    then: str
    quote: Quote | None = None

    @property
    def next_offer(self) -> Quote | None:
        """The offer of another seller that counts before the price has come so far."""
        if self.quote is None or self.unit_usd is None:
            return None
        return self.quote.offer_before(float(self.unit_usd) * self.factor)


def break_evens(comparison: Comparison) -> Iterator[BreakEven]:
    """Prices that change what to buy within a factor of 10, the nearest first."""
    name, found = comparison.criterion, []
    for swing in comparison.swings:
        factor, text = swing.break_even_of(name, among=unequal(comparison))
        if factor is not None and 1 / FARTHEST <= factor <= FARTHEST:
            then = text.removesuffix(f" {name}")
            quote = quote_of(comparison, swing.price_name)
            found.append(BreakEven(swing.price_name, factor, swing.unit_usd, then, quote))
    yield from sorted(found, key=lambda one: max(one.factor, 1 / one.factor))


@dataclass(frozen=True)
class HandOffer:
    """An offer that does not count, and what the same comparison finds where it does.

    Parameters
    ----------
    offer : of a seller in the user's file.
    counts : the quote that counts for the same item.
    best : index of the design to buy at the offer.
    change_usd : of the price of the design to buy now.
    """

    offer: Quote
    counts: Quote
    best: int
    change_usd: Decimal

    @property
    def reason(self) -> str:
        """Why it does not count, such as ``expired on 2026-11-20``."""
        if self.offer.is_short and not self.offer.when:  # Some design buys as many.
            return f"sells from {self.offer.moq:,}; not every design needs so many"
        found = (why for one, why in self.counts.verdicts if one is self.offer)
        return next(found).removeprefix("no: ")

    @property
    def condition(self) -> str:
        """What has to happen for it to count."""
        if self.offer.is_over:
            return "if renewed"
        if self.offer.when:
            return "once it holds"
        return "if chosen" if self.counts.is_chosen else "if taken"


def offers_in_hand(comparison: Comparison) -> list[HandOffer]:
    """Offers that do not count, and would change what to buy or save over 0.2 % of its price.

    Each by itself, in place of the quote that counts: first those that change what to buy, then
    those that save most. A whole least order that holds and saves alone is an open point instead.
    """
    found = [
        _in_hand(comparison, offer, counts)
        for counts in used_in(comparison)
        for offer in counts.others
        if offer.tier_part is None
    ]
    bill = comparison.candidates[comparison.chosen].bill
    told = [
        one
        for one in found
        if one.best != comparison.chosen
        or (-one.change_usd > LEAST_SAVED * bill.total_usd and not _is_open_point(bill, one))
    ]
    return sorted(told, key=lambda one: (one.best == comparison.chosen, one.change_usd))


def _is_open_point(bill: Bill, one: HandOffer) -> bool:
    """Whether the open points tell of the whole least order of an offer."""
    is_told = not one.offer.when and not one.counts.is_chosen
    return is_told and least_order(bill, one.offer, one.counts) is not None


def _in_hand(comparison: Comparison, offer: Quote, counts: Quote) -> HandOffer:
    """What to buy where an offer counts: all designs at it, ranked as they are now."""
    moved = [change_usd_at(one.bill, offer, counts) for one in comparison.candidates]
    return HandOffer(offer, counts, best_moved(comparison, moved), moved[comparison.chosen])


def untold(comparison: Comparison) -> list[int]:
    """Designs of which nobody can tell whether they are best, as step times have no band (C23).

    By the errors of the next classes; without such, those that are within 5 % and differ by less
    than the time that they do not share.
    """
    best, designs, worth = comparison.chosen, comparison.candidates, comparison.worth
    weights = weights_of(comparison, with_prices=True)
    found = []
    for i in comparison.order if weights else ():
        one, pair = designs[i], (designs[best], designs[i])
        if i == best or i not in comparison.eligible or all(x.band_s for x in pair):
            continue
        known = [x.related_error_fraction for x in pair if x.related_error_fraction is not None]
        error = max(known, default=1.0)
        is_open = designs[best].may_be_passed_by(
            one, weights=(weights[best], weights[i]), error_fraction=error
        )
        if is_open and (known or abs(worth[i] / worth[best] - 1) < _NEAR):
            found.append(i)
    return found


_NEAR = 0.05
"""Difference in work per dollar below which unknown errors of steps leave the order open."""


def contenders(comparison: Comparison) -> set[int]:
    """The design to buy, those that tie with it, and those that it is held against."""
    chosen = comparison.chosen
    ties = tied(comparison, chosen, with_prices=True)
    return {chosen, *ties, *(one.index for one in neighbours(comparison))}
