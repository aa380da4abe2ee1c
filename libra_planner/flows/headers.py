"""RoCEv2 header fields of flows: addresses, ports and queue pairs, what switches hash."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.errors import Fault, SpecError

ROCEV2_PORT = 4791
"""UDP destination port of RoCEv2 (IANA)."""

UDP = 17
"""IP protocol number of UDP (IANA)."""

FIRST_PORT = 0xC000
"""First source port that RoCEv2 senders use; the last is 0xFFFF."""

N_PORTS = 0x4000
"""Source ports from :data:`FIRST_PORT` on."""

_TEN_NET = 10 << 24
_N_ADDRESSES = (1 << 24) - 2  # 10.0.0.0 and 10.255.255.255 are no hosts

_CROWDED = N_PORTS // 4
"""Flows of a pair above which ports come from a permutation: up to here a redraw
collides with a chance of at most 1/4, so that few rounds are left to do."""


@dataclass(frozen=True)
class Headers:
    """Header fields of flows, one entry per flow; all arrays have the same shape.

    Parameters
    ----------
    src_ip, dst_ip : IPv4 addresses as numbers, uint32.
    src_port, dst_port : UDP ports, uint16.
    protocol : IP protocol number, uint8.
    queue_pair : number of the destination's queue pair, 24 bits in a uint32.
    """

    src_ip: NDArray[np.uint32]
    dst_ip: NDArray[np.uint32]
    src_port: NDArray[np.uint16]
    dst_port: NDArray[np.uint16]
    protocol: NDArray[np.uint8]
    queue_pair: NDArray[np.uint32]


def rocev2_headers(
    src_ip: ArrayLike, dst_ip: ArrayLike, *, src_port: ArrayLike, queue_pair: ArrayLike = 0
) -> Headers:
    """Headers of RoCEv2 flows: UDP to port 4791.

    Parameters
    ----------
    src_ip, dst_ip, src_port, queue_pair : integers that broadcast to one shape.

    Examples
    --------
    >>> headers = rocev2_headers(host_address([0, 1]), host_address(2), src_port=[49152, 50000])
    >>> headers.dst_port.tolist(), headers.protocol.tolist()
    ([4791, 4791], [17, 17])
    """
    source, destination, port, pair = np.broadcast_arrays(
        np.atleast_1d(src_ip), dst_ip, src_port, queue_pair
    )
    return Headers(
        src_ip=source.astype(np.uint32),
        dst_ip=destination.astype(np.uint32),
        src_port=port.astype(np.uint16),
        dst_port=np.full(source.shape, ROCEV2_PORT, np.uint16),
        protocol=np.full(source.shape, UDP, np.uint8),
        queue_pair=pair.astype(np.uint32),
    )


def host_address(host: ArrayLike) -> NDArray[np.uint32]:
    """IPv4 addresses of hosts, in 10.0.0.0/8: host 0 is 10.0.0.1.

    Parameters
    ----------
    host : indices from 0, any shape.

    Raises
    ------
    SpecError
        If an index does not fit: 10.0.0.0/8 has 16,777,214 host addresses.

    Examples
    --------
    >>> [hex(address) for address in host_address([0, 255, 256])]
    ['0xa000001', '0xa000100', '0xa000101']
    """
    index = np.asarray(host, np.int64)
    if index.size and (index.min() < 0 or index.max() >= _N_ADDRESSES):
        bad = index.min() if index.min() < 0 else index.max()
        raise SpecError(Fault(f"got host {bad}", f"expected 0 to {_N_ADDRESSES - 1}"))
    return np.asarray(_TEN_NET + 1 + index, np.uint32)


def queue_pair_source_port(local_qpn: ArrayLike, remote_qpn: ArrayLike) -> NDArray[np.uint16]:
    """UDP source ports that Linux gives to queue pairs without a flow label of their own.

    With v the 48-bit product of the two numbers: v ^= v >> 20, v ^= v >> 40, and the flow label
    is the low 20 bits; the port is its low 14 bits, XOR its high 6 bits, in 0xC000..0xFFFF.

    Parameters
    ----------
    local_qpn, remote_qpn : queue-pair numbers of 24 bits, that broadcast to one shape.

    Notes
    -----
    The rule is symmetric, so both directions of a connection have the same source port. Source:
    Linux, ``rdma_calc_flow_label`` and ``rdma_flow_label_to_udp_sport`` in ``rdma/ib_verbs.h``.

    Examples
    --------
    >>> hex(queue_pair_source_port(2, 3))
    '0xc006'
    """
    label = np.asarray(local_qpn, np.uint64) * np.asarray(remote_qpn, np.uint64)
    label ^= label >> 20
    label ^= label >> 40
    label &= 0xFFFFF
    return np.asarray(((label & 0x3FFF) ^ (label >> 14)) | FIRST_PORT, np.uint16)


def drawn_source_ports(
    src: ArrayLike, dst: ArrayLike, rng: np.random.Generator
) -> NDArray[np.uint16]:
    """One random source port per flow, distinct between flows of the same pair of hosts.

    Every port is uniform over 0xC000..0xFFFF and every choice of distinct ports within a pair
    is equally likely. A pair with more than 16,384 flows uses every port before it
    uses one again.

    Parameters
    ----------
    src, dst : hosts (or addresses) of the flows, non-negative integers, shape (n,).
    rng : source of randomness (C12).

    Examples
    --------
    >>> ports = drawn_source_ports([0, 0, 0, 5], [1, 1, 1, 2], np.random.default_rng(7))
    >>> len(set(ports[:3].tolist())), bool(ports.min() >= 0xC000)
    (3, True)
    """
    pair = _pair_index(np.asarray(src, np.int64), np.asarray(dst, np.int64))
    port = rng.integers(0, N_PORTS, pair.size)
    n_flows = np.bincount(pair)
    crowded = n_flows > _CROWDED
    in_crowd = np.flatnonzero(crowded[pair])
    port[in_crowd] = _permuted_ports(pair[in_crowd], rng)
    elsewhere = np.flatnonzero(((n_flows > 1) & ~crowded)[pair])
    port[elsewhere] = _without_repeats(pair[elsewhere], port[elsewhere], rng)
    return np.asarray(FIRST_PORT + port, np.uint16)


def _pair_index(src: NDArray[np.int64], dst: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of the distinct (src, dst) pairs each flow belongs to, shape (n,)."""
    key = src * (dst.max(initial=0) + 1) + dst
    return np.asarray(np.unique(key, return_inverse=True)[1], np.int64)


def _permuted_ports(pair: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Ports from 0 by a random permutation of all of them per pair, over and over."""
    group = np.unique(pair, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    n_flows = np.bincount(group)
    rank = np.arange(pair.size) - np.repeat(np.cumsum(n_flows) - n_flows, n_flows)
    permutations = rng.permuted(np.tile(np.arange(N_PORTS), (n_flows.size, 1)), axis=1)
    port = np.empty(pair.size, np.int64)
    port[order] = permutations[group[order], rank % N_PORTS]
    return port


def _without_repeats(
    pair: NDArray[np.int64], port: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The ports, drawn again for each flow whose pair has the port at an earlier flow.

    Which flow draws again depends on equality of ports only, never on their values: renaming the
    ports renames the result, so that all choices of distinct ports are equally likely. The sort
    has to be stable for that.
    """
    while True:
        key = pair * N_PORTS + port
        order = np.argsort(key, kind="stable")
        repeats = order[1:][key[order[1:]] == key[order[:-1]]]
        if repeats.size == 0:
            return port
        port[repeats] = rng.integers(0, N_PORTS, repeats.size)
