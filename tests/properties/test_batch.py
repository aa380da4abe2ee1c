"""The batch optimizer against the reference, one design at a time, and its parts against twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import libra_planner as lp
from libra_planner.errors import IllPosed, Infeasible, SolverFailed, SpecError
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.design import Design, lower_bound, restored
from libra_planner.optimizer.engines.batch import factored, solve_interior, solved
from libra_planner.optimizer.optimize import (
    BatchResult,
    _groups,
    batch_optimize,
    optimize,
    optimize_program,
    reason,
)
from libra_planner.optimizer.programs.dimensionless import lift, weighted_value
from libra_planner.optimizer.programs.plans import (
    BatchProgram,
    Plans,
    program_near,
    typical_designs,
)
from libra_planner.optimizer.programs.posedness import bandwidth_bounds
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.step.expression import Constant, TimeExpression, add, transfers
from tests.conftest import random_cases
from tests.problems import Collectives, changed, lifted_alone, plan_of, problems, random_feasible
from tests.random_plans import random_plan

GB = 1e9
OBJECTIVES = ["performance", "performance_per_cost", "cost"]
FIGURES = ("objective", "lower_bound", "step_time_s", "cost_usd", "bandwidth_bytes_per_s")
EXAMPLE = lp.example("01_gpt3_4d")

seeds = st.lists(st.integers(0, 10**6), min_size=1, max_size=8, unique=True)


def altered(seed: int, objective: str) -> Problem:
    """A random plan that may have become infeasible or ill-posed."""
    problem = random_plan(seed, objective).problem
    rng = np.random.default_rng([7, seed])
    rules = list(problem.rules)
    i, kind = int(rng.integers(len(rules))), rng.integers(5)
    if kind == 0:
        rules[i] = replace(rules[i], bound=rules[i].bound * 10 ** rng.uniform(-2, 2))
    elif kind == 1:
        rules.pop(i)
    elif kind == 2:
        flipped = {"<=": ">=", ">=": "<=", "==": "=="}[rules[i].sense]
        rules[i] = replace(rules[i], sense=flipped)
    elif kind == 3:
        problem = changed(problem, fixed_cost_usd=0.0, step_time_limits=())
    elif problem.step_time_limits:
        late = replace(problem.step_time_limits[0], limit_s=rng.uniform(0.3, 30.0))
        problem = replace(problem, step_time_limits=(late,))
    return replace(problem, rules=tuple(rules))


def reference(problem: Problem) -> tuple[str, Design | None]:
    """Status and design, one at a time."""
    try:
        return "optimal", optimize(problem)
    except Infeasible:
        return "infeasible", None
    except IllPosed:
        return "ill_posed", None
    except SolverFailed:
        return "uncertified", None


def agree(result: BatchResult, chosen: list[Problem]) -> None:
    """Every row has the reference's status, objective (to 1e-9) and uniqueness; about its vector."""
    for i, problem in enumerate(chosen):
        status, design = reference(problem)
        if design is None:
            assert result.status[i] == status, problem.workload_name
            assert (result.status[i] == "optimal") != np.isnan(result.objective[i])
            continue
        assert result.status[i] == "optimal", problem.workload_name
        honest(result, i, problem)
        assert result.objective[i] == pytest.approx(design.objective, rel=1e-9)
        assert bool(result.unique[i]) == design.unique, problem.workload_name
        found = result.bandwidth_bytes_per_s[i, : problem.topology.n_dims]
        expected = design.bandwidth_bytes_per_s
        assert np.allclose(found, expected, rtol=1e-4, atol=1e-4 * expected.max())


def honest(result: BatchResult, i: int, problem: Problem) -> None:
    """Row i is exact at its vector, meets the rules and is proven to 1e-6 (C9)."""
    found = result.bandwidth_bytes_per_s[i, : problem.topology.n_dims]
    assert 0 <= result.optimality_gap[i] <= 1e-6
    assert max([0.0, *(rule.relative_excess(found) for rule in problem.rules)]) <= 1e-9
    step_time_s = float(problem.step_time.seconds(found))
    assert result.step_time_s[i] == pytest.approx(step_time_s, rel=1e-14)
    assert result.cost_usd[i] == pytest.approx(float(problem.cost_usd(found)), rel=1e-14)
    for limit in problem.step_time_limits:
        assert step_time_s <= limit.limit_s * (1 + 1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
@random_cases(3)
@given(chosen=seeds)
def test_every_row_is_the_references(objective: str, chosen: list[int]) -> None:
    plans = [random_plan(seed, objective).problem for seed in chosen]
    agree(batch_optimize(plans), plans)


@pytest.mark.parametrize("objective", OBJECTIVES)
@random_cases(2)
@given(chosen=seeds)
def test_designs_without_an_optimum_are_rows(objective: str, chosen: list[int]) -> None:
    plans = [altered(seed, objective) for seed in chosen]
    agree(batch_optimize(plans), plans)


@random_cases(10)
@given(problems())
def test_problems_of_up_to_five_dimensions(case: tuple[Problem, Collectives]) -> None:
    problem, _ = case
    agree(batch_optimize([problem]), [problem])


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(chosen=seeds)
@random_cases(6)
def test_a_row_does_not_depend_on_its_companions(objective: str, chosen: list[int]) -> None:
    plans = [random_plan(seed, objective).problem for seed in chosen]
    varied = [
        changed(plan, price_usd_per_Bps=plan.price_usd_per_Bps * factor)
        for plan in plans
        for factor in (1.0, 2.0, 0.5)
    ]
    together, backwards = batch_optimize(varied), batch_optimize(varied[::-1])
    alone = batch_optimize(varied[:1])
    for name in FIGURES:
        assert np.array_equal(
            getattr(together, name), getattr(backwards, name)[::-1], equal_nan=True
        )
        one, n_dims = getattr(alone, name)[0], varied[0].topology.n_dims
        first = getattr(together, name)[0]
        assert np.array_equal(one, first[:n_dims] if name.startswith("band") else first)


def gpt3_sweep(n: int, *changes: str) -> BatchProgram:
    base = lp.load_plan(EXAMPLE, changes)
    program = BatchProgram.repeated(base, n)
    bounds = np.array(program.bounds)
    bounds[:, 0] = np.linspace(100, 1000, n) * GB
    return replace(program, bounds=bounds)


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("objective=performance_per_cost",),
        ("objective=cost", 'constraints=["total <= 500 GB/s", "step_time <= 800 ms"]'),
        ('constraints=["total == 500 GB/s", "dim1 >= dim2", "dim1 <= 90 GB/s", "pod <= 20 GB/s"]',),
        ("training_loop=tp_dp_overlap",),
    ],
)
def test_sweeps_over_the_budget_need_no_help(changes: tuple[str, ...]) -> None:
    program = gpt3_sweep(40, *changes)
    result = optimize_program(program)
    assert result.n_resolved == 0
    picked = [0, 3, 17, 39]
    some = replace(
        result,
        **{
            name: getattr(result, name)[picked]
            for name in (*FIGURES, "unique", "status", "resolved")
        },
    )
    agree(some, [program.problem(i) for i in picked])


def test_arrays_and_problems_give_the_same_rows() -> None:
    program = gpt3_sweep(5, "objective=performance_per_cost")
    by_problem = batch_optimize([program.problem(i) for i in range(5)])
    by_array = optimize_program(program)
    for name in FIGURES:
        assert np.array_equal(getattr(by_problem, name), getattr(by_array, name))


def one_max(total: str, *caps: float) -> Problem:
    """T = max(8 / B1, 2 / B2) of three dimensions, GB and GB/s; the third carries nothing."""
    axes = np.eye(3)
    rules = [Rule("total", (1.0, 1.0, 1.0), total, 10 * GB)]
    rules += [Rule("cap", tuple(axes[i]), "<=", cap * GB) for i, cap in enumerate(caps)]
    step = TimeExpression(add([Constant(1.0), transfers([8 * GB, 2 * GB, 0.0])]), 3)
    price = np.array([1.0, 3.0, 3.0]) / GB
    return plan_of(
        "plan", "one max", parse_topology("SW(2)_SW(2)_SW(2)"), step, price, tuple(rules)
    )


def test_ties_by_hand() -> None:
    """With B1 <= 4 the step takes 1 + 8/4 s; B2 needs 1 GB/s, what else is bought is a tie."""
    plans = [one_max("<=", 4), one_max("==", 4), one_max("==", 4, 3), one_max("==")]
    result = batch_optimize(plans)
    expected = [[4, 1, 0], [4, 1, 5], [4, 1, 5], [8, 2, 0]]
    assert result.bandwidth_bytes_per_s / GB == pytest.approx(np.array(expected), abs=1e-8)
    assert result.step_time_s == pytest.approx([3, 3, 3, 2], rel=1e-9)
    # Dimensions 2 and 3 cost the same: B = (4, 6, 0) ties where the total is an equality.
    assert result.unique.tolist() == [True, False, False, True]
    assert result.n_resolved == 0


def test_what_no_batch_can_hold_goes_to_the_reference() -> None:
    plan = one_max("<=", 4)
    several = replace(plan, alternatives=(plan, one_max("<=", 5)))
    result = batch_optimize([plan, several])
    assert result.resolved.tolist() == [False, True]
    assert result.status.tolist() == ["optimal", "optimal"]
    assert result.step_time_s == pytest.approx([3.0, 1 + 8 / 5])


def test_reasons() -> None:
    plans = [
        replace(one_max("<="), rules=()),
        one_max("<=", -1),
        replace(one_max("<=", 4), step_time_limits=(StepTimeLimit("step_time <= 2 s", 2.0),)),
        replace(one_max("<=", 4), step_time_limits=(StepTimeLimit("step_time <= 1 ms", 1e-3),)),
    ]
    result = batch_optimize(plans)
    assert result.status.tolist() == ["ill_posed", "infeasible", "infeasible", "infeasible"]
    assert result.n_resolved == 0
    assert "more is always faster" in reason(plans[0])
    assert "'cap'" in reason(plans[1])
    assert "allow at least" in reason(plans[2])
    assert "compute alone" in reason(plans[3])
    assert reason(one_max("<=")) == ""


def test_ill_posed_by_hand() -> None:
    """Downward and upward; where no vector meets the rules a plan is infeasible first."""
    floor = Rule("dim1 >= 20", (1.0, 0.0, 0.0), ">=", 20 * GB)
    product = replace(one_max("<="), objective="performance_per_cost")
    plans = [
        product,
        changed(product, rules=(floor,), fixed_cost_usd=1.0),
        replace(one_max("=="), objective="cost"),
        replace(one_max("=="), objective="cost", rules=(*one_max("==").rules, floor)),
    ]
    result = batch_optimize(plans)
    assert result.status.tolist() == ["ill_posed", "ill_posed", "ill_posed", "infeasible"]
    assert result.n_resolved == 0


def test_a_step_without_traffic_goes_to_the_reference() -> None:
    idle = changed(one_max("=="), step_time=TimeExpression(Constant(1.0), 3))
    result = batch_optimize([idle, replace(idle, objective="cost")])
    assert result.status.tolist() == ["optimal", "ill_posed"]
    assert result.messages[1] == reason(replace(idle, objective="cost"))
    assert result.step_time_s[0] == 1.0


def test_nothing_is_a_batch_too() -> None:
    assert batch_optimize([]).n_designs == 0


def test_arrays_that_do_not_fit_are_refused_together() -> None:
    program = gpt3_sweep(3)
    with pytest.raises(
        SpecError, match=r"expected bytes above 0.*\n.*bounds: got a number"
    ) as error:
        replace(program, time_numbers=0 * program.time_numbers, bounds=program.bounds * np.nan)
    assert len(error.value.faults) == 2
    with pytest.raises(SpecError, match=r"limit_s: got an array of shape \(2,\), expected \(3,\)"):
        replace(program, limit_s=np.ones(2))


def test_other_prices_change_the_rules_over_cost() -> None:
    """A budget of 20 $ buys as much at half the price, less 4 $ of fixed cost, as 32 $ do."""
    plan = replace(one_max("<="), rules=(Rule("cost", (1 / GB, 3 / GB, 3 / GB), "<=", 20.0),))
    plan = replace(plan, rules=(replace(plan.rules[0], cost_factor=1.0),))
    program = BatchProgram.repeated(plan, 2)
    price = program.price_usd_per_Bps * np.array([[1.0], [0.5]])
    result = optimize_program(program.priced(price, np.array([0.0, 4.0])))
    # B1 = 4 B2 in both, so 7 B2 $ at full price.
    expected = np.array([[80, 20, 0], [128, 32, 0]]) / 7
    assert result.bandwidth_bytes_per_s / GB == pytest.approx(expected, abs=1e-8)
    assert result.cost_usd == pytest.approx([20, 20])


def test_a_template_with_a_choice_is_refused() -> None:
    plan = one_max("<=", 4)
    with pytest.raises(SpecError, match="use batch_optimize"):
        BatchProgram.repeated(replace(plan, alternatives=(plan, plan)), 2)


def test_problems_of_one_structure_are_solved_together() -> None:
    plan = one_max("<=", 4)
    others = [one_max("<=", 5), one_max("==", 4), replace(plan, objective="cost")]
    assert [group.tolist() for group in _groups([plan, *others])] == [[0, 1], [2], [3]]


@given(problems(), st.integers(0, 2**32 - 1))
def test_structure_evaluates_and_lifts_like_the_expression(
    case: tuple[Problem, Collectives], seed: int
) -> None:
    step = case[0].step_time
    shape, rng = step.structure, np.random.default_rng(seed)
    values = np.array(step.numbers)[:, None] * np.array([1.0, 2.0])
    bandwidth = rng.uniform(1e9, 1e12, (step.n_dims, 2))
    doubled = shape.expression(values[:, 1])
    pairs = zip((step, doubled), bandwidth.T, strict=True)
    expected = [float(one.seconds(vector)) for one, vector in pairs]
    assert shape.seconds(values, bandwidth) == pytest.approx(expected, rel=1e-14)
    lifted = lift(shape, values)
    for i, single in enumerate((lifted_alone(step), lifted_alone(doubled))):
        for name in ("objective", "rows", "offsets", "floors"):
            assert np.array_equal(getattr(lifted, name)[..., i], getattr(single, name))
        assert lifted.constant_s[i] == single.constant_s


@given(st.integers(1, 6), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_factors_solve(n: int, n_equal: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(20, n, n))
    equal = rng.normal(size=(20, min(n_equal, n), n))
    zeros = np.zeros((20, equal.shape[1], equal.shape[1]))
    definite = half @ half.swapaxes(1, 2) + 0.1 * np.eye(n)
    matrices = np.block([[definite, equal.swapaxes(1, 2)], [equal, zeros]])
    right = rng.normal(size=(20, matrices.shape[1]))
    found = solved(factored(np.moveaxis(matrices, 0, 2).copy()), right.T.copy())
    expected = np.linalg.solve(matrices, right[..., None])[..., 0]
    assert np.allclose(found.T, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@random_cases(15)
@given(problems())
def test_interval_bounds_contain_those_of_the_linear_programs(
    case: tuple[Problem, Collectives],
) -> None:
    problem, _ = case
    lower, upper = bandwidth_bounds(problem)
    found = Plans.of(BatchProgram.of([problem]))
    assert not found.empty[0]
    assert (found.lower[:, 0] <= lower + 1e-6 * np.abs(upper)).all()
    assert (found.upper[:, 0] >= upper * (1 - 1e-9)).all()


@random_cases(15)
@given(problems(), st.integers(0, 2**32 - 1))
def test_the_bound_holds_for_any_multipliers(case: tuple[Problem, Collectives], seed: int) -> None:
    """No feasible vector is below it, however wrong the duals are."""
    problem, step = case
    if not len(problem.step_time.forms):
        return
    rng = np.random.default_rng(seed)
    plans = Plans.of(BatchProgram.of([problem] * 3))
    batch = program_near(plans, typical_designs(plans))
    point = solve_interior(batch)
    point.dual *= rng.uniform(0, 2, point.dual.shape) * np.array([1.0, 1.0, 0.1])
    point.equal_dual *= rng.uniform(-2, 2, point.equal_dual.shape)
    b = restored(batch, point.b)
    bound = lower_bound(batch, point, b) * batch.time_unit_s + batch.constant_s
    assert (
        bound <= (weighted_value(batch, b) * batch.time_unit_s + batch.constant_s) * (1 + 1e-9)
    ).all()
    others = random_feasible(problem, rng, 200)
    if len(others):
        assert min(step.seconds(other) for other in others) >= bound.max() * (1 - 1e-9)
