"""Plans the network bandwidth of AI training clusters, with a proof of optimality.

>>> import libra_planner as lp
>>> plan = lp.load_plan("01_gpt3_4d")
>>> best = plan.optimize()
>>> round(best.step_time_s, 6), round(best.speedup_vs_equal, 3)
(0.722412, 1.073)
>>> best.check("ecmp")
<Check: step time 796.875 ms by ecmp (1 routing), 1.103x the ideal 722.412 ms>
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from libra_planner.errors import close_names
from libra_planner.registry import plugin_fault

if TYPE_CHECKING:
    from libra_planner.api.batches import Batch as Batch
    from libra_planner.api.batches import BatchRow as BatchRow
    from libra_planner.api.batches import batch_optimize as batch_optimize
    from libra_planner.api.checks import Check as Check
    from libra_planner.api.checks import Routed as Routed
    from libra_planner.api.checks import link_check as link_check
    from libra_planner.api.checks import routed_optimum as routed_optimum
    from libra_planner.api.clusters.cases import Cases as Cases
    from libra_planner.api.clusters.cases import CollectiveCases as CollectiveCases
    from libra_planner.api.clusters.cases import KernelCases as KernelCases
    from libra_planner.api.clusters.cases import RunCases as RunCases
    from libra_planner.api.clusters.cases import collective_table as collective_table
    from libra_planner.api.clusters.cases import kernel_table as kernel_table
    from libra_planner.api.clusters.cases import train_table as train_table
    from libra_planner.api.clusters.networks import Network as Network
    from libra_planner.api.clusters.networks import network as network
    from libra_planner.api.clusters.systems import Calibration as Calibration
    from libra_planner.api.clusters.systems import Kernel as Kernel
    from libra_planner.api.clusters.systems import SystemCollective as SystemCollective
    from libra_planner.api.clusters.systems import calibrate as calibrate
    from libra_planner.api.clusters.systems import kernel as kernel
    from libra_planner.api.clusters.systems import system_collective as system_collective
    from libra_planner.api.clusters.traffic import ComparedFlows as ComparedFlows
    from libra_planner.api.clusters.traffic import Jobs as Jobs
    from libra_planner.api.clusters.traffic import MeasuredFlows as MeasuredFlows
    from libra_planner.api.clusters.traffic import check_jobs as check_jobs
    from libra_planner.api.clusters.traffic import compared_flows as compared_flows
    from libra_planner.api.clusters.traffic import measured_flows as measured_flows
    from libra_planner.api.collectives import Collective as Collective
    from libra_planner.api.collectives import collective as collective
    from libra_planner.api.designs import Evaluated as Evaluated
    from libra_planner.api.designs import evaluate as evaluate
    from libra_planner.api.flow_lists import RoutedFlows as RoutedFlows
    from libra_planner.api.flow_lists import flows as flows
    from libra_planner.api.optima import Frontier as Frontier
    from libra_planner.api.optima import Optimum as Optimum
    from libra_planner.api.optima import optimize as optimize
    from libra_planner.api.optima import pareto as pareto
    from libra_planner.api.plans import Plan as Plan
    from libra_planner.api.plans import check as check
    from libra_planner.api.plans import load_plan as load_plan
    from libra_planner.api.reports import Report as Report
    from libra_planner.api.reports import report as report
    from libra_planner.api.searches import Found as Found
    from libra_planner.api.searches import StrategyFrontier as StrategyFrontier
    from libra_planner.api.searches import search as search
    from libra_planner.api.sweeps import SweepPlan as SweepPlan
    from libra_planner.api.sweeps import SweepResults as SweepResults
    from libra_planner.api.sweeps import sweep as sweep
    from libra_planner.api.sweeps import sweep_plan as sweep_plan
    from libra_planner.api.sweeps import sweep_results as sweep_results
    from libra_planner.api.training import TrainingStep as TrainingStep
    from libra_planner.api.training import train as train
    from libra_planner.check.links import LinkCheck as LinkCheck
    from libra_planner.check.rerouted import RoutedOptimum as RoutedOptimum
    from libra_planner.errors import (
        IllPosed as IllPosed,
    )
    from libra_planner.errors import (
        Infeasible as Infeasible,
    )
    from libra_planner.errors import (
        PlannerError as PlannerError,
    )
    from libra_planner.errors import (
        SolverFailed as SolverFailed,
    )
    from libra_planner.errors import (
        SpecError as SpecError,
    )
    from libra_planner.evaluation import Evaluation as Evaluation
    from libra_planner.optimizer.design import Design as Design
    from libra_planner.optimizer.optimize import BatchResult as BatchResult
    from libra_planner.problem import Problem as Problem
    from libra_planner.reading.bundled import example as example
    from libra_planner.routing.policy import Policy as Policy
    from libra_planner.sweeps.figures.answer import Answer as Answer

__version__ = "0.1.0"

_HOMES = {
    "api.batches": "Batch BatchRow batch_optimize",
    "api.checks": "Check Routed link_check routed_optimum",
    "api.clusters.cases": "Cases CollectiveCases KernelCases RunCases "
    "collective_table kernel_table train_table",
    "api.clusters.networks": "Network network",
    "api.clusters.systems": "Calibration Kernel SystemCollective "
    "calibrate kernel system_collective",
    "api.clusters.traffic": "ComparedFlows Jobs MeasuredFlows "
    "check_jobs compared_flows measured_flows",
    "api.collectives": "Collective collective",
    "api.designs": "Evaluated evaluate",
    "api.flow_lists": "RoutedFlows flows",
    "api.optima": "Frontier Optimum optimize pareto",
    "api.plans": "Plan check load_plan",
    "api.reports": "Report report",
    "api.searches": "Found StrategyFrontier search",
    "api.sweeps": "SweepPlan SweepResults sweep sweep_plan sweep_results",
    "api.training": "TrainingStep train",
    "check.links": "LinkCheck",
    "check.rerouted": "RoutedOptimum",
    "errors": "IllPosed Infeasible PlannerError SolverFailed SpecError",
    "evaluation": "Evaluation",
    "optimizer.design": "Design",
    "optimizer.optimize": "BatchResult",
    "problem": "Problem",
    "reading.bundled": "example",
    "routing.policy": "Policy",
    "sweeps.figures.answer": "Answer",
}
"""Modules and the public names loaded from them when first used (``--help`` loads none)."""

_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = list(_MODULES)


def _function(name: str) -> property:
    """A function of the package that has the name of a folder; imports of that do not set it."""
    return property(lambda _: __getattr__(name), lambda _package, _folder: None)


class _Package(ModuleType):
    """The package: ``lp.check`` and ``lp.search`` are functions, not the folders of these names."""

    check = _function("check")
    search = _function("search")


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        near = [] if name.startswith("_") else close_names(name, _MODULES)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
    return getattr(importlib.import_module(f"libra_planner.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


plugin_fault()
