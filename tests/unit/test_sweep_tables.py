"""Tables of sweeps: groups of several columns, cells without a value, FIM of a dimension."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

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


def test_groups_tell_the_best_per_dollar_as_they_tell_the_fastest(run, directory) -> None:
    """Time, bill and axes of both rows, as the rows themselves say; a table for each."""
    results = lp.sweep_results(directory)
    [low, high] = results.grouped("nic").dicts()
    assert low["best_per_dollar_row"] != low["fastest_row"]
    for one in (low, high):
        row = results[one["best_per_dollar_row"]]
        for name in ("taper", "billed_step_time_s", "bill_usd"):
            assert one[f"per_dollar_{name}"] == row[name]
    shown = run("sweep", "show", directory, "--group-by", "nic").out
    first, second = shown.split("The best per dollar of each")
    assert "per dollar of each" not in first
    assert f"{low['per_dollar_billed_step_time_s']:.3f} s" in second
    assert f"${low['per_dollar_bill_usd'] / 1e6:.2f}M" in second
    assert "its taper" in second
    alike = run("sweep", "show", directory, "--group-by", "nic,taper").out
    assert "The best per dollar of each" not in alike  # Each group has one row.
    assert [x["nic"] for x in results.grouped("nic", where="nic > 25").dicts()] == [50]


def test_groups_in_a_narrow_terminal_keep_time_and_bill(run, directory, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = run("sweep", "show", directory, "--group-by", "nic").out
    best, per_dollar = shown.split("The best per dollar of each")
    for heading in ("best billed time", "its bill"):
        assert heading in best.split("No room for")[0]
    for heading in ("its billed time", "its bill"):
        assert heading in per_dollar.split("No room for")[0]


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


def test_what_comes_by_itself_is_refused_with_how_it_comes(run, tmp_path) -> None:
    """Columns of a search and of a check are no figures to ask for: the message says so, briefly."""
    for name, how in (("parallelism_found", "parallelism: auto"), ("fim_percent", "check")):
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump(SWEEP | {"columns": ["step_time_s", name]}))
        err = run("sweep", "plan", path).err
        assert f"got '{name}', which comes by itself with {how}; leave it out here" in err


def test_a_plan_of_a_sweep_tells_a_wrong_unit(run, tmp_path) -> None:
    """Rules in Gbps beside ports of eight times that: sweep plan says it before the run."""
    own = SWEEP["set"] | {"fabric.realization.port_speed": "{nic * 8} Gbps"}
    wrong = own | {"constraints": ["leaf == {nic} Gbps", "taper(spine) == {taper}"]}
    for settings, is_told in ((own, False), (wrong, True)):
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump(SWEEP | {"set": settings}))
        said = "bills buy more bandwidth than is asked for in " in run("sweep", "plan", path).err
        assert said == is_told


def test_a_directory_that_is_not_there_is_told_as_such() -> None:
    with pytest.raises(lp.errors.DataNotFound, match="nowhere: got no such directory"):
        lp.sweep_results("nowhere")


def test_list_prices_means_parts_and_price_books(run) -> None:
    """Prices stand in parts catalogues and price books, which no letter tells."""
    assert "did you mean parts or cost-models?" in run("list", "prices").err
