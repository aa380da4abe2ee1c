"""NPUs and scale-up domains of a catalogue: the JSON of ``list npus --json``, and text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from libra_planner.plan.npus import CatalogueNpuSpec, NpuCatalogueSpec, ScaleUpSpec
from libra_planner.units import gigabytes_per_s
from libra_planner.views.cells import Block, Value, count, number, table_of, usd

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
        "NPUs: dense TFLOP/s, memory that programs can use, links of one NPU in its domain one way",
        found.npus.items(),
        {
            "NPU": lambda item: item[0],
            **{kind: partial(_peak, kind) for kind in _SHOWN_TYPES},
            "GB": lambda item: number(item[1].memory_GB, 1),
            "GB/s": lambda item: number(item[1].memory_bandwidth_GBps, 0),
            "W": lambda item: number(item[1].tdp_W, 0),
            "scale-up": lambda item: ", ".join(item[1].scale_up),
            "GB/s one way": lambda item: _scale_up_GBps(found, item[1]),
            "price": lambda item: usd(item[1].price.usd) if item[1].price else "",
        },
        left=("NPU", "scale-up"),
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
