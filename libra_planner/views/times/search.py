"""The best strategies of a search: the JSON of ``search --json``, and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from libra_planner.inputs.training.bands import step_band_s
from libra_planner.inputs.training.planned import PlannedRun
from libra_planner.plan.scale_up import experts_notes
from libra_planner.plan.steps.batches import batch_notes
from libra_planner.problem import Problem
from libra_planner.search.best import Candidate, SearchResult
from libra_planner.step.bands import (
    MEMORY_ERROR_FRACTION,
    MOST_MEASURED_CHUNKS,
    STRATEGY_TIE_FRACTION,
    beyond_measured_chunks,
)
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.memory_use import is_certain
from libra_planner.step.model_training import ModelTraining
from libra_planner.step.training import member
from libra_planner.units import (
    BYTES_PER_GB,
    format_bandwidth,
    format_bytes,
    format_time,
    format_usd,
    gigabytes_per_s,
)
from libra_planner.views import plan
from libra_planner.views.bought.racks import rack_notes
from libra_planner.views.bought.thin import MOST_TAPER, thin_notes, thin_tiers
from libra_planner.views.bought.whole_ports import port_notes
from libra_planner.views.cells import Block, escape, table
from libra_planner.views.plan import band_keys
from libra_planner.views.training.copies import copies_notes
from libra_planner.views.training.found import (
    FLATTERED,
    TIES_UNKNOWN,
    in_the_model,
    search_counts,
    verdict,
)
from libra_planner.views.training.step import COUNTED, busy_notes
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import Recompute, Strategy

_DEGREES = ("tp", "cp", "pp", "dp", "ep")
STRATEGY = ("#", *_DEGREES, "chunks", "batch", "micro", "ZeRO", "recompute")
"""Columns of a strategy, behind its place in a ranking."""
_DOUBT = " ?"
"""Sign of memory that may not fit."""
_THIN = " !"
"""Sign of a bandwidth that holds for its strategy and placement only."""
_PLAN_COLUMNS = (*STRATEGY, "step", "tokens/s", "MFU", "cost", "GB/s by dimension", "GB")
"""Of ``search PLAN``."""
_COUNTS = (*_DEGREES, "etp", "interleave", "microbatch", "n_microbatches", "global_batch", "zero")


def search_payload(base: PlannedRun, found: SearchResult, runs: list[PlannedRun]) -> dict[str, Any]:
    """What ``search --json`` prints.

    Parameters
    ----------
    base : what all strategies have in common.
    found : of the search.
    runs : with each of the best strategies.
    """
    return {
        "model": base.model.name,
        "npu": base.npu_name,
        "n_npus": base.fabric.network.topology.n_npus,
        "library": base.library.name,
        "sequence_tokens": base.model.sequence_tokens,
        "topology": str(base.fabric.network.topology),
        "bandwidth_GBps": [gigabytes_per_s(x) for x in base.fabric.bandwidth_bytes_per_s],
        "npu_memory_GB": base.npu_memory_bytes / BYTES_PER_GB,
        **search_counts(found),
        "tie_fraction": STRATEGY_TIE_FRACTION,
        "best": [_row_payload(run) | _tie_key(run_tie(run, runs[0])) for run in runs],
        "notes": [*base.notes],
    }


def strategy_payload(one: Strategy) -> dict[str, Any]:
    """A strategy, for JSON."""
    return {name: int(getattr(one, name)) for name in _COUNTS} | {
        "recompute": Recompute(int(one.recompute)).name.lower(),
        "sequence_parallel": bool(one.sequence_parallel),
    }


def _row_payload(run: PlannedRun) -> dict[str, Any]:
    return strategy_payload(run.strategy) | {
        "step_time_s": run.step_time_s,
        **band_keys(step_band_s(run)),
        "seconds_per_token": run.step_time_s / run.tokens_per_step,
        "tokens_per_s": run.tokens_per_step / run.step_time_s,
        "tokens_per_s_per_gpu": run.tokens_per_s_per_gpu,
        "mfu": run.mfu_fraction(),
        "memory_GB": float(run.memory.total_bytes) / BYTES_PER_GB,
        "memory_is_certain": run.memory_use.is_certain,
    }


def _tie_key(is_tie: bool | None) -> dict[str, bool | None]:
    return {"tie_with_best": is_tie}


def _memory_text(needed_bytes: float, room_bytes: float | None) -> str:
    """GB that an NPU holds, with the sign where whether it fits is not certain (C19)."""
    is_doubtful = room_bytes is not None and not is_certain(needed_bytes, room_bytes)
    return f"{needed_bytes / BYTES_PER_GB:.1f}{_DOUBT * is_doubtful}"


def _memory_note(texts: Sequence[str], room_bytes: float | None, certain: str) -> Iterator[str]:
    """What that sign means, where one of the texts has it, and the best without it."""
    if room_bytes is not None and any(text.endswith(_DOUBT) for text in texts):
        yield (
            f"{_DOUBT.strip()} fits the {format_bytes(room_bytes)} of an NPU by less than the "
            f"{MEMORY_ERROR_FRACTION:.0%} that such figures are off: not certain"
        )
    if certain:
        yield escape(certain)


def _chunks_note(shown: Sequence[Strategy]) -> Iterator[str]:
    """Whether the first has more chunks than any run whose time is known."""
    chunks = [int(one.interleave) for one in shown]
    if beyond := beyond_measured_chunks(chunks[0]):
        usual = next((i for i, n in enumerate(chunks, 1) if n <= MOST_MEASURED_CHUNKS), 0)
        keeps = f"; row {usual} keeps to that" if usual else ""
        yield f"The first has {beyond}{keeps}"


def run_tie(run: PlannedRun, best: PlannedRun) -> bool | None:
    """Whether a strategy is a tie with the best (C23); ``None`` without a measured class."""
    if step_band_s(run) is None:
        return None
    per_token = [one.step_time_s / one.tokens_per_step for one in (run, best)]
    return per_token[0] <= per_token[1] * (1 + STRATEGY_TIE_FRACTION)


def candidate_tie(problem: Problem, found: Candidate, best: Candidate) -> bool | None:
    """The same of a plan's; costs are exact, so that only times make ties."""
    if _band_s(problem, found.optimum.step_time_s) is None:
        return None
    most = best.objective_per_token * (1 + STRATEGY_TIE_FRACTION)
    return found.objective_per_token <= most


def ranks(ties: Sequence[bool | None]) -> list[str]:
    """Places in the ranking, with the sign of a tie with the first."""
    return [f"={i}" if tie and i > 1 else str(i) for i, tie in enumerate(ties, 1)]


def tie_note(ties: Sequence[bool | None]) -> Iterator[str]:
    """What the signs mean, and where nothing is known."""
    if any(ties[1:]):
        yield (
            f"= a tie with the first: within {STRATEGY_TIE_FRACTION:.0%} of it. Only beyond do "
            f"nine of ten pairs of measured runs come in the predicted order"
        )
        yield FLATTERED
    elif len(ties) > 1 and ties[0] is None:
        yield TIES_UNKNOWN


def search_blocks(
    base: PlannedRun, found: SearchResult, runs: list[PlannedRun], certain: str = ""
) -> Iterator[Block]:
    """The best strategies, and how much of the space is proven; the best that certainly fits."""
    topology = base.fabric.network.topology
    speeds = ", ".join(map(format_bandwidth, base.fabric.bandwidth_bytes_per_s))
    yield (
        f"[bold]{escape(base.model.name)}[/], sequences of {base.model.sequence_tokens:,}, on "
        f"{topology.n_npus:,} {base.npu_name}, as {base.library.name} runs it; MFU with {COUNTED}"
    )
    yield f"{topology}: {speeds} per NPU, one direction"
    yield ""
    if runs:
        ties = [run_tie(run, runs[0]) for run in runs]
        rows = [_row(*one) for one in zip(ranks(ties), runs, strict=True)]
        headings = (*STRATEGY, "step", "tokens/s/NPU", "MFU", "GB")
        narrow = dispensable(headings, rows, ("batch", "GB", "tokens/s/NPU"))
        yield table("", "", headings, rows, left=("recompute",), dispensable=narrow)
        yield from tie_note(ties)
        yield from _memory_note([row[-1] for row in rows], base.npu_memory_bytes, certain)
        yield from _chunks_note([run.strategy for run in runs])
    else:
        yield "[bold]No strategy fits.[/]"
    yield ""
    yield from verdict(found)
    if base.notes:
        yield f"Assumed: {escape('; '.join(base.notes))}"


def dispensable(
    headings: Sequence[str], rows: Sequence[Sequence[str]], others: Sequence[str]
) -> tuple[str, ...]:
    """What a narrow terminal loses: first what all strategies have, which one line can say.

    >>> dispensable(("#", "tp", "ep"), [["1", "4", "1"], ["2", "8", "1"]], ("tp",))
    ('ep', 'tp')
    """
    columns = zip(headings, *rows, strict=True)
    same = [name for name, *texts in columns if len(rows) > 1 and len(set(texts)) == 1]
    return tuple(dict.fromkeys([*same, *others]))


def strategy_cells(one: Strategy) -> list[str]:
    """The columns :data:`STRATEGY` of one, but for its place."""
    counts = [str(int(getattr(one, name))) for name in (*_DEGREES, "interleave")]
    batch = [f"{int(one.global_batch):,}", str(int(one.microbatch)), str(int(one.zero))]
    return [*counts, *batch, Recompute(int(one.recompute)).name.lower()]


def _row(rank: str, run: PlannedRun) -> list[str]:
    return [
        rank,
        *strategy_cells(run.strategy),
        format_time(run.step_time_s),
        f"{run.tokens_per_s_per_gpu:,.1f}",
        f"{run.mfu_fraction():.1%}",
        _memory_text(float(run.memory.total_bytes), run.npu_memory_bytes),
    ]


def plan_payload(problem: Problem, found: SearchResult) -> dict[str, Any]:
    """What ``search PLAN --json`` prints."""
    best = [
        candidate_payload(problem, one) | _tie_key(candidate_tie(problem, one, found.best[0]))
        for one in found.best
    ]
    start = {"workload": problem.workload_name, "topology": str(problem.topology)}
    return (
        start
        | {"objective": problem.objective}
        | search_counts(found)
        | {
            "tie_fraction": STRATEGY_TIE_FRACTION,
            "best": best,
            "notes": list(result_notes(problem, found.best[:1])),
        }
    )


def result_notes(problem: Problem, shown: Sequence[Candidate]) -> Iterator[str]:
    """Degrees that fabric and batch rule out; whether the best can be bought as it is."""
    yield from experts_notes(problem)
    for one in shown:
        yield from batch_notes(int(one.strategy.global_batch), problem.topology.n_npus)
        run = _planned(problem, one.strategy)
        yield from busy_notes(run, one.optimum.bandwidth_bytes_per_s)
        yield from copies_notes(run, one.optimum.bandwidth_bytes_per_s)
        yield from thin_notes(problem, one.optimum.bandwidth_bytes_per_s)
        yield from port_notes(problem, one.optimum.bandwidth_bytes_per_s)
        yield from rack_notes(problem, one.optimum.bandwidth_bytes_per_s)


def _planned(problem: Problem, one: Strategy) -> Problem:
    """The plan with a strategy that was found for it, in place of the one it was read with."""
    step, training = problem.step, _training(problem)
    degrees = {axis: int(getattr(one, axis)) for axis in (*_DEGREES, "etp")}
    run = replace(
        training,
        trained=replace(training.trained, strategy=one),
        groups=placed_groups(problem.topology, degrees),
    )
    own = member(run, step.name, 1.0, step.model)
    return replace(problem, step=replace(step, members=(own,)))


def candidate_payload(problem: Problem, found: Candidate) -> dict[str, Any]:
    """A strategy with its fabric, for JSON."""
    one, optimum = found.strategy, found.optimum
    tokens = float(_tokens_per_step(problem, one))
    bandwidth = optimum.bandwidth_bytes_per_s
    bought, room = plan.option_text(problem, bandwidth), _room_bytes(problem)
    return (
        strategy_payload(one)
        | {
            "bandwidth_GBps": [gigabytes_per_s(x) for x in bandwidth],
            "step_time_s": optimum.step_time_s,
            **band_keys(_band_s(problem, optimum.step_time_s)),
            "seconds_per_token": optimum.step_time_s / tokens,
            "tokens_per_s": tokens / optimum.step_time_s,
            "mfu": mfu_fraction(problem, found),
            "cost_usd": optimum.cost_usd,
            "network_cost_usd": float(problem.network_cost_usd(bandwidth)),
            "objective": optimum.objective,
            "lower_bound": optimum.lower_bound,
            "objective_per_token": found.objective_per_token,
            "memory_GB": found.memory_bytes / BYTES_PER_GB,
            "memory_is_certain": room and is_certain(found.memory_bytes, room),
            "notes": list(thin_notes(problem, bandwidth)),
        }
        | ({"option": bought} if bought else {})
    )


def _tokens_per_step(problem: Problem, one: Strategy) -> int:
    return int(one.global_batch) * _training(problem).trained.model.sequence_tokens


def _room_bytes(problem: Problem) -> float | None:
    """Memory of an NPU; ``None`` where it is not known."""
    use = _training(problem).memory
    return None if use is None else use.npu_memory_bytes


def _training(problem: Problem) -> ModelTraining:
    """That of a plan which was searched: every such plan has one of a whole model."""
    return next(one for one in problem.step.trainings if isinstance(one, ModelTraining))


def mfu_fraction(problem: Problem, found: Candidate) -> float | None:
    """Model FLOP/s over the peak of the NPUs (C18); ``None`` where nobody says the peak."""
    training, one = _training(problem), found.strategy
    peak = training.npu_peak_flops * int(one.n_npus)
    flops = training.trained.model.flops_per_token() * _tokens_per_step(problem, one)
    return float(flops) / found.optimum.step_time_s / peak if peak else None


def _band_s(problem: Problem, step_time_s: float) -> tuple[float, float] | None:
    """Ends of the error band of a step (C23); ``None`` without a measured class."""
    error = problem.step.error_fraction
    if error is None or not isinstance(problem.step.model, Calibrated):
        return None
    return step_time_s / (1 + error), step_time_s / (1 - error)


def plan_blocks(problem: Problem, found: SearchResult, certain: str = "") -> Iterator[Block]:
    """The best strategies of a plan, each with its best fabric, and how much is proven."""
    yield (
        f"[bold]{escape(problem.workload_name)}[/] on {problem.topology}, objective "
        f"{problem.objective} per token; every strategy with the best bandwidth for it; MFU with "
        f"{COUNTED}"
    )
    yield ""
    ties = [candidate_tie(problem, one, found.best[0]) for one in found.best]
    rows = [_candidate_row(problem, *one) for one in zip(ranks(ties), found.best, strict=True)]
    if rows:
        narrow = dispensable(_PLAN_COLUMNS, rows, ("GB/s by dimension", "batch", "GB", "cost"))
        left = ("recompute",)
        yield table("", "", _PLAN_COLUMNS, rows, left=left, dispensable=narrow)
        yield from tie_note(ties)
        yield from _thin_note(problem, found.best)
        yield from _memory_note([row[-1] for row in rows], _room_bytes(problem), certain)
        yield from _chunks_note([one.strategy for one in found.best])
        yield ""
    yield from verdict(found)
    yield from in_the_model(found)
    yield from plan.note_lines(result_notes(problem, found.best[:1]))


def _thin_note(problem: Problem, shown: Sequence[Candidate]) -> Iterator[str]:
    """What the sign of a thin tier means, where a row has it."""
    if any(thin_tiers(problem, one.optimum.bandwidth_bytes_per_s) for one in shown):
        yield (
            f"{_THIN.strip()} a tier thinner than {MOST_TAPER:g}:1 to the one inside, which holds "
            "for the strategy of its row and contiguous placement only"
        )


def _candidate_row(problem: Problem, rank: str, found: Candidate) -> list[str]:
    optimum, mfu = found.optimum, mfu_fraction(problem, found)
    thin = _THIN * bool(thin_tiers(problem, optimum.bandwidth_bytes_per_s))
    return [
        rank,
        *strategy_cells(found.strategy),
        format_time(optimum.step_time_s),
        f"{_tokens_per_step(problem, found.strategy) / optimum.step_time_s:,.0f}",
        "" if mfu is None else f"{mfu:.1%}",
        format_usd(optimum.cost_usd),
        " ".join(f"{gigabytes_per_s(x):.1f}" for x in optimum.bandwidth_bytes_per_s) + thin,
        _memory_text(found.memory_bytes, _room_bytes(problem)),
    ]
