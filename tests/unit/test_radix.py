"""Switches of more ports than a plan's groups fill are not compared as if that were their price."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from libra_planner.procurement.readiness import cage_texts, open_points, shared_cages
from libra_planner.units import short_usd
from libra_planner.views.cluster import free_ports_text
from libra_planner.views.report.basis import risk_section
from libra_planner.views.report.decision import decision_section
from tests.comparisons import compared_by

SET = '--set "fabric.topology=SW(8)_[SW(64)_SW(4)]"'


@pytest.fixture
def plans(tmp_path, monkeypatch, run) -> Path:
    """2:1 with switches of 64 ports, and of 128 with 32 and with 64 servers on a leaf."""
    monkeypatch.chdir(tmp_path)
    asked = ("--model", "llama3-70b", "--npu", "h100-sxm", "--npus", "2048", "--taper", "2")
    assert run("init", *asked, "--nic", "400Gbps", "-o", "own.yaml").code == 0
    text = Path("own.yaml").read_text()
    text = text.replace("{zero: 1, rest: auto}", "{tp: 4, cp: 2, pp: 4, dp: 64}")
    more = text.replace("port_speed: 400 Gbps", "port_speed: 400 Gbps, switch_radix: 128")
    Path("own.yaml").write_text(text)
    Path("half.yaml").write_text(more)
    Path("full.yaml").write_text(more.replace("[SW(32)_SW(8)]", "[SW(64)_SW(4)]"))
    # Switches at what she was quoted: of twice the ports for 1.5 times the price.
    rows = "switch-64x400g,50000\nswitch-128x400g,75000\n".splitlines()
    quoted = "".join(f"{row},each,USD,2026-11-01,Acme\n" for row in rows)
    Path("q.csv").write_text(f"item,price,unit,currency,date,seller\n{quoted}")
    return tmp_path


def test_free_ports_that_decide_against_a_design_are_said(plans) -> None:
    """The same hosts on full leaves cost what the sentence says, and come first."""
    quoted = ("--prices", "q.csv", "--as-of", "2026-11-02")
    two = compared_by("own.yaml", "half.yaml", *quoted)
    assert two.candidates[two.chosen].letter == "A"
    [said] = [text for text in open_points(two) if "ports of B" in text]
    assert said.startswith("5,120 of 8,192 leaf ports of B are free, and a network of fewer ")
    assert (
        ": B would come before A by price and by work per dollar if its step stays as long; its plan"
        in said
    )
    assert f"{SET}" in said
    assert "(32 leaves and 8 spines)" in said
    assert said in decision_section(two).points
    filled = compared_by("half.yaml", "full.yaml", *quoted)
    half, full = (float(one.bill.total_usd) for one in filled.candidates)
    found = filled.candidates[0].free_ports
    assert found.refill is not None
    assert full == pytest.approx(half - float(found.refill.saved_usd), abs=0.001)
    assert compared_by("own.yaml", "full.yaml", *quoted).chosen == 1


def test_free_ports_that_change_nothing_are_not_said(plans) -> None:
    """At list prices for 64 ports and a dear switch of 128, full leaves would not help."""
    text = Path("q.csv").read_text().replace("128x400g,75000", "128x400g,190000")
    Path("q.csv").write_text(text)
    two = compared_by("own.yaml", "half.yaml", "--prices", "q.csv", "--as-of", "2026-11-02")
    assert two.candidates[1].free_ports
    assert not any("ports of B" in text for text in open_points(two))


def test_an_option_of_more_ports_is_not_beaten_by_its_free_ports_in_silence(run) -> None:
    """Of 1 x 400 Gbit/s at 4:1, 128 ports lose by $1.12M on leaves of which 31% are used."""
    asked = "fabric.bill_options.nics=1 x 400 Gbps"
    found = json.loads(run("optimize", "0b_bill", "--set", asked, "--json").out)
    [note] = [text for text in found["notes"] if "switches of 128 ports: " in text]
    assert "5,632 of 8,192 leaf ports stay free" in note
    assert SET in note
    alone = ("--set", "fabric.bill_options.switch_radix=128", "--set", asked)
    full = ("--set", "fabric.topology=SW(8)_[SW(64)_SW(4)]")
    bills = [
        json.loads(run("optimize", "0b_bill", *alone, *more, "--json").out)["bill"]["usd"]
        for more in ((), full)
    ]
    assert bills[1] < found["bill"]["usd"] < bills[0]
    assert f"costs {short_usd(bills[0] - bills[1])} less" in note


def test_modules_of_cages_with_several_ports_are_an_assumption(plans) -> None:
    """64 leaves x 32 links to hosts have one end in a switch, 64 x 16 links to spines have two."""
    comparison = compared_by("own.yaml")
    [one] = comparison.candidates
    n_ends = 64 * 32 + 2 * 64 * 16
    key = ("switch-64x400g", 2, "optic-400g-sr4")
    assert shared_cages(one) == {key: n_ends}
    own = [x for x in risk_section(comparison).paragraphs if "one module for each link end" in x]
    assert own == [f"A: {text}." for text in cage_texts(one)]
    assert f"{n_ends:,} optic-400g-sr4 at its ports" in own[0]
    bundled = (Path(__file__).parents[2] / "cost_models" / "parts.yaml").read_text()
    Path("own-parts.yaml").write_text(bundled.replace("    ports_per_cage: 2\n", ""))
    assert [x for x in open_points(comparison) if "module for each" in x] == [*cage_texts(one)]
    alone = compared_by("own.yaml", "--parts", "own-parts.yaml")
    [single] = alone.candidates
    assert not shared_cages(single)
    assert not any("module for each" in x for x in open_points(alone))
    assert single.bill.total_usd == one.bill.total_usd


TWIN = """
  optic-2x400g-sr4:
    kind: optic
    description: twin-port transceiver, two links of 400 Gbit/s over 100 m of multimode fibre
    port_speed: 400 Gbps
    links_per_module: 2
    reach_m: 100
    cable: fibre-om4
    power_W: 15
    spare_fraction: 0
    price: {amount: 1200, confidence: quoted, as_of: "2026-11", source: offer 1}
"""


def test_modules_of_two_links_are_counted_where_the_catalogue_has_them(
    plans, run, monkeypatch
) -> None:
    """Leaves have 32 links down and 16 up, spines 64: 64 x (16 + 8) + 16 x 32 modules of two."""
    monkeypatch.setattr("libra_planner.procurement.bought.refills.LEAST_OF_BILL", 0)
    text = 'kind: parts\nbase: parts\nsource: offers\nas_of: "2026-11"\nparts:'
    Path("twins.yaml").write_text(text + TWIN)
    asked = ("--parts", "twins.yaml")
    comparison = compared_by("own.yaml", *asked)
    [one] = comparison.candidates
    own = [x for x in one.bill.lines if x.part.kind == "optic" and x.group == "network"]
    counts = {(x.part.name, x.tier.split(", ")[1]): x.n_units for x in own}
    assert counts == {
        ("optic-400g-sr4", "host-leaf"): 2048,
        ("optic-2x400g-sr4", "host-leaf"): 64 * 16,
        ("optic-2x400g-sr4", "leaf-spine"): 64 * 8 + 16 * 32,
    }
    fibres = [x for x in one.bill.lines if x.part.name == "fibre-om4" and x.group == "network"]
    assert sum(x.n_units for x in fibres) == 2048 + 1024
    assert not shared_cages(one)
    assert not any("module for each" in x for x in open_points(comparison))
    said = "No spares of optic-2x400g-sr4 are bought: spare_fraction is 0 or missing in the parts"
    assert sum(x.startswith(said) for x in risk_section(comparison).paragraphs) == 1
    assert one.free_ports
    assert one.free_ports.refill
    other = compared_by("own.yaml@450,50", *asked, *shlex.split(one.free_ports.refill.words())[1:])
    saved = one.bill.total_usd - other.candidates[0].bill.total_usd
    assert saved == one.free_ports.refill.saved_usd
    named = ("--set", "fabric.realization.parts={optic: [optic-400g-sr4, optic-2x400g-sr4]}")
    assert compared_by("own.yaml", *asked, *named).candidates[0].bill.total_usd == (
        one.bill.total_usd
    )
    # 32 leaf links down and 16 up of a full leaf: the same network without a plan.
    words = [
        "fabric",
        "--hosts",
        "256",
        "--nic",
        "400Gbps",
        "--taper",
        "2",
        "--host-ports-per-leaf",
        "32",
    ]
    alone = run(*words, *asked, "--json").payload
    assert alone["leaf"] == 64
    network = sum(x.extended_usd for x in one.bill.lines if x.group == "network")
    assert alone["cost_usd"] == pytest.approx(float(network), rel=0.002)  # Shared spares.


def test_a_report_counts_one_module_for_a_port_of_two_nics(plans, run) -> None:
    """64 leaves of 32 NICs on 16 ports of 800 Gbit/s, 8 up from each to 8 spines of 64."""
    port = ("--set", "fabric.realization.port=800 Gbps")
    [one] = compared_by("own.yaml", *port).candidates
    own = [x for x in one.bill.lines if x.part.kind == "optic" and x.group == "network"]
    counts = {(x.part.name, x.tier.split(", ")[1]): x.n_units for x in own}
    assert counts == {
        ("optic-400g-sr4", "host-leaf"): 2048,
        ("optic-800g-sr8", "host-leaf"): 64 * 16,
        ("optic-800g-sr8", "leaf-spine"): 64 * 8 + 8 * 64,
    }
    # 2,048 + 62 and 2,048 + 62 units; fibres are 2,048 and 512.
    assert sum(x.extended_usd or 0 for x in own) == 2110 * (659 + 879)
    assert not shared_cages(one)
    words = ["fabric", "--hosts", "256", "--nic", "400Gbps", "--taper", "2", "--port", "800Gbps"]
    alone = run(*words, "--host-ports-per-leaf", "32", "--json").payload
    assert alone["transceivers"] == sum(x.n_units for x in own)
    network = sum(x.extended_usd for x in one.bill.lines if x.group == "network")
    assert alone["cost_usd"] == pytest.approx(float(network), rel=0.002)  # Shared spares.


def test_only_a_switch_has_cages(plans, run) -> None:
    bundled = (Path(__file__).parents[2] / "cost_models" / "parts.yaml").read_text()
    wrong = bundled.replace("    reach_m: 100\n", "    reach_m: 100\n    ports_per_cage: 2\n", 1)
    Path("wrong.yaml").write_text(wrong)
    done = run("report", "own.yaml", "--parts", "wrong.yaml", "-o", "r")
    assert done.code == 2
    assert "got ports_per_cage of an optic, expected it of a switch only" in done.err


def test_free_ports_of_rails_apart_are_said_too(plans) -> None:
    """Counts and command are of all rails, as `fabric` has them."""
    apart = ("--set", "fabric.realization.wiring=rail_only")
    part = ("--set", "fabric.realization.parts={switch: switch-128x400g}")
    [one] = compared_by("half.yaml", *apart, *part).candidates
    assert one.free_ports is not None
    assert one.free_ports.setting == SET
    assert one.free_ports.network.order.n_networks == 8
    said = free_ports_text(one.free_ports)
    assert "nodes need 32 leaves and 8 spines at 2:1, a bill" in said
    assert "--radix 128 --wiring rail_only --part switch=switch-128x400g sizes it" in said


def test_free_ports_name_a_plan_whose_leaves_hold_no_equal_groups(plans, run) -> None:
    """256 nodes on leaves of 64 ports at 2:1 need 56 leaves: run as it says, its bill is that.

    Five switches less are a word worth where switches are dear: at list prices they save 0.1 %.
    """
    assert compared_by("own.yaml").candidates[0].free_ports is None
    text = Path("q.csv").read_text().replace("400g,50000", "400g,400000")
    Path("q.csv").write_text(text.replace("400g,75000", "400g,900000"))
    quoted = ("--prices", "q.csv", "--as-of", "2026-11-02")
    compared = compared_by("own.yaml", *quoted)
    [one] = compared.candidates
    assert one.free_ports
    assert one.free_ports.refill
    refill = one.free_ports.refill
    plan, *words = shlex.split(refill.words())
    assert (plan, words[1]) == ("PLAN@450,50", "fabric.topology=SW(8)_SW(256)")
    [other] = compared_by(plan.replace("PLAN", "own.yaml"), *words, *quoted).candidates
    assert one.bill.total_usd - other.bill.total_usd == refill.saved_usd > 0
    counts = {"leaf": 56, "spine": 19}
    assert refill.n_switches == counts == other.bought.design.dimensions[1].fabric.n_switches
    [note] = [x for x in decision_section(compared).paragraphs if "Open for A" in x]
    assert refill.words("own.yaml") in note
    assert "56 leaves and 19 spines" in note
    [point] = [x for x in open_points(compared) if "ports of A are free" in x]
    saved = short_usd(float(refill.saved_usd))
    for said in (note, point, " ".join(decision_section(compared).short_points)):
        assert "(its step may take longer: not checked)" in said
    assert f"{saved} less (its step" in point


def test_rails_that_fit_a_switch_have_no_spines(run, tmp_path) -> None:
    """64 racks of 72: a switch of 64 ports for each rail joins them all; 65 would not fit."""
    asked = ("--model", "llama3-70b", "--npu", "gb200", "--nic", "800Gbps", "--taper", "1")
    for n_racks, topology in ((64, "SW(72)_SW(64)"), (96, "SW(72)_[SW(32)_SW(3)]")):
        plan = tmp_path / f"{n_racks}.yaml"
        assert run("init", *asked, "--npus", str(72 * n_racks), "-o", plan).code == 0
        assert f"topology: {topology} " in plan.read_text()
