"""Whole-process times of commands, as ratios to ``python -c "import cvxpy"`` (run in pairs)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

PLAN = Path(__file__).parents[1] / "examples" / "01_gpt3_4d.yaml"
BASELINE = [sys.executable, "-c", "import cvxpy"]
PLANNER = [sys.executable, "-m", "libra_planner"]
COMMANDS = {
    "--help": [*PLANNER, "--help"],
    "evaluate": [*PLANNER, "evaluate", str(PLAN), "--bandwidth", "300,100,75,25"],
    "optimize": [*PLANNER, "optimize", str(PLAN)],
}
N_RUNS = 11


def seconds(command: list[str]) -> float:
    """Wall time of one finished process."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print one table row per command."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for name, command in COMMANDS.items():
        seconds(command), seconds(BASELINE)  # warm the file cache
        ratios = [seconds(command) / seconds(BASELINE) for _ in range(N_RUNS)]
        row = f"{min(ratios):.3f} | {median(ratios):.3f} | {max(ratios):.3f}"
        print(f"| `{name}` over `import cvxpy` | {row} |")


if __name__ == "__main__":
    main()
