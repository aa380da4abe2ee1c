"""How the NICs of a first plan are wired to leaves: rails, or a Clos of top-of-rack switches."""

from __future__ import annotations

import math
from dataclasses import dataclass

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.cluster import RAIL_ONLY, WIRINGS
from libra_planner.fabric.topology import RAIL_OPTIMIZED, TOP_OF_RACK, SwitchSettings
from libra_planner.inputs.training.clusters import nodes_per_leaf

RADIX = SwitchSettings().switch_radix
MOST_GROUPS = RADIX
"""Leaves of a rail that spines of one switch each join."""
USUAL = "usual"
"""Rails, whose spines are shared wherever a spine joins all leaves."""
WIRING_ANSWERS = (USUAL, *WIRINGS)


def wiring_of(text: str) -> str:
    """A wiring that was typed.

    Raises
    ------
    SpecError
        For another word.

    Examples
    --------
    >>> wiring_of("top_of_rack")
    'top_of_rack'
    """
    if text not in WIRING_ANSWERS:
        listed = ", ".join(WIRING_ANSWERS)
        fix = f"write {TOP_OF_RACK} for a Clos, {RAIL_OPTIMIZED} for rails"
        raise SpecError(Fault(f"got {text!r}", f"expected one of {listed}", fix))
    return text


@dataclass(frozen=True)
class Wiring:
    """How NICs are wired.

    Parameters
    ----------
    key : as a plan says it; empty for what a plan has that does not.
    n_groups : groups of nodes that share leaves, under spines; 1 without spines.
    why : what it is and why it is that one, for a comment.
    """

    key: str
    n_groups: int
    why: str


def wired(
    asked: str, n_nodes: int, n_per_node: int, taper: float | None, n_per_group: int | None = None
) -> Wiring:
    """The wiring of nodes.

    Parameters
    ----------
    asked : one of :data:`WIRING_ANSWERS`.
    n_nodes, n_per_node : nodes, and NPUs of each.
    taper : at the spines; ``None`` for one that is chosen later, from 1.
    n_per_group : nodes that share the leaves of rails; by default as many as leaves have room for.

    Raises
    ------
    SpecError
        Where switches of 64 ports do not make it.

    Examples
    --------
    >>> wired("usual", 128, 8, 1.0).key, wired("usual", 1024, 8, 1.0).key
    ('', 'rail_only')
    >>> found = wired("top_of_rack", 128, 8, 1.0)
    >>> found.n_groups, found.why
    (32, 'a Clos as asked (all NICs of 4 nodes on one leaf; rails: init --wiring usual)')
    """
    if asked == TOP_OF_RACK:
        return _clos(n_nodes, n_per_node, taper or 1.0)
    n_groups = n_nodes // (n_per_group or nodes_per_leaf(n_nodes))
    n_leaves, said = n_groups * n_per_node, "" if asked == USUAL else ", as asked"
    has_own = asked == RAIL_ONLY or n_leaves > RADIX
    if has_own and n_nodes <= RADIX:
        n_groups = 1
    if n_groups == 1:
        key = RAIL_ONLY if asked == RAIL_ONLY else ""
        return Wiring(key, 1, f"{n_per_node} rails of one switch each{said}, no spines")
    if asked == RAIL_OPTIMIZED and has_own:
        expected = f"expected at most {RADIX} leaves under shared spines of {RADIX} ports"
        raise SpecError(Fault(f"got {asked}, {n_leaves} leaves", expected, f"write {RAIL_ONLY}"))
    if not has_own:
        rails = f"{n_per_node} rails{said or ' as is usual'} (NPU i of every node on leaf i"
        return Wiring("", n_groups, f"{rails}; a Clos: init --wiring {TOP_OF_RACK})")
    why = said or f": {n_leaves} leaves are too many for one"
    return Wiring(RAIL_ONLY, n_groups, f"spines for each of {n_per_node} rails{why}")


def _clos(n_nodes: int, n_per_node: int, taper: float) -> Wiring:
    """Leaves that have all NICs of their nodes, as many as their ports and the nodes allow."""
    most = next(
        (n for n in range(RADIX // n_per_node, 0, -1) if _ports(n * n_per_node, taper) <= RADIX), 0
    )
    if n_nodes * n_per_node <= RADIX:
        return Wiring(TOP_OF_RACK, 1, "all NICs on one switch, as asked, no spines")
    n_leaf = max((n for n in range(2, most + 1) if n_nodes % n == 0), default=0)
    got, fix = f"got {TOP_OF_RACK}", f"write {USUAL}, which is rails"
    if most < 2:
        expected = f"expected nodes of which two, with {n_per_node} NICs each, fit a leaf"
        raise SpecError(Fault(f"{got}, leaves of {RADIX} ports", expected, fix))
    if not n_leaf:
        expected = f"expected nodes that leaves of 2 to {most} nodes share equally"
        raise SpecError(Fault(f"{got}, {n_nodes} nodes", expected, fix))
    n_groups = n_nodes // n_leaf
    if n_groups > MOST_GROUPS:
        expected = f"expected at most {MOST_GROUPS} leaves, which spines of {RADIX} ports join"
        leaves = f"{n_groups} leaves of {n_leaf} nodes"
        raise SpecError(Fault(f"{got}, {leaves}", expected, fix))
    why = f"a Clos as asked (all NICs of {n_leaf} nodes on one leaf; rails: init --wiring {USUAL})"
    return Wiring(TOP_OF_RACK, n_groups, why)


def _ports(n_down: int, taper: float) -> int:
    return n_down + math.ceil(n_down / taper - 1e-9)
