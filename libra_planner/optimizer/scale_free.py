"""A bound on communication * network cost whatever the scale of the design.

Communication without its constants is homogeneous: half of every bandwidth takes twice
the time. With b = y / s, y of unit cost, communication * cost of b is the communication
of y, and the rules ``A b <= h`` are ``A y <= h s``: one convex program. Designs that
differ in scale only have the same product, which no number of straight lines under the
time/cost frontier would prove.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from libra_planner.optimizer.convex import convex_model
from libra_planner.optimizer.program import FASTEST, Program, RuleRows
from libra_planner.optimizer.weighted import certified, interior


def least_scale_free_product(program: Program, least_cost: float) -> float:
    """Proven bound on communication * cost, in the program's units.

    ``least_cost`` is a proven bound on the cost of a design; positive.
    """
    scaled = _unit_cost(program, least_cost)
    return certified(scaled, FASTEST, interior(scaled, FASTEST, convex_model(scaled)).b).bound


def _unit_cost(program: Program, least_cost: float) -> Program:
    """The program over (y, s): designs y of unit cost and the reciprocal s of their scale."""
    rules = program.rules
    upper = np.hstack([rules.upper, -rules.limit[:, None]])
    equal = np.hstack([rules.equal, -rules.target[:, None]])
    with np.errstate(divide="ignore"):
        top = np.fmin(1 / program.price, program.b_upper / least_cost)
    return replace(
        program,
        bandwidth_unit=np.append(program.bandwidth_unit, 1.0),
        rules=RuleRows(
            upper,
            np.zeros(len(upper)),
            np.vstack([equal, np.append(program.price, 0.0)]),
            np.append(np.zeros(len(equal)), 1.0),
        ),
        forms=np.hstack([program.forms, np.zeros((program.n_forms, 1))]),
        offsets=np.zeros(len(program.offsets)),
        price=np.append(program.price, 0.0),
        b_upper=np.append(top, 1 / least_cost),
        time_limit=np.inf,
    )
