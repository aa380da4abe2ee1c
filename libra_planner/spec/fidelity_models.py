"""The keys of a plan that say how closely collectives are modelled."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from libra_planner.reading.document import shown
from libra_planner.reading.fields import Model, Text
from libra_planner.step.collectives.flowshop import MAX_CHUNKS

AUTO = "auto"
_MOST_NS = 1e12


def _chunks(value: Any) -> int | str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value == AUTO or (whole and 1 <= value <= MAX_CHUNKS):
        return value  # type: ignore[no-any-return]
    expected = f"expected a whole number from 1 to {MAX_CHUNKS:,}, or auto"
    raise ValueError(f"got {shown(value)}, {expected}")


def _latencies(value: Any) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    for one in values:
        number = isinstance(one, int | float) and not isinstance(one, bool)
        if not number or not 0 <= one <= _MOST_NS:
            expected = f"expected ns from 0 to {_MOST_NS:g}, or a list with one per dimension"
            raise ValueError(f"got {shown(one)}, {expected}")
    return tuple(float(one) for one in values)


Chunks: TypeAlias = Annotated[
    int | Literal["auto"],
    BeforeValidator(_chunks),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_CHUNKS}, {"const": AUTO}]}
    ),
]
"""Chunks of every collective: a number, or the best of the powers of two."""

Latencies: TypeAlias = Annotated[
    tuple[float, ...],
    BeforeValidator(_latencies),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}),
]
"""Latency of a hop in ns, for all dimensions or for each."""


class FidelitySpec(Model):
    """How closely collectives are modelled (C4); part of every plan."""

    fidelity: Literal["ideal", "pipelined"] = Field(
        default="ideal",
        description="ideal: bytes over bandwidth, as LIBRA; pipelined: chunks that fill and "
        "drain the dimensions, a latency per step, the real links of partial groups.",
    )
    chunks: Chunks | None = Field(
        default=None,
        description="pipelined: equal parts that each collective is cut into, or auto (default).",
    )
    algorithms: list[Text] | None = Field(
        default=None,
        description="pipelined and check: ring, direct, direct1, halving_doubling or default, "
        "for each dimension.",
    )
    in_network_reduction: list[Text] = Field(
        default=[], description="Switches that reduce, by dimension (dim4) or tier."
    )
    scheduler: Literal["hierarchical", "balanced"] = Field(
        default="hierarchical",
        description="hierarchical: dimensions in order; balanced: also what the best split "
        "over orders of the dimensions would give (ideal only).",
    )
