"""A design from ports that are sold: which dimensions are bought as parts, and how fast."""

from __future__ import annotations

from dataclasses import dataclass, replace

from libra_planner.fabric.clos import Array, Clos
from libra_planner.fabric.construction import Realization
from libra_planner.fabric.parts import DimensionParts, design_parts
from libra_planner.fabric.realization import RealizedDesign, RealizedDimension, realize
from libra_planner.fabric.topology import Block
from libra_planner.problem import Problem
from libra_planner.procurement.parts import Parts


@dataclass(frozen=True)
class Purchase:
    """A design from whole ports.

    Parameters
    ----------
    design : its links; ports that the plan gives no speed run at one that is sold.
    parts : what they are made of, by dimension.
    scale_out : the dimensions whose NICs, switches and cables are parts of a catalogue;
        the others are priced per GB/s by the price book.
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


def scale_out_dimensions(problem: Problem) -> tuple[bool, ...]:
    """Whether each dimension is a network of switches, which is bought as parts.

    Scale-up switches (C14) and direct links are no parts of their own.
    """
    return problem.links.networks


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
    topology, scale_out = problem.topology, scale_out_dimensions(problem)
    given = problem.links
    switches, chosen = list(given.switches), []
    for dim, settings in enumerate(given.switches):
        if settings is None or settings.one_switch or settings.port_speed_Bps is not None:
            continue
        n_nics = settings.n_nics or 1
        speed_Bps = parts.port_speed_Bps(float(bandwidth_Bps[dim]) / n_nics)
        switches[dim] = replace(settings, port_speed_Bps=speed_Bps)
        chosen.append(topology.labels[dim])
    realization: Realization = replace(given, switches=tuple(switches))
    design = realize(topology, bandwidth_Bps, realization)
    return Purchase(design, design_parts(design).dimensions, scale_out, tuple(chosen))


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
    lower, upper = dimension.size // 2, -(-dimension.size // 2)
    link_Bps = dimension.link_bandwidth_bytes_per_s(last.bandwidth_Bps)
    if dimension.block is Block.RING:
        return n_groups * 2 * link_Bps
    if dimension.block is Block.FULLY_CONNECTED:
        return n_groups * lower * upper * link_Bps
    several = isinstance(last.fabric, Clos) and last.fabric.n_spines > 0
    ratio = last.settings.oversubscription if last.settings is not None and several else 1.0
    return n_groups * lower * last.bandwidth_Bps / max(1.0, ratio)
