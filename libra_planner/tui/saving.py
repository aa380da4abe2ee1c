"""Edits written into a plan file with its comments, order and spacing kept."""

from __future__ import annotations

import difflib
import io
import os
import re
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.files import read_text, write_files
from libra_planner.spec.document import Key, parse_document, parse_value
from libra_planner.spec.settings import apply_settings, dotted_key

_ITEM = re.compile(r"^( *)- ", re.MULTILINE)


def save_plan(source: Path, settings: tuple[str, ...], target: Path) -> list[Path]:
    """Write a plan with its edits; the file that was there is kept with ``.bak`` at its end.

    Returns
    -------
    Paths of the copies that were kept.

    Raises
    ------
    SpecError
        For an edit that has no place in the file, or a path that cannot be written.
    """
    if not settings and os.path.realpath(source) == os.path.realpath(target):
        return []
    return write_files({target: edited_text(read_text(source), settings, str(source))})


def replaced(source: Path, target: Path) -> str:
    """What saving does to a file that is not the plan's own, in words; empty for none."""
    if not target.is_file() or os.path.realpath(target) == os.path.realpath(source):
        return ""
    copy = target.with_name(f"{target.name}.bak")
    lost = f", in the place of the {copy.name} that is there" if copy.exists() else ""
    return f"{target} is another file. Its text would be kept as {copy.name}{lost}."


def edited_text(text: str, settings: tuple[str, ...], file: str) -> str:
    """A plan's text with edits applied; everything else stays as it was written.

    Examples
    --------
    >>> print(edited_text("a: 1   # one\\nb: [x]\\n", ("a=2", "b.1=y"), "p.yaml"), end="")
    a: 2   # one
    b: [x, y]
    """
    wanted = parse_document(text, file)
    apply_settings(wanted, settings)
    if not settings:
        return text
    yaml = _round_trip(text)
    tree = yaml.load(text)
    for setting in settings:
        dotted, _, value = setting.partition("=")
        _put(tree, dotted_key(dotted.strip()), parse_value(value, file))
    stream = io.StringIO()
    yaml.dump(tree, stream)
    written = stream.getvalue()
    if parse_document(written, file).value != wanted.value:
        got, expected = "got a file that cannot keep its comments", "expected plainer YAML"
        fix = "make this edit in an editor"
        raise SpecError(Fault(got, expected, fix, "", Place(file)))
    return written


def _round_trip(text: str) -> Any:
    """ruamel's reader and writer, indenting lists as the text does."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 4096
    found = _ITEM.search(text)
    offset = len(found[1]) if found else 2
    yaml.indent(mapping=2, sequence=2 + offset, offset=offset)
    return yaml


def _put(tree: Any, key: Key, new: Any) -> None:
    last: Any
    part: Any
    *parents, last = key
    for part in parents:
        if isinstance(tree, dict):
            if tree.get(str(part)) is None:
                tree[str(part)] = {}
            tree = tree[str(part)]
        else:
            tree = tree[part]
    if isinstance(tree, list):
        if last == len(tree):
            tree.append(new)
        else:
            tree[last] = new
    elif isinstance(new, list) and isinstance(tree.get(str(last)), list):
        _replace_items(tree[str(last)], new)
    else:
        tree[str(last)] = new


def _replace_items(items: list[Any], new: list[Any]) -> None:
    """Turn one list into another in place: entries that stay keep their comments."""
    old = [str(item) for item in items]
    matcher = difflib.SequenceMatcher(None, old, [str(item) for item in new], autojunk=False)
    for tag, low, high, new_low, new_high in reversed(matcher.get_opcodes()):
        if tag == "equal":
            continue
        for i in reversed(range(low, high)):
            del items[i]
        for n, item in enumerate(new[new_low:new_high]):
            items.insert(low + n, item)
