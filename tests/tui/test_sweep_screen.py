"""What a user of the Sweep screen may lose or be told wrongly, and opening and saving by it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import DataTable, Input, TextArea

from libra_planner.reading import bundled
from libra_planner.sweeps.results import Results
from libra_planner.tui.dialogs import Panel, Question
from libra_planner.tui.pictures.plot import PointPlot
from libra_planner.tui.screens import sweep
from libra_planner.tui.screens import sweeps as sweeping
from libra_planner.tui.tables import RowTable
from tests.tui.conftest import PLAN, Driver, command, drive

# Opening and saving


def test_saving_as_a_file_that_is_there_asks_first(plan_file: Path) -> None:
    other = plan_file.with_name("other.yaml")
    other.write_text("mine: 1\n")
    other.with_name("other.yaml.bak").write_text("mine: 0\n")

    async def save_as(driver: Driver, name: str) -> None:
        await driver.press("S")
        await driver.type(name)
        await driver.press("enter")
        await driver.idle()

    async def walk(driver: Driver) -> None:
        await save_as(driver, str(other))
        assert isinstance(driver.app.screen, Question)
        assert "other.yaml.bak" in driver.screen_text()
        await driver.press("escape")
        await driver.idle()
        assert other.read_text() == "mine: 1\n"
        assert other.with_name("other.yaml.bak").read_text() == "mine: 0\n"
        assert driver.app.session.path == plan_file
        assert "nothing saved" in driver.text("#status")
        await save_as(driver, str(plan_file))  # Its own file, and a new one: nothing to ask.
        assert not isinstance(driver.app.screen, Question)
        await save_as(driver, str(plan_file.with_name("new.yaml")))
        assert driver.app.session.path.name == "new.yaml"
        await save_as(driver, str(other))
        await driver.press("r")
        await driver.idle()
        assert other.read_text() == PLAN
        assert other.with_name("other.yaml.bak").read_text() == "mine: 1\n"
        assert driver.app.session.path == other

    drive(plan_file, walk)


def test_a_missing_plan_is_refused_and_the_open_one_stays(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("objective", "cost")
        driver.app.session.pins.clear()
        await driver.idle()
        await driver.press("p", "O", "d")
        await driver.type(str(plan_file.with_name("nope.yaml")))
        await driver.press("enter")
        await driver.idle()
        assert isinstance(driver.app.screen, Panel)
        assert "nope.yaml: got no such file" in " ".join(driver.text("#panel-text").split())
        await driver.press("escape")
        assert driver.app.session.path == plan_file
        assert driver.app.session.edits.settings == ("objective=cost",)
        await driver.press("s")
        await driver.idle()
        assert "objective: cost" in plan_file.read_text()

    drive(plan_file, walk)


def test_a_pin_is_loaded_only_once_the_question_is_answered(plan_file: Path) -> None:
    other = plan_file.with_name("other.yaml")
    other.write_text(PLAN)

    async def walk(driver: Driver) -> None:
        app = driver.app
        pin = app.action_pin()
        assert pin is not None
        app.open_plan(other)
        await driver.idle()
        app.apply_edit("objective", "cost")
        await driver.idle()
        app.load_pin(pin)
        await driver.press("escape")
        await driver.idle()
        assert "loaded" not in driver.text("#status")
        plan_file.unlink()
        app.load_pin(pin)
        await driver.press("d")
        assert isinstance(app.screen, Panel)
        assert app.session.path == other

    drive(plan_file, walk)


# The sweep's file

SWEEP = """\
# Mine.
base: plan.yaml
axes:
  budget: {from: 100, to: 1000, step: 100}
set:
  constraints: ["total == {budget} GB/s"]
objective: [performance]
"""


@pytest.fixture
def swept(plan_file: Path) -> Path:
    """The file of a sweep of the plan, which the command has run."""
    file = plan_file.with_name("plan-sweep.yaml")
    file.write_text(SWEEP)
    assert command("sweep", "run", file, "-o", file.with_suffix("")).code == 0
    return file


def said(driver: Driver) -> str:
    return " ".join(driver.text("#sweep-state").split())


def test_the_sweep_of_a_plan_is_there_again(plan_file: Path, swept: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("5")
        await driver.idle()
        assert driver.app.screen.query_one(TextArea).text == SWEEP
        assert "This is plan-sweep.yaml, whose results are there: g goes on" in said(driver)
        assert driver.app.screen.query_one(DataTable).row_count == 10
        await driver.press("g")
        await driver.idle()
        assert said(driver) == "done: 10 of 10 designs"
        assert swept.read_text() == SWEEP
        assert not list(plan_file.parent.glob("*.bak"))
        await driver.press("O")  # Another plan has another sweep.
        await driver.type(str(other))
        await driver.press("enter")
        await driver.idle()
        assert f"base: {other}" in driver.app.screen.query_one(TextArea).text
        folder = driver.app.screen.query_one("#sweep-folder", Input).value
        assert folder == str(other.with_name("other-sweep"))
        assert driver.app.screen.query_one(DataTable).row_count == 0

    other = plan_file.with_name("other.yaml")
    other.write_text(PLAN)
    drive(plan_file, walk)


@pytest.mark.parametrize("size", [(200, 60), (80, 24)], ids=str)
def test_the_rows_are_a_scatter_whose_points_select_them(
    plan_file: Path, swept: Path, size: tuple[int, int]
) -> None:
    """Of the figures that ``sweep show`` prints; beside the table, or where the text was."""
    flags = ("--sql", "SELECT row, cost_usd, seconds_per_sequence, budget FROM designs", "--json")
    shown = command("sweep", "show", swept.with_suffix(""), *flags).payload
    rows = {row["row"]: row for row in shown.get("rows", shown)}

    async def walk(driver: Driver) -> None:
        await driver.press("5")
        await driver.idle()
        plot, table = driver.app.screen.query_one(PointPlot), driver.app.screen.query_one(RowTable)
        if size[0] < 150:
            assert not plot.size
            await driver.press("m")
        await driver.pilot.pause(0.4)
        assert "time/seq. over network cost" in driver.text("#sweep-title")
        page = driver.app.pane._page
        for i, row in enumerate(page.answer.dicts()):
            wanted = rows[row["row"]]
            assert plot._xy[i].tolist() == [wanted["cost_usd"], wanted["seconds_per_sequence"]]
        last = len(plot._xy) - 1
        assert table.chosen == 0
        plot.post_message(PointPlot.Chosen(last))
        await driver.pilot.pause(0.4)
        assert table.chosen == last
        if size[0] >= 150:
            row = page.answer.dicts()[last]["row"]
            assert re.match(rf"row +{row} ", driver.text("#sweep-row"))
        for _ in range(9):
            if "over budget" in driver.text("#sweep-title"):
                break
            await driver.press("X")
        assert plot._xy[last][0] == rows[page.answer.dicts()[last]["row"]]["budget"]
        if size[0] < 150:
            await driver.press("i")
            assert driver.app.screen.query_one(TextArea).has_focus

    drive(plan_file, walk, size)


def test_what_is_refused_changes_no_file(plan_file: Path, swept: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("5")
        await driver.idle()
        area = driver.app.screen.query_one(TextArea)
        folder = driver.app.screen.query_one("#sweep-folder", Input)
        for old, new, words in (
            ("step: 100", "step: 50", "(different axes)"),
            ("total ==", "total <=", "(different set)"),
            ("objective:", "objektive:", "objektive"),
        ):
            area.text = SWEEP.replace(old, new)
            await driver.press("g")
            await driver.idle()
            assert words in said(driver)
            assert "give -o" not in said(driver)
            if "different" in words:
                assert "give another name in 'results in' (Tab gets there)" in said(driver)
        area.text = SWEEP
        folder.value = str(plan_file.with_suffix(""))  # Whose file is the plan.
        await driver.press("g")
        await driver.idle()
        assert "give another name in 'results in'" in said(driver)
        area.text = SWEEP.replace("step: 100", "step: 500")
        await driver.press("c")
        await driver.idle()
        assert "2 designs" in said(driver)
        assert {path.name: path.read_text() for path in plan_file.parent.glob("*.*")} == {
            "plan.yaml": PLAN,
            "plan-sweep.yaml": SWEEP,
        }

    drive(plan_file, walk)


def test_another_base_is_said_to_differ(plan_file: Path, swept: Path) -> None:
    plan_file.write_text(PLAN.replace("dp: 256", "dp: 128").replace("SW(32)", "SW(16)"))

    async def walk(driver: Driver) -> None:
        await driver.press("5", "g")
        await driver.idle()
        assert "(different base plan or set)" in said(driver)

    drive(plan_file, walk)


# Rows


def test_a_row_is_opened_once_the_question_is_answered(plan_file: Path, swept: Path) -> None:
    row = plan_file.with_name("plan-sweep-row0.yaml")

    async def walk(driver: Driver) -> None:
        driver.app.apply_edit("objective", "cost")
        await driver.idle()
        await driver.press("5")
        await driver.idle()
        await driver.press("v", "v")
        await driver.idle()
        await driver.press("enter")
        await driver.idle()
        assert isinstance(driver.app.screen, Question)
        await driver.press("escape")
        await driver.idle()
        assert "opened" not in driver.text("#status")
        assert not row.exists()
        await driver.press("enter")
        await driver.idle()
        await driver.press("d")
        await driver.idle()
        assert driver.app.session.path == row
        assert "opened row 0" in driver.text("#status")
        assert driver.app.screen.query_one(TextArea).text == SWEEP  # Other rows can follow.
        assert driver.app.screen.query_one(DataTable).row_count == 10

    drive(plan_file, walk)


def test_a_page_that_takes_long_is_announced(
    plan_file: Path, swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    real = sweep.run_apart

    def slow(work: Callable[..., Any], ticket: Any) -> Any:
        go_on.wait(60)
        return real(work, ticket)

    monkeypatch.setattr(sweep, "run_apart", slow)

    async def walk(driver: Driver) -> None:
        await driver.press("5")
        await driver.until(lambda: driver.text("#sweep-page") == "reading best, page 1 ...")
        go_on.set()
        await driver.idle()
        assert driver.text("#sweep-page").startswith("best: 10 designs")

    drive(plan_file, walk)


# What is said of a run


def test_rows_of_another_sweep_go_when_a_run_begins(
    plan_file: Path, swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    real = sweeping.run

    def slow(*arguments: Any) -> Any:
        go_on.wait(60)
        return real(*arguments)

    monkeypatch.setattr(sweeping, "run", slow)

    async def walk(driver: Driver) -> None:
        await driver.press("5")
        await driver.idle()
        table = driver.app.screen.query_one(DataTable)
        assert table.row_count == 10
        folder = driver.app.screen.query_one("#sweep-folder", Input)
        folder.value = str(plan_file.with_name("second"))
        await driver.press("g")
        await driver.until(lambda: "rows of second come at the end" in driver.text("#sweep-page"))
        assert table.row_count == 0
        go_on.set()
        await driver.idle()
        assert table.row_count == 10

    drive(plan_file, walk)


def test_a_stopped_sweep_says_what_is_there_and_goes_on(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("5")
        await driver.pilot.pause()
        area = driver.app.screen.query_one(TextArea)
        area.text = SWEEP.replace("step: 100", "step: 0.05") + "designs_per_part: 500\n"
        folder = plan_file.with_name("plan-sweep")
        await driver.press("g")
        await driver.until(lambda: len(list(folder.glob("part-*.parquet"))) > 1)
        await driver.press("x")
        await driver.until(lambda: said(driver).startswith("stopped"))
        await driver.until(lambda: not [t for t in threading.enumerate() if t.name == "sweep"])
        await driver.pilot.pause()
        n = 500 * len(list(folder.glob("part-*.parquet")))
        assert said(driver) == f"stopped: {n:,} of 18,001 designs are there, g goes on"
        await driver.press("g")
        await driver.idle()
        assert re.match(r"done: 18,001 of 18,001 designs.*", said(driver))
        assert f"({18_001 - n:,} solved now: " in said(driver)

    drive(plan_file, walk)


def test_axes_have_their_units(tmp_path: Path) -> None:
    """In the sweep to begin with, in the table, over the scatter, and in the best design's words."""
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.replace("  - dim1 >= dim2\n", ""))
    text = sweeping.template(path)
    assert "  budget: {from: 100, to: 1000, step: 25}  # GB/s\n" in text
    file, folder = tmp_path / "sweep.yaml", tmp_path / "sweep"
    file.write_text(text.replace("step: 25", "step: 450"))
    assert command("sweep", "run", file, "-o", folder).code == 0
    found = sweeping.page(folder, "all", 0, lambda *_: None)
    headings = {one.name: one.label for one in found.columns}
    assert headings["budget"] == "budget, GB/s"
    assert [one.label for one in found.planes if one.name == "budget"] == ["budget, GB/s"]
    (best,) = sweeping.best_so_far(folder, lambda *_: None)
    assert re.search(r"budget 1,?000 GB/s", best)


def test_rows_stand_in_the_order_of_the_command(tmp_path: Path) -> None:
    """All buy ports of 400 Gbit/s: by the bill and its time a slower NIC is the cheaper tie."""
    text = "base: 08_rails\naxes: {nic: [25, 50]}\n"
    text += 'set: {constraints: ["leaf <= {nic} GB/s", "taper(spine) == 2"], '
    text += "fabric.realization.port_speed: 400 Gbps}\n"
    file, folder = tmp_path / "sweep.yaml", tmp_path / "sweep"
    file.write_text(f"{text}columns: [step_time_s, cost_usd, bandwidth, bill_usd]\n")
    assert command("sweep", "run", file, "-o", folder).code == 0
    usual, ideal = (Results.at(folder, by).top(9) for by in (None, "ideal"))
    assert usual != ideal
    found = sweeping.page(folder, "best", 0, lambda *_: None)
    assert found.answer == usual
    assert (found.time, found.cost) == ("billed_seconds_per_sequence", "bill_usd")
    (best,) = sweeping.best_so_far(folder, lambda *_: None)
    assert f"(row {usual.dicts()[0]['row']})" in best


def test_a_sweep_of_nics_has_their_bills_and_what_to_know_of_them(tmp_path: Path) -> None:
    """By linear prices twice the speed is twice the price: whole parts say otherwise."""
    path = tmp_path / "plan.yaml"
    text = bundled.example("08_rails").read_text()
    path.write_text(text)
    file, folder = tmp_path / "sweep.yaml", tmp_path / "sweep"
    file.write_text(re.sub(r"taper: .*", "taper: [2]", sweeping.template(path)))
    assert command("sweep", "run", file, "-o", folder).code == 0
    found = sweeping.page(folder, "all", 0, lambda *_: None)
    assert found.cost == "bill_usd"
    rows = found.answer.dicts()
    settings = ("--set", "constraints=[leaf <= 50 GB/s, taper(spine) == 2]")
    (row,) = [row for row in rows if row["speed"] == 50]
    asked = json.loads(command("optimize", path, *settings, "--json").out)
    assert row["bill_fabric_usd"] == pytest.approx(asked["bill_fabric_usd"], abs=0.01)
    said = sweeping.remarks(folder, lambda *_: None)
    assert said.startswith(f"sweep show {folder} --remarks tells all. Times hold for ")
    assert "into a new directory. Remarks: in all rows: " in said
    assert sweeping.remarks(tmp_path, lambda *_: None) == ""


@pytest.mark.parametrize("key", ["c", "g"])
def test_a_key_before_the_plan_is_read_waits_for_the_sweep_to_begin_with(
    key: str, plan_file: Path
) -> None:
    """It used to count the empty text, and its fault stood beside the sweep that came."""

    async def walk(driver: Driver) -> None:
        app = driver.app
        await driver.press("5")
        app.open_plan(plan_file.with_name("other.yaml"))
        await driver.idle()
        app.pane._plan = None  # As on a screen that has just been made.
        app.query_one(TextArea).text = ""
        app.open_plan(plan_file)
        assert app.session.is_being_read
        pane = app.query_one(sweep.SweepPane)
        (pane.action_count if key == "c" else pane.action_run)()
        assert "being read: then this goes on" in driver.text("#sweep-state")
        await driver.press("1")  # Also where another screen is seen by then.
        await driver.idle()
        said = driver.text("#sweep-state")
        assert "empty file" not in said
        assert ("37 designs" in said) if key == "c" else ("done: 37 of 37" in said)

    (plan_file.with_name("other.yaml")).write_text(plan_file.read_text().replace("gpt3", "none"))
    drive(plan_file, walk)


def test_there_is_no_sweep_of_a_plan_with_faults(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("5", "c")
        assert "no sweep yet (the plan has faults): i types one" in driver.text("#sweep-state")

    plan_file.write_text(plan_file.read_text().replace("gpt3-libra", "none"))
    drive(plan_file, walk)
