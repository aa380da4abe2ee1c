"""What linear costs leave open: bills of whole parts, which may order rows otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from libra_planner.plan.scale_up import COMES_IN, offered_domains
from libra_planner.plan.training import npu_names, plan_spec
from libra_planner.sweeps.bills import plan_bill_usd
from libra_planner.sweeps.columns import COST, NOTES
from libra_planner.sweeps.figures.equals import equal_rows
from libra_planner.sweeps.figures.flaws import CENT_USD
from libra_planner.sweeps.figures.texts import BETWEEN_NOTES
from libra_planner.sweeps.probe import spread_rows
from libra_planner.sweeps.results import Results
from libra_planner.units import BYTES_PER_S_PER_GBPS, format_bandwidth, format_usd
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


_DIM1 = "bandwidth_dim1_GBps"
_ROUNDING = 1 + 1e-9


def unsold_remarks(results: Results, best: Mapping[int, Sequence[str]]) -> Iterator[Remark]:
    """How many rows ask for faster servers than are sold, where no bill says so.

    Parameters
    ----------
    results : of a sweep.
    best : the rows that are the best, and in what.
    """
    if _BILL in results.columns or not {NOTES, _DIM1} <= {*results.columns}:
        return
    each = f"SELECT *, unnest(string_split({NOTES}, '{BETWEEN_NOTES}')) AS note_"
    notes = f"({each} FROM designs WHERE {results.ranked}) WHERE contains(note_, ' {COMES_IN} ')"
    for first, note in results.sql(f"SELECT min(row), note_ FROM {notes} GROUP BY note_").rows:
        for name, most_Bps, n_dims in _sold(results, first):
            asked = " + ".join(f"bandwidth_dim{dim + 1}_GBps" for dim in range(n_dims))
            most = most_Bps / BYTES_PER_S_PER_GBPS * _ROUNDING
            own = f"note_ = '{note.replace(chr(39), 2 * chr(39))}' AND {asked} > {most!r}"
            rows = [row for (row,) in results.sql(f"SELECT row FROM {notes} AND {own}").rows]
            if rows:
                yield _unsold(results, rows, f"the {format_bandwidth(most_Bps)} of {name}", best)


def _sold(results: Results, row: int) -> Iterator[tuple[str, float, int]]:
    """The scale-up domain that the NPU of a row is sold in, byte/s per NPU, and its dimensions."""
    for plan in plans_of(results, row):
        problem = plan.base if plan.is_open else plan.problem
        for npu, domain in offered_domains(problem, npu_names(plan_spec(plan.with_degrees))):
            name = f"the server of {npu} ({domain.name})"
            yield name, domain.npu_Bps, domain.n_dims(problem.topology)


def _unsold(
    results: Results, rows: Sequence[int], what: str, best: Mapping[int, Sequence[str]]
) -> Remark:
    n = f"{len(rows):,} of {results.n_rows:,} rows ask"
    if len(rows) == 1:
        n = f"1 of {results.n_rows:,} rows asks"
    roles: dict[str, list[str]] = {}
    for row in rows:
        for role in best.get(row, ()):
            roles.setdefault(role, []).append(str(row))
    among = [
        f"the {role} ({'rows' if own[1:] else 'row'} {' and '.join(own)})"
        for role, own in roles.items()
    ]
    named = f", {', '.join(among)} among them" if among else f", such as row {min(rows)}"
    short = f"{n} between the NPUs of a server for more than {what}{named}"
    fix = "bound the bandwidth of dim1, or fabric: {scale_up: ...} takes what is sold"
    return Remark(f"{short}: nobody sells them; {fix}", short)


def _can_be_bought(results: Results, row: int) -> bool:
    """Whether there is a bill of a row, as far as is known of a plan that leaves a strategy."""
    is_open = any(plan.is_open for plan in plans_of(results, row))
    return is_open or _bill_usd(results, row) is not None


def equals_words(results: Results, row: int) -> str:
    """Which other rows of its work have the time and cost of a row; empty for none.

    Where costs are linear, whose bill is the least of them; where the sweep has bills, how many of
    them nobody can buy.
    """
    others = equal_rows(results, row)
    if not others:
        return ""
    said = f"row {others[0]} is equal" if len(others) == 1 else f"{len(others):,} more are equal"
    if not has_linear_costs(results):
        return said + _wrong_among(results, others)
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


def _wrong_among(results: Results, rows: Sequence[int]) -> str:
    """How many of some equal rows nobody can buy, or break a rule on cost by their bill."""
    counts = (
        (results.unbilled, "no bill"),
        (results.over_server, "a server that nobody prices"),
        (results.over_rule, "a bill that breaks its rule on cost"),
    )
    known = ((len(own.intersection(rows)), what) for own, what in counts)
    said = [f"{n:,} with {what}" for n, what in known if n] if "bill_usd" in results.columns else []
    if len(rows) == 1:
        return f", with {said[0].partition(' with ')[2]}" if said else ""
    return f", {', '.join(said)}" if said else ""


def _bill_usd(results: Results, row: int) -> float | None:
    """The bill of a row, if its plan has one."""
    known = bandwidth_Bps(results, row)
    usd = (plan_bill_usd(plan, known) for plan in plans_of(results, row))
    return next(usd, None)
