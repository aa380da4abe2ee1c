"""Plans written in a few lines, whose designs the tests check on their links."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

import libra_planner as lp
from libra_planner.check.links import LinkCheck, link_check
from libra_planner.check.stages import Selection
from libra_planner.fabric.topology import parse_topology
from libra_planner.problem import Problem

TIERS = ["chiplet", "package", "node", "pod"]


def operation(phase: str, kind: str, size_bytes: float, **others: object) -> dict[str, object]:
    """One operation of a table; ``group`` of the collective, or fields of the operation."""
    collective = {"kind": kind, "full_bytes" if kind == "all-gather" else "size_bytes": size_bytes}
    if "group" in others:
        collective["group"] = others.pop("group")
    return {"layer": "a", "phase": phase, "collective": collective, **others}


def loaded(
    folder: Path,
    topology: str,
    operations: Sequence[dict[str, object]],
    *,
    realization: dict[str, object] | None = None,
    constraints: Sequence[str] = ("total <= 100000 GB/s",),
    **keys: object,
) -> Problem:
    """A plan of a table workload; all NPUs in dp unless ``parallelism`` says otherwise."""
    table = {"kind": "table", "source": "test", "operations": list(operations)}
    (folder / "w.yaml").write_text(yaml.safe_dump(table))
    n_dims = topology.count("_") + 1
    tiers = keys.pop("tiers", TIERS[-n_dims:])
    fabric = {"topology": topology, "tiers": tiers, "realization": realization or {}}
    if "latency_ns" in keys:
        fabric["latency_ns"] = keys.pop("latency_ns")
    plan = {
        "workload": "./w.yaml",
        "fabric": fabric,
        "cost_model": "libra-ispass24",
        "constraints": list(constraints),
        **keys,
    }
    plan.setdefault("parallelism", {"tp": 1, "dp": parse_topology(topology).n_npus})
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan))
    return lp.load_plan(path)


def checked(problem: Problem, *bandwidth_GBps: float, selection: str = "library") -> LinkCheck:
    """The check of a design."""
    return link_check(problem, np.array(bandwidth_GBps) * 1e9, selection=Selection(selection))
