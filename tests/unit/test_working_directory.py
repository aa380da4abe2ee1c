"""Files in the working directory are never run as modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from libra_planner.reading.bundled import example
from libra_planner.tui import launch, web

ROOT = Path(__file__).parents[2]

HOSTILE = 'open("ran.txt", "a").write(f"{__name__}\\n")\n'

LIBRARIES = {"libra_planner", "numpy", "scipy", "pyarrow", "pandas", "duckdb", "cvxpy", "clarabel",
    "numba", "pydantic", "yaml", "ruamel", "rich", "textual", "matplotlib",
    "textual_serve", "jinja2", "xlsxwriter", "sitecustomize", "usercustomize"}  # fmt: skip

SWEEP = {
    "base": yaml.safe_load(example("01_gpt3_4d").read_text())
    | {"constraints": ["total == {b} GB/s"]},
    "axes": {"b": [100, 200, 300, 400]},
    "designs_per_part": 1,
}

SCRIPT = """
import sys
from libra_planner.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
"""

CHILD = """
from libra_planner.tui.work import run_command
from libra_planner.tui.work import Ticket

print(run_command(["list", "examples"], Ticket("list", "", print)))
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a file for every module that there is."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in sys.stdlib_module_names | LIBRARIES:
        (folder / f"{name}.py").write_text(HOSTILE)
    return folder


def _run(folder: Path, *words: str | Path) -> str:
    """What Python prints there, where it runs nothing of it by itself."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (folder / "ran.txt").exists(), (folder / "ran.txt").read_text()
    return done.stdout


def test_workers_of_a_sweep(hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(SWEEP))
    script = tmp_path / "libra-planner"  # As pip makes it: Python looks beside it.
    script.write_text(SCRIPT)
    words = ["sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run", "--workers", "2"]
    assert _run(hostile, script, *words).startswith("4 designs in ")


def test_commands_that_the_cockpit_starts(hostile: Path) -> None:
    assert "01_gpt3_4d" in _run(hostile, "-P", "-c", CHILD)


def test_the_cockpit_that_is_served(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    monkeypatch.setattr(web, "serve", lambda command, *_: commands.append(command))
    launch.serve(None, 8000, print)
    assert "usage: libra-planner tui" in _run(hostile, *commands[0][1:], "--help")


def test_the_package_run_by_name(tmp_path: Path) -> None:
    """Python itself imports some modules of ``-m`` before any line of ours runs."""
    for name in ("argparse", "numpy", "yaml", "pydantic", "cvxpy", "rich", "sweep"):
        (tmp_path / f"{name}.py").write_text(HOSTILE)
    assert "Step time" in _run(tmp_path, "-m", "libra_planner", "optimize", example("01_gpt3_4d"))
