"""Objectives through the command line: bounds of time alone, groups with chunks, ties."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GROUP = Path(__file__).parents[2] / "examples" / "03_group.yaml"


def _optimize(run, path, *settings: str) -> dict:
    chosen = [part for setting in settings for part in ("--set", setting)]
    result = run("optimize", path, "--json", *chosen)
    assert result.code == 0, result.err
    return result.payload


@pytest.mark.parametrize("objective", ["cost", "performance_per_cost"])
@pytest.mark.parametrize("limit", ["685 ms", "700 ms", "900 ms", "5 s", "1e6 s"])
def test_a_step_time_rule_is_enough(objective: str, limit: str, plan, run) -> None:
    """Only T <= X: the network that just keeps X is the cheapest, and the best per dollar."""
    rules = f"constraints={json.dumps([f'step_time <= {limit}'])}"
    payload = _optimize(run, plan(), f"objective={objective}", rules)
    value, unit = limit.split()
    limit_s = float(value) * {"ms": 1e-3, "s": 1.0}[unit]
    assert payload["step_time_s"] == pytest.approx(limit_s, rel=1e-9)
    assert payload["max_violation"] <= 1e-9
    assert payload["optimality_gap"] <= 1e-6


@pytest.mark.parametrize("group_objective", ["relative", "worst_case"])
def test_own_optima_of_a_group_are_those_of_the_best_number_of_chunks(
    group_objective: str, run
) -> None:
    settings = (
        "fidelity=pipelined",
        "fabric.latency_ns=500",
        f"group_objective={group_objective}",
    )
    best = _optimize(run, GROUP, *settings)
    own = [member["own_optimum_s"] for member in best["workloads"]]
    fixed = _optimize(run, GROUP, *settings, "chunks=16")
    assert all(
        mine <= other["own_optimum_s"] * (1 + 1e-9)
        for mine, other in zip(own, fixed["workloads"], strict=True)
    )
    slowdowns = [
        other["step_time_s"] / mine for mine, other in zip(own, fixed["workloads"], strict=True)
    ]
    value = max(slowdowns) if group_objective == "worst_case" else sum(slowdowns) / 3
    assert best["objective"] <= value * (1 + 1e-9)
    assert best["objective"] >= 1


def test_shadow_prices_where_equally_fast_designs_tie(plan, run) -> None:
    """dim2 <= 30 GB/s leaves bandwidth over: the cheapest of the fastest is what moves."""
    rules = ["total == 500 GB/s", "dim2 <= 30 GB/s"]
    base = _optimize(run, plan(), f"constraints={json.dumps(rules)}")
    moved = _optimize(
        run, plan(), f"constraints={json.dumps(['total == 500 GB/s', 'dim2 <= 30.01 GB/s'])}"
    )
    (price,) = [entry for entry in base["shadow_prices"] if entry.get("rule") == "dim2 <= 30 GB/s"]
    assert price["side"] == "both"
    for key, figure in (("d_cost_usd", "cost_usd"), ("d_step_time_s", "step_time_s")):
        difference = (moved[figure] - base[figure]) / 0.01
        assert price[key] == pytest.approx(difference, rel=1e-3)
    (total,) = [entry for entry in base["shadow_prices"] if entry.get("rule") == rules[0]]
    assert total["d_cost_usd"] == pytest.approx(8192, rel=1e-4)  # the rest is bought on dim1


@pytest.mark.parametrize("objective", ["cost", "performance_per_cost"])
def test_a_catalogue_that_costs_nothing_has_no_best_per_dollar(objective: str, plan, run) -> None:
    options = ", ".join(
        f"dim{i}: [{{speed: 10 GB/s, ports: 1..3, usd_per_port: 0}}]" for i in range(1, 5)
    )
    rules = f"constraints={json.dumps(['total <= 100 GB/s', 'step_time <= 100 s'])}"
    result = run(
        *("optimize", plan(), "--set", f"fabric.link_options={{{options}}}"),
        *("--set", rules, "--set", f"objective={objective}"),
    )
    assert result.code == 3
    assert f"{objective} is zero" in result.err
