"""One collective on the real links of one switch dimension: imbalance and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from libra_planner.collectives.algorithms import Algorithm
from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.flow import Flows, joined
from libra_planner.flows.loads import ranks
from libra_planner.flows.messages import TrafficSettings, message_flows, placed_npus
from libra_planner.flows.policy import Policy
from libra_planner.flows.rates import max_min_rates
from libra_planner.flows.realization import RealizedDimension
from libra_planner.flows.report import (
    LayerReport,
    followed,
    ideal_makespan_s,
    layer_reports,
    overall_imbalance,
)
from libra_planner.flows.routing import Router, dealt
from libra_planner.flows.traffic import Members, rounds
from libra_planner.flows.trees import reduction_trees, sprayed_trees
from libra_planner.topology import Topology
from libra_planner.workload.parallelism import Group

IN_NETWORK = "in-network"
"""What stands for an algorithm where switches reduce."""

_BYTES = 1e9
"""What an NPU sends in a phase; times are proportional to it."""


@dataclass(frozen=True)
class RoundReport:
    """One round of a phase.

    Parameters
    ----------
    name, share : as in :class:`~libra_planner.flows.traffic.Round`.
    n_flows : of all groups.
    time_s, ideal_s : until its last flow ends, for one unit of traffic; the same when every
        packet is sprayed.
    layers : imbalance by layer.
    fim_percent, fim_floor_percent : over the links between switches; nan if none is used.
    gap : of ``ilp``: what might be saved of the largest count, relative.
    """

    name: str
    share: float
    n_flows: int
    time_s: float
    ideal_s: float
    layers: tuple[LayerReport, ...] = field(repr=False)
    fim_percent: float
    fim_floor_percent: float
    gap: float | None = None


@dataclass(frozen=True)
class PhaseReport:
    """A collective in one dimension, all groups at once.

    Parameters
    ----------
    label : of the dimension.
    group_size, algorithm : who, and how.
    rounds : in order; every NPU waits for the end of each.
    asked_Bps, bandwidth_Bps : per NPU, of the design and of its whole links.
    """

    label: str
    group_size: int
    algorithm: str
    rounds: tuple[RoundReport, ...]
    asked_Bps: float
    bandwidth_Bps: float

    @property
    def time_factor(self) -> float:
        """Time over that of the same bytes at the bandwidth that was asked for."""
        return self._sum("time_s") * self.asked_Bps / _BYTES

    @property
    def ideal_factor(self) -> float:
        """The same with every packet sprayed."""
        return self._sum("ideal_s") * self.asked_Bps / _BYTES

    @property
    def efficiency(self) -> float:
        """Share of the whole links' bandwidth that the phase gets."""
        return _BYTES / (self._sum("time_s") * self.bandwidth_Bps)

    @property
    def slowdown(self) -> float:
        """Time over that with every packet sprayed."""
        return self._sum("time_s") / self._sum("ideal_s")

    @property
    def fim_percent(self) -> float:
        """Mean over the rounds that cross switches, by share; nan without any."""
        return self._mean("fim_percent")

    @property
    def fim_floor_percent(self) -> float:
        """Mean of the least that any routing can reach."""
        return self._mean("fim_floor_percent")

    @cached_property
    def worst(self) -> RoundReport:
        """The round that loses most time."""
        return max(self.rounds, key=lambda one: one.time_s - one.ideal_s)

    def _sum(self, name: str) -> float:
        return float(sum(getattr(one, name) for one in self.rounds))

    def _mean(self, name: str) -> float:
        pairs = [(one.share, getattr(one, name)) for one in self.rounds]
        used = [(share, figure) for share, figure in pairs if not np.isnan(figure)]
        total = sum(share for share, _ in used)
        return sum(share * figure for share, figure in used) / total if used else float("nan")


@dataclass(frozen=True)
class Phase:
    """A collective's part in one switch dimension.

    Parameters
    ----------
    topology, dim, group : where and who.
    algorithm : how; ``None`` where the switches reduce.
    built : the links; a switch with bandwidth.
    settings : placement, queue pairs, addresses.
    npu_at : the NPU of the fabric that runs each NPU of the job, shape (n_npus,); by default
        as the placement says.
    background : flows of other jobs that never end, on the same fabric.
    """

    topology: Topology
    dim: int
    group: Group
    algorithm: Algorithm | None
    built: RealizedDimension
    settings: TrafficSettings
    npu_at: Indices | None = field(default=None, repr=False)
    background: Flows | None = field(default=None, repr=False)

    @property
    def fabric(self) -> Clos:
        """The links."""
        if not isinstance(self.built.fabric, Clos):
            raise ValueError(f"{self.built.label} has no switches")
        return self.built.fabric

    def report(self, policy: Policy, seed: int) -> PhaseReport:
        """Route every round and follow it to its end."""
        found = self._trees(policy, seed) if self.algorithm is None else None
        return PhaseReport(
            label=self.built.label,
            group_size=self.group.sizes[self.dim],
            algorithm=IN_NETWORK if self.algorithm is None else self.algorithm.value,
            rounds=(found,) if found else tuple(self._rounds(policy, seed)),
            asked_Bps=self.built.asked_Bps,
            bandwidth_Bps=self.built.bandwidth_Bps,
        )

    def flows(self, seed: int) -> Iterator[tuple[str, float, Flows]]:
        """Name, share and flows of each round, with spines for ``pinned``."""
        members = Members(self.topology, self.dim, self.group)
        npu_at = self._placed(seed)
        for sent in rounds(members, self.algorithm or Algorithm.RING):
            flows = message_flows(
                self.built,
                members,
                sent,
                npu_at=npu_at,
                settings=self.settings,
                size_bytes=_BYTES,
            )
            yield sent.name, sent.share, dealt(self.fabric, flows)

    def _placed(self, seed: int) -> Indices:
        if self.npu_at is not None:
            return self.npu_at
        return placed_npus(self.topology, self.dim, self.built, self.settings.placement, seed)

    def _rounds(self, policy: Policy, seed: int) -> Iterator[RoundReport]:
        for name, share, own in self.flows(seed):
            flows = own if self.background is None else joined(own, self.background)
            router = Router(self.fabric, flows, policy)
            routing = router.routing(seed)
            alone = router if self.background is None else Router(self.fabric, own, policy)
            layers = layer_reports(self.fabric, routing.counts)
            fim, floor = overall_imbalance(self.fabric, layers, routing.counts)
            yield RoundReport(
                name=name,
                share=share,
                n_flows=own.n_flows,
                time_s=float(followed(routing, flows)[: own.n_flows].max()),
                ideal_s=ideal_makespan_s(alone),
                layers=layers,
                fim_percent=fim,
                fim_floor_percent=floor,
                gap=routing.gap,
            )

    def _trees(self, policy: Policy, seed: int) -> RoundReport:
        """Trees of all groups at once, one per NIC."""
        members = Members(self.topology, self.dim, self.group)
        n_nics, fabric = self.built.n_nics, self.fabric
        host = self.built.port_of_npu[self._placed(seed)]
        group = (members.instance[:, None] * n_nics + np.arange(n_nics)).ravel()
        even = sprayed_trees(fabric, host.ravel(), group)
        trees = even
        if policy.name != "spray":
            root = _roots(fabric, host.ravel(), group, policy, seed)
            trees = reduction_trees(fabric, host.ravel(), group, root)
        rate, best = (max_min_rates(x.routes, fabric.capacity_Bps).min() for x in (trees, even))
        share = _BYTES / n_nics
        layers = layer_reports(fabric, trees.counts)
        fim, floor = overall_imbalance(fabric, layers, trees.counts)
        n_groups = even.routes.n_flows
        return RoundReport("trees", 1.0, n_groups, share / rate, share / best, layers, fim, floor)


def _roots(fabric: Clos, host: Indices, group: Indices, policy: Policy, seed: int) -> Indices:
    """Root of each group's tree: drawn under ECMP, else the groups of a plane take turns."""
    n_groups = int(group.max()) + 1
    if policy.name == "ecmp":
        return np.random.default_rng([seed, 0x54524545]).integers(2**31, size=n_groups)
    plane = np.empty(n_groups, dtype=np.int64)
    plane[group] = fabric.plane_of(host)
    return ranks(plane)
