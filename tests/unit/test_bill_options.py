"""Plans with ``prices: bill``: the optimizer buys whole parts at the money of the report (C22)."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.check.links import link_check
from libra_planner.plan.problem import load_plan as plan_without_bills
from libra_planner.problem import bought
from libra_planner.reading.bundled import folder

EXAMPLE = folder("examples") / "0b_bill.yaml"
NICS, TAPERS, RADICES = ("1 x 200 Gbps", "1 x 400 Gbps", "2 x 400 Gbps"), (1, 2, 4), (64, 128)
LISTED = "fabric.bill_options={{nics: [{}], tapers: {{spine: [1, 2, 4]}}, switch_radix: [64, 128]}}".format(
    ", ".join(NICS)
)


def _total_usd(run, tmp_path: Path, design: str, *settings: str) -> float:
    flags = [word for one in settings for word in ("--set", one)]
    done = run("report", design, "-o", tmp_path / "r", "--formats", "csv", "--json", *flags)
    assert done.code == 0, done.err
    return float(done.payload["designs"][0]["total_usd"])


@pytest.mark.parametrize("objective", ["performance", "performance_per_cost", "cost"])
def test_the_optimum_is_the_best_of_a_report_per_option(run, tmp_path, objective: str) -> None:
    """The slow public path: a plan of one option each, its report and its step time."""
    found: dict[tuple[object, ...], tuple[float, float]] = {}
    for option in itertools.product(NICS, TAPERS, RADICES):
        nic, taper, radix = option
        one = f"fabric.bill_options={{nics: {nic}, tapers: {{spine: {taper}}}, switch_radix: {radix}}}"
        done = run("optimize", EXAMPLE, "--set", one, "--json")
        if done.code:
            assert "128 ports" in done.err or "up, " in done.err
            continue
        assert done.payload["bill"]["n_combinations"] == 1
        usd = _total_usd(run, tmp_path, str(EXAMPLE), one)
        assert done.payload["cost_usd"] == done.payload["bill"]["usd"] == usd
        found[option] = done.payload["step_time_s"], usd
    assert 12 < len(found) < 18
    worth = {
        "performance": lambda time, usd: (time, usd),
        "performance_per_cost": lambda time, usd: (time * usd, usd),
        "cost": lambda time, usd: (usd, time),
    }[objective]
    best = min(found.values(), key=lambda pair: worth(*pair))
    done = run("optimize", EXAMPLE, "--set", LISTED, "--set", f"objective={objective}", "--json")
    payload = done.payload
    assert (payload["step_time_s"], payload["cost_usd"]) == best
    assert payload["lower_bound"] == payload["objective"]
    assert payload["optimality_gap"] == 0
    assert payload["bill"]["n_combinations"] == len(found)
    assert len(payload["bill"]["left_out"]) == 18 - len(found)
    values = [one["objective"] for one in payload["bill"]["options"]]
    assert values == sorted(values)
    assert len(values) == len(found)


HAND = {
    50e9: {
        "NICs, 32 and 1 spare": 33 * 1499,
        "leaves, one a rail, and 1 spare": 9 * 69_760,
        "optics, 2 a cable, and 2 spares": 66 * 659,
    },
    100e9: {
        "NICs, 32 and 1 spare": 33 * 2248,
        "leaves, one a rail, and 1 spare": 9 * 89_600,
        "optics, 2 a cable, and 2 spares": 66 * 879,
    },
}
FIBRES = (32 + 2 * 4 + 1) * 116
SIDES = (2 * 4 + 1) * 1079 + (2 * 1 + 1) * 23_936 + (2 * 8 + 1) * 239
"""Frontend and storage: 4 servers with a NIC of 200 Gbit/s each on one switch, with one stock of
spares for both; fibres are those of the training network, too."""
COMPUTE = 33 * 27_500 + 5 * 37_200 + 5 * 5000
"""32 NPUs and 4 servers, each with a spare, and 5 racks."""


def test_bills_worked_by_hand() -> None:
    """4 servers of 8 NPUs, 8 rails of 4 NPUs: a switch each, no spines; spares rounded up."""
    settings = [
        "fabric.topology=SW(8)_SW(4)",
        'fabric.tiers=["node", "leaf"]',
        "parallelism={tp: 8, dp: 4}",
        "fabric.bill_options={nics: [1 x 400 Gbps, 1 x 800 Gbps], switch_radix: 64}",
        "global_batch=32",
    ]
    table = lp.load_plan(EXAMPLE, settings).prices.bills
    assert table is not None
    assert table.bandwidth_Bps[:, 1].tolist() == [50e9, 100e9]
    for option, usd in zip(table.options, table.usd, strict=True):
        network = sum(HAND[option.nic_Bps].values()) + FIBRES
        assert usd == network + SIDES + COMPUTE
    assert table.usd.tolist() == [1_929_639, 2_147_436]


def test_every_option_is_as_fast_on_its_links_as_in_the_model() -> None:
    """optimize and check agree on what a taper costs, packet by packet sprayed."""
    from libra_planner.routing.policy import Policy

    problem = lp.load_plan(EXAMPLE, ["fabric.bill_options.tapers={spine: [1, 2, 3, 7]}"])
    table = problem.prices.bills
    assert table is not None
    assert len(table.options) > 15
    for option in table.options:
        vector = np.array(option.bandwidth_Bps)
        own = bought(problem, vector)
        report = link_check(own, vector).report(Policy("spray"))
        model_s = float(problem.step_time.seconds(vector))
        assert report.spray_step_time_s == pytest.approx(model_s, rel=1e-9)
        assert report.design.bandwidth_Bps.tolist() == list(option.bandwidth_Bps)


def test_quotes_move_the_optimum_and_its_report_alike(run, tmp_path) -> None:
    (tmp_path / "q.csv").write_text("item,price,seller,date\nnic-800g,90000,Acme,2026-11-02\n")
    (tmp_path / "plan.yaml").write_text(EXAMPLE.read_text() + "quotes: q.csv\n")
    plain, quoted = (
        run("optimize", plan, "--json").payload for plan in (EXAMPLE, tmp_path / "plan.yaml")
    )
    assert plain["bill"]["chosen"]["nic_GBps"] == 100.0
    assert quoted["bill"]["chosen"]["nic_GBps"] == 50.0
    assert quoted["cost_usd"] == _total_usd(run, tmp_path, str(tmp_path / "plan.yaml"))


def test_check_report_and_evaluate_take_the_links_that_were_bought(run, tmp_path) -> None:
    """Two NICs of 400 Gbit/s stand beside one of 800, of the same bandwidth: links tell them."""
    options = "fabric.bill_options={nics: [2 x 400 Gbps], tapers: {spine: 4}, switch_radix: 128}"
    done = run("optimize", EXAMPLE, "--set", options, "--json")
    vector = ",".join(map(repr, done.payload["bandwidth_GBps"]))
    checked = run("check", EXAMPLE, "--set", options, "--json", "--policy", "spray").payload
    assert checked["effective_step_time_s"] == pytest.approx(done.payload["step_time_s"], rel=1e-9)
    assert checked["dimensions"][1]["n_nics"] == 2 * 2048
    assert checked["realized_GBps"] == done.payload["bandwidth_GBps"]
    again = run("evaluate", EXAMPLE, "--set", options, "--bandwidth", vector, "--json").payload
    assert again["cost_usd"] == done.payload["cost_usd"]
    result = tmp_path / "result.json"
    result.write_text(done.out)
    design = f"{EXAMPLE}@{result}"
    assert _total_usd(run, tmp_path, design, options) == done.payload["cost_usd"]
    other = run("evaluate", EXAMPLE, "--bandwidth", "450,50,20")
    assert other.code == 2
    assert "got 450,50,20 GB/s, expected one of the 18 options" in other.err
    assert "prices: linear" not in other.err  # It would refuse the options, then the objective.
    nearest = other.err.partition("write ")[2].partition(" ")[0]
    assert run("evaluate", EXAMPLE, "--bandwidth", nearest).code == 0


def test_the_frontier_is_the_options_that_none_beats(run) -> None:
    points = run("pareto", EXAMPLE, "--json").payload["points"]
    problem = lp.load_plan(EXAMPLE)
    table = problem.prices.bills
    assert table is not None
    times = problem.step_time.seconds(table.bandwidth_Bps)
    pairs = list(zip(table.usd.tolist(), times.tolist(), strict=True))
    best = {
        one
        for one in pairs
        if not any(o != one and o[0] <= one[0] and o[1] <= one[1] for o in pairs)
    }
    assert [(p["cost_usd"], p["step_time_s"]) for p in points] == sorted(best)
    assert {p["optimality_gap"] for p in points} == {0}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("cost <= 82 M$", lambda one: one["usd"] <= 82e6),
        ("taper(spine) <= 2", lambda one: one["tapers"]["dim3"] <= 2),
        ("step_time <= 7.5 s", lambda one: one["step_time_s"] <= 7.5),
        ("leaf <= 50 GB/s", lambda one: one["bandwidth_GBps"][1] <= 50),
    ],
)
def test_rules_hold_over_the_options(run, rule: str, holds) -> None:
    every = run("optimize", EXAMPLE, "--json").payload["bill"]["options"]
    done = run("optimize", EXAMPLE, "--json", "--set", f'constraints=["{rule}"]').payload
    kept = [one for one in every if holds(one)]
    assert 0 < len(kept) < len(every)
    assert [one["text"] for one in done["bill"]["options"]] == [one["text"] for one in kept]
    assert done["cost_usd"] == kept[0]["usd"]
    assert done["max_violation"] == 0


def test_all_that_a_bill_asks_for_is_said_at_once(run) -> None:
    """With the speed of the plan's own NICs in the fix."""
    rules = "constraints=[leaf <= 100 GB/s]"
    words = ("fixed_cost=1 M$", "fabric.bill_options=null", rules)
    done = run("optimize", EXAMPLE, *(word for one in words for word in ("--set", one)))
    assert done.code == 2
    fixed, leaf, spine = done.err.strip().splitlines()
    assert "got a fixed cost with prices: bill" in fixed
    assert "write nics: [1 x 800 Gbps] in fabric.bill_options" in leaf
    assert "write tapers: {spine: [1, 2]}" in spine


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        (['constraints=["cost <= 1 M$"]'], 3, "no option of fabric.bill_options, as built from"),
        (['constraints=["taper(spine) == 3"]'], 3, "whole links rarely hit a value"),
        (["fixed_cost=1 M$"], 2, "fixed_cost: got a fixed cost with prices: bill"),
        (["prices=quotes.csv"], 2, "write quotes: quotes.csv for a file of quotes"),
        (["prices=exact"], 2, "got 'exact', expected linear or bill"),
        (["prices=linear"], 2, "got bill_options at linear prices, expected prices: bill"),
        (['constraints=["cost >= 1 M$"]'], 2, "which is no upper bound of the cost"),
        (['fabric.link_options={leaf: ["50 GB/s"]}'], 2, "got link_options with prices: bill"),
        (["fabric.bill_options.nics=[]"], 2, "got 0 values"),
        (["fabric.bill_options.nics=400"], 2, "such as 2 x 400 Gbps"),
        (["fabric.bill_options.nics=2 x 400"], 2, "without a unit"),
        (["fabric.bill_options.nics=[400 Gbps, 1 x 400 Gbps]"], 2, "twice"),
        (["fabric.bill_options.tapers={spine: 0}"], 2, "2 means 2:1"),
        (["fabric.bill_options.tapers={leaf: 2}"], 2, "expected a further tier of a stack"),
        (["fabric.bill_options.tapers={spin: 2}"], 2, "spine"),
        (["fabric.bill_options.switch_radix=1"], 2, "expected ports from 2"),
        (["fabric.bill_options.tapers={}"], 2, "the bandwidth of dim3 (spine)"),
        (["fabric.bill_options={tapers: {spine: 2}}"], 2, "the bandwidth of dim2 (leaf)"),
        (["fabric.scale_up=null"], 2, "the bandwidth of dim1 (node)"),
        (["fabric.bill_options.nics=1 x 800 Gbps", "fabric.bill_options.switch_radix=128"], 2,
         "got no option that can be bought"),
        (["fabric.topology=SW(8)_SW(32)_SW(8)"], 2, "expected a further tier of a stack"),
    ],
)  # fmt: skip
def test_what_cannot_be_bought_says_why(run, settings: list[str], code: int, said: str) -> None:
    done = run("optimize", EXAMPLE, *(word for one in settings for word in ("--set", one)))
    assert done.code == code, done.err
    assert said in done.err
    assert "Traceback" not in done.err


def test_too_many_options_are_counted(run) -> None:
    tapers = ", ".join(str(1 + i / 10_000) for i in range(9000))
    setting = f"fabric.bill_options.tapers={{spine: [{tapers}]}}"
    nics = ", ".join(f"{n} x {s} Gbps" for n in range(1, 9) for s in (100, 200, 400, 800))
    done = run("optimize", EXAMPLE, "--set", setting, "--set", f"fabric.bill_options.nics=[{nics}]")
    assert done.code == 2
    assert "got 576,000 options (32 x 2 x 9000), expected at most 100,000" in done.err


def test_left_out_keys_are_those_of_the_plan(run) -> None:
    """Port speed, NICs and radix of realization, and the taper of a rule."""
    settings = (
        "fabric.bill_options=null",
        "fabric.realization={port_speed: 400 Gbps, nics: 1, switch_radix: 128}",
        'constraints=["taper(spine) == 2"]',
    )
    flags = [word for one in settings for word in ("--set", one)]
    bill = run("optimize", EXAMPLE, *flags, "--json").payload["bill"]
    chosen = bill["chosen"]
    assert bill["n_combinations"] == 1
    assert (chosen["n_nics"], chosen["nic_GBps"], chosen["switch_radix"]) == (1, 50.0, 128)
    assert chosen["tapers"] == {"dim3": 2.0}


def test_a_plan_without_bills_says_where_to_get_them() -> None:
    problem = plan_without_bills(EXAMPLE)
    with pytest.raises(lp.SpecError, match=r"read it by libra_planner\.load_plan"):
        lp.optimize(problem)


SWEEP = """\
base: plan.yaml
axes:
  fabric.bill_options.tapers.spine: [1, 2, 4]
  objective: [performance, cost]
columns: [step_time_s, cost_usd, bandwidth, bill_usd, bill_message]
"""


def test_a_sweep_over_bill_options_has_their_bills(run, tmp_path) -> None:
    (tmp_path / "plan.yaml").write_text(EXAMPLE.read_text())
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run")
    assert done.code == 0, done.err
    query = "select * from designs order by row"
    rows = run("sweep", "show", tmp_path / "run", "--sql", query, "--json").payload["rows"]
    assert len(rows) == 6
    for row in rows:
        assert row["cost_usd"] == row["bill_usd"]
        assert row["bill_message"] is None
    design = f"{tmp_path}/run:{rows[3]['row']}"
    assert _total_usd(run, tmp_path, design) == rows[3]["bill_usd"]


def test_a_taper_from_above_bounds_no_bandwidth(run) -> None:
    """At linear prices more uplinks are always faster; the message says what the rule does."""
    rules = 'constraints=["leaf <= 50 GB/s", "taper(spine) <= 2"]'
    done = run("optimize", folder("examples") / "08_rails.yaml", "--set", rules)
    assert done.code == 3
    assert "'taper(spine) <= 2' bounds it from below: a smaller taper is more" in done.err


def test_the_plan_and_its_results_say_that_a_bill_prices_them(run) -> None:
    payload = run("optimize", EXAMPLE, "--json").payload
    assert "priced by its bill" in payload["settings"]
    [points] = [run("pareto", EXAMPLE, "--json").payload["points"]]
    assert points[-1]["option"] == payload["bill"]["chosen"]["text"]
    low, high = payload["bill"]["usd_low"], payload["bill"]["usd_high"]
    assert low < payload["bill"]["usd"] < high
    assert sum(line["usd"] for line in payload["bill"]["lines"]) == payload["bill"]["usd"]


def test_tapers_that_are_the_same_links_are_one_design(run) -> None:
    """32 links down of a leaf and 11 up is 2.9:1, asked for as 3 or as 2.95."""
    nic = "fabric.bill_options.nics=1 x 400 Gbps"
    flags = ("--set", nic, "--set", "fabric.bill_options.switch_radix=64", "--json")
    tapers = "fabric.bill_options.tapers={spine: [2.95, 3]}"
    done = run("optimize", EXAMPLE, "--set", tapers, *flags).payload
    assert done["bill"]["n_combinations"] == 2
    assert done["unique"] is True
    assert done["bandwidth_GBps"][2] == 50 * 11 / 32


def test_what_to_buy_is_not_yet_checked(run) -> None:
    """As a report says of a design whose links nobody has routed."""
    text = run("optimize", "0b_bill").out
    assert "Its step time is not checked on its links: run check before you buy" in text
    # Racks and what else the network is not, in the words of a report's costs.
    beside = re.search(r"In it, beside the training network: (NPUs .*)\n", text)
    assert beside is not None
    assert re.search(r", servers \$\S+, racks \$\S+, storage \$\S+, frontend \$", beside[1])
    assert "not checked" not in run("optimize", "0e_rails_2to1").out


def test_a_routed_design_has_the_links_of_its_option() -> None:
    """The plan's own port_speed is of no option: 200 Gbit/s are routed as check routes them."""
    options = "fabric.bill_options={nics: 1 x 200 Gbps, tapers: {spine: 4}, switch_radix: 64}"
    ports = "fabric.realization={port_speed: 400 Gbps}"
    plans = [lp.load_plan(EXAMPLE, [options, *more]) for more in ([], [ports])]
    vector = plans[0].prices.bills.options[0].bandwidth_Bps
    plain, fixed = (link_check(plan, np.array(vector)) for plan in plans)
    assert fixed.design == plain.design
    times = [lp.routed_optimum(plan, lp.Policy(), seeds=[0]).best.check for plan in plans]
    assert times[0].effective_step_time_s.tolist() == times[1].effective_step_time_s.tolist()
    assert times[1].spray_step_time_s == pytest.approx(
        float(plans[1].step_time.seconds(np.array(vector))), rel=1e-9
    )


def test_links_that_bill_options_stand_in_place_of_are_named() -> None:
    """The options decide: 32 ports and 100 Gbit/s change no figure, and a note says so."""
    said = ["fabric.realization.switch_radix=32", "fabric.realization.port_speed=100Gbps"]
    plan, plain = (plan_without_bills(EXAMPLE, words) for words in (said, []))
    (note,) = (one for one in plan.text.notes if "bill_options" in one)
    words = "fabric.realization.port_speed and fabric.realization.switch_radix do not count"
    assert note == f"NICs and switches are those of bill_options: {words}; remove one of both"
    assert not any("bill_options" in one for one in plain.text.notes)
