"""Designs of a report as the command line names them: plans, vectors, results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from libra_planner.cli.bandwidths import bandwidth_bytes_per_s
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.files import read_text
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.spec.plan import load_plan

if TYPE_CHECKING:
    from libra_planner.timing.expression import Array

_RESULT = ".json"


@dataclass(frozen=True)
class GivenDesign:
    """A design as it was given.

    Parameters
    ----------
    text : of the argument.
    plan : path of its plan.
    name : for people.
    problem, bandwidth_Bps : the plan in numbers and the vector, byte/s, shape (n_dims,).
    optimized : whether the vector is the plan's own optimum.
    result : path of the result it was read from, if any.
    """

    text: str
    plan: str
    name: str
    problem: Problem
    bandwidth_Bps: Array
    optimized: bool
    result: str | None = None


def given_design(text: str, settings: Sequence[str]) -> GivenDesign:
    """The design that an argument means.

    ``PLAN`` is the plan's optimum, ``PLAN@300,100,75,25`` that vector in GB/s,
    ``PLAN@RESULT.json`` the vector of a result of ``optimize --json`` or ``evaluate
    --json``, and ``RESULT.json`` the same of a result with a key ``plan``, a path beside it.

    Raises
    ------
    PlannerError
        For a plan that is not valid or has no optimum, or a result that is not its own.
    """
    # One row of a sweep, DIR:ROW, will be read here: it names a plan and a vector too.
    plan, suffix = _parts(text)
    if plan.endswith(_RESULT):
        suffix, (plan, own) = plan, _plan_of(plan)
        settings = [*own, *settings]
    problem = load_plan(plan, settings)
    name = _clean(Path(plan).stem)
    if not suffix:
        return _optimum(text, plan, name, problem)
    if suffix.endswith(_RESULT):
        bandwidth_Bps = _result_Bps(suffix, problem)
        name = f"{name} @ {_clean(Path(suffix).stem)}"
        chosen = fastest_alternative(problem, bandwidth_Bps)
        return GivenDesign(text, plan, name, chosen, bandwidth_Bps, False, suffix)
    bandwidth_Bps = bandwidth_bytes_per_s(suffix, problem, Place(text))
    chosen = fastest_alternative(problem, bandwidth_Bps)
    return GivenDesign(text, plan, f"{name} @ {_clean(suffix)}", chosen, bandwidth_Bps, False)


def _parts(text: str) -> tuple[str, str]:
    """Plan, and what stands behind the last @; a file whose name has one is a file."""
    if Path(text).is_dir():
        fix = "name its plan, or a result; rows of sweeps are not read yet"
        raise SpecError(Fault("got a directory", "expected a plan or result", fix, "", Place(text)))
    if "@" not in text or Path(text).is_file():
        return text, ""
    plan, _, suffix = text.rpartition("@")
    if not plan or not suffix:
        fix = "write e.g. plan.yaml@300,100,75,25"
        raise SpecError(Fault(f"got {text!r}", "expected PLAN@BANDWIDTHS", fix, "", Place(text)))
    return plan, suffix


def _optimum(text: str, plan: str, name: str, problem: Problem) -> GivenDesign:
    from libra_planner.optimizer.optimize import solve

    solution = solve(problem)
    bandwidth_Bps = np.asarray(solution.design.bandwidth_bytes_per_s)
    return GivenDesign(text, plan, name, solution.problem, bandwidth_Bps, True)


def _read(path: str) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        fault = Fault(f"got no JSON ({error})", "expected a result", "", "", Place(path))
        raise SpecError(fault) from None
    if not isinstance(value, dict):
        expected = "expected one object, as optimize --json prints"
        raise SpecError(Fault("got other JSON", expected, "", "", Place(path)))
    return value


def _plan_of(path: str) -> tuple[str, list[str]]:
    """The plan that a result names, beside it, and the settings it was made with."""
    result = _read(path)
    plan, settings = result.get("plan"), result.get("set", [])
    if not isinstance(plan, str) or not plan:
        got = "got a result that does not name its plan"
        fix = f"write PLAN.yaml@{path}, or add the key 'plan' to it"
        raise SpecError(Fault(got, "expected the plan it is of", fix, "plan", Place(path)))
    if not isinstance(settings, list) or not all(isinstance(one, str) for one in settings):
        fault = Fault("got another set", "expected a list of key=value", "", "set")
        raise SpecError(fault.located(Place(path)))
    return str(Path(path).parent / plan), settings


def _result_Bps(path: str, problem: Problem) -> Array:
    """The vector of a result; of another fabric it is refused."""
    result, topology = _read(path), problem.topology
    faults = []
    for key, ours in (("topology", str(topology)), ("tiers", list(topology.tiers))):
        theirs = result.get(key)
        if theirs is not None and theirs != ours:
            expected = f"expected that of the plan, {ours}"
            faults.append(Fault(f"got {theirs!r}", expected, "name its own plan", key, Place(path)))
    vector = result.get("bandwidth_GBps")
    if not isinstance(vector, list):
        expected = "expected a list, one GB/s per dimension"
        faults.append(Fault("got none", expected, "", "bandwidth_GBps", Place(path)))
    if faults:
        raise SpecError(*faults)
    # Through text, so that the same limits hold as on the command line.
    return bandwidth_bytes_per_s(",".join(map(str, vector or [])), problem, Place(path))


def _clean(text: str) -> str:
    """A name that can be printed and stored: no control characters, no broken Unicode."""
    whole = text.encode("utf-8", "replace").decode()
    return "".join(char if char.isprintable() else "?" for char in whole)[:120]
