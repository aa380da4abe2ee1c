"""What a plan can buy: links by speed, ports and price; whole parts at the money of the bill."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, SkipValidation, WithJsonSchema

from libra_planner.costs.bills import BillChoice
from libra_planner.costs.prices import LinkOption, Options
from libra_planner.errors import Fault, SpecError, UnitError, closest, closest_dimension, shown
from libra_planner.fabric.topology import MAX_RADIX, Topology
from libra_planner.problem import Rule
from libra_planner.reading.document import Document, Key, is_number, is_whole
from libra_planner.reading.models import FaultCollector, Model, Price, for_models, validated
from libra_planner.step.expression import Array
from libra_planner.units import GBIT_PER_S_BPS, UNITS, unit_kind

MAX_PORTS = 10_000
"""Most ports per NPU; beyond it a number is a slip of the keyboard."""

_SPEEDS = (1e3, 1e18)
_MAX_USD = 1e12
_QUANTITY = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(.*)", re.ASCII)
_RANGE = re.compile(r"([0-9]{1,9})\s*\.\.\s*([0-9]{1,9})", re.ASCII)

_GIGA = ("G", "g")
"""What people write behind a speed that may mean bits or bytes; behind that of a port G is bits."""


def speed_bytes_per_s(value: Any) -> float:
    """A speed such as ``400 Gbit/s``.

    Raises
    ------
    SpecError
        For anything else: no unit, one that is no bandwidth, zero, negative, no number.

    Examples
    --------
    >>> speed_bytes_per_s("400 Gbit/s")
    50000000000.0
    """
    expected = "expected a speed with its unit"
    if is_number(value) and math.isfinite(value):
        fix = f"write {value:g} GB/s or {value:g} Gbit/s"
        raise UnitError(Fault(f"got {value:g} without a unit", expected, fix))
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise SpecError(Fault(f"got {shown(value)}", expected, "write e.g. 400 Gbit/s"))
    number, unit = float(match[1]), match[2]
    if not unit:
        fix = f"write {number:g} GB/s or {number:g} Gbit/s"
        raise UnitError(Fault(f"got {value!r} without a unit", expected, fix))
    try:
        kind, factor = unit_kind(unit)
    except UnitError as error:
        bits = unit == "Gb/s"  # Bits or bytes? That hint beats a similar unit's name.
        fix = error.faults[0].fix if bits else closest(unit, UNITS["bandwidth"])
        if unit in _GIGA:
            fix = f"write {match[1]} Gbit/s for bits or {match[1]} GB/s for bytes"
        raise UnitError(Fault(f"got the unit {unit!r}", "expected GB/s or Gbit/s", fix)) from None
    if kind != "bandwidth":
        fix = f"write {match[1]} GB/s or {match[1]} Gbit/s" if unit == "GB" else ""
        raise UnitError(Fault(f"got {value!r}, a {kind}", "expected GB/s or Gbit/s", fix))
    speed = number * factor
    if not _SPEEDS[0] <= speed <= _SPEEDS[1]:
        sizes = f"from {_SPEEDS[0]:g} to {_SPEEDS[1]:g} bytes/s"
        raise SpecError(Fault(f"got {value!r}", f"expected a speed {sizes}"))
    return speed


def port_bytes_per_s(value: Any) -> float:
    """The speed of a port or a NIC, byte/s: 400G is 400 Gbit/s, as the trade calls ports.

    Raises
    ------
    SpecError
        As :func:`speed_bytes_per_s`.

    Examples
    --------
    >>> port_bytes_per_s("400G"), port_bytes_per_s("400 Gbit/s")
    (50000000000.0, 50000000000.0)
    """
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[2] not in ("G", "GB"):
        return speed_bytes_per_s(value)
    if match[2] == "G":
        return speed_bytes_per_s(f"{match[1]} Gbit/s")
    expected = "expected the speed of a port, which is in Gbit/s"
    raise UnitError(Fault(f"got {value!r}, a size", expected, f"write {match[1]}Gbps"))


def nic_bytes_per_s(value: Any) -> float:
    """The speed of a NIC, byte/s: 1 Gbit/s at least, as slower ones are a slip of the unit.

    Raises
    ------
    SpecError
        As :func:`port_bytes_per_s`, and for a slower one.

    Examples
    --------
    >>> nic_bytes_per_s("400Gbps")
    50000000000.0
    >>> nic_bytes_per_s("400Mbps")
    Traceback (most recent call last):
    libra_planner.errors.SpecError: got 400Mbps: 0.4 Gbit/s, expected a NIC of 1 Gbit/s or more; ...
    """
    bare = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if bare and bare[2] in ("", "g"):
        got = f"got {value!r}" if bare[2] else f"got {value!r} without a unit"
        raise UnitError(Fault(got, "expected a speed with its unit", f"write {bare[1]}Gbps"))
    speed_Bps = port_bytes_per_s(value)
    if speed_Bps >= GBIT_PER_S_BPS:
        return speed_Bps
    expected, fix = "expected a NIC of 1 Gbit/s or more", "write e.g. 400Gbps"
    raise SpecError(Fault(f"got {value}: {speed_Bps / GBIT_PER_S_BPS:g} Gbit/s", expected, fix))


Speed: TypeAlias = Annotated[
    float,
    for_models(speed_bytes_per_s),
    WithJsonSchema({"type": "string", "pattern": r"[0-9]\s*\w*/?s"}),
]
"""A bandwidth written with its unit, in byte/s."""

PortSpeed: TypeAlias = Annotated[
    float,
    for_models(port_bytes_per_s),
    WithJsonSchema({"type": "string", "pattern": r"[0-9]\s*(\w*/?s|G$)"}),
]
"""That of a port or a NIC, in byte/s: 400G is 400 Gbit/s."""


def port_counts(value: Any) -> list[int]:
    """Port counts from a number, a list or a range.

    Raises
    ------
    SpecError
        For counts below 1, far too many, or a range that runs backwards.

    Examples
    --------
    >>> port_counts(2), port_counts([1, 2, 4]), port_counts("1..4")
    ([2], [1, 2, 4], [1, 2, 3, 4])
    """
    match = _RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
    ends = list(map(int, match.groups())) if match else []
    counts: list[Any] = value if isinstance(value, list) else ends or [value]
    if not counts:
        raise SpecError(Fault("got an empty list", "expected port counts", "write e.g. 1..4"))
    for count in counts:
        if not is_whole(count) or not 1 <= count <= MAX_PORTS:
            expected = f"expected whole numbers of ports from 1 to {MAX_PORTS:,}"
            fix = "write e.g. 2, 1..4 or [1, 2, 4]"
            raise SpecError(Fault(f"got {shown(count)}", expected, fix))
    if ends and ends[0] > ends[1]:
        fix = f"write {ends[1]}..{ends[0]}"
        raise SpecError(Fault(f"got {value!r}", "expected a range that goes up", fix))
    return list(range(ends[0], ends[1] + 1)) if ends else counts


def usd_per_npu(value: Any, n_ports: list[int]) -> list[float]:
    """Volume prices, one for each port count.

    Raises
    ------
    SpecError
        For another number of prices, or one that is negative or no number.
    """
    prices = value if isinstance(value, list) else [value]
    if len(prices) != len(n_ports):
        expected = f"expected {len(n_ports)}, one for each port count"
        fix = f"write usd_per_npu: [..] for ports {', '.join(map(str, n_ports[:9]))}"
        raise SpecError(Fault(f"got {len(prices)} prices", expected, fix))
    for price in prices:
        if not is_number(price) or not 0 <= price <= _MAX_USD:
            raise SpecError(Fault(f"got {shown(price)}", f"expected USD from 0 to {_MAX_USD:g}"))
    return [float(price) for price in prices]


class LinkOptionSpec(Model):
    """A port that can be bought, how many of it an NPU may have, and what they cost.

    Parameters
    ----------
    speed : Bandwidth of one port, one direction, such as 400 Gbit/s or 50 GB/s.
    ports : Ports per NPU: a number, a list, or a range such as 1..4.
    usd_per_port : Price of a port for one NPU: NIC, cable, optics and its share of the switch.
    usd_per_npu : Volume prices: of all ports of one NPU, one for each count.
    name : What the supplier calls it.
    """

    # What is skipped here is read below, whose messages name the fix.
    speed: SkipValidation[str]
    ports: SkipValidation[int | str | list[int]] = 1
    usd_per_port: Price | None = None
    usd_per_npu: SkipValidation[float | list[float] | None] = None
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None


LinkOptionsSpec: TypeAlias = dict[
    Annotated[str, Field(min_length=1)], SkipValidation[list[str | LinkOptionSpec]]
]
"""Options by dimension; each entry is read on its own below."""


MAX_OPTIONS = 10_000
"""Most options of one dimension: entries times port counts."""

KEY: Key = ("fabric", "link_options")
"""Where a plan lists what can be bought."""


def load_options(
    document: Document, topology: Topology, price_usd_per_Bps: Array
) -> tuple[Options | None, ...]:
    """Options of each dimension, ``None`` for a continuous one; empty where there are none.

    Parameters
    ----------
    document : the plan.
    topology : its fabric.
    price_usd_per_Bps : the price book's linear prices, shape (n_dims,): what an option
        without a price of its own costs.

    Raises
    ------
    SpecError
        With every fault of the list, each at its place.
    """
    listed = document.value["fabric"].get("link_options")
    reader = _OptionsReader(document, topology, price_usd_per_Bps)
    for name in listed if isinstance(listed, dict) else ():  # The model has refused the rest.
        reader.read_dimension(name)
    found = reader.required(reader.options)
    return tuple(found.get(i) for i in range(topology.n_dims)) if found else ()


@dataclass
class _OptionsReader(FaultCollector):
    topology: Topology
    price_usd_per_Bps: Array
    options: dict[int, Options] = field(default_factory=dict)

    def read_dimension(self, name: str) -> None:
        """Note the options of one dimension, or their faults."""
        key = (*KEY, name)
        dim = self._dimension(name, key)
        entries = self.attempt(key, _entries, self.document, key)
        found: dict[tuple[int, str], LinkOption] = {}
        for i in range(len(entries or [])):
            for option in self.attempt((*key, i), self._entry, (*key, i), dim) or []:
                self.attempt((*key, i), _add, found, option)
            if len(found) > MAX_OPTIONS:
                expected = f"expected at most {MAX_OPTIONS:,} for a dimension"
                got, fix = f"got {len(found):,} options or more", "list fewer speeds or ports"
                self.note(Fault(got, expected, fix), key)
                break
        if dim is not None:
            self.options[dim] = tuple(found.values())

    def _dimension(self, name: str, key: Key) -> int | None:
        tiers, labels = list(self.topology.tiers), list(self.topology.labels)
        if name not in labels and tiers.count(name) > 1:
            got = f"got the tier {name!r}, which several dimensions share"
            fault = Fault(got, "expected one dimension", "use dim1, dim2, ... instead")
        elif name not in labels and name not in tiers:
            known = [*labels, *(tier for tier in tiers if tiers.count(tier) == 1)]
            fix = closest_dimension(name, known)
            fault = Fault(f"got {name!r}", "expected a dimension of this fabric", fix)
        else:
            dim = labels.index(name) if name in labels else tiers.index(name)
            if dim not in self.options:
                return dim
            got = f"got {name!r}, whose options stand here twice ({labels[dim]} is {tiers[dim]})"
            fault = Fault(got, "expected each dimension once", "remove one")
        self.note(fault, key, at_key=True)
        return None

    def _entry(self, key: Key, dim: int | None) -> list[LinkOption]:
        """The options of one entry, one for each port count."""
        value = self.document.at(key)
        if isinstance(value, list):
            fix = "write e.g. 50 GB/s or {speed: 50 GB/s, ports: 1..4}"
            raise SpecError(Fault("got a list", "expected a speed or a map", fix))
        if isinstance(value, dict):
            spec = validated(LinkOptionSpec, self.document, key)
        else:
            spec = LinkOptionSpec.model_construct(speed=value)
        speed = self.attempt((*key, "speed"), speed_bytes_per_s, spec.speed)
        counts = self.attempt((*key, "ports"), port_counts, spec.ports)
        if speed is None or counts is None or dim is None:
            return []
        per_npu = [n_ports * (spec.usd_per_port or 0.0) for n_ports in counts]
        if spec.usd_per_npu is not None:
            if spec.usd_per_port is not None:
                got = "got usd_per_port and usd_per_npu"
                raise SpecError(Fault(got, "expected one of them", "remove one"))
            volume = self.attempt((*key, "usd_per_npu"), usd_per_npu, spec.usd_per_npu, counts)
            per_npu = volume or [0.0] * len(counts)
        costs = [self.topology.n_npus * price for price in per_npu]
        if spec.usd_per_npu is None and spec.usd_per_port is None:  # The price book's.
            costs = [float(self.price_usd_per_Bps[dim]) * (n * speed) for n in counts]
        line, name = self.document.place(key).line, spec.name or ""
        pairs = zip(counts, costs, strict=True)
        return [LinkOption(speed, n_ports, cost, name, line) for n_ports, cost in pairs]


def _entries(document: Document, key: Key) -> list[Any]:
    entries = document.at(key)
    if not isinstance(entries, list) or not entries:
        got = "an empty list" if entries == [] else shown(entries)
        fix = "write e.g. [25 GB/s, 50 GB/s], or leave the dimension out for a continuous one"
        raise SpecError(Fault(f"got {got}", "expected a list of purchasable speeds", fix))
    return entries


def _add(found: dict[tuple[int, str], LinkOption], option: LinkOption) -> None:
    first = found.setdefault((option.n_ports, f"{option.speed_bytes_per_s:.9g}"), option)
    if first is not option:
        where = f" (first on line {first.line})" if first.line else ""
        raise SpecError(Fault(f"got {option} twice{where}", "expected it once", "remove one"))


BILL_KEY: Key = ("fabric", "bill_options")
"""Where a plan with ``prices: bill`` lists what can be bought."""

LINEAR, BILL = "linear", "bill"
RULED_OUT = ("fixed_cost",)
"""Keys of a plan that have no place beside its bill, and that nothing else reads."""
_NICS = re.compile(r"\s*(?:([0-9]{1,5})\s*[x*]\s*)?(.+)")
_FILE = re.compile(r"[/\\]|\.(csv|ya?ml)$")


def _pricing(value: Any) -> Any:
    if value in (LINEAR, BILL):
        return value
    is_file = isinstance(value, str) and _FILE.search(value)
    fix = f"; write quotes: {value} for a file of quotes" if is_file else ""
    raise ValueError(f"got {shown(value)}, expected {LINEAR} or {BILL}{fix}")


Pricing: TypeAlias = Annotated[Literal["linear", "bill"], BeforeValidator(_pricing)]


def _listed(value: Any) -> list[Any]:
    """A list, of a single value too."""
    values = value if isinstance(value, list) else [value]
    if not values or len(values) > MAX_PORTS:
        raise ValueError(f"got {len(values):,} values, expected 1 to {MAX_PORTS:,}")
    return values


def _nics(value: Any) -> tuple[tuple[int, float], ...]:
    found = []
    for one in _listed(value):
        match = _NICS.fullmatch(one) if isinstance(one, str) else None
        if match is None or not 1 <= int(match[1] or 1) <= MAX_PORTS:
            raise ValueError(f"got {shown(one)}, expected NICs per NPU, such as 2 x 400 Gbps")
        try:
            found.append((int(match[1] or 1), port_bytes_per_s(match[2])))
        except SpecError as error:
            raise ValueError(f"{error} (NICs per NPU, such as 2 x 400 Gbps)") from None
    return _distinct(found)


def _tapers(value: Any) -> tuple[float, ...]:
    for one in _listed(value):
        if not is_number(one) or not 0.01 <= one <= 1000:
            expected = "expected a number from 0.01 to 1,000; 2 means 2:1"
            raise ValueError(f"got {shown(one)}, {expected}")
    return _distinct([float(one) for one in _listed(value)])


def _radices(value: Any) -> tuple[int, ...]:
    for one in _listed(value):
        if not is_whole(one) or not 2 <= one <= MAX_RADIX:
            raise ValueError(f"got {shown(one)}, expected ports from 2 to {MAX_RADIX}")
    return _distinct(_listed(value))


def _distinct(values: Sequence[Any]) -> tuple[Any, ...]:
    twice = next((x for i, x in enumerate(values) if x in values[:i]), None)
    if twice is not None:
        raise ValueError(f"got {shown(twice)} twice, expected it once; remove one")
    return tuple(values)


def _one_or_several(kind: str) -> WithJsonSchema:
    several = {"type": "array", "items": {"type": kind}, "minItems": 1}
    return WithJsonSchema({"anyOf": [{"type": kind}, several]})


_Tapers: TypeAlias = Annotated[
    tuple[float, ...], BeforeValidator(_tapers), _one_or_several("number")
]


class BillOptionsSpec(Model):
    """What can be bought, each a value or a list; what is left out is as the plan says elsewhere.

    Parameters
    ----------
    nics : NICs per NPU, such as [1 x 400 Gbps, 2 x 400 Gbps]; else port_speed and nics of
        realization.
    tapers : By further tier of a stack, such as {spine: [1, 2], core: [1, 7]}; else rules such as
        'taper(spine) == 2'. Whole links have at most such a taper.
    switch_radix : Ports of a switch; else that of realization.
    """

    nics: Annotated[
        tuple[tuple[int, float], ...], BeforeValidator(_nics), _one_or_several("string")
    ] = ()
    tapers: dict[str, _Tapers] = Field(default_factory=dict)
    switch_radix: Annotated[
        tuple[int, ...], BeforeValidator(_radices), _one_or_several("integer")
    ] = ()


def bill_choice(spec: BillOptionsSpec | None, topology: Topology) -> BillChoice:
    """What a plan with ``prices: bill`` lists.

    Raises
    ------
    SpecError
        For tapers of what is no further tier of a stack.
    """
    given = spec or BillOptionsSpec()
    own = dict(zip(topology.labels, range(topology.n_dims), strict=True))
    tiers = {tier: dim for dim, tier in enumerate(topology.tiers) if topology.tiers.count(tier) < 2}
    tapers: dict[int, tuple[float, ...]] = {}
    for name, values in given.tapers.items():
        dim = {**tiers, **own}.get(name)
        if dim is None or dim in tapers or not topology.dimensions[dim].shares_port:
            raise SpecError(_no_tier(name, dim in tapers, topology))
        tapers[dim] = values
    return BillChoice(given.nics, dict(sorted(tapers.items())), given.switch_radix)


def _no_tier(name: str, is_twice: bool, topology: Topology) -> Fault:
    if is_twice:
        return Fault(f"got {name!r}, whose tapers stand here twice", "expected it once")
    further = [i for i, one in enumerate(topology.dimensions) if one.shares_port]
    known = [topology.tiers[i] or topology.labels[i] for i in further]
    fix = closest_dimension(name, known) if known else "write the tiers in brackets, as a stack"
    expected = "expected a further tier of a stack"
    return Fault(f"got {name!r}", expected, fix, "fabric.bill_options.tapers")


def unused_notes(document: Document, choice: BillChoice | None) -> Iterator[str]:
    """Which keys of the realization bill_options stand in place of."""
    links = document.value["fabric"].get("realization")
    if choice is None or not isinstance(links, Mapping):
        return
    decided = ["nics", "port_speed"] * bool(choice.nics) + ["switch_radix"] * bool(choice.radices)
    unused = [f"fabric.realization.{key}" for key in decided if links.get(key) is not None]
    if unused:
        yield (
            f"NICs and switches are those of bill_options: {' and '.join(unused)} "
            f"{'do' if len(unused) > 1 else 'does'} not count; remove one of both"
        )


def pricing_faults(
    document: Document, rules: Sequence[Rule], *, is_bill: bool
) -> Iterator[tuple[Key, Fault]]:
    """What a plan says that its kind of prices cannot mean, by key."""
    fabric = document.value["fabric"]
    if not is_bill:
        if fabric.get("bill_options") is not None:
            got, expected = "got bill_options at linear prices", "expected prices: bill with them"
            yield BILL_KEY, Fault(got, expected, "write prices: bill, or remove them")
        return
    beside = "with prices: bill"
    if document.value.get("fixed_cost") is not None:
        got, expected = f"got a fixed cost {beside}", "expected none"
        fix = "remove it: the bill holds NPUs, servers and racks; name the NPU by npu"
        yield ("fixed_cost",), Fault(got, expected, fix)
    if fabric.get("link_options") is not None:
        got, fix = f"got link_options {beside}", "write them as fabric.bill_options"
        yield ("fabric", "link_options"), Fault(got, "expected one of them", fix)
    for rule in rules:
        upper = rule.cost_factor * {"<=": 1, ">=": -1}.get(rule.sense, math.nan)
        if rule.cost_factor and not upper > 0:
            got = f"got {rule.text!r}, which is no upper bound of the cost, {beside}"
            expected = "expected one: a bandwidth is bought for the least that it costs"
            yield ("constraints",), Fault(got, expected, "write cost <= ...")
