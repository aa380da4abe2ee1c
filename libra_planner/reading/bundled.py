"""Bundled data: workloads, price books and examples by name, or the user's own by path."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from libra_planner.errors import DataNotFound, Fault, UnknownName, closest

_PACKAGE = Path(__file__).resolve().parent.parent
_KINDS = {
    "workloads": ("workload", "workloads", ""),
    "cost-models": ("price book", "cost_models", "kind: price_book"),
    "npu-catalogues": ("NPU catalogue", "cost_models", "kind: npu_catalogue"),
    "parts": ("parts catalogue", "cost_models", "kind: parts"),
    "clusters": ("list of clusters", "cost_models", "kind: clusters"),
    "examples": ("example", "examples", ""),
    "sweeps": ("example of a sweep", "examples", "axes:"),
}
"""What a file of each kind is called, its folder, and the line that tells it from others there."""


@lru_cache
def folder(kind: str) -> Path:
    """Where bundled files of a kind live: inside the wheel, or the checkout's top level.

    Raises
    ------
    DataNotFound
        When the installation lacks its data.
    """
    name = _KINDS[kind][1]
    for candidate in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise DataNotFound(Fault(f"got no bundled {name}", "", "reinstall libra-planner"))


def names(kind: str) -> list[str]:
    """Names of the bundled files of a kind, sorted."""
    return sorted(path.stem for path in folder(kind).glob("*.yaml") if _is_of(kind, path))


def _is_of(kind: str, path: Path) -> bool:
    lines = path.read_text(encoding="utf-8").splitlines()
    if kind == "examples":  # Of plans: what is no sweep.
        return _KINDS["sweeps"][2] not in lines
    return not _KINDS[kind][2] or _KINDS[kind][2] in lines


def is_path(name: str) -> bool:
    """Whether a plan means a path rather than the name of a bundled file."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def resolve(kind: str, name: str, beside: Path | None) -> Path:
    """The file that a name or path in a plan means.

    A name with a slash or a .yaml ending is a path, relative to the plan (``beside``).

    Raises
    ------
    UnknownName
        For a name that is not bundled.
    """
    if is_path(name):
        return (beside / name) if beside else Path(name)
    path = folder(kind) / f"{name}.yaml"
    if path.name in os.listdir(path.parent) and _is_of(kind, path):
        return path
    fix = f"{closest(name, names(kind))} (or give a path ending in .yaml)"
    raise UnknownName(Fault(f"got {name!r}", f"expected a bundled {_KINDS[kind][0]}", fix))


def example(name: str) -> Path:
    """Path of a bundled example plan.

    Raises
    ------
    UnknownName
        For a name that is not bundled.

    Examples
    --------
    >>> example("01_gpt3_4d").name
    '01_gpt3_4d.yaml'
    """
    return resolve("examples", name, None)
