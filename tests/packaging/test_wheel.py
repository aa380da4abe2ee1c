"""The wheel carries its data and works away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, as pip would lay it out."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = next(iter(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_every_data_file(installed: Path) -> None:
    for kind in ("workloads", "cost_models", "examples"):
        bundled = {path.name for path in (installed / "libra_planner" / "_data" / kind).iterdir()}
        assert bundled == {path.name for path in (ROOT / kind).iterdir()}


def test_the_wheel_says_that_it_is_typed(installed: Path) -> None:
    assert (installed / "libra_planner" / "py.typed").is_file()


def test_the_wheel_runs_its_example_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "libra_planner", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout

    example = json.loads(run("list", "examples", "--json"))["examples"]["01_gpt3_4d"]
    assert str(installed) in example
    assert json.loads(run("optimize", example, "--json"))["status"] == "optimal"
