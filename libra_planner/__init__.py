"""Plans the network bandwidth of AI training clusters, with a proof of optimality.

>>> import libra_planner as lp
>>> problem = lp.load_plan(lp.example("01_gpt3_4d"))
>>> design = lp.optimize(problem)
>>> evaluation = lp.evaluate(problem, design.bandwidth_bytes_per_s)
>>> round(evaluation.step_time_s, 6), round(evaluation.speedup_vs_equal, 3)
(0.722412, 1.073)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from libra_planner.registry import plugin_fault

if TYPE_CHECKING:
    from libra_planner.check.links import link_check
    from libra_planner.check.rerouted import routed_optimum
    from libra_planner.errors import (
        IllPosed,
        Infeasible,
        PlannerError,
        SolverFailed,
        SpecError,
    )
    from libra_planner.evaluation import Evaluation, evaluate
    from libra_planner.optimizer.batch import batch_optimize
    from libra_planner.optimizer.design import Design
    from libra_planner.optimizer.optimize import optimize, pareto
    from libra_planner.plan.problem import load_plan
    from libra_planner.problem import Problem
    from libra_planner.reading.bundled import example
    from libra_planner.routing.policy import Policy
    from libra_planner.studies.collectives import collective
    from libra_planner.studies.flow_lists import flows
    from libra_planner.studies.reports import report
    from libra_planner.studies.sweeps import sweep

__version__ = "0.1.0"

_HOMES = {
    "Design": "libra_planner.optimizer.design",
    "Evaluation": "libra_planner.evaluation",
    "IllPosed": "libra_planner.errors",
    "Infeasible": "libra_planner.errors",
    "PlannerError": "libra_planner.errors",
    "Policy": "libra_planner.routing.policy",
    "Problem": "libra_planner.problem",
    "SolverFailed": "libra_planner.errors",
    "SpecError": "libra_planner.errors",
    "batch_optimize": "libra_planner.optimizer.batch",
    "collective": "libra_planner.studies.collectives",
    "evaluate": "libra_planner.evaluation",
    "example": "libra_planner.reading.bundled",
    "flows": "libra_planner.studies.flow_lists",
    "link_check": "libra_planner.check.links",
    "load_plan": "libra_planner.plan.problem",
    "optimize": "libra_planner.optimizer.optimize",
    "pareto": "libra_planner.optimizer.optimize",
    "report": "libra_planner.studies.reports",
    "routed_optimum": "libra_planner.check.rerouted",
    "sweep": "libra_planner.studies.sweeps",
}
"""Public name -> module it is loaded from when first used (``--help`` loads none)."""

__all__ = [
    "Design",
    "Evaluation",
    "IllPosed",
    "Infeasible",
    "PlannerError",
    "Policy",
    "Problem",
    "SolverFailed",
    "SpecError",
    "batch_optimize",
    "collective",
    "evaluate",
    "example",
    "flows",
    "link_check",
    "load_plan",
    "optimize",
    "pareto",
    "report",
    "routed_optimum",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


plugin_fault()
