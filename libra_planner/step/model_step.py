"""Time of a real training step: layers, stages, pipeline, gradients, optimizer (C15 to C18).

The same code gives nodes of the time expression for one strategy, and seconds for arrays of many:
what differs is how an exchange is priced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Protocol

import numpy as np

from libra_planner.step.algebra import Algebra, Time
from libra_planner.step.pipeline import (
    ZERO_BUBBLE_FILL,
    Stage,
    StageLayers,
    in_order_time,
    pipeline_time,
    second_stage,
    stage_layers,
)
from libra_planner.workload import volumes
from libra_planner.workload.clock import STEP_CONSTANTS, StepConstants
from libra_planner.workload.kernels import Kernels
from libra_planner.workload.operations import Phase
from libra_planner.workload.operators import NO_WORK, LayerWork, Operators, Work
from libra_planner.workload.strategy import PipelineSchedule, Strategy
from libra_planner.workload.transformer import Transformer
from libra_planner.workload.volumes import Exchange, Exchanges, Formats, Habits

_ALL_LAYERS = 3
"""ZeRO stage from which weights are gathered for every microbatch."""

_FORWARD, _BACKWARD, _BOTH = slice(0, 1), slice(1, 2), slice(0, 2)
"""Which passes of a microbatch."""


class Pricing(Protocol[Time]):
    """What exchanges take on a fabric."""

    @property
    def algebra(self) -> Algebra[Time]:
        """Of its times."""

    def seconds(self, seconds: Any) -> Time:
        """A time that no bandwidth changes."""

    def exchange(self, one: Exchange) -> Time:
        """All executions of an exchange, one after the other."""

    def contention(self, exchanges: Iterable[tuple[Exchange, Any]]) -> Time:
        """What the busiest dimension needs for exchanges at the same time, each so often."""


@dataclass(frozen=True)
class TrainedModel:
    """A model, how it is trained, and on what.

    Parameters
    ----------
    model, strategy, kernels : as they say.
    formats, habits : of what is exchanged.
    constants : fitted to step times.
    """

    model: Transformer
    strategy: Strategy
    kernels: Kernels
    formats: Formats = volumes.DEFAULT_FORMATS
    habits: Habits = volumes.DEFAULT_HABITS
    constants: StepConstants = STEP_CONSTANTS

    @cached_property
    def operators(self) -> Operators:
        """Compute of its layers."""
        gradient_bytes = self.formats.gradient_bytes
        by_operator = self.habits.recomputes_by_operator
        return Operators(self.model, self.strategy, self.kernels, gradient_bytes, by_operator)

    @cached_property
    def stages(self) -> tuple[StageLayers, ...]:
        """Kinds of stages of the pipeline."""
        return stage_layers(self.model, self.strategy)

    @cached_property
    def n_dense_parameters(self) -> Any:
        """Parameters of the fullest rank that all its dp and cp ranks hold."""
        layer, with_experts = self.model.dense_layer_parameters, self.model.expert_layer_parameters
        first = self.model.n_embedding_parameters
        last = self.model.n_logits_parameters + (
            self.model.n_embedding_parameters if self.model.is_tied else 0
        )
        most: Any = 0.0
        for stage in self.stages:
            held = stage.n_dense * float(layer.n_dense)
            held = held + stage.n_experts * float(with_experts.n_dense)
            held = held + first * stage.has_embedding + last * stage.has_logits
            most = np.maximum(most, (np.asarray(stage.n) > 0) * held)
        return most / np.asarray(self.strategy.tp)

    @cached_property
    def n_expert_parameters(self) -> Any:
        """Parameters of routed experts of the fullest rank."""
        one = self.strategy
        n_layers: Any = 0.0
        for stage in self.stages:
            n_layers = np.maximum(n_layers, (np.asarray(stage.n) > 0) * stage.n_experts)
        routed = self.model.expert_layer_parameters.n_routed if self.model.experts else 0
        return n_layers * routed / (np.asarray(one.ep) * one.etp)


def step_exchanges(trained: TrainedModel) -> Iterator[tuple[Phase, Exchange]]:
    """What the fullest kinds of stages exchange in a step, each with its number of times."""
    one, formats, habits = trained.strategy, trained.formats, trained.habits
    m = np.asarray(one.n_microbatches)
    most = {
        False: max(float(np.max(x.n_dense)) for x in trained.stages),
        True: max(float(np.max(x.n_experts)) for x in trained.stages),
    }
    found = [
        (n, volumes.layer_exchanges(trained.model, one, has_experts, formats, habits))
        for has_experts, n in most.items()
        if n
    ]
    found.append((1.0, volumes.embedding_exchanges(trained.model, one, formats)))
    found.append((1.0, volumes.logits_exchanges(trained.model, one, formats)))
    found.append((1.0, volumes.pipeline_exchanges(trained.model, one, None, formats, habits)))
    for n, exchanges in found:
        for phase, several in (
            (Phase.FORWARD, exchanges.forward),
            (Phase.INPUT_GRAD, exchanges.backward),
        ):
            for exchange in several:
                yield phase, replace(exchange, count=n * m * exchange.count)
    dense, experts = trained.n_dense_parameters, trained.n_expert_parameters
    for exchange in volumes.gradient_exchanges(one, dense, experts, formats, habits):
        yield Phase.WEIGHT_GRAD, exchange


@dataclass(frozen=True)
class StepParts(Generic[Time]):
    """A step and its parts.

    Parameters
    ----------
    time : of the step.
    pipeline : all microbatches, without gradients and optimizer.
    busiest : one microbatch on the stage that takes longest.
    mean_stage : one microbatch on a stage, the mean over stages: what a pipeline takes per
        microbatch if no stage waits.
    optimizer_s : compute of the optimizer.
    """

    time: Time
    pipeline: Time
    busiest: Time
    mean_stage: Time
    optimizer_s: Any


@dataclass(frozen=True)
class LayerPasses(Generic[Time]):
    """Forward, backward and weight gradients of one layer for one microbatch, by kind of layer.

    They do not depend on dp, pp, ZeRO, interleaving or the batch: many strategies share one.

    Parameters
    ----------
    dense, experts : a layer without and with experts.
    embedding, logits : what the first and the last stage do beside.
    """

    dense: tuple[Time, Time, Any]
    experts: tuple[Time, Time, Any]
    embedding: tuple[Time, Time, Any]
    logits: tuple[Time, Time, Any]


def layer_passes(trained: TrainedModel, pricing: Pricing[Time]) -> LayerPasses[Time]:
    """What :func:`step_time` puts a step together from."""
    builder = StepBuilder(trained, pricing)
    experts = builder.experts if trained.model.experts else builder.dense
    return LayerPasses(builder.dense, experts, builder.embedding, builder.logits)


def step_time(
    trained: TrainedModel, pricing: Pricing[Time], passes: LayerPasses[Time] | None = None
) -> Time:
    """A step of training (C17).

    Pipeline, then the exchange of gradients and weights, as much of it as may hide beside the last
    microbatch (all of them with ZeRO 3), then the optimizer.

    Parameters
    ----------
    trained, pricing : as they say.
    passes : of its layers, where they are known.
    """
    return StepBuilder(trained, pricing, passes).step()


@dataclass(frozen=True)
class StepBuilder(Generic[Time]):
    """A step from its layers, stages, pipeline, gradients and optimizer (C17).

    Parameters
    ----------
    trained, pricing : as they say.
    known : passes of its layers, where they are known.
    """

    trained: TrainedModel
    pricing: Pricing[Time]
    known: LayerPasses[Time] | None = None

    @property
    def algebra(self) -> Algebra[Time]:
        """Of its times."""
        return self.pricing.algebra

    def parts(self) -> StepParts[Time]:
        """The step and its parts."""
        one = self.trained.strategy
        mean = self.algebra.times(1 / np.asarray(one.pp), self._once)
        pipeline = self._pipeline(np.asarray(one.n_microbatches))
        return StepParts(self.step(), pipeline, self._busiest, mean, self._optimizer_s())

    def step(self) -> Time:
        """The whole step."""
        one, algebra = self.trained.strategy, self.algebra
        left, gradients = self._left_microbatches(), self.gradient_exchanges()
        hidden = np.asarray(one.n_microbatches) - left
        rest = self._pipeline(left)
        beside = self.beside(algebra.times(hidden, self._busiest), gradients, hidden)
        tied = volumes.tied_gradient_exchange(self.trained.model, one, self.trained.formats)
        ends = [self.pricing.seconds(self._optimizer_s()), *map(self.pricing.exchange, tied)]
        return algebra.total([rest, beside, *ends])

    def _pipeline(self, n_microbatches: Any) -> Time:
        """So many microbatches, from the first forward to the last backward pass (C17)."""
        one = self.trained.strategy
        if one.schedule is not PipelineSchedule.ONE_F_ONE_B:
            stages = [self._stage(layers) for layers in self.trained.stages]
            return pipeline_time(self.algebra, stages, n_microbatches, 1, one.schedule)
        # One stage has nothing to wait for, however its chunks follow one another.
        v = np.where(np.asarray(one.pp) == 1, np.inf, np.asarray(one.interleave))
        return in_order_time(self.algebra, self._busiest, self._once, n_microbatches, v)

    @cached_property
    def _busiest(self) -> Time:
        """One microbatch on the stage that takes longest, beside what it sends (C17).

        A pass hides the send of the pass before it, of the other direction: the next pass of a
        direction waits for the last send of its own. So a microbatch takes at least forward and
        its sends, backward and its sends, and all sends.
        """
        total, work = self.algebra.total, self._longest_stage(_BOTH)
        if not self.trained.strategy.overlap.p2p:
            return total([work, self.sent])
        return self.algebra.longest([work, self.sent, *self.between_sends()])

    def between_sends(self) -> Iterable[Time]:
        """Passes of one direction and the sends that the next ones wait for."""
        several = self._sends.forward, self._sends.backward
        if not np.any(np.asarray(self.trained.strategy.pp) > 1):
            return
        for passes, sends in zip((_FORWARD, _BACKWARD), several, strict=True):
            sent = map(self.pricing.exchange, sends)
            yield self.algebra.total([self._longest_stage(passes), *sent])

    def _longest_stage(self, passes: slice) -> Time:
        """Passes of one microbatch on the stage that takes longest.

        What all stages do stands once: the longest is of what they do beyond it.
        """
        algebra, kinds = self.algebra, self.trained.stages
        least = [self._least(x.n_dense for x in kinds), self._least(x.n_experts for x in kinds)]
        common = StageLayers(1, *least)
        more = []
        for kind in kinds:
            here = np.minimum(np.asarray(kind.n), 1)
            n_dense, n_experts = kind.n_dense - common.n_dense, kind.n_experts - common.n_experts
            beyond = replace(kind, n_dense=n_dense * here, n_experts=n_experts * here)
            more.append(algebra.times(here, self.one_microbatch(beyond, passes)))
        return algebra.total([self.one_microbatch(common, passes), algebra.longest(more)])

    def _least(self, counts: Iterable[Any]) -> Any:
        """The fewest layers of any stage that a strategy has."""
        pairs = zip(counts, self.trained.stages, strict=True)
        found = [np.where(np.asarray(x.n) > 0, n, np.inf) for n, x in pairs]
        return np.min(np.broadcast_arrays(*found), axis=0)

    @cached_property
    def _once(self) -> Time:
        """One microbatch through all stages; no send hides behind what waits for it."""
        one, kinds = self.trained.strategy, self.trained.stages
        whole = StageLayers(
            1,
            sum(x.n * x.n_dense for x in kinds),
            sum(x.n * x.n_experts for x in kinds),
            sum(x.n * np.asarray(x.has_embedding) for x in kinds),
            sum(x.n * np.asarray(x.has_logits) for x in kinds),
        )
        sends = self.algebra.times(np.asarray(one.pp), self.sent)
        return self.algebra.total([self.one_microbatch(whole), sends])

    @cached_property
    def sent(self) -> Time:
        """What a stage sends for one microbatch."""
        several = (*self._sends.forward, *self._sends.backward)
        return self.algebra.total(map(self.pricing.exchange, several))

    def one_microbatch(self, layers: StageLayers, passes: slice = _BOTH) -> Time:
        """Forward and backward of some layers, or one of them."""
        found = []
        for n, (forward, backward, weights_s) in self._layers(layers):
            both = [forward, self.algebra.total([backward, self.pricing.seconds(weights_s)])]
            found.append(self.algebra.times(n, self.algebra.total(both[passes])))
        return self.algebra.total(found)

    def _left_microbatches(self) -> Any:
        """How many microbatches of the busiest stage no gradients may be exchanged beside.

        All but the last one; with chunks those of other chunks, too; none where gradients are
        reduced for every microbatch: with ZeRO 3, and with ZeRO 2 unless it reduces once. In a
        pipeline a first chunk stays, with zero bubble those that fill what a stage waits for.
        """
        one = self.trained.strategy
        m, v, p = (np.asarray(x, dtype=float) for x in (one.n_microbatches, one.interleave, one.pp))
        last = 1 + p * (v - 1) / v
        each = 2 + self.trained.habits.reduces_once
        wanted = np.where(np.asarray(one.zero) >= each, m, last)
        needed = (p > 1) / v
        if one.schedule is not PipelineSchedule.ONE_F_ONE_B:
            needed = np.minimum(ZERO_BUBBLE_FILL[one.schedule] * (p - 1) + 1, m)
        return np.maximum(m - wanted, needed)

    def gradient_exchanges(self) -> tuple[Exchange, ...]:
        """Gradients and weights of a step, of the fullest rank."""
        trained = self.trained
        return volumes.gradient_exchanges(
            trained.strategy,
            trained.n_dense_parameters,
            trained.n_expert_parameters,
            trained.formats,
            trained.habits,
        )

    def beside(self, window: Time, gradients: Sequence[Exchange], hidden: Any) -> Time:
        """The window and the exchange of gradients, which share the fabric.

        Parameters
        ----------
        window : so many microbatches of the busiest stage, ``hidden`` of them.
        """
        algebra, fraction = self.algebra, self.trained.strategy.overlap.dp
        sent = algebra.total(map(self.pricing.exchange, gradients))
        exposed = algebra.times(self._felt(fraction), sent)
        sides = [algebra.total([window, exposed]), sent]
        others = list(self._window_exchanges(hidden))
        if np.any(np.asarray(fraction) > 0) and gradients and others:
            # What compute loses beside hidden bytes is time of compute, not of the fabric.
            alone = algebra.times(1.0 - np.asarray(fraction), sent)
            both = [*((one, fraction) for one in gradients), *others]
            sides.append(algebra.total([self.pricing.contention(both), alone]))
        return algebra.longest(sides)

    def _felt(self, fraction: Any) -> Any:
        """Share of an exchange's time that compute feels where a fraction of it hides."""
        hidden = np.asarray(fraction)
        return 1.0 - hidden + self.trained.constants.stolen_fraction * hidden

    def _window_exchanges(self, n: Any) -> Iterable[tuple[Exchange, Any]]:
        """What the busiest stage exchanges in so many microbatches."""
        n_dense, n_experts = second_stage(self.trained.stages)
        for has_experts, n_layers in ((False, n_dense), (True, n_experts)):
            if not np.any(n_layers):
                continue
            found = self.layer_exchanges(has_experts=has_experts)
            for one in (*found.forward, *found.backward):
                yield one, n * n_layers
        for one in (*self._sends.forward, *self._sends.backward):
            yield one, n

    @cached_property
    def _sends(self) -> Exchanges:
        trained = self.trained
        return volumes.pipeline_exchanges(
            trained.model, trained.strategy, None, trained.formats, trained.habits
        )

    def layer_exchanges(self, *, has_experts: bool) -> Exchanges:
        """Of one layer and one microbatch."""
        trained = self.trained
        return volumes.layer_exchanges(
            trained.model, trained.strategy, has_experts, trained.formats, trained.habits
        )

    def _stage(self, layers: StageLayers) -> Stage[Time]:
        """One microbatch on a kind of stage."""
        forward, backward, weights_s = [], [], 0.0
        for n, passes in self._layers(layers):
            forward.append(self.algebra.times(n, passes[0]))
            backward.append(self.algebra.times(n, passes[1]))
            weights_s = weights_s + n * np.asarray(passes[2])
        forward_s, backward_s = self.algebra.total(forward), self.algebra.total(backward)
        if np.any(np.asarray(self.trained.strategy.pp) > 1):
            forward_s = self._with_sends(forward_s, self._sends.forward)
            backward_s = self._with_sends(backward_s, self._sends.backward)
        return Stage(forward_s, backward_s, self.pricing.seconds(weights_s), layers.n)

    def _with_sends(self, work: Time, sends: Sequence[Exchange]) -> Time:
        sent = self.algebra.total(map(self.pricing.exchange, sends))
        if self.trained.strategy.overlap.p2p:
            return self.algebra.longest([work, sent])
        return self.algebra.total([work, sent])

    def _layers(self, layers: StageLayers) -> Iterable[tuple[Any, tuple[Time, Time, Any]]]:
        """Forward, backward and weight gradients of a stage's kinds of layers, and how many."""
        known = self.known or self
        if np.any(layers.n_dense):
            yield layers.n_dense, known.dense
        if np.any(layers.n_experts):
            yield layers.n_experts, known.experts
        if np.any(layers.has_embedding):
            yield layers.has_embedding, known.embedding
        if np.any(layers.has_logits):
            yield layers.has_logits, known.logits
            if self.trained.model.n_mtp:
                last = known.experts if self.trained.model.experts else known.dense
                n_modules = layers.has_logits * self.trained.model.n_mtp
                yield n_modules, last
                yield n_modules, known.logits

    @cached_property
    def dense(self) -> tuple[Time, Time, Any]:
        """Forward, backward and weight gradients of a layer without experts."""
        return self._layer(has_experts=False)

    @cached_property
    def experts(self) -> tuple[Time, Time, Any]:
        """The same of a layer with experts."""
        return self._layer(has_experts=True)

    def _layer(self, *, has_experts: bool) -> tuple[Time, Time, Any]:
        work = self.trained.operators.layer(has_experts=has_experts)
        exchanges = self.layer_exchanges(has_experts=has_experts)
        return self.passes(work, exchanges, is_layer=True)

    @cached_property
    def embedding(self) -> tuple[Time, Time, Any]:
        """The same of the embedding."""
        trained = self.trained
        found = volumes.embedding_exchanges(trained.model, trained.strategy, trained.formats)
        return self.passes(trained.operators.embedding(), found)

    @cached_property
    def logits(self) -> tuple[Time, Time, Any]:
        """The same of logits and loss."""
        trained = self.trained
        found = volumes.logits_exchanges(trained.model, trained.strategy, trained.formats)
        return self.passes(trained.operators.logits(), found)

    def passes(
        self, work: LayerWork, exchanges: Exchanges, *, is_layer: bool = False
    ) -> tuple[Time, Time, Any]:
        """Forward and backward; weight gradients apart where the pipeline moves them (C17).

        Parameters
        ----------
        is_layer : and not embedding or logits.
        """
        del is_layer
        in_order = self.trained.strategy.schedule is PipelineSchedule.ONE_F_ONE_B
        weights = NO_WORK if in_order else work.weight_grad
        return (
            self._pass(work.forward, exchanges.forward),
            self._pass(work.backward.without(weights), exchanges.backward),
            weights.linear_s + self.trained.constants.imbalance * weights.experts_s,
        )

    def _pass(self, work: Work, exchanges: Sequence[Exchange]) -> Time:
        """Compute beside what it may hide, by axis."""
        overlap = self.trained.strategy.overlap
        return self.algebra.total(
            (
                self._overlapped(work.linear_s, exchanges, ("tp",), overlap.tp),
                self._overlapped(work.attention_s, exchanges, ("cp",), overlap.cp),
                self.algebra.times(
                    self.trained.constants.imbalance,
                    self._overlapped(work.experts_s, exchanges, ("ep", "etp"), overlap.ep),
                ),
                self.pricing.seconds(work.stream_s),
            )
        )

    def _overlapped(
        self, work_s: Any, exchanges: Sequence[Exchange], axes: Sequence[str], fraction: Any
    ) -> Time:
        """Compute and the exchanges of some axes; what ``hides`` does so as a whole."""
        price, algebra = self.pricing.exchange, self.algebra
        mine = [one for one in exchanges if one.axis in axes]
        plain = algebra.total(price(one) for one in mine if not one.hides)
        behind = algebra.total(price(one) for one in mine if one.hides)
        if axes == ("cp",):
            plain, behind = algebra.total([plain, behind]), algebra.total([])
        stolen = algebra.times(self._felt(1.0), behind)
        exposed = algebra.total([algebra.times(self._felt(fraction), plain), stolen])
        compute = algebra.total([self.pricing.seconds(work_s), exposed])
        return algebra.longest([compute, algebra.total([plain, behind])])

    def _optimizer_s(self) -> Any:
        """Adam on what a rank holds, shared out by ZeRO."""
        trained, one = self.trained, self.trained.strategy
        n_dense, n_experts = trained.n_dense_parameters, trained.n_expert_parameters
        shares = np.asarray(one.zero) >= 1
        own = n_dense / np.where(shares, np.asarray(one.dp) * one.cp, 1)
        own = own + n_experts / np.where(shares, one.edp, 1)
        held = np.where(np.asarray(one.zero) >= _ALL_LAYERS, own, n_dense + n_experts)
        return trained.operators.optimizer_s(held, own)
