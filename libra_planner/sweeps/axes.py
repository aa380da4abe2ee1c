"""The axes of a sweep: names and their values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, product
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.fabric.blocks import BLOCKS
from libra_planner.fabric.topology import parse_topology
from libra_planner.reading.document import Document, Key, is_number, shown
from libra_planner.reading.models import (
    Count,
    FaultCollector,
    Model,
    RegisteredName,
    Text,
    validated,
)
from libra_planner.routing.policy import HASHES, POLICIES, Policy
from libra_planner.step.expression import Array
from libra_planner.sweeps.columns import FIGURES
from libra_planner.sweeps.expressions import NUMBER, OTHER, TEXT, TRUTH

MOST_SAMPLES = 5_000_000
"""Most designs of a sample: their indices are held in memory."""

Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _Range(Model):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)
    start: Number = Field(alias="from")
    to: Number


class StepRange(_Range):
    """Values from one number to another in steps, both ends included."""

    step: Annotated[Number, Field(gt=0)]


class CountRange(_Range):
    """So many values from one number to another, evenly spaced or evenly spaced in logarithm."""

    n: Annotated[int, Field(ge=1, le=1_000_000)]
    log: bool = False


class FactorizationsSpec(Model):
    """Every topology of so many NPUs: all ordered factors as sizes, all choices of blocks."""

    npus: Annotated[int, Field(ge=2, le=10**9)]
    dims: Any = Field(description="Number of dimensions, such as 3 or 2..4.")
    blocks: Annotated[list[Annotated[str, RegisteredName(BLOCKS)]], Field(min_length=1)]
    sizes: Any = Field(default=None, description="Allowed sizes, such as 2..64 or [4, 8, 16].")


class FactorizationsAxis(Model):
    """An axis of all topologies of a size."""

    factorizations: FactorizationsSpec
    tiers: Any = Field(
        default=None,
        description="Price tiers: a list whose last d serve a topology of d dimensions, or "
        "lists by number of dimensions.",
    )


class TopologiesAxis(Model):
    """An axis of named topologies."""

    topologies: Annotated[list[Text], Field(min_length=1)]
    tiers: Any = Field(default=None, description="As for factorizations.")


AXIS_MODELS: tuple[type[BaseModel], ...] = (
    StepRange,
    CountRange,
    FactorizationsAxis,
    TopologiesAxis,
)

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


class SampleSpec(Model):
    """How many designs to draw from a space too big to enumerate."""

    method: Literal["lhs", "random"] = "lhs"
    n: Annotated[int, Field(ge=1, le=MOST_SAMPLES)]


class CheckSpec(Model):
    """How the links of every optimum are routed: the options of ``check``."""

    policy: Annotated[str, RegisteredName(POLICIES)] = Policy().name
    seeds: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    hash: Literal[HASHES] | None = None  # type: ignore[valid-type]
    shared_seed: bool = False
    enhanced: bool = False
    per_collective: bool = False
    time_limit: Annotated[float, Field(allow_inf_nan=False)] | None = None


_Figure: TypeAlias = Annotated[str, RegisteredName(FIGURES)]


class SweepFile(Model):
    """A sweep: a plan with placeholders, and the values that fill them."""

    base: Annotated[Any, WithJsonSchema(_BASE_SCHEMA)] = Field(
        description="The plan: inline, a path, or a bundled example's name."
    )
    axes: dict[str, Any] = Field(
        min_length=1, description="Name of an axis, or dotted key of the plan, to its values."
    )
    set_: dict[str, Any] = Field(
        default={}, alias="set", description="Dotted keys of the plan to values, with placeholders."
    )
    where: Annotated[list[Text], BeforeValidator(_listed)] = Field(
        default=[], description="Only designs for which all of these hold, e.g. tp * dp == 4096."
    )
    objective: Annotated[
        list[Literal["performance", "performance_per_cost", "cost"]],
        Field(min_length=1),
        BeforeValidator(_listed),
    ] = Field(default=[], description="Objectives; without them the plan's own.")
    columns: (
        Annotated[list[Annotated[str, RegisteredName(FIGURES)]], Field(min_length=1)] | None
    ) = Field(
        default=None, description="Columns of results to keep, beside axes, objective and status."
    )
    check: CheckSpec | None = Field(
        default=None, description="Route the links of every optimum; adds FIM and effective times."
    )
    sample: SampleSpec | None = None
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    designs_per_part: Annotated[Count, Field(le=100_000)] = 1000


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


MOST_VALUES = 1_000_000
"""Most values of one axis."""

_DIGITS = 12
"""Significant digits of the values of a range: 0.1 + 2 * 0.1 is 0.3."""

_MOST_DIMS = 12
_LARGEST = 2**53


@dataclass(frozen=True)
class Axis:
    """One axis.

    Parameters
    ----------
    name : placeholder or dotted key of the plan.
    values : numbers, text, truth values, or maps and lists.
    tiers : of an axis of topologies, price tiers by number of dimensions.
    is_topology : whether its values are topologies.
    """

    name: str
    values: tuple[Any, ...]
    tiers: Mapping[int, Sequence[str]] = field(default_factory=dict)
    is_topology: bool = False

    @cached_property
    def kind(self) -> str:
        """Kind of all its values, ``OTHER`` for maps, lists and mixtures."""
        kinds = {_kind(value) for value in self.values}
        return kinds.pop() if len(kinds) == 1 else OTHER

    @cached_property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.kind == NUMBER and all(isinstance(value, int) for value in self.values)

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
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int | float):
        return NUMBER
    return TEXT if isinstance(value, str) else OTHER


def read_axis(document: Document, name: str) -> Axis:
    """The axis ``name`` of a sweep file.

    Raises
    ------
    SpecError
        With every fault of it, each at its place.
    """
    key: Key = ("axes", name)
    faults = FaultCollector(document).under(*key)
    axis = faults.attempt((), lambda: _axis(document, key, name, document.value["axes"][name]))
    return faults.required(axis)


def _axis(document: Document, key: Key, name: str, raw: Any) -> Axis:
    if isinstance(raw, list):
        return Axis(name, _listed_values(document, key, raw))
    if not isinstance(raw, dict):
        fix = "write a list, or a map such as {from: 100, to: 1000, step: 25}"
        raise SpecError(Fault(f"got {shown(raw)}", "expected the values of an axis", fix))
    if "factorizations" in raw:
        every = validated(FactorizationsAxis, document, key)
        values = _topologies(every.factorizations)
        return _with_tiers(name, values, every.tiers)
    if "topologies" in raw:
        named = validated(TopologiesAxis, document, key)
        for notation in named.topologies:
            parse_topology(notation)
        _refuse_twice(named.topologies)
        return _with_tiers(name, tuple(named.topologies), named.tiers)
    _refuse_unknown(document, key, raw)
    if "step" in raw:
        return Axis(name, _steps(validated(StepRange, document, key), raw))
    return Axis(name, _spaced_values(validated(CountRange, document, key), raw))


def _refuse_unknown(document: Document, key: Key, raw: Mapping[str, Any]) -> None:
    """Refuse other keys than a range has, by the names that users write."""
    if "step" in raw and "n" in raw:
        raise SpecError(Fault("got both step and n", "expected one of them", "remove one"))
    known = ("from", "to", "step") if "step" in raw else ("from", "to", "n", "log")
    faults = []
    for name in [str(name) for name in raw if name not in known]:
        expected, fix = f"expected {', '.join(known)}", closest(name, known)
        path, place = ".".join((*map(str, key), name)), document.key_place((*key, name))
        faults.append(Fault(f"got the unknown key {name!r}", expected, fix, path, place))
    if faults:
        raise SpecError(*faults)


def _listed_values(document: Document, key: Key, raw: list[Any]) -> tuple[Any, ...]:
    if not 1 <= len(raw) <= MOST_VALUES:
        got = f"got {len(raw):,} values"
        raise SpecError(Fault(got, f"expected 1 to {MOST_VALUES:,}", "add one" if not raw else ""))
    faults = []
    for i, value in enumerate(raw):
        wrong = is_number(value) and not (math.isfinite(value) and abs(value) <= _LARGEST)
        if wrong or value is None:
            place, path = document.place((*key, i)), ".".join(map(str, (*key, i)))
            expected = "expected a finite number, text, a map or a list"
            faults.append(Fault(f"got {shown(value)}", expected, "", path, place))
    if faults:
        raise SpecError(*faults)
    _refuse_twice(raw)
    return tuple(raw)


def _refuse_twice(values: Sequence[Any]) -> None:
    seen: set[str] = set()
    for value in values:
        text = str(float(value)) if _kind(value) == NUMBER else json.dumps(value, sort_keys=True)
        if text in seen:
            raise SpecError(Fault(f"got {cell(value)} twice", "expected it once", "remove one"))
        seen.add(text)


def _refuse_reversed(start: float, to: float) -> None:
    if start > to:
        fix = f"write from: {to:g}, to: {start:g}"
        raise SpecError(Fault(f"got from {start:g} to {to:g}", "expected from <= to", fix))


def _steps(spec: StepRange, raw: Mapping[str, Any]) -> tuple[Any, ...]:
    _refuse_reversed(spec.start, spec.to)
    n = math.floor((spec.to - spec.start) / spec.step * (1 + 1e-12) + 1e-9) + 1
    if n > MOST_VALUES:
        raise SpecError(Fault(f"got {n:,} values", f"expected at most {MOST_VALUES:,}"))
    if all(isinstance(raw[part], int) for part in ("from", "step")):
        return tuple(raw["from"] + i * raw["step"] for i in range(n))
    return tuple(_rounded(spec.start + i * spec.step) for i in range(n))


def _spaced_values(spec: CountRange, raw: Mapping[str, Any]) -> tuple[Any, ...]:
    _refuse_reversed(spec.start, spec.to)
    if spec.n == 1 and spec.start != spec.to:
        got, fix = f"got 1 value from {spec.start:g} to {spec.to:g}", "write n: 2 or more"
        raise SpecError(Fault(got, "expected from = to", fix))
    if spec.n > 1 and spec.start == spec.to:
        raise SpecError(Fault(f"got {spec.n} values at {spec.to:g}", "expected from < to"))
    if spec.log and spec.start <= 0:
        raise SpecError(Fault(f"got from {spec.start:g} with log", "expected more than 0"))
    spaced = np.geomspace if spec.log else np.linspace
    values = [_rounded(float(value)) for value in spaced(spec.start, spec.to, spec.n)]
    _refuse_twice(values)
    whole = all(value.is_integer() for value in values) and isinstance(raw["from"], int)
    return tuple(map(int, values)) if whole else tuple(values)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _topologies(spec: FactorizationsSpec) -> tuple[str, ...]:
    """Every topology, fewest dimensions first."""
    dims = _whole_numbers(spec.dims, "factorizations.dims", most=_MOST_DIMS)
    _refuse_twice(spec.blocks)
    sizes = None if spec.sizes is None else set(_sizes(spec))
    found = tuple(islice(_notations(spec, dims, sizes), MOST_VALUES + 1))
    if len(found) > MOST_VALUES:
        got, fix = f"got more than {MOST_VALUES:,} topologies", "narrow dims, sizes or blocks"
        raise SpecError(Fault(got, "", fix, "factorizations"))
    if not found:
        got = f"got no topology of {spec.npus:,} NPUs"
        raise SpecError(Fault(got, "expected one at least", "widen dims or sizes"))
    return found


def _sizes(spec: FactorizationsSpec) -> Iterator[int]:
    if isinstance(spec.sizes, list):
        for i, size in enumerate(spec.sizes):
            path = f"factorizations.sizes.{i}"
            yield from _whole_numbers(size, path, least=2, most=10**9)
    else:
        first, last = _bounds(spec.sizes, "factorizations.sizes", 2, 10**9)
        yield from (size for size in _divisors(spec.npus) if first <= size <= last)


def _whole_numbers(value: Any, path: str, *, least: int = 1, most: int) -> range:
    first, last = _bounds(value, path, least, most)
    return range(first, last + 1)


def _bounds(value: Any, path: str, least: int, most: int) -> tuple[int, int]:
    """Both ends of a whole number or of a range such as 2..4."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    ends = [part.strip() for part in text.split("..")]
    if not (1 <= len(ends) <= 2 and all(end.isascii() and end.isdigit() for end in ends)):
        expected = "expected a whole number or a range such as 2..4"
        raise SpecError(Fault(f"got {shown(value)}", expected, "", path))
    first, last = int(ends[0][:12]), int(ends[-1][:12])
    if not least <= first <= last <= most:
        expected = f"expected {least} to {most:,}, the smaller one first"
        raise SpecError(Fault(f"got {shown(value)}", expected, "", path))
    return first, last


def _notations(spec: FactorizationsSpec, dims: range, sizes: set[int] | None) -> Iterator[str]:
    for n_dims in dims:
        for factors in _factorizations(spec.npus, n_dims, sizes):
            for blocks in product(spec.blocks, repeat=n_dims):
                pairs = zip(blocks, factors, strict=True)
                yield "_".join(f"{block}({size})" for block, size in pairs)


def _factorizations(n: int, n_factors: int, sizes: set[int] | None) -> Iterator[tuple[int, ...]]:
    """Ordered factors of n, each of at least 2."""
    if n_factors == 1:
        if n >= 2 and (sizes is None or n in sizes):
            yield (n,)
        return
    for first in _divisors(n):
        if 2 <= first < n and (sizes is None or first in sizes):
            for rest in _factorizations(n // first, n_factors - 1, sizes):
                yield (first, *rest)


def _divisors(n: int) -> list[int]:
    small = [i for i in range(1, math.isqrt(n) + 1) if n % i == 0]
    return sorted({*small, *(n // i for i in small)})


def _with_tiers(name: str, values: tuple[str, ...], raw: Any) -> Axis:
    if raw is None:
        return Axis(name, values, is_topology=True)
    counts = sorted(set(map(n_dims, values)))
    table = {d: _tiers_of(d, raw) for d in counts}
    return Axis(name, values, table, is_topology=True)


def _tiers_of(n_dims: int, raw: Any) -> list[str]:
    """Tiers of a topology of n_dims dimensions."""
    path, tiers = "tiers", raw
    if isinstance(raw, dict):
        path, tiers = f"tiers.{n_dims}", raw.get(str(n_dims))
    elif isinstance(raw, list):
        tiers = raw[-n_dims:]
    if isinstance(tiers, list) and len(tiers) == n_dims:
        names = [tier for tier in tiers if isinstance(tier, str)]
        if len(names) == n_dims:
            return names
    got = f"got {len(tiers)} names" if isinstance(tiers, list) else f"got {shown(tiers)}"
    expected = f"expected the names of {n_dims} tiers for topologies of {n_dims} dimensions"
    raise SpecError(Fault(got, expected, "", path))
