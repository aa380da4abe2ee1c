"""Bandwidth of every dimension as bars that keys and clicks change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.widget import Widget

from libra_planner.tui.session import Bandwidth
from libra_planner.units import BYTES_PER_S_PER_GBPS, format_bandwidth

_EIGHTHS = " ▏▎▍▌▋▊▉"
_BUTTONS = " [-][+]"
_LEAST_BAR = 4
_WIDE = 64
_NOTE_CELLS = 12


@dataclass(frozen=True)
class DimensionRow:
    """What a bar says beside its length: texts for people."""

    label: str
    tier: str
    cost_share: str
    note: str


def bar(fraction: float, n_cells: int) -> str:
    """A bar in eighths of a cell.

    >>> bar(0.5, 4), bar(0.3, 4)
    ('██  ', '█▎  ')
    """
    eighths = round(min(max(fraction, 0.0), 1.0) * n_cells * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(n_cells)


def step_GBps(bandwidth_GBps: Bandwidth) -> float:
    """A round step of about a hundredth of the total.

    >>> step_GBps((125.0,) * 4), step_GBps((0.5, 0.2))
    (5.0, 0.005)
    """
    total = sum(bandwidth_GBps)
    if total <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(total / 100) + 1e-9)
    leading = total / 100 / power
    return float(f"{power * (5 if leading >= 5 else 2 if leading >= 2 else 1):.1g}")


def changed_bandwidth(bandwidth_GBps: Bandwidth, dim: int, by: float) -> Bandwidth:
    """A design with one dimension a number of round steps up or down.

    >>> changed_bandwidth((125.0, 125.0), 1, -3)
    (125.0, 119.0)
    """
    values = list(bandwidth_GBps)
    values[dim] = round(max(0.0, values[dim] + by * step_GBps(bandwidth_GBps)), 9)
    return tuple(values)


class Bandwidths(Widget, can_focus=True):
    """The bars.

    Parameters
    ----------
    stepped : called with a dimension and by how many round steps its bandwidth should change. At
        once and not by a message: the next key may come before that is read.
    typed : called with the dimension whose value a person wants to type.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "choose(-1)", "Dimension before", show=False),
        Binding("down,j", "choose(1)", "Next dimension", show=False),
        Binding("plus,equals_sign,right", "change(1)", "More", key_display="+", show=True),
        Binding("minus,underscore,left", "change(-1)", "Less", key_display="-", show=True),
        Binding("greater_than_sign,full_stop", "resize_step(1)", "Larger step", show=False),
        Binding("less_than_sign,comma", "resize_step(-1)", "Smaller step", show=False),
        Binding("enter", "type", "Type", show=True),
    ]

    def __init__(self, stepped: Callable[[int, float], None], typed: Callable[[int], None]) -> None:
        super().__init__(id="bandwidths")
        self._stepped, self._typed = stepped, typed
        self.border_title = "Bandwidth per NPU"
        self._rows: tuple[DimensionRow, ...] = ()
        self._values: Bandwidth = ()
        self._dim, self._factor = 0, 1.0

    def update(self, rows: tuple[DimensionRow, ...], bandwidth_GBps: Bandwidth) -> None:
        """Show a design."""
        taller = len(rows) != len(self._rows)
        self._rows, self._values = rows, bandwidth_GBps
        self._dim = min(self._dim, max(len(rows) - 1, 0))
        self.border_subtitle = f"step {self.step:g} GB/s"
        self.refresh(layout=taller)

    @property
    def step(self) -> float:
        """What + and - change, GB/s."""
        return step_GBps(self._values) * self._factor

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """A row each: asked for while lines have the width before, at which they would wrap."""
        return len(self._rows) + 1

    def render(self) -> Text:
        if not self._rows:
            return Text("no valid plan yet", "italic")
        wide, width = self.size.width >= _WIDE, self.size.width
        names = [f"{row.label} {row.tier}" for row in self._rows]
        speeds = (format_bandwidth(value * BYTES_PER_S_PER_GBPS) for value in self._values)
        numbers = [speed.removesuffix(" GB/s") for speed in speeds]
        cells = max(map(len, names)), max(map(len, numbers))
        fixed = 2 + cells[0] + 1 + 1 + cells[1] + 6 + len(_BUTTONS) + (_NOTE_CELLS if wide else 0)
        n_cells = max(_LEAST_BAR, width - fixed)
        heading = Text(no_wrap=True, overflow="crop", style="dim")
        heading.append(f"{'':{3 + cells[0] + n_cells}} {'GB/s':>{cells[1]}}  cost")
        heading.append(f" {'step waits':<{_NOTE_CELLS - 1}}" if wide else "")
        top = max(self._values, default=0.0) or 1.0
        lines = [heading]
        for i, name in enumerate(names):
            drawn = bar(self._values[i] / top, n_cells)
            lines.append(self._line(i, name.ljust(cells[0]), drawn, numbers[i].rjust(cells[1])))
        return Text("\n").join(lines)

    def _line(self, i: int, name: str, drawn: str, number: str) -> Text:
        row, chosen = self._rows[i], i == self._dim
        line = Text(no_wrap=True, overflow="crop")
        line.append(f"{'▶' if chosen else ' '} {name} ", "bold" if chosen else "")
        line.append(drawn, "cyan" if i % 2 == 0 else "dark_cyan")  # Rows stay apart.
        line.append(f" {number}", "bold" if chosen else "")
        line.append(f" {row.cost_share:>5}")
        if self.size.width >= _WIDE:
            line.append(f" {row.note:<{_NOTE_CELLS - 1}.{_NOTE_CELLS - 1}}", "yellow")
        line.append(_BUTTONS, "reverse" if chosen and self.has_focus else "")
        return line

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or not 1 <= offset.y <= len(self._rows):
            return
        self._dim = offset.y - 1
        line = self.render().split("\n")[1].cell_len
        if line - 3 <= offset.x < line:
            self.action_change(1)
        elif line - 6 <= offset.x < line - 3:
            self.action_change(-1)
        elif event.chain == 2:
            self.action_type()
        self.refresh()

    def action_choose(self, by: int) -> None:
        """Choose another dimension."""
        if self._rows:
            self._dim = (self._dim + by) % len(self._rows)
            self.refresh()

    def action_change(self, sign: int) -> None:
        """Change the bandwidth of the chosen dimension by a step."""
        if self._values:
            self._stepped(self._dim, sign * self._factor)

    def action_resize_step(self, by: int) -> None:
        """Change the step tenfold."""
        self._factor = min(max(self._factor * 10.0**by, 1e-3), 1e2)
        self.border_subtitle = f"step {self.step:g} GB/s"

    def action_type(self) -> None:
        """Type a value, or all of them separated by commas."""
        if self._values:
            self._typed(self._dim)
