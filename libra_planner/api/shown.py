"""Results as Python has them: short in a terminal, tables in a notebook, frames and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.views.cells import Block

if TYPE_CHECKING:
    import pandas as pd


class Shown:
    """Base of results; what they say is what the command of the same name prints.

    ``repr`` is one line, ``print`` writes what the command prints, a notebook shows the same as
    tables, :meth:`to_dict` is its ``--json``.
    """

    table: ClassVar[str] = ""
    """Key of :meth:`to_dict` that :meth:`to_frame` takes by itself."""

    def blocks(self) -> Iterable[Block]:
        """What is shown of it, for any medium."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the keys of the command's ``--json``."""
        raise NotImplementedError

    def headline(self) -> str:
        """It in one line."""
        raise NotImplementedError

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

        Parameters
        ----------
        key : of :meth:`to_dict`, a list of maps or a map; by default the main one.

        Raises
        ------
        SpecError
            For a key that is none, or holds no table.
        """
        return frame_of(self.to_dict(), self.table if key is None else key)

    @classmethod
    def of(cls, value: Any, **others: Any) -> Self:
        """A value of the class that this one adds to, as this one."""
        found = {one.name: getattr(value, one.name) for one in fields(value)}
        return cls(**found | others)


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


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with a column for every dimension of a vector."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, list) and value and all(isinstance(x, int | float) for x in value):
            found |= {f"{name}_dim{i}": x for i, x in enumerate(value, 1)}
        else:
            found[name] = value
    return found


def new_axes(axes: Any = None, **size: Any) -> Any:
    """Matplotlib axes to draw on: those that are given, or of a new figure."""
    if axes is not None:
        return axes
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **size)[1]


Progress = Callable[[int, int], None]
"""Told what is done, and of how much."""
