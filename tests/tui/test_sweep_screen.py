"""What a user of the Sweep screen may lose or be told wrongly, and opening and saving by it."""

from __future__ import annotations

from pathlib import Path

from libra_planner.tui.dialogs import Panel, Question
from tests.tui.conftest import PLAN, Driver, drive

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
