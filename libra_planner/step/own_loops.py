"""The step of a whole model whose layers follow a loop of the plan's own (C5, C17).

The loop is the time of one layer for one microbatch; the pipeline's formula puts layers together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.step import expression as tree
from libra_planner.step.layers import (
    COMPUTE_PARTS,
    Activity,
    Load,
    LoopLayer,
    Quantity,
    TrainingLoop,
    refuse_incomplete,
)
from libra_planner.step.model_step import StepBuilder, TrainedModel
from libra_planner.step.pricing import NodePricing
from libra_planner.workload import volumes
from libra_planner.workload.operations import Phase
from libra_planner.workload.operators import LayerWork, Work
from libra_planner.workload.strategy import PipelineSchedule
from libra_planner.workload.volumes import Exchange, Exchanges

_ACTIVITIES: Mapping[str, Activity] = {
    "tp": Activity.TP,
    "cp": Activity.CP,
    "ep": Activity.EP,
    "etp": Activity.EP,
}
_GRADIENTS = Quantity(Phase.WEIGHT_GRAD, Activity.DP)


@dataclass(frozen=True)
class LoopedStep(StepBuilder[tree.Node]):
    """A step whose layers follow a loop.

    ``weight_grad.dp`` is the exchange of gradients and weights of a step, spread evenly over the
    layers of the microbatches that it may hide beside: those of the last, with ZeRO 3 of all.

    Parameters
    ----------
    loop : of a layer.
    prices : of exchanges, those of ``pricing``.
    gradients : a layer's share of the exchange of gradients; ``None`` in other microbatches.
    """

    loop: TrainingLoop = field(kw_only=True)
    prices: NodePricing = field(kw_only=True)
    gradients: Load | None = field(kw_only=True, default=None)

    def passes(
        self, work: LayerWork, exchanges: Exchanges, *, is_layer: bool = False
    ) -> tuple[tree.Node, tree.Node, Any]:
        """The loop's time, as a forward pass and nothing else."""
        layer = self._loop_layer(work, exchanges, is_layer=is_layer)
        return layer.time(self.loop.term), tree.ZERO, 0.0

    def _loop_layer(self, work: LayerWork, exchanges: Exchanges, *, is_layer: bool) -> LoopLayer:
        loads = {**self._compute(work), **self._communication(exchanges)}
        if is_layer and self.gradients is not None:
            loads[_GRADIENTS] = self.gradients
        return LoopLayer(loads, self._n_dims, contention=self.loop.contention)

    @property
    def _n_dims(self) -> int:
        return self.prices.network.topology.n_dims

    def _compute(self, work: LayerWork) -> dict[Quantity, Load]:
        """By phase, in parts where the loop names these."""
        by_phase = {
            Phase.FORWARD: work.forward,
            Phase.INPUT_GRAD: work.backward.without(work.weight_grad),
            Phase.WEIGHT_GRAD: work.weight_grad,
        }
        seconds: dict[Quantity, float] = {}
        for phase, one in by_phase.items():
            for part, part_s in self._parts_s(one).items():
                key = Quantity(phase, part if self._names_parts(phase) else Activity.COMPUTE)
                seconds[key] = seconds.get(key, 0.0) + part_s
        none = (0.0,) * self._n_dims
        return {key: Load("compute", tree.Constant(s), none) for key, s in seconds.items() if s}

    def _parts_s(self, work: Work) -> dict[Activity, float]:
        """Seconds; what is left of differences of equal numbers is none."""
        imbalance = self.trained.constants.imbalance
        found = work.linear_s, work.attention_s, imbalance * work.experts_s, work.stream_s
        return {part: max(0.0, float(s)) for part, s in zip(COMPUTE_PARTS, found, strict=True)}

    def _names_parts(self, phase: Phase) -> bool:
        named = self.loop.quantities
        return any(one.phase is phase and one.activity in COMPUTE_PARTS for one in named)

    def _communication(self, exchanges: Exchanges) -> dict[Quantity, Load]:
        """By phase and axis; inputs that are gathered again are for gradients of weights."""
        several: dict[Quantity, list[Exchange]] = {}
        for one in exchanges.forward:
            key = Quantity(Phase.FORWARD, _ACTIVITIES[one.axis])
            several.setdefault(key, []).append(one)
        for one in exchanges.backward:
            is_inputs = one.hides and one.axis == "tp"
            phase = Phase.WEIGHT_GRAD if is_inputs else Phase.INPUT_GRAD
            several.setdefault(Quantity(phase, _ACTIVITIES[one.axis]), []).append(one)
        loads = {key: self._load(key, found) for key, found in several.items()}
        return {key: load for key, load in loads.items() if load.time != tree.ZERO}

    def _load(self, key: Quantity, exchanges: Sequence[Exchange], share: float = 1.0) -> Load:
        """Exchanges one after the other; those of experts as long as the busiest rank's."""
        if key.activity is Activity.EP:
            share *= float(self.trained.constants.imbalance)
        prices = self.prices
        time = tree.scale(share, tree.add(map(prices.exchange, exchanges)))
        sent = share * np.sum([prices.traffic_bytes(one) for one in exchanges], axis=0)
        name = f"{key.phase.value.replace('_', ' ')} {key.activity.value.upper()}"
        load, model = Load(name, time, tuple(sent.tolist())), prices.model.while_competing
        if model is None:
            return load
        beside = map(replace(prices, model=model).exchange, exchanges)
        return replace(load, competing=tree.scale(share, tree.add(beside)))

    def between_sends(self) -> Iterable[tree.Node]:
        """None: a loop does not say when a pass ends; its sends hide in all of it."""
        return ()

    def beside(self, window: tree.Node, gradients: Sequence[Exchange], hidden: Any) -> tree.Node:
        """The longest stage's microbatches that gradients are exchanged beside, as the loop says.

        Every stage exchanges what the fullest one does. Sends that hide do not hide behind it.
        """
        n, sent = float(hidden), tree.add(map(self.prices.exchange, gradients))
        if not n or sent == tree.ZERO:
            return tree.add([window, sent])
        found = []
        for kind in self.trained.stages:
            n_layers = kind.n_dense + kind.n_experts + kind.has_logits * self.trained.model.n_mtp
            share = self._load(_GRADIENTS, gradients, 1 / (n * float(n_layers)))
            found.append(replace(self, gradients=share).one_microbatch(kind))
        behind = self.sent
        if self.trained.strategy.overlap.p2p:
            found.append(tree.add([behind, tree.scale(1 / n, sent)]))
            behind = tree.ZERO
        return tree.scale(n, tree.add([tree.maximum(found), behind]))

    def refuse_unreadable(self, name: str) -> None:
        """Refuse a loop that cannot be that of a layer of this model.

        Raises
        ------
        SpecError
            For one of a step, with zero bubble, of compute both whole and in parts, or without
            something that a layer does.
        """
        path = f"training_loop.{'layer' if self.loop.per_layer else 'step'}"
        if not self.loop.per_layer:
            expected = "expected layer: the pipeline puts layers together"
            fix = "write layer, the time of one layer for one microbatch"
            raise SpecError(Fault("got a loop of the step of a whole model", expected, fix, path))
        schedule = self.trained.strategy.schedule
        if schedule is not PipelineSchedule.ONE_F_ONE_B:
            got = f"got a loop with the schedule {schedule.value}"
            expected = "expected 1f1b: zero bubble moves gradients of weights, which a loop cannot"
            fix = "write schedule: 1f1b, or remove training_loop"
            raise SpecError(Fault(got, expected, fix, path))
        self._refuse_mixed(path)
        refuse_incomplete(self.loop, self._all_layers(), name)

    def _refuse_mixed(self, path: str) -> None:
        for one in sorted(self.loop.quantities, key=str):
            if one.activity is Activity.COMPUTE and self._names_parts(one.phase):
                parts = [str(Quantity(one.phase, part)) for part in COMPUTE_PARTS]
                got = f"got {one} beside a part of it"
                expected = f"expected it whole or in parts: {', '.join(parts)}"
                raise SpecError(Fault(got, expected, f"write the parts for {one}", path))

    def _all_layers(self) -> Iterable[LoopLayer]:
        """Every kind of layer that the model has, with gradients where they are exchanged."""
        trained = self.trained
        model, operators = trained.model, trained.operators
        several = self.gradient_exchanges()
        whole = replace(self, gradients=self._load(_GRADIENTS, several) if several else None)
        for has_experts in {False, model.experts is not None}:
            work = operators.layer(has_experts=has_experts)
            exchanges = self.layer_exchanges(has_experts=has_experts)
            yield whole._loop_layer(work, exchanges, is_layer=True)
        about = model, trained.strategy, trained.formats
        ends = (
            (operators.embedding(), volumes.embedding_exchanges(*about)),
            (operators.logits(), volumes.logits_exchanges(*about)),
        )
        for work, exchanges in ends:
            yield self._loop_layer(work, exchanges, is_layer=False)


def step_builder(
    trained: TrainedModel, prices: NodePricing, loop: TrainingLoop | None
) -> StepBuilder[tree.Node]:
    """What puts a step together: by the overlap of each axis, or by a loop."""
    if loop is None:
        return StepBuilder(trained, prices)
    return LoopedStep(trained, prices, loop=loop, prices=prices)
