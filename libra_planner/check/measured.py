"""What a tracer saw: hops of flows over interfaces, and how unevenly they lie there (C10).

Source of the method: FlowTracer (arXiv 2410.17078), which joins the flow tables of
switches into paths and counts flows per egress interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from libra_planner.check.report import LayerReport, layer_figures, mean_floor
from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Clos, Indices
from libra_planner.routing import loads

_ORDER = ("host_up", "leaf_up", "spine_up", "core_down", "spine_down", "host_down")


@dataclass(frozen=True)
class Trace:
    """Hops of flows over egress interfaces.

    Parameters
    ----------
    flow, interface : of each hop, shape (n_hops,).
    flow_ids, switches, layers : names by number.
    interface_names : such as ``leaf3 eth5``.
    switch, layer : of each interface, shape (n_interfaces,).
    group : of each interface: the switches whose demand it shares, which no routing changes
        (for links up the switch they leave, for links down the one they reach); -1 unknown.
    is_complete : whether idle interfaces are there too; a trace alone does not show them.
    """

    flow: Indices
    interface: Indices
    flow_ids: Sequence[str] = field(repr=False)
    switches: Sequence[str] = field(repr=False)
    layers: Sequence[str]
    interface_names: Sequence[str] = field(repr=False)
    switch: Indices
    layer: Indices
    group: Indices
    is_complete: bool = False

    @property
    def counts(self) -> Indices:
        """Flows on each interface, shape (n_interfaces,)."""
        return np.bincount(self.interface, minlength=len(self.interface_names))


@dataclass(frozen=True)
class MeasuredGroup:
    """Links of one switch, which is the group, in one layer."""

    layer: str
    group: str
    n_links: int
    n_flows: int
    fim_percent: float
    max_flows: int


@dataclass(frozen=True)
class MeasuredReport:
    """What a trace shows; the fields are those of a predicted report.

    Parameters
    ----------
    trace : where it comes from.
    layers : in the order of a path.
    groups : switch by switch.
    fim_percent, fim_floor_percent : over all links between switches; nan if none is known.
    counts_idle : whether idle links are counted, from a list of interfaces or a fabric.
    """

    trace: Trace = field(repr=False)
    layers: tuple[LayerReport, ...]
    groups: tuple[MeasuredGroup, ...] = field(repr=False)
    fim_percent: float
    fim_floor_percent: float
    counts_idle: bool


def is_host_layer(name: str) -> bool:
    """Whether a layer joins hosts, by its name: ``host_up``, ``host_down``, ``tor_to_host``."""
    return name.startswith("host") or name.endswith("_to_host")


def measured_report(trace: Trace, fabric: Clos | None = None) -> MeasuredReport:
    """Imbalance of each layer of a trace.

    Parameters
    ----------
    trace : hops of flows.
    fabric : where it is known, links of its layers that carry nothing count as idle.

    Raises
    ------
    SpecError
        For a trace with a layer that the fabric does not have, or with more links in one.

    Examples
    --------
    Three flows over two uplinks of one leaf:

    >>> trace = Trace(
    ...     flow=np.arange(3), interface=np.array([0, 0, 1]), flow_ids=["a", "b", "c"],
    ...     switches=["leaf0"], layers=["leaf_up"], interface_names=["leaf0 e0", "leaf0 e1"],
    ...     switch=np.zeros(2, int), layer=np.zeros(2, int), group=np.zeros(2, int))
    >>> round(measured_report(trace).fim_percent, 2)
    33.33
    """
    counts = trace.counts
    n_links = _links_by_layer(trace, fabric)
    order = sorted(range(len(trace.layers)), key=lambda i: _rank(trace.layers[i]))
    # Idle links stand at the end of their layer.
    own = {i: counts[trace.layer == i] for i in order}
    of_layer = {i: np.pad(own[i], (0, n_links[i] - own[i].size)) for i in order}
    inside = [i for i in order if not is_host_layer(trace.layers[i])]
    floors = {i: _floor(trace, i, fabric, n_links[i]) for i in inside}
    layers = tuple(
        layer_figures(trace.layers[i], of_layer[i].astype(np.float64), floor=floors.get(i))
        for i in order
    )
    overall = float(loads.overall_fim_percent([of_layer[i] for i in inside]))
    groups = tuple(group for i in inside for group in _groups(trace, i, counts))
    known = trace.is_complete or fabric is not None
    return MeasuredReport(trace, layers, groups, overall, mean_floor(layers), known)


def _rank(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _links_by_layer(trace: Trace, fabric: Clos | None) -> list[int]:
    """Links of each layer of a trace, idle ones included as far as they are known."""
    seen: list[int] = np.bincount(trace.layer, minlength=len(trace.layers)).tolist()
    if fabric is None:
        return seen
    alive = {layer.name: int(fabric.alive[layer.links].sum()) for layer in fabric.layers}
    if other := [name for name in trace.layers if name not in alive]:
        got = f"got layers called {', '.join(other)}"
        fix = "name the layers in a column layer, or call the switches leaf, spine and core"
        raise SpecError(Fault(got, f"expected those of the fabric: {', '.join(alive)}", fix))
    for name, n_seen in zip(trace.layers, seen, strict=True):
        if n_seen > alive[name]:
            got = f"got {n_seen} links in layer {name}"
            raise SpecError(Fault(got, f"expected at most the {alive[name]} of the fabric"))
    return [alive[name] for name in trace.layers]


def _floor(trace: Trace, index: int, fabric: Clos | None, n_links: int) -> float:
    """The least FIM with each group's flows given; nan where groups or their links are not known.

    Idle links could be any group's, unless a fabric without failures says how many each has.
    nan also for more groups, or links of one, than the fabric has.
    """
    links = (trace.layer == index) & ((fabric is None) | (trace.counts > 0))
    is_broken = fabric is not None and fabric.failed.size
    if is_broken or not links.any() or trace.group[links].min() < 0:
        return float("nan")
    numbers = np.unique(trace.group[links], return_inverse=True)[1]
    demand = np.bincount(numbers, weights=trace.counts[links]).astype(np.int64)
    n_each = np.bincount(numbers)
    if fabric is not None:
        n_groups = fabric.total_leaves
        if len(demand) > n_groups or n_each.max() > n_links // n_groups:
            return float("nan")
        demand = np.pad(demand, (0, n_groups - len(demand)))
        n_each = np.full(n_groups, n_links // n_groups)
    return loads.fim_floor_percent(demand, n_each)


def _groups(trace: Trace, index: int, counts: Indices) -> list[MeasuredGroup]:
    """Each switch of a layer between switches."""
    members = np.flatnonzero(trace.layer == index)
    members = members[np.argsort(trace.switch[members], kind="stable")]
    starts = np.flatnonzero(np.diff(trace.switch[members], prepend=-1))
    return [
        MeasuredGroup(
            layer=trace.layers[index],
            group=trace.switches[trace.switch[links[0]]],
            n_links=len(links),
            n_flows=int(counts[links].sum()),
            fim_percent=float(loads.fim_percent(counts[links])),
            max_flows=int(counts[links].max()),
        )
        for links in np.split(members, starts[1:])
        if len(links)
    ]
