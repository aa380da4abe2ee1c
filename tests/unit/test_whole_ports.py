"""What commands say of designs that nobody sells: too many ports, odd speeds, other prices."""

from __future__ import annotations

import pytest

import libra_planner as lp
from libra_planner.views.bought.whole_ports import network_bill_usd, port_notes

PLAN = "0e_rails_2to1"
PORTS = ("--set", "fabric.realization={port_speed: 400 Gbps}")
TYPO = (*PORTS, "--set", "constraints.0=leaf == 500 GB/s")
"""10 NICs per NPU: 32 hosts of a leaf need 320 links, and 160 up, of 64 ports."""


@pytest.fixture
def fault(run) -> str:
    """Why the links of the typo cannot be built, as ``check`` says it."""
    refused = run("check", PLAN, *TYPO)
    assert refused.code == 2
    return refused.err.strip().split("fabric.realization", 1)[1]


@pytest.mark.parametrize("command", [("optimize",), ("evaluate", "--bandwidth", "450,500,250")])
def test_a_network_that_cannot_be_built_is_said(command, run, fault) -> None:
    """By every command that takes its speeds, in the words of the one that builds it."""
    name, *options = command
    text = run(name, PLAN, *options, *TYPO).out
    note = f"Consider: It cannot be built: fabric.realization{fault}"
    assert note in text
    found = run(name, PLAN, *options, *TYPO, "--json").payload
    assert found["notes"][0] == note.removeprefix("Consider: ")
    assert "it cannot be built: see the note" in text
    assert found["bill_fabric_usd"] is None
    assert "cannot be built" not in run("optimize", PLAN).out


def test_a_network_faster_than_what_is_inside_a_server_is_asked_about() -> None:
    plan = lp.load_plan(PLAN)
    said = [note for note in port_notes(plan, [450e9, 500e9, 250e9]) if "nvlink" in note]
    own = "more than nvlink4-8 inside it has (450.00 GB/s): is that meant?"
    assert said == [f"dim2 has 500.00 GB/s, {own}"]
    assert not any("nvlink" in note for note in port_notes(plan, [450e9, 450e9, 450e9]))


def test_python_says_what_cannot_be_built() -> None:
    plan = lp.load_plan(PLAN)
    assert "cannot be built" in plan.evaluate(bandwidth_GBps=[450, 500, 250]).headline()
    assert "cannot be built" not in plan.evaluate(bandwidth_GBps=[450, 50, 25]).headline()


def test_points_of_a_frontier_that_cannot_be_built_are_counted(run) -> None:
    """The fastest have no taper: 32 links down and 32 or more up, where 62 ports are free."""
    rules = "constraints=['leaf == 50 GB/s', 'taper(spine) >= 1', 'taper(spine) <= 8']"
    reserve = ("--set", "fabric.realization={port_speed: 400 Gbps, reserve: 2}")
    found = run("pareto", PLAN, "--set", rules, *reserve, "--points", "5", "--json").payload
    n = sum(point["taper"][2] < 32 / 30 for point in found["points"])
    assert 0 < n < 5
    [counted] = [one for one in found["notes"] if "designs cannot be built" in one]
    assert counted == f"{n} of these 5 designs cannot be built; check says why"


def test_the_headline_has_the_money_of_whole_parts(run, tmp_path, monkeypatch) -> None:
    """The network that ``report`` buys of the same speeds, where linear prices are far off."""
    monkeypatch.setenv("COLUMNS", "200")
    found = run("optimize", PLAN, "--json").payload
    text = run("optimize", PLAN).out
    [one] = run("report", PLAN, "-o", tmp_path / "r", "--json").payload["designs"]
    bought_usd = one["usd_by_group"]["network"]
    assert found["bill_fabric_usd"] == bought_usd
    money = f"linear, about ${bought_usd / 1e6:.2f}M in whole parts, system cost"
    assert f"network cost $11.94M {money} $80.55M linear" in text


def _at(nic: str, *settings: str) -> lp.Plan:
    """The example with NICs of a speed, all 2:1."""
    speed = {"400": 50, "800": 100}[nic]
    rules = f"constraints=[leaf == {speed} GB/s, taper(spine) == 2]"
    return lp.load_plan(PLAN, [f"fabric.realization={{port_speed: {nic} Gbps}}", rules, *settings])


def test_two_speeds_of_nics_compare_as_bought_as_their_bills_do() -> None:
    """Linear prices double with the speed; whole parts do not, and the product says so."""
    money = {}
    for nic in ("400", "800"):
        plan = _at(nic, "objective=performance_per_cost")
        found = plan.optimize().to_dict()
        bill = _at(nic, "objective=performance_per_cost", "prices=bill", "fixed_cost=null")
        whole = bill.optimize().to_dict()
        network = whole["network_cost_usd"] + found["fixed_cost_usd"]
        money[nic] = found["objective"], found["objective_as_bought"]
        assert found["objective_as_bought"] == pytest.approx(whole["step_time_s"] * network)
    linear, bought = (money["800"][i] / money["400"][i] for i in (0, 1))
    assert bought < 0.97 * linear


def test_the_objective_line_has_the_product_as_bought(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    ppc = ("--set", "objective=performance_per_cost")
    text = run("evaluate", PLAN, *ppc, "--bandwidth", "450,40,20").out
    [line] = [one for one in text.splitlines() if one.startswith("Objective")]
    built = lp.load_plan(PLAN).evaluate(bandwidth_GBps=[450, 50, 20.3125])
    time, _, cost = line.rpartition("as bought: ")[2].partition(" s on whole ports x ")
    assert time == f"{built.step_time_s:.3f}"
    assert cost.endswith("with whole parts")
    for other in (("--set", "objective=performance"), (*ppc, "--set", "prices=bill")):
        asked = ("--set", "fixed_cost=null") if "prices=bill" in other else ()
        assert "as bought" not in run("optimize", PLAN, *other, *asked).out


def test_money_that_is_near_is_said_once() -> None:
    """Also that of a plan whose prices are the bill's."""
    plan = lp.load_plan("0b_bill")
    found = plan.optimize().figures
    assert network_bill_usd(plan, found) == found.network_cost_usd


def test_spares_that_networks_share_are_told_where_two_bills_stand(run, tmp_path) -> None:
    """One stock of fibres: 40 on the fabric's line, 31 of them its own, 9 of $116 for others."""
    plan = tmp_path / "plan.yaml"
    asked = ("--model", "llama3-70b", "--npu", "h100-sxm", "--npus", "1024", "--taper", "2")
    assert run("init", *asked, "-o", plan).code == 0
    settings = ("--set", "parallelism={tp: 4, pp: 4, dp: 64}")
    network = run("optimize", plan, *settings, "--json").payload["bill_fabric_usd"]
    alone = run("fabric", "--hosts", "128", "--nic", "400Gbps", "--taper", "2", "--json").payload
    assert network - alone["cost_usd"] == 9 * 116
    note = "whole parts: $1.04k of their spares are shared with the frontend and storage networks"
    assert note in run("optimize", plan, *settings).out
    run("report", plan, *settings, "-o", tmp_path / "report")
    said = (tmp_path / "report" / "report.md").read_text()
    assert "1.04k of these spares are for frontend and storage, too" in said
