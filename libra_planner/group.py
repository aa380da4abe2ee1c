"""Several workloads on one fabric: what the time of a group means (C8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from libra_planner.errors import Fault, SpecError, unknown_name
from libra_planner.timing.expression import (
    Labelled,
    Maximum,
    Node,
    Scaled,
    Sum,
    TimeExpression,
    add,
    maximum,
    scale,
)
from libra_planner.workload.memory import ModelStates

GROUP_OBJECTIVES = ("weighted", "relative", "worst_case")
"""What a group minimises: sum w_i T_i, sum w_i T_i / T_i* or max T_i / T_i* (C8)."""

_WEIGHT_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Member:
    """One workload of a group.

    Parameters
    ----------
    name : what reports call it; unlike any other of the group.
    weight : its share w_i; the weights of a group sum to 1.
    step_time : T_i(B), seconds.
    real_link_step_time : T_i(B) when partial groups have only their own links (C6);
        ``None`` without partial groups.
    memory : what its model needs on an NPU (C19); ``None`` where that is not known.
    """

    name: str
    weight: float
    step_time: TimeExpression
    real_link_step_time: TimeExpression | None = None
    memory: ModelStates | None = None


def weighted_time(members: Sequence[Member], *, real_links: bool = False) -> TimeExpression:
    """Weighted mean of the members' step times, sum w_i T_i (C8; LIBRA, SC'22).

    Labels of operations begin with their member's name.

    Parameters
    ----------
    members : the group, one or more, on the same fabric.
    real_links : take each member's time on its real links where it has one.

    Raises
    ------
    SpecError
        For weights that are not positive or do not sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from libra_planner.timing.expression import transfers
    >>> times = [TimeExpression(transfers([n_bytes]), 1) for n_bytes in (100.0, 400.0)]
    >>> group = [Member("a", 0.5, times[0]), Member("b", 0.5, times[1])]
    >>> float(weighted_time(group).seconds(np.array([50.0])))  # 2 s and 8 s
    5.0
    """
    _check_weights(members)
    return _sum(members, [member.weight for member in members], real_links=real_links)


def relative_time(
    members: Sequence[Member], own_optima_s: Sequence[float], group_objective: str
) -> TimeExpression:
    """Step times relative to each member's own optimum T_i* (C8), dimensionless.

    ``relative`` is sum w_i T_i / T_i*, ``worst_case`` is max T_i / T_i*; both are 1
    where every member is as fast as it would be alone. Convex and non-increasing in
    bandwidth as the members are.

    Parameters
    ----------
    members : the group, one or more, on the same fabric.
    own_optima_s : T_i*, the least step time of each member under the same rules.
    group_objective : ``relative`` or ``worst_case``.

    Raises
    ------
    SpecError
        For a number of optima that is not the number of members, an optimum that is
        not positive and finite, or another group objective.

    Examples
    --------
    >>> import numpy as np
    >>> from libra_planner.timing.expression import transfers
    >>> times = [TimeExpression(transfers([n_bytes]), 1) for n_bytes in (100.0, 400.0)]
    >>> group = [Member("a", 0.75, times[0]), Member("b", 0.25, times[1])]
    >>> bandwidth = np.array([50.0])  # 2 s and 8 s
    >>> float(relative_time(group, [1.0, 8.0], "relative").seconds(bandwidth))
    1.75
    >>> float(relative_time(group, [1.0, 8.0], "worst_case").seconds(bandwidth))
    2.0
    """
    _check_optima(members, own_optima_s)
    pairs = zip(members, own_optima_s, strict=True)
    if group_objective == "relative":
        _check_weights(members)
        factors = [member.weight / optimum_s for member, optimum_s in pairs]
        return _sum(members, factors)
    if group_objective == "worst_case":
        ratios = [scale(1.0 / optimum_s, _named(member)) for member, optimum_s in pairs]
        return TimeExpression(maximum(ratios), members[0].step_time.n_dims)
    raise unknown_name("group objective", group_objective, GROUP_OBJECTIVES[1:])


def _sum(
    members: Sequence[Member], factors: Sequence[float], *, real_links: bool = False
) -> TimeExpression:
    pairs = zip(factors, members, strict=True)
    terms = [scale(factor, _named(member, real_links=real_links)) for factor, member in pairs]
    return TimeExpression(add(terms), members[0].step_time.n_dims)


def _named(member: Member, *, real_links: bool = False) -> Node:
    """A member's tree, its labels under its name."""
    real = member.real_link_step_time if real_links else None
    return _prefixed((real or member.step_time).root, f"{member.name}: ")


def _prefixed(node: Node, prefix: str) -> Node:
    if isinstance(node, Labelled):
        return Labelled(prefix + node.label, node.term)
    if isinstance(node, Scaled):
        return Scaled(node.factor, _prefixed(node.term, prefix))
    if isinstance(node, Sum | Maximum):
        return type(node)(tuple(_prefixed(term, prefix) for term in node.terms))
    return node


def _check_weights(members: Sequence[Member]) -> None:
    weights = [member.weight for member in members]
    if not all(weight > 0 for weight in weights) or (
        not abs(math.fsum(weights) - 1) <= _WEIGHT_TOLERANCE
    ):
        raise SpecError(Fault(f"got weights {weights}", "expected positive ones that sum to 1"))


def _check_optima(members: Sequence[Member], own_optima_s: Sequence[float]) -> None:
    if len(own_optima_s) != len(members):
        got = f"got {len(own_optima_s)} optima for {len(members)} workloads"
        raise SpecError(Fault(got, "expected one each"))
    if not all(0 < optimum_s < math.inf for optimum_s in own_optima_s):
        raise SpecError(Fault(f"got optima {list(own_optima_s)}", "expected positive times"))
