"""Optima of many plans at once in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import index as whole_number
from typing import Any, overload

from libra_planner.api.designs import Worked
from libra_planner.api.given import plan_given, pythonic, words
from libra_planner.api.optima import Optimum, optimize
from libra_planner.api.shown import Shown
from libra_planner.frozen import Frozen, Rows
from libra_planner.optimizer import optimize as optimizing
from libra_planner.optimizer.optimize import OPTIMAL, BatchResult
from libra_planner.problem import Problem
from libra_planner.step.expression import Array
from libra_planner.units import format_time, format_usd, gigabytes_per_s
from libra_planner.views.cells import Block, escape, table

_MOST_SHOWN = 20
"""Designs that are shown; ``to_frame`` has all."""


@dataclass(frozen=True, repr=False)
class BatchRow(Worked):
    """One optimum of a batch; figures are ``None`` where there is none.

    Parameters
    ----------
    number : of the row in its batch, from 0.
    plan : that was optimised.
    status : ``optimal``, ``infeasible``, ``ill_posed`` or ``uncertified``.
    bandwidth_bytes_per_s : shape (n_dims,).
    objective, lower_bound : value of the objective there and a proven bound on it (C9).
    step_time_s, cost_usd : exact figures at the vector.
    optimality_gap : (objective - lower_bound) / lower_bound (C9).
    unique : whether no other design ties.
    said : what ``optimize`` said, where the batch asked it.
    """

    number: int
    plan: Problem
    status: str
    bandwidth_bytes_per_s: Array | None
    objective: float | None
    lower_bound: float | None
    step_time_s: float | None
    cost_usd: float | None
    optimality_gap: float | None
    unique: bool | None
    said: str

    @cached_property
    def message(self) -> str:
        """Why there is no optimum; empty where there is one.

        It names the rules that conflict, or what is missing. It is found when it is first asked
        for, which takes some milliseconds.
        """
        return "" if self.status == OPTIMAL else self.said or words(optimizing.reason(self.plan))

    @property
    def _step(self) -> tuple[Problem, float | None]:
        return self.plan, self.step_time_s

    @property
    def bandwidth_GBps(self) -> list[float]:
        """The vector in GB/s, innermost first; empty without an optimum."""
        vector = self.bandwidth_bytes_per_s
        return [] if vector is None else [float(gigabytes_per_s(x)) for x in vector]

    @property
    def figures(self) -> tuple[str, ...]:
        """Step time, cost and bandwidths in words; a dash each where there are none."""
        if self.step_time_s is None or self.cost_usd is None:
            return ("-", "-", "-")
        speeds = ", ".join(f"{x:.2f}" for x in self.bandwidth_GBps)
        return format_time(self.step_time_s), format_usd(self.cost_usd), speeds

    def headline(self) -> str:
        """It in one line."""
        if self.status != OPTIMAL:
            return f"design {self.number}: {self.status}"
        time, cost, speeds = self.figures
        return f"design {self.number}: step time {time}, cost {cost}; {speeds} GB/s; {self.status}"

    def blocks(self) -> Iterator[Block]:
        """The line, and why there is no optimum where there is none."""
        yield self.headline()
        if self.status != OPTIMAL:
            yield escape(self.message)

    def to_dict(self) -> dict[str, Any]:
        """Its row of :meth:`Batch.to_dict`, of its own dimensions alone."""
        figures = ("objective", "lower_bound", "step_time_s", "cost_usd", "optimality_gap")
        return {
            "design": self.number,
            "status": self.status,
            **{name: getattr(self, name) for name in (*figures, "tokens_per_s", "mfu")},
            "bandwidth_GBps": self.bandwidth_GBps or [None] * self.plan.topology.n_dims,
            "unique": self.unique,
            "message": self.message,
        }

    def optimize(self) -> Optimum:
        """The plan solved by itself: all that ``lp.optimize`` says of it.

        Where other designs tie (``unique`` is false) it may be another of them.

        Raises
        ------
        Infeasible, IllPosed, SolverFailed
            Where the row has no optimum, with the reason.
        """
        return optimize(self.plan)


@dataclass(frozen=True, repr=False)
class Batch(Rows[BatchRow], Frozen, Shown, BatchResult):
    """Optima of many plans, in the order they were given: a list of rows.

    A loop and an index give a :class:`BatchRow`, a slice gives a batch of these plans, numbered
    from 0; ``design`` gives the whole optimum of a row, and ``to_frame`` a table.

    Parameters
    ----------
    plans : that were optimised.

    Examples
    --------
    >>> import libra_planner as lp
    >>> budgets = ["total == 500 GB/s", "total == 1 TB/s", "total == 0 GB/s"]
    >>> plans = [lp.load_plan("01_gpt3_4d", {"constraints": [one]}) for one in budgets]
    >>> found = lp.batch_optimize(plans)
    >>> found, found.to_frame()[["design", "status"]].values.tolist()
    (<Batch: 3 designs: 1 infeasible, 2 optimal>, [[0, 'optimal'], [1, 'optimal'], [2, 'infeasible']])
    >>> len(found), [row.status for row in found], found[:2]
    (3, ['optimal', 'optimal', 'infeasible'], <Batch: 2 designs: 2 optimal>)
    >>> found[0]
    <BatchRow: design 0: step time 722.412 ms, cost $9.53M; 338.45, 84.61, 58.16, 18.78 GB/s; optimal>
    >>> found.design(1).check("ecmp")
    <Check: step time ... by ecmp (1 routing), ...x the ideal ...>
    """  # noqa: E501 - a line is what Python prints.

    plans: tuple[Problem, ...] = field(kw_only=True)
    table = "designs"

    @cached_property
    def rows(self) -> tuple[BatchRow, ...]:
        """Every optimum, in the order of the plans."""
        return tuple(map(self._row, range(self.n_designs), self.optimality_gap.tolist()))

    @overload
    def __getitem__(self, index: int) -> BatchRow: ...
    @overload
    def __getitem__(self, index: slice) -> Batch: ...
    def __getitem__(self, index: int | slice) -> BatchRow | Batch:
        if isinstance(index, slice):
            return self._part(index)
        return self.rows[self._place(index, "index")]

    def _place(self, number: int, name: str) -> int:
        """The number of a row that is there."""
        n = self.n_designs
        if not -n <= whole_number(number) < n:
            raise IndexError(f"{name}: got {number}, expected a row from 0 to {n - 1}")
        return number

    def _part(self, part: slice) -> Batch:
        arrays = [one.name for one in fields(BatchResult) if one.name != "messages"]
        numbers = range(self.n_designs)[part]
        said = {i: self.messages[old] for i, old in enumerate(numbers) if old in self.messages}
        own = {name: getattr(self, name)[part] for name in arrays}
        return replace(self, **own, messages=said, plans=self.plans[part])

    def design(self, number: int) -> Optimum:
        """The whole optimum of a row: its plan solved by itself.

        Parameters
        ----------
        number : of the row, from 0; a negative one counts from the end.

        Raises
        ------
        IndexError
            For a row that the batch does not have.
        Infeasible, IllPosed, SolverFailed
            Where the row has no optimum, with the reason.
        """
        return self.rows[self._place(number, "design")].optimize()

    def headline(self) -> str:
        """It in one line."""
        counts = Counter(self.status.tolist())
        said = ", ".join(f"{n:,} {status}" for status, n in sorted(counts.items()))
        n = self.n_designs
        return f"{n:,} design{'' if n == 1 else 's'}{f': {said}' if said else ''}"

    def blocks(self) -> Iterator[Block]:
        """The first designs as a table."""
        yield self.headline()
        names = ("design", "status", "step time", "cost", "GB/s, innermost first")
        left = ("status", "GB/s, innermost first")
        cells = [(str(one.number), one.status, *one.figures) for one in self.rows[:_MOST_SHOWN]]
        yield table("", "", names, cells, left=left)
        if self.n_designs > _MOST_SHOWN:
            yield f"{self.n_designs - _MOST_SHOWN:,} more: to_frame() has all"

    def to_dict(self) -> dict[str, Any]:
        """All designs, figures of those without an optimum ``None``."""
        return {"designs": [self._padded(one.to_dict()) for one in self.rows]}

    def _padded(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row whose vector has ``None`` in the dimensions that other plans have."""
        own, n_dims = row["bandwidth_GBps"], self.bandwidth_bytes_per_s.shape[1]
        return row | {"bandwidth_GBps": own + [None] * (n_dims - len(own))}

    def _row(self, i: int, gap: float) -> BatchRow:
        names = ("objective", "lower_bound", "step_time_s", "cost_usd")
        is_known, plan = self.status[i] == OPTIMAL, self.plans[i]
        figures = {x: float(getattr(self, x)[i]) if is_known else None for x in names}
        return BatchRow(
            number=i,
            plan=plan,
            status=str(self.status[i]),
            bandwidth_bytes_per_s=(
                self.bandwidth_bytes_per_s[i, : plan.topology.n_dims] if is_known else None
            ),
            **figures,
            optimality_gap=gap if is_known else None,
            unique=bool(self.unique[i]) if is_known else None,
            said=words(self.messages.get(i, "")),
        )


@pythonic
def batch_optimize(plans: Problem | Sequence[Problem]) -> Batch:
    """The optima of many plans at once.

    :func:`libra_planner.optimizer.optimize.batch_optimize` says how they are found.

    Parameters
    ----------
    plans : a list of plans, or one.

    Raises
    ------
    TypeError
        For what is no plan.
    """
    one = isinstance(plans, str | Mapping | Problem) or not isinstance(plans, Iterable)
    listed: list[Any] = [plans] if one else [*plans]  # type: ignore[misc]
    for number, plan in enumerate(listed):
        plan_given(plan, "batch_optimize", None if one else number)
    return Batch.of(optimizing.batch_optimize(listed), plans=tuple(listed))
