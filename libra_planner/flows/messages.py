"""Messages between NPUs as flows between host ports: placement, NICs, queue pairs, addresses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.flow import Flows
from libra_planner.flows.loads import ranks
from libra_planner.flows.realization import RealizedDimension
from libra_planner.flows.traffic import Members, Round
from libra_planner.realization import Realization
from libra_planner.topology import Topology


@dataclass(frozen=True)
class TrafficSettings:
    """How NPUs use their NICs.

    Parameters
    ----------
    placement : ``contiguous``: neighbours of a group sit next to each other; ``rail``: they
        go to the leaves in turn; ``random``: anywhere (seeded).
    n_queue_pairs : per connection; a message is split over them (NCCL opens 1 by default).
    npus_per_address : NPUs that share an IP address; 1 if each has its own.
    """

    placement: str = "contiguous"
    n_queue_pairs: int = 1
    npus_per_address: int = 1


def traffic_settings(realization: Realization) -> TrafficSettings:
    """How the NPUs of a plan use their NICs."""
    return TrafficSettings(
        realization.placement, realization.n_queue_pairs, realization.npus_per_address
    )


def placed_npus(
    topology: Topology, dim: int, built: RealizedDimension, placement: str, seed: int
) -> Indices:
    """The NPU of the fabric that runs each NPU of the job, shape (n_npus,).

    Whole positions of the dimension move, with all that is inside them.

    Examples
    --------
    Four nodes on two leaves: neighbours go to different leaves.

    >>> from libra_planner.flows.realization import realize
    >>> from libra_planner.realization import Realization, SwitchSettings
    >>> from libra_planner.topology import parse_topology
    >>> fabric = parse_topology("SW(4)")
    >>> small = Realization((SwitchSettings(switch_radix=4, n_leaves=2, n_spines=2),))
    >>> [built] = realize(fabric, [1e9], small).dimensions
    >>> placed_npus(fabric, 0, built, "rail", seed=0)
    array([0, 2, 1, 3])
    """
    size = topology.sizes[dim]
    position = np.arange(size)
    if placement == "random":
        position = np.random.default_rng([seed, 0x504C4143]).permutation(size)
    elif placement == "rail" and isinstance(built.fabric, Clos):
        position = _in_turn(topology, dim, built, built.fabric)
    n_inner = math.prod(topology.sizes[:dim])
    npu = np.arange(topology.n_npus)
    old = npu // n_inner % size
    return npu + (position[old] - old) * n_inner


def _in_turn(topology: Topology, dim: int, built: RealizedDimension, fabric: Clos) -> Indices:
    """Positions of the dimension, one of each leaf, then the next of each leaf, and so on."""
    n_inner = math.prod(topology.sizes[:dim])
    first = np.arange(topology.sizes[dim]) * n_inner
    leaf = fabric.leaf_of(built.port_of_npu[first, 0])
    return np.lexsort((leaf, ranks(leaf)))


def message_flows(
    built: RealizedDimension,
    members: Members,
    sent: Round,
    *,
    npu_at: Indices,
    settings: TrafficSettings,
    size_bytes: float,
) -> Flows:
    """The flows of a round, each message split evenly over its queue pairs.

    There are as many queue pairs as NICs at least, and queue pairs use the NICs in turn, so
    that a message uses all of its NPU's bandwidth.

    Parameters
    ----------
    built, members, sent : the links, the groups, and what they send.
    npu_at : the NPU of the fabric that runs each NPU of the job, shape (n_npus,).
    settings : queue pairs and addresses.
    size_bytes : what an NPU sends in the dimension, which the round's share is of.

    Examples
    --------
    >>> from libra_planner.flows.realization import realize
    >>> from libra_planner.flows.traffic import rounds
    >>> from libra_planner.collectives.algorithms import Algorithm
    >>> from libra_planner.topology import parse_topology
    >>> from libra_planner.workload.parallelism import Group
    >>> fabric = parse_topology("SW(2)")
    >>> [built] = realize(fabric, [1e9]).dimensions
    >>> members = Members(fabric, 0, Group((2,), (1,)))
    >>> [ring] = rounds(members, Algorithm.RING)
    >>> two = TrafficSettings(n_queue_pairs=2)
    >>> flows = message_flows(
    ...     built, members, ring, npu_at=np.arange(2), settings=two, size_bytes=8.0)
    >>> flows.src, flows.dst, flows.size_bytes
    (array([0, 0, 1, 1]), array([1, 1, 0, 0]), array([4., 4., 4., 4.]))
    """
    n_pairs = -(-settings.n_queue_pairs // built.n_nics) * built.n_nics
    pair = np.tile(np.arange(n_pairs), sent.n_messages)
    src, dst = npu_at[np.repeat(sent.src, n_pairs)], npu_at[np.repeat(sent.dst, n_pairs)]
    nic = pair % built.n_nics
    per_address = settings.npus_per_address
    # Which of the NPUs behind the two addresses talk: each connection has its own queue pairs.
    connection = src % per_address * per_address + dst % per_address
    return Flows(
        src=built.port_of_npu[src, nic],
        dst=built.port_of_npu[dst, nic],
        size_bytes=np.full(len(src), size_bytes * sent.share / n_pairs),
        src_address=src // per_address * built.n_nics + nic,
        dst_address=dst // per_address * built.n_nics + nic,
        collective=np.repeat(members.instance[sent.src], n_pairs),
        pair=pair + n_pairs * connection,
    )
