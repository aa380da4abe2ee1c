"""Stacks as one network of switches: counts by hand, and twins that place NPU by NPU."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from libra_planner.cli.main import main
from libra_planner.errors import SpecError
from libra_planner.fabric.cluster import ClusterOrder, cluster_network
from libra_planner.fabric.parts import design_parts
from libra_planner.fabric.realization import RealizedDesign, realize
from libra_planner.fabric.sizing import plane_shape
from libra_planner.fabric.topology import (
    RAIL,
    RAIL_OPTIMIZED,
    SCALE_UP,
    TOP_OF_RACK,
    WIRINGS,
    Realization,
    SwitchSettings,
    parse_topology,
)

GBPS = 1e9


def _built(notation: str, bandwidth_GBps: list[float], **given: object) -> RealizedDesign:
    """A scale-up switch, and a stack with these settings."""
    topology = parse_topology(notation)
    network = SwitchSettings(**{"wiring": RAIL_OPTIMIZED, **given})
    switches = (SCALE_UP, *[network] * (topology.n_dims - 1))
    return realize(topology, np.array(bandwidth_GBps) * GBPS, Realization(switches))


def _cables(design: RealizedDesign) -> dict[str, int]:
    parts = design_parts(design).dimensions[1:]
    return {cable.joins: cable.n_cables for one in parts for cable in one.cables}


def test_rails_of_2048_at_2_to_1_by_hand() -> None:
    # 8 rails of 8 leaves of 32; 16 uplinks each, over 16 spines of 64 ports.
    design = _built("SW(8)_[SW(32)_SW(8)]", [450, 50, 25], port_speed_Bps=50e9)
    network = design.dimensions[1]
    assert network.clos.n_switches == {"leaf": 64, "spine": 16}
    assert network.fabric is design.dimensions[2].fabric
    assert [one.label for one in design.networks] == ["dim1", "dim2"]
    assert design.bandwidth_Bps.tolist() == [450e9, 50e9, 25e9]
    assert [one.oversubscription for one in design.dimensions] == [None, 2.0, None]
    assert _cables(design) == {"host-leaf": 2048, "leaf-spine": 1024}
    node, leaf, spine = design_parts(design).dimensions
    assert (node.n_nics, leaf.n_nics, spine.n_nics) == (0, 2048, 0)
    assert [part.tier for part in (*leaf.switches, *spine.switches)] == ["leaf", "spine"]
    assert leaf.n_optics + spine.n_optics == 2 * (2048 + 1024)
    assert (leaf.n_ports_used, leaf.n_ports_free) == (64 * 48, 64 * 16)


def test_three_tiers_of_16384_by_hand() -> None:
    # 512 leaves; a rail's 16 leaves of a pod meet on 16 spines by 2 links. Each spine has 32 links
    # down and needs 32/7, 5; 64 ports of a core join 32 pods of one rail by 2: 3 cores, 6 links.
    asked = [450, 50, 50, 50 / 7]
    design = _built("SW(8)_[SW(32)_SW(16)_SW(4)]", asked, port_speed_Bps=50e9)
    clos = design.dimensions[1].clos
    assert clos.n_switches == {"leaf": 512, "spine": 512, "core": 48}
    assert (clos.n_pods, clos.n_leaves, clos.n_parallel) == (32, 16, 2)
    assert design.bandwidth_Bps[1:] == pytest.approx([50e9, 50e9, 50e9 * 6 / 32])
    assert design.dimensions[2].oversubscription == pytest.approx(32 / 6)
    assert _cables(design) == {"host-leaf": 16384, "leaf-spine": 16384, "spine-core": 3072}
    # A network for every rail: 16 spines in each of 4 pods, 5 links to a core of their own.
    rails = _built("SW(8)_[SW(32)_SW(16)_SW(4)]", asked, port_speed_Bps=50e9, wiring=RAIL)
    clos = rails.dimensions[1].clos
    assert (clos.n_planes, clos.n_switches) == (8, {"leaf": 512, "spine": 512, "core": 128})
    assert rails.bandwidth_Bps[3] == pytest.approx(50e9 * 5 / 32)


def test_planes_breakout_and_faster_uplinks_by_hand() -> None:
    # Each 400G NIC is two ports of 200G; a 400G port takes two of them, a link up two ports.
    design = _built(
        "SW(8)_[SW(32)_SW(4)]",
        [450, 50, 25],
        port_speed_Bps=50e9,
        n_planes=2,
        switch_port_Bps=50e9,
        uplink_Bps=100e9,
    )
    network = design.dimensions[1]
    assert (network.n_nics, network.n_ports, network.nic_Bps) == (1, 2, 50e9)
    assert (network.clos.host_Bps, network.clos.uplink_Bps) == (25e9, 100e9)
    # 32 leaves in each plane, 4 links of 100 GB/s up from 32 x 25 GB/s: 2:1; 32 leaves x 4 links on
    # spines with 32 of them each, 4.
    assert network.clos.n_switches == {"leaf": 64, "spine": 8}
    assert design.bandwidth_Bps[1:].tolist() == [50e9, 25e9]
    # Two links of a NIC share a cable to one port that serves both.
    assert _cables(design) == {"host-leaf": 1024, "leaf-spine": 256}
    leaf, spine = design_parts(design).dimensions[1:]
    assert leaf.n_ports_used == 64 * (16 + 8)
    assert spine.n_ports_used == 8 * 64
    assert leaf.n_nics == 1024
    planes = network.clos.plane_of(network.port_of_npu)
    assert (planes == [0, 1]).all()


def test_positions_stay_free() -> None:
    design = _built("SW(8)_[SW(30)_SW(4)]", [450, 50, 50], port_speed_Bps=50e9, n_reserved=5)
    clos = design.dimensions[1].clos
    assert clos.hosts_per_leaf == 32  # 5 on 4 leaves of each rail are 2 on one.
    assert design.dimensions[1].port_of_npu.size == 8 * 30 * 4


def test_faster_ports_come_first_where_they_make_a_leaf_fit() -> None:
    """32 NPUs of two NICs of 400 Gbit/s at 2:1 need 96 ports, of one of 800 Gbit/s 48."""
    ports = {"port_speed_Bps": 50e9}
    faster = r"fit; write fabric.realization.port_speed: 800 Gbit/s, write SW\(16\)_SW\(8\)"
    with pytest.raises(SpecError, match=faster):
        _built("SW(8)_[SW(32)_SW(4)]", [450, 100, 50], **ports)
    assert _built("SW(8)_[SW(32)_SW(4)]", [450, 100, 50], port_speed_Bps=100e9).dimensions
    # Three of a kind are no speed on sale; what the plan says of its NICs stays.
    for asked, own in (([450, 150, 50], {}), ([450, 100, 50], {"n_nics": 2})):
        with pytest.raises(SpecError, match=r"fit; write SW\("):
            _built("SW(8)_[SW(32)_SW(4)]", asked, **ports, **own)


@pytest.mark.parametrize(
    ("notation", "wiring", "text"),
    [
        (
            "SW(8)_[SW(32)_SW(8)]",
            TOP_OF_RACK,
            r"leaf of 32 positions with 256 links to NPUs and 256 up.*at most the radix, 64: 4 "
            r"positions fit; write SW\(4\)_SW\(64\) there.*wiring: rail_optimized",
        ),
        ("SW(8)_[SW(40)_SW(8)]", RAIL_OPTIMIZED, r"32 positions fit; write SW\(32\)_SW\(10\)"),
        ("SW(8)_[SW(32)_SW(16)]", RAIL_OPTIMIZED, r"128 leaves of 8 rails.*wiring: rail_only"),
        ("SW(2)_[SW(2)_SW(2)_SW(2)_SW(2)]", RAIL, "stack of 4 tiers, expected at most three"),
        ("SW(65)_[SW(4)_SW(2)]", TOP_OF_RACK, "one position is too many"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(notation: str, wiring: str, text: str) -> None:
    n_dims = parse_topology(notation).n_dims
    with pytest.raises(SpecError, match=text):
        _built(notation, [450] + [50] * (n_dims - 1), wiring=wiring)


@pytest.mark.parametrize(
    ("notation", "bandwidth_GBps", "given", "ways"),
    [
        ("SW(8)_[SW(32)_SW(8)]", [450, 50, 75], {}, ["topology", "rail_only", "128", "taper"]),
        ("SW(8)_[SW(32)_SW(8)]", [450, 50, 25], {"switch_radix": 32}, ["topology", "64"]),
        ("SW(8)_[SW(32)_SW(8)]", [450, 50, 25], {"n_nics": 2}, ["topology", "128"]),
        ("SW(8)_[SW(32)_SW(8)]", [450, 50, 50], {"wiring": TOP_OF_RACK}, ["rail_optimized"]),
        ("SW(8)_[SW(32)_SW(4)]", [450, 100, 50], {"port_speed_Bps": 50e9}, ["800", "topology"]),
        ("SW(8)_[SW(32)_SW(16)]", [450, 50, 50], {}, ["rail_only"]),
        ("SW(8)_[SW(32)_SW(4)_SW(4)]", [450, 50, 100, 50], {}, ["128"]),
        ("SW(8)_[SW(32)_SW(4)_SW(4)]", [450, 50, 50, 50], {"wiring": TOP_OF_RACK}, []),
    ],
)
def test_every_way_to_make_a_stack_that_is_proposed_builds_it(
    notation: str, bandwidth_GBps: list[float], given: dict, ways: list[str]
) -> None:
    with pytest.raises(SpecError) as caught:
        _built(notation, bandwidth_GBps, **given)
    fix = caught.value.faults[0].fix
    followed = []
    for way in re.split(r", or |, | or (?=raise|give|write)", fix):
        change = _followed(way, notation, bandwidth_GBps, given)
        if change is not None:
            assert _built(*change[:2], **change[2]).dimensions, way
            followed.append(way if "SW(" not in way else f"topology {way}")
    assert followed
    for word in ways:
        assert any(word in one for one in followed), (word, fix)


def _followed(
    way: str, notation: str, bandwidth_GBps: list[float], given: dict
) -> tuple[str, list[float], dict] | None:
    """What one proposal makes of a stack; nothing for a tier more."""
    wiring, sizes = re.search(r"wiring: (\w+)", way), re.search(r"write (SW\S*) there", way)
    if wiring:
        given = {**given, "wiring": {"rail_only": RAIL}.get(wiring[1], wiring[1])}
    if sizes:
        notation = re.sub(r"\[SW\(\d+\)_SW\(\d+\)", f"[{sizes[1]}", notation)
    elif radix := re.search(r"switch_radix to (\d+)", way):
        given = {**given, "switch_radix": int(radix[1])}
    elif speed := re.search(r"port_speed: (\d+) Gbit", way):
        given = {**given, "port_speed_Bps": float(speed[1]) * GBPS / 8}
    elif "taper" in way:
        bandwidth_GBps = [*bandwidth_GBps[:2], 10, *bandwidth_GBps[3:]]
    elif not wiring:
        return None
    return notation, bandwidth_GBps, given


def test_a_tier_without_bandwidth_ends_the_network() -> None:
    notation = "SW(2)_[SW(4)_SW(2)_SW(2)]"
    leaves = _built(notation, [450, 50, 0, 0])
    assert leaves.dimensions[1].clos.n_switches == {"leaf": 8}
    assert [one.fabric is None for one in leaves.dimensions] == [False, False, True, True]
    pods = _built(notation, [450, 50, 50, 0])
    assert (pods.dimensions[1].clos.n_planes, pods.dimensions[1].clos.n_cores) == (2, 0)
    with pytest.raises(SpecError, match="0 GB/s in dim3 and more in dim4"):
        _built(notation, [450, 50, 0, 50])


STACKS = st.tuples(
    st.integers(1, 3),
    st.lists(st.integers(2, 4), min_size=2, max_size=3),
    st.integers(1, 2),
    st.sampled_from(WIRINGS),
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from([1, 1.5, 2]),
)


@given(STACKS)
def test_every_npu_is_where_its_place_says(drawn: tuple) -> None:
    n_inner, sizes, n_outer, wiring, n_nics, n_planes, taper = drawn
    stack = "[" + "_".join(f"SW({n})" for n in sizes) + "]"
    notation = f"SW({2 * n_inner})_{stack}" + f"_SW({2 * n_outer})"
    bandwidth = [1.0, 1.0, *[1 / taper] * (len(sizes) - 1), 1.0]
    links = {"n_nics": n_nics, "n_planes": n_planes, "switch_radix": 256}
    design = _built(notation, bandwidth, wiring=wiring, **links)
    network = design.dimensions[1]
    clos, ports = network.clos, network.port_of_npu
    assert ports.shape == (design.topology.n_npus, n_nics * n_planes)
    assert len(set(ports.ravel().tolist())) == ports.size == clos.n_hosts
    rail_of_leaf: dict[int, set] = {}
    places = product(*(range(n) for n in (2 * n_outer, *sizes[::-1], 2 * n_inner)))
    for npu, (outer, *tiers, inner) in enumerate(places):
        *beyond, _ = tiers
        rail = 0 if wiring == TOP_OF_RACK else inner
        for column, port in enumerate(ports[npu].tolist()):
            plane = (outer, column % n_planes, inner if wiring == RAIL else 0)
            leaf = int(clos.leaf_of(np.array(port)))
            found = (plane, tuple(beyond), rail)
            rail_of_leaf.setdefault(leaf, set()).add(found)
    assert all(len(found) == 1 for found in rail_of_leaf.values())
    assert len(rail_of_leaf) == clos.total_leaves
    planes = {}
    for leaf, ((plane, beyond, rail),) in rail_of_leaf.items():
        planes.setdefault(leaf // (clos.n_leaves * clos.n_pods), set()).add(plane)
        together = clos.n_pods == (*sizes, 1)[2]
        pod = (plane, beyond[:-1], None if together else rail)
        planes.setdefault(("pod", leaf // clos.n_leaves), set()).add(pod)
    assert all(len(found) == 1 for found in planes.values())


@given(
    st.integers(1, 3),
    st.lists(st.integers(2, 6), min_size=2, max_size=3),
    st.sampled_from([1, 1.5, 2, 3]),
    st.sampled_from([1, 2, 7]),
    st.sampled_from([12, 16, 24, 64]),
    st.sampled_from(WIRINGS),
)
def test_links_carry_what_is_asked_for_and_fit_the_radix(
    n_inner: int, sizes: list[int], taper: float, core: float, radix: int, wiring: str
) -> None:
    notation = f"SW({2 * n_inner})_[" + "_".join(f"SW({n})" for n in sizes) + "]"
    asked = [1.0, 1.0, 1 / taper, 1 / taper / core][: len(sizes) + 1]
    try:
        design = _built(notation, asked, wiring=wiring, switch_radix=radix)
    except SpecError:
        reject()
    clos = design.dimensions[1].clos
    assert (design.bandwidth_Bps >= np.array(asked) * GBPS * (1 - 1e-9)).all()
    assert clos.hosts_per_leaf + clos.n_uplinks <= radix
    assert clos.n_leaves * clos.n_parallel + clos.n_core_links <= radix
    assert clos.n_pods * clos.core_parallel <= radix
    # Bandwidth of a tier is that of all its links over all NPUs.
    for tier, layer in enumerate([one for one in clos.layers if one.name.endswith("_up")]):
        share = clos.capacity_Bps[layer.links].sum() / design.topology.n_npus
        assert design.bandwidth_Bps[1 + tier] == pytest.approx(share)
    # One link fewer from a leaf would be too few, but for equal numbers to every spine.
    if clos.n_parallel == 1:
        n_leaf_npus = sizes[0] * (2 * n_inner if wiring == TOP_OF_RACK else 1)
        assert clos.n_uplinks == math.ceil(n_leaf_npus * asked[2] * (1 - 1e-9))


@given(
    st.integers(1, 4),
    st.integers(2, 60),
    st.sampled_from([8, 12, 16, 32]),
    st.sampled_from([(1.0,), (2.0,), (1.0, 2.0), (1.0, 3.0)]),
    st.sampled_from(["rail_optimized", "rail_only", "top_of_rack"]),
    st.sampled_from([1, 2]),
    st.sampled_from([None, 50e9, 100e9]),
    st.sampled_from([None, 100e9]),
)
def test_a_stack_is_built_as_the_same_cluster_without_a_plan(
    n_nics: int,
    n_hosts: int,
    radix: int,
    tapers: tuple[float, ...],
    wiring: str,
    n_planes: int,
    port_Bps: float | None,
    uplink_Bps: float | None,
) -> None:
    order = ClusterOrder(
        n_hosts,
        2 * n_nics,
        50e9,
        radix,
        port_Bps,
        uplink_Bps,
        tapers=tapers,
        wiring=wiring,
        n_planes=n_planes,
    )
    try:
        network = cluster_network(order)
    except SpecError:
        assume(False)
    shape, plane = network.shape, order.settings
    per_place = (plane.n_nics or 1) * (2 * n_nics if wiring == TOP_OF_RACK else 1)
    n_rails = 2 * n_nics if wiring == "rail_optimized" else 1
    sizes = shape.hosts_per_leaf // per_place, shape.n_leaves // n_rails, shape.n_pods
    sizes = sizes if shape.n_cores else sizes[:2]
    assume(shape.n_spines and math.prod(sizes) == n_hosts and min(sizes) > 1)
    tapers_built = network.tapers  # The stack is asked for what the cluster has.
    share = 50e9 / np.cumprod([1.0, *tapers_built])[: len(sizes)]
    notation = f"SW({2 * n_nics})_[" + "_".join(f"SW({n})" for n in sizes) + "]"
    design = _built(
        notation,
        [450, *share / GBPS],
        port_speed_Bps=50e9,
        switch_radix=radix,
        wiring=RAIL if wiring == "rail_only" else wiring,
        n_planes=n_planes,
        switch_port_Bps=port_Bps,
        uplink_Bps=uplink_Bps,
    )
    clos = design.dimensions[1].clos
    assert clos.n_switches == network.clos.n_switches
    cables = {joins: n for joins, n in network.cables.items() if n}
    assert _cables(design) == cables
    parts = design_parts(design)
    assert parts.total("n_optics") == sum(network.transceivers().values())
    assert parts.total("n_nics") == n_hosts * 2 * n_nics
    assert design.bandwidth_Bps[1:] == pytest.approx(share)


def test_failures_are_drawn_once_for_all_tiers() -> None:
    design = _built("SW(2)_[SW(4)_SW(4)]", [450, 50, 50], n_failed_links=3)
    leaf, spine = design.dimensions[1:]
    assert leaf.clos is spine.clos
    assert leaf.clos.failed.size == 6
    same = replace(leaf.clos, failed=np.zeros(0, dtype=np.int64))
    assert same == leaf.clos


def _fewest_switches(
    order: SwitchSettings, n_sets: int, n_rails: int, n_together: int
) -> int | None:
    """The fewest switches of any two tiers, else of any three, counted out by loops."""
    radix, most = order.switch_radix, range(1, order.switch_radix)
    if n_sets * n_rails * n_together <= radix:
        return 1
    two, three = [], []
    down_up = {d: math.ceil(d / order.core_oversubscription * (1 - 1e-9)) for d in most}
    in_pod = sum(d + up <= radix for d, up in down_up.items())
    for sets, spines, parallel in product(range(1, radix // n_together + 1), most, most):
        hosts, each = sets * n_together, -(-n_sets // sets)
        n_up = math.ceil(hosts / order.oversubscription * (1 - 1e-9))
        if not max(1, n_up) <= spines * parallel <= radix - hosts:
            continue
        if each * n_rails * parallel <= radix:
            two.append(each * n_rails + spines)
        for pods, leaves in product(range(2, radix + 1), range(1, radix // parallel + 1)):
            per_rail, rest = divmod(pods * leaves, n_rails)
            whole = not rest and (n_rails > in_pod or leaves % n_rails == 0)
            down = leaves * parallel
            if not whole or not each <= per_rail <= n_sets or down not in down_up:
                continue
            for wide in range(1, radix // pods + 1):
                cores = -(-down_up[down] // wide)
                if down + cores * wide <= radix:
                    three.append(pods * (leaves + spines) + spines * cores)
    return min(two or three, default=None)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([4, 5, 6, 8]),
    st.sampled_from([1, 1.5, 2, 3]),
    st.sampled_from([1, 2, 3]),
    st.integers(2, 40),
    st.sampled_from([1, 2, 3, 4, 8]),
    st.sampled_from([1, 2]),
)
def test_no_clos_of_whole_rails_has_fewer_switches(
    radix: int, taper: float, core: float, n_sets: int, n_rails: int, n_together: int
) -> None:
    order = SwitchSettings(radix, oversubscription=taper, core_oversubscription=core)
    fewest = _fewest_switches(order, n_sets, n_rails, n_together)
    hosts = n_sets * n_together
    if fewest is None:
        with pytest.raises(SpecError, match=r"expected (what|at most|leaves|two or more)"):
            plane_shape(order, hosts, n_rails, n_together)
        return
    shape = plane_shape(order, hosts, n_rails, n_together)
    assert shape.n_switches == fewest
    if shape.n_spines:  # Every rail has whole leaves, and every leaf hosts.
        assert shape.n_pods * shape.n_leaves % n_rails == 0
        assert shape.leaves_per_rail * shape.hosts_per_leaf >= hosts
        assert shape.leaves_per_rail <= n_sets


@given(
    st.sampled_from([4, 6, 8, 12]),
    st.sampled_from([1, 2, 3]),
    st.integers(1, 9),
    st.integers(1, 3),
)
def test_as_many_hosts_as_an_error_says_can_be_joined(
    radix: int, taper: float, n_rails: int, n_together: int
) -> None:
    order = SwitchSettings(radix, oversubscription=taper)
    with pytest.raises(SpecError) as error:
        plane_shape(order, 10**6 * n_together, n_rails, n_together)
    found = re.search(r"what three tiers join, at most ([\d,]+)", str(error.value))
    assume(found is not None)
    most = int(found.group(1).replace(",", ""))
    assert most % (n_rails * n_together) == 0
    assert plane_shape(order, most // n_rails, n_rails, n_together).n_switches
    with pytest.raises(SpecError):
        plane_shape(order, most // n_rails + n_together, n_rails, n_together)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--hosts 5 --npus-per-host 72 --wiring top_of_rack", "72 endpoints of one host for one"),
        ("--hosts 512 --npus-per-host 8 --port-up 25600Gbps", "uplinks that take 64 of 64 ports"),
        (
            "--hosts 600 --npus-per-host 8 --port-up 12800Gbps",
            "join leaves of all 8 rails, on 2 links each",
        ),
        ("--hosts 20481 --npus-per-host 3", "at most 61,440 at 1:1"),
    ],
)
def test_networks_that_do_not_fit_say_why(
    arguments: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "--nic", "400Gbps", *arguments.split()]) == 2
    assert text in capsys.readouterr().err


def test_one_of_a_kind_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "--nic", "400Gbps", "--hosts", "1", "--npus-per-host", "1"]) == 0
    shown = capsys.readouterr().out
    assert "1 host, 1 NIC of" in shown
    assert "1 leaf" in shown
    assert not re.search(r"\b1 (hosts|NICs|links|leaves|cables)", shown)
