"""The purchase of a design from whole ports, made once for all that ask for it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from libra_planner.problem import Problem, bought

if TYPE_CHECKING:
    from libra_planner.inputs.bills import Bills
    from libra_planner.procurement.lines import Purchase


@lru_cache(maxsize=64)
def built(problem: Problem, bandwidth_bytes_per_s: tuple[float, ...]) -> tuple[Bills, Purchase]:
    """What a design is built of, and bills at its catalogue.

    Parameters
    ----------
    problem : from a plan.
    bandwidth_bytes_per_s : per NPU, one number per dimension.

    Raises
    ------
    SpecError
        For a design that cannot be built.

    Examples
    --------
    >>> import libra_planner as lp
    >>> bills, bought = built(lp.load_plan("0e_rails_2to1"), (450e9, 40e9, 20e9))
    >>> (bought.design.bandwidth_Bps / 1e9).tolist()
    [450.0, 50.0, 20.3125]
    """
    from libra_planner.inputs.bills import Bills
    from libra_planner.procurement.lines import purchase

    bills, vector_Bps = Bills(problem.prices.catalogue), np.asarray(bandwidth_bytes_per_s)
    return bills, purchase(bought(problem, vector_Bps), vector_Bps, bills.catalogue.parts)
