"""The LIBRA authors' SC'22 allocations as planning problems.

Source of the allocations and figures: willjwon/sc245-artifact. Its conventions differ from
ISPASS'24 in two points: the forward pass communicates twice (activations are recomputed in
the backward pass; compute times stay as they are), and a ring or fully connected dimension
pays half the link price (each link once, not once per NPU at its ends).
"""

from __future__ import annotations

import csv
import re
import tempfile
from pathlib import Path

import numpy as np
import yaml

from libra_planner.plan.problem import load_plan
from libra_planner.problem import Problem
from tests.oracles.libra_tables import HERE, TABLES, Table

MODELS = {"17b": "Turing_NLG", "175b": "GPT_3", "1t": "MSFT_1T"}
DEGREES = {"17b": (1, 1024), "175b": (16, 64), "1t": (128, 8)}
OBJECTIVES = {
    "PerfOpt": "performance",
    "PerfPerCostOpt": "performance_per_cost",
    "GroupPerfOpt": "performance",
}

PRICES = {
    "kind": "price_book",
    "source": "LIBRA's ISPASS'24 prices, links of rings and fully connected groups halved (SC'22)",
    "as_of": "2022",
    "unit": "USD per GB/s",
    "tiers": {
        "chiplet": {"link": 1.0},
        "package": {"link": 2.0},
        "node": {"link": 2.0},
        "pod": {"link": 7.8, "switch": 18.0, "nic": 31.6},
    },
}


def allocations() -> list[dict[str, str]]:
    """The 21 rows."""
    lines = (HERE / "libra_sc22_allocations.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def vector_bytes_per_s(row: dict[str, str], column: str) -> np.ndarray:
    """A vector of a row, shape (n_dims,)."""
    return np.array(row[column].split(), dtype=float) * 1e9


def workload(name: str) -> dict:
    """The two layers of a model: forward communication twice, weight gradients per operator."""
    table = TABLES[MODELS[name]]
    operations = []
    for _ in range(2):
        for operator in range(9):
            operations += _operator(table, operator)
    return {"kind": "table", "source": "willjwon/sc245-artifact", "operations": operations}


def _operator(table: Table, operator: int) -> list[dict]:
    """Q, K, V, score, softmax, concatenation, two of the feed-forward, norm."""
    p, s, f, n = table.projection_ns, table.score_ns, table.feed_forward_ns, table.norm_ns
    ns = [p, p, p, s, s, p, f, f, n][operator]
    reduce = {"kind": "all-reduce", "size_bytes": table.activation_bytes}
    gather = {"kind": "all-gather", "shard_bytes": table.shard_bytes}
    input_grad = {0: reduce, 6: reduce, 5: gather}.get(operator)
    # 12 h^2 parameters per layer: 1 for each of Q, K, V and the projection, 4 for each feed-forward.
    parts = {0: 1, 1: 1, 2: 1, 5: 1, 6: 4, 7: 4}.get(operator, 0)
    gradient_bytes = table.weight_gradient_bytes * parts / 24
    phases = {
        "forward": reduce if operator in (5, 7) else None,
        "input_grad": input_grad,
        "weight_grad": {"kind": "all-reduce", "size_bytes": gradient_bytes} if parts else None,
    }
    found = []
    for phase, collective in phases.items():
        operation = {"layer": f"operator {operator}", "phase": phase}
        found.append({**operation, "compute_ns": ns})
        if collective:
            found.append({**operation, "collective": collective, "count": 1 + (phase == "forward")})
    return found


def _entry(name: str) -> dict:
    tp, dp = DEGREES[name]
    return {"workload": f"./{name}.yaml", "parallelism": {"tp": tp, "dp": dp}}


def plan(row: dict[str, str]) -> dict:
    """The plan of a row."""
    if row["workload"] == "group":
        what: dict = {"workloads": [_entry(name) for name in MODELS]}
    else:
        what = _entry(row["workload"])
        degrees = what["parallelism"]
        assert re.fullmatch(f"tp {degrees['tp']} dp {degrees['dp']}", row["parallelism"])
    return what | {
        "fabric": {"topology": row["topology"], "tiers": row["tiers"].split()},
        "cost_model": "./prices.yaml",
        "objective": OBJECTIVES[row["objective"]],
        "constraints": [f"total == {row['total_GBps']} GB/s"],
    }


def sc22_problem(row: dict[str, str]) -> Problem:
    """The planning problem of a row, by way of its files."""
    files = {"plan": plan(row), "prices": PRICES, **{name: workload(name) for name in MODELS}}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        return load_plan(Path(folder) / "plan.yaml")
