"""Checks of designs on their links as JSON-ready values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from libra_planner.check.links import CheckReport, LinkCheck, PhaseSpread
from libra_planner.check.phases import PhaseReport
from libra_planner.check.traffic import Choice
from libra_planner.evaluation import Violation
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.parts import DimensionParts, design_parts
from libra_planner.fabric.realization import (
    Direct,
    RealizedDesign,
    RealizedDimension,
    Sharing,
    sharing,
)
from libra_planner.problem import RULE_TOLERANCE, Problem, StepTimeLimit
from libra_planner.routing.imbalance import distribution
from libra_planner.units import format_bandwidth, gigabytes_per_s
from libra_planner.views.flows import layer_row
from libra_planner.views.phases import choice_payload, labels
from libra_planner.views.plan import as_checked, memory_payload, plan_notes
from libra_planner.views.spread import figures, number


def link_notes(problem: Problem, design: RealizedDesign) -> Iterator[str]:
    """Scale-up switches (C14), and networks in which groups load one another."""
    networks = problem.links.networks
    for one in design.dimensions:
        if one.settings is not None and one.settings.one_switch and one.fabric is not None:
            yield _scale_up(one)
    if problem.realization is not None and any(problem.links.switches) and not any(networks):
        yield (
            "no switch of this fabric has a NIC price: what fabric.realization says of switches "
            "applies to none, unless it stands under a tier's name"
        )
    for one in design.dimensions:
        if one.is_network and one.settings and one.settings.port_speed_Bps is None:
            yield _open_speed(one)
        if (one.oversubscription or 0) > 1 and isinstance(one.fabric, Clos):
            yield _oversubscribed(one, one.fabric)
    for dim, one in enumerate(design.dimensions):
        found = sharing(design.topology, dim, one)
        if found is not None:
            yield _shared(one, str(design.topology.dimensions[dim]), found)


def _scale_up(built: RealizedDimension) -> str:
    return (
        f"{built.label}: tier {built.tier} has no NIC price, so every group has one scale-up "
        f"switch at full bandwidth, without leaves, optics and ECMP"
    )


def _open_speed(built: RealizedDimension) -> str:
    speed = format_bandwidth(built.bandwidth_Bps / built.n_nics)
    return (
        f"the plan gives no port_speed for {built.label}, so its ports run at exactly {speed}; a "
        f"report buys the slowest ports that are sold and suffice"
    )


def _oversubscribed(built: RealizedDimension, fabric: Clos) -> str:
    hosts, uplinks = fabric.hosts_per_leaf, fabric.n_uplinks
    return (
        f"{built.label}: leaves are oversubscribed {built.oversubscription:.4g}:1 as built: a full "
        f"leaf has {hosts:,} host ports and {uplinks:,} uplink{'s' * (uplinks != 1)}"
    )


def _shared(built: RealizedDimension, block: str, found: Sharing) -> str:
    settings = built.settings
    wiring = settings.wiring if settings is not None else ""
    links = "uplinks" if found.where == "leaf" else "links to the cores"
    return (
        f"{built.label}: with wiring {wiring} groups load one another: a {found.where} holds NPUs "
        f"of {found.n_sharing:,} of the {found.n_groups:,} groups of {block}, which share its "
        f"{links}. wiring: rail gives every group a network of its own"
    )


_ROUNDING = 1e-9
"""Relative difference of bandwidths that is no more than rounding."""


@dataclass(frozen=True)
class CheckedPlan:
    """A plan's design and what its links make of it.

    Parameters
    ----------
    links : the plan, the design and its links.
    report : what came of it.
    optimized : whether the design is the plan's own optimum; else it was given.
    violated : rules that the design breaks.
    statistics : whether a number of seeds was asked for: figures are then their statistics,
        and otherwise their mean.
    """

    links: LinkCheck = field(repr=False)
    report: CheckReport
    optimized: bool
    violated: tuple[Violation, ...] = ()
    statistics: bool = False

    @property
    def has_statistics(self) -> bool:
        """Whether the text shows statistics: not of one routing that stands for all seeds."""
        return self.statistics and self.report.n_routings > 1

    @property
    def late(self) -> list[tuple[StepTimeLimit, float]]:
        """Bounds on the step time that its mean on the links exceeds, and by how many seconds."""
        mean_s = float(self.report.effective_step_time_s.mean())
        limits = self.links.problem.step_time_limits
        over = [(limit, mean_s - limit.limit_s) for limit in limits]
        return [(limit, s) for limit, s in over if s > limit.limit_s * RULE_TOLERANCE]

    @property
    def blocks(self) -> list[str]:
        """Block of each dimension, such as SW(32)."""
        return [str(dimension) for dimension in self.links.problem.topology.dimensions]


def check_payload(checked: CheckedPlan, hotspot: dict[str, Any] | None) -> dict[str, Any]:
    """What ``check --json`` prints."""
    report, problem = checked.report, checked.links.problem
    traffic = checked.links.traffic
    return {
        **routing_keys(report),
        "placement": traffic.placement,
        "queue_pairs": traffic.n_queue_pairs,
        "npus_per_address": traffic.npus_per_address,
        "workload": problem.workload_name,
        "topology": str(problem.topology),
        "tiers": list(problem.topology.tiers),
        "n_npus": problem.topology.n_npus,
        "optimized": checked.optimized,
        "bandwidth_GBps": [gigabytes_per_s(value) for value in checked.links.bandwidth_Bps],
        "realized_GBps": [gigabytes_per_s(value) for value in report.design.bandwidth_Bps],
        **time_keys(report, statistics=checked.statistics),
        "dimensions": _dimensions(checked),
        "phases": [
            _phase(phase, spread, choice)
            for (phase, _), spread, choice in zip(
                report.phases, report.spreads, report.choices, strict=True
            )
        ],
        "hotspot": hotspot,
        "memory": memory_payload(problem.step.memory),
        "settings": list(problem.settings),
        "violated": [
            {"rule": broken.rule, "line": broken.line, "by": broken.by, "unit": broken.unit}
            for broken in checked.violated
        ],
        "violated_on_links": [
            {"rule": limit.text, "line": limit.line, "by": late_s, "unit": "s"}
            for limit, late_s in checked.late
        ],
        "notes": list(check_notes(checked)),
    }


def routing_keys(report: CheckReport) -> dict[str, Any]:
    """Which policy and seeds."""
    policy = report.policy
    return {
        "policy": policy.name,
        "hash": policy.hash if policy.kind.reads_headers else None,
        "seed": int(report.seeds[0]),
        "n_seeds": len(report.seeds),
        "n_routings": report.n_routings,
    }


def time_keys(report: CheckReport, *, statistics: bool) -> dict[str, Any]:
    """Step times, slowdown and FIM over the seeds."""
    keys = {
        "ideal_step_time_s": number(report.ideal_step_time_s),
        "spray_step_time_s": number(report.spray_step_time_s),
        **figures("effective_step_time_s", report.effective_step_time_s, statistics=statistics),
        **figures("slowdown", report.slowdown, statistics=statistics),
        **figures("fim_percent", report.fim_percent, statistics=statistics),
        "fim_floor_percent": number(report.fim_floor_percent),
    }
    if len(report.seeds) > 1:
        found = distribution(report.effective_step_time_s)
        counts, edges = found.counts.tolist(), found.edges.tolist()
        keys["step_time_histogram"] = {"counts": counts, "edges": edges}
    return keys


def _dimensions(checked: CheckedPlan) -> list[dict[str, Any]]:
    report = checked.report
    parts = design_parts(report.design).dimensions
    return [
        {
            "dimension": one.label,
            "tier": one.tier,
            "block": block,
            "asked_GBps": gigabytes_per_s(one.asked_Bps),
            "realized_GBps": gigabytes_per_s(one.bandwidth_Bps),
            "ideal_efficiency": number(one.ideal_efficiency),
            **figures("efficiency", one.efficiency, statistics=checked.statistics),
            **figures("fim_percent", one.fim_percent, statistics=checked.statistics),
            "fim_floor_percent": number(one.fim_floor_percent),
            "oversubscription": links.oversubscription,
            **parts_payload(built),
        }
        for one, block, built, links in zip(
            report.dimensions, checked.blocks, parts, report.design.dimensions, strict=True
        )
    ]


def parts_payload(built: DimensionParts) -> dict[str, Any]:
    """Switches, ports, cables and optics of a dimension."""
    return {
        "n_nics": built.n_nics,
        "n_switches": built.n_switches,
        "n_cables": built.n_cables,
        "n_optics": built.n_optics,
        "switches": [
            {
                "tier": part.tier,
                "n_switches": part.n_switches,
                "n_ports_used": part.n_ports_used,
                "n_ports_free": part.n_ports_free,
            }
            for part in built.switches
        ],
        "cables": [
            {
                "joins": part.joins,
                "n_cables": part.n_cables,
                "speed_GBps": gigabytes_per_s(part.speed_Bps),
                "n_optics": part.n_optics,
            }
            for part in built.cables
        ],
    }


def _phase(phase: PhaseReport, spread: PhaseSpread, choice: Choice) -> dict[str, Any]:
    """A phase of the first seed; its figures are means over the seeds."""
    worst = phase.worst
    return {
        "dimension": phase.label,
        "collectives": labels(choice.users),
        "group_size": phase.group_size,
        "algorithm": phase.algorithm,
        **choice_payload(choice),
        "n_rounds": len(phase.rounds),
        "n_flows": sum(one.n_flows for one in phase.rounds),
        **figures("efficiency", spread.efficiency, statistics=False),
        **figures("slowdown", spread.slowdown, statistics=False),
        **figures("fim_percent", spread.fim_percent, statistics=False),
        "fim_floor_percent": number(phase.fim_floor_percent),
        "worst_round": {
            "name": worst.name,
            "share": worst.share,
            "n_flows": worst.n_flows,
            "slowdown": number(worst.time_s / worst.ideal_s),
            "layers": [layer_row(layer) for layer in worst.layers],
        },
    }


def check_notes(checked: CheckedPlan) -> Iterator[str]:
    """What a check takes for granted, worth printing beside it."""
    problem, design = checked.links.problem, checked.report.design
    realization = problem.realization
    if realization is None and any(one.is_network for one in design.dimensions):
        yield (
            "the plan has no fabric.realization: a network for every group of a switch dimension "
            "whose tier has a NIC price, switches of 64 ports, 1:1, NICs of exactly the design's "
            "speed"
        )
    if any(isinstance(one.fabric, Clos) for one in checked.report.design.dimensions):
        yield (
            "all groups of a collective run in step, and a round ends for all NPUs when its last "
            "flow does"
        )
    n_sharing = checked.links.traffic.npus_per_address
    if n_sharing > 1 and checked.report.policy.kind.reads_headers:
        yield (
            f"{n_sharing} NPUs share an address; each of their queue pairs has a source port of "
            f"its own: other paths are drawn, but under murmur no more flows meet on average"
        )
    yield from link_notes(problem, design)
    yield from _built_notes(checked)
    if realization is not None:
        yield from (f"preset: {note}" for note in realization.notes)
    yield from plan_notes(as_checked(checked.links.problem))


def _ignored(built: RealizedDimension) -> Iterator[str]:
    """Counts of a plan that one switch has no use for."""
    if built.settings is not None:
        counts = {"spines": built.settings.n_spines, "parallel_links": built.settings.n_parallel}
        given = " and ".join(f"{key}: {n}" for key, n in counts.items() if n is not None)
        if given:
            yield f"{built.label}: one switch holds all endpoints of a network, {given} is not used"


def _built_notes(checked: CheckedPlan) -> Iterator[str]:
    """How the links differ from the design, and where there is nothing to choose."""
    built = checked.report.design.dimensions
    direct = [one.label for one in built if isinstance(one.fabric, Direct)]
    if direct:
        yield (
            f"{', '.join(direct)}: direct links offer no choice of path, so that FIM is not "
            f"defined; a group in only a part of the dimension has only its own links"
        )
    for one in built:
        if one.is_network and isinstance(one.fabric, Clos) and one.fabric.n_spines == 0:
            yield f"{one.label}: one switch per network offers no choice of path: no FIM"
            yield from _ignored(one)
        if one.bandwidth_Bps > one.asked_Bps * (1 + _ROUNDING):
            nics = "1 NIC" if one.n_nics == 1 else f"{one.n_nics} NICs"
            speed = format_bandwidth(one.bandwidth_Bps / one.n_nics)
            yield (
                f"{one.label}: {nics} of {speed} per NPU, "
                f"{format_bandwidth(one.asked_Bps)} is asked for; step times use all of it"
            )
