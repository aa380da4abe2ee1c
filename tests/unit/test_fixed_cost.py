"""System cost: the network and what no bandwidth changes, by hand-worked figures (C8)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.fabric.topology import parse_topology
from libra_planner.problem import Rule
from libra_planner.reading.bundled import folder, names
from libra_planner.reading.models import usd
from libra_planner.reading.rules import parse_rule, rule_names

VECTOR = "300,100,75,25"
# 4096 NPUs, 2 $ x 300 + 4 $ x 100 + 4 $ x 75 + (7.8 + 18 + 31.6) $ x 25 = 2735 $ each.
NETWORK_USD = 4096 * 2735.0
EQUAL_USD = 4096 * 125 * 67.4

CATALOGUE = """\
kind: npu_catalogue
source: test
as_of: "2026"
npus:
  sure:
    vendor_name: A
    peak_TFLOPps: {bf16: 100}
    memory_GB: 80
    source: test
    price: {usd: 1000, confidence: published, as_of: "2026-01", source: the vendor's price list}
  quoted:
    vendor_name: B
    peak_TFLOPps: {bf16: 100}
    memory_GB: 80
    source: test
    price: {usd: 2000, confidence: quoted, as_of: "2026-02", source: a reseller}
  free:
    vendor_name: C
    peak_TFLOPps: {bf16: 100}
    memory_GB: 80
    source: test
"""


def _evaluate(run, path: Path, *settings: str) -> dict:
    arguments = [part for setting in settings for part in ("--set", setting)]
    result = run("evaluate", path, "--bandwidth", VECTOR, "--json", *arguments)
    assert result.code == 0, result.err
    return result.payload


@pytest.mark.parametrize(
    ("text", "expected_usd"),
    [
        ("120 M$", 120e6),
        ("0 $", 0.0),
        ("5 USD", 5.0),
        ("{rest: 20 M$}", 20e6),
        ("{per_npu: 3 k$}", 4096 * 3e3),
        ("{npu: h100-sxm}", 4096 * 27500.0),
        ("{npu: h100-sxm, rest: 20 M$, per_npu: 3 k$}", 4096 * 30500.0 + 20e6),
    ],
)
def test_cost_is_network_cost_plus_fixed_cost(text: str, expected_usd: float, plan, run) -> None:
    payload = _evaluate(run, plan(), f"fixed_cost={text}")
    assert payload["fixed_cost_usd"] == pytest.approx(expected_usd, rel=1e-15)
    assert payload["network_cost_usd"] == pytest.approx(NETWORK_USD, rel=1e-15)
    assert payload["cost_usd"] == pytest.approx(NETWORK_USD + expected_usd, rel=1e-15)
    assert sum(payload["cost_usd_by_dimension"]) == pytest.approx(NETWORK_USD, rel=1e-15)
    assert payload["equal_bandwidth"]["cost_usd"] == pytest.approx(EQUAL_USD + expected_usd)


def test_without_fixed_cost_cost_is_network_cost(plan, run) -> None:
    payload = _evaluate(run, plan())
    assert payload["cost_usd"] == payload["network_cost_usd"] == pytest.approx(NETWORK_USD)
    assert payload["fixed_cost_usd"] == 0


def test_performance_per_cost_is_that_of_the_system(plan, run) -> None:
    payload = _evaluate(run, plan(), "fixed_cost=30 M$")
    equal = payload["equal_bandwidth"]
    gain = payload["speedup_vs_equal"] * (EQUAL_USD + 30e6) / (NETWORK_USD + 30e6)
    assert payload["perf_per_cost_vs_equal"] == pytest.approx(gain, rel=1e-12)
    assert equal["cost_usd"] == pytest.approx(EQUAL_USD + 30e6)


@pytest.mark.parametrize("fixed", ["0 $", "30 M$"])
def test_objective_values(fixed: str, plan, run) -> None:
    """Step time, step time x cost, and cost (C8, C9), on terminals too."""
    path = plan()
    values = {
        name: _evaluate(run, path, f"objective={name}", f"fixed_cost={fixed}")["objective"]
        for name in ("performance", "performance_per_cost", "cost")
    }
    cost_usd = NETWORK_USD + usd(fixed)
    assert values["performance"] == pytest.approx(0.725217, abs=1e-6)
    assert values["cost"] == pytest.approx(cost_usd, rel=1e-15)
    assert values["performance_per_cost"] == pytest.approx(values["performance"] * cost_usd)
    fixed = f"fixed_cost={fixed}"
    ratio = run("evaluate", path, "--bandwidth", VECTOR, "--set", fixed, "--set",
                "objective=performance_per_cost").out  # fmt: skip
    shown = f"${values['performance_per_cost'] / 1e6:.2f}M s (step time x cost)"
    assert f"Objective performance_per_cost: {shown}" in ratio


def test_terminal_shows_both_costs_and_shares_of_the_network(plan, run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = plan()
    plain = run("evaluate", path, "--bandwidth", VECTOR).out
    with_fixed = run("evaluate", path, "--bandwidth", VECTOR, "--set", "fixed_cost=30 M$").out
    assert "network cost $11.20M\n" in plain
    assert "network cost $11.20M, system cost $41.20M\n" in with_fixed
    assert "fixed cost $30.00M" in with_fixed
    # dim4: 57.4 x 25 of 2735 dollars per NPU, with or without what else the system costs.
    assert f"{57.4 * 25 / 2735:.1%}" in with_fixed
    assert "$34.51M)" in plain
    assert "$64.51M system cost)" in with_fixed


def test_an_equal_split_of_the_same_cost_leaves_the_fixed_cost_alone(
    plan, run, monkeypatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    breaks_equal = ("total == 500 GB/s", "total == 500 GB/s\n  - dim1 >= 300 GB/s")
    path = plan(breaks_equal)
    for fixed in ("0 $", "30 M$"):
        out = run("evaluate", path, "--bandwidth", VECTOR, "--set", f"fixed_cost={fixed}").out
        # 2735 dollars of network per NPU over 67.4 dollars per GB/s of all four dimensions.
        assert f"equal bandwidth at the same network cost ({2735 / 67.4:.2f} GB/s each" in out


@pytest.mark.parametrize(
    ("limit", "by_usd"), [("41.3 M$", None), ("40 M$", 1202560.0), ("20 M$", 21202560.0)]
)
def test_cost_rules_bound_system_cost(limit: str, by_usd: float | None, plan, run) -> None:
    path = plan(("total == 500 GB/s", f"cost <= {limit}"))
    payload = _evaluate(run, path, "fixed_cost=30 M$")
    if by_usd is None:
        assert payload["violated"] == []
        return
    (broken,) = payload["violated"]
    assert broken["rule"] == f"cost <= {limit}"
    assert broken["line"] == 8
    assert broken["unit"] == "$"
    assert broken["by"] == pytest.approx(by_usd, rel=1e-9)


def test_cost_rules_as_rows() -> None:
    names_ = rule_names(parse_topology("RI(4)_SW(8)", ["node", "pod"]), np.array([2.0, 3.0]), 10.0)
    cases = {
        "cost <= 30 $": Rule("", (2.0, 3.0), "<=", 20.0, "$", 1.0),
        # Both sides change sign: -2 B1 - 3 B2 >= 5 cannot hold.
        "cost <= 5 $": Rule("", (-2.0, -3.0), ">=", 5.0, "$", 1.0),
        "cost >= 5 $": Rule("", (-2.0, -3.0), "<=", 5.0, "$", 1.0),
        "2 * cost <= 30 $": Rule("", (4.0, 6.0), "<=", 10.0, "$", 1.0),
        "30 $ >= cost": Rule("", (2.0, 3.0), "<=", 20.0, "$", 1.0),
        "2 * cost - cost <= 30 $": Rule("", (2.0, 3.0), "<=", 20.0, "$", 1.0),
        "cost == 10 $": Rule("", (2.0, 3.0), "==", 0.0, "$", 1.0),
    }
    for text, expected in cases.items():
        (rule,) = parse_rule(text, names_)
        assert isinstance(rule, Rule)
        assert (rule.coefficients, rule.sense, rule.bound, rule.unit) == (
            expected.coefficients, expected.sense, expected.bound, expected.unit,
        ), text  # fmt: skip
        assert rule.text == text


def test_a_bound_below_the_fixed_cost_is_infeasible(plan, run) -> None:
    path = plan(("total == 500 GB/s", "total <= 500 GB/s\n  - cost <= 20 M$"))
    result = run("optimize", path, "--set", "fixed_cost=30 M$")
    assert result.code == 3
    assert "cost <= 20 M$" in result.err
    assert run("optimize", path, "--set", "fixed_cost=19.9 M$").code == 0


def test_an_optimum_under_a_system_cost_bound(plan, run) -> None:
    """The same design as under the network's share of the bound."""
    rules = ("total == 500 GB/s", "total <= 500 GB/s\n  - cost <= 8 M$")
    network = run("optimize", plan(rules), "--json").payload
    shifted = (rules[0], rules[1].replace("8 M$", "38 M$"))
    system = run("optimize", plan(shifted), "--set", "fixed_cost=30 M$", "--json").payload
    assert system["cost_usd"] == pytest.approx(38e6, rel=1e-9)
    assert system["network_cost_usd"] == pytest.approx(8e6, rel=1e-9)
    assert np.allclose(system["bandwidth_GBps"], network["bandwidth_GBps"], rtol=1e-9)


def test_own_catalogue_and_how_sure_its_prices_are(plan, tmp_path: Path) -> None:
    (tmp_path / "npus.yaml").write_text(CATALOGUE)
    own = "fixed_cost={{npu: {}, catalogue: ./npus.yaml}}"
    sure = lp.load_plan(plan(), own.format("sure"))
    assert sure.fixed_cost_usd == 4096 * 1000
    assert not any("NPU price" in note for note in sure.text.notes)
    quoted = lp.load_plan(plan(), own.format("quoted"))
    assert "quoted NPU price: $2.00k for quoted (2026-02); source: a reseller" in quoted.text.notes
    bundled = lp.load_plan(plan(), "fixed_cost={npu: h100-sxm}")
    assert any(
        note.startswith("assumed NPU price: $27.50k for h100-sxm") for note in bundled.text.notes
    )


def test_the_catalogue_is_no_price_book_and_says_how_sure_it_is(run) -> None:
    assert names("cost-models") == ["clos-2026", "libra-ispass24"]
    assert names("npu-catalogues") == ["npus"]
    assert "npus" not in run("list", "cost-models").out
    assert "npus" in json.loads(run("list", "npu-catalogues", "--json").out)["npu-catalogues"]
    text = (folder("npu-catalogues") / "npus.yaml").read_text()
    assert text.count("      usd:") == text.count("confidence: assumed") == 8
    assert run("schema", "npu-catalogue").payload["title"] == "NpuCatalogueSpec"


FAULTS = {
    "20": r"fixed_cost: got 20 without a unit, .*; write 20 \$ or 20 M\$",
    "-20": r"fixed_cost: got -20 without a unit, .*; write e.g. 20 M\$",
    ".nan": r"fixed_cost: got nan without a unit",
    ".inf": r"fixed_cost: got inf without a unit",
    "true": r"fixed_cost: got true, expected an amount of money",
    "[1 $]": r"fixed_cost: got a list, expected an amount of money",
    "-3 M$": r"fixed_cost: got '-3 M\$', expected .* 0 or more",
    "nan M$": r"fixed_cost: got 'nan M\$'",
    "1e999 $": r"fixed_cost: got '1e999 \$', expected 0 or 0.001 to 1e\+18 USD",
    "20 GB/s": r"fixed_cost: got a bandwidth, '20 GB/s', .*write e.g. 20 M\$",
    "20 m$": r"fixed_cost: got the unit 'm\$' in '20 m\$', .*did you mean M\$\?",
    "$20M": r"fixed_cost: got '\$20M', .*write the unit after the number",
    "{}": r"fixed_cost: got no cost, expected npu, per_npu or rest",
    "{npus: h100-sxm}": r"fixed_cost.npus: got the unknown key 'npus', .*did you mean npu\?",
    "{rest: 5}": r"fixed_cost.rest: got 5 without a unit",
    "{per_npu: 3 GB/s}": r"fixed_cost.per_npu: got a bandwidth",
    "{npu: h100-sxn}": r"fixed_cost.npu: got 'h100-sxn', .*catalogue npus; did you mean h100-sxm\?",
    "{npu: tpu-v5p}": r"fixed_cost.npu: got 'tpu-v5p', .*with a price.*per_npu",
    "{npu: ./npus.yaml}": r"fixed_cost.npu: got the path '.*'catalogue: ./npus.yaml'",
    "{npu: a, catalogue: ./no.yaml}": r"fixed_cost.catalogue: got no such file \(.*no.yaml\)",
    "{npu: a, catalogue: npu}": r"fixed_cost.catalogue: got 'npu', .*did you mean npus\?",
    "{npu: a, catalogue: libra-ispass24}": r"catalogue: got 'libra-ispass24', .*NPU catalogue",
    "{rest: 5 $, catalogue: npus}": r"fixed_cost: got a catalogue without npu",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_of_fixed_costs(text: str, plan, run) -> None:
    path = plan(("constraints:", f"fixed_cost: {text}\nconstraints:"))
    result = run("evaluate", path, "--bandwidth", VECTOR)
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert line.startswith(f"{path}:7:")
    assert re.search(FAULTS[text], line), line


def test_faults_of_catalogues(plan, tmp_path: Path, run) -> None:
    path = plan(("constraints:", "fixed_cost: {npu: sure, catalogue: ./c.yaml}\nconstraints:"))
    cases = {
        ("usd: 1000", "usd: -1"): r"c.yaml:10:18: npus.sure.price.usd: got -1, expected at least 0",
        ("usd: 1000", "usd: 0"): r"npus.sure.price.usd: got 0, expected more than 0",
        ("usd: 1000", "usd: .nan"): r"npus.sure.price.usd: got nan",
        ("published", "sure"): r"price.confidence: got 'sure', expected 'published', 'quoted' or",
        ("memory_GB: 80", "memory: 80"): r"npus.sure.memory: got the unknown key .*memory_GB",
        ("{bf16: 100}", "{}"): r"npus.sure.peak_TFLOPps: got a map, expected at least 1 entries",
        ("npu_catalogue", "price_book"): r"c.yaml:1:7: kind: got 'price_book'",
    }
    for (old, new), pattern in cases.items():
        (tmp_path / "c.yaml").write_text(CATALOGUE.replace(old, new, 1))
        result = run("evaluate", path, "--bandwidth", VECTOR)
        assert result.code == 2
        assert re.search(pattern, result.err), result.err


def test_a_catalogue_given_as_price_book_is_refused(plan, run) -> None:
    by_name = run("optimize", plan(("libra-ispass24", "npus")))
    assert by_name.code == 2
    assert "expected a bundled price book" in by_name.err
    file = folder("npu-catalogues") / "npus.yaml"
    by_path = run("optimize", plan(("libra-ispass24", str(file))))
    assert by_path.code == 2
    assert "kind: got 'npu_catalogue', expected 'price_book'" in by_path.err


def test_an_npu_by_name_brings_its_peak(plan, run) -> None:
    """GPT-3's compute scales with the peak: 684.448242 ms at 30 x 2^40 MAC/s."""
    for setting, flops in (
        ("{name: h100-sxm, efficiency_fraction: 0.4}", 989.4e12 * 0.4),
        ("{name: h100-sxm, efficiency_fraction: 0.2, data_type: fp8}", 1978.9e12 * 0.2),
        ("{peak_TFLOPps: 312, efficiency_fraction: 0.5}", 312e12 * 0.5),
    ):
        payload = _evaluate(run, plan(), f"npu={setting}")
        expected_s = 0.684448242 * 30 * 2**40 * 2 / flops
        assert payload["compute_time_s"] == pytest.approx(expected_s, rel=1e-6)
    named = lp.load_plan(plan(), "npu={name: h100-sxm, efficiency_fraction: 0.4}")
    assert "compute at 40% of 989.4 TFLOP/s per NPU (h100-sxm, bf16)" in named.settings


NPU_FAULTS = {
    "{name: h100-sxn, efficiency_fraction: 0.4}": r"npu.name: got 'h100-sxn', .*mean h100-sxm\?",
    "{name: h100-sxm, efficiency_fraction: 0.4, data_type: fp4}": r"npu.data_type: got 'fp4'",
    "{name: h100-sxm}": r"npu: got h100-sxm without efficiency_fraction .* part of a step",
    "{name: h100-sxm, efficiency_fraction: 40}": r"npu.efficiency_fraction: got 40, .*at most 1",
    "{name: ./n.yaml, efficiency_fraction: 0.4}": r"npu.name: got the path './n.yaml'",
    "{name: a, efficiency_fraction: 0.4, catalogue: ./no.yaml}": r"npu.catalogue: got no such file",
    "{name: h100-sxm, efficiency_fraction: 0.4, peak_TFLOPps: 3}": (
        r"npu.peak_TFLOPps: got 'peak_TFLOPps' beside keys of another form"
    ),
    "{efficiency_fraction: 0.4}": r"npu.peak_TFLOPps: got nothing",
}


@pytest.mark.parametrize("text", NPU_FAULTS)
def test_faults_of_npus(text: str, plan, run) -> None:
    path = plan(("constraints:", f"npu: {text}\nconstraints:"))
    result = run("evaluate", path, "--bandwidth", VECTOR)
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert line.startswith(f"{path}:7:")
    assert re.search(NPU_FAULTS[text], line), line
