"""``libra-planner check`` and ``optimize --routing``."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import libra_planner as lp
from libra_planner.check.degraded import drawn_failures
from libra_planner.check.exposed import Exposed
from libra_planner.check.hotspots import FlowNames, hotspot, traced_flow
from libra_planner.check.links import LinkCheck, link_check
from libra_planner.check.rerouted import routed_optimum
from libra_planner.fabric.parts import design_parts
from libra_planner.routing.policy import Policy
from libra_planner.views.check import CheckedPlan, check_blocks
from libra_planner.views.phases import contention_lines, exposed_table, hotspot_blocks
from libra_planner.views.renderers.terminal import show

EXAMPLES = Path(__file__).parents[2] / "examples"

# One all-reduce of 4 GB after a second of compute, on four NPUs and two leaves.
WORKLOAD = """\
kind: table
source: by hand
operations:
  - {layer: a, phase: weight_grad, compute_ns: 1000000000,
     collective: {kind: all-reduce, size_bytes: 4000000000}}
"""
SMALL = """\
workload: hand.yaml
fabric:
  topology: SW(4)
  tiers: [pod]
  realization:
    switch_radix: 4
    leaves: 2
    spines: 2
parallelism: {dp: 4}
cost_model: libra-ispass24
constraints:
  - total == 10 GB/s
algorithms: [halving_doubling]
"""
TWO_DIMS = """\
workload: gpt3-libra
fabric:
  topology: FC(8)_SW(32)
  tiers: [node, pod]
  realization: {switch_radix: 16, port_speed: 400 Gbps, wiring: rail_optimized}
parallelism: {tp: 8, dp: 32}
cost_model: libra-ispass24
constraints:
  - total == 200 GB/s
"""
ONE_UPLINK = ("spines: 2", "spines: 1\n    oversubscription: 2")


@pytest.fixture
def small(plan, tmp_path) -> Callable[..., Path]:
    """Four NPUs, all-reduce by halving-doubling: 6 GB per NPU at 10 GB/s take 0.6 s."""
    (tmp_path / "hand.yaml").write_text(WORKLOAD)
    return lambda *replacements, **named: plan(*replacements, text=SMALL, **named)


@pytest.mark.parametrize(
    ("placement", "seconds"),
    [
        # Two thirds of the bytes go to the neighbour on the leaf, 0.4 s; one third crosses,
        # two flows on one uplink, 0.2 s twice over.
        ("contiguous", 1 + 0.4 + 0.4),
        # Neighbours are on different leaves: two thirds cross.
        ("rail", 1 + 0.8 + 0.2),
    ],
)
def test_half_the_uplinks_take_twice_the_time(placement, seconds, small, run) -> None:
    found = run("check", small(ONE_UPLINK), "--placement", placement, "--json").payload
    assert found["ideal_step_time_s"] == pytest.approx(1.6)
    assert found["spray_step_time_s"] == pytest.approx(seconds)
    assert found["effective_step_time_s"] == pytest.approx(seconds)
    assert found["slowdown"] == pytest.approx(seconds / 1.6)
    assert found["fim_percent"] == 0
    [dimension] = found["dimensions"]
    assert dimension["efficiency"] == pytest.approx(0.6 / (seconds - 1))
    assert found["hotspot"] is None
    text = run("check", small(ONE_UPLINK), "--placement", placement).out
    assert f"The links cost {seconds / 1.6 - 1:+.2%} step time, ecmp +0.00%" in text


def test_whole_links_that_save_time_say_why(run) -> None:
    text = run("check", "07_check", "--brief").out
    assert "\nOn whole links the step is 0.27% shorter (NICs come whole, or sends find" in text
    assert "The links cost" not in text


def test_a_brief_check_leaves_out_links_and_parts(run) -> None:
    """What it prints stands in the long one, too."""
    long, brief = (run("check", "07_check", *x).out.splitlines() for x in ((), ("--brief",)))
    left_out = "--brief leaves out the tables of collectives, layers, links and parts"
    assert left_out in brief
    assert len(brief) < len(long) / 2 + 10
    assert {*brief} - {*long} == {left_out}
    for name in ("Step time", "Exposed communication", "GB/s per NPU", "Note: "):
        assert any(line.startswith(name) for line in brief)
    assert not any(line.startswith(("Layers", "Busiest links", "Switches")) for line in brief)


def test_flows_that_meet_take_twice_the_time(small, run) -> None:
    """Two flows of each leaf on two uplinks meet (0.4 s) or not (0.2 s).

    Both leaves' flows part in a quarter of the draws: 1.75 s on average, and FIM is 0 or 100 for
    each leaf, 50 on average. Greedy parts them always.
    """
    path = small()
    found = run("check", path, "--seeds", "400", "--json").payload
    seconds, n = found["effective_step_time_s"], 400
    assert (seconds["p5"], seconds["p50"], seconds["p95"]) == pytest.approx((1.6, 1.8, 1.8))
    assert abs(seconds["mean"] - 1.75) < 3 * np.sqrt(0.2**2 * 3 / 16 / n)
    assert abs(found["fim_percent"]["mean"] - 50) < 3 * np.sqrt(50**2 / 2 / n)
    assert found["slowdown"]["mean"] == pytest.approx(seconds["mean"] / 1.6)
    assert (found["seed"], found["n_seeds"]) == (0, n)
    assert sum(found["step_time_histogram"]["counts"]) == n
    greedy = run("check", path, "--policy", "greedy", "--json").payload
    assert greedy["effective_step_time_s"] == pytest.approx(1.6)
    assert (greedy["hash"], greedy["fim_percent"], greedy["hotspot"]) == (None, 0, None)


def test_seeds_are_those_of_single_runs(small, run) -> None:
    singles = [
        run("check", small(), "--seed", seed, "--json").payload["effective_step_time_s"]
        for seed in (12, 13, 14)
    ]
    several = run("check", small(), "--seed", "12", "--seeds", "3", "--json").payload
    assert several["effective_step_time_s"]["mean"] == pytest.approx(np.mean(singles))


def test_the_hotspot_names_the_flows_that_meet(small, run) -> None:
    path = small()
    seed = next(
        str(seed)
        for seed in range(20)
        if run("check", path, "--seed", str(seed), "--json").payload["hotspot"]
    )
    arguments = ("check", path, "--seed", seed, "--groups")
    hot = run(*arguments, "--json").payload["hotspot"]
    assert (hot["dimension"], hot["round"], hot["slowdown"]) == ("dim1", "step 2 of 2", 2.0)
    assert hot["collectives"] == ["weight grad all-reduce, dp"]
    busiest = hot["busiest_links"][0]
    assert (busiest["n_flows"], busiest["layer"]) == (2, "leaf_up")
    assert busiest["flows"] in (["0-2", "1-3"], ["2-0", "3-1"])
    assert max(group["fim_percent"] for group in hot["groups"]) == 100
    traced = run(*arguments, "--trace", busiest["flows"][0], "--json").payload["hotspot"]["trace"]
    assert busiest["link"] in [hop["link"] for hop in traced["hops"]]
    text = run(*arguments, "--trace", busiest["flows"][0]).out
    named = ", ".join(busiest["flows"]).replace("-", "->")  # 775-7 would look like a range.
    assert f"{busiest['link']}  2 flows: NPUs {named}" in text
    assert f"Flow {busiest['flows'][0]}, host" in text
    assert "  in step 2 of 2 on dim1" in text
    # Neighbours talk in the first round, which loses nothing.
    other = run(*arguments, "--trace", "0-1", "--json").payload["hotspot"]["trace"]
    assert (other["flow"], other["dimension"], other["round"]) == ("0-1", "dim1", "step 1 of 2")
    assert [hop["link"] for hop in other["hops"]] == ["host 0 -> leaf 0", "leaf 0 -> host 1"]
    assert "  in step 1 of 2 on dim1" in run(*arguments, "--trace", "0-1").out
    result = run(*arguments, "--trace", "0-3")
    assert result.code == 2
    assert (
        "--trace: got '0-3', expected a flow of step 2 of 2 on dim1, such as 0-2, or" in result.err
    )
    assert "ECMP groups" in text


@pytest.mark.parametrize(("policy", "n_hops"), [("greedy", 4), ("spray", 0)])
def test_a_flow_is_followed_where_nothing_is_lost(small, run, policy: str, n_hops: int) -> None:
    """0 and 2 stand at two leaves, over a spine: 4 links, one flow on each; sprayed over all."""
    arguments = ("check", small(), "--policy", policy, "--trace")
    found = run(*arguments, "0-2", "--json").payload
    assert found["hotspot"] is None
    assert [hop["n_flows"] for hop in found["trace"]["hops"]] == [1] * n_hops
    assert (found["trace"]["flow"], found["trace"]["round"]) == ("0-2", "step 2 of 2")
    text = run(*arguments, "0-2").out
    assert "Flow 0-2, host 0 to host 2\n" in text
    assert ("sprayed over all its paths" in text) is (n_hops == 0)
    assert "--trace: got '0-3', expected a flow of " in run(*arguments, "0-3").err


def test_sprayed_packets_have_no_floor(small, run) -> None:
    found = run("check", small(), "--policy", "spray", "--json").payload
    assert found["dimensions"][0]["fim_percent"] == 0
    assert found["dimensions"][0]["fim_floor_percent"] is None
    assert found["phases"][0]["fim_floor_percent"] is None
    assert run("check", small(), "--json").payload["phases"][0]["fim_floor_percent"] == 0


def test_names_of_flows() -> None:
    names = FlowNames(np.array([0, 0, 1, 1]), np.array([2, 2, 3, 3]), n_pairs=2)
    assert list(names) == ["0-2.0", "0-2.1", "1-3.0", "1-3.1"]
    assert [names.number_of(name) for name in names] == [0, 1, 2, 3]
    assert names.number_of("1-3") == 2
    for wrong in ("0-3", "0-2.2", "0", "a-b", "0-2.x", "0-2-4", ""):
        assert names.number_of(wrong) is None


def test_json_holds_the_numbers_of_the_core(plan, run) -> None:
    path = plan(text=TWO_DIMS + "algorithms: [default, halving_doubling]\n")
    arguments = ("--bandwidth", "150,60", "--seeds", "3", "--seed", "5", "--queue-pairs", "2")
    found = run("check", path, *arguments, "--json").payload
    problem = lp.load_plan(path)
    traffic = problem.realization.traffic
    links = link_check(
        problem,
        np.array([150e9, 60e9]),
        traffic=replace(traffic, n_queue_pairs=2),
    )
    report = links.report(Policy("ecmp"), seeds=[5, 6, 7])
    assert found["effective_step_time_s"]["mean"] == pytest.approx(
        report.effective_step_time_s.mean(), rel=1e-12
    )
    assert found["spray_step_time_s"] == report.spray_step_time_s
    assert found["ideal_step_time_s"] == report.ideal_step_time_s
    assert found["fim_percent"]["p50"] == np.median(report.fim_percent)
    assert (found["bandwidth_GBps"], found["realized_GBps"]) == ([150, 60], [150, 100])
    assert not found["optimized"]
    [broken] = found["violated"]
    assert (broken["rule"], broken["line"]) == ("total == 200 GB/s", 9)
    parts = design_parts(report.design).dimensions
    for row, one, part in zip(found["dimensions"], report.dimensions, parts, strict=True):
        assert (row["dimension"], row["tier"]) == (one.label, one.tier)
        assert row["n_switches"] == part.n_switches == sum(x["n_switches"] for x in row["switches"])
        assert row["n_optics"] == part.n_optics
    node, pod = found["dimensions"]
    assert node["fim_percent"] == {"mean": None, "sd": None, "p5": None, "p50": None, "p95": None}
    assert pod["efficiency"]["mean"] == pytest.approx(
        report.dimensions[1].efficiency.mean(), rel=1e-12
    )
    [(phase, users)] = report.phases
    [row] = found["phases"]
    [spread] = report.spreads  # Means as in the text, not the first seed's.
    assert row["slowdown"] == pytest.approx(spread["slowdown"].mean(), rel=1e-12)
    assert row["fim_percent"] == pytest.approx(spread["fim_percent"].mean(), rel=1e-12)
    assert row["slowdown"] != phase.slowdown
    for key in ("effective_step_time_s", "slowdown", "fim_percent"):
        samples = getattr(report, key)
        assert found[f"{key}_sd"] == found[key]["sd"] > 0
        assert (found[f"{key}_min"], found[f"{key}_max"]) == (samples.min(), samples.max())
    assert row["collectives"] == [user.label for user in users]
    layers = {layer["name"]: layer for layer in row["worst_round"]["layers"]}
    assert layers["leaf_up"]["fim_percent"] == phase.worst.layers[1].fim_percent


def test_the_plan_is_optimised_first(plan, run) -> None:
    path = plan(text=TWO_DIMS)
    optimum = run("optimize", path, "--json").payload
    found = run("check", path, "--json").payload
    assert found["optimized"]
    assert found["bandwidth_GBps"] == optimum["bandwidth_GBps"]
    assert found["ideal_step_time_s"] == pytest.approx(optimum["step_time_s"])
    assert "the plan's own optimum, found first" in run("check", path).out
    vector = ",".join(map(repr, optimum["bandwidth_GBps"]))
    assert "per NPU: as given" in run("check", path, "--bandwidth", vector).out


def test_bounds_on_the_step_time_hold_on_the_links(small, run) -> None:
    bound = ("  - total == 10 GB/s", "  - total == 10 GB/s\n  - step_time <= 1.7 s")
    found = run("check", small(ONE_UPLINK, bound), "--json").payload
    assert found["violated"] == []
    [late] = found["violated_on_links"]
    assert (late["rule"], late["line"]) == ("step_time <= 1.7 s", 14)
    assert late["by"] == pytest.approx(0.1)
    text = run("check", small(ONE_UPLINK, bound)).out
    assert "Breaks a rule on its links: step_time <= 1.7 s (line 14), by 100.000 ms" in text
    assert "Breaks a rule" not in run("check", small(bound), "--policy", "greedy").out


def test_rules_that_whole_ports_break_are_said(plan, run) -> None:
    """129 GB/s come as three ports of 50: 20.99 more than the rule has."""
    found = run("check", "07_check", "--seed", "0", "--json").payload
    [broken] = found["violated_by_ports"]
    assert (found["violated"], broken["rule"]) == ([], "total == 300 GB/s")
    assert broken["by"] == pytest.approx(sum(found["realized_GBps"]) - 300)
    given = run("check", "07_check", "--seed", "0", "--bandwidth", "150,150")
    assert "Whole ports break" not in given.out


def test_same_plan_same_bytes(plan, run) -> None:
    arguments = ("check", plan(text=TWO_DIMS), "--seeds", "2", "--fail-links", "3", "--json")
    assert run(*arguments).out == run(*arguments).out


def test_fim_over_seeds_stands_beside_its_floor(run) -> None:
    """A ring over few uplinks leaves the others idle: all of its FIM is floor, none is routing's."""
    found = run("check", "0e_rails_2to1", "--seeds", "2", "--json").payload
    known = [one for one in found["dimensions"] if one["fim_floor_percent"] is not None]
    worst = max(known, key=lambda one: one["fim_percent"]["mean"] - one["fim_floor_percent"])
    assert worst["dimension"] == "dim3"
    assert known[0]["fim_percent"]["mean"] == known[0]["fim_floor_percent"] == 187.5
    text = run("check", "0e_rails_2to1", "--seeds", "2").out
    name = f"FIM % of {worst['dimension']}, floor {worst['fim_floor_percent']:.2f}"
    assert re.search(rf"{re.escape(name)} +{worst['fim_percent']['mean']:.3f}", text)


def test_direct_links_have_no_imbalance(plan, run) -> None:
    path = plan(("RI(4)_FC(8)_RI(4)_SW(32)", "RI(4)_FC(8)_RI(4)_FC(32)"))
    found = run("check", path, "--json").payload
    assert (found["fim_percent"], found["phases"], found["hotspot"]) == (None, [], None)
    assert found["effective_step_time_s"] == found["spray_step_time_s"]
    assert "direct links offer no choice of path" in "\n".join(found["notes"])
    # TP 16 has 4 of FC(8): its own links are 3 of 7 (C6), which the optimum does not know.
    assert found["slowdown"] > 1.1
    several = run("check", path, "--seeds", "2").out
    assert "FIM %" in several
    assert "Loses most" not in several


def test_a_switch_by_itself_has_no_imbalance(plan, run) -> None:
    found = run("check", plan(), "--json").payload
    assert found["fim_percent"] is None
    assert found["dimensions"][3]["switches"] == [
        {"tier": "leaf", "n_switches": 128, "n_ports_used": 4096, "n_ports_free": 4096}
    ]
    notes = "\n".join(found["notes"])
    assert "dim4: one switch per network offers no choice of path: no FIM" in notes
    assert "the plan has no fabric.realization" in notes


@pytest.mark.parametrize("width", [80, 100, 200])
def test_text_names_every_dimension_and_fits(width: int, plan) -> None:
    problem = lp.load_plan(plan(text=TWO_DIMS))
    links = link_check(problem, np.array([150e9, 60e9]))
    checked = CheckedPlan(
        links, links.report(Policy("ecmp"), seeds=range(12)), False, statistics=True
    )
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    hot = hotspot(links, checked.report)
    assert hot is not None
    assert hot.routed is not None
    traced = traced_flow(links, checked.report, hot.routed.flows.ids[0])
    worst = hotspot_blocks(checked.report, hot, n_busiest=3, groups=True, traced=traced)
    show(console, check_blocks(checked, worst))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for name in ("ideal: all bandwidth", "every packet sprayed", "ecmp, mean", "ecmp, p95"):
        assert name in text
    for row in ("dim1", "dim2"):
        assert any(line.startswith(f" {row}") for line in text.splitlines())
    for name in ("Seeds by step time", "leaf-spine", "npu-npu", "weight grad all-reduce, dp"):
        assert name in text


def test_nothing_wraps_off_a_terminal(run) -> None:
    text = run("check", EXAMPLES / "07_check.yaml").out
    assert any(len(line) > 130 for line in text.splitlines() if line.startswith("Note:"))
    assert "3 NICs of 50.00 GB/s per NPU, 129.01 GB/s is asked for" in text


def test_ecmp_costs_time_in_the_example(run) -> None:
    halving = ("--set", "algorithms=[default, halving_doubling]")
    found = run("check", EXAMPLES / "07_check.yaml", *halving, "--seeds", "3", "--json").payload
    assert found["spray_step_time_s"] < found["ideal_step_time_s"]  # NICs come whole.
    assert found["slowdown"]["mean"] > 1.03
    arguments = ("check", EXAMPLES / "07_check.yaml", *halving, "--policy", "greedy", "--json")
    greedy = run(*arguments).payload
    assert greedy["effective_step_time_s"] == pytest.approx(found["spray_step_time_s"])


def test_a_high_floor_is_no_all_clear(run) -> None:
    """Few flows on many links: FIM near its floor, twice the time under ecmp, none of it lost by
    greedy, which has the same floor."""
    plan, line = EXAMPLES / "07_check.yaml", "dim2: few whole flows on many links (floor 188.28)"
    ecmp = run("check", plan, "--seeds", "3").out
    assert "a high floor: too few whole flows for so many links" in ecmp
    assert f"{line}, so two that meet" in ecmp
    assert "sprayed packets (--policy spray)" in ecmp
    greedy = run("check", plan, "--policy", "greedy").out
    assert "188.28   188.28" in greedy
    assert line not in greedy
    assert "a high floor" not in run("check", plan, "--policy", "spray").out


def test_contention_that_the_model_has_none_of() -> None:
    both = Exposed("contention of EDP and EP on dim2", 0.0, 0.25)
    [line] = [x for x in contention_lines([both]) if x.startswith("none by the model")]
    assert "compute hides all that share them" in line
    rows = exposed_table([both], 1.0)
    assert rows is not None
    assert [one.value for one in rows.rows[0][1:]] == ["none", "250.000 ms", "+250.000 ms"]
    assert not any("none" in x for x in contention_lines([replace(both, model_s=0.1)]))


def test_failures_are_the_study_of_the_core(plan, run) -> None:
    path = plan(text=TWO_DIMS)
    arguments = ("check", path, "--bandwidth", "150,50", "--fail-links", "4", "--fail-spines", "1")
    found = run(*arguments, "--seeds", "3", "--json").payload["failures"]
    links = link_check(lp.load_plan(path), np.array([150e9, 50e9]))
    study = drawn_failures(links, Policy("ecmp"), n_links=4, n_spines=1, seeds=range(3))
    assert found["step_time_s"]["mean"] == pytest.approx(study.step_time_s.mean(), rel=1e-12)
    assert found["whole_step_time_s"] == study.whole_step_time_s
    assert [case["name"] for case in found["cases"]] == ["seed 0", "seed 1", "seed 2"]
    text = run(*arguments, "--seeds", "3").out
    assert "With 4 cables and 1 spine failed, 3 cases: step time " in text


def test_single_failures_are_worst_first(small, run) -> None:
    found = run("check", small(), "--policy", "spray", "--n-1", "--json").payload["single_failures"]
    # Any cable or spine: one of two uplinks of a leaf is left for the crossing third.
    assert (found["n_cases"], found["n_disconnected"]) == (6, 0)
    assert [case["step_time_s"] for case in found["cases"]] == pytest.approx([1.8] * 6)
    assert found["whole_step_time_s"] == pytest.approx(1.6)
    text = run("check", small(), "--policy", "spray", "--n-1", "--busiest", "2").out
    assert "With any one cable or spine failed (N-1), 6 cases: step time 1.800 s" in text
    listed = [line for line in text.splitlines() if line.startswith("  dim1: ")]
    ends = [line.partition("; ")[2] for line in listed]  # One line for all that are alike.
    assert sorted(ends) == ["2 of 2 alike", "4 of 4 alike"]


def test_failures_are_told_by_what_fails_and_by_tier(small, run) -> None:
    """Of two uplinks one is left: 7.5 of 10 GB/s; without a leaf, or a NIC's cable, none is."""
    arguments = ("check", small(), "--policy", "spray", "--n-1")
    found = run(*arguments, "--json").payload["single_failures"]
    parts = {
        one["part"]: (one["n_parts"], one["slowdown_mean"], one["n_ports_cut_off"])
        for one in found["parts"]
    }
    slower = pytest.approx(1.8 / 1.6)
    assert parts == {
        "dim1: leaf - spine cable": (4, slower, 0),
        "dim1: spine": (2, slower, 0),
        "dim1: leaf": (2, None, 2),
        "dim1: NIC - leaf cable": (4, None, 1),
    }
    [tier] = found["tiers"]
    assert (tier["whole_GBps"], tier["least_GBps"]) == pytest.approx((10, 7.5))
    text = run(*arguments).out
    assert re.search(r"dim1: spine +2 +\+12.50% +\+12.50% +0  spine [01] *\n", text)
    assert re.search(r"dim1: leaf +2 +stops +stops +2  any *\n", text)
    assert re.search(r"dim1 +\S+ +10.00 +7.50 +7.50 *\n", text)
    drawn = run("check", small(), "--policy", "spray", "--fail-links", "1", "--json").payload
    assert drawn["failures"]["tiers"] == [pytest.approx(tier)]
    assert "parts" not in drawn["failures"]


@pytest.mark.parametrize(("share", "n"), [("5%", "1"), ("25%", "1"), ("26%", "2")])
def test_a_share_of_the_cables_fails_rounded_up(share: str, n: str, small, run) -> None:
    """Of four between leaves and spines."""
    one = ("check", small(), "--policy", "spray", "--seeds", "2", "--fail-links")
    found, counted = (run(*one, x, "--json").payload["failures"] for x in (share, n))
    assert found == counted
    text = run(*one, share).out
    assert f"With {share} of the cables failed, 2 cases" in text
    head = " ".join(text.partition("Step time\n")[0].split())
    assert f"These figures are of whole links; with {share} of the cables failed" in head
    assert "whole links;" not in run("check", small(), "--policy", "spray").out
    wrong = run(*one, "0%")
    assert wrong.code == 2
    assert (
        "got '0%', expected a whole number from 0 to 1000000, or a share of them such" in wrong.err
    )


def test_failures_that_cut_hosts_off_are_named(small, run) -> None:
    one = ("--fail-links", "1", "--seed", "0", "--json")
    found = run("check", small(ONE_UPLINK), *one).payload["failures"]
    assert (found["n_disconnected"], found["step_time_s"]["mean"]) == (1, None)
    assert "dim1: got 4 pairs of NPUs" in found["cases"][0]["disconnected"]
    assert "NPU 0 -> NPU 2" in found["cases"][0]["disconnected"]
    pinned = run("check", small(), "--fail-links", "1", "--policy", "pinned", "--json").payload
    assert re.match(
        r"dim1: NPU \d -> NPU \d: got a path pinned to .*, which failed",
        pinned["failures"]["cases"][0]["disconnected"],
    )
    text = run("check", small(ONE_UPLINK), "--n-1").out
    assert "3 cases: all cut hosts off" in text
    assert "NPU 0 -> NPU 2" in text


def test_several_jobs(small, run) -> None:
    """Two jobs of four on four leaves of two: apart they lose nothing, mixed they meet."""
    automatic = ("    leaves: 2\n    spines: 2\n", "")
    plans = small(automatic, name="a.yaml"), small(automatic, name="b.yaml")
    arguments = ("check", *plans, "--policy", "spray", "--bandwidth", "10")
    apart = run(*arguments, "--json").payload
    assert [job["slowdown"] for job in apart["jobs"]] == pytest.approx([1, 1])
    assert [job["plan"] for job in apart["jobs"]] == [str(path) for path in plans]
    assert (apart["topology"], apart["n_npus"], apart["shared"]["dimension"]) == (
        "SW(8)",
        8,
        "dim1",
    )
    text = run(*arguments, "--placement", "rail").out
    assert "2 jobs on SW(8), 8 NPUs, sharing dim1 (pod)" in text
    assert all(path.name in text for path in plans)


def test_routed_optimum_is_that_of_the_core(plan, run) -> None:
    path = EXAMPLES / "07_check.yaml"
    found = run("optimize", path, "--routing", "ecmp", "--json").payload
    core = routed_optimum(lp.load_plan(path), Policy("ecmp"))
    routing = found["routing"]
    mean_s = core.best.check.effective_step_time_s.mean()
    assert routing["effective_step_time_s"] == pytest.approx(mean_s, rel=1e-12)
    assert (routing["n_seeds"], len(core.best.check.seeds)) == (10, 10)
    assert (routing["converged"], routing["n_rounds"]) == (core.converged, len(core.rounds))
    assert found["bandwidth_GBps"] == [value / 1e9 for value in core.best.bandwidth_Bps]
    assert found["step_time_s"] == pytest.approx(routing["ideal_step_time_s"])
    blind = run("optimize", path, "--json").payload
    assert routing["blind"]["bandwidth_GBps"] == blind["bandwidth_GBps"]
    assert found.keys() >= blind.keys()
    # Nothing is claimed.
    assert found["status"] == "checked"
    proofs = ("optimality_gap", "lower_bound", "unique", "shadow_prices", "price_sensitivity")
    assert [found[key] for key in proofs] == [None] * 5
    assert any("no optimality is claimed" in note for note in found["notes"])
    # The effective step time of the example is 0.1 to 0.2 % better than that of the blind optimum.
    ratio = routing["effective_step_time_s"] / routing["blind"]["effective_step_time_s"]
    assert 0.998 < ratio < 0.999
    assert routing["gain_vs_blind"] == pytest.approx(1 / ratio)
    text = run("optimize", path, "--routing", "ecmp").out
    assert f"On its links this design takes {ratio - 1:+.2%} step time" in text
    assert "no optimality is claimed" in text
    assert "Proven optimal" not in text


def test_routed_optimum_of_a_catalogue(run) -> None:
    path = EXAMPLES / "06_catalogue.yaml"
    found = run("optimize", path, "--routing", "greedy", "--json").payload
    assert found["catalogue"]["continuous"] is None
    text = run("optimize", path, "--routing", "greedy").out
    assert "Buy per NPU: dim1 " in text
    assert "the best of" not in text.replace("the best of the designs that were checked", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "ecpm"], ": --policy: got 'ecpm', .* did you mean ecmp"),
        (["--time-limit", "0", "--policy", "ilp"], ": --time-limit: got a time limit of 0 s"),
        (
            ["--time-limit", "1"],
            ": --time-limit: got --policy ecmp, expected ilp or two_level_max_min; leave one out",
        ),
        (["--policy", "spray", "--hash", "xor"], ": --hash: got --policy spray, expected ecmp"),
        (["--per-collective"], ": --per-collective: got --policy ecmp, expected greedy or edge"),
        (["--bandwidth", "-1,3"], ": --bandwidth: got '-1', expected 0 or a number from"),
        (["--bandwidth", "1,2,3"], ": --bandwidth: got 3 numbers, expected 2"),
        (["--bandwidth", "100,0"], ": --bandwidth: got 0 GB/s for dim2"),
        (["--bandwidth", "100,x"], ": --bandwidth: got 'x'"),
        (
            ["--trace", "0-1"],
            ": --trace: got '0-1', expected a flow of ring .*, or of another round",
        ),
        (["--fail-links", "9999"], ": --fail-links, .*got 9999 failed links"),
        (["--set", "fabric.realization.nics=1"], r":5:\d+: .*dim2.*got 1 NICs of 50 GB/s"),
        (["--set", "fabric.realization.switch_radix=2"], r":5:\d+: .*dim2.*got 512 endpoints"),
        (["--set", "fabric.topology=FC(8)_FC(32)", "--n-1"], "got .*realization|no links between"),
        (["--set", "workload=nothing"], "nothing"),
    ],
)
def test_bad_input_is_2_and_names_the_plan(arguments, message, plan, run) -> None:
    path = plan(text=TWO_DIMS)
    result = run("check", path, *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(str(path))
    assert re.search(message, result.err), result.err


@pytest.mark.parametrize("flag", ["--seeds=0", "--seeds=x", "--placement=up", "--busiest=-1"])
def test_bad_options_are_2(flag: str, plan, run) -> None:
    result = run("check", plan(text=TWO_DIMS), flag)
    assert result.code == 2
    assert "usage:" in result.err


def test_infeasible_is_3(plan, run) -> None:
    path = plan(
        ("  - total == 200 GB/s", "  - total == 200 GB/s\n  - dim1 >= 300 GB/s"), text=TWO_DIMS
    )
    for command in (["check"], ["optimize", "--routing", "ecmp"]):
        result = run(*command, path)
        assert (result.code, result.out) == (3, "")
        assert result.err.startswith(str(path))


def test_the_line_of_what_cannot_be_built(plan, run) -> None:
    text = TWO_DIMS.replace(
        "{switch_radix: 16, port_speed: 400 Gbps, wiring: rail_optimized}",
        "\n    port_speed: 400 Gbps\n    pod:\n      nics: 1",
    )
    for command in (["check"], ["optimize", "--routing", "ecmp"]):
        result = run(
            *command, plan(text=text), "--set", "constraints=[dim2 == 120 GB/s, dim1 == 9 GB/s]"
        )
        assert result.code == 2
        assert ":8:7: fabric.realization (dim2).nics: got 1 NICs of 50 GB/s" in result.err


def test_the_line_of_a_reduction_that_failed_links_refuse(plan, run) -> None:
    text = TWO_DIMS.replace("wiring:", "failed_links: 1, wiring:") + "in_network_reduction: [pod]\n"
    result = run("check", plan(text=text), "--bandwidth", "150,50", "--seed", "0")
    assert result.code == 2
    line = len(text.splitlines())
    assert f":{line}:1: in_network_reduction: got in-network reduction on failed" in result.err


def test_jobs_have_one_placement(small, run) -> None:
    placed = ("    leaves: 2", "    leaves: 2\n    placement: rail")
    wide = ("switch_radix: 4", "switch_radix: 8")
    paths = small(wide, name="a.yaml"), small(wide, placed, name="b.yaml")
    result = run("check", *paths)
    assert (result.code, result.out) == (2, "")
    assert "fabric.realization.placement: got contiguous, and rail in" in result.err
    assert "or give --placement" in result.err
    assert run("check", *paths, "--placement", "rail").code == 0


def test_jobs_that_cannot_share(small, plan, run) -> None:
    paths = small(name="a.yaml"), plan(text=TWO_DIMS, name="b.yaml")
    result = run("check", *paths)
    assert (result.code, result.out) == (2, "")
    assert "expected topologies that differ in the outermost size only" in result.err
    result = run("check", *paths, "--trace", "0-1")
    assert (result.code, "got --trace with 2 plans" in result.err) == (2, True)


@pytest.mark.parametrize("option", ["--seeds=2", "--hash=crc32", "--queue-pairs=2", "--enhanced"])
def test_options_of_a_routing_need_one(option: str, plan, run) -> None:
    result = run("optimize", plan(), option)
    assert (result.code, result.out) == (2, "")
    assert f"got {option.partition('=')[0]} without --routing" in result.err


@pytest.mark.parametrize(("command", "flag"), [("check", "--policy"), ("optimize", "--routing")])
def test_addresses_are_of_ecmp_only(command: str, flag: str, plan, run) -> None:
    """No other policy reads them, so that the option would change nothing."""
    outcome = run(command, plan(text=TWO_DIMS), flag, "greedy", "--npus-per-address", "2")
    said = f"--npus-per-address: got {flag} greedy, expected ecmp: no other policy reads addresses"
    assert (outcome.code, said in outcome.err) == (2, True)


def test_shared_addresses_draw_other_paths_and_say_what_that_changes(plan, run) -> None:
    path = plan(text=TWO_DIMS)
    shared = run("check", path, "--seed", "1", "--npus-per-address", "2", "--json").payload
    assert shared["npus_per_address"] == 2
    assert any("2 NPUs share an address" in note for note in shared["notes"])
    own = run("check", path, "--seed", "1", "--json").payload
    assert not any("share an address" in note for note in own["notes"])


def test_one_source_port_for_all_leaves_ecmp_little_to_hash(run) -> None:
    """12 queue pairs are as good as 3, one per NIC, unless the switches hash them too."""
    line = (
        "check",
        EXAMPLES / "07_check.yaml",
        "--queue-pairs",
        "12",
        "--npus-per-address",
        "8",
        "--seed",
        "1",
    )
    shared = run(*line, "--source-ports", "shared", "--json").payload
    found = shared["hotspot"]["entropy"]
    assert shared["source_ports"] == "shared"
    assert found["n_headers"] * 4 <= found["n_flows"]
    assert found["effective_fim_percent"] > 1.2 * found["expected_fim_percent"]
    assert not any("share an address" in note for note in shared["notes"])
    enhanced = run(*line, "--source-ports", "shared", "--enhanced", "--json").payload
    own = run(*line, "--json").payload
    assert own["fim_percent"] < shared["fim_percent"]
    assert enhanced["fim_percent"] < shared["fim_percent"]
    text = run(*line, "--source-ports", "shared").out
    assert "8 NPUs per address, one source port for all" in text
    assert "Entropy: 2,304 flows between leaves have " in text
    assert "with 16 queue pairs per connection" in text
    refused = run(
        "check", EXAMPLES / "07_check.yaml", "--policy", "greedy", "--source-ports", "shared"
    )
    assert refused.code == 2
    assert "--source-ports: got --policy greedy, expected ecmp: no other policy" in refused.err


def test_options_of_another_policy_are_refused_by_optimize_too(plan, run) -> None:
    path = plan(text=TWO_DIMS)
    result = run("optimize", path, "--routing", "greedy", "--enhanced")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"{path}: --enhanced: got --routing greedy, expected ecmp")


def test_relative_groups_are_not_rerouted(run) -> None:
    path = EXAMPLES / "03_group.yaml"
    result = run("optimize", path, "--routing", "ecmp", "--set", "group_objective=worst_case")
    assert result.code == 2
    assert result.err.startswith(f"{path}: got group_objective worst_case with a routing policy")


def test_groups_of_workloads_are_checked(run) -> None:
    found = run("check", EXAMPLES / "03_group.yaml", "--json").payload
    assert found["effective_step_time_s"] >= found["spray_step_time_s"] > 0


def test_interruption_is_130(plan, run, monkeypatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LinkCheck, "report", interrupted)
    result = run("check", plan(text=TWO_DIMS), "--bandwidth", "150,50")
    assert (result.code, result.out, result.err) == (130, "", "interrupted\n")


def test_counts_that_one_switch_has_no_use_for_are_noted(small, run) -> None:
    wide = ("switch_radix: 4\n    leaves: 2", "switch_radix: 8\n    parallel_links: 2")
    found = run("check", small(wide), "--json").payload
    assert found["dimensions"][0]["n_switches"] == 1
    note = "dim1: one switch holds all endpoints of a network, spines: 2 and parallel_links: 2 is"
    assert any(line.startswith(note) for line in found["notes"])
    plain = run("check", small(("    spines: 2\n", ""))).out
    assert "is not used" not in plain


def _loaded(*arguments: str | Path) -> tuple[str, set[str]]:
    """What a command prints in a process of its own, and the modules that it loads."""
    program = (
        "import sys\nfrom libra_planner.cli.main import main\nmain(sys.argv[1:])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout, set(result.stderr.split())


def test_a_given_design_loads_no_solver(plan) -> None:
    out, loaded = _loaded("check", plan(text=TWO_DIMS), "--bandwidth", "150,50", "--json")
    assert json.loads(out)["policy"] == "ecmp"
    assert not {"cvxpy", "clarabel", "rich"} & loaded


def test_an_optimum_loads_no_statistics(plan) -> None:
    """They take longer to load than cvxpy, where one function of theirs has a name."""
    out, loaded = _loaded("optimize", plan(text=TWO_DIMS), "--json")
    assert json.loads(out)["status"] == "optimal"
    assert "cvxpy" in loaded
    assert "scipy.stats" not in loaded


def test_statistics_are_there_when_they_are_used() -> None:
    program = (
        "import sys\nfrom libra_planner.optimizer.engines.imports import statistics_when_used\n"
        "with statistics_when_used():\n    import cvxpy\n"
        "assert 'scipy.stats' not in sys.modules\n"
        "state = cvxpy.Constant([[0.5, 0], [0, 0.5]])\n"
        "assert abs(cvxpy.quantum_rel_entr(state, 2 * state).value + 0.6931471805599453) < 1e-12\n"
        "del sys.modules['scipy.stats']\n"
        "with statistics_when_used():\n    from scipy.stats import qmc\n"
        "assert sys.modules['scipy.stats'].qmc is qmc\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_choice_of_algorithms_is_printed(small, run) -> None:
    path = small(("algorithms: [halving_doubling]\n", ""))
    found = run("check", path, "--json").payload
    [phase] = found["phases"]
    assert (phase["algorithm"], phase["chosen"], phase["others"]) == ("ring", "library", [])
    line = "dim1: ring takes 600.000 ms a step for the bytes of weight grad all-reduce, dp "
    assert f"{line}(what NCCL runs)" in run("check", path, "--seed", "0").out
    fastest = ("check", path, "--algorithms", "fastest")
    found = run(*fastest, "--json").payload
    [phase] = found["phases"]
    [other] = phase["others"]
    assert (phase["algorithm"], phase["chosen"]) == ("ring", "faster")
    assert other["algorithm"] == "halving_doubling"
    assert phase["time_s"] == pytest.approx(found["effective_step_time_s"] - 1)
    assert other["time_s"] > phase["time_s"]
    text = run(*fastest, "--seed", "0").out
    assert f"{line}(halving_doubling would take 800.000 ms)" in text
    [named] = run("check", small(), "--json").payload["phases"]
    assert (named["algorithm"], named["chosen"]) == ("halving_doubling", "named")
    assert named["others"] == []
    named = run("check", small()).out
    assert "a step for the bytes of weight grad all-reduce, dp (the plan names it)" in named
    assert "What runs, and how long its bytes take on the links as routed" in named
    assert "a step also waits" not in named


def test_all_algorithms_can_be_compared(small, run) -> None:
    compare = ("check", small(("algorithms: [halving_doubling]\n", "")), "--algorithms", "compare")
    [phase] = run(*compare, "--json").payload["phases"]
    assert (phase["algorithm"], phase["chosen"]) == ("ring", "library")
    others = {one["algorithm"]: one["time_s"] for one in phase["others"]}
    assert others.keys() == {"direct", "direct1", "halving_doubling"}
    assert others["halving_doubling"] == pytest.approx(0.76)
    text = run(*compare).out
    assert "Algorithms compared, the one that runs first" in text
    assert re.search(r"halving_doubling +760.000 ms +1.267x", text)
    # What the plan names runs, and is compared all the same.
    [named] = run("check", small(), *compare[2:], "--json").payload["phases"]
    assert (named["algorithm"], named["chosen"]) == ("halving_doubling", "named")
    assert {one["algorithm"] for one in named["others"]} == {"ring", "direct", "direct1"}
    two = run("check", small(), small(), *compare[2:])
    assert two.code == 2
    assert "got --algorithms compare with 2 plans, expected library or fastest" in two.err


def test_notes_say_what_the_command_uses(small, run) -> None:
    """The ideal model knows no algorithms; a check of the links runs them."""
    unused = "fidelity ideal does not use algorithms"
    for command in (["evaluate", small(), "--bandwidth", "10"], ["optimize", small()]):
        assert unused in run(*command, "--json").payload["notes"]
        assert unused in run(*command).out
    for command in (["check", small()], ["optimize", small(), "--routing", "spray"]):
        assert unused not in run(*command, "--json").payload["notes"]
        assert unused not in run(*command).out
    late = small(("  topology: SW(4)", "  topology: SW(4)\n  latency_ns: 5"))
    notes = run("check", late, "--json").payload["notes"]
    assert "fidelity ideal does not use fabric.latency_ns" in notes


def test_one_seed_does_not_decide(small, run) -> None:
    """Without a seed the keys of one routing hold the mean of ten."""
    found = run("check", small(), "--json").payload
    singles = [run("check", small(), "--seed", seed, "--json").payload for seed in range(10)]
    assert (found["seed"], found["n_seeds"]) == (0, 10)
    of = {
        "step": lambda one: one,
        "dimension": lambda one: one["dimensions"][0],
        "phase": lambda one: one["phases"][0],
    }
    wanted = [("step", "effective_step_time_s"), ("step", "slowdown"), ("step", "fim_percent")]
    wanted += [("dimension", "efficiency"), ("dimension", "fim_percent")]
    wanted += [("phase", "efficiency"), ("phase", "slowdown"), ("phase", "fim_percent")]
    for where, key in wanted:
        samples, mean = [of[where](one)[key] for one in singles], of[where](found)
        assert len(set(samples)) > 1
        assert mean[key] == pytest.approx(np.mean(samples), rel=1e-12)
        assert mean[f"{key}_sd"] == pytest.approx(np.std(samples, ddof=1), rel=1e-12)
        assert (mean[f"{key}_min"], mean[f"{key}_max"]) == (min(samples), max(samples))
        assert of[where](singles[0])[f"{key}_sd"] is None
    text = run("check", small()).out
    assert "(mean of 10 routings, from +0.00% to +12.50%)" in text
    assert "mean of" not in run("check", small(), "--seed", "4").out


def test_what_draws_nothing_runs_once_by_default(small, plan, run) -> None:
    greedy = run("check", small(), "--policy", "greedy", "--json").payload
    assert (greedy["n_seeds"], greedy["n_routings"], greedy["slowdown_sd"]) == (1, 1, None)
    # One switch for every group offers ECMP nothing to draw.
    assert run("check", plan(), "--json").payload["n_seeds"] == 1
    assert run("check", small(), "--placement", "random", "--json").payload["n_seeds"] == 10


def test_what_draws_no_path_names_no_seeds(small, run) -> None:
    for seeds in ((), ("--seeds", "5"), ("--seed", "4")):
        text = run("check", small(ONE_UPLINK), "--policy", "greedy", *seeds).out
        assert "Routed by greedy: no path is drawn, one routing; placement" in text
        assert "mean" not in text
        assert "seed" not in text
    asked = ("check", small(), "--policy", "greedy", "--seeds", "5")
    found = run(*asked, "--json").payload
    assert (found["n_seeds"], found["n_routings"]) == (5, 1)
    assert found["slowdown"].keys() == {"mean", "sd", "p5", "p50", "p95"}
    text = run(*asked, "--placement", "random").out
    assert "Routed by greedy, 5 seeds from 0;" in text
    assert "mean of 5 routings" in text


def test_the_number_of_flows_decides_how_many_routings(small, plan) -> None:
    links = link_check(lp.load_plan(plan(text=TWO_DIMS)), np.array([150e9, 60e9]))
    [run] = links.runs(Policy("ecmp"), [0])
    n_flows = sum(one.n_flows for phase in run.values() for one in phase.rounds)
    assert links.n_drawn_flows(Policy("ecmp")) == n_flows > 0
    assert links.n_drawn_flows(Policy("greedy")) == 0
    assert len(links.seeds(Policy("ecmp"))) == 10
    many = replace(links, traffic=replace(links.traffic, n_queue_pairs=2048))
    assert many.n_drawn_flows(Policy("ecmp")) == 1024 * n_flows
    assert len(many.seeds(Policy("ecmp"))) == 3


def test_a_report_has_the_mean_of_the_check(run, tmp_path) -> None:
    path = EXAMPLES / "07_check.yaml"
    arguments = ("--check", "ecmp", "--formats", "md", "--json", "-o", tmp_path / "report")
    [found] = run("report", path, *arguments).payload["designs"]
    check = run("check", path, "--json").payload
    for end in ("", "_sd", "_min", "_max"):
        key = f"effective_step_time_s{end}"
        assert found[key] == pytest.approx(check[key], rel=1e-9)
    assert found["n_seeds"] == check["n_seeds"] == 10
    assert "mean of 10 routings, from " in (tmp_path / "report" / "report.md").read_text()


EXPERTS = """\
workload: qwen3-30b-a3b
parallelism: {tp: 1, ep: 64, dp: 128}
global_batch: 512
npu: h100-sxm
memory: ignore
fidelity: calibrated
fabric:
  topology: SW(8)_[SW(4)_SW(4)]
  tiers: [node, leaf, spine]
  scale_up: nvlink4-8
  realization: {port_speed: 400 Gbps, switch_radix: 8, wiring: rail}
cost_model: clos-2026
constraints: [leaf == 50 GB/s, spine == 25 GB/s]
"""


def test_experts_of_several_nodes_are_checked_on_the_links(tmp_path: Path) -> None:
    """One copy of a token goes to each node, and all of them on between its NPUs (C16)."""
    (tmp_path / "plan.yaml").write_text(EXPERTS)
    plan = lp.load_plan(tmp_path / "plan.yaml")
    found = [one for one in plan.step.communications if one.collective.kind == "all-to-all"]
    assert {one.group.sizes for one in found} == {(8, 1, 1), (8, 4, 2)}
    sizes = {one.group.n_npus: one.collective.size_bytes for one in found}
    distinct = 8 * (1 - (7 / 8) ** 8)  # Nodes that the 8 experts of a token are on, of 8.
    assert sizes[64] / sizes[8] == pytest.approx(distinct / 8)
    checked = plan.check("spray").to_dict()
    assert checked["spray_step_time_s"] == pytest.approx(checked["ideal_step_time_s"])
    hashed = plan.check("ecmp", seed=0).to_dict()
    assert hashed["effective_step_time_s"] > 1.1 * hashed["ideal_step_time_s"]


def test_exposed_communication_adds_up_to_both_steps(run) -> None:
    """By the model and on the links: compute is the rest of either step."""
    found = run("check", "0e_rails_2to1", "--seeds", "3", "--json").payload
    compute_s = run("optimize", "0e_rails_2to1", "--json").payload["compute_time_s"]
    for key, step in (("model_s", "ideal_step_time_s"), ("links_s", "effective_step_time_s")):
        exposed_s = sum(one[key] for one in found["exposed"])
        seconds = found[step] if key == "model_s" else found[step]["mean"]
        assert compute_s + exposed_s == pytest.approx(seconds, rel=1e-9)
    slower = [one for one in found["exposed"] if one["links_s"] > 1.001 * one["model_s"]]
    assert [one["operation"] for one in slower] == ["PP send"]


def test_what_routing_does_not_slow_is_one_line(run) -> None:
    """JSON has every phase; the text names those that suffer."""
    asked = ("check", "0e_rails_2to1", "--seeds", "3")
    found, text = run(*asked, "--json").payload, run(*asked).out
    rows = [(x["slowdown"], len(x["collectives"])) for x in found["phases"]]
    same = sum(n for slowdown, n in rows if abs(slowdown - 1) < 5e-4)
    assert f"{same} others as fast as with every packet sprayed: 9 on dim1, 2 on dim2" in text
    assert (
        sum(line.startswith(" dim3  ") and " send, pp" in line for line in text.splitlines()) == 2
    )
    table = text.split("that routing slows")[1].split("Loses most")[0]
    assert "1.000x" not in table
    routed = found["dimensions"][2]
    got_GBps = routed["realized_GBps"] * routed["efficiency"]["mean"]
    [row] = [x for x in text.splitlines() if x.startswith(" dim3  spine  SW(8) ")]
    assert f"{got_GBps:.2f}" in row.split()
    sprayed = run("check", "0e_rails_2to1", "--policy", "spray").out
    assert "All 13 collectives and sends are as fast as with every packet sprayed" in sprayed


TWO_RINGS = (
    *("--set", "workload=qwen3-30b-a3b", "--set", "fabric.topology=SW(8)_[SW(32)_SW(2)]"),
    *("--set", "parallelism={tp: 1, pp: 1, dp: 512, ep: 16, etp: 1}"),
    *("--set", "global_batch=512", "--set", "constraints=[]", "--bandwidth", "450,50,25"),
)


def test_a_check_says_what_other_queue_pairs_are_expected_to_give(run) -> None:
    """Two flows of a leaf over 16 uplinks meet with 1/16; each of 16 queue pairs takes little.

    With a queue pair on each the step is what the model has; with one it is a tenth longer.
    """
    asked = ("check", "0e_rails_2to1", *TWO_RINGS)
    out = " ".join(run(*asked).out.split())
    said = re.search(
        r"decide: expected ([\d.]+) ms \(\+[\d.]+%\) with 1, ([\d.]+) ms \(\+[\d.]+%\) with 2, "
        r"([\d.]+) ms \(\+0\.0%\) with 16; 1 is routed here",
        out,
    )
    assert said is not None
    one, two, many = map(float, said.groups())
    for n, expected in ((1, one), (2, two), (16, many)):
        pairs = ("--queue-pairs", str(n), "--seeds", "100", "--json")
        routed = run(*asked, *pairs).payload["effective_step_time_s"]["mean"]
        assert 1e3 * routed == pytest.approx(expected, rel=0.02)
    assert "; 2 are routed here" in " ".join(run(*asked, "--queue-pairs", "2").out.split())
    assert "Queue pairs per" not in run(*asked, "--policy", "spray").out
    assert "Queue pairs per" not in run("check", "0e_rails_2to1").out  # Less than 2 %.
