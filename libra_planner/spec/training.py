"""What a plan trains: a workload and its parallelism into a training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.topology import Topology
from libra_planner.reading import bundled
from libra_planner.reading.document import dotted_key
from libra_planner.reading.faults import FaultCollector
from libra_planner.spec.loop_spec import training_loop
from libra_planner.spec.models import CommonSpec, DegreesSpec, TrainingSpec
from libra_planner.spec.system import compute_rate, npu_memory_bytes
from libra_planner.spec.system_models import NamedNpuSpec, NpuMemorySpec, NpuSpec
from libra_planner.spec.workloads import PlanSettings, load_workload
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.models import Ideal
from libra_planner.step.loops import TrainingLoop
from libra_planner.step.training import Training
from libra_planner.workload.operations import Phase, Workload
from libra_planner.workload.parallelism import (
    Communicators,
    communicators_from_degrees,
    communicators_from_sizes,
)


@dataclass(frozen=True)
class PlannedTraining:
    """A workload on the fabric, and what a plan says of it for people.

    Parameters
    ----------
    training : the workload.
    notes : assumptions worth printing.
    settings : degrees, batch and compute rate.
    """

    training: Training
    notes: tuple[str, ...]
    settings: tuple[str, ...]


@dataclass(frozen=True)
class TrainingBuilder:
    """Turns what a plan says about one workload into a :class:`PlannedTraining`.

    Parameters
    ----------
    entry : the workload and how it is spread over the NPUs.
    plan : what holds for the whole plan, such as its training loop.
    beside : folder of the plan.
    faults : where faults go; its prefix is the entry's place in the plan.
    """

    entry: TrainingSpec
    plan: CommonSpec
    beside: Path
    faults: FaultCollector

    def path(self) -> Path | None:
        """The workload's file; a name that is none is noted as a fault."""
        resolve = partial(bundled.resolve, "workloads", self.entry.workload, self.beside)
        return self.faults.attempt(("workload",), resolve)

    def build(self, network: Network, path: Path | None) -> PlannedTraining | None:
        """The training, or ``None`` with its faults noted."""
        groups = partial(self._communicators, network.topology)
        communicators = self.faults.attempt(("parallelism",), groups)
        if communicators is None or path is None:
            return None
        npu = None
        if self.entry.npu is not None and not isinstance(self.entry.npu, NpuMemorySpec):
            rate = partial(compute_rate, self.entry.npu, self.beside)
            npu = self.faults.attempt(("npu", "catalogue"), rate)
            if npu is None:
                return None
        load = partial(self._workload, path, communicators, npu)
        workload = self.faults.attempt(("workload",), load)
        if workload is None:
            return None
        training = partial(self._training, network, communicators, workload, npu)
        return self.faults.attempt(("parallelism",), training)

    def _training(
        self,
        network: Network,
        communicators: Communicators,
        workload: Workload,
        npu: NpuSpec | None,
    ) -> PlannedTraining:
        try:
            training = Training(workload, communicators, network, plan_loop(self.plan))
            expression = training.step_time(Ideal())
        except SpecError as error:
            raise type(error)(*map(self._of_the_plan, error.faults)) from None
        if not expression.least_s and not len(expression.forms):
            got = f"got {workload.name}, whose step takes no time under this parallelism"
            raise SpecError(Fault(got, "expected compute or communication", "", "workload"))
        notes = workload.notes + _coverage(network.topology, communicators, workload)
        return PlannedTraining(
            training, notes + self._unused_memory(workload), self._settings(workload, npu)
        )

    def _of_the_plan(self, fault: Fault) -> Fault:
        """A fault of the loop stands where the plan's loop does, not in this entry."""
        if not fault.path.startswith("training_loop"):
            return fault
        return fault.located(self.faults.document.place(dotted_key(fault.path)))

    def _communicators(self, topology: Topology) -> Communicators:
        parallelism = self.entry.parallelism
        if isinstance(parallelism, DegreesSpec):
            return communicators_from_degrees(
                topology, {"tp": parallelism.tp, "dp": parallelism.dp}
            )
        sizes = {phase: tuple(getattr(parallelism, phase.value)) for phase in Phase}
        return communicators_from_sizes(topology, sizes)

    def _workload(self, path: Path, communicators: Communicators, npu: NpuSpec | None) -> Workload:
        tp = communicators.group(Phase.FORWARD, "tp").n_npus
        dp = communicators.group(Phase.WEIGHT_GRAD, "dp").n_npus
        memory = self._npu_memory_bytes()
        settings = PlanSettings(tp, dp, self.entry.global_batch, npu, memory)
        workload = load_workload(path, settings)
        generated = workload.n_sequences is not None
        input_grad = communicators.group(Phase.INPUT_GRAD, "tp").n_npus
        if generated and input_grad != tp:
            got = f"got groups of {input_grad} NPUs, but of {tp} in forward"
            expected = "expected the same tensor-parallel degree in both"
            raise SpecError(Fault(got, expected, "", "parallelism.input_grad"))
        return workload

    def _npu_memory_bytes(self) -> float | None:
        try:
            return npu_memory_bytes(self.entry.npu, self.plan.fixed_cost, self.beside)
        except SpecError:  # The fixed cost, which asks for the same NPU, says what is wrong.
            return None

    def _unused_memory(self, workload: Workload) -> tuple[str, ...]:
        """A note where a plan gives the NPU's memory to a workload that cannot say its need."""
        given = self.entry.npu is not None and self.entry.npu.memory is not None
        if not given or workload.memory is not None:
            return ()
        return (f"npu.memory is not used: {workload.name} does not say what its model needs",)

    def _settings(self, workload: Workload, npu: NpuSpec | None) -> tuple[str, ...]:
        parallelism, named = self.entry.parallelism, self.entry.npu
        if isinstance(parallelism, DegreesSpec):
            settings = [f"TP {parallelism.tp} x DP {parallelism.dp}"]
        else:
            settings = ["group sizes per phase"]
        if workload.n_sequences is not None:
            settings.append(f"{workload.n_sequences:,} sequences per step")
        if npu is not None:
            share = f"{npu.efficiency_fraction:.0%} of {npu.peak_TFLOPps:g} TFLOP/s"
            what = f" ({named.name}, {named.data_type})" if isinstance(named, NamedNpuSpec) else ""
            settings.append(f"compute at {share} per NPU{what}")
        return tuple(settings)


def plan_loop(plan: CommonSpec) -> TrainingLoop:
    """The training loop that a plan asks for.

    Raises
    ------
    SpecError
        For an expression outside the grammar.
    """
    return training_loop(
        plan.training_loop, contention=plan.contention, bubble_fraction=plan.bubble_fraction
    )


def _coverage(
    topology: Topology, communicators: Communicators, workload: Workload
) -> tuple[str, ...]:
    """A note where a generated workload's groups leave NPUs without work."""
    tp = communicators.group(Phase.FORWARD, "tp").n_npus
    n_used = tp * communicators.group(Phase.WEIGHT_GRAD, "dp").n_npus
    if workload.n_sequences is None or n_used == topology.n_npus:
        return ()
    return (
        f"forward x weight_grad groups make {n_used:,} NPUs of work on {topology.n_npus:,} "
        f"NPUs; cost counts them all",
    )
