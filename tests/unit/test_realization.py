"""Designs as links: counts worked by hand, slow twins, and plans that say how to build."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise, product
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

import libra_planner as lp
from libra_planner.errors import SpecError, UnknownName
from libra_planner.fabric.blocks import FULLY_CONNECTED, RING, SWITCH
from libra_planner.fabric.clos import (
    Choice,
    Clos,
    Flows,
    cable_failures,
    disconnected,
    fail,
    links_of,
    require_connected,
    single_failures,
    spine_failures,
    with_failed,
)
from libra_planner.fabric.parts import HOST_LEAF, CableParts, SwitchParts, design_parts
from libra_planner.fabric.realization import (
    PRESETS,
    Direct,
    preset,
    preset_design,
    preset_fabric,
    realize,
)
from libra_planner.fabric.sizing import Shape, plane_shape
from libra_planner.fabric.topology import WIRINGS, Realization, SwitchSettings, parse_topology
from tests.conftest import PLAN
from tests.direct_paths import NEXT, PREVIOUS, SHORTER, direct_links_of


def _built(notation: str, bandwidth_GBps: list[float], **settings):
    """The outermost dimension of a design, a switch with these settings."""
    topology = parse_topology(notation)
    switch = SwitchSettings(**settings)
    switches = tuple(switch if d.block == SWITCH else None for d in topology.dimensions)
    bandwidth = np.array(bandwidth_GBps) * 1e9
    return realize(topology, bandwidth, Realization(switches)).dimensions[-1]


# Shapes by hand -------------------------------------------------------------------------------

SHAPES = {
    "one switch, full": (64, 1, 64, Shape(64)),
    # 16 hosts, radix 8: 4 per leaf, 4 uplinks; 2 spines x 8 ports = 4 leaves x 2 links.
    "16 hosts, radix 8": (8, 1, 16, Shape(4, 4, 2, 2)),
    # The largest two tiers: radix^2 / 2.
    "32 hosts, radix 8": (8, 1, 32, Shape(4, 8, 4, 1)),
    # One host more: pods of radix / 2 leaves at the most.
    "128 hosts, radix 8, k^3/4": (8, 1, 128, Shape(4, 4, 4, 1, 8, 4, 1)),
    "2,048 hosts, radix 64": (64, 1, 2048, Shape(32, 64, 32, 1)),
    # 16 pods of 1,024; 32 uplinks per spine over 64 / 16 = 4 links to each pod: 8 cores.
    "16,384 hosts, radix 64": (64, 1, 16384, Shape(32, 32, 32, 1, 16, 8, 4)),
    "65,536 hosts, radix 64": (64, 1, 65536, Shape(32, 32, 32, 1, 64, 32, 1)),
    # 2:1: 42 hosts and 21 uplinks fit 64 ports; 3 leaves of 32 need 16 each, 48 on one spine.
    "96 hosts, 2:1": (64, 2, 96, Shape(32, 3, 1, 16)),
    # 1:1 at an odd radix: 2 + 2 of 5 ports, and a spine takes 5 leaves.
    "10 hosts, radix 5": (5, 1, 10, Shape(2, 5, 2, 1)),
    "3 hosts, radix 2": (2, 1, 3, None),
    "129 hosts, radix 8": (8, 1, 129, None),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_worked_by_hand(name: str) -> None:
    radix, ratio, n_hosts, expected = SHAPES[name]
    settings = SwitchSettings(switch_radix=radix, oversubscription=ratio)
    if expected is None:
        with pytest.raises(SpecError, match=rf"{n_hosts} endpoints for switches of radix {radix}"):
            plane_shape(settings, n_hosts)
    else:
        assert plane_shape(settings, n_hosts) == expected


def _fewest_switches_in_two_tiers(radix: int, ratio: float, n_hosts: int) -> int | None:
    counts = range(1, radix)
    found = [
        ceil(n_hosts / hosts) + spines
        for hosts, spines, parallel in product(counts, counts, counts)
        if hosts + spines * parallel <= radix
        and spines * parallel >= hosts / ratio
        and ceil(n_hosts / hosts) * parallel <= radix
    ]
    return min(found, default=None)


@given(st.integers(2, 10), st.sampled_from([0.5, 1, 1.5, 2, 3]), st.integers(1, 50))
def test_no_two_tiers_have_fewer_switches(radix: int, ratio: float, n_beyond: int) -> None:
    n_hosts = radix + n_beyond
    fewest = _fewest_switches_in_two_tiers(radix, ratio, n_hosts)
    if fewest is None:
        return  # Two tiers do not hold so many: see the tests of three.
    settings = SwitchSettings(switch_radix=radix, oversubscription=ratio)
    assert plane_shape(settings, n_hosts).n_switches == fewest


def _fewest_switches_in_three_tiers(radix: int, n_hosts: int) -> int | None:
    found = []
    for hosts, leaves, spines, parallel in product(range(1, radix), repeat=4):
        pods, down = ceil(n_hosts / (hosts * leaves)), leaves * parallel
        up = spines * parallel
        if hosts + up > radix or up < hosts or down >= radix or pods > radix:
            continue
        for cores, wide in product(range(1, radix), range(1, radix // pods + 1)):
            if down <= cores * wide <= radix - down:
                found.append(pods * (leaves + spines) + spines * cores)
    return min(found, default=None)


@pytest.mark.parametrize(
    ("radix", "n_hosts"), [(4, 9), (4, 16), (5, 13), (6, 19), (6, 40), (7, 30)]
)
def test_no_three_tiers_have_fewer_switches(radix: int, n_hosts: int) -> None:
    assert _fewest_switches_in_two_tiers(radix, 1, n_hosts) is None
    shape = plane_shape(SwitchSettings(switch_radix=radix), n_hosts)
    assert shape.n_cores
    assert shape.n_switches == _fewest_switches_in_three_tiers(radix, n_hosts)


# Explicit shapes ------------------------------------------------------------------------------


def test_given_leaves_and_spines_replace_the_automatic_shape() -> None:
    both = SwitchSettings(n_leaves=4, n_spines=8)
    assert plane_shape(both, 16) == Shape(4, 4, 8, 1)
    assert plane_shape(SwitchSettings(n_leaves=4, n_spines=8, n_parallel=3), 16) == Shape(
        4, 4, 8, 3
    )
    # 64 ports: 4 leaves of 4 hosts and 4 uplinks, which one spine can take.
    assert plane_shape(SwitchSettings(n_leaves=4), 16) == Shape(4, 4, 1, 4)
    # 6 spines: 6 hosts and 6 uplinks fit 16 ports, 8 and 12 do not; 20 hosts need 4 leaves.
    assert plane_shape(SwitchSettings(switch_radix=16, n_spines=6), 20) == Shape(5, 4, 6, 1)
    assert plane_shape(SwitchSettings(n_leaves=1), 16) == Shape(16)
    for counts in ({"n_leaves": 1, "n_spines": 1}, {"n_spines": 1}, {"n_spines": 2}):
        assert plane_shape(SwitchSettings(**counts, n_parallel=2), 16) == Shape(16)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_leaves": 1}, r"a switch with 40 endpoints, 40 ports, expected .* radix, 16"),
        ({"n_leaves": 4, "n_spines": 8}, r"a leaf with 10 endpoints and 8 spines x 2 links, 26"),
        ({"n_leaves": 20, "n_spines": 2}, r"a spine with 20 leaves x 1 links, 20 ports"),
        ({"n_leaves": 2}, r"a leaf with 20 endpoints and 20 spines x 1 links, 40 ports"),
        ({"n_leaves": 20}, r"a spine with 20 leaves"),
        ({"n_spines": 16}, r"a leaf with 1 endpoints and 16 spines"),
    ],
)
def test_given_counts_are_checked_against_the_radix(settings, message) -> None:
    with pytest.raises(SpecError, match=message):
        plane_shape(SwitchSettings(switch_radix=16, **settings), 40)


def test_given_leaves_are_whole_rails() -> None:
    with pytest.raises(SpecError, match="got 12 leaves for 8 rails"):
        plane_shape(SwitchSettings(n_leaves=12), 32, 8)


# Switch dimensions ----------------------------------------------------------------------------


def test_whole_nics_realise_at_least_what_is_asked() -> None:
    built = _built("SW(4)", [120], port_speed_Bps=50e9)
    assert (built.n_nics, built.bandwidth_Bps, built.asked_Bps) == (3, 150e9, 120e9)
    assert built.fabric.n_hosts == 12
    assert built.port_of_npu.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    own = _built("SW(4)", [120], n_nics=2)
    assert (own.n_nics, own.bandwidth_Bps, own.fabric.host_Bps) == (2, 120e9, 60e9)
    more = _built("SW(4)", [120], n_nics=4, port_speed_Bps=50e9)
    assert (more.n_nics, more.bandwidth_Bps) == (4, 200e9)
    # 100.00000000001 GB/s is two ports of 50: an optimum's last digit buys no NIC.
    assert _built("SW(4)", [100 * (1 + 1e-13)], port_speed_Bps=50e9).n_nics == 2
    with pytest.raises(
        SpecError, match=r"\(dim1\).nics: got 2 NICs of 50 GB/s, expected 3 for 120"
    ):
        _built("SW(4)", [120], n_nics=2, port_speed_Bps=50e9)


def test_wiring_by_hand() -> None:
    """8 nodes of 2 NPUs, radix 8: the rail's 8 ports are one switch, all 16 are not."""
    rail = _built("FC(2)_SW(8)", [50, 50], switch_radix=8)
    assert rail.fabric == Clos(8, host_Bps=50e9, uplink_Bps=50e9, core_Bps=50e9, n_planes=2)
    assert rail.port_of_npu[:4, 0].tolist() == [0, 8, 1, 9]
    rack = _built("FC(2)_SW(8)", [50, 50], switch_radix=8, wiring="top_of_rack")
    assert (rack.fabric.n_leaves, rack.fabric.n_spines, rack.fabric.n_planes) == (4, 2, 1)
    assert rack.port_of_npu[:, 0].tolist() == list(range(16))
    mixed = _built("FC(2)_SW(8)", [50, 50], switch_radix=8, wiring="rail_optimized")
    leaf = mixed.fabric.leaf_of(mixed.port_of_npu[:, 0])
    # NPUs 0, 2, 4, 6 are rail 0 of nodes 0 to 3; leaves alternate between the rails.
    assert leaf.tolist() == [0, 1] * 4 + [2, 3] * 4
    one = _built("FC(2)_SW(8)", [50, 50], switch_radix=16, wiring="rail_optimized")
    assert one.fabric.n_switches == {"leaf": 1}
    assert sorted(one.port_of_npu[:, 0].tolist()) == list(range(16))


def test_two_switch_dimensions_have_their_own_planes() -> None:
    topology = parse_topology("SW(3)_RI(2)_SW(4)")
    inner, ring, outer = realize(topology, [10e9, 20e9, 30e9]).dimensions
    assert inner.fabric.n_planes == 8
    assert inner.port_of_npu[:, 0].tolist() == list(range(24))
    assert outer.fabric.n_planes == 6
    # NPU 7 = index 1 of dim1, 0 of dim2, 1 of dim3: plane 1, second of its group.
    assert outer.port_of_npu[7, 0] == 1 * 4 + 1
    assert ring.fabric.n_inner == 3


def test_a_dimension_without_bandwidth_has_no_links() -> None:
    built = realize(parse_topology("RI(4)_SW(8)"), [0, 0])
    assert [one.fabric for one in built.dimensions] == [None, None]
    assert built.bandwidth_Bps.tolist() == [0, 0]
    assert design_parts(built).total("n_cables") == 0


@pytest.mark.parametrize("bandwidth", [float("nan"), -1.0, float("inf")])
def test_a_bandwidth_is_a_number(bandwidth: float) -> None:
    with pytest.raises(SpecError, match=r"dim1.*expected a bandwidth of 0 or more"):
        realize(parse_topology("SW(8)"), [bandwidth])


def test_all_dimensions_that_cannot_be_built_are_named() -> None:
    small = SwitchSettings(switch_radix=2)
    with pytest.raises(SpecError) as error:
        realize(parse_topology("SW(8)_SW(8)"), [1e9, 1e9], Realization((small, small)))
    paths = [fault.path for fault in error.value.faults]
    assert paths == [f"fabric.realization (dim{i}).switch_radix" for i in (1, 2)]
    with pytest.raises(SpecError, match=r"got 200,000,000 links, expected at most 100,000,000"):
        realize(parse_topology("RI(100000000)"), [1e9])


def _port_by_hand(topology, dim: int, wiring: str, n_nics: int, fabric: Clos, n_rails: int):
    """Host ports, plane by plane and rail by rail: leaves as equally full as can be."""
    sizes = topology.sizes
    n_inner = int(np.prod(sizes[:dim], dtype=int))
    teams: dict[tuple[int, int], list[int]] = {}
    for npu in range(topology.n_npus):
        inner, outer = npu % n_inner, npu // n_inner
        plane = (outer // sizes[dim]) * n_inner + inner if wiring == "rail" else 0
        rail = inner if wiring == "rail_optimized" and n_rails > 1 else 0
        teams.setdefault((plane, rail), []).append(npu)
    if wiring == "rail_optimized" and n_rails == 1:
        teams[0, 0].sort(key=lambda npu: (npu % n_inner, npu))
    ports: dict[int, list[int]] = {npu: [] for npu in range(topology.n_npus)}
    n_leaves = fabric.n_leaves * fabric.n_pods // n_rails
    for (plane, rail), npus in teams.items():
        hosts = [npu for npu in npus for _ in range(n_nics)]
        filled = Counter()
        for i, npu in enumerate(hosts):
            level = next(k for k in range(n_leaves) if i < ceil((k + 1) * len(hosts) / n_leaves))
            leaf = plane * fabric.n_leaves * fabric.n_pods + level * n_rails + rail
            ports[npu].append(leaf * fabric.hosts_per_leaf + filled[leaf])
            filled[leaf] += 1
    return [ports[npu] for npu in range(topology.n_npus)]


@given(
    notation=st.sampled_from(
        ["SW(9)", "RI(2)_SW(7)", "FC(3)_SW(5)_RI(2)", "SW(4)_SW(6)", "RI(5)_SW(3)"]
    ),
    wiring=st.sampled_from(WIRINGS),
    n_nics=st.integers(1, 3),
    radix=st.integers(4, 16),
    ratio=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
)
@example("SW(9)", "rail", 1, 4, 1.0)
def test_every_realisation_keeps_the_radix_and_seats_everyone(
    notation, wiring, n_nics, radix, ratio
) -> None:
    topology = parse_topology(notation)
    settings = SwitchSettings(radix, None, n_nics, ratio, wiring)
    switches = [settings if d.block == SWITCH else None for d in topology.dimensions]
    try:
        design = realize(topology, np.full(topology.n_dims, 60e9), Realization(tuple(switches)))
    except SpecError:
        reject()  # More than three tiers join.
    for dim, built in enumerate(design.dimensions):
        if not isinstance(built.fabric, Clos):
            continue
        fabric, ports = built.fabric, built.port_of_npu
        assert len(set(ports.ravel().tolist())) == ports.size == topology.n_npus * n_nics
        assert 0 <= ports.min() <= ports.max() < fabric.n_hosts
        by_switch, cables = _ports_by_switch(fabric, set(ports.ravel().tolist()))
        assert max(by_switch.values()) <= radix
        if fabric.n_spines:
            uplink = fabric.n_uplinks * fabric.uplink_Bps
            assert uplink >= fabric.hosts_per_leaf * fabric.host_Bps / ratio * (1 - 1e-9)
        if fabric.n_cores:
            assert fabric.n_core_links >= fabric.n_leaves * fabric.n_parallel
        first = _first_of_group(topology, dim)
        joined = ~disconnected(fabric, ports[first, 0], ports[:, 0])
        assert joined[first != np.arange(topology.n_npus)].all()
        inner = int(np.prod(topology.sizes[:dim], dtype=int))
        rails = inner if wiring == "rail_optimized" and fabric.total_leaves > 1 else 1
        assert ports.tolist() == _port_by_hand(topology, dim, wiring, n_nics, fabric, rails)
        parts = design_parts(design).dimensions[dim]
        assert parts.n_cables == cables
        assert parts.n_ports_used == sum(by_switch.values())
        assert parts.n_ports_used + parts.n_ports_free == radix * parts.n_switches


def _first_of_group(topology, dim: int):
    inner = int(np.prod(topology.sizes[:dim], dtype=int))
    npu = np.arange(topology.n_npus)
    return npu - npu // inner % topology.sizes[dim] * inner


def _ports_by_switch(fabric: Clos, hosts: set[int]) -> tuple[Counter, int]:
    """Ports with a cable of each switch, and cables, from the names of the links."""
    ports, cables = Counter(), 0
    for layer in fabric.layers:
        if not layer.name.endswith("_up"):
            continue
        for link in range(layer.start, layer.start + layer.n_links):
            if layer.is_host and link not in hosts:
                continue
            cables += 1
            ends = [re.sub(r" \(.*\)", "", end) for end in fabric.link_name(link).split(" -> ")]
            ports.update(end for end in ends if not end.startswith("host"))
    return ports, cables


# Direct links ---------------------------------------------------------------------------------


def test_direct_links_by_hand() -> None:
    ring = realize(parse_topology("RI(4)_SW(2)"), [100e9, 1e9]).dimensions[0].fabric
    assert [(x.name, x.n_links) for x in ring.layers] == [("ring_next", 8), ("ring_previous", 8)]
    assert ring.capacity_Bps.tolist() == [50e9] * 16
    full = realize(parse_topology("SW(2)_FC(4)"), [1e9, 90e9]).dimensions[1].fabric
    assert (full.n_links, full.capacity_Bps[0], full.layers[0].name) == (24, 30e9, "direct")
    # NPU 3 is the second of the group 1, 3, 5, 7: to 5, then 7, then 1.
    assert [full.link_name(link) for link in (9, 10, 11)] == [
        "NPU 3 -> NPU 5",
        "NPU 3 -> NPU 7",
        "NPU 3 -> NPU 1",
    ]


def test_a_ring_of_two_has_two_links_between_the_same_npus() -> None:
    ring = Direct(RING, 2, n_hosts=2, bandwidth_Bps=10e9)
    assert ring.n_links == 4
    names = [ring.link_name(link) for link in range(4)]
    assert names == ["NPU 0 -> NPU 1", "NPU 1 -> NPU 0"] * 2
    pair = np.array([0, 0, 1]), np.array([1, 1, 0])
    assert direct_links_of(ring, *pair, np.array([NEXT, PREVIOUS, SHORTER])).tolist() == [
        [0],
        [2],
        [3],
    ]


@given(
    block=st.sampled_from([RING, FULLY_CONNECTED]),
    size=st.integers(2, 7),
    inner=st.integers(1, 3),
    outer=st.integers(1, 3),
    data=st.data(),
)
def test_direct_paths_step_from_the_source_to_the_target(block, size, inner, outer, data) -> None:
    n = size * inner * outer
    fabric = Direct(block, size, n, inner, 10e9)
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b and a % inner == b % inner]
    pairs = [(a, b) for a, b in pairs if a // (inner * size) == b // (inner * size)]
    ways = data.draw(
        st.lists(st.sampled_from([0, 1, -1]), min_size=len(pairs), max_size=len(pairs))
    )
    src, dst = np.array(pairs).T
    links = direct_links_of(fabric, src, dst, np.array(ways))
    for (a, b), way, path in zip(pairs, ways, links.tolist(), strict=True):
        hops = [
            fabric.link_name(link).replace("NPU ", "").split(" -> ") for link in path if link >= 0
        ]
        assert hops[0][0] == str(a)
        assert hops[-1][1] == str(b)
        assert all(one[1] == two[0] for one, two in pairwise(hops))
        ahead = (b // inner - a // inner) % size
        ways_round = {NEXT: ahead, PREVIOUS: size - ahead, SHORTER: min(ahead, size - ahead)}
        assert len(hops) == (ways_round[way] if block == RING else 1)
    # Everybody to everybody by the shorter way loads both directions alike, ties included.
    load = np.bincount(direct_links_of(fabric, src, dst).ravel() + 1, minlength=fabric.n_links + 1)[
        1:
    ]
    if size % 2 and block == RING:
        assert len(set(load.tolist())) == 1
    elif block == RING:
        assert load[:n].sum() == load[n:].sum()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SWITCH, 4, 4, 1, 1e9), "got a switch"),
        ((RING, 4, 4, 1, 0.0), "bandwidth above 0"),
        ((RING, 1, 4, 1, 1e9), "whole groups of 2 or more"),
        ((RING, 4, 6, 1, 1e9), "whole groups of 2 or more"),
    ],
)
def test_direct_fabrics_check_their_sizes(arguments, message) -> None:
    with pytest.raises(SpecError, match=message):
        Direct(*arguments)


# Parts ----------------------------------------------------------------------------------------


def test_parts_of_16_hosts_on_switches_of_8_ports() -> None:
    topology = parse_topology("SW(16)")
    design = realize(topology, [50e9], Realization((SwitchSettings(switch_radix=8),)))
    (parts,) = design_parts(design).dimensions
    assert parts.n_nics == 16
    assert parts.switches == (SwitchParts("leaf", 4, 32, 0), SwitchParts("spine", 2, 16, 0))
    assert parts.cables == (
        CableParts("host-leaf", 16, 50e9, 32),
        CableParts("leaf-spine", 16, 50e9, 32),
    )
    (copper,) = design_parts(design, [HOST_LEAF]).dimensions
    assert [part.n_optics for part in copper.cables] == [0, 32]
    assert (parts.n_optics, copper.n_optics, parts.n_links) == (64, 32, 64)
    assert design_parts(design, ["dim1"]).total("n_optics") == 0


def test_parts_of_16384_npus() -> None:
    (parts,) = design_parts(preset_design("pod-16384")).dimensions
    assert parts.switches == (
        SwitchParts("leaf", 512, 32768, 0),
        SwitchParts("spine", 512, 32768, 0),
        SwitchParts("core", 256, 16384, 0),
    )
    assert [(c.joins, c.n_cables, c.n_optics) for c in parts.cables] == [
        (joins, 16384, 32768) for joins in ("host-leaf", "leaf-spine", "spine-core")
    ]


def test_unused_ports_are_free_and_their_cables_not_counted() -> None:
    """33 hosts, radix 16: 5 leaves of 7 and 6 hosts; two host ports of the fabric stay empty."""
    topology = parse_topology("SW(33)")
    design = realize(topology, [50e9], Realization((SwitchSettings(switch_radix=16),)))
    fabric = design.dimensions[0].fabric
    assert (fabric.n_leaves, fabric.hosts_per_leaf, fabric.n_hosts) == (5, 7, 35)
    hosts = np.bincount(fabric.leaf_of(design.dimensions[0].port_of_npu[:, 0]))
    assert hosts.tolist() == [7, 7, 6, 7, 6]
    (parts,) = design_parts(design).dimensions
    assert parts.cables[0].n_cables == 33
    # 8 - 1 ... every leaf has 7 uplinks at least: ports used are hosts plus uplinks.
    assert parts.switches[0].n_ports_used == 33 + 5 * fabric.n_uplinks


def test_parts_of_direct_links_and_totals() -> None:
    """64 NPUs: rings of 4 have 64 cables, FC(4) 16 groups x 6 = 96, SW(4) 64."""
    design = realize(parse_topology("RI(4)_FC(4)_SW(4)"), [100e9, 90e9, 50e9])
    parts = design_parts(design)
    assert [one.n_cables for one in parts.dimensions] == [64, 96, 64]
    assert [one.cables[0].speed_Bps for one in parts.dimensions] == [50e9, 30e9, 50e9]
    assert parts.total("n_cables") == 224
    assert (parts.total("n_switches"), parts.total("n_optics"), parts.total("n_nics")) == (
        16,
        128,
        64,
    )
    assert parts.total("n_links") == 448


# Presets --------------------------------------------------------------------------------------


def test_presets_by_hand() -> None:
    tracer = preset_fabric("flowtracer-16x400G")
    assert (tracer.n_hosts, tracer.n_uplinks, tracer.uplink_Bps) == (16, 8, 50e9)
    assert tracer.n_switches == {"leaf": 4, "spine": 8}
    rails = preset_fabric("rail-8x400G")
    assert (rails.n_leaves, rails.hosts_per_leaf, rails.n_spines, rails.n_parallel) == (8, 32, 4, 8)
    routing = preset_fabric("routing-64x32")
    assert (routing.n_leaves, routing.n_spines, routing.hosts_per_leaf) == (64, 32, 32)
    assert routing.host_Bps == routing.uplink_Bps == 12.5e9
    assert preset_fabric("pod-16384").n_hosts == 16384


@pytest.mark.parametrize("name", PRESETS)
def test_presets_say_what_they_assume(name: str) -> None:
    design = preset_design(name)
    assert design.realization.notes[1].startswith("assumed: ")
    assert np.array_equal(design.bandwidth_Bps, preset(name).bandwidth_Bps)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean rail-8x400G"):
        preset_fabric("rail-8x400")


# Failures -------------------------------------------------------------------------------------

THREE_TIERS = Clos(
    2, 3, 2, 1e9, 1e9, 2, n_pods=3, n_cores=2, core_Bps=1e9, core_parallel=2, n_planes=2
)


def test_failed_cables_and_spines_by_hand() -> None:
    fabric = Clos(2, 3, 2, 1e9, 1e9)  # host_up 0-5, leaf_up 6-11, spine_down 12-17
    assert cable_failures(fabric).tolist() == [[i, i + 6] for i in range(6, 12)]
    assert spine_failures(fabric).tolist() == [[6, 8, 10, 12, 14, 16], [7, 9, 11, 13, 15, 17]]
    names = [one.name for one in single_failures(fabric)]
    assert names[:3] == ["leaf 0 - spine 0", "leaf 0 - spine 1", "leaf 1 - spine 0"]
    assert names[-2:] == ["spine 0", "spine 1"]
    assert spine_failures(Clos(4, host_Bps=1.0)).shape == (0, 0)


@pytest.mark.parametrize("fabric", [THREE_TIERS, Clos(2, 3, 2, 1e9, 1e9, 2)])
def test_a_failed_spine_has_all_its_links_and_no_others(fabric: Clos) -> None:
    for spine, links in enumerate(spine_failures(fabric)):
        at_spine = re.compile(rf"\bspine {spine}\b")
        expected = [i for i in range(fabric.n_links) if at_spine.search(fabric.link_name(i))]
        assert sorted(links.tolist()) == expected


@given(st.integers(0, 20), st.integers(0, 4), st.integers(0, 2**32))
def test_draws_repeat_and_grow(n_links: int, n_spines: int, seed: int) -> None:
    down = fail(THREE_TIERS, n_links=n_links, n_spines=n_spines, seed=seed)
    assert np.array_equal(
        down.failed, fail(THREE_TIERS, n_links=n_links, n_spines=n_spines, seed=seed).failed
    )
    per_spine = spine_failures(THREE_TIERS).shape[1]
    assert down.failed.size == 2 * n_links + per_spine * n_spines
    assert np.array_equal(np.sort(down.reverse(down.failed)), down.failed)
    assert not (down.capacity_Bps[down.failed]).any()
    more = fail(THREE_TIERS, n_links=n_links + 1, n_spines=n_spines, seed=seed)
    assert set(down.failed.tolist()) < set(more.failed.tolist())


def test_failures_that_are_not_there_are_refused() -> None:
    with pytest.raises(SpecError, match="got 7 failed links, expected 0 to 6"):
        fail(Clos(2, 3, 2, 1e9, 1e9), n_links=7)
    with pytest.raises(SpecError, match="got 3 failed spines, expected 0 to 2"):
        fail(Clos(2, 3, 2, 1e9, 1e9), n_spines=3)
    with pytest.raises(SpecError, match="a dimension of one switch has none"):
        fail(Clos(2, host_Bps=1e9), n_links=1)


def _joined_by_a_path(fabric: Clos, src: int, dst: int) -> bool:
    """Whether one of all paths has only working links."""
    flows = Flows(np.array([src]), np.array([dst]), np.ones(1))
    if fabric.plane_of(flows.src) != fabric.plane_of(flows.dst):
        return False
    ranges = (fabric.n_uplinks, fabric.n_core_links, fabric.core_parallel, fabric.n_parallel)
    for choice in product(*(range(max(1, n)) for n in ranges)):
        links = links_of(fabric, flows, Choice(*(np.array([one]) for one in choice)))[0]
        if fabric.alive[links[links >= 0]].all():
            return True
    return False


@given(st.data())
def test_disconnected_pairs_are_those_without_a_path(data) -> None:
    small = Clos(1, 2, 2, 1e9, 1e9, n_pods=2, n_cores=1, core_Bps=1e9)
    shape = data.draw(
        st.sampled_from([THREE_TIERS, small, small, Clos(2, 4, 2, 1e9, 1e9, n_planes=2)])
    )
    links = data.draw(st.lists(st.integers(0, shape.n_links - 1), max_size=shape.n_links // 2))
    fabric = with_failed(shape, np.array(links, dtype=np.int64))
    hosts = st.integers(0, fabric.n_hosts - 1)
    pairs = data.draw(st.lists(st.tuples(hosts, hosts), min_size=1, max_size=12))
    src, dst = np.array(pairs).T
    expected = [not _joined_by_a_path(fabric, a, b) for a, b in pairs]
    assert disconnected(fabric, src, dst).tolist() == expected


def test_disconnected_pairs_are_named() -> None:
    fabric = Clos(1, 3, 1, 1e9, 1e9)  # host_up 0-2, leaf_up 3-5, spine_down 6-8
    cut = with_failed(fabric, np.array([3, 6]))
    src, dst = np.array([0, 1, 1, 0, 0]), np.array([1, 2, 0, 1, 2])
    require_connected(fabric, src, dst)
    with pytest.raises(SpecError) as error:
        require_connected(cut, src, dst)
    assert "3 pairs of hosts that no path joins: host 0 -> host 1, host 0 -> host 2, host 1" in str(
        error.value
    )


# Plans ----------------------------------------------------------------------------------------


def _with(section: str) -> str:
    return PLAN.replace("parallelism", f"  realization: {section}\nparallelism", 1)


def test_a_plan_without_the_section_has_none(plan) -> None:
    assert lp.load_plan(plan()).realization is None
    assert lp.load_plan(plan(text=_with("null"))).realization is None


def test_a_plan_says_how_to_build(plan) -> None:
    text = """
    preset: rail-8x400G
    switch_radix: 32
    oversubscription: 2
    nics: 2
    parallel_links: auto
    placement: random
    failed_links: {links: 2, spines: 1, seed: 7}
    pod: {switch_radix: 128, port_speed: 50 GB/s, failed_links: 3}"""
    realization = lp.load_plan(plan(text=_with(text))).realization
    assert realization.traffic.placement == "random"
    # The preset's words, and what of them does not hold in this plan.
    assert realization.notes == (
        *PRESETS["rail-8x400G"].notes,
        "rail-8x400G is changed by the plan: switch_radix: 32, nics: 2, oversubscription: 2",
        "rail-8x400G is changed by the plan for pod: switch_radix: 128",
    )
    expected = SwitchSettings(
        128, 50e9, 2, 2.0, "rail_optimized", n_failed_links=3, n_failed_spines=0, failure_seed=0
    )
    assert realization.switches == (None, None, None, expected)


def test_switches_differ_by_tier_or_label(plan) -> None:
    text = _with("{switch_radix: 32, dim1: {nics: 3}, pod: {preset: pod-16384, nics: 2}}")
    text = text.replace("RI(4)_FC(8)_RI(4)_SW(32)", "SW(4)_FC(8)_RI(4)_SW(32)")
    text = text.replace("[chiplet,", "[node,")
    text = text.replace("libra-ispass24", "./p.yaml")
    prices = "{kind: price_book, source: t, as_of: t, unit: USD per GB/s, tiers: {package: {link: 1}, node: {link: 1, switch: 1, nic: 1}, pod: {link: 1, switch: 1, nic: 1}}}"
    path = plan(text=text)
    (path.parent / "p.yaml").write_text(prices)
    first, _, _, last = lp.load_plan(path).realization.switches
    assert (first.switch_radix, first.n_nics, first.port_speed_Bps) == (32, 3, None)
    # A dimension's own preset takes the place of all that holds for the others.
    assert (last.switch_radix, last.n_nics, last.port_speed_Bps) == (64, 2, 50e9)


def test_settings_reach_the_section(plan) -> None:
    problem = lp.load_plan(plan(), "fabric.realization={switch_radix: 128, port_speed: 400 Gbps}")
    assert problem.realization.switches[3] == SwitchSettings(128, 50e9)
    nested = lp.load_plan(plan(), "fabric.realization.pod.leaves=4")
    assert nested.realization.switches[3].n_leaves == 4


BAD = {
    "switch_radix: 0": r":5:31: fabric.realization.switch_radix: got 0, expected at least 2",
    "switch_radix: 1": r"got 1, expected at least 2",
    "switch_radix: .nan": r"got nan, expected a whole number",
    "switch_radix: '64'": r"got '64', .*remove the quotes: 64",
    "switch_radix: 99999": r"got 99999, expected at most 1024",
    "port_speed: 400": r"port_speed: got 400 without a unit, .*write 400 GB/s or 400 Gbit/s",
    "port_speed: 400 Gb/s": r"got the unit 'Gb/s', .*GB/s for bytes or Gbit/s for bits",
    "port_speed: 3 ms": r"got .3 ms., a time, expected GB/s",
    "port_speed: .nan": r"got nan, expected a speed with its unit",
    "port_speed: -1 GB/s": r"got '-1 GB/s', expected a speed from",
    "nics: 0": r"nics: got 0, expected a whole number from 1 to 10,000, or auto",
    "nics: many": r"nics: got 'many', expected a whole number",
    "nics: true": r"nics: got true, expected a whole number",
    "oversubscription: 0": r"got 0, expected a number from 0.01 to 1,000; 2 means 2:1",
    "oversubscription: .nan": r"got nan, expected a number",
    "oversubscription: '2:1'": r"got '2:1', expected a number .*; write 2",
    "wiring: rails": r"wiring: got 'rails', .*rail_only, also called rail",
    "placement: randm": r"placement: got 'randm', .*did you mean random\?",
    "parallel_links: 1.5": r"parallel_links: got 1.5, expected a whole number",
    "failed_links: -1": r"failed_links: got -1, expected a whole number of cables",
    "failed_links: {links: -1}": r"failed_links.links: got -1, expected at least 0",
    "failed_links: {link: 1}": r"failed_links.link: got the unknown key .*did you mean links\?",
    "preset: rail-8x400": r":5:25: fabric.realization.preset: .*did you mean rail-8x400G\?",
    "switch_radx: 3": r":5:17: .*got the unknown key 'switch_radx'.*did you mean switch_radix\?",
    "pdo: {nics: 1}": r":5:17: fabric.realization.pdo: got 'pdo', .*did you mean pod\?",
    "dim9: {nics: 1}": r"realization.dim9: got 'dim9', .*known: dim4, pod",
    "dim1: {nics: 1}": r":5:17: .*dim1: got dim1, which is RI\(4\), expected a switch.*known: dim4, pod",
    "chiplet: {nics: 1}": r"got chiplet, which is RI\(4\), expected a switch",
    "pod: 3": r":5:22: fabric.realization.pod: got 3, expected a map",
    "pod: {switch_radix: 1}": r"realization.pod.switch_radix: got 1, expected at least 2",
    "pod: {placement: rail}": r"realization.pod.placement: got the unknown key",
    "pod: {preset: pod}": r"realization.pod.preset: got 'pod', expected a known fabric preset",
    "pod: {nics: 1}, dim4: {nics: 2}": r"dim4: got 'dim4' beside 'pod', which name one dimension",
}


@pytest.mark.parametrize("section", BAD)
def test_bad_sections_are_named_with_their_place(section: str, plan, run) -> None:
    outcome = run("evaluate", plan(text=_with(f"{{{section}}}")), "--bandwidth", "1,1,1,1")
    assert outcome.code == 2
    assert re.search(BAD[section], outcome.err), outcome.err
    assert re.search(r"plan\.yaml:5:\d+: fabric\.realization", outcome.err)
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("section", ["3", "[]", "text", "true"])
def test_the_section_is_a_map(section: str, plan, run) -> None:
    outcome = run("evaluate", plan(text=_with(section)), "--bandwidth", "1,1,1,1")
    assert outcome.code == 2
    assert re.search(r":5:16: fabric.realization: got .*, expected a map", outcome.err)


def test_all_faults_of_the_section_come_with_those_of_the_plan(plan, run) -> None:
    text = _with("{nics: 0, wiring: x, pdo: {}}").replace("dp: 256", "dp: 0")
    err = run("evaluate", plan(text=text), "--bandwidth", "1,1,1,1").err
    for part in ("parallelism.dp", "realization.nics", "realization.wiring", "realization.pdo"):
        assert part in err


def test_the_documented_section_works(plan) -> None:
    text = (Path(__file__).parents[2] / "docs" / "realization.md").read_text()
    fabric = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]
    head, tail = (
        "workload: gpt3-libra\n",
        "parallelism: {tp: 32, dp: 512}\ncost_model: libra-ispass24\n",
    )
    problem = lp.load_plan(plan(text=head + fabric + tail))
    design = realize(problem.topology, [100e9, 100e9, 120e9], problem.realization)
    switch = design.dimensions[2]
    # The pod's own radix; every other key as written, three NICs for 120 GB/s.
    assert switch.settings == SwitchSettings(128, 50e9, wiring="rail")
    assert (switch.n_nics, switch.fabric.n_planes, switch.bandwidth_Bps) == (3, 32, 150e9)


def test_the_schema_takes_keys_by_dimension(run) -> None:
    section = run("schema", "plan").payload["$defs"]["RealizationSpec"]
    own = section["additionalProperties"]["properties"]
    traffic = {"placement", "queue_pairs", "npus_per_address", "source_ports"}
    assert set(section["properties"]) - set(own) == traffic
