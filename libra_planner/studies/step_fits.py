"""Constants of whole steps: fitted to published runs, within ranges, and held out (C18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from libra_planner.errors import Fault, SpecError
from libra_planner.inputs.training.bands import step_kind
from libra_planner.inputs.training.planned import PlannedRun, planned_run
from libra_planner.inputs.training.rows import TrainingRun
from libra_planner.plan.systems import System
from libra_planner.step.bands import npu_family
from libra_planner.workload.clock import (
    RANGES,
    STEP_CONSTANTS,
    StepConstants,
    slowdown,
    training_kernels,
)
from libra_planner.workload.kernels import Kernels

Numbers = NDArray[np.float64]

_PUBLISHERS = (
    *("Narayanan", "Korthikanti", "vTrain", "MegaScale", "PaLM", "Megatron-Bridge"),
    *("dgxc-benchmarking", "InternEvo", "torchtitan", "maxtext", "Primus"),
)
_KNOTS = ((0.0, 0.14, 0.35), (0.0, 0.15, 0.4), (1.0, 1.15, 1.5))
"""Where times are known: logarithm of the clock's slowdown, stolen fraction, imbalance."""
_STARTS = ((0.6, 0.23, 0.05, 1.1), (0.3, 0.15, 0.05, 1.2), (1.0, 0.4, 0.2, 1.3))
_UNIT = 1e12


@dataclass(frozen=True)
class MeasuredStep:
    """A published step beside what is predicted.

    Parameters
    ----------
    planned : the run with all that its source left open.
    time_s : of one step, as published.
    source : where it is from.
    """

    planned: PlannedRun = field(repr=False)
    time_s: float
    source: str

    @property
    def publisher(self) -> str:
        """Short name of its source."""
        return next((name for name in _PUBLISHERS if name in self.source), "other")

    @property
    def family(self) -> str:
        """Kind of its NPU, such as H100."""
        return npu_family(self.planned.npu_name)

    @property
    def kind(self) -> str:
        """What is trained: dense or with experts, in 16, 8 or 4 bits."""
        return step_kind(self.planned)

    def predicted_s(self, constants: StepConstants = STEP_CONSTANTS) -> float:
        """Time of one step under constants."""
        one = self.planned
        kernels = training_kernels(one.short_kernels, one.npu.tdp_W, constants)
        return self._with(kernels, constants)

    def _with(self, kernels: Kernels, constants: StepConstants) -> float:
        trained = replace(self.planned.trained, kernels=kernels, constants=constants)
        return replace(self.planned, trained=trained).step_time_s

    def error(self, constants: StepConstants = STEP_CONSTANTS) -> float:
        """Relative, above 0 where too much is predicted."""
        same = constants == self.planned.trained.constants
        found = self.planned.step_time_s if same else self.predicted_s(constants)
        return found / self.time_s - 1

    @cached_property
    def curve(self) -> Numbers:
        """Logarithm of its time at the middle knots, and what the outer ones add, shape (7,)."""
        middle = tuple(knots[1] for knots in _KNOTS)
        points = [middle]
        for axis, knots in enumerate(_KNOTS):
            points += [(*middle[:axis], knots[i], *middle[axis + 1 :]) for i in (0, 2)]
        logs = np.log([self._at(*point) for point in points])
        return np.asarray(np.concatenate([logs[:1], logs[1:] - logs[0]]))

    def _at(self, log_slowdown: float, stolen: float, imbalance: float) -> float:
        plain = training_kernels(self.planned.short_kernels, None)
        factor = float(np.exp(log_slowdown))
        peaks = {name: peak / factor for name, peak in plain.peak_flops.items()}
        constants = StepConstants(stolen_fraction=stolen, imbalance=imbalance)
        return self._with(replace(plain, peak_flops=peaks), constants)

    def log_slowdown(self, constants: StepConstants) -> float:
        """Logarithm of what power does to the clock of its NPU."""
        peaks = self.planned.npu.peak_TFLOPps
        peak = peaks.get("bf16") or max(peaks.values())
        return float(np.log(slowdown(_UNIT * peak, self.planned.npu.tdp_W, constants)))


def measured_step(
    run: TrainingRun | SpecError, source: str = "", system: System | None = None
) -> MeasuredStep:
    """A run of a table.

    Parameters
    ----------
    run : what its row says, or why it cannot be read.
    source : where it is from.
    system : whose constants hold; ``None`` for the published ones.

    Raises
    ------
    SpecError
        For a run that cannot be told, and one without a measured time.
    """
    if isinstance(run, SpecError):
        raise run
    planned = planned_run(run, system=system)
    time_s = _published_s(run, planned)
    if not time_s:
        raise SpecError(Fault("got no measured time", "expected s per step or tokens/s per GPU"))
    return MeasuredStep(planned, time_s, source)


def _published_s(run: TrainingRun, planned: PlannedRun) -> float | None:
    if run.seconds_per_iteration:
        return run.seconds_per_iteration
    if not run.tokens_per_s_per_gpu:
        return None
    n_npus = float(planned.strategy.n_npus)
    return planned.tokens_per_step / run.tokens_per_s_per_gpu / n_npus


def fitted_constants(steps: Sequence[MeasuredStep]) -> StepConstants:
    """Constants with the smallest mean error, every source weighed by the root of its rows.

    Between three times of each constant the logarithm of a step's time is taken as linear.
    """
    curves, measured = np.array([one.curve for one in steps]), np.log([x.time_s for x in steps])
    weights = _weights(steps)
    low, high = (np.array([RANGES[name][i] for name in RANGES]) for i in (0, 1))
    low[0], high[0] = low[0] / _UNIT, high[0] / _UNIT

    def error(point: Numbers) -> float:
        inside = np.clip(point, low, high)
        predicted = log_times(steps, curves, _constants(inside))
        outside = 10 * float(np.sum(np.abs(point - inside)))
        return float(weights @ np.abs(predicted - measured)) + outside

    options = {"xatol": 1e-3, "fatol": 1e-6, "maxiter": 4000}
    found = [minimize(error, start, method="Nelder-Mead", options=options) for start in _STARTS]
    best = min(found, key=lambda one: float(one.fun))
    return _constants(np.clip(best.x, low, high))


def _constants(point: Numbers) -> StepConstants:
    return StepConstants(_UNIT * float(point[0]), *map(float, point[1:]))


def log_times(steps: Sequence[MeasuredStep], curves: Numbers, constants: StepConstants) -> Numbers:
    """Logarithms of the times of steps under constants, from their curves, shape (steps,)."""
    found = curves[:, 0].copy()
    slow = np.array([one.log_slowdown(constants) for one in steps])
    axes: Sequence[Numbers | float] = (slow, constants.stolen_fraction, constants.imbalance)
    for axis, values in enumerate(axes):
        least, middle, most = _KNOTS[axis]
        below = curves[:, 1 + 2 * axis] * (values - middle) / (least - middle)
        above = curves[:, 2 + 2 * axis] * (values - middle) / (most - middle)
        found += np.where(values < middle, below, above)
    return np.asarray(found)


def _weights(steps: Sequence[MeasuredStep]) -> Numbers:
    keys = [(one.source.partition(" @")[0], one.kind[:5]) for one in steps]
    sizes = {key: keys.count(key) for key in set(keys)}
    found = np.array([sizes[key] ** -0.5 for key in keys])
    return np.asarray(found / found.sum())


def held_out_errors(
    steps: Sequence[MeasuredStep], group: Callable[[MeasuredStep], object], fits: set[str]
) -> list[tuple[MeasuredStep, float]]:
    """Errors of each group under constants that it had no part in.

    Parameters
    ----------
    fits : publishers whose runs constants may be fitted to.
    """
    found = []
    for name in sorted({str(group(one)) for one in steps}):
        others = [one for one in steps if str(group(one)) != name and one.publisher in fits]
        constants = fitted_constants(others)
        found += [(one, one.error(constants)) for one in steps if str(group(one)) == name]
    return found
