"""ECMP: each switch hashes a flow's header and takes one of the equal paths (C10).

The hashed bytes are the 5-tuple in network order: source and destination address, source and
destination port, protocol: 13 bytes. ``enhanced`` hashing adds the 3 bytes of the destination
queue pair. Each switch has a 32-bit seed of its own.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32 as crc_32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.allowed import HASHES
from libra_planner.errors import Fault, SpecError, unknown_name
from libra_planner.fabric.clos import Choice, Clos, Flows, Hops, Indices, LiveLinks, Mask
from libra_planner.routing.loads import ranks
from libra_planner.routing.policy import Policy

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
    source, target = np.asarray(src, np.int64), np.asarray(dst, np.int64)
    pair = np.unique(source * (target.max(initial=0) + 1) + target, return_inverse=True)[1]
    port = rng.integers(0, N_PORTS, pair.size)
    n_flows = np.bincount(pair)
    crowded = n_flows > _CROWDED
    in_crowd = np.flatnonzero(crowded[pair])
    group = np.unique(pair[in_crowd], return_inverse=True)[1].astype(np.int64)
    # All ports in a random order for each of these pairs, over and over.
    every = np.tile(np.arange(N_PORTS), (int(crowded.sum()), 1))
    port[in_crowd] = rng.permuted(every, axis=1)[group, ranks(group) % N_PORTS]
    elsewhere = np.flatnonzero(((n_flows > 1) & ~crowded)[pair])
    port[elsewhere] = _without_repeats(pair[elsewhere], port[elsewhere], rng)
    return np.asarray(FIRST_PORT + port, np.uint16)


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


_U32 = NDArray[np.uint32]


def flow_hash(
    headers: Headers, *, function: str = "murmur", seed: ArrayLike, with_queue_pair: bool = False
) -> _U32:
    """Hash of every flow's header at the switch where it is.

    Parameters
    ----------
    headers : fields of the flows, shape (n,) (or any other).
    function : one of :data:`HASHES`. ``murmur``: MurmurHash3_x86_32 of the bytes (A. Appleby,
        public domain). ``crc32``: the reflected IEEE 802.3 one, ``zlib.crc32(bytes, seed)``.
        ``crc16``: CRC-16/CCITT-FALSE with the seed's halves on the initial value. ``xor``: XOR
        of the 16-bit words and the seed's halves. The last two have 16 bits.
    seed : seed of the switch the flow is at, 0 to 2**32 - 1; one, or one per flow.
    with_queue_pair : also hash the queue pair (``enhanced``).

    Returns
    -------
    uint32, shape of the headers.

    Raises
    ------
    UnknownName
        If the function is none of :data:`HASHES`.

    Examples
    --------
    >>> from libra_planner.routing.ecmp import rocev2_headers
    >>> headers = rocev2_headers([0x0A000001] * 2, 0x0A000002, src_port=[49152, 49153])
    >>> choice(flow_hash(headers, seed=7), 8).tolist()
    [6, 1]
    """
    if function not in HASHES:
        raise unknown_name("hash function", function, HASHES)
    own = np.asarray(seed, np.uint32)
    words = _words(headers, with_queue_pair)
    if function == "murmur":
        return _murmur(words, own, with_queue_pair)
    if function == "xor":
        return _halves(words[0] ^ words[1] ^ words[2] ^ words[3] ^ own)
    octets = _octets(words)[: 16 if with_queue_pair else 13]
    if function == "crc32":
        return crc32(octets, initial=own)
    return crc16(octets, initial=_halves(own) ^ 0xFFFF)


def choice(hashes: _U32, n_choices: ArrayLike) -> NDArray[np.int64]:
    """Index of the link each flow takes: its hash modulo the number of equal links.

    Parameters
    ----------
    hashes : from :func:`flow_hash`, shape (n,).
    n_choices : links to choose from, at least 1; one, or one per flow.

    Examples
    --------
    >>> choice(np.array([5, 6, 7], np.uint32), [4, 4, 3]).tolist()
    [1, 2, 1]
    """
    return (hashes % np.asarray(n_choices, np.uint32)).astype(np.int64)


def crc32(octets: NDArray[np.uint8], *, initial: ArrayLike = 0) -> _U32:
    """CRC-32 of IEEE 802.3 (reflected), as ``zlib.crc32(bytes, initial)`` has it.

    Parameters
    ----------
    octets : the messages' bytes, shape (n_bytes, ...).
    initial : the running value, 0 to 2**32 - 1; one, or one per message.

    Examples
    --------
    >>> hex(crc32(np.frombuffer(b"123456789", np.uint8)))
    '0xcbf43926'
    """
    register = ~np.asarray(initial, np.uint32)
    for octet in octets:
        register = _CRC32[(register ^ octet) & 0xFF] ^ (register >> 8)
    return np.asarray(~register, np.uint32)


def crc16(octets: NDArray[np.uint8], *, initial: ArrayLike = 0xFFFF) -> _U32:
    """CRC-16/CCITT-FALSE: polynomial 0x1021, most significant bit first.

    Parameters
    ----------
    octets : the messages' bytes, shape (n_bytes, ...).
    initial : the register's first value, 0 to 0xFFFF; one, or one per message.

    Examples
    --------
    >>> hex(crc16(np.frombuffer(b"123456789", np.uint8)))
    '0x29b1'
    """
    register = np.asarray(initial, np.uint32)
    for octet in octets:
        register = _CRC16[(register >> 8) ^ octet] ^ ((register & 0xFF) << 8)
    return np.asarray(register, np.uint32)


_CRC32 = ~np.array([crc_32(bytes([i]), 2**32 - 1) for i in range(256)], np.uint32)
_CRC16 = np.array([crc_hqx(bytes([i]), 0) for i in range(256)], np.uint32)
"""What eight shifts make of each byte, as the standard library's checksums of one byte show it."""


def _words(headers: Headers, with_queue_pair: bool) -> list[_U32]:
    """The hashed bytes as big-endian 32-bit words; the last has one byte without queue pairs."""
    ports = headers.src_port.astype(np.uint32) << np.uint32(16) | headers.dst_port
    last = headers.protocol.astype(np.uint32) << np.uint32(24)
    if with_queue_pair:
        last = last | (headers.queue_pair & np.uint32(0xFFFFFF))
    return [headers.src_ip, headers.dst_ip, ports, last]


def _octets(words: Sequence[_U32]) -> NDArray[np.uint8]:
    """The words' bytes, shape (16, ...)."""
    stacked = np.stack(words)
    shifts = np.array([24, 16, 8, 0], np.uint32).reshape(4, *[1] * (stacked.ndim - 1))
    return (stacked[:, None] >> shifts).astype(np.uint8).reshape(16, *stacked.shape[1:])


def _halves(word: _U32) -> _U32:
    """XOR of the two 16-bit halves."""
    return (word ^ (word >> np.uint32(16))) & np.uint32(0xFFFF)


def _murmur(words: Sequence[_U32], seed: _U32, with_queue_pair: bool) -> _U32:
    """MurmurHash3_x86_32, whose words are little-endian; a last single byte is a tail."""
    state = np.broadcast_to(seed, words[0].shape)
    *blocks, last = [word.byteswap() for word in words]
    for block in blocks:
        state = _absorbed(state, block)
    state = _absorbed(state, last) if with_queue_pair else state ^ _scrambled(last)
    state = state ^ np.uint32(16 if with_queue_pair else 13)
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))


def _rotated(word: _U32, n_bits: int) -> _U32:
    return (word << np.uint32(n_bits)) | (word >> np.uint32(32 - n_bits))


def _scrambled(word: _U32) -> _U32:
    return _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _absorbed(state: _U32, word: _U32) -> _U32:
    return _rotated(state ^ _scrambled(word), 13) * np.uint32(5) + np.uint32(0xE6546B64)


QUEUE_PAIRS = 2**24
"""Numbers of queue pairs."""

_PORTS, _FIRST_PAIRS, _FREE_PAIRS, _SWITCHES = range(4)


def _stream(seed: int, purpose: int) -> np.random.Generator:
    """A stream of its own for each kind of draw: what one needs does not move the others."""
    return np.random.default_rng([seed, 0x45434D50, purpose])


def drawn_headers(flows: Flows, seed: int) -> Headers:
    """Headers of the flows, with all that is not given drawn.

    Every address numbers its queue pairs from a start of its own; where a flow says which of
    them it is, its source port is Linux's function of the two ends' numbers. Other flows
    draw source port and queue pair freely, no port twice between two addresses. What a flow
    draws does not depend on the flows after it.
    """
    n_addresses = 1 + max(flows.src_address.max(initial=0), flows.dst_address.max(initial=0))
    first = _stream(seed, _FIRST_PAIRS).integers(QUEUE_PAIRS, size=n_addresses)
    free = _stream(seed, _FREE_PAIRS).integers(QUEUE_PAIRS, size=flows.n_flows)
    ends = ((flows.src_address, 2 * flows.pair), (flows.dst_address, 2 * flows.pair + 1))
    local, remote = (
        np.where(flows.pair < 0, free, first[address] + number) % QUEUE_PAIRS
        for address, number in ends
    )
    ports = np.zeros(flows.n_flows, dtype=np.int64)
    if (flows.pair >= 0).any():
        ports = queue_pair_source_port(local, remote).astype(np.int64)
    if (flows.pair < 0).any():
        drawn = drawn_source_ports(flows.src_address, flows.dst_address, _stream(seed, _PORTS))
        ports = np.where(flows.pair < 0, drawn, ports)
    ports = np.where(flows.src_port < 0, ports, flows.src_port)
    addresses = host_address(flows.src_address), host_address(flows.dst_address)
    return rocev2_headers(*addresses, src_port=ports, queue_pair=remote)


def ecmp(fabric: Clos, flows: Flows, *, policy: Policy, where: Hops, seed: int) -> Choice:
    """The path of every flow under ECMP.

    Parameters
    ----------
    policy : with the hash.
    where : :func:`~libra_planner.fabric.clos.hops` of the flows.
    seed : draws source ports and the switches' hash seeds.
    """
    return hashed_choice(fabric, drawn_headers(flows, seed), policy, where, seed)


def hashed_choice(fabric: Clos, headers: Headers, policy: Policy, where: Hops, seed: int) -> Choice:
    """The path of every flow by its header.

    Parameters
    ----------
    fabric, policy, where, seed : as :func:`ecmp` has them.
    headers : of the flows, shape (n_flows,).
    """
    seeds = _switch_seeds(fabric, policy, seed)
    live = LiveLinks(fabric) if fabric.failed.size else None

    def taken(tier: str, switch: Indices, n_choices: int, working: Mask | None) -> Indices:
        own = seeds[tier] if policy.shared_seed else seeds[tier][switch]
        hashes = flow_hash(headers, function=policy.hash, seed=own, with_queue_pair=policy.enhanced)
        return _pick(hashes, n_choices, working)

    core_link = core_down = spine_down = np.zeros(len(where.src_leaf), dtype=np.int64)
    alive = None if live is None else live.uplinks(where)
    uplink = taken("leaf", where.src_leaf, fabric.n_uplinks, alive)
    spine = uplink // fabric.n_parallel
    if fabric.n_cores:
        up = where.src_pod * fabric.n_spines + spine
        alive = None if live is None else live.core_links(where, spine)
        core_link = taken("spine", up, fabric.n_core_links, alive)
        core = core_link // fabric.core_parallel
        at = (where.src_pod // fabric.n_pods * fabric.n_spines + spine) * fabric.n_cores + core
        down = None if live is None else live.tiers.core_down[where.dst_pod, spine, core]
        core_down = taken("core", at, fabric.core_parallel, down)
    if fabric.n_parallel > 1:
        last = where.dst_pod * fabric.n_spines + spine
        down = None if live is None else live.tiers.spine_down[where.dst_leaf, spine]
        spine_down = taken("spine", last, fabric.n_parallel, down)
    inside, between = where.leaves_leaf, where.leaves_pod
    return Choice(
        uplink=np.where(inside, uplink, -1),
        core_link=np.where(between, core_link, -1),
        core_down=np.where(between, core_down, -1),
        spine_down=np.where(inside, spine_down, -1),
    )


def _switch_seeds(fabric: Clos, policy: Policy, seed: int) -> dict[str, _U32]:
    """The hash seed of every switch of a tier, or the one that all switches share."""
    rng = _stream(seed, _SWITCHES)
    shared = rng.integers(2**32, size=1, dtype=np.uint32)
    if policy.shared_seed:
        return dict.fromkeys(fabric.n_switches, shared)
    return {
        tier: rng.integers(2**32, size=n, dtype=np.uint32) for tier, n in fabric.n_switches.items()
    }


def _pick(hashes: NDArray[np.uint32], n_choices: int, live: Mask | None) -> Indices:
    """The link that each hash takes of ``n_choices``, or of those that are live."""
    if live is None:
        return choice(hashes, n_choices)
    position = choice(hashes, np.maximum(live.sum(axis=1), 1))
    order = np.argsort(~live, axis=1, kind="stable")
    return np.take_along_axis(order, position[:, None], axis=1)[:, 0]
