"""How many designs a sweep has, how long they take, and how big the results are."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from time import process_time

from libra_planner.costs.prices import SAME_SPEED
from libra_planner.errors import SpecError
from libra_planner.sweeps.axes import cell
from libra_planner.sweeps.columns import MESSAGE, ROW, STATUS
from libra_planner.sweeps.figures.texts import as_in_file
from libra_planner.sweeps.probe import (
    conflict_words,
    named_conflict,
    spread_rows,
    unused_quotes_of,
)
from libra_planner.sweeps.solver import NO_BANDWIDTH, Solver, opened_plan
from libra_planner.sweeps.spec import Chunk, Job, Sweep, chunk_between, job_of
from libra_planner.sweeps.store import parquet_bytes, rows_of
from libra_planner.sweeps.workers import Part, solve_part

_TRIED = (20, 160, 1000)
"""Designs that are timed: more of them share what a part does once, so more while that is fast."""

_SEARCHED = 3
"""Designs that are timed where each searches its strategy."""
_FIXED = 8
"""Designs of a place that are timed together where others search their strategy."""
_SMALL, _SMALL_ROUTED = 32, 100
"""Designs up to which all are tried once, and where links are routed: timing some takes longer."""

_FAST_S = 0.7
"""Designs that take less are no measure yet: more of them are tried."""
_STEADY = 1.5
"""How far designs may share more, as a factor, before more of them are tried."""
_BUILT = 7
"""Structures that are timed, and the most places of a sweep where designs are tried."""
_LEAST_PLACES = 3
_LOOKED_AT = 200
"""Designs of which it is known whether they search their strategy."""


@dataclass(frozen=True)
class Estimate:
    """What a sweep amounts to.

    Parameters
    ----------
    n_designs, n_combinations : designs, and combinations of the axes' values.
    n_structures : most of them that have to be built one by one.
    n_parts : files of results.
    core_s : time on one core.
    size_bytes : of the results.
    statuses : how the designs that were tried came out.
    n_routed : designs whose links differ from all before them, where links are checked: about.
    reasons : by status, why the first of those that were tried has no optimum.
    notes : what figures of the rows are without.
    """

    n_designs: int
    n_combinations: int
    n_structures: int
    n_parts: int
    core_s: float
    size_bytes: float
    statuses: dict[str, int]
    n_routed: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def estimate(sweep: Sweep) -> Estimate:
    """The estimate, by solving up to a thousand designs from places all over the sweep.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> from libra_planner.sweeps.spec import load_sweep
    >>> found = estimate(load_sweep(folder("examples") / "10_budgets.yaml"))
    >>> found.n_designs, found.n_structures, found.n_parts
    (74, 1, 1)
    """
    job, n = job_of(sweep), sweep.space.n
    most = _SEARCHED if sweep.is_searched else _SMALL_ROUTED if sweep.check else _SMALL
    if n <= min(most, sweep.file.designs_per_part):
        solver = Solver(job)
        part = solve_part(solver, chunk_between(sweep, 0, n))
        return _estimate(sweep, [part], part.seconds, solver.n_routed)
    return _of_searches(sweep, job) if sweep.is_searched else _of_batches(sweep, job)


def scattered(n: int, n_picked: int) -> list[int]:
    """Up to so many different ones of n, in order: one of each equal part, at no fixed distance.

    >>> scattered(100, 4), scattered(3, 9)
    ([0, 40, 55, 96], [0, 1, 2])
    """
    if n <= n_picked:
        return list(range(n))
    golden = (math.sqrt(5) - 1) / 2
    return [int((i + i * golden % 1) * n / n_picked) for i in range(n_picked)]


# Designs that are solved in batches -----------------------------------------------------------


@dataclass(frozen=True)
class _Trial:
    """Designs from places all over a sweep, solved.

    Parameters
    ----------
    parts : of each place.
    n_visits : batches of all places, one of each structure there.
    n_structures : different ones of all places.
    n_built : structures that were built while they were solved.
    solver : that solved them.
    """

    parts: Sequence[Part]
    n_visits: int
    n_structures: int
    n_built: int
    solver: Solver

    @property
    def n(self) -> int:
        """Designs."""
        return sum(part.n for part in self.parts)

    @property
    def seconds(self) -> float:
        """Time on one core."""
        return sum(part.seconds for part in self.parts)

    @property
    def each_s(self) -> float:
        """Time of a design."""
        return self.seconds / self.n


def _of_batches(sweep: Sweep, job: Job) -> Estimate:
    """The estimate of a sweep whose designs share structures."""
    n = sweep.space.n
    solve_part(Solver(job), chunk_between(sweep, 0, 1))  # What is loaded once does not count.
    build_s, n_structures = _build_s(sweep, job), _n_structures(sweep)
    *others, last = _tried(sweep, job)
    solve_s = _solve_s(sweep, last, others[-1] if others else None)
    n_kept = n_structures * (1 - min(1.0, last.n_built / last.n_structures))
    n_routed = min(n, round(n_structures * last.solver.n_routed / last.n_structures))
    route_s = _route_s(sweep, job) if n_routed else 0.0
    return _estimate(sweep, last.parts, n_kept * build_s + n_routed * route_s + solve_s, n_routed)


def _n_structures(sweep: Sweep) -> int:
    sizes = (len(axis.values) for axis in sweep.axes if axis.name in sweep.template.heavy)
    return min(sweep.space.n, math.prod(sizes))


def _n_visits(sweep: Sweep) -> int:
    """How often a part of the run solves designs of a structure, about."""
    return _n_structures(sweep) + sweep.n_parts


def _solve_s(sweep: Sweep, last: _Trial, less: _Trial | None) -> float:
    """Seconds that all designs take to solve, by a trial of some and one of fewer of them.

    The time of a batch grows far less than its designs at first: two trials tell what a batch
    takes from what a design takes.
    """
    n = sweep.space.n
    if less is None or last.n == n or last.n * less.n_visits <= less.n * last.n_visits:
        return n * last.each_s
    area = last.n * less.n_visits - less.n * last.n_visits
    each_s = max(0.0, (last.seconds * less.n_visits - less.seconds * last.n_visits) / area)
    per_visit_s = max(0.0, last.seconds - last.n * each_s) / last.n_visits
    return n * each_s + _n_visits(sweep) * per_visit_s


def _is_steady(sweep: Sweep, last: _Trial, less: _Trial | None) -> bool:
    """Whether more designs of a trial would take as much longer as they are more.

    So it is where they are solved one by one, where parts of the run share no more, and where
    the last trial showed it.
    """
    if 2 * last.solver.n_alone > last.n:
        return True
    if last.n * _n_visits(sweep) * _STEADY >= sweep.space.n * last.n_visits:
        return True
    return less is not None and 1 / _STEADY <= last.each_s / max(less.each_s, 1e-9) <= _STEADY


def _tried(sweep: Sweep, job: Job) -> Iterator[_Trial]:
    """Ever more designs from places all over the sweep, solved when they are built.

    A batch costs time in each part, however few designs it has: more of them are tried until
    the time of one design no longer falls.
    """
    heavy, less, solver = job.template.heavy, None, Solver(job)
    for most in _TRIED:
        n_tried = min(sweep.space.n, most, sweep.file.designs_per_part)
        if less is not None and sweep.space.n <= min(2 * n_tried, sweep.file.designs_per_part):
            n_tried = sweep.space.n  # All of them in one part, as the run has them.
        chunks = _places(sweep, n_tried)
        alike = [(chunk, chunk.alike(heavy)) for chunk in chunks]
        kinds = {repr(chunk.values(int(rows[0]), heavy)) for chunk, each in alike for rows in each}
        if sweep.check:
            solver = Solver(job)  # How much is routed is counted for each trial.
        if sweep.check or less is None:  # Then structures are built and links routed.
            for chunk in chunks:
                solve_part(solver, chunk)
        n_before, solver.n_alone = solver.n_built, 0
        parts = [solve_part(solver, chunk) for chunk in chunks]
        n_visits, n_built = sum(len(each) for _, each in alike), solver.n_built - n_before
        trial = _Trial(parts, n_visits, len(kinds), n_built, solver)
        yield trial
        if n_tried < most or (trial.seconds >= _FAST_S and _is_steady(sweep, trial, less)):
            return
        less = trial


def _places(sweep: Sweep, n_tried: int) -> list[Chunk]:
    """So many designs from the middle of each structure; of many ones from places all over."""
    n, n_structures = sweep.space.n, _n_structures(sweep)
    if n_tried >= n:
        return [chunk_between(sweep, 0, n)]
    n_places = min(n_tried, max(_LEAST_PLACES, min(n_structures, _BUILT)))
    middles = [int((i + 0.5) * n / n_places) for i in range(n_places)]
    length = n_tried // n_places
    first = scattered(n, n_places) if n_structures > _BUILT else [i - length // 2 for i in middles]
    starts = dict.fromkeys(min(max(0, i), n - length) for i in first)
    return [chunk_between(sweep, i, i + length) for i in starts]


def _route_s(sweep: Sweep, job: Job) -> float:
    """Seconds that routing a design takes, of some all over the sweep: what knowing it saves."""
    times = []
    for row in spread_rows(sweep.space.n, _BUILT):
        solver, chunk = Solver(job), chunk_between(sweep, row, row + 1)
        solver.case(chunk, 0)
        first_s, again_s = (solve_part(solver, chunk).seconds for _ in range(2))
        if solver.n_routed:
            times.append(max(first_s - again_s, 0.0))
    return mean(times or [0.0])


def _build_s(sweep: Sweep, job: Job) -> float:
    """Seconds that one structure takes to build, of some all over the sweep.

    The first one pays for what is loaded and compiled once: it does not count.
    """
    times = []
    for row in spread_rows(sweep.space.n, _BUILT + 1):
        solver, chunk = Solver(job), chunk_between(sweep, row, row + 1)
        start = process_time()
        solver.case(chunk, 0)
        times.append(process_time() - start)
    return median(times[1:] or times)


# Designs that search their strategy -----------------------------------------------------------


def _of_searches(sweep: Sweep, job: Job) -> Estimate:
    """The estimate of a sweep of which some designs or all search their strategy.

    A search takes as long as hundreds of designs that are fixed: each kind is tried by itself,
    and counts by its share.
    """
    rows = scattered(sweep.space.n, _LOOKED_AT)
    is_open = {row: _is_open(sweep, job, row) for row in rows}
    kinds = [[row for row in rows if is_open[row] == wanted] for wanted in (True, False)]
    tried, core_s, n_routed, solver = [], 0.0, 0.0, Solver(job)
    for own in filter(None, kinds):
        n_own = sweep.space.n * len(own) / len(rows)
        picked = [own[i] for i in spread_rows(len(own), _SEARCHED)]
        chunks = [_of_kind(sweep, job, row, is_open=is_open[row]) for row in picked]
        solve_part(Solver(job), chunks[0])  # What is loaded once does not count.
        n_before = solver.n_routed
        parts = [solve_part(solver, chunk) for chunk in chunks]
        n_tried = sum(part.n for part in parts)
        core_s += n_own * sum(part.seconds for part in parts) / n_tried
        n_routed += n_own * (solver.n_routed - n_before) / n_tried
        tried += parts
    return _estimate(sweep, tried, core_s, round(n_routed))


def _is_open(sweep: Sweep, job: Job, row: int) -> bool:
    """Whether a design searches its strategy; one that is no plan does not."""
    try:
        return opened_plan(job, chunk_between(sweep, row, row + 1), 0).is_open
    except SpecError:
        return False


def _of_kind(sweep: Sweep, job: Job, row: int, *, is_open: bool) -> Chunk:
    """A design that searches, or some one after another that do not and share a structure."""
    last = row + 1
    while not is_open and last < min(sweep.space.n, row + _FIXED):
        if _is_open(sweep, job, last):
            break
        last += 1
    return chunk_between(sweep, row, last)


# What a sweep amounts to ----------------------------------------------------------------------


def _estimate(sweep: Sweep, tried: Sequence[Part], core_s: float, n_routed: int) -> Estimate:
    """What a sweep amounts to, of which some designs were tried."""
    rows = (row for part in tried for row in rows_of(io.BytesIO(part.data)).to_pylist())
    statuses = Counter({row[ROW]: row[STATUS] for row in rows}.values())  # Places may overlap.
    n_tried = sum(part.n for part in tried)
    notes = [unused_quotes_of(sweep, job_of(sweep)), _excess_words(tried)]
    return Estimate(
        n_designs=sweep.space.n,
        n_combinations=sweep.space.n_combinations,
        n_structures=_n_structures(sweep),
        n_parts=sweep.n_parts,
        core_s=core_s,
        size_bytes=sweep.space.n * _size_bytes(tried) / n_tried,
        statuses=dict(statuses),
        n_routed=n_routed,
        reasons=_reasons(sweep, tried),
        notes=[words for words in notes if words],
    )


def _excess_words(tried: Sequence[Part]) -> str:
    """That bills of designs buy more bandwidth than is asked for, as where a unit is wrong."""
    rows = (row for part in tried for row in rows_of(io.BytesIO(part.data)).to_pylist())
    found = {row[ROW]: row["bill_excess_percent"] for row in rows if row.get("bill_usd")}
    more = [one for one in found.values() if one and one > 100 * SAME_SPEED]
    if not more:
        return ""
    return (
        f"bills buy more bandwidth than is asked for in {len(more):,} of {len(found):,} designs "
        f"that were tried, at most {max(more):.0f} % more: see whether rules and port_speed mean "
        "one unit (1 GB/s is 8 Gbps), and whether port_speed follows the axis"
    )


def _size_bytes(tried: Sequence[Part]) -> int:
    """Size of one file of all designs that were tried."""
    import pyarrow as pa

    if len(tried) == 1:
        return len(tried[0].data)
    tables = [rows_of(io.BytesIO(part.data)) for part in tried]
    return len(parquet_bytes(pa.concat_tables(tables)))


_OF_BILLS = (("no bill", "bill_message"), ("parts beyond the plan's ports", "bill_note"))


def _reasons(sweep: Sweep, tried: Sequence[Part]) -> dict[str, str]:
    """The first message of each status and whose it is, where the sweep keeps messages."""
    found: dict[str, str] = {}
    axes = [axis.name for axis in sweep.axes]
    for row in (one for part in tried for one in rows_of(io.BytesIO(part.data)).to_pylist()):
        design = ", ".join(f"{name} {as_in_file(cell(row[name]))}" for name in axes)
        for kind, column in ((row[STATUS], MESSAGE), *_OF_BILLS):
            if row.get(column) and kind not in found:
                text = _reason(sweep, row[ROW], row[column])
                found[kind] = f"{design}: {text}" if axes else text
    return found


def _reason(sweep: Sweep, row: int, message: str) -> str:
    """A message; of rules that conflict, which ones."""
    if message != NO_BANDWIDTH:
        return message
    conflict = named_conflict(opened_plan(job_of(sweep), chunk_between(sweep, row, row + 1), 0))
    return conflict_words(conflict) if conflict else message
