"""What the prices of a bill decide: which options could come first within their ranges (C22)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from libra_planner.inputs.bills import Bills, option_bill
from libra_planner.optimizer.bills import BillDesign
from libra_planner.optimizer.design import Design
from libra_planner.problem import Problem
from libra_planner.procurement.ranges import BillStudy, rivals
from libra_planner.reading.document import Source, apply_settings, folder_of, read_document

MOST_COMPARED = 1000
"""Options whose ranges are compared, best first: about a second."""

_TIED = 1e-12


def bill_study(
    plan: Source, settings: Sequence[str], problem: Problem, design: Design
) -> BillStudy | Design:
    """The best option of a plan beside the others; a design of no bills as it is.

    All pay the same price for the same part, wherever in its range it is. Under ``performance``
    money decides only between options that are equally fast.

    Parameters
    ----------
    plan, settings : the file or map, and ``key=value`` settings of it.
    problem, design : as they were solved.
    """
    table = problem.prices.bills
    if not isinstance(design, BillDesign) or table is None:
        return design
    ranked = design.ranked
    document = read_document(plan)
    apply_settings(document, list(settings))
    bills = Bills()
    npu = bills.npu(document, folder_of(plan))
    if problem.objective == "performance":
        same = design.objectives <= design.objectives[0] * (1 + _TIED)
        n, weights = int(same.sum()), None
    else:
        weights = (design.objectives / table.usd[ranked]).tolist()
        n, weights = len(ranked), weights if problem.objective != "cost" else None
    n = min(n, MOST_COMPARED)
    compared = [option_bill(problem, table.options[row], bills, npu) for row in ranked[:n]]
    found = rivals(compared, 0, problem.objective, weights and weights[:n])
    seconds = np.asarray(problem.step_time.seconds(table.bandwidth_Bps[ranked]))
    return BillStudy(design, compared[0], tuple(seconds.tolist()), n, found)
