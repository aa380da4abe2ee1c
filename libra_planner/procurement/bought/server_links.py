"""Links and NICs that the price of a server holds, beside what a design asks of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from libra_planner.procurement import lines
from libra_planner.procurement.bill import Bill, Part
from libra_planner.units import format_bandwidth

_ROUNDING = 1e-9


@dataclass(frozen=True)
class ServerLinks:
    """What a design asks of the links that its servers include, beside what they include.

    Parameters
    ----------
    labels : of the dimensions that are inside a server, and that no part of the plan names.
    asked_Bps, included_Bps : per NPU, one direction, byte/s.
    server : its name.
    """

    labels: tuple[str, ...]
    asked_Bps: float
    included_Bps: float
    server: str

    @property
    def over_Bps(self) -> float:
        """What is asked for beyond what is included; 0 where that suffices."""
        is_over = self.asked_Bps > self.included_Bps * (1 + _ROUNDING)
        return self.asked_Bps - self.included_Bps if is_over else 0.0

    @property
    def over_text(self) -> str:
        """That no such server is priced; empty where the included links suffice."""
        asked, most = map(format_bandwidth, (self.asked_Bps, self.included_Bps))
        text = (
            f"{OVER_SERVER} ({', '.join(self.labels)}) carry {asked} per NPU, one direction, and "
            f"{self.server} includes {most}: no such server is priced here. Bound the bandwidth, "
            "or give a server that has it by --parts"
        )
        return text if self.over_Bps else ""

    @property
    def unused_text(self) -> str:
        """That the price holds more than the design asks for; empty where it does not."""
        asked, most = map(format_bandwidth, (self.asked_Bps, self.included_Bps))
        text = (
            f"{UNUSED_IN_SERVER} {self.server} holds {most} per NPU, one direction, between its "
            f"NPUs ({', '.join(self.labels)}), and the design asks for {asked}: its times are at "
            "what it asks for. Name the part (fabric: scale_up), and the design has all of it"
        )
        is_less = self.labels and self.asked_Bps < self.included_Bps * (1 - _ROUNDING)
        return text if is_less else ""


OVER_SERVER, UNUSED_IN_SERVER = "links between the NPUs of a server", "the price of"
"""How the texts of :class:`ServerLinks` begin."""


def server_links(bought: lines.Purchase, server: Part) -> ServerLinks:
    """What a design asks of the links of its servers; without labels where they hold none."""
    dims = [
        dim
        for dim in range(bought.design.topology.n_dims)
        if dim not in bought.domain_dims and lines.holds(bought, dim, server)
    ]
    built = [bought.design.dimensions[i] for i in dims]
    labels = tuple(one.label for one in built)
    asked_Bps = float(sum(one.bandwidth_Bps for one in built))
    return ServerLinks(labels, asked_Bps, server.includes.scale_up_Bps, server.name)


def included_faults(bought: lines.Purchase, whole: Bill, server: Part) -> Iterator[str]:
    """Where a design and what its servers include do not fit together, in words."""
    links = server_links(bought, server)
    yield from filter(None, (links.over_text, links.unused_text))
    names = {f"{name}, included in {server.name}" for name, _ in server.includes.nics}
    if any(bought.scale_out) and not names <= {line.part.name for line in whole.lines}:
        unused = ", ".join(f"{n} {name}" for name, n in server.includes.nics)
        yield (
            f"the price of {server.name} holds {unused}, which are too slow for this fabric: "
            "others are bought beside them"
        )
