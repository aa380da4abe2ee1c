"""The best design for each objective, with a proof (C8, C9); of thousands; along the frontier.

Problems of one structure (the same tree of the step time, the same senses of the rules) are
solved together by a vectorised interior-point method. Every design is judged as a single one
is: rules met at the vector printed, figures from NumPy there, a proven bound, a gap of at most
1e-6. What fails is solved again by ``optimize``, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, IllPosed, Infeasible, PlannerError, SolverFailed, SpecError
from libra_planner.evaluation import OBJECTIVES, max_violation
from libra_planner.optimizer import design as proofs
from libra_planner.optimizer.bills import frontier_of_bills, optimize_bills
from libra_planner.optimizer.catalogue import optimize_catalogue
from libra_planner.optimizer.decimals import certain_solution
from libra_planner.optimizer.design import Design, FrontierPoint, Solution
from libra_planner.optimizer.engines.imports import statistics_when_used
from libra_planner.optimizer.objectives import Designs, best_designs, no_figures, solve_designs
from libra_planner.optimizer.only import only_design
from libra_planner.optimizer.programs import posedness
from libra_planner.optimizer.programs.dimensionless import Index
from libra_planner.optimizer.programs.plans import (
    BatchProgram,
    Plans,
    fits_a_batch,
    structure_key,
    typical_bandwidth,
)
from libra_planner.problem import (
    RULE_TOLERANCE,
    Problem,
    Rule,
    StepTimeLimit,
    bought,
    fastest_alternative,
)
from libra_planner.step.expression import Array, Mask
from libra_planner.step.training import plain_step

_ENDLESS = 1e4
"""Bandwidth, over a typical one, that stands for no limit."""

_TRICKLE = 1e-10
"""Bandwidth, over the largest, that floating point cannot tell from rounding."""


def optimize(problem: Problem) -> Design:
    """The bandwidth vector that is best for the problem's objective, certified.

    Raises
    ------
    Infeasible
        When no vector meets the rules; names those that conflict.
    IllPosed
        When the optimum is not attained (C8); says why and what to add.
    SolverFailed
        When the gap cannot be brought to 1e-6.
    """
    return solve(problem).design


def solve(problem: Problem) -> Solution:
    """:func:`optimize`, with what is needed to solve neighboring problems."""
    problem = with_own_optima(problem)
    if problem.alternatives:
        return _best_alternative(problem)
    if problem.prices.choice is not None:
        priced = optimize_bills(problem)
        return Solution(priced, bought(problem, priced.bandwidth_bytes_per_s))
    if problem.options:
        design = optimize_catalogue(problem, optimize)
        _refuse_free(problem, design)
        return Solution(design, problem)
    if problem.group_objective != "weighted":
        # A group's relative time in the place of the step time; neighbors would move T_i* too.
        time = plain_step(problem.objective_time or problem.step_time, problem.workload_name)
        return Solution(
            solve(replace(problem, step=time, group_objective="weighted")).design, problem
        )
    posedness.check_compute_fits(problem)
    bounds = posedness.bandwidth_bounds(problem)
    roomy = replace(problem, rules=posedness.without_echoes(problem.rules))
    found = _surest_solution(roomy, *bounds)
    if len(roomy.rules) < len(problem.rules):
        broken_by = max_violation(problem, found.design.bandwidth_bytes_per_s)
        judged = replace(found.design, max_violation=broken_by)
        found = replace(found, design=judged, problem=problem)
    _refuse_free(problem, proofs.checked(problem, found.design))
    return found


def _surest_solution(problem: Problem, lower: Array, upper: Array) -> Solution:
    """The optimum in floating point or, where that gives up or leaves doubt, in decimals.

    The certificate judges both. Workers of a sweep, which solve batches, never load cvxpy.
    """
    with statistics_when_used():
        from libra_planner.optimizer.engines.cvxpy import solve_convex

    plans, left = Plans.of(BatchProgram.repeated(problem, 2)), posedness.openness(problem, upper)
    posedness.check_posed(problem, plans, left, upper, partial(_fastest_s, problem, lower, upper))
    if not len(problem.step_time.forms):
        return _idle_solution(problem, lower, upper)
    if problem.objective == "performance":  # A limit only judges the fastest design.
        plans = replace(plans, limit_s=np.full(plans.n, np.inf))
    attains = np.broadcast_to(posedness.attains_product(plans, left), plans.n)
    found = best_designs(plans, attains=attains, engine=solve_convex)
    best = found.bandwidth_bytes_per_s[:, 0]
    solution = _solution(problem, found)
    sure = bool(found.certified[0]) and not ((best > 0) & (best < _TRICKLE * best.max())).any()
    if problem.objective != "performance" and (solution is None or not sure or left.gift.any()):
        _check_attainable(problem, left, lower, upper)
    if solution is None or not sure or solution.design.optimality_gap > proofs.NO_DOUBT:
        solution = _surer([certain_solution(problem, lower, upper), solution], sure=sure)
        if solution is None:
            raise _stuck(problem)
    for limit in problem.step_time_limits if problem.objective == "performance" else ():
        design = solution.design
        _refuse_late(problem, limit, design.objective, design.bandwidth_bytes_per_s)
    return solution


def _solution(problem: Problem, found: Designs) -> Solution | None:
    """The design that the engines found, proven or not; ``None`` without one."""
    bandwidth, bound = found.bandwidth_bytes_per_s[:, 0], float(found.lower_bound[0])
    if not np.isfinite([*bandwidth, bound]).all():
        return None
    design = proofs.design_at(problem, bandwidth, bound, unique=bool(found.unique[0]))
    has_roots = problem.step_time.structure.has_roots  # Their neighbors are beyond the decimals.
    return Solution(design, problem, has_neighbors=not has_roots)


def _surer(found: Sequence[Solution | None], *, sure: bool) -> Solution | None:
    """Whichever has the smallest gap; decimals, the first, where only they are sure."""
    known = [solution for solution in found if solution is not None]
    if known and not sure and known[0].design.optimality_gap <= proofs.SURE_GAP:
        return known[0]
    return min(known, key=lambda solution: solution.design.optimality_gap, default=None)


def _idle_solution(problem: Problem, lower: Array, upper: Array) -> Solution:
    """The cheapest design of a step that only computes."""
    alone = replace(problem, objective="cost", step_time_limits=())
    cheapest = certain_solution(alone, lower, upper)
    if cheapest is None:
        raise _stuck(problem)
    design = cheapest.design
    bound = OBJECTIVES[problem.objective](problem.compute_s, design.lower_bound)
    bandwidth = design.bandwidth_bytes_per_s
    design = proofs.design_at(problem, bandwidth, bound, unique=design.unique)
    # The product has neighbors even here: all of its prices are zero.
    return Solution(design, problem, problem.objective == "performance_per_cost")


def _check_attainable(
    problem: Problem, left: posedness.Openness, lower: Array, upper: Array
) -> None:
    """Refuse a step-time bound that the fastest design misses, then what costs nothing (C8)."""
    limit = min(problem.step_time_limits, key=lambda limit: limit.limit_s, default=None)
    if limit is not None:
        _check_reachable(problem, limit, lower, upper)
    posedness.check_affordable(problem, left)
    if not problem.fixed_cost_usd and not problem.price_usd_per_Bps.any():
        raise _costs_nothing(problem)


def _check_reachable(problem: Problem, limit: StepTimeLimit, lower: Array, upper: Array) -> None:
    free = replace(problem, objective="performance", step_time_limits=())
    if np.isfinite(upper[problem.step_time.dims_with_traffic]).all():
        design = _surest_solution(free, lower, upper).design
        _refuse_late(problem, limit, design.objective, design.bandwidth_bytes_per_s)
    else:
        best_s = _fastest_s(free, lower, upper)
        _refuse_late(problem, limit, best_s, typical_bandwidth(free, lower, upper))


def _fastest_s(problem: Problem, lower: Array, upper: Array) -> float:
    """Least step time under all rules, without end where they have none."""
    free = replace(problem, objective="performance", step_time_limits=())
    return _least_time_s(free, typical_bandwidth(free, lower, upper), free.rules)


def _refuse_late(problem: Problem, limit: StepTimeLimit, best_s: float, bandwidth: Array) -> None:
    """Refuse a step-time bound that even the least step time misses, found near a bandwidth."""
    if best_s > limit.limit_s * (1 + RULE_TOLERANCE):
        least = partial(_least_time_s, problem, bandwidth)
        raise posedness.step_time_infeasible(problem, limit, best_s, least)


def _least_time_s(problem: Problem, bandwidth: Array, rules: Sequence[Rule]) -> float:
    """Least step time under some of the rules and a cap so far above a bandwidth as to be none."""
    cap, axes = _ENDLESS * float(bandwidth.max()), np.eye(problem.topology.n_dims)
    endless = [Rule("", tuple(map(float, axis)), "<=", cap) for axis in axes]
    loosened = replace(
        problem, rules=(*rules, *endless), step_time_limits=(), objective="performance"
    )
    return _surest_solution(loosened, *posedness.bandwidth_bounds(loosened)).design.objective


def _refuse_free(problem: Problem, design: Design) -> None:
    """Refuse an objective of zero: it does not tell designs apart (C8)."""
    if design.objective <= 0 and problem.objective != "performance":
        raise _costs_nothing(problem)


def _stuck(problem: Problem) -> SolverFailed:
    return SolverFailed(
        f"{problem.text.source}: no engine found a usable point; check for rules, step-time bounds "
        f"or traffic many orders of magnitude apart"
    )


def _costs_nothing(problem: Problem) -> IllPosed:
    return IllPosed(
        f"{problem.at('objective')}got a network that costs nothing and meets every rule: "
        f"{problem.objective} is zero; use objective performance, or add prices or "
        f"fixed_cost"
    )


def _best_alternative(problem: Problem) -> Solution:
    """The best of problems that differ in a choice outside the expression, such as chunks."""
    solutions, errors = [], []
    for one in problem.alternatives:
        alone = replace(one, alternatives=(), own_optima_s=problem.own_optima_s)
        try:
            solutions.append(solve(alone))
        except Infeasible as error:  # Another choice may still meet a step-time rule.
            errors.append(error)
    if not solutions:
        raise errors[0]
    best = min(solutions, key=lambda solution: solution.design.objective)
    bound = min(solution.design.lower_bound for solution in solutions)
    return replace(best, design=replace(best.design, lower_bound=bound))


def with_own_optima(problem: Problem) -> Problem:
    """A group's problem with each workload's least step time alone, T_i* (C8)."""
    if problem.group_objective == "weighted" or problem.own_optima_s:
        return problem
    choices = problem.alternatives or (problem,)
    optima = []
    for choice in choices:
        weighted = replace(choice, alternatives=(), group_objective="weighted")
        fast = replace(weighted, objective="performance")
        steps = [plain_step(member.step_time, member.name) for member in choice.members]
        optima.append([optimize(replace(fast, step=step)).objective for step in steps])
    return replace(problem, own_optima_s=tuple(map(min, zip(*optima, strict=True))))


SLOWEST = 2.0
"""Step time, over the fastest, at which the frontier begins unless a rule says otherwise."""

NEARLY_FASTEST = 1.01
"""The same for its end where bandwidth has no bound: the fastest design would cost infinity."""

_SAME_COST = 1e-9


def pareto(
    problem: Problem, n_points: int = 25, progress: Callable[[int, int], None] | None = None
) -> tuple[FrontierPoint, ...]:
    """Points of the frontier from the cheapest to the fastest, evenly spaced in log cost.

    It begins at the cheapest design whose step time is at most :data:`SLOWEST` times the
    fastest (or meets the plan's step-time rules) and ends at the fastest one.

    Parameters
    ----------
    problem : its objective does not matter; of a group the weighted mean counts.
    n_points : 2 or more; fewer come back where the frontier is a point. Of a plan that is priced
        by its bill, all options that none beats come back, however many.
    progress : called with the points done and all after each.

    Raises
    ------
    SpecError
        For fewer than two points, or a plan that buys from a catalogue.
    Infeasible, IllPosed, SolverFailed
        As for the objectives ``performance`` and ``cost``.
    """
    if n_points < 2:
        raise SpecError(Fault(f"got {n_points} points", "expected 2 or more"))
    if problem.prices.choice is not None:
        return _bill_frontier(problem)
    refuse_options(problem)
    if not problem.price_usd_per_Bps.any():
        raise IllPosed(
            f"{problem.at('cost_model')}got prices at which the network costs nothing: there is "
            "no cost to trade time for; use optimize with objective performance, or other prices"
        )
    only = only_design(problem)
    if only is not None:
        return (only,)
    base = replace(problem, objective="performance", group_objective="weighted")
    fastest = _fastest(base)
    cheapest = _cheapest(base, SLOWEST * fastest.step_time_s)
    if cheapest.cost_usd >= fastest.cost_usd * (1 - _SAME_COST):
        return (fastest,)
    found, fixed = [cheapest], base.fixed_cost_usd
    low, high = cheapest.cost_usd - fixed, fastest.cost_usd - fixed
    price = tuple(map(float, base.price_usd_per_Bps))
    for i, network_usd in enumerate(np.geomspace(max(low, 1e-6 * high), high, n_points)[1:-1]):
        try:
            cap = Rule("frontier", price, "<=", network_usd, "$", 1.0, cost_factor=1.0)
            found.append(_point(replace(base, rules=(*base.rules, cap))))
        except Infeasible:  # The first cost can lie below the cheapest design by rounding.
            continue
        if progress:
            progress(i + 2, n_points)
    return (*found, fastest)


def refuse_options(problem: Problem) -> None:
    """Refuse a frontier of what is bought from a catalogue."""
    if problem.options:
        got, expected = "got link_options", "expected any bandwidth: the frontier is continuous"
        fix = "leave them out, e.g. with --set fabric.link_options=null"
        key = "fabric.link_options"
        raise SpecError(Fault(got, expected, fix, key, problem.place(key)))


def _bill_frontier(problem: Problem) -> tuple[FrontierPoint, ...]:
    """All options that none beats, with the best number of chunks at each (C22)."""
    base = replace(problem, objective="performance", group_objective="weighted")
    several = [replace(one, objective="performance") for one in problem.alternatives] or [base]
    alone = [replace(one, alternatives=(), group_objective="weighted") for one in several]
    points = [point for one in alone for point in frontier_of_bills(one)]
    points.sort(key=lambda point: (point.cost_usd, point.step_time_s))
    fastest_s = np.minimum.accumulate([np.inf, *(point.step_time_s for point in points)])
    return tuple(
        point for point, s in zip(points, fastest_s[:-1], strict=True) if point.step_time_s < s
    )


def _point(problem: Problem) -> FrontierPoint:
    design = optimize(problem)
    bandwidth = design.bandwidth_bytes_per_s
    return FrontierPoint(
        bandwidth,
        float(fastest_alternative(problem, bandwidth).step_time.seconds(bandwidth)),
        float(problem.cost_usd(bandwidth)),
        design.optimality_gap,
    )


def _cheapest(problem: Problem, limit_s: float) -> FrontierPoint:
    """The cheapest design under the plan's step-time rules, else under a limit."""
    limits = problem.step_time_limits or (StepTimeLimit("frontier", limit_s),)
    return _point(replace(problem, objective="cost", step_time_limits=limits))


def _fastest(problem: Problem) -> FrontierPoint:
    """The fast end; where a bandwidth has no bound, the cheapest that is nearly as fast."""
    lower, upper = posedness.bandwidth_bounds(problem)
    endless = np.isinf(upper) & problem.step_time.dims_with_traffic
    if not endless.any() or not problem.compute_s:
        return _point(problem)
    typical = typical_bandwidth(problem, lower, upper)
    limit_s = NEARLY_FASTEST * _least_time_s(problem, typical, problem.rules)
    return _cheapest(replace(problem, step_time_limits=()), limit_s)


CHUNK = 1000
"""Designs solved at a time: their arrays stay in the cache, and memory flat."""

OPTIMAL, INFEASIBLE, ILL_POSED = "optimal", "infeasible", "ill_posed"
UNCERTIFIED = "uncertified"
_STATUS: Mapping[type[PlannerError], str] = MappingProxyType(
    {Infeasible: INFEASIBLE, IllPosed: ILL_POSED, SolverFailed: UNCERTIFIED}
)


@dataclass(frozen=True)
class BatchResult:
    """Optima of n designs, in the order they were given.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n, n_dims); NaN where there is no optimum, and beyond the
        dimensions of a smaller fabric.
    objective, lower_bound : value of the objective there and a proven bound on it (C9), (n,).
    step_time_s, cost_usd : exact figures at the vector, shape (n,).
    unique : no other design ties, shape (n,).
    status : optimal, infeasible, ill_posed or uncertified, shape (n,).
    resolved : solved alone, by ``optimize``, shape (n,).
    messages : what ``optimize`` said of designs that it found without an optimum, by index;
        :func:`reason` asks it about others.
    """

    bandwidth_bytes_per_s: Array
    objective: Array
    lower_bound: Array
    step_time_s: Array
    cost_usd: Array
    unique: Mask
    status: NDArray[Any]
    resolved: Mask
    messages: dict[int, str] = field(default_factory=dict)

    @property
    def n_designs(self) -> int:
        """How many designs."""
        return len(self.objective)

    @property
    def n_resolved(self) -> int:
        """How many of them were solved alone."""
        return int(self.resolved.sum())

    @property
    def optimality_gap(self) -> Array:
        """(objective - lower_bound) / lower_bound (C9), shape (n,)."""
        excess, positive = self.objective - self.lower_bound, self.lower_bound > 0
        return np.where(positive, excess / np.where(positive, self.lower_bound, 1.0), excess > 0)


def batch_optimize(problems: Sequence[Problem]) -> BatchResult:
    """The optimum of every problem, those of one structure at once.

    Problems that no batch can hold (purchasable options, a number of chunks left open, groups
    with a relative objective) are solved one by one and count as ``resolved``.

    Examples
    --------
    >>> import libra_planner as lp
    >>> rules = ('constraints=["total == 500 GB/s"]', 'constraints=["total == 9 GB/s"]')
    >>> plans = [lp.load_plan(lp.example("01_gpt3_4d"), [rule]) for rule in rules]
    >>> result = batch_optimize(plans)
    >>> result.status.tolist(), result.step_time_s.round(6).tolist()
    (['optimal', 'optimal'], [0.722412, 2.793534])
    """
    n_dims = max((problem.topology.n_dims for problem in problems), default=0)
    result = _empty(len(problems), n_dims)
    for members in _groups(problems):
        if fits_a_batch(problems[members[0]]):
            for part in np.array_split(members, -(-len(members) // CHUNK)):
                program = BatchProgram.of([problems[i] for i in part])
                _solve(result, part, program, problems.__getitem__)
        else:
            for i in members:
                _resolve(result, int(i), problems[i])
    return result


def optimize_program(
    program: BatchProgram, problem: Callable[[int], Problem] | None = None
) -> BatchResult:
    """The optimum of every design of a batch.

    Parameters
    ----------
    program : the designs.
    problem : gives design i's problem, for messages about rules in its own words.

    Examples
    --------
    >>> import libra_planner as lp
    >>> from dataclasses import replace
    >>> base = lp.load_plan(lp.example("01_gpt3_4d"))
    >>> sweep = BatchProgram.repeated(base, 1000)
    >>> sweep = replace(sweep, bounds=np.linspace(1e11, 1e12, 1000)[:, None])
    >>> result = optimize_program(sweep)
    >>> int((result.status == "optimal").sum()), result.n_resolved
    (1000, 0)
    """
    result = _empty(program.n, program.template.topology.n_dims)
    for start in range(0, program.n, CHUNK):
        rows = np.arange(start, min(start + CHUNK, program.n))
        part = program.part(slice(start, start + CHUNK))
        _solve(result, rows, part, problem or program.problem)
    return result


def reason(problem: Problem) -> str:
    """What ``optimize`` says of a problem without a certified optimum; empty if it has one.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan(lp.example("01_gpt3_4d"), ["constraints=[]"])
    >>> batch_optimize([plan]).status.tolist(), "more is always faster" in reason(plan)
    (['ill_posed'], True)
    """
    try:
        optimize(problem)
    except (Infeasible, IllPosed, SolverFailed) as error:
        return str(error)
    return ""


def _empty(n: int, n_dims: int) -> BatchResult:
    return BatchResult(
        bandwidth_bytes_per_s=np.full((n, n_dims), np.nan),
        **no_figures(n),
        status=np.full(n, UNCERTIFIED),
        resolved=np.zeros(n, dtype=bool),
    )


def _groups(problems: Sequence[Problem]) -> list[Index]:
    """Indices of problems of one structure, and of those that no batch can hold."""
    groups: dict[object, list[int]] = {}
    for i, problem in enumerate(problems):
        key = structure_key(problem) if fits_a_batch(problem) else ()
        groups.setdefault(key, []).append(i)
    return [np.array(members) for members in groups.values()]


def _solve(
    result: BatchResult,
    rows: Index,
    program: BatchProgram,
    problem: Callable[[int], Problem],
) -> None:
    """Solve a batch into some rows of a result; ``problem`` gives a row's problem."""
    designs = solve_designs(Plans.of(program))
    fine, n_dims = designs.certified, len(designs.bandwidth_bytes_per_s)
    found = rows[fine]
    result.bandwidth_bytes_per_s[found, :n_dims] = designs.bandwidth_bytes_per_s.T[fine]
    for name in no_figures(0):
        getattr(result, name)[found] = getattr(designs, name)[fine]
    result.status[found] = OPTIMAL
    result.status[rows[designs.infeasible]] = INFEASIBLE
    result.status[rows[designs.ill_posed]] = ILL_POSED
    for i in np.flatnonzero(~(designs.certified | designs.infeasible | designs.ill_posed)):
        _resolve(result, int(rows[i]), problem(int(rows[i])))


def _resolve(result: BatchResult, row: int, problem: Problem) -> None:
    """One design alone."""
    result.resolved[row] = True
    try:
        design = optimize(problem)
    except (Infeasible, IllPosed, SolverFailed) as error:
        result.status[row] = _STATUS[type(error)]
        result.messages[row] = str(error)
        return
    bandwidth = design.bandwidth_bytes_per_s
    result.bandwidth_bytes_per_s[row, : len(bandwidth)] = bandwidth
    result.objective[row], result.lower_bound[row] = design.objective, design.lower_bound
    chosen = fastest_alternative(problem, bandwidth)
    result.step_time_s[row] = float(chosen.step_time.seconds(bandwidth))
    result.cost_usd[row] = float(problem.cost_usd(bandwidth))
    result.unique[row], result.status[row] = design.unique, OPTIMAL
