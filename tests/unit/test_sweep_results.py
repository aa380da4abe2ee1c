"""What `sweep show`, `design` and `plan` give, against the rows themselves."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from matplotlib.legend import Legend
from matplotlib.text import Text

import libra_planner as lp
from libra_planner.api.shown import new_axes
from libra_planner.reading.bundled import folder
from libra_planner.sweeps.figures import places
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from libra_planner.views.sweeps import figures, points
from libra_planner.views.sweeps import page as sweep_page
from libra_planner.views.sweeps.drawing import free_places, short
from libra_planner.views.sweeps.figures import draw, panels
from libra_planner.views.sweeps.points import Points
from tests.conftest import Outcome

Run = Callable[..., Outcome]

SWEEP = {
    "base": {
        "workload": "gpt3",
        "fabric": {},
        "parallelism": {"tp": "{tp}", "dp": "{256 / tp}"},
        "global_batch": 256,
        "npu": {"name": "h100-sxm", "efficiency_fraction": 0.4},
        "cost_model": "libra-ispass24",
        "constraints": ["total == {budget} GB/s"],
    },
    "axes": {
        "shape": {"topologies": ["RI(16)_SW(16)", "RI(4)_RI(8)_SW(8)"], "tiers": ["package", "node", "pod"]},
        "tp": [4, 12, 16],
        "budget": [100, 250.5, 900],
    },
    "objective": ["performance", "performance_per_cost"],
    "designs_per_part": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("results")
    (here / "sweep.yaml").write_text(yaml.safe_dump(SWEEP, sort_keys=False))
    run_sweep(load_sweep(here / "sweep.yaml"), here / "run")
    return here / "run"


@pytest.fixture(scope="module")
def rows(directory: Path) -> list[dict[str, Any]]:
    tables = [pq.read_table(path).to_pylist() for path in sorted(directory.glob("part-*"))]
    return [row for table in tables for row in table]


def _optimal(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["status"] == "optimal"]


def test_rows_of_designs_that_are_no_plans(rows: list[dict[str, Any]]) -> None:
    """TP 12 divides neither 256 nor a dimension; the other rows are all optimal."""
    invalid = [row for row in rows if row["status"] == "invalid"]
    assert len(rows) == 36
    assert {row["tp"] for row in invalid} == {12}
    assert len(invalid) == 12
    assert all("parallelism.dp" in row["message"] for row in invalid)
    assert all(row["step_time_s"] is None and row["unique"] is None for row in invalid)
    assert all(row["message"] is None for row in _optimal(rows))
    assert {row["bandwidth_dim3_GBps"] for row in rows if row["shape"] == "RI(16)_SW(16)"} == {None}


def test_seconds_per_sequence(rows: list[dict[str, Any]]) -> None:
    for row in _optimal(rows):
        assert row["seconds_per_sequence"] == pytest.approx(row["step_time_s"] / 256, rel=1e-12)


def test_top(run: Run, directory: Path, rows: list[dict[str, Any]]) -> None:
    found = run("sweep", "show", directory, "--top", "3", "--json").payload["rows"]
    for objective, figure in (
        ("performance", lambda row: row["step_time_s"]),
        ("performance_per_cost", lambda row: row["step_time_s"] * row["cost_usd"]),
    ):
        own = [row for row in _optimal(rows) if row["objective"] == objective]
        best = sorted(own, key=lambda row: (figure(row), row["cost_usd"]))[:3]
        shown = [row["row"] for row in found if row["objective"] == objective]
        assert shown == [row["row"] for row in best]


def test_groups_have_the_times_of_the_table_and_what_their_best_row_is(
    run: Run, directory: Path
) -> None:
    """All steps have 256 sequences: the table shows step times, and so do groups."""
    rows = run("sweep", "show", directory, "--group-by", "budget", "--json").payload["rows"]
    every = Results.at(directory).everything().dicts()
    for row in rows:
        best = every[row["best_row"]]
        names = ("shape", "tp", "step_time_s", "seconds_per_sequence")
        assert [row[f"best_{name}"] for name in names] == [best[name] for name in names]
    shown = run("sweep", "show", directory, "--group-by", "budget").out
    assert "best step time" in shown
    assert "its shape" in shown
    assert "/seq." not in shown
    assert "In all rows: 256 sequences a step" in shown


def test_models_of_other_batches_have_one_unit_of_time_in_all_lines(
    run: Run, tmp_path: Path
) -> None:
    """Steps of one model have one number of sequences: lines, cards and tables say step times."""
    sweep = {"base": "0e_rails_2to1", "axes": {"model": ["gpt3", "llama3-70b"], "nic": [25, 50]}}
    batch = {"global_batch": "{1536 if model == 'gpt3' else 1024}", "workload": "{model}"}
    layers = {"parallelism.interleave": "{4 if model == 'gpt3' else 5}"}
    layers |= {
        f"parallelism.{name}": n for name, n in (("cp", 1), ("tp", 8), ("pp", 8), ("dp", 32))
    }
    rules = {"constraints": ["leaf == {nic} GB/s", "taper(spine) == 2"]}
    sweep |= {
        "set": batch | layers | rules,
        "columns": ["step_time_s", "seconds_per_sequence", "cost_usd"],
    }
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(sweep))
    assert run("sweep", "run", file, "-o", tmp_path / "two").code == 0
    answer = run("sweep", "show", tmp_path / "two", "--json").payload
    rows = answer["rows"]
    assert {round(row["step_time_s"] / row["seconds_per_sequence"]) for row in rows} == {1024, 1536}
    page = tmp_path / "two.html"
    run("sweep", "show", tmp_path / "two", "--html", page)
    shown = run("sweep", "show", tmp_path / "two").out
    best = [line for line in shown.splitlines() if line.startswith("Best of")]
    assert len(best) == 2
    for row in rows:
        if row["nic"] == 50:
            assert f"({row['step_time_s']:.3f} s, " in "".join(best)
    cards = re.findall(r'class="figure">(.*?)<', page.read_text())
    assert cards
    assert all(re.match(r"\d+\.\d+ s\b", card) for card in cards)
    assert not any("a sequence" in card for card in cards)


def test_rows_near_the_best_are_counted(
    run: Run, directory: Path, rows: list[dict[str, Any]]
) -> None:
    """Against all rows of the objective, one by one."""
    results = Results.at(directory)
    for objective, n, first in results.near_best().rows:
        ranked = {row["row"]: _rank(row) for row in rows if row["objective"] == objective}
        known = {i: value for i, value in ranked.items() if value is not None}
        near = [i for i, value in known.items() if value <= 1.001 * min(known.values())]
        assert (n, first) == (len(near), sorted(near)[:3])
        network = "network cost"
        what = {"cost": network, "performance_per_cost": f"step time x {network}"}
        said = f"{n:,} rows are within 0.1% of the best {what.get(objective, 'step time')}:"
        assert (said in run("sweep", "show", directory, "--remarks").err) == (n > 1)


def _rank(row: dict[str, Any]) -> float | None:
    time, cost = row["seconds_per_sequence"], row["cost_usd"]
    if row["status"] != "optimal":
        return None
    return {"cost": cost, "performance_per_cost": time * cost}.get(row["objective"], time)


def test_pareto_against_all_pairs(run: Run, directory: Path, rows: list[dict[str, Any]]) -> None:
    found = [
        row["row"] for row in run("sweep", "show", directory, "--pareto", "--json").payload["rows"]
    ]
    optimal = _optimal(rows)
    expected = [
        one["row"]
        for one in sorted(optimal, key=lambda row: row["seconds_per_sequence"])
        if not any(
            other["seconds_per_sequence"] <= one["seconds_per_sequence"]
            and other["cost_usd"] <= one["cost_usd"] * (1 + 1e-9)
            and (other["seconds_per_sequence"], other["cost_usd"], other["row"])
            != (one["seconds_per_sequence"], one["cost_usd"], one["row"])
            for other in optimal
        )
    ]
    assert found == expected
    assert len(found) > 2


def test_group_by(run: Run, directory: Path, rows: list[dict[str, Any]]) -> None:
    found = run("sweep", "show", directory, "--group-by", "tp", "--json").payload["rows"]
    assert [(row["tp"], row["n_designs"], row["n_optimal"]) for row in found][::2] == [
        (4, 6, 6), (12, 6, 0), (16, 6, 6),
    ]  # fmt: skip
    own = [row for row in _optimal(rows) if (row["tp"], row["objective"]) == (16, "performance")]
    best = min(own, key=lambda row: row["step_time_s"])
    shown = next(row for row in found if row["tp"] == 16 and row["objective"] == "performance")
    assert (shown["best_row"], shown["best_seconds_per_sequence"]) == (
        best["row"],
        best["seconds_per_sequence"],
    )


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shapes of the same time but for rounding, the dear one a hair faster; an odd name."""
    here = tmp_path_factory.mktemp("tied")
    axes = {
        "budget": [100, 400],
        "shape": {
            "topologies": ["SW(64)_SW(64)", "RI(64)_RI(64)", "RI(64)_RI(8)_RI(8)"],
            "tiers": ["chiplet", "node", "pod"],
        },
    }
    base = SWEEP["base"] | {  # type: ignore[operator]
        "parallelism": {"tp": 8, "dp": 512},
        "global_batch": 4096,
        "training_loop": "tp_dp_overlap",
    }
    (here / "sweep.yaml").write_text(yaml.safe_dump({"base": base, "axes": axes}, sort_keys=False))
    run_sweep(load_sweep(here / "sweep.yaml"), here / "run[1]")
    return here / "run[1]"


def test_of_equally_fast_designs_the_cheapest_is_the_best(run: Run, tied: Path) -> None:
    """Times of one budget are equal to 4e-15: no dear one may pass for the best by that."""
    every = run("sweep", "show", tied, "--csv", "-").out
    rows = list(csv.DictReader(io.StringIO(every)))
    budgets = [[row for row in rows if row["budget"] == budget] for budget in ("100", "400")]
    for same in budgets:
        times = [float(row["step_time_s"]) for row in same]
        assert 0 < max(times) / min(times) - 1 < 1e-13
    slow, fast = (min(same, key=lambda row: float(row["cost_usd"])) for same in budgets)
    assert float(min(budgets[1], key=lambda row: float(row["step_time_s"]))["cost_usd"]) > float(
        fast["cost_usd"]
    )
    found = run("sweep", "show", tied, "--pareto", "--json").payload["rows"]
    assert [row["row"] for row in found] == [int(fast["row"]), int(slow["row"])]
    found = run("sweep", "show", tied, "--top", "1", "--json").payload["rows"]
    assert [row["row"] for row in found] == [int(fast["row"])]
    found = run("sweep", "show", tied, "--group-by", "budget", "--json").payload["rows"]
    assert [(row["best_row"], row["best_cost_usd"]) for row in found] == [
        (int(row["row"]), float(row["cost_usd"])) for row in (slow, fast)
    ]


def test_bandwidths_of_a_figure_are_one_design(tied: Path, directory: Path) -> None:
    """A fabric of two dimensions does not borrow the third one of another."""
    for folder_, axis in ((tied, "budget"), (directory, "budget"), (directory, "shape")):
        results = Results.at(folder_)
        names = [name for name in results.columns if name.startswith("bandwidth_dim")]
        found = results.fastest([axis], ["row", *names]).dicts()
        rows = {row["row"]: row for row in results.everything().dicts()}
        time = results.time_column
        for best in found:
            assert all(best[name] == rows[best["row"]][name] for name in [axis, *names])
            least = min(row[time] or 1e99 for row in rows.values() if row[axis] == best[axis])
            assert rows[best["row"]][time] == pytest.approx(least, rel=1e-12)


def test_sql_and_csv(run: Run, directory: Path, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    query = "SELECT count(*) AS n, max(budget) AS most FROM designs"
    assert run("sweep", "show", directory, "--sql", query, "--json").payload["rows"] == [
        {"n": 36, "most": 900.0}
    ]
    out = run("sweep", "show", directory, "--csv", "-").out
    read = list(csv.DictReader(io.StringIO(out)))
    assert [int(row["row"]) for row in read] == list(range(36))
    times = [float(row["step_time_s"]) for row in read if row["step_time_s"]]
    assert times == [row["step_time_s"] for row in _optimal(rows)]
    assert run("sweep", "show", directory, "--pareto", "--csv", tmp_path / "front.csv").code == 0
    assert (tmp_path / "front.csv").read_text().startswith("row,shape,tp,budget,objective,")


def test_sql_prints_numbers_that_other_programs_read(run: Run, directory: Path) -> None:
    query = "SELECT 1e6::DOUBLE AS a, 87743212.7::DOUBLE AS b, 3.7184321::DOUBLE AS c, 999999.6::DOUBLE AS d"
    shown = run("sweep", "show", directory, "--sql", query).out.splitlines()[1]
    assert shown.split() == ["1000000", "87743213", "3.71843", "1000000"]


def test_messages_are_whole_where_they_are_asked_for(run: Run, directory: Path) -> None:
    flags = ["--where", "status != 'optimal'", "--columns", "row,message"]
    query = "SELECT message FROM designs WHERE status != 'optimal' ORDER BY row LIMIT 1"
    [row] = run("sweep", "show", directory, "--sql", query, "--json").payload["rows"]
    assert len(row["message"]) > 48
    assert " ".join(row["message"].split()) in run("sweep", "show", directory, *flags).out


def test_infinities_are_null_in_json(run: Run, directory: Path) -> None:
    query = "SELECT 'inf'::DOUBLE AS a, ['nan'::DOUBLE, 2] AS b, {'c': '-inf'::DOUBLE} AS d"
    rows = run("sweep", "show", directory, "--sql", query, "--json").payload["rows"]
    assert rows == [{"a": None, "b": [None, 2.0], "d": {"c": None}}]


@pytest.mark.parametrize("arguments", [[], ["--sql", "SELECT * FROM designs"], ["--csv", "-"]])
def test_a_part_that_is_cut_off_is_named(
    arguments: list[str], run: Run, directory: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "it's a run"
    shutil.copytree(directory, copy)
    assert run("sweep", "show", copy).code == 0
    part = copy / "part-000002.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    outcome = run("sweep", "show", copy, *arguments)
    assert outcome.code == 2
    assert outcome.err == (
        f"{part}: got a file that is broken, expected a whole part of a sweep; "
        f"run the sweep again to mend it\n"
    )


QUESTIONS = (["show"], ["show", "--sql", "SELECT max(cost_usd) FROM designs"], ["design"])


def _asked(question: list[str], copy: Path, run: Run) -> Any:
    rest = ["12", "-o", copy.parent / "plan.yaml"] if question == ["design"] else question[1:]
    return run("sweep", question[0], copy, *rest)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_part_damaged_in_the_middle_is_named(
    question: list[str], run: Run, directory: Path, tmp_path: Path
) -> None:
    """DuckDB would read wrong numbers from it without a word."""
    copy = tmp_path / "run"
    shutil.copytree(directory, copy)
    part = copy / "part-000001.parquet"
    damaged = bytearray(part.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    part.write_bytes(damaged)
    outcome = _asked(question, copy, run)
    assert outcome.code == 2
    assert outcome.err.startswith(f"{part}: got a file that is broken")


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_part_in_the_place_of_another_is_named(
    question: list[str], run: Run, directory: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(directory, copy)
    parts = [copy / f"part-00000{i}.parquet" for i in (0, 1)]
    shutil.copy(parts[0], parts[1])
    outcome = _asked(question, copy, run)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"{parts[1]}: got rows 0 to 9, those of another part, expected 10 to 19; "
        f"run the sweep again to mend it\n"
    )


@pytest.mark.parametrize("name", ["part-000004.parquet", "part-000001 (copy).parquet"])
def test_a_file_that_is_no_part_is_named(
    name: str, run: Run, directory: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(directory, copy)
    shutil.copy(copy / "part-000001.parquet", copy / name)
    outcome = run("sweep", "show", copy)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"{copy / name}: got a file that is no part of the sweep, "
        f"expected 4 parts from part-000000.parquet on; remove it\n"
    )


def test_table_is_never_wrapped(run: Run, directory: Path) -> None:
    outcome = run("sweep", "show", directory)
    title, same, *lines = outcome.out.splitlines()
    assert title == (
        "sweep, 36 designs: the best 10 of each objective "
        "(step time; performance_per_cost: step time x network cost)"
    )
    assert same == "In all rows: sharded 12.277 GB, 256 sequences a step"
    assert lines[0].split()[0] == "budget"
    assert lines[1].split()[:4] == ["row", "shape", "tp", "GB/s"]
    rows, words = lines[: 2 + 2 * 10], lines[2 + 2 * 10 :]
    assert len({len(line) for line in rows}) == 1
    assert [line.split(":")[0] for line in words] == ["Best"]


def test_what_is_the_same_in_all_rows_stands_above_them(run: Run, tmp_path: Path) -> None:
    run("sweep", "run", "13_tapers", "-o", tmp_path / "tapers")
    shown = run("sweep", "show", tmp_path / "tapers", "--top", "4")
    _, same, *lines = shown.out.splitlines()
    assert same.startswith(
        "In all rows: nic 100 GB/s, objective performance, dim1 450.00 GB/s, dim2 100.00 GB/s, mem"
    )
    assert same.endswith(" GB, 1,024 sequences a step")
    assert [line.split() for line in lines[:2]] == [
        ["dim3"], ["row", "taper", "step", "time", "system", "cost", "GB/s"]
    ]  # fmt: skip
    rows = run("sweep", "show", tmp_path / "tapers", "--top", "4", "--json").payload["rows"]
    assert [line.split()[0] for line in lines[2:-2]] == [str(row["row"]) for row in rows]
    assert {row["bandwidth_dim1_GBps"] for row in rows} == {450}
    assert {row["step_time_s"] / row["seconds_per_sequence"] for row in rows} == {1024}
    assert {row["nic"] for row in rows} == {100}
    assert "In all rows" not in run("sweep", "show", tmp_path / "tapers", "--top", "1").out
    run("sweep", "show", tmp_path / "tapers", "--html", tmp_path / "p.html")
    units = {column["name"]: column["unit"] for column in Page(tmp_path / "p.html").data["columns"]}
    assert (units["nic"], units["taper"]) == ("GB/s", "")
    dull = {c["name"] for c in Page(tmp_path / "p.html").data["columns"] if c["dull"]}
    assert {"objective", "bandwidth_dim1_GBps", "seconds_per_sequence"} <= dull
    assert not dull & {"row", "nic", "taper", "step_time_s", "cost_usd", "bandwidth_dim3_GBps"}


def test_80_columns_hold_a_table_and_say_what_they_do_not(
    run: Run, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in ([], ["--group-by", "budget"], ["--pareto"]):
        shown = run("sweep", "show", directory, *arguments).out.splitlines()
        lines = [line for line in shown if not line.startswith(("Best", "Cheapest"))]
        assert max(map(len, lines)) <= 80  # Of a table; in a pipe a paragraph is one line.
        assert "\N{HORIZONTAL ELLIPSIS}" not in "".join(lines)
    assert any(line.startswith("No room for: ") for line in lines)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_figures_repeat(run: Run, suffix: str, directory: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.{suffix}" for i in range(2)]
    for file in files:
        assert run("sweep", "show", directory, "--plot", file).code == 0
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert len(first) > 1000


def test_figures_of_axes(run: Run, directory: Path, tmp_path: Path) -> None:
    split, heat = tmp_path / "split.svg", tmp_path / "map.svg"
    run("sweep", "show", directory, "--plot", split, "--x", "shape")
    run("sweep", "show", directory, "--plot", heat, "--x", "budget", "--y", "tp")
    assert "bandwidth of the fastest design" in split.read_text()
    assert "dim3" in split.read_text()
    assert "Least step time, s, by budget and tp" in heat.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sql", "SELECT nothing FROM designs"], "--sql: got Binder Error"),
        (["--sql", ""], "--sql: got nothing, expected one SELECT"),
        (["--sql", "COPY designs TO 'x.csv'"], "--sql: got COPY, expected one SELECT"),
        (["--sql", "ATTACH 'x.db'"], "--sql: got ATTACH, expected one SELECT"),
        (["--sql", "SELECT 1; DROP VIEW designs"], "--sql: got SELECT, DROP, expected one SELECT"),
        (["--sql", "SELECT * FROM read_text('/etc/hosts')"], "--sql: got Permission Error"),
        (["--where", "tp = 16"], "--where: got 'tp = 16', with one =, expected an expression"),
        (
            ["--where", "shape == 'a=b' and tp = 16"],
            "--where: got \"shape == 'a=b' and tp = 16\", with",
        ),
        (["--where", "shape == 'a=b"], '--where: got "shape == \'a=b" (unterminated'),
        (["--plot-all"], "--plot-all: got --plot-all without --plot"),
        (["--group-by", "budget,tpp"], "--group-by: got no column 'tpp'"),
        (["--group-by", "budgets"], "--group-by: got no column 'budgets'"),
        (["--plot", "x.svg", "--x", "tpp"], "--x, --y: got 'tpp', expected an axis"),
        (["--plot", "x.gif"], "--plot: got 'x.gif', expected a name ending in .svg"),
        (["--html", "x.pdf"], "--html: got 'x.pdf', expected a name ending in .html"),
        (["--html", "/nowhere/x.html"], "/nowhere/x.html: got 'No such file or directory'"),
        (["--csv", "/nowhere/x.csv"], "/nowhere/x.csv: got 'No such file or directory'"),
    ],
)
def test_wrong_questions(arguments: list[str], message: str, run: Run, directory: Path) -> None:
    outcome = run("sweep", "show", directory, *arguments)
    assert outcome.code == 2
    assert outcome.err.startswith(message)


@pytest.mark.parametrize(
    ("bills", "named"), [(None, 4), ((9.0, 8.0, 8.0), 5), ((9.0, None, 9 - 1e-12), 4)]
)
def test_rounding_chooses_no_row(bills: tuple[float | None, ...] | None, named: int) -> None:
    """Of rows equal to 1e-9 all views name that of the least bill, else the first."""
    noise = (1 + 1e-12, 1.0, 1 - 1e-12)
    rows = [
        {"row": i, "step_time_s": x, "cost_usd": 7 / x, **({"bill_usd": b} if bills else {})}
        for i, x, b in zip((4, 5, 6), noise, bills or noise, strict=True)
    ]
    backwards = Points(tuple(reversed(rows)), (), (), "step_time_s", "cost_usd")
    assert [[backwards.rows[i]["row"] for i in one] for one in backwards.fronts.values()] == [
        [named]
    ]
    designs = pa.Table.from_pylist(rows)
    connection = duckdb.connect()
    connection.register("designs", designs)
    equal = "0", "coalesce(bill_usd, 1e300)" if bills else "0.0"
    figures = ["step_time_s", "cost_usd"]
    (placed,) = places.placed(connection, figures, "true", like="0", equal=equal)
    assert placed.row[placed.best].tolist() == [named]
    for figure, then in (figures, figures[::-1]):
        ranks = places.ranks(["0"], figure, (then, *equal), "true")
        query = f"SELECT ranked_row_ FROM ({ranks}) WHERE ranked_place_ = 1"
        assert connection.execute(query).fetchall() == [(named,)]


def test_a_filter_that_nothing_meets_names_the_values_there_are(run: Run, directory: Path) -> None:
    outcome = run("sweep", "show", directory, "--where", "shape == 'RI(16)'")
    assert outcome.code == 0
    assert outcome.err == "no designs; shape is one of: RI(16)_SW(16), RI(4)_RI(8)_SW(8)\n"


def test_a_filter_with_a_rule_of_an_axis_says_how_to_write_it(run: Run, tmp_path: Path) -> None:
    axes = {"rule": ["taper(spine) == 1", "taper(spine) == 2"]}
    sweep = {"base": "0e_rails_2to1", "axes": axes, "set": {"constraints": ["{rule}"]}}
    sweep["set"]["constraints"].append("leaf == 25 GB/s")
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(sweep, sort_keys=False))
    assert run("sweep", "run", tmp_path / "s.yaml", "-o", tmp_path / "run").code == 0
    wrong = run("sweep", "show", tmp_path / "run", "--where", "taper(spine)==2")
    assert wrong.err.endswith("; write rule == 'taper(spine) == 2'\n")
    right = run("sweep", "show", tmp_path / "run", "--where", "rule == 'taper(spine) == 2'")
    assert right.code == 0


def test_directories_that_are_no_sweeps(run: Run, tmp_path: Path) -> None:
    for command in (["show", tmp_path], ["design", tmp_path, "0", "-o", tmp_path / "p.yaml"]):
        outcome = run("sweep", *command)
        assert outcome.code == 2
        assert outcome.err.startswith(f"{tmp_path}: got no readable _manifest.json")


def test_every_row_is_a_plan(
    run: Run, directory: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    for i in (0, 5, 12, 20, 35):
        outcome = run("sweep", "design", directory, str(i), "-o", tmp_path / "plan.yaml", "--force")
        assert outcome.code == 0, outcome.err
        problem = lp.load_plan(tmp_path / "plan.yaml")
        design = lp.optimize(problem)
        assert design.objective == pytest.approx(rows[i]["objective_value"], rel=1e-9)
        found = [rows[i][f"bandwidth_dim{d}_GBps"] for d in range(1, problem.topology.n_dims + 1)]
        step_time_s = problem.step_time.seconds([b * 1e9 for b in found])
        assert float(step_time_s) == pytest.approx(rows[i]["step_time_s"], rel=1e-9)


def test_a_row_with_files_of_the_user(run: Run, tmp_path: Path) -> None:
    """Paths become absolute; maps as axis values come back as they were."""
    book = (folder("cost-models") / "libra-ispass24.yaml").read_text()
    (tmp_path / "book.yaml").write_text(book)
    sweep = {
        "base": "01_gpt3_4d",
        "axes": {"parallelism": [{"tp": 16, "dp": 256}, {"tp": 32, "dp": 128}]},
    }
    plan = yaml.safe_load((folder("examples") / "01_gpt3_4d.yaml").read_text())
    plan |= {"cost_model": "book.yaml"}
    del plan["global_batch"]
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep | {"base": plan}))
    assert run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run").code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run("sweep", "design", tmp_path / "run", "1", "-o", elsewhere / "plan.yaml").code == 0
    written = yaml.safe_load((elsewhere / "plan.yaml").read_text())
    assert written["parallelism"] == {"tp": 32, "dp": 128}
    assert written["cost_model"] == str(tmp_path / "book.yaml")
    (row,) = Results.at(tmp_path / "run").sql("SELECT step_time_s FROM designs WHERE row = 1").rows
    design = lp.optimize(lp.load_plan(elsewhere / "plan.yaml"))
    assert design.objective == pytest.approx(row[0], rel=1e-9)


def test_rows_that_are_not_there(run: Run, directory: Path, tmp_path: Path) -> None:
    outcome = run("sweep", "design", directory, "36", "-o", tmp_path / "p.yaml")
    assert outcome.err == f"{directory}: row 36: got 36, expected 0 to 35\n"
    outcome = run("sweep", "design", directory, "3", "-o", tmp_path / "p.txt")
    assert outcome.err.startswith("-o: got")


def test_plan_counts_and_estimates(run: Run, directory: Path) -> None:
    found = run("sweep", "plan", directory.parent / "sweep.yaml", "--json").payload
    assert (found["n_designs"], found["n_structures"], found["n_parts"]) == (36, 6, 4)
    assert found["core_s"] > 0
    assert 1_000 < found["size_bytes"] < 100_000
    assert found["seed"] == 0
    shown = run("sweep", "plan", directory.parent / "sweep.yaml").out
    assert shown.startswith("36 designs of 36 combinations\n")


def test_run_says_what_it_did(run: Run, tmp_path: Path) -> None:
    example = folder("examples") / "10_budgets.yaml"
    outcome = run("sweep", "run", example, "-o", tmp_path / "run", "--json-progress")
    events = [json.loads(line) for line in outcome.out.splitlines()]
    assert [event["event"] for event in events] == ["progress", "progress", "done"]
    assert (events[-1]["n_done"], events[-1]["statuses"]) == (74, {"optimal": 74})
    assert events[-1]["left_s"] == 0
    again = run("sweep", "run", example, "-o", tmp_path / "run")
    said = f"74 designs in {tmp_path / 'run'} (74 were there)\n74 optimal\nBest: fastest row 36 ("
    assert again.out.startswith(said)
    assert (
        again.out.splitlines()[2:] == run("sweep", "show", tmp_path / "run").out.splitlines()[-2:]
    )


def test_codesign_equals_plans_one_by_one(tmp_path: Path) -> None:
    """The example's answer: each degree's best shape, from `optimize` of every design."""
    text = (folder("examples") / "11_codesign.yaml").read_text()
    sweep = yaml.safe_load(text)
    sweep["axes"]["shape"]["factorizations"]["dims"] = 2
    sweep["axes"]["budget"] = [400]
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    run_sweep(load_sweep(tmp_path / "sweep.yaml"), tmp_path / "run")
    best = {}
    for tp in (8, 16, 32, 64):
        times = {}
        for shape in ("RI(32)_SW(32)", "SW(32)_RI(32)", "SW(32)_SW(32)"):
            plan = sweep["base"] | {
                "fabric": {"topology": shape, "tiers": ["node", "pod"]},
                "parallelism": {"tp": tp, "dp": 1024 // tp},
                "constraints": ["total == 400 GB/s", "pod <= 50 GB/s"],
            }
            (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
            design = lp.optimize(lp.load_plan(tmp_path / "plan.yaml"))
            times[shape] = design.objective / 1024
        best[tp] = min(times.values())
    found = Results.at(tmp_path / "run").grouped("tp").dicts()
    assert {row["tp"]: row["best_seconds_per_sequence"] for row in found} == {
        tp: pytest.approx(seconds, rel=1e-9) for tp, seconds in best.items()
    }
    assert min(best, key=best.__getitem__) == 8


def test_designs_that_are_no_plans_have_the_objective_of_the_base(tmp_path: Path, run: Run) -> None:
    """So that the group of an axis's value holds all its designs."""
    (tmp_path / "s.yaml").write_text("base: 01_gpt3_4d\naxes: {parallelism.tp: [16, 24]}\n")
    run("sweep", "run", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "out"))
    found = Results.at(tmp_path / "out").grouped("parallelism.tp").dicts()
    assert [(one["objective"], one["n_designs"], one["n_optimal"]) for one in found] == [
        ("performance", 1, 1),
        ("performance", 1, 0),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plot", "a.svg", "--x", "message"], "got 'message', expected an axis of the sweep"),
        (["--plot", "a.svg", "--y", "budget"], "got --y without --x"),
        (["--x", "budget"], "got an axis without --plot"),
    ],
)
def test_figures_of_what_is_no_axis_are_refused(
    directory: Path, run: Run, arguments: list[str], said: str
) -> None:
    outcome = run("sweep", "show", str(directory), *arguments)
    assert outcome.code == 2
    assert said in outcome.err


# The page ----------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page holds and what it would load."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.policy = ""
        self._is_data = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.loaded += [str(named[key]) for key in ("src", "href", "srcset") if key in named]
        self._is_data = named.get("id") == "data"
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(named["content"])

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data = json.loads(data)
            self._is_data = False

    @property
    def rows(self) -> list[dict[str, Any]]:
        names = [one["name"] for one in self.data["columns"]]
        return [dict(zip(names, row, strict=True)) for row in self.data["rows"]]


@pytest.mark.parametrize(
    "question",
    [
        ["--pareto"],
        ["--top", "3"],
        ["--group-by", "budget"],
        ["--sql", "SELECT tp, budget, [1] AS a, step_time_s FROM designs"],
        ["--sql", "SELECT 1 AS a WHERE false"],
    ],
)
def test_the_page_holds_the_rows_of_json(
    question: list[str], run: Run, directory: Path, tmp_path: Path
) -> None:
    outcome = run("sweep", "show", directory, *question, "--json", "--html", tmp_path / "p.html")
    assert outcome.err == f"{tmp_path / 'p.html'}\n"
    page = Page(tmp_path / "p.html")
    lists = [
        {
            k: str(v) if isinstance(v, list) else v
            for k, v in row.items()
            if not k.startswith("per_dollar_")  # A page of groups draws one row of each.
        }
        for row in outcome.payload["rows"]
    ]
    assert page.rows == lists
    assert page.loaded == []
    assert page.policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src")
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert set(re.findall("https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}


def test_the_page_of_all_designs(
    run: Run, directory: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert run("sweep", "show", directory, "--html", tmp_path / "p.html").code == 0
    page = Page(tmp_path / "p.html")
    assert [
        {name: one[name] for name in shown} for one, shown in zip(rows, page.rows, strict=True)
    ] == page.rows
    front = {page.rows[i]["row"] for i, _ in page.data["front"]}
    pareto = run("sweep", "show", directory, "--pareto", "--json").payload["rows"]
    assert front == {row["row"] for row in pareto}
    fastest, cheapest = pareto[0], pareto[-1]
    best = min(pareto, key=lambda row: row["step_time_s"] * row["cost_usd"])
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    for title, row in (("Fastest", fastest), ("Cheapest", cheapest), ("Best per dollar", best)):
        card = next(
            one
            for one in text.split('<article class="card">')[1:]
            if title.lower() in one.partition("</h3>")[0].lower()
        )
        assert f"Row {row['row']}. " in card
    assert "12 invalid" in text
    # Values of shapes are too long.
    assert all(label == f"row {page.rows[i]['row']}" for i, label in page.data["front"])


def test_remarks_on_a_filtered_page_are_of_its_rows(
    run: Run, directory: Path, tmp_path: Path
) -> None:
    """Rows that the query leaves out fail nothing there, and are no part of its ties."""
    query = "SELECT * FROM designs WHERE status = 'optimal' AND budget > 200 AND tp = 4"
    shown = run("sweep", "show", directory, "--sql", query)
    assert "invalid" not in shown.err
    assert "invalid" in run("sweep", "show", directory, "--sql", "SELECT * FROM designs").err
    assert run("sweep", "show", directory, "--sql", query, "--html", tmp_path / "p.html").code == 0
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "12 of 36 rows" not in text
    assert "8 of 36 designs over shape" in text
    assert "budget (2 values, 250.5 to 900)" in text
    grouped = run("sweep", "show", directory, "--group-by", "tp", "--html", tmp_path / "g.html")
    assert grouped.code == 0  # Groups are of all rows.
    assert "12 of 36 rows" in (tmp_path / "g.html").read_text(encoding="utf-8")


def test_what_is_hidden_on_a_page_takes_no_room(run: Run, directory: Path, tmp_path: Path) -> None:
    """A rule of its class would else show the choice of works on a page of one model."""
    assert run("sweep", "show", directory, "--html", tmp_path / "p.html").code == 0
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert '<label id="of-work" hidden>' in text
    assert "[hidden] { display: none !important; }" in text
    # Of two rules alike the later one counts: what a filter leaves out is pale on the frontier too.
    assert text.index("path.way.off {") > text.index("path.way.front {")


def test_long_words_of_a_legend_leave_the_width_to_the_picture(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wrap: a line that is longer than the figure would narrow all of its pictures."""
    from matplotlib.figure import Figure

    words = "on all of the frontier: " + ", ".join(f"axis_{i} value_{i}" for i in range(20))
    monkeypatch.setattr(Points, "labels_say", words)
    (axes,) = panels(Results.at(directory), Figure, None, None)
    figure = axes.figure
    figure.draw_without_rendering()
    assert axes.get_window_extent().width > 0.8 * figure.bbox.width
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    said = " ".join(text.get_text() for text in texts)
    assert all(word in said for word in words.split())
    assert "..." not in said
    legends = figure.findobj(Legend)
    assert len(legends) > 4
    for one in legends:
        assert one.get_window_extent().x1 <= figure.bbox.width + 1


def test_the_page_of_a_run_that_is_not_finished(run: Run, directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path / "run")
    (tmp_path / "run" / "part-000002.parquet").unlink()
    assert run("sweep", "show", tmp_path / "run", "--html", tmp_path / "p.html").code == 0
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "The run is not finished: 1 of 4 parts are missing." in text
    assert "The page holds" not in text
    assert len(Page(tmp_path / "p.html").rows) == 26


def test_a_page_of_very_many_designs_has_the_frontier(directory: Path) -> None:
    results = Results.at(directory)
    some = {row["row"] for row in results.designs(12).dicts()}
    assert {row["row"] for row in results.pareto().dicts()} <= some
    assert 8 < len(some) < 30
    assert len(results.designs(36).rows) == 36


def test_a_long_frontier_is_thinned_and_nothing_takes_its_place(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ends and the best per dollar stay, and what the page calls unbeaten is so among all."""
    monkeypatch.setattr("libra_planner.sweeps.figures.places.NEAR", 10.0)
    results = Results.at(directory)
    front = results.pareto().dicts()
    some = {row["row"] for row in results.designs(20).dicts()}
    best = min(front, key=lambda row: row["step_time_s"] * row["cost_usd"])
    assert {front[0]["row"], front[-1]["row"], best["row"]} <= some
    assert {row["row"] for row in front} - some
    monkeypatch.setattr("libra_planner.views.sweeps.points.MOST_POINTS", 20)
    points = Points.of(results)
    shown = {points.rows[i]["row"] for i in points.fronts[()]}
    assert shown < {row["row"] for row in front}
    text = sweep_page.page(results)
    assert f"{len(shown)} of the {len(front)} of the frontier, all that differ by more" in text


def test_a_legend_names_the_dimensions_that_are_drawn(tmp_path: Path) -> None:
    """The fastest is of two dimensions where a slower fabric has three."""
    from matplotlib.figure import Figure

    base = {
        "workload": "resnet50-libra",
        "fabric": {"topology": "{shape}"},
        "parallelism": {"tp": 1, "dp": 4096},
        "cost_model": "libra-ispass24",
    }
    tiers = {2: ["package", "pod"], 3: ["package", "node", "pod"]}
    shapes = {"topologies": ["RI(64)_SW(64)", "RI(16)_FC(8)_SW(32)"], "tiers": tiers}
    axes = {"shape": shapes, "budget": [100, 400]}
    keys = {"base": base, "axes": axes}
    rule = {"set": {"constraints": ["total == {budget} GB/s"]}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(keys | rule, sort_keys=False))
    run_sweep(load_sweep(tmp_path / "s.yaml"), tmp_path / "run")
    results = Results.at(tmp_path / "run", where=["shape == 'RI(64)_SW(64)'"])
    (drawn,) = panels(results, Figure, "budget", None)
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["dim2", "dim1"]


def test_models_have_frontiers_of_their_own(run: Run, tmp_path: Path) -> None:
    """A step of another model is other work: no model beats another one."""
    base = {
        "workload": "{model}",
        "fabric": {"topology": "RI(16)_FC(8)_SW(32)", "tiers": ["package", "node", "pod"]},
        "parallelism": {"tp": 1, "dp": 4096},
        "cost_model": "libra-ispass24",
        "constraints": ["total == {budget} GB/s"],
    }
    axes = {"model": ["resnet50-libra", "turing-nlg-libra"], "budget": [100, 400, 1000]}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"base": base, "axes": axes}, sort_keys=False))
    run_sweep(load_sweep(tmp_path / "s.yaml"), tmp_path / "run")
    points = Points.of(Results.at(tmp_path / "run"))
    assert points.apart == ("model",)
    assert [*points.fronts] == [("resnet50-libra",), ("turing-nlg-libra",)]
    for (model,), front in points.fronts.items():
        assert {points.rows[i]["model"] for i in front} == {model}
        assert len(front) > 1
    text = lp.sweep_results(tmp_path / "run").to_html(tmp_path / "p.html").read_text()
    assert "The best per dollar of each model." in text
    for asked, mixed in ((["--pareto"], " of each model,"), (["--top", 1], "each model and obj")):
        shown = run("sweep", "show", tmp_path / "run", *asked)
        assert mixed in shown.out
        # The rows that are called best are those of the page, of each work by itself.
        for (model,), front in points.fronts.items():
            rows = [points.rows[i]["row"] for i in points.roles(front)]
            [line] = [one for one in shown.out.splitlines() if one.startswith(f"Best of {model}:")]
            assert [int(one) for one in re.findall(r"row (\d+)", line)] == rows
            assert rows[0] == front_rows(run, tmp_path, model)[0]
            assert front_rows(run, tmp_path, model) == [points.rows[i]["row"] for i in front]
    found = run("sweep", "show", tmp_path / "run", "--top", 1, "--json").payload["rows"]
    assert [row["model"] for row in found] == ["resnet50-libra", "turing-nlg-libra"]
    data = Page(tmp_path / "p.html").data
    assert data["works"] == ["resnet50-libra", "turing-nlg-libra"]
    assert [data["works"][k] for k in data["work_of"]] == [row["model"] for row in points.rows]
    # Each model has a picture of its own; beside all of them its colour tells it apart.
    assert data["colour"] == "model"
    for k, (work, each) in enumerate(zip(points.works, data["each"], strict=True)):
        own = points.of_work(work)
        assert {data["work_of"][i] for i, _ in each["front"]} == {k}
        assert [label for _, label in each["front"]] == list(own.labels.values())
        assert each["beyond"] == own.far_words
        assert "model" not in (each["colour"], each["marker"], *each["parallel"])
    grouped = ["--group-by", "budget", "--html", tmp_path / "p.html"]
    assert run("sweep", "show", tmp_path / "run", *grouped).err == ""
    assert Page(tmp_path / "p.html").data["works"] == ["resnet50-libra", "turing-nlg-libra"]
    query = "SELECT row, step_time_s, cost_usd FROM designs"
    run("sweep", "show", tmp_path / "run", "--sql", query, "--html", tmp_path / "p.html")
    assert "No row is called best: the work of a step depends on model." in (
        tmp_path / "p.html"
    ).read_text(encoding="utf-8")
    assert Page(tmp_path / "p.html").data["front"] == []


def test_figures_over_axes_are_of_one_model_each(run: Run, tmp_path: Path) -> None:
    """The small model would be the fastest everywhere; what has no optimum is counted."""
    base = {
        "workload": "{model}",
        "fabric": {"topology": "RI(16)_FC(8)_SW(32)", "tiers": ["package", "node", "pod"]},
        "parallelism": {"tp": "{tp}", "dp": "{4096 / tp}"},
        "cost_model": "libra-ispass24",
        "constraints": ["total == {budget} GB/s"],
    }
    axes = {"model": ["turing-nlg-libra", "msft-1t-libra"], "tp": [3, 16], "budget": [100, 400]}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"base": base, "axes": axes}, sort_keys=False))
    run_sweep(load_sweep(tmp_path / "s.yaml"), tmp_path / "run")
    heat, split = tmp_path / "map.svg", tmp_path / "split.svg"
    assert (
        run("sweep", "show", tmp_path / "run", "--plot", heat, "--x", "tp", "--y", "budget").code
        == 0
    )
    text = heat.read_text()
    for model in axes["model"]:
        assert re.search(rf"Least (step time|time per sequence) of {model},", text)
    assert len(re.findall(r"Left out: 2 of 4 designs: no (step|time)", text)) == 2
    assert text.count(">none<") == 4
    assert run("sweep", "show", tmp_path / "run", "--plot", split, "--x", "budget").code == 0
    assert split.read_text().count("Bandwidth of the fastest design of ") == 2
    # One is enough where the figure has the models along an axis; axes that are given have one.
    run("sweep", "show", tmp_path / "run", "--plot", heat, "--x", "model", "--y", "budget")
    assert re.search("Least (step time|time per sequence), ", heat.read_text())
    with pytest.raises(lp.SpecError, match="got 2 values of model, expected 1 at most"):
        lp.sweep_results(tmp_path / "run").plot("tp", "budget", new_axes())
    assert len(lp.sweep_results(tmp_path / "run").plot("tp", "budget")) == 2
    planned = run("sweep", "plan", tmp_path / "s.yaml").err
    assert "invalid, such as: model turing-nlg-libra, tp 3, budget" in planned


def test_a_frontier_is_drawn_of_each_model_by_itself(run: Run, tmp_path: Path) -> None:
    """On one axis the small model would lie flat at the bottom, and the large one at the top."""
    base = {
        "workload": "{model}",
        "fabric": {"topology": "RI(16)_FC(8)_SW(32)", "tiers": ["package", "node", "pod"]},
        "parallelism": {"tp": 16, "dp": 256},
        "cost_model": "libra-ispass24",
        "constraints": ["total == {budget} GB/s"],
    }
    axes = {"model": ["turing-nlg-libra", "msft-1t-libra"], "budget": [100, 400]}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"base": base, "axes": axes}, sort_keys=False))
    run_sweep(load_sweep(tmp_path / "s.yaml"), tmp_path / "run")
    picture = tmp_path / "f.svg"
    assert run("sweep", "show", tmp_path / "run", "--plot", picture).code == 0
    text = picture.read_text()
    for model in axes["model"]:
        assert re.search(rf"against network cost of {model}<", text)
    assert "model (" not in text.replace("model (2 values", "").replace("model (turing", "")
    points = Points.of(Results.at(tmp_path / "run"))
    for work in points.works:
        own = points.of_work(work)
        assert own.axes == ("budget",)
        assert {row["model"] for row in own.rows} == {work["model"]}
        assert len(own.rows) == 2


def test_a_wrong_column_is_answered_with_the_nearest(run: Run, tmp_path: Path) -> None:
    text = "base: 08_rails\naxes: {nic: [25]}\ncolumns: [bil_usd]\n"
    (tmp_path / "s.yaml").write_text(text)
    said = run("sweep", "plan", tmp_path / "s.yaml").err
    assert re.search(
        r"got 'bil_usd', expected one of \d+ names; did you mean bill_usd\?$", said, re.M
    )


def front_rows(run: Run, folder: Path, model: str) -> list[int]:
    rows = run("sweep", "show", folder / "run", "--pareto", "--json").payload["rows"]
    return [row["row"] for row in rows if row["model"] == model]


def test_no_label_covers_another_one() -> None:
    draw = random.Random(5)
    for _ in range(50):
        spots = [(draw.uniform(0, 300), draw.uniform(0, 200)) for _ in range(30)]
        names = ["x" * draw.randint(1, 12) for _ in spots]
        found = list(free_places(spots, names, (0, 0, 300, 200)))
        assert len(found) > 8
        boxes = [
            (
                spots[i][0] + dx,
                spots[i][1] + dy,
                spots[i][0] + dx + 4.6 * len(names[i]),
                spots[i][1] + dy + 9.5,
            )
            for i, (dx, dy) in found
        ]
        for one, other in itertools.combinations(boxes, 2):
            beside = one[2] <= other[0] or other[2] <= one[0]
            assert beside or one[3] <= other[1] or other[3] <= one[1]
        for box in boxes:
            assert min(box) >= 0
            assert max(box[2] - 300, box[3] - 200) <= 0
            assert not any(box[0] < x < box[2] and box[1] < y < box[3] for x, y in spots)


def planned(run: Run, folder: Path, **keys: Any) -> Outcome:
    """`sweep plan` of variants of a whole model."""
    (folder / "s.yaml").write_text(yaml.safe_dump({"base": "0e_rails_2to1", **keys}))
    return run("sweep", "plan", folder / "s.yaml")


def test_a_fault_of_all_rows_is_told_before_the_estimate(run: Run, tmp_path: Path) -> None:
    """Memory that is too small, of the first rows, hides no unit that is wrong in all of them."""
    axes = {
        "budget": [25, 50],
        "parallelism": [{"tp": 1, "dp": 2048}, {"tp": 8, "pp": 4, "dp": 64}],
    }
    found = planned(run, tmp_path, axes=axes, set={"constraints": ["leaf == {budget} GBs"]})
    assert found.code == 2
    assert found.out == ""
    assert "got the unit 'GBs' in 'leaf == 25 GBs'" in found.err
    assert re.search(r"s\.yaml:\d+:\d+: constraints", found.err)


def test_a_value_that_makes_no_plan_is_told_with_how_many(run: Run, tmp_path: Path) -> None:
    degrees = [{"tp": 8, "pp": n, "dp": 64} for n in (4, 3, 4, 4)]
    degrees[2]["interleave"], degrees[3]["interleave"] = 5, 10
    axes = {"parallelism": degrees, "budget": [25, 50]}
    found = planned(run, tmp_path, axes=axes, set={"constraints": ["leaf == {budget} GB/s"]})
    assert found.code == 0
    said = " ".join(found.err.split())
    assert re.search(r"2 of 8 designs that were read are no plans, all with parallelism \{", said)
    assert "got tp 8 x cp 1 x dp 64 x pp 3 = 1536 NPUs" in said


def test_values_with_units_are_told_by_what_to_write(run: Run, tmp_path: Path) -> None:
    """Not by a value that nobody wrote."""
    axes = {"nic": [25, "100 GB/s"]}
    ports = {
        "constraints": ["leaf == {nic} GB/s"],
        "fabric.realization.port_speed": "{nic * 8} Gbps",
    }
    found = planned(run, tmp_path, axes=axes, set=ports)
    assert found.code == 2
    assert "write its values without units: a unit stands once, behind the braces" in found.err
    assert "'25 GB/s'" not in found.err
    assert "got 'nic', a mix of numbers and text, map or list in 'nic * 8'" in found.err


def test_two_objectives_that_find_one_design_are_one(run: Run, tmp_path: Path) -> None:
    """Rules fix every bandwidth: no tie is of a row and its copy, and a remark says it."""
    rules = ["leaf == {nic} GB/s", "spine == 12.5 GB/s"]
    objectives = ["performance", "performance_per_cost"]
    sweep = {"base": "0e_rails_2to1", "axes": {"nic": [25, 100]}, "objective": objectives}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({**sweep, "set": {"constraints": rules}}))
    assert run("sweep", "run", tmp_path / "s.yaml", "-o", tmp_path / "run").code == 0
    shown = run("sweep", "show", tmp_path / "run", "--remarks")
    assert "4 rows of different objectives are the same designs" in shown.err
    text = lp.sweep_results(tmp_path / "run").to_html(tmp_path / "p.html").read_text()
    assert "What is best" in text
    assert "in a tie of" not in text
    free = ["leaf <= {nic} GB/s", "spine <= {nic} GB/s"]
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({**sweep, "set": {"constraints": free}}))
    assert run("sweep", "run", tmp_path / "s.yaml", "-o", tmp_path / "free").code == 0
    shown = run("sweep", "show", tmp_path / "free", "--remarks")
    assert "same designs" not in shown.err


def test_rules_that_conflict_in_all_rows_end_a_plan(run: Run, tmp_path: Path) -> None:
    rules = ["leaf == {budget} GB/s", "leaf <= 10 GB/s"]
    axes = {"budget": [25, 50]}
    found = planned(run, tmp_path, axes=axes, set={"constraints": rules})
    assert found.code == 3
    assert found.out == ""
    assert "no design can have an optimum: rules that no bandwidth vector meets" in found.err
    axes = {"budget": [5, 50]}
    found = planned(run, tmp_path, axes=axes, set={"constraints": rules})
    assert found.code == 0


def test_a_sweep_without_an_optimum_says_so_everywhere(run: Run, tmp_path: Path) -> None:
    file, to = tmp_path / "none.yaml", tmp_path / "run"
    axes = {"budget": [10, 20], "global_batch": [1000, 1024]}
    rules = ["total == {budget} GB/s", "total >= 90 GB/s"]
    sweep = {"base": "0e_rails_2to1", "axes": axes, "set": {"constraints": rules}}
    file.write_text(yaml.safe_dump(sweep, sort_keys=False))
    planned = run("sweep", "plan", file)
    design, conflict = (
        "global_batch 1024, budget 10",
        "rules that no bandwidth vector meets together",
    )
    assert f"infeasible, such as: {design}: {conflict}: 'total == 10 GB/s'" in planned.err
    assert "None of the designs that were tried has an optimum" in planned.err
    assert "2 infeasible, 2 invalid; " in run("sweep", "run", file, "-o", to).out
    assert "2 infeasible, 2 invalid" in run("sweep", "run", file, "-o", to).out  # Nothing is new.
    pictures = tmp_path / "page.html", tmp_path / "plot.svg"
    assert run("sweep", "show", to, "--html", pictures[0], "--plot", pictures[1]).code == 0
    assert "No design has an optimum: 2 infeasible, 2 invalid." in pictures[0].read_text()
    assert "2 infeasible, 2 invalid" in pictures[1].read_text()


def test_a_fault_of_an_axis_stands_at_the_axis(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("base: 0e_rails_2to1\naxes:\n  parallelism.tp: [7, 3]\n")
    said = run("sweep", "plan", tmp_path / "s.yaml").err
    assert "s.yaml:3:3: parallelism of parallelism.tp 7: got tp 7 x" in said


# Pictures near the frontier -----------------------------------------------------------------------


def _points(rows: list[dict[str, Any]], axes: tuple[str, ...]) -> Points:
    rows = [{"row": i, **row} for i, row in enumerate(rows)]
    return Points(tuple(rows), axes, (), "step_time_s", "cost_usd")


def _tp_nic_taper() -> Points:
    """The axis tp moves the time most, and one of its values is far off."""
    rows = [
        {"tp": tp, "nic": nic, "taper": 1 + 7 * k / 93, "cost_usd": 1e7 * (3 + nic / 50 - k / 400),
         "step_time_s": {8: 8.0, 16: 9.0, 2: 22.0}[tp] + 2 / nic + k / 1000}
        for tp in (2, 8, 16)
        for nic in (12.5, 25, 50, 100)
        for k in range(94)
    ]  # fmt: skip
    return _points(rows, ("tp", "nic", "taper"))


def test_pictures_leave_out_what_is_far_from_the_frontier() -> None:
    points = _tp_nic_taper()
    (front,) = points.fronts.values()
    assert {points.rows[i]["tp"] for i in front} == {8}
    slowest = max(points.rows[i]["step_time_s"] for i in front)
    dearest = max(points.rows[i]["cost_usd"] for i in front)
    for i, row in enumerate(points.rows):  # tp 2 takes more than twice as long.
        assert (i in points.far) == (row["step_time_s"] > 1.25 * slowest)
        assert row["cost_usd"] < 1.25 * dearest
    assert {points.rows[i]["tp"] for i in points.near} == {8, 16}
    assert points.far_words == "376 of 1,128 designs lie beyond the picture, up to 22.253 s"
    whole = replace(points, is_whole=True)
    assert (len(whole.near), whole.far_words) == (1_128, "")
    beside = _points([{"cost_usd": 3e6 - k, "step_time_s": 1.0 + k} for k in range(9)], ())
    assert (beside.far, beside.far_words) == (frozenset(), "")
    alone = _points([{"cost_usd": 1e6, "step_time_s": 1.0 + k} for k in range(9)], ())
    assert alone.near == [0, 1]


def test_a_value_of_an_axis_has_its_nearest_design_in_the_picture() -> None:
    """Up to twice the end of the frontier, which is 2 s and $2M here: 16 does, 32 does not."""
    figures = [(1, 2.0, 8), (2, 1.0, 8), (2.5, 2.5, 8), (2.6, 2, 8), (3.9, 2, 16), (4, 2, 16), (4.1, 2, 32)]  # fmt: skip
    rows = [{"step_time_s": time, "cost_usd": cost * 1e6, "tp": tp} for time, cost, tp in figures]
    assert _points(rows, ("tp",)).near == [0, 1, 2, 4]


def test_what_a_picture_leaves_out_of_one_work_may_lie_within_another() -> None:
    """Far designs of a small model are neither slower nor dearer than those of a large one."""
    figures = ((1.0, 1.1e6), (1.01, 1e6), (9.0, 1.2e6))
    small = [{"step_time_s": time, "cost_usd": cost} for time, cost in figures]
    large = [{"step_time_s": 50.0, "cost_usd": 2e6}]
    rows = [{"row": i, "work": "ab"[i == 3], **row} for i, row in enumerate(small + large)]
    points = Points(tuple(rows), ("work",), ("work",), "step_time_s", "cost_usd")
    words = "1 of 4 designs lies beyond the picture, far from the frontier of its work"
    assert (points.far, points.far_words) == (frozenset({2}), words)


def test_labels_name_and_round_what_differs_on_the_frontier() -> None:
    points = _tp_nic_taper()
    assert points.labels_say == "on all of the frontier: tp 8"
    assert set(points.labels.values()) >= {"nic 100, taper 1", "nic 12.5, taper 8"}
    assert max(map(len, points.labels.values())) <= len("nic 12.5, taper 1.08")
    assert len(set(points.labels.values())) == len(points.labels)


def test_the_axis_that_moves_the_time_most_is_always_shown() -> None:
    rows = [
        {"tp": tp, "a": a, "b": b, "cost_usd": 1e6 + a + b / 10, "step_time_s": tp + (a + b) / 1e4}
        for tp in (1, 2)
        for a in range(12)
        for b in range(20)
    ]
    points = replace(_points(rows, ("a", "b", "tp")), cost="")
    ways, left = points.ways({"colour": math.inf, "marker": 8})
    assert ways == {"tp": "marker", "b": "colour"}
    assert left == ["a"]
    assert points.ways({"colour": math.inf})[0] == {"tp": "colour"}


def test_a_figure_has_the_designs_of_its_question(
    run: Run, directory: Path, tmp_path: Path
) -> None:
    results = lp.sweep_results(directory)

    def n_points(answer: Answer | None) -> int:
        axes = new_axes()
        draw(results, axes, None, None, answer)
        return sum(len(group.get_offsets()) for group in axes.collections)

    assert n_points(results.pareto()) == len(results.pareto().rows)
    assert n_points(None) == 24
    sizes = []
    for question in (["--pareto"], []):
        run("sweep", "show", directory, *question, "--plot", tmp_path / "f.svg")
        sizes.append((tmp_path / "f.svg").read_text().count("<use "))
    assert sizes[0] < sizes[1]
    outcome = run("sweep", "show", directory, "--pareto", "--plot", "f.svg", "--x", "budget")
    assert outcome.code == 2
    assert "got an axis with --pareto, expected one of them; leave --pareto out" in outcome.err
    outcome = run("sweep", "show", directory, "--sql", "SELECT 1 AS a", "--plot", "f.svg")
    assert outcome.code == 2
    assert "--plot: got the columns a, expected seconds_per_sequence and cost_usd" in outcome.err


def test_tiers_behind_one_port_are_not_added(run: Run, tmp_path: Path) -> None:
    run("sweep", "run", "13_tapers", "-o", tmp_path / "tapers")
    run("sweep", "show", tmp_path / "tapers", "--plot", tmp_path / "f.svg", "--x", "nic")
    text = (tmp_path / "f.svg").read_text()
    assert "Tiers in brackets share the NIC: their bandwidths do not add up." in text
    # Where all that are drawn are flat, they add up.
    (tmp_path / "s.yaml").write_text(
        "base: 0e_rails_2to1\naxes:\n  shape:\n    topologies: [SW(8)_SW(256), 'SW(8)_[SW(32)_SW(8)]']"
        "\n    tiers: {2: [node, leaf], 3: [node, leaf, spine]}\n  nic: [25, 50]\nset:\n"
        "  fabric.topology: '{shape}'\n  constraints: ['total == {nic + 450} GB/s']\n"
    )
    run("sweep", "run", tmp_path / "s.yaml", "-o", tmp_path / "run")
    run("sweep", "show", tmp_path / "run", "--plot", tmp_path / "f.svg", "--x", "nic")
    drawn = Results.at(tmp_path / "run").fastest(["nic"], ["shape"]).dicts()
    assert [row["shape"] for row in drawn] == ["SW(8)_SW(256)"] * 2
    assert "share the NIC" not in (tmp_path / "f.svg").read_text()
    assert "dim3, spine" in text
    figure = lp.sweep_results(tmp_path / "tapers").plot("nic")
    heights = {line.get_label(): max(line.get_ydata()) for line in figure.get_lines()}
    assert heights == {"dim1, node": 450.0, "dim2, leaf": 100.0, "dim3, spine": 100.0}


def test_plot_draws_every_model_by_itself(run: Run, tmp_path: Path) -> None:
    sweep = tmp_path / "two.yaml"
    sweep.write_text(
        "base: 0e_rails_2to1\naxes:\n  model: [llama3-8b, llama3-70b]\n  nic: [25, 50]\n"
        'set: {workload: "{model}", constraints.0: "leaf <= {nic} GB/s", '
        "parallelism: {tp: 8, pp: 4, dp: 64}}\n",
        encoding="utf-8",
    )
    assert run("sweep", "run", sweep, "-o", tmp_path / "two").code == 0
    results = lp.sweep_results(tmp_path / "two")
    assert len(results.plot()) == 2
    assert len(results.plot("nic")) == 2
    assert results.plot(axes=new_axes()).get_xlabel()


def test_the_legend_of_a_small_figure_is_below_its_axis(directory: Path) -> None:
    axes = lp.sweep_results(directory).plot()
    axes.figure.draw_without_rendering()
    box = axes.xaxis.label.get_window_extent()
    legends = [one for one in axes.artists if hasattr(one, "legend_handles")]
    assert legends
    assert all(one.get_window_extent().y1 < box.y0 for one in legends)
    # It names units, and no line runs through the labels of designs.
    words = [text.get_text() for one in legends for text in one.get_texts()]
    assert any(re.match(r"budget, GB/s \(\w+\):", text) for text in words)
    labels = [one for one in axes.texts if one.get_bbox_patch() is not None]
    assert labels
    assert all(one.zorder > axes.lines[0].zorder for one in labels)
    assert all(one.get_bbox_patch().get_alpha() > 0.9 for one in labels)


def test_a_page_writes_an_axis_of_mappings_as_the_file_does(run: Run, tmp_path: Path) -> None:
    sweep = tmp_path / "maps.yaml"
    sweep.write_text(
        "base: 0e_rails_2to1\naxes:\n  strategy:\n"
        "    - {tp: 4, cp: 2, pp: 4, dp: 64, interleave: 5}\n    - {tp: 8, pp: 4, dp: 64}\n"
        'set: {parallelism: "{strategy}"}\n',
        encoding="utf-8",
    )
    assert run("sweep", "run", sweep, "-o", tmp_path / "maps").code == 0
    assert run("sweep", "show", tmp_path / "maps", "--html", tmp_path / "m.html").code == 0
    found = {row["strategy"] for row in Page(tmp_path / "m.html").rows}
    assert found == {"{cp: 2, dp: 64, interleave: 5, pp: 4, tp: 4}", "{dp: 64, pp: 4, tp: 8}"}
    # Its headline and the ticks of its axes say degrees in words, tiers by their names.
    text = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert re.search(r'class="card">.*?strategy tp [48], (cp 2, )?pp 4, dp 64', text, re.DOTALL)
    columns = {one["name"]: one for one in Page(tmp_path / "m.html").data["columns"]}
    assert "tp 8, pp 4, dp 64" in columns["strategy"]["ticks"].values()
    assert columns["bandwidth_dim2_GBps"]["label"] == "leaf"


PHONE = """<iframe src=page.html width=390 height=2000 onload='measure(this)'></iframe>
<pre id=found></pre><script>
function measure(frame) {
  const page = frame.contentDocument, box = page.getElementById('parallel'), svg = box.firstChild;
  const found = [page.scrollingElement.scrollWidth, box.scrollWidth - box.clientWidth,
    svg.getAttribute('class'), svg.querySelectorAll('.name').length,
    ...[...svg.querySelectorAll('.soft')].map(one => one.textContent)];
  document.getElementById('found').textContent = 'found: ' + found.join(' ') + '.';
}</script>"""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def _in_browser(file: Path) -> str:
    """The document that a page makes of itself."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--allow-file-access-from-files",
             f"--user-data-dir={file.parent / 'profile'}", "--dump-dom")  # fmt: skip
    command = [str(CHROMIUM), *flags, f"file://{file}"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_parallel_axes_lie_where_a_phone_has_no_room(directory: Path, tmp_path: Path) -> None:
    lp.sweep_results(directory).to_html(tmp_path / "page.html")
    (tmp_path / "frame.html").write_text(PHONE)
    dom = _in_browser(tmp_path / "frame.html")
    [(width, beyond, shape, n_axes, ticks)] = re.findall(
        r"found: (\d+) (-?\d+) (\w*) (\d+) (.*)\.", dom
    )
    assert (int(width) <= 390, int(beyond), shape) == (True, 0, "tall")
    assert int(n_axes) >= 5
    assert {"RI(16)_SW(16)", "RI(4)_RI(8)_SW(8)"} <= {*ticks.split()}


def test_labels_below_a_figure_lie_where_they_have_room(directory: Path) -> None:
    from matplotlib.figure import Figure

    axes = Figure(layout="constrained").add_subplot()
    draw(Results.at(directory), axes, "shape", None)
    assert {one.get_rotation() for one in axes.get_xticklabels()} == {0.0}
    assert "RI(4)_RI(8)_SW(8)" in [one.get_text() for one in axes.get_xticklabels()]


FILTERS = """<script>addEventListener("load", () => {
  const said = FILTERS.map(text => (ask(text), filter(), table(), $("count").textContent));
  document.body.replaceChildren(make("pre", { id: "said" }, said.join("\\n")));
})</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_filter_of_a_page_reads_units_and_values_with_signs(run: Run, tmp_path: Path) -> None:
    """A unit is no word to search for, and what is not understood says what it may have meant."""
    (tmp_path / "sweep.yaml").write_text(
        "base: 08_rails\naxes: {nic: [25, 50, 100], rule: ['leaf >= 0 GB/s', 'taper(spine) == 2']}"
        "\nset: {constraints: ['leaf == {nic} GB/s', '{rule}'], cost_model: clos-2026}\n"
    )
    page = tmp_path / "p.html"
    assert run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run").code == 0
    assert run("sweep", "show", tmp_path / "run", "--html", page).code == 0
    expected = {
        "nic >= 50": "4 of 6", "nic >= 50 GB/s": "4 of 6", "nic >= 50GB/s": "4 of 6",
        "nic >= 50 gb/s": "not understood: nic >= 50 gb/s (expected GB/s, or no unit); 6 of 6",
        "nic >= 50 ms": "not understood: nic >= 50 ms (expected GB/s, or no unit); 6 of 6",
        "cost_usd > 1e6 USD": "3 of 6", "taper(spine) == 2": "3 of 6",
        "rule == taper(spine) == 2 and nic > 50 GB/s": "1 of 6",
        "taper(spine) == 3": "not understood: taper(spine) == 3; 6 of 6",
        "nci >= 50": "not understood: nci >= 50 (did you mean nic?); 6 of 6",
        "leaf(": "0 of 6", "taper": "3 of 6", "nic in [25, 100]": "4 of 6",
        "nic not in [25 GB/s]": "4 of 6", "rule in ['taper(spine) == 2']": "3 of 6",
        "nic in [25 parsec]": "not understood: nic == 25 parsec; 6 of 6",
        "nic >= 3 parsec": "not understood: nic >= 3 parsec (expected GB/s, or no unit); 6 of 6",
    }  # fmt: skip
    text = page.read_text(encoding="utf-8")
    page.write_text(text + FILTERS.replace("FILTERS", json.dumps([*expected])), encoding="utf-8")
    found = re.search(r'<pre id="said">(.*?)</pre>', _in_browser(page), re.DOTALL)
    assert found is not None
    said = unescape(found[1]).split("\n")
    assert dict(zip(expected, said, strict=True)) == {
        text: f"{words} designs" for text, words in expected.items()
    }


@pytest.fixture(scope="module")
def fine(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Many NICs that differ by little."""
    here = tmp_path_factory.mktemp("fine")
    (here / "sweep.yaml").write_text(
        "base: 08_rails\naxes: {nic: {from: 25, to: 26, n: 400}, taper: [1, 2]}\n"
        "set: {constraints: ['leaf == {nic} GB/s', 'taper(spine) == {taper}'], cost_model: "
        "clos-2026}\ncolumns: [step_time_s, cost_usd, seconds_per_sequence, communication_s]\n"
    )
    run_sweep(load_sweep(here / "sweep.yaml"), here / "run")
    return Results.at(here / "run")


def test_a_page_of_some_designs_counts_ties_among_all(
    fine: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The card says what the page of all designs says."""
    whole = sweep_page.page(fine)
    monkeypatch.setattr(points, "MOST_POINTS", 100)
    some = sweep_page.page(fine)
    assert "of 800 designs: evenly spread ones" in some
    ties = [re.findall(r"row \d+, in a tie of [\d,]+ designs", text) for text in (whole, some)]
    assert ties[0] == ties[1] != []


def test_a_page_shows_what_is_near_the_fastest_beside_its_cards(fine: Results) -> None:
    """Not in the list that is folded; and the first printed sheet holds more than a title."""
    text = sweep_page.page(fine)
    said = "Cheapest near the fastest: within 0.1 %"
    assert (text.count(said), text[: text.index("<details")].count(said)) == (1, 1)
    assert ".rest { break-before: auto; }" in text[text.rindex("@media print") :]
    assert 'placeholder="words, or nic &gt;= 25.5013 and taper &gt;= 2"' in text


def test_a_unit_that_is_a_heading_is_written_once(directory: Path) -> None:
    """As tokens/s, whose column has the name of its unit."""
    found = Points.of(Results.at(directory))
    row = {"row": 0, "step_time_s": 1.0, "cost_usd": 1e6, "tokens_per_s": 2e6}
    found = replace(found, rows=(row, row | {"row": 1, "tokens_per_s": 1e6}), axes=(), apart=())
    column = next(x for x in sweep_page.page_data(found)["columns"] if x["name"] == "tokens_per_s")
    assert (column["label"], column["unit"]) == ("tokens/s", "")


def test_digits_of_a_page_tell_rows_of_one_model_apart(directory: Path) -> None:
    """Times of another model, far longer, take none of them away."""
    found = Points.of(Results.at(directory))
    times = {"small": (1.197e-3, 1.199e-3, 1.203e-3), "large": (0.7, 0.8, 0.9)}
    rows = tuple(
        {"row": i, "model": model, "step_time_s": one, "cost_usd": 1e6 - 1e3 * i}
        for model, each in times.items()
        for i, one in enumerate(each)
    )
    found = replace(found, rows=rows, axes=("model",), apart=("model",))
    column = sweep_page.page_data(found)["columns"][2]
    assert (column["name"], column["unit"]) == ("step_time_s", "ms")
    assert column["digits"] >= 3


def test_a_model_without_an_optimum_takes_a_line_of_a_figure(tmp_path: Path) -> None:
    """Half of the picture would be blank."""
    from matplotlib.figure import Figure

    (tmp_path / "sweep.yaml").write_text(
        "base: 0e_rails_2to1\naxes: {workload: [llama3-8b, llama3-405b], nic: [25, 50]}\n"
        "set:\n  parallelism: {tp: 8, dp: 64}\n  global_batch: 1024\n  fidelity: ideal\n"
        "  fabric.topology: SW(8)_[SW(8)_SW(8)]\n"
        "  constraints: ['leaf == {nic} GB/s', 'taper(spine) == 2']\n"
    )
    run_sweep(load_sweep(tmp_path / "sweep.yaml"), tmp_path / "run")
    one, other = panels(Results.at(tmp_path / "run"), Figure, None, None)
    one.figure.draw_without_rendering()
    tall, low = (axes.get_subplotspec().get_position(one.figure).height for axes in (one, other))
    assert low < 0.3 * tall


def test_markers_of_the_frontier_lie_on_its_line(fine: Results) -> None:
    """Among many designs the line has a white rim, which would paint over small markers."""
    from matplotlib.figure import Figure

    (axes,) = panels(fine, Figure, None, None, is_whole=True)
    (line,) = axes.lines
    assert line.get_path_effects()
    front = {tuple(map(float, spot)) for spot in line.get_xydata()}
    above = [one for one in axes.collections if one.zorder > line.zorder]
    assert {tuple(map(float, spot)) for one in above for spot in one.get_offsets()} == front
    assert all(one.zorder > above[0].zorder for one in axes.texts if one.get_bbox_patch())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two models, NICs and tapers."""
    here = tmp_path_factory.mktemp("two")
    (here / "sweep.yaml").write_text(
        "base: 0e_rails_2to1\naxes: {workload: [llama3-8b, llama3-70b], nic: {from: 20, to: 100, "
        "step: 20}, taper: [1, 2, 4]}\nset:\n  parallelism: {tp: 8, pp: 4, dp: 64}\n"
        "  constraints: ['leaf == {nic} GB/s', 'taper(spine) == {taper}']\n"
    )
    run_sweep(load_sweep(here / "sweep.yaml"), here / "run")
    return Results.at(here / "run")


def test_a_value_looks_the_same_in_all_pictures_of_a_file(two: Results) -> None:
    from matplotlib.figure import Figure

    answer = two.sql("FROM designs WHERE workload = 'llama3-70b' OR (nic > 20 AND taper <> 2)")
    looks: dict[str, set[Any]] = {}
    each = panels(two, Figure, None, None, answer)
    for axes in each:
        for legend in (one for one in axes.artists if isinstance(one, Legend)):
            what, *values = legend.legend_handles
            for one in values:
                axis, _, way = what.get_label().partition(" (")
                own = way, one.get_marker(), str(one.get_color()), one.get_markersize()
                looks.setdefault(f"{axis} {one.get_label()}", set()).add(own)
    assert len(each) == 2
    assert {"nic, GB/s 20", "taper 2", "taper 4"} <= {*looks}
    assert all(len(own) == 1 for own in looks.values())


def test_labels_of_every_picture_of_a_file_have_room(
    two: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their places are of the figure as it is in the end, with all its pictures."""
    from matplotlib.figure import Figure

    frames = []

    def seen(spots: Any, names: Any, box: Any, others: Any) -> Any:
        frames.append(box)
        return free_places(spots, names, box, others)

    monkeypatch.setattr(figures, "free_places", seen)
    each = panels(two, Figure, None, None)
    each[0].figure.draw_without_rendering()
    for axes, frame in zip(each, frames, strict=True):
        own = axes.get_window_extent()
        assert (own.extents * 72 / each[0].figure.dpi).tolist() == pytest.approx(frame, abs=0.5)
        labels = [one for one in axes.texts if one.get_bbox_patch()]
        boxes = [one.get_bbox_patch().get_window_extent() for one in labels]
        assert len(boxes) > 3
        assert all(own.contains(*box.min) and own.contains(*box.max) for box in boxes)
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Many NICs under rules with long texts."""
    here = tmp_path_factory.mktemp("ruled")
    (here / "sweep.yaml").write_text(
        "base: 0e_rails_2to1\naxes: {nic: {from: 100, to: 460, step: 20}, rule: ['taper(spine) <= 2', "
        "'leaf <= 500.0000000 GB/s']}\nset: {constraints: ['leaf == {nic} GB/s', "
        "'{rule}', 'taper(spine) == 2']}\nobjective: [performance, cost]\n"
        "columns: [step_time_s, cost_usd, bandwidth, tokens_per_s, tokens_per_s_per_MUSD]\n"
    )
    run_sweep(load_sweep(here / "sweep.yaml"), here / "run")
    return Results.at(here / "run")


def test_a_column_of_numbers_is_a_line_of_its_best_values(ruled: Results, run: Run) -> None:
    """The largest of work per dollar, the least of a time, and the row that has the best."""
    rows = ruled.sql("SELECT * FROM designs WHERE cost_usd IS NOT NULL").dicts()
    nics = sorted({row["nic"] for row in rows})
    for name, best, scale in (
        ("tokens_per_s_per_MUSD", max, 1.0),
        ("step_time_s", min, None),
        ("cost_usd", min, 1e-6),
    ):
        axes = new_axes()
        draw(ruled, axes, "nic", name)
        (line,) = axes.get_lines()
        wanted = [best(row[name] for row in rows if row["nic"] == nic) for nic in nics]
        at = wanted.index(best(wanted))
        factor = scale or line.get_ydata()[0] / wanted[0]
        assert line.get_xdata() == pytest.approx(nics)
        assert line.get_ydata() == pytest.approx([value * factor for value in wanted])
        first = min(row["row"] for row in rows if row[name] == wanted[at])
        assert any(one.get_text().startswith(f"row {first}: ") for one in axes.texts)
        word = {max: "largest", min: "least"}[best]
        assert axes.get_ylabel().startswith(word)
    # Of bandwidths neither the largest nor the least is the best.
    axes = new_axes()
    draw(ruled, axes, "nic", "bandwidth_dim2_GBps")
    assert axes.get_ylabel() == "dim2 of the fastest design, GB/s"
    assert axes.get_lines()[0].get_ydata() == pytest.approx(nics)
    folder = ruled.directory.path
    asked = ("sweep", "show", folder, "--plot", folder / "a.svg", "--x", "nic", "--y")
    assert run(*asked, "step_time_s").code == 0
    assert "did you mean step_time_s?" in run(*asked, "step_tme_s").err
    assert "expected an axis of the sweep, or a column of numbers" in run(*asked, "status").err
    # A column that a sweep can have is told as such, not as a misspelt one.
    assert "write columns: [..., bill_low_usd]" not in run(*asked, "status").err
    assert "write columns: [..., bill_low_usd]" in run(*asked, "bill_low_usd").err
    assert "write columns: [..., bill_usd]" in run(*asked, "billed_step_time_s").err


def test_figures_and_titles_of_a_map_have_room(ruled: Results) -> None:
    """Figures of a map do not touch, have equal digits, and its title leaves it its width."""
    from matplotlib.figure import Figure

    (axes,) = panels(ruled, Figure, "nic", "rule")
    figure = axes.figure
    figure.draw_without_rendering()
    assert axes.get_window_extent().width > 0.55 * figure.bbox.width
    said = [one for one in figure.findobj(Text) if one.get_text()]
    assert all(one.get_window_extent().x1 <= figure.bbox.width for one in said)
    inside = [one for one in axes.texts if re.fullmatch(r"[\d.]+", one.get_text())]
    assert len({len(one.get_text()) for one in inside}) == 1
    boxes = [one.get_window_extent() for one in inside]
    assert len(boxes) == 38
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    # Beside one another they stand a letter apart, or they read as one long number.
    row = sorted((box for box in boxes if box.y0 == boxes[0].y0), key=lambda box: box.x0)
    letter = 0.8 * inside[0].get_fontsize() * figure.dpi / 72
    assert len(row) == 19
    assert min(b.x0 - a.x1 for a, b in itertools.pairwise(row)) > letter
    # Cells that are too narrow have none.
    (axes,) = panels(ruled, lambda **more: Figure(**{**more, "figsize": (4, 4)}), "nic", "rule")
    assert not [one for one in axes.texts if re.fullmatch(r"[\d.]+", one.get_text())]


def test_maps_of_degrees_are_words_in_figures_too() -> None:
    texts = ["{dp: 64, ep: 8, pp: 4, tp: 8}", "{dp: 64, pp: 8, tp: 4}"]
    assert short(texts, "parallelism") == ["tp 8, ep 8, pp 4, dp 64", "tp 4, pp 8, dp 64"]


def test_small_markers_lie_over_large_ones(run: Run, tmp_path: Path) -> None:
    """Three sizes, of which many overlap; each marker has an edge of another colour."""
    from matplotlib.figure import Figure

    keys = {"global_batch": "{batch}", "fixed_cost.per_npu": "{price}"}
    sweep = {
        "base": "0e_rails_2to1",
        "axes": {"batch": [512, 1024, 2048], "nic": [25, 50], "taper": [1, 2, 4],
                 "price": ["5 k$", "6 k$"]},
        "set": {"constraints": ["leaf == {nic} GB/s", "taper(spine) == {taper}"], **keys},
    }  # fmt: skip
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(sweep, sort_keys=False))
    assert run("sweep", "run", tmp_path / "s.yaml", "-o", tmp_path / "run").code == 0
    (axes,) = panels(Results.at(tmp_path / "run"), Figure, None, None)
    drawn = [one for one in axes.collections if len(one.get_offsets())]
    areas = [float(one.get_sizes()[0]) for one in drawn]
    assert areas == sorted(areas, reverse=True)
    assert len(set(areas)) == 3
    assert len({one.zorder for one in drawn}) == 1
    for one in drawn:
        edges, faces = one.get_edgecolor(), one.get_facecolor()
        assert not any(np.allclose(edge, face) for edge in edges for face in faces)


def test_labels_that_a_reader_looks_for_go_farther_before_they_hide_markers() -> None:
    """A point amid others: near places would cover one of them."""
    grid = [(200 + 12 * x, 200 + 12 * y) for x in range(-3, 4) for y in range(-2, 3)]
    ((_, (right, up)),) = free_places([(200, 200)], ["row 2551"], (0, 0, 400, 400), np.array(grid))
    left, low = 200 + right, 200 + up
    inside = [(x, y) for x, y in grid if left - 3 < x < left + 40 and low - 3 < y < low + 12]
    assert not inside


def test_a_sweep_without_a_directory_says_what_is_wrong_first(tmp_path: Path) -> None:
    with pytest.raises(lp.SpecError, match="did you mean 13_tapers"):
        lp.sweep("13_taper")
    with pytest.raises(TypeError, match=r"write lp.sweep\('13_tapers', 'run1'\)"):
        lp.sweep("13_tapers")


def test_a_row_is_a_plan_and_a_whole_optimum(directory: Path) -> None:
    found = lp.sweep_results(directory)
    row = next(one for one in found.everything().dicts() if one["unique"])
    best = found.design(row["row"])
    assert best.step_time_s == pytest.approx(row["step_time_s"], rel=1e-6)
    assert best.bandwidth_GBps[0] == pytest.approx(row["bandwidth_dim1_GBps"], rel=1e-4)
    assert found.plan(row["row"]).optimize().objective == best.objective
    with pytest.raises(lp.SpecError, match="row 1000"):
        found.design(1000)


def test_results_are_rows(directory: Path, tmp_path: Path) -> None:
    found = lp.sweep_results(directory)
    assert len(found) == found.n_rows
    assert found[3]["row"] == 3
    with pytest.raises(IndexError, match="got 100000, expected one of the"):
        found[100_000]
    found.save_plan(3, tmp_path / "row3.yaml")
    with pytest.raises(lp.SpecError, match="add overwrite=True to replace it"):
        found.save_plan(3, tmp_path / "row3.yaml")
    found.save_plan(3, tmp_path / "row3.yaml", overwrite=True)
