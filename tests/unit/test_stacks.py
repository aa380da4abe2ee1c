"""Stacks in plans, as users meet them: schedules, tapers, prices, sweeps, single collectives."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import libra_planner as lp
from libra_planner.errors import IllPosed, SpecError
from libra_planner.plan.problem import load_plan
from libra_planner.reading.bundled import example
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from tests.conftest import Outcome

Run = Callable[..., Outcome]

PLAN = """\
workload: gpt3
fabric:
  topology: SW(8)_[SW(32)_SW(4)_SW(2)]
  tiers: [node, leaf, spine, core]
parallelism: {tp: 8, dp: 256}
global_batch: 2048
cost_model: clos-2026
constraints:
  - node <= 450 GB/s
  - leaf <= 50 GB/s
  - 1 <= taper(spine) <= 2
  - spine >= core >= spine / 7
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def _refused(plan: Path, *settings: str) -> str:
    with pytest.raises(SpecError) as error:
        lp.load_plan(plan, settings)
    return str(error.value)


def test_a_plan_is_optimised_under_its_tapers(plan: Path, run: Run) -> None:
    found = run("optimize", plan, "--json").payload
    node, leaf, spine, core = found["bandwidth_GBps"]
    assert (node, leaf) == pytest.approx((450, 50), rel=1e-6)
    assert found["taper"] == [None, None, pytest.approx(leaf / spine), pytest.approx(spine / core)]
    assert found["taper"][2:] == pytest.approx([2, 7], rel=1e-6)
    assert "all-reduce hierarchical" in found["settings"]
    assert "all-to-all direct (PXN)" in found["settings"]
    # Per GB/s and NPU: leaf 28.68 + 21.8 + 29.98, spine and core 28.68 + 2 * 21.8; node free.
    prices = [0, 80.46, 72.28, 72.28]
    costs = [2048 * price * b for price, b in zip(prices, found["bandwidth_GBps"], strict=True)]
    assert found["cost_usd_by_dimension"] == pytest.approx(costs)
    assert any(note.startswith("tier node costs nothing in clos-2026") for note in found["notes"])


def test_the_step_waits_for_all_that_crosses_the_nic(plan: Path, run: Run) -> None:
    """DP 256 over leaf, spine and core: 2m (1 - 1/256) through every NIC, not 2m (1 - 1/32)."""
    found = run("evaluate", plan, "--bandwidth", "450,50,50,50", "--json").payload
    (waits,) = (one for one in found["bottlenecks"] if one["operation"].startswith("weight grad"))
    assert waits["dimensions"] == ["dim2"]
    apart = run(
        *("evaluate", plan, "--bandwidth", "450,50,50,50", "--json"),
        *("--set", "fabric.topology=SW(8)_SW(32)_SW(4)_SW(2)"),
        *("--set", "fabric.tiers=[node,leaf,leaf,leaf]", "--set", "constraints=[]"),
    ).payload
    (alone,) = (one for one in apart["bottlenecks"] if one["operation"].startswith("weight grad"))
    assert waits["time_s"] / alone["time_s"] == pytest.approx((1 - 1 / 256) / (1 - 1 / 32))
    assert "taper" not in apart


def test_a_ring_sends_the_same_over_the_nic_of_dp_and_more_beyond(plan: Path) -> None:
    """DP fills the stack: a ring sends 2m 255/256 over NIC, /32 over spines, /128 over cores."""
    for name, expected in (
        ("hierarchical", [1 - 1 / 256, 1 / 32 - 1 / 256, 1 / 128 - 1 / 256]),
        ("ring", [255 / 256, 255 / 256 / 32, 255 / 256 / 128]),
    ):
        problem = lp.load_plan(plan, f"schedules.all-reduce={name}")
        one = next(x for x in problem.step.communications if x.collective.group == "dp")
        loads = problem.network.loads(one.collective, one.group)
        found = loads[1:] / (2 * one.collective.size_bytes)
        assert found == pytest.approx(expected, rel=1e-12)


def test_violated_and_binding_tapers_are_told_as_tapers(plan: Path, run: Run) -> None:
    told = run("evaluate", plan, "--bandwidth", "450,50,10,1")
    assert "Broken: 1 <= taper(spine) <= 2 (line 11), is 5:1" in told.out
    assert "Broken: core >= spine / 7" not in told.out
    payload = run("evaluate", plan, "--bandwidth", "450,50,10,1", "--json").payload
    broken = payload["violated"][0]
    assert (broken["by"], broken["unit"]) == (pytest.approx(3), "taper")
    table = next(line for line in told.out.splitlines() if "dim3" in line and "spine" in line)
    assert " 5:1 " in table


def test_the_worth_of_a_taper_is_what_one_more_changes(plan: Path, run: Run) -> None:
    rules = ["node <= 450 GB/s", "leaf <= 50 GB/s", "taper(spine) == {}", "taper(core) == 3"]

    def optimum(taper: float) -> dict[str, Any]:
        texts = [rule.format(taper) for rule in rules]
        return run("optimize", plan, "--json", "--set", f"constraints={texts}").payload

    found, more = optimum(4), optimum(4.001)
    worth = next(x for x in found["shadow_prices"] if x.get("rule") == "taper(spine) == 4")
    assert (worth["unit"], worth["bound"]) == ("taper", "== 4 taper")
    change = (more["cost_usd"] - found["cost_usd"]) / 0.001
    assert worth["d_cost_usd"] == pytest.approx(change, rel=1e-3)


@pytest.mark.parametrize(
    ("rule", "row", "sense", "bound"),
    [
        ("taper(spine) <= 7", (0, 1, -7, 0), "<=", 0),
        ("7 >= taper(spine)", (0, 1, -7, 0), "<=", 0),
        ("taper(spine) <= 7:1", (0, 1, -7, 0), "<=", 0),
        ("7.5:1 >= taper(spine)", (0, 1, -7.5, 0), "<=", 0),
        ("taper(dim4) == 15 / 2", (0, 0, 1, -7.5), "==", 0),
        ("core >= spine / 7", (0, 0, 1 / 7, -1), "<=", 0),
        ("2 * leaf / 4 <= 100 GB/s / 2", (0, 0.5, 0, 0), "<=", 50e9),
        ("1 / 2 * leaf >= dim3 / 2 / 5", (0, 0.5, -0.1, 0), ">=", 0),
    ],
)
def test_rules_by_hand(plan: Path, rule: str, row: tuple, sense: str, bound: float) -> None:
    (found,) = lp.load_plan(plan, f"constraints=['{rule}']").rules
    assert found.coefficients == pytest.approx(row)
    assert (found.sense, found.bound) == (sense, pytest.approx(bound))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("taper(leaf) <= 7", "got the taper of 'leaf', the innermost tier of SW(8)_[SW(32)"),
        ("taper(leaf) <= 7", "write taper(dim3) or taper(dim4)"),
        ("taper(node) <= 7", "got the taper of 'node', which is in no stack of SW(8)_["),
        (
            "taper(spne) <= 7",
            "got the taper of 'spne' in 'taper(spne) <= 7', expected a tier of this",
        ),
        (
            "taper <= 7",
            "got the name 'taper' in 'taper <= 7', expected one of this fabric; write taper",
        ),
        ("taper(spine) <= 7:2", "got '7 : 2' beside a taper"),
        ("spine <= 50:1 GB/s", "got ':' in 'spine <= 50:1 GB/s', expected names, numbers"),
        ("taper(spine) <= 0", "got '0' beside a taper"),
        ("taper(spine) <= 7 GB/s", "expected a number above 0; write e.g. 7 for 7:1"),
        ("taper(spine) <= taper(core)", "got a taper compared with a taper"),
        ("2 * taper(spine) <= 7", "expected taper(TIER) alone on its side"),
        ("leaf / 0 <= spine", "got a division by 0"),
        ("leaf / spine <= 7", "got a division by 'spine'"),
        ("leaf / <= 7 GB/s", "got nothing after '/'"),
        ("leaf / 1e12 <= spine", "got the factor 1e-12"),
    ],
)
def test_wrong_tapers_and_divisions(plan: Path, rule: str, said: str) -> None:
    assert said in _refused(plan, f"constraints=['{rule}']")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("fidelity=pipelined", "fidelity: got pipelined for the stack SW(8)_["),
        (
            "schedules={all_reduce: direct}",
            "all_reduce: got 'direct', expected 'hierarchical' or 'ring'",
        ),
        ("schedules={all_reduc: ring}", "got the unknown key 'all_reduc'"),
        ("in_network_reduction=[spine]", "got dim3 alone, expected all tiers of a stack"),
        ("in_network_reduction=[spine]", "add dim2, dim4"),
        (
            "fabric.tiers=[leaf, node, spine, core]",
            "got nic: 0 for tier 'node', the innermost of a",
        ),
        ("fabric.tiers=[node, spine, leaf, core]", "got no nic price for tier 'spine'"),
    ],
)
def test_what_a_stack_does_not_have(plan: Path, setting: str, said: str) -> None:
    assert said in _refused(plan, setting)


def test_what_does_not_go_together(plan: Path) -> None:
    tree = "in_network_reduction=[leaf, spine, core]"
    assert "got a ring with in-network" in _refused(plan, tree, "schedules={all_reduce: ring}")
    ring = "schedules={all-reduce: ring}"
    assert "got a ring with scheduler: balanced" in _refused(plan, ring, "scheduler=balanced")
    apart = "fabric.topology=SW(8)_SW(32)_SW(4)_SW(2)"
    pxn = "schedules={all_to_all: hierarchical, pxn: true}"
    assert "got pxn with hierarchical all-to-alls" in _refused(plan, pxn)
    direct = "schedules={all_to_all: direct}"
    assert "expected a stack: separate networks" in _refused(plan, apart, direct)


def test_open_uplinks_say_how_to_bound_them(plan: Path) -> None:
    problem = lp.load_plan(plan, "constraints=['node <= 450 GB/s', 'leaf <= 50 GB/s']")
    with pytest.raises(IllPosed, match=r"'taper\(spine\) >= 1' and 'taper\(core\) >= 1'"):
        lp.optimize(problem)


def test_the_frontier_has_tiers_and_tapers(plan: Path, run: Run) -> None:
    told = run("pareto", plan, "--points", "3")
    above, below = (line.split() for line in told.out.split("\n\n")[1].splitlines()[:2])
    assert (above.count("dim3"), below.count("taper")) == (2, 2)
    points = run("pareto", plan, "--points", "3", "--json").payload["points"]
    assert all(point["taper"][2] <= 2 + 1e-6 for point in points)


SWEEP = """\
base:
  workload: gpt3-libra
  fabric: {topology: "{shape}"}
  parallelism: {tp: 8, dp: 64}
  cost_model: clos-2026
  fixed_cost: 20 M$
  constraints:
    - node <= 450 GB/s
    - leaf <= {nic} GB/s
    - total <= 1000 GB/s
axes:
  nic: [25, 50]
  shape:
    factorizations:
      npus: 512
      dims: 2..4
      blocks: [SW]
      stack: [leaf, spine, core]
      sizes: {node: 8, leaf: 8..64, spine: [2, 4], core: 2}
    tiers: [node, leaf, spine, core]
objective: [performance, performance_per_cost]
"""


def test_a_sweep_over_shapes_makes_stacks(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP)
    shapes = next(axis for axis in load_sweep(path).axes if axis.name == "shape")
    assert shapes.values == (
        "SW(8)_SW(64)",
        "SW(8)_[SW(16)_SW(4)]",
        "SW(8)_[SW(32)_SW(2)]",
        "SW(8)_[SW(8)_SW(4)_SW(2)]",
        "SW(8)_[SW(16)_SW(2)_SW(2)]",
    )
    assert shapes.tiers[3] == ["node", "leaf", "spine"]


def test_every_row_is_the_optimum_of_its_plan(tmp_path: Path, run: Run) -> None:
    path, there = tmp_path / "sweep.yaml", tmp_path / "run"
    path.write_text(SWEEP)
    run_sweep(load_sweep(path), there)
    rows = run("sweep", "show", there, "--top", "100", "--json").payload["rows"]
    assert len(rows) == 20
    for row in rows:
        own = tmp_path / f"{row['row']}.yaml"
        run("sweep", "design", there, row["row"], "-o", own, "--force")
        assert "[SW(" in own.read_text() or "SW(8)_SW(64)" in own.read_text()
        best = run("optimize", own, "--json").payload
        assert row["step_time_s"] == pytest.approx(best["step_time_s"], rel=1e-9)
        assert row["cost_usd"] == pytest.approx(best["cost_usd"], rel=1e-6)


def test_tapers_are_an_axis(tmp_path: Path, plan: Path, run: Run) -> None:
    base = yaml.safe_load(PLAN) | {
        "constraints": [
            "node <= 450 GB/s",
            "leaf <= 50 GB/s",
            "taper(spine) == {t}",
            "core == spine / {t}",
        ]
    }
    path, there = tmp_path / "sweep.yaml", tmp_path / "run"
    axes = {
        "t": [1, 2, 7],
        "fabric.topology": [f"SW(8)_[SW({256 // n})_SW({n // 2})_SW(2)]" for n in (8, 16)],
    }
    path.write_text(yaml.safe_dump({"base": base, "axes": axes}))
    run_sweep(load_sweep(path), there)
    rows = run("sweep", "show", there, "--top", "10", "--json").payload["rows"]
    assert len(rows) == 6
    for row in rows:
        rules = [rule.format(t=row["t"]) for rule in base["constraints"]]
        best = run(
            *("optimize", plan, "--json", "--set", f"constraints={rules}"),
            *("--set", f"fabric.topology={row['fabric.topology']}"),
        ).payload
        assert row["step_time_s"] == pytest.approx(best["step_time_s"], rel=1e-9)
        assert row["cost_usd"] == pytest.approx(best["cost_usd"], rel=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("stack: [leaf, spine, core]", "stack: [leef]"), "factorizations.stack: got 'leef'"),
        (("sizes: {node: 8,", "sizes: {nod: 8,"), "factorizations.sizes: got 'nod'"),
        (
            ("stack: [leaf, spine, core]", "stack: [node]"),
            "expected those of the stack, node, outermost",
        ),
        (
            ("    tiers: [node, leaf, spine, core]\n", ""),
            "add 'tiers: [node, leaf, spine]' to the axis",
        ),
    ],
)
def test_wrong_stacks_of_sweeps(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP.replace(*change))
    with pytest.raises(SpecError) as error:
        load_sweep(path)
    assert said in str(error.value)


ONE = ("collective", "SW(2)_[SW(4)_SW(2)]", "--size", "16B", "--bandwidth", "16,7,0.5")


def test_one_collective_over_a_stack(run: Run) -> None:
    """As worked out by hand in tests/equations: 16, 14 and 2 bytes; 4 s for the last ones."""
    found = run(*ONE, "--kind", "all-reduce", "--json").payload
    assert [row["traffic_bytes"] for row in found["dimensions"]] == [16, 14, 2]
    assert [row["own_bytes"] for row in found["dimensions"]] == [16, 12, 2]
    assert (found["ideal_time_s"], found["bottleneck"]) == (pytest.approx(4e-9), "dim3")
    assert found["taper"] == [None, None, 14]
    assert (found["time_s"], found["chunks"], found["schedule"]) == (None, None, "hierarchical")
    assert "only the ideal time is told" in found["notes"][0]
    told = run(*ONE, "--kind", "all-to-all")
    assert "16 NPUs, direct schedule" in told.out
    assert "Note: only the ideal time is told" in told.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kind", "all-reduce", "--chunks", "4"), "--chunks: got chunks for SW(2)_["),
        (("--kind", "all-reduce", "--latency-ns", "5"), "--latency-ns: got latency_ns for SW(2)_["),
        (("--kind", "all-reduce", "--schedule", "direct"), "got direct for an all-reduce"),
        (("--kind", "all-to-all", "--schedule", "ring"), "got ring for an all-to-all"),
        (
            ("--kind", "all-reduce", "--schedule", "ring", "--in-network"),
            "got a ring with in-network reduction",
        ),
    ],
)
def test_what_one_collective_cannot_be_asked(arguments: tuple, said: str, run: Run) -> None:
    found = run(*ONE, *arguments)
    assert found.code == 2
    assert said in found.err


def test_files_of_collectives_have_rows_without_an_exact_time(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "cases.csv"
    header = "kind,size_bytes,topology,bandwidth_GBps\n"
    rows = "all-reduce,16,SW(2)_[SW(4)_SW(2)],16 7 0.5\nall-reduce,16,SW(2)_SW(8),16 7\n"
    path.write_text(header + rows)
    found = run("collective", "--csv", path)
    first, second = csv.DictReader(io.StringIO(found.out))
    assert (first["time_s"], float(first["ideal_time_s"])) == ("", pytest.approx(4e-9))
    assert float(second["time_s"]) > 0
    assert "1 of 2 rows have no exact time" in found.err


def test_brackets_are_proposed_for_switches_of_one_network() -> None:
    """Three faults have one cause and name the topology that mends them all."""
    settings = ["fabric.topology=SW(8)_SW(32)_SW(8)"]
    with pytest.raises(SpecError) as caught:
        load_plan(example("0e_rails_2to1"), settings)
    faults = {fault.path: fault.fix for fault in caught.value.faults}
    assert set(faults) == {"fidelity", "fabric.tiers.2", "constraints.1"}
    (written,) = {re.search(r"fabric.topology: (\S+)", fix)[1] for fix in faults.values()}
    assert load_plan(example("0e_rails_2to1"), [f"fabric.topology={written}"])


def test_calibrated_is_not_proposed_an_npu_where_no_fabric_of_it_fits() -> None:
    with pytest.raises(
        SpecError, match=r"^[^\n]*got calibrated for RI\(4\).*; write fidelity: ideal$"
    ):
        load_plan(example("01_gpt3_4d"), ["fidelity=calibrated"])
    assert load_plan(example("01_gpt3_4d"), ["fidelity=ideal"])
