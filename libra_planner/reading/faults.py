"""Pydantic's errors as faults: file, line, column, what was found, expected, the fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from libra_planner.errors import (
    MOST_SHOWN,
    DataNotFound,
    Fault,
    Place,
    SpecError,
    closest,
    more_faults,
)
from libra_planner.reading.document import Document, Key, dotted_key, scalar, shown
from libra_planner.reading.fields import KINDS

Model = TypeVar("Model", bound=BaseModel)

_KNOWN_ABSENT: dict[Key, str] = {
    ("parallelism", name): "only tp and dp are modelled so far" for name in ("pp", "ep", "cp", "sp")
}

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_unicode": "text in valid Unicode",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
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


def validated(model: type[Model], document: Document, key: Key = ()) -> Model:
    """A document, or the part of it under ``key``, as a model.

    Raises
    ------
    SpecError
        With every fault of the document, each at its line and column.
    """
    value = document.at(key)
    if not isinstance(value, dict):
        place = document.place(key)
        got = f"got {shown(value)}"
        raise SpecError(Fault(got, "expected a map of keys and values", "", path_of(key), place))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        faults = [
            fault for one in errors[:MOST_SHOWN] for fault in _faults(model, document, key, one)
        ]
        if len(errors) > MOST_SHOWN:
            faults.append(more_faults(len(errors) - MOST_SHOWN, Place(document.file)))
        raise SpecError(*dict.fromkeys(faults)) from None


def _faults(model: type[BaseModel], document: Document, key: Key, error: Any) -> Iterator[Fault]:
    location = key + tuple(part for part in error["loc"] if part not in KINDS)
    kind, place = error["type"], document.place(location)
    path = path_of(location)
    if kind == "extra_forbidden":
        yield _unknown_key(model, document, key, location)
    elif kind == "missing":
        fix = f"add '{location[-1]}:'"
        yield Fault("got nothing", "expected this key", fix, path, document.place(location[:-1]))
    elif kind == "value_error":
        yield Fault(str(error["ctx"]["error"]), "", "", path, place)
    else:
        yield _value_fault(error, path, place, quoted=location in document.quoted)


def _unknown_key(model: type[BaseModel], document: Document, key: Key, location: Key) -> Fault:
    name, place, path = str(location[-1]), document.key_place(location), path_of(location)
    known = _fields(model, location[len(key) : -1])
    if name in known:  # Of the other of two forms, such as tp beside group sizes per phase.
        got = f"got {name!r} beside keys of another form"
        fix = f"remove {name} or the others"
        return Fault(got, "expected the keys of one form", fix, path, place)
    fix = _KNOWN_ABSENT.get(location[-2:]) or closest(name, known)
    return Fault(f"got the unknown key {name!r}", "expected a known key", fix, path, place)


def _value_fault(error: Any, path: str, place: Place, *, quoted: bool) -> Fault:
    value, kind = error["input"], error["type"]
    template = _EXPECTED.get(kind)
    expected = template.format(**error.get("ctx", {})) if template else error["msg"]
    fix = _number_fix(value, quoted=quoted) if "number" in expected else ""
    if kind == "literal_error" and isinstance(value, str):
        names = [part.strip(" '") for part in expected.replace(" or ", ", ").split(", ")]
        fix = closest(value, names) if len(names) > 1 else f"write {names[0]}"
    return Fault(f"got {shown(value)}", f"expected {expected}", fix, path, place)


def _number_fix(value: Any, *, quoted: bool) -> str:
    """How to write the number that a wrong value looks like, if it does."""
    if quoted and isinstance(scalar(value), int | float):
        return f"remove the quotes: {value}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return f"write {int(value)}"
    return ""


def path_of(key: Key) -> str:
    """A key as messages have it."""
    return ".".join(str(part) for part in key)


def _fields(model: type[BaseModel], key: Key) -> list[str]:
    """Known keys at a path inside a model."""
    models: list[type[BaseModel]] = [model]
    for part in key:
        nested = [m.model_fields[part].annotation for m in models if part in m.model_fields]
        found = [inner for annotation in nested for inner in _direct_models(annotation)]
        models = found or models
    fields = (field for found_model in models for field in found_model.model_fields.items())
    return list(dict.fromkeys(field.alias or name for name, field in fields))


def _direct_models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _direct_models(argument)]


Result = TypeVar("Result")


@dataclass
class Reader:
    """Reads a document; what is wrong with its parts is noted, so that all is told at once.

    Parameters
    ----------
    document : the file.
    faults : what was found, in order.
    """

    document: Document
    faults: list[Fault] = field(default_factory=list, kw_only=True)

    def attempt(
        self, key: Key, build: Callable[[], Result], *, at_key: bool = False
    ) -> Result | None:
        """What ``build`` returns, or its faults noted with their places."""
        try:
            return build()
        except SpecError as error:
            self.faults += self._located(error, key, at_key=at_key)
            return None

    def note(self, fault: Fault, key: Key, *, at_key: bool = False) -> None:
        """Note a fault at a value, or at its key."""
        place = self.document.key_place(key) if at_key else self.document.place(key)
        self.faults.append(fault.located(place, path_of(key)))

    def required(self, part: Result | None) -> Result:
        """The part, if nothing at all is wrong; else raises all faults."""
        if self.faults or part is None:
            raise SpecError(*dict.fromkeys(self.faults))  # Some are found on two ways.
        return part

    def _located(self, error: SpecError, key: Key, *, at_key: bool) -> Iterable[Fault]:
        """The faults, those without a place at a key, or the value under it."""
        place = self.document.key_place(key) if at_key else self.document.place(key)
        return error.located(place, path_of(key)).faults


@dataclass
class FaultCollector(Reader):
    """A reader of a part of a document, to which the paths of faults are relative.

    Parameters
    ----------
    document : the file.
    prefix : the part.
    faults : what was found, in order; shared by the collectors of its parts.
    """

    prefix: Key = ()

    def under(self, *key: str | int) -> FaultCollector:
        """The collector of a part of the document; its faults join these."""
        return FaultCollector(self.document, self.prefix + key, faults=self.faults)

    def present(self, part: Result | None) -> Result:
        """Stop only when this very part is missing; other faults can wait for company."""
        return part if part is not None else self.required(part)

    def _located(self, error: SpecError, key: Key, *, at_key: bool) -> Iterable[Fault]:
        """Faults at their places; those inside another file keep that file's place."""
        found: Iterable[Fault] = error.faults
        if isinstance(error, DataNotFound):
            found = (Fault(f"{one.got} ({one.place})", one.expected, one.fix) for one in found)
        for fault in found:
            at = self.prefix + (dotted_key(fault.path) if fault.path else key)
            place = self.document.key_place(at) if at_key else self.document.place(at)
            yield fault if fault.place else replace(fault, path=path_of(at), place=place)
