"""LIBRA's four input files (astra-sim/libra) as a plan, a workload and a price book.

The workload file is ASTRA-sim 1.0 text: per line a name, a dependency (unused), then
compute ns, collective and bytes for forward, input gradient and weight gradient, and an
update time, which LIBRA does not count either. An ALLGATHER's bytes are one NPU's shard.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from libra_planner.errors import Fault, Place, SpecError, closest, refuse, shown
from libra_planner.fabric.blocks import BLOCKS, Ring
from libra_planner.fabric.topology import MAX_NPUS
from libra_planner.files import read_text, write_files
from libra_planner.reading.document import Document, Key, is_number, is_whole, read_document, scalar
from libra_planner.workload.operations import CollectiveKind, Phase

_COLLECTIVES = {kind.value.replace("-", ""): kind.value for kind in CollectiveKind}
_BLOCKS = {"Ring": "RI", "FullyConnected": "FC", "Switch": "SW"}
_PARTS = {"Link": "link", "Switch": "switch", "Nic": "nic"}
_N_FIELDS = 12
_LEAST, _MOST = 1e-3, 1e18
_LONGEST_NAME = 500


@dataclass(frozen=True)
class LibraFiles:
    """Paths of one LIBRA configuration."""

    network: Path
    workload: Path
    communicator: Path
    cost_model: Path


def import_libra(files: LibraFiles, plan: Path) -> tuple[list[Path], list[Path]]:
    """Write a plan, its workload and its price book; nothing is written on an error.

    The plan keeps the files' tier names and explicit group sizes per phase, has no
    rules and the objective performance.

    Parameters
    ----------
    files : the four LIBRA files.
    plan : where the plan goes; the other two are written beside it.

    Returns
    -------
    Paths of plan, workload and price book, and of the copies kept of files that had
    other content.

    Raises
    ------
    SpecError
        For everything in the files that LIBRA's format does not allow, or a plan path
        that cannot be written or is one of the four files.
    """
    targets = _targets(files, plan)
    faults: list[Fault] = []
    fabric = _LibraFile(read_document(files.network), faults).fabric()
    groups = _LibraFile(read_document(files.communicator), faults).groups(fabric)
    prices = _LibraFile(read_document(files.cost_model), faults).price_book(fabric)
    workload = _workload(files.workload, faults)
    refuse(faults)
    plan_value = {
        "workload": f"./{targets[1].name}",
        "fabric": fabric,
        "parallelism": groups,
        "cost_model": f"./{targets[2].name}",
        "training_loop": "no_overlap",
        "objective": "performance",
        "constraints": [],
    }
    texts = (_yaml(plan_value), _yaml(workload), _yaml(prices))
    kept = write_files(dict(zip(targets, texts, strict=True)))
    return list(targets), kept


def _targets(files: LibraFiles, plan: Path) -> tuple[Path, Path, Path]:
    place = Place(str(plan))
    if not plan.name:
        raise SpecError(Fault("got a path without a file name", "expected a file", "", "", place))
    inputs = (files.network, files.workload, files.communicator, files.cost_model)
    beside = [plan.with_name(f"{plan.stem}.{what}.yaml") for what in ("workload", "prices")]
    targets = (plan, beside[0], beside[1])
    if {*map(os.path.realpath, targets)} & {*map(os.path.realpath, inputs)}:
        fix = "choose another name for the plan"
        raise SpecError(Fault("got an input file as output", "", fix, "", place))
    return targets


class _Dumper(yaml.SafeDumper):
    """Quotes text that would read back as a number or a word such as null."""


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if scalar(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


def _yaml(value: dict[str, Any]) -> str:
    header = "# Written by libra-planner import libra.\n"
    return header + yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        width=100,
        allow_unicode=True,
        default_flow_style=None,
    )


@dataclass
class _LibraFile:
    """One of LIBRA's YAML files and where faults are noted."""

    document: Document
    faults: list[Fault]

    def fabric(self) -> dict[str, Any]:
        """``topology`` and ``tiers`` of the network file."""
        blocks, sizes, tiers = (self.list(k) for k in ("Topology", "NpusCount", "CostDimension"))
        if not len(blocks) == len(sizes) == len(tiers):
            lengths = f"{len(blocks)} blocks, {len(sizes)} sizes and {len(tiers)} tiers"
            self.note(("CostDimension",), lengths, "one of each per dimension")
        for i, block in enumerate(blocks):
            if not isinstance(block, str) or block not in _BLOCKS:
                fix = closest(str(block), _BLOCKS)
                self.refuse(("Topology", i), block, "a building block", fix)
        for i, size in enumerate(sizes):
            if not _is_count(size) or size < 2:
                self.refuse(("NpusCount", i), size, "a whole number of at least 2")
        if all(map(_is_count, sizes)) and math.prod(sizes) > MAX_NPUS:
            self.note(("NpusCount",), f"{math.prod(sizes):.4g} NPUs", f"at most {MAX_NPUS:,}")
        for i, tier in enumerate(tiers):
            if not isinstance(tier, str) or not 0 < len(tier) <= _LONGEST_NAME:
                self.refuse(("CostDimension", i), tier, "the name of a tier")
        pairs = zip(blocks, sizes, strict=False)
        notation = "_".join(f"{_BLOCKS.get(str(block))}({size})" for block, size in pairs)
        return {"topology": notation, "tiers": list(tiers)}

    def groups(self, fabric: dict[str, Any]) -> dict[str, list[int]]:
        """Group sizes per phase of the communicator file; 1 for LIBRA's -1."""
        parts = [part.partition("(")[2].rstrip(")") for part in fabric["topology"].split("_")]
        sizes = [int(part) if part.isdigit() else 0 for part in parts]
        result = {}
        for phase in Phase:
            key = phase.value.title().replace("_", "")  # Such as InputGrad.
            chosen = self.list(key)
            if chosen and sizes[0] and len(chosen) != len(sizes):
                expected = f"{len(sizes)}, one for each dimension of {fabric['topology']}"
                self.note((key,), f"{len(chosen)} group sizes", expected)
            for i, (own, size) in enumerate(zip(chosen, sizes, strict=False)):
                if own != -1 and size and (not _is_count(own) or own > size or size % own):
                    expected = f"-1 (unused) or a divisor of the {size} NPUs of dimension {i + 1}"
                    self.refuse((key, i), own, expected)
            result[phase.value] = [1 if own == -1 else own for own in chosen]
        return result

    def price_book(self, fabric: dict[str, Any]) -> dict[str, Any]:
        """Prices; a switch in a tier without a NIC price is refused, as LIBRA does."""
        tiers = {tier: self.tier(tier, prices) for tier, prices in self.map(()).items()}
        pairs = zip(fabric["topology"].split("_"), fabric["tiers"], strict=False)
        for block, tier in pairs:
            if isinstance(tier, str) and tier not in tiers:
                expected = "the prices of every tier of the network"
                self.note((), f"no tier {tier!r}", expected, closest(tier, tiers))
            elif isinstance(tier, str):
                paid = BLOCKS.get(block.partition("(")[0], Ring).price_parts
                for name, part in _PARTS.items():
                    if part in paid and part not in tiers[tier]:
                        expected = f"one, since {block} is in tier {tier!r}"
                        self.note((tier,), f"no {name} price", expected)
        return {
            "kind": "price_book",
            "source": f"imported from {Path(self.document.file).name}",
            "as_of": "unknown",
            "unit": "USD per GB/s",
            "tiers": tiers,
        }

    def tier(self, tier: str, prices: Any) -> dict[str, float]:
        """Prices of one tier, LIBRA's names in lower case."""
        if not isinstance(prices, dict):
            self.refuse((tier,), prices, "a map of prices")
            return {}
        for part, price in prices.items():
            if part not in _PARTS:
                self.refuse((tier, part), part, "Link, Switch or Nic", closest(part, _PARTS))
            elif not is_number(price) or not 0 < price <= 1e12:
                self.refuse((tier, part), price, "a price above 0, in $ per GB/s")
        return {_PARTS[part]: price for part, price in prices.items() if part in _PARTS}

    def map(self, key: Key) -> dict[str, Any]:
        """The document, if it is a map."""
        if isinstance(self.document.value, dict):
            return self.document.value
        self.refuse(key, self.document.value, "a map")
        return {}

    def list(self, key: str) -> list[Any]:
        """The list under a key, empty (with a fault) if there is none."""
        value = self.map(()).get(key)
        if isinstance(value, list) and value:
            return value
        self.refuse((key,), value, f"a list under '{key}:'")
        return []

    def refuse(self, key: Key, got: Any, expected: str, fix: str = "") -> None:
        """Note a fault at a key."""
        self.note(key, shown(got), expected, fix)

    def note(self, key: Key, got: str, expected: str, fix: str = "") -> None:
        """Note a fault at a key, what was found in words."""
        path, place = shown(".".join(map(str, key)))[1:-1], self.document.place(key)
        self.faults.append(Fault(f"got {got}", f"expected {expected}", fix, path, place))


def _is_count(value: Any) -> bool:
    return is_whole(value) and value >= 1


def _workload(path: Path, faults: list[Fault]) -> dict[str, Any]:
    """The workload file as a table; faults are noted line by line."""
    operations: list[dict[str, Any]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        fields = line.split()
        place = Place(str(path), number)
        if not fields:
            continue
        if len(fields) != _N_FIELDS:
            fix = "remove a header: checkpoints and other ASTRA-sim 1.0 settings are not read"
            got, expected = f"got {len(fields)} fields", f"expected {_N_FIELDS} (ASTRA-sim 1.0)"
            faults.append(Fault(got, expected, fix, "", place))
            continue
        if len(fields[0]) > _LONGEST_NAME:
            got = f"got a name of {len(fields[0])} characters"
            faults.append(Fault(got, f"expected at most {_LONGEST_NAME}", "", "", place))
        for i, phase in enumerate(Phase):
            parts = fields[2 + 3 * i : 5 + 3 * i]
            operations.append(_operation(fields[0], phase, parts, place, faults))
    if not operations and not faults:
        got, expected = "got an empty file", "expected one operation per line"
        faults.append(Fault(got, expected, "", "", Place(str(path))))
    source = f"imported from {path.name}"
    return {"kind": "table", "source": source, "covers": "part", "operations": operations}


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
    value = scalar(text)
    if not is_number(value) or not (value == 0 or _LEAST <= value <= _MOST):
        expected = f"expected 0 or a number from {_LEAST:g} to {_MOST:g} for {what}"
        faults.append(Fault(f"got {shown(text)}", expected, "", "", place))
        return 0.0
    return int(value) if float(value).is_integer() else float(value)
