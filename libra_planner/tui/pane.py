"""What all screens have in common, and what they need of the application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from textual.app import SystemCommand
from textual.binding import Binding
from textual.containers import Container
from textual.keys import format_key
from textual.widget import Widget

from libra_planner.tui.actions import SCREENS
from libra_planner.tui.files import working_directory
from libra_planner.tui.plans import Bandwidth, Pin
from libra_planner.tui.session import Edits, Session
from libra_planner.tui.work import Workshop

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation


class Host(Protocol):
    """The application, as its screens see it."""

    session: Session
    workshop: Workshop
    evaluation: Evaluation | None
    no_figures: str

    def apply_edit(self, key: str, text: str) -> None:
        """Give a value of the plan."""

    def reread(self) -> None:
        """Read the plan again after its settings changed."""

    def change_bandwidth(self, bandwidth_GBps: Bandwidth, subject: str | None = None) -> None:
        """Put another design on screen."""

    def ask_value(self, key: str, label: str, text: str) -> None:
        """Type a value that is none of the known names."""

    def ask_bandwidth(self, dim: int) -> None:
        """Type the bandwidth of a dimension."""

    def action_pin(self) -> Pin | None:
        """Keep the design on screen."""

    def load_pin(self, pin: Pin) -> None:
        """Go back to a pinned design."""

    def open_plan(self, path: Path, edits: Edits | None = None, origin: str = "") -> None:
        """Open another plan; ``origin`` says how the design of ``edits`` came to be."""

    def guard(self, then: Callable[[], None]) -> None:
        """Ask what to do with unsaved edits first."""

    def is_bundled(self) -> bool:
        """Whether the plan is one of the examples."""

    def say(self, text: str) -> None:
        """Put a message on the status line."""


class Pane(Container):
    """One screen; it shows the session when it is told to."""

    KEYED: ClassVar[tuple[type[Widget], ...]] = ()
    """Widgets on it that have keys of their own, for the help and the palette."""

    @property
    def cockpit(self) -> Host:
        """The application."""
        return cast(Host, self.app)

    @property
    def session(self) -> Session:
        """The open plan."""
        return self.cockpit.session

    @property
    def folder(self) -> Path:
        """Where what belongs to the plan is written: beside it, but not among the examples."""
        return working_directory() if self.cockpit.is_bundled() else self.session.path.parent

    def show_session(self) -> None:
        """Bring everything up to date; called when the screen is seen or the plan changes."""

    def take_focus(self) -> None:
        """Focus what keys should go to; called when the screen is entered."""


if TYPE_CHECKING:
    from textual.widget import Widget


@dataclass(frozen=True)
class OwnKey:
    """A key that means something on one screen.

    Parameters
    ----------
    screen : one of ``SCREENS``.
    keys : any of these, for people.
    name : for the key bar and the palette.
    text : one sentence for the help.
    action : of the owner.
    owner : the screen's class, or that of a widget which needs the focus.
    """

    screen: str
    keys: str
    name: str
    text: str
    action: str
    owner: type[Widget]

    def target(self, pane: Pane) -> Widget:
        """Who does it: the screen, or its widget, which gets the focus."""
        if isinstance(pane, self.owner):
            return pane
        focused = pane.app.screen_stack[0].focused
        if isinstance(focused, self.owner):
            return focused
        found = pane.query(self.owner).first()
        found.focus()
        return found


def pane_class(name: str) -> type[Pane]:
    """The class of a screen, whose modules are loaded only now."""
    module = import_module(f"libra_planner.tui.screens.{name}")
    found: type[Pane] = getattr(module, f"{name.title()}Pane")
    return found


def own_keys(name: str) -> Iterator[OwnKey]:
    """Keys of a screen, then those of its widgets."""
    pane = pane_class(name)
    for owner in (pane, *pane.KEYED):
        for binding in owner.BINDINGS:
            if isinstance(binding, Binding):
                method = binding.action.partition("(")[0]
                text = binding.tooltip or getdoc(getattr(owner, f"action_{method}")) or ""
                keys = binding.key_display or " or ".join(map(_shown, binding.key.split(",")))
                yield OwnKey(name, keys, binding.description, text, binding.action, owner)


def _shown(key: str) -> str:
    """A key for people.

    >>> _shown("enter"), _shown("plus"), _shown("up")
    ('Enter', '+', '↑')
    """
    return key.title() if key in ("enter", "space", "delete") else format_key(key)


def commands(seen: str, runner: Callable[[OwnKey], Callable[[], Any]]) -> Iterator[SystemCommand]:
    """What the palette offers of every screen; that of the screen that is seen needs no search."""
    for screen in SCREENS:
        for key in own_keys(screen):
            title = f"{screen.title()}: {key.name} ({key.keys})"
            yield SystemCommand(title, key.text, runner(key), discover=screen == seen)
