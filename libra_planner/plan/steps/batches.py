"""Global batches that leave a search few degrees of data parallelism."""

from __future__ import annotations

from collections.abc import Iterator

from libra_planner.plain_text import joined
from libra_planner.plan.steps.notes import Kind, Note

_NEAR = 0.1
"""Share of a batch by which another is near it."""


def batch_notes(global_batch: int, n_npus: int) -> Iterator[Note]:
    """A near batch that more than twice as many degrees of data parallelism divide.

    >>> print(*batch_notes(1001, 2048))
    1,001 sequences per step allow dp 1 only on 2,048 NPUs; global_batch: 1024 allows 11 degrees \
of data parallelism (1 to 1,024), and with one of them a step may take less time per token
    >>> list(batch_notes(1024, 2048)), list(batch_notes(1152, 1152))
    ([], [])
    """
    degrees = [n for n in range(1, n_npus + 1) if n_npus % n == 0]

    def dividing(batch: int) -> list[int]:
        return [n for n in degrees if batch % n == 0]

    most = int(_NEAR * global_batch)
    near = range(max(1, global_batch - most), global_batch + most + 1)
    best = max(near, key=lambda batch: (len(dividing(batch)), -abs(batch - global_batch)))
    few, many = dividing(global_batch), dividing(best)
    if len(many) > 2 * len(few):
        only = joined([f"{n:,}" for n in few], "and")
        yield Note(
            f"{global_batch:,} sequences per step allow dp {only} only on {n_npus:,} NPUs; "
            f"global_batch: {best} allows {len(many)} degrees of data parallelism ({many[0]} to "
            f"{many[-1]:,}), and with one of them a step may take less time per token",
            Kind.DECISION,
        )
