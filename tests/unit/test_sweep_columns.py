"""One table of columns: the handbook lists it, and one from outside is everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from libra_planner.errors import SpecError
from libra_planner.reading.bundled import folder
from libra_planner.sweeps.axes import sweep_schema
from libra_planner.sweeps.columns import (
    ALWAYS,
    ASKED,
    BILLED,
    CHECKED,
    COLUMNS,
    DEFAULT,
    FIGURES,
    OF_WORK,
    ON_LINKS,
    SEARCHED,
    Column,
    columns,
    on_screen,
    register,
)
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from tests.conftest import Outcome

Run = Callable[..., Outcome]

DOCS = Path(__file__).parents[2] / "docs"
WHEN = {
    ALWAYS: "always",
    DEFAULT: "unless `columns` leaves it out",
    ASKED: "where `columns` names it",
    CHECKED: "with `check`",
    SEARCHED: "with `parallelism: auto`",
    ON_LINKS: "with both",
    BILLED: "beside any bill",
    OF_WORK: "where models vary, or `columns` names it",
}


def megawatts(bandwidth_bytes_per_s: Any) -> Any:
    return bandwidth_bytes_per_s.sum(axis=1) * 1e-5


POWER = Column("network_power_W", "of all links", ("bandwidth_bytes_per_s",), megawatts)


def sweep_text(kept: str) -> str:
    text = (folder("sweeps") / "10_budgets.yaml").read_text()
    return re.sub(r"columns:.*\n(?: .*\n|- .*\n)*", "", text) + f"\ncolumns: [{kept}]\n"


@pytest.fixture
def power() -> Iterator[None]:
    register(POWER)
    yield
    COLUMNS.remove(POWER.key)
    FIGURES.remove(POWER.key)


def test_the_handbook_lists_the_columns_of_the_table() -> None:
    lines = []
    for one in columns():
        name = f"`{one.name.format(dim=1)}`" + (", ..." if "{dim}" in one.name else "")
        key = f" (`{one.key}`)" if one.asked_as else ""
        lines.append(f"| {name}{key} | {WHEN[one.kept]} | {one.meaning} |\n")
    text = (DOCS / "sweeps.md").read_text()
    table = re.search(r"\| column \| in results \| \|\n\|---\|---\|---\|\n((?:\|.*\n)*)", text)
    assert table
    assert table[1] == "".join(lines)


@pytest.mark.usefixtures("power")
@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_column_from_outside_is_run_shown_and_on_screen(
    run: Run, tmp_path: Path, n_workers: int
) -> None:
    file, there = tmp_path / "sweep.yaml", tmp_path / "run"
    file.write_text(sweep_text("bandwidth, network_power_W"))
    run_sweep(load_sweep(file), there, n_workers=n_workers)
    results = Results.at(there)
    assert results.columns[-1] == POWER.name
    rows = results.everything().dicts()
    for row in rows:
        total_Bps = 1e9 * sum(row[f"bandwidth_dim{dim}_GBps"] for dim in range(1, 5))
        assert row[POWER.name] == pytest.approx(1e-5 * total_Bps)
    best = results.sql("SELECT * FROM designs LIMIT 1").dicts()
    assert POWER.name in best[0]
    headings = [one.label for one in on_screen(results.columns, results.axes)]
    assert headings[-1] == "network power W"
    found = run("sweep", "show", there, "--sql", "SELECT max(network_power_W) FROM designs").out
    assert found.splitlines()[0] == "max(network_power_W)"
    assert POWER.key in json.dumps(sweep_schema())


@pytest.mark.usefixtures("power")
def test_show_has_columns_from_outside(run: Run, tmp_path: Path) -> None:
    file, there = tmp_path / "sweep.yaml", tmp_path / "run"
    file.write_text(sweep_text("step_time_s, bandwidth, network_power_W"))
    run_sweep(load_sweep(file), there)
    header = run("sweep", "show", there, "--top", 1).out.splitlines()[3]
    assert " step time " in header
    assert "network power W" in header
    report = run("report", f"{there}:0", "-o", tmp_path / "report", "--formats", "md")
    assert report.code == 0


@pytest.mark.usefixtures("power")
def test_no_axis_and_no_other_column_has_its_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="network_power_W"):
        register(POWER)
    file = tmp_path / "sweep.yaml"
    file.write_text("base: 01_gpt3_4d\naxes: {network_power_W: [1, 2]}\n")
    with pytest.raises(SpecError, match="expected a name that no other axis and no column has"):
        load_sweep(file)


def test_a_column_of_figures_that_no_design_has_is_refused_with_those_there_are() -> None:
    """When it is registered, and not by a traceback of the sweep."""
    wrong = Column("mine", "", ("tokens_per_s", "bandwidth_bytes_per_s"), megawatts)
    with pytest.raises(ValueError, match=r"got 'tokens_per_s' .*step_time_s.*tokens_per_step\?$"):
        register(wrong)
    with pytest.raises(ValueError, match=r"does not take \(step_time_s, cost_usd\)"):
        register(Column("mine", "", ("step_time_s", "cost_usd"), megawatts))
    assert "mine" not in COLUMNS
    text = (DOCS / "extending.md").read_text()
    table = text[text.index("| arrays | of |") :].split("\n\n")[0]
    names = re.findall(r"^\| (`.*?) \|", table, re.M)
    listed = re.findall(r"`(\w+)`", " ".join(names))
    assert sorted(listed) == sorted({name for one in columns() for name in one.inputs})
