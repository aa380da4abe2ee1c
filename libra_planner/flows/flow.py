"""Flows: who sends how much to whom, and what the switches hash of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from libra_planner.flows.fabric import Array, Indices


@dataclass(frozen=True)
class Flows:
    """Flows that are active together, one entry each; hosts are host ports of the fabric.

    Parameters
    ----------
    src, dst : host ports, int64, shape (n_flows,).
    size_bytes : shape (n_flows,).
    src_port : UDP source port where it is given, -1 where each draw makes one.
    pair : index of a flow's queue pair at its sender, from which the source port follows
        by the Linux rule once a draw numbers the queue pairs; -1 for ports drawn freely.
    src_address, dst_address : numbers that become IP addresses; the host port's own unless
        several ports share the address of their host.
    collective : number of the collective (or job) a flow belongs to.
    via : spine that a pinned flow takes, -1 for none.

    Examples
    --------
    >>> flows = Flows(np.array([0, 1]), np.array([4, 5]), np.array([1e9, 1e9]))
    >>> flows.n_flows, flows.collective
    (2, array([0, 0]))
    """

    src: Indices
    dst: Indices
    size_bytes: Array
    src_port: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pair: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    src_address: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    dst_address: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    collective: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    via: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        none = np.full(self.n_flows, -1, dtype=np.int64)
        defaults = {
            "src_port": none,
            "pair": none,
            "src_address": self.src,
            "dst_address": self.dst,
            "collective": np.zeros(self.n_flows, dtype=np.int64),
            "via": none,
        }
        for name, default in defaults.items():
            if self.n_flows and not getattr(self, name).size:
                object.__setattr__(self, name, default)

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return int(self.src.size)


def joined(*parts: Flows) -> Flows:
    """Several lists of flows as one, in order.

    >>> one = Flows(np.array([0]), np.array([1]), np.array([8.0]))
    >>> joined(one, one).size_bytes
    array([8., 8.])
    """
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Flows.__annotations__
    }
    return Flows(**columns)
