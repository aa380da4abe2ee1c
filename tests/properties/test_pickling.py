"""Plans as data: the same problem in another process, and nothing in it that is code."""

from __future__ import annotations

import gc
import pickle
import types
from functools import partial

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.check.links import link_check
from libra_planner.problem import Problem
from libra_planner.reading.bundled import names
from libra_planner.routing.policy import Policy
from libra_planner.units import BYTES_PER_S_PER_GBPS

PLANS = [
    *((name, ()) for name in names("examples")),
    ("01_gpt3_4d", ("fidelity=pipelined", "chunks=8", "fabric.latency_ns=500")),
    ("01_gpt3_4d", ("fidelity=pipelined", "chunks=auto", "fabric.latency_ns=20000")),
    ("03_group", ("fidelity=pipelined", "chunks=auto", "fabric.latency_ns=[1, 2, 3, 40000]")),
    ("03_group", ("group_objective=relative", "objective=performance")),
    ("01_gpt3_4d", ("scheduler=balanced",)),
    ("04_overlap", ("in_network_reduction=[dim4]", "fabric.realization={switch_radix: 128}")),
    ("01_gpt3_4d", ("training_loop={step: 'max(forward, backward) + 3 ms'}",)),
]


@pytest.fixture(params=PLANS, ids=[f"{name} {' '.join(given)}".strip() for name, given in PLANS])
def problem(request: pytest.FixtureRequest) -> Problem:
    name, given = request.param
    return lp.load_plan(lp.example(name), given)


def test_a_plan_is_the_same_in_another_process(problem: Problem) -> None:
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert repr(again) == repr(problem)
    assert again.text.places == problem.text.places
    here, there = lp.optimize(problem), lp.optimize(again)
    assert repr(here) == repr(there)
    bandwidth = here.bandwidth_bytes_per_s
    assert bandwidth.tobytes() == there.bandwidth_bytes_per_s.tobytes()
    assert repr(lp.evaluate(problem, bandwidth)) == repr(lp.evaluate(again, bandwidth))
    GBps = np.ceil(np.round(bandwidth / BYTES_PER_S_PER_GBPS, 6))
    whole = np.maximum(GBps, 1) * BYTES_PER_S_PER_GBPS
    reports = [link_check(one, whole).report(Policy("ecmp"), seeds=[1]) for one in (problem, again)]
    times = [report.effective_step_time_s.tobytes() for report in reports]
    assert times[0] == times[1]


def _vector(problem: Problem) -> np.ndarray:
    """Any bandwidth; of a plan that buys options the first of them."""
    if problem.prices.bills is not None:
        return np.array(problem.prices.bills.bandwidth_Bps[0])
    return np.full(problem.topology.n_dims, 1e11)


def test_what_is_worked_out_does_not_travel(problem: Problem) -> None:
    """Evaluating fills caches; what is sent stays as it is, and small."""
    before = len(pickle.dumps(problem))
    lp.evaluate(problem, _vector(problem))
    assert len(pickle.dumps(problem)) == before < 200_000


def test_a_plan_holds_no_code(problem: Problem) -> None:
    lp.evaluate(problem, _vector(problem))
    code = (types.FunctionType, types.MethodType, types.BuiltinMethodType, partial)
    assert [one for one in _reachable(problem) if isinstance(one, code)] == []


def _reachable(root: object) -> list[object]:
    """All that values hold, their classes and these classes' attributes left out."""
    found, left = {id(root): root}, [root]
    while left:
        for one in gc.get_referents(left.pop()):
            if not isinstance(one, type | types.ModuleType) and id(one) not in found:
                found[id(one)] = one
                left.append(one)
    return list(found.values())
