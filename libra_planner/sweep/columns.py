"""The columns of results, and solved chunks as tables of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.problem import Problem
from libra_planner.sweep.axes import cell
from libra_planner.sweep.binding import OBJECTIVE
from libra_planner.sweep.chunks import AxisColumn, Job
from libra_planner.sweep.language import NUMBER, TRUTH
from libra_planner.sweep.parts import SWEEP_HASH
from libra_planner.sweep.solver import SolvedChunk
from libra_planner.sweep.template import OBJECTIVE_KEY
from libra_planner.timing.expression import Array
from libra_planner.units import BYTES_PER_S_PER_GBPS

if TYPE_CHECKING:
    import pyarrow as pa

_FLAGS = ("unique", "resolved")
_TEXTS = ("message", "check_message")


def schema_of(job: Job) -> pa.Schema:
    """Names and types of the columns.

    Examples
    --------
    >>> from libra_planner.spec.bundled import folder
    >>> from libra_planner.sweep.chunks import job_of
    >>> from libra_planner.sweep.spec import load_sweep
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
