"""What the tests share: plans in temporary folders and the command line, in process."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from libra_planner.cli.main import main

os.environ["SOURCE_DATE_EPOCH"] = "1795435200"  # 2026-11-23: quotes of tests hold on that day.
os.environ.pop("COLUMNS", None)  # Workers of pytest-xdist find 80, where there is no terminal.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("default", **_COMMON, derandomize=True)
settings.register_profile("explore", **_COMMON, derandomize=False, database=None)
settings.load_profile("default")  # `python -m tests.explore` loads the other one.


def random_cases(number: int, **others: Any) -> settings:
    """Draw so many random cases, three times as many where they are explored."""
    return settings(max_examples=number if settings.default.derandomize else 3 * number, **others)


PLAN = """\
workload: gpt3-libra
fabric:
  topology: RI(4)_FC(8)_RI(4)_SW(32)
  tiers: [chiplet, package, node, pod]
parallelism: {tp: 16, dp: 256}
cost_model: libra-ispass24
constraints:
  - total == 500 GB/s
"""


@dataclass(frozen=True)
class Outcome:
    """One run of the command line."""

    code: int
    out: str
    err: str

    @property
    def payload(self) -> dict[str, Any]:
        return dict(json.loads(self.out))


SLOWEST = (
    "unit/test_sweep_runs.py",
    "tui/test_journeys.py",
    "properties/test_search.py",
    "tui/test_snapshots.py",
    "tui/test_apart.py",
    "unit/test_search_command.py",
    "tui/test_sweep_screen.py",
    "tui/test_shown.py",
    "unit/test_command_line.py",
    "oracles/test_brute_force.py",
    "golden/test_extending.py",
    "tui/test_launch.py",
    "tui/test_odd_input.py",
    "tui/test_help.py",
    "tui/test_stacks.py",
    "properties/test_assignment.py",
    "unit/test_calibrate.py",
    "oracles/test_libra.py",
    "packaging/test_suite.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slowest files first, so that all workers end together."""
    last = len(SLOWEST)
    turn = {name: number for number, name in enumerate(SLOWEST)}
    folder = Path(__file__).parent
    names = {item.path: item.path.as_posix().removeprefix(f"{folder}/") for item in items}
    items.sort(key=lambda item: turn.get(names[item.path], last))


def pytest_xdist_auto_num_workers() -> int:
    """Three workers for every two cores: many tests wait for a process, a screen or a clock."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_sessionfinish() -> None:
    """Give all objects back to the garbage collector.

    A command leaves what it has imported out of collections for good, as its process is about to
    end. The second command in one process would keep DuckDB's objects too, which complain.
    """
    gc.unfreeze()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run ``libra-planner`` with the given arguments."""

    def call(*arguments: str | Path) -> Outcome:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(str(stop.code))
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., Path]:
    """Write a plan: the standard one with text replacements, or a text of its own."""

    def write(*replacements: tuple[str, str], text: str = PLAN, name: str = "plan.yaml") -> Path:
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
