"""The columns of results, and solved chunks as tables of them."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from importlib.metadata import version
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from libra_planner import __version__
from libra_planner.errors import SpecError
from libra_planner.files import read_text
from libra_planner.problem import Problem
from libra_planner.reading import bundled
from libra_planner.step.expression import Array
from libra_planner.sweeps.axes import Axis, cell
from libra_planner.sweeps.expressions import NUMBER, TRUTH
from libra_planner.sweeps.solver import SolvedChunk
from libra_planner.sweeps.spec import AxisColumn, Job, Sweep, job_of
from libra_planner.sweeps.store import FORMAT, SWEEP_HASH, manifest_hash
from libra_planner.sweeps.template import (
    OBJECTIVE,
    OBJECTIVE_KEY,
    AxisValue,
    Slot,
    TiersOf,
    named_files,
)
from libra_planner.units import BYTES_PER_S_PER_GBPS

if TYPE_CHECKING:
    import pyarrow as pa

_FLAGS = ("unique", "resolved")
_TEXTS = ("message", "check_message")


def schema_of(job: Job) -> pa.Schema:
    """Names and types of the columns.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> from libra_planner.sweeps.spec import job_of
    >>> from libra_planner.sweeps.spec import load_sweep
    >>> job = job_of(load_sweep(folder("examples") / "10_budgets.yaml"))
    >>> schema_of(job).names[:5]
    ['row', 'budget', 'objective', 'status', 'objective_value']
    """
    import pyarrow as pa

    axes = [(name, _axis_type(job, name)) for name in job.axes if name != OBJECTIVE]
    figures = [(name, _figure_type(name)) for name in _figure_names(job)]
    first = [("row", pa.int64())]
    return pa.schema([*first, *axes, (OBJECTIVE, pa.string()), ("status", pa.string()), *figures])


def _axis_type(job: Job, name: str) -> pa.DataType:
    import pyarrow as pa

    kind, is_whole = job.axes[name]
    if kind == NUMBER:
        return pa.int64() if is_whole else pa.float64()
    return pa.bool_() if kind == TRUTH else pa.string()


def _figure_names(job: Job) -> list[str]:
    names: list[str] = []
    for figure in job.figures:
        names += bandwidth_columns(job.n_dims) if figure == "bandwidth" else [figure]
    return names


def bandwidth_columns(n_dims: int) -> list[str]:
    """Columns of the bandwidths.

    >>> bandwidth_columns(2)
    ['bandwidth_dim1_GBps', 'bandwidth_dim2_GBps']
    """
    return [f"bandwidth_dim{i}_GBps" for i in range(1, n_dims + 1)]


def _figure_type(name: str) -> pa.DataType:
    import pyarrow as pa

    if name in _TEXTS:
        return pa.string()
    return pa.bool_() if name in _FLAGS else pa.float64()


def table_of(solved: SolvedChunk, job: Job) -> pa.Table:
    """A solved chunk as rows; figures of designs without an optimum are null."""
    import pyarrow as pa

    schema = schema_of(job)
    figures = _figures(solved, job)
    axes = {column.name: column for column in solved.chunk.columns}
    arrays = [
        _axis_array(axes[field.name], field.type)
        if field.name in axes and field.name != OBJECTIVE
        else _array(figures[field.name], field.type)
        for field in schema
    ]
    table = pa.table(arrays, schema=schema)
    return table.replace_schema_metadata({SWEEP_HASH: job.sweep_hash})


def _axis_array(column: AxisColumn, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    text = pa.types.is_string(kind)
    values = [cell(value) if text else value for value in column.values]
    return pa.array(values, type=kind).take(pa.array(column.codes))


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    """Values with NaN as null."""
    import pyarrow as pa

    return pa.array(values, type=kind, from_pandas=True)


def _figures(solved: SolvedChunk, job: Job) -> dict[str, Any]:
    n, first = solved.chunk.n, solved.chunk.first_row
    optimal = solved.status == "optimal"
    with np.errstate(all="ignore"):
        gap = (solved.objective - solved.lower_bound) / solved.lower_bound
        figures: dict[str, Any] = {
            "row": np.arange(first, first + n),
            OBJECTIVE: _kinds(solved, job),
            "status": solved.status,
            "objective_value": solved.objective,
            "lower_bound": solved.lower_bound,
            "optimality_gap": gap,
            "step_time_s": solved.step_time_s,
            "seconds_per_sequence": solved.step_time_s / solved.n_sequences,
            "cost_usd": solved.cost_usd,
            "unique": _where(optimal, solved.unique),
            "resolved": solved.resolved,
            "speedup_vs_equal": _finite(solved.equal_step_time_s / solved.step_time_s),
            "message": _messages(solved.messages, n),
            "memory_bytes": solved.memory_bytes,
            "sharded_memory_bytes": solved.sharded_memory_bytes,
            "fim_percent": solved.fim_percent,
            "fim_floor_percent": solved.fim_floor_percent,
            "effective_step_time_s": solved.effective_step_time_s,
            "effective_seconds_per_sequence": solved.effective_step_time_s / solved.n_sequences,
            "check_message": _messages(solved.check_messages, n),
        }
    bandwidth = solved.bandwidth_bytes_per_s.T / BYTES_PER_S_PER_GBPS
    return figures | dict(zip(bandwidth_columns(len(bandwidth)), bandwidth, strict=True))


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)


def _where(fine: NDArray[np.bool_], flags: NDArray[np.bool_]) -> list[bool | None]:
    return [bool(flag) if known else None for known, flag in zip(fine, flags, strict=True)]


def _messages(by_design: dict[int, str], n: int) -> list[str | None]:
    return [by_design.get(i) for i in range(n)] if by_design else [None] * n


def _kinds(solved: SolvedChunk, job: Job) -> list[str | None]:
    """Objective of every design; of one that is no plan, the axis's or the base's."""
    columns = [column for column in solved.chunk.columns if column.name == OBJECTIVE]
    if not columns:
        written = job.template.document.value.get(OBJECTIVE, Problem.objective)
        given = None if OBJECTIVE_KEY in job.template.slots else cell(written)
        return [kind or given for kind in solved.kinds]
    (axis,) = columns
    return [cell(axis.values[code]) for code in axis.codes]


_MOST_FILES = 10_000


def manifest_of(sweep: Sweep) -> dict[str, Any]:
    """The manifest of a sweep.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> from libra_planner.sweeps.spec import load_sweep
    >>> manifest = manifest_of(load_sweep(folder("examples") / "10_budgets.yaml"))
    >>> manifest["n_designs"], manifest["spec"]["where"]
    (74, [])
    """
    template = sweep.template
    spec = {
        "base": template.document.value,
        "slots": [[list(key), *_slot(slot)] for key, slot in template.slots.items()],
        "axes": [[axis.name, list(axis.values), _tiers(axis)] for axis in sweep.axes],
        "where": list(sweep.where),
        "sample": sweep.sample.model_dump() if sweep.sample else None,
        "seed": sweep.seed,
        "columns": list(sweep.figures),
        "designs_per_part": sweep.designs_per_part,
        "files": dict(_files(sweep)),
    }
    if sweep.check:
        spec["check"] = sweep.check.recorded()
    spec = json.loads(json.dumps(spec))
    schema = schema_of(job_of(sweep))
    return {
        "format": FORMAT,
        "hash": manifest_hash(spec),
        "version": __version__,
        "versions": {name: version(name) for name in ("numpy", "scipy", "cvxpy", "pyarrow")}
        | {"python": platform.python_version()},
        "source": sweep.source,
        "beside": str(template.beside.resolve()),
        "n_designs": sweep.space.n,
        "n_parts": sweep.n_parts,
        "schema": {field.name: str(field.type) for field in schema},
        "spec": spec,
    }


def _slot(slot: Slot) -> tuple[str, str | None]:
    """What fills a slot: text as written, an axis's value, or its topology's tiers."""
    if isinstance(slot, AxisValue):
        return "axis", slot.axis
    return ("tiers", slot.axis) if isinstance(slot, TiersOf) else ("text", None)


def _tiers(axis: Axis) -> dict[str, list[str]]:
    return {str(n_dims): list(tiers) for n_dims, tiers in axis.tiers.items()}


def _files(sweep: Sweep) -> Iterator[tuple[str, str]]:
    """Users' own files that plans of the sweep name, with a hash of their content."""
    for name in sorted(set(islice(_file_names(sweep), _MOST_FILES))):
        try:
            text = read_text(sweep.template.beside / name)
        except SpecError:  # A design that names it is invalid, and says so in its row.
            continue
        yield name, hashlib.sha256(text.encode()).hexdigest()


def _file_names(sweep: Sweep) -> Iterator[str]:
    axes = {axis.name: axis.values for axis in sweep.axes}
    for key, value in named_files(sweep.template.document.value, ()):
        slot = sweep.template.slots.get(key)
        if slot is None:
            values: Iterator[Any] = iter([value])
        else:
            names = sorted(slot.names)
            combinations = product(*(axes[name] for name in names))
            values = (slot.filled(dict(zip(names, one, strict=True))) for one in combinations)
        yield from filter(_is_own_file, values)
    for slot in sweep.template.slots.values():
        if isinstance(slot, AxisValue):  # Maps and lists, such as the workloads of a group.
            found = (named_files(value, ()) for value in axes[slot.axis])
            yield from (name for one in found for _, name in one if _is_own_file(name))


def _is_own_file(name: Any) -> bool:
    return isinstance(name, str) and bundled.is_path(name)
