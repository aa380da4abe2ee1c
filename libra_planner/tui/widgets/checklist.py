"""A list of choices whose marks can be read without colours: ``[x]`` and ``[ ]``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import OptionList


class Checklist(OptionList):
    """Entries that Space, Enter or a click chooses and drops.

    Parameters
    ----------
    names : the entries.
    chosen : indices of those that are chosen at first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Choose", show=True, tooltip="Choose the entry or drop it.")
    ]

    def __init__(self, names: Iterable[str], chosen: Iterable[int] = (), *, id: str) -> None:  # noqa: A002
        self._names, self._chosen = list(names), set(chosen)
        super().__init__(*map(self._prompt, range(len(self._names))), id=id)

    def on_mount(self) -> None:
        """The first Space has a row to choose."""
        self.action_first()

    def _prompt(self, index: int) -> Text:
        return Text(f"[{'x' if index in self._chosen else ' '}] {self._names[index]}")

    @property
    def chosen(self) -> list[int]:
        """Indices of the chosen entries, in order."""
        return sorted(self._chosen)

    @property
    def names(self) -> list[str]:
        """All entries."""
        return list(self._names)

    def show(self, names: list[str]) -> None:
        """Other entries; new ones are chosen."""
        self._chosen = {i for i in range(len(names)) if i in self._chosen or i >= len(self._names)}
        self._names, row = names, self.highlighted or 0
        self.clear_options()
        self.add_options([self._prompt(i) for i in range(len(names))])
        self.highlighted = min(row, len(names) - 1) if names else None

    def action_select(self) -> None:
        """Choose the entry or drop it, before the next key asks what is chosen."""
        index = self.highlighted
        if index is not None:
            self._chosen ^= {index}
            self.replace_option_prompt_at_index(index, self._prompt(index))
