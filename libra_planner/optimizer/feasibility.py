"""Make a nearly feasible vector exactly feasible (C9)."""

from __future__ import annotations

import numpy as np

from libra_planner.optimizer.program import Program
from libra_planner.timing.expression import Array

_ACTIVE = 1e-8
"""Slack, in units of the row, below which a rule is held exactly."""

_ZERO = 1e-10
"""Bandwidth, in typical units, below which a dimension is unused."""


def restored(program: Program, b: Array) -> Array:
    """The nearest vector (relative to b) on which active rules hold to rounding.

    Rows that are violated or nearly tight become equalities and the smallest relative
    correction is taken; bandwidths that are zero stay zero.
    """
    point = np.maximum(b, 0.0)
    point[point < _ZERO] = 0.0
    for _ in range(5):
        rules = program.rules
        tight = rules.upper @ point - rules.limit > -_ACTIVE
        rows = np.vstack([rules.equal, rules.upper[tight]])
        gap = np.concatenate([rules.target, rules.limit[tight]]) - rows @ point
        if not len(rows):
            break
        correction, *_ = np.linalg.lstsq(rows * point, gap, rcond=1e-12)
        point = np.maximum(point * (1 + correction), 0.0)
    return point
