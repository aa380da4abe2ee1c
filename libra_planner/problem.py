"""A planning problem in numbers: step time, price and rules over the bandwidth vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from libra_planner.collectives.algorithms import Network
from libra_planner.costs.options import Options, distinct_options, find_options
from libra_planner.costs.prices import PricePart, has_nic
from libra_planner.errors import Place
from libra_planner.fabric.topology import Realization, Topology, default_realization
from libra_planner.group import Member, relative_time
from libra_planner.timing.evaluators import StepEvaluators
from libra_planner.timing.expression import Array, TimeExpression
from libra_planner.timing.loops import Slowdown
from libra_planner.units import BYTES_PER_S_PER_GBPS
from libra_planner.workload.communication import Communication
from libra_planner.workload.memory import ModelStates
from libra_planner.workload.operations import Covers

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
    """

    text: str
    coefficients: tuple[float, ...]
    sense: str
    bound: float
    unit: str = "GB/s"
    unit_factor: float = BYTES_PER_S_PER_GBPS
    line: int | None = None
    column: int | None = None
    cost_factor: float = 0.0

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
        return self.coefficients[0] > 0 and len(set(self.coefficients)) == 1


@dataclass(frozen=True)
class StepTimeLimit:
    """A rule ``step_time <= limit_s``."""

    text: str
    limit_s: float
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Problem:
    """What is optimised or evaluated: the meeting point of all that a plan says.

    Parameters
    ----------
    source : where it came from; every error message starts with it.
    places : where keys of the plan stand that a message may be about, if it is a file.
    workload_name : for reports.
    topology : the fabric.
    step_time : T(B), seconds.
    price_usd_per_Bps : network cost per byte/s, shape (n_dims,).
    rules : linear design rules, cost bounds included.
    step_time_limits : bounds on T(B).
    objective : ``performance``, ``performance_per_cost`` or ``cost`` (C8).
    fixed_cost_usd : cost of the system that no bandwidth changes; cost includes it.
    real_link_step_time : T(B) when partial groups have only their own links (C6);
        ``None`` without partial groups.
    notes : assumptions worth printing beside a result.
    unused_keys : keys of the plan that its model of collectives does not use.
    settings : what the plan chose (degrees, batch, prices), for people to read.
    members : the workloads of a group; empty for a plan with one. ``step_time`` of a
        group is their weighted mean.
    group_objective : ``weighted``, ``relative`` or ``worst_case`` (C8).
    own_optima_s : least step time of each member alone under the same rules, T_i*,
        once an optimizer has found them; empty before.
    price_parts : the prices of the book that ``price_usd_per_Bps`` is made of.
    options : per dimension what can be bought, ``None`` for any bandwidth at the price
        book's price; empty when no dimension has options.
    n_chunks : chunks of every collective; ``None`` where they are not modelled.
    alternatives : the same problem with every number of chunks that the plan leaves
        open, this one's first; empty where it leaves none.
    realization : how the dimensions are built from whole links; ``None`` where the plan
        does not say.
    evaluators : what can be told of a single vector only.
    n_sequences : sequences per step over the whole cluster; ``None`` where nobody knows.
    covers : ``part`` where any workload is part of a step: no run is told of it (C21).
    tokens_per_step : over the whole cluster; ``None`` where nobody knows, and for groups.
    step_fix : what to write to have a whole step; empty where it is one.
    memory : what the model needs on an NPU (C19); ``None`` for a group, whose members have it,
        and where the workload does not know it.
    communications : the distinct collectives of a step; of a group, all members'.
    network : the fabric as these collectives meet it; ``None`` for a problem of another source.
    at_slowdown : the same problem where collectives take longer in a dimension than the
        model says, as a check of its links finds; ``None`` where that cannot be told.
    """

    source: str
    workload_name: str
    topology: Topology
    step_time: TimeExpression
    price_usd_per_Bps: Array = field(repr=False)
    rules: tuple[Rule, ...] = ()
    step_time_limits: tuple[StepTimeLimit, ...] = ()
    objective: str = "performance"
    fixed_cost_usd: float = 0.0
    real_link_step_time: TimeExpression | None = None
    notes: tuple[str, ...] = ()
    unused_keys: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    group_objective: str = "weighted"
    own_optima_s: tuple[float, ...] = ()
    price_parts: tuple[PricePart, ...] = ()
    options: tuple[Options | None, ...] = ()
    n_chunks: int | None = None
    alternatives: tuple[Problem, ...] = field(default=(), repr=False)
    realization: Realization | None = None
    evaluators: StepEvaluators = field(default=StepEvaluators(), repr=False, compare=False)
    n_sequences: int | None = None
    covers: Covers = Covers.PART
    tokens_per_step: int | None = None
    step_fix: str = ""
    memory: ModelStates | None = None
    communications: tuple[Communication, ...] = field(default=(), repr=False)
    network: Network | None = field(default=None, repr=False)
    at_slowdown: Callable[[Slowdown], Problem] | None = field(
        default=None, repr=False, compare=False
    )
    places: Mapping[str, Place] = field(default_factory=dict, repr=False, compare=False)

    def place(self, key: str) -> Place:
        """Where a key of the plan stands."""
        return self.places.get(key) or Place(self.source)

    def at(self, key: str) -> str:
        """How a message about a key of the plan begins."""
        return f"{self.place(key)}: {key}: "

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
    def memories(self) -> dict[str, ModelStates]:
        """What the models need on an NPU (C19), by workload; without those that do not know it."""
        listed = [(member.name, member.memory) for member in self.members]
        found = listed or [(self.workload_name, self.memory)]
        return {name: memory for name, memory in found if memory is not None}

    @cached_property
    def purchasable(self) -> dict[int, Options]:
        """Distinct options of the dimensions that have some, slowest first, by index."""
        listed = enumerate(self.options)
        return {i: distinct_options(options) for i, options in listed if options is not None}

    @property
    def links(self) -> Realization:
        """How the dimensions are built from whole links: as the plan says, else by default.

        Check, report, sweep and cockpit all realise this; a switch without a NIC is one
        switch for each group (C14).
        """
        has = has_nic(self.topology, self.price_parts)
        return self.realization or default_realization(self.topology, has)

    @property
    def compute_s(self) -> float:
        """What remains at infinite bandwidth: compute, and the latency of a plan that has it."""
        return self.step_time.least_s

    def cost_usd(self, bandwidth_bytes_per_s: Array) -> Array:
        """Cost, USD, shape of the designs; input shape (..., n_dims).

        Network cost (C7), plus the fixed cost of a plan that gives one (C8).
        """
        return self.fixed_cost_usd + self.network_cost_usd(bandwidth_bytes_per_s)

    def network_cost_usd(self, bandwidth_bytes_per_s: Array) -> Array:
        """Network cost (C7), USD, shape of the designs; input shape (..., n_dims)."""
        if self.options:
            return np.asarray(self.cost_usd_by_dim(bandwidth_bytes_per_s).sum(axis=-1))
        network: Array = np.asarray(bandwidth_bytes_per_s) @ self.price_usd_per_Bps
        return network

    def cost_usd_by_dim(self, bandwidth_bytes_per_s: Array) -> Array:
        """Network cost of each dimension, USD; input and output shape (..., n_dims).

        A purchasable bandwidth costs what its cheapest option costs, any other one the
        price book's linear price.
        """
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
        price per byte/s of each dimension at this vector, shape (n_dims,).
        """
        if not self.options:
            return self.rules
        bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
        bought = np.where(bandwidth > 0, bandwidth, 1.0)
        cost = self.cost_usd_by_dim(bandwidth)
        price = np.where(bandwidth > 0, cost / bought, self.price_usd_per_Bps)
        return tuple(
            replace(rule, coefficients=tuple(map(float, rule.cost_factor * price)))
            if rule.cost_factor
            else rule
            for rule in self.rules
        )

    def total_bandwidth_bytes_per_s(self) -> float | None:
        """The plan's total: its equality, else its upper bound, else ``None`` (C9)."""
        totals = {
            sense: [
                rule.bound / rule.coefficients[0] for rule in self._totals if rule.sense == sense
            ]
            for sense in ("==", "<=")
        }
        return min(totals["=="] or totals["<="], default=None)

    @property
    def _totals(self) -> list[Rule]:
        return [rule for rule in self.rules if rule.is_total and rule.unit == "GB/s"]


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
    """The alternative with the least step time at a vector; the problem if it has none."""
    if not problem.alternatives:
        return problem
    return min(
        problem.alternatives,
        key=lambda one: float(one.step_time.seconds(bandwidth_bytes_per_s)),
    )
