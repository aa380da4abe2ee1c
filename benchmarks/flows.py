"""The flow checker: routing, counting, filling, following and FIM over seeds, on big fabrics.

Ratios are of a plain reference over the product, in pairs in one run: one flow after the other
for routing, NumPy level by level for rates (``flow_rates.py``).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import resource
import subprocess
import sys
import zlib
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from flow_rates import Array, compared, plain_rates, row, seconds, timed

from libra_planner.check.report import seed_reports
from libra_planner.fabric.clos import Clos, Flows
from libra_planner.fabric.realization import preset_fabric
from libra_planner.routing.ecmp import Headers, _switch_seeds, drawn_headers
from libra_planner.routing.policy import Policy
from libra_planner.routing.rates import finish_times_s, max_min_rates
from libra_planner.routing.routes import Router, single_paths

N_SEEDS = 1000
CRC32 = Policy("ecmp", hash="crc32")


def fabric_32x32() -> Clos:
    """32 leaves of 32 hosts, 32 spines, 400 Gbit/s."""
    return Clos(32, 32, 32, host_Bps=50e9, uplink_Bps=50e9)


def random_flows(fabric: Clos, n_flows: int, *, mixed: bool = False) -> Flows:
    """Flows between random hosts, of 1 GB or of 0.1 to 1 GB."""
    rng = np.random.default_rng(1)
    src = rng.integers(0, fabric.n_hosts, n_flows)
    dst = (src + rng.integers(1, fabric.n_hosts, n_flows)) % fabric.n_hosts
    size_bytes = rng.uniform(1e8, 1e9, n_flows) if mixed else np.full(n_flows, 1e9)
    return Flows(src, dst, size_bytes)


def rates(router: Router, seed: int = 0) -> Array:
    """Max-min rates of flows that are routed and counted first."""
    routing = router.routing(seed)
    return max_min_rates(routing.routes, routing.capacity_Bps)


def once(fabric: Clos, flows: Flows, policy: Policy = CRC32) -> Array:
    """Flows routed, counted and filled once."""
    return rates(Router(fabric, flows, policy))


def plain_once(fabric: Clos, flows: Flows, seed: int = 0) -> Array:
    """The same, one flow after the other: ``zlib.crc32`` at its leaf on a leaf-spine fabric."""
    headers = drawn_headers(flows, seed)
    seeds = _switch_seeds(fabric, CRC32, seed)["leaf"]
    links, counts = [], np.zeros(fabric.n_links)
    starts = [layer.start for layer in fabric.layers]
    for f, (src, dst) in enumerate(zip(flows.src.tolist(), flows.dst.tolist(), strict=True)):
        leaf, other = src // fabric.hosts_per_leaf, dst // fabric.hosts_per_leaf
        path = [src, -1, -1, starts[-1] + dst]
        if leaf != other:
            spine = zlib.crc32(header_bytes(headers, f), int(seeds[leaf])) % fabric.n_spines
            path[1] = starts[1] + leaf * fabric.n_spines + spine
            path[2] = starts[2] + other * fabric.n_spines + spine
        for link in path:
            if link >= 0:
                counts[link] += 1
        links.append(path)
    return plain_rates(single_paths(np.array(links)), fabric.capacity_Bps)


def header_bytes(headers: Headers, f: int) -> bytes:
    """Addresses, ports and protocol as they are on the wire."""
    fields = [(headers.src_ip, 4), (headers.dst_ip, 4), (headers.src_port, 2)]
    fields += [(headers.dst_port, 2), (headers.protocol, 1)]
    return b"".join(int(field[f]).to_bytes(n, "big") for field, n in fields)


def follow(fabric: Clos, flows: Flows) -> Array:
    """Flows routed and followed to the last end."""
    routing = Router(fabric, flows, Policy()).routing(0)
    return finish_times_s(routing.routes, routing.capacity_Bps, flows.size_bytes)


def many_seeds(fabric: Clos, flows: Flows) -> Array:
    """FIM of every seed."""
    report = seed_reports(fabric, flows, Policy(), seeds=range(N_SEEDS), with_rates=False)
    return report.fim_percent


def pod_once() -> None:
    """Print seconds and peak memory of 131,072 flows on the pod fabric, in this process."""
    fabric = preset_fabric("pod-16384")
    once(fabric, random_flows(fabric, 10))  # Loads the machine code, or compiles it.
    flows = random_flows(fabric, 131_072)
    taken = [seconds(partial(once, fabric, flows, Policy()))[0] for _ in range(3)]
    peak_GB = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(*taken, peak_GB)


def pod() -> None:
    """Rows of a process of its own, whose memory is that of these flows only."""
    done = subprocess.run(
        [sys.executable, __file__, "pod"], check=True, capture_output=True, text=True
    )
    *taken, peak_GB = map(float, done.stdout.split())
    row("131,072 flows on pod-16384 routed, counted, filled once, ms", [x * 1e3 for x in taken])
    row("the same: peak memory of the process, GB", [peak_GB])


def growth() -> None:
    """Milliseconds by number of flows on the pod fabric, routed, counted and filled once."""
    fabric = preset_fabric("pod-16384")
    for n_flows in (1024, 4096, 16_384, 65_536, 131_072):
        flows = random_flows(fabric, n_flows)
        timed(f"{n_flows:,} flows on pod-16384 once", partial(once, fabric, flows, Policy()))


def main() -> None:
    """Print table rows."""
    fabric = fabric_32x32()
    flows = random_flows(fabric, 8192)
    follow(fabric, random_flows(fabric, 10))  # Loads the machine code, or compiles it.
    plain = partial(plain_once, fabric, flows)
    compared("8,192 flows on 32x32 routed, filled once", partial(once, fabric, flows), plain)
    timed("8,192 flows on 32x32 routed, counted and filled once", partial(once, fabric, flows))
    for name in ("equal", "mixed"):
        sized = random_flows(fabric, 8192, mixed=name == "mixed")
        timed(f"8,192 flows of {name} sizes routed and followed", partial(follow, fabric, sized))
    timed("FIM of 1,000 seeds x 8,192 flows", partial(many_seeds, fabric, flows))
    growth()
    pod()


if __name__ == "__main__":
    pod_once() if sys.argv[1:] == ["pod"] else main()
