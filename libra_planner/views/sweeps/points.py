"""Designs of a sweep as points: which axes vary, short names, the frontier and the best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import SpecError
from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import OVER_RULE, OVER_SERVER, ROW, Column, on_screen
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.figures.flaws import CENT_USD
from libra_planner.sweeps.figures.frontiers import (
    BREAKS_RULE,
    NOT_BOUGHT,
    preference,
    unbeaten_in_two,
)
from libra_planner.sweeps.figures.nearness import far_designs
from libra_planner.sweeps.results import BY, SAME, Results
from libra_planner.views.sweeps.answers import group_answers
from libra_planner.views.sweeps.values import (
    axis_units,
    cut_apart,
    degree_words,
    in_order,
    is_number,
    n_digits,
    plain,
    tier_names,
)

MOST_POINTS = 20_000
"""Designs of a page or a figure."""
_LONGEST = 32
"""Letters of a value in a name before it is cut."""
_LONGEST_MAP = 48
"""Letters of a map of degrees in words before it is cut."""
_LONGEST_LABEL = 32
_MOST_GROUPS = 12
"""Values of an axis up to which each is a group of designs by itself."""
MOST_LABELS = 24
"""Labels of a picture; of a longer frontier evenly spaced designs have them."""
MANY_TIMES = 30
"""The largest over the smallest figure from which on a scale is logarithmic."""
MOST_RIMS = 150
"""Designs of a frontier up to which each has a rim: rims of more would hide the colours."""


@dataclass(frozen=True)
class Points:
    """Designs that a page or a figure shows.

    Parameters
    ----------
    rows : by the names of their columns.
    axes : of the sweep, those whose values differ among the rows.
    apart : those of them that change what is trained.
    time, cost : columns of the figures that designs are compared by; empty without one.
    is_sample : whether there are designs that stand in no row.
    is_mixed : whether rows do not tell what is trained: no best one, then.
    units : of axes, where the plan tells.
    plan_cost, cost_name : what ``cost_usd`` and the cost are, as ``Results`` has them.
    tiers : names of the dimensions; empty where the plans have none, or different ones.
    is_whole : whether a picture draws all designs, those far from the frontier, too.
    over_rule, over_server, unbilled : numbers of rows whose bill breaks a rule on cost, of those
        that ask for servers that nobody prices, and of those without a bill: for rows whose columns
        do not tell it.
    """

    rows: tuple[Mapping[str, Any], ...]
    axes: tuple[str, ...]
    apart: tuple[str, ...]
    time: str
    cost: str
    is_sample: bool = False
    is_mixed: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    plan_cost: str = "network cost"
    cost_name: str = "network cost"
    tiers: tuple[str, ...] = ()
    is_whole: bool = False
    over_rule: frozenset[int] = frozenset()
    over_server: frozenset[int] = frozenset()
    unbilled: frozenset[int] = frozenset()

    @classmethod
    def of(cls, results: Results, answer: Answer | None = None) -> Points:
        """The rows of an answer of a sweep, or all its designs; of very many evenly spread ones."""
        apart = results.work_axes
        shown = results.designs(MOST_POINTS) if answer is None else next(group_answers(answer))[1]
        names = shown.columns
        rows = tuple(dict(zip(names, map(plain, row), strict=True)) for row in shown.rows)
        axes = (name for name in results.axes if name in names)
        varied = tuple(name for name in axes if len({row[name] for row in rows}) > 1)
        results = _of_columns(results, names)
        figures = (results.time_column, results.cost_column)
        time, cost = (next((x for x in (one, f"best_{one}") if x in names), "") for one in figures)
        is_mixed = not {*apart} <= {*names}
        time = time if is_mixed else _familiar(time, results, names)
        is_sample = answer is None and len(rows) < results.n_rows
        work, units = tuple(x for x in apart if x in varied), axis_units(results)
        named = results.plan_cost, results.cost_name, tuple(tier_names(results))
        found = cls(rows, varied, work, time, cost, is_sample, is_mixed, units, *named)
        return replace(
            found,
            over_rule=results.over_rule,
            over_server=results.over_server,
            unbilled=results.unbilled,
        )

    @property
    def works(self) -> list[dict[str, Any]]:
        """The values of the axes that change what is trained, each combination once."""
        keys = dict.fromkeys(tuple(row[name] for name in self.apart) for row in self.rows)
        return [dict(zip(self.apart, key, strict=True)) for key in keys]

    @property
    def ranked_works(self) -> list[dict[str, Any]]:
        """Those of them that have a frontier, in the order of the rows."""
        return [dict(zip(self.apart, key, strict=True)) for key in self.fronts]

    def of_work(self, work: Mapping[str, Any]) -> Points:
        """The designs of one work, without the axes that tell it from others."""
        own = (row for row in self.rows if all(row[name] == x for name, x in work.items()))
        axes = tuple(name for name in self.axes if name not in work)
        apart = tuple(name for name in self.apart if name not in work)
        return replace(self, rows=tuple(own), axes=axes, apart=apart)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns of the rows, in the order of the screen."""
        names = list(self.rows[0]) if self.rows else []
        return {one.name: one for one in on_screen(names, self.axes, self.plan_cost)}

    def name(self, i: int, *, without: Sequence[str] = ()) -> str:
        """A design by the values of its axes, or by its row where nothing varies."""
        idle = self._idle(i)
        told = (axis for axis in self.told if axis not in without and axis not in idle)
        values = [f"{visible(axis)} {self.value(i, axis)}" for axis in told]
        return ", ".join(values) or self._number(i)

    def _idle(self, i: int) -> list[str]:
        """Axes of a design that make no difference: at each of their values it is as good."""
        kept = list(self.told)
        for axis in self.told:
            others = [one for one in kept if one != axis]
            own = [self.rows[i][one] for one in others]
            alike = [j for j, row in enumerate(self.rows) if [row[x] for x in others] == own]
            values = {self.rows[j][axis] for j in alike}
            is_whole = len(values) == len({row[axis] for row in self.rows})
            flaws = {self._flaw(j) for j in alike}
            if is_whole and len(flaws) == 1 and all(self._are_equal(j, i) for j in alike):
                kept = others
        return [axis for axis in self.told if axis not in kept]

    def _are_equal(self, i: int, j: int) -> bool:
        """Whether rounding alone tells two rows apart."""
        one, other = self.rows[i], self.rows[j]
        pairs = [(one[name], other[name]) for name in (self.time, self.cost) if name]
        return bool(pairs) and all(
            is_number(a) and is_number(b) and abs(a - b) <= SAME * abs(b) for a, b in pairs
        )

    def _number(self, i: int) -> str:
        row = self.row(i)
        return f"row {i if row is None else row}"

    def row(self, i: int) -> int | None:
        """The number of a design, or of the best one of a group, where the answer has it."""
        own = self.rows[i]
        found: int | None = own.get(ROW, own.get(f"best_{ROW}"))
        return found

    @cached_property
    def told(self) -> list[str]:
        """The axes that tell designs apart, in the order of the sweep."""
        independent = self.independent()
        return [axis for axis in self.axes if axis in independent]

    @property
    def has_optimum(self) -> bool:
        """Whether any row has a time."""
        return bool(self.time) and any(is_number(row[self.time]) for row in self.rows)

    @cached_property
    def labels(self) -> dict[int, str]:
        """Labels of the designs of the frontiers, those first that a reader looks for.

        They are axes with their values, where that is long the values, or the rows.
        """
        places = self._sought()
        differ = [axis for axis in self.told if axis not in self._common()]
        for form in ("{axis} {value}", "{value}"):
            names = {
                i: ", ".join(form.format(axis=visible(x), value=self.value(i, x)) for x in differ)
                for i in places
            }
            if differ and max(map(len, names.values()), default=0) <= _LONGEST_LABEL:
                return names
        return {i: self._number(i) for i in places}

    @property
    def labels_say(self) -> str:
        """What labels are, and what they leave out as it is the same on the whole frontier."""
        if not self.labels:
            return ""
        first, label = next(iter(self.labels.items()))
        common = self._common()
        is_number = label == self._number(first)
        differ = [visible(axis) for axis in self.told if axis not in common]
        is_named = is_number or any(label.startswith(f"{axis} ") for axis in differ)
        said = [] if is_named else [f"labels: {', '.join(differ)}"]
        same = [f"{visible(axis)} {self.value(first, axis)}" for axis in common]
        if same and not is_number:
            said.append(f"on all of the frontier: {', '.join(same)}")
        return "; ".join(said)

    def _common(self) -> list[str]:
        """The axes that have one value on the frontiers, of several designs."""
        front = [i for one in self.fronts.values() for i in one]
        if len(front) < 2:
            return []
        return [axis for axis in self.told if len({self.rows[i][axis] for i in front}) == 1]

    def value(self, i: int, axis: str) -> str:
        """A value of an axis for people, not too long."""
        value = self.rows[i][axis]
        is_number = isinstance(value, float)
        text = f"{value:.{self._n_digits[axis]}g}" if is_number else self.columns[axis].cell(value)
        return self._short[axis].get(visible(text), visible(text))

    @cached_property
    def _short(self) -> dict[str, dict[str, str]]:
        """Long values of axes in few letters."""
        found = {}
        for axis in self.axes:
            values = {row[axis] for row in self.rows if isinstance(row[axis], str)}
            texts = [visible(self.columns[axis].cell(value)) for value in in_order(values)]
            words = [degree_words(text) for text in texts]
            most = _LONGEST if words == texts else _LONGEST_MAP
            found[axis] = dict(zip(texts, cut_apart(words, most), strict=True))
        return found

    @cached_property
    def _n_digits(self) -> dict[str, int]:
        return {axis: n_digits({row[axis] for row in self.rows}) for axis in self.axes}

    def shown(self, i: int, column: str) -> str:
        """A figure for people."""
        return self.columns[column].cell(self.rows[i][column])

    def breaks_rule(self, i: int) -> bool:
        """Whether the bill of a design is more than its rules on cost allow."""
        row = self.rows[i]
        return (row.get(OVER_RULE) or 0.0) > CENT_USD or self.row(i) in self.over_rule

    def is_unsold(self, i: int) -> bool:
        """Whether a design asks for a server that nobody prices: its bill is of a smaller one."""
        row = self.rows[i]
        return bool(row.get(OVER_SERVER)) or self.row(i) in self.over_server

    def is_unbilled(self, i: int) -> bool:
        """Whether a design has no bill in a sweep that has bills: nobody can build or price it."""
        return self.row(i) in self.unbilled

    def _flaw(self, i: int) -> int:
        """What is wrong with a design, as ``frontiers.preference`` has it."""
        not_bought = self.is_unbilled(i) or self.is_unsold(i)
        return BREAKS_RULE * self.breaks_rule(i) + NOT_BOUGHT * not_bought

    @cached_property
    def unsold(self) -> frozenset[int]:
        """Such designs among others that are sold: their bills have no rank."""
        if self.cost != "bill_usd":
            return frozenset()
        billed = [i for i, row in enumerate(self.rows) if row[self.cost] is not None]
        found = frozenset(filter(self.is_unsold, range(len(self.rows))))
        return frozenset() if found.issuperset(billed) else found

    @cached_property
    def fronts(self) -> dict[tuple[Any, ...], list[int]]:
        """The designs that no other one beats in time and cost, fastest first, of each work."""
        return {work: self._front(places) for work, places in self._ranked.items()}

    @cached_property
    def _ranked(self) -> dict[tuple[Any, ...], list[int]]:
        """The designs that have the figures of a frontier, of each work."""
        if not self.time or self.is_mixed:
            return {}
        found: dict[tuple[Any, ...], list[int]] = {}
        for i, row in enumerate(self.rows):
            names = [name for name in (self.time, self.cost) if name and i not in self.unsold]
            if names and all(is_number(row[name]) for name in names):
                found.setdefault(tuple(row[name] for name in self.apart), []).append(i)
        return found

    @cached_property
    def far(self) -> frozenset[int]:
        """Designs that would squeeze the frontier of a picture: a picture leaves them out."""
        found: set[int] = set()
        for work, front in self.fronts.items() if self.cost and not self.is_whole else ():
            places = self._ranked[work]
            figures = [(self.rows[i][self.time], self.rows[i][self.cost]) for i in places]
            on_front = {*front}
            ends = [k for k, i in enumerate(places) if i in on_front]
            axes = [[self.rows[i][axis] for i in places] for axis in self.axes]
            found |= {places[k] for k in far_designs(figures, ends, axes)}
        return frozenset(found)

    @property
    def far_words(self) -> str:
        """What a picture leaves out; empty where that is nothing."""
        if not self.far:
            return ""
        ends = []
        for name in (self.time, self.cost):
            last = max(self.far, key=lambda i: self.rows[i][name])
            if self.rows[last][name] > max(self.rows[i][name] for i in self.near):
                ends.append(self.shown(last, name))
        n = sum(map(len, self._ranked.values()))
        lie, their = ("lies", "its") if len(self.far) == 1 else ("lie", "their")
        beyond = f"{len(self.far):,} of {n:,} designs {lie} beyond the picture"
        if ends:
            return f"{beyond}, up to {' and '.join(ends)}"
        return f"{beyond}, far from the frontier of {their} work"

    @cached_property
    def near(self) -> list[int]:
        """The designs that a picture draws at first."""
        names = [name for name in (self.time, self.cost) if name]
        return [
            i
            for i, row in enumerate(self.rows)
            if i not in self.far and all(is_number(row[name]) for name in names)
        ]

    def _front(self, places: list[int]) -> list[int]:
        time = np.array([self.rows[i][self.time] for i in places], dtype=np.float64)
        cost = np.array([self.rows[i][self.cost] if self.cost else 0.0 for i in places], np.float64)
        return [places[i] for i in unbeaten_in_two(time, cost, self._order[places])]

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Which of equal designs is named, as all views of a sweep have it."""
        flaws = np.array([self._flaw(i) for i in range(len(self.rows))], dtype=np.intp)
        bills = (row.get("bill_usd") for row in self.rows)
        usd = np.array([math.inf if one is None else one for one in bills], dtype=np.float64)
        numbers = [row.get(ROW, i) for i, row in enumerate(self.rows)]
        return preference(flaws, usd, np.array(numbers, dtype=np.int64))

    def per_dollar(self, front: Sequence[int]) -> int:
        """The design of a frontier with the least product of time and cost."""
        products = [self.rows[i][self.time] * self.rows[i][self.cost] for i in front]
        least = min(products) * (1 + SAME)
        tied = (i for i, product in zip(front, products, strict=True) if product <= least)
        return min(tied, key=lambda i: (self.rows[i][self.cost], self._order[i]))

    def roles(self, front: Sequence[int]) -> dict[int, list[str]]:
        """The designs of a frontier that people look for, and what each is the best in."""
        found = {front[0]: ["fastest"]}
        if self.cost:
            found.setdefault(self.per_dollar(front), []).append("best per dollar")
            found.setdefault(front[-1], []).append("cheapest")
        return found

    def _sought(self) -> list[int]:
        fronts = self.fronts.values()
        best = [self.per_dollar(front) for front in fronts] if self.cost else []
        ends = [i for front in fronts for i in (front[0], front[-1])]
        every = [i for front in fronts for i in front]
        spread = every[:: -(-len(every) // MOST_LABELS)] if every else []
        return list(dict.fromkeys([*best, *ends, *spread, *every]))

    def independent(self) -> list[str]:
        """The axes without those whose value another one tells."""
        n = {axis: len({row[axis] for row in self.rows}) for axis in self.axes}
        kept = list(self.axes)
        for axis in reversed(self.axes):
            others = (one for one in kept if one != axis and 2 * n[one] <= len(self.rows))
            if any(len({(row[one], row[axis]) for row in self.rows}) == n[one] for one in others):
                kept.remove(axis)
        return kept

    def ways(
        self, room: Mapping[str, float], *, without: Sequence[str] = ()
    ) -> tuple[dict[str, str], list[str]]:
        """How a picture shows axes, and the axes that find no place.

        Axes that move the time more go first, then those that move the cost.

        Parameters
        ----------
        room : ways, the plainest first, to the number of values that each tells apart.
        without : axes that are shown already.
        """
        told = (axis for axis in self.independent() if axis not in without)
        values = {x: {self.rows[i][x] for i in self.near} for x in told}
        n = {axis: len(found) for axis, found in values.items() if len(found) > 1}
        ranked = sorted(n, key=lambda x: (not self._moves(x), -self._share(x), -n[x]))
        found: dict[str, str] = {}
        for axis in ranked:
            kept = [*found, axis]
            fits = (
                dict(zip(kept, ways, strict=True))
                for ways in permutations(room, len(kept))
                if all(n[one] <= room[way] for one, way in zip(kept, ways, strict=True))
            )
            found = next(fits, found)
        return found, [axis for axis in ranked if axis not in found]

    def _share(self, axis: str) -> float:
        """How much of the variance of times (in logarithm) an axis tells, in a picture."""
        if not self.time:
            return 0.0
        drawn = [i for i in self.near if (self.rows[i][self.time] or 0) > 0]
        values = in_order({self.rows[i][axis] for i in drawn})
        group = {value: k * _MOST_GROUPS // len(values) for k, value in enumerate(values)}
        of = np.array([group[self.rows[i][axis]] for i in drawn], dtype=np.int64)
        time = np.log([self.rows[i][self.time] for i in drawn])
        time -= self._means(time, drawn)
        n = np.maximum(np.bincount(of, minlength=_MOST_GROUPS), 1)
        means = np.bincount(of, time, minlength=_MOST_GROUPS) / n
        return float(np.var(means[of])) if drawn else 0.0

    def _means(self, values: Any, places: Sequence[int]) -> Any:
        """The mean of values of designs over all of the same work, one for each of them."""
        numbers: dict[tuple[Any, ...], int] = {}
        works = (tuple(self.rows[i][axis] for axis in self.apart) for i in places)
        of = np.array([numbers.setdefault(work, len(numbers)) for work in works], dtype=np.int64)
        return (np.bincount(of, values) / np.bincount(of))[of]

    def _moves(self, axis: str) -> bool:
        """Whether any two rows that differ in this axis alone differ in time or cost."""
        others = [one for one in self.axes if one != axis]
        first: dict[tuple[Any, ...], int] = {}
        pairs = (
            (first.setdefault(tuple(row[x] for x in others), i), i)
            for i, row in enumerate(self.rows)
        )
        return any(one != i and not self._are_equal(i, one) for one, i in pairs)


def _of_columns(results: Results, names: Sequence[str]) -> Results:
    """The results by what the columns of an answer can tell, where they lack what ranks them."""
    others = [replace(results, by=by) for by in reversed(BY)]
    known = {name.removeprefix("best_") for name in names}
    return next((x for x in (results, *others) if {*_figures_of(x)} <= known), results)


def _figures_of(results: Results) -> Iterator[str]:
    """The columns of time and cost by which results rank; nothing known where they lack them."""
    try:
        yield from (results.time_column, results.cost_column)
    except SpecError:
        yield ""


def _familiar(time: str, results: Results, names: Sequence[str]) -> str:
    """The time that people read in place of the one that ranks, where an answer has it."""
    told = (one for one in (results.told_time, f"best_{results.told_time}") if one in names)
    return next(told, time) if time else time
