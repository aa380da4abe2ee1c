"""Collectives on their links: which algorithms run, what each phase takes, which loses most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from libra_planner.check.exposed import Exposed
from libra_planner.check.hotspots import FlowNames, Hotspot, TracedFlow
from libra_planner.check.links import CheckReport
from libra_planner.check.stages import LIBRARY, Decision, User, tiers_label
from libra_planner.check.traffic import MOST_MESSAGES
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.clos import Array
from libra_planner.fabric.topology import Topology
from libra_planner.problem import Problem
from libra_planner.routing.loads import distribution
from libra_planner.step.collectives.algorithms import own_link_factors
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.layers import CONTENTION
from libra_planner.step.model_training import ModelTraining
from libra_planner.units import format_time, gigabytes_per_s
from libra_planner.views import links
from libra_planner.views.cells import Block, Table, attributes, escape, figure_cells, finite, table
from libra_planner.views.spread import seed_figures
from libra_planner.views.training.step import LEAST_FRACTION
from libra_planner.workload.operations import Send


def labels(users: Sequence[User]) -> list[str]:
    """Names of collectives; those that differ in size only have one."""
    return list(dict.fromkeys(user.label for user in users))


def algorithms_payload(report: CheckReport) -> list[dict[str, Any]]:
    """What every communicator runs in each switch dimension."""
    return [
        {
            "dimension": report.design.dimensions[choice.stage.dim].label,
            "collectives": labels(choice.users),
            "algorithm": choice.algorithm,
            **choice_payload(choice),
        }
        for choice in report.choices
    ]


def choice_payload(choice: Decision) -> dict[str, Any]:
    """Why an algorithm runs, the time that it takes in a step, and that of what else could."""
    return {
        "chosen": choice.stage.reason,
        "time_s": choice.time_s,
        "others": [{"algorithm": name, "time_s": s} for name, s in choice.others.items()],
    }


def algorithm_head(problem: Problem) -> Iterator[str]:
    """What stands over :func:`algorithm_lines`: of what their times are, and of what not."""
    yield "What runs, and how long its bytes take on the links as routed, hidden or not"
    added = ["start and steps"] * isinstance(problem.step.model, Calibrated)
    trained = (x.trained for x in problem.step.trainings if isinstance(x, ModelTraining))
    if any(one.model.experts is not None and one.constants.imbalance > 1 for one in trained):
        added.append("the busiest rank of experts")
    if added:
        yield f"a step also waits for {' and for '.join(added)} (docs/check.md)"


def algorithm_lines(report: CheckReport) -> Iterator[str]:
    """What every communicator runs in each switch dimension, for people.

    The time is that of its bytes alone: what a step adds to it, :func:`algorithm_head` says.
    """
    for choice in report.choices:
        where = tiers_label(report.design.topology, choice.stage.dim, choice.stage.group)
        users = "; ".join(labels(choice.users)) + _else(choice, report)
        taken = f"{choice.algorithm} takes {format_time(choice.time_s)} a step"
        yield f"{where}: {taken} for the bytes of {users}"


def headroom_lines(problem: Problem, report: CheckReport) -> Iterator[str]:
    """Networks that are busy for most of a whole model's step as routed; nothing of others.

    What hides behind compute counts, so that little more of it can hide.
    """
    if problem.step.whole_training is None:
        return
    step_s = float(report.effective_step_time_s.mean())
    design = report.design
    modelled = problem.step.busy_s(design.bandwidth_Bps) / report.spray_step_time_s
    for dim, one in enumerate(design.dimensions):
        busy_s = sum(x.time_s for x in report.choices if x.stage.dim == dim)
        share = min(busy_s / step_s, 1.0)
        if one.is_network and share >= _MUCH_FRACTION:
            yield (
                f"{one.label} is busy for [bold]{share:.0%}[/] of the step as routed "
                f"({modelled[dim]:.0%} in the model): little headroom; check PLAN --n-1 tells "
                "what a failed cable or switch costs"
            )


_MUCH_FRACTION = 0.7
"""Share of a step from which little more hides behind compute."""


def _else(choice: Decision, report: CheckReport) -> str:
    reason, at = choice.stage.reason, choice.stage
    stacked = any(at.dim in tiers for tiers in report.design.topology.stacks)
    if stacked and reason == "library" and sum(size > 1 for size in at.group.sizes) == 1:
        return " (one tier of a hierarchy, beside the others)"
    if reason in _REASONS:
        return f" ({_REASONS[reason]})"
    if choice.taken is Algorithm.DIRECT1:
        return f" (direct would send more than {MOST_MESSAGES:,} messages at once)"
    others = [f"{name} would take {format_time(s)}" for name, s in choice.others.items()]
    return f" ({', '.join(others)})" if others else ""


_REASONS = MappingProxyType({"named": "the plan names it", "library": f"what {LIBRARY} runs"})


def comparison_blocks(report: CheckReport) -> Iterator[Block]:
    """The times of all algorithms that can run, beside those that do; none without others."""
    compared = [one for one in report.choices if one.others and one.stage.reason != "faster"]
    if not compared:
        return
    rows = [
        figure_cells(
            report.design.dimensions[choice.stage.dim].label,
            "; ".join(labels(choice.users)),
            name,
            format_time(time_s),
            f"{time_s / choice.time_s:.3f}x" if choice.time_s else "-",
        )
        for choice in compared
        for name, time_s in {choice.algorithm: choice.time_s, **choice.others}.items()
    ]
    names = ("dim", "collective", "algorithm", "time a step", "vs what runs")
    title = "Algorithms compared, the one that runs first"
    yield from ("", table("", title, names, rows, left=("dim", "collective", "algorithm")))


def phases_payload(report: CheckReport) -> list[dict[str, Any]]:
    """Every phase of the first seed; figures are means over the seeds."""
    rows = zip(report.phases, report.spreads, report.choices, strict=True)
    return [
        {
            "dimension": phase.label,
            "collectives": labels(choice.users),
            **attributes(phase, "group_size", "algorithm"),
            **choice_payload(choice),
            "n_rounds": len(phase.rounds),
            "n_flows": sum(one.n_flows for one in phase.rounds),
            **seed_figures(_figures(spread), statistics=False),
            **attributes(phase, "fim_floor_percent"),
            "two_level_GBps": [gigabytes_per_s(x) for x in phase.group_rate_Bps.tolist()],
            "worst_round": {
                **attributes(phase.worst, "name", "share", "n_flows"),
                "slowdown": finite(phase.worst.time_s / phase.worst.ideal_s),
                "layers": [links.layer_row(layer) for layer in phase.worst.layers],
            },
        }
        for (phase, _), spread, choice in rows
    ]


def _figures(spread: Mapping[str, Array]) -> dict[str, Array]:
    """Figures over the seeds in the units of JSON."""
    others = {name: found for name, found in spread.items() if name != "worst_rate_Bps"}
    return others | {"worst_collective_rate_GBps": spread["worst_rate_Bps"] * gigabytes_per_s(1.0)}


def exposed_table(exposed: Sequence[Exposed], step_s: float) -> Table | None:
    """What communication adds to the step, by the model and on the links; ``None`` for nothing.

    Operations of less than 0.05 % of the step are one row.
    """
    least_s = LEAST_FRACTION * step_s
    long = [one for one in exposed if max(one.model_s, one.links_s) >= least_s]
    short = [one for one in exposed if one not in long]
    all_s = [sum(getattr(x, name) for x in exposed) for name in ("model_s", "links_s")]
    rows = [(one.operation, one.model_s, one.links_s) for one in long]
    if short:
        name = f"{len(short)} shorter" if len(short) > 1 else short[0].operation
        rows.append((name, sum(x.model_s for x in short), sum(x.links_s for x in short)))
    if len(rows) > 1:
        rows.append(("all exposed communication", *all_s))
    texts = [(name, *map(_taken, seconds), _more(*seconds)) for name, *seconds in rows]
    title = "Exposed communication of a step: what does not hide behind compute"
    names = ("operation", "by the model", "on these links", "change")
    return table("", title, names, texts, left=("operation",)) if texts else None


def overlap_lines(exposed: Sequence[Exposed]) -> Iterator[str]:
    """Why an operation may add more or less to the step though no link changes its own time.

    The step waits for the longest side of every overlap while all communication grows (C5).
    """
    longer = any(
        one.links_s > one.model_s and _taken(one.links_s) != _taken(one.model_s) for one in exposed
    )
    if longer and any(_is_much_less(one) for one in exposed):
        yield "of what overlaps the step waits for the longest: where one takes longer on the"
        yield "links, others beside it add less to the step; where one takes less, they add more"


def contention_lines(exposed: Sequence[Exposed]) -> Iterator[str]:
    """What the rows of contention are, where there is any."""
    found = [one for one in exposed if one.operation.startswith(CONTENTION)]
    if found:
        yield "contention: they share these links, and wait until the bytes of all are through:"
        yield "such time is in this row, not in those of the collectives that wait (docs/check.md)"
    if any(_taken(one.model_s) == _NONE != _taken(one.links_s) for one in found):
        yield f"{_NONE} by the model: there compute hides all that share them, and here no more"


_NONE = "none"
"""In place of a time of nothing."""


def _taken(seconds: float) -> str:
    """A time that is added to the step.

    >>> _taken(0.0), _taken(0.25)
    ('none', '250.000 ms')
    """
    return format_time(seconds) if seconds >= _LEAST_TIME_s else _NONE


_LEAST_TIME_s = 5e-13
"""A time below which ``0.000 ns`` would stand."""


def _more(model_s: float, links_s: float) -> str:
    """What links add, where that is a thousandth or more."""
    longer_s = links_s - model_s
    if abs(longer_s) < _LEAST_MORE * max(model_s, links_s):
        return "-"
    return f"{'-' if longer_s < 0 else '+'}{format_time(abs(longer_s))}"


def _is_much_less(one: Exposed) -> bool:
    return one.model_s - one.links_s >= _LEAST_MORE * one.model_s > 0


_LEAST_MORE = 1e-3
"""Of a time, from which a difference is worth a figure."""
_SAME_SLOWDOWN = 5e-4
"""Distance from 1 of a slowdown that is printed as 1.000x."""


def same_line(report: CheckReport) -> str:
    """What takes as long as with sprayed packets, in one line; empty for nothing."""
    found: dict[str, list[str]] = {}
    for key, (_, users), spread in zip(report.keys, report.phases, report.spreads, strict=True):
        if _is_as_sprayed(spread):
            where = tiers_label(report.design.topology, *key[:2])
            found.setdefault(where, []).extend(labels(users))
    n = sum(map(len, found.values()))
    if not n:
        return ""
    named = ", ".join(f"{len(names)} on {label}" for label, names in found.items())
    is_all = n == sum(len(labels(users)) for _, users in report.phases)
    which = f"All {n} collectives and sends are" if is_all else f"{n} {links.plural('other', n)}"
    return f"{which} as fast as with every packet sprayed: {named}"


def _is_as_sprayed(spread: Mapping[str, Array]) -> bool:
    return abs(distribution(spread["slowdown"]).mean - 1) < _SAME_SLOWDOWN


def phase_table(report: CheckReport) -> Table | None:
    """A row for every phase that is not as fast as sprayed packets, and collective that it serves.

    ``None`` where all are.
    """
    rows = [
        figure_cells(
            phase.label,
            name,
            phase.group_size,
            phase.algorithm,
            len(phase.rounds),
            sum(one.n_flows for one in phase.rounds),
            distribution(spread["fim_percent"]).mean,
            phase.fim_floor_percent,
            gigabytes_per_s(distribution(spread["worst_rate_Bps"]).mean),
            f"{distribution(spread['slowdown']).mean:.3f}x",
        )
        for (phase, users), spread in zip(report.phases, report.spreads, strict=True)
        if not _is_as_sprayed(spread)
        for name in labels(users)
    ]
    n = report.n_routings
    which = f"means of {n:,} routings" if n > 1 else "all groups at once"
    sends = " and sends" * any(isinstance(users[0], Send) for _, users in report.phases)
    title = f"Collectives{sends} that routing slows, {which}; slowdown against sprayed packets"
    left = ("dim", "collective", "algorithm")
    names = ("dim", "collective", "size", "algorithm", "rounds", "flows", "FIM %", "floor %")
    rates = ("worst GB/s", "slowdown")
    dispensable = ("floor %", "algorithm", "rounds", "flows", "size")
    if not rows:
        return None
    return table("", title, (*names, *rates), rows, left=left, dispensable=dispensable)


def slowed_blocks(report: CheckReport) -> Iterator[Block]:
    """What routing slows, and what it does not; nothing where nothing runs."""
    slowed, same = phase_table(report), same_line(report)
    if slowed is not None:
        yield from ("", slowed)
        yield from _rate_legend(report)
    if same:
        yield from (() if slowed is not None else ("",))
        yield same


def _rate_legend(report: CheckReport) -> Iterator[str]:
    """Why the slowest group of a phase may be faster than the phase is."""
    shown = (
        phase
        for (phase, _), spread in zip(report.phases, report.spreads, strict=True)
        if not _is_as_sprayed(spread)
    )
    if any(one.worst_rate_Bps > one.bandwidth_Bps * one.efficiency * _FASTER for one in shown):
        yield "worst GB/s: of the slowest group, over all its rounds. Collectives take longer than"
        yield "that where each round waits for its own slowest group: 'as routed' may be lower"


_FASTER = 1.005
"""Of a rate over another, from which two digits differ."""


def high_floor_legend(report: CheckReport) -> Iterator[str]:
    """What a floor means that is far above 0, where there is one."""
    if any(one.fim_floor_percent >= _HIGH_FLOOR_PERCENT for one in report.dimensions):
        yield "a high floor: too few whole flows for so many links. FIM then says little of time:"
        yield "worst GB/s and slowdown below say what it costs"


def floor_lines(report: CheckReport) -> Iterator[str]:
    """Where FIM is near a high floor and collectives are slow all the same: why, and what helps."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    for (phase, users), spread in zip(report.phases, report.spreads, strict=True):
        slowdown = distribution(spread["slowdown"]).mean
        if phase.fim_floor_percent >= _HIGH_FLOOR_PERCENT and slowdown > _STRETCHED:
            named = ((slowdown, phase.fim_floor_percent, name) for name in labels(users))
            found.setdefault(phase.label, []).extend(named)
    for label, rows in found.items():
        slowdown, floor, name = max(rows, key=lambda row: row[0])
        others = f" and {len(rows) - 1} more take" if len(rows) > 1 else " takes"
        yield (
            f"{label}: few whole flows on many links (floor {floor:.2f}), so two that meet on one "
            f"hardly move FIM: {name}{others} up to {slowdown:.3f}x. Try more queue "
            f"pairs (--queue-pairs) or sprayed packets (--policy spray)"
        )


_HIGH_FLOOR_PERCENT = 50.0
"""From which FIM tells little of what routing costs: it is mostly that of idle links."""
_STRETCHED = 1.05
"""Slowdown from which it is worth a line."""


def hotspot_payload(
    hot: Hotspot, *, n_busiest: int, groups: bool = False, traced: TracedFlow | None = None
) -> dict[str, Any]:
    """The key ``hotspot`` of ``check --json``."""
    payload: dict[str, Any] = {
        "dimension": hot.phase.label,
        "collectives": labels(hot.users),
        "round": hot.worst.name,
        "slowdown": finite(hot.worst.time_s / hot.worst.ideal_s),
        "entropy": None
        if hot.routed is None
        else links.entropy_payload(links.entropy_of(hot.routed)),
        "busiest_links": link_rows(hot, n_busiest),
    }
    if hot.routed is not None and groups:
        payload["groups"] = links.group_rows(hot.routed)
    if traced is not None:
        payload |= trace_payload(traced)
    return payload


def trace_payload(traced: TracedFlow | None) -> dict[str, Any]:
    """The key ``trace`` of ``check --json``; nothing where no flow was to be followed."""
    if traced is None:
        return {}
    trace = {
        "flow": traced.routed.flows.ids[traced.number],
        "dimension": traced.label,
        "round": traced.round_name,
        "hops": links.hop_rows(traced.routed, traced.number),
    }
    return {"trace": trace}


def trace_blocks(traced: TracedFlow | None) -> Iterator[Block]:
    """The same for people: link by link, with the flows on each."""
    if traced is not None:
        yield from links.hops_blocks(traced.routed, traced.number)
        yield f"  in {escape(traced.round_name)} on {traced.label}"


def link_rows(hot: Hotspot, n: int) -> list[dict[str, Any]]:
    """The busiest links, with the number of groups whose flows are on them."""
    rows = [] if hot.routed is None else links.busiest_links(hot.routed, n)
    for row in rows:
        found = row.pop("collectives", {})
        row |= {"n_groups": len(found), "groups": dict(list(found.items())[: links.MOST_NAMED])}
    return rows


def hotspot_blocks(
    report: CheckReport, hot: Hotspot, *, n_busiest: int, groups: bool, traced: TracedFlow | None
) -> Iterator[Block]:
    """The round that loses most: its layers, busiest links, groups, and one of its flows."""
    worst, names = hot.worst, labels(hot.users)
    users = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    which = f", {worst.name} ({worst.share:.1%} of its bytes)" * (len(hot.phase.rounds) > 1)
    first = f" with seed {report.seeds[0]}" if report.n_routings > 1 else ""
    yield ""
    yield (
        f"Loses most{first}: [bold]{escape(users)}[/] on {hot.phase.label}{which}: "
        f"[bold]{worst.time_s / worst.ideal_s:.3f}x[/] the time of sprayed packets"
    )
    yield from ("", links.layer_table(worst.layers))
    yield from _entropy_lines(hot)
    rows = link_rows(hot, n_busiest)
    yield from ("", f"Busiest links there, seed {report.seeds[0]}") if rows else ()
    yield from (escape(f"  {_link_text(row)}") for row in rows)
    if hot.routed is not None and groups:
        yield from links.groups_blocks(links.group_rows(hot.routed))
    yield from trace_blocks(traced)


_MANY_PAIRS = 16
"""Queue pairs per connection that are compared with fewer."""


def _entropy_lines(hot: Hotspot) -> Iterator[str]:
    """What ECMP had to hash, and what more queue pairs would give."""
    found = None if hot.routed is None else links.entropy_of(hot.routed)
    if hot.routed is None or found is None:
        return
    ids = hot.routed.flows.ids
    n_pairs = ids.n_pairs if isinstance(ids, FlowNames) else 1
    more = ""
    if n_pairs < _MANY_PAIRS:
        fim = found.fim_percent_of(_MANY_PAIRS / n_pairs)
        more = f"; with {_MANY_PAIRS} queue pairs per connection {fim:.2f} %"
    yield f"{links.entropy_text(found)}{more}"


def flow_text(name: str) -> str:
    """A flow of a collective from NPU to NPU, so that nobody reads a range.

    >>> flow_text("775-7")
    '775->7'
    """
    return name.replace("-", "->")


def _link_text(row: dict[str, Any]) -> str:
    n_shown, n_flows, n_groups = 4, row["n_flows"], row["n_groups"]
    more = ", ..." if n_flows > n_shown else ""
    groups = f" of {n_groups} groups" if n_groups > 1 else ""
    flows = map(flow_text, row["flows"][:n_shown])
    named = f": NPUs {', '.join(flows)}{more}" if row["flows"] else ""
    return f"{row['link']}  {n_flows:,.6g} {links.plural('flow', int(n_flows))}{groups}{named}"


_EQUAL = 1e-9


def send_notes(topology: Topology, sends: Sequence[Send], report: CheckReport) -> Iterator[str]:
    """Sends that find more bandwidth than the model gives them, or less."""
    for one in {one.group: one for one in sends}.values():
        factors = own_link_factors(topology, one.group)
        for label, factor in zip(topology.labels, factors.tolist(), strict=True):
            if factor > 1:
                yield (
                    f"{label}: a send of {one.axis} takes one link or direction of an NPU's, "
                    f"{factor:g} times the model's time"
                )
    for key, (phase, users) in zip(report.keys, report.phases, strict=True):
        if isinstance(users[0], Send) and phase.ideal_factor < 1 - _EQUAL:
            yield (
                f"{tiers_label(topology, *key[:2])}: sprayed, the sends of {users[0].axis} take "
                f"{phase.ideal_factor:.0%} of the model's time: it gives every NPU its own share "
                f"of the uplinks, and not all of a leaf send at once"
            )
