"""The axes of a sweep: names and their values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from libra_planner.allowed import HASHES
from libra_planner.errors import Fault, Place, SpecError, closest, shown
from libra_planner.fabric.blocks import BLOCKS
from libra_planner.fabric.topology import parse_topology
from libra_planner.reading import models
from libra_planner.reading.document import Document, Key, is_number, is_whole
from libra_planner.routing.policy import POLICIES, Policy, option_words
from libra_planner.step.expression import Array
from libra_planner.sweeps.columns import CHECKED, COLUMNS, FIGURES, ON_LINKS, SEARCHED
from libra_planner.sweeps.expressions import NUMBER, OTHER, TEXT, TRUTH

MOST_SAMPLES = 5_000_000
"""Most designs of a sample: their indices are held in memory."""

MOST_VALUES = 1_000_000
"""Most values of one axis."""

_DIGITS = 12
"""Significant digits of the values of a range: 0.1 + 2 * 0.1 is 0.3."""

_MOST_DIMS = 12
_LARGEST = 2**53

Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


class _Range(models.Model):
    """Values from one number to another.

    Parameters
    ----------
    start : First value.
    to : Last value; steps that do not meet it end before it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)
    start: Number = Field(alias="from")
    to: Number

    def refuse_reversed(self) -> None:
        """Refuse a range that ends before it begins."""
        if self.start > self.to:
            fix = f"write from: {self.to:g}, to: {self.start:g}"
            got = f"got from {self.start:g} to {self.to:g}"
            raise SpecError(Fault(got, "expected from <= to", fix))


class StepRange(_Range):
    """Values from one number to another in steps, both ends included.

    Parameters
    ----------
    step : Difference between one value and the next.
    """

    step: Annotated[Number, Field(gt=0)]

    def values(self, raw: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values; whole ones of a file that says whole ones, ``raw``."""
        self.refuse_reversed()
        n = math.floor((self.to - self.start) / self.step * (1 + 1e-12) + 1e-9) + 1
        if n > MOST_VALUES:
            raise SpecError(Fault(f"got {n:,} values", f"expected at most {MOST_VALUES:,}"))
        if all(isinstance(raw[part], int) for part in ("from", "step")):
            return tuple(raw["from"] + i * raw["step"] for i in range(n))
        return tuple(_rounded(self.start + i * self.step) for i in range(n))


class CountRange(_Range):
    """So many values from one number to another, evenly spaced or evenly spaced in logarithm.

    Parameters
    ----------
    n : How many values, both ends included.
    log : Whether values are spaced evenly in logarithm, such as 1, 10, 100; else by equal
        differences.
    """

    n: Annotated[int, Field(ge=1, le=1_000_000)]
    log: bool = False

    def values(self, raw: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values; whole ones if they all are and the file's first one is, ``raw``."""
        self.refuse_reversed()
        if self.n == 1 and self.start != self.to:
            got, fix = f"got 1 value from {self.start:g} to {self.to:g}", "write n: 2 or more"
            raise SpecError(Fault(got, "expected from = to", fix))
        if self.n > 1 and self.start == self.to:
            raise SpecError(Fault(f"got {self.n} values at {self.to:g}", "expected from < to"))
        if self.log and self.start <= 0:
            raise SpecError(Fault(f"got from {self.start:g} with log", "expected more than 0"))
        spaced = np.geomspace if self.log else np.linspace
        found = spaced(self.start, self.to, self.n)
        values = _distinct([_rounded(float(value)) for value in found])
        whole = all(value.is_integer() for value in values) and isinstance(raw["from"], int)
        return tuple(map(int, values)) if whole else values


class FactorizationsSpec(models.Model):
    """Every topology of so many NPUs: all ordered factors as sizes, all choices of blocks.

    Parameters
    ----------
    npus : NPUs of every topology: the product of its sizes.
    blocks : What a dimension can be, such as [RI, SW]; every choice is tried.
    """

    npus: Annotated[int, Field(ge=2, le=10**9)]
    dims: Any = Field(description="Number of dimensions, such as 3 or 2..4.")
    blocks: Annotated[list[Annotated[str, models.RegisteredName(BLOCKS)]], Field(min_length=1)]
    sizes: Any = Field(
        default=None,
        description="Allowed sizes, such as 2..64 or [4, 8, 16]; of all dimensions, or a map by "
        "tier.",
    )
    stack: list[models.Text] | None = Field(
        default=None,
        description="Names of tiers: the dimensions that have them are switches of one network "
        "behind one port (brackets). Other dimensions are of blocks.",
    )


class FactorizationsAxis(models.Model):
    """An axis of all topologies of a size.

    Parameters
    ----------
    factorizations : Every topology of so many NPUs.
    """

    factorizations: FactorizationsSpec
    tiers: Any = Field(
        default=None,
        description="Price tiers: a list whose last d serve a topology of d dimensions, with "
        "stacks its first d; or lists by number of dimensions.",
    )


class TopologiesAxis(models.Model):
    """An axis of named topologies.

    Parameters
    ----------
    topologies : Topologies as a plan writes them, such as [RI(4)_SW(8), RI(32)].
    """

    topologies: Annotated[list[models.Text], Field(min_length=1)]
    tiers: Any = Field(default=None, description="As for factorizations.")


AXIS_MODELS = (StepRange, CountRange, FactorizationsAxis, TopologiesAxis)

_AXES_SCHEMA = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [
            {"type": "array", "minItems": 1},
            *({"$ref": f"#/$defs/{model.__name__}"} for model in AXIS_MODELS),
        ]
    },
}
_BASE_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "object"}]}


class SampleSpec(models.Model):
    """How many designs to draw from a space too big to enumerate.

    Parameters
    ----------
    method : lhs: n designs, spread evenly over every axis, less those that where leaves out;
        random: drawn at random until n meet where.
    n : Designs to draw.
    """

    method: Literal["lhs", "random"] = "lhs"
    n: Annotated[int, Field(ge=1, le=MOST_SAMPLES)]


def _option(name: str, default: Any = None) -> Any:
    """A key that is an option of ``check``, told in the same words."""
    return Field(default, description=option_words(name))


class CheckSpec(models.Model):
    """How the links of every optimum are routed: the options of ``check``.

    Parameters
    ----------
    policy : How flows find their paths.
    seeds : Routings of each design, of which results are the mean; 10 or fewer where neither seeds
        nor seed is given.
    seed : Seed of the first routing, 0 by default; without seeds it means one routing.
    """

    policy: Annotated[str, models.RegisteredName(POLICIES)] = Policy().name
    seeds: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    hash: Literal[HASHES] | None = _option("hash")  # type: ignore[valid-type]
    shared_seed: bool = _option("shared_seed", False)
    enhanced: bool = _option("enhanced", False)
    per_collective: bool = _option("per_collective", False)
    count_flows: bool = _option("count_flows", False)
    time_limit: Annotated[float, Field(allow_inf_nan=False)] | None = _option("time_limit")


def _asked(value: Any) -> Any:
    """Refuse a column that comes by itself, and say with what."""
    if not isinstance(value, str) or value not in COLUMNS or value in FIGURES:
        return value
    found = COLUMNS[value]
    where = _BY_ITSELF.get(found.kept, "in every sweep")
    raise ValueError(f"got {value!r}, which comes by itself {where}; leave it out here")


_BY_ITSELF = {
    SEARCHED: "with parallelism: auto",
    CHECKED: "with check",
    ON_LINKS: "with parallelism: auto and check",
}
"""When columns come that nobody names."""

_Figure: TypeAlias = Annotated[str, models.RegisteredName(FIGURES), BeforeValidator(_asked)]
_Figures: TypeAlias = Annotated[list[_Figure], Field(min_length=1)]


class SweepFile(models.Model):
    """A sweep: a plan with placeholders, and the values that fill them.

    Parameters
    ----------
    sample : Designs to draw; without it every combination of the axes is a design.
    seed : Seed of the sample: the same file with the same seed draws the same designs.
    designs_per_part : Designs that are optimised and written together. Unless it stands here it is
        8 where a strategy is searched, and 100 with check or bills.
    """

    base: Annotated[Any, WithJsonSchema(_BASE_SCHEMA)] = Field(
        description="The plan: inline, a path, or a bundled example's name."
    )
    axes: dict[str, Any] = Field(
        min_length=1, description="Name of an axis, or dotted key of the plan, to its values."
    )
    set_: dict[str, Any] = Field(
        default={}, alias="set", description="Dotted keys of the plan to values, with placeholders."
    )
    where: Annotated[list[models.Text], BeforeValidator(_listed)] = Field(
        default=[], description="Only designs for which all of these hold, e.g. tp * dp == 4096."
    )
    objective: Annotated[
        list[Literal["performance", "performance_per_cost", "cost"]],
        Field(min_length=1),
        BeforeValidator(_listed),
    ] = Field(default=[], description="Objectives; without them the plan's own.")
    columns: _Figures | None = Field(
        default=None, description="Columns of results to keep, beside axes, objective and status."
    )
    check: CheckSpec | None = Field(
        default=None, description="Route the links of every optimum; adds FIM and effective times."
    )
    sample: SampleSpec | None = None
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    designs_per_part: Annotated[models.Count, Field(le=100_000)] = 1000


def sweep_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of sweep files.

    >>> sorted(sweep_schema()["required"])
    ['axes', 'base']
    """
    schema = SweepFile.model_json_schema()
    definitions = dict(schema.get("$defs", {}))
    for model in AXIS_MODELS:
        own = model.model_json_schema()
        definitions |= own.pop("$defs", {}) | {model.__name__: own}
    properties = schema["properties"] | {"axes": schema["properties"]["axes"] | _AXES_SCHEMA}
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | schema | {"$defs": definitions, "properties": properties}


@dataclass(frozen=True)
class Axis:
    """One axis.

    Parameters
    ----------
    name : placeholder or dotted key of the plan.
    values : numbers, text, truth values, or maps and lists.
    tiers : of an axis of topologies, price tiers by number of dimensions.
    is_topology : whether its values are topologies.
    places : of the values in the file, where it lists them.
    """

    name: str
    values: tuple[Any, ...]
    tiers: Mapping[int, Sequence[str]] = field(default_factory=dict)
    is_topology: bool = False
    places: tuple[Place, ...] = field(default=(), compare=False)

    @cached_property
    def kind(self) -> str:
        """Kind of all its values, ``OTHER`` for maps, lists and mixtures."""
        kinds = {_kind(value) for value in self.values}
        return kinds.pop() if len(kinds) == 1 else OTHER

    @cached_property
    def dtype(self) -> str:
        """Type of its column: ``int64``, ``double``, ``bool`` or ``string``."""
        if self.kind == NUMBER:
            return "int64" if all(isinstance(value, int) for value in self.values) else "double"
        return "bool" if self.kind == TRUTH else "string"

    @cached_property
    def array(self) -> Array:
        """Values for filters: float64, truth values or text, shape (n_values,)."""
        if self.kind in (TEXT, OTHER):
            return np.array([cell(value) for value in self.values])
        return np.array(self.values, dtype=np.float64 if self.kind == NUMBER else np.bool_)


def cell(value: Any) -> str:
    """A value as text, maps and lists as JSON.

    >>> cell("ring"), cell({"tp": 8})
    ('ring', '{"tp": 8}')
    """
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def n_dims(notation: str) -> int:
    """Dimensions of a topology, by its notation.

    >>> n_dims("RI(4)_SW(8)")
    2
    """
    return notation.count("_") + 1


def _kind(value: Any) -> str:
    if is_number(value):
        return NUMBER
    return {bool: TRUTH, str: TEXT}.get(type(value), OTHER)


def read_axis(document: Document, name: str) -> Axis:
    """The axis ``name`` of a sweep file.

    Raises
    ------
    SpecError
        With every fault of it; those without a place have a path below the axis.
    """
    key: Key = ("axes", name)
    raw = document.at(key)
    if isinstance(raw, list):
        places = tuple(document.place((*key, i)) for i in range(len(raw)))
        return Axis(name, _listed_values(document, key, raw), places=places)
    if not isinstance(raw, dict):
        fix = "write a list, or a map such as {from: 100, to: 1000, step: 25}"
        raise SpecError(Fault(f"got {shown(raw)}", "expected the values of an axis", fix))
    if "factorizations" in raw:
        every = models.validated(FactorizationsAxis, document, key)
        values = _topologies(every.factorizations, every.tiers)
        return _with_tiers(name, values, every.tiers, has_stack=bool(every.factorizations.stack))
    if "topologies" in raw:
        given = models.validated(TopologiesAxis, document, key)
        for notation in given.topologies:
            parse_topology(notation)
        values, stacked = _distinct(given.topologies), any("[" in one for one in given.topologies)
        return _with_tiers(name, values, given.tiers, has_stack=stacked)
    if "step" in raw and "n" in raw:
        raise SpecError(Fault("got both step and n", "expected one of them", "remove one"))
    model: type[StepRange | CountRange] = StepRange if "step" in raw else CountRange
    reader, known = models.FaultCollector(document), ("from", "to", *list(model.model_fields)[2:])
    for unknown in [str(part) for part in raw if part not in known]:
        names = known if "step" in raw else [*known[:2], "step", *known[2:]]
        expected = f"expected {', '.join(names)}"
        fix = closest(unknown, [name for name in names if name not in raw] or names)
        fault = Fault(f"got the unknown key {unknown!r}", expected, fix)
        reader.note(fault, (*key, unknown), at_key=True)
    return Axis(name, models.validated(model, document, reader.required(key)).values(raw))


def _listed_values(document: Document, key: Key, raw: list[Any]) -> tuple[Any, ...]:
    if not 1 <= len(raw) <= MOST_VALUES:
        got = f"got {len(raw):,} values"
        raise SpecError(Fault(got, f"expected 1 to {MOST_VALUES:,}", "add one" if not raw else ""))
    reader = models.FaultCollector(document)
    for i, value in enumerate(raw):
        wrong = is_number(value) and not (math.isfinite(value) and abs(value) <= _LARGEST)
        if wrong or value is None:
            expected = "expected a finite number, text, a map or a list"
            reader.note(Fault(f"got {shown(value)}", expected), (*key, i))
    return _distinct(reader.required(raw))


def _distinct(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values, none of them twice."""
    seen: set[str] = set()
    for value in values:
        text = str(float(value)) if is_number(value) else json.dumps(value, sort_keys=True)
        if text in seen:
            raise SpecError(Fault(f"got {cell(value)} twice", "expected it once", "remove one"))
        seen.add(text)
    return tuple(values)


def _topologies(spec: FactorizationsSpec, tiers: Any = None) -> tuple[str, ...]:
    """Every topology, fewest dimensions first."""
    dims = _whole_numbers(spec.dims, "factorizations.dims", most=_MOST_DIMS)
    _distinct(spec.blocks)
    _check_names(spec, tiers)
    notations = (one for count in dims for one in _notations(spec, count, tiers))
    found = tuple(islice(notations, MOST_VALUES + 1))
    if len(found) > MOST_VALUES:
        got, fix = f"got more than {MOST_VALUES:,} topologies", "narrow dims, sizes or blocks"
        raise SpecError(Fault(got, "", fix, "factorizations"))
    if not found:
        got = f"got no topology of {spec.npus:,} NPUs"
        raise SpecError(Fault(got, "expected one at least", "widen dims or sizes"))
    return found


def _check_names(spec: FactorizationsSpec, tiers: Any) -> None:
    """Refuse names of tiers that no topology has."""
    lists = tiers.values() if isinstance(tiers, dict) else [tiers]
    known = [name for one in lists if isinstance(one, list) for name in one]
    by_path = {
        "stack": spec.stack or (),
        "sizes": spec.sizes if isinstance(spec.sizes, dict) else (),
    }
    for path, names in by_path.items():
        for name in (name for name in names if name not in known):
            fix = closest(name, known) if known else "add 'tiers: [node, leaf, spine]' to the axis"
            fault = Fault(f"got {shown(name)}", "expected a tier of this axis", fix)
            raise SpecError(replace(fault, path=f"factorizations.{path}"))


def _notations(spec: FactorizationsSpec, n_dims: int, tiers: Any) -> Iterator[str]:
    """Every topology of so many dimensions; those of the stack's tiers in brackets."""
    names = [""] * n_dims
    if spec.stack is not None or isinstance(spec.sizes, dict):
        names = _tiers_of(n_dims, tiers, has_stack=spec.stack is not None)
    stacked = [name in (spec.stack or ()) for name in names]
    n_inner = n_dims - sum(stacked)
    if any(stacked[:n_inner]):
        got = f"got the tiers {', '.join(names)}"
        expected = f"expected those of the stack, {', '.join(spec.stack or ())}, outermost"
        raise SpecError(Fault(got, expected, "", "factorizations.stack"))
    divisors = _divisors(spec.npus)
    allowed = [[n for n in divisors if any(n in r for r in _sizes(spec, name))] for name in names]
    opens, closes = ("[", "]") if n_dims - n_inner > 1 else ("", "")
    for factors in _factorizations(spec.npus, allowed):
        outer = "_".join(map("SW({})".format, factors[n_inner:]))
        for blocks in product(spec.blocks, repeat=n_inner):
            inner = map("{}({})".format, blocks, factors)
            yield "_".join([*inner, f"{opens}{outer}{closes}"] if outer else inner)


def _sizes(spec: FactorizationsSpec, tier: str) -> list[range]:
    """Sizes that a dimension of a tier may have."""
    path, value = "factorizations.sizes", spec.sizes
    if isinstance(value, dict):
        path, value = f"{path}.{tier}", value.get(tier)
    if value is None:
        return [range(2, spec.npus + 1)]
    if isinstance(value, list):
        return [_whole_numbers(one, f"{path}.{i}", 2) for i, one in enumerate(value)]
    return [_whole_numbers(value, path, 2)]


def _whole_numbers(value: Any, path: str, least: int = 1, most: int = 10**9) -> range:
    """A whole number or a range such as 2..4."""
    text = str(value) if is_whole(value) or isinstance(value, str) else ""
    ends = [part.strip() for part in text.split("..")]
    if not (1 <= len(ends) <= 2 and all(end.isascii() and end.isdigit() for end in ends)):
        expected = "expected a whole number or a range such as 2..4"
        raise SpecError(Fault(f"got {shown(value)}", expected, "", path))
    first, last = int(ends[0][:12]), int(ends[-1][:12])
    if not least <= first <= last <= most:
        expected = f"expected {least} to {most:,}, the smaller one first"
        raise SpecError(Fault(f"got {shown(value)}", expected, "", path))
    return range(first, last + 1)


def _factorizations(n: int, sizes: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Ordered factors of n, each one of the sizes at its place."""
    own, *others = sizes
    if not others:
        yield from [(n,)] if n in own else []
        return
    for first in (size for size in own if n % size == 0):
        for rest in _factorizations(n // first, others):
            yield (first, *rest)


def _divisors(n: int) -> list[int]:
    small = [i for i in range(1, math.isqrt(n) + 1) if n % i == 0]
    return sorted({*small, *(n // i for i in small)})


def _with_tiers(name: str, values: tuple[str, ...], raw: Any, *, has_stack: bool) -> Axis:
    counts = sorted(set(map(n_dims, values))) if raw is not None else ()
    tiers = {count: _tiers_of(count, raw, has_stack=has_stack) for count in counts}
    return Axis(name, values, tiers, is_topology=True)


def _tiers_of(n_dims: int, raw: Any, *, has_stack: bool) -> list[str]:
    """Tiers of a topology of so many dimensions: a shallower stack lacks the outermost ones."""
    path, tiers = "tiers", raw
    if isinstance(raw, dict):
        path, tiers = f"tiers.{n_dims}", raw.get(str(n_dims))
    elif isinstance(raw, list):
        tiers = raw[:n_dims] if has_stack else raw[-n_dims:]
    is_list = isinstance(tiers, list)
    if is_list and len(tiers) == n_dims and all(isinstance(tier, str) for tier in tiers):
        return list(tiers)
    got = f"got {len(tiers)} names" if is_list else f"got {shown(tiers)}"
    expected = f"expected the names of {n_dims} tiers for topologies of {n_dims} dimensions"
    raise SpecError(Fault(got, expected, "", path))
