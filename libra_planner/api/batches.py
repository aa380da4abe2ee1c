"""Optima of many plans at once in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from libra_planner.api.shown import Shown
from libra_planner.optimizer.optimize import OPTIMAL, BatchResult
from libra_planner.units import format_time, format_usd, gigabytes_per_s
from libra_planner.views.cells import Block, table

_MOST_SHOWN = 20
"""Designs that are shown; ``to_frame`` has all."""


@dataclass(frozen=True, repr=False)
class Batch(Shown, BatchResult):
    """Optima of many plans, in the order they were given; ``to_frame`` has a row for each.

    Examples
    --------
    >>> import libra_planner as lp
    >>> found = lp.batch_optimize([lp.load_plan("01_gpt3_4d")] * 2)
    >>> found, found.to_frame()[["design", "status"]].values.tolist()
    (<Batch: 2 designs: 2 optimal>, [[0, 'optimal'], [1, 'optimal']])
    """

    table = "designs"

    def headline(self) -> str:
        """It in one line."""
        counts = Counter(self.status.tolist())
        said = ", ".join(f"{n:,} {status}" for status, n in sorted(counts.items()))
        n = self.n_designs
        return f"{n:,} design{'' if n == 1 else 's'}{f': {said}' if said else ''}"

    def blocks(self) -> Iterator[Block]:
        """The first designs as a table."""
        yield self.headline()
        names = ("design", "status", "step time", "cost", "GB/s, innermost first")
        left = ("status", "GB/s, innermost first")
        yield table("", "", names, map(self._cells, range(self.n_designs)[:_MOST_SHOWN]), left=left)
        if self.n_designs > _MOST_SHOWN:
            yield f"{self.n_designs - _MOST_SHOWN:,} more: to_frame() has all"

    def _cells(self, i: int) -> tuple[str, ...]:
        if self.status[i] != OPTIMAL:
            return (str(i), str(self.status[i]), "-", "-", "-")
        figures = format_time(float(self.step_time_s[i])), format_usd(float(self.cost_usd[i]))
        speeds = (f"{x:.2f}" for x in self._vector_GBps(i) if x is not None)
        return (str(i), str(self.status[i]), *figures, ", ".join(speeds))

    def _vector_GBps(self, i: int) -> list[float | None]:
        vector = self.bandwidth_bytes_per_s[i].tolist()
        return [None if x != x else float(gigabytes_per_s(x)) for x in vector]  # noqa: PLR0124

    def to_dict(self) -> dict[str, Any]:
        """All designs, figures of those without an optimum ``None``."""
        return {"designs": [self._row(i) for i in range(self.n_designs)]}

    def _row(self, i: int) -> dict[str, Any]:
        names = ("objective", "lower_bound", "step_time_s", "cost_usd", "optimality_gap")
        is_known = self.status[i] == OPTIMAL
        figures = {x: float(getattr(self, x)[i]) if is_known else None for x in names}
        return {
            "design": i,
            "status": str(self.status[i]),
            **figures,
            "bandwidth_GBps": self._vector_GBps(i),
            "unique": bool(self.unique[i]) if is_known else None,
            "message": self.messages.get(i, ""),
        }
