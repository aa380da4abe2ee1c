"""Amounts as a user writes them, a number and its unit: ``20 M$`` of money, ``80 GB`` of memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import CoreSchema, PydanticKnownError
from pydantic_core.core_schema import no_info_plain_validator_function

from libra_planner.errors import Fault, SpecError, UnitError, closest
from libra_planner.reading.document import is_number, shown
from libra_planner.units import UNITS, unit_kind

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

    @property
    def expected(self) -> str:
        return f"expected an amount of {self.name} with its unit"

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
    if is_number(value):
        ways = " or ".join(f"{value:g} {unit}" for unit in kind.suggested)
        fix = f"write {ways}" if value >= 0 else fix
        raise UnitError(Fault(f"got {shown(value)} without a unit", kind.expected, fix))
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise SpecError(Fault(f"got {shown(value)}", f"{kind.expected}, {kind.more}", fix))
    return float(match["number"]) * _factor(match["unit"], str(value), kind)


def _factor(unit: str, text: str, kind: _Kind) -> float:
    """One unit in SI."""
    try:
        found, factor = unit_kind(unit)
    except UnitError:
        fix = closest(unit, UNITS[kind.units])
        got = f"got the unit {shown(unit)} in {shown(text)}"
        raise UnitError(Fault(got, f"expected a unit of {kind.name}", fix)) from None
    if found != kind.units:
        raise UnitError(Fault(f"got a {found}, {shown(text)}", kind.expected, kind.fix))
    return factor


# The limits are far beyond any real plan: what exceeds them is a slip of the keyboard.
Rate: TypeAlias = Annotated[float, Field(ge=1e-6, le=1e30, allow_inf_nan=False)]
Bytes: TypeAlias = Annotated[float, Field(ge=1e-3, le=1e18, allow_inf_nan=False)]
Duration: TypeAlias = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
Price: TypeAlias = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=10**12)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
Efficiency: TypeAlias = Annotated[
    float,
    Field(ge=1e-6, le=1, description="Share of the peak that the compute of a step sustains."),
]

DEGREES, GROUPS = "<degrees>", "<groups>"
"""The two kinds of parallelism a plan can give; pydantic puts the kind into error paths."""
AMOUNT, PARTS = "<amount>", "<parts>"
"""The two kinds of fixed cost."""
RATE, NAMED, MEMORY = "<rate>", "<named>", "<memory>"
"""The kinds of NPU: its rate, its name in a catalogue, or its memory alone."""
LOOP_NAME, LOOP_TEXT = "<loop name>", "<loop text>"
"""The two kinds of training loop: its name, or an expression of the plan's own."""
KINDS = frozenset({DEGREES, GROUPS, AMOUNT, PARTS, RATE, NAMED, MEMORY, LOOP_NAME, LOOP_TEXT})
"""Parts of pydantic's error paths that are no keys of a file."""


_KEYS = "\n\nParameters\n----------\n"
_KEY = re.compile(r"^(\w+) : (.*(?:\n +.*)*)", re.M)
"""What separates the keys of a model from the rest of its docstring, and one of them."""


class Model(BaseModel):
    """A part of a file: frozen, nothing extra, no conversions.

    What the docstring of a model says of its keys as parameters is their description in the JSON
    Schema, too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        """The schema of the file's part, every key with its description."""
        found: dict[str, Any] = handler(schema)
        own = handler.resolve_ref_schema(found)
        for kind in reversed(cls.__mro__):
            text, _, keys = cleandoc(kind.__dict__.get("__doc__") or "").partition(_KEYS)
            own["description"] = text
            for name, about in _KEY.findall(keys):
                key = cls.model_fields[name].alias or name
                own["properties"][key]["description"] = " ".join(about.split())
        return found


def _for_models(read: Callable[[Any], float]) -> BeforeValidator:
    """A reading whose faults are those of a value in a file."""

    def check(value: Any) -> float:
        try:
            return read(value)
        except SpecError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(check)


Usd: TypeAlias = Annotated[
    float,
    _for_models(usd),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9].*(\$|USD)\s*$"}),
]
"""An amount of money, written with its unit, in USD."""


Memory: TypeAlias = Annotated[
    float,
    _for_models(memory_bytes),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9].*B\s*$"}),
]
"""An amount of memory, written with its unit, in bytes."""


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
            *shown, last = map(repr, names)
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(shown)} or {last}"})
        return value
