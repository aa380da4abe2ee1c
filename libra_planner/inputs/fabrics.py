"""Fabric files: the switches and links that flows run over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, SkipValidation

from libra_planner.errors import Fault, Place, SpecError, UnknownName, closest
from libra_planner.fabric.clos import Clos, Indices, Layer
from libra_planner.fabric.realization import preset_fabric
from libra_planner.plan.options import speed_bytes_per_s
from libra_planner.reading.bundled import is_path
from libra_planner.reading.document import Document, read_document, shown
from libra_planner.reading.models import FaultCollector, Model, validated

MOST_LINKS = 20_000_000
"""Most directed links of a fabric; beyond it a number is a slip of the keyboard."""

_Number: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
# Read on their own, with messages that name the fix.
_Speed: TypeAlias = SkipValidation[str]
_Cable: TypeAlias = SkipValidation[list[str]]


class _FabricSpec(Model):
    """What all kinds of fabrics say.

    Parameters
    ----------
    host_link : Bandwidth of a host's link, such as 400 Gbps.
    switch_radix : Most ports of a switch.
    failed : Cables that are down, such as [leaf 3, spine 5] or, of several between the same two
        switches, [leaf 3, spine 5, 1]; [spine 5] is all cables of a switch.
    """

    host_link: _Speed
    switch_radix: _Number | None = None
    failed: Annotated[list[_Cable], Field(max_length=10_000)] = Field([])


class SwitchSpec(_FabricSpec):
    """One switch."""

    kind: Literal["switch"]
    hosts: _Number

    @property
    def sizes(self) -> dict[str, float]:
        """What a fabric calls its numbers."""
        return {"hosts_per_leaf": self.hosts}


class LeafSpineSpec(_FabricSpec):
    """Two tiers: every leaf joined to every spine.

    Parameters
    ----------
    uplink : Bandwidth of a link between leaf and spine.
    """

    kind: Literal["leaf_spine"]
    leaves: _Number
    spines: _Number
    hosts_per_leaf: _Number
    links_per_leaf_spine: _Number = 1
    uplink: _Speed

    @property
    def sizes(self) -> dict[str, float]:
        """What a fabric calls its numbers."""
        return {
            "hosts_per_leaf": self.hosts_per_leaf,
            "n_leaves": self.leaves,
            "n_spines": self.spines,
            "n_parallel": self.links_per_leaf_spine,
        }


class ThreeTierSpec(LeafSpineSpec):
    """Three tiers: pods of leaves and spines, spine s of every pod joined to the same cores.

    Parameters
    ----------
    leaves : Leaves of a pod.
    spines : Spines of a pod.
    cores : Cores that each spine is joined to.
    core_link : Bandwidth of a link between spine and core.
    """

    kind: Literal["three_tier"]  # type: ignore[assignment]
    pods: _Number
    leaves: _Number
    spines: _Number
    cores: _Number
    links_per_spine_core: _Number = 1
    core_link: _Speed

    @property
    def sizes(self) -> dict[str, float]:
        """What a fabric calls its numbers."""
        own = {"n_pods": self.pods, "n_cores": self.cores}
        return super().sizes | own | {"core_parallel": self.links_per_spine_core}


_SPEEDS = {"host_link": "host_Bps", "uplink": "uplink_Bps", "core_link": "core_Bps"}
"""Keys of speeds, and what a fabric calls them."""

_SPECS: dict[str, type[SwitchSpec | LeafSpineSpec]] = {
    "switch": SwitchSpec,
    "leaf_spine": LeafSpineSpec,
    "three_tier": ThreeTierSpec,
}


def load_fabric(name: str) -> Clos:
    """A fabric from a file, or a bundled preset by its name.

    Raises
    ------
    SpecError
        With every fault of the file, each at its line and column.
    """
    if is_path(name) or Path(name).exists():
        return _fabric(read_document(name))
    return _preset(name)


def _preset(name: str) -> Clos:
    try:
        return preset_fabric(name)
    except UnknownName as error:
        fix = f"{error.faults[0].fix} (or give a path ending in .yaml)"
        raise UnknownName(replace(error.faults[0], fix=fix, place=Place(name))) from None


def _fabric(document: Document) -> Clos:
    spec = validated(_spec_class(document), document)
    faults = FaultCollector(document)
    speeds = {
        name: faults.attempt((key,), speed_bytes_per_s, getattr(spec, key)) or 1.0
        for key, name in _SPEEDS.items()
        if hasattr(spec, key)
    }
    numbers: dict[str, Any] = spec.sizes | speeds
    fabric = Clos(**numbers)
    faults.attempt((), _check_size, fabric)
    faults.attempt(("switch_radix",), _check_radix, fabric, spec.switch_radix)
    if fabric.n_links > MOST_LINKS:
        return faults.required(None)
    ends = _Cables(fabric)
    found = [
        faults.attempt(("failed", i), ends.links, cable) for i, cable in enumerate(spec.failed)
    ]
    faults.required(fabric)
    failed = np.concatenate([np.zeros(0, dtype=np.int64), *(x for x in found if x is not None)])
    return replace(fabric, failed=np.unique(failed))


def _spec_class(document: Document) -> type[SwitchSpec | LeafSpineSpec]:
    """The model for the document's ``kind``; a wrong one is the only fault worth telling."""
    value: Any = document.value
    kind = value.get("kind") if isinstance(value, dict) else "switch"
    if isinstance(value, dict) and "kind" not in value:
        fix = f"add e.g. 'kind: leaf_spine'; known: {', '.join(_SPECS)}"
        fault = Fault("got nothing", "expected this key", fix, "kind", document.place(()))
        raise SpecError(fault)
    if not isinstance(kind, str) or kind not in _SPECS:
        fix = closest(kind, _SPECS) if isinstance(kind, str) else f"known: {', '.join(_SPECS)}"
        expected = "expected a kind of fabric"
        raise SpecError(
            Fault(f"got {shown(kind)}", expected, fix, "kind", document.place(("kind",)))
        )
    return _SPECS[kind]


def _check_size(fabric: Clos) -> None:
    if fabric.n_links > MOST_LINKS:
        expected = f"expected at most {MOST_LINKS:,}"
        raise SpecError(Fault(f"got {fabric.n_links:,} directed links", expected))


def ports_used(fabric: Clos) -> dict[str, float]:
    """Ports of one switch of each tier that have a cable.

    Examples
    --------
    >>> ports_used(Clos(hosts_per_leaf=4, n_leaves=6, n_spines=8, host_Bps=1.0, uplink_Bps=1.0))
    {'leaf': 12, 'spine': 6}
    """
    down = fabric.n_leaves * fabric.n_parallel
    ports = {
        "leaf": fabric.hosts_per_leaf + fabric.n_uplinks,
        "spine": down + fabric.n_core_links,
        "core": fabric.n_pods * fabric.core_parallel,
    }
    return {tier: ports[tier] for tier in fabric.n_switches}


def _check_radix(fabric: Clos, radix: int | None) -> None:
    over = {tier: n for tier, n in ports_used(fabric).items() if radix is not None and n > radix}
    if over:
        names = {"leaf": "leaf" if fabric.n_spines else "switch"}
        needs = " and ".join(
            f"a {names.get(tier, tier)} needs {n:,} ports" for tier, n in over.items()
        )
        fix = "use larger switches, fewer links, or another tier"
        raise SpecError(Fault(f"got {radix}, but {needs}", "expected ports enough", fix))


class _Cables:
    """Which links the names of a cable mean."""

    def __init__(self, fabric: Clos) -> None:
        self.fabric = fabric
        self.n_of = {"host": fabric.n_hosts, **fabric.n_switches}

    def links(self, cable: Any) -> Indices:
        """Both directions of the cables that one entry of ``failed`` names."""
        names = cable if isinstance(cable, list) else [cable]
        n_ends = len(names) - (len(names) == 3)
        if not 1 <= n_ends <= 2:
            raise SpecError(_not_a_cable(f"{len(names)} entries"))
        ends = [self._end(name) for name in names[:n_ends]]
        port = self._port(names[2]) if len(names) == 3 else None
        found = [self._between(layer, ends, port) for layer in self._up_layers(ends)]
        up = np.concatenate([np.zeros(0, dtype=np.int64), *found])
        if not up.size:
            raise SpecError(_not_a_cable(f"no cable between {' and '.join(map(str, names))}"))
        return np.concatenate([up, self.fabric.reverse(up)])

    def _up_layers(self, ends: list[tuple[str, int]]) -> Iterator[Layer]:
        for layer in self.fabric.layers[: len(self.fabric.layers) // 2]:
            tiers = _TIERS[layer.name]
            if all(tier in tiers for tier, _ in ends):
                yield layer

    def _end(self, name: Any) -> tuple[str, int]:
        tier, _, number = str(name).strip().partition(" ")
        if tier not in self.n_of or not (number.isascii() and number.isdigit()):
            raise SpecError(_not_a_cable(shown(name)))
        number = number.lstrip("0") or "0"
        if len(number) > _LONGEST_NUMBER or int(number) >= self.n_of[tier]:
            got, most = f"got {shown(name)}", self.n_of[tier] - 1
            raise SpecError(Fault(got, f"expected a {tier} of 0 .. {most}"))
        return tier, int(number)

    @staticmethod
    def _port(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise SpecError(_not_a_cable(f"{shown(value)} for the number of a parallel link"))
        return value

    def _between(self, layer: Layer, ends: list[tuple[str, int]], port: int | None) -> Indices:
        """Links of an up layer that have all the ends."""
        lower, upper, parallel = link_ends(self.fabric, layer)
        number_of = dict(zip(_TIERS[layer.name], (lower, upper), strict=True))
        chosen = np.ones(layer.n_links, dtype=np.bool_)
        for tier, number in ends:
            chosen &= number_of[tier] == number
        if port is not None:
            chosen &= parallel == port
        return layer.start + np.flatnonzero(chosen)


_TIERS = {"host_up": ("host", "leaf"), "leaf_up": ("leaf", "spine"), "spine_up": ("spine", "core")}
"""Lower and upper tier of the layers that go up."""

_LONGEST_NUMBER = 18


def link_ends(fabric: Clos, layer: Layer) -> tuple[Indices, Indices, Indices]:
    """Lower switch (or host), upper switch and parallel link of every link of an up layer."""
    index = np.arange(layer.n_links)
    if layer.is_host:
        return index, index // fabric.hosts_per_leaf, np.zeros_like(index)
    if layer.name == "leaf_up":
        bundle, parallel = np.divmod(index, fabric.n_parallel)
        leaf, spine = np.divmod(bundle, fabric.n_spines)
        return leaf, leaf // fabric.n_leaves * fabric.n_spines + spine, parallel
    bundle, parallel = np.divmod(index, fabric.core_parallel)
    spine, core = np.divmod(bundle, fabric.n_cores)
    pod, position = np.divmod(spine, fabric.n_spines)
    plane = pod // fabric.n_pods
    return spine, (plane * fabric.n_spines + position) * fabric.n_cores + core, parallel


def _not_a_cable(got: str) -> Fault:
    fix = "write e.g. [leaf 3, spine 5], or [spine 5] for all of a switch's cables"
    return Fault(f"got {got}", "expected the two ends of a cable", fix)
