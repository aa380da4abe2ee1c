"""The shape of a plan's NPU and fixed cost, and of NPU catalogues."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from libra_planner.reading.fields import (
    AMOUNT,
    MEMORY,
    NAMED,
    PARTS,
    RATE,
    Efficiency,
    Memory,
    Model,
    Price,
    Rate,
    Text,
    Usd,
)

_Memory: TypeAlias = Annotated[
    Memory | None,
    Field(description="Memory of one NPU with its unit, such as 80 GB (1e9 bytes) or 80 GiB."),
]


class NpuSpec(Model):
    """Compute rate of one NPU, and its memory."""

    peak_TFLOPps: Rate = Field(description="Peak 10^12 floating-point operations per second.")
    efficiency_fraction: Efficiency
    memory: _Memory = None


class NpuMemorySpec(Model):
    """Memory of one NPU, whose compute rate is the workload's own default."""

    memory: Memory = Field(description="Memory of one NPU with its unit, such as 80 GB.")


class NamedNpuSpec(Model):
    """Compute rate of one NPU of a catalogue, and its memory."""

    name: Text = Field(description="Name of an NPU in the catalogue.")
    efficiency_fraction: Efficiency
    data_type: Text = Field(default="bf16", description="Whose peak counts, such as bf16.")
    catalogue: Text | None = Field(
        default=None, description="Path of an NPU catalogue; without it the bundled one."
    )
    memory: _Memory = None


def _npu_kind(value: Any) -> str:
    keys = value.keys() if isinstance(value, dict) else set()
    if keys & {"name", "data_type", "catalogue"} or isinstance(value, NamedNpuSpec):
        return NAMED
    return MEMORY if keys == {"memory"} or isinstance(value, NpuMemorySpec) else RATE


AnyNpuSpec: TypeAlias = Annotated[
    Annotated[NpuSpec, Tag(RATE)]
    | Annotated[NamedNpuSpec, Tag(NAMED)]
    | Annotated[NpuMemorySpec, Tag(MEMORY)],
    Discriminator(_npu_kind),
]


class FixedCostParts(Model):
    """Fixed cost by its parts; per NPU times the NPUs of the topology, plus the rest."""

    npu: Text | None = Field(default=None, description="Name of an NPU in the catalogue.")
    catalogue: Text | None = Field(
        default=None, description="Path of an NPU catalogue; without it the bundled one."
    )
    per_npu: Usd | None = Field(
        default=None, description="Further cost of each NPU (its share of a host), e.g. 3 k$."
    )
    rest: Usd | None = Field(
        default=None, description="Cost of everything else that is no network, e.g. 20 M$."
    )

    @model_validator(mode="after")
    def _says_something(self) -> FixedCostParts:
        if self.npu is None and self.per_npu is None and self.rest is None:
            raise ValueError("got no cost, expected npu, per_npu or rest")
        if self.catalogue is not None and self.npu is None:
            raise ValueError("got a catalogue without npu, expected the name of one of its NPUs")
        return self


def _fixed_cost_kind(value: Any) -> str:
    return PARTS if isinstance(value, dict | FixedCostParts) else AMOUNT


FixedCostSpec: TypeAlias = Annotated[
    Annotated[Usd, Tag(AMOUNT)] | Annotated[FixedCostParts, Tag(PARTS)],
    Discriminator(_fixed_cost_kind),
]


class NpuPriceSpec(Model):
    """Price of one NPU, and how sure it is."""

    usd: Annotated[Price, Field(gt=0)]
    confidence: Literal["published", "quoted", "assumed"]
    as_of: Text
    source: Text


class CatalogueNpuSpec(Model):
    """One NPU; peak rates are dense (without structured sparsity)."""

    vendor_name: Text
    peak_TFLOPps: Annotated[dict[Text, Rate], Field(min_length=1)] = Field(
        description="Peak 10^12 floating-point operations per second, by data type."
    )
    memory_GB: Rate = Field(description="Usable memory, 1e9 bytes.")
    memory_source: Text | None = Field(default=None, description="Where memory_GB is from.")
    tdp_W: Rate | None = None
    source: Text
    price: NpuPriceSpec | None = None


class NpuCatalogueSpec(Model):
    """NPUs by name, with their sources."""

    kind: Literal["npu_catalogue"]
    source: Text
    as_of: Text
    npus: Annotated[dict[Text, CatalogueNpuSpec], Field(min_length=1)]
