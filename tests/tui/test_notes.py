"""Notes, names and small words of the screens: what the commands say, and all of it to be read."""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.widgets import DataTable

from libra_planner.reading import bundled
from libra_planner.tui.disk.readings import read_plan
from libra_planner.tui.pictures.plot import PointPlot
from libra_planner.tui.screens import design as figures
from libra_planner.tui.screens import links
from libra_planner.tui.screens.compare import compared_rows, unbuilt_note
from libra_planner.tui.screens.frontier import FrontierPane
from libra_planner.tui.session import (
    MOST_LETTERS,
    Pin,
    Session,
    best_design,
    distinct_name,
)
from libra_planner.tui.widgets import Checklist
from tests.tui.conftest import Driver, command, drive

RACKS = "  realization: {wiring: top_of_rack, port_speed: 50 GB/s}\nparallelism:"


def words(text: str) -> str:
    return " ".join(text.split())


def notes_of(out: str) -> list[str]:
    return [words(line) for line in out.splitlines() if line.startswith(("Note: ", "Consider: "))]


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_design_shows_the_notes_and_the_size_that_optimize_prints(
    size: tuple[int, int], plan_file: Path
) -> None:
    said = command("optimize", plan_file).out
    assert "4,096 NPUs" in said
    assert len(notes_of(said)) == 2

    async def walk(driver: Driver) -> None:
        await driver.press("o")
        await driver.idle()
        shown = words(driver.text("#notes"))
        assert shown == " ".join(notes_of(said))
        assert "on their own links the step would take" in shown
        assert "NPUs      4,096 RI(4)_FC(8)_RI(4)_SW(32)" in driver.text("#headline")
        card = driver.app.screen.query_one("#notes")
        assert all(str(span.style) != "none" and "dim" in str(span.style) for span in _spans(card))
        card.scroll_visible(animate=False)
        await driver.pilot.pause(0.1)
        assert "(+10.3%)" in driver.screen_text()

    drive(plan_file, walk, size)


def _spans(card: Any) -> list[Any]:
    spans: list[Any] = card.render().spans
    assert spans
    return spans


def test_design_at_80x24_keeps_its_figures(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("o")
        await driver.idle()
        text = driver.screen_text()
        for figure in ("exposed", "network", "Speedup", "Perf/cost", "equal:", "Rules"):
            assert figure in text
        assert "Proven optimal" in text

    drive(plan_file, walk, (80, 24))


def found_links(path: Path) -> links.CheckedLinks:
    session = Session(path)
    session.accept(read_plan(path, ()))
    assert session.problem is not None
    bandwidth = session.bandwidth_bytes_per_s
    return links.check_links(session.problem, bandwidth, "ecmp", 0, lambda *_: None)


def test_fabric_shows_what_is_asked_for_and_the_notes_of_check(plan_file: Path) -> None:
    plan_file.write_text(plan_file.read_text().replace("parallelism:", RACKS, 1))
    said = command("check", plan_file, "--bandwidth", "125,125,125,125").out
    assert notes_of(said)

    async def walk(driver: Driver) -> None:
        await driver.press("4")
        await driver.idle()
        lines = driver.text("#fabric-dimensions").splitlines()
        assert lines[0].split()[:3] == ["dimension", "GB/s", "asked"]
        realised, asked = next(line for line in lines if line.startswith("dim4")).split()[2:4]
        assert (realised, asked) == ("150.00", "125.00")
        assert (
            max(len(line.rstrip()) for line in lines[:5]) <= 76 - 5
        )  # Room for millions of cables.
        assert not any("…" in line for line in lines)
        shown = words(driver.text("#fabric-notes"))
        choice, notes = shown.removeprefix("Note: "), " ".join(notes_of(said))
        assert shown.endswith(notes)
        assert choice.removesuffix(notes).strip() in words(said)  # Which algorithm runs.
        assert "3 NICs of 50.00 GB/s per NPU, 125.00 GB/s is asked for" in " ".join(notes_of(said))

    drive(plan_file, walk, (80, 24))


def pinned(session: Session, *settings: str) -> Pin:
    """A pin under the plan with the settings, called an optimum there."""
    for setting in settings:
        session.edit(*setting.split("=", 1))
    reading = read_plan(session.path, session.edits.settings)
    session.accept(reading)
    assert reading.problem is not None, reading.faults
    optimum = best_design(reading.problem, lambda *_: None)
    session.set_bandwidth(tuple(b / 1e9 for b in optimum.evaluation.bandwidth_bytes_per_s))
    session.came_from(f"optimum of {reading.problem.objective.replace('_', ' ')}")
    evaluation = session.evaluation()
    assert evaluation is not None
    return session.pin(evaluation)


def test_compare_says_which_design_no_whole_ports_make(plan_file: Path) -> None:
    """NICs of 100 GB/s on switches of 400 Gbit/s with few ports: it has no cost in whole parts."""
    plan_file.write_text(bundled.example("08_rails").read_text())
    session = Session(plan_file)
    fast, few = "constraints.0=leaf <= 100 GB/s", "fabric.realization={port_speed: 400 Gbps}"
    pins = [pinned(session, "constraints.0=leaf <= 50 GB/s", few), pinned(session, fast)]
    said = unbuilt_note(pins)
    costs = next(one for one in compared_rows(pins, 0) if one.name == "  in whole parts").values
    assert [cost is None for cost in costs] == [False, True]
    assert said == f"No cost in whole parts: no whole ports and switches make {pins[1].name}"


def test_pins_of_one_origin_are_told_apart_by_what_differs(plan_file: Path) -> None:
    session = Session(plan_file)
    names = [
        pinned(session).called,
        pinned(session).called,  # The same design again.
        pinned(session, "constraints.0=total == 250 GB/s").called,
        pinned(session, "constraints.1=dim4 >= 40 GB/s").called,
    ]
    assert names[:3] == [
        "optimum of performance",
        "optimum of performance",
        "optimum of performance, 250 GB/s",
    ]
    assert names[3].startswith("optimum of performance, $")
    budget = ("constraints.1=dim1 >= dim2", "objective=performance_per_cost")
    more = [
        pinned(session, *budget).called,
        pinned(session, "constraints.0=total == 123.456 GB/s").called,
    ]
    assert more == ["optimum of perf/cost", "optimum of perf/cost, 123.456 GB/s"]
    assert max(map(len, [*names, *more])) < MOST_LETTERS


def test_a_name_of_ones_own_is_not_made_longer_than_it_may_be(plan_file: Path) -> None:
    session = Session(plan_file)
    one = replace(pinned(session), called="x" * MOST_LETTERS)
    two = pinned(session, "constraints.0=total == 250 GB/s")
    assert distinct_name(two, "x" * MOST_LETTERS, [one]) == "x" * MOST_LETTERS


def test_the_first_space_on_report_drops_the_first_design(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("p", "6")
        await driver.pilot.pause(0.1)
        designs = driver.app.screen.query_one("#report-designs", Checklist)
        formats = driver.app.screen.query_one("#report-formats", Checklist)
        assert driver.app.focused is designs
        assert (designs.highlighted, formats.highlighted) == (0, 0)
        await driver.press("space")
        assert designs.chosen == []
        await driver.press("tab", "space")
        assert 0 not in formats.chosen
        designs.show([])
        assert designs.highlighted is None

    drive(plan_file, walk)


def test_a_gap_that_is_rounding_is_said_to_be_below_its_bound(plan_file: Path) -> None:
    problem = read_plan(plan_file, ()).problem
    assert problem is not None
    optimum = best_design(problem, lambda *_: None)
    for gap, said in ((1e-12, "gap below 1e-9"), (0.0, "gap below 1e-9"), (2.0**-24, "gap 6e-08")):
        proven = replace(optimum.design, objective=1.0 + gap, lower_bound=1.0)
        text = figures.proof(replace(optimum, design=proven), is_shown=True).plain
        assert f"({said})" in text


def test_one_group_is_not_groups(plan_file: Path) -> None:
    plan_file.write_text(plan_file.read_text().replace("parallelism:", RACKS, 1))
    found = found_links(plan_file)
    row = found.busiest_links[0]
    for n, said in ((1, "of 1 group: "), (5, "of 5 groups: ")):
        text = found.link_text(row | {"n_groups": n, "groups": {"dp 1": 3}}).plain
        assert said in text


def test_flows_of_a_link_are_written_as_check_writes_them(plan_file: Path) -> None:
    """From NPU to NPU with an arrow: with a hyphen they read like a range."""
    plan_file.write_text(plan_file.read_text().replace("parallelism:", RACKS, 1))
    found = found_links(plan_file)
    row = found.busiest_links[0]
    text = found.link_text(row).plain
    for name in row["flows"]:
        source, _, target = name.partition("-")
        assert f"flow {source}->{target} (" in text
        assert f"flow {name} " not in text


def test_the_hint_of_frontier_says_which_keys(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("3")
        await driver.idle()
        assert "up and down or a click choose" in driver.text("#frontier-note")
        assert driver.app.screen.query_one(FrontierPane)
        assert driver.app.screen.query_one(DataTable).row_count

    drive(plan_file, walk)


class Plotted(App[None]):
    def compose(self) -> ComposeResult:
        yield PointPlot("plot-here", is_joined=True)


@pytest.mark.parametrize("is_log", [True, False])
@pytest.mark.parametrize("top_usd", [10e6, 10.02e6, 10.05e6, 10.1e6, 10.2e6, 10.4e6, 15.1e6])
def test_no_tick_is_cut(top_usd: float, *, is_log: bool) -> None:
    async def run() -> str:
        app = Plotted()
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            plot = app.query_one(PointPlot)
            plot.show([(4e6, 1.0), (top_usd, 0.7)], 0, None, is_log=is_log)
            plot.set_xlimits(plot._x_min, math.log10(top_usd) if is_log else top_usd)
            await pilot.pause(0.1)
            return "\n".join(strip.text for strip in app.screen._compositor.render_strips())

    labels = [word for word in asyncio.run(run()).split() if word.startswith("$")]
    assert len(labels) >= 2
    assert all(re.fullmatch(r"\$([1-9]|1[0-5])(\.5)?M", label) for label in labels), labels
