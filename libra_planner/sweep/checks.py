"""The links of optima under a routing policy, as ``check`` finds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from libra_planner.check.links import CheckMemo, link_check
from libra_planner.problem import Problem
from libra_planner.routing.imbalance import distribution
from libra_planner.routing.policy import Policy
from libra_planner.timing.expression import Array


@dataclass(frozen=True)
class CheckSettings:
    """How links are routed.

    Parameters
    ----------
    policy : how flows find their paths.
    seeds : draws; ``None`` for as many as ``check`` makes where nobody asks for a number.
    """

    policy: Policy
    seeds: range | None

    def recorded(self) -> dict[str, Any]:
        """The settings for a manifest."""
        drawn = {"seed": 0, "seeds": None}
        if self.seeds is not None:
            drawn = {"seed": self.seeds.start, "seeds": len(self.seeds)}
        return vars(self.policy) | drawn | {"algorithms": "faster"}


@dataclass(frozen=True)
class CheckedLinks:
    """A design on its links, as means over the seeds.

    Parameters
    ----------
    fim_percent, fim_floor_percent : of the most unbalanced dimension (C10), and the least that any
        routing of whole flows can reach; nan where no flow crosses switches.
    effective_step_time_s : on the whole links under the policy.
    """

    fim_percent: float
    fim_floor_percent: float
    effective_step_time_s: float


@dataclass
class Checker:
    """Checks designs one after the other, and keeps what they have in common.

    Parameters
    ----------
    memo : what was routed.
    n_routed : designs for which something had to be routed.
    """

    memo: CheckMemo = field(default_factory=CheckMemo)
    n_routed: int = 0

    def checked(
        self, settings: CheckSettings, problem: Problem, bandwidth_Bps: Array
    ) -> CheckedLinks:
        """The links of a design, bit by bit what ``check`` says of it.

        Parameters
        ----------
        settings : how they are routed.
        problem : from a plan.
        bandwidth_Bps : shape (n_dims,), byte/s.

        Raises
        ------
        SpecError
            For a design that cannot be built, or whose failures cut hosts off.
        """
        before = self.memo.phases.rounds.n_made
        links = link_check(problem, bandwidth_Bps, memo=self.memo)
        report = links.report(settings.policy, seeds=settings.seeds)
        self.n_routed += self.memo.phases.rounds.n_made > before
        return CheckedLinks(
            fim_percent=distribution(report.fim_percent).mean,
            fim_floor_percent=report.fim_floor_percent,
            effective_step_time_s=distribution(report.effective_step_time_s).mean,
        )
