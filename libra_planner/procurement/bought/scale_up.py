"""What a plan's scale-up domain is in a bill: its servers, and a line that they include (C22)."""

from __future__ import annotations

from libra_planner.fabric.scale_up import ScaleUpDomain
from libra_planner.fabric.topology import Topology
from libra_planner.procurement import bill
from libra_planner.procurement.bill import Line, Part, Parts
from libra_planner.units import format_bandwidth

_ROUNDING = 1e-9


def server_with(domain: ScaleUpDomain | None, parts: Parts, assumed: Part) -> Part:
    """The server whose price holds a scale-up domain.

    Parameters
    ----------
    domain : of the plan; without one, and of one in no server, the server is the assumed one.
    parts : a catalogue. A server that it does not have is a part without a price.
    assumed : the catalogue's own server, which is taken where it holds such domains.

    Examples
    --------
    >>> rack = ScaleUpDomain("nvl72", "switch", 72, 900e9, "server-nvl72")
    >>> server = server_with(rack, Parts({}), Part("server", bill.SERVER, "", n_npus=8))
    >>> server.name, server.n_npus, server.price is None
    ('server-nvl72', 72, True)
    """
    if domain is None or not domain.server:
        return assumed
    n_npus = domain.n_npus_sold or domain.n_npus
    difference_Bps = abs(assumed.includes.scale_up_Bps - domain.npu_Bps)
    if assumed.n_npus == n_npus and difference_Bps <= _ROUNDING * domain.npu_Bps:
        return assumed
    found = parts.named(domain.server, bill.SERVER)
    return found if found.n_npus else bill.missing(bill.SERVER, domain.server, n_npus=n_npus)


def domain_line(domain: ScaleUpDomain, topology: Topology) -> Line:
    """All domains of a fabric, as one line of its innermost dimension."""
    speed, n = format_bandwidth(domain.npu_Bps), domain.n_domains(topology)
    size = f"{domain.n_npus_sold or domain.n_npus:,} NPUs"
    described = f"links between {size}, {speed} per NPU, one direction"
    part = Part(domain.name, bill.LINK, described, power_w=domain.power_w)
    last, first = domain.n_dims(topology) - 1, topology.labels[0]
    notes = [f"{first} to {topology.labels[last]}"] * (last > 0)
    n_idle = domain.n_npus_bought(topology) - topology.n_npus
    notes += [f"{n_idle:,} NPUs idle"] * (n_idle > 0)
    return Line(bill.NETWORK, f"{first} {topology.tiers[0]}", part, n, "; ".join(notes))
