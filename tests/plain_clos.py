"""A Clos fabric as a list of links, made by loops, and the paths that networkx finds in it."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from fractions import Fraction

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from libra_planner.fabric.clos import Clos, Flows
from tests import assignments

Node = tuple[Hashable, ...]
Link = tuple[Node, Node]


def links(fabric: Clos) -> list[Link]:
    """Both ends of every link, in the order of the fabric's numbers."""
    up = [_host_links(fabric)]
    if fabric.n_spines:
        up.append(_leaf_links(fabric))
    if fabric.n_cores:
        up.append(_spine_links(fabric))
    down = [[(upper, lower) for lower, upper in layer] for layer in reversed(up)]
    return list(itertools.chain(*up, *down))


def _pods(fabric: Clos) -> list[tuple[int, int]]:
    return list(itertools.product(range(fabric.n_planes), range(fabric.n_pods)))


def _leaves(fabric: Clos) -> list[Node]:
    return [("leaf", *pod, leaf) for pod in _pods(fabric) for leaf in range(fabric.n_leaves)]


def _host_links(fabric: Clos) -> list[Link]:
    leaves = [leaf for leaf in _leaves(fabric) for _ in range(fabric.hosts_per_leaf)]
    return [(("host", host), leaf) for host, leaf in enumerate(leaves)]


def _leaf_links(fabric: Clos) -> list[Link]:
    found = []
    for leaf in _leaves(fabric):
        for spine in range(fabric.n_spines):
            for _ in range(fabric.n_parallel):
                found.append((leaf, ("spine", *leaf[1:3], spine)))
    return found


def _spine_links(fabric: Clos) -> list[Link]:
    found = []
    for plane, pod in _pods(fabric):
        for spine in range(fabric.n_spines):
            for core in range(fabric.n_cores):
                for _ in range(fabric.core_parallel):
                    found.append((("spine", plane, pod, spine), ("core", plane, spine, core)))
    return found


TIERS = {"host": 0, "leaf": 1, "spine": 2, "core": 3}


def is_up(link: Link) -> bool:
    return TIERS[str(link[0][0])] < TIERS[str(link[1][0])]


def link_graph(fabric: Clos) -> nx.DiGraph:
    """Working links as nodes; an edge where one follows another, never down and up again."""
    all_links = links(fabric)
    graph = nx.DiGraph()
    leaving: dict[Node, list[int]] = {}
    failed = set(fabric.failed.tolist())
    for i, (tail, _) in enumerate(all_links):
        if i not in failed:
            graph.add_node(i)
            leaving.setdefault(tail, []).append(i)
    for i in list(graph):
        for j in leaving.get(all_links[i][1], []):
            back = all_links[j] == all_links[i][::-1]
            if not back and (is_up(all_links[i]) or not is_up(all_links[j])):
                graph.add_edge(i, j)
    return graph


def usual_hops(fabric: Clos, src: int, dst: int) -> int:
    """Links of a path over the lowest tier that joins two hosts."""
    ends = [link[1] for link in _host_links(fabric)]
    if ends[src] == ends[dst]:
        return 2
    return 4 if ends[src][:3] == ends[dst][:3] else 6


def equal_paths(fabric: Clos, graph: nx.DiGraph, src: int, dst: int) -> list[tuple[int, ...]]:
    """All shortest working paths over the lowest tier that joins two hosts, as links."""
    last = len(links(fabric)) - fabric.n_hosts + dst
    if src not in graph or last not in graph or not nx.has_path(graph, src, last):
        return []
    n_hops = usual_hops(fabric, src, dst)
    if nx.shortest_path_length(graph, src, last) + 1 != n_hops:
        return []
    return [tuple(path) for path in nx.all_shortest_paths(graph, src, last)]


def even_shares(paths: list[tuple[int, ...]]) -> dict[int, Fraction]:
    """Share of a flow on each link if every switch splits it evenly over its next links."""
    shares: dict[int, Fraction] = {}

    def split(rest: list[tuple[int, ...]], share: Fraction) -> None:
        following = sorted({path[0] for path in rest if path})
        for link in following:
            part = share / len(following)
            shares[link] = shares.get(link, Fraction(0)) + part
            split([path[1:] for path in rest if path and path[0] == link], part)

    split(paths, Fraction(1))
    return shares


@st.composite
def fabrics(draw: st.DrawFn, *, n_failed: int = 0) -> Clos:
    """One, two or three tiers; planes, parallel links, unequal bandwidths, failures."""
    hosts_per_leaf, n_planes = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    if draw(st.integers(0, 5)) == 0:
        return Clos(max(2, hosts_per_leaf), host_Bps=1e9, n_planes=n_planes)
    fabric = draw(assignments.fabrics(n_failed=n_failed))
    bandwidths = st.sampled_from([0.5e9, 1e9, 4e9])
    return Clos(
        hosts_per_leaf=fabric.hosts_per_leaf,
        n_leaves=fabric.n_leaves,
        n_spines=fabric.n_spines,
        host_Bps=1e9,
        uplink_Bps=draw(bandwidths),
        n_parallel=fabric.n_parallel,
        n_pods=fabric.n_pods,
        n_cores=fabric.n_cores,
        core_Bps=draw(bandwidths),
        core_parallel=fabric.core_parallel,
        n_planes=fabric.n_planes,
        failed=fabric.failed,
    )


def joined_flows(fabric: Clos, flows: Flows) -> Flows:
    """The flows whose ends a path of the usual length joins."""
    graph = link_graph(fabric)
    ends = zip(flows.src.tolist(), flows.dst.tolist(), strict=True)
    kept = np.array([bool(equal_paths(fabric, graph, *pair)) for pair in ends], dtype=np.bool_)
    return Flows(
        flows.src[kept], flows.dst[kept], flows.size_bytes[kept], collective=flows.collective[kept]
    )
