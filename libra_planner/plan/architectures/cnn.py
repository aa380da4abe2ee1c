"""Convolutional networks in workload files."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, model_validator

from libra_planner.plan.architectures.settings import (
    PlanSettings,
    macs_per_s,
    per_replica,
    rate_notes,
    refuse_tp,
)
from libra_planner.plan.models import ComputeSpec, WorkloadSpec
from libra_planner.reading.models import Count, Model, Text
from libra_planner.workload.convolutional import Convolution, ImageTraining, cnn_workload
from libra_planner.workload.operations import Workload


class ConvolutionSpec(Model):
    """A convolution, or with a kernel and a size of 1 a fully connected layer.

    Parameters
    ----------
    name : What tells the layer apart, such as conv1.
    kernel : Height and width of the kernel.
    inputs : Channels in.
    outputs : Channels out.
    size : Height and width of the output.
    groups : Groups of channels that do not mix.
    norm : Whether a batch norm follows.
    bias : Whether outputs have biases.
    count : Layers of this shape.
    """

    name: Text
    kernel: Count
    inputs: Count
    outputs: Count
    size: Count
    groups: Count = 1
    norm: bool = True
    bias: bool = False
    count: Count = 1

    @model_validator(mode="after")
    def _groups_divide(self) -> ConvolutionSpec:
        if self.inputs % self.groups or self.outputs % self.groups:
            got = f"got {self.groups} groups of {self.inputs} inputs and {self.outputs} outputs"
            raise ValueError(f"{got}, expected a divisor of both")
        return self

    @property
    def layer(self) -> Convolution:
        """The layer."""
        return Convolution(
            self.name,
            self.kernel,
            self.inputs,
            self.outputs,
            self.size,
            self.groups,
            self.norm,
            self.bias,
            self.count,
        )


class CnnSpec(WorkloadSpec):
    """A workload generated from the layers of a convolutional network.

    Parameters
    ----------
    layers : Convolutions and fully connected layers, in order.
    compute : Compute rate of one NPU where the plan says none.
    dtype_bytes : Bytes of an exchanged gradient's element.
    images_per_replica : Images per step of one replica, when no plan says otherwise.
    """

    kind: Literal["cnn"]
    layers: Annotated[list[ConvolutionSpec], Field(min_length=1, max_length=10_000)]
    compute: ComputeSpec
    dtype_bytes: Count = 2
    images_per_replica: Count | None = None


def cnn(name: str, spec: CnnSpec, settings: PlanSettings) -> Workload:
    """The step of a network.

    Raises
    ------
    SpecError
        For tensor parallelism, or a batch that does not split.
    """
    refuse_tp(name, settings)
    training = ImageTraining(
        per_replica(name, spec.images_per_replica, settings, "images"),
        settings.dp,
        macs_per_s(spec.compute, settings),
        spec.dtype_bytes,
        settings.npu_memory_bytes,
    )
    workload = cnn_workload(name, [one.layer for one in spec.layers], training)
    notes = (*workload.notes, *spec.assumptions, *rate_notes(spec.compute, settings))
    return replace(workload, notes=notes)
