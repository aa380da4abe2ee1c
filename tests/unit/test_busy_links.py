"""Switches that are busy for most of a step in the model: what is said of them, and what is next."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.api.designs import Evaluated
from libra_planner.check.expected import expected_step
from libra_planner.cli.main import main
from libra_planner.errors import Place, SpecError, UnitError
from libra_planner.plan.options import nic_bytes_per_s, speed_bytes_per_s
from libra_planner.plan.steps.notes import Kind, Note, in_order
from libra_planner.studies.designs import bandwidth_bytes_per_s
from libra_planner.units import format_time
from libra_planner.views.training.step import busy_notes

PLAN = "0e_rails_2to1"
MANY = "parallelism={tp: 4, cp: 2, pp: 4, dp: 64, interleave: 20}"
"""Sends over the spines that little hides."""
THIN = [450e9, 50e9, 6.25e9]
SAID = (
    "of the step in the model; ECMP puts several flows on one uplink, and then the step is expected"
)


def _many() -> lp.Plan:
    return lp.load_plan(
        PLAN, {"parallelism": {"tp": 4, "cp": 2, "pp": 4, "dp": 64, "interleave": 20}}
    )


def test_busy_spines_are_told_by_their_share_of_the_step() -> None:
    """An NPU's bytes over the spines, and the step that the model has at it."""
    plan = _many()
    [note] = busy_notes(plan, THIN)
    share = plan.step.busy_s(THIN)[2] / float(plan.step_time.seconds(THIN))
    assert note.startswith(f"dim3 is busy for {share:.0%} {SAID}")
    assert note.endswith("optimize PLAN --routing ecmp chooses for the links")


def test_a_tier_that_is_busy_with_few_flows_is_not_told() -> None:
    """Spines of 1.56 GB/s are busy for half of a step; a leaf sends one flow, which meets none."""
    plan = lp.load_plan(PLAN)
    vector = [450e9, 50e9, 1.5625e9]
    assert plan.step.busy_s(vector)[2] / float(plan.step_time.seconds(vector)) > 0.5
    assert list(busy_notes(plan, vector)) == []
    found = plan.check(bandwidth_GBps=[450, 50, 1.5625], seeds=2).to_dict()
    assert found["effective_step_time_s"]["mean"] < 1.01 * found["ideal_step_time_s"]


@pytest.mark.parametrize(
    ("settings", "spine", "others"),
    [
        ({"tp": 4, "cp": 2, "pp": 4, "dp": 64, "interleave": 20}, 50 / 7, {}),
        ({"tp": 4, "cp": 2, "pp": 4, "dp": 64, "interleave": 20}, 50, {}),
        ({"tp": 8, "pp": 4, "dp": 64}, 12.5, {"placement": "random"}),
        ({"tp": 4, "pp": 4, "dp": 128}, 12.5, {"queue_pairs": 4, "source_ports": "shared"}),
        ({"tp": 4, "pp": 4, "dp": 128}, 12.5, {"queue_pairs": 4}),
    ],
)
def test_the_step_that_ecmp_is_expected_to_take_is_that_of_a_check(
    settings: dict[str, int], spine: float, others: dict[str, object]
) -> None:
    """The excess over the model within a fifth of what 20 routings find, or 0.2 % of the step."""
    plan = lp.load_plan(PLAN, {"parallelism": settings, "fabric.realization": others})
    vector = np.array([450e9, 50e9, spine * 1e9])
    own_s, step = float(plan.step_time.seconds(vector)), expected_step(plan, vector)
    found = plan.check(bandwidth_GBps=[450, 50, spine], seeds=20).to_dict()
    mean_s = found["effective_step_time_s"]["mean"]
    assert step.mean_s - own_s == pytest.approx(mean_s - own_s, rel=0.2, abs=0.002 * own_s)
    assert step.worst_s >= step.mean_s
    assert mean_s < step.most_s + 0.002 * own_s


def test_three_tiers_wait_for_uplinks_and_for_cores() -> None:
    """Thin cores alone, thin leaves alone."""
    settings = {
        "workload": "grok1-314b",
        "fabric.topology": "SW(8)_[SW(16)_SW(4)_SW(4)]",
        "fabric.tiers": ["node", "leaf", "spine", "spine"],
        "parallelism": {"tp": 8, "pp": 4, "dp": 64, "ep": 8, "recompute": "full"},
        "constraints": [],
    }
    plan = lp.load_plan(PLAN, settings)
    for given in ([450.0, 50.0, 50.0, 12.5], [450.0, 50.0, 12.5, 12.5]):
        vector = np.array(given) * 1e9
        own_s, step = float(plan.step_time.seconds(vector)), expected_step(plan, vector)
        found = plan.check(bandwidth_GBps=given, seeds=10).to_dict()
        mean_s = found["effective_step_time_s"]["mean"]
        assert mean_s > 1.005 * own_s
        assert step.mean_s - own_s == pytest.approx(mean_s - own_s, rel=0.2)


def test_leaves_of_one_switch_offer_no_choice() -> None:
    """Thin ports of a leaf are as busy, but nothing there is hashed."""
    plan = lp.load_plan(PLAN)
    vector = [450e9, 1e9, 50e9]
    assert plan.step.busy_s(vector)[1] / float(plan.step_time.seconds(vector)) > 0.3
    assert list(busy_notes(plan, vector)) == []


EXPERTS = {
    "workload": "qwen3-30b-a3b",
    "global_batch": 512,
    "fabric.topology": "SW(8)_[SW(32)_SW(2)]",
    "parallelism": {"tp": 1, "pp": 1, "dp": 512, "ep": 16, "etp": 1, "zero": 1},
    "constraints": [],
}
"""Two rings of gradients cross from each leaf of a rail to the other one."""


def test_rings_that_wait_for_two_flows_on_an_uplink_are_told() -> None:
    """They send little over the spines, and check finds them twice as long; none with 16 pairs."""
    given = [450.0, 50.0, 12.5]
    for pairs, is_told in ((1, True), (16, False)):
        plan = lp.load_plan(PLAN, {**EXPERTS, "fabric.realization": {"queue_pairs": pairs}})
        step_s = float(plan.step_time.seconds([1e9 * one for one in given]))
        notes = list(busy_notes(plan, [1e9 * one for one in given]))
        assert [SAID in one for one in notes] == [True] * is_told
        found = plan.check(bandwidth_GBps=given, seeds=10).to_dict()
        mean_s = found["effective_step_time_s"]["mean"]
        assert (mean_s > 1.05 * step_s) == is_told
        if is_told:
            told_s = float(re.search(r"expected to take ([0-9.]+) ms", notes[0])[1]) / 1e3
            assert told_s == pytest.approx(mean_s, rel=0.03)
            worst = float(re.search(r"the slowest tenth [+]([0-9]+)%", notes[0])[1]) / 100
            times_s = plan.check(bandwidth_GBps=given, seeds=10).effective_step_time_s
            assert worst == pytest.approx(times_s.max() / step_s - 1, abs=0.006)


def test_a_note_comes_before_what_luck_may_hide() -> None:
    """At 1:1 the first 10 seeds are lucky, and 60 are not: the note is there, and names the mean."""
    plan = lp.load_plan(PLAN, EXPERTS)
    given = [450.0, 50.0, 50.0]
    vector = np.array(given) * 1e9
    step_s, expected = float(plan.step_time.seconds(vector)), expected_step(plan, vector)
    found = plan.check(bandwidth_GBps=given, seeds=60).to_dict()
    assert found["effective_step_time_s"]["mean"] > 1.05 * step_s
    assert expected.mean_s == pytest.approx(found["effective_step_time_s"]["mean"], rel=0.03)
    assert len(list(busy_notes(plan, vector))) == 1


def test_a_ring_whose_flows_leave_a_leaf_alone_waits_for_none() -> None:
    """All NPUs of a leaf are in one ring: one flow leaves it."""
    plan = lp.load_plan(PLAN)
    vector = np.array([450e9, 50e9, 6.25e9])
    step = expected_step(plan, vector)
    assert step.worst_s < 1.02 * float(plan.step_time.seconds(vector))
    found = plan.check(bandwidth_GBps=[450, 50, 6.25], seeds=2).to_dict()
    rings = [one["slowdown"] for one in found["phases"] if one["algorithm"] == "ring"]
    assert rings
    assert max(one if isinstance(one, float) else one["mean"] for one in rings) < 1.05


def test_nothing_is_expected_of_links_that_cannot_be_built() -> None:
    """One NIC of 25 GB/s for 50 GB/s; one of 50 GB/s is."""
    for speed, is_built in (("200 Gbps", False), ("400 Gbps", True)):
        own = {"fabric.realization": {"nics": 1, "port_speed": speed}}
        step = expected_step(lp.load_plan(PLAN, own), np.array([450e9, 50e9, 25e9]))
        assert (step is not None) == is_built


def test_it_is_the_first_note() -> None:
    plan = _many()
    [note] = busy_notes(plan, THIN)
    built = Note("dim3 cannot be built", Kind.DECISION)
    others = [Note("assumed NPU price: $1", Kind.BASIS), built, "of its own"]
    first = Note(note, Kind.STEP)
    assert in_order([*others, first]) == [note, built, "of its own", "assumed NPU price: $1"]
    found = Evaluated.of(plan.evaluate(bandwidth_GBps=[450, 50, 6.25]).figures, plan=plan)
    assert found.to_dict()["notes"][0] == note


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("rule", "then"), [("== 6.25", "optimize"), ("== 25", "check")])
def test_next_is_a_choice_on_links_where_they_are_busy(
    rule: str, then: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", _Terminal())
    rules = f"constraints=[leaf == 50 GB/s, spine {rule} GB/s]"
    assert main(["optimize", PLAN, "--set", rules, "--set", MANY]) == 0
    said = sys.stderr.getvalue()
    assert f"next: libra-planner {then} {PLAN}" in said
    assert ("--routing ecmp" in said) == (then == "optimize")
    shown = " ".join(capsys.readouterr().out.split())
    assert (SAID in shown) == (then == "optimize")
    assert ("the first note says more" in shown) == (then == "optimize")


def test_a_long_check_names_the_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, is_named in (((), True), (("--brief",), False)):
        monkeypatch.setattr(sys, "stderr", _Terminal())
        check = ["check", PLAN, "--bandwidth", "450,50,25", "--seeds", "1"]
        assert main([*check, *given]) == 0
        assert ("shorter: --brief leaves out" in sys.stderr.getvalue()) == is_named


@pytest.mark.parametrize("spine", ["3.125", "25"])
def test_a_check_says_where_little_headroom_is_left(spine: str, run) -> None:
    """The share of the step is the time of what runs there, over the mean of the step."""
    many = "parallelism={tp: 4, cp: 2, pp: 4, dp: 64, interleave: 20}"
    given = ("check", PLAN, "--set", many, "--bandwidth", f"450,50,{spine}", "--seeds", "2")
    found = run(*given, "--json").payload
    busy_s = sum(one["time_s"] for one in found["phases"] if one["dimension"] == "dim3")
    share = busy_s / found["effective_step_time_s"]["mean"]
    shown = " ".join(run(*given).out.split())
    assert (share >= 0.7) == (spine != "25")
    assert (f"dim3 is busy for {share:.0%} of the step as routed (" in shown) == (share >= 0.7)
    assert ("little headroom" in shown) == (share >= 0.7)


def test_a_group_that_is_faster_than_all_together_is_explained(run) -> None:
    """A collective waits in each round for the slowest group there, which may be another one."""
    given = ("check", PLAN, "--seeds", "1")
    found = run(*given, "--json").payload
    [built] = [one["realized_GBps"] for one in found["dimensions"] if one["dimension"] == "dim3"]
    slow = [one for one in found["phases"] if one["dimension"] == "dim3"]
    assert any(one["worst_collective_rate_GBps"] > 1.01 * built * one["efficiency"] for one in slow)
    assert "worst GB/s: of the slowest group, over all its rounds" in run(*given).out


def test_bandwidths_take_units_as_plans_do() -> None:
    plan, place = lp.load_plan(PLAN), Place("bandwidth")
    found = bandwidth_bytes_per_s("450, 400 Gbps, 25 GB/s", plan, place)
    assert found.tolist() == [450e9, 50e9, 25e9]
    for text, said in {
        "25 ms": "25 ms",
        "25 Gb/s": "bits or bytes|for bits",
        "fast": "write GB/s",
    }.items():
        with pytest.raises(SpecError, match=said):
            bandwidth_bytes_per_s(f"450,50,{text}", plan, place)


def test_a_nic_without_a_unit_is_in_gigabits() -> None:
    with pytest.raises(UnitError, match=r"got '400' without a unit.*; write 400Gbps$"):
        nic_bytes_per_s("400")


@pytest.mark.parametrize("nic", ["400G", "400g", "400 G"])
def test_a_nic_of_so_many_g_is_in_gigabits(nic: str) -> None:
    """Of other speeds G may be bytes, too."""
    if "G" in nic:
        assert nic_bytes_per_s(nic) == 50e9
    else:
        with pytest.raises(UnitError, match=rf"got '{nic}', expected .*; write 400Gbps$"):
            nic_bytes_per_s(nic)
    with pytest.raises(UnitError, match=r"write 400 Gbit/s for bits or 400 GB/s for bytes$"):
        speed_bytes_per_s(nic)


def test_strategies_that_are_searched_are_told_of_busy_links(run) -> None:
    """The step of the strategy that was found, not of the one that the plan was read with."""
    rules = "constraints=[leaf == 50 GB/s, spine == 6.25 GB/s]"
    found = run("search", PLAN, "--set", rules, "--set", MANY.replace("cp: 2", "rest: auto"))
    [note] = [line for line in found.out.splitlines() if SAID in line]
    assert note.startswith("Note: dim3 is busy for ")


def test_what_is_chosen_on_links_has_its_step_there_on_top(run) -> None:
    rules = "constraints=[leaf == 50 GB/s, spine == 6.25 GB/s]"
    given = ("optimize", PLAN, "--set", rules, "--set", MANY, "--routing", "ecmp", "--seeds", "2")
    found = run(*given, "--json").payload
    mean_s = found["routing"]["effective_step_time_s"]["mean"]
    shown = run(*given).out
    [line] = [line for line in shown.splitlines() if line.startswith("On links, by ecmp: ")]
    slower = mean_s / found["routing"]["ideal_step_time_s"]
    assert f"{format_time(mean_s)} ({slower:.3f}x)" in line
    assert not [note for note in found["notes"] if SAID in note]
    assert SAID not in " ".join(shown.split())
