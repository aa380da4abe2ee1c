"""Sweep files into a :class:`Sweep`: which combinations are designs, in what order and chunks."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner import __version__
from libra_planner.check.report import asked_seeds
from libra_planner.errors import Fault, SpecError
from libra_planner.plan.models import open_degrees
from libra_planner.reading.document import (
    Document,
    Key,
    Source,
    folder_of,
    parse_document,
    read_document,
)
from libra_planner.reading.models import FaultCollector, validated
from libra_planner.routing.policy import Policy, policy_with
from libra_planner.step.expression import Mask
from libra_planner.sweeps import columns as cols
from libra_planner.sweeps import template as templates
from libra_planner.sweeps.axes import Axis, SampleSpec, SweepFile, read_axis
from libra_planner.sweeps.expressions import OTHER, Expression, parse_filter, passing
from libra_planner.sweeps.store import Layout

Digits: TypeAlias = NDArray[np.int32]
"""Index of each axis's value, shape (n_axes, n_designs)."""

MOST_COMBINATIONS = 10**9
"""Most combinations that are enumerated."""

BLOCK = 1 << 17
"""Combinations that are filtered at a time: memory does not grow with the space."""

_SEARCHED_PER_PART = 8
"""Designs of a part whose strategies are searched: some seconds each."""
_BUILT_PER_PART = 100
"""Designs of a part that are routed or billed, dozens a second: little is lost of a stop."""

_ROUNDS = 200
"""Draws of a random sample after which too few designs pass the filters."""


@dataclass(frozen=True)
class Space:
    """The designs of a sweep; :meth:`digits` gives any range of them.

    Parameters
    ----------
    axes : those that change slowest first.
    filters : what a design has to meet.
    sampled : a drawn sample, shape (n_axes, n); ``None`` for every combination.
    """

    axes: tuple[Axis, ...]
    filters: tuple[Expression, ...] = ()
    sampled: Digits | None = None
    _last: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Designs: combinations that pass the filters, or a sample's."""
        if self.sampled is not None:
            return int(self.sampled.shape[1])
        return int(self._starts[-1]) * self._n_rest

    @property
    def n_combinations(self) -> int:
        """Combinations of the axes' values."""
        return math.prod(self._sizes)

    def digits(self, start: int, stop: int) -> Digits:
        """Designs ``start`` up to ``stop`` (excluded), shape (n_axes, stop - start).

        Examples
        --------
        >>> from libra_planner.sweeps.expressions import parse_expression
        >>> axes = (Axis("tp", (1, 2, 4)), Axis("dp", (1, 2, 4)))
        >>> where = parse_expression("tp * dp == 4", {"tp": "number", "dp": "number"})
        >>> space = Space(axes, (where,))
        >>> space.n, space.digits(0, 2).tolist()
        (3, [[0, 1], [2, 1]])
        """
        if self.sampled is not None:
            return self.sampled[:, start:stop]
        ranks = np.arange(start, stop, dtype=np.int64)
        firsts, rest = np.divmod(ranks, self._n_rest)
        blocks = np.searchsorted(self._starts, firsts, side="right") - 1
        found = np.empty_like(ranks)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            found[here] = self._passing(block)[firsts[here] - self._starts[block]]
        return _digits(found * self._n_rest + rest, self._sizes)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)

    @cached_property
    def _n_filtered(self) -> int:
        """Axes up to the last one that a filter speaks of."""
        used = {name for expression in self.filters for name in expression.names}
        return max((i + 1 for i, axis in enumerate(self.axes) if axis.name in used), default=0)

    @cached_property
    def _n_rest(self) -> int:
        """Combinations of the axes that no filter speaks of, at the fast end."""
        return math.prod(self._sizes[self._n_filtered :])

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Passing combinations of the filtered axes before each block, and in all of them."""
        n = math.prod(self._sizes[: self._n_filtered])
        counts = [len(self._passing(block)) for block in range(-(-n // BLOCK))]
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

    def _passing(self, block: int) -> NDArray[np.int64]:
        """Passing combinations of a block; the last block asked for is kept."""
        if block not in self._last:
            sizes = self._sizes[: self._n_filtered]
            last = min((block + 1) * BLOCK, math.prod(sizes))
            index = np.arange(block * BLOCK, last, dtype=np.int64)
            self._last.clear()
            self._last[block] = index[passing_mask(self.axes, self.filters, _digits(index, sizes))]
        return self._last[block]


def _digits(index: NDArray[np.int64], sizes: tuple[int, ...]) -> Digits:
    found = np.unravel_index(index, sizes) if sizes else np.zeros((0, len(index)))
    return np.array(found, dtype=np.int32)


def passing_mask(axes: Sequence[Axis], filters: Iterable[Expression], digits: Digits) -> Mask:
    """Which designs meet all filters, shape (n,); a division by zero meets none."""
    found = {axis.name: (axis, row) for axis, row in zip(axes, digits, strict=False)}
    every = tuple(filters)
    used = [found[name] for name in {name for one in every for name in one.names}]
    values = {axis.name: axis.array[row] for axis, row in used}
    return passing(every, values, digits.shape[1])


def build_space(
    axes: Iterable[Axis], filters: Iterable[Expression], sample: SampleSpec | None, seed: int
) -> Space:
    """All combinations that pass, or a sample of them.

    Raises
    ------
    SpecError
        For a space too big to enumerate, or without designs.
    """
    space = Space(tuple(axes), tuple(filters))
    n = space.n_combinations
    if sample is None:
        if n > MOST_COMBINATIONS:
            fix = "add e.g. 'sample: {method: lhs, n: 100000}', or take values out"
            expected = f"expected at most {MOST_COMBINATIONS:,} without a sample"
            raise SpecError(Fault(f"got {n:,} combinations", expected, fix))
    else:
        space = Space(space.axes, space.filters, sample_digits(space, sample, seed))
    if not space.n:
        got = f"got no design: none of {n:,} combinations meets all of where"
        raise SpecError(Fault(got, "expected one at least", "change where or the axes", "where"))
    return space


def sample_digits(space: Space, sample: SampleSpec, seed: int) -> Digits:
    """A sample in the order of the enumeration, without repetitions.

    A Latin hypercube is drawn once, then filtered: it may end up with fewer designs.
    A random sample is topped up until it has as many as asked for.
    """
    if sample.n > space.n_combinations:
        got = f"got n {sample.n:,} of {space.n_combinations:,} combinations"
        raise SpecError(Fault(got, "expected no more than there are", "leave sample out", "sample"))
    rng, n_axes, n_drawn = np.random.default_rng(seed), len(space.axes), max(sample.n, 1000)
    if sample.method == "lhs":
        from scipy.stats import qmc

        unit = qmc.LatinHypercube(d=n_axes, rng=rng).random(sample.n).T
        return _distinct(_passing_digits(space, unit))
    found = np.empty((n_axes, 0), dtype=np.int32)
    for _ in range(_ROUNDS):
        both = np.concatenate(
            [found, _passing_digits(space, rng.random((n_axes, n_drawn)))], axis=1
        )
        order, first = _sorted(both)  # Those of before are the first of their kind.
        found = both[:, np.sort(order[first])][:, : sample.n]
        if found.shape[1] == sample.n:
            return _distinct(found)
    got = f"got {found.shape[1]:,} designs that pass after {_ROUNDS} draws of {n_drawn:,}"
    fix = "enumerate (leave sample out), or ask for fewer"
    raise SpecError(Fault(got, f"expected {sample.n:,}", fix, "sample"))


def _passing_digits(space: Space, unit: NDArray[np.float64]) -> Digits:
    """Designs of points of the unit cube, shape (n_axes, n), that pass."""
    sizes = np.array([[len(axis.values)] for axis in space.axes])
    digits = np.minimum(unit * sizes, sizes - 1).astype(np.int32)
    kept: Digits = digits[:, passing_mask(space.axes, space.filters, digits)]
    return kept


def _distinct(digits: Digits) -> Digits:
    order, first = _sorted(digits)
    kept: Digits = digits[:, order[first]]
    return kept


def _sorted(digits: Digits) -> tuple[NDArray[np.intp], Mask]:
    """Order of designs (equal ones as given), and which are the first of their kind."""
    order = np.lexsort(digits[::-1])
    ordered = digits[:, order]
    first = np.ones(digits.shape[1], dtype=bool)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return order, first


@dataclass(frozen=True)
class CheckSettings:
    """How links are routed.

    Parameters
    ----------
    policy : how flows find their paths.
    seeds : draws; ``None`` for as many as ``check`` makes where nobody asks for a number.
    """

    policy: Policy
    seeds: range | None

    def recorded(self) -> dict[str, Any]:
        """The settings for a manifest."""
        first, n_seeds = (self.seeds.start, len(self.seeds)) if self.seeds else (0, None)
        drawn = {"seed": first, "seeds": n_seeds, "algorithms": "faster"}
        return vars(self.policy) | drawn


_RESERVED_STARTS = ("best_", "n_designs", "n_optimal", "ranked_")
"""Of what ``sweep show`` says of columns."""


@dataclass(frozen=True)
class Sweep:
    """A plan and the designs that its axes make of it.

    Parameters
    ----------
    source : the file, for messages.
    file : what it says.
    template : the plan with placeholders.
    space : which combinations of the axes' values are designs, and their order.
    columns : of results to keep, beside those that all sweeps have.
    check : how the links of every optimum are routed; ``None`` for no check.
    is_searched : whether designs may leave their parallelism open, to be searched.
    """

    source: str
    file: SweepFile
    template: templates.PlanTemplate
    space: Space
    columns: tuple[cols.Column, ...]
    check: CheckSettings | None = None
    is_searched: bool = False

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes, those that change slowest first."""
        return self.space.axes

    @property
    def n_parts(self) -> int:
        """Files that the results make."""
        return Layout(self.space.n, self.file.designs_per_part).n_parts


def load_sweep(path: Source, text: str | None = None, without: Container[str] = ()) -> Sweep:
    """Read a sweep file, a text as if it stood there, or a map of what such a file says.

    Parameters
    ----------
    path, text : the file or the map, and the text.
    without : keys that are not read.

    Raises
    ------
    SpecError
        With every fault found, each with file, line, column and the fix.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> sweep = load_sweep(folder("examples") / "10_budgets.yaml")
    >>> sweep.space.n, [axis.name for axis in sweep.axes]
    (74, ['objective', 'budget'])
    """
    document = (
        read_document(path, templates.MAP) if text is None else parse_document(text, str(path))
    )
    if without and isinstance(document.value, dict):
        read = {key: value for key, value in document.value.items() if key not in without}
        document = replace(document, value=read)
    spec, axes = _shape(document)
    faults = FaultCollector(document)
    axes = _with_objectives(spec, axes, faults)
    plan = faults.attempt(("base",), templates.base_plan, document, spec, folder_of(path))
    plan_document, beside = faults.present(plan)
    open_degrees(plan_document.value, [*spec.set_, *axes])
    _check_names(axes, faults)
    templates.apply_set(document, plan_document, spec, faults)
    template = templates.plan_template(document, plan_document, beside, axes, faults)
    if is_searched := template.may_be_open(axes.values()):
        _check_names(axes, faults, is_searched=True)
    filters = _filters(spec, axes, faults)
    check = None
    if spec.check is not None:
        policy = faults.under("check").attempt((), policy_with, spec.check.model_dump())
        seeds = asked_seeds(spec.check.seeds, spec.check.seed)
        check = None if policy is None else CheckSettings(policy, seeds)
    faults.required(True)
    # Axes of the step time change slowest, then those of objective and prices, then of numbers.
    structural, heavy = template.structural, template.heavy
    ordered = sorted(axes, key=lambda name: (name not in structural, name not in heavy))
    values = [axes[name] for name in ordered]
    space = faults.attempt(("axes",), build_space, values, filters, spec.sample, spec.seed)
    named = _named_columns(spec, varies_work=_varies_work(template, axes))
    kept = (*named, *(cols.columns(cols.CHECKED) if check else ()))
    if is_searched:
        kept += cols.columns(cols.SEARCHED, *([cols.ON_LINKS] if check else []))
    if "designs_per_part" not in spec.model_fields_set:
        is_built = check is not None or any(one.is_of_bill for one in named)
        usual = _BUILT_PER_PART if is_built else spec.designs_per_part
        update = {"designs_per_part": _SEARCHED_PER_PART if is_searched else usual}
        spec = spec.model_copy(update=update)
    return Sweep(document.file, spec, template, faults.required(space), kept, check, is_searched)


def _named_columns(spec: SweepFile, *, varies_work: bool) -> list[cols.Column]:
    """The columns that a file asks for, and those that come beside them."""
    named = [cols.COLUMNS[key] for key in spec.columns or ()] or [*cols.columns(cols.DEFAULT)]
    beside = cols.columns(cols.OF_WORK) if varies_work else ()
    named = [*dict.fromkeys((*named, *beside))]
    if any(one.is_of_bill for one in named):
        named = [*dict.fromkeys((*named, *cols.columns(cols.BILLED)))]
        if {"tokens_per_s", cols.PER_DOLLAR} <= {one.name for one in named}:  # They do not divide.
            named = [*dict.fromkeys((*named, cols.COLUMNS["billed_tokens_per_s"]))]
    return named


def _varies_work(template: templates.PlanTemplate, axes: Mapping[str, Axis]) -> bool:
    """Whether designs train different models, whose step times do not compare."""
    changing = template.axes_of(lambda key, _: key[0] in templates.WORK_KEYS)
    return any(len(axes[name].values) > 1 for name in changing)


def _shape(document: Document) -> tuple[SweepFile, dict[str, Axis]]:
    """The file's parts and its axes, or the faults of both."""
    reader, axes = FaultCollector(document), {}
    spec = reader.attempt((), validated, SweepFile, document)
    raw = document.value.get("axes") if isinstance(document.value, dict) else None
    for name in raw if isinstance(raw, dict) else ():
        axes[name] = reader.under("axes", name).attempt((), read_axis, document, name)
    return reader.required(spec), {name: axis for name, axis in axes.items() if axis is not None}


def _with_objectives(
    spec: SweepFile, axes: dict[str, Axis], faults: FaultCollector
) -> dict[str, Axis]:
    if not spec.objective:
        return axes
    if cols.OBJECTIVE in axes:
        got, fix = "got objective and an axis objective", "leave one of them out"
        faults.note(Fault(got, "", fix), (cols.OBJECTIVE,))
    if len(set(spec.objective)) < len(spec.objective):
        faults.note(Fault("got an objective twice", "", "remove one"), (cols.OBJECTIVE,))
    return axes | {cols.OBJECTIVE: Axis(cols.OBJECTIVE, tuple(spec.objective))}


def _check_names(
    axes: Mapping[str, Axis], faults: FaultCollector, *, is_searched: bool = False
) -> None:
    seen: set[str] = set()  # SQL takes capitals for small letters.
    for name in axes:
        dotted, small = name.split("."), name.lower()
        plain = all(part.isidentifier() or part.isdigit() for part in dotted)
        reserved = small in seen or small.startswith(_RESERVED_STARTS)
        reserved |= cols.is_taken(small, is_searched=is_searched) and name != cols.OBJECTIVE
        seen.add(small)
        if plain and not reserved and not dotted[0].isdigit():
            continue
        expected, fix = "expected a name", "write letters, digits and _"
        if reserved:
            expected, fix = f"{expected} that no other axis and no column has", "rename it"
        fault = Fault(f"got the axis {name!r}", expected, fix)
        faults.note(fault, ("axes", name), at_key=True)


def _filters(spec: SweepFile, axes: Mapping[str, Axis], faults: FaultCollector) -> list[Expression]:
    kinds = {name: axis.kind for name, axis in axes.items()}
    listed = isinstance(faults.document.value.get("where"), list)
    keys: list[Key] = [("where", i) if listed else ("where",) for i in range(len(spec.where))]
    found = [faults.attempt(k, _filter, t, kinds) for k, t in zip(keys, spec.where, strict=True)]
    return [one for one in found if one is not None]


def _filter(text: str, kinds: Mapping[str, str]) -> Expression:
    expression = parse_filter(text, kinds)
    others = [name for name in expression.names if kinds[name] == OTHER]
    if others:
        expected = "expected axes whose values are all numbers, or all text"
        raise SpecError(Fault(f"got the axis {others[0]!r} in {text!r}", expected))
    return expression


Rows = NDArray[np.intp]


def rows_by_code(codes: Rows) -> list[Rows]:
    """Designs by their column of codes, shape (n_codes, n_designs), in order.

    >>> [rows.tolist() for rows in rows_by_code(np.array([[0, 1, 0], [2, 2, 2]]))]
    [[0, 2], [1]]
    """
    if not len(codes) or (codes == codes[:, :1]).all():
        return [np.arange(codes.shape[1])]
    _, inverse = np.unique(codes, axis=1, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(inverse, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)


@dataclass(frozen=True)
class AxisColumn:
    """Values of one axis in a chunk: design i has ``values[codes[i]]``."""

    name: str
    values: tuple[Any, ...]
    codes: Rows


@dataclass(frozen=True)
class Chunk:
    """Consecutive designs of a sweep.

    Parameters
    ----------
    index : number of the chunk, and of its file.
    first_row : row of its first design.
    columns : values of the axes.
    """

    index: int
    first_row: int
    columns: tuple[AxisColumn, ...]

    @property
    def n(self) -> int:
        """Designs."""
        return len(self.columns[0].codes)

    def values(self, i: int, names: Container[str] | None = None) -> dict[str, Any]:
        """Values of all axes, or of some, of design i."""
        columns = [one for one in self.columns if names is None or one.name in names]
        return {one.name: one.values[one.codes[i]] for one in columns}

    def alike(self, names: Container[str], rows: Rows | None = None) -> list[Rows]:
        """The designs, all or some, with equal values of some axes, in order."""
        among = np.arange(self.n) if rows is None else rows
        codes = [one.codes[among] for one in self.columns if one.name in names]
        return [among[same] for same in rows_by_code(np.reshape(codes, (-1, len(among))))]


@dataclass(frozen=True)
class Job:
    """What every chunk of a sweep has in common.

    Parameters
    ----------
    template : the plan with placeholders.
    axes : name to type of their columns.
    n_dims : most dimensions of any design's fabric.
    columns : of results to keep, beside those that all sweeps have.
    check : how the links of every optimum are routed; ``None`` for no check.
    is_searched : whether designs may leave their parallelism open, to be searched.
    version : of the program that made it.
    sweep_hash : of the run's manifest, which its parts carry.
    """

    template: templates.PlanTemplate
    axes: Mapping[str, str]
    n_dims: int
    columns: tuple[cols.Column, ...]
    check: CheckSettings | None = None
    is_searched: bool = False
    version: str = __version__
    sweep_hash: str = ""

    @property
    def has_bills(self) -> bool:
        """Whether optima get the bill of their parts."""
        return any(one.is_of_bill for one in self.columns)


def chunk_of(sweep: Sweep, index: int) -> Chunk:
    """Chunk ``index`` of a sweep.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> from libra_planner.sweeps.spec import load_sweep
    >>> chunk = chunk_of(load_sweep(folder("examples") / "10_budgets.yaml"), 0)
    >>> chunk.n, chunk.values(1)
    (74, {'objective': 'performance', 'budget': 125})
    """
    rows = Layout(sweep.space.n, sweep.file.designs_per_part).rows(index)
    return chunk_between(sweep, rows.start, rows.stop, index)


def chunk_between(sweep: Sweep, first: int, last: int, index: int = 0) -> Chunk:
    """Designs ``first`` up to ``last`` (excluded) as a chunk."""
    digits = sweep.space.digits(first, last)
    found = []
    for axis, row in zip(sweep.axes, digits, strict=True):
        used, codes = np.unique(row, return_inverse=True)
        found.append(AxisColumn(axis.name, tuple(axis.values[i] for i in used), codes))
    return Chunk(index, first, tuple(found))


def job_of(sweep: Sweep) -> Job:
    """What the chunks of a sweep have in common."""
    axes = {axis.name: axis.dtype for axis in sweep.axes}
    n_dims = templates.most_dims(sweep.template, sweep.axes)
    return Job(sweep.template, axes, n_dims, sweep.columns, sweep.check, sweep.is_searched)
