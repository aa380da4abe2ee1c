"""Designs of a sweep as points: which axes vary, short names, the frontier and the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import ROW, Column, on_screen
from libra_planner.sweeps.results import SAME, Answer, Results, sql_name, unbeaten_in_two

MOST_POINTS = 20_000
"""Designs of a page or a figure."""
_LONGEST = 32
"""Letters of a value in a name before it is cut."""
_LONGEST_LABEL = 32
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
    """

    rows: tuple[Mapping[str, Any], ...]
    axes: tuple[str, ...]
    apart: tuple[str, ...]
    time: str
    cost: str
    is_sample: bool = False
    is_mixed: bool = False

    @classmethod
    def of(cls, results: Results, answer: Answer | None = None) -> Points:
        """The rows of an answer of a sweep, or all its designs; of very many evenly spread ones."""
        apart = results.work_axes
        shown = results.designs(MOST_POINTS, apart) if answer is None else answer
        names = shown.columns
        rows = tuple(dict(zip(names, map(_plain, row), strict=True)) for row in shown.rows)
        axes = (name for name in results.axes if name in names)
        varied = tuple(name for name in axes if len({row[name] for row in rows}) > 1)
        figures = (_familiar(results.time_column, rows), results.cost_column)
        time, cost = (next((x for x in (one, f"best_{one}") if x in names), "") for one in figures)
        is_mixed = any(name not in names for name in apart)
        is_sample = answer is None and len(rows) < results.n_rows
        work = tuple(name for name in apart if name in varied)
        return cls(rows, varied, work, time, cost, is_sample, is_mixed)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns of the rows, in the order of the screen."""
        names = list(self.rows[0]) if self.rows else []
        return {one.name: one for one in on_screen(names, self.axes)}

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
            alike = [row for row in self.rows if [row[one] for one in others] == own]
            is_whole = len({row[axis] for row in alike}) == len({row[axis] for row in self.rows})
            if is_whole and all(self._are_equal(row, self.rows[i]) for row in alike):
                kept = others
        return [axis for axis in self.told if axis not in kept]

    def _are_equal(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether rounding alone tells two rows apart."""
        pairs = [(one[name], other[name]) for name in (self.time, self.cost) if name]
        return bool(pairs) and all(
            _is_number(a) and _is_number(b) and abs(a - b) <= SAME * abs(b) for a, b in pairs
        )

    def _number(self, i: int) -> str:
        return f"row {self.rows[i].get(ROW, i)}"

    @cached_property
    def told(self) -> list[str]:
        """The axes that tell designs apart, in the order of the sweep."""
        independent = self.independent()
        return [axis for axis in self.axes if axis in independent]

    @property
    def has_optimum(self) -> bool:
        """Whether any row has a time."""
        return bool(self.time) and any(_is_number(row[self.time]) for row in self.rows)

    @cached_property
    def labels(self) -> dict[int, str]:
        """Labels of the designs of the frontiers, those first that a reader looks for.

        They are the values of the axes, or of all of them the rows where some values are long.
        """
        places = self._sought()
        names = {i: ", ".join(self.value(i, axis) for axis in self.told) for i in places}
        if not self.told or max(map(len, names.values()), default=0) > _LONGEST_LABEL:
            return {i: self._number(i) for i in places}
        return names

    @property
    def labels_say(self) -> str:
        """What labels are."""
        is_number = any(text.startswith("row ") for text in self.labels.values())
        return "row" if is_number else ", ".join(map(visible, self.told))

    def value(self, i: int, axis: str) -> str:
        """A value of an axis for people, not too long."""
        value = self.rows[i][axis]
        text = f"{value:.6g}" if isinstance(value, float) else self.columns[axis].cell(value)
        text = visible(text)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."

    def shown(self, i: int, column: str) -> str:
        """A figure for people."""
        return self.columns[column].cell(self.rows[i][column])

    @cached_property
    def fronts(self) -> dict[tuple[Any, ...], list[int]]:
        """The designs that no other one beats in time and cost, fastest first, of each work."""
        if not self.time or self.is_mixed:
            return {}
        found: dict[tuple[Any, ...], list[int]] = {}
        for i, row in enumerate(self.rows):
            if all(_is_number(row[name]) for name in (self.time, self.cost) if name):
                found.setdefault(tuple(row[name] for name in self.apart), []).append(i)
        return {work: self._front(places) for work, places in found.items()}

    def _front(self, places: list[int]) -> list[int]:
        time = np.array([self.rows[i][self.time] for i in places], dtype=np.float64)
        cost = np.zeros_like(time)
        if self.cost:
            cost = np.array([self.rows[i][self.cost] for i in places], dtype=np.float64)
        last = [self._last(i) for i in places]
        return [places[i] for i in unbeaten_in_two(time, cost, np.array(last))]

    def _last(self, i: int) -> float:
        """What decides between designs of equal bills and times."""
        return (self.rows[i].get("cost_usd") or 0.0) if self.cost == "bill_usd" else 0.0

    def per_dollar(self, front: Sequence[int]) -> int:
        """The design of a frontier with the least product of time and cost."""
        products = [self.rows[i][self.time] * self.rows[i][self.cost] for i in front]
        least = min(products) * (1 + SAME)
        tied = (i for i, product in zip(front, products, strict=True) if product <= least)
        return min(tied, key=lambda i: (self.rows[i][self.cost], self._last(i), i))

    def _sought(self) -> list[int]:
        fronts = self.fronts.values()
        best = [self.per_dollar(front) for front in fronts] if self.cost else []
        ends = [i for front in fronts for i in (front[0], front[-1])]
        every = [i for front in fronts for i in front]
        spread = every[:: -(-len(every) // MOST_LABELS)] if every else []
        return list(dict.fromkeys([*best, *ends, *spread, *every]))

    def independent(self) -> list[str]:
        """The axes without those whose value another one tells.

        Those first that move time or cost, then those of most values.
        """
        n = {axis: len({row[axis] for row in self.rows}) for axis in self.axes}
        kept = list(self.axes)
        for axis in reversed(self.axes):
            others = (one for one in kept if one != axis and 2 * n[one] <= len(self.rows))
            if any(len({(row[one], row[axis]) for row in self.rows}) == n[one] for one in others):
                kept.remove(axis)
        return sorted(kept, key=lambda axis: (not self._moves(axis), -n[axis]))

    def _moves(self, axis: str) -> bool:
        """Whether any two rows that differ in this axis alone differ in time or cost."""
        others = [one for one in self.axes if one != axis]
        first: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        pairs = ((first.setdefault(tuple(row[x] for x in others), row), row) for row in self.rows)
        return any(one is not row and not self._are_equal(row, one) for one, row in pairs)


def in_order(values: set[Any]) -> list[Any]:
    """Values of an axis from small to large, or by the alphabet.

    >>> in_order({"b", 10, 9, "a"})
    [9, 10, 'a', 'b']
    """
    return sorted(values, key=lambda x: (isinstance(x, str), x is None, x if x is not None else 0))


def _plain(value: Any) -> Any:
    """A value for JSON and for people."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) or value is None else visible(str(value))


def proportional(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether one figure is a multiple of another one; both may be missing.

    >>> proportional([1.0, None, 2.0], [3.0, None, 6.0]), proportional([1.0, 2.0], [1.0, 1.0])
    (True, False)
    """
    pairs = [(a, b) for a, b in zip(values, others, strict=True) if (a, b) != (None, None)]
    if not pairs or not all(a and b for a, b in pairs):
        return False
    ratios = [a / b for a, b in pairs]
    return bool(max(ratios) <= min(ratios) * (1 + SAME))


def _familiar(time: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The step time in place of the time of a sequence, where both rank designs alike."""
    step_time = time.replace("seconds_per_sequence", "step_time_s")
    if not rows or step_time not in rows[0] or time not in rows[0]:
        return time
    pairs = ([row[name] for row in rows] for name in (step_time, time))
    return step_time if proportional(*pairs) else time


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def swept_words(results: Results) -> tuple[str, str]:
    """The name of a sweep, and what it sweeps."""
    manifest = results.manifest
    base, axes = manifest["spec"]["base"], manifest["spec"]["axes"]
    fabric = base.get("fabric")
    topology = fabric.get("topology") if isinstance(fabric, dict) else None
    fixed = [one for one in (base.get("workload"), topology) if isinstance(one, str)]
    what = " on ".join(visible(one) for one in fixed if "{" not in one)
    kept = {name: _kept(results, name, values) for name, values, *_ in axes}
    over = ", ".join(_axis_words(name, some) for name, some in kept.items() if len(some) > 1)
    words = f"{manifest['n_designs']:,} designs over {over}" if over else "1 design"
    return visible(Path(manifest["source"]).stem), f"{what}: {words}" if what else words


def _kept(results: Results, axis: str, values: Sequence[Any]) -> Sequence[Any]:
    """Values of an axis that ``where`` leaves, of a run that is finished."""
    if axis not in results.columns or results.n_parts_done < results.manifest["n_parts"]:
        return values
    left = [row[0] for row in results.sql(f"SELECT DISTINCT {sql_name(axis)} FROM designs").rows]
    return [value for value in values if value in left] or values


def _axis_words(name: str, values: Sequence[Any]) -> str:
    """An axis with its number of values and, of numbers, their ends.

    >>> _axis_words("nic", [25, 50, 100]), _axis_words("shape", ["a", "b"])
    ('nic (3 values, 25 to 100)', 'shape (a, b)')
    """
    if all(_is_number(value) for value in values):
        ends = f"{min(values):.12g} to {max(values):.12g}"
        return f"{visible(name)} ({len(values):,} values, {ends})"
    texts = [visible(str(value)) for value in values]
    short = ", ".join(texts)
    inside = short if len(short) <= 2 * _LONGEST else f"{len(values):,} values"
    return f"{visible(name)} ({inside})"
