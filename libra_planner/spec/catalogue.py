"""``fabric.link_options`` of a plan into the options of each dimension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from libra_planner.costs.options import LinkOption, Options
from libra_planner.errors import Fault, SpecError, closest
from libra_planner.fabric.topology import Topology
from libra_planner.reading.document import Document, Key, shown
from libra_planner.reading.faults import validated
from libra_planner.spec.option_models import LinkOptionSpec
from libra_planner.spec.option_values import port_counts, speed_bytes_per_s, usd_per_npu
from libra_planner.step.expression import Array

MAX_OPTIONS = 10_000
"""Most options of one dimension: entries times port counts."""

KEY: Key = ("fabric", "link_options")
"""Where a plan lists what can be bought."""

Result = TypeVar("Result")


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
    reader = _Reader(document, topology, price_usd_per_Bps)
    for name in listed if isinstance(listed, dict) else ():  # The model has refused the rest.
        reader.read_dimension(name)
    if reader.faults:
        raise SpecError(*dict.fromkeys(reader.faults))
    found = reader.options
    return tuple(found.get(i) for i in range(topology.n_dims)) if found else ()


@dataclass
class _Reader:
    document: Document
    topology: Topology
    price_usd_per_Bps: Array
    options: dict[int, Options] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def read_dimension(self, name: str) -> None:
        """Note the options of one dimension, or their faults."""
        key = (*KEY, name)
        dim = self._attempt(key, partial(self._dimension, name), at_key=True)
        entries = self._attempt(key, partial(_entries, self.document, key))
        found: dict[tuple[int, str], LinkOption] = {}
        for i in range(len(entries or [])):
            for option in self._attempt((*key, i), partial(self._entry, (*key, i), dim)) or []:
                self._attempt((*key, i), partial(_add, found, option))
            if len(found) > MAX_OPTIONS:
                self._attempt(key, partial(_refuse_many, len(found)))
                break
        if dim is not None:
            self.options[dim] = tuple(found.values())

    def _attempt(
        self, key: Key, build: Callable[[], Result], *, at_key: bool = False
    ) -> Result | None:
        """What ``build`` returns, or its faults noted with their places."""
        try:
            return build()
        except SpecError as error:
            place = self.document.key_place(key) if at_key else self.document.place(key)
            self.faults += error.located(place, ".".join(map(str, key))).faults
            return None

    def _dimension(self, name: str) -> int:
        tiers, labels = list(self.topology.tiers), list(self.topology.labels)
        if name not in labels and tiers.count(name) > 1:
            got = f"got the tier {name!r}, which several dimensions share"
            raise SpecError(Fault(got, "expected one dimension", "use dim1, dim2, ... instead"))
        if name not in labels and name not in tiers:
            known = [*labels, *(tier for tier in tiers if tiers.count(tier) == 1)]
            numbered = name.startswith("dim") and name[3:].isdigit()
            fix = f"known: {', '.join(known)}" if numbered else closest(name, known)
            raise SpecError(Fault(f"got {name!r}", "expected a dimension of this fabric", fix))
        dim = labels.index(name) if name in labels else tiers.index(name)
        if dim in self.options:
            got = f"got {name!r}, whose options stand here twice ({labels[dim]} is {tiers[dim]})"
            raise SpecError(Fault(got, "expected each dimension once", "remove one"))
        return dim

    def _entry(self, key: Key, dim: int | None) -> list[LinkOption]:
        """The options of one entry, one for each port count."""
        value = _at(self.document, key)
        if isinstance(value, dict):
            spec = validated(LinkOptionSpec, self.document, key)
        else:
            spec = LinkOptionSpec.model_construct(speed=value)
        if isinstance(value, list):
            fix = "write e.g. 50 GB/s or {speed: 50 GB/s, ports: 1..4}"
            raise SpecError(Fault("got a list", "expected a speed or a map", fix))
        speed = self._attempt((*key, "speed"), partial(speed_bytes_per_s, spec.speed))
        counts = self._attempt((*key, "ports"), partial(port_counts, spec.ports))
        if speed is None or counts is None or dim is None:
            return []
        costs = self._costs_usd(key, spec, dim, [n * speed for n in counts], counts)
        line, name = self.document.place(key).line, spec.name or ""
        return [
            LinkOption(speed, n_ports, cost_usd, name, line)
            for n_ports, cost_usd in zip(counts, costs, strict=True)
        ]

    def _costs_usd(
        self, key: Key, spec: LinkOptionSpec, dim: int, bandwidths: list[float], counts: list[int]
    ) -> list[float]:
        """Cost of the whole fabric by port count: own prices, else the price book's."""
        if spec.usd_per_npu is None and spec.usd_per_port is None:
            return [float(self.price_usd_per_Bps[dim]) * bandwidth for bandwidth in bandwidths]
        if spec.usd_per_npu is None:
            prices = [n_ports * (spec.usd_per_port or 0.0) for n_ports in counts]
        elif spec.usd_per_port is None:
            volume = partial(usd_per_npu, spec.usd_per_npu, counts)
            prices = self._attempt((*key, "usd_per_npu"), volume) or [0.0] * len(counts)
        else:
            got = "got usd_per_port and usd_per_npu"
            raise SpecError(Fault(got, "expected one of them", "remove one"))
        return [self.topology.n_npus * price for price in prices]


def _entries(document: Document, key: Key) -> list[Any]:
    entries = _at(document, key)
    if not isinstance(entries, list) or not entries:
        got = "an empty list" if entries == [] else shown(entries)
        fix = "write e.g. [25 GB/s, 50 GB/s], or leave the dimension out for a continuous one"
        raise SpecError(Fault(f"got {got}", "expected a list of purchasable speeds", fix))
    return entries


def _add(found: dict[tuple[int, str], LinkOption], option: LinkOption) -> None:
    speed = f"{option.speed_bytes_per_s:.9g}"
    first = found.setdefault((option.n_ports, speed), option)
    if first is not option:
        where = f" (first on line {first.line})" if first.line else ""
        raise SpecError(Fault(f"got {option} twice{where}", "expected it once", "remove one"))


def _refuse_many(n_options: int) -> None:
    got = f"got {n_options:,} options or more"
    expected = f"expected at most {MAX_OPTIONS:,} for a dimension"
    raise SpecError(Fault(got, expected, "list fewer speeds or ports"))


def _at(document: Document, key: Key) -> Any:
    value: Any = document.value
    for part in key:
        value = value[part]
    return value
