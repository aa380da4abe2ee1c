"""Step time at equal bandwidth (C9), for one design and for a batch."""

from __future__ import annotations

import numpy as np

from libra_planner.optimizer.batch_program import BatchProgram
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.timing.expression import Array


def equal_step_time_s(problem: Problem, bandwidth_bytes_per_s: Array) -> float:
    """Step time when the plan's total, or a design's own, is split evenly; NaN without a design.

    ``bandwidth_bytes_per_s`` has shape (n_dims,) or more, NaN where there is no design.
    """
    bandwidth = bandwidth_bytes_per_s[: problem.topology.n_dims]
    if not np.isfinite(bandwidth).all():
        return float("nan")
    total = problem.total_bandwidth_bytes_per_s() or float(bandwidth.sum())
    equal = np.full(len(bandwidth), total / len(bandwidth))
    return float(fastest_alternative(problem, bandwidth).step_time.seconds(equal))


def equal_step_times_s(program: BatchProgram, bandwidth_bytes_per_s: Array) -> Array:
    """The same for every design of a batch, shape (n,), of bandwidths (n, n_dims).

    Examples
    --------
    >>> import libra_planner as lp
    >>> base = lp.load_plan(lp.example("01_gpt3_4d"))
    >>> own = np.array([[338.4e9, 84.6e9, 58.2e9, 18.8e9]])
    >>> equal_step_times_s(BatchProgram.repeated(base, 1), own).round(6).tolist()
    [0.775045]
    """
    n_dims = program.template.topology.n_dims
    own = bandwidth_bytes_per_s[:, :n_dims].sum(axis=1)
    stated = total_bytes_per_s(program)
    total = np.where(np.isnan(stated), own, stated)
    equal = np.broadcast_to(total / n_dims, (n_dims, program.n))
    with np.errstate(all="ignore"):
        seconds = program.structure.seconds(program.time_numbers.T, equal)
    return np.where(np.isnan(own), np.nan, seconds)


def total_bytes_per_s(program: BatchProgram) -> Array:
    """The plan's total of every design (``Problem.total_bandwidth_bytes_per_s``), NaN without."""
    first = program.coefficients[:, :, :1]
    even = (program.coefficients == first).all(axis=2) & (first[:, :, 0] > 0)
    even &= np.array([rule.unit == "GB/s" for rule in program.template.rules], dtype=bool)
    with np.errstate(all="ignore"):
        totals = program.bounds / first[:, :, 0]
    senses = np.array(program.senses)
    least = {
        sense: np.where(even & (senses == sense), totals, np.inf).min(axis=1, initial=np.inf)
        for sense in ("==", "<=")
    }
    found = np.where(np.isfinite(least["=="]), least["=="], least["<="])
    return np.where(np.isfinite(found) & (found > 0), found, np.nan)
