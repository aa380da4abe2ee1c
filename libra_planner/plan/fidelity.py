"""How closely a plan models collectives (C4): networks and chunks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import Topology
from libra_planner.plan.models import AUTO, CommonSpec
from libra_planner.step.collectives.algorithms import Network, algorithm_fault, algorithm_named
from libra_planner.step.collectives.flowshop import AUTO_CHUNKS
from libra_planner.step.collectives.models import Balanced, CollectiveModel, Ideal, Pipelined
from libra_planner.step.collectives.scheduling import MAX_DIMS
from libra_planner.units import NS_PER_S
from libra_planner.workload.operations import CollectiveKind

PIPELINED, BALANCED = "pipelined", "balanced"


@dataclass(frozen=True)
class Fidelity:
    """How closely a plan models collectives.

    Parameters
    ----------
    network : topology, latency, algorithms, in-network reduction.
    models : one, or as many as the plan leaves numbers of chunks open.
    unused_keys : keys of the plan that its fidelity does not use.
    """

    network: Network
    models: tuple[CollectiveModel, ...]
    unused_keys: tuple[str, ...] = field(default=())

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


def build_fidelity(spec: CommonSpec, topology: Topology) -> Fidelity:
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
    return Fidelity(network, tuple(_models(spec, network)), () if pipelined else _unused(spec))


def _models(spec: CommonSpec, network: Network) -> list[CollectiveModel]:
    if spec.fidelity != PIPELINED:
        return [Balanced() if spec.scheduler == BALANCED else Ideal()]
    if spec.chunks not in (None, AUTO):
        return [Pipelined(int(spec.chunks))]
    # Without latency more chunks are always faster.
    return [Pipelined(n) for n in (AUTO_CHUNKS if any(network.latency_s) else AUTO_CHUNKS[-1:])]


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
