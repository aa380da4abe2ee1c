"""``--bandwidth``: GB/s per NPU of every dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.units import BYTES_PER_S_PER_GBPS

if TYPE_CHECKING:
    from libra_planner.problem import Problem
    from libra_planner.step.expression import Array

_LEAST_GBPS, _MOST_GBPS = 1e-12, 1e9
"""Sizes of a bandwidth beyond which a number is a slip of the keyboard."""


def bandwidth_bytes_per_s(text: str, problem: Problem, place: Place) -> Array:
    """The option's numbers in byte/s, shape (n_dims,).

    Raises
    ------
    SpecError
        For another count of numbers than dimensions, or what is no bandwidth.
    """
    parts = text.split(",")
    n_dims = problem.topology.n_dims
    if len(parts) != n_dims:
        expected = f"expected {n_dims}, one for each dimension of {problem.topology}"
        fix = "separate GB/s by commas, innermost first"
        raise SpecError(Fault(f"got {len(parts)} numbers", expected, fix, "", place))
    values = [_gigabytes_per_s(part, place) for part in parts]
    return np.array(values) * BYTES_PER_S_PER_GBPS


def _gigabytes_per_s(text: str, place: Place) -> float:
    from libra_planner.reading.document import scalar

    value = scalar(text.strip())
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (value == 0 or _LEAST_GBPS <= value <= _MOST_GBPS):
        fix = "write GB/s without a unit, such as 300,100,75,25"
        expected = f"expected 0 or a number from {_LEAST_GBPS:g} to {_MOST_GBPS:g}"
        raise SpecError(Fault(f"got {text!r}", expected, fix, "", place))
    return abs(float(value))
