"""Plans with several workloads: which of the two shapes a plan has, and what they mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from libra_planner.errors import Fault, SpecError
from libra_planner.problem import Rule, StepTimeLimit
from libra_planner.reading.document import Document
from libra_planner.reading.faults import FaultCollector, validated
from libra_planner.spec.group_models import AnyPlanSpec, GroupPlanSpec
from libra_planner.spec.models import PlanSpec, TrainingSpec
from libra_planner.spec.training import PlannedTraining
from libra_planner.step.collectives.models import CollectiveModel
from libra_planner.step.training import Step, Training, member


def plan_spec(document: Document) -> AnyPlanSpec:
    """The plan, by the shape it has: with ``workloads`` it is a group's.

    Raises
    ------
    SpecError
        With every fault; a key of one workload beside ``workloads`` is one in its own words.
    """
    value = document.value
    if not isinstance(value, dict) or "workloads" not in value:
        return validated(PlanSpec, document)
    misplaced = {key for key in TrainingSpec.model_fields if key in value}
    try:
        return validated(GroupPlanSpec, document)
    except SpecError as error:
        faults = [
            _misplaced(document, fault.path) if fault.path in misplaced else fault
            for fault in error.faults
        ]
        raise SpecError(*faults) from None


def _misplaced(document: Document, key: str) -> Fault:
    got, expected = f"got {key} beside workloads", "expected it inside the entries of workloads"
    fix = "move it into each entry it is meant for, or remove workloads"
    return Fault(got, expected, fix, key, document.key_place((key,)))


def entries(spec: AnyPlanSpec, faults: FaultCollector) -> list[tuple[TrainingSpec, FaultCollector]]:
    """Each workload of a plan, with the collector of its part of the file."""
    if isinstance(spec, PlanSpec):
        return [(spec, faults)]
    return [(member, faults.under("workloads", i)) for i, member in enumerate(spec.workloads)]


def planned_step(
    spec: AnyPlanSpec, planned: Sequence[PlannedTraining], model: CollectiveModel
) -> Step:
    """What a plan trains under a model of collectives, from its workloads in order.

    Raises
    ------
    SpecError
        For workloads of one name, or an algorithm that cannot run.
    """
    trainings = [one.training for one in planned]
    if not isinstance(spec, GroupPlanSpec):
        name = trainings[0].workload.name
        return Step((member(trainings[0], name, 1.0, model),), name, model=model)
    total = math.fsum(entry.weight for entry in spec.workloads)
    names = _names(spec, trainings)
    members = tuple(
        member(training, name, entry.weight / total, model)
        for name, entry, training in zip(names, spec.workloads, trainings, strict=True)
    )
    return Step(members, " + ".join(names), is_group=True, model=model)


def step_notes(spec: AnyPlanSpec, planned: Sequence[PlannedTraining], step: Step) -> list[str]:
    """Assumptions of what is trained; of a group, with the workloads' names."""
    if not isinstance(spec, GroupPlanSpec):
        return list(planned[0].notes)
    pairs = zip(step.members, planned, strict=True)
    return [f"{member.name}: {note}" for member, one in pairs for note in one.notes] + [
        *_weight_note(spec)
    ]


def step_settings(spec: AnyPlanSpec, planned: Sequence[PlannedTraining], step: Step) -> list[str]:
    """Degrees, batch and compute rate, for people to read."""
    if not isinstance(spec, GroupPlanSpec):
        return list(planned[0].settings)
    pairs = zip(step.members, planned, strict=True)
    return [f"{member.name} ({', '.join(one.settings)})" for member, one in pairs]


def _names(spec: GroupPlanSpec, trainings: Sequence[Training]) -> list[str]:
    pairs = zip(spec.workloads, trainings, strict=True)
    names = [entry.name or training.workload.name for entry, training in pairs]
    counts, faults = Counter(names), []
    for i, name in enumerate(names):
        if counts[name] > 1 and name in names[:i]:
            key = "name" if spec.workloads[i].name else "workload"
            fix = f"tell them apart: add e.g. 'name: {name}-{names[: i + 1].count(name)}'"
            got = f"got {name!r} twice"
            faults.append(Fault(got, "expected different names", fix, f"workloads.{i}.{key}"))
    if faults:
        raise SpecError(*faults)
    return names


def _weight_note(spec: GroupPlanSpec) -> tuple[str, ...]:
    """Says that given weights were divided by their sum."""
    total = math.fsum(entry.weight for entry in spec.workloads)
    given = any("weight" in entry.model_fields_set for entry in spec.workloads)
    if not given or math.isclose(total, 1.0, rel_tol=1e-9):
        return ()
    weights = ", ".join(f"{entry.weight:g}" for entry in spec.workloads)
    return (f"the weights {weights} were divided by their sum, {total:g}",)


def group_objective(spec: AnyPlanSpec) -> str:
    """What a group minimises; ``weighted`` for a plan with one workload."""
    return spec.group_objective if isinstance(spec, GroupPlanSpec) else "weighted"


def check_group(spec: AnyPlanSpec) -> None:
    """Refuse what a group's objective cannot use.

    Raises
    ------
    SpecError
        For weights or the objective cost where only ratios of times count.
    """
    if isinstance(spec, PlanSpec) or spec.group_objective == "weighted":
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
    if faults:
        raise SpecError(*faults)


def check_rules(spec: AnyPlanSpec, rules: Sequence[Rule | StepTimeLimit]) -> None:
    """Refuse step-time rules where the plan has no step time of its own.

    Raises
    ------
    SpecError
        For a bound on step_time under ``relative`` or ``worst_case``.
    """
    kind = group_objective(spec)
    limits = [rule for rule in rules if isinstance(rule, StepTimeLimit)]
    if kind == "weighted" or not limits:
        return
    got = f"got a step_time bound in {limits[0].text!r} with group_objective {kind}"
    expected = "expected none: step_time of a group is the weighted mean, which weighted minimises"
    raise SpecError(Fault(got, expected, "remove it, or write group_objective: weighted"))
