"""The fabric that a training run stands on: scale-up domains, NICs and the law of collectives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.cluster import MOST_TAPER
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
FEWEST_NPUS = 2
"""That exchange anything."""
_NODE = 8
NODES_PER_LEAF = 32
"""Nodes of a leaf of 64 ports, one rail of each, without a taper."""

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
    taper : bandwidth of a leaf's links down over that of its links up (C13).
    nodes_per_leaf : nodes that one leaf of every rail joins, where there is a taper; ``None`` for
        as many as divide the nodes, up to :data:`NODES_PER_LEAF`.

    Raises
    ------
    SpecError
        For a taper below 1, or a slip of the keyboard.
    """

    Bps: float
    network: str = INFINIBAND
    note: str = ""
    taper: float = 1.0
    nodes_per_leaf: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.taper <= MOST_TAPER:
            expected = f"expected a taper from 1 to {MOST_TAPER:g}: links down over links up"
            raise SpecError(Fault(f"got {self.taper:g}", expected, "write 2 for 2:1", "taper"))


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
        For an NPU without scale-up links in the catalogue, and for one NPU, which has no network.

    Examples
    --------
    >>> from libra_planner.plan.npus import catalogue_npu
    >>> npu = catalogue_npu("h100-sxm", None, None, path="npu")
    >>> str(run_fabric("h100-sxm", npu, 64, Nics(50e9)).network.topology)
    'SW(8)_SW(8)'
    >>> tapered = run_fabric("h100-sxm", npu, 1024, Nics(50e9, taper=2))
    >>> str(tapered.network.topology), (tapered.bandwidth_bytes_per_s / 1e9).tolist()
    ('SW(8)_[SW(32)_SW(4)]', [450.0, 50.0, 25.0])
    """
    if not npu.scale_up:
        got = f"got {name}, whose scale-up links the catalogue does not know"
        raise SpecError(Fault(got, "expected an NPU with scale_up", path="gpu_type"))
    if n_npus < FEWEST_NPUS:
        raise SpecError(Fault(f"got {n_npus} NPU", "expected two or more", path="gpus"))
    domain = scale_up_domain(npu.scale_up[0])
    size = _domain_size(domain, n_npus)
    outside, rates, of_leaves = _scale_out(n_npus // size, nics)
    parts = [f"SW({size})"] * (size > 1 or not outside) + [outside] * bool(outside)
    rates = [domain.npu_Bps] * (size > 1 or not outside) + rates
    family = _family(name)
    law = _LIKE.get(family, family) or _NO_REDUCTION
    has_domain = size > 1
    model = Calibrated(
        law,
        nics.network,
        0 if has_domain else None,
        None if size == n_npus else int(has_domain),
    )
    notes = (*((nics.note,) if outside and nics.note else ()), *of_leaves)
    topology = parse_topology("_".join(parts))
    return RunFabric(plain_network(topology), np.array(rates), model, bool(family), notes)


def _scale_out(n_nodes: int, nics: Nics) -> tuple[str, list[float], tuple[str, ...]]:
    """Notation, bandwidths and notes of the NICs' network; nothing for one node.

    Without a taper it is as one switch; with one, leaves and what is above them.
    """
    if n_nodes == 1:
        return "", [], ("one scale-up domain: the taper slows nothing",) * (nics.taper > 1)
    if nics.taper == 1:
        return f"SW({n_nodes})", [nics.Bps], ()
    most = nics.nodes_per_leaf or NODES_PER_LEAF
    if nics.nodes_per_leaf and n_nodes % most and most < n_nodes:
        got, fix = f"got {most} nodes per leaf", f"write a divisor of {n_nodes:,}"
        fault = Fault(got, f"expected leaves that share {n_nodes:,} nodes", fix, "nodes_per_leaf")
        raise SpecError(fault)
    if n_nodes <= most:
        said = f"all {n_nodes:,} nodes on one leaf of every rail: the taper slows nothing"
        return f"SW({n_nodes})", [nics.Bps], (said,)
    leaf = nodes_per_leaf(n_nodes, most)
    if leaf == 1:
        got, expected = f"got {n_nodes:,} nodes", f"expected a divisor from 2 to {most} for leaves"
        raise SpecError(Fault(got, expected, "take other NPUs or nodes per leaf", "taper"))
    said = f"leaves of every rail join {leaf:,} nodes; their uplinks are tapered {nics.taper:g}:1"
    rates = [nics.Bps, nics.Bps / nics.taper]
    return f"[SW({leaf})_SW({n_nodes // leaf})]", rates, (said,)


def nodes_per_leaf(n_nodes: int, most: int = NODES_PER_LEAF) -> int:
    """The most nodes of a leaf that divide all nodes.

    >>> nodes_per_leaf(256), nodes_per_leaf(72), nodes_per_leaf(37)
    (32, 24, 1)
    """
    return next(size for size in range(min(most, n_nodes), 0, -1) if n_nodes % size == 0)


def _domain_size(domain: ScaleUpDomain, n_npus: int) -> int:
    """The most NPUs of a domain that divide all of them."""
    most = min(domain.n_npus, n_npus)
    if domain.joined_by == TORUS:
        return n_npus
    return next(size for size in range(most, 0, -1) if n_npus % size == 0)
