"""Plans whose collectives run as they were measured (C20)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

import libra_planner as lp
from libra_planner.errors import SpecError
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.optimize import batch_optimize, optimize
from libra_planner.plan.problem import load_plan
from libra_planner.routing.policy import Policy
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.collectives.measured import (
    LARGE_BYTES,
    SCALE_UPS,
    Bands,
    Constants,
    Ranks,
    measured_time_s,
)
from libra_planner.step.collectives.schedules import Schedule, Schedules
from libra_planner.step.expression import TimeExpression
from libra_planner.views.plan import no_class_text
from libra_planner.workload.operations import Collective, CollectiveKind, Group
from tests.oracles.test_measured_collectives import RUNS

GB = 1e9
TIERS = {1: ["node"], 2: ["node", "leaf"], 3: ["node", "leaf", "spine"]}


@pytest.fixture
def calibrated(tmp_path: Path):
    """A plan of one collective among all NPUs; other keys of the plan by name."""

    def write(topology: str, kind: str = "all-reduce", size_bytes: float = 2**30, **keys) -> Path:
        step = {"layer": "a", "phase": "weight_grad", "compute_ms": 0}
        size = {"full_bytes" if kind == "all-gather" else "size_bytes": size_bytes}
        table = {"kind": "table", "source": "hand"}
        table["operations"] = [step | {"collective": {"kind": kind, **size}}]
        (tmp_path / "w.yaml").write_text(yaml.safe_dump(table))
        n_dims = topology.count("(")
        plan = {
            "workload": "./w.yaml",
            "fabric": {"topology": topology, "tiers": TIERS.get(n_dims, ["node"] * n_dims)},
            "parallelism": {"tp": 1, "dp": parse_topology(topology).n_npus},
            "cost_model": "clos-2026",
            "fidelity": "calibrated",
            "system": "h100-sxm",
        }
        plan |= keys
        path = tmp_path / "plan.yaml"
        path.write_text(yaml.safe_dump({k: v for k, v in plan.items() if v is not None}))
        return path

    return write


def step_time_s(path: Path, *bandwidth_GBps: float) -> float:
    problem = load_plan(path)
    return float(problem.step_time.seconds(np.array(bandwidth_GBps) * GB))


@pytest.mark.parametrize("kind", [one.value for one in CollectiveKind])
@pytest.mark.parametrize("n_nodes", [1, 2, 4, 32])
@pytest.mark.parametrize("size_bytes", [2**14, 2**30])
def test_a_plan_of_one_collective_takes_as_long_as_the_command_says(
    kind, n_nodes, size_bytes, calibrated
) -> None:
    topology = "SW(8)" if n_nodes == 1 else f"SW(8)_SW({n_nodes})"
    path = calibrated(topology, kind, size_bytes, interconnect="ethernet")
    found = step_time_s(path, *[450, 25][: 1 + (n_nodes > 1)])
    ranks = Ranks(SCALE_UPS["H100"], n_nodes, 8, 8 * 25 * GB, "ethernet")
    assert found == pytest.approx(measured_time_s(kind, size_bytes, ranks), rel=1e-12)


def test_measured_runs_come_out_of_plans_as_well_as_of_the_law() -> None:
    """Every run whose domains are alike, as SW(ranks of a domain)_SW(domains)."""
    errors: dict[bool, list[float]] = {False: [], True: []}
    for run in RUNS:
        ranks, n_inside = run.ranks, run.ranks.n_per_domain
        if run.kind == "send_recv" or n_inside != int(n_inside):
            continue
        sizes = (int(n_inside), ranks.n_domains)
        topology = parse_topology(f"SW({max(2, sizes[0])})_SW({max(2, sizes[1])})")
        name = next(name for name, one in SCALE_UPS.items() if one is ranks.scale_up)
        model = Calibrated(name, ranks.network, domain=0, port=1)
        schedules = Schedules(Schedule.RING, Schedule.DIRECT)
        network = Network(topology, (0.0, 0.0), (None, None), schedules=schedules)
        collective = Collective(CollectiveKind(run.kind), run.size_bytes, "dp")
        time = model.time(collective, Group(sizes, (1, 1)), network)
        line_Bps = np.array([ranks.scale_up.npu_Bps, ranks.domain_nic_Bps / n_inside or 1.0])
        found = float(TimeExpression(time, 2).seconds(line_Bps))
        law = measured_time_s(run.kind, run.size_bytes, ranks)
        assert found == pytest.approx(law, rel=1e-12)
        if run.size_bytes >= LARGE_BYTES:
            errors[ranks.n_domains > 1].append(abs(found / run.time_s - 1))
    assert [len(errors[across]) for across in (False, True)] > [50, 30]
    assert np.mean(errors[False]) < 0.08
    assert np.mean(errors[True]) < 0.16


def test_uplinks_count_where_a_taper_makes_them_the_slowest(calibrated) -> None:
    """A ring over 64 NPUs, 32 a leaf: 2 m 63/64 leave a node per NIC / 8, a leaf / 32."""
    path = calibrated("SW(8)_[SW(4)_SW(2)]")
    sent, found = 2 * 2**30 * 63 / 64, Constants()
    steps_s = 2 * 6 * found.infiniband_step_s

    def law_s(z_s: float) -> float:
        return found.start_s + steps_s + z_s + 2 * np.sqrt(steps_s * z_s)

    nic_s = sent / 8 / (found.nic_fraction * 50 * GB)
    assert step_time_s(path, 450, 50, 50) == pytest.approx(law_s(nic_s), rel=1e-12)
    assert step_time_s(path, 450, 50, 15) == pytest.approx(law_s(nic_s), rel=1e-12)  # 3.3:1
    uplink_s = sent / 32 / (10 * GB)  # 5:1
    assert step_time_s(path, 450, 50, 10) == pytest.approx(law_s(uplink_s), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_step_times_are_convex_and_fall_with_bandwidth(seed, calibrated) -> None:
    rng = np.random.default_rng(seed)
    kind = str(rng.choice([one.value for one in CollectiveKind]))
    path = calibrated("SW(8)_[SW(4)_SW(4)]", kind, float(10.0 ** rng.uniform(4, 10)))
    time = load_plan(path).step_time
    ends = 10.0 ** rng.uniform(8, 12, (2, 200, 3))
    share = rng.random((200, 1))
    between = time.seconds(share * ends[0] + (1 - share) * ends[1])
    chord = share[:, 0] * time.seconds(ends[0]) + (1 - share[:, 0]) * time.seconds(ends[1])
    assert (between <= chord * (1 + 1e-12)).all()
    assert (time.seconds(ends[0] * (1 + share)) <= time.seconds(ends[0])).all()


@pytest.mark.parametrize("objective", ["performance", "performance_per_cost"])
def test_optima_are_certified_and_nothing_beside_them_is_better(objective, calibrated) -> None:
    rules = ["dim1 + dim2 <= 300 GB/s", "dim2 >= 5 GB/s"]
    path = calibrated("SW(8)_SW(32)", constraints=rules, objective=objective, fixed_cost="10 M$")
    problem = load_plan(path)
    design = optimize(problem)
    assert design.optimality_gap <= 1e-10
    inside = np.linspace(0.5, 294.9, 20_000)
    for total in (300.0, 250.0):
        designs = np.stack([inside, total - inside], axis=1) * GB
        designs = designs[(designs[:, 1] >= 5 * GB)]
        values = problem.step_time.seconds(designs)
        if objective != "performance":
            values = values * problem.cost_usd(designs)
        assert values.min() >= design.objective * (1 - 1e-12)
    found = batch_optimize([problem, problem])
    np.testing.assert_allclose(found.objective, design.objective, rtol=1e-10)
    assert (found.status == "optimal").all()
    assert not found.n_resolved


def test_a_sweep_solves_calibrated_plans(calibrated, tmp_path, run) -> None:
    """As optimize does, all at once."""
    path = calibrated("SW(8)_SW(32)", constraints=["total == 300 GB/s"])
    sweep = tmp_path / "sweep.yaml"
    rule, totals = "total == {budget} GB/s", (200, 300, 400)
    keys = {"axes": {"budget": list(totals)}, "set": {"constraints": [rule]}}
    sweep.write_text(yaml.safe_dump({"base": str(path), **keys}))
    result = run("sweep", "run", sweep, "-o", tmp_path / "run")
    assert result.code == 0, result.err
    rows = run("sweep", "show", tmp_path / "run", "--csv", "-").out.splitlines()
    times = [float(row.split(",")[rows[0].split(",").index("step_time_s")]) for row in rows[1:]]
    plans = [load_plan(path, f"constraints=['total == {n} GB/s']") for n in totals]
    wanted = [optimize(plan).objective for plan in plans]
    assert sorted(times) == pytest.approx(sorted(wanted), rel=1e-9)


def test_routing_stretches_what_the_law_has_on_the_lines(calibrated) -> None:
    """2:1 with every ring crossing leaves: z is twice as long, the steps are not."""
    realization = {
        "switch_radix": 8,
        "leaves": 2,
        "oversubscription": 2,
        "wiring": "rail",
        "placement": "rail",
    }
    fabric = {"topology": "SW(2)_SW(8)", "tiers": ["node", "leaf"], "realization": realization}
    path = calibrated("SW(2)_SW(8)", fabric=fabric)
    links = lp.link_check(load_plan(path), np.array([450, 50]) * GB)
    report = links.report(Policy("spray"))
    [factor] = {phase.time_factor for phase, _ in report.phases if phase.label == "dim2"}
    assert factor > 1.5
    sent, found = 2 * 2**30 * 15 / 16, Constants()
    steps_s = 2 * 4 * found.infiniband_step_s
    z_s = factor * sent / 2 / (found.nic_fraction * 50 * GB)
    expected = found.start_s + steps_s + z_s + 2 * np.sqrt(steps_s * z_s)
    assert report.effective_step_time_s[0] == pytest.approx(expected, rel=1e-9)
    assert {one.stage.reason for one in report.choices} == {"library"}
    error = 1 + Bands().error_fraction("all-reduce", 2**30, Ranks(SCALE_UPS["H100"], 8, 2, 1e11))
    assert report.band_s == pytest.approx((expected / error, expected * error), rel=1e-9)


def test_times_have_the_bands_of_their_collectives(calibrated, run) -> None:
    path = calibrated("SW(8)_SW(4)")
    found = run("evaluate", path, "--bandwidth", "450,50", "--json").payload
    error = 1 + Bands().error_fraction("all-reduce", 2**30, Ranks(SCALE_UPS["H100"], 4, 8, 4e11))
    assert found["step_time_low_s"] == pytest.approx(found["step_time_s"] / error, rel=1e-12)
    assert found["step_time_high_s"] == pytest.approx(found["step_time_s"] * error, rel=1e-12)
    text = run("evaluate", path, "--bandwidth", "450,50").out
    assert "by the mean error of measured collectives" in text
    assert "compute is as the plan has it" in text
    assert "collectives as NCCL on H100, infiniband (rings" in " ".join(text.split())
    ideal = calibrated("SW(8)_SW(4)", fidelity="ideal", system=None)
    found = run("evaluate", ideal, "--bandwidth", "450,50", "--json").payload
    assert (found["step_time_low_s"], found["step_time_high_s"]) == (None, None)


def test_what_was_not_measured_is_said(calibrated, run) -> None:
    path = calibrated("SW(8)_SW(256)", "all-reduce", 2.0**35)
    notes = run("evaluate", path, "--bandwidth", "450,50", "--json").payload["notes"]
    [note] = [note for note in notes if note.startswith("calibrated extrapolates: ")]
    assert "2,048 ranks (measured up to 1,440); " in note
    assert "bytes (measured from 1024 to" in note
    assert notes[-1] == note  # Where figures come from stands last.
    path = calibrated("SW(8)_SW(4)", system="b200")
    notes = run("evaluate", path, "--bandwidth", "900,50", "--json").payload["notes"]
    assert any("B200 across domains (measured A100, H100, GB200)" in note for note in notes)


@pytest.mark.parametrize(
    ("topology", "keys", "message"),
    [
        ("RI(4)_SW(8)", {}, "got calibrated for RI(4)_SW(8), expected a scale-up switch"),
        ("SW(8)_SW(4)_SW(4)", {}, "expected a scale-up switch without NICs, then one network"),
        ("SW(16)_SW(4)", {}, "got a scale-up switch of 16 H100, expected at most 8"),
        ("SW(8)_SW(4)", {"system": None}, "got calibrated with no NPU"),
        ("SW(8)_SW(4)", {"system": "mi300y"}, "got 'mi300y', expected a known system"),
        ("SW(8)_SW(4)", {"system": "mi300x"}, "got mi300x, whose collectives nobody measured"),
        ("SW(8)_SW(4)", {"system": "b300"}, "write system: b200-sxm, whose links are the same"),
        ("SW(8)_SW(4)", {"algorithms": ["ring", "ring"]}, "got algorithms with fidelity: calib"),
        ("SW(8)_SW(4)", {"schedules": {"all_reduce": "ring"}}, "got schedules with fidelity"),
        ("SW(8)_SW(4)", {"scheduler": "balanced"}, "got scheduler with fidelity: calibrated"),
        ("SW(8)_SW(4)", {"in_network_reduction": ["leaf"]}, "got in_network_reduction with fid"),
        ("SW(8)_SW(4)", {"fidelity": "ideal"}, "got system with fidelity: ideal"),
    ],
)
def test_what_the_law_does_not_know_is_refused(topology, keys, message, calibrated) -> None:
    with pytest.raises(SpecError) as found:
        load_plan(calibrated(topology, **keys))
    assert message in str(found.value)


def test_a_check_says_where_switches_sum(run) -> None:
    """On H100 the all-reduce of a server is summed by its switches; the rails run a ring."""
    example = str(lp.example("0c_calibrated"))
    phases = run("check", example, "--policy", "spray", "--json").payload["phases"]
    assert {(one["dimension"], one["algorithm"]) for one in phases} == {
        ("dim1", "in-network"),
        ("dim2", "ring"),
    }
    a100 = ("npu.name=a100-sxm-80gb", "fabric.scale_up=nvlink3-8")
    flags = [word for one in a100 for word in ("--set", one)]
    phases = run("check", example, "--policy", "spray", "--json", *flags).payload["phases"]
    assert {one["algorithm"] for one in phases} == {"ring"}


OF_B200 = ("npu=b200-sxm", "fixed_cost=0 $", "fabric.scale_up=nvlink5-8")
OF_H200 = ("--set", "npu=h200-sxm", "--set", "fixed_cost=0 $")
MIXTURE = ("workload=mixtral-8x7b", "parallelism={tp: 8, ep: 8, dp: 256}", "global_batch=2048")


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ((*OF_B200, *MIXTURE), "too few runs of B200 experts bf16 are published"),
        (("fidelity=ideal",), "fidelity: calibrated has a band"),
        (("training_loop=no_overlap",), "no published runs have this loop"),
    ],
)
def test_a_time_without_a_range_says_why(overrides, why, run) -> None:
    """A report and an optimum give the same reason; ideal ones have none to give."""
    sets = [part for one in (*overrides, "memory=ignore") for part in ("--set", one)]
    found = run("optimize", "0e_rails_2to1", *sets)
    assert run("optimize", "0e_rails_2to1", *sets, "--json").payload["step_time_low_s"] is None
    assert (f"No range: {why}" in found.out) is ("fidelity=ideal" not in overrides)
    problem = lp.load_plan("0e_rails_2to1", [*overrides, "memory=ignore"])
    assert why in no_class_text(problem)
    is_of_kind = "B200" in why  # The next kinds are told, as their classes have them.
    near = "26% (H100 experts bf16) and 27% (GB200 experts fp8)"
    assert (near in no_class_text(problem)) is is_of_kind


def test_an_npu_with_too_few_runs_takes_the_range_of_its_die(run, monkeypatch) -> None:
    """H200: nine of ten runs of H100 are less than 19 % off."""
    monkeypatch.setenv("COLUMNS", "200")
    found = run("optimize", "0e_rails_2to1", *OF_H200)
    assert "as published runs of H100 dense bf16 (too few are of H200) are off" in found.out
    told = run("optimize", "0e_rails_2to1", *OF_H200, "--json").payload
    ends = [told["step_time_s"] / x for x in (1.19, 0.81)]
    assert [told["step_time_low_s"], told["step_time_high_s"]] == pytest.approx(ends)


def test_zero_beyond_the_distributed_optimizer_says_what_it_asks_for(run, monkeypatch) -> None:
    """Megatron Core has ZeRO 2 and 3 only by its FSDP; FSDP2 has them by itself."""
    monkeypatch.setenv("COLUMNS", "200")
    note = "ZeRO 3 asks for Megatron FSDP; the distributed optimizer has ZeRO 1"
    for settings, told in (
        (("parallelism.zero=3",), True),
        (("parallelism.zero=1",), False),
        (("parallelism.zero=3", "library=fsdp"), False),
    ):
        words = [word for one in (*settings, "parallelism.interleave=1") for word in ("--set", one)]
        assert (note in run("optimize", "0e_rails_2to1", *words).out) is told


def test_a_plan_pays_for_the_npu_that_computes() -> None:
    def faults(**changes: object) -> str:
        with pytest.raises(SpecError) as found:
            lp.load_plan("0e_rails_2to1", changes)
        return str(found.value)

    assert "fixed_cost.npu: got h100-sxm, and the plan computes with h200-sxm" in faults(npu="h200")
    said = faults(npu="b200")  # One change, both faults, and no word on NPUs that it left.
    assert "write nvlink5-8" in said
    assert "fixed_cost.npu=b200-sxm" in said
    assert "write system" not in said
    followed = {"npu": "b200", "fabric.scale_up": "nvlink5-8", "fixed_cost.npu": "b200-sxm"}
    assert lp.load_plan("0e_rails_2to1", followed)
    lp.load_plan("0e_rails_2to1", {"npu": "h100"})  # Another name of the same NPU.
