"""Collectives of a plan as a library runs them: the law of measured runs, over bandwidths (C20)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from libra_planner.step import expression as tree
from libra_planner.step.collectives import measured
from libra_planner.step.collectives.algorithms import Network, full_bytes
from libra_planner.step.collectives.models import CollectiveModel, Slowed
from libra_planner.step.expression import Array
from libra_planner.workload.operations import Collective, Group

MEASURED_TABLE = "rings, direct all-to-alls, sums in scale-up switches, trees of two domains"
"""What runs, by kind and ranks: no bandwidth decides about it."""


@dataclass(frozen=True)
class Calibrated(CollectiveModel):
    """The law of measured collectives, with the bandwidths of a fabric as line rates (C20).

    t = start + a + z + 2 sqrt(a z). z is the longest of the bytes over the scale-up switch, those
    over the NICs, and those over the uplinks of every further tier of the NICs' network: each is
    bytes over one bandwidth, so that t is convex in them. What runs depends on kind, ranks and
    size, never on a bandwidth.

    Parameters
    ----------
    npu : of :data:`~libra_planner.step.collectives.measured.SCALE_UPS`.
    interconnect : ``infiniband`` or ``ethernet``.
    domain : the dimension (from 0) that is the scale-up switch; ``None`` without one.
    port : the innermost dimension of the NICs' network; ``None`` without one.
    side : 0, or -1 and 1 for times at the lower and upper end of the error band (C23).
    constants, bands : of the law, and its errors: the published ones, or those of a user's cluster.

    Examples
    --------
    A node of 8 H100, 1 GiB: 4.1 ms as ``collective --system`` has it.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.workload.operations import CollectiveKind
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 2.0**30, "dp")
    >>> node = plain_network(parse_topology("SW(8)"))
    >>> time = Calibrated("H100", domain=0).time(reduce, Group((8,), (1,)), node)
    >>> round(1e3 * float(tree.TimeExpression(time, 1).seconds(np.array([450e9]))), 1)
    4.1
    """

    npu: str
    interconnect: str = measured.INFINIBAND
    domain: int | None = None
    port: int | None = None
    side: int = 0
    constants: measured.Constants = measured.PUBLISHED
    bands: measured.Bands = measured.PUBLISHED_BANDS
    n_chunks = None
    has_own_links = True

    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """Start and steps, then the longest of the line times with what is left of its chunks."""
        if group.n_npus == 1:
            return tree.ZERO
        ranks, size_bytes = self.ranks(group), full_bytes(collective, group)
        kind = collective.kind.value
        steps_s = measured.steps_s(kind, ranks, self.constants)
        lines = [
            _line(n_bytes, steps_s, dim, network.topology.n_dims)
            for dim, n_bytes in self.line_bytes(collective, group, network).items()
        ]
        fixed = tree.Constant(self.constants.start_s + steps_s)
        error = 1 + self.bands.error_fraction(kind, size_bytes, ranks)
        return tree.scale(error**self.side, tree.add([fixed, tree.maximum(lines)]))

    def send_time(self, n_bytes: float, group: Group, network: Network) -> tree.Node:
        """Start, one step, and the bytes on the busiest line with what is left of its chunks."""
        if group.n_npus == 1:
            return tree.ZERO
        constants = self.constants
        steps_s = measured.send_step_s(self.ranks(group), constants)
        sent = self.send_line_bytes(n_bytes, group, network)
        lines = [
            _line(one, steps_s, dim, len(sent)) for dim, one in enumerate(sent.tolist()) if one
        ]
        return tree.add([tree.Constant(constants.start_s + steps_s), tree.maximum(lines)])

    def send_line_bytes(self, n_bytes: float, group: Group, network: Network) -> Array:
        """Bytes of a send over the shares of line rate that they get, shape (n_dims,)."""
        fractions = np.full(network.topology.n_dims, self.constants.nic_fraction)
        if self.domain is not None:
            fractions[self.domain] = self.constants.link_fraction
        return np.asarray(self.send_traffic(n_bytes, group, network) / fractions)

    def traffic(self, collective: Collective, group: Group, network: Network) -> Array:
        """Bytes over the shares of line rate that they get, by dimension."""
        found = np.zeros(network.topology.n_dims)
        for dim, n_bytes in self.line_bytes(collective, group, network).items():
            found[dim] = n_bytes
        return found

    def is_summed(self, collective: Collective, group: Group, dim: int) -> bool:
        """Whether the scale-up switch of a dimension sums a collective of a group."""
        ranks, kind = self.ranks(group), collective.kind.value
        return dim == self.domain and measured.is_summed(kind, ranks, self.constants)

    def line_bytes(
        self, collective: Collective, group: Group, network: Network
    ) -> Mapping[int, float]:
        """By dimension the bytes whose time at its bandwidth counts.

        On the further tiers of a stack the bytes that cross them at their whole bandwidth (C13),
        in the proportion that the law's bytes have to a ring's on the NICs.
        """
        if group.n_npus == 1:
            return {}
        kind, size_bytes = collective.kind.value, full_bytes(collective, group)
        ranks = self.ranks(group)
        inside, between = measured.line_times_s(kind, size_bytes, ranks, self.constants)
        found = {} if self.domain is None or not inside else {self.domain: inside}
        if self.port is None or not between:
            return found
        crossing = network.loads(collective, group)
        sent = between * self.constants.nic_fraction / crossing[self.port]
        tiers = [i for i, port in enumerate(network.topology.ports) if port == self.port]
        uplinks = {i: float(sent * crossing[i]) for i in tiers[1:] if crossing[i] > 0}
        return found | {self.port: between} | uplinks

    def ranks(self, group: Group) -> measured.Ranks:
        """The ranks of a group on links of 1 byte/s per NPU, whose times are bytes."""
        n_inside = 1 if self.domain is None else group.sizes[self.domain]
        known = measured.SCALE_UPS[self.npu]
        rates = {n: rate_Bps / known.npu_Bps for n, rate_Bps in known.Bps_by_ranks.items()}
        unit = replace(known, npu_Bps=1.0, size=0, n_per_node=n_inside, Bps_by_ranks=rates)
        return measured.Ranks(
            replace(unit, most_per_node=n_inside),
            group.n_npus // n_inside,
            n_inside,
            float(n_inside),
            self.interconnect,
        )

    def extrapolations(self, collective: Collective, group: Group) -> Iterator[str]:
        """In what a collective is beyond the measured runs."""
        size_bytes = full_bytes(collective, group)
        yield from measured.extrapolations(self.npu, size_bytes, self.ranks(group))


@dataclass(frozen=True)
class SlowedCalibrated(Slowed, Calibrated):
    """:class:`Calibrated` with the links' real share of their bandwidth."""

    def line_bytes(
        self, collective: Collective, group: Group, network: Network
    ) -> Mapping[int, float]:
        """Factors times the bytes on every line."""
        factors = self.slowdown.factors_of(collective, group).tolist()
        found = super().line_bytes(collective, group, network)
        return {dim: factors[dim] * n_bytes for dim, n_bytes in found.items()}


def _line(n_bytes: float, steps_s: float, dim: int, n_dims: int) -> tree.Node:
    """z + 2 sqrt(a z), z bytes over one bandwidth and a the time of the steps."""
    form = tuple(1.0 if i == dim else 0.0 for i in range(n_dims))
    root = tree.Root(2 * math.sqrt(steps_s * n_bytes), form)
    return tree.add([tree.Transfer(n_bytes, form), root])
