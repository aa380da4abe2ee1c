"""Optima of a chunk's designs, and the table that they make."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.problem import Problem
from libra_planner.step.expression import Array, Mask
from libra_planner.sweeps.axes import cell
from libra_planner.sweeps.columns import ALWAYS, OBJECTIVE, columns
from libra_planner.sweeps.spec import Chunk, Job
from libra_planner.sweeps.store import ERRORS, SWEEP_HASH, arrow_array
from libra_planner.sweeps.template import OBJECTIVE_KEY

if TYPE_CHECKING:
    import pyarrow as pa


INVALID = "invalid"
"""Status of a design that is no plan, such as a degree that does not divide."""

Texts: TypeAlias = NDArray[np.object_]
Objects: TypeAlias = NDArray[np.object_]


@dataclass(frozen=True)
class SolvedChunk:
    """Optima of a chunk's designs; shape (n,) unless noted, NaN and "" where there is none.

    Parameters
    ----------
    chunk : its designs.
    bandwidth_bytes_per_s : shape (n, n_dims), NaN beyond a smaller fabric's dimensions.
    objective, lower_bound, step_time_s, cost_usd : as ``optimizer.BatchResult``.
    n_sequences : sequences per step, NaN where nobody knows.
    tokens_per_step : of whole models, NaN of other steps (C21).
    ideal_s : what a step of a whole model would take at its FLOP and the peak of the NPUs (C18).
    compute_s : of the step.
    memory_bytes, sharded_memory_bytes : what weights, gradients and optimizer states need on an
        NPU, and the least that ZeRO can need (C19); the most of any workload.
    error_fraction : of step times, as published runs of their kind have it (C23); NaN where no
        class was measured.
    equal_step_time_s : step time at equal bandwidth (C9); only where a column needs it.
    fim_percent, fim_floor_percent, effective_step_time_s : of its links, where they are checked.
    fim_avoidable_percent, fim_of_dimension_percent, fim_floor_of_dimension_percent : of the
        dimension whose routing could avoid most FIM.
    fim_avoidable_dimension : that dimension.
    bill_usd, bill_low_usd, bill_high_usd, bill_fabric_usd : of whole parts; only where a column
        needs them.
    billed_step_time_s, bill_excess_percent : time on the whole ports that the bill pays for, and
        the most that a dimension has beyond what the design asks for; only beside bills.
    bill_over_server_GBps : what it asks of the links between the NPUs of a server beyond those that
        the priced server has, NaN where that has them; only beside bills.
    cost_limit_usd : the most that its rules let its cost be, infinite without one; only beside
        bills.
    unique, resolved : as ``optimizer.BatchResult``.
    is_of_system : whether its cost is of the system, not of the network alone; only beside bills.
    has_bills : whether the sweep has bills; the same for all.
    status : optimal, infeasible, ill_posed, uncertified or invalid.
    kinds : objective of each design; of one that is no plan, the axis's or the base's.
    message : why there is no optimum.
    notes : what its plan takes for granted, as ``optimize`` notes it.
    check_message : why the links of an optimum could not be checked.
    bill_message : why an optimum has no bill.
    bill_note : parts of its bill that are faster than its plan's ports, and servers whose links
        are not what it asks for.
    found : of the search for each design's strategy, where its plan leaves that open.
    strategy : that was found, or that the plan fixes; ``None`` of a workload without one.
    n_on_links : strategies that were checked on links, where both are asked for.
    model_effective_step_time_s : of the one that is the best by the plan's model, on its links.
    """

    chunk: Chunk
    bandwidth_bytes_per_s: Array
    objective: Array
    lower_bound: Array
    step_time_s: Array
    cost_usd: Array
    n_sequences: Array
    tokens_per_step: Array
    ideal_s: Array
    compute_s: Array
    memory_bytes: Array
    sharded_memory_bytes: Array
    error_fraction: Array
    equal_step_time_s: Array
    fim_percent: Array
    fim_floor_percent: Array
    fim_avoidable_percent: Array
    fim_of_dimension_percent: Array
    fim_floor_of_dimension_percent: Array
    effective_step_time_s: Array
    bill_usd: Array
    bill_low_usd: Array
    bill_high_usd: Array
    bill_fabric_usd: Array
    billed_step_time_s: Array
    bill_excess_percent: Array
    bill_over_server_GBps: Array
    cost_limit_usd: Array
    unique: Mask
    resolved: Mask
    is_of_system: Mask
    has_bills: Mask
    status: Texts
    kinds: Texts
    message: Texts
    notes: Texts
    check_message: Texts
    fim_avoidable_dimension: Texts
    bill_message: Texts
    bill_note: Texts
    found: Objects
    strategy: Objects
    n_on_links: Array
    model_effective_step_time_s: Array

    @classmethod
    def empty(cls, chunk: Chunk, job: Job) -> SolvedChunk:
        """Nothing solved yet."""
        n, blank = chunk.n, {"Array": np.nan, "Mask": False, "Texts": "", "Objects": None}
        of_objects = ("Texts", "Objects")
        own: dict[str, Any] = {
            one.name: np.full(n, blank[str(one.type)], object if one.type in of_objects else None)
            for one in fields(cls)[2:]
        }
        own["status"][:] = INVALID
        own["kinds"][:] = _written_objectives(chunk, job)
        own["has_bills"][:] = job.has_bills
        return cls(chunk, np.full((n, job.n_dims), np.nan), **own)

    @property
    def paid_usd(self) -> Array:
        """What designs cost: the bill where the sweep has bills, NaN where it is of less."""
        sold_usd = np.where(self.bill_over_server_GBps > 0, np.nan, self.bill_usd)
        return np.where(self.has_bills, sold_usd, self.cost_usd)

    @property
    def paid_step_time_s(self) -> Array:
        """Their time on what that buys."""
        return np.where(self.has_bills, self.billed_step_time_s, self.step_time_s)

    @property
    def row(self) -> NDArray[np.intp]:
        """Numbers of the designs."""
        return np.arange(self.chunk.first_row, self.chunk.first_row + self.chunk.n)


def _written_objectives(chunk: Chunk, job: Job) -> Any:
    """The axis's values, or what the base plan says; nothing where a placeholder says it."""
    for axis in chunk.columns:
        if axis.name == OBJECTIVE:
            return [cell(axis.values[code]) for code in axis.codes]
    written = job.template.document.value.get(OBJECTIVE, Problem.objective)
    return "" if OBJECTIVE_KEY in job.template.slots else cell(written)


def schema_of(job: Job) -> pa.Schema:
    """Names and types of the columns.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> from libra_planner.sweeps.spec import job_of, load_sweep
    >>> job = job_of(load_sweep(folder("examples") / "10_budgets.yaml"))
    >>> schema_of(job).names[:5]
    ['row', 'budget', 'objective', 'status', 'objective_value']
    """
    import pyarrow as pa

    row, *others = (*columns(ALWAYS), *job.columns)
    axes = [(name, dtype) for name, dtype in job.axes.items() if name != OBJECTIVE]
    figures = [(name, one.dtype) for one in others for name in one.names(job.n_dims)]
    names = [(row.name, row.dtype), *axes, *figures]
    return pa.schema([(name, pa.type_for_alias(dtype)) for name, dtype in names])


def table_of(solved: SolvedChunk, job: Job) -> pa.Table:
    """A solved chunk as rows; figures of designs without an optimum are null."""
    import pyarrow as pa

    schema = schema_of(job)
    figures: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for one in (*columns(ALWAYS), *job.columns):
            figures |= one.arrays(solved, job.n_dims)
    axes = {axis.name: axis for axis in solved.chunk.columns if axis.name != OBJECTIVE}
    arrays = []
    for column in schema:
        if column.name not in axes:  # NaN is null.
            arrays.append(arrow_array(figures[column.name], column.type))
            continue
        axis = axes[column.name]
        values = list(map(cell, axis.values)) if column.type == pa.string() else axis.values
        taken = np.array(values, dtype=object if column.type == pa.string() else None)[axis.codes]
        arrays.append(arrow_array(taken, column.type))
    table = pa.Table.from_arrays(arrays, schema=schema)
    known = solved.error_fraction[np.isfinite(solved.error_fraction + solved.step_time_s)]
    errors = f"{known.min():.9g} {known.max():.9g}" if len(known) else ""
    return table.replace_schema_metadata({SWEEP_HASH: job.sweep_hash, ERRORS: errors})
