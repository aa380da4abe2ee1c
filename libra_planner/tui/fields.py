"""The plan as a form: which values can be edited, what they say, which names are known."""

from __future__ import annotations

import difflib
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.files import read_text, write_files
from libra_planner.reading.document import (
    Key,
    apply_settings,
    dotted_key,
    parse_document,
    parse_value,
)

if TYPE_CHECKING:
    from libra_planner.errors import Fault
    from libra_planner.reading.document import Document

_LOOPS = ("no_overlap", "tp_dp_overlap", "async_dp")
_OBJECTIVES = ("performance", "performance_per_cost", "cost")
_GROUP_OBJECTIVES = ("weighted", "relative", "worst_case")
_FIDELITIES = ("ideal", "pipelined")
_SCHEDULERS = ("hierarchical", "balanced")
_YES_NO = ("true", "false")

_FIELDS = (
    ("workload", "workload"),
    ("workloads", "workloads"),
    ("group_objective", "group aim"),
    ("fabric.topology", "topology"),
    ("fabric.tiers", "tiers"),
    ("parallelism", "parallel"),
    ("parallelism.tp", "tp"),
    ("parallelism.dp", "dp"),
    ("global_batch", "batch"),
    ("npu", "npu"),
    ("cost_model", "prices"),
    ("fixed_cost", "fixed cost"),
    ("training_loop", "loop"),
    ("contention", "contention"),
    ("fidelity", "fidelity"),
    ("fabric.latency_ns", "latency ns"),
    ("fabric.link_options", "catalogue"),
    ("fabric.realization", "links"),
    ("objective", "objective"),
)
"""Keys and their labels in the order of the form; other keys of a plan follow."""

_ALWAYS = (
    "workload",
    "fabric.topology",
    "fabric.tiers",
    "parallelism.tp",
    "parallelism.dp",
    "global_batch",
    "cost_model",
    "training_loop",
    "objective",
)
"""Shown even where the plan does not say them."""


OPTIONAL = frozenset(
    (
        "global_batch",
        "npu",
        "fixed_cost",
        "fabric.latency_ns",
        "fabric.link_options",
        "fabric.realization",
    )
)
"""Values that an empty field takes away."""


@dataclass(frozen=True)
class FormField:
    """One editable value.

    Parameters
    ----------
    key : dotted path, as ``--set`` takes it.
    label : for people.
    text : the value as one types it; empty where the plan says nothing.
    line : in the file; ``None`` for a value that was edited or is not there.
    choices : known names; empty for free text.
    edited : whether it differs from the file.
    """

    key: str
    label: str
    text: str
    line: int | None
    choices: tuple[str, ...] = ()
    edited: bool = False


def form_fields(document: Document, settings: tuple[str, ...]) -> list[FormField]:
    """Fields of a plan from top to bottom; its rules last, one each."""
    value = document.value if isinstance(document.value, dict) else {}
    edited = {setting.partition("=")[0].strip() for setting in settings}
    found = [
        _field(document, value, key, label, edited)
        for key, label in (*_shown(value), *_others(value))
    ]
    rules = value.get("constraints")
    if isinstance(rules, list):
        numbers = range(len(rules))
        keys = [(f"constraints.{i}", f"rule {i + 1}") for i in numbers]
        found += [_field(document, value, key, label, edited) for key, label in keys]
    elif rules is not None:
        found.append(_field(document, value, "constraints", "rules", edited))
    return found


def _shown(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    hidden = _hidden(value)
    for key, label in _FIELDS:
        if key not in hidden and (key in _ALWAYS or _at(value, key) is not None):
            yield key, label


def _hidden(value: dict[str, Any]) -> set[str]:
    """Fields of another form of plan: of a group, of group sizes per phase, of degrees."""
    degrees, is_group = value.get("parallelism"), "workloads" in value
    hidden = {"workload", "global_batch"} if is_group else set()
    by_degree = isinstance(degrees, dict) and not set(degrees) - {"tp", "dp"}
    if by_degree or (degrees is None and not is_group):
        return hidden | {"parallelism"}
    return hidden | {"parallelism.tp", "parallelism.dp"}


def _others(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    known = {key.partition(".")[0] for key, _ in _FIELDS} | {"constraints"}
    for key in value:
        if key not in known:
            yield key, key.replace("_", " ")


def _at(value: Any, key: str) -> Any:
    for part in key.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def _field(
    document: Document, value: dict[str, Any], key: str, label: str, edited: set[str]
) -> FormField:
    from libra_planner.reading.document import dotted_key

    found = _at(value, key)
    place = document.places.get(dotted_key(key))
    touched = any(key == one or key.startswith(f"{one}.") for one in edited)
    text = value_text(found)
    choices = _choices(key, text)
    return FormField(key, label, text, place.line if place else None, choices, touched)


def value_text(value: Any) -> str:
    """A value as one types it: names plain, lists and maps in one line.

    >>> value_text("RI(4)"), value_text(8192), value_text(["pod"]), value_text(None)
    ('RI(4)', '8192', '["pod"]', '')
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _choices(key: str, text: str) -> tuple[str, ...]:
    """Known names of a key, and what the plan says if it is another one."""
    from libra_planner.reading import bundled

    kinds = {"workload": "workloads", "cost_model": "cost-models"}
    fixed = {
        "training_loop": _LOOPS,
        "objective": _OBJECTIVES,
        "group_objective": _GROUP_OBJECTIVES,
        "fidelity": _FIDELITIES,
        "scheduler": _SCHEDULERS,
        "contention": _YES_NO,
    }
    known = tuple(bundled.names(kinds[key])) if key in kinds else fixed.get(key, ())
    return known if not known or text in known or not text else (*known, text)


def faults_by_key(faults: tuple[Fault, ...], keys: list[str]) -> dict[str, list[Fault]]:
    """Faults under the field they are about; those of no field under the empty key."""
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        path = _path(fault)
        owners = [k for k in keys if path == k or path.startswith((f"{k}.", f"{k} "))]
        inside = [k for k in keys if path and k.startswith(f"{path}.")]
        key = max(owners, key=len) if owners else (inside[0] if inside else "")
        found.setdefault(key, []).append(fault)
    return found


def _path(fault: Fault) -> str:
    """Where in the plan a fault is: its own path, or that of the edit it comes from."""
    file = fault.place.file if fault.place else ""
    _, marker, edited = file.partition(": --set ")
    return fault.path or (edited if marker else "")


def fault_text(fault: Fault) -> str:
    """A fault under its field: without the path that the field already says."""
    parts = [fault.got, fault.expected]
    text = ", ".join(part for part in parts if part)
    text = f"{text}; {fault.fix}" if fault.fix else text
    line = fault.place.line if fault.place else None
    return f"line {line}: {text}" if line else text


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
