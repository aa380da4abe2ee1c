"""A design on its links, for the screen: tables and heat maps of what ``check`` finds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from libra_planner.check.hotspot import Hotspot
    from libra_planner.check.report import RoutedList
    from libra_planner.fabric.clos import Array, Layer
    from libra_planner.problem import Problem
    from libra_planner.tui.plans import Report
    from libra_planner.views.check import CheckedPlan

N_BUSIEST = 50
MOST_ROWS = 16
_SHADES = ((0.75, "░"), (1.25, "▒"), (2.0, "▓"), (math.inf, "█"))
"""Shade of a link by its load over the mean of its layer."""

LEGEND = "· idle  ░ under 3/4 of the layer's mean  ▒ near it  ▓ up to twice it  █ above"


@dataclass(frozen=True)
class CheckedLinks:
    """What ``check`` found, and the phase to look at."""

    checked: CheckedPlan = field(repr=False)
    hot: Hotspot | None = field(repr=False)
    policy: str


def check_links(
    problem: Problem, bandwidth_bytes_per_s: Array, policy: str, seed: int | None, progress: Report
) -> CheckedLinks:
    """The same check as ``check PLAN --bandwidth ... --policy ...``, with ``--seed`` if given."""
    from libra_planner.check.hotspot import most_loaded
    from libra_planner.check.links import link_check
    from libra_planner.check.report import asked_seeds
    from libra_planner.evaluation import evaluated
    from libra_planner.problem import fastest_alternative
    from libra_planner.routing.policy import Policy
    from libra_planner.views.check import CheckedPlan

    problem = fastest_alternative(problem, bandwidth_bytes_per_s)
    violated = evaluated(problem, bandwidth_bytes_per_s).violated
    links = link_check(problem, bandwidth_bytes_per_s)
    report = links.report(Policy(policy), seeds=asked_seeds(None, seed), progress=progress)
    checked = CheckedPlan(links, report, optimized=False, violated=violated)
    return CheckedLinks(checked, most_loaded(links, report), policy)


def step_times(found: CheckedLinks) -> Group:
    """Step time by the model, on whole links with spraying, and under the policy."""
    from libra_planner.units import format_time
    from libra_planner.views.spread import mean_text

    report = found.checked.report
    table = _table("step time", "time", "vs ideal")
    rows = (
        ("ideal: all bandwidth", report.ideal_step_time_s),
        ("whole links, sprayed", report.spray_step_time_s),
        (f"whole links, {found.policy}", float(report.effective_step_time_s.mean())),
    )
    for name, seconds in rows:
        table.add_row(name, format_time(seconds), f"{seconds / report.ideal_step_time_s:.3f}x")
    means = mean_text(report.effective_step_time_s, format_time)
    return Group(table, *([Text(means)] if means else []))


def dimensions(found: CheckedLinks) -> Table:
    """What every dimension is built of, and how it fares."""
    from libra_planner.fabric.parts import design_parts
    from libra_planner.units import format_bandwidth
    from libra_planner.views.spread import two_digits

    report = found.checked.report
    built, fares = ("switches", "cables", "optics"), ("effic. %", "FIM %", "floor")
    table = _table("dimension", "GB/s", "asked", *built, *fares)
    for one, parts in zip(report.dimensions, design_parts(report.design).dimensions, strict=True):
        table.add_row(
            f"{one.label} {one.tier}",
            format_bandwidth(one.bandwidth_Bps).removesuffix(" GB/s"),
            format_bandwidth(one.asked_Bps).removesuffix(" GB/s"),
            f"{parts.n_switches:,}" if parts.n_switches else "-",
            f"{parts.n_cables:,}",
            f"{parts.n_optics:,}",
            two_digits(float(one.efficiency.mean()) * 100),
            two_digits(float(one.fim_percent.mean())),
            two_digits(one.fim_floor_percent),
        )
    return table


def parts_text(found: CheckedLinks) -> Text:
    """Switches and cables by tier, of the dimensions that have switches."""
    from libra_planner.fabric.parts import design_parts
    from libra_planner.views.links import plural

    text = Text()
    for parts in design_parts(found.checked.report.design).dimensions:
        if parts.n_switches:
            switches = ", ".join(
                f"{part.n_switches:,} {plural(part.tier, part.n_switches)}"
                for part in parts.switches
            )
            cables = ", ".join(f"{part.n_cables:,} {part.joins}" for part in parts.cables)
            text.append(f"{parts.label}: {switches}; {cables} cables\n", "dim")
    return text


def note_lines(notes: Iterable[str]) -> Text:
    """Notes as the commands print them, a paragraph each."""
    return Text("\n".join(f"Note: {note}" for note in notes), "dim")


def notes(found: CheckedLinks) -> Text:
    """What collectives run, and what the check takes for granted, as ``check`` prints it."""
    from libra_planner.views.check import check_notes
    from libra_planner.views.phases import algorithm_lines

    checked = found.checked
    return note_lines((*algorithm_lines(checked.report), *check_notes(checked)))


def layers(found: CheckedLinks) -> Table | None:
    """Imbalance of each layer in the phase to look at, with the floor of any routing."""
    from libra_planner.views.links import layer_table
    from libra_planner.views.renderers.terminal import panel_table

    if found.hot is None:
        return None
    table = layer_table(found.hot.worst.layers, flows="{:g}".format)
    same = {name: name for name in ("layer", "links", "flows", "FIM %")}
    others = {"floor %": "floor", "max/mean": "max/mean", "max flows": "busiest"}
    return panel_table(table, {**same, **others, "idle links": "idle"})


def phase_name(found: CheckedLinks) -> str:
    """The phase to look at, for people."""
    from libra_planner.views.phases import labels

    hot = found.hot
    if hot is None:
        return "no switches in this design: direct links offer no choice of path"
    users = ", ".join(labels(hot.users))
    slower = hot.worst.time_s / hot.worst.ideal_s
    seeds = found.checked.report.seeds
    first = f" with seed {seeds[0]}" if len(seeds) > 1 else ""
    where = f"{users} on {hot.phase.label}: {hot.worst.name}{first}"
    return f"{where}, {slower:.3f}x the sprayed time"


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def heat_maps(found: CheckedLinks, width: int) -> Text:
    """Load of the links of each layer that offers a choice, or of the host links without one."""
    routed = found.hot.routed if found.hot else None
    if routed is None:
        return Text("no flows to draw")
    text = Text(no_wrap=True)
    inside = [layer for layer in routed.fabric.layers if not layer.is_host]
    for layer in inside or routed.fabric.layers:
        for line in _heat_map(routed, layer, width):
            text.append_text(line).append("\n")
    return text.append(LEGEND, "dim")


def _heat_map(routed: RoutedList, layer: Layer, width: int) -> Iterator[Text]:
    """A row per switch, a cell per link: its shade and its flows."""
    import numpy as np

    counts, fabric = routed.report.counts[layer.links], routed.fabric
    if not counts.any():
        yield Text(f"{layer.name}: no flows", "bold")
        return
    mean = float(counts.mean())
    n_per_group = layer.n_per_group if not layer.is_host else fabric.hosts_per_leaf
    groups = counts.reshape(-1, n_per_group)
    names = [_row_name(layer, i) for i in range(len(groups))]
    digits = len(f"{counts.max():.3g}")
    room = width - max(map(len, names)) - 1
    gap = " " if n_per_group * (digits + 2) <= room else ""
    per_cell = -(-n_per_group // max(room // (digits + 1 + len(gap)), 1))
    starts = np.arange(0, n_per_group, per_cell)
    shown = np.maximum.reduceat(groups, starts, axis=1)
    order = np.arange(len(shown))
    if len(shown) > MOST_ROWS:
        order = np.argsort(-shown.max(axis=1), kind="stable")[:MOST_ROWS]
    yield Text(_heading(layer, len(shown), n_per_group, per_cell), "bold")
    for i in order:
        line = Text(f"{names[i]:<{max(map(len, names))}} ", "dim")
        for value in shown[i]:
            line.append(f"{shade(value / mean)}{value:<{digits}.3g}", _style(value / mean))
            line.append(gap)
        yield line


def _heading(layer: Layer, n_groups: int, n_per_group: int, per_cell: int) -> str:
    rows = f"{MOST_ROWS} busiest of {n_groups:,}" if n_groups > MOST_ROWS else f"{n_groups}"
    cells = f", the fullest of {per_cell} a cell" if per_cell > 1 else ""
    return f"{layer.name}: {rows} switches x {n_per_group} links{cells}"


def _row_name(layer: Layer, group: int) -> str:
    tier = "leaf" if layer.is_host or layer.name in ("leaf_up", "spine_down") else "spine"
    return f"{tier} {group}"


def shade(ratio: float) -> str:
    """How dark a link is.

    >>> shade(0), shade(0.5), shade(1), shade(3)
    ('·', '░', '▒', '█')
    """
    if ratio == 0:
        return "·"
    return next(character for limit, character in _SHADES if ratio <= limit)


def _style(ratio: float) -> str:
    return "bold red" if ratio > 2 else "yellow" if ratio > 1.25 else "dim" if ratio == 0 else ""


def busiest_links(found: CheckedLinks) -> list[dict[str, Any]]:
    """The busiest links, as ``check --json`` lists them."""
    from libra_planner.views.phases import link_rows

    return link_rows(found.hot, N_BUSIEST) if found.hot else []


def link_text(found: CheckedLinks, row: dict[str, Any]) -> Text:
    """A link: its groups, its flows, and the way of each flow hop by hop."""
    from libra_planner.check.hotspot import FlowNames
    from libra_planner.views.links import hop_rows

    text = Text(f"{row['layer']}, {_flows(row['n_flows'])}, {row['capacity_GBps']:g} GB/s\n")
    groups = ", ".join(f"{name} ({n})" for name, n in row.get("groups", {}).items())
    text.append(f"of {_groups(row['n_groups'])}: {groups}\n" if groups else "")
    routed = found.hot.routed if found.hot else None
    if routed is None or not row["flows"]:
        return text.append("sprayed packets take all links of a group alike")
    names = routed.flows.ids
    for name in row["flows"]:
        number = names.number_of(name) if isinstance(names, FlowNames) else None
        text.append(f"\nflow {name} (from NPU to NPU)\n", "bold")
        for hop in [] if number is None else hop_rows(routed, number):
            text.append(f"  {hop['layer']:<11} {hop['link']:<34} {_flows(hop['n_flows']):>9}\n")
    if row["n_flows"] > len(row["flows"]):
        text.append(f"\n... and {row['n_flows'] - len(row['flows'])} more", "italic")
    return text


def _groups(n: int) -> str:
    return "1 group" if n == 1 else f"{n} groups"


def _flows(n: float) -> str:
    return "1 flow" if n == 1 else f"{n:g} flows"
