"""``libra-planner fabric``: a cluster's network by the port, what it prints, and wrong input."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import pytest

import libra_planner as lp
from libra_planner.cli.main import main
from libra_planner.errors import SpecError
from libra_planner.fabric.cluster import WIRINGS, ClusterNetwork, ClusterOrder, cluster_network
from libra_planner.inputs.parts import load_parts
from libra_planner.procurement.bill import CABLING, Bill, Price
from libra_planner.procurement.cluster import cluster_bill
from libra_planner.procurement.lines import Book, FabricShop
from libra_planner.units import format_usd
from tests.checked_plans import checked, loaded, operation

ONE = ("fabric", "--hosts", "64", "--nic", "400Gbps")
SIX_PORTS = ("--wiring", "top_of_rack", "--host-ports-per-leaf", "6", "--radix", "128")


def ports_by_switch(network: ClusterNetwork) -> dict[str, Counter[str]]:
    """Ports that links use at either end, link by link: ``down`` and ``up`` of every switch."""
    clos, settings = network.clos, network.order.settings
    ports: dict[str, Counter[str]] = {}
    for layer in clos.layers:
        if not layer.name.endswith("_up"):
            continue
        for link in range(layer.start, layer.start + layer.n_links):
            lower, upper = (end.split(" (")[0] for end in clos.link_name(link).split(" -> "))
            taken = settings.n_ports_per_uplink if lower.startswith(("leaf", "spine")) else 1
            ports.setdefault(lower, Counter())["up"] += taken
            ports.setdefault(upper, Counter())["down"] += taken
    return ports


def random_order(draw: random.Random) -> ClusterOrder:
    n_planes = draw.choice([1, 1, 2])
    nic_Bps = draw.choice([25e9, 50e9, 100e9])
    port_Bps = nic_Bps / n_planes * draw.choice([1, 1, 2, 0.5])
    return ClusterOrder(
        n_hosts=draw.randint(1, 60),
        n_nics_per_host=draw.choice([1, 2, 4, 8]),
        nic_Bps=nic_Bps,
        switch_radix=draw.choice([8, 12, 16, 20]),
        port_Bps=port_Bps,
        uplink_Bps=port_Bps * draw.choice([1, 1, 2]),
        tapers=draw.choice([(1.0,), (2.0,), (1.0, 3.0), (1.5, 7.0)]),
        wiring=draw.choice(WIRINGS),
        n_planes=n_planes,
        n_management_links=draw.choice([0, 3]),
    )


def test_every_switch_of_random_networks_keeps_its_radix_and_its_taper() -> None:
    draw, n_built = random.Random(5), Counter[str]()
    for _ in range(400):
        order = random_order(draw)
        try:
            network = cluster_network(order)
        except SpecError:
            n_built["too many"] += 1
            continue
        clos, settings = network.clos, order.settings
        n_built["three tiers" if clos.n_cores else "two" if clos.n_spines else "one"] += 1
        for name, used in ports_by_switch(network).items():
            if name.startswith("host"):
                continue
            down, up = used["down"], used["up"]
            if name.startswith("leaf"):
                down_Bps = down * clos.host_Bps
                down = -(-down // settings.n_hosts_per_port)
                taper = order.tapers[0]
            else:
                down_Bps, taper = (
                    down * order.speed_Bps,
                    order.tapers[-1] if order.tapers[1:] else 1,
                )
            assert down + up <= order.switch_radix, (order, name, used)
            assert not up or down_Bps <= up * order.speed_Bps * taper * (1 + 1e-9), (order, name)
        n_ports = order.n_hosts * order.n_links_per_host + order.n_management_links
        assert network.links["host-leaf"] == n_ports <= clos.n_hosts
    assert min(n_built[kind] for kind in ("one", "two", "three tiers", "too many")) > 20, n_built


def test_ninety_five_hosts_need_sixteen_spines() -> None:
    """32 uplinks of a leaf do not divide over 12 spines, whose ports would suffice."""
    network = cluster_network(ClusterOrder(95))
    assert network.clos.n_switches == {"leaf": 24, "spine": 16}
    assert network.clos.n_parallel == 2


def test_a_core_of_seven_to_one() -> None:
    """56 leaves below and 8 links above every spine of 64 ports, at most."""
    network = cluster_network(ClusterOrder(2048, tapers=(1.0, 7.0)))
    assert network.tapers == (1.0, 7.0)
    assert network.clos.n_leaves <= 56
    assert network.links["leaf-spine"] == 7 * network.links["spine-core"]


def test_hosts_of_top_of_rack_leaves_are_whole() -> None:
    network = cluster_network(ClusterOrder(100, n_nics_per_host=6, wiring="top_of_rack"))
    assert network.clos.hosts_per_leaf % 6 == 0


def test_breakout_shares_a_port_but_no_cable() -> None:
    """64 hosts of 200 Gbit/s on 32 ports of 400 Gbit/s (MegaScale's leaf)."""
    network = cluster_network(ClusterOrder(64, nic_Bps=25e9, port_Bps=50e9))
    assert (network.clos.hosts_per_leaf, network.clos.n_uplinks) == (64, 32)
    assert network.cables["host-leaf"] == network.links["host-leaf"] == 512


def test_managers_take_a_position_of_a_host() -> None:
    """128 hosts fill the leaves: four more links need new ones."""
    full = cluster_network(ClusterOrder(128))
    managed = cluster_network(ClusterOrder(128, n_management_links=4))
    assert full.clos.total_leaves == 32 < managed.clos.total_leaves
    assert cluster_network(ClusterOrder(127, n_management_links=4)).clos.total_leaves == 32


@pytest.mark.parametrize("wiring", ["rail_optimized", "rail_only", "top_of_rack"])
@pytest.mark.parametrize("radix", [16, 24])
def test_hosts_that_the_leaves_have_room_for_move_nothing(wiring: str, radix: int) -> None:
    """Sized anew with all of them it is the same network; with one more it is not."""
    for n in (3, 5, 9, 14, 23, 40, 61):
        order = ClusterOrder(n, n_nics_per_host=4, switch_radix=radix, wiring=wiring, tapers=(1.5,))
        network = cluster_network(order)
        room = network.n_more_hosts
        full, next_one = order.grown(room), order.grown(room + 1)
        assert isinstance(full, ClusterNetwork)
        assert (full.clos.n_switches, full.n_more_hosts) == (network.clos.n_switches, 0)
        assert full.links["leaf-spine"] == network.links["leaf-spine"]
        assert not any(network.moved_links(full).values())
        assert not isinstance(next_one, ClusterNetwork) or next_one.shape != full.shape
        used = network.order.switch_radix * sum(network.clos.n_switches.values())
        used -= sum(network.free_ports.values())
        links = network.links
        assert used == links["host-leaf"] + 2 * (links["leaf-spine"] + links["spine-core"])


def test_what_growth_moves_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """128 hosts fill 32 leaves, 4 of each rail, 2 links to each of 16 spines. One more needs a
    fifth leaf of each rail: 40 leaves have one link to each of 26 spines, for 26 hosts each. Of two
    links to each of 16 spines one stays, and 6 of 32 hosts leave each leaf."""
    network = cluster_network(ClusterOrder(128))
    assert (network.n_more_hosts, network.free_ports) == (0, {"leaf": 0, "spine": 0})
    grown = network.order.grown(1)
    assert isinstance(grown, ClusterNetwork)
    assert (grown.clos.total_leaves, grown.clos.n_spines) == (40, 26)
    assert network.moved_links(grown) == {
        "host-leaf": 32 * 6,
        "leaf-spine": 512,
        "spine-core": 0,
    }
    assert main(["fabric", "--hosts", "128", "--nic", "400Gbps"]) == 0
    text = capsys.readouterr().out
    assert "Free ports: 0 on leaves, 0 on spines; room for 0 more hosts" in text
    assert "512 of 1,024 links between switches and 192 of 1,024 links of hosts move" in text


@pytest.mark.parametrize(("nic", "is_said"), [("400GB/s", True), ("800Gbps", False)])
def test_a_nic_of_bytes_where_bits_are_sold_is_asked_about(
    nic: str, is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "--hosts", "64", "--nic", nic]) == 0
    said = "400.00 GB/s are 3200 Gbit/s, and the fastest NIC of the parts catalogue has 800 Gbit/s"
    assert (f"{said}; for NICs of 400" in " ".join(capsys.readouterr().out.split())) == is_said


def test_a_nic_of_bits_that_nobody_sells_is_no_slip_of_the_unit(run) -> None:
    said = run("fabric", "--hosts", "64", "--nic", "1600Gbps").out
    assert "200.00 GB/s are 1600 Gbit/s, and the fastest NIC" in said
    assert "for NICs of 200 Gbit/s" not in " ".join(said.split())


def test_text_and_json_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "--hosts", "512", "--nic", "400Gbps", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["fabric", "--hosts", "512", "--nic", "400Gbps"]) == 0
    text = capsys.readouterr().out
    for name in ("leaf", "spine", "core", "transceivers"):
        assert f"{found[name]:,}" in text
    assert found["cost_usd"] > 0 < found["power_W"]
    assert "1:1" in text
    assert f"{found['one_more_host']['leaf']:+,} leaves" in text


def test_the_bill_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: 32 NICs and 1 spare, 1 switch and 1, 64 optics and 2, 32 fibres and 1."""
    parts = load_parts().parts.by_name
    counts = {"nic-400g": 33, "switch-64x400g": 2, "optic-400g-sr4": 66, "fibre-om4": 33}
    by_hand = sum(n * float(parts[name].price.usd) for name, n in counts.items())
    assert main(["fabric", "--hosts", "4", "--nic", "400Gbps", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cost_usd"] == pytest.approx(by_hand, abs=0.01)


def test_what_is_not_sold_has_no_total(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ONE[:3], "--nic", "6400Gbps", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cost_usd"] is None
    assert found["missing_prices"]


def test_the_ports_of_a_switch_have_the_name_of_plans_too(run) -> None:
    small, same = (run(*ONE, name, "32", "--json") for name in ("--radix", "--switch-radix"))
    assert small.payload == same.payload
    assert small.payload != run(*ONE, "--json").payload


def test_rails_have_the_name_that_plans_have(run) -> None:
    rail, rail_only = (run(*ONE, "--wiring", name, "--json") for name in ("rail", "rail_only"))
    assert rail.payload == rail_only.payload
    assert lp.network(hosts=64, nic="400Gbps", wiring="rail").network.order.wiring == "rail_only"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--nic", "400"), ("--nic", "without a unit")),
        (("--nic", "400Mbps"), ("--nic", "0.4 Gbit/s, expected a NIC of 1 Gbit/s or more")),
        (("--port", "300Gbps"), ("--nic", "multiple of the port's 300 Gbit/s")),
        (("--port-up", "600Gbps"), ("--port-up", "multiple of the port's 400 Gbit/s")),
        (("--taper", "x"), ("--taper", "expected numbers")),
        (("--taper", "0.5"), ("--taper", "ratios of 1 to 1,000")),
        (("--taper", "1,2,3"), ("--taper", "one or two")),
        (("--hosts", "100000"), ("65,536", "write --radix 256\n")),
        (("--hosts", "20000"), ("--radix 128 or --wiring rail_only: each is enough",)),
        (("--hosts", "20000", "--planes", "2"), ("--radix 128 or --wiring rail_only: each",)),
        (("--hosts", "20000", "--host-ports-per-leaf", "4"), ("write --radix 512\n",)),
        (SIX_PORTS, ("the 6 host ports per leaf", "write --host-ports-per-leaf 8 or more, ")),
        (("--hosts", "0"), ("--hosts", "from 1")),
        (("--wiring", "ring"), ("--wiring", "rail_only")),
    ],
)
def test_wrong_input_is_one_message(
    more: tuple[str, ...], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main([*ONE, *more])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said


def test_the_example_of_the_documentation_is_what_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sizing.md").read_text()
    [example] = re.findall(r"```console\n\$ libra-planner (.*?)\n(.*?)```", page, re.DOTALL)
    assert main(example[0].split()) == 0
    assert capsys.readouterr().out.startswith(example[1])


def test_a_rack_limits_the_host_ports_of_a_single_leaf_too() -> None:
    network = cluster_network(ClusterOrder(8, most_hosts_per_leaf=10))
    assert network.clos.hosts_per_leaf <= 10
    assert network.clos.total_leaves == 8


def test_managers_do_not_change_the_cables_of_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    planes = ("fabric", "--hosts", "200", "--nic", "800Gbps", "--planes", "2", "--port", "800Gbps")
    costs = []
    for more in ((), ("--reserve", "1"), ("--management-links", "4")):
        assert main([*planes, *more, "--json"]) == 0
        costs.append(json.loads(capsys.readouterr().out)["cost_usd"])
    assert costs[1] <= costs[2] < costs[1] + 20_000


def test_equal_groups_of_a_plan_are_named_with_their_price(run) -> None:
    """The plan that init writes buys other switches for the same hosts and taper."""
    asked = ("fabric", "--hosts", "192", "--nic", "400Gbps", "--taper", "2")
    ours, theirs = (run(*asked, *more) for more in ((), GROUPS_OF_32))
    usd = [float(run(*asked, *x, "--json").payload["cost_usd"]) for x in ((), GROUPS_OF_32)]
    words = f"--host-ports-per-leaf 32 sizes that, 48 leaves and 16 spines for ${usd[1] / 1e6:.2f}M"
    assert f"{words}, ${(usd[1] - usd[0]) / 1e3:.2f}k more" in ours.out
    assert "equal groups" not in theirs.out
    init = ("--model", "llama3-70b", "--npu", "h100-sxm", "--npus", "1536", "--taper", "2")
    plan = run("init", *init, "-o", "-").out
    assert "topology: SW(8)_[SW(32)_SW(6)]" in plan
    for hosts in ("128", "197", "250"):  # Equal; a prime; leaves of which init parts the rails.
        assert "equal groups" not in run(*asked[:2], hosts, *asked[3:]).out


def test_equal_pods_of_a_plan_are_named_under_cores(run, tmp_path: Path) -> None:
    """512 hosts at 1:1 and 3:1: 16 leaves of 32 for each of 8 rails, 24 cores; fabric has 29.

    Each of 128 leaves has 32 links up. With pods of 8 leaves of one rail, 8 spines of it have 4
    links to each leaf, 32 down, and 11 up at 3:1; they go to cores of the spines' number.
    """
    asked = ("fabric", "--hosts", "512", "--nic", "400Gbps", "--taper", "1,3", *GROUPS_OF_32)
    told, alike = run(*asked).out, ("fabric", "--hosts", "512", "--nic", "400Gbps", *GROUPS_OF_32)
    words = "[SW(32)_SW(8)_SW(2)] has 128 leaves, 128 spines and 24 cores for $"
    assert "Leaves and pods hold no equal groups of hosts here; in a plan they do" in told
    assert words in told
    assert "equal groups" not in run(*alike).out  # 4 pods of 32 leaves: as the plan has them.
    steps, tiers = [operation("weight_grad", "all-reduce", 1e9)], ["node", "leaf", "spine", "core"]
    others = {"tiers": tiers, "cost_model": "clos-2026", "realization": {"port_speed": "400 Gbps"}}
    plan = loaded(tmp_path, "SW(8)_[SW(32)_SW(8)_SW(2)]", steps, **others)
    built = checked(plan, 450, 50, 50, 50 / 3).design.dimensions[1].fabric
    assert built.n_switches == {"leaf": 128, "spine": 128, "core": 24}


GROUPS_OF_32 = ("--host-ports-per-leaf", "32")


@pytest.mark.parametrize(("ratio", "number"), [("2:1", "2"), ("1:1,3:1", "1,3")])
def test_a_taper_may_be_written_as_a_ratio(
    ratio: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for taper in (ratio, number):
        assert main([*ONE, "--taper", taper]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


@pytest.mark.parametrize("taper", ["nan", "inf", "1,nan", "1e9"])
def test_tapers_are_numbers(taper: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ONE, "--taper", taper]) == 2
    assert "--taper: got" in capsys.readouterr().err


GB200 = ("fabric", "--hosts", "64", "--npus-per-host", "72", "--nic", "400Gbps")


def test_separate_rails_are_named_where_they_cost_less(run) -> None:
    """What they cost is what ``fabric`` prints of them."""
    asked = ("fabric", "--hosts", "512", "--nic", "400Gbps", "--taper", "2")
    found = run(*asked, "--json").payload
    rails = run(*asked, "--wiring", "rail_only", "--json").payload
    usd, less = (x / 1e6 for x in (rails["cost_usd"], found["cost_usd"] - rails["cost_usd"]))
    assert f"--wiring rail_only costs ${usd:.2f}M, ${less:.2f}M less" in run(*asked).out
    title, first, *_ = run(*GB200).out.splitlines()  # Of a third of the price: said at once.
    assert "rail_optimized" in title
    assert first.startswith("The same command with --wiring rail_only costs $19.01M, $38.25M less")
    assert "less: every rail" not in run(*asked, "--wiring", "rail_only").out
    # One leaf per rail already, without spines: nothing is left to part.
    assert "--wiring rail_only costs" not in run("fabric", "--hosts", "8", "--nic", "400Gbps").out


@pytest.mark.parametrize(
    ("asked", "options", "n_links", "parts"),
    [
        (("--npus", "2048"), "--port 800Gbps", 64, "switch-64x800g, 2 links of 400 Gbit/s on a"),
        (
            ("--hosts", "127", "--transceivers-per-fibre", "1"),
            "--radix 128",
            64,
            "switch-128x400g; optics",
        ),
    ],
)
def test_cheaper_switches_of_the_catalogue_are_named(run, asked, options, n_links, parts) -> None:
    """What the same command finds with the options that it names; power is that of the bill."""
    words = ("fabric", "--nic", "400Gbps", *asked)
    own, other = (run(*words, *more, "--json").payload for more in ((), options.split()))
    usd, watt = (own[key] - other[key] for key in ("cost_usd", "power_W"))
    assert usd > 0.01 * own["cost_usd"]
    said = (
        f"The same command with {options} has {other['leaf']} leaves and {other['spine']} spines "
        f"and costs {format_usd(other['cost_usd'])}, {format_usd(usd)} less, and draws "
        f"{watt / 1e3:.1f} kW less: {parts}"
    )
    out = " ".join(run(*words).out.split())
    assert said in out
    assert f"fibre-om4 at assumed prices. A leaf then serves {n_links} links of NICs" in out
    assert other["host_ports_per_leaf"] == n_links
    # Nothing is cheaper then, and whoever names a switch has chosen.
    for more in (options.split(), ("--part", "switch=switch-64x400g")):
        assert "has 32 leaves and" not in run(*words, *more).out


def test_a_switch_that_is_not_quoted_is_said_to_be_at_its_list_price(run, tmp_path) -> None:
    quotes = tmp_path / "quotes.csv"
    quotes.write_text("item,price,seller,date\nnic-400g,1400,Us,2026-11-01\n")
    asked = ("fabric", "--npus", "2048", "--nic", "400Gbps", "--prices", str(quotes))
    listed = "switch-64x800g, which your quotes do not have: list price, no support, 2 links"
    assert listed in " ".join(run(*asked).out.split())


def test_a_total_without_all_prices_is_the_least_and_has_no_range(run) -> None:
    asked = ("--nic", "800Gbps", "--taper", "3", "--transceivers-per-fibre", "1")
    found = run("fabric", "--hosts", "128", *asked)
    assert "with spares, without optic for 2 links at 800 Gbit/s over 50 m" in found.out
    assert "Open: the catalogue has no optic for 2 links at 800 Gbit/s over 100 m: add one" in (
        found.out
    )
    (line,) = [line for line in found.out.splitlines() if "no price is known" in line]
    assert line.startswith("At least $")
    assert "as sources of prices differ" not in line
    known = lp.network(hosts=128, nic="800Gbps", taper=3, transceivers_per_fibre=1)
    assert "; at least $" in repr(known)
    # Nothing has a price: no $0.00.
    unsold = lp.network(hosts=256, nic="400GBps")
    assert repr(unsold) == "<Network: 256 hosts, 96 switches, 4,096 cables; no price>"
    assert "No price is known of nic at 3200 Gbit/s" in str(unsold)
    assert "$0.00" not in str(unsold)


@lru_cache
def bundled() -> FabricShop:
    catalogue = load_parts()
    return FabricShop(catalogue.parts, catalogue.assumptions, Book(()))


def bought(network: ClusterNetwork, n_per_fibre: int = 2, **named: list[str]) -> Bill:
    """The bill of a network at the bundled prices."""
    return cluster_bill(network, bundled(), n_per_fibre, named)


def optics(bill: Bill) -> dict[tuple[str, str], int]:
    """Modules and fibres in use, by where they are and what they are."""
    return {(x.tier, x.part.name): x.n_units for x in bill.lines if x.part.kind in CABLING}


def usd_by_hand(**n_units: int) -> Decimal:
    """Units with their spares at the bundled prices; ``_`` stands for ``-``."""
    parts, total = bundled().parts.by_name, Decimal(0)
    for name, n in n_units.items():
        part = parts[name.replace("_", "-")]
        assert part.price is not None
        n_spares = math.ceil(n * Fraction(str(part.spare_fraction)))
        total += (n + n_spares) * part.price.usd
    return total


def test_twin_modules_of_separate_rails_by_hand() -> None:
    """Eight rails of 512 NICs: 16 leaves of 32 links down and up, 8 spines of 64 links each.

    A host has 4 modules of two links, a leaf 16 and 16, a spine 32. 50 and 100 m are SR8's.
    """
    network = cluster_network(ClusterOrder(512, wiring="rail_only"))
    bill = bought(network, 1)
    assert optics(bill) == {
        ("host-leaf", "optic-800g-sr8"): 512 * 4 + 128 * 16,
        ("host-leaf", "fibre-om4"): 4096,
        ("leaf-spine", "optic-800g-sr8"): 128 * 16 + 64 * 32,
        ("leaf-spine", "fibre-om4"): 4096,
    }
    assert sum(network.transceivers(1).values()) == 8192
    counts = {"nic_400g": 4096, "switch_64x400g": 192, "optic_800g_sr8": 8192, "fibre_om4": 8192}
    assert bill.total_usd == usd_by_hand(**counts) == Decimal("28322080.00")
    named = bought(network, 1, optic=["optic-800g-sr8"])
    assert named.total_usd == bill.total_usd < bought(network).total_usd


def test_twin_modules_under_cores_have_the_reach_of_their_layer(run) -> None:
    """4 pods of 32 leaves and 32 spines, 64 cores; only 300 m to the cores need DR8."""
    network = cluster_network(ClusterOrder(512))
    bill = bought(network, 1)
    assert {key: n for key, n in optics(bill).items() if "optic" in key[1]} == {
        ("host-leaf", "optic-800g-sr8"): 512 * 4 + 128 * 16,
        ("leaf-spine", "optic-800g-sr8"): 128 * 16 + 128 * 16,
        ("spine-core", "optic-800g-dr8"): 128 * 16 + 64 * 32,
    }
    modules = {"optic_800g_sr8": 8192, "optic_800g_dr8": 4096}
    fibres = {"fibre_om4": 8192, "fibre_os2": 4096}
    total = usd_by_hand(nic_400g=4096, switch_64x400g=320, **modules, **fibres)
    assert bill.total_usd == total == Decimal("43989721.00")
    asked = ("fabric", "--hosts", "512", "--nic", "400Gbps", "--transceivers-per-fibre", "1")
    found = run(*asked, "--part", "optic=optic-800g-sr8")
    assert found.code == 2
    assert "nothing for a cable or optic for 2 links at 400 Gbit/s over 300 m" in found.err
    assert "--part optic=optic-800g-dr8" in found.err
    # Of FR8 the wavelengths share a pair of fibres: it is no module of two links.
    assert "fr8" not in run(*asked).out


def test_twin_modules_of_odd_numbers_of_links_by_hand() -> None:
    """7 hosts of 3 NICs, 1 link each to 2 managers, on leaves of 8 ports: 6 leaves, 2 of a rail.

    23 links are 5 of 4 and 1 of 3: 6 x 2 modules. Each leaf has 4 up to 3 or more spines.
    """
    order = ClusterOrder(
        7, 3, switch_radix=8, n_management_links=2, tapers=(4 / 3,), wiring="rail_optimized"
    )
    network = cluster_network(order)
    clos = network.clos
    assert (clos.total_leaves, clos.n_spines, clos.n_uplinks) == (6, 3, 3)
    links = [4, 4, 4, 4, 4, 3]
    in_switches = sum(-(-n // 2) for n in links) + 6 * 2 + 3 * 3
    assert network.transceivers(1) == {"switches": in_switches, "hosts": 7 * 2, "managers": 2}
    found = optics(bought(network, 1))
    assert found["host-leaf", "optic-800g-sr8"] == 7 * 2 + 12
    assert found["managers", "optic-400g-sr4"] == 2
    assert found["leaf-spine", "optic-800g-sr8"] == 6 * 2 + 3 * 3


def test_breakout_takes_one_module_for_a_port_of_a_leaf_by_hand(run) -> None:
    """64 leaves of 32 ports down, each for two NICs, and 32 up; 32 spines of 64 ports."""
    network = cluster_network(ClusterOrder(512, port_Bps=100e9))
    bill = bought(network)
    assert optics(bill) == {
        ("host-leaf", "optic-400g-sr4"): 4096,
        ("host-leaf", "optic-800g-sr8"): 64 * 32,
        ("host-leaf", "fibre-om4"): 4096,
        ("leaf-spine", "optic-800g-sr8"): 64 * 32 + 32 * 64,
        ("leaf-spine", "fibre-om4"): 2048,
    }
    modules = {"optic_400g_sr4": 4096, "optic_800g_sr8": 6144}
    total = usd_by_hand(nic_400g=4096, switch_64x800g=96, fibre_om4=6144, **modules)
    assert bill.total_usd == total == Decimal("24114106.00")
    asked = ("fabric", "--hosts", "512", "--nic", "400Gbps", "--port", "800Gbps")
    found = run(*asked, "--json").payload
    counts = {"switches": 6144, "hosts": 4096, "managers": 0}
    assert {x: found[f"transceivers_{x}"] for x in counts} == counts
    # With modules of two links those of hosts are known, and those of 2 x 800 Gbit/s are not sold.
    twin = run(*asked, "--transceivers-per-fibre", "1", "--json").payload
    assert (twin["transceivers_hosts"], twin["transceivers_switches"]) == (2048, 2048 + 2048)
    [said] = twin["open_points"]
    assert said.startswith("the catalogue has no optic for 2 links at 800 Gbit/s over 100 m")
    assert optics(bought(network, 1))["host-leaf", "optic-800g-sr8"] == 2048 + 2048


def test_breakout_of_odd_numbers_of_links_by_hand() -> None:
    """15 NICs on 8 ports of one leaf, and 9 hosts of 3 NICs and 2 managers on leaves of 4, 4 .. 5.

    A port that is left with one link has a module of its speed, too.
    """
    one = cluster_network(ClusterOrder(5, 3, port_Bps=100e9))
    assert one.transceivers() == {"switches": 8, "hosts": 15, "managers": 0}
    bill = bought(one)
    assert optics(bill) == {
        ("host-leaf", "optic-400g-sr4"): 15,
        ("host-leaf", "optic-800g-sr8"): 8,
        ("host-leaf", "fibre-om4"): 15,
    }
    counts = {"optic_400g_sr4": 15, "optic_800g_sr8": 8, "fibre_om4": 15}
    assert bill.total_usd == usd_by_hand(nic_400g=15, switch_64x800g=1, **counts)
    managed = cluster_network(ClusterOrder(9, 1, port_Bps=100e9, n_management_links=2))
    assert managed.transceivers() == {"switches": 6, "hosts": 9, "managers": 2}
    assert optics(bought(managed)) == {
        ("host-leaf", "optic-400g-sr4"): 9,
        ("managers", "optic-400g-sr4"): 2,
        ("host-leaf", "optic-800g-sr8"): 6,
        ("host-leaf", "fibre-om4"): 11,
    }


def test_a_bill_has_as_many_modules_as_ports_and_cages_need() -> None:
    """Counted link by link on random networks with full leaves, in both ways of counting."""
    draw, n_built = random.Random(11), Counter[int]()
    for _ in range(200):
        order = random_order(draw)
        try:
            network = cluster_network(order)
        except SpecError:
            continue
        settings, clos = order.settings, network.clos
        n_per_leaf, n_free = divmod(network.links["host-leaf"], clos.total_leaves)
        is_plain = settings.n_ports_per_uplink == 1 and network.cables == network.links
        if n_free or n_per_leaf != clos.hosts_per_leaf or not is_plain:
            continue
        n_built[settings.n_hosts_per_port] += 1
        singles = twins = 0
        for name, used in ports_by_switch(network).items():
            if not name.startswith("host"):
                k = settings.n_hosts_per_port if name.startswith("leaf") else 1
                singles += -(-used["down"] // k) + used["up"]
                twins += -(-used["down"] // max(2, k)) - (-used["up"] // 2)
        for n_per_fibre, counted in ((2, singles), (1, twins)):
            found = network.transceivers(n_per_fibre)
            assert found["switches"] == counted, (order, n_per_fibre)
            assert bought(network, n_per_fibre).n_units("optic") == sum(found.values())
    assert n_built[1] > 10
    assert n_built[2] > 3


def test_both_ends_of_a_split_port_are_cheapest_together() -> None:
    """SR4 is the cheapest at a NIC; DR8 at a leaf makes DR4 cheaper, as half of it is in a link."""
    sold = bundled().parts
    cheap = replace(sold.by_name["optic-800g-dr8"], price=Price(Decimal("500.00")))
    parts = replace(sold, by_name=dict(sold.by_name) | {cheap.name: cheap})
    shop = replace(bundled(), parts=parts)
    bill = cluster_bill(cluster_network(ClusterOrder(2, 2, port_Bps=100e9)), shop)
    assert optics(bill) == {
        ("host-leaf", "optic-400g-dr4"): 4,
        ("host-leaf", "optic-800g-dr8"): 2,
        ("host-leaf", "fibre-os2"): 4,
    }
    prices = {name: part.price.usd for name, part in parts.by_name.items() if part.price}
    [near] = [x.choice for x in bill.lines if x.part.name == "optic-400g-dr4"]
    assert near is not None
    assert near.taken.usd == 659 + 500 / Decimal(2) + prices["fibre-os2"]
    assert [x.usd for x in near.others if x.part.name == "optic-400g-sr4"] == [
        659 + 879 / Decimal(2) + prices["fibre-om4"]
    ]


def test_cages_of_two_ports_are_an_open_point_and_twin_modules_close_it(run) -> None:
    single, twin = (
        run(*ONE, *more, "--json").payload["open_points"]
        for more in ((), ("--transceivers-per-fibre", "1"))
    )
    assert single == [
        "1,536 optic-400g-sr4 stand in cages of 2 ports of switch-64x400g; ask for twin-port "
        "modules: half as many, at another price (--transceivers-per-fibre 1 counts them)"
    ]
    assert twin == []
    assert f"Open: {single[0]}" in run(*ONE).out.replace("\n", " ")


SHORT = """
kind: parts
base: parts
source: rooms
as_of: "2026-11"
assumptions: {cable_lengths_m: {host-leaf: 3}}
"""


def test_copper_at_a_split_port_is_an_open_point(run, tmp_path) -> None:
    """A cable of one link for each of 512 is counted; sellers have cables of two."""
    path = tmp_path / "short.yaml"
    path.write_text(SHORT)
    asked = ("--port", "800Gbps", "--parts", str(path), "--json")
    said = run(*ONE, *asked).payload["open_points"]
    assert said == [
        "512 dac-400g are counted, and 2 links share a port of a leaf: a splitter cable joins 2 of "
        "them; ask for its price"
    ]


def test_only_an_optic_splits(run, tmp_path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        SHORT.replace("assumptions:", "parts: {dac-400g: {splits: false}}\nassumptions:")
    )
    found = run(*ONE, "--parts", str(path))
    assert found.code == 2
    assert "got splits of a copper, expected it of an optic only" in found.err


def test_npus_on_full_hosts_are_as_many_hosts(run) -> None:
    nic = ("fabric", "--nic", "400Gbps")
    assert run(*nic, "--npus", "512", "--json").payload == run(*ONE, "--json").payload
    four = run(*nic, "--npus", "512", "--npus-per-host", "4", "--json").payload
    assert (four["hosts"], four["nics"]) == (128, 512)
    assert lp.network(nic="400Gbps", npus=512).bill == lp.network(nic="400Gbps", hosts=64).bill
    for more, said in (
        (("--npus", "516"), "--npus: got 516 NPUs on hosts of 8, expected full hosts"),
        ((), "--hosts: got neither --hosts nor --npus, expected one of them"),
        (("--npus", "512", "--hosts", "64"), "--hosts: got both --hosts and --npus"),
    ):
        found = run(*nic, *more)
        assert (found.code, found.err.startswith(said)) == (2, True), found.err
    assert "--npus 520, or" in run(*nic, "--npus", "516").err


def test_free_leaf_ports_name_the_wiring_of_fewer_leaves(run) -> None:
    """12 hosts: 12 links down and up of 64 ports on each of 8 leaves; 96 fit on 3."""
    asked = ("fabric", "--hosts", "12", "--nic", "400Gbps")
    fewer = run(*asked, "--wiring", "top_of_rack", "--json").payload
    own = run(*asked, "--json").payload
    less = own["cost_usd"] - fewer["cost_usd"]
    said = (
        "320 of 512 ports of leaves are free, as every rail has leaves of its own: --wiring "
        f"top_of_rack needs 3 leaves and 2 spines and costs {format_usd(fewer['cost_usd'])}, "
        f"{format_usd(less)} less"
    )
    assert said in " ".join(run(*asked).out.split())
    assert "ports of leaves are free" not in run(*ONE).out


def test_modules_of_two_speeds_at_the_ends_of_a_link_are_asked_about(run) -> None:
    """A port of 400 Gbit/s for two NICs of 200; like modules are no question."""
    asked = ("fabric", "--hosts", "64", "--nic")
    said = (
        "Open: links have optic-200g-sr4 and optic-400g-sr4 at their two ends: ask the seller "
        "whether these speak to each other (lanes)"
    )
    assert said in run(*asked, "200Gbps", "--port", "400Gbps").out.replace("\n", " ")
    assert "speak to each other" not in run(*asked, "400Gbps").out
