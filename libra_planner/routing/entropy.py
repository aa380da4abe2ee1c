"""What ECMP has to hash: distinct headers, and the imbalance that so few of them give (C10)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from libra_planner.fabric import clos
from libra_planner.fabric.clos import Array, Clos, Flows, Indices
from libra_planner.routing.ecmp import drawn_headers
from libra_planner.routing.policy import Policy


@dataclass(frozen=True)
class HeaderEntropy:
    """The headers of flows between leaves, and how evenly leaves can hash them.

    Parameters
    ----------
    n_flows : flows that leave their leaf.
    n_headers : different headers among them, as the switches hash them; flows of one leaf with
        one header always take one path.
    n_address_pairs : different pairs of addresses.
    flows_per_uplink : flows over the uplinks of the leaves that send.
    expected_fim_percent : mean FIM of ``leaf_up`` if every flow picked an uplink of its leaf at
        random (C10).
    effective_fim_percent : the same if every header of a leaf did.
    of_leaf, links_of_leaf : flows and working uplinks of each leaf, shape (n_leaves,).
    """

    n_flows: int
    n_headers: int
    n_address_pairs: int
    flows_per_uplink: float
    expected_fim_percent: float
    effective_fim_percent: float
    of_leaf: Indices = field(repr=False)
    links_of_leaf: Indices = field(repr=False)

    def fim_percent_of(self, n_times: float) -> float:
        """Mean FIM if every flow were divided into so many with headers of their own."""
        flows = self.of_leaf * n_times
        return uniform_fim_percent(flows, flows, self.links_of_leaf)


def header_entropy(
    fabric: Clos, flows: Flows, policy: Policy, *, seed: int
) -> HeaderEntropy | None:
    """What ECMP has to hash; ``None`` for policies that read no headers, or nothing between leaves.

    Headers that several flows have count like h = (sum m)^2 / sum m^2 headers of n / h flows each,
    where m flows have a header.

    Parameters
    ----------
    fabric, flows, policy, seed : what is routed and how.

    Examples
    --------
    32 flows on the 8 uplinks of a leaf, with ports of their own, and with one port for all:

    >>> fabric = Clos(hosts_per_leaf=4, n_leaves=2, n_spines=8, host_Bps=1.0, uplink_Bps=1.0)
    >>> flows = Flows(np.arange(32) % 4, np.full(32, 4), np.ones(32))
    >>> found = header_entropy(fabric, flows, Policy(), seed=0)
    >>> found.n_headers, round(found.expected_fim_percent, 2)
    (32, 104.58)
    >>> from dataclasses import replace
    >>> same = replace(flows, src_port=np.full(32, 50000))
    >>> header_entropy(fabric, same, Policy(), seed=0).n_headers
    4
    """
    where = clos.hops(fabric, flows)
    crossing = np.flatnonzero(where.leaves_leaf)
    if not (policy.kind.reads_headers and crossing.size):
        return None
    found, leaf = drawn_headers(flows, seed), where.src_leaf[crossing]
    addresses = found.src_ip.astype(np.uint64) << np.uint64(32) | found.dst_ip
    ports = found.src_port.astype(np.uint64) << np.uint64(32)
    if policy.enhanced:
        ports |= found.queue_pair
    keys = [addresses[crossing], ports[crossing]]
    multiple, of_leaf = _multiplicities([leaf.astype(np.uint64), *keys])
    n_flows = np.bincount(leaf, minlength=fabric.total_leaves)
    squares = np.bincount(leaf[of_leaf], multiple**2, minlength=fabric.total_leaves)
    n_headers = np.divide(n_flows**2, squares, out=np.zeros(squares.shape), where=squares > 0)
    working = fabric.alive[fabric.layer("leaf_up").links].reshape(fabric.total_leaves, -1)
    n_links = working.sum(axis=1)
    return HeaderEntropy(
        n_flows=crossing.size,
        n_headers=_multiplicities(keys)[0].size,
        n_address_pairs=np.unique(keys[0]).size,
        flows_per_uplink=float(crossing.size / n_links[n_flows > 0].sum()),
        expected_fim_percent=uniform_fim_percent(n_flows, n_flows, n_links),
        effective_fim_percent=uniform_fim_percent(n_flows, n_headers, n_links),
        of_leaf=n_flows,
        links_of_leaf=n_links,
    )


def _multiplicities(
    keys: list[np.ndarray[tuple[int], np.dtype[np.uint64]]],
) -> tuple[Array, Indices]:
    """How many have each combination of keys, and one that has it."""
    order = np.lexsort(keys[::-1])
    is_new = np.zeros(order.size, dtype=np.bool_)
    is_new[:1] = True
    for key in keys:
        is_new[1:] |= np.diff(key[order]) != 0
    first = np.flatnonzero(is_new)
    return np.diff(np.r_[first, order.size]).astype(np.float64), order[first]


def uniform_fim_percent(n_flows: ArrayLike, n_headers: ArrayLike, n_links: ArrayLike) -> float:
    """Mean FIM of a layer if every header picks one of its leaf's links at random.

    100/K sum over leaves and links of E|m X - N/K| / (N/K), where X is binomial of the leaf's
    headers, rounded, and one link of its n_links, and m flows have a header (C10).

    Parameters
    ----------
    n_flows, n_headers, n_links : of each leaf, shape (n_leaves,).

    Examples
    --------
    >>> [round(uniform_fim_percent([32], [n_headers], [8]), 2) for n_headers in (32, 8)]
    [36.54, 68.72]
    """
    flows, headers, links = (np.asarray(x, dtype=np.float64) for x in (n_flows, n_headers, n_links))
    ideal, total = flows.sum() / links.sum(), 0.0
    kinds, n_alike = np.unique(np.stack([flows, headers, links]), axis=1, return_counts=True)
    for (n, n_hashed, k), n_leaves in zip(kinds.T.tolist(), n_alike.tolist(), strict=True):
        whole = max(round(n_hashed), 1)
        distance = np.abs(np.arange(whole + 1) * (n / whole) - ideal)
        total += n_leaves * k * float(binomial(whole, k) @ distance)
    return float(100 * total / (links.sum() * ideal))


def binomial(n: int, k: float) -> Array:
    """Chances that 0 .. n of n headers take one of k links.

    Examples
    --------
    >>> binomial(2, 4) * 16
    array([9., 6., 1.])
    """
    if k <= 1:
        return np.append(np.zeros(n), 1.0)
    x = np.arange(n)
    ratios = np.log((n - x) / (x + 1) / (k - 1))
    chances: Array = np.exp(n * np.log1p(-1 / k) + np.r_[0.0, np.cumsum(ratios)])
    return chances
