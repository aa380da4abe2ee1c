"""Figures over the seeds of several routings: JSON-ready values and text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from libra_planner.fabric.clos import Array
from libra_planner.routing.imbalance import Distribution, distribution

NOTHING_DRAWN = ": no path is drawn, one routing"
"""What stands after a policy in place of its seeds."""


def number(value: float) -> float | None:
    """A figure for JSON: null for what is not defined."""
    return float(value) if math.isfinite(value) else None


def count(value: float) -> float | int:
    """A number of flows: whole unless packets are sprayed."""
    return int(value) if float(value).is_integer() else float(value)


def spread(samples: Array | Sequence[float]) -> dict[str, float | None]:
    """Statistics over seeds."""
    found: Distribution = distribution(samples)
    return {
        "mean": number(found.mean),
        "sd": number(found.sd),
        "p5": number(found.p5),
        "p50": number(found.p50),
        "p95": number(found.p95),
    }


def figures(name: str, samples: Array | Sequence[float], *, statistics: bool) -> dict[str, Any]:
    """A key with the statistics of several seeds, or with their mean; their spread beside it.

    >>> figures("fim_percent", [30.0, 40.0], statistics=False)["fim_percent_max"]
    40.0
    """
    found = distribution(samples)
    known = [float(one) for one in samples if not math.isnan(one)]
    return {
        name: spread(samples) if statistics else number(found.mean),
        f"{name}_sd": number(found.sd) if len(known) > 1 else None,
        f"{name}_min": min(known, default=None),
        f"{name}_max": max(known, default=None),
    }


def mean_text(samples: Array | Sequence[float], text: Callable[[float], str]) -> str:
    """How many routings a figure is the mean of, and how far they are apart; nothing of one.

    >>> mean_text([30.0, 40.0], "{:g} %".format)
    'mean of 2 routings, from 30 % to 40 %'
    """
    known = [float(one) for one in samples if not math.isnan(one)]
    if len(known) < 2:
        return ""
    return f"mean of {len(known):,} routings, from {text(min(known))} to {text(max(known))}"


def whole_figures(
    name: str, samples: Array | Sequence[float], *, statistics: bool
) -> dict[str, Any]:
    """The same of a number of flows or links: the mean is rounded, so that it stays a number.

    >>> whole_figures("max_flows", [7.0, 8.0, 8.0], statistics=False)["max_flows"]
    8
    """
    found = figures(name, samples, statistics=statistics)
    mean, least, most = (found[f"{name}{end}"] for end in ("", "_min", "_max"))
    ends = {f"{name}_min": count(least), f"{name}_max": count(most)}
    if statistics:
        return found | ends
    return found | ends | {name: count(mean) if least == most else math.floor(mean + 0.5)}
