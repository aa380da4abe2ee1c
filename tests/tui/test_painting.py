"""What keeps keys quick: colours behind panels look as Textual's do, nothing loaded is garbage."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.color import Color
from textual.containers import VerticalScroll
from textual.renderables.background_screen import BackgroundScreen

from libra_planner.tui import app as application
from libra_planner.tui import forks, work
from libra_planner.tui.app import Cockpit
from libra_planner.tui.dialogs import Darker
from libra_planner.tui.widgets import Card, TabBar
from libra_planner.units import format_time, format_usd
from tests.tui.conftest import PATIENCE_S, Driver, drive


def test_what_was_loaded_is_not_looked_through_for_garbage(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.until(lambda: not driver.app.workshop.running())
        assert gc.isenabled()
        assert gc.get_freeze_count() > 100_000

    drive(plan_file, walk)


def test_a_card_is_drawn_for_the_width_that_a_scroll_bar_leaves() -> None:
    """A bar once was a cell too long where the scroll bar came after it."""

    class Scrolled(App[None]):
        def compose(self) -> ComposeResult:
            with VerticalScroll():
                yield Card(id="picture")
                yield Card(id="below")

    async def walk() -> None:
        app = Scrolled()
        async with app.run_test(size=(40, 10)) as pilot:
            picture, below = app.query_one("#picture", Card), app.query_one("#below", Card)
            picture.show(lambda n_cells: Text("=" * n_cells))
            before = str(picture.render())
            assert len(before) == picture.content_size.width
            below.show(Text("\n" * 30 + "end"))
            async with asyncio.timeout(PATIENCE_S):
                while len(before) == len(str(picture.render())):
                    await pilot.pause(0.02)
            assert picture.content_size.width == len(str(picture.render()))

    asyncio.run(walk())


def test_the_tab_answers_before_its_screen_is_made(
    plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And keys typed ahead go to the screen they were meant for."""
    monkeypatch.setattr(application, "FRAME_S", 0.5)

    async def walk(driver: Driver) -> None:
        app = driver.app
        for key in ("f3", "f2", "p"):
            app._driver.send_message(events.Key(key, key if len(key) == 1 else None))
        await driver.until(lambda: "[3 Frontier]" in app.query_one(TabBar).render().plain)
        assert app.pane.id == "design"
        await driver.until(lambda: len(app.session.pins) == 1)
        assert app.pane.id == "compare"

    drive(plan_file, walk)


@pytest.mark.parametrize("key", ["question_mark", "S", "ctrl+p"])
def test_the_screen_behind_a_panel_has_its_size_and_its_text(
    key: str, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown_as_before = Cockpit._display

    def display(app: Cockpit, screen: Any, renderable: Any) -> None:
        """What a terminal would get; without one Textual leaves that out."""
        if hasattr(renderable, "render_segments"):
            renderable.render_segments(app.console)
        shown_as_before(app, screen, renderable)

    monkeypatch.setattr(Cockpit, "_display", display)

    async def walk(driver: Driver) -> None:
        await driver.press(key)
        await driver.idle()
        for size in ((80, 25), (140, 50), (60, 20), (200, 60), (81, 24)):
            await driver.pilot.resize_terminal(*size)
            await driver.pilot.pause(0.1)
            behind = driver.app.screen_stack[0]._compositor.render_strips()
            shown = driver.app.screen._compositor.render_strips()
            assert [strip.cell_length for strip in shown] == [size[0]] * size[1]
            assert shown[0].text == behind[0].text
            if size[1] > 20:  # Else the palette is as high as the screen.
                assert shown[-1].text == behind[-1].text

    drive(plan_file, walk, (80, 24))


def test_what_changes_behind_a_panel_is_seen(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("question_mark")
        await driver.idle()
        driver.app.say("news")
        await driver.pilot.pause(0.1)
        assert "news" in driver.screen_text()
        text = driver.screen_text()
        await driver.press("escape")
        await driver.idle()
        assert text.splitlines()[0] == driver.screen_text().splitlines()[0]

    drive(plan_file, walk)


def test_behind_a_panel_are_textuals_colours(plan_file: Path) -> None:
    """The same picture as Textual mixes it piece by piece."""

    async def walk(driver: Driver) -> None:
        await driver.press("o")
        await driver.idle()
        behind, color = driver.app.screen, Color(10, 20, 30, 0.6)
        strips = behind._compositor.render_strips()
        ours = [[*Darker.process_segments([*strip], color)] for strip in strips]
        theirs = [[*BackgroundScreen.process_segments([*strip], color)] for strip in strips]
        assert ours == theirs

    drive(plan_file, walk)


def test_figures_follow_what_other_screens_do(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app

        async def shown() -> str:
            await driver.idle()
            await driver.press("1")
            await driver.idle()
            return " ".join(driver.text("#headline").split())

        for keys in (["3", "idle", "up", "up", "enter"], ["2", "e"], ["2", "o"], ["2", "u"]):
            for key in keys:
                await (driver.idle() if key == "idle" else driver.press(key))
            text = await shown()
            assert app.evaluation is not None
            assert format_time(app.evaluation.step_time_s) in text
            assert format_usd(app.evaluation.network_cost_usd) in text

    drive(plan_file, walk, (80, 24))


def test_modules_that_are_loaded_by_name_exist() -> None:
    names = (*work.FIGURES, *work.OTHERS, *forks.MODULES)
    assert not [name for name in names if importlib.util.find_spec(name) is None]
