"""Designs with failures as JSON-ready values and terminal text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from libra_planner.check.failures import FailureCase, FailureStudy
from libra_planner.routing.imbalance import distribution
from libra_planner.units import format_time
from libra_planner.views.spread import number, spread

MOST_NAMED = 10
"""Cases that are named."""


def study_payload(study: FailureStudy) -> dict[str, Any]:
    """Statistics of a study, and its first cases."""
    found = distribution(study.step_time_s)
    return {
        "n_cases": len(study.cases),
        "n_disconnected": study.n_disconnected,
        "whole_step_time_s": study.whole_step_time_s,
        "step_time_s": spread(study.step_time_s),
        "slowdown_vs_whole": spread(study.step_time_s / study.whole_step_time_s),
        "fim_percent": spread(study.fim_percent),
        "step_time_histogram": {"counts": found.counts.tolist(), "edges": found.edges.tolist()},
        "cases": [_case(case) for case in study.cases[:MOST_NAMED]],
    }


def _case(case: FailureCase) -> dict[str, Any]:
    return {
        "name": case.name,
        "step_time_s": number(case.step_time_s),
        "fim_percent": number(case.fim_percent),
        "disconnected": case.disconnected or None,
    }


def draw_lines(study: FailureStudy, what: str) -> Iterator[str]:
    """Drawn failures in words; ``what`` fails in every draw."""
    yield f"With {what} failed, {_times(study)}"
    yield from _cut_off(study)


def single_failure_lines(study: FailureStudy, n: int) -> Iterator[str]:
    """The N-1 study in words, with the worst ``n`` cases."""
    yield f"With any one cable or spine failed (N-1), {_times(study)}"
    yield from _cut_off(study)
    for case in [case for case in study.cases if not case.disconnected][:n]:
        slower = case.step_time_s / study.whole_step_time_s
        fim = "" if np.isnan(case.fim_percent) else f", FIM {case.fim_percent:.2f} %"
        yield f"  {case.name}: {format_time(case.step_time_s)} ({slower:.3f}x{fim})"


def _times(study: FailureStudy) -> str:
    n_cases = f"{len(study.cases):,} case{'s' if len(study.cases) > 1 else ''}"
    times = study.step_time_s
    if not len(times):
        return f"{n_cases}: all cut hosts off"
    found, whole_s = distribution(times), study.whole_step_time_s
    worst_s = float(times.max())
    return (
        f"{n_cases}: step time {format_time(found.mean)} on average "
        f"({found.mean / whole_s:.3f}x of {format_time(whole_s)} with nothing failed), "
        f"p95 {format_time(found.p95)}, worst {format_time(worst_s)} ({worst_s / whole_s:.3f}x)"
    )


def _cut_off(study: FailureStudy) -> Iterator[str]:
    cut = [case for case in study.cases if case.disconnected]
    if cut:
        n = len(cut)
        cases = "1 case cuts" if n == 1 else f"{n:,} cases cut"
        yield f"  {cases} hosts off, left out of the times; {cut[0].name}: {cut[0].disconnected}"
