"""All designs of a report in one small table: price, speed, and what is known of each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from libra_planner.procurement.advice import neighbours, tied
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.readiness import broken_texts
from libra_planner.procurement.run import HOUR_S
from libra_planner.views import cells
from libra_planner.views.cells import Table, Value, number, round_delta_usd, round_usd, table
from libra_planner.views.report.against import named
from libra_planner.views.report.bills import group_cell
from libra_planner.views.report.offers import before_tax
from libra_planner.views.report.runs import tokens_text

_DAY_S = 24 * HOUR_S


def considered_table(comparison: Comparison) -> Table | None:
    """The designs, the one to buy first, those that break rules last; none of a single design."""
    if len(comparison.candidates) < 2:
        return None
    one, has_times = comparison.candidates[comparison.chosen], comparison.times_s is not None
    run = f"{tokens_text(one.n_tokens)}, days"
    columns = {
        "Design": True,
        f"Price{before_tax(one)}": True,
        f"Price against {one.letter}": True,
        "Step time, s": True,
        f"Time against {one.letter}": has_times,
        run: comparison.has_run,
        f"Work per dollar against {one.letter}": has_times,
        "Remarks": True,
    }
    told = columns.values()
    rows = [[*itertools.compress(_row(comparison, i), told)] for i in comparison.order]
    decides = "work per dollar decides" if has_times else "the price decides"
    headings = [*itertools.compress(columns, told)]
    title = f"All designs, the one to buy first; {decides}"
    return table("considered", title, headings, rows, dispensable=(run,))


def _row(comparison: Comparison, i: int) -> list[Value]:
    """Figures of a design, beside those of the one to buy."""
    best, other = (comparison.candidates[x] for x in (comparison.chosen, i))
    times, worth = comparison.times_s, comparison.worth
    at = [group_cell(x, "total") for x in (best, other)]
    more = ""
    if times is not None and worth[i]:
        more = f"{at[0]}*{times[comparison.chosen]!r}/({at[1]}*{times[i]!r})-1"
    days = None if other.run is None else other.run.expected_s / _DAY_S
    return [
        named(other),
        round_usd(other.bill.total_usd, at[1]),
        round_delta_usd(_change_usd(comparison, i), f"{at[1]}-{at[0]}"),
        number(other.step_time_by(comparison.ranking.ranked_by), 3),
        "" if times is None else cells.delta(_ratio(times, i, comparison.chosen)),
        number(days if days is not None and math.isfinite(days) else None, 1),
        "" if times is None else cells.delta(_ratio(worth, comparison.chosen, i), more),
        "; ".join(remarks(comparison, i)),
    ]


def _change_usd(comparison: Comparison, i: int) -> Any:
    """What a design costs more than the one to buy."""
    best, other = (comparison.candidates[x] for x in (comparison.chosen, i))
    return other.bill.total_usd - best.bill.total_usd


def _ratio(values: Any, i: int, j: int) -> float | None:
    """How much more the first is than the second, a share."""
    return float(values[i]) / float(values[j]) - 1 if values[j] else None


def remarks(comparison: Comparison, i: int) -> Iterator[str]:
    """Whether a design is bought, what it is to the one that is, and which rules it breaks."""
    if i == comparison.chosen:
        yield "to buy"
    roles = {x.index: x.roles for x in neighbours(comparison)}
    yield from (role.removeprefix("the ") for role in roles.get(i, ()))
    if i in tied(comparison, comparison.chosen, with_prices=True):
        yield f"tied with {comparison.letters[comparison.chosen]}"
    yield from (f"breaks {text}" for text in broken_texts(comparison.candidates[i]))


def considered_payload(comparison: Comparison) -> list[dict[str, Any]]:
    """The key ``considered`` of ``report --json``: the designs in the order of the table."""
    times, worth, best = comparison.times_s, comparison.worth, comparison.chosen
    return [
        {
            "design": comparison.letters[i],
            "name": one.proposal.name,
            "total_usd": float(one.bill.total_usd),
            "change_usd": float(_change_usd(comparison, i)),
            "ranked_step_time_s": one.step_time_s,
            "time_change_fraction": None if times is None else _ratio(times, i, best),
            "work_per_usd_change_fraction": None if times is None else _ratio(worth, best, i),
            "remarks": [*remarks(comparison, i)],
        }
        for i in comparison.order
        for one in [comparison.candidates[i]]
    ]
