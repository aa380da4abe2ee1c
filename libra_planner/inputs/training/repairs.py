"""Other degrees, or NPUs, for a training run that cannot be as it is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from libra_planner.errors import SpecError
from libra_planner.inputs.training.clusters import FEWEST_NPUS
from libra_planner.inputs.training.rows import TrainingRun
from libra_planner.plain_text import joined
from libra_planner.plan.steps.repairs import Judge, Standing, change_that_stands

Trial = Callable[[TrainingRun], bool]
"""Whether a run fits its NPUs; a SpecError for one that cannot be."""

_DEGREES = ("tp", "cp", "dp", "pp")
_OF_DEGREES = (*_DEGREES, "gpus")
_MOST_NPUS_TRIED = 4
"""Multiples of the degrees, below and above the NPUs, that are tried."""

_MOST_OF_BATCH = 0.1
"""Share of the global batch by which another is near it."""

_OTHERWISE = "change several of the degrees, ep included, the NPUs and the global batch"


def corrected(error: SpecError, run: TrainingRun, trial: Trial) -> SpecError:
    """The same faults with degrees, or NPUs, that pass all other checks; others stay as they are.

    Parameters
    ----------
    error : what is wrong with the run.
    run : as it was asked, with its NPUs.
    trial : tells what becomes of another run.
    """
    columns = {fault.path.rpartition(".")[2] for fault in error.faults}
    n_npus = run.gpus or 0
    if n_npus < FEWEST_NPUS or not columns <= set(_OF_DEGREES):
        return error

    def standing(change: Mapping[str, int]) -> Standing:
        try:
            fits = trial(_with(run, change))
        except SpecError:
            return Standing.REFUSED
        return Standing.RUNS if fits else Standing.OVER_MEMORY

    degrees = {axis: getattr(run, axis) or 1 for axis in _DEGREES}
    n_replica = degrees["tp"] * degrees["cp"] * degrees["pp"]
    degrees["dp"] = run.dp or max(1, n_npus // n_replica)
    untold = "" if run.dp else "dp"
    change = change_that_stands(degrees, n_npus, standing, untold=untold)
    if untold and run.global_batch and columns == {"tp"} and (not change or "cp " in change):
        change = _of_another_batch(degrees, run, n_npus, standing) or change
    if not change and untold:
        change = _of_any_replicas(degrees, n_npus, standing)
    n_each = n_replica * (run.dp or 1)
    others = [n for n in _near(n_npus, n_each) if standing({"gpus": n}) > Standing.REFUSED]
    fix = change
    if others and n_each > 1:
        counts = joined([str(n) for n in _nearest(n_npus, others)], "or")
        fix = f"{change}, or gpus {counts}" if change else f"write gpus {counts}"
    fix = fix or _OTHERWISE
    return SpecError(*(replace(fault, fix=fix) for fault in error.faults))


def _of_another_batch(
    degrees: Mapping[str, int], run: TrainingRun, n_npus: int, judge: Judge
) -> str:
    """Another tp with the replicas that follow, and the nearest batch for them; empty for none.

    A batch of a few sequences more changes less than the split of every sequence over cp does.
    """
    asked, rest, microbatch = run.global_batch or 1, n_npus, run.microbatch or 1
    for axis in ("cp", "pp"):
        rest //= degrees[axis]
    others = [n for n in range(1, rest + 1) if rest % n == 0 and n != degrees["tp"]]
    for tp in sorted(others, key=lambda n: abs(math.log(n / degrees["tp"]))):
        dp = rest // tp
        batch = max(1, round(asked / (dp * microbatch))) * dp * microbatch
        is_near = abs(batch - asked) <= _MOST_OF_BATCH * asked
        change = {"tp": tp, "dp": dp, "global_batch": batch}
        if is_near and judge({**degrees, **change}) == Standing.RUNS:
            return f"write tp {tp} and global_batch {batch}"
    return ""


def _of_any_replicas(degrees: Mapping[str, int], n_npus: int, judge: Judge) -> str:
    """A change of the other degrees with as many replicas as then follow; empty for none."""
    others = {axis: n for axis, n in degrees.items() if axis != "dp"}
    lower = [n for n in range(1, math.isqrt(n_npus) + 1) if n_npus % n == 0]
    for dp in sorted({*lower, *(n_npus // n for n in lower)} - {degrees["dp"]}):

        def of_these(one: Mapping[str, int], dp: int = dp) -> Standing:
            return judge({**one, "dp": dp})

        if change := change_that_stands(others, n_npus // dp, of_these):
            return change
    return ""


def _with(run: TrainingRun, change: Mapping[str, int]) -> TrainingRun:
    """The run with other numbers; one without a batch with one that all degrees divide."""
    tp, cp = change.get("tp", run.tp), change.get("cp", run.cp)
    dp, pp = change.get("dp", run.dp), change.get("pp", run.pp)
    gpus = change.get("gpus", run.gpus)
    batch = change.get("global_batch", run.global_batch)
    batch = batch or (gpus or 1) * (run.microbatch or 1)
    return replace(run, tp=tp, cp=cp, dp=dp, pp=pp, gpus=gpus, global_batch=batch)


def _near(n_npus: int, n_each: int) -> Iterator[int]:
    """Multiples of a number near others."""
    first = n_npus // n_each
    for k in range(first - _MOST_NPUS_TRIED + 1, first + _MOST_NPUS_TRIED + 1):
        if k > 0 and k * n_each != n_npus:
            yield k * n_each


def _nearest(n_npus: int, others: list[int]) -> list[int]:
    """The nearest below and above."""
    below, above = [n for n in others if n < n_npus], [n for n in others if n > n_npus]
    return [*below[-1:], *above[:1]]
