"""How a plan trains a model: degrees, batch, memory savings, overlap; a library fills the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from libra_planner.errors import SpecError
from libra_planner.reading.models import Count, Model
from libra_planner.step.pipeline import batch_fault
from libra_planner.workload.defaults import LibraryDefaults
from libra_planner.workload.kernels import width
from libra_planner.workload.strategy import (
    PipelineSchedule,
    Recompute,
    Strategy,
)
from libra_planner.workload.volumes import EXPERT, Formats, Habits

Share = Annotated[float, Field(ge=0, le=1)]


class OverlapSpec(Model):
    """Share of each axis' communication that may hide behind compute; the rest the library's.

    Parameters
    ----------
    tp : 1 with user buffers in Megatron Core, 0 in plain Megatron-LM.
    cp : 1: a ring's next keys and values travel while attention works on the last ones.
    ep : 0: dispatch and combine are waited for; more where batches are overlapped.
    dp : 1 with overlap_grad_reduce and overlap_param_gather, and in FSDP.
    p2p : Whether pipeline sends hide: overlap_p2p_comm, with interleaved schedules.
    """

    tp: Share | None = None
    cp: Share | None = None
    ep: Share | None = None
    dp: Share | None = None
    p2p: bool | None = None


DataType = Literal["fp32", "bf16", "fp16", "fp8"]


class ExchangesSpec(Model):
    """What ranks exchange, and how, where the library's way is not meant (C16).

    Parameters
    ----------
    dispatch : Numbers of tokens on their way to experts, such as fp8.
    combine : Of tokens on their way back.
    gradients : Of exchanged gradients.
    weights : Of gathered weights.
    experts_on_at_most : Servers that the experts of a token stand on; one copy goes to each.
    token_copies : What gets a copy of a token over NICs: each node that has experts of it (as
        DeepEP sends), or each expert.
    cp : How context parallelism exchanges keys and values.
    """

    dispatch: DataType | None = None
    combine: DataType | None = None
    gradients: DataType | None = None
    weights: DataType | None = None
    experts_on_at_most: Count | None = None
    token_copies: Literal["node", "expert"] | None = None
    cp: Literal["ring", "all-gather", "all-to-all"] | None = None

    @model_validator(mode="after")
    def _nodes_have_copies(self) -> ExchangesSpec:
        if self.token_copies == EXPERT and self.experts_on_at_most is not None:
            raise ValueError(
                "got token_copies: expert beside experts_on_at_most, expected one of them: that "
                "limit is of nodes with one copy each"
            )
        return self

    def formats(self, usual: Formats) -> Formats:
        """Bytes of a number, by what is exchanged."""
        names = {"dispatch": self.dispatch, "combine": self.combine}
        names |= {"gradient": self.gradients, "weight": self.weights}
        said = {f"{name}_bytes": width(one) for name, one in names.items() if one is not None}
        return replace(usual, **said)

    def habits(self, usual: Habits) -> Habits:
        """Which of several ways."""
        most = self.experts_on_at_most or usual.experts_on_at_most
        found = replace(usual, experts_on_at_most=most, cp=self.cp or usual.cp)
        return found if self.token_copies is None else found.with_copies(self.token_copies)


class DegreesSpec(Model):
    """Degrees of parallelism, innermost first, and how a step is trained.

    Parameters
    ----------
    tp : Tensor parallelism.
    cp : Context parallelism.
    dp : Data parallelism.
    pp : Pipeline stages.
    ep : Expert parallelism, over ranks of tp, cp and dp.
    etp : Tensor parallelism of experts.
    order : Axes from the innermost, [tp, cp, dp, pp] by default.
    interleave : Chunks of layers of each pipeline stage.
    microbatch : Sequences of a microbatch.
    schedule : Of the pipeline: 1f1b (interleaved with interleave), zb-h1, zb-h2.
    zero : ZeRO stage; 3 is FSDP.
    recompute : Activations computed again in the backward pass.
    sequence_parallel : Norms split over tp.
    """

    tp: Count = 1
    cp: Count = 1
    dp: Count
    pp: Count = 1
    ep: Count = 1
    etp: Count = 1
    order: list[Literal["tp", "cp", "dp", "pp"]] | None = None
    interleave: Count = 1
    microbatch: Count = 1
    schedule: Literal["1f1b", "zb-h1", "zb-h2"] = "1f1b"
    zero: Annotated[int, Field(ge=0, le=3)] | None = None
    recompute: Literal["none", "selective", "full"] | None = None
    sequence_parallel: bool | None = None

    @property
    def step_keys(self) -> tuple[str, ...]:
        """Keys that only the step of a whole model has."""
        return tuple(self.model_fields_set - {"tp", "dp"})


class OpenDegreesSpec(Model):
    """Degrees that are fixed; a search chooses the rest.

    Parameters
    ----------
    rest : auto: a search chooses all that is not fixed here.
    tp, cp, dp, pp, ep : Degree that every strategy has; without it the search chooses one.
    etp : Tensor parallelism of experts that every strategy has; 1 without it.
    interleave, microbatch, zero, recompute : Value that every strategy has; without it the search
        chooses one.
    sequence_parallel : Norms split over tp; without it as the library does.
    """

    rest: Literal["auto"]
    tp: Count | None = None
    cp: Count | None = None
    dp: Count | None = None
    pp: Count | None = None
    ep: Count | None = None
    etp: Count | None = None
    interleave: Count | None = None
    microbatch: Count | None = None
    zero: Annotated[int, Field(ge=0, le=3)] | None = None
    recompute: Literal["none", "selective", "full"] | None = None
    sequence_parallel: bool | None = None

    @property
    def choices(self) -> dict[str, Any]:
        """What is fixed, as the choices of a search."""
        said = self.model_dump(exclude_none=True, exclude={"rest", "sequence_parallel"})
        if self.recompute is not None:
            said["recompute"] = Recompute[self.recompute.upper()]
        return {name: (value,) for name, value in said.items()}


def plan_strategy(
    library: LibraryDefaults,
    degrees: DegreesSpec,
    global_batch: int,
    dtype: str,
    overlap: OverlapSpec | None = None,
) -> Strategy:
    """What a plan says of a strategy, and the library's defaults for the rest.

    Raises
    ------
    SpecError
        For a batch that replicas and microbatches do not divide.
    """
    one = degrees
    n_stages = one.pp if one.interleave > 1 else 1
    if fault := batch_fault(global_batch, one.dp, one.microbatch, n_stages):
        raise SpecError(fault)
    is_split, recompute = library.sequence_parallel, library.recompute
    if one.sequence_parallel is not None:
        is_split = one.sequence_parallel
    if one.recompute is not None:
        recompute = Recompute[one.recompute.upper()]
    given = {} if overlap is None else overlap.model_dump(exclude_none=True)
    usual = replace(library.overlap, p2p=library.overlap.p2p and one.interleave > 1)
    return Strategy(
        **{name: getattr(one, name) for name in ("tp", "cp", "dp", "pp", "ep", "etp")},
        global_batch=global_batch,
        microbatch=one.microbatch,
        interleave=one.interleave,
        zero=library.zero if one.zero is None else one.zero,
        recompute=recompute,
        sequence_parallel=is_split and one.tp > 1,
        flash_attention=library.flash_attention,
        schedule=PipelineSchedule(one.schedule),
        overlap=replace(usual, **given),
        dtype=dtype,
    )


def hidden_text(strategy: Strategy, axis: str) -> str:
    """How much of an axis' communication hides, for people.

    >>> hidden_text(Strategy(tp=2, sequence_parallel=True), "tp")
    'tp 0% but for inputs gathered again'
    """
    share = getattr(strategy.overlap, axis)
    gathers = axis == "tp" and strategy.sequence_parallel and not share
    return f"{axis} {share:.0%}{' but for inputs gathered again' * bool(gathers)}"


def copies_text(habits: Habits) -> str:
    """How tokens go to experts on other nodes, for people.

    >>> copies_text(Habits()), copies_text(Habits(experts_on_at_most=4))
    ('a copy of a token to each expert', 'tokens once per node (as DeepEP), on at most 4 nodes')
    """
    if not habits.sends_once_per_node:
        return "a copy of a token to each expert"
    most = habits.experts_on_at_most
    limit = "" if most is None else f", on at most {most} node{'s' * (most > 1)}"
    return f"tokens once per node (as DeepEP){limit}"


def degrees_text(strategy: Strategy) -> str:
    """Degrees above 1, for people.

    >>> degrees_text(Strategy(tp=8, dp=4, pp=2, ep=4, global_batch=64)), degrees_text(Strategy())
    ('TP 8 x PP 2 x DP 4, experts EP 4', 'one NPU')
    """
    axes = ("tp", "cp", "pp", "dp")
    degrees = " x ".join(
        f"{x.upper()} {getattr(strategy, x)}" for x in axes if getattr(strategy, x) > 1
    )
    if strategy.ep > 1 or strategy.etp > 1:
        degrees += f", experts EP {strategy.ep}" + f" x ETP {strategy.etp}" * (strategy.etp > 1)
    return degrees or "one NPU"


def strategy_text(strategy: Strategy) -> str:
    """Degrees, chunks, and what saves memory, for people: one line of a table.

    >>> strategy_text(Strategy(tp=2, dp=4, pp=2, interleave=5, global_batch=64, zero=1))
    'TP 2 x PP 2 x DP 4, 5 chunks a stage, microbatch 1, ZeRO 1, recomputation none'
    """
    chunks = f", {strategy.interleave} chunks a stage" * (strategy.interleave > 1)
    batch = f", microbatch {strategy.microbatch}"
    return f"{degrees_text(strategy)}{chunks}{batch}, {_memory_text(strategy)}"


def _memory_text(strategy: Strategy) -> str:
    """What is sharded and what is computed again."""
    recompute = Recompute(int(strategy.recompute)).name.lower()
    return f"ZeRO {strategy.zero}, recomputation {recompute}"


def strategy_words(
    strategy: Strategy, library: LibraryDefaults, *, has_loop: bool = False
) -> list[str]:
    """Degrees, batch, memory savings and overlap, for people to read.

    Parameters
    ----------
    strategy, library : as they say.
    has_loop : whether a loop says what hides, but for sends.

    Examples
    --------
    >>> from libra_planner.workload.defaults import LIBRARIES
    >>> one = Strategy(tp=8, dp=4, pp=2, global_batch=64, zero=1)
    >>> strategy_words(one, LIBRARIES["megatron-core"])[0]
    'TP 8 x PP 2 x DP 4'
    """
    m = strategy.n_microbatches
    parts = f"{m:,} microbatch{'es' * (m > 1)} of {strategy.microbatch}"
    batch = f"{strategy.global_batch:,} sequences in {parts}"
    words = [degrees_text(strategy), batch]
    if strategy.pp > 1:
        chunks = f", {strategy.interleave} chunks a stage" * (strategy.interleave > 1)
        words.append(f"pipeline {strategy.schedule}{chunks}")
    words.append(_memory_text(strategy))
    if strategy.tp > 1:
        words.append(
            "sequence parallel" if strategy.sequence_parallel else "no sequence parallelism"
        )
    shares = strategy.overlap
    hidden = [hidden_text(strategy, axis) for axis in ("tp", "cp", "ep", "dp")]
    sends = "p2p" if shares.p2p else "no p2p"
    if has_loop:
        sends = "sends hide" if shares.p2p else "sends do not hide"
        return [*words, sends] if strategy.pp > 1 else words
    words.append(f"overlap as {library.name}: {', '.join(hidden)}, {sends}")
    return words
