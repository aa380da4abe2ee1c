"""What keeps Textual from painting more than a key has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.filter import LineFilter
from textual.geometry import Region
from textual.reactive import Reactive
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from libra_planner.plain_text import without_controls


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


class Over:
    """What is over a screen has that darker behind it.

    Mixed in before a screen, and none itself: Textual takes rules from the first base that is one.
    """

    _behind: tuple[Strip, ...] = ()

    def render_lines(self: Any, crop: Region) -> list[Strip]:
        if self._dirty_regions or not self._behind:
            self._dirty_regions.clear()
            behind = self.render()
            if not isinstance(behind, BackgroundScreen):
                return [*super().render_lines(crop)]  # type: ignore[misc]
            self._behind = tuple(darker(behind.screen._compositor.render_strips(), behind.color))
        shown = [strip.crop(crop.x, crop.right) for strip in self._behind[crop.y : crop.bottom]]
        if len(shown) == crop.height and shown[0].cell_length == crop.width:
            return shown
        self.call_later(self.refresh)  # The screen behind is made wider and higher after this one.
        shown = [strip.adjust_cell_length(crop.width) for strip in shown]
        return shown + [Strip.blank(crop.width)] * (crop.height - len(shown))


def darker(strips: Iterable[Strip], color: Color) -> Iterator[Strip]:
    """Lines with a colour mixed into theirs, as Textual does, but once for each style of theirs."""
    mixed: dict[Style | None, Style | None] = {}
    for strip in strips:
        segments = []
        for text, style, _ in strip:
            if style not in mixed:
                one = BackgroundScreen.process_segments([Segment("", style)], color)
                mixed[style] = next(iter(one)).style
            segments.append(Segment(text, mixed[style]))
        yield Strip(segments, strip.cell_length)


class Unheard(LineFilter):
    """Leaves out what a terminal would obey, wherever a text came from."""

    def apply(self, segments: list[Segment], _: Color) -> list[Segment]:
        """Segments of the same widths."""
        return [Segment(without_controls(one.text), one.style, one.control) for one in segments]


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

    def learn(self, widget: DOMNode) -> None:
        """Parse the rules of a kind of widget now, not when the first of its kind is needed."""
        for place, rules, tie_breaker, scope in widget._get_default_css():
            self.add_source(
                rules,
                read_from=place,
                is_default_css=True,
                tie_breaker=tie_breaker,
                scope=scope,
            )
        self.rules_map  # noqa: B018 - Reading it parses what is new.

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
