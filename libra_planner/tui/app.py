"""The application: the open plan, its figures and screens, what every action does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Event, Key
from textual.filter import LineFilter
from textual.screen import ModalScreen, Screen
from textual.widgets import ContentSwitcher

from libra_planner.errors import PlannerError
from libra_planner.tui import work
from libra_planner.tui.actions import ACTIONS, SCREENS, OwnKey, commands, pane_class
from libra_planner.tui.dialogs import Palette, Panel, help_text
from libra_planner.tui.disk.files import PlanFiles, left_with
from libra_planner.tui.disk.readings import Reading, plan_values, read_plan
from libra_planner.tui.screens.design import DesignPane
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.screens.plan_fields import NEW_RULE
from libra_planner.tui.session import (
    NO_FIGURES,
    Bandwidth,
    Edits,
    Optimum,
    Pin,
    Session,
    best_design,
)
from libra_planner.tui.starts import equal_split_GBps, equal_words
from libra_planner.tui.terminal import KeysInTurn, LastWords, Unheard, any_bytes_driver
from libra_planner.tui.widgets import Backdrop, KeyBar, StatusLine, TabBar

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation

FRAME_S = 0.025
"""In which Textual, at 60 pictures a second, has painted what changed."""
_CALM_S = 0.3
"""In which the first figures are on screen."""


class Cockpit(KeysInTurn):
    """The cockpit of one plan at a time.

    Parameters
    ----------
    path : the plan to open.
    """

    TITLE = "libra-planner"
    CSS_PATH = Path(__file__).with_name("cockpit.tcss")
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
        self.files = PlanFiles(self)
        self.workshop = work.Workshop(self)
        self.evaluation: Evaluation | None = None
        self.no_figures = "reading the plan ..."
        self.animation_level = "none"
        self._waiting: list[Callable[[], object]] = []
        self._n_shown = 0
        self.error_console = LastWords(lambda: self.session.edits.settings)
        work.get_ready()  # Not later: Textual is about to take the terminal from sys.stderr.

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), Unheard()]

    def get_driver_class(self) -> type[Driver]:
        return any_bytes_driver(super().get_driver_class())

    def get_default_screen(self) -> Screen[None]:
        return Backdrop(id="_default")

    def compose(self) -> ComposeResult:
        yield TabBar()
        with ContentSwitcher(initial=SCREENS[0]):
            yield DesignPane(id=SCREENS[0])
        yield StatusLine(self.workshop.labels, lambda: bool(self.session.disk.changed))
        yield KeyBar()

    def on_mount(self) -> None:
        self.theme = "textual-dark"
        self._show_tabs()
        self.call_after_refresh(partial(self.read, opening=True))  # The first picture stands.

    async def on_event(self, event: Event) -> None:
        """Look at the plan's files before a key is taken: others may have changed them."""
        if isinstance(event, Key) and self.session.disk.look():
            self.say(self.session.disk_words, lambda: bool(self.session.disk.changed))
        await super().on_event(event)

    # The plan

    def read(self, *, opening: bool = False) -> None:
        """Read the plan as it stands, beside the interface."""
        session = self.session
        path, settings, text = session.path, session.edits.settings, session.text

        def call(ticket: work.Ticket) -> tuple[Reading, Bandwidth | None]:
            work.load(work.FIGURES, ticket)
            reading = read_plan(path, settings, ticket.progress, text)
            return reading, left_with(path, reading.fingerprint) if opening else None

        self.workshop.start("read", "reading the plan", call=call, done=self._accept)

    def _accept(self, found: tuple[Reading, Bandwidth | None]) -> None:
        reading, left = found
        first = self.session.reading is None
        self.session.accept(reading, left)
        self.changed()
        if names := self.session.others_read:
            self.say(f"{', '.join(names)} changed on disk: this is what it says now")
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one()
        if first:
            self.pane.take_focus()
            # The other screens, and what comes back to them, while nobody waits for it.
            warm_up = partial(self.workshop.start, "warm", "", call=partial(work.load, work.OTHERS))
            self.set_timer(_CALM_S, warm_up)

    def when_read(self, then: Callable[[], object]) -> None:
        """Do what a key asks for once the plan is read: it is being read now."""
        self._waiting.append(then)
        if not any(ticket.kind == "read" for ticket in self.workshop.running()):
            self.read()

    def apply_edit(self, key: str, text: str) -> None:
        """Give a value of the plan."""
        self.session.edit(key, text)
        self.reread()

    def reread(self) -> None:
        """The plan's values changed: what was computed from them is stale."""
        for kind in ("optimize", "frontier", "check", "search"):
            self.workshop.cancel(kind)
        self._show_tabs()
        self.design.show_proof()
        self.read()

    def take_strategy(self, degrees: str, bandwidth_GBps: Bandwidth, origin: str) -> None:
        """Make degrees and a design those of the plan."""
        self.session.edit("parallelism", degrees)
        self.session.change(Edits(self.session.edits.settings, bandwidth_GBps), "parallelism")
        self.session.came_from(origin)
        self.reread()
        self.say_of_edit(f"took {origin} into the plan; 1 shows it, u takes it back")

    def change_bandwidth(self, bandwidth_GBps: Bandwidth, subject: str | None = None) -> None:
        """Put another design on screen."""
        self.session.set_bandwidth(bandwidth_GBps, subject)
        self.changed(only_figures=True)

    def changed(self, *, only_figures: bool = False) -> None:
        """Something about the session changed: show it."""
        self.evaluation, self.no_figures = None, NO_FIGURES
        try:
            self.evaluation = self.session.evaluation()  # A millisecond.
        except PlannerError as error:
            self.no_figures = str(error)
        self._show_tabs()
        if only_figures and isinstance(self.pane, DesignPane):
            self.pane.show_figures()
        else:
            self.pane.show_session()

    def open_plan(self, path: Path, edits: Edits | None = None, origin: str = "") -> None:
        """Open another plan; pins stay."""
        self.session = self.session.followed_by(path, edits or Edits())
        self.session.came_from(origin)
        self.evaluation, self.no_figures, self._waiting = None, "reading the plan ...", []
        self.workshop.cancel_all()
        self.read(opening=True)

    def load_pin(self, pin: Pin) -> None:
        """Go back to a pinned design and its plan."""
        text = self.session.text if pin.path == self.session.path else None
        settings = pin.settings_over(plan_values(pin.path, (), text))
        edits, said = Edits(settings, pin.bandwidth_GBps), f"loaded {pin.name}"
        if pin.path == self.session.path:
            self.session.change(edits)
            self.session.came_from(pin.called)
            self.reread()
            self.say(said)
        else:
            self.guard(lambda: self.files.open(pin.path, edits, pin.called, said=said))

    # Screens

    @property
    def _switcher(self) -> ContentSwitcher:
        return self.screen_stack[0].query_one(ContentSwitcher)

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
        if not any(pane.id == name for pane in self._switcher.children):
            await self._switcher.add_content(pane_class(name)(id=name), id=name)
        self._n_shown += self._switcher.current != name
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
        self._status.show()  # Edits may have ended what it says.

    @property
    def folder(self) -> Path:
        """Where what belongs to the plan is written."""
        return self.files.folder

    # What is said and asked

    @property
    def _status(self) -> StatusLine:
        return self.screen_stack[0].query_one(StatusLine)

    def say(self, text: str, holds: Callable[[], bool] | None = None) -> None:
        """Put a message on the status line, as long as it holds, else until the screen changes."""
        if self.is_running and self.screen_stack:
            n_shown = self._n_shown
            self._status.say(text, holds or (lambda: self._n_shown == n_shown))

    def say_of_edit(self, text: str) -> None:
        """Say something of the latest edit, as long as it is that and the screen stays."""
        target, n_shown = self.session.undo_target, self._n_shown
        self.say(text, lambda: self.session.undo_target is target and self._n_shown == n_shown)

    def ask(
        self,
        dialog: ModalScreen[str | None],
        then: Callable[[str], None],
        otherwise: Callable[[], None] = lambda: None,
    ) -> None:
        """Show a panel and hand its answer on, if there is one."""

        def done(answer: str | None) -> None:
            if answer is None:
                otherwise()
            else:
                then(answer)

        self.push_screen(dialog, done)

    def guard(self, then: Callable[[], None]) -> None:
        """Ask what to do with unsaved edits first."""
        self.design.flush()
        self.files.guard(then)

    def on_progress(self, event: work.Progress) -> None:
        if event.ticket in self.workshop.running():
            self._status.progress(event.ticket.label, event.words)
            self.pane.follow(event.ticket.kind, event.words)
            if event.part is not None:
                event.ticket.partly(event.part)

    def on_finished(self, event: work.Finished) -> None:
        if not self.screen_stack or not self.screen_stack[0].query(StatusLine):  # Being left.
            return
        error = self.workshop.finish(event)
        self._status.show()
        if error is not None:
            self.show_error(event.ticket.label or event.ticket.kind, error)

    def show_error(self, title: str, error: Exception) -> None:
        """A readable panel; work that failed changes nothing."""
        self.say(f"{title}: failed")
        self.push_screen(Panel(f"{title}: failed", work.error_text(error), wide=True))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action, keys of the screens, and Textual's own."""
        for action in ACTIONS:
            call = partial(self.call_later, self.run_action, action.call)
            yield SystemCommand(action.name, action.text, call)
        run = partial(partial, self.call_later, self._run_own)
        yield from commands(self.pane.id or "", run)
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

    # Design

    def action_optimize(self) -> None:
        """Find the certified best design."""
        problem = self._current_problem(self.action_optimize)
        if problem is None:
            return
        call, it = partial(work.run_apart, partial(best_design, problem)), self.session.fingerprint
        done, failed = partial(self._optimized, it), partial(self.design.not_optimized, it)
        self.workshop.start("optimize", "optimising", call=call, done=done, failed=failed)
        self.say("")

    def _optimized(self, fingerprint: bytes | None, optimum: Optimum) -> None:
        self.design.flush()
        self.session.keep_optimum(fingerprint, optimum)
        if self.session.optimum is not optimum:
            self.say("the plan was edited meanwhile: o finds the best design of what it is now")
            return
        self.change_bandwidth(optimum.bandwidth_GBps)
        self.session.came_from(f"optimum of {optimum.problem.objective.replace('_', ' ')}")
        words = "optimised: proven best for these rules"
        self.say(words, lambda: self.session.is_proven(self.evaluation))

    def _current_problem(self, then: Callable[[], object]) -> Any:
        """The plan in numbers, or ``None``: ``then`` comes once it is read, or is refused."""
        self.design.flush()
        session = self.session
        if session.current:
            return session.problem
        if not session.is_being_read:
            self.say("the plan has faults: correct them first (f goes to the first)")
        else:
            self.when_read(then)
        return None

    def action_equal(self) -> None:
        """Spread the total evenly."""
        problem = self._current_problem(self.action_equal)
        if problem is not None:
            equal = equal_split_GBps(problem, self.session.edits.bandwidth_GBps or ())
            self.change_bandwidth(equal)
            self.say(
                equal_words(problem, equal), lambda: self.session.edits.bandwidth_GBps == equal
            )

    async def action_bars(self) -> None:
        """Go to the bars."""
        await self.action_show("design")
        self.design.query_one("#bandwidths").focus()

    async def action_form(self, key: str = "") -> None:
        """Go to a field of the plan; keys behind the one that asks for it are its text."""
        await self.action_show("design")
        self.design.add_class("-form")
        self.hold_keys(self.design, partial(self.design.focus_form, key))

    def action_unfocus(self) -> None:
        """Leave a text field."""
        self.pane.take_focus()

    async def action_add_rule(self) -> None:
        """Type a new design rule."""
        await self.action_form(NEW_RULE)

    def action_pin(self) -> Pin | None:
        """Keep the design on screen."""
        if self._current_problem(self.action_pin) is None:
            return None
        if self.evaluation is None:
            self.say("nothing to pin: the design has no figures")
            return None
        pinned = self.session.pin(self.evaluation)
        self.say(f"pinned: {pinned.name}; 2 compares")
        self.pane.show_session()
        return pinned

    # Edits

    def action_undo(self) -> None:
        """Take back the latest edit."""
        self._walk(self.session.undo, "nothing to undo")

    def action_redo(self) -> None:
        """Make it again."""
        self._walk(self.session.redo, "nothing to redo")

    def _walk(self, step: Callable[[], bool], nothing: str) -> None:
        self.design.flush()
        before = self.session.edits.settings
        if not step():
            self.say(nothing)
        elif self.session.edits.settings != before:
            self.reread()
        else:
            self.changed()

    def action_cancel(self) -> None:
        """Stop what is running."""
        running = [ticket for ticket in self.workshop.running() if ticket.label]
        if not running:
            self.say("nothing is running")
            return
        if running[-1].kind == "read":
            self._waiting = []
        self.workshop.cancel(running[-1].kind)
        self.say(f"cancelled: {running[-1].label}")

    # Files, leaving, and the rest

    def action_save(self) -> None:
        """Write the edits into the plan."""
        self.design.flush()
        self.files.save()

    def action_save_as(self) -> None:
        """Write the plan to another file."""
        self.design.flush()
        self.files.save_as()

    def action_reload(self) -> None:
        """Read the plan's files again."""
        self.design.flush()
        self.files.reload()

    def action_open(self) -> None:
        """Open another plan."""
        self.guard(self.files.ask_open)

    def action_leave(self) -> None:
        """Leave the cockpit."""
        self.guard(self._leave)

    async def action_quit(self) -> None:
        """Textual's own way out, guarded."""
        self.action_leave()

    def _leave(self) -> None:
        self.files.remember()
        self.workshop.cancel_all()
        self.exit(0)

    def action_help(self) -> None:
        """All keys."""
        self.push_screen(Panel("Keys", partial(help_text, self.pane.id or ""), wide=True))

    async def action_theme(self) -> None:
        """Dark or light."""
        name = "light" if self.current_theme.dark else "dark"
        self.say(f"{name} colours")
        await asyncio.sleep(FRAME_S)  # The words answer the key: everything gets other colours.
        self.theme = f"textual-{name}"
