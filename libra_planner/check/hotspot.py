"""The round that costs a step most: its flows, layers and busiest links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from libra_planner.check.links import CheckReport, LinkCheck
from libra_planner.check.phases import PhaseReport, RoundReport
from libra_planner.check.report import FlowList, RoutedList, flow_report
from libra_planner.check.traffic import PhaseKey
from libra_planner.fabric.clos import Flows, Indices
from libra_planner.fabric.realization import RealizedDimension
from libra_planner.workload.operations import Communication

_NEGLIGIBLE = 1e-9
"""Share of a phase's time below which nothing is lost."""


@dataclass(frozen=True)
class FlowNames(Sequence[str]):
    """Names of a round's flows, made when they are asked for: ``3-67``, from NPU to NPU.

    Parameters
    ----------
    src, dst : NPU of the fabric at each end, shape (n_flows,).
    n_pairs : queue pairs per message; with several the name ends with the pair's number.

    Examples
    --------
    >>> FlowNames(np.array([3, 3]), np.array([67, 67]), n_pairs=2)[1]
    '3-67.1'
    """

    src: Indices
    dst: Indices
    n_pairs: int = 1

    def __len__(self) -> int:
        return len(self.src)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[str]: ...
    def __getitem__(self, i: int | slice) -> str | Sequence[str]:
        if isinstance(i, slice):
            return [self[j] for j in range(len(self))[i]]
        pair = f".{i % self.n_pairs}" if self.n_pairs > 1 else ""
        return f"{self.src[i]}-{self.dst[i]}{pair}"

    def number_of(self, name: str) -> int | None:
        """The first flow of a name, whole or without its queue pair."""
        ends, _, pair = name.partition(".")
        src, _, dst = ends.partition("-")
        if not (src.isdecimal() and dst.isdecimal() and (pair.isdecimal() or not pair)):
            return None
        found = np.flatnonzero((self.src == int(src)) & (self.dst == int(dst)))
        place = int(pair or 0)
        return int(found[place]) if place < len(found) else None


@dataclass(frozen=True)
class Hotspot:
    """The phase that loses most time, and its worst round.

    Parameters
    ----------
    phase, users : of the first seed, and the collectives that it serves.
    worst : its round that loses most.
    routed : that round's flows on their links; ``None`` where switches reduce.
    """

    phase: PhaseReport
    users: tuple[Communication, ...]
    worst: RoundReport
    routed: RoutedList | None = field(repr=False)


@dataclass(frozen=True)
class TracedFlow:
    """A flow to be shown hop by hop.

    Parameters
    ----------
    label, round_name : the dimension and the round that it is in.
    routed, number : the round's flows on their links, and which of them it is.
    """

    label: str
    round_name: str
    routed: RoutedList = field(repr=False)
    number: int


def traced_flow(links: LinkCheck, report: CheckReport, name: str) -> TracedFlow | None:
    """The first flow of a name: in the round that loses most, else in any that has it.

    Parameters
    ----------
    links, report : the check and what came of it.
    name : as in :class:`FlowNames`.
    """
    losses = [_lost_s(links, phase, users) for phase, users in report.phases]
    for i in np.argsort(-np.array(losses), kind="stable").tolist():
        phase, key = report.phases[i][0], report.keys[i]
        if key[2] is None:
            continue
        found = _rounds_with(links, key, int(report.seeds[0]), name)
        if found:
            first = phase.worst.name if phase.worst.name in found else next(iter(found))
            routed = _routed(links, report, key, first)
            return TracedFlow(phase.label, first, routed, found[first])
    return None


def _rounds_with(links: LinkCheck, key: PhaseKey, seed: int, name: str) -> dict[str, int]:
    """Rounds of a phase that have a flow of this name, and its number there."""
    phase, found = links.phase(key), {}
    for round_name, _, flows in phase.flows(seed):
        names = _listed(phase.built, flows, links.traffic.n_queue_pairs).ids
        number = names.number_of(name) if isinstance(names, FlowNames) else None
        if number is not None:
            found[round_name] = number
    return found


def hotspot(links: LinkCheck, report: CheckReport) -> Hotspot | None:
    """What loses most against sprayed packets; ``None`` where nothing does.

    Parameters
    ----------
    links, report : the check and what came of it.
    """
    losses = [_lost_s(links, phase, users) for phase, users in report.phases]
    if not losses or max(losses) <= 0:
        return None
    return _hotspot(links, report, int(np.argmax(losses)))


def _hotspot(links: LinkCheck, report: CheckReport, i: int) -> Hotspot:
    """The worst round of a phase as a hotspot."""
    phase, users = report.phases[i]
    routed = None
    if report.keys[i][2] is not None:
        routed = _routed(links, report, report.keys[i], phase.worst.name)
    return Hotspot(phase, users, phase.worst, routed)


def _lost_s(links: LinkCheck, phase: PhaseReport, users: Sequence[Communication]) -> float:
    """Time of the phase's collectives beyond that of sprayed packets, overlap aside."""
    if phase.slowdown <= 1 + _NEGLIGIBLE:
        return 0.0
    dim = links.problem.topology.labels.index(phase.label)
    sent = [links.bytes_of(one)[dim] * one.count for one in users]
    ideal_s = float(np.sum(sent)) / phase.bandwidth_Bps
    return ideal_s * (phase.time_factor - phase.ideal_factor)


def _routed(links: LinkCheck, report: CheckReport, key: PhaseKey, name: str) -> RoutedList:
    seed, phase = int(report.seeds[0]), links.phase(key)
    flows = next(flows for found, _, flows in phase.flows(seed) if found == name)
    routing = flow_report(phase.fabric, flows, report.policy, seed=seed, with_rates=False)
    listed = _listed(phase.built, flows, links.traffic.n_queue_pairs)
    return RoutedList(phase.fabric, listed, routing)


def _listed(built: RealizedDimension, flows: Flows, queue_pairs: int) -> FlowList:
    npu_of_port = built.npu_of_port
    n_pairs = -(-queue_pairs // built.n_nics) * built.n_nics
    names = FlowNames(npu_of_port[flows.src], npu_of_port[flows.dst], n_pairs)
    groups = tuple(f"group {i}" for i in range(int(flows.collective.max(initial=0)) + 1))
    return FlowList(flows, names, groups, np.arange(flows.n_flows))


def most_loaded(links: LinkCheck, report: CheckReport) -> Hotspot | None:
    """:func:`hotspot`, or where nothing is lost the phase that moves most bytes.

    ``None`` for a design without switches.

    Parameters
    ----------
    links, report : the check and what came of it.
    """
    found = hotspot(links, report)
    if found is not None or not report.phases:
        return found
    sent = [_sent_bytes(links, phase, users) for phase, users in report.phases]
    return _hotspot(links, report, int(np.argmax(sent)))


def _sent_bytes(links: LinkCheck, phase: PhaseReport, users: Sequence[Communication]) -> float:
    dim = links.problem.topology.labels.index(phase.label)
    return float(sum(links.bytes_of(one)[dim] * one.count for one in users))
