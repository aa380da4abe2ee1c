"""What a switch hashes to choose among equal paths (ECMP), and the choice it makes (C10).

The hashed bytes are the 5-tuple in network order: source and destination address, source and
destination port, protocol: 13 bytes. ``enhanced`` hashing adds the 3 bytes of the destination
queue pair. Each switch has a 32-bit seed of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.errors import unknown_name
from libra_planner.flows.headers import Headers

HASHES = ("murmur", "crc32", "crc16", "xor")
"""The hash functions; the first is the default. Only ``murmur`` is not linear (C10)."""

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
    >>> from libra_planner.flows.headers import rocev2_headers
    >>> headers = rocev2_headers([0x0A000001] * 2, 0x0A000002, src_port=[49152, 49153])
    >>> choice(flow_hash(headers, seed=7), 8).tolist()
    [6, 1]
    """
    if function not in HASHES:
        raise unknown_name("hash function", function, HASHES)
    return _FUNCTIONS[function](headers, np.asarray(seed, np.uint32), with_queue_pair)


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
    table = _crc32_table()
    register = ~np.asarray(initial, np.uint32)
    for octet in octets:
        register = table[(register ^ octet) & 0xFF] ^ (register >> 8)
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
    table = _crc16_table()
    register = np.asarray(initial, np.uint32)
    for octet in octets:
        register = table[(register >> 8) ^ octet] ^ ((register & 0xFF) << 8)
    return np.asarray(register, np.uint32)


@cache
def _crc32_table() -> _U32:
    """What eight shifts make of each low byte, shape (256,)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ 0xEDB88320, table >> 1).astype(np.uint32)
    return table


@cache
def _crc16_table() -> _U32:
    """What eight shifts make of each high byte, shape (256,)."""
    table = np.asarray(np.arange(256) << 8, np.uint32)
    for _ in range(8):
        table = np.where(table & 0x8000, (table << 1) ^ 0x1021, table << 1).astype(np.uint32)
    return np.asarray(table & 0xFFFF, np.uint32)


def _words(headers: Headers, with_queue_pair: bool) -> list[_U32]:
    """The hashed bytes as big-endian 32-bit words; the last has one byte without queue pairs."""
    ports = _shifted(headers.src_port, 16) | headers.dst_port
    last = _shifted(headers.protocol, 24)
    if with_queue_pair:
        last = last | (headers.queue_pair & np.uint32(0xFFFFFF))
    return [headers.src_ip, headers.dst_ip, ports, last]


def _shifted(field: NDArray[np.unsignedinteger], n_bits: int) -> _U32:
    """The field, moved up by so many bits of a 32-bit word."""
    return field.astype(np.uint32) << np.uint32(n_bits)


def _octets(headers: Headers, with_queue_pair: bool) -> NDArray[np.uint8]:
    """The hashed bytes, shape (13 or 16, ...)."""
    words = np.stack(_words(headers, with_queue_pair))
    shifts = np.array([24, 16, 8, 0], np.uint32).reshape(4, *[1] * (words.ndim - 1))
    octets = (words[:, None] >> shifts).astype(np.uint8)
    return octets.reshape(16, *words.shape[1:])[: 16 if with_queue_pair else 13]


def _halves(word: _U32) -> _U32:
    """XOR of the two 16-bit halves."""
    return (word ^ (word >> np.uint32(16))) & np.uint32(0xFFFF)


def _crc32(headers: Headers, seed: _U32, with_queue_pair: bool) -> _U32:
    return crc32(_octets(headers, with_queue_pair), initial=seed)


def _crc16(headers: Headers, seed: _U32, with_queue_pair: bool) -> _U32:
    return crc16(_octets(headers, with_queue_pair), initial=_halves(seed) ^ 0xFFFF)


def _xor(headers: Headers, seed: _U32, with_queue_pair: bool) -> _U32:
    a, b, c, d = _words(headers, with_queue_pair)
    return _halves(a ^ b ^ c ^ d ^ seed)


def _murmur(headers: Headers, seed: _U32, with_queue_pair: bool) -> _U32:
    """MurmurHash3_x86_32, whose words are little-endian; a last single byte is a tail."""
    state = np.broadcast_to(seed, headers.src_ip.shape)
    *blocks, last = [word.byteswap() for word in _words(headers, with_queue_pair)]
    for block in blocks:
        state = _absorbed(state, block)
    state = _absorbed(state, last) if with_queue_pair else state ^ _scrambled(last)
    return _avalanched(state ^ np.uint32(16 if with_queue_pair else 13))


def _rotated(word: _U32, n_bits: int) -> _U32:
    return (word << np.uint32(n_bits)) | (word >> np.uint32(32 - n_bits))


def _scrambled(word: _U32) -> _U32:
    return _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _absorbed(state: _U32, word: _U32) -> _U32:
    return _rotated(state ^ _scrambled(word), 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _avalanched(state: _U32) -> _U32:
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))


_FUNCTIONS: dict[str, Callable[[Headers, _U32, bool], _U32]] = {
    "murmur": _murmur,
    "crc32": _crc32,
    "crc16": _crc16,
    "xor": _xor,
}
