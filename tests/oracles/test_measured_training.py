"""Whole steps against published runs: coverage, errors by source, constants within their ranges.

The file has the rows of two collections of published runs, each with its source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from libra_planner.errors import SpecError
from libra_planner.inputs.training.planned import planned_run
from libra_planner.inputs.training.rows import TrainingRun, read_training_file
from libra_planner.step.bands import (
    FEW_RUNS,
    FLOOR_FRACTION,
    LEAST_ROWS,
    MOST_MEASURED_CHUNKS,
    STEP_BANDS,
    STRATEGY_TIE_FRACTION,
    published_band,
)
from libra_planner.step.pricing import in_domain
from libra_planner.studies.step_fits import MeasuredStep, fitted_constants, measured_step
from libra_planner.workload.clock import RANGES, STEP_CONSTANTS, StepConstants
from libra_planner.workload.defaults import LIBRARIES
from libra_planner.workload.volumes import EXPERT, NODE

FILE = read_training_file(Path(__file__).with_name("measured_training.csv"))


def measured_steps() -> Iterator[MeasuredStep]:
    """The runs of the table that can be told and whose time is published."""
    at = FILE.columns.index("source")
    for cells, run in zip(FILE.rows, FILE.runs, strict=True):
        try:
            yield measured_step(run, cells[at])
        except SpecError:
            continue


STEPS = tuple(measured_steps())


def mean_error(steps: list[MeasuredStep]) -> float:
    """Mean absolute error."""
    assert steps
    return float(np.mean([abs(one.error()) for one in steps]))


def of(publisher: str = "", family: str = "", kind: str = "") -> list[MeasuredStep]:
    """Steps of a publisher, NPU and kind."""
    return [
        one
        for one in STEPS
        if publisher in one.publisher and family in (one.family, "") and one.kind.startswith(kind)
    ]


@pytest.mark.parametrize(
    ("publisher", "family", "kind", "bar"),
    [
        ("Narayanan", "", "", 0.08),
        ("vTrain", "", "", 0.10),
        ("Korthikanti", "", "", 0.05),
        ("dgxc-benchmarking", "H100", "dense bf16", 0.10),
        ("MegaScale", "", "", 0.15),
        ("Megatron-Bridge", "", "dense", 0.15),
        ("", "", "dense fp8", 0.15),
        ("", "", "experts", 0.20),
    ],
)
def test_mean_errors_stay_below_their_bars(
    publisher: str, family: str, kind: str, bar: float
) -> None:
    assert mean_error(of(publisher, family, kind)) < bar


DEEPSEEK = TrainingRun(
    *("deepseek-v3", "H800", 2048),
    pp=16,
    dp=128,
    ep=64,
    global_batch=15360,
    microbatch=1,
    seq=4096,
    precision="fp8",
    parallel_style="DeepSeek DualPipe",
    schedule="zb-h1",
    fabric="deepseek-h800",
)
"""DeepSeek-V3 on 2,048 H800; its degrees and batch are assumed here, not read in a source."""
DEEPSEEK_TOKENS_PER_S = 14.8e12 / (2.8e6 * 3600)
"""14.8e12 tokens in 2.8 million H800 hours: app.daily.dev on arXiv 2412.19437."""


def test_deepseek_v3_as_its_own_library_runs_it() -> None:
    found = planned_run(DEEPSEEK).tokens_per_s_per_gpu
    assert found == pytest.approx(DEEPSEEK_TOKENS_PER_S, rel=0.15)


def test_constants_of_steps_are_few_and_physical() -> None:
    constants = asdict(STEP_CONSTANTS)
    assert set(constants) == set(RANGES)
    assert len(constants) <= 5
    for name, (low, high) in RANGES.items():
        assert low < constants[name] < high


def test_rows_that_say_enough_are_told() -> None:
    """A row is scorable with a shape, a sequence, a batch and a time."""
    told = {id(one) for one in FILE.runs if not isinstance(one, SpecError)}
    assert len(told) == len(FILE.runs)
    reasons = ("hybrid", "LoRA", "MaxText")
    scorable = [
        run
        for run in FILE.runs
        if not isinstance(run, SpecError)
        and run.seq
        and run.global_batch
        and (run.seconds_per_iteration or run.tokens_per_s_per_gpu)
        and not any(word in run.model for word in (*reasons, "Nemotron_3", "Nemotron-H"))
    ]
    assert len(STEPS) >= 0.95 * len(scorable)


def errors_by_copies(library: str) -> dict[str, list[float]]:
    """Of the library's runs with experts on several nodes: errors by what gets a copy of a token."""
    found: dict[str, list[float]] = {NODE: [], EXPERT: []}
    for one in STEPS:
        training = one.planned.training
        group, fabric = training.groups["ep"], one.planned.fabric
        is_across = in_domain(group).n_npus < group.n_npus
        if one.planned.library.name != library or not is_across:
            continue
        for to, errors in found.items():
            habits = training.trained.habits.with_copies(to)
            other = replace(training, trained=replace(training.trained, habits=habits))
            step_s = other.step_time(fabric.model).seconds(fabric.bandwidth_bytes_per_s)
            errors.append(float(step_s) / one.time_s - 1)
    return found


def test_published_runs_tell_how_tokens_go_in_megatron_core_and_not_in_nemo() -> None:
    """The reason why the two libraries differ (C16)."""
    core, nemo = errors_by_copies("megatron-core"), errors_by_copies("nemo")
    assert (len(core[NODE]), len(nemo[NODE])) == (6, 13)
    assert np.mean(np.abs(core[NODE])) < 0.5 * np.mean(np.abs(core[EXPERT]))
    means = [np.mean(np.abs(nemo[to])) for to in (NODE, EXPERT)]
    assert means[0] == pytest.approx(means[1], abs=0.01)
    assert LIBRARIES["megatron-core"].habits.sends_once_per_node
    assert not LIBRARIES["nemo"].habits.sends_once_per_node


def test_no_published_run_has_more_chunks_than_the_note_says() -> None:
    chunks = [int(one.planned.strategy.interleave) for one in STEPS]
    assert max(chunks) == MOST_MEASURED_CHUNKS


def test_bands_are_those_of_the_page() -> None:
    found = {}
    for family, kind in {(one.family, one.kind) for one in STEPS}:
        errors = [abs(one.error()) for one in of(family=family, kind=kind)]
        if len(errors) >= LEAST_ROWS:
            found[family, kind] = max(FLOOR_FRACTION, np.quantile(errors, 0.9))
    assert set(found) == set(STEP_BANDS)
    for key, error in found.items():
        assert error <= STEP_BANDS[key] < error + 0.02, key


def test_npus_without_a_class_of_their_own_take_no_less_than_their_few_runs() -> None:
    """Also that what they take covers those runs: nine of ten, as a class does."""
    few = {one.family for one in STEPS} & {"A800", "B200", "H200", "H800"}
    assert few == set(FEW_RUNS)
    for family in few:
        errors = [abs(one.error()) for one in of(family=family)]
        assert max(errors) <= FEW_RUNS[family] < max(errors) + 0.02
        for kind in {one.kind for one in of(family=family)}:
            band = published_band(family, kind)
            assert band is None or band.fraction >= FEW_RUNS[family]
    # No class of mixtures in bf16 on a Blackwell: GB200 and B200 have five runs between them.
    assert published_band("B200", "experts bf16") is None


class Pair(NamedTuple):
    """Two runs that differ in their strategy only.

    Parameters
    ----------
    publisher : of both.
    difference : of the predicted times, relative to the shorter.
    is_ordered : whether the measured times have the predicted order.
    has_best : whether one is the predicted best of all such runs.
    """

    publisher: str
    difference: float
    is_ordered: bool
    has_best: bool


def strategy_pairs() -> list[Pair]:
    """Of one source, model, NPU and number of NPUs; times are of one sequence."""
    groups: dict[Any, list[MeasuredStep]] = {}
    for one in STEPS:
        run = one.planned
        shape = run.model, run.strategy.dtype, int(run.strategy.n_npus)
        groups.setdefault((one.publisher, run.npu_name, *shape), []).append(one)
    return [
        _pair(*sorted((a, b), key=_predicted_s), has_best=best is a or best is b)
        for found in groups.values()
        for best in [min(found, key=_predicted_s)]
        for a, b in combinations(found, 2)
        if a.planned.strategy != b.planned.strategy
    ]


def _pair(fast: MeasuredStep, slow: MeasuredStep, *, has_best: bool) -> Pair:
    fast_s, slow_s = (one.time_s / one.planned.strategy.global_batch for one in (fast, slow))
    difference = _predicted_s(slow) / _predicted_s(fast) - 1
    return Pair(fast.publisher, difference, bool(fast_s < slow_s), has_best)


def _predicted_s(one: MeasuredStep) -> float:
    return one.planned.step_time_s / float(one.planned.strategy.global_batch)


def ordered_fraction(pairs: list[Pair], least_difference: float) -> float:
    """Share of the pairs beyond a difference that have the predicted order."""
    return float(np.mean([one.is_ordered for one in pairs if one.difference > least_difference]))


def test_ties_are_those_of_the_page() -> None:
    """Nine of ten pairs beyond the constant have the predicted order, fewer at a percent less."""
    pairs = strategy_pairs()
    assert len(pairs) > 400
    assert ordered_fraction(pairs, STRATEGY_TIE_FRACTION) >= 0.9
    assert ordered_fraction(pairs, STRATEGY_TIE_FRACTION - 0.01) < 0.9


def test_constants_that_made_times_are_found_again() -> None:
    made = StepConstants(0.7e12, 0.3, 0.2, 1.3)
    some = [one for one in STEPS if one.family in ("A100", "H100")][::9]
    steps = [replace(one, time_s=one.predicted_s(made)) for one in some]
    found = fitted_constants(steps)
    assert np.mean([abs(one.error(found)) for one in steps]) < 0.015
    assert found.imbalance == pytest.approx(made.imbalance, abs=0.1)
