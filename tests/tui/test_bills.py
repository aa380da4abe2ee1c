"""Plans with ``prices: bill`` in the cockpit: its designs are options, its money the bill's (C22)."""

from __future__ import annotations

from libra_planner.reading.bundled import example
from tests.tui.conftest import Driver, command, drive


def test_the_cockpit_buys_what_optimize_buys() -> None:
    payload = command("optimize", example("0b_bill"), "--json").payload

    async def walk(driver: Driver) -> None:
        app = driver.app
        assert app.session.origin == "first option"
        assert "1 x 200 Gbit/s per NPU, spine 4:1" in driver.text("#headline")
        await driver.press("plus")
        await driver.idle()
        assert "expected one of the 18" in driver.screen_text()
        await driver.press("o")
        await driver.idle()
        assert list(app.session.edits.bandwidth_GBps or ()) == payload["bandwidth_GBps"]
        evaluation = app.session.evaluation()
        assert evaluation is not None
        assert evaluation.cost_usd == payload["bill"]["usd"]
        assert "$85.71M bill" in driver.text("#headline")
        assert payload["bill"]["chosen"]["text"].split(", ")[0] in driver.text("#headline")
        assert "Proven optimal" in driver.text("#proof")

    drive(example("0b_bill"), walk)
