"""Closed forms of what ranks exchange (C15, C16) against trainings that are executed."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.errors import SpecError
from libra_planner.fabric.topology import Topology, parse_topology
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.workload.operations import Collective, CollectiveKind, Group
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer
from libra_planner.workload.volumes import (
    Exchange,
    Exchanges,
    Formats,
    Habits,
    embedding_exchanges,
    gradient_exchanges,
    layer_exchanges,
    logits_exchanges,
    pipeline_exchanges,
    tied_gradient_exchange,
)
from tests.conftest import random_cases
from tests.pipelines import chunk_layers
from tests.ranks import members, places, trained

N_PARAMETERS = 840, 5040


@st.composite
def strategies(draw: st.DrawFn) -> Strategy:
    """Small ones, with all axes."""
    tp, cp, dp = (draw(st.sampled_from(n)) for n in ((1, 2, 4), (1, 2, 3), (1, 2, 3)))
    pp = draw(st.integers(1, 3))
    interleave = draw(st.integers(1, 3)) if pp > 1 else 1
    n_microbatches = pp * draw(st.integers(1, 2)) if interleave > 1 else draw(st.integers(1, 4))
    n_stage = tp * cp * dp
    etp = draw(st.sampled_from([n for n in (1, 2, 4) if tp % n == 0]))
    ep = draw(st.sampled_from([n for n in range(1, n_stage + 1) if n_stage // etp % n == 0]))
    microbatch = draw(st.integers(1, 2))
    return Strategy(
        tp=tp,
        cp=cp,
        dp=dp,
        pp=pp,
        ep=ep,
        etp=etp,
        microbatch=microbatch,
        global_batch=microbatch * dp * n_microbatches,
        interleave=interleave,
        zero=draw(st.integers(0, 3)),
        recompute=draw(st.sampled_from(Recompute)),
        flash_attention=draw(st.booleans()),
        sequence_parallel=draw(st.booleans()),
    )


@st.composite
def models(draw: st.DrawFn, strategy: Strategy) -> Transformer:
    """Small ones, whose tokens go to all experts alike."""
    n_experts = strategy.ep * draw(st.integers(1, 2))
    n_layers = strategy.pp * strategy.interleave + draw(st.integers(0, 3))
    heads = 4 * draw(st.integers(1, 2))
    has_experts = draw(st.booleans())
    return Transformer(
        "small",
        n_layers,
        hidden=12,
        attention=Attention(
            heads, draw(st.sampled_from((1, 2, heads))), 3, draw(st.integers(2, 3))
        ),
        ffn=FeedForward(24),
        sequence_tokens=strategy.cp * strategy.tp * n_experts,
        vocabulary=draw(st.sampled_from((0, 16))),
        experts=Experts(n_experts, draw(st.integers(1, 3)), 8, draw(st.sampled_from((0, 8))))
        if has_experts
        else None,
        n_dense_layers=draw(st.integers(0, 1)),
        is_tied=draw(st.booleans()),
        is_parallel=draw(st.booleans()),
    )


FORMATS = st.builds(
    Formats,
    dispatch_bytes=st.sampled_from((1, 2)),
    gradient_bytes=st.sampled_from((2, 4)),
)
HABITS = st.builds(
    Habits,
    cp=st.sampled_from(("ring", "all-gather", "all-to-all")),
    scatter_gather=st.booleans(),
    reduces_once=st.booleans(),
    reshards=st.booleans(),
)


def _layers(model: Transformer, strategy: Strategy) -> list[list[list[bool]]]:
    """Whether a layer has experts, [stage][chunk][layer]."""
    layout = chunk_layers(model.n_layers, strategy.pp, strategy.interleave)
    kinds: list[list[list[bool]]] = [[] for _ in layout]
    first = 0
    for chunk, stage in product(range(strategy.interleave), range(strategy.pp)):
        numbers = range(first, first + layout[stage][chunk])
        kinds[stage].append(
            [model.experts is not None and i >= model.n_dense_layers for i in numbers]
        )
        first += layout[stage][chunk]
    return kinds


def _closed(
    model: Transformer,
    strategy: Strategy,
    kinds: list[list[bool]],
    stage: int,
    formats: Formats,
    habits: Habits,
) -> Counter[str]:
    """Bytes that a rank of a stage sends in a step, by axis, of the closed forms."""
    per_microbatch = [
        layer_exchanges(model, strategy, has_experts, formats, habits)
        for chunk in kinds
        for has_experts in chunk
    ]
    if stage == 0:
        per_microbatch.append(embedding_exchanges(model, strategy, formats))
    if stage == strategy.pp - 1:
        per_microbatch.append(logits_exchanges(model, strategy, formats))
    per_microbatch.append(pipeline_exchanges(model, strategy, stage, formats, habits))
    sent: Counter[str] = Counter()

    def count(found: tuple[Exchange, ...], times: int) -> None:
        for one in found:
            n = strategy.dp * strategy.cp if one.axis == "dp_cp" else getattr(strategy, one.axis)
            sent[one.axis] += times * float(one.sent_bytes(n))

    for part in per_microbatch:
        assert isinstance(part, Exchanges)
        count(part.forward + part.backward, strategy.n_microbatches)
    count(gradient_exchanges(strategy, *N_PARAMETERS, formats, habits), 1)
    if stage in (0, strategy.pp - 1):
        count(tied_gradient_exchange(model, strategy, formats), 1)
    return sent


@given(data=st.data(), strategy=strategies(), formats=FORMATS, habits=HABITS)
@random_cases(50)
def test_every_rank_sends_what_the_closed_forms_say(
    data: st.DataObject, strategy: Strategy, formats: Formats, habits: Habits
) -> None:
    model = data.draw(models(strategy))
    kinds = _layers(model, strategy)
    order = data.draw(st.permutations(("tp", "cp", "dp", "pp")))
    ranks = trained(model, strategy, kinds, N_PARAMETERS, order, formats, habits)
    assert len(ranks) == strategy.n_npus
    for rank in ranks:
        stage = rank.place["pp"]
        expected = _closed(model, strategy, kinds[stage], stage, formats, habits)
        for axis in expected.keys() | rank.sent.keys():
            assert rank.sent[axis] == pytest.approx(expected[axis], rel=1e-12), axis


@given(
    n_nodes=st.integers(1, 6),
    node=st.integers(1, 4),
    most=st.integers(1, 4),
    each=st.integers(1, 2),
)
def test_copies_for_nodes(n_nodes: int, node: int, most: int, each: int) -> None:
    """Every token goes to experts on ``most`` nodes, ``each`` on every one; one copy per node."""
    most = min(most, n_nodes)
    ep, hidden, n_tokens = n_nodes * node, 12, 2 * n_nodes
    copies = sum(
        (token + i) % n_nodes != 0 for token in range(n_tokens) for i in range(most)
    )  # of the rank on node 0
    model = Transformer(
        "experts", 1, hidden, Attention(1, 1, 1, 1), FeedForward(0), n_tokens,
        experts=Experts(ep * each, most * each, 8),
    )  # fmt: skip
    found = layer_exchanges(
        model, Strategy(dp=ep, ep=ep), has_experts=True, habits=Habits(experts_on_at_most=most)
    )
    for one in found.forward:
        assert one.far_bytes * (ep - node) / ep == pytest.approx(copies * hidden * 2)
    assert len(found.forward) == (2 if ep > 1 else 0)


FABRICS = ("SW(4)_[SW(6)_SW(2)]", "RI(12)_SW(4)", "SW(2)_FC(3)_[SW(4)_SW(2)]", "SW(48)")


def _spanned(topology: Topology, group: Group) -> set[int]:
    """NPUs of the group of NPU 0."""
    steps = np.concatenate([[1], np.cumprod(topology.sizes)[:-1]])
    reach = [
        [i * stride * step for i in range(size)]
        for size, stride, step in zip(group.sizes, group.strides, steps, strict=True)
    ]
    return {int(sum(offsets)) for offsets in product(*reach)}


@given(data=st.data(), fabric=st.sampled_from(FABRICS))
@random_cases(120)
def test_placed_groups_hold_the_ranks_of_one_axis(data: st.DataObject, fabric: str) -> None:
    """NPU i is rank i; what is refused has a degree that does not fit or distances that differ."""
    topology, left, degrees = parse_topology(fabric), 48, {}
    for axis in ("tp", "cp", "dp"):
        degrees[axis] = data.draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0]))
        left //= degrees[axis]
    degrees["pp"] = left
    n_stage = math.prod(degrees[axis] for axis in ("tp", "cp", "dp"))
    for axis in ("etp", "ep"):
        degrees[axis] = data.draw(
            st.sampled_from([n for n in range(1, n_stage + 1) if n_stage % n == 0])
        )
        n_stage //= degrees[axis]
    order = data.draw(st.permutations(("tp", "cp", "dp", "pp")))
    everyone, groups = places(Strategy(**degrees), order), {}
    try:
        groups = placed_groups(topology, degrees, order)
    except SpecError as error:
        refused = str(error)
    if not groups:
        assert "divide the other" in refused or "unequal distances" in refused
        return
    assert set(groups) == {"tp", "cp", "dp", "pp", "etp", "ep", "edp", "dp_cp"}
    for axis, group in groups.items():
        assert _spanned(topology, group) == set(members(everyone, 0, axis)), axis


@given(
    sizes=st.lists(st.integers(1, 5), min_size=4, max_size=4).filter(lambda g: math.prod(g) > 1),
    size=st.floats(1.0, 1e12),
)
def test_volumes_of_a_hierarchy_telescope(sizes: list[int], size: float) -> None:
    """A tier carries 2m(1/G_(d-1) - 1/G_last), the sum of what it and those beyond exchange; what
    all exchange themselves is 2m(n-1)/n, as much as one ring."""
    topology = parse_topology("SW(5)_[SW(5)_SW(5)_SW(5)]")
    group = Group(tuple(sizes), (1, 1, 1, 1))
    network = plain_network(topology)
    whole = Collective(CollectiveKind.ALL_REDUCE, size, "dp")
    loads, before = network.loads(whole, group), np.cumprod([1, *sizes])
    n = before[-1]
    expected = [2 * size * (1 / before[d] - 1 / n) for d in range(1, 4)]
    np.testing.assert_allclose(loads[1:], expected, rtol=1e-12, atol=1e-12 * size)
    np.testing.assert_allclose(loads[0], 2 * size * (1 - 1 / sizes[0]), rtol=1e-12)
    own = loads - np.array([0.0, *loads[2:], 0.0])
    assert own.sum() == pytest.approx(
        float(Exchange("dp", CollectiveKind.ALL_REDUCE, size, 1).sent_bytes(float(n)))
    )


@given(data=st.data(), habits=HABITS)
@random_cases(30)
def test_arrays_of_strategies_hold_each(data: st.DataObject, habits: Habits) -> None:
    several = data.draw(st.lists(strategies(), min_size=2, max_size=5))
    names = ("tp", "cp", "dp", "pp", "ep", "etp", "global_batch", "microbatch", "interleave", "zero",
             "recompute", "sequence_parallel")  # fmt: skip
    flash = several[0].flash_attention
    several = [replace(one, flash_attention=flash) for one in several]
    arrays = Strategy(
        **{name: np.array([getattr(one, name) for one in several]) for name in names},
        flash_attention=flash,
    )
    model = data.draw(models(several[0]))
    has_experts = model.experts is not None

    def totals(strategy: Strategy) -> dict[str, object]:
        layer = layer_exchanges(model, strategy, has_experts, habits=habits)
        ends = pipeline_exchanges(model, strategy, habits=habits)
        found = [*layer.forward, *layer.backward, *ends.forward, *ends.backward]
        found += gradient_exchanges(strategy, *N_PARAMETERS, habits=habits)
        sums: dict[str, object] = {}
        for one in found:
            key = f"{one.axis} {one.kind}"
            sums[key] = sums.get(key, 0.0) + np.asarray(one.count * one.size_bytes)
        return sums

    together = totals(arrays)
    for i, one in enumerate(several):
        alone = {key: float(value) for key, value in totals(one).items()}
        for key, value in together.items():
            assert np.broadcast_to(value, len(several))[i] == pytest.approx(alone.get(key, 0.0))
