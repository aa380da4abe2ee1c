"""What rules can bound: a registry of quantities, each with its units and its row over bandwidths.

Grammar, messages, shadow prices and JSON derive from it; a quantity that :func:`register` adds
from outside is like those that are here. Units are SI inside (C1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from libra_planner.errors import unknown_name
from libra_planner.fabric.topology import Topology
from libra_planner.registry import Registry
from libra_planner.step.expression import Array
from libra_planner.units import UNITS, format_time, format_usd


@dataclass(frozen=True)
class PricedFabric:
    """What rows are made of: the dimensions, and the network's price, shape (n_dims,)."""

    topology: Topology
    price_usd_per_Bps: Array


@dataclass(frozen=True)
class Quantity(ABC):
    """Something that a rule can bound; a subclass says what its row is.

    Parameters
    ----------
    name : what rules call it; one that depends on no bandwidth by itself has other names.
    kind : of its amounts, in messages.
    unit : that bounds, excesses and shadow prices are told in.
    units : all of its units, SI.
    suggested : units to write, for messages.
    coarse_unit : of which tables say what one more is worth; without one, ``unit``.
    about : an amount, with its article.
    least, most : range beyond which an amount is a slip of the keyboard, SI.
    """

    name: str
    kind: str
    unit: str
    units: Mapping[str, float]
    suggested: tuple[str, ...]
    coarse_unit: str = ""
    about: str = ""
    least: float = 1e-12
    most: float = 1e18

    @property
    def unit_factor(self) -> float:
        """SI value of one :attr:`unit`."""
        return self.units[self.unit]

    @abstractmethod
    def row(self, fabric: PricedFabric) -> Array | None:
        """What one byte/s more in each dimension adds, SI, shape (n_dims,); ``None``: no sum."""

    def text(self, amount: float) -> str:
        """An amount in :attr:`unit`, for people."""
        return f"{amount:,.6g} {self.unit}"


class _Bandwidth(Quantity):
    """The sum over all dimensions; their own names are the fabric's."""

    def row(self, fabric: PricedFabric) -> Array:
        return np.ones(fabric.topology.n_dims)


class _Cost(Quantity):
    """Network and fixed cost (C7, C8)."""

    def row(self, fabric: PricedFabric) -> Array:
        return fabric.price_usd_per_Bps

    def text(self, amount: float) -> str:
        return format_usd(amount)


class _Taper(Quantity):
    """Bandwidth of the tier inside over that of a tier of a stack (C13): a ratio, no sum."""

    def row(self, _fabric: PricedFabric) -> None:
        return None

    def text(self, amount: float) -> str:
        return f"{amount:,.6g}:1"


def taper_digits(text: str) -> str:
    """The number of a taper that is written with its ``:1`` or without.

    >>> taper_digits("2:1"), taper_digits(" 1.5 ")
    ('2', '1.5')
    """
    return text.strip().removesuffix(":1")


class _StepTime(Quantity):
    """The time of a step, of which a rule can be an upper bound only."""

    def row(self, _fabric: PricedFabric) -> None:
        return None

    def text(self, amount: float) -> str:
        return format_time(amount)


TOTAL: Final = _Bandwidth(
    "total", "bandwidth", "GB/s", UNITS["bandwidth"], ("GB/s",), "", "a bandwidth", 1e3
)
COST: Final = _Cost(
    "cost", "money", "$", UNITS["money"], ("$", "M$"), "M$", "an amount of money", 1e-3
)
STEP_TIME: Final = _StepTime(
    "step_time", "time", "s", UNITS["time"], ("ms", "s"), "ms", "a time", most=1e12
)
TAPER: Final = _Taper("taper", "taper", "taper", {"taper": 1.0}, (), "", "a taper")

QUANTITIES: Final[Registry[Quantity]] = Registry("quantity")
"""Quantities by the name that rules give them."""


def register(quantity: Quantity) -> Quantity:
    """Let rules bound a quantity.

    Raises
    ------
    ValueError
        For a name, a kind or a unit that another one has, or units without its own.
    """
    for unit in (quantity.unit, quantity.coarse_unit or quantity.unit, *quantity.suggested):
        if unit not in quantity.units:
            raise ValueError(f"got the unit {unit!r} of {quantity.name}, expected it in its units")
    for other in QUANTITIES.values():
        if other.kind == quantity.kind or other.units.keys() & quantity.units.keys():
            raise ValueError(f"got {quantity.name} in units of {other.name}, expected its own")
    QUANTITIES.add(quantity, quantity.name)
    return quantity


for _quantity in (TOTAL, COST, STEP_TIME, TAPER):
    register(_quantity)


def names_in_rules(topology: Topology) -> tuple[str, ...]:
    """How rules call each dimension: by its tier where this means no other one, else ``dimN``.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> names_in_rules(parse_topology("SW(8)_[SW(32)_SW(8)]", ("node", "leaf", "cost")))
    ('node', 'leaf', 'dim3')
    """
    taken = {*topology.labels, *(one.name for one in QUANTITIES.values())}
    tiers = [tier for tier in topology.tiers if tier.isidentifier() and tier.isascii()]
    return tuple(
        tier if tiers.count(tier) == 1 and tier not in taken else label
        for tier, label in zip(topology.tiers, topology.labels, strict=True)
    )


def find_quantity(unit: str) -> Quantity | None:
    """The quantity that has a unit, if one has."""
    return next((one for one in QUANTITIES.values() if unit in one.units), None)


def quantity_in(unit: str) -> Quantity:
    """The quantity that has a unit.

    Raises
    ------
    UnknownName
        For a unit that no quantity has.
    """
    found = find_quantity(unit)
    if found is None:
        known = [unit for one in QUANTITIES.values() for unit in one.units]
        raise unknown_name("unit of a quantity", unit, known)
    return found
