"""The step of a whole model that a plan trains: pipeline, experts, kernels, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from libra_planner.errors import Fault, Infeasible, Place, SpecError, unknown_name
from libra_planner.fabric.topology import Topology
from libra_planner.plan import models, prices
from libra_planner.plan.npus import (
    CatalogueNpuSpec,
    canonical_name,
    catalogue,
    catalogue_npu,
    npu_kernels,
)
from libra_planner.plan.steps.kinds import SHARE, can_be_whole, npu_name, whole_model_like
from libra_planner.plan.steps.repairs import Standing, change_that_stands
from libra_planner.plan.steps.strategies import (
    DegreesSpec,
    ExchangesSpec,
    copies_text,
    plan_strategy,
    strategy_words,
)
from libra_planner.plan.systems import System
from libra_planner.plan.workloads import load_transformer, transformer_spec
from libra_planner.reading import bundled
from libra_planner.reading.rules import MemoryLimits
from libra_planner.step.bands import beyond_measured_chunks
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.layers import Training, TrainingLoop
from libra_planner.step.limits import refuse_impossible, refuse_unplaceable_experts
from libra_planner.step.memory_use import MemoryUse, certain_bytes
from libra_planner.step.model_step import TrainedModel
from libra_planner.step.model_training import ModelTraining
from libra_planner.step.pipeline import refuse_unschedulable
from libra_planner.units import BYTES_PER_GB, FLOPS_PER_TFLOPS, format_bytes
from libra_planner.workload.clock import STEP_CONSTANTS, training_kernels
from libra_planner.workload.defaults import LIBRARIES, MEGATRON_CORE, LibraryDefaults
from libra_planner.workload.kernels import Kernels
from libra_planner.workload.operations import Covers, Group, Workload, communicators_from_degrees
from libra_planner.workload.placement import DEFAULT_ORDER, placed_groups, refuse_other_npus
from libra_planner.workload.strategy import Strategy
from libra_planner.workload.transformer import Transformer
from libra_planner.workload.volumes import Habits


def is_whole(entry: models.TrainingSpec) -> bool:
    """Whether a plan means the step of a whole model: its NPU has kernels instead of a share."""
    npu = entry.npu
    return isinstance(npu, prices.NamedNpuSpec) and npu.efficiency_fraction is None


def misplaced_faults(entry: models.TrainingSpec, path: Path | None) -> Iterator[Fault]:
    """Keys of the step of a whole model in a plan without one, of this workload file."""
    if is_whole(entry):
        return
    fix = "remove it"
    if path is not None and can_be_whole(path):
        fix = f"write npu: {npu_name(entry)} without efficiency_fraction, or remove it"
    expected = "expected it with an NPU whose kernels are known"
    degrees = entry.parallelism
    if isinstance(degrees, DegreesSpec):
        for name in sorted(degrees.step_keys):
            yield Fault(f"got {name}", expected, fix, f"parallelism.{name}")
    for name in sorted(
        {"library", "overlap", "memory", "sequence_tokens"} & entry.model_fields_set
    ):
        yield Fault(f"got {name}", expected, fix, name)


def loop_faults(entry: models.TrainingSpec, plan: models.CommonSpec) -> Iterator[Fault]:
    """Keys of training loops that the step of a whole model does not read."""
    has_loop = plan.training_loop is not None
    step = "with the step of a whole model"
    if "bubble_fraction" in plan.model_fields_set:
        fix = "write pp and interleave: the bubble follows from them"
        expected = "expected the pipeline's own order"
        yield Fault(f"got bubble_fraction {step}", expected, fix, "bubble_fraction")
    if "contention" in plan.model_fields_set and not has_loop:
        fix = "remove it: what overlaps shares the fabric"
        expected = "expected it with a training_loop"
        yield Fault(f"got contention {step}", expected, fix, "contention")
    hidden = [] if entry.overlap is None else sorted(entry.overlap.model_fields_set - {"p2p"})
    if has_loop and hidden:
        expected = "expected p2p alone: a training_loop says what hides"
        got = f"got {', '.join(hidden)} beside training_loop"
        yield Fault(got, expected, f"remove {', '.join(hidden)}, or training_loop", "overlap")


@dataclass(frozen=True)
class WholeStep:
    """The step of a whole model in a plan.

    Parameters
    ----------
    entry : what the plan says of it.
    path : of the workload's file.
    beside : folder of the plan.
    system : the user's file that the plan names; ``None`` for published constants.
    loop : of the plan, of a layer; ``None`` where overlap says what hides.
    """

    entry: models.TrainingSpec
    path: Path
    beside: Path
    system: System | None = None
    loop: TrainingLoop | None = None

    def training(self, network: Network) -> ModelTraining:
        """The model on the fabric.

        Raises
        ------
        SpecError
            For a strategy that cannot run, or does not fit the fabric's dimensions.
        """
        self._refuse_part(network)
        degrees = self._degrees
        numbers, order = _numbers(degrees), degrees.order or DEFAULT_ORDER
        refuse_unplaceable_experts(self.model, network.topology, numbers, order)
        try:
            strategy, groups = self._placed(network.topology, degrees)
        except SpecError as error:
            raise self._corrected(error, network.topology) from None
        library, kernels = self.library, self.kernels
        said = self.entry.exchanges or ExchangesSpec()
        ways = said.formats(library.formats), self._habits
        constants = self._own.step_constants if self._own else STEP_CONSTANTS
        trained = TrainedModel(self.model, strategy, kernels, *ways, constants)
        workload = Workload(
            self.path.stem,
            (),
            int(strategy.global_batch),
            covers=Covers.STEP,
            tokens_per_step=int(strategy.global_batch) * self.model.sequence_tokens,
        )
        named = self._npu
        name = canonical_name(named.name, named.catalogue, self.beside)
        about = self.memory, self._npu_peak_flops, name
        found = ModelTraining(workload, trained, groups, network, *about, self.loop)
        found.refuse_unreadable_loop()
        if self._own is None:
            return found
        return replace(found, own_errors=self._own.step_bands, system=self._own.label)

    def _placed(
        self, topology: Topology, degrees: DegreesSpec
    ) -> tuple[Strategy, dict[str, Group]]:
        """A strategy that can run, and its groups on the dimensions."""
        numbers, order = _numbers(degrees), degrees.order or DEFAULT_ORDER
        refuse_other_npus(topology, numbers, order)  # The cause of other faults.
        strategy = self._strategy_of(degrees)
        refuse_impossible(self.model, strategy)
        refuse_unschedulable(strategy)
        return strategy, placed_groups(topology, numbers, order)

    def _corrected(self, error: SpecError, topology: Topology) -> SpecError:
        """The same error, with degrees that pass all other checks, too."""
        paths = ["parallelism"]
        if self._degrees.order is None:  # In another order, its order may be what is wrong.
            paths += ["parallelism.tp", "parallelism.cp", "parallelism.dp"]
        is_of_them = len(error.faults) == 1 and error.faults[0].path in paths
        if not is_of_them or self.entry.global_batch is None:
            return error
        dense = {axis: getattr(self._degrees, axis) for axis in DEFAULT_ORDER}
        fix = change_that_stands(dense, topology.n_npus, partial(self._standing, topology))
        other = fix or "change more than two degrees, with ep and interleave, or the topology"
        return SpecError(replace(error.faults[0], fix=other))

    def stands(self, topology: Topology, strategy: Strategy) -> bool:
        """Whether another strategy can run, and its groups have a place on the dimensions."""
        try:
            refuse_impossible(self.model, strategy)
            refuse_unschedulable(strategy)
            placed_groups(topology, _numbers(strategy), self._degrees.order or DEFAULT_ORDER)
        except SpecError:
            return False
        return True

    def _standing(self, topology: Topology, change: Mapping[str, int]) -> Standing:
        """What becomes of the strategy with other degrees."""
        try:
            strategy, _ = self._placed(topology, self._degrees.model_copy(update=change))
        except SpecError:
            return Standing.REFUSED
        fits = self._memory_of(strategy).fits
        return Standing.OVER_MEMORY if fits is False else Standing.RUNS

    def _refuse_part(self, network: Network) -> None:
        """Refuse models without embedding and logits: kernels are those of a whole step (C21)."""
        if self.model.has_logits:
            return
        got = f"got {self._npu.name} without efficiency_fraction for {self.path.stem}"
        expected = "expected a model with embedding and logits: this one is part of a step"
        fix = ", or ".join([self._whole_model(network), *self._share_of_peak(network.topology)])
        raise SpecError(Fault(got, expected, fix, "npu"))

    def _whole_model(self, network: Network) -> str:
        """A whole model for the plan, with its degrees where they suit it."""
        name = whole_model_like(self.path)
        fix = f"train a whole model, such as 'workload: {name}'"
        other = replace(self, path=bundled.resolve("workloads", name, None))
        try:
            fits = other.training(network) and other.memory.fits is not False
        except SpecError:
            fits = False
        return fix if fits else f"{fix} with 'parallelism: auto'"

    def _share_of_peak(self, topology: Topology) -> Iterator[str]:
        """An NPU and degrees for a part of a step, where these and the batch suit the fabric."""
        share = f"{{name: {self._npu.name}, efficiency_fraction: {SHARE:g}}}"
        npu = self._npu.model_copy(update={"efficiency_fraction": SHARE})
        others = list(misplaced_faults(self.entry.model_copy(update={"npu": npu}), self.path))
        tp, dp = self._degrees.tp, topology.n_npus // self._degrees.tp
        if topology.n_npus % tp or any(not x.path.startswith("parallelism.") for x in others):
            return
        is_other = bool(others) or dp != self._degrees.dp
        try:
            communicators_from_degrees(topology, {"tp": tp, "dp": dp})
        except SpecError:
            return
        if (self.entry.global_batch or dp) % dp == 0:
            degrees = f" and parallelism: {{tp: {tp}, dp: {dp}}}" if is_other else ""
            yield f"write npu: {share}{degrees}"

    @cached_property
    def _degrees(self) -> DegreesSpec:
        found = self.entry.parallelism
        if isinstance(found, DegreesSpec):
            return found
        fix = "write tp, dp and the like, or npu with efficiency_fraction"
        raise SpecError(Fault("got group sizes per phase", "expected degrees", fix, "parallelism"))

    @cached_property
    def library(self) -> LibraryDefaults:
        """Whose defaults hold."""
        name = self.entry.library or MEGATRON_CORE
        if name not in LIBRARIES:
            (fault,) = unknown_name("training library", name, list(LIBRARIES)).faults
            raise SpecError(replace(fault, path="library"))
        return LIBRARIES[name]

    @property
    def _habits(self) -> Habits:
        """Ways of exchanges: the plan's, else the library's."""
        return (self.entry.exchanges or ExchangesSpec()).habits(self.library.habits)

    @cached_property
    def _npu(self) -> prices.NamedNpuSpec:
        named = self.entry.npu
        if isinstance(named, prices.NamedNpuSpec):
            return named
        raise SpecError(Fault("got no NPU", "expected npu: {name: ...}", path="npu"))

    @cached_property
    def _catalogue_npu(self) -> CatalogueNpuSpec:
        named = self._npu
        return catalogue_npu(named.name, named.catalogue, self.beside, path="npu.name")

    @cached_property
    def kernels(self) -> Kernels:
        """Of the NPU in training."""
        named, npu = self._npu, self._catalogue_npu
        found = npu_kernels(named.name, named.catalogue, self.beside)
        if named.data_type not in found.peak_flops:
            (fault,) = unknown_name(
                f"data type of {named.name}", named.data_type, found.peak_flops
            ).faults
            raise SpecError(replace(fault, path="npu.data_type"))
        if self._own is None:
            return training_kernels(found, npu.tdp_W)
        return training_kernels(self._own.kernels_with(found), npu.tdp_W, self._own.step_constants)

    @cached_property
    def _own(self) -> System | None:
        """The user's file, where it is of this NPU."""
        npus = catalogue(self._npu.catalogue, self.beside).npus
        is_own = self.system is not None and self.system.is_of(self._npu.name, npus)
        return self.system if is_own else None

    @cached_property
    def _npu_peak_flops(self) -> float:
        """Of the data sheet, for the data type."""
        return self._catalogue_npu.peak_TFLOPps[self._npu.data_type] * FLOPS_PER_TFLOPS

    @cached_property
    def model(self) -> Transformer:
        """Its shape, with the plan's sequence length."""
        found = load_transformer(self.path)
        n_tokens = self.entry.sequence_tokens
        if n_tokens is None:
            return found
        n_positions = n_tokens if found.n_positions else 0
        return replace(found, sequence_tokens=n_tokens, n_positions=n_positions)

    @cached_property
    def strategy(self) -> Strategy:
        """Degrees, batch and the rest."""
        return self._strategy_of(self._degrees)

    def _strategy_of(self, degrees: DegreesSpec) -> Strategy:
        """With the plan's batch, and the library's defaults."""
        batch = self.entry.global_batch
        if batch is None:
            fix = "add e.g. 'global_batch: 1536' (sequences per step)"
            got = Fault(
                "got nothing", f"expected a value for {self.path.stem}", fix, "global_batch"
            )
            raise SpecError(got)
        overlap = self.entry.overlap
        return plan_strategy(self.library, degrees, batch, self._npu.data_type, overlap)

    @cached_property
    def memory(self) -> MemoryUse:
        """What it needs on an NPU."""
        return self._memory_of(self.strategy)

    def _memory_of(self, strategy: Strategy) -> MemoryUse:
        room = self._npu.memory or self._catalogue_npu.memory_GB * BYTES_PER_GB
        return MemoryUse(self.model, strategy, self.library.memory, room)

    def notes(self, training: ModelTraining) -> tuple[str, ...]:
        """What the step takes for granted, for people."""
        found = [*transformer_spec(self.path).assumptions, *self.memory.notes]
        other = self.system
        if other is not None and other.computes and self._own is None:
            held = f"{other.computes} of {other.label} are of {other.npu}"
            found.append(f"{held}: those of {self._npu.name} stay published")
        if self.model.is_tied and self.strategy.pp > 1:
            found.append(
                "check slows the gradient of the tied embedding as the sends between stages, and "
                "does not route it by itself"
            )
        n_chunks = int(self.strategy.interleave) if self.strategy.pp > 1 else 1
        found += filter(None, [beyond_measured_chunks(n_chunks)])
        if (self.entry.library or MEGATRON_CORE) == MEGATRON_CORE and self.strategy.zero > 1:
            found.append(
                f"ZeRO {self.strategy.zero} asks for Megatron FSDP; the distributed optimizer has "
                "ZeRO 1: parallelism: {zero: 1, rest: auto}"
            )
        if self.model.experts is not None:
            more = training.trained.constants.imbalance - 1
            found.append(f"the busiest rank of experts has {more:.0%} more tokens than the mean")
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        """Strategy and kernels, for people."""
        named = self._npu
        name = canonical_name(named.name, named.catalogue, self.beside)
        is_measured = self.kernels.is_measured(named.data_type)
        how = "as measured" if is_measured else "by its data sheet, not measured"
        own = self._own
        if own is not None and own.computes:
            how = f"{how}, {own.computes} with the constants of {own.label}"
        kernels = f"kernels of {name} in {named.data_type} {how}"
        has_loop = self.loop is not None
        said = strategy_words(self.strategy, self.library, has_loop=has_loop)
        if self.model.experts is not None and self.strategy.ep > 1:
            said.append(copies_text(self._habits))
        return (*said, kernels)


_OTHERWISE = "NPUs with more memory; 'parallelism: auto' tells whether another strategy fits these"
"""What may help where no single change of a strategy does."""


def refuse_too_large(
    use: MemoryUse,
    name: str,
    limit: str = "",
    *,
    place: Place | None = None,
    stands: Callable[[Strategy], bool] | None = None,
) -> None:
    """Refuse a model that does not fit its NPUs (C19).

    Raises
    ------
    Infeasible
        With what is missing, and what would make it fit.
    """
    if use.fits is not False or use.npu_memory_bytes is None:
        return
    needs, room = format_bytes(use.total_bytes), format_bytes(use.npu_memory_bytes)
    has = f", above {limit}" if limit else f" and has {room}"
    fixes = [
        f"{' and '.join(one.changes)} ({format_bytes(float(one.memory.total_bytes))})"
        for one in use.fixes(stands)
    ]
    fix = ", or with ".join(fixes) or _OTHERWISE
    anyway = "" if limit else ". 'memory: ignore' computes it anyway"
    at = "" if place is None else f"{place}: "
    raise Infeasible(
        f"{at}{name} does not fit: an NPU of stage {int(use.parts.stage)} needs {needs}{has}; "
        f"it would fit with {fix}{anyway}"
    )


def refuse_uncertain(
    use: MemoryUse,
    name: str,
    *,
    place: Place | None = None,
    stands: Callable[[Strategy], bool] | None = None,
) -> None:
    """Refuse a model, too, that fits its NPUs by less than such figures are off.

    Raises
    ------
    Infeasible
        With what is missing, and what would make it fit.
    """
    room = use.npu_memory_bytes
    if room is None:
        return
    within = replace(use, npu_memory_bytes=certain_bytes(room))
    most, has = format_bytes(certain_bytes(room)), format_bytes(room)
    limit = f"the {most} that certainly fit {has} ('memory: certain')"
    refuse_too_large(within, name, limit, place=place, stands=stands)


def refuse_over(
    trainings: Sequence[Training | ModelTraining], limits: MemoryLimits, rule: str, place: Place
) -> None:
    """Refuse models that need more than a rule allows, or less.

    Raises
    ------
    Infeasible
        With what is missing, and what would meet the rule.
    SpecError
        For a step whose memory is not known.
    """
    for one in trainings:
        if not isinstance(one, ModelTraining) or one.memory is None:
            fix = "name an NPU without efficiency_fraction, or remove the rule"
            got = f"got {rule!r} for {one.workload.name}"
            raise SpecError(Fault(got, "expected the step of a whole model", fix))
        if one.memory.total_bytes < limits.least_bytes:
            needs = format_bytes(one.memory.total_bytes)
            got = f"an NPU needs {needs} for {one.workload.name}, below the rule {rule!r}"
            raise Infeasible(f"{place}: {got}; change its lower limit")
        within = replace(one.memory, npu_memory_bytes=limits.most_bytes)
        refuse_too_large(within, one.workload.name, f"the rule {rule!r}", place=place)


def _numbers(degrees: DegreesSpec | Strategy) -> dict[str, int]:
    """Degrees of every axis."""
    return {axis: int(getattr(degrees, axis)) for axis in ("tp", "cp", "dp", "pp", "ep", "etp")}
