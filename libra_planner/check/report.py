"""What a routing does to a fabric, by one seed or many: imbalance, rates, makespan (C10, C11).

Source of the method: FlowTracer (arXiv 2410.17078), which joins the flow tables of
switches into paths and counts flows per egress interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Array, Clos, Flows, Indices, Layer
from libra_planner.routing import loads
from libra_planner.routing.fairness import collective_rates_Bps, collective_times_s
from libra_planner.routing.policy import Policy
from libra_planner.routing.rates import finish_times_s, rates_and_finish_times
from libra_planner.routing.routes import Router, Routing

_NAN = float("nan")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LayerReport:
    """Flows on the links of one layer.

    Parameters
    ----------
    name : such as ``leaf_up``.
    n_links : links that work.
    n_flows : flows that cross the layer.
    fim_percent : C10; nan without flows.
    fim_floor_percent : the least that any routing of whole flows can reach; nan without flows,
        and between switches where packets are sprayed, which can be below it.
    max_over_mean : busiest link over its fair share; nan without flows.
    max_flows : flows on the busiest link.
    n_idle : links without flows.
    is_host : whether it joins hosts, where there is no choice of path.
    """

    name: str
    n_links: int
    n_flows: int
    fim_percent: float
    fim_floor_percent: float
    max_over_mean: float
    max_flows: float
    n_idle: int
    is_host: bool


@dataclass(frozen=True)
class CollectiveRates:
    """How fast collectives are, in the order of their numbers, shape (n_collectives,) each.

    Parameters
    ----------
    rate_Bps : of the slowest flow (C11); infinite for a collective that sends nothing.
    time_s : until the last flow ends in the fluid model.
    sprayed_Bps : the rate with every packet sprayed.
    """

    rate_Bps: Array = field(repr=False)
    time_s: Array = field(repr=False)
    sprayed_Bps: Array = field(repr=False)

    @property
    def worst_Bps(self) -> float:
        """The least rate; nan without a collective that sends."""
        return _known(self.rate_Bps)

    @property
    def worst_sprayed_Bps(self) -> float:
        """The least rate with every packet sprayed."""
        return _known(self.sprayed_Bps)


def _known(rates: Array) -> float:
    least = float(rates.min(initial=np.inf))
    return least if np.isfinite(least) else _NAN


@dataclass(frozen=True)
class FlowReport:
    """One routing of a list of flows.

    Parameters
    ----------
    policy, seed : what routed.
    n_flows : all flows.
    layers : in the order of the fabric.
    fim_percent, fim_floor_percent : over all links between switches (C10); nan if none is used.
    makespan_s : when the last flow ends in the fluid model (C11); nan when not asked for.
    ideal_makespan_s : the same with every flow sprayed over all its paths.
    rate_Bps, finish_s : of each flow, shape (n_flows,); empty when not asked for.
    counts : flows on each link, shape (n_links,).
    links : of each flow, shape (n_flows, n_layers), -1 where it turns earlier; ``None`` for
        sprayed flows.
    gap : of ``ilp``, relative.
    collectives : their rates and times; ``None`` when not asked for.
    """

    policy: Policy
    seed: int
    n_flows: int
    layers: tuple[LayerReport, ...]
    fim_percent: float
    fim_floor_percent: float
    makespan_s: float
    ideal_makespan_s: float
    rate_Bps: Array = field(repr=False)
    finish_s: Array = field(repr=False)
    counts: Array = field(repr=False)
    links: Indices | None = field(repr=False)
    gap: float | None = None
    collectives: CollectiveRates | None = field(default=None, repr=False)

    @property
    def slowdown(self) -> float:
        """Makespan over the ideal one; nan where nothing is sent."""
        ideal = self.ideal_makespan_s
        return self.makespan_s / ideal if ideal > 0 else _NAN


def flow_report(
    fabric: Clos,
    flows: Flows,
    policy: Policy,
    *,
    seed: int = 0,
    with_rates: bool = True,
    progress: Progress | None = None,
) -> FlowReport:
    """Route flows once and measure.

    Parameters
    ----------
    fabric, flows, policy, seed : what is routed and how.
    with_rates : whether to follow the flows to their ends.
    progress : called with ended and all flows while they are followed.

    Raises
    ------
    SpecError
        As :class:`~libra_planner.routing.routes.Router`.

    Examples
    --------
    Two flows on one of two uplinks take twice the time that they need:

    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=4.0, uplink_Bps=4.0)
    >>> ends, sizes, via = np.array([[0, 1], [2, 3]]), np.array([8.0, 8.0]), np.zeros(2, int)
    >>> flows = Flows(*ends, sizes, via=via)
    >>> report = flow_report(fabric, flows, Policy("pinned"))
    >>> report.fim_percent, report.fim_floor_percent, report.makespan_s, report.slowdown
    (150.0, 100.0, 4.0, 2.0)
    """
    router = Router(fabric, flows, policy)
    routing = router.routing(seed)
    rate = finish = np.zeros(0)
    makespan, ideal, collectives = _NAN, _NAN, None
    if with_rates:
        rate, finish = rates_and_finish_s(routing, flows, progress)
        sprayed, sprayed_s = rates_and_finish_s(router.ideal_routing(), flows)
        makespan, ideal = (float(x.max(initial=0.0)) for x in (finish, sprayed_s))
        both = [collective_rates_Bps(flows, x) for x in (rate, sprayed)]
        collectives = CollectiveRates(both[0], collective_times_s(flows, finish), both[1])
    return FlowReport(
        policy=policy,
        seed=seed,
        n_flows=flows.n_flows,
        **imbalances(fabric, routing.counts, policy),
        makespan_s=makespan,
        ideal_makespan_s=ideal,
        rate_Bps=rate,
        finish_s=finish,
        counts=routing.counts,
        links=routing.links,
        gap=routing.gap,
        collectives=collectives,
    )


def rates_and_finish_s(
    routing: Routing, flows: Flows, progress: Progress | None = None
) -> tuple[Array, Array]:
    """Rate of each flow with all flows active, and when it ends (C11)."""
    sizes = flows.size_bytes
    return rates_and_finish_times(routing.routes, routing.capacity_Bps, sizes, progress=progress)


def finish_s_of(routing: Routing, flows: Flows, progress: Progress | None = None) -> Array:
    """When each flow ends, s, shape (n_flows,) (C11)."""
    return finish_times_s(routing.routes, routing.capacity_Bps, flows.size_bytes, progress=progress)


def ideal_makespan_s(router: Router) -> float:
    """Makespan of the same flows when every packet is sprayed."""
    return float(finish_s_of(router.ideal_routing(), router.flows).max(initial=0.0))


def imbalances(fabric: Clos, counts: Array, policy: Policy) -> dict[str, Any]:
    """Imbalance of every layer, and over all links between switches, by the reports' names.

    Parameters
    ----------
    counts : flows on each link, shape (n_links,).
    policy : there is no floor unless all packets of a flow take one path.
    """
    whole = policy.kind.keeps_flows_whole
    layers = tuple(_layer_report(fabric, x, counts[x.links], whole) for x in fabric.layers)
    overall = overall_imbalance_percent(fabric, counts)
    return {"layers": layers, "fim_percent": overall, "fim_floor_percent": mean_floor(layers)}


def _layer_report(fabric: Clos, layer: Layer, counts: Array, whole_flows: bool) -> LayerReport:
    capacity = unequal_capacity(fabric, layer)
    # A leaf's flows stay its own whatever spine they take, and a pod's whatever core.
    demand = np.rint(counts.reshape(layer.n_owners, -1).sum(axis=1)).astype(np.int64)
    floor = None if layer.is_host else _NAN
    if whole_flows and not layer.is_host:
        n_links = np.full(layer.n_owners, layer.n_links // layer.n_owners)
        floor = loads.fim_floor_percent(demand, n_links, capacity=capacity)
    found = layer_figures(layer.name, counts, capacity, floor=floor)
    return replace(found, n_flows=int(demand.sum()))


def layer_figures(
    name: str, counts: Array, capacity: Array | None = None, *, floor: float | None
) -> LayerReport:
    """Figures of a layer from the flows on its links; of capacity 0 are those that failed.

    Host links have no floor but what is: ``None``.
    """
    works = np.ones(len(counts), dtype=np.bool_) if capacity is None else capacity > 0
    fim = float(loads.fim_percent(counts, capacity))
    return LayerReport(
        name=name,
        n_links=int(works.sum()),
        n_flows=int(counts.sum()),
        fim_percent=fim,
        fim_floor_percent=fim if floor is None else floor,
        max_over_mean=float(loads.max_over_mean(counts, capacity)),
        max_flows=float(counts.max(initial=0.0)),
        n_idle=int((works & (counts == 0)).sum()),
        is_host=floor is None,
    )


def unequal_capacity(fabric: Clos, layer: Layer) -> Array | None:
    """Bandwidth of a layer's links where some failed; equal ones count in whole numbers."""
    alive = fabric.alive[layer.links]
    return None if alive.all() else fabric.capacity_Bps[layer.links]


def overall_imbalance_percent(fabric: Clos, counts: Array) -> float:
    """FIM over all links between switches; nan without any."""
    inside = [layer for layer in fabric.layers if not layer.is_host]
    numbers = [counts[layer.links] for layer in inside]
    return float(loads.overall_fim_percent(numbers, [unequal_capacity(fabric, x) for x in inside]))


def mean_floor(layers: Iterable[LayerReport]) -> float:
    """Mean floor of the links between switches, of layers that are used; nan without any."""
    used = [layer for layer in layers if not layer.is_host and layer.n_flows]
    weight = sum(layer.n_links for layer in used)
    floor = sum(layer.fim_floor_percent * layer.n_links for layer in used)
    return floor / weight if weight else _NAN


@dataclass(frozen=True)
class SeedReports:
    """The same flows routed with many seeds.

    Parameters
    ----------
    first : the report of the first seed; what does not depend on the seed is there.
    seeds : shape (n_seeds,).
    fim_percent, makespan_s, slowdown, worst_rate_Bps : shape (n_seeds,); nan where there is none.
        The last is the least rate of a collective.
    rate_Bps : sorted rates of the collectives, from the worst up, each the mean over the seeds,
        shape (n_collectives,); empty when not asked for.
    time_s : mean times of the collectives, in the order of their numbers; as above.
    layer_fim_percent, layer_max_over_mean, layer_max_flows, layer_n_idle : shape
        (n_layers, n_seeds).
    """

    first: FlowReport
    seeds: Indices
    fim_percent: Array
    makespan_s: Array
    slowdown: Array
    worst_rate_Bps: Array
    rate_Bps: Array = field(repr=False)
    time_s: Array = field(repr=False)
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
    n_runs = len(listed) if policy.kind.is_drawn else 1
    rows = [_figures(fabric, first, first.counts, first.collectives)]
    for i, seed in enumerate(listed[1:n_runs].tolist(), start=2):
        collectives = None
        if first.collectives is not None:
            routing = router.routing(seed)
            rate, finish = rates_and_finish_s(routing, flows)
            own = collective_rates_Bps(flows, rate), collective_times_s(flows, finish)
            counts, collectives = (
                routing.counts,
                CollectiveRates(*own, first.collectives.sprayed_Bps),
            )
        else:
            counts = router.counts(seed)
        rows.append(_figures(fabric, first, counts, collectives))
        if progress is not None:
            progress(i, n_runs)
    return _seed_reports(first, listed, rows * (len(listed) // n_runs))


_Row: TypeAlias = tuple[tuple[float, float, float, float], Array, Array, Array]
"""Overall FIM, makespan, slowdown, worst rate; by layer FIM, max over mean, largest count, idle
links; sorted rates and times of the collectives."""


def _figures(
    fabric: Clos, first: FlowReport, counts: Array, collectives: CollectiveRates | None
) -> _Row:
    """Figures of one seed.

    Host links carry the same flows whatever the seed: their figures are those of the first.
    """
    by_layer, overall = _layer_figures(first), overall_imbalance_percent(fabric, counts)
    for i, layer in enumerate(fabric.layers):
        if not layer.is_host:
            n, capacity = counts[layer.links], unequal_capacity(fabric, layer)
            n_idle = (fabric.alive[layer.links] & (n == 0)).sum()
            fim, most = loads.fim_percent(n, capacity), loads.max_over_mean(n, capacity)
            by_layer[i] = fim, most, n.max(), n_idle
    makespan_s = _NAN if collectives is None else float(collectives.time_s.max(initial=0.0))
    return _row(overall, makespan_s, first.ideal_makespan_s, by_layer, collectives)


def _row(
    fim: float, makespan_s: float, ideal_s: float, layers: Array, found: CollectiveRates | None
) -> _Row:
    slowdown = makespan_s / ideal_s if ideal_s > 0 else _NAN
    if found is None:
        return (fim, makespan_s, slowdown, _NAN), layers, np.zeros(0), np.zeros(0)
    return (
        (fim, makespan_s, slowdown, found.worst_Bps),
        layers,
        np.sort(found.rate_Bps),
        found.time_s,
    )


def _layer_figures(report: FlowReport) -> Array:
    """Shape (n_layers, 4)."""
    return np.array(
        [(x.fim_percent, x.max_over_mean, x.max_flows, x.n_idle) for x in report.layers]
    )


def reports_by_seed(reports: Sequence[FlowReport]) -> SeedReports:
    """Reports as those of many seeds, also of fabrics that differ in their failures."""
    rows = [
        _row(x.fim_percent, x.makespan_s, x.ideal_makespan_s, _layer_figures(x), x.collectives)
        for x in reports
    ]
    return _seed_reports(reports[0], np.array([report.seed for report in reports]), rows)


def _seed_reports(first: FlowReport, seeds: Indices, rows: Sequence[_Row]) -> SeedReports:
    """Figures of every seed by name."""
    overall, by_layer, rates, times = (np.array(part) for part in zip(*rows, strict=True))
    fim, makespan_s, slowdown, worst_rate_Bps = overall.T
    fims, ratios, most, n_idle = by_layer.transpose(2, 1, 0)
    return SeedReports(
        first=first,
        seeds=seeds,
        fim_percent=fim,
        makespan_s=makespan_s,
        slowdown=slowdown,
        worst_rate_Bps=worst_rate_Bps,
        rate_Bps=rates.mean(axis=0),
        time_s=times.mean(axis=0),
        layer_fim_percent=fims,
        layer_max_over_mean=ratios,
        layer_max_flows=most,
        layer_n_idle=n_idle,
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

    Raises
    ------
    SpecError
        For less than one.
    """
    if n_seeds is not None and n_seeds < 1:
        raise SpecError(Fault(f"got {n_seeds} seeds", "expected 1 or more"))
    if n_seeds is None and first is None:
        return None
    start = first or 0
    return range(start, start + (1 if n_seeds is None else n_seeds))


@dataclass(frozen=True)
class FlowList:
    """The flows of a file, in its order.

    Parameters
    ----------
    flows : hosts, sizes and, where given, spines, source ports and collectives.
    ids : name of each flow, as the file has it.
    collectives : names that the numbers ``flows.collective`` mean; empty without the column.
    lines : line of the file that each flow is on, shape (n_flows,).
    """

    flows: Flows
    ids: Sequence[str] = field(repr=False)
    collectives: tuple[str, ...]
    lines: Indices = field(repr=False)


@dataclass(frozen=True)
class RoutedList:
    """A flow list on a fabric, and what came of it.

    Parameters
    ----------
    fabric, flows, report : the fabric that ``report`` is about, failures included.
    seeds : reports of many seeds, of which ``report`` is the first; ``None`` for a single one.
    statistics : whether a number of seeds was asked for: figures are then their statistics,
        and otherwise their mean.
    draws : where failures are drawn for every seed, the report of each.
    is_drawn : whether another seed routes in another way, or lets other links fail.
    disconnected_seeds : seeds left out, whose failures cut hosts off.
    """

    fabric: Clos
    flows: FlowList = field(repr=False)
    report: FlowReport
    seeds: SeedReports | None = None
    statistics: bool = False
    draws: tuple[FlowReport, ...] = field(default=(), repr=False)
    disconnected_seeds: tuple[int, ...] = ()
    is_drawn: bool = True

    @property
    def n_routings(self) -> int:
        """Routings that were made: one for all seeds where nothing is drawn."""
        return 1 if self.seeds is None or not self.is_drawn else len(self.seeds.seeds)

    @property
    def ideal_makespan_s(self) -> float:
        """Makespan with every packet sprayed; the mean where seeds draw failures."""
        return float(np.mean([one.ideal_makespan_s for one in self.draws or (self.report,)]))

    @property
    def floor_percent(self) -> float:
        """The least mean FIM of whole flows; it depends on the seed where that draws failures."""
        return float(np.mean([one.fim_floor_percent for one in self.draws or (self.report,)]))

    @property
    def worst_sprayed_Bps(self) -> float:
        """Mean rate of the slowest collective with every packet sprayed; nan when not asked for."""
        found = [one.collectives for one in self.draws or (self.report,)]
        return float(np.mean([_NAN if x is None else x.worst_sprayed_Bps for x in found]))

    @property
    def collective_names(self) -> Sequence[str]:
        """Names of the collectives, in the order of their numbers."""
        return self.flows.collectives or ("all flows",)
