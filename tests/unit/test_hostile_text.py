"""Names that are escape sequences, markup, formulas or mathematics are shown as what they are."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from libra_planner.plain_text import visible
from libra_planner.reading.bundled import example, folder
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from tests.conftest import Outcome

Run = Callable[..., Outcome]

HOSTILE = "x\x1b]0;t\x07\x1b[2J\n\r\x9b3mTotal\u202ey\u200fz[/a][red]$a$ $b"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

FLOWS = folder("examples") / "flows"


def _plan(name: str, **changes: Any) -> dict[str, Any]:
    return yaml.safe_load(example(name).read_text()) | changes


def _write(path: Path, value: object) -> Path:
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    return path


def _no_controls(outcome: Outcome) -> None:
    for text in (outcome.out, outcome.err):
        assert not CONTROLS.search(text), (outcome.code, text)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A workload of which every text is hostile, its file's name too."""
    layers = [{"layer": f"{HOSTILE}{i}", "phase": "forward", "compute_ns": 1000} for i in range(2)]
    big = {"kind": "all-reduce", "size_bytes": 51005824}
    layers.append({"layer": HOSTILE, "phase": "weight_grad", "compute_ns": 9, "collective": big})
    workload = {"kind": "table", "covers": "part", "source": HOSTILE, "operations": layers}
    return _write(tmp_path / f"w{HOSTILE.replace('/', '')}.yaml", workload)


@pytest.fixture
def hostile(tmp_path: Path, table: Path) -> Path:
    """A plan whose workload, tiers, prices and rules have hostile names."""
    tier = {"link": 1.0, "switch": 2.0, "nic": 3.0}
    book = {"currency": "USD", "unit": "USD per GB/s", "as_of": "2024-05", "source": HOSTILE}
    prices = _write(tmp_path / "p.yaml", book | {"tiers": {HOSTILE: tier, f"{HOSTILE}2": tier}})
    fabric = {"topology": "RI(4)_SW(8)", "tiers": [HOSTILE, f"{HOSTILE}2"]}
    plan = {
        "workload": str(table),
        "fabric": fabric,
        "parallelism": {"tp": 1, "dp": 32},
        "cost_model": str(prices),
        "constraints": ["total == 100 GB/s"],
    }
    return _write(tmp_path / "plan.yaml", plan)


@pytest.mark.parametrize(
    "command",
    [
        ["optimize", "PLAN"],
        ["evaluate", "PLAN", "--bandwidth", "50,60"],
        ["check", "PLAN"],
        ["pareto", "PLAN", "--points", "3"],
        ["optimize", "PLAN", "--set", "objective=cost"],
        ["optimize", "PLAN", "--set", "constraints=[total == 100 GB/s, total <= 3 GB/s]"],
        ["optimize", "PLAN", "--set", f"fabric.tiers.0={json.dumps(HOSTILE + 'q')}"],
        ["optimize", "PLAN", "--set", f"{HOSTILE}=1"],
        ["optimize", "PLAN", "--set", f"workload={json.dumps(HOSTILE)}"],
        ["optimize", f"/no/{HOSTILE}.yaml"],
        ["optimize", "PLAN", HOSTILE],
    ],
)
def test_no_command_prints_what_a_terminal_would_obey(
    command: list[str], run: Run, hostile: Path
) -> None:
    outcome = run(*(str(hostile) if word == "PLAN" else word for word in command))
    assert outcome.code in (0, 2, 3)
    assert outcome.out or outcome.err
    _no_controls(outcome)


@pytest.mark.parametrize(
    "key", [HOSTILE, f"fabric.{HOSTILE}", f"cost_model_{HOSTILE}"], ids=["top", "inner", "other"]
)
def test_one_fault_is_one_line(key: str, run: Run, tmp_path: Path) -> None:
    plan = _plan("01_gpt3_4d")
    if key.startswith("fabric."):
        plan["fabric"][key.removeprefix("fabric.")] = HOSTILE
    else:
        plan[key] = HOSTILE
    path = _write(tmp_path / "plan.yaml", plan)
    outcome = run("optimize", path)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith(f"{path}:")
    assert r"\x1b]0;t\x07\x1b[2J\x0a\x0d\x9b3mTotal\u202ey\u200fz[/a][red]$a$ $b" in outcome.err
    _no_controls(outcome)


def test_flow_lists(run: Run, tmp_path: Path) -> None:
    rows = list(csv.reader((FLOWS / "flowtracer_flows.csv").read_text().splitlines()))
    for i, name in enumerate((HOSTILE.replace("\n", "").replace("\r", ""), "=1+1", "-5", "@x")):
        rows[i + 1][0] = name
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    (tmp_path / "flows.csv").write_text(text.getvalue())
    rates = tmp_path / "rates.csv"
    fabric = FLOWS / "flowtracer_fabric.yaml"
    outcome = run("flows", fabric, tmp_path / "flows.csv", "--rates", rates, "--trace", rows[1][0])
    assert outcome.code == 0, outcome.err
    _no_controls(outcome)
    assert not CONTROLS.search(rates.read_text())
    written = [row[0] for row in csv.reader(rates.read_text().splitlines())]
    assert written[2:5] == ["'=1+1", "'-5", "'@x"]


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    """A run directory with an axis of formulas and mathematics."""
    tiers = ["$a$", "=1+1", "-2", HOSTILE]
    book = yaml.safe_load((folder("cost-models") / "libra-ispass24.yaml").read_text())
    for tier in tiers:
        book["tiers"][tier] = book["tiers"]["chiplet"]
    _write(tmp_path / "book.yaml", book)
    base = _plan("01_gpt3_4d", cost_model="book.yaml")
    base["fabric"] = base["fabric"] | {"tiers": ["{t}", "package", "node", "pod"]}
    base["constraints"] = ["total == {b} GB/s"]
    sweep = {"base": base, "axes": {"t": tiers, "b": [100, 200]}}
    run_sweep(load_sweep(_write(tmp_path / "sweep.yaml", sweep)), tmp_path / "run")
    return tmp_path / "run"


def test_tables_and_figures_of_a_sweep(run: Run, swept: Path, tmp_path: Path) -> None:
    _no_controls(run("sweep", "show", swept))
    _no_controls(run("sweep", "plan", tmp_path / "sweep.yaml"))
    for options in ([], ["--top", "3"], ["--sql", "SELECT t, t AS '=\x1b[2J' FROM designs"]):
        _no_controls(run("sweep", "show", swept, "--csv", tmp_path / "all.csv", *options))
        assert not CONTROLS.search((tmp_path / "all.csv").read_text())
        _no_controls(run("sweep", "show", swept, "--csv", "-", *options))
    out = run("sweep", "show", swept, "--csv", "-").out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["t"] for row in rows} == {"$a$", "'=1+1", "'-2", visible(HOSTILE)}
    assert {float(row["b"]) for row in rows} == {100.0, 200.0}
    page = tmp_path / "page.html"
    _no_controls(run("sweep", "show", swept, "--html", page))
    assert not CONTROLS.search(page.read_text())
    figure = tmp_path / "figure.svg"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for axes in (["--x", "t"], ["--x", "t", "--y", "b"]):
            outcome = run("sweep", "show", swept, "--plot", figure, *axes)
            assert (outcome.code, outcome.err) == (0, "")
            drawn = figure.read_text()
            assert ">$a$<" in drawn
            assert not CONTROLS.search(drawn)


def test_reports(run: Run, tmp_path: Path) -> None:
    """Tables and pictures too; the workload's name heads the page."""
    name = f"{HOSTILE.replace('/', '')}<script>.yaml"
    (tmp_path / name).write_text(example("02_performance_per_cost").read_text())
    outcome = run("report", tmp_path / name, "-o", tmp_path / "out", "--formats", "html,md,csv")
    assert outcome.code == 0, outcome.err
    _no_controls(Outcome(0, outcome.out.replace(str(tmp_path), ""), outcome.err))
    for path in (tmp_path / "out").iterdir():
        text = path.read_text().replace("\r\n", "\n")
        assert not CONTROLS.search(text), path
        assert "<script>" not in text.replace("<script>\n", "") or path.suffix == ".csv"


def test_arguments_and_paths(run: Run, tmp_path: Path) -> None:
    """As one line each, whatever was typed."""
    outcome = run("evaluate", example("01_gpt3_4d"), "--bandwidth", "1", f"--{HOSTILE}")
    assert outcome.code == 2
    _no_controls(outcome)
    assert "\\x1b[2J" in outcome.err
    assert len(outcome.err.splitlines()) == 2
    folder = tmp_path / HOSTILE.replace("/", "")
    outcome = run("report", example("02_performance_per_cost"), "-o", folder, "--formats", "md")
    assert outcome.code == 0, outcome.err
    _no_controls(outcome)


def test_a_path_of_no_letters_is_shown_as_one(run: Run) -> None:
    assert run("optimize", "").err.startswith("'': got a directory")
