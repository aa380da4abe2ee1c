"""Keys: the help and the palette have all of them, and keys that scroll reach the end."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.command import CommandInput, CommandList
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Input

from libra_planner.reading.bundled import example
from libra_planner.tui import screens, widgets
from libra_planner.tui.actions import SCREENS, own_keys, pane_class
from libra_planner.tui.dialogs import Panel
from tests.tui.conftest import Driver, drive

SMALL = (80, 24)


@pytest.mark.parametrize("size", [SMALL, (60, 12), (200, 60)], ids=str)
def test_the_help_can_be_read_to_its_end(size: tuple[int, int], plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        for keys in (["end"], ["pagedown"] * 20):
            await driver.press("question_mark")
            assert "Shift+Tab the one before" not in driver.screen_text() or size[1] > 40
            await driver.press(*keys)
            await driver.pilot.pause()
            assert "In a table: open or load the row." in driver.screen_text()
            assert "╰" in driver.screen_text()
            await driver.press("escape")

    drive(plan_file, walk, size)


def test_panels_are_as_small_as_their_text(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        for n_lines, height in ((1, 3), (5, 7), (19, 21), (400, 21)):
            text = "\n".join(f"line {i}" for i in range(n_lines))
            driver.app.push_screen(Panel("Long", text, wide=True))
            await driver.pilot.pause()
            box = driver.app.screen.query_one(VerticalScroll)
            assert box.outer_size.height == height
            assert box.region.bottom <= SMALL[1]
            await driver.press("end")
            await driver.pilot.pause()
            assert f"line {n_lines - 1} " in driver.screen_text()
            await driver.press("escape")

    drive(plan_file, walk, SMALL)


def test_the_help_uses_the_width_there_is(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("question_mark")
        for width, cells in ((200, 95), (80, 71), (60, 52)):
            await driver.pilot.resize_terminal(width, 24)
            await driver.pilot.pause()
            longest = max(map(len, driver.text("#panel-text").splitlines()))
            assert cells - 10 < longest <= cells
            box = driver.app.screen.query_one(VerticalScroll)
            assert box.virtual_size.height == len(driver.text("#panel-text").splitlines())

    drive(plan_file, walk, SMALL)


def test_widgets_with_keys_belong_to_a_screen() -> None:
    keyed = {one for name in SCREENS for one in (pane_class(name), *pane_class(name).KEYED)}
    names = [
        f"{screens.__name__}.{file.stem}" for file in Path(screens.__path__[0]).glob("[!_]*.py")
    ]
    assert len(names) > len(SCREENS)
    for module in map(import_module, [widgets.__name__, *names]):
        for found in vars(module).values():
            of_here = isinstance(found, type) and found.__module__ == module.__name__
            if of_here and issubclass(found, Widget) and found.__dict__.get("BINDINGS"):
                assert found in keyed


def test_every_key_of_a_screen_says_what_it_does() -> None:
    for name in SCREENS:
        found = list(own_keys(name))
        assert found or name == "design"
        names = [(key.name, key.keys) for key in found]
        assert len(set(names)) == len(names)
        assert all(key.name and key.text.endswith(".") for key in found)
    assert [(key.keys, key.name) for key in own_keys("frontier")] == [
        ("l", "Log axes"),
        ("r", "Again"),
    ]
    assert {"[", "]", "g", "c", "v", "i"} <= {key.keys for key in own_keys("sweep")}
    assert {"+", "-", "Enter"} <= {key.keys for key in own_keys("design")}
    n_bindings = sum(isinstance(one, Binding) for one in pane_class("fabric").BINDINGS)
    assert len(list(own_keys("fabric"))) == n_bindings


def test_the_help_lists_the_keys_of_every_screen_and_the_seen_one_first(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("4", "question_mark")
        text = driver.text("#panel-text")
        assert text.startswith("On this screen, Fabric\n  y ")
        words = " ".join(text.split())
        for name in SCREENS:
            assert f"On {name.title()} only" in text or name == "fabric"
            for key in own_keys(name):
                assert f"{key.keys} {key.name}: {key.text}" in words
        await driver.press("escape")

    drive(plan_file, walk)


async def choose(driver: Driver, title: str) -> None:
    """Do what the palette offers under a title."""
    await driver.press("ctrl+p")
    await driver.pilot.pause()
    driver.app.screen.query_one(CommandInput).value = title
    hits = driver.app.screen.query_one(CommandList)
    await driver.until(
        lambda: hits.option_count and title in str(hits.get_option_at_index(0).prompt)
    )
    await driver.press("down", "enter")
    await driver.idle()


def test_the_palette_does_what_keys_of_screens_do(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        app = driver.app
        offered = {one.title: one for one in app.get_system_commands(app.screen)}
        for name in SCREENS:
            for key in own_keys(name):
                one = offered[f"{name.title()}: {key.name} ({key.keys})"]
                assert one.discover is (name == "design")
        before = app.session.edits.bandwidth_GBps
        assert before
        await choose(driver, "Design: More (+)")
        assert app.session.edits.bandwidth_GBps == (before[0] + 5, *before[1:])
        await choose(driver, "Frontier: Log axes (l)")  # Goes there first.
        await driver.idle()
        assert app.pane.id == "frontier"
        assert "linear axes" in driver.text("#frontier-title")
        await choose(driver, "Frontier: Log axes (l)")
        assert "log axes" in driver.text("#frontier-title")
        await choose(driver, "Report: Choose (Space)")
        assert app.pane.id == "report"

    drive(plan_file, walk)


def test_screens_are_loaded_only_when_keys_are_listed() -> None:
    program = "import sys, libra_planner.tui.app; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = [
        name for name in SCREENS if f"libra_planner.tui.screens.{name}" in found.stdout.split()
    ]
    assert loaded == ["design"]


def test_keys_scroll_the_heat_map_to_its_end(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("4")
        await driver.idle()
        last = driver.text("#fabric-heat").splitlines()[-1].strip()[:40]
        for keys in (["end"], ["pagedown"] * 9, ["down"] * 90):
            await driver.press("h")
            assert last not in driver.screen_text()
            await driver.press(*keys)
            await driver.pilot.pause()
            assert last in driver.screen_text()
            await driver.press("home")
            await driver.pilot.pause()
            assert "FIM" in driver.screen_text()
            await driver.press("h")

    drive(example("01_gpt3_4d"), walk, SMALL)


def test_keys_scroll_the_heat_map_beside_the_tables(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("4")
        await driver.idle()
        last = driver.text("#fabric-heat").splitlines()[-1].strip()[:40]
        await driver.press("h", "end")
        await driver.pilot.pause()
        assert last in driver.screen_text()

    drive(example("01_gpt3_4d"), walk, (160, 16))


def test_bandwidths_take_a_row_each_at_any_width(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        bars = driver.app.screen.query_one("#bandwidths")
        for size in ((80, 24), (200, 60), (100, 30), (80, 24)):
            await driver.pilot.resize_terminal(*size)
            await driver.pilot.pause()
            assert bars.size.height == 5

    drive(plan_file, walk, (200, 60))


def test_the_key_bar_says_how_to_leave_a_field(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        assert "Leave field" not in driver.text("#keys")
        driver.focus_key("constraints.0")
        await driver.pilot.pause()
        assert "esc Leave field" in driver.text("#keys")
        await driver.press("escape")
        assert "Leave field" not in driver.text("#keys")
        await driver.press("5", "i")
        assert "esc Leave field" in driver.text("#keys")
        await driver.press("tab")
        assert isinstance(driver.app.focused, Input)
        assert "esc Leave field" in driver.text("#keys")
        await driver.press("escape")
        assert "Leave field" not in driver.text("#keys")

    drive(plan_file, walk)
