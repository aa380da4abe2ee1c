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

if TYPE_CHECKING:
    from libra_planner.errors import (
        IllPosed,
        Infeasible,
        PlannerError,
        SolverFailed,
        SpecError,
    )
    from libra_planner.evaluation import Evaluation, evaluate
    from libra_planner.optimizer.design import Design
    from libra_planner.optimizer.optimize import optimize
    from libra_planner.problem import Problem
    from libra_planner.spec.bundled import example
    from libra_planner.spec.plan import load_plan

__version__ = "0.1.0"

_HOMES = {
    "Design": "optimizer.design",
    "Evaluation": "evaluation",
    "IllPosed": "errors",
    "Infeasible": "errors",
    "PlannerError": "errors",
    "Problem": "problem",
    "SolverFailed": "errors",
    "SpecError": "errors",
    "evaluate": "evaluation",
    "example": "spec.bundled",
    "load_plan": "spec.plan",
    "optimize": "optimizer.optimize",
}
"""Public name -> module it is loaded from when first used (``--help`` loads none)."""

__all__ = [
    "Design",
    "Evaluation",
    "IllPosed",
    "Infeasible",
    "PlannerError",
    "Problem",
    "SolverFailed",
    "SpecError",
    "evaluate",
    "example",
    "load_plan",
    "optimize",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
