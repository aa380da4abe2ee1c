"""Sweeps against slow twins: itertools for the space, plan by plan for the figures."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import libra_planner as lp
from libra_planner.errors import IllPosed, Infeasible, SolverFailed, SpecError
from libra_planner.problem import Problem
from libra_planner.reading.bundled import folder
from libra_planner.sweeps import cases as cases_module
from libra_planner.sweeps import spec as space_module
from libra_planner.sweeps.axes import Axis
from libra_planner.sweeps.expressions import parse_expression
from libra_planner.sweeps.figures.solved import table_of
from libra_planner.sweeps.solver import Solver, opened_plan
from libra_planner.sweeps.spec import Chunk, Job, Space, chunk_between, job_of, load_sweep
from tests.conftest import random_cases

FILTERS = (
    "a * b <= 12",
    "a % 2 == 0 or c != 'y'",
    "1 <= b <= a + 2",
    "not (a == b and c in ['x', 'z'])",
    "max(a, b) // 2 < 3 if c == 'x' else a - b > -3",
    "a / b >= 0.5",
    "c in 'xyz' and flag",
)


def _slow_plan(job: Job, chunk: Chunk, row: int) -> Problem:
    """A design's problem from its whole plan: what every fast path has to equal."""
    return opened_plan(job, chunk, row).searched().problem


def _python(text: str, values: dict[str, object]) -> bool:
    """What Python itself makes of the filter: the obvious twin (tests only)."""
    try:
        return bool(eval(text, {"max": max}, values))
    except ZeroDivisionError:
        return False


@random_cases(20)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True),
    st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True),
    st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(FILTERS), max_size=3, unique=True),
    st.permutations(["a", "b", "c", "flag", "rest"]),
    st.integers(1, 50),
)
def test_enumeration_equals_itertools(
    a: list[int], b: list[int], c: list[str], filters: list[str], order: list[str], block: int
) -> None:
    values = {"a": a, "b": b, "c": c, "flag": [True, False], "rest": [1, 2, 3]}
    axes = {name: Axis(name, tuple(values[name])) for name in order}
    kinds = {name: axis.kind for name, axis in axes.items()}
    combinations = itertools.product(*(axes[name].values for name in order))
    named = [dict(zip(order, one, strict=True)) for one in combinations]
    expected = [tuple(one.values()) for one in named if all(_python(text, one) for text in filters)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(space_module, "BLOCK", block)
        found = Space(tuple(axes.values()), tuple(parse_expression(t, kinds) for t in filters))
        assert found.n == len(expected)
        digits = np.concatenate(
            [found.digits(i, min(i + 7, found.n)) for i in range(0, found.n, 7)]
            or [np.zeros((5, 0), dtype=np.int32)],
            axis=1,
        )
    rows = [
        tuple(axes[name].values[i] for name, i in zip(order, column, strict=True))
        for column in digits.T
    ]
    assert rows == expected


BASE = {
    "workload": "gpt3-libra",
    "fabric": {
        "topology": "RI(4)_FC(8)_RI(4)_SW(32)",
        "tiers": ["chiplet", "package", "node", "pod"],
    },
    "parallelism": {"tp": "{tp}", "dp": "{4096 / tp}"},
    "cost_model": "libra-ispass24",
    "fixed_cost": "{fixed} M$",
    "constraints": [
        "total <= {budget} GB/s",
        "{floor} GB/s <= pod",
        "dim1 >= {ratio} * dim2",
        "step_time <= {limit} ms",
        "cost <= {money} M$",
    ],
}
AXES = {
    "tp": [12, 16, 32],  # 4096 / 12 is no degree: those rows are invalid.
    "fixed": [0, 40],
    "budget": [80, 150.5, 700],
    "floor": [0, 12],
    "ratio": [1, 3.5],
    "limit": [700, 2500],
    "money": [5, 300],
    "training_loop": ["no_overlap", "tp_dp_overlap"],
}


def _write(folder: Path, **changes: object) -> Path:
    sweep = {"base": BASE, "axes": AXES} | changes
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(sweep, sort_keys=False))
    return path


def _twin(problem: lp.Problem) -> tuple[str, dict[str, float], str]:
    """One design by load_plan's own code and the reference optimizer."""
    try:
        design = lp.optimize(problem)
    except Infeasible as error:
        return "infeasible", {}, str(error)
    except IllPosed as error:
        return "ill_posed", {}, str(error)
    except SolverFailed as error:
        return "uncertified", {}, str(error)
    evaluation = lp.evaluate(problem, design.bandwidth_bytes_per_s)
    figures = {
        "objective_value": design.objective,
        "step_time_s": evaluation.step_time_s,
        "cost_usd": evaluation.cost_usd,
        "speedup_vs_equal": evaluation.speedup_vs_equal,
    }
    return "optimal", figures, ""


@pytest.mark.parametrize("objective", ["performance", "performance_per_cost", "cost"])
def test_rows_equal_plans_optimised_one_by_one(objective: str, tmp_path: Path) -> None:
    """40 random designs of 1,152, every figure to 1e-9, every status, every message."""
    columns = ["objective_value", "optimality_gap", "step_time_s", "cost_usd", "bandwidth"]
    columns += ["speedup_vs_equal", "message", "resolved"]
    sample = {"method": "random", "n": 40}
    path = _write(tmp_path, objective=objective, sample=sample, seed=3, columns=columns)
    sweep = load_sweep(path)
    job = job_of(sweep)
    chunk = chunk_between(sweep, 0, 40)
    rows = table_of(Solver(job).solved(chunk), job).to_pylist()
    statuses = set()
    for i, row in enumerate(rows):
        statuses.add(row["status"])
        assert row["objective"] == objective
        try:
            problem = _slow_plan(job, chunk, i)
        except SpecError as error:
            status, figures, message = "invalid", {}, str(error)
        else:
            status, figures, message = _twin(problem)
        assert row["status"] == status, (row, message)
        for name, value in figures.items():
            assert row[name] == pytest.approx(value, rel=1e-9), (i, name)
        if status == "optimal":
            assert row["optimality_gap"] <= 1e-6
            bandwidth = [row[f"bandwidth_dim{d}_GBps"] * 1e9 for d in range(1, 5)]
            assert float(problem.step_time.seconds(np.array(bandwidth))) == pytest.approx(
                row["step_time_s"], rel=1e-12
            )
        elif row["resolved"] or status == "invalid":
            assert row["message"] == message
    assert {"optimal", "invalid"} <= statuses


def test_designs_that_no_batch_holds_are_solved_one_by_one(tmp_path: Path) -> None:
    base = copy.deepcopy(BASE) | {"parallelism": {"tp": 32, "dp": 128}, "fixed_cost": "0 $"}
    base |= {"fidelity": "pipelined", "chunks": "auto", "constraints": ["total == {budget} GB/s"]}
    base["fabric"]["latency_ns"] = 200
    path = _write(
        tmp_path, base=base, axes={"budget": [100, 500]}, columns=["step_time_s", "resolved"]
    )
    sweep = load_sweep(path)
    job, chunk = job_of(sweep), chunk_between(sweep, 0, 2)
    rows = table_of(Solver(job).solved(chunk), job).to_pylist()
    for i, row in enumerate(rows):
        design = lp.optimize(_slow_plan(job, chunk, i))
        assert row["resolved"]
        assert row["step_time_s"] == pytest.approx(design.objective, rel=1e-9)


def test_a_group_is_batched(tmp_path: Path) -> None:
    base = copy.deepcopy(BASE)
    del base["workload"], base["parallelism"]
    base |= {
        "workloads": [
            {"workload": "gpt3-libra", "parallelism": {"tp": 16, "dp": 256}, "weight": "{w}"},
            {"workload": "turing-nlg-libra", "parallelism": {"tp": 1, "dp": 4096}},
        ],
        "constraints": ["total == 500 GB/s"],
        "fixed_cost": "0 $",
    }
    path = _write(tmp_path, base=base, axes={"w": [1, 5, 25]}, columns=["step_time_s", "resolved"])
    sweep = load_sweep(path)
    job, chunk = job_of(sweep), chunk_between(sweep, 0, 3)
    rows = table_of(Solver(job).solved(chunk), job).to_pylist()
    for i, row in enumerate(rows):
        assert not row["resolved"]
        best = lp.optimize(_slow_plan(job, chunk, i)).objective
        assert row["step_time_s"] == pytest.approx(best, rel=1e-9)


def test_objectives_and_price_books_share_a_step_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step time for 3 objectives x 2 books; a book that is not there names its place."""
    book = (folder("cost-models") / "libra-ispass24.yaml").read_text()
    (tmp_path / "book.yaml").write_text(book.replace("link: 7.8", "link: 9.75"))
    base = copy.deepcopy(BASE) | {"parallelism": {"tp": 16, "dp": 256}, "fixed_cost": "30 M$"}
    base["constraints"] = ["total <= 600 GB/s", "step_time <= 900 ms", "cost <= 100 M$"]
    path = _write(
        tmp_path,
        base=base,
        axes={"cost_model": ["libra-ispass24", "book.yaml", "nowhere.yaml"]},
        objective=["performance", "performance_per_cost", "cost"],
        columns=["objective_value", "cost_usd", "message"],
    )
    sweep = load_sweep(path)
    job, chunk = job_of(sweep), chunk_between(sweep, 0, 9)
    built = []
    real = cases_module.build_plan
    monkeypatch.setattr(cases_module, "build_plan", lambda *a: built.append(a) or real(*a))
    rows = table_of(Solver(job).solved(chunk), job).to_pylist()
    assert len(built) == 1 + 3  # Each objective asks again for the book that is not there.
    for i, row in enumerate(rows):
        if row["cost_model"] == "nowhere.yaml":
            assert row["status"] == "invalid"
            assert row["message"].startswith(f"{path}:")
            continue
        problem = _slow_plan(job, chunk, i)
        design = lp.optimize(problem)
        assert problem.objective == row["objective"]
        assert row["objective_value"] == pytest.approx(design.objective, rel=1e-9)
        cost_usd = float(problem.cost_usd(design.bandwidth_bytes_per_s))
        assert row["cost_usd"] == pytest.approx(cost_usd, rel=1e-9)
