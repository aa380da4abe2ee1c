"""Pictures of the cockpit: what is drawn adds up, and is what the commands print."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from libra_planner.evaluation import evaluated
from libra_planner.inputs.plans import load_plan
from libra_planner.problem import Problem
from libra_planner.reading.bundled import example
from libra_planner.tui.pictures import designs as pictures
from libra_planner.tui.pictures import shapes
from libra_planner.tui.screens import design as figures
from libra_planner.tui.screens.bars import traded_bandwidth
from libra_planner.tui.starts import equal_split_GBps
from libra_planner.tui.tables import RowTable
from libra_planner.units import format_time, format_usd
from libra_planner.views.design import evaluate_payload
from libra_planner.views.training.step import PARTS, busy_fractions, computed_shares
from tests.tui.conftest import PLAN, Driver, command, drive


def _evaluated(name: str) -> tuple[Problem, object]:
    problem = load_plan(example(name))
    bandwidth = np.array(equal_split_GBps(problem)) * 1e9
    return problem, evaluated(problem, bandwidth)


def test_without_overlap_one_dimension_is_busy_while_the_step_communicates(tmp_path: Path) -> None:
    plan = tmp_path / "one.yaml"
    text = PLAN.replace("RI(4)_FC(8)_RI(4)_SW(32)", "SW(64)").replace("16, dp: 256", "1, dp: 64")
    plan.write_text(text.replace("[chiplet, package, node, pod]", "[pod]").replace("  - dim1", "#"))
    result = json.loads(command("evaluate", plan, "--bandwidth", "500", "--json").out)
    [busy] = result["busy_fraction_by_dimension"]
    assert busy > 0
    assert busy * result["step_time_s"] == pytest.approx(result["communication_time_s"], rel=1e-12)


@pytest.mark.parametrize("name", ["01_gpt3_4d", "03_group", "0d_llama3_70b"])
def test_pictures_have_the_figures_of_json_and_the_width_that_there_is(name: str) -> None:
    problem, found = _evaluated(name)
    payload = evaluate_payload(problem, found)
    assert payload["busy_fraction_by_dimension"] == busy_fractions(problem, found)
    assert all(0 <= one <= 1 for one in busy_fractions(problem, found))
    for n_cells in (44, 76, 140):
        fabric = pictures.fabric_picture(problem, found, n_cells).plain
        assert {len(line) for line in fabric.splitlines()} == {n_cells}
        for share in payload["busy_fraction_by_dimension"]:
            assert f"{share:.1%} busy" in fabric
    step = pictures.step_picture(problem, found, 200).plain
    for key, seconds in payload.get("time", {}).items():
        said = f"{pictures.SHORT[key]} {seconds / found.step_time_s:.1%}"
        assert (said in step) == (seconds > 1e-4 * found.step_time_s)
    assert set(pictures.SHORT) == set(PARTS)


def test_stages_wait_for_the_bubble_and_work_the_rest() -> None:
    lanes = shapes.stage_lanes(4, 8, 33.0, 9.0, 1 / 3)  # (p - 1)(F + B) = 3 x (1 + 2)
    assert lanes[0].spans == ((0.0, 4.0, "cyan"), (13.0, 25.0, "blue"), (25.0, 33.0, "magenta"))
    for lane in lanes:
        assert sum(end - begin for begin, end, _ in lane.spans) == pytest.approx(24.0)
        assert all(one[1] <= two[0] for one, two in pairwise(lane.spans))


def test_a_timeline_of_phases_lasts_as_long_as_the_step() -> None:
    shares = [("forward TP", (0, 1), 2.0), ("contention of both", (1,), 1.0)]
    lanes = shapes.phase_lanes(shares, {"forward": 3.0, "weight grad": 4.0}, ["dim1", "dim2"])
    assert [one.spans for one in lanes] == [
        ((0.0, 3.0, "cyan"), (5.0, 9.0, "blue"), (9.0, 9.0, "cyan")),
        ((3.0, 5.0, "yellow"),),
        ((3.0, 5.0, "yellow"), (9.0, 10.0, "yellow")),
    ]
    assert lanes[0].said == "70.0%"


def test_a_trade_holds_the_total_or_the_cost() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        values, prices = tuple(rng.uniform(0, 100, 4)), tuple(rng.uniform(0.1, 9, 4))
        dims = tuple(rng.permutation(4)[:2].tolist())
        found = traded_bandwidth(values, dims, rng.uniform(-200, 200), prices)
        assert found is not None
        assert min(found) >= 0
        assert np.dot(found, prices) == pytest.approx(np.dot(values, prices), rel=1e-12)
    assert traded_bandwidth((1.0, 1.0), (0, 1), 1, (0.0, 1.0)) is None


def test_a_curve_says_the_ends_of_its_axes_and_joins_its_points() -> None:
    """By hand: axes of seven cells and three lines; the middle of the line is no point."""
    shown = ("${:g}".format, "{:g} s".format)
    text = shapes.curve_picture([(1.0, 9.0), (100.0, 1.0)], (100.0, 9.0), (13, 5), shown)
    assert text.plain.splitlines() == [
        "9 s │o·    X",
        "    │  ···  ",
        "1 s │     ·o",
        "    └───────",
        "     $1 $100",
    ]


def test_the_small_frontier_is_that_of_pareto_and_stale_once_the_plan_is_edited(
    plan_file: Path,
) -> None:
    points = json.loads(command("pareto", plan_file, "--json").out)["points"]

    async def walk(driver: Driver) -> None:
        app = driver.app
        assert app.evaluation is not None
        shown = driver.text("#small-frontier")
        assert format_time(points[0]["step_time_s"]) in shown
        assert format_usd(points[0]["cost_usd"]) in shown
        cheap = [one for one in points if one["cost_usd"] <= app.evaluation.cost_usd]
        fast = [one for one in points if one["step_time_s"] <= app.evaluation.step_time_s]
        best_s = min(one["step_time_s"] for one in cheap)
        least_usd = min(one["cost_usd"] for one in fast)
        change = best_s / app.evaluation.step_time_s - 1
        said = driver.text("#standing")
        assert f"{format_time(best_s)} ({change:+.1%}) at no more cost" in said
        assert f"{format_usd(least_usd)} (" in said
        await driver.press("o")
        await driver.idle()
        assert "no point of it is better" in driver.text("#standing")
        before = app.session.frontier
        app.apply_edit("constraints.0", "total == 400 GB/s")
        area = app.design.query_one("#design-frontier")
        assert str(area.border_title) == "Frontier of the plan before its edit"
        await driver.idle()
        assert app.session.frontier is not before
        assert str(area.border_title) == "Frontier: step time over cost"
        app.apply_edit("objective", "none such")
        await driver.idle()
        assert str(area.border_title) == "Frontier of the plan before its edit"

    drive(plan_file, walk, (200, 60))


@pytest.mark.parametrize("height", [24, 50])
def test_no_wider_screen_hides_a_column_of_the_bars(plan_file: Path, height: int) -> None:
    async def walk(driver: Driver) -> None:
        for width in (80, 110, 120, 149, 150, 160, 200, 260):
            await driver.pilot.resize_terminal(width, height)
            await driver.pilot.pause(0.1)
            heading, *rows = driver.text("#bandwidths").splitlines()
            assert heading.split("GB/s", 1)[1].split() == [
                *("cost", "step", "waits", "T", "by", "GB/s")
            ], width
            assert all(row.endswith("[-][+]") for row in rows)
            assert max(map(len, rows)) <= driver.app.screen.query_one("#bandwidths").size.width

    drive(plan_file, walk, (80, height))


ONE = PLAN.replace(
    "  - total == 500 GB/s    # the budget\n  - dim1 >= dim2\n",
    "".join(f"  - dim{i} == {100 * i} GB/s\n" for i in range(1, 5)),
)


def test_a_frontier_of_one_design_says_why_in_place_of_axes(plan_file: Path, monkeypatch) -> None:
    """At once: no solver is asked for what the rules fix."""
    plan_file.write_text(ONE)

    def unwanted(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("libra_planner.tui.screens.pane.run_apart", unwanted)
    [point] = json.loads(command("pareto", plan_file, "--json").out)["points"]
    why = "one design: the rules fix the bandwidth of every dimension"

    async def walk(driver: Driver) -> None:
        assert why in " ".join(driver.text("#small-frontier").split())
        said = driver.text("#standing")
        assert format_time(point["step_time_s"]) in said
        assert format_usd(point["cost_usd"]) in said
        await driver.press("3")
        await driver.idle()
        assert driver.app.screen.query_one("#frontier-plot").has_class("-empty")
        assert why in " ".join(driver.text("#plot-empty").split())
        [row] = driver.app.screen.query_one("#frontier-list RowTable", RowTable)._texts
        assert {format_time(point["step_time_s"]), "100.00", "400.00"} <= set(row)

    drive(plan_file, walk, (200, 60))


def test_a_plan_without_a_design_says_so_until_it_is_edited(plan_file: Path) -> None:
    plan_file.write_text(f"{PLAN}  - dim1 <= 10 GB/s\n  - dim2 >= 20 GB/s\n")

    async def walk(driver: Driver) -> None:
        await driver.press("o")
        await driver.idle()
        await driver.press("escape")
        said = " ".join(driver.text("#proof").split())
        assert said.startswith("No design: ")
        assert "(line 12)" in said
        driver.app.apply_edit("constraints.3", "dim2 >= 5 GB/s")
        await driver.idle()
        assert driver.text("#proof").startswith("o finds the best design")

    drive(plan_file, walk)


def test_a_design_that_cannot_be_built_says_so_beside_its_price() -> None:
    plan = load_plan(example("0e_rails_2to1"))
    for leaf_GBps, is_built in ((50.0, True), (500.0, False)):
        found = evaluated(plan, np.array([450.0, leaf_GBps, leaf_GBps / 2]) * 1e9)
        said = {figure for _, figure, _ in figures._cost(plan, found)}
        assert ("cannot be built" in said) != is_built


def test_boxes_cut_no_figure() -> None:
    problem, found = _evaluated("0e_rails_2to1")
    computed, waits, *_ = computed_shares(problem, found)
    share = computed.seconds / found.step_time_s  # As in the step: its waits stand apart there.
    assert waits.seconds > 0
    for n_cells in range(44, 90):
        drawn = pictures.fabric_picture(problem, found, n_cells).plain
        assert f"2,048 NPUs, compute {share:.1%}" in drawn
        assert {len(line) for line in drawn.splitlines()} == {n_cells}
