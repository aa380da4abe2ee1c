"""Plans in Python: what ``load_plan`` gives, with all that can be asked of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.api.given import (
    Settings,
    path_given,
    plan_given,
    policy_of,
    pythonic,
    save_plan,
    setting_texts,
)
from libra_planner.api.shown import Progress, Shown
from libra_planner.errors import Fault, SpecError
from libra_planner.inputs.parts import BUNDLED_PARTS
from libra_planner.inputs.plans import open_plan
from libra_planner.plan.steps.notes import plan_notes
from libra_planner.problem import Problem
from libra_planner.reading.bundled import given_file
from libra_planner.reading.document import Source, read_document
from libra_planner.views.cells import Block, Table, table
from libra_planner.views.plan import note_lines, plan_head

if TYPE_CHECKING:
    from libra_planner.api.checks import Check, Routed
    from libra_planner.api.designs import Evaluated, OneDesign
    from libra_planner.api.optima import Frontier, Optimum
    from libra_planner.api.searches import Found, StrategyFrontier
    from libra_planner.inputs.plans import SearchedPlan
    from libra_planner.routing.policy import Policy
    from libra_planner.search.best import SearchResult


_OF_LINKS = ("routing", "policy")
"""Settings that are of links and not of a plan: ``optimize --routing`` has a method of its own."""


@dataclass(frozen=True, repr=False)
class Plan(Shown, Problem):
    """A plan: a :class:`~libra_planner.problem.Problem` that can be asked.

    Parameters
    ----------
    source : the file it was read from, or what was given in place of one.
    overrides : ``key=value`` settings it was read with.
    found : by the search for its strategy, where it says ``parallelism: auto``.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("01_gpt3_4d")
    >>> plan
    <Plan: gpt3-libra on RI(4)_FC(8)_RI(4)_SW(32), 4,096 NPUs; objective performance, 1 rule>
    >>> plan.optimize()
    <Optimum: step time 722.412 ms, cost $9.53M; 338.45, 84.61, 58.16, 18.78 GB/s; proven optimal>
    """

    source: Source = field(default="plan", repr=False, compare=False)
    overrides: tuple[str, ...] = field(default=(), repr=False, compare=False)
    found: SearchResult | None = field(default=None, repr=False, compare=False)

    table = "dimensions"

    @classmethod
    def of_searched(cls, source: Source, searched: SearchedPlan) -> Plan:
        """A plan whose strategy is known, by where it was read from."""
        known = {"overrides": searched.settings, "found": searched.found}
        return cls.of(searched.problem, source=source, **known)

    def headline(self) -> str:
        """It in one line."""
        rules = len({rule.text for rule in self.rules}) + len(self.step_time_limits)
        return (
            f"{self.workload_name} on {self.topology}, {self.topology.n_npus:,} NPUs; objective "
            f"{self.objective}, {rules} rule{'s' * (rules != 1)}"
        )

    def blocks(self) -> Iterator[Block]:
        """Workload, fabric, rules and what is assumed."""
        yield from plan_head(self)
        yield _dimension_table(self)
        texts = [one.text for one in self.rules] + [one.text for one in self.step_time_limits]
        yield f"Objective {self.objective}; rules: {'; '.join(dict.fromkeys(texts)) or 'none'}"
        yield from note_lines(plan_notes(self))

    def to_dict(self) -> dict[str, Any]:
        """What it says, in figures."""
        prices = self.prices.array * 1e9
        rows = [
            {"dimension": label, "block": str(one), "tier": one.tier, "usd_per_GBps": float(usd)}
            for label, one, usd in zip(
                self.topology.labels, self.topology.dimensions, prices, strict=True
            )
        ]
        texts = [one.text for one in self.rules] + [one.text for one in self.step_time_limits]
        return {
            "workload": self.workload_name,
            "topology": str(self.topology),
            "n_npus": self.topology.n_npus,
            "objective": self.objective,
            "rules": list(dict.fromkeys(texts)),
            "dimensions": rows,
            "settings": list(self.settings),
            "notes": list(plan_notes(self)),
        }

    @pythonic
    def save(self, path: str | Path) -> Path:
        """Write what it was read from, with its settings, as a plan of its own.

        Parameters
        ----------
        path : ending in .yaml; what is there is kept as ``.bak``. Paths in it are absolute.

        Raises
        ------
        SpecError
            For another ending, or a path that cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import libra_planner as lp
        >>> plan = lp.load_plan("01_gpt3_4d", {"constraints": ["total == 100 GB/s"]})
        >>> with tempfile.TemporaryDirectory() as there:
        ...     again = lp.load_plan(plan.save(f"{there}/plan.yaml"))
        >>> again.optimize().step_time_s == plan.optimize().step_time_s
        True
        """
        return save_plan(self, path)

    def optimize(self, **settings: Any) -> Optimum:
        """The best bandwidth of every dimension, with its proof and what more is worth.

        Parameters
        ----------
        settings : none: :func:`libra_planner.load_plan` takes settings of a plan.

        Raises
        ------
        TypeError
            For settings, with what to write instead.
        Infeasible, IllPosed, SolverFailed
            Where no design meets the rules, none is best, or none can be certified.

        Examples
        --------
        >>> import libra_planner as lp
        >>> best = lp.load_plan("01_gpt3_4d").optimize()
        >>> round(best.step_time_s, 6), best.optimality_gap <= 1e-6
        (0.722412, True)
        """
        from libra_planner.api.optima import optimize

        if settings:
            name = next(iter(settings))
            fix = f"write lp.load_plan(..., {settings!r}).optimize()"
            if name in _OF_LINKS:
                fix = f"write optimize_routed({settings[name]!r})"
            raise TypeError(f"optimize: got {name}=, expected no arguments; {fix}")
        return optimize(self)

    @pythonic
    def evaluate(
        self, bandwidth_bytes_per_s: Any = None, *, bandwidth_GBps: Any = None
    ) -> Evaluated:
        """Every figure of one vector, whether it meets the rules or not.

        Parameters
        ----------
        bandwidth_bytes_per_s, bandwidth_GBps : one of both, per NPU, shape (n_dims,).

        Examples
        --------
        >>> import libra_planner as lp
        >>> lp.load_plan("01_gpt3_4d").evaluate(bandwidth_GBps=[300, 100, 75, 25])
        <Evaluated: step time 725.217 ms, cost $11.20M; 300.00, 100.00, 75.00, 25.00 GB/s; meets
        all rules>
        """
        from libra_planner.api.designs import evaluate

        return evaluate(self, bandwidth_bytes_per_s, bandwidth_GBps=bandwidth_GBps)

    @pythonic
    def pareto(
        self, n_points: int = 25, progress: Progress | None = None
    ) -> Frontier | StrategyFrontier:
        """The frontier of cost and step time, cheapest first.

        Of a plan that says ``parallelism: auto`` it is over all strategies, as
        :meth:`search_pareto` has it.

        Examples
        --------
        >>> import libra_planner as lp
        >>> lp.load_plan("01_gpt3_4d").pareto(4)
        <Frontier: 4 designs, from $4.23M and 1.445 s to $9.53M and 722.412 ms>
        """
        from libra_planner.api.optima import pareto

        return pareto(self, n_points, progress)

    @pythonic
    def check(self, policy: str | Policy = "ecmp", **asked: Any) -> Check:
        """The plan's optimum on whole links, its flows routed.

        Parameters
        ----------
        policy : a name, or a :class:`~libra_planner.routing.policy.Policy` with options.
        asked : ``bandwidth_GBps`` of a design to check instead; ``seeds``, ``seed``,
            ``placement``, ``queue_pairs``, ``npus_per_address``, ``source_ports``,
            ``fail_links``, ``fail_spines``, ``single_failures``, ``algorithms``, ``trace`` as
            the command has them.

        Examples
        --------
        >>> import libra_planner as lp
        >>> found = lp.load_plan("07_check").check(seeds=2)
        >>> round(found.ideal_step_time_s, 3), found.mean_step_time_s > found.ideal_step_time_s
        (2.849, True)
        """
        return check(self, policy, **asked)

    @pythonic
    def optimize_routed(self, policy: str | Policy = "ecmp", **asked: Any) -> Routed:
        """The best design on its links, as ``optimize --routing`` finds it.

        Parameters
        ----------
        policy, asked : as :meth:`check` has them.
        """
        from libra_planner.api.checks import optimize_routed

        return optimize_routed(self, policy, **asked)

    @pythonic
    def search(self, global_batch: int | Sequence[int] = (), *, n_best: int = 5) -> Found:
        """The best parallelism of the plan's model, each with the best fabric for it.

        Parameters
        ----------
        global_batch : sequences of a step, one number or several; the plan's by default.
        n_best : strategies that are ranked and proven.
        """
        from libra_planner.api.searches import search

        return search(self, global_batch=global_batch, n_best=n_best)

    @pythonic
    def search_pareto(
        self, n_points: int = 25, global_batch: int | Sequence[int] = ()
    ) -> StrategyFrontier:
        """The fastest strategy and network at each cost, as ``search --pareto`` finds them.

        Parameters
        ----------
        n_points : 2 or more, evenly spaced in log cost.
        global_batch : as :meth:`search` has it.
        """
        from libra_planner.api.searches import search_pareto

        return search_pareto(self, n_points, global_batch)


def _dimension_table(plan: Plan) -> Table:
    rows = [
        (label, str(one), one.tier, f"${usd:,.2f}")
        for label, one, usd in zip(
            plan.topology.labels, plan.topology.dimensions, plan.prices.array * 1e9, strict=True
        )
    ]
    headings = ("dimension", "", "tier", "1 GB/s for each NPU")
    return table("", "", headings, rows, left=headings[:3])


@pythonic
def load_plan(plan: Source, settings: Settings = (), *, parts: str = BUNDLED_PARTS) -> Plan:
    """A plan from a file, a bundled name or a dict.

    One that says ``parallelism: auto`` is searched here: its strategy is the best one with the best
    network, and stays that whatever bandwidth is evaluated later.

    Parameters
    ----------
    plan : a path, the name of a bundled example, or what a plan file says as a dict; paths in a
        dict are relative to the working directory.
    settings : overrides: ``key=value`` texts such as ``"parallelism.tp=8"``, or a dict of dotted
        keys to values.
    parts : parts catalogue that bills and quotes name.

    Raises
    ------
    SpecError
        With every fault found, each with its place and the fix.
    TypeError
        For what is none of the three.

    Examples
    --------
    >>> load_plan("02_performance_per_cost", "constraints.0=total <= 300 GB/s").rules[0].text
    'total <= 300 GB/s'
    >>> load_plan("02_performance_per_cost", {"constraints": ["total <= 300 GB/s"]}).objective
    'performance_per_cost'
    """
    if isinstance(plan, Plan):
        raise TypeError("load_plan: got a plan that is loaded, expected a path, a name or a dict")
    if not isinstance(plan, str | Path | Mapping):
        got = f"load_plan: got a value of type {type(plan).__name__}"
        raise TypeError(f"{got}, expected a path, a bundled name or a dict")
    path_given(parts, "load_plan", "a parts catalogue")
    source, overrides = _source(plan), setting_texts(settings)
    return Plan.of_searched(
        source, open_plan(source, overrides, parts=parts).searched().completed()
    )


def _source(plan: Source) -> Source:
    """The file that is meant, or a copy of the map."""
    if isinstance(plan, Mapping):
        if not plan:
            raise SpecError(Fault("got an empty dict", "expected a plan", "see docs/files.md"))
        found: dict[str, Any] = read_document(plan).value
        return found
    return given_file(plan)


@pythonic
def check(plan: Problem | OneDesign | Source, policy: str | Policy = "ecmp", **asked: Any) -> Check:
    """A design on whole links, its flows routed; the command ``check``.

    Parameters
    ----------
    plan : whose optimum is checked: a plan, its path, bundled name or dict. What
        :func:`libra_planner.optimize` and :func:`libra_planner.evaluate` give is checked itself.
    policy, asked : as :meth:`libra_planner.api.plans.Plan.check` has them.

    Raises
    ------
    TypeError
        For what is no plan, such as a list of several.
    PlannerError
        For a plan without an optimum, or links that cannot be built or routed.

    Examples
    --------
    >>> check("07_check", "spray")
    <Check: step time ... by spray (1 routing), ...x the ideal 2.849 s>
    """
    from libra_planner.api.checks import refuse_of_check

    vector = asked.pop("bandwidth_GBps", None)
    refuse_of_check(asked, ("bandwidth_GBps",))
    return _design(plan, vector).check(policy_of(policy), **asked)


def _design(plan: Problem | OneDesign | Source, bandwidth_GBps: Any) -> OneDesign:
    """The design that is meant: of a plan its optimum, or what is given beside it."""
    from libra_planner.api.designs import OneDesign, evaluate
    from libra_planner.api.optima import optimize

    if isinstance(plan, OneDesign):
        if bandwidth_GBps is not None:
            got = "got bandwidth_GBps and a design, which has its own bandwidth"
            raise SpecError(Fault(got, "expected one of both", "leave one out", "check"))
        return plan
    if isinstance(plan, list | tuple):
        got, expected = f"got a {type(plan).__name__}", "expected one plan"
        raise TypeError(f"check: {got}, {expected}; lp.check_jobs(plans) checks several as jobs")
    loaded = load_plan(plan) if isinstance(plan, str | Path | Mapping) else plan
    plan_given(loaded, "check")
    if bandwidth_GBps is None:
        return optimize(loaded)
    return evaluate(loaded, bandwidth_GBps=bandwidth_GBps)
