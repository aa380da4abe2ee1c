"""Plans with purchasable speeds: what they say, what is refused, what is printed."""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import libra_planner as lp
from libra_planner.costs.prices import LinkOption
from libra_planner.errors import Infeasible, SolverFailed
from libra_planner.evaluation import evaluated, max_violation
from libra_planner.optimizer import catalogue
from libra_planner.optimizer.catalogue import (
    best_purchasable,
    optimize_catalogue,
)
from libra_planner.optimizer.optimize import with_own_optima
from libra_planner.problem import Rule
from libra_planner.views.bought.speeds import catalogue_lines, catalogue_payload
from libra_planner.views.cells import escape
from libra_planner.views.design import (
    design_blocks,
    evaluate_payload,
    optimize_payload,
)
from libra_planner.views.renderers.terminal import show
from tests.problems import changed

LISTED = """\
  tiers: [chiplet, package, node, pod]
  link_options:
    chiplet: [200 GB/s, 300 GB/s, 400 GB/s]
    dim2: [50 GB/s, 75 GB/s, 100 GB/s]
    node:
      - {speed: 25 GB/s, ports: 1..4}
    pod:
      - {speed: 100 Gbit/s, ports: 1..3, usd_per_port: 700, name: NIC-100}
      - {speed: 400 Gbit/s, ports: [1, 2], usd_per_npu: [1500, 2900.5]}
"""
TIERS = "  tiers: [chiplet, package, node, pod]\n"
ATMOST = ("total == 500 GB/s", "total <= 500 GB/s")


@pytest.fixture
def listed(plan):
    """The standard plan with purchasable speeds, and text replacements in that."""

    def write(*replacements: tuple[str, str], name: str = "plan.yaml"):
        return plan((TIERS, LISTED), ATMOST, *replacements, name=name)

    return write


def test_options_of_a_plan_by_hand(listed) -> None:
    """4,096 NPUs: an own price is paid by each, the price book's is 2 $ and 4 $ per GB/s."""
    chiplet, package, node, pod = lp.load_plan(listed()).options
    assert [o.bandwidth_bytes_per_s for o in chiplet] == [200e9, 300e9, 400e9]
    assert [o.cost_usd for o in chiplet] == pytest.approx([4096 * 2 * b for b in (200, 300, 400)])
    assert [o.cost_usd for o in package] == pytest.approx([4096 * 4 * b for b in (50, 75, 100)])
    assert [(o.speed_bytes_per_s, o.n_ports) for o in node] == [(25e9, n) for n in (1, 2, 3, 4)]
    assert [o.bandwidth_bytes_per_s for o in pod] == [12.5e9, 25e9, 37.5e9, 50e9, 100e9]
    assert [o.cost_usd / 4096 for o in pod] == [700, 1400, 2100, 1500, 2900.5]
    assert [str(o) for o in pod][2:4] == ["3 x 12.5 GB/s NIC-100", "1 x 50 GB/s"]
    assert [o.line for o in pod] == [11, 11, 11, 12, 12]


def test_a_plan_without_options_has_none(plan) -> None:
    for options in ("null", "{}"):
        assert lp.load_plan(plan(), [f"fabric.link_options={options}"]).options == ()
    problem = lp.load_plan(plan(), ["fabric.link_options.pod=[50 GB/s]"])
    assert problem.options[:3] == (None, None, None)
    assert problem.options[3][0].n_ports == 1


# (what replaces a text of the plan, pattern that stderr matches after the file's path)
FAULTS = {
    "no list": (
        ("chiplet: [200 GB/s, 300 GB/s, 400 GB/s]", "chiplet: 200 GB/s"),
        r":6:14: fabric.link_options.chiplet: got '200 GB/s', expected a list .*\[25 GB/s, 50",
    ),
    "no map": (("link_options:", "link_options: 3\n  x:"), r"link_options: got 3, expected a map"),
    "nothing": (("    chiplet: [", "    chiplet:\n    x: ["), r"chiplet: got nothing, expected a"),
    "empty": (("[200 GB/s, 300 GB/s, 400 GB/s]", "[]"), r":6:14: .*chiplet: got an empty list"),
    "unknown dimension": (("    pod:", "    pood:"), r":10:5: .*pood: got 'pood'.*mean pod\?"),
    "dim5": (("    dim2:", "    dim5:"), r":7:5: .*dim5: got 'dim5'.*known: dim1, dim2"),
    "twice": (("    dim2:", "    dim1:"), r":7:5: .*dim1: got 'dim1', whose options .*twice"),
    "shared tier": (("package, node, pod]", "node, node, pod]"), r"node: got the tier 'node', wh"),
    "bare number": (("[50 GB/s,", "[50,"), r":7:12: .*dim2.0.speed: got 50 without.*50 GB/s or 50"),
    "quoted number": (("[50 GB/s,", "['50',"), r"dim2.0.speed: got '50' without a unit.*write 50"),
    "bits or bytes": (("[50 GB/s,", "[50 Gb/s,"), r"got the unit 'Gb/s'.*GB/s for bytes or Gbit"),
    "unknown unit": (("[50 GB/s,", "[50 GBs,"), r"got the unit 'GBs'.*did you mean .*GB/s"),
    "time": (("[50 GB/s,", "[50 ms,"), r"dim2.0.speed: got '50 ms', a time, expected GB/s"),
    "zero": (("[50 GB/s,", "[0 GB/s,"), r"got '0 GB/s', expected a speed from 1000 to"),
    "negative": (("[50 GB/s,", "[-50 GB/s,"), r"got '-50 GB/s', expected a speed from 1000 to"),
    "huge": (("[50 GB/s,", "[5e300 GB/s,"), r"got '5e300 GB/s', expected a speed from"),
    "endless": (("[50 GB/s,", "[1e999 GB/s,"), r"got '1e999 GB/s', expected a speed from"),
    "nan": (("[50 GB/s,", "[.nan,"), r"dim2.0.speed: got nan, expected a speed with its unit"),
    "bool": (("[50 GB/s,", "[true,"), r"dim2.0.speed: got true, expected a speed with its unit"),
    "null": (("[50 GB/s,", "[null,"), r"dim2.0.speed: got nothing, expected a speed with"),
    "words": (("[50 GB/s,", "[fast,"), r"got 'fast', expected a speed.*write e.g. 400 Gbit/s"),
    "list in a list": (("[50 GB/s,", "[[50 GB/s],"), r"dim2.0: got a list, expected a speed or a"),
    "same twice": (("[50 GB/s, 75", "[75 GB/s, 75"), r":7:21: .*dim2.1: got 1 x 75 GB/s twice \(f"),
    "same in other units": (("400 Gbit/s, ports: [1", "12.5 GB/s, ports: [1"), r":12:9: .*twice"),
    "unknown key": (("usd_per_port", "usd_prt"), r":11:.*the unknown key 'usd_prt'.*usd_per_port"),
    "no speed": (("speed: 25 GB/s, ", ""), r":9:9: .*node.0.speed: got nothing, expected this key"),
    "no ports": (("1..4", "[]"), r"node.0.ports: got an empty list, expected port counts"),
    "backwards": (("1..4", "4..1"), r":9:33: .*ports: got '4..1', expected a range.*write 1..4"),
    "zero ports": (("1..4", "0..4"), r"node.0.ports: got 0, expected whole numbers of ports from"),
    "negative ports": (("1..4", "[-1]"), r"node.0.ports: got -1, expected whole numbers of ports"),
    "half ports": (("1..4", "1.5"), r"node.0.ports: got 1.5, expected whole numbers of ports"),
    "bool ports": (("1..4", "[true]"), r"node.0.ports: got true, expected whole numbers of ports"),
    "text ports": (("1..4", "1-4"), r"node.0.ports: got '1-4', expected .*1\.\.4"),
    "too many ports": (("1..4", "1..999999999"), r"ports: got 999999999, expected .*to 10,000"),
    "too many options": (
        ("- {speed: 25 GB/s, ports: 1..4}", "[{speed: 1 GB/s, ports: 1..9999}, 9 GB/s, 8.5 GB/s]"),
        r"node: got 10,00\d options or more, expected at most 10,000 for a dimension",
    ),
    "negative price": (("port: 700", "port: -7"), r"usd_per_port: got -7, expected at least 0"),
    "nan price": (("port: 700", "port: .nan"), r"usd_per_port: got nan, expected a finite number"),
    "bool price": (("port: 700", "port: true"), r"usd_per_port: got true, expected a number"),
    "text price": (("port: 700", "port: 700 $"), r"usd_per_port: got '700 \$', expected a number"),
    "nan volume price": (("[1500,", "[.nan,"), r"usd_per_npu: got nan, expected USD from 0"),
    "negative volume price": (("[1500,", "[-1,"), r"usd_per_npu: got -1, expected USD from 0"),
    "too few prices": (
        ("[1500, 2900.5]", "1500"),
        r":12:\d+: .*pod.1.usd_per_npu: got 1 prices, expected 2, one for each port count",
    ),
    "both prices": (("usd_per_npu", "usd_per_port: 3, usd_per_npu"), r"pod.1: got usd_per_port a"),
    "no name": (("name: NIC-100", "name: 3"), r"pod.0.name: got 3, expected text"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_in_a_catalogue(name: str, listed, run) -> None:
    replacement, pattern = FAULTS[name]
    path = listed(replacement)
    result = run("evaluate", path, "--bandwidth", "300,100,75,25")
    assert (result.code, result.out) == (2, "")
    for line in result.err.splitlines():
        assert line.startswith(f"{path}:"), line
    assert re.search(pattern, result.err), result.err


def test_faults_of_a_catalogue_come_with_all_others(listed, run) -> None:
    path = listed(("tp: 16", "tp: -1"), ("500 GB/s", "500"), ("1..4", "4..1"), ("[50 GB", "[0 GB"))
    lines = run("optimize", path).err.splitlines()
    assert len(lines) == 4
    for part in ("parallelism.tp", "constraints.0", "node.0.ports", "dim2.0.speed"):
        assert sum(part in line for line in lines) == 1, part


def test_evaluate_prices_what_can_be_bought_and_names_what_cannot(listed, run) -> None:
    """pod: 3 x 12.5 GB/s is 2,100 $ per NPU; 30 GB/s is 57.4 $ per GB/s by the price book."""
    result = run("evaluate", listed(), "--bandwidth", "300,100,75,37.5", "--json").payload
    assert result["feasible"] is False  # 512.5 GB/s in all.
    assert [broken["rule"] for broken in result["violated"]] == ["total <= 500 GB/s"]
    assert result["cost_usd_by_dimension"][3] == pytest.approx(4096 * 2100)
    assert result["cost_usd"] == pytest.approx(4096 * (600 + 400 + 300 + 2100))
    result = run("evaluate", listed(), "--bandwidth", "300,10,75,30", "--json").payload
    assert result["cost_usd_by_dimension"][3] == pytest.approx(4096 * 57.4 * 30)
    package, pod = result["violated"]
    assert package["rule"] == "dim2: not a purchasable speed, nearest 50 GB/s (1 x 50 GB/s)"
    assert (package["line"], package["by"], package["unit"]) == (7, 40, "GB/s")
    assert pod["rule"] == (
        "dim4: not a purchasable speed, nearest 25 GB/s (2 x 12.5 GB/s NIC-100) "
        "and 37.5 GB/s (3 x 12.5 GB/s NIC-100)"
    )
    assert (pod["line"], pod["by"]) == (11, 5)
    text = run("evaluate", listed(), "--bandwidth", "300,100,75,30").out
    assert "Breaks 1 of 1 rules; 1 speed cannot be bought" in text
    assert "Broken: dim4: not a purchasable speed, nearest 25 GB/s" in text
    text = run("evaluate", listed(), "--bandwidth", "300,100,50,30").out
    assert "Meets its only rule; 1 speed cannot be bought" in text


def test_rules_over_cost_use_the_options_prices(listed, run) -> None:
    """100 GB/s of pod is 2,900.5 $ per NPU where it can be bought, by the price book 5,740 $."""
    path = listed(("total <= 500 GB/s", "cost <= 20 M$\n  - 2 * cost >= 3 M$"))
    result = run("evaluate", path, "--bandwidth", "300,100,75,100", "--json").payload
    assert result["cost_usd"] == pytest.approx(4096 * (600 + 400 + 300 + 2900.5))
    assert result["feasible"] is True
    result = run("evaluate", path, "--bandwidth", "300,100,75,101", "--json").payload
    (cost, _) = result["violated"]
    assert cost["rule"] == "cost <= 20 M$"
    assert cost["by"] == pytest.approx(4096 * (600 + 400 + 300 + 57.4 * 101) - 20e6)


def test_the_cost_of_an_array_of_designs_is_that_of_each(listed) -> None:
    problem = changed(lp.load_plan(listed()), fixed_cost_usd=5e6)
    designs = np.random.default_rng(0).choice([12.5e9, 25e9, 50e9, 60e9, 200e9], (50, 4))
    each = [float(problem.cost_usd(design)) for design in designs]
    assert problem.cost_usd(designs).tolist() == each
    assert each[0] == pytest.approx(5e6 + problem.cost_usd_by_dim(designs[0]).sum())


def test_a_speed_two_ways_costs_what_the_cheaper_one_does(listed) -> None:
    path = listed(("[1, 2], usd_per_npu: [1500, 2900.5]", "1, usd_per_npu: 9000"), ("1..3", "1..4"))
    problem = lp.load_plan(path)
    design = best_purchasable(replace(problem, rules=()))
    assert len(problem.options[3]) == 5
    assert design.n_combinations == 3 * 3 * 4 * 4
    assert str(design.options[3]) == "2 x 12.5 GB/s NIC-100"
    bandwidth = np.array([200e9, 50e9, 25e9, 50e9])
    assert problem.cost_usd_by_dim(bandwidth)[3] == pytest.approx(4096 * 2800)


def test_twenty_options_in_four_dimensions_by_hand() -> None:
    """One pattern under a total: the ideal split is 340, 85, 55, 20 GB/s, all purchasable."""
    problem = lp.load_plan(lp.example("01_gpt3_4d"), ["constraints=[total <= 500 GB/s]"])
    steps = (20e9, 5e9, 5e9, 1e9)
    options = tuple(tuple(LinkOption(s * k, 1, 1.0) for k in range(1, 21)) for s in steps)
    design = best_purchasable(changed(problem, options=options))
    assert design.n_combinations == 160_000
    # dim1 carries 4 times dim2's bytes in the TP collectives; DP waits for dim2, 3 and 4.
    around = [
        np.array([340, b, c, d]) * 1e9
        for b in (80, 85, 90)
        for c in (50, 55, 60)
        for d in (18, 19, 20)
        if 340 + b + c + d <= 500
    ]
    assert design.bandwidth_bytes_per_s[0] == 340e9
    assert design.objective == float(problem.step_time.seconds(np.array(around)).min())
    assert design.lower_bound == design.objective
    assert design.optimality_gap == 0


def test_the_example(run) -> None:
    problem = lp.load_plan(lp.example("06_catalogue"))
    design = optimize_catalogue(problem, lp.optimize)
    assert design.bandwidth_GBps == [256, 100, 75, 25]
    assert [str(option) for option in design.options] == [
        "4 x 64 GB/s",
        "4 x 25 GB/s",
        "3 x 25 GB/s",
        "1 x 25 GB/s",
    ]
    assert design.unique
    assert design.continuous is not None
    assert design.continuous.objective == pytest.approx(0.7224117809, rel=1e-8)
    assert design.loss_vs_continuous == pytest.approx(0.7314454183 / 0.7224117809 - 1, abs=1e-8)


def test_what_is_printed(listed) -> None:
    problem = lp.load_plan(listed())
    design = optimize_catalogue(problem, lp.optimize)
    evaluation = evaluated(problem, design.bandwidth_bytes_per_s)
    payload = optimize_payload(problem, design, evaluation) | catalogue_payload(problem, design)
    assert payload["optimality_gap"] == 0
    assert payload["cost_usd"] == design.cost_usd
    figures = payload["catalogue"]
    assert figures.keys() == {
        "options", "n_combinations", "continuous", "no_continuous", "loss_vs_continuous",
    }  # fmt: skip
    assert figures["n_combinations"] == 3 * 3 * 4 * 5
    assert figures["options"][3] == {
        "dimension": "dim4",
        "bandwidth_GBps": 25.0,
        "speed_GBps": 12.5,
        "n_ports": 2,
        "cost_usd": 4096 * 1400.0,
        "name": "NIC-100",
    }
    assert figures["continuous"]["objective"] == pytest.approx(0.7224117809, rel=1e-8)
    assert figures["loss_vs_continuous"] == design.objective / design.continuous.objective - 1
    console = Console(width=200, file=io.StringIO())
    show(console, design_blocks(problem, evaluation, design))
    show(console, ["", *map(escape, catalogue_lines(problem, design))])
    text = console.file.getvalue()
    assert "dim4 2 x 12.5 GB/s NIC-100 ($5.73M)" in text
    assert f"Step time +{figures['loss_vs_continuous']:.2%} against the continuous opt" in text
    assert evaluate_payload(problem, evaluation)["feasible"] is True


def test_names_with_markup_are_printed_as_they_are(listed) -> None:
    problem = lp.load_plan(listed(("NIC-100", '"[red]x[/]"')))
    design = best_purchasable(problem)
    console = Console(width=300, file=io.StringIO())
    show(console, ["", *map(escape, catalogue_lines(problem, design))])
    assert "2 x 12.5 GB/s [red]x[/]" in console.file.getvalue()
    assert catalogue_lines(problem, design)[1].startswith("No continuous optimum to compare with")


CONFLICTS = {
    "a total that no sum hits": (
        ["total == 499 GB/s"],
        r":16:5: constraints: got a rule that no combination of purchasable speeds "
        r"\(fabric.link_options\) meets: 'total == 499 GB/s' \(line 16\); "
        r"write 'total <= 499 GB/s', since sums",
        1,
    ),
    "too little money": (["dim1 >= dim2", "cost <= 5 M$"], r"meets: 'cost <= 5 M\$'", 1),
    "two rules": (
        ["total <= 400 GB/s", "dim2 >= 60 GB/s", "pod >= 90 GB/s", "node >= 30 GB/s"],
        r"rules that .* meets together: .* loosen or remove one of them",
        4,
    ),
    "chain": (["total <= 900 GB/s", "80 GB/s <= dim2 <= 90 GB/s"], r"'80 GB/s <= dim2 <= 90", 1),
    "time": (["total <= 500 GB/s", "step_time <= 723 ms"], r"allow at least 72\d\.\d+ ms", 2),
    "no time at all": (["step_time <= 100 ms"], r"allow at least 7\d\d\.\d+ ms", 1),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_rules_that_nothing_purchasable_meets(name: str, listed) -> None:
    rules, pattern, n_named = CONFLICTS[name]
    path = listed(("total <= 500 GB/s", "\n  - ".join(rules)))
    problem = lp.load_plan(path)
    with pytest.raises(Infeasible) as caught:
        best_purchasable(problem)
    assert caught.value.exit_code == 3
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert re.search(pattern, message), message
    assert len(set(caught.value.conflict)) == n_named, message


def test_more_than_sixty_four_rules_can_conflict(listed) -> None:
    """The sets of broken rules no longer fit one word."""
    rules = ["total <= 900 GB/s", *(f"dim1 >= {200 + i} GB/s" for i in range(70)), "dim1 <= 1 TB/s"]
    clash = [*rules, "pod >= 40 GB/s", "total <= 300 GB/s"]
    problem = lp.load_plan(listed(("total <= 500 GB/s", "\n  - ".join(clash))))
    with pytest.raises(Infeasible) as caught:
        best_purchasable(problem)
    assert caught.value.conflict[-1] == "total <= 300 GB/s"
    assert len(caught.value.conflict) == 2


def test_without_a_price_a_rule_over_cost_still_counts_the_options(listed) -> None:
    """The factor of ``cost`` is known even where the price book's price is zero."""
    problem = lp.load_plan(listed(("total <= 500 GB/s", "2 * cost <= 30 M$")))
    free = changed(
        problem,
        price_usd_per_Bps=np.zeros(4),
        rules=tuple(replace(rule, coefficients=(0.0,) * 4) for rule in problem.rules),
    )
    assert [rule.cost_factor for rule in free.rules] == [2.0]
    design = best_purchasable(free)
    assert design.cost_usd <= 15e6
    assert max_violation(free, design.bandwidth_bytes_per_s) == 0
    assert max_violation(free, np.array([400e9, 100e9, 100e9, 100e9])) > 0.1


MIXED = "fabric.link_options={pod: [{speed: 12.5 GB/s, ports: 1..8, usd_per_port: 700}]}"


def test_a_purchasable_dimension_beside_continuous_ones(plan) -> None:
    """Against the plan that fixes the pod by a rule, speed by speed."""
    problem = lp.load_plan(plan(), [MIXED])
    design = optimize_catalogue(problem, lp.optimize)
    fixed = [f'constraints=["total == 500 GB/s", "pod == {12.5 * n} GB/s"]' for n in range(1, 9)]
    best = min(
        (lp.optimize(lp.load_plan(plan(), [rule])) for rule in fixed), key=lambda d: d.objective
    )
    assert design.objective == pytest.approx(best.objective, rel=1e-9)
    assert design.bandwidth_GBps == pytest.approx(best.bandwidth_GBps, rel=1e-6)
    assert design.options[:3] == (None, None, None)
    assert str(design.options[3]) == "2 x 12.5 GB/s"
    assert design.optimality_gap <= 1e-6
    network = 4096 * (2 * design.bandwidth_GBps[0] + 4 * sum(design.bandwidth_GBps[1:3]) + 1400)
    assert design.cost_usd == pytest.approx(network)
    assert "dim1 any bandwidth" in catalogue_lines(problem, design)[0]


def test_a_cost_rule_beside_continuous_dimensions_counts_the_option(plan) -> None:
    """8 M$ - 4,096 x 700 $ for one pod port are left for the rest; the book would take 2.94 M$."""
    problem = lp.load_plan(plan(("total == 500 GB/s", "cost <= 8 M$")), [MIXED])
    design = optimize_catalogue(problem, lp.optimize)
    assert str(design.options[3]) == "1 x 12.5 GB/s"
    assert design.cost_usd == pytest.approx(8e6, rel=1e-9)
    rest = 8e6 - 4096 * 700
    spent = design.bandwidth_bytes_per_s[:3] @ problem.price_usd_per_Bps[:3]
    assert spent == pytest.approx(rest, rel=1e-9)


def test_rules_that_conflict_beside_continuous_dimensions(plan) -> None:
    rules = (
        'constraints=["total <= 200 GB/s", "dim1 >= 50 GB/s", "pod >= 90 GB/s", "dim2 >= 60 GB/s"]'
    )
    problem = lp.load_plan(plan(), [MIXED, rules])
    with pytest.raises(Infeasible) as caught:
        optimize_catalogue(problem, lp.optimize)
    conflict = ("total <= 200 GB/s", "dim1 >= 50 GB/s", "pod >= 90 GB/s", "dim2 >= 60 GB/s")
    assert caught.value.conflict == conflict
    problem = lp.load_plan(
        plan(), [MIXED, rules.replace("60", "20"), "constraints.0=pod <= 9 GB/s"]
    )
    with pytest.raises(Infeasible) as caught:
        optimize_catalogue(problem, lp.optimize)
    assert caught.value.conflict == ("pod <= 9 GB/s",)


def test_a_huge_catalogue_is_branched(plan) -> None:
    """2.4e9 combinations are not evaluated one by one; the loss is below that of the step."""
    speeds = {"chiplet": (1.3, 300), "package": (1, 200), "node": (1, 200), "pod": (0.25, 200)}
    ports = (f"{tier}: [{{speed: {b} GB/s, ports: 1..{n}}}]" for tier, (b, n) in speeds.items())
    setting = f"fabric.link_options={{{', '.join(ports)}}}"
    problem = lp.load_plan(plan(ATMOST), [setting])
    design = optimize_catalogue(problem, lp.optimize)
    assert design.n_combinations == 2_400_000_000
    assert design.optimality_gap <= 1e-6
    assert 0 <= design.loss_vs_continuous < 1e-4
    # No neighbour under the rule is better.
    steps = np.array([1.3e9, 1e9, 1e9, 0.25e9])
    moves = np.array(np.meshgrid(*[[-2, -1, 0, 1, 2]] * 4)).reshape(4, -1).T
    near = design.bandwidth_bytes_per_s + moves * steps
    near = near[near.sum(axis=1) <= 500e9 * (1 + 1e-12)]
    assert problem.step_time.seconds(near).min() >= design.objective * (1 - 1e-12)


def test_what_cannot_be_ranked_is_refused(listed, monkeypatch) -> None:
    problem = lp.load_plan(listed())
    monkeypatch.setattr(catalogue, "MAX_COMBINATIONS", 100)
    with pytest.raises(SolverFailed, match=r"got 180 combinations, expected at most 100"):
        best_purchasable(problem)
    search = catalogue._Search(changed(problem, options=(*problem.options[:3], None)), 1)
    with pytest.raises(SolverFailed, match="1 continuous problems do not suffice"):
        search.run(lp.optimize)


def test_a_continuous_plan_without_an_optimum_leaves_nothing_to_compare(listed) -> None:
    problem = replace(lp.load_plan(listed()), rules=())
    design = optimize_catalogue(problem, lp.optimize)
    assert design.continuous is None
    assert design.loss_vs_continuous is None
    assert "no rule that bounds the bandwidth" in design.no_continuous
    assert design.bandwidth_GBps == [400, 100, 75, 25]  # More for dim3 and dim4 does not help.


def test_options_cheaper_than_the_price_book_can_beat_it(listed) -> None:
    problem = replace(lp.load_plan(listed()), objective="cost", rules=())
    cheap = tuple(tuple(replace(o, cost_usd=1.0) for o in one) for one in problem.options)
    rule = Rule("dim1 >= 250 GB/s", (1.0, 0.0, 0.0, 0.0), ">=", 250e9)
    design = best_purchasable(changed(problem, options=cheap, rules=(rule,)))
    assert design.bandwidth_GBps == [400, 100, 75, 25]  # All cost the same: the fastest,
    assert design.unique is False  # and of those the first.
    assert design.objective == 4


@pytest.mark.parametrize("group_objective", ["weighted", "relative", "worst_case"])
def test_a_group_is_ranked_by_its_own_objective(group_objective: str) -> None:
    """Own optima are those of the catalogue; against a loop over all combinations."""
    options = "[{speed: 20 GB/s, ports: [1, 2, 4, 8]}]"
    keys = ", ".join(f"dim{i}: {options}" for i in range(1, 5))
    problem = lp.load_plan(
        lp.example("03_group"),
        [
            f"fabric.link_options={{{keys}}}",
            'constraints=["total <= 400 GB/s"]',
            f"group_objective={group_objective}",
        ],
    )
    speeds = np.array(list(itertools.product([20e9, 40e9, 80e9, 160e9], repeat=4)))
    speeds = speeds[speeds.sum(axis=1) <= 400e9]
    times = np.array([member.step_time.seconds(speeds) for member in problem.members])
    weights = np.array([[member.weight] for member in problem.members])
    slowdown = times / times.min(axis=1, keepdims=True)
    values = {
        "weighted": (weights * times).sum(axis=0),
        "relative": (weights * slowdown).sum(axis=0),
        "worst_case": slowdown.max(axis=0),
    }[group_objective]
    design = best_purchasable(with_own_optima(problem))
    assert design.objective == pytest.approx(values.min(), rel=1e-12)
    assert (
        design.bandwidth_bytes_per_s.tolist() in speeds[values <= values.min() * 1.000001].tolist()
    )
    if group_objective != "weighted":
        with pytest.raises(lp.SpecError, match="own optima"):
            best_purchasable(problem)


def test_nothing_here_loads_a_solver() -> None:
    program = "import sys, libra_planner.optimizer.catalogue; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not {"cvxpy", "scipy", "clarabel"} & {
        name.split(".")[0] for name in result.stdout.split()
    }
