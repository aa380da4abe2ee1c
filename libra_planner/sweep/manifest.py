"""What a run directory says of its sweep: enough to resume it and to write any row's plan."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from importlib.metadata import version
from itertools import islice, product
from typing import Any

from libra_planner import __version__
from libra_planner.errors import SpecError
from libra_planner.files import read_text
from libra_planner.spec import bundled
from libra_planner.sweep.axes import Axis
from libra_planner.sweep.chunks import job_of
from libra_planner.sweep.columns import schema_of
from libra_planner.sweep.spec import Sweep
from libra_planner.sweep.store import FORMAT, manifest_hash
from libra_planner.sweep.template import AxisValue, Slot, TiersOf, named_files

_MOST_FILES = 10_000


def manifest_of(sweep: Sweep) -> dict[str, Any]:
    """The manifest of a sweep.

    Examples
    --------
    >>> from libra_planner.spec.bundled import folder
    >>> from libra_planner.sweep.spec import load_sweep
    >>> manifest = manifest_of(load_sweep(folder("examples") / "10_budgets.yaml"))
    >>> manifest["n_designs"], manifest["spec"]["where"]
    (74, [])
    """
    template = sweep.template
    spec = {
        "base": template.document.value,
        "slots": [[list(key), *_slot(slot)] for key, slot in template.slots.items()],
        "axes": [[axis.name, list(axis.values), _tiers(axis)] for axis in sweep.axes],
        "where": list(sweep.where),
        "sample": sweep.sample.model_dump() if sweep.sample else None,
        "seed": sweep.seed,
        "columns": list(sweep.figures),
        "designs_per_part": sweep.designs_per_part,
        "files": dict(_files(sweep)),
    }
    if sweep.check:
        spec["check"] = sweep.check.recorded()
    spec = json.loads(json.dumps(spec))
    schema = schema_of(job_of(sweep))
    return {
        "format": FORMAT,
        "hash": manifest_hash(spec),
        "version": __version__,
        "versions": {name: version(name) for name in ("numpy", "scipy", "cvxpy", "pyarrow")}
        | {"python": platform.python_version()},
        "source": sweep.source,
        "beside": str(template.beside.resolve()),
        "n_designs": sweep.space.n,
        "n_parts": sweep.n_parts,
        "schema": {field.name: str(field.type) for field in schema},
        "spec": spec,
    }


def _slot(slot: Slot) -> tuple[str, str | None]:
    """What fills a slot: text as written, an axis's value, or its topology's tiers."""
    if isinstance(slot, AxisValue):
        return "axis", slot.axis
    return ("tiers", slot.axis) if isinstance(slot, TiersOf) else ("text", None)


def _tiers(axis: Axis) -> dict[str, list[str]]:
    return {str(n_dims): list(tiers) for n_dims, tiers in axis.tiers.items()}


def _files(sweep: Sweep) -> Iterator[tuple[str, str]]:
    """Users' own files that plans of the sweep name, with a hash of their content."""
    for name in sorted(set(islice(_file_names(sweep), _MOST_FILES))):
        try:
            text = read_text(sweep.template.beside / name)
        except SpecError:  # A design that names it is invalid, and says so in its row.
            continue
        yield name, hashlib.sha256(text.encode()).hexdigest()


def _file_names(sweep: Sweep) -> Iterator[str]:
    axes = {axis.name: axis.values for axis in sweep.axes}
    for key, value in named_files(sweep.template.document.value, ()):
        slot = sweep.template.slots.get(key)
        if slot is None:
            values: Iterator[Any] = iter([value])
        else:
            names = sorted(slot.names)
            combinations = product(*(axes[name] for name in names))
            values = (slot.filled(dict(zip(names, one, strict=True))) for one in combinations)
        yield from filter(_is_own_file, values)
    for slot in sweep.template.slots.values():
        if isinstance(slot, AxisValue):  # Maps and lists, such as the workloads of a group.
            found = (named_files(value, ()) for value in axes[slot.axis])
            yield from (name for one in found for _, name in one if _is_own_file(name))


def _is_own_file(name: Any) -> bool:
    return isinstance(name, str) and bundled.is_path(name)
