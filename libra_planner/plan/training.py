"""What a plan trains, one workload or a group of them, into trainings and their step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from libra_planner.errors import DataNotFound, Fault, SpecError, refuse
from libra_planner.fabric.topology import Topology
from libra_planner.plan import models, prices
from libra_planner.plan.architectures.settings import PlanSettings
from libra_planner.plan.loops import loop_notes, parse_loop
from libra_planner.plan.npus import canonical_name, catalogue, npu_named
from libra_planner.plan.steps import whole
from libra_planner.plan.steps.notes import Note, kind_of
from libra_planner.plan.steps.strategies import DegreesSpec, OpenDegreesSpec
from libra_planner.plan.systems import System
from libra_planner.plan.workloads import load_workload
from libra_planner.problem import Rule, StepTimeLimit
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, dotted_key
from libra_planner.reading.models import FaultCollector, validated
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.models import CollectiveModel, Ideal
from libra_planner.step.layers import LOOPS, Training, TrainingLoop
from libra_planner.step.model_training import ModelTraining
from libra_planner.step.training import Step, member
from libra_planner.workload.operations import (
    Communicators,
    Phase,
    Workload,
    communicators_from_degrees,
    communicators_from_sizes,
)


@dataclass(frozen=True)
class PlannedTraining:
    """A workload on the fabric, and what a plan says of it for people.

    Parameters
    ----------
    training : the workload.
    notes : assumptions worth printing.
    settings : degrees, batch and compute rate.
    """

    training: Training | ModelTraining
    notes: tuple[str, ...]
    settings: tuple[str, ...]


@dataclass
class TrainingBuilder(FaultCollector):
    """Turns what a plan says about one workload into a :class:`PlannedTraining`.

    Parameters
    ----------
    document, prefix, faults : the plan, the entry's place in it, and where faults go.
    entry : the workload and how it is spread over the NPUs.
    plan : what holds for the whole plan, such as its training loop.
    beside : folder of the plan.
    system : the user's system file that the plan names.
    holds_memory : whether a model has to fit its NPUs, if the plan says so.
    """

    entry: models.TrainingSpec
    plan: models.CommonSpec
    beside: Path
    system: System | None = None
    holds_memory: bool = True

    def path(self) -> Path | None:
        """The workload's file; a name that is none is noted as a fault."""
        name = self.entry.workload
        return self.attempt(("workload",), bundled.resolve, "workloads", name, self.beside)

    def build(self, network: Network, path: Path | None) -> PlannedTraining | None:
        """The training, or ``None`` with its faults noted."""
        attempt, named, npu = self.attempt, self.entry.npu, None
        faults = [*self._step_faults(path)]
        for fault in faults:
            self.note(fault, dotted_key(fault.path))
        if faults:
            return None
        if whole.is_whole(self.entry):
            return None if path is None else attempt(("workload",), self._whole, network, path)
        communicators = attempt(("parallelism",), self._communicators, network.topology)
        if communicators is None or path is None:
            return None
        if named is not None and not isinstance(named, prices.NpuMemorySpec):
            npu = attempt(("npu", "catalogue"), prices.compute_rate, named, self.beside)
            if npu is None:
                return None
        workload = attempt(("workload",), self._workload, path, communicators, npu)
        if workload is None:
            return None
        return attempt(("parallelism",), self._training, network, communicators, workload, npu)

    def _step_faults(self, path: Path | None) -> Iterator[Fault]:
        """Keys that do not go with the kind of step, or what is wrong with the workload's file."""
        try:
            with suppress(DataNotFound):  # Whoever reads the workload tells it, at its line.
                yield from whole.misplaced_faults(self.entry, path)
        except SpecError as error:
            yield from error.faults
        if whole.is_whole(self.entry):
            yield from whole.loop_faults(self.entry, self.plan)

    def _whole(self, network: Network, path: Path) -> PlannedTraining:
        """The step of a whole model.

        Raises
        ------
        Infeasible
            For one that does not fit its NPUs.
        """
        loop = None if self.plan.training_loop is None else plan_loop(self.plan)
        step = whole.WholeStep(self.entry, path, self.beside, self.system, loop)
        try:
            training = step.training(network)
        except SpecError as error:
            raise type(error)(*map(self._of_the_plan, error.faults)) from None
        if self.holds_memory and self.entry.memory != "ignore":
            place = self.document.place((*self.prefix, "parallelism"))
            stands = partial(step.stands, network.topology)
            is_certain = self.entry.memory == "certain"
            refuse = whole.refuse_uncertain if is_certain else whole.refuse_too_large
            refuse(step.memory, path.stem, place=place, stands=stands)
        return PlannedTraining(training, step.notes(training), step.words())

    def _training(
        self,
        network: Network,
        communicators: Communicators,
        workload: Workload,
        npu: prices.NpuSpec | None,
    ) -> PlannedTraining:
        try:
            training = Training(workload, communicators, network, plan_loop(self.plan))
            expression = training.step_time(Ideal())
        except SpecError as error:
            raise type(error)(*map(self._of_the_plan, error.faults)) from None
        if not expression.least_s and not len(expression.forms):
            got = f"got {workload.name}, whose step takes no time under this parallelism"
            raise SpecError(Fault(got, "expected compute or communication", "", "workload"))
        n_npus, notes = network.topology.n_npus, workload.notes
        n_used = communicators.group(Phase.FORWARD, "tp").n_npus
        n_used *= communicators.group(Phase.WEIGHT_GRAD, "dp").n_npus
        if workload.n_sequences is not None and n_used != n_npus:
            work = f"{n_used:,} NPUs of work on {n_npus:,} NPUs; cost counts them all"
            notes += (f"forward x weight_grad groups make {work}",)
        notes += loop_notes(self.plan.layer_loop)
        if self.system is not None and self.system.computes:
            held = f"{self.system.computes} of {self.system.label} are not used"
            notes += (f"{held}: this is not the step of a whole model",)
        if self.entry.npu and self.entry.npu.memory is not None and workload.memory is None:
            lacks = f"{workload.name} does not say what its model needs"
            notes += (f"npu.memory is not used: {lacks}",)
        return PlannedTraining(training, notes, self._settings(workload, npu))

    def _of_the_plan(self, fault: Fault) -> Fault:
        """A fault of the loop stands where the plan's loop does, not in this entry."""
        of_loop = fault.path.startswith("training_loop")
        place = self.document.place(dotted_key(fault.path))
        return fault.located(place) if of_loop else fault

    def _communicators(self, topology: Topology) -> Communicators:
        parallelism = self.entry.parallelism
        if isinstance(parallelism, DegreesSpec):
            degrees = {"tp": parallelism.tp, "dp": parallelism.dp}
            return communicators_from_degrees(topology, degrees)
        sizes = {phase: tuple(getattr(parallelism, phase.value)) for phase in Phase}
        return communicators_from_sizes(topology, sizes)

    def _workload(
        self, path: Path, communicators: Communicators, npu: prices.NpuSpec | None
    ) -> Workload:
        tp = communicators.group(Phase.FORWARD, "tp").n_npus
        dp = communicators.group(Phase.WEIGHT_GRAD, "dp").n_npus
        try:
            memory = prices.npu_memory_bytes(self.entry.npu, self.plan.fixed_cost, self.beside)
        except SpecError:  # The fixed cost, which asks for the same NPU, says what is wrong.
            memory = None
        batch, has_groups = self.entry.global_batch, communicators.explicit
        settings = PlanSettings(tp, dp, batch, npu, memory, has_groups)
        workload = load_workload(path, settings)
        input_grad = communicators.group(Phase.INPUT_GRAD, "tp").n_npus
        if workload.n_sequences is not None and input_grad != tp:
            got = f"got groups of {input_grad} NPUs, but of {tp} in forward"
            expected = "expected the same tensor-parallel degree in both"
            raise SpecError(Fault(got, expected, "", "parallelism.input_grad"))
        return workload

    def _settings(self, workload: Workload, npu: prices.NpuSpec | None) -> tuple[str, ...]:
        parallelism, named = self.entry.parallelism, self.entry.npu
        if isinstance(parallelism, DegreesSpec):
            settings = [f"TP {parallelism.tp} x DP {parallelism.dp}"]
        else:
            settings = ["group sizes per phase"]
        if workload.n_sequences is not None:
            settings.append(f"{workload.n_sequences:,} sequences per step")
        if npu is not None:
            share = f"{npu.efficiency_fraction:.0%} of {npu.peak_TFLOPps:g} TFLOP/s"
            settings.append(f"compute at {share} per NPU")
            if isinstance(named, prices.NamedNpuSpec):
                settings[-1] += f" ({named.name}, {named.data_type})"
        return tuple(settings)


def plan_loop(plan: models.CommonSpec) -> TrainingLoop:
    """The training loop that a plan asks for.

    Raises
    ------
    SpecError
        For an expression outside the grammar.
    """
    spec, options = plan.layer_loop, (plan.contention, plan.bubble_fraction)
    if isinstance(spec, str):
        return TrainingLoop(LOOPS[spec], True, *options)
    key, text = ("layer", spec.layer) if spec.layer is not None else ("step", spec.step or "")
    try:
        return TrainingLoop(parse_loop(text), key == "layer", *options)
    except SpecError as error:
        faults = (replace(fault, path=f"training_loop.{key}") for fault in error.faults)
        raise type(error)(*faults) from None


def plan_spec(document: Document) -> models.AnyPlanSpec:
    """The plan, by the shape it has: with ``workloads`` it is a group's.

    Raises
    ------
    SpecError
        With every fault; a key of one workload beside ``workloads`` is one in its own words.
    """
    value = document.value
    if not isinstance(value, dict) or "workloads" not in value:
        return _own_spec(document)
    misplaced = {key for key in models.TrainingSpec.model_fields if key in value}
    try:
        return validated(models.GroupPlanSpec, document)
    except SpecError as error:
        expected = "expected it inside the entries of workloads"
        fix = "move it into each entry it is meant for, or remove workloads"
        faults = (
            replace(fault, got=f"got {fault.path} beside workloads", expected=expected, fix=fix)
            if fault.path in misplaced
            else fault
            for fault in error.faults
        )
        raise SpecError(*faults) from None


def _own_spec(document: Document) -> models.PlanSpec:
    """The plan of one workload; of degrees that leave a rest, faults are those of open ones."""
    try:
        return validated(models.PlanSpec, document)
    except SpecError as error:
        faults, key = list(error.faults), ("parallelism",)
        said = document.value.get("parallelism") if isinstance(document.value, dict) else None
        if isinstance(said, dict) and models.REST in said:
            faults = [one for one in faults if not one.path.startswith("parallelism.")]
            try:
                validated(OpenDegreesSpec, document, key)
            except SpecError as of_degrees:
                faults = [*of_degrees.faults, *faults]
        raise SpecError(*map(_or_searched, faults)) from None


def _or_searched(fault: Fault) -> Fault:
    """That degrees which are not said may be searched, where one is missing."""
    if fault.path != "parallelism.dp" or fault.got != "got nothing":
        return fault
    return replace(fault, fix=f"{fault.fix}, or 'rest: auto' to search what is not said")


def builders(
    spec: models.AnyPlanSpec,
    faults: FaultCollector,
    beside: Path,
    system: System | None = None,
    holds_memory: bool = True,
) -> list[TrainingBuilder]:
    """What builds each workload of a plan; their faults join those of the plan."""
    if isinstance(spec, models.PlanSpec):
        about = spec, spec, beside, system, holds_memory
        return [TrainingBuilder(faults.document, *about, faults=faults.faults)]
    parts = [faults.under("workloads", i) for i in range(len(spec.workloads))]
    return [
        TrainingBuilder(
            one.document,
            *(entry, spec, beside, system, holds_memory),
            prefix=one.prefix,
            faults=one.faults,
        )
        for one, entry in zip(parts, spec.workloads, strict=True)
    ]


def npu_names(spec: models.AnyPlanSpec, beside: Path | None = None) -> list[str]:
    """Names of the NPUs that a plan computes with, else of the one it buys; each NPU once."""
    named, bought = _computed(spec), _bought(spec)
    modelled = spec.system if spec.fidelity == models.CALIBRATED else None
    own: list[str | None] = [*named] or [bought]
    names = [one for one in (*own, modelled) if one]
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(_canonical(name, None, beside), name)
    return list(found.values())


def check_bought_npu(spec: models.AnyPlanSpec, beside: Path | None = None) -> None:
    """Refuse a plan that computes with one NPU and pays for another.

    Raises
    ------
    SpecError
        With both names.
    """
    bought, entries = _bought(spec), _entries(spec)
    named = [one.npu for one in entries if isinstance(one.npu, prices.NamedNpuSpec)]
    own = spec.fixed_cost.catalogue if isinstance(spec.fixed_cost, prices.FixedCostParts) else None
    if bought is None or has_unknown_npu(spec):  # A name that nothing has is the cause.
        return
    paid = _canonical(bought, own, beside)
    for npu in named:
        if (used := _canonical(npu.name, npu.catalogue, beside)) != paid:
            got = f"got {paid}, and the plan computes with {used}"
            fix = f"write npu: {used} there, as --set fixed_cost.npu={used} does"
            raise SpecError(Fault(got, "expected to pay for the NPU that computes", fix))


def _entries(spec: models.AnyPlanSpec) -> Sequence[models.TrainingSpec]:
    return [spec] if isinstance(spec, models.PlanSpec) else spec.workloads


def _computed(spec: models.AnyPlanSpec) -> list[str]:
    """Names of the NPUs that compute, as the plan writes them."""
    npus = [one.npu for one in _entries(spec)]
    return [npu.name for npu in npus if isinstance(npu, prices.NamedNpuSpec)]


def _bought(spec: models.AnyPlanSpec) -> str | None:
    """The NPU that the fixed cost pays for, as the plan writes it."""
    return spec.fixed_cost.npu if isinstance(spec.fixed_cost, prices.FixedCostParts) else None


def _canonical(name: str, catalogue_name: str | None, beside: Path | None) -> str:
    """The catalogue's name of an NPU; as it stands where the catalogue does not open."""
    try:
        return canonical_name(name, catalogue_name, beside)
    except SpecError:
        return name


def has_unknown_npu(spec: models.AnyPlanSpec) -> bool:
    """Whether a plan names an NPU that the bundled catalogue lacks: its readers say which."""
    npus = [one.npu for one in _entries(spec) if isinstance(one.npu, prices.NamedNpuSpec)]
    names = [npu.name for npu in npus if npu.catalogue is None]
    bought = _bought(spec)
    if bought and isinstance(spec.fixed_cost, prices.FixedCostParts):
        names += [bought] * (spec.fixed_cost.catalogue is None)
    return any(npu_named(name, catalogue().npus) is None for name in names)


def planned_step(
    spec: models.AnyPlanSpec, planned: Sequence[PlannedTraining], model: CollectiveModel
) -> Step:
    """What a plan trains under a model of collectives, from its workloads in order.

    Raises
    ------
    SpecError
        For workloads of one name, or an algorithm that cannot run.
    """
    trainings = [one.training for one in planned]
    if not isinstance(spec, models.GroupPlanSpec):
        name = trainings[0].workload.name
        return Step((member(trainings[0], name, 1.0, model),), name, model=model)
    total = math.fsum(entry.weight for entry in spec.workloads)
    names = _names(spec, trainings)
    members = tuple(
        member(training, name, entry.weight / total, model)
        for name, entry, training in zip(names, spec.workloads, trainings, strict=True)
    )
    return Step(members, " + ".join(names), is_group=True, model=model)


def step_words(
    spec: models.AnyPlanSpec, planned: Sequence[PlannedTraining], step: Step
) -> tuple[list[str], list[str]]:
    """Assumptions of what is trained; and degrees, batch and compute rate, for people to read."""
    if not isinstance(spec, models.GroupPlanSpec):
        return list(planned[0].notes), list(planned[0].settings)
    pairs = list(zip(step.members, planned, strict=True))
    notes: list[str] = [
        Note(f"{member.name}: {note}", kind_of(note)) for member, one in pairs for note in one.notes
    ]
    total = math.fsum(entry.weight for entry in spec.workloads)
    given = any("weight" in entry.model_fields_set for entry in spec.workloads)
    if given and not math.isclose(total, 1.0, rel_tol=1e-9):
        weights = ", ".join(f"{entry.weight:g}" for entry in spec.workloads)
        notes.append(f"the weights {weights} were divided by their sum, {total:g}")
    return notes, [f"{member.name} ({', '.join(one.settings)})" for member, one in pairs]


def _names(spec: models.GroupPlanSpec, trainings: Sequence[Training | ModelTraining]) -> list[str]:
    pairs = zip(spec.workloads, trainings, strict=True)
    names = [entry.name or training.workload.name for entry, training in pairs]
    counts, faults = Counter(names), []
    for i, name in enumerate(names):
        if counts[name] > 1 and name in names[:i]:
            key = "name" if spec.workloads[i].name else "workload"
            fix = f"tell them apart: add e.g. 'name: {name}-{names[: i + 1].count(name)}'"
            got = f"got {name!r} twice"
            faults.append(Fault(got, "expected different names", fix, f"workloads.{i}.{key}"))
    refuse(faults)
    return names


def check_group(spec: models.AnyPlanSpec) -> None:
    """Refuse what a group's objective cannot use.

    Raises
    ------
    SpecError
        For weights or the objective cost where only ratios of times count.
    """
    if spec.group_objective == "weighted":
        return
    kind, faults = spec.group_objective, []
    if spec.objective == "cost":
        got = f"got {kind} with the objective cost, in which no time counts"
        fix = "remove it, or choose performance or performance_per_cost"
        faults.append(Fault(got, "expected weighted", fix, "group_objective"))
    first = spec.workloads[0].weight
    for i, entry in enumerate(spec.workloads):
        if kind == "worst_case" and entry.weight != first:
            got = f"got {entry.weight:g}, unlike the first workload's {first:g}"
            expected = (
                "expected equal weights: worst_case is the largest ratio, whatever its weight"
            )
            fix = "remove the weights, or write group_objective: relative"
            faults.append(Fault(got, expected, fix, f"workloads.{i}.weight"))
    refuse(faults)


def check_rules(spec: models.AnyPlanSpec, rules: Sequence[Rule | StepTimeLimit]) -> None:
    """Refuse step-time rules where the plan has no step time of its own.

    Raises
    ------
    SpecError
        For a bound on step_time under ``relative`` or ``worst_case``.
    """
    kind = spec.group_objective
    limits = [rule for rule in rules if isinstance(rule, StepTimeLimit)]
    if kind == "weighted" or not limits:
        return
    got = f"got a step_time bound in {limits[0].text!r} with group_objective {kind}"
    expected = "expected none: step_time of a group is the weighted mean, which weighted minimises"
    raise SpecError(Fault(got, expected, "remove it, or write group_objective: weighted"))
