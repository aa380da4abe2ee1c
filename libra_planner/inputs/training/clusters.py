"""The fabric that a training run stands on: scale-up domains, NICs and the law of collectives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.scale_up import TORUS, ScaleUpDomain
from libra_planner.fabric.topology import parse_topology
from libra_planner.plan.npus import CatalogueNpuSpec, scale_up_domain
from libra_planner.step.collectives.algorithms import Network, plain_network
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.collectives.measured import ETHERNET, INFINIBAND
from libra_planner.step.expression import Array
from libra_planner.units import GBIT_PER_S_BPS

_LAWS = ("GB200", "GB300", "B200", "B300", "H200", "H100", "A100", "V100")
_LIKE: Mapping[str, str] = MappingProxyType({"GB300": "GB200", "B300": "B200"})
_NO_REDUCTION = "A100"
"""Whose law stands for systems that nobody measured: rings, no sums in switches."""

NIC_GBPS: Mapping[str, float] = MappingProxyType(
    {"V100": 100.0, "A100": 200.0, "A800": 200.0, "B300": 800.0, "GB300": 800.0}
)
"""Usual line rate of the NIC of one NPU, Gbit/s; 400 of others."""

_USUAL_GBPS = 400.0
_NODE = 8

_PER_NODE = re.compile(r"(\d+)\s*x\s*(?:HDR|NDR|EDR)?\s*(\d+)\s*(?:Gb|G\b|\b)", re.I)
_TOTAL = re.compile(r"(\d+)\s*Gb(?:/s|ps)?(?:\s+\w+)?\s+per\s+(node|GPU|NPU)", re.I)
_ETHERNET = re.compile(r"roce|ethernet|efa", re.I)


@dataclass(frozen=True)
class Nics:
    """NICs of an NPU.

    Parameters
    ----------
    Bps : of one NPU, one direction.
    network : ``infiniband`` or ``ethernet``.
    note : where it is from; empty for what the user said.
    """

    Bps: float
    network: str = INFINIBAND
    note: str = ""


def nics_of(npu_name: str, remarks: str = "") -> Nics:
    """The NICs that remarks tell of, else the usual ones of an NPU.

    Examples
    --------
    >>> nics_of("a100-sxm-80gb", "(4x100Gb RoCE per node)").Bps / 1e9
    6.25
    >>> nics_of("a100-sxm-80gb", "8 GPUs/node, 800 Gb/s per node").Bps / 1e9
    12.5
    >>> nics_of("h100-sxm").Bps / 1e9
    50.0
    """
    network = ETHERNET if _ETHERNET.search(remarks) else INFINIBAND
    several, total = _PER_NODE.search(remarks), _TOTAL.search(remarks)
    if several:
        rate = int(several[1]) * int(several[2]) / _NODE
        return Nics(rate * GBIT_PER_S_BPS, network, f"NICs as remarked: {several[0].strip()}")
    if total:
        rate = int(total[1]) / (_NODE if total[2].casefold() == "node" else 1)
        return Nics(rate * GBIT_PER_S_BPS, network, f"NICs as remarked: {total[0]}")
    family = _family(npu_name) or npu_name.upper().partition("-")[0]
    rate = NIC_GBPS.get(family, _USUAL_GBPS)
    return Nics(rate * GBIT_PER_S_BPS, network, f"NICs of {rate:g} Gbit/s per NPU")


def _family(npu_name: str) -> str:
    words = re.split("[^A-Z0-9]+", npu_name.upper())
    return next((one for one in _LAWS if one in words), "")


@dataclass(frozen=True)
class RunFabric:
    """The fabric of a run.

    Parameters
    ----------
    network : domains, and one network of NICs where there are several.
    bandwidth_bytes_per_s : of one NPU by dimension, shape (n_dims,).
    model : of collectives.
    is_measured : whether collectives of such a system were measured.
    notes : assumptions worth printing.
    """

    network: Network
    bandwidth_bytes_per_s: Array
    model: Calibrated
    is_measured: bool
    notes: tuple[str, ...] = ()


def run_fabric(name: str, npu: CatalogueNpuSpec, n_npus: int, nics: Nics) -> RunFabric:
    """Domains of an NPU as large as they divide the NPUs, and its NICs.

    Raises
    ------
    SpecError
        For an NPU without scale-up links in the catalogue.

    Examples
    --------
    >>> from libra_planner.plan.npus import catalogue_npu
    >>> npu = catalogue_npu("h100-sxm", None, None, path="npu")
    >>> str(run_fabric("h100-sxm", npu, 64, Nics(50e9)).network.topology)
    'SW(8)_SW(8)'
    """
    if not npu.scale_up:
        got = f"got {name}, whose scale-up links the catalogue does not know"
        raise SpecError(Fault(got, "expected an NPU with scale_up", path="gpu_type"))
    domain = scale_up_domain(npu.scale_up[0])
    size = _domain_size(domain, n_npus)
    rates = [domain.npu_Bps]
    if size < n_npus:
        rates.append(nics.Bps)
    text = f"SW({size})" if size == n_npus else f"SW({size})_SW({n_npus // size})"
    if size == 1:
        text, rates = f"SW({n_npus})", [nics.Bps]
    family = _family(name)
    law = _LIKE.get(family, family) or _NO_REDUCTION
    has_domain = size > 1
    model = Calibrated(
        law,
        nics.network,
        0 if has_domain else None,
        None if size == n_npus else int(has_domain),
    )
    notes = () if (len(rates) == 1 and has_domain) or not nics.note else (nics.note,)
    topology = parse_topology(text)
    return RunFabric(plain_network(topology), np.array(rates), model, bool(family), notes)


def _domain_size(domain: ScaleUpDomain, n_npus: int) -> int:
    """The most NPUs of a domain that divide all of them."""
    most = min(domain.n_npus, n_npus)
    if domain.joined_by == TORUS:
        return n_npus
    return next(size for size in range(most, 0, -1) if n_npus % size == 0)
