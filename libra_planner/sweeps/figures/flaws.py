"""What keeps designs of a sweep from being bought as they are, in SQL over the table designs."""

from __future__ import annotations

from collections.abc import Container

from libra_planner.sweeps.columns import OVER_RULE, OVER_SERVER, STATUS
from libra_planner.sweeps.figures.frontiers import BREAKS_RULE, NOT_BOUGHT

CENT_USD = 0.01
"""Money up to which a bill is as a rule on cost allows."""
BILL = "bill_usd"
OPTIMAL = f"{STATUS} = 'optimal'"
_DEAREST_USD = 1e300
"""In place of a cost that nobody knows."""


def breaks_rule(columns: Container[str]) -> str:
    """Whether the bill of a design is more than its rules on cost allow."""
    return f"coalesce({OVER_RULE}, 0) > {CENT_USD}" if OVER_RULE in columns else "false"


def over_server(columns: Container[str]) -> str:
    """Whether a design asks for more links in a server than the priced one has."""
    return f"coalesce({OVER_SERVER}, 0) > 0" if OVER_SERVER in columns else "false"


def unbilled(columns: Container[str]) -> str:
    """Whether a design has an optimum and no bill, in a sweep that has bills."""
    return f"{OPTIMAL} AND {BILL} IS NULL" if BILL in columns else "false"


def preferred(columns: Container[str]) -> tuple[str, str]:
    """What decides between designs of equal costs and times: the flaw, then the bill, if known.

    The order is that of ``frontiers.preference``.

    >>> preferred(["step_time_s", "cost_usd"])
    ('0', '0.0')
    """
    if BILL not in columns:
        return "0", "0.0"
    not_bought = f"({BILL} IS NULL OR {over_server(columns)})::INTEGER"
    broken = f"({breaks_rule(columns)})::INTEGER"
    flaw = f"{BREAKS_RULE} * {broken} + {NOT_BOUGHT} * {not_bought}"
    return flaw, f"coalesce({BILL}, {_DEAREST_USD})"
