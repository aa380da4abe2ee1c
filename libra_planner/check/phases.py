"""One collective on the real links of one switch dimension: imbalance and time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Generic, TypeVar

import numpy as np

from libra_planner.check import report, traffic
from libra_planner.check.stages import algorithm_name
from libra_planner.errors import Disconnected, Fault
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.clos import (
    Array,
    Clos,
    Flows,
    Indices,
    all_flows,
    require_connected,
)
from libra_planner.fabric.realization import RealizedDimension
from libra_planner.fabric.topology import TrafficSettings
from libra_planner.routing.fairness import collective_rates_Bps
from libra_planner.routing.loads import ranks
from libra_planner.routing.policy import Policy
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.rehashed import Rehashed
from libra_planner.routing.routes import Router, Routing, paths_over, reduction_trees, with_vias
from libra_planner.step.expression import TimeExpression
from libra_planner.workload.operations import SendPattern

Value = TypeVar("Value")


@dataclass
class Memo(Generic[Value]):
    """Results by key, those used last.

    Parameters
    ----------
    most : results to keep.
    n_made : results made so far.

    Examples
    --------
    >>> squares = Memo(most=2)
    >>> [squares.of(x, lambda: x * x) for x in (2, 3, 2, 4)], squares.n_made
    ([4, 9, 4, 16], 3)
    """

    most: int
    n_made: int = 0
    _found: OrderedDict[Hashable, Value] = field(default_factory=OrderedDict, repr=False)

    def of(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The result of a key, made if it is not there."""
        if key in self._found:
            self._found.move_to_end(key)
            return self._found[key]
        value = self._found[key] = make()
        self.n_made += 1
        if len(self._found) > self.most:
            self._found.popitem(last=False)
        return value


@dataclass(frozen=True)
class RoundReport:
    """One round of a phase.

    Parameters
    ----------
    name, share : as in :class:`~libra_planner.check.traffic.Round`.
    n_flows : of all groups.
    time_s, ideal_s : until its last flow ends, for as much traffic as an NPU's links carry in a
        second; the same when every packet is sprayed.
    layers : imbalance by layer.
    fim_percent, fim_floor_percent : over the links between switches; nan if none is used, and
        for the floor where packets are sprayed.
    group_s : for the slowest flow of each group at its max-min rate with all flows active, as
        time_s, shape (n_groups,).
    gap : of ``ilp``: what might be saved of the largest count, relative.
    """

    name: str
    share: float
    n_flows: int
    time_s: float
    ideal_s: float
    layers: tuple[report.LayerReport, ...] = field(repr=False)
    fim_percent: float
    fim_floor_percent: float
    group_s: Array = field(repr=False, compare=False)
    gap: float | None = None


@dataclass(frozen=True)
class PhaseReport:
    """A collective in one dimension, all groups at once.

    Parameters
    ----------
    label : of the dimension.
    group_size, algorithm : who, and how.
    rounds : in order; every NPU waits for the end of each.
    bandwidth_Bps : per NPU, of the whole links; in a stack, of the tier that is the narrowest for
        these flows.
    share : of it in the bandwidth of an NPU's port.
    """

    label: str
    group_size: int
    algorithm: str
    rounds: tuple[RoundReport, ...]
    bandwidth_Bps: float
    share: float = 1.0

    @property
    def time_factor(self) -> float:
        """Time over that of the same bytes at all the bandwidth of the whole links."""
        return self.share * float(sum(one.time_s for one in self.rounds))

    @property
    def ideal_factor(self) -> float:
        """The same with every packet sprayed."""
        return self.share * float(sum(one.ideal_s for one in self.rounds))

    @property
    def efficiency(self) -> float:
        """Share of the whole links' bandwidth that the phase gets."""
        return 1 / self.time_factor

    @property
    def slowdown(self) -> float:
        """Time over that with every packet sprayed."""
        return self.time_factor / self.ideal_factor

    @property
    def fim_percent(self) -> float:
        """Mean over the rounds that cross switches, by share; nan without any."""
        return known_mean((one.share, one.fim_percent) for one in self.rounds)

    @property
    def fim_floor_percent(self) -> float:
        """Mean of the least that any routing of whole flows can reach."""
        return known_mean((one.share, one.fim_floor_percent) for one in self.rounds)

    @cached_property
    def group_rate_Bps(self) -> Array:
        """Rates of the groups per NPU, the worst first, byte/s: of their slowest flows (C11)."""
        times_s = sum((one.group_s for one in self.rounds), np.zeros(1))
        return np.sort(self.bandwidth_Bps / self.share / times_s)

    @property
    def worst_rate_Bps(self) -> float:
        """The rate of the slowest group."""
        return float(self.group_rate_Bps[0])

    @cached_property
    def worst(self) -> RoundReport:
        """The round that loses most time."""
        return max(self.rounds, key=lambda one: one.time_s - one.ideal_s)


def known_mean(weighted: Iterable[tuple[float, float]]) -> float:
    """Mean of figures by their weights, those that are nan left out; nan where all are.

    >>> known_mean([(1.0, 2.0), (3.0, float("nan"))])
    2.0
    """
    used = [(weight, figure) for weight, figure in weighted if not np.isnan(figure)]
    total = sum(weight for weight, _ in used)
    return sum(weight * figure for weight, figure in used) / total if total else float("nan")


@dataclass(frozen=True)
class CheckMemo:
    """What checks of designs share where the links differ in nothing but their speed.

    Parameters
    ----------
    rounds : of a phase, by all that decides about them.
    sprayed : time of a round with every packet sprayed, s.
    times : of rounds by the paths of their flows, s.
    rehashed : flows of rounds, by what routes them on a fabric with nothing broken.
    steps : step times with collectives slowed down by factors, as expressions in bandwidth.
    """

    rounds: Memo[tuple[RoundReport, ...]] = field(default_factory=lambda: Memo(4096))
    sprayed: Memo[float] = field(default_factory=lambda: Memo(65536))
    times: Memo[float] = field(default_factory=lambda: Memo(65536))
    rehashed: Memo[Sequence[tuple[str, float, Rehashed]]] = field(default_factory=lambda: Memo(16))
    steps: Memo[TimeExpression] = field(default_factory=lambda: Memo(256))


@dataclass(frozen=True)
class LinkPhase(traffic.Members):
    """A collective's part in one switch dimension.

    Parameters
    ----------
    topology, dim, group : where and who.
    algorithm : how; ``None`` where the switches reduce.
    built : the links; a switch with bandwidth.
    settings : placement, queue pairs, addresses.
    share : of the narrowest tier's bandwidth in a port's, as its flows load them (C13).
    npu_at : the NPU of the fabric that runs each NPU of the job, shape (n_npus,); by default
        as the placement says.
    background : flows of other jobs that never end, on the same fabric.
    is_brief : whether rounds tell only their time and FIM: of failures there are thousands.
    """

    algorithm: traffic.Way
    built: RealizedDimension
    settings: TrafficSettings
    share: float = 1.0
    npu_at: Indices | None = field(default=None, repr=False)
    background: Flows | None = field(default=None, repr=False)
    is_brief: bool = False

    @property
    def n_rails(self) -> int:
        """Rails that the group's NPUs exchange across; sends keep to their own."""
        return 1 if isinstance(self.algorithm, SendPattern) else super().n_rails

    @property
    def fabric(self) -> Clos:
        """The links."""
        return self.built.clos

    @cached_property
    def unit_fabric(self) -> Clos:
        """The links with host ports of 1 byte/s: what happens on them is the same at any speed."""
        fabric, speed_Bps = self.fabric, self.fabric.host_Bps
        ratios = fabric.uplink_Bps / speed_Bps, fabric.core_Bps / speed_Bps
        return replace(fabric, host_Bps=1.0, uplink_Bps=ratios[0], core_Bps=ratios[1])

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        """All that decides about :meth:`rounds` on links that ``realize`` has built.

        Which port is whose follows from the topology, the settings and the number of NICs. The
        fabric itself is left out: it would keep arrays of all its links.
        """
        fabric = self.unit_fabric
        settings = self.built.settings
        if settings is not None and settings.switch_port_Bps is settings.uplink_Bps is None:
            settings = replace(settings, port_speed_Bps=None)  # Of all links alike.
        links = settings, self.built.n_ports, self._counts, fabric.failed.tobytes()
        place = None if self.npu_at is None else sha256(self.npu_at.tobytes()).digest()
        who = self.topology, self.dim, self.group, self.algorithm
        return (*who, *links, self.settings, place, self.is_brief)

    @property
    def _counts(self) -> tuple[Hashable, ...]:
        """Of switches and links, and their speeds over a host port's."""
        fabric = self.unit_fabric
        return tuple(getattr(fabric, one.name) for one in fields(fabric) if one.compare)

    def is_drawn(self, policy: Policy) -> bool:
        """Whether another seed gives other times: one switch offers nothing to draw."""
        chosen = policy.kind.is_drawn and self.fabric.n_spines > 0
        return chosen or self.is_placed_at_random

    @cached_property
    def crosses_leaves(self) -> bool:
        """Whether a flow goes to another leaf: those inside a leaf have one path."""
        if self.is_placed_at_random or self.background is not None or self.n_rails > 1:
            return True
        leaf = self.fabric.leaf_of(self.built.port_of_npu[self._positions(0)])
        return bool((leaf != leaf[self.peers(np.zeros_like(self.npus))]).any())

    @property
    def is_placed_at_random(self) -> bool:
        """Whether a seed decides where the job's NPUs are."""
        return self.settings.placement == "random" and self.npu_at is None

    @property
    def n_flows(self) -> int:
        """Flows of all rounds."""
        size, n_nics = self.size, self.built.n_ports
        if self.algorithm is None:
            return self.topology.n_npus // size * n_nics
        n_rounds = {Algorithm.RING: 1, Algorithm.HALVING_DOUBLING: size.bit_length() - 1}
        pairs = -(-self.settings.n_queue_pairs // n_nics) * n_nics
        if isinstance(self.algorithm, SendPattern):
            return sum(len(one.src) for one in traffic.rounds(self, self.algorithm)) * pairs
        return (
            self.topology.n_npus * pairs * n_rounds.get(self.algorithm, (size - 1) * self.n_rails)
        )

    def report(self, policy: Policy, seed: int, memo: CheckMemo) -> PhaseReport:
        """Route every round and follow it to its end; ``memo`` keeps those of a job alone."""
        drawn = seed if self.is_drawn(policy) and self.crosses_leaves else 0
        rounds = partial(self.rounds, policy, drawn, memo)
        alone = self.background is None
        return PhaseReport(
            label=self.built.label,
            group_size=self.group.n_npus,
            algorithm=algorithm_name(self.algorithm),
            rounds=memo.rounds.of((*self.key, policy, drawn), rounds) if alone else rounds(),
            bandwidth_Bps=self.share * self.built.n_ports * self.fabric.host_Bps,
            share=self.share,
        )

    def rounds(self, policy: Policy, seed: int, memo: CheckMemo) -> tuple[RoundReport, ...]:
        """The rounds; they do not depend on the speed of the links."""
        if self.algorithm is None:
            return (self._trees(policy, seed),)
        if self.is_brief and self.background is None:
            return tuple(self._brief_rounds(policy, seed, memo))
        return tuple(self._rounds(policy, seed, memo.sprayed))

    def flows(self, seed: int) -> Iterator[tuple[str, float, Flows]]:
        """Name, share and flows of each round, with spines for ``pinned``.

        An NPU sends as many bytes as it has NICs, which is a second's worth of ``unit_fabric``.
        """
        npu_at, size_bytes = self._positions(seed), float(self.built.n_ports)
        for sent in traffic.rounds(self, self.algorithm or Algorithm.RING):
            flows = traffic.message_flows(
                self.built, self, sent, npu_at=npu_at, settings=self.settings, size_bytes=size_bytes
            )
            yield sent.name, sent.share, with_vias(self.fabric, flows)

    def _positions(self, seed: int) -> Indices:
        if self.npu_at is not None:
            return self.npu_at
        placement = self.settings.placement
        return traffic.placed_npus(self.topology, self.dim, self.built, placement, seed)

    def _rounds(self, policy: Policy, seed: int, memo: Memo[float]) -> Iterator[RoundReport]:
        placed = (*self.key, seed if self.is_placed_at_random else 0)
        for name, share, own in self.flows(seed):
            flows = own if self.background is None else all_flows(own, self.background)
            router, routing = self._routing(flows, policy, seed)
            fabric = self.unit_fabric
            alone = router if self.background is None else Router(fabric, own, policy)
            rate, finish = (x[: own.n_flows] for x in report.rates_and_finish_s(routing, flows))
            yield RoundReport(
                name=name,
                share=share,
                n_flows=own.n_flows,
                time_s=float(finish.max()),
                group_s=own.size_bytes.max() / collective_rates_Bps(own, rate),
                ideal_s=memo.of((*placed, name), partial(report.ideal_makespan_s, alone)),
                **report.imbalances(fabric, routing.counts, policy),
                gap=routing.gap,
            )

    def _brief_rounds(self, policy: Policy, seed: int, memo: CheckMemo) -> Iterator[RoundReport]:
        """Rounds by their times and FIM alone; those whose flows take the same paths share both."""
        fabric, none = self.unit_fabric, float("nan")
        for name, share, same in self._rehashed(policy, seed, memo):
            flows = same.flows
            routing = self._rerouted(same)
            time_s = partial(_last_s, routing, flows)
            if routing.links is not None:
                paths = sha256(routing.links.tobytes() + flows.size_bytes.tobytes()).digest()
                time_s = partial(memo.times.of, (*self._counts, paths), time_s)
            fim = report.overall_imbalance_percent(fabric, routing.counts)
            figures = time_s(), none, (), fim, none, np.zeros(0), routing.gap
            yield RoundReport(name, share, flows.n_flows, *figures)

    def _rehashed(
        self, policy: Policy, seed: int, memo: CheckMemo
    ) -> Sequence[tuple[str, float, Rehashed]]:
        """The rounds' flows, which no failure changes."""
        none = self.unit_fabric.failed[:0]
        whole = replace(self.unit_fabric, failed=none)
        key = replace(self, built=replace(self.built, fabric=whole)).key

        def made() -> Sequence[tuple[str, float, Rehashed]]:
            rounds = self.flows(seed)
            return [(name, one, Rehashed(whole, x, policy, seed)) for name, one, x in rounds]

        return memo.rehashed.of((*key, policy, seed), made)

    def _rerouted(self, same: Rehashed) -> Routing:
        """The flows' paths on the fabric as it is."""
        if same.policy.name != "ecmp":
            return self._routing(same.flows, same.policy, same.seed)[1]
        try:
            return paths_over(self.unit_fabric, same.links(self.unit_fabric))
        except Disconnected:  # Told as of all flows, by their NPUs.
            return self._routing(same.flows, same.policy, same.seed)[1]

    def _routing(self, flows: Flows, policy: Policy, seed: int) -> tuple[Router, Routing]:
        """The flows' paths; those that failures cut off are named by their NPUs."""
        try:
            if self.fabric.failed.size:
                npu, ends = self.built.npu_of_port, (flows.src, flows.dst)
                require_connected(self.fabric, *ends, name="NPU", number_of=npu)
            router = Router(self.unit_fabric, flows, policy)
            return router, router.routing(seed)
        except Disconnected as error:
            raise Disconnected(*(self._named(fault, flows) for fault in error.faults)) from None

    def _named(self, fault: Fault, flows: Flows) -> Fault:
        """The fault with the dimension, and NPUs in place of the number of a flow."""
        label, npu = self.built.label, self.built.npu_of_port
        if not fault.subject:
            return replace(fault, path=label)
        src, dst = flows.src[fault.subject[0]], flows.dst[fault.subject[0]]
        return replace(fault, path=f"{label}: NPU {npu[src]} -> NPU {npu[dst]}")

    def _trees(self, policy: Policy, seed: int) -> RoundReport:
        """Trees of all groups at once, one per NIC."""
        n_nics, fabric = self.built.n_ports, self.unit_fabric
        host = self.built.port_of_npu[self._positions(seed)].ravel()
        group = (self.instance[:, None] * n_nics + np.arange(n_nics)).ravel()
        trees = even = reduction_trees(fabric, host, group)
        if policy.kind.keeps_flows_whole:
            # Roots are drawn where switches decide alone; else those of a plane take turns.
            n_groups = even.routes.n_flows
            root = np.random.default_rng([seed, 0x54524545]).integers(2**31, size=n_groups)
            if not policy.kind.is_drawn or policy.kind.knows_all_flows:
                plane = np.empty(n_groups, dtype=np.int64)
                plane[group] = fabric.plane_of(host)
                root = ranks(plane)
            trees = reduction_trees(fabric, host, group, root)
        rates = max_min_rates(trees.routes, fabric.capacity_Bps)
        rate, best = rates.min(), max_min_rates(even.routes, fabric.capacity_Bps).min()
        return RoundReport(
            name="trees",
            share=1.0,
            n_flows=even.routes.n_flows,
            time_s=1 / rate,
            ideal_s=1 / best,
            group_s=1 / rates.reshape(-1, n_nics).min(axis=1),
            **report.imbalances(fabric, trees.counts, policy),
        )


def _last_s(routing: Routing, flows: Flows) -> float:
    """When the last flow ends."""
    return float(report.finish_s_of(routing, flows).max())
