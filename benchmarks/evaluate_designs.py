"""Designs evaluated per second, vectorised, and over a plain Python loop (in pairs)."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from statistics import median

import numpy as np

import libra_planner as lp

N_DESIGNS = 1_000_000
N_LOOP = 2_000
N_RUNS = 11


def rate(call: object, n_designs: int) -> float:
    """Designs per second of one call."""
    start = time.perf_counter()
    call()  # type: ignore[operator]
    return n_designs / (time.perf_counter() - start)


def main() -> None:
    """Print two table rows."""
    step_time = lp.load_plan(lp.example("01_gpt3_4d")).step_time
    designs = np.random.default_rng(0).uniform(1e9, 5e11, (N_DESIGNS, 4))
    some = designs[:N_LOOP]
    step_time.seconds(designs)
    vectorised, ratios = [], []
    for _ in range(N_RUNS):
        vectorised.append(rate(lambda: step_time.seconds(designs), N_DESIGNS) / 1e6)
        loop = rate(lambda: [step_time.seconds(design) for design in some], N_LOOP) / 1e6
        ratios.append(vectorised[-1] / loop)
    for name, values in (
        ("million designs per second, one call of 1,000,000", vectorised),
        ("that over one call per design", ratios),
    ):
        print(f"| {name} | {min(values):.1f} | {median(values):.1f} | {max(values):.1f} |")


if __name__ == "__main__":
    main()
