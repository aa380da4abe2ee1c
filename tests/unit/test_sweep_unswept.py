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


@pytest.mark.parametrize("name", ["place", "fabric.realization.placement"])
def test_a_swept_placement_names_the_rows_that_have_it(run, swept, name: str) -> None:
    """Whatever the axis is called: measured times in place of expected ones, and how to rank."""
    sweep = {"base": "0e_rails_2to1", "axes": {name: ["contiguous", "random"]}}
    sweep |= {"columns": ["step_time_s", "cost_usd", "bandwidth"]}
    rules = {"constraints": ["leaf == 50 GB/s", "taper(spine) == 8"]}
    own = {"fabric.realization.placement": "{place}"} if name == "place" else {}
    sweep |= {"set": rules | own, "check": {"policy": "ecmp", "seeds": 2}}
    directory = swept("both", sweep)
    query = "select effective_step_time_s as s from designs order by row"
    near, far = run("sweep", "show", directory, "--sql", query, "--json").payload["rows"]
    told = "\n".join(_remarks(run, directory))
    assert f"at random places steps take {far['s']:.3f} s in row 1 (row 0, " in told
    assert f": {near['s']:.3f} s). " in told
    assert "To sweep it" not in told
    where = re.search(r'--where "(.*)" ranks the others', told)[1]  # As a reader types it.
    others = run("sweep", "show", directory, "--where", where)
    assert f"{far['s']:.3f} s" in others.out
    assert "at random places" not in others.err


def test_a_placement_that_is_swept_without_links_asks_for_a_check_alone(run, swept) -> None:
    """Without ``check`` both rows take the same: the remark still says what to expect."""
    sweep = {"base": "0e_rails_2to1", "axes": {"place": ["contiguous", "random"]}}
    sweep |= {"columns": ["step_time_s", "cost_usd", "bandwidth"]}
    rules = {"constraints": ["leaf == 50 GB/s", "taper(spine) == 8"]}
    sweep |= {"set": rules | {"fabric.realization.placement": "{place}"}}
    [told] = (x for x in _remarks(run, swept("both", sweep)) if "next to each" in x)
    assert "To sweep it, write check: {policy: ecmp}, and run" in told


def test_cheaper_networks_are_one_in_few_words(run, swept) -> None:
    """Rows of two sizes ask for two networks: all of both, and one short remark."""
    plan = SWEEP | {"axes": {"nic": [25, 50], "taper": [1], "n": [2, 4]}}
    own = {"fabric.topology": "SW(8)_[SW(32)_SW({n})]", "parallelism.dp": "{32 * n}"}
    directory = swept("two", plan | {"set": SWEEP["set"] | own})
    assert len([x for x in _remarks(run, directory) if x.startswith("A cheaper network")]) == 2
    assert run("sweep", "show", directory).err.count("a cheaper network") == 1


def test_rows_without_a_message_say_once_how_to_learn_why(run, swept, tmp_path: Path) -> None:
    """No column ``message``: the refusal does not say that the directory tells why."""
    columns = ["step_time_s", "cost_usd"]
    rules = {"constraints": [*SWEEP["set"]["constraints"], "total <= 10 GB/s"]}
    (tmp_path / "plan.yaml").write_text(PLAN)
    for more, says_why in ([], False), (["message"], True):
        sweep = SWEEP | {"set": SWEEP["set"] | rules, "columns": [*columns, *more]}
        file = tmp_path / f"none{len(more)}.yaml"
        file.write_text(yaml.safe_dump(sweep))
        failed = run("sweep", "run", file, "-o", file.with_suffix(""))
        assert failed.code
        assert failed.err.rstrip().endswith("has all rows, and why") is says_why
        how = "add message to columns and run the sweep into a new directory"
        assert (how in failed.err) is not says_why


def test_a_card_has_the_time_on_links_beside_that_of_the_model(run, swept) -> None:
    """Without check: the page's card has the step that ECMP is expected to make."""
    directory = swept("two", SWEEP | {"axes": {"nic": [25], "taper": [1]}})
    page = directory.parent / "page.html"
    run("sweep", "show", directory, "--html", page)
    told = re.search(r"expected to take ([\d.]+ s) \(\+", "\n".join(_remarks(run, directory)))[1]
    cards = re.findall(r'<p class="figure">(.*?)</p>', page.read_text())
    assert cards
    assert all(f"on links about {told} (ECMP)" in card for card in cards)
