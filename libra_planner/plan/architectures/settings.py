"""What a plan says about how its workload runs: degrees, batch, and the rate of compute."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.errors import Fault, SpecError
from libra_planner.plan.models import ComputeSpec
from libra_planner.plan.prices import NpuSpec
from libra_planner.plan.steps.notes import Kind, Note
from libra_planner.units import FLOP_PER_MAC, FLOPS_PER_TFLOPS


@dataclass(frozen=True)
class PlanSettings:
    """What a plan says about how its workload runs.

    Parameters
    ----------
    tp, dp : degrees of tensor and data parallelism.
    global_batch : sequences per step.
    npu : compute rate.
    npu_memory_bytes : memory of an NPU, where it is known.
    has_groups : group sizes per phase instead of degrees.
    """

    tp: int
    dp: int
    global_batch: int | None = None
    npu: NpuSpec | None = None
    npu_memory_bytes: float | None = None
    has_groups: bool = False


def macs_per_s(compute: ComputeSpec | None, settings: PlanSettings) -> float:
    """Multiply-accumulates per second of one NPU: the plan's, or the workload's own.

    Raises
    ------
    SpecError
        Where neither says one.
    """
    if compute is None and settings.npu is None:
        expected = "expected an NPU here, or compute in the workload"
        fix = f"add e.g. 'npu: {{{_example()}}}'"
        raise SpecError(Fault("got nothing", expected, fix, "npu"))
    npu = settings.npu or (compute.npu if compute else None)
    if npu is None:
        return (compute.macs_per_s if compute else None) or 0.0
    return npu.peak_TFLOPps * FLOPS_PER_TFLOPS * npu.efficiency_fraction / FLOP_PER_MAC


def _example() -> str:
    return ", ".join(f"{name}: {value}" for name, value in NpuSpec.example.items())


def rate_notes(compute: ComputeSpec | None, settings: PlanSettings) -> tuple[str, ...]:
    """That the rate is an assumption of the workload, where no plan says one."""
    npu = compute.npu if compute else None
    if npu is None or settings.npu is not None:
        return ()
    rate = f"{npu.efficiency_fraction:.0%} of {npu.peak_TFLOPps:g} TFLOP/s per NPU"
    return (Note(f"assumed compute rate: {rate}; set npu in the plan to change it", Kind.BASIS),)


def per_replica(name: str, own: int | None, settings: PlanSettings, unit: str) -> int:
    """Sequences, images or samples of one replica and step.

    Parameters
    ----------
    name : of the workload.
    own : what its file says, where no plan does.
    settings : the plan's batch and replicas.
    unit : what is counted, for faults.

    Raises
    ------
    SpecError
        When nobody says a batch, or it does not split over the replicas.
    """
    batch, dp = settings.global_batch, settings.dp
    if batch is None:
        if own is None:
            fix = f"add e.g. 'global_batch: 1536' ({unit} per step)"
            raise SpecError(
                Fault("got nothing", f"expected a value for {name}", fix, "global_batch")
            )
        return own
    if batch % dp:
        expected = f"expected a multiple of the {dp} data-parallel replicas"
        below = batch // dp * dp
        fix = f"write {f'{below} or ' if below else ''}{below + dp}"
        raise SpecError(Fault(f"got {batch} {unit}", expected, fix, "global_batch"))
    return batch // dp


def refuse_tp(name: str, settings: PlanSettings) -> None:
    """Models whose replicas are not split.

    Raises
    ------
    SpecError
        For tensor parallelism of more than 1.
    """
    if settings.tp > 1:
        expected = f"expected 1: {name} is trained with data parallelism alone"
        fix = "write tp: 1, and dp: the number of NPUs"
        raise SpecError(Fault(f"got tp {settings.tp}", expected, fix, "parallelism.tp"))


def refuse_groups(name: str, settings: PlanSettings) -> None:
    """Models that exchange over the data-parallel ranks in every phase.

    Raises
    ------
    SpecError
        For group sizes per phase, which would have a phase's collectives run in its own groups.
    """
    if settings.has_groups:
        expected = f"expected degrees: {name} exchanges over all ranks in every phase"
        fix = "write e.g. 'parallelism: {dp: 256}'"
        raise SpecError(Fault("got group sizes per phase", expected, fix, "parallelism"))
