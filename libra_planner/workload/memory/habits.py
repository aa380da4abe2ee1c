"""What training libraries keep in memory: bytes per parameter, logits, inputs (C19)."""

from __future__ import annotations

from dataclasses import dataclass

GRADIENT_BYTES = 4
"""Of one parameter: gradients are added up in fp32."""
MASTER_BYTES = 4
"""Of one parameter: the fp32 copy of a weight that is stored in fewer bytes."""
MOMENTS_BYTES = 8
"""Of one parameter: Adam's two moments in fp32."""

MOST_SHARDED = 3
"""ZeRO stage that shards optimizer states (1), gradients (2) and weights (3)."""


@dataclass(frozen=True)
class MemoryHabits:
    """Habits of a training library that decide what lies in memory; Megatron's where none is said.

    Parameters
    ----------
    weights_bytes, gradients_bytes, optimizer_bytes : of one parameter, as ZeRO shards them.
    gathered_bytes : of one parameter of a layer that ZeRO 3 has gathered.
    gathered_gradients_bytes : of one gradient before ZeRO 3 has scattered it.
    keeps_gathered_in_pipelines : whether ZeRO 3 keeps a pipeline stage's layers and gradients
        whole from the first to the last microbatch.
    step_bytes : of one parameter, sharded like optimizer states: further tensors during the
        optimizer's step, when no activation is left.
    logits_bytes : of one logit: all copies of it while loss and gradient are worked out.
    fp8_copies_bytes : of one parameter of a layer that multiplies in fp8, beside its bf16 weight.
    keeps_fp8_inputs : whether inputs of fp8 multiplies wait for the backward pass in fp8.
    keeps_gathered_inputs : whether inputs of multiplies that sequence parallelism gathers are kept
        whole; if not, a rank keeps its own part and gathers them again.
    keeps_matmuls : whether selective recomputation keeps the results of every second matrix
        multiply and of attention, and nothing else; if not, all but attention's matrix.
    """

    weights_bytes: float = 2
    gradients_bytes: float = GRADIENT_BYTES
    optimizer_bytes: float = MASTER_BYTES + MOMENTS_BYTES
    gathered_bytes: float = 2
    gathered_gradients_bytes: float = GRADIENT_BYTES
    keeps_gathered_in_pipelines: bool = False
    step_bytes: float = 0
    logits_bytes: float = 8
    fp8_copies_bytes: float = 2
    keeps_fp8_inputs: bool = True
    keeps_gathered_inputs: bool = False
    keeps_matmuls: bool = False


MEGATRON_MEMORY = MemoryHabits()
"""bf16 weights, fp32 gradients (Megatron Core's "Distributed Optimizer": 18 = 6 + 12); a logit in
bf16, in fp32 for the softmax whose place its gradient takes, and that gradient in bf16."""

DEEPSPEED_MEMORY = MemoryHabits(gradients_bytes=2, gathered_gradients_bytes=2)
"""16 bytes per parameter (arXiv 1910.02054)."""

NEMO_MEMORY = MemoryHabits(gradients_bytes=2, gathered_gradients_bytes=2, fp8_copies_bytes=0)
"""NVIDIA's recipes for speed: ``grad_reduce_in_fp32=False``; with ``fp8_params`` a weight in fp8
and its transpose take the place of the bf16 one."""

FSDP_MEMORY = MemoryHabits(
    weights_bytes=4,
    optimizer_bytes=MOMENTS_BYTES,
    keeps_gathered_in_pipelines=True,
    logits_bytes=12,
    fp8_copies_bytes=0,
    keeps_fp8_inputs=False,
    keeps_gathered_inputs=True,
    keeps_matmuls=True,
)
"""torchtitan on FSDP2: fp32 weights, gathered in bf16, not resharded after forward in pipelines;
the logarithm of a softmax, its gradient and that of a logit, all in fp32; selective recomputation
by operator; inputs are gathered before the multiply that keeps them."""

INTERNEVO_MEMORY = MemoryHabits(gradients_bytes=2, gathered_gradients_bytes=2, step_bytes=12)
"""Its optimizers copy gradients to fp32, and AdamW, not fused before PyTorch 2.1, has two
temporaries as large as the weights it updates."""
