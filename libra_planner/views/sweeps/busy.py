"""Whether the best rows of a sweep load their links so much that routing decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from libra_planner.errors import PlannerError
from libra_planner.inputs.plans import OpenedPlan
from libra_planner.problem import fastest_alternative
from libra_planner.sweeps.results import Results
from libra_planner.views.sweeps.best import best_rows
from libra_planner.views.sweeps.noted import Remark, bandwidth_Bps, plans_of
from libra_planner.views.training.step import busy_words

_MOST_READ = 9
"""Best rows whose plans are read."""
_FOUND = "parallelism_found"


def busy_remarks(results: Results) -> Iterator[Remark]:
    """That the best rows may be much slower on links, in a sweep that does not check them."""
    if results.manifest["spec"].get("check") or "optimal" not in results.statuses:
        return
    found = {
        row: words
        for row in islice(best_rows(results), _MOST_READ)
        if (words := _busy(results, row))
    }
    if not found:
        return
    row, words = next(iter(found.items()))
    others = ", ".join(str(one) for one in sorted(found) if one != row)
    also = f", and much like it in row {others}" if others else ""
    yield Remark(
        f"Links of the best: in row {row}{also}, {words}; write check: {{policy: ecmp}} in the "
        "sweep, and run it into a new directory: rows then rank by the time on their links",
        "links of the best rows are busy, and ECMP may stretch their steps",
    )


def _busy(results: Results, row: int) -> str:
    """What is busy in a row; nothing where its plan has changed, or its bandwidth is not known."""
    bandwidth = bandwidth_Bps(results, row)
    if bandwidth is None:
        return ""
    with suppress(PlannerError):
        for plan in plans_of(results, row):
            problem = _with_strategy(results, row, plan).problem
            return busy_words(fastest_alternative(problem, bandwidth), bandwidth)
    return ""


def _with_strategy(results: Results, row: int, plan: OpenedPlan) -> OpenedPlan:
    """A plan that leaves its strategy open with the one that the row has."""
    if not plan.is_open or _FOUND not in results.columns:
        return plan
    ((text,),) = results.sql(f"SELECT {_FOUND} FROM designs WHERE row = {row}").rows
    own = plan.document.value | {"parallelism": json.loads(text)}
    return OpenedPlan(replace(plan.document, value=own), plan.beside, plan.bills)
