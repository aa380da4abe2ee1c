"""What a training run takes by the model of a step: its time, its parts, its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from libra_planner.errors import Fault, SpecError
from libra_planner.inputs.clusters import RunFabric, nics_of, run_fabric
from libra_planner.inputs.training_runs import TrainingRun
from libra_planner.plan.npus import CatalogueNpuSpec, canonical_name, catalogue_npu, npu_kernels
from libra_planner.step.model_step import TrainedModel
from libra_planner.step.model_training import ModelTraining
from libra_planner.step.pipeline import refuse_unschedulable
from libra_planner.studies.run_strategies import run_model, run_strategy
from libra_planner.workload.clock import training_kernels
from libra_planner.workload.defaults import LibraryDefaults, library_named
from libra_planner.workload.operations import Covers, Workload
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import (
    AttentionFlops,
    Transformer,
)


@dataclass(frozen=True)
class PlannedRun:
    """A run with everything that its source left open filled in.

    Parameters
    ----------
    trained : model, strategy and kernels.
    fabric : what it stands on.
    npu, npu_name : of the catalogue.
    library : whose defaults fill in what the source leaves open.
    notes : what was filled in, for people.
    """

    trained: TrainedModel
    fabric: RunFabric
    npu: CatalogueNpuSpec
    npu_name: str
    library: LibraryDefaults
    notes: tuple[str, ...] = ()

    @property
    def strategy(self) -> Strategy:
        """Degrees, batch and the rest."""
        return self.trained.strategy

    @property
    def model(self) -> Transformer:
        """Its shape."""
        return self.trained.model

    @cached_property
    def training(self) -> ModelTraining:
        """The model on the fabric."""
        one, network = self.strategy, self.fabric.network
        degrees = {axis: int(getattr(one, axis)) for axis in ("tp", "cp", "dp", "pp", "ep", "etp")}
        groups = placed_groups(network.topology, degrees)
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
            Recompute.SELECTIVE: whole - 6 * model.n_multiplying_parameters,
            Recompute.FULL: whole,
        }[Recompute(int(self.strategy.recompute))]
        return (whole + again / 3) * self.tokens_per_s_per_gpu

    @property
    def mfu_fraction(self) -> float:
        """Model FLOP/s over the dense peak of the data type."""
        return self.model_flops_per_gpu() / (self.npu.peak_TFLOPps[self.strategy.dtype] * 1e12)


def planned_run(run: TrainingRun) -> PlannedRun:
    """A run as it can be told.

    Raises
    ------
    SpecError
        For what its source does not say and nobody may guess, and for what is not modelled.
    """
    named = canonical_name(run.gpu_type, None, None)
    npu = catalogue_npu(named, None, None, path="gpu_type")
    library = library_named(run.parallel_style)
    model = run_model(run)
    strategy, notes = run_strategy(run, library)
    refuse_unschedulable(strategy)
    kernels = npu_kernels(named)
    kernels = training_kernels(kernels, npu.tdp_W)
    if strategy.dtype not in kernels.peak_flops:
        got, known = f"got {strategy.dtype} on {named}", ", ".join(kernels.peak_flops)
        raise SpecError(Fault(got, f"expected one of {known}", path="precision"))
    fabric = run_fabric(
        named, npu, int(strategy.n_npus), nics_of(named, f"{run.gpu_type} {run.notes}")
    )
    trained = TrainedModel(model, strategy, kernels, library.formats, library.habits)
    return PlannedRun(trained, fabric, npu, named, library, (*notes, *fabric.notes))
