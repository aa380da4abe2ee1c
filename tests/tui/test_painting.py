"""What keeps keys quick: colours changed at once look as Textual's do, nothing loaded is garbage."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet

from libra_planner.tui.painting import ThemedStylesheet
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
