"""Studies of failures as JSON-ready values and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from libra_planner.check.degraded import FailureCase, FailureStudy
from libra_planner.routing.loads import distribution
from libra_planner.units import format_time
from libra_planner.views import spread
from libra_planner.views.cells import Block, attributes, escape

LEAST_FOR_HISTOGRAM = 10
"""Draws, or seeds, below which a histogram says no more than the percentiles."""

MOST_NAMED = 10
"""Cases that are named."""


def study_payload(study: FailureStudy) -> dict[str, Any]:
    """Statistics of a study, and its first cases."""
    return {
        "n_cases": len(study.cases),
        **attributes(study, "n_disconnected", "whole_step_time_s"),
        "step_time_s": spread.spread(study.step_time_s),
        "slowdown_vs_whole": spread.spread(study.step_time_s / study.whole_step_time_s),
        "fim_percent": spread.spread(study.fim_percent),
        "step_time_histogram": spread.histogram_payload(study.step_time_s),
        "cases": [
            attributes(case, "name", "step_time_s", "fim_percent")
            | {"disconnected": case.disconnected or None}
            for case in study.cases[:MOST_NAMED]
        ],
    }


def failures_blocks(
    studies: dict[str, FailureStudy], failed: str, *, n_worst: int
) -> Iterator[Block]:
    """Studies of failures, after those of the check; ``failed`` says what in each draw.

    Of an N-1 study the worst cases are listed.
    """
    for name, study in studies.items():
        is_drawn, n = name == "failures", study.n_disconnected
        what = f"{failed} failed" if is_drawn else "any one cable or spine failed (N-1)"
        yield from ("", escape(f"With {what}, {_times(study)}"))
        for cut in [case for case in study.cases if case.disconnected][:1]:
            cases = "1 case cuts" if n == 1 else f"{n:,} cases cut"
            rest = f"left out of the times; {cut.name}: {cut.disconnected}"
            yield escape(f"  {cases} hosts off, {rest}")
        if not is_drawn:
            joined = [case for case in study.cases if not case.disconnected]
            yield from (escape(_case_text(case, study)) for case in joined[:n_worst])
        elif len(study.step_time_s) >= LEAST_FOR_HISTOGRAM:
            yield spread.timed_histogram("Draws by step time,", study.step_time_s)


def _case_text(case: FailureCase, study: FailureStudy) -> str:
    slower = _slower(case.step_time_s, study)
    fim = "" if np.isnan(case.fim_percent) else f", FIM {case.fim_percent:.2f} %"
    return f"  {case.name}: {format_time(case.step_time_s)} ({slower}{fim})"


def _times(study: FailureStudy) -> str:
    n_cases = f"{len(study.cases):,} case{'s' if len(study.cases) > 1 else ''}"
    times = study.step_time_s
    if not len(times):
        return f"{n_cases}: all cut hosts off"
    found, whole = distribution(times), format_time(study.whole_step_time_s)
    return (
        f"{n_cases}: step time {format_time(found.mean)} on average "
        f"({_slower(found.mean, study)}: {whole} with nothing failed), "
        f"p95 {format_time(found.p95)}, worst {format_time(times.max())} "
        f"({_slower(times.max(), study)})"
    )


def _slower(step_time_s: float, study: FailureStudy) -> str:
    """A time over that of nothing failed, where it is beyond what routings differ by."""
    if step_time_s <= study.most_whole_step_time_s:
        return "within the spread of routings"
    return f"{step_time_s / study.whole_step_time_s:.3f}x"
