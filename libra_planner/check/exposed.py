"""What communication adds to a step, by the plan's model and on whole links (C5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from libra_planner.check.links import CheckReport, LinkCheck
from libra_planner.fabric.clos import Array
from libra_planner.step.critical_path import COMPUTE, critical_path
from libra_planner.step.expression import TimeExpression


@dataclass(frozen=True)
class Exposed:
    """What an operation adds to the step; the rest of its time hides behind compute.

    Parameters
    ----------
    operation : class, such as ``DP reduce-scatter``.
    model_s : by the plan's model.
    links_s : on the whole links under the policy, mean over the seeds.
    """

    operation: str
    model_s: float
    links_s: float


def exposed_communication(links: LinkCheck, report: CheckReport) -> tuple[Exposed, ...]:
    """Every operation of the step, longest on the links first.

    With compute they add up to the step time of the model, and to the mean one on the links.

    Parameters
    ----------
    links, report : a check, and what came of it.

    Examples
    --------
    >>> import libra_planner as lp
    >>> checked = lp.load_plan("07_check").check("ecmp", seeds=1).answer.checked
    >>> one = exposed_communication(checked.links, checked.report)[0]
    >>> one.operation, round(one.model_s, 3), one.links_s > one.model_s
    ('weight grad DP all-reduce', 0.056, True)
    """
    model_s = _mean_s([links.problem.step_time], links.bandwidth_Bps)
    links_s = _mean_s(map(links.slowed, report.routed), links.design.bandwidth_Bps)
    names = model_s | links_s
    found = [Exposed(name, model_s.get(name, 0.0), links_s.get(name, 0.0)) for name in names]
    return tuple(sorted(found, key=lambda one: (-one.links_s, one.operation)))


def _mean_s(times: Iterable[TimeExpression], bandwidth_Bps: Array) -> dict[str, float]:
    """The mean of what every operation adds."""
    every = list(times)
    mean_s: dict[str, float] = defaultdict(float)
    for time in every:
        for one in critical_path(time, bandwidth_Bps):
            if one.label != COMPUTE:
                mean_s[one.label] += one.seconds / len(every)
    return dict(mean_s)
