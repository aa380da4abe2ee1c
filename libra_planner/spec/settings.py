"""``--set key=value``: overrides of a plan before it is validated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.spec.document import Document, Key, parse_value

_INDEX = re.compile(r"[0-9]{1,6}")


def apply_settings(document: Document, settings: Sequence[str]) -> None:
    """Put every ``dotted.path=value`` into a document, in place; all faults at once."""
    faults: list[Fault] = []
    for setting in settings:
        try:
            apply_setting(document, setting)
        except SpecError as error:
            faults += error.faults
    if faults:
        raise SpecError(*faults)


def apply_setting(document: Document, setting: str) -> None:
    """Put ``dotted.path=value`` (a YAML value) into a document, in place.

    Raises
    ------
    SpecError
        For a setting without '=', or a path through something that is not a map or list.
    """
    dotted, equals, text = setting.partition("=")
    place = Place(f"{document.file}: --set {dotted}")
    if not equals or not dotted:
        fix = "write e.g. --set fabric.topology='RI(4)_SW(8)'"
        raise SpecError(Fault(f"got {setting!r}", "expected key=value", fix, "", place))
    try:
        value = parse_value(text, document.file)
    except SpecError as error:
        raise SpecError(
            *(Fault(f.got, f.expected, f.fix, "", place) for f in error.faults)
        ) from None
    key = dotted_key(dotted.strip())
    _put(document.value, key, value, place)
    for places in (document.places, document.key_places):
        _place_at(places, key, place)


def _place_at(places: dict[Key, Place], key: Key, place: Place) -> None:
    """Let everything at and below ``key``, and new maps on the way to it, stand at ``place``."""
    for known in [known for known in places if known[: len(key)] == key]:
        del places[known]
    for n in range(1, len(key) + 1):
        places.setdefault(key[:n], place)


def dotted_key(dotted: str) -> Key:
    """A dotted path as a key; whole numbers are list indices."""
    parts = dotted.split(".")
    return tuple(int(part) if _INDEX.fullmatch(part) else part for part in parts)


def _put(value: Any, key: Key, new: Any, place: Place) -> None:
    *parents, last = key
    for part in parents:
        if isinstance(value, dict) and value.get(str(part)) is None:
            value[str(part)] = {}
        value = _child(value, part, place)
    if isinstance(value, list) and isinstance(last, int) and last <= len(value):
        value[last : last + 1] = [new]
    elif isinstance(value, dict):
        value[str(last)] = new
    else:
        expected = "expected a key of a map, or an index of a list (the next one appends)"
        raise SpecError(Fault(f"got no place for {last!r}", expected, "", "", place))


def _child(value: Any, part: str | int, place: Place) -> Any:
    if isinstance(value, dict):
        return value[str(part)]
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    raise SpecError(Fault(f"got no {part!r} on the way", "expected a map or list", "", "", place))
