"""Keys that only one screen has, read from its classes; help and palette list them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.binding import Binding
from textual.keys import format_key

from libra_planner.tui.actions import SCREENS

if TYPE_CHECKING:
    from textual.widget import Widget

    from libra_planner.tui.pane import Pane


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
