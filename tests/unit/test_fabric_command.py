"""``libra-planner fabric``: a cluster's network by the port, what it prints, and wrong input."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

import libra_planner as lp
from libra_planner.cli.main import main
from libra_planner.errors import SpecError
from libra_planner.fabric.cluster import WIRINGS, ClusterNetwork, ClusterOrder, cluster_network

ONE = ("fabric", "--hosts", "64", "--nic", "400Gbps")


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
    from libra_planner.inputs.parts import load_parts

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
        (("--hosts", "100000"), ("65,536", "raise --radix or --taper")),
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


def test_a_total_without_all_prices_is_the_least_and_has_no_range(run) -> None:
    asked = ("--nic", "800Gbps", "--taper", "3", "--transceivers-per-fibre", "1")
    found = run("fabric", "--hosts", "128", *asked)
    assert "with spares, without optic at 1600 Gbit/s over 300 m and cables" in found.out
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
