"""Designs of a sweep that are equal in time and cost, and axes that change neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from libra_planner.sweeps.columns import COST, EFFECTIVE, OBJECTIVE, ROW
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.figures.frontiers import SAME
from libra_planner.sweeps.figures.tables import sql_name

_FIGURES = ("step_time_s", COST, "bill_usd", "billed_step_time_s", EFFECTIVE, "fim_percent")
"""What tells rows apart beside the time and the cost that rank them."""


class Ranked(Protocol):
    """What :class:`~libra_planner.sweeps.results.Results` knows of its designs."""

    @property
    def axes(self) -> list[str]:
        """Axes of the sweep."""

    @property
    def work_axes(self) -> list[str]:
        """Axes that change what is trained."""

    @property
    def idle_axes(self) -> list[str]:
        """Axes that change neither time nor cost."""

    @property
    def columns(self) -> list[str]:
        """Columns of the designs."""

    @property
    def time_column(self) -> str:
        """The time that ranks them."""

    @property
    def step_time_column(self) -> str:
        """The time of their steps beside it."""

    @property
    def cost_column(self) -> str:
        """Their cost."""

    @property
    def ranked(self) -> str:
        """Which designs have a rank, in SQL."""

    def sql(self, query: str) -> Answer:
        """What a query over the table ``designs`` gives."""


def equal_rows(results: Ranked, row: int) -> list[int]:
    """Other rows of the same work whose time and cost are those of a row, but for rounding.

    Parameters
    ----------
    results : with columns of time and cost.
    row : number of a design that has a rank.
    """
    names = (results.time_column, results.cost_column)
    near = (f"abs(other.{x} - own.{x}) <= {SAME} * own.{x}" for x in names)
    like = (f"other.{x} = own.{x}" for x in map(sql_name, results.work_axes))
    among = f"SELECT * FROM designs WHERE {results.ranked}"
    query = (
        f"SELECT other.{ROW} FROM ({among}) AS other, ({among} AND {ROW} = {row}) AS own "
        f"WHERE other.{ROW} <> own.{ROW} AND {' AND '.join([*near, *like])} ORDER BY 1"
    )
    return [one for (one,) in results.sql(query).rows]


def idle_axes(results: Ranked) -> list[str]:
    """Axes that change neither time nor cost of any design, whatever the other axes say.

    Each of their values is in every group of rows that are alike in the other axes, and all rows
    of a group are equal, or without a rank. Of axes that only replace one another there is none.
    """
    ranking = (results.time_column, results.cost_column)
    figures = [x for x in dict.fromkeys((*ranking, *_FIGURES)) if x in results.columns]
    equal = " AND ".join(
        f"count({x}) IN (0, count(*)) AND coalesce(max({x}) - min({x}) <= {SAME} * max({x}), true)"
        for x in figures
    )
    found: list[str] = []
    for axis in results.axes:
        if axis == OBJECTIVE or axis in results.work_axes:
            continue
        others = dict.fromkeys(x for x in (*results.axes, OBJECTIVE) if x not in (axis, *found))
        each = (
            f"SELECT count(DISTINCT {sql_name(axis)}) AS n_values_, count(*) AS n_rows_, "
            f"count(*) FILTER (WHERE {results.ranked}) AS n_, {equal} AS same_ "
            f"FROM designs GROUP BY {', '.join(map(sql_name, others))}"
        )
        query = (
            f"SELECT bool_and((n_ = 0 OR n_ = n_rows_) AND same_), "
            f"min(n_values_), sum(n_), (SELECT count(DISTINCT {sql_name(axis)}) FROM designs) "
            f"FROM ({each})"
        )
        ((is_same, n_least, n_ranked, n_values),) = results.sql(query).rows
        if is_same and n_ranked and n_least == n_values > 1:
            found.append(axis)
    return found


def told_time(results: Ranked) -> str:
    """The time that people read: of whole steps, where it ranks as the time of a sequence does.

    It does where all steps of one work have the same number of sequences.
    """
    part, whole = results.time_column, results.step_time_column
    if part == whole:
        return whole
    keys = ", ".join(map(sql_name, results.work_axes)) or "1"
    ratio = f"{whole} / {part}"
    query = (
        f"SELECT 1 FROM designs WHERE {results.ranked} GROUP BY {keys} "
        f"HAVING max({ratio}) > min({ratio}) * (1 + {SAME})"
    )
    return part if results.sql(query).rows else whole


def n_alike(results: Ranked) -> int:
    """Rows that are one design but for axes that change neither time nor cost.

    Parameters
    ----------
    results : whose rows are of such groups; all have the same size.
    """
    if not results.idle_axes:
        return 1
    names = dict.fromkeys([*results.axes, OBJECTIVE])
    others = ", ".join(sql_name(x) for x in names if x not in results.idle_axes)
    ((n,),) = results.sql(
        f"SELECT max(n_) FROM (SELECT count(*) AS n_ FROM designs GROUP BY {others})"
    ).rows
    return int(n)


def first_of_alike(results: Ranked, n: int, best: Callable[[int], Answer]) -> Answer:
    """The best designs of each work and objective, each once whatever idle axes say.

    Parameters
    ----------
    results : whose designs they are.
    n : of each work and objective.
    best : gives so many of each, equal ones beside one another, with all axes and the objective.
    """
    if not results.idle_axes:
        return best(n)
    found = best(n * n_alike(results))
    kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    told = [x for x in dict.fromkeys([*results.axes, OBJECTIVE]) if x not in results.idle_axes]
    works, counts = [*results.work_axes, OBJECTIVE], Counter[tuple[Any, ...]]()
    for row in found.rows:
        values = dict(zip(found.columns, row, strict=True))
        key, work = (tuple(values[x] for x in names) for names in (told, works))
        if key not in kept and counts[work] < n:
            kept[key] = row
            counts[work] += 1
    return Answer(found.columns, tuple(kept.values()))
