"""What a training run takes by the model of a step: its time, its parts, its memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from libra_planner.errors import Fault, SpecError, refuse
from libra_planner.inputs.training.clusters import Nics, RunFabric, nics_of, run_fabric
from libra_planner.inputs.training.named_clusters import named_nics
from libra_planner.inputs.training.repairs import corrected
from libra_planner.inputs.training.rows import TrainingRun
from libra_planner.inputs.training.strategies import (
    Notes,
    refuse_undivided_batch,
    run_model,
    run_strategy,
)
from libra_planner.plan.npus import (
    CatalogueNpuSpec,
    catalogue,
    catalogue_npu,
    npu_kernels,
    npu_named,
)
from libra_planner.plan.steps.strategies import copies_text
from libra_planner.plan.systems import System
from libra_planner.step.bands import beyond_measured_chunks
from libra_planner.step.limits import refuse_impossible
from libra_planner.step.memory_use import MemoryUse
from libra_planner.step.model_step import TrainedModel
from libra_planner.step.model_training import ModelTraining
from libra_planner.step.pipeline import ZERO_BUBBLE_FILL, is_schedulable, refuse_unschedulable
from libra_planner.units import BYTES_PER_GB, FLOPS_PER_TFLOPS
from libra_planner.workload.clock import STEP_CONSTANTS, training_kernels
from libra_planner.workload.defaults import (
    LIBRARIES,
    MEGATRON_CORE,
    LibraryDefaults,
    library_named,
)
from libra_planner.workload.kernels import Kernels
from libra_planner.workload.memory.activations import recomputes_up_projections
from libra_planner.workload.memory.fitting import Suggestion
from libra_planner.workload.memory.npu import Memory
from libra_planner.workload.memory.stages import has_equal_chunks
from libra_planner.workload.operations import Covers, Workload
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import AttentionFlops, Transformer


@dataclass(frozen=True)
class PlannedRun:
    """A run with everything that its source left open filled in.

    Parameters
    ----------
    trained : model, strategy and kernels.
    fabric : what it stands on.
    npu, npu_name : of the catalogue.
    library : whose defaults fill in what the source leaves open.
    short_kernels : of runs too short for power to limit the clock.
    notes : what was filled in, for people.
    system : the user's file whose constants hold; ``None`` for the published ones.
    """

    trained: TrainedModel
    fabric: RunFabric
    npu: CatalogueNpuSpec
    npu_name: str
    library: LibraryDefaults
    short_kernels: Kernels
    notes: tuple[str, ...] = ()
    system: System | None = None

    @property
    def strategy(self) -> Strategy:
        """Degrees, batch and the rest."""
        return self.trained.strategy

    @property
    def model(self) -> Transformer:
        """Its shape."""
        return self.trained.model

    @cached_property
    def memory_use(self) -> MemoryUse:
        """What the library keeps on an NPU, and what would make it fit (C19)."""
        return MemoryUse(self.model, self.strategy, self.library.memory, self.npu_memory_bytes)

    @cached_property
    def memory(self) -> Memory:
        """What one NPU of the fullest stage holds."""
        return self.memory_use.parts

    @property
    def npu_memory_bytes(self) -> float:
        """What programs can use of an NPU."""
        return self.npu.memory_GB * BYTES_PER_GB

    @property
    def fits(self) -> bool:
        """Whether an NPU holds it."""
        return bool(self.memory.fits(self.npu_memory_bytes))

    @property
    def would_fit(self) -> tuple[Suggestion, ...]:
        """Changes that make it fit and run on the same fabric; none where it fits."""
        return self.memory_use.fixes(self._stands)

    def _stands(self, strategy: Strategy) -> bool:
        try:
            refuse_impossible(self.model, strategy)
            refuse_unschedulable(strategy)
            placed_groups(self.fabric.network.topology, _degrees(strategy))
        except SpecError:
            return False
        return True

    @cached_property
    def training(self) -> ModelTraining:
        """The model on the fabric."""
        one, network = self.strategy, self.fabric.network
        groups = placed_groups(network.topology, _degrees(one))
        batch = int(one.global_batch)
        tokens = batch * self.model.sequence_tokens
        workload = Workload(self.model.name, (), batch, covers=Covers.STEP, tokens_per_step=tokens)
        return ModelTraining(workload, self.trained, groups, network)

    @cached_property
    def step_time_s(self) -> float:
        """Of one step."""
        time = self.training.step_time(self.fabric.model)
        return float(time.seconds(self.fabric.bandwidth_bytes_per_s))

    @property
    def split_s(self) -> Mapping[str, float]:
        """The step's time by what takes it; the parts add up to it."""
        return self.training.split_s(self.fabric.model, self.fabric.bandwidth_bytes_per_s)

    @property
    def tokens_per_step(self) -> float:
        """Of the whole cluster."""
        return float(self.strategy.global_batch) * self.model.sequence_tokens

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Of one NPU."""
        return self.tokens_per_step / self.step_time_s / float(self.strategy.n_npus)

    def model_flops_per_gpu(self, attention: AttentionFlops = "full") -> float:
        """FLOP/s of one NPU that the model needs, nothing computed twice (C18)."""
        return self.model.flops_per_token(attention) * self.tokens_per_s_per_gpu

    def hardware_flops_per_gpu(self, attention: AttentionFlops = "full") -> float:
        """The same with what is computed again."""
        model = self.model
        whole = model.flops_per_token(attention)
        again = {
            Recompute.NONE: 0.0,
            Recompute.SELECTIVE: self._selective_flops(whole),
            Recompute.FULL: whole,
        }[Recompute(int(self.strategy.recompute))]
        return (whole + again / 3) * self.tokens_per_s_per_gpu

    def _selective_flops(self, whole: float) -> float:
        """Three times what a token of selective recomputation computes again."""
        model, a = self.model, self.model.attention
        by_operator = self.library.habits.recomputes_by_operator
        if by_operator or not recomputes_up_projections(model, self.strategy):
            return whole - 6 * model.n_multiplying_parameters
        expanded = a.n_heads * (a.head_dim - a.rope_dim + a.head_dim_v)
        up = (a.q_rank or model.hidden) * a.q_width + a.kv_rank * expanded
        return 6.0 * up * (model.n_layers + model.n_mtp)

    def mfu_fraction(self, attention: AttentionFlops = "full") -> float:
        """Model FLOP/s over the dense peak of the data type."""
        peak = self.npu.peak_TFLOPps[self.strategy.dtype] * FLOPS_PER_TFLOPS
        return self.model_flops_per_gpu(attention) / peak


def _degrees(strategy: Strategy) -> dict[str, int]:
    return {axis: int(getattr(strategy, axis)) for axis in ("tp", "cp", "dp", "pp", "ep", "etp")}


def planned_run(
    run: TrainingRun, *, is_row: bool = True, system: System | None = None
) -> PlannedRun:
    """A run as it can be told.

    Parameters
    ----------
    is_row : of a table of published runs, which names libraries and fabrics in its own words; else
        what a user asks, whose names must be known.
    system : a user's file whose constants hold; ``None`` for the published ones.

    Raises
    ------
    SpecError
        For what its source does not say and nobody may guess, and for what is not modelled.
    """
    try:
        return _planned(run, is_row=is_row, system=system)
    except SpecError as error:
        if is_row:
            raise

        def trial(other: TrainingRun) -> bool:
            return _planned(other, is_row=False, system=system).fits

        raise corrected(error, run, trial) from None


def _planned(run: TrainingRun, *, is_row: bool, system: System | None) -> PlannedRun:
    library, of_library = _library(run, is_row=is_row)
    model, of_model = run_model(run, is_row=is_row)
    strategy, of_strategy = run_strategy(run, library, model.attention.n_heads)
    if not is_row:
        refuse(_unused(run, strategy))
    refuse_impossible(model, strategy, was_run=is_row)
    refuse_undivided_batch(strategy)
    refuse_unschedulable(strategy)
    named = npu_named(run.gpu_type, catalogue().npus) or run.gpu_type
    npu = catalogue_npu(named, None, None, path="gpu_type")
    _refuse_other(system, named)
    short = npu_kernels(named) if system is None else system.kernels_with(npu_kernels(named))
    constants = STEP_CONSTANTS if system is None else system.step_constants
    kernels = training_kernels(short, npu.tdp_W, constants)
    if strategy.dtype not in kernels.peak_flops and not run.precision:
        strategy = replace(strategy, dtype="fp16")
        of_strategy = tuple("fp16" if note == "bf16" else note for note in of_strategy)
    if strategy.dtype not in kernels.peak_flops:
        got, known = f"got {strategy.dtype} on {named}", ", ".join(kernels.peak_flops)
        raise SpecError(Fault(got, f"expected one of {known}", path="precision"))
    nics = tapered(_nics(run, named, is_row=is_row), run)
    fabric = run_fabric(named, npu, int(strategy.n_npus), nics)
    if system is not None:
        law = replace(fabric.model, constants=system.constants, bands=system.bands)
        fabric = replace(fabric, model=law)
    trained = TrainedModel(model, strategy, kernels, library.formats, library.habits, constants)
    of_trained = *_of_chunks(trained), *_of_experts(trained)
    notes = (*of_model, *of_library, *of_strategy, *of_trained, *fabric.notes)
    found = PlannedRun(trained, fabric, npu, named, library, short, notes, system)
    _refuse_unplaced(found)
    return replace(found, notes=(*notes, *found.memory_use.notes))


def _unused(run: TrainingRun, strategy: Strategy) -> Iterator[Fault]:
    """What a user asks of a pipeline that has one stage."""
    fix = "leave it out, or take more stages"
    if strategy.pp == 1 and (run.vp_interleave or 1) > 1:
        got = f"got {run.vp_interleave} chunks of a stage with pp 1"
        yield Fault(got, "expected 1", fix, "vp_interleave")
    if strategy.pp == 1 and strategy.schedule in ZERO_BUBBLE_FILL:
        got = f"got {strategy.schedule.value} with pp 1"
        yield Fault(got, "expected 1f1b: one stage has no bubble", fix, "schedule")


def _refuse_unplaced(run: PlannedRun) -> None:
    """Refuse groups that cannot stand, on leaves by the name of the fabric."""
    topology = run.fabric.network.topology
    try:
        _ = run.training
    except SpecError as error:
        if not topology.stacks:
            raise
        fix = f"choose degrees that fit {topology}, or other nodes per leaf"
        raise type(error)(*(replace(fault, fix=fix) for fault in error.faults)) from None


def _of_chunks(trained: TrainedModel) -> Notes:
    model, one = trained.model, trained.strategy
    beyond = beyond_measured_chunks(int(one.interleave)) if one.pp > 1 else ""
    uneven = f"{one.interleave} chunks do not divide the layers of a stage: counted as equal"
    is_equal = has_equal_chunks(model.n_layers, one.pp, one.interleave)
    return tuple(filter(None, ("" if is_equal else uneven, beyond)))


def _of_experts(trained: TrainedModel) -> Notes:
    if trained.model.experts is None:
        return ()
    more = f"{trained.constants.imbalance - 1:.0%}"
    even = f"no token is dropped, and the busiest rank of experts has {more} more than the mean"
    return (even, copies_text(trained.habits)) if trained.strategy.ep > 1 else (even,)


def _refuse_other(system: System | None, npu_name: str) -> None:
    if system is not None and not system.is_of(npu_name):
        expected = f"expected {system.npu}, whose constants {system.label} holds"
        raise SpecError(Fault(f"got {npu_name}", expected, path="gpu_type"))


def fastest_microbatch(
    run: TrainingRun, *, is_row: bool = True, system: System | None = None
) -> PlannedRun:
    """A run with the microbatch that is fastest of those that fit; the smallest if none does.

    Raises
    ------
    SpecError
        As :func:`planned_run`.
    """
    smallest = planned_run(replace(run, microbatch=1), is_row=is_row, system=system)
    found = [one for one in _microbatches(run, smallest, is_row=is_row) if one.fits]
    best = min(found, key=lambda one: one.step_time_s) if found else smallest
    size = int(best.strategy.microbatch)
    what = "the fastest that fits" if found else "the smallest, as none fits"
    return replace(best, notes=(*best.notes, f"microbatches of {size}, {what}"))


def _microbatches(run: TrainingRun, smallest: PlannedRun, *, is_row: bool) -> Iterator[PlannedRun]:
    per_replica = int(smallest.strategy.n_microbatches)
    for size in range(1, per_replica + 1):
        one = replace(smallest.strategy, microbatch=size)
        if per_replica % size == 0 and is_schedulable(one):
            one_run = replace(run, microbatch=size)
            planned = planned_run(one_run, is_row=is_row, system=smallest.system)
            yield planned
            if not planned.fits:
                return


def _library(run: TrainingRun, *, is_row: bool) -> tuple[LibraryDefaults, Notes]:
    try:
        return library_named(run.parallel_style), ()
    except SpecError as error:
        if not is_row:
            faults = (replace(one, path="parallel_style") for one in error.faults)
            raise type(error)(*faults) from None
    note = f"{run.parallel_style!r} is no known library: defaults of {MEGATRON_CORE}"
    return LIBRARIES[MEGATRON_CORE], (note,)


def tapered(nics: Nics, run: TrainingRun) -> Nics:
    """NICs with the taper that a run names.

    Raises
    ------
    SpecError
        For leaves without a taper, which change nothing.
    """
    if run.taper is None:
        if run.nodes_per_leaf is None:
            return nics
        got, expected = f"got {run.nodes_per_leaf} nodes per leaf", "expected them with a taper"
        raise SpecError(Fault(got, expected, "add a taper, such as 2", "nodes_per_leaf"))
    return replace(nics, taper=run.taper, nodes_per_leaf=run.nodes_per_leaf)


def _nics(run: TrainingRun, npu_name: str, *, is_row: bool) -> Nics:
    """NICs that a run names, or that its remarks tell of; else the usual ones."""
    if run.fabric:
        try:
            return named_nics(run.fabric)
        except SpecError:
            if not is_row:
                raise
    return nics_of(npu_name, f"{run.fabric} {run.gpu_type} {run.notes}")
