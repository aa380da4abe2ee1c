"""Flow lists on leaf-spine fabrics against cases from outside this project.

``flows/`` has, for each case, the fabric, the flow list and figures from an independent
max-min water-filling in exact rationals that was confirmed with SimGrid 3.32; greedy's and the
least possible counts; and the exact mean of FIM when each flow picks a spine at random.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "flows"
CASES = {path.parent.name: path.parent for path in sorted(FOLDER.glob("*/expected.json"))}
N_SEEDS = 400
MOST_STANDARD_ERRORS = 4.0
"""Of a mean over seeds: about 20 means are tested, each run with the same seeds."""


def _expected(case: str) -> dict:
    return json.loads((CASES[case] / "expected.json").read_text())


def _having(key: str) -> list[str]:
    return [case for case in CASES if key in _expected(case)]


def _files(case: str) -> tuple[Path, Path]:
    return CASES[case] / "fabric.yaml", CASES[case] / "flows.csv"


def _check(run, case: str, policy: str, out: Path, *options: str) -> None:
    expected = _expected(case)[policy]
    given = ("--policy", policy, *options, "--rates", out, "--json")
    result = run("flows", *_files(case), *given)
    assert result.code == 0, result.err
    layers = {layer["name"]: layer for layer in result.payload["layers"]}
    assert {name: layer["max_flows"] for name, layer in layers.items()} == expected[
        "max_link_flows"
    ]
    assert {name: layer["n_flows"] for name, layer in layers.items()} == expected["flows_crossing"]
    assert {name: layer["n_links"] for name, layer in layers.items()} == expected["K"]
    for name, fim in expected["fim"].items():
        assert layers[name]["fim_percent"] == (
            None if fim is None else pytest.approx(fim, rel=1e-12)
        )
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rates_bps = [float(row["rate_GBps"]) * 8e9 for row in rows]
    assert rates_bps == pytest.approx(expected["initial_rate_bps"], rel=1e-9)
    finish_s = [float(row["finish_s"]) for row in rows]
    assert finish_s == pytest.approx(expected["completion_s"], rel=1e-9)
    assert result.payload["makespan_s"] == pytest.approx(expected["makespan_s"], rel=1e-9)


@pytest.mark.parametrize("case", _having("pinned"))
def test_pinned_flows(case: str, run, tmp_path) -> None:
    _check(run, case, "pinned", tmp_path / "rates.csv")


@pytest.mark.parametrize("case", _having("greedy"))
def test_greedy(case: str, run, tmp_path) -> None:
    """The rule of the cases counts flows, whatever their sizes."""
    _check(run, case, "greedy", tmp_path / "rates.csv", "--count-flows")


@pytest.mark.parametrize("case", _having("ecmp_fim_exact_mean"))
def test_mean_of_ecmp_and_the_floor(case: str, run) -> None:
    expected = _expected(case)
    result = run("flows", *_files(case), "--seeds", str(N_SEEDS), "--fim-only", "--json")
    assert result.code == 0, result.err
    layers = {layer["name"]: layer for layer in result.payload["layers"]}
    for name, mean in expected["ecmp_fim_exact_mean"].items():
        fim = layers[name]["fim_percent"]
        error = fim["sd"] / math.sqrt(N_SEEDS)
        assert fim["mean"] == pytest.approx(mean, abs=MOST_STANDARD_ERRORS * error + 1e-9)
    for name, floor in expected["fim_minimum"].items():
        assert layers[name]["fim_floor_percent"]["mean"] == pytest.approx(
            floor, rel=1e-12, abs=1e-9
        )


@pytest.mark.parametrize("case", _having("least_max_link_flows"))
def test_the_program_finds_the_least_maximum(case: str, run, tmp_path: Path) -> None:
    """Of flows, which it counts where all have one size: the cases with several are given one."""
    fabric, flows = _files(case)
    with flows.open(newline="") as file:
        rows = [row | {"bytes": "1000000000"} for row in csv.DictReader(file)]
    with (tmp_path / "flows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    same = tmp_path / "flows.csv"
    result = run("flows", fabric, same, "--policy", "ilp", "--fim-only", "--json")
    assert result.code == 0, result.err
    most = [layer["max_flows"] for layer in result.payload["layers"] if "host" not in layer["name"]]
    assert max(most) == _expected(case)["least_max_link_flows"]
