"""``libra-planner flows``: the contract, its options, and wrong input."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from libra_planner.check import report
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
    by_hand = {
        "name": "leaf_up",
        "n_links": 4,
        "n_flows": 2,
        "fim_percent": 150.0,
        "fim_floor_percent": 100.0,
        "max_over_mean": 4.0,
        "max_flows": 2,
        "idle_links": 3,
    }
    assert payload["layers"][1].items() >= by_hand.items()
    assert payload["fim_percent"] == 150.0
    # A policy that draws nothing runs once.
    assert (payload["n_seeds"], payload["fim_percent_sd"], payload["fim_percent_max"]) == (
        1,
        None,
        150.0,
    )
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
    assert re.search(
        r"FIM between switches [0-9.]+ % \(no routing of whole flows goes below 0.00 %\)", out
    )
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


def test_rates_of_collectives_by_hand(files, run) -> None:
    """Red and blue share spine 0, half the rate each; red's small flow inside a leaf needs less."""
    result = run("flows", *files(), "--policy", "pinned", "--json")
    payload = result.payload
    assert payload["worst_collective_rate_GBps"] == 0.5
    assert payload["sprayed_worst_collective_rate_GBps"] == 1.0
    assert payload["two_level_GBps"] == [0.5, 0.5]
    assert payload["collective_times_s"] == {"red": 2.0, "blue": 2.0}
    row = {"collective": "red", "n_flows": 2, "rate_GBps": 0.5, "sprayed_GBps": 1.0, "time_s": 2.0}
    assert payload["worst_collectives"][0] == row
    assert "collective_times_s" not in run("flows", *files(), "--policy", "pinned").out
    text = run("flows", *files(), "--policy", "pinned").out
    assert "Slowest of 2 collectives 0.5000 GB/s; sprayed 1.00 GB/s" in text
    assert re.search(r"red +2 +0\.50 +1\.00 +2\.000 s", text)
    one = FLOWS.replace(",job", "").replace(",red", "").replace(",blue", "")
    single = run("flows", *files(flows=one), "--policy", "greedy", "--json").payload
    assert single["collective_times_s"] == {"all flows": 1.0}
    assert "Slowest flow 1.00 GB/s" in run("flows", *files(flows=one), "--policy", "greedy").out
    none = run("flows", *files(), "--policy", "greedy", "--fim-only", "--json").payload
    assert none["two_level_GBps"] is None
    assert none["worst_collective_rate_GBps"] is None


@pytest.mark.parametrize("failures", [(), ("--fail-links", "1"), ("--fail-links", "1%")])
def test_rates_of_collectives_over_seeds_are_means_of_those_of_each(failures, files, run) -> None:
    """Of the k-th worst, and of each collective's time."""
    line = ("flows", *files(), *failures, "--json")
    every = [run(*line, "--seed", str(seed)).payload for seed in range(6)]
    assert len({tuple(one["two_level_GBps"]) for one in every}) > bool(not failures)
    found = run(*line, "--seeds", "6").payload
    mean = np.mean([one["two_level_GBps"] for one in every], axis=0)
    assert found["two_level_GBps"] == pytest.approx(mean)
    worst = [one["worst_collective_rate_GBps"] for one in every]
    assert found["worst_collective_rate_GBps"]["mean"] == pytest.approx(np.mean(worst))
    assert found["worst_collective_rate_GBps_min"] == min(worst)
    for name in ("red", "blue"):
        mean_s = np.mean([one["collective_times_s"][name] for one in every])
        assert found["collective_times_s"][name] == pytest.approx(mean_s)


def test_all_policies_in_one_table(files, run) -> None:
    """The rows are the figures of each policy by itself; of equal ones none is left out."""
    result = run("flows", *files(), "--compare", "--json")
    assert result.code == 0, result.err
    rows = {row["policy"]: row for row in result.payload["policies"]}
    assert {"ecmp", "spray", "greedy", "two_level_max_min"} < set(rows)
    assert "pinned" not in rows
    for name in ("ecmp", "ilp"):
        alone = run("flows", *files(), "--policy", name, "--json").payload
        for key in (
            "fim_percent",
            "two_level_GBps",
            "makespan_s",
            "worst_collective_rate_GBps_max",
        ):
            assert rows[name][key] == alone[key]
    every = [row for row in rows if row != "ecmp"]  # Whose mean is worse: it puts both on a spine.
    assert result.payload["fairest"] == every
    text = run("flows", *files(), "--compare", "--fail-links", "1", "--seed", "1").out
    assert "1 of 4 cables between switches failed" in text
    assert re.search(r"two_level_max_min +1 ", text)
    refused = run("flows", *files(), "--compare", "--policy", "ecmp")
    assert (refused.code, refused.out) == (2, "")
    assert "--compare: got --policy too, expected all policies; leave one out" in refused.err
    assert run("flows", *files(flows="flow_id,src,dst,bytes\na,0,1,0\n"), "--compare").code == 0


def test_a_comparison_says_how_far_it_is(files, run, monkeypatch) -> None:
    """On a terminal, and beside the policy that takes long."""
    assert run("flows", *files(), "--compare").err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    told = run("flows", *files(), "--compare").err
    assert "10 of 10 seeds of ecmp" in told
    assert re.findall(r"(\d+) of 7 policies", told) == [str(i) for i in range(1, 8)]


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


@pytest.mark.parametrize("number", ["9" * 5000, "0" * 5000 + "9", "0" * 20 + "9" * 20])
def test_a_failed_switch_of_thousands_of_digits(number: str, files, run) -> None:
    result = run("flows", *files(f"{FABRIC}failed: [[leaf {number}, spine 0]]\n"))
    assert result.code == 2
    assert "failed.0: got 'leaf " in result.err
    assert "expected a leaf of 0 .. 1" in result.err
    zeros = "0" * 5000
    found = run("flows", *files(f"{FABRIC}failed: [[leaf {zeros}, spine 0]]\n"), "--json")
    assert found.payload["n_failed_links"] == 2


def test_failed_links_and_spines(files, run) -> None:
    payload = run("flows", *files(), "--fail-spines", "1", "--json").payload
    assert payload["n_failed_links"] == 4
    assert payload["layers"][1]["n_links"] == 2
    assert payload["slowdown"] == 1.0  # The ideal has the failure too.
    assert payload["makespan_s"] == 2.0
    payload = run("flows", *files(), "--fail-links", "1", "--seeds", "9", "--json").payload
    assert payload["makespan_s"]["p95"] == 2.0
    out = run("flows", *files(), "--fail-links", "1", "--seeds", "9").out
    assert "1 of 4 cables between switches failed" in out


def test_the_floor_of_many_draws_of_failures_is_the_mean_of_theirs(run) -> None:
    asked = ("flows", *EXAMPLE, "--fim-only", "--fail-links", "12")
    floors = [
        run(*asked, "--seed", str(seed), "--json").payload["fim_floor_percent"] for seed in range(5)
    ]
    assert floors[0] != pytest.approx(sum(floors) / 5)
    text = run(*asked, "--seeds", "5").out
    assert f"(no routing of whole flows goes below {sum(floors) / 5:.2f} %)" in text


def test_sprayed_packets_have_no_floor(run, files) -> None:
    """One flow over two uplinks of each leaf: 100 % at best for whole flows, 0 % sprayed."""
    flows = "flow_id,src,dst,bytes\na,0,4,1000000000\nb,5,1,1000000000\n"
    for seeds in ("1", "2"):
        asked = ("flows", *files(flows=flows), "--seeds", seeds)
        assert "goes below 100.00 %" in run(*asked).out
        result = run(*asked, "--policy", "spray")
        assert "FIM between switches 0.00 %\n" in result.out
    layers = run(*asked[:3], "--policy", "spray", "--json").payload["layers"]
    assert [layer["fim_floor_percent"] for layer in layers[1:3]] == [None, None]


def test_failures_that_cut_hosts_off_are_named(files, run) -> None:
    result = run("flows", *files(), "--fail-spines", "2", "--seed", "0")
    assert result.code == 2
    assert "flows.csv: got" in result.err
    assert "host 0 -> host 4" in result.err
    payload = run("flows", *files(), "--fail-links", "2", "--seeds", "30", "--json")
    lost = payload.payload["disconnected_seeds"]
    assert lost
    assert len(lost) < 30
    assert payload.payload["n_seeds"] == 30 - len(lost)
    assert payload.err.count(": seed ") == len(lost)
    assert all("flows.csv: seed" in line for line in payload.err.splitlines())
    text = " ".join(run("flows", *files(), "--fail-links", "2", "--seeds", "30").out.split())
    assert f"{30 - len(lost)} of 30 seeds from 0 ({len(lost)} cut hosts off): 3 flows" in text
    assert f"Left out: seeds {lost[0]}, {lost[1]}, " in text
    result = run("flows", *files(), "--fail-spines", "2", "--seeds", "3")
    assert result.code == 2
    for seeds in ("1", "3"):
        result = run("flows", *files(), "--fail-links", "5", "--seeds", seeds)
        assert result.code == 2
        assert result.err.count("got 5 failed links") == 1


def test_a_flow_pinned_to_a_failed_link_has_its_name_and_line(files, run) -> None:
    fabric, flows = files(FABRIC + "failed: [[leaf 0, spine 0]]\n")
    result = run("flows", fabric, flows, "--policy", "pinned")
    assert (result.code, result.out) == (2, "")
    message = f"{flows}:2: flow 'first': got a path pinned to leaf 0 -> spine 0, which f"
    assert result.err.startswith(message)


def test_failures_are_cables_and_even_spraying_is_no_ideal(files, run) -> None:
    broken = FABRIC + "failed: [[leaf 0, spine 0], [host 3, leaf 0]]\n"
    text = run("flows", *files(broken, FLOWS.replace("third,2,3", "third,2,1"))).out
    failed = ", 1 of 4 cables between switches failed, 1 of 8 cables to hosts failed\n"
    assert failed in text
    assert ", sprayed evenly 2.000 s: slowdown 1.000x" in text
    assert ", ideal (sprayed) 1.000 s: slowdown" in run("flows", *files()).out


def test_whole_flows_can_beat_even_spraying_where_cables_failed(files, run) -> None:
    """Leaf 0 has lost spine 1, so that its flow needs spine 0 for itself.

    Evenly sprayed, half of the other flow goes there too: 1 + 1/2 on one link, 1.5 s. Apart both
    take 1 s.
    """
    fabric = FABRIC.replace("leaves: 2", "leaves: 3") + "failed: [[leaf 0, spine 1]]\n"
    flows = "flow_id,src,dst,bytes\na,0,8,1000000000\nb,4,9,1000000000\n"
    found = run("flows", *files(fabric, flows), "--policy", "greedy", "--json").payload
    assert (found["makespan_s"], found["ideal_makespan_s"]) == pytest.approx((1.0, 1.5))
    text = run("flows", *files(fabric, flows), "--policy", "greedy").out
    assert "Makespan 1.000 s, sprayed evenly 1.500 s: slowdown 0.667x" in text


def test_odd_figures_in_text(files, run) -> None:
    flows = "flow_id,src,dst,bytes\na,0,4,0\n"
    text = run("flows", *files(flows=flows), "--seed", "0").out
    assert "slowdown -\n" in text
    assert "seed 0: 1 flow between 8 hosts, 2 leaves, 2 spines\n" in text
    flows = "flow_id,src,dst,bytes\n\x1b[31mred,0,4,20\n"
    text = run("flows", *files(flows=flows), "--seeds", "3").out
    assert "Seeds by FIM between switches, %: all 3 at 150.00\n" in text  # 1, 0, 0, 0
    assert re.search(r" makespan ns +20.000 ", text)
    assert ("\x1b" in text, r"\x1b[31mred" in text) == (False, True)


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
    assert "hops.csv: got 2 links in layer leaf_up" in result.err
    table.write_text(HOPS.replace("spine", "agg"))
    result = run("flows", files()[0], "--hops", table)
    assert (result.code, result.out) == (2, "")
    assert "hops.csv: got layers called leaf_to_agg, agg_to_leaf, expected" in result.err


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
        (
            ["f.yaml", "f.csv", "--policy=ilp", "--time-limit", "0"],
            "--time-limit: got a time limit of 0",
        ),
        (["f.yaml", "f.csv", "--time-limit", "3"], "--time-limit: got --policy ecmp, expected ilp"),
        (
            ["f.yaml", "f.csv", "--policy", "greedy", "--hash", "murmur"],
            "--hash: got --policy greedy, expected ecmp; leave one out",
        ),
        (["f.yaml", "f.csv", "--policy=spray", "--shared-seed"], "--shared-seed: got --policy spr"),
        (["f.yaml", "f.csv", "--policy=ilp", "--enhanced"], "--enhanced: got --policy ilp"),
        (
            ["f.yaml", "f.csv", "--per-collective"],
            "--per-collective: got --policy ecmp, expected greedy or edge_coloring; ",
        ),
        (["f.yaml", "f.csv", "--rates", "f.csv"], "--rates: got f.csv, which is read"),
        (["f.yaml", "f.csv", "--rates", "./f.yaml"], "--rates: got f.yaml, which is read"),
        (["f.yaml", "f.csv", "--rates", "-", "--json"], "--rates -: got --json too, and stdout"),
        (["f.yaml", "f.csv", "--rates", "-", "--trace", "a"], "--rates -: got --trace too"),
        (["f.yaml", "f.csv", "--rates", "-", "--groups"], "--rates -: got --groups too"),
        (["--hops", "h.csv", "--policy", "ecmp"], "--policy: got --hops too"),
        (["--hops", "h.csv", "--seed", "0"], "--seed: got --hops too"),
        (["--hops", "h.csv", "--seeds", "1"], "--seeds: got --hops too"),
        (["--hops", "h.csv", "--hash", "crc32"], "--hash: got --hops too"),
        (["--hops", "h.csv", "--fail-links", "0"], "--fail-links: got --hops too"),
        (["--hops", "h.csv", "--fim-only"], "--fim-only: got --hops too"),
        (["--hops", "h.csv", "--trace", "a"], "--trace: got --hops too, whose flows have their"),
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

    monkeypatch.setattr(report, "seed_reports", interrupted)
    assert run("flows", *files(), "--seeds", "5").code == INTERRUPTED


def test_every_kind_of_number_is_json(files, run) -> None:
    for arguments in (["--policy", "spray"], ["--policy", "pinned"], ["--seeds", "2"]):
        json.loads(run("flows", *files(), *arguments, "--groups", "--json").out)


EXAMPLES = Path(__file__).parents[2] / "examples" / "flows"
FLOWTRACER = EXAMPLES / "flowtracer_fabric.yaml", EXAMPLES / "flowtracer_flows.csv"


def test_one_seed_does_not_decide(run) -> None:
    """Without a seed the keys of one routing hold the mean of ten."""
    found = run("flows", *FLOWTRACER, "--json").payload
    singles = [run("flows", *FLOWTRACER, "--seed", seed, "--json").payload for seed in range(10)]
    assert (found["seed"], found["n_seeds"]) == (0, 10)
    assert [one["n_seeds"] for one in singles] == [1] * 10
    for key in ("fim_percent", "makespan_s", "slowdown"):
        samples = [one[key] for one in singles]
        assert found[key] == pytest.approx(np.mean(samples), rel=1e-12)
        assert found[f"{key}_sd"] == pytest.approx(np.std(samples, ddof=1), rel=1e-12)
        assert (found[f"{key}_min"], found[f"{key}_max"]) == (min(samples), max(samples))
        assert singles[0][f"{key}_sd"] is None  # One routing has no spread.
    assert found["fim_percent_min"] < found["fim_percent"] < found["fim_percent_max"]
    for i, layer in enumerate(found["layers"]):
        for key in ("max_flows", "idle_links"):
            samples = [one["layers"][i][key] for one in singles]
            assert isinstance(layer[key], int)
            assert abs(layer[key] - np.mean(samples)) <= 0.5
            assert (layer[f"{key}_min"], layer[f"{key}_max"]) == (min(samples), max(samples))
    text = run("flows", *FLOWTRACER).out
    least, most = found["fim_percent_min"], found["fim_percent_max"]
    spread = f"mean of 10 routings, from {least:.2f} % to {most:.2f} %"
    assert f"FIM between switches {found['fim_percent']:.2f} %, {spread} (no routing" in text
    assert "mean of" not in run("flows", *FLOWTRACER, "--seed", "3").out
    assert "mean of" not in run("flows", *FLOWTRACER, "--policy", "greedy").out


def test_a_number_of_seeds_gives_statistics_as_before(run) -> None:
    found = run("flows", *FLOWTRACER, "--seeds", "3", "--json").payload
    singles = [run("flows", *FLOWTRACER, "--seed", seed, "--json").payload for seed in range(3)]
    assert found["fim_percent"].keys() == {"mean", "sd", "p5", "p50", "p95"}
    # The spread stands under the names that it has without options.
    for key in ("fim_percent", "makespan_s", "slowdown"):
        samples = [one[key] for one in singles]
        assert found[f"{key}_sd"] == found[key]["sd"] > 0
        assert (found[f"{key}_min"], found[f"{key}_max"]) == (min(samples), max(samples))
    usual = run("flows", *FLOWTRACER, "--json").payload
    assert found.keys() - usual.keys() == {"fim_histogram"}
    for i, (layer, beside) in enumerate(zip(found["layers"], usual["layers"], strict=True)):
        assert layer.keys() == beside.keys()
        idle = [one["layers"][i]["idle_links"] for one in singles]
        assert layer["idle_links"]["mean"] == pytest.approx(np.mean(idle))
        assert (layer["idle_links_min"], layer["idle_links_max"]) == (min(idle), max(idle))


def test_what_draws_no_path_names_no_seeds(run) -> None:
    for seeds in ((), ("--seeds", "3"), ("--seed", "4")):
        text = run("flows", *FLOWTRACER, "--policy", "greedy", *seeds).out
        assert text.startswith("greedy: no path is drawn, one routing: 128 flows")
        assert "means of" not in text
        assert "Over the seeds" not in text
        assert "of seed" not in text
    found = run("flows", *FLOWTRACER, "--policy", "greedy", "--seeds", "3", "--json").payload
    assert (found["n_seeds"], found["n_routings"]) == (3, 1)
    assert found["fim_percent"].keys() == STATISTICS
    assert run("flows", *FLOWTRACER, "--seeds", "3", "--json").payload["n_routings"] == 3
    drawn = run("flows", *FLOWTRACER, "--policy", "greedy", "--fail-links", "1", "--seeds", "3")
    assert drawn.out.startswith("greedy, 3 seeds from 0: 128 flows")


def test_a_proof_by_bytes_says_that_fim_counts_flows(files, run) -> None:
    said = "(load: bytes over speed, whereas FIM counts flows)"
    text = run("flows", *files(), "--policy", "ilp").out
    assert "the busiest link less " + said in text
    alike = run("flows", *files(flows=FLOWS.replace("500000000", "1000000000")), "--policy", "ilp")
    assert "Proven" in alike.out
    assert said not in alike.out


def test_the_even_fabric_of_the_examples_says_why_it_cannot_be_pinned(run) -> None:
    fabric = EXAMPLES / "flowtracer_fabric_1to1.yaml"
    assert run("flows", fabric, FLOWTRACER[1], "--policy", "pinned").code == 2
    named = "`--policy pinned` is refused here"
    assert named in fabric.read_text()
    even = run("flows", fabric, FLOWTRACER[1], "--policy", "edge_coloring", "--json").payload
    assert (even["fim_percent"], even["slowdown"]) == (0, 1)
