"""What weights, gradients and optimizer states need on one NPU (C19); activations do not count."""

from __future__ import annotations

from dataclasses import dataclass

_GRADIENT_BYTES = 4
"""Of one parameter: gradients are added up in fp32."""
_MASTER_BYTES = 4
"""Of one parameter: the fp32 copy of a weight that is stored in fewer bytes."""
_MOMENTS_BYTES = 8
"""Of one parameter: Adam's two moments in fp32."""

MOST_SHARDED = 3
"""ZeRO stage that shards optimizer states, gradients and weights."""


@dataclass(frozen=True)
class ModelStates:
    """Weights, gradients and optimizer states of one NPU, as Megatron keeps them.

    Bytes per parameter in mixed precision: weights 2, gradients 4, optimizer 12 (a copy of the
    weight in fp32, two moments of Adam); weights in fp32 are their own copy, so 4, 4 and 8
    (Megatron Core User Guide, "Distributed Optimizer": 18 and 16 in all). A parameter is counted on
    one rank of its tensor-parallel group: the token embedding is split by vocabulary; norms, biases
    of row-parallel layers and position embeddings, which every rank keeps whole, are counted as if
    they were split.

    Parameters
    ----------
    n_parameters : parameters of one NPU, all parameters over TP.
    weight_bytes : bytes of one stored weight.
    dp : data-parallel ranks, each of which holds all of this unless ZeRO shards it.
    npu_memory_bytes : memory of the NPU; ``None`` where nobody says.

    Examples
    --------
    GPT-3 at TP 8 on 80 GiB: ZeRO 2 is the first that fits.

    >>> states = ModelStates(174604234752 / 8, 2, dp=128, npu_memory_bytes=80 * 2**30)
    >>> round(states.weights_bytes / 1e9, 1), round(states.total_bytes / 1e9, 1)
    (43.7, 392.9)
    >>> states.fits, states.zero_stage, round(states.sharded_bytes / 1e9, 2)
    (False, 2, 3.07)
    """

    n_parameters: float
    weight_bytes: int
    dp: int
    npu_memory_bytes: float | None = None

    @property
    def weights_bytes(self) -> float:
        """Weights."""
        return self.n_parameters * self.weight_bytes

    @property
    def gradients_bytes(self) -> float:
        """Gradients."""
        return self.n_parameters * _GRADIENT_BYTES

    @property
    def optimizer_bytes(self) -> float:
        """Optimizer states."""
        master = _MASTER_BYTES if self.weight_bytes < _MASTER_BYTES else 0
        return self.n_parameters * (_MOMENTS_BYTES + master)

    @property
    def total_bytes(self) -> float:
        """All of it, nothing sharded over the data-parallel ranks."""
        return self.zero_bytes(0)

    @property
    def sharded_bytes(self) -> float:
        """All of it sharded over the data-parallel ranks: the least that ZeRO can need."""
        return self.zero_bytes(MOST_SHARDED)

    def zero_bytes(self, stage: int) -> float:
        """What a ZeRO stage needs (Rajbhandari et al., arXiv 1910.02054).

        Parameters
        ----------
        stage : 0 shards nothing, 1 optimizer states, 2 gradients too, 3 weights too.
        """
        parts = (self.optimizer_bytes, self.gradients_bytes, self.weights_bytes)
        return sum(parts[:stage]) / self.dp + sum(parts[stage:])

    @property
    def fits(self) -> bool | None:
        """Whether it fits the NPU with nothing sharded; ``None`` where its memory is not known."""
        memory = self.npu_memory_bytes
        return None if memory is None else self.total_bytes <= memory

    @property
    def fits_sharded(self) -> bool | None:
        """Whether it fits with everything sharded; ``None`` where memory is not known."""
        memory = self.npu_memory_bytes
        return None if memory is None else self.sharded_bytes <= memory

    @property
    def zero_stage(self) -> int | None:
        """The first ZeRO stage that fits; ``None`` where none does, or memory is not known."""
        memory = self.npu_memory_bytes
        if memory is None:
            return None
        stages = range(MOST_SHARDED + 1)
        return next((stage for stage in stages if self.zero_bytes(stage) <= memory), None)
