"""Figures over the seeds of several routings: JSON-ready values and text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from libra_planner.fabric.clos import Array
from libra_planner.routing.loads import distribution
from libra_planner.units import format_time, time_unit
from libra_planner.views.cells import Histogram, Table, attributes, finite, table

if TYPE_CHECKING:
    from libra_planner.check.links import CheckReport

NOTHING_DRAWN = ": no path is drawn, one routing"
"""What stands after a policy in place of its seeds."""


STATISTICS = ("mean", "sd", "p5", "p50", "p95")
"""What is said of a figure over seeds."""


def whole(value: float) -> float | int:
    """A number of flows: whole unless packets are sprayed."""
    return int(value) if float(value).is_integer() else float(value)


def spread(samples: Array | Sequence[float]) -> dict[str, float | None]:
    """Statistics over seeds."""
    return attributes(distribution(samples), *STATISTICS)


def step_line(report: CheckReport) -> str:
    """The step of a design on its links beside that of the model."""
    time_s = float(distribution(report.effective_step_time_s).mean)
    mean = f", mean of {report.n_routings:,} routings" if report.n_routings > 1 else ""
    return (
        f"Step time [bold]{format_time(time_s)}[/] on its links by {report.policy.name}{mean}; "
        f"{format_time(report.ideal_step_time_s)} by the plan's model"
    )


def figures(name: str, samples: Array | Sequence[float], *, statistics: bool) -> dict[str, Any]:
    """A key with the statistics of several seeds, or with their mean; their spread beside it.

    >>> figures("fim_percent", [30.0, 40.0], statistics=False)["fim_percent_max"]
    40.0
    """
    found = distribution(samples)
    known = [float(one) for one in samples if not math.isnan(one)]
    return {
        name: spread(samples) if statistics else finite(found.mean),
        f"{name}_sd": finite(found.sd) if len(known) > 1 else None,
        f"{name}_min": min(known, default=None),
        f"{name}_max": max(known, default=None),
    }


def seed_figures(samples: Mapping[str, Array], statistics: bool) -> dict[str, Any]:
    """:func:`figures` of samples by name."""
    rows = (figures(name, found, statistics=statistics) for name, found in samples.items())
    return {key: value for row in rows for key, value in row.items()}


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
    ends = {f"{name}_min": whole(least), f"{name}_max": whole(most)}
    if statistics:
        return found | ends
    return found | ends | {name: whole(mean) if least == most else math.floor(mean + 0.5)}


def histogram_payload(samples: Array | Sequence[float]) -> dict[str, Any]:
    """Counts and edges of a histogram."""
    found = distribution(samples)
    return {"counts": found.counts.tolist(), "edges": found.edges.tolist()}


def spread_table(rows: Sequence[tuple[str, Array]], title: str) -> Table:
    """Statistics over seeds of figures with a name; those that are all nan are left out."""
    found = [(name, attributes(distribution(x), *STATISTICS).values()) for name, x in rows]
    known = [(name, *(f"{x:,.3f}" for x in values)) for name, values in found if None not in values]
    return table("", title, ("figure", *STATISTICS), known, left=("figure",))


def timed(name: str, seconds: Array) -> tuple[str, Array]:
    """Times in a unit that fits their mean, which the name then ends with."""
    unit_s, unit = time_unit(float(seconds.mean()))
    return f"{name} {unit}", seconds / unit_s


def timed_histogram(title: str, seconds: Array) -> Histogram:
    """How many times there are of which length."""
    return Histogram(*timed(title, seconds))


def costs_line(report: CheckReport) -> str:
    """What the links' shape and the routing add to the step time."""
    links = report.spray_step_time_s / report.ideal_step_time_s - 1
    routing = report.effective_step_time_s / report.spray_step_time_s - 1
    cost = f"{report.policy.name} {_signed(distribution(routing).mean)}"
    means = mean_text(routing[: report.n_routings], _signed)
    said = f"The links cost {_signed(links)} step time, {cost}"
    if _signed(links).startswith("-"):
        shorter = f"On whole links the step is {-links:.2%} shorter"
        said = f"{shorter} (NICs come whole, or sends find idle uplinks), {cost}"
    return said + f" ({means})" * bool(means)


def _signed(fraction: float) -> str:
    return f"{round(fraction, 4) + 0.0:+.2%}"
