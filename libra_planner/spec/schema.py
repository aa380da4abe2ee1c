"""JSON Schemas of the file formats, for editors and other programs."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from libra_planner.spec.models import PlanSpec, PriceBookSpec, TableSpec, TransformerSpec
from libra_planner.spec.system_models import NpuCatalogueSpec

_FORMATS: dict[str, TypeAdapter[Any]] = {
    "plan": TypeAdapter(PlanSpec),
    "workload": TypeAdapter(TransformerSpec | TableSpec),
    "price-book": TypeAdapter(PriceBookSpec),
    "npu-catalogue": TypeAdapter(NpuCatalogueSpec),
}


def json_schema(name: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of ``plan``, ``workload``, ``price-book`` or ``npu-catalogue`` files.

    >>> sorted(json_schema("plan")["required"])
    ['cost_model', 'fabric', 'parallelism', 'workload']
    """
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | _FORMATS[name].json_schema()
