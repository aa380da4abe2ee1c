"""Plans with ``prices: bill`` in the cockpit: its designs are options, its money the bill's (C22)."""

from __future__ import annotations

from libra_planner.reading.bundled import example
from libra_planner.units import format_time, format_usd
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


def test_whole_parts_and_the_error_band_stand_beside_linear_price_and_time() -> None:
    """What a purchase is signed on: ``evaluate`` prints both, so do the first two screens."""
    asked = ("--bandwidth", "450,50,25", "--json")
    told = command("evaluate", example("0e_rails_2to1"), *asked).payload
    parts = format_usd(told["bill_fabric_usd"])
    ends = [format_time(told[f"step_time_{end}_s"]) for end in ("low", "high")]

    async def walk(driver: Driver) -> None:
        await driver.idle()
        driver.app.change_bandwidth((450.0, 50.0, 25.0))
        await driver.idle()
        figures = driver.text("#headline")
        assert f"about {parts} in whole parts" in figures
        assert "$11.94M network, $80.55M system, linear" in figures
        assert f"{' to '.join(ends)} error band" in figures
        assert f"{' to '.join(ends)}, as published runs of " in driver.text("#notes")
        await driver.press("p", "2")
        await driver.idle()
        table = driver.screen_text()
        for row, figure in zip(("least", "most", "in whole parts"), (*ends, parts), strict=True):
            assert any(row in line and figure in line for line in table.split("\n"))

    drive(example("0e_rails_2to1"), walk)
