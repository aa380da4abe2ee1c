"""Questions to a run directory: answers by DuckDB over its parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.files import is_unicode
from libra_planner.sweeps import columns as cols
from libra_planner.sweeps.expressions import whole_text_fix
from libra_planner.sweeps.figures import flaws, frontiers, places
from libra_planner.sweeps.figures.answer import Answer, error_text
from libra_planner.sweeps.figures.equals import first_of_alike, idle_axes, told_time
from libra_planner.sweeps.figures.tables import connection_to, filtered_connection, sql_name
from libra_planner.sweeps.store import Layout, RunDirectory
from libra_planner.sweeps.template import MAP, WORK_KEYS, names_at

NEAR, SAME = places.NEAR, frontiers.SAME
"""Relative differences of a figure: up to the first a design is as good as the best for people, up
to the second it is not worth its place."""


BY = ("ideal", "effective", "bill")
"""What ranks designs: time and cost by the plan's model, the time on their links under the sweep's
policy, or the bill of whole parts and the time on what it buys. Beside times on links, too, designs
cost their bill where the sweep has it."""

_EFFECTIVE, _BILL = BY[1:]
_TIMES = {_EFFECTIVE: ("effective_", "--by"), _BILL: ("billed_", "--by")}
"""How columns of times begin."""


@dataclass(frozen=True)
class Results:
    """The results of a sweep, finished or not.

    Parameters
    ----------
    directory : where they are.
    by : one of :data:`BY`.
    where : filters in the language of ``where`` of sweep files; only designs that meet all of
        them are there.
    kept : numbers of the designs that count; ``None`` for all of them.
    """

    directory: RunDirectory
    by: str = BY[0]
    where: tuple[str, ...] = ()
    kept: tuple[int, ...] | None = None

    @classmethod
    def at(cls, path: str | Path, by: str | None = BY[0], where: Sequence[str] = ()) -> Results:
        """Results in a run directory.

        Parameters
        ----------
        path : of the directory.
        by : one of :data:`BY`; ``None`` for :attr:`usual`.
        where : filters that designs have to meet.

        Raises
        ------
        SpecError
            For a directory that is no sweep's, or without any results yet.
        TypeError
            For a number: rows of a directory are what :meth:`sql` gives.
        """
        if not isinstance(path, str | PathLike):
            got = f"at: got {path!r}, expected a run directory"
            fix = "rows are what to_frame(where='row == 2') or sql(...) of results gives"
            raise TypeError(f"{got}; {fix}")
        results = cls(RunDirectory(Path(path)), by or BY[0], tuple(where))
        if not results.n_parts_done:
            got, fix = "got no results yet", "run the sweep first"
            raise SpecError(Fault(got, "", fix, "", results.directory.place))
        return replace(results, by=results.usual) if by is None else results

    def among(self, answer: Answer | None) -> Results:
        """The designs of an answer alone, where its rows tell which they are; else all of them."""
        if answer is None or cols.ROW not in answer.columns:
            return self
        place = answer.columns.index(cols.ROW)
        rows = dict.fromkeys(row[place] for row in answer.rows)
        is_known = all(isinstance(row, int) for row in rows)
        return replace(self, kept=tuple(rows)) if is_known else self

    @property
    def usual(self) -> str:
        """What ranks designs where nobody says: the most that the sweep knows of any of them.

        The time on the links where it has checked one, else the bill, else the plan's model.
        """
        if self.n_checked:
            return _EFFECTIVE
        return _BILL if self.n_billed else BY[0]

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the directory says of its sweep."""
        return self.directory.manifest()

    @cached_property
    def n_parts_done(self) -> int:
        """Files of results there."""
        self.manifest  # noqa: B018 - Says what is wrong with a directory that has none.
        return self.directory.n_parts_done

    @property
    def name(self) -> str:
        """Of the sweep: that of its file, or where no file says it that of the directory."""
        path, source = self.directory.path.resolve(), Path(self.manifest["source"])
        return path.name if str(source) == MAP else source.stem

    @property
    def axes(self) -> list[str]:
        """Axes, those that change slowest first."""
        return [name for name, *_ in self.manifest["spec"]["axes"]]

    @cached_property
    def work_axes(self) -> list[str]:
        """Axes that change what is trained: times of different work do not compare."""
        spec = self.manifest["spec"]
        found = names_at(spec, WORK_KEYS)
        n_values = {name: len(values) for name, values, *_ in spec["axes"]}
        return [name for name in self.axes if name in found and n_values[name] > 1]

    @cached_property
    def columns(self) -> list[str]:
        """Columns of the results."""
        return list(self.manifest["schema"])

    def sql(self, query: str) -> Answer:
        """What a user's query over the table ``designs`` gives.

        It can read the parts and nothing else, and write nothing.

        Raises
        ------
        SpecError
            For one that DuckDB refuses or that does more than select, or a part that is broken.
        """
        import duckdb

        expected = "expected one SELECT over the table designs"
        if not is_unicode(query):
            raise SpecError(Fault("got bytes that are not UTF-8", expected, "", "", Place("--sql")))
        try:
            kinds = [one.type for one in duckdb.extract_statements(query)]
            if kinds == [duckdb.StatementType.SELECT]:
                return self._answer(query)
            got = f"got {', '.join(kind.name for kind in kinds) or 'nothing'}"
        except duckdb.Error as error:
            got = error_text(error)
        raise SpecError(Fault(got, expected, "", "", Place("--sql")))

    def _own(self, query: str) -> Answer:
        """What a query of this program gives: what is wrong with it is wrong with the files."""
        import duckdb

        try:
            return self._answer(query)
        except duckdb.Error as error:
            fix = "look for a part that is broken, remove it, and run the sweep again"
            raise SpecError(Fault(error_text(error), "", fix, "", self.directory.place)) from None

    def _answer(self, query: str) -> Answer:
        found = self._connection.execute(query)
        columns = tuple(column[0] for column in found.description or ())
        return Answer(columns, tuple(map(tuple, found.fetchall())))

    @cached_property
    def _connection(self) -> Any:
        # DuckDB reads damaged numbers without a word.
        self.directory.refuse_damaged(Layout.of(self.manifest))
        folder = self.directory.path.resolve()
        if not self.where:
            return connection_to(folder, self.kept)
        try:
            return filtered_connection(folder, self.where, self.manifest["schema"], self.kept)
        except SpecError as error:
            fix = whole_text_fix(self.where, self.manifest["spec"]["axes"])
            raise SpecError(*(replace(x, fix=fix or x.fix) for x in error.faults)) from None

    @cached_property
    def time_column(self) -> str:
        """What ranks designs: seconds per sequence where all designs know it (C6)."""
        prefix, place = _TIMES.get(self.by, ("", None))
        step_time, per_sequence = f"{prefix}step_time_s", f"{prefix}seconds_per_sequence"
        if per_sequence in self.columns:
            known = f"bool_and({per_sequence} IS NOT NULL)"
            if self._own(f"SELECT {known} FROM designs WHERE {self.ranked}").rows[0][0]:
                return per_sequence
        return self.need(step_time, place)

    @cached_property
    def step_time_column(self) -> str:
        """The time of whole steps beside what ranks designs, where there is one."""
        found = self.time_column.replace("seconds_per_sequence", "step_time_s")
        return found if found in self.columns else self.time_column

    @cached_property
    def told_time(self) -> str:
        """As :func:`told_time` has it."""
        return told_time(self)

    @property
    def cost_column(self) -> str:
        """What designs cost: the network by the plan's prices, or the bill."""
        return "bill_usd" if self.by != BY[0] and self.n_billed else "cost_usd"

    @property
    def plan_cost(self) -> str:
        """What ``cost_usd`` is the price of, in words: by the plan's linear prices, or its bill."""
        spec = self.manifest["spec"]
        named = {*spec["base"], *(key[0] for key, *_ in spec["slots"] if key)}
        is_linear = spec["base"].get("prices", "linear") == "linear"
        return "network cost" if is_linear and "fixed_cost" not in named else "system cost"

    @property
    def cost_name(self) -> str:
        """What designs cost, in words: ``bill``, ``network cost``, or ``system cost``."""
        return "bill" if self.cost_column == "bill_usd" else self.plan_cost

    @cached_property
    def n_billed(self) -> int:
        """Designs that have a bill, of what they ask for, and the time on what it buys."""
        has_bills = {"bill_usd", "billed_step_time_s"} <= {*self.columns}
        return self._count(f"CASE WHEN {self._is_sold} THEN bill_usd END") if has_bills else 0

    @property
    def n_unsold(self) -> int:
        """Designs without a rank, as nobody sells their servers."""
        return len(self.over_server) if self._is_sold != "true" else 0

    @cached_property
    def _is_sold(self) -> str:
        """Whether somebody sells the servers of a design, in SQL; all count where none is sold."""
        known, sold = cols.OVER_SERVER in self.columns, f"NOT ({flaws.over_server(self.columns)})"
        return sold if known and self._count(f"CASE WHEN {sold} THEN bill_usd END") else "true"

    @cached_property
    def over_rule(self) -> frozenset[int]:
        """Rows whose bill is more than their rules on cost allow."""
        return self._rows_that(flaws.breaks_rule(self.columns))

    @cached_property
    def over_server(self) -> frozenset[int]:
        """Rows that ask for more links in a server than the priced one has."""
        return self._rows_that(flaws.over_server(self.columns))

    @cached_property
    def unbilled(self) -> frozenset[int]:
        """Rows with an optimum and without a bill, in a sweep that has bills."""
        return self._rows_that(flaws.unbilled(self.columns))

    def _rows_that(self, holds: str) -> frozenset[int]:
        found = self._own(f"SELECT row FROM designs WHERE {holds}")
        return frozenset(row for (row,) in found.rows)

    @cached_property
    def n_checked(self) -> int:
        """Optima with a time on their links, and a bill where the sweep has bills."""
        if cols.EFFECTIVE not in self.columns:
            return 0
        return self._count(f"CASE WHEN {replace(self, by=_EFFECTIVE).ranked} THEN 1 END")

    @property
    def ranked(self) -> str:
        """Which designs have a rank, in SQL."""
        if self.by == "ideal":
            return _OPTIMAL
        needed = self.need("bill_usd" if self.by == _BILL else cols.EFFECTIVE, "--by")
        billed = f" AND {self.cost_column} IS NOT NULL AND {self._is_sold}" if self.n_billed else ""
        return f"{_OPTIMAL} AND {needed} IS NOT NULL{billed}"

    @cached_property
    def n_rows(self) -> int:
        """Designs that are there."""
        return self._count("*")

    @cached_property
    def statuses(self) -> str:
        """How many designs have each status, in words: ``2 invalid, 10 optimal``."""
        query = "SELECT status, count(*) FROM designs GROUP BY status ORDER BY status"
        return ", ".join(f"{n:,} {status}" for status, n in self._own(query).rows)

    @cached_property
    def n_unchecked(self) -> int:
        """Optima whose links could not be checked."""
        return self._count(f"CASE WHEN {_OPTIMAL} THEN check_message END")

    def _count(self, what: str) -> int:
        return int(self._own(f"SELECT count({what}) FROM designs").rows[0][0])

    def need(self, column: str, place: str | None = None) -> str:
        """The column, if the results have it.

        Raises
        ------
        SpecError
            If they do not.
        """
        if column in self.columns:
            return column
        fix, known = closest(column, self.columns), cols.column_named(column)
        if known.kept == cols.CHECKED:
            fix = "write check: {policy: ecmp} in the sweep, and run it into a new directory"
        elif known.key in cols.FIGURES:
            key = "bill_usd" if known.kept == cols.BILLED else known.key
            fix = f"write columns: [..., {key}] in the sweep, and run it into a new directory"
        where = Place(place) if place else self.directory.place
        got = f"got no column {column!r}"
        raise SpecError(Fault(got, "expected one of the results", fix, "", where))

    def top(self, n: int) -> Answer:
        """The best designs of each work and objective; of equals the cheaper one."""
        return self._best(self._shown(), [*self._works, cols.OBJECTIVE], self._rank(), n)

    def distinct_top(self, n: int) -> Answer:
        """The same; of rows that only :attr:`idle_axes` tell apart the first one."""
        return first_of_alike(self, n, self.top)

    @cached_property
    def idle_axes(self) -> list[str]:
        """Axes that change neither time nor cost of any design."""
        return idle_axes(self)

    @property
    def _works(self) -> list[str]:
        """Axes that change what is trained, in SQL: designs compete within their values."""
        return [*map(sql_name, self.work_axes)]

    def near_best(self) -> Answer:
        """Designs within :data:`NEAR` of the best of their objective and work, it included.

        Columns are the objective, the axes that change what is trained, the number of designs and
        the first three of them.
        """
        keys = ", ".join([cols.OBJECTIVE, *self._works])
        ranks = f"SELECT {keys}, row, {self._rank()} AS rank_ FROM designs WHERE {self.ranked}"
        best = f"SELECT *, min(rank_) OVER (PARTITION BY {keys}) AS best_ FROM ({ranks})"
        return self._own(
            f"SELECT {keys}, count(*) AS n_rows, list(row ORDER BY row)[:3] AS rows_ "
            f"FROM ({best}) WHERE rank_ <= best_ * (1 + {NEAR}) GROUP BY {keys} ORDER BY {keys}"
        )

    def cheapest_within(self, fraction: float) -> Answer:
        """The cheapest design of those at most so much slower than the fastest of their work.

        Columns are the axes of work, the row, its step time, cost, the values of other axes and
        the time that ranks it.
        """
        time, cost = self.time_column, self.need(self.cost_column)
        axes = [name for name in self.axes if name not in (*self.work_axes, cols.OBJECTIVE)]
        keys = self._works
        shown = ", ".join(
            [*keys, cols.ROW, self.step_time_column, cost, *map(sql_name, axes), time]
        )
        like = f"PARTITION BY {', '.join(keys) or '0'}"
        all_times = f"SELECT *, min({time}) OVER ({like}) AS best_ FROM designs WHERE {self.ranked}"
        near = f"SELECT row FROM ({all_times}) WHERE {time} <= best_ * (1 + {fraction})"
        equal = (time, *flaws.preferred(self.columns))
        ranks = places.ranks(keys or ["0"], cost, equal, f"row IN ({near})")
        return self._own(
            f"SELECT {shown} FROM designs JOIN ({ranks}) ON row = ranked_row_ "
            f"WHERE ranked_place_ = 1 ORDER BY {', '.join(keys) or '1'}"
        )

    def fastest(self, names: Sequence[str], wanted: Sequence[str]) -> Answer:
        """Columns of the fastest design at each combination of values of others."""
        keys = [sql_name(name) for name in names]
        return self._best(", ".join([*keys, *map(sql_name, wanted)]), keys, self.time_column, 1)

    def _best(self, shown: str, among: Sequence[str], rank: str, n: int) -> Answer:
        """The first n designs of each combination of some values."""
        return self._own(
            f"SELECT {shown} FROM designs JOIN ({self._ranks(among, rank)}) ON row = ranked_row_ "
            f"WHERE ranked_place_ <= {n} ORDER BY {', '.join(among)}, ranked_place_"
        )

    def _ranks(self, among: Sequence[str], rank: str) -> str:
        """As :func:`places.ranks` has it."""
        cost = self.cost_column if self.cost_column in self.columns else "NULL"
        then = f"CASE objective WHEN 'cost' THEN {self.time_column} ELSE {cost} END"
        return places.ranks(among, rank, (then, *flaws.preferred(self.columns)), self.ranked)

    def pareto(self) -> Answer:
        """Designs that no other one of their work beats in time and cost, fastest first."""
        time, _ = self.time_column, self.need(self.cost_column)
        rows = [row for one in self._frontiers for row in one.row[one.best].tolist()]
        return self._rows(rows, f"{time}, row")

    def best_of_frontier(self) -> Answer:
        """Of :meth:`pareto` the fastest, the cheapest and those of the least time times cost."""
        return self._rows(places.best_rows(self._frontiers), f"{self.time_column}, row")

    def pareto_with_fim(self) -> Answer:
        """Designs that no other one of their work beats in time, cost and FIM, fastest first.

        A design in which no flow crosses switches has no FIM: it has to be unbeaten in time and
        cost, and beats others as one of FIM 0. Designs whose links could not be checked have no
        place.
        """
        fim = self.need("fim_percent", "--fim")
        time, cost = self.time_column, self.need(self.cost_column)
        checked = f"{self.ranked} AND effective_step_time_s IS NOT NULL"
        order = f"{time}, {cost}, coalesce({fim}, 0), row"
        return self._rows(self._frontier_rows([time, cost, fim], checked), order)

    def _rows(self, kept: Sequence[int], order: str) -> Answer:
        """What people want to see of some designs, in an order within their work."""
        among = f"row IN ({', '.join(map(str, kept))})" if kept else "false"
        by = ", ".join([*self._works, order])
        return self._own(f"SELECT {self._shown()} FROM designs WHERE {among} ORDER BY {by}")

    def grouped(self, axis: str | Sequence[str]) -> Answer:
        """Number of designs and the best one for each value of an axis, work and objective.

        With the values of other axes of the best one, its time, what it costs, its work per dollar
        where tokens/s are known, by how much its bill breaks its rule, the least cost of any design
        that has a rank, and the rows of the fastest, the cheapest and the best per dollar; of the
        best per dollar what is told of the best one, too.

        Parameters
        ----------
        axis : a column, or several, whose every combination of values is a group.
        """
        axes = [axis] if isinstance(axis, str) else axis
        own = (sql_name(self.need(one, "--group-by")) for one in axes)
        keys = list(dict.fromkeys([*self._works, *own, cols.OBJECTIVE]))
        ranked = self._ranks(keys, self._rank())
        others = [x for x in self.axes if sql_name(x) not in keys and x != cols.OBJECTIVE]
        time, cost, least = self.time_column, self.cost_column, ""
        told = {x: sql_name(x) for x in (*others, self.step_time_column, time)}
        if cost in self.columns:
            told |= {x: x for x in (cost, cols.OVER_RULE) if x in self.columns}
            told |= {cols.PER_DOLLAR: self._per_dollar} if self._per_dollar else {}
            least = f", min({cost}) FILTER (WHERE ranked_row_ IS NOT NULL) AS least_{cost}"
        preferred, known = flaws.preferred(self.columns), cost if least else ""
        rows = places.first_rows(keys, (time, known), preferred, self.ranked, told)
        best = (
            f"any_value({own}) FILTER (WHERE ranked_place_ = 1) AS {sql_name(f'best_{x}')}"
            for x, own in {cols.ROW: cols.ROW, **told}.items()
        )
        return self._own(
            f"SELECT {', '.join(keys)}, count(*) AS n_designs, count(*) FILTER (WHERE {_OPTIMAL}) "
            f"AS n_optimal, {', '.join(best)}{least}{rows} FROM designs LEFT JOIN ({ranked}) "
            f"ON row = ranked_row_ GROUP BY {', '.join(keys)} ORDER BY {', '.join(keys)}"
        )

    @property
    def _per_dollar(self) -> str:
        """Tokens/s per million USD by what ranks designs, in SQL; empty where nobody knows it."""
        time = self.step_time_column
        if not {"tokens_per_s", "step_time_s", time} <= {*self.columns}:
            return ""
        return f"1e6 * tokens_per_s * step_time_s / ({time} * nullif({self.cost_column}, 0))"

    def listed(
        self,
        columns: Sequence[str] = (),
        sort: Sequence[str] = (),
        *,
        among: Answer | None = None,
    ) -> Answer:
        """Designs as they are asked for.

        Parameters
        ----------
        columns : names; without any what people want to see of a design.
        sort : names of columns to order by, smallest first, or ``NAME desc``; designs without a
            value come last.
        among : an answer with the rows that are listed, in its order where ``sort`` says none.

        Raises
        ------
        SpecError
            For a name that the results do not have.
        """
        shown = [sql_name(self.need(name, "--columns")) for name in columns]
        order = [self._ordered(text) for text in sort]
        places = {row["row"]: i for i, row in enumerate(among.dicts())} if among else {}
        which = "true" if among is None else f"row IN ({', '.join(map(str, places)) or 'NULL'})"
        what = ", ".join(shown) or self._usual()
        query = f"SELECT {what}, row AS row_ FROM designs WHERE {which}"
        found = self._own(f"{query} ORDER BY {', '.join([*order, 'row'])}")
        rows = list(found.rows)
        if not order and among is not None:
            rows.sort(key=lambda row: places[row[-1]])
        return Answer(found.columns[:-1], tuple(row[:-1] for row in rows))

    def _ordered(self, text: str) -> str:
        """A column to order by, in SQL."""
        name, _, way = text.strip().partition(" ")
        if way.strip() not in ("", "asc", "desc"):
            words = "expected NAME, or NAME desc for the largest first"
            raise SpecError(Fault(f"got {text!r}", words, "", "", Place("--sort")))
        return f"{sql_name(self.need(name, '--sort'))} {way.strip() or 'asc'} NULLS LAST"

    def _usual(self) -> str:
        """What people want to see of designs, and why some have no optimum."""
        n_optimal = self._count(f"CASE WHEN {_OPTIMAL} THEN 1 END")
        more = [cols.STATUS, cols.MESSAGE] if n_optimal < self.n_rows else []
        return ", ".join([self._shown(), *(name for name in more if name in self.columns)])

    def everything(self) -> Answer:
        """All rows and columns."""
        return self._own("SELECT * FROM designs ORDER BY row")

    def designs(self, most: int) -> Answer:
        """What people want to see of every design, and why some have no optimum.

        Parameters
        ----------
        most : of more designs about so many, evenly spread, and the frontier of each work. Of a
            frontier of more than a tenth of them those that :func:`frontiers.thinned` keeps.
        """
        n, shown, which = self.n_rows, self._usual(), "true"
        if n > most:
            # Multiples of one number would be of few values of the axes.
            spread = f"row * {_SPREAD} % {2**32} < {2**32 * most // n}"
            which = places.sampled(self._frontiers, most // 10, spread, self._own)
        return self._own(f"SELECT {shown} FROM designs WHERE {which} ORDER BY row")

    @cached_property
    def _frontiers(self) -> list[places.Placed]:
        """The designs of each work with their place on its frontier of time and cost."""
        cost = self.cost_column if self.cost_column in self.columns else "0.0"
        return self._placed([self.time_column, cost], self.ranked)

    @cached_property
    def n_on_frontier(self) -> int:
        """Designs that no other one of their work beats in time and cost."""
        return sum(len(one.best) for one in self._frontiers)

    def _placed(self, figures: Sequence[str], which: str) -> list[places.Placed]:
        """As :func:`places.placed` has it, within each work."""
        like, equal = ", ".join(self._works) or "0", flaws.preferred(self.columns)
        return places.placed(self._connection, figures, which, like=like, equal=equal)

    def _frontier_rows(self, figures: Sequence[str], which: str) -> list[int]:
        """Designs that no other one of their work beats; parameters as of :func:`places.placed`."""
        found = self._placed(figures, which)
        return [row for one in found for row in one.row[one.best].tolist()]

    def _rank(self) -> str:
        """What the smallest is the best of, by objective."""
        cost = self.cost_column
        return places.rank(self.time_column, cost if cost in self.columns else "")

    def _shown(self) -> str:
        """Columns that people want to see of a design."""
        axes = [name for name in self.axes if name != cols.OBJECTIVE]
        others = [name for name in self.columns if name not in axes]
        names = [cols.ROW, *axes, cols.OBJECTIVE, *cols.shown_first(others, self._known)]
        return ", ".join(map(sql_name, names))

    @cached_property
    def _known(self) -> list[str]:
        """Columns of which some are shown only where any design has a value, and has one."""
        names = [name for name in self.columns if cols.column_named(name).shown == cols.WHERE_KNOWN]
        if not names:
            return []
        counts = ", ".join(f"count({sql_name(name)})" for name in names)
        (found,) = self._own(f"SELECT {counts} FROM designs").rows
        return [name for name, n in zip(names, found, strict=True) if n]


_OPTIMAL = flaws.OPTIMAL
_SPREAD = 2654435761
"""2**32 over the golden ratio: its multiples modulo 2**32 are spread evenly."""
