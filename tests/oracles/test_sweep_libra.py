"""LIBRA's published inputs (libra_optima.csv) as one sweep."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from tests.oracles.libra_tables import optima
from tests.oracles.test_libra import PERFORMANCE, SETTINGS, WORKLOADS

DEGREES = " or ".join(
    f"(workload == '{name}' and tp == {SETTINGS[key].tp})" for key, name in WORKLOADS.items()
)
SWEEP = {
    "base": {
        "fabric": {},
        "parallelism": {"tp": "{tp}", "dp": "{n_npus(shape) / tp}"},
        "cost_model": "libra-ispass24",
        "constraints": ["total == {budget} GB/s"],
    },
    "axes": {
        "workload": list(WORKLOADS.values()),
        "shape": {
            "topologies": ["RI(16)_FC(8)_SW(32)", "RI(4)_FC(8)_RI(4)_SW(32)"],
            "tiers": ["chiplet", "package", "node", "pod"],
        },
        "tp": [1, 16, 128],
        "budget": sorted({int(row["total_GBps"]) for row in optima()}),
    },
    "where": DEGREES,
}


def test_all_performance_rows_in_one_sweep(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(SWEEP))
    run_sweep(load_sweep(tmp_path / "sweep.yaml"), tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "part-000000.parquet").to_pylist()
    found = {(row["workload"], row["shape"], row["budget"]): row for row in rows}
    assert len(PERFORMANCE) >= 24
    for row in PERFORMANCE:
        key = (WORKLOADS[row["workload"]], row["topology"], int(row["total_GBps"]))
        assert found[key]["status"] == "optimal"
        assert found[key]["step_time_s"] * 1e9 == pytest.approx(float(row["optimum"]), rel=1e-6)
