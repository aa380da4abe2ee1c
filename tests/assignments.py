"""Random fabrics with flows, and slow, obvious twins of the routing policies."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from hypothesis import strategies as st

from libra_planner.fabric.clos import Choice, Clos, Flows, Indices, links_of


@st.composite
def fabrics(
    draw: st.DrawFn, *, n_failed: int = 0, core_Bps: st.SearchStrategy[float] | None = None
) -> Clos:
    """Small fabrics of up to three tiers and two planes."""
    n_spines = draw(st.integers(1, 5))
    n_cores = draw(st.integers(0, 3))
    fabric = {
        "hosts_per_leaf": draw(st.integers(1, 4)),
        "n_leaves": draw(st.integers(1, 4)),
        "n_spines": n_spines,
        "n_parallel": draw(st.integers(1, 3)),
        "n_pods": draw(st.integers(1, 3)) if n_cores else 1,
        "n_cores": n_cores,
        "core_parallel": draw(st.integers(1, 2)),
        "n_planes": draw(st.integers(1, 2)),
    }
    core = 1e9 if core_Bps is None else draw(core_Bps)
    bandwidths = {"host_Bps": 1e9, "uplink_Bps": 1e9, "core_Bps": core}
    whole = Clos(**fabric, **bandwidths)
    between = [x for layer in whole.layers[1:-1] for x in range(whole.n_links)[layer.links]]
    failed = draw(st.lists(st.sampled_from(between), max_size=n_failed, unique=True))
    return Clos(**fabric, **bandwidths, failed=np.array(sorted(failed), dtype=np.int64))


@st.composite
def flows_on(
    draw: st.DrawFn,
    fabric: Clos,
    *,
    max_flows: int = 60,
    sizes: tuple[float, ...] = (1.0, 2.0, 5.0),
) -> Flows:
    """Random flows between different hosts of a plane, of a few sizes and collectives."""
    seed, n = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, max_flows))
    rng = np.random.default_rng(seed)
    per_plane = fabric.n_hosts // fabric.n_planes
    n = n if per_plane > 1 else 0
    src = rng.integers(0, fabric.n_hosts, n)
    step = rng.integers(1, max(per_plane, 2), n)
    dst = src // per_plane * per_plane + (src % per_plane + step) % per_plane
    size_bytes = rng.choice(sizes, n)
    return Flows(src, dst, size_bytes, collective=rng.integers(0, 3, n) * 7)


def paths(fabric: Clos, src: int, dst: int) -> list[tuple[int, int, int, int]]:
    """All working (uplink, core link, core link down, spine link down) in order of index."""
    one = Flows(np.array([src]), np.array([dst]), np.ones(1))
    cores = [(-1, -1)]
    if fabric.pod_of(one.src)[0] != fabric.pod_of(one.dst)[0]:
        cores = list(itertools.product(range(fabric.n_core_links), range(fabric.core_parallel)))
    found = []
    for up, core, down in itertools.product(
        range(fabric.n_uplinks), cores, range(fabric.n_parallel)
    ):
        links = _links(fabric, one, (up, *core, down))
        if all(fabric.alive[x] for x in links[1:-1]):
            found.append((up, *core, down))
    return found


def _links(fabric: Clos, one: Flows, path: tuple[int, int, int, int]) -> list[int]:
    links = links_of(fabric, one, Choice(*(np.array([x]) for x in path)))
    return [int(x) for x in links[0] if x >= 0]


def flow(flows: Flows, f: int) -> Flows:
    """One flow by itself."""
    return Flows(flows.src[[f]], flows.dst[[f]], flows.size_bytes[[f]])


def plain_greedy(
    fabric: Clos, flows: Flows, *, per_collective: bool, weights: Indices | None = None
) -> list[tuple[int, int, int, int]]:
    """Try every path of every flow; weights by flow and column of its links, else all are 1."""
    layers = [layer.start for layer in fabric.layers[1:]]

    def step(f: int, link: int) -> int:
        i = sum(start <= link for start in layers) - 1
        columns = (0, 1, 2, 3) if fabric.n_cores else (0, 3)
        return 1 if weights is None else int(weights[f, columns[i]])

    chosen = [(-1, -1, -1, -1)] * flows.n_flows
    counts: dict[int, Counter[int]] = {}
    for f in sorted(range(flows.n_flows), key=lambda f: -flows.size_bytes[f]):
        if fabric.leaf_of(flows.src[f]) == fabric.leaf_of(flows.dst[f]):
            continue
        count = counts.setdefault(int(flows.collective[f]) if per_collective else 0, Counter())

        def cost(path: tuple[int, ...], f: int = f, count: Counter[int] = count) -> tuple:
            links = _links(fabric, flow(flows, f), path)[1:-1]
            load = [count[x] + step(f, x) for x in links]
            own = [count[x] for x in links]
            spine, core = path[0] // fabric.n_parallel, path[1] // fabric.core_parallel
            return max(load), spine, max(load[1:-1], default=0), core, own, path

        chosen[f] = min(paths(fabric, flows.src[f], flows.dst[f]), key=cost)
        for x in _links(fabric, flow(flows, f), chosen[f])[1:-1]:
            count[x] += step(f, x)
    return chosen


def rows(choice: Choice) -> list[tuple[int, int, int, int]]:
    """The choice of every flow."""
    columns = (choice.uplink, choice.core_link, choice.core_down, choice.spine_down)
    return [tuple(int(x) for x in row) for row in np.stack(columns, axis=1)]


def least_maximum(fabric: Clos, flows: Flows, *, by_bytes: bool = False) -> float:
    """The least possible load of the busiest link between switches, by trying all paths.

    Its number of flows, or the seconds that its bytes take.
    """
    crossing = [
        f
        for f in range(flows.n_flows)
        if fabric.leaf_of(flows.src[f]) != fabric.leaf_of(flows.dst[f])
    ]
    options = [
        [
            _links(fabric, flow(flows, f), path)[1:-1]
            for path in paths(fabric, flows.src[f], flows.dst[f])
        ]
        for f in crossing
    ]
    sizes = flows.size_bytes[crossing] if by_bytes else [1] * len(crossing)
    speeds = fabric.capacity_Bps if by_bytes else [1] * fabric.n_links

    def busiest(taken: tuple[list[int], ...]) -> float:
        load: dict[int, float] = {}
        for links, size in zip(taken, sizes, strict=True):
            for x in links:
                load[x] = load.get(x, 0) + size
        return max((size / speeds[x] for x, size in load.items()), default=0)

    return min(map(busiest, itertools.product(*options)))


def check_paths(fabric: Clos, flows: Flows, choice: Choice) -> None:
    """Every flow is on one path of working switch links from its source to its destination."""
    links: Indices = links_of(fabric, flows, choice)
    for f in range(flows.n_flows):
        of_flow = [int(x) for x in links[f] if x >= 0]
        ends = [fabric.link_name(x).split(" -> ") for x in of_flow]
        names = [[end.split(" (")[0] for end in link] for link in ends]
        assert names[0][0] == f"host {flows.src[f]}"
        assert names[-1][1] == f"host {flows.dst[f]}"
        assert all(a[1] == b[0] for a, b in itertools.pairwise(names))
        assert all(fabric.alive[x] for x in of_flow[1:-1])
        crosses_leaf = fabric.leaf_of(flows.src[f]) != fabric.leaf_of(flows.dst[f])
        crosses_pod = fabric.pod_of(flows.src[f]) != fabric.pod_of(flows.dst[f])
        assert len(of_flow) == 2 + 2 * crosses_leaf + 2 * crosses_pod
        up, core, core_down, down = rows(choice)[f]
        assert (up >= 0, down >= 0) == (crosses_leaf, crosses_leaf)
        assert (core >= 0, core_down >= 0) == (crosses_pod, crosses_pod)
