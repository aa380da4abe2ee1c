"""What ``check`` and ``optimize --routing`` have in common: seeds, traffic, places of faults."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace

from libra_planner.check.report import asked_seeds
from libra_planner.check.traffic import TrafficSettings, traffic_settings
from libra_planner.problem import Problem


def seeds_of(options: argparse.Namespace) -> range | None:
    """The seeds that the options ask for; ``None`` without any."""
    return asked_seeds(options.seeds, options.seed)


def wants_statistics(options: argparse.Namespace) -> bool:
    """Whether a number of routings is asked for, whose statistics stand in place of a mean."""
    return (options.seeds or 1) > 1


def traffic_of(options: argparse.Namespace, problem: Problem) -> TrafficSettings:
    """How NPUs use their NICs: as the options say, else the plan, else the defaults."""
    planned = traffic_settings(problem.links)
    given = {
        "placement": options.placement,
        "n_queue_pairs": options.queue_pairs,
        "npus_per_address": options.npus_per_address,
    }
    return replace(planned, **{name: value for name, value in given.items() if value is not None})


def progress_of(what: str, *, least: int = 0) -> Callable[[int, int], None] | None:
    """What writes progress to stderr, of at least so many; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        return None

    def write(done: int, n: int) -> None:
        end = "\n" if done >= n else ""
        if n >= least:
            print(f"\r{done:,} of {n:,} {what}", end=end, file=sys.stderr, flush=True)

    return write
