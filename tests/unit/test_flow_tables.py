"""Flow lists, hop tables and fabric files: what is read, and every way to get one wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.check.measured import measured_report
from libra_planner.check.report import FlowList
from libra_planner.errors import SpecError
from libra_planner.fabric.clos import Clos
from libra_planner.inputs.fabrics import link_ends, load_fabric
from libra_planner.inputs.flow_tables import read_flows, read_hops
from libra_planner.reading.tables import Table, TableFaults

FABRIC = Clos(hosts_per_leaf=4, n_leaves=3, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
LEAF_SPINE = """\
kind: leaf_spine
leaves: 3
spines: 2
hosts_per_leaf: 4
links_per_leaf_spine: 2
host_link: 100 Gbps
uplink: 50 GB/s
"""
THREE_TIER = """\
kind: three_tier
pods: 2
leaves: 2
spines: 2
cores: 2
hosts_per_leaf: 4
host_link: 400 Gbit/s
uplink: 400 Gbps
core_link: 800 Gbps
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str | bytes, name: str = "f.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def read(write) -> Callable[..., FlowList]:
    def read(text: str | bytes, pinned: bool = False, fabric: Clos = FABRIC) -> FlowList:
        return read_flows(write(text), fabric, pinned=pinned)

    return read


@pytest.fixture
def faults(read, tmp_path) -> Callable[..., list[str]]:
    """Messages of a wrong flow list, without the folder."""

    def faults(text: str | bytes, pinned: bool = False, fabric: Clos = FABRIC) -> list[str]:
        with pytest.raises(SpecError) as error:
            read(text, pinned, fabric)
        return str(error.value).replace(f"{tmp_path}/", "").splitlines()

    return faults


def test_columns_have_any_order_and_optional_ones_default(read) -> None:
    listed = read("bytes,dst,flow_id,src\n1e3,4,a,0\n20,5,7,1\n")
    assert list(listed.ids) == ["a", "7"]
    assert listed.flows.src.tolist() == [0, 1]
    assert listed.flows.dst.tolist() == [4, 5]
    assert listed.flows.size_bytes.tolist() == [1000.0, 20.0]
    assert listed.flows.src_port.tolist() == listed.flows.via.tolist() == [-1, -1]
    assert listed.flows.collective.tolist() == [0, 0]
    assert listed.collectives == ()


def test_source_ports_and_collectives(read) -> None:
    text = "flow_id,src,dst,bytes,src_port,job\na,0,4,1,65535,x\nb,1,5,1,,y\nc,2,6,1,0,x\n"
    listed = read(text)
    assert listed.flows.src_port.tolist() == [65535, -1, 0]
    assert listed.flows.collective.tolist() == [0, 1, 0]
    assert listed.collectives == ("x", "y")


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfflow_id,src,dst,bytes\na,0,4,8\nb,1,5,8\n",
        "flow_id,src,dst,bytes\r\na,0,4,8\r\nb,1,5,8\r\n",
        "flow_id,src,dst,bytes\ra,0,4,8\rb,1,5,8",
        "\n\nflow_id,src,dst,bytes\n\na,0,4,8\n , ,,\nb,1,5,8\n\n",
        '"flow_id","src","dst","bytes"\n"a","0","4","8"\n"b",1,5,8.0\n',
        " flow_id , src, dst ,bytes\na, 0, 4 ,8\nb,1,5 , 8\n",
    ],
)
def test_other_spellings_of_the_same_list(text, read) -> None:
    listed = read(text)
    assert list(listed.ids) == ["a", "b"]
    assert listed.flows.src.tolist() == [0, 1]
    assert listed.flows.size_bytes.tolist() == [8.0, 8.0]


def test_lines_are_those_of_the_file_with_blank_lines_and_breaks_inside_cells(read, faults) -> None:
    text = 'flow_id,src,dst,bytes\n\n"a\nb",0,4,8\nc,1,5,8\n'
    listed = read(text)
    assert listed.lines.tolist() == [3, 5]
    assert list(listed.ids) == ["a\nb", "c"]
    assert faults(text + "d,1,99,8\n") == ["f.csv:6: dst: got '99', expected a host of 0 .. 11"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,12,4,8", "src: got '12', expected a host of 0 .. 11"),
        ("a,-1,4,8", "src: got '-1', expected a host of 0 .. 11"),
        ("a,h1,4,8", "src: got 'h1', expected a host of 0 .. 11"),
        ("a,,4,8", "src: got nothing, expected a host of 0 .. 11"),
        ("a,1,1.5,8", "dst: got '1.5', expected a host of 0 .. 11"),
        ("a,1,0x4,8", "dst: got '0x4', expected a host of 0 .. 11"),
        ("a,1,1_0,8", "dst: got '1_0', expected a host of 0 .. 11"),
        ("a,4,4,8", "dst: got '4', expected another host than src"),
        ("a,1,4,-8", "bytes: got '-8', expected a number of bytes from 0 to 1e+18"),
        ("a,1,4,nan", "bytes: got 'nan', expected a number of bytes from 0 to 1e+18"),
        ("a,1,4,inf", "bytes: got 'inf', expected a number of bytes from 0 to 1e+18"),
        ("a,1,4,1e999", "bytes: got '1e999', expected a number of bytes from 0 to 1e+18"),
        ("a,1,4,1 GB", "bytes: got '1 GB', expected a number of bytes from 0 to 1e+18"),
        ("a,1,4,", "bytes: got nothing, expected a number of bytes from 0 to 1e+18"),
        (",1,4,8", "flow_id: got nothing, expected a name of the flow"),
        ("z,1,4,8", "flow_id: got 'z', expected it once (first on line 2)"),
        ("a,1,4", "got 3 cells, expected 4, as the first line has"),
        ("a,1,4,8,9", "got 5 cells, expected 4, as the first line has"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(row: str, message: str, faults) -> None:
    text = f"flow_id,src,dst,bytes\nz,0,4,8\n{row}\ny,1,5,8\n"
    assert faults(text) == [f"f.csv:3: {message}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.csv: got an empty file, expected column names"),
        ("\n \n", "f.csv: got an empty file, expected column names"),
        ("flow_id,src,dst,bytes\n", "f.csv: got no flows, expected one row or more"),
        (
            "flow_id,src,bytes\na,0,8\n",
            "f.csv:1: got no column dst, expected the columns flow_id, src, dst, bytes",
        ),
        (
            "flow_id,src,src,dst,bytes\na,0,0,4,8\n",
            "f.csv:1: got the column 'src' twice, expected it once",
        ),
        (
            "flow_id,src,dst,bytes,vai\na,0,4,8,1\n",
            "f.csv:1: got the column 'vai', expected a known column; did you mean via?",
        ),
        (
            "flow_id,src,dst,bytes,collective,job\na,0,4,8,1,1\n",
            "f.csv:1: got the column 'collective' twice, expected it once",
        ),
        (
            'flow_id,src,dst,bytes\na,0,4,8\n"b,1,5,8\n',
            "f.csv:3: got malformed CSV (unexpected end of data)",
        ),
    ],
)
def test_wrong_files(text: str, message: str, faults) -> None:
    assert faults(text) == [message]


def test_bytes_that_are_no_text(faults) -> None:
    assert "got bytes that are not UTF-8" in faults(b"flow_id,src,dst,bytes\n\xff,0,4,8\n")[0]


def test_all_faults_in_the_order_of_lines_then_how_many_more(faults) -> None:
    rows = [f"f{i},0,{4 if i % 2 else 0},{'x' if i % 3 == 0 else 8}" for i in range(40)]
    found = faults("flow_id,src,dst,bytes\n" + "\n".join(rows) + "\n")
    assert len(found) == 11
    lines = [int(fault.split(":")[1]) for fault in found[:10]]
    assert lines == sorted(lines)
    assert lines[0] == 2
    assert found[10] == "f.csv: got 24 more faults like these"  # 20 equal hosts, 14 sizes: 34


def test_one_bad_line_among_very_many(faults) -> None:
    rows = [f"f{i},{i % 4},{4 + i % 8},1000,0,1" for i in range(50_000)]
    rows[31_234] = "f31234,0,4,1000,0,70000"
    text = "flow_id,src,dst,bytes,via,src_port\n" + "\n".join(rows)
    message = "f.csv:31236: src_port: got '70000', expected a port of 0 .. 65535, or nothing"
    assert faults(text) == [message]


_CELLS = st.one_of(
    st.integers(-5, 20).map(str),
    st.floats(allow_nan=True).map(repr),
    st.text("0123456789+-.eE _,x", max_size=5),
)


@given(st.lists(_CELLS, min_size=1, max_size=6))
def test_numbers_of_a_column_are_those_of_its_cells(cells: list[str]) -> None:
    table = Table({"x": cells}, np.arange(len(cells)), TableFaults("f.csv"))
    for value, cell in zip(table.numbers("x").tolist(), cells, strict=True):
        plain = re.fullmatch(r" *[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)? *", cell)
        assert value == float(cell) if plain else np.isnan(value)


VIA = "flow_id,src,dst,bytes,via\n"


def test_via_is_read_by_pinned_between_leaves_only(read) -> None:
    text = VIA + "a,0,4,8,1\nb,0,1,8,99\nc,1,5,8,0.0\n"
    assert read(text, pinned=True).flows.via.tolist() == [1, -1, 0]
    assert read(VIA + "a,0,4,8,77\n").flows.via.tolist() == [-1]
    assert read("flow_id,src,dst,bytes\na,0,1,8\n", pinned=True).flows.via.tolist() == [-1]


@pytest.mark.parametrize(
    ("via", "got"), [("2", "'2'"), ("-1", "'-1'"), ("0.5", "'0.5'"), ("x", "'x'")]
)
def test_wrong_vias(via: str, got: str, faults) -> None:
    message = f"f.csv:3: via: got {got}, expected a spine of 0 .. 1"
    assert faults(VIA + f"z,0,4,8,0\na,1,5,8,{via}\n", pinned=True) == [message]


def test_pinned_needs_a_via_between_leaves(faults) -> None:
    blank = "f.csv:3: via: got nothing, expected a spine of 0 .. 1 for the policy pinned"
    assert faults(VIA + "z,0,1,8,\na,1,5,8,\n", pinned=True)[0].startswith(blank)
    (missing,) = faults("flow_id,src,dst,bytes\nz,0,1,8\na,1,5,8\n", pinned=True)
    assert missing.startswith("f.csv:1: got no column via, but the flow on line 3")


def test_the_ports_of_one_switch_are_not_those_of_a_leaf(write) -> None:
    text = "kind: switch\nhosts: 4\nhost_link: 1 GB/s\nswitch_radix: 3\n"
    with pytest.raises(SpecError, match="got 3, but a switch needs 4 ports"):
        load_fabric(str(write(text, "f.yaml")))


def test_via_between_pods_is_a_core(read, faults) -> None:
    fabric = Clos(2, 2, 2, 1.0, 1.0, n_pods=2, n_cores=3, core_Bps=1.0)
    text = VIA + "a,0,4,8,5\nb,0,2,8,1\n"
    assert read(text, pinned=True, fabric=fabric).flows.via.tolist() == [5, 1]
    found = faults(VIA + "a,0,4,8,6\nb,0,2,8,2\n", pinned=True, fabric=fabric)
    assert [fault.split("expected ")[1] for fault in found] == [
        "a core of 0 .. 5",
        "a spine of 0 .. 1",
    ]


def test_hosts_of_separate_planes(faults) -> None:
    fabric = Clos(2, 2, 2, 1.0, 1.0, n_planes=2)
    message = "f.csv:2: dst: got '4', expected a host that the fabric joins to src"
    assert faults("flow_id,src,dst,bytes\na,0,4,8\n", fabric=fabric) == [message]


def test_fabric_files(write) -> None:
    fabric = load_fabric(str(write(LEAF_SPINE, "f.yaml")))
    assert (fabric.n_hosts, fabric.n_switches) == (12, {"leaf": 3, "spine": 2})
    assert (fabric.host_Bps, fabric.uplink_Bps, fabric.n_parallel) == (12.5e9, 50e9, 2)
    fabric = load_fabric(str(write(THREE_TIER, "f.yaml")))
    assert fabric.n_switches == {"leaf": 4, "spine": 4, "core": 4}
    assert (fabric.core_Bps, fabric.n_hosts) == (100e9, 16)
    fabric = load_fabric(str(write("kind: switch\nhosts: 6\nhost_link: 1 GB/s\n", "f.yaml")))
    assert [layer.name for layer in fabric.layers] == ["host_up", "host_down"]
    assert load_fabric("flowtracer-16x400G").n_switches == {"leaf": 4, "spine": 8}


@pytest.mark.parametrize(
    ("entry", "links"),
    [
        ("[leaf 1, spine 0]", ["leaf 1 (link 0) -> spine 0", "leaf 1 (link 1) -> spine 0"]),
        ("[spine 0, leaf 1, 1]", ["leaf 1 (link 1) -> spine 0"]),
        ("[host 5, leaf 1]", ["host 5 -> leaf 1"]),
        ("[spine 1]", [f"leaf {i} (link {k}) -> spine 1" for i in range(3) for k in range(2)]),
    ],
)
def test_failed_cables(entry: str, links: list[str], write) -> None:
    fabric = load_fabric(str(write(LEAF_SPINE + f"failed: [{entry}]\n", "f.yaml")))
    names = [fabric.link_name(int(link)) for link in fabric.failed]
    assert names[: len(links)] == links
    turned = {" -> ".join(name.split(" -> ")[::-1]) for name in names[: len(links)]}
    assert set(names[len(links) :]) == turned
    assert len(names) == 2 * len(links)


def test_names_of_ends_agree_with_those_of_links(write) -> None:
    fabric = load_fabric(str(write(THREE_TIER.replace("cores: 2", "cores: 3"), "f.yaml")))
    for layer in fabric.layers[:3]:
        lower, upper, _ = link_ends(fabric, layer)
        tiers = {"host_up": ("host", "leaf"), "leaf_up": ("leaf", "spine")}
        below, above = tiers.get(layer.name, ("spine", "core"))
        for i in range(layer.n_links):
            name = fabric.link_name(layer.start + i)
            assert name == f"{below} {lower[i]} -> {above} {upper[i]}"


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("kind: leaf_spine\n", "", ["1:1: kind: got nothing, expected this key"]),
        ("leaf_spine\n", "leafspine\n", ["1:7: kind: got 'leafspine'", "did you mean leaf_spine?"]),
        ("spines: 2\n", "", ["got nothing, expected this key; add 'spines:'"]),
        ("spines: 2", "spines: 0", ["3:9: spines: got 0, expected at least 1"]),
        ("spines: 2", "spines: 2.5", ["3:9: spines: got 2.5, expected a whole number"]),
        ("uplink: 50 GB/s", "uplink: 50", ["7:9: uplink: got 50 without a unit"]),
        ("100 Gbps", "100 Gb/s", ["6:12: host_link: got the unit 'Gb/s'"]),
        ("100 Gbps", "0 Gbps", ["6:12: host_link: got '0 Gbps'"]),
        ("100 Gbps", "[1]", ["6:12: host_link: got a list"]),
        ("spines: 2", "spines: 2\nspins: 3", ["4:1: spins: got the unknown key 'spins'"]),
        ("kind", "switch_radix: 7\nkind", ["1:15: switch_radix: got 7, but a leaf needs 8 ports"]),
        (
            "kind",
            "switch_radix: 4\nkind",
            ["a leaf needs 8 ports and a spine needs 6 ports, expected ports enough"],
        ),
        ("kind", "failed: [[leaf 9, spine 0]]\nkind", ["1:10: failed.0: got 'leaf 9'", "0 .. 2"]),
        ("kind", "failed: [[leaf 1, leaf 2]]\nkind", ["no cable between leaf 1 and leaf 2"]),
        ("kind", "failed: [[rack 1]]\nkind", ["got 'rack 1', expected the two ends of a cable"]),
        ("kind", "failed: [[leaf 1, spine 0, 2]]\nkind", ["no cable between leaf 1 and spine 0"]),
        ("kind", "failed: [[leaf 1, spine 0, x]]\nkind", ["got 'x' for the number of a parallel"]),
        ("kind", "failed: [[]]\nkind", ["got 0 entries, expected the two ends"]),
        ("leaves: 3\nspines: 2", "leaves: 1000000\nspines: 9", ["expected at most 20,000,000"]),
    ],
)
def test_wrong_fabrics(old: str, new: str, messages: list[str], write) -> None:
    text = LEAF_SPINE
    assert old in text
    path = write(text.replace(old, new, 1), "f.yaml")
    with pytest.raises(SpecError) as error:
        load_fabric(str(path))
    assert str(error.value).startswith(str(path))
    for message in messages:
        assert message in str(error.value)


def test_all_faults_of_a_fabric_at_once(write) -> None:
    text = LEAF_SPINE.replace("100 Gbps", "fast").replace("50 GB/s", "50")
    with pytest.raises(SpecError) as error:
        load_fabric(str(write(text + "switch_radix: 2\nfailed: [[leaf 7]]\n", "f.yaml")))
    assert len(error.value.faults) == 4


def test_the_radix_counts_the_ports_in_use(write) -> None:
    load_fabric(str(write(LEAF_SPINE + "switch_radix: 8\n", "f.yaml")))
    path = write(THREE_TIER + "switch_radix: 5\n", "f.yaml")
    with pytest.raises(SpecError, match="a leaf needs 6 ports"):
        load_fabric(str(path))


HOPS = """\
flow,switch,egress
a,leaf0,up0
a,spine0,p1
a,leaf1,h0
b,leaf0,up0
b,spine0,p1
b,leaf1,h1
c,leaf0,up1
c,spine1,p1
c,leaf1,h0
"""
INTERFACES = "switch,egress,layer\n" + "".join(
    f"leaf{leaf},up{k},\nspine{k},p{leaf},\n" for leaf in range(2) for k in range(2)
)


def test_layers_of_measured_hops_follow_from_their_paths(write) -> None:
    report = measured_report(read_hops(write(HOPS)))
    assert [layer.name for layer in report.layers] == ["leaf_up", "spine_down", "host_down"]
    up, down, host = report.layers
    assert (up.n_links, up.n_flows, up.max_flows, up.n_idle) == (2, 3, 2, 0)
    assert up.fim_percent == down.fim_percent == pytest.approx(100 / 3)  # 2 and 1 flows
    assert up.fim_floor_percent == pytest.approx(100 / 3)  # 3 flows on 2 links
    assert host.is_host
    assert not report.counts_idle
    assert report.fim_percent == pytest.approx(100 / 3)
    assert [(g.layer, g.group, g.n_flows) for g in report.groups] == [
        ("leaf_up", "leaf0", 3),
        ("spine_down", "spine0", 2),
        ("spine_down", "spine1", 1),
    ]


def test_idle_interfaces_count_where_they_are_listed(write) -> None:
    report = measured_report(read_hops(write(HOPS), write(INTERFACES, "i.csv")))
    up, down, _ = report.layers
    assert (up.n_links, up.n_idle, down.n_links, down.n_idle) == (4, 2, 4, 2)
    assert up.fim_percent == pytest.approx(100 / 4 * (2 - 0.75 + 0.25 + 0.75 * 2) / 0.75)
    assert report.counts_idle
    assert up.fim_floor_percent == pytest.approx(up.fim_percent)  # All three have to leave leaf 0.


def test_a_known_fabric_gives_the_same_counts_of_idle_links(write) -> None:
    fabric = Clos(2, 2, 2, 1.0, 1.0)
    trace = read_hops(write(HOPS))
    by_fabric = measured_report(trace, fabric)
    by_list = measured_report(read_hops(write(HOPS), write(INTERFACES, "i.csv")))
    assert by_fabric.fim_percent == pytest.approx(by_list.fim_percent)
    with pytest.raises(SpecError, match="got 2 links in layer leaf_up"):
        measured_report(trace, Clos(4, 1, 1, 1.0, 1.0))


def test_the_floor_of_a_known_fabric_counts_its_idle_links(write) -> None:
    """Three flows of leaf 0 on its two of four uplinks, ideal 3/4: 2, 1, 0, 0 is the best."""
    trace = read_hops(write(HOPS))
    up, down, _ = measured_report(trace, Clos(2, 2, 2, 1.0, 1.0)).layers
    floor = 100 / 4 * (2 - 0.75 + 0.25 + 0.75 * 2) / 0.75
    assert up.fim_floor_percent == down.fim_floor_percent == pytest.approx(floor)
    broken = Clos(2, 2, 2, 1.0, 1.0, failed=np.array([7, 11]))
    assert np.isnan(measured_report(trace, broken).fim_floor_percent)
    narrow = Clos(2, 4, 1, 1.0, 1.0)  # One uplink per leaf: the trace has two of leaf 0.
    assert np.isnan(measured_report(trace, narrow).fim_floor_percent)


def test_a_known_fabric_refuses_layers_that_it_does_not_have(write) -> None:
    other = HOPS.replace("leaf", "tor").replace("spine", "agg")
    message = "got layers called tor_to_agg, agg_to_tor, tor_to_host, expected those of the fabric"
    with pytest.raises(SpecError, match=f"{message}.*; name the layers in a column layer, or"):
        measured_report(read_hops(write(other)), Clos(2, 2, 2, 1.0, 1.0))


def test_a_trace_does_not_tell_the_pods_whose_demand_core_links_share(write) -> None:
    text = "flow,switch,egress\na,leaf0,u\na,spine0,c\na,core0,p\na,spine2,l\na,leaf2,h\n"
    report = measured_report(read_hops(write(text)))
    known = {layer.name: not np.isnan(layer.fim_floor_percent) for layer in report.layers}
    assert known == {
        "leaf_up": True,
        "spine_up": False,
        "core_down": False,
        "spine_down": True,
        "host_down": True,
    }
    assert np.isnan(report.fim_floor_percent)


def test_other_names_of_columns_and_tiers(write) -> None:
    text = "flow_id,switch,interface\na,tor-1,e1\na,agg-2,e9\na,tor-3,e5\n"
    report = measured_report(read_hops(write(text)))
    names = {layer.name for layer in report.layers}
    assert names == {"tor_to_agg", "agg_to_tor", "tor_to_host"}
    assert [layer.is_host for layer in report.layers if layer.name == "tor_to_host"] == [True]


@pytest.mark.parametrize(
    ("leaf", "spine"),
    [
        ("leaf{}", "spine{}"),
        ("leaf{}:Ethernet1/49", "spine{}:Ethernet3/2"),
        ("leaf{} et-0/0/1", "spine{} et-0/0/7"),
        ("leaf{}/swp1s0", "spine{}/swp31"),
        ("pod1-leaf{}", "pod1-spine{}"),
        ("dc1-leaf-0{}.net", "dc1-spine-0{}.net"),
        ("dc1-LEAF{}-HundredGigE0/0/0/3", "dc1-Spine{}_eth2"),
    ],
)
def test_ports_are_ports_of_a_switch_and_no_layers(leaf: str, spine: str, write) -> None:
    """Whatever the switches and the ports are called: the same layers, links and groups."""
    path = [(leaf, "Ethernet1/49"), (spine, "et-0/0/{}"), (leaf, "swp1s0")]
    rows = ["flow,switch,egress"]
    for flow, ends in enumerate([(0, 0, 1), (0, 1, 2), (3, 1, 1)]):
        for (name, port), number in zip(path, ends, strict=True):
            rows.append(f"f{flow},{name.format(number)},{port.format(flow)}")
    report = measured_report(read_hops(write("\n".join(rows))))
    found = [(layer.name, layer.n_links, layer.n_flows) for layer in report.layers]
    assert found == [("leaf_up", 2, 3), ("spine_down", 3, 3), ("host_down", 2, 3)]
    assert [group.n_flows for group in report.groups] == [2, 1, 1, 2]


def test_a_port_in_place_of_a_switch_is_refused(write) -> None:
    text = "flow,switch,egress\na,Ethernet1/1,Ethernet1/49\na,spine1,e\n"
    with pytest.raises(SpecError, match=r"2: switch: got 'Ethernet1/1', expected the name of a sw"):
        read_hops(write(text))


def test_a_column_of_layers_needs_no_order(write) -> None:
    rows = [line.split(",") for line in HOPS.splitlines()[1:]]
    layer = {"u": "leaf_up", "p": "spine_down", "h": "host_down"}
    lines = [f"{layer[e[0]]},{e},{s},{f}" for f, s, e in sorted(rows, key=lambda row: row[2])]
    shuffled = read_hops(write("layer,egress,switch,flow\n" + "\n".join(lines), "s.csv"))
    ordered = read_hops(write(HOPS))
    for a, b in zip(measured_report(shuffled).layers, measured_report(ordered).layers, strict=True):
        assert (a.name, a.n_flows, a.fim_percent) == (b.name, b.n_flows, b.fim_percent)


def test_a_trace_of_simulated_flows_gives_the_simulated_imbalance(write) -> None:
    from libra_planner.check.report import flow_report
    from libra_planner.fabric.clos import Flows
    from libra_planner.routing.policy import Policy

    fabric = Clos(4, 4, 4, 1.0, 1.0, n_parallel=2)
    src = np.repeat(np.arange(16), 5)
    dst = (src + 4 + np.arange(80) % 5) % 16
    report = flow_report(
        fabric, Flows(src, dst, np.ones(80)), Policy("ecmp"), seed=3, with_rates=False
    )
    assert report.links is not None
    lines = ["flow,switch,egress"]
    for flow, links in enumerate(report.links):
        for link in links[links >= 0][1:]:
            switch = fabric.link_name(int(link)).split(" -> ")[0].split(" (")[0].replace(" ", "")
            lines.append(f"{flow},{switch},{link}")
    measured = measured_report(read_hops(write("\n".join(lines))), fabric)
    predicted = {layer.name: layer for layer in report.layers}
    for layer in measured.layers:
        twin = predicted[layer.name]
        assert layer.fim_percent == pytest.approx(twin.fim_percent)
        assert (layer.n_links, layer.n_flows, layer.n_idle) == (
            twin.n_links,
            twin.n_flows,
            twin.n_idle,
        )
    assert measured.fim_percent == pytest.approx(report.fim_percent)


@pytest.mark.parametrize(
    ("text", "interfaces", "message"),
    [
        ("flow,switch\na,b\n", None, "f.csv:1: got no column egress"),
        ("flow,switch,egress\n", None, "f.csv: got no hops, expected one row or more"),
        ("flow,switch,egress\na,,e\n", None, "f.csv:2: switch: got nothing, expected a name"),
        (HOPS + "a,leaf0,up0\n", None, "f.csv:11: egress: got 'up0', expected each hop of a flow"),
        (
            HOPS + "d,spine0,p1\nd,core1,x\n",
            None,
            "f.csv:11: egress: got 'p1', expected an interface of layer spine_up, but it is of "
            "spine_down on line 3",
        ),
        (HOPS, "switch,egress\n", "i.csv: got no interfaces, expected one row or more"),
        (
            HOPS,
            "switch,egress\nleaf0,up0\n",
            "f.csv:8: egress: got 'up1', expected an interface that",
        ),
        (
            HOPS,
            "switch,egress\nleaf0,up0\nleaf0,up1\nleaf1,h0\nleaf1,h1\nleaf1,up0\n",
            "i.csv:6: egress: got 'up0', expected its layer in a column layer",
        ),
    ],
)
def test_wrong_hop_tables(text, interfaces, message, write, tmp_path) -> None:
    listed = None if interfaces is None else write(interfaces, "i.csv")
    with pytest.raises(SpecError) as error:
        read_hops(write(text), listed)
    assert message in str(error.value).replace(f"{tmp_path}/", "")
