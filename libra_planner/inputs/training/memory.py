"""What memory a training run needs, where its source says enough for that (C19)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from libra_planner.errors import Fault, SpecError
from libra_planner.inputs.training.rows import TrainingRun
from libra_planner.inputs.training.strategies import refuse_undivided_batch, run_model, run_strategy
from libra_planner.plan.architectures.names import bundled_model
from libra_planner.workload.defaults import LibraryDefaults, library_named
from libra_planner.workload.memory.npu import Memory, memory
from libra_planner.workload.strategy import Strategy


@dataclass(frozen=True)
class RunMemory:
    """Memory of a run.

    Parameters
    ----------
    memory : of an NPU in the fullest stage.
    library : whose habits decide what is kept.
    strategy : what is trained how.
    notes : what the source does not say and was filled in.
    """

    memory: Memory
    library: LibraryDefaults
    strategy: Strategy
    notes: tuple[str, ...]


def run_memory(run: TrainingRun) -> RunMemory:
    """Memory of a run, which needs less of its source than a time does.

    A blank sequence is that of the bundled model; without a batch the pipeline is full.

    Raises
    ------
    SpecError
        For a model that nobody knows, degrees that do not make the NPUs, and a microbatch of which
        neither sequences nor their length are known.

    Examples
    --------
    >>> run = TrainingRun(model="Llama-3.1-8B", gpus=8, cp=2, global_batch=128, seq=8192,
    ...                   parallel_style="NeMo")
    >>> found = run_memory(run)
    >>> round(found.memory.total_bytes / 1e9, 1), found.notes
    (71.0, ('no recomputation', 'ZeRO 1', 'bf16', 'microbatches of 1'))
    """
    library = library_named(run.parallel_style)
    run, notes = _filled_in(run)
    strategy, further = run_strategy(run, library)
    refuse_undivided_batch(strategy)
    found = memory(run_model(run)[0], strategy, habits=library.memory)
    return RunMemory(found, library, strategy, (*notes, *further))


def _filled_in(run: TrainingRun) -> tuple[TrainingRun, tuple[str, ...]]:
    """The run with a sequence and a batch, and what was assumed."""
    notes: tuple[str, ...] = ()
    if not run.seq and not run.microbatch:
        got = "got neither sequence length nor microbatch"
        raise SpecError(Fault(got, "expected one of them for the memory", path="seq"))
    published = bundled_model(run.model).transformer
    if not run.seq and published is not None:
        run = replace(run, seq=published.sequence_tokens)
        notes = (f"sequence {run.seq}, the model's",)
    if not run.global_batch:
        n_npus = (run.tp or 1) * (run.cp or 1) * (run.pp or 1)
        dp = run.dp or max(1, (run.gpus or n_npus) // n_npus)
        n_microbatches = run.grad_accum or 4 * (run.pp or 1)
        run = replace(run, global_batch=dp * (run.microbatch or 1) * n_microbatches)
        notes = (*notes, f"{n_microbatches} microbatches")
    return run, notes
