"""`fabric.scale_up` of a plan: what its innermost dimensions are, and what follows (C14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import BeforeValidator

from libra_planner.costs.prices import Options
from libra_planner.errors import Fault, Place, SpecError, shown
from libra_planner.fabric.scale_up import ScaleUpDomain
from libra_planner.fabric.topology import Topology
from libra_planner.plan.npus import catalogue, npu_named, scale_up_domain
from libra_planner.plan.steps.notes import Kind, Note
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule
from libra_planner.reading.document import Document, Key
from libra_planner.reading.models import Model, Text
from libra_planner.step.model_training import ModelTraining
from libra_planner.units import format_bandwidth
from libra_planner.workload.placement import wider_experts, with_switch_of
from libra_planner.workload.transformer import Transformer

KEY: Key = ("fabric", "scale_up")
"""Where a plan names its scale-up domain."""


class ScaleUpChoice(Model):
    """A scale-up domain of an NPU catalogue.

    Parameters
    ----------
    name : Such as nvlink4-8.
    catalogue : Path of an NPU catalogue; without it the bundled one.
    """

    name: Text
    catalogue: Text | None = None


def _choice(value: Any) -> Any:
    """A bare name is one of the bundled catalogue."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, dict | ScaleUpChoice):
        return value
    expected = "expected the name of a scale-up domain, such as nvlink4-8"
    raise ValueError(f"got {shown(value)}, {expected}")


AnyScaleUp: TypeAlias = Annotated[
    ScaleUpChoice, BeforeValidator(_choice, json_schema_input_type=Text | ScaleUpChoice)
]


def plan_domain(
    choice: ScaleUpChoice | None, topology: Topology, npus: Sequence[str], beside: Path
) -> ScaleUpDomain | None:
    """The domain that a plan names; ``None`` where it names none.

    Parameters
    ----------
    choice, topology : what the plan says.
    npus : names of the NPUs that it computes with or buys.
    beside : folder of the plan.

    Raises
    ------
    SpecError
        For a name that is unknown, a group larger than the domain, or an NPU of another one.
    """
    if choice is None:
        return None
    domain = scale_up_domain(choice.name, choice.catalogue, beside)
    fault = domain.fault(topology) or _npu_fault(domain, choice, npus, beside)
    if fault is not None:
        raise SpecError(fault)
    return domain


def _npu_fault(
    domain: ScaleUpDomain, choice: ScaleUpChoice, npus: Sequence[str], beside: Path
) -> Fault | None:
    """An NPU that does not come in the domain; one of another catalogue is not judged."""
    known = catalogue(choice.catalogue, beside).npus
    for name in npus:
        found = npu_named(name, known)
        own = known[found].scale_up if found else []
        if own and domain.name not in own:
            got = f"got {domain.name} with the NPU {found}, which does not come in it"
            others = [one for one, npu in known.items() if domain.name in npu.scale_up]
            fix = f"write {' or '.join(own)}, or another NPU: {', '.join(others)}"
            return Fault(got, f"expected {' or '.join(own)}", fix)
    return None


def fixed_rules(
    domain: ScaleUpDomain, topology: Topology, rules: Sequence[Rule], place: Place
) -> list[Rule]:
    """Rules that hold the domain's dimensions at its bandwidth, where the plan's own do not yet.

    Raises
    ------
    SpecError
        With every rule of the plan that asks for another bandwidth.
    """
    fixed = np.zeros(topology.n_dims)
    fixed[list(domain.dims(topology))] = domain.bandwidth_Bps(topology)
    own = [rule for rule in rules if not np.any(np.asarray(rule.coefficients)[fixed == 0])]
    against = [_contradiction(one, domain, place) for one in own if _breaks(one, fixed)]
    if against:
        raise SpecError(*against)
    said = [np.flatnonzero(one.coefficients).tolist() for one in own if one.sense == "=="]
    return [
        _fixed_rule(domain, topology, dim, float(fixed[dim]), place)
        for dim in domain.dims(topology)
        if [dim] not in said
    ]


def _breaks(rule: Rule, fixed_Bps: np.ndarray[Any, Any]) -> bool:
    return not rule.cost_factor and rule.relative_excess(fixed_Bps) > RULE_TOLERANCE


def _contradiction(rule: Rule, domain: ScaleUpDomain, place: Place) -> Fault:
    got = f"got {rule.text!r}, which {domain.name} does not meet"
    speed = format_bandwidth(domain.npu_Bps)
    expected = f"expected none against its {speed} per NPU, one direction"
    fix = "remove the rule: fabric.scale_up fixes that bandwidth; or name another part there"
    at = Place(place.file, rule.line, rule.column) if rule.line else place
    return Fault(got, expected, fix, "constraints", at)


def _fixed_rule(
    domain: ScaleUpDomain, topology: Topology, dim: int, bound_Bps: float, place: Place
) -> Rule:
    text = f"{topology.labels[dim]} == {format_bandwidth(bound_Bps)} of {domain.name}"
    row = tuple(float(i == dim) for i in range(topology.n_dims))
    return Rule(text, row, "==", bound_Bps, line=place.line, column=place.column)


def option_faults(
    domain: ScaleUpDomain, topology: Topology, options: Sequence[Options | None]
) -> Iterator[Fault]:
    """Speeds to choose from where there is no choice."""
    for dim in domain.dims(topology):
        if options and options[dim] is not None:
            got = f"got speeds of {topology.labels[dim]}, which {domain.name} fixes"
            expected = "expected those of other dimensions"
            yield Fault(got, expected, "remove them, or fabric.scale_up")


def realization_faults(
    domain: ScaleUpDomain, topology: Topology, document: Document
) -> Iterator[tuple[str, Fault]]:
    """Keys of links that the part has already, by the dimension's name in the plan."""
    given = document.value["fabric"].get("realization")
    own = [(topology.labels[dim], topology.tiers[dim]) for dim in domain.dims(topology)]
    outside = topology.tiers[domain.n_dims(topology) :]
    for name in given if isinstance(given, dict) else ():
        if any(name == label or (name == tier and tier not in outside) for label, tier in own):
            got = f"got {name}, which is {domain.name}"
            expected = "expected switches that are reached through NICs: it is built already"
            yield name, Fault(got, expected, "remove it, or fabric.scale_up")


def domain_words(problem: Problem, npus: Sequence[str]) -> tuple[list[str], list[str]]:
    """Notes and settings about the scale-up domain of a plan, for people to read."""
    domain, topology = problem.scale_up, problem.topology
    if domain is None:
        return list(_suggestions(problem, npus)), []
    speed, n = format_bandwidth(domain.npu_Bps), domain.n_domains(topology)
    settings = [f"scale-up {domain.name} ({speed} per NPU, one direction)"]
    n_bought, n_used = domain.n_npus_bought(topology), topology.n_npus
    units = f"{n:,} x {domain.name} hold {n_bought:,} NPUs, and {n_used:,} are used"
    idle = Note(f"{units}: {n_bought - n_used:,} are paid for and idle", Kind.DECISION)
    notes: list[str] = [idle] * (n_bought > n_used)
    notes += experts_notes(problem)
    if domain.server:
        dims = ", ".join(topology.labels[dim] for dim in domain.dims(topology))
        free = f"{dims}: {domain.name} is in the price of {domain.server}, and costs $0 here"
        notes.append(Note(free, Kind.BASIS))
    return notes, settings


def trained_models(problem: Problem) -> list[Transformer]:
    """Of a plan of whole steps; none of another."""
    return [x.trained.model for x in problem.step.trainings if isinstance(x, ModelTraining)]


def experts_notes(problem: Problem) -> list[str]:
    """That experts can spread no further over a domain, and what would let them; else nothing."""
    domain, topology = problem.scale_up, problem.topology
    counts = {model.experts.n for model in trained_models(problem) if model.experts}
    wider = [wider_experts(topology, n) for n in sorted(counts)]
    if domain is None or not any(wider):
        return []
    left, size = max(wider, key=max), topology.sizes[0]
    listed = ", ".join(map(str, left[:-1])) + f" or {left[-1]}" if left[1:] else f"{left[-1]}"
    fewer = f"fabric.topology: {with_switch_of(topology, left[-1])}"
    idle = f"{size - left[-1]} of {size} NPUs of each {domain.name} then idle"
    return [
        f"dim1: its {size} NPUs are no multiple of {listed}, so no strategy has EP {listed}; "
        f"'{fewer}' allows them ({idle}, and the bill still pays for all)"
    ]


def _suggestions(problem: Problem, npus: Sequence[str]) -> Iterator[str]:
    """The domain that a plan's NPU comes in, in words."""
    for npu, domain in offered_domains(problem, npus):
        speed = format_bandwidth(domain.npu_Bps)
        yield (
            f"{npu} {COMES_IN} {domain.name}: {speed} per NPU, one direction, in the price of its "
            f"server; fabric: {{scale_up: {domain.name}}} takes it"
        )


COMES_IN = "comes in"
"""How a note names the domain that an NPU is sold in."""


def offered_domains(problem: Problem, npus: Sequence[str]) -> Iterator[tuple[str, ScaleUpDomain]]:
    """The domain that each NPU comes in, where a plan has a scale-up switch and no name for it."""
    first = problem.links.switches[0]
    if problem.scale_up or not npus or first is None or not first.one_switch:
        return
    known = catalogue()
    for name in npus:
        found = npu_named(name, known.npus)
        if not found:
            continue
        for domain in map(scale_up_domain, known.npus[found].scale_up):
            if domain.fault(problem.topology) is None:
                yield found, domain
