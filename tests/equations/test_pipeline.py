"""Steps over stages by hand and against simulated schedules (C17)."""

from __future__ import annotations

import numpy as np
import pytest

from libra_planner.errors import SpecError
from libra_planner.step import expression as tree
from libra_planner.step.algebra import Nodes, Numbers, overlapped
from libra_planner.step.pipeline import (
    Stage,
    is_schedulable,
    pipeline_time,
    refuse_unschedulable,
    stage_layers,
)
from libra_planner.workload.strategy import PipelineSchedule, Strategy
from libra_planner.workload.transformer import Attention, FeedForward, Transformer
from tests.pipelines import chunk_layers

H1, H2 = PipelineSchedule.ZERO_BUBBLE_H1, PipelineSchedule.ZERO_BUBBLE_H2


@pytest.mark.parametrize(("p", "m", "v"), [(4, 8, 1), (4, 8, 2), (8, 8, 1), (1, 5, 1), (16, 64, 8)])
def test_the_bubble_of_equal_stages(p: int, m: int, v: int) -> None:
    """(p - 1)/(v m) of the time that is worked."""
    time = pipeline_time(Numbers(), [Stage(1.0, 1.5, 0.5, n=p)], m, v)
    assert time / (m * 3.0) - 1 == pytest.approx((p - 1) / (v * m), rel=1e-12, abs=1e-15)


def test_zero_bubbles() -> None:
    """F 3, B 4, W 2: bubbles of 3 (3 + 4 - 2) = 15 and 3 (3 + 4 - 4) = 9 over 4 stages."""
    stages = [Stage(3.0, 4.0, 2.0, n=4)]
    assert pipeline_time(Numbers(), stages, 8, schedule=H1) == 8 * 9 + 15
    assert pipeline_time(Numbers(), stages, 8, schedule=H2) == 8 * 9 + 9


@pytest.mark.parametrize("m", [0, 1, 2, 8])
def test_one_stage_waits_for_nothing(m: int) -> None:
    """Its passes one after the other, no microbatch at all included, with no negative term."""
    node = Stage[tree.Node](tree.transfers([2.0]), tree.transfers([3.0]), tree.Constant(1.0))
    for schedule in (H1, H2):
        assert pipeline_time(Numbers(), [Stage(1.0, 2.0, 0.5)], m, schedule=schedule) == 3.5 * m
        time = pipeline_time(Nodes(), [node], m, schedule=schedule)
        assert tree.TimeExpression(time, 1).seconds(np.array([1.0])) == 6.0 * m
        assert min(tree.numbers(time)) >= 0


def test_unequal_stages_by_hand() -> None:
    """The longest stage, 5, seven times, and every stage once: 7 x 5 + 3 + 5 + 4."""
    stages = [Stage(1.0, 1.0, 1.0), Stage(2.0, 2.0, 1.0), Stage(1.0, 2.0, 1.0)]
    assert pipeline_time(Numbers(), stages, 8) == 47


def test_nodes_are_numbers_at_every_bandwidth() -> None:
    leaf = tree.Transfer(6.0, (1.0, 0.0))
    far = tree.Transfer(8.0, (0.0, 1.0))
    nodes = [
        Stage[tree.Node](tree.add([tree.Constant(1.0), leaf]), tree.add([leaf, far]), tree.Constant(0.5)),
        Stage[tree.Node](tree.maximum([tree.Constant(2.0), far]), tree.Constant(2.0), tree.Constant(1.0), n=3),
    ]  # fmt: skip
    bandwidth = np.array([[1.0, 1.0], [3.0, 0.5], [100.0, 100.0]])
    near, away = 6 / bandwidth[:, 0], 8 / bandwidth[:, 1]
    numbers = [Stage(1 + near, near + away, 0.5), Stage(np.maximum(2, away), 2.0, 1.0, n=3)]
    for schedule, v in ((PipelineSchedule.ONE_F_ONE_B, 2), (H1, 1), (H2, 1)):
        node = pipeline_time(Nodes(), nodes, 12, v, schedule)
        expected = pipeline_time(Numbers(), numbers, 12, v, schedule)
        np.testing.assert_allclose(tree.TimeExpression(node, 2).seconds(bandwidth), expected, 1e-12)


def test_candidates_without_a_kind_of_stage() -> None:
    """One stage, two, or five with three in the middle, which stand once."""
    n_middle, n_last = np.array([0, 0, 3]), np.array([0, 1, 1])
    stages = [
        Stage(1.0, 1.0, 1.0),
        Stage(9.0, 1.0, 1.0, n=n_middle),
        Stage(2.0, 2.0, 2.0, n=n_last),
    ]
    times = pipeline_time(Numbers(), stages, 4)
    assert times.tolist() == [12.0, 3 * 6 + 9, 3 * 11 + 3 + 33 + 6]


def test_overlap_never_hides_more_than_there_is_compute() -> None:
    communication = np.array([0.0, 4.0, 20.0, 40.0])
    assert overlapped(Numbers(), 10.0, communication, 1.0).tolist() == [10.0, 10.0, 20.0, 40.0]
    assert overlapped(Numbers(), 10.0, communication, 0.0).tolist() == [10.0, 14.0, 30.0, 50.0]
    assert overlapped(Numbers(), 10.0, communication, 0.5).tolist() == [10.0, 12.0, 20.0, 40.0]


def test_layers_of_stages() -> None:
    assert chunk_layers(96, 8) == ((12,),) * 8
    assert chunk_layers(96, 8, 2) == ((6, 6),) * 8
    assert chunk_layers(61, 4) == ((15,), (16,), (15,), (15,))
    assert chunk_layers(63, 4) == ((16,), (16,), (16,), (15,))
    for n_layers, p, v in ((61, 16, 1), (126, 16, 7), (95, 5, 3)):
        layout = chunk_layers(n_layers, p, v)
        assert sum(map(sum, layout)) == n_layers
        assert max(map(sum, layout)) - min(map(sum, layout)) <= 1
        model = Transformer("m", n_layers, 64, Attention(1, 1, 64, 64), FeedForward(256), 1024)
        kinds = stage_layers(model, Strategy(pp=p))
        shared = sorted(int(kind.n_dense) for kind in kinds for _ in range(int(kind.n)))
        assert shared == sorted(map(sum, chunk_layers(n_layers, p)))


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Strategy(pp=4, interleave=2, global_batch=6), "got 6 microbatches, expected a multiple of the 4"),
        (Strategy(interleave=2, global_batch=6), "got 2 chunks of a stage with pp 1"),
        (Strategy(pp=4, interleave=2, global_batch=8, schedule=H1), "with the schedule zb-h1"),
    ],
)  # fmt: skip
def test_schedules_that_cannot_run_are_refused(strategy: Strategy, message: str) -> None:
    assert not is_schedulable(strategy).any()
    with pytest.raises(SpecError, match=message):
        refuse_unschedulable(strategy)
    refuse_unschedulable(Strategy(pp=4, interleave=2, global_batch=8))
