"""The application without its actions: the open plan, its figures, screens, errors."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Static

from libra_planner.tui.actions import ACTIONS, SCREENS
from libra_planner.tui.dialogs import Palette, Panel
from libra_planner.tui.painting import Backdrop, LastWords, Unheard
from libra_planner.tui.pane import OwnKey, Pane, commands, pane_class
from libra_planner.tui.plans import Bandwidth, Reading, read_plan
from libra_planner.tui.processes import get_ready
from libra_planner.tui.screens.design import DesignPane
from libra_planner.tui.session import Edits, Session
from libra_planner.tui.widgets.bars import KeyBar, TabBar
from libra_planner.tui.work import (
    FIGURES,
    OTHERS,
    Finished,
    Progress,
    Ticket,
    Workshop,
    error_text,
    load,
)


def of_any_bytes(driver: type[Driver]) -> type[Driver]:
    """Textual's driver, which bytes that are not UTF-8 do not end: they are no keys."""
    if sys.platform == "win32":
        return driver
    from textual.drivers.linux_driver import LinuxDriver

    class AnyBytesDriver(LinuxDriver):
        """Begins to read again after bytes that are no text."""

        def run_input_thread(self) -> None:
            while not self.exit_event.is_set():
                with suppress(UnicodeDecodeError):
                    super().run_input_thread()

    return AnyBytesDriver if driver is LinuxDriver else driver


if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation

_DARK = "textual-dark"
_UNHEARD = Unheard()
_TICK_S = 0.25
FRAME_S = 0.025
"""In which Textual, at 60 pictures a second, has painted what changed."""
_CALM_S = 0.3
"""In which the first figures are on screen."""


class CockpitCore(App[int]):
    """The cockpit of one plan at a time.

    Parameters
    ----------
    path : the plan to open.
    """

    TITLE = "libra-planner"
    CSS = """
    Screen { layout: vertical; }
    ContentSwitcher { height: 1fr; }
    #status { height: 1; background: $panel; padding: 0 1; }
    DataTable { scrollbar-size: 1 1; }
    OptionList { min-width: 10; min-height: 3; }
    VerticalScroll { scrollbar-size: 1 1; }
    .-wide #frontier-split { layout: horizontal; }
    .-wide #frontier-left { height: 1fr; width: 3fr; }
    .-wide #frontier-list { height: 1fr; width: 2fr; min-width: 62; }
    .-very-wide #fabric-split { layout: horizontal; overflow-y: hidden; }
    .-very-wide #fabric-left, .-very-wide #fabric-right { height: 1fr; width: 1fr; }
    .-very-wide FabricPane DataTable { max-height: 24; }
    """
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key, action.call, action.name, show=action.in_footer and i == 0)
            for action in ACTIONS
            for i, key in enumerate(action.keys.split(","))
        ),
        Binding("escape", "unfocus", "Leave field", show=False),
    ]

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.session = Session(path)
        self.workshop = Workshop(self)
        self.evaluation: Evaluation | None = None
        self.no_figures = "reading the plan ..."
        self._said = self._status = ""
        self._progress = ""
        self._holds: Callable[[], bool] = lambda: True
        self.animation_level = "none"
        self.error_console = LastWords(lambda: self.session.edits.settings)
        get_ready()  # Not later: Textual is about to take the terminal from sys.stderr.

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), _UNHEARD]

    def get_driver_class(self) -> type[Driver]:
        return of_any_bytes(super().get_driver_class())

    def get_default_screen(self) -> Screen[None]:
        return Backdrop(id="_default")

    def compose(self) -> ComposeResult:
        yield TabBar()
        with ContentSwitcher(initial=SCREENS[0]):
            yield DesignPane(id=SCREENS[0])
        yield Static(id="status")
        yield KeyBar()

    def on_mount(self) -> None:
        self.theme = _DARK
        self.set_interval(_TICK_S, self._show_status)
        self._show_tabs()
        self.call_after_refresh(self.begin)

    def begin(self) -> None:
        """Read the plan once the first picture stands."""
        self.read(opening=True)

    # The plan

    def read(self, *, opening: bool = False) -> None:
        """Read the plan as it stands, beside the interface."""
        path, settings = self.session.path, self.session.edits.settings

        def call(ticket: Ticket) -> tuple[Reading, Bandwidth | None]:
            from libra_planner.tui.files import left_with

            load(FIGURES, ticket)
            return read_plan(path, settings), left_with(path) if opening else None

        self.workshop.start("read", "reading the plan", call=call, done=self._accept)

    def _accept(self, found: tuple[Reading, Bandwidth | None]) -> None:
        reading, left = found
        first = self.session.reading is None
        self.session.accept(reading, left)
        self.changed()
        if first:
            self.pane.take_focus()
            self.set_timer(_CALM_S, self.warm_up)

    def warm_up(self) -> None:
        """Load the other screens, and what comes back to them, while nobody waits for it."""
        call = partial(load, OTHERS)
        self.workshop.start("warm", "", call=call, done=lambda _: None)

    async def _make(self, name: str) -> None:
        """Make a screen, unless it is there."""
        if not any(pane.id == name for pane in self._switcher.children):
            await self._switcher.add_content(pane_class(name)(id=name), id=name)

    @property
    def _switcher(self) -> ContentSwitcher:
        return self.screen_stack[0].query_one(ContentSwitcher)

    def apply_edit(self, key: str, text: str) -> None:
        """Give a value of the plan."""
        self.session.edit(key, text)
        self.reread()

    def reread(self) -> None:
        """The plan's values changed: what was computed from them is stale."""
        for kind in ("optimize", "frontier", "check"):
            self.workshop.cancel(kind)
        self._show_tabs()
        self.design.show_proof()
        self.read()

    def change_bandwidth(self, bandwidth_GBps: Bandwidth, subject: str | None = None) -> None:
        """Put another design on screen."""
        self.session.set_bandwidth(bandwidth_GBps, subject)
        self._evaluate()
        self._show_tabs()
        if isinstance(self.pane, DesignPane):
            self.pane.show_figures()
        else:
            self.pane.show_session()

    def changed(self) -> None:
        """Something about the session changed: show it."""
        self._evaluate()
        self._show_tabs()
        self.pane.show_session()

    def _evaluate(self) -> None:
        """Exact figures of the design on screen; a millisecond."""
        from libra_planner.errors import PlannerError

        self.evaluation, self.no_figures = None, "no figures: the plan has faults"
        try:
            self.evaluation = self.session.evaluation()
        except PlannerError as error:
            self.no_figures = str(error)

    # Screens

    @property
    def pane(self) -> Pane:
        """The screen that is seen."""
        return self._switcher.query_one(f"#{self._switcher.current}", Pane)

    @property
    def design(self) -> DesignPane:
        """The first screen."""
        return self.screen_stack[0].query_one(DesignPane)

    async def action_show(self, name: str) -> None:
        """Go to a screen; it is made when it is first wanted."""
        self.design.flush()
        self._show_tabs(name)
        await asyncio.sleep(FRAME_S)  # The tab answers the key, the screen follows.
        await self._make(name)
        self._switcher.current = name
        self._show_tabs()
        self.pane.show_session()
        self.pane.take_focus()

    async def on_tab_bar_chosen(self, event: TabBar.Chosen) -> None:
        await self.action_show(event.screen_name)

    def _show_tabs(self, name: str | None = None) -> None:
        """The name of the plan, and which screen is seen, or about to be."""
        session = self.session
        mark = " (edited)" if session.dirty else ""
        bar = self.screen_stack[0].query_one(TabBar)
        bar.update(name or self.pane.id or "", f"{session.path.name}{mark}")
        self._show_status()  # Edits may have ended what it says.

    # Status

    def say(self, text: str, holds: Callable[[], bool] = lambda: True) -> None:
        """Put a message on the status line, to stand there as long as it holds."""
        self._said, self._holds = text, holds
        self._show_status()

    def _show_status(self) -> None:
        running = [ticket for ticket in self.workshop.running() if ticket.label]
        if running:
            text = f"{running[-1].label} ...{self._progress}  (x cancels)"
        else:
            text, self._progress = self._said if self._holds() else "", ""
        if text != self._status and self.is_running and self.screen_stack:
            self._status = text
            self.screen_stack[0].query_one("#status", Static).update(
                Text(text, no_wrap=True), layout=False
            )

    def on_progress(self, event: Progress) -> None:
        if event.ticket in self.workshop.running():
            self._progress = f" {event.done} of {event.n}"  # The next tick shows it.

    def on_finished(self, event: Finished) -> None:
        if not self.screen_stack:  # The cockpit is being left.
            return
        error = self.workshop.finish(event)
        self._show_status()
        if error is not None:
            self.show_error(event.ticket.label or event.ticket.kind, error)

    def show_error(self, title: str, error: Exception) -> None:
        """A readable panel; work that failed changes nothing."""
        self.say(f"{title}: failed")
        self.push_screen(Panel(f"{title}: failed", error_text(error), wide=True))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action, keys of the screens, and Textual's own."""
        for action in ACTIONS:
            call = partial(self.call_later, self.run_action, action.call)
            yield SystemCommand(action.name, action.text, call)
        yield from commands(
            self.pane.id or "", lambda key: partial(self.call_later, self._run_own, key)
        )
        for command in super().get_system_commands(screen):
            if command.title not in ("Quit", "Keys"):
                yield command

    def action_command_palette(self) -> None:
        """Textual's list of all actions, over the screen."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    async def _run_own(self, key: OwnKey) -> None:
        """Do what a key of a screen does, on that screen."""
        if self.pane.id != key.screen:
            await self.action_show(key.screen)
        await self.run_action(key.action, key.target(self.pane))

    # Opening

    def open_plan(self, path: Path, edits: Edits | None = None, origin: str = "") -> None:
        """Open another plan; pins stay."""
        self.session = self.session.followed_by(path, edits or Edits())
        self.session.came_from(origin)
        self.evaluation, self.no_figures = None, "reading the plan ..."
        self.workshop.cancel_all()
        self.read(opening=True)
