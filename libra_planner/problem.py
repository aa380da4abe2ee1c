"""A planning problem in numbers: step time, price and rules over the bandwidth vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from libra_planner.costs.bills import BillChoice, BillTable
from libra_planner.costs.prices import Options, PricePart, distinct_options, find_options, has_nic
from libra_planner.costs.quotes import Quote
from libra_planner.errors import Place, beginning
from libra_planner.fabric.scale_up import ScaleUpDomain
from libra_planner.fabric.topology import Realization, Topology, default_realization
from libra_planner.frozen import Frozen
from libra_planner.quantities import TAPER, TOTAL
from libra_planner.step.collectives.algorithms import Network, plain_network
from libra_planner.step.collectives.models import Slowdown
from libra_planner.step.expression import Array, TimeExpression
from libra_planner.step.training import Member, Step, plain_step, relative_time
from libra_planner.units import BYTES_PER_S_PER_GBPS

RULE_TOLERANCE = 1e-9
"""Relative violation up to which a rule counts as met (C9)."""

_TYPICAL_BYTES_PER_S = 100 * BYTES_PER_S_PER_GBPS
"""Bandwidth of each dimension where a plan gives no total."""


@dataclass(frozen=True)
class Rule:
    """One linear design rule ``coefficients . B (sense) bound``.

    Parameters
    ----------
    text : the rule as the user wrote it (a chain gives several rules of one text).
    coefficients : shape (n_dims,); per byte/s.
    sense : ``<=``, ``>=`` or ``==``.
    bound : right-hand side, SI.
    unit : unit that ``bound`` has when divided by ``unit_factor``, such as GB/s.
    unit_factor : SI value of one unit.
    line : line in the plan file, if it has one.
    column : column there.
    cost_factor : multiple of the network cost on the left side of a rule over cost; its
        ``coefficients`` are this times the price book's prices.
    tier : of a bound on a taper, the dimension (from 0) whose bandwidth divides that of the tier
        inside; the row is ``B_(tier-1) - bound B_tier (sense) 0`` (C13).
    """

    text: str
    coefficients: tuple[float, ...]
    sense: str
    bound: float
    unit: str = TOTAL.unit
    unit_factor: float = TOTAL.unit_factor
    line: int | None = None
    column: int | None = None
    cost_factor: float = 0.0
    tier: int | None = None

    def in_units(self, bandwidth_bytes_per_s: Array) -> Rule:
        """The rule with the unit that it is told in at a vector: a taper where it bounds one."""
        bandwidth = 0.0 if self.tier is None else float(bandwidth_bytes_per_s[self.tier])
        return replace(self, unit=TAPER.unit, unit_factor=bandwidth) if bandwidth else self

    @property
    def bound_text(self) -> str:
        """Sense and bound, such as ``>= 25 GB/s``."""
        if self.tier is not None:
            return f"{self.sense} {-self.coefficients[self.tier]:g} {TAPER.unit}"
        return f"{self.sense} {self.bound / self.unit_factor:g} {self.unit}"

    def excess(self, bandwidth_bytes_per_s: Array) -> float:
        """How far the rule is from being met, SI; 0 where it is met."""
        difference = float(np.dot(self.coefficients, bandwidth_bytes_per_s)) - self.bound
        return {"<=": max(difference, 0.0), ">=": max(-difference, 0.0)}.get(
            self.sense, abs(difference)
        )

    def relative_excess(self, bandwidth_bytes_per_s: Array) -> float:
        """:meth:`excess` over the larger of the bound and the left side's terms."""
        terms = float(np.dot(np.abs(self.coefficients), bandwidth_bytes_per_s))
        size = max(abs(self.bound), terms)
        return self.excess(bandwidth_bytes_per_s) / size if size else 0.0

    @property
    def is_total(self) -> bool:
        """Whether the left side is a multiple of the sum of all bandwidths."""
        is_even = self.coefficients[0] > 0 and len(set(self.coefficients)) == 1
        return is_even and self.unit == TOTAL.unit


@dataclass(frozen=True)
class StepTimeLimit:
    """A rule ``step_time <= limit_s``."""

    text: str
    limit_s: float
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class PlanText:
    """What a plan says, for people.

    Parameters
    ----------
    source : where it came from; every error message starts with it.
    places : where keys stand that a message may be about, if it is a file.
    notes : assumptions worth printing beside a result.
    settings : what the plan chose (degrees, batch, prices).
    unused_keys : keys that its model of collectives does not use.
    unused_quotes : what has a quote that its linear prices do not use.
    rules : its constraints, as it says them.
    """

    source: str = "plan"
    places: Mapping[str, Place] = field(default_factory=dict, repr=False, compare=False)
    notes: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    unused_keys: tuple[str, ...] = ()
    unused_quotes: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prices(Frozen):
    """What the network costs, and the rest of the system.

    Parameters
    ----------
    usd_per_Bps : network cost per byte/s of each dimension, shape (n_dims,).
    fixed_usd : cost of the system that no bandwidth changes; cost includes it.
    parts : the prices of the book that ``usd_per_Bps`` is made of.
    options : per dimension what can be bought, ``None`` for any bandwidth at the price
        book's price; empty when no dimension has options.
    quotes : a user's, of tiers, parts and NPUs, whether used here or not.
    choice : of whole parts, where a plan is priced by its bill (C22); ``None`` at linear prices.
    bills : the bill of every option of that choice, once a catalogue of parts has priced them;
        cost is theirs then.
    fixed_npus_usd : of ``fixed_usd`` NPUs whose price is a catalogue's or a quote's.
    catalogue : of the parts that bills and quotes name.
    """

    usd_per_Bps: tuple[float, ...] = field(repr=False)
    fixed_usd: float = 0.0
    parts: tuple[PricePart, ...] = ()
    options: tuple[Options | None, ...] = ()
    quotes: tuple[Quote, ...] = ()
    choice: BillChoice | None = None
    bills: BillTable | None = None
    fixed_npus_usd: float = 0.0
    catalogue: str = field(default="parts", repr=False)

    @cached_property
    def array(self) -> Array:
        """Network cost per byte/s of each dimension, shape (n_dims,)."""
        return np.array(self.usd_per_Bps, dtype=np.float64)

    @cached_property
    def purchasable(self) -> dict[int, Options]:
        """Distinct options of the dimensions that have some, slowest first, by index."""
        listed = enumerate(self.options)
        return {i: distinct_options(options) for i, options in listed if options is not None}


@dataclass(frozen=True)
class Problem(Frozen):
    """What is optimised or evaluated: the meeting point of all that a plan says.

    Parameters
    ----------
    network : the dimensions as collectives meet them.
    step : what is trained, and its time T(B).
    prices : of bandwidth, and what no bandwidth changes.
    rules : linear design rules, cost bounds included.
    step_time_limits : bounds on T(B).
    objective : ``performance``, ``performance_per_cost`` or ``cost`` (C8).
    group_objective : ``weighted``, ``relative`` or ``worst_case`` (C8).
    own_optima_s : least step time of each member of a group alone under the same rules, T_i*,
        once an optimizer has found them; empty before.
    alternatives : the same problem with every number of chunks that the plan leaves
        open, this one's first; empty where it leaves none.
    realization : how the dimensions are built from whole links; ``None`` where the plan does not
        say.
    scale_up : the part that the innermost dimensions are (C14), where the plan names one.
    text : what the plan says, for people.
    """

    network: Network
    step: Step
    prices: Prices
    rules: tuple[Rule, ...] = ()
    step_time_limits: tuple[StepTimeLimit, ...] = ()
    objective: str = "performance"
    group_objective: str = "weighted"
    own_optima_s: tuple[float, ...] = ()
    alternatives: tuple[Problem, ...] = field(default=(), repr=False)
    realization: Realization | None = None
    scale_up: ScaleUpDomain | None = None
    text: PlanText = PlanText()

    @property
    def settings(self) -> tuple[str, ...]:
        """What the plan chose, for people to read."""
        return self.text.settings

    @property
    def topology(self) -> Topology:
        """The dimensions."""
        return self.network.topology

    @property
    def workload_name(self) -> str:
        """What is trained, for reports."""
        return self.step.name

    @property
    def step_time(self) -> TimeExpression:
        """T(B), seconds; of a group, the weighted mean."""
        return self.step.time

    @property
    def members(self) -> tuple[Member, ...]:
        """The workloads of a group; empty for a plan with one."""
        return self.step.members if self.step.is_group else ()

    @property
    def price_usd_per_Bps(self) -> Array:
        """Network cost per byte/s of each dimension, shape (n_dims,)."""
        return self.prices.array

    @property
    def fixed_cost_usd(self) -> float:
        """Cost of the system that no bandwidth changes."""
        return self.prices.fixed_usd

    @property
    def options(self) -> tuple[Options | None, ...]:
        """What can be bought, by dimension."""
        return self.prices.options

    @property
    def purchasable(self) -> dict[int, Options]:
        """Distinct options of the dimensions that have some, slowest first, by index."""
        return self.prices.purchasable

    def place(self, key: str) -> Place:
        """Where a key of the plan stands."""
        return self.text.places.get(key) or Place(self.text.source)

    def at(self, key: str) -> str:
        """How a message about a key of the plan begins."""
        return beginning(self.place(key), key)

    @cached_property
    def objective_time(self) -> TimeExpression | None:
        """The time in the objective: T, or a group's relative one (C8), dimensionless.

        ``None`` while a group's relative time lacks the members' own optima.
        """
        if self.group_objective == "weighted":
            return self.step_time
        if not self.own_optima_s:
            return None
        return relative_time(self.members, self.own_optima_s, self.group_objective)

    @property
    def n_npus_bought(self) -> int:
        """NPUs that are paid for: those of whole scale-up domains, used or not (C13)."""
        domain, topology = self.scale_up, self.topology
        return domain.n_npus_bought(topology) if domain else topology.n_npus

    @property
    def included_dims(self) -> Sequence[int]:
        """Dimensions that the price of the servers holds (C22)."""
        return self.scale_up.included_dims(self.topology) if self.scale_up else ()

    @property
    def links(self) -> Realization:
        """How the dimensions are built from whole links: as the plan says, else by default.

        Check, report, sweep and cockpit all realise this; a switch without a NIC is one
        switch for each group (C14).
        """
        has = has_nic(self.topology, self.prices.parts)
        found = self.realization or default_realization(self.topology, has)
        return self.scale_up.realized(self.topology, found) if self.scale_up else found

    @property
    def compute_s(self) -> float:
        """What remains at infinite bandwidth: compute, and the latency of a plan that has it."""
        return self.step_time.least_s

    def cost_usd(self, bandwidth_bytes_per_s: Array) -> Array:
        """Cost, USD, shape of the designs; input shape (..., n_dims).

        Network cost (C7), plus the fixed cost of a plan that gives one (C8); of a plan that is
        priced by its bill the whole bill, NaN for what none of its options is (C22).
        """
        if self.prices.bills is not None:
            return self.prices.bills.of(self.prices.bills.usd, bandwidth_bytes_per_s)
        return self.fixed_cost_usd + self.network_cost_usd(bandwidth_bytes_per_s)

    def network_cost_usd(self, bandwidth_bytes_per_s: Array) -> Array:
        """Network cost (C7), USD, shape of the designs; input shape (..., n_dims)."""
        if self.options or self.prices.bills is not None:
            return np.asarray(self.cost_usd_by_dim(bandwidth_bytes_per_s).sum(axis=-1))
        network: Array = np.asarray(bandwidth_bytes_per_s) @ self.price_usd_per_Bps
        return network

    def cost_usd_by_dim(self, bandwidth_bytes_per_s: Array) -> Array:
        """Network cost of each dimension, USD; input and output shape (..., n_dims).

        A purchasable bandwidth costs what its cheapest option costs, any other one the
        price book's linear price. Of a bill, its lines of the dimension's links.
        """
        if self.prices.bills is not None:
            return self.prices.bills.of(self.prices.bills.usd_by_dim, bandwidth_bytes_per_s)
        bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
        cost: Array = bandwidth * self.price_usd_per_Bps
        for i, options in self.purchasable.items():
            found = find_options(options, bandwidth[..., i])
            prices = np.array([option.cost_usd for option in options])
            cost[..., i] = np.where(found >= 0, prices[found], cost[..., i])
        return cost

    def rules_at(self, bandwidth_bytes_per_s: Array) -> tuple[Rule, ...]:
        """The rules with those over cost at the prices that one vector is bought for.

        Options need not be priced linearly: the row of a rule over cost becomes the
        price per byte/s of each dimension at this vector, shape (n_dims,). A bill is spread
        over all of it.
        """
        if not self.options and self.prices.bills is None:
            return self.rules
        bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
        bought = np.where(bandwidth > 0, bandwidth, 1.0)
        cost = self.cost_usd_by_dim(bandwidth)
        price = np.where(bandwidth > 0, cost / bought, self.price_usd_per_Bps)
        if self.prices.bills is not None:
            price = np.full(len(bandwidth), self.cost_usd(bandwidth) / bandwidth.sum())
        return tuple(
            replace(rule, coefficients=tuple(map(float, rule.cost_factor * price)))
            if rule.cost_factor
            else rule
            for rule in self.rules
        )

    def total_bandwidth_bytes_per_s(self) -> float | None:
        """The plan's total: its equality, else its upper bound, else ``None`` (C9)."""
        totals = [(r.sense, r.bound / r.coefficients[0]) for r in self.rules if r.is_total]
        fixed = [total for sense, total in totals if sense == "=="]
        return min(fixed or [total for sense, total in totals if sense == "<="], default=None)


def plain_problem(
    topology: Topology, time: TimeExpression, prices: Prices, rules: tuple[Rule, ...] = ()
) -> Problem:
    """A problem of which nothing but its numbers is known: no plan, and no collectives."""
    return Problem(plain_network(topology), plain_step(time), prices, rules)


def slowed(problem: Problem, slowdown: Slowdown) -> Problem:
    """The problem, and each of its alternatives, where collectives take longer.

    Parameters
    ----------
    problem : one that a plan made.
    slowdown : factors on the time of each collective by dimension.

    Raises
    ------
    SpecError
        For a problem that does not know its collectives.
    """
    several = problem.alternatives or (problem,)
    return with_alternatives(
        [replace(one, step=one.step.slowed(slowdown), alternatives=()) for one in several]
    )


def with_alternatives(problems: Sequence[Problem]) -> Problem:
    """The problem that is fastest at equal bandwidth, with all of them as alternatives.

    Parameters
    ----------
    problems : the same plan with different numbers of chunks, one or more.
    """
    if len(problems) == 1:
        return problems[0]
    n_dims = problems[0].topology.n_dims
    total = problems[0].total_bandwidth_bytes_per_s() or n_dims * _TYPICAL_BYTES_PER_S
    equal = np.full(n_dims, total / n_dims)
    ranked = sorted(problems, key=lambda problem: float(problem.step_time.seconds(equal)))
    return replace(ranked[0], alternatives=tuple(ranked))


def fastest_alternative(problem: Problem, bandwidth_bytes_per_s: Array) -> Problem:
    """The alternative with the least step time at a vector; the problem if it has none.

    Its links are those of the option that is bought there, where a bill prices options (C22).
    """
    if problem.alternatives:
        problem = min(
            problem.alternatives,
            key=lambda one: float(one.step_time.seconds(bandwidth_bytes_per_s)),
        )
    return bought(problem, bandwidth_bytes_per_s)


def bought(problem: Problem, bandwidth_bytes_per_s: Array) -> Problem:
    """The problem with the links of the cheapest option of a vector, where a bill prices some."""
    bills = problem.prices.bills
    row = -1 if bills is None else int(bills.rows(bandwidth_bytes_per_s))
    if bills is None or row < 0:
        return problem
    return replace(problem, realization=bills.options[row].realization)


def with_bills(problem: Problem, bills: BillTable | None) -> Problem:
    """The problem, and each of its alternatives, at the money of bills (C22).

    Parameters
    ----------
    problem : one that a plan made.
    bills : of all that can be bought; ``None`` for linear prices.
    """
    choice = problem.prices.choice if bills is not None else None
    prices = replace(problem.prices, bills=bills, choice=choice)
    alternatives = tuple(with_bills(one, bills) for one in problem.alternatives)
    return replace(problem, prices=prices, alternatives=alternatives)
