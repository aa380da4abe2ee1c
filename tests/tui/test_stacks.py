"""A stack in the cockpit: its tapers on every screen, bandwidths of its tiers edited, no crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from libra_planner.tui.screens.search import SearchPane
from libra_planner.units import format_time
from tests.tui.conftest import WHOLE, Driver, command, drive

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


def test_a_whole_model_on_servers_as_they_are_sold(tmp_path: Path) -> None:
    """The strategy that was found is seen at every size; nobody has equal bandwidth."""
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE.replace("dp: 64", "rest: auto"), encoding="utf-8")
    found = command("optimize", path, "--json").payload["settings"][0]
    assert found.startswith("TP 2")

    async def walk(driver: Driver) -> None:
        figures = driver.text("#headline")
        assert f"Strategy  {found}" in figures
        assert f"Strategy  {found}" in driver.screen_text()
        assert figures.count("searched") == 1
        assert "equal" not in figures
        await driver.press("p", "2")
        await driver.idle()
        table = driver.screen_text()
        assert "network cost" in table
        assert "equal" not in table
        driver.app.apply_edit("fabric.scale_up", "null")
        driver.app.apply_edit("parallelism", "{tp: 2, dp: 64, recompute: full}")
        await driver.press("1")
        await driver.idle()
        figures = driver.text("#headline")
        assert "Strategy  TP 2 x DP 64 " in figures
        assert "searched" not in figures
        assert "vs equal" in figures

    drive(path, walk, size=(80, 24))


def test_strategies_of_one_price_are_drawn_over_memory(tmp_path: Path) -> None:
    """What tells strategies apart stands at left; a proof of the first few is no end of a search."""
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE.replace("dp: 64", "rest: auto"), encoding="utf-8")
    told = command("search", path, "--json").payload["best"]

    async def walk(driver: Driver) -> None:
        await driver.press("7", "g")
        await driver.idle()
        pane = driver.app.pane
        assert isinstance(pane, SearchPane)
        found = pane._found
        assert found is not None
        assert len({row["cost_usd"] for row in told}) == 1
        assert "memory per NPU" in driver.text("#search-title")
        for row, (memory_bytes, step_s) in zip(told, found.points, strict=False):
            assert memory_bytes == pytest.approx(row["memory_GB"] * 1e9)
            assert step_s == row["step_time_s"]
        n_told = found.headings.index("tp")  # The plan says it.
        for i, texts in enumerate(zip(*found.rows, strict=True)):
            assert (len(set(texts)) == 1) == (i >= min(n_told, found.headings.index("cost")))
        tokens, mfu = (found.headings.index(name) for name in ("tokens/s", "MFU"))
        assert found.rows[0][tokens] == f"{told[0]['tokens_per_s']:,.0f}"
        assert found.rows[0][mfu] == f"{told[0]['mfu']:.1%}"
        assert found.keys[0][tokens] == told[0]["tokens_per_s"]
        pane._show_part(found)
        said = " ".join(driver.text("#search-state").split())
        assert f"The best {len(found.rows)} are proven; still searching the best 50" in said
        assert "so far" not in said

    drive(path, walk, size=(200, 60))
