"""What keeps Textual from painting more than a key has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.color import Color
from textual.filter import LineFilter
from textual.reactive import Reactive
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.widget import Widget

from libra_planner.plain_text import without_controls
from libra_planner.tui.files import state_folder


class Backdrop(Screen[None]):
    """The screen behind all panels: a change of focus paints what it concerns, not everything.

    Panels have no breakpoints: theirs would lay them out, and paint what is behind them, once more.
    """

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it for instances.
        (0, "-narrow"),
        (110, "-wide"),
        (150, "-very-wide"),
    ]
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)


class Darker(BackgroundScreen):
    """What is behind a panel, with its colour mixed in: once for each style and not each piece."""

    @classmethod
    def process_segments(cls, segments: Iterable[Segment], color: Color) -> Iterator[Segment]:
        mixed: dict[Style | None, Style | None] = {}
        for text, style, control in segments:
            if style not in mixed:
                one = super().process_segments([Segment("", style)], color)
                mixed[style] = next(iter(one)).style
            yield Segment(text, mixed[style], control)


class Over:
    """What is over a screen has that darker behind it, and is painted once when it comes.

    Mixed in before a screen, and none itself: Textual takes rules from the first base that is one.
    """

    def on_screen_resume(self: Any) -> None:
        batch = ExitStack()  # The size comes next, and only then does the panel fit it.
        batch.enter_context(self.app.batch_update())
        self.call_next(batch.close)

    def render(self) -> RenderableType:
        behind = super().render()  # type: ignore[misc]
        return (
            Darker(behind.screen, behind.color) if isinstance(behind, BackgroundScreen) else behind
        )


class Unheard(LineFilter):
    """Leaves out what a terminal would obey, wherever a text came from."""

    def apply(self, segments: list[Segment], _: Color) -> list[Segment]:
        """Segments of the same widths."""
        return [Segment(without_controls(one.text), one.style, one.control) for one in segments]


class LastWords(Console):
    """Where Textual prints a fault of the cockpit's own: in a file, and here only that it is.

    Parameters
    ----------
    settings : gives the edits that were not saved, as ``--set`` takes them.
    """

    def __init__(self, settings: Callable[[], Iterable[str]]) -> None:
        super().__init__(markup=False, highlight=False, stderr=True)
        self._edits = settings

    def print(self, *objects: Any, **_options: Any) -> None:
        edits = "".join(f"\n  --set {setting!r}" for setting in self._edits())
        kept = f"\nEdits that were not saved, for the command line:{edits}" if edits else ""
        fault = "libra-planner tui: stopped by a fault of its own"
        super().print(Text(f"{fault}. {_written_down(objects)}{kept}"))


def _written_down(objects: Iterable[Any]) -> str:
    """Where what Textual says of a fault is written."""
    log = state_folder() / "crash.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as file:
            Console(file=file, color_system=None).print(*objects)
    except OSError:
        return "Details could not be written down."
    return f"Details are in {log}."
