"""The least imbalance that any routing of whole flows can reach on a layer (C10)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.errors import Fault, SpecError

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
    _check_reachable(flows, links)
    if flows.sum() == 0:
        return float("nan")
    if np.ptp(share) == 0:
        return _equal_floor_percent(flows, links)
    return _weighted_floor_percent(flows, group, share / share.sum())


def _check_reachable(demand: _I64, n_links: _I64) -> None:
    stranded = np.flatnonzero((demand > 0) & (n_links == 0))
    if stranded.size:
        first = stranded[0]
        got = f"group {first} has {demand[first]} flows and no link that works"
        raise SpecError(Fault(got, "expected a link for every group with flows"))


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
