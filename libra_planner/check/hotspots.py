"""Where a checked design loses most time, and its flows by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from libra_planner.check.links import CheckReport, LinkCheck
from libra_planner.check.phases import LinkPhase, PhaseReport, RoundReport
from libra_planner.check.report import FlowList, RoutedList, flow_report
from libra_planner.check.stages import PhaseKey, User
from libra_planner.fabric.clos import Flows, Indices

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

    def __getitem__(self, i: Any) -> Any:
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
    users: tuple[User, ...]
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
    losses = _lost_s(links, report)
    for i in np.argsort(-np.array(losses), kind="stable").tolist():
        phase, key = report.phases[i][0], report.keys[i]
        if key[2] is None:
            continue
        at = links.phase(key)
        found = {
            round_name: number
            for round_name, _, flows in at.flows(int(report.seeds[0]))
            if (number := _names(at, flows).number_of(name)) is not None
        }
        if found:
            first = phase.worst.name if phase.worst.name in found else next(iter(found))
            routed = _routed_list(links, report, key, first)
            return TracedFlow(phase.label, first, routed, found[first])
    return None


def hotspot(links: LinkCheck, report: CheckReport, *, always: bool = False) -> Hotspot | None:
    """What loses most against sprayed packets; ``None`` where nothing does.

    Parameters
    ----------
    links, report : the check and what came of it.
    always : where nothing is lost, take the phase that moves most bytes; ``None`` is then left for
        a design without switches.
    """
    lost = _lost_s(links, report)
    if max(lost, default=0.0) <= 0:
        lost = _sent_bytes(links, report) * always
    if not lost:
        return None
    i = int(np.argmax(lost))
    (phase, users), key = report.phases[i], report.keys[i]
    routed = None if key[2] is None else _routed_list(links, report, key, phase.worst.name)
    return Hotspot(phase, users, phase.worst, routed)


def _lost_s(links: LinkCheck, report: CheckReport) -> list[float]:
    """Time of each phase's collectives beyond that of sprayed packets, overlap aside."""
    sent = _sent_bytes(links, report)
    return [
        n_bytes / phase.bandwidth_Bps * (phase.time_factor - phase.ideal_factor)
        if phase.slowdown > 1 + _NEGLIGIBLE
        else 0.0
        for n_bytes, (phase, _) in zip(sent, report.phases, strict=True)
    ]


def _sent_bytes(links: LinkCheck, report: CheckReport) -> list[float]:
    """What an NPU sends in each phase in a step."""
    return [
        float(np.sum([links.phase_bytes(key, one) * one.count for one in users]))
        for key, (_, users) in zip(report.keys, report.phases, strict=True)
    ]


def _routed_list(links: LinkCheck, report: CheckReport, key: PhaseKey, name: str) -> RoutedList:
    seed, phase = int(report.seeds[0]), links.phase(key)
    flows = next(flows for found, _, flows in phase.flows(seed) if found == name)
    routing = flow_report(phase.fabric, flows, report.policy, seed=seed, with_rates=False)
    groups = tuple(f"group {i}" for i in range(int(flows.collective.max(initial=0)) + 1))
    listed = FlowList(flows, _names(phase, flows), groups, np.arange(flows.n_flows))
    return RoutedList(phase.fabric, listed, routing)


def _names(phase: LinkPhase, flows: Flows) -> FlowNames:
    npu_of_port, n_nics = phase.built.npu_of_port, phase.built.n_ports
    n_pairs = -(-phase.settings.n_queue_pairs // n_nics) * n_nics
    return FlowNames(npu_of_port[flows.src], npu_of_port[flows.dst], n_pairs)
