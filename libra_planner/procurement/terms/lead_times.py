"""How long the parts of a design take from order to delivery, beside those of other designs."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.plain_text import joined
from libra_planner.procurement.bill import SERVICE
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.quotes import orders
from libra_planner.procurement.ranking import Comparison


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


def lead_time(one: Candidate) -> LeadTime:
    """The longest lead time of what a design orders, by quotes and the parts catalogue.

    Support and lump sums have none.
    """
    parts = [
        line.part for order in orders(one.bill) for line in order.lines if line.part.kind != SERVICE
    ]
    days = [(part.n_lead_days, part.name) for part in parts if part.n_lead_days is not None]
    n_lead_days, part = max(days, key=lambda pair: pair[0], default=(None, ""))
    return LeadTime(n_lead_days, part, tuple(x.name for x in parts if x.n_lead_days is None))


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
