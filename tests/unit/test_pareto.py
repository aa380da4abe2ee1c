"""The time/cost frontier: its ends, its shape, and the command that prints it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from libra_planner.errors import IllPosed, Infeasible, SpecError
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.only import only_design
from libra_planner.optimizer.optimize import pareto
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.views.frontier import frontier_payload, one_design_text
from tests.problems import Collectives, plan_of


def _one_dimension(
    *rules: Rule, compute_s: float = 1.0, fixed_cost_usd: float = 0.0, usd: float = 2.0
) -> Problem:
    """T = compute + 4/b, C = 2 b: the frontier is T = compute + 8/C."""
    step = Collectives(compute_s, np.array([[4.0]])).expression()
    fabric = parse_topology("SW(4)")
    price = np.array([usd])
    return plan_of("p", "w", fabric, step, price, rules, fixed_cost_usd=fixed_cost_usd)


TEN = Rule("total <= 10", (1.0,), "<=", 10.0)


@pytest.mark.parametrize("fixed_cost_usd", [0.0, 100.0])
def test_frontier_by_hand(fixed_cost_usd: float) -> None:
    points = pareto(_one_dimension(TEN, fixed_cost_usd=fixed_cost_usd), 9)
    assert len(points) == 9
    times = np.array([point.step_time_s for point in points])
    costs = np.array([point.cost_usd for point in points]) - fixed_cost_usd
    assert np.allclose(times, 1 + 8 / costs, rtol=1e-9)
    assert times[-1] == pytest.approx(1.4, rel=1e-9)
    assert times[0] == pytest.approx(2.8, rel=1e-9)  # twice the fastest
    assert np.allclose(np.diff(np.log(costs)), np.log(costs[-1] / costs[0]) / 8, rtol=1e-6)
    assert max(point.optimality_gap for point in points) <= 1e-6


def test_it_begins_where_a_step_time_rule_says() -> None:
    limit = StepTimeLimit("step_time <= 3 s", 3.0)
    points = pareto(replace(_one_dimension(TEN), step_time_limits=(limit,)), 3)
    assert points[0].step_time_s == pytest.approx(3.0, rel=1e-9)
    assert points[0].cost_usd == pytest.approx(4.0, rel=1e-9)


def test_without_an_upper_bound_it_ends_within_a_hundredth_of_compute() -> None:
    points = pareto(_one_dimension(), 4)
    assert points[-1].step_time_s == pytest.approx(1.01, rel=1e-3)
    with pytest.raises(IllPosed, match="no cost to trade time for; use optimize"):
        pareto(_one_dimension(TEN, usd=0.0))
    with pytest.raises(IllPosed, match="bounds the bandwidth of dim1"):
        pareto(_one_dimension(compute_s=0.0), 4)


def test_a_frontier_that_is_one_point() -> None:
    points = pareto(_one_dimension(Rule("total == 10", (1.0,), "==", 10.0)), 5)
    assert [point.step_time_s for point in points] == [pytest.approx(1.4)]


def test_bad_numbers_of_points() -> None:
    with pytest.raises(SpecError, match="got 1 points, expected 2 or more"):
        pareto(_one_dimension(TEN), 1)


def test_no_point_is_dominated_and_all_designs_agree(plan, run) -> None:
    result = run("pareto", plan(), "--points", "7", "--json")
    points = result.payload["points"]
    times = [point["step_time_s"] for point in points]
    costs = [point["cost_usd"] for point in points]
    assert times == sorted(times, reverse=True)
    assert costs == sorted(costs)
    slopes = np.diff(times) / np.diff(costs)
    assert (np.diff(slopes) >= -1e-12).all()  # convex
    fastest = run("optimize", plan(), "--json").payload
    assert times[-1] == pytest.approx(fastest["step_time_s"], rel=1e-9)
    assert costs[-1] == pytest.approx(fastest["cost_usd"], rel=1e-6)
    setting = "objective=performance_per_cost"
    best = run("optimize", plan(), "--set", setting, "--json").payload["objective"]
    assert min(p["step_time_x_cost"] for p in points) >= best * (1 - 1e-9)


def test_csv_has_the_same_figures(plan, run) -> None:
    points = run("pareto", plan(), "--points", "3", "--json").payload["points"]
    result = run("pareto", plan(), "--points", "3", "--csv")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [float(row["step_time_s"]) for row in rows] == [p["step_time_s"] for p in points]
    assert [float(row["dim4_GBps"]) for row in rows] == [p["bandwidth_GBps"][3] for p in points]


def test_the_table_names_the_best_per_dollar(plan, run) -> None:
    out = run("pareto", plan(), "--points", "5").out
    assert out.count("\n * ") == 1
    assert "* least step time x cost of these" in out
    assert "Note: LIBRA's published table" in out
    assert "prices libra-ispass24 (2024-05, published)" in out
    assert out.startswith("gpt3-libra on RI(4)_FC(8)_RI(4)_SW(32): the fastest design at each cost")


def test_what_the_range_leaves_out_is_said_and_a_rule_keeps_it(plan, run) -> None:
    told = run("pareto", plan(), "--points", "3", "--json").payload["notes"][0]
    assert told.startswith("cheaper designs, more than 2 times as slow, are left out; a rule such")
    rule = told.partition("'")[2].partition("'")[0]
    more = run("pareto", plan(), "--points", "3", "--set", f"constraints.1={rule}", "--json")
    slow, *_, fast = (point["step_time_s"] for point in more.payload["points"])
    assert slow == pytest.approx(10 * fast, rel=1e-3)
    assert "left out" not in " ".join(more.payload["notes"])


def test_the_end_of_the_range_is_not_called_the_best(plan, run) -> None:
    """Without a floor the product falls with size: the slow end is only where the range stops."""
    out = run("pareto", plan(), "--set", "constraints=[]", "--points", "4").out
    assert "\n * " not in out
    assert "least step time x cost of these" not in out


@pytest.mark.parametrize("points", ["1", "x", "-3", "1e3", "100000000000"])
def test_a_wrong_number_of_points_is_usage(points: str, plan, run) -> None:
    result = run("pareto", plan(), f"--points={points}")
    assert result.code == 2
    assert "expected a whole number from 2 to 1000" in result.err


def test_a_catalogue_has_no_continuous_frontier(plan, run) -> None:
    option = "fabric.link_options={pod: [25 GB/s]}"
    result = run("pareto", plan(), "--set", option)
    assert result.code == 2
    assert ": --set fabric.link_options: got link_options" in result.err
    path = plan(("tiers:", "link_options: {pod: [25 GB/s]}\n  tiers:"))
    result = run("pareto", path)
    assert result.err.startswith(f"{path}:4:3: fabric.link_options: got link_options, expected any")


def test_optimize_under_the_cost_of_a_point_gives_that_point(plan, run) -> None:
    point = run("pareto", plan(), "--points", "4", "--json").payload["points"][2]
    rules = f'constraints=["total == 500 GB/s", "cost <= {point["cost_usd"]!r} $"]'
    again = run("optimize", plan(), "--set", rules, "--json").payload
    assert again["step_time_s"] == pytest.approx(point["step_time_s"], rel=1e-9)


DIM1 = Rule("dim1 == 10 GB/s", (1.0, 0.0), "==", 10.0)
DIM2 = Rule("dim2 == 10 GB/s", (0.0, 1.0), "==", 10.0)
COST = Rule("cost == 40", (2.0, 2.0), "==", 40.0)
MOST = Rule("total <= 40", (1.0, 1.0), "<=", 40.0)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ((DIM1, DIM2), "one design: the rules fix the bandwidth of every dimension; "),
        ((COST,), "one design: the rules fix the cost, and this is the fastest at it; "),
        ((DIM1, COST), "one design: the rules fix the bandwidth of every dimension; "),
        ((DIM1, MOST), "one design: the cheapest that the rules allow is the fastest too"),
    ],
)
def test_a_single_design_says_why_it_is_alone(rules: tuple[Rule, ...], said: str) -> None:
    """Two dimensions at one price; the step waits for the first alone."""
    step = Collectives(1.0, np.array([[4.0, 0.0]])).expression()
    price = np.array([2.0, 2.0])
    problem = plan_of("p", "w", parse_topology("SW(4)_SW(2)"), step, price, rules)
    points = pareto(problem, 9)
    assert len(points) == 1
    assert one_design_text(problem, points[0]).startswith(said)
    only = only_design(problem)
    assert (only is not None) is ("bandwidth of every" in said)
    if only is not None:  # T = 1 + 4/10, C = 2 x 10 + 2 x 10.
        assert (only.step_time_s, only.cost_usd) == pytest.approx((1.4, 40.0), rel=1e-12)
    assert any(note.startswith(said) for note in frontier_payload(problem, points)["notes"])


def test_rules_that_the_fixed_design_breaks_are_found_out() -> None:
    problem = _one_dimension(Rule("dim1 == 20", (1.0,), "==", 20.0), TEN)
    assert only_design(problem) is None
    with pytest.raises(Infeasible):
        pareto(problem, 9)
    late = _one_dimension(Rule("dim1 == 10", (1.0,), "==", 10.0))
    assert only_design(late) is not None
    assert only_design(replace(late, step_time_limits=(StepTimeLimit("T", 1.3),))) is None
