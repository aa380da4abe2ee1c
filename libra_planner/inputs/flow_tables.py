"""CSV files of flows: who sends how much to whom, and the hops that a tracer saw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from libra_planner.check.measured import Trace
from libra_planner.check.report import FlowList
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.fabric.clos import Clos, Flows, Indices
from libra_planner.inputs.switch_names import device, is_port, tier
from libra_planner.reading.tables import Table, read_table

REQUIRED = ("flow_id", "src", "dst", "bytes")
OPTIONAL = ("via", "src_port", "collective")
SPELLINGS = {"job": "collective"}
"""Columns of a flow list, and other names of them."""

MOST_FLOW_BYTES = 1e18
"""Largest flow; beyond it a number is a slip of the keyboard."""

_MOST_PORT = 65535


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
    last = fabric.n_hosts - 1
    src, dst = (
        _whole(table, one, last, f"expected a host of 0 .. {last}") for one in ("src", "dst")
    )
    _check_pairs(table, fabric, src, dst)
    size_bytes = table.numbers("bytes")
    bad = ~((size_bytes >= 0) & (size_bytes <= MOST_FLOW_BYTES))
    table.refuse(bad, "bytes", f"expected a number of bytes from 0 to {MOST_FLOW_BYTES:g}")
    via = _vias(table, fabric, src, dst) if pinned else np.full(table.n_rows, -1)
    src_port = np.full(table.n_rows, -1)
    if "src_port" in table.cells:
        expected = f"expected a port of 0 .. {_MOST_PORT}, or nothing"
        src_port = _whole(table, "src_port", _MOST_PORT, expected, skip=table.blank("src_port"))
    table.check("flows")
    collective, names = np.zeros(table.n_rows, dtype=np.int64), list[str]()
    if "collective" in table.cells:
        collective, names = _numbered(table.cells["collective"])
    flows = Flows(src, dst, size_bytes, via=via, src_port=src_port, collective=collective)
    return FlowList(flows, table.cells["flow_id"], tuple(names), table.lines)


def _whole(
    table: Table,
    column: str,
    most: int | Indices,
    expected: str | Callable[[int], str],
    *,
    skip: NDArray[np.bool_] | None = None,
) -> Indices:
    """Whole numbers from 0 to ``most``; -1 where they are skipped, and with a fault elsewhere."""
    values = table.numbers(column)
    skipped = np.zeros(table.n_rows, dtype=np.bool_) if skip is None else skip
    good = (values >= 0) & (values <= most) & (values == np.floor(values))
    table.refuse(~skipped & ~good, column, expected)
    return np.where(~skipped & good, values, -1).astype(np.int64)


def _check_pairs(table: Table, fabric: Clos, src: Indices, dst: Indices) -> None:
    known = (src >= 0) & (dst >= 0)
    table.refuse(known & (src == dst), "dst", "expected another host than src")
    apart = fabric.plane_of(src) != fabric.plane_of(dst)
    apart |= (fabric.leaf_of(src) != fabric.leaf_of(dst)) & (fabric.n_spines == 0)
    apart |= (fabric.pod_of(src) != fabric.pod_of(dst)) & (fabric.n_cores == 0)
    table.refuse(known & apart, "dst", "expected a host that the fabric joins to src")


def _vias(table: Table, fabric: Clos, src: Indices, dst: Indices) -> Indices:
    """Spine (between pods: core) of each flow; -1 inside a leaf, where it is not read."""
    inside = (fabric.leaf_of(src) == fabric.leaf_of(dst)) | (src < 0) | (dst < 0)
    if "via" not in table.cells:
        if not inside.all():
            line = table.lines[int(np.argmin(inside))]
            got = f"got no column via, but the flow on line {line} goes between leaves"
            expected = "expected the spine of every such flow for the policy pinned"
            fix = "add it, or choose another policy"
            raise SpecError(Fault(got, expected, fix, "", Place(table.faults.file, 1)))
        return np.full(table.n_rows, -1)
    between_pods = ~inside & (fabric.pod_of(src) != fabric.pod_of(dst))
    last = np.where(between_pods, fabric.n_spines * fabric.n_cores, fabric.n_spines) - 1
    blank = table.blank("via")

    def wanted(row: int) -> str:
        what = "core" if between_pods[row] else "spine"
        reason = " for the policy pinned: the flow goes between leaves" if blank[row] else ""
        return f"expected a {what} of 0 .. {last[row]}{reason}"

    return _whole(table, "via", last, wanted, skip=inside)


HOP_SPELLINGS = {
    "flow_id": "flow",
    "device": "switch",
    **dict.fromkeys(("interface", "egress_interface", "port", "egress_port"), "egress"),
}

_LAYERS = {
    ("host", "leaf"): "host_up",
    ("leaf", "spine"): "leaf_up",
    ("spine", "core"): "spine_up",
    ("core", "spine"): "core_down",
    ("spine", "leaf"): "spine_down",
    ("leaf", "host"): "host_down",
}
"""Names of the layers of a design, by the tier a link leaves and the one it reaches."""

_OF_PODS = ("spine_up", "core_down")
"""Layers whose switches share what they carry with the other spines of a pod."""

_BELOW = {"spine": "leaf", "core": "spine"}
"""Where a path that ends at a switch in the middle of a fabric must have gone on to."""


@dataclass(frozen=True)
class _Hops:
    """The rows of both files, with numbers for names; a row of the second is no hop."""

    flow: Indices
    switch: Indices
    interface: Indices
    flow_ids: Sequence[str]
    switches: Sequence[str]
    interface_names: Sequence[str]
    switch_of: Indices

    @property
    def n_hops(self) -> int:
        """Rows of the trace."""
        return len(self.flow)


def read_hops(path: str | Path, interfaces: str | Path | None = None) -> Trace:
    """Read a hop table ``flow,switch,egress[,layer]``, each flow's rows in the order of its path.

    A layer without a column follows from the names: ``pod1-leaf3`` before ``spine1`` is
    ``leaf_up``, the last switch leads to a host, and tiers of other names give e.g.
    ``tor_to_agg``. A port after a switch's name, as in ``leaf3:Ethernet1/49``, is no part of it.

    Parameters
    ----------
    path : the table; ``flow_id`` means ``flow``, ``interface`` means ``egress``.
    interfaces : table ``switch,egress[,layer]`` of all interfaces between switches, idle ones
        too.

    Raises
    ------
    SpecError
        With the first faults and how many more there are, each with file and line.
    """
    table = _read_named(path, ["flow", "switch", "egress"], "hops")
    listed = None
    if interfaces is not None:
        listed = _read_named(interfaces, ["switch", "egress"], "interfaces")
    rows = _numbered_rows(table, listed)
    hop = rows.flow * len(rows.interface_names) + rows.interface[: rows.n_hops]
    repeated = np.ones(rows.n_hops, dtype=np.bool_)
    repeated[np.unique(hop, return_index=True)[1]] = False
    table.refuse(repeated, "egress", "expected each hop of a flow once")
    onward = _next_rows(rows)
    names = _layer_of_hops(table, rows, onward)
    by_interface, first_row = _layer_of_seen(table, rows, names)
    if listed is not None:
        _check_listed(table, rows, listed, by_interface, first_row)
        by_interface |= _layer_of_idle(listed, rows, by_interface)
    layer, layers = _numbered([by_interface[i] for i in range(len(rows.interface_names))])
    return Trace(
        flow=rows.flow,
        interface=rows.interface[: rows.n_hops],
        flow_ids=rows.flow_ids,
        switches=rows.switches,
        layers=layers,
        interface_names=rows.interface_names,
        switch=rows.switch_of,
        layer=layer,
        group=_groups(rows, onward, by_interface),
        is_complete=listed is not None,
    )


def _read_named(path: str | Path, columns: list[str], what: str) -> Table:
    """A table with a name in each of the columns of every row."""
    table = read_table(path, required=columns, optional=["layer"], spellings=HOP_SPELLINGS)
    for column in columns:
        table.refuse(table.blank(column), column, f"expected a name of the {column}")
    ports = {name for name in set(table.cells["switch"]) if is_port(name)}
    is_named_so = np.array([name in ports for name in table.cells["switch"]], dtype=np.bool_)
    table.refuse(is_named_so, "switch", "expected the name of a switch, but this is a port's")
    table.check(what)
    return table


def _numbered(cells: Sequence[str]) -> tuple[Indices, list[str]]:
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(cell.strip(), len(numbers)) for cell in cells]
    return np.array(found, dtype=np.int64), list(numbers)


def _numbered_rows(table: Table, listed: Table | None) -> _Hops:
    """Numbers for flows, switches and interfaces, those of the list after those of the trace."""
    more = listed.cells if listed is not None else {"switch": [], "egress": []}
    flow, flow_ids = _numbered(table.cells["flow"])
    named = [*table.cells["switch"], *more["switch"]]
    devices = {name: device(name) for name in set(named)}
    switch, switches = _numbered([devices[name] for name in named])
    egress, ports = _numbered([*table.cells["egress"], *more["egress"]])
    key, interface = np.unique(switch * len(ports) + egress, return_inverse=True)
    switch_of, port_of = np.divmod(key, len(ports))
    names = [f"{switches[s]} {ports[p]}" for s, p in zip(switch_of, port_of, strict=True)]
    return _Hops(flow, switch, interface, flow_ids, switches, names, switch_of)


def _next_rows(rows: _Hops) -> Indices:
    """The row of each hop's next hop, -1 for the last of a flow, shape (n_hops,)."""
    order = np.argsort(rows.flow, kind="stable")
    goes_on = rows.flow[order[1:]] == rows.flow[order[:-1]]
    onward = np.full(rows.n_hops, -1, dtype=np.int64)
    onward[order[:-1][goes_on]] = order[1:][goes_on]
    return onward


def _layer_of_hops(table: Table, rows: _Hops, onward: Indices) -> list[str]:
    """Name of each hop's layer: given, or from the tiers of its switch and the next."""
    tiers = [tier(name) for name in rows.switches]
    given = table.cells.get("layer") or [""] * rows.n_hops
    onto = np.where(onward >= 0, rows.switch[onward], -1).tolist()
    found = []
    for name, switch, following in zip(
        given, rows.switch[: rows.n_hops].tolist(), onto, strict=True
    ):
        own = tiers[switch]
        upper = tiers[following] if following >= 0 else _BELOW.get(own, "host")
        found.append(name.strip() or _LAYERS.get((own, upper)) or f"{own}_to_{upper}")
    return found


def _layer_of_seen(
    table: Table, rows: _Hops, names: list[str]
) -> tuple[dict[int, str], dict[int, int]]:
    """Layer of each interface with flows, and the first row that has it."""
    interface = rows.interface[: rows.n_hops]
    seen, rows_of_seen, position = np.unique(interface, return_index=True, return_inverse=True)
    first_row = rows_of_seen[position]

    def expected(row: int) -> str:
        first = first_row[row]
        return (
            f"expected an interface of layer {names[row]}, but it is of {names[first]} "
            f"on line {table.lines[first]}: list each flow's hops in the order of its path, or "
            "add a column layer"
        )

    number, _ = _numbered(names)
    table.refuse(number != number[first_row], "egress", expected)
    table.faults.check()
    first = dict(zip(seen.tolist(), rows_of_seen.tolist(), strict=True))
    return {one: names[row] for one, row in first.items()}, first


def _check_listed(
    table: Table, rows: _Hops, listed: Table, seen: dict[int, str], first: dict[int, int]
) -> None:
    """In a layer that is listed at all, interfaces with flows have to be listed."""
    in_list = set(rows.interface[rows.n_hops :].tolist())
    layers = {seen[i] for i in in_list if i in seen}
    missing = np.zeros(rows.n_hops, dtype=np.bool_)
    missing[[first[i] for i, name in seen.items() if name in layers and i not in in_list]] = True
    file = listed.faults.file
    table.refuse(missing, "egress", f"expected an interface that {file} lists")
    table.faults.check()


def _layer_of_idle(listed: Table, rows: _Hops, seen: dict[int, str]) -> dict[int, str]:
    """Layer of the listed interfaces without flows: given, or the only one of their tier."""
    interfaces = rows.interface[rows.n_hops :].tolist()
    tiers = [tier(rows.switches[s]) for s in rows.switch[rows.n_hops :].tolist()]
    of_tier = defaultdict[str, set[str]](set)
    for interface, own in zip(interfaces, tiers, strict=True):
        of_tier[own] |= {seen[interface]} if interface in seen else set()
    given = listed.cells.get("layer") or [""] * len(interfaces)
    found: dict[int, str] = {}
    unknown = np.zeros(len(interfaces), dtype=np.bool_)
    for row, (interface, own) in enumerate(zip(interfaces, tiers, strict=True)):
        names = {given[row].strip()} - {""} or of_tier[own]
        unknown[row] = len(names) != 1 and interface not in seen
        if interface not in seen and len(names) == 1:
            (found[interface],) = names
    expected = "expected its layer in a column layer: it carries no flow that would tell"
    listed.refuse(unknown, "egress", expected)
    listed.faults.check()
    return found


def _groups(rows: _Hops, onward: Indices, layer: dict[int, str]) -> Indices:
    """Switch whose demand each interface shares: its own going up, the next one going down.

    Between spines and cores it is a pod, which a trace does not tell: -1.
    """
    group = np.full(len(rows.interface_names), -1, dtype=np.int64)
    for interface, name in layer.items():
        if name.endswith("_up") and name not in _OF_PODS:
            group[interface] = rows.switch_of[interface]
    inner = np.flatnonzero(onward >= 0)
    for row in inner[np.unique(rows.interface[inner], return_index=True)[1]].tolist():
        interface = int(rows.interface[row])
        if layer[interface].endswith("_down") and layer[interface] not in _OF_PODS:
            group[interface] = rows.switch[onward[row]]
    return group
