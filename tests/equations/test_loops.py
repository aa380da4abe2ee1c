"""Training loops on layers worked out by hand (C5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.errors import SpecError
from libra_planner.fabric.topology import parse_topology
from libra_planner.plan.loops import parse_loop
from libra_planner.step.critical_path import Share, critical_path
from libra_planner.step.expression import (
    Constant,
    Labelled,
    Maximum,
    Scaled,
    Sum,
    TimeExpression,
    add,
    transfers,
)
from libra_planner.step.layers import LOOPS, TrainingLoop
from libra_planner.workload.operations import (
    Collective,
    CollectiveKind,
    Operation,
    Phase,
    Workload,
    communicators_from_degrees,
)
from tests.workloads import step_time

# TP takes dim1 (4 NPUs) and half of dim2, DP the other half.
COMMUNICATORS = communicators_from_degrees(parse_topology("SW(4)_SW(4)"), {"tp": 8, "dp": 2})
B = np.array([100e9, 25e9])


def _reduce(gigabytes: float, group: str) -> Collective:
    return Collective(CollectiveKind.ALL_REDUCE, gigabytes * 1e9, group)


# All-reduces of 100 GB in TP: dim1 150 GB or 1.5 s, dim2 25 GB or 1 s.
# In DP of 2: dim2 as many bytes as the vector, 25 GB or 1 s.
LAYER = (
    Operation("fc", Phase.FORWARD, 2.0, _reduce(100, "tp")),
    Operation("fc", Phase.INPUT_GRAD, 3.0, _reduce(200, "tp")),
    Operation("fc", Phase.WEIGHT_GRAD, 0.5, _reduce(50, "dp")),
)


def _expression(loop: str, *operations: Operation, contention: bool = True) -> TimeExpression:
    chosen = TrainingLoop(LOOPS[loop], contention=contention)
    return step_time(Workload("w", operations or LAYER), COMMUNICATORS, 2, loop=chosen)


def _seconds(loop: str, *operations: Operation, contention: bool = True) -> float:
    return float(_expression(loop, *operations, contention=contention).seconds(B))


@pytest.mark.parametrize(
    ("loop", "contention", "seconds"),
    [
        # Forward 2 + 1.5, gradients 3 + 3 (TP) and 0.5 + 2 (DP).
        ("no_overlap", True, 3.5 + 6 + 2.5),
        ("tp_dp_overlap", False, 3.5 + 3 + max(3, 0.5 + 2)),
        # On dim2 TP's 50 GB and DP's 50 GB take 4 s together.
        ("tp_dp_overlap", True, 3.5 + 3 + 4),
        ("async_dp", False, 3.5 + max(3.5 + 3, 2)),
        # 4 s of sharing hide behind the 6.5 s of backward compute and TP.
        ("async_dp", True, 3.5 + 6.5),
    ],
)
def test_one_layer(loop: str, contention: bool, seconds: float) -> None:
    assert _seconds(loop, contention=contention) == pytest.approx(seconds, rel=1e-14)


def test_layers_overlap_within_themselves_only() -> None:
    """Two halves of a layer: max(1, 0) + max(0, 1) is not max(1, 1)."""
    tensor = Operation("a", Phase.INPUT_GRAD, 0.0, _reduce(100, "tp"))
    data = Operation("b", Phase.WEIGHT_GRAD, 0.0, _reduce(25, "dp"))
    assert _seconds("async_dp", tensor, data) == 2.5
    together = Operation("a", Phase.WEIGHT_GRAD, 0.0, _reduce(25, "dp"))
    assert _seconds("async_dp", tensor, together, contention=False) == 1.5


def test_a_layer_of_several_operations_and_executions() -> None:
    """3 times: 1 + max(0.5 + 1.5 (TP), 1 (DP), (25 + 25) GB / 25 GB/s)."""
    layer = (
        Operation("x", Phase.FORWARD, 1.0, None, 3),
        Operation("x", Phase.INPUT_GRAD, 0.2, None, 3),
        Operation("x", Phase.INPUT_GRAD, 0.3, _reduce(100, "tp"), 3),
        Operation("x", Phase.WEIGHT_GRAD, 0.0, _reduce(25, "dp"), 3),
    )
    assert _seconds("async_dp", *layer) == pytest.approx(3 * 3.0)
    assert _seconds("async_dp", *layer, contention=False) == pytest.approx(3 * 3.0)
    slow_dim2 = np.array([100e9, 12.5e9])  # Sharing takes 4 s, TP 2 s, DP 2 s.
    assert _expression("async_dp", *layer).seconds(slow_dim2) == pytest.approx(3 * 5.0)


def test_layers_of_one_name_in_a_row_are_several() -> None:
    assert Workload("w", LAYER + LAYER).operators == (LAYER, LAYER)
    assert _seconds("tp_dp_overlap", *LAYER, *LAYER) == pytest.approx(2 * 10.5)
    two = _expression("tp_dp_overlap", *LAYER, *LAYER).merged
    one = _expression("tp_dp_overlap").merged
    assert isinstance(one, Sum)
    assert isinstance(two, Sum)
    assert len(two.terms) == len(one.terms)


def test_group_sizes_per_phase_say_tp_or_dp_by_the_phase() -> None:
    """With sizes given per phase the collective's own group name does not count."""
    from libra_planner.workload.operations import communicators_from_sizes

    sizes = {Phase.FORWARD: (4, 1), Phase.INPUT_GRAD: (4, 1), Phase.WEIGHT_GRAD: (1, 4)}
    groups = communicators_from_sizes(parse_topology("SW(4)_SW(4)"), sizes)
    layer = (
        Operation("x", Phase.INPUT_GRAD, 0.0, _reduce(100, "dp")),  # dim1: 150 GB, 1.5 s
        Operation("x", Phase.WEIGHT_GRAD, 0.25, _reduce(25, "tp")),  # dim2: 37.5 GB, 1.5 s
    )
    step = step_time(Workload("w", layer), groups, 2, loop="tp_dp_overlap")
    assert float(step.seconds(B)) == 1.75


@pytest.mark.parametrize(
    ("dim2_GBps", "expected"),
    [
        # Grown to s, TP takes 3 s, compute and DP 0.5 + 2 s, sharing dim2 4 s: it shows from 1/4.
        (
            25,
            {"weight grad DP all-reduce": 0.5, "contention of input grad TP and weight grad DP": 3},
        ),
        # DP 0.5 + 0.5 s, TP on dim1 3 s: DP shows until 1/5 of it, TP from there.
        (100, {"weight grad DP all-reduce": 0.1, "input grad TP all-reduce": 2.4}),
    ],
)
def test_exposed_communication_is_named(dim2_GBps: float, expected: dict[str, float]) -> None:
    step, bandwidth = _expression("tp_dp_overlap"), np.array([100e9, dim2_GBps * 1e9])
    found = {share.label: share.seconds for share in critical_path(step, bandwidth)}
    assert found == pytest.approx(
        {"compute": 5.5, "forward TP all-reduce": 1.5, **expected}, rel=1e-12
    )
    assert sum(found.values()) == pytest.approx(float(step.seconds(bandwidth)))


def test_shares_do_not_jump_where_branches_tie() -> None:
    """Work of 1 s and 2 s of TP, beside 3 s of sends: which is longer changes no share much."""
    sent = Labelled("sends", transfers([0.0, 3.0]))
    work = add([Constant(1.0), Labelled("TP", transfers([2.0, 0.0]))])
    step = TimeExpression(Maximum((work, sent)), 2)
    for slower, faster in ((1 - 1e-7, 1.0), (1.0, 1 - 1e-7)):
        shares = critical_path(step, np.array([slower, faster]))
        found = {share.label: share.seconds for share in shares}
        assert found["TP"] == pytest.approx(2.0, abs=1e-5)
        assert found.get("sends", 0.0) == pytest.approx(0.0, abs=1e-5)


def test_what_is_hidden_is_not_listed() -> None:
    hidden = Operation("x", Phase.WEIGHT_GRAD, 0.0, _reduce(25, "dp"))
    long = Operation("x", Phase.INPUT_GRAD, 5.0)
    step = _expression("async_dp", long, hidden)
    assert critical_path(step, B) == (Share("compute", (), 5.0),)
    assert step.seconds(B) == 5.0


def test_a_pipeline_bubble_stretches_everything() -> None:
    loop = TrainingLoop(LOOPS["tp_dp_overlap"], bubble_fraction=0.25)
    step = step_time(Workload("w", LAYER), COMMUNICATORS, 2, loop=loop)
    assert float(step.seconds(B)) == pytest.approx(1.25 * 10.5, rel=1e-14)
    assert step.least_s == 1.25 * 5.5


def test_gpt3_of_96_layers_has_few_terms() -> None:
    """Never a term per layer: 865 operators become a handful of maxima."""

    def n_maxima(node: object) -> int:
        if isinstance(node, Scaled | Labelled):
            return n_maxima(node.term)
        inner = sum(map(n_maxima, node.terms)) if isinstance(node, Sum | Maximum) else 0
        return inner + isinstance(node, Maximum)

    for loop in ("tp_dp_overlap", "async_dp"):
        problem = lp.load_plan(
            Path(lp.example("01_gpt3_4d")),
            ["workload=gpt3", f"training_loop={loop}"],
        )
        assert 3 <= n_maxima(problem.step_time.merged) <= 8


REFUSED = {
    "counts that differ": (
        "async_dp",
        (
            Operation("x", Phase.INPUT_GRAD, 1.0, None, 8),
            Operation("x", Phase.WEIGHT_GRAD, 0.0, _reduce(25, "dp"), 1),
        ),
        r"got counts 1 and 8 in the layer 'x', expected one count.*layer of its own",
    ),
    "phases apart": (
        "tp_dp_overlap",
        (
            Operation("a", Phase.INPUT_GRAD, 1.0, _reduce(25, "tp")),
            Operation("b", Phase.FORWARD, 1.0),
            Operation("a", Phase.WEIGHT_GRAD, 1.0, _reduce(25, "dp")),
        ),
        r"got the layer 'a' once with input_grad, once with weight_grad, expected .* side by side",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_layers_that_cannot_be_read_are_refused(name: str) -> None:
    loop, operations, message = REFUSED[name]
    with pytest.raises(SpecError, match=message):
        _seconds(loop, *operations)
    assert _seconds("no_overlap", *operations) > 0


def test_forward_may_run_another_number_of_times() -> None:
    """Recomputation: what does not overlap needs no common count."""
    again = Operation("fc", Phase.FORWARD, 2.0, _reduce(100, "tp"), 2)
    assert _seconds("tp_dp_overlap", again, *LAYER[1:]) == pytest.approx(10.5 + 3.5)


def test_a_duration_counts_once_an_execution_and_once_a_step() -> None:
    layer = [Operation("x", phase, 1.0, None, 3) for phase in Phase]
    term = parse_loop("forward + backward + 250 ms")
    for per_layer, seconds in ((True, 9.75), (False, 9.25)):
        loop = TrainingLoop(term, per_layer)
        step = step_time(Workload("w", tuple(layer)), COMMUNICATORS, 2, loop=loop)
        assert step.root == Constant(seconds)
    mixed = (*layer, Operation("x", Phase.WEIGHT_GRAD, 1.0, None, 4))
    with pytest.raises(SpecError, match="counts 3 and 4"):
        step_time(Workload("w", mixed), COMMUNICATORS, 2, loop=TrainingLoop(term))


def test_a_quantity_on_two_sides_is_sent_once() -> None:
    """max(TP, TP + DP) is TP + DP: there is nothing to share beyond it."""
    zero = "0 * forward + 0 * backward + "
    both, one = (
        TrainingLoop(parse_loop(zero + text))
        for text in (
            "max(input_grad.tp, input_grad.tp + backward.dp)",
            "input_grad.tp + backward.dp",
        )
    )
    workload = Workload("w", LAYER)
    seconds = [step_time(workload, COMMUNICATORS, 2, loop=x).seconds(B) for x in (both, one)]
    assert seconds[0] == seconds[1] == pytest.approx(5.0)  # TP 3 s on dim1, DP 2 s on dim2


def test_operation_classes_keep_their_names() -> None:
    """Forward and input gradient send alike; they merge for solvers, not for people."""
    step = _expression("no_overlap")
    found = {share.label: share.seconds for share in critical_path(step, B)}
    assert found == pytest.approx(
        {
            "compute": 5.5,
            "forward TP all-reduce": 1.5,
            "input grad TP all-reduce": 3.0,
            "weight grad DP all-reduce": 2.0,
        }
    )
    assert isinstance(step.merged, Sum)
    assert len(step.merged.terms) == 3  # compute, TP and DP
