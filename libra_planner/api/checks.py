"""Checks in Python: designs on whole links, under a routing policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from libra_planner import allowed
from libra_planner.allowed import OneOf, is_whole
from libra_planner.api.given import (
    OF_LINKS,
    opened_again,
    overrides_of,
    plan_given,
    policy_of,
    pythonic,
    refuse_asked,
    refuse_unknown,
    searched_of,
    source_of,
    takes,
    vector_Bps,
)
from libra_planner.api.shown import Shown, label_times, new_axes
from libra_planner.check import links
from libra_planner.check.links import CheckReport
from libra_planner.errors import Fault, SpecError
from libra_planner.evaluation import Evaluation, evaluated, refuse_GBps
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.routing.policy import OPTIONS, Policy, readers
from libra_planner.step.expression import Array
from libra_planner.studies.checks import LinkAnswer, LinkQuestion, checked_design, placed
from libra_planner.studies.designs import ChosenDesign
from libra_planner.units import format_time
from libra_planner.views import check as view
from libra_planner.views.cells import Block, escape
from libra_planner.views.failures import failures_blocks, study_payload
from libra_planner.views.phases import hotspot_blocks, hotspot_payload, trace_blocks, trace_payload
from libra_planner.views.plan import as_checked
from libra_planner.views.training.found import found_blocks, found_payload, links_blocks

if TYPE_CHECKING:
    import pandas as pd

    from libra_planner.check.phases import CheckMemo
    from libra_planner.check.rerouted import JudgedDesign, RoutedOptimum
    from libra_planner.inputs.plans import OpenedPlan, SearchedPlan
    from libra_planner.inputs.routed import RoutedStrategies
    from libra_planner.reading.document import Source
    from libra_planner.search.best import SearchResult

_DRAWN = "failures"
"""Key of the study of ``fail_links`` and ``fail_spines``."""
_NOT_ASKED = ("policy", "settings", "bandwidth", "parts")


@dataclass(frozen=True, repr=False)
class _OnLinks(Shown):
    """What the links of a plan were asked.

    Parameters
    ----------
    plan : whose design it is; of routed designs with its chunks chosen.
    question : what was asked.
    """

    plan: Problem
    question: LinkQuestion


@dataclass(frozen=True, repr=False)
class Check(_OnLinks):
    """What its links make of a design.

    Parameters
    ----------
    answer : the routings, what loses most, and failures.
    n_busiest : links, and failures, that are listed.
    groups : whether all groups of the worst round are listed.
    """

    answer: LinkAnswer
    n_busiest: int = 5
    groups: bool = False

    table = "dimensions"

    @property
    def _wanted(self) -> dict[str, Any]:
        """What is told of the round that loses most."""
        traced = self.answer.traced
        return {"n_busiest": self.n_busiest, "groups": self.groups, "traced": traced}

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
        """The mean of the same, with nothing failed; see :attr:`failed_step_time_s`."""
        return float(self.effective_step_time_s.mean())

    @property
    def failed_step_time_s(self) -> float | None:
        """With ``fail_links`` and ``fail_spines`` failed, the mean of the draws.

        Draws that cut hosts off have no time; nan where all do. ``None`` where nothing fails.
        """
        study = self.answer.failures.get(_DRAWN)
        if study is None:
            return None
        return float(study.step_time_s.mean()) if len(study.step_time_s) else float("nan")

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
            f"{self._with_failures}"
        )

    @property
    def _failed(self) -> str:
        """What fails in every draw, in words."""
        asked = self.question
        counts = {"cable": asked.fail_links, "spine": asked.fail_spines}
        failed = [
            f"{n} of the {what}s" if isinstance(n, str) else f"{n:,} {what}{'s' if n > 1 else ''}"
            for what, n in counts.items()
            if n
        ]
        return " and ".join(failed)

    @property
    def _with_failures(self) -> str:
        """The step with what fails, for :meth:`headline`."""
        time_s, study = self.failed_step_time_s, self.answer.failures.get(_DRAWN)
        if time_s is None or study is None:
            return ""
        if not len(study.step_time_s):
            return f"; with {self._failed} failed every draw cuts hosts off"
        cut, n = study.n_disconnected, len(study.cases)
        but = f", {cut:,} of {n:,} draws cut hosts off" if cut else ""
        return f"; with {self._failed} failed {format_time(time_s)}{but}"

    def to_frame(self, key: str | None = None) -> pd.DataFrame:
        """A row for every dimension; ``key`` as results have it.

        Where links fail, ``failed_GBps`` is what collectives get of a dimension, the mean of the
        draws (nan where it has no links that fail), and ``failed_step_time_s`` is
        :attr:`failed_step_time_s`, the same in every row; the other columns are of whole links.
        """
        frame = super().to_frame(key)
        if key not in (None, self.table) or _DRAWN not in self.answer.failures:
            return frame
        tiers = study_payload(self.answer.failures[_DRAWN])["tiers"]
        delivered = {row["dimension"]: row["mean_GBps"] for row in tiers}
        delivered_GBps = [delivered.get(one, math.nan) for one in frame["dimension"]]
        return frame.assign(failed_GBps=delivered_GBps, failed_step_time_s=self.failed_step_time_s)

    def blocks(self, *, brief: bool = False) -> Iterator[Block]:
        """What ``check`` prints, or ``check --brief``."""
        answer = self.answer
        hot = trace_blocks(answer.traced)
        if answer.hot is not None:
            hot = hotspot_blocks(self.report, answer.hot, **self._wanted)
        failed = self._with_failures.removeprefix("; ")
        yield from view.check_blocks(answer.checked, hot, brief=brief, failed=escape(failed))
        yield from failures_blocks(answer.failures, self._failed, n_worst=self.n_busiest)
        yield from links_blocks(answer.found)

    def to_dict(self) -> dict[str, Any]:
        """What ``check --json`` prints."""
        answer = self.answer
        worst = None if answer.hot is None else hotspot_payload(answer.hot, **self._wanted)
        studies = {name: study_payload(one) for name, one in answer.failures.items()}
        found = view.check_payload(answer.checked, worst) | studies | found_payload(answer.found)
        return found | trace_payload(answer.traced)

    def plot(self, axes: Any = None) -> Any:
        """Step times: ideal, sprayed, and of every routing; the matplotlib axes."""
        axes = new_axes(axes, figsize=(6, 3.2))
        name = self.report.policy.name
        values = [self.ideal_step_time_s, self.spray_step_time_s, self.mean_step_time_s]
        names = ["ideal", "whole links,\nsprayed", f"whole links,\n{name}"]
        label_times(axes, axes.bar(names, values, width=0.5), values)
        times = self.effective_step_time_s[: self.report.n_routings]
        axes.plot([2] * len(times), times, "k_", label="one routing each")
        axes.set(ylabel="step time, s", title=f"On its links: {self.slowdown:.3f}x the ideal time")
        axes.legend(loc="lower left")
        return axes


@dataclass(frozen=True, repr=False)
class Routed(_OnLinks):
    """The best design on its links that was found.

    Parameters
    ----------
    routed : the designs that were checked.
    evaluation : of the best one, by the plan's model.
    found : by the search for the plan's strategy, where it leaves that open.
    strategies : that were checked there, the best of which this design has.
    settings : overrides that make the plan with its strategy.
    """

    routed: RoutedOptimum
    evaluation: Evaluation
    found: SearchResult | None = None
    strategies: RoutedStrategies | None = None
    settings: tuple[str, ...] = ()

    @classmethod
    def of_plan(
        cls,
        source: Source,
        searched: SearchedPlan,
        question: LinkQuestion,
        opened: OpenedPlan | None = None,
        progress: Callable[[int], None] | None = None,
        strategy_progress: Callable[[int, int], None] | None = None,
    ) -> Routed:
        """The best design of a plan, with the best strategy of those that are checked.

        Parameters
        ----------
        source, searched : the file and what it says.
        question : how its links are asked about.
        opened : the plan before its search, if it leaves its strategy open.
        progress : called with the number of designs that are checked.
        strategy_progress : called with strategies that are checked, and how many at most.

        Raises
        ------
        PlannerError
            For a plan without an optimum, or links that cannot be built or routed.
        """
        from libra_planner.check.rerouted import checked_optimum, routed_optimum
        from libra_planner.inputs.routed import routed_strategies

        def checked(problem: Problem, memo: CheckMemo) -> JudgedDesign:
            traffic, seeds = question.traffic(problem), question.asked_seeds
            return checked_optimum(
                problem, question.policy, traffic=traffic, seeds=seeds, memo=memo
            )

        found, strategies, memo = searched.found, None, None
        with placed(source, searched.problem):
            if found is not None and opened is not None and found.is_certified:
                strategies, memo = routed_strategies(
                    opened, searched, found, checked, strategy_progress
                )
                searched = strategies.best.searched
            problem = searched.problem
            traffic, seeds = question.traffic(problem), question.asked_seeds
            routed = routed_optimum(
                problem, question.policy, traffic=traffic, seeds=seeds, memo=memo, progress=progress
            )
        chosen = as_checked(fastest_alternative(problem, routed.best.bandwidth_Bps))
        evaluation = evaluated(chosen, routed.best.bandwidth_Bps)
        return cls(chosen, question, routed, evaluation, found, strategies, searched.settings)

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
        if self.strategies is not None:
            before_s = self.strategies.best_in_model.step_time_s
        return (
            f"step time {format_time(self.mean_step_time_s)} by {self.question.policy.name}; the "
            f"plan's own optimum takes {format_time(before_s)} on its links"
        )

    def blocks(self) -> Iterator[Block]:
        """What ``optimize --routing`` prints."""
        from libra_planner.views.routed import routed_blocks

        yield from routed_blocks(self.plan, self.evaluation, self.routed, self.strategies)
        yield from found_blocks(self.found)

    def to_dict(self) -> dict[str, Any]:
        """What ``optimize --routing --json`` prints."""
        from libra_planner.views.routed import routed_payload

        traffic, statistics = self.question.traffic(self.plan), self.question.statistics
        found = self.plan, self.routed, self.evaluation, self.strategies
        return routed_payload(*found, traffic, statistics=statistics) | found_payload(self.found)

    table = "bottlenecks"


@pythonic
def check_design(
    chosen: ChosenDesign, policy: str | Policy, asked: Mapping[str, Any], *, optimized: bool
) -> Check:
    """:meth:`libra_planner.api.designs.OneDesign.check`."""
    plan = chosen.searched.problem
    question, source = _question(plan, policy, asked), source_of(plan)
    answer = checked_design(source, chosen, question, lambda _: None, optimized=optimized)
    return Check(plan, question, answer)


@takes(OF_LINKS, LinkQuestion)
def optimize_routed(plan: Problem, policy: str | Policy = "ecmp", **asked: Any) -> Routed:
    """The best design on its links; :meth:`libra_planner.api.plans.Plan.optimize_routed`."""
    question, searched = _question(plan, policy, asked), searched_of(plan)
    opened = None if searched.found is None else opened_again(plan, "optimize_routed")
    return Routed.of_plan(source_of(plan), searched, question, opened)


def _question(plan: Problem, policy: str | Policy, asked: Mapping[str, Any]) -> LinkQuestion:
    refuse_of_check(asked)
    return LinkQuestion(policy_of(policy), overrides_of(plan), **asked)


def refuse_of_check(asked: Mapping[str, Any], beside: Sequence[str] = ()) -> None:
    """Refuse what checks do not take; ``beside`` are names that the caller takes besides.

    Raises
    ------
    TypeError
        For a name that is none, with what was meant; for an option of the policy.
    SpecError
        For values that are wrong.

    Examples
    --------
    >>> refuse_of_check({"time_limit": 5})
    Traceback (most recent call last):
    TypeError: check: got the argument 'time_limit', an option of the policy; write
    lp.Policy('ilp', time_limit_s=5) in place of its name
    """
    for name in [one for one in asked if one in OPTIONS]:
        own = {"time_limit": "time_limit_s"}.get(name, name)
        fix = f"write lp.Policy({readers(name)[0]!r}, {own}={asked[name]!r}) in place of its name"
        raise TypeError(f"check: got the argument {name!r}, an option of the policy; {fix}")
    names = [one.name for one in fields(LinkQuestion) if one.name not in _NOT_ASKED]
    refuse_unknown("check", asked, [*names, *beside])
    refuse_asked("check", OF_LINKS, asked, LinkQuestion, _NOT_ASKED)


@pythonic
def link_check(
    plan: Problem,
    bandwidth_bytes_per_s: Any = None,
    *,
    bandwidth_GBps: Any = None,
    **asked: Any,
) -> links.LinkCheck:
    """A design on its links, for :meth:`~libra_planner.check.links.LinkCheck.report`.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it.
    bandwidth_bytes_per_s, bandwidth_GBps : shape (n_dims,), one of both.
    asked : as :func:`libra_planner.check.links.link_check` has it.

    Raises
    ------
    TypeError
        For a path in place of a plan.
    SpecError
        For no bandwidth, or one of another shape.

    Examples
    --------
    >>> import libra_planner as lp
    >>> checked = link_check(lp.load_plan("07_check"), bandwidth_GBps=[170, 130])
    >>> checked.report(lp.Policy("spray")).n_routings
    1
    """
    plan_given(plan, "link_check")
    kinds = {"selection": OneOf(allowed.ALGORITHMS)}
    refuse_asked("link_check", kinds, asked, links.link_check, ("problem", "bandwidth_Bps"))
    vector = vector_Bps(plan, bandwidth_bytes_per_s, bandwidth_GBps, "link_check")
    refuse_GBps(vector)
    return links.link_check(plan, vector, **asked)


@pythonic
def routed_optimum(plan: Problem, policy: Policy, **asked: Any) -> RoutedOptimum:
    """:func:`libra_planner.check.rerouted.routed_optimum` of a plan, and of nothing else."""
    plan_given(plan, "routed_optimum")
    from libra_planner.check import rerouted

    refuse_asked("routed_optimum", {}, asked, rerouted.routed_optimum, ("problem", "policy"))
    if is_whole(seeds := asked.get("seeds")):
        fix = f"write seeds=range({seeds})"
        raise SpecError(Fault(f"got {seeds}", "expected the seeds themselves", fix, "seeds"))
    return rerouted.routed_optimum(plan, policy_of(policy), **asked)
