"""The sweep's file and its run directory: what would be lost or refused, before it is."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import Fault, Place, SpecError

if TYPE_CHECKING:
    from libra_planner.tui.work import Report

WAY_OUT = "give another name in 'results in' (Tab gets there)"
"""What the cockpit has instead of ``-o``."""

_WORDS = {
    "designs_per_part": "designs per part",
    "files": "files that the plan names",
}


def file_of(folder: Path) -> Path:
    """The sweep's file, beside its results."""
    return folder.with_name(f"{folder.name}.yaml")


def is_run(folder: Path) -> bool:
    """Whether a folder has results, or the beginning of some."""
    from libra_planner.sweep.store import MANIFEST

    return (folder / MANIFEST).is_file()


def write(text: str, folder: Path) -> Path:
    """Write the sweep's file and the folders that it needs; one that was there is kept as .bak."""
    from libra_planner.files import write_files
    from libra_planner.sweep.store import writing

    file = file_of(folder)
    with writing(_at(file.parent)):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_files({file: text})
    return file


def check(text: str, known: str | None, folder: Path, _progress: Report) -> None:
    """Refuse a run that the command would refuse, or whose file would replace another one.

    Parameters
    ----------
    text : of the sweep.
    known : of the sweep's file when it was last read or written here, if it was.
    folder : where the results shall be.

    Raises
    ------
    SpecError
        With what is wrong; nothing was written.
    """
    from libra_planner.sweep.chunks import job_of
    from libra_planner.sweep.manifest import manifest_of
    from libra_planner.sweep.runner import probe
    from libra_planner.sweep.spec import load_sweep

    _check_file(text, known, file_of(folder))
    sweep = load_sweep(file_of(folder), text)
    probe(sweep, job_of(sweep))
    if folder.exists():
        _check_folder(manifest_of(sweep), folder, text)


def _check_file(text: str, known: str | None, file: Path) -> None:
    from libra_planner.files import read_text

    if not file.exists():
        return
    there = read_text(file).splitlines()
    if there not in (text.splitlines(), (known or "").splitlines()):
        got, expected = "got a file that this screen has not read", "expected the sweep's or none"
        raise SpecError(Fault(got, expected, f"{WAY_OUT}; nothing was changed", "", _at(file)))


def _check_folder(ours: dict[str, Any], folder: Path, text: str) -> None:
    from libra_planner.sweep.store import RunDirectory

    directory, fix = RunDirectory(folder), f"{WAY_OUT}; nothing was changed"
    if is_run(folder):
        theirs = directory.manifest()
        if theirs.get("hash") != ours["hash"]:
            got = f"got the results of another sweep ({difference(theirs, ours, _set_keys(text))})"
            raise SpecError(Fault(got, "expected this one's or none", fix, "", _at(folder)))
    try:
        directory.check(ours)
    except SpecError as error:  # What the command advises is -o.
        raise SpecError(*(replace(fault, fix=fix) for fault in error.faults)) from None


def _at(path: Path) -> Place:
    return Place(str(path))


def difference(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], set_keys: Iterable[tuple[Any, ...]] = ()
) -> str:
    """What two sweeps' manifests differ in, in words of the sweep's file.

    A manifest holds the base plan with the values under ``set`` in it: places that have
    placeholders, or that ``set`` is known to fill, are no difference of the plans.

    >>> def manifest(rule, workload, axis):
    ...     base = {"workload": workload, "constraints": [rule]}
    ...     slots = [[["constraints", 0], "text", None]]
    ...     return {"spec": {"base": base, "slots": slots, "axes": [axis]}, "version": "1"}
    >>> ours = manifest("total == {b} GB/s", "a", "b")
    >>> difference(manifest("total == {b} GB/s", "a", "c"), ours)
    'different axes'
    >>> difference(manifest("total <= {b} GB/s", "a", "c"), ours)
    'different set, axes'
    >>> difference(manifest("total == {b} GB/s", "b", "b"), ours)
    'different base plan or set'
    """
    old, new = theirs["spec"], ours["spec"]
    changed = [key for key in new | old if old.get(key) != new.get(key)]
    plans = [key for key in changed if key in ("base", "slots")]
    found = [_WORDS.get(key, key) for key in changed if key not in plans]
    if plans:
        keys = [*(tuple(key) for spec in (old, new) for key, *_ in spec["slots"]), *set_keys]
        same = _without(old["base"], keys) == _without(new["base"], keys)
        found.insert(0, "set" if same else "base plan or set")
    if not found:
        return f"made by version {theirs.get('version')}"
    return f"different {', '.join(found)}"


def _without(base: Any, keys: Iterable[tuple[Any, ...]]) -> Any:
    """A plan without what some of its places hold."""
    plan = copy.deepcopy(base)
    for *parents, last in keys:
        inner = plan
        for part in parents:
            inner = _child(inner, part)
        if _child(inner, last) is not None or isinstance(inner, dict):
            inner[last] = None
    return plan


def _child(value: Any, part: Any) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    is_item = isinstance(value, list) and isinstance(part, int) and part < len(value)
    return value[part] if is_item else None


def _set_keys(text: str) -> Iterator[tuple[Any, ...]]:
    """Places that the values under ``set`` go to."""
    from libra_planner.spec.document import parse_document
    from libra_planner.spec.settings import dotted_key

    for dotted in parse_document(text, "").value.get("set") or ():
        yield dotted_key(dotted)


def n_there(folder: Path) -> tuple[int, int]:
    """Designs of a run directory that are solved, and those of the whole sweep.

    Raises
    ------
    SpecError
        For a folder without results.
    """
    from libra_planner.sweep.parts import Layout, index_of
    from libra_planner.sweep.store import RunDirectory

    manifest = RunDirectory(folder).manifest()
    layout = Layout.of(manifest)
    parts = (index_of(path) for path in folder.glob("part-*.parquet"))
    return sum(len(layout.rows(i)) for i in parts), manifest["n_designs"]
