"""What step times tell beyond kernels and collectives: four constants for all NPUs (C18)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from libra_planner.workload.kernels import Kernels


@dataclass(frozen=True)
class StepConstants:
    """What is fitted to step times, the same for all NPUs, each in its range (:data:`RANGES`).

    Parameters
    ----------
    free_flops_per_joule : peak FLOP/s of bf16 per watt up to which power does not limit the clock.
    exponent : of the density beyond it.
    stolen_fraction : of the time of communication that hides, which the compute beside it loses to
        its kernels: they take cores and memory bandwidth.
    imbalance : tokens of the busiest rank of experts over the mean; 1 where they are spread evenly.
    """

    free_flops_per_joule: float = 0.53e12
    exponent: float = 0.22
    stolen_fraction: float = 0.10
    imbalance: float = 1.2


RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "free_flops_per_joule": (0.1e12, 1.5e12),
        "exponent": (0.0, 0.5),
        "stolen_fraction": (0.0, 0.5),
        "imbalance": (1.0, 2.0),
    }
)
"""A clock cannot rise with power density, and power grows at least with the clock's square; NCCL
takes up to a quarter of the cores; an even spread is the least that a busiest rank gets."""

STEP_CONSTANTS = StepConstants()
"""Of all NPUs."""


def slowdown(
    peak_flops: float, tdp_w: float | None, constants: StepConstants = STEP_CONSTANTS
) -> float:
    """Clock of a short run over that of hours of training, 1 or more: (density/free)^exponent.

    The more FLOP/s an NPU has for each watt, the more its clock falls under load.

    Parameters
    ----------
    peak_flops : of bf16, FLOP/s.
    tdp_w : thermal design power, W; ``None`` where nobody says: no slowdown is known.

    Examples
    --------
    >>> round(slowdown(312e12, 400), 2), round(slowdown(989.4e12, 700), 2)
    (1.09, 1.24)
    """
    if not tdp_w:
        return 1.0
    density = peak_flops / tdp_w / constants.free_flops_per_joule
    return max(1.0, math.pow(density, constants.exponent))


def training_kernels(
    kernels: Kernels, tdp_w: float | None, constants: StepConstants = STEP_CONSTANTS
) -> Kernels:
    """Kernels as they run in training: what short runs reach, at the clock that power allows.

    Examples
    --------
    >>> h100 = Kernels({"bf16": 989.4e12}, 3.35e12, n_cores=132)
    >>> bool(training_kernels(h100, 700).gemm_s(8192, 8192, 8192) > h100.gemm_s(8192, 8192, 8192))
    True
    """
    rate = kernels.peak_flops.get("bf16") or max(kernels.peak_flops.values())
    factor = slowdown(rate, tdp_w, constants)
    slower = {name: peak / factor for name, peak in kernels.peak_flops.items()}
    return replace(kernels, peak_flops=slower, burst_fraction=1.0)
