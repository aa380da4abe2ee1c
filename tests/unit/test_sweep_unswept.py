"""What a sweep leaves out that may change its answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

PLAN = """\
workload: llama3-70b
parallelism: {tp: 2, cp: 2, dp: 128, pp: 2, interleave: 40, microbatch: 1, zero: 1, sequence_parallel: true}
global_batch: 1024
npu: b200-sxm
fidelity: calibrated
fabric:
  topology: SW(8)_[SW(32)_SW(4)]
  tiers: [node, leaf, spine]
  scale_up: nvlink5-8
cost_model: clos-2026
objective: performance
constraints: []
"""
SWEEP = {
    "base": "plan.yaml",
    "axes": {"nic": [25, 50], "taper": [1, 2]},
    "set": {
        "constraints": ["leaf == {nic} GB/s", "taper(spine) == {taper}"],
        "fabric.realization.port_speed": "{nic * 8} Gbps",
    },
    "columns": ["step_time_s", "cost_usd", "bandwidth", "bill_usd", "message"],
}


@pytest.fixture
def swept(run, tmp_path: Path):
    """Runs a sweep in a folder of its own, and gives its directory."""
    (tmp_path / "plan.yaml").write_text(PLAN)

    def of(name: str, sweep: dict) -> Path:
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(sweep))
        done = run("sweep", "run", tmp_path / f"{name}.yaml", "-o", tmp_path / name)
        assert done.code == 0, done.err
        return tmp_path / name

    return of


def _remarks(run, directory: Path) -> list[str]:
    return run("sweep", "show", directory, "--remarks").err.splitlines()


def test_a_cheaper_network_is_told_and_its_settings_work(run, swept) -> None:
    """Rails of one switch of 128 ports: what the remark says to write has the bills that it says.

    128 nodes of 8 need 8 such switches, in place of 32 leaves and their spines.
    """
    directory = swept("two", SWEEP)
    [told] = (x for x in _remarks(run, directory) if x.startswith("A cheaper network"))
    saved = {int(row): usd for row, usd in re.findall(r"row (\d+) costs .*? less \((.*?)\)", told)}
    assert {*saved} == {0, 1, 2, 3}
    text, without = re.search(r"under set: (\{.*\}), without .* (\w+)$", told).groups()
    own = SWEEP["set"] | yaml.safe_load(text)
    assert without == "taper"
    axes = {key: values for key, values in SWEEP["axes"].items() if key != without}
    query = "select nic, bill_usd, billed_step_time_s from designs"
    other = swept("other", SWEEP | {"axes": axes, "set": own})
    rows = run("sweep", "show", other, "--sql", query, "--json").payload["rows"]
    bills = {row["nic"]: f"${row['bill_usd'] / 1e6:.2f}M" for row in rows}
    assert [bills[25], bills[25], bills[50], bills[50]] == [saved[i] for i in range(4)]
    assert not [x for x in _remarks(run, other) if x.startswith("A cheaper network")]


def test_a_cheaper_network_may_change_which_row_is_best(run, swept) -> None:
    """Row 1 is the best per dollar; where both have rails without spines, row 0 is (1 % faster)."""
    directory = swept("two", SWEEP)
    told = run("sweep", "show", directory)
    assert "best per dollar and cheapest row 1" in told.out
    assert "may change which row is best" in told.err
    [text] = (x for x in _remarks(run, directory) if x.startswith("A cheaper network"))
    assert "Row 0 is then the best per dollar, before row 1" in text


def test_thin_tapers_hold_for_servers_next_to_each_other(run, swept) -> None:
    """The remark names the time at random places, and sweeping it as it says finds about that."""
    columns = ["step_time_s", "cost_usd", "bandwidth"]
    thin = {"axes": {"taper": [8]}, "base": "0e_rails_2to1", "columns": columns}
    thin |= {"set": {"constraints": ["leaf == 50 GB/s", "taper(spine) == {taper}"]}}
    check = {"check": {"policy": "ecmp", "seeds": 4}}
    [told] = (x for x in _remarks(run, swept("thin", thin | check)) if "next to each" in x)
    expected_s = float(re.search(r"expected to take ([\d.]+) s in row 0", told)[1])
    axis = yaml.safe_load(re.search(r"under axes (.*?\]), and", told)[1])
    both = swept("both", thin | check | {"axes": thin["axes"] | axis})
    query = "select effective_step_time_s as s from designs order by row"
    near, far = run("sweep", "show", both, "--sql", query, "--json").payload["rows"]
    assert far["s"] > 1.5 * near["s"]
    assert far["s"] == pytest.approx(expected_s, rel=0.05)
    assert not [x for x in _remarks(run, both) if "next to each" in x]


def test_a_card_has_the_time_on_links_beside_that_of_the_model(run, swept) -> None:
    """Without check: the page's card has the step that ECMP is expected to make."""
    directory = swept("two", SWEEP | {"axes": {"nic": [25], "taper": [1]}})
    page = directory.parent / "page.html"
    run("sweep", "show", directory, "--html", page)
    told = re.search(r"expected to take ([\d.]+ s) \(\+", "\n".join(_remarks(run, directory)))[1]
    cards = re.findall(r'<p class="figure">(.*?)</p>', page.read_text())
    assert cards
    assert all(f"on links about {told} (ECMP)" in card for card in cards)
