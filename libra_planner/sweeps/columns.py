"""The columns of a sweep's results: one table, which files, answers, screens and docs derive from.

A column that :func:`register` adds from outside is computed, written, shown by ``sweep show`` and
by the cockpit like those that are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import truediv
from typing import Any, Final

from libra_planner.registry import Registry
from libra_planner.sweeps.figures import texts, values
from libra_planner.sweeps.figures.inputs import refuse_inputs
from libra_planner.sweeps.figures.number_units import UNITS, Unit, unit_of
from libra_planner.sweeps.figures.texts import as_in_file, cut, in_one_line, plain, short_objective

ROW, OBJECTIVE, STATUS, MESSAGE, NOTES = "row", "objective", "status", "message", "notes"
COST, EFFECTIVE = "cost_usd", "effective_step_time_s"
OVER_RULE, OVER_SERVER = "bill_over_rule_usd", "bill_over_server_GBps"
PER_DOLLAR, AS_BILLED = "tokens_per_s_per_MUSD", "billed tok/s/M$"
ALWAYS, DEFAULT, ASKED = "always", "default", "asked"
CHECKED, SEARCHED, ON_LINKS = "checked", "searched", "on links"
BILLED, OF_WORK = "billed", "of_work"
"""When results have a column: in every sweep, unless ``columns`` says otherwise, only if it says
so, in sweeps whose links are checked, in those whose plans leave their parallelism open, in those
with both, where ``columns`` names one of a bill, or where axes change what is trained or
``columns`` says so."""

_MORE_IS_BETTER = (PER_DOLLAR, "tokens_per_s", "mfu_percent", "speedup_vs_equal")
"""Ends of names of columns whose largest value is the best."""
_LESS_IS_BETTER = ("s", "USD", "bytes", "%")
"""Units of other columns, whose least value is the best."""

HIDDEN, FIRST, BANDWIDTHS, WHERE_KNOWN = range(4)
"""Places of a column in answers of ``sweep show``; the last one only where any design has it."""

NONE = "-"


@dataclass(frozen=True)
class Column:
    """A column of results.

    Parameters
    ----------
    name : in files and SQL; of one per dimension, with ``{dim}`` for the dimension's number.
    meaning : for the handbook.
    of : what it is computed from, if not from its namesake: attributes of
        :class:`~libra_planner.sweeps.figures.solved.SolvedChunk`.
    values : what makes an array, shape (n,), of these; of one per dimension shape (n_dims, n). It
        has to be importable by its name, so that other processes have it.
    dtype : ``double``, ``int64``, ``bool`` or ``string``.
    kept : one of :data:`ALWAYS`, :data:`DEFAULT`, :data:`ASKED`, :data:`CHECKED`, :data:`SEARCHED`,
        :data:`BILLED`, :data:`OF_WORK`.
    asked_as : what ``columns`` of a sweep file calls it, if not by its name.
    is_late : directories of earlier versions do not have it.
    shown : its place in answers of ``sweep show``, such as :data:`FIRST`.
    unit : a key of :data:`UNITS`; without one, what the end of the name says.
    heading : on screen; without one, the name without the unit.
    screen : its place on screen, smaller ones first; messages come last.
    in_words : whether the line about the best design names it.
    text : a value for people, if not as its unit says.
    n_cells : the least width on screen, if not its unit's.
    """

    name: str
    meaning: str = ""
    of: tuple[str, ...] = ()
    values: Callable[..., Any] = values.itself
    dtype: str = "double"
    kept: str = ASKED
    asked_as: str = ""
    is_late: bool = False
    shown: int = FIRST
    unit: str = ""
    heading: str = ""
    screen: int = 50
    in_words: bool = False
    text: Callable[[Any], str] | None = None
    n_cells: int | None = None

    @property
    def key(self) -> str:
        """What ``columns`` of a sweep file calls it."""
        return self.asked_as or self.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it is computed from."""
        return self.of or (self.name,)

    @property
    def is_of_bill(self) -> bool:
        """Whether it is of the bill of whole parts."""
        return any(name.startswith("bill") for name in self.inputs)

    @property
    def is_text(self) -> bool:
        """Whether it is aligned at the left."""
        return self.dtype == "string"

    @property
    def _unit(self) -> Unit:
        return UNITS[self.unit] if self.unit or self.is_text else unit_of(self.name)

    @property
    def unit_name(self) -> str:
        """A key of :data:`UNITS`."""
        return next(name for name, one in UNITS.items() if one is self._unit)

    @property
    def best(self) -> str:
        """Which of its values is the best: ``max``, ``min``, or empty where none is.

        >>> COLUMNS["tokens_per_s"].best, COLUMNS["step_time_s"].best, COLUMNS["bandwidth"].best
        ('max', 'min', '')
        """
        if self.name.endswith(_MORE_IS_BETTER):
            return "max"
        return "min" if self.unit_name in _LESS_IS_BETTER else ""

    @property
    def label(self) -> str:
        """Its heading on screen."""
        unit = self._unit
        name = self.name.removesuffix(unit.ending).replace("_", " ")
        return self.heading or name + unit.in_heading

    def cell(self, value: Any) -> str:
        """A value for people, or nothing; numbers with their unit, whatever else as it is."""
        if value is None:
            return NONE
        text = self.text or (self._unit.text if isinstance(value, float) else plain)
        return text(value)

    @property
    def whole(self) -> Column:
        """The column with all of its messages, which tables cut."""
        return replace(self, text=in_one_line) if self.text is cut else self

    def padded(self, text: str) -> str:
        """At least as wide as the column."""
        own = self._unit.n_cells if self.n_cells is None else self.n_cells
        width = max(own, len(self.label))
        return text.ljust(width) if self.is_text else text.rjust(width)

    def names(self, n_dims: int) -> list[str]:
        """Its names in the results of a sweep with so many dimensions.

        >>> COLUMNS["bandwidth"].names(2)
        ['bandwidth_dim1_GBps', 'bandwidth_dim2_GBps']
        """
        each = range(1, n_dims + 1) if "{dim}" in self.name else (0,)
        return [self.name.format(dim=dim) for dim in each]

    def arrays(self, solved: object, n_dims: int) -> Iterator[tuple[str, Any]]:
        """Names and values, shape (n,) each."""
        found = self.values(*(getattr(solved, name) for name in self.inputs))
        rows = found if "{dim}" in self.name else [found]
        return zip(self.names(n_dims), rows, strict=True)


COLUMNS: Final = Registry[Column]("column", str.lower)
"""All columns by what ``columns`` of a sweep file calls them, in their order in files."""

FIGURES: Final = Registry[Column]("column", str.lower)
"""Those that a sweep file may name."""


def register(*added: Column) -> None:
    """Add columns to those that sweeps can have.

    Raises
    ------
    ValueError
        For a name that a column has already, or that SQL would have to quote; for inputs that
        solved designs do not have, or that its function does not take.
    """
    known = list(dict.fromkeys(name for one in COLUMNS.values() for name in one.inputs))
    for one in added:
        refuse_inputs(one.key, one.inputs, one.values, known)
    _add(*added)


def _add(*added: Column) -> None:
    for one in added:
        if not one.key.isidentifier():
            raise ValueError(f"got the column {one.key!r}, expected letters, digits and _")
        COLUMNS.add(one, one.key)
        if one.kept in (DEFAULT, ASKED, BILLED, OF_WORK):
            FIGURES.add(one, one.key)


def columns(*kept: str) -> tuple[Column, ...]:
    """The columns that results have at some times (all without any), in their order in files."""
    return tuple(one for one in COLUMNS.values() if not kept or one.kept in kept)


def is_taken(name: str, *, is_searched: bool = False) -> bool:
    """Whether a column has a name in small letters, or could have it in another dimension.

    Names such as ``tp`` are columns only of sweeps whose strategies are searched.
    """
    starts = (one.name.partition("{dim}") for one in COLUMNS.values())
    per_dim = any(dim and name.startswith(before) for before, dim, _ in starts)
    mine = (one for one in COLUMNS.values() if is_searched or one.kept != SEARCHED)
    return per_dim or name in {one.key.lower() for one in mine}


def column_named(name: str) -> Column:
    """The column of a name in results; one that nobody told of is what its name says."""
    for one in COLUMNS.values():
        before, per_dim, after = one.name.partition("{dim}")
        if name == one.name:
            return one
        number = name.removeprefix(before).removesuffix(after)
        if per_dim and number.isdigit() and name == f"{before}{number}{after}":
            return replace(one, name=one.name.format(dim=int(number)), heading=f"dim{int(number)}")
    return Column(name)


def shown_first(names: Sequence[str], known: Iterable[str]) -> list[str]:
    """What people want to see of a design, of the names of results.

    Parameters
    ----------
    names : of the results, axes left out.
    known : names that any design has a value of.
    """
    listed = {one.key: i for i, one in enumerate(COLUMNS.values())}
    found = [(column_named(name), name) for name in names]
    fine = [
        (one.shown, listed.get(one.key, len(listed)), name)
        for one, name in found
        if one.shown != HIDDEN and (one.shown != WHERE_KNOWN or name in known)
    ]
    return [name for *_, name in sorted(fine, key=lambda triple: triple[:2])]


def on_screen(
    names: Sequence[str], axes: Sequence[str], plan_cost: str = "network cost"
) -> list[Column]:
    """Columns of results in the order of the screen: each of ``names`` once.

    Parameters
    ----------
    names : of the results.
    axes : those of them that the sweep varies, shown as they were given.
    plan_cost : heading of ``cost_usd``, as ``Results.plan_cost`` has it.

    Examples
    --------
    >>> found = on_screen(["row", "step_time_s", "bandwidth_dim1_GBps", "tp", "x_usd"], ["tp"])
    >>> [one.label for one in found]
    ['row', 'tp', 'step time', 'dim1', 'x']

    Work per dollar is at the time of what is bought where there are bills.

    >>> [one.label for one in on_screen(["bill_usd", "tokens_per_s_per_MUSD"], [])]
    ['bill', 'billed tok/s/M$']
    """
    varied = [name for name in (ROW, *axes) if name in names and name != OBJECTIVE]
    first = [Column(name, heading=name, text=as_in_file, n_cells=4) for name in varied]
    others = [column_named(name) for name in names if name not in varied]
    is_billed = any(name.startswith("bill") for name in names)
    headings = {COST: plan_cost} | ({PER_DOLLAR: AS_BILLED} if is_billed else {})
    others = [replace(x, heading=headings.get(x.name, x.heading)) for x in others]
    return first + sorted(others, key=lambda one: one.screen)


_always = partial(Column, kept=ALWAYS, shown=HIDDEN)
_hidden = partial(Column, kept=DEFAULT, shown=HIDDEN)
_shown = partial(Column, kept=DEFAULT)
_memory = partial(_shown, is_late=True, shown=WHERE_KNOWN)
_checked = partial(Column, kept=CHECKED)
_billed = partial(Column, is_late=True, kept=BILLED)
_of_work = partial(Column, is_late=True, kept=OF_WORK, screen=6)
_per_dollar = partial(
    Column, values=values.per_million_usd, is_late=True, text="{:,.1f}".format, screen=6, n_cells=8
)
_found = partial(Column, of=("strategy",), kept=SEARCHED, dtype="int64", n_cells=2, screen=10)
_message = partial(
    _hidden, values=values.text_or_null, dtype="string", screen=99, text=cut, n_cells=0
)
_add(
    _always(ROW, "number of the design", dtype="int64"),
    _always(
        OBJECTIVE, "what is optimised", ("kinds",), values.text_or_null, "string",
        screen=1, text=short_objective, n_cells=9,
    ),
    _always(STATUS, "how the design came out", dtype="string", screen=11, n_cells=10),
    _hidden("objective_value", "what was minimised, SI", ("objective",)),
    _hidden("lower_bound", "proven bound of it"),
    _hidden(
        "optimality_gap", "between the two, relative", ("objective", "lower_bound"), values.gap,
        heading="gap", screen=14, text="{:.1e}".format, n_cells=7,
    ),
    _shown("step_time_s", "by the plan's model", screen=2, in_words=True),
    _shown(
        "seconds_per_sequence", "step time over the sequences of a step",
        ("step_time_s", "n_sequences"), truediv, unit="s", heading="time/seq.", screen=9,
    ),
    _hidden(
        "step_time_low_s", "the same if it is as far off as published runs of its kind",
        ("step_time_s", "error_fraction"), values.least_s, is_late=True,
    ),
    _hidden(
        "step_time_high_s", "the other end; null without a measured class",
        ("step_time_s", "error_fraction"), values.most_s, is_late=True,
    ),
    _shown(
        COST, "of the network by linear prices, with the fixed cost of the plan; no bill",
        screen=4, in_words=True,
    ),
    _shown(
        "bandwidth_dim{dim}_GBps", "of each dimension, per NPU", ("bandwidth_bytes_per_s",),
        values.by_dimension, asked_as="bandwidth", shown=BANDWIDTHS, screen=8, n_cells=7,
    ),
    _hidden(
        "unique", "whether no other design is as good", (STATUS, "unique"), values.of_optima, "bool"
    ),
    _hidden("resolved", "whether the single-plan optimizer solved it", dtype="bool"),
    Column(
        "speedup_vs_equal", "over equal bandwidth", ("equal_step_time_s", "step_time_s"),
        values.finite_ratio, heading="speedup", screen=5, in_words=True,
    ),
    _of_work(
        "tokens_per_s", "of the whole cluster; null but for whole models",
        ("tokens_per_step", "step_time_s"), truediv, heading="tokens/s",
    ),
    _of_work(
        "mfu_percent", "FLOP/s of the model over the dense peak of the NPUs, full attention (C18)",
        ("ideal_s", "step_time_s"), values.percent, heading="MFU %",
    ),
    Column(
        "communication_s", "exposed communication: what the step takes beyond its compute",
        ("step_time_s", "compute_s"), values.difference, is_late=True, heading="exposed", screen=6,
    ),
    Column(
        "billed_tokens_per_s", "tokens/s at the billed time: compare those with the bill",
        ("tokens_per_step", "billed_step_time_s"), truediv, is_late=True, heading="billed tok/s",
        screen=6,
    ),
    _per_dollar(
        PER_DOLLAR,
        "work per dollar: tokens/s per million USD of the bill, at the billed time, null "
        "where no such server is priced; of `cost_usd` in a sweep without bills",
        ("tokens_per_step", "paid_step_time_s", "paid_usd"), heading="tok/s/M$",
    ),
    _per_dollar(
        "effective_tokens_per_s_per_MUSD", "the same at the effective time; null without `check`",
        ("tokens_per_step", "effective_step_time_s", "paid_usd"), heading="eff. tok/s/M$",
    ),
    Column(
        "bill_usd", "all parts of the optimum, as `report` has it, bundled catalogue and quotes",
        is_late=True, heading="bill", screen=4, in_words=True,
    ),
    _billed(
        "billed_step_time_s",
        "on the whole ports that the bill pays for, at the plan's `port_speed`, as `report` has it",
        heading="billed time", screen=3, in_words=True,
    ),
    _billed(
        "billed_seconds_per_sequence", "that over the sequences of a step",
        ("billed_step_time_s", "n_sequences"), truediv,
        unit="s", heading="billed/seq.", screen=10,
    ),
    _billed(
        "bill_excess_percent",
        "the most bandwidth that the parts of a dimension have beyond what the design asks for",
        heading="excess %", shown=HIDDEN,
    ),
    _billed(
        OVER_RULE,
        "what the bill (of the training fabric where the plan has no `fixed_cost`) has beyond the "
        "most that rules on `cost` allow: above 0 it breaks them; null without such a rule",
        ("bill_usd", "bill_fabric_usd", "is_of_system", "cost_limit_usd"), values.over_rule,
        heading="over rule", shown=WHERE_KNOWN, text=texts.over_rule,
    ),
    _billed(
        OVER_SERVER,
        "what the design asks of the links between the NPUs of a server beyond those that the "
        "priced server has: no such server is priced; null where it has them",
        heading="over server", shown=WHERE_KNOWN,
    ),
    _message(
        "bill_note",
        "parts of the bill that are faster than the `port_speed` of the plan, and servers whose "
        "links have more or less than the design asks for",
        kept=BILLED, is_late=True,
    ),
    Column("bill_low_usd", "the same, all prices at their low ends", is_late=True),
    Column("bill_high_usd", "the same, all prices at their high ends", is_late=True),
    Column("bill_fabric_usd", "of it the training fabric", is_late=True),
    _message("message", "why there is no optimum"),
    _message(
        NOTES, "what its plan takes for granted, the notes that `optimize` prints of it",
        is_late=True,
    ),
    _message(
        "bill_message", "why there is no bill: what cannot be built, or has no price",
        kept=BILLED, is_late=True,
    ),
    _memory(
        "memory_bytes", screen=12,
        meaning="weights, gradients and optimizer states per NPU; of whole models all it holds",
    ),
    _memory(
        "sharded_memory_bytes", heading="sharded", screen=13,
        meaning="the least that ZeRO can need of it; null for whole models, whose plan has a stage",
    ),
    *(
        _found(name, meaning, values=partial(values.degree, name), shown=place, dtype=dtype)
        for name, meaning, place, dtype in (
            ("tp", "tensor parallelism of the strategy, found or fixed", FIRST, "int64"),
            ("cp", "its context parallelism", FIRST, "int64"),
            ("pp", "its pipeline stages", FIRST, "int64"),
            ("dp", "its data parallelism", FIRST, "int64"),
            ("ep", "its expert parallelism", FIRST, "int64"),
            ("interleave", "its chunks of each stage", WHERE_KNOWN, "int64"),
            ("microbatch", "its sequences of a microbatch", WHERE_KNOWN, "int64"),
            ("zero", "its ZeRO stage", WHERE_KNOWN, "int64"),
            ("recompute", "its recomputation", WHERE_KNOWN, "string"),
        )
    ),
    _found(
        "parallelism_found", "all of the strategy, as `parallelism` of a plan",
        values=values.written, shown=HIDDEN, dtype="string", is_late=True, screen=98,
    ),
    _found(
        "n_unproven", "strategies that may be better; 0 in optimal rows", of=("found",),
        values=partial(values.of_search, "n_unproven"), shown=HIDDEN,
    ),
    _checked(
        "fim_percent",
        "FIM of the most unbalanced dimension, mean over the seeds; null where no flow crosses "
        "switches",
        heading="FIM %", screen=6, in_words=True, n_cells=6,
    ),
    _checked(
        "fim_floor_percent",
        "the least that any routing of whole flows can reach; null for `spray`, and as above",
        heading="floor %", screen=7,
    ),
    _checked(
        "fim_avoidable_percent", "most FIM of a dimension beyond its own floor",
        heading="avoidable %", screen=7, is_late=True,
    ),
    _message(
        "fim_avoidable_dimension", "that dimension, the one whose FIM `check` prints over seeds",
        heading="avoidable in", kept=CHECKED, is_late=True, shown=FIRST, screen=7,
    ),
    *(
        _checked(name, meaning, heading=heading, shown=HIDDEN, screen=7, is_late=True)
        for name, heading, meaning in (
            ("fim_of_dimension_percent", "FIM there %", "FIM of that dimension, mean of the seeds"),
            ("fim_floor_of_dimension_percent", "floor there %", "its floor; null for `spray`"),
        )
    ),
    _checked(
        "effective_step_time_s",
        "of the step on the whole links under the policy, mean over the seeds",
        heading="effective", screen=3, in_words=True,
    ),
    _checked(
        "effective_seconds_per_sequence", "that over the sequences of a step",
        ("effective_step_time_s", "n_sequences"), truediv,
        unit="s", heading="eff./seq.", screen=10,
    ),
    Column(
        "n_on_links",
        "strategies that were checked on their links; the row has the best of them",
        values=values.whole, dtype="int64", kept=ON_LINKS, is_late=True, shown=HIDDEN,
    ),
    Column(
        "model_effective_step_time_s",
        "of the strategy that is the best by the plan's model, on its links",
        kept=ON_LINKS, is_late=True, shown=HIDDEN,
    ),
    _message(
        "check_message",
        "why the links cannot be built or routed; the row stays optimal, its figures of links are "
        "null",
        kept=CHECKED,
    ),
)  # fmt: skip
