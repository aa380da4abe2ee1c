"""Checks of designs on their links as JSON-ready values and text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from libra_planner.check.expected import expected_with_pairs
from libra_planner.check.exposed import Exposed, exposed_communication
from libra_planner.check.imbalance import worst_dimension
from libra_planner.check.links import CheckReport, LinkCheck
from libra_planner.evaluation import Violation, violations_as_built
from libra_planner.fabric.clos import Array, Clos
from libra_planner.fabric.parts import design_parts
from libra_planner.fabric.topology import TrafficSettings
from libra_planner.plan.steps.notes import Kind, Note, in_order, of_kind, plan_notes
from libra_planner.problem import RULE_TOLERANCE, StepTimeLimit
from libra_planner.routing.loads import distribution
from libra_planner.step.collectives.models import Balanced
from libra_planner.units import format_bandwidth, format_time, gigabytes_per_s
from libra_planner.views import cells, plan, spread
from libra_planner.views.bought.racks import rack_notes
from libra_planner.views.bought.whole_ports import unsold_notes
from libra_planner.views.bought.wiring import wiring_notes
from libra_planner.views.cells import Block, Table, attributes, escape
from libra_planner.views.failures import LEAST_FOR_HISTOGRAM
from libra_planner.views.links import built_notes, link_notes, parts_blocks, parts_payload, plural
from libra_planner.views.phases import (
    algorithm_head,
    algorithm_lines,
    comparison_blocks,
    contention_lines,
    exposed_table,
    floor_lines,
    headroom_lines,
    high_floor_legend,
    overlap_lines,
    phases_payload,
    send_notes,
    slowed_blocks,
)
from libra_planner.views.training import memory
from libra_planner.views.training.copies import copies_notes


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

    @cached_property
    def exposed(self) -> tuple[Exposed, ...]:
        """What communication adds to the step."""
        return exposed_communication(self.links, self.report)

    @property
    def has_statistics(self) -> bool:
        """Whether the text shows statistics: not of one routing that stands for all seeds."""
        return self.statistics and self.report.n_routings > 1

    @property
    def built_beyond(self) -> tuple[Violation, ...]:
        """Rules that its whole ports break, and the design itself does not."""
        built_Bps = self.report.design.bandwidth_Bps
        return violations_as_built(self.links.problem, self.links.bandwidth_Bps, built_Bps)

    @property
    def late(self) -> list[tuple[StepTimeLimit, float]]:
        """Bounds on the step time that its mean on the links exceeds, and by how many seconds."""
        mean_s = float(self.report.effective_step_time_s.mean())
        over = [(one, mean_s - one.limit_s) for one in self.links.problem.step_time_limits]
        return [(limit, s) for limit, s in over if s > limit.limit_s * RULE_TOLERANCE]


def check_payload(checked: CheckedPlan, hotspot: dict[str, Any] | None) -> dict[str, Any]:
    """What ``check --json`` prints."""
    report, problem = checked.report, checked.links.problem
    return {
        **routing_keys(report, checked.links.traffic),
        "workload": problem.workload_name,
        "topology": str(problem.topology),
        **attributes(problem.topology, "tiers", "n_npus"),
        "optimized": checked.optimized,
        "bandwidth_GBps": [gigabytes_per_s(value) for value in checked.links.bandwidth_Bps],
        "realized_GBps": [gigabytes_per_s(value) for value in report.design.bandwidth_Bps],
        **time_keys(report, statistics=checked.statistics),
        "dimensions": _dimensions(checked),
        "exposed": [attributes(one, "operation", "model_s", "links_s") for one in checked.exposed],
        "phases": phases_payload(report),
        "hotspot": hotspot,
        "memory": memory.memory_payload(problem.step.memory),
        **attributes(problem, "settings"),
        "violated": plan.violations(checked.violated),
        "violated_by_ports": plan.violations(checked.built_beyond),
        "violated_on_links": [
            {"rule": limit.text, "line": limit.line, "by": late_s, "unit": "s"}
            for limit, late_s in checked.late
        ],
        "notes": list(check_notes(checked)),
    }


def routing_keys(report: CheckReport, traffic: TrafficSettings) -> dict[str, Any]:
    """Which policy and seeds, and how NPUs use their NICs."""
    policy = report.policy
    return {
        "policy": policy.name,
        "hash": policy.hash if policy.kind.reads_headers else None,
        "seed": int(report.seeds[0]),
        "n_seeds": len(report.seeds),
        "n_routings": report.n_routings,
        **attributes(traffic, "placement", queue_pairs="n_queue_pairs"),
        **attributes(traffic, "npus_per_address", "source_ports"),
    }


_OVER_SEEDS = ("effective_step_time_s", "slowdown", "fim_percent")


def time_keys(report: CheckReport, *, statistics: bool) -> dict[str, Any]:
    """Step times, slowdown and FIM over the seeds."""
    times_s = report.effective_step_time_s
    histogram = {"step_time_histogram": spread.histogram_payload(times_s)}
    return {
        **attributes(report, "ideal_step_time_s", "spray_step_time_s"),
        **spread.seed_figures(attributes(report, *_OVER_SEEDS), statistics),
        **plan.band_keys(report.band_s),
        **attributes(report, "fim_floor_percent"),
        **(histogram if len(report.seeds) > 1 else {}),
    }


def _dimensions(checked: CheckedPlan) -> list[dict[str, Any]]:
    report, topology = checked.report, checked.links.problem.topology
    parts = design_parts(report.design).dimensions
    return [
        {
            **attributes(one, dimension="label", tier="tier"),
            "block": str(block),
            "asked_GBps": gigabytes_per_s(one.asked_Bps),
            "realized_GBps": gigabytes_per_s(one.bandwidth_Bps),
            **attributes(one, "ideal_efficiency"),
            **spread.seed_figures(attributes(one, "efficiency", "fim_percent"), checked.statistics),
            **attributes(one, "fim_floor_percent"),
            "oversubscription": links.oversubscription,
            **parts_payload(built),
        }
        for one, block, built, links in zip(
            report.dimensions, topology.dimensions, parts, report.design.dimensions, strict=True
        )
    ]


def check_notes(checked: CheckedPlan) -> Iterator[str]:
    """What a check takes for granted, worth printing beside it; what may change a design first."""
    of_tokens = copies_notes(checked.links.problem, checked.links.bandwidth_Bps)
    yield from in_order([*of_kind(Kind.DECISION, of_tokens), *_check_notes(checked)])


def _check_notes(checked: CheckedPlan) -> Iterator[str]:
    problem, design = checked.links.problem, checked.report.design
    realization = problem.realization
    if realization is None and any(one.is_network for one in design.dimensions):
        yield (
            "the plan has no fabric.realization: a network for every group of a switch dimension "
            "whose tier has a NIC price, switches of 64 ports, 1:1, NICs of exactly the design's "
            "speed"
        )
    if any(isinstance(one.fabric, Clos) for one in checked.report.design.dimensions):
        in_step = "all groups of a collective run in step, and a round ends for all NPUs when its"
        yield Note(f"{in_step} last flow does", Kind.BASIS)
    if isinstance(problem.step.model, Balanced):
        yield (
            "the links of every dimension are routed with the bytes of the fixed order; what they "
            "are slower by holds for any order, and chunks take the best orders on these links"
        )
    traffic = checked.links.traffic
    n_sharing = traffic.npus_per_address
    if traffic.source_ports == "own" and n_sharing > 1 and checked.report.policy.kind.reads_headers:
        yield (
            f"{n_sharing} NPUs share an address; each of their queue pairs has a source port of "
            f"its own: other paths are drawn, but under murmur no more flows meet on average"
        )
    yield from link_notes(problem, design)
    yield from send_notes(problem.topology, problem.step.sends, checked.report)
    keys = (key for key in checked.report.keys if checked.links.phase(key).n_rails > 1)
    for label in dict.fromkeys(design.dimensions[key[0]].label for key in keys):
        yield (
            f"{label}: direct all-to-alls cross rails over the links between switches, which the "
            f"plan's model does not count; without pxn: false in schedules they go through the "
            f"scale-up domain first"
        )
    for notes in (unsold_notes, rack_notes, wiring_notes):
        yield from of_kind(Kind.DECISION, notes(problem, checked.links.bandwidth_Bps))
    yield from built_notes(design)
    if realization is not None:
        yield from of_kind(Kind.BASIS, (f"preset: {note}" for note in realization.notes))
    yield from plan_notes(plan.as_checked(checked.links.problem))


def check_blocks(
    checked: CheckedPlan, hot: Iterable[Block], *, brief: bool = False, failed: str = ""
) -> Iterator[Block]:
    """Headline, step times, dimensions, parts, phases, what loses most, notes.

    The brief form leaves out what single collectives, layers, links and parts are told of;
    ``failed`` is the step with what fails, of which the tables do not tell.
    """
    report = checked.report
    yield from _headline(checked)
    if failed:
        yield f"These figures are of whole links; {failed} (at the end)"
    yield from ("", step_time_table(_step_times(checked)), spread.costs_line(report))
    yield from _queue_pair_lines(checked)
    yield from headroom_lines(checked.links.problem, report)
    yield from plan.band_lines(checked.links.problem, report.band_s)
    yield from _over_seeds(report) if checked.has_statistics else ()
    exposed = exposed_table(checked.exposed, report.ideal_step_time_s)
    yield from ("", exposed) if exposed else ()
    yield from contention_lines(checked.exposed)
    yield from overlap_lines(checked.exposed)
    yield from ("", _dimension_table(checked))
    yield from _fim_lines(report)
    if brief:
        yield "--brief leaves out the tables of collectives, layers, links and parts"
    else:
        yield from _details(checked, hot)
    yield from plan.note_lines(check_notes(checked))


def _queue_pair_lines(checked: CheckedPlan) -> Iterator[str]:
    """What a step by ECMP is expected to take with other queue pairs, where they decide on it."""
    report, own = checked.report, checked.links.traffic.n_queue_pairs
    if (
        not report.is_drawn
        or report.policy.name != "ecmp"
        or checked.links.traffic.source_ports != "own"
    ):
        return
    said = [
        f"{format_time(s)} ({s / report.ideal_step_time_s - 1:+.1%}) with {n}"
        for n, s in expected_with_pairs(checked.links).items()
    ]
    if said:
        yield (
            f"Queue pairs per connection decide: expected {', '.join(said)}; {own} "
            f"{'is' if own == 1 else 'are'} routed here. NCCL takes about two channels per NIC, "
            f"which count like 2 (docs/hashing.md)"
        )


def _details(checked: CheckedPlan, hot: Iterable[Block]) -> Iterator[Block]:
    """What single collectives, layers, links and parts are told of."""
    report = checked.report
    yield from slowed_blocks(report)
    yield from map(escape, floor_lines(report))
    yield from (*hot, "")
    yield from parts_blocks(design_parts(report.design), checked.links.problem.included_dims)
    if report.phases:
        yield from ("", *algorithm_head(checked.links.problem))
        yield from map(escape, algorithm_lines(report))
        yield from comparison_blocks(report)


def _headline(checked: CheckedPlan) -> Iterator[str]:
    report, problem, traffic = checked.report, checked.links.problem, checked.links.traffic
    yield from plan.plan_head(problem, spread.step_line(report))
    vector = ", ".join(map(format_bandwidth, checked.links.bandwidth_Bps))
    origin = "the plan's own optimum, found first" if checked.optimized else "as given"
    yield f"Design {vector} per NPU: {origin}"
    pairs = f"{traffic.n_queue_pairs} queue {plural('pair', traffic.n_queue_pairs)} per connection"
    shared = f", {traffic.npus_per_address} NPUs per address" * (traffic.npus_per_address > 1)
    shared += ", one source port for all" * (traffic.source_ports == "shared")
    yield f"Routed by {routed_by(report)}; placement {traffic.placement}, {pairs}{shared}"
    yield from memory.memory_markup(problem)
    for broken in checked.violated:
        yield f"[red]Breaks a rule:[/] {escape(broken.rule)}{plan.line_text(broken.line)}"
    for broken in checked.built_beyond:
        text = f"{escape(broken.rule)}{plan.line_text(broken.line)}, {plan.amount_text(broken)}"
        yield f"[yellow]Whole ports break a rule:[/] {text}"
    for limit, late_s in checked.late:
        text = f"{escape(limit.text)}{plan.line_text(limit.line)}, by {format_time(late_s)}"
        yield f"[red]Breaks a rule on its links:[/] {text}"


def routed_by(report: CheckReport) -> str:
    """Policy and seeds in words."""
    policy = report.policy
    hashed = ""
    if policy.kind.reads_headers:
        extras = ", one seed for all switches" * policy.shared_seed
        extras += ", queue pair hashed too" * policy.enhanced
        hashed = f" ({policy.hash} hash{extras})"
    elif policy.per_collective:
        hashed = " (each collective by itself)"
    if not report.is_drawn:
        return f"[bold]{policy.name}[/]{hashed}{spread.NOTHING_DRAWN}"
    seeds = f"seed {report.seeds[0]}"
    if report.n_routings > 1:
        seeds = f"{report.n_routings:,} seeds from {report.seeds[0]}"
    return f"[bold]{policy.name}[/]{hashed}, {seeds}"


def _step_times(checked: CheckedPlan) -> Iterator[tuple[str, float]]:
    report, policy = checked.report, f"whole links, {checked.report.policy.name}"
    found = distribution(report.effective_step_time_s)
    yield "ideal: all bandwidth, the plan's model", report.ideal_step_time_s
    yield "whole links, every packet sprayed", report.spray_step_time_s
    yield policy + ", mean" * checked.has_statistics, found.mean
    if checked.has_statistics:
        yield f"{policy}, p95", found.p95


def step_time_table(rows: Iterable[tuple[str, float]]) -> Table:
    """Named step times, each with its ratio to the first."""
    (first, ideal_s), *others = rows
    times_s = [(first, ideal_s), *others]
    shown = [(name, format_time(s), f"{s / ideal_s:.3f}x") for name, s in times_s]
    headings = ("step time", "time", "vs ideal")
    return cells.table("", "Step time", headings, shown, left=("step time",))


def _over_seeds(report: CheckReport) -> Iterator[Block]:
    times_s = report.effective_step_time_s
    rows = [spread.timed("step time", times_s), ("slowdown", report.slowdown), _fim_row(report)]
    yield from ("", spread.spread_table(rows, f"Over {len(report.seeds):,} seeds"))
    if len(report.seeds) >= LEAST_FOR_HISTOGRAM and np.ptp(times_s) > 0:
        yield spread.timed_histogram("Seeds by step time,", times_s)


def _fim_row(report: CheckReport) -> tuple[str, Array]:
    """FIM of the dimension whose routing could avoid most of it, beside its floor."""
    worst = worst_dimension(report.dimensions)
    if worst is None:
        return "FIM %", report.fim_percent
    floor = cells.two_digits(worst.fim_floor_percent)
    return f"FIM % of {worst.label}, floor {floor}", worst.fim_percent


def _dimension_table(checked: CheckedPlan) -> Table:
    names = ("dim", "tier", "block", "asked", "realised", "if sprayed", "as routed", "FIM %")
    blocks = map(str, checked.links.problem.topology.dimensions)
    rows = [
        cells.figure_cells(
            one.label,
            one.tier,
            block,
            *(cells.number(gigabytes_per_s(x), 2) for x in (one.asked_Bps, one.bandwidth_Bps)),
            gigabytes_per_s(one.sprayed_Bps),
            gigabytes_per_s(float(one.got_Bps(one.efficiency).mean())),
            one.fim_percent.mean(),
            one.fim_floor_percent,
        )
        for one, block in zip(checked.report.dimensions, blocks, strict=True)
    ]
    title = "GB/s per NPU: asked for, of whole links, and what collectives get of these"
    others = {"left": ("dim", "tier", "block"), "dispensable": ("if sprayed", "tier", "floor %")}
    return cells.table("", title, (*names, "floor %"), rows, **others)


_WHOLE = 1.00005
"""Efficiency above which a table would show more than 100.00 %."""
_LEAST_PERCENT = 0.005
"""FIM from which a table shows more than 0.00."""


def _fim_lines(report: CheckReport) -> Iterator[str]:
    """What FIM and its floor are, where there is any."""
    if not np.isnan([one.fim_percent for one in report.dimensions]).all():
        yield "FIM: how far links between switches are from equally many flows, 0 where all are;"
        yield "floor: the least that any routing of whole flows reaches (docs/check.md)"
    yield from high_floor_legend(report)
    is_uneven = any(one.fim_percent.mean() >= _LEAST_PERCENT for one in report.dimensions)
    if is_uneven and not report.policy.kind.keeps_flows_whole:
        yield "sprayed packets: FIM is of who sends and who does not, and no routing lowers it"
    idle = [one.label for one in report.dimensions if one.ideal_efficiency > _WHOLE]
    if idle:
        yield f"{', '.join(idle)}: not all NPUs send at once, and sends take less than in the model"
