"""LIBRA's published inputs (libra_optima.csv) as one batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from libra_planner.optimizer.optimize import batch_optimize
from libra_planner.plan.problem import load_plan
from libra_planner.problem import Problem
from tests.oracles.libra_tables import optima, write_files

ROWS = optima()


def problem(row: dict[str, str], folder: Path, run) -> Problem:
    """A reference row by way of LIBRA's own files."""
    folder.mkdir()
    plan = folder / "plan.yaml"
    assert run("import", "libra", *write_files(folder, row), "-o", plan).code == 0
    rule = f'constraints=["total == {row["total_GBps"]} GB/s"]'
    return load_plan(plan, [rule, f"objective={row['objective']}"])


def test_all_rows_as_one_batch(tmp_path: Path, run) -> None:
    result = batch_optimize([problem(row, tmp_path / row["id"], run) for row in ROWS])
    assert (result.status == "optimal").all()
    assert result.n_resolved == 0
    unit = np.array([1e-9 if row["objective"] == "performance" else 1.0 for row in ROWS])
    optimum = np.array([float(row["optimum"]) for row in ROWS]) * unit
    assert np.allclose(result.objective, optimum, rtol=1e-7, atol=0)
    assert (result.optimality_gap <= 1e-8).all()
    assert (result.lower_bound <= optimum * (1 + 1e-9)).all()
    for row, found in zip(ROWS, result.bandwidth_bytes_per_s, strict=True):
        expected = np.array(row["bandwidth_GBps"].split(), dtype=float)
        if row["unique"] == "1":
            assert np.allclose(found[: len(expected)] * 1e-9, expected, rtol=1e-4), row["id"]
