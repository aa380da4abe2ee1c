"""A switch without a NIC price is one switch for each group (C14)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.check.links import link_check
from libra_planner.errors import SpecError
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.parts import DimensionParts, design_parts
from libra_planner.fabric.realization import realize
from libra_planner.fabric.topology import SCALE_UP
from libra_planner.inputs.parts import load_parts
from libra_planner.problem import Problem
from libra_planner.procurement.bill import Line
from libra_planner.procurement.lines import Book, FabricShop, purchase
from libra_planner.tui.screens.links import check_links

EXAMPLES = Path(__file__).parents[2] / "examples"

# 2,048 NPUs: NVLink domains of 8 under rails that are tapered two to one.
RAILS = """\
workload: gpt3-libra
fabric:
  topology: SW(8)_SW(256)
  tiers: [node, pod]
  realization: {preset: rail-8x400G, oversubscription: 2}
parallelism: {tp: 8, dp: 256}
cost_model: libra-ispass24
constraints: [node == 450 GB/s, pod == 50 GB/s]
"""
NAMED = "{node: {wiring: rail, switch_radix: 4, port_speed: 800 Gbps}}"
STATED = "{wiring: top_of_rack, switch_radix: 32, npus_per_rack: 32}"
SETTINGS = "{preset: rail-8x400G, oversubscription: 2}"
VECTOR = np.array([450e9, 50e9])


def _switches(row: dict[str, Any]) -> dict[str, int]:
    return {one["tier"]: one["n_switches"] for one in row["switches"]}


def test_keys_of_a_network_leave_scale_up_switches_alone(plan, run) -> None:
    """By hand: 2,048 ports on 56 leaves of 37, 19 uplinks each; 2 optics a cable of the rails."""
    result = run("check", str(plan(text=RAILS)), "--bandwidth", "450,50", "--json")
    payload = json.loads(result.out)
    node, pod = payload["dimensions"]
    assert _switches(node) == {"switch": 256}
    assert (node["n_cables"], node["n_optics"], node["n_nics"]) == (2048, 0, 0)
    assert (node["efficiency"], node["fim_percent"]) == (pytest.approx(1), None)
    assert node["realized_GBps"] == 450
    assert _switches(pod) == {"leaf": 56, "spine": 19}
    assert (pod["n_cables"], pod["n_optics"]) == (2048 + 56 * 19, 2 * (2048 + 56 * 19))
    text = "dim1: tier node has no NIC price, so every group has one scale-up switch"
    assert any(note.startswith(text) for note in payload["notes"])


def test_the_rails_cost_what_they_cost_without_the_keys_inside(plan) -> None:
    """The keys under the pod's own name say the same as those for all switches."""
    named = plan((SETTINGS, f"{{pod: {SETTINGS}}}"), text=RAILS)
    both = [lp.load_plan(path).links.switches for path in (plan(text=RAILS, name="a.yaml"), named)]
    assert both[0] == both[1] == (SCALE_UP, both[0][1])


def test_a_plan_without_the_section_has_scale_up_switches_too(plan) -> None:
    problem = lp.load_plan(plan((f"  realization: {SETTINGS}\n", ""), text=RAILS))
    assert problem.realization is None
    assert problem.links.networks == (False, True)


@pytest.mark.parametrize(
    ("topology", "keys", "most", "n_ports", "place"),
    [
        # The radix of the rails is not the part's.
        ("SW(256)_SW(8)", "{switch_radix: 512}", 72, 256, "3:3"),
        ("SW(32)_SW(8)", "{node: {switch_radix: 16}}", 16, 32, "5:24"),
        ("SW(8)_SW(72)", "{node: {nics: 16}}", 72, 128, "5:17"),
    ],
)
def test_a_group_over_the_ports_of_its_switch_is_an_error(
    topology, keys, most, n_ports, place, plan, run
) -> None:
    n_npus = np.prod([int(part.strip("SW()")) for part in topology.split("_")])
    changed = ("{tp: 8, dp: 256}", f"{{tp: 1, dp: {n_npus}}}")
    path = plan(("SW(8)_SW(256)", topology), (SETTINGS, keys), changed, text=RAILS)
    for command in (["check"], ["report", "--formats", "md", "-o", str(path.parent / "out")]):
        result = run(command[0], str(path), *command[1:])
        assert result.code == 2
        got = f"got a group of {n_ports} ports on one scale-up switch: its tier has no NIC"
        assert f"{path}:{place}: fabric.realization (dim1).switch_radix: {got}" in result.err
        assert f"expected at most {most} ports" in result.err
        assert "give the tier a NIC price" in result.err


@pytest.mark.parametrize("size", [8, 72])
def test_domains_that_are_sold_are_one_switch(size, plan) -> None:
    path = plan(
        ("SW(8)_SW(256)", f"SW({size})_SW(8)"),
        ("{tp: 8, dp: 256}", f"{{tp: 1, dp: {size * 8}}}"),
        text=RAILS,
    )
    problem = lp.load_plan(path)
    [node, _] = realize(problem.topology, VECTOR, problem.links).dimensions
    assert isinstance(node.fabric, Clos)
    assert node.fabric.n_switches == {"leaf": 8}


def test_a_tier_whose_wiring_is_named_is_a_network(plan) -> None:
    """What stands under the tier's own name is meant for it."""
    keys = "{node: {wiring: rail, switch_radix: 4}}"
    problem = lp.load_plan(plan((SETTINGS, keys), text=RAILS))
    [node, _] = realize(problem.topology, VECTOR, problem.links).dimensions
    assert isinstance(node.fabric, Clos)
    assert node.fabric.n_switches == {"leaf": 256 * 4, "spine": 256 * 2}


def test_ports_of_a_scale_up_switch_can_be_named(plan) -> None:
    keys = "{node: {switch_radix: 144, port_speed: 25 GB/s}}"
    problem = lp.load_plan(plan((SETTINGS, keys), text=RAILS))
    [node, _] = realize(problem.topology, VECTOR, problem.links).dimensions
    assert (node.n_nics, node.is_network) == (18, False)


PLANS: dict[str, Callable[[Any], Path]] = {
    "rails": lambda plan: plan(text=RAILS),
    "nothing said": lambda plan: plan((f"  realization: {SETTINGS}\n", ""), text=RAILS),
    "racks": lambda plan: plan((SETTINGS, "{wiring: top_of_rack, switch_radix: 32}"), text=RAILS),
    "stated racks": lambda plan: plan((SETTINGS, STATED), text=RAILS),
    "three tiers": lambda plan: plan((SETTINGS, "{switch_radix: 16}"), text=RAILS),
    "named": lambda plan: plan((SETTINGS, NAMED), text=RAILS),
    "fully connected": lambda _: EXAMPLES / "reports/oversubscribed.yaml",
    "the example of check": lambda _: EXAMPLES / "07_check.yaml",
}


def _of(lines: list[Line], label: str) -> Counter[str]:
    """Units of each kind on the lines of a dimension."""
    counts: Counter[str] = Counter()
    for line in lines:
        if line.tier.split(" ")[0] == label:
            counts[line.part.kind] += line.n_units
    return counts


def _counted(parts: DimensionParts) -> Counter[str]:
    """What a bill should list of a dimension."""
    if not parts.n_optics:  # Links at a price per GB/s; those of a switch have its ports, too.
        return Counter({"link": parts.n_cables + parts.n_ports_used})
    fibres = parts.n_optics // 2
    kinds = {"nic": parts.n_nics, "switch": parts.n_switches, "optic": parts.n_optics}
    return Counter(kinds | {"fibre": fibres, "copper": parts.n_cables - fibres})


def _bill(problem: Problem, vector: np.ndarray) -> list[Line]:
    catalogue = load_parts()
    shop = FabricShop(catalogue.parts, catalogue.assumptions, Book(problem.prices.parts))
    return list(shop.lines(purchase(problem, vector, catalogue.parts)))


@pytest.mark.parametrize("name", PLANS)
def test_check_bill_and_cockpit_count_the_same_parts(name, plan) -> None:
    problem = lp.load_plan(PLANS[name](plan))
    vector = np.array([170e9, 50e9])
    parts = design_parts(link_check(problem, vector).design).dimensions
    lines = _bill(problem, vector)
    for one in parts:
        expected = _counted(one)
        if name == "named" and one.label == "dim1":
            del expected["nic"]  # The price book says that this tier needs none.
        assert _of(lines, one.label) == expected
    bought = purchase(problem, vector, load_parts().parts)
    assert [p.switches for p in bought.parts] == [p.switches for p in parts]


@pytest.mark.parametrize(
    ("settings", "in_rack"),
    [("", False), (", npus_per_rack: 8", False), (", npus_per_rack: 32", True)],
)
def test_hosts_have_copper_only_where_a_leaf_is_in_one_rack(settings, in_rack, plan) -> None:
    """A leaf holds 16 NPUs: racks of 8, or of nobody knows how many, are too small for 3 m."""
    keys = f"{{wiring: top_of_rack, switch_radix: 32{settings}}}"
    problem = lp.load_plan(plan((SETTINGS, keys), text=RAILS))
    parts = design_parts(link_check(problem, VECTOR).design).dimensions[1]
    assert parts.cables[0].n_optics == (0 if in_rack else 2 * 2048)
    lines = [line for line in _bill(problem, VECTOR) if line.tier == "dim2 pod, host-leaf"]
    kinds = {line.part.kind for line in lines}
    assert kinds == ({"copper"} if in_rack else {"optic", "fibre"})
    assert all(("3 m" if in_rack else "50 m") in line.note for line in lines)


def test_check_says_the_oversubscription_that_is_built(plan, run) -> None:
    result = run("check", str(plan(text=RAILS)), "--bandwidth", "450,50", "--json")
    payload = json.loads(result.out)
    node, pod = (one["oversubscription"] for one in payload["dimensions"])
    assert (node, pod) == (None, pytest.approx(37 / 19))
    built = "dim2: leaves are oversubscribed 1.947:1 as built: a full leaf has 37 host ports and 19"
    assert any(note.startswith(built) for note in payload["notes"])
    changed = "preset: rail-8x400G is changed by the plan: oversubscription: 2"
    assert changed in payload["notes"]


def test_what_the_price_of_servers_holds_is_not_to_be_bought(run) -> None:
    inside = run("check", "0e_rails_2to1", "--seed", "0").out
    assert "dim1  switches, in the server " in inside
    assert "256 switches, 2,048 cables, in the price of the servers: not to be bought" in inside
    assert "in the server" not in run("check", "07_check", "--seed", "0").out


def test_the_cockpit_counts_switches_in_words(plan) -> None:
    found = check_links(lp.load_plan(plan(text=RAILS)), VECTOR, "ecmp", 0, lambda *_: None)
    inner, outer = found.parts_text.plain.splitlines()
    assert inner == "dim1: 256 switches; 2,048 npu-switch cables"
    assert outer == "dim2: 56 leaves, 19 spines; 2,048 host-leaf, 1,064 leaf-spine cables"


def test_the_cockpit_shows_the_same_links(plan) -> None:
    problem = lp.load_plan(plan(text=RAILS))
    found = check_links(problem, VECTOR, "ecmp", 0, lambda *_: None)
    design = link_check(problem, VECTOR).design
    assert design_parts(found.checked.report.design) == design_parts(design)
    assert "dim1: tier node has no NIC price" in found.notes.plain.replace("\n", " ")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        # A leaf of 32 hosts holds 4 whole nodes, so NPUs of all 8 groups.
        (
            "{wiring: top_of_rack}",
            "dim2: with wiring top_of_rack groups load one another: a leaf holds NPUs of 8 of "
            "the 8 groups of SW(256), which share its uplinks. wiring: rail gives every group a "
            "network of its own; with the tiers of this one in brackets, such as [SW(4)_SW(64)], "
            "the plan's model counts the load, too",
        ),
        # Leaves hold one rail each; pods hold all of them.
        ("{wiring: rail_optimized, switch_radix: 32}", "a pod holds NPUs of 8 of the 8 groups"),
        # Two tiers of leaves that hold one rail each share nothing.
        ("{wiring: rail_optimized}", None),
        ("{wiring: rail}", None),
    ],
)
def test_check_says_where_groups_load_one_another(keys, text, plan, run) -> None:
    path = plan((SETTINGS, keys), text=RAILS)
    result = run("check", str(path), "--bandwidth", "450,50", "--policy", "spray", "--json")
    notes = [note for note in json.loads(result.out)["notes"] if "load one another" in note]
    assert len(notes) == (text is not None)
    assert text is None or text in notes[0]


def test_keys_that_apply_to_no_switch_are_said(plan, run) -> None:
    path = plan(("SW(8)_SW(256)", "SW(8)_RI(256)"), text=RAILS)
    result = run("check", str(path), "--bandwidth", "450,50", "--json")
    assert any("applies to none" in note for note in json.loads(result.out)["notes"])


def test_jobs_share_networks_of_one_kind(plan, tmp_path) -> None:
    """A price book in which the shared tier has no NIC, beside one in which it has."""
    from libra_planner.check.degraded import shared_fabric
    from libra_planner.fabric.topology import TrafficSettings

    book = "kind: price_book\nsource: test\nas_of: '2026-11'\nunit: USD per GB/s\ntiers:\n"
    tier = "{link: 4, switch: 13, nic: 0, nic_reason: test}"
    (tmp_path / "b.yaml").write_text(f"{book}  node: {tier}\n  pod: {tier}\n")
    paths = plan(text=RAILS), plan(("libra-ispass24", "./b.yaml"), text=RAILS, name="b2.yaml")
    problems = [lp.load_plan(path) for path in paths]
    with pytest.raises(SpecError, match="got a NIC price for dim2 in one plan, and none in"):
        shared_fabric(problems, [VECTOR, VECTOR], traffic=TrafficSettings())
