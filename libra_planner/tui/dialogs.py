"""Modal panels: a question, a line of text, a list to choose from, an error, the help."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.command import CommandList, CommandPalette
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Key, Resize
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Static

from libra_planner.tui.actions import ACTIONS, SCREENS, own_keys, shown_keys

_KEY_CELLS = 14
"""Of the help's keys with a gap on both sides."""


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
        behind: Any = super().render()  # type: ignore[misc]
        is_screen = isinstance(behind, BackgroundScreen)
        return Darker(behind.screen, behind.color) if is_screen else behind


class Dialog(Over, ModalScreen[str | None]):
    """What all panels of ours look like, and the key that closes them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]
    BOX: ClassVar[type[Widget]] = Vertical
    FOOT = ""
    """What is said on the border at the bottom."""

    def __init__(self, title: str, *, wide: bool = False) -> None:
        super().__init__(classes="-wide" if wide else None)
        self._heading = title

    def compose(self) -> ComposeResult:
        with self.BOX(classes="dialog") as box:
            box.border_title, box.border_subtitle = Text(self._heading), self.FOOT
            yield from self.contents()

    def contents(self) -> ComposeResult:
        """What is inside the border."""
        yield from ()

    def action_close(self) -> None:
        self.dismiss(None)


class Palette(Over, CommandPalette):
    """Textual's list of all actions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "turn('page_up')", "A page up", show=False),
        Binding("pagedown", "turn('page_down')", "A page down", show=False),
    ]

    def action_turn(self, name: str) -> None:
        """Scroll the list by what is seen of it, which may be no line at all."""
        commands = self.query_one(CommandList)
        if commands.scrollable_content_region:
            getattr(commands, f"action_{name}")()


class Panel(Dialog):
    """A text to read; any of Escape, Enter and q closes it.

    Parameters
    ----------
    title : on the border.
    text : what there is to read, or what gives it for a number of cells.
    wide : whether it takes more than the usual width.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,question_mark", "close", "Close")
    ]
    BOX = VerticalScroll  # Its edge, not one inside, is where it ends.
    FOOT = "Escape closes"

    def __init__(
        self, title: str, text: Text | str | Callable[[int], Text], *, wide: bool = False
    ) -> None:
        super().__init__(title, wide=wide)
        self._text, self._n_cells = text, 0

    def contents(self) -> ComposeResult:
        yield Static(self._shown(), id="panel-text")

    def _shown(self) -> Text:
        self._n_cells = self._room()
        if callable(self._text):
            return self._text(self._n_cells)
        return Text(self._text) if isinstance(self._text, str) else self._text

    def _room(self) -> int:
        """Cells for a text that wraps itself."""
        within = int(self.app.size.width * 0.95)  # Both as the style sheet has it.
        return min(within, 100) - 5  # Border, padding, scrollbar.

    def on_resize(self, _event: Resize) -> None:
        if callable(self._text) and self._room() != self._n_cells:
            self.query_one("#panel-text", Static).update(self._shown())


_ALSO = (
    ("Ctrl+P", "Command palette: every action by name."),
    ("Tab", "Next field or table; Shift+Tab the one before."),
    ("Escape", "Leave a field or close a panel; letters are commands again."),
    ("Enter", "In a table: open or load the row."),
    ("/", "In a table: show the rows that have some words, or meet such as tp == 8."),
    ("> < !", "In a table: sort by the next column or the one before; turn the order round."),
)


def help_text(seen: str, n_cells: int) -> Text:
    """All actions and their keys by group, those of the screen that is seen first."""
    text = Text()
    for group, keys in _help_groups(seen):
        text.append(f"{chr(10) if text else ''}{group}\n", "bold underline")
        for shown, what in keys:
            text.append(f"  {shown:<{_KEY_CELLS - 3}} ", "bold")
            lines = textwrap.wrap(what, max(n_cells - _KEY_CELLS, 20))
            text.append(f"\n{'':{_KEY_CELLS}}".join(lines) + "\n")
    text.rstrip()
    return text


def _help_groups(seen: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Headings, each with keys and what they do."""
    own = {
        name: [(key.keys, f"{key.name}: {key.text}") for key in own_keys(name)] for name in SCREENS
    }
    if seen in own:
        yield f"On this screen, {seen.title()}", own.pop(seen)
    groups = dict.fromkeys(action.group for action in ACTIONS)
    for group in groups:
        found = [one for one in ACTIONS if one.group == group]
        yield group, [(shown_keys(one), f"{one.name}: {one.text}") for one in found]
    for name, keys in own.items():
        yield f"On {name.title()} only", keys
    yield "Also", list(_ALSO)


_SOON_S = 0.15
"""After the last key; what is typed fast is told once."""


class Prompt(Dialog):
    """One line of text.

    Parameters
    ----------
    title, value, hint : on the border, to begin with, and below.
    check : what is wrong with an answer; empty for nothing.
    needed : whether none is no answer.
    changed : told of what is typed, soon after; what is wrong with it. The panel stands at the
        bottom, so that what it changes is seen.
    """

    FOOT = "Enter accepts, Escape closes"

    def __init__(
        self,
        title: str,
        value: str = "",
        *,
        hint: str = "",
        check: Callable[[str], str] = lambda _: "",
        needed: bool = False,
        changed: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(title)
        self._changed = changed
        self._soon: Timer | None = None
        self.set_class(changed is not None, "-low")
        self._value, self._hint, self._check, self._needed = value, hint, check, needed

    def contents(self) -> ComposeResult:
        yield Input(self._value, compact=True, id="prompt")
        yield Static(Text(self._hint, "dim"))
        yield Static("", classes="wrong", id="prompt-wrong")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._soon is not None:
            self._soon.stop()
        if self._changed is not None and event.value != self._value:
            self._value = event.value
            self._soon = self.set_timer(_SOON_S, partial(self._tell, event.value))

    def _tell(self, value: str) -> str:
        """Tell of what is typed by now, and say what is wrong with it."""
        wrong = self._check(value) or (self._changed(value) if self._changed else "")
        self.query_one("#prompt-wrong", Static).update(Text(wrong))
        self.refresh()  # Behind it rows may have changed.
        return wrong

    def tell_again(self) -> None:
        """What it changes is another by now: tell of what is typed once more."""
        self._tell(self._value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._soon is not None:
            self._soon.stop()
        if not self._tell(event.value):
            self.dismiss(None if self._needed and not event.value.strip() else event.value)


class Question(Dialog):
    """A choice of a few answers, each a button with its letter."""

    FOOT = "Escape: back"

    def __init__(self, title: str, text: str, answers: dict[str, str]) -> None:
        super().__init__(title)
        self._text, self._answers = text, answers

    def contents(self) -> ComposeResult:
        yield Static(Text(self._text))
        with Horizontal(classes="buttons"):
            for key, label in self._answers.items():
                yield Button(f"{key}: {label}", id=f"answer-{key}", compact=True)

    def on_key(self, event: Key) -> None:
        if event.key in self._answers:
            event.stop()
            self.dismiss(event.key)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss((event.button.id or "").removeprefix("answer-"))


class OpenDialog(Dialog):
    """A path to type, or one of the listed plans."""

    FOOT = "Enter opens, Tab goes to the list"

    def __init__(self, plans: list[tuple[str, str]]) -> None:
        super().__init__("Open a plan")
        self._plans = plans

    def contents(self) -> ComposeResult:
        yield Input(placeholder="path of a plan", compact=True, id="open-path")
        yield OptionList(*(Text(label, no_wrap=True) for label, _ in self._plans))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._plans[event.option_index][1])
