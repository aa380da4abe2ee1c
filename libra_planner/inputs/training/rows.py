"""Training runs: from texts of flags or cells of a table to numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, SpecError, refuse
from libra_planner.quantities import taper_digits
from libra_planner.reading.tables import read_carried_table

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
    taper: float | None = None
    nodes_per_leaf: int | None = None
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

OPTIONS = {
    **{name: name for name in ("model", "gpus", "layers", "hidden", "heads", "kv_heads")},
    **{name: name for name in ("ffn", "moe_ffn", "experts", "topk", "seq", "vocab")},
    **{name: name for name in ("tp", "cp", "dp", "pp", "ep", "etp", "microbatch")},
    **{name: name for name in ("global_batch", "recompute", "zero", "schedule", "fabric")},
    **{name: name for name in ("taper", "nodes_per_leaf")},
    "npu": "gpu_type",
    "interleave": "vp_interleave",
    "dtype": "precision",
    "library": "parallel_style",
    "sequence_parallel": "sequence_parallel",
}
"""Columns by the option, or the argument in Python, that says the same."""

ADDED = (
    "predicted_step_time_s",
    "predicted_tokens_per_s_per_gpu",
    "predicted_memory_GB",
    "message",
)
"""Columns that an answer adds."""


def parse_run(cells: Mapping[str, str], *, blanks: Sequence[str] = _BLANKS) -> TrainingRun:
    """A run from its texts by name.

    Parameters
    ----------
    cells : by column.
    blanks : words that stand for a number that is not known.

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
        if not text or (name in _COUNTS | _FLOATS and text.casefold() in blanks):
            continue
        try:
            values[name] = _value(name, text)
        except SpecError as error:
            faults += error.faults
    if faults:
        raise SpecError(*faults)
    return TrainingRun(**values)


def asked_run(options: Mapping[str, Any]) -> TrainingRun:
    """A run from values by the names of :data:`OPTIONS`; ``None`` is not given.

    Raises
    ------
    SpecError
        With a fault for every empty text and number that is none, its path the column.

    Examples
    --------
    >>> asked_run({"model": "gpt3-175b", "tp": 8, "sequence_parallel": True}).sequence_parallel
    'yes'
    """
    given = {name: value for name, value in options.items() if value is not None}
    cells = {OPTIONS[name]: _text(value) for name, value in given.items()}
    refuse(_refused(cells))
    run = parse_run(cells, blanks=())
    refuse(
        Fault(f"got {name} 0", "expected 1 or more", path=name)
        for name in cells
        if name in _COUNTS and getattr(run, name) == 0
    )
    return replace(run, model="own shape") if "model" not in given and run.layers else run


def _refused(cells: Mapping[str, str]) -> Iterator[Fault]:
    for name, text in cells.items():
        if not text.strip():
            yield Fault(f"got {text!r}", "expected a value", "write one, or leave it out", name)


def _text(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _value(name: str, text: str) -> str | int | float:
    if name not in _COUNTS | _FLOATS:
        return text
    digits = taper_digits(text) if name == "taper" else text
    number = float(digits) if _NUMBER.fullmatch(digits) else -1.0
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
    table = read_carried_table(path, required=("model", "gpu_type"), reserved=ADDED)
    return TrainingFile(table.columns, table.rows, tuple(map(_run, table.cells())))


def _run(cells: Mapping[str, str]) -> TrainingRun | SpecError:
    try:
        return parse_run(cells)
    except SpecError as error:
        return error
