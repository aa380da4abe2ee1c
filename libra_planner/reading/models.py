"""Models of the parts of files: amounts with their units, and what is wrong with a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from inspect import cleandoc
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, ParamSpec, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import CoreSchema, PydanticKnownError
from pydantic_core.core_schema import no_info_plain_validator_function

from libra_planner.errors import (
    MOST_SHOWN,
    DataNotFound,
    Fault,
    Place,
    SpecError,
    UnitError,
    closest,
    more_faults,
    refuse,
    shown,
)
from libra_planner.plain_text import joined
from libra_planner.reading.document import Document, Key, dotted_key, is_number, is_whole, value_at
from libra_planner.reading.kinds import of_quotes, refuse_other_kind
from libra_planner.reading.value_faults import path_of, value_fault
from libra_planner.units import UNITS, unit_kind

_NUMBER = re.compile(r"\s*\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\s*", re.A)
_AMOUNT = re.compile(r"(?P<number>\d+(?:_\d+)*(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(?P<unit>\S.*)", re.A)


@dataclass(frozen=True)
class _Kind:
    """What an amount is of: its kind of units, words, range in SI, and what to suggest."""

    units: str
    name: str
    more: str
    limits: str
    least: float
    most: float
    suggested: tuple[str, str]
    fix: str

    def within(self, amount: float, value: Any) -> float:
        """The amount, if it is one that is no slip of the keyboard."""
        if self.least <= amount <= self.most:
            return amount
        raise SpecError(Fault(f"got {shown(value)}", f"expected {self.limits}"))


_MONEY = _Kind(
    units="money",
    name="money",
    more="0 or more",
    limits="0 or 0.001 to 1e+18 USD",
    least=1e-3,
    most=1e18,
    suggested=("$", "M$"),
    fix="write e.g. 20 M$",
)
_MEMORY = _Kind(
    units="size",
    name="memory",
    more="more than 0",
    limits="1 kB to 1000 TB",
    least=1e3,
    most=1e15,
    suggested=("GB", "GiB"),
    fix="write e.g. 80 GB",
)


def usd(value: Any) -> float:
    """An amount of money in USD.

    Raises
    ------
    UnitError
        For a bare number, or a unit that is not one of money.
    SpecError
        For anything else that is not an amount of at least 0.

    Examples
    --------
    >>> usd("20 M$"), usd("3.5 k$"), usd("0 $")
    (20000000.0, 3500.0, 0.0)
    """
    money_first = isinstance(value, str) and value.strip().startswith("$")
    fix = "write the unit after the number: 20 M$" if money_first else _MONEY.fix
    amount = _amount(value, _MONEY, fix)
    return _MONEY.within(amount, value) if amount else 0.0


def memory_bytes(value: Any) -> float:
    """An amount of memory in bytes: GB is 1e9 bytes, GiB 2**30 (C1).

    Raises
    ------
    UnitError
        For a bare number, or a unit that is not one of size.
    SpecError
        For anything else that is not an amount above 0.

    Examples
    --------
    >>> memory_bytes("80 GB"), memory_bytes("80 GiB")
    (80000000000.0, 85899345920.0)
    """
    return _MEMORY.within(_amount(value, _MEMORY, _MEMORY.fix), value)


def _amount(value: Any, kind: _Kind, fix: str) -> float:
    """The number times its unit, SI."""
    expected = f"expected an amount of {kind.name} with its unit"
    bare = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if is_number(value) or bare:
        number = float(value)
        ways = " or ".join(f"{number:g} {unit}" for unit in kind.suggested)
        fix = f"write {ways}" if number >= 0 else fix
        raise UnitError(Fault(f"got {shown(value)} without a unit", expected, fix))
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise SpecError(Fault(f"got {shown(value)}", f"{expected}, {kind.more}", fix))
    try:
        units, factor = unit_kind(match["unit"])
    except UnitError:
        got = f"got the unit {shown(match['unit'])} in {shown(value)}"
        fix = closest(match["unit"], UNITS[kind.units])
        raise UnitError(Fault(got, f"expected a unit of {kind.name}", fix)) from None
    if units != kind.units:
        raise UnitError(Fault(f"got a {units}, {shown(value)}", expected, kind.fix))
    return float(match["number"]) * factor


# The limits are far beyond any real plan: what exceeds them is a slip of the keyboard.
Rate: TypeAlias = Annotated[float, Field(ge=1e-6, le=1e30, allow_inf_nan=False)]
Bytes: TypeAlias = Annotated[float, Field(ge=1e-3, le=1e18, allow_inf_nan=False)]
Duration: TypeAlias = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
Price: TypeAlias = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
PositivePrice: TypeAlias = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=10**12)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
Efficiency: TypeAlias = Annotated[
    float,
    Field(ge=1e-6, le=1, description="Share of the peak that the compute of a step sustains."),
]


Confidence: TypeAlias = Annotated[
    Literal["published", "quoted", "assumed"],
    Field(
        description="How sure the price is. published: a price list or paper that anyone can read; "
        "quoted: a seller's offer; assumed: an estimate."
    ),
]
SourceText: TypeAlias = Annotated[
    Text,
    Field(description="Where the figures are from, such as a paper, a data sheet or an offer."),
]
AsOf: TypeAlias = Annotated[
    Text, Field(description="Month or day that the figures are of, such as 2026-11.")
]


class Kind:
    """Kinds of a value that a file can give, which pydantic puts into error paths as if they were
    keys: of parallelism, of fixed cost, of an NPU and of a training loop."""

    DEGREES, GROUPS = "<degrees>", "<groups>"
    AMOUNT, PARTS = "<amount>", "<parts>"
    RATE, NAMED, MEMORY = "<rate>", "<named>", "<memory>"
    LOOP_NAME, LOOP_TEXT = "<loop name>", "<loop text>"


_KINDS = frozenset(value for name, value in vars(Kind).items() if name.isupper())


_KEYS = "\n\nParameters\n----------\n"
_KEY = re.compile(r"^(\w+(?:, \w+)*) : (.*(?:\n +.*)*)", re.M)
"""What separates the keys of a model from the rest of its docstring, and one or several of them."""


class Model(BaseModel):
    """A part of a file: frozen, nothing extra, no conversions.

    What the docstring of a model says of its keys as parameters is their description in the JSON
    Schema, too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    example: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Keys and values that are valid together, for messages about such a map."""

    def given(self, *names: str) -> list[str]:
        """Those of some keys that have a value."""
        return [name for name in names if getattr(self, name) is not None]

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        """The schema of the file's part, every key with its description."""
        found: dict[str, Any] = handler(schema)
        own = handler.resolve_ref_schema(found)
        for kind in reversed(cls.__mro__):
            text, _, keys = cleandoc(kind.__dict__.get("__doc__") or "").partition(_KEYS)
            own["description"] = text
            for names, about in _KEY.findall(keys):
                for name in names.split(", "):
                    key = cls.model_fields[name].alias or name
                    own["properties"][key]["description"] = " ".join(about.split())
        return found


class FileModel(Model):
    """A whole file.

    Parameters
    ----------
    kind : What the file holds.
    """

    kind: str


def for_models(read: Callable[[Any], float]) -> BeforeValidator:
    """A reading whose faults are those of a value in a file."""

    def check(value: Any) -> float:
        try:
            return read(value)
        except SpecError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(check)


Usd: TypeAlias = Annotated[
    float,
    for_models(usd),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9].*(\$|USD)\s*$"}),
]
"""An amount of money, written with its unit, in USD."""


Memory: TypeAlias = Annotated[
    float,
    for_models(memory_bytes),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9].*B\s*$"}),
]
"""An amount of memory, written with its unit, in bytes."""


AUTO = "auto"


@dataclass(frozen=True)
class CountOrAuto:
    """Makes a value a whole number of 1 to ``most``, or auto."""

    most: int

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        """Whether a value is one is told in one fault."""
        return no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        """Either of the two."""
        number = {"type": "integer", "minimum": 1, "maximum": self.most}
        return {"anyOf": [number, {"const": AUTO}]}

    def _checked(self, value: Any) -> int | str:
        if value == AUTO or (is_whole(value) and 1 <= value <= self.most):
            return value  # type: ignore[no-any-return]
        expected = f"expected a whole number from 1 to {self.most:,}, or auto"
        raise ValueError(f"got {shown(value)}, {expected}")


def not_among(names: Iterable[str]) -> PydanticKnownError:
    """What a literal of some names says of another value."""
    return PydanticKnownError("literal_error", {"expected": joined([*map(repr, names)], "or")})


@dataclass(frozen=True, eq=False)
class RegisteredName:
    """Makes a text one of the names of a registry, which is read whenever a text is."""

    registry: Iterable[str]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        """A value is what a literal of the names would accept."""
        return no_info_plain_validator_function(self._known)

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        """The names."""
        return {"enum": list(self.registry), "type": "string"}

    def _known(self, value: Any) -> str:
        names = list(self.registry)
        if not isinstance(value, str) or value not in names:
            raise not_among(names)
        return value


Checked = TypeVar("Checked", bound=BaseModel)


def validated(model: type[Checked], document: Document, key: Key = ()) -> Checked:
    """A document, or the part of it under ``key``, as a model.

    Raises
    ------
    SpecError
        With every fault of the document, each at its line and column.
    """
    value = document.at(key)
    if not isinstance(value, dict):
        place = document.place(key)
        refuse(of_quotes(model, value, place))
        got = f"got {shown(value)}"
        raise SpecError(Fault(got, "expected a map of keys and values", "", path_of(key), place))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        refuse_other_kind(model, document, key)
        errors = error.errors(include_url=False)
        errors += _behind_misspelt(model, document, key, errors)
        faults = [
            value_fault(model, document, key, _location(key, one), one)
            for one in errors[:MOST_SHOWN]
        ]
        if len(errors) > MOST_SHOWN:
            faults.append(more_faults(len(errors) - MOST_SHOWN, Place(document.file)))
        raise SpecError(*dict.fromkeys(faults)) from None


_MEANT = re.compile(r"did you mean (\w+)\?")


def _behind_misspelt(
    model: type[BaseModel], document: Document, key: Key, errors: Sequence[Any]
) -> list[Any]:
    """Errors that show only once every unknown key is the known one that it is taken for."""
    value = deepcopy(document.at(key))
    unknown = [_location(key, one) for one in errors if one["type"] == "extra_forbidden"]
    for location in unknown:
        fix = value_fault(model, document, key, location, {"type": "extra_forbidden"}).fix
        meant = _MEANT.fullmatch(fix)
        holder = value_at(value, location[len(key) : -1])
        if meant is None or not isinstance(holder, dict) or meant[1] in holder:
            return []
        holder[meant[1]] = holder.pop(location[-1])
    known = {(one["loc"], one["type"]) for one in errors}
    try:
        if unknown:
            model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False)
        return [one for one in found if (one["loc"], one["type"]) not in known]
    return []


def _location(key: Key, error: Any) -> Key:
    """Where the value of an error stands, without the names of kinds that pydantic adds."""
    return key + tuple(part for part in error["loc"] if part not in _KINDS)


def core_fields(spec: BaseModel, core: type[Any]) -> dict[str, Any]:
    """What a file says of the fields of a dataclass of the core: all that has their names."""
    names = core.__dataclass_fields__
    return {name: value for name, value in spec if name in names and value is not None}


Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


@dataclass
class FaultCollector:
    """Reads a part of a document; what is wrong with it is noted, so that all is told at once.

    Parameters
    ----------
    document : the file.
    prefix : the part, to which keys and the paths of faults are relative.
    faults : what was found, in order; shared by the collectors of its parts.
    """

    document: Document
    prefix: Key = field(default=(), kw_only=True)
    faults: list[Fault] = field(default_factory=list, kw_only=True)

    def under(self, *key: str | int) -> FaultCollector:
        """The collector of a part of the document; its faults join these."""
        return FaultCollector(self.document, prefix=self.prefix + key, faults=self.faults)

    def attempt(
        self,
        key: Key,
        build: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result | None:
        """What ``build`` returns, or its faults noted, those without a place of their own here.

        Those inside another file keep that file's place.
        """
        try:
            return build(*args, **kwargs)
        except SpecError as error:
            found: Iterable[Fault] = error.faults
            if isinstance(error, DataNotFound):
                found = (
                    Fault(f"{one.got} ({one.place})", one.expected, one.fix, is_misspelt=True)
                    for one in found
                )
            for fault in found:
                self.note(fault, dotted_key(fault.path) if fault.path else key)
            return None

    def note(self, fault: Fault, key: Key, *, at_key: bool = False) -> None:
        """Note a fault, one without a place at a value, or at its key."""
        at = self.prefix + key
        place = self.document.key_place(at) if at_key else self.document.place(at)
        self.faults.append(fault if fault.place else replace(fault, path=path_of(at), place=place))

    def required(self, part: Result | None) -> Result:
        """The part, if nothing at all is wrong; else raises all faults."""
        if self.faults or part is None:
            raise SpecError(*dict.fromkeys(self.faults))  # Some are found on two ways.
        return part

    def present(self, part: Result | None) -> Result:
        """Stop only when this very part is missing; other faults can wait for company."""
        return part if part is not None else self.required(part)
