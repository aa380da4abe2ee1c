"""The same flows routed with many seeds, and how many where nobody asks for a number (C12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from libra_planner.check.report import (
    FlowReport,
    LayerReport,
    Progress,
    flow_report,
    followed,
    unequal_capacity,
)
from libra_planner.fabric.clos import Array, Clos, Flows, Indices
from libra_planner.routing.imbalance import fim_percent, max_over_mean, overall_fim_percent
from libra_planner.routing.policy import Policy
from libra_planner.routing.routing import Router

_NAN = float("nan")


@dataclass(frozen=True)
class SeedReports:
    """The same flows routed with many seeds.

    Parameters
    ----------
    first : the report of the first seed; what does not depend on the seed is there.
    seeds : shape (n_seeds,).
    fim_percent, makespan_s, slowdown : shape (n_seeds,); nan where there is none.
    layer_fim_percent, layer_max_over_mean, layer_max_flows, layer_n_idle : shape
        (n_layers, n_seeds).
    """

    first: FlowReport
    seeds: Indices
    fim_percent: Array
    makespan_s: Array
    slowdown: Array
    layer_fim_percent: Array
    layer_max_over_mean: Array
    layer_max_flows: Array
    layer_n_idle: Array


def seed_reports(
    fabric: Clos,
    flows: Flows,
    policy: Policy,
    *,
    seeds: Iterable[int],
    with_rates: bool = True,
    progress: Progress | None = None,
) -> SeedReports:
    """Route flows once per seed.

    Parameters
    ----------
    fabric, flows, policy : what is routed and how.
    seeds : one or more.
    with_rates : whether to follow the flows to their ends each time.
    progress : called with finished and all seeds.
    """
    listed = np.array(list(seeds), dtype=np.int64)
    first = flow_report(fabric, flows, policy, seed=int(listed[0]), with_rates=with_rates)
    router = Router(fabric, flows, policy)
    # A policy that draws nothing gives the same paths for every seed.
    n_runs = len(listed) if policy.is_drawn else 1
    figures = np.empty((n_runs, 2 + 4 * len(fabric.layers)))
    figures[0] = _figures(fabric, first, first.counts, first.makespan_s)
    for i in range(1, n_runs):
        if with_rates:
            routing = router.routing(int(listed[i]))
            makespan = float(followed(routing, flows).max(initial=0.0))
            figures[i] = _figures(fabric, first, routing.counts, makespan)
        else:
            figures[i] = _figures(fabric, first, router.counts(int(listed[i])), _NAN)
        if progress is not None:
            progress(i + 1, n_runs)
    return _summary(first, listed, figures)


def _figures(fabric: Clos, first: FlowReport, counts: Array, makespan_s: float) -> Array:
    """Overall FIM, makespan, and by layer FIM, max over mean, largest count, idle links; in a row.

    Host links carry the same flows whatever the seed: their figures are those of the first.
    """
    inside = [layer for layer in fabric.layers if not layer.is_host]
    by_layer = np.array([_layer_figures(one) for one in first.layers])
    overall = _NAN
    if inside:
        numbers = [counts[layer.links] for layer in inside]
        capacity = [unequal_capacity(fabric, layer) for layer in inside]
        overall = float(overall_fim_percent(numbers, capacity))
        alive = [fabric.alive[layer.links] for layer in inside]
        by_layer[1:-1] = [
            (fim_percent(n, c), max_over_mean(n, c), n.max(), (works & (n == 0)).sum())
            for n, c, works in zip(numbers, capacity, alive, strict=True)
        ]
    return np.concatenate(([overall, makespan_s], by_layer.T.ravel()))


def _layer_figures(one: LayerReport) -> tuple[float, ...]:
    return one.fim_percent, one.max_over_mean, one.max_flows, one.n_idle


def gathered(reports: Sequence[FlowReport]) -> SeedReports:
    """Reports as those of many seeds, also of fabrics that differ in their failures."""
    by_layer = np.array([[_layer_figures(x) for x in report.layers] for report in reports])
    figures = np.array([(x.fim_percent, x.makespan_s, x.slowdown) for x in reports])
    return SeedReports(
        reports[0],
        np.array([report.seed for report in reports]),
        *figures.T,
        *by_layer.transpose(2, 1, 0),
    )


def _summary(first: FlowReport, seeds: Indices, figures: Array) -> SeedReports:
    """Rows of :func:`_figures` by name; one stands for all seeds where nothing is drawn."""
    every = np.broadcast_to(figures, (len(seeds), figures.shape[1])).T
    by_layer = every[2:].reshape(4, len(first.layers), len(seeds))
    ideal = first.ideal_makespan_s
    return SeedReports(
        first=first,
        seeds=seeds,
        fim_percent=every[0],
        makespan_s=every[1],
        slowdown=every[1] / ideal if ideal > 0 else np.full(len(seeds), _NAN),
        layer_fim_percent=by_layer[0],
        layer_max_over_mean=by_layer[1],
        layer_max_flows=by_layer[2],
        layer_n_idle=by_layer[3],
    )


N_ROUTINGS = 10
"""Routings of a policy that draws."""

LEAST_ROUTINGS = 3
"""Routings where there are very many flows."""

MOST_FLOWS = 2_000_000
"""Flows of all routings together, up to which there are more than the least."""


def n_routings(n_flows: int) -> int:
    """Routings of so many flows that are drawn: 1 of none, 10, or as many as have 2,000,000 flows.

    Never fewer than 3. The number of flows decides, and never the clock.

    Examples
    --------
    >>> [n_routings(n_flows) for n_flows in (0, 128, 200_000, 400_000, 10_000_000)]
    [1, 10, 10, 5, 3]
    """
    if not n_flows:
        return 1
    return max(LEAST_ROUTINGS, min(N_ROUTINGS, MOST_FLOWS // n_flows))


def asked_seeds(n_seeds: int | None, first: int | None) -> range | None:
    """The seeds that a user asks for; ``None`` where neither a number nor a seed is given.

    Examples
    --------
    >>> asked_seeds(None, 7), asked_seeds(3, None), asked_seeds(3, 7), asked_seeds(None, None)
    (range(7, 8), range(0, 3), range(7, 10), None)
    """
    if n_seeds is None and first is None:
        return None
    start = first or 0
    return range(start, start + (n_seeds or 1))
