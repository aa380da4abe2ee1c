"""Convolutional networks: parameters, multiply-accumulates, and the step as operations (C18)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from libra_planner.workload.operations import (
    Collective,
    CollectiveKind,
    Covers,
    ModelStates,
    Operation,
    Phase,
    Workload,
)


@dataclass(frozen=True)
class Convolution:
    """A convolution, or with a kernel and a size of 1 a fully connected layer.

    Parameters
    ----------
    name : of the layer.
    kernel : height and width of the kernel.
    n_inputs, n_outputs : channels.
    output_size : height and width of what it gives.
    n_groups : groups of channels that do not mix; ``n_inputs`` for a depthwise convolution.
    has_norm : whether a batch norm follows, two parameters for each output.
    has_bias : whether outputs have biases.
    count : layers of this shape.

    Examples
    --------
    The first one of ResNet-50, on images of 224 x 224:

    >>> first = Convolution("conv1", 7, 3, 64, 112)
    >>> first.n_parameters, first.macs_per_image
    (9536, 118013952)
    """

    name: str
    kernel: int
    n_inputs: int
    n_outputs: int
    output_size: int
    n_groups: int = 1
    has_norm: bool = True
    has_bias: bool = False
    count: int = 1

    @property
    def n_weights(self) -> int:
        """Parameters of the kernels of one layer."""
        return self.kernel**2 * self.n_inputs * self.n_outputs // self.n_groups

    @property
    def n_parameters(self) -> int:
        """Parameters of one layer, norm and biases included."""
        return self.n_weights + self.n_outputs * (2 * self.has_norm + self.has_bias)

    @property
    def macs_per_image(self) -> int:
        """Multiply-accumulates of one layer forward; norms, pooling and activations are not."""
        return self.n_weights * self.output_size**2


@dataclass(frozen=True)
class ImageTraining:
    """How images are trained on with data parallelism.

    Parameters
    ----------
    images_per_replica : images per step of one replica.
    dp : replicas.
    macs_per_s : multiply-accumulates per second that one NPU sustains.
    dtype_bytes : bytes per gradient element.
    npu_memory_bytes : memory of an NPU, where it is known.
    """

    images_per_replica: int
    dp: int
    macs_per_s: float
    dtype_bytes: int = 2
    npu_memory_bytes: float | None = None


def n_parameters(layers: Sequence[Convolution]) -> int:
    """Parameters of a network."""
    return sum(layer.n_parameters * layer.count for layer in layers)


def macs_per_image(layers: Sequence[Convolution]) -> int:
    """Multiply-accumulates of a network forward, for one image."""
    return sum(layer.macs_per_image * layer.count for layer in layers)


def cnn_workload(name: str, layers: Sequence[Convolution], training: ImageTraining) -> Workload:
    """A step: every layer forward and both gradients, each as long as forward.

    Each layer's gradients are all-reduced over the replicas. A sequence and a token of the workload
    are an image.
    """
    n_images = training.images_per_replica * training.dp
    states = ModelStates(
        n_parameters(layers), training.dtype_bytes, training.dp, training.npu_memory_bytes
    )
    return Workload(
        name,
        tuple(one for layer in layers for one in _phases(layer, training)),
        n_images,
        ("sequences and tokens of this workload are images",),
        covers=Covers.STEP,
        tokens_per_step=n_images,
        memory=states,
    )


def _phases(layer: Convolution, training: ImageTraining) -> Iterator[Operation]:
    compute_s = training.images_per_replica * layer.macs_per_image / training.macs_per_s
    size_bytes = float(layer.n_parameters * training.dtype_bytes)
    gradients = Collective(CollectiveKind.ALL_REDUCE, size_bytes, "dp")
    for phase in Phase:
        exchanged = gradients if phase is Phase.WEIGHT_GRAD else None
        yield Operation(layer.name, phase, compute_s, exchanged, layer.count)
