"""A design from ports that are sold: which dimensions are bought as parts, and how fast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from libra_planner.fabric.clos import Array, Clos
from libra_planner.fabric.parts import DimensionParts, design_parts
from libra_planner.fabric.realization import RealizedDesign, RealizedDimension, realize
from libra_planner.fabric.topology import Topology
from libra_planner.problem import Problem
from libra_planner.procurement.bill import ZERO, Line
from libra_planner.procurement.parts import NIC, Part, Parts, Price
from libra_planner.units import format_bandwidth


@dataclass(frozen=True)
class Purchase:
    """A design from whole ports.

    Parameters
    ----------
    design : its links; ports that the plan gives no speed run at one that is sold.
    parts : what they are made of, by dimension.
    scale_out : the dimensions whose NICs, switches and cables are parts of a catalogue; the
        others, scale-up switches (C14) and direct links, are priced per GB/s by the price book.
    chosen_speeds : labels of the dimensions whose port speed the plan leaves open.
    """

    design: RealizedDesign
    parts: tuple[DimensionParts, ...]
    scale_out: tuple[bool, ...]
    chosen_speeds: tuple[str, ...] = ()

    @property
    def dimensions(self) -> list[tuple[RealizedDimension, DimensionParts, bool]]:
        """Links, parts and whether they are scale-out, innermost first."""
        return list(zip(self.design.dimensions, self.parts, self.scale_out, strict=True))


def purchase(problem: Problem, bandwidth_Bps: Array, parts: Parts) -> Purchase:
    """What to buy for a design.

    Parameters
    ----------
    problem : from a plan.
    bandwidth_Bps : per NPU, shape (n_dims,), byte/s.
    parts : whose port speeds are sold.

    Raises
    ------
    SpecError
        For a design that cannot be built.
    """
    topology, links = problem.topology, problem.links
    switches, chosen = list(links.switches), []
    for dim, settings in enumerate(links.switches):
        if settings is None or settings.one_switch or settings.port_speed_Bps is not None:
            continue
        n_nics = settings.n_nics or 1
        speed_Bps = parts.port_speed_Bps(float(bandwidth_Bps[dim]) / n_nics)
        switches[dim] = replace(settings, port_speed_Bps=speed_Bps)
        chosen.append(topology.labels[dim])
    design = realize(topology, bandwidth_Bps, replace(links, switches=tuple(switches)))
    return Purchase(design, design_parts(design).dimensions, links.networks, tuple(chosen))


def bisection_Bps(design: RealizedDesign) -> float:
    """Bandwidth between two halves of the cluster, one direction, over the outermost dimension.

    A group of n is cut into floor(n/2) and the rest: 2 links of a ring of more than 2 (2 of
    its links join a ring of 2, too), floor(n/2) * ceil(n/2) links of a fully connected group;
    under switches floor(n/2) NPUs send all they inject, over the oversubscription of the leaves.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> bisection_Bps(realize(parse_topology("RI(8)"), [100e9])) / 1e9
    100.0
    >>> bisection_Bps(realize(parse_topology("FC(2)_SW(32)"), [1e9, 50e9])) / 1e9
    1600.0
    """
    last, dimension = design.dimensions[-1], design.topology.dimensions[-1]
    n_groups = design.topology.n_npus // dimension.size
    link_Bps = dimension.link_bandwidth_bytes_per_s(last.bandwidth_Bps)
    several = isinstance(last.fabric, Clos) and last.fabric.n_spines > 0
    ratio = last.settings.oversubscription if last.settings is not None and several else 1.0
    return n_groups * dimension.block.n_cut_links(dimension.size) * link_Bps / max(1.0, ratio)


_ROUNDING = 1e-9


def is_inside(topology: Topology, dim: int, server: Part) -> bool:
    """Whether the groups of a dimension, with all that is inside them, fill whole servers.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> fabric = parse_topology("SW(4)_RI(2)_SW(16)")
    >>> [is_inside(fabric, dim, Part("s", "server", "", n_npus=8)) for dim in range(3)]
    [True, True, False]
    """
    return server.n_npus % math.prod(topology.sizes[: dim + 1]) == 0


def holds(bought: Purchase, dim: int, server: Part) -> bool:
    """Whether the price of a server holds the links and switches of a dimension."""
    is_scale_up = not bought.scale_out[dim] and server.includes.scale_up_Bps > 0
    return is_scale_up and is_inside(bought.design.topology, dim, server)


def included(line: Line, server: Part) -> Line:
    """A line at no price of its own, as that of a server holds it; its spares are the servers'."""
    part, price = line.part, server.price
    words = f"included in {server.name}"
    free = Price(
        ZERO,
        price.confidence if price else "assumed",
        price.as_of if price else "unknown",
        f"{words}: see there",
    )
    same = replace(
        part,
        name=f"{part.name}, {words}",
        description=f"{part.description}; {words}",
        price=free,
        spare_fraction=0.0,
        priced_by="",
    )
    return replace(line, part=same, note="; ".join(filter(None, (line.note, words))))


def with_included_nics(
    lines: Iterable[Line], server: Part, n_servers: int, parts: Parts
) -> Iterator[Line]:
    """The lines with those NICs at no price that the servers bring, as far as they go.

    A NIC of a server serves every port that is not faster than its own.
    """
    left = {name: n_servers * n for name, n in server.includes.nics}
    for line in lines:
        found = _serving(line, left, parts) if line.part.kind == NIC else None
        if found is None:
            yield line
            continue
        n_free = min(left[found.name], line.n_units)
        left[found.name] -= n_free
        yield included(replace(line, part=found, n_units=n_free), server)
        if line.n_units > n_free:
            yield replace(line, n_units=line.n_units - n_free)


def _serving(line: Line, left: dict[str, int], parts: Parts) -> Part | None:
    """The slowest NIC of the servers that is left and fast enough; ``None`` for none."""
    least_Bps = line.part.port_speed_Bps * (1 - _ROUNDING)
    fast = (one for one in parts.of_kind(NIC) if left.get(one.name))
    return next((one for one in fast if one.port_speed_Bps >= least_Bps), None)


def included_faults(bought: Purchase, lines: Iterable[Line], server: Part) -> Iterator[str]:
    """Where a design and what its servers include do not fit together, in words."""
    dims = [i for i in range(bought.design.topology.n_dims) if holds(bought, i, server)]
    built = [bought.design.dimensions[i] for i in dims]
    asked_Bps = sum(one.bandwidth_Bps for one in built)
    most_Bps = server.includes.scale_up_Bps
    if asked_Bps > most_Bps * (1 + _ROUNDING):
        yield (
            f"links between the NPUs of a server ({', '.join(one.label for one in built)}) carry "
            f"{format_bandwidth(asked_Bps)} per NPU, one direction, and {server.name} includes "
            f"{format_bandwidth(most_Bps)}: no such server is priced here. Bound the bandwidth, or "
            "give a server that has it by --parts"
        )
    names = {f"{name}, included in {server.name}" for name, _ in server.includes.nics}
    if any(bought.scale_out) and not names <= {line.part.name for line in lines}:
        unused = ", ".join(f"{n} {name}" for name, n in server.includes.nics)
        yield (
            f"the price of {server.name} holds {unused}, which are too slow for this fabric: "
            "others are bought beside them"
        )
