"""A comparison as JSON-ready values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from libra_planner.procurement.candidate import Candidate
from libra_planner.views.cells import PART_OF_A_STEP
from libra_planner.views.report.comparison import Comparison
from libra_planner.views.report.decision import decision_section
from libra_planner.views.spread import figures


def report_payload(comparison: Comparison, files: Sequence[Path]) -> dict[str, Any]:
    """What ``report --json`` prints.

    Parameters
    ----------
    comparison : what the report says.
    files : that it was written to.
    """
    ranks, letters = comparison.ranking, comparison.letters

    def letter(index: int | None) -> str | None:
        return None if index is None else letters[index]

    return {
        "files": [str(path) for path in files],
        "cheapest": letter(ranks.cheapest),
        "fastest": letter(ranks.fastest),
        "best_per_usd": letter(ranks.best_per_usd),
        "ranked_by": f"step time {ranks.ranked_by}",
        "order_note": ranks.order_note or None,
        "missing_prices": [part.name for part in comparison.missing],
        "decision": _decision(comparison),
        "n_tokens": comparison.n_tokens if comparison.has_run else None,
        "designs": [_design(one) for one in comparison.candidates],
    }


def _decision(comparison: Comparison) -> dict[str, Any]:
    """The answers with their reasons, as the report words them."""
    section = decision_section(comparison, ())
    cards = [
        {"title": card.title, "answer": card.answer, "figure": card.figure, "reason": card.reason}
        for card in section.cards
    ]
    return {"cards": cards, "warnings": section.warnings, "text": section.paragraphs}


def _effective(one: Candidate) -> dict[str, Any]:
    """The step time on the links, mean over the routings, and its spread."""
    samples = () if one.check is None else one.check.effective_step_time_s
    found = figures("effective_step_time_s", samples, statistics=False)
    return found | {"n_seeds": None if one.check is None else len(samples)}


def _design(one: Candidate) -> dict[str, Any]:
    run = one.run
    return {
        "design": one.letter,
        "name": one.proposal.name,
        "optimized": one.proposal.optimized,
        "step_time_s": one.evaluation.step_time_s,
        "real_link_step_time_s": one.evaluation.real_link_step_time_s,
        **_effective(one),
        "ranked_step_time_s": one.step_time_s,
        "linear_network_cost_usd": one.evaluation.network_cost_usd,
        "linear_cost_in_servers_usd": float(one.linear_in_servers_usd),
        "total_usd": float(one.bill.total_usd),
        "assumed_usd": float(one.bill.assumed_usd),
        "usd_by_group": {
            group: float(one.bill.of(group).total_usd)
            for group in dict.fromkeys(line.group for line in one.bill.lines)
        },
        "power_w": one.bill.power_w,
        "covers": one.proposal.problem.covers,
        "tokens_per_s": 1 / one.token_time_s if one.token_time_s else None,
        "run_not_available": PART_OF_A_STEP if one.proposal.is_part else None,
        "expected_run_s": run.expected_s if run and run.expected_s < float("inf") else None,
        "run_cost_usd": run.cost_usd if run and run.cost_usd < float("inf") else None,
    }
