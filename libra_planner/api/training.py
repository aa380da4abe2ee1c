"""Training steps in Python: the command ``train``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from libra_planner import allowed
from libra_planner.allowed import Flag, Kind, Number, OneOf, Whole
from libra_planner.api.given import refuse_unknown, takes
from libra_planner.api.shown import Shown, new_axes, title
from libra_planner.errors import Fault, SpecError
from libra_planner.inputs.training.bands import step_band_s
from libra_planner.inputs.training.planned import PlannedRun, fastest_microbatch, planned_run
from libra_planner.inputs.training.rows import OPTIONS, asked_run
from libra_planner.plan.systems import load_system
from libra_planner.units import BYTES_PER_GB, format_time
from libra_planner.views.cells import Block
from libra_planner.views.times.training import training_blocks, training_payload
from libra_planner.views.training.step import PARTS

if TYPE_CHECKING:
    import pandas as pd

    from libra_planner.workload.transformer import AttentionFlops

_AUTO = "auto"
_COLUMNS = {column: name for name, column in OPTIONS.items()}
_TEXTS = ("model", "npu", "library", "fabric")
_COUNT = Whole(*allowed.RUN_COUNT)
OF_RUNS: dict[str, Kind] = {
    **{name: _COUNT for name in OPTIONS if name not in _TEXTS},
    "microbatch": Whole(*allowed.RUN_COUNT, words=(_AUTO,)),
    "dtype": OneOf(allowed.MATRIX_TYPES),
    "recompute": OneOf(allowed.RECOMPUTED),
    "zero": OneOf(allowed.ZERO_STAGES),
    "schedule": OneOf(allowed.PIPELINE_SCHEDULES),
    "sequence_parallel": Flag(),
    "taper": Number(*allowed.TAPER),
    "attention_flops": OneOf(allowed.ATTENTION_FLOPS),
}
"""What arguments of training runs take."""


@dataclass(frozen=True, repr=False)
class TrainingStep(Shown):
    """One step of a training run, timed.

    Parameters
    ----------
    run : with everything that was left open filled in.
    attention_flops : ``full`` or ``causal``: what of attention counts as work (C18).
    """

    run: PlannedRun
    attention_flops: AttentionFlops = "full"

    table = "split_s"

    @property
    def step_time_s(self) -> float:
        """Of one step."""
        return self.run.step_time_s

    @property
    def step_time_band_s(self) -> tuple[float, float] | None:
        """The same at the ends of its error band (C23); ``None`` without a class."""
        return step_band_s(self.run)

    @property
    def mfu(self) -> float:
        """FLOP/s of the model over the dense peak of the NPUs (C18)."""
        return self.run.mfu_fraction(self.attention_flops)

    @property
    def tokens_per_s(self) -> float:
        """Of all NPUs."""
        return self.run.tokens_per_s_per_gpu * float(self.run.strategy.n_npus)

    @property
    def memory_GB(self) -> float:
        """What an NPU of the fullest stage holds (C19), 1e9 bytes."""
        return float(self.run.memory.total_bytes) / BYTES_PER_GB

    @property
    def fits(self) -> bool:
        """Whether an NPU holds it."""
        return self.run.fits

    def headline(self) -> str:
        """It in one line."""
        run = self.run
        fits = "" if run.fits else ", DOES NOT FIT"
        return (
            f"{run.model.name} on {int(run.strategy.n_npus):,} {run.npu_name}; step "
            f"{format_time(run.step_time_s)}, MFU {self.mfu:.1%}, {self.memory_GB:.1f} GB{fits}"
        )

    def blocks(self) -> Iterator[Block]:
        """What ``train`` prints."""
        yield from training_blocks(self.run, self.attention_flops)

    def to_dict(self) -> dict[str, Any]:
        """What ``train --json`` prints."""
        return training_payload(self.run, self.attention_flops)

    def to_frame(self, key: str | None = None) -> pd.DataFrame:
        """What takes the step's time, with the total; ``key`` as results have it."""
        frame = super().to_frame(key)
        if key is None:
            frame.loc[len(frame)] = ["total", self.step_time_s]
        return frame

    def plot(self, axes: Any = None) -> Any:
        """What takes the step's time; the matplotlib axes."""
        axes = new_axes(axes, figsize=(6, 3.2))
        parts = {PARTS[name]: s for name, s in self.run.split_s.items() if s > 0}
        axes.barh(list(parts)[::-1], list(parts.values())[::-1])
        axes.set(xlabel="s", title=title(self.headline()))
        return axes


@takes(OF_RUNS)
def train(
    model: str | None = None,
    *,
    npu: str,
    gpus: int | None = None,
    global_batch: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    microbatch: int | str | None = None,
    system: str | None = None,
    attention_flops: AttentionFlops = "full",
    **others: Any,
) -> TrainingStep:
    """The time of one training step, without a plan.

    Parameters
    ----------
    model : a bundled name or a path; ``None`` with ``layers``, ``hidden`` and so on.
    npu, gpus : which NPUs, and how many.
    global_batch : sequences of a step.
    tp, pp, dp : degrees; ``cp``, ``ep`` and ``etp`` too.
    microbatch : sequences of one, or ``auto`` for the fastest that fits.
    system : a file of ``calibrate``.
    attention_flops : ``full`` or ``causal`` (C18).
    others : what else the command takes, dashes as underscores: ``interleave``, ``zero``,
        ``recompute``, ``sequence_parallel``, ``dtype``, ``seq``, ``fabric``, ``taper``, ...

    Raises
    ------
    SpecError
        For what is missing, unknown or impossible.

    Examples
    --------
    >>> step = train("llama3-70b", npu="h100-sxm", gpus=64, tp=8, pp=4, global_batch=128)
    >>> step.step_time_s > 0, step.fits, 0 < step.mfu < 1
    (True, True, True)
    """
    named = {"model": model, "npu": npu, "gpus": gpus, "global_batch": global_batch}
    named |= {"tp": tp, "pp": pp, "dp": dp, **others}
    named |= {} if microbatch == _AUTO else {"microbatch": microbatch}
    refuse_unknown("train", named, tuple(OPTIONS))
    plan = fastest_microbatch if microbatch == _AUTO else planned_run
    own = None if system is None else load_system(system)
    try:
        run = plan(asked_run(named), is_row=False, system=own)
        _ = run.step_time_s
    except SpecError as error:
        raise type(error)(*map(argument_fault, error.faults)) from None
    return TrainingStep(run, attention_flops)


def argument_fault(fault: Fault) -> Fault:
    """A fault of a column as one of its argument."""
    column = fault.path.rpartition(".")[2]
    return replace(fault, path=_COLUMNS.get(column, fault.path))
