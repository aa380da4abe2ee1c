"""Deep learning recommendation models in workload files."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from libra_planner.plan.architectures.settings import (
    PlanSettings,
    macs_per_s,
    per_replica,
    rate_notes,
    refuse_groups,
    refuse_tp,
)
from libra_planner.plan.models import ComputeSpec, WorkloadSpec
from libra_planner.reading.models import Count, Model, Rate
from libra_planner.units import BYTES_PER_S_PER_GBPS
from libra_planner.workload.operations import Workload
from libra_planner.workload.recommendation import Dlrm, DlrmTraining, dlrm_workload

Widths = Annotated[list[Count], Field(min_length=1, max_length=1000)]


class DlrmArchitectureSpec(Model):
    """Shape of a DLRM (arXiv 1906.00091).

    Parameters
    ----------
    dense_inputs : Numbers of a sample.
    bottom : Widths of the network of numbers; the last is that of the tables' vectors.
    top : Widths of the network behind the products of pairs.
    table_rows : Rows of every embedding table.
    lookups : Rows of every table that are added up for a sample.
    """

    dense_inputs: Count
    bottom: Widths
    top: Widths
    table_rows: Annotated[list[Count], Field(min_length=1, max_length=100_000)]
    lookups: Count = 1

    @property
    def dlrm(self) -> Dlrm:
        """The shape."""
        widths = tuple(self.bottom), tuple(self.top), tuple(self.table_rows)
        return Dlrm(self.dense_inputs, *widths, self.lookups)


class DlrmSpec(WorkloadSpec):
    """A workload generated from a recommendation model.

    Parameters
    ----------
    architecture : Shape of the model: embedding tables and the two networks beside them.
    compute : Compute rate of one NPU where the plan says none.
    memory_GBps : Memory bandwidth of one NPU, at which rows of tables are read and written.
    dtype_bytes : Bytes of an exchanged vector's or gradient's element.
    samples_per_replica : Samples per step of one rank, when no plan says otherwise.
    """

    kind: Literal["dlrm"]
    architecture: DlrmArchitectureSpec
    compute: ComputeSpec
    memory_GBps: Rate
    dtype_bytes: Count = 2
    samples_per_replica: Count | None = None


def dlrm(name: str, spec: DlrmSpec, settings: PlanSettings) -> Workload:
    """The step of a model.

    Raises
    ------
    SpecError
        For tensor parallelism, group sizes per phase, or a batch that does not split.
    """
    refuse_groups(name, settings)
    refuse_tp(name, settings)
    training = DlrmTraining(
        per_replica(name, spec.samples_per_replica, settings, "samples"),
        settings.dp,
        macs_per_s(spec.compute, settings),
        spec.memory_GBps * BYTES_PER_S_PER_GBPS,
        spec.dtype_bytes,
    )
    workload = dlrm_workload(name, spec.architecture.dlrm, training)
    memory = f"rows of tables at {spec.memory_GBps:,g} GB/s of memory bandwidth, in the workload"
    notes = (*workload.notes, memory, *spec.assumptions, *rate_notes(spec.compute, settings))
    return replace(workload, notes=notes)
