"""The run directory: a manifest, and one parquet file per chunk that is whole or not there."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner import __version__
from libra_planner.errors import DataNotFound, Fault, Place, SpecError

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"
FORMAT = 1
_LOCK = ".lock"
_TEMPORARY = ".part-"
_PART = re.compile(r"part-(\d{6,})\.parquet")


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

    def manifest(self) -> dict[str, Any]:
        """What the directory holds.

        Raises
        ------
        DataNotFound
            For a directory without a readable manifest.
        """
        file = self.path / MANIFEST
        try:
            manifest = json.loads(file.read_text(encoding="utf-8"))
            known = isinstance(manifest, dict) and manifest.get("format") == FORMAT
        except (OSError, ValueError):
            known = False
        if not known:
            got = f"got no readable {MANIFEST}"
            expected = "expected the directory of a sweep"
            raise DataNotFound(Fault(got, expected, "give the -o of sweep run", "", self.place))
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
            if not (self.path / MANIFEST).exists():
                self._refuse_others()
                return
        other = self.manifest()
        if other.get("hash") != manifest["hash"]:
            got = f"got the directory of another sweep ({_difference(other, manifest)})"
            fix = "give -o a new directory; nothing was changed"
            raise SpecError(Fault(got, "expected this one's or none", fix, "", self.place))

    def claim(self, manifest: dict[str, Any]) -> None:
        """Make the directory this sweep's; only under the lock, so that it is one sweep's."""
        self.check(manifest)
        if not (self.path / MANIFEST).exists():
            with writing(self.place):
                text = json.dumps(manifest, indent=1)
                write_whole(self.path, MANIFEST, text.encode(), f".{MANIFEST}.")

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

    def _faults(self, layout: Layout) -> list[tuple[Path, Fault | None]]:
        """What is wrong with each file of results."""
        parts = sorted(self.path.glob("part-*.parquet"))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(zip(parts, pool.map(layout.fault, parts), strict=True))

    def write_part(self, index: int, data: bytes) -> None:
        """Write a chunk's file: it appears whole, or not at all.

        Raises
        ------
        DataNotFound
            When the disk is full or the directory cannot be written to.
        """
        with writing(self.place):
            write_whole(self.path, self.part_path(index).name, data, _TEMPORARY)


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


@dataclass(frozen=True)
class Layout:
    """Which rows are in which part.

    Parameters
    ----------
    n_designs : rows of the sweep.
    size : rows of a part; the last one may have fewer.
    """

    n_designs: int
    size: int

    @property
    def n_parts(self) -> int:
        """Files that the results make."""
        return -(-self.n_designs // self.size)

    def rows(self, index: int) -> range:
        """Rows of a part.

        >>> Layout(n_designs=25, size=10).rows(2)
        range(20, 25)
        """
        return range(index * self.size, min((index + 1) * self.size, self.n_designs))

    def fault(self, path: Path) -> Fault | None:
        """What is wrong with a file of results; ``None`` if nothing is."""
        index, place = index_of(path), Place(str(path))
        if not 0 <= index < self.n_parts:
            expected = f"expected {self.n_parts:,} parts from part-000000.parquet on"
            return Fault(
                "got a file that is no part of the sweep", expected, "remove it", "", place
            )
        found, rows, fix = sound_rows(path), self.rows(index), "run the sweep again to mend it"
        if found is None:
            expected = "expected a whole part of a sweep"
            return Fault("got a file that is broken", expected, fix, "", place)
        if found != rows:
            got = f"got rows {found.start:,} to {found.stop - 1:,}, those of another part"
            expected = f"expected {rows.start:,} to {rows.stop - 1:,}"
            return Fault(got, expected, fix, "", place)
        return None


def index_of(path: Path) -> int:
    """Number of a part by its name; -1 for a name that no part has.

    >>> index_of(Path("run/part-000012.parquet")), index_of(Path("run/part-12.parquet"))
    (12, -1)
    """
    match = _PART.fullmatch(path.name)
    return int(match[1]) if match else -1


def sound_rows(path: Path) -> range | None:
    """Rows of a part in which every page has the checksum that it was written with.

    ``None`` for a file that is no part, cut off, or damaged.
    """
    try:
        state = path.stat()
    except OSError:
        return None
    return _sound_rows(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=100_000)
def _sound_rows(path: Path, *_state: int) -> range | None:
    """The same, asked once for each state of a file: its size and when it was changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as part:
            part.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return rows_of(path)


def rows_of(path: Path) -> range | None:
    """First to last row of a part, from its footer; ``None`` for what is no part, or cut off."""
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        columns = [group.column(footer.schema.names.index("row")) for group in groups]
        first = min(column.statistics.min for column in columns)
        last = max(column.statistics.max for column in columns)
    except (OSError, ValueError, AttributeError):  # AttributeError: it has no statistics.
        return None
    return range(first, last + 1) if last - first + 1 == footer.num_rows else None


def write_whole(folder: Path, name: str, data: bytes, prefix: str) -> None:
    """Write a file under a temporary name, make sure of it, then rename it."""
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=prefix)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, folder / name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def parquet_bytes(table: pa.Table) -> bytes:
    """A table as a parquet file."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def manifest_hash(spec: dict[str, Any]) -> str:
    """Hash of a sweep's canonical form and of the program's version.

    >>> manifest_hash({"a": 1}) == manifest_hash({"a": 1}), len(manifest_hash({}))
    (True, 64)
    """
    text = json.dumps([__version__, FORMAT, spec], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _difference(other: dict[str, Any], manifest: dict[str, Any]) -> str:
    """Which parts of two sweeps differ."""
    theirs, ours = other.get("spec", {}), manifest["spec"]
    parts = [key for key in ours | theirs if theirs.get(key) != ours.get(key)]
    if parts:
        return f"different {', '.join(parts)}"
    return f"made by version {other.get('version')}"
