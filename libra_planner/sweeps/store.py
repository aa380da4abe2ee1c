"""The run directory: a manifest, and one parquet file per chunk that is whole or not there."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from libra_planner import __version__
from libra_planner.errors import DataNotFound, Fault, Place, SpecError, close_names
from libra_planner.files import output_file, read_json, read_text

if TYPE_CHECKING:
    import pyarrow as pa

SWEEP_HASH = "libra-planner sweep"
"""Key of the hash of its sweep in a part's metadata."""
ERRORS = "error fractions"
"""Key of the least and the most error of its step times there (C23); empty without any."""

_DIGEST = b"sha256:"
_NO_DIGEST = _DIGEST + b"0" * 64

_PART = re.compile(r"part-(\d{6,})\.parquet")


_RUN_IT = "libra-planner sweep run FILE -o DIRECTORY"


@dataclass(frozen=True)
class Layout:
    """Which rows are in which part.

    Parameters
    ----------
    n_designs : rows of the sweep.
    size : rows of a part; the last one may have fewer.
    sweep_hash : of the sweep, which its parts carry.
    """

    n_designs: int
    size: int
    sweep_hash: str = ""

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Layout:
        """The layout that a manifest speaks of."""
        return cls(manifest["n_designs"], manifest["spec"]["designs_per_part"], manifest["hash"])

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
        index, fix = index_of(path), "run the sweep again to mend it"
        rows, found = self.rows(index), sound_rows(path)
        if not 0 <= index < self.n_parts:
            got, fix = "got a file that is no part of the sweep", "remove it"
            expected = f"expected {self.n_parts:,} parts from part-000000.parquet on"
        elif found is None:
            got, expected = "got a file that is broken", "expected a whole part of a sweep"
        elif found[1] != self.sweep_hash:
            got, expected = "got a part of another sweep", "expected one of this directory's"
        elif found[0] != rows:
            first, last = found[0].start, found[0].stop - 1
            got = f"got rows {first:,} to {last:,}, those of another part"
            expected = f"expected {rows.start:,} to {rows.stop - 1:,}"
        else:
            return None
        return Fault(got, expected, fix, "", Place(str(path)))


def index_of(path: Path) -> int:
    """Number of a part by its name; -1 for a name that no part has.

    >>> index_of(Path("run/part-000012.parquet")), index_of(Path("run/part-12.parquet"))
    (12, -1)
    """
    match = _PART.fullmatch(path.name)
    return int(match[1]) if match else -1


def sound_rows(path: Path) -> tuple[range, str] | None:
    """Rows of a part and the hash of its sweep, if it is what was written, to the bit.

    Its footer holds a digest of all of it. ``None`` for a file that is no part, cut off, or
    damaged.
    """
    try:
        state = path.stat()
    except OSError:
        return None
    return _sound_rows(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=100_000)
def _sound_rows(path: Path, *_state: int) -> tuple[range, str] | None:
    """The same, asked once for each state of a file: its size and when it was changed."""
    import pyarrow.parquet as pq

    try:
        data = path.read_bytes()
        at = data.rfind(_DIGEST)
        if at < 0 or data[at : at + len(_NO_DIGEST)] != _digest(data, at):
            return None
        footer = pq.read_metadata(io.BytesIO(data))
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        rows = [group.column(footer.schema.names.index("row")).statistics for group in groups]
        found = range(min(one.min for one in rows), max(one.max for one in rows) + 1)
    except (OSError, ValueError, AttributeError, TypeError):  # The last two: no statistics.
        return None
    sweep_hash: bytes = (footer.metadata or {}).get(SWEEP_HASH.encode(), b"")
    return (found, sweep_hash.decode()) if len(found) == footer.num_rows else None


def _digest(data: bytes, at: int) -> bytes:
    """Digest of a part, which itself counts as zeros, as it stands in its footer."""
    end = at + len(_NO_DIGEST)
    return _DIGEST + hashlib.sha256(data[:at] + _NO_DIGEST + data[end:]).hexdigest().encode()


def table_of(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Rows of a sound part."""
    with path.open("rb") as file:
        return rows_of(file, columns)


def rows_of(file: BinaryIO, columns: list[str] | None = None) -> pa.Table:
    """Rows of a parquet file, read in this thread.

    A thread of Arrow's that lets go of a Python file while Python ends is aborted with the process.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(file, pre_buffer=False) as part:
        return part.read(columns=columns, use_threads=False)


def arrow_array(values: Any, kind: pa.DataType) -> pa.Array:
    """Values of a column, shape (n,); what is NaN or ``None`` is null.

    ``pyarrow.array`` does the same, and loads pandas, which takes longer than a small sweep.

    Parameters
    ----------
    values : an array or a list.
    kind : ``double``, ``int64``, ``bool`` or ``string``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_array([1.5, None], pa.float64()).to_pylist()
    [1.5, None]
    >>> arrow_array(["a", None, "bc"], pa.string()).to_pylist()
    ['a', None, 'bc']
    """
    import pyarrow as pa

    found = np.asarray(values, dtype=object if kind == pa.string() else None)
    same = found == found  # noqa: PLR0124 - NaN differs from itself.
    known = same & (found != None)  # noqa: E711 - Of each value.
    if found.dtype.kind == "O":
        found = np.where(known, found, "" if kind == pa.string() else 0)
    return pa.Array.from_buffers(kind, len(found), [_bits(known), *_buffers(found, kind)])


def _buffers(values: NDArray[Any], kind: pa.DataType) -> Iterator[pa.Buffer]:
    """What an array of Arrow's holds, besides which values are known."""
    import pyarrow as pa

    if kind == pa.string():
        texts = [text.encode() for text in values]
        yield pa.py_buffer(np.cumsum([0, *map(len, texts)], dtype=np.int32))
        yield pa.py_buffer(b"".join(texts))
    elif kind == pa.bool_():
        yield _bits(values.astype(bool))
    else:
        yield pa.py_buffer(np.ascontiguousarray(values, dtype=kind.to_pandas_dtype()))


def _bits(flags: NDArray[np.bool_]) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def parquet_bytes(table: pa.Table) -> bytes:
    """A table as a parquet file with a digest of itself in its footer."""
    import pyarrow.parquet as pq

    metadata = dict(table.schema.metadata or {}) | {b"digest": _NO_DIGEST}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), buffer, compression="zstd")
    data = buffer.getvalue()
    at = data.rfind(_NO_DIGEST)
    return data[:at] + _digest(data, at) + data[at + len(_NO_DIGEST) :]


_Count: TypeAlias = Annotated[int, Field(ge=1, le=10**15)]
_Key: TypeAlias = list[str | int]
_Axis: TypeAlias = tuple[str, list[Any], dict[Annotated[str, Field(pattern="^[0-9]{1,3}$")], Any]]


class _Spec(BaseModel):
    base: dict[str, Any]
    slots: list[tuple[_Key, Literal["axis", "tiers", "text"], str | None]]
    axes: list[_Axis]
    designs_per_part: _Count


class _Manifest(BaseModel):
    hash: str
    source: str
    beside: str
    n_designs: _Count
    n_parts: _Count
    columns: dict[str, str] = Field(alias="schema")
    spec: _Spec


def file_digest(path: Path) -> str:
    """Digest of the text of a user's file; empty for one that cannot be read."""
    try:
        return hashlib.sha256(read_text(path).encode()).hexdigest()
    except SpecError:
        return ""


def misfit(manifest: dict[str, Any]) -> str:
    """What keeps a manifest from being one, in words; empty for nothing.

    >>> misfit({"hash": "a"})
    'source: Field required'
    """
    try:
        spec = _Manifest.model_validate(manifest).spec
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    names = {name for name, *_ in spec.axes}
    for key, kind, axis in spec.slots:
        there = bool(key) and reduce(_child, key, spec.base) is not _NOTHING
        if not there or (kind != "text" and axis not in names):
            return f"spec.slots: nothing at {'.'.join(map(str, key))[:80]}"
    return ""


_NOTHING: Any = object()
"""What is where nothing is."""


def _child(value: Any, part: Any) -> Any:
    if isinstance(value, dict):
        return value.get(part, _NOTHING)
    is_item = isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value)
    return value[part] if is_item else _NOTHING


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """What two sweeps' manifests differ in, in words of the sweep's file.

    A manifest holds the base plan with the values under ``set`` in it: places that have
    placeholders are no difference of the plans.

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
    old, new = theirs.get("spec", {}), ours["spec"]
    changed = [key for key in new | old if old.get(key) != new.get(key)]
    plans = [key for key in changed if key in ("base", "slots")]
    words = {"designs_per_part": "designs per part", "files": "files that the plan names"}
    found = [words.get(key, key) for key in changed if key not in plans]
    if "files" in changed:
        pairs = {*(old.get("files") or {}).items()} ^ {*(new.get("files") or {}).items()}
        names = ", ".join(sorted({name for name, _ in pairs}))
        found[found.index(words["files"])] += f" ({names})"
    if plans:
        keys = [key for spec in (old, new) for key, *_ in spec.get("slots", ())]
        same = _without(old.get("base"), keys) == _without(new["base"], keys)
        found.insert(0, "set" if same else "base plan or set")
    if not found:
        return f"made by version {theirs.get('version')}"
    return f"different {', '.join(found)}"


def _without(base: Any, keys: Iterable[Sequence[Any]]) -> Any:
    """A plan without what some of its places hold."""
    plan = copy.deepcopy(base)
    for *parents, last in keys:
        inner = reduce(_child, parents, plan)
        if isinstance(inner, dict) or _child(inner, last) is not _NOTHING:
            inner[last] = None
    return plan


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
    def n_parts_done(self) -> int:
        """Files of results that are there, whole or not."""
        return sum(1 for _ in self.path.glob("part-*.parquet"))

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
            fix = self._meant() or "give the -o of sweep run"
            if not self.path.exists():
                got = "got no such directory"
            if self.path.is_file() and self.path.suffix in (".yaml", ".yml"):
                got, fix = "got a file", f"a sweep has results when it is run: {_RUN_IT}"
            raise DataNotFound(Fault(got, expected, fix, "", self.place))
        changed = manifest.pop("checksum", None) != _checksum(manifest)
        if changed or (wrong := misfit(manifest)):
            got = f"got a changed {file.name}" + ("" if changed else f" ({wrong})")
            expected = "expected it as sweep run wrote it"
            fix = "bring it back, or run the sweep into a new directory"
            raise DataNotFound(Fault(got, expected, fix, "", self.place))
        return dict(manifest)

    def _meant(self) -> str:
        """Which sweeps beside it a directory that is not there may mean; empty for none."""
        names: list[str] = []
        with contextlib.suppress(OSError):
            beside = [] if self.path.exists() else list(self.path.parent.iterdir())
            known = sorted(one.name for one in beside if RunDirectory(one).is_begun)
            names = close_names(self.path.name, known)
        meant = " or ".join(str(self.path.parent / name) for name in names)
        return f"did you mean {meant}?" if names else ""

    def check(self, manifest: dict[str, Any]) -> None:
        """Refuse the directory of another sweep, or one with other files; make a new one.

        Raises
        ------
        SpecError
            For such a directory, or one that cannot be written to.
        """
        with faults_of_writing(self.place):
            self.path.mkdir(parents=True, exist_ok=True)
            there = () if self.is_begun else self.path.iterdir()
            others = [path.name for path in there if path.name[0] != "."]
        if others:
            got = f"got a directory with other files ({min(others)})"
            expected = "expected an empty or new one, or this sweep's"
            raise SpecError(Fault(got, expected, "give -o another path", "", self.place))
        if not self.is_begun:
            return
        other = self.manifest()
        if other.get("hash") != manifest["hash"] and self.n_parts_done:
            got = f"got the directory of another sweep ({difference(other, manifest)})"
            fix = "give -o a new directory; nothing was changed"
            raise SpecError(Fault(got, "expected this one's or none", fix, "", self.place))

    def claim(self, manifest: dict[str, Any]) -> None:
        """Make the directory this sweep's; only under the lock, so that it is one sweep's."""
        self.check(manifest)
        if not self.is_begun or not self.n_parts_done:
            text = json.dumps(manifest | {"checksum": _checksum(manifest)}, indent=1)
            self._write(self.path / MANIFEST, text.encode(), f".{MANIFEST}.")
        elif self.manifest_path.name == _OLD_MANIFEST:
            with faults_of_writing(self.place):
                self.manifest_path.rename(self.path / MANIFEST)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory; a second runner is refused. A dead runner holds nothing."""
        with faults_of_writing(self.place):
            file = (self.path / _LOCK).open("ab")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                got, fix = "got a directory that another run is writing to", "wait for it to end"
                raise SpecError(Fault(got, "", fix, "", self.place)) from None
            yield

    def remove_leftovers(self) -> None:
        """Remove temporary files of runs that were killed."""
        for path in self.path.glob(f"{_TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def done(self, layout: Layout) -> set[int]:
        """Chunks whose file is there and is what it should be."""
        return {index_of(path) for path, fault in self._faults(layout) if fault is None}

    def error_fractions(self) -> tuple[float, float] | None:
        """The least and the most error of step times (C23); ``None`` where no part tells any."""
        import pyarrow.parquet as pq

        found: list[float] = []
        for path in self.path.glob("part-*.parquet"):
            with path.open("rb") as file:
                metadata = pq.read_schema(file).metadata or {}
            found += map(float, metadata.get(ERRORS.encode(), b"").split())
        return (min(found), max(found)) if found else None

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

    def refuse_changed_files(self, manifest: Mapping[str, Any]) -> None:
        """Refuse to make a plan of a row whose workload or other files are not those of its run.

        Raises
        ------
        SpecError
            With the first file that was changed or removed.
        """
        for name, digest in manifest["spec"].get("files", {}).items():
            file = Path(manifest["beside"]) / name
            if file_digest(file) == digest:
                continue
            got = f"got another {file.name} than the sweep was run with"
            fix = "bring the file back, or run the sweep into a new directory"
            place = Place(str(file))
            raise SpecError(Fault(got, f"expected that of {self.path}", fix, "", place))

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
        with faults_of_writing(self.place), output_file(path, prefix=prefix, durable=True) as file:
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
def faults_of_writing(place: Place) -> Iterator[None]:
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
    return _checksum([__version__, FORMAT, spec])


def _checksum(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
