"""Plans whose optimum is not attained, each kind of C8, and plans that only seem so."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from libra_planner import load_plan
from libra_planner.errors import IllPosed, Infeasible
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Problem, Rule, StepTimeLimit
from tests.problems import Collectives, changed, plan_of


def _problem(*rules: Rule, compute_s: float = 1.0, fixed_cost_usd: float = 0.0) -> Problem:
    """Transfers of 1 and 4 s at 1 byte/s, one after the other; 1 and 2 USD per byte/s."""
    step = Collectives(compute_s, np.array([[1.0, 0.0], [0.0, 4.0]])).expression()
    return plan_of(
        "plan.yaml",
        "two transfers",
        parse_topology("SW(4)_SW(4)"),
        step,
        np.array([1.0, 2.0]),
        rules,
        objective="performance_per_cost",
        fixed_cost_usd=fixed_cost_usd,
    )


AT_MOST = Rule("total <= 10", (1.0, 1.0), "<=", 10.0)
AT_LEAST = Rule("total >= 1", (1.0, 1.0), ">=", 1.0)
FLOOR = Rule("dim1 >= 1", (1.0, 0.0), ">=", 1.0)
EXACTLY = Rule("total == 10", (1.0, 1.0), "==", 10.0)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (_problem(AT_MOST), "as all bandwidths shrink"),
        (_problem(), "as all bandwidths shrink"),
        (_problem(AT_LEAST, fixed_cost_usd=5.0), "bounds the bandwidth of dim1, dim2"),
        (_problem(AT_MOST, compute_s=0.0), "scale-free"),
        (_problem(AT_LEAST, compute_s=0.0), "scale-free"),
        (replace(_problem(AT_MOST), objective="cost"), "without a step-time bound"),
        (replace(_problem(), objective="performance"), "bounds the bandwidth of dim1, dim2"),
        (
            changed(_problem(FLOOR), price_usd_per_Bps=np.array([1.0, 0.0])),
            "bandwidth that costs nothing and that no rule bounds",
        ),
        (
            changed(
                _problem(AT_MOST),
                price_usd_per_Bps=np.zeros(2),
                step_time_limits=(StepTimeLimit("step_time <= 5 s", 5.0),),
            ),
            "costs nothing and meets every rule",
        ),
    ],
)
def test_an_optimum_that_is_not_attained_is_refused_with_the_reason(
    problem: Problem, message: str
) -> None:
    with pytest.raises(IllPosed, match=message) as caught:
        optimize(problem)
    assert str(caught.value).startswith("plan.yaml: ")


def test_the_kinds_reach_the_command_line(plan, run) -> None:
    upper = plan(("total == 500", "total <= 500"))
    result = run("optimize", upper, "--set", "objective=performance_per_cost")
    assert result.code == 3
    assert result.err.startswith(f"{upper}:7:1: constraints: got performance_per_cost under rules")
    result = run("optimize", upper, "--set", "objective=cost")
    assert result.code == 3
    said = re.search(r"add e.g. '(step_time <= [\d.]+ m?s)'$", result.err.strip())
    assert said is not None
    more = "--set", f"constraints=[total <= 500 GB/s, {said[1]}]"
    assert run("optimize", upper, "--set", "objective=cost", *more).code == 0


@pytest.mark.parametrize(
    ("new", "settings", "place"),
    [
        ("constraints: []", (), ":7:1: constraints: got no rule that bounds"),
        ("", (), ":1:1: constraints: got no rule that bounds"),
        ("constraints: [total <= 9 GB/s]", ("constraints=[]",), ": --set constraints: got no rule"),
        ("objective: cost\nconstraints: []", (), ":8:1: constraints: got objective cost without"),
    ],
)
def test_a_missing_rule_has_a_place(new: str, settings: tuple[str, ...], place, plan, run) -> None:
    """That of the rules there are, or else of the plan."""
    path = plan(("constraints:\n  - total == 500 GB/s", new))
    result = run("optimize", path, *(part for one in settings for part in ("--set", one)))
    assert result.code == 3
    assert result.err.startswith(f"{path}{place}")


_MENDED = ["leaf <= 300 GB/s", "taper(spine) >= 1"]
_BY_LEAF = "('taper(spine) == 2' bounds spine by leaf, so 'leaf <= 300 GB/s' bounds it, too)"


@pytest.mark.parametrize(
    ("rules", "said", "unsaid"),
    [
        (["taper(spine) == 2"], f"of leaf, spine, expected .* {re.escape(_BY_LEAF)}$", "uplinks"),
        (["1 <= taper(spine) <= 3"], "bounds spine by leaf, so 'leaf <= 300 GB/s'", "from below"),
        (["leaf <= 50 GB/s"], r"of spine, .* uplinks of a stack 'taper\(spine\) >= 1'$", "dim3"),
    ],
)
def test_tiers_without_a_bound_are_named_as_rules_name_them(rules, said, unsaid) -> None:
    asked = {"objective": "performance", "constraints": rules}
    with pytest.raises(IllPosed, match=said) as caught:
        load_plan("0d_llama3_70b", asked).optimize()
    assert unsaid not in str(caught.value)
    assert load_plan("0d_llama3_70b", asked | {"constraints": [*rules, *_MENDED]}).optimize()


def test_a_bound_is_not_the_remedy_where_less_is_always_cheaper() -> None:
    asked = {"objective": "cost", "constraints": ["taper(spine) == 2"]}
    with pytest.raises(IllPosed, match=r"add e.g. 'step_time <= 4 s'$"):
        load_plan("0d_llama3_70b", asked).optimize()
    asked["constraints"] = ["taper(spine) == 2", "step_time <= 4 s"]
    assert load_plan("0d_llama3_70b", asked).optimize()


@pytest.mark.parametrize("objective", ["cost", "performance_per_cost"])
def test_a_limit_on_the_step_time_that_is_proposed_is_met(objective: str) -> None:
    """Of GPT-3 on 2,048 H100, whose compute alone takes 5.6 s."""
    with pytest.raises(IllPosed) as caught:
        load_plan("08_rails", {"objective": objective}).optimize()
    said = re.search(r"'(step_time <= [\d.]+ s)'", str(caught.value))
    assert said is not None
    rules = ["leaf <= 50 GB/s", "taper(spine) == 2", said[1]]
    assert load_plan("08_rails", {"objective": objective, "constraints": rules}).optimize()


def test_per_cost_without_an_upper_bound_is_well_posed_where_cost_holds_it_down() -> None:
    """T C = (1 + 1/b1 + 4/b2)(b1 + 2 b2) grows with size, so b1 = 1, its floor.

    Then (2 + 4/b2)(1 + 2 b2) = 10 + 4 b2 + 4/b2, least at b2 = 1: 18.
    """
    design = optimize(_problem(FLOOR))
    assert design.objective == pytest.approx(18.0, rel=1e-12)
    assert np.allclose(design.bandwidth_bytes_per_s, [1.0, 1.0], rtol=1e-6)


def test_a_step_time_bound_makes_shrinking_well_posed() -> None:
    """With b1, b2 >= 0 free, T C only falls as both shrink: the bound on T ends that."""
    limit = StepTimeLimit("step_time <= 10 s", 10.0)
    design = optimize(replace(_problem(AT_MOST), step_time_limits=(limit,)))
    # Cheapest split of 9 s of communication: b_i ~ sqrt(a_i / p_i).
    shape = np.array([1.0, np.sqrt(2.0)])
    b = shape * (1.0 / shape[0] + 4.0 / shape[1]) / 9.0
    assert np.allclose(design.bandwidth_bytes_per_s, b, rtol=1e-6)
    assert design.objective == pytest.approx(10.0 * (b @ [1.0, 2.0]), rel=1e-9)


def test_scale_free_but_of_fixed_size_is_solved() -> None:
    """No compute, no fixed cost, total == 10: (1/b + 4/(10-b)) (20 - b), against a fine grid."""
    design = optimize(_problem(EXACTLY, compute_s=0.0))
    b = np.linspace(0.01, 9.99, 2_000_001)
    least = ((1 / b + 4 / (10 - b)) * (20 - b)).min()
    assert design.objective == pytest.approx(least, rel=1e-9)


def test_designs_that_differ_in_size_only_do_not_keep_the_search_going() -> None:
    """Hardly any compute: T C hardly changes with size, (1 + 2 sqrt 2)^2 at any."""
    design = optimize(_problem(AT_MOST, AT_LEAST, compute_s=1e-7))
    assert design.optimality_gap <= 1e-6
    assert design.objective == pytest.approx((1 + 8**0.5) ** 2, rel=1e-6)


@pytest.mark.parametrize("objective", ["performance_per_cost", "cost"])
def test_a_step_time_bound_out_of_reach_names_the_rules(objective: str) -> None:
    limit = StepTimeLimit("step_time <= 1.5 s", 1.5)
    problem = replace(_problem(AT_MOST), objective=objective, step_time_limits=(limit,))
    with pytest.raises(Infeasible, match=r"allows no less than 1\.900 s") as caught:
        optimize(problem)
    assert caught.value.conflict == ("step_time <= 1.5 s", "total <= 10")


def test_a_cost_below_the_fixed_cost_says_so(plan, run) -> None:
    path = plan(("  - total == 500 GB/s", "  - total == 500 GB/s\n  - cost <= 100 M$"))
    result = run("optimize", path, "--set", "fixed_cost=120 M$")
    assert result.code == 3
    assert "a rule none can meet: 'cost <= 100 M$' (line 9) (fixed cost $120.00M)" in result.err


def test_rules_that_leave_a_dimension_nothing_conflict() -> None:
    """What is left of dim1 is rounding: no unit to measure it by."""
    full = Rule("dim2 == 10", (0.0, 1.0), "==", 10.0)
    with pytest.raises(Infeasible, match="while every dimension with traffic has") as caught:
        optimize(_problem(AT_MOST, full, fixed_cost_usd=5.0))
    assert caught.value.conflict == ("total <= 10", "dim2 == 10")


def test_a_group_is_not_told_a_limit_that_its_objective_refuses() -> None:
    asked = {"objective": "performance_per_cost", "constraints": ["total <= 500 GB/s"]}
    with pytest.raises(IllPosed, match=r"shrink\); add fixed_cost$"):
        load_plan("03_group", {**asked, "group_objective": "relative"}).optimize()
    fixed = {"fixed_cost": "20 M$", "group_objective": "relative"}
    assert load_plan("03_group", {**asked, **fixed}).optimize()
