"""The step of a whole model: tokens, FLOP/s, and what takes its time (C17, C18)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from libra_planner.check.expected import ExpectedStep, expected_step
from libra_planner.evaluation import Evaluation
from libra_planner.problem import Problem
from libra_planner.step.critical_path import COMPUTE, Share
from libra_planner.step.expression import Array
from libra_planner.units import FLOPS_PER_TFLOPS, format_time

PARTS = {
    "compute_s": "compute",
    "exposed_tp_s": "exposed tensor parallelism",
    "exposed_cp_s": "exposed context parallelism",
    "exposed_ep_s": "exposed exchange of experts",
    "exposed_pp_s": "exposed sends between stages",
    "exposed_dp_s": "exposed gradients and weights",
    "contention_s": "contention of overlapped axes",
    "uneven_stages_s": "waits for the longest stage",
    "bubble_s": "pipeline bubble (its compute)",
    "optimizer_s": "optimizer",
}
"""What reports call the parts of a step."""
COUNTED = "full attention counted"
"""What shows beside an MFU: others count half of it, or 6 FLOPs per parameter alone (C18)."""
LEAST_FRACTION = 5e-4
"""Parts of a step below it are not listed."""
_IDLE = 0.005
"""Share of a step below which an NPU sends next to nothing."""
_COMPUTED = ("compute_s", "uneven_stages_s", "bubble_s", "optimizer_s")
"""Parts that no communication has."""


def work_payload(problem: Problem, step_time_s: float) -> dict[str, float]:
    """Tokens and FLOP/s by the keys of JSON results; none for another step than a model's."""
    training = problem.step.whole_training
    if training is None:
        return {}
    flops = training.model_flops_per_npu(step_time_s)
    tokens = (problem.step.tokens_per_step or 0) / step_time_s
    return {
        "tokens_per_s": tokens,
        "tokens_per_s_per_npu": tokens / problem.topology.n_npus,
        "model_TFLOPps_per_npu": flops / FLOPS_PER_TFLOPS,
        "mfu": flops / training.npu_peak_flops,
    }


def step_payload(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """:func:`work_payload`, and what takes the step's time, which builds it once per part."""
    training = problem.step.whole_training
    if training is None:
        return {}
    bandwidth = evaluation.bandwidth_bytes_per_s
    parts = training.split_s(problem.step.model, bandwidth, evaluation.shares)
    return {**work_payload(problem, evaluation.step_time_s), "time": dict(parts)}


def computed_shares(problem: Problem, evaluation: Evaluation) -> list[Share]:
    """What a step takes without communication: of a whole model, its waits on stages apart."""
    parts = step_payload(problem, evaluation).get("time", {"compute_s": evaluation.compute_s})
    found = [(name, parts[name]) for name in _COMPUTED if parts.get(name)]
    return [Share(COMPUTE if x == "compute_s" else PARTS[x], (), s) for x, s in found]


def step_lines(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """Tokens, FLOP/s and what communication is exposed, for people; nothing for other steps.

    The other parts of a step have rows of their own in the table of its operations.
    """
    found = step_payload(problem, evaluation)
    if not found:
        return
    sent = ((PARTS[name], s) for name, s in found["time"].items() if name not in _COMPUTED)
    ranked = sorted(sent, key=lambda pair: -pair[1])
    shares = ((word, s, s / evaluation.step_time_s) for word, s in ranked)
    if shown := ", ".join(
        f"{word} {format_time(s)} ({share:.1%})"
        for word, s, share in shares
        if share > LEAST_FRACTION
    ):
        yield f"Of it {shown}"
    yield (
        f"[bold]{found['tokens_per_s']:,.0f}[/] tokens/s, "
        f"{found['tokens_per_s_per_npu']:,.0f} per NPU; the model takes "
        f"{found['model_TFLOPps_per_npu']:,.0f} TFLOP/s per NPU, MFU [bold]{found['mfu']:.1%}[/] "
        f"({COUNTED})"
    )


def busy_fractions(problem: Problem, evaluation: Evaluation) -> list[float | None]:
    """By dimension, the share of a step in which an NPU of the fullest stage sends over it."""
    busy_s = problem.step.busy_s(evaluation.bandwidth_bytes_per_s)
    shares = busy_s / evaluation.step_time_s
    return [None if np.isnan(one) else float(one) for one in shares]


def links_hint(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """The share of a whole model's step in which NPUs send through switches.

    That is what hashing may stretch, be it exposed or hidden behind compute.
    """
    if problem.step.whole_training is None:
        return
    shares = zip(problem.topology.labels, busy_fractions(problem, evaluation), strict=True)
    routed = zip(problem.links.networks, shares, strict=True)
    sent = {label: share or 0.0 for has_links, (label, share) in routed if has_links}
    listed = " and ".join(f"{x} for {share:.0%}" for x, share in sent.items() if share > _IDLE)
    if listed:
        is_busy = any(busy_notes(problem, evaluation.bandwidth_bytes_per_s))
        tells = "the first note says more" if is_busy else "check PLAN tells by how much"
        yield (
            f"In the model: NPUs send over {listed} of the step; flows that share links may "
            f"stretch that: {tells}"
        )


def hashed_step(
    problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]
) -> tuple[float, ExpectedStep] | None:
    """A step in the model, and as ECMP is expected to make it; ``None`` unless much longer.

    Of a whole model's step alone; ``bandwidth_bytes_per_s`` per NPU, shape (n_dims,).
    """
    if problem.step.whole_training is None:
        return None
    vector = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
    step_s = float(problem.step_time.seconds(vector))
    hashed = expected_step(problem, vector) if _busy(problem, vector, step_s) else None
    is_longer = hashed is not None and hashed.most_s >= (1 + LEAST_LONGER) * step_s
    return (step_s, hashed) if hashed is not None and is_longer else None


def _busy(problem: Problem, bandwidth_Bps: Array, step_s: float) -> dict[int, float]:
    """Dimensions where flows choose a path, and how much of a step they are busy, if not idle."""
    shares = problem.step.busy_s(bandwidth_Bps) / step_s
    return {dim: float(shares[dim]) for dim in _chosen(problem) if shares[dim] > _IDLE}


def busy_words(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> str:
    """Which dimensions are busy where flows choose a path, and what that costs; mostly empty.

    Of a whole model's step alone; ``bandwidth_bytes_per_s`` per NPU, shape (n_dims,).
    """
    found = hashed_step(problem, bandwidth_bytes_per_s)
    if found is None:
        return ""
    (step_s, hashed), labels = found, problem.topology.labels
    shares = _busy(problem, np.asarray(bandwidth_bytes_per_s, dtype=np.float64), step_s)
    first, *others = [f"{labels[dim]} is busy for {share:.0%}" for dim, share in shares.items()]
    listed = " and ".join([first, *(text.replace(" is busy", "") for text in others)])
    longer = f"{format_time(hashed.mean_s)} ({hashed.mean_s / step_s - 1:+.0%}"
    return (
        f"{listed} of the step in the model; {HASHED} {longer}, the slowest tenth "
        f"{hashed.worst_s / step_s - 1:+.0%})"
    )


def busy_notes(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> Iterator[str]:
    """That a step may be much longer on links: where they are busy and flows choose a path.

    Of a whole model's step alone; ``bandwidth_bytes_per_s`` per NPU, shape (n_dims,).

    Examples
    --------
    >>> import libra_planner as lp
    >>> many = {"tp": 4, "cp": 2, "pp": 4, "dp": 64, "interleave": 20}
    >>> plan = lp.load_plan("0e_rails_2to1", {"parallelism": many})
    >>> [note.split(" in the")[0] for note in busy_notes(plan, [450e9, 50e9, 6.25e9])]
    ['dim3 is busy for 49% of the step']
    >>> list(busy_notes(plan, [450e9, 50e9, 25e9]))
    []
    """
    if words := busy_words(problem, bandwidth_bytes_per_s):
        yield f"{words}; optimize PLAN {ON_LINKS} chooses for the links"


ON_LINKS = "--routing ecmp"
"""Options of ``optimize`` that choose a design for its links."""
HASHED = "ECMP puts several flows on one uplink, and then the step is expected to take"
"""Words before the step that hashing makes, in the mean of routings."""
LEAST_LONGER = 0.05
"""Part of a step by which the mean of a check's routings may exceed it without a note."""


def _chosen(problem: Problem) -> list[int]:
    """Dimensions where flows choose among paths: above leaves, or larger than a switch."""
    above = {dim for stack in problem.topology.stacks for dim in list(stack)[1:]}
    sizes = [block.size for block in problem.topology.dimensions]
    return [
        dim
        for dim, switch in enumerate(problem.links.switches)
        if switch is not None
        and not switch.one_switch
        and (dim in above or sizes[dim] > switch.switch_radix)
    ]
