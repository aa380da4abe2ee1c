"""Where the groups of every axis of parallelism stand on the dimensions (C6, C15)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from libra_planner.errors import Fault, SpecError, nearest_divisors
from libra_planner.fabric.blocks import SWITCH
from libra_planner.fabric.topology import Topology
from libra_planner.workload.operations import Group
from libra_planner.workload.volumes import DP_CP

DEFAULT_ORDER = ("tp", "cp", "dp", "pp")
"""Axes of dense layers, innermost first."""
EXPERT_ORDER = ("etp", "ep", "edp")
"""Axes of expert layers, innermost first, over the ranks of a stage."""

_Digit = tuple[int, int, int]
"""Part of a dimension: its index, the distance between neighbours, NPUs."""


@dataclass(frozen=True)
class _Part:
    """What an axis has of the dimensions.

    Parameters
    ----------
    digits : innermost first.
    nearest : distance of the nearest NPUs that axes inside left, by dimension.
    """

    digits: tuple[_Digit, ...]
    nearest: tuple[int, ...]

    def __or__(self, other: _Part) -> _Part:
        """Both axes as one."""
        nearest = map(min, zip(self.nearest, other.nearest, strict=True))
        return _Part(tuple(sorted(self.digits + other.digits)), tuple(nearest))

    def group(self, topology: Topology, axis: str) -> Group:
        """Sizes and distances; parts of one dimension have to follow one another."""
        for (i, stride, size), (j, following, _) in pairwise(self.digits):
            if i == j and following != stride * size:
                got = f"got groups of {axis} at unequal distances on dim{i + 1}"
                expected = "expected an order in which no other axis stands between their ranks"
                fix = "put pp last in the order, and cp next to dp"
                raise SpecError(Fault(got, expected, fix, f"parallelism.{axis}"))
        sizes, strides = [1] * topology.n_dims, list(self.nearest)
        for i, stride, size in reversed(self.digits):
            sizes[i], strides[i] = sizes[i] * size, stride
        return Group(tuple(sizes), tuple(strides))


def placed_groups(
    topology: Topology, degrees: Mapping[str, int], order: Sequence[str] = DEFAULT_ORDER
) -> dict[str, Group]:
    """The group of every axis, dense and expert (C15).

    Dense axes fill the dimensions from the innermost, in the order given. Expert axes factor the
    ranks of a stage a second time, innermost first: with etp = 1 a group of ep is ep neighbours,
    ranks of tp included. ``dp_cp`` holds the ranks that exchange dense gradients.

    Parameters
    ----------
    topology : the fabric.
    degrees : of tp, cp, dp, pp, ep and etp; 1 where one is not given.
    order : dense axes, innermost first.

    Raises
    ------
    SpecError
        When tp, cp, dp and pp do not multiply to the NPU count, etp and ep do not divide the ranks
        of a stage, or a group cannot stand on the dimensions at equal distances.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> fabric = parse_topology("SW(8)_[SW(16)_SW(8)]")
    >>> groups = placed_groups(fabric, {"tp": 4, "dp": 32, "pp": 8, "ep": 16})
    >>> {axis: groups[axis].sizes for axis in ("tp", "dp", "pp", "ep", "edp")}
    {'tp': (4, 1, 1), 'dp': (2, 16, 1), 'pp': (1, 1, 8), 'ep': (8, 2, 1), 'edp': (1, 8, 1)}
    """
    refuse_other_npus(topology, degrees, order)
    whole = [(i, 1, size) for i, size in enumerate(topology.sizes)]
    dense = _taken(topology, whole, order, degrees)
    stage = sorted(digit for axis in order if axis != "pp" for digit in dense[axis].digits)
    n_edp = _n_stage(degrees) // (degrees.get("etp", 1) * degrees.get("ep", 1))
    experts = _taken(topology, stage, EXPERT_ORDER, {**degrees, "edp": n_edp})
    axes = {**dense, **experts, DP_CP: dense["dp"] | dense["cp"]}
    return {axis: part.group(topology, axis) for axis, part in axes.items()}


def one_other_degree(degrees: Mapping[str, int], n_npus: int) -> str:
    """How degrees make the NPUs when one of them is another; empty where none does alone.

    >>> one_other_degree({"tp": 4, "dp": 64, "pp": 3}, 1024), one_other_degree({"tp": 3}, 8)
    ('write pp 4', 'write tp 8')
    """
    product = math.prod(degrees.values())
    rests = {axis: product // degree for axis, degree in degrees.items()}
    found = [f"{axis} {n_npus // rest}" for axis, rest in rests.items() if n_npus % rest == 0]
    return f"write {' or '.join(found)}" if found else ""


def wider_experts(topology: Topology, n_experts: int) -> tuple[int, ...]:
    """Degrees of experts that fit in a switch of dim1, which is no multiple of them.

    They divide the experts, and are wider than every degree that stands there.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> [wider_experts(parse_topology(x), 256) for x in ("SW(72)_SW(32)", "SW(64)_SW(32)")]
    [(16, 32, 64), ()]
    """
    size = topology.sizes[0]
    if topology.dimensions[0].block != SWITCH:
        return ()
    inside = [n for n in range(1, min(size, n_experts) + 1) if n_experts % n == 0]
    widest = max(n for n in inside if size % n == 0)
    return tuple(n for n in inside if n > widest)


def with_switch_of(topology: Topology, n_npus: int) -> Topology:
    """The fabric with fewer NPUs of every switch of dim1."""
    first = replace(topology.dimensions[0], size=n_npus)
    return replace(topology, dimensions=(first, *topology.dimensions[1:]))


def misfit_words(topology: Topology, degree: int) -> str:
    """Why the innermost ranks of a degree cannot stand on the dimensions; empty where they can.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> misfit_words(parse_topology("SW(72)_SW(32)"), 64)
    'the 72 NPUs of dim1 are no multiple of 64'
    """
    inside = 1
    for label, size in zip(topology.labels, topology.sizes, strict=True):
        outside = inside * size
        if outside % degree and degree % outside:
            within = "" if inside == 1 else f"{topology.labels[0]} to "
            return f"the {outside:,} NPUs of {within}{label} are no multiple of {degree}"
        inside = outside
    return ""


def other_degree(
    axis: str, degree: int, possible: Sequence[int], topology: Topology, n_experts: int = 0
) -> str:
    """How to correct a degree: the nearest that are possible, and of experts a smaller switch.

    Parameters
    ----------
    axis, degree : what is wrong.
    possible : degrees that the model and the fabric allow.
    topology : the fabric.
    n_experts : of the model.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> other_degree("ep", 64, [1, 2, 4, 8], parse_topology("SW(72)_SW(32)"), 256)
    'write ep 8, or use 64 of the 72 NPUs of dim1: fabric.topology: SW(64)_SW(32), 2,048 NPUs'
    """
    below = max((n for n in possible if n < degree), default=None)
    above = min((n for n in possible if n > degree), default=None)
    fix = f"write {axis} {' or '.join(str(n) for n in (below, above) if n)}"
    wider = wider_experts(topology, n_experts) if axis == "ep" and n_experts else ()
    if not wider or (above and above <= topology.sizes[0]):
        return fix
    smaller = with_switch_of(topology, wider[-1])
    use = f"use {wider[-1]} of the {topology.sizes[0]} NPUs of dim1"
    return f"{fix}, or {use}: fabric.topology: {smaller}, {smaller.n_npus:,} NPUs"


def _n_stage(degrees: Mapping[str, int]) -> int:
    """Ranks of a stage."""
    return math.prod(degrees.get(axis, 1) for axis in ("tp", "cp", "dp"))


def refuse_other_npus(
    topology: Topology, degrees: Mapping[str, int], order: Sequence[str] = DEFAULT_ORDER
) -> None:
    """Refuse degrees that do not multiply to the NPUs, and orders that leave an axis out.

    Parameters
    ----------
    topology, degrees, order : as :func:`placed_groups` has them.

    Raises
    ------
    SpecError
        For them, and for experts that do not divide the ranks of a stage.
    """
    if sorted(order) != sorted(DEFAULT_ORDER):
        expected = "expected each of tp, cp, dp and pp once, innermost first"
        fix = f"write {', '.join(DEFAULT_ORDER)}"
        raise SpecError(Fault(f"got {', '.join(order)}", expected, fix, "parallelism.order"))
    product = math.prod(degrees.get(axis, 1) for axis in order)
    if product != topology.n_npus:
        shown = " x ".join(f"{axis} {degrees.get(axis, 1)}" for axis in order)
        expected = f"expected the {topology.n_npus} NPUs of {topology}"
        known = {axis: degrees.get(axis, 1) for axis in order}
        fix = one_other_degree(known, topology.n_npus) or "change a degree or the topology"
        raise SpecError(Fault(f"got {shown} = {product} NPUs", expected, fix, "parallelism"))
    n_stage, n_expert = _n_stage(degrees), degrees.get("etp", 1) * degrees.get("ep", 1)
    if n_stage % n_expert:
        got = f"got etp {degrees.get('etp', 1)} x ep {degrees.get('ep', 1)} = {n_expert}"
        expected = f"expected a divisor of tp x cp x dp = {n_stage}, the ranks of a stage"
        fix = nearest_divisors("ep", degrees.get("ep", 1), n_stage // degrees.get("etp", 1))
        raise SpecError(Fault(got, expected, f"{fix}, or another etp", "parallelism.ep"))


def _taken(
    topology: Topology, digits: Sequence[_Digit], order: Sequence[str], degrees: Mapping[str, int]
) -> dict[str, _Part]:
    """What every axis has of the digits, innermost first."""
    left = list(digits)
    ends = [1] * topology.n_dims
    for i, stride, size in left:
        ends[i] = stride * size
    parts = {}
    for axis in order:
        nearest = list(ends)
        for i, stride, _ in reversed(left):
            nearest[i] = stride
        parts[axis] = _Part(_innermost(left, axis, degrees.get(axis, 1)), tuple(nearest))
    return parts


def _innermost(left: list[_Digit], axis: str, degree: int) -> tuple[_Digit, ...]:
    """The innermost ``degree`` NPUs of what is left, which is updated."""
    taken: list[_Digit] = []
    sizes, asked = [size for _, _, size in left], degree
    while degree > 1:
        i, stride, size = left[0]
        if degree % size and size % degree:
            got = f"got {axis} with {degree} NPUs still to place on the {size} left of dim{i + 1}"
            expected = "expected one to divide the other (C6: the innermost dimension first)"
            fix = f"choose a degree that fits the dimensions, such as {axis} {_near(sizes, asked)}"
            raise SpecError(Fault(got, expected, fix, f"parallelism.{axis}"))
        part = min(size, degree)
        taken.append((i, stride, part))
        degree //= part
        left[:1] = [(i, stride * part, size // part)] if part < size else []
    return tuple(taken)


def _near(sizes: Sequence[int], degree: int) -> str:
    """The nearest degrees that fill dimensions of such sizes from the innermost."""
    inside, fitting = 1, set()
    for size in sizes:
        fitting |= {inside * n for n in range(1, size + 1) if size % n == 0}
        inside *= size
    below = max((n for n in fitting if n <= degree), default=1)
    above = min((n for n in fitting if n >= degree), default=below)
    return " or ".join(map(str, dict.fromkeys((below, above))))
