"""What the models of all files share: their base, ranges of numbers, amounts of money."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from libra_planner.errors import SpecError
from libra_planner.spec.amounts import memory_bytes, usd

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


class Model(BaseModel):
    """A part of a file: frozen, nothing extra, no conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _usd(value: Any) -> float:
    try:
        return usd(value)
    except SpecError as error:
        raise ValueError(str(error)) from None


Usd: TypeAlias = Annotated[
    float,
    BeforeValidator(_usd),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9].*(\$|USD)\s*$"}),
]
"""An amount of money, written with its unit, in USD."""


def _memory_bytes(value: Any) -> float:
    try:
        return memory_bytes(value)
    except SpecError as error:
        raise ValueError(str(error)) from None


Memory: TypeAlias = Annotated[
    float,
    BeforeValidator(_memory_bytes),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9].*B\s*$"}),
]
"""An amount of memory, written with its unit, in bytes."""
