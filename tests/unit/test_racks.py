"""Racks that hold fewer NPUs than a plan's short cables to its leaves assume."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from libra_planner.procurement.readiness import (
    RACK_POWER,
    RACKED,
    assumed_prices,
    blocked,
    resting_usd,
)
from libra_planner.views.report.basis import risk_section
from libra_planner.views.report.decision import decision_section
from tests.comparisons import compared_by

PLAN = """
workload: llama3-70b
parallelism: {{tp: 4, cp: 2, pp: 4, dp: 32}}
global_batch: 2048
npu: {npu}
fidelity: calibrated
fabric:
  topology: SW(8)_[SW({n})_SW({groups})]
  tiers: [node, leaf, spine]
  scale_up: {domain}
  realization: {{port_speed: 400 Gbps, wiring: top_of_rack, switch_radix: 128{more}}}
cost_model: clos-2026
objective: performance
constraints: [leaf == 50 GB/s, taper(spine) == 2]
"""
A100 = {"npu": "a100-sxm-80gb", "domain": "nvlink3-8"}
H100 = {"npu": "h100-sxm", "domain": "nvlink4-8"}
REPORT = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"
HEAD = "kind: parts\nbase: parts\nsource: s\nas_of: '2026-11'\n"
FAULT = (
    "a rack holds 8 NPUs beside a leaf, not the 32 of npus_per_rack (dim2), so cables of 3 m to "
    "hosts cannot be plugged: write npus_per_rack: 8 (cables of 50 m), or have racks of "
    "power_limit_W: "
)


@pytest.fixture
def racked(tmp_path, monkeypatch):
    """Write a plan of 1,024 NPUs whose leaves hold n servers each, and name it."""
    monkeypatch.chdir(tmp_path)

    def written(more: str = "", n: int = 4, of: dict[str, str] = H100) -> str:
        text = PLAN.format(n=n, groups=128 // n, more=more, **of)
        Path("plan.yaml").write_text(text)
        return "plan.yaml"

    return written


def _kinds(one) -> set[str]:
    return {x.part.kind for x in one.bill.lines if x.tier == "dim2 leaf, host-leaf"}


def test_copper_that_cannot_be_plugged_is_not_recommended(racked) -> None:
    """A server of 10.2 kW is all that a rack of 15 kW powers, and the plan says four."""
    comparison = compared_by(racked(", npus_per_rack: 32"))
    [one] = comparison.candidates
    [reason] = blocked(comparison)
    assert reason.startswith(f"A: {FAULT}")
    assert one.facility.n_servers_per_rack == 1
    server_w, leaf_w = one.facility.server_w, 913
    assert f"power_limit_W: {4 * server_w + leaf_w:.0f} (part rack " in reason
    decision = decision_section(comparison)
    assert decision.lead[0].startswith("Do not sign yet, for 1 reason. ")
    assert decision.points[0] == reason
    assert any(FAULT in text for text in decision.warnings)
    assert resting_usd(one, RACKED) == sum(
        x.extended_usd for x in one.bill.lines if x.part.kind == "copper"
    )
    assert assumed_prices(one)


def test_optimize_and_check_say_the_same(racked, run) -> None:
    plan = racked(", npus_per_rack: 32")
    for command in (("optimize",), ("check", "--bandwidth", "450,50,25")):
        notes = json.loads(run(command[0], plan, *command[1:], "--json").out)["notes"]
        assert any(note.startswith(FAULT) for note in notes), command


@pytest.mark.parametrize("more", ["", ", npus_per_rack: 8", ", npus_per_rack: 16"])
def test_what_a_rack_holds_is_no_reason_to_wait(racked, more) -> None:
    """Four servers of a leaf do not stand in one rack: cables to hosts are fibres of 50 m."""
    comparison = compared_by(racked(more))
    assert not blocked(comparison)
    assert _kinds(comparison.candidates[0]) == {"optic", "fibre"}


@pytest.mark.parametrize("more", ["", ", npus_per_rack: 16", ", npus_per_rack: 32"])
def test_racks_that_hold_a_leaf_and_its_servers_have_copper(racked, more, run) -> None:
    """Two servers of A100s and a leaf of 16 NPUs: a rack of 15 kW powers them."""
    plan = racked(more, n=2, of=A100)
    comparison = compared_by(plan)
    [one] = comparison.candidates
    assert not blocked(comparison)
    assert _kinds(one) == {"copper"}
    assert one.facility.n_servers_per_rack == 2
    notes = json.loads(run("optimize", plan, "--json").out)["notes"]
    told = any(
        note.startswith("dim2: a bill has 16 NPUs and their leaf in one rack") for note in notes
    )
    assert told == (not more)


def test_racks_hold_no_more_servers_than_the_plan_says(racked) -> None:
    """Racks of 30 kW power four servers of A100s: the plan has two in each, and 64 racks."""
    bundled = (Path(__file__).parents[2] / "cost_models" / "parts.yaml").read_text()
    Path("own.yaml").write_text(bundled.replace("power_limit_W: 15000", "power_limit_W: 30000"))
    for more, n_servers in ((", npus_per_rack: 16", 2), ("", 4)):
        plan = racked(more, n=2, of=A100)
        [one] = compared_by(plan, "--parts", "own.yaml").candidates
        assert _kinds(one) == {"copper"}
        assert one.facility.n_servers_per_rack == n_servers
        assert one.facility.n_server_racks == 128 // n_servers


def test_leaves_in_server_racks_need_no_rack_of_their_own(racked) -> None:
    """64 racks of two servers and their leaf; spines and side networks stand in other racks."""
    [one] = compared_by(racked(n=2, of=A100)).candidates
    leaves, spines = (
        next(x for x in one.bill.lines if x.part.kind == "switch" and x.tier == tier)
        for tier in ("dim2 leaf, leaf", "dim3 spine, spine")
    )
    assert (leaves.n_units, one.facility.n_server_racks) == (64, 64)
    others = [x for x in one.bill.lines if x.part.kind not in ("npu", "server", "nic")]
    watts = sum(x.power_w for x in others) - leaves.power_w
    heights = {x.tier: x.n_units * x.part.n_rack_units for x in others if x.part.kind == "switch"}
    units = sum(heights.values()) - heights["dim2 leaf, leaf"]
    rack = one.proposal.shop.assumptions.rack
    n_units = int(rack.n_rack_units * one.proposal.shop.assumptions.usable_rack_fraction)
    assert spines.n_units * spines.part.n_rack_units in heights.values()
    by_hand = max(-(-units // n_units), math.ceil(watts / rack.power_limit_w))
    assert one.facility.n_switch_racks == by_hand
    assert one.bill.n_units("rack") == 64 + by_hand
    apart = compared_by(racked(n=4, of=H100)).candidates[0]
    assert apart.facility.n_switch_racks > by_hand


@pytest.mark.parametrize(("limit_w", "units", "on_power"), [(15000, 48, True), (90000, 24, False)])
def test_the_money_of_racks_rests_on_what_ends_first(limit_w, units, on_power, tmp_path) -> None:
    """Servers of 10.2 kW and 6 units: one to 15 kW, or three to 90 % of 24 units."""
    rack = f"{{power_limit_W: {limit_w}, rack_units: {units}}}"
    (tmp_path / "own.yaml").write_text(f"{HEAD}parts: {{rack: {rack}}}\n")
    found = compared_by(str(REPORT), "--parts", str(tmp_path / "own.yaml"))
    [one] = found.candidates
    usd = sum(x.extended_usd for x in one.bill.lines if x.part.kind == "rack")
    names = [RACK_POWER, "Usable height of a rack"]
    assert [resting_usd(one, x) for x in names] == ([usd, 0] if on_power else [0, usd])
    [rows] = [x.rows for x in risk_section(found).tables if x.key == "assumptions"]
    power = next(row for row in rows if row[0].shown == RACK_POWER)
    assert (power[1].shown, power[3].value or 0) == (f"{limit_w / 1000:g} kW", usd * on_power)
    said = [x for x in decision_section(found).lead if "power_limit_W in --parts" in x]
    assert len(said) == on_power
