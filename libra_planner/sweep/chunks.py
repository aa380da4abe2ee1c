"""Chunks of a sweep: so many designs, small enough to send, with all that solving them takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner import __version__
from libra_planner.sweep.axes import Axis
from libra_planner.sweep.spec import CheckSettings, Sweep
from libra_planner.sweep.template import PlanTemplate


@dataclass(frozen=True)
class AxisColumn:
    """Values of one axis in a chunk: design i has ``values[codes[i]]``."""

    name: str
    values: tuple[Any, ...]
    codes: NDArray[np.intp]


@dataclass(frozen=True)
class Chunk:
    """Consecutive designs of a sweep.

    Parameters
    ----------
    index : number of the chunk, and of its file.
    first_row : row of its first design.
    columns : values of the axes.
    """

    index: int
    first_row: int
    columns: tuple[AxisColumn, ...]

    @property
    def n(self) -> int:
        """Designs."""
        return len(self.columns[0].codes)

    def values(self, i: int) -> dict[str, Any]:
        """Axis values of design i."""
        return {column.name: column.values[column.codes[i]] for column in self.columns}


@dataclass(frozen=True)
class Job:
    """What every chunk of a sweep has in common.

    Parameters
    ----------
    template : the plan with placeholders.
    axes : name to kind of values and whether they are whole numbers, for the columns.
    n_dims : most dimensions of any design's fabric.
    figures : columns of results to keep.
    check : how the links of every optimum are routed; ``None`` for no check.
    version : of the program that made it.
    sweep_hash : of the run's manifest, which its parts carry.
    """

    template: PlanTemplate
    axes: Mapping[str, tuple[str, bool]]
    n_dims: int
    figures: tuple[str, ...]
    check: CheckSettings | None = None
    version: str = __version__
    sweep_hash: str = ""

    @cached_property
    def structural(self) -> frozenset[str]:
        """Axes that change more than numbers of rules and the fixed cost."""
        return self.template.structural

    @cached_property
    def light(self) -> frozenset[str]:
        """Of these, axes that change the objective or the price book only."""
        return self.template.light


def chunk_of(sweep: Sweep, index: int) -> Chunk:
    """Chunk ``index`` of a sweep.

    Examples
    --------
    >>> from libra_planner.spec.bundled import folder
    >>> from libra_planner.sweep.spec import load_sweep
    >>> chunk = chunk_of(load_sweep(folder("examples") / "10_budgets.yaml"), 0)
    >>> chunk.n, chunk.values(1)
    (74, {'objective': 'performance', 'budget': 125})
    """
    first = index * sweep.designs_per_part
    last = min(first + sweep.designs_per_part, sweep.space.n)
    return chunk_between(sweep, first, last, index)


def chunk_between(sweep: Sweep, first: int, last: int, index: int = 0) -> Chunk:
    """Designs ``first`` up to ``last`` (excluded) as a chunk."""
    digits = sweep.space.digits(first, last)
    columns = (_column(axis, row) for axis, row in zip(sweep.axes, digits, strict=True))
    return Chunk(index, first, tuple(columns))


def _column(axis: Axis, digits: NDArray[np.int32]) -> AxisColumn:
    used, codes = np.unique(digits, return_inverse=True)
    return AxisColumn(axis.name, tuple(axis.values[i] for i in used), codes)


def job_of(sweep: Sweep) -> Job:
    """What the chunks of a sweep have in common."""
    axes = {axis.name: (axis.kind, axis.is_whole) for axis in sweep.axes}
    return Job(sweep.template, axes, most_dims(sweep), sweep.figures, sweep.check)


def most_dims(sweep: Sweep) -> int:
    """Most dimensions that a topology of the sweep has."""
    template, key = sweep.template, ("fabric", "topology")
    above = [at for at in template.slots if key[: len(at)] == at]
    axes = {axis.name: axis for axis in sweep.axes}
    if not above:
        return _n_dims(template.document.value.get("fabric"))
    (at,) = above
    slot = template.slots[at]
    names = sorted(slot.names)
    counts = [1]
    for combination in _combinations([axes[name].values for name in names]):
        value = slot.filled(dict(zip(names, combination, strict=True)))
        counts.append(_n_dims({"topology": value} if at == key else value))
    return max(counts)


def _combinations(values: list[tuple[Any, ...]]) -> Any:
    from itertools import product

    return product(*values)


def _n_dims(fabric: Any) -> int:
    notation = fabric.get("topology") if isinstance(fabric, dict) else None
    return notation.count("_") + 1 if isinstance(notation, str) else 1
