"""A design on its links, for the screen: tables and heat maps of what ``check`` finds."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from libra_planner.check.hotspots import FlowNames, Hotspot, hotspot
from libra_planner.check.links import link_check
from libra_planner.check.report import RoutedList, asked_seeds
from libra_planner.errors import PlannerError, SpecError
from libra_planner.evaluation import evaluated
from libra_planner.fabric.clos import Array, Layer
from libra_planner.fabric.parts import design_parts
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.routing.policy import Policy
from libra_planner.tui.session import Report
from libra_planner.units import format_bandwidth, format_time
from libra_planner.views.cells import Table, count, table_of, two_digits
from libra_planner.views.check import CheckedPlan, check_notes, step_time_table
from libra_planner.views.links import hop_rows, layer_table, plural
from libra_planner.views.phases import algorithm_lines, flow_text, labels, link_rows
from libra_planner.views.renderers.terminal import note_lines, panel_table
from libra_planner.views.spread import mean_text

N_BUSIEST = 50
MOST_ROWS = 16
_RULED = 5
BROKEN = "This design breaks rules of the plan: press o to optimise first, then look at its links."
_SHADES = (
    (0.0, "·", "dim"),
    (0.75, "░", ""),
    (1.25, "▒", ""),
    (2.0, "▓", "yellow"),
    (math.inf, "█", "bold red"),
)
"""Shade and style of a link by its load over the mean of its layer."""

LEGEND = (
    "A row is a switch, a cell one of its links with its flows: · idle  ░ under 3/4 of the layer's "
    "mean  ▒ near it  ▓ up to twice it  █ above"
)

_LAYER_COLUMNS = {name: name for name in ("layer", "links", "flows", "FIM %")} | {
    "floor %": "floor", "max/mean": "max/mean", "max flows": "busiest", "idle links": "idle"
}  # fmt: skip
"""Short headings by those of the commands."""


@dataclass(frozen=True)
class CheckedLinks:
    """What ``check`` found, and the phase to look at."""

    checked: CheckedPlan = field(repr=False)
    hot: Hotspot | None = field(repr=False)

    @property
    def routed(self) -> RoutedList | None:
        """The flows of the phase to look at."""
        return self.hot.routed if self.hot else None

    @property
    def cards(self) -> dict[str, RenderableType]:
        """What the cards of the screen show, by their names."""
        layers: list[RenderableType] = [Text(_phase_name(self), "bold")]
        if self.hot:
            table = layer_table(self.hot.worst.layers, flows="{:g}".format)
            layers.append(panel_table(table, _LAYER_COLUMNS))
        broken = [Text(BROKEN, "bold red")] if self.checked.violated else []
        return {
            "times": Group(*broken, _step_times(self)),
            "dimensions": Group(panel_table(_dimension_table(self)), self.parts_text),
            "layers": Group(*layers),
            "notes": self.notes,
        }

    @property
    def parts_text(self) -> Text:
        """Switches and cables by tier, of the dimensions that have switches."""
        text = Text()
        for parts in design_parts(self.checked.report.design).dimensions:
            if parts.n_switches:
                switches = ", ".join(
                    f"{part.n_switches:,} {plural(part.tier, part.n_switches)}"
                    for part in parts.switches
                )
                cables = ", ".join(f"{part.n_cables:,} {part.joins}" for part in parts.cables)
                text.append(f"{parts.label}: {switches}; {cables} cables\n", "dim")
        return text

    @property
    def notes(self) -> Text:
        """What collectives run, and what the check takes for granted, as ``check`` prints it."""
        return note_lines([*algorithm_lines(self.checked.report), *check_notes(self.checked)])

    @property
    def busiest_links(self) -> list[dict[str, Any]]:
        """The busiest links, as ``check --json`` lists them."""
        return link_rows(self.hot, N_BUSIEST) if self.hot else []

    def link_text(self, row: dict[str, Any]) -> Text:
        """A link: its groups, its flows, and the way of each flow hop by hop."""
        text = Text(f"{row['layer']}, {_flows(row['n_flows'])}, {row['capacity_GBps']:g} GB/s\n")
        groups = ", ".join(f"{name} ({n})" for name, n in row.get("groups", {}).items())
        of = f"of {row['n_groups']} {plural('group', row['n_groups'])}"
        text.append(f"{of}: {groups}\n" if groups else "")
        if self.routed is None or not row["flows"]:
            return text.append("sprayed packets take all links of a group alike")
        names = self.routed.flows.ids
        for name in row["flows"]:
            number = names.number_of(name) if isinstance(names, FlowNames) else None
            text.append(f"\nflow {flow_text(name)} (from NPU to NPU)\n", "bold")
            for hop in [] if number is None else hop_rows(self.routed, number):
                text.append(f"  {hop['layer']:<11} {hop['link']:<34} {_flows(hop['n_flows']):>9}\n")
        if row["n_flows"] > len(row["flows"]):
            text.append(f"\n... and {row['n_flows'] - len(row['flows'])} more", "italic")
        return text

    def heat_maps(self, width: int) -> Text:
        """Load of the links of each layer that offers a choice, or of the host links without."""
        if self.routed is None:
            return Text("no flows to draw")
        text = Text(no_wrap=True)
        inside = [layer for layer in self.routed.fabric.layers if not layer.is_host]
        for layer in inside or self.routed.fabric.layers:
            for line in _heat_map(self.routed, layer, width):
                text.append_text(line).append("\n")
        return text.append("\n".join(textwrap.wrap(LEGEND, width)), "dim")


def check_links(
    problem: Problem, bandwidth_bytes_per_s: Array, policy: str, seed: int | None, progress: Report
) -> CheckedLinks:
    """The same check as ``check PLAN --bandwidth ... --policy ...``, with ``--seed`` if given."""
    problem = fastest_alternative(problem, bandwidth_bytes_per_s)
    violated = evaluated(problem, bandwidth_bytes_per_s).violated
    try:
        links = link_check(problem, bandwidth_bytes_per_s)
    except SpecError as error:
        raise PlannerError(f"{BROKEN}\n\n{error}") if violated else error from None
    report = links.report(Policy(policy), seeds=asked_seeds(None, seed), progress=progress)
    checked = CheckedPlan(links, report, optimized=False, violated=violated)
    return CheckedLinks(checked, hotspot(links, report, always=True))


def _step_times(found: CheckedLinks) -> Group:
    """Step time by the model, on whole links with spraying, and under the policy."""
    report = found.checked.report
    rows = [
        ("ideal: all bandwidth", report.ideal_step_time_s),
        ("whole links, sprayed", report.spray_step_time_s),
        (f"whole links, {report.policy.name}", float(report.effective_step_time_s.mean())),
    ]
    means = mean_text(report.effective_step_time_s, format_time)
    return Group(panel_table(step_time_table(rows)), *([Text(means)] if means else []))


def _dimension_table(found: CheckedLinks) -> Table:
    """What every dimension is built of, and how it fares."""
    report = found.checked.report
    return table_of(
        "",
        zip(report.dimensions, design_parts(report.design).dimensions, strict=True),
        {
            "dimension": lambda row: f"{row[0].label} {row[0].tier}",
            "GB/s": lambda row: format_bandwidth(row[0].bandwidth_Bps).removesuffix(" GB/s"),
            "asked": lambda row: format_bandwidth(row[0].asked_Bps).removesuffix(" GB/s"),
            "switches": lambda row: count(row[1].n_switches) if row[1].n_switches else "-",
            "cables": lambda row: count(row[1].n_cables),
            "optics": lambda row: count(row[1].n_optics),
            "effic. %": lambda row: two_digits(float(row[0].share(row[0].efficiency).mean()) * 100),
            "FIM %": lambda row: two_digits(float(row[0].fim_percent.mean())),
            "floor": lambda row: two_digits(row[0].fim_floor_percent),
        },
        left=("dimension",),
    )


def _phase_name(found: CheckedLinks) -> str:
    """The phase to look at, for people."""
    hot, seeds = found.hot, found.checked.report.seeds
    if hot is None:
        return "no switches in this design: direct links offer no choice of path"
    first = f" with seed {seeds[0]}" if len(seeds) > 1 else ""
    where = f"{', '.join(labels(hot.users))} on {hot.phase.label}: {hot.worst.name}{first}"
    return f"{where}, {hot.worst.time_s / hot.worst.ideal_s:.3f}x the sprayed time"


def _heat_map(routed: RoutedList, layer: Layer, width: int) -> Iterator[Text]:
    """A row per switch, a cell per link: its shade and its flows."""
    counts = routed.report.counts[layer.links]
    if not counts.any():
        yield Text(f"{layer.name}: no flows", "bold")
        return
    n_per_group = routed.fabric.hosts_per_leaf if layer.is_host else layer.n_per_group
    groups, digits = counts.reshape(-1, n_per_group), len(f"{counts.max():.3g}")
    is_leaf = layer.is_host or layer.name in ("leaf_up", "spine_down")
    names = [f"{'leaf' if is_leaf else 'spine'} {i}" for i in range(len(groups))]
    head = max(len(names[-1]), len("link"))
    room = width - head - 1
    gap = " " if n_per_group * (digits + 2) <= room else ""
    per_cell = -(-n_per_group // max(room // (digits + 1 + len(gap)), 1))
    shown = np.maximum.reduceat(groups, np.arange(0, n_per_group, per_cell), axis=1)
    order, rows = np.arange(len(shown)), f"{len(shown)}"
    if len(shown) > MOST_ROWS:
        order = np.argsort(-shown.max(axis=1), kind="stable")[:MOST_ROWS]
        rows = f"{MOST_ROWS} busiest of {len(shown):,}"
    cells = f", the fullest of {per_cell} a cell" if per_cell > 1 else ""
    yield Text(f"{layer.name}: {rows} switches x {n_per_group} links{cells}", "bold")
    yield Text(f"{'link':<{head}} {ruler(shown.shape[1], per_cell, digits + 1 + len(gap))}", "dim")
    for i in order:
        line = Text(f"{names[i]:<{head}} ", "dim")
        for value in shown[i]:
            shade, style = _shade(value / counts.mean())
            line.append(f"{shade}{value:<{digits}.3g}", style).append(gap)
        yield line


def ruler(n_cells: int, per_cell: int, width: int) -> str:
    """Numbers of the links above their cells, every fifth one.

    >>> ruler(8, 2, 3)
    '0              10       '
    """
    marks = (str(i * per_cell) if i % _RULED == 0 else "" for i in range(n_cells))
    text = ""
    for i, mark in enumerate(marks):
        text = f"{text:<{i * width}}{mark}" if mark else text
    return f"{text:<{n_cells * width}}"


def _shade(ratio: float) -> tuple[str, str]:
    """How dark a link is, and its style.

    >>> _shade(0), _shade(1), _shade(3)
    (('·', 'dim'), ('▒', ''), ('█', 'bold red'))
    """
    return next((shade, style) for limit, shade, style in _SHADES if ratio <= limit)


def _flows(n: float) -> str:
    return f"{n:g} {plural('flow', n)}"
