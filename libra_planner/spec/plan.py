"""A plan file into a :class:`~libra_planner.problem.Problem`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from libra_planner.collectives import real_link_slowdown, traffic_bytes
from libra_planner.costing import PriceBook, network_price_usd_per_Bps
from libra_planner.errors import DataNotFound, Fault, SpecError
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.spec import bundled
from libra_planner.spec.document import Document, Key, read_document
from libra_planner.spec.faults import validated
from libra_planner.spec.models import DegreesSpec, FabricSpec, PlanSpec
from libra_planner.spec.prices import load_price_book
from libra_planner.spec.rules import parse_rule, rule_names
from libra_planner.spec.settings import apply_settings, dotted_key
from libra_planner.spec.workloads import PlanSettings, load_workload
from libra_planner.timing.expression import Array, Node, TimeExpression, transfers
from libra_planner.timing.loops import step_time
from libra_planner.topology import Topology, parse_topology
from libra_planner.workload.operations import Collective, Phase, Workload
from libra_planner.workload.parallelism import (
    Communicators,
    Group,
    communicators_from_degrees,
    communicators_from_sizes,
)

Result = TypeVar("Result")


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
    >>> from libra_planner.spec.bundled import folder
    >>> problem = load_plan(folder("examples") / "01_gpt3_4d.yaml")
    >>> problem.topology.n_npus, problem.workload_name
    (4096, 'gpt3-libra')
    """
    document = read_document(path)
    apply_settings(document, [settings] if isinstance(settings, str) else settings)
    beside = Path(path).parent
    try:
        spec = validated(PlanSpec, document)
    except SpecError as error:
        raise SpecError(*error.faults, *_further_faults(document, error, beside)) from None
    return _Builder(document, spec, beside).problem()


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
    builder = _Builder(document, spec, beside)
    topology = builder.attempt(("fabric", "topology"), builder.topology)
    if topology is not None:
        builder.rules(topology, None)
    return [fault for fault in builder.faults if fault.path not in known]


@dataclass
class _Builder:
    """Turns a valid spec into a problem, collecting the faults of independent parts."""

    document: Document
    spec: PlanSpec
    beside: Path
    faults: list[Fault] = field(default_factory=list)

    def problem(self) -> Problem:
        """The problem; raises all faults at once."""
        workload_path = self.attempt(("workload",), self._workload_path)
        fabric = self.attempt(("fabric", "topology"), self.topology)
        book = self.attempt(("cost_model",), self._price_book)
        topology = self._present(fabric)
        price = None
        if book is not None:
            pricing = partial(network_price_usd_per_Bps, topology, book)
            price = self.attempt(("fabric", "tiers"), pricing)
        rules = self.rules(topology, price)
        groups = self.attempt(("parallelism",), partial(self._communicators, topology))
        communicators = self._present(groups)
        path = self._present(workload_path)
        workload = self._required(
            self.attempt(("workload",), partial(self._workload, path, communicators))
        )
        timing = partial(self._step_time, topology, communicators, workload)
        expression = self._required(self.attempt(("parallelism",), timing))
        return Problem(
            source=self.document.file,
            workload_name=workload.name,
            topology=topology,
            step_time=expression,
            price_usd_per_Bps=self._required(price),
            rules=tuple(rule for rule in rules if isinstance(rule, Rule)),
            step_time_limits=tuple(rule for rule in rules if isinstance(rule, StepTimeLimit)),
            objective=self.spec.objective,
            real_link_step_time=self._real_links(topology, communicators, workload),
            notes=workload.notes + self._coverage(topology, communicators, workload),
            settings=self._settings(workload, self._required(book)),
        )

    def attempt(self, key: Key, build: Callable[[], Result]) -> Result | None:
        """What ``build`` returns, or its faults noted with their places."""
        try:
            return build()
        except SpecError as error:
            missing = isinstance(error, DataNotFound)
            self.faults += [self._located(fault, key, missing=missing) for fault in error.faults]
            return None

    def _located(self, fault: Fault, key: Key, *, missing: bool) -> Fault:
        """A fault at its place in the plan; one inside another file keeps that file's place."""
        if missing:
            fault = Fault(f"{fault.got} ({fault.place})", fault.expected, fault.fix)
        if fault.place:
            return fault
        at = dotted_key(fault.path) if fault.path else key
        return fault.located(self.document.place(at), ".".join(map(str, at)))

    def _settings(self, workload: Workload, book: PriceBook) -> tuple[str, ...]:
        parallelism, npu = self.spec.parallelism, self.spec.npu
        if isinstance(parallelism, DegreesSpec):
            settings = [f"TP {parallelism.tp} x DP {parallelism.dp}"]
        else:
            settings = ["group sizes per phase"]
        if workload.n_sequences is not None:
            settings.append(f"{workload.n_sequences:,} sequences per step")
        if npu is not None:
            share = f"{npu.efficiency_fraction:.0%} of {npu.peak_TFLOPps:g} TFLOP/s"
            settings.append(f"compute at {share} per NPU")
        settings += [f"loop {self.spec.training_loop}", f"prices {book.name} ({book.as_of})"]
        return tuple(settings)

    @staticmethod
    def _coverage(
        topology: Topology, communicators: Communicators, workload: Workload
    ) -> tuple[str, ...]:
        """A note where a generated workload's groups leave NPUs without work."""
        tp = communicators.group(Phase.FORWARD, "tp").n_npus
        n_used = tp * communicators.group(Phase.WEIGHT_GRAD, "dp").n_npus
        if workload.n_sequences is None or n_used == topology.n_npus:
            return ()
        return (
            f"forward x weight_grad groups make {n_used:,} NPUs of work on {topology.n_npus:,} "
            f"NPUs; cost counts them all",
        )

    def _required(self, part: Result | None) -> Result:
        if self.faults or part is None:
            raise SpecError(*self.faults)
        return part

    def _present(self, part: Result | None) -> Result:
        """Stop only when this very part is missing; other faults can wait for company."""
        return part if part is not None else self._required(part)

    def topology(self) -> Topology:
        """The fabric's topology, with its tiers."""
        if not self.spec.fabric.tiers:
            parse_topology(self.spec.fabric.topology)
            got, fix = "got no tiers", "name the price tier of each dimension"
            raise SpecError(Fault(got, "expected one per dimension", fix, "fabric.tiers"))
        return parse_topology(self.spec.fabric.topology, self.spec.fabric.tiers)

    def _price_book(self) -> PriceBook:
        return load_price_book(bundled.resolve("cost-models", self.spec.cost_model, self.beside))

    def _communicators(self, topology: Topology) -> Communicators:
        parallelism = self.spec.parallelism
        if isinstance(parallelism, DegreesSpec):
            return communicators_from_degrees(
                topology, {"tp": parallelism.tp, "dp": parallelism.dp}
            )
        sizes = {phase: tuple(getattr(parallelism, phase.value)) for phase in Phase}
        return communicators_from_sizes(topology, sizes)

    def _workload_path(self) -> Path:
        return bundled.resolve("workloads", self.spec.workload, self.beside)

    def _workload(self, path: Path, communicators: Communicators) -> Workload:
        tp = communicators.group(Phase.FORWARD, "tp").n_npus
        dp = communicators.group(Phase.WEIGHT_GRAD, "dp").n_npus
        settings = PlanSettings(tp, dp, self.spec.global_batch, self.spec.npu)
        workload = load_workload(path, settings)
        generated = workload.n_sequences is not None
        input_grad = communicators.group(Phase.INPUT_GRAD, "tp").n_npus
        if generated and input_grad != tp:
            got = f"got groups of {input_grad} NPUs, but of {tp} in forward"
            expected = "expected the same tensor-parallel degree in both"
            raise SpecError(Fault(got, expected, "", "parallelism.input_grad"))
        return workload

    def rules(self, topology: Topology, price: Array | None) -> list[Rule | StepTimeLimit]:
        """The constraints; with an unknown price, only for their faults."""
        names = rule_names(topology, np.ones(topology.n_dims) if price is None else price)
        rules: list[Rule | StepTimeLimit] = []
        texts = ((i, t) for i, t in enumerate(self.spec.constraints) if isinstance(t, str))
        for i, text in texts:
            place = self.document.place(("constraints", i))
            parsed = self.attempt(("constraints", i), partial(parse_rule, text, names, place))
            rules += parsed or []
        return rules

    def _step_time(
        self, topology: Topology, communicators: Communicators, workload: Workload
    ) -> TimeExpression:
        loop = self.spec.training_loop
        expression = step_time(workload, communicators, topology.n_dims, loop=loop)
        if not expression.least_s and not len(expression.forms):
            got = f"got {workload.name}, whose step takes no time under this parallelism"
            raise SpecError(Fault(got, "expected compute or communication", "", "workload"))
        return expression

    def _real_links(
        self, topology: Topology, communicators: Communicators, workload: Workload
    ) -> TimeExpression | None:
        """Step time with the real links of partial groups, if there are any (C6)."""

        def time(collective: Collective, group: Group) -> Node:
            slowdown = real_link_slowdown(collective, group, topology)
            return transfers(traffic_bytes(collective, group) * slowdown)

        loop = self.spec.training_loop
        real = step_time(workload, communicators, topology.n_dims, loop=loop, time=time)
        ideal = self._step_time(topology, communicators, workload)
        return real if real.root != ideal.root else None
