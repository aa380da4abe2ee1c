"""How a plan builds its dimensions: `fabric.realization` into the settings of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from libra_planner import allowed
from libra_planner.errors import Fault, close_names, closest_dimension, is_numbered, shown
from libra_planner.fabric.realization import preset
from libra_planner.fabric.topology import (
    MAX_RADIX,
    RAIL,
    RAIL_OPTIMIZED,
    SCALE_UP,
    STACKED,
    TOP_OF_RACK,
    Realization,
    SwitchSettings,
    Topology,
    TrafficSettings,
    default_realization,
)
from libra_planner.plan.options import MAX_PORTS, PortSpeed
from libra_planner.reading.document import Document, Key, is_number, is_whole
from libra_planner.reading.models import (
    AUTO,
    CountOrAuto,
    FaultCollector,
    Model,
    Text,
    core_fields,
    not_among,
    validated,
)
from libra_planner.reading.value_faults import known_keys

_MOST_FAILED = 10**6


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


AutoCount: TypeAlias = Annotated[int | Literal["auto"] | None, CountOrAuto(MAX_PORTS)]
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
    n_failed_links : Cables between switches.
    n_failed_spines : Spines with all their links.
    failure_seed : Of the draw.
    """

    n_failed_links: FailureCount = Field(default=0, alias="links")
    n_failed_spines: FailureCount = Field(default=0, alias="spines")
    failure_seed: Annotated[int, Field(ge=0, le=2**63)] = Field(default=0, alias="seed")


AnyFailures: TypeAlias = Annotated[
    FailuresSpec,
    BeforeValidator(_failures, json_schema_input_type=Annotated[int, Field(ge=0)] | FailuresSpec),
]


_RAIL_ONLY = "rail_only"
_EITHER_RAILS = (
    "expected rail_optimized (NPU i of every node on leaves of rail i, spines join all rails), "
    "rail_only, also called rail (every rail is a network of its own), or top_of_rack"
)


def _wiring(value: Any) -> Any:
    """A wiring by any of its names, all of which a wrong one is told."""
    if value == _RAIL_ONLY:
        return RAIL
    names = (RAIL, _RAIL_ONLY, RAIL_OPTIMIZED, TOP_OF_RACK)
    if value not in names:
        if isinstance(value, str) and close_names(value, names) == [RAIL]:
            raise ValueError(f"got {value!r}, {_EITHER_RAILS}")
        raise not_among(names)
    return value


Wiring: TypeAlias = Annotated[
    Literal["rail", "rail_optimized", "top_of_rack"],
    BeforeValidator(
        _wiring,
        json_schema_input_type=Literal["rail", "rail_only", "rail_optimized", "top_of_rack"],
    ),
]


PartNames: TypeAlias = Annotated[
    list[Text],
    Field(min_length=1, max_length=20),
    BeforeValidator(
        lambda value: [value] if isinstance(value, str) else value,
        json_schema_input_type=Text | list[Text],
    ),
]


class PartNamesSpec(Model):
    """Parts of the catalogue that a network is bought as; each stands in for all others of a kind.

    Of several names of a kind the cheapest that fits a need is taken. Kinds without a name are
    chosen by price, as everywhere.

    Parameters
    ----------
    nic : NIC, such as nic-400g, or a list of names.
    switch : Switch, such as switch-64x400g, or a list of names.
    optic : Optic, such as optic-400g-sr4, or a list of names.
    copper : Copper cable, such as dac-400g, or a list of names.
    active_optical : Active optical cable, such as aoc-400g, or a list of names.
    """

    nic: PartNames | None = None
    switch: PartNames | None = None
    optic: PartNames | None = None
    copper: PartNames | None = None
    active_optical: PartNames | None = None


class SwitchSpec(Model):
    """How a switch dimension is built; what is not given keeps its default.

    Parameters
    ----------
    preset : Published setting to start from, such as rail-8x400G.
    switch_radix : Ports of a switch.
    port_speed_Bps : Speed of every port, such as 400 Gbit/s or 400G; without it exactly what the
        design needs.
    n_nics : NICs per NPU, one port each; auto (default): as many as needed.
    oversubscription : Host bandwidth of a leaf over its uplink bandwidth; 2 is 2:1.
    wiring : rail (or rail_only): a network per group of the dimension; rail_optimized (default of
        a stack): one network, leaves of NPUs with the same inner index; top_of_rack: one network,
        leaves of neighbours.
    npus_per_rack : NPUs that stand in one rack. With top_of_rack, cables to hosts have no optics
        where the NPUs of every leaf stand in one rack; without this key a bill takes as many as a
        rack of the parts catalogue holds.
    n_parallel : Links between a leaf and a spine; auto: the fewest spines.
    n_leaves : Leaves of a network; auto: the fewest.
    n_spines : Spines of a network; auto: the fewest.
    failed_links : Cables between switches that are down, or {links, spines, seed}.
    n_planes : Networks over which every NIC spreads its bandwidth.
    switch_port_Bps : Speed of a switch's ports, where it is not that of a NIC in one plane; a port
        of 800 Gbit/s then takes two NICs of 400.
    uplink_Bps : Speed of a link between switches, where it is not that of a switch's port.
    n_reserved : Positions on the leaves that stay free of NPUs, such as for management.
    parts : Parts of the catalogue that a bill buys, by kind, such as {switch: acme-64x400g};
        others are chosen by price.
    """

    preset: Text | None = None
    switch_radix: Annotated[int, Field(ge=2, le=MAX_RADIX)] = 64
    port_speed_Bps: PortSpeed | None = Field(default=None, alias="port_speed")
    n_nics: AutoCount = Field(default=None, alias="nics")
    oversubscription: Ratio = 1.0
    wiring: Wiring = "rail"
    npus_per_rack: Annotated[int, Field(ge=1)] | None = None
    n_parallel: AutoCount = Field(default=None, alias="parallel_links")
    n_leaves: AutoCount = Field(default=None, alias="leaves")
    n_spines: AutoCount = Field(default=None, alias="spines")
    failed_links: AnyFailures = FailuresSpec()
    n_planes: Annotated[int, Field(ge=1, le=MAX_PORTS)] = Field(default=1, alias="planes")
    switch_port_Bps: PortSpeed | None = Field(default=None, alias="port")
    uplink_Bps: PortSpeed | None = Field(default=None, alias="port_up")
    n_reserved: Annotated[int, Field(ge=0, le=_MOST_FAILED)] = Field(default=0, alias="reserve")
    parts: PartNamesSpec = PartNamesSpec()


def _with_overrides(schema: dict[str, Any]) -> None:
    """Any other key is a dimension, whose value has the keys of a switch."""
    traffic = ("placement", "queue_pairs", "npus_per_address", "source_ports")
    own = {key: value for key, value in schema["properties"].items() if key not in traffic}
    schema["additionalProperties"] = {
        "type": "object",
        "additionalProperties": False,
        "properties": own,
    }


_QueuePairs = Annotated[int, Field(ge=allowed.QUEUE_PAIRS[0], le=allowed.QUEUE_PAIRS[1])]
_NpusPerAddress = Annotated[
    int, Field(ge=allowed.NPUS_PER_ADDRESS[0], le=allowed.NPUS_PER_ADDRESS[1])
]


class RealizationSpec(SwitchSpec):
    """How the dimensions are built from whole links; a switch's name holds what is its own.

    Parameters
    ----------
    placement : How a job's NPUs are laid out over the cluster's.
    n_queue_pairs : Queue pairs per connection; messages are split over them.
    npus_per_address : NPUs that share an IP address; 1 if each has its own.
    source_ports : own: every queue pair has a UDP source port of its own; shared: all have one.
    """

    model_config = ConfigDict(json_schema_extra=_with_overrides)

    placement: Literal[allowed.PLACEMENTS] = allowed.PLACEMENTS[0]  # type: ignore[valid-type]
    n_queue_pairs: _QueuePairs = Field(default=1, alias="queue_pairs")
    npus_per_address: _NpusPerAddress = 1
    source_ports: Literal[allowed.SOURCE_PORTS] = allowed.SOURCE_PORTS[0]  # type: ignore[valid-type]


KEY: Key = ("fabric", "realization")
"""Where a plan says how its dimensions are built."""

_PORT_KEYS = {"switch_radix", "port_speed_Bps", "n_nics"}
"""What a scale-up switch has, too; any other key under its name makes it a network."""


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
    reader = _RealizationReader(document, topology, has_nic)
    return None if given is None else reader.required(reader.read(given))


@dataclass
class _RealizationReader(FaultCollector):
    topology: Topology
    has_nic: Sequence[bool]
    notes: dict[str, None] = field(default_factory=dict)

    def read(self, given: Any) -> Realization:
        """The settings; faults are noted and what they concern left at its default."""
        switches = list(default_realization(self.topology, self.has_nic).switches)
        names: list[str] = []
        rest, known = given, known_keys(RealizationSpec)
        if isinstance(given, dict):  # Any other unknown key is a fault, unless it holds a map.
            own = {*self.topology.labels, *self.topology.tiers}
            own |= {name for name, value in given.items() if isinstance(value, dict)}
            names = [name for name in given if name in own and name not in known]
            rest = {key: value for key, value in given.items() if key not in names}
        others = replace(self.document, value={"fabric": {"realization": rest}})
        spec = self.attempt(KEY, validated, RealizationSpec, others, KEY) or RealizationSpec()
        common = self._settings(SwitchSettings(), spec, KEY)
        for dim in [dim for dim, nic in enumerate(self.has_nic) if nic]:
            switches[dim] = self._shared(common, spec) if dim in self.stacks else common
        first: dict[int, str] = {}
        for name in names:
            dims, key = self._switches(name), (*KEY, name)
            switch = self.attempt(key, validated, SwitchSpec, self.document, key) or SwitchSpec()
            for dim in self._ports_of(name, dims):
                if first.setdefault(dim, name) != name:
                    got = f"got {shown(name)} beside {shown(first[dim])}, which name one dimension"
                    self.note(Fault(got, "expected it once", "remove one"), key, at_key=True)
                one_switch = not self.has_nic[dim] and switch.model_fields_set <= _PORT_KEYS
                base, start = (SCALE_UP, None) if one_switch else (common, spec.preset)
                if dim in self.stacks:
                    base = self._shared(base, spec)
                switches[dim] = self._settings(base, switch, key, start=start)
        for dim, port in enumerate(self.topology.ports):
            switches[dim] = switches[port]
        self._check_stacks(switches, first)
        return Realization(
            switches=tuple(switches),
            traffic=TrafficSettings(**core_fields(spec, TrafficSettings)),
            notes=tuple(self.notes),
        )

    @property
    def stacks(self) -> set[int]:
        """The innermost dimension of every stack."""
        return {tiers.start for tiers in self.topology.stacks}

    def _shared(self, settings: SwitchSettings, spec: SwitchSpec) -> SwitchSettings:
        """What is said for all switches, for a stack: rail-optimised where no wiring is given."""
        given = spec.preset or "wiring" in spec.model_fields_set
        return settings if given else replace(settings, wiring=STACKED.wiring)

    def _ports_of(self, name: str, dims: list[int]) -> list[int]:
        """The dimensions that a name is about: the tiers of a stack are one network."""
        ports = [dim for dim in dims if not self.topology.dimensions[dim].shares_port]
        if dims and not ports:
            inner = self.topology.ports[dims[0]]
            found = self.topology.tiers[inner] or self.topology.labels[inner]
            got = f"got {name}, a further tier of the network of {self.topology.labels[inner]}"
            fix = f"write its keys under {found}"
            expected = "expected its innermost tier, which stands for all of it"
            self.note(Fault(got, expected, fix), (*KEY, name), at_key=True)
        return ports

    def _check_stacks(
        self, switches: Sequence[SwitchSettings | None], names: Mapping[int, str]
    ) -> None:
        """Refuse what the sizes and bandwidths of a stack decide."""
        for tiers in self.topology.stacks:
            settings, label = switches[tiers.start], self.topology.labels[tiers.start]
            outer = self.topology.tiers[tiers.start + 1] or self.topology.labels[tiers.start + 1]
            for name, key, fix in (
                ("oversubscription", "oversubscription", f"write taper({outer}) in constraints"),
                ("n_leaves", "leaves", "write the tiers in fabric.topology"),
                ("n_spines", "spines", "leave it out"),
            ):
                if getattr(settings, name) != getattr(STACKED, name):
                    got = f"got {key} for the stack of {label}"
                    expected = "expected none: its sizes and bandwidths decide"
                    place = (*KEY, names[tiers.start]) if tiers.start in names else KEY
                    self.note(Fault(got, expected, fix), place, at_key=True)

    def _settings(
        self, base: SwitchSettings, spec: SwitchSpec, key: Key, *, start: str | None = None
    ) -> SwitchSettings:
        """What is given, over the preset it names, over ``base``, which is from ``start``."""
        if spec.preset is not None:
            chosen = self.attempt((*key, "preset"), preset, spec.preset)
            if chosen is not None:
                base = chosen.settings
                self.notes |= dict.fromkeys(chosen.notes)
        values: dict[str, Any] = {
            name: None if value == AUTO else value
            for name, value in spec
            if name in spec.model_fields_set and hasattr(base, name) and name != "parts"
        }
        if spec.preset or start:
            self._note_overrides(spec.preset or start, base, values, key)
        if "failed_links" in spec.model_fields_set:
            values |= dict(spec.failed_links)
        named = {kind: tuple(names) for kind, names in spec.parts if names}
        values["parts"] = tuple((dict(base.parts) | named).items())
        return replace(base, **values)

    def _note_overrides(
        self, preset: str | None, base: SwitchSettings, values: dict[str, Any], key: Key
    ) -> None:
        """What of a preset does not hold, as the plan writes it."""
        names = {name: field.alias or name for name, field in SwitchSpec.model_fields.items()}
        changed = [
            f"{names[name]}: {shown(self.document.at((*key, names[name])))}"
            for name, value in values.items()
            if value != getattr(base, name)
        ]
        if changed:
            of = "" if key == KEY else f" for {key[-1]}"
            self.notes[f"{preset} is changed by the plan{of}: {', '.join(changed)}"] = None

    def _switches(self, name: str) -> list[int]:
        """Switch dimensions of a label or tier; a fault where there are none."""
        labels, tiers, kinds = self.topology.labels, self.topology.tiers, self.topology.dimensions
        dims = [i for i in range(self.topology.n_dims) if name in (labels[i], tiers[i])]
        switches = [i for i, kind in enumerate(kinds) if kind.block.is_switched]
        known = list(dict.fromkeys(names[i] for names in (labels, tiers) for i in switches))
        fault = None
        if not dims:
            keys = [] if is_numbered(name) else known_keys(RealizationSpec)
            fix = closest_dimension(name, [*keys, *known] or ["none, it has no switch"])
            expected = "expected a key of realization or a switch dimension of this fabric"
            fault = Fault(f"got {name!r}", expected, fix)
        elif not set(dims) & set(switches):
            fix = f"known: {', '.join(known)}" if known else "remove it"
            expected = "expected a switch: other links follow from C2"
            fault = Fault(f"got {name}, which is {kinds[dims[0]]}", expected, fix)
        if fault is not None:
            self.note(fault, (*KEY, name), at_key=True)
        return [i for i in dims if i in switches]
