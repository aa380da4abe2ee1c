"""Imbalance of a real fabric, from the hops that a tracer saw (C10).

Source of the method: FlowTracer (arXiv 2410.17078), which joins the flow tables of
switches into paths and counts flows per egress interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from libra_planner.check.report import LayerReport, layer_figures, mean_floor
from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Array, Clos, Indices
from libra_planner.routing.loads import (
    fim_floor_percent,
    fim_percent,
    overall_fim_percent,
)

_ORDER = ("host_up", "leaf_up", "spine_up", "core_down", "spine_down", "host_down")
_NAN = float("nan")


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
    """Links of one switch in one layer."""

    layer: str
    switch: str
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
    floors = [_layer_floor(trace, i, fabric, n_links[i]) for i in range(len(n_links))]
    layers = tuple(_layer_report(trace, i, n_links[i], floors[i]) for i in order)
    inside = [i for i in order if not is_host_layer(trace.layers[i])]
    overall, floor = _NAN, _NAN
    if inside:
        padded = [_padded(counts[trace.layer == i], n_links[i]) for i in inside]
        overall = float(overall_fim_percent(padded))
        floor = mean_floor(layers)
    groups = tuple(group for i in order for group in _groups(trace, i, counts))
    known = trace.is_complete or fabric is not None
    return MeasuredReport(trace, layers, groups, overall, floor, known)


def _rank(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _links_by_layer(trace: Trace, fabric: Clos | None) -> list[int]:
    """Links of each layer of a trace, idle ones included as far as they are known."""
    seen = np.bincount(trace.layer, minlength=len(trace.layers)).tolist()
    if fabric is None:
        return [int(n) for n in seen]
    alive = {layer.name: int(fabric.alive[layer.links].sum()) for layer in fabric.layers}
    _check_layers(trace, list(alive))
    for name, n_seen in zip(trace.layers, seen, strict=True):
        if n_seen > alive[name]:
            got = f"got {n_seen} links in layer {name}"
            raise SpecError(Fault(got, f"expected at most the {alive[name]} of the fabric"))
    return [alive[name] for name in trace.layers]


def _check_layers(trace: Trace, known: Sequence[str]) -> None:
    """Refuse layers of which the fabric does not say how many links they have."""
    other = [name for name in trace.layers if name not in known]
    if other:
        got = f"got layers called {', '.join(other)}"
        fix = "name the layers in a column layer, or call the switches leaf, spine and core"
        raise SpecError(Fault(got, f"expected those of the fabric: {', '.join(known)}", fix))


def _padded(counts: Indices, n_links: int) -> Array:
    """Counts of a layer with its idle links at the end."""
    return np.concatenate([counts, np.zeros(n_links - len(counts))]).astype(np.float64)


def _layer_report(trace: Trace, index: int, n_links: int, floor: float) -> LayerReport:
    padded = _padded(trace.counts[trace.layer == index], n_links)
    is_host = is_host_layer(trace.layers[index])
    floor = float(fim_percent(padded)) if is_host else floor
    return layer_figures(trace.layers[index], padded, floor=floor, is_host=is_host)


def _layer_floor(trace: Trace, index: int, fabric: Clos | None, n_links: int) -> float:
    """The least FIM with each group's flows given; nan where groups or their links are not known.

    Idle links could be any group's, unless a fabric without failures says how many each has.
    """
    mine = trace.layer == index
    if fabric is None:
        return _floor(trace, mine, None)
    if fabric.failed.size:
        return _NAN
    return _floor(trace, mine & (trace.counts > 0), (fabric.total_leaves, n_links))


def _floor(trace: Trace, links: NDArray[np.bool_], shape: tuple[int, int] | None) -> float:
    """The floor of a layer from its links, or from those in use and the fabric's groups and links.

    nan for links of unknown groups, or more of them than the fabric has.
    """
    if not links.any() or trace.group[links].min() < 0:
        return _NAN
    numbers = np.unique(trace.group[links], return_inverse=True)[1]
    demand = np.bincount(numbers, weights=trace.counts[links]).astype(np.int64)
    n_links = np.bincount(numbers)
    if shape is not None:
        n_groups, n_links_of_all = shape
        per_group = n_links_of_all // n_groups
        if len(demand) > n_groups or n_links.max() > per_group:
            return _NAN
        demand = np.pad(demand, (0, n_groups - len(demand)))
        n_links = np.full(n_groups, per_group)
    return fim_floor_percent(demand, n_links)


def _groups(trace: Trace, index: int, counts: Indices) -> list[MeasuredGroup]:
    """Each switch of a layer between switches."""
    if is_host_layer(trace.layers[index]):
        return []
    members = np.flatnonzero(trace.layer == index)
    members = members[np.argsort(trace.switch[members], kind="stable")]
    starts = np.flatnonzero(np.diff(trace.switch[members], prepend=-1))
    return [
        MeasuredGroup(
            layer=trace.layers[index],
            switch=trace.switches[trace.switch[links[0]]],
            n_links=len(links),
            n_flows=int(counts[links].sum()),
            fim_percent=float(fim_percent(counts[links])),
            max_flows=int(counts[links].max()),
        )
        for links in np.split(members, starts[1:])
        if len(links)
    ]
