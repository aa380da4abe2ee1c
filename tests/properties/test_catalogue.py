"""The best combination of purchasable speeds, against a loop over all of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import Phase, assume, given
from hypothesis import strategies as st

from libra_planner.costs.prices import LinkOption
from libra_planner.errors import Infeasible
from libra_planner.evaluation import evaluated, violations
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.catalogue import best_branch, best_purchasable, optimize_catalogue
from libra_planner.optimizer.combinations import Combinations, best_combination
from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Problem, Rule, StepTimeLimit
from tests.conftest import random_cases
from tests.problems import Collectives, changed, collectives, plan_of

SPEEDS = (10e9, 20e9, 25e9, 40e9, 50e9, 100e9)
PRICES = (0.0, 1e5, 2e5, 2e5, 5e5, 1e6)  # One twice: ties.


@st.composite
def options(draw: st.DrawFn) -> tuple[LinkOption, ...]:
    """One to four options in any order; speeds and prices often tie."""
    kind = st.tuples(st.sampled_from(SPEEDS), st.integers(1, 4), st.sampled_from(PRICES))
    drawn = draw(st.lists(kind, min_size=1, max_size=4, unique_by=lambda o: o[:2]))
    return tuple(LinkOption(*option) for option in drawn)


@st.composite
def rules(draw: st.DrawFn, n_dims: int, price: np.ndarray) -> tuple[Rule, ...]:
    """Budgets, caps, floors, orders and bounds on cost, of every sense."""
    found = []
    for i in range(draw(st.integers(0, 3))):
        sense = draw(st.sampled_from(["<=", "<=", ">=", "=="]))
        over_cost = draw(st.booleans())
        row = np.array(draw(st.lists(st.integers(-1, 2), min_size=n_dims, max_size=n_dims)), float)
        bound = draw(st.sampled_from([0.0, 50e9, 100e9, 200e9]))
        if over_cost:
            factor = draw(st.sampled_from([1.0, 2.0]))
            row, bound = factor * price, draw(st.sampled_from([1e5, 6e5, 1e6, 3e6]))
            money = {"unit": "$", "unit_factor": 1.0, "cost_factor": factor}
            found.append(Rule(f"rule {i}", tuple(row), sense, bound, **money))
        else:
            found.append(Rule(f"rule {i}", tuple(row), sense, bound))
    return tuple(found)


@dataclass(frozen=True)
class Case:
    problem: Problem
    step: Collectives


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Problems of one to four dimensions, all of them purchasable."""
    step = draw(collectives(max_dims=4))
    n_dims = step.bytes_by_dim.shape[1]
    price = np.array(draw(st.lists(st.floats(0.0, 60), min_size=n_dims, max_size=n_dims))) * 1e-6
    topology = parse_topology("_".join(["SW(4)"] * n_dims), [f"t{i}" for i in range(n_dims)])
    problem = plan_of(
        "plan",
        "random",
        topology,
        step.expression(),
        price,
        draw(rules(n_dims, price)),
        objective=draw(st.sampled_from(["performance", "performance_per_cost", "cost"])),
        fixed_cost_usd=draw(st.sampled_from([0.0, 3e5])),
        options=tuple(draw(options()) for _ in range(n_dims)),
    )
    if draw(st.booleans()):
        middle = [
            np.median([o.bandwidth_bytes_per_s for o in listed]) for listed in problem.options
        ]
        limit = StepTimeLimit("step_time <= X", max(1e-9, step.seconds(np.array(middle))))
        problem = replace(problem, step_time_limits=(limit,))
    return Case(problem, step)


def meets(problem: Problem, rule: Rule, bandwidth: tuple[float, ...], network_usd: float) -> bool:
    terms = [c * b for c, b in zip(rule.coefficients, bandwidth, strict=True)]
    if rule.cost_factor:
        terms = [rule.cost_factor * network_usd]
    excess = sum(terms) - rule.bound
    wrong = {"<=": excess, ">=": -excess, "==": abs(excess)}[rule.sense]
    return wrong <= 1e-9 * max(abs(rule.bound), sum(abs(term) for term in terms))


def designs(case: Case) -> list[tuple[float, float, tuple[float, ...]]]:
    """(objective, tie-breaker, bandwidths) of every combination that meets the rules.

    Equal objectives are ranked by cost, equal costs by time.
    """
    problem, found = case.problem, []
    for bought in itertools.product(*problem.options):
        bandwidth = tuple(option.bandwidth_bytes_per_s for option in bought)
        # A vector costs what its cheapest options cost.
        network_usd = sum(
            min(o.cost_usd for o in listed if abs(o.bandwidth_bytes_per_s - b) <= 1e-9 * b)
            for listed, b in zip(problem.options, bandwidth, strict=True)
        )
        cost_usd = problem.fixed_cost_usd + network_usd
        step_time_s = case.step.seconds(np.array(bandwidth))
        late = any(step_time_s > one.limit_s * (1 + 1e-9) for one in problem.step_time_limits)
        if late or not all(meets(problem, r, bandwidth, network_usd) for r in problem.rules):
            continue
        value = {"performance": step_time_s, "cost": cost_usd}.get(
            problem.objective, step_time_s * cost_usd
        )
        second = step_time_s if problem.objective == "cost" else cost_usd
        found.append((value, second, bandwidth))
    return found


@random_cases(50)
@given(cases())
def test_best_combination_against_a_loop_over_all(case: Case) -> None:
    found = designs(case)
    if not found:
        with pytest.raises(Infeasible, match="no combination of purchasable speeds"):
            best_purchasable(case.problem)
        return
    least = min(value for value, _, _ in found)
    ties = [one for one in found if one[0] <= least * (1 + 1e-12)]
    cheapest = min(cost for _, cost, _ in ties)
    ties = [one for one in ties if one[1] <= cheapest * (1 + 1e-12)]
    first = min(vector for _, _, vector in ties)
    design = best_purchasable(case.problem)
    assert design.objective == pytest.approx(least, rel=1e-12)
    assert design.lower_bound == design.objective
    assert tuple(design.bandwidth_bytes_per_s) == first
    assert design.unique == (len({vector for _, _, vector in ties}) == 1)
    assert design.max_violation <= 1e-9
    for option, listed in zip(design.options, case.problem.options, strict=True):
        assert option in listed
    assert sum(option.cost_usd for option in design.options) == pytest.approx(
        design.cost_usd - case.problem.fixed_cost_usd, rel=1e-12
    )
    assert evaluated(case.problem, design.bandwidth_bytes_per_s).feasible


@random_cases(40)
@given(cases())
def test_conflicting_rules_are_irreducible(case: Case) -> None:
    """The rules that are named cannot be met together; all but any one of them can."""
    problem = case.problem
    assume(not designs(case))
    with pytest.raises(Infeasible) as caught:
        best_purchasable(problem)
    named = set(caught.value.conflict)
    assert named

    def met(names: set[str]) -> bool:
        kept = replace(
            problem,
            rules=tuple(rule for rule in problem.rules if rule.text in names),
            step_time_limits=tuple(x for x in problem.step_time_limits if x.text in names),
        )
        return bool(designs(replace(case, problem=kept)))

    assert not met(named)
    assert all(met(named - {name}) for name in named)


@random_cases(20)
@given(cases(), st.integers(1, 9))
def test_blocks_of_any_size_give_the_same(case: Case, n_block: int) -> None:
    whole = best_combination(Combinations(case.problem))
    parts = best_combination(Combinations(case.problem, n_block=n_block))
    assert (whole is None) == (parts is None)
    if whole is not None:
        assert whole.bandwidth_bytes_per_s.tolist() == parts.bandwidth_bytes_per_s.tolist()
        assert whole.unique == parts.unique


GRID = np.array([5.0, 10.0, 15.0, 25.0, 30.0, 60.0, 100.0]) * 1e9
"""What a continuous dimension may have for :func:`grid_solver`."""


@dataclass(frozen=True)
class Solved:
    bandwidth_bytes_per_s: np.ndarray
    objective: float
    lower_bound: float
    unique: bool = True


def grid_solver(case: Case):
    """A continuous optimizer that tries a few values of each dimension, one by one.

    It knows the purchasable speeds, the middles between them (so that a relaxed optimum
    may be where nothing can be bought) and the grid.
    """

    def values(dim: int) -> np.ndarray:
        if dim not in case.problem.purchasable:
            return GRID
        speeds = [o.bandwidth_bytes_per_s for o in case.problem.purchasable[dim]]
        return np.union1d(speeds, (np.array(speeds[1:]) + speeds[:-1]) / 2)

    def solve(problem: Problem) -> Solved:
        assert not problem.options
        assert (problem.price_usd_per_Bps >= 0).all()
        assert problem.fixed_cost_usd >= 0
        met = []
        for vector in itertools.product(*map(values, range(problem.topology.n_dims))):
            if violations(problem, np.array(vector)):
                continue
            cost_usd = float(problem.cost_usd(np.array(vector)))
            step_time_s = case.step.seconds(np.array(vector))
            value = {"performance": step_time_s, "cost": cost_usd}.get(
                problem.objective, step_time_s * cost_usd
            )
            second = step_time_s if problem.objective == "cost" else cost_usd
            met.append((value, second, vector))
        if not met:
            raise Infeasible("none")
        least = min(value for value, _, _ in met)
        ties = [one for one in met if one[0] <= least * (1 + 1e-12)]
        _, _, vector = min(ties, key=lambda one: one[1:])
        return Solved(np.array(vector), least, least)

    return solve


def some_continuous(case: Case, free: set[int]) -> tuple[Problem, Problem]:
    """With continuous dimensions, and its twin that buys the grid there at linear prices."""
    grid = {
        i: tuple(LinkOption(b, 1, float(case.problem.price_usd_per_Bps[i] * b)) for b in GRID)
        for i in free
    }
    listed = list(enumerate(case.problem.options))
    mixed = changed(case.problem, options=tuple(None if i in free else o for i, o in listed))
    return mixed, changed(case.problem, options=tuple(grid.get(i, o) for i, o in listed))


@random_cases(40)
@given(cases(), st.sets(st.integers(0, 3), max_size=2))
def test_branch_and_bound_against_a_loop_over_all(case: Case, free: set[int]) -> None:
    n_dims = case.problem.topology.n_dims
    assume(n_dims <= 3)
    free = {i for i in free if i < n_dims} - {n_dims - 1}
    mixed, twin = some_continuous(case, free)
    solve = grid_solver(replace(case, problem=mixed))
    found = designs(replace(case, problem=twin))
    best = best_branch(mixed, solve, n_exhausted=0)
    if not found:
        assert best is None
        return
    least = min(value for value, _, _ in found)
    cheapest = min(cost for value, cost, _ in found if value <= least * (1 + 1e-12))
    value, cost = next(one[:2] for one in found if one[2] == tuple(best.bandwidth_bytes_per_s))
    assert value == pytest.approx(least, rel=1e-8)
    assert cost <= cheapest * (1 + 1e-8)  # One that is slower by 1e-9 may be cheaper still.
    assert best.lower_bound <= least * (1 + 1e-12)
    assert best.lower_bound >= least * (1 - 1e-8)


@random_cases(8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(cases(), st.sampled_from([1, 3]), st.sampled_from([3e5, 2e6]))
def test_completion_by_the_optimizer_against_solving_every_combination(
    case: Case, n_free: int, fixed_usd: float
) -> None:
    """Some dimensions continuous; each combination of the others solved as a plan of its own."""
    n_dims = case.problem.topology.n_dims
    assume(n_dims > n_free)
    budget = Rule("total <= 300 GB/s", (1.0,) * n_dims, "<=", 300e9)
    options = tuple(None if i < n_free else o for i, o in enumerate(case.problem.options))
    slowest_s = case.step.seconds(np.full(n_dims, 20e9))
    # C9's tolerance is one of the whole step: beside hours of compute it allows anything.
    assume(slowest_s - case.problem.compute_s > 1e-4 * slowest_s)
    limit = StepTimeLimit("step_time <= X", 1e-9 + slowest_s)
    problem = changed(
        case.problem,
        rules=(budget,),
        options=options,
        step_time_limits=(limit,),
        fixed_cost_usd=fixed_usd,
        price_usd_per_Bps=case.problem.price_usd_per_Bps + 1e-6,  # Nothing is for free.
    )
    least = np.inf
    for bought in itertools.product(*(one for one in options if one is not None)):
        speeds = [option.bandwidth_bytes_per_s for option in bought]
        pins = [
            Rule("pin", tuple(np.eye(n_dims)[n_free + i]), "==", b) for i, b in enumerate(speeds)
        ]
        own_usd = sum(option.cost_usd for option in bought)
        free_price = problem.price_usd_per_Bps * (np.arange(n_dims) < n_free)
        alone = changed(
            problem,
            options=(),
            rules=(budget, *pins),
            price_usd_per_Bps=free_price,
            fixed_cost_usd=fixed_usd + own_usd,
        )
        try:
            least = min(least, optimize(alone).objective)
        except Infeasible:
            continue
    if least == np.inf:
        with pytest.raises(Infeasible, match="no combination of purchasable speeds"):
            optimize_catalogue(problem, optimize)
        return
    best = optimize_catalogue(problem, optimize)
    assert best.objective == pytest.approx(least, rel=2e-6)
    assert best.lower_bound <= least * (1 + 1e-8)  # Rules hold to 1e-9, in both.
    assert best.optimality_gap <= 1e-6
    assert best.max_violation <= 1e-9
    assert [o is None for o in best.options] == [o is None for o in options]
