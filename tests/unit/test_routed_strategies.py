"""Strategies on their links: what is checked beside the best of the plan's model, and said of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.api.checks import Routed
from libra_planner.cli.main import main
from libra_planner.inputs.plans import open_plan, strategy_words
from libra_planner.procurement.readiness import open_points
from libra_planner.search.rivals import rivals
from libra_planner.units import format_time
from libra_planner.views.report.decision import decision_section
from libra_planner.views.report.strategies import strategy_section
from libra_planner.workload.strategy import Strategy
from tests.comparisons import compared_by

PLAN: dict[str, Any] = {
    "workload": "mixtral-8x7b",
    "parallelism": "auto",
    "global_batch": 128,
    "npu": "h100-sxm",
    "fidelity": "calibrated",
    "fabric": {
        "topology": "SW(8)_[SW(8)_SW(2)]",
        "tiers": ["node", "leaf", "spine"],
        "scale_up": "nvlink4-8",
        "realization": {"port_speed": "400 Gbps", "switch_radix": 16},
    },
    "cost_model": "clos-2026",
    "constraints": ["leaf == 50 GB/s", "taper(spine) == 4"],
}
"""A spine of few links, whose sends between stages meet under ECMP."""


@pytest.fixture(scope="module")
def routed() -> Routed:
    """Its best design under ECMP."""
    return lp.load_plan(PLAN).optimize_routed("ecmp", seed=0)


def test_the_best_on_links_is_not_the_best_in_the_model(routed: Routed) -> None:
    """Pipeline sends lose time to ECMP, so that a strategy without them wins on the links."""
    found = routed.strategies
    assert found is not None
    assert routed.found is not None
    blind = found.best_in_model
    assert blind.strategy == routed.found.best[0].strategy
    assert blind.strategy.pp == 2
    assert found.best.strategy.pp == 1
    models = [one.checked.check.ideal_step_time_s for one in found.ranked]
    assert min(models) == blind.checked.check.ideal_step_time_s
    times = [one.step_time_s for one in found.ranked]
    assert times == sorted(times)
    assert times[0] < blind.step_time_s
    assert routed.mean_step_time_s == pytest.approx(times[0], rel=1e-9)


def test_every_row_is_the_plan_with_that_strategy_checked_alone(routed: Routed) -> None:
    """The slow twin: each strategy written into the plan, optimised and checked by itself."""
    assert routed.strategies is not None
    for one in routed.strategies.ranked:
        alone = lp.load_plan(PLAN | {"parallelism": dict(one.strategy.degrees)})
        check = alone.check("ecmp", seed=0)
        assert check.mean_step_time_s == pytest.approx(one.step_time_s, rel=1e-9)
        assert check.ideal_step_time_s == pytest.approx(
            one.checked.check.ideal_step_time_s, rel=1e-9
        )


def test_rivals_are_all_that_the_model_has_faster_than_the_best_on_links() -> None:
    """The slow twin: every strategy of a narrower space, one by one."""
    opened = open_plan(PLAN, ("parallelism={cp: 2, ep: 8, zero: 1, recompute: none, rest: auto}",))
    search = opened.search()
    best = search.run().best[0]
    limit_s, efficiency = 1.3 * best.optimum.step_time_s, np.array([1.0, 1.0, 0.3])
    found = rivals(search, best, efficiency, limit_s)

    def key(one: Strategy) -> tuple[Any, ...]:
        return one.tp, one.cp, one.dp, one.pp, one.ep, one.interleave

    at_Bps, expected = best.optimum.bandwidth_bytes_per_s, set()
    for i in range(search.space.n):
        one = search.space.strategy(i)
        seconds = search.training(one).step_time(search.fabrics.model).seconds(at_Bps)
        fits = search.figures.memory_bytes(np.array([i]))[0] <= search.npu_memory_bytes
        if float(seconds) < limit_s and fits and key(one) != key(best.strategy):
            expected.add(key(one))
    assert len(found) == len(expected) > 10
    assert {key(one.strategy) for one in found} == expected
    coarse = [(x.strategy.pp, x.strategy.ep, x.strategy.interleave) for x in found]
    n_coarse = len({*coarse} - {(best.strategy.pp, best.strategy.ep, best.strategy.interleave)})
    assert len({*coarse[:n_coarse]}) == n_coarse > 3
    assert any(one.strategy.interleave != best.strategy.interleave for one in found)


def test_what_was_not_checked_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one strategy, all others that might win are left."""
    monkeypatch.setattr("libra_planner.inputs.routed.MOST_STRATEGIES", 1)
    found = lp.load_plan(PLAN).optimize_routed("ecmp", seed=0).strategies
    assert found is not None
    assert len(found.ranked) == 1
    assert found.n_left == 3


def test_the_command_names_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    """Text and JSON say which strategy is the best where; ``set`` is that of the design."""
    monkeypatch.setenv("COLUMNS", "300")
    plan = tmp_path / "plan.yaml"
    plan.write_text(json.dumps(PLAN))
    command = ["optimize", str(plan), "--routing", "ecmp", "--seed", "0"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert text.startswith("Best strategy on links, of 3 that were checked there: DP 128, ")
    assert "\nBest in the model: CP 2 x PP 2 x DP 32, experts EP 8, 16 chunks, 798.182 ms" in text
    assert "no others take less than 801.961 ms in the model at this bandwidth" in text
    assert "better in the model." in text
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    rows = told["strategies_on_links"]["ranked"]
    assert [row["best_in_model"] for row in rows] == [False, True, False]
    assert told["strategies_on_links"]["n_left"] == 0
    assert told["routing"]["effective_step_time_s"] == rows[0]["effective_step_time_s"]
    assert told["set"][-1].startswith("parallelism={tp: 1, cp: 1, dp: 128, pp: 1, ")
    assert main(["optimize", str(plan), *command[2:], "--set", told["set"][-1], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert "strategies_on_links" not in again
    assert again["routing"]["effective_step_time_s"] == rows[0]["effective_step_time_s"]


def test_a_given_bandwidth_says_that_it_has_chosen_the_strategy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the head, and in a note with the key that keeps one."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(json.dumps(PLAN))
    for command in (["evaluate"], ["check", "--policy", "spray"]):
        assert main([command[0], str(plan), *command[1:], "--bandwidth", "450,50,1"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "experts EP 8 (chosen for this bandwidth), 128 sequences" in text
        assert "optimize may take another at its own bandwidth; to keep this one write" in text
    assert main(["optimize", str(plan)]) == 0
    assert "chosen for this bandwidth" not in capsys.readouterr().out


@pytest.fixture
def plan(tmp_path: Path) -> str:
    """The plan as a file."""
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(PLAN))
    return str(path)


def test_a_report_takes_the_strategy_that_is_best_on_links(plan: str, routed: Routed) -> None:
    """As ``optimize --routing``, and said; the slow twin: each strategy in a report of its own."""
    asked = (plan, "--check", "ecmp", "--seeds", "1")
    [one] = compared_by(*asked).candidates
    found, strategies = one.proposal.on_links, routed.strategies
    assert found is not None
    assert strategies is not None
    assert not found.is_best_in_model
    assert found.words == strategies.best.words
    assert found.model_words == strategies.best_in_model.words
    times = {}
    for other in strategies.ranked:
        says = f"parallelism={strategy_words(other.strategy)}"
        [alone] = compared_by(*asked, "--set", says).candidates
        assert alone.proposal.on_links is None
        times[other.words] = alone.step_time_s
    assert min(times, key=times.__getitem__) == found.words
    assert one.step_time_s == pytest.approx(times[found.words], rel=1e-9)
    assert found.model_s == pytest.approx(times[found.model_words], rel=1e-9)
    section = strategy_section(compared_by(*asked))
    assert section is not None
    [said] = [x for x in section.paragraphs if "best strategy on its" in x]
    assert f"{found.words}. The best in the model, {found.model_words}, would take" in said
    assert format_time(found.model_s) in said


def test_strategies_that_a_report_left_are_an_open_point(
    plan: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """None where the plan says its strategy, where all were checked, or links slow nothing.

    The two commands of the point are run as they stand; the report then has the best on links.
    Both have the quotes, and the parts that these name and the bundled catalogue lacks.
    """
    folder = Path(plan).parent
    (folder / "own.yaml").write_text(
        "kind: parts\nbase: parts\nsource: datasheets\nas_of: '2026-11'\nparts:\n"
        "  our-nic-400g: {kind: nic, description: ours, port_speed: 400 Gbps, power_W: 25}\n"
    )
    (folder / "own.csv").write_text("item,price,seller,date\nour-nic-400g,9000,Acme,2026-11-02\n")
    own = ("--parts", str(folder / "own.yaml"), "--prices", str(folder / "own.csv"))
    asked = (plan, "--seeds", "1", "--check")
    told = "strategies of A were not all searched on links, another may reverse this: "
    for policy in ("ecmp", "spray"):
        found = compared_by(*asked, policy)
        assert not any("searched on links" in point for point in open_points(found))
    best_s = compared_by(*asked, "ecmp").candidates[0].step_time_s
    monkeypatch.setattr("libra_planner.inputs.routed.MOST_STRATEGIES", 1)
    setting = ("--set", "fabric.realization.placement=contiguous")
    found = compared_by(*asked, "ecmp", *setting, *own)
    [point] = [point for point in open_points(found) if point.startswith(told)]
    assert point in decision_section(found).points
    monkeypatch.undo()
    monkeypatch.chdir(Path(plan).parent)
    optimize, _, again = point.removeprefix(told).partition(", then ")
    command, _, result = optimize.partition(" > ")
    assert main(shlex.split(command)[1:]) == 0
    Path(result).write_text(capsys.readouterr().out)
    design = again.removeprefix("report ").removesuffix(" in place of A")
    then = compared_by(design, "--seeds", "1", "--check", "ecmp", *own)
    assert then.candidates[0].step_time_s == pytest.approx(best_s, rel=1e-9)
    assert best_s < found.candidates[0].step_time_s
    assert not any("searched on links" in point for point in open_points(then))


def test_the_same_bill_has_the_same_time_where_the_strategy_is_open(plan: str) -> None:
    """Half of the bandwidth is asked for, of ports that carry all of it."""
    whole, half = compared_by(f"{plan}@450,50,12.5", f"{plan}@450,5,12.5").candidates
    assert whole.bill.total_usd == half.bill.total_usd
    assert half.is_faster_as_bought
    assert half.step_time_s == whole.step_time_s
    strategies = [x.proposal.problem.step.trainings[0].trained.strategy for x in (whole, half)]
    assert strategies[0] == strategies[1]
