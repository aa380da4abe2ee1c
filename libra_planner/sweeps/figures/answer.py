"""Rows that answer a question to a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from libra_planner.frozen import Rows

if TYPE_CHECKING:
    import pandas as pd

_MOST_TOLD = 10
"""Rows that an answer shows of itself in a terminal."""


@dataclass(frozen=True, repr=False)
class Answer(Rows[tuple[Any, ...]]):
    """Rows of an answer: a loop gives them, ``len`` counts them, an index gives one.

    Parameters
    ----------
    columns : their names.
    rows : values, row by row.

    Examples
    --------
    >>> found = Answer(("nic", "step_time_s"), ((25, 3.5), (50, 3.1)))
    >>> len(found), found[0], [step_time_s for nic, step_time_s in found]
    (2, (25, 3.5), [3.5, 3.1])
    >>> found.dicts()[1]
    {'nic': 50, 'step_time_s': 3.1}
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __repr__(self) -> str:
        return f"<Answer: {len(self.rows):,} rows of {len(self.columns):,} columns>\n{self}"

    def __str__(self) -> str:
        return str(self.to_frame().to_string(index=False, max_rows=_MOST_TOLD, max_cols=8))

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, max_rows=60))

    def without(self, names: Sequence[str]) -> Answer:
        """The rows without some columns.

        >>> Answer(("nic", "taper"), ((25, 2),)).without(["taper"]).dicts()
        [{'nic': 25}]
        """
        kept = [i for i, name in enumerate(self.columns) if name not in names]
        rows = (tuple(row[i] for i in kept) for row in self.rows)
        return Answer(tuple(self.columns[i] for i in kept), tuple(rows))

    def dicts(self) -> list[dict[str, Any]]:
        """The rows as maps."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_frame(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns))


def error_text(error: Exception) -> str:
    """What a database says of a question, in one line.

    >>> error_text(ValueError("no column\\n  here"))
    'got no column here'
    """
    return f"got {' '.join(str(error).split())}"
