"""Max-min rates and finish times over a plain NumPy filling of the same flows (in pairs)."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from numpy.typing import NDArray

from libra_planner.routing.rates import finish_times_s, max_min_rates
from libra_planner.routing.routes import Routes, single_paths

Array: TypeAlias = NDArray[np.float64]

N_RUNS = 5
LINK_BPS = 50e9


def leaf_spine(n_flows: int, n_leaves: int, n_spines: int) -> tuple[NDArray[np.int64], Array]:
    """Links of flows between random hosts, 32 per leaf, on random spines; the capacities."""
    rng = np.random.default_rng(1)
    n_hosts, n_up = 32 * n_leaves, n_leaves * n_spines
    src = rng.integers(0, n_hosts, n_flows)
    dst = (src + rng.integers(1, n_hosts, n_flows)) % n_hosts
    spine = rng.integers(0, n_spines, n_flows)
    up = n_hosts + src // 32 * n_spines + spine
    down = n_hosts + n_up + spine * n_leaves + dst // 32
    outside = src // 32 != dst // 32
    middle = [np.where(outside, up, -1), np.where(outside, down, -1)]
    links = np.stack([src, *middle, n_hosts + 2 * n_up + dst], axis=1)
    return links, np.full(2 * (n_hosts + n_up), LINK_BPS)


def long_paths(n_flows: int) -> tuple[NDArray[np.int64], Array]:
    """Flows of 6 hops over 100,000 links, any of its sixth for every hop."""
    n_links = 100_000 // 6 * 6
    links = np.random.default_rng(1).integers(0, n_links // 6, (n_flows, 6))
    return links + np.arange(6) * (n_links // 6), np.full(n_links, LINK_BPS)


def plain_rates(routes: Routes, capacity: Array) -> Array:
    """Level by level, each over all hops that are left."""
    link, n_links = routes.link, len(capacity)
    flow = np.repeat(np.arange(routes.n_flows), np.diff(routes.start))
    room, rates = capacity.copy(), np.full(routes.n_flows, np.inf)
    while link.size:
        count = np.bincount(link, minlength=n_links)
        levels = np.divide(room, count, out=np.full(n_links, np.inf), where=count > 0)
        level = levels.min()
        is_full = levels <= level * (1 + 1e-12)
        stops = np.zeros(routes.n_flows, dtype=np.bool_)
        stops[flow[is_full[link]]] = True
        rates[stops] = level
        room -= level * np.bincount(link[stops[flow]], minlength=n_links)
        link, flow = link[~stops[flow]], flow[~stops[flow]]
    return rates


def plain_times(links: NDArray[np.int64], capacity: Array, size_bytes: Array) -> Array:
    """From one end to the next, filled from nothing each time."""
    left, ends, now = size_bytes.copy(), np.zeros(len(links)), 0.0
    active = np.arange(len(links))
    while active.size:
        rates = plain_rates(single_paths(links[active]), capacity)
        waits = left[active] / rates
        now += waits.min()
        left[active] -= rates * waits.min()
        ended = waits <= waits.min() * (1 + 1e-9)
        ends[active[ended]] = now
        active = active[~ended]
    return ends


def compared(name: str, fast: Callable[[], Array], plain: Callable[[], Array]) -> None:
    """Print a row of ratios, plain over fast."""
    ratios = []
    for _ in range(N_RUNS):
        plain_s, expected = seconds(plain)
        fast_s, found = seconds(fast)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        ratios.append(plain_s / fast_s)
    row(f"{name}: plain NumPy over it", ratios)


def timed(name: str, fast: Callable[[], object]) -> None:
    """Print a row of milliseconds."""
    row(f"{name}, ms", [seconds(fast)[0] * 1e3 for _ in range(N_RUNS)])


def seconds(call: Callable[[], Array]) -> tuple[float, Array]:
    """Time of one call, and what it found."""
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def row(name: str, values: list[float]) -> None:
    """Print min, median, and max."""
    print(f"| {name} | {min(values):.1f} | {median(values):.1f} | {max(values):.1f} |")


def filled(links: NDArray[np.int64], capacity: Array) -> Array:
    """Routes from a table of links, flows counted by link, rates."""
    routes = single_paths(links)
    routes.counts(len(capacity))
    return max_min_rates(routes, capacity)


def main() -> None:
    """Print table rows."""
    warm = single_paths([[0]])
    finish_times_s(warm, [1.0], [1.0])  # Loads the machine code, or compiles it.
    rng = np.random.default_rng(2)
    links, capacity = leaf_spine(8192, 32, 32)
    routes, mixed = single_paths(links), rng.uniform(1e8, 1e9, len(links))
    once = partial(filled, links, capacity)
    compared("8,192 flows filled once", once, partial(plain_rates, routes, capacity))
    few, few_capacity = leaf_spine(512, 8, 8)
    for name, size in (("equal", np.full(512, 1e9)), ("mixed", mixed[:512])):
        follow = partial(finish_times_s, single_paths(few), few_capacity, size)
        plain = partial(plain_times, few, few_capacity, size)
        compared(f"512 flows of {name} sizes followed", follow, plain)
    timed("8,192 flows counted and filled once", once)
    for name, size in (("equal", np.full(len(links), 1e9)), ("mixed", mixed)):
        follow = partial(finish_times_s, routes, capacity, size)
        timed(f"8,192 flows of {name} sizes followed", follow)
    timed("131,072 flows of 6 hops counted and filled once", partial(filled, *long_paths(131_072)))


if __name__ == "__main__":
    main()
