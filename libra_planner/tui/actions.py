"""Every action of the cockpit: keys, name, what it does. Key bar, help and palette read it."""

from __future__ import annotations

from dataclasses import dataclass


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


SCREENS = ("design", "compare", "frontier", "fabric", "sweep", "report")
"""Screens in the order of their keys."""

_SCREEN_TEXTS = {
    "design": "The plan as a form, bandwidths as bars, figures that follow every change.",
    "compare": "Pinned designs side by side, with deltas to a baseline.",
    "frontier": "The fastest design at each cost; load any point.",
    "fabric": "The design as whole links: counts, load, imbalance under a routing policy.",
    "sweep": "Many designs at once: edit axes, run, browse results.",
    "report": "Write a procurement report of chosen designs.",
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
    Action("form", "f", "Form", "Go to the plan's form; Escape leaves a field. "
           "Enter in an emptied rule removes it.", "Design"),
    Action("add_rule", "a", "Add rule", "Add a design rule such as dim1 >= dim2.", "Design"),
    Action("pin", "p", "Pin", "Keep the design on screen for comparison.", "Design", True),
    Action("undo", "u", "Undo", "Take back the latest edit.", "Edits", True),
    Action("redo", "ctrl+r,U", "Redo", "Make it again.", "Edits"),
    Action("cancel", "x", "Cancel", "Stop what is running; its result is dropped.", "Edits"),
    Action("save", "s", "Save", "Write the edits into the plan; comments are kept.", "File", True),
    Action("save_as", "S", "Save as", "Write the plan to another file.", "File"),
    Action("open", "O", "Open", "Open another plan, or a recent one.", "File"),
    Action("theme", "t", "Theme", "Dark or light.", "File"),
    Action("leave", "q,ctrl+q", "Quit", "Leave; asks if there are unsaved edits.", "File", True),
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
