"""Price books, NPUs by name, and the fixed cost of a system: what no bandwidth changes (C8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from libra_planner.costs.prices import PriceBook, TierPrice
from libra_planner.costs.quotes import Quote, quoted_parts
from libra_planner.errors import Fault, SpecError, UnknownName, unknown_name
from libra_planner.files import read_text
from libra_planner.plan.npus import canonical_name, catalogue_npu
from libra_planner.reading import bundled
from libra_planner.reading.document import parse_document
from libra_planner.reading.models import (
    AsOf,
    Confidence,
    Efficiency,
    FileModel,
    Kind,
    Memory,
    Model,
    Price,
    Rate,
    SourceText,
    Text,
    Usd,
    validated,
)
from libra_planner.units import BYTES_PER_GB, format_usd


class TierSpec(Model):
    """Prices of one tier, USD per GB/s.

    Parameters
    ----------
    link : USD per GB/s (1e9 bytes per second) of an NPU's bandwidth into the tier, one direction,
        for its links. Every dimension pays it.
    switch : USD per GB/s of an NPU's bandwidth, one direction, for switches. A switch dimension
        pays it once, a further tier of a stack twice.
    nic : USD per GB/s of an NPU's bandwidth, one direction, for NICs. A switch dimension pays it, a
        further tier of a stack does not; 0, with nic_reason, where NPUs reach the switch without
        NICs.
    nic_reason, for a switch that NPUs reach without NICs.
    nic_reason : Why a switch needs no NIC price.
    confidence : How sure they are; by default as sure as the book.
    """

    link: Price | None = None
    switch: Price | None = None
    nic: Price | None = None
    nic_reason: Text | None = None
    confidence: Confidence | None = None

    @model_validator(mode="after")
    def _free_nic_says_why(self) -> TierSpec:
        if self.switch is not None and self.nic == 0 and self.nic_reason is None:
            raise ValueError("got nic: 0 without nic_reason, expected the reason why it is free")
        return self


class PriceBookSpec(FileModel):
    """A price book: USD per GB/s by tier, with source and date.

    Parameters
    ----------
    confidence : published, quoted or assumed: how sure the prices are.
    unit : Unit of all prices.
    tiers : Prices by the name of a tier, which plans write under fabric.tiers.
    """

    kind: Literal["price_book"]
    source: SourceText
    confidence: Confidence = "assumed"
    as_of: AsOf
    unit: Literal["USD per GB/s"]
    tiers: Annotated[dict[str, TierSpec], Field(min_length=1)]


def load_price_book(name: str, beside: Path | None = None) -> PriceBook:
    """Read a price book: a bundled one, or a path, relative to the folder ``beside``.

    Raises
    ------
    SpecError
        With every fault found.
    """
    path = bundled.resolve("cost-models", name, beside)
    return _price_book(path, read_text(path))


@lru_cache(maxsize=16)
def _price_book(path: Path, text: str) -> PriceBook:
    """The price book that a file holds: kept by its text, so a changed file is read anew."""
    spec = validated(PriceBookSpec, parse_document(text, str(path)))
    tiers = {
        name: TierPrice(
            tier.link,
            tier.switch,
            tier.nic,
            tier.confidence or spec.confidence,
            tier.nic_reason or "",
        )
        for name, tier in spec.tiers.items()
    }
    return PriceBook(path.stem, MappingProxyType(tiers), spec.as_of)


_Memory: TypeAlias = Annotated[
    Memory | None,
    Field(description="Memory of one NPU with its unit, such as 80 GB (1e9 bytes) or 80 GiB."),
]


class NpuSpec(Model):
    """Compute rate of one NPU, and its memory.

    Parameters
    ----------
    peak_TFLOPps : Peak 10^12 floating-point operations per second.
    """

    peak_TFLOPps: Rate
    efficiency_fraction: Efficiency
    memory: _Memory = None

    example: ClassVar = MappingProxyType({"peak_TFLOPps": 989.4, "efficiency_fraction": 0.4})


class NpuMemorySpec(Model):
    """Memory of one NPU, whose compute rate is the workload's own default.

    Parameters
    ----------
    memory : Memory of one NPU with its unit, such as 80 GB.
    """

    memory: Memory


class NamedNpuSpec(Model):
    """An NPU of a catalogue: its kernels, or a share of its peak; and its memory.

    Parameters
    ----------
    name : Name of an NPU in the catalogue.
    efficiency_fraction : Share of the peak, for a step of tp and dp alone; without it compute is
        that of measured kernels, operator by operator, in the step of a whole model (C18).
    data_type : Of matrix multiplies, such as bf16.
    catalogue : Path of an NPU catalogue; without it the bundled one.
    """

    name: Text
    efficiency_fraction: Efficiency | None = None
    data_type: Text = "bf16"
    catalogue: Text | None = None
    memory: _Memory = None


def _named(value: Any) -> Any:
    """A name alone is that of an NPU of the catalogue."""
    return {"name": value} if isinstance(value, str) else value


def _npu_kind(value: Any) -> str:
    keys = value.keys() if isinstance(value, dict) else set()
    if keys & {"name", "data_type", "catalogue"} or isinstance(value, NamedNpuSpec):
        return Kind.NAMED
    return Kind.MEMORY if keys == {"memory"} or isinstance(value, NpuMemorySpec) else Kind.RATE


AnyNpuSpec: TypeAlias = Annotated[
    Annotated[NpuSpec, Tag(Kind.RATE)]
    | Annotated[NamedNpuSpec, Tag(Kind.NAMED)]
    | Annotated[NpuMemorySpec, Tag(Kind.MEMORY)],
    Discriminator(_npu_kind),
    BeforeValidator(_named, json_schema_input_type=str | NpuSpec | NamedNpuSpec | NpuMemorySpec),
]


class FixedCostParts(Model):
    """Fixed cost by its parts; per NPU times the NPUs of the topology, plus the rest.

    Parameters
    ----------
    npu : Name of an NPU in the catalogue.
    catalogue : Path of an NPU catalogue; without it the bundled one.
    per_npu : Further cost of each NPU (its share of a host), e.g. 3 k$.
    rest : Cost of everything else that is no network, e.g. 20 M$.
    """

    npu: Text | None = None
    catalogue: Text | None = None
    per_npu: Usd | None = None
    rest: Usd | None = None

    @model_validator(mode="after")
    def _says_something(self) -> FixedCostParts:
        if not self.given("npu", "per_npu", "rest"):
            raise ValueError("got no cost, expected npu, per_npu or rest")
        if self.catalogue is not None and self.npu is None:
            raise ValueError("got a catalogue without npu, expected the name of one of its NPUs")
        return self


FixedCostSpec: TypeAlias = Annotated[
    Annotated[Usd, Tag(Kind.AMOUNT)] | Annotated[FixedCostParts, Tag(Kind.PARTS)],
    Discriminator(
        lambda value: Kind.PARTS if isinstance(value, dict | FixedCostParts) else Kind.AMOUNT
    ),
]


@dataclass(frozen=True)
class FixedCost:
    """Cost of the NPUs and the rest of the system.

    Parameters
    ----------
    usd : the whole of it.
    npus_usd : of it NPUs whose price is the catalogue's or a quote's.
    notes : what of it is an assumption.
    quoted : items of it that are quoted.
    """

    usd: float = 0.0
    npus_usd: float = 0.0
    notes: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()


def fixed_cost(
    spec: float | FixedCostParts | None,
    n_npus: int,
    beside: Path | None = None,
    quotes: Sequence[Quote] = (),
) -> FixedCost:
    """Fixed cost of a system: n_npus * (price of an NPU + per_npu) + rest.

    Parameters
    ----------
    spec : what the plan says; a number is USD.
    n_npus : NPUs of the fabric.
    beside : folder of the plan.
    quotes : of NPUs, among others.

    Raises
    ------
    SpecError
        For an NPU that is not in the catalogue or has no price there.

    Examples
    --------
    >>> fixed_cost(FixedCostParts(per_npu="3 k$", rest="20 M$"), 1000).usd
    23000000.0
    """
    if not isinstance(spec, FixedCostParts):
        return FixedCost(spec or 0.0)
    price_usd, npu_usd = spec.per_npu or 0.0, 0.0
    notes: tuple[str, ...] = ()
    if spec.npu is not None:
        price = catalogue_npu(spec.npu, spec.catalogue, beside, path="fixed_cost.npu").price
        name = canonical_name(spec.npu, spec.catalogue, beside)
        if quote := quoted_parts(quotes).get(name):
            quote = quote.for_units(n_npus)
            usd = n_npus * (quote.usd + price_usd) + (spec.rest or 0.0)
            return FixedCost(usd, n_npus * quote.usd, quoted=(quote.item,))
        if price is None:
            expected = "expected an NPU with a price in the catalogue"
            fix = "leave npu out and give its price as 'per_npu'"
            raise SpecError(Fault(f"got {spec.npu!r}", expected, fix, "fixed_cost.npu"))
        price_usd, npu_usd = price.usd + price_usd, price.usd
        if price.confidence != "published":
            what = f"{price.confidence} NPU price: {format_usd(price.usd)} for {spec.npu}"
            notes = (f"{what} ({price.as_of}); source: {price.source}",)
    return FixedCost(n_npus * price_usd + (spec.rest or 0.0), n_npus * npu_usd, notes)


def compute_rate(spec: NpuSpec | NamedNpuSpec, beside: Path | None) -> NpuSpec:
    """The compute rate a plan means by its ``npu``.

    Raises
    ------
    SpecError
        For an NPU that is not in the catalogue, or whose peak for the data type is not.

    Examples
    --------
    >>> compute_rate(NamedNpuSpec(name="h100-sxm", efficiency_fraction=0.4), None).peak_TFLOPps
    989.4
    """
    if isinstance(spec, NpuSpec):
        return spec
    peaks = catalogue_npu(spec.name, spec.catalogue, beside, path="npu.name").peak_TFLOPps
    if spec.data_type not in peaks:
        (fault,) = unknown_name(f"data type of {spec.name}", spec.data_type, peaks).faults
        raise UnknownName(replace(fault, path="npu.data_type"))
    peak, efficiency = peaks[spec.data_type], spec.efficiency_fraction
    if efficiency is None:
        fix = "add efficiency_fraction, or train a transformer"
        got = f"got {spec.name} without efficiency_fraction"
        raise SpecError(Fault(got, "expected the share of its peak", fix, "npu"))
    return NpuSpec(peak_TFLOPps=peak, efficiency_fraction=efficiency)


def npu_memory_bytes(
    spec: AnyNpuSpec | None, fixed_cost: float | FixedCostParts | None, beside: Path | None
) -> float | None:
    """Memory of the NPU that a plan computes with, else of the one it buys; ``None`` if unknown.

    Parameters
    ----------
    spec : the plan's ``npu``.
    fixed_cost : the plan's ``fixed_cost``.
    beside : folder of the plan.

    Raises
    ------
    SpecError
        For an NPU that is not in the catalogue.

    Examples
    --------
    >>> npu_memory_bytes(NamedNpuSpec(name="a100-sxm-80gb", efficiency_fraction=0.4), None, None)
    85900000000.0
    """
    if spec is not None and spec.memory is not None:
        return spec.memory
    if isinstance(spec, NamedNpuSpec):
        found = catalogue_npu(spec.name, spec.catalogue, beside, path="npu.name")
    elif isinstance(fixed_cost, FixedCostParts) and fixed_cost.npu is not None:
        path, catalogue = "fixed_cost.npu", fixed_cost.catalogue
        found = catalogue_npu(fixed_cost.npu, catalogue, beside, path=path)
    else:
        return None
    return found.memory_GB * BYTES_PER_GB
