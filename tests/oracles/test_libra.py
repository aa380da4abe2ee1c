"""LIBRA's published inputs: tables to the integer, optima within 1e-6."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from libra_planner.plan.problem import load_plan
from libra_planner.plan.workloads import PlanSettings, load_workload
from libra_planner.workload.operations import CollectiveKind, Operation, Phase
from tests.oracles.libra_tables import TABLES, optima, write_files

TIERS = {3: "[package, node, pod]", 4: "[chiplet, package, node, pod]"}
WORKLOADS = {"GPT_3": "gpt3-libra", "MSFT_1T": "msft-1t-libra", "Turing_NLG": "turing-nlg-libra"}
SETTINGS = {
    "GPT_3": PlanSettings(tp=16, dp=256),
    "MSFT_1T": PlanSettings(tp=128, dp=32),
    "Turing_NLG": PlanSettings(tp=1, dp=4096),
}
KINDS = {"ALLREDUCE": CollectiveKind.ALL_REDUCE, "ALLGATHER": CollectiveKind.ALL_GATHER}
BUNDLED = Path(__file__).parents[2] / "workloads"

PERFORMANCE = [row for row in optima() if row["objective"] == "performance"]
PER_COST = [row for row in optima() if row["objective"] == "performance_per_cost"]


def _name(row: dict[str, str]) -> str:
    return f"row{row['id']}"


each_row = pytest.mark.parametrize("row", PERFORMANCE, ids=_name)
each_per_cost_row = pytest.mark.parametrize("row", PER_COST, ids=_name)


def _fields(operations: list[Operation]) -> list[str]:
    """Three operations of one operator as LIBRA's fields."""
    fields = [operations[0].layer, "-1"]
    for operation in operations:
        ns = operation.compute_s * 1e9
        assert abs(ns - round(ns)) < 1e-3
        collective = operation.collective
        fields += [str(round(ns))]
        if collective is None:
            fields += ["NONE", "0"]
        else:
            assert collective.size_bytes == int(collective.size_bytes)
            assert collective.is_shard == (collective.kind is CollectiveKind.ALL_GATHER)
            names = {kind: name for name, kind in KINDS.items()}
            fields += [names[collective.kind], str(int(collective.size_bytes))]
    return [*fields, "10"]


@pytest.mark.parametrize("name", TABLES)
def test_generator_reproduces_libras_table_to_the_integer(name: str) -> None:
    workload = load_workload(BUNDLED / f"{WORKLOADS[name]}.yaml", SETTINGS[name])
    operations = workload.operations
    assert [operation.phase for operation in operations[:3]] == list(Phase)
    rows = [_fields(list(operations[i : i + 3])) for i in range(0, len(operations), 3)]
    assert rows == TABLES[name].rows()


@each_row
def test_optimum_of_libras_own_files(row: dict[str, str], tmp_path: Path, run) -> None:
    plan = tmp_path / "plan.yaml"
    assert run("import", "libra", *write_files(tmp_path, row), "-o", plan).code == 0
    rule = f'constraints=["total == {row["total_GBps"]} GB/s"]'
    result = run("optimize", plan, "--set", rule, "--json")
    assert result.code == 0, result.err
    _check(row, result.payload)
    equal = result.payload["equal_bandwidth"]
    assert equal["cost_usd"] == pytest.approx(float(row["equal_usd"]), rel=1e-9)


@each_per_cost_row
def test_performance_per_cost_of_libras_own_files(row: dict[str, str], tmp_path: Path, run) -> None:
    plan = tmp_path / "plan.yaml"
    run("import", "libra", *write_files(tmp_path, row), "-o", plan)
    rule = f'constraints=["total == {row["total_GBps"]} GB/s"]'
    per_cost = "objective=performance_per_cost"
    result = run("optimize", plan, "--set", rule, "--set", per_cost, "--json")
    assert result.code == 0, result.err
    payload = result.payload
    assert payload["objective"] == pytest.approx(float(row["optimum"]), rel=1e-7)
    assert payload["objective"] == payload["step_time_s"] * payload["cost_usd"]
    assert 0 <= payload["optimality_gap"] <= 1e-6
    assert payload["lower_bound"] <= float(row["optimum"]) * (1 + 1e-9)
    assert payload["max_violation"] <= 1e-9
    reference = np.array(row["bandwidth_GBps"].split(), dtype=float)
    if row["unique"] == "1":
        assert np.allclose(payload["bandwidth_GBps"], reference, rtol=1e-4)


@each_row
def test_optimum_of_the_bundled_workloads(row: dict[str, str], tmp_path: Path, run) -> None:
    tiers = TIERS[row["topology"].count("_") + 1]
    settings = SETTINGS[row["workload"]]
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"workload: {WORKLOADS[row['workload']]}\n"
        f"fabric: {{topology: {row['topology']}, tiers: {tiers}}}\n"
        f"parallelism: {{tp: {settings.tp}, dp: {settings.dp}}}\n"
        "cost_model: libra-ispass24\n"
        f"constraints: [total == {row['total_GBps']} GB/s]\n"
    )
    _check(row, run("optimize", plan, "--json").payload)


def _check(row: dict[str, str], payload: dict) -> None:
    optimum_s = float(row["optimum"]) * 1e-9
    assert payload["step_time_s"] == pytest.approx(optimum_s, rel=1e-7)
    assert payload["objective"] == payload["step_time_s"]
    assert 0 <= payload["optimality_gap"] <= 1e-8
    assert payload["lower_bound"] <= payload["step_time_s"]
    assert payload["lower_bound"] <= optimum_s * (1 + 1e-9)
    assert payload["max_violation"] <= 1e-9
    assert payload["unique"] is True
    reference = np.array(row["bandwidth_GBps"].split(), dtype=float)
    assert np.allclose(payload["bandwidth_GBps"], reference, rtol=1e-5)
    equal_s = float(row["equal_ns"]) * 1e-9
    assert payload["equal_bandwidth"]["step_time_s"] == pytest.approx(equal_s, rel=1e-12)
    assert payload["equal_bandwidth"]["feasible"] is True
    assert payload["speedup_vs_equal"] == pytest.approx(equal_s / optimum_s, rel=1e-7)


def test_published_speedups_over_equal_bandwidth_appear(plan, run) -> None:
    """LIBRA (ISPASS'24): 1.96x for ResNet-50, 1.689x for MSFT-1T at 100 GB/s on the 4D fabric."""
    budget = ("total == 500", "total == 100")
    msft = plan(budget, ("gpt3-libra", "msft-1t-libra"), ("{tp: 16, dp: 256}", "{tp: 128, dp: 32}"))
    assert run("optimize", msft, "--json").payload["speedup_vs_equal"] == pytest.approx(
        1.689, abs=5e-4
    )
    resnet = plan(budget, ("gpt3-libra", "resnet50-libra"), ("{tp: 16, dp: 256}", "{dp: 4096}"))
    assert run("optimize", resnet, "--json").payload["speedup_vs_equal"] == pytest.approx(
        1.96, abs=6e-3
    )


def test_libra_prices_keep_their_digits(tmp_path: Path, run) -> None:
    row = next(row for row in optima() if row["id"] == "100")
    plan = tmp_path / "plan.yaml"
    run("import", "libra", *write_files(tmp_path, row), "-o", plan)
    price = load_plan(plan).price_usd_per_Bps * 1e9
    assert np.allclose(price, np.array(row["price_usd_per_GBps"].split(), dtype=float), rtol=1e-9)


def test_import_writes_plan_workload_and_prices_and_no_rules(tmp_path: Path, run) -> None:
    row = next(row for row in optima() if row["id"] == "100")
    result = run("import", "libra", *write_files(tmp_path, row), "-o", tmp_path / "a.yaml")
    written = ["a.yaml", "a.workload.yaml", "a.prices.yaml"]
    assert [Path(line).name for line in result.out.split()] == written
    problem = load_plan(tmp_path / "a.yaml")
    assert problem.rules == ()
    assert problem.topology.tiers == ("InterChiplet", "InterPackage", "InterNode", "InterPod")
    unbounded = run("optimize", tmp_path / "a.yaml")
    assert unbounded.code == 3
    assert "no rule that bounds the bandwidth of InterChiplet, InterPackage" in unbounded.err


def test_evaluating_the_printed_vector_gives_the_printed_figures(plan, run) -> None:
    path = plan()
    best = run("optimize", path, "--json").payload
    vector = ",".join(map(repr, best["bandwidth_GBps"]))
    again = run("evaluate", path, "--bandwidth", vector, "--json").payload
    for key in ("step_time_s", "cost_usd", "speedup_vs_equal", "bottlenecks", "objective"):
        assert json.dumps(again[key]) == json.dumps(best[key])
    assert again["feasible"] is True
    assert again["violated"] == []
    assert "optimality_gap" not in again
