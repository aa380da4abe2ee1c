"""What columns of results are computed from: arrays over designs, or lists of them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from libra_planner import units

_MILLION = 1e6


def itself(figures: Any) -> Any:
    """Figures as they are."""
    return figures


def gap(objective: Any, lower_bound: Any) -> Any:
    """Difference of an objective and its proven bound, relative."""
    return (objective - lower_bound) / lower_bound


def finite_ratio(numerator: Any, denominator: Any) -> Any:
    """A ratio; none where it has no bound."""
    ratio = numerator / denominator
    ratio[abs(ratio) == math.inf] = math.nan
    return ratio


def least_s(step_time_s: Any, error_fraction: Any) -> Any:
    """The shorter end of a band of times."""
    return step_time_s / (1 + error_fraction)


def most_s(step_time_s: Any, error_fraction: Any) -> Any:
    """The longer end of a band of times."""
    return step_time_s / (1 - error_fraction)


def percent(part: Any, whole: Any) -> Any:
    """A part of a whole in percent."""
    return 100 * part / whole


def difference(whole: Any, part: Any) -> Any:
    """What a whole is beyond a part."""
    return whole - part


def per_million_usd(tokens: Any, step_time_s: Any, usd: Any) -> Any:
    """Tokens per second and million dollars; none where nothing costs anything."""
    return finite_ratio(tokens / step_time_s, usd / _MILLION)


def over_rule(bill_usd: Any, bill_fabric_usd: Any, is_of_system: Any, cost_limit_usd: Any) -> Any:
    """A bill of what a plan's cost is of, minus the most that its rules let that be."""
    excess = np.where(is_of_system, bill_usd, bill_fabric_usd) - cost_limit_usd
    return np.where(np.isfinite(excess), excess, np.nan)


def of_optima(status: Any, flags: Any) -> list[bool | None]:
    """A truth value of optima; none of other designs."""
    pairs = zip(status, flags, strict=True)
    return [bool(flag) if one == "optimal" else None for one, flag in pairs]


def text_or_null(texts: Any) -> list[str | None]:
    """Texts; none where they are empty."""
    return [text or None for text in texts]


def of_search(name: str, found: Any) -> list[Any]:
    """A figure of each search; ``None`` where there was none."""
    return [None if one is None else getattr(one, name) for one in found]


def degree(name: str, strategies: Any) -> list[Any]:
    """A number or word of each strategy, as a plan writes it."""
    return [None if one is None else one.degrees[name] for one in strategies]


def written(strategies: Any) -> list[str | None]:
    """Each strategy as ``parallelism`` of a plan has it, in JSON."""
    return [None if one is None else json.dumps(one.degrees) for one in strategies]


def whole(numbers: Any) -> list[int | None]:
    """Whole numbers; ``None`` for NaN."""
    return [None if math.isnan(one) else int(one) for one in numbers]


def by_dimension(bandwidth_bytes_per_s: Any) -> Any:
    """Bandwidths in GB/s, a row for each dimension."""
    return bandwidth_bytes_per_s.T / units.BYTES_PER_S_PER_GBPS
