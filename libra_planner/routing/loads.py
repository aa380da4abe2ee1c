"""Flows on links: how unevenly they lie there, and what is proven of the largest load.

Source of the metric: FlowTracer (arXiv 2410.17078). Counts may be fractions, as spraying
leaves them; the last axis of every array of counts is the links of one layer and direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Choice, Clos, Flows, Indices, links_of

_F64 = NDArray[np.float64]
_I64 = NDArray[np.int64]


def fim_floor_percent(
    demand: ArrayLike, n_links: ArrayLike, *, capacity: ArrayLike | None = None
) -> float:
    """Least FIM of a layer that any routing of whole flows can reach, in percent.

    Each group of links (a leaf's uplinks) has to carry a given number of flows, and the ideal
    is that of the whole layer, so skewed demand leaves imbalance that is not the router's fault.

    Parameters
    ----------
    demand : whole flows that each group carries, shape (G,).
    n_links : links of each group, shape (G,).
    capacity : of the links, group after group, shape (sum of n_links,); 0 for a failed one.

    Returns
    -------
    Percent; nan without flows.

    Raises
    ------
    SpecError
        If a group has flows but no link that works.

    Notes
    -----
    sum |n_l - ideal_l| / ideal_l is minimised over whole n_l with the groups' sums given. It is
    separable and convex, so flows are placed one by one where they add least.

    Examples
    --------
    Two leaves of two uplinks with 4 and 0 flows: 2, 2, 0, 0 against an ideal of 1.

    >>> fim_floor_percent([4, 0], [2, 2])
    100.0
    """
    flows, links = np.asarray(demand, np.int64), np.asarray(n_links, np.int64)
    group = np.repeat(np.arange(links.size), links)
    share = np.ones(group.size) if capacity is None else np.asarray(capacity, float)
    group, share = group[share > 0], share[share > 0]
    links = np.bincount(group, minlength=links.size)
    stranded = np.flatnonzero((flows > 0) & (links == 0))
    if stranded.size:
        got = f"group {stranded[0]} has {flows[stranded[0]]} flows and no link that works"
        raise SpecError(Fault(got, "expected a link for every group with flows"))
    if flows.sum() == 0:
        return float("nan")
    if np.ptp(share) == 0:
        return _equal_floor_percent(flows, links)
    return _weighted_floor_percent(flows, group, share / share.sum())


def _equal_floor_percent(demand: _I64, n_links: _I64) -> float:
    """The floor where all links are equal, in closed form.

    With N = qK + r the cost of a link, |n - N/K|, has slopes -1 up to q, K - 2r over K to q + 1,
    and 1 from there; a group of k links costs the largest of the three lines. Times K these are
    whole numbers.
    """
    total, k = demand.sum(), n_links.sum()
    quotient, rest = divmod(total, k)
    below = n_links * total - k * demand
    across = n_links * rest + (demand - n_links * quotient) * (k - 2 * rest)
    return float(100 * np.maximum(np.abs(below), across).sum() / (k * total))


def _weighted_floor_percent(demand: _I64, group: _I64, share: _F64) -> float:
    """The floor for any capacities: flows are placed in the order of what they add.

    A link whose ideal is i takes floor(i) flows at -1/i each, one at (1 - 2 (i - floor(i)))/i, and
    the rest at 1/i, which is least on the group's largest link.
    """
    ideal = share * demand.sum()
    whole = np.floor(ideal)
    largest = np.zeros(demand.size)
    np.maximum.at(largest, group, ideal)
    served = np.flatnonzero(largest)
    slope = np.concatenate([-1 / ideal, (1 - 2 * (ideal - whole)) / ideal, 1 / largest[served]])
    room = np.concatenate([whole, np.ones(group.size), demand[served]])
    owner = np.concatenate([group, group, served])
    order = np.lexsort((slope, owner))
    slope, room, owner = slope[order], room[order], owner[order]
    before = np.cumsum(room) - room
    before -= before[np.searchsorted(owner, owner)]
    placed = np.clip(demand[owner] - before, 0, room)
    return float(100 * (1 + (placed * slope).sum() / group.size))


@dataclass(frozen=True)
class Distribution:
    """Statistics of one figure over many seeds.

    Parameters
    ----------
    mean, sd : in the unit of the figure; the sd of a sample (n - 1), 0 for a single one.
    p5, p50, p95 : percentiles, linear between samples.
    counts, edges : histogram, shapes (n_bins,) and (n_bins + 1,).
    """

    mean: float
    sd: float
    p5: float
    p50: float
    p95: float
    counts: _I64
    edges: _F64


def fim_percent(counts: ArrayLike, capacity: ArrayLike | None = None) -> _F64:
    """Flow Imbalance Metric of one layer and direction, in percent (C10).

    100/K * sum over the K links of |n_l - ideal_l| / ideal_l, where ideal_l = N c_l / sum(c) is
    the link's share of all N flows. Idle links count; failed ones (capacity 0) do not.

    Parameters
    ----------
    counts : flows on each link, shape (..., K).
    capacity : capacities in any unit, shape (K,) or that of the counts; without it all are equal.

    Returns
    -------
    float64, shape (...,); nan where no flow is on the layer.

    Examples
    --------
    >>> float(fim_percent([8, 0, 0, 0])), float(fim_percent([2, 1], capacity=[2, 1]))
    (150.0, 0.0)
    """
    deviation, n_links = _deviation(counts, capacity)
    return np.asarray(100 * deviation / np.maximum(n_links, 1))


def overall_fim_percent(
    layers: Sequence[ArrayLike], capacities: Sequence[ArrayLike | None] | None = None
) -> _F64:
    """Mean of |n_l - ideal_l| / ideal_l over all links of several layers, in percent (C10).

    Parameters
    ----------
    layers : counts of each switch-to-switch layer and direction, shapes (..., K_i). Host links
        offer no choice of path and do not belong here.
    capacities : of each layer, as :func:`fim_percent` has them.

    Returns
    -------
    float64, shape (...,). Layers without flows are left out; nan where none has any.

    Examples
    --------
    >>> float(overall_fim_percent([[4, 0], [1, 1, 1, 1], [0, 0]]))
    33.333...
    """
    shares = capacities or [None] * len(layers)
    pairs = [_deviation(n, c) for n, c in zip(layers, shares, strict=True)]
    deviation = sum((np.nan_to_num(d) for d, _ in pairs), np.float64(0))
    n_links = sum((np.where(np.isnan(d), 0, k) for d, k in pairs), np.int64(0))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.true_divide(100 * deviation, n_links))


def max_over_mean(counts: ArrayLike, capacity: ArrayLike | None = None) -> _F64:
    """Load of the fullest link over its ideal: 1 is perfect balance.

    Parameters
    ----------
    counts, capacity : as in :func:`fim_percent`.

    Returns
    -------
    float64, shape (...,); nan where no flow is on the layer.

    Examples
    --------
    >>> float(max_over_mean([3, 1, 0, 0]))
    3.0
    """
    flows, share, total = _shares(counts, capacity)
    ratio = np.divide(flows, share, out=np.zeros_like(flows), where=share > 0).max(-1)
    return np.asarray(np.divide(ratio, total, out=np.full_like(total, np.nan), where=total > 0))


def distribution(samples: ArrayLike, n_bins: int = 20) -> Distribution:
    """Statistics of one figure over seeds; nan samples are left out.

    Parameters
    ----------
    samples : finite figures or nan, shape (n,).
    n_bins : bins of the histogram between the least and the largest sample.

    Returns
    -------
    All nan and an empty histogram if there is no sample.

    Examples
    --------
    >>> figures = distribution([1.0, 2.0, 4.0, 5.0], n_bins=2)
    >>> figures.mean, figures.p50, figures.counts.tolist(), figures.edges.tolist()
    (3.0, 3.0, [2, 2], [1.0, 3.0, 5.0])
    """
    values = np.asarray(samples, float).ravel()
    values = values[~np.isnan(values)]
    if values.size == 0:
        nan = float("nan")
        return Distribution(nan, nan, nan, nan, nan, np.zeros(0, np.int64), np.zeros(1))
    # Relative to the first sample, equal samples have a spread of exactly zero.
    offset = values - values[0]
    p5, p50, p95 = (float(p) for p in np.percentile(values, [5, 50, 95]))
    low, high = float(values.min()), float(values.max())
    size = max(abs(low), abs(high))
    # A wider range where samples differ by rounding at most.
    margin = 0.0 if high - low > 1e-9 * size else size / 2 or 0.5
    counts, edges = np.histogram(values, np.linspace(low - margin, high + margin, n_bins + 1))
    return Distribution(
        mean=float(values[0] + offset.mean()),
        sd=float(offset.std(ddof=1)) if values.size > 1 else 0.0,
        p5=p5,
        p50=p50,
        p95=p95,
        counts=counts.astype(np.int64),
        edges=edges,
    )


def _shares(counts: ArrayLike, capacity: ArrayLike | None) -> tuple[_F64, _F64, _F64]:
    """Counts (0 on failed links), each link's ideal share of them, and their sum, an array."""
    flows = np.asarray(counts, float)
    weight = np.ones(flows.shape[-1:]) if capacity is None else np.asarray(capacity, float)
    whole = weight.sum(-1, keepdims=True)
    share = np.broadcast_to(weight / np.where(whole > 0, whole, 1), flows.shape)
    working = np.where(share > 0, flows, 0.0)
    return working, share, np.asarray(working.sum(-1))


def _deviation(counts: ArrayLike, capacity: ArrayLike | None) -> tuple[_F64, _I64]:
    """Sum of |n_l - ideal_l| / ideal_l, nan without flows, and the number of working links."""
    flows, share, total = _shares(counts, capacity)
    n_links = np.asarray(np.count_nonzero(share, axis=-1), np.int64)
    if capacity is None:
        # Sums of whole numbers: the order of the links cannot change a digit.
        distance = np.abs(flows * n_links[..., None] - total[..., None]).sum(-1)
    else:
        ratio = np.divide(flows, share, out=np.zeros_like(flows), where=share > 0)
        distance = np.where(share > 0, np.abs(ratio - total[..., None]), 0.0).sum(-1)
    nan = np.full_like(total, np.nan)
    return np.asarray(np.divide(distance, total, out=nan, where=total > 0)), n_links


DEAD = 1 << 52
"""Load of a failed link: more than that of all flows, so it is taken only if all have failed."""

_LONGEST = 1 << 20
"""Weight of the flow that takes a link for the longest time, where flows are not alike."""


def no_load(fabric: Clos) -> Indices:
    """Load of every link without flows: 0, or :data:`DEAD` where it has failed."""
    return np.where(fabric.alive, 0, DEAD).astype(np.int64)


def link_counts(fabric: Clos, flows: Flows, choice: Choice) -> Indices:
    """Flows on each link, shape (n_links,)."""
    links = links_of(fabric, flows, choice)
    return np.bincount(links[links >= 0], minlength=fabric.n_links)


def imbalance(fabric: Clos, flows: Flows, choice: Choice) -> tuple[int, float]:
    """Most flows on a link between switches, and the sum of their layers' FIM in percent (C10).

    FIM of a layer of K links and N flows is 100/K sum |n - N/K| / (N/K); 0 without flows.
    The lower pair is the better choice.
    """
    counts = link_counts(fabric, flows, choice)
    layers = [counts[layer.links] for layer in fabric.layers if not layer.is_host]
    most = max((int(n.max()) for n in layers), default=0)
    return most, sum(float(np.nan_to_num(fim_percent(n))) for n in layers)


_SAME_SIZE = 1e-9
"""Relative difference of sizes that is rounding."""


def are_alike(fabric: Clos, flows: Flows) -> bool:
    """Whether counting flows is counting time: one size, and one speed between switches."""
    one_speed = not fabric.n_cores or fabric.core_Bps == fabric.uplink_Bps
    most, least = flows.size_bytes.max(initial=0.0), flows.size_bytes.min(initial=np.inf)
    return not most or (one_speed and bool(most <= least * (1 + _SAME_SIZE)))


def weights_of(fabric: Clos, flows: Flows) -> Indices:
    """What each flow adds to the load of its links between switches, shape (n_flows, 4).

    Columns are as in :data:`~libra_planner.fabric.clos.BETWEEN`. 1 where flows :func:`are_alike`;
    else the time that its bytes take there, in whole steps.
    """
    if are_alike(fabric, flows):
        return np.ones((flows.n_flows, 4), dtype=np.int64)
    core_Bps = fabric.core_Bps if fabric.n_cores else fabric.uplink_Bps
    time_s = flows.size_bytes[:, None] / np.array([fabric.uplink_Bps, core_Bps])
    weights: Indices = np.rint(time_s / time_s.max() * _LONGEST).astype(np.int64)
    return weights[:, [0, 1, 1, 0]]


def busiest_s(fabric: Clos, flows: Flows, choice: Choice) -> float:
    """Time that the busiest link between switches takes for its bytes at full speed."""
    links = links_of(fabric, flows, choice)
    size_bytes = np.broadcast_to(flows.size_bytes[:, None], links.shape)[links >= 0]
    n_bytes = np.bincount(links[links >= 0], size_bytes, minlength=fabric.n_links)
    busy_s = np.divide(n_bytes, fabric.capacity_Bps, out=np.zeros_like(n_bytes), where=fabric.alive)
    return max((float(busy_s[x.links].max()) for x in fabric.layers if not x.is_host), default=0.0)


def rank(fabric: Clos, flows: Flows, choice: Choice) -> tuple[float, float]:
    """Load of the busiest link, in flows where they are alike, else in seconds, then FIM.

    The lower pair is the better choice.
    """
    most, fim = imbalance(fabric, flows, choice)
    return most if are_alike(fabric, flows) else busiest_s(fabric, flows, choice), fim


def groups(flows: Flows, *, per_collective: bool) -> Indices:
    """Number of each flow's collective, from 0; all 0 where collectives are not told apart."""
    if not per_collective:
        return np.zeros(flows.n_flows, dtype=np.int64)
    number = flows.collective
    if number.min(initial=0) < 0 or number.max(initial=0) > 4 * flows.n_flows:
        return np.unique(number, return_inverse=True)[1].astype(np.int64)
    is_used = np.bincount(number) > 0  # The same without a sort.
    return np.cumsum(is_used)[number] - 1


def ranks(key: Indices) -> Indices:
    """Position of each entry among those of equal key, from 0, in their order."""
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    is_first = np.r_[True, ranked[1:] != ranked[:-1]][: key.size]
    position = np.arange(key.size)
    rank = np.empty_like(position)
    rank[order] = position - np.maximum.accumulate(np.where(is_first, position, 0))
    return rank


_EXACT = 1e-6
"""Relative difference of seconds up to which a solver calls them equal."""


@dataclass(frozen=True)
class Bound:
    """What is known about the largest load of a choice on a link between switches.

    The load is a number of flows; where flows differ in size, or links in speed, it is the
    seconds that a link takes for its bytes at full speed.

    Parameters
    ----------
    objective : the choice's own.
    dual_bound : no choice has less.
    gap_fraction : (objective - dual_bound) / objective.
    optimal : whether the two are equal.
    """

    objective: float
    dual_bound: float

    @property
    def gap_fraction(self) -> float:
        """Part of the objective that might be saved."""
        return 0.0 if self.optimal else 1 - self.dual_bound / self.objective

    @property
    def optimal(self) -> bool:
        """Whether no choice has a smaller maximum."""
        return self.objective <= self.dual_bound * (1 + _EXACT)
