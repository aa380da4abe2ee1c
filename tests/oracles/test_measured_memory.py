"""Memory of an NPU against published peaks: torchtitan, NeMo, InternEvo."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from libra_planner.errors import SpecError
from libra_planner.inputs.training.memory import RunMemory, run_memory
from libra_planner.inputs.training.rows import parse_run
from libra_planner.step.bands import MEMORY_ERROR_FRACTION

FILE = Path(__file__).with_name("measured_memory.csv")
GIB = 2**30
"""What an "80 GB" NPU has 80 of."""
MEMORY_GIB = {"A800-80GB": 80, "H100": 80, "H200": 141}
NOT_SCORED = {
    "Llama2-7B": "no sequence and no microbatch; its time per token is that of 0.58 of the model",
    "Qwen3_235B_a22B": "no sequence and no microbatch",
}


class MeasuredPeak(NamedTuple):
    """A published peak with what the planner says."""

    row: dict[str, str]
    predicted: RunMemory
    measured_bytes: float

    @property
    def error(self) -> float:
        """Relative, above 0 where too much is predicted."""
        return float(self.predicted.memory.total_bytes) / self.measured_bytes - 1

    @property
    def publisher(self) -> str:
        """Of the measurement."""
        return self.row["source"].split()[0 if "/" in self.row["source"].split()[0] else 1]


def _peaks() -> Iterator[MeasuredPeak]:
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["model"] not in NOT_SCORED:
                found = run_memory(parse_run(row))
                yield MeasuredPeak(row, found, float(row["peak_memory_GB"]) * 1e9)


PEAKS = list(_peaks())
N_ROWS = 32


def mean_error(peaks: Sequence[MeasuredPeak]) -> float:
    """Mean absolute error."""
    return float(np.mean([abs(peak.error) for peak in peaks]))


@pytest.mark.parametrize(
    ("publisher", "n", "bar"),
    [
        ("pytorch/torchtitan", 14, 0.09),
        ("dgxc-benchmarking", 2, 0.05),
        ("InternLM/InternEvo", 10, 0.07),
    ],
)
def test_mean_errors_of_a_publisher(publisher: str, n: int, bar: float) -> None:
    peaks = [peak for peak in PEAKS if peak.publisher == publisher]
    assert len(peaks) == n
    assert mean_error(peaks) < bar


def test_the_mean_error_is_well_within_fifteen_percent() -> None:
    assert mean_error(PEAKS) < 0.07


def test_runs_that_ran_are_not_said_to_need_much_more_than_there_is() -> None:
    for peak in PEAKS:
        name = peak.row["gpu_type"]
        room = 96 if "96GB" in name else MEMORY_GIB[name.split(" (")[0]]
        assert peak.predicted.memory.total_bytes < 1.05 * room * GIB, peak.row


def test_a_microbatch_of_unknown_tokens_is_refused() -> None:
    with FILE.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] in NOT_SCORED]
    assert len(rows) == N_ROWS - len(PEAKS)
    for row in rows:
        with pytest.raises(SpecError, match="neither sequence length nor microbatch"):
            run_memory(parse_run(row))


def test_what_a_source_leaves_open_is_said() -> None:
    [first, *_] = [peak for peak in PEAKS if peak.publisher == "InternLM/InternEvo"]
    assert first.predicted.notes == ("sequence 2048, the model's", "4 microbatches")
    pipelines = [peak for peak in PEAKS if peak.row["model"] == "Llama-3.1-405B"]
    notes = {peak.predicted.notes for peak in pipelines}
    said = "microbatches of 4, of a rank's batch split over 8 stages"
    assert any(said in one for one in notes)


def test_what_is_said_of_tight_memory_is_the_mean_error() -> None:
    assert mean_error(PEAKS) == pytest.approx(MEMORY_ERROR_FRACTION, abs=0.005)
