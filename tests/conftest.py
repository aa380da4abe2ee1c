"""What the tests share: plans in temporary folders and the command line, in process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from libra_planner.cli.main import main

settings.register_profile(
    "default",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,  # The gate always sees the same cases; people new ones.
)
settings.load_profile("default")

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
