"""Sweeps with `check:`: every optimum on its links, as `check` finds it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

import libra_planner as lp
from libra_planner.check.links import link_check
from libra_planner.errors import SpecError
from libra_planner.routing.loads import distribution
from libra_planner.routing.policy import Policy
from libra_planner.sweeps.effort.estimate import estimate
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from libra_planner.units import format_time
from libra_planner.views.sweeps.page import page
from libra_planner.views.sweeps.points import Points
from tests.conftest import Outcome

Run = Callable[..., Outcome]
Row = dict[str, Any]

BASE = {
    "workload": "gpt3",
    "fabric": {
        "topology": "{shape}",
        "tiers": ["node", "pod"],
        "realization": {"switch_radix": 8, "port_speed": "400 Gbps", "nics": "{nics}"},
    },
    "parallelism": {"tp": 16, "dp": 16},
    "global_batch": 256,
    "npu": {"name": "h100-sxm", "efficiency_fraction": 0.4},
    "cost_model": "libra-ispass24",
    "constraints": ["total == {budget} GB/s", "pod >= 60 GB/s"],
}
SWEEP = {
    "base": BASE,
    "axes": {
        "shape": ["RI(16)_SW(16)", "RI(32)_SW(8)"],
        "nics": [1, 8],
        "budget": [100, 160, 400],
    },
    "check": {"policy": "ecmp", "seeds": 3, "seed": 5},
    "designs_per_part": 5,
}
ECMP, SEEDS = Policy("ecmp"), range(5, 8)


def written(folder: Path, **keys: Any) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(SWEEP | keys, sort_keys=False))
    return path


def rows_in(folder: Path) -> list[Row]:
    tables = [pq.read_table(path).to_pylist() for path in sorted(folder.glob("part-*"))]
    return [row for table in tables for row in table]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("checks")
    run_sweep(load_sweep(written(here)), here / "run")
    return here / "run"


@pytest.fixture(scope="module")
def rows(directory: Path) -> list[Row]:
    return rows_in(directory)


def figures(row: Row) -> tuple[float | None, ...]:
    return row["fim_percent"], row["fim_floor_percent"], row["effective_step_time_s"]


def alone(plan: Path, row: Row, policy: Policy, seeds: range | None) -> tuple[float | None, ...]:
    """The figures of a row, from its plan and a check of its own."""
    problem = lp.load_plan(plan)
    names = [f"bandwidth_dim{d}_GBps" for d in range(1, problem.topology.n_dims + 1)]
    report = link_check(problem, np.array([row[name] for name in names]) * 1e9).report(
        policy, seeds=seeds
    )
    time_s = distribution(report.effective_step_time_s).mean
    found = distribution(report.fim_percent).mean, report.fim_floor_percent, time_s
    return tuple(None if np.isnan(figure) else figure for figure in found)


def near(figures: tuple[float | None, ...]) -> list[Any]:
    return [None if x is None else pytest.approx(x, rel=1e-12) for x in figures]


def test_rows_are_what_a_check_of_each_plan_finds(
    run: Run, directory: Path, rows: list[Row], tmp_path: Path
) -> None:
    assert len(rows) == 12
    for row in rows:
        plan = tmp_path / "plan.yaml"
        run("sweep", "design", directory, str(row["row"]), "-o", plan, "--force")
        if row["check_message"]:
            with pytest.raises(SpecError) as error:
                alone(plan, row, ECMP, SEEDS)
            assert str(error.value) == row["check_message"]
        else:
            assert list(figures(row)) == near(alone(plan, row, ECMP, SEEDS))
            per_sequence = row["effective_step_time_s"] / 256
            assert row["effective_seconds_per_sequence"] == pytest.approx(per_sequence)


def test_the_plan_of_a_row_checks_the_same(
    run: Run, directory: Path, rows: list[Row], tmp_path: Path
) -> None:
    """The row's plan is optimised anew by the reference."""
    plan = tmp_path / "plan.yaml"
    some = [row for row in rows if row["fim_percent"] is not None][:3]
    assert some
    for row in some:
        run("sweep", "design", directory, str(row["row"]), "-o", plan, "--force")
        found = run("check", plan, "--seeds", "3", "--seed", "5", "--json").payload
        assert found["fim_percent"]["mean"] == pytest.approx(row["fim_percent"], rel=1e-9)
        assert found["fim_floor_percent"] == pytest.approx(row["fim_floor_percent"], rel=1e-9)
        time_s = found["effective_step_time_s"]["mean"]
        assert time_s == pytest.approx(row["effective_step_time_s"], rel=1e-9)
        # The dimension of the line over seeds, its FIM and its floor.
        printed = run("check", plan, "--seeds", "3", "--seed", "5").out
        [line] = [one for one in printed.splitlines() if one.startswith(" FIM % of ")]
        name, floor, mean = re.match(r" FIM % of (\w+), floor ([\d.]+) +([\d.]+)", line).groups()
        assert row["fim_avoidable_dimension"] == name
        assert f"{row['fim_floor_of_dimension_percent']:.2f}" == floor
        assert row["fim_of_dimension_percent"] == pytest.approx(float(mean), abs=1e-3)
        known = [one for one in found["dimensions"] if one["fim_percent"]["mean"] is not None]
        avoidable = (x["fim_percent"]["mean"] - (x["fim_floor_percent"] or 0) for x in known)
        assert row["fim_avoidable_percent"] == pytest.approx(max(avoidable), abs=1e-9)


def test_tables_have_the_fim_that_routing_could_avoid(run: Run, directory: Path) -> None:
    """With its dimension, also where the dimension with the most FIM loses nothing."""
    shown = run("sweep", "show", directory, "--pareto", "--fim").out
    assert "FIM of the dimension with the most (fim_percent)" in shown
    assert " FIM %  avoidable %  " in shown
    assert "floor % 50.00, avoidable in dim2" in shown


def test_links_that_cannot_be_built_keep_their_optimum(rows: list[Row]) -> None:
    failed = [row for row in rows if row["check_message"]]
    assert {row["nics"] for row in failed} == {1}
    for row in failed:
        assert (row["status"], row["message"]) == ("optimal", None)
        assert row["cost_usd"] > 0
        assert figures(row) == (None, None, None)
        assert "nics: got 1 NICs of 50 GB/s, expected 2" in row["check_message"]
    assert {row["check_message"] is None for row in rows if row["nics"] == 8} == {True}


def test_the_frontier_says_how_many_have_no_check(
    run: Run, directory: Path, rows: list[Row]
) -> None:
    n_failed = sum(row["check_message"] is not None for row in rows)
    said = f"{n_failed} optimal designs could not be checked and have no place here; "
    for arguments in (
        ["--pareto", "--fim"],
        ["--by", "effective"],
        ["--pareto", "--by", "effective"],
    ):
        outcome = run("sweep", "show", directory, *arguments)
        assert outcome.code == 0
        assert outcome.err.splitlines(keepends=True)[-1] == f"{said}check_message says why\n"
    answer = run("sweep", "show", directory, "--pareto", "--fim", "--json").payload
    assert answer["n_unchecked"] == n_failed > 0
    ideal = run("sweep", "show", directory, "--pareto", "--by", "ideal")
    assert "could not be checked" not in ideal.err


def test_a_checked_sweep_ranks_by_the_time_on_the_links(
    run: Run, directory: Path, rows: list[Row]
) -> None:
    """The table, the frontier, the best lines and the cards of the page name the same rows."""
    n = sum(row["effective_step_time_s"] is not None for row in rows)
    for asked in ([], ["--pareto"]):
        usual = run("sweep", "show", directory, *asked)
        assert usual.out == run("sweep", "show", directory, *asked, "--by", "effective").out
        assert f"Best among the {n} rows with a time on their links: " in usual.out
        assert "plan's model" not in usual.out
    results = lp.sweep_results(directory)
    assert results.by == "effective"
    text = page(results)
    best = re.search(r"best per dollar(?: and cheapest)? row (\d+)", usual.out)
    assert best is not None
    assert f"Row {best[1]}. " in text
    assert " on its links" in text
    other = run("sweep", "show", directory, "--by", "ideal").out
    assert "Best in the plan's model: " in other
    assert "Best on the links (--by effective): " in other


def test_a_sweep_of_which_nothing_was_checked_ranks_by_the_model(tmp_path: Path) -> None:
    base = BASE | {"fabric": {**BASE["fabric"], "realization": {"switch_radix": 4, "nics": 8}}}  # type: ignore[dict-item]
    axes = {"shape": ["RI(16)_SW(16)"], "budget": [100]}
    run_sweep(load_sweep(written(tmp_path, base=base, axes=axes)), tmp_path / "run")
    assert rows_in(tmp_path / "run")[0]["check_message"]
    assert lp.sweep_results(tmp_path / "run").by == "ideal"


def test_a_query_without_the_time_on_links_is_drawn_by_the_model(
    directory: Path, tmp_path: Path
) -> None:
    results = lp.sweep_results(directory)
    answer = results.sql("SELECT row, budget, seconds_per_sequence, cost_usd FROM designs")
    assert Points.of(results, answer).time == "seconds_per_sequence"
    assert Points.of(results).time == "effective_step_time_s"


def test_a_report_of_a_row_says_what_its_sweep_found(
    run: Run, directory: Path, rows: list[Row], tmp_path: Path
) -> None:
    row = next(row for row in rows if row["effective_step_time_s"] is not None)
    design = f"{directory}:{row['row']}"
    said = run("report", design, "--allow-missing", "-o", tmp_path / "report").out
    time_s = format_time(row["effective_step_time_s"])
    assert "not checked on its links yet" not in said
    assert f"on the links: A {time_s} a step" in " ".join(said.split())
    assert "add --check ecmp --seeds 3." in " ".join(said.split())
    other = run(
        "report", design, "--set", "global_batch=512", "--allow-missing", "-o", tmp_path / "r"
    )
    assert "not checked on its links yet" in other.out  # Of another plan than the sweep's.


def beats(one: Row, other: Row, names: tuple[str, ...]) -> bool:
    """Whether one is no worse in every figure that the other has, and better in some."""
    pairs = [(one[name] or 0.0, other[name]) for name in names if other[name] is not None]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


@pytest.mark.parametrize("by", ["ideal", "effective", None])
def test_the_frontier_with_fim(by: str, run: Run, directory: Path, rows: list[Row]) -> None:
    """By the times on the links unless the plan's are asked for: FIM is of the links too."""
    time = "seconds_per_sequence" if by == "ideal" else "effective_seconds_per_sequence"
    names = (time, "cost_usd", "fim_percent")
    ranked = ["--by", by] if by else []
    fine = [row for row in rows if row["check_message"] is None]
    expected = {a["row"] for a in fine if not any(beats(b, a, names) for b in fine)}
    answer = run("sweep", "show", directory, "--pareto", "--fim", *ranked, "--json").payload
    found = answer["rows"]
    assert {row["row"] for row in found} <= expected  # Of equals the first has the place.
    assert {tuple(row[n] or 0 for n in names) for row in found} == {
        tuple(row[n] or 0 for n in names) for row in fine if row["row"] in expected
    }
    assert [row[time] for row in found] == sorted(row[time] for row in found)


def test_the_best_by_effective_time(run: Run, directory: Path, rows: list[Row]) -> None:
    time = "effective_seconds_per_sequence"
    found = run("sweep", "show", directory, "--top", "20", "--by", "effective", "--json").payload
    expected = sorted(row[time] for row in rows if row[time] is not None)
    assert [row[time] for row in found["rows"]] == expected
    grouped = run("sweep", "show", directory, "--group-by", "shape", "--by", "effective").out
    assert "best effective" in grouped
    assert "In all rows: 256 sequences a step" in grouped


def test_without_a_choice_of_path_fim_is_null_and_counts_as_0(run: Run, tmp_path: Path) -> None:
    base = BASE | {"fabric": BASE["fabric"] | {"realization": {"switch_radix": 64}}}  # type: ignore[operator]
    axes = {"shape": ["RI(16)_SW(16)"], "budget": [200, 400]}
    run_sweep(load_sweep(written(tmp_path, base=base, axes=axes)), tmp_path / "run")
    for row in rows_in(tmp_path / "run"):
        assert (row["fim_percent"], row["fim_floor_percent"], row["check_message"]) == (None,) * 3
        assert row["effective_step_time_s"] == pytest.approx(row["step_time_s"], rel=1e-12)
    outcome = run("sweep", "show", tmp_path / "run", "--pareto", "--fim", "--json")
    assert len(outcome.payload["rows"]) == 2
    assert outcome.err == ""


def test_designs_that_no_batch_holds_are_checked_too(run: Run, tmp_path: Path) -> None:
    pipelined = {"fidelity": "pipelined", "chunks": "auto"}
    axes = {"shape": ["RI(16)_SW(16)"], "nics": [8], "budget": [160, 400]}
    path = written(tmp_path, base=BASE | pipelined, axes=axes)
    run_sweep(load_sweep(path), tmp_path / "run")
    for row in rows_in(tmp_path / "run"):
        run(
            "sweep",
            "design",
            tmp_path / "run",
            str(row["row"]),
            "-o",
            tmp_path / "plan.yaml",
            "--force",
        )
        assert list(figures(row)) == near(alone(tmp_path / "plan.yaml", row, ECMP, SEEDS))
        assert row["fim_percent"] > 0


@pytest.mark.parametrize(
    ("check", "policy"),
    [
        ({"policy": "greedy", "per_collective": True}, Policy("greedy", per_collective=True)),
        ({"policy": "spray"}, Policy("spray")),
        ({"hash": "crc32", "enhanced": True}, Policy("ecmp", hash="crc32", enhanced=True)),
        ({}, ECMP),
    ],
    ids=["greedy", "spray", "crc32", "defaults"],
)
def test_options_are_those_of_check(check: Row, policy: Policy, run: Run, tmp_path: Path) -> None:
    axes = {"shape": ["RI(16)_SW(16)"], "nics": [8], "budget": [160, 400]}
    run_sweep(load_sweep(written(tmp_path, check=check, axes=axes)), tmp_path / "run")
    for row in rows_in(tmp_path / "run"):
        run(
            "sweep",
            "design",
            tmp_path / "run",
            str(row["row"]),
            "-o",
            tmp_path / "plan.yaml",
            "--force",
        )
        assert list(figures(row)) == near(alone(tmp_path / "plan.yaml", row, policy, None))


def test_processes_write_the_same(directory: Path, tmp_path: Path) -> None:
    run_sweep(load_sweep(written(tmp_path)), tmp_path / "run", n_workers=2)
    for path in sorted(directory.glob("part-*")):
        assert (tmp_path / "run" / path.name).read_bytes() == path.read_bytes()


def test_a_run_goes_on_with_the_same_check_only(directory: Path, tmp_path: Path) -> None:
    sweep = load_sweep(written(tmp_path))
    run_sweep(sweep, tmp_path / "run")
    (tmp_path / "run" / "part-000001.parquet").unlink()
    assert run_sweep(sweep, tmp_path / "run").n_solved == 5
    for check in ({"policy": "ecmp", "seeds": 4, "seed": 5}, {"policy": "greedy"}, None):
        keys = {} if check is None else {"check": check}
        other = {key: value for key, value in SWEEP.items() if key != "check"} | keys
        (tmp_path / "other.yaml").write_text(yaml.safe_dump(other, sort_keys=False))
        with pytest.raises(SpecError, match=r"another sweep \(different .*check\)"):
            run_sweep(load_sweep(tmp_path / "other.yaml"), tmp_path / "run")


def test_without_the_key_nothing_is_checked(run: Run, tmp_path: Path) -> None:
    sweep = {key: value for key, value in SWEEP.items() if key != "check"}
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep, sort_keys=False))
    found = load_sweep(tmp_path / "sweep.yaml")
    assert found.check is None
    assert estimate(found).n_routed == 0
    run_sweep(found, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "_manifest.json").read_text())
    assert "check" not in manifest["spec"]
    assert not {"fim_percent", "check_message"} & set(manifest["schema"])
    fix = "write check: {policy: ecmp} in the sweep, and run it into a new directory\n"
    for arguments, flag in ((["--pareto", "--fim"], "--fim"), (["--by", "effective"], "--by")):
        outcome = run("sweep", "show", tmp_path / "run", *arguments)
        assert outcome.code == 2
        assert outcome.err.startswith(f"{flag}: got no column ")
        assert outcome.err.endswith(fix)


def test_plan_counts_and_times_the_routings(run: Run, directory: Path) -> None:
    path = directory.parent / "sweep.yaml"
    found = run("sweep", "plan", path, "--json").payload
    # Of RI(16)_SW(16) one NIC and eight; RI(32)_SW(8) is on single switches, routed all the same.
    assert 2 <= found["n_routed"] <= 8
    assert "Links that are routed: ecmp, 3 seeds; about" in run("sweep", "plan", path).out


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("{policy: ecpm}", "2:17: check.policy: got 'ecpm', expected"),
        ("{policy: greedy, hash: crc32}", "2:31: check.hash: got policy greedy, expected ecmp"),
        ("{hash: md5}", "2:15: check.hash: got 'md5', expected"),
        ("{seeds: 0}", "2:16: check.seeds: got 0, expected at least 1"),
        ("{seed: -1}", "2:15: check.seed: got -1, expected at least 0"),
        ("{time_limit: 2}", "2:21: check.time_limit: got policy ecmp, expected ilp"),
        ("{policy: ilp, time_limit: 0}", "2:34: check.time_limit: got a time limit of 0 s"),
        ("{placement: rail}", "2:9: check.placement: got the unknown key 'placement'"),
        ("true", "2:8: check: got true, expected"),
    ],
)
def test_faults_have_their_place(check: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(f"base: 01_gpt3_4d\ncheck: {check}\naxes: {{global_batch: [8192]}}\n")
    with pytest.raises(SpecError, match=re.escape(f"sweep.yaml:{message}")):
        load_sweep(path)


def test_no_axis_is_called_like_a_column(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("base: 01_gpt3_4d\naxes: {fim_percent: [1]}\n")
    with pytest.raises(SpecError, match="expected a name that no other axis and no column has"):
        load_sweep(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fim"], "--fim: got --fim without --pareto"),
        (["--by", "effective", "--sql", "SELECT 1"], "--by: got --by with --sql"),
    ],
)
def test_options_that_nothing_reads(
    arguments: list[str], message: str, run: Run, directory: Path
) -> None:
    outcome = run("sweep", "show", directory, *arguments)
    assert outcome.code == 2
    assert outcome.err.startswith(message)


def test_the_whole_directory_is_one_table_of_pandas(directory: Path, rows: list[Row]) -> None:
    """Whatever else is there is passed over: the manifest, the lock, what a killed run left."""
    (directory / ".part-killed").write_bytes(b"half of it")
    try:
        table = pd.read_parquet(directory)
    finally:
        (directory / ".part-killed").unlink()
    assert table["row"].tolist() == [row["row"] for row in rows] == list(range(12))
    assert list(table.columns) == list(rows[0])


BUSY = """\
base: 0e_rails_2to1
axes: {spine: [6.25, 25]}
set:
  constraints: ["leaf == 50 GB/s", "spine == {spine} GB/s"]
  parallelism: {tp: 4, cp: 2, pp: 4, dp: 64, interleave: 20}
"""


def test_busy_links_of_the_best_rows_are_said_where_nothing_is_checked(
    run: Run, tmp_path: Path
) -> None:
    """Row 0 is the cheapest, and sends over its spines for most of a step."""
    (tmp_path / "sweep.yaml").write_text(BUSY)
    done = run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run")
    said = "Links of the best: in row 0, dim3 is busy for 49% of the step in the model; ECMP puts "
    assert done.err.count(said) == 1
    assert "; write check: {policy: ecmp} in the sweep, and run it" in done.err
    assert "links of the best rows are busy" in run("sweep", "show", tmp_path / "run").err
    assert said in page(Results.at(tmp_path / "run"))
