"""How a plan builds its dimensions: `fabric.realization` into the settings of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.fabric.realization import preset
from libra_planner.fabric.topology import (
    MAX_RADIX,
    SCALE_UP,
    Realization,
    SwitchSettings,
    Topology,
    TrafficSettings,
    default_realization,
)
from libra_planner.plan.options import MAX_PORTS, speed_bytes_per_s
from libra_planner.reading.document import Document, Key, is_number, is_whole, shown
from libra_planner.reading.models import Model, Reader, Text, validated

AUTO = "auto"
_MOST_FAILED = 10**6


def _count(value: Any) -> int | None:
    if value == AUTO:
        return None
    if is_whole(value) and 1 <= value <= MAX_PORTS:
        return int(value)
    expected = f"expected a whole number from 1 to {MAX_PORTS:,}, or auto"
    raise ValueError(f"got {shown(value)}, {expected}")


def _speed(value: Any) -> float:
    try:
        return speed_bytes_per_s(value)
    except SpecError as error:
        raise ValueError(str(error)) from None


def _ratio(value: Any) -> float:
    if is_number(value) and 0.01 <= value <= 1000:
        return float(value)
    ratio = isinstance(value, str) and value.replace(" ", "").endswith(":1")
    fix = f"write {value.replace(' ', '')[:-2]}" if ratio else "2 means 2:1"
    raise ValueError(f"got {shown(value)}, expected a number from 0.01 to 1,000; {fix}")


def _failures(value: Any) -> Any:
    """A bare number is one of links."""
    if isinstance(value, dict):
        return value
    if is_whole(value) and 0 <= value <= _MOST_FAILED:
        return {"links": value}
    expected = "expected a whole number of cables, or {links: N, spines: N, seed: S}"
    raise ValueError(f"got {shown(value)}, {expected}")


_AUTO_COUNT = WithJsonSchema(
    {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_PORTS}, {"const": AUTO}]}
)
AutoCount: TypeAlias = Annotated[int | None, BeforeValidator(_count), _AUTO_COUNT]
"""A whole number of 1 or more, or auto, which is ``None``."""

Speed: TypeAlias = Annotated[
    float, BeforeValidator(_speed), WithJsonSchema({"type": "string", "pattern": r"[0-9]\s*\w*/?s"})
]
"""A bandwidth written with its unit, in byte/s."""

Ratio: TypeAlias = Annotated[
    float,
    BeforeValidator(_ratio),
    WithJsonSchema({"type": "number", "minimum": 0.01, "maximum": 1000}),
]
FailureCount: TypeAlias = Annotated[int, Field(ge=0, le=_MOST_FAILED)]


class FailuresSpec(Model):
    """What is down, drawn at random.

    Parameters
    ----------
    links : Cables between switches.
    spines : Spines with all their links.
    seed : Of the draw.
    """

    links: FailureCount = 0
    spines: FailureCount = 0
    seed: Annotated[int, Field(ge=0, le=2**63)] = 0


AnyFailures: TypeAlias = Annotated[
    FailuresSpec,
    BeforeValidator(_failures, json_schema_input_type=Annotated[int, Field(ge=0)] | FailuresSpec),
]


class SwitchSpec(Model):
    """How a switch dimension is built; what is not given keeps its default.

    Parameters
    ----------
    preset : Published setting to start from, such as rail-8x400G.
    switch_radix : Ports of a switch.
    port_speed : Speed of every port, such as 400 Gbit/s; without it exactly what the design needs.
    nics : NICs per NPU, one port each; auto (default): as many as needed.
    oversubscription : Host bandwidth of a leaf over its uplink bandwidth; 2 is 2:1.
    wiring : rail: a network per group of the dimension; rail_optimized: one network, leaves of NPUs
        with the same inner index; top_of_rack: one network, leaves of neighbours.
    npus_per_rack : NPUs that stand in one rack. With top_of_rack, cables to hosts have no optics
        where the NPUs of every leaf stand in one rack; without this key none do.
    parallel_links : Links between a leaf and a spine; auto: the fewest spines.
    leaves : Leaves of a network; auto: the fewest.
    spines : Spines of a network; auto: the fewest.
    failed_links : Cables between switches that are down, or {links, spines, seed}.
    """

    preset: Text | None = None
    switch_radix: Annotated[int, Field(ge=2, le=MAX_RADIX)] = 64
    port_speed: Speed | None = None
    nics: AutoCount = None
    oversubscription: Ratio = 1.0
    wiring: Literal["rail", "rail_optimized", "top_of_rack"] = "rail"
    npus_per_rack: Annotated[int, Field(ge=1)] | None = None
    parallel_links: AutoCount = None
    leaves: AutoCount = None
    spines: AutoCount = None
    failed_links: AnyFailures = FailuresSpec()


def _with_overrides(schema: dict[str, Any]) -> None:
    """Any other key is a dimension, whose value has the keys of a switch."""
    traffic = ("placement", "queue_pairs", "npus_per_address")
    own = {key: value for key, value in schema["properties"].items() if key not in traffic}
    schema["additionalProperties"] = {
        "type": "object",
        "additionalProperties": False,
        "properties": own,
    }


class RealizationSpec(SwitchSpec):
    """How the dimensions are built from whole links; a switch's name holds what is its own.

    Parameters
    ----------
    placement : How a job's NPUs are laid out over the cluster's.
    queue_pairs : Queue pairs per connection; messages are split over them.
    npus_per_address : NPUs that share an IP address; 1 if each has its own.
    """

    model_config = ConfigDict(json_schema_extra=_with_overrides)

    placement: Literal["contiguous", "rail", "random"] = "contiguous"
    queue_pairs: Annotated[int, Field(ge=1, le=128)] = 1
    npus_per_address: Annotated[int, Field(ge=1, le=1024)] = 1


KEY: Key = ("fabric", "realization")
"""Where a plan says how its dimensions are built."""

_SETTINGS = {
    "switch_radix": "switch_radix",
    "port_speed": "port_speed_Bps",
    "nics": "n_nics",
    "oversubscription": "oversubscription",
    "wiring": "wiring",
    "npus_per_rack": "npus_per_rack",
    "parallel_links": "n_parallel",
    "leaves": "n_leaves",
    "spines": "n_spines",
}


_PORT_KEYS = {"switch_radix", "port_speed", "nics"}
"""Keys that a scale-up switch has, too; any other one under its name makes it a network."""


def load_realization(
    document: Document, topology: Topology, has_nic: Sequence[bool]
) -> Realization | None:
    """How a plan's dimensions are built; ``None`` where it does not say.

    What the section says of all switches concerns those that are reached through NICs, and
    no others (C14).

    Parameters
    ----------
    document : the plan.
    topology : its fabric.
    has_nic : of each dimension, whether it is a switch whose tier has a NIC price.

    Raises
    ------
    SpecError
        With every fault of the section, each at its place.
    """
    given = document.value["fabric"].get("realization")
    if given is None:
        return None
    reader = _RealizationReader(document, topology, has_nic)
    return reader.required(reader.read(given))


@dataclass
class _RealizationReader(Reader):
    topology: Topology
    has_nic: Sequence[bool]
    notes: dict[str, None] = field(default_factory=dict)

    def read(self, given: Any) -> Realization:
        """The settings; faults are noted and what they concern left at its default."""
        usual = default_realization(self.topology, self.has_nic)
        names = self._override_names(given) if isinstance(given, dict) else []
        spec = self.attempt(KEY, partial(validated, RealizationSpec, self._without(names), KEY))
        if spec is None:
            spec = RealizationSpec()
        common = self._settings(SwitchSettings(), spec, KEY)
        switches = [
            common if nic else switch
            for nic, switch in zip(self.has_nic, usual.switches, strict=True)
        ]
        first: dict[int, str] = {}
        for name in names:
            dims = self._switches(name)
            key = (*KEY, name)
            own = self.attempt(key, partial(validated, SwitchSpec, self.document, key))
            for dim in dims:
                self._refuse_twice(name, first.setdefault(dim, name))
                one_switch = not self.has_nic[dim] and self._is_one_switch(own)
                base = SCALE_UP if one_switch else common
                start = None if one_switch else spec.preset
                own = own or SwitchSpec()
                switches[dim] = self._settings(base, own, (*KEY, name), start=start)
        return Realization(
            switches=tuple(switches),
            traffic=TrafficSettings(spec.placement, spec.queue_pairs, spec.npus_per_address),
            notes=tuple(self.notes),
        )

    @staticmethod
    def _is_one_switch(own: SwitchSpec | None) -> bool:
        """Whether what is said of a switch without a NIC leaves it a single one."""
        return own is None or own.model_fields_set <= _PORT_KEYS

    def _override_names(self, given: dict[str, Any]) -> list[str]:
        """Keys that name a dimension; any other unknown key is a fault, unless it holds a map."""
        known = {*RealizationSpec.model_fields}
        dims = {*self.topology.labels, *self.topology.tiers}
        return [
            name
            for name, value in given.items()
            if name not in known and (name in dims or isinstance(value, dict))
        ]

    def _without(self, names: Sequence[str]) -> Document:
        """The document without the overrides, for the model of the rest."""
        section = self.document.value["fabric"]["realization"]
        if isinstance(section, dict):
            section = {key: value for key, value in section.items() if key not in names}
        return replace(self.document, value={"fabric": {"realization": section}})

    def _settings(
        self, base: SwitchSettings, spec: SwitchSpec, key: Key, *, start: str | None = None
    ) -> SwitchSettings:
        """What is given, over the preset it names, over ``base``, which is from ``start``."""
        if spec.preset is not None:
            chosen = self.attempt((*key, "preset"), partial(preset, spec.preset))
            if chosen is not None:
                base = chosen.settings
                self.notes |= dict.fromkeys(chosen.notes)
        given = spec.model_fields_set & set(_SETTINGS)
        values = {_SETTINGS[name]: getattr(spec, name) for name in given}
        if spec.preset or start:
            self._note_overrides(spec.preset or start, base, spec, key)
        if "failed_links" in spec.model_fields_set:
            failed = spec.failed_links
            values |= {"n_failed_links": failed.links, "n_failed_spines": failed.spines}
            values["failure_seed"] = failed.seed
        return replace(base, **values)

    def _note_overrides(
        self, preset: str | None, base: SwitchSettings, spec: SwitchSpec, key: Key
    ) -> None:
        """What of a preset does not hold, as the plan writes it."""
        section = self.document.at(key)
        changed = [
            f"{name}: {shown(section[name])}"
            for name, setting in _SETTINGS.items()
            if name in spec.model_fields_set and getattr(spec, name) != getattr(base, setting)
        ]
        if changed:
            of = "" if key == KEY else f" for {key[-1]}"
            text = f"{preset} is changed by the plan{of}: {', '.join(changed)}"
            self.notes[text] = None

    def _switches(self, name: str) -> list[int]:
        """Switch dimensions of a label or tier; a fault where there are none."""
        pairs = list(zip(self.topology.labels, self.topology.tiers, strict=True))
        dims = [i for i, names in enumerate(pairs) if name in names]
        switches = [i for i in dims if default_realization(self.topology).switches[i] is not None]
        if not dims:
            known = self._switch_names()
            numbered = name.startswith("dim") and name[3:].isdigit()
            near = closest(name, [*RealizationSpec.model_fields, *known])
            fix = f"known: {', '.join(known) or 'none, it has no switch'}" if numbered else near
            expected = "expected a key of realization or a switch dimension of this fabric"
            self._note(name, Fault(f"got {name!r}", expected, fix))
        elif not switches:
            got = f"got {name}, which is {self.topology.dimensions[dims[0]]}"
            known = self._switch_names()
            fix = f"known: {', '.join(known)}" if known else "remove it"
            self._note(name, Fault(got, "expected a switch: other links follow from C2", fix))
        return switches

    def _switch_names(self) -> list[str]:
        switches = default_realization(self.topology).switches
        dims = [i for i, switch in enumerate(switches) if switch is not None]
        names = [names[i] for names in (self.topology.labels, self.topology.tiers) for i in dims]
        return list(dict.fromkeys(names))

    def _refuse_twice(self, name: str, first: str) -> None:
        if name != first:
            got = f"got {shown(name)} beside {shown(first)}, which name one dimension"
            self._note(name, Fault(got, "expected it once", "remove one"))

    def _note(self, name: str, fault: Fault) -> None:
        self.note(fault, (*KEY, name), at_key=True)
