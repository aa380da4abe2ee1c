"""Tables of sweeps: groups of several columns, cells without a value, FIM of a dimension."""

from __future__ import annotations

from pathlib import Path

import pytest

import libra_planner as lp

SWEEP = {
    "base": "0e_rails_2to1",
    "axes": {"nic": [25, 50], "taper": [1, 2], "radix": [64, 128]},
    "set": {
        "constraints": ["leaf == {nic} GB/s", "taper(spine) == {taper}"],
        "fabric.realization.port_speed": "{nic * 16} Gbps",
        "fabric.realization.switch_radix": "{radix}",
    },
    "columns": ["step_time_s", "cost_usd", "bandwidth", "bill_usd", "message"],
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("tables") / "run"
    lp.sweep(SWEEP, found)
    return found


def test_groups_of_two_columns_name_their_best_rows(run, directory) -> None:
    """Fastest, cheapest and best per dollar of each pair, as the rows themselves say."""
    show = ("sweep", "show", directory)
    grouped = run(*show, "--group-by", "nic,taper", "--json").payload["rows"]
    assert [(one["nic"], one["taper"]) for one in grouped] == [(25, 1), (25, 2), (50, 1), (50, 2)]
    every = run(*show, "--sql", "SELECT * FROM designs", "--json").payload["rows"]
    for one in grouped[:2]:  # Switches of 128 ports are not sold at 800 Gbit/s.
        own = [x for x in every if (x["nic"], x["taper"]) == (one["nic"], one["taper"])]
        cheapest = min(own, key=lambda x: x["bill_usd"])
        assert one["cheapest_row"] == cheapest["row"]
        product = min(own, key=lambda x: x["bill_usd"] * x["billed_step_time_s"])
        assert one["best_per_dollar_row"] == product["row"]
    [low, high] = run(*show, "--group-by", "nic", "--json").payload["rows"]
    assert low["cheapest_row"] != low["fastest_row"]
    assert [low["best_row"], high["best_row"]] == [low["fastest_row"], high["fastest_row"]]
    assert "fastest row" in run(*show, "--group-by", "nic,taper").out
    both = lp.sweep_results(directory).grouped(["nic", "taper"]).dicts()
    assert [x["cheapest_row"] for x in both] == [x["cheapest_row"] for x in grouped]


def test_a_row_without_a_message_has_no_letter(run, directory, monkeypatch) -> None:
    """A long message has a letter in a narrow terminal, and nothing stands for no message."""
    monkeypatch.setenv("COLUMNS", "60")
    shown = run("sweep", "show", directory, "--columns", "row,bill_message").out
    assert "message A: no price" in shown
    assert " A: -" not in shown
    [first] = (line for line in shown.splitlines() if line.split()[:1] == ["0"])
    assert first.split() == ["0"]


def test_avoidable_fim_names_its_dimension(run, tmp_path) -> None:
    """FIM of a row may be of another dimension than what is avoidable: the cell says which."""
    axes = {"fabric.realization.placement": ["random"], "taper": [1, 4]}
    own = SWEEP["set"] | {"constraints": ["leaf == 50 GB/s", "taper(spine) == {taper}"]}
    own |= {"fabric.realization.port_speed": "400 Gbps"}
    own.pop("fabric.realization.switch_radix")
    check = {"policy": "ecmp", "seeds": 1}
    lp.sweep(SWEEP | {"axes": axes, "set": own, "check": check}, tmp_path / "run")
    show = ("sweep", "show", tmp_path / "run")
    names = "row,fim_avoidable_percent,fim_avoidable_dimension"
    every = run(*show, "--columns", names, "--json").payload["rows"]
    assert {one["fim_avoidable_dimension"] for one in every} == {"dim2", "dim3"}
    for more in ((), ("--columns", "row,fim_avoidable_percent")):
        shown = run(*show, *more).out
        for one in every:
            told = f"{one['fim_avoidable_percent']:.2f} {one['fim_avoidable_dimension']}"
            assert told in shown
