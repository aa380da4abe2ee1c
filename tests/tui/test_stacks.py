"""A stack in the cockpit: its tapers on every screen, bandwidths of its tiers edited, no crash."""

from __future__ import annotations

from pathlib import Path

from libra_planner.units import format_time
from tests.tui.conftest import Driver, command, drive

PLAN = """\
workload: gpt3-libra
fabric:
  topology: SW(8)_[SW(16)_SW(2)_SW(2)]
  tiers: [node, leaf, spine, core]
parallelism: {tp: 8, dp: 64}
cost_model: clos-2026

constraints:
  - node <= 450 GB/s
  - leaf <= 50 GB/s
  - taper(spine) == 2
  - taper(core) == 4
"""


def test_tapers_follow_what_is_edited(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN, encoding="utf-8")

    async def walk(driver: Driver) -> None:
        await driver.press("o")
        await driver.idle()
        shown = driver.text("#bandwidths")
        assert "dim3 spine 2:1" in shown
        assert "dim4 core 4:1" in shown
        await driver.press("p", "down", "down", "enter")
        await driver.pilot.pause()
        await driver.type("10")
        await driver.press("enter")
        await driver.idle()
        assert driver.app.session.edits.bandwidth_GBps[2] == 10
        shown = driver.text("#bandwidths")
        assert "dim3 spine 5:1" in shown
        vector = ",".join(map(repr, driver.app.session.edits.bandwidth_GBps))
        told = command("evaluate", path, "--bandwidth", vector, "--json").payload
        assert format_time(told["step_time_s"]) in driver.text("#headline")
        assert "BROKEN: taper(spine) == 2 (line 11) is 5:1" in " ".join(
            driver.text("#headline").split()
        )
        await driver.press("p", "2")
        await driver.idle()
        table = driver.screen_text()
        assert "dim3 taper" in table
        assert "5:1" in table

    drive(path, walk)


def test_no_screen_falls_over_a_stack(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN, encoding="utf-8")

    async def walk(driver: Driver) -> None:
        await driver.press("o")
        await driver.idle()
        for key in "234561":
            await driver.press(key)
            await driver.idle()
            assert driver.screen_text().strip()
        driver.focus_key("fabric.topology")
        await driver.pilot.pause()
        await driver.type("SW(8)_[SW(16)_SW(4)")
        await driver.idle()
        assert "expected ] after the last tier" in " ".join(driver.text("#faults-text").split())
        await driver.type("SW(8)_[SW(8)_SW(4)_SW(2)]")
        await driver.idle()
        assert not driver.app.session.faults
        assert "[SW(8)_SW(4)_SW(2)]" in driver.text("#headline").replace("\n", "")

    drive(path, walk)
