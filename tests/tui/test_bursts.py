"""Keys that come faster than the screen is painted, and statements that hold for one design."""

from __future__ import annotations

import threading
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key
from textual.widgets import Input

from libra_planner.reading.bundled import example
from libra_planner.tui import work
from libra_planner.tui.screens.design import changed_bandwidth
from libra_planner.tui.tables import RowTable
from tests.tui.conftest import Driver, drive


async def burst(driver: Driver, *keys: str) -> None:
    """Keys as a terminal sends them that was waited for: all at once."""
    for key in keys:
        driver.app.post_message(Key(key, key if len(key) == 1 else None))
    await driver.idle()


def test_every_key_of_a_burst_counts(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        session = driver.app.session
        before = session.edits.bandwidth_GBps
        assert before is not None
        await burst(driver, *["plus"] * 9, "j", *["minus"] * 3, "greater_than_sign", "plus")
        steps = [(0, 1)] * 9 + [(1, -1)] * 3 + [(1, 10)]
        expected = reduce(lambda values, step: changed_bandwidth(values, *step), steps, before)
        assert session.edits.bandwidth_GBps == expected
        assert expected[:2] == (170.0, 160.0)
        await burst(driver, "u", "u", "U")
        assert session.edits.bandwidth_GBps == (170.0, *before[1:])
        await burst(driver, "plus", "u", "u")
        assert session.edits.bandwidth_GBps == before

    drive(plan_file, walk)


def test_bars_show_a_design_without_figures(plan_file: Path) -> None:
    """A dimension with traffic and no bandwidth: keys count from zero, and zero is seen."""

    async def walk(driver: Driver) -> None:
        await burst(driver, "greater_than_sign", *["minus"] * 9)
        assert driver.app.evaluation is None
        assert "chiplet" in driver.text("#bandwidths")
        assert " 0.00" in driver.text("#bandwidths").splitlines()[1]
        await burst(driver, "plus")
        assert driver.app.session.edits.bandwidth_GBps == (20.0, 125.0, 125.0, 125.0)

    drive(plan_file, walk)


def test_what_is_chosen_in_a_burst_is_written(
    plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def write(pins: Any, _folder: Path, formats: Any, **_options: Any) -> Any:
        asked.append(([pin.number for pin in pins], list(formats)))
        raise ValueError("of the test")

    monkeypatch.setattr("libra_planner.tui.screens.report.write_report", write)

    async def walk(driver: Driver) -> None:
        await driver.press("p", "plus", "p", "6")
        await driver.idle()
        await burst(driver, "space", "w")
        assert [pins for pins, _ in asked] == [[2]]

    drive(plan_file, walk)


def test_a_proof_stands_for_its_plan_and_design_only(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app

        def claims() -> list[str]:
            worth, status = str(app.design.query_one("#proof").render()), driver.text("#status")
            return [text for text in (worth, status) if "roven" in text]

        await driver.press("o")
        await driver.idle()
        assert len(claims()) == 2
        await driver.press("plus")
        assert not claims()
        await driver.press("u")
        assert claims()
        app.apply_edit("objective", "cost")
        assert not claims()  # Before anything was read.
        await driver.idle()
        assert not claims()
        await driver.press("u")
        await driver.idle()
        assert claims()  # The plan and the design that were proven.
        app.session.add_rule("dim1 <= 1 GB/s")
        app.reread()
        await driver.idle()
        assert "BROKEN" in driver.screen_text()
        assert not claims()
        await driver.press("u")
        await driver.idle()
        assert claims()
        await driver.press("2", "p")
        app.apply_edit("objective", "none such")
        await driver.idle()
        assert app.session.faults
        assert not claims()
        await driver.press("1", "p")
        assert [pin.name for pin in app.session.pins] == ["1 optimum of performance"]

    drive(plan_file, walk)


def test_an_equal_split_is_that_of_the_plan_as_it_stands(plan_file: Path) -> None:
    """Not of the total before the edit that is being read."""

    async def walk(driver: Driver) -> None:
        app = driver.app
        app.apply_edit("constraints.0", "total == 800 GB/s")
        app.action_equal()
        assert app.session.edits.bandwidth_GBps == (125.0,) * 4
        await driver.idle()
        assert app.session.edits.bandwidth_GBps == (200.0,) * 4

    drive(plan_file, walk)


def test_progress_is_said_of_the_work_that_it_is_of(plan_file: Path) -> None:
    """A search that goes on does not lend its count to what was begun after it."""

    async def walk(driver: Driver) -> None:
        app, over = driver.app, threading.Event()
        for kind in ("searching", "counting"):
            app.workshop.start(kind, kind, call=lambda _: over.wait())
        searching, counting = app.workshop.running()[-2:]
        app.on_progress(work.Progress(searching, 42, 50536))
        await driver.until(lambda: "counting (x cancels) ..." in driver.text("#status"))
        app.on_progress(work.Progress(counting, 1, 2))
        await driver.until(lambda: "counting (x cancels) ... 1 of 2" in driver.text("#status"))
        over.set()
        await driver.idle()

    drive(plan_file, walk)


def test_a_search_that_is_stopped_keeps_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(example("0d_llama3_70b").read_text())

    async def walk(driver: Driver) -> None:
        await driver.press("7", "g")
        await driver.until(lambda: "Still searching" in driver.text("#search-state"))
        await driver.press("x")
        await driver.until(lambda: "Stopped: what was known" in driver.text("#search-state"))
        pane = driver.app.pane
        assert pane.query_one(RowTable).row_count > 0
        assert "55,588 strategies" in driver.text("#search-notes")

    drive(path, walk)


def test_keys_that_edit_a_field_count_in_their_order(plan_file: Path) -> None:
    """Text after Ctrl+A and Ctrl+K is not what they remove."""

    async def walk(driver: Driver) -> None:
        session, emptied = driver.app.session, ("ctrl+a", "ctrl+k")
        await burst(driver, "enter", *emptied, *"77", "enter")  # The panel opens meanwhile.
        assert session.edits.bandwidth_GBps == (77.0, 125.0, 125.0, 125.0)
        await burst(driver, "enter", *emptied, *"78", "enter", "j", "plus")
        assert session.edits.bandwidth_GBps == (78.0, 127.0, 125.0, 125.0)
        await driver.press("u", "u", "u")
        driver.focus_key("global_batch")
        await driver.pilot.pause()
        await burst(driver, *"512", *emptied, *"256", "enter")
        assert session.edits.settings == ("global_batch=256",)

    drive(plan_file, walk)


def test_letters_on_a_list_look_for_a_name_there(plan_file: Path) -> None:
    """As in every field: none is a command; digits are, and letters again behind Escape."""

    async def walk(driver: Driver) -> None:
        session, theme = driver.app.session, driver.app.theme
        driver.focus_key("objective")
        await driver.pilot.pause()
        await burst(driver, *"cost", "enter")
        await driver.idle()
        assert session.edits.settings == ("objective=cost",)
        await burst(driver, *"t", "escape", "escape", *"u")
        await driver.idle()
        assert session.edits.settings == ()
        assert driver.app.theme == theme

    drive(plan_file, walk)


def test_text_behind_the_key_that_opens_its_field_is_not_lost(plan_file: Path) -> None:
    """A filter and a rule, with letters that are commands elsewhere."""

    async def walk(driver: Driver) -> None:
        await driver.press("3")
        await driver.idle()
        table = driver.app.screen.query_one("#frontier-list RowTable", RowTable)
        table.focus()
        await burst(driver, "slash", *"qopx1", "enter")
        assert table._words == "qopx1"
        await burst(driver, "3", "a", *"qop1x")  # From a screen that has no field for a rule.
        field = driver.app.focused
        assert isinstance(field, Input)
        assert field.value == "qop1x"
        assert driver.app.session.pins == []

    drive(plan_file, walk)


def test_a_filter_chooses_rows_while_it_is_typed(plan_file: Path) -> None:
    """A wrong one leaves them, and Escape brings back those before."""

    async def walk(driver: Driver) -> None:
        await driver.press("3")
        await driver.idle()
        table = driver.app.screen.query_one("#frontier-list RowTable", RowTable)
        table.focus()
        n_rows, cheap = table.row_count, table._texts[2][table._headers.index("cost")].strip()
        await burst(driver, "slash", *f"cost <= {cheap}")
        await driver.pilot.pause(0.3)
        n_cheap = table.row_count
        assert 0 < n_cheap < n_rows
        await burst(driver, *" and x")
        await driver.pilot.pause(0.3)
        assert "got the name 'x'" in str(driver.app.screen.query_one("#prompt-wrong").render())
        assert table.row_count == n_cheap
        await driver.press("escape")
        assert table.row_count == n_rows

    drive(plan_file, walk)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_letters_behind_a_rule_that_was_added_are_commands(
    size: tuple[int, int], plan_file: Path
) -> None:
    """The u that is to take the rule back is not typed into the field of the next one."""

    async def walk(driver: Driver) -> None:
        app, before = driver.app, driver.app.session.edits.settings
        await burst(driver, "a", *"dim1 <= 9 GB/s", "enter")
        await driver.idle()
        assert "BROKEN: dim1 <= 9 GB/s" in driver.screen_text()
        assert "added the rule dim1 <= 9 GB/s; u takes it back" in driver.text("#status")
        await driver.press("u")
        await driver.idle()
        assert app.session.edits.settings == before
        assert "added the rule" not in driver.text("#status")
        await burst(driver, "a", *"dim1 <= 8 GB/s", "enter", "u")
        await driver.idle()
        assert app.session.edits.settings == before
        await driver.press("a")
        await driver.idle()
        assert isinstance(app.focused, Input)
        assert app.focused.value == ""
        assert "Leave" in driver.screen_text().splitlines()[-1]  # Escape, while it is typed.
        await burst(driver, *"dim1 <= 7 GB/s", "enter")
        await driver.idle()
        assert "added the rule" in driver.text("#status")
        await driver.press("2", "1")
        await driver.idle()
        assert "added the rule" not in driver.text("#status")
        app.show_error("optimising", RuntimeError("no"))
        await driver.press("escape")
        assert "optimising: failed" in driver.text("#status")
        await driver.press("3")
        await driver.idle()
        assert "failed" not in driver.text("#status")

    drive(plan_file, walk, size)
