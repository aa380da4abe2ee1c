"""Logs of nccl-tests: public excerpts as they stand (the .log files), and made ones.

Each .log begins with its source. They are cut: fewer sizes, and no other text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from libra_planner.step.collectives.measured import (
    SEND_RECV,
    Constants,
    Ranks,
    measured_time_s,
    sent_bytes,
)

HERE = Path(__file__).parent
PROGRAMS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "alltoall",
    SEND_RECV: "sendrecv",
}
SIZES = [2**i for i in range(3, 34)]


def rounded(value: float, width: int) -> str:
    """As many digits as fit, as nccl-tests print a number."""
    texts = (f"{value:.{digits}f}" for digits in (2, 1, 0))
    return next((text for text in texts if len(text) <= width), f"{value:.1e}")


def row(kind: str, size: int, time_s: float, n: int) -> str:
    """A line of the table; in place takes as long."""
    algorithm = size / time_s / 1e9
    bus = algorithm * sent_bytes(kind, 1.0, n)
    cells = f"{rounded(1e6 * time_s, 7):>7}  {rounded(algorithm, 6):>6}  {rounded(bus, 6):>6}"
    return (
        f"{size:12d}  {size // 4:12d}     float     sum      -1  {cells}       0  {cells}       0"
    )


def log(
    kind: str,
    ranks: Ranks,
    time_s: Callable[[int], float],
    *,
    npu: str = "NVIDIA H100 80GB HBM3",
    sizes: Sequence[int] = SIZES,
) -> str:
    """What a test prints, version 2.17."""
    program = f"{PROGRAMS[kind]}_perf"
    hosts = [f"node-{i // ranks.n_per_node}" for i in range(ranks.n)]
    devices = [
        f"#  Rank {i:2d} Group  0 Pid {9000 + i:6d} on {host:>10} device {i % ranks.n_per_node:2d} "
        f"[0000:{i % ranks.n_per_node:02x}:00] {npu}"
        for i, host in enumerate(hosts)
    ]
    return "\n".join(
        [
            "# nccl-tests version 2.17.6 nccl-headers=22602 nccl-library=22602",
            f"# Collective test starting: {program}",
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 1 "
            "iters: 20 agg iters: 1 validation: 1 graph: 0",
            "#",
            "# Using devices",
            *devices,
            "#",
            "#" + " " * 62 + "out-of-place                       in-place          ",
            "#       size         count      type   redop    root     time   algbw   busbw  #wrong"
            "     time   algbw   busbw  #wrong ",
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)        "
            "     (us)  (GB/s)  (GB/s)         ",
            *(row(kind, size, time_s(size), ranks.n) for size in sizes),
            "# Out of bounds values : 0 OK",
            "# Avg bus bandwidth    : 137.179 ",
            "#",
            f"# Collective test concluded: {program}",
            "",
        ]
    )


def noisy_log(kind: str, ranks: Ranks, constants: Constants, seed: int, **more: str) -> str:
    """A test of a cluster that has other constants, with noise of 3 %."""
    noise = np.random.default_rng(seed).normal(0, 0.03, 64)

    def time_s(size: int) -> float:
        law_s = measured_time_s(kind, size, ranks, constants)
        return float(law_s * np.exp(noise[size.bit_length()]))

    return log(kind, ranks, time_s, **more)  # type: ignore[arg-type]
