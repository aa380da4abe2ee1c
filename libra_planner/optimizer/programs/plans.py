"""Plans of one structure as arrays, and what their programs need: bounds, typical designs.

A plan alone is a batch of one (:func:`plans_alone`).

With s = 1/C and y = B/C a transfer ``bytes / (form . B)`` times C is ``bytes / (form . y)``
and a constant times C is ``constant / s``, so T C is again a time expression, over (y, s).
A rule ``a . B <= h`` is ``a . y <= h s``, and the definition of C is ``price . y + F s = 1``.
Minimising T C under linear rules is therefore the convex problem that performance is, with
one dimension more (the transformation of Charnes and Cooper for fractional programs).

It also shows that T C is quasi-convex: a local optimum is the global one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from libra_planner.errors import Fault, SpecError, refuse
from libra_planner.optimizer.programs import dimensionless as programs
from libra_planner.optimizer.programs.dimensionless import Index
from libra_planner.problem import Problem, StepTimeLimit
from libra_planner.step import expression as tree
from libra_planner.step.expression import Array, Mask
from libra_planner.step.training import plain_step
from libra_planner.units import BYTES_PER_S_PER_GBPS

_LEAST, _MOST = float(np.nextafter(0.0, 1.0)), float(np.finfo(np.float64).max)
"""The least number above 0, and the largest that is finite."""

_GUESS_BPS = 1e11
"""Bandwidth at which roots are touched before anything is known."""

_IDLE_SHARE = 1e-4
"""Traffic, over the largest, that a dimension without any is scaled for."""

_ROUNDS = 5
"""Rounds of interval propagation; bounds are proven after each of them."""

_FREE_SHARE = 1e-3
"""Price, over the largest, that something free is scaled for."""


@dataclass(frozen=True)
class BatchProgram:
    """n designs of one structure: one problem's names and shape, and the numbers of each design.

    Every array has the designs on its first axis; broadcast views are welcome.

    Parameters
    ----------
    template : names, topology, senses of the rules, objective, and the tree of the step time.
    time_numbers : numbers of the merged tree (``template.step_time.merged``) in its order:
        bytes of transfers, seconds of constants, factors; shape (n, n_numbers).
    coefficients : left sides of the rules, shape (n, n_rules, n_dims), per byte/s. Rules over
        cost hold prices: :meth:`priced` changes both.
    bounds : their right sides, shape (n, n_rules), SI.
    price_usd_per_Bps : shape (n, n_dims).
    fixed_cost_usd : shape (n,).
    limit_s : the tightest bound on step time, shape (n,); infinite where there is none.

    Examples
    --------
    A sweep over the total bandwidth:

    >>> import libra_planner as lp
    >>> base = lp.load_plan(lp.example("01_gpt3_4d"))
    >>> program = BatchProgram.repeated(base, 3)
    >>> program = replace(program, bounds=np.array([[3e11], [4e11], [5e11]]))
    >>> program.problem(2).rules[0].bound
    500000000000.0
    """

    template: Problem
    time_numbers: Array
    coefficients: Array
    bounds: Array
    price_usd_per_Bps: Array
    fixed_cost_usd: Array
    limit_s: Array

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit the template or hold numbers without a meaning."""
        if not fits_a_batch(self.template):
            got = "got purchasable options, bills, an open number of chunks or a relative group"
            raise SpecError(Fault(got, "expected none of these in a batch", "use batch_optimize"))
        facts = self._facts()
        faults = [
            Fault(f"got an array of shape {found}", f"expected {shape}", path=name)
            for name, (shape, *_) in facts.items()
            if (found := getattr(self, name).shape) != shape
        ]
        faults = faults or [
            Fault("got a number out of range", f"expected {meaning}", path=name)
            for name, (_, meaning, least, most) in facts.items()
            if not ((least <= getattr(self, name)) & (getattr(self, name) <= most)).all()
        ]
        refuse(faults)

    @property
    def n(self) -> int:
        """Designs."""
        return len(self.bounds)

    @property
    def structure(self) -> tree.Structure:
        """The shape of the step time."""
        return self.template.step_time.structure

    @classmethod
    def repeated(cls, problem: Problem, n: int) -> BatchProgram:
        """One problem n times, for ``dataclasses.replace`` to vary its numbers."""
        one = cls.of([problem])
        return one._changed(lambda array: np.broadcast_to(array, (n, *array.shape[1:])))

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> BatchProgram:
        """Problems of one structure: equal :func:`structure_key`."""
        template, n = problems[0], len(problems)
        n_dims, n_rules = template.topology.n_dims, len(template.rules)
        coefficients = [[rule.coefficients for rule in problem.rules] for problem in problems]
        bounds = [[rule.bound for rule in problem.rules] for problem in problems]
        limits = [[limit.limit_s for limit in problem.step_time_limits] for problem in problems]
        return cls(
            template=template,
            time_numbers=np.array([p.step_time.numbers for p in problems], dtype=np.float64),
            coefficients=np.array(coefficients, dtype=np.float64).reshape(n, n_rules, n_dims),
            bounds=np.array(bounds, dtype=np.float64).reshape(n, n_rules),
            price_usd_per_Bps=np.array([p.price_usd_per_Bps for p in problems], dtype=np.float64),
            fixed_cost_usd=np.array([p.fixed_cost_usd for p in problems], dtype=np.float64),
            limit_s=np.array([min(limit, default=np.inf) for limit in limits]),
        )

    def part(self, which: slice | Index) -> BatchProgram:
        """Some of the designs."""
        return self._changed(lambda array: array[which])

    def priced(self, price_usd_per_Bps: Array, fixed_cost_usd: Array) -> BatchProgram:
        """The designs at other prices, shapes (n, n_dims) and (n,), rules over cost included."""
        coefficients, bounds = np.array(self.coefficients), np.array(self.bounds)
        for k, rule in enumerate(self.template.rules):
            if rule.cost_factor:
                coefficients[:, k] = rule.cost_factor * price_usd_per_Bps
                bounds[:, k] -= rule.cost_factor * (fixed_cost_usd - self.fixed_cost_usd)
        return replace(
            self,
            coefficients=coefficients,
            bounds=bounds,
            price_usd_per_Bps=price_usd_per_Bps,
            fixed_cost_usd=fixed_cost_usd,
        )

    def problem(self, i: int) -> Problem:
        """Design i's problem."""
        template, limit_s = self.template, float(self.limit_s[i])
        numbered = zip(template.rules, self.coefficients[i], self.bounds[i], strict=True)
        rules = tuple(
            replace(rule, coefficients=tuple(map(float, row)), bound=float(bound))
            for rule, row, bound in numbered
        )
        limit = min(
            template.step_time_limits,
            key=lambda limit: limit.limit_s,
            default=StepTimeLimit("step_time", limit_s),
        )
        time = self.structure.expression(self.time_numbers[i])
        return replace(
            template,
            step=plain_step(time, template.workload_name),
            rules=rules,
            prices=replace(
                template.prices,
                usd_per_Bps=tuple(self.price_usd_per_Bps[i].tolist()),
                fixed_usd=float(self.fixed_cost_usd[i]),
            ),
            step_time_limits=(replace(limit, limit_s=limit_s),) if np.isfinite(limit_s) else (),
        )

    def _changed(self, change: Callable[[Array], Array]) -> BatchProgram:
        arrays = {name: x for name, x in vars(self).items() if name != "template"}
        return BatchProgram(self.template, *map(change, arrays.values()))

    def _facts(self) -> dict[str, tuple[tuple[int, ...], str, Array | float, float]]:
        """Of each array its shape, what it may hold, and the range of that."""
        n, n_dims, n_rules = self.n, self.template.topology.n_dims, len(self.template.rules)
        owners = [owner for owner, _ in tree.owned_numbers(self.structure.root)]
        leaves = tree.Transfer | tree.Root
        least = np.array([_LEAST * isinstance(owner, leaves) for owner in owners])
        times = "bytes above 0, seconds and factors of 0 or more, all finite"
        return {
            "time_numbers": ((n, len(owners)), times, least, _MOST),
            "coefficients": ((n, n_rules, n_dims), "finite numbers", -_MOST, _MOST),
            "bounds": ((n, n_rules), "finite numbers", -_MOST, _MOST),
            "price_usd_per_Bps": ((n, n_dims), "finite prices of 0 or more", 0.0, _MOST),
            "fixed_cost_usd": ((n,), "finite costs of 0 or more", 0.0, _MOST),
            "limit_s": ((n,), "times above 0, infinite for none", _LEAST, np.inf),
        }


def fits_a_batch(problem: Problem) -> bool:
    """Whether a problem is one convex program with no choice outside of it."""
    chosen = problem.options or problem.prices.choice is not None or problem.alternatives
    return not (chosen or problem.group_objective != "weighted")


def structure_key(problem: Problem) -> tuple[object, ...]:
    """What problems of one structure have in common.

    >>> import libra_planner as lp
    >>> rules = ('constraints=["total == 5 GB/s"]', 'constraints=["total == 9 GB/s"]')
    >>> first, second = (lp.load_plan(lp.example("01_gpt3_4d"), [rule]) for rule in rules)
    >>> structure_key(first) == structure_key(second)
    True
    """
    return (
        problem.step_time.structure.key,
        problem.topology.n_dims,
        problem.objective,
        bool(problem.step_time_limits),
        tuple(rule.sense for rule in problem.rules),
    )


@dataclass(frozen=True)
class Plans:
    """n plans of one structure in numbers, the designs on the last axis.

    Parameters
    ----------
    structure : shape of the step time.
    objective : what is minimised.
    time_numbers : numbers of the step time's tree, shape (n_numbers, n).
    rules : over bandwidths in bytes/s.
    price_usd_per_Bps : shape (n_dims, n).
    fixed_cost_usd, limit_s, compute_s : shape (n,).
    lower, upper : proven bounds of bandwidth under the linear rules, bytes/s, (n_dims, n).
    """

    structure: tree.Structure
    objective: str
    time_numbers: Array
    rules: programs.RuleRows
    price_usd_per_Bps: Array
    fixed_cost_usd: Array
    limit_s: Array
    compute_s: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, batch: BatchProgram) -> Plans:
        """The numbers of a batch, and the bounds that interval propagation proves."""
        template, time_numbers = batch.template, np.ascontiguousarray(batch.time_numbers.T)
        structure = batch.structure
        rows = np.ascontiguousarray(batch.coefficients.transpose(1, 2, 0))
        senses = [rule.sense for rule in template.rules]
        rules = programs.RuleRows.of(senses, rows, np.ascontiguousarray(batch.bounds.T))
        lower, upper = interval_bounds(rules)
        return cls(
            structure=structure,
            objective=template.objective,
            time_numbers=time_numbers,
            rules=rules,
            price_usd_per_Bps=np.ascontiguousarray(batch.price_usd_per_Bps.T),
            fixed_cost_usd=np.ascontiguousarray(batch.fixed_cost_usd),
            limit_s=np.ascontiguousarray(batch.limit_s),
            compute_s=structure.least_s(time_numbers) * np.ones(batch.n),
            lower=lower,
            upper=upper,
        )

    @property
    def n(self) -> int:
        """Designs."""
        return len(self.limit_s)

    @property
    def lifted(self) -> programs.LiftedTimes:
        """The linear forms of their times."""
        return programs.lift(self.structure, self.time_numbers)

    def touching(self, bandwidth_bytes_per_s: Array) -> Plans:
        """The plans without roots: no faster, and as fast at bandwidths (n_dims, n)."""
        if not self.structure.has_roots:
            return self
        near = self.structure.touching_numbers(self.time_numbers, bandwidth_bytes_per_s)
        return replace(self, structure=self.structure.touching, time_numbers=near)

    @property
    def used(self) -> Mask:
        """Whether any transfer uses a dimension, shape (n_dims,)."""
        return self.structure.dims_with_traffic

    @property
    def empty(self) -> Mask:
        """Proven: no bandwidth vector meets the rules, shape (n,)."""
        room = np.where(np.isfinite(self.upper), self.upper, np.abs(self.lower) + 1.0)
        none = (self.lower > self.upper + 1e-6 * room) | (self.used[:, None] & (self.upper <= 0))
        return np.asarray(none.any(axis=0))

    def take(self, which: Index) -> Plans:
        """Some of the plans."""
        return self if np.array_equal(which, np.arange(self.n)) else programs.some_of(self, which)

    def cost_usd(self, bandwidth_bytes_per_s: Array) -> Array:
        """Network and fixed cost, shape (n,), of bandwidths (n_dims, n)."""
        network_usd = (self.price_usd_per_Bps * bandwidth_bytes_per_s).sum(axis=0)
        return np.asarray(self.fixed_cost_usd + network_usd)


def interval_bounds(rules: programs.RuleRows) -> tuple[Array, Array]:
    """Bounds that the rules imply for each bandwidth, shapes (n_dims, n), in turn.

    Every row bounds each bandwidth by the others' bounds; what comes out is proven (to
    rounding) but not always tight.

    Examples
    --------
    >>> rows = np.array([[[1.0], [1.0]], [[-1.0], [1.0]]])  # b1 + b2 <= 6, b2 <= b1
    >>> none = np.empty((0, 2, 1))
    >>> interval_bounds(programs.RuleRows(rows, np.array([[6.0], [0.0]]), none, none[:, 0]))[1]
    array([[6.],
           [6.]])
    """
    rows = np.concatenate([rules.upper, rules.equal, -rules.equal])
    limits = np.concatenate([rules.limit, rules.target, -rules.target])
    lower = np.zeros(rows.shape[1:])
    upper = np.full_like(lower, np.inf)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for _ in range(_ROUNDS if len(rows) > 1 else 1):  # One row says all that it knows at once.
            before = lower.copy(), upper.copy()
            for row, limit in zip(rows, limits, strict=True):
                _tighten(row, limit, lower, upper)
            if np.array_equal(before, (lower, upper)):
                break
    return lower, upper


def _tighten(row: Array, limit: Array, lower: Array, upper: Array) -> None:
    """Bounds, in place, after ``row . b <= limit``."""
    least = np.where(row == 0, 0.0, np.where(row > 0, row * lower, row * upper))
    endless = np.isinf(least)
    finite = np.where(endless, 0.0, least)
    others_endless = endless.sum(axis=0) - endless
    rest = np.where(others_endless > 0, -np.inf, finite.sum(axis=0) - finite)
    size = np.abs(limit) + np.abs(finite).sum(axis=0)
    reach = (limit - rest + 1e-15 * size) / row
    np.minimum(upper, np.where(row > 0, reach, np.inf), out=upper)
    np.maximum(lower, np.where(row < 0, reach, 0.0), out=lower)


def program_near(plans: Plans, typical: Array, *, limited: bool = False) -> programs.Program:
    """Least time, or with ``limited`` least cost within the step-time limit, near ``typical``.

    ``typical`` has shape (n_dims, n), bytes/s. Roots are replaced by what touches them there.
    """
    return program_touching(plans, typical, typical, limited=limited)


def program_touching(
    plans: Plans, typical: Array, at: Array, *, limited: bool = False
) -> programs.Program:
    """:func:`program_near` in units of ``typical``, that touches the roots at another design."""
    program = programs.dimensionless_program(
        plans.touching(at).lifted,
        plans.rules,
        plans.price_usd_per_Bps,
        typical,
        plans.upper,
        plans.limit_s if limited else np.full(plans.n, np.inf),
    )
    return program.weighted(0.0, 1.0) if limited else program


def typical_designs(plans: Plans) -> Array:
    """Designs of the right order of magnitude, bytes/s, shape (n_dims, n).

    For objective cost, or where nothing bounds a dimension with traffic, what the step-time
    limit asks of every dimension at the least cost; else a split of the largest budget.
    """
    lifted = plans.touching(np.full_like(plans.lower, _GUESS_BPS)).lifted
    carried = (lifted.forms > 0)[:, :, None] * lifted.floors[: len(lifted.forms), None]
    traffic = carried.sum(axis=0)  # Bytes that each dimension carries alone.
    most = traffic.max(axis=0, initial=0.0)
    traffic = np.where(traffic > 0, traffic, np.where(most > 0, most * _IDLE_SHARE, 1.0))
    cheap = np.isinf(plans.upper[plans.used]).any(axis=0) | (plans.objective == "cost")
    guess = np.where(cheap, _cheap_split(plans, traffic), _fast_split(plans, traffic))
    guess = np.clip(guess, plans.lower, np.maximum(plans.upper, plans.lower))
    return np.where(guess > 0, guess, np.maximum(guess.max(axis=0), 1.0))


def _fast_split(plans: Plans, traffic: Array) -> Array:
    """Under one budget and one transfer per dimension the optimum splits as sqrt(traffic)."""
    rules, share = plans.rules, np.sqrt(traffic)
    bounds = np.abs(np.concatenate([rules.limit, rules.target]))
    largest = np.abs(np.concatenate([rules.upper, rules.equal])).max(axis=1, initial=0.0)
    sizes = np.where(largest > 0, bounds / np.where(largest > 0, largest, 1.0), 0.0)
    budget = sizes.max(axis=0, initial=BYTES_PER_S_PER_GBPS)
    budget = np.maximum(budget, plans.lower.max(axis=0))
    reach = np.where(np.isfinite(plans.upper), plans.upper, budget)
    return np.asarray(reach * share / share.sum(axis=0))


def _cheap_split(plans: Plans, traffic: Array) -> Array:
    """Least cost of sum traffic_i / B_i = seconds has B_i ~ sqrt(traffic_i / price_i)."""
    limit_s = np.where(np.isfinite(plans.limit_s), plans.limit_s, 2 * plans.compute_s)
    seconds = limit_s - plans.compute_s
    price = plans.price_usd_per_Bps
    price = np.maximum(price, _FREE_SHARE * price.max(axis=0))
    price = np.where(price > 0, price, 1.0)
    spread = np.sqrt(traffic * price).sum(axis=0)
    return np.asarray(np.sqrt(traffic / price) * spread / np.where(seconds > 0, seconds, 1.0))


def plans_alone(problem: Problem, lower: Array, upper: Array) -> Plans:
    """One problem with known bounds of its bandwidths, bytes/s, shape (n_dims,)."""
    plans = Plans.of(BatchProgram.of([problem]))
    return replace(plans, lower=lower[:, None], upper=upper[:, None])


def typical_bandwidth(problem: Problem, lower: Array, upper: Array) -> Array:
    """A design of the right order of magnitude, bytes/s, shape (n_dims,)."""
    return typical_designs(plans_alone(problem, lower, upper))[:, 0]


def per_cost_plans(plans: Plans) -> Plans:
    """The plans over (B/C, 1/C), whose step time is T C; their cheapest design has the largest s.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plans = Plans.of(BatchProgram.of([lp.load_plan(lp.example("01_gpt3_4d"))]))
    >>> b = np.full((4, 1), 1e11)
    >>> cost_usd, other = plans.cost_usd(b), per_cost_plans(plans)
    >>> product = other.structure.seconds(other.time_numbers, np.vstack([b, [[1.0]]]) / cost_usd)
    >>> time_s = plans.structure.seconds(plans.time_numbers, b)
    >>> bool(abs(product / (time_s * cost_usd) - 1) < 1e-12)
    True
    """
    rules, price, n_dims = plans.rules, plans.price_usd_per_Bps, plans.structure.n_dims + 1
    cost = np.concatenate([price, plans.fixed_cost_usd[None]])
    equal = np.concatenate([rules.equal, -rules.target[:, None]], axis=1)
    unit = np.ones((1, plans.n))
    rows = programs.RuleRows(
        upper=np.concatenate([rules.upper, -rules.limit[:, None]], axis=1),
        limit=np.zeros_like(rules.limit),
        equal=np.concatenate([equal, cost[None]]),
        target=np.concatenate([np.zeros_like(rules.target), unit]),
    )
    lower, upper = interval_bounds(rows)
    return replace(
        plans,
        structure=tree.Structure(_per_cost(plans.structure.root, n_dims), n_dims),
        objective="performance",
        rules=rows,
        price_usd_per_Bps=np.concatenate([np.zeros_like(price), -unit]),
        fixed_cost_usd=np.zeros(plans.n),
        limit_s=np.full(plans.n, np.inf),
        compute_s=np.zeros(plans.n),
        lower=lower,
        upper=upper,
    )


def _per_cost(node: tree.Node, n_dims: int) -> tree.Node:
    """The tree, number by number, with constants over s and every linear form widened by s."""
    if isinstance(node, tree.Constant):
        return tree.Transfer(node.seconds, (*(0.0,) * (n_dims - 1), 1.0))
    if isinstance(node, tree.Transfer):
        return tree.Transfer(node.n_bytes, (*node.coefficients, 0.0))
    if isinstance(node, tree.Root):  # C / sqrt(B) = 1 / sqrt(y s).
        return tree.Root(node.size, (*node.coefficients, 0.0), (*(0.0,) * (n_dims - 1), 1.0))
    return tree.with_terms(node, lambda term: _per_cost(term, n_dims))
