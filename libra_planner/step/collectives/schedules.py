"""Schedules: who sends to whom in a collective that spans several dimensions (C3, C13).

With group sizes g_1..g_D, G_d = g_1...g_d, n = G_D and the full vector m, a schedule says what
the groups of every dimension exchange. What crosses the tiers of a stack follows from it:
:meth:`~libra_planner.fabric.topology.Topology.loads` adds up what goes on to tiers beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from libra_planner.fabric.blocks import CollectiveKind

Array = NDArray[np.float64]


class Schedule(StrEnum):
    """Who sends to whom.

    ``hierarchical``: the dimensions one after the other, as LIBRA has it. ``ring``: one ring over
    all ranks, in their order, turned so that all ports of a tier share what leaves it.
    ``direct``: every rank sends to every other one at once.
    """

    HIERARCHICAL = "hierarchical"
    RING = "ring"
    DIRECT = "direct"


@dataclass(frozen=True)
class Schedules:
    """The schedules of a plan.

    Parameters
    ----------
    all_reduce : hierarchical or ring; reduce-scatter and all-gather follow it.
    all_to_all : hierarchical or direct; ``None`` for the usual one, direct where a fabric has a
        stack: in turns by dimension the data would pass the same NIC once per tier.
    pxn : whether a direct all-to-all sends through the scale-up domain first, to the NPU on the
        receiver's rail (NCCL's name for it), which charges the dimensions inside a stack; ``None``
        for what NCCL does: yes where there are such dimensions.
    """

    all_reduce: Schedule = Schedule.HIERARCHICAL
    all_to_all: Schedule | None = None
    pxn: bool | None = None

    def of_kind(self, kind: CollectiveKind, *, has_stack: bool) -> Schedule:
        """The schedule of a kind of collectives.

        >>> Schedules().of_kind(CollectiveKind.ALL_TO_ALL, has_stack=True).value
        'direct'
        """
        if kind is not CollectiveKind.ALL_TO_ALL:
            return self.all_reduce
        return self.all_to_all or (Schedule.DIRECT if has_stack else Schedule.HIERARCHICAL)


def ring_bytes(full_bytes: float, group_sizes: tuple[int, ...]) -> Array:
    """What a reduce-scatter or all-gather on one ring exchanges in every dimension, per NPU (C13).

    Every rank sends m (n - 1)/n to the next one. Of the n steps from rank to rank, n/G_d leave
    a group of the first d dimensions, so m (n - 1)/n (c_(d-1) - c_d) stay in dimension d, with
    c_d = 1/G_d, 0 where G_d = n. It is the mean over the NPUs: one ring per port, turned.

    Parameters
    ----------
    full_bytes : m.
    group_sizes : shape (n_dims,).

    Returns
    -------
    Bytes, shape (n_dims,).

    Examples
    --------
    Of 8 ranks on nodes of 2 every second one sends to another node:

    >>> ring_bytes(16.0, (2, 4))
    array([7., 7.])
    """
    inside, n = _products(group_sizes)
    leaving = np.where(inside < n, 1 / inside, 0.0)
    shares: Array = leaving[:-1] - leaving[1:]
    return full_bytes * (n - 1) / n * shares


def direct_bytes(full_bytes: float, group_sizes: tuple[int, ...]) -> Array:
    """What a direct all-to-all exchanges in every dimension, per NPU (C13).

    Every rank sends m/n to every other one, m (G_d - G_(d-1))/n of it to those that share its
    group of d dimensions, but not of d - 1.

    Parameters
    ----------
    full_bytes : m.
    group_sizes : shape (n_dims,).

    Returns
    -------
    Bytes, shape (n_dims,).

    Examples
    --------
    >>> direct_bytes(16.0, (2, 4))
    array([ 2., 12.])
    """
    inside, n = _products(group_sizes)
    peers: Array = np.diff(inside)
    return full_bytes * peers / n


def tree_bytes(full_bytes: float, group_sizes: tuple[int, ...], tiers: range) -> Array:
    """What a tree of switches that reduce keeps in every tier of its stack, per NPU (C13).

    An NPU sends m/G_(d-1) into every tier d that it needs, once up, once down: tiers do not add
    up, so what a tier keeps is the difference to the next one.

    Parameters
    ----------
    full_bytes : m.
    group_sizes : shape (n_dims,).
    tiers : dimensions (from 0) of the stack.

    Returns
    -------
    Bytes, shape (n_tiers,).

    Examples
    --------
    >>> tree_bytes(16.0, (2, 4, 2), range(1, 3))
    array([6., 2.])
    """
    inside, _ = _products(group_sizes)
    entering, last = inside[tiers.start : tiers.stop], inside[tiers.stop]
    crossing = np.append(np.where(entering < last, full_bytes / entering, 0.0), 0.0)
    kept: Array = crossing[:-1] - crossing[1:]
    return kept


def _products(group_sizes: tuple[int, ...]) -> tuple[Array, float]:
    """G_0 ... G_D, shape (n_dims + 1,), and n."""
    inside: Array = np.multiply.accumulate(np.array([1.0, *group_sizes], dtype=np.float64))
    return inside, float(inside[-1])
