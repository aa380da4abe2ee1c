"""Error bands of predicted steps, by kind of NPU and of run (C23)."""

from __future__ import annotations

from libra_planner.inputs.training.planned import PlannedRun
from libra_planner.step.bands import STEP_BANDS, kind_of_step, npu_family


def step_kind(run: PlannedRun) -> str:
    """Class of a run, such as ``dense bf16``."""
    return kind_of_step(run.strategy.dtype, has_experts=run.model.experts is not None)


def step_class(run: PlannedRun) -> str:
    """What errors of a run are told for, such as ``H100 dense bf16``."""
    return f"{npu_family(run.npu_name)} {step_kind(run)}"


def step_band_s(run: PlannedRun) -> tuple[float, float] | None:
    """Least and most that a step takes by the errors of its class; ``None`` without a class."""
    error = STEP_BANDS.get((npu_family(run.npu_name), step_kind(run)))
    return None if error is None else (run.step_time_s / (1 + error), run.step_time_s / (1 - error))
