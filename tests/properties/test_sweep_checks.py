"""Checks of sweeps: what is shared changes no bit; the frontier against all pairs of designs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from libra_planner.check.links import CheckReport, link_check
from libra_planner.check.phases import CheckMemo, Memo
from libra_planner.problem import Problem
from libra_planner.routing.policy import Policy
from libra_planner.sweeps.figures.frontiers import SAME, ties, unbeaten, unbeaten_in_two
from tests.checked_plans import loaded, operation
from tests.conftest import random_cases

# The frontier ------------------------------------------------------------------------------------


def tied(values: np.ndarray) -> list[int]:
    """Every figure against the one before it."""
    ranks, before, rank = {}, 0.0, -1
    for value in sorted(set(values.tolist())):
        rank += rank < 0 or value > before * (1 + SAME)
        before = value
        ranks[value] = rank
    return [ranks[value] for value in values.tolist()]


def unbeaten_by_pairs(time: np.ndarray, cost: np.ndarray, fim: np.ndarray) -> list[int]:
    """Every design against all before it; nan FIM beats as 0, and is beaten by any."""
    balance = np.where(np.isnan(fim), 0.0, fim)
    order = np.lexsort((tied(balance), tied(cost), tied(time)))  # Stable: then the first.
    kept = []
    for place, i in enumerate(order):
        before = order[:place]
        no_dearer = cost[before] <= cost[i] / (1 - SAME)
        no_worse = (balance[before] * (1 - SAME) <= fim[i]) | np.isnan(fim[i])
        if not (no_dearer & no_worse).any():
            kept.append(int(i))
    return kept


def clearly_less(values: np.ndarray, i: int) -> np.ndarray:
    """Where a figure is less than one of them by more than rounding."""
    return values < values[i] * (1 - 2 * SAME)


FIGURE = st.one_of(
    st.integers(0, 5).map(float),
    st.sampled_from([1.0, 1 + 1e-12, 1 + 3e-9, 1 - 1e-12]),
    st.floats(0, 1e9),
)


DESIGNS = st.lists(st.tuples(FIGURE, FIGURE, FIGURE | st.just(np.nan)), max_size=60)


@given(DESIGNS)
@random_cases(100)
@example([(1 + 1e-12, 5.0, 60.0), (1.0, 5.0, 60.0)])  # The same but for rounding.
@example([(1.0, 5.0, 60.0), (2.0, 6.0, np.nan)])
def test_no_design_of_the_frontier_is_beaten_in_all_that_it_shows(
    designs: list[tuple[float, float, float]],
) -> None:
    """By no design of all, kept or not, but rounding; one without FIM by none in time and cost."""
    time, cost, fim = np.array(designs, dtype=np.float64).reshape(-1, 3).T
    for i in unbeaten(time, cost, fim):
        no_worse = (time <= time[i]) & (cost <= cost[i])
        better = clearly_less(time, i) | clearly_less(cost, i)
        if not np.isnan(fim[i]):
            better |= clearly_less(np.nan_to_num(fim), i)
            no_worse &= np.nan_to_num(fim) <= fim[i]
        assert not (no_worse & better).any()


@given(st.lists(st.tuples(FIGURE, FIGURE), max_size=60))
@random_cases(80)
@example([(1 + 1e-12, 5.0), (1.0, 5.0)])
def test_no_design_of_the_frontier_of_two_is_beaten(designs: list[tuple[float, float]]) -> None:
    time, cost = np.array(designs, dtype=np.float64).reshape(-1, 2).T
    for i in unbeaten_in_two(time, cost):
        no_worse = (time <= time[i]) & (cost <= cost[i])
        assert not (no_worse & (clearly_less(time, i) | clearly_less(cost, i))).any()


@given(DESIGNS)
@random_cases(100)
def test_the_staircase_is_all_pairs(designs: list[tuple[float, float, float]]) -> None:
    time, cost, fim = np.array(designs, dtype=np.float64).reshape(-1, 3).T
    assert ties(time).tolist() == tied(time)
    assert unbeaten(time, cost, fim).tolist() == unbeaten_by_pairs(time, cost, fim)


@given(st.lists(st.tuples(FIGURE, FIGURE), max_size=60))
@random_cases(100)
def test_the_frontier_of_two_is_all_pairs(designs: list[tuple[float, float]]) -> None:
    time, cost = np.array(designs, dtype=np.float64).reshape(-1, 2).T
    order = np.lexsort((tied(cost), tied(time)))
    expected = [
        int(i)
        for place, i in enumerate(order)
        if not (cost[order[:place]] * (1 - SAME) <= cost[i]).any()
    ]
    assert unbeaten_in_two(time, cost).tolist() == expected


@pytest.mark.parametrize("seed", range(3))
def test_the_staircase_of_many_designs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    near = np.abs(draw.normal(size=(3, 800)))
    time, cost, fim = near / np.linalg.norm(near, axis=0) * draw.uniform(1, 1.1, 800)
    found = unbeaten(time, cost, fim).tolist()
    assert found == unbeaten_by_pairs(time, cost, fim)
    assert len(found) > 50


# What checks share ---------------------------------------------------------------------------------

REALIZATIONS = (
    {"switch_radix": 8},
    {"switch_radix": 8, "port_speed": "400 Gbps", "oversubscription": 2},
    {"switch_radix": 16, "port_speed": "200 Gbps", "wiring": "top_of_rack", "placement": "rail"},
    {"switch_radix": 16, "wiring": "rail_optimized", "failed_links": 2, "placement": "random"},
)
MODELS = (
    {},
    {"fidelity": "pipelined", "chunks": 4, "latency_ns": 500},
    {"training_loop": "tp_dp_overlap"},
)


@cache
def problems() -> list[Problem]:
    """Plans of all realizations and models; not a fixture, whose value hypothesis would print."""
    steps = [
        operation("forward", "all-reduce", 6e8, group="tp", compute_ms=1),
        operation("input_grad", "all-to-all", 3e8, group="tp"),
        operation("weight_grad", "all-reduce", 4e8, group="dp"),
    ]
    degrees = {"tp": 8, "dp": 8}
    with TemporaryDirectory() as folder:
        return [
            loaded(
                Path(folder), "RI(4)_SW(16)", steps, parallelism=degrees, realization=links, **model
            )
            for links in REALIZATIONS
            for model in MODELS
        ]


def bits(report: CheckReport) -> tuple[bytes, ...]:
    by_dimension = [
        (one.efficiency, one.fim_percent, one.fim_floor_percent, one.ideal_efficiency)
        for one in report.dimensions
    ]
    times = report.effective_step_time_s, report.spray_step_time_s, report.ideal_step_time_s
    figures = (*times, report.fim_percent, report.fim_floor_percent, *sum(by_dimension, ()))
    return tuple(np.asarray(figure).tobytes() for figure in figures)


DESIGN = st.tuples(
    st.integers(0, len(REALIZATIONS) * len(MODELS) - 1),
    st.sampled_from(["ecmp", "greedy", "spray", "two_level_max_min"]),
    st.sampled_from([20.0, 20.0 + 1e-9, 37.3, 49.9, 50.0, 50.1, 75.0, 120.0]),
    st.sampled_from([30.0, 49.9, 50.0, 50.1, 99.0, 140.0]),
)


@given(st.lists(DESIGN, min_size=2, max_size=6), st.sampled_from([1, 4096]))
@random_cases(6)
def test_what_is_shared_changes_no_bit(
    designs: list[tuple[int, str, float, float]], most: int
) -> None:
    memo = CheckMemo(Memo(most), Memo(most), Memo(most))
    for i, name, *bandwidth_GBps in designs:
        bandwidth_Bps, policy = np.array(bandwidth_GBps) * 1e9, Policy(name)
        shared = link_check(problems()[i], bandwidth_Bps, memo=memo)
        own = link_check(problems()[i], bandwidth_Bps)
        assert bits(shared.report(policy, seeds=[3, 4])) == bits(own.report(policy, seeds=[3, 4]))


def test_links_of_another_speed_are_not_routed_again() -> None:
    memo, made = CheckMemo(), []
    for pod in (60.0, 70.0, 99.9, 130.0):  # 2, 2, 2 and 3 NICs of 50 GB/s.
        design = link_check(problems()[len(MODELS)], np.array([40e9, pod * 1e9]), memo=memo)
        design.report(Policy("ecmp"), seeds=range(3))
        made.append(memo.rounds.n_made)
    assert made[0] == made[1] == made[2] > 0
    assert made[3] == 2 * made[0]
    slower, faster = (
        link_check(problems()[0], np.array([40e9, pod]), memo=memo).report(
            Policy("ecmp"), seeds=[0]
        )
        for pod in (50e9, 100e9)
    )
    assert slower.fim_percent == faster.fim_percent
    assert memo.steps.n_made < 12


def test_a_memo_keeps_what_was_used_last() -> None:
    memo = Memo[int](2)
    assert [memo.of(key, lambda key=key: key) for key in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert memo.n_made == 4  # 2 was used least when 3 came.
