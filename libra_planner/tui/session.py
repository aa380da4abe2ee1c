"""The open plan without any terminal: its edits, their undoing, faults, figures, pins.

A session is the path of a plan and a list of edits, each exactly what ``--set`` takes, so
that what the cockpit shows is what the commands print for the same file and settings.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libra_planner.errors import Fault
    from libra_planner.evaluation import Evaluation
    from libra_planner.optimizer.design import Design
    from libra_planner.optimizer.shadow import ShadowPrice
    from libra_planner.problem import Problem
    from libra_planner.spec.document import Document

Bandwidth = tuple[float, ...]
"""GB/s per NPU of every dimension, innermost first."""

MOST_UNDONE = 500
"""Edits that can be taken back."""


@dataclass(frozen=True)
class Edits:
    """What undo and redo go back and forth between.

    Parameters
    ----------
    settings : ``key=value`` as ``--set`` takes them, in order.
    bandwidth_GBps : the design on screen; ``None`` before a plan was valid.
    """

    settings: tuple[str, ...] = ()
    bandwidth_GBps: Bandwidth | None = None


@dataclass(frozen=True)
class Reading:
    """What came of reading a plan with some settings.

    Parameters
    ----------
    settings : the settings it was read with.
    problem : the plan in numbers; ``None`` where it has faults.
    faults : everything that is wrong.
    document : values and their lines; ``None`` where the file is no YAML.
    """

    settings: tuple[str, ...]
    problem: Problem | None
    faults: tuple[Fault, ...]
    document: Document | None


@dataclass(frozen=True)
class Optimum:
    """A certified design and what one more of everything is worth there."""

    problem: Problem
    design: Design
    evaluation: Evaluation
    shadow: tuple[ShadowPrice, ...] | None


@dataclass(frozen=True)
class Pin:
    """A design that was kept for comparison, with the plan it was made under.

    Parameters
    ----------
    name, path : what it is called, and the plan's file.
    value : the plan as it stood, edits included.
    problem, evaluation : in numbers, and what the design is worth there.
    """

    name: str
    path: Path
    value: dict[str, Any] = field(repr=False)
    problem: Problem = field(repr=False)
    evaluation: Evaluation = field(repr=False)

    @property
    def bandwidth_GBps(self) -> Bandwidth:
        """The design."""
        from libra_planner.units import gigabytes_per_s

        return tuple(gigabytes_per_s(b) for b in self.evaluation.bandwidth_bytes_per_s)

    def settings_now(self) -> tuple[str, ...]:
        """Settings that make the file, as it is now, the plan of this design again."""
        document = _document(self.path, ())
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
    from libra_planner.spec.group_models import GroupPlanSpec
    from libra_planner.spec.models import PlanSpec

    fields = GroupPlanSpec.model_fields | PlanSpec.model_fields
    return {key: one.default for key, one in fields.items() if not one.is_required()}


def read_plan(path: Path, settings: tuple[str, ...]) -> Reading:
    """Read a plan as every command does, and keep its faults instead of raising them."""
    from libra_planner.errors import Fault, PlannerError, SpecError
    from libra_planner.spec.plan import load_plan

    try:
        return Reading(settings, load_plan(path, settings), (), _document(path, settings))
    except SpecError as error:
        faults = error.faults
    except PlannerError as error:
        faults = (Fault(str(error)),)
    return Reading(settings, None, faults, _document(path, settings))


def _document(path: Path, settings: tuple[str, ...]) -> Document | None:
    """Values and lines; an edit that cannot be applied is left out (it is among the faults)."""
    from libra_planner.errors import SpecError
    from libra_planner.spec.document import read_document
    from libra_planner.spec.settings import apply_setting

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


@dataclass
class Session:
    """The open plan and everything done to it since it was opened.

    Parameters
    ----------
    path : the plan's file.
    edits : now, relative to the file.
    reading : what came of the latest settings that were read.
    problem : of the last valid settings: figures belong to these.
    pins, baseline : designs kept for comparison, and which one the others are compared to.
    optimum : the last certified design of the problem.
    """

    path: Path
    edits: Edits = Edits()
    reading: Reading | None = None
    problem: Problem | None = None
    pins: list[Pin] = field(default_factory=list)
    baseline: int = 0
    optimum: Optimum | None = None
    _undo: list[Edits] = field(default_factory=list)
    _redo: list[Edits] = field(default_factory=list)
    _subject: str | None = None
    _read: tuple[str, ...] = ()
    _n_pinned: int = 0

    @property
    def dirty(self) -> bool:
        """Whether the plan has edits that its file has not."""
        return bool(self.edits.settings)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the plan as it stands."""
        return self.reading.faults if self.reading else ()

    @property
    def current(self) -> bool:
        """Whether the figures belong to the settings as they stand."""
        reading = self.reading
        return bool(reading and reading.problem and reading.settings == self.edits.settings)

    def edit(self, key: str, text: str) -> None:
        """Give a value of the plan, as ``--set key=text`` does."""
        settings = self.edits.settings
        if settings and settings[-1].partition("=")[0] == key:
            settings = settings[:-1]
        self._change(replace(self.edits, settings=(*settings, f"{key}={text}")), key)

    def set_bandwidth(self, bandwidth_GBps: Bandwidth, subject: str | None = None) -> None:
        """Put another design on screen; repeated changes of one subject are undone at once."""
        self._change(replace(self.edits, bandwidth_GBps=tuple(bandwidth_GBps)), subject)

    def restore(self, edits: Edits) -> None:
        """Go to other edits, such as those of a pinned design."""
        self._change(edits, None)

    def settle(self) -> None:
        """Begin a new step for undo, even if the next edit is of the same subject."""
        self._subject = None

    def _change(self, edits: Edits, subject: str | None) -> None:
        if edits == self.edits:
            return
        if subject is None or subject != self._subject or not self._undo:
            self._undo = [*self._undo[-MOST_UNDONE:], self.edits]
        self._subject, self._redo, self.edits = subject, [], edits

    def undo(self) -> bool:
        """Take back the latest edit; whether there was one."""
        return self._walk(self._undo, self._redo)

    def redo(self) -> bool:
        """Make the edit that was taken back again; whether there was one."""
        return self._walk(self._redo, self._undo)

    def _walk(self, source: list[Edits], target: list[Edits]) -> bool:
        if not source:
            return False
        target.append(self.edits)
        self.edits, self._subject = source.pop(), None
        return True

    def accept(self, reading: Reading, bandwidth_GBps: Bandwidth | None = None) -> None:
        """Take what came of reading the settings; a valid plan gets a design of its size."""
        self.reading = reading
        if reading.problem is None:
            return
        changed = self.problem is None or reading.settings != self._read
        self.problem, self._read = reading.problem, reading.settings
        if changed:
            self.optimum = None
        known = self.edits.bandwidth_GBps or bandwidth_GBps
        if known is None or len(known) != reading.problem.topology.n_dims:
            known = equal_split_GBps(reading.problem)
        self.edits = replace(self.edits, bandwidth_GBps=known)

    def file_written(self, path: Path) -> None:
        """The edits are in a file now: the history begins anew there."""
        self.path, self._undo, self._redo = path, [], []
        self.edits = replace(self.edits, settings=())

    @property
    def bandwidth_bytes_per_s(self) -> Any:
        """The design on screen as the core takes it, shape (n_dims,)."""
        import numpy as np

        from libra_planner.units import BYTES_PER_S_PER_GBPS

        return np.array(self.edits.bandwidth_GBps or ()) * BYTES_PER_S_PER_GBPS

    def evaluation(self) -> Evaluation | None:
        """Exact figures of the design on screen, of the last valid plan.

        Raises
        ------
        SpecError
            For a design that starves a dimension with traffic.
        """
        from libra_planner.evaluation import evaluated
        from libra_planner.problem import fastest_alternative

        problem, bandwidth = self.problem, self.bandwidth_bytes_per_s
        if problem is None or len(bandwidth) != problem.topology.n_dims:
            return None
        return evaluated(fastest_alternative(problem, bandwidth), bandwidth)

    def pin(self, evaluation: Evaluation) -> Pin:
        """Keep the design on screen for comparison.

        Raises
        ------
        ValueError
            Without a valid plan.
        """
        document = self.reading.document if self.reading else None
        if self.problem is None or document is None:
            raise ValueError("no valid plan to pin a design of")
        self._n_pinned += 1
        name = f"{self._n_pinned} {self.path.stem}"
        pinned = Pin(name, self.path, dict(document.value), self.problem, evaluation)
        self.pins.append(pinned)
        return pinned

    def unpin(self, index: int) -> None:
        """Drop a pinned design."""
        del self.pins[index]
        if self.baseline > index or self.baseline >= len(self.pins):
            self.baseline = max(0, self.baseline - 1)

    def add_rule(self, text: str) -> None:
        """Append a design rule."""
        rules = self._rules()
        if rules:
            self.edit(f"constraints.{len(rules)}", text)
        else:
            self.edit("constraints", json.dumps([text]))

    def remove_rule(self, index: int) -> None:
        """Drop a design rule."""
        rules = self._rules()
        del rules[index]
        self.edit("constraints", json.dumps(rules))

    def _rules(self) -> list[Any]:
        document = self.reading.document if self.reading else None
        value = document.value if document else None
        rules = value.get("constraints") if isinstance(value, dict) else None
        return list(rules) if isinstance(rules, list) else []


def best_design(problem: Problem) -> Optimum:
    """What ``optimize`` prints: the certified design, its figures, the shadow prices."""
    from libra_planner.evaluation import evaluated
    from libra_planner.optimizer.optimize import solve
    from libra_planner.optimizer.shadow import shadow_prices

    solution = solve(problem)
    shadow = shadow_prices(solution.problem, solution)
    evaluation = evaluated(solution.problem, solution.design.bandwidth_bytes_per_s)
    return Optimum(solution.problem, solution.design, evaluation, shadow)
