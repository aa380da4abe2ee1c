"""Rows that answer a question to a run directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_MOST_TOLD = 10
"""Rows that an answer shows of itself in a terminal."""


@dataclass(frozen=True, repr=False)
class Answer:
    """Rows of an answer.

    Parameters
    ----------
    columns : their names.
    rows : values, row by row.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __repr__(self) -> str:
        return f"<Answer: {len(self.rows):,} rows of {len(self.columns):,} columns>\n{self}"

    def __str__(self) -> str:
        return str(self.to_frame().to_string(index=False, max_rows=_MOST_TOLD, max_cols=8))

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, max_rows=60))

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
