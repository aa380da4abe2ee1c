"""The test command itself: the same cases for everybody, and nothing left open at its end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import SLOWEST

ROOT = Path(__file__).parents[2]

DRAWS = """\
from hypothesis import given, strategies

from tests.conftest import random_cases


@random_cases(20)
@given(strategies.integers(0, 10**9))
def test_draws(number):
    with open("drawn.txt", "a") as drawn:
        drawn.write(f"{number}\\n")
"""

SHOWS = """\
import duckdb

from libra_planner.cli.main import main


def test_shows_no_directory():
    assert main(["list", "examples"]) == 0
    assert main(["sweep", "show", "no-such"]) == 2
"""


def _python(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python as people do: without the variables of a continuous integration."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_sessionfinish\n")
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def _drawn(tmp_path: Path, *command: str) -> list[str]:
    (tmp_path / "test_draws.py").write_text(DRAWS)
    (tmp_path / "drawn.txt").unlink(missing_ok=True)
    outcome = _python(tmp_path, *command, "-q", "-p", "no:cacheprovider", "test_draws.py")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return [outcome.stdout, *(tmp_path / "drawn.txt").read_text().split()]


def test_random_tests_draw_the_same_cases_every_time(tmp_path: Path) -> None:
    (_, *first), (_, *again) = _drawn(tmp_path, "pytest"), _drawn(tmp_path, "pytest")
    assert len(first) == 20
    assert first == again


def test_exploring_draws_other_and_more_cases_and_its_seed_repeats_them(tmp_path: Path) -> None:
    (_, *usual), (said, *found) = _drawn(tmp_path, "pytest"), _drawn(tmp_path, "tests.explore")
    assert found[:20] != usual
    assert len(found) == 3 * len(usual)  # A gate is quick; who explores has time.
    (seed,) = re.findall(r"tests\.explore --seed (\d+)", said)
    assert found == _drawn(tmp_path, "tests.explore", "--seed", seed)[1:]


def test_nothing_of_duckdb_is_left_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "test_shows.py").write_text(SHOWS)
    outcome = _python(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "test_shows.py")
    assert outcome.returncode == 0, outcome.stdout
    assert outcome.stderr == ""


def test_the_slowest_files_that_come_first_are_there() -> None:
    assert [name for name in SLOWEST if not (ROOT / "tests" / name).is_file()] == []


def test_the_gate_ends_at_whatever_fails() -> None:
    """In ``a && b`` the shell does not end where ``a`` fails, whatever ``set -e`` says."""
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "set -euo pipefail" in lines
    code = [line for line in lines if not line.lstrip().startswith("#")]
    assert [line for line in code if re.search(r"&& (echo|\\)|&&$", line)] == []


def test_the_gate_sets_nothing_that_people_do_not() -> None:
    exports = re.findall(r"^export (.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert [line.split("=")[0] for line in exports] == ["PATH"]
