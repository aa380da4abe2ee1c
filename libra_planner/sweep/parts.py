"""Files of results: which rows belong in each, and whether it is sound."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import Fault, Place

if TYPE_CHECKING:
    import pyarrow as pa

SWEEP_HASH = "libra-planner sweep"
"""Key of the hash of its sweep in a part's metadata."""

_DIGEST = b"sha256:"
_NO_DIGEST = _DIGEST + b"0" * 64

_PART = re.compile(r"part-(\d{6,})\.parquet")


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
        if sweep_hash_of(path) != self.sweep_hash:
            expected = "expected one of this directory's"
            return Fault("got a part of another sweep", expected, fix, "", place)
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
    """Rows of a part that is what was written, to the bit: its footer holds a digest of all of it.

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
    try:
        data = path.read_bytes()
    except OSError:
        return None
    at = data.rfind(_DIGEST)
    own = data[at : at + len(_NO_DIGEST)]
    return rows_of(path) if at >= 0 and own == _digest(data, at) else None


def _digest(data: bytes, at: int) -> bytes:
    """Digest of a part, which itself counts as zeros, as it stands in its footer."""
    end = at + len(_NO_DIGEST)
    return _DIGEST + hashlib.sha256(data[:at] + _NO_DIGEST + data[end:]).hexdigest().encode()


def rows_of(path: Path) -> range | None:
    """First to last row of a part, from its footer; ``None`` for what is no part, or cut off."""
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:  # Arrow cannot name every file that there can be.
            footer = pq.read_metadata(file)
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        columns = [group.column(footer.schema.names.index("row")) for group in groups]
        first = min(column.statistics.min for column in columns)
        last = max(column.statistics.max for column in columns)
    except (OSError, ValueError, AttributeError, TypeError):  # The last two: no statistics.
        return None
    return range(first, last + 1) if last - first + 1 == footer.num_rows else None


def sweep_hash_of(path: Path) -> str:
    """Hash of the sweep that a sound part belongs to."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        metadata: dict[bytes, bytes] = pq.read_schema(file).metadata or {}
    return metadata.get(SWEEP_HASH.encode(), b"").decode()


def table_of(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Rows of a sound part."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return pq.read_table(file, columns=columns)


def parquet_bytes(table: pa.Table) -> bytes:
    """A table as a parquet file with a digest of itself in its footer."""
    import pyarrow.parquet as pq

    metadata = dict(table.schema.metadata or {}) | {b"digest": _NO_DIGEST}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), buffer, compression="zstd")
    data = buffer.getvalue()
    at = data.rfind(_NO_DIGEST)
    return data[:at] + _digest(data, at) + data[at + len(_NO_DIGEST) :]
