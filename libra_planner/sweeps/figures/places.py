"""Places of designs among their like: in an order, on a frontier, in a sample of very many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.step.expression import Array
from libra_planner.sweeps.figures import frontiers
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.figures.tables import sql_name

NEAR = 1e-3
"""Relative difference up to which a design is as good as the best for people."""


class Placed(NamedTuple):
    """Designs of one work by their rows, figures of each, and the places of those on a frontier."""

    row: NDArray[np.int64]
    figures: list[Array]
    best: NDArray[np.intp]


def with_ties(source: str, names: Sequence[str]) -> str:
    """SQL for rows with the rank of each figure among their like, as ``frontiers.ties`` has it.

    Parameters
    ----------
    source : SQL of rows with ``like_``, ``row_`` and the figures.
    names : of the figures; the rank of ``x_`` is ``x_tie_``.
    """
    among = {x: f"PARTITION BY like_ ORDER BY {x}, row_" for x in names}
    same = 1 + frontiers.SAME
    steps = (
        f"CASE WHEN {x} > lag({x}) OVER ({own}) * {same} THEN 1 ELSE 0 END AS {x}step_"
        for x, own in among.items()
    )
    ranked = (
        f"sum({x}step_) OVER ({own} ROWS UNBOUNDED PRECEDING) AS {x}tie_"
        for x, own in among.items()
    )
    return f"SELECT *, {', '.join(ranked)} FROM (SELECT *, {', '.join(steps)} FROM ({source}))"


def ranks(among: Sequence[str], rank: str, equal: tuple[str, str, str], which: str) -> str:
    """SQL for the place of every design among its like: ranked_row_, ranked_place_.

    Figures that rounding alone tells apart are equal, as ``frontiers.ties`` has them. Of equal
    ranks the cheaper design comes first, of equally cheap ones the faster. Of equal ones their
    order is that of ``frontiers.preference``.

    Parameters
    ----------
    among : SQL of what designs have in common that are ranked together.
    rank : SQL of what is to be small.
    equal : SQL of what is to be small next: cost or time, the flaw, and the bill.
    which : SQL of the designs that have a place.
    """
    then, flaw, last = equal
    like = f"dense_rank() OVER (ORDER BY {', '.join(among)})"
    figures = (
        f"SELECT row AS row_, {rank} AS rank_, {then} AS then_, {last} AS last_, "
        f"{flaw} AS flaw_, {like} AS like_ FROM designs WHERE {which}"
    )
    return (
        "SELECT row_ AS ranked_row_, row_number() OVER (PARTITION BY like_ ORDER BY rank_tie_, "
        "then_tie_, flaw_, last_tie_, row_) AS ranked_place_ FROM "
        f"({with_ties(figures, ('rank_', 'then_', 'last_'))})"
    )


def first_rows(
    among: Sequence[str],
    figures: tuple[str, str],
    equal: tuple[str, str],
    which: str,
    told: Mapping[str, str],
) -> str:
    """SQL for the rows of each group that are the fastest, the cheapest and the best per dollar.

    Parameters
    ----------
    among, which : as :func:`ranks` has them.
    figures : columns of time and cost; no cost where it is empty.
    equal : the flaw and the bill, for equals.
    told : SQL of what is told of the best per dollar, too, by its name.
    """
    time, cost = figures
    roles = {"fastest": (time, cost or "NULL")}
    if cost:
        roles |= {"cheapest": (cost, time), "best_per_dollar": (f"{time} * {cost}", cost)}
    found = ""
    for name, (rank, then) in roles.items():
        each = ranks(among, rank, (then, *equal), which)
        first = f"SELECT ranked_row_ FROM ({each}) WHERE ranked_place_ = 1"
        of_row = f"FILTER (WHERE row IN ({first}))"
        found += f", any_value(row) {of_row} AS {name}_row"
        for one, own in told.items() if name == "best_per_dollar" else ():
            found += f", any_value({own}) {of_row} AS {sql_name(f'per_dollar_{one}')}"
    return found


def placed(
    connection: Any, figures: Sequence[str], which: str, *, like: str, equal: tuple[str, str]
) -> list[Placed]:
    """Designs of each work, and which of them no other one beats in two or three figures.

    Parameters
    ----------
    connection : DuckDB's, to the table ``designs``.
    figures : SQL of time, cost and, where it counts, FIM.
    which : SQL of the designs that have a place.
    like : SQL of the axes that change what is trained.
    equal : SQL of the flaw and of the bill: what ``frontiers.preference`` takes.
    """
    wanted = [f"{one} AS figure_{i}" for i, one in enumerate([*figures, equal[1]])]
    query = (
        f"SELECT row, dense_rank() OVER (ORDER BY {like}) AS like_, {equal[0]} AS flaw_, "
        f"{', '.join(wanted)} FROM designs WHERE {which} ORDER BY row"
    )
    found = connection.execute(query).fetchnumpy()
    arrays = [
        np.ma.filled(found[f"figure_{i}"].astype(np.float64), np.nan) for i in range(len(wanted))
    ]
    kept = []
    for one in np.unique(found["like_"]):
        *own, usd = [array[places := found["like_"] == one] for array in arrays]
        row = found["row"][places]
        then = frontiers.preference(found["flaw_"][places], usd, row)
        time, cost, *fim = own
        best = (
            frontiers.unbeaten(time, cost, fim[0], then)
            if fim
            else frontiers.unbeaten_in_two(time, cost, then)
        )
        kept.append(Placed(row, own, best))
    return kept


def best_rows(works: Sequence[Placed]) -> list[int]:
    """Of the frontier of each work the ends, and the designs of the least time times cost."""
    rows: list[int] = []
    for one in works:
        time, cost = (figure[one.best] for figure in one.figures[:2])
        least = time * cost <= (time * cost).min(initial=np.inf) * (1 + frontiers.SAME)
        least[[0, -1] if len(least) else []] = True
        rows += one.row[one.best][least].tolist()
    return rows


def sampled(
    works: Sequence[Placed], most: int, spread: str, answer: Callable[[str], Answer]
) -> str:
    """Designs that stand for very many, in SQL: evenly spread ones, and the frontiers.

    Without the designs of a frontier that are left out some others would seem unbeaten: these are
    left out, too.

    Parameters
    ----------
    works : designs of each work, with their frontiers of two figures.
    most : designs of all frontiers up to which all of them are there; of more those that
        :func:`frontiers.thinned` keeps.
    spread : SQL of the evenly spread ones.
    answer : what answers SQL.
    """
    if sum(len(one.best) for one in works) <= most:
        kept = [row for one in works for row in one.row[one.best].tolist()]
        return f"{spread} OR row IN ({_list(kept)})"
    query = f"SELECT row FROM designs WHERE {spread}"
    sample = np.array([row for (row,) in answer(query).rows], dtype=np.int64)
    kept, left_out = [], []
    for one in works:
        (time, cost), best = one.figures[:2], one.best
        few = best[frontiers.thinned(time[best], cost[best], NEAR)]
        others = np.setdiff1d(np.flatnonzero(np.isin(one.row, sample)), best)
        beaten = frontiers.beaten_by(time[few], cost[few], time[others], cost[others])
        kept += one.row[few].tolist()
        left_out += one.row[others[~beaten]].tolist()
    return f"{spread} AND row NOT IN ({_list(left_out)}) OR row IN ({_list(kept)})"


def _list(rows: Sequence[int]) -> str:
    """Rows in SQL; those of no design where there are none."""
    return ", ".join(map(str, rows)) or "-1"


def rank(time: str, cost: str) -> str:
    """What the smallest is the best of, by objective, in SQL; by time alone without a cost."""
    if not cost:
        return time
    return (
        f"CASE objective WHEN 'cost' THEN {cost} WHEN 'performance_per_cost' "
        f"THEN {time} * {cost} ELSE {time} END"
    )
