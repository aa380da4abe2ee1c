"""docs/loops.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.plan import loops
from libra_planner.step.layers import LOOPS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "loops.md").read_text()
ROWS = re.findall(
    r"^\| (\w+) \| (\w*) ?\| ([\d.]+) s \| ([\d., ]+) \| ([\d.]+) s \|$", TEXT, re.MULTILINE
)


def test_the_named_loops_are_the_expressions_shown() -> None:
    shown = dict(re.findall(r"^\| `(\w+)` \| `(.*)` \|$", TEXT, re.MULTILINE))
    assert {name: loops.parse_loop(text) for name, text in shown.items()} == dict(LOOPS)


def test_the_grammar_is_the_parsers() -> None:
    grammar = re.search(r"Grammar .*?::\n\n(.*?)\n$", loops.__doc__ or "", re.DOTALL)
    assert grammar
    assert grammar.group(1) in TEXT


def test_the_loop_of_your_own_runs(tmp_path: Path, run) -> None:
    (own,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    example = (ROOT / "examples" / "04_overlap.yaml").read_text()
    plan = tmp_path / "plan.yaml"
    plan.write_text(example.replace("training_loop: tp_dp_overlap\n", own))
    result = run("evaluate", plan, "--bandwidth", "62,19,14,5", "--json")
    assert result.code == 0, result.err
    # 9 operators of 96 layers and the embedding, 20 us each.
    named = run("evaluate", lp.example("04_overlap"), "--bandwidth", "62,19,14,5", "--json")
    extra = result.payload["step_time_s"] - named.payload["step_time_s"]
    assert extra == pytest.approx(865 * 20e-6, rel=1e-9)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:2]))
def test_the_figures_of_the_example(row: tuple[str, ...]) -> None:
    assert len(ROWS) == 5
    loop, contention, best, vector, at_no_overlap = row
    settings = [f"training_loop={loop}", f"contention={contention or 'true'}"]
    problem = lp.load_plan(lp.example("04_overlap"), settings)
    design = lp.optimize(problem)
    serial = lp.optimize(lp.load_plan(lp.example("04_overlap"), "training_loop=no_overlap"))
    assert f"{design.objective:.3f}" == best
    seconds = float(problem.step_time.seconds(serial.bandwidth_bytes_per_s))
    assert f"{seconds:.3f}" == at_no_overlap
    shown = np.array([float(x) for x in vector.split(", ")])
    assert np.abs(design.bandwidth_bytes_per_s / 1e9 - shown).max() <= 0.0501
