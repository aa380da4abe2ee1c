"""The shape of ``fabric.realization`` (pydantic, frozen, nothing extra)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from libra_planner.errors import SpecError
from libra_planner.fabric.topology import MAX_RADIX
from libra_planner.reading.document import shown
from libra_planner.reading.fields import Model, Text
from libra_planner.spec.option_values import MAX_PORTS, speed_bytes_per_s

AUTO = "auto"
_MOST_FAILED = 10**6


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value == AUTO:
        return None
    if whole and 1 <= value <= MAX_PORTS:
        return int(value)
    expected = f"expected a whole number from 1 to {MAX_PORTS:,}, or auto"
    raise ValueError(f"got {shown(value)}, {expected}")


def _speed(value: Any) -> float:
    try:
        return speed_bytes_per_s(value)
    except SpecError as error:
        raise ValueError(str(error)) from None


def _ratio(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and 0.01 <= value <= 1000:
        return float(value)
    ratio = isinstance(value, str) and value.replace(" ", "").endswith(":1")
    fix = f"write {value.replace(' ', '')[:-2]}" if ratio else "2 means 2:1"
    raise ValueError(f"got {shown(value)}, expected a number from 0.01 to 1,000; {fix}")


def _failures(value: Any) -> Any:
    """A bare number is one of links."""
    if isinstance(value, dict):
        return value
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and 0 <= value <= _MOST_FAILED:
        return {"links": value}
    expected = "expected a whole number of cables, or {links: N, spines: N, seed: S}"
    raise ValueError(f"got {shown(value)}, {expected}")


_AUTO_COUNT = WithJsonSchema(
    {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_PORTS}, {"const": AUTO}]}
)
AutoCount: TypeAlias = Annotated[int | None, BeforeValidator(_count), _AUTO_COUNT]
"""A whole number of 1 or more, or auto, which is ``None``."""

Speed: TypeAlias = Annotated[
    float, BeforeValidator(_speed), WithJsonSchema({"type": "string", "pattern": r"[0-9]\s*\w*/?s"})
]
"""A bandwidth written with its unit, in byte/s."""

Ratio: TypeAlias = Annotated[
    float,
    BeforeValidator(_ratio),
    WithJsonSchema({"type": "number", "minimum": 0.01, "maximum": 1000}),
]
FailureCount: TypeAlias = Annotated[int, Field(ge=0, le=_MOST_FAILED)]


class FailuresSpec(Model):
    """What is down, drawn at random."""

    links: FailureCount = Field(default=0, description="Cables between switches.")
    spines: FailureCount = Field(default=0, description="Spines with all their links.")
    seed: Annotated[int, Field(ge=0, le=2**63)] = Field(default=0, description="Of the draw.")


AnyFailures: TypeAlias = Annotated[
    FailuresSpec,
    BeforeValidator(_failures, json_schema_input_type=Annotated[int, Field(ge=0)] | FailuresSpec),
]


class SwitchSpec(Model):
    """How a switch dimension is built; what is not given keeps its default."""

    preset: Text | None = Field(
        default=None, description="Published setting to start from, such as rail-8x400G."
    )
    switch_radix: Annotated[int, Field(ge=2, le=MAX_RADIX)] = Field(
        default=64, description="Ports of a switch."
    )
    port_speed: Speed | None = Field(
        default=None,
        description="Speed of every port, such as 400 Gbit/s; without it exactly what the "
        "design needs.",
    )
    nics: AutoCount = Field(
        default=None, description="NICs per NPU, one port each; auto (default): as many as needed."
    )
    oversubscription: Ratio = Field(
        default=1.0, description="Host bandwidth of a leaf over its uplink bandwidth; 2 is 2:1."
    )
    wiring: Literal["rail", "rail_optimized", "top_of_rack"] = Field(
        default="rail",
        description="rail: a network per group of the dimension; rail_optimized: one network, "
        "leaves of NPUs with the same inner index; top_of_rack: one network, leaves of neighbours.",
    )
    npus_per_rack: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="NPUs that stand in one rack. With top_of_rack, cables to hosts have no optics "
        "where the NPUs of every leaf stand in one rack; without this key none do.",
    )
    parallel_links: AutoCount = Field(
        default=None, description="Links between a leaf and a spine; auto: the fewest spines."
    )
    leaves: AutoCount = Field(default=None, description="Leaves of a network; auto: the fewest.")
    spines: AutoCount = Field(default=None, description="Spines of a network; auto: the fewest.")
    failed_links: AnyFailures = Field(
        default=FailuresSpec(),
        description="Cables between switches that are down, or {links, spines, seed}.",
    )


def _with_overrides(schema: dict[str, Any]) -> None:
    """Any other key is a dimension, whose value has the keys of a switch."""
    traffic = ("placement", "queue_pairs", "npus_per_address")
    own = {key: value for key, value in schema["properties"].items() if key not in traffic}
    schema["additionalProperties"] = {
        "type": "object",
        "additionalProperties": False,
        "properties": own,
    }


class RealizationSpec(SwitchSpec):
    """How the dimensions are built from whole links; a switch's name holds what is its own."""

    model_config = ConfigDict(json_schema_extra=_with_overrides)

    placement: Literal["contiguous", "rail", "random"] = Field(
        default="contiguous", description="How a job's NPUs are laid out over the cluster's."
    )
    queue_pairs: Annotated[int, Field(ge=1, le=128)] = Field(
        default=1, description="Queue pairs per connection; messages are split over them."
    )
    npus_per_address: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=1, description="NPUs that share an IP address; 1 if each has its own."
    )
