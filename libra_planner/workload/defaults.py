"""What training libraries do where nobody says otherwise: memory savings and overlap."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from libra_planner.errors import unknown_name
from libra_planner.workload.memory.habits import (
    DEEPSPEED_MEMORY,
    FSDP_MEMORY,
    INTERNEVO_MEMORY,
    MEGATRON_MEMORY,
    NEMO_MEMORY,
    MemoryHabits,
)
from libra_planner.workload.strategy import OverlapFractions, Recompute
from libra_planner.workload.volumes import DEFAULT_FORMATS, DEFAULT_HABITS, Formats, Habits


@dataclass(frozen=True)
class LibraryDefaults:
    """Defaults of a training library.

    Parameters
    ----------
    name : what plans and ``train --library`` call it.
    about : what it stands for, and where its defaults are documented.
    overlap : communication that hides behind compute; ``p2p`` where the pipeline interleaves.
    zero : ZeRO stage of data parallelism.
    flash_attention : attention as one fused kernel.
    sequence_parallel : whether tensor parallelism splits norms too.
    recompute : of activations.
    formats, habits : of what is exchanged.
    memory : of what is kept.
    splits_experts : whether experts are split over tp as all else is, etp = tp (C15).
    """

    name: str
    about: str
    overlap: OverlapFractions = field(default_factory=OverlapFractions)
    zero: int = 0
    flash_attention: bool = True
    sequence_parallel: bool = True
    recompute: Recompute = Recompute.NONE
    formats: Formats = DEFAULT_FORMATS
    habits: Habits = DEFAULT_HABITS
    memory: MemoryHabits = MEGATRON_MEMORY
    splits_experts: bool = False


MEGATRON_CORE, MEGATRON_2021, FSDP = "megatron-core", "megatron-2021", "fsdp"
_HIDDEN = OverlapFractions(tp=0.8, dp=1.0, p2p=True)

LIBRARIES: Mapping[str, LibraryDefaults] = MappingProxyType(
    {
        one.name: one
        for one in (
            LibraryDefaults(
                MEGATRON_CORE,
                "Megatron Core: distributed optimizer whose gradient reduction and weight "
                "gathering overlap compute, user buffers that hide tensor-parallel communication",
                _HIDDEN,
                zero=1,
                habits=Habits(one_copy_per_node=True),
            ),
            LibraryDefaults(
                "nemo",
                "NeMo: Megatron Core with gradients kept in 16 bits (grad_reduce_in_fp32=False)",
                _HIDDEN,
                zero=1,
                formats=Formats(gradient_bytes=2),
                memory=NEMO_MEMORY,
                splits_experts=True,
            ),
            LibraryDefaults(
                MEGATRON_2021,
                "Megatron-LM of 2021 and 2022 (arXiv 2104.04473, 2205.05198)): "
                "no overlap, attention as separate kernels",
                flash_attention=False,
                sequence_parallel=False,
                habits=Habits(scatter_gather=True),
            ),
            LibraryDefaults(
                "deepspeed",
                "Megatron-DeepSpeed: as Megatron-LM of 2021, gradients exchanged in 16 bits",
                flash_attention=False,
                sequence_parallel=False,
                formats=Formats(gradient_bytes=2),
                habits=Habits(scatter_gather=True),
                memory=DEEPSPEED_MEMORY,
            ),
            LibraryDefaults(
                "megatron-lm",
                "Megatron-LM of 2023 (the baseline of arXiv 2402.15627)",
                OverlapFractions(p2p=False),
                zero=1,
                flash_attention=False,
                recompute=Recompute.SELECTIVE,
            ),
            LibraryDefaults(
                "megascale",
                "MegaScale (arXiv 2402.15627, section 3.2): all communication overlaps compute",
                OverlapFractions(tp=1.0, dp=1.0, p2p=True),
                zero=1,
            ),
            LibraryDefaults(
                FSDP,
                "FSDP of PyTorch and MaxText: weights gathered layer by layer ahead of their use",
                OverlapFractions(dp=1.0, tp=0.0),
                zero=3,
                recompute=Recompute.SELECTIVE,
                habits=Habits(recomputes_by_operator=True),
                memory=FSDP_MEMORY,
            ),
            LibraryDefaults(
                "deepseek",
                "DeepSeek-V3's own: tokens go out in fp8, to four nodes, and DualPipe hides "
                "all-to-alls and sends behind compute; how much of them is an assumption",
                OverlapFractions(tp=1.0, ep=1.0, dp=1.0, p2p=True),
                zero=1,
                formats=Formats(dispatch_bytes=1),
                habits=Habits(experts_on_at_most=4),
            ),
            LibraryDefaults(
                "internevo",
                "InternEvo: ZeRO 1 in groups, gradient reduction overlaps the backward pass",
                OverlapFractions(dp=1.0),
                zero=1,
                memory=INTERNEVO_MEMORY,
            ),
        )
    }
)
"""By name."""

_STYLES = (
    (r"megatron-core", MEGATRON_CORE),
    (r"fsdp", FSDP),
    (r"deepspeed", "deepspeed"),
    (r"deepseek|dualpipe", "deepseek"),
    (r"ptd-p|tp\+pp", MEGATRON_2021),
    (r"megascale", "megascale"),
    (r"megatron-lm", "megatron-lm"),
    (r"internevo|internlm", "internevo"),
    (r"nemo", "nemo"),
    (r"megatron|primus", MEGATRON_CORE),
    (r"maxtext|titan|v5|v4|zero-?3", FSDP),
)


def library_named(text: str) -> LibraryDefaults:
    """The library that a name or a description of a run means; Megatron Core for a blank.

    Raises
    ------
    UnknownName
        For a text that names none.

    Examples
    --------
    >>> library_named("Megatron-DeepSpeed 1F1B").name, library_named("").zero
    ('deepspeed', 1)
    """
    name = text.strip().casefold()
    if not name or name in LIBRARIES:
        return LIBRARIES[name or MEGATRON_CORE]
    found = next((one for pattern, one in _STYLES if re.search(pattern, name)), None)
    if found is None:
        raise unknown_name("training library", text, list(LIBRARIES))
    return LIBRARIES[found]
