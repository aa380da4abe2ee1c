"""Designs compared: the cheapest, the fastest, the best per dollar; and how firmly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np

from libra_planner.errors import PlannerError
from libra_planner.evaluation import TimeModel, order_note
from libra_planner.fabric.clos import Array
from libra_planner.optimizer.optimize import solve
from libra_planner.problem import Problem, Rule
from libra_planner.procurement.bill import ZERO, Bill, Part
from libra_planner.procurement.candidate import Candidate, candidate
from libra_planner.procurement.lines import FabricShop
from libra_planner.procurement.ranges import Rival, rivals
from libra_planner.procurement.run import Run

SWING_FRACTION = 0.2
"""How far prices and budgets are moved."""


@dataclass(frozen=True)
class Ranking:
    """The best designs by index.

    Parameters
    ----------
    cheapest : least price.
    fastest, best_per_usd : least time, and least time times price, for the same work;
        ``None`` where the designs do not do the same work and their tokens are not known (C6).
    time_unit : ``token`` or ``step``: what the times are of.
    ranked_by : the model whose times rank.
    order_note : the orders of models that disagree, one sentence; empty where all agree.
    """

    cheapest: int
    fastest: int | None
    best_per_usd: int | None
    time_unit: str = "token"
    ranked_by: TimeModel = field(default=TimeModel.PLAN, compare=False)
    order_note: str = field(default="", compare=False)

    @property
    def picks(self) -> dict[str, int | None]:
        """The best designs by what they are best at."""
        names = ("cheapest", "fastest", "best per dollar")
        return dict(zip(names, (self.cheapest, self.fastest, self.best_per_usd), strict=True))


def known_models(candidates: Sequence[Candidate]) -> tuple[TimeModel, ...]:
    """Models that know every design's time, the one that knows most of the links last (C6)."""
    own = any(one.evaluation.real_link_step_time_s is not None for one in candidates)
    checked = all(one.check is not None for one in candidates)
    known = {
        TimeModel.PLAN: True,
        TimeModel.OWN_LINKS: own,
        TimeModel.BILLED: any(one.is_faster_as_bought for one in candidates),
        TimeModel.CHECKED: checked,
    }
    return tuple(model for model, is_known in known.items() if is_known)


def times_s(
    candidates: Sequence[Candidate], model: TimeModel | None = None
) -> tuple[list[float] | None, str]:
    """Times of the same work by a model, or the one that ranks, and of what: a token, or a step.

    ``None`` for designs of different workloads, or whose steps differ in size by an unknown
    amount: a time of other work says nothing (C6).
    """
    by = model or known_models(candidates)[-1]
    times = [one.step_time_by(by) for one in candidates]
    names = {one.proposal.problem.workload_name for one in candidates}
    known = [tokens for one in candidates if (tokens := one.proposal.tokens_per_step)]
    if len(names) == 1 and len(known) == len(times):
        return [time / tokens for time, tokens in zip(times, known, strict=True)], "token"
    return (times if len({_step(one) for one in candidates}) == 1 else None), "step"


def _step(one: Candidate) -> tuple[str, object]:
    """What a step is, as far as it can be told: workload and sequences, else how it is spread."""
    problem = one.proposal.problem
    return problem.workload_name, problem.step.n_sequences or problem.settings[:2]


LEAST_SAVED = Decimal("0.002")
"""Share of a price from which on an offer is named that saves it."""


def in_order(candidates: Sequence[Candidate], values: Sequence[float] | Array) -> list[int]:
    """The designs, that of the least value first; of equal ones the cheapest, then by speed, name.

    Values are equal that nine digits do not tell apart: solvers end no closer.
    """
    times = times_s(candidates)[0] or [0.0] * len(candidates)

    def key(i: int) -> tuple[float, float, float, str]:
        one = candidates[i]
        value, seconds = (float(f"{x:.9g}") for x in (values[i], times[i]))
        return value, float(one.bill.total_usd), seconds, one.proposal.name

    return sorted(range(len(candidates)), key=key)


def ranking(candidates: Sequence[Candidate]) -> Ranking:
    """The ranking of one or more designs; of equal ones as :func:`in_order` says."""
    models, letters = known_models(candidates), [one.letter for one in candidates]
    totals_usd = np.array([float(one.bill.total_usd) for one in candidates])
    found, unit = times_s(candidates)
    if found is None:
        return Ranking(in_order(candidates, totals_usd)[0], None, None, unit, models[-1])
    times = {model: times_s(candidates, model)[0] or [] for model in models}
    products = {model: (totals_usd * seconds).tolist() for model, seconds in times.items()}
    clauses = (
        order_note("fastest first", letters, times),
        order_note("most work per dollar first", letters, products),
    )
    said = "; ".join(filter(None, clauses))
    note = f"The models disagree on the order: {said}." if said else ""
    values = (totals_usd, times[models[-1]], products[models[-1]])
    cheapest, fastest, best = (in_order(candidates, x)[0] for x in values)
    return Ranking(cheapest, fastest, best, unit, models[-1], note)


@dataclass(frozen=True)
class Swing:
    """What one price does to the designs.

    At a factor m on the price, a design costs base + (m - 1) x. Rankings compare
    w_i (base_i + (m - 1) x_i), with w_i = 1 for the cheapest and the time for the best per
    dollar; two designs are equal at one m.

    Parameters
    ----------
    price_name : such as ``nic-400g``.
    unit_usd : the price now, where it is one part's.
    usd_by_design : what it makes up of each design.
    totals_usd : of the designs, shape (n,).
    weights : of the designs by ranking, shape (n,) each.
    letters : of the designs.
    """

    price_name: str
    unit_usd: Decimal | None
    usd_by_design: tuple[Decimal, ...]
    totals_usd: Array = field(repr=False)
    weights: Mapping[str, Array] = field(repr=False)
    letters: Sequence[str] = field(repr=False)

    def change_usd(self, design: int) -> Decimal:
        """What the design costs more or less at the end of the swing."""
        return self.usd_by_design[design] * Decimal(repr(SWING_FRACTION))

    def costs_usd(self, factor: float) -> Array:
        """What the designs cost at a factor on the price, shape (n,)."""
        return self.totals_usd + (factor - 1) * np.array(self.usd_by_design, dtype=float)

    def best(self, name: str, factor: float) -> int:
        """The first design of a ranking at a factor on the price."""
        return int(np.argmin(self.weights[name] * self.costs_usd(factor)))

    @property
    def flips(self) -> tuple[str, ...]:
        """Sentences on rankings that change at either end of the swing."""
        return tuple(
            f"{name}: {self.letters[then]} at {share:+.0%}"
            for name in self.weights
            for share in (-SWING_FRACTION, SWING_FRACTION)
            if (then := self.best(name, 1 + share)) != self.best(name, 1.0)
        )

    @property
    def break_even(self) -> tuple[float | None, str]:
        """The factor above 0, nearest to 1, at which the best of a ranking changes, and to whom."""
        return self.break_even_of(*self.weights)

    def break_even_of(self, *names: str, among: Sequence[int] = ()) -> tuple[float | None, str]:
        """The same of some rankings, or of some designs alone."""
        found, designs = [], list(among) or list(range(len(self.letters)))
        for name in names:
            weights = self.weights[name]
            totals = weights * self.totals_usd
            now = min(designs, key=totals.__getitem__)
            parts = weights * np.array(self.usd_by_design, dtype=float)
            leads, slopes = totals - totals[now], parts[now] - parts
            for i in designs:
                factor = float(1 + leads[i] / slopes[i]) if slopes[i] else 0.0
                if factor > 0:
                    found.append((abs(factor - 1), factor, f"{self.letters[i]} {name}"))
        return min(found)[1:] if found else (None, "")


def swings(candidates: Sequence[Candidate]) -> tuple[Swing, ...]:
    """Every price of the bills, the one that moves most first."""
    totals_usd = np.array([float(one.bill.total_usd) for one in candidates])
    times, _ = times_s(candidates)
    weights = {"cheapest": np.ones(len(candidates))}
    weights |= {} if times is None else {"best per dollar": np.array(times)}
    letters = [one.letter for one in candidates]
    shares = [one.bill.usd_by_price() for one in candidates]
    units = {line.part.name: line.part.price for one in candidates for line in one.bill.lines}
    found = []
    for name in dict.fromkeys(name for share in shares for name in share):
        price, parts_usd = units.get(name), tuple(share.get(name, ZERO) for share in shares)
        unit_usd = price.usd if price else None
        found.append(Swing(name, unit_usd, parts_usd, totals_usd, weights, letters))
    return tuple(sorted(found, key=lambda swing: (-max(swing.usd_by_design), swing.price_name)))


def is_budget(rule: Rule) -> bool:
    """Whether a rule bounds the total bandwidth, or the cost, from above."""
    return rule.sense != ">=" and (rule.cost_factor > 0 or rule.is_total)


def at_budget(problem: Problem, factor: float) -> Problem:
    """The problem with every budget times a factor.

    Parameters
    ----------
    problem : a fixed cost counts as part of a budget for cost, and stays.
    factor : above 0.
    """
    fixed_usd = [rule.cost_factor * problem.fixed_cost_usd for rule in problem.rules]
    return replace(
        problem,
        rules=tuple(
            replace(rule, bound=factor * (rule.bound + fixed) - fixed) if is_budget(rule) else rule
            for rule, fixed in zip(problem.rules, fixed_usd, strict=True)
        ),
        alternatives=tuple(at_budget(one, factor) for one in problem.alternatives),
    )


@dataclass(frozen=True)
class BudgetSwing:
    """All designs at one factor on their budgets.

    Parameters
    ----------
    factor : such as 0.8.
    candidates : by design; as it was where the plan has no budget or the design was given;
        ``None`` where nothing meets the rules any more.
    ranking : of all, ``None`` if one is missing.
    before : the ranking at the budgets as they are, without checks.
    """

    factor: float
    candidates: tuple[Candidate | None, ...]
    ranking: Ranking | None
    before: Ranking

    @property
    def changes(self) -> bool:
        """Whether another design comes first anywhere."""
        return self.ranking is not None and self.ranking != self.before


def budget_swings(candidates: Sequence[Candidate]) -> tuple[BudgetSwing, ...]:
    """The designs at budgets moved down and up; empty where no plan has a budget.

    Moved designs are not checked on their links, so that those before do not count as checked.
    """
    if not any(_can_move(one) for one in candidates):
        return ()
    unchecked, found = [replace(one, check=None) for one in candidates], []
    for factor in (1 - SWING_FRACTION, 1 + SWING_FRACTION):
        moved = tuple(_moved(one, factor) if _can_move(one) else one for one in unchecked)
        known = [one for one in moved if one is not None]
        ranks = ranking(known) if len(known) == len(moved) else None
        found.append(BudgetSwing(factor, moved, ranks, ranking(unchecked)))
    return tuple(found)


def _can_move(one: Candidate) -> bool:
    return one.proposal.optimized and any(map(is_budget, one.proposal.problem.rules))


def _moved(one: Candidate, factor: float) -> Candidate | None:
    try:
        solution = solve(at_budget(one.proposal.problem, factor))
        bandwidth_Bps = np.asarray(solution.design.bandwidth_bytes_per_s)
        moved = replace(one.proposal, problem=solution.problem, bandwidth_Bps=bandwidth_Bps)
        return candidate(moved, n_tokens=one.n_tokens)
    except PlannerError:
        return None  # A reader is told that no design meets the moved budget.


_ASSUMED = (
    ("years of use", "amortisation_s"),
    ("electricity price", "electricity"),
    ("failure rates", "failures"),
    ("checkpoint time", "checkpoint_s"),
    ("restart time", "restart_s"),
)
"""What about a run is assumed: names and fields."""


def run_swings(one: Candidate) -> dict[str, list[Run | None]]:
    """The run of a design as each assumption moves by 20 %, down and up; ``None`` without a run."""
    assumed = one.proposal.shop.assumptions
    return {
        name: [
            one.run_under(replace(assumed, **{key: _times(getattr(assumed, key), factor)}))
            for factor in (1 - SWING_FRACTION, 1 + SWING_FRACTION)
        ]
        for name, key in _ASSUMED
    }


def _times(assumed: Any, factor: float) -> Any:
    """A number, or all numbers of something assumed, times a factor."""
    if isinstance(assumed, float | int):
        return factor * assumed
    numbers = {name: x for name, x in vars(assumed).items() if not isinstance(x, str)}
    return replace(assumed, **{name: factor * x for name, x in numbers.items()})


@dataclass(frozen=True)
class Origin:
    """How the report can be made again.

    Parameters
    ----------
    command : that was given.
    versions : of this program and what it computes with, by name.
    files : role, name and SHA-256 of every input.
    day : on which it was made, YYYY-MM-DD.
    parts : the parts catalogue, as it was named.
    """

    command: str
    versions: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str, str], ...]
    day: str
    parts: str


@dataclass(frozen=True)
class Comparison:
    """Everything that a report says.

    Parameters
    ----------
    candidates : one to ten designs.
    baseline : index of the design that the others are compared with; ``None`` for none.
    ranking, swings, budgets : of the designs.
    is_default_tokens : whether nobody asked for the tokens of the run.
    origin : for the last section.
    """

    candidates: tuple[Candidate, ...]
    baseline: int | None
    ranking: Ranking
    swings: tuple[Swing, ...] = field(repr=False)
    budgets: tuple[BudgetSwing, ...] = field(repr=False)
    is_default_tokens: bool
    origin: Origin = field(repr=False)

    @property
    def letters(self) -> list[str]:
        """A, B, C, ..."""
        return [one.letter for one in self.candidates]

    @property
    def shop(self) -> FabricShop:
        """Where the designs are bought, all from one catalogue."""
        return self.candidates[0].proposal.shop

    @property
    def bill(self) -> Bill:
        """Lines of all designs."""
        return Bill(tuple(line for one in self.candidates for line in one.bill.lines))

    @property
    def missing(self) -> tuple[Part, ...]:
        """Parts without a price in any design."""
        return self.bill.missing

    @property
    def without(self) -> str:
        """What totals leave out, in words; empty where they are whole."""
        names = ", ".join(part.name for part in self.missing)
        return f"without: {names}" if names else ""

    @property
    def times_s(self) -> list[float] | None:
        """Times of the same work by design, where they can be compared."""
        return times_s(self.candidates)[0]

    @property
    def rivals(self) -> tuple[Rival, ...]:
        """The designs that can come first at prices within their ranges (C22)."""
        bills, ranks, times = [one.bill for one in self.candidates], self.ranking, self.times_s
        found = rivals(bills, ranks.cheapest, "cheapest")
        if ranks.best_per_usd is not None and times is not None:
            found += rivals(bills, ranks.best_per_usd, "best per dollar", times)
        return found

    @property
    def has_run(self) -> bool:
        """Whether the run of any design is known."""
        return any(one.run for one in self.candidates)

    @property
    def worth(self) -> list[float]:
        """What the designs are bought by: price times time for the same work, else the price."""
        times = self.times_s or [1.0] * len(self.candidates)
        return [
            float(one.bill.total_usd) * time
            for one, time in zip(self.candidates, times, strict=True)
        ]

    @property
    def order(self) -> list[int]:
        """The designs, the one to buy first; those that break rules or nobody sells come last."""
        ranked = in_order(self.candidates, self.worth)
        return sorted(ranked, key=lambda i: bool(self.candidates[i].behind_text))

    @property
    def ordered(self) -> list[Candidate]:
        """The designs themselves in that order: that of every table."""
        return [self.candidates[i] for i in self.order]

    @property
    def eligible(self) -> list[int]:
        """Those of :attr:`order` that keep their rules and can be bought; all where none does."""
        kept = [i for i in self.order if not self.candidates[i].behind_text]
        return kept or self.order

    @property
    def chosen(self) -> int:
        """The design to buy: the first of :attr:`order`."""
        return self.order[0]

    @property
    def reference(self) -> int | None:
        """What the one to buy is held against: the baseline, else the next best."""
        others = [i for i in self.order if i != self.chosen]
        if self.baseline in others:
            return self.baseline
        return others[0] if others else None

    @property
    def criterion(self) -> str:
        """The ranking that says what to buy."""
        return "cheapest" if self.times_s is None else "best per dollar"
