"""Plans and designs that a session holds: what came of reading one, optima, pinned designs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libra_planner.errors import Fault
    from libra_planner.evaluation import Evaluation
    from libra_planner.optimizer.design import Design, FrontierPoint
    from libra_planner.optimizer.shadow import ShadowPrice
    from libra_planner.problem import Problem
    from libra_planner.reading.document import Document

Report = Callable[[int, int], None]
"""Takes how much is done, and of how much."""

Bandwidth = tuple[float, ...]
"""GB/s per NPU of every dimension, innermost first."""


@dataclass(frozen=True)
class Reading:
    """What came of reading a plan with some settings.

    Parameters
    ----------
    settings : the settings it was read with.
    problem : the plan in numbers; ``None`` where it has faults.
    faults : everything that is wrong.
    document : values and their lines; ``None`` where the file is no YAML.
    fingerprint : the same for the same plan with the same files that it names, whenever read.
    """

    settings: tuple[str, ...]
    problem: Problem | None
    faults: tuple[Fault, ...]
    document: Document | None
    fingerprint: bytes = b""


@dataclass(frozen=True)
class Optimum:
    """A certified design and what one more of everything is worth there."""

    problem: Problem
    design: Design
    evaluation: Evaluation
    shadow: tuple[ShadowPrice, ...] | None

    @property
    def bandwidth_GBps(self) -> Bandwidth:
        """The design."""
        return tuple(self.design.bandwidth_GBps)


@dataclass(frozen=True)
class Pin:
    """A design that was kept for comparison, with the plan it was made under.

    Parameters
    ----------
    number : counts the pinned designs of a session from 1.
    called : how the design came to be, or what a person calls it.
    path : the plan's file.
    value : the plan as it stood, edits included.
    problem, evaluation : in numbers, and what the design is worth there.
    """

    number: int
    called: str
    path: Path
    value: dict[str, Any] = field(repr=False)
    problem: Problem = field(repr=False)
    evaluation: Evaluation = field(repr=False)

    @property
    def name(self) -> str:
        """Number and name: no two of a session are the same."""
        return f"{self.number} {self.called}"

    @property
    def bandwidth_GBps(self) -> Bandwidth:
        """The design."""
        from libra_planner.units import gigabytes_per_s

        return tuple(gigabytes_per_s(b) for b in self.evaluation.bandwidth_bytes_per_s)

    def settings_now(self) -> tuple[str, ...]:
        """Settings that make the file, as it is now, the plan of this design again."""
        document = plan_document(self.path, ())
        value = document.value if document and isinstance(document.value, dict) else {}
        return settings_between(value, self.value, _defaults())


def settings_between(
    value: dict[str, Any], wanted: dict[str, Any], defaults: dict[str, Any]
) -> tuple[str, ...]:
    """Settings that turn one plan's values into another's; what that one lacks is its default.

    >>> settings_between({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": ["x"]}, {"c": 0})
    ('b=["x"]', 'c=0')
    """
    target = {key: defaults.get(key) for key in value} | wanted
    changed = [key for key in target if key not in value or value[key] != target[key]]
    return tuple(f"{key}={json.dumps(target[key])}" for key in changed)


def _defaults() -> dict[str, Any]:
    """What a plan means that does not say a key."""
    from libra_planner.plan.models import GroupPlanSpec, PlanSpec

    fields = GroupPlanSpec.model_fields | PlanSpec.model_fields
    return {key: one.default for key, one in fields.items() if not one.is_required()}


def read_plan(path: Path, settings: tuple[str, ...]) -> Reading:
    """Read a plan as every command does, and keep its faults instead of raising them."""
    from libra_planner.errors import Fault, PlannerError, SpecError
    from libra_planner.plan.problem import load_plan

    try:
        problem, document = load_plan(path, settings), plan_document(path, settings)
        return Reading(settings, problem, (), document, _fingerprint(path, document))
    except SpecError as error:
        faults = error.faults
    except PlannerError as error:
        faults = (Fault(str(error)),)
    return Reading(settings, None, faults, plan_document(path, settings))


def _fingerprint(path: Path, document: Document | None) -> bytes:
    """Of all that a plan says and all files that it names; nothing where one is gone by now."""
    import hashlib

    from libra_planner.reading import bundled
    from libra_planner.sweeps.template import named_files

    value = document.value if document else None
    names = [name for _, name in named_files(value) if isinstance(name, str)]
    try:
        files = [(path.parent / name).read_bytes() for name in names if bundled.is_path(name)]
    except OSError:
        return b""
    return hashlib.sha256(repr((value, files)).encode(errors="backslashreplace")).digest()


def plan_document(path: Path, settings: tuple[str, ...]) -> Document | None:
    """Values and lines; an edit that cannot be applied is left out (it is among the faults)."""
    from libra_planner.errors import SpecError
    from libra_planner.reading.document import apply_setting, read_document

    try:
        document = read_document(path)
    except SpecError:
        return None
    for setting in settings:
        try:
            apply_setting(document, setting)
        except SpecError:
            continue
    return document


def equal_split_GBps(problem: Problem) -> Bandwidth:
    """The plan's total, or 100 GB/s each without one, spread evenly over the dimensions."""
    from libra_planner.units import gigabytes_per_s

    n_dims, total = problem.topology.n_dims, problem.total_bandwidth_bytes_per_s()
    each = 100.0 if total is None else gigabytes_per_s(total) / n_dims
    return (each,) * n_dims


def frontier(problem: Problem, n_points: int, progress: Report) -> tuple[FrontierPoint, ...]:
    """What ``pareto`` prints."""
    from libra_planner.optimizer.optimize import pareto

    return pareto(problem, n_points, progress)


def best_design(problem: Problem, _progress: Report) -> Optimum:
    """What ``optimize`` prints: the certified design, its figures, the shadow prices."""
    from libra_planner.evaluation import evaluated
    from libra_planner.optimizer.optimize import solve
    from libra_planner.optimizer.shadow import shadow_prices

    solution = solve(problem)
    shadow = shadow_prices(solution.problem, solution)
    evaluation = evaluated(solution.problem, solution.design.bandwidth_bytes_per_s)
    return Optimum(solution.problem, solution.design, evaluation, shadow)


MOST_LETTERS = 40
"""Longest name of a design."""


def distinct_name(pin: Pin, origin: str, others: Sequence[Pin]) -> str:
    """The origin of a design, with its first figure that no other design of that origin has.

    The same design of the same plan keeps the name that it has.
    """
    base = origin.replace("performance per cost", "perf/cost")
    kin = [one for one in others if one.called == base or one.called.startswith(f"{base}, ")]
    twins = [one for one in kin if _is_same(one, pin)]
    if twins or not kin:
        return twins[0].called if twins else base
    for mine, *theirs in zip(_figures(pin), *map(_figures, kin), strict=True):
        name = f"{base}, {mine}"
        if mine not in theirs and len(name) <= MOST_LETTERS:
            return name
    return base


def _is_same(one: Pin, other: Pin) -> bool:
    return (one.path, one.value, one.bandwidth_GBps) == (
        other.path,
        other.value,
        other.bandwidth_GBps,
    )


def _figures(pin: Pin) -> Iterator[str]:
    """Budget of bandwidth, cost, step time."""
    from libra_planner.units import format_time, format_usd

    yield f"{sum(pin.bandwidth_GBps):,.6g} GB/s"
    yield format_usd(pin.evaluation.network_cost_usd)
    yield format_time(pin.evaluation.step_time_s)
