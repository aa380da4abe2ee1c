"""LIBRA's four input files (astra-sim/libra) as a plan, a workload and a price book.

The workload file is ASTRA-sim 1.0 text: per line a name, a dependency (unused), then
compute ns, collective and bytes for forward, input gradient and weight gradient, and an
update time, which LIBRA does not count either. An ALLGATHER's bytes are one NPU's shard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.files import write_files
from libra_planner.spec.document import Document, read_document, read_text
from libra_planner.topology import parse_topology
from libra_planner.workload.operations import Phase

_COLLECTIVES = {
    "allreduce": "all-reduce",
    "reducescatter": "reduce-scatter",
    "allgather": "all-gather",
    "alltoall": "all-to-all",
}
_BLOCKS = {"Ring": "RI", "FullyConnected": "FC", "Switch": "SW"}
_PHASE_KEYS = {
    "forward": "Forward",
    "input_grad": "InputGrad",
    "weight_grad": "WeightGrad",
}
_N_FIELDS = 12


@dataclass(frozen=True)
class LibraFiles:
    """Paths of one LIBRA configuration."""

    network: Path
    workload: Path
    communicator: Path
    cost_model: Path


def import_libra(files: LibraFiles, plan: Path) -> tuple[Path, Path, Path]:
    """Write a plan, its workload and its price book; nothing is written on an error.

    The plan keeps the files' tier names and explicit group sizes per phase, has no
    rules and the objective performance.

    Parameters
    ----------
    files : the four LIBRA files.
    plan : where the plan goes; the other two are written beside it.

    Returns
    -------
    Paths of plan, workload and price book.

    Raises
    ------
    SpecError
        For anything in the files that LIBRA's format does not allow.
    """
    fabric = _fabric(read_document(files.network))
    groups = _groups(read_document(files.communicator), fabric["topology"])
    workload = _workload(files.workload)
    prices = _price_book(read_document(files.cost_model), fabric)
    beside = plan.with_suffix("")
    workload_path = Path(f"{beside}.workload.yaml")
    prices_path = Path(f"{beside}.prices.yaml")
    plan_value = {
        "workload": f"./{workload_path.name}",
        "fabric": fabric,
        "parallelism": groups,
        "cost_model": f"./{prices_path.name}",
        "training_loop": "no_overlap",
        "objective": "performance",
        "constraints": [],
    }
    write_files(
        {workload_path: _yaml(workload), prices_path: _yaml(prices), plan: _yaml(plan_value)}
    )
    return plan, workload_path, prices_path


def _yaml(value: dict[str, Any]) -> str:
    header = "# Written by libra-planner import libra.\n"
    return header + yaml.safe_dump(
        value, sort_keys=False, width=100, allow_unicode=True, default_flow_style=None
    )


def _fabric(document: Document) -> dict[str, Any]:
    lists = {key: _list(document, key) for key in ("Topology", "NpusCount", "CostDimension")}
    blocks, sizes, tiers = lists.values()
    lengths = {key: len(value) for key, value in lists.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{count} in {key}" for key, count in lengths.items())
        place = document.place(("CostDimension",))
        raise SpecError(Fault(f"got {got}", "expected one entry per dimension", "", "", place))
    for i, block in enumerate(blocks):
        if block not in _BLOCKS:
            _refuse(
                document, ("Topology", i), block, "a building block", closest(str(block), _BLOCKS)
            )
    for i, size in enumerate(sizes):
        if not _is_count(size) or size < 2:
            _refuse(document, ("NpusCount", i), size, "a whole number of at least 2")
    for i, tier in enumerate(tiers):
        if not isinstance(tier, str):
            _refuse(document, ("CostDimension", i), tier, "the name of a tier")
    pairs = zip(blocks, sizes, strict=True)
    topology = "_".join(f"{_BLOCKS[block]}({size})" for block, size in pairs)
    return {"topology": topology, "tiers": list(tiers)}


def _groups(document: Document, topology: str) -> dict[str, list[int]]:
    sizes = parse_topology(topology).sizes
    groups = {}
    for phase, key in _PHASE_KEYS.items():
        chosen = _list(document, key)
        if len(chosen) != len(sizes):
            got = f"{len(chosen)} group sizes"
            _refuse(document, (key,), got, f"{len(sizes)}, one for each dimension of {topology}")
        for i, (own, size) in enumerate(zip(chosen, sizes, strict=True)):
            if own != -1 and (not _is_count(own) or own > size or size % own):
                expected = f"-1 (unused) or a divisor of the {size} NPUs of dimension {i + 1}"
                _refuse(document, (key, i), own, expected)
        groups[phase] = [1 if own == -1 else own for own in chosen]
    return groups


def _workload(path: Path) -> dict[str, Any]:
    operations, faults = [], []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        fields = line.split()
        place = Place(str(path), number)
        if not fields:
            continue
        if len(fields) != _N_FIELDS:
            fix = "remove a header: checkpoints and other ASTRA-sim 1.0 settings are not read"
            got = f"got {len(fields)} fields"
            faults.append(Fault(got, f"expected {_N_FIELDS} (ASTRA-sim 1.0)", fix, "", place))
            continue
        for i, phase in enumerate(Phase):
            operation = _operation(fields[0], phase, fields[2 + 3 * i : 5 + 3 * i], place, faults)
            operations.append(operation)
    if not operations and not faults:
        got = "got no operations"
        faults.append(Fault(got, "expected one per line", "", "", Place(str(path))))
    if faults:
        raise SpecError(*faults)
    return {"kind": "table", "source": f"imported from {path.name}", "operations": operations}


def _operation(
    layer: str, phase: Phase, fields: list[str], place: Place, faults: list[Fault]
) -> dict[str, Any]:
    compute_ns = _number(fields[0], f"the {phase.value} compute time in ns", place, faults)
    operation: dict[str, Any] = {"layer": layer, "phase": phase.value, "compute_ns": compute_ns}
    name = fields[1].casefold()
    size = _number(fields[2], f"the {phase.value} collective's bytes", place, faults)
    if name not in _COLLECTIVES and name != "none":
        fix = closest(fields[1], ["NONE", *(known.upper() for known in _COLLECTIVES)])
        faults.append(Fault(f"got {fields[1]!r}", "expected a collective", fix, "", place))
    elif name != "none" and size > 0:
        kind = _COLLECTIVES[name]
        size_key = "shard_bytes" if kind == "all-gather" else "size_bytes"
        operation["collective"] = {"kind": kind, size_key: size}
    return operation


def _number(text: str, what: str, place: Place, faults: list[Fault]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        expected = f"expected a number of 0 or more for {what}"
        faults.append(Fault(f"got {text!r}", expected, "", "", place))
        return 0.0
    return int(value) if value.is_integer() else value


def _price_book(document: Document, fabric: dict[str, Any]) -> dict[str, Any]:
    """LIBRA's prices; a switch in a tier without a NIC price is refused, as LIBRA does."""
    tiers: dict[str, dict[str, float]] = {}
    for tier, prices in _map(document, document.value, ()).items():
        known = {"Link": "link", "Switch": "switch", "Nic": "nic"}
        tiers[tier] = {}
        for part, price in _map(document, prices, (tier,)).items():
            key = (tier, part)
            if part not in known:
                _refuse(document, key, part, "Link, Switch or Nic", closest(part, known))
            if isinstance(price, bool) or not isinstance(price, int | float) or not price > 0:
                _refuse(document, key, price, "a price above 0 in $ per GB/s")
            if math.isinf(price):
                _refuse(document, key, price, "a finite price")
            tiers[tier][known[part]] = price
    _check_prices(document, fabric, tiers)
    return {
        "kind": "price_book",
        "source": f"imported from {Path(document.file).name}",
        "as_of": "unknown",
        "unit": "USD per GB/s",
        "tiers": tiers,
    }


def _check_prices(document: Document, fabric: dict[str, Any], tiers: dict[str, Any]) -> None:
    for block, tier in zip(fabric["topology"].split("_"), fabric["tiers"], strict=True):
        needed = ["link", "switch", "nic"] if block.startswith("SW") else ["link"]
        if tier not in tiers:
            _refuse(document, (), "no such tier", f"prices of {tier!r}", closest(tier, tiers))
        for part in needed:
            if part not in tiers[tier]:
                got = f"no {part.capitalize()} price"
                _refuse(document, (tier,), got, f"one: {block} is in tier {tier!r}")


def _map(document: Document, value: Any, key: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(document, key, value, "a map")
    return dict(value)


def _list(document: Document, key: str) -> list[Any]:
    value = document.value.get(key) if isinstance(document.value, dict) else None
    if not isinstance(value, list) or not value:
        _refuse(document, (key,), value, f"a list under '{key}:'")
    return list(value or [])


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _refuse(
    document: Document, key: tuple[str | int, ...], got: Any, expected: str, fix: str = ""
) -> None:
    shown = got if isinstance(got, str) and " " in got else repr(got)
    path = ".".join(map(str, key))
    raise SpecError(Fault(f"got {shown}", f"expected {expected}", fix, path, document.place(key)))
