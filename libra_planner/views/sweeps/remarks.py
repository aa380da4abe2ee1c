"""What readers of a sweep have to know of its rows: why some fail, and what their bills buy."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from libra_planner.costs.prices import SAME_SPEED
from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import MESSAGE, STATUS
from libra_planner.sweeps.results import NEAR, Results

_PORTS = ("fabric", "realization", "port_speed")
_LONGEST = 200
_MOST_LINES = 3
_SAME_BAND = 1e-6
_FAILED = f"{STATUS} <> 'optimal'"


def remarks(results: Results) -> Iterator[str]:
    """Lines about rows without an optimum or a bill, and bills beyond what designs ask for."""
    if MESSAGE in results.columns:
        yield from _reasons(results, MESSAGE, STATUS, _FAILED)
    elif n_failed := results.sql(f"SELECT count(*) FROM designs WHERE {_FAILED}").rows[0][0]:
        yield f"{n_failed:,} rows have no optimum: add message to columns, and it says why"
    if "bill_message" in results.columns:
        yield from _reasons(results, "bill_message", "'no bill'", f"NOT ({_FAILED})")
    if "bill_excess_percent" in results.columns:
        yield from _excess(results)
    if "step_time_s" in results.columns:
        yield from _near_best(results)
    if "step_time_low_s" in results.columns:
        yield from _band(results)


def _reasons(results: Results, message: str, kind: str, which: str) -> Iterator[str]:
    """For each kind of failed rows how many they are, and the most frequent reason."""
    query = (
        f"SELECT {kind} AS kind_, sum(count(*)) OVER (PARTITION BY {kind}) AS total_, count(*) "
        f"AS n_, {message} FROM designs WHERE {which} AND {message} IS NOT NULL "
        f"GROUP BY {message}, kind_ ORDER BY kind_, n_ DESC, {message}"
    )
    told = set()
    rows = results.sql(query).rows
    for name, total, n, text in rows:
        if name in told:
            continue
        told.add(name)
        short = textwrap.shorten(text, _LONGEST, placeholder=" ...")
        often = "" if n == total else f", most often ({n:,})"
        yield f"{name}: {int(total):,} of {results.n_rows:,} rows{often}: {short}"
    if len(rows) > len(told):
        query = f"SELECT {message}, count(*) FROM designs GROUP BY ALL"
        yield f'All reasons: libra-planner sweep show {results.directory.path} --sql "{query}"'


def _near_best(results: Results) -> Iterator[str]:
    """How many designs are as good as the best, for all that anybody can tell."""
    found = [row for row in results.near_best().rows if row[-2] > 1]
    for *names, n, rows in found[:_MOST_LINES]:
        numbers = ", ".join(map(str, rows)) + (", ..." if n > len(rows) else "")
        what = " of ".join(visible(str(name)) for name in names)
        yield f"{n:,} rows are within {NEAR:.1%} of the best ({what}): rows {numbers}"
    if (left := len(found) - _MOST_LINES) > 0:
        yield f"So are several rows of {left:,} more bests"


def _band(results: Results) -> Iterator[str]:
    """How far off step times may be (C23)."""
    query = (
        "SELECT count(step_time_low_s), min(step_time_s / step_time_low_s - 1), "
        "max(step_time_s / step_time_low_s - 1) FROM designs"
    )
    ((n, least, most),) = results.sql(query).rows
    if n:
        up_to = f"{most:.0%}" if most - least < _SAME_BAND else f"{least:.0%} to {most:.0%}"
        yield (
            f"Step times are off by up to {up_to} where runs of their kind were published; "
            "step_time_low_s and step_time_high_s are the ends. Much of it is common to all rows"
        )


def _excess(results: Results) -> Iterator[str]:
    """Whether bills buy more bandwidth than designs ask for, and how to mend it."""
    column, least = "bill_excess_percent", 100 * SAME_SPEED
    query = (
        f"SELECT count(*) FILTER (WHERE {column} > {least}), count({column}), max({column}) "
        "FROM designs"
    )
    ((n_more, n, most),) = results.sql(query).rows
    if not n_more:
        return
    yield (
        f"Bills buy more bandwidth than the design asks for in {n_more:,} of {n:,} rows, at most "
        f"{most:.0f} % more: billed_step_time_s is the time on what is bought, step_time_s on what "
        "is asked for"
    )
    spec = results.manifest["spec"]
    ports = spec["base"].get("fabric", {}).get("realization") or {}
    is_varied = any(tuple(key) == _PORTS for key, *_ in spec["slots"])
    if isinstance(ports, dict) and ports.get(_PORTS[-1]) and not is_varied:
        yield (
            f"All rows buy ports of {ports[_PORTS[-1]]}: let them follow the axis, under set "
            f'{".".join(_PORTS)}: "{{nic * 8}} Gbps" for an axis nic in GB/s'
        )
