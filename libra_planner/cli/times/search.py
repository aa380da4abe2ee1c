"""``libra-planner search``: the best strategies of a model on NPUs, proven."""

from __future__ import annotations

import argparse
import sys

from libra_planner.api.searches import OF_SEARCH, Found, StrategyFrontier, searched_run
from libra_planner.cli.arguments.making import flag_of, on_flag
from libra_planner.cli.streams import answer, judge_search, search_progress, tell_search
from libra_planner.errors import Infeasible, SolverFailed, SpecError
from libra_planner.inputs.plans import open_plan, strategy_words
from libra_planner.inputs.training.rows import OPTIONS, asked_run
from libra_planner.reading.document import OPTIONS as OPTIONS_OF_PLAN
from libra_planner.search.best import SearchResult
from libra_planner.search.excluded import Excluded
from libra_planner.search.frontier import POINTS, strategy_frontier
from libra_planner.views.times.frontier import frontier_csv

_COLUMNS = {name: OPTIONS[name] for name in OF_SEARCH}
_PLACE = "libra-planner search"
_MOST_BATCH = 10**7
_N_BEST, _N_POINTS = 5, 25
"""Strategies that are ranked, and points of a frontier, unless somebody says."""


def search(options: argparse.Namespace) -> None:
    """``libra-planner search``."""
    _refuse_mixed(options)
    if options.plan is not None:
        _search_plan(options)
        return
    for name in ("model", "npu", "gpus", "global_batch"):
        if getattr(options, name) is None:
            flag = f"--{name.replace('_', '-')}"
            fix = f"{_PLACE} --model llama3-70b --npu h100-sxm --gpus 1024 --global-batch 1024"
            raise SpecError.at(_PLACE, f"got no {flag}", "", f"write e.g. {fix}")
    batches = _batches(options.global_batch)
    try:
        run = asked_run({name: getattr(options, name) for name in OF_SEARCH})
        tell_search()
        n_best, progress = options.top or _N_BEST, search_progress()
        found = searched_run(run, batches, n_best=n_best, progress=progress)
    except SpecError as error:
        raise type(error)(*(on_flag(x, _COLUMNS, _PLACE) for x in error.faults)) from None
    if not found.result.n_candidates:
        expected = "expected a batch that degrees of these NPUs divide"
        raise SpecError.at("--global-batch", f"got {options.global_batch}", expected, "")
    told = found.told
    answer(options, told.to_dict, told.blocks(), then=_then(found.result))
    if not found.result.best and not found.result.was_stopped:
        remedy = "take more NPUs, or larger ones"
        raise Infeasible(f"{_PLACE}: {Excluded.of(found.search).words(remedy)}")
    judge_search(found.result)


def _refuse_mixed(options: argparse.Namespace) -> None:
    """Refuse flags that say nothing together."""
    if options.settings and options.plan is None:
        fix, first = "name the plan, or leave it out", options.settings[0].partition("=")[0]
        flag = OPTIONS_OF_PLAN.get(first, "--set")
        raise SpecError.at(flag, "got no plan", "expected one whose values it overrides", fix)
    for name in ("points", "csv"):
        if getattr(options, name) and not options.pareto:
            raise SpecError.at(f"--{name}", "got no --pareto", "", "add --pareto, or leave it out")
    if options.csv and options.json:
        raise SpecError.at("--csv", "got --json too", "expected one of them", "leave one out")
    if options.pareto and options.top:
        expected = "expected --points: each point is the best at its cost"
        raise SpecError.at("--top", "got --pareto too", expected, "leave one out")
    if options.pareto and options.plan is None:
        got, expected = "got no plan", "expected one with prices: on a given fabric cost is fixed"
        fix = f"write e.g. {_PLACE} 0d_llama3_70b --pareto"
        raise SpecError.at("--pareto", got, expected, fix)


def _search_plan(options: argparse.Namespace) -> None:
    given = [name for name in _COLUMNS if getattr(options, name) is not None]
    if given:
        flags = ", ".join(map(flag_of, given))
        raise SpecError.at(_PLACE, f"got {flags} beside a plan, which says that", "", "remove it")
    batches = _batches(options.global_batch) if options.global_batch else ()
    if options.pareto:
        print_frontier(options, batches)
        return
    tell_search()
    opened = open_plan(options.plan, options.settings, parts=options.parts)
    found = opened.search(batches, n_best=options.top or _N_BEST).run(search_progress())
    if not found.best and not found.was_stopped and not options.json:
        raise opened.nothing_found(found, batches)
    certain = opened.certain_words(found, batches)
    told = Found(found, opened.base, certain=certain)
    answer(options, told.to_dict, told.blocks(), then=_then(found, options.plan))
    if not found.best and not found.was_stopped:
        raise opened.nothing_found(found, batches)
    judge_search(found)


def _then(found: SearchResult, plan: str = "a plan") -> str:
    """Where the best strategy goes."""
    return (
        f"in {plan} write parallelism: {strategy_words(found.best[0].strategy)}"
        if found.best
        else ""
    )


def print_frontier(options: argparse.Namespace, batches: tuple[int, ...] = ()) -> None:
    """Print the frontier of cost and time over all strategies, of ``pareto`` too."""
    tell_search()
    settings = [*options.settings, "objective=performance"]
    opened = open_plan(options.plan, settings, parts=options.parts)
    problem, n_points = opened.base, options.points or _N_POINTS
    found = strategy_frontier(opened.search(batches), problem, n_points, search_progress(POINTS))
    if options.csv:
        sys.stdout.write(frontier_csv(problem, found))
    else:
        told = StrategyFrontier(problem, found)
        answer(options, told.to_dict, told.blocks())
    if found.was_stopped:
        n = f"{len(found.points)} of {found.n_points}"
        raise SolverFailed(f"{_PLACE}: stopped; {n} points are proven")
    judge_search(found.total)


def _batches(text: str) -> tuple[int, ...]:
    """Global batches, separated by commas."""
    found = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in found):
        expected = "expected sequences per step, such as 1024 or 1024,2048"
        raise SpecError.at("--global-batch", f"got {text!r}", expected, "")
    sizes = tuple(map(int, found))
    if not 1 <= min(sizes) <= max(sizes) <= _MOST_BATCH:
        expected = f"expected from 1 to {_MOST_BATCH:,}"
        raise SpecError.at("--global-batch", f"got {text!r}", expected, "")
    return sizes
