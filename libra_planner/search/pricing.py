"""What the exchanges of many strategies take on a fabric of given bandwidths, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.search.placement import Placed
from libra_planner.step.algebra import Numbers
from libra_planner.step.collectives import measured
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.collectives.models import CollectiveModel, Ideal, OwnLinks
from libra_planner.step.expression import Array
from libra_planner.step.pricing import collective, in_domain
from libra_planner.workload.operations import Group
from libra_planner.workload.volumes import SEND_RECV, Exchange


class Line(NamedTuple):
    """One byte of an exchange in a group: time = start + a + z + 2 sqrt(a z), z = max bytes/B.

    Parameters
    ----------
    start_s, steps_s : before the first byte, and a.
    line_bytes : by dimension, of the time; shape (n_dims,).
    traffic_bytes : by dimension, of contention; shape (n_dims,).
    """

    start_s: float
    steps_s: float
    line_bytes: Array
    traffic_bytes: Array


@dataclass(frozen=True)
class Lines:
    """Lines of the groups that were asked for, each worked out once.

    Parameters
    ----------
    network : the fabric as collectives meet it.
    model : of collectives: ideal or calibrated.

    Raises
    ------
    SpecError
        For a model of collectives that is no such law of one group.
    """

    network: Network
    model: CollectiveModel
    _known: dict[tuple[str, Group], Line] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        is_central = type(self.model) is Calibrated and self.model.side == 0
        if type(self.model) not in (Ideal, OwnLinks) and not is_central:
            name = type(self.model).__name__.lower()
            expected = "expected fidelity ideal or calibrated: a search has arrays for these"
            raise SpecError(Fault(f"got the collectives {name}", expected, path="fidelity"))

    def line(self, kind: str, group: Group) -> Line:
        """Of one byte."""
        key = kind, group
        if key not in self._known:
            self._known[key] = self._line(kind, group)
        return self._known[key]

    def _line(self, kind: str, group: Group) -> Line:
        model, network, n_dims = self.model, self.network, self.network.topology.n_dims
        if group.n_npus == 1:
            return Line(0.0, 0.0, np.zeros(n_dims), np.zeros(n_dims))
        if kind == SEND_RECV:
            traffic = model.send_traffic(1.0, group, network)
        else:
            one = collective(Exchange("", kind, 1.0, 1))
            traffic = model.traffic(one, group, network)
        if not isinstance(model, Calibrated):
            return Line(0.0, 0.0, traffic, traffic)
        ranks, start_s = model.ranks(group), model.constants.start_s
        if kind == SEND_RECV:
            steps_s = measured.send_step_s(ranks, model.constants)
            return Line(start_s, steps_s, model.send_line_bytes(1.0, group, network), traffic)
        return Line(start_s, measured.steps_s(kind, ranks, model.constants), traffic, traffic)


class _Prices(NamedTuple):
    """Of one kind in all groups of an axis: s, s, s/byte, and bytes/byte by dimension."""

    start_s: Array
    steps_s: Array
    s_per_byte: Array
    traffic_bytes: Array


@dataclass(frozen=True)
class ArrayPricing:
    """Prices of the exchanges of n strategies, for
    :func:`~libra_planner.step.model_step.step_time`.

    Parameters
    ----------
    lines : of the fabric and its model of collectives.
    placed : the groups of every axis.
    bandwidth_bytes_per_s : shape (n_dims,); infinite for none that anything waits for.
    rows : strategies that are priced, as indices into those of ``placed``; ``None``: all.

    Examples
    --------
    An all-reduce of 100 bytes over two and over four NPUs:

    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.search.placement import placed
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.workload.strategy import Strategy
    >>> from libra_planner.workload.operations import CollectiveKind
    >>> fabric, many = parse_topology("SW(4)"), Strategy(tp=np.array([2, 4]), dp=np.array([2, 1]))
    >>> lines = Lines(plain_network(fabric), Ideal())
    >>> pricing = ArrayPricing(lines, placed(fabric, many), np.array([10.0]))
    >>> pricing.exchange(Exchange("tp", CollectiveKind.ALL_REDUCE, 100.0, 1)).tolist()
    [10.0, 15.0]
    """

    lines: Lines
    placed: Mapping[str, Placed]
    bandwidth_bytes_per_s: Array
    rows: NDArray[np.integer[Any]] | None = None
    _known: dict[tuple[str, str, bool], _Prices] = field(default_factory=dict, repr=False)
    _which: dict[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def taken(self, rows: NDArray[np.integer[Any]]) -> ArrayPricing:
        """Prices of some of the strategies, or of some several times."""
        return replace(self, rows=rows, _which={})

    @cached_property
    def algebra(self) -> Numbers:
        """Arrays of seconds."""
        return Numbers()

    def seconds(self, seconds: Any) -> Any:
        """As they are."""
        return seconds

    def exchange(self, one: Exchange) -> Any:
        """All executions, shape (n,)."""
        which, longest = self._groups(one.axis), 0.0
        for prices, size_bytes in self._parts(one):
            z_s = size_bytes * prices.s_per_byte[which]
            if prices.steps_s.any():
                steps_s = prices.steps_s[which]
                z_s = prices.start_s[which] + steps_s + z_s + 2 * np.sqrt(steps_s * z_s)
            longest = np.maximum(longest, z_s)
        return one.count * longest

    def _parts(self, one: Exchange) -> list[tuple[_Prices, Any]]:
        """Prices and full vectors of what an exchange is, at the same time (C16).

        Where one copy of a token goes to each node, the nodes' links spread all of them.
        """
        whole = self._prices(one)
        if one.far_bytes is None:
            return [(whole, one.size_bytes)]
        groups = self.placed[one.axis].groups
        n_nodes = np.array([group.n_npus // in_domain(group).n_npus for group in groups])
        nodes = n_nodes[self._groups(one.axis)]
        far = np.where(nodes > 1, one.far_vector_bytes(nodes), 0.0)
        return [(self._prices(one, is_inner=True), one.size_bytes), (whole, far)]

    def contention(self, exchanges: Iterable[tuple[Exchange, Any]]) -> Any:
        """All bytes of every dimension that several exchanges use, over its bandwidth (C5)."""
        n_dims = len(self.bandwidth_bytes_per_s)
        total: list[Any] = [0.0] * n_dims
        alone: list[Any] = [0.0] * n_dims
        for one, share in exchanges:
            which, times = self._groups(one.axis), share * one.count
            parts = self._parts(one)
            used = sum(prices.traffic_bytes.any(axis=0) for prices, _ in parts)
            for d in np.flatnonzero(used).tolist():
                sent: Any = 0.0
                for prices, size_bytes in parts:
                    sent = np.maximum(sent, size_bytes * prices.traffic_bytes[:, d][which])
                total[d], alone[d] = total[d] + times * sent, np.maximum(alone[d], times * sent)
        longest: Any = 0.0
        for sent, most, rate in zip(total, alone, self.bandwidth_bytes_per_s, strict=True):
            shared = np.where(sent > most, sent, 0.0)
            longest = np.maximum(longest, _busy(shared, rate))
        return longest

    def _groups(self, axis: str) -> NDArray[np.int64]:
        """Which group of an axis each strategy has."""
        if axis not in self._which:
            which = self.placed[axis].which
            self._which[axis] = which if self.rows is None else which[self.rows]
        return self._which[axis]

    def _prices(self, one: Exchange, *, is_inner: bool = False) -> _Prices:
        """Of all groups of its axis, or of what of them the scale-up domain holds."""
        key = one.axis, str(one.kind), is_inner
        if key not in self._known:
            groups = self.placed[one.axis].groups
            found = [in_domain(group) if is_inner else group for group in groups]
            lines = [self.lines.line(str(one.kind), group) for group in found]
            start, steps = (np.array([line[i] for line in lines]) for i in (0, 1))
            line_bytes, traffic = (np.array([line[i] for line in lines]) for i in (2, 3))
            busy = _busy(line_bytes, self.bandwidth_bytes_per_s)
            self._known[key] = _Prices(start, steps, busy.max(axis=1), traffic)
        return self._known[key]


def _busy(n_bytes: Array, bandwidth_bytes_per_s: Array) -> Array:
    """Bytes over bandwidth; none take no time even without bandwidth (C9)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(n_bytes > 0, n_bytes / bandwidth_bytes_per_s, 0.0))
