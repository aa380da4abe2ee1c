"""The open plan without any terminal: its readings, edits, their undoing, faults, figures, pins.

A session is the path of a plan and a list of edits, each exactly what ``--set`` takes, so
that what the cockpit shows is what the commands print for the same file and settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import Fault
from libra_planner.tui.disk.readings import Reading, plan_values, settings_between
from libra_planner.tui.disk.watch import Watch, change_words
from libra_planner.tui.starts import equal_split_GBps
from libra_planner.units import BYTES_PER_S_PER_GBPS, format_time, format_usd, gigabytes_per_s

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.optimizer.design import Design, FrontierPoint
    from libra_planner.optimizer.shadow import ShadowPrice
    from libra_planner.problem import Problem

Report = Callable[..., None]
"""Takes how much is done, and of how much."""

LOADING = "loading the plan ..."
"""What stands where a plan is being read that has not been shown yet."""

NO_FIGURES = """no figures: the plan has faults
f goes to the first: correct it there, or correct the file and open it again (O)"""
"""What stands in their place."""

Bandwidth = tuple[float, ...]
"""GB/s per NPU of every dimension, innermost first."""


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
    text : of the plan's file, as it stood.
    files : that the plan names, with digests of what they said.
    """

    number: int
    called: str
    path: Path
    value: dict[str, Any] = field(repr=False)
    problem: Problem = field(repr=False)
    evaluation: Evaluation = field(repr=False)
    text: str = field(default="", repr=False)
    files: Mapping[Path, bytes] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Number and name: no two of a session are the same."""
        return f"{self.number} {self.called}"

    @property
    def bandwidth_GBps(self) -> Bandwidth:
        """The design."""
        return tuple(gigabytes_per_s(b) for b in self.evaluation.bandwidth_bytes_per_s)

    def settings_over(self, values: dict[str, Any]) -> tuple[str, ...]:
        """Settings that make a file which says these values the plan of this design again."""
        from libra_planner.plan.models import GroupPlanSpec, PlanSpec

        fields = GroupPlanSpec.model_fields | PlanSpec.model_fields
        unsaid = {key: one.default for key, one in fields.items() if not one.is_required()}
        return settings_between(values, self.value, unsaid)


def is_design(problem: Problem, bandwidth_GBps: Bandwidth) -> bool:
    """Whether a vector is one of the fabric, and has a bill where the plan is priced by it."""
    if len(bandwidth_GBps) != problem.topology.n_dims:
        return False
    bills = problem.prices.bills
    if bills is None:
        return True
    import numpy as np

    return bool(bills.rows(np.array(bandwidth_GBps) * BYTES_PER_S_PER_GBPS) >= 0)


def frontier(problem: Problem, n_points: int, progress: Report) -> tuple[FrontierPoint, ...]:
    """What ``pareto`` prints."""
    from libra_planner.optimizer.optimize import pareto

    return pareto(problem, n_points, progress)


@dataclass(frozen=True)
class Frontier:
    """The fastest design at each cost, of the plan of a fingerprint."""

    fingerprint: bytes
    problem: Problem
    points: tuple[FrontierPoint, ...]

    @property
    def alone(self) -> str:
        """Why there is a single design; empty where there are several."""
        from libra_planner.views.frontier import one_design_text

        return one_design_text(self.problem, self.points[0]) if len(self.points) == 1 else ""

    def better(self, evaluation: Evaluation) -> tuple[FrontierPoint | None, FrontierPoint | None]:
        """Points that beat a design: the fastest at no more cost, the cheapest in no more time."""
        cost_usd, time_s = evaluation.cost_usd * (1 + _SAME), evaluation.step_time_s * (1 + _SAME)
        cheap = [one for one in self.points if one.cost_usd <= cost_usd]
        fast = [one for one in self.points if one.step_time_s <= time_s]
        faster = min(cheap, key=lambda one: one.step_time_s, default=None)
        cheaper = min(fast, key=lambda one: one.cost_usd, default=None)
        if faster and faster.step_time_s >= evaluation.step_time_s * (1 - _SAME):
            faster = None
        if cheaper and cheaper.cost_usd >= evaluation.cost_usd * (1 - _SAME):
            cheaper = None
        return faster, cheaper


_SAME = 1e-6
"""Relative difference of figures that are called the same."""


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
    mine = (pin.path, pin.value, pin.bandwidth_GBps)
    twins = [one for one in kin if (one.path, one.value, one.bandwidth_GBps) == mine]
    if twins or not kin:
        return twins[0].called if twins else base
    for figure, *theirs in zip(_figures(pin), *map(_figures, kin), strict=True):
        name = f"{base}, {figure}"
        if figure not in theirs and len(name) <= MOST_LETTERS:
            return name
    return base


def _figures(pin: Pin) -> Iterator[str]:
    """Budget of bandwidth, cost, step time."""
    yield f"{sum(pin.bandwidth_GBps):,.6g} GB/s"
    yield format_usd(pin.evaluation.network_cost_usd)
    yield format_time(pin.evaluation.step_time_s)


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
    frontier : what was found last, of the plan as it stands or before it was edited.
    read_so_far : how far the search is that finds the strategy of the plan being read.
    text : of the file when it was opened, read again or last saved, which the edits stand on and
        every screen shows, whatever the file says by now; ``None`` until it is read.
    disk : the files that the plan was read from.
    others_read : files that the plan names which the latest reading found changed.
    """

    path: Path
    edits: Edits = Edits()
    reading: Reading | None = None
    problem: Problem | None = None
    pins: list[Pin] = field(default_factory=list)
    baseline: int = 0
    _optimum: tuple[bytes, Optimum] | None = None
    _refusal: tuple[bytes, str] | None = None
    frontier: Frontier | None = None
    _undo: list[Edits] = field(default_factory=list)
    _redo: list[Edits] = field(default_factory=list)
    _subject: str | None = None
    read_so_far: str = ""
    text: str | None = None
    disk: Watch = field(default_factory=Watch)
    others_read: tuple[str, ...] = ()
    _n_pinned: int = 0
    _origins: dict[Edits, tuple[str, Any]] = field(default_factory=dict)

    def followed_by(self, path: Path, edits: Edits) -> Session:
        """A session of another plan with the same pins, whose numbers go on."""
        pins, n = self.pins, self._n_pinned
        return Session(path, edits, pins=pins, baseline=self.baseline, _n_pinned=n)

    @property
    def dirty(self) -> bool:
        """Whether the plan has edits that its file has not."""
        return bool(self.edits.settings)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the plan as it stands."""
        return self.reading.faults if self.reading else ()

    @property
    def is_being_read(self) -> bool:
        """Whether what was read is not the plan as it stands."""
        reading = self.reading
        if reading is None or reading.settings != self.edits.settings:
            return True
        return self.text is None and reading.text is not None

    def without(self, what: str) -> str:
        """Why there is none of what every valid plan has: what it waits for, or faults."""
        if not self.is_being_read:
            return f"no {what}: the plan has faults"
        return f"searching the best strategy: {self.read_so_far}" if self.read_so_far else LOADING

    @property
    def searches_strategy(self) -> bool:
        """Whether the plan leaves its strategy to a search, whose best the figures are of."""
        from libra_planner.plan.models import is_auto

        value = self._value()
        return isinstance(value, dict) and is_auto(value.get("parallelism"))

    @property
    def current(self) -> bool:
        """Whether the figures belong to the settings as they stand, and to the text."""
        return bool(self.reading and self.reading.problem and not self.is_being_read)

    def edit(self, key: str, text: str) -> None:
        """Give a value of the plan, as ``--set key=text`` does."""
        settings = self.edits.settings
        if settings and settings[-1].partition("=")[0] == key:
            settings = settings[:-1]
        self.change(replace(self.edits, settings=(*settings, f"{key}={text}")), key)

    def set_bandwidth(self, bandwidth_GBps: Bandwidth, subject: str | None = None) -> None:
        """Put another design on screen; repeated changes of one subject are undone at once."""
        self.change(replace(self.edits, bandwidth_GBps=tuple(bandwidth_GBps)), subject)

    def settle(self) -> None:
        """Begin a new step for undo, even if the next edit is of the same subject."""
        self._subject = None

    def change(self, edits: Edits, subject: str | None = None) -> None:
        """Go to other edits, such as those of a pinned design."""
        if edits == self.edits:
            return
        if subject is None or subject != self._subject or not self._undo:
            self._undo = [*self._undo[-MOST_UNDONE:], self.edits]
        self._subject, self._redo, self.edits = subject, [], edits

    def undo(self) -> bool:
        """Take back the latest edit; whether there was one."""
        return self._walk(self._undo, self._redo)

    @property
    def undo_target(self) -> Edits | None:
        """What undo goes back to; one object as long as no other edit is the latest."""
        return self._undo[-1] if self._undo else None

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
        self.reading, self.read_so_far = reading, ""
        self.text = reading.text if self.text is None else self.text
        others = self.disk.begin(reading.files)
        self.others_read = tuple(path.name for path in others if path != self.path)
        if reading.problem is None:
            return
        self.problem = reading.problem
        known = self.edits.bandwidth_GBps or bandwidth_GBps
        if known is None or not is_design(reading.problem, known):
            known = reading.start_GBps
        self.edits = replace(self.edits, bandwidth_GBps=tuple(known))
        origin, value = self._origins.get(self.edits, ("", None))
        if origin and value is None:
            self.came_from(origin)

    @property
    def named_files(self) -> dict[Path, bytes]:
        """Files that the plan names, with digests of what they said when it was read."""
        files = self.reading.files if self.reading else {}
        return {path: known for path, known in files.items() if path != self.path}

    @property
    def disk_words(self) -> str:
        """Which files say something else by now than what is on screen; empty for none."""
        return change_words(self.path, self.text, self.disk.changed)

    @property
    def called(self) -> str:
        """The plan on screen in words: its file, and what was edited since."""
        keys = dict.fromkeys(one.partition("=")[0] for one in self.edits.settings)
        edits = f" with your edits ({', '.join(keys)})" if keys else ""
        older = ", not as it is on disk now" if self.path in self.disk.changed else ""
        return f"{self.path.name} as on screen{edits}{older}"

    def came_from(self, origin: str) -> None:
        """Say in words how the design on screen came to be, under the plan as it stands."""
        self._origins[self.edits] = origin, self._value() if self.current else None

    @property
    def origin(self) -> str:
        """How the design on screen came to be: what it was said of, or what can be seen of it."""
        origin, value = self._origins.get(self.edits, ("", None))
        if origin and value == self._value():
            return origin
        if self.problem is None or self.edits.bandwidth_GBps is None:
            return "edited"
        shown = self.edits.bandwidth_GBps
        if shown == equal_split_GBps(self.problem, shown):
            return "equal bandwidth" if self.problem.prices.bills is None else "first option"
        if self.reading is None or shown != self.reading.start_GBps:
            return "edited"
        from libra_planner.optimizer.only import only_design

        return "unoptimised start" if only_design(self.problem) is None else "as the rules fix it"

    def _value(self) -> Any:
        document = self.reading.document if self.reading else None
        return document.value if document else None

    def file_written(self, path: Path) -> None:
        """The edits are in a file now: the history begins anew there."""
        self.path, self.text, self._undo, self._redo = path, None, [], []
        origin = self._origins.get(self.edits)
        self.edits = replace(self.edits, settings=())
        self._origins = {self.edits: origin} if origin else {}

    @property
    def bandwidth_bytes_per_s(self) -> Any:
        """The design on screen as the core takes it, shape (n_dims,)."""
        import numpy as np

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

    @property
    def fingerprint(self) -> bytes | None:
        """Of the plan as it stands, with everything that it names; ``None`` if it has faults."""
        return self.reading.fingerprint if self.reading and self.current else None

    def keep_optimum(self, fingerprint: bytes | None, optimum: Optimum) -> None:
        """Keep the certified design that was found for the plan of a fingerprint."""
        self._optimum = (fingerprint, optimum) if fingerprint else None

    @property
    def optimum(self) -> Optimum | None:
        """The certified design of the plan as it stands, if it was found."""
        found_for, optimum = self._optimum or (None, None)
        return optimum if found_for == self.fingerprint else None

    def keep_refusal(self, fingerprint: bytes | None, text: str) -> None:
        """Keep why the plan of a fingerprint has no design at all."""
        self._refusal = (fingerprint, text) if fingerprint else None

    @property
    def refusal(self) -> str:
        """Why the plan as it stands has no design, if that was found out; else empty."""
        found_for, text = self._refusal or (None, "")
        return text if found_for == self.fingerprint else ""

    @property
    def has_frontier(self) -> bool:
        """Whether the frontier that was found is that of the plan as it stands."""
        return self.frontier is not None and self.frontier.fingerprint == self.fingerprint

    def is_proven(self, evaluation: Evaluation | None) -> bool:
        """Whether the design on screen, with these figures, is the best for the plan's rules."""
        optimum = self.optimum
        is_shown = optimum and optimum.bandwidth_GBps == self.edits.bandwidth_GBps
        return bool(is_shown and evaluation and not evaluation.violated)

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
        value = dict(document.value)
        stood = self.text or "", self.named_files
        pinned = Pin(self._n_pinned, "", self.path, value, self.problem, evaluation, *stood)
        pinned = replace(pinned, called=distinct_name(pinned, self.origin, self.pins))
        self.pins.append(pinned)
        return pinned

    def unpin(self, index: int) -> None:
        """Drop a pinned design."""
        del self.pins[index]
        if self.baseline > index or self.baseline >= len(self.pins):
            self.baseline = max(0, self.baseline - 1)

    def rename(self, index: int, called: str) -> None:
        """Call a pinned design something else; it keeps its number."""
        self.pins[index] = replace(self.pins[index], called=called)

    def add_rule(self, text: str) -> None:
        """Append a design rule."""
        n = len(self._rules())
        self.edit(f"constraints.{n}" if n else "constraints", text if n else json.dumps([text]))

    def remove_empty_rule(self, index: int) -> bool:
        """Drop a design rule whose text was emptied; whether there was one to drop."""
        rules = self._rules()
        if index >= len(rules) or rules[index]:
            return False  # It is gone, and another one has its place.
        del rules[index]
        self.edit("constraints", json.dumps(rules))
        return True

    def _rules(self) -> list[Any]:
        """The design rules with all edits, those that are being read too."""
        said = plan_values(self.path, self.edits.settings, self.text)
        rules = said.get("constraints")
        return list(rules) if isinstance(rules, list) else []
