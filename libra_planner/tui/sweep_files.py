"""The sweep's file and its run directory: what would be lost or refused, before it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.tui.typed_paths import typed_path

if TYPE_CHECKING:
    from libra_planner.tui.work import Report

WAY_OUT = "give another name in 'results in' (Tab gets there)"
"""What the cockpit has instead of ``-o``."""


def file_of(folder: Path) -> Path:
    """The sweep's file, beside its results."""
    return folder.with_name(f"{folder.name}.yaml")


def typed_folder(text: str) -> Path:
    """The folder of results that was typed: it can have some, and a sweep's file beside it.

    Raises
    ------
    SpecError
        For what no folder can be called, or what the system does not let look into.
    """
    from libra_planner.sweep.store import MANIFEST

    folder = typed_path(text)
    if not folder.name:
        got, expected = "got a folder without a name", "expected one such as my-sweep"
        raise SpecError(Fault(got, expected, WAY_OUT, "", _at(folder)))
    for path in (file_of(folder), folder / MANIFEST):
        typed_path(str(path))
    return folder


def is_run(folder: Path) -> bool:
    """Whether a folder has results, or the beginning of some."""
    from libra_planner.sweep.store import RunDirectory

    return RunDirectory(folder).manifest_path.is_file()


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
        _check_folder(manifest_of(sweep), folder)


def _check_file(text: str, known: str | None, file: Path) -> None:
    from libra_planner.files import read_text

    if not file.exists():
        return
    there = read_text(file).splitlines()
    if there not in (text.splitlines(), (known or "").splitlines()):
        got, expected = "got a file that this screen has not read", "expected the sweep's or none"
        raise SpecError(Fault(got, expected, f"{WAY_OUT}; nothing was changed", "", _at(file)))


def _check_folder(ours: dict[str, Any], folder: Path) -> None:
    from libra_planner.sweep.store import RunDirectory

    try:
        RunDirectory(folder).check(ours)
    except SpecError as error:  # What the command advises is -o.
        fix = f"{WAY_OUT}; nothing was changed"
        raise SpecError(*(replace(fault, fix=fix) for fault in error.faults)) from None


def _at(path: Path) -> Place:
    return Place(str(path))


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
