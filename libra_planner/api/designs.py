"""Designs in Python: optima, given vectors and frontiers, with all that the commands say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner import evaluation as evaluating
from libra_planner.api.given import (
    overrides_of,
    plan_given,
    pythonic,
    searched_of,
    source_of,
    vector_Bps,
)
from libra_planner.api.shown import Progress, Shown, draw_frontier, frontier_words, new_axes
from libra_planner.errors import Fault, SpecError
from libra_planner.evaluation import Evaluation
from libra_planner.optimizer import optimize as optimizing
from libra_planner.optimizer.design import Design, FrontierPoint, Solution
from libra_planner.optimizer.fixed_order import FixedOrderOptimum, fixed_order_optimum
from libra_planner.optimizer.shadow import ShadowPrice, price_sensitivity, shadow_prices
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.studies.bills import bill_study
from libra_planner.units import format_time, format_usd, gigabytes_per_s
from libra_planner.views import design as view
from libra_planner.views.bought.purchase import purchase_blocks, purchase_payload
from libra_planner.views.cells import Block
from libra_planner.views.frontier import frontier_blocks, frontier_payload
from libra_planner.views.training.found import found_blocks, found_payload

if TYPE_CHECKING:
    import pandas as pd

    from libra_planner.api.checks import Check
    from libra_planner.api.trainings import StrategyFrontier
    from libra_planner.routing.policy import Policy


class _OneDesign(Shown):
    """What an optimum and a given vector have in common."""

    table = "dimensions"
    plan: Problem

    @property
    def figures(self) -> Evaluation:
        """Every figure of the vector."""
        raise NotImplementedError

    @property
    def solved_plan(self) -> Problem:
        """The plan with its chunks chosen."""
        raise NotImplementedError

    def headline(self) -> str:
        """It in one line."""
        found = self.figures
        speeds = ", ".join(f"{gigabytes_per_s(b):.2f}" for b in found.bandwidth_bytes_per_s)
        return (
            f"step time {format_time(found.step_time_s)}, cost {format_usd(found.cost_usd)}; "
            f"{speeds} GB/s; {self._verdict}"
        )

    @property
    def _verdict(self) -> str:
        raise NotImplementedError

    @cached_property
    def _work(self) -> dict[str, float]:
        from libra_planner.views.training.step import work_payload

        return work_payload(self.solved_plan, self.figures)

    @property
    def tokens_per_s(self) -> float | None:
        """Of the whole cluster; ``None`` for the part of a step (C21)."""
        return self._work.get("tokens_per_s")

    @property
    def mfu(self) -> float | None:
        """FLOP/s of the model over the dense peak of the NPUs (C18); ``None`` if not known."""
        return self._work.get("mfu")

    @property
    def memory_GB(self) -> float | None:
        """What an NPU holds (C19), 1e9 bytes; ``None`` where it is not known."""
        from libra_planner.views.training.memory import memory_figures

        return memory_figures(self.solved_plan).get("memory_GB")

    @property
    def step_time_band_s(self) -> tuple[float, float] | None:
        """The step time at the ends of its error band (C23); ``None`` without a class."""
        return self.figures.band_s

    def to_frame(self, key: str | None = None) -> pd.DataFrame:
        """A row for every dimension; with ``key`` another table of :meth:`to_dict`.

        Examples
        --------
        >>> import libra_planner as lp
        >>> found = lp.load_plan("01_gpt3_4d").evaluate(bandwidth_GBps=[300, 100, 75, 25])
        >>> found.to_frame()[["dimension", "tier", "bandwidth_GBps"]]
          dimension     tier  bandwidth_GBps
        0      dim1  chiplet           300.0
        1      dim2  package           100.0
        2      dim3     node            75.0
        3      dim4      pod            25.0
        """
        if key not in (None, self.table):
            return super().to_frame(key)
        import pandas as pd

        found, topology = self.to_dict(), self.plan.topology
        columns = {
            "dimension": list(topology.labels),
            "block": [str(one) for one in topology.dimensions],
            "tier": list(topology.tiers),
            "bandwidth_GBps": found["bandwidth_GBps"],
            "taper": found.get("taper"),
            "cost_usd": found["cost_usd_by_dimension"],
            "equal_GBps": found["equal_bandwidth"]["bandwidth_GBps"],
        }
        return pd.DataFrame({name: x for name, x in columns.items() if x is not None})

    @property
    def _equal_is_possible(self) -> bool:
        """Whether equal bandwidth is anything one could have: a part has what it has."""
        plan = self.plan
        return self.figures.equal.feasible or (plan.scale_up is None and plan.prices.bills is None)

    def plot(self, axes: Any = None) -> Any:
        """Bandwidth of every dimension, beside equal bandwidth; the matplotlib axes."""
        frame, axes = self.to_frame(), new_axes(axes, figsize=(6, 3.2))
        names = [f"{a}\n{b}" for a, b in zip(frame["dimension"], frame["tier"], strict=True)]
        places = range(len(names))
        axes.bar([x - 0.2 for x in places], frame["bandwidth_GBps"], 0.4, label="this design")
        if self._equal_is_possible:
            equal = frame["equal_GBps"]
            axes.bar([x + 0.2 for x in places], equal, 0.4, label="equal", color="0.8")
        axes.set_xticks(list(places), names)
        axes.set(ylabel="GB/s per NPU", title=f"Step time {format_time(self.figures.step_time_s)}")
        axes.legend()
        return axes

    def save(self, path: str | Path) -> Path:
        """Write the design as JSON, for ``lp.report`` and for ``PLAN@RESULT.json`` of commands.

        Parameters
        ----------
        path : ending in .json; what is there is replaced.

        Raises
        ------
        SpecError
            For a plan that is no file, or another ending.
        """
        source, to = source_of(self.plan), Path(path)
        if not isinstance(source, str | Path):
            got, expected = "got a plan from a dict", "expected one from a file"
            raise SpecError(Fault(got, expected, "write the dict to a YAML file first", "save"))
        if to.suffix != ".json":
            raise SpecError(Fault(f"got {str(path)!r}", "expected a name ending in .json"))
        origin = {"plan": str(Path(source).resolve()), "set": list(overrides_of(self.plan))}
        to.write_text(json.dumps(origin | self.to_dict(), indent=2), encoding="utf-8")
        return to

    def check(self, policy: str | Policy = "ecmp", **asked: Any) -> Check:
        """This design on whole links; parameters as :meth:`libra_planner.api.plans.Plan.check`."""
        from libra_planner.api.checks import check_design

        vector = self.figures.bandwidth_bytes_per_s
        is_optimum = isinstance(self, Optimum)
        return check_design(
            self.plan, self.solved_plan, vector, policy, asked, optimized=is_optimum
        )


@dataclass(frozen=True, repr=False)
class Evaluated(_OneDesign, Evaluation):
    """Every figure of a vector: an :class:`~libra_planner.evaluation.Evaluation` that shows itself.

    Parameters
    ----------
    plan : whose vector it is.
    """

    plan: Problem = field(kw_only=True)

    @property
    def figures(self) -> Evaluation:
        """Itself."""
        return self

    @cached_property
    def solved_plan(self) -> Problem:
        """The plan with the chunks that are the fastest here."""
        return fastest_alternative(self.plan, self.bandwidth_bytes_per_s)

    @property
    def _verdict(self) -> str:
        n = len({one.rule for one in self.violated})
        return f"breaks {n} rule{'s' * (n > 1)}" if n else "meets all rules"

    def blocks(self) -> Iterator[Block]:
        """What ``evaluate`` prints."""
        yield from view.design_blocks(self.solved_plan, self)
        yield from found_blocks(searched_of(self.plan).found)

    def to_dict(self) -> dict[str, Any]:
        """What ``evaluate --json`` prints."""
        found = found_payload(searched_of(self.plan).found)
        return view.evaluate_payload(self.solved_plan, self) | found


@dataclass(frozen=True, repr=False)
class Optimum(_OneDesign, Design):
    """The best design of a plan: a :class:`~libra_planner.optimizer.design.Design` with figures.

    What costs time beyond the optimum itself, such as shadow prices, is worked out when it is
    first asked for.

    Parameters
    ----------
    plan : that was optimised.
    solution : the design as the optimizer has it, and the plan with its chunks chosen.
    """

    plan: Problem = field(kw_only=True)
    solution: Solution = field(kw_only=True)

    @classmethod
    def of_design(cls, plan: Problem, solution: Solution) -> Optimum:
        """The optimum of a plan."""
        own = {one: getattr(solution.design, one) for one in Design.__dataclass_fields__}
        return cls(**own, plan=plan, solution=solution)

    @cached_property
    def figures(self) -> Evaluation:
        """Every figure of the design."""
        return evaluating.evaluated(self.solved_plan, self.bandwidth_bytes_per_s)

    @property
    def solved_plan(self) -> Problem:
        """The plan with its chunks chosen."""
        return self.solution.problem

    @property
    def step_time_s(self) -> float:
        """Of the design, exact."""
        return self.figures.step_time_s

    @property
    def compute_s(self) -> float:
        """Of the step."""
        return self.figures.compute_s

    @property
    def communication_s(self) -> float:
        """Exposed communication of the step."""
        return self.figures.communication_s

    @property
    def cost_usd(self) -> float:
        """Of the network, with the fixed cost of a plan that gives one."""
        return self.figures.cost_usd

    @property
    def network_cost_usd(self) -> float:
        """Of the network alone."""
        return self.figures.network_cost_usd

    @property
    def speedup_vs_equal(self) -> float:
        """Step time of equal bandwidth over this one's (C9)."""
        return self.figures.speedup_vs_equal

    @property
    def perf_per_cost_vs_equal(self) -> float | None:
        """Performance per dollar over that of equal bandwidth (C9)."""
        return self.figures.perf_per_cost_vs_equal

    @property
    def _verdict(self) -> str:
        return "proven optimal" if self.unique else "proven optimal, others tie"

    @cached_property
    def shadow_prices(self) -> ShadowPrices | None:
        """What one more GB/s, dollar or unit of a rule is worth; ``None`` where nothing is known.

        Examples
        --------
        >>> import libra_planner as lp
        >>> best = lp.load_plan("01_gpt3_4d").optimize()
        >>> best.shadow_prices
        <ShadowPrices: of 1 rule, 4 dimensions, cost>
        >>> [one.unit for one in best.shadow_prices if one.subject == "rule"]
        ['GB/s']
        """
        found = shadow_prices(self.solved_plan, self.solution)
        return None if found is None else ShadowPrices(found)

    @cached_property
    def price_sensitivity(self) -> tuple[ShadowPrice, ...] | None:
        """What one more dollar on a price does to the optimum."""
        return price_sensitivity(self.solved_plan, self.solution)

    @cached_property
    def fixed_order(self) -> FixedOrderOptimum | None:
        """The best design without balanced schedules, where the plan has them."""
        return fixed_order_optimum(self.solved_plan, self.solution.design)

    @cached_property
    def _bought(self) -> Any:
        source, overrides = source_of(self.plan), overrides_of(self.plan)
        return bill_study(source, overrides, self.solved_plan, self.solution.design)

    def blocks(self) -> Iterator[Block]:
        """What ``optimize`` prints."""
        found = self.solved_plan, self.figures, self.solution.design
        yield from view.design_blocks(*found, self.shadow_prices, self.fixed_order)
        yield from found_blocks(searched_of(self.plan).found)
        yield from purchase_blocks(self.solved_plan, self._bought)

    def to_dict(self) -> dict[str, Any]:
        """What ``optimize --json`` prints."""
        problem, design = self.solved_plan, self.solution.design
        found = view.optimize_payload(problem, design, self.figures, self.fixed_order)
        found |= found_payload(searched_of(self.plan).found)
        found |= view.worth_payload(self.shadow_prices, self.price_sensitivity)
        return found | purchase_payload(problem, self._bought)


class ShadowPrices(Shown, tuple[ShadowPrice, ...]):
    """What one more of everything is worth: a tuple of shadow prices."""

    table = "shadow_prices"

    def headline(self) -> str:
        """It in one line."""
        n = Counter(subject for subject, _ in {(one.subject, one.name) for one in self})
        words = [f"{n[x]} {x}{'s' * (n[x] > 1)}" for x in ("rule", "dimension") if n[x]]
        return f"of {', '.join([*words, *(['cost'] if n['cost'] else [])])}"

    def blocks(self) -> Iterator[Block]:
        """Those that are worth anything."""
        yield view.worth_table(self) or "Nothing more is worth anything."

    def to_dict(self) -> dict[str, Any]:
        """The fields of each."""
        return {"shadow_prices": [asdict(one) for one in self]}


class Frontier(Shown, tuple[FrontierPoint, ...]):
    """Designs that none is both cheaper and faster than, cheapest first.

    A tuple of points, each with ``cost_usd``, ``step_time_s`` and ``bandwidth_bytes_per_s``.
    """

    plan: Problem
    table = "points"

    @classmethod
    def among(cls, plan: Problem, points: Sequence[FrontierPoint]) -> Frontier:
        """The points of a plan's frontier."""
        found = cls(points)
        found.plan = plan
        return found

    def headline(self) -> str:
        """It in one line."""
        return frontier_words(self)

    def blocks(self) -> Iterator[Block]:
        """What ``pareto`` prints."""
        yield from frontier_blocks(self.plan, self)

    def to_dict(self) -> dict[str, Any]:
        """What ``pareto --json`` prints."""
        return frontier_payload(self.plan, self)

    def plot(self, axes: Any = None) -> Any:
        """Step time over cost; the matplotlib axes."""
        return draw_frontier(self, self.plan, axes)


@pythonic
def optimize(plan: Problem) -> Optimum:
    """The design of least objective, certified; :meth:`libra_planner.api.plans.Plan.optimize`.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it.

    Raises
    ------
    TypeError
        For a path in place of a plan.
    Infeasible, IllPosed, SolverFailed
        Where no design meets the rules, none is best, or none can be certified.

    Examples
    --------
    >>> import libra_planner as lp
    >>> round(optimize(lp.load_plan("01_gpt3_4d")).objective, 6)
    0.722412
    """
    plan_given(plan, "optimize")
    solution = optimizing.solve(plan)
    return Optimum.of_design(plan, solution)


@pythonic
def evaluate(
    plan: Problem, bandwidth_bytes_per_s: Any = None, *, bandwidth_GBps: Any = None
) -> Evaluated:
    """Every figure of one vector; :meth:`libra_planner.api.plans.Plan.evaluate`.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it.
    bandwidth_bytes_per_s, bandwidth_GBps : one of both, per NPU, shape (n_dims,).

    Raises
    ------
    SpecError
        For a wrong number of dimensions, or what is no bandwidth; vectors below 1 kB/s are
        refused, as they will have been meant in GB/s.
    TypeError
        For a path in place of a plan.

    Examples
    --------
    >>> import libra_planner as lp
    >>> found = evaluate(lp.load_plan("01_gpt3_4d"), [300e9, 100e9, 75e9, 25e9])
    >>> round(found.step_time_s, 6), found.feasible
    (0.725217, True)
    """
    plan_given(plan, "evaluate")
    vector = vector_Bps(plan, bandwidth_bytes_per_s, bandwidth_GBps, "evaluate")
    return Evaluated.of(evaluating.evaluate(plan, vector), plan=plan)


@pythonic
def pareto(
    plan: Problem, n_points: int = 25, progress: Progress | None = None
) -> Frontier | StrategyFrontier:
    """Points of the frontier; :func:`libra_planner.optimizer.optimize.pareto`.

    Of a plan that says ``parallelism: auto`` the frontier is over all strategies, as
    :meth:`libra_planner.api.plans.Plan.search_pareto` has it.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it; its objective does not matter.
    n_points : 2 or more, evenly spaced in log cost.
    progress : called with the points done and all after each.

    Examples
    --------
    >>> import libra_planner as lp
    >>> points = pareto(lp.load_plan("01_gpt3_4d"), 3)
    >>> [round(point.step_time_s, 3) for point in points][-1], points.to_frame().shape
    (0.722, (3, 8))
    """
    plan_given(plan, "pareto")
    if searched_of(plan).found is not None:
        from libra_planner.api.trainings import search_pareto

        return search_pareto(plan, n_points)
    return Frontier.among(plan, optimizing.pareto(plan, n_points, progress))


@pythonic
def batch_optimize(plans: Sequence[Problem]) -> optimizing.BatchResult:
    """:func:`libra_planner.optimizer.optimize.batch_optimize`: the optima of many plans at once."""
    for plan in plans:
        plan_given(plan, "batch_optimize")
    return optimizing.batch_optimize(plans)


@pythonic
def check(plan: Problem, policy: str | Policy = "ecmp", **asked: Any) -> Check:
    """A design on whole links; :meth:`libra_planner.api.plans.Plan.check`.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it.
    policy, asked : as the method has them.

    Raises
    ------
    TypeError
        For a path in place of a plan, or an argument that there is not.
    PlannerError
        For a plan without an optimum, or links that cannot be built or routed.
    """
    plan_given(plan, "check")
    vector = asked.pop("bandwidth_GBps", None)
    design = optimize(plan) if vector is None else evaluate(plan, bandwidth_GBps=vector)
    return design.check(policy, **asked)
