"""`prices: bill` of a plan: the whole parts that its optimizer may buy (C22)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from libra_planner.costs.bills import BillChoice
from libra_planner.errors import Fault, SpecError, closest_dimension, shown
from libra_planner.fabric.topology import MAX_RADIX, Topology
from libra_planner.plan.options import MAX_PORTS, speed_bytes_per_s
from libra_planner.problem import Rule
from libra_planner.reading.document import Document, Key, is_number, is_whole
from libra_planner.reading.models import Model

KEY: Key = ("fabric", "bill_options")
"""Where a plan lists what can be bought."""

LINEAR, BILL = "linear", "bill"
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
            found.append((int(match[1] or 1), speed_bytes_per_s(match[2])))
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
    expected = "expected a further tier of a stack (C13)"
    return Fault(f"got {name!r}", expected, fix, "fabric.bill_options.tapers")


def pricing_faults(
    document: Document, rules: Sequence[Rule], *, is_bill: bool
) -> Iterator[tuple[Key, Fault]]:
    """What a plan says that its kind of prices cannot mean, by key."""
    fabric = document.value["fabric"]
    if not is_bill:
        if fabric.get("bill_options") is not None:
            got, expected = "got bill_options at linear prices", "expected prices: bill with them"
            yield KEY, Fault(got, expected, "write prices: bill, or remove them")
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
