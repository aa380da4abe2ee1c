"""How closely a plan models collectives (C4), and by which schedules they run (C13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import Topology
from libra_planner.plan.models import CALIBRATED, AnyPlanSpec, CommonSpec, SchedulesSpec
from libra_planner.plan.npus import catalogue, npu_named
from libra_planner.plan.systems import System
from libra_planner.plan.training import has_unknown_npu, npu_names
from libra_planner.reading.document import Key
from libra_planner.reading.models import AUTO, FaultCollector
from libra_planner.step.collectives.algorithms import (
    AUTO_CHUNKS,
    Network,
    algorithm_fault,
    algorithm_named,
    schedule_fault,
)
from libra_planner.step.collectives.balanced import MAX_DIMS
from libra_planner.step.collectives.calibrated import MEASURED_TABLE, Calibrated
from libra_planner.step.collectives.measured import INFINIBAND, PUBLISHED, SCALE_UPS, measured_npu
from libra_planner.step.collectives.models import Balanced, CollectiveModel, Ideal, Pipelined
from libra_planner.step.collectives.schedules import Schedule, Schedules
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
    system : the user's system file whose constants hold; empty for the published ones.
    """

    network: Network
    models: tuple[CollectiveModel, ...]
    unused_keys: tuple[str, ...] = field(default=())
    system: str = ""

    def settings(self, n_chunks: int | None) -> tuple[str, ...]:
        """The fidelity, for people to read."""
        reducing = [self.network.topology.labels[i] for i in sorted(self.network.in_network)]
        inside = _schedule_words(self.network)
        if reducing:
            inside = (f"in-network reduction on {', '.join(reducing)}", *inside)
        model = self.models[0]
        if isinstance(model, Calibrated):
            where = f"{model.npu}" + f", {model.interconnect}" * (model.port is not None)
            law = f"collectives as NCCL on {where} ({MEASURED_TABLE})"
            return (f"{law} with the constants of {self.system}" if self.system else law,)
        if n_chunks is None:
            return inside
        plural = "" if n_chunks == 1 else "s"
        latency_ns = [f"{value * NS_PER_S:g}" for value in self.network.latency_s]
        shown = latency_ns[:1] if len(set(latency_ns)) == 1 else latency_ns
        return (f"{n_chunks} chunk{plural}, latency {'/'.join(shown)} ns", *inside)


def build_fidelity(
    spec: AnyPlanSpec,
    topology: Topology,
    faults: FaultCollector,
    has_nic: Sequence[bool],
    system: System | None = None,
) -> Fidelity | None:
    """The fidelity of a plan; nothing where it has faults, which are noted.

    ``has_nic`` says which dimensions are reached through NICs; ``system`` is the user's file that
    the plan names.
    """
    n_known, pipelined = len(faults.faults), spec.fidelity == PIPELINED
    given = (0.0,) if spec.fabric.latency_ns is None else spec.fabric.latency_ns
    latency_ns = given * topology.n_dims if len(given) == 1 else given
    _check_length(latency_ns, topology, faults, ("fabric", "latency_ns"))
    latency_s = tuple(value / NS_PER_S for value in latency_ns)
    algorithms = _algorithms(spec, topology, faults)
    network = Network(topology, latency_s, algorithms, _in_network(spec, topology, faults))
    network = replace(network, schedules=_schedules(spec, network, faults))
    if spec.scheduler == BALANCED and pipelined:
        got = "got balanced with fidelity: pipelined"
        fix = "write fidelity: ideal, or remove it"
        expected = "expected hierarchical: orders are balanced by bytes alone"
        faults.note(Fault(got, expected, fix), ("scheduler",))
    elif spec.scheduler == BALANCED and topology.n_dims > MAX_DIMS:
        got, expected = f"got balanced for {topology.n_dims} dimensions", f"at most {MAX_DIMS}"
        faults.note(Fault(got, f"expected {expected}", "remove it"), ("scheduler",))
    model: CollectiveModel = Balanced() if spec.scheduler == BALANCED else Ideal()
    if spec.fidelity == CALIBRATED:
        network = replace(network, schedules=Schedules(Schedule.RING, Schedule.DIRECT))
        law = _calibrated(spec, topology, faults, has_nic)
        if law is not None and system is not None:
            law = replace(law, constants=system.constants, bands=system.bands)
        model = law or model
    if len(faults.faults) > n_known:
        return None
    if not pipelined:
        keys = {
            "chunks": spec.chunks,
            "fabric.latency_ns": spec.fabric.latency_ns,
            "algorithms": None if spec.fidelity == CALIBRATED else spec.algorithms,
        }
        unused = tuple(key for key in keys if keys[key] is not None)
        is_own = system is not None and system.constants != PUBLISHED
        return Fidelity(network, (model,), unused, system.label if system and is_own else "")
    # Without latency more chunks are always faster.
    n_chunks = AUTO_CHUNKS if any(latency_s) else AUTO_CHUNKS[-1:]
    if spec.chunks not in (None, AUTO):
        n_chunks = (int(spec.chunks),)
    return Fidelity(network, tuple(map(Pipelined, n_chunks)))


def _calibrated(
    spec: AnyPlanSpec, topology: Topology, faults: FaultCollector, has_nic: Sequence[bool]
) -> Calibrated | None:
    """The law of measured collectives on a fabric; ``None`` where it knows no such fabric."""
    port = next((i for i, has in enumerate(has_nic) if has), None)
    domain = None if port == 0 else 0
    beyond = range(port, topology.n_dims) if port is not None else range(0)
    inner = topology.n_dims - len(beyond)
    is_one_network = len({topology.ports[i] for i in beyond}) <= 1
    is_switched = all(one.block.is_switched for one in topology.dimensions)
    if inner > 1 or not is_one_network or not is_switched:
        got = f"got calibrated for {topology}"
        expected = "expected a scale-up switch without NICs, then one network of NICs at most"
        other = "" if has_nic[0] else topology.with_one_network
        fix = f"write fabric.topology: {other}" if other else "write fidelity: ideal"
        faults.note(Fault(got, expected, fix), ("fidelity",))
        return None
    found = _measured_npu(spec, faults)
    if found is None:
        return None
    known = SCALE_UPS[found]
    most = max(known.size, known.most_per_node)
    if domain is not None and topology.sizes[0] > most:
        got = f"got a scale-up switch of {topology.sizes[0]} {found}"
        expected = f"expected at most {most}, as were measured"
        faults.note(Fault(got, expected, "write fidelity: ideal"), ("fabric", "topology"))
    return Calibrated(found, spec.interconnect or INFINIBAND, domain, port)


def check_measured(spec: AnyPlanSpec, faults: FaultCollector) -> None:
    """Note an NPU whose collectives nobody measured, where the plan asks for measured ones."""
    if spec.fidelity == CALIBRATED:
        _measured_npu(spec, faults)


def _measured_npu(spec: AnyPlanSpec, faults: FaultCollector) -> str | None:
    """The NPU whose collectives count: the plan's ``system``, else the one that it names."""
    if not spec.system and has_unknown_npu(spec):
        return None
    names, key = ([spec.system], "system") if spec.system else (npu_names(spec), "npu")
    if len(names) != 1:
        got = f"got calibrated with {', '.join(names) or 'no NPU'}"
        fix = "write system: h100-sxm"
        faults.note(Fault(got, "expected the NPU that collectives run on", fix), ("fidelity",))
        return None
    return faults.attempt((key,), _measured, names[0])


def _measured(name: str) -> str:
    """The NPU of a name whose collectives were measured.

    Raises
    ------
    SpecError
        For another one, with those that have the same links.
    """
    try:
        return measured_npu(name)
    except SpecError:
        known = catalogue().npus
        if (found := npu_named(name, known)) is None:
            raise
        parts = set(known[found].scale_up)
        alike = [one for one in known if parts & set(known[one].scale_up) and _is_measured(one)]
        fix = f"write system: {alike[0]}, whose links are the same, or" if alike else "write"
        got = f"got {found}, whose collectives nobody measured, with fidelity: calibrated"
        expected = f"expected an NPU of {', '.join(SCALE_UPS)}"
        raise SpecError(Fault(got, expected, f"{fix} fidelity: ideal")) from None


def _is_measured(name: str) -> bool:
    try:
        return bool(measured_npu(name))
    except SpecError:
        return False


def _calibrated_faults(spec: AnyPlanSpec) -> Iterator[tuple[Fault, Key]]:
    """What does not go together with the law of measured collectives, or only with it."""
    is_calibrated = spec.fidelity == CALIBRATED
    for name in ("system", "interconnect"):
        if not is_calibrated and getattr(spec, name):
            got, fix = f"got {name} with fidelity: {spec.fidelity}", "remove it"
            yield Fault(got, "expected fidelity: calibrated, which reads it", fix), (name,)
    unlike = {
        "algorithms": spec.algorithms,
        "in_network_reduction": spec.in_network_reduction,
        "schedules": spec.schedules != SchedulesSpec(),
        "scheduler": spec.scheduler == BALANCED,
    }
    for name in (name for name, given in unlike.items() if given and is_calibrated):
        got, fix = f"got {name} with fidelity: calibrated", "remove it, or write fidelity: ideal"
        yield Fault(got, "expected none: the law knows what NCCL ran", fix), (name,)


def _schedule_words(network: Network) -> tuple[str, ...]:
    """The schedules, where they are a question: of stacks, or where a plan asks for others."""
    if network.schedules == Schedules() and not network.topology.stacks:
        return ()
    kinds = (CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_TO_ALL)
    words = tuple(f"{kind} {network.schedule(kind)}" for kind in kinds)
    return (*words[:-1], f"{words[-1]} (PXN)") if network.has_pxn else words


def _schedules(spec: AnyPlanSpec, network: Network, faults: FaultCollector) -> Schedules:
    """The schedules of a plan; what cannot be combined with them is noted."""
    given = spec.schedules
    direct = Schedule(given.all_to_all) if given.all_to_all else None
    chosen = Schedules(Schedule(given.all_reduce), direct, given.pxn)
    for fault, key in _schedule_faults(spec, replace(network, schedules=chosen)):
        faults.note(fault, key)
    return chosen


def _schedule_faults(spec: AnyPlanSpec, network: Network) -> Iterator[tuple[Fault, Key]]:
    """What does not go together with a stack, or with a schedule."""
    chosen, topology = network.schedules, network.topology
    is_ring = chosen.all_reduce is Schedule.RING
    yield from _calibrated_faults(spec)
    if spec.fidelity == CALIBRATED:
        return
    if spec.fidelity == PIPELINED and topology.stacks:
        got = f"got pipelined for the stack {topology}"
        expected = "expected dimensions that serve chunks on networks of their own"
        fix = "write fidelity: ideal, or take the brackets away"
        yield Fault(got, expected, fix), ("fidelity",)
    elif spec.fidelity == PIPELINED and chosen != Schedules():
        got, fix = "got schedules with fidelity: pipelined", "remove them"
        expected = "expected none: chunks go through one dimension after the other"
        yield Fault(got, expected, fix), ("schedules",)
    if spec.scheduler == BALANCED and is_ring:
        got, fix = "got a ring with scheduler: balanced", "remove one of them"
        yield Fault(got, "expected dimensions in an order", fix), ("schedules", "all_reduce")
    if fault := schedule_fault(network):
        yield fault, ("schedules",)


_LISTS = {
    "latency_ns": ("latencies", "write one number for all, or a list"),
    "algorithms": ("algorithms", "write default where the usual one is meant"),
}


def _check_length(
    values: Sequence[object], topology: Topology, faults: FaultCollector, key: Key
) -> bool:
    """Whether there is one value for each dimension; else a fault is noted."""
    if len(values) != topology.n_dims:
        what, fix = _LISTS[str(key[-1])]
        expected = f"expected {topology.n_dims}, one for each dimension of {topology}"
        faults.note(Fault(f"got {len(values)} {what}", expected, fix), key)
    return len(values) == topology.n_dims


def _algorithms(
    spec: CommonSpec, topology: Topology, faults: FaultCollector
) -> tuple[Algorithm | None, ...]:
    chosen: list[Algorithm | None] = [None] * topology.n_dims
    names = spec.algorithms
    if names is None or not _check_length(names, topology, faults, ("algorithms",)):
        return tuple(chosen)
    for i, (name, dimension) in enumerate(zip(names, topology.dimensions, strict=True)):
        key = ("algorithms", i)
        found = None if name == "default" else faults.attempt(key, algorithm_named, name)
        # Powers of two are a matter of the groups, seen later: 2 is always one.
        fault = found and algorithm_fault(CollectiveKind.ALL_REDUCE, dimension, 2, found)
        if fault:
            faults.note(fault, key)
        chosen[i] = found
    return tuple(chosen)


def _in_network(spec: CommonSpec, topology: Topology, faults: FaultCollector) -> frozenset[int]:
    """The switches that reduce, each by its label or its tier."""
    labels, tiers = topology.labels, topology.tiers
    chosen: set[int] = set()
    for position, name in enumerate(spec.in_network_reduction):
        names = labels if name in labels else tiers
        dims = [i for i, own in enumerate(names) if own == name]
        fault = None
        if not dims:
            near = closest(name, dict.fromkeys((*labels, *tiers)))
            fault = Fault(f"got {name!r}", "expected a dimension or its tier", near)
        elif len(dims) > 1:
            got = f"got {name!r}, the tier of {len(dims)} dimensions"
            fault = Fault(got, "expected one", f"write {' or '.join(labels[i] for i in dims)}")
        elif not topology.dimensions[dims[0]].block.is_switched:
            got = f"got {name}, which is {topology.dimensions[dims[0]]}"
            fault = Fault(got, "expected a switch", "only switches reduce")
        elif dims[0] in chosen:
            fault = Fault(f"got {labels[dims[0]]} twice", "expected it once")
        if fault is not None:
            faults.note(fault, ("in_network_reduction", position))
        chosen |= set(dims)
    for stack in topology.stacks:
        missing = [labels[i] for i in stack if i not in chosen]
        if 0 < len(missing) < len(stack):
            named = ", ".join(labels[i] for i in stack if i in chosen)
            expected = "expected all tiers of a stack: one tree of switches spans them"
            fault = Fault(f"got {named} alone", expected, f"add {', '.join(missing)}")
            faults.note(fault, ("in_network_reduction",))
    return frozenset(chosen)
