"""Pictures in text: the fabric as nested boxes, the step as a timeline, curves of one line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

_LEAST_BOX = 32
"""Cells of the innermost box, at least: outer boxes lose their edges before."""
_NESTING = 7
"""Cells that a box takes around the next one: its edges, and the edge of the next box's twin."""
_BUSY = ((0.25, "green"), (0.6, "yellow"), (float("inf"), "bold red"))
_RAMP = "▁▂▃▄▅▆▇█"
_JOINTS = {"RI": "─", "FC": "╪", "SW": "┴"}
_MOST_NPUS = 12
_MOST_STAGES = 8


def busy_style(fraction: float) -> str:
    """The colour of what is busy for a share of the step.

    >>> busy_style(0.1), busy_style(0.9)
    ('green', 'bold red')
    """
    return next(style for limit, style in _BUSY if fraction <= limit)


def curve(values: Sequence[float]) -> str:
    """A line of blocks from the least value to the largest; flat where all are alike.

    >>> curve([1.0, 2.0, 3.0]), curve([2.0, 2.0])
    ('▁▅█', '▁▁')
    """
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_RAMP[round((value - low) / span * (len(_RAMP) - 1))] for value in values)


def pairs_text(pairs: Sequence[tuple[str, str]], n_cells: int) -> Text:
    """Names and values in as many columns as there is room for.

    >>> print(pairs_text([("a", "1"), ("bb", "22"), ("c", "3")], 16))
    a   1   c   3
    bb  22
    """
    names, values = (max((len(pair[i]) for pair in pairs), default=0) for i in (0, 1))
    each = names + values + 4
    n_rows = -(-len(pairs) // max((n_cells + 2) // each, 1))
    text = Text(no_wrap=True, overflow="crop")
    for i in range(n_rows):
        for name, value in pairs[i::n_rows]:
            text.append(f"{name:<{names}}  ", "dim").append(f"{value:<{values}}  ")
        text.rstrip()
        text.append("\n" if i + 1 < n_rows else "")
    return text


@dataclass(frozen=True)
class Axis:
    """Where values stand on cells in a row; logarithmic where all are above 0.

    Parameters
    ----------
    values : that have a place.
    n_cells : 2 or more.
    """

    values: Sequence[float]
    n_cells: int

    def cell(self, value: float) -> int:
        """The cell of a value, from 0.

        >>> [Axis((1.0, 100.0), 5).cell(x) for x in (1.0, 10.0, 100.0)]
        [0, 2, 4]
        """
        low, high, it = (self._scaled(x) for x in (min(self.values), max(self.values), value))
        return round((it - low) / ((high - low) or 1.0) * (self.n_cells - 1))

    def _scaled(self, value: float) -> float:
        return math.log(value) if min(self.values) > 0 else value


def curve_picture(
    points: Sequence[tuple[float, float]],
    place: tuple[float, float],
    size: tuple[int, int],
    shown: tuple[Callable[[float], str], Callable[[float], str]],
) -> Text:
    """Points joined by a line, and one place beside them, over axes that say their ends.

    Parameters
    ----------
    points, place : of two figures each.
    size : cells and lines, axes included.
    shown : the figures for people.
    """
    xs, ys = zip(*points, place, strict=True)
    tops, ends = (
        [shown[1](x) for x in (max(ys), min(ys))],
        [shown[0](x) for x in (min(xs), max(xs))],
    )
    head = max(map(len, tops))
    across, up = Axis(xs, max(size[0] - head - 3, 2)), Axis(ys, max(size[1] - 2, 2))
    marks: dict[tuple[int, int], tuple[str, str]] = {}
    cells = [(across.cell(x), up.cell(y)) for x, y in points]
    for (x0, y0), (x1, y1) in pairwise(sorted(cells)):
        n = max(x1 - x0, abs(y1 - y0), 1)
        for i in range(n + 1):
            marks[x0 + round((x1 - x0) * i / n), y0 + round((y1 - y0) * i / n)] = ("·", "cyan")
    marks |= dict.fromkeys(cells, ("o", "cyan"))
    marks[across.cell(place[0]), up.cell(place[1])] = ("X", "bold yellow")
    text = Text(no_wrap=True, overflow="crop")
    for line in reversed(range(up.n_cells)):
        said = tops[0] if line == up.n_cells - 1 else tops[1] if line == 0 else ""
        text.append(f"{said:>{head}} │", "dim")
        for x in range(across.n_cells):
            text.append(*marks.get((x, line), (" ", "")))
        text.append("\n")
    text.append(f"{'':{head}} └{'─' * across.n_cells}\n{'':{head}}  ", "dim")
    return text.append(ends[0].ljust(across.n_cells - len(ends[1])) + ends[1], "dim")


@dataclass(frozen=True)
class Box:
    """A dimension as it is drawn.

    Parameters
    ----------
    name : its label and tier.
    notation : such as ``SW(32)``.
    size : NPUs, or boxes of the dimension inside it.
    speed : bandwidth per NPU, and its taper.
    busy_fraction : share of the step in which an NPU sends over it.
    """

    name: str
    notation: str
    size: int
    speed: str
    busy_fraction: float


def fabric_picture(boxes: Sequence[Box], compute: str, n_cells: int) -> Text:
    """Boxes in one another, the innermost first in ``boxes``; its twins stand at its right.

    Parameters
    ----------
    boxes : of the dimensions.
    compute : what is said beside the NPUs.
    n_cells : of every line.
    """
    spare, room = n_cells - _LEAST_BOX - 2, _inner(boxes, n_cells)
    npus = _npus(boxes[0], room - len(compute) - 1)
    lines = [Text(f"{npus} ", "cyan").append(compute, "dim")]
    for i, box in enumerate(boxes):
        nested = i + 1 < len(boxes) and spare >= _NESTING * (len(boxes) - 1)
        lines = _boxed(lines, box, room)
        if nested:
            lines = [_with_twin(line, j, len(lines)) for j, line in enumerate(lines)]
            room += _NESTING
        elif i + 1 < len(boxes):
            room += 2
    return Text("\n").join(lines)


def _npus(box: Box, n_cells: int) -> str:
    """So many NPUs as there are and as fit, at least one; dots for the others.

    >>> leaf = Box("dim1 leaf", "SW(32)", 32, "50 GB/s", 0.1)
    >>> _npus(leaf, 40), _npus(leaf, 10)
    ('■┴■┴■┴■┴■┴■┴■┴■┴■┴■┴■┴■ ...', '■┴■┴■ ...')
    """
    joint, dots = _JOINTS.get(box.notation[:2], " "), " ..."
    fit = max((n_cells + 1) // 2, 1)
    if box.size <= min(fit, _MOST_NPUS):
        return joint.join("■" * box.size)
    return joint.join("■" * min(max((n_cells + 1 - len(dots)) // 2, 1), _MOST_NPUS)) + dots


def _inner(boxes: Sequence[Box], n_cells: int) -> int:
    """Cells inside the innermost box."""
    deep = len(boxes) - 1
    each = _NESTING if n_cells - _LEAST_BOX - 2 >= _NESTING * deep else 2
    return max(n_cells - 2 - each * deep, 8)


def _boxed(lines: Sequence[Text], box: Box, room: int) -> list[Text]:
    """Lines with a border, whose title says what the dimension is and how busy."""
    style = busy_style(box.busy_fraction)
    said = f" {box.busy_fraction:.1%} busy "
    for name in (f" {box.name} {box.notation}  {box.speed} ", f" {box.name}  {box.speed} ",
                 f" {box.name.split()[0]}  {box.speed} ", f" {box.name} ", ""):  # fmt: skip
        if len(name) + len(said) + 2 <= room:
            break
    top = Text("╭─", style, no_wrap=True, overflow="crop").append(name, "bold default")
    top.append("─" * max(room - len(name) - len(said) - 2, 0)).append(said).append("─╮")
    found = [top]
    for line in lines:
        shown = line.copy()
        shown.truncate(room, pad=True)
        found.append(Text("│", style).append_text(shown).append("│", style))
    return [*found, Text(f"╰{'─' * room}╯", style)]


def _with_twin(line: Text, i: int, n: int) -> Text:
    """A line of a box with the edge of the next one like it."""
    edge = "╭─" if i == 0 else "╰─" if i == n - 1 else "│ "
    return Text(" ").append_text(line).append(f" {edge}", "dim").append(" ")


PART_STYLES = ("cyan", "yellow", "magenta", "green", "blue", "bright_yellow", "white", "dim")
"""Colours that the terminals' themes keep apart: red often is magenta's."""


def stacked(parts: Sequence[tuple[float, str]], n_cells: int) -> Text:
    """Shares of a whole as one bar, each in its style; what is not zero and fits is seen.

    >>> stacked([(3.0, "red"), (1.0, "blue")], 8).plain
    '████████'
    """
    total = sum(value for value, _ in parts) or 1.0
    text, begin, so_far = Text(no_wrap=True), 0, 0.0
    for i, (value, style) in enumerate(parts):
        so_far += value
        end = round(so_far / total * n_cells)
        text.append(("█", "▓")[i % 2] * (end - begin), style)
        begin = end
    return Text(text.plain.replace("▓", "█"), spans=text.spans)


def split_picture(parts: Mapping[str, float], total_s: float, n_cells: int) -> Text:
    """What takes the step's time, as a bar and a line for each part, the longest first."""
    ranked = sorted(((s, name) for name, s in parts.items() if s > 1e-4 * total_s), reverse=True)
    styles = [PART_STYLES[i % len(PART_STYLES)] for i in range(len(ranked))]
    shown = [(s, style) for (s, _), style in zip(ranked, styles, strict=True)]
    text = stacked(shown, n_cells)
    line = Text("", no_wrap=True)
    for (s, name), style in zip(ranked, styles, strict=True):
        said = f"{name} {s / total_s:.1%}"
        if line.cell_len and line.cell_len + len(said) + 4 > n_cells:
            text.append("\n").append_text(line)
            line = Text("", no_wrap=True)
        line.append("■ ", style).append(f"{said}  ")
    return text.append("\n").append_text(line)


@dataclass(frozen=True)
class Lane:
    """A row of a timeline: what is busy, and when, as (from, to, style) in seconds."""

    name: str
    spans: tuple[tuple[float, float, str], ...]
    said: str = ""


def lanes_picture(lanes: Sequence[Lane], total_s: float, n_cells: int) -> Text:
    """Rows over the same time; a span that takes less than a cell is a thin mark."""
    head, tail = max(len(one.name) for one in lanes), max(len(one.said) for one in lanes)
    room = max(n_cells - head - tail - 2, 8)
    lines = []
    for lane in lanes:
        cells: list[tuple[str, str]] = [("·", "dim")] * room
        for begin_s, end_s, style in lane.spans:
            begin, end = (round(x / total_s * room) for x in (begin_s, end_s))
            if end == begin:
                cells[min(begin, room - 1)] = ("▏", style)
            for i in range(begin, min(end, room)):
                cells[i] = ("█", style)
        line = Text(f"{lane.name:<{head}} ", "dim", no_wrap=True, overflow="crop")
        for char, style in cells:
            line.append(char, style)
        lines.append(line.append(f" {lane.said:>{tail}}", "default"))
    return Text("\n").join(lines)


def phase_lanes(
    shares: Iterable[tuple[str, tuple[int, ...], float]],
    compute_s: Mapping[str, float],
    labels: Sequence[str],
) -> list[Lane]:
    """A step without pipeline: NPUs compute, then wait for dimensions, phase by phase.

    Parameters
    ----------
    shares : label, dimensions and seconds of exposed communication.
    compute_s : of each phase, in order; the phases' names begin the labels of their communication.
    labels : of the dimensions.
    """
    rows: list[list[tuple[float, float, str]]] = [[] for _ in (0, *labels)]
    left, now = list(shares), 0.0
    for i, (phase, seconds) in enumerate([*compute_s.items(), ("", 0.0)]):
        rows[0].append((now, now + seconds, ("cyan", "blue")[i % 2]))
        now += seconds
        for share in [one for one in left if one[0].startswith(phase)]:
            left.remove(share)
            _, dims, taken_s = share
            for dim in dims:
                rows[dim + 1].append((now, now + taken_s, "yellow" if taken_s else "dim"))
            now += taken_s
    waits = [sum(end - begin for begin, end, _ in row) for row in rows]
    said = [f"{x / now:.1%}" if x else "" for x in waits]
    names = ("compute", *(f"waits {label}" for label in labels))
    return [Lane(*one) for one in zip(names, map(tuple, rows), said, strict=True)]


def stage_lanes(
    n_stages: int, n_microbatches: int, pipeline_s: float, bubble_s: float, forward: float
) -> list[Lane]:
    """Equal stages of a pipeline: forward passes fill it, backward passes empty it (C17).

    Stage s of p waits s F at the start, (p - 1 - s)(F + B) before its first backward pass and
    s B at the end: together the bubble (p - 1)(F + B), with the chunks of interleaving smaller.

    Parameters
    ----------
    pipeline_s, bubble_s : from the first to the last pass, and what every stage waits of it.
    forward : share of forward passes in a stage's work.
    """
    unit_s = bubble_s / max(n_stages - 1, 1)
    work_s = pipeline_s - bubble_s
    each_s, lanes = work_s / n_microbatches, []
    for s in range(n_stages):
        begin = s * unit_s * forward
        n_first = min(n_stages - s, n_microbatches)
        filled = begin + n_first * each_s * forward
        again = filled + (n_stages - 1 - s) * unit_s
        end = pipeline_s - s * unit_s * (1 - forward)
        emptying = max(end - n_first * each_s * (1 - forward), again)
        spans = ((begin, filled, "cyan"), (again, emptying, "blue"), (emptying, end, "magenta"))
        lanes.append(Lane(f"stage {s + 1}", spans))
    if n_stages > _MOST_STAGES:
        gap = Lane("...", ())
        lanes = [*lanes[: _MOST_STAGES // 2], gap, *lanes[-_MOST_STAGES // 2 + 1 :]]
    return lanes
