"""What is wrong with a value of a file: what was found, what was expected, and the fix."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from libra_planner.errors import Fault, Place, close_names, closest, shown
from libra_planner.plain_text import short_text
from libra_planner.reading.document import Document, Key, is_number, scalar

_MOST_NAMES = 8
"""Names that a message lists where one of them is close."""

_KNOWN_ABSENT: dict[Key, str] = {
    ("parallelism", "sp"): "sequence parallelism is sequence_parallel: true, over tp",
    ("parallelism", "vpp"): "chunks of a pipeline stage are interleave",
    ("parallelism", "fsdp"): "FSDP is zero: 3, over dp",
}

_EXPECTED = {
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    "string_type": "text",
    "string_unicode": "text in valid Unicode",
    "bool_type": "true or false",
    "list_type": "a list",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a map"),
    "too_long": "at most {max_length} entries",
    "too_short": "at least {min_length} entries",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "{expected}",
    "string_too_short": "some text",
    "string_too_long": "at most {max_length} characters",
}


def value_fault(
    model: type[BaseModel], document: Document, key: Key, location: Key, error: Any
) -> Fault:
    """An error of pydantic in the words of files.

    Parameters
    ----------
    model, document, key : what was read as what.
    location : of the value in the document.
    error : of pydantic, without its URL.
    """
    kind, place = error["type"], document.place(location)
    path = path_of(location)
    if kind == "extra_forbidden":
        return _unknown_key(model, document, key, location)
    if kind == "list_type" and _is_index(document, location, error["input"]):
        return _index_of_no_list(location, error["input"], place)
    if kind == "missing":
        fix = _added(model, location[len(key) :])
        return Fault("got nothing", "expected this key", fix, path, document.place(location[:-1]))
    if kind == "value_error":
        is_text = isinstance(error["input"], str)
        return Fault(str(error["ctx"]["error"]), "", "", path, place, is_misspelt=is_text)
    value, template = error["input"], _EXPECTED.get(kind)
    expected = template.format(**error.get("ctx", {})) if template else error["msg"]
    fix = _fix_of_form(document, location, value, expected)
    if expected == "a map":
        fix = fix or _example_map(model, location[len(key) :])
    if kind == "literal_error" and isinstance(value, str):
        names = [part.strip(" '") for part in expected.replace(" or ", ", ").split(", ")]
        meant = _MEANT.get(value.casefold().strip("."), value)
        near = meant if meant in names else value
        is_close = bool(close_names(near, names))
        fix = closest(near, names) if is_close else ""  # What was expected names all of them.
        if len(names) == 1:
            fix = f"write {names[0]}"
        if len(names) > _MOST_NAMES and close_names(value, names):
            expected = f"one of {len(names)} names"
    # Numbers may follow from others; a word is what somebody wrote.
    is_word = isinstance(value, str)
    return Fault(
        f"got {shown(value)}", f"expected {expected}", fix, path, place, is_misspelt=is_word
    )


_MEANT = {
    **dict.fromkeys(("per unit", "unit", "per piece", "piece", "pc", "pcs", "ea"), "each"),
    "%": "percent",
}
"""By what people write: which name of a list they mean, though others look more like it."""


def _fix_of_form(document: Document, location: Key, value: Any, expected: str) -> str:
    """What to write in place of a value of another form; else nothing."""
    is_quoted = isinstance(value, str) and location in document.quoted
    if "number" in expected and is_quoted and isinstance(scalar(value), int | float):
        return f"remove the quotes: {value}"
    if "number" in expected and isinstance(value, float):
        return f"write {int(value)}" if value.is_integer() and abs(value) < 2**53 else ""
    if expected == "text" and isinstance(value, list) and len(value) == 1:
        return f'write it in quotes: "[{value[0]}]"'
    if isinstance(value, dict):
        return _FIX_OF_MAP.get(str(location[-1]), "") if location else ""
    return ""


def _is_index(document: Document, location: Key, value: Any) -> bool:
    """Whether a map was made by settings of indices, such as ``constraints.0=``."""
    is_set = "--set" in str(document.place(location))
    return is_set and isinstance(value, dict) and bool(value) and all(map(str.isdigit, value))


def _index_of_no_list(location: Key, value: Any, place: Place) -> Fault:
    got, expected = "got an index of a list that the plan does not have", "expected the list"
    items = short_text(json.dumps([*value.values()]), _LONGEST_LIST)
    return Fault(got, expected, f"write {path_of(location)}={items}", "", place)


_LONGEST_LIST = 120
"""Letters of a list that is to be written."""

_FIX_OF_MAP = {"workload": "write workload: NAME, and sequence_tokens: N beside it"}
"""By the key: what to write in place of a map."""


def _added(model: type[BaseModel], key: Key) -> str:
    """How to add a key that is missing, with a value where there is an example of one."""
    *parents, name = key
    around = _models_at(model, tuple(parents))
    values = [_example(one).get(str(name)) for one in around]
    values += [_example(one) or None for one in _nested(around, name)]
    value = next((one for one in values if one is not None), None)
    return f"add '{name}:'" if value is None else f"add e.g. '{name}: {_flow(value)}'"


def _example_map(model: type[BaseModel], key: Key) -> str:
    """A map to write in place of another value; empty where no example is known."""
    inner = _nested(_models_at(model, key[:-1]), key[-1]) if key else []
    found = next((_example(one) for one in inner if _example(one)), None)
    return f"write e.g. '{key[-1]}: {_flow(found)}'" if found else ""


def _example(model: type[BaseModel]) -> Mapping[str, Any]:
    return getattr(model, "example", {})


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    if not isinstance(value, Mapping):
        return str(value)
    return f"{{{', '.join(f'{name}: {_flow(one)}' for name, one in value.items())}}}"


def _unknown_key(model: type[BaseModel], document: Document, key: Key, location: Key) -> Fault:
    name, place, path = str(location[-1]), document.key_place(location), path_of(location)
    known = known_keys(model, location[len(key) : -1])
    if name in known:  # Of the other of two forms, such as tp beside group sizes per phase.
        got = f"got {name!r} beside keys of another form"
        fix = f"remove {name} or the others"
        return Fault(got, "expected the keys of one form", fix, path, place)
    fix = _KNOWN_ABSENT.get(location[-2:]) or _rule_words(document, location)
    fix = fix or closest(name, known)
    got, expected = f"got the unknown key {name!r}", "expected a known key"
    return Fault(got, expected, fix, path, place, is_misspelt=True)


def _rule_words(document: Document, location: Key) -> str:
    """How to fix the bandwidth of what is no key but a tier of the plan; else nothing."""
    plan, name = document.value, str(location[-1])
    fabric = plan.get("fabric") if len(location) == 1 else None
    tiers = fabric.get("tiers") if isinstance(fabric, dict) else None
    if not isinstance(tiers, list) or name not in tiers:
        return ""
    rules = plan["constraints"] if isinstance(plan.get("constraints"), list) else []
    own = re.compile(rf"\s*(taper\(\s*)?{re.escape(name)}\s*\)?\s*==")
    found = [i for i, rule in enumerate(rules) if isinstance(rule, str) and own.match(rule)]
    given = plan[name]
    value = f"{given:g} GB/s" if is_number(given) else "50 GB/s"
    rule, i = f"{name} == {value}", (found or [len(rules)])[0]
    if "--set" in str(document.key_place(location)):
        return f"a rule fixes its bandwidth: write --set 'constraints.{i}={rule}'"
    return f"a rule fixes its bandwidth: write '{rule}' under constraints"


def path_of(key: Key) -> str:
    """A key as messages have it."""
    return ".".join(str(part) for part in key)


def known_keys(model: type[BaseModel], key: Key = ()) -> list[str]:
    """Known keys at a path inside a model."""
    models = _models_at(model, key)
    fields = (field for found_model in models for field in found_model.model_fields.items())
    return list(dict.fromkeys(field.alias or name for name, field in fields))


def _models_at(model: type[BaseModel], key: Key) -> list[type[BaseModel]]:
    """What may stand at a path inside a model; those around it where no model does."""
    models: list[type[BaseModel]] = [model]
    for part in key:
        models = _nested(models, part) or models
    return models


def _nested(models: Sequence[type[BaseModel]], name: str | int) -> list[type[BaseModel]]:
    """What may stand under a key of some models."""
    found = [m.model_fields[str(name)].annotation for m in models if name in m.model_fields]
    return [inner for annotation in found for inner in _direct_models(annotation)]


def _direct_models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _direct_models(argument)]
