"""The bandwidth of every dimension as bars that keys and clicks change, alone or in trade."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.widget import Widget

from libra_planner.tui.session import LOADING, Bandwidth
from libra_planner.units import BYTES_PER_S_PER_GBPS, format_bandwidth, format_time

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem

_BUTTONS = " [-][+]"
_LEAST_BAR = 4
_WAITS, _CURVE = "step waits", "T by GB/s"
HELD = ("", "total", "cost")
"""What stays when a bar changes: nothing, the sum of bandwidths, the network's cost."""


@dataclass(frozen=True)
class DimensionRow:
    """What a bar says beside its length: texts for people."""

    label: str
    tier: str
    cost_share: str
    note: str
    taper: str = ""
    curve: str = ""


def dimension_rows(
    problem: Problem, evaluation: Evaluation | None, bandwidth_GBps: Bandwidth
) -> Iterator[DimensionRow]:
    """Beside the bar of every dimension: its taper; with figures its cost and what waits for it."""
    from libra_planner.tui.pictures.designs import curves
    from libra_planner.views.plan import taper_texts

    shapes = curves(problem, evaluation.bandwidth_bytes_per_s) if evaluation is not None else []

    tapers = taper_texts(problem.topology, bandwidth_GBps)
    for i, dimension in enumerate(problem.topology.dimensions):
        cost_share = waits = ""
        if evaluation is not None:
            waits_s = sum(share.seconds for share in evaluation.shares if i in share.dims)
            cost_usd = evaluation.cost_usd_by_dim[i]
            cost_share = f"{cost_usd / (evaluation.network_cost_usd or 1.0):.0%}"
            waits = format_time(waits_s) if waits_s else ""
        label = problem.topology.labels[i]
        yield DimensionRow(
            label, dimension.tier, cost_share, waits, tapers[i], shapes[i] if shapes else ""
        )


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


def traded_bandwidth(
    bandwidth_GBps: Bandwidth, dims: tuple[int, int], by: float, prices: Sequence[float]
) -> Bandwidth | None:
    """One dimension up or down, another the other way, so that sum(price * bandwidth) stays.

    The step is cut where the other one would fall below 0; ``None`` where one has no price.

    >>> traded_bandwidth((100.0, 100.0), (0, 1), 5, (1.0, 1.0))
    (105.0, 95.0)
    >>> traded_bandwidth((100.0, 100.0), (0, 1), 5, (2.0, 1.0))
    (105.0, 90.0)
    >>> traded_bandwidth((100.0, 3.0), (0, 1), 5, (1.0, 1.0))
    (103.0, 0.0)
    """
    (up, down), values = dims, list(bandwidth_GBps)
    if not (prices[up] and prices[down]) or up == down:
        return None
    ratio = prices[up] / prices[down]
    change = max(min(by, values[down] / ratio), -values[up])
    values[up], values[down] = values[up] + change, max(values[down] - change * ratio, 0.0)
    return tuple(values)


class Bandwidths(Widget, can_focus=True):
    """The bars.

    Parameters
    ----------
    stepped : called with a dimension, the round steps by which its bandwidth should change, what is
        held and the dimension that gives it. At once and not by a message: the next key may come
        before that is read.
    typed : called with the dimension whose value a person wants to type.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "choose(-1)", "Dimension before", show=False),
        Binding("down,j", "choose(1)", "Next dimension", show=False),
        Binding("plus,equals_sign,right", "change(1)", "More", key_display="+", show=True),
        Binding("minus,underscore,left", "change(-1)", "Less", key_display="-", show=True),
        Binding("greater_than_sign,full_stop", "resize_step(1)", "Larger step", show=False),
        Binding("less_than_sign,comma", "resize_step(-1)", "Smaller step", show=False),
        Binding("h", "hold", "Hold", show=True),
        Binding("enter", "type", "Type", show=True),
    ]

    def __init__(
        self,
        stepped: Callable[[int, float, str, int], None],
        typed: Callable[[int], None],
    ) -> None:
        super().__init__(id="bandwidths")
        self._stepped, self._typed = stepped, typed
        self.border_title = "Bandwidth per NPU"
        self._rows: tuple[DimensionRow, ...] = ()
        self._values: Bandwidth = ()
        self._dim, self._factor = 0, 1.0
        self._held, self._partner = HELD[0], 1
        self._no_rows = LOADING

    def update(self, rows: tuple[DimensionRow, ...], bandwidth_GBps: Bandwidth) -> None:
        """Show a design."""
        taller = len(rows) != len(self._rows)
        self._rows, self._values = rows, bandwidth_GBps
        self._dim = min(self._dim, max(len(rows) - 1, 0))
        self._say_step()
        self.refresh(layout=taller)

    def show_none(self, why: str) -> None:
        """Say why there is no design."""
        self._no_rows = why
        self.refresh()

    def _say_step(self) -> None:
        text = f"step {self.step:g} GB/s"
        if self.partner is not None:
            text += f", {self._held} held: {self._rows[self.partner].label} gives (h)"
        self.border_subtitle = text

    @property
    def partner(self) -> int | None:
        """The dimension that gives what the chosen one takes; ``None`` where nothing is held."""
        if not self._held or len(self._rows) < 2:
            return None
        other = min(self._partner, len(self._rows) - 1)
        return other if other != self._dim else (self._dim + 1) % len(self._rows)

    @property
    def step(self) -> float:
        """What + and - change, GB/s."""
        return step_GBps(self._values) * self._factor

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """A row each: asked for while lines have the width before, at which they would wrap."""
        return len(self._rows) + 1

    def render(self) -> Text:
        if not self._rows:
            return Text(self._no_rows, "italic")
        from libra_planner.views.renderers.terminal import bar

        names = [f"{row.label} {row.tier} {row.taper}".rstrip() for row in self._rows]
        speeds = (format_bandwidth(value * BYTES_PER_S_PER_GBPS) for value in self._values)
        numbers = [speed.removesuffix(" GB/s") for speed in speeds]
        cells = max(map(len, names)), max(map(len, numbers))
        fixed = 2 + cells[0] + 1 + 1 + cells[1] + 5 + len(_BUTTONS)
        waits, curve = self._columns(self.size.width - fixed - _LEAST_BAR)
        n_cells = max(_LEAST_BAR, self.size.width - fixed - waits - curve)
        heading = Text(no_wrap=True, overflow="crop", style="dim")
        heading.append(f"{'':{3 + cells[0] + n_cells}} {'GB/s':>{cells[1]}} cost")
        heading.append(f" {_WAITS:<{waits - 1}}" if waits else "")
        heading.append(f" {_CURVE}" if curve else "")
        top = max(self._values, default=0.0) or 1.0
        lines = [heading]
        for i, name in enumerate(names):
            drawn = bar(self._values[i] / top, n_cells)
            line = self._line(i, name.ljust(cells[0]), drawn, numbers[i].rjust(cells[1]))
            line.append(f" {self._rows[i].note:<{waits - 1}}" if waits else "", "yellow")
            line.append(f" {self._rows[i].curve:<{curve - 1}}" if curve else "", "green")
            lines.append(line.append(_BUTTONS, "reverse" if self._is_keyed(i) else ""))
        return Text("\n").join(lines)

    def _columns(self, room: int) -> tuple[int, int]:
        """Cells of what waits and of the curves, 0 for a column without room: bars give theirs."""
        waits = 1 + max(len(_WAITS), *(len(row.note) for row in self._rows))
        curve = 1 + max(len(_CURVE), *(len(row.curve) for row in self._rows))
        has_curves = any(row.curve for row in self._rows) and room >= waits + curve
        return (waits if room >= waits else 0), (curve if has_curves else 0)

    def _is_keyed(self, i: int) -> bool:
        """Whether + and - change a row."""
        return i == self._dim and self.has_focus

    def _line(self, i: int, name: str, drawn: str, number: str) -> Text:
        row, chosen = self._rows[i], i == self._dim
        line = Text(no_wrap=True, overflow="crop")
        mark = "▶" if chosen else "◁" if i == self.partner else " "
        line.append(f"{mark} {name} ", "bold" if chosen else "")
        line.append(drawn, "cyan" if i % 2 == 0 else "dark_cyan")  # Rows stay apart.
        line.append(f" {number}", "bold" if chosen else "")
        return line.append(f" {row.cost_share:>4}")

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or not 1 <= offset.y <= len(self._rows):
            return
        self._choose(offset.y - 1)
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
            self._choose((self._dim + by) % len(self._rows))

    def _choose(self, dim: int) -> None:
        """Choose a dimension; the one chosen before gives what it takes."""
        if dim != self._dim:
            self._partner, self._dim = self._dim, dim
        self._say_step()
        self.refresh()

    def action_hold(self) -> None:
        """Hold the total bandwidth, then the cost, then nothing: one bar up, another down."""
        self._held = HELD[(HELD.index(self._held) + 1) % len(HELD)]
        self._say_step()
        self.refresh()

    def action_change(self, sign: int) -> None:
        """Change the bandwidth of the chosen dimension by a step."""
        if self._values:
            partner = self.partner
            other = self._dim if partner is None else partner
            self._stepped(self._dim, sign * self._factor, self._held, other)

    def action_resize_step(self, by: int) -> None:
        """Change the step tenfold."""
        self._factor = min(max(self._factor * 10.0**by, 1e-3), 1e2)
        self._say_step()

    def action_type(self) -> None:
        """Type a value, or all of them separated by commas."""
        if self._values:
            self._typed(self._dim)
