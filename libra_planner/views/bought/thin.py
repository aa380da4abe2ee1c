"""Tiers of a network that an optimizer made far thinner than what lies inside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from libra_planner.problem import Problem
from libra_planner.quantities import TAPER
from libra_planner.step.expression import Array
from libra_planner.units import format_bandwidth

MOST_TAPER = 4.0
"""Taper up to which nothing is said: what people build."""
_ROUNDING = 1e-9


def thin_tiers(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> list[int]:
    """Dimensions whose bandwidth nobody fixed and is less than a quarter of that inside (C13).

    Parameters
    ----------
    problem : from a plan.
    bandwidth_bytes_per_s : per NPU, shape (n_dims,).

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1")
    >>> [thin_tiers(plan, [450e9, 50e9, spine]) for spine in (12.5e9, 12.4e9)]
    [[], [2]]
    """
    vector = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
    outer = (dim for stack in problem.topology.stacks for dim in list(stack)[1:])
    least = vector / (MOST_TAPER * (1 + _ROUNDING))
    return [dim for dim in outer if vector[dim] < least[dim - 1] and not _is_fixed(problem, dim)]


def _is_fixed(problem: Problem, dim: int) -> bool:
    """Whether an equality says the bandwidth of a tier, or its taper; or all options have one."""
    bills = problem.prices.bills
    if bills is not None:
        shares = bills.bandwidth_Bps[:, dim] / bills.bandwidth_Bps[:, dim - 1]
        return bool(np.ptp(shares) <= _ROUNDING * shares.max())
    return any(
        one.sense == "==" and (one.tier == dim or set(np.flatnonzero(one.coefficients)) == {dim})
        for one in problem.rules
    )


def thin_notes(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> Iterator[str]:
    """What such a tier holds for, and which rule bounds it.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1")
    >>> [note.split(" holds")[0] for note in thin_notes(plan, [450e9, 50e9, 1.5625e9])]
    ['spine of 1.56 GB/s (32:1)']
    """
    topology = problem.topology
    for dim in thin_tiers(problem, bandwidth_bytes_per_s):
        own, name = float(bandwidth_bytes_per_s[dim]), topology.tiers[dim] or topology.labels[dim]
        found = topology.tapers(bandwidth_bytes_per_s)[dim]
        taper = TAPER.text(float(f"{found:.3g}")) if found else ""
        yield (
            f"{name} of {format_bandwidth(own)}{f' ({taper})' if taper else ''} holds for this "
            "strategy and contiguous placement only: check PLAN --placement random shows what "
            f"other placements take; a rule such as taper({name}) <= {MOST_TAPER:g} bounds it"
        )
