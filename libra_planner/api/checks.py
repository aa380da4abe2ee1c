"""Checks in Python: designs on whole links, under a routing policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from libra_planner.api.given import overrides_of, plan_given, pythonic, searched_of, source_of
from libra_planner.api.shown import Shown, new_axes
from libra_planner.check import links, rerouted
from libra_planner.check.links import CheckReport
from libra_planner.check.rerouted import RoutedOptimum
from libra_planner.errors import closest
from libra_planner.evaluation import Evaluation
from libra_planner.problem import Problem
from libra_planner.routing.policy import Policy
from libra_planner.search.best import SearchResult
from libra_planner.step.expression import Array
from libra_planner.studies.checks import LinkAnswer, LinkQuestion, checked_design, routed_plan
from libra_planner.studies.designs import ChosenDesign
from libra_planner.units import format_time
from libra_planner.views import check as view
from libra_planner.views.cells import Block
from libra_planner.views.phases import hotspot_blocks, hotspot_payload
from libra_planner.views.routed import routed_blocks, routed_payload
from libra_planner.views.training.found import found_blocks, found_payload

_HOT: Mapping[str, Any] = {"n_busiest": 5, "groups": False}
"""Links that are listed where no number is asked for."""

_NOT_ASKED = ("policy", "settings", "bandwidth")


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """What its links make of a design.

    Parameters
    ----------
    plan : whose design it is.
    question : what was asked.
    answer : the routings, what loses most, and failures.
    """

    plan: Problem
    question: LinkQuestion
    answer: LinkAnswer

    table = "dimensions"

    @property
    def report(self) -> CheckReport:
        """All figures, those of every seed among them."""
        return self.answer.checked.report

    @property
    def ideal_step_time_s(self) -> float:
        """By the plan's model."""
        return self.report.ideal_step_time_s

    @property
    def spray_step_time_s(self) -> float:
        """On the whole links, every packet sprayed."""
        return self.report.spray_step_time_s

    @property
    def effective_step_time_s(self) -> Array:
        """On the whole links under the policy, shape (n_seeds,)."""
        return self.report.effective_step_time_s

    @property
    def mean_step_time_s(self) -> float:
        """The mean of the same."""
        return float(self.effective_step_time_s.mean())

    @property
    def slowdown(self) -> float:
        """Mean step time under the policy over the ideal one."""
        return float(self.report.slowdown.mean())

    @property
    def fim_percent(self) -> float:
        """Mean Flow Imbalance Metric of the most unbalanced dimension; nan without choices."""
        return float(self.report.fim_percent.mean())

    @property
    def step_time_band_s(self) -> tuple[float, float] | None:
        """The mean at the ends of its error band (C23); ``None`` without a class."""
        return self.report.band_s

    def headline(self) -> str:
        """It in one line."""
        n = self.report.n_routings
        routed = f"{n} routings" if n > 1 else "1 routing"
        return (
            f"step time {format_time(self.mean_step_time_s)} by {self.report.policy.name} "
            f"({routed}), {self.slowdown:.3f}x the ideal {format_time(self.ideal_step_time_s)}"
        )

    def blocks(self) -> Iterator[Block]:
        """What ``check`` prints."""
        answer, asked = self.answer, self.question
        wanted = {**_HOT, "traced": answer.traced}
        hot = [] if answer.hot is None else hotspot_blocks(self.report, answer.hot, **wanted)
        yield from view.check_blocks(answer.checked, hot)
        counts = {"cable": asked.fail_links, "spine": asked.fail_spines}
        failed = [f"{n:,} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
        n_worst = _HOT["n_busiest"]
        yield from view.failures_blocks(answer.failures, " and ".join(failed), n_worst=n_worst)
        yield from found_blocks(answer.found)

    def to_dict(self) -> dict[str, Any]:
        """What ``check --json`` prints."""
        answer = self.answer
        wanted = {**_HOT, "traced": answer.traced}
        worst = None if answer.hot is None else hotspot_payload(answer.hot, **wanted)
        studies = {name: view.study_payload(one) for name, one in answer.failures.items()}
        return view.check_payload(answer.checked, worst) | studies | found_payload(answer.found)

    def plot(self, axes: Any = None) -> Any:
        """Step times: ideal, sprayed, and of every routing; the matplotlib axes."""
        axes = new_axes(axes, figsize=(6, 3.2))
        name = self.report.policy.name
        values = [self.ideal_step_time_s, self.spray_step_time_s, self.mean_step_time_s]
        axes.bar(["ideal", "whole links,\nsprayed", f"whole links,\n{name}"], values, width=0.5)
        times = self.effective_step_time_s[: self.report.n_routings]
        axes.plot([2] * len(times), times, "k_", label="one routing each")
        axes.set(ylabel="step time, s", title=f"On its links: {self.slowdown:.3f}x the ideal time")
        axes.legend(loc="lower left")
        return axes


@dataclass(frozen=True, repr=False)
class Routed(Shown):
    """The best design on its links that was found.

    Parameters
    ----------
    plan : with its chunks chosen.
    question : what was asked.
    routed : the designs that were checked.
    evaluation : of the best one, by the plan's model.
    found : by the search for the plan's strategy, where it leaves that open.
    """

    plan: Problem
    question: LinkQuestion
    routed: RoutedOptimum
    evaluation: Evaluation
    found: SearchResult | None = None

    @property
    def bandwidth_bytes_per_s(self) -> Array:
        """Of the best one, shape (n_dims,)."""
        return self.routed.best.bandwidth_Bps

    @property
    def mean_step_time_s(self) -> float:
        """On its links, over the routings."""
        return float(self.routed.best.check.effective_step_time_s.mean())

    def headline(self) -> str:
        """It in one line."""
        before_s = float(self.routed.blind.check.effective_step_time_s.mean())
        return (
            f"step time {format_time(self.mean_step_time_s)} by {self.question.policy.name}; the "
            f"plan's own optimum takes {format_time(before_s)} on its links"
        )

    def blocks(self) -> Iterator[Block]:
        """What ``optimize --routing`` prints."""
        yield from routed_blocks(self.plan, self.evaluation, self.routed)
        yield from found_blocks(self.found)

    def to_dict(self) -> dict[str, Any]:
        """What ``optimize --routing --json`` prints."""
        traffic, statistics = self.question.traffic(self.plan), self.question.statistics
        found = self.plan, self.routed, self.evaluation
        return routed_payload(*found, traffic, statistics=statistics) | found_payload(self.found)

    table = "bottlenecks"


@pythonic
def check_design(
    plan: Problem,
    solved: Problem,
    bandwidth_Bps: Array,
    policy: str | Policy,
    asked: Mapping[str, Any],
    *,
    optimized: bool,
) -> Check:
    """The same of a vector, with the plan's chunks chosen."""
    question = _question(plan, policy, asked)
    chosen, source = ChosenDesign(searched_of(plan), solved, bandwidth_Bps), source_of(plan)
    answer = checked_design(source, chosen, question, lambda _: None, optimized=optimized)
    return Check(plan, question, answer)


@pythonic
def optimize_routed(plan: Problem, policy: str | Policy = "ecmp", **asked: Any) -> Routed:
    """The best design on its links; :meth:`libra_planner.api.plans.Plan.optimize_routed`."""
    question = _question(plan, policy, asked)
    chosen, routed, evaluation = routed_plan(source_of(plan), plan, question)
    return Routed(chosen, question, routed, evaluation, searched_of(plan).found)


def _question(plan: Problem, policy: str | Policy, asked: Mapping[str, Any]) -> LinkQuestion:
    known = [name for name in LinkQuestion.__dataclass_fields__ if name not in _NOT_ASKED]
    for name in asked:
        if name not in known:
            raise TypeError(f"check: got the argument {name!r}; {closest(name, known)}")
    chosen = policy if isinstance(policy, Policy) else Policy(policy)
    return LinkQuestion(chosen, overrides_of(plan), **asked)


@pythonic
def link_check(plan: Problem, bandwidth_bytes_per_s: Array, **asked: Any) -> links.LinkCheck:
    """A design on its links, for :meth:`~libra_planner.check.links.LinkCheck.report`.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it.
    bandwidth_bytes_per_s : shape (n_dims,).
    asked : as :func:`libra_planner.check.links.link_check` has it.

    Raises
    ------
    TypeError
        For a path in place of a plan.
    """
    plan_given(plan, "link_check")
    return links.link_check(plan, bandwidth_bytes_per_s, **asked)


@pythonic
def routed_optimum(plan: Problem, policy: Policy, **asked: Any) -> RoutedOptimum:
    """:func:`libra_planner.check.rerouted.routed_optimum` of a plan, and of nothing else."""
    plan_given(plan, "routed_optimum")
    return rerouted.routed_optimum(plan, policy, **asked)
