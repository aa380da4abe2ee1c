"""YAML files as plain values with the position of every one of them.

Reads YAML 1.2's core types instead of PyYAML's YAML 1.1: ``1e6`` is a number, ``no``
and ``on`` are text, dates are text. Refuses duplicate keys, files too big to be a plan
and alias bombs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import yaml

from libra_planner.errors import Fault, Place, SpecError, refuse, shown
from libra_planner.files import read_text
from libra_planner.plain_text import with_article

Key: TypeAlias = tuple[str | int, ...]
"""Path of a value inside a document: map keys and list indices."""

Source: TypeAlias = str | Path | Mapping[str, Any]
"""Where a document comes from: a file, or a map of what such a file says."""

MAP = "plan"
"""How messages call a document that is a map."""

MAX_VALUES = 200_000
"""Most values of one document after aliases are expanded."""

MAX_DEPTH = 32
"""Deepest nesting accepted."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML has it: ten times as fast."""

_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "map", "seq", "timestamp", "merge", "value")
)
_FORBIDDEN = yaml.reader.Reader.NON_PRINTABLE
_LONGEST_NUMBER = 300
_INT = re.compile(r"[-+]?[0-9]+")
_HEX_OR_OCTAL = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}


@dataclass
class Document:
    """A parsed file.

    Parameters
    ----------
    file : the path as the user gave it.
    value : the document as dicts, lists, numbers, text.
    places : place of every value by its path; of a map entry, the value's.
    key_places : place of every map key by its path.
    quoted : paths of the scalars that stand in quotes.
    """

    file: str
    value: Any
    places: dict[Key, Place] = field(default_factory=dict)
    key_places: dict[Key, Place] = field(default_factory=dict)
    quoted: set[Key] = field(default_factory=set)

    def at(self, key: Key) -> Any:
        """The value under a key that is there."""
        return value_at(self.value, key)

    def place(self, key: Key) -> Place:
        """Where a value stands, or the nearest value around it."""
        while key and key not in self.places:
            key = key[:-1]
        return self.places.get(key, Place(self.file))

    def key_place(self, key: Key) -> Place:
        """Where a map key stands, or else its value."""
        return self.key_places.get(key) or self.place(key)


def value_at(value: Any, key: Iterable[str | int]) -> Any:
    """A value inside of maps and lists, under a key that is there.

    >>> value_at({"a": [1, {"b": 2}]}, ("a", 1, "b"))
    2
    """
    return reduce(lambda inner, part: inner[part], key, value)


def leaves(value: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Whatever is no map and no list inside of a value, with its path.

    >>> dict(leaves({"a": [1, {"b": 2}]}))
    {('a', 0): 1, ('a', 1, 'b'): 2}
    """
    if not isinstance(value, dict | list):
        yield key, value
        return
    for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(inner, (*key, part))


def read_document(path: Source, called: str = MAP) -> Document:
    """Read a YAML file, or take what a map says.

    Parameters
    ----------
    path : the file, or a map. Its lists may be ranges, arrays and tuples, too.
    called : how messages call a map.

    Raises
    ------
    DataNotFound
        For a file that does not exist, is a directory or cannot be read as text.
    SpecError
        For malformed YAML, duplicate keys, an empty or oversized file.

    Examples
    --------
    >>> read_document({"total": 1e9, "tiers": ("a", "b"), "nic": range(25, 76, 25)}).value
    {'total': 1000000000.0, 'tiers': ['a', 'b'], 'nic': [25, 50, 75]}
    """
    if isinstance(path, Mapping):
        return Document(called, _plain(path, (), Place(called)))
    file = str(path)
    return parse_document(read_text(path), file)


def folder_of(source: Source) -> Path:
    """The folder that paths in a document are relative to: its own; of a map the working one."""
    return Path() if isinstance(source, Mapping) else Path(source).parent


def python_value(value: Any) -> Any:
    """Lists and numbers of numpy and pandas as Python's; anything else as it is.

    >>> import numpy as np
    >>> python_value(np.array([1, 2])), python_value(np.float64(0.5)), python_value("a")
    ([1, 2], 0.5, 'a')
    """
    return value.tolist() if hasattr(value, "tolist") else value


def _plain(value: Any, key: Key, place: Place) -> Any:
    """A value of Python as YAML has it."""
    if len(key) > MAX_DEPTH:
        raise SpecError(_too_deep(place))
    if isinstance(value, Mapping):
        return {str(name): _plain(x, (*key, str(name)), place) for name, x in value.items()}
    found, path = python_value(value), ".".join(map(str, key))
    if isinstance(found, list | tuple | range):
        if len(found) > MAX_VALUES:
            got, expected = f"got {len(found):,} values", f"expected at most {MAX_VALUES:,}"
            raise SpecError(Fault(got, expected, "", path, place))
        return [_plain(x, (*key, i), place) for i, x in enumerate(found)]
    if found is None or isinstance(found, bool | int | float | str):
        return found
    got = f"got {with_article(type(value).__name__)}"
    fix = "write list(...) of it" if isinstance(value, Iterable) else ""
    raise SpecError(Fault(got, "expected text, a number, a list or a map", fix, path, place))


def parse_document(text: str, file: str) -> Document:
    """Parse YAML text; ``file`` names it in errors.

    Examples
    --------
    >>> document = parse_document("a: 1e6\\nb: [no, 2]", "x.yaml")
    >>> document.value, str(document.places["b", 1])
    ({'a': 1000000.0, 'b': ['no', 2]}, 'x.yaml:2:9')
    """
    if found := _FORBIDDEN.search(text):
        lines = f"{text[: found.start()]}_".splitlines()
        got = f"got the control character U+{ord(found[0]):04X}"
        place = Place(file, len(lines), len(lines[-1]))
        raise SpecError(Fault(got, "expected text", "remove it", "", place))
    try:
        _check_depth(text, file)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _place(file, mark) if mark else Place(file)
        if mark and "\t" in _indent(text, mark.line):
            raise SpecError(Fault("got a tab", "", "indent by spaces", "", place)) from None
        fix = "quote text that contains ': ' or starts with a special character"
        got = f"got malformed YAML ({error.problem or error.context})"
        raise SpecError(Fault(got, "", fix, "", place)) from None
    if root is None:
        raise SpecError(Fault("got an empty file", "expected a YAML map", "", "", Place(file)))
    builder = _Builder(Document(file, None))
    builder.document.value = builder.build(root, (), 0)
    refuse(builder.faults)
    return builder.document


def _indent(text: str, line: int) -> str:
    """What a line (from 0) begins with before its first letter; nothing behind the last line."""
    found = "".join(text.splitlines()[line : line + 1])
    return found[: len(found) - len(found.lstrip())]


def parse_value(text: str, file: str) -> Any:
    """A YAML value from a command line (``--set``)."""
    return parse_document(text, file).value if text.strip() else ""


def _check_depth(text: str, file: str) -> None:
    """Refuse deep nesting before anything is composed: libyaml's composer calls itself, and a few
    thousand levels end the process.

    libyaml of PyYAML 6.0.4 looks ahead and gives up at a thousand levels, before it tells of the
    first; the parser in Python tells of each.
    """
    try:
        _refuse_deep(text, file, _Loader)
    except yaml.MarkedYAMLError:
        with suppress(yaml.MarkedYAMLError):
            _refuse_deep(text, file, yaml.SafeLoader)
        raise


def _refuse_deep(text: str, file: str, loader: Any) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise SpecError(_too_deep(_place(file, event.start_mark)))


def _place(file: str, mark: Any) -> Place:
    """Where a mark of the parser stands, which counts from 0."""
    return Place(file, mark.line + 1, mark.column + 1)


def _too_deep(place: Place) -> Fault:
    return Fault(f"got values nested deeper than {MAX_DEPTH}", "", "flatten the file", "", place)


@dataclass
class _Builder:
    document: Document
    n_values: int = 0
    faults: list[Fault] = field(default_factory=list)

    def build(self, node: yaml.Node, key: Key, depth: int) -> Any:
        place = _place(self.document.file, node.start_mark)
        self.n_values += 1
        if depth > MAX_DEPTH:
            raise SpecError(_too_deep(place))
        if self.n_values > MAX_VALUES:
            got = f"got more than {MAX_VALUES:,} values (aliases expanded)"
            raise SpecError(Fault(got, "", "remove the aliases", "", place))
        self.document.places[key] = place
        if node.tag not in _PLAIN_TAGS:
            got = f"got the tag {node.tag.replace('tag:yaml.org,2002:', '!!')!r}"
            self.faults.append(Fault(got, "expected plain values", "remove it", "", place))
        if isinstance(node, yaml.MappingNode):
            return self._map(node, key, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*key, i), depth + 1) for i, item in enumerate(node.value)]
        plain = not getattr(node, "style", None)  # None or "", by parser
        if not plain:
            self.document.quoted.add(key)
        return scalar(node.value) if plain else node.value

    def _map(self, node: yaml.MappingNode, key: Key, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, value in node.value:
            place, path = _place(self.document.file, name.start_mark), (*key, name.value)
            if not isinstance(name, yaml.ScalarNode):
                got = "got a list or map as a key"
                self.faults.append(Fault(got, "expected a name", "", "", place))
            elif name.value in result:
                first = self.document.key_places[path].line
                got = f"got the key {name.value!r} twice (first on line {first})"
                shown = ".".join(map(str, path))
                self.faults.append(Fault(got, "expected it once", "remove one", shown, place))
            else:
                self.document.key_places[path] = place
                result[name.value] = self.build(value, path, depth + 1)
        return result


def scalar(text: str) -> Any:
    """A plain (unquoted) scalar by YAML 1.2's core types.

    >>> scalar("1e6"), scalar("no"), scalar("010"), scalar("null")
    (1000000.0, 'no', 10, None)
    """
    if text.casefold() in _WORDS and text in (text.lower(), text.upper(), text.capitalize()):
        return _WORDS[text.casefold()]
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INT.fullmatch(text) or _HEX_OR_OCTAL.fullmatch(text):
        return int(text, 0 if text[1:2] in ("x", "o") else 10)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "").lower()) if _SPECIAL_FLOAT.fullmatch(text) else text


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


_INDEX = re.compile(r"[0-9]{1,6}")


def apply_settings(document: Document, settings: Sequence[str]) -> None:
    """Put every ``dotted.path=value`` into a document, in place; all faults at once."""
    faults: list[Fault] = []
    for setting in settings:
        try:
            apply_setting(document, setting)
        except SpecError as error:
            faults += error.faults
    refuse(faults)


OPTIONS = {"quotes": "--prices", "as_of": "--as-of"}
"""Options that are settings of a plan."""


def apply_setting(document: Document, setting: str) -> None:
    """Put ``dotted.path=value`` (a YAML value) into a document, in place.

    Raises
    ------
    SpecError
        For a setting without '=', or a path through something that is not a map or list.
    """
    dotted, equals, text = setting.partition("=")
    option = OPTIONS.get(dotted)
    place = Place(option or f"{document.file}: --set {dotted}")
    if not equals or not dotted:
        fix = "write e.g. --set fabric.topology='RI(4)_SW(8)'"
        raise SpecError(Fault(f"got {setting!r}", "expected key=value", fix, "", place))
    try:
        value = parse_value(text, document.file)
    except SpecError as error:
        faults = (replace(fault, path="", place=place) for fault in error.faults)
        raise SpecError(*faults) from None
    put_at(document, dotted_key(dotted.strip()), value, place)


def put_at(document: Document, key: Key, value: Any, place: Place) -> None:
    """Put a value into a document, in place, as if it stood at ``place``.

    Raises
    ------
    SpecError
        For a path through something that is not a map or list.
    """
    _put(document.value, key, value, place)
    for places in (document.places, document.key_places):
        for known in [known for known in places if known[: len(key)] == key]:
            del places[known]
        for n in range(1, len(key) + 1):  # New maps on the way to it, too.
            places.setdefault(key[:n], place)


def dotted_key(dotted: str) -> Key:
    """A dotted path as a key; whole numbers are list indices."""
    parts = dotted.split(".")
    return tuple(int(part) if _INDEX.fullmatch(part) else part for part in parts)


def _put(value: Any, key: Key, new: Any, place: Place) -> None:
    *parents, last = key
    for part in parents:
        if isinstance(value, dict):
            if value.get(str(part)) is None:
                value[str(part)] = {}
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            got, expected = f"got no {part!r} on the way", "expected a map or list"
            raise SpecError(Fault(got, expected, "", "", place))
    if isinstance(value, list) and isinstance(last, int) and last <= len(value):
        value[last : last + 1] = [new]
    elif isinstance(value, dict):
        value[str(last)] = new
    else:
        expected = "expected a key of a map, or an index of a list (the next one appends)"
        whole = ".".join(map(str, parents))
        fix = f"{whole} is {shown(value)} there: write {whole} as a whole" if parents else ""
        raise SpecError(Fault(f"got no place for {last!r}", expected, fix, "", place))
