"""The shape of parts catalogues: what can be bought, and how a cluster is built and run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from libra_planner.spec.fields import Count, Model, Price, Text

Fraction = Annotated[float, Field(ge=0, le=1)]
Power = Annotated[float, Field(ge=0, le=1e9)]
Rate = Annotated[float, Field(ge=0, le=1e6)]
Length = Annotated[float, Field(ge=0, le=1e6)]
Ratio = Annotated[float, Field(ge=1, le=1e3)]
Confidence = Literal["published", "quoted", "assumed"]


class PartPriceSpec(Model):
    """Price of one unit."""

    amount: Annotated[Price, Field(gt=0)]
    currency: Text = Field(default="USD", description="USD, or one of exchange_rates.")
    confidence: Confidence
    as_of: Text
    source: Text


class IncludesSpec(Model):
    """What the price of a server holds beside host and chassis; it is never counted again."""

    scale_up: Text | None = Field(
        default=None,
        description="Bandwidth per NPU, one direction, of the links and switches between its "
        "NPUs, such as 450 GB/s; without it they are not in its price.",
    )
    nics: dict[Text, Count] = Field(
        default={}, description="NICs by the name of their part, and how many a server has."
    )


class PartSpec(Model):
    """One part; without a price it is listed as missing and never counted as free."""

    kind: Literal["server", "nic", "switch", "optic", "copper", "active_optical", "fibre", "rack"]
    description: Text
    port_speed: Text | None = Field(default=None, description="Such as 400 Gbps, one direction.")
    n_ports: Count | None = None
    n_npus: Count | None = None
    reach_m: Length | None = None
    cable: Text | None = Field(default=None, description="Name of the fibre that an optic needs.")
    power_W: Power = 0.0
    power_limit_W: Power | None = None
    rack_units: Annotated[int, Field(ge=0, le=1000)] = 0
    spare_fraction: Fraction = 0.0
    includes: IncludesSpec | None = Field(default=None, description="Of a server.")
    source: Text | None = None
    price: PartPriceSpec | None = None

    @model_validator(mode="after")
    def _complete(self) -> PartSpec:
        needed = {
            "server": ("n_npus",),
            "nic": ("port_speed",),
            "switch": ("port_speed", "n_ports"),
            "optic": ("port_speed", "reach_m", "cable"),
            "copper": ("port_speed", "reach_m"),
            "active_optical": ("port_speed", "reach_m"),
            "rack": ("power_limit_W", "rack_units"),
        }.get(self.kind, ())
        absent = [name for name in needed if not getattr(self, name)]
        if absent:
            raise ValueError(f"got a {self.kind} without {' and '.join(absent)}")
        if self.includes is not None and self.kind != "server":
            raise ValueError(f"got includes of a {self.kind}, expected it of a server only")
        return self


class ExchangeRateSpec(Model):
    """What one unit of another currency is worth."""

    usd: Annotated[float, Field(gt=0, le=1e6)]
    as_of: Text
    source: Text


class AssumedNpuSpec(Model):
    """The NPU of plans that name none."""

    name: Text = Field(description="Name of an NPU in the NPU catalogue.")
    spare_fraction: Fraction = 0.0
    catalogue: Text | None = None


class SideNetworkSpec(Model):
    """A network beside the training fabric."""

    ports_per_server: Annotated[int, Field(ge=0, le=64)] = 1
    port_speed: Text
    switch_radix: Annotated[int, Field(ge=2, le=1024)] = 64
    oversubscription: Ratio = 1.0


class ElectricitySpec(Model):
    """Price of energy."""

    usd_per_kWh: Annotated[float, Field(ge=0, le=100)]
    confidence: Confidence
    source: Text


class FailuresSpec(Model):
    """Failures of one unit that stop a job, per million hours."""

    npu: Rate
    server: Rate
    switch: Rate
    optic: Rate
    source: Text


class DiscountSpec(Model):
    """Discount on a part of which so many units are bought."""

    from_units: Count
    discount_fraction: Annotated[float, Field(ge=0, lt=1)]


class CableLengthsSpec(Model):
    """Length of a cable by what it joins."""

    top_of_rack: Length
    host_leaf: Length = Field(alias="host-leaf")
    leaf_spine: Length = Field(alias="leaf-spine")
    spine_core: Length = Field(alias="spine-core")


class AssumptionsSpec(Model):
    """How a cluster is built, run and paid for."""

    npu: AssumedNpuSpec
    server: Text
    rack: Text
    usable_rack_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    floor_m2_per_rack: Length = 2.5
    cable_lengths_m: CableLengthsSpec
    frontend: SideNetworkSpec
    storage: SideNetworkSpec
    electricity: ElectricitySpec
    power_usage_effectiveness: Annotated[float, Field(ge=1, le=10)]
    amortisation_years: Annotated[float, Field(gt=0, le=100)]
    failures_per_million_hours: FailuresSpec
    checkpoint_s: Annotated[float, Field(ge=0, le=1e6)]
    restart_s: Annotated[float, Field(ge=0, le=1e7)]
    volume_discounts: list[DiscountSpec] = Field(default=[])


class PartsSpec(Model):
    """A parts catalogue."""

    kind: Literal["parts"]
    source: Text
    as_of: Text
    exchange_rates: dict[str, ExchangeRateSpec] = Field(default={})
    parts: Annotated[dict[Text, PartSpec], Field(min_length=1)]
    assumptions: AssumptionsSpec
