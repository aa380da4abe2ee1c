"""What a sweep leaves out that may change its answer: cheaper networks, and other placements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from operator import getitem
from typing import Any

from libra_planner.allowed import PLACEMENTS
from libra_planner.check.expected import expected_at
from libra_planner.errors import PlannerError
from libra_planner.problem import bought, fastest_alternative
from libra_planner.sweeps.bills import CheaperNetwork, cheaper_network
from libra_planner.sweeps.columns import EFFECTIVE, OBJECTIVE, ROW
from libra_planner.sweeps.figures.tables import sql_name
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.template import design_document, names_at
from libra_planner.units import format_time, format_usd, short_usd
from libra_planner.views.sweeps.best import best_rows
from libra_planner.views.sweeps.noted import Remark, bandwidth_Bps, plans_of, with_strategy
from libra_planner.views.sweeps.points import Points
from libra_planner.views.training.step import LEAST_LONGER, hashed_step

CONTIGUOUS, _, RANDOM = PLACEMENTS
_PLACEMENT = ("fabric", "realization", "placement")
_MOST_ROWS = 9
"""Rows whose networks are looked at: the best, and those that come next per dollar."""


@dataclass(frozen=True)
class _Row:
    """A row with what ranks it.

    Parameters
    ----------
    work : values of the axes that change what is trained.
    """

    row: int
    work: tuple[object, ...]
    time_s: float
    usd: float

    def cost(self, role: str, usd: float | None = None) -> float:
        """What decides whether it is the best in something, at its bill or another one."""
        found = self.usd if usd is None else usd
        return found if role == _CHEAPEST else self.time_s * found


_CHEAPEST, _PER_DOLLAR = "cheapest", "best per dollar"


def cheaper_remarks(results: Results) -> Iterator[Remark]:
    """Networks that the sweep does not have, with the same bandwidths for less."""
    if results.cost_column != "bill_usd" or results.n_billed == 0:
        return
    rows = _rows(results)
    found = {row: one for row in rows if (one := _cheaper(results, row)) is not None}
    settings = dict.fromkeys(one.settings for one in found.values())
    alike = ({row: x for row, x in found.items() if x.settings == one} for one in settings)
    each = [_remark(results, rows, own) for own in alike]
    shorts = sorted((remark.short for remark in each), key=len, reverse=True)
    for place, remark in enumerate(each):  # In few words all of them are one.
        yield replace(remark, short="" if place else shorts[0])


def _rows(results: Results) -> dict[int, _Row]:
    """The best rows and those that come next per dollar, by their numbers."""
    works = [*map(sql_name, results.work_axes)]
    each = f"list_value({', '.join(works)})" if works else "[]"
    time, usd = results.time_column, results.cost_column
    query = (
        f"SELECT {ROW}, {each}, {time}, {usd} FROM designs WHERE {results.ranked} "
        f"ORDER BY {time} * {usd}, {ROW}"
    )
    wanted = [*best_rows(results)][:_MOST_ROWS]
    broken, rows = results.over_rule, dict[int, _Row]()
    for row, work, time_s, bill_usd in results.sql(query).rows:
        if row in wanted or (len(rows) < _MOST_ROWS and row not in broken):
            rows[row] = _Row(row, tuple(work), time_s, bill_usd)
    return rows


def _cheaper(results: Results, row: int) -> CheaperNetwork | None:
    """The cheaper network of a row; ``None`` too where its plan cannot be read."""
    vector_Bps = bandwidth_Bps(results, row)
    if vector_Bps is None:
        return None
    plans = (with_strategy(results, row, plan) for plan in plans_of(results, row))
    return next((cheaper_network(plan, vector_Bps) for plan in plans), None)


def _remark(
    results: Results, rows: Mapping[int, _Row], found: Mapping[int, CheaperNetwork]
) -> Remark:
    """One network, what it saves of every row, what is the best then, and how to sweep it."""
    first, *_ = found.values()
    saved = ", ".join(
        f"row {row} costs {short_usd(one.own_usd - one.usd)} less ({format_usd(one.usd)})"
        for row, one in sorted(found.items())
    )
    then = "; ".join(_changes(rows, found))
    what = "a cheaper network, which the sweep does not have"
    text = f"{what}: with {first.what}: {saved}, at the same bandwidths or more"
    order = f". {then[0].upper()}{then[1:]}" if then else ""
    short = f"{what}{', may change which row is best' * bool(then)}"
    return Remark(f"{text[0].upper()}{text[1:]}{order}. To have it, {_how(results, first)}", short)


def _changes(rows: Mapping[int, _Row], found: Mapping[int, CheaperNetwork]) -> Iterator[str]:
    """What is the best where all of these rows have it, or one of them alone."""
    for work in dict.fromkeys(one.work for one in rows.values()):
        own = [one for one in rows.values() if one.work == work]
        for role in (_PER_DOLLAR, _CHEAPEST):

            def cost(one: _Row, has: Sequence[int], role: str = role) -> float:
                return one.cost(role, found[one.row].usd if one.row in has else None)

            before = min(own, key=lambda one: cost(one, ()))
            after = min(own, key=lambda one: cost(one, [*found]))
            of = f" of {', '.join(map(str, work))}" if work else ""
            if after != before:
                yield f"row {after.row} is then the {role}{of}, before row {before.row}"
                continue
            alone = [
                one.row
                for one in own
                if one != before and one.row in found and cost(one, [one.row]) < cost(before, ())
            ]
            if alone:
                who = f"row{'s' * (len(alone) > 1)} {', '.join(map(str, alone))}"
                both = f"; if row {before.row} has it, too, it stays the {role}{of}"
                come = f"{who} with it would come before row {before.row} as it is ({role}{of})"
                yield f"{come}{both if before.row in found else ''}"


def _how(results: Results, one: CheaperNetwork) -> str:
    """What to write in a sweep file, as it stands."""
    spec = results.manifest["spec"]
    slots = {tuple(key) for key, *_ in spec["slots"]}
    lines = [f"{key}: {_yaml(value)}" for key, _, value in (x.partition("=") for x in one.settings)]
    rules = spec["base"].get("constraints")
    left: set[str] = set()
    if one.gone and isinstance(rules, list) and ("constraints",) not in slots:
        tiers = re.compile(rf"\b({'|'.join(map(re.escape, one.gone))})\b")
        kept = [rule for rule in rules if not tiers.search(str(rule))]
        lines.append(f"constraints: {json.dumps(kept)}")
        left = {name for name in results.axes if _is_only_in(spec, name, rules, kept)}
    keys = {x.partition("=")[0] for x in one.settings}
    left |= {key for key in keys if tuple(key.split(".")) in slots}
    without = f", without the axis or setting {' and '.join(sorted(left))}" if left else ""
    return f"copy the sweep file, and write under set: {{{', '.join(lines)}}}{without}"


def _is_only_in(
    spec: Mapping[str, Any], axis: str, rules: Sequence[object], kept: Sequence[object]
) -> bool:
    """Whether an axis stands in rules that are not kept, and nowhere else."""
    name = re.compile(rf"\{{[^}}]*\b{re.escape(axis)}\b[^}}]*\}}")
    others = {key: value for key, value in spec["base"].items() if key != "constraints"}
    is_value = any(own == axis for _, _, own in spec["slots"])
    is_gone = any(name.search(str(rule)) for rule in rules)
    return is_gone and not is_value and not name.search(json.dumps([others, *kept]))


def longer_on_links(results: Results, row: int) -> float:
    """How many times as long ECMP is expected to make a step; 1 where much the same, or checked."""
    vector_Bps = bandwidth_Bps(results, row)
    if vector_Bps is None or results.manifest["spec"].get("check"):
        return 1.0
    with suppress(PlannerError):
        for plan in plans_of(results, row):
            problem = with_strategy(results, row, plan).problem
            if found := hashed_step(fastest_alternative(problem, vector_Bps), vector_Bps):
                return found[1].mean_s / found[0]
    return 1.0


def on_links_words(results: Results, points: Points, i: int) -> str:
    """What ECMP is expected to make of the time of a design that nobody checked; mostly empty."""
    row = points.row(i)
    longer = 1.0 if row is None else longer_on_links(results, row)
    time_s = longer * points.rows[i][points.time]
    return f" · on links about {format_time(time_s)} (ECMP)" if longer > 1 else ""


def placement_remarks(results: Results) -> Iterator[Remark]:
    """How long steps of the best rows are expected to be where a job's servers sit anywhere."""
    if _has_random(results) and EFFECTIVE in results.columns:
        yield from _swept_placement(results)
        return
    best = best_rows(results)
    found = {row: one for row in [*best][:_MOST_ROWS] if (one := _moved(results, row))}
    if not found:
        return
    each = ", ".join(
        f"{format_time(after_s)} in row {row} ({' and '.join(best[row])}; {format_time(before_s)} "
        "next to each other)"
        for row, (before_s, after_s) in found.items()
    )
    what = "times hold for servers of a job next to each other (placement contiguous)"
    taken = f"at random places, with ECMP, a step is expected to take {each}"
    axis = f"under axes {'.'.join(_PLACEMENT)}: [{CONTIGUOUS}, {RANDOM}], and "
    text = (
        f"T{what[1:]}, thin tapers most of all: {taken}. Ask how the scheduler of the cluster "
        f"places jobs. To sweep it, write {'' if _has_random(results) else axis}"
        "check: {policy: ecmp}, and run it into a new directory"
    )
    times = ", ".join(f"{format_time(one[1])} in row {row}" for row, one in found.items())
    yield Remark(text, f"at random places of a job's servers ECMP is expected to take {times}")


def _placement_axes(results: Results) -> tuple[set[str], set[str]]:
    """Axes that placements are written with: all of them, and those that change nothing else."""
    spec, axes = results.manifest["spec"], {*results.axes}
    own = [slot for slot in spec["slots"] if tuple(slot[0]) == _PLACEMENT]
    others = [slot for slot in spec["slots"] if slot not in own]
    found, kept = (
        axes & names_at({**spec, "slots": slots}, [key[0] for key, *_ in slots if key])
        for slots in (own, others)
    )
    return found, found - kept


def _has_random(results: Results) -> bool:
    """Whether the values of axes give some rows of the sweep random places."""
    spec, (axes, _) = results.manifest["spec"], _placement_axes(results)
    values = [some for name, some, *_ in spec["axes"] if name in axes]
    return bool(axes) and RANDOM in json.dumps([values, spec["base"].get("fabric")])


def _swept_placement(results: Results) -> Iterator[Remark]:
    """What the best rows take at random places, of which the sweep has rows, too."""
    best = best_rows(results)
    found = {row: one for row in [*best][:_MOST_ROWS] if (one := _at_random(results, row))}
    if not found:
        return
    _, axes = _placement_axes(results)
    each = ", ".join(
        f"{format_time(random_s)} in row {other} (row {row}, {' and '.join(best[row])}: "
        f"{format_time(own_s)})"
        for row, (other, own_s, random_s) in found.items()
    )
    values = {name: some for name, some, *_ in results.manifest["spec"]["axes"]}
    filters = [f"{name} == '{RANDOM}'" for name in sorted(axes) if RANDOM in values[name]]
    ranked = "".join(f'. --where "{one}" ranks the others' for one in filters[:1])
    what = f"the best rows have placement {CONTIGUOUS}"
    taken = "at random places steps take"
    yield Remark(
        f"T{what[1:]}; {taken} {each}. A buyer does not choose the placement: ask how the "
        f"scheduler of the cluster places jobs{ranked}",
        f"{what}: {taken} "
        + ", ".join(f"{format_time(one[2])} in row {one[0]}" for one in found.values()),
    )


def _at_random(results: Results, row: int) -> tuple[int, float, float] | None:
    """The row at random places that is else like a row, and the times of steps of both on links.

    ``None`` where there is none, or it takes much the same.
    """
    _, axes = _placement_axes(results)
    names = [x for x in (*results.axes, OBJECTIVE) if x not in axes and x in results.columns]
    like = "".join(f" AND b.{x} IS NOT DISTINCT FROM a.{x}" for x in map(sql_name, names))
    query = (
        f"SELECT b.{ROW}, a.{EFFECTIVE}, b.{EFFECTIVE} FROM designs AS a, designs AS b WHERE "
        f"a.{ROW} = {row} AND b.{ROW} <> a.{ROW}{like} ORDER BY 1"
    )
    for other, own_s, random_s in results.sql(query).rows:
        is_longer = own_s and random_s and random_s >= (1 + LEAST_LONGER) * own_s
        if is_longer and _placement(results, other) == RANDOM:
            return other, own_s, random_s
    return None


def _placement(results: Results, row: int) -> str:
    """Where the servers of a job sit in a row."""
    document, _ = design_document(results.directory, row)
    return str(reduce(getitem, _PLACEMENT, document.value))


def _moved(results: Results, row: int) -> tuple[float, float] | None:
    """Times of a step by ECMP where servers sit next to each other, and anywhere.

    ``None`` where they are much the same, or the plan has another placement.
    """
    vector_Bps = bandwidth_Bps(results, row)
    if vector_Bps is None:
        return None
    with suppress(PlannerError):
        for plan in plans_of(results, row):
            whole = with_strategy(results, row, plan).problem
            problem = bought(fastest_alternative(whole, vector_Bps), vector_Bps)
            if problem.links.traffic.placement != CONTIGUOUS:
                return None
            steps = (expected_at(problem, vector_Bps, one) for one in (CONTIGUOUS, RANDOM))
            before_s, after_s = (one.mean_s if one else 0.0 for one in steps)
            is_longer = after_s >= (1 + LEAST_LONGER) * before_s > 0
            return (before_s, after_s) if is_longer else None
    return None


def _yaml(text: str) -> str:
    """A value as a flow map of YAML takes it: lists and numbers as they are.

    >>> _yaml("128"), _yaml("[node, leaf]"), _yaml("SW(8)_SW(128)")
    ('128', '[node, leaf]', '"SW(8)_SW(128)"')
    """
    is_list = text.startswith("[") and "(" not in text
    return text if is_list or re.fullmatch(r"\w+", text) else json.dumps(text)
