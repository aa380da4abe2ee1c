"""Parts that can be bought, bills of them, and what no part says by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

from libra_planner.costs.prices import ASSUMED, QUOTED
from libra_planner.units import gigabytes_per_s

NPU, SERVER, NIC, SWITCH, OPTIC = "npu", "server", "nic", "switch", "optic"
COPPER, ACTIVE_OPTICAL, FIBRE, RACK, LINK = "copper", "active_optical", "fibre", "rack", "link"
SERVICE = "service"
"""Kinds of parts; an NPU comes from its own catalogue, a link from the price book, a service from
quotes."""

CABLING = (OPTIC, COPPER, ACTIVE_OPTICAL, FIBRE)
"""Kinds that the length of a cable decides."""

CENT = Decimal("0.01")

_ROUNDING = 1e-9
"""Relative difference of speeds that is rounding."""


def to_cents(usd: float | Decimal) -> Decimal:
    """An amount rounded to the cent, half up.

    >>> to_cents(2.675), to_cents(Decimal("1e3"))
    (Decimal('2.68'), Decimal('1000.00'))
    """
    exact = usd if isinstance(usd, Decimal) else Decimal(repr(float(usd)))
    return exact.quantize(CENT, ROUND_HALF_UP)


@dataclass(frozen=True)
class Price:
    """Price of one unit.

    Parameters
    ----------
    usd : to the cent; exact of another currency at its rate, so that orders in it add up.
    confidence : ``published``, ``quoted`` or ``assumed``.
    as_of, source : date, and where it is from.
    low_usd, high_usd : ends of what sources say; ``None`` where the price is all that is known.
    valid_until : last day of an offer, YYYY-MM-DD; ``None`` where nobody says.
    support_usd : of one, for all years of use; a line of its own.
    seller, currency : of a quote; no seller of what is no quote.
    rate : what one unit of the currency is worth in USD.
    amount, support_amount : the same as ``usd`` and ``support_usd`` in the currency of a quote.
    list_amount, discount_fraction : the amount before a discount that it has got, and how much.
    note : of a quote, such as its number.
    moq : fewest units that its seller sells; ``None`` where nobody says.
    payment_terms, incoterm : of a quote, as its seller has them.
    doubt : what speaks against the rate of exchange of a catalogue; empty for nothing.

    Examples
    --------
    >>> Price(Decimal("1499.00"), high_usd=Decimal("2188.00")).ends_usd
    (Decimal('1499.00'), Decimal('2188.00'))
    """

    usd: Decimal
    confidence: str = ASSUMED
    as_of: str = "unknown"
    source: str = "unknown"
    low_usd: Decimal | None = None
    high_usd: Decimal | None = None
    valid_until: str | None = None
    support_usd: Decimal | None = None
    seller: str = ""
    currency: str = "USD"
    rate: float = 1.0
    amount: Decimal | None = None
    support_amount: Decimal | None = None
    list_amount: Decimal | None = None
    discount_fraction: float = 0.0
    note: str = ""
    moq: int | None = None
    payment_terms: str = ""
    incoterm: str = ""
    doubt: str = ""

    @property
    def is_quoted(self) -> bool:
        """Whether it is a vendor's offer."""
        return self.confidence == QUOTED

    @property
    def ends_usd(self) -> tuple[Decimal, Decimal]:
        """The lowest and the highest that it may be."""
        low, high = self.low_usd, self.high_usd
        return self.usd if low is None else low, self.usd if high is None else high


@dataclass(frozen=True)
class Includes:
    """What the price of a server holds beside host and chassis.

    Parameters
    ----------
    scale_up_Bps : per NPU, one direction: what the links and switches between its NPUs carry;
        0 where they are not in its price.
    nics : names of NICs of the catalogue, and how many of each a server has.
    n_racks : that it stands in and comes with; 0 for a server that goes into a rack.
    """

    scale_up_Bps: float = 0.0
    nics: tuple[tuple[str, int], ...] = ()
    n_racks: int = 0


@dataclass(frozen=True)
class Part:
    """One part of a catalogue.

    Parameters
    ----------
    name, kind, description : the name tells it apart from all others.
    price : ``None`` where it is not known; such a part is listed, never counted as free.
    power_w : of one unit in use.
    spare_fraction : spares over units in use.
    port_speed_Bps : of each port, or of the whole cable or optic, one direction.
    n_ports : of a switch.
    ports_per_cage : of a switch: links that one module in a cage serves.
    links_per_module : of an optic: links that it serves, each of its port speed.
    splits : of an optic: whether one of one link serves several slower ones, too, each on fibres
        of its own; one whose wavelengths share a pair of fibres does not.
    n_npus : of a server.
    n_hosts : computers of a server, each with links to the side networks: 18 of a GB200 NVL72.
    reach_m : longest distance of a cable or optic.
    cable : name of the fibre that an optic needs.
    n_rack_units : height.
    power_limit_w : what a rack can hold.
    source : of what is not the price.
    priced_by : the price behind it, where several parts share one; else its own name.
    includes : of a server.
    part_number : of its seller.
    n_lead_days : from order to delivery; ``None`` where nobody says.
    """

    name: str
    kind: str
    description: str
    price: Price | None = None
    power_w: float = 0.0
    spare_fraction: float = 0.0
    port_speed_Bps: float = 0.0
    n_ports: int = 0
    n_npus: int = 0
    n_hosts: int = 1
    reach_m: float = 0.0
    cable: str = ""
    n_rack_units: int = 0
    power_limit_w: float = 0.0
    source: str = ""
    priced_by: str = ""
    includes: Includes = Includes()
    part_number: str = ""
    n_lead_days: int | None = None
    ports_per_cage: int = 1
    links_per_module: int = 1
    splits: bool = True

    @property
    def price_name(self) -> str:
        """What a change of its price changes."""
        return self.priced_by or self.name

    @property
    def unit_usd(self) -> Decimal | None:
        """Price of one; ``None`` where it is not known."""
        return self.price.usd if self.price else None

    @property
    def whole_Bps(self) -> float:
        """Speed of all links of an optic; of other parts that of a port."""
        return self.links_per_module * self.port_speed_Bps

    def carries(self, speed_Bps: float) -> bool:
        """Whether its port is so fast, but for rounding."""
        return self.port_speed_Bps >= speed_Bps * (1 - _ROUNDING)


MEDIA = (COPPER, ACTIVE_OPTICAL, OPTIC)
"""Kinds of what joins two ports."""


@dataclass(frozen=True)
class Need:
    """What a link, or the end of one, needs of a part.

    Parameters
    ----------
    kinds : of parts that may do.
    speed_Bps : of each port, or of the whole cable or optic, one direction.
    n_ports : of a switch.
    reach_m : of a cable or optic.
    n_links : that an optic serves: no other number will do.
    may_split : whether an optic of one link does, too, that is as fast as all of them and splits.
    """

    kinds: tuple[str, ...]
    speed_Bps: float
    n_ports: int = 0
    reach_m: float = 0.0
    n_links: int = 1
    may_split: bool = False

    def is_met_by(self, part: Part) -> bool:
        """Whether a part of one of the kinds suffices."""
        if part.n_ports < self.n_ports or part.reach_m < self.reach_m:
            return False
        if self.may_split and part.links_per_module == 1:
            return part.splits and part.carries(self.n_links * self.speed_Bps)
        return part.links_per_module == self.n_links and part.carries(self.speed_Bps)

    @property
    def text(self) -> str:
        """In words, such as "switch of 64 ports at 400 Gbit/s"."""
        ports = f" of {self.n_ports} ports" if self.n_ports else ""
        reach = f" over {self.reach_m:g} m" if self.reach_m else ""
        links = f" for {self.n_links} links" if self.n_links > 1 else ""
        return f"{self.kinds[-1]}{ports}{links} at {gigabits_text(self.speed_Bps)}{reach}"


@dataclass(frozen=True)
class Fit:
    """A part that fits a need.

    Parameters
    ----------
    part : at its quote, where it has one.
    usd : what the need costs with it: one with its support, and of optics two of them and their
        fibre; ``None`` without a price.
    """

    part: Part
    usd: Decimal | None


@dataclass(frozen=True)
class Choice:
    """Which part is bought for a need, where others fit, too (C22).

    Parameters
    ----------
    taken, others : the part, and the others, cheapest first.
    is_named : whether the plan names it.
    is_open : whether the need itself leaves it open: another part is alike, or a price decided.
    """

    taken: Fit
    others: tuple[Fit, ...] = ()
    is_named: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class Parts:
    """A parts catalogue.

    Parameters
    ----------
    name, as_of, source : of the file.
    by_name : every part.

    Examples
    --------
    >>> slow = Part("s", "nic", "", port_speed_Bps=25e9)
    >>> parts = Parts({"s": slow, "f": Part("f", "nic", "", port_speed_Bps=50e9)})
    >>> parts.port_speed_Bps(30e9) / 1e9, parts.named("f", "nic").name
    (50.0, 'f')
    """

    by_name: Mapping[str, Part] = field(repr=False)
    name: str = "parts"
    as_of: str = "unknown"
    source: str = "unknown"

    def of_kind(self, *kinds: str) -> list[Part]:
        """Parts of these kinds, slowest first, then of shortest reach and fewest ports."""
        if kinds not in self._of_kinds:
            self._of_kinds[kinds] = [part for part in self._sorted if part.kind in kinds]
        return self._of_kinds[kinds]

    @cached_property
    def _of_kinds(self) -> dict[tuple[str, ...], list[Part]]:
        return {}

    @cached_property
    def _sorted(self) -> list[Part]:
        parts = self.by_name.values()
        return sorted(parts, key=lambda p: (p.port_speed_Bps, p.reach_m, p.n_ports, p.name))

    def named(self, name: str, kind: str) -> Part:
        """A part of this name and kind; one without a price where there is none."""
        found = self.by_name.get(name)
        return found if found is not None and found.kind == kind else missing(kind, name)

    def fitting(self, need: Need) -> list[Part]:
        """Parts that suffice, of the slowest speed that does; of fewest ports or least reach first.

        Examples
        --------
        >>> wide = Part("w", "switch", "", port_speed_Bps=50e9, n_ports=128)
        >>> parts = Parts({"w": wide, "n": replace(wide, name="n", n_ports=64)})
        >>> [part.name for part in parts.fitting(Need((SWITCH,), 50e9, n_ports=64))]
        ['n', 'w']
        """
        met = (part for part in self.of_kind(*need.kinds) if need.is_met_by(part))
        found = sorted(met, key=lambda part: part.whole_Bps)  # Stable.
        most_Bps = found[0].whole_Bps * (1 + _ROUNDING) if found else 0.0
        return [part for part in found if part.whole_Bps <= most_Bps]

    def port_speed_Bps(self, bandwidth_Bps: float) -> float | None:
        """Speed of the slowest NIC that suffices, else of the fastest; ``None`` without NICs."""
        nics = self.of_kind(NIC)
        fast = (nic for nic in nics if nic.carries(bandwidth_Bps))
        chosen = next(fast, nics[-1] if nics else None)
        return chosen.port_speed_Bps if chosen else None


def gigabits_text(speed_Bps: float) -> str:
    """A speed as parts have it.

    >>> gigabits_text(50e9)
    '400 Gbit/s'
    """
    return f"{8 * gigabytes_per_s(speed_Bps):.6g} Gbit/s"


def missing(kind: str, wanted: str, *, n_npus: int = 0) -> Part:
    """A part that a catalogue lacks, without a price."""
    return Part(wanted, kind, f"{wanted}: not in the parts catalogue", n_npus=n_npus)


@dataclass(frozen=True)
class SideNetwork:
    """A network beside the training fabric: to users (frontend), or to storage.

    Parameters
    ----------
    name : such as frontend.
    n_ports_per_server : NICs of a server on it.
    port_speed_Bps, switch_radix, oversubscription, n_reserved : as in a plan's realization.
    """

    name: str
    n_ports_per_server: int
    port_speed_Bps: float
    switch_radix: int
    oversubscription: float = 1.0
    n_reserved: int = 0


@dataclass(frozen=True)
class Electricity:
    """Price of energy.

    Parameters
    ----------
    usd_per_kwh : at the meter.
    confidence, source : as of a part's price.
    """

    usd_per_kwh: float
    confidence: str = ASSUMED
    source: str = "unknown"


@dataclass(frozen=True)
class FailureRates:
    """Failures that stop a job, per unit and second.

    Parameters
    ----------
    npu_per_s, server_per_s, switch_per_s, optic_per_s : of one unit.
    source : where they are from.
    """

    npu_per_s: float = 0.0
    server_per_s: float = 0.0
    switch_per_s: float = 0.0
    optic_per_s: float = 0.0
    source: str = "unknown"


@dataclass(frozen=True)
class VolumeDiscount:
    """Discount on a part of which at least so many units are bought."""

    n_units: int
    discount_fraction: float


@dataclass(frozen=True)
class Assumptions:
    """All that a bill needs beside parts and links.

    Parameters
    ----------
    npu, server, rack : the parts; a server's NPUs are priced by ``npu``.
    usable_rack_fraction : of a rack's units.
    floor_m2_per_rack : with its share of the aisles.
    cable_lengths_m : by what a cable joins; ``top_of_rack`` for hosts whose leaf
        is in their rack.
    side_networks : beside the training fabric.
    electricity, pue : price of energy, and facility over IT power.
    amortisation_s : time over which runs pay for the hardware.
    failures : of parts.
    checkpoint_s, restart_s : how long a checkpoint stops the job, and a failure until it
        computes again.
    volume_discounts : by units of one part, fewest first.
    tax_fraction : over the price of everything, where no quote says.
    """

    npu: Part
    server: Part
    rack: Part
    usable_rack_fraction: float
    floor_m2_per_rack: float
    cable_lengths_m: Mapping[str, float] = field(repr=False)
    side_networks: tuple[SideNetwork, ...]
    electricity: Electricity
    pue: float
    amortisation_s: float
    failures: FailureRates
    checkpoint_s: float
    restart_s: float
    volume_discounts: tuple[VolumeDiscount, ...] = ()
    tax_fraction: float = 0.0


COMPUTE, NETWORK, FACILITY = "compute", "network", "facility"
FRONTEND, STORAGE, SUPPORT, SERVICES = "frontend", "storage", "support", "services"
GROUPS = (COMPUTE, NETWORK, FRONTEND, STORAGE, FACILITY, SUPPORT, SERVICES)
"""What lines are summed by; the network is that of the design."""
NETWORKS = (NETWORK, FRONTEND, STORAGE)

ZERO = Decimal("0.00")


@lru_cache(maxsize=256)
def _written(fraction: float) -> tuple[int, int]:
    """A fraction as it is written: 0.07 of 100 units is 7, not 8 by binary rounding."""
    exact = Fraction(repr(float(fraction)))
    return exact.numerator, exact.denominator


def place_of(label: str, tier: str) -> str:
    """A dimension as lines name it.

    >>> place_of("dim2", "pod"), place_of("dim2", "")
    ('dim2 pod', 'dim2')
    """
    return label if tier in ("", label) else f"{label} {tier}"


@dataclass(frozen=True)
class Line:
    """One line of a bill.

    Parameters
    ----------
    group : one of :data:`GROUPS`.
    tier : where it is used, such as ``dim4 pod, leaf``.
    part : what is bought.
    n_units : in use.
    note : what a reader should know of it.
    n_ports, n_free_ports : of switches that are parts: all ports, and those without a cable.
    speed_Bps : that its ports run at; 0 where nothing is chosen by its speed.
    n_covered : units that its spares stand in for; by default its own.
    length_m : of a cable, as it is assumed; 0 of all else.
    choice : of its part, where others fit, too.
    n_switch_ends : of cables and modules: ends that take one port of a switch each.
    n_per_port : of cables: those that share a port of a leaf (breakout).

    Examples
    --------
    >>> nic = Part("n", "nic", "a NIC", Price(Decimal("10.25")), spare_fraction=0.02)
    >>> line = Line("network", "dim1", nic, 101)
    >>> line.n_spares, line.extended_usd
    (3, Decimal('1066.00'))
    """

    group: str
    tier: str
    part: Part
    n_units: int
    note: str = ""
    n_ports: int = 0
    n_free_ports: int = 0
    speed_Bps: float = 0.0
    n_covered: int | None = None
    length_m: float = 0.0
    choice: Choice | None = field(default=None, repr=False)
    n_switch_ends: int = 0
    n_per_port: int = 1

    @property
    def dimension(self) -> str:
        """Label of its dimension, of a line of the training fabric; else empty."""
        return self.tier.split(",")[0].split(" ")[0] if self.group == NETWORK else ""

    @property
    def n_spares(self) -> int:
        """Spares of the units that they stand in for, rounded up."""
        numerator, denominator = _written(self.part.spare_fraction)
        n_covered = self.n_units if self.n_covered is None else self.n_covered
        return -(-n_covered * numerator // denominator)

    @property
    def n_bought(self) -> int:
        """Units in use and spares."""
        return self.n_units + self.n_spares

    @property
    def extended_usd(self) -> Decimal | None:
        """What all units cost; ``None`` without a price."""
        return None if self.part.unit_usd is None else self.n_bought * self.part.unit_usd

    @property
    def ends_usd(self) -> tuple[Decimal, Decimal]:
        """What all units cost at the ends of their price; $0 without a price."""
        low, high = self.part.price.ends_usd if self.part.price else (ZERO, ZERO)
        return self.n_bought * low, self.n_bought * high

    @property
    def free_ports_usd(self) -> Decimal:
        """The share of the units in use that ports without a cable are, to the cent."""
        if not self.n_ports:
            return ZERO
        usd = self.n_units * (self.part.unit_usd or ZERO)
        return to_cents(usd * self.n_free_ports / self.n_ports)

    @property
    def power_w(self) -> float:
        """Of the units in use."""
        return self.n_units * self.part.power_w


def with_one_stock(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines with one stock of spares of every part, on its line of most units (C22).

    Of lines of equally many units the first has it.

    Examples
    --------
    >>> switch = Part("s", "switch", "", spare_fraction=0.02)
    >>> lines = [Line("frontend", "leaf", switch, 3), Line("storage", "leaf", switch, 4)]
    >>> [line.n_spares for line in lines], [line.n_spares for line in with_one_stock(lines)]
    ([1, 1], [0, 1])
    """
    rows: dict[str, list[int]] = {}
    for row, line in enumerate(lines):
        if line.part.spare_fraction:
            rows.setdefault(line.part.name, []).append(row)
    found = list(lines)
    for same in rows.values():
        most = max(same, key=lambda row: lines[row].n_units)
        n_units = sum(lines[row].n_units for row in same)
        for row in same if len(same) > 1 else ():
            found[row] = replace(lines[row], n_covered=n_units if row == most else 0)
    return tuple(found)


@dataclass(frozen=True)
class FasterParts:
    """What is bought for a dimension whose port speed nobody sells.

    Parameters
    ----------
    dimension : its label.
    place : label and tier.
    speed_Bps : that its links run at, as the plan says.
    sold_Bps : of the slowest of its parts.
    """

    dimension: str
    place: str
    speed_Bps: float
    sold_Bps: float


@dataclass(frozen=True)
class Bill:
    """All that a design needs.

    Parameters
    ----------
    lines : in the order they are printed.
    tax_fraction : over the price of everything; no part of any total but ``with_tax_usd``.
    """

    lines: tuple[Line, ...]
    tax_fraction: float = 0.0

    def of(self, *groups: str) -> Bill:
        """The lines of some groups."""
        return Bill(tuple(line for line in self.lines if line.group in groups))

    @property
    def shared_spares_usd(self) -> Decimal:
        """Spares that stand on these lines for units of other ones, by one stock of all (C22)."""
        alone = with_one_stock([replace(line, n_covered=None) for line in self.lines])
        return self.total_usd - Bill(alone).total_usd

    @property
    def total_usd(self) -> Decimal:
        """Sum of the lines that have a price; see ``missing``."""
        return sum((line.extended_usd or ZERO for line in self.lines), ZERO)

    @property
    def tax_usd(self) -> Decimal:
        """Tax over the total, to the cent."""
        return to_cents(self.total_usd * Decimal(repr(float(self.tax_fraction))))

    @property
    def with_tax_usd(self) -> Decimal:
        """The total and its tax."""
        return self.total_usd + self.tax_usd

    @property
    def ends_usd(self) -> tuple[Decimal, Decimal]:
        """The total with every price at its low end, and with every price at its high end."""
        lows, highs = zip(*(line.ends_usd for line in self.lines), strict=True)
        return sum(lows, ZERO), sum(highs, ZERO)

    def fraction_of(self, usd: Decimal | None) -> float | None:
        """Share of an amount in the total; ``None`` where one of them is not known."""
        return None if usd is None or not self.total_usd else float(usd / self.total_usd)

    @property
    def missing(self) -> tuple[Part, ...]:
        """Parts in use without a price, each once."""
        used = (line.part for line in self.lines if line.n_bought)
        return tuple({part.name: part for part in used if part.price is None}.values())

    @property
    def faster_parts(self) -> tuple[FasterParts, ...]:
        """Dimensions of the training fabric all of whose parts are faster than its links run.

        Links run at the ``port_speed`` of the plan. Where a NIC, a switch or a cable is no faster,
        the dimension has what it pays for.

        Examples
        --------
        >>> nic = Part("n", "nic", "a NIC", port_speed_Bps=100e9)
        >>> bill = Bill((Line(NETWORK, "dim2 leaf, host", nic, 4, speed_Bps=87.5e9),))
        >>> [(one.place, one.sold_Bps / 1e9) for one in bill.faster_parts]
        [('dim2 leaf', 100.0)]
        >>> print(bill.faster_text)
        nobody sells ports of 700 Gbit/s: dim2 leaf pays for 800 Gbit/s and runs at 700 Gbit/s
        """
        least: dict[str, Line] = {}
        for line in self.of(NETWORK).lines:
            if line.speed_Bps:
                known = least.setdefault(line.dimension, line)
                if line.part.port_speed_Bps * known.speed_Bps < (
                    known.part.port_speed_Bps * line.speed_Bps
                ):
                    least[line.dimension] = line
        return tuple(
            FasterParts(label, line.tier.split(",")[0], line.speed_Bps, line.part.port_speed_Bps)
            for label, line in least.items()
            if line.part.port_speed_Bps > line.speed_Bps * (1 + _ROUNDING)
        )

    @property
    def faster_text(self) -> str:
        """The same in words; empty where all parts are as fast as the plan says."""
        places: dict[tuple[str, str], list[str]] = {}
        for one in self.faster_parts:
            speeds = gigabits_text(one.speed_Bps), gigabits_text(one.sold_Bps)
            places.setdefault(speeds, []).append(one.place)
        return "; ".join(
            f"nobody sells ports of {speed}: {' and '.join(named)} "
            f"{'pays' if len(named) == 1 else 'pay'} for {sold} and "
            f"{'runs' if len(named) == 1 else 'run'} at {speed}"
            for (speed, sold), named in places.items()
        )

    @property
    def without_range(self) -> tuple[Part, ...]:
        """Parts in use whose price is assumed, and nobody says between what it lies; each once."""
        used = {line.part.name: line.part for line in self.lines if line.extended_usd}
        return tuple(
            part
            for part in used.values()
            if part.price and part.price.confidence == ASSUMED and len({*part.price.ends_usd}) == 1
        )

    @property
    def assumed_usd(self) -> Decimal:
        """The part of the total whose prices are assumed."""
        prices = ((line, line.part.price) for line in self.lines)
        return Bill(tuple(x for x, y in prices if y and y.confidence == ASSUMED)).total_usd

    @property
    def power_w(self) -> float:
        """Of all units in use."""
        return sum(line.power_w for line in self.lines)

    def n_units(self, *kinds: str) -> int:
        """Units in use of some kinds."""
        return sum(line.n_units for line in self.lines if line.part.kind in kinds)

    def usd_by(self, name: Callable[[Line], str]) -> dict[str, Decimal]:
        """What all lines of one name cost, by something of lines that names them."""
        totals: dict[str, Decimal] = {}
        for line in self.lines:
            totals[name(line)] = totals.get(name(line), ZERO) + (line.extended_usd or ZERO)
        return totals

    def usd_by_price(self) -> dict[str, Decimal]:
        """What all lines of each price cost, dearest first; free ones are left out."""
        totals = self.usd_by(lambda line: line.part.price_name).items()
        return dict(sorted((x for x in totals if x[1]), key=lambda item: (-item[1], item[0])))

    def n_bought_by_part(self) -> dict[str, int]:
        """Units of each part over all lines, spares included."""
        counts: dict[str, int] = {}
        for line in self.lines:
            counts[line.part.name] = counts.get(line.part.name, 0) + line.n_bought
        return counts
