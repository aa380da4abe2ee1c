"""How long the parts of a design take from order to delivery, beside those of other designs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from libra_planner.costs.quotes import Quote
from libra_planner.plain_text import joined
from libra_planner.procurement.bill import SERVICE
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.quotes import moved_usd, orders
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.readiness import quote_of
from libra_planner.units import short_usd


@dataclass(frozen=True)
class LeadTime:
    """The longest lead time of a design's parts.

    Parameters
    ----------
    n_lead_days : from order to delivery, of the parts whose lead time is known; ``None`` for none.
    part : that takes so long; empty for none.
    unknown : parts of which nobody says one.
    """

    n_lead_days: int | None
    part: str
    unknown: tuple[str, ...]

    @property
    def known_text(self) -> str:
        """Days and part, such as ``switch-64x400g, 126 days``; empty where none is known."""
        return "" if self.n_lead_days is None else f"{self.part}, {self.n_lead_days} days"


def lead_time(one: Candidate, instead: Mapping[str, int] | None = None) -> LeadTime:
    """The longest lead time of what a design orders, by quotes and the parts catalogue.

    Support and lump sums have none.

    Parameters
    ----------
    one : the design.
    instead : days of some parts by name, where another seller delivers them.
    """
    parts = [
        line.part for order in orders(one.bill) for line in order.lines if line.part.kind != SERVICE
    ]
    own = {part.name: part.n_lead_days for part in parts} | dict(instead or {})
    days = [(n_days, name) for name, n_days in own.items() if n_days is not None]
    n_lead_days, part = max(days, key=lambda pair: pair[0], default=(None, ""))
    return LeadTime(n_lead_days, part, tuple(name for name, x in own.items() if x is None))


@dataclass(frozen=True)
class Sooner:
    """An offer in hand that shortens the longest lead time of a design.

    Parameters
    ----------
    offer : of another seller, for the part that takes longest.
    change_usd : what the design costs more with it, before tax.
    change_fraction : the same, of its price.
    then : the longest lead time with it.
    """

    offer: Quote
    change_usd: Decimal
    change_fraction: float
    then: LeadTime

    @property
    def text(self) -> str:
        """Who offers the part sooner, for what, and what takes longest then."""
        share = f" ({abs(self.change_fraction):.2%})"
        how = "more" if self.change_usd > 0 else "less"
        money = f"{short_usd(abs(float(self.change_usd)))} {how}{share}"
        price = f"for {money}" if self.change_usd else "at the same price"
        offer, days = self.offer, f"in {self.offer.n_lead_days} days"
        return (
            f"{offer.seller} offers {offer.item} {days} {price}: "
            f"then the longest is {self.then.n_lead_days} days ({self.then.part})"
        )


def sooner(comparison: Comparison, i: int) -> Sooner | None:
    """The cheapest offer that can be ordered and shortens the longest lead time of a design.

    ``None`` without one: also where several parts take longest, as no offer alone is enough there.

    Parameters
    ----------
    i : index of the design.
    """
    one = comparison.candidates[i]
    now, found = lead_time(one), list[Sooner]()
    counts, longest_days = quote_of(comparison, now.part), now.n_lead_days
    if counts is None or longest_days is None:
        return None
    for offer in counts.others:
        change_usd, n_days = moved_usd(one.bill, offer, counts), offer.n_lead_days
        if offer.when or change_usd is None or n_days is None:
            continue
        then = lead_time(one, {now.part: n_days})
        if (then.n_lead_days or 0) < longest_days:
            fraction = float(change_usd) / (float(one.bill.total_usd) or 1.0)
            found.append(Sooner(offer, change_usd, fraction, then))
    return min(found, key=lambda x: (x.change_usd, x.then.n_lead_days or 0), default=None)


def longest(comparison: Comparison) -> list[LeadTime] | None:
    """The longest of every design; ``None`` where nobody tells one of any."""
    found = [lead_time(one) for one in comparison.candidates]
    return found if any(one.n_lead_days is not None for one in found) else None


def later_text(comparison: Comparison) -> str:
    """How much longer the design to buy waits than the soonest others; empty where it does not."""
    found, chosen = longest(comparison) or [], comparison.chosen
    known = {i: one.n_lead_days for i, one in enumerate(found) if one.n_lead_days is not None}
    own = known.get(chosen)
    if own is None or own == (least := min(known.values())):
        return ""
    soonest = [i for i in known if known[i] == least]
    letters = joined([comparison.letters[i] for i in soonest], "and")
    n_more, of = own - least, {found[i].known_text for i in soonest}
    their = f"; there {of.pop()}" if len(of) == 1 else f"; there {least} days"
    more = {name for i in soonest for name in found[i].unknown} - {*found[chosen].unknown}
    but = f", where nobody says that of {', '.join(sorted(more))}" if more else ""
    days = f"{n_more} day{'s' * (n_more != 1)}"
    letter = comparison.letters[chosen]
    return f"{letter} waits {days} longer than {letters}: {found[chosen].known_text}{their}{but}"
