"""Plans with several workloads: which of the two shapes a plan has, and what they mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from libra_planner.errors import Fault, SpecError
from libra_planner.group import Member, weighted_time
from libra_planner.problem import Rule, StepTimeLimit
from libra_planner.reading.document import Document
from libra_planner.reading.faults import FaultCollector, validated
from libra_planner.spec.group_models import AnyPlanSpec, GroupPlanSpec
from libra_planner.spec.models import PlanSpec, TrainingSpec
from libra_planner.spec.training import Training
from libra_planner.timing.expression import TimeExpression
from libra_planner.workload.memory import ModelStates
from libra_planner.workload.operations import Covers


@dataclass(frozen=True)
class Trained:
    """What a plan trains, be it one workload or a group; the fields are those of a problem."""

    workload_name: str
    step_time: TimeExpression
    real_link_step_time: TimeExpression | None
    notes: tuple[str, ...]
    settings: tuple[str, ...]
    members: tuple[Member, ...] = field(default=())
    group_objective: str = "weighted"
    n_sequences: int | None = None
    covers: Covers = Covers.PART
    tokens_per_step: int | None = None
    step_fix: str = ""
    memory: ModelStates | None = None


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


def trained(spec: AnyPlanSpec, trainings: Sequence[Training]) -> Trained:
    """What a plan trains, from its workloads in order.

    Raises
    ------
    SpecError
        For workloads of one name.
    """
    if isinstance(spec, GroupPlanSpec):
        return _group(spec, trainings)
    (one,) = trainings
    return Trained(
        workload_name=one.workload.name,
        step_time=one.step_time,
        real_link_step_time=one.real_link_step_time,
        notes=one.notes,
        settings=one.settings,
        n_sequences=one.workload.n_sequences,
        covers=one.workload.covers,
        tokens_per_step=one.workload.tokens_per_step,
        step_fix=one.workload.step_fix,
        memory=one.workload.memory,
    )


def _group(spec: GroupPlanSpec, trainings: Sequence[Training]) -> Trained:
    names = _names(spec, trainings)
    total = math.fsum(entry.weight for entry in spec.workloads)
    members = tuple(
        Member(
            name,
            entry.weight / total,
            training.step_time,
            training.real_link_step_time,
            training.workload.memory,
        )
        for name, entry, training in zip(names, spec.workloads, trainings, strict=True)
    )
    partial_groups = any(member.real_link_step_time for member in members)
    pairs = list(zip(members, trainings, strict=True))
    parts = [one.workload for one in trainings if one.workload.covers is Covers.PART]
    notes = [f"{member.name}: {note}" for member, training in pairs for note in training.notes]
    return Trained(
        workload_name=" + ".join(names),
        step_time=weighted_time(members),
        real_link_step_time=weighted_time(members, real_links=True) if partial_groups else None,
        notes=(*notes, *_weight_note(spec, total)),
        settings=tuple(f"{m.name} ({', '.join(training.settings)})" for m, training in pairs),
        members=members,
        group_objective=spec.group_objective,
        covers=Covers.PART if parts else Covers.STEP,
        step_fix=parts[0].step_fix if parts else "",
    )


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


def _weight_note(spec: GroupPlanSpec, total: float) -> tuple[str, ...]:
    """Says that given weights were divided by their sum."""
    given = any("weight" in entry.model_fields_set for entry in spec.workloads)
    if not given or math.isclose(total, 1.0, rel_tol=1e-9):
        return ()
    weights = ", ".join(f"{entry.weight:g}" for entry in spec.workloads)
    return (f"the weights {weights} were divided by their sum, {total:g}",)


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
    kind = spec.group_objective if isinstance(spec, GroupPlanSpec) else "weighted"
    limits = [rule for rule in rules if isinstance(rule, StepTimeLimit)]
    if kind == "weighted" or not limits:
        return
    got = f"got a step_time bound in {limits[0].text!r} with group_objective {kind}"
    expected = "expected none: step_time of a group is the weighted mean, which weighted minimises"
    raise SpecError(Fault(got, expected, "remove it, or write group_objective: weighted"))
