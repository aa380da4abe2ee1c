"""What a plan trains: a workload and its parallelism into operations and step time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from libra_planner.collectives import traffic_bytes
from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.topology import Topology
from libra_planner.reading import bundled
from libra_planner.reading.document import dotted_key
from libra_planner.reading.faults import FaultCollector
from libra_planner.spec.fidelity import CollectiveModel, Fidelity, Timed
from libra_planner.spec.loop_spec import training_loop
from libra_planner.spec.models import CommonSpec, DegreesSpec, TrainingSpec
from libra_planner.spec.system import compute_rate, npu_memory_bytes
from libra_planner.spec.system_models import NamedNpuSpec, NpuMemorySpec, NpuSpec
from libra_planner.spec.workloads import PlanSettings, load_workload
from libra_planner.timing.expression import Array, TimeExpression
from libra_planner.timing.loop_terms import TrainingLoop
from libra_planner.timing.loops import (
    CollectiveTime,
    CollectiveTraffic,
    Slowdown,
    ideal_time,
    step_time,
)
from libra_planner.workload.communication import Communication, communications
from libra_planner.workload.operations import Collective, Phase, Workload
from libra_planner.workload.parallelism import (
    Communicators,
    Group,
    communicators_from_degrees,
    communicators_from_sizes,
)


@dataclass(frozen=True)
class Training:
    """One workload on the fabric.

    Parameters
    ----------
    workload : its operations.
    step_time : T(B), seconds; ideal before :meth:`at_fidelity`.
    real_link_step_time : T(B) when partial groups have only their own links (C6);
        ``None`` without partial groups, and before :meth:`at_fidelity`.
    notes : assumptions worth printing.
    settings : degrees, batch and compute rate, for people to read.
    timed : T(B) for another model of collectives.
    communications : the distinct collectives of a step.
    """

    workload: Workload
    step_time: TimeExpression
    real_link_step_time: TimeExpression | None
    notes: tuple[str, ...]
    settings: tuple[str, ...]
    timed: Timed
    communications: tuple[Communication, ...] = field(default=(), repr=False)

    def at_fidelity(
        self, fidelity: Fidelity, n_chunks: int | None, slowdown: Slowdown | None = None
    ) -> Training:
        """The same training under a plan's model of collectives.

        The pipelined model has the real links of partial groups in it (C6), and so has a
        slowdown that was found by checking the links.
        """
        if slowdown is not None:
            slowed = self.timed(fidelity.slowed(n_chunks, slowdown))
            return replace(self, step_time=slowed, real_link_step_time=None)
        if n_chunks is not None:
            return replace(self, step_time=self.timed(fidelity.model(n_chunks)))
        expression = self.step_time  # Ideal, and so is the plan unless its switches reduce.
        if fidelity.network.in_network:
            expression = self.timed(fidelity.model(None))
        real = None
        if fidelity.has_partial_groups(self.communications):
            real = self.timed(fidelity.ideal_on_real_links())
            real = real if real.root != expression.root else None
        return replace(self, step_time=expression, real_link_step_time=real)


@dataclass(frozen=True)
class TrainingBuilder:
    """Turns what a plan says about one workload into a :class:`Training`.

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

    def build(self, topology: Topology, path: Path | None) -> Training | None:
        """The training, or ``None`` with its faults noted."""
        groups = partial(self._communicators, topology)
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
        training = partial(self._training, topology, communicators, workload, npu)
        return self.faults.attempt(("parallelism",), training)

    def _training(
        self,
        topology: Topology,
        communicators: Communicators,
        workload: Workload,
        npu: NpuSpec | None,
    ) -> Training:
        expression = self._step_time(topology, communicators, workload)
        if not expression.least_s and not len(expression.forms):
            got = f"got {workload.name}, whose step takes no time under this parallelism"
            raise SpecError(Fault(got, "expected compute or communication", "", "workload"))
        return Training(
            workload=workload,
            step_time=expression,
            real_link_step_time=None,
            notes=workload.notes
            + _coverage(topology, communicators, workload)
            + self._unused_memory(workload),
            settings=self._settings(workload, npu),
            timed=partial(self._under, topology, communicators, workload),
            communications=communications(workload, communicators),
        )

    def _step_time(
        self,
        topology: Topology,
        communicators: Communicators,
        workload: Workload,
        time: CollectiveTime = ideal_time,
        traffic: CollectiveTraffic = traffic_bytes,
    ) -> TimeExpression:
        """T(B) under the plan's loop: the only place that asks for one."""
        n_dims = topology.n_dims
        try:
            loop = plan_loop(self.plan)
            return step_time(workload, communicators, n_dims, loop=loop, time=time, traffic=traffic)
        except SpecError as error:
            raise type(error)(*map(self._of_the_plan, error.faults)) from None

    def _of_the_plan(self, fault: Fault) -> Fault:
        """A fault of the loop stands where the plan's loop does, not in this entry."""
        if not fault.path.startswith("training_loop"):
            return fault
        return fault.located(self.faults.document.place(dotted_key(fault.path)))

    def _under(
        self,
        topology: Topology,
        communicators: Communicators,
        workload: Workload,
        model: CollectiveModel,
    ) -> TimeExpression:
        """T(B) under a model of collectives."""
        # TP and DP of given degrees have links of their own in a fully connected dimension.
        own = np.array([one.block.groups_have_own_links for one in topology.dimensions])
        own &= not communicators.explicit

        def shared(collective: Collective, group: Group) -> Array:
            slowed = model.traffic(collective, group)
            return np.where(own, traffic_bytes(collective, group), slowed)

        traffic = shared if model.real_links else model.traffic
        return self._step_time(topology, communicators, workload, model.time, traffic)

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
