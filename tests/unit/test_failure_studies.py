"""Designs with broken links and spines: capacity by hand, nested draws, who is cut off."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from libra_planner.check import degraded as failures_study
from libra_planner.check.degraded import drawn_failures, every_single_failure
from libra_planner.check.links import LinkCheck
from libra_planner.errors import Disconnected, SpecError
from libra_planner.fabric.clos import Clos, Flows, fail, single_failures, with_failed
from libra_planner.fabric.parts import HOST_LEAF, design_parts
from libra_planner.routing.policy import Policy
from libra_planner.routing.rehashed import Rehashed
from libra_planner.routing.routes import Router
from libra_planner.views.failures import failures_blocks
from tests.checked_plans import checked, loaded, operation

SPRAY, ECMP = Policy("spray"), Policy("ecmp")
RINGS = {"fidelity": "pipelined", "chunks": 1, "latency_ns": 0, "algorithms": ["ring"]}
FOUR_SPINES = {
    "switch_radix": 8,
    "leaves": 2,
    "spines": 4,
    "placement": "rail",
    "port_speed": "50 GB/s",
}


def crossing(folder: Path, **realization: object) -> LinkCheck:
    """Ring neighbours on the other leaf of two: 10 ms and an all-reduce of 14 ms."""
    steps = [operation("weight_grad", "all-reduce", 4e8, compute_ms=10)]
    links = FOUR_SPINES | realization
    return checked(loaded(folder, "SW(8)", steps, realization=links, **RINGS), 50)


@pytest.mark.parametrize("n_spines", [0, 1, 2, 3])
def test_spines_lost_are_capacity_lost(n_spines: int, tmp_path) -> None:
    """(S - f) / S of the uplinks are left, whichever of the spines fail."""
    study = drawn_failures(crossing(tmp_path), SPRAY, n_spines=n_spines, seeds=range(5))
    assert study.whole_step_time_s == pytest.approx(0.024)
    assert study.step_time_s == pytest.approx([0.010 + 0.014 * 4 / (4 - n_spines)] * 5)
    assert study.n_disconnected == 0
    assert [case.name for case in study.cases] == [f"seed {i}" for i in range(5)]


def test_a_lost_cable_slows_its_leaf(tmp_path) -> None:
    """3 of 4 uplinks left on one leaf, and the flows of the other avoid its spine too."""
    study = drawn_failures(crossing(tmp_path), SPRAY, n_links=1, seeds=range(4))
    assert study.step_time_s == pytest.approx([0.010 + 0.014 * 4 / 3] * 4)


def test_hosts_that_are_cut_off_are_named(tmp_path) -> None:
    study = drawn_failures(crossing(tmp_path), ECMP, n_spines=4, seeds=range(2))
    assert (study.n_disconnected, study.step_time_s.size, study.fim_percent.size) == (2, 0, 0)
    for case in study.cases:
        # Ring hops 0 -> 4 -> 1 -> 5 ... cross both ways: 8 pairs, 5 of them shown.
        assert "dim1: got 8 pairs of NPUs that no path joins: NPU 0 -> NPU 4" in case.disconnected
        assert (case.step_time_s, np.isnan(case.fim_percent)) == (float("inf"), True)


def drawn_fabrics(check: LinkCheck, monkeypatch, **failures: object) -> list[Clos]:
    """The broken fabrics of a study, one per seed."""
    found: list[Clos] = []

    def spy(fabric: Clos, **options: int) -> Clos:
        found.append(fail(fabric, **options))
        return found[-1]

    monkeypatch.setattr(failures_study.clos, "fail", spy)
    drawn_failures(check, SPRAY, **failures)
    return found


def test_draws_of_more_failures_contain_those_of_fewer(tmp_path, monkeypatch) -> None:
    check = crossing(tmp_path)
    for what in ("n_links", "n_spines"):
        draws = [drawn_fabrics(check, monkeypatch, **{what: n}, seeds=range(4)) for n in (1, 2, 3)]
        for fewer, more in pairwise(draws):
            for one, other in zip(fewer, more, strict=True):
                assert set(one.failed.tolist()) < set(other.failed.tolist())
        # Seeds differ from each other, and give the same again.
        assert len({tuple(one.failed.tolist()) for one in draws[0]}) > 1
        again = drawn_fabrics(check, monkeypatch, **{what: 3}, seeds=range(4))
        for one, other in zip(draws[-1], again, strict=True):
            np.testing.assert_array_equal(one.failed, other.failed)


def test_failures_add_to_those_of_the_plan(tmp_path) -> None:
    """One spine is down already: one more leaves 2 of 4, against a whole of 3 of 4."""
    study = drawn_failures(
        crossing(tmp_path, failed_links={"spines": 1, "seed": 3}), SPRAY, n_links=0, seeds=[0]
    )
    assert study.step_time_s == pytest.approx([study.whole_step_time_s])
    assert study.whole_step_time_s == pytest.approx(0.010 + 0.014 * 4 / 3)


@pytest.mark.parametrize("policy", [SPRAY, ECMP], ids=lambda one: one.name)
def test_the_worst_single_failure_is_the_worst_of_all(policy: Policy, tmp_path) -> None:
    check = crossing(tmp_path)
    study = every_single_failure(check, policy, seed=1)
    built = check.design.dimensions[0]
    assert isinstance(built.fabric, Clos)
    expected = {}
    for _, name, links in single_failures(built.fabric):
        broken = replace(built, fabric=with_failed(built.fabric, links))
        design = replace(check.design, dimensions=(broken,))
        report = replace(check, design=design).report(policy, seeds=[1])
        figures = float(report.effective_step_time_s[0]), float(report.fim_percent[0])
        expected[f"dim1: {name}"] = figures
    assert {one.name: (one.step_time_s, one.fim_percent) for one in study.cases} == expected
    assert len(study.cases) == 8 + 4  # Cables, spines.
    # A leaf's cables to four spines are one case where packets are sprayed, and counted as four.
    n_alike = 2 * 3 if policy is SPRAY else 0
    assert sum(bool(case.like) for case in study.cases) == n_alike
    shown = [
        block for block in failures_blocks({"n": study}, "", n_worst=9) if isinstance(block, str)
    ]
    assert study.cases[0].step_time_s == max(s for s, _ in expected.values())
    times = [case.step_time_s for case in study.cases]
    assert times == sorted(times, reverse=True)
    if policy is SPRAY:
        assert times == pytest.approx([0.010 + 0.014 * 4 / 3] * 12)
        ends = [one.partition("; ")[2] for one in shown if one.startswith("  dim1: ")]
        assert sorted(ends) == ["4 of 4 alike", "8 of 8 alike"]


def test_cores_fail_alone_too() -> None:
    """A core has a cable to its spine of every pod, in its plane alone."""
    sizes = {"n_parallel": 1, "n_pods": 2, "n_cores": 2, "core_parallel": 1, "n_planes": 2}
    fabric = Clos(2, 2, 2, host_Bps=1.0, uplink_Bps=1.0, core_Bps=1.0, **sizes)
    found = list(single_failures(fabric))
    cores = {one.name: one.links for one in found if one.part == "core"}
    assert len(cores) == fabric.n_switches["core"] == 8
    for name, links in cores.items():
        ends = [i for i in range(fabric.n_links) if name in fabric.link_name(i).split(" -> ")]
        assert sorted(links) == ends
        assert len(ends) == 2 * 2  # Pods, directions.
    counts = {"leaf - spine cable": 16, "spine - core cable": 16, "spine": 8, "core": 8}
    assert {part: sum(one.part == part for one in found) for part in counts} == counts


def test_a_single_failure_that_cuts_hosts_off_comes_first(tmp_path) -> None:
    check = crossing(tmp_path, spines=1, parallel_links=4)
    study = every_single_failure(check, SPRAY)
    assert study.cases[0].name == "dim1: spine 0"
    assert study.cases[0].disconnected
    assert study.n_disconnected == 1
    assert study.step_time_s == pytest.approx([0.010 + 0.014 * 4 / 3] * 8)


def test_every_dimension_of_several_switches_is_drawn(tmp_path) -> None:
    """Two leaf-spines and a ring: failures in both, none on the ring."""
    steps = [operation("weight_grad", "all-reduce", 4e8)]
    links: dict[str, object] = {"switch_radix": 4}
    problem = loaded(tmp_path, "RI(2)_SW(4)_SW(8)", steps, realization=links)
    check = checked(problem, 50, 40, 30)
    # 4 NPUs on 4 ports are one switch: only dim3 has cables between switches.
    names = [case.name for case in every_single_failure(check, SPRAY).cases]
    assert {name.split(":")[0] for name in names} == {"dim3"}
    links["node"] = {"wiring": "rail"}  # Without a NIC it is a network only where the plan says so.
    both = loaded(tmp_path, "RI(2)_SW(6)_SW(8)", steps, realization=links)
    names = [case.name for case in every_single_failure(checked(both, 50, 40, 30), SPRAY).cases]
    assert {name.split(":")[0] for name in names} == {"dim2", "dim3"}


def test_what_fails_is_named_by_the_dimension_that_buys_it(tmp_path) -> None:
    """As in the table of parts: of a stack each tier has its own switches, and cables to them."""
    steps = [operation("weight_grad", "all-reduce", 4e8)]
    links, tiers = {"switch_radix": 8}, ["pod", "pod", "pod"]
    problem = loaded(tmp_path, "[SW(4)_SW(2)_SW(2)]", steps, realization=links, tiers=tiers)
    check = checked(problem, 50, 50, 50)
    cables = {
        f"{one.label}: {cable.joins.replace('-', ' - ')} cable"
        for one in design_parts(check.design).dimensions
        for cable in one.cables
        if cable.joins != HOST_LEAF
    }
    found = {case.part for case in every_single_failure(check, SPRAY).cases}
    assert cables == {"dim2: leaf - spine cable", "dim3: spine - core cable"}
    assert found == cables | {"dim2: spine", "dim3: core"}


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        (
            {"n_spines": 5},
            "got 5 failed spines, expected 0 to 4.*write 3 or fewer: with all of them",
        ),
        ({"n_links": 9}, "got 9 failed links, expected 0 to 8"),
    ],
)
def test_more_failures_than_there_are_parts_are_refused(failures, message, tmp_path) -> None:
    with pytest.raises(SpecError, match=message):
        drawn_failures(crossing(tmp_path), SPRAY, **failures)


def test_one_switch_has_nothing_between_switches_to_fail(tmp_path) -> None:
    steps = [operation("weight_grad", "all-reduce", 4e8)]
    check = checked(loaded(tmp_path, "RI(2)_SW(8)", steps), 50, 50)
    for study in (drawn_failures, every_single_failure):
        with pytest.raises(SpecError, match="which has no links between switches"):
            study(check, SPRAY)


def test_progress_counts_the_draws(tmp_path) -> None:
    seen: list[tuple[int, int]] = []
    drawn_failures(
        crossing(tmp_path),
        SPRAY,
        n_links=1,
        seeds=range(3),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("seed", range(12))
def test_flows_hash_again_as_if_all_did(seed: int) -> None:
    """Paths after a failure are those of the whole list routed on the broken fabric."""
    rng = np.random.default_rng(seed)
    cores = {"n_pods": 3, "n_cores": 2, "core_parallel": 2, "core_Bps": 1.0} if seed % 2 else {}
    counts = {"n_parallel": 1 + seed % 3, "n_planes": 1 + seed % 2}
    fabric = Clos(3, 4, 3, host_Bps=1.0, uplink_Bps=1.0, **counts, **cores)
    ends = rng.integers(fabric.n_hosts // fabric.n_planes, size=(2, 80))
    ends = ends[:, ends[0] != ends[1]]
    flows = Flows(*ends, np.ones(ends.shape[1]))
    policy = Policy("ecmp", hash="murmur" if seed % 3 else "crc32")
    same = Rehashed(fabric, flows, policy, seed)
    for n_links, n_spines in ((0, 0), (1, 0), (0, 1), (2, 1), (5, 0), (11, 0)):
        broken = fail(fabric, n_links=n_links, n_spines=n_spines, seed=seed)
        try:
            expected = Router(broken, flows, policy).routing(seed).links
        except Disconnected as error:
            with pytest.raises(Disconnected, match=str(error.faults[0].got)[:12]):
                same.links(broken)
        else:
            np.testing.assert_array_equal(same.links(broken), expected)
