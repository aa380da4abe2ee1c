"""Several jobs on one fabric: slowdowns worked by hand, and what cannot share is named."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from libra_planner.check.degraded import SharedFabric, shared_fabric
from libra_planner.check.links import LinkCheck
from libra_planner.errors import SpecError
from libra_planner.fabric.clos import Indices
from libra_planner.fabric.topology import TrafficSettings
from libra_planner.problem import Problem
from libra_planner.routing.policy import Policy
from tests.checked_plans import checked, loaded, operation

SPRAY, ECMP = Policy("spray"), Policy("ecmp")
RINGS = {"fidelity": "pipelined", "chunks": 1, "latency_ns": 0, "algorithms": ["ring"]}
TWO_LEAVES = {"switch_radix": 8, "leaves": 2, "oversubscription": 2, "port_speed": "50 GB/s"}


def positions(check: LinkCheck) -> Indices:
    """Positions of the shared dimension that a job runs on, in its own order."""
    n_inner = math.prod(check.problem.topology.sizes[:-1])
    npu_at = np.arange(check.problem.topology.n_npus) if check.npu_at is None else check.npu_at
    return npu_at[::n_inner] // n_inner


def job(
    folder: Path,
    topology: str = "SW(4)",
    *,
    size_bytes: float = 4e8,
    compute_ms: float = 10,
    **keys,
) -> Problem:
    """A ring all-reduce of 2 m 3/4 bytes, 12 ms at 50 GB/s."""
    folder.mkdir(exist_ok=True)
    steps = [operation("weight_grad", "all-reduce", size_bytes, compute_ms=compute_ms)]
    keys = RINGS | {"realization": TWO_LEAVES} | keys
    return loaded(folder, topology, steps, **keys)


def shared(jobs: list[Problem], placement: str, **options) -> SharedFabric:
    bandwidths = [np.full(one.topology.n_dims, 50e9) for one in jobs]
    return shared_fabric(jobs, bandwidths, traffic=TrafficSettings(placement), **options)


def test_jobs_on_leaves_of_their_own_do_not_meet(tmp_path) -> None:
    jobs = [job(tmp_path / name) for name in "ab"]
    fabric = shared(jobs, "contiguous")
    assert [positions(one).tolist() for one in fabric.checks] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    for policy in (SPRAY, ECMP):
        for one in fabric.reports(policy, seeds=[0, 1]):
            assert one.slowdown == pytest.approx([1.0, 1.0])
            assert one.alone.effective_step_time_s == pytest.approx([0.022] * 2)
            assert one.n_npus == 4


def test_interleaved_jobs_share_oversubscribed_uplinks(tmp_path) -> None:
    """In turn over the leaves every ring hop crosses: 2 + 2 flows on the 2 uplinks of a leaf."""
    jobs = [job(tmp_path / "a"), job(tmp_path / "b", compute_ms=2)]
    fabric = shared(jobs, "rail")
    assert [positions(one).tolist() for one in fabric.checks] == [[0, 4, 1, 5], [2, 6, 3, 7]]
    first, second = fabric.reports(SPRAY)
    assert first.alone.effective_step_time_s == pytest.approx([0.010 + 0.012])
    assert first.shared.effective_step_time_s == pytest.approx([0.010 + 2 * 0.012])
    assert first.slowdown == pytest.approx([34 / 22])
    assert second.slowdown == pytest.approx([26 / 14])
    # Alone, two flows have two uplinks; ECMP may put them on one, never does better.
    for one in fabric.reports(ECMP, seeds=range(6)):
        assert (one.slowdown >= 1 - 1e-12).all()
        assert (one.shared.effective_step_time_s >= 0.010 * (one is first) + 0.024 - 1e-12).all()


def test_a_job_between_silent_ones_has_the_fabric_to_itself(tmp_path) -> None:
    """A neighbour that only computes takes no link, however it is placed."""
    quiet = loaded(
        _folder(tmp_path / "q"),
        "SW(4)",
        [operation("forward", "all-reduce", 1e9, group="tp", compute_ms=5)],
        parallelism={"tp": 1, "dp": 4},
        realization=TWO_LEAVES,
        **RINGS,
    )
    busy, _ = shared([job(tmp_path / "a"), quiet], "rail").reports(SPRAY)
    assert busy.slowdown == pytest.approx([1.0])


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_the_neighbours_heaviest_round_counts(tmp_path) -> None:
    """A job's big all-reduce stands for it, not the small one of another group."""
    steps = [
        operation("forward", "all-reduce", 1e6, group="tp"),
        operation("weight_grad", "all-reduce", 9e8, group="dp"),
    ]
    # Placed in turn, TP of pairs 0-4 and 1-5 crosses as DP of pairs 0-1 and 4-5 does not.
    neighbour = loaded(
        _folder(tmp_path / "n"),
        "SW(4)",
        steps,
        parallelism={"tp": 2, "dp": 2},
        realization=TWO_LEAVES,
        **RINGS,
    )
    first, _ = shared([job(tmp_path / "a"), neighbour], "rail").reports(SPRAY)
    assert first.slowdown == pytest.approx([1.0])
    swapped = [steps[0] | {"collective": {"kind": "all-reduce", "size_bytes": 9e9, "group": "tp"}}]
    neighbour = loaded(
        tmp_path / "n",
        "SW(4)",
        swapped + steps[1:],
        parallelism={"tp": 2, "dp": 2},
        realization=TWO_LEAVES,
        **RINGS,
    )
    first, _ = shared([job(tmp_path / "a"), neighbour], "rail").reports(SPRAY)
    assert first.slowdown == pytest.approx([34 / 22])


def test_inner_dimensions_stay_with_their_jobs(tmp_path) -> None:
    """Nodes move as a whole, and only the shared dimension is slower."""
    keys = {"fidelity": "pipelined", "chunks": 1, "latency_ns": 0, "algorithms": ["direct", "ring"]}
    jobs = [job(tmp_path / name, "FC(2)_SW(4)", **keys) for name in "ab"]
    fabric = shared(jobs, "rail")
    assert [positions(one).tolist() for one in fabric.checks] == [[0, 4, 1, 5], [2, 6, 3, 7]]
    assert fabric.checks[0].npu_at.tolist() == [0, 1, 8, 9, 2, 3, 10, 11]
    inner, outer = 4e8 / 50e9, 3e8 / 50e9  # 2 m / 2, then 2 (m / 2) 3/4.
    for one in fabric.reports(SPRAY):
        assert one.alone.effective_step_time_s == pytest.approx([0.010 + inner + outer])
        assert one.shared.effective_step_time_s == pytest.approx([0.010 + inner + 2 * outer])


def test_the_jobs_fill_the_fabric_once(tmp_path) -> None:
    sizes = ["SW(4)", "SW(8)", "SW(4)"]
    links = {"realization": {"switch_radix": 8, "oversubscription": 2}}
    jobs = [job(tmp_path / str(i), size, **links) for i, size in enumerate(sizes)]
    for placement in ("contiguous", "rail", "random"):
        fabric = shared(jobs, placement, seed=3)
        found = [positions(one).tolist() for one in fabric.checks]
        assert [len(one) for one in found] == [4, 8, 4]
        assert sorted(np.concatenate(found).tolist()) == list(range(16))
        assert str(fabric.design.topology) == "SW(16)"


def test_one_job_is_a_check_of_its_own_plan(tmp_path) -> None:
    one = job(tmp_path / "a", "SW(8)")
    [report] = shared([one], "contiguous").reports(ECMP, seeds=[3])
    alone = checked(one, 50).report(ECMP, seeds=[3])
    assert report.shared.effective_step_time_s == alone.effective_step_time_s
    assert report.slowdown == pytest.approx([1.0])


def test_failures_are_those_of_the_shared_fabric(tmp_path) -> None:
    """3 of its 4 cables between switches fail; a fabric for one job's 4 NPUs has but 2."""
    broken = {"realization": TWO_LEAVES | {"failed_links": 3}}
    jobs = [job(tmp_path / name, **broken) for name in "ab"]
    fabric = shared(jobs, "contiguous").design.dimensions[-1].fabric
    assert fabric.failed.size == 6


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"switch_radix": 16},
            r"\(dim1\)\.switch_radix: got 8, and 16 in another plan, expected one",
        ),
        ({"leaves": 4}, r"\(dim1\)\.leaves: got 2, and 4 in"),
        ({"spines": 1}, r"\(dim1\)\.spines: got auto, and 1 in"),
        ({"parallel_links": 2}, r"\(dim1\)\.parallel_links: got auto, and 2 in"),
        ({"oversubscription": 1}, r"\(dim1\)\.oversubscription: got 2, and 1 in"),
        ({"failed_links": 1}, r"\(dim1\)\.failed_links: got 0, and 1 in"),
        ({"port_speed": "25 GB/s"}, r"\(dim1\)\.port_speed: got 5e\+10, and 2\.5e\+10 in"),
    ],
)
def test_plans_that_say_different_things_of_what_they_share(other, message, tmp_path) -> None:
    jobs = [job(tmp_path / "a"), job(tmp_path / "b", realization=TWO_LEAVES | other)]
    with pytest.raises(SpecError, match=message):
        shared(jobs, "rail")


def test_in_network_reduction_of_jobs_is_refused(tmp_path) -> None:
    """Trees are not flows: other jobs would not see them."""
    jobs = [job(tmp_path / "a"), job(tmp_path / "b", in_network_reduction=["pod"])]
    with pytest.raises(SpecError, match=r"in-network reduction in dim1.*expected.*flows"):
        shared(jobs, "rail")


@pytest.mark.parametrize(
    ("topologies", "message"),
    [
        (["FC(2)_SW(4)", "FC(4)_SW(4)"], r"FC\(4\)_SW\(4\) beside FC\(2\)_SW\(4\)"),
        (["SW(4)", "FC(4)"], r"FC\(4\) beside SW\(4\)"),
        (["RI(4)", "RI(4)"], "expected a switch, which jobs can share"),
    ],
)
def test_jobs_that_cannot_share_are_named(topologies, message, tmp_path) -> None:
    plain = {"algorithms": None, "realization": {}, "fidelity": "ideal", "chunks": None}
    keys = {name: value for name, value in plain.items() if value is not None}
    jobs = []
    for i, topology in enumerate(topologies):
        folder = _folder(tmp_path / str(i))
        steps = [operation("weight_grad", "all-reduce", 4e8)]
        jobs.append(loaded(folder, topology, steps, **keys))
    with pytest.raises(SpecError, match=message):
        shared(jobs, "rail")


def test_jobs_have_one_bandwidth_on_what_they_share(tmp_path) -> None:
    jobs = [job(tmp_path / name) for name in "ab"]
    with pytest.raises(SpecError, match="got 50 and 40 GB/s"):
        shared_fabric(
            jobs, [np.array([50e9]), np.array([40e9])], traffic=TrafficSettings("contiguous")
        )
