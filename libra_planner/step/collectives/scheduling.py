"""Chunks that take the dimensions in any order: the best split of a collective over orders.

A reduce-scatter may visit the dimensions in any order: whichever comes first meets the
full vector, later ones what is left of it. In sum over its dimensions an NPU always sends
m (1 - 1/N) bytes, N being the NPUs of the group, since the terms telescope; the order only
decides where. Giving every order a share of the chunks balances the load (the idea of the
scheduler Themis); for given bandwidths the best shares are a small linear program.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SolverFailed, SpecError
from libra_planner.step.collectives.algorithms import full_bytes, traffic_bytes
from libra_planner.workload.operations import Collective, CollectiveKind, Group

MAX_DIMS = 6
"""Most dimensions of one group that orders are counted out for: 720 of them."""

_LEAST_SHARE = 1e-9
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class OrderShare:
    """A share of the data that takes one order of dimensions.

    ``order`` lists the dimensions (from 0) as a reduce-scatter visits them; an all-gather
    takes it backwards, an all-reduce both ways.
    """

    order: tuple[int, ...]
    fraction: float


@dataclass(frozen=True)
class BalancedSchedule:
    """The best split of a collective over orders.

    Parameters
    ----------
    time_s : the longest busy time of a dimension under that split.
    hierarchical_time_s : the same when all data goes from dim1 outwards (C4's ideal).
    aggregate_bound_s : bytes that must be sent over the bandwidth of all dimensions
        that the group spans: no split is faster.
    split : shares that are not zero, largest first.
    traffic_bytes : what an NPU sends under that split, shape (n_dims,).
    """

    time_s: float
    hierarchical_time_s: float
    aggregate_bound_s: float
    split: tuple[OrderShare, ...]
    traffic_bytes: tuple[float, ...] = field(repr=False)

    @property
    def gain(self) -> float:
        """Time of the fixed order over the balanced time, 1 or more."""
        return self.hierarchical_time_s / self.time_s if self.time_s else 1.0


def balanced_schedule(
    collective: Collective,
    group: Group,
    bandwidth_bytes_per_s: NDArray[np.float64],
    in_network: Collection[int] = (),
) -> BalancedSchedule:
    """The split over orders with the least time, under C4's ideal model.

    With x_o the share of order o, which sends a_od bytes in dimension d: minimise
    max_d sum_o x_o a_od / B_d over x >= 0, sum x = 1. An all-gather in the reverse order
    sends the same bytes as its reduce-scatter. Letting an all-reduce choose the two
    halves' orders apart would gain nothing: both choose from the same convex set of
    loads, and twice its best point is the best sum. An all-to-all sends the same in any
    order.

    Bound: the time is at least the mean of the busy times weighted by bandwidth, which
    is the bytes sent over the sum of bandwidths: m (N - 1)/N for a reduce-scatter or
    all-gather, twice that for an all-reduce, whatever the split. With in-network
    reduction the bytes depend on the order, and the order with the fewest counts.

    Raises
    ------
    SpecError
        For more than :data:`MAX_DIMS` dimensions, or one in use without bandwidth.
    SolverFailed
        When the linear program's answer does not hold when evaluated.

    Examples
    --------
    12 of 16 bytes leave over dim1 and 3 over dim2 in the fixed order; at equal bandwidth
    7.5 each is best.

    >>> reduce = Collective(CollectiveKind.REDUCE_SCATTER, 16.0, "dp")
    >>> best = balanced_schedule(reduce, Group((4, 4), (1, 1)), np.array([1.0, 1.0]))
    >>> best.time_s, best.hierarchical_time_s, best.aggregate_bound_s
    (7.5, 12.0, 7.5)
    >>> [(share.order, share.fraction) for share in best.split]
    [((0, 1), 0.5), ((1, 0), 0.5)]
    """
    used = [i for i, size in enumerate(group.sizes) if size > 1]
    bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)[used]
    _check(used, bandwidth)
    if not used:
        return BalancedSchedule(0.0, 0.0, 0.0, (), (0.0,) * len(group.sizes))
    orders = list(permutations(used))
    if collective.kind is CollectiveKind.ALL_TO_ALL:
        orders = orders[:1]
    loads = np.array([_order_bytes(collective, group, order, in_network) for order in orders])
    busy = loads[:, used] / bandwidth
    hierarchical_s = float(busy[0].max())
    shares = _best_shares(busy / hierarchical_s)
    time_s = float((shares @ busy).max())
    if time_s >= hierarchical_s:
        time_s, shares = hierarchical_s, np.eye(len(orders))[0]
    split = [OrderShare(o, float(x)) for o, x in zip(orders, shares, strict=True) if x > 0]
    return BalancedSchedule(
        time_s=time_s,
        hierarchical_time_s=hierarchical_s,
        aggregate_bound_s=float(loads.sum(axis=1).min() / bandwidth.sum()),
        traffic_bytes=tuple((shares @ loads).tolist()),
        split=tuple(sorted(split, key=lambda share: (-share.fraction, share.order))),
    )


def aggregate_bound_s(
    collective: Collective,
    group: Group,
    bandwidth_bytes_per_s: NDArray[np.float64],
    in_network: Collection[int] = (),
) -> float | None:
    """Bytes that must be sent over the bandwidth of all dimensions the group spans.

    No order of dimensions and no split over orders is faster (:func:`balanced_schedule`
    says why). ``None`` where in-network reduction makes the bytes depend on the order
    and there are too many orders to go through.

    Examples
    --------
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp")
    >>> aggregate_bound_s(reduce, Group((4, 4), (1, 1)), np.array([1.0, 1.0]))
    15.0
    """
    used = [i for i, size in enumerate(group.sizes) if size > 1]
    reducing = collective.kind is CollectiveKind.ALL_REDUCE and set(in_network) & set(used)
    if not used:
        return 0.0
    if reducing and len(used) > MAX_DIMS:
        return None
    orders = permutations(used) if reducing else [tuple(used)]
    loads = [_order_bytes(collective, group, order, in_network).sum() for order in orders]
    return float(min(loads) / np.asarray(bandwidth_bytes_per_s)[used].sum())


def _check(used: list[int], bandwidth: NDArray[np.float64]) -> None:
    if len(used) > MAX_DIMS:
        got = f"got a group over {len(used)} dimensions"
        fix = "the number of orders grows with the factorial; use scheduler: hierarchical"
        raise SpecError(Fault(got, f"expected at most {MAX_DIMS}", fix))
    starved = [f"dim{i + 1}" for i, value in zip(used, bandwidth, strict=True) if not value > 0]
    if starved:
        expected = "expected bandwidth where the collective communicates"
        raise SpecError(Fault(f"got 0 GB/s for {', '.join(starved)}", expected))


def _order_bytes(
    collective: Collective, group: Group, order: tuple[int, ...], in_network: Collection[int]
) -> NDArray[np.float64]:
    """Bytes per dimension when visited in this order, shape (n_dims,)."""
    whole = Collective(collective.kind, full_bytes(collective, group), collective.group)
    sizes = tuple(group.sizes[i] for i in order)
    inside = {position for position, i in enumerate(order) if i in in_network}
    load = np.zeros(len(group.sizes))
    load[list(order)] = traffic_bytes(whole, Group(sizes, (1,) * len(sizes)), inside)
    return load


def _best_shares(busy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of the orders that minimise the longest busy time; ``busy`` (n_orders, n_dims)."""
    n_orders, n_dims = busy.shape
    if n_orders == 1:
        return np.ones(1)
    from scipy.optimize import linprog

    # Times in units of the best single order's; a row per dimension, all of one size.
    unit = busy.max(axis=1).min()
    scale = np.maximum(busy.max(axis=0), unit)
    rows = np.hstack([(busy / scale).T, -unit / scale[:, None]])
    result = linprog(
        np.eye(n_orders + 1)[-1],
        A_ub=rows,
        b_ub=np.zeros(n_dims),
        A_eq=np.append(np.ones(n_orders), 0.0)[None, :],
        b_eq=np.ones(1),
        method="highs",
    )
    if result.status != 0:
        raise SolverFailed(f"got {result.message!r} from the linear program of orders")
    shares: NDArray[np.float64] = np.where(result.x[:-1] > _LEAST_SHARE, result.x[:-1], 0.0)
    shares /= shares.sum()
    time = (shares @ busy).max()
    least = result.fun * unit
    if not math.isclose(time, least, rel_tol=_TOLERANCE):
        raise SolverFailed(
            f"got {time:g} instead of {least:g} times the fixed order's time from the linear "
            f"program of orders; check for bandwidths many orders of magnitude apart"
        )
    return shares
