"""A plan file into a :class:`~libra_planner.problem.Problem`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from libra_planner.costs import prices as pricing
from libra_planner.costs.bills import BillChoice
from libra_planner.costs.prices import quoted_book
from libra_planner.costs.quotes import Quote, unused_items
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.fabric.scale_up import ScaleUpDomain
from libra_planner.fabric.topology import MOST_TIERS, Topology, parse_topology
from libra_planner.files import read_text
from libra_planner.plan import options as catalogue
from libra_planner.plan import realization, scale_up, training
from libra_planner.plan.fidelity import Fidelity, build_fidelity, check_measured
from libra_planner.plan.loops import loop_settings
from libra_planner.plan.models import CALIBRATED, AnyPlanSpec, FabricSpec, PlanSpec
from libra_planner.plan.npus import catalogue_npu, name_notes, scale_up_domain
from libra_planner.plan.prices import FixedCost, fixed_cost, load_price_book
from libra_planner.plan.quotes import plan_quotes, quote_notes
from libra_planner.plan.steps import whole
from libra_planner.plan.steps.notes import Kind, of_kind
from libra_planner.plan.systems import System, is_system_file, load_system
from libra_planner.problem import PlanText, Prices, Problem, Rule, StepTimeLimit, with_alternatives
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, Key, apply_settings, dotted_key, read_document
from libra_planner.reading.models import FaultCollector
from libra_planner.reading.rules import memory_limits, parse_rule, rule_names
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.step.expression import Array
from libra_planner.step.training import Step
from libra_planner.units import format_usd
from libra_planner.workload.placement import DEFAULT_ORDER, refuse_other_npus


def load_plan(
    path: str | Path, settings: str | Sequence[str] = (), *, parts: str = "parts"
) -> Problem:
    """Read a plan file.

    Parameters
    ----------
    path : the plan.
    settings : one or several ``key=value`` overrides as ``--set`` takes them, applied
        before validation.
    parts : parts catalogue whose parts the plan's quotes may name.

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
    return build_plan(document, Path(path).parent, parts)


def build_plan(
    document: Document, beside: Path, parts: str = "parts", *, holds_memory: bool = True
) -> Problem:
    """:func:`load_plan` of a document; ``beside`` is the folder its paths are relative to.

    Without ``holds_memory`` a model need not fit its NPUs, nor meet the rules on memory.

    Raises
    ------
    SpecError
        With every fault found.
    """
    try:
        spec = training.plan_spec(document)
    except SpecError as error:
        faults = [*error.faults, *_further_faults(document, error, beside)]
        raise SpecError(*_with_names(document, beside, faults)) from None
    builder = _ProblemBuilder(document, spec, beside, parts, holds_memory)
    builder.read_system()
    try:
        return builder.problem()
    except SpecError as error:
        raise type(error)(*_with_names(document, beside, error.faults)) from None


def _with_names(document: Document, beside: Path, faults: Sequence[Fault]) -> list[Fault]:
    """Faults, those of names that stand alone too, in the order of the file's lines."""
    value = document.value if isinstance(document.value, dict) else {}
    fabric = value.get("fabric")
    domain = fabric.get("scale_up") if isinstance(fabric, dict) else None
    names: tuple[tuple[Key, object, Callable[..., object]], ...] = (
        (("workload",), value.get("workload"), _workload_text),
        (("npu",), value.get("npu"), partial(catalogue_npu, path="npu")),
        (("cost_model",), value.get("cost_model"), load_price_book),
        (("fabric", "scale_up"), domain, scale_up_domain),
        *_member_names(value.get("workloads")),
    )
    known, collector = {fault.path for fault in faults}, FaultCollector(document)
    for key, name, read in names:
        path = ".".join(map(str, key))  # A fault of npu may stand at npu.name, its long form.
        if isinstance(name, str) and known.isdisjoint((path, f"{path}.name")):
            own = () if key[-1] in ("workload", "cost_model") else (None,)
            collector.attempt(key, read, name, *own, beside)
    places = [Place(document.file) if x.place is None else x.place for x in faults]
    # Faults inside another file stay behind those of the plan.
    every = [*zip(places, faults, strict=True)]
    every += [(x.place or Place(document.file), x) for x in collector.faults]
    order = sorted(every, key=lambda one: (one[0].file != document.file, *_line(one[0])))
    return [fault for _, fault in order]


def _workload_text(name: str, beside: Path) -> str:
    """What a workload's file says; a fault where there is none."""
    return read_text(bundled.resolve("workloads", name, beside))


def _member_names(members: object) -> Iterator[tuple[Key, object, Callable[..., object]]]:
    """Names in members of a plan of several workloads, each with what reads it."""
    for i, one in enumerate(members if isinstance(members, list) else ()):
        key = ("workloads", i)
        if isinstance(one, dict):
            yield (*key, "workload"), one.get("workload"), _workload_text
            path = f"workloads.{i}.npu"
            yield (*key, "npu"), one.get("npu"), partial(catalogue_npu, path=path)


def _line(place: Place) -> tuple[float, int]:
    """Line and column; what has none, such as a number of further faults, stands last."""
    return place.line or math.inf, place.column or 0


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
    topology = builder.attempt(("fabric", "topology"), builder.topology)
    if topology is not None:
        prices = np.ones(topology.n_dims)
        builder.rules(topology, prices)
        builder.attempt(catalogue.KEY, catalogue.load_options, document, topology, prices)
        nics = pricing.has_nic(topology, ())
        builder.attempt(realization.KEY, realization.load_realization, document, topology, nics)
        if isinstance(name := parts.get("scale_up"), str):
            choice = scale_up.ScaleUpChoice.model_construct(name=name, catalogue=None)
            builder.attempt(scale_up.KEY, scale_up.plan_domain, choice, topology, (), beside)
        if not any(path.startswith("parallelism") for path in known):
            said = value.get("parallelism")
            builder.attempt(("parallelism",), _refuse_other_npus, said, topology)
    return [fault for fault in builder.faults if fault.path not in known]


def _refuse_other_npus(said: object, topology: Topology) -> None:
    """Refuse degrees that are written and do not multiply to the NPUs."""
    degrees = said if isinstance(said, dict) else {}
    numbers = {axis: degrees.get(axis, 1) for axis in DEFAULT_ORDER}
    is_whole = not set(numbers).isdisjoint(degrees) and "rest" not in degrees
    if not is_whole or any(type(n) is not int or n < 1 for n in numbers.values()):
        return
    try:
        refuse_other_npus(topology, numbers)
    except SpecError as error:  # What else a degree must suit is not known here.
        fix = "change a degree or the topology"
        raise SpecError(*(replace(one, fix=fix) for one in error.faults)) from None


_NAMED = (
    *("constraints", "objective", "prices", "fabric.link_options", "fabric.bill_options"),
    "fabric.realization.parts",
)
"""Keys that messages of the optimizer name."""


@dataclass
class _ProblemBuilder(FaultCollector):
    """Turns a valid spec into a problem, collecting the faults of independent parts."""

    spec: AnyPlanSpec
    beside: Path
    parts: str = "parts"
    holds_memory: bool = True
    system: System | None = None

    def read_system(self) -> None:
        """Read the user's system file that the plan names, if any; the plan then names its NPU."""
        name = self.spec.system
        if name is not None and self.spec.fidelity == CALIBRATED and is_system_file(name):
            read = self.attempt(("system",), load_system, name, self.beside)
            self.system = self.present(read)
            self.spec = self.spec.model_copy(update={"system": self.system.npu})

    def problem(self) -> Problem:
        """The problem; raises all faults at once."""
        spec, attempt, required = self.spec, self.attempt, self.required
        about = self.beside, self.system, self.holds_memory
        builders = training.builders(spec, self, *about)
        paths = [builder.path() for builder in builders]
        attempt((), training.check_group, spec)
        fabric, (book, quotes) = attempt(("fabric", "topology"), self.topology), self._book()
        topology = self.present(fabric)
        domain = attempt(scale_up.KEY, self._domain, topology)
        price, prices = self._prices(topology, book, domain)
        attempt(("training_loop",), training.plan_loop, spec)
        nics = self._nics(topology, prices, domain)
        fidelity = self._fidelity(topology, domain, nics)
        fixed = self._fixed_cost(topology, domain, quotes)
        known = np.ones(topology.n_dims) if price is None else price  # For faults alone.
        rules, document = self.rules(topology, known, fixed.usd), self.document
        options = attempt(catalogue.KEY, catalogue.load_options, document, topology, known) or ()
        rules += self._scale_up_rules(domain, topology, rules, options)
        choice = self._choice(topology, rules)
        realized = attempt(realization.KEY, realization.load_realization, document, topology, nics)
        network = fidelity.network if fidelity else plain_network(topology)
        trainings = [b.build(network, path) for b, path in zip(builders, paths, strict=True)]
        planned = [required(one) for one in trainings]
        self._refuse_over_limit(planned)
        modelled, step_of = self.present(fidelity), partial(training.planned_step, spec, planned)
        steps = [required(attempt((), step_of, model)) for model in modelled.models]
        usd = tuple(required(price).tolist()), fixed.usd
        base = Problem(
            network=modelled.network,
            realization=realized,
            scale_up=domain,
            step=steps[0],
            prices=Prices(*usd, prices, options, quotes, choice, None, fixed.npus_usd, self.parts),
            rules=tuple(rule for rule in rules if isinstance(rule, Rule)),
            step_time_limits=tuple(rule for rule in rules if isinstance(rule, StepTimeLimit)),
            objective=spec.objective,
            group_objective=spec.group_objective,
        )
        of = partial(self._text, planned, modelled, required(book), fixed, base)
        return with_alternatives([replace(base, step=step, text=of(step)) for step in steps])

    def _fidelity(
        self, topology: Topology, domain: ScaleUpDomain | None, nics: tuple[bool, ...]
    ) -> Fidelity | None:
        """How collectives are timed; ``None`` where the plan's scale-up part is wrong."""
        if domain is None and self.spec.fabric.scale_up is not None:
            check_measured(self.spec, self)
            return None
        return build_fidelity(self.spec, topology, self, nics, self.system)

    def _refuse_over_limit(self, planned: Sequence[training.PlannedTraining]) -> None:
        """Refuse models that need more memory than a rule of the plan allows (C19).

        Raises
        ------
        Infeasible
            With the rule.
        """
        for i, text in enumerate(self.spec.constraints if self.holds_memory else ()):
            limits = self.attempt(("constraints", i), memory_limits, text)
            if limits is not None:
                trainings = [one.training for one in planned]
                limit = limits, text, self.document.place(("constraints", i))
                self.attempt(("constraints", i), whole.refuse_over, trainings, *limit)

    def _prices(
        self, topology: Topology, book: pricing.PriceBook | None, domain: ScaleUpDomain | None
    ) -> tuple[Array | None, tuple[pricing.PricePart, ...]]:
        """Prices by dimension and by part, where they are known."""
        if book is None:
            return None, ()
        included = domain.included_dims(topology) if domain else ()
        per_Bps = pricing.network_price_usd_per_Bps
        price = self.attempt(("fabric", "tiers"), per_Bps, topology, book, included)
        return price, () if price is None else pricing.price_parts(topology, book, included)

    def _nics(
        self,
        topology: Topology,
        prices: tuple[pricing.PricePart, ...],
        domain: ScaleUpDomain | None,
    ) -> tuple[bool, ...]:
        """Which dimensions are reached through NICs: none of a scale-up domain."""
        own = domain.dims(topology) if domain else ()
        nics = enumerate(pricing.has_nic(topology, prices))
        return tuple(nic and dim not in own for dim, nic in nics)

    def _domain(self, topology: Topology) -> ScaleUpDomain | None:
        """The scale-up domain that the fabric names."""
        choice, npus = self.spec.fabric.scale_up, training.npu_names(self.spec, self.beside)
        return scale_up.plan_domain(choice, topology, npus, self.beside)

    def _book(self) -> tuple[pricing.PriceBook | None, tuple[Quote, ...]]:
        """The price book with the user's quotes, and all of them; where they are known."""
        spec, beside = self.spec, self.beside
        book = self.attempt(("cost_model",), load_price_book, spec.cost_model, beside)
        if book is None:
            return None, ()
        quotes = self.attempt(("quotes",), plan_quotes, spec, beside, book, self.parts) or ()
        return quoted_book(book, quotes), quotes

    def _fixed_cost(
        self, topology: Topology, domain: ScaleUpDomain | None, quotes: Sequence[Quote]
    ) -> FixedCost:
        """Of all NPUs that are paid for, used or not."""
        n_npus = domain.n_npus_bought(topology) if domain else topology.n_npus
        parts = (self.spec.fixed_cost, n_npus, self.beside, quotes)
        self.attempt(("fixed_cost", "npu"), training.check_bought_npu, self.spec, self.beside)
        return self.attempt(("fixed_cost", "catalogue"), fixed_cost, *parts) or FixedCost()

    def _choice(
        self, topology: Topology, rules: Sequence[Rule | StepTimeLimit]
    ) -> BillChoice | None:
        """What the optimizer buys at the money of the bill; ``None`` at linear prices."""
        is_bill = self.spec.prices == catalogue.BILL
        linear = [rule for rule in rules if isinstance(rule, Rule)]
        for key, fault in catalogue.pricing_faults(self.document, linear, is_bill=is_bill):
            self.note(fault, key, at_key=True)
        if not is_bill:
            return None
        listed = self.spec.fabric.bill_options
        return self.attempt(catalogue.BILL_KEY, catalogue.bill_choice, listed, topology)

    def _scale_up_rules(
        self,
        domain: ScaleUpDomain | None,
        topology: Topology,
        rules: Sequence[Rule | StepTimeLimit],
        options: Sequence[pricing.Options | None],
    ) -> list[Rule]:
        """What a scale-up domain fixes; what the plan says against it is noted."""
        if domain is None:
            return []
        for fault in scale_up.option_faults(domain, topology, options):
            self.note(fault, catalogue.KEY)
        for name, fault in scale_up.realization_faults(domain, topology, self.document):
            self.note(fault, (*realization.KEY, name), at_key=True)
        linear = [rule for rule in rules if isinstance(rule, Rule)]
        place = self.document.place(scale_up.KEY)
        found = self.attempt(scale_up.KEY, scale_up.fixed_rules, domain, topology, linear, place)
        return found or []

    def _text(
        self,
        planned: list[training.PlannedTraining],
        fidelity: Fidelity,
        book: pricing.PriceBook,
        fixed: FixedCost,
        base: Problem,
        step: Step,
    ) -> PlanText:
        """What the plan says for people."""
        notes, settings = training.step_words(self.spec, planned, step)
        npus = training.npu_names(self.spec, self.beside)
        more, words = scale_up.domain_words(base, npus)
        notes += [*of_kind(Kind.DECISION, name_notes(npus)), *more]
        settings += words
        settings += fidelity.settings(step.model.n_chunks)
        if any(one.training.loop is not None for one in planned):
            settings += loop_settings(self.spec.layer_loop, training.plan_loop(self.spec))
        tiers = [x for i, x in enumerate(base.topology.tiers) if i not in base.included_dims]
        sure = f", {book.confidence(tiers)}" if tiers else ""
        quotes = base.prices.quotes
        file = f", quotes of {quotes[0].file}" if quotes else ""
        settings.append(f"prices {book.name} ({book.as_of}{sure}){file}")
        settings += ["priced by its bill"] * (base.prices.choice is not None)
        used = [part.quote.item for part in base.prices.parts if part.quote] + [*fixed.quoted]
        is_billed = base.prices.choice is not None
        counts = [x.for_units(base.n_npus_bought) if x.item in fixed.quoted else x for x in quotes]
        quoted = quote_notes(counts, used, is_billed=is_billed)
        unused = catalogue.unused_notes(self.document, base.prices.choice)
        notes += of_kind(Kind.BASIS, fixed.notes)
        if fixed.usd:
            settings.append(f"fixed cost {format_usd(fixed.usd)}")
        return PlanText(
            source=self.document.file,
            places={key: self.document.key_place(dotted_key(key)) for key in _NAMED},
            notes=(*notes, *quoted, *unused, *_free_notes(base, book)),
            settings=tuple(settings),
            unused_keys=fidelity.unused_keys,
            unused_quotes=() if is_billed else unused_items(base.prices.quotes, used),
            rules=tuple(self.spec.constraints),
        )

    def topology(self) -> Topology:
        """The fabric's topology, with its tiers."""
        fabric = self.spec.fabric
        topology = parse_topology(fabric.topology, fabric.tiers or ())
        deepest = max(map(len, topology.stacks), default=0)
        if deepest > MOST_TIERS:
            got, expected = f"got a stack of {deepest} tiers", "expected leaves, spines and cores"
            raise SpecError(Fault(got, expected, "join two of them"))
        if not fabric.tiers:
            got, fix = "got no tiers", "name the price tier of each dimension"
            raise SpecError(Fault(got, "expected one per dimension", fix, "fabric.tiers"))
        return topology

    def rules(
        self, topology: Topology, prices: Array, fixed_cost_usd: float = 0.0
    ) -> list[Rule | StepTimeLimit]:
        """The constraints."""
        names = rule_names(topology, prices, fixed_cost_usd)
        rules: list[Rule | StepTimeLimit] = []
        texts = ((i, t) for i, t in enumerate(self.spec.constraints) if isinstance(t, str))
        for i, text in texts:
            key: Key = ("constraints", i)
            place = self.document.place(key)
            parsed = self.attempt(key, parse_rule, text, names, place) or []
            self.attempt(key, training.check_rules, self.spec, parsed)
            rules += parsed
        return rules


def _free_notes(base: Problem, book: pricing.PriceBook) -> Iterator[str]:
    """Switches and direct links that cost nothing, and why."""
    options = enumerate(base.prices.options)
    held = {*base.included_dims, *(i for i, one in options if one is not None)}
    paid = [x for i, x in enumerate(base.topology.dimensions) if i not in held]
    switched = dict.fromkeys(x.tier for x in paid if x.block.is_switched)
    yield from pricing.free_tier_notes(switched, book)
    yield from pricing.direct_link_notes(base.topology, book, held)
