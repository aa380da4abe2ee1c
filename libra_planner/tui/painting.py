"""What keeps Textual from painting more than a key has changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from textual.color import Color
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget


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


class ThemedStylesheet(Stylesheet):
    """The application's stylesheet, which can change all colours at once.

    Textual marks a node and everything inside it for painting for every colour that becomes
    another one: some ten thousand marks when the theme changes.
    """

    _at_once: ClassVar[bool] = False

    @classmethod
    @contextmanager
    def at_once(cls) -> Iterator[None]:
        """A node gets its colours and is marked once; for changes of nothing but colours."""
        cls._at_once = True
        try:
            yield
        finally:
            cls._at_once = False

    @classmethod
    def replace_rules(cls, node: DOMNode, rules: RulesMap, animate: bool = False) -> None:
        if not cls._at_once:
            super().replace_rules(node, rules, animate=animate)
            return
        base = node.styles.base
        for name in base.get_rules().keys() | rules.keys():
            value = rules.get(name)
            if isinstance(value, Color):
                base.set_rule(name, value)
            else:
                setattr(base, name, value)
        node.notify_style_update()
        if isinstance(node, Widget):
            node.refresh()
