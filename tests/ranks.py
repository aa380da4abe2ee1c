"""Training executed rank by rank: every rank runs its schedule and counts what it sends.

Independent of the closed forms (C16). A rank knows its place, walks through its passes, and keeps a
tape of what the forward pass exchanged; backward runs the adjoint of every entry, last first: a
gather of parts is a sum of parts backward, a copy to all is a sum over all. Tokens go to experts
one by one. All groups are found by comparing the places of all ranks.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Transformer
from libra_planner.workload.volumes import Formats, Habits
from tests.pipelines import Pass, interleaved, one_f_one_b

Place = dict[str, int]
Step = tuple[Callable[[], None], Callable[[], None]]
"""What a step of the forward pass exchanges, and what its adjoint does."""


def places(strategy: Strategy, order: Sequence[str]) -> list[Place]:
    """Every rank's place on every axis, by rank; ranks of the first axis are neighbours."""
    found = [
        dict(zip(order, reversed(where), strict=True))
        for where in itertools.product(
            *(range(getattr(strategy, axis)) for axis in reversed(order))
        )
    ]
    stages: dict[int, list[Place]] = {}
    for place in found:
        stages.setdefault(place["pp"], []).append(place)
    for members in stages.values():
        for i, place in enumerate(members):
            place["etp"] = i % strategy.etp
            place["ep"] = i // strategy.etp % strategy.ep
            place["edp"] = i // strategy.etp // strategy.ep
    return found


WITHIN = {
    "tp": ("pp", "dp", "cp"),
    "cp": ("pp", "dp", "tp"),
    "dp": ("pp", "cp", "tp"),
    "dp_cp": ("pp", "tp"),
    "pp": ("dp", "cp", "tp"),
    "etp": ("pp", "ep", "edp"),
    "ep": ("pp", "etp", "edp"),
    "edp": ("pp", "etp", "ep"),
}
"""Axes on which all ranks of a group have the same place."""


def members(everyone: Sequence[Place], rank: int, axis: str) -> list[int]:
    """Ranks of a rank's group."""
    own = everyone[rank]
    return [i for i, x in enumerate(everyone) if all(x[a] == own[a] for a in WITHIN[axis])]


@dataclass
class Rank:
    """One rank of a training.

    Parameters
    ----------
    sent : bytes by axis.
    calls : collectives it takes part in, by axis and kind, with their bytes, in order.
    far : bytes of tokens that it sends to other nodes of ``node`` ranks of its ep group.
    """

    model: Transformer
    strategy: Strategy
    formats: Formats
    habits: Habits
    groups: dict[str, list[int]]
    place: Place
    number: int
    sent: Counter[str] = field(default_factory=Counter)
    calls: list[tuple[str, str, float]] = field(default_factory=list)

    # Collectives, message by message.

    def ring(self, axis: str, size: float, passes: int, kind: str) -> None:
        """n - 1 messages of size/n to the next rank, once or twice around."""
        n = len(self.groups[axis])
        if n == 1:
            return
        self.calls.append((axis, kind, size))
        for _ in range(passes * (n - 1)):
            self.sent[axis] += size / n

    def all_reduce(self, axis: str, size: float) -> None:
        self.ring(axis, size, 2, "all-reduce")

    def all_gather(self, axis: str, size: float) -> None:
        self.ring(axis, size, 1, "all-gather")

    def reduce_scatter(self, axis: str, size: float) -> None:
        self.ring(axis, size, 1, "reduce-scatter")

    def send(self, axis: str, size: float) -> None:
        if len(self.groups[axis]) > 1:
            self.sent[axis] += size

    def exchange(self, axis: str, parts: Sequence[float]) -> None:
        """A part to each rank of the group, but for its own."""
        if len(parts) == 1:
            return
        self.calls.append((axis, "all-to-all", sum(parts)))
        own = self.groups[axis].index(self.number)
        for i, part in enumerate(parts):
            self.sent[axis] += part * (i != own)

    # Sizes.

    @property
    def n_tokens(self) -> int:
        s = self.strategy
        return s.microbatch * self.model.sequence_tokens // s.cp

    @property
    def size(self) -> float:
        return self.n_tokens * self.model.hidden * self.formats.activation_bytes

    # Steps of a layer, each with its adjoint.

    def enter(self) -> Step:
        """To layers that are split over tp: from a part of the sequence, or the same on all."""
        if self.strategy.sequence_parallel:

            def back() -> None:
                self.all_gather("tp", self.size)  # the kept part of the input
                self.reduce_scatter("tp", self.size)

            return lambda: self.all_gather("tp", self.size), back
        return lambda: None, lambda: self.all_reduce("tp", self.size)

    def leave(self) -> Step:
        """From layers that are split over tp, whose outputs add up."""
        if self.strategy.sequence_parallel:
            return (
                lambda: self.reduce_scatter("tp", self.size),
                lambda: self.all_gather("tp", self.size),
            )
        return lambda: self.all_reduce("tp", self.size), lambda: None

    def core(self) -> list[Step]:
        """Attention itself, over cp."""
        a, n, e = self.model.attention, self.strategy.cp, self.formats.activation_bytes
        kv_heads = max(a.n_kv_heads / self.strategy.tp, 1)
        heads = max(a.n_heads / self.strategy.tp, 1)
        keys = self.n_tokens * kv_heads * a.head_dim * e
        values = self.n_tokens * kv_heads * a.head_dim_v * e
        if self.habits.cp == "ring":

            def rounds(times: int) -> None:
                for _ in range(n - 1):
                    self.send("cp", times * (keys + values))

            return [(lambda: rounds(1), lambda: rounds(2))]
        if self.habits.cp == "all-gather":

            def gather() -> None:
                for tensor in (keys, values):
                    self.all_gather("cp", n * tensor)

            def back() -> None:
                gather()
                for tensor in (keys, values):
                    self.reduce_scatter("cp", n * tensor)

            return [(gather, back)]
        queries = self.n_tokens * heads * a.head_dim * e
        outputs = self.n_tokens * heads * a.head_dim_v * e

        def swap(*tensors: float) -> Callable[[], None]:
            return lambda: [self.exchange("cp", [x / n] * n) for x in tensors] and None

        return [(swap(queries, keys, values),) * 2, (swap(outputs),) * 2]

    def experts(self) -> list[Step]:
        """Tokens to their experts and back; experts e/n... of a rank are neighbours."""
        routed, s, f = self.model.experts, self.strategy, self.formats
        assert routed is not None
        n_own = self.n_tokens // (s.tp if s.sequence_parallel else 1)

        def tokens(number_bytes: float) -> list[float]:
            parts = [0.0] * s.ep
            for token, j in itertools.product(range(n_own), range(routed.topk)):
                expert = (token * routed.topk + j) % routed.n
                parts[expert * s.ep // routed.n] += self.model.hidden * number_bytes
            return parts

        def out() -> None:
            self.exchange("ep", tokens(f.dispatch_bytes))
            self.all_gather("etp", s.etp * sum(tokens(f.dispatch_bytes)))

        def home() -> None:
            self.reduce_scatter("etp", s.etp * sum(tokens(f.combine_bytes)))
            self.exchange("ep", tokens(f.combine_bytes))

        # Gradients go to experts the way that outputs came from, in the format of tokens.
        return [(out, home), (home, out)]

    def layer(self, has_experts: bool) -> tuple[list[Step], list[Step], list[Step]]:
        """Steps before attention itself, of it, and after it."""
        before, after = [self.enter()], [self.leave()]
        if not has_experts:
            split = [] if self.model.is_parallel else [self.enter(), self.leave()]
            return before, self.core(), after + split
        shared = self.model.experts is not None and self.model.experts.shared_width > 0
        split = [self.enter(), self.leave()] if shared else []
        return before, self.core(), after + self.experts() + split

    def run_layer(self, has_experts: bool) -> None:
        for step, _ in itertools.chain(*self.layer(has_experts)):
            step()

    def run_layer_back(self, has_experts: bool) -> None:
        s, (before, core, after) = self.strategy, self.layer(has_experts)
        if s.recompute == Recompute.FULL:
            self.run_layer(has_experts)
        elif s.recompute == Recompute.SELECTIVE and not s.flash_attention:
            for step, _ in core:
                step()
        for _, back in reversed([*before, *core, *after]):
            back()

    # Ends of the model.

    def run_embedding(self) -> None:
        if self.model.vocabulary:
            self.leave()[0]()

    def run_embedding_back(self) -> None:
        if self.model.vocabulary:
            self.leave()[1]()

    def run_logits(self) -> None:
        if self.model.vocabulary:
            self.enter()[0]()
            for _ in ("maximum", "label", "sum"):
                self.all_reduce("tp", self.n_tokens * 4)

    def run_logits_back(self) -> None:
        if self.model.vocabulary:
            self.enter()[1]()

    # Passes.

    def hand_on(self, is_needed: bool) -> None:
        if is_needed:
            parts = self.habits.scatter_gather or self.strategy.sequence_parallel
            self.send("pp", self.size / (self.strategy.tp if parts else 1))

    def receive(self, is_needed: bool) -> None:
        scattered = self.habits.scatter_gather and not self.strategy.sequence_parallel
        if is_needed and self.strategy.pp > 1 and scattered:
            self.all_gather("tp", self.size)

    def run(self, one: Pass, kinds: list[list[bool]]) -> None:
        """One pass; ``kinds``: for every chunk, whether its layers have experts."""
        kind, _, chunk = one
        is_first = self.place["pp"] == 0 and chunk == 0
        is_last = self.place["pp"] == self.strategy.pp - 1 and chunk == self.strategy.interleave - 1
        if kind == "F":
            self.receive(not is_first)
            if is_first:
                self.run_embedding()
            for has_experts in kinds[chunk]:
                self.run_layer(has_experts)
            if is_last:
                self.run_logits()
            self.hand_on(not is_last)
        else:
            self.receive(not is_last)
            if is_last:
                self.run_logits_back()
            for has_experts in reversed(kinds[chunk]):
                self.run_layer_back(has_experts)
            if is_first:
                self.run_embedding_back()
            self.hand_on(not is_first)

    # Parameters.

    def parameters(self, axis: str, n: int, moment: str) -> None:
        """What ZeRO exchanges before a pass, after it, and at the end of a step."""
        zero, habits = self.strategy.zero, self.habits
        gradients, weights = n * self.formats.gradient_bytes, n * self.formats.weight_bytes
        if not n:
            return
        often = zero >= 2 and not habits.reduces_once
        if (moment == "before forward" and zero == 3) or (
            moment == "before backward" and zero == 3 and habits.reshards
        ):
            self.all_gather(axis, weights)
        elif moment == "after backward" and often:
            self.reduce_scatter(axis, gradients)
        elif moment == "end":
            if zero == 0:
                self.all_reduce(axis, gradients)
            elif not often:
                self.reduce_scatter(axis, gradients)
            if zero in (1, 2):
                self.all_gather(axis, weights)


def trained(
    model: Transformer,
    strategy: Strategy,
    kinds: list[list[list[bool]]],
    n_parameters: tuple[int, int],
    order: Sequence[str] = ("tp", "cp", "dp", "pp"),
    formats: Formats | None = None,
    habits: Habits | None = None,
) -> list[Rank]:
    """All ranks after one step.

    Parameters
    ----------
    kinds : whether a layer has experts, [stage][chunk][layer].
    n_parameters : of a rank, dense and of experts.
    """
    everyone = places(strategy, order)
    ranks = []
    for number, place in enumerate(everyone):
        groups = {axis: members(everyone, number, axis) for axis in WITHIN}
        own = Rank(model, strategy, formats or Formats(), habits or Habits(), groups, place, number)
        _run_step(own, kinds[place["pp"]], n_parameters)
        ranks.append(own)
    _check_calls(ranks)
    return ranks


def _run_step(rank: Rank, kinds: list[list[bool]], n_parameters: tuple[int, int]) -> None:
    s, stage = rank.strategy, rank.place["pp"]
    m, v = s.n_microbatches, s.interleave
    passes = one_f_one_b(s.pp, m, stage) if v == 1 else interleaved(s.pp, m, v, stage)
    axes = list(zip(("dp_cp", "edp"), n_parameters, strict=True))
    done: Counter[tuple[str, int]] = Counter()
    for one in passes:
        kind, i, _ = one
        name = "forward" if kind == "F" else "backward"
        if done[kind, i] == 0:  # All chunks of a microbatch together.
            for axis, n in axes:
                rank.parameters(axis, n, f"before {name}")
        rank.run(one, kinds)
        done[kind, i] += 1
        if done[kind, i] == v:
            for axis, n in axes:
                rank.parameters(axis, n, f"after {name}")
    for axis, n in axes:
        rank.parameters(axis, n, "end")
    is_end = stage in (0, s.pp - 1)
    if rank.model.is_tied and rank.model.vocabulary and s.pp > 1 and is_end:
        size = rank.model.vocabulary * rank.model.hidden / s.tp * rank.formats.gradient_bytes
        rank.sent["pp"] += 2 * (2 - 1) * size / 2  # an all-reduce of two ranks


def _check_calls(ranks: Sequence[Rank]) -> None:
    """All ranks of a group call the same collectives of the same sizes in the same order."""
    for rank in ranks:
        for axis, group in rank.groups.items():
            own = [call for call in rank.calls if call[0] == axis]
            for other in group:
                theirs = [call for call in ranks[other].calls if call[0] == axis]
                assert [x[1] for x in own] == [x[1] for x in theirs]
                assert all(math.isclose(x[2], y[2]) for x, y in zip(own, theirs, strict=True))
