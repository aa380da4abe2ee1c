"""Designs of chunks solved: batches where a batch can hold them, one by one where not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from libra_planner.check.delivered import DimensionReport
from libra_planner.check.imbalance import avoidable_fim_percent, worst_dimension
from libra_planner.check.links import link_check
from libra_planner.check.phases import CheckMemo
from libra_planner.check.rerouted import JudgedDesign, checked_optimum
from libra_planner.errors import IllPosed, Infeasible, PlannerError, SolverFailed, SpecError
from libra_planner.evaluation import equal_bandwidth
from libra_planner.inputs.bills import Bills
from libra_planner.inputs.plans import OpenedPlan, SearchedPlan
from libra_planner.inputs.routed import routed_strategies
from libra_planner.optimizer import optimize as optimizer
from libra_planner.optimizer.programs.plans import BatchProgram, fits_a_batch
from libra_planner.plan.steps.notes import plan_notes
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.procurement.bill import NETWORK
from libra_planner.quantities import TOTAL
from libra_planner.routing.loads import distribution
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.expression import Array
from libra_planner.step.memory_use import MemoryUse
from libra_planner.sweeps.bills import SweepBills
from libra_planner.sweeps.cases import (
    Case,
    Piece,
    joint_program,
    pieces,
    problem_cost_limit_usd,
    program_cost_limits_usd,
)
from libra_planner.sweeps.figures.solved import INVALID, Objects, SolvedChunk
from libra_planner.sweeps.figures.texts import BETWEEN_NOTES
from libra_planner.sweeps.spec import CheckSettings, Chunk, Job, Rows
from libra_planner.units import BYTES_PER_S_PER_GBPS
from libra_planner.workload.strategy import Strategy


def equal_step_times_s(program: BatchProgram, bandwidth_bytes_per_s: Array) -> Array:
    """Step times when each plan's total, or a design's own, is split evenly, shape (n,).

    ``bandwidth_bytes_per_s`` has shape (n, n_dims) or wider, NaN where there is no design.

    Examples
    --------
    >>> import libra_planner as lp
    >>> base = lp.load_plan(lp.example("01_gpt3_4d"))
    >>> own = np.array([[338.4e9, 84.6e9, 58.2e9, 18.8e9]])
    >>> equal_step_times_s(BatchProgram.repeated(base, 1), own).round(6).tolist()
    [0.775045]
    """
    n_dims = program.template.topology.n_dims
    own = bandwidth_bytes_per_s[:, :n_dims].sum(axis=1)
    stated = total_bytes_per_s(program)
    total = np.where(np.isnan(stated), own, stated)
    equal = np.broadcast_to(total / n_dims, (n_dims, program.n))
    with np.errstate(all="ignore"):
        seconds = program.structure.seconds(program.time_numbers.T, equal)
    return np.where(np.isnan(own), np.nan, seconds)


def total_bytes_per_s(program: BatchProgram) -> Array:
    """The plan's total of every design (``Problem.total_bandwidth_bytes_per_s``), NaN without."""
    rules, first = program.template.rules, program.coefficients[:, :, 0]
    even = (program.coefficients == first[:, :, None]).all(axis=2) & (first > 0)
    even &= np.array([rule.unit == TOTAL.unit for rule in rules], dtype=bool)
    senses = np.array([rule.sense for rule in rules])
    with np.errstate(all="ignore"):
        totals = program.bounds / first
    stated, most = (
        np.where(even & (senses == sense), totals, np.inf).min(axis=1, initial=np.inf)
        for sense in ("==", "<=")
    )
    found = np.where(np.isfinite(stated), stated, most)
    return np.where(np.isfinite(found) & (found > 0), found, np.nan)


NO_BANDWIDTH = "no bandwidth vector meets the rules (proven)"
"""Message of designs whose rules conflict: to find out which ones takes longer than to know it."""

_REASONS = {
    optimizer.INFEASIBLE: NO_BANDWIDTH,
    optimizer.ILL_POSED: "no optimum is attained; optimize says why of the plan that "
    "`sweep design` writes",
}
"""What is said of designs that a batch settles without words."""

_STATUS: dict[type[PlannerError], str] = {
    Infeasible: optimizer.INFEASIBLE,
    IllPosed: optimizer.ILL_POSED,
    SolverFailed: optimizer.UNCERTIFIED,
}
_MOST_CASES = 64
"""Cases that a solver keeps."""


@dataclass
class Solver:
    """Solves the chunks of one sweep, and keeps what they have in common.

    Parameters
    ----------
    job : the sweep.
    memo : what was routed, where the sweep asks for it.
    n_routed : designs for which something had to be routed.
    n_built : structures that were built.
    n_alone : designs that no batch held.
    bills : what is bought, where the sweep asks for it.
    """

    job: Job
    memo: CheckMemo = field(default_factory=CheckMemo)
    n_routed: int = 0
    n_built: int = 0
    n_alone: int = 0
    bills: SweepBills = field(init=False)
    _cases: dict[tuple[str, ...], Case | SpecError | Infeasible] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bills = SweepBills(self.job.template)

    def solved(self, chunk: Chunk) -> SolvedChunk:
        """Optima of a chunk.

        Examples
        --------
        >>> from libra_planner.reading.bundled import folder
        >>> from libra_planner.sweeps.spec import chunk_of, job_of
        >>> from libra_planner.sweeps.spec import load_sweep
        >>> sweep = load_sweep(folder("examples") / "10_budgets.yaml")
        >>> result = Solver(job_of(sweep)).solved(chunk_of(sweep, 0))
        >>> result.step_time_s[[0, 16]].round(4).tolist()
        [0.8743, 0.7224]
        """
        result = SolvedChunk.empty(chunk, self.job)
        problems = np.full(chunk.n, None, dtype=object)
        by_key: dict[object, list[Piece]] = {}
        for rows in chunk.alike(self.job.template.structural):
            for piece in self._pieces(chunk, rows, result, problems):
                by_key.setdefault(piece.key, []).append(piece)
        for parts in by_key.values():
            self._solve(parts, result)
        if self.job.check:
            self._check(self.job.check, problems, result)
        if self.job.has_bills:
            self._bill(chunk, problems, result)
        return result

    def _bill(self, chunk: Chunk, problems: Objects, result: SolvedChunk) -> None:
        """The bill of every optimum; none where a part of it has no price."""
        for row in np.flatnonzero(result.status == optimizer.OPTIMAL):
            problem = problems[row]
            bandwidth = result.bandwidth_bytes_per_s[row, : problem.topology.n_dims]
            try:
                billed = self.bills.billed(chunk, int(row), problem, bandwidth)
            except SpecError as error:
                result.bill_message[row] = str(error)
                continue
            bill = billed.bill
            if bill.missing:
                names = ", ".join(part.name for part in bill.missing)
                result.bill_message[row] = f"no price is known for {names}"
                continue
            result.billed_step_time_s[row] = billed.step_time_s
            result.bill_excess_percent[row] = billed.excess_percent
            result.bill_note[row] = BETWEEN_NOTES.join(billed.notes)
            if over_Bps := billed.server_links.over_Bps:
                result.bill_over_server_GBps[row] = over_Bps / BYTES_PER_S_PER_GBPS
            result.bill_usd[row] = bill.total_usd
            result.bill_low_usd[row], result.bill_high_usd[row] = bill.ends_usd
            result.bill_fabric_usd[row] = bill.of(NETWORK).total_usd

    def _check(self, settings: CheckSettings, problems: Objects, result: SolvedChunk) -> None:
        """The links of every optimum, bit by bit as ``check`` has them: rules do not matter."""
        for row in np.flatnonzero(result.status == optimizer.OPTIMAL):
            problem, n_before = problems[row], self.memo.rounds.n_made
            bandwidth = result.bandwidth_bytes_per_s[row, : problem.topology.n_dims]
            try:
                links = link_check(problem, bandwidth, memo=self.memo)
                report = links.report(settings.policy, seeds=settings.seeds)
                fim, effective_s = map(
                    distribution, (report.fim_percent, report.effective_step_time_s)
                )
            except SpecError as error:
                result.check_message[row] = str(error)
                continue
            result.fim_percent[row], result.effective_step_time_s[row] = fim.mean, effective_s.mean
            result.fim_floor_percent[row] = report.fim_floor_percent
            _put_worst_dimension(result, int(row), report.dimensions)
            self.n_routed += self.memo.rounds.n_made > n_before

    def _pieces(
        self, chunk: Chunk, rows: Rows, result: SolvedChunk, problems: Objects
    ) -> Iterable[Piece]:
        """The batches of one structure; what no batch holds is solved at once."""
        if self.job.is_searched and self._is_open(chunk, int(rows[0])):
            self._one_by_one(chunk, rows, result, problems)
            return []
        case = self.case(chunk, int(rows[0]))
        if isinstance(case, SpecError | Infeasible):
            result.message[rows] = str(case)
            if isinstance(case, Infeasible):
                result.status[rows] = optimizer.INFEASIBLE
            return []
        problems[rows] = case.base
        _put_plan(result, rows, case.base)
        if fits_a_batch(case.base):
            too_large = np.zeros(chunk.n, dtype=bool)
            found = list(pieces(case, chunk, rows, result.message, too_large))
            result.status[too_large] = optimizer.INFEASIBLE
            return found
        self._one_by_one(chunk, rows, result, problems)
        return []

    def _is_open(self, chunk: Chunk, row: int) -> bool:
        """Whether a design leaves its parallelism open; one that is no plan does not."""
        try:
            return opened_plan(self.job, chunk, row).is_open
        except SpecError:
            return False

    def case(self, chunk: Chunk, row: int) -> Case | SpecError | Infeasible:
        """The case of a design, from the last ones if it is there."""
        values = chunk.values(row, self.job.template.structural)
        key = tuple(map(repr, values.values()))
        if key not in self._cases:
            self._keep(key, self._built(values))
        return self._cases[key]

    def _built(self, values: dict[str, object]) -> Case | SpecError | Infeasible:
        """A case, from one with another objective or price book if there is one."""
        heavy = self.job.template.heavy
        key = ("heavy", *(repr(value) for name, value in values.items() if name in heavy))
        sibling = self._cases.get(key)
        if isinstance(sibling, Case) and fits_a_batch(sibling.base):
            with suppress(SpecError):  # Built in full it says the same with its place.
                return sibling.variant(values)
        self.n_built += 1
        try:
            case = Case.of(self.job.template, values)
        except (SpecError, Infeasible) as error:
            return error
        self._keep(key, case)
        return case

    def _keep(self, key: tuple[str, ...], case: Case | SpecError | Infeasible) -> None:
        self._cases[key] = case
        if len(self._cases) > _MOST_CASES:
            del self._cases[next(iter(self._cases))]

    def _one_by_one(self, chunk: Chunk, rows: Rows, result: SolvedChunk, problems: Objects) -> None:
        """Designs with options, open choices, open parallelism or relative groups: plan by plan."""
        self.n_alone += len(rows)
        for row in map(int, rows):
            try:
                searched = self._searched(
                    opened_plan(self.job, chunk, row, self.bills.shared), row, result
                )
                problem, found = searched.problem, searched.found
                problems[row], result.found[row] = problem, found
                result.strategy[row] = _strategy(problem)
                if found is not None and not found.is_certified:
                    n = f"{found.n_unproven:,} of {found.n_candidates:,}"
                    raise SolverFailed(f"{n} strategies are not proven")
                solved = optimizer.batch_optimize([problem])
            except (SpecError, Infeasible, IllPosed, SolverFailed) as error:
                result.message[row] = str(error)
                result.status[row] = _STATUS.get(type(error), INVALID)
                continue
            _put_plan(result, np.array([row]), problem)
            result.cost_limit_usd[row] = problem_cost_limit_usd(problem)
            is_billed = problem.prices.bills is not None
            result.is_of_system[row] = is_billed or problem.fixed_cost_usd > 0
            equal_s = np.full(1, np.nan)
            if solved.status[0] == optimizer.OPTIMAL:
                bandwidth = solved.bandwidth_bytes_per_s[0]
                fastest = fastest_alternative(problem, bandwidth)  # Of chunks left open, if any.
                equal_s[0] = equal_bandwidth(fastest, bandwidth).step_time_s
            _put(result, np.array([row]), solved, equal_s)

    def _searched(self, opened: OpenedPlan, row: int, result: SolvedChunk) -> SearchedPlan:
        """A plan with its best strategy: of those that may be better on links, if they are checked.

        As ``optimize --routing`` takes it, before it derates bandwidths.
        """
        searched, settings = opened.searched().completed(), self.job.check
        found, n_before = searched.found, self.memo.rounds.n_made
        if settings is None or found is None or not found.is_certified:
            return searched

        def checked(problem: Problem, _: CheckMemo) -> JudgedDesign:  # All rows share a memo.
            policy, seeds = settings.policy, settings.seeds
            return checked_optimum(problem, policy, seeds=seeds, memo=self.memo)

        try:
            routed, _ = routed_strategies(opened, searched, found, checked)
        except SpecError:  # Links that cannot be built: the check of the row says why.
            return searched
        self.n_routed += self.memo.rounds.n_made > n_before
        result.n_on_links[row] = len(routed.ranked)
        result.model_effective_step_time_s[row] = routed.best_in_model.step_time_s
        return routed.best.searched

    def _solve(self, parts: Sequence[Piece], result: SolvedChunk) -> None:
        """Pieces of one key, solved at once."""
        program = joint_program(parts)
        rows = np.concatenate([part.rows for part in parts])
        ends = np.cumsum([len(part.rows) for part in parts])

        def problem(i: int) -> Problem:
            """Design i alone, whose messages are about its own rules."""
            k = int(np.searchsorted(ends, i, side="right"))
            return parts[k].worded(program.problem(i), i - int(ends[k]))  # From the end.

        solved = optimizer.optimize_program(program, problem)
        equal = np.full(len(rows), np.nan)
        if any("equal_step_time_s" in one.inputs for one in self.job.columns):
            equal = equal_step_times_s(program, solved.bandwidth_bytes_per_s)
        _put(result, rows, solved, equal)
        if self.job.has_bills:
            result.cost_limit_usd[rows] = program_cost_limits_usd(program)
            result.is_of_system[rows] = program.fixed_cost_usd > 0


def opened_plan(job: Job, chunk: Chunk, row: int, bills: Bills | None = None) -> OpenedPlan:
    """One design's plan, read but not built.

    Raises
    ------
    SpecError
        For placeholders without a value.
    """
    document = job.template.filled(chunk.values(row))
    return OpenedPlan(document, job.template.beside, bills or Bills())


def _put_plan(result: SolvedChunk, rows: Rows, problem: Problem) -> None:
    """What is known of designs without their optima."""
    result.kinds[rows], result.strategy[rows] = problem.objective, _strategy(problem)
    result.notes[rows] = BETWEEN_NOTES.join(plan_notes(problem))
    result.n_sequences[rows] = problem.step.n_sequences or np.nan
    result.compute_s[rows] = problem.step_time.compute_s
    if training := problem.step.whole_training:
        result.tokens_per_step[rows] = problem.step.tokens_per_step or np.nan
        result.ideal_s[rows] = training.model_flops_per_npu(1.0) / training.npu_peak_flops
    if isinstance(problem.step.model, Calibrated):
        result.error_fraction[rows] = problem.step.error_fraction or np.nan
    memories = problem.step.memories.values()
    result.memory_bytes[rows] = max((m.total_bytes for m in memories), default=np.nan)
    least = (m.sharded_bytes for m in memories if not isinstance(m, MemoryUse))
    result.sharded_memory_bytes[rows] = max(least, default=np.nan)


def _strategy(problem: Problem) -> Strategy | None:
    """How a plan trains a whole model; ``None`` of layers, and of several workloads."""
    memory = problem.step.memory
    return memory.strategy if isinstance(memory, MemoryUse) else None


def _put_worst_dimension(
    result: SolvedChunk, row: int, dimensions: Sequence[DimensionReport]
) -> None:
    """The dimension whose routing could avoid most FIM, as ``check`` names it."""
    if worst := worst_dimension(dimensions):
        result.fim_avoidable_dimension[row] = worst.label
        result.fim_avoidable_percent[row] = avoidable_fim_percent(worst)
        result.fim_of_dimension_percent[row] = distribution(worst.fim_percent).mean
        result.fim_floor_of_dimension_percent[row] = worst.fim_floor_percent


def _put(
    result: SolvedChunk, rows: Rows, solved: optimizer.BatchResult, equal_step_time_s: Array
) -> None:
    n_dims = solved.bandwidth_bytes_per_s.shape[1]
    result.bandwidth_bytes_per_s[rows, :n_dims] = solved.bandwidth_bytes_per_s
    names = ("objective", "lower_bound", "step_time_s", "cost_usd", "unique", "resolved", "status")
    for name in names:
        getattr(result, name)[rows] = getattr(solved, name)
    result.equal_step_time_s[rows] = equal_step_time_s
    for i in np.flatnonzero(solved.status != optimizer.OPTIMAL):
        said = _REASONS.get(str(solved.status[i]), "not certified")
        # One wording of one reason, whether or not the batch took a second look at a design.
        is_told = solved.status[i] != optimizer.INFEASIBLE
        result.message[rows[i]] = solved.messages.get(int(i), said) if is_told else said
