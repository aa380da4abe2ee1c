"""Fabric files: the switches and links that flows run over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, SkipValidation

from libra_planner.errors import Fault, Place, SpecError, UnknownName, closest, shown, unknown_name
from libra_planner.fabric.clos import Clos, Indices, Layer
from libra_planner.fabric.realization import PRESETS, preset_fabric
from libra_planner.plan.options import port_bytes_per_s
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, is_whole, read_document
from libra_planner.reading.models import FaultCollector, Model, core_fields, validated

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
    host_Bps : Bandwidth of a host's link, such as 400 Gbps.
    switch_radix : Most ports of a switch.
    failed_cables : Cables that are down, such as [leaf 3, spine 5] or, of several between the same
        two switches, [leaf 3, spine 5, 1]; [spine 5] is all cables of a switch.
    """

    host_Bps: _Speed = Field(alias="host_link")
    switch_radix: _Number | None = None
    failed_cables: Annotated[list[_Cable], Field(max_length=10_000)] = Field([], alias="failed")


class OneSwitchSpec(_FabricSpec):
    """One switch."""

    kind: Literal["switch"]
    hosts_per_leaf: _Number = Field(alias="hosts")


class LeafSpineSpec(_FabricSpec):
    """Two tiers: every leaf joined to every spine.

    Parameters
    ----------
    uplink_Bps : Bandwidth of a link between leaf and spine.
    """

    kind: Literal["leaf_spine"]
    n_leaves: _Number = Field(alias="leaves")
    n_spines: _Number = Field(alias="spines")
    hosts_per_leaf: _Number
    n_parallel: _Number = Field(1, alias="links_per_leaf_spine")
    uplink_Bps: _Speed = Field(alias="uplink")


class ThreeTierSpec(LeafSpineSpec):
    """Three tiers: pods of leaves and spines, spine s of every pod joined to the same cores.

    Parameters
    ----------
    n_leaves : Leaves of a pod.
    n_spines : Spines of a pod.
    n_cores : Cores that each spine is joined to.
    core_Bps : Bandwidth of a link between spine and core.
    """

    kind: Literal["three_tier"]  # type: ignore[assignment]
    n_pods: _Number = Field(alias="pods")
    n_cores: _Number = Field(alias="cores")
    core_parallel: _Number = Field(1, alias="links_per_spine_core")
    core_Bps: _Speed = Field(alias="core_link")


_SPECS: dict[str, type[OneSwitchSpec | LeafSpineSpec]] = {
    "switch": OneSwitchSpec,
    "leaf_spine": LeafSpineSpec,
    "three_tier": ThreeTierSpec,
}


_TABLES = (".csv", ".tsv", ".parquet")
"""Endings of files that hold no fabric: flow lists, given in its place."""


def load_fabric(name: str) -> Clos:
    """A fabric from a file, or a bundled preset by its name.

    Raises
    ------
    SpecError
        With every fault of the file, each at its line and column.
    """
    if Path(name).suffix.lower() in _TABLES:
        expected = "expected a fabric: its hosts, leaves and spines"
        fix = "give the fabric first, then the flow list"
        raise SpecError(Fault("got a table", expected, fix, "", Place(name)))
    known = bundled.names("flow-fabrics")
    if bundled.is_path(name) or name in known or Path(name).exists():
        return _fabric(read_document(bundled.given_file(name, bundled.FLOW_FABRICS)))
    if name in PRESETS:
        return preset_fabric(name)
    fault = unknown_name("fabric preset", name, [*PRESETS, *known]).faults[0]
    fix = f"{fault.fix} (or give a path ending in .yaml)"
    raise UnknownName(replace(fault, fix=fix, place=Place(name)))


def _fabric(document: Document) -> Clos:
    spec = validated(_spec_class(document), document)
    faults = FaultCollector(document)
    numbers = core_fields(spec, Clos)
    for name, field in type(spec).model_fields.items():
        if name.endswith("_Bps"):
            key = (str(field.alias),)
            numbers[name] = faults.attempt(key, port_bytes_per_s, getattr(spec, name)) or 1.0
    fabric = Clos(**numbers)
    if fabric.n_links > MOST_LINKS:
        got, expected = f"got {fabric.n_links:,} directed links", f"at most {MOST_LINKS:,}"
        faults.note(Fault(got, f"expected {expected}"), ())
    faults.attempt(("switch_radix",), _check_radix, fabric, spec.switch_radix)
    if fabric.n_links > MOST_LINKS:
        return faults.required(None)
    found = [
        faults.attempt(("failed", i), _links_of_cable, fabric, cable)
        for i, cable in enumerate(spec.failed_cables)
    ]
    faults.required(fabric)
    failed = np.concatenate([np.zeros(0, dtype=np.int64), *(x for x in found if x is not None)])
    return replace(fabric, failed=np.unique(failed))


def _spec_class(document: Document) -> type[OneSwitchSpec | LeafSpineSpec]:
    """The model for the document's ``kind``; a wrong one is the only fault worth telling."""
    if not isinstance(document.value, dict):  # The model refuses it.
        return OneSwitchSpec
    kind, known = document.value.get("kind"), f"known: {', '.join(_SPECS)}"
    if isinstance(kind, str) and kind in _SPECS:
        return _SPECS[kind]
    if "kind" not in document.value:
        fault = Fault("got nothing", "expected this key", f"add e.g. 'kind: leaf_spine'; {known}")
    else:
        fix = closest(kind, _SPECS) if isinstance(kind, str) else known
        fault = Fault(f"got {shown(kind)}", "expected a kind of fabric", fix)
    raise SpecError(fault.located(document.place(("kind",)), "kind"))


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


def _links_of_cable(fabric: Clos, cable: Any) -> Indices:
    """Both directions of the cables that one entry of ``failed`` names."""
    names = cable if isinstance(cable, list) else [cable]
    *ends, port = names if len(names) == 3 else [*names, None]
    if not 1 <= len(ends) <= 2:
        raise SpecError(_not_a_cable(f"{len(names)} entries"))
    wanted = [_end(fabric, name) for name in ends]
    if len(names) == 3 and (not is_whole(port) or port < 0):
        raise SpecError(_not_a_cable(f"{shown(port)} for the number of a parallel link"))
    found = [np.zeros(0, dtype=np.int64)]
    for layer in fabric.layers[: len(fabric.layers) // 2]:  # Those that go up.
        tiers = _TIERS[layer.name]
        if all(tier in tiers for tier, _ in wanted):
            lower, upper, parallel = link_ends(fabric, layer)
            number_of = dict(zip(tiers, (lower, upper), strict=True))
            chosen = np.ones(layer.n_links, dtype=np.bool_) if port is None else parallel == port
            for tier, number in wanted:
                chosen &= number_of[tier] == number
            found.append(layer.start + np.flatnonzero(chosen))
    up = np.concatenate(found)
    if not up.size:
        raise SpecError(_not_a_cable(f"no cable between {' and '.join(map(str, names))}"))
    return np.concatenate([up, fabric.reverse(up)])


def _end(fabric: Clos, name: Any) -> tuple[str, int]:
    """Tier and number of an end of a cable."""
    n_of = {"host": fabric.n_hosts, **fabric.n_switches}
    tier, _, number = str(name).strip().partition(" ")
    if tier not in n_of or not (number.isascii() and number.isdigit()):
        raise SpecError(_not_a_cable(shown(name)))
    number = number.lstrip("0") or "0"
    if len(number) > _LONGEST_NUMBER or int(number) >= n_of[tier]:
        raise SpecError(Fault(f"got {shown(name)}", f"expected a {tier} of 0 .. {n_of[tier] - 1}"))
    return tier, int(number)


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
