"""Registries: things of one kind by name, to which modules outside the package add theirs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Generic, TypeVar

from libra_planner.errors import Fault, SpecError, unknown_name

PLUGINS = "LIBRA_PLANNER_PLUGINS"
"""Variable with the names of modules, separated by commas, that register more."""

Entry = TypeVar("Entry")


@cache
def plugin_fault() -> SpecError | None:
    """Import the modules that :data:`PLUGINS` names, once in every process; what went wrong.

    The package does so before its own modules, which may then be imported in any order.
    """
    for name in filter(None, map(str.strip, os.environ.get(PLUGINS, "").split(","))):
        try:
            import_module(name)
        except Exception as error:  # Whatever the code of others raises.
            got = f"got {name}, which cannot be imported: {type(error).__name__}: {error}"
            fix = "mend the module, or take it out of the variable"
            return SpecError(Fault(got, "expected modules that Python finds", fix, PLUGINS))
    return None


class Registry(Generic[Entry]):
    """Things of one kind by name, in the order in which they were added.

    Parameters
    ----------
    kind : what messages call one of them.
    fold : what of two spellings has to be equal for them to be one name.

    Examples
    --------
    >>> colours = Registry[int]("colour")
    >>> colours.add(0xFF0000, "red", "crimson")
    >>> colours["crimson"] == 0xFF0000, list(colours), colours.spellings
    (True, ['red'], ('red', 'crimson'))
    """

    def __init__(self, kind: str, fold: Callable[[str], str] = str) -> None:
        self._kind, self._fold = kind, fold
        self._entries: dict[str, Entry] = {}
        self._synonyms: dict[str, str] = {}

    def add(self, entry: Entry, name: str, *synonyms: str) -> None:
        """Add an entry.

        Raises
        ------
        ValueError
            For a name that another entry has.
        """
        for spelling in (name, *synonyms):
            if self._fold(spelling) in map(self._fold, (*self._entries, *self._synonyms)):
                raise ValueError(f"got {self._kind} {spelling!r} twice, expected another name")
        self._entries[name] = entry
        self._synonyms |= dict.fromkeys(synonyms, name)

    def remove(self, name: str) -> None:
        """Take an entry out again."""
        del self._entries[name]
        self._synonyms = {one: of for one, of in self._synonyms.items() if of != name}

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names, those that are synonyms last."""
        return (*self, *self._synonyms)

    def __iter__(self) -> Iterator[str]:
        """The entries' names."""
        if fault := plugin_fault():
            raise fault
        return iter(tuple(self._entries))

    def values(self) -> list[Entry]:
        """The entries."""
        return [self._entries[name] for name in self]

    def __contains__(self, name: str) -> bool:
        return any(self._fold(name) == self._fold(one) for one in self.spellings)

    def get(self, name: str, default: Entry) -> Entry:
        """The entry of a name, or another one."""
        known = name in self
        return self[name] if known else default

    def __getitem__(self, name: str) -> Entry:
        """The entry of a name.

        Raises
        ------
        UnknownName
            With a did-you-mean.
        """
        for one in self.spellings:
            if self._fold(name) == self._fold(one):
                return self._entries[self._synonyms.get(one, one)]
        raise unknown_name(self._kind, name, self.spellings)
