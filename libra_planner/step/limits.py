"""What a model allows a strategy to be: which degrees divide what they split (C15)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from libra_planner.errors import Fault, SpecError, nearest_divisors, refuse
from libra_planner.fabric.topology import Topology
from libra_planner.workload.memory.stages import most_layers
from libra_planner.workload.placement import (
    DEFAULT_ORDER,
    misfit_words,
    other_degree,
    placed_groups,
)
from libra_planner.workload.strategy import Strategy
from libra_planner.workload.transformer import Transformer

N_ENDS = 2
"""Chunks that may be without a layer: those of the embedding and of the logits (Megatron's
``account_for_embedding_in_pipeline_split``; Llama 3 405B has 126 layers on 128 chunks)."""


def refuse_impossible(model: Transformer, strategy: Strategy, *, was_run: bool = False) -> None:
    """Refuse one strategy that cannot split a model, with every fault.

    Parameters
    ----------
    model, strategy : what is split, and how.
    was_run : of a published run, whose library may have had unequal chunks: they pass.

    Raises
    ------
    SpecError
        For degrees that do not divide what they split, more stages than layers, unequal chunks of
        a stage, and experts with tensor parallelism whose norms are whole, which trainers do not
        offer.

    Examples
    --------
    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> gpt3 = Transformer("gpt3", 96, 12288, Attention(96, 96, 128, 128), FeedForward(49152), 2048)
    >>> refuse_impossible(gpt3, Strategy(tp=8, pp=16))
    >>> refuse_impossible(gpt3, Strategy(tp=7))
    Traceback (most recent call last):
    ...
    libra_planner.errors.SpecError: parallelism.tp: got tp 7, expected a divisor of the 96 heads ...
    """
    chunks = () if was_run else _chunk_faults(model, strategy)
    refuse([*_faults(model, strategy), *chunks])


def _chunk_faults(model: Transformer, one: Strategy) -> Iterator[Fault]:
    """Chunks that do not divide a stage; of too many for the model something else is told."""
    layers, most = int(most_layers(model.n_layers, one.pp)), model.n_layers + N_ENDS
    if one.pp > model.n_layers or one.pp * one.interleave > most or layers % one.interleave == 0:
        return
    fitting = [v for v in range(1, layers + 1) if layers % v == 0 and one.pp * v <= most]
    expected = f"expected a divisor of the {layers} layers of a stage of {model.name}"
    fix = f"write {' or '.join(map(str, fitting))}"
    path = "parallelism.interleave"
    yield Fault(f"got {one.interleave} chunks of a stage", expected, fix, path)


def _faults(model: Transformer, one: Strategy) -> Iterator[Fault]:
    heads, seq = model.attention.n_heads, model.sequence_tokens
    if heads % one.tp:
        yield _divisor("tp", one, heads, f"{heads} heads of {model.name}")
    if seq % one.cp:
        yield _divisor("cp", one, seq, f"{seq:,} tokens of a sequence")
    n_parts = one.pp * one.interleave
    if one.pp > model.n_layers or n_parts > model.n_layers + N_ENDS:
        got = f"got {one.pp} stages of {one.interleave} chunks"
        most = f"the {model.n_layers} layers of {model.name}"
        expected = f"expected at most {most}, its embedding and its logits in all chunks together"
        yield Fault(got, expected, "lower pp or interleave", "parallelism.pp")
    yield from _expert_faults(model, one)


def _expert_faults(model: Transformer, one: Strategy) -> Iterator[Fault]:
    if model.experts is None:
        for name in ("ep", "etp"):
            if getattr(one, name) > 1:
                got, expected = f"got {name} {getattr(one, name)}", "expected 1"
                fix = "remove it"
                yield Fault(
                    got, f"{expected}: {model.name} has no experts", fix, f"parallelism.{name}"
                )
        return
    if model.experts.n % one.ep:
        n = model.experts.n
        yield _divisor("ep", one, n, f"{n} experts of {model.name}")
    if one.tp > 1 and not one.sequence_parallel:
        got = f"got experts with tp {one.tp} and sequence_parallel: false"
        expected = "expected it true: trainers do not offer the other"
        yield Fault(got, expected, "remove it", "parallelism.sequence_parallel")


def refuse_unplaceable_experts(
    model: Transformer,
    topology: Topology,
    degrees: Mapping[str, int],
    order: Sequence[str] = DEFAULT_ORDER,
) -> None:
    """Refuse groups of experts that the model's experts or the dimensions do not allow.

    Parameters
    ----------
    model : whose experts are spread.
    topology, degrees, order : as :func:`~libra_planner.workload.placement.placed_groups` has them.

    Raises
    ------
    SpecError
        With degrees that both allow, if there are any: else something else is wrong.
    """
    n, ep = 0 if model.experts is None else model.experts.n, degrees.get("ep", 1)
    possible = [x for x in range(1, n + 1) if n % x == 0 and _stands(topology, degrees, order, x)]
    if not possible or ep in possible:
        return
    of_experts = f"expected a divisor of the {n} experts of {model.name}"
    why = misfit_words(topology, ep) if n % ep == 0 else ""
    expected = f"{of_experts} that fits the dimensions" + f": {why}" * bool(why)
    fix = other_degree("ep", ep, possible, topology, n)
    raise SpecError(Fault(f"got ep {ep}", expected, fix, "parallelism.ep"))


def _stands(topology: Topology, degrees: Mapping[str, int], order: Sequence[str], ep: int) -> bool:
    try:
        placed_groups(topology, {**degrees, "ep": ep}, order)
    except SpecError:
        return False
    return True


def _divisor(name: str, one: Strategy, of: int, what: str) -> Fault:
    """A degree that does not divide what it splits; the nearest do that, and the NPUs, too."""
    degree = getattr(one, name)
    ranks = {"tp": one.tp * one.dp, "cp": one.cp * one.dp, "ep": one.tp * one.cp * one.dp}
    fix = nearest_divisors(name, degree, math.gcd(of, ranks[name]))
    got, expected = f"got {name} {degree}", f"expected a divisor of the {what}"
    return Fault(got, expected, fix, f"parallelism.{name}")
