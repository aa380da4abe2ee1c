"""Results as Python has them: short in a terminal, tables in a notebook, frames and pictures."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.units import format_time, format_usd

if TYPE_CHECKING:
    import pandas as pd

    from libra_planner.problem import Problem
    from libra_planner.views.cells import Block


class Shown(ABC):
    """Base of results; what they say is what the command of the same name prints.

    ``repr`` is one line, ``print`` writes what the command prints, a notebook shows the same as
    tables, :meth:`to_dict` is its ``--json``.
    """

    table: ClassVar[str] = ""
    """Key of :meth:`to_dict` that :meth:`to_frame` takes by itself; empty for all as one row."""

    @abstractmethod
    def blocks(self) -> Iterable[Block]:
        """What is shown of it, for any medium."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """All figures, by the keys of the command's ``--json``."""

    @abstractmethod
    def headline(self) -> str:
        """It in one line."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def __str__(self) -> str:
        from libra_planner.views.renderers.notebook import text

        return text(self.blocks())

    def _repr_html_(self) -> str:
        from libra_planner.views.renderers.notebook import html

        return html(self.blocks())

    def to_frame(self, key: str | None = None) -> pd.DataFrame:
        """A part of :meth:`to_dict` as a pandas frame; units stand in the columns' names.

        Tables inside of a row, such as the cables of a dimension, stay in :meth:`to_dict`.

        Parameters
        ----------
        key : of :meth:`to_dict`, a list of maps or a map; by default the main one.

        Raises
        ------
        SpecError
            For a key that is none, or holds no table.
        """
        import pandas as pd

        if key is None and not self.table:
            return pd.DataFrame([_flat(self.to_dict())])
        return frame_of(self.to_dict(), self.table if key is None else key)

    @classmethod
    def of(cls, value: Any, **others: Any) -> Self:
        """A value of the class that this one adds to, as this one."""
        found = {one.name: getattr(value, one.name) for one in fields(value)}
        return cls(**found | others)


_MOST_DIMENSIONS: Final = 16
"""Of a vector that becomes columns; longer lists are of links or groups."""


def frame_of(payload: Mapping[str, Any], key: str) -> pd.DataFrame:
    """A list of maps, or a map, of a payload as a frame.

    Examples
    --------
    >>> frame_of({"points": [{"cost_usd": 1.0, "GBps": [2, 3]}]}, "points").columns.tolist()
    ['cost_usd', 'GBps_dim1', 'GBps_dim2']
    """
    import pandas as pd

    found = payload.get(key)
    if isinstance(found, Mapping):
        found = [{"name": name, "value": value} for name, value in found.items()]
    if not isinstance(found, Sequence) or not all(isinstance(row, Mapping) for row in found):
        known = [name for name, value in payload.items() if _is_table(value)]
        raise SpecError(Fault(f"got {key!r}", "expected a key that holds a table",
                              closest(key, known), "to_frame"))  # fmt: skip
    return pd.DataFrame([_flat(row) for row in found])


def _is_table(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    rows = isinstance(value, Sequence) and not isinstance(value, str) and value
    return bool(rows) and all(isinstance(row, Mapping) for row in value)


def _is_vector(values: Sequence[Any]) -> bool:
    """Whether a list is of a number for every dimension, or of ``None`` where nothing is known."""
    is_unknown = bool(values) and all(x is None for x in values)
    return is_unknown or any(isinstance(x, int | float) for x in values)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with a column for every dimension of a vector; tables and long lists are left out.

    Of statistics over seeds the mean has the name that a single figure has.

    >>> _flat({"fim_percent": {"mean": 40.0, "p95": 50.0}, "switches": [{"n": 1}]})
    {'fim_percent': 40.0, 'fim_percent_p95': 50.0}
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, list) and _is_vector(value):
            if len(value) > _MOST_DIMENSIONS:
                continue
            found |= {f"{name}_dim{i}": x for i, x in enumerate(value, 1)}
        elif isinstance(value, Mapping) and "mean" in value:
            found |= {f"{name}_{key}".removesuffix("_mean"): one for key, one in value.items()}
        elif not _is_table(value):
            found[name] = value
    return found


def new_axes(axes: Any = None, **size: Any) -> Any:
    """Matplotlib axes to draw on: those that are given, or of a new figure."""
    if axes is not None:
        return axes_given(axes)
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **size)[1]


def axes_given(axes: Any) -> Any:
    """Axes that a caller gave.

    Raises
    ------
    TypeError
        For the name of a file, with what to write instead.
    """
    if isinstance(axes, str | PathLike):
        name = repr(str(axes))
        fix = f"write .plot().figure.savefig({name})"
        raise TypeError(f"plot: got the path {name}, expected matplotlib axes; {fix}")
    return axes


def title(text: str) -> str:
    """Words above a picture, in lines that fit one."""
    return textwrap.fill(text, 56)


def label_times(axes: Any, bars: Any, times_s: Sequence[float]) -> None:
    """Write above bars of times how long each is, and how much longer than the first."""
    first, *others = times_s
    texts = [format_time(first), *(f"{format_time(x)}\n{x / first - 1:+.2%}" for x in others)]
    axes.bar_label(bars, texts, fontsize="small", padding=2)
    axes.margins(y=0.2)


def frontier_words(points: Sequence[Any]) -> str:
    """A frontier in one line: how many designs, and its ends."""
    first, last = points[0], points[-1]
    return (
        f"{len(points)} design{'s' * (len(points) > 1)}, from {format_usd(first.cost_usd)} and "
        f"{format_time(first.step_time_s)} to {format_usd(last.cost_usd)} and "
        f"{format_time(last.step_time_s)}"
    )


def draw_frontier(points: Sequence[Any], plan: Problem, axes: Any) -> Any:
    """Step time over cost; the matplotlib axes."""
    axes = new_axes(axes, figsize=(6, 3.6))
    costs = [point.cost_usd / 1e6 for point in points]
    axes.plot(costs, [point.step_time_s for point in points], "-o", markersize=4)
    words = title(f"{plan.workload_name} on {plan.topology}")
    axes.set(xlabel="cost, M$", ylabel="step time, s", title=words)
    return axes


Progress = Callable[[int, int], None]
"""Told what is done, and of how much."""
