"""How a model is spread over NPUs and trained: degrees, batch, memory savings, overlap (C15)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Count: TypeAlias = int | NDArray[np.int64]
"""One value, or one for each of n strategies, shape (n,)."""
Fraction: TypeAlias = float | NDArray[np.float64]


_WRITTEN = ("tp", "cp", "dp", "pp", "ep", "etp", "interleave", "microbatch", "zero")


class Recompute(IntEnum):
    """What of the activations is computed again in the backward pass (arXiv 2205.05198)."""

    NONE = 0
    SELECTIVE = 1
    FULL = 2


class PipelineSchedule(StrEnum):
    """Order of microbatches in a pipeline (C17)."""

    ONE_F_ONE_B = "1f1b"
    ZERO_BUBBLE_H1 = "zb-h1"
    ZERO_BUBBLE_H2 = "zb-h2"


@dataclass(frozen=True)
class OverlapFractions:
    """Shares of communication that hide behind compute where there is enough of it.

    Parameters
    ----------
    tp, cp, ep, dp : of tensor-, context-, expert- and data-parallel communication, 0 to 1.
    p2p : whether sends and receives of the pipeline hide behind compute.
    """

    tp: float = 0.0
    cp: float = 1.0
    ep: float = 0.0
    dp: float = 0.0
    p2p: bool = False


@dataclass(frozen=True)
class Strategy:
    """One way to train a model, or n of them as arrays of shape (n,).

    Parameters
    ----------
    tp, cp, dp, pp : degrees of tensor, context, data and pipeline parallelism; their product is the
        number of NPUs (C15).
    ep, etp : expert parallelism, and tensor parallelism of experts, over the same ranks.
    global_batch : sequences of a step.
    microbatch : sequences of one microbatch b.
    interleave : chunks of layers of each stage v; 1 without interleaving.
    zero : ZeRO stage; 3 is also FSDP.
    recompute : :class:`Recompute`.
    sequence_parallel : whether norms and dropouts are split over tp.
    flash_attention : whether attention is one fused kernel.
    schedule : of the pipeline.
    overlap : of communication with compute.
    dtype : of matrix multiplies: ``bf16``, ``fp16``, ``fp8``, ...
    """

    tp: Count = 1
    cp: Count = 1
    dp: Count = 1
    pp: Count = 1
    ep: Count = 1
    etp: Count = 1
    global_batch: Count = 1
    microbatch: Count = 1
    interleave: Count = 1
    zero: Count = 0
    recompute: Count = Recompute.NONE
    sequence_parallel: bool | NDArray[np.bool_] = False
    flash_attention: bool = True
    schedule: PipelineSchedule = PipelineSchedule.ONE_F_ONE_B
    overlap: OverlapFractions = field(default_factory=OverlapFractions)
    dtype: str = "bf16"

    @property
    def degrees(self) -> dict[str, int | str | bool]:
        """One strategy as ``parallelism`` of a plan.

        >>> list(Strategy(tp=8, dp=4, zero=1).degrees.items())[:3]
        [('tp', 8), ('cp', 1), ('dp', 4)]
        """
        found: dict[str, int | str | bool] = {name: int(getattr(self, name)) for name in _WRITTEN}
        found["recompute"] = Recompute(int(self.recompute)).name.lower()
        return found | {"sequence_parallel": bool(self.sequence_parallel)}

    @property
    def n_npus(self) -> Count:
        """tp cp dp pp."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def n_microbatches(self) -> Count:
        """Microbatches of a replica and step, m."""
        return self.global_batch // (self.dp * self.microbatch)

    @property
    def edp(self) -> Count:
        """Ranks that hold the same expert: tp cp dp/(etp ep)."""
        return self.tp * self.cp * self.dp // (self.etp * self.ep)
