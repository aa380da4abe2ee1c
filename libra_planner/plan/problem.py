"""A plan file into a :class:`~libra_planner.problem.Problem`; how it models collectives (C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from libra_planner.costs.prices import (
    Options,
    PriceBook,
    PricePart,
    has_nic,
    network_price_usd_per_Bps,
    price_parts,
)
from libra_planner.errors import Fault, SpecError, closest
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import Realization, Topology, parse_topology
from libra_planner.plan import options as catalogue
from libra_planner.plan import realization
from libra_planner.plan.loops import loop_settings
from libra_planner.plan.models import AUTO, AnyPlanSpec, CommonSpec, FabricSpec, PlanSpec
from libra_planner.plan.prices import FixedCost, fixed_cost, load_price_book
from libra_planner.plan.training import (
    PlannedTraining,
    TrainingBuilder,
    check_group,
    check_rules,
    entries,
    group_objective,
    plan_loop,
    plan_spec,
    planned_step,
    step_notes,
    step_settings,
)
from libra_planner.problem import (
    Fabric,
    PlanText,
    Prices,
    Problem,
    Rule,
    StepTimeLimit,
    with_alternatives,
)
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, apply_settings, dotted_key, read_document
from libra_planner.reading.models import FaultCollector
from libra_planner.reading.rules import parse_rule, rule_names
from libra_planner.step.collectives.algorithms import (
    Network,
    algorithm_fault,
    algorithm_named,
    plain_network,
)
from libra_planner.step.collectives.flowshop import AUTO_CHUNKS
from libra_planner.step.collectives.models import Balanced, CollectiveModel, Ideal, Pipelined
from libra_planner.step.collectives.scheduling import MAX_DIMS
from libra_planner.step.expression import Array
from libra_planner.step.training import Step
from libra_planner.units import NS_PER_S, format_usd
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


def load_plan(path: str | Path, settings: str | Sequence[str] = ()) -> Problem:
    """Read a plan file.

    Parameters
    ----------
    path : the plan.
    settings : one or several ``key=value`` overrides as ``--set`` takes them, applied
        before validation.

    Raises
    ------
    SpecError
        With every fault found, each with file, line, column and the fix.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> problem = load_plan(folder("examples") / "01_gpt3_4d.yaml")
    >>> problem.topology.n_npus, problem.workload_name
    (4096, 'gpt3-libra')
    """
    document = read_document(path)
    apply_settings(document, [settings] if isinstance(settings, str) else settings)
    return build_plan(document, Path(path).parent)


def build_plan(document: Document, beside: Path) -> Problem:
    """:func:`load_plan` of a document; ``beside`` is the folder its paths are relative to.

    Raises
    ------
    SpecError
        With every fault found.
    """
    try:
        spec = plan_spec(document)
    except SpecError as error:
        raise SpecError(*error.faults, *_further_faults(document, error, beside)) from None
    return _ProblemBuilder(document, spec, beside).problem()


def _further_faults(document: Document, error: SpecError, beside: Path) -> list[Fault]:
    """Faults of the topology and the rules of a plan in which other things are wrong."""
    value = document.value if isinstance(document.value, dict) else {}
    fabric, rules = value.get("fabric"), value.get("constraints")
    known = {fault.path for fault in error.faults}
    parts = fabric if isinstance(fabric, dict) else {}
    notation, tiers = parts.get("topology"), parts.get("tiers")
    if not isinstance(notation, str) or any(path.startswith("fabric.t") for path in known):
        return []
    spec = PlanSpec.model_construct(
        fabric=FabricSpec.model_construct(topology=notation, tiers=tiers),
        constraints=rules if isinstance(rules, list) else [],
    )
    builder = _ProblemBuilder(document, spec, beside)
    topology = builder.faults.attempt(("fabric", "topology"), builder.topology)
    if topology is not None:
        builder.rules(topology, None)
        builder.options(topology, None)
        builder.realization(topology, ())
    return [fault for fault in builder.faults.faults if fault.path not in known]


_NAMED = ("constraints", "objective", "fabric.link_options")
"""Keys that messages of the optimizer name."""


class _ProblemBuilder:
    """Turns a valid spec into a problem, collecting the faults of independent parts."""

    def __init__(self, document: Document, spec: AnyPlanSpec, beside: Path) -> None:
        self.document = document
        self.spec = spec
        self.beside = beside
        self.faults = FaultCollector(document)

    def problem(self) -> Problem:
        """The problem; raises all faults at once."""
        faults = self.faults
        builders = [
            TrainingBuilder(entry, self.spec, self.beside, collector)
            for entry, collector in entries(self.spec, faults)
        ]
        paths = [builder.path() for builder in builders]
        faults.attempt((), partial(check_group, self.spec))
        fabric = faults.attempt(("fabric", "topology"), self.topology)
        book = faults.attempt(("cost_model",), self._price_book)
        topology, price = faults.present(fabric), self._price(faults.present(fabric), book)
        faults.attempt(("training_loop",), partial(plan_loop, self.spec))
        fidelity = self._fidelity(topology)
        fixed = self._fixed_cost(topology)
        rules = self.rules(topology, price, fixed.usd)
        prices = () if book is None or price is None else price_parts(topology, book)
        options, realized = self.options(topology, price), self.realization(topology, prices)
        network = fidelity.network if fidelity else plain_network(topology)
        trainings = [b.build(network, path) for b, path in zip(builders, paths, strict=True)]
        planned = [faults.required(training) for training in trainings]
        modelled = faults.present(fidelity)
        steps = [
            faults.required(faults.attempt((), partial(planned_step, self.spec, planned, model)))
            for model in modelled.models
        ]
        base = Problem(
            fabric=Fabric(modelled.network, realized),
            step=steps[0],
            prices=Prices(tuple(faults.required(price).tolist()), fixed.usd, prices, options),
            rules=tuple(rule for rule in rules if isinstance(rule, Rule)),
            step_time_limits=tuple(rule for rule in rules if isinstance(rule, StepTimeLimit)),
            objective=self.spec.objective,
            group_objective=group_objective(self.spec),
        )
        last = self._settings(faults.required(book), fixed)
        text = partial(self._text, planned, modelled, last, fixed.notes)
        return with_alternatives([replace(base, step=step, text=text(step)) for step in steps])

    def _text(
        self,
        planned: list[PlannedTraining],
        fidelity: Fidelity,
        settings: tuple[str, ...],
        notes: tuple[str, ...],
        step: Step,
    ) -> PlanText:
        """What the plan says for people; ``settings`` and ``notes`` come last."""
        chosen = fidelity.settings(step.model.n_chunks)
        return PlanText(
            source=self.document.file,
            places={key: self.document.key_place(dotted_key(key)) for key in _NAMED},
            notes=(*step_notes(self.spec, planned, step), *notes),
            settings=(*step_settings(self.spec, planned, step), *chosen, *settings),
            unused_keys=fidelity.unused_keys,
        )

    def _settings(self, book: PriceBook, fixed: FixedCost) -> tuple[str, ...]:
        loop = loop_settings(self.spec.training_loop, plan_loop(self.spec))
        settings = (*loop, f"prices {book.name} ({book.as_of})")
        return (*settings, f"fixed cost {format_usd(fixed.usd)}") if fixed.usd else settings

    def topology(self) -> Topology:
        """The fabric's topology, with its tiers."""
        if not self.spec.fabric.tiers:
            parse_topology(self.spec.fabric.topology)
            got, fix = "got no tiers", "name the price tier of each dimension"
            raise SpecError(Fault(got, "expected one per dimension", fix, "fabric.tiers"))
        return parse_topology(self.spec.fabric.topology, self.spec.fabric.tiers)

    def _price_book(self) -> PriceBook:
        return load_price_book(bundled.resolve("cost-models", self.spec.cost_model, self.beside))

    def _price(self, topology: Topology, book: PriceBook | None) -> Array | None:
        if book is None:
            return None
        pricing = partial(network_price_usd_per_Bps, topology, book)
        return self.faults.attempt(("fabric", "tiers"), pricing)

    def _fidelity(self, topology: Topology) -> Fidelity | None:
        build = partial(build_fidelity, self.spec, topology)
        return self.faults.attempt(("fidelity",), build)

    def _fixed_cost(self, topology: Topology) -> FixedCost:
        spec = self.spec.fixed_cost
        build = partial(fixed_cost, spec, topology.n_npus, self.beside)
        return self.faults.attempt(("fixed_cost", "catalogue"), build) or FixedCost()

    def rules(
        self, topology: Topology, price: Array | None, fixed_cost_usd: float = 0.0
    ) -> list[Rule | StepTimeLimit]:
        """The constraints; with an unknown price, only for their faults."""
        prices = np.ones(topology.n_dims) if price is None else price
        names = rule_names(topology, prices, fixed_cost_usd)
        rules: list[Rule | StepTimeLimit] = []
        texts = ((i, t) for i, t in enumerate(self.spec.constraints) if isinstance(t, str))
        for i, text in texts:
            place = self.document.place(("constraints", i))
            parse = partial(parse_rule, text, names, place)
            parsed = self.faults.attempt(("constraints", i), parse) or []
            self.faults.attempt(("constraints", i), partial(check_rules, self.spec, parsed))
            rules += parsed
        return rules

    def options(self, topology: Topology, price: Array | None) -> tuple[Options | None, ...]:
        """What can be bought; with an unknown price, only for the faults."""
        prices = np.ones(topology.n_dims) if price is None else price
        reading = partial(catalogue.load_options, self.document, topology, prices)
        return self.faults.attempt(catalogue.KEY, reading) or ()

    def realization(self, topology: Topology, prices: tuple[PricePart, ...]) -> Realization | None:
        """How the dimensions are built, where the plan says it; without prices for the faults."""
        nics = has_nic(topology, prices)
        reading = partial(realization.load_realization, self.document, topology, nics)
        return self.faults.attempt(realization.KEY, reading)
