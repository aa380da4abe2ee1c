"""Plan files of any kind into problems: where parallelism is left open, it is searched first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import (
    Fault,
    Infeasible,
    PlannerError,
    SolverFailed,
    SpecError,
    located,
    refuse,
)
from libra_planner.fabric.topology import parse_topology
from libra_planner.frozen import Frozen
from libra_planner.inputs.bills import Bills, build_plan
from libra_planner.inputs.parts import BUNDLED_PARTS
from libra_planner.plan import problem as plans
from libra_planner.plan.models import AUTO_PARALLELISM, PlanSpec, is_auto, open_degrees
from libra_planner.plan.steps.batches import batch_notes
from libra_planner.plan.steps.kinds import unsearchable
from libra_planner.plan.steps.strategies import OpenDegreesSpec
from libra_planner.plan.training import plan_spec
from libra_planner.problem import Problem, with_bills
from libra_planner.reading.document import (
    Document,
    Source,
    apply_settings,
    dotted_key,
    folder_of,
    parse_document,
    read_document,
)
from libra_planner.reading.models import validated
from libra_planner.reading.rules import memory_limits
from libra_planner.step.bands import MEMORY_ERROR_FRACTION
from libra_planner.step.expression import Array
from libra_planner.step.memory_use import MemoryUse, certain_bytes, is_certain
from libra_planner.units import format_time
from libra_planner.workload.defaults import LIBRARIES, MEGATRON_CORE
from libra_planner.workload.placement import misfit_words, other_degree
from libra_planner.workload.strategy import Strategy

if TYPE_CHECKING:
    from libra_planner.search.best import Candidate, Progress, Search, SearchResult

KEY = "parallelism"
CERTAIN = "--set memory=certain"
"""How to ask for strategies that certainly fit."""


def load_plan(
    path: Source,
    settings: str | Sequence[str] = (),
    *,
    parts: str = BUNDLED_PARTS,
    progress: Progress | None = None,
    text: str | None = None,
) -> Problem:
    """Read a plan file, or a map: with its best strategy where it says ``parallelism: auto``.

    One that says ``prices: bill`` has the bill of each of its options.

    Parameters
    ----------
    path, settings : as :func:`libra_planner.plan.problem.load_plan` takes them.
    parts : parts catalogue that is bought from.
    progress : is told of a search.
    text : of the file, where it was read before; else it is read now.

    Raises
    ------
    SpecError
        With every fault found, each with file, line, column and the fix.
    PlannerError
        Of a search that finds nothing.

    Examples
    --------
    >>> from libra_planner.reading.bundled import example
    >>> load_plan(example("01_gpt3_4d")).prices.bills is None
    True
    """
    given = [settings] if isinstance(settings, str) else settings
    opened = open_plan(path, given, parts=parts, text=text)
    return opened.searched(progress=progress).completed().problem


def open_plan(
    path: Source,
    settings: Sequence[str] = (),
    *,
    parts: str = BUNDLED_PARTS,
    text: str | None = None,
) -> OpenedPlan:
    """A plan file that is read, but not built; arguments as :func:`load_plan` has them.

    Raises
    ------
    SpecError
        For a file or a setting that cannot be read.
    """
    document = read_document(path) if text is None else parse_document(text, str(path))
    # Degrees may follow a setting that leaves them open.
    last = max(
        (i + 1 for i, one in enumerate(settings) if one.startswith("parallelism=")), default=0
    )
    for some in (settings[:last], settings[last:]):
        open_degrees(document.value, some)
        apply_settings(document, some)
    bills = Bills(parts)
    if parts != BUNDLED_PARTS:  # What is wrong with it is said, also where no bill is asked for.
        with located("--parts"):
            bills.catalogue  # noqa: B018
    return OpenedPlan(document, folder_of(path), bills, tuple(settings))


@dataclass(frozen=True)
class SearchedPlan:
    """A plan whose strategy is known.

    Parameters
    ----------
    problem : the plan in numbers.
    settings : overrides that make it, those of the caller first.
    found : by the search; ``None`` where the plan says its degrees.
    """

    problem: Problem
    settings: tuple[str, ...] = ()
    found: SearchResult | None = None

    def completed(self) -> SearchedPlan:
        """Itself.

        Raises
        ------
        KeyboardInterrupt
            Where the user stopped its search.
        """
        if self.found is not None:
            self.found.completed()
        return self


@dataclass(frozen=True)
class OpenedPlan(Frozen):
    """A plan that is read, and may leave its parallelism open.

    Parameters
    ----------
    document : the plan, settings applied.
    beside : folder that its paths are relative to.
    bills : of the catalogue that is bought from; several plans may share it.
    settings : overrides in the document.
    """

    document: Document = field(repr=False)
    beside: Path
    bills: Bills = field(default_factory=Bills, repr=False)
    settings: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it says ``parallelism: auto``, or fixes some degrees and leaves the rest."""
        value = self.document.value
        return isinstance(value, dict) and is_auto(value.get(KEY))

    @cached_property
    def problem(self) -> Problem:
        """The plan in numbers; of an open one the degrees only stand for those of a search.

        Raises
        ------
        SpecError
            With every fault found.
        """
        if self.is_open:
            return self.base
        return build_plan(self.document, self.beside, self.bills)

    def searched(
        self,
        *,
        bandwidth_bytes_per_s: Array | None = None,
        n_best: int = 1,
        progress: Progress | None = None,
    ) -> SearchedPlan:
        """The plan with its best strategy, or as it is where it says one.

        Parameters
        ----------
        bandwidth_bytes_per_s, n_best : of :meth:`search`.
        progress : is told what is done.

        Raises
        ------
        PlannerError
            For a plan that is wrong, or of which no strategy fits, meets the rules or is proven.
        KeyboardInterrupt
            Where the user stops the search before it has any strategy.
        """
        if not self.is_open:
            return SearchedPlan(self.problem, self.settings)
        given = bandwidth_bytes_per_s
        found = self.search(bandwidth_bytes_per_s=given, n_best=n_best).run(progress)
        if not found.best:
            if found.was_stopped:  # Nothing is known of its strategies.
                raise KeyboardInterrupt
            raise self.nothing_found(found)
        best, of_all = found.best[0].strategy, search_words(found)
        if given is None:
            return self.with_strategy(found, best, f"the best of {of_all}")
        more = "optimize may take another at its own bandwidth"
        chosen = self.with_strategy(found, best, f"the best at this bandwidth of {of_all}; {more}")
        text = chosen.problem.text
        said = (f"{text.settings[0]} (chosen for this bandwidth)", *text.settings[1:])
        return replace(chosen, problem=replace(chosen.problem, text=replace(text, settings=said)))

    def with_strategy(self, found: SearchResult, strategy: Strategy, which: str) -> SearchedPlan:
        """The plan with a strategy of its space.

        Parameters
        ----------
        found : by the search.
        strategy, which : it, and what it is among all, for people.
        """
        problem = plans.build_plan(
            self._with(**{KEY: strategy.degrees}), self.beside, self.bills.parts
        )
        problem = with_bills(problem, self.base.prices.bills)
        written = strategy_words(strategy)
        note = f"{KEY}: {self._asked} took {which}; to keep this one write {KEY}: {written}"
        is_given = self._fixed is not None and bool(self._fixed.choices.get("dp"))
        few = () if is_given else batch_notes(int(strategy.global_batch), problem.topology.n_npus)
        text = replace(problem.text, notes=(note, *few, *problem.text.notes))
        settings = (*self.settings, f"{KEY}={written}")
        return SearchedPlan(replace(problem, text=text), settings, found)

    def search(
        self,
        global_batches: Sequence[int] = (),
        *,
        bandwidth_bytes_per_s: Array | None = None,
        n_best: int = 1,
    ) -> Search:
        """The search for the best strategies, whatever degrees the plan says.

        Parameters
        ----------
        global_batches : sequences of a step; the plan's by default.
        bandwidth_bytes_per_s : shape (n_dims,), of the only design that is asked about.
        n_best : strategies that are proven.

        Raises
        ------
        SpecError
            For a plan that is wrong, or cannot be searched.
        """
        from libra_planner.search.plans import plan_search
        from libra_planner.search.space import Choices

        with self._placed():
            spec = self._spec
            refuse(unsearchable(spec, self.beside))
            if faults := self._faults_of("_fixed"):
                raise SpecError(*self._faults_of("base"), *faults)
            base = self.base
            library = LIBRARIES[spec.library or MEGATRON_CORE]
            said = spec.overlap.model_dump(exclude_none=True) if spec.overlap else {}
            fixed = self._fixed
            own = getattr(fixed or spec.parallelism, "sequence_parallel", None)
            splits = library.sequence_parallel if own is None else own
            batches = tuple(global_batches) or (spec.global_batch or 1,)
            search = plan_search(
                base,
                batches,
                choices=Choices(
                    splits_sequence=splits,
                    hides_sends="p2p" in said,
                    **(fixed.choices if fixed else {}),
                ),
                overlap=replace(library.overlap, **said),
                most_bytes=self._most_bytes,
                bandwidth_bytes_per_s=bandwidth_bytes_per_s,
                n_best=n_best,
            )
            if not search.space.n:
                raise SpecError(
                    self._nothing_divides(search, batches).located(self.document.place((KEY,)))
                )
            return search

    def zero_1_words(self, found: SearchResult | None) -> str:
        """The best strategy of ZeRO 1 where the one that was found shares more; else empty.

        ZeRO 2 and 3 are those of Megatron FSDP, which not everybody runs.
        """
        if found is None or not found.best or int(found.best[0].strategy.zero) < 2:
            return ""
        is_fixed = self._fixed is not None and bool(self._fixed.choices.get("zero"))
        if is_fixed or (self._spec.library or MEGATRON_CORE) != MEGATRON_CORE:
            return ""
        from libra_planner.search.rivals import fastest_with_zero

        best = found.best[0]
        other = fastest_with_zero(self.search(), best, 1)
        if other is None:
            return "No strategy of ZeRO 1 fits an NPU's memory"
        more = other.step_time_s / best.optimum.step_time_s - 1
        return (
            f"With ZeRO 1 the best takes {format_time(other.step_time_s)} ({more:+.1%}) at this "
            f"bandwidth: {KEY}: {strategy_words(other.strategy)}"
        )

    def certain_words(self, found: SearchResult | None, global_batches: Sequence[int] = ()) -> str:
        """The best strategy that certainly fits, where that found may not; else empty."""
        if found is None or not found.best:
            return ""
        words = certain_words(self.search(global_batches), found.best[0], self._room_bytes)
        return f"{words}; {CERTAIN} searches among such alone" if words else ""

    @cached_property
    def base(self) -> Problem:
        """The plan with degrees that suit any model, or its own, whatever memory they need."""
        document = self.with_degrees
        if self.is_open:
            batch = document.value.get("global_batch")
            if type(batch) is int and batch >= 1:  # One that the degrees divide.
                changed = document.value | {"global_batch": self._n_npus}
                document = replace(document, value=changed)
        return build_plan(document, self.beside, self.bills, holds_memory=False)

    @property
    def with_degrees(self) -> Document:
        """The document, with some degrees where it leaves them open."""
        return self._with(**{KEY: {"dp": self._n_npus}}) if self.is_open else self.document

    @cached_property
    def _spec(self) -> PlanSpec:
        """What the plan says beside its degrees."""
        try:
            spec = plan_spec(self.with_degrees)
        except SpecError as error:  # With those of degrees, names, rules and the fabric.
            faults = self._faults_of("base") or error.faults
            raise SpecError(*faults, *self._faults_of("_fixed")) from None
        if not isinstance(spec, PlanSpec):
            got, expected = "got a group of workloads", "expected one workload in a search"
            raise SpecError(Fault(got, expected, "search each in a plan of its own", "workloads"))
        if self.is_open and spec.memory == "ignore":
            got, expected = "got ignore", "expected nothing: a search takes what fits"
            fix = "remove it, or raise npu: {memory: ...}"
            raise SpecError(Fault(got, expected, fix, "memory"))
        return spec

    def _faults_of(self, part: str) -> tuple[Fault, ...]:
        """What is wrong with a part of it."""
        try:
            getattr(self, part)
        except SpecError as error:
            return error.faults
        return ()

    @cached_property
    def _fixed(self) -> OpenDegreesSpec | None:
        """What an open plan fixes of its strategy; ``None`` for nothing."""
        is_partial = self.is_open and isinstance(self.document.value[KEY], dict)
        return validated(OpenDegreesSpec, self.document, (KEY,)) if is_partial else None

    @property
    def _asked(self) -> str:
        """What an open plan says of its parallelism."""
        value = self.document.value[KEY]
        return _flow(value) if isinstance(value, dict) else AUTO_PARALLELISM

    @property
    def _n_npus(self) -> int:
        fabric = self.document.value.get("fabric")
        try:
            return parse_topology(str(fabric.get("topology"))).n_npus
        except (SpecError, AttributeError):  # Whatever builds the plan says what is wrong.
            return 1

    @property
    def _most_bytes(self) -> float:
        """The tightest rule on memory, or what certainly fits where the plan asks for that."""
        limits = [one for text in self._spec.constraints if (one := memory_limits(text))]
        if any(one.least_bytes for one in limits):
            got, expected = (
                "got a least memory",
                "expected an upper limit: a search takes what fits",
            )
            raise SpecError(Fault(got, expected, "write memory <= 76 GB", "constraints"))
        room = self._room_bytes
        is_held = self._spec.memory == "certain" and room is not None
        certain = [certain_bytes(room)] if is_held and room is not None else []
        return min([one.most_bytes for one in limits] + certain, default=float("inf"))

    @property
    def _room_bytes(self) -> float | None:
        """Memory of an NPU; ``None`` where it is not known."""
        memory = self.base.step.memory
        return memory.npu_memory_bytes if isinstance(memory, MemoryUse) else None

    def _with(self, **changed: Any) -> Document:
        """The document with other values of some keys, which stand where they stood."""
        return replace(self.document, value=self.document.value | changed)

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """Give faults of keys of the plan their place in it."""
        try:
            yield
        except SpecError as error:
            keys = [dotted_key(fault.path) if fault.path else () for fault in error.faults]
            places = [self.document.key_place(key) for key in keys]
            pairs = zip(error.faults, places, strict=True)
            raise type(error)(*(fault.located(place) for fault, place in pairs)) from None

    def nothing_found(
        self, found: SearchResult, global_batches: Sequence[int] = ()
    ) -> PlannerError:
        """Why a search of :meth:`search` has no strategy: what excluded how many."""
        from libra_planner.search.excluded import Excluded

        place, n = self.document.place((KEY,)), found.n_candidates
        if found.n_unproven:
            return SolverFailed(f"{place}: {found.n_unproven:,} of {n:,} strategies are not proven")
        why = Excluded.of(self.search(global_batches))
        if why.fits:
            return Infeasible(f"{place}: {why.words()}")
        remedy = "take more NPUs, or larger ones"
        if self._fixed is not None:
            free = replace(self, document=self._with(**{KEY: AUTO_PARALLELISM}))
            if free.search(global_batches).fits_with_zero(3):
                remedy = f"others fit: write {KEY}: {AUTO_PARALLELISM}"
        return Infeasible(f"{place}: {why.words(remedy)}")

    def _nothing_divides(self, search: Search, batches: tuple[int, ...]) -> Fault:
        """Which of the fixed degrees nothing divides, and why; else the batch."""
        from libra_planner.search.space import Choices, possible_degrees, values_that_divide

        fixed, topology, space = self._fixed, self.base.topology, search.space
        if fixed is None or not fixed.choices:
            expected = f"expected a batch that degrees of {self._n_npus:,} NPUs divide"
            return Fault(f"got {self._asked}", expected, "change global_batch", KEY)
        got = f"got {self._asked}"
        expected = f"expected degrees that divide {self._n_npus:,} NPUs, the model and the batch"
        choices, model = Choices(**fixed.choices), space.model
        for axis in ("ep", "tp", "cp", "pp", "dp"):
            degree = max(getattr(choices, axis), default=0)
            possible = possible_degrees(model, topology, choices, axis) if degree else ()
            if possible and degree not in possible:
                n_experts = model.experts.n if model.experts else 0
                why = misfit_words(topology, degree) if axis in ("ep", "tp") else ""
                if axis == "ep" and n_experts % degree:
                    why = f"the {n_experts or 1} experts are no multiple of {degree}"
                fix = other_degree(axis, degree, possible, topology, n_experts)
                return Fault(got, expected + f": {why}" * bool(why), fix, KEY)
        for n_freed in range(1, len(fixed.choices) + 1):
            for freed in combinations(fixed.choices, n_freed):
                left = {key: one for key, one in fixed.choices.items() if key not in freed}
                found = values_that_divide(space, topology, batches, Choices(**left), freed[0])
                if found and n_freed == 1:
                    said = fixed.choices[freed[0]][0]
                    return Fault(got, expected, other_degree(freed[0], said, found, topology), KEY)
                if found:
                    return Fault(got, expected, f"leave out {' and '.join(freed)}", KEY)
        return Fault(got, expected, "change global_batch", KEY)


def strategy_words(strategy: Strategy) -> str:
    """A strategy as a plan writes it after ``parallelism:``."""
    return _flow(strategy.degrees)


def _flow(degrees: Mapping[str, Any]) -> str:
    return f"{{{', '.join(f'{key}: {str(value).lower()}' for key, value in degrees.items())}}}"


def certain_words(search: Search, best: Candidate, room_bytes: float | None) -> str:
    """The fastest strategy that certainly fits the memory, where the best may not; else empty.

    Parameters
    ----------
    search, best : the search, and its best strategy, at whose bandwidth it is compared.
    room_bytes : memory of an NPU; ``None`` where it is not known.
    """
    if room_bytes is None or is_certain(best.memory_bytes, room_bytes):
        return ""
    from libra_planner.search.rivals import fastest_within

    other = fastest_within(search, best, certain_bytes(room_bytes))
    if other is None:
        return f"No strategy fits by {MEMORY_ERROR_FRACTION:.0%} or more"
    n_steps = int(best.strategy.global_batch) / int(other.strategy.global_batch)
    more = other.step_time_s * n_steps / best.optimum.step_time_s - 1
    of = "" if n_steps == 1 else " a token"
    return (
        f"The fastest that fits by {MEMORY_ERROR_FRACTION:.0%} or more takes "
        f"{format_time(other.step_time_s)} ({more:+.1%}{of}) at this bandwidth: "
        f"{KEY}: {strategy_words(other.strategy)}"
    )


def search_words(found: SearchResult) -> str:
    """How many strategies were compared, and whether the best is proven."""
    proven = "proven" if found.is_certified else f"{found.n_unproven:,} of them not proven"
    return f"{found.n_candidates:,} strategies, {proven}"
