"""Journeys through the cockpit, key by key; figures on screen are those of the commands."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import DataTable, Input, OptionList, Static

from libra_planner.reading.bundled import example
from libra_planner.tui.dialogs import Panel
from libra_planner.tui.screens.fabric import FabricPane
from libra_planner.tui.screens.frontier import FrontierPane
from libra_planner.tui.screens.plan_form import Choice, FieldRow, PlanForm
from libra_planner.tui.screens.report import ReportPane
from libra_planner.tui.screens.search import SearchPane
from libra_planner.tui.screens.sweep import SweepPane
from libra_planner.units import format_time, format_usd
from tests.tui.conftest import ODD_PATHS, WHOLE, Driver, command, drive


def vector(driver: Driver) -> str:
    return ",".join(repr(b) for b in driver.app.session.edits.bandwidth_GBps or ())


def headline(driver: Driver) -> str:
    return " ".join(driver.text("#headline").split())


def assert_same_figures(driver: Driver, payload: dict[str, Any]) -> None:
    """The first screen says what ``--json`` says."""
    text = headline(driver)
    assert f"Step time {format_time(payload['step_time_s'])}" in text
    assert f"{format_time(payload['communication_time_s'])} exposed" in text
    assert f"Cost {format_usd(payload['network_cost_usd'])}" in text
    assert f"Speedup {payload['speedup_vs_equal']:.3f}x" in text
    assert f"Perf/cost {payload['perf_per_cost_vs_equal']:.3f}x" in text


@pytest.mark.parametrize(
    "name",
    [
        "01_gpt3_4d",
        "02_performance_per_cost",
        "03_group",
        "04_overlap",
        "05_pipelined",
        "06_catalogue",
    ],
)
def test_figures_are_those_of_evaluate(name: str) -> None:
    async def walk(driver: Driver) -> None:
        shown = headline(driver)
        assert driver.app.session.edits.bandwidth_GBps
        payload = command(
            "evaluate", example(name), "--bandwidth", vector(driver), "--json"
        ).payload
        assert_same_figures(driver, payload)
        for violation in payload["violated"]:
            assert f"BROKEN: {violation['rule'].split(',')[0]}" in shown
        await driver.press("plus", "down", "minus", "minus")
        payload = command(
            "evaluate", example(name), "--bandwidth", vector(driver), "--json"
        ).payload
        assert_same_figures(driver, payload)

    drive(example(name), walk)


def test_keys_pressed_while_a_plan_is_read_are_done_then(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        app.open_plan(plan_file)
        app.action_pin()
        app.action_optimize()
        assert [one.kind for one in app.workshop.running()] == ["read"]
        await driver.until(lambda: "Proven optimal" in driver.text("#proof"))
        assert [pin.called for pin in app.session.pins] == ["equal bandwidth"]
        app.open_plan(plan_file)
        app.action_optimize()
        app.action_cancel()
        app.reread()
        await driver.idle()
        assert "Proven optimal" not in driver.text("#proof")  # What was cancelled is not done.

    drive(plan_file, walk)


def test_change_the_budget_optimise_save_reopen(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        await driver.press("f")
        driver.focus_key("constraints.0")
        await driver.pilot.pause()
        await driver.type("total == 300 GB/s")
        await driver.press("enter")
        await driver.idle()
        assert "BROKEN: total == 300 GB/s" in headline(driver)
        await driver.press("escape", "o")
        await driver.idle()
        payload = command(
            "optimize", plan_file, "--set", "constraints.0=total == 300 GB/s", "--json"
        ).payload
        assert_same_figures(driver, payload)
        assert list(app.session.edits.bandwidth_GBps or ()) == payload["bandwidth_GBps"]
        assert "Proven optimal" in driver.text("#proof")
        assert "total == 300 GB/s" in driver.text("#worth")
        await driver.press("s")
        await driver.idle()
        assert not app.session.dirty
        assert "total == 300 GB/s    # the budget" in plan_file.read_text()
        await driver.press("q")

    async def again(driver: Driver) -> None:
        payload = command("optimize", plan_file, "--json").payload
        assert_same_figures(driver, payload)

    drive(plan_file, walk)
    drive(plan_file, again)


def test_emptied_fields_and_rules_go_away(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        session = driver.app.session
        driver.app.apply_edit("global_batch", "4096")
        await driver.idle()
        for key in ("global_batch", "constraints.1"):
            driver.focus_key(key)
            await driver.pilot.pause()
            await driver.type("")
            await driver.press("enter")
            await driver.idle()
        assert session.faults == ()
        assert session.problem is not None
        assert [rule.text for rule in session.problem.rules] == ["total == 500 GB/s"]

    drive(plan_file, walk)


def test_long_keys_have_their_name(plan_file: Path) -> None:
    """A label that is longer than its column takes more of it, and is not lost."""

    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("parallelism.sequence_parallel", "true")
        driver.app.apply_edit("fabric.realization.transceivers_per_fibre", "2")
        await driver.idle()
        driver.focus_key("fabric.realization.transceivers_per_fibre")
        await driver.pilot.pause()
        assert re.search(r" transceivers_per_fibre +2\b", driver.screen_text())
        driver.focus_key("parallelism.sequence_parallel")
        await driver.pilot.pause()
        assert re.search(r" sequence_parallel +true\b", driver.screen_text())

    drive(plan_file, walk)


def test_a_plan_is_written_in_its_tree(plan_file: Path) -> None:
    """Rules with completion, a wrong value in the words of the command, a key of its own, saved."""

    async def walk(driver: Driver) -> None:
        app, form = driver.app, driver.app.design.query_one(PlanForm)

        def faults(key: str) -> str:
            row = next(row for row in form.query(FieldRow) if row.field.key == key)
            return str(row.query_one(".faults", Static).render())

        await driver.press("a")
        await driver.until(lambda: isinstance(app.focused, Input))
        await driver.press(*"dim2 >= d")
        offered = form.query_one("#form-words", OptionList)
        assert [str(one.prompt) for one in offered.options][:2] == ["dim2 >= dim1", "dim2 >= dim2"]
        await driver.press("down", "down", "down", "enter", "enter")
        await driver.idle()
        await driver.pilot.resize_terminal(120, 24)  # Its last line is that of a new rule.
        assert not isinstance(app.focused, Input)
        await driver.press("a", *"pod <= 20", "enter")  # Not what is offered: what was typed.
        await driver.idle()
        await driver.press("a")
        await driver.idle()
        seen, about = form.scrollable_content_region, form.query_one("#form-about").region
        assert isinstance(app.focused, Input)  # Below the lines of the fault, and in sight.
        assert seen.y <= app.focused.region.y < about.y < seen.bottom
        await driver.pilot.resize_terminal(120, 40)
        wanted = ["total == 500 GB/s", "dim1 >= dim2", "dim2 >= dim3", "pod <= 20"]
        assert app.session.reading is not None
        assert app.session.reading.document.value["constraints"] == wanted  # type: ignore[union-attr]
        said = command("optimize", plan_file, "--set", "constraints.2=pod <= 20").err
        text = " ".join(faults("constraints.3").removeprefix("! ").split())
        assert text
        assert text in " ".join(said.split())
        await driver.press("up", "ctrl+l")
        await driver.idle()
        assert app.session.faults == ()
        for typed, said in (("libary", "library"), ("fabric.realization.wiring: rail", "")):
            driver.focus_key("+")
            await driver.pilot.pause()
            await driver.type(typed)
            await driver.press("enter")
            await driver.idle()
            assert said in faults("+")
        await driver.press("escape", "s")
        await driver.idle()
        text = plan_file.read_text()
        assert "  - dim1 >= dim2\n  - dim2 >= dim3\n" in text
        assert "pod <=" not in text
        assert "wiring: rail" in text
        assert "# the budget" in text

    drive(plan_file, walk)


def test_the_heat_map_stays_in_sight_at_the_next_draw(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE)

    async def walk(driver: Driver) -> None:
        await driver.press("p")
        assert "pinned: 1 " in driver.text("#status")
        await driver.press("4")
        await driver.idle()
        assert "pinned" not in driver.text("#status")
        await driver.press("h", "n")
        await driver.idle()
        heat = driver.app.query_one("#fabric-right")
        assert heat.has_focus
        await driver.until(lambda: heat.region.y < 5)

    drive(path, walk, size=(80, 24))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_letters_are_commands_until_a_field_is_chosen(
    size: tuple[int, int], tmp_path: Path
) -> None:
    """The a of a new rule was typed into the list of models, and Enter took one."""
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE)

    async def walk(driver: Driver) -> None:
        app, before = driver.app, driver.app.session.edits.settings
        await driver.press("f", "a", "enter")
        await driver.idle()
        assert app.session.edits.settings == before
        assert isinstance(app.focused, Input)  # Of the rule.
        await driver.press("escape", "f", "enter")
        await driver.idle()
        assert isinstance(app.focused, Choice)

    drive(path, walk, size=size)


def test_a_letter_that_no_name_begins_with_opens_no_list(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE)

    async def walk(driver: Driver) -> None:
        await driver.press("f", "down")
        await driver.idle()
        form = driver.app.focused
        await driver.press("b")
        assert not driver.app.query("Choice.-expanded")
        assert "no name here begins with b" in driver.text("#status")
        assert driver.app.focused is form
        await driver.press("q")
        await driver.until(lambda: driver.app.query("Choice.-expanded"))
        await driver.press("escape", "escape", "b")
        assert driver.app.focused is driver.app.query_one("#bandwidths")

    drive(path, walk, size=(80, 24))


def test_typed_bandwidths_and_undo(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        first = app.session.edits.bandwidth_GBps
        await driver.press("enter")
        await driver.type("fast")
        await driver.press("enter")
        assert "expected" in driver.text("#prompt-wrong")
        await driver.type("300,100,75,25")
        await driver.press("enter")
        assert app.session.edits.bandwidth_GBps == (300, 100, 75, 25)
        assert "Step time 725.217 ms" in headline(driver)  # The README's figure.
        await driver.press("u")
        assert app.session.edits.bandwidth_GBps == first
        await driver.press("U")
        assert app.session.edits.bandwidth_GBps == (300, 100, 75, 25)

    drive(plan_file, walk)


def test_zero_bandwidth_is_a_message(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("enter")
        await driver.type("0")
        await driver.press("enter")
        assert "0 GB/s for dim1" in driver.text("#headline")
        await driver.press("u")
        assert "Step time" in driver.text("#headline")

    drive(plan_file, walk)


def test_pin_compare_and_load(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        first = app.session.edits.bandwidth_GBps
        await driver.press("p", "o")
        await driver.idle()
        await driver.press("p", "2")
        table = app.pane.query_one(DataTable)
        rows = [[str(cell) for cell in table.get_row_at(i)] for i in range(table.row_count)]
        times = next(row for row in rows if row[0] == "step time")
        base, best = (pin.evaluation.step_time_s for pin in app.session.pins)
        assert times[1] == format_time(base)
        assert times[2] == f"{format_time(best)}  {100 * (best / base - 1):+.2f} %"
        await driver.press("B", "enter")
        assert app.session.edits.bandwidth_GBps == first
        await driver.press("d", "d", "d")
        assert app.session.pins == []

    drive(plan_file, walk)


def test_the_frontier_is_that_of_pareto(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        await driver.press("3")
        await driver.idle()
        table = app.pane.query_one(DataTable)
        points = command("pareto", plan_file, "--json").payload["points"]
        lines = [str(*table.get_row_at(i)).lstrip(" *") for i in range(table.row_count)]
        shown = [line.split("  ") for line in lines]
        times = [[cell for cell in row if cell][1].strip() for row in shown]
        assert times == [format_time(point["step_time_s"]) for point in points]
        await driver.press("l", "home", "down", "enter")
        chosen = points[table.cursor_row]["bandwidth_GBps"]
        assert list(app.session.edits.bandwidth_GBps or ()) == pytest.approx(chosen)
        assert isinstance(app.pane, FrontierPane)

    drive(plan_file, walk)


def test_links_are_those_of_check(tmp_path: Path) -> None:
    path = tmp_path / "rack.yaml"
    path.write_text(
        example("01_gpt3_4d")
        .read_text()
        .replace("  tiers:", "  realization: {wiring: top_of_rack}\n  tiers:")
    )

    async def walk(driver: Driver) -> None:
        app = driver.app
        await driver.press("4")
        for policy in ("ecmp", "spray", "greedy"):
            await driver.idle()
            flags = ["--bandwidth", vector(driver), "--policy", policy, "--json"]
            payload = command("check", path, *flags).payload
            assert format_time(payload["effective_step_time_s"]) in driver.text("#fabric-times")
            dims = driver.text("#fabric-dimensions")
            fim = payload["dimensions"][3]["fim_percent"]
            assert f"{fim:.2f}" in dims
            await driver.press("y")
        assert isinstance(app.pane, FabricPane)
        await driver.press("y", "y", "y", "y")  # Round to ecmp again.
        await driver.idle()
        assert "leaf_up" in driver.text("#fabric-heat")
        await driver.press("enter")
        assert isinstance(app.screen, Panel)
        assert "leaf_up" in driver.text("#panel-text")
        assert "from NPU to NPU" in driver.text("#panel-text")
        await driver.press("escape")
        assert "mean of 10 routings, from " in driver.text("#fabric-times")
        await driver.press("n")
        await driver.idle()
        assert app.pane.query_one("#seed", Input).value == "0"
        assert "mean of" not in driver.text("#fabric-times")
        await driver.press("n", "N", "N")
        await driver.idle()
        assert app.pane.query_one("#seed", Input).value == ""

    drive(path, walk)


def test_sweep_count_run_browse_and_open_a_row(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        await driver.press("5", "c")
        await driver.idle()
        assert "37 designs" in driver.text("#sweep-state")
        await driver.press("g")
        await driver.idle()
        assert "37 of 37 designs" in driver.text("#sweep-state")
        table = app.pane.query_one(DataTable)
        assert table.row_count == 20
        await driver.press("v", "v")
        await driver.idle()
        assert table.row_count == 37
        await driver.press("home", "enter")
        await driver.idle()
        assert app.session.path.name == "plan-sweep-row0.yaml"
        assert app.session.faults == ()

    drive(plan_file, walk)


def test_a_sweep_can_be_cancelled_and_resumed(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        await driver.press("5")
        await driver.pilot.pause()
        area = app.screen.query_one("#sweep-text")
        area.text = area.text.replace("step: 25", "step: 0.05") + "designs_per_part: 500\n"  # type: ignore[attr-defined]
        await driver.press("g")
        folder = plan_file.with_name("plan-sweep")
        await driver.until(lambda: list(folder.glob("part-*.parquet")))
        await driver.press("x")
        assert "cancelled" in driver.text("#status")
        assert not app.workshop.running()
        n_parts = len(list(folder.glob("part-*.parquet")))
        assert 0 < n_parts < 37
        assert isinstance(app.pane, SweepPane)

    drive(plan_file, walk)


def test_a_report_is_written(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("p", "o")
        await driver.idle()
        await driver.press("p", "6", "w")
        assert isinstance(driver.app.pane, ReportPane)
        await driver.idle()
        folder = plan_file.with_name("plan-report")
        assert str(folder / "report.html") in driver.text("#report-result").replace("\n", "")
        assert (folder / "report.html").exists()

    drive(plan_file, walk)


BROKEN = """\
workload: gtp3-libra
fabric:
  topology: RI(4)_FC(8)_XX(4)
  tiers: [chiplet, package, node]
parallelism: {tp: 16, dp: many}
cost_model: libra-ispass24
objective: speed
constraints:
  - total = 500
"""


def test_a_broken_plan_shows_every_fault_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)

    async def walk(driver: Driver) -> None:
        text = driver.text("#faults-text")
        listed = (
            command("evaluate", path, "--bandwidth", "1,1,1", "--json").err.strip().splitlines()
        )
        assert len(listed) >= 3
        for line in listed:
            assert line in text
        await driver.press("o")
        assert "faults" in driver.text("#status")
        await driver.press("f")
        for key, value in (
            ("workload", "gpt3-libra"),
            ("fabric.topology", "RI(4)_FC(8)_RI(4)"),
            ("parallelism.dp", "8"),
            ("objective", "performance"),
            ("constraints.0", "total == 500 GB/s"),
        ):
            driver.app.apply_edit(key, value)
        await driver.idle()
        assert driver.app.session.faults == ()
        assert "Step time" in driver.text("#headline")

    drive(path, walk)


@pytest.mark.parametrize("text", ["a: [1", "", "- 1\n- 2\n", "\x00\x01", None])
def test_what_is_no_plan_is_a_message(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "none.yaml"
    if text is not None:
        path.write_text(text)

    async def walk(driver: Driver) -> None:
        assert str(path) in driver.text("#faults-text").replace("\n", "")
        await driver.press("o", "plus", "enter", "p", "e", "u", "2", "3", "4", "5", "6", "1", "s")
        await driver.idle()

    drive(path, walk)


def test_infeasible_rules_are_a_panel(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("constraints.1", "total >= 600 GB/s")
        await driver.idle()
        await driver.press("o")
        await driver.idle()
        assert isinstance(driver.app.screen, Panel)
        assert "total >= 600 GB/s" in driver.text("#panel-text")
        await driver.press("escape")

    drive(plan_file, walk)


def test_a_cancelled_optimum_is_dropped(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        before = driver.app.session.edits
        driver.app.action_optimize()
        driver.app.action_cancel()
        await driver.idle()
        await driver.pilot.pause(0.5)
        assert driver.app.session.edits == before
        assert driver.app.session.optimum is None

    drive(plan_file, walk)


def test_unsaved_edits_are_guarded(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("objective", "cost")
        await driver.idle()
        await driver.press("q", "escape")
        assert driver.app.is_running
        await driver.press("ctrl+q", "s")
        await driver.until(lambda: driver.app.return_value == 0)
        assert "objective: cost" in plan_file.read_text()

    drive(plan_file, walk)


@pytest.mark.parametrize("answer", ["m", "w", "escape"])
def test_saving_asks_where_the_file_changed_on_disk(plan_file: Path, answer: str) -> None:
    on_screen = plan_file.read_text()

    async def walk(driver: Driver) -> None:
        text = on_screen.replace("- dim1 >= dim2", "- dim1 >= dim3") + "global_batch: 9216\n"
        driver.app.apply_edit("global_batch", "6144")
        await driver.idle()
        plan_file.write_text(text)
        await driver.press("s")
        await driver.until(lambda: driver.app.screen.query("#answer-m"))
        assert "(constraints, global_batch)" in driver.screen_text().replace("\n", " ")
        await driver.press(answer)
        await driver.idle()
        saved, status = plan_file.read_text(), driver.text("#status")
        if answer == "escape":
            assert saved == text
            assert "nothing saved" in status
            return
        assert (plan_file.parent / "plan.yaml.bak").read_text() == text
        assert "global_batch: 6144" in saved
        kept = "(kept)" if answer == "m" else "(written over)"
        assert ("dim1 >= dim3" in saved) == (answer == "m")
        assert f"constraints {kept}" in status
        assert not driver.app.session.disk.changed
        driver.app.apply_edit("global_batch", "8192")
        await driver.idle()
        await driver.press("s")
        await driver.idle()
        assert f"saved {plan_file}; the file before" in driver.text("#status")

    drive(plan_file, walk)


def test_a_file_that_changed_is_told_at_the_next_key_and_read_by_one(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        before = driver.app.evaluation
        driver.app.apply_edit("objective", "cost")
        await driver.idle()
        plan_file.write_text(plan_file.read_text().replace("500 GB/s", "900 GB/s"))
        await driver.press("2")
        assert "changed on disk: R reads it" in driver.text("#status")
        driver.app.say("something else")
        assert "R: the file changed on disk" in driver.text("#status")
        driver.app.apply_edit("objective", "performance")
        await driver.idle()
        rules = driver.app.session.reading.document.value["constraints"]
        assert rules[0] == "total == 500 GB/s"
        assert driver.app.evaluation.step_time_s == before.step_time_s
        await driver.press("R", "p")  # What is pinned is what is read.
        await driver.idle()
        assert driver.app.session.reading.document.value["constraints"][0] == "total == 900 GB/s"
        assert driver.app.session.pins[0].text == plan_file.read_text()
        assert driver.app.session.edits.settings == ("objective=performance",)
        await driver.press("R")
        assert "there is nothing to read" in driver.text("#status")
        plan_file.write_text(plan_file.read_text() + "# a remark\n")
        await driver.press("R")
        await driver.idle()
        said = "read plan.yaml again (remarks or spacing only); your 1 edit stands on it"
        assert said in driver.text("#status")

    drive(plan_file, walk)


def test_the_search_is_of_the_plan_on_screen(tmp_path: Path) -> None:
    """Not of the file that somebody put in its place."""
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE)

    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("global_batch", "256")
        await driver.idle()
        path.write_text(WHOLE.replace("SW(16)", "SW(4)"))
        await driver.press("7", "g")
        await driver.idle()
        pane = driver.app.query_one(SearchPane)
        assert pane._found is not None
        assert {row["tp"] * row["dp"] * row["pp"] * row["cp"] for row in filled(pane)} == {128}
        said = driver.text("#search-state")
        assert "plan.yaml as on screen with your edits (global_batch), not as it is" in said

    drive(path, walk)


def filled(pane: SearchPane) -> list[dict[str, int]]:
    """Degrees that were found, those of 1 too."""
    found = pane._found.degrees if pane._found else []
    return [{"tp": 1, "dp": 1, "pp": 1, "cp": 1} | one for one in found]


def test_a_plan_is_saved_with_its_faults_which_are_told(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("objective", "speed")
        await driver.idle()
        await driver.press("s")
        await driver.idle()
        assert f"saved {plan_file}, with 1 fault (f); the file" in driver.text("#status")
        assert "objective: speed" in plan_file.read_text()
        driver.app.apply_edit("objective", "cost")
        await driver.idle()
        assert "fault" not in driver.text("#status")

    drive(plan_file, walk)


def test_examples_are_saved_elsewhere(tmp_path: Path) -> None:
    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("objective", "cost")
        await driver.idle()
        await driver.press("s")
        await driver.type(str(tmp_path / "mine.yaml"))
        await driver.press("enter")
        await driver.idle()
        assert driver.app.session.path == tmp_path / "mine.yaml"
        assert "objective: cost" in (tmp_path / "mine.yaml").read_text()

    before = example("01_gpt3_4d").read_text()
    drive(example("01_gpt3_4d"), walk)
    assert example("01_gpt3_4d").read_text() == before


def test_open_another_plan(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("O")
        await driver.type(str(example("03_group")))
        await driver.press("enter")
        await driver.idle()
        assert driver.app.session.path == example("03_group")
        assert "turing-nlg" in driver.text("#waits")

    drive(plan_file, walk)


def test_help_and_palette_list_every_action(plan_file: Path) -> None:
    from libra_planner.tui.actions import ACTIONS

    async def walk(driver: Driver) -> None:
        titles = {command.title for command in driver.app.get_system_commands(driver.app.screen)}
        assert {action.name for action in ACTIONS} <= titles
        await driver.press("question_mark")
        text = " ".join(driver.text("#panel-text").split())
        assert all(action.text in text for action in ACTIONS)
        await driver.press("escape", "t", "t")

    drive(plan_file, walk)


def test_mouse_changes_a_bandwidth_and_the_screen(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app, before = driver.app, driver.app.session.edits.bandwidth_GBps or ()
        bars = app.screen.query_one("#bandwidths")
        await driver.pilot.click(bars, offset=(bars.size.width, 3))  # The + of the second row.
        after = app.session.edits.bandwidth_GBps or ()
        assert [i for i in range(4) if after[i] != before[i]] == [1]
        await driver.pilot.click("#tabs", offset=(12, 0))
        assert app.pane.id == "compare"

    drive(plan_file, walk)


KEYS = [
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "f1",
    "f2",
    "f3",
    "f4",
    "f5",
    "f6",
    "o",
    "e",
    "b",
    "f",
    "a",
    "p",
    "u",
    "U",
    "ctrl+r",
    "x",
    "s",
    "S",
    "O",
    "question_mark",
    "t",
    "q",
    "ctrl+q",
    "ctrl+p",
    "enter",
    "escape",
    "tab",
    "shift+tab",
    "up",
    "down",
    "left",
    "right",
    "plus",
    "minus",
    "home",
    "end",
    "pageup",
    "pagedown",
    "space",
    "less_than_sign",
    "greater_than_sign",
    "B",
    "d",
    "l",
    "r",
    "y",
    "n",
    "N",
    "h",
    "g",
    "c",
    "v",
    "i",
    "w",
    "left_square_bracket",
    "delete",
    "backspace",
    "0",
    "9",
    "full_stop",
    "comma",
    "z",
]


SIDES = (1, 2, 3, 4, 5, 9, 24, 60, 80, 200)


async def random_step(driver: Driver, rng: random.Random) -> None:
    """A key, a text into the field that has the focus, a panel, or another size."""
    field, kind = driver.app.focused, rng.random()
    if kind < 0.15:
        await driver.pilot.resize_terminal(rng.choice(SIDES), min(rng.choice(SIDES), 60))
    elif kind < 0.4 and isinstance(field, Input):
        field.value = rng.choice([*ODD_PATHS, "[/a]", "9" * 5000, "1,2,3,4", "dim1 >= [/b]"])
        await driver.press(rng.choice(["enter", "enter", "tab", "escape"]))
    elif kind < 0.5:
        await driver.press(rng.choice(["O", "S", "ctrl+p", "question_mark", "escape", "pagedown"]))
    else:
        await driver.press(rng.choice(KEYS))


def random_walk(path: Path, seed: int) -> None:
    """A hundred steps, no questions asked; what fails on the way raises here."""
    rng = random.Random(seed)

    async def walk(driver: Driver) -> None:
        for _ in range(100):
            if not driver.app.is_running:
                break
            await random_step(driver, rng)

    drive(path, walk, (80, 24) if seed % 2 else (120, 40))


@pytest.mark.parametrize("seed", range(int(os.environ.get("RANDOM_WALKS", "2"))))
def test_random_keys_texts_and_sizes_break_nothing(seed: int, odd_plan: Path) -> None:
    random_walk(odd_plan, seed)


def test_every_screen_has_its_text_at_80_columns(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("6")
        await driver.idle()
        tabs = driver.text("#tabs")
        assert all(f"{i} " in tabs for i in range(1, 7))
        assert isinstance(driver.app.screen.query_one("#status"), Static)

    drive(plan_file, walk, (80, 24))


def test_a_fault_of_its_own_is_told_without_a_traceback(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("of the test")

    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("objective", "cost")
        driver.app.call_later(fail)
        await driver.pilot.pause(0.5)

    with pytest.raises(ZeroDivisionError):  # run_test hands it on.
        drive(plan_file, walk)
    shown = " ".join(capsys.readouterr().err.split())
    assert "stopped by a fault of its own" in shown
    assert "--set 'objective=cost'" in shown
    assert "Traceback" not in shown
    log = tmp_path / "state" / "libra-planner" / "crash.log"
    assert "ZeroDivisionError: of the test" in log.read_text()
