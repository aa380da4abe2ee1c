"""Constants of measured collectives: fitted to runs, within what is physical, and held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from libra_planner.fabric.clos import Array
from libra_planner.step.collectives.measured import RANGES, Constants, Ranks, measured_time_s


@dataclass(frozen=True)
class MeasuredRun:
    """One measured collective.

    Parameters
    ----------
    kind, size_bytes, ranks : as :func:`~libra_planner.step.collectives.measured.measured_time_s`.
    time_s : measured.
    curve, publisher : whose sizes, and whose measurements, belong together.
    """

    kind: str
    size_bytes: float
    ranks: Ranks
    time_s: float
    curve: str = ""
    publisher: str = ""

    def error(self, constants: Constants) -> float:
        """Predicted over measured time, less 1."""
        return measured_time_s(self.kind, self.size_bytes, self.ranks, constants) / self.time_s - 1


def fitted(runs: Sequence[MeasuredRun], start: Constants | None = None) -> Constants:
    """The constants that miss the logarithms of the times least; a few wild runs move them little.

    Parameters
    ----------
    runs : measured.
    start : where the search begins; constants that no run depends on stay there.
    """
    from scipy.optimize import least_squares

    names = [field.name for field in fields(Constants)]
    bounds = np.log([[max(limit, 1e-9) for limit in RANGES[name]] for name in names]).T
    first = np.clip(np.log(astuple(start or Constants())), bounds[0] + 1e-9, bounds[1] - 1e-9)

    def misses(logarithms: Array) -> Array:
        constants = Constants(*np.exp(logarithms).tolist())
        return np.log1p([run.error(constants) for run in runs])

    found = least_squares(misses, first, bounds=bounds, loss="soft_l1", f_scale=0.1)
    return Constants(*np.exp(found.x).tolist())


def held_out_errors(
    runs: Sequence[MeasuredRun], group: Callable[[MeasuredRun], str]
) -> list[tuple[MeasuredRun, float]]:
    """Errors of runs whose group was left out of the fit, group by group."""
    found = []
    for name in sorted({group(run) for run in runs}):
        kept = fitted([run for run in runs if group(run) != name])
        found += [(run, run.error(kept)) for run in runs if group(run) == name]
    return found


def halves_errors(
    runs: Sequence[MeasuredRun], group: Callable[[MeasuredRun], str], seed: int
) -> list[tuple[MeasuredRun, float]]:
    """Errors of either half of the groups under constants of the other half."""
    names = np.random.default_rng(seed).permutation(sorted({group(run) for run in runs}))
    half = set(names[: len(names) // 2].tolist())
    parts = [[run for run in runs if (group(run) in half) == side] for side in (True, False)]
    found = []
    for kept, others in (parts, parts[::-1]):
        constants = fitted(kept)
        found += [(run, run.error(constants)) for run in others]
    return found


def mean_absolute(errors: Iterable[float]) -> float:
    """Mean of the sizes of errors.

    >>> mean_absolute([-0.5, 0.25])
    0.375
    """
    return float(np.mean(np.abs(list(errors))))
