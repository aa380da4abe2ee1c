"""Error bands of predicted steps, by kind of NPU and of run (C23)."""

from __future__ import annotations

from libra_planner.inputs.training.planned import PlannedRun
from libra_planner.step.bands import kind_of_step, npu_family, published_band


def step_kind(run: PlannedRun) -> str:
    """Class of a run, such as ``dense bf16``."""
    return kind_of_step(run.strategy.dtype, has_experts=run.model.experts is not None)


def step_class(run: PlannedRun) -> str:
    """Whose errors are told of a run, such as ``H100 dense bf16``; the user's own are named."""
    if run.system is not None and own_band_fraction(run) is not None:
        return f"{npu_family(run.npu_name)} {step_kind(run)} of {run.system.label}"
    found = published_band(npu_family(run.npu_name), step_kind(run))
    return f"{npu_family(run.npu_name)} {step_kind(run)}" if found is None else found.runs


def own_band_fraction(run: PlannedRun) -> float | None:
    """Error of steps of its kind by the user's own runs; ``None`` where these do not tell."""
    return None if run.system is None else run.system.step_bands.get(step_kind(run))


def step_band_s(run: PlannedRun) -> tuple[float, float] | None:
    """Least and most that a step takes by the errors of its class; ``None`` without a class.

    Errors are those of the user's own runs, where a system file has them, else of published ones.
    """
    published = published_band(npu_family(run.npu_name), step_kind(run))
    own = own_band_fraction(run)
    error = own if own is not None or published is None else published.fraction
    return None if error is None else (run.step_time_s / (1 + error), run.step_time_s / (1 - error))
