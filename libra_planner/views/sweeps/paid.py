"""What bills of a sweep buy otherwise than its designs ask for, or its rules allow."""

from __future__ import annotations

from collections.abc import Iterator

from libra_planner.costs.prices import SAME_SPEED
from libra_planner.plain_text import visible
from libra_planner.procurement.bought.server_links import OVER_SERVER, UNUSED_IN_SERVER
from libra_planner.sweeps.columns import OVER_RULE
from libra_planner.sweeps.figures.tables import sql_name
from libra_planner.sweeps.figures.texts import BETWEEN_NOTES
from libra_planner.sweeps.results import SAME, Results
from libra_planner.sweeps.template import PRICE_KEYS, names_at
from libra_planner.units import format_usd
from libra_planner.views.sweeps.noted import Remark

_PORTS = ("fabric", "realization", "port_speed")


def bill_remarks(results: Results) -> Iterator[Remark]:
    """Servers whose links are not what designs ask for, and ports beyond what they ask for."""
    if _has_notes(results):
        yield from _servers(results)
    if "bill_excess_percent" in results.columns:
        yield from _excess(results)


def _has_notes(results: Results) -> bool:
    return {"bill_note", "bill_usd"} <= {*results.columns}


def _excess(results: Results) -> Iterator[Remark]:
    """Whether bills buy more bandwidth than designs ask for, and how to mend it."""
    column, least = "bill_excess_percent", 100 * SAME_SPEED
    has_bill = "bill_usd IS NOT NULL" if "bill_usd" in results.columns else "true"
    query = (
        f"SELECT count(*) FILTER (WHERE {column} > {least}), count({column}), max({column}) "
        f"FROM designs WHERE {has_bill}"  # Earlier versions wrote it without a price, too.
    )
    ((n_more, n, most),) = results.sql(query).rows
    if not n_more:
        return
    where = f"in {n_more:,} of {n:,} rows with a bill, at most {most:.0f} % more"
    yield Remark(
        f"Bills buy more bandwidth than the design asks for {where}: billed_step_time_s is the "
        "time on the whole ports that are bought, step_time_s on what is asked for",
        f"bills buy more bandwidth than is asked for {where}",
    )
    if _has_notes(results):
        yield from _faster_parts(results)
    spec = results.manifest["spec"]
    ports = spec["base"].get("fabric", {}).get("realization") or {}
    is_varied = any(tuple(key) == _PORTS for key, *_ in spec["slots"])
    if isinstance(ports, dict) and ports.get(_PORTS[-1]) and not is_varied:
        what = f"ll rows buy ports of {ports[_PORTS[-1]]}"
        yield Remark(
            f"A{what}: let them follow the axis, under set "
            f'{".".join(_PORTS)}: "{{nic * 8}} Gbps" for an axis nic in GB/s',
            f"a{what}",
        )


def _faster_parts(results: Results) -> Iterator[Remark]:
    """Whether bills pay for parts that are faster than the ports of the plan."""
    notes = f"({_notes()}) WHERE NOT {_starts(OVER_SERVER)} AND NOT {_starts(UNUSED_IN_SERVER)}"
    query = (
        f"SELECT count(*), mode(note_), count(*) FILTER (WHERE note_ = (SELECT mode(note_) FROM "
        f"{notes})), (SELECT count(bill_usd) FROM designs) FROM {notes}"
    )
    ((n_faster, text, n_often, n),) = results.sql(query).rows
    if n_faster:
        often = "" if n_often == n_faster else f", most often ({n_often:,})"
        yield Remark(
            f"{n_faster:,} of {n:,} bills{often}: {text}. Sweep speeds that are sold",
            f"{n_faster:,} of {n:,} bills are of parts faster than the plan's ports",
        )


def _servers(results: Results) -> Iterator[Remark]:
    """Whether the servers of bills have more or less links than designs ask for."""
    for start, what in (
        (OVER_SERVER, "ask for more than the priced server has"),
        (UNUSED_IN_SERVER, "ask for less than the priced server has"),
    ):
        notes = f"({_notes()}) WHERE {_starts(start)}"
        query = f"SELECT count(*), min(row), min_by(note_, row) FROM {notes}"
        ((n, row, text),) = results.sql(query).rows
        if n:
            said = f"{n:,} of {results.n_rows:,} rows {what}"
            yield Remark(f"{said}, such as row {row}: {text}", said)


def _notes() -> str:
    """Notes of bills, one a line, in SQL."""
    each = f"unnest(string_split(bill_note, '{BETWEEN_NOTES}'))"
    return f"SELECT row, {each} AS note_ FROM designs WHERE bill_usd IS NOT NULL"


def _starts(text: str) -> str:
    return f"starts_with(note_, '{text}')"


def over_rule_remarks(results: Results) -> Iterator[Remark]:
    """How many rows break their rules on cost by what is bought."""
    if not (n := len(results.over_rule)):
        return
    query = f"SELECT count({OVER_RULE}), max({OVER_RULE}) FROM designs"
    ((n_known, most_usd),) = results.sql(query).rows
    by = "their bill" if results.plan_cost == "system cost" else "the training fabric of their bill"
    what = f"{n:,} of {n_known:,} rows cost more by {by} than their rule cost <= allows"
    yield Remark(
        f"{what}, at most {format_usd(most_usd)} more: the rule bounds linear prices; to bound the "
        "bill write prices: bill under set, without a fixed_cost",
        what,
    )


def idle_price_remarks(results: Results) -> Iterator[Remark]:
    """Axes of prices that move the plan's own cost and no bill, such as a fixed cost."""
    if results.cost_column != "bill_usd" or "cost_usd" not in results.columns:
        return
    moves = "max({0}) - min({0}) > {1} * max({0})"
    cost, bill = (moves.format(one, SAME) for one in ("cost_usd", "bill_usd"))
    priced = names_at(results.manifest["spec"], PRICE_KEYS)
    for axis in (one for one in results.axes if one in priced):
        others = ", ".join(sql_name(one) for one in results.axes if one != axis)
        like = f"GROUP BY {others}" if others else ""
        groups = (
            f"SELECT {cost} AS cost_, {bill} AS bill_ FROM designs WHERE {results.ranked} {like}"
        )
        query = f"SELECT coalesce(bool_or(cost_), false), bool_or(bill_) FROM ({groups})"
        ((moves_cost, moves_bill),) = results.sql(query).rows
        if moves_cost and not moves_bill:
            yield Remark(
                f"Axis {visible(axis)} changes the plan's cost and no bill: bills are of the parts "
                "catalogue and of quotes; put prices under quotes",
                f"axis {visible(axis)} changes no bill",
            )
