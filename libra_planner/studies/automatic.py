"""Plans that leave their parallelism open: the best strategy is searched, then written in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.topology import parse_topology
from libra_planner.inputs.bills import load_plan
from libra_planner.plan.models import AUTO_PARALLELISM
from libra_planner.problem import Problem
from libra_planner.reading.document import apply_settings, read_document
from libra_planner.search.best import Progress, SearchResult
from libra_planner.step.model_training import ModelTraining
from libra_planner.studies.search import best_strategy
from libra_planner.workload.defaults import LIBRARIES, MEGATRON_CORE
from libra_planner.workload.strategy import Recompute, Strategy

_TP, _PP = (8, 4, 2, 1), (1, 2, 4, 8, 16, 32, 64)
"""Degrees to begin with: any that are possible."""


@dataclass(frozen=True)
class AutomaticPlan:
    """A plan with the strategy that was searched for it.

    Parameters
    ----------
    settings : overrides that make it, those of the caller first.
    result : of the search.
    """

    settings: tuple[str, ...]
    result: SearchResult


def automatic_plan(
    path: str | Path, settings: Sequence[str] = (), *, progress: Progress | None = None
) -> AutomaticPlan | None:
    """The plan with its best strategy; ``None`` for one that says its degrees.

    Parameters
    ----------
    path, settings : as :func:`~libra_planner.plan.problem.load_plan` has them.
    progress : is told what is done.

    Raises
    ------
    SpecError
        For a plan that no degrees make one, with the faults of the first that were tried.
    """
    document = read_document(path)
    apply_settings(document, list(settings))
    value = document.value
    if not isinstance(value, dict) or value.get("parallelism") != AUTO_PARALLELISM:
        return None
    problem = _first_plan(path, settings, value)
    result = best_strategy(problem, progress=progress)
    if not result.best:
        got, fix = "got auto, and no strategy that fits", "take more NPUs, or larger ones"
        raise SpecError(Fault(got, "expected one or more", fix, "parallelism"))
    written = _written(result.best[0].strategy)
    return AutomaticPlan((*settings, f"parallelism={written}"), result)


def _first_plan(path: str | Path, settings: Sequence[str], value: dict[str, Any]) -> Problem:
    """The plan with degrees that are possible, whatever they are worth."""
    faults: SpecError | None = None
    for degrees in _degrees(value):
        try:
            problem = load_plan(path, [*settings, f"parallelism={degrees}", "memory=ignore"])
        except SpecError as error:
            faults = faults or error
        else:
            return _with_overlap(problem, value)
    raise faults or SpecError(Fault("got auto", "expected a topology", path="parallelism"))


def _degrees(value: dict[str, Any]) -> Iterator[str]:
    fabric = value.get("fabric")
    notation = fabric.get("topology") if isinstance(fabric, dict) else None
    n_npus = parse_topology(str(notation)).n_npus
    for pp in _PP:
        for tp in _TP:
            if n_npus % (tp * pp) == 0:
                yield f"{{tp: {tp}, pp: {pp}, dp: {n_npus // (tp * pp)}}}"


def _with_overlap(problem: Problem, value: dict[str, Any]) -> Problem:
    """Pipeline sends hide in strategies that interleave, if the library hides them."""
    (member,) = problem.step.members
    if not isinstance(member.training, ModelTraining):
        return problem
    library = LIBRARIES[value.get("library") or MEGATRON_CORE]
    trained = member.training.trained
    own = trained.strategy
    overlap = replace(own.overlap, p2p=own.overlap.p2p or library.overlap.p2p)
    training = replace(
        member.training, trained=replace(trained, strategy=replace(own, overlap=overlap))
    )
    step = replace(problem.step, members=(replace(member, training=training),))
    return replace(problem, step=step)


def _written(one: Strategy) -> str:
    """A strategy as a plan writes it."""
    names = ("tp", "cp", "dp", "pp", "ep", "etp", "interleave", "microbatch", "zero")
    parts = [f"{name}: {int(getattr(one, name))}" for name in names]
    parts.append(f"recompute: {Recompute(int(one.recompute)).name.lower()}")
    parts.append(f"sequence_parallel: {str(bool(one.sequence_parallel)).lower()}")
    return f"{{{', '.join(parts)}}}"
