"""Designs by name: a plan's optimum, a vector in GB/s, a result, a row of a sweep."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from libra_planner.errors import DataNotFound, Fault, Place, SpecError, located, refuse
from libra_planner.files import read_json
from libra_planner.inputs.plans import OpenedPlan, SearchedPlan, open_plan
from libra_planner.plan.options import speed_bytes_per_s
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.procurement.candidate import SweptCheck
from libra_planner.reading.bundled import design_parts, given_file
from libra_planner.reading.document import is_number, scalar
from libra_planner.units import BYTES_PER_S_PER_GBPS, gigabytes_per_s

if TYPE_CHECKING:
    from libra_planner.search.best import Progress as SearchProgress
    from libra_planner.search.best import SearchResult
    from libra_planner.step.expression import Array

_HAS_UNIT = re.compile(r"^[0-9.]+\s*[A-Za-z]+(?:/s|ps)$", re.ASCII)
"""A number with a unit of bandwidth, right or wrong."""
_LEAST_GBPS, _MOST_GBPS = 1e-12, 1e9
"""Sizes of a bandwidth beyond which a number is a slip of the keyboard."""


def bandwidth_bytes_per_s(text: str, problem: Problem, place: Place) -> Array:
    """The option's numbers in byte/s, shape (n_dims,).

    Raises
    ------
    SpecError
        For another count of numbers than dimensions, or what is no bandwidth.
    """
    parts = text.split(",")
    n_dims = problem.topology.n_dims
    if len(parts) != n_dims:
        expected = f"expected {n_dims}, one for each dimension of {problem.topology}"
        fix = "separate GB/s by commas, innermost first"
        got = f"got {len(parts)} number{'s' * (len(parts) != 1)}"
        raise SpecError.at(place, got, expected, fix)
    values = [_gigabytes_per_s(part, place) for part in parts]
    return np.array(values) * BYTES_PER_S_PER_GBPS


def _gigabytes_per_s(text: str, place: Place) -> float:
    value = scalar(text.strip())
    if isinstance(value, str) and _HAS_UNIT.search(value):
        with located(place):
            value = gigabytes_per_s(speed_bytes_per_s(value))
    if not is_number(value) or not (value == 0 or _LEAST_GBPS <= value <= _MOST_GBPS):
        fix = "write GB/s, such as 300,100,75,25, or another unit behind each"
        expected = f"expected 0 or a number from {_LEAST_GBPS:g} to {_MOST_GBPS:g}"
        raise SpecError.at(place, f"got {text!r}", expected, fix)
    return abs(float(value))


@dataclass(frozen=True)
class ChosenDesign:
    """A design of a plan.

    Parameters
    ----------
    searched : the plan, with the strategy that is the best for the design where it left that open.
    problem : the same with its chunks chosen.
    bandwidth_Bps : the vector, byte/s, shape (n_dims,).
    """

    searched: SearchedPlan
    problem: Problem
    bandwidth_Bps: Array


def chosen_design(
    plan: OpenedPlan,
    bandwidth: str | None,
    place: Place,
    *,
    n_best: int = 1,
    progress: SearchProgress | None = None,
) -> ChosenDesign:
    """A plan's design: GB/s in text, or without it the optimum.

    Parameters
    ----------
    plan, bandwidth, place : the plan, the text, and where that stands.
    n_best, progress : of a search for the plan's strategy.

    Raises
    ------
    PlannerError
        For a plan that is wrong or has no optimum, or text that is no vector of it.
    """
    if bandwidth is None:
        from libra_planner.optimizer.optimize import solve

        searched = plan.searched(n_best=n_best, progress=progress)
        solution = solve(searched.problem)
        best_Bps = np.asarray(solution.design.bandwidth_bytes_per_s)
        return ChosenDesign(searched, solution.problem, best_Bps)
    bandwidth_Bps = bandwidth_bytes_per_s(bandwidth, plan.problem, place)
    searched = plan.searched(bandwidth_bytes_per_s=bandwidth_Bps, n_best=n_best, progress=progress)
    problem = fastest_alternative(searched.problem, bandwidth_Bps)
    return ChosenDesign(searched, problem, bandwidth_Bps)


_RESULT = ".json"
_SAME = 1e-9
"""Relative difference of figures of one plan."""
_ROW = re.compile(r"(?P<directory>.+):(?P<row>[0-9]{1,18})")


@dataclass(frozen=True)
class GivenDesign:
    """A design as it was given.

    Parameters
    ----------
    text : of the argument.
    plan : path of its plan.
    name, source : for people; the source says plan and vector, and is the name unless one is given.
    problem, bandwidth_Bps : the plan in numbers and the vector, byte/s, shape (n_dims,).
    optimized : whether the vector is the plan's own optimum.
    settings : ``--set`` of the plan, those of its result included.
    shown_plan : what reports call the plan.
    result : path of the result it was read from, if any.
    found : by the search for the plan's strategy, where that is left open.
    opened : the plan before a search for its strategy; ``None`` where it says one.
    swept_check : what its sweep found on its links; ``None`` where it found nothing.
    """

    text: str
    plan: str
    name: str
    source: str
    problem: Problem
    bandwidth_Bps: Array
    optimized: bool
    settings: tuple[str, ...]
    shown_plan: str
    result: str | None = None
    found: SearchResult | None = None
    opened: OpenedPlan | None = field(default=None, repr=False)
    swept_check: SweptCheck | None = None

    @property
    def is_own_plan(self) -> bool:
        """Whether its plan stays where it is: that of a row of a sweep is written for a while."""
        return _ROW.fullmatch(self.shown_plan) is None


def given_design(
    text: str,
    settings: Sequence[str],
    scratch: Path,
    parts: str = "parts",
    *,
    n_best: int = 1,
    progress: SearchProgress | None = None,
) -> GivenDesign:
    """The design that an argument means.

    ``PLAN``, a path or a bundled plan's name, is the plan's optimum, ``PLAN@300,100,75,25`` that
    vector in GB/s, ``PLAN@RESULT.json`` the vector of a result of ``optimize --json`` or ``evaluate
    --json``, and ``RESULT.json`` the same of a result with a key ``plan``, a path beside it.
    The ``set`` of a result is applied to its plan in both, before ``settings``.
    ``DIR:ROW`` is a row of a sweep, whose plan is written into ``scratch``, an empty folder.
    ``NAME=`` before any of them names the design.
    Quotes of a plan may name the parts of the catalogue ``parts``. Where a plan leaves its strategy
    open, ``n_best`` are proven, and ``progress`` is told what is done.

    Raises
    ------
    PlannerError
        For a plan that is not valid or has no optimum, or a result that is not its own.
    """
    shown, result, own, swept = None, None, tuple(settings), None
    given, (label, text) = text, _labelled(text)
    if (row := _ROW.fullmatch(text)) and Path(row["directory"]).is_dir():
        plan, suffix, shown = _row_plan(row["directory"], int(row["row"]), scratch), "", text
        swept = None if settings else _swept_check(row["directory"], int(row["row"]))
        name = f"{_clean(Path(row['directory']).resolve().name)} row {int(row['row'])}"
    else:
        shown, suffix = _parts(text)
        plan = given_file(shown)
        if plan.endswith(_RESULT):
            plan, suffix, shown = _plan_of(plan), plan, None
        name = _clean(Path(plan).stem)
    if suffix.endswith(_RESULT):
        result = _read(suffix)
        with located(suffix):
            own = (*_settings_of(result, plan), *own)
    opened = open_plan(plan, own, parts=parts)
    choose = partial(chosen_design, opened, n_best=n_best, progress=progress)
    if result is None:
        chosen = choose(suffix or None, Place(text))
    else:
        with located(suffix):
            chosen = choose(_vector(result, opened.problem), Place(suffix))
            if not settings:  # Other settings make other figures.
                _check_unchanged(result, chosen.problem, chosen.bandwidth_Bps)
    if suffix:
        name = f"{name} @ {_short(suffix) if result is None else _clean(Path(suffix).stem)}"
    searched, found = chosen.searched, None if result is None else suffix
    design = chosen.problem, chosen.bandwidth_Bps, not suffix, searched.settings
    left_open = opened if opened.is_open else None
    made = GivenDesign(
        given, plan, label or name, name, *design, shown or plan, found, searched.found, left_open
    )
    return replace(made, swept_check=swept)


def _labelled(text: str) -> tuple[str, str]:
    """The name that a user gives a design, and the design; a file may have = in its name.

    >>> _labelled("Full spine=plan.yaml@450,50"), _labelled("plan.yaml@450,50")
    (('Full spine', 'plan.yaml@450,50'), ('', 'plan.yaml@450,50'))
    """
    label, is_named, design = text.partition("=")
    is_file = any(map(os.path.exists, (text, text.rpartition("@")[0], text.rpartition(":")[0])))
    if not is_named or is_file or "@" in label:
        return "", text
    if not label.strip() or not design.strip():
        fix = 'write e.g. "Full spine=plan.yaml@450,50"'
        raise SpecError.at(text, f"got {text!r}", "expected NAME=PLAN", fix)
    return _clean(label.strip()), design.strip()


def _parts(text: str) -> tuple[str, str]:
    """Plan, and what stands behind the last @; a sweep's folder is neither."""
    if Path(text).is_dir():
        fix = f"name a row of the sweep, such as {text.rstrip('/')}:0"
        raise SpecError.at(text, "got a directory", "expected a plan or result", fix)
    return design_parts(text)


def _row_plan(directory: str, row: int, scratch: Path) -> str:
    """The plan of a sweep's row."""
    from libra_planner.sweeps.store import RunDirectory
    from libra_planner.sweeps.template import design_plan

    plan = scratch / f"{Path(directory).resolve().name}-{row}.yaml"
    plan.write_text(design_plan(RunDirectory(Path(directory)), row), encoding="utf-8")
    return str(plan)


def _swept_check(directory: str, row: int) -> SweptCheck | None:
    """What a sweep found on the links of a row."""
    from libra_planner.sweeps.columns import EFFECTIVE
    from libra_planner.sweeps.store import RunDirectory, table_of

    run = RunDirectory(Path(directory))
    manifest = run.manifest()
    size, check = manifest["spec"]["designs_per_part"], manifest["spec"].get("check")
    if check is None:
        return None
    table = table_of(run.part_path(row // size), [EFFECTIVE])
    time_s = table.column(EFFECTIVE)[row % size].as_py()
    seeds = f" --seeds {check['seeds']}" if check["seeds"] else ""
    return None if time_s is None else SweptCheck(time_s, f"--check {check['name']}{seeds}")


def _read(path: str) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        expected = "expected one object, as optimize --json prints"
        raise SpecError.at(path, "got other JSON", expected)
    return value


def _plan_of(path: str) -> str:
    """The plan that a result names, beside it."""
    named, fix = _read(path).get("plan"), f"write PLAN.yaml@{path}"
    if not isinstance(named, str) or not named:
        got, fix = "got a result that does not name its plan", f"{fix}, or add the key 'plan' to it"
        raise SpecError(Fault(got, "expected the plan it is of", fix, "plan", Place(path)))
    plan = str(Path(path).parent / named)
    if not os.path.isfile(plan):
        got, expected = f"got no such file {_clean(plan)}", "expected the plan the result is of"
        raise DataNotFound(Fault(got, expected, fix, "plan", Place(path)))
    return plan


def _settings_of(result: Mapping[str, Any], plan: str) -> list[str]:
    """The settings a result was made with; a result of another plan is refused.

    Plans are told apart by the names of their files: results and plans may be moved.
    """
    faults = []
    named, settings = result.get("plan"), result.get("set", [])
    if isinstance(named, str) and Path(named).name != Path(plan).name:
        got, expected = f"got a result of {_clean(named)}", f"expected one of {_clean(plan)}"
        fix = "name its own plan, or give the vector as PLAN@B1,B2,..."
        faults.append(Fault(got, expected, fix, "plan"))
    if not isinstance(settings, list) or not all(isinstance(one, str) for one in settings):
        faults.append(Fault("got another set", "expected a list of key=value", "", "set"))
    refuse(faults)
    return list(settings)


def _vector(result: Mapping[str, Any], problem: Problem) -> str:
    """The vector of a result as text, so that the same limits hold as on the command line.

    Of another workload or fabric it is refused.
    """
    topology, faults = problem.topology, []
    known = {
        "workload": problem.workload_name,
        "topology": str(topology),
        "tiers": list(topology.tiers),
    }
    for key, ours in known.items():
        theirs = result.get(key)
        if theirs is not None and theirs != ours:
            expected = f"expected that of the plan, {ours}"
            faults.append(Fault(f"got {theirs!r}", expected, "name its own plan", key))
    vector = result.get("bandwidth_GBps")
    if not isinstance(vector, list):
        expected = "expected a list, one GB/s per dimension"
        faults.append(Fault("got none", expected, "", "bandwidth_GBps"))
    refuse(faults)
    return ",".join(map(str, vector or []))


def _check_unchanged(result: Mapping[str, Any], problem: Problem, bandwidth_Bps: Array) -> None:
    """Refuse a result whose figures the plan no longer gives at its vector."""
    figures = {
        "step_time_s": float(problem.step_time.seconds(bandwidth_Bps)),
        "cost_usd": float(problem.cost_usd(bandwidth_Bps)),
    }
    fix = "its plan, or a file that the plan names, has changed since: make the result anew"
    refuse(
        Fault(f"got {theirs:.9g}", f"expected {ours:.9g}, as the plan has it", fix, key)
        for key, ours in figures.items()
        if isinstance(theirs := result.get(key), int | float)
        and not math.isclose(theirs, ours, rel_tol=_SAME)
    )


def _short(vector: str) -> str:
    """A vector with six digits a bandwidth.

    >>> _short("338.44967509082176,50")
    '338.45,50'
    """
    try:
        return ",".join(f"{float(one):.6g}" for one in vector.split(","))
    except ValueError:
        return _clean(vector)


def _clean(text: str) -> str:
    """A name that can be printed and stored: no control characters, no broken Unicode."""
    whole = text.encode("utf-8", "replace").decode()
    return "".join(char if char.isprintable() else "?" for char in whole)[:120]
