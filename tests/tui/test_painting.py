"""What keeps keys quick: colours changed at once look as Textual's do, nothing loaded is garbage."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.css.stylesheet import Stylesheet

from libra_planner.tui import core
from libra_planner.tui.painting import ThemedStylesheet
from libra_planner.tui.widgets.tab_bar import TabBar
from tests.tui.conftest import Driver, drive


def pictures(path: Path) -> list[str]:
    """The first screen, light and dark."""
    found: list[str] = []

    async def walk(driver: Driver) -> None:
        for key in ("t", "t"):
            await driver.press(key)
            await driver.idle()
            driver.app.say("")
            await driver.pilot.pause(0.3)
            found.append(re.sub(r"terminal-\d+", "", driver.app.export_screenshot()))

    drive(path, walk)
    return found


def test_themes_look_as_with_textuals_own_stylesheet(
    plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = pictures(plan_file)
    own: Any = Stylesheet.replace_rules
    monkeypatch.setattr(ThemedStylesheet, "replace_rules", own)
    assert pictures(plan_file) == quick
    assert len(set(quick)) == len(quick)


def test_what_was_loaded_is_not_looked_through_for_garbage(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.until(lambda: not driver.app.workshop.running())
        assert gc.isenabled()
        assert gc.get_freeze_count() > 100_000

    drive(plan_file, walk)


def test_the_tab_answers_before_its_screen_is_made(
    plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And keys typed ahead go to the screen they were meant for."""
    monkeypatch.setattr(core, "FRAME_S", 0.5)

    async def walk(driver: Driver) -> None:
        app = driver.app
        for key in ("f3", "f2", "p"):
            app._driver.send_message(events.Key(key, key if len(key) == 1 else None))
        await driver.until(lambda: "[3 Frontier]" in app.query_one(TabBar).render().plain)
        assert app.pane.id == "design"
        await driver.until(lambda: len(app.session.pins) == 1)
        assert app.pane.id == "compare"

    drive(plan_file, walk)
