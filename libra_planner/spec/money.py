"""Amounts of money as a user writes them, such as ``20 M$``."""

from __future__ import annotations

import re
from typing import Any

from libra_planner.errors import Fault, SpecError, UnitError, closest
from libra_planner.spec.document import shown
from libra_planner.units import UNITS, unit_kind

_AMOUNT = re.compile(r"(?P<number>\d+(?:_\d+)*(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(?P<unit>\S.*)", re.A)
_LEAST_USD, _MOST_USD = 1e-3, 1e18
_EXPECTED = "expected an amount of money with its unit"


def usd(value: Any) -> float:
    """An amount of money in USD.

    Raises
    ------
    UnitError
        For a bare number, or a unit that is not one of money.
    SpecError
        For anything else that is not an amount of at least 0.

    Examples
    --------
    >>> usd("20 M$"), usd("3.5 k$"), usd("0 $")
    (20000000.0, 3500.0, 0.0)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        fix = f"write {value:g} $ or {value:g} M$" if value >= 0 else "write e.g. 20 M$"
        raise UnitError(Fault(f"got {shown(value)} without a unit", _EXPECTED, fix))
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        money_first = isinstance(value, str) and value.strip().startswith("$")
        fix = "write the unit after the number: 20 M$" if money_first else "write e.g. 20 M$"
        raise SpecError(Fault(f"got {shown(value)}", f"{_EXPECTED}, 0 or more", fix))
    amount = float(match["number"]) * _factor(match["unit"], str(value))
    if amount and not _LEAST_USD <= amount <= _MOST_USD:
        expected = f"expected 0 or {_LEAST_USD:g} to {_MOST_USD:g} USD"
        raise SpecError(Fault(f"got {shown(value)}", expected))
    return amount


def _factor(unit: str, text: str) -> float:
    """USD of one unit of money."""
    try:
        kind, factor = unit_kind(unit)
    except UnitError:
        fix = closest(unit, UNITS["money"])
        got = f"got the unit {shown(unit)} in {shown(text)}"
        raise UnitError(Fault(got, "expected a unit of money", fix)) from None
    if kind != "money":
        got = f"got a {kind}, {shown(text)}"
        raise UnitError(Fault(got, _EXPECTED, "write e.g. 20 M$"))
    return factor
