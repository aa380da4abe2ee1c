"""How many routings an answer is the mean of, where nobody asks for a number (C12)."""

from __future__ import annotations

N_ROUTINGS = 10
"""Routings of a policy that draws."""

LEAST_ROUTINGS = 3
"""Routings where there are very many flows."""

MOST_FLOWS = 2_000_000
"""Flows of all routings together, up to which there are more than the least."""


def n_routings(n_flows: int) -> int:
    """Routings of so many flows that are drawn: 1 of none, 10, or as many as have 2,000,000 flows.

    Never fewer than 3. The number of flows decides, and never the clock.

    Examples
    --------
    >>> [n_routings(n_flows) for n_flows in (0, 128, 200_000, 400_000, 10_000_000)]
    [1, 10, 10, 5, 3]
    """
    if not n_flows:
        return 1
    return max(LEAST_ROUTINGS, min(N_ROUTINGS, MOST_FLOWS // n_flows))


def asked_seeds(n_seeds: int | None, first: int | None) -> range | None:
    """The seeds that a user asks for; ``None`` where neither a number nor a seed is given.

    Examples
    --------
    >>> asked_seeds(None, 7), asked_seeds(3, None), asked_seeds(3, 7), asked_seeds(None, None)
    (range(7, 8), range(0, 3), range(7, 10), None)
    """
    if n_seeds is None and first is None:
        return None
    start = first or 0
    return range(start, start + (n_seeds or 1))
