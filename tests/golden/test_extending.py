"""The handbook's module of one's own: what it adds is in every command and in the cockpit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from libra_planner.registry import PLUGINS
from tests.unit.test_extensions import WALK

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page."""
    place = tmp_path_factory.mktemp("extending")
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    for name, content in re.findall(r"```\w+\n# ([\w.]+)\n(.*?)```", text, re.DOTALL):
        with (place / name).open("a", encoding="utf-8") as file:
            file.write(content)
    return place


def _run(folder: Path, *command: object) -> str:
    state = {PLUGINS: "my_cluster", "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=os.environ | state | {"XDG_STATE_HOME": str(folder / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_best_design_has_the_block_the_workload_the_rule_and_the_prices(folder: Path) -> None:
    found = json.loads(_run(folder, "-m", "libra_planner", "optimize", "plan.yaml", "--json"))
    assert (found["topology"], found["workload"]) == ("TO(4x4)_SW(16)", "mlp")
    assert sum(found["bandwidth_GBps"]) == pytest.approx(2e3 / 2e-10 / 256 / 1e9)
    node, pod = found["bandwidth_GBps"]
    assert found["cost_usd"] == pytest.approx(256 * (3.5 * node + 51.0 * pod))
    [rule] = [one for one in found["shadow_prices"] if "rule" in one]
    assert (rule["unit"], rule["bound"]) == ("kW", "<= 2 kW")


def test_a_check_routes_by_the_policy(folder: Path) -> None:
    command = ("-m", "libra_planner", "check", "plan.yaml", "--policy", "first_spine", "--json")
    found = json.loads(_run(folder, *command))
    assert found["policy"] == "first_spine"
    assert [row["block"] for row in found["dimensions"]] == ["TO(4x4)", "SW(16)"]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sweep_has_the_column(folder: Path, workers: int) -> None:
    run = f"run{workers}"
    sweep = ("-m", "libra_planner", "sweep")
    _run(folder, *sweep, "run", "sweep.yaml", "-o", run, "--workers", workers)
    shown = _run(folder, *sweep, "show", run, "--csv", "-")
    head, *rows = shown.splitlines()
    at = head.split(",").index("npu_power_W")
    powers = sorted(float(row.split(",")[at]) for row in rows)
    assert powers == pytest.approx([1e3 / 256 / 2, 2e3 / 256 / 2])


def test_a_report_has_the_section(folder: Path) -> None:
    command = ("report", "plan.yaml", "--check", "first_spine", "-o", "report")
    _run(folder, "-m", "libra_planner", *command)
    for name in ("report.html", "report.md"):
        text = (folder / "report" / name).read_text(encoding="utf-8")
        assert "All designs are cooled by air" in text
        assert "TO(4x4)" in text


def test_the_cockpit_knows_them(folder: Path) -> None:
    shown = _run(folder, "-c", WALK, folder / "plan.yaml")
    assert "first_spine" in shown, shown
    assert "whole links, first_spine" in shown
