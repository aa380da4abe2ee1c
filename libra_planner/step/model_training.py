"""A model under a strategy on a fabric: what plans train where they say more than tp and dp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from libra_planner.frozen import Frozen
from libra_planner.step import expression as tree
from libra_planner.step.bands import kind_of_step, npu_family, published_band
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.models import CollectiveModel, Ideal
from libra_planner.step.critical_path import COMPUTE, Share, critical_path
from libra_planner.step.layers import CONTENTION, TrainingLoop
from libra_planner.step.memory_use import MemoryUse
from libra_planner.step.model_step import (
    StepBuilder,
    StepParts,
    TrainedModel,
    step_exchanges,
)
from libra_planner.step.own_loops import LoopedStep, step_builder
from libra_planner.step.pricing import NodePricing, parts
from libra_planner.workload import operations as work
from libra_planner.workload.volumes import SEND_RECV, Exchange


@dataclass(frozen=True)
class ModelTraining(Frozen):
    """A model in training on a fabric, as :class:`~libra_planner.step.layers.Training` is.

    Parameters
    ----------
    workload : its name, batch and what it covers; without operations.
    trained : model, strategy and kernels.
    groups : of every axis.
    network : the fabric as its collectives meet it.
    memory : what it needs on an NPU; ``None`` where nobody asks.
    npu_peak_flops : dense FLOP/s of an NPU by its data sheet; 0 where nobody asks.
    npu_name : of the catalogue; empty where nobody asks.
    loop : of a layer, in place of the overlap of each axis; ``None`` without one.
    own_errors : what nine of ten errors of the user's own runs stay below, by kind.
    system : the user's system file that has them; empty for published constants.
    """

    workload: work.Workload = field(repr=False)
    trained: TrainedModel = field(repr=False)
    groups: Mapping[str, work.Group]
    network: Network
    memory: MemoryUse | None = None
    npu_peak_flops: float = 0.0
    npu_name: str = ""
    loop: TrainingLoop | None = None
    own_errors: Mapping[str, float] = field(default_factory=dict, repr=False)
    system: str = ""

    @cached_property
    def communications(self) -> tuple[work.Communication, ...]:
        """The distinct collectives of a step; without sends from one rank to the next."""
        found: dict[tuple[work.Phase, work.Collective, work.Group, bool], int] = {}
        for phase, one in self._exchanges():
            for i, (part, group) in enumerate(parts(one, self.groups[one.axis])):
                key = phase, part, group, i > 0
                found[key] = found.get(key, 0) + round(float(one.count)) * (group.n_npus > 1)
        return tuple(
            work.Communication(phase, part, group, count, elsewhere)
            for (phase, part, group, elsewhere), count in found.items()
            if count
        )

    @cached_property
    def sends(self) -> tuple[work.Send, ...]:
        """The distinct sends of a step: between stages of a pipeline, and around rings of cp."""
        around = int(self.trained.strategy.interleave) > 1
        of_stages = work.SendPattern.PIPELINE_AROUND if around else work.SendPattern.PIPELINE
        patterns = {"pp": of_stages, "cp": work.SendPattern.RING}
        found: dict[tuple[work.Phase, str, float], int] = {}
        for phase, one in step_exchanges(self.trained):
            if one.kind == SEND_RECV and self.groups[one.axis].n_npus > 1:
                key = phase, one.axis, float(one.size_bytes)
                found[key] = found.get(key, 0) + round(float(one.count))
        return tuple(
            work.Send(phase, axis, patterns[axis], self.groups[axis], size_bytes, count)
            for (phase, axis, size_bytes), count in found.items()
            if count
        )

    def _exchanges(self) -> Iterator[tuple[work.Phase, Exchange]]:
        for phase, one in step_exchanges(self.trained):
            if one.kind != SEND_RECV and self.groups[one.axis].n_npus > 1:
                yield phase, one

    @cached_property
    def _hash(self) -> int:
        return hash((self.workload, self.communications, self.network))

    def __hash__(self) -> int:
        """By what it holds, found once."""
        return self._hash

    @property
    def step_class(self) -> tuple[str, str]:
        """What errors of published runs are told for, such as H100 and ``dense bf16`` (C23)."""
        trained = self.trained
        has_experts = trained.model.experts is not None
        kind = kind_of_step(trained.strategy.dtype, has_experts=has_experts)
        return npu_family(self.npu_name), kind

    @property
    def error_fraction(self) -> float | None:
        """What nine of ten of their errors stay below; ``None`` without a measured class.

        Errors of the user's own runs come first. A loop of one's own has no published runs.
        """
        if self.loop is not None:
            return None
        published = published_band(*self.step_class)
        usual = None if published is None else published.fraction
        return self.own_errors.get(self.step_class[1], usual)

    @property
    def error_source(self) -> str:
        """Whose errors these are, for people."""
        what, published = " ".join(self.step_class), published_band(*self.step_class)
        if self.step_class[1] in self.own_errors:
            return f"runs of {what} of {self.system}"
        return f"published runs of {what if published is None else published.runs}"

    def model_flops_per_npu(self, step_time_s: float) -> float:
        """FLOP/s of one NPU that the model needs, nothing computed twice, full attention (C18)."""
        n_npus = int(self.trained.strategy.n_npus)
        tokens = self.workload.tokens_per_step or 0
        return self.trained.model.flops_per_token() * tokens / step_time_s / n_npus

    def step_time(self, model: CollectiveModel) -> tree.TimeExpression:
        """T(B) under a model of collectives, seconds (C17)."""
        builder = self._builder(NodePricing(self.network, self.groups, model))
        return tree.TimeExpression(builder.step(), self.network.topology.n_dims)

    def _builder(self, prices: NodePricing) -> StepBuilder[tree.Node]:
        return step_builder(self.trained, prices, self.loop)

    def refuse_unreadable_loop(self) -> None:
        """Refuse a loop that cannot be that of a layer.

        Raises
        ------
        SpecError
            With the reason.
        """
        if self.loop is not None:
            prices = NodePricing(self.network, self.groups, Ideal())
            LoopedStep(self.trained, prices, loop=self.loop, prices=prices).refuse_unreadable(
                self.workload.name
            )

    def parts(
        self, model: CollectiveModel, without: frozenset[str] = frozenset()
    ) -> StepParts[tree.Node]:
        """The step and its parts, exchanges of some axes left out."""
        pricing = NodePricing(self.network, self.groups, model, without)
        return self._builder(pricing).parts()

    def split_s(
        self,
        model: CollectiveModel,
        bandwidth_bytes_per_s: tree.Array,
        shares: Sequence[Share] = (),
    ) -> Mapping[str, float]:
        """The step's time by what takes it, at one vector; the parts add up to it (C5).

        Exposed communication of an axis is what its operations have on the critical path;
        ``contention_s`` is that of several axes. Without communication, stages wait for the one
        that takes longest; the bubble is the rest of what the pipeline waits.

        Parameters
        ----------
        model, bandwidth_bytes_per_s : at which the step is told.
        shares : its critical path, where that is known.
        """
        n_dims = self.network.topology.n_dims

        def seconds(node: tree.Node) -> float:
            return float(tree.TimeExpression(node, n_dims).seconds(bandwidth_bytes_per_s))

        found = dict.fromkeys([f"exposed_{axis}_s" for axis in GROUPS_OF_AXIS], 0.0)
        found["contention_s"] = 0.0
        for share in shares or critical_path(self.step_time(model), bandwidth_bytes_per_s):
            if share.label != COMPUTE:
                found[_part(share.label)] += share.seconds
        bare = self.parts(model, frozenset(_AXES))
        one, mean_s = self.trained.strategy, seconds(bare.mean_stage)
        work_s = mean_s * float(one.n_microbatches)
        waits_s = seconds(bare.pipeline) - work_s
        steady = float(one.n_microbatches) - 1 / float(one.interleave)
        uneven_s = steady * (seconds(bare.busiest) - mean_s)
        found["uneven_stages_s"] = _without_rounding(min(waits_s, uneven_s), work_s)
        found["bubble_s"] = _without_rounding(waits_s - found["uneven_stages_s"], work_s)
        found["optimizer_s"] = float(bare.optimizer_s)
        return {"compute_s": work_s} | found


_ROUNDING = 1e-12
"""Of a difference of two times, relative to them."""


def _without_rounding(difference_s: float, of_s: float) -> float:
    """A wait that is the difference of two times; nothing where only rounding tells them apart.

    >>> _without_rounding(2e-16, 1.0), _without_rounding(-2e-16, 1.0), _without_rounding(0.1, 1.0)
    (0.0, 0.0, 0.1)
    """
    return difference_s if difference_s > _ROUNDING * of_s else 0.0


def _part(label: str) -> str:
    """The part of a step that an operation on its critical path belongs to.

    >>> _part("TP all-gather"), _part("weight grad DP"), _part("contention of EDP and EP on dim2")
    ('exposed_tp_s', 'exposed_dp_s', 'contention_s')
    """
    if label.startswith(CONTENTION):
        return "contention_s"
    return next(f"exposed_{_AXES[x]}_s" for x in label.lower().split() if x in _AXES)


GROUPS_OF_AXIS: Mapping[str, tuple[str, ...]] = {
    "tp": ("tp",),
    "cp": ("cp",),
    "ep": ("ep", "etp"),
    "pp": ("pp",),
    "dp": ("dp", "dp_cp", "edp"),
}
"""Groups whose communication is told together."""

_AXES = {group: axis for axis, groups in GROUPS_OF_AXIS.items() for group in groups}
