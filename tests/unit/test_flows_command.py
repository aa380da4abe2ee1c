"""``libra-planner flows``: the contract, its options, and wrong input."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from libra_planner.errors import INTERRUPTED

ROOT = Path(__file__).parents[2]
EXAMPLE = (
    ROOT / "examples" / "flows" / "flowtracer_fabric.yaml",
    ROOT / "examples" / "flows" / "flowtracer_flows.csv",
)
FABRIC = """\
kind: leaf_spine
leaves: 2
spines: 2
hosts_per_leaf: 4
host_link: 1 GB/s
uplink: 1 GB/s
"""
FLOWS = """\
flow_id,src,dst,bytes,via,job
first,0,4,1000000000,0,red
"a, b",1,5,1000000000,0,blue
third,2,3,500000000,,red
"""
# Both flows between leaves over spine 0: half the rate each, and twice the ideal time.
STATISTICS = {"mean", "sd", "p5", "p50", "p95"}


@pytest.fixture
def files(tmp_path):
    def write(fabric: str = FABRIC, flows: str = FLOWS) -> tuple[Path, Path]:
        paths = tmp_path / "fabric.yaml", tmp_path / "flows.csv"
        for path, text in zip(paths, (fabric, flows), strict=True):
            path.write_text(text)
        return paths

    return write


def test_json_of_a_case_by_hand(files, run) -> None:
    result = run("flows", *files(), "--policy", "pinned", "--json")
    assert result.code == 0, result.err
    payload = result.payload
    assert (payload["policy"], payload["n_flows"], payload["seed"]) == ("pinned", 3, 0)
    names = ["host_up", "leaf_up", "spine_down", "host_down"]
    assert [layer["name"] for layer in payload["layers"]] == names
    assert payload["layers"][1] == {
        "name": "leaf_up",
        "n_links": 4,
        "n_flows": 2,
        "fim_percent": 150.0,
        "fim_floor_percent": 100.0,
        "max_over_mean": 4.0,
        "max_flows": 2,
        "idle_links": 3,
    }
    assert payload["fim_percent"] == 150.0
    assert (payload["makespan_s"], payload["ideal_makespan_s"]) == (2.0, 1.0)
    assert payload["slowdown"] == 2.0
    assert payload["busiest_links"][0] == {
        "link": "leaf 0 -> spine 0",
        "layer": "leaf_up",
        "n_flows": 2,
        "capacity_GBps": 1.0,
        "load_GBps": 1.0,
        "flows": ["first", "a, b"],
        "collectives": {"red": 1, "blue": 1},
    }


def test_rates_in_the_order_of_the_input_with_its_names(files, run, tmp_path) -> None:
    out = tmp_path / "rates.csv"
    out.write_text("old\n")
    result = run("flows", *files(), "--policy", "pinned", "--rates", out)
    assert result.code == 0
    assert "rates.csv.bak" in result.err
    assert list(csv.reader(io.StringIO(out.read_text()))) == [
        ["flow_id", "rate_GBps", "finish_s"],
        ["first", "0.5", "2.0"],
        ["a, b", "0.5", "2.0"],
        ["third", "1.0", "0.5"],
    ]


def test_flows_without_a_choice_have_no_fim(files, run) -> None:
    fabric = "kind: switch\nhosts: 4\nhost_link: 1 GB/s\n"
    flows = "flow_id,src,dst,bytes\na,0,1,1000000000\n"
    payload = run("flows", *files(fabric, flows), "--json").payload
    assert [layer["name"] for layer in payload["layers"]] == ["host_up", "host_down"]
    assert payload["fim_percent"] is None
    assert payload["makespan_s"] == payload["slowdown"] == 1.0
    text = run("flows", *files(fabric, flows)).out
    assert "No flows between switches: FIM is not defined" in text
    payload = run("flows", *files(fabric, flows), "--json", "--seeds", "3").payload
    assert payload["fim_percent"] == dict.fromkeys(STATISTICS)


def test_many_seeds_give_statistics(files, run) -> None:
    result = run("flows", *files(), "--seeds", "50", "--seed", "7", "--json")
    payload = result.payload
    assert (payload["seed"], payload["n_seeds"]) == (7, 50)
    for key in ("fim_percent", "makespan_s", "ideal_makespan_s", "slowdown"):
        assert set(payload[key]) == STATISTICS
    assert set(payload["layers"][1]["fim_percent"]) == STATISTICS
    assert payload["layers"][1]["n_links"] == 4
    # Two flows meet on a spine or not: 150 % or 100 %, the second is the floor.
    assert payload["fim_percent"]["p95"] == 150.0
    assert payload["fim_percent"]["p5"] == 100.0
    assert sum(payload["fim_histogram"]["counts"]) == 50


def test_statistics_are_those_of_the_single_seeds(files, run) -> None:
    single = [run("flows", *files(), "--seed", str(seed), "--json").payload for seed in range(3, 8)]
    many = run("flows", *files(), "--seed", "3", "--seeds", "5", "--json").payload
    for key in ("fim_percent", "makespan_s", "slowdown"):
        values = [payload[key] for payload in single]
        assert many[key]["mean"] == pytest.approx(sum(values) / 5)
        assert many[key]["p50"] == sorted(values)[2]


def test_the_same_seed_gives_the_same_bytes(run) -> None:
    one = run("flows", *EXAMPLE, "--seed", "5", "--json").out
    assert run("flows", *EXAMPLE, "--seed", "5", "--json").out == one
    assert run("flows", *EXAMPLE, "--seed", "6", "--json").out != one


def test_without_rates(files, run, tmp_path) -> None:
    payload = run("flows", *files(), "--fim-only", "--json").payload
    assert payload["makespan_s"] is payload["slowdown"] is None
    assert "Makespan" not in run("flows", *files(), "--fim-only").out
    result = run("flows", *files(), "--fim-only", "--rates", tmp_path / "r.csv")
    assert result.code == 2
    assert result.err == "--rates: got --fim-only too, which has no rates; leave one out\n"


def test_groups_and_one_flow_hop_by_hop(files, run) -> None:
    asked = ("--policy", "pinned", "--groups", "--trace", "a, b")
    payload = run("flows", *files(), *asked, "--json").payload
    assert payload["groups"][0] == {
        "layer": "leaf_up",
        "group": "leaf 0",
        "n_links": 2,
        "n_flows": 2,
        "fim_percent": 100.0,
        "max_flows": 2,
    }
    assert payload["groups"][1]["fim_percent"] is None
    assert payload["trace"]["flow_id"] == "a, b"
    assert [hop["link"] for hop in payload["trace"]["hops"]] == [
        "host 1 -> leaf 0",
        "leaf 0 -> spine 0",
        "spine 0 -> leaf 1",
        "leaf 1 -> host 5",
    ]
    text = run("flows", *files(), *asked).out
    assert "Flow a, b, host 1 to host 5, 0.5000 GB/s at first, ends at 2.000 s" in text
    assert "ECMP groups" in text
    assert "by collective: red 1, blue 1" in text
    result = run("flows", *files(), "--trace", "thrid")
    assert result.code == 2
    assert result.err.startswith("--trace: got 'thrid'")
    assert "did you mean third?" in result.err


def test_text_is_not_wrapped_and_names_what_was_done(run) -> None:
    out = run("flows", *EXAMPLE, "--policy", "ecmp", "--seed", "3").out
    assert out.startswith("ecmp (murmur hash), seed 3: 128 flows between 16 hosts, 4 leaves, 8 sp")
    assert re.search(r"FIM between switches [0-9.]+ % \(no routing goes below 0.00 %\)", out)
    assert "\nBusiest links\n  " in out
    assert max(map(len, out.splitlines())) > 100
    out = run("flows", *EXAMPLE, "--seeds", "40", "--fim-only").out
    assert "40 seeds from 0" in out
    assert "#####" in out


def test_static_routing_takes_thirty_points_off_the_imbalance(run) -> None:
    """FlowTracer's finding, on counts that the paper leaves open (arXiv 2410.17078)."""
    ecmp = run("flows", *EXAMPLE, "--seeds", "200", "--fim-only", "--json").payload
    pinned = run("flows", *EXAMPLE, "--policy", "pinned", "--json").payload
    # 32 flows on 8 uplinks of each leaf: 36.54 % on average (C10); the closed form.
    assert ecmp["fim_percent"]["mean"] == pytest.approx(36.54, abs=3 * 5.3 / 200**0.5)
    assert pinned["fim_percent"] == 0.0


def test_sprayed_flows(files, run) -> None:
    result = run("flows", *files(), "--policy", "spray", "--json", "--trace", "first")
    assert result.code == 0, result.err
    assert result.payload["slowdown"] == 1.0
    assert result.payload["layers"][1]["max_flows"] == 1
    assert result.payload["trace"]["hops"] == []
    assert (
        "sprayed over all its paths"
        in run("flows", *files(), "--policy", "spray", "--trace", "first").out
    )


@pytest.mark.parametrize(
    "policy", ["greedy", "edge_coloring", "ilp", "two_level_max_min", "annealing"]
)
def test_policies_that_know_all_flows_reach_the_floor(policy: str, files, run) -> None:
    result = run("flows", *files(), "--policy", policy, "--json")
    assert result.code == 0, result.err
    payload = result.payload
    assert payload["fim_percent"] == payload["fim_floor_percent"] == 100.0
    assert payload["slowdown"] == 1.0


def test_failed_links_and_spines(files, run) -> None:
    payload = run("flows", *files(), "--fail-spines", "1", "--json").payload
    assert payload["n_failed_links"] == 4
    assert payload["layers"][1]["n_links"] == 2
    assert payload["slowdown"] == 1.0  # The ideal has the failure too.
    assert payload["makespan_s"] == 2.0
    payload = run("flows", *files(), "--fail-links", "1", "--seeds", "9", "--json").payload
    assert payload["makespan_s"]["p95"] == 2.0
    out = run("flows", *files(), "--fail-links", "1", "--seeds", "9").out
    assert "2 of 24 links failed" in out


def test_failures_that_cut_hosts_off_are_named(files, run) -> None:
    result = run("flows", *files(), "--fail-spines", "2")
    assert result.code == 2
    assert "flows.csv: got" in result.err
    assert "host 0 -> host 4" in result.err
    payload = run("flows", *files(), "--fail-links", "2", "--seeds", "30", "--json")
    lost = payload.payload["disconnected_seeds"]
    assert lost
    assert len(lost) < 30
    assert payload.payload["n_seeds"] == 30 - len(lost)
    assert payload.err.count("seed ") == len(lost)
    result = run("flows", *files(), "--fail-spines", "2", "--seeds", "3")
    assert result.code == 2
    result = run("flows", *files(), "--fail-links", "5")
    assert result.code == 2
    assert "got 5 failed links" in result.err


HOPS = "flow,switch,egress\n1,leaf0,a\n1,spine0,x\n1,leaf1,h\n2,leaf0,b\n2,spine1,x\n2,leaf1,h\n"


def test_measured_hops(run, tmp_path) -> None:
    table, listed = tmp_path / "hops.csv", tmp_path / "all.csv"
    table.write_text(HOPS)
    listed.write_text("switch,egress\nleaf0,a\nleaf0,b\nleaf0,c\nleaf0,d\n")
    result = run("flows", "--hops", table, "--json", "--groups")
    payload = result.payload
    assert (payload["policy"], payload["n_flows"]) == ("measured", 2)
    assert payload["layers"][0]["fim_percent"] == 0.0
    assert payload["makespan_s"] is None
    assert payload["idle_links_known"] is False
    assert payload["groups"][0]["group"] == "leaf0"
    assert payload["busiest_links"][0]["flows"] == ["1", "2"]
    with_idle = run("flows", "--hops", table, "--interfaces", listed, "--json").payload
    assert with_idle["layers"][0]["fim_percent"] == 100.0
    assert with_idle["layers"][0]["idle_links"] == 2
    text = run("flows", "--hops", table, "--groups").out
    assert "a trace does not show idle links" in text
    assert "does not show" not in run("flows", "--hops", table, "--interfaces", listed).out


def test_measured_hops_on_a_known_fabric(files, run, tmp_path) -> None:
    fabric, _ = files()
    table = tmp_path / "hops.csv"
    table.write_text(HOPS)
    payload = run("flows", fabric, "--hops", table, "--json").payload
    assert payload["layers"][0]["n_links"] == 4
    assert payload["idle_links_known"] is True
    fabric.write_text(FABRIC.replace("leaves: 2", "leaves: 1").replace("spines: 2", "spines: 1"))
    result = run("flows", fabric, "--hops", table)
    assert result.code == 2
    assert "hops.csv: got 2 links with flows in layer leaf_up" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "libra-planner flows: got no FABRIC and FLOWS"),
        (["f.yaml"], "libra-planner flows: got no FLOWS"),
        (["f.yaml", "f.csv", "--hops", "h.csv"], "--hops: got a flow list too"),
        (["f.yaml", "f.csv", "--interfaces", "i.csv"], "--interfaces: got no --hops"),
        (["--hops", "h.csv", "--rates", "r.csv"], "--rates: got --hops too"),
        (["--hops", "no/such.csv"], "no/such.csv: got no such file"),
        (["no/such.yaml", "f.csv"], "no/such.yaml: got no such file"),
        (["flowtracer-16x400G", "no.csv"], "no.csv: got no such file"),
        (["flowtracer", "f.csv"], "flowtracer: got 'flowtracer', expected a known fabric preset"),
        (["f.yaml", "f.csv", "--policy", "ecpm"], "--policy: got 'ecpm'"),
        (["f.yaml", "f.csv", "--time-limit", "0"], "--policy: got a time limit of 0 s"),
        (["f.yaml", "f.csv", "--time-limit", "nan"], "--policy: got a time limit of nan s"),
        (["f.yaml", "f.csv", "--seeds", "0"], "got '0', expected a whole number from 1"),
        (["f.yaml", "f.csv", "--hash", "md5"], "invalid choice: 'md5'"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, run) -> None:
    result = run("flows", *arguments)
    assert result.code == 2
    assert result.out == ""
    assert message in result.err


def test_faults_of_the_list_begin_with_its_path_and_line(files, run) -> None:
    fabric, flows = files(flows="flow_id,src,dst,bytes\na,0,99,5\nb,3,3,-1\n")
    result = run("flows", fabric, flows)
    assert result.code == 2
    assert [line.split(": got")[0] for line in result.err.splitlines()] == [
        f"{flows}:2: dst",
        f"{flows}:3: dst",
        f"{flows}:3: bytes",
    ]


def test_results_that_cannot_be_written(files, run, tmp_path) -> None:
    result = run("flows", *files(), "--rates", tmp_path / "none" / "r.csv")
    assert result.code == 2
    assert result.err.startswith(str(tmp_path / "none" / "r.csv"))


def test_an_interrupt(files, run, monkeypatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("libra_planner.cli.flows.seed_reports", interrupted)
    assert run("flows", *files(), "--seeds", "5").code == INTERRUPTED


def test_every_kind_of_number_is_json(files, run) -> None:
    for arguments in (["--policy", "spray"], ["--policy", "pinned"], ["--seeds", "2"]):
        json.loads(run("flows", *files(), *arguments, "--groups", "--json").out)
