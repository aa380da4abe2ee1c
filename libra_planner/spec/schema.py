"""JSON Schemas of the file formats, for editors and other programs."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from libra_planner.spec.models import PlanSpec, PriceBookSpec, TableSpec, TransformerSpec

_FORMATS: dict[str, TypeAdapter[Any]] = {
    "plan": TypeAdapter(PlanSpec),
    "workload": TypeAdapter(TransformerSpec | TableSpec),
    "price-book": TypeAdapter(PriceBookSpec),
}


def json_schema(name: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of ``plan``, ``workload`` or ``price-book`` files.

    >>> sorted(json_schema("plan")["required"])
    ['cost_model', 'fabric', 'parallelism', 'workload']
    """
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | _FORMATS[name].json_schema()
