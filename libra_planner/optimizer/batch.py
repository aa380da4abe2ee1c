"""Thousands of designs solved at once, each with the proof that one design has (C9).

Problems of one structure (the same tree of the step time, the same senses of the rules) are
solved together by a vectorised interior-point method. Every design is judged as a single one
is: rules met at the vector printed, figures from NumPy there, a proven bound, a gap of at most
1e-6. What fails is solved again by ``optimize``, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import IllPosed, Infeasible, PlannerError, SolverFailed
from libra_planner.optimizer.objectives import no_figures, solve_designs
from libra_planner.optimizer.optimize import optimize
from libra_planner.optimizer.programs.dimensionless import Index
from libra_planner.optimizer.programs.plans import BatchProgram, Plans, fits_a_batch, structure_key
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.step.expression import Array, Mask

CHUNK = 1000
"""Designs solved at a time: their arrays stay in the cache, and memory flat."""

OPTIMAL, INFEASIBLE, ILL_POSED = "optimal", "infeasible", "ill_posed"
UNCERTIFIED = "uncertified"
_STATUS: Mapping[type[PlannerError], str] = MappingProxyType(
    {Infeasible: INFEASIBLE, IllPosed: ILL_POSED, SolverFailed: UNCERTIFIED}
)


@dataclass(frozen=True)
class BatchResult:
    """Optima of n designs, in the order they were given.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n, n_dims); NaN where there is no optimum, and beyond the
        dimensions of a smaller fabric.
    objective, lower_bound : value of the objective there and a proven bound on it (C9), (n,).
    step_time_s, cost_usd : exact figures at the vector, shape (n,).
    unique : no other design ties, shape (n,).
    status : optimal, infeasible, ill_posed or uncertified, shape (n,).
    resolved : solved alone, by ``optimize``, shape (n,).
    messages : what ``optimize`` said of designs that it found without an optimum, by index;
        :func:`reason` asks it about others.
    """

    bandwidth_bytes_per_s: Array
    objective: Array
    lower_bound: Array
    step_time_s: Array
    cost_usd: Array
    unique: Mask
    status: NDArray[np.str_]
    resolved: Mask
    messages: dict[int, str] = field(default_factory=dict)

    @property
    def n_designs(self) -> int:
        """How many designs."""
        return len(self.objective)

    @property
    def n_resolved(self) -> int:
        """How many of them were solved alone."""
        return int(self.resolved.sum())

    @property
    def optimality_gap(self) -> Array:
        """(objective - lower_bound) / lower_bound (C9), shape (n,)."""
        excess, positive = self.objective - self.lower_bound, self.lower_bound > 0
        return np.where(positive, excess / np.where(positive, self.lower_bound, 1.0), excess > 0)


def batch_optimize(problems: Sequence[Problem]) -> BatchResult:
    """The optimum of every problem, those of one structure at once.

    Problems that no batch can hold (purchasable options, a number of chunks left open, groups
    with a relative objective) are solved one by one and count as ``resolved``.

    Examples
    --------
    >>> import libra_planner as lp
    >>> rules = ('constraints=["total == 500 GB/s"]', 'constraints=["total == 9 GB/s"]')
    >>> plans = [lp.load_plan(lp.example("01_gpt3_4d"), [rule]) for rule in rules]
    >>> result = batch_optimize(plans)
    >>> result.status.tolist(), result.step_time_s.round(6).tolist()
    (['optimal', 'optimal'], [0.722412, 2.793534])
    """
    n_dims = max((problem.topology.n_dims for problem in problems), default=0)
    result = _empty(len(problems), n_dims)
    for members in _groups(problems):
        if fits_a_batch(problems[members[0]]):
            for part in np.array_split(members, -(-len(members) // CHUNK)):
                program = BatchProgram.of([problems[i] for i in part])
                _solve(result, part, program, problems.__getitem__)
        else:
            for i in members:
                _resolve(result, int(i), problems[i])
    return result


def optimize_program(
    program: BatchProgram, problem: Callable[[int], Problem] | None = None
) -> BatchResult:
    """The optimum of every design of a batch.

    Parameters
    ----------
    program : the designs.
    problem : gives design i's problem, for messages about rules in its own words.

    Examples
    --------
    >>> import libra_planner as lp
    >>> from dataclasses import replace
    >>> base = lp.load_plan(lp.example("01_gpt3_4d"))
    >>> sweep = BatchProgram.repeated(base, 1000)
    >>> sweep = replace(sweep, bounds=np.linspace(1e11, 1e12, 1000)[:, None])
    >>> result = optimize_program(sweep)
    >>> int((result.status == "optimal").sum()), result.n_resolved
    (1000, 0)
    """
    result = _empty(program.n, program.template.topology.n_dims)
    for start in range(0, program.n, CHUNK):
        rows = np.arange(start, min(start + CHUNK, program.n))
        part = program.part(slice(start, start + CHUNK))
        _solve(result, rows, part, problem or program.problem)
    return result


def reason(problem: Problem) -> str:
    """What ``optimize`` says of a problem without a certified optimum; empty if it has one.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan(lp.example("01_gpt3_4d"), ["constraints=[]"])
    >>> batch_optimize([plan]).status.tolist(), "more is always faster" in reason(plan)
    (['ill_posed'], True)
    """
    try:
        optimize(problem)
    except (Infeasible, IllPosed, SolverFailed) as error:
        return str(error)
    return ""


def _empty(n: int, n_dims: int) -> BatchResult:
    return BatchResult(
        bandwidth_bytes_per_s=np.full((n, n_dims), np.nan),
        **no_figures(n),
        status=np.full(n, UNCERTIFIED),
        resolved=np.zeros(n, dtype=bool),
    )


def _groups(problems: Sequence[Problem]) -> list[Index]:
    """Indices of problems of one structure, and of those that no batch can hold."""
    groups: dict[object, list[int]] = {}
    for i, problem in enumerate(problems):
        key = structure_key(problem) if fits_a_batch(problem) else ()
        groups.setdefault(key, []).append(i)
    return [np.array(members) for members in groups.values()]


def _solve(
    result: BatchResult,
    rows: Index,
    program: BatchProgram,
    problem: Callable[[int], Problem],
) -> None:
    """Solve a batch into some rows of a result; ``problem`` gives a row's problem."""
    designs = solve_designs(Plans.of(program))
    fine, n_dims = designs.certified, len(designs.bandwidth_bytes_per_s)
    found = rows[fine]
    result.bandwidth_bytes_per_s[found, :n_dims] = designs.bandwidth_bytes_per_s.T[fine]
    for name in no_figures(0):
        getattr(result, name)[found] = getattr(designs, name)[fine]
    result.status[found] = OPTIMAL
    result.status[rows[designs.infeasible]] = INFEASIBLE
    result.status[rows[designs.ill_posed]] = ILL_POSED
    for i in np.flatnonzero(~(designs.certified | designs.infeasible | designs.ill_posed)):
        _resolve(result, int(rows[i]), problem(int(rows[i])))


def _resolve(result: BatchResult, row: int, problem: Problem) -> None:
    """One design alone."""
    result.resolved[row] = True
    try:
        design = optimize(problem)
    except (Infeasible, IllPosed, SolverFailed) as error:
        result.status[row] = _STATUS[type(error)]
        result.messages[row] = str(error)
        return
    bandwidth = design.bandwidth_bytes_per_s
    result.bandwidth_bytes_per_s[row, : len(bandwidth)] = bandwidth
    result.objective[row], result.lower_bound[row] = design.objective, design.lower_bound
    chosen = fastest_alternative(problem, bandwidth)
    result.step_time_s[row] = float(chosen.step_time.seconds(bandwidth))
    result.cost_usd[row] = float(problem.cost_usd(bandwidth))
    result.unique[row], result.status[row] = design.unique, OPTIMAL
