"""Make a nearly feasible vector exactly feasible (C9)."""

from __future__ import annotations

import numpy as np

from libra_planner.optimizer.program import Program
from libra_planner.step.expression import Array

_ACTIVE = 1e-8
"""Slack, in units of the row, below which a rule is held exactly."""

_PARALLEL = 1e-7
"""Angle below which two active rules count as one."""

_ZERO = 1e-10
"""Bandwidth, in typical units, below which a dimension is unused."""

_DUST = 1e-6
"""The same for a dimension without traffic: interior points leave some on it."""

_MET = 1e-9
"""Violation, in units of the row, up to which a rule counts as met (C9)."""


def restored(program: Program, b: Array) -> Array:
    """The nearest vector (relative to b) on which active rules hold to rounding.

    Rows that are violated or nearly tight become equalities and the smallest relative
    correction is taken; bandwidths that are zero stay zero. Dust on dimensions without
    traffic is swept where the rules allow it, never a dimension's that a transfer has alone.
    """
    used = program.forms > 0
    alone = used[used.sum(axis=1) == 1].any(axis=0)
    least = np.where(used.any(axis=0), np.where(alone, 0.0, _ZERO), _DUST)
    swept = _corrected(program, np.where(b < least, 0.0, b))
    return swept if meets_rules(program, swept) else _corrected(program, np.maximum(b, 0.0))


def meets_rules(program: Program, b: Array) -> bool:
    """Whether b meets the rules to 1e-9 in units of each row."""
    rules = program.rules
    over = np.concatenate([rules.upper @ b - rules.limit, np.abs(rules.equal @ b - rules.target)])
    return bool((over <= _MET).all())


def _corrected(program: Program, b: Array) -> Array:
    point = b
    for _ in range(5):
        rules = program.rules
        tight = rules.upper @ point - rules.limit > -_ACTIVE
        rows = np.vstack([rules.equal, rules.upper[tight]])
        gap = np.concatenate([rules.target, rules.limit[tight]]) - rows @ point
        if not len(rows):
            break
        correction, *_ = np.linalg.lstsq(rows * point, gap, rcond=_PARALLEL)
        point = np.maximum(point * (1 + correction), 0.0)
    return point
