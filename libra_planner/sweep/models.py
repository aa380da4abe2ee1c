"""The shape of sweep files (pydantic, frozen, nothing extra)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from libra_planner.routing.headers import HASHES
from libra_planner.routing.policy import POLICIES
from libra_planner.spec.fields import Count, Model, Text

MOST_SAMPLES = 5_000_000
"""Most designs of a sample: their indices are held in memory."""

FIGURES = (
    "objective_value",
    "lower_bound",
    "optimality_gap",
    "step_time_s",
    "seconds_per_sequence",
    "cost_usd",
    "bandwidth",
    "unique",
    "resolved",
    "speedup_vs_equal",
    "message",
    "memory_bytes",
    "sharded_memory_bytes",
)
"""Columns of results that a sweep may choose from; ``bandwidth`` is one per dimension."""

MEMORY_FIGURES = ("memory_bytes", "sharded_memory_bytes")
"""Of them, those that directories of earlier versions do not have."""

DEFAULT_FIGURES = tuple(name for name in FIGURES if name != "speedup_vs_equal")

CHECK_FIGURES = (
    "fim_percent",
    "fim_floor_percent",
    "effective_step_time_s",
    "effective_seconds_per_sequence",
    "check_message",
)
"""Columns of results that a check adds."""

Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class StepRange(Model):
    """Values from one number to another in steps, both ends included."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)
    start: Number = Field(alias="from")
    to: Number
    step: Annotated[Number, Field(gt=0)]


class CountRange(Model):
    """So many values from one number to another, evenly spaced or evenly spaced in logarithm."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)
    start: Number = Field(alias="from")
    to: Number
    n: Annotated[int, Field(ge=1, le=1_000_000)]
    log: bool = False


class FactorizationsSpec(Model):
    """Every topology of so many NPUs: all ordered factors as sizes, all choices of blocks."""

    npus: Annotated[int, Field(ge=2, le=10**9)]
    dims: Any = Field(description="Number of dimensions, such as 3 or 2..4.")
    blocks: Annotated[list[Literal["RI", "FC", "SW"]], Field(min_length=1)]
    sizes: Any = Field(default=None, description="Allowed sizes, such as 2..64 or [4, 8, 16].")


class FactorizationsAxis(Model):
    """An axis of all topologies of a size."""

    factorizations: FactorizationsSpec
    tiers: Any = Field(
        default=None,
        description="Price tiers: a list whose last d serve a topology of d dimensions, or "
        "lists by number of dimensions.",
    )


class TopologiesAxis(Model):
    """An axis of named topologies."""

    topologies: Annotated[list[Text], Field(min_length=1)]
    tiers: Any = Field(default=None, description="As for factorizations.")


AXIS_MODELS: tuple[type[BaseModel], ...] = (
    StepRange,
    CountRange,
    FactorizationsAxis,
    TopologiesAxis,
)

_AXES_SCHEMA = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [
            {"type": "array", "minItems": 1},
            *({"$ref": f"#/$defs/{model.__name__}"} for model in AXIS_MODELS),
        ]
    },
}
_BASE_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "object"}]}


class SampleSpec(Model):
    """How many designs to draw from a space too big to enumerate."""

    method: Literal["lhs", "random"] = "lhs"
    n: Annotated[int, Field(ge=1, le=MOST_SAMPLES)]


class CheckSpec(Model):
    """How the links of every optimum are routed: the options of ``check``."""

    policy: Literal[POLICIES] = "ecmp"  # type: ignore[valid-type]
    seeds: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    hash: Literal[HASHES] | None = None  # type: ignore[valid-type]
    shared_seed: bool = False
    enhanced: bool = False
    per_collective: bool = False
    time_limit: Annotated[float, Field(allow_inf_nan=False)] | None = None


class SweepFile(Model):
    """A sweep: a plan with placeholders, and the values that fill them."""

    base: Annotated[Any, WithJsonSchema(_BASE_SCHEMA)] = Field(
        description="The plan: inline, a path, or a bundled example's name."
    )
    axes: dict[str, Any] = Field(
        min_length=1, description="Name of an axis, or dotted key of the plan, to its values."
    )
    set_: dict[str, Any] = Field(
        default={}, alias="set", description="Dotted keys of the plan to values, with placeholders."
    )
    where: Annotated[list[Text], BeforeValidator(_listed)] = Field(
        default=[], description="Only designs for which all of these hold, e.g. tp * dp == 4096."
    )
    objective: Annotated[
        list[Literal["performance", "performance_per_cost", "cost"]],
        Field(min_length=1),
        BeforeValidator(_listed),
    ] = Field(default=[], description="Objectives; without them the plan's own.")
    columns: Annotated[list[Literal[FIGURES]], Field(min_length=1)] | None = Field(  # type: ignore[valid-type]
        default=None, description="Columns of results to keep, beside axes, objective and status."
    )
    check: CheckSpec | None = Field(
        default=None, description="Route the links of every optimum; adds FIM and effective times."
    )
    sample: SampleSpec | None = None
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    designs_per_part: Annotated[Count, Field(le=100_000)] = 1000


def sweep_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of sweep files.

    >>> sorted(sweep_schema()["required"])
    ['axes', 'base']
    """
    schema = SweepFile.model_json_schema()
    definitions = dict(schema.get("$defs", {}))
    for model in AXIS_MODELS:
        own = model.model_json_schema()
        definitions |= own.pop("$defs", {}) | {model.__name__: own}
    properties = schema["properties"] | {"axes": schema["properties"]["axes"] | _AXES_SCHEMA}
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | schema | {"$defs": definitions, "properties": properties}
