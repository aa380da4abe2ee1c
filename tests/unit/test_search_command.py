"""``libra-planner search``: the page's example, JSON, and bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from libra_planner import example, load_plan
from libra_planner.cli.main import main
from libra_planner.errors import SpecError
from libra_planner.optimizer.optimize import optimize
from libra_planner.studies.search import best_strategy

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
SMALL = ["search", "--model", "llama3-8b", "--npu", "h100-sxm", "--gpus", "16"]


def _words(text: str) -> list[list[str]]:
    """Words by line, figures without their digits: they follow constants that are fitted."""
    return [re.sub(r"[\d,.]+", "#", line).split() for line in text.strip().splitlines()]


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _, command, _, shown, *_ = PAGE.read_text().split("```")
    assert main(command.split()[1:]) == 0
    assert _words(capsys.readouterr().out) == _words(shown)


def test_json_has_the_best_and_what_became_of_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--global-batch", "32,64", "--top", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    parts = ("n_not_fitting", "n_cut", "n_solved", "n_unproven")
    assert found["n_candidates"] == sum(found[name] for name in parts) > 1000
    assert found["n_unproven"] == 0
    assert found["certified"]
    assert len(found["best"]) == 3
    rates = [one["tokens_per_s"] for one in found["best"]]
    assert rates == sorted(rates, reverse=True)
    for one in found["best"]:
        assert one["tp"] * one["cp"] * one["pp"] * one["dp"] == 16
        assert one["memory_GB"] <= found["npu_memory_GB"]


def test_train_says_the_same_of_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--global-batch", "64", "--top", "1", "--json"]) == 0
    (best,) = json.loads(capsys.readouterr().out)["best"]
    names = ("tp", "cp", "pp", "dp", "ep", "interleave", "microbatch", "zero", "recompute")
    flags = [part for name in names for part in (f"--{name}", str(best[name]))]
    assert main(["train", *SMALL[1:], "--global-batch", "64", *flags, "--json"]) == 0
    trained = json.loads(capsys.readouterr().out)
    for name in ("step_time_s", "tokens_per_s", "mfu", "memory_GB"):
        assert trained[name] == pytest.approx(best[name], rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (SMALL, 2, "got no --global-batch"),
        ([*SMALL, "--global-batch", "x"], 2, "--global-batch: got 'x'"),
        ([*SMALL, "--global-batch", "0"], 2, "expected from 1 to"),
        ([*SMALL, "--global-batch", "8", "--fabric", "q"], 2, "--fabric: got the fabric 'q'"),
        ([*SMALL, "--global-batch", "8", "--library", "q"], 2, "--library: got"),
        ([*SMALL[:-1], "1", "--global-batch", "8"], 2, "--gpus: got 1 NPU"),
        (
            ["search", "--model", "llama3-405b", *SMALL[3:], "--global-batch", "8"],
            3,
            "no strategy fits an NPU's memory",
        ),
    ],
)
def test_bad_input(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert message in capsys.readouterr().err


def test_a_plan_has_its_best_strategy_with_the_best_fabric() -> None:
    """The example's own strategy is one of the space: the best is no worse, and certified."""
    problem = load_plan(example("0d_llama3_70b"))
    found = best_strategy(problem)
    (best,) = found.best
    assert found.is_certified
    assert best.objective_per_token * 1024 * 8192 == pytest.approx(best.optimum.objective)
    assert best.optimum.objective <= optimize(problem).objective * (1 + 1e-6)
    assert best.optimum.lower_bound >= best.optimum.objective * (1 - 1e-6)


def test_search_of_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    plan = str(example("0d_llama3_70b"))
    assert main(["search", plan, "--top", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["certified"]
    assert len(found["best"][0]["bandwidth_GBps"]) == 3
    assert main(["search", plan, "--set", "constraints=[memory <= 76 GB]"]) != 0
    assert main(["search", plan, "--npu", "h100-sxm"]) == 2
    assert "beside a plan" in capsys.readouterr().err


def test_a_plan_without_a_whole_step_is_refused() -> None:
    with pytest.raises(SpecError, match="expected the step of a whole model"):
        best_strategy(load_plan(example("01_gpt3_4d")))
