"""Bundled NPUs, domains, workloads and clusters: the JSON of ``list --json``, and text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from libra_planner.inputs.training.named_clusters import ClustersSpec
from libra_planner.plan.npus import CatalogueNpuSpec, NpuCatalogueSpec, ScaleUpSpec
from libra_planner.plan.workloads import ModelFacts
from libra_planner.units import gigabytes_per_s
from libra_planner.views.cells import Block, Value, count, number, round_usd, table_of

_SHOWN_TYPES = ("bf16", "fp8", "fp4")


def npus_payload(found: NpuCatalogueSpec) -> dict[str, Any]:
    """NPUs by name, each figure with its source."""
    return {"npus": {name: _npu(found, one) for name, one in found.npus.items()}}


def _npu(found: NpuCatalogueSpec, npu: CatalogueNpuSpec) -> dict[str, Any]:
    domains = [found.scale_up[name] for name in npu.scale_up if name in found.scale_up]
    speeds = [gigabytes_per_s(one.npu_Bps) for one in domains]
    return npu.model_dump(mode="json") | {"scale_up_GBps": speeds}


def npu_blocks(found: NpuCatalogueSpec) -> Iterator[Block]:
    """A row for every NPU, then where the figures are from."""
    yield table_of(
        "NPUs: dense TFLOP/s of each type, memory for programs, scale-up links one way",
        found.npus.items(),
        {
            "NPU": lambda item: item[0],
            **{kind: partial(_peak, kind) for kind in _SHOWN_TYPES},
            "memory\nGB": lambda item: number(item[1].memory_GB, 1),
            "memory\nGB/s": lambda item: number(item[1].memory_bandwidth_GBps, 0),
            "W": lambda item: number(item[1].tdp_W, 0),
            "scale-up": lambda item: ", ".join(item[1].scale_up),
            "links\nGB/s": lambda item: _scale_up_GBps(found, item[1]),
            "price": lambda item: round_usd(item[1].price.usd) if item[1].price else "",
        },
        left=("NPU", "scale-up"),
        dispensable=("W",),
    )
    yield f"All prices are {_confidences(found)} (list npus --json has every figure's source)"


def _peak(data_type: str, item: tuple[str, CatalogueNpuSpec]) -> Value:
    return number(item[1].peak_TFLOPps.get(data_type), 0)


def _scale_up_GBps(found: NpuCatalogueSpec, npu: CatalogueNpuSpec) -> str:
    known = [found.scale_up[name] for name in npu.scale_up if name in found.scale_up]
    return ", ".join(f"{gigabytes_per_s(one.npu_Bps):g}" for one in known)


def _confidences(found: NpuCatalogueSpec) -> str:
    return " or ".join(sorted({one.price.confidence for one in found.npus.values() if one.price}))


def scale_ups_payload(found: NpuCatalogueSpec) -> dict[str, Any]:
    """Scale-up domains by name."""
    rows = {name: _domain(one) for name, one in found.scale_up.items()}
    return {"scale-ups": rows}


def _domain(one: ScaleUpSpec) -> dict[str, Any]:
    own = one.model_dump(mode="json", exclude={"npu_Bps", "power_w"})
    return own | {"bandwidth_GBps": gigabytes_per_s(one.npu_Bps), "power_W": one.power_w}


def scale_up_blocks(found: NpuCatalogueSpec) -> Iterator[Block]:
    """A row for every domain."""
    yield table_of(
        "Scale-up domains: a plan names one as fabric: {scale_up: nvlink4-8}",
        found.scale_up.items(),
        {
            "part": lambda item: item[0],
            "NPUs": lambda item: count(item[1].n_npus),
            "GB/s one way": lambda item: number(gigabytes_per_s(item[1].npu_Bps), 0),
            "joined by": lambda item: item[1].joined_by,
            "in the price of": lambda item: item[1].server or "",
            "NPUs that come in it": lambda item: ", ".join(
                name for name, npu in found.npus.items() if item[0] in npu.scale_up
            ),
        },
        left=("part", "joined by", "in the price of", "NPUs that come in it"),
    )


@dataclass(frozen=True)
class ListedWorkload:
    """A bundled workload.

    Parameters
    ----------
    name, about : what it is called, and its first line.
    path : of its file.
    facts : of its model; ``None`` for a list of operations.
    """

    name: str
    about: str
    path: Path
    facts: ModelFacts | None


def workloads_payload(found: Sequence[ListedWorkload]) -> dict[str, Any]:
    """Files by name, and what is known of their models."""
    known = {one.name: asdict(one.facts) for one in found if one.facts is not None}
    return {"workloads": {one.name: str(one.path) for one in found}, "models": known}


def workload_blocks(found: Sequence[ListedWorkload]) -> Iterator[Block]:
    """A row for every workload."""
    yield table_of(
        "Workloads, as in a plan's 'workload: gpt3': 1e9 parameters in all and of a token",
        sorted(found, key=_with_numbers_as_numbers),
        {
            "workload": lambda one: one.name,
            "parameters": lambda one: _billions(one.facts.n_parameters if one.facts else None),
            "active": lambda one: _billions(one.facts.n_active_parameters if one.facts else None),
            "layers": lambda one: count(one.facts.n_layers if one.facts else None),
            "what it is": lambda one: re.split(r"[:,(]", one.about)[0].strip(" ."),
        },
        left=("workload", "what it is"),
    )
    yield "n/a: LIBRA's list of operations has none; a DLRM's layers differ. --json has all digits"


def _billions(n_parameters: int | None) -> Value:
    return number(n_parameters / 1e9 if n_parameters is not None else None, 2)


def _with_numbers_as_numbers(one: ListedWorkload) -> list[tuple[bool, float, str]]:
    """Key that puts gpt-18.4b before gpt-145.6b."""
    parts = re.split(r"(\d+(?:\.\d+)?)", one.name)
    return [(not p[:1].isdigit(), float(p) if p[:1].isdigit() else 0.0, p) for p in parts]


def clusters_payload(found: ClustersSpec) -> dict[str, Any]:
    """Clusters by name."""
    return {"clusters": {name: one.model_dump() for name, one in found.clusters.items()}}


def cluster_blocks(found: ClustersSpec) -> Iterator[Block]:
    """A row for every cluster."""
    yield table_of(
        "Clusters: train --fabric NAME",
        found.clusters.items(),
        {
            "cluster": lambda item: item[0],
            "NPU": lambda item: item[1].npu,
            "NICs of a node": lambda item: item[1].nics,
            "network": lambda item: item[1].interconnect,
            "source": lambda item: item[1].source,
        },
        left=("cluster", "NPU", "NICs of a node", "network", "source"),
        dispensable=("source",),
    )
    yield "list clusters --json says where each is from"
