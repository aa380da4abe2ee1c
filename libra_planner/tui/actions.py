"""Every action and key of the cockpit: name, what it does. Key bar, help and palette read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from inspect import getdoc
from typing import Any

from textual.app import SystemCommand
from textual.binding import Binding
from textual.keys import format_key
from textual.widget import Widget


@dataclass(frozen=True)
class Action:
    """Something a person can do.

    Parameters
    ----------
    call : the app's ``action_`` method, with arguments.
    keys : any of these, outside text fields; F-keys anywhere.
    name : for the footer and the command palette.
    text : one sentence for the help.
    group : heading in the help.
    in_footer : whether the footer lists it.
    """

    call: str
    keys: str
    name: str
    text: str
    group: str
    in_footer: bool = False


SCREENS = ("design", "compare", "frontier", "fabric", "sweep", "report", "search")
"""Screens in the order of their keys."""

_SCREEN_TEXTS = {
    "design": "The plan as a tree, bandwidths as bars, figures that follow every change.",
    "compare": "Pinned designs side by side, with deltas to a baseline.",
    "frontier": "The fastest design at each cost; load any point.",
    "fabric": "The design as whole links: counts, load, imbalance under a routing policy.",
    "sweep": "Many designs at once: edit axes, run, browse results.",
    "report": "Write a procurement report of chosen designs.",
    "search": "The best strategies for the plan's model; take any into the plan.",
}

ACTIONS = (
    *(
        Action(f"show('{name}')", f"{i},f{i}", name.title(), _SCREEN_TEXTS[name], "Screens")
        for i, name in enumerate(SCREENS, 1)
    ),
    Action("help", "question_mark", "Help", "This page.", "Everywhere", True),
    Action("optimize", "o", "Optimise", "Find the certified best design.", "Design", True),
    Action("equal", "e", "Equal split", "Spread the total evenly over the dimensions.", "Design"),
    Action("bars", "b", "Bars", "Go to the bandwidth bars; + and - change the one chosen, "
           "< and > the step, Enter types a value (or all, separated by commas).", "Design"),
    Action("form", "f", "Form", "Go to the plan's tree; Enter or ↓ goes to its first field, Escape "
           "leaves one. Ctrl+Space lists what may stand there, → completes, Ctrl+L takes it away.",
           "Design"),
    Action("add_rule", "a", "Add rule", "Type a new design rule such as dim1 >= dim2.", "Design"),
    Action("pin", "p", "Pin", "Keep the design on screen for comparison.", "Design", True),
    Action("undo", "u", "Undo", "Take back the latest edit.", "Edits", True),
    Action("redo", "ctrl+r,U", "Redo", "Make it again.", "Edits"),
    Action("cancel", "x", "Cancel", "Stop what is running; its result is dropped.", "Edits"),
    Action("save", "s", "Save", "Write the edits into the plan; comments are kept.", "File", True),
    Action("save_as", "S", "Save as", "Write the plan to another file.", "File"),
    Action("reload", "R", "Read again", "Read the plan's files again, where they changed on disk; "
           "edits stay.", "File"),
    Action("open", "O", "Open", "Open another plan, or a recent one.", "File"),
    Action("theme", "t", "Theme", "Dark or light.", "File"),
    Action("leave", "q,ctrl+q", "Quit", "Leave; asks if there are unsaved edits.", "File"),
)  # fmt: skip
"""All of them, in the order of the help."""


def shown_keys(action: Action) -> str:
    """Keys for people.

    >>> shown_keys(ACTIONS[0])
    '1 or F1'
    """
    names = {"question_mark": "?", "ctrl+r": "Ctrl+R", "ctrl+q": "Ctrl+Q"}
    keys = (names.get(key, key) for key in action.keys.split(","))
    return " or ".join(key.upper() if key[0] == "f" and len(key) > 1 else key for key in keys)


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

    def target(self, pane: Widget) -> Widget:
        """Who does it: the screen, or its widget, which gets the focus."""
        if isinstance(pane, self.owner):
            return pane
        focused = pane.app.screen_stack[0].focused
        if isinstance(focused, self.owner):
            return focused
        found = pane.query(self.owner).first()
        found.focus()
        return found


def pane_class(name: str) -> type[Any]:
    """The class of a screen, whose modules are loaded only now."""
    module = import_module(f"libra_planner.tui.screens.{name}")
    found: type[Any] = getattr(module, f"{name.title()}Pane")
    return found


def own_keys(name: str) -> Iterator[OwnKey]:
    """Keys of a screen, then those of its widgets."""
    pane = pane_class(name)
    for owner in (pane, *pane.KEYED):
        for binding in owner.BINDINGS:
            if isinstance(binding, Binding):
                method = binding.action.partition("(")[0]
                text = binding.tooltip or getdoc(getattr(owner, f"action_{method}")) or ""
                keys = binding.key_display or " or ".join(map(_shown_key, binding.key.split(",")))
                yield OwnKey(name, keys, binding.description, text, binding.action, owner)


def _shown_key(key: str) -> str:
    """A key for people.

    >>> _shown_key("enter"), _shown_key("plus"), _shown_key("up")
    ('Enter', '+', '↑')
    """
    return key.title() if key in ("enter", "space", "delete") else format_key(key)


def commands(seen: str, runner: Callable[[OwnKey], Callable[[], Any]]) -> Iterator[SystemCommand]:
    """What the palette offers of every screen; that of the screen that is seen needs no search."""
    for screen in SCREENS:
        for key in own_keys(screen):
            title = f"{screen.title()}: {key.name} ({key.keys})"
            yield SystemCommand(title, key.text, runner(key), discover=screen == seen)
