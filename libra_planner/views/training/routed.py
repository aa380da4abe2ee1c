"""Strategies on their links beside the best of the plan's model: JSON and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from libra_planner.check.rerouted import JudgedDesign
from libra_planner.inputs.plans import SearchedPlan
from libra_planner.plan.steps.strategies import degrees_text
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
from libra_planner.workload.strategy import Strategy


@dataclass(frozen=True)
class RoutedStrategy:
    """A strategy with the plan's own optimum for it, on its links.

    Parameters
    ----------
    strategy : itself.
    searched : the plan with it.
    checked : its design.
    """

    strategy: Strategy
    searched: SearchedPlan = field(repr=False)
    checked: JudgedDesign

    @property
    def step_time_s(self) -> float:
        """Mean on its links."""
        return float(self.checked.check.effective_step_time_s.mean())

    @property
    def words(self) -> str:
        """Degrees and chunks, for people."""
        chunks = int(self.strategy.interleave)
        return degrees_text(self.strategy) + f", {chunks} chunks" * (chunks > 1)


@dataclass(frozen=True)
class RoutedStrategies:
    """Strategies on their links.

    Parameters
    ----------
    ranked : the best on links first.
    best_in_model : of all strategies.
    n_left : of other degrees or numbers of chunks that were not checked, and whose step in the
        model, at the bandwidth of the best there, is shorter than that of the best on its links.
    """

    ranked: tuple[RoutedStrategy, ...]
    best_in_model: RoutedStrategy
    n_left: int

    @property
    def best(self) -> RoutedStrategy:
        """On links."""
        return self.ranked[0]


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
