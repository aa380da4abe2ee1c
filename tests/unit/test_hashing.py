"""Header fields and hash functions: published vectors, slow twins, linearity, polarization."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.errors import SpecError, UnknownName
from libra_planner.routing.ecmp import (
    HASHES,
    Headers,
    choice,
    crc16,
    crc32,
    drawn_source_ports,
    flow_hash,
    host_address,
    queue_pair_source_port,
    rocev2_headers,
)
from libra_planner.routing.loads import fim_percent

LINEAR = ("crc32", "crc16", "xor")
U32 = st.integers(0, 2**32 - 1)


def _headers(message: bytes) -> Headers:
    """Headers whose hashed bytes are the message, of 13 or 16 bytes."""
    fields = struct.unpack(">IIHHB", message[:13])
    queue_pair = int.from_bytes(message[13:], "big")
    kinds = (np.uint32, np.uint32, np.uint16, np.uint16, np.uint8, np.uint32)
    return Headers(*(np.array([f], k) for f, k in zip((*fields, queue_pair), kinds, strict=True)))


def _hash(message: bytes, function: str, seed: int) -> int:
    longer = len(message) == 16
    return int(
        flow_hash(_headers(message), function=function, seed=seed, with_queue_pair=longer)[0]
    )


def _murmur(message: bytes, seed: int) -> int:
    """MurmurHash3_x86_32 of any bytes, one at a time, from its description."""

    def rotated(x: int, n: int) -> int:
        return ((x << n) | (x >> (32 - n))) & 0xFFFFFFFF

    def scrambled(x: int) -> int:
        return rotated(x * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    h, whole = seed, len(message) // 4 * 4
    for at in range(0, whole, 4):
        h ^= scrambled(int.from_bytes(message[at : at + 4], "little"))
        h = (rotated(h, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= scrambled(int.from_bytes(message[whole:], "little")) ^ len(message)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ (h >> shift)) * factor & 0xFFFFFFFF
    return h


def _crc16(message: bytes, initial: int) -> int:
    """CRC-16/CCITT-FALSE bit by bit."""
    register = initial
    for octet in message:
        register ^= octet << 8
        for _ in range(8):
            register = (register << 1) ^ (0x1021 if register & 0x8000 else 0)
            register &= 0xFFFF
    return register


def _xor(message: bytes, seed: int) -> int:
    words = message + b"\0" * (16 - len(message)) + seed.to_bytes(4, "big")
    result = 0
    for (word,) in struct.iter_unpack(">H", words):
        result ^= word
    return result


def _slow(message: bytes, function: str, seed: int) -> int:
    if function == "murmur":
        return _murmur(message, seed)
    if function == "crc32":
        return zlib.crc32(message, seed)
    if function == "crc16":
        return _crc16(message, 0xFFFF ^ (seed & 0xFFFF) ^ (seed >> 16))
    return _xor(message, seed)


@pytest.mark.parametrize(
    ("message", "seed", "expected"),
    [  # Widely published vectors of MurmurHash3_x86_32.
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"", 0xFFFFFFFF, 0x81F16F39),
        (b"\xff\xff\xff\xff", 0, 0x76293B50),
        (b"\x21\x43\x65\x87", 0, 0xF55B516B),
        (b"\x21\x43\x65\x87", 0x5082EDEE, 0x2362F9DE),
        (b"\x21", 0, 0x72661CF4),
        (b"\0\0\0\0", 0, 0x2362F9DE),
        (b"aaaa", 0x9747B28C, 0x5A97808A),
        (b"Hello, world!", 0x9747B28C, 0x24884CBA),
    ],
)
def test_the_slow_murmur_meets_the_published_vectors(message, seed, expected) -> None:
    assert _murmur(message, seed) == expected


def test_murmur_meets_a_published_vector_of_thirteen_bytes() -> None:
    assert _hash(b"Hello, world!", "murmur", 0x9747B28C) == 0x24884CBA


def test_crcs_meet_their_published_check_values() -> None:
    """Check values of the RevEng catalogue: the CRC of the nine digits."""
    digits = np.frombuffer(b"123456789", np.uint8)
    assert crc32(digits) == 0xCBF43926
    assert crc16(digits) == 0x29B1


@given(st.binary(min_size=13, max_size=13) | st.binary(min_size=16, max_size=16), U32)
def test_every_hash_equals_its_slow_twin(message: bytes, seed: int) -> None:
    for function in HASHES:
        assert _hash(message, function, seed) == _slow(message, function, seed)


@pytest.mark.parametrize("function", HASHES)
@pytest.mark.parametrize("with_queue_pair", [False, True])
def test_flows_hash_one_by_one_and_with_the_seed_of_their_own_switch(
    function, with_queue_pair
) -> None:
    rng = np.random.default_rng(4)
    tuples = rng.integers(0, 2**32, (3, 40), np.uint64)
    headers = rocev2_headers(
        tuples[0], tuples[1], src_port=tuples[2] & 0xFFFF, queue_pair=tuples[2] >> 8
    )
    seeds = rng.integers(0, 2**32, 40, np.uint32)
    hashes = flow_hash(headers, function=function, seed=seeds, with_queue_pair=with_queue_pair)
    assert hashes.dtype == np.uint32
    for i in range(40):
        message = struct.pack(">IIHHB", *tuples[:2, i], int(tuples[2, i]) & 0xFFFF, 4791, 17)
        pair = (int(tuples[2, i]) >> 8).to_bytes(3, "big") if with_queue_pair else b""
        assert hashes[i] == _slow(message + pair, function, int(seeds[i]))


def test_only_enhanced_hashing_sees_the_queue_pair() -> None:
    headers = rocev2_headers([7] * 64, 8, src_port=50000, queue_pair=np.arange(64))
    for function in HASHES:
        plain = flow_hash(headers, function=function, seed=3)
        enhanced = flow_hash(headers, function=function, seed=3, with_queue_pair=True)
        assert np.unique(plain).size == 1
        assert np.unique(enhanced).size == 64


def test_an_unknown_hash_function_is_named() -> None:
    with pytest.raises(UnknownName, match=r"got 'crc23', expected a known hash function; did you"):
        flow_hash(rocev2_headers([1], 2, src_port=3), function="crc23", seed=0)


def test_the_choice_is_the_hash_modulo_the_links() -> None:
    hashes = np.array([0, 31, 32, 2**32 - 1], np.uint32)
    assert choice(hashes, 32).tolist() == [0, 31, 0, 31]
    assert choice(hashes, [1, 2, 3, 5]).tolist() == [0, 1, 2, (2**32 - 1) % 5]


# Linear hashes and polarization


def _fixed_headers() -> Headers:
    """512 flows from 64 hosts, whose tuples never change."""
    rng = np.random.default_rng(11)
    src, dst = rng.integers(0, 64, 512), 64 + rng.integers(0, 64, 512)
    ports = drawn_source_ports(src, dst, rng)
    return rocev2_headers(host_address(src), host_address(dst), src_port=ports)


def _fims_over_seeds(function: str, n_links: int) -> np.ndarray:
    headers = _fixed_headers()
    seeds = np.random.default_rng(12).integers(0, 2**32, 50)
    counts = [
        np.bincount(
            choice(flow_hash(headers, function=function, seed=seed), n_links), minlength=n_links
        )
        for seed in seeds
    ]
    assert np.unique(counts, axis=0).shape[0] > 1  # The seeds do move flows between links.
    return fim_percent(np.array(counts))


@pytest.mark.parametrize("function", LINEAR)
@pytest.mark.parametrize("n_links", [8, 32])
def test_over_seeds_a_linear_hash_has_no_spread(function, n_links) -> None:
    fims = _fims_over_seeds(function, n_links)
    assert fims[0] > 0
    assert np.all(fims == fims[0])


@pytest.mark.parametrize("n_links", [8, 32])
def test_over_seeds_murmur_has_the_spread_of_random_choices(n_links) -> None:
    assert _fims_over_seeds("murmur", n_links).std() > 1


@pytest.mark.parametrize("function", HASHES)
def test_the_documentation_shows_these_figures(function) -> None:
    text = (Path(__file__).parents[2] / "docs" / "hashing.md").read_text()
    row = re.search(rf"^\| `{function}` \|((?: [\d.]+ \|){{4}})$", text, re.MULTILINE).group(1)
    shown = [float(figure) for figure in row.split("|")[:-1]]
    fims = [_fims_over_seeds(function, n_links) for n_links in (32, 24)]
    figures = [figure for fim in fims for figure in (fim.mean(), fim.std(ddof=1))]
    assert shown == pytest.approx(figures, abs=0.0051)


@pytest.mark.parametrize("function", LINEAR)
def test_a_linear_hash_deals_all_ports_of_a_pair_out_equally(function) -> None:
    headers = rocev2_headers(host_address(0), host_address(1), src_port=np.arange(0xC000, 0x10000))
    links = choice(flow_hash(headers, function=function, seed=9), 16)
    assert np.bincount(links).tolist() == [1024] * 16


@pytest.mark.parametrize("function", LINEAR)
def test_a_seed_shifts_all_hashes_of_a_linear_function_by_one_constant(function) -> None:
    headers = _fixed_headers()
    first, second = (flow_hash(headers, function=function, seed=seed) for seed in (1, 0xABCDEF12))
    assert np.unique(first ^ second).size == 1
    assert first[0] != second[0]


def _used_links_of_second_stage(function: str, seeds: tuple[int, int]) -> list[int]:
    """Uplinks in use at each of 8 switches, fed by stage one's 8 links."""
    headers = _fixed_headers()
    first, second = (choice(flow_hash(headers, function=function, seed=s), 8) for s in seeds)
    return [np.unique(second[first == link]).size for link in range(8)]


@pytest.mark.parametrize("function", HASHES)
def test_one_seed_at_two_stages_polarizes(function) -> None:
    assert _used_links_of_second_stage(function, (5, 5)) == [1] * 8


@pytest.mark.parametrize("function", LINEAR)
def test_two_seeds_do_not_cure_polarization_of_a_linear_hash(function) -> None:
    assert _used_links_of_second_stage(function, (5, 0x9E3779B9)) == [1] * 8


def test_two_seeds_cure_polarization_of_murmur() -> None:
    assert _used_links_of_second_stage("murmur", (5, 0x9E3779B9)) == [8] * 8


# Header fields


def test_queue_pair_ports_worked_by_hand() -> None:
    """Both folds of the product, and the fold of the label.

    0x800000 * 0x800001 = 2^46 + 2^23. XOR itself >> 20 (2^26 + 2^3) and that >> 40 (2^6): bits 46,
    26, 23, 6 and 3. The label, its low 20 bits, is 2^6 + 2^3 = 0x48, without high bits to fold.
    0x4000 * 5 = 0x14000 is its own label; its low 14 bits are 0, its high six 5.
    """
    assert queue_pair_source_port([0x800000, 0x4000], [0x800001, 5]).tolist() == [0xC048, 0xC005]


@given(st.lists(st.tuples(st.integers(0, 2**24 - 1), st.integers(0, 2**24 - 1)), min_size=1))
def test_queue_pair_ports_equal_the_rule_in_whole_numbers(pairs) -> None:
    local, remote = np.array(pairs).T
    for port, a, b in zip(queue_pair_source_port(local, remote), local, remote, strict=True):
        v = int(a) * int(b)
        v ^= v >> 20
        v ^= v >> 40
        label = v & 0xFFFFF
        assert port == ((label & 0x3FFF) ^ (label >> 14)) | 0xC000


def test_host_addresses_stay_in_ten_slash_eight() -> None:
    assert host_address(0) == 0x0A000001
    assert host_address(2**24 - 3) == 0x0AFFFFFE
    for bad in (-1, 2**24 - 2):
        with pytest.raises(SpecError, match=f"got host {bad}, expected 0 to 16777213"):
            host_address([3, bad])


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=200),
    st.sampled_from([1, 40]),
    st.integers(0, 9),
)
def test_drawn_ports_are_distinct_within_each_pair(pairs, copies, seed) -> None:
    src, dst = np.array(pairs * copies, int).reshape(-1, 2).T
    ports = drawn_source_ports(src, dst, np.random.default_rng(seed))
    assert ports.dtype == np.uint16
    assert ports.shape == src.shape
    assert np.all(ports >= 0xC000)
    assert np.unique(np.stack([src, dst, ports]), axis=1).shape[1] == src.size


def test_a_pair_repeats_ports_evenly_when_it_has_more_flows_than_there_are() -> None:
    src = np.append(np.zeros(40000, int), [1, 1])
    ports = drawn_source_ports(src, np.ones_like(src), np.random.default_rng(0))
    uses = np.bincount(ports[:-2], minlength=0x10000)[0xC000:]
    assert (uses.min(), uses.max()) == (2, 3)
    assert ports[-1] != ports[-2]


@pytest.mark.parametrize("n_flows", [1, 4096, 4097, 16384, 20000])
def test_every_port_of_every_flow_is_uniform(n_flows) -> None:
    """First and last flow of 320 pairs: each sixteenth of the ports is as likely."""
    n_pairs = 8
    draws = []
    rng = np.random.default_rng(n_flows)
    for _ in range(40):
        src = np.repeat(np.arange(n_pairs), n_flows)
        ports = drawn_source_ports(src, src + 1, rng).reshape(n_pairs, n_flows)
        draws.append(ports[:, [0, -1]])
    for flow in np.concatenate(draws).T:
        counts = np.bincount((flow - 0xC000) >> 10, minlength=16)
        expected = flow.size / 16
        assert ((counts - expected) ** 2 / expected).sum() < 37.7  # chi-squared(15), 0.1 %


def test_rejection_leaves_all_choices_of_distinct_ports_equally_likely(monkeypatch) -> None:
    """With 4 ports and 3 flows per pair: 24 ordered choices, in 24,000 pairs."""
    monkeypatch.setattr("libra_planner.routing.ecmp.N_PORTS", 4)
    pair = np.tile(np.arange(24000), 3)
    ports = drawn_source_ports(pair, pair, np.random.default_rng(3)).reshape(3, -1).astype(int)
    code = np.array([16, 4, 1]) @ (ports - 0xC000)
    counts = np.unique(code, return_counts=True)[1]
    assert counts.size == 24
    assert ((counts - 1000) ** 2 / 1000).sum() < 49.7  # chi-squared(23), 0.1 %


def test_the_same_seed_draws_the_same_ports() -> None:
    src = np.arange(100) % 7
    first, second = (drawn_source_ports(src, src, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first, second)
