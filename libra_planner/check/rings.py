"""Rings that wait for two of their flows on one uplink: what may be told before links are built."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from libra_planner.check.traffic import stage
from libra_planner.errors import SpecError
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.networks import nics
from libra_planner.fabric.sizing import plane_settings
from libra_planner.fabric.topology import TOP_OF_RACK, TrafficSettings
from libra_planner.problem import Problem
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.models import Slowdown
from libra_planner.step.expression import Array
from libra_planner.step.training import Step
from libra_planner.workload.operations import Collective, Group

_MEETING = 2
"""Flows on one uplink: it is rare that none meet, and every ring waits for the slowest one."""


def slowed_by_meeting(problem: Problem, bandwidth_Bps: Array) -> Step:
    """The step where rings over the spines wait for flows that hashing puts on one uplink.

    A ring sends the same bytes from rank to rank, so all of it waits for its slowest flow. Of two
    flows of a port's speed on one uplink each gets half, and the ring takes its bytes over half of
    a port, however few of them cross the spines. Here a ring does so where on average at least one
    pair of flows meets in the whole network.

    Parameters
    ----------
    problem : of a plan, one of its alternatives.
    bandwidth_Bps : per NPU, byte/s, shape (n_dims,).

    Returns
    -------
    Step
        The plan's own, where no ring waits so.

    Examples
    --------
    A leaf of 32 NPUs has 2 rings of experts' gradients, whose ranks are every other NPU there: one
    flow of each leaves it, over 16 uplinks. Each of 16 queue pairs takes too little of an uplink.

    >>> import libra_planner as lp
    >>> experts = {"tp": 1, "pp": 1, "dp": 512, "ep": 16, "etp": 1}
    >>> plan = {"workload": "qwen3-30b-a3b", "fabric.topology": "SW(8)_[SW(32)_SW(2)]"}
    >>> plan |= {"parallelism": experts, "global_batch": 512, "constraints": []}
    >>> for pairs in (1, 16):
    ...     own = plan | {"fabric.realization": {"queue_pairs": pairs}}
    ...     found, vector = lp.load_plan("0e_rails_2to1", own), np.array([450e9, 50e9, 25e9])
    ...     steps = slowed_by_meeting(found, vector), found.step
    ...     print(" ".join(f"{one.time.seconds(vector):.3f} s" for one in steps))
    0.468 s 0.413 s
    0.413 s 0.413 s
    """
    if problem.step.model.is_slowed:  # By what a check has found.
        return problem.step
    step, none = problem.step, (1.0,) * problem.topology.n_dims
    pairs = tuple(dict.fromkeys((one.collective, one.group) for one in step.communications))
    found = tuple(_factors(problem, bandwidth_Bps, *pair) for pair in pairs)
    if all(one == none for one in found):
        return step
    senders = tuple(dict.fromkeys(one.group for one in step.sends))
    usual = tuple(problem.network.for_kind(one.kind).algorithms for one, _ in pairs)
    return step.slowed(Slowdown(pairs, found, usual, senders, (none,) * len(senders)))


def _factors(
    problem: Problem, bandwidth_Bps: Array, collective: Collective, group: Group
) -> tuple[float, ...]:
    """On the bytes that leave a port: more than 1 for rings whose flows meet; shape (n_dims,)."""
    factors = np.ones(problem.topology.n_dims)
    for tiers in problem.topology.stacks:
        if _is_ring(problem.network, collective, group, tiers):
            factors[tiers.start] = _factor(problem, bandwidth_Bps, group, tiers)
    return tuple(factors.tolist())


def _is_ring(network: Network, collective: Collective, group: Group, tiers: Sequence[int]) -> bool:
    """Whether a collective is one ring over leaves and spines of a stack."""
    crossed = [dim for dim in tiers[1:] if group.sizes[dim] > 1]
    if not crossed or not network.is_flat(collective.kind, crossed[-1]):
        return False
    found = stage(collective, group, network, crossed[-1])
    return found.candidates == (Algorithm.RING,)


def _factor(problem: Problem, bandwidth_Bps: Array, group: Group, tiers: Sequence[int]) -> float:
    """Times that a ring takes whose flows meet on the uplinks of leaves; 1 where they do not."""
    port, spine = tiers[0], tiers[1]
    topology, settings = problem.topology, problem.links.switches[port]
    traffic = problem.links.traffic
    if (
        settings is None
        or traffic.placement != TrafficSettings.placement
        or not bandwidth_Bps[spine] > 0
    ):
        return 1.0
    try:
        ratio = plane_settings(settings, nics(float(bandwidth_Bps[port]), settings)[1]).uplink_ratio
    except SpecError:  # It cannot be built, and others say why.
        return 1.0
    factor = _MEETING / (ratio * traffic.n_queue_pairs)
    n_rails = math.prod(topology.sizes[:port]) if settings.wiring == TOP_OF_RACK else 1
    n_places = topology.sizes[port] * n_rails  # Of NPUs on a leaf.
    n_flows = n_places / group.sizes[port]
    n_uplinks = n_places * bandwidth_Bps[spine] / bandwidth_Bps[port] / ratio
    n_leaves = topology.n_npus / n_places
    n_pairs = n_leaves * n_flows * (n_flows - 1) / 2 / n_uplinks
    return max(1.0, factor) if n_pairs >= 1 else 1.0
