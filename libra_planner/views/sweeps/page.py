"""A sweep as one HTML page that needs no net: what is best, a scatter, parallel axes, a table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.files import output
from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import MESSAGE, OBJECTIVE, ROW, STATUS, Column
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.results import NEAR, Results
from libra_planner.views.cells import Card, Report, Section
from libra_planner.views.renderers.html import html
from libra_planner.views.sweeps.answers import check_words, time_words
from libra_planner.views.sweeps.best import among_words, best_lines, near_lines, wrong_words
from libra_planner.views.sweeps.linear import equals_words
from libra_planner.views.sweeps.points import MANY_TIMES, MOST_LABELS, MOST_RIMS, Points
from libra_planner.views.sweeps.remarks import folded, remarks
from libra_planner.views.sweeps.unswept import on_links_words
from libra_planner.views.sweeps.values import (
    axis_digits,
    cut_apart,
    degree_words,
    digits_apart,
    in_order,
    proportional,
    scaled,
    swept_words,
    token_words,
)

_MOST_DRAWN = 1_500
"""Designs that a picture draws, beside the frontier."""
_MOST_VALUES = 12
"""Values of an axis up to which they stand at equal distances."""
_ROOM = {"colour": math.inf, "marker": 8}
"""Values that a way of the scatter tells apart."""
_MOST_AXES = 9
_TICK = 24
"""Letters of a value beside an axis."""
_MOST_CARDS = 8
_LONG = {
    "effective": "effective step time",
    "time/seq.": "time per sequence",
    "eff./seq.": "effective time per sequence",
    "billed time": "billed step time",
    "billed/seq.": "billed time per sequence",
    "floor": "FIM floor",
    "sharded": "sharded memory",
    "speedup": "speedup over equal bandwidth",
}
"""Headings that a terminal has to shorten."""
_MANIFOLD = 2.0


def write_page(results: Results, file: str, answer: Answer | None = None) -> None:
    """Write the page of an answer, or of all designs.

    Raises
    ------
    SpecError
        For a name that does not end in .html, or a path that cannot be written.
    """
    if Path(file).suffix not in (".html", ".htm"):
        expected = "expected a name ending in .html"
        raise SpecError(Fault(f"got {file!r}", expected, "", "", Place("--html")))
    text = page(results, answer)
    with output(Path(file)) as out:
        out.write(text.encode())


def page(results: Results, answer: Answer | None = None) -> str:
    """The page of an answer, or of all designs; of very many those that are evenly spread."""
    points, results = Points.of(results, answer), results.among(answer)
    notes = [
        *map(visible, [*best_lines(results, is_near=False), *remarks(results)]),
        *_reading(results, points),
    ]
    return html(_report(results, points), "sweep.html.j2", data=page_data(points), notes=notes)


# What is best -----------------------------------------------------------------------------------


def _report(results: Results, points: Points) -> Report:
    name, words = swept_words(results)
    fronts = list(points.fronts.values())
    if len(fronts) > 1:
        lead, cards = _best_of_each(results, points, fronts)
    else:
        lead, cards = _best(results, points, fronts[0]) if fronts else ((), ())
    if "optimal" not in results.statuses:
        lead = (f"No design has an optimum: {results.statuses}.",)
    notes = tuple(_notes(results, points))
    title = "What is best" if lead else "About the rows"
    best = Section("decision", title, "", notes, lead=lead, cards=cards)
    return Report(f"Sweep {name}", words, (best,))


_Best = tuple[tuple[str, ...], tuple[Card, ...]]


def _best(results: Results, points: Points, front: Sequence[int]) -> _Best:
    """The fastest, the cheapest and the best per dollar of one frontier."""
    fastest, cheapest = front[0], front[-1]
    if not points.cost:
        return (f"Fastest: {points.name(fastest)}.",), (
            _card(results, points, "Fastest", fastest, ""),
        )
    best = points.per_dollar(front)
    among = among_words(results)
    lead = f"Best per dollar{among}: {points.name(best)}{_tie_words(results, points, best)}."
    if fastest == cheapest:
        return (lead, "It is the fastest and the cheapest, too."), (
            _card(results, points, "Fastest and cheapest", fastest, _place("It is so", among)),
        )
    beside = f"The fastest design {_against(points, fastest, cheapest, 'the cheapest')}"
    titles = {i: " and ".join(names).capitalize() for i, names in points.roles(front).items()}
    reasons = (_place(x, among) + _beside(points, i, fastest, cheapest) for i, x in titles.items())
    cards = (
        _card(results, points, title, i, why)
        for (i, title), why in zip(titles.items(), reasons, strict=True)
    )
    return (lead, beside), tuple(cards)


def _place(what: str, among: str) -> str:
    """Among which rows a design is the best; empty where that is all of them."""
    return f"{what}{among}. " if among else ""


def _tie_words(results: Results, points: Points, best: int) -> str:
    """Its row, and of how many designs it is one that are as good for all that anybody can tell."""
    row = points.row(best)
    least = points.rows[best][points.time] * points.rows[best][points.cost]
    figures = (points.time, points.cost)
    axes = [axis for axis in points.axes if axis != OBJECTIVE]
    every: Sequence[Mapping[str, Any]] = points.rows
    if points.is_sample:  # The page has some of the designs, and the tie is among all.
        product = f"{points.time} * {points.cost} <= {least * (1 + NEAR)!r}"
        every = results.sql(f"SELECT * FROM designs WHERE {results.ranked} AND {product}").dicts()
    near = (
        one
        for one in every
        if all(one[name] for name in figures)
        and one[points.time] * one[points.cost] <= least * (1 + NEAR)
    )
    # What two objectives find alike is one design.
    n = len({(*(one[x] for x in axes), *(f"{one[x]:.9g}" for x in figures)) for one in near})
    which = [] if row is None else [f"row {row}"]
    if n > 1:
        which.append(f"in a tie of {n:,} designs within {NEAR:.1%}")
    which += wrong_words(results, points, best)
    return f" ({', '.join(which)})" if which else ""


def _best_of_each(results: Results, points: Points, fronts: Sequence[Sequence[int]]) -> _Best:
    """The best of each workload: times of different work do not compare."""
    apart = ", ".join(map(visible, points.apart))
    cards, among = [], among_words(results)
    for front in fronts[:_MOST_CARDS]:
        best = points.per_dollar(front) if points.cost else front[0]
        work = ", ".join(points.value(best, axis) for axis in points.apart)
        ends = f"Fastest{among}: {_end(results, points, front[0], best)}."
        if points.cost:
            ends += f" Cheapest: {_end(results, points, front[-1], best)}."
        name = points.name(best, without=points.apart)
        figures = f"{_figures(points, best)}{on_links_words(results, points, best)}"
        cards.append(Card(work, name, figures, f"{_row(results, points, best)}{ends}"))
    what = "per dollar" if points.cost else "in time"
    lead = f"The best {what} of each {apart}{among}."
    why = f"The work of a step depends on {apart}: compare times only where it is the same."
    return (lead, why), tuple(cards)


def _card(results: Results, points: Points, title: str, i: int, reason: str) -> Card:
    figures = f"{_figures(points, i)}{on_links_words(results, points, i)}"
    return Card(title, points.name(i), figures, f"{_row(results, points, i)}{reason}")


def _end(results: Results, points: Points, i: int, best: int) -> str:
    """The row of a design with its figures, and what is wrong with its bill; short for the best."""
    if i == best:
        return "the same"
    row = points.row(i)
    told = ["" if row is None else f"row {row}", _figures(points, i)]
    return ", ".join([*filter(None, told), *wrong_words(results, points, i)])


def _row(results: Results, points: Points, i: int) -> str:
    """Its row, what is wrong with its bill, and which others are equal."""
    row = points.row(i)
    broken = "".join(f"{words.capitalize()}. " for words in wrong_words(results, points, i))
    if row is None:
        return broken
    equal = equals_words(results, row) if points.cost else ""
    return f"Row {row}{'; ' * bool(equal)}{equal}. {broken}"


def _figures(points: Points, i: int) -> str:
    found = [points.shown(i, name) for name in (points.time, points.cost) if name]
    if points.time.endswith("seconds_per_sequence"):
        found[0] += " a sequence"
    if points.time.removeprefix("best_").startswith("effective"):
        found[0] += " on its links"
    return " · ".join(found)


def _against(points: Points, i: int, base: int, name: str) -> str:
    """What a design costs and how long it takes beside another one on the frontier."""
    cost, time = (
        points.rows[i][one] / points.rows[base][one] for one in (points.cost, points.time)
    )
    costs = (
        f"costs {cost:.1f} times as much as"
        if cost >= _MANIFOLD
        else (f"costs {abs(cost - 1):.1%} {'more' if cost > 1 else 'less'} than")
    )
    takes = (
        f"takes {time:.1f} times as long"
        if time >= _MANIFOLD
        else (f"takes {abs(time - 1):.1%} {'more' if time > 1 else 'less'} time")
    )
    return f"{costs} {name} and {takes}."


def _beside(points: Points, i: int, fastest: int, cheapest: int) -> str:
    if i == fastest:
        text = _against(points, i, cheapest, "the cheapest")
    else:
        text = _against(points, i, fastest, "the fastest")
    return text[0].upper() + text[1:]


def _notes(results: Results, points: Points) -> Iterator[str]:
    """What nobody must miss of the rows, in short."""
    manifest, n = results.manifest, len(points.rows)
    if left := manifest["n_parts"] - results.n_parts_done:
        yield f"The run is not finished: {left:,} of {manifest['n_parts']:,} parts are missing."
    if points.is_sample:
        n_all = results.n_rows
        n_front, n_here = results.n_on_frontier, sum(map(len, points.fronts.values()))
        which = "the frontier"
        if n_here < n_front:
            which = f"{n_here:,} of the {n_front:,} of the frontier"
            which += f", all that differ by more than {NEAR:.1%} from their neighbours"
        yield f"The page holds {n:,} of {n_all:,} designs: evenly spread ones, and {which}."
    statuses = Counter(row[STATUS] for row in points.rows if STATUS in row)
    if bad := [f"{k:,} {name}" for name, k in sorted(statuses.items()) if name != "optimal"]:
        yield f"Without an optimum, in the table only: {', '.join(bad)}."
    yield from map(visible, near_lines(results))
    yield from map(visible, folded(results, "More of it below."))
    if points.is_mixed:
        axes = ", ".join(map(visible, results.work_axes))
        yield f"No row is called best: the work of a step depends on {axes}."


def _reading(results: Results, points: Points) -> Iterator[str]:
    """How to read the page, and what to do with it."""
    n = len(points.rows)
    front = [i for one in points.fronts.values() for i in one]
    if front and points.cost:
        cost = points.cost_name
        yield (
            f"On the frontier: {len(front):,} of the {n:,} designs here. No other one beats them "
            f"in {time_words(points.time)} and {cost}. "
            f"Best per dollar is the least time times {cost}."
        )
    if not points.time:
        return
    if tokens := token_words(points.rows, points.axes):
        yield f"{tokens[0].upper()}{tokens[1:]}: times of such steps do not compare."
    yield "A model computes the times. It has an error: small differences decide nothing."
    directory = visible(str(results.directory.path))
    if points.time.removeprefix("best_").startswith("effective"):
        yield (
            f"Times are those on the links of each design, routed by {check_words(results)}; "
            "--by ideal ranks by the plan's model, which grants a design all its bandwidth."
        )
    elif points.cost and points.cost_name == "bill":
        yield (
            "Costs are the bills of whole parts, times those on the ports that they buy; "
            "--by ideal ranks by the plan's linear costs and times."
        )
    yield f"A row as a plan: libra-planner sweep design {directory} ROW -o design.yaml"


# What the page computes with --------------------------------------------------------------------


def page_data(points: Points) -> dict[str, Any]:
    """Rows and columns of a page for its script, JSON without infinities.

    ``each`` has a picture of every work, by itself; the picture of all stands beside it.
    """
    columns = [
        _column(points, one, [row[name] for row in points.rows])
        for name, one in points.columns.items()
    ]
    works = points.ranked_works
    numbers = {tuple(work.values()): k for k, work in enumerate(works)}
    every = range(len(points.rows))
    work_of = [numbers.get(tuple(row[x] for x in points.apart), -1) for row in points.rows]
    own = [[i for i in every if work_of[i] == k] for k in range(len(works))]
    return {
        "columns": columns,
        "rows": [[row[name] for name in points.columns] for row in points.rows],
        "drawn": points.has_optimum or not points.time,
        "x": points.cost,
        "y": points.time,
        "works": [", ".join(map(str, work.values())) for work in works],
        "work_of": work_of,
        "compared": _compared(points),
        "unsold": sorted(points.unsold),
        "most": _MOST_DRAWN,
        "many": MANY_TIMES,
        "most_labels": MOST_LABELS,
        **_picture(points, every, columns),
        "each": [
            _picture(points.of_work(work), own[k], columns)
            for k, work in enumerate(works if len(works) > 1 else [])
        ],
    }


def _compared(points: Points) -> str:
    """Comparisons of columns that a filter of this page may have."""
    first = min((row.get(ROW) or 0 for row in points.rows), default=0)
    said = [f"row >= {first}"]
    for axis in points.axes:
        values = in_order({row[axis] for row in points.rows})
        if all(isinstance(value, int | float) for value in values):
            said.append(f"{visible(axis)} >= {values[len(values) // 2]:.6g}")
    return " and ".join((said[1:] or said)[:2])


def _picture(
    points: Points, places: Sequence[int], columns: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """How designs are drawn and labelled; ``places`` are those of their rows on the page."""
    ways = _ways(points)
    return {
        "front": [(places[i], label) for i, label in points.labels.items()],
        "labels": points.labels_say,
        "colour": ways.get("colour", ""),
        "marker": ways.get("marker", ""),
        "far": sorted(places[i] for i in points.far),
        "beyond": points.far_words,
        "parallel": list(_parallel(points, columns))[:_MOST_AXES],
        "rims": len(points.labels) <= MOST_RIMS,
    }


def _ways(points: Points) -> dict[str, str]:
    """Ways of the scatter to the axes they show: colours tell apart what does not compare."""
    first = {"colour": points.apart[0]} if points.apart else {}
    room = {way: n for way, n in _ROOM.items() if way not in first}
    ways = points.ways(room, without=[*first.values()])[0]
    return first | {way: axis for axis, way in ways.items()}


def _column(points: Points, column: Column, values: Sequence[Any]) -> dict[str, Any]:
    """A column for the script: heading, unit, digits, and what its values are."""
    known = [value for value in values if value is not None]
    is_axis = column.name in points.axes
    is_text = any(isinstance(value, str | bool) for value in known)
    scale, unit = (1.0, "") if is_text or not known else scaled(column, max(map(abs, known)))
    n_digits = 0
    if not is_text and known:
        n_digits = axis_digits(known) if is_axis else _most_digits(points, values, scale, unit)
    label = _tier(points, column) or visible(column.label)
    label = label.removesuffix(" %").removesuffix(" GB/s")
    unit = "" if label == unit else unit
    found = {
        "name": column.name,
        "label": _LONG.get(label, label),
        "short": label,
        "unit": points.units.get(column.name, "") if is_axis else unit,
        "base": "" if is_axis else column.unit_name,
        "text": is_text,
        "axis": is_axis,
        "scale": scale,
        "digits": n_digits,
        "dull": _is_dull(points, column.name, known),
        "most": column.best == "max",
    }
    kinds = set(known)
    if is_axis and (is_text or len(kinds) <= _MOST_VALUES):
        found["values"] = values = in_order(kinds)
        if column.name == OBJECTIVE:  # Their first letters are the same.
            found["ticks"] = {value: column.cell(value) for value in kinds}
        elif is_text:
            texts = cut_apart([degree_words(str(value)) for value in values], _TICK)
            found["ticks"] = dict(zip(values, texts, strict=True))
    return found


def _most_digits(points: Points, values: Sequence[Any], scale: float, unit: str) -> int:
    """Digits that tell values apart within each work: times of another one may be far longer."""
    near: dict[tuple[Any, ...], list[float]] = {}
    others: list[float] = []
    places = {*points.near}
    for i, (row, value) in enumerate(zip(points.rows, values, strict=True)):
        work = tuple(row[axis] for axis in points.apart)
        if value is not None:
            own = near.setdefault(work, []) if i in places else others
            own.append(value * scale)
    exact = 2 if unit == "GB/s" else None
    return max(digits_apart(own, exact) for own in [*near.values()] or [others])


def _tier(points: Points, column: Column) -> str:
    """The tier whose bandwidth a column has, where all plans name it alike."""
    found = re.fullmatch(r"bandwidth_dim(\d+)_GBps", column.name)
    place = int(found[1]) - 1 if found else len(points.tiers)
    return points.tiers[place] if place < len(points.tiers) else ""


def _is_dull(points: Points, name: str, known: Sequence[Any]) -> bool:
    """Whether paper has no room for a column: one value, another column's multiple, a message."""
    whole = name.replace("seconds_per_sequence", "step_time_s")
    columns = ([row.get(one) for row in points.rows] for one in (name, whole))
    return name == MESSAGE or len(set(known)) < 2 or (whole != name and proportional(*columns))


def _parallel(points: Points, columns: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Columns that parallel axes show: what varies, what ranks first, and no figure twice."""
    seen: list[list[Any]] = []
    ranking = (points.time, points.cost)
    for one in sorted(columns, key=lambda one: (not one["axis"], one["name"] not in ranking)):
        name = one["name"]
        values = [row.get(name) for row in points.rows]
        is_figure = not one["text"] and name not in (ROW, f"best_{ROW}")
        if len({*values} - {None}) < 2 or not (one["axis"] or is_figure):
            continue
        if not one["axis"]:
            if any(proportional(values, other) for other in seen):
                continue
            seen.append(values)
        yield name
