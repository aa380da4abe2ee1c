"""Every collective that ASTRA-sim was run on, to the nanosecond (figures only, see the file)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import parse_topology
from libra_planner.step.collectives.algorithms import Network, flow_shop
from libra_planner.workload.operations import Collective, CollectiveKind, Group

FILE = Path(__file__).parent / "astra_collectives.csv"
LINES = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
ROWS = list(csv.DictReader(LINES))
KINDS = {"AR": "all-reduce", "RS": "reduce-scatter", "AG": "all-gather", "A2A": "all-to-all"}
ALGORITHMS = {"halvingDoubling": "halving_doubling"}


def _time_s(row: dict[str, str], *, defaults: bool = False) -> float:
    topology = parse_topology(row["topology"])
    names = [ALGORITHMS.get(name, name) for name in row["impl"].split()]
    algorithms = tuple(None if defaults else Algorithm(name) for name in names)
    latency_s = (float(row["latency_ns"]) * 1e-9,) * topology.n_dims
    run = flow_shop(
        Collective(CollectiveKind(KINDS[row["collective"]]), float(row["full_vector_bytes"]), "dp"),
        Group(topology.sizes, (1,) * topology.n_dims),
        Network(topology, latency_s, algorithms),
        [float(value) * 1e9 for value in row["bandwidth_GBps_per_npu"].split()],
        n_chunks=int(row["chunks"]),
        clock_ns=1.0,
    )
    return run.time_s


def test_the_file_is_whole() -> None:
    assert len(ROWS) == 420
    assert {row["collective"] for row in ROWS} == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_to_the_nanosecond(kind: str) -> None:
    for row in ROWS:
        if row["collective"] == kind:
            assert _time_s(row) * 1e9 == pytest.approx(float(row["astra_sim_ns"]), abs=1e-5), row


def test_the_default_algorithms_are_those_of_the_runs() -> None:
    for row in ROWS:
        assert _time_s(row, defaults=True) == _time_s(row)
