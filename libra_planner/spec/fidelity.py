"""How closely a plan models collectives: networks, chunks and the times that follow (C4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias

import numpy as np

from libra_planner.collectives import real_link_slowdown, traffic_bytes
from libra_planner.collectives.algorithms import (
    Algorithm,
    Network,
    algorithm_fault,
    algorithm_named,
)
from libra_planner.collectives.flowshop import AUTO_CHUNKS
from libra_planner.collectives.scheduling import MAX_DIMS
from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.fabric.topology import Topology
from libra_planner.reading.document import Document
from libra_planner.spec.fidelity_models import AUTO
from libra_planner.spec.models import CommonSpec
from libra_planner.timing.evaluators import BalancedStep, StepEvaluators
from libra_planner.timing.expression import Array, Node, TimeExpression, transfers
from libra_planner.timing.loops import CollectiveTime, CollectiveTraffic, Slowdown
from libra_planner.timing.pipelined import pipelined_time, pipelined_traffic
from libra_planner.timing.simulated import balanced_times, exact_time
from libra_planner.units import NS_PER_S
from libra_planner.workload.communication import Communication
from libra_planner.workload.operations import Collective, CollectiveKind
from libra_planner.workload.parallelism import Group

PIPELINED, BALANCED = "pipelined", "balanced"


@dataclass(frozen=True)
class CollectiveModel:
    """What a training loop asks of a collective.

    Parameters
    ----------
    time : how long it takes.
    traffic : what it occupies the dimensions with when it competes with another (C5).
    real_links : partial groups have only their own links (C6).
    """

    time: CollectiveTime
    traffic: CollectiveTraffic
    real_links: bool = False


Timed: TypeAlias = Callable[[CollectiveModel], TimeExpression]
"""The step time of one workload under a model of collectives."""


@dataclass(frozen=True)
class Fidelity:
    """The model of collectives that a plan asks for.

    Parameters
    ----------
    network : topology, latency, algorithms, in-network reduction.
    chunks : candidates for the number of chunks, one for a plan that gives it; empty
        for ``ideal``.
    balanced : whether the balanced schedule is wanted beside the hierarchical one.
    unused_keys : keys of the plan that its fidelity does not use.
    places : where the plan names each algorithm.
    """

    network: Network
    chunks: tuple[int, ...] = ()
    balanced: bool = False
    unused_keys: tuple[str, ...] = field(default=())
    places: tuple[Place, ...] = field(default=(), repr=False)

    def model(self, n_chunks: int | None) -> CollectiveModel:
        """What the optimizer sees: so many chunks, or ideal without a number."""
        if n_chunks is None:
            return CollectiveModel(lambda c, g: transfers(self._bytes(c, g)), self._bytes)
        times = self._by_kind(lambda network: pipelined_time(network, n_chunks))
        return CollectiveModel(times, self._visit_bytes, real_links=True)

    def slowed(self, n_chunks: int | None, slowdown: Slowdown) -> CollectiveModel:
        """The same model with the links' real share of their bandwidth."""
        if n_chunks is not None:
            times = self._by_kind(lambda network: pipelined_time(network, n_chunks, slowdown))
            return CollectiveModel(times, self._slowed_visit_bytes(slowdown), real_links=True)

        def traffic(collective: Collective, group: Group) -> Array:
            return self._bytes(collective, group) * slowdown(collective, group)

        return CollectiveModel(lambda c, g: transfers(traffic(c, g)), traffic, real_links=True)

    def _slowed_visit_bytes(self, slowdown: Slowdown) -> CollectiveTraffic:
        return lambda c, g: pipelined_traffic(self._network(c), slowdown)(c, g)

    def ideal_on_real_links(self) -> CollectiveModel:
        """``ideal``, but with the real links of partial groups (C6)."""

        def traffic(collective: Collective, group: Group) -> Array:
            slowdown = real_link_slowdown(collective, group, self.network.topology)
            return self._bytes(collective, group) * slowdown

        return CollectiveModel(lambda c, g: transfers(traffic(c, g)), traffic, real_links=True)

    def has_partial_groups(self, communications: Sequence[Communication]) -> bool:
        """Whether real links slow down any of a step's collectives (C6)."""
        topology = self.network.topology
        slowed = (real_link_slowdown(c.collective, c.group, topology) for c in communications)
        return any((factors > 1).any() for factors in slowed)

    def evaluators(
        self, timed: Sequence[Timed], weights: Sequence[float], n_chunks: int | None
    ) -> StepEvaluators:
        """What can be told of a step at one vector only; of a group, the weighted mean."""

        def mean(model: CollectiveModel, bandwidth: Array) -> float:
            steps = (float(step(model).seconds(bandwidth)) for step in timed)
            return sum(w * step for w, step in zip(weights, steps, strict=True))

        def exact(bandwidth: Array) -> float:
            times = self._by_kind(lambda network: exact_time(network, n_chunks or 1, bandwidth))
            return mean(CollectiveModel(times, self._visit_bytes, real_links=True), bandwidth)

        def balanced(bandwidth: Array) -> BalancedStep:
            best = balanced_times(self.network, bandwidth)
            together = mean(CollectiveModel(best.time, best.traffic), bandwidth)
            fixed = mean(self.model(None), bandwidth)
            bound = mean(CollectiveModel(best.bound, self._no_bytes), bandwidth)
            # Each collective is balanced alone: overlapped ones may then share dimensions more.
            return BalancedStep(min(together, fixed), bound)

        return StepEvaluators(
            exact_step_time_s=None if n_chunks is None else exact,
            balanced=balanced if self.balanced else None,
        )

    def settings(self, n_chunks: int | None) -> tuple[str, ...]:
        """The fidelity, for people to read."""
        reducing = [self.network.topology.labels[i] for i in sorted(self.network.in_network)]
        inside = (f"in-network reduction on {', '.join(reducing)}",) if reducing else ()
        if n_chunks is None:
            return inside
        plural = "" if n_chunks == 1 else "s"
        latency_ns = [f"{value * NS_PER_S:g}" for value in self.network.latency_s]
        shown = latency_ns[:1] if len(set(latency_ns)) == 1 else latency_ns
        return (f"{n_chunks} chunk{plural}, latency {'/'.join(shown)} ns", *inside)

    def _bytes(self, collective: Collective, group: Group) -> Array:
        return traffic_bytes(collective, group, self.network.in_network)

    def _no_bytes(self, _collective: Collective, _group: Group) -> Array:
        return np.zeros(self.network.topology.n_dims)

    def _visit_bytes(self, collective: Collective, group: Group) -> Array:
        return pipelined_traffic(self._network(collective))(collective, group)

    def _network(self, collective: Collective) -> Network:
        """An all-to-all runs the usual algorithm where the plan names one that has none."""
        named = self.network.algorithms
        if collective.kind is not CollectiveKind.ALL_TO_ALL:
            return self.network
        halving = Algorithm.HALVING_DOUBLING
        others = tuple(None if one is halving else one for one in named)
        return replace(self.network, algorithms=others)

    def _by_kind(self, make: Callable[[Network], CollectiveTime]) -> CollectiveTime:
        """Times on each collective's network, with faults at their places in the plan."""
        on = cache(make)

        def time(collective: Collective, group: Group) -> Node:
            try:
                return on(self._network(collective))(collective, group)
            except SpecError as error:
                raise SpecError(*(self._located(fault) for fault in error.faults)) from None

        return time

    def _located(self, fault: Fault) -> Fault:
        """A fault of an algorithm at its place in the plan."""
        name, _, dim = fault.path.partition(".")
        return fault.located(self.places[int(dim)]) if name == "algorithms" else fault


def build_fidelity(spec: CommonSpec, topology: Topology, document: Document) -> Fidelity:
    """The fidelity of a plan.

    Raises
    ------
    SpecError
        With all faults of its keys.
    """
    faults: list[Fault] = []
    network = Network(
        topology,
        _latency_s(spec, topology, faults),
        _algorithms(spec, topology, faults),
        _in_network(spec, topology, faults),
    )
    if spec.scheduler == BALANCED and spec.fidelity == PIPELINED:
        got = "got balanced with fidelity: pipelined"
        fix = "write fidelity: ideal, or remove it"
        expected = "expected hierarchical: orders are balanced by bytes alone"
        faults.append(Fault(got, expected, fix, "scheduler"))
    elif spec.scheduler == BALANCED and topology.n_dims > MAX_DIMS:
        got, expected = (
            f"got balanced for {topology.n_dims} dimensions",
            f"expected at most {MAX_DIMS}",
        )
        faults.append(Fault(got, expected, "remove it", "scheduler"))
    if faults:
        raise SpecError(*faults)
    pipelined = spec.fidelity == PIPELINED
    return Fidelity(
        network=network,
        chunks=_chunks(spec, network) if pipelined else (),
        balanced=spec.scheduler == BALANCED,
        unused_keys=() if pipelined else _unused(spec),
        places=tuple(document.place(("algorithms", i)) for i in range(topology.n_dims)),
    )


def _chunks(spec: CommonSpec, network: Network) -> tuple[int, ...]:
    if spec.chunks not in (None, AUTO):
        return (int(spec.chunks),)
    # Without latency more chunks are always faster.
    return AUTO_CHUNKS if any(network.latency_s) else AUTO_CHUNKS[-1:]


def _unused(spec: CommonSpec) -> tuple[str, ...]:
    given = {
        "chunks": spec.chunks is not None,
        "fabric.latency_ns": spec.fabric.latency_ns is not None,
        "algorithms": spec.algorithms is not None,
    }
    return tuple(name for name, is_given in given.items() if is_given)


def _latency_s(spec: CommonSpec, topology: Topology, faults: list[Fault]) -> tuple[float, ...]:
    given = (0.0,) if spec.fabric.latency_ns is None else spec.fabric.latency_ns
    values = given * topology.n_dims if len(given) == 1 else given
    if len(values) != topology.n_dims:
        expected = f"expected {topology.n_dims}, one for each dimension of {topology}"
        fix = "write one number for all, or a list"
        faults.append(Fault(f"got {len(values)} latencies", expected, fix, "fabric.latency_ns"))
    return tuple(value / NS_PER_S for value in values)


def _algorithms(
    spec: CommonSpec, topology: Topology, faults: list[Fault]
) -> tuple[Algorithm | None, ...]:
    if spec.algorithms is None:
        return (None,) * topology.n_dims
    if len(spec.algorithms) != topology.n_dims:
        expected = f"expected {topology.n_dims}, one for each dimension of {topology}"
        fix = "write default where the usual one is meant"
        got = f"got {len(spec.algorithms)} algorithms"
        faults.append(Fault(got, expected, fix, "algorithms"))
        return (None,) * topology.n_dims
    chosen: list[Algorithm | None] = []
    for i, (name, dimension) in enumerate(zip(spec.algorithms, topology.dimensions, strict=True)):
        algorithm, fault = None, None
        if name != "default":
            try:
                algorithm = algorithm_named(name)
            except SpecError as error:
                fault = error.faults[0]
        if algorithm is not None:
            # Powers of two are a matter of the groups, seen later: 2 is always one.
            fault = algorithm_fault(CollectiveKind.ALL_REDUCE, dimension, 2, algorithm)
        if fault is not None:
            faults.append(replace(fault, path=f"algorithms.{i}"))
        chosen.append(algorithm)
    return tuple(chosen)


def _in_network(spec: CommonSpec, topology: Topology, faults: list[Fault]) -> frozenset[int]:
    names = {label: [i] for i, label in enumerate(topology.labels)}
    for i, tier in enumerate(topology.tiers):
        if tier not in topology.labels:
            names.setdefault(tier, []).append(i)
    chosen: dict[int, None] = {}
    for position, name in enumerate(spec.in_network_reduction):
        dims = names.get(name, [])
        fault = _reducing_fault(topology, name, dims, closest(name, names))
        if fault is None and dims[0] in chosen:
            fault = Fault(f"got {topology.labels[dims[0]]} twice", "expected it once")
        if fault is not None:
            faults.append(replace(fault, path=f"in_network_reduction.{position}"))
        chosen |= dict.fromkeys(dims)
    return frozenset(chosen)


def _reducing_fault(topology: Topology, name: str, dims: list[int], near: str) -> Fault | None:
    """Why a name does not say which switch reduces."""
    if not dims:
        return Fault(f"got {name!r}", "expected a dimension or its tier", near)
    if len(dims) > 1:
        fix = f"write {' or '.join(topology.labels[i] for i in dims)}"
        return Fault(f"got {name!r}, the tier of {len(dims)} dimensions", "expected one", fix)
    if not topology.dimensions[dims[0]].block.is_switched:
        got = f"got {name}, which is {topology.dimensions[dims[0]]}"
        return Fault(got, "expected a switch", "only switches reduce")
    return None
