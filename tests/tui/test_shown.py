"""What the sweep, report and compare screens show: the figures of the files, as people read them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from textual.widgets import DataTable, TextArea

from libra_planner.reading.bundled import example, folder
from libra_planner.sweeps.columns import columns, on_screen
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.tui.disk.readings import read_plan
from libra_planner.tui.pictures.stacked import BarGroup, stacked_bar
from libra_planner.tui.screens.compare import (
    bar_groups,
    bar_lines,
    compared_rows,
    delta,
    disagreement,
)
from libra_planner.tui.screens.report import decision
from libra_planner.tui.screens.sweeps import Page, best_so_far
from libra_planner.tui.session import Pin, Session
from tests.tui.conftest import Driver, command, drive

EXAMPLES = Path(__file__).parents[2] / "examples"
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "": 1.0, "x": 1.0}
UNITS |= {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
MONEY = {"B": 1e9, "M": 1e6, "k": 1e3, "": 1.0}
NUMBER = re.compile(r"(\$?)(-?[\d,]+(?:\.(\d+))?(?:e[-+]\d+)?) ?([a-zA-Z]*)")


def assert_shows(text: str, value: float) -> None:
    """A text is a number of the files, rounded half a unit of its last digit away at most."""
    found = NUMBER.fullmatch(text)
    assert found, text
    dollar, digits, decimals, unit = found.groups()
    scale = (MONEY if dollar else UNITS)[unit]
    number = digits.replace(",", "")
    mantissa, _, exponent = number.partition("e")
    last = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])) * scale
    assert abs(float(number) * scale - value) <= 0.5 * last * (1 + 1e-9) + 1e-12 * abs(value)
    assert decimals is None or "e" in number or len(decimals) >= 1


KNOWN = [one for one in columns() if 0 < one.screen < 50 and "{dim}" not in one.name]
FIGURES = [one.name for one in KNOWN if not one.is_text]


@given(
    st.sampled_from([*FIGURES, "bandwidth_dim3_GBps", "lower_bound", "other_usd", "other_s"]),
    st.floats(1e-9, 1e12),
)
def test_a_figure_is_shown_to_the_digits_it_has(name: str, value: float) -> None:
    (column,) = on_screen([name], [])
    assert_shows(column.cell(value), value)


@given(st.lists(st.sampled_from([*FIGURES, "row", "tp", "x", "message", "status"]), unique=True))
def test_every_column_is_shown_once_and_axes_come_first(names: list[str]) -> None:
    shown = [one.name for one in on_screen(names, ["tp", "x"])]
    assert sorted(shown) == sorted(names)
    first = [name for name in ("row", "tp", "x") if name in names]
    assert shown[: len(first)] == first


def test_columns_nobody_told_of_are_shown_by_their_unit() -> None:
    names = ["new_usd", "new_time_s", "new_GBps", "new_count", "new_flag", "check_message", "gpu_s"]
    shown = {one.name: one for one in on_screen(names, ["gpu_s"])}
    assert shown["new_usd"].cell(2.5e6) == "$2.50M"
    assert shown["new_time_s"].cell(0.25) == "250.000 ms"
    assert (shown["new_GBps"].label, shown["new_GBps"].cell(12.5)) == ("new GB/s", "12.50")
    assert [shown["new_count"].cell(value) for value in (7, 0.1, None)] == ["7", "0.1", "-"]
    assert shown["new_flag"].cell(True) == "yes"
    assert shown["gpu_s"].cell(1234567.5) == "1234567.5"  # An axis, as the file gives it.
    assert [*shown][-1] == "check_message"
    assert len(shown["check_message"].cell("a long story " * 20)) == 48


def test_the_handbook_says_which_column_is_which() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tui.md").read_text()
    for one in KNOWN:
        assert re.search(rf"\| {re.escape(one.label)} \| `{one.name}` \|", text), one.name


SWEEP = """\
base: plan.yaml
axes:
  budget: {from: 100, to: 1000, step: 100}
set:
  constraints: ["total == {budget} GB/s"]
objective: [performance, performance_per_cost, cost]
columns: [objective_value, step_time_s, seconds_per_sequence, cost_usd, bandwidth, speedup_vs_equal]
"""


async def swept(driver: Driver) -> DataTable[Any]:
    await driver.press("5")
    await driver.pilot.pause()
    driver.app.screen.query_one(TextArea).text = SWEEP
    await driver.press("g")
    await driver.idle()
    return driver.app.screen.query_one(DataTable)


def cells_of(table: DataTable[Any]) -> list[list[str]]:
    return [re.split(r" {2,}", str(*table.get_row_at(i)).strip()) for i in range(table.row_count)]


def headings_of(table: DataTable[Any]) -> list[str]:
    return re.split(r" {2,}", str(table.ordered_columns[0].label).strip())


def test_the_table_shows_the_figures_of_the_parquet_files(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        table = await swept(driver)
        await driver.press("w")
        for presses in (0, 2):  # The best designs, then all of them.
            await driver.press(*["v"] * presses)
            await driver.idle()
            parts = sorted((plan_file.parent / "plan-sweep").glob("part-*.parquet"))
            files = {row["row"]: row for part in parts for row in pq.read_table(part).to_pylist()}
            headings = headings_of(table)
            names = dict(HEADINGS)
            assert headings[:5] == ["row", "budget, GB/s", "objective", "step time", "network cost"]
            for cells in cells_of(table):
                shown = dict(zip(headings, cells, strict=True))
                row = files[int(shown["row"])]
                assert shown["budget, GB/s"] == str(row["budget"])
                assert shown["objective"] == {"performance": "perf", "cost": "cost"}.get(
                    row["objective"], "perf/cost"
                )
                for heading in shown.keys() & names.keys():
                    value = row[names[heading]]
                    if value is None:  # Cost alone has no optimum here.
                        assert shown[heading] == "-"
                    else:
                        assert_shows(shown[heading], value)

    drive(plan_file, walk)


HEADINGS = [(one.label, one.name) for one in KNOWN if not one.is_text] + [
    (f"dim{i}", f"bandwidth_dim{i}_GBps") for i in range(1, 5)
]


def test_the_best_designs_fit_a_terminal_of_120_columns(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        table = await swept(driver)
        assert table.virtual_size.width <= table.size.width

    async def narrow(driver: Driver) -> None:
        table = await swept(driver)
        heading = next(line for line in driver.screen_text().split("\n") if "step time  " in line)
        first = ["row", "budget,", "GB/s", "objective", "step", "time", "network", "cost"]
        assert heading.split()[: len(first)] == first
        assert table.size.height >= 5

    drive(plan_file, walk)
    drive(plan_file, narrow, (80, 24))


def test_narrow_tables_lose_whole_columns_and_say_how_many(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        table = await swept(driver)
        shown = headings_of(table)
        assert shown[:3] == ["row", "budget, GB/s", "objective"]
        assert re.fullmatch(r"\+\d+ w", shown[-1])
        n_lost = int(shown[-1][1:-2])
        assert table.virtual_size.width <= table.size.width
        await driver.press("w")
        every = headings_of(table)
        assert len(every) == len(shown) - 1 + n_lost
        assert [name for name in every if name in shown] == shown[:-1]
        assert table.virtual_size.width > table.size.width
        await driver.press("w")
        assert headings_of(table) == shown
        await driver.pilot.resize_terminal(140, 40)
        await driver.until(lambda: headings_of(table) == every)

    drive(plan_file, walk, (80, 24))


def test_a_narrow_table_loses_first_what_tells_no_row_from_another() -> None:
    rows = [("1", "perf", "450.00", "9 ms"), ("2", "perf", "450.00", "8 ms")]
    answer = Answer(("row", "objective", "bandwidth_dim1_GBps", "step_time_s"), ())
    page = Page("best", 0, 1, answer, ("objective",), {}, answer, "", "cost_usd", "cost")
    names = [one.name for one in page.columns]
    cells = [tuple(dict(zip(answer.columns, row, strict=True))[x] for x in names) for row in rows]
    assert [names[i] for i in page.of_one_text(cells)] == ["bandwidth_dim1_GBps"]
    assert page.of_one_text(cells[:1]) == []


def test_the_best_so_far_is_what_sweep_show_says(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await swept(driver)
        said = driver.text("#sweep-best").split("\n")
        run = plan_file.parent / "plan-sweep"
        assert tuple(line.removeprefix("Best for ") for line in said) == best_so_far(
            run, lambda *_: None
        )
        rows = json.loads(command("sweep", "show", run, "--top", "1", "--json").out)["rows"]
        assert len(said) == len(rows) == 2
        for line, row in zip(said, rows, strict=True):
            objective = row["objective"].replace("_", " ")
            found = re.fullmatch(
                rf"Best for {objective}: step time (.*), network cost (.*), speedup (.*), "
                rf"budget {row['budget']} GB/s \(row {row['row']}\)",
                line,
            )
            assert found, line
            figures = ("step_time_s", "cost_usd", "speedup_vs_equal")
            for text, name in zip(found.groups(), figures, strict=True):
                assert_shows(text, row[name])

    drive(plan_file, walk)
    assert best_so_far(plan_file.parent, lambda *_: None) == ()


def rendered(payload: dict[str, Any], pins: list[str], n_cells: int) -> str:
    console = Console(file=io.StringIO(), width=n_cells, record=True)
    console.print(decision(payload, pins, n_cells))
    return console.export_text()


def words(text: str) -> str:
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def test_the_report_screen_says_what_the_command_says(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("p", "o")
        await driver.idle()
        await driver.press("p", "6", "w")
        await driver.idle()
        written, shown = plan_file.with_name("plan-report"), words(driver.text("#report-result"))
        plans = [written / "1_equal_bandwidth.yaml", written / "2_optimum_of_performance.yaml"]
        designs = [
            f"{plan}@{','.join(map(repr, pin.bandwidth_GBps))}"
            for plan, pin in zip(plans, driver.app.session.pins, strict=True)
        ]
        asked = ("report", *designs, "-o", written, "--allow-missing")
        printed, found = command(*asked).out.splitlines(), command(*asked, "--json").payload
        said = found["decision"]["recommendation"]["sentences"]
        first = driver.app.session.pins[1].name
        assert said[0] == printed[0]
        best = (
            "Do not sign yet, for 1 reason. The best of these is B ("  # Whole ports break a rule.
        )
        assert said[0].startswith(f"{best}2_optimum_of_performance @ ")
        assert f"{best}{first}){said[0].split(')', 1)[1]}" in shown
        for what in ("Networks are $", "90% of the price of B is assumed", "workload is part of a"):
            (line,) = [one for one in (*said, *found["decision"]["warnings"]) if what in one]
            assert line in shown
        assert len(found["decision"]["cards"]) == 3
        for card in found["decision"]["cards"]:
            letter = card["answer"][0]
            name = driver.app.session.pins["AB".index(letter)].name
            assert f"{card['title']}: {letter}: {name} {card['figure']}. {card['reason']}" in shown
        assert all(line in shown for line in found["decision"]["text"][:5])
        n_tables = len(list(written.glob("report-*.csv")))
        assert f"{n_tables} tables as CSV: report-*.csv" in shown
        assert f"{n_tables} tables: {written}/report-*.csv" in printed
        assert n_tables > 10
        assert "report-designs.csv" not in shown

    drive(plan_file, walk, (100, 60))


def test_the_report_screen_names_its_own_control_for_the_check(tmp_path: Path) -> None:
    plan = EXAMPLES / "reports" / "oversubscribed.yaml"
    payload = command("report", plan, "-o", tmp_path, "--formats", "md", "--json").payload
    shown = words(rendered(payload, ["1 mine"], 198))
    assert "oversubscribed 2:1; check links by ecmp to count it (--check ecmp)." in shown


def test_missing_prices_stand_above_the_answers(tmp_path: Path) -> None:
    text = (folder("parts") / "parts.yaml").read_text()
    text = re.sub(r"(  nic-200g:\n(?:    .*\n)*?)    price:.*\n(?:      .*\n)*", r"\1", text)
    (tmp_path / "unpriced.yaml").write_text(text)
    designs = [example("01_gpt3_4d"), f"{example('01_gpt3_4d')}@300,100,75,25"]
    payload = command(
        "report", *designs, "-o", tmp_path / "out", "--parts", tmp_path / "unpriced.yaml",
        "--allow-missing", "--json",
    ).payload  # fmt: skip
    assert payload["missing_prices"]
    for n_cells in (78, 198):
        shown = words(rendered(payload, ["1 a", "2 b"], n_cells))
        missing = ", ".join(payload["missing_prices"])
        assert "Warning: Prices are missing: every total is without " in shown
        assert missing in shown
        assert "Cheapest" in shown
        assert "without: " in shown


def opened(path: Path) -> Session:
    session = Session(path)
    session.accept(read_plan(path, ()))
    return session


def pinned(session: Session) -> Pin:
    evaluation = session.evaluation()
    assert evaluation is not None
    return session.pin(evaluation)


def test_pins_are_named_by_how_they_came_to_be(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        session = driver.app.session
        await driver.press("p", "o")
        await driver.idle()
        await driver.press("p", "plus", "p", "u", "p", "3")
        await driver.idle()
        await driver.press("up", "up", "enter", "p")
        point = driver.app.pane.query_one(DataTable).cursor_row + 1
        assert [pin.name for pin in session.pins] == [
            "1 equal bandwidth",
            "2 optimum of performance",
            "3 edited",
            "4 optimum of performance",
            f"5 frontier point {point}",
        ]
        await driver.press("2", "right", "n")
        await driver.type("  ")
        await driver.press("enter")
        assert "expected 1 to 40" in driver.text("#prompt-wrong")
        await driver.type("for the board ")
        await driver.press("enter")
        assert session.pins[1].name == "2 for the board"
        table = driver.app.pane.query_one(DataTable)
        assert "2 for the board" in [str(column.label) for column in table.ordered_columns]

    drive(plan_file, walk)


def test_a_row_of_a_sweep_is_pinned_under_its_number(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("p")
        table = await swept(driver)
        row = cells_of(table)[3][0]
        table.move_cursor(row=3)
        table.focus()
        await driver.press("enter")
        await driver.idle()
        await driver.press("p")
        names = [pin.name for pin in driver.app.session.pins]
        assert names == ["1 equal bandwidth", f"2 sweep row {row}"]  # Numbers go on.

    drive(plan_file, walk)


def test_an_origin_holds_for_its_plan_only(plan_file: Path) -> None:
    session = opened(plan_file)
    session.set_bandwidth((200, 150, 100, 50))
    session.came_from("optimum of performance")
    assert session.origin == "optimum of performance"
    session.edit("objective", "cost")
    session.accept(read_plan(plan_file, session.edits.settings))
    assert session.origin == "edited"
    session.undo()
    session.accept(read_plan(plan_file, ()))
    assert session.origin == "optimum of performance"
    plan_file.write_text(plan_file.read_text().replace("500 GB/s", "600 GB/s"))
    session.accept(read_plan(plan_file, ()))
    assert session.origin == "edited"


def test_an_origin_survives_saving(plan_file: Path) -> None:
    from libra_planner.tui.disk.files import save_plan

    session = opened(plan_file)
    session.edit("objective", "cost")
    session.accept(read_plan(plan_file, session.edits.settings))
    session.set_bandwidth((200, 150, 100, 50))
    session.came_from("optimum of cost")
    save_plan(plan_file, session.edits.settings, plan_file)
    session.file_written(plan_file)
    session.accept(read_plan(plan_file, ()))
    assert session.origin == "optimum of cost"


@given(
    st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), min_size=1, max_size=5),
    st.integers(16, 100),
)
def test_bars_are_as_long_as_their_figures(parts: list[tuple[float, float]], longest: int) -> None:
    top = max(map(sum, parts)) or 1.0
    group = BarGroup("t", tuple(parts), ("x",) * len(parts))
    lines = list(group.lines(["n"] * len(parts), longest))
    for line, both in zip(lines[1:], parts, strict=True):
        assert abs(line.count("█") - both[0] / top * longest) <= 0.5 + 1e-6
        assert abs(line.count("█") + line.count("░") - sum(both) / top * longest) <= 0.5 + 1e-6
        assert len(line) == len(lines[1])
    assert stacked_bar((0.0, 0.0), 1.0, 8) == ""


def test_bars_of_different_work_are_per_sequence(plan_file: Path) -> None:
    session = opened(plan_file)
    one = pinned(session)
    session.edit("global_batch", "4096")
    session.accept(read_plan(plan_file, session.edits.settings))
    two = pinned(session)
    assert bar_groups([one, one])[0].title.startswith("Step time")
    times = bar_groups([one, two])[0]
    assert times.title.startswith("Time per sequence")
    for pin, parts in zip((one, two), times.parts, strict=True):
        n_sequences = pin.problem.step.n_sequences
        assert n_sequences
        assert sum(parts) == pytest.approx(pin.evaluation.real_link_step_time_s / n_sequences)
    assert bar_lines([one, two], 40) == []


def test_bars_and_orders_are_those_of_own_links(plan_file: Path) -> None:
    """The optimum is the faster one by the ideal model, the other one on the links there are."""
    session = opened(plan_file)
    session.set_bandwidth((338.4, 84.6, 58.2, 18.8))
    one = pinned(session)
    session.set_bandwidth((300.0, 100.0, 75.0, 25.0))
    two = pinned(session)
    assert one.evaluation.step_time_s < two.evaluation.step_time_s
    title, parts = (bar_groups([one, two])[0].title, bar_groups([one, two])[0].parts)
    assert title.startswith("Step time on partial groups' own links")
    assert sum(parts[1]) == pytest.approx(two.evaluation.real_link_step_time_s)
    assert sum(parts[0]) > sum(parts[1])
    assert disagreement([one, two]).endswith(
        "fastest first 1, 2 by the plan's model, but 2, 1 on partial groups' own links"
    )
    rows = {row.name: row for row in compared_rows([one, two], 0)}
    for text, pin in zip(rows["on own links"].texts, (one, two), strict=True):
        assert_shows(text, pin.evaluation.real_link_step_time_s)
    assert rows["time x cost"].deltas[1] == delta(*map(_own_links_usd_s, (two, one)))
    assert disagreement([one, one]) == ""


def _own_links_usd_s(pin: Pin) -> float:
    return pin.evaluation.own_links_step_time_s * pin.evaluation.cost_usd


def test_no_time_per_sequence_of_parts_beside_whole_steps(plan_file: Path) -> None:
    session = opened(plan_file)
    part = pinned(session)
    for key, value in (("workload", "gpt3"), ("global_batch", "8192")):
        session.edit(key, value)
    session.accept(read_plan(plan_file, session.edits.settings))
    whole = pinned(session)
    assert "time / sequence" not in {row.name for row in compared_rows([part, whole], 0)}
    assert not any("sequence" in group.title for group in bar_groups([part, whole]))
    assert "time / sequence" in {row.name for row in compared_rows([part, part], 0)}


def test_compared_figures_are_filtered_and_order_the_designs(plan_file: Path) -> None:
    async def walk(driver: Driver) -> None:
        table = driver.app.pane.query_one(DataTable)

        def columns() -> list[str]:
            return [str(one.label) for one in table.ordered_columns]

        def names() -> list[str]:
            return [str(table.get_row_at(i)[0]) for i in range(table.row_count)]

        n_rows = table.row_count
        await driver.press("slash")
        await driver.type("dim TAPER")
        await driver.press("enter")
        assert names() == []
        await driver.press("slash")
        await driver.type("cost")
        await driver.press("enter")
        assert names() == ["network cost", "time x cost", "perf/cost vs equal"]
        assert columns()[0] == f"/cost: 3 of {n_rows}"
        assert [name[0] for name in columns()[1:]] == ["1", "2", "3"]
        await driver.press("greater_than_sign")
        costs = [pin.evaluation.network_cost_usd for pin in driver.app.session.pins]
        ranked = [str(i + 1) for i in sorted(range(3), key=costs.__getitem__)]
        assert [name[0] for name in columns()[1:]] == ranked != ["1", "2", "3"]
        assert names()[0] == "network cost▲"
        await driver.press("exclamation_mark", "home", "d")  # The dearest, at the left.
        dearest = costs.index(max(costs)) + 1
        assert str(dearest) not in [pin.name[0] for pin in driver.app.session.pins]
        await driver.press("slash")
        await driver.type("")
        await driver.press("enter")
        assert table.row_count == n_rows

    async def pinned_three(driver: Driver) -> None:
        await driver.press("p", "o")
        await driver.idle()
        await driver.press("p", "plus", "plus", "p", "2")
        await walk(driver)
        await driver.pilot.pause(0.4)
        chosen = driver.app.session.pins[driver.app.pane._chosen]
        side = driver.app.pane.query_one("#compare-fabric")
        assert str(side.border_title).startswith(f"{chosen.name}. Fabric")
        assert f"compute {chosen.evaluation.compute_s / chosen.evaluation.step_time_s:.1%}" in (
            driver.text("#compare-fabric")
        )

    drive(plan_file, pinned_three, (200, 60))


@pytest.mark.parametrize(
    ("size", "seen"), [((80, 24), False), ((142, 42), True), ((200, 60), True)]
)
def test_bars_are_drawn_where_there_is_room(
    size: tuple[int, int], seen: bool, plan_file: Path
) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("p", "o")
        await driver.idle()
        await driver.press("p", "2")
        await driver.pilot.pause(0.1)
        text = driver.screen_text()
        assert ("░ exposed communication" in text) is seen
        assert ("rule 1" in text) is seen  # The table is whole wherever bars are.
        assert "Enter loads a design" in text

    drive(plan_file, walk, size)
