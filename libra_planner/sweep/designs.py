"""A row of results turned back into a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.spec import bundled
from libra_planner.spec.document import Document, Key
from libra_planner.sweep.axes import Axis, cell
from libra_planner.sweep.expressions import NUMBER, TRUTH
from libra_planner.sweep.store import Layout, RunDirectory, table_of
from libra_planner.sweep.template import (
    AxisValue,
    PlanTemplate,
    Slot,
    TiersOf,
    named_files,
    parse_text,
)


def design_plan(directory: RunDirectory, row: int) -> str:
    """The plan of a row as YAML text, with absolute paths, ready for ``optimize``.

    Raises
    ------
    SpecError
        For a row that the sweep does not have, or whose part is not there yet.
    """
    manifest = directory.manifest()
    axes = {
        name: Axis(name, tuple(values), {int(d): list(names) for d, names in tiers.items()})
        for name, values, tiers in manifest["spec"]["axes"]
    }
    values = _axis_values(directory, manifest, axes, row)
    plan = _template(manifest, axes).filled(values).value
    _make_absolute(plan, Path(manifest["beside"]))
    text = yaml.safe_dump(plan, sort_keys=False, allow_unicode=True, width=1000)
    named = "".join(char if char.isprintable() else "?" for char in str(directory.path))
    return f"# Row {row} of the sweep in {named}\n{text}"


def _axis_values(
    directory: RunDirectory, manifest: Mapping[str, Any], axes: Mapping[str, Axis], row: int
) -> dict[str, Any]:
    """Values of the axes in a row, as the sweep file gave them."""
    n, size = manifest["n_designs"], manifest["spec"]["designs_per_part"]
    place = Place(f"{directory.path}: row {row}")
    if not 0 <= row < n:
        raise SpecError(Fault(f"got {row}", f"expected 0 to {n - 1}", "", "", place))
    path = directory.part_path(row // size)
    if not path.exists():
        got, fix = "got a row that is not there yet", "finish the sweep: run it again"
        raise SpecError(Fault(got, "", fix, "", place))
    fault = Layout.of(manifest).fault(path)
    if fault is not None:
        raise SpecError(fault)
    table = table_of(path, list(axes))
    (stored,) = table.slice(row % size, 1).to_pylist()
    try:
        return {name: _given(axis)[stored[name]] for name, axis in axes.items()}
    except KeyError as error:
        got = f"got the value {error.args[0]!r}"
        expected = "expected one that the sweep's manifest has"
        raise SpecError(Fault(got, expected, "run the sweep again", "", place)) from None


def _given(axis: Axis) -> dict[Any, Any]:
    """What a column holds to the value that the sweep file gave."""
    plain = axis.kind in (NUMBER, TRUTH)
    return {value if plain else cell(value): value for value in axis.values}


def _template(manifest: Mapping[str, Any], axes: Mapping[str, Axis]) -> PlanTemplate:
    document = Document(manifest["source"], manifest["spec"]["base"])
    slots = dict(_slots(document, manifest["spec"]["slots"], axes))
    return PlanTemplate(document, Path(manifest["beside"]), slots)


def _slots(
    document: Document, recorded: list[Any], axes: Mapping[str, Axis]
) -> Iterator[tuple[Key, Slot]]:
    kinds = {name: axis.kind for name, axis in axes.items()}
    for key, kind, axis in recorded:
        if kind == "axis":
            yield tuple(key), AxisValue(axis)
        elif kind == "tiers":
            tiers = {n_dims: list(names) for n_dims, names in axes[axis].tiers.items()}
            yield tuple(key), TiersOf(axis, tiers)
        else:
            yield tuple(key), parse_text(_at(document.value, key), kinds)


def _at(value: Any, key: list[str | int]) -> Any:
    for part in key:
        value = value[part]
    return value


def _make_absolute(plan: Any, beside: Path) -> None:
    """Let paths hold wherever the plan is put."""
    for key, name in list(named_files(plan, ())):
        if isinstance(name, str) and bundled.is_path(name):
            _at(plan, list(key[:-1]))[key[-1]] = str((beside / name).resolve())
