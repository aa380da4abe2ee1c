"""What plans of a sweep note, once for all rows that share it."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

import numpy as np

from libra_planner.errors import PlannerError
from libra_planner.inputs.bills import Bills
from libra_planner.inputs.plans import OpenedPlan
from libra_planner.plan.steps.notes import plan_notes
from libra_planner.step.expression import Array
from libra_planner.sweeps.columns import NOTES, STATUS
from libra_planner.sweeps.figures.texts import BETWEEN_NOTES
from libra_planner.sweeps.probe import spread_rows
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.template import design_document
from libra_planner.units import BYTES_PER_S_PER_GBPS

_MOST_LINES = 3
_MOST_READ = 6
"""Plans whose notes are read, where results do not have them."""
_LETTERS = 60
"""Of the subject of a note."""
_BANDWIDTHS = "bandwidth_dim[0-9]+_GBps"
_NUMBERS = "[0-9][0-9.e+]*"
_FOUND = "parallelism_found"
_OPTIMAL = f"{STATUS} = 'optimal'"


@dataclass(frozen=True)
class Remark:
    """What a reader has to know.

    Parameters
    ----------
    text : all of it, with what to do.
    short : its subject in a few words; empty where another remark has it.
    is_shared : whether it is of all rows, and tells none from another.
    """

    text: str
    short: str = ""
    is_shared: bool = False


def plans_of(results: Results, row: int) -> Iterator[OpenedPlan]:
    """The plan of a row; nothing where a file of it has changed or cannot be read."""
    with suppress(PlannerError):
        yield OpenedPlan(*design_document(results.directory, row), _bundled())


def bandwidth_Bps(results: Results, row: int) -> Array | None:
    """The bandwidth of a row per NPU, shape (n_dims,), byte/s; ``None`` without such columns."""
    if not any(re.fullmatch(_BANDWIDTHS, name) for name in results.columns):
        return None
    query = f"SELECT COLUMNS('{_BANDWIDTHS}') FROM designs WHERE row = {row}"
    (own,) = results.sql(query).rows
    return np.array([one for one in own if one is not None]) * BYTES_PER_S_PER_GBPS


def with_strategy(results: Results, row: int, plan: OpenedPlan) -> OpenedPlan:
    """A plan that leaves its strategy open with the one that the row has."""
    if not plan.is_open or _FOUND not in results.columns:
        return plan
    ((text,),) = results.sql(f"SELECT {_FOUND} FROM designs WHERE row = {row}").rows
    own = plan.document.value | {"parallelism": json.loads(text)}
    return OpenedPlan(replace(plan.document, value=own), plan.beside, plan.bills)


@cache
def _bundled() -> Bills:
    """Bills at the bundled catalogue, which is read once."""
    return Bills()


def note_remarks(results: Results) -> Iterator[Remark]:
    """What plans take for granted: first what all of them do, then what tells rows apart.

    Notes that differ in their numbers alone are one here.
    """
    if NOTES not in results.columns:
        yield from _read_notes(results)
        return
    split = f"unnest(string_split({NOTES}, '{BETWEEN_NOTES}'))"
    each = f"SELECT row, {NOTES} AS all_, {split} AS note_ FROM designs"
    kinds = (
        f"SELECT *, regexp_replace(note_, '{_NUMBERS}', '', 'g') AS kind_ FROM ({each}) "
        "WHERE note_ <> ''"
    )
    query = (
        f"SELECT min_by(note_, row), count(DISTINCT row) AS n_, min(row) AS first_, "
        f"n_ = (SELECT count({NOTES}) FROM designs) AS is_of_all_, count(DISTINCT note_) > 1 "
        f"FROM ({kinds}) GROUP BY kind_ "
        f"ORDER BY n_ DESC, min(CASE WHEN row = 0 THEN strpos(all_, note_) END), first_"
    )
    found = results.sql(query).rows
    shared = [one for one in found if one[3]]
    which = "all rows" if {one[1] for one in shared} <= {results.n_rows} else "all plans"
    yield from _shared([(note, is_varied) for note, *_, is_varied in shared], which)
    yield from _of_some(results, [one[:3] for one in found if not one[3]])


def _of_some(results: Results, found: Sequence[tuple[str, int, int]]) -> Iterator[Remark]:
    """Notes of some rows, which may tell them apart."""
    for place, (note, n, first) in enumerate(found[:_MOST_LINES]):
        rows = f"Row {first}" if n == 1 else f"{n:,} of {results.n_rows:,} rows, such as {first}"
        yield Remark(f"{rows}: {note}", "" if place else "notes of some plans")
    if (left := len(found) - _MOST_LINES) > 0:
        yield Remark(f"{left:,} more notes of some rows: --columns row,{NOTES} prints them")


def _shared(notes: Sequence[tuple[str, bool]], rows: str) -> Iterator[Remark]:
    """Notes that all rows share, each with whether its numbers differ between them."""
    subjects = [_subject(note) for note, _ in notes]
    for place, (note, is_varied) in enumerate(notes[:_MOST_LINES]):
        such = ", with other numbers in some" if is_varied else ""
        short = "" if place else f"in {rows}: {', '.join(subjects[:_MOST_LINES])}"
        yield Remark(f"In {rows}{such}: {note}", short, is_shared=True)
    if more := subjects[_MOST_LINES:]:
        also = f"In {rows} also: {'; '.join(more)}. optimize of a row's plan has all of it"
        yield Remark(also, is_shared=True)


def _subject(note: str) -> str:
    """What a note is of, in few words.

    >>> _subject("tier node costs nothing in clos-2026: NPUs reach their server's switch")
    'tier node costs nothing in clos-2026'
    """
    first, *others = re.split("(?<=[:;]) ", note)
    subject = f"{first} {others[0]}" if others and " " not in first else first
    return textwrap.shorten(subject.rstrip(":;"), _LETTERS, placeholder=" ...")


def _read_notes(results: Results) -> Iterator[Remark]:
    """What plans all over the sweep note alike, where no column has it."""
    rows = [row for (row,) in results.sql(f"SELECT row FROM designs WHERE {_OPTIMAL}").rows]
    picked = [rows[i] for i in spread_rows(len(rows), _MOST_READ)] if rows else []
    plans = [plan for row in picked for plan in plans_of(results, row) if not plan.is_open]
    found = [[*plan_notes(plan.problem)] for plan in plans]
    if not found:
        return
    texts: dict[str, set[str]] = {}
    for note in chain.from_iterable(found):
        texts.setdefault(_kind(note), set()).add(note)
    common = set.intersection(*({_kind(note) for note in own} for own in found))
    shared = [(note, len(texts[_kind(note)]) > 1) for note in found[0] if _kind(note) in common]
    which = "all rows" if len(found) == results.n_rows else f"each of {len(found):,} rows looked at"
    yield from _shared(shared, which)


def _kind(note: str) -> str:
    """A note without its numbers."""
    return re.sub(_NUMBERS, "", note)
