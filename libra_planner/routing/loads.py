"""Flows on the links between switches, and what is proven of the largest load."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from libra_planner.fabric.clos import Choice, Clos, Flows, Indices, links_of
from libra_planner.routing.imbalance import fim_percent

DEAD = 1 << 52
"""Load of a failed link: more than that of all flows, so it is taken only if all have failed."""

_LONGEST = 1 << 20
"""Weight of the flow that takes a link for the longest time, where flows are not alike."""

COLUMN_OF = MappingProxyType({"leaf_up": 0, "spine_up": 1, "core_down": 2, "spine_down": 3})
"""The field of a :class:`Choice`, a column of picks, that says which link of a layer is taken."""


def no_load(fabric: Clos) -> Indices:
    """Load of every link without flows: 0, or :data:`DEAD` where it has failed."""
    return np.where(fabric.alive, 0, DEAD).astype(np.int64)


def no_picks(flows: Flows) -> Indices:
    """Picks of flows that have no path yet: the fields of a :class:`Choice`, shape (n_flows, 4)."""
    return np.full((flows.n_flows, len(Choice._fields)), -1, dtype=np.int64)


def choice_of(picks: Indices) -> Choice:
    """Columns of the picks as a choice."""
    return Choice(*np.ascontiguousarray(picks.T))


def picks_of(choice: Choice) -> Indices:
    """A choice as columns, for compiled loops."""
    return np.stack(choice, axis=1)


def link_counts(fabric: Clos, flows: Flows, choice: Choice) -> Indices:
    """Flows on each link, shape (n_links,)."""
    links = links_of(fabric, flows, choice)
    return np.bincount(links[links >= 0], minlength=fabric.n_links)


def weighted_counts(fabric: Clos, flows: Flows, choice: Choice, weights: Indices) -> Indices:
    """Weights of the flows on each link, shape (n_links,); those of host links are at leaves.

    Parameters
    ----------
    weights : as :func:`weights_of` has them.
    """
    links = links_of(fabric, flows, choice)
    found = np.zeros(fabric.n_links, dtype=np.int64)
    for i, layer in enumerate(fabric.layers):
        column, at_cores = links[:, i], layer.name in ("spine_up", "core_down")
        used = column >= 0
        np.add.at(found, column[used], weights[used, int(at_cores)])
    return found


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
    """What each flow adds to the load of a link at leaves, and at cores, shape (n_flows, 2).

    1 where flows :func:`are_alike`; else the time that its bytes take there, in whole steps.
    """
    if are_alike(fabric, flows):
        return np.ones((flows.n_flows, 2), dtype=np.int64)
    core_Bps = fabric.core_Bps if fabric.n_cores else fabric.uplink_Bps
    time_s = flows.size_bytes[:, None] / np.array([fabric.uplink_Bps, core_Bps])
    weights: Indices = np.rint(time_s / time_s.max() * _LONGEST).astype(np.int64)
    return weights


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
    return np.unique(flows.collective, return_inverse=True)[1].astype(np.int64)


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
