"""Strategies on their links beside the best of the plan's model: JSON and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from libra_planner.inputs.routed import RoutedStrategies, RoutedStrategy
from libra_planner.step.bands import STRATEGY_TIE_FRACTION
from libra_planner.units import format_time
from libra_planner.views.cells import Block, attributes, table
from libra_planner.views.times.search import (
    STRATEGY,
    dispensable,
    ranks,
    strategy_cells,
    strategy_payload,
    tie_note,
)


def strategies_payload(found: RoutedStrategies | None) -> dict[str, Any]:
    """The key ``strategies_on_links`` of ``optimize --routing --json``; none without a search."""
    if found is None:
        return {}
    rows = [
        strategy_payload(one.strategy)
        | {
            "best_in_model": one is found.best_in_model,
            "model_step_time_s": one.checked.check.ideal_step_time_s,
            "effective_step_time_s": one.step_time_s,
            **attributes(one.checked, "cost_usd", "objective", "meets_limits"),
        }
        for one in found.ranked
    ]
    return {"strategies_on_links": {"n_left": found.n_left, "ranked": rows}}


def strategies_headline(found: RoutedStrategies | None) -> Iterator[str]:
    """Which strategy is the best in the model, and which of those that were checked on links."""
    if found is None:
        return
    best, blind, n = found.best, found.best_in_model, len(found.ranked)
    time = f"[bold]{format_time(best.step_time_s)}[/] there"
    if best is blind:
        others = f", of {n} that were checked there" if n > 1 else ""
        yield f"Best strategy in the model, and on its links{others}: {best.words}, {time}"
        return
    yield f"Best strategy on links, of {n} that were checked there: {best.words}, {time}"
    times = map(format_time, (blind.checked.check.ideal_step_time_s, blind.step_time_s))
    yield "Best in the model: {}, {} there, {} on links".format(blind.words, *times)


def strategies_blocks(found: RoutedStrategies | None) -> Iterator[Block]:
    """The strategies that were checked, and how many were not."""
    if found is None:
        return
    best, headings = found.best, (*STRATEGY, "in the model", "on links", "slowdown")
    if len(found.ranked) > 1:
        ties = [_is_tie(one, best) for one in found.ranked]
        rows = [[i, *_cells(one)] for i, one in zip(ranks(ties), found.ranked, strict=True)]
        narrow = (*dispensable(headings, rows, ("batch",)), "slowdown")
        caption = "Step time of each strategy, with its own optimum in the model"
        yield table("", caption, headings, rows, left=("recompute",), dispensable=narrow)
        yield from tie_note(ties)
    left = f"{found.n_left:,} more" if found.n_left else "no others"
    said = "; they were not checked" if found.n_left else ""
    yield (
        f"Of all degrees and numbers of chunks {left} take less than "
        f"{format_time(best.step_time_s)} in the model at this bandwidth{said}"
    )
    yield ""


def _is_tie(one: RoutedStrategy, best: RoutedStrategy) -> bool | None:
    """Whether a strategy is a tie with the best (C23); ``None`` without a measured class."""
    if best.checked.check.band_s is None:
        return None
    return one.checked.objective <= best.checked.objective * (1 + STRATEGY_TIE_FRACTION)


def _cells(one: RoutedStrategy) -> list[str]:
    report = one.checked.check
    times = map(format_time, (report.ideal_step_time_s, one.step_time_s))
    return [*strategy_cells(one.strategy), *times, f"{report.slowdown.mean():.3f}x"]
