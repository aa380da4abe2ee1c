"""Which design is cheapest, which fastest, which the best per dollar; and how firmly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np

from libra_planner.errors import PlannerError
from libra_planner.evaluation import TimeModel, order_note
from libra_planner.optimizer.optimize import solve
from libra_planner.problem import Problem, Rule
from libra_planner.procurement.bill import Assumptions
from libra_planner.procurement.candidate import Candidate, candidate
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


def known_models(candidates: Sequence[Candidate]) -> tuple[TimeModel, ...]:
    """Models that know every design's time, the one that knows most of the links last (C6)."""
    own = any(one.evaluation.real_link_step_time_s is not None for one in candidates)
    checked = all(one.check is not None for one in candidates)
    known = {TimeModel.PLAN: True, TimeModel.OWN_LINKS: own, TimeModel.CHECKED: checked}
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


def ranking(candidates: Sequence[Candidate]) -> Ranking:
    """The ranking of one or more designs; of equal ones the first."""
    totals = [float(one.bill.total_usd) for one in candidates]
    ranked_by, cheapest = known_models(candidates)[-1], _least(totals)
    times, unit = times_s(candidates)
    if times is None:
        return Ranking(cheapest, None, None, unit, ranked_by)
    best, note = _least(_products(totals, times)), _order_note(candidates, totals)
    return Ranking(cheapest, _least(times), best, unit, ranked_by, note)


def _products(totals_usd: Sequence[float], times: Sequence[float]) -> list[float]:
    return [usd * time for usd, time in zip(totals_usd, times, strict=True)]


def _order_note(candidates: Sequence[Candidate], totals_usd: Sequence[float]) -> str:
    """The orders of models that disagree on time, or on time times price."""
    found = ((model, times_s(candidates, model)[0]) for model in known_models(candidates))
    times = {model: seconds for model, seconds in found if seconds is not None}
    products = {model: _products(totals_usd, seconds) for model, seconds in times.items()}
    letters = [one.letter for one in candidates]
    clauses = [
        order_note("fastest first", letters, times),
        order_note("most work per dollar first", letters, products),
    ]
    said = "; ".join(clause for clause in clauses if clause)
    return f"The models disagree on the order: {said}." if said else ""


def _least(values: Sequence[float]) -> int:
    return int(np.argmin(values))


@dataclass(frozen=True)
class Swing:
    """What one price does to the designs.

    Parameters
    ----------
    price_name : such as ``nic-400g``.
    unit_usd : the price now, where it is one part's.
    usd_by_design : what it makes up of each design.
    flips : sentences on rankings that change within the swing.
    break_even : the factor on the price, nearest to 1, at which another design becomes
        cheapest or best per dollar; ``None`` where none does.
    break_even_text : which ranking changes there, and to whom.
    """

    price_name: str
    unit_usd: Decimal | None
    usd_by_design: tuple[Decimal, ...]
    flips: tuple[str, ...] = ()
    break_even: float | None = None
    break_even_text: str = ""

    def change_usd(self, design: int) -> Decimal:
        """What the design costs more or less at the end of the swing."""
        return self.usd_by_design[design] * Decimal(repr(SWING_FRACTION))


def swings(candidates: Sequence[Candidate]) -> tuple[Swing, ...]:
    """Every price of the bills, the one that moves most first.

    Examples
    --------
    At a factor m on its price, a design costs base + (m - 1) x. Rankings compare
    w_i (base_i + (m - 1) x_i), with w_i = 1 for the cheapest and the time for the best per
    dollar; two designs are equal at one m.
    """
    totals = [float(one.bill.total_usd) for one in candidates]
    shares = [one.bill.usd_by_price() for one in candidates]
    times, _ = times_s(candidates)
    letters = [one.letter for one in candidates]
    units = {line.part.name: line.part.price for one in candidates for line in one.bill.lines}
    found = []
    for name in dict.fromkeys(name for share in shares for name in share):
        parts = tuple(share.get(name, Decimal("0.00")) for share in shares)
        moves, price = (
            _Moves([float(usd) for usd in parts], totals, times, letters),
            units.get(name),
        )
        nearest = moves.break_even() or (None, "")
        found.append(Swing(name, price.usd if price else None, parts, moves.flips(), *nearest))
    return tuple(sorted(found, key=lambda swing: (-max(swing.usd_by_design), swing.price_name)))


@dataclass(frozen=True)
class _Moves:
    """Rankings as one price moves."""

    parts_usd: list[float]
    totals_usd: list[float]
    times: list[float] | None
    letters: list[str]

    def _weights(self) -> dict[str, list[float]]:
        found = {"cheapest": [1.0] * len(self.letters)}
        return found if self.times is None else found | {"best per dollar": self.times}

    def _costs(self, factor: float) -> list[float]:
        pairs = zip(self.totals_usd, self.parts_usd, strict=True)
        return [total + (factor - 1) * part for total, part in pairs]

    def _best(self, weights: list[float], factor: float) -> int:
        costs = self._costs(factor)
        return _least([w * usd for w, usd in zip(weights, costs, strict=True)])

    def flips(self) -> tuple[str, ...]:
        """Rankings that change at either end of the swing."""
        found = []
        for name, weights in self._weights().items():
            now = self._best(weights, 1.0)
            for sign in (-1, 1):
                then = self._best(weights, 1 + sign * SWING_FRACTION)
                if then != now:
                    found.append(f"{name}: {self.letters[then]} at {sign * SWING_FRACTION:+.0%}")
        return tuple(found)

    def break_even(self) -> tuple[float, str] | None:
        """The nearest factor above 0 at which the best of a ranking changes."""
        found = [
            (abs(factor - 1), factor, f"{letter} {name}")
            for name, weights in self._weights().items()
            for other, letter in enumerate(self.letters)
            if (factor := self._equal(weights, self._best(weights, 1.0), other)) is not None
        ]
        return min(found)[1:] if found else None

    def _equal(self, weights: list[float], best: int, other: int) -> float | None:
        """The factor at which two designs are equal; ``None`` where none above 0 is."""
        lead = weights[other] * self.totals_usd[other] - weights[best] * self.totals_usd[best]
        slope = weights[best] * self.parts_usd[best] - weights[other] * self.parts_usd[other]
        if best == other or slope == 0:
            return None
        factor = 1 + lead / slope
        return factor if factor > 0 else None


def is_budget(rule: Rule) -> bool:
    """Whether a rule bounds the total bandwidth, or the cost, from above."""
    if rule.sense == ">=":
        return False
    return rule.cost_factor > 0 or rule.is_total


def at_budget(problem: Problem, factor: float) -> Problem:
    """The problem with every budget times a factor.

    Parameters
    ----------
    problem : a fixed cost counts as part of a budget for cost, and stays.
    factor : above 0.
    """
    return replace(
        problem,
        rules=tuple(_scaled(rule, problem, factor) for rule in problem.rules),
        alternatives=tuple(at_budget(one, factor) for one in problem.alternatives),
    )


def _scaled(rule: Rule, problem: Problem, factor: float) -> Rule:
    if not is_budget(rule):
        return rule
    fixed = rule.cost_factor * problem.fixed_cost_usd
    return replace(rule, bound=factor * (rule.bound + fixed) - fixed)


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


def budget_swings(candidates: Sequence[Candidate], n_tokens: int) -> tuple[BudgetSwing, ...]:
    """The designs at budgets moved down and up; empty where no plan has a budget.

    Moved designs are not checked on their links, so that those before do not count as checked.
    """
    if not any(_can_move(one) for one in candidates):
        return ()
    before, found = ranking([replace(one, check=None) for one in candidates]), []
    for factor in (1 - SWING_FRACTION, 1 + SWING_FRACTION):
        moved = tuple(_moved(one, factor, n_tokens) for one in candidates)
        known = [one for one in moved if one is not None]
        ranks = ranking(known) if len(known) == len(moved) else None
        found.append(BudgetSwing(factor, moved, ranks, before))
    return tuple(found)


def _can_move(one: Candidate) -> bool:
    proposal = one.proposal
    return proposal.optimized and any(is_budget(rule) for rule in proposal.problem.rules)


def _moved(one: Candidate, factor: float, n_tokens: int) -> Candidate | None:
    proposal = one.proposal
    if not _can_move(one):
        return one if one.check is None else candidate(proposal, n_tokens=n_tokens)
    try:
        solution = solve(at_budget(proposal.problem, factor))
        bandwidth_Bps = np.asarray(solution.design.bandwidth_bytes_per_s)
        moved = replace(proposal, problem=solution.problem, bandwidth_Bps=bandwidth_Bps)
        return candidate(moved, n_tokens=n_tokens)
    except PlannerError:
        return None  # A reader is told that no design meets the moved budget.


_ASSUMED: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "years of use": ("amortisation_s", ()),
        "electricity price": ("electricity", ("usd_per_kwh",)),
        "failure rates": (
            "failures",
            ("npu_per_s", "server_per_s", "switch_per_s", "optic_per_s"),
        ),
        "checkpoint time": ("checkpoint_s", ()),
        "restart time": ("restart_s", ()),
    }
)
"""What about a run is assumed: a field, and its own fields where it has some, by name."""


def _moved_assumption(assumed: Assumptions, name: str, factor: float) -> Assumptions:
    """The assumptions with one of them times a factor."""
    field_name, inner = _ASSUMED[name]
    value: Any = getattr(assumed, field_name)
    if inner:
        moved = replace(value, **{each: factor * getattr(value, each) for each in inner})
    else:
        moved = factor * value
    return replace(assumed, **{field_name: moved})


@dataclass(frozen=True)
class RunSwing:
    """One assumption moved down and up.

    Parameters
    ----------
    name : of the assumption.
    low, high : the run at less and at more of it.
    """

    name: str
    low: Run
    high: Run


def run_swings(one: Candidate) -> tuple[RunSwing, ...]:
    """The run of a design as each assumption moves by 20 %; empty for a design without a run."""
    if one.run is None:
        return ()
    found = []
    for name in _ASSUMED:
        low, high = (_run(one, name, sign) for sign in (-1, 1))
        if low and high:
            found.append(RunSwing(name, low, high))
    return tuple(found)


def _run(one: Candidate, name: str, sign: int) -> Run | None:
    factor = 1 + sign * SWING_FRACTION
    moved = _moved_assumption(one.proposal.shop.assumptions, name, factor)
    return one.trained(one.run.n_tokens, moved) if one.run else None
