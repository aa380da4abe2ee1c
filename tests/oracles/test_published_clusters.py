"""Switches, cables and transceivers of published clusters, in their sources' way of counting."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from libra_planner.cli.main import main

ROWS = list(
    csv.DictReader(
        line
        for line in Path(__file__).with_name("published_clusters.csv").read_text().splitlines()
        if not line.startswith("#")
    )
)
FIGURES = list(ROWS[0])[3:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_printed_figure_is_met(
    row: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = row["arguments"].replace(";", ",").split()
    assert main(["fabric", *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    printed = {name: int(row[name]) for name in FIGURES if row[name]}
    assert printed
    assert {name: found[name] for name in printed} == printed
