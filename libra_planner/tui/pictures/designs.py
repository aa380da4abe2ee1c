"""The design on screen as pictures: its fabric, its step, what more of something changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from libra_planner.evaluation import Evaluation
from libra_planner.problem import Problem
from libra_planner.step.critical_path import COMPUTE
from libra_planner.step.layers import Training
from libra_planner.step.model_training import ModelTraining
from libra_planner.tui.pictures import shapes
from libra_planner.units import format_bandwidth, format_time, format_usd
from libra_planner.views import cells
from libra_planner.views.plan import taper_texts
from libra_planner.views.renderers.terminal import rich_table
from libra_planner.views.training.step import busy_fractions, computed_shares, step_payload

if TYPE_CHECKING:
    from libra_planner.optimizer.design import FrontierPoint
    from libra_planner.tui.session import Frontier

FACTORS = 2.0 ** np.linspace(-2, 2, 9)
"""Of a dimension's bandwidth, that its curve is drawn over."""
_FORWARD = 1 / 3
"""Share of forward passes in a stage's work as pipelines are drawn: a backward pass takes twice."""
SHORT = {
    "compute_s": "compute",
    "exposed_tp_s": "TP",
    "exposed_cp_s": "CP",
    "exposed_ep_s": "experts",
    "exposed_pp_s": "PP sends",
    "exposed_dp_s": "DP",
    "contention_s": "contention",
    "uneven_stages_s": "waits for longest stage",
    "bubble_s": "bubble",
    "optimizer_s": "optimizer",
}
"""Parts of a step, by their keys in JSON."""


def curves(problem: Problem, bandwidth_bytes_per_s: np.ndarray) -> list[str]:
    """Step time over a quarter to four times the bandwidth of each dimension, the others held."""
    found = []
    for dim in range(problem.topology.n_dims):
        designs = np.tile(bandwidth_bytes_per_s, (len(FACTORS), 1))
        designs[:, dim] *= FACTORS
        times = problem.step_time.seconds(designs)
        found.append(shapes.curve(times.tolist()) if np.isfinite(times).all() else "")
    return found


def frontier_picture(
    points: Sequence[FrontierPoint], evaluation: Evaluation, n_lines: int, n_cells: int
) -> Text:
    """Step time over cost: the fastest designs at each cost, and the one on screen."""
    pairs = [(one.cost_usd, one.step_time_s) for one in points]
    place = evaluation.cost_usd, evaluation.step_time_s
    return shapes.curve_picture(pairs, place, (n_cells, n_lines), (format_usd, format_time))


def standing(frontier: Frontier, evaluation: Evaluation) -> Text:
    """Points of the frontier that beat a design, and by how much."""
    faster, cheaper = frontier.better(evaluation)
    text = Text.assemble(("o", "cyan"), " frontier  ", ("X", "bold yellow"), " on screen\n")
    if frontier.alone:
        one = frontier.points[0]
        text = Text(f"It takes {format_time(one.step_time_s)}, costs {format_usd(one.cost_usd)}\n")
    if faster:
        change = faster.step_time_s / evaluation.step_time_s - 1
        text.append(f"{format_time(faster.step_time_s)} ({change:+.1%}) at no more cost\n")
    if cheaper:
        change = cheaper.cost_usd / evaluation.cost_usd - 1
        text.append(f"{format_usd(cheaper.cost_usd)} ({change:+.1%}) in no more time\n")
    if not (faster or cheaper):
        text.append("no point of it is better" if not frontier.alone else "as on screen")
    text.rstrip()
    return text


def fabric_picture(problem: Problem, evaluation: Evaluation, n_cells: int) -> Text:
    """Dimensions in one another, each with its bandwidth, its taper and how busy it is."""
    topology, bandwidth = problem.topology, evaluation.bandwidth_bytes_per_s
    busy, tapers = busy_fractions(problem, evaluation), taper_texts(topology, bandwidth)
    boxes = [
        shapes.Box(
            f"{topology.labels[i]} {one.tier}",
            str(one),
            one.size,
            f"{format_bandwidth(bandwidth[i])} {tapers[i]}".rstrip(),
            busy[i] or 0.0,  # Not known where nothing is bought and a loop sends nothing.
        )
        for i, one in enumerate(topology.dimensions)
    ]
    compute_s = next((x.seconds for x in computed_shares(problem, evaluation)), 0.0)
    compute = f"{topology.n_npus:,} NPUs, compute {compute_s / evaluation.step_time_s:.1%}"
    return shapes.fabric_picture(boxes, compute, n_cells)


def step_picture(problem: Problem, evaluation: Evaluation, n_cells: int) -> Text:
    """The step as a timeline: of stages where it has a pipeline, else of its phases."""
    training = problem.step.trainings[0] if len(problem.step.trainings) == 1 else None
    if isinstance(training, ModelTraining):
        return _pipeline(problem, evaluation, training, n_cells)
    shares = [(x.label, x.dims, x.seconds) for x in evaluation.shares if x.label != COMPUTE]
    computed = _phases(training, evaluation) if isinstance(training, Training) else {}
    compute = computed or {"compute": evaluation.compute_s}
    lanes = shapes.phase_lanes(shares, compute, problem.topology.labels)
    return shapes.lanes_picture(lanes, evaluation.step_time_s, n_cells)


PICTURES = {
    "fabric": ("Fabric: how busy in a step", fabric_picture),
    "step": ("Step", step_picture),
}
"""Of a design: titles, and what draws them for a number of cells."""


_SIGNS = {" shorter": "-", " longer": "+", " less": "-", " more": "+"}


@dataclass(frozen=True)
class Worth:
    """What one more is worth: as ``optimize`` prints it, or with signs where that is too wide."""

    table: cells.Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = rich_table(self.table)
        if console.measure(whole).maximum <= options.max_width:
            yield whole
            return
        yield Text("What one more is worth at the optimum: a slope", "italic")
        short = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        short.add_column("one more", no_wrap=True, overflow="ellipsis")
        short.add_column("step time", justify="right", no_wrap=True)
        short.add_column("cost", justify="right", no_wrap=True)
        for row in self.table.rows:
            unit, of, *changes = (str(cell.shown) for cell in row)
            of = of.partition(" (line")[0]
            short.add_row(Text(f"{unit} {of}"), *map(Text, map(signed, changes)))
        yield short


def signed(change: str) -> str:
    """A change in words as one with a sign.

    >>> signed("75.927 us shorter"), signed("$19.05k more"), signed("-")
    ('-75.927 us', '+$19.05k', '-')
    """
    found = [(word, sign) for word, sign in _SIGNS.items() if change.endswith(word)]
    return f"{found[0][1]}{change.removesuffix(found[0][0])}" if found else change


def _phases(training: Training, evaluation: Evaluation) -> dict[str, float]:
    """Compute of each phase, where it adds up to that of the step; else nothing."""
    found: dict[str, float] = defaultdict(float)
    for one in training.workload.operations:
        found[one.phase.value.replace("_", " ")] += one.compute_s * one.count
    return dict(found) if np.isclose(sum(found.values()), evaluation.compute_s) else {}


def _pipeline(
    problem: Problem, evaluation: Evaluation, training: ModelTraining, n_cells: int
) -> Text:
    """What takes the time, as ``--json`` has it, and where the stages of a pipeline wait."""
    parts, one = step_payload(problem, evaluation)["time"], training.trained.strategy
    total_s, n_stages, m = evaluation.step_time_s, int(one.pp), int(one.n_microbatches)
    named = {SHORT[key]: value for key, value in parts.items()}
    text = shapes.split_picture(named, total_s, n_cells)
    if n_stages == 1:
        return text
    after = ("exposed_dp_s", "contention_s", "optimizer_s")
    bubble_s, after_s = parts["bubble_s"], sum(parts[name] for name in after)
    lanes = shapes.stage_lanes(n_stages, m, total_s - after_s, bubble_s, _FORWARD)
    text.append("\n").append_text(shapes.lanes_picture(lanes, total_s, n_cells))
    chunks = f", {one.interleave} chunks a stage" if int(one.interleave) > 1 else ""
    waits = f"every stage waits {format_time(bubble_s)} of {format_time(total_s)}"
    text.append(f"\n{m} microbatches{chunks}; {waits}\n", "dim")
    for style, what in (("cyan", "forward passes fill it"), ("blue", "one forward, one backward"),
                        ("magenta", "backward passes empty it")):  # fmt: skip
        text.append("■ ", style).append(f"{what}  ", "dim")
    return text.append("as equal stages, backward twice forward", "dim")
