"""Prices with sources, and what their ranges do to totals and to the ranking (C22)."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from random import Random

import pytest

from libra_planner.errors import SpecError
from libra_planner.inputs.parts import load_parts
from libra_planner.plan.npus import catalogue
from libra_planner.procurement.bill import Bill, Line, Part, Price
from libra_planner.procurement.ranges import rivals
from libra_planner.reading.bundled import folder

# MixNet (SIGCOMM 2025, arXiv 2501.03905), Table 4: USD of a transceiver, a NIC and a port.
MIXNET = {
    100: (99, 659, 187),
    200: (239, 1079, 374),
    400: (659, 1499, 1090),
    800: (1399, 2248, 1400),
}
OPTICS = {100: "sr4", 200: "sr4", 400: "dr4", 800: "dr8"}


@pytest.mark.parametrize("speed", MIXNET)
def test_prices_are_those_of_the_paper(speed) -> None:
    """Its own totals of 64 ports: $69,760 at 400 and $89,600 at 800 Gbit/s."""
    parts, (optic, nic, port) = load_parts().parts.by_name, MIXNET[speed]
    assert parts[f"optic-{speed}g-{OPTICS[speed]}"].unit_usd == optic
    assert parts[f"nic-{speed}g"].unit_usd == nic
    assert parts[f"switch-64x{speed}g"].unit_usd == 64 * port


def test_every_price_lies_in_its_range_and_says_where_it_is_from() -> None:
    for part in filter(lambda part: part.price, load_parts().parts.by_name.values()):
        low, high = part.price.ends_usd
        assert 0 < low <= part.unit_usd <= high
        assert len(part.price.source) > 20
        assert part.price.as_of


def test_an_assumed_part_of_the_network_has_a_range() -> None:
    for part in load_parts().parts.by_name.values():
        if part.kind != "server" and part.price and part.price.confidence == "assumed":
            assert part.price.ends_usd[0] < part.price.ends_usd[1], part.name


# "Insights into DeepSeek-V3" (ISCA 2025, arXiv 2505.09343), Table 3: switches of 64 ports of 400
# Gbit/s, and $ per NPU, of 8 planes of two tiers and of three tiers, by the Slim Fly method, which
# counts no NICs.
@pytest.mark.parametrize(
    ("n_hosts", "wiring", "n_switches", "usd_per_npu"),
    [(2048, "rail_only", 768, 4390), (8192, "rail_optimized", 5120, 7500)],
)
def test_published_networks_cost_what_the_range_says(
    run, n_hosts, wiring, n_switches, usd_per_npu
) -> None:
    flags = ("--hosts", f"{n_hosts}", "--wiring", wiring, "--nic", "400Gbps")
    payload = run("fabric", *flags, "--json").payload
    assert payload["switches"] == n_switches
    nics = [load_parts().parts.by_name["nic-400g"].price.ends_usd[i] for i in (0, 1)]
    usd = payload["nics"] * usd_per_npu
    n_nics = payload["nics"] + -(-payload["nics"] // 50)  # 2 % spares
    low, high = (payload[f"cost_usd_{end}"] for end in ("low", "high"))
    assert low - n_nics * float(nics[0]) <= usd <= high - n_nics * float(nics[1])
    assert low < payload["cost_usd"] < high


def _bill(random: Random, parts: list[Part]) -> Bill:
    some = random.sample(parts, random.randint(1, len(parts)))
    return Bill(tuple(Line("network", "", part, random.randint(1, 20)) for part in some))


@pytest.mark.parametrize("seed", range(60))
def test_a_rival_leads_at_some_corner_of_the_ranges(seed) -> None:
    """Slow twin: all corners of all ranges."""
    random = Random(seed)
    parts = []
    for name in "abcd":
        low, usd, high = sorted(random.sample(range(1, 60), 3))
        parts.append(Part(name, "nic", "", Price(Decimal(usd), "assumed", "", "", low, high)))
    bills = [_bill(random, parts) for _ in range(3)]
    times = [random.choice([1.0, 1.25, 2.0]) for _ in bills]
    found = {one.other: one.lead_fraction for one in rivals(bills, 0, "best per dollar", times)}
    ends = [part.price.ends_usd for part in parts]

    def cost(bill: Bill, prices: tuple[Decimal, ...]) -> float:
        units = bill.n_bought_by_part()
        return sum(
            units.get(part.name, 0) * float(usd) for part, usd in zip(parts, prices, strict=True)
        )

    for other in (1, 2):
        leads = [
            (cost(bills[0], prices) * times[0] - cost(bills[other], prices) * times[other])
            for prices in product(*ends)
        ]
        assert (max(leads) > 0) == (other in found)


def test_what_designs_share_does_not_change_their_order() -> None:
    """Totals overlap, but the first buys all that the second does, and more."""
    nic = Part("n", "nic", "", Price(Decimal(10), low_usd=Decimal(1), high_usd=Decimal(30)))
    few, many = (Bill((Line("network", "", nic, n),)) for n in (10, 12))
    assert few.ends_usd[1] > many.ends_usd[0]
    assert rivals([few, many], 0, "cheapest") == ()
    assert [one.other for one in rivals([many, few], 0, "cheapest")] == [1]


def test_a_range_around_the_amount_only(tmp_path) -> None:
    text = (folder("parts") / "parts.yaml").read_text()
    (tmp_path / "p.yaml").write_text(text.replace("high: 1065", "high: 600"))
    expected = "got low 659, amount 659, high 600, expected low <= amount <= high"
    with pytest.raises(SpecError, match=expected):
        load_parts(str(tmp_path / "p.yaml"))


def test_an_npu_has_the_range_of_its_source(tmp_path) -> None:
    """The press says $25,000 to $30,000 of an H100."""
    npu = load_parts().assumptions.npu
    assert npu.price.ends_usd == (25000, 30000)
    text = (folder("npu-catalogues") / "npus.yaml").read_text().replace("30000", "26000")
    (tmp_path / "npus.yaml").write_text(text)
    with pytest.raises(SpecError, match="expected low_usd <= usd <= high_usd"):
        catalogue(str(tmp_path / "npus.yaml"))
