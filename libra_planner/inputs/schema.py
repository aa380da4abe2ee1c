"""JSON Schemas of the file formats, for editors and other programs."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from libra_planner.inputs.parts import PartsSpec
from libra_planner.plan.architectures.cnn import CnnSpec
from libra_planner.plan.architectures.dlrm import DlrmSpec
from libra_planner.plan.models import (
    AUTO_PARALLELISM,
    GroupPlanSpec,
    PlanSpec,
    TableSpec,
    TrainingSpec,
    TransformerSpec,
)
from libra_planner.plan.npus import NpuCatalogueSpec
from libra_planner.plan.prices import PriceBookSpec
from libra_planner.plan.quotes import QuotesSpec
from libra_planner.plan.steps.strategies import OpenDegreesSpec
from libra_planner.plan.systems import SystemSpec

FORMATS: dict[str, TypeAdapter[Any]] = {
    "plan": TypeAdapter(PlanSpec),
    "workload": TypeAdapter(TransformerSpec | CnnSpec | DlrmSpec | TableSpec),
    "price-book": TypeAdapter(PriceBookSpec),
    "npu-catalogue": TypeAdapter(NpuCatalogueSpec),
    "parts": TypeAdapter(PartsSpec),
    "quotes": TypeAdapter(QuotesSpec),
    "system": TypeAdapter(SystemSpec),
}
"""Formats by name; that of sweeps is :func:`~libra_planner.sweeps.axes.sweep_schema`."""


def json_schema(name: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of a format: ``plan``, ``workload``, ``price-book`` and so on.

    >>> sorted(json_schema("plan")["required"])
    ['cost_model', 'fabric']
    """
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema = FORMATS[name].json_schema()
    return dialect | (_with_groups(schema) if name == "plan" else schema)


def _with_groups(plan: dict[str, Any]) -> dict[str, Any]:
    """The schema of a plan in either shape: one map of keys, which editors complete best."""
    group = TypeAdapter(GroupPlanSpec).json_schema()
    open_degrees = TypeAdapter(OpenDegreesSpec).json_schema()
    parallelism = plan["properties"]["parallelism"]["oneOf"]
    parallelism += [{"const": AUTO_PARALLELISM}, {"$ref": f"#/$defs/{OpenDegreesSpec.__name__}"}]
    own = [key for key in plan["required"] if key not in group["required"]]
    either = [
        {"required": own},
        {"required": ["workloads"], "properties": dict.fromkeys(TrainingSpec.model_fields, False)},
    ]
    return plan | {
        "$defs": plan["$defs"] | group["$defs"] | {OpenDegreesSpec.__name__: open_degrees},
        "properties": plan["properties"] | group["properties"],
        "required": [key for key in plan["required"] if key not in own],
        "oneOf": either,
    }
