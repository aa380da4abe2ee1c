"""Catalogues that say only what they add to another one, or change in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, SpecError
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, Key, read_document

BASE = "base"
"""The key that names the catalogue below."""

_DEEPEST = 3
"""Keys of a path whose values are replaced whole: the price of a part, the length of a cable."""


def read_catalogue(kind: str, path: Path, above: tuple[Path, ...] = ()) -> Document:
    """A catalogue with what its ``base`` says, and its places in either file.

    Parameters
    ----------
    kind : of bundled file that a base may be.
    path : of the file.
    above : files that it is the base of.

    Raises
    ------
    SpecError
        For a base that is none, or that is based on the file itself.
    """
    document = read_document(path)
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get(BASE), str):
        return document
    try:
        below = bundled.resolve(kind, value[BASE], path.parent)
        if below.resolve() in {one.resolve() for one in (*above, path)}:
            got = f"got {value[BASE]!r}, which is based on this file"
            raise SpecError(Fault(got, "expected another catalogue", "write base: parts"))
        base = read_catalogue(kind, below, (*above, path))
    except SpecError as error:
        raise error.located(document.place((BASE,)), BASE) from None
    return _over(base, document)


def bases(kind: str, path: Path) -> list[Path]:
    """The files that a catalogue is based on, nearest first; of one that can be read."""
    found: list[Path] = []
    value = read_document(path).value
    while isinstance(value, dict) and isinstance(value.get(BASE), str):
        path = bundled.resolve(kind, value[BASE], path.parent)
        found.append(path)
        value = read_document(path).value
    return found


def _over(base: Document, own: Document) -> Document:
    """A document over another one; what is replaced whole keeps no place of the other."""
    replaced = {key for key in own.places if not _is_merged(base, own, key)}
    kept = {
        key: place
        for key, place in base.places.items()
        if not any(key[:n] in replaced for n in range(1, len(key) + 1))
    }
    value = _merged(base.value, own.value, ())
    places, keys = kept | own.places, base.key_places | own.key_places
    return Document(own.file, value, places, keys, base.quoted | own.quoted)


def _is_merged(base: Document, own: Document, key: Key) -> bool:
    try:
        return _merges(base.at(key), own.at(key), key)
    except (KeyError, IndexError, TypeError):
        return False


def _merges(base: Any, own: Any, key: Key) -> bool:
    """Whether both are maps that go together; an assumption with a source stands as a whole."""
    both = isinstance(base, dict) and isinstance(own, dict)
    is_sourced = both and key[:1] == ("assumptions",) and "source" in base
    return both and len(key) < _DEEPEST and not is_sourced


def _merged(base: Any, own: Any, key: Key) -> Any:
    if not _merges(base, own, key):
        return own
    found = {
        name: _merged(base[name], value, (*key, name)) if name in base else value
        for name, value in own.items()
    }
    return base | found
