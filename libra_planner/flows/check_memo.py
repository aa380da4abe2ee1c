"""What checks of several designs share."""

from __future__ import annotations

from dataclasses import dataclass, field

from libra_planner.flows.memo import Memo
from libra_planner.flows.phases import PhaseMemo
from libra_planner.timing.expression import TimeExpression


@dataclass(frozen=True)
class CheckMemo:
    """What checks of designs share where the links differ in nothing but their speed.

    Parameters
    ----------
    phases : rounds, by all that decides about them.
    steps : step times with collectives slowed down by factors, as expressions in bandwidth.
    """

    phases: PhaseMemo = field(default_factory=PhaseMemo)
    steps: Memo[TimeExpression] = field(default_factory=lambda: Memo(256))
