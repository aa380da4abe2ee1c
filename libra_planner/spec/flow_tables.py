"""Flow lists: CSV files of who sends how much to whom over a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.fabric.clos import Clos, Flows, Indices
from libra_planner.spec.tables import Table, read_table

REQUIRED = ("flow_id", "src", "dst", "bytes")
OPTIONAL = ("via", "src_port", "collective")
SPELLINGS = {"job": "collective"}
"""Columns of a flow list, and other names of them."""

MOST_FLOW_BYTES = 1e18
"""Largest flow; beyond it a number is a slip of the keyboard."""

_MOST_PORT = 65535


@dataclass(frozen=True)
class FlowList:
    """The flows of a file, in its order.

    Parameters
    ----------
    flows : hosts, sizes and, where given, spines, source ports and collectives.
    ids : name of each flow, as the file has it.
    collectives : names that the numbers ``flows.collective`` mean; empty without the column.
    lines : line of the file that each flow is on, shape (n_flows,).
    """

    flows: Flows
    ids: Sequence[str] = field(repr=False)
    collectives: tuple[str, ...]
    lines: Indices = field(repr=False)


def read_flows(path: str | Path, fabric: Clos, *, pinned: bool = False) -> FlowList:
    """Read a flow list: ``flow_id,src,dst,bytes[,via][,src_port][,collective]``.

    Parameters
    ----------
    path : the file; its columns may have any order, and ``job`` means ``collective``.
    fabric : whose hosts ``src`` and ``dst`` number.
    pinned : whether ``via`` is read; flows between leaves then need it.

    Raises
    ------
    SpecError
        With the first faults and how many more there are, each with file and line.
    """
    table = read_table(path, required=REQUIRED, optional=OPTIONAL, spellings=SPELLINGS)
    table.refuse(table.blank("flow_id"), "flow_id", "expected a name of the flow")
    table.refuse_repeated("flow_id")
    src, dst = (_hosts(table, name, fabric) for name in ("src", "dst"))
    _check_pairs(table, fabric, src, dst)
    size_bytes = _sizes(table)
    via = _vias(table, fabric, src, dst) if pinned else np.full(table.n_rows, -1)
    src_port = _source_ports(table)
    table.faults.check()
    if not table.n_rows:
        place = Place(str(path))
        raise SpecError(Fault("got no flows", "expected one row or more", "", "", place))
    collective, names = _collectives(table)
    flows = Flows(src, dst, size_bytes, via=via, src_port=src_port, collective=collective)
    return FlowList(flows, table.cells["flow_id"], names, table.lines)


def _hosts(table: Table, column: str, fabric: Clos) -> Indices:
    """Hosts of a column, -1 where there is a fault."""
    expected = f"expected a host of 0 .. {fabric.n_hosts - 1}"
    return _whole(table, column, fabric.n_hosts - 1, expected=expected)


def _whole(table: Table, column: str, most: int, *, expected: str) -> Indices:
    """Whole numbers from 0 to ``most``; -1 and a fault for anything else."""
    values = table.numbers(column)
    bad = ~((values >= 0) & (values <= most) & (values == np.floor(values)))
    table.refuse(bad, column, expected)
    return np.where(bad, -1, values).astype(np.int64)


def _check_pairs(table: Table, fabric: Clos, src: Indices, dst: Indices) -> None:
    known = (src >= 0) & (dst >= 0)
    table.refuse(known & (src == dst), "dst", "expected another host than src")
    apart = fabric.plane_of(src) != fabric.plane_of(dst)
    apart |= (fabric.leaf_of(src) != fabric.leaf_of(dst)) & (fabric.n_spines == 0)
    apart |= (fabric.pod_of(src) != fabric.pod_of(dst)) & (fabric.n_cores == 0)
    table.refuse(known & apart, "dst", "expected a host that the fabric joins to src")


def _sizes(table: Table) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = table.numbers("bytes")
    bad = ~((values >= 0) & (values <= MOST_FLOW_BYTES))
    table.refuse(bad, "bytes", f"expected a number of bytes from 0 to {MOST_FLOW_BYTES:g}")
    return values


def _vias(table: Table, fabric: Clos, src: Indices, dst: Indices) -> Indices:
    """Spine (between pods: core) of each flow; -1 inside a leaf, where it is not read."""
    inside = (fabric.leaf_of(src) == fabric.leaf_of(dst)) | (src < 0) | (dst < 0)
    if "via" not in table.cells:
        if not inside.all():
            _refuse_without_via(table, int(np.argmin(inside)))
        return np.full(table.n_rows, -1)
    between_pods = ~inside & (fabric.pod_of(src) != fabric.pod_of(dst))
    n_vias = np.where(between_pods, fabric.n_spines * fabric.n_cores, fabric.n_spines)
    blank, values = table.blank("via"), table.numbers("via")
    good = (values >= 0) & (values < n_vias) & (values == np.floor(values))

    def expected(row: int) -> str:
        what = "core" if between_pods[row] else "spine"
        reason = " for the policy pinned: the flow goes between leaves" if blank[row] else ""
        return f"expected a {what} of 0 .. {n_vias[row] - 1}{reason}"

    table.refuse(~inside & ~good, "via", expected)
    return np.where(inside | ~good, -1, values).astype(np.int64)


def _refuse_without_via(table: Table, row: int) -> None:
    got = f"got no column via, but the flow on line {table.lines[row]} goes between leaves"
    expected = "expected the spine of every such flow for the policy pinned"
    fix = "add it, or choose another policy"
    raise SpecError(Fault(got, expected, fix, "", Place(table.faults.file, 1)))


def _source_ports(table: Table) -> Indices:
    """Source ports, -1 where none is given."""
    if "src_port" not in table.cells:
        return np.full(table.n_rows, -1)
    blank, values = table.blank("src_port"), table.numbers("src_port")
    good = (values >= 0) & (values <= _MOST_PORT) & (values == np.floor(values))
    table.refuse(~blank & ~good, "src_port", f"expected a port of 0 .. {_MOST_PORT}, or nothing")
    return np.where(good, values, -1).astype(np.int64)


def _collectives(table: Table) -> tuple[Indices, tuple[str, ...]]:
    """Number of each flow's collective, by first appearance, and their names."""
    if "collective" not in table.cells:
        return np.zeros(table.n_rows, dtype=np.int64), ()
    numbers: dict[str, int] = {}
    cells = table.cells["collective"]
    found = [numbers.setdefault(cell.strip(), len(numbers)) for cell in cells]
    return np.array(found, dtype=np.int64), tuple(numbers)
