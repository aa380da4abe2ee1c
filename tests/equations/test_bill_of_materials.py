"""Bills worked by hand, the equations of a run, and the linear model beside the parts."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.fabric.realization import bisection_Bps, realize
from libra_planner.fabric.topology import Realization, SwitchSettings, parse_topology
from libra_planner.inputs.parts import load_parts
from libra_planner.plan.problem import load_plan
from libra_planner.problem import Problem
from libra_planner.procurement.bill import (
    MEDIA,
    Bill,
    Line,
    Need,
    Part,
    Parts,
    Price,
    VolumeDiscount,
    to_cents,
    with_one_stock,
)
from libra_planner.procurement.bought.choices import choice
from libra_planner.procurement.candidate import Candidate, Proposal, candidate
from libra_planner.procurement.lines import Book, FabricShop
from libra_planner.procurement.ranking import Swing
from libra_planner.procurement.run import (
    daly_interval_s,
    expected_time_s,
    failure_rates_per_s,
    training_run,
    young_interval_s,
)
from libra_planner.procurement.terms.discounts import discounted_usd
from libra_planner.workload.operations import Covers

SMALL = """\
workload: gpt3-libra
fabric:
  topology: SW(16)
  tiers: [pod]
  realization: {switch_radix: 8, port_speed: 400 Gbps}
parallelism: {tp: 1, dp: 16}
cost_model: libra-ispass24
constraints: [total == 50 GB/s]
"""
POD = (
    SMALL.replace("SW(16)", "SW(16384)")
    .replace("tp: 1, dp: 16", "tp: 16, dp: 1024")
    .replace("{switch_radix: 8, port_speed: 400 Gbps}", "{preset: pod-16384}")
)


def _whole_step(problem: Problem) -> Problem:
    """As if LIBRA's tables, which are part of a step, were one: runs are told of it."""
    (one,) = problem.step.members
    workload = replace(one.training.workload, covers=Covers.STEP, tokens_per_step=1024)
    member = replace(one, training=replace(one.training, workload=workload))
    return replace(problem, step=replace(problem.step, members=(member,)))


def _quoted(path, bandwidth_GBps: list[float], n_tokens: int = 10**12) -> Candidate:
    problem, catalogue = _whole_step(load_plan(path)), load_parts()
    shop = FabricShop(catalogue.parts, catalogue.assumptions, Book(problem.prices.parts))
    vector = np.array(bandwidth_GBps) * 1e9
    proposal = Proposal("A", "a", problem, vector, False, shop, None)
    return candidate(proposal, n_tokens=n_tokens)


def _lines(one: Candidate, group: str) -> dict[tuple[str, str], tuple[int, int, Decimal]]:
    return {
        (line.tier, line.part.name): (line.n_units, line.n_spares, line.extended_usd)
        for line in one.bill.of(group).lines
    }


def test_sixteen_hosts_on_leaves_and_spines(plan) -> None:
    """16 hosts, radix 8: 4 leaves, 2 spines, 16 + 16 cables, 64 optics (docs/realization.md)."""
    one = _quoted(plan(text=SMALL), [50.0])
    assert _lines(one, "network") == {
        ("dim1 pod, host", "nic-400g"): (16, 1, Decimal(17 * 1499)),
        # The least switch of 400 Gbit/s that is sold has 32 ports.
        ("dim1 pod, leaf", "switch-32x400g"): (4, 1, Decimal(5 * 34880)),
        ("dim1 pod, spine", "switch-32x400g"): (2, 0, Decimal(2 * 34880)),
        # One stock of each part for the whole cluster, on its line of most units.
        ("dim1 pod, host-leaf", "optic-400g-sr4"): (32, 2, Decimal(34 * 659)),
        ("dim1 pod, host-leaf", "fibre-om4"): (16, 1, Decimal(17 * 116)),
        ("dim1 pod, leaf-spine", "optic-400g-sr4"): (32, 0, Decimal(32 * 659)),
        ("dim1 pod, leaf-spine", "fibre-om4"): (16, 0, Decimal(16 * 116)),
    }
    sums = {g: one.bill.of(g).total_usd for g in ("compute", "network", "frontend", "facility")}
    assert sums == {
        "compute": Decimal(17 * 27500 + 3 * 37200),
        "network": Decimal(316_965),
        "frontend": Decimal(3 * 1079 + 2 * 23936 + 5 * 239 + 2 * 116),
        "facility": Decimal(3 * 5000),  # Two racks of one server, one of switches.
    }
    assert one.bill.total_usd == Decimal(990_883)
    assert one.facility.server_w == 8 * 700 + 4400 + 8 * 25 + 2 * 20
    assert (one.facility.n_servers_per_rack, one.facility.limited_by) == (1, "power")


def test_the_bridge_of_sixteen_hosts(plan) -> None:
    """C7: 16 x 50 x (7.8 + 18 + 31.6) = 45,920; 6 switches of 32 ports have 48 + 16 used."""
    [bridge] = _quoted(plan(text=SMALL), [40.0]).bridges
    assert bridge.linear_usd == Decimal("36736.00")
    assert bridge.rounding_usd == Decimal("9184.00")  # 50 where 40 is asked for
    assert (bridge.n_ports, bridge.n_free_ports) == (6 * 32, 6 * 32 - 48)
    assert bridge.free_ports_usd == Decimal(4 * 34880 * 96 // 128 + 2 * 34880 * 48 // 64)
    assert bridge.spares_usd == Decimal(1499 + 34880 + 2 * 659 + 116)
    steps = bridge.linear_usd + bridge.rounding_usd + bridge.included_usd + bridge.parts_usd
    assert steps + bridge.free_ports_usd + bridge.spares_usd == bridge.bill_usd == Decimal(316_965)


def test_the_pod_of_16384(plan) -> None:
    """Three tiers of 64 ports: 512 + 512 + 256 switches, 3 x 16,384 cables, 98,304 optics."""
    one = _quoted(plan(text=POD), [50.0])
    network = one.bill.of("network")
    assert (network.n_units("switch"), network.n_units("optic")) == (1280, 98304)
    switches = (1280 + 26) * 69760
    optics = (65536 + 1967 + 32768 + 984) * 659  # To 100 m, and from spines to cores.
    # Spares of the fibres of frontend (2,048 + 533) and storage (2,048 + 2,048), too.
    fibres = (32768 + 789) * 116 + 16712 * 150
    assert network.total_usd == Decimal(16712 * 1499 + switches + optics + fibres)
    assert network.total_usd == Decimal(189_284_305)


def test_the_failures_of_the_pod_are_those_that_were_counted(plan) -> None:
    """419 unexpected interruptions in 54 days on 16,384 NPUs, 256 of them of NPUs (Llama 3)."""
    one, seconds = _quoted(plan(text=POD), [50.0]), 54 * 86400
    rates = failure_rates_per_s(one.bill, load_parts().assumptions)
    counted = {kind: rate * seconds for kind, rate in rates.items()}
    expected = {"npu": 256, "server": 128, "switch": 5, "optic": 30}
    assert counted == pytest.approx(expected, rel=2e-3)


@given(checkpoint_s=st.floats(1, 600), ratio=st.floats(20, 1e5), restart_s=st.floats(0, 3600))
def test_dalys_interval_is_the_best_of_all(checkpoint_s, ratio, restart_s) -> None:
    """The formula's interval costs hardly more than the best of a fine grid, and Young's more."""
    mtbf_s = checkpoint_s * ratio

    def time_s(interval_s: float) -> float:
        rest = {"checkpoint_s": checkpoint_s, "restart_s": restart_s, "mtbf_s": mtbf_s}
        return expected_time_s(1e9, interval_s=interval_s, **rest)

    young_s = young_interval_s(checkpoint_s, mtbf_s)
    best_s = min(time_s(float(x)) for x in np.geomspace(young_s / 5, young_s * 5, 400))
    assert time_s(daly_interval_s(checkpoint_s, mtbf_s)) <= best_s * (1 + 1e-5)


def _simulated_s(work_s, interval_s, checkpoint_s, restart_s, mtbf_s, rng) -> float:
    """A run, one failure after the other: the obvious twin of the expectation."""
    now = done = 0.0
    failure = rng.exponential(mtbf_s)
    while done < work_s:
        part = min(interval_s, work_s - done)
        if now + part + checkpoint_s <= failure:
            now, done = now + part + checkpoint_s, done + part
            continue
        now = failure
        failure = now + rng.exponential(mtbf_s)
        while now + restart_s > failure:  # It may fail again while it restarts.
            now = failure
            failure = now + rng.exponential(mtbf_s)
        now += restart_s
    return now


def test_the_expected_time_is_the_mean_of_simulated_runs() -> None:
    rng = np.random.default_rng(1)
    terms = {"checkpoint_s": 60.0, "restart_s": 600.0, "mtbf_s": 6000.0}
    times = [_simulated_s(80_000.0, 800.0, *terms.values(), rng) for _ in range(1500)]
    expected_s = expected_time_s(80_000.0, interval_s=800.0, **terms)
    error_s = np.std(times) / math.sqrt(len(times))
    assert abs(np.mean(times) - expected_s) < 4 * error_s
    assert error_s < 0.005 * expected_s


def test_checkpoints_that_take_no_time_leave_only_the_restarts() -> None:
    """By hand: W = 1000 s, R = M ln 2, so that exp(R/M) doubles the time."""
    terms = {"checkpoint_s": 0.0, "restart_s": 500.0 * math.log(2), "mtbf_s": 500.0}
    assert daly_interval_s(0.0, 500.0) == 0
    assert expected_time_s(1000.0, interval_s=0.0, **terms) == pytest.approx(2000.0)
    assert expected_time_s(1000.0, interval_s=1e-3, **terms) == pytest.approx(2000.0, rel=2e-6)


@given(mtbf_s=st.floats(10, 1e6), restart_s=st.floats(0, 1000), work_s=st.floats(10, 1e7))
def test_hardly_any_checkpoint_time_is_close_to_none(mtbf_s, restart_s, work_s) -> None:
    """To first order the interval costs sqrt(2 C/M) of the time, and the limit costs nothing."""

    def time_s(checkpoint_s: float) -> float:
        terms = {"checkpoint_s": checkpoint_s, "restart_s": restart_s, "mtbf_s": mtbf_s}
        interval_s = min(daly_interval_s(checkpoint_s, mtbf_s), work_s)
        return expected_time_s(work_s, interval_s=interval_s, **terms)

    assert time_s(0.0) == pytest.approx(work_s * math.exp(restart_s / mtbf_s), rel=1e-12)
    assert time_s(0.0) <= time_s(1e-6) <= time_s(0.0) * (1 + 1.1 * math.sqrt(2e-6 / mtbf_s))


def test_a_run_whose_checkpoints_take_no_time(plan) -> None:
    one, assumed = _quoted(plan(text=POD), [50.0]), load_parts().assumptions
    wanted = {"step_time_s": 10.0, "tokens_per_step": 1000, "n_tokens": 10**8}
    none = training_run(one.bill, replace(assumed, checkpoint_s=0.0), **wanted)
    hardly = training_run(one.bill, replace(assumed, checkpoint_s=1e-6), **wanted)
    usual = training_run(one.bill, assumed, **wanted)
    assert none.interval_s == 0
    assert none.expected_s == pytest.approx(1e6 * math.exp(assumed.restart_s / none.mtbf_s))
    assert none.cost_usd == pytest.approx(hardly.cost_usd, rel=1e-4)
    assert none.cost_usd < hardly.cost_usd < usual.cost_usd


def test_checkpoints_without_work_between_them_never_end() -> None:
    terms = {"checkpoint_s": 60.0, "restart_s": 0.0}
    assert expected_time_s(1e6, interval_s=0.0, mtbf_s=1e4, **terms) == math.inf
    assert expected_time_s(1e6, interval_s=0.0, mtbf_s=math.inf, **terms) == math.inf
    assert expected_time_s(0.0, interval_s=10.0, mtbf_s=1e4, **terms) == 0


def test_a_hopeless_run_never_ends() -> None:
    terms = {"checkpoint_s": 60.0, "restart_s": 6000.0, "mtbf_s": 5.0}
    assert expected_time_s(1e6, interval_s=100.0, **terms) == math.inf


@pytest.mark.parametrize(
    ("topology", "bandwidths", "ratio", "expected_GBps"),
    [
        ("RI(8)", [100], 1, 2 * 50),
        ("RI(2)", [100], 1, 2 * 50),
        ("FC(4)", [90], 1, 4 * 30),
        ("FC(5)", [80], 1, 2 * 3 * 20),
        ("RI(4)_FC(4)", [100, 90], 1, 4 * 4 * 30),
        ("SW(32)", [50], 1, 16 * 50),
        ("SW(128)", [50], 4, 64 * 50 / 4),
        ("SW(64)", [50], 4, 32 * 50),  # One switch: nothing is oversubscribed.
    ],
)
def test_bisection(topology, bandwidths, ratio, expected_GBps) -> None:
    parsed = parse_topology(topology)
    settings = SwitchSettings(oversubscription=ratio)
    switches = tuple(settings if str(d).startswith("SW") else None for d in parsed.dimensions)
    design = realize(parsed, np.array(bandwidths) * 1e9, Realization(switches))
    assert bisection_Bps(design) == pytest.approx(expected_GBps * 1e9)


def test_prices_round_half_up_and_spares_up() -> None:
    assert [str(to_cents(x)) for x in (0.005, 0.015, 1.005, 2.675)] == [
        "0.01", "0.02", "1.01", "2.68",
    ]  # fmt: skip
    part = Part("p", "nic", "", Price(Decimal("0.10")), spare_fraction=0.07)
    assert Line("network", "", part, 100).n_spares == 7  # 0.07 * 100 is 7.000000000000001
    assert Line("network", "", part, 101).n_spares == 8
    assert Line("network", "", part, 0).n_spares == 0


_lines_of = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 500), st.sampled_from(["network", "storage"])),
    min_size=1,
    max_size=9,
)


@given(_lines_of, st.sampled_from([0.0, 0.01, 0.02, 0.03, 0.5]))
def test_spares_of_a_part_are_one_stock(lines: list[tuple[str, int, str]], share: float) -> None:
    """C22: its units of all lines together, rounded up once, on the first line of most units."""
    given_lines = [
        Line(group, "", Part(name, "nic", "", spare_fraction=share), n) for name, n, group in lines
    ]
    found = with_one_stock(given_lines)
    assert [line.n_units for line in found] == [n for _, n, _ in lines]
    for name in {name for name, *_ in lines}:
        own = [line for line in found if line.part.name == name]
        n_units = sum(line.n_units for line in own)
        spares = [line.n_spares for line in own]
        assert sum(spares) == math.ceil(Fraction(str(share)) * n_units)
        most = max(line.n_units for line in own)
        stands = next(line for line in own if line.n_units == most)
        assert stands.n_spares == sum(spares)
        alone = sum(line.n_spares for line in given_lines if line.part.name == name)
        assert sum(spares) <= alone


def test_a_medium_is_the_shortest_that_reaches() -> None:
    parts = load_parts().parts

    def medium(speed_Bps: float, length_m: float) -> Part:
        return choice(Need(MEDIA, speed_Bps, reach_m=length_m), parts, {}, {}).taken.part

    reached = {length: medium(50e9, length).name for length in (1, 3, 3.1, 30, 31, 500, 501)}
    assert reached == {
        1: "dac-400g", 3: "dac-400g", 3.1: "aoc-400g", 30: "aoc-400g", 31: "optic-400g-sr4",
        500: "optic-400g-dr4", 501: "optic-400g-fr4",
    }  # fmt: skip
    assert medium(50e9, 1e5).price is None
    assert medium(26e9, 1).name == "dac-400g"  # The next speed that is sold.
    none = choice(Need(("nic",), 50e9), Parts({}), {}, {}).taken
    assert none.part.name == "nic at 400 Gbit/s"


MONEY = st.integers(1, 10**9).map(lambda cents: cents / 100)


SHARE = st.floats(0, 1).map(lambda share: round(share, 6))


@given(st.lists(st.tuples(MONEY, SHARE, st.floats(0.1, 10)), min_size=2, max_size=5))
def test_the_ranking_changes_at_the_break_even_and_not_before(designs) -> None:
    totals = [total for total, _, _ in designs]
    parts = [Decimal(repr(total * share)) for total, share, _ in designs]
    weights = {
        "cheapest": np.ones(len(designs)),
        "best per dollar": np.array([time for _, _, time in designs]),
    }
    moves = Swing("p", None, tuple(parts), np.array(totals), weights, "ABCDE"[: len(designs)])
    found, _ = moves.break_even
    for name, times in weights.items():
        now = moves.best(name, 1.0)
        limit = 1.0 if found is None else abs(found - 1) * 0.999
        for side in np.linspace(-limit, limit, 21):
            factor = 1 + side
            costs = times * moves.costs_usd(factor)
            assert factor <= 0 or costs[now] <= min(costs) * (1 + 1e-9) + 1e-9


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=6))
def test_discounts_count_units_over_all_lines(counts) -> None:
    part = Part("p", "nic", "", Price(Decimal("19.99")))
    bill = Bill(tuple(Line("network", str(i), part, n) for i, n in enumerate(counts)))
    tiers = [VolumeDiscount(100, 0.03), VolumeDiscount(1000, 0.07)]
    share = 0.07 if sum(counts) >= 1000 else 0.03 if sum(counts) >= 100 else 0.0
    expected = sum(to_cents(n * 19.99 * (1 - share)) for n in counts)
    assert abs(discounted_usd(bill, tiers) - expected) <= Decimal("0.01") * len(counts)
