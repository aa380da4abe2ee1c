"""The run directory: a manifest, and one parquet file per chunk that is whole or not there."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libra_planner import __version__
from libra_planner.errors import DataNotFound, Fault, Place, SpecError
from libra_planner.files import read_json
from libra_planner.outputs import output_file
from libra_planner.sweep.difference import difference
from libra_planner.sweep.parts import Layout, index_of
from libra_planner.sweep.recorded import misfit

MANIFEST = "_manifest.json"
"""The underscore keeps readers of whole folders of parquet files away from it."""

_OLD_MANIFEST = "manifest.json"
FORMAT = 2
_LOCK = ".lock"
_TEMPORARY = ".part-"
_LARGEST_MANIFEST = 200_000_000


@dataclass(frozen=True)
class RunDirectory:
    """Where the results of one sweep are.

    Parameters
    ----------
    path : the directory.
    """

    path: Path

    @property
    def place(self) -> Place:
        """For error messages."""
        return Place(str(self.path))

    def part_path(self, index: int) -> Path:
        """File of a chunk.

        >>> RunDirectory(Path("run")).part_path(7).name
        'part-000007.parquet'
        """
        return self.path / f"part-{index:06d}.parquet"

    @property
    def is_begun(self) -> bool:
        """Whether it is a sweep's already."""
        return self.manifest_path.exists()

    @property
    def manifest_path(self) -> Path:
        """File that says what the directory holds; directories of old have it by another name."""
        file, old = self.path / MANIFEST, self.path / _OLD_MANIFEST
        return old if old.exists() and not file.exists() else file

    def manifest(self) -> dict[str, Any]:
        """What the directory holds.

        Raises
        ------
        DataNotFound
            For a directory without a readable manifest, or with one that was changed.
        """
        file = self.manifest_path
        try:
            manifest = read_json(file, most_bytes=_LARGEST_MANIFEST)
            known, reason = isinstance(manifest, dict) and manifest.get("format") == FORMAT, ""
        except SpecError as error:
            known, reason = False, f" ({error.faults[0].got})"
        if not known:
            got = f"got no readable {file.name}{reason}"
            expected = "expected the directory of a sweep"
            raise DataNotFound(Fault(got, expected, "give the -o of sweep run", "", self.place))
        changed = manifest.pop("checksum", None) != _checksum(manifest)
        if changed or (wrong := misfit(manifest)):
            got = f"got a changed {file.name}" + ("" if changed else f" ({wrong})")
            expected = "expected it as sweep run wrote it"
            fix = "bring it back, or run the sweep into a new directory"
            raise DataNotFound(Fault(got, expected, fix, "", self.place))
        return dict(manifest)

    def check(self, manifest: dict[str, Any]) -> None:
        """Refuse the directory of another sweep, or one with other files; make a new one.

        Raises
        ------
        SpecError
            For such a directory, or one that cannot be written to.
        """
        with writing(self.place):
            self.path.mkdir(parents=True, exist_ok=True)
            if not self.is_begun:
                self._refuse_others()
                return
        other = self.manifest()
        if other.get("hash") != manifest["hash"]:
            got = f"got the directory of another sweep ({difference(other, manifest)})"
            fix = "give -o a new directory; nothing was changed"
            raise SpecError(Fault(got, "expected this one's or none", fix, "", self.place))

    def claim(self, manifest: dict[str, Any]) -> None:
        """Make the directory this sweep's; only under the lock, so that it is one sweep's."""
        self.check(manifest)
        if not self.is_begun:
            text = json.dumps(manifest | {"checksum": _checksum(manifest)}, indent=1)
            self._write(self.path / MANIFEST, text.encode(), f".{MANIFEST}.")
        elif self.manifest_path.name == _OLD_MANIFEST:
            with writing(self.place):
                self.manifest_path.rename(self.path / MANIFEST)

    def _refuse_others(self) -> None:
        """Refuse a directory that holds something that is no sweep's."""
        others = [path.name for path in self.path.iterdir() if path.name[0] != "."]
        if others:
            got = f"got a directory with other files ({min(others)})"
            expected = "expected an empty or new one, or this sweep's"
            raise SpecError(Fault(got, expected, "give -o another path", "", self.place))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory; a second runner is refused. A dead runner holds nothing."""
        with writing(self.place):
            handle = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                got, fix = "got a directory that another run is writing to", "wait for it to end"
                raise SpecError(Fault(got, "", fix, "", self.place)) from None
            yield
        finally:
            os.close(handle)

    def remove_leftovers(self) -> None:
        """Remove temporary files of runs that were killed."""
        for path in self.path.glob(f"{_TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def done(self, layout: Layout) -> set[int]:
        """Chunks whose file is there and is what it should be."""
        return {index_of(path) for path, fault in self._faults(layout) if fault is None}

    def refuse_damaged(self, layout: Layout) -> None:
        """Refuse results with a part that is not what it should be.

        Raises
        ------
        SpecError
            For the first such part.
        """
        fault = next((fault for _, fault in self._faults(layout) if fault is not None), None)
        if fault is not None:
            raise SpecError(fault)

    def refuse_missing(self, n_parts: int) -> None:
        """Refuse to call a run done whose files somebody removed meanwhile.

        Raises
        ------
        DataNotFound
            For parts that are not there.
        """
        n_gone = sum(not self.part_path(i).exists() for i in range(n_parts))
        if n_gone:
            got = f"got {n_gone:,} of {n_parts:,} parts removed while the sweep ran"
            fix = "run the same command again"
            raise DataNotFound(Fault(got, "expected all of them", fix, "", self.place))

    def _faults(self, layout: Layout) -> list[tuple[Path, Fault | None]]:
        """What is wrong with each file of results."""
        parts = sorted(self.path.glob("part-*.parquet"))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(zip(parts, pool.map(layout.fault, parts), strict=True))

    def _write(self, path: Path, data: bytes, prefix: str) -> None:
        with writing(self.place), output_file(path, prefix=prefix, durable=True) as file:
            file.write(data)

    def write_part(self, index: int, data: bytes) -> None:
        """Write a chunk's file: it appears whole, or not at all.

        Raises
        ------
        DataNotFound
            When the disk is full or the directory cannot be written to.
        """
        self._write(self.part_path(index), data, _TEMPORARY)


@contextlib.contextmanager
def writing(place: Place) -> Iterator[None]:
    """Turn what the system says of a failed write into a fault."""
    try:
        yield
    except OSError as error:
        got = f"got {error.strerror or str(error)!r}"
        fix = "make room or give another directory, and run the same command again"
        expected = "expected a directory to write results to"
        raise DataNotFound(Fault(got, expected, fix, "", place)) from None


def manifest_hash(spec: dict[str, Any]) -> str:
    """Hash of a sweep's canonical form and of the program's version.

    >>> manifest_hash({"a": 1}) == manifest_hash({"a": 1}), len(manifest_hash({}))
    (True, 64)
    """
    text = json.dumps([__version__, FORMAT, spec], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _checksum(manifest: dict[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
