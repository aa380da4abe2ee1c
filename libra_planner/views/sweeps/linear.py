"""What linear costs leave open: bills of whole parts, which may order rows otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from libra_planner.sweeps.bills import plan_bill_usd
from libra_planner.sweeps.columns import COST
from libra_planner.sweeps.figures.equals import equal_rows
from libra_planner.sweeps.probe import spread_rows
from libra_planner.sweeps.results import CENT_USD, Results
from libra_planner.units import format_usd
from libra_planner.views.sweeps.noted import Remark, bandwidth_Bps, plans_of

_BILL = "bill_usd"
_MOST_TRIED = 3
"""Rows, from the cheapest to the dearest, that are tried until one can be bought."""
_MOST_BILLS = 6
"""Equal rows of which the bills are worked out."""


def has_linear_costs(results: Results) -> bool:
    """Whether designs are ranked by linear costs, and no row has a bill."""
    spec = results.manifest["spec"]
    is_bill = spec["base"].get("prices", "linear") != "linear"
    is_varied = any(key and key[0] == "prices" for key, *_ in spec["slots"])
    return COST in results.columns and _BILL not in results.columns and not (is_bill or is_varied)


def linear_remarks(results: Results) -> Iterator[Remark]:
    """That bills may order rows otherwise, where whole parts for such plans are sold."""
    if not has_linear_costs(results):
        return
    query = f"SELECT row FROM designs WHERE {results.ranked} ORDER BY {COST}, row"
    rows = [row for (row,) in results.sql(query).rows]
    picked = [rows[i] for i in spread_rows(len(rows), _MOST_TRIED)] if rows else []
    if any(map(partial(_can_be_bought, results), picked)):
        what = "costs are linear, and bills of whole parts may order rows otherwise"
        yield Remark(
            f"{what.capitalize()}: write columns: [..., {_BILL}] in the sweep, and run it into a "
            f"new directory; libra-planner report {results.directory.path}:ROW has the bill of "
            "one row",
            what,
        )


def _can_be_bought(results: Results, row: int) -> bool:
    """Whether there is a bill of a row, as far as is known of a plan that leaves a strategy."""
    is_open = any(plan.is_open for plan in plans_of(results, row))
    return is_open or _bill_usd(results, row) is not None


def equals_words(results: Results, row: int) -> str:
    """Which other rows of its work have the time and cost of a row; empty for none.

    Where costs are linear, whose bill is the least of them.
    """
    others = equal_rows(results, row)
    if not others:
        return ""
    said = f"row {others[0]} is equal" if len(others) == 1 else f"{len(others):,} more are equal"
    if not has_linear_costs(results):
        return said
    equal, said = said, f"{said} in time and linear cost"
    if len(others) >= _MOST_BILLS:
        return f"{said}, and their bills may differ"
    bills = {one: _bill_usd(results, one) for one in (row, *others)}
    known = {one: usd for one, usd in bills.items() if usd is not None}
    if not known:
        return said
    without = f", no bill for row {', '.join(str(one) for one in bills if one not in known)}"
    least = min(known, key=lambda one: (round(known[one], 2), one != row, one))
    if len(known) == len(bills):
        without = ""
        if max(known.values()) - known[least] < CENT_USD:
            return f"{equal} in time, linear cost and bill"
    which = "its own bill is the least" if least == row else f"row {least} has the least bill"
    return f"{said}: {which}, {format_usd(known[least])}{without}"


def _bill_usd(results: Results, row: int) -> float | None:
    """The bill of a row, if its plan has one."""
    known = bandwidth_Bps(results, row)
    usd = (plan_bill_usd(plan, known) for plan in plans_of(results, row))
    return next(usd, None)
