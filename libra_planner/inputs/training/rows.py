"""Training runs: from texts of flags or cells of a table to numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.reading.tables import csv_rows, repeated_columns

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_MOST = 10**15
_BLANKS = ("na", "n/a", "none", "nan", "null", "-", "?")
"""Words of tables for a number that is not given."""


@dataclass(frozen=True)
class TrainingRun:
    """One run as its source tells it; ``None`` and empty texts stand for what it does not say.

    Names are those of the columns. Degrees and batch are counts; ``global_batch`` and
    ``microbatch`` are sequences.
    """

    model: str = ""
    gpu_type: str = ""
    gpus: int | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    ffn: int | None = None
    moe_ffn: int | None = None
    experts: int | None = None
    topk: int | None = None
    seq: int | None = None
    vocab: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None
    etp: int | None = None
    vp_interleave: int | None = None
    fsdp_shard: int | None = None
    microbatch: int | None = None
    global_batch: int | None = None
    grad_accum: int | None = None
    recompute: str = ""
    precision: str = ""
    zero: str = ""
    parallel_style: str = ""
    schedule: str = ""
    fabric: str = ""
    sequence_parallel: str = ""
    notes: str = ""
    seconds_per_iteration: float | None = None
    tokens_per_s_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    tflops_kind: str = ""
    peak_memory_GB: float | None = None


_COUNTS = {one.name for one in fields(TrainingRun) if one.type == "int | None"}
_FLOATS = {one.name for one in fields(TrainingRun) if one.type == "float | None"}
COLUMNS = tuple(one.name for one in fields(TrainingRun))
"""Columns that are read; others are carried along."""

ADDED = (
    "predicted_step_time_s",
    "predicted_tokens_per_s_per_gpu",
    "predicted_memory_GB",
    "message",
)
"""Columns that an answer adds."""


def parse_run(cells: Mapping[str, str]) -> TrainingRun:
    """A run from its texts by name.

    Raises
    ------
    SpecError
        With a fault for every number that is none.

    Examples
    --------
    >>> parse_run({"model": "GPT-175B", "tp": "8.0", "seq": ""}).tp
    8
    """
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    for name in COLUMNS:
        text = (cells.get(name) or "").strip()
        if not text or (name in _COUNTS | _FLOATS and text.casefold() in _BLANKS):
            continue
        try:
            values[name] = _value(name, text)
        except SpecError as error:
            faults += error.faults
    if faults:
        raise SpecError(*faults)
    return TrainingRun(**values)


def _value(name: str, text: str) -> str | int | float:
    if name not in _COUNTS | _FLOATS:
        return text
    number = float(text) if _NUMBER.fullmatch(text) else -1.0
    if name in _FLOATS and 0 <= number < _MOST:
        return number
    if 0 <= number <= _MOST and number == int(number):
        return int(number)
    expected = "expected a whole number" if name in _COUNTS else "expected a number"
    raise SpecError(Fault(f"got {name} {text!r}", f"{expected} from 0 to {_MOST:g}", path=name))


@dataclass(frozen=True)
class TrainingFile:
    """A table of runs.

    Parameters
    ----------
    columns, rows : its texts.
    runs : what each row says, or why it cannot be read.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    runs: tuple[TrainingRun | SpecError, ...] = field(repr=False)


def read_training_file(path: str | Path) -> TrainingFile:
    """Read a table of runs.

    Raises
    ------
    SpecError
        For a table without the columns that tell a run, with a column that an answer adds, or
        with rows of another length.
    """
    (line, header), *lines = csv_rows(path, ends=True)
    columns, place = tuple(cell.strip() for cell in header), Place(str(path), line)
    faults = [fault.located(place) for fault in _column_faults(columns)]
    for at, cells in lines:
        if len(cells) != len(columns):
            expected = f"expected {len(columns)}, as the first line has"
            faults.append(Fault(f"got {len(cells)} cells", expected, place=Place(str(path), at)))
    if faults:
        raise SpecError(*faults)
    rows = tuple(tuple(cells) for _, cells in lines)
    return TrainingFile(
        columns, rows, tuple(_run(dict(zip(columns, row, strict=True))) for row in rows)
    )


def _column_faults(columns: tuple[str, ...]) -> list[Fault]:
    faults = repeated_columns(columns)
    for name in ("model", "gpu_type"):
        if name not in columns:
            fix = closest(name, columns) or "add it"
            faults.append(Fault(f"got no column {name}", "expected the columns of a run", fix))
    for name in ADDED:
        if name in columns:
            got = f"got the column {name!r}, which this command adds"
            faults.append(Fault(got, "expected input columns", "rename it"))
    return faults


def _run(cells: Mapping[str, str]) -> TrainingRun | SpecError:
    try:
        return parse_run(cells)
    except SpecError as error:
        return error
