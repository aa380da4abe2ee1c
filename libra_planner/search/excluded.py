"""Why a search has no strategy: what excluded how many, and by how much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from libra_planner.problem import RULE_TOLERANCE
from libra_planner.search.best import Search
from libra_planner.units import format_bytes, format_time


@dataclass(frozen=True)
class Excluded:
    """What excluded the strategies of a space.

    Parameters
    ----------
    n : strategies, all of which are excluded.
    n_too_large : need more memory than there is.
    least_bytes, room_bytes : what the smallest of all needs, and what there is.
    n_late : of the others, those that take too long on every network.
    least_s, limit_s : of these the shortest step on any network, and the longest allowed.
    """

    n: int
    n_too_large: int
    least_bytes: float
    room_bytes: float
    n_late: int
    least_s: float
    limit_s: float

    @classmethod
    def of(cls, search: Search) -> Excluded:
        """Of a search that found nothing."""
        rows, limit_s = np.arange(search.space.n), search.fabrics.limit_s
        needed = search.figures.memory_bytes(rows)
        rows = rows[needed <= search.npu_memory_bytes]
        fastest = search.figures.at(search.fabrics.whole.upper)
        times_s = fastest.step_time_s(rows) if len(rows) and np.isfinite(limit_s) else np.zeros(0)
        late_s = times_s[times_s > limit_s * (1 + RULE_TOLERANCE)]
        return cls(
            search.space.n,
            search.space.n - len(rows),
            float(needed.min()),
            search.npu_memory_bytes,
            len(late_s),
            float(late_s.min()) if len(late_s) else 0.0,
            limit_s,
        )

    @property
    def fits(self) -> bool:
        """Whether one of them has the memory that it needs."""
        return self.n_too_large < self.n

    def words(self, remedy: str = "") -> str:
        """In one line, with what would help where all need too much memory."""
        n_others = self.n - self.n_too_large - self.n_late
        said = "; ".join(self._parts(n_others))
        return f"none of {self.n:,} strategies is left: {said}{f'; {remedy}' if remedy else ''}"

    def _parts(self, n_others: int) -> Iterator[str]:
        if self.n_too_large:
            who = "all" if self.n_too_large == self.n else f"{self.n_too_large:,}"
            least = "" if self.fits else f"{format_bytes(self.least_bytes)} at least, of "
            yield (
                f"{who} need more memory than an NPU, or a rule on it, allows "
                f"({least}{format_bytes(self.room_bytes)})"
            )
        if self.n_late:
            yield (
                f"{self.n_late:,} take longer than the {format_time(self.limit_s)} of the rules "
                f"on every network ({format_time(self.least_s)} at least)"
            )
        if n_others:
            yield f"{n_others:,} meet the rules at no bandwidth"
