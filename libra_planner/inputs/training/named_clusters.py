"""Clusters by name, for ``train --fabric``, and NICs as users write them."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.files import read_text
from libra_planner.inputs.training.clusters import Nics
from libra_planner.plan.options import port_bytes_per_s
from libra_planner.reading import bundled
from libra_planner.reading.document import parse_document
from libra_planner.reading.models import Model, Text, validated
from libra_planner.step.collectives.measured import ETHERNET, INFINIBAND

_NODE = 8
_NICS = re.compile(r"\s*([0-9]{1,4})\s*[x*]\s*(.+)")


class ClusterSpec(Model):
    """A cluster.

    Parameters
    ----------
    npu : Of the NPU catalogue.
    nics : Of one node, such as 8 x 400 Gbps.
    npus_per_node : That share the NICs.
    """

    description: Text
    npu: Text
    nics: Text
    npus_per_node: Annotated[int, Field(ge=1, le=1024)] = _NODE
    interconnect: Literal["infiniband", "ethernet"]
    source: Text


class ClustersSpec(Model):
    """Clusters by name."""

    kind: Literal["clusters"]
    as_of: Text
    clusters: Annotated[dict[Text, ClusterSpec], Field(min_length=1)]


def clusters() -> ClustersSpec:
    """The bundled clusters."""
    return _clusters(bundled.resolve("clusters", "clusters", None))


@lru_cache(maxsize=1)
def _clusters(path: Path) -> ClustersSpec:
    return validated(ClustersSpec, parse_document(read_text(path), str(path)))


def named_nics(text: str) -> Nics:
    """The NICs of one NPU of a named cluster, or of a node of 8: ``8x400Gbps``.

    Raises
    ------
    SpecError
        For a text that is neither.

    Examples
    --------
    >>> named_nics("superpod-h100").Bps / 1e9, named_nics("4x100Gbps").Bps / 1e9
    (50.0, 6.25)
    """
    known = clusters().clusters
    if text in known:
        one = known[text]
        network = ETHERNET if one.interconnect == "ethernet" else INFINIBAND
        return Nics(nics_Bps(one.nics) / one.npus_per_node, network)
    try:
        return Nics(nics_Bps(text) / _NODE, INFINIBAND, f"{text} is of a node of 8, on InfiniBand")
    except SpecError:
        got = f"got the fabric {text!r}"
        expected = "expected a cluster's name or the NICs of a node"
        bare = _NICS.fullmatch(text)
        fix = f"write {text.strip()}Gbps" if bare and bare[2].isdigit() else closest(text, known)
        raise SpecError(Fault(got, expected, fix, path="fabric")) from None


def nics_Bps(text: str) -> float:
    """Bandwidth of all NICs of a node, bytes per second, one direction.

    Raises
    ------
    SpecError
        For what is no number of NICs and a speed.
    """
    match = _NICS.fullmatch(text)
    if match is None or not int(match[1]):
        expected = "expected a number of NICs and their speed"
        raise SpecError(Fault(f"got {text!r}", expected, "write e.g. 8x400Gbps"))
    return int(match[1]) * port_bytes_per_s(match[2])
