"""What is wrong with a sweep, before any work: misspelt values, and designs that are no plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from libra_planner.costs.quotes import unused_note
from libra_planner.errors import Fault, Infeasible, PlannerError, SpecError, refuse
from libra_planner.inputs.plans import OpenedPlan
from libra_planner.optimizer.optimize import optimize
from libra_planner.plan.problem import build_plan
from libra_planner.problem import Problem
from libra_planner.reading.document import Key, Source, dotted_key
from libra_planner.reading.value_faults import path_of
from libra_planner.sweeps.axes import Axis, cell
from libra_planner.sweeps.expressions import OTHER, TEXT, WHOLE_TEXTS
from libra_planner.sweeps.figures.texts import as_in_file
from libra_planner.sweeps.solver import opened_plan
from libra_planner.sweeps.spec import Chunk, Job, Sweep, chunk_between, load_sweep
from libra_planner.sweeps.template import PlanTemplate

PROBES = 12
"""Designs that are looked at before work starts: if none of them is a plan, nothing is run."""
QUOTES_KEY = "quotes"


def spread_rows(n: int, n_picked: int) -> list[int]:
    """Up to so many different rows of n, evenly spread.

    >>> spread_rows(100, 3), spread_rows(1, 3)
    ([0, 49, 99], [0])
    """
    return list(dict.fromkeys(i * (n - 1) // max(1, n_picked - 1) for i in range(n_picked)))


_ALONE = ("where", "check", "columns", "seed", "designs_per_part")
"""Keys without which the rest of a sweep file means the same."""


def read_sweep(path: Source) -> Sweep:
    """:func:`~libra_planner.sweeps.spec.load_sweep`, whose faults hide none of the later ones.

    What is wrong in a key that the rest does without is said with what is wrong in the rest.

    Raises
    ------
    SpecError
        With every fault, also those that :func:`probe` finds.
    """
    try:
        return load_sweep(path)
    except SpecError as error:
        faults, without = dict.fromkeys(error.faults), _keys_of(error)
    while without <= {*_ALONE}:
        try:
            probe(load_sweep(path, without=without))
            break
        except SpecError as error:
            faults |= dict.fromkeys(error.faults)
            if _keys_of(error) <= without:
                break
            without |= _keys_of(error)
    raise SpecError(*sorted(faults, key=lambda one: (one.place.line or 0) if one.place else 0))


def _keys_of(error: SpecError) -> set[str]:
    """The keys of a sweep file that faults are in; an empty one for a fault of all of it."""
    return {str(dotted_key(one.path)[0]) if one.path else "" for one in error.faults}


def probe(sweep: Sweep) -> None:
    """Refuse a sweep with a misspelt value, or of which designs all over the space are no plans.

    Raises
    ------
    SpecError
        With the faults of all misspelt values, or of the first of the designs.
    """
    refuse(_misspelt(sweep))
    first: tuple[Fault, ...] = ()
    for values in map(partial(_values, sweep), _covering_rows(sweep)):
        if not (faults := _faults(sweep.template, values)):
            return
        first = first or tuple(_of_axis(sweep, values, fault) for fault in faults)
    raise SpecError(*first)


def unreadable_words(sweep: Sweep) -> str:
    """How many designs are no plans, of some in which each value of every axis is; empty for none.

    It names the axis that tells them from the others, where one does, and what is wrong with one.
    """
    rows = _covering_rows(sweep)
    values = [_values(sweep, row) for row in rows]
    faults = [_faults(sweep.template, one) for one in values]
    wrong = [place for place, found in enumerate(faults) if found]
    if not wrong:
        return ""
    own = values[wrong[0]].items()
    design = ", ".join(f"{name} {as_in_file(cell(value))}" for name, value in own)
    told = _telling(sweep, values, wrong)
    n = f"{len(wrong):,} of {len(rows):,} designs that were read are no plans"
    first = str(faults[wrong[0]][0])
    return f"{n}{told}, such as: {design}: {first}{missing_tier_words(first)}"


_NO_TIER = "expected a tier of this fabric"


def missing_tier_words(reason: str) -> str:
    """How to give each fabric the rules of its own tiers, where one lacks a tier; else nothing."""
    return f"; {WHOLE_TEXTS}" if _NO_TIER in reason else ""


def common_conflict(sweep: Sweep) -> str:
    """Which rules conflict, where no design that is read has a bandwidth; else nothing."""
    found = ""
    for values in map(partial(_values, sweep), _covering_rows(sweep)):
        conflict = named_conflict(OpenedPlan(sweep.template.filled(values), sweep.template.beside))
        if conflict is None:
            return ""
        found = found or conflict_words(conflict)
    return found


def _covering_rows(sweep: Sweep) -> list[int]:
    """Rows all over a sweep, and for each value of every axis one that has it; of many some."""
    n = sweep.space.n
    rows = spread_rows(n, PROBES)
    for digits in sweep.space.digits(0, min(n, _MOST_LOOKED_AT)):
        codes = np.unique(digits)
        for place in spread_rows(len(codes), _MOST_READ):
            of_value = np.flatnonzero(digits == codes[place])
            rows.append(int(of_value[len(of_value) // 2]))
    return list(dict.fromkeys(rows))


def _values(sweep: Sweep, row: int) -> dict[str, Any]:
    return chunk_between(sweep, row, row + 1).values(0)


def _telling(sweep: Sweep, values: Sequence[Mapping[str, Any]], wrong: Sequence[int]) -> str:
    """The axis of which the designs that are wrong have other values than all the rest."""
    for axis in sweep.axes:
        cells = [cell(one[axis.name]) for one in values]
        bad = dict.fromkeys(cells[place] for place in wrong)
        rest = {one for place, one in enumerate(cells) if place not in wrong}
        if rest and not rest & bad.keys():
            return f", all with {axis.name} {' or '.join(map(as_in_file, bad))}"
    return ""


_MOST_LOOKED_AT, _MOST_READ = 100_000, 16
"""Designs among which every value of an axis is looked for, and its values of which one is read."""
_MOST_SPELT = 256
"""Values of an axis whose spelling is looked at: each takes as long as a structure."""


def named_conflict(plan: OpenedPlan) -> Infeasible | None:
    """Which rules conflict in a plan without a bandwidth; nothing for another plan."""
    try:
        optimize(plan.problem)
    except Infeasible as error:
        return error
    except PlannerError:
        return None
    return None


def conflict_words(conflict: Infeasible) -> str:
    """What conflicts, without the place of a rule in a plan that nobody wrote.

    >>> conflict_words(Infeasible("a.yaml:3:7: got a rule none can meet: 'total <= 0 GB/s'"))
    "a rule none can meet: 'total <= 0 GB/s'"
    """
    return str(conflict).split("got ", maxsplit=1)[-1]


def unused_quotes_words(plans: Iterable[OpenedPlan]) -> str:
    """What the linear prices of no plan use, though it has a quote; empty without such quotes.

    In the words of ``optimize``, with what it means for rows. A plan that is wrong says nothing.
    """
    used: set[str] = set()
    unused: dict[str, None] = {}
    for problem in _linear(plans):
        own = problem.text.unused_quotes
        unused |= dict.fromkeys(own)
        used |= {quote.item for quote in problem.prices.quotes} - {*own}
    if not (rest := [item for item in unused if item not in used]):
        return ""
    without = "cost_usd, rules on cost and optima where cost counts are without them"
    return f"{unused_note(rest)}. {without}. To count them write prices: bill under set"


def _linear(plans: Iterable[OpenedPlan]) -> Iterator[Problem]:
    """Of some plans those at linear prices."""
    for plan in plans:
        with suppress(PlannerError):
            if plan.problem.prices.choice is None:
                yield plan.problem


def unused_quotes_of(sweep: Sweep, job: Job) -> str:
    """The same of designs all over a sweep."""
    if QUOTES_KEY not in sweep.template.document.value:
        return ""
    chunks = (chunk_between(sweep, i, i + 1) for i in spread_rows(sweep.space.n, PROBES))
    return unused_quotes_words(_opened(job, chunks))


def _opened(job: Job, chunks: Iterable[Chunk]) -> Iterator[OpenedPlan]:
    """The first design of each chunk, where placeholders have a value."""
    for chunk in chunks:
        with suppress(SpecError):
            yield opened_plan(job, chunk, 0)


def _misspelt(sweep: Sweep) -> list[Fault]:
    """Names, keys and units in values of axes that no plan could mean, each at its value."""
    axes = [axis for axis in sweep.axes if axis.kind in (TEXT, OTHER) and not axis.is_topology]
    found = (fault for axis in axes for fault in _misspelt_values(sweep, axis))
    return sorted(found, key=lambda fault: (fault.place.line or 0) if fault.place else 0)


def _misspelt_values(sweep: Sweep, axis: Axis) -> Iterator[Fault]:
    """What is misspelt in values of an axis, in designs all over the sweep."""
    rows = spread_rows(sweep.space.n, PROBES)
    first, *others = (chunk_between(sweep, row, row + 1).values(0) for row in rows)
    keys = [key for key, slot in sweep.template.slots.items() if axis.name in slot.names]
    pairs = zip(axis.values, axis.places or [None] * len(axis.values), strict=True)
    for value, place in islice(pairs, _MOST_SPELT):
        own = {axis.name: value}
        faults = _misspelt_in(sweep.template, first | own)
        inside = [one for one in faults if _is_in_named_file(sweep.template, one)]
        mine = [one for one in faults if any(_is_below(one.path, key) for key in keys)]
        if (inside or mine) and all(_misspelt_in(sweep.template, x | own) for x in others):
            yield from inside
            yield from (replace(x, place=place or x.place) for x in mine if x not in inside)


def _is_in_named_file(template: PlanTemplate, fault: Fault) -> bool:
    """Whether a fault is in a file that a plan names, such as a model's: no plan could mean it."""
    document = template.document
    own = {document.file, *(place.file for place in document.places.values())}
    return fault.place is not None and fault.place.file not in own


def _misspelt_in(template: PlanTemplate, values: Mapping[str, Any]) -> list[Fault]:
    """What of a design is misspelt."""
    return [fault for fault in _faults(template, values) if fault.is_misspelt]


def _faults(template: PlanTemplate, values: Mapping[str, Any]) -> tuple[Fault, ...]:
    """What is wrong with a design, its memory aside."""
    try:
        plan = OpenedPlan(template.filled(values), template.beside)
        _ = (
            plan.base
            if plan.is_open
            else build_plan(plan.document, plan.beside, holds_memory=False)
        )
    except Infeasible:
        return ()
    except SpecError as error:
        return error.faults
    return ()


def _is_below(path: str, key: Key) -> bool:
    """Whether the path of a fault is a key of a plan, or inside it."""
    return f"{path.split(' ', maxsplit=1)[0]}.".startswith(f"{path_of(key)}.")


def _of_axis(sweep: Sweep, values: Mapping[str, Any], fault: Fault) -> Fault:
    """A fault of a design at the axis that makes it, where one does."""
    template, path = sweep.template, fault.path.split(" ")[0]
    dotted = {".".join(map(str, key)): key for key in template.slots}
    own = [key for name, key in dotted.items() if path and f"{name}.".startswith(f"{path}.")]
    place = template.document.places.get(own[0]) if own else None
    if place is None:
        return fault
    design = ", ".join(f"{name} {cell(value)}" for name, value in values.items())
    return replace(fault, place=place, path=f"{fault.path} of {design}")
