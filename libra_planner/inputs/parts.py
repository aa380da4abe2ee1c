"""Parts catalogues, and what a plan says to a buyer: its NPU, price book and files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from libra_planner.costs.currencies import rate_doubt
from libra_planner.errors import Fault, SpecError, unknown_name
from libra_planner.plain_text import with_article
from libra_planner.plan import prices
from libra_planner.plan.models import AnyPlanSpec, PlanSpec
from libra_planner.plan.npus import (
    BUNDLED_CATALOGUE,
    CatalogueNpuSpec,
    canonical_name,
    catalogue_npu,
)
from libra_planner.plan.options import PortSpeed, Speed
from libra_planner.plan.quotes import Currency, Date
from libra_planner.plan.training import plan_spec
from libra_planner.procurement import bill
from libra_planner.procurement.run import HOUR_S, YEAR_S
from libra_planner.reading import bundled
from libra_planner.reading.document import apply_settings, read_document
from libra_planner.reading.models import (
    AsOf,
    Confidence,
    Count,
    FaultCollector,
    FileModel,
    Model,
    PositivePrice,
    SourceText,
    Text,
    core_fields,
    validated,
)
from libra_planner.reading.overlays import bases, read_catalogue

Fraction = Annotated[float, Field(ge=0, le=1)]
Power = Annotated[float, Field(ge=0, le=1e9)]
Rate = Annotated[float, Field(ge=0, le=1e6)]
Length = Annotated[float, Field(ge=0, le=1e6)]
Ratio = Annotated[float, Field(ge=1, le=1e3)]


class PartPriceSpec(Model):
    """Price of one unit.

    Parameters
    ----------
    amount : Price of one unit, in the currency.
    low : Lowest price of one unit that sources say, in the currency; without it the amount.
    high : Highest price of one unit that sources say, in the currency; without it the amount.
    valid_until : Last day of an offer, such as 2026-12-31.
    support : Price of support of one unit for all years of use, in the currency; a line of its own
        in bills.
    currency : USD, or one of exchange_rates.
    """

    amount: PositivePrice
    low: PositivePrice | None = None
    high: PositivePrice | None = None
    currency: Currency = "USD"
    confidence: Confidence
    as_of: AsOf
    source: SourceText
    valid_until: Date | None = None
    support: PositivePrice | None = None

    @model_validator(mode="after")
    def _in_order(self) -> PartPriceSpec:
        low, high = self.low or self.amount, self.high or self.amount
        if not low <= self.amount <= high:
            got = f"got low {low:g}, amount {self.amount:g}, high {high:g}"
            raise ValueError(f"{got}, expected low <= amount <= high")
        return self


class IncludesSpec(Model):
    """What the price of a server holds beside host and chassis; it is never counted again.

    Parameters
    ----------
    scale_up : Bandwidth per NPU, one direction, of the links and switches between its NPUs, such as
        450 GB/s; without it they are not in its price.
    nics : NICs by the name of their part, and how many a server has.
    n_racks : Racks that it comes with; 0 for a server that goes into a rack.
    """

    scale_up: Speed | None = None
    nics: dict[Text, Count] = Field({})
    n_racks: Annotated[int, Field(ge=0, le=100)] = Field(0, alias="racks")


class PartSpec(Model):
    """One part; without a price it is listed as missing and never counted as free.

    Parameters
    ----------
    kind : What the part is. copper and active_optical are whole cables; an optic is one end of a
        cable, and fibre is what joins two of them.
    description : What the part is in words, as bills print it.
    port_speed : Bandwidth, one direction, such as 400 Gbps: of each port of a NIC or switch, of a
        whole cable or optic.
    n_ports : Ports of a switch.
    ports_per_cage : Ports of a switch that share one cage, so that one module serves as many links;
        1 by default. Bills count a module for each link end, and say so where it is more.
    links_per_module : Links that an optic serves, each of its port speed; 1 by default. A module of
        two links is bought for the cages of switches whose ports_per_cage is 2.
    splits : Whether an optic of one link serves several slower ones, too, each on fibres of its
        own, as SR and DR do; true by default. FR and LR, whose wavelengths share a pair of fibres,
        do not.
    n_npus : NPUs that a server holds.
    n_hosts : Computers of a server, each with links to the side networks; 1 by default.
    reach_m : Longest distance that a cable or optic bridges, m.
    cable : Name of the fibre that an optic needs.
    power_w : Power that one unit in use draws, W; of a server without its NPUs and NICs.
    power_limit_w : Power that a rack can hold, W.
    n_rack_units : Height in rack units: what a server or switch takes, or what a rack has.
    spare_fraction : Spares that are bought, as a share of the units in use, rounded up: 0.02 of 101
        is 3. They cost money and draw no power.
    includes : What the price of a server holds beside host and chassis, so that nothing is paid
        twice.
    source : Where its figures but the price are from.
    part_number : Number of the part at its seller.
    n_lead_days : Days from order to delivery.
    price : Price of one unit; a part without it is listed as missing and never counts as free.
    """

    kind: Literal["server", "nic", "switch", "optic", "copper", "active_optical", "fibre", "rack"]
    description: Text
    port_speed: PortSpeed | None = None
    n_ports: Count | None = None
    ports_per_cage: Annotated[int, Field(ge=1, le=8)] = 1
    links_per_module: Annotated[int, Field(ge=1, le=8)] = 1
    splits: bool = True
    n_npus: Count | None = None
    n_hosts: Count = 1
    reach_m: Length | None = None
    cable: Text | None = None
    power_w: Power = Field(default=0.0, alias="power_W")
    power_limit_w: Power | None = Field(default=None, alias="power_limit_W")
    n_rack_units: Annotated[int, Field(ge=0, le=1000)] = Field(default=0, alias="rack_units")
    spare_fraction: Fraction = 0.0
    includes: IncludesSpec | None = None
    source: Text | None = None
    part_number: Text | None = None
    n_lead_days: Annotated[int, Field(ge=0, le=10_000)] | None = Field(None, alias="lead_time_days")
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
            "rack": ("power_limit_w", "n_rack_units"),
        }.get(self.kind, ())
        fields, one = type(self).model_fields, with_article(self.kind)
        absent = [fields[name].alias or name for name in needed if not getattr(self, name)]
        if absent:
            raise ValueError(f"got {one} without {' and '.join(absent)}")
        for name, kind in _OF_ONE_KIND.items():
            if getattr(self, name) != fields[name].default and self.kind != kind:
                raise ValueError(f"got {name} of {one}, expected it of {with_article(kind)} only")
        return self


# Fields of parts of one kind only.
_OF_ONE_KIND = {"ports_per_cage": "switch", "includes": "server"}
_OF_ONE_KIND |= {"links_per_module": "optic", "splits": "optic"}


class ExchangeRateSpec(Model):
    """What one unit of another currency is worth.

    Parameters
    ----------
    usd : USD that one unit of the currency is worth, such as 1.08.
    """

    usd: Annotated[float, Field(gt=0, le=1e6)]
    as_of: AsOf
    source: SourceText


class AssumedNpuSpec(Model):
    """The NPU of plans that name none.

    Parameters
    ----------
    name : Name of an NPU in the NPU catalogue.
    spare_fraction : Spares that are bought, as a share of the NPUs in use, rounded up: also of the
        NPU that a plan names.
    catalogue : Path of an NPU catalogue; without it the bundled one.
    """

    name: Text
    spare_fraction: Fraction = 0.0
    catalogue: Text | None = None


class SideNetworkSpec(Model):
    """A network beside the training fabric.

    Parameters
    ----------
    n_ports_per_server : NICs that each computer of a server has on this network; with 0 the network
        is not bought.
    port_speed : Bandwidth of each port, one direction, such as 200 Gbps.
    switch_radix : Ports of a switch.
    oversubscription : Bandwidth of a leaf's servers over that of its uplinks; 4 is 4:1.
    n_reserved : Positions on the leaves that stay free of servers, for storage systems, head nodes
        or links to the site.
    """

    n_ports_per_server: Annotated[int, Field(ge=0, le=64)] = Field(1, alias="ports_per_server")
    port_speed: PortSpeed
    switch_radix: Annotated[int, Field(ge=2, le=1024)] = 64
    oversubscription: Ratio = 1.0
    n_reserved: Annotated[int, Field(ge=0, le=100_000)] = Field(default=0, alias="reserve")


class ElectricitySpec(Model):
    """Price of energy.

    Parameters
    ----------
    usd_per_kwh : Price of electricity, USD per kWh.
    """

    usd_per_kwh: Annotated[float, Field(ge=0, le=100)] = Field(alias="usd_per_kWh")
    confidence: Confidence
    source: SourceText


class FailuresSpec(Model):
    """Failures of one unit that stop a job, per million hours.

    Parameters
    ----------
    npu : Failures of one NPU that stop the job, per million hours.
    server : Failures of one computer of a server, without its NPUs, that stop the job, per million
        hours.
    switch : Failures of one switch of the training network that stop the job, per million hours.
    optic : Failures of one optic of the training network that stop the job, per million hours.
    """

    npu: Rate
    server: Rate
    switch: Rate
    optic: Rate
    source: SourceText


class DiscountSpec(Model):
    """Discount on a part of which so many units are bought.

    Parameters
    ----------
    n_units : Units of one part, spares included, from which the discount is given.
    discount_fraction : Share of the price that is taken off, such as 0.07 for 7 %.
    """

    n_units: Count = Field(alias="from_units")
    discount_fraction: Annotated[float, Field(ge=0, lt=1)]


class CableLengthsSpec(Model):
    """Length of a cable by what it joins.

    Parameters
    ----------
    top_of_rack : Length of a cable from a NIC to a leaf in the same rack, m.
    host_leaf : Length of a cable from a NIC to any other leaf, m.
    leaf_spine : Length of a cable from a leaf to a spine, m.
    spine_core : Length of a cable from a spine to a core, m.
    """

    top_of_rack: Length
    host_leaf: Length = Field(alias="host-leaf")
    leaf_spine: Length = Field(alias="leaf-spine")
    spine_core: Length = Field(alias="spine-core")


class AssumptionsSpec(Model):
    """How a cluster is built, run and paid for.

    Parameters
    ----------
    npu : NPU of plans that name none, and spares of every NPU.
    server : Name of the server part that NPUs stand in, unless the plan's scale_up comes in
        another.
    rack : Name of the rack part that servers and switches stand in.
    usable_rack_fraction : Share of a rack's units that servers or switches can take.
    floor_m2_per_rack : Floor of one rack with its share of the aisles, m².
    cable_lengths_m : Length of cables by what they join, m: it decides between copper and optics.
    frontend : Network that joins all servers to users.
    storage : Network that joins all servers to storage; storage systems are not counted.
    electricity : Price of energy.
    pue : Power of the whole facility over that of its IT equipment, such as 1.3.
    amortisation_years : Years of use that pay for the hardware: of 4, a run of one year pays a
        quarter.
    failures_per_million_hours : How often parts fail so that the job stops.
    checkpoint_s : Time for which a checkpoint stops the job, s.
    restart_s : Time from a failure until the job computes again, s; the work since the last
        checkpoint is lost besides.
    volume_discounts : Discounts by units of one part. Reports show totals with them beside the
        bill, which has none; quotes get none.
    tax_percent : Over the price of everything; 0 by default.
    """

    npu: AssumedNpuSpec
    server: Text
    rack: Text
    usable_rack_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    floor_m2_per_rack: Length = 2.5
    cable_lengths_m: CableLengthsSpec
    frontend: SideNetworkSpec
    storage: SideNetworkSpec
    electricity: ElectricitySpec
    pue: Annotated[float, Field(ge=1, le=10)] = Field(alias="power_usage_effectiveness")
    amortisation_years: Annotated[float, Field(gt=0, le=100)]
    failures_per_million_hours: FailuresSpec
    checkpoint_s: Annotated[float, Field(ge=0, le=1e6)]
    restart_s: Annotated[float, Field(ge=0, le=1e7)]
    volume_discounts: list[DiscountSpec] = Field(default=[])
    tax_percent: Annotated[float, Field(ge=0, le=100)] = 0.0


class PartsSpec(FileModel):
    """A parts catalogue.

    Parameters
    ----------
    base : Catalogue that this one adds to, such as parts, the bundled one: what it says holds where
        this one says nothing. A price is replaced whole.
    exchange_rates : What other currencies are worth, by the name that prices write, such as EUR.
    parts : Parts by name.
    assumptions : What no part says: how a cluster is built, run and paid for.
    """

    kind: Literal["parts"]
    source: SourceText
    as_of: AsOf
    base: Text | None = None
    exchange_rates: dict[Currency, ExchangeRateSpec] = Field(default={})
    parts: Annotated[dict[Text, PartSpec], Field(min_length=1)]
    assumptions: AssumptionsSpec


BUNDLED_PARTS = "parts"
"""The parts catalogue that a report means when it names none."""

_PER_MILLION_HOURS = 1 / (1e6 * HOUR_S)


@dataclass(frozen=True)
class Catalogue:
    """A parts catalogue as read.

    Parameters
    ----------
    path : of the file.
    npu_catalogue : the file that its NPU is from.
    parts, assumptions : what it says.
    bases : files that it is based on.
    """

    path: Path
    npu_catalogue: Path
    parts: bill.Parts = field(repr=False)
    assumptions: bill.Assumptions = field(repr=False)
    bases: tuple[Path, ...] = ()


def load_parts(name: str = BUNDLED_PARTS, beside: Path | None = None) -> Catalogue:
    """Read a parts catalogue.

    Parameters
    ----------
    name : of a bundled one, or a path.
    beside : folder that a path is relative to.

    Raises
    ------
    SpecError
        With every fault found, each at its place.

    Examples
    --------
    >>> catalogue = load_parts()
    >>> catalogue.parts.by_name["switch-64x400g"].price.confidence
    'published'
    """
    path = bundled.resolve("parts", name, beside)
    document = read_catalogue("parts", path)
    try:
        spec = validated(PartsSpec, document)
    except SpecError as error:
        raise SpecError(*map(_told_of_base, error.faults)) from None
    reader = _PartsReader(document, spec, path.parent, path.stem)
    parts, assumptions = reader.parts(), reader.required(reader.assumptions())
    npus = reader.spec.assumptions.npu.catalogue or BUNDLED_CATALOGUE
    file = bundled.resolve("npu-catalogues", npus, path.parent)
    return Catalogue(path, file, parts, assumptions, tuple(bases("parts", path)))


def _told_of_base(fault: Fault) -> Fault:
    """A section that a catalogue lacks, with how it takes that of the bundled one."""
    if fault.path not in ("parts", "assumptions") or fault.got != "got nothing":
        return fault
    fix = f"write base: {BUNDLED_PARTS}, and only what you add to the bundled one or change"
    return replace(fault, fix=fix)


@dataclass
class _PartsReader(FaultCollector):
    spec: PartsSpec
    beside: Path
    name: str

    def parts(self) -> bill.Parts:
        """All parts of the file."""
        found = {name: self._part(name, part) for name, part in self.spec.parts.items()}
        for name, spec in self.spec.parts.items():
            if spec.cable is not None:
                self.attempt(("parts", name, "cable"), self._checked, spec.cable, "fibre")
            for nic in spec.includes.nics if spec.includes else ():
                self.attempt(("parts", name, "includes", "nics", nic), self._checked, nic, bill.NIC)
        return bill.Parts(found, self.name, self.spec.as_of, self.spec.source)

    def _part(self, name: str, spec: PartSpec) -> bill.Part:
        key, includes = ("parts", name), bill.Includes()
        price = self.attempt((*key, "price", "currency"), self._price, spec.price)
        if spec.includes is not None:
            nics, n_racks = tuple(spec.includes.nics.items()), spec.includes.n_racks
            includes = bill.Includes(spec.includes.scale_up or 0.0, nics, n_racks)
        own = {"price": price, "port_speed_Bps": spec.port_speed or 0.0, "includes": includes}
        return bill.Part(name, **core_fields(spec, bill.Part) | own)

    def _price(self, spec: PartPriceSpec | None) -> bill.Price | None:
        if spec is None:
            return None
        rate_usd, source, doubt = Decimal(1), spec.source, ""
        if spec.currency != "USD":
            if (rate := self.spec.exchange_rates.get(spec.currency)) is None:
                fix = f"add {spec.currency} to exchange_rates, or give the amount in USD"
                known = f"expected {' or '.join(['USD', *self.spec.exchange_rates])}"
                raise SpecError(Fault(f"got {spec.currency!r}", known, fix))
            rate_usd, doubt = Decimal(repr(rate.usd)), rate_doubt(spec.currency, rate.usd)
            source += f"; {spec.amount:g} {spec.currency} at {rate.usd:g} USD ({rate.as_of})"
        exact = bill.to_cents if spec.currency == "USD" else Decimal
        amounts = (spec.amount, spec.low, spec.high, spec.support)
        usd, low, high, support_usd = (exact(Decimal(repr(x or 0.0)) * rate_usd) for x in amounts)
        if not bill.to_cents(usd):
            got = f"got {spec.amount:g} {spec.currency}, which is $0.00"
            fix = "price a larger unit, or leave the price out: the part is listed as missing"
            raise SpecError(Fault(got, "expected at least half a cent", fix))
        ends = low or None, high or None, spec.valid_until
        own = (usd, spec.confidence, spec.as_of, source, *ends)
        return bill.Price(*own, support_usd=support_usd or None, doubt=doubt)

    def assumptions(self) -> bill.Assumptions | None:
        """How a cluster is built, run and paid for."""
        spec, key = self.spec.assumptions, ("assumptions",)
        npu = self.attempt((*key, "npu"), self._npu, spec.npu)
        server = self.attempt((*key, "server"), self._of_kind, spec.server, bill.SERVER)
        rack = self.attempt((*key, "rack"), self._of_kind, spec.rack, bill.RACK)
        sides = []
        for name in ("frontend", "storage"):
            side = getattr(spec, name)
            own = core_fields(side, bill.SideNetwork)
            sides.append(bill.SideNetwork(name=name, port_speed_Bps=side.port_speed, **own))
        if npu is None or server is None or rack is None:
            return None
        rates, discounts = spec.failures_per_million_hours, spec.volume_discounts
        per_s = {
            f"{name}_per_s": rate * _PER_MILLION_HOURS for name, rate in rates if name != "source"
        }
        own = {
            "npu": npu,
            "server": server,
            "rack": rack,
            "cable_lengths_m": spec.cable_lengths_m.model_dump(by_alias=True),
            "electricity": bill.Electricity(**dict(spec.electricity)),
            "volume_discounts": tuple(
                bill.VolumeDiscount(**dict(one))
                for one in sorted(discounts, key=lambda d: d.n_units)
            ),
        }
        return bill.Assumptions(
            side_networks=tuple(sides),
            amortisation_s=spec.amortisation_years * YEAR_S,
            tax_fraction=float(Decimal(repr(spec.tax_percent)) / 100),
            failures=bill.FailureRates(**per_s, source=rates.source),
            **core_fields(spec, bill.Assumptions) | own,
        )

    def _npu(self, spec: AssumedNpuSpec) -> bill.Part:
        path = "assumptions.npu.name"
        try:
            found = catalogue_npu(spec.name, spec.catalogue, self.beside, path=path)
        except SpecError as error:
            place = self.document.place(("assumptions", "npu"))
            raise SpecError(*error.located(place, "assumptions.npu").faults) from None
        return npu_part(spec.name, found, spec.spare_fraction)

    def _of_kind(self, name: str, kind: str) -> bill.Part:
        self._checked(name, kind)
        return self._part(name, self.spec.parts[name])

    def _checked(self, name: str, kind: str) -> None:
        """Refuse a name that no part of a kind has."""
        known = [one for one, part in self.spec.parts.items() if part.kind == kind]
        if name not in known:
            raise unknown_name(f"{kind} of this catalogue", name, known)


def npu_part(name: str, spec: CatalogueNpuSpec, spare_fraction: float) -> bill.Part:
    """An NPU of an NPU catalogue as a part."""
    given, price = spec.price, None
    if given is not None:
        usd, low_usd, high_usd = (
            None if amount is None else bill.to_cents(amount)
            for amount in (given.usd, given.low_usd, given.high_usd)
        )
        own = (given.confidence, given.as_of, given.source, low_usd, high_usd)
        price = None if usd is None else bill.Price(usd, *own)
    return bill.Part(
        name,
        bill.NPU,
        spec.vendor_name,
        price,
        power_w=spec.tdp_W or 0.0,
        spare_fraction=spare_fraction,
        source=spec.source,
    )


@dataclass(frozen=True)
class InputFile:
    """A file that a report rests on.

    Parameters
    ----------
    role, name : such as plan, and the name it was given by.
    sha256 : of its bytes.
    """

    role: str
    name: str
    sha256: str


def input_file(role: str, name: str, path: Path) -> InputFile:
    """A file with the hash of its bytes."""
    return InputFile(role, name, hashlib.sha256(path.read_bytes()).hexdigest())


@dataclass(frozen=True)
class PlanContext:
    """What a plan says to a buyer.

    Parameters
    ----------
    npu : the NPU it names; ``None`` where it names none.
    book_as_of, book_source : of its price book.
    files : all that it reads.
    """

    npu: bill.Part | None
    book_as_of: str
    book_source: str
    files: tuple[InputFile, ...] = field(repr=False)


def plan_context(
    path: str | Path,
    settings: Sequence[str] = (),
    *,
    npu_spare_fraction: float = 0.0,
    shown: str | None = None,
) -> PlanContext:
    """What a valid plan says beside its problem.

    Parameters
    ----------
    path, settings : as :func:`~libra_planner.plan.problem.load_plan` takes them.
    npu_spare_fraction : spares of the NPU over those in use.
    shown : what to call the plan's file, if not by its path.

    Raises
    ------
    SpecError
        For a plan that is not valid.

    Examples
    --------
    >>> context = plan_context(bundled.example("02_performance_per_cost"))
    >>> context.npu.name, context.book_as_of
    ('h100-sxm', '2024-05')
    """
    document = read_document(path)
    apply_settings(document, settings)
    spec, beside = plan_spec(document), Path(path).parent
    book = bundled.resolve("cost-models", spec.cost_model, beside)
    read = validated(prices.PriceBookSpec, read_document(book))
    files = [
        input_file("plan", shown or str(path), Path(path)),
        input_file("price book", spec.cost_model, book),
    ]
    if spec.quotes is not None:
        files.append(input_file("quotes", Path(spec.quotes).name, beside / spec.quotes))
    entries = [spec] if isinstance(spec, PlanSpec) else spec.workloads
    for name in dict.fromkeys(entry.workload for entry in entries):
        files.append(input_file("workload", name, bundled.resolve("workloads", name, beside)))
    npu, (_, catalogue) = plan_npu(spec, beside, npu_spare_fraction), _npu(spec)
    if npu is not None:
        file = catalogue or BUNDLED_CATALOGUE
        resolved = bundled.resolve("npu-catalogues", file, beside)
        files.append(input_file("NPU catalogue", file, resolved))
    return PlanContext(npu, read.as_of, read.source, tuple(files))


def plan_npu(spec: AnyPlanSpec, beside: Path, spare_fraction: float) -> bill.Part | None:
    """The NPU that a plan buys as a part; ``None`` where it names none.

    Raises
    ------
    SpecError
        For a name that its catalogue does not have.
    """
    name, catalogue = _npu(spec)
    if name is None:
        return None
    found = catalogue_npu(name, catalogue, beside, path="npu.name")
    return npu_part(canonical_name(name, catalogue, beside), found, spare_fraction)


def _npu(spec: AnyPlanSpec) -> tuple[str | None, str | None]:
    """Name and catalogue of the NPU that a plan buys, else of the one it computes with."""
    if isinstance(spec.fixed_cost, prices.FixedCostParts) and spec.fixed_cost.npu is not None:
        return spec.fixed_cost.npu, spec.fixed_cost.catalogue
    entries = [spec] if isinstance(spec, PlanSpec) else spec.workloads
    named = [entry.npu for entry in entries if isinstance(entry.npu, prices.NamedNpuSpec)]
    if named and len({npu.name for npu in named}) == 1:
        return named[0].name, named[0].catalogue
    return None, None
