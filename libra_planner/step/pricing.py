"""What the exchanges of a step take on a fabric, as nodes of the time expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from libra_planner.step import expression as tree
from libra_planner.step.algebra import Nodes
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.models import CollectiveModel
from libra_planner.step.expression import Array
from libra_planner.step.layers import CONTENTION
from libra_planner.workload.operations import Collective, CollectiveKind, Group
from libra_planner.workload.volumes import SEND_RECV, Exchange

_NAMES = {"dp_cp": "dp"}
"""What reports call an axis, where it is not its name."""


@dataclass(frozen=True)
class NodePricing:
    """Prices of one strategy's exchanges.

    Parameters
    ----------
    network : the fabric as collectives meet it.
    groups : of every axis.
    model : of collectives.
    without : axes whose exchanges take no time, to see what waits for them.
    """

    network: Network
    groups: Mapping[str, Group]
    model: CollectiveModel
    without: frozenset[str] = frozenset()

    @property
    def algebra(self) -> Nodes:
        """Nodes."""
        return Nodes()

    def seconds(self, seconds: Any) -> tree.Node:
        """A constant."""
        return tree.Constant(float(seconds))

    def exchange(self, one: Exchange) -> tree.Node:
        """All executions, under the name of axis and kind."""
        count = float(one.count)
        if one.axis in self.without or not count:
            return tree.ZERO
        time = tree.scale(count, self._once(one))
        return time if time == tree.ZERO else tree.Labelled(label(one), time)

    def _once(self, one: Exchange) -> tree.Node:
        group = self.groups[one.axis]
        if one.kind == SEND_RECV:
            return self.model.send_time(float(one.size_bytes), group, self.network)
        return tree.maximum(self.model.time(*part, self.network) for part in parts(one, group))

    def contention(self, exchanges: Iterable[tuple[Exchange, Any]]) -> tree.Node:
        """All bytes of every dimension that several exchanges use, over its bandwidth (C5)."""
        topology = self.network.topology
        sent = [
            (_axis_name(one), float(share) * float(one.count) * self._bytes(one))
            for one, share in exchanges
            if one.axis not in self.without and float(one.count)
        ]
        total = sum((n_bytes for _, n_bytes in sent), np.zeros(topology.n_dims))
        found = []
        for dim, name in enumerate(topology.labels):
            users = [axis for axis, n_bytes in sent if n_bytes[dim]]
            if len(users) > 1:
                *others, last = dict.fromkeys(users)
                axes = f"{', '.join(others)} and {last}" if others else last
                alone = np.where(np.arange(topology.n_dims) == dim, total, 0.0)
                label_here = f"{CONTENTION} of {axes} on {name}"
                found.append(tree.Labelled(label_here, tree.transfers(alone)))
        return tree.maximum(found)

    def traffic_bytes(self, one: Exchange) -> Array:
        """What all executions occupy the dimensions with, shape (n_dims,)."""
        if one.axis in self.without or not float(one.count):
            return np.zeros(self.network.topology.n_dims)
        return float(one.count) * self._bytes(one)

    def _bytes(self, one: Exchange) -> Array:
        group = self.groups[one.axis]
        if one.kind == SEND_RECV:
            return self.model.send_occupied(float(one.size_bytes), group, self.network)
        found = [self.model.occupied(*part, self.network) for part in parts(one, group)]
        return np.asarray(np.max(found, axis=0))


def in_domain(group: Group) -> Group:
    """The part of a group that the innermost dimension holds, the scale-up domain.

    >>> in_domain(Group((8, 4), (1, 1))).sizes
    (8, 1)
    """
    return replace(group, sizes=group.sizes[:1] + (1,) * (len(group.sizes) - 1))


def parts(one: Exchange, group: Group) -> list[tuple[Collective, Group]]:
    """The collectives that an exchange of a group is, at the same time.

    Where one copy of a token goes to each node, the nodes' links spread all of them (C16).

    >>> sent = Exchange("ep", CollectiveKind.ALL_TO_ALL, 8.0, 1, far_bytes=2.0, n_copies=8)
    >>> [(part.size_bytes, some.sizes) for part, some in parts(sent, Group((8, 4), (1, 1)))]
    [(8.0, (8, 1)), (2.0, (8, 4))]
    """
    whole, inner = collective(one), in_domain(group)
    if one.far_bytes is None or inner.n_npus == group.n_npus:
        return [(whole, group)]
    far = float(one.far_vector_bytes(group.n_npus // inner.n_npus))
    return [(whole, inner), (replace(whole, size_bytes=far), group)]


def collective(one: Exchange) -> Collective:
    """An exchange as the collective that it is."""
    return Collective(
        CollectiveKind(one.kind), float(one.size_bytes), _NAMES.get(one.axis, one.axis)
    )


def label(one: Exchange) -> str:
    """What reports call an exchange, such as ``TP all-reduce``.

    >>> label(Exchange("pp", SEND_RECV, 8.0, 1))
    'PP send'
    """
    kind = "send" if one.kind == SEND_RECV else str(one.kind)
    return f"{_axis_name(one)} {kind}"


def _axis_name(one: Exchange) -> str:
    return _NAMES.get(one.axis, one.axis).upper()
