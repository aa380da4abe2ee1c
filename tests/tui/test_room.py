"""What is said beside a table leaves it room, and a filter is for rows that come, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.widget import Widget
from textual.widgets import DataTable, Static

from libra_planner.reading import bundled
from libra_planner.tui.pictures.plot import PointPlot
from libra_planner.tui.screens.search import SearchPane, Strategies
from libra_planner.tui.tables import RowTable
from libra_planner.tui.widgets import Card, Notes
from libra_planner.units import format_usd
from tests.tui.conftest import WHOLE, Driver, drive

NOTES = "\n".join(f"Note {i} of a plan that has a great deal to say of itself" for i in range(40))
HEADINGS = ("#", "tp", "step")
ROWS = [[str(i), str(2 ** (i % 4)), f"{i + 1} s"] for i in range(1, 9)]
FOUND = Strategies(
    HEADINGS,
    ROWS,
    [[int(i), int(tp), float(step[:-2])] for i, tp, step in ROWS],
    [],
    [(1e6 * i, float(i)) for i in range(1, 9)],
    "cost",
    [{"tp": int(tp), "dp": 64} for _, tp, _ in ROWS],
    [(450.0, 50.0)] * 8,
    NOTES,
    is_proven=True,
)


def n_seen(driver: Driver, widget: Widget) -> int:
    """Lines of a widget that are on the screen."""
    return int(widget.region.intersection(driver.app.screen.region).height)


def say(driver: Driver, selector: str) -> None:
    """Put forty lines there."""
    place = driver.app.query_one(selector, Static)
    if isinstance(place, Card):
        place.show(NOTES)
    else:
        place.update(NOTES)


def rows_are_seen(driver: Driver, room: Widget) -> bool:
    """Whether the table of a part of the screen has its heading, a row, and half of the room."""
    table = room.query_one(DataTable)
    assert room.region.height
    return n_seen(driver, table) >= max(room.region.height / 2 - 1, 2)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE)
    return path


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_notes_of_a_search_leave_room_for_its_rows(size: tuple[int, int], whole: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("7")
        pane = driver.app.pane
        assert isinstance(pane, SearchPane)
        pane._of, pane._called = pane._searched, driver.app.session.called
        for show in (pane._show_part, pane._show):
            show(FOUND)
            await driver.pilot.pause(0.1)
            assert rows_are_seen(driver, pane.query_one("#search-list"))
            assert "1 s" in driver.screen_text() or "2 s" in driver.screen_text()
        beside = pane.query_one("#search-beside", Notes)
        assert "Tab, then ↓" in str(beside.border_title)
        await driver.press("tab")
        assert driver.app.focused is beside
        assert "Note 39" not in driver.screen_text()
        await driver.press("end")
        await driver.until(lambda: "Note 39" in driver.screen_text())
        assert rows_are_seen(driver, pane.query_one("#search-list"))

    drive(whole, walk, size)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_notes_leave_room_for_the_tables_of_other_screens(
    size: tuple[int, int], whole: Path
) -> None:
    """Forty lines in every place that says something."""

    async def walk(driver: Driver) -> None:
        app = driver.app
        app.session.edit("constraints.0", "leaf <= 50 GB/s")
        app.reread()
        await driver.idle()
        await driver.press("p", "2")
        say(driver, "#compare-hint")
        await driver.pilot.pause(0.1)
        assert rows_are_seen(driver, app.query_one("#compare-left"))
        await driver.press("3")
        await driver.idle()
        say(driver, "#frontier-note")
        await driver.pilot.pause(0.1)
        assert rows_are_seen(driver, app.query_one("#frontier-list"))
        assert n_seen(driver, app.query_one("#frontier-plot", PointPlot)) >= 5
        await driver.press("5")
        table: Any = app.query_one("#sweep-right").query_one(RowTable)
        table.show(HEADINGS, ROWS)
        for name in ("state", "best", "page"):
            say(driver, f"#sweep-{name}")
        await driver.pilot.pause(0.1)
        assert rows_are_seen(driver, app.query_one("#sweep-right"))
        await driver.press("4")
        await driver.idle()
        assert n_seen(driver, app.pane.query_one(RowTable)) >= 3

    drive(whole, walk, size)


def test_links_are_seen_under_many_figures(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(bundled.example("09_pod_16384").read_text())

    async def walk(driver: Driver) -> None:
        await driver.press("4")
        await driver.idle()
        pane = driver.app.pane
        assert driver.app.focused is pane.query_one(RowTable)
        assert n_seen(driver, pane.query_one(RowTable)) >= 5
        assert "spine_up" not in driver.screen_text()
        await driver.press("shift+tab", "end")  # To the figures.
        await driver.until(lambda: "spine_up" in driver.screen_text())
        assert n_seen(driver, pane.query_one(RowTable)) >= 5

    drive(path, walk, (80, 24))


def test_a_report_at_80_cells_shows_the_cost_that_ranks_its_designs(tmp_path: Path) -> None:
    """With prices: bill that is the system's, of which the network is a part."""
    path = tmp_path / "plan.yaml"
    path.write_text(bundled.example("0b_bill").read_text())

    async def walk(driver: Driver) -> None:
        await driver.press("p", "6")
        await driver.idle()
        evaluation = driver.app.session.pins[0].evaluation
        assert format_usd(evaluation.cost_usd) in driver.screen_text()
        assert "system cost" in driver.screen_text()

    drive(path, walk, (80, 24))


def test_an_error_has_the_room_of_a_table_without_rows(whole: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("5")
        driver.app.pane.say("\n".join(f"line {i}" for i in range(8)))
        await driver.pilot.pause(0.1)
        assert "line 7" in driver.screen_text()

    drive(whole, walk, (80, 24))


def test_a_filter_that_is_typed_before_rows_come_is_for_those_that_come(whole: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("7", "slash")
        assert "no rows yet" in driver.screen_text()
        await driver.press(*"tp 8")
        await driver.pilot.pause(0.3)
        assert driver.text("#prompt-wrong") == ""
        pane = driver.app.query_one(SearchPane)
        pane._of = pane._searched
        pane._show_part(FOUND)
        table = pane.query_one(RowTable)
        assert table.row_count == 2  # While it is typed.
        await driver.press("enter")
        pane._show(FOUND)
        assert table.row_count == 2
        assert "tp 8: 2 of 8" in driver.screen_text()

    drive(whole, walk)


def test_what_is_wrong_with_a_filter_is_said_once_rows_come(whole: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("7", "slash", *"t")
        await driver.pilot.pause(0.3)
        pane = driver.app.query_one(SearchPane)
        pane._show_part(FOUND)
        assert "write e.g. tp <= 2" in driver.text("#prompt-wrong")
        assert pane.query_one(RowTable).row_count == 8
        await driver.press("p")
        await driver.pilot.pause(0.3)
        assert "tp" in driver.text("#prompt-wrong")
        await driver.press("escape")
        assert pane.query_one(RowTable).row_count == 8

    drive(whole, walk)


def test_a_change_of_the_plan_ends_its_search_and_undo_takes_the_label_away(whole: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        await driver.press("7", "g")
        await driver.until(lambda: "searching strategies" in driver.text("#status"))
        pane = app.query_one(SearchPane)
        pane._show_part(replace(FOUND, is_proven=False))
        whole.write_text(WHOLE.replace("512", "256"))
        await driver.press("R")
        assert not pane.runs("search")
        assert "Of the plan before" in driver.text("#search-state")
        await driver.idle()
        assert "Of the plan before" in driver.text("#search-state")
        pane._of = pane._searched  # As another search leaves it.
        pane._show(FOUND)
        app.apply_edit("global_batch", "128")
        await driver.idle()
        assert "Of the plan before" in driver.text("#search-state")
        await driver.press("u")
        await driver.idle()
        assert "Enter takes a strategy" in driver.text("#search-state")

    drive(whole, walk)


@pytest.mark.parametrize("key", ["5", "7"])
def test_a_filter_hides_no_rows_that_it_chooses_from(key: str, whole: Path) -> None:
    """Its panel stands over the table where that is at the bottom, else under it."""

    async def walk(driver: Driver) -> None:
        await driver.press(key)
        table = driver.app.pane.query_one(RowTable)
        table.show(HEADINGS, ROWS)
        await driver.press("slash")
        await driver.pilot.pause(0.1)
        panel = driver.app.screen.query_one(".dialog").region
        rows = table.region
        assert rows.height >= 5
        first = rows.shrink((1, 0, rows.height - 5, 0))  # Below the heading.
        assert not panel.overlaps(first)

    drive(whole, walk, (80, 24))
