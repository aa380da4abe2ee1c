"""What is typed, opened or resized may be anything: the cockpit says what is wrong and stays."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from textual.widgets import Input

from libra_planner.tui.dialogs import Panel, Prompt, Question
from tests.tui.conftest import ODD_PATHS, PATIENCE_S, PLAN, Driver, drive

SMALL = ((1, 1), (80, 3), (4, 24), (80, 24))


async def typed_into(driver: Driver, key: str, text: str) -> None:
    await driver.press(key)
    await driver.type(text)
    await driver.press("enter")


def said(driver: Driver) -> str:
    """What the panel on top says; it is closed."""
    panel = driver.app.screen
    assert isinstance(panel, Panel), panel
    text = str(panel.query_one("#panel-text").render())
    panel.dismiss(None)
    return text


def test_a_path_that_cannot_be_is_a_panel(odd_plan: Path, tmp_path: Path) -> None:
    """Saved or opened; the plan that is open stays, and nothing is written."""
    there = sorted(tmp_path.iterdir())

    async def walk(driver: Driver) -> None:
        for text in ODD_PATHS:
            for key in ("S", "O") if text in ODD_PATHS[:4] else ("S",):
                await typed_into(driver, key, text)
                await driver.until(lambda: isinstance(driver.app.screen, Panel))
                words = said(driver)
                assert words
                assert "unexpected" not in words, (key, text)
                assert len(words) < 600
        assert driver.app.session.path == odd_plan

    drive(odd_plan, walk)
    assert sorted(path for path in tmp_path.iterdir() if path.name != "state") == there


def test_a_folder_that_cannot_be_is_said(odd_plan: Path) -> None:
    async def walk(driver: Driver) -> None:
        async def result_of(text: str, *keys: str) -> str:
            driver.app.screen.query_one("#sweep-folder", Input).value = text
            await driver.press(*keys)
            await driver.idle()
            return driver.text("#sweep-state")

        await driver.press("5")
        await driver.idle()
        for text in ("x" * 5000, "nul\0", "~\0", "/", "loop"):
            assert "got " in await result_of(text, "v", "c", "g", "1", "5"), text
        for text in ("~nosuchuser/x", "[/a]"):
            assert "No results in" in await result_of(text, "v")
        await driver.press("6")
        await driver.idle()
        for text in ("x" * 5000, "nul\0", "loop"):
            driver.app.screen.query_one("#report-folder", Input).value = text
            await driver.press("w")
            await driver.idle()
            assert ": got " in driver.text("#report-result"), text

    drive(odd_plan, walk)


def test_panels_and_palette_live_in_any_terminal(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        for keys in (
            ("ctrl+p",),
            ("question_mark",),
            ("O", "tab"),
            ("S",),
            ("f", "enter", "enter"),
        ):
            await driver.press(*keys)
            for size in SMALL:
                await driver.pilot.resize_terminal(*size)
                await driver.press("pagedown", "pageup", "end")
            await driver.press("escape", "escape")
        for size in (SMALL[0], SMALL[-1]):
            await driver.pilot.resize_terminal(*size)
            await driver.press("1", "O", "pagedown", "escape", "ctrl+p", "pagedown", "escape")

    drive(plan_file, walk)


def test_names_that_look_like_markup_are_names(odd_plan: Path) -> None:
    async def walk(driver: Driver) -> None:
        assert "[plan].yaml" in driver.screen_text()
        assert "dim1 [/a]" in driver.screen_text()
        await driver.press("p", "plus", "p")
        await driver.press("4")
        await driver.idle()
        assert "dim4 [@click=x]" in driver.screen_text()
        await driver.press("enter")
        assert isinstance(driver.app.screen, Panel)
        await driver.press("escape", "2")
        await driver.idle()
        assert "[plan].yaml" in driver.screen_text()
        await driver.press("n")
        await driver.type("[/x] [bold]")
        await driver.press("enter", "1")
        driver.app.apply_edit("fabric.tiers.0", "'[/none]'")
        await driver.idle()
        assert driver.app.session.faults
        assert "[/none]" in driver.text("#faults-text")
        driver.app.ask(Prompt("[/label]", "[/text]", hint="[/hint]"), print)
        await driver.pilot.pause()
        assert "[/label]" in driver.screen_text()
        await driver.press("escape")

    drive(odd_plan, walk)


def test_replacing_a_file_is_asked_by_its_name(odd_plan: Path, tmp_path: Path) -> None:
    (tmp_path / "[red]x.yaml").write_text("workload: x\n", encoding="utf-8")

    async def walk(driver: Driver) -> None:
        await typed_into(driver, "S", "[red]x.yaml")
        await driver.until(lambda: isinstance(driver.app.screen, Question))
        await driver.pilot.pause()
        assert "[red]x.yaml is another file" in driver.screen_text()
        await driver.press("escape")

    drive(odd_plan, walk)


def shown_until(terminal: int, words: str) -> None:
    end, text = time.monotonic() + PATIENCE_S, b""
    while words.encode() not in text:
        assert time.monotonic() < end, text[-2000:]
        if select.select([terminal], [], [], 1.0)[0]:
            text += os.read(terminal, 65536)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_bytes_and_sizes_of_a_real_terminal_do_not_end_it(plan_file: Path) -> None:
    """A terminal that sends Latin-1, dragged to nothing and back."""
    ours, its = pty.openpty()

    def resize(rows: int, columns: int) -> None:
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    resize(24, 80)
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-m", "libra_planner", "tui", str(plan_file)]
    child = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True
    )
    os.close(its)
    try:
        shown_until(ours, "Step time")
        os.write(ours, b"\xe9\xff\x80O")
        for rows, columns in ((1, 1), (3, 80), (24, 80)):
            resize(rows, columns)
            child.send_signal(signal.SIGWINCH)
            time.sleep(0.3)
        os.write(ours, b"\xe9")
        time.sleep(0.3)
        os.write(ours, b"z")  # Belongs to the letter that the byte before begins.
        time.sleep(0.3)
        os.write(ours, b"2")
        shown_until(ours, "Nothing is pinned")
        os.write(ours, b"q")
        assert child.wait(PATIENCE_S) == 0
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def test_a_plan_that_cannot_be_read_says_how_to_go_on(plan_file: Path) -> None:
    """In the place of figures and pictures, which are there once it is corrected."""
    plan_file.write_text(PLAN.replace("workload:", "wokload:"), encoding="utf-8")

    async def walk(driver: Driver) -> None:
        assert "did you mean workload?" in " ".join(driver.text("#faults-text").split())
        said = " ".join(driver.text("#headline").split())
        assert "correct it there, or correct the file and open it again (O)" in said
        assert not driver.app.design.query_one("#design-pictures").display
        plan_file.write_text(PLAN, encoding="utf-8")
        driver.app.open_plan(plan_file)
        await driver.idle()
        assert "open it again" not in driver.text("#headline")
        assert driver.app.design.query_one("#design-pictures").display

    drive(plan_file, walk)
