"""Collectives as a library runs them on real links: a law with few constants (C20).

The constants are those of NCCL, fitted once to published measurements; ``docs/accuracy.md`` has the
errors. Each has a range that physics allows, and none belongs to a single measured curve.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from libra_planner.errors import Fault, SpecError, unknown_name
from libra_planner.workload.operations import CollectiveKind
from libra_planner.workload.volumes import SEND_RECV

INFINIBAND, ETHERNET = "infiniband", "ethernet"


@dataclass(frozen=True)
class ScaleUp:
    """Links between the NPUs of one domain, such as NVLink.

    Parameters
    ----------
    npu_Bps : of one NPU, one direction, all links.
    size : NPUs of a domain; 0 for as many as a node has.
    n_per_node, most_per_node : NPUs that share the NICs of a node, and the most that a node has.
    generation : which of the constants of reduction in the switches hold; empty where the switches
        cannot reduce.
    Bps_by_ranks : of fewer NPUs than all, where there is no switch between them.
    """

    npu_Bps: float
    size: int = 0
    n_per_node: int = 8
    most_per_node: int = 8
    generation: str = ""
    Bps_by_ranks: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))

    def __getstate__(self) -> dict[str, Any]:
        """Fields that can travel: a proxy of a map cannot."""
        return vars(self) | {"Bps_by_ranks": dict(self.Bps_by_ranks)}


@dataclass(frozen=True)
class Constants:
    """What is fitted, each with the range that is physical (:data:`RANGES`).

    Parameters
    ----------
    start_s : from the call to the first byte.
    step_s : of each doubling of the ranks, and phase, inside a domain.
    infiniband_step_s, ethernet_step_s : the same across domains.
    link_fraction : of the line rate of scale-up links that a kernel reaches.
    nic_fraction : of that of NICs.
    own_fraction : bytes of its own part that a rank copies, over bytes that it sends.
    hopper_reduction_fraction, blackwell_reduction_fraction : of the line rate that an all-reduce in
        the switches reaches, which sends every byte once.
    """

    start_s: float = 5.62e-6
    step_s: float = 2.11e-6
    infiniband_step_s: float = 4.31e-6
    ethernet_step_s: float = 14.7e-6
    link_fraction: float = 0.863
    nic_fraction: float = 0.984
    own_fraction: float = 0.490
    hopper_reduction_fraction: float = 0.654
    blackwell_reduction_fraction: float = 0.469


PUBLISHED = Constants()
"""Those of the published runs."""

RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "start_s": (1e-6, 20e-6),
        "step_s": (0.2e-6, 10e-6),
        "infiniband_step_s": (0.5e-6, 20e-6),
        "ethernet_step_s": (0.5e-6, 40e-6),
        "link_fraction": (0.5, 1.0),
        "nic_fraction": (0.5, 1.0),
        "own_fraction": (0.0, 1.0),
        "hopper_reduction_fraction": (0.25, 1.0),
        "blackwell_reduction_fraction": (0.25, 1.0),
    }
)
"""Least and most of each constant: a kernel takes microseconds, and no share exceeds the whole."""


class NicsUnknown(SpecError):
    """Several domains are asked for, and nobody says what joins them."""


@dataclass(frozen=True)
class Ranks:
    """Who takes part in a collective, and over which links.

    Parameters
    ----------
    scale_up : of the NPUs.
    n_nodes, n_per_node : servers, and NPUs of each that take part.
    node_nic_Bps : of all NICs of a node, one direction; 0 where it is not known.
    network : :data:`INFINIBAND` or :data:`ETHERNET`.

    Raises
    ------
    SpecError
        For counts below 1, fewer than two ranks, or several domains without NICs.
    """

    scale_up: ScaleUp
    n_nodes: int = 1
    n_per_node: int = 8
    node_nic_Bps: float = 0.0
    network: str = INFINIBAND

    def __post_init__(self) -> None:
        if min(self.n_nodes, self.n_per_node) < 1 or self.n < 2:
            got = f"got {self.n_nodes} nodes of {self.n_per_node} NPUs"
            raise SpecError(Fault(got, "expected two NPUs or more"))
        if self.n_per_node > self.scale_up.most_per_node:
            expected = f"expected at most {self.scale_up.most_per_node}"
            fix = "write more nodes, and their NICs"
            raise SpecError(Fault(f"got {self.n_per_node} NPUs in a node", expected, fix))
        if self.n_domains > 1 and not self.node_nic_Bps > 0:
            got, expected = f"got {self.n_domains} domains without NICs", "expected what joins them"
            fix = "write --nics 8x400Gbps, or nics_per_node and nic_gbps in a file"
            raise NicsUnknown(Fault(got, expected, fix))

    @property
    def n(self) -> int:
        """All ranks."""
        return self.n_nodes * self.n_per_node

    @property
    def n_domains(self) -> int:
        """Domains that hold all ranks: nodes, or racks whose nodes share scale-up links."""
        return -(-self.n // max(self.scale_up.size, self.n_per_node))

    @property
    def n_per_domain(self) -> float:
        """Ranks of a domain; a mean where the last one is not full."""
        return self.n / self.n_domains

    @property
    def link_Bps(self) -> float:
        """Line rate of one rank inside its domain."""
        return self.scale_up.Bps_by_ranks.get(self.n, self.scale_up.npu_Bps)

    @property
    def domain_nic_Bps(self) -> float:
        """Line rate of the NICs of a domain that are near an NPU that takes part."""
        near = min(1.0, self.n_per_node / self.scale_up.n_per_node)
        return near * self.node_nic_Bps * self.n_per_domain / self.n_per_node


def sent_bytes(kind: str, size_bytes: float, n: int) -> float:
    """What every rank sends around a ring: 2 m (n-1)/n of an all-reduce, m of a send, else half.

    >>> sent_bytes("all-reduce", 8.0, 4), sent_bytes("all-gather", 8.0, 4)
    (12.0, 6.0)
    """
    if kind == SEND_RECV:
        return size_bytes
    return size_bytes * (n - 1) / n * (2 if kind == CollectiveKind.ALL_REDUCE.value else 1)


def measured_time_s(
    kind: str, size_bytes: float, ranks: Ranks, constants: Constants = PUBLISHED
) -> float:
    """Time of one collective of a library.

    t = start + a + z + 2 sqrt(a z): a what its steps take, z its bytes over what links carry. The
    last term is what the best number of chunks leaves of a pipeline of a steps (a + z for none).
    z is the larger of two: bytes in the domain over the scale-up links, bytes of a domain over
    its NICs. In the domain a ring, or where switches reduce an all-reduce that sends every byte
    once. Between two domains an all-reduce sends each byte once, too, by two trees.

    Parameters
    ----------
    kind : of :class:`~libra_planner.workload.operations.CollectiveKind`, or ``send_recv``.
    size_bytes : the full vector, byte.
    ranks, constants : as they say.

    Examples
    --------
    1 GiB on a node of 8 H100: 4.0 ms were measured.

    >>> node = Ranks(SCALE_UPS["H100"])
    >>> round(1e3 * measured_time_s("all-reduce", 2**30, node), 1)
    4.1
    """
    z_s = max(line_times_s(kind, size_bytes, ranks, constants))
    a_s = steps_s(kind, ranks, constants)
    return constants.start_s + a_s + z_s + 2 * math.sqrt(a_s * z_s)


def steps_s(kind: str, ranks: Ranks, constants: Constants = PUBLISHED) -> float:
    """a: a time for each doubling of the ranks, twice for an all-reduce."""
    n_phases = 2 if kind == CollectiveKind.ALL_REDUCE.value else 1
    return n_phases * math.log2(ranks.n) * _step_s(ranks, constants)


def line_times_s(
    kind: str, size_bytes: float, ranks: Ranks, constants: Constants = PUBLISHED
) -> tuple[float, float]:
    """Bytes over what the scale-up links carry, and bytes of a domain over its NICs; z is more."""
    inside = _domain_s(kind, size_bytes, ranks, constants)
    return inside, _between_s(kind, size_bytes, ranks, constants)


def send_step_s(ranks: Ranks, constants: Constants) -> float:
    """a of a send from one rank to the next one: one step."""
    return _step_s(ranks, constants)


def _step_s(ranks: Ranks, found: Constants) -> float:
    if ranks.n_domains == 1:
        return found.step_s
    return found.ethernet_step_s if ranks.network == ETHERNET else found.infiniband_step_s


def _domain_s(kind: str, size_bytes: float, ranks: Ranks, found: Constants) -> float:
    """Bytes over scale-up links."""
    if ranks.n_per_domain <= 1:
        return 0.0
    ring = sent_bytes(kind, size_bytes, ranks.n) + found.own_fraction * size_bytes / ranks.n
    ring_s = ring / (found.link_fraction * ranks.link_Bps)
    generation = ranks.scale_up.generation
    if not generation or kind != CollectiveKind.ALL_REDUCE.value or ranks.n == 2:
        return ring_s
    share: float = getattr(found, f"{generation}_reduction_fraction")
    return min(ring_s, size_bytes / (share * ranks.link_Bps))


def is_summed(kind: str, ranks: Ranks, found: Constants = PUBLISHED) -> bool:
    """Whether switches of the domain sum an all-reduce, as that is faster than a ring there.

    >>> [is_summed("all-reduce", Ranks(SCALE_UPS[npu])) for npu in ("A100", "H100")]
    [False, True]
    """
    if ranks.n_per_domain <= 1:
        return False
    without = replace(ranks, scale_up=replace(ranks.scale_up, generation=""))
    return _domain_s(kind, 1.0, ranks, found) < _domain_s(kind, 1.0, without, found)


def _between_s(kind: str, size_bytes: float, ranks: Ranks, found: Constants) -> float:
    """Bytes over the NICs of a domain."""
    if ranks.n_domains == 1:
        return 0.0
    n_bytes = sent_bytes(kind, size_bytes, ranks.n)
    if kind == CollectiveKind.ALL_REDUCE.value and ranks.n_domains == 2:
        n_bytes = size_bytes
    elif kind == CollectiveKind.ALL_TO_ALL.value:
        n_inside = ranks.n_per_domain
        n_bytes = n_inside * size_bytes * (1 - n_inside / ranks.n)
    elif kind == SEND_RECV:
        n_bytes = size_bytes * ranks.n_per_domain
    return n_bytes / (found.nic_fraction * ranks.domain_nic_Bps)


MOST_RANKS, SIZES, ACROSS = 1440, (2.0**10, 2.0**34), ("A100", "H100", "GB200")
"""The most ranks, the range of sizes, and the NPUs in several domains of the measured runs."""

LARGE_BYTES = 2**26
"""From this size on bandwidth decides, and the law is surer."""


@dataclass(frozen=True)
class Bands:
    """What to expect of the error of a time, by class (C23): mean absolute errors.

    The usual ones are of published curves that were left out of the fit (docs/accuracy.md).

    Parameters
    ----------
    inside_large_fraction, inside_small_fraction : in a domain, from 64 MiB on and below.
    across_large_fraction, across_small_fraction : of several domains.
    source : where they stand.
    kinds, n_most_ranks : what they were measured on; beyond it the published ones count where they
        are larger. No kinds are all.
    """

    inside_large_fraction: float = 0.08
    inside_small_fraction: float = 0.16
    across_large_fraction: float = 0.16
    across_small_fraction: float = 0.32
    source: str = "docs/accuracy.md"
    kinds: tuple[str, ...] = ()
    n_most_ranks: int = MOST_RANKS

    def error_fraction(self, kind: str, size_bytes: float, ranks: Ranks) -> float:
        """That of one collective.

        >>> PUBLISHED_BANDS.error_fraction("all-reduce", 2**30, Ranks(SCALE_UPS["H100"]))
        0.08
        """
        name = f"{error_class(size_bytes, ranks)}_fraction"
        own: float = getattr(self, name)
        covered = (not self.kinds or kind in self.kinds) and ranks.n <= self.n_most_ranks
        return own if covered else max(own, getattr(PUBLISHED_BANDS, name))


PUBLISHED_BANDS = Bands()


def error_class(size_bytes: float, ranks: Ranks) -> str:
    """The class of a collective's error: in or across domains, large or small.

    >>> error_class(2**20, Ranks(SCALE_UPS["H100"]))
    'inside_small'
    """
    where = "across" if ranks.n_domains > 1 else "inside"
    return f"{where}_{'large' if size_bytes >= LARGE_BYTES else 'small'}"


SCALE_UPS: Mapping[str, ScaleUp] = MappingProxyType(
    {
        "V100": ScaleUp(
            150e9, most_per_node=16, Bps_by_ranks=MappingProxyType({2: 25e9, 4: 100e9})
        ),
        "A100": ScaleUp(300e9, most_per_node=16),
        "H100": ScaleUp(450e9, generation="hopper"),
        "H200": ScaleUp(450e9, generation="hopper"),
        "B200": ScaleUp(900e9, generation="blackwell"),
        "GB200": ScaleUp(900e9, size=72, n_per_node=4, most_per_node=72, generation="blackwell"),
    }
)
"""By NPU: NVLink 2 to 5, of 6, 12, 18 and 18 links of 25, 25, 25 and 50 GB/s. V100 are joined as
a mesh of cubes: two have a link, four have four. The NPU catalogue says the same of those that it
has, which a test holds together: the core reads no files."""


def measured_npu(name: str) -> str:
    """The NPU of :data:`SCALE_UPS` that is meant, however its name is written.

    Raises
    ------
    UnknownName
        For NPUs whose collectives were not measured, such as PCIe cards.

    Examples
    --------
    >>> measured_npu("h100-sxm"), measured_npu("H100 80GB HBM3"), measured_npu("GB200 NVL72")
    ('H100', 'H100', 'GB200')
    """
    words = re.split(r"[-\s_(]+", name.strip().casefold().removeprefix("nvidia").lstrip(" -_"))
    words = words[1:] if words[0] == "tesla" else words
    if {"pcie", "nvl"} & set(words):
        expected = f"expected NPUs with scale-up links: {', '.join(SCALE_UPS)}"
        raise SpecError(Fault(f"got {name!r}", expected))
    if words[0].upper() not in SCALE_UPS:
        raise unknown_name("system", name, list(SCALE_UPS))
    return words[0].upper()


def scale_up(name: str) -> ScaleUp:
    """The scale-up links of an NPU, however its name is written.

    >>> scale_up("h100-sxm") is scale_up("H100 80GB HBM3"), scale_up("GB200 NVL72").size
    (True, 72)
    """
    return SCALE_UPS[measured_npu(name)]


TOLD_NODE = ("B200", CollectiveKind.ALL_REDUCE.value, 8)
"""NPU, kind and ranks of figures that stand without a log or a size, and are not scored."""
TOLD_BUS_Bps: Mapping[float, float] = MappingProxyType({2.0**29: 704e9, 2.0**34: 830e9})
"""Bus bandwidth that they have by size, bytes/s: NVIDIA/nccl issue 1807 (NCCL 2.27). That of 16 GiB
has no size there: the largest that was measured is taken."""


def told_faster_fraction(npu: str, kind: str, ranks: Ranks, size_bytes: float = 2.0**34) -> float:
    """By how much more bandwidth is told than the law has; 0 where nothing is told.

    Parameters
    ----------
    npu : as :func:`measured_npu` names it.
    kind : of :class:`~libra_planner.workload.operations.CollectiveKind`.
    ranks : that take part.
    size_bytes : the full vector; told of sizes from that of the nearest figure below it on.

    Examples
    --------
    >>> node = Ranks(SCALE_UPS["B200"])
    >>> [round(told_faster_fraction("B200", "all-reduce", node, 2.0**n), 3) for n in (28, 29, 34)]
    [0.0, 0.14, 0.146]
    """
    if (npu, kind, ranks.n) != TOLD_NODE or ranks.n_nodes > 1:
        return 0.0
    below = [size for size in TOLD_BUS_Bps if size <= size_bytes]
    if not below:
        return 0.0
    size = max(below)
    law_Bps = sent_bytes(kind, size, ranks.n) / measured_time_s(kind, size, ranks)
    return max(0.0, TOLD_BUS_Bps[size] / law_Bps - 1)


def extrapolations(npu: str, size_bytes: float, ranks: Ranks) -> Iterator[str]:
    """In what a collective is beyond the measured runs.

    Parameters
    ----------
    npu : as :func:`measured_npu` names it.
    size_bytes : the full vector.
    ranks : that take part.

    Examples
    --------
    >>> list(extrapolations("H200", 2**30, Ranks(SCALE_UPS["H200"], 2, 8, 4e11)))
    ['H200 across domains (measured A100, H100, GB200)']
    """
    if ranks.n > MOST_RANKS:
        yield f"{ranks.n:,} ranks (measured up to {MOST_RANKS:,})"
    least, most = SIZES
    if not least <= size_bytes <= most:
        yield f"{size_bytes:.3g} bytes (measured from {least:g} to {most:.3g})"
    if ranks.n_domains > 1 and npu not in ACROSS:
        yield f"{npu} across domains (measured {', '.join(ACROSS)})"
