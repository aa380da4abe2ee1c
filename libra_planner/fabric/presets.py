"""Fabrics of published settings, by name; what the sources leave open is marked assumed."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.errors import unknown_name
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.construction import RAIL_OPTIMIZED, Realization, SwitchSettings
from libra_planner.fabric.realization import RealizedDesign, RealizedDimension, realize
from libra_planner.fabric.topology import Block, parse_topology

_100G_BPS, _400G_BPS, _NVLINK_BPS = 12.5e9, 50e9, 450e9


@dataclass(frozen=True)
class Preset:
    """A fabric with a name.

    Parameters
    ----------
    note : what it stands for, with the source.
    assumed : what the source does not say.
    topology : of the preset as a fabric of its own; the outermost dimension is the switch.
    bandwidth_Bps : per NPU and dimension of that topology, byte/s.
    settings : what a plan that names the preset starts from.
    """

    note: str
    assumed: str
    topology: str
    bandwidth_Bps: tuple[float, ...]
    settings: SwitchSettings

    @property
    def notes(self) -> tuple[str, ...]:
        """Note and assumption, for reports."""
        return (self.note, f"assumed: {self.assumed}")


PRESETS: dict[str, Preset] = {
    "flowtracer-16x400G": Preset(
        note="16 nodes of 400 Gbit/s on a leaf-spine fabric, FlowTracer's setting "
        "(arXiv 2410.17078)",
        assumed="4 leaves of 4 nodes and 8 spines, one 400 Gbit/s link each, switches of 64 "
        "ports: the counts are not published; with 8 queue pairs per node 32 flows share "
        "the 8 uplinks of a leaf",
        topology="SW(16)",
        bandwidth_Bps=(_400G_BPS,),
        settings=SwitchSettings(port_speed_Bps=_400G_BPS, n_leaves=4, n_spines=8),
    ),
    "rail-8x400G": Preset(
        note="nodes of 8 GPUs, one 400 Gbit/s NIC per GPU, rail-optimised 1:1 leaf-spine",
        assumed="switches of 64 ports; by itself 32 nodes with 450 GB/s per GPU inside the node",
        topology="FC(8)_SW(32)",
        bandwidth_Bps=(_NVLINK_BPS, _400G_BPS),
        settings=SwitchSettings(port_speed_Bps=_400G_BPS, wiring=RAIL_OPTIMIZED),
    ),
    "routing-64x32": Preset(
        note="64 leaves x 32 spines, 32 hosts per leaf, after Routing for Large ML Models "
        "(arXiv 2503.05324)",
        assumed="100 Gbit/s ports, one link between a leaf and a spine, switches of 64 ports",
        topology="SW(2048)",
        bandwidth_Bps=(_100G_BPS,),
        settings=SwitchSettings(port_speed_Bps=_100G_BPS, n_leaves=64, n_spines=32),
    ),
    "pod-16384": Preset(
        note="16,384 NPUs of 400 Gbit/s on three tiers of 64-port switches, 1:1",
        assumed="16 pods of 32 leaves and 32 spines, the fewest switches; 4 links from a spine "
        "to each of its 8 cores",
        topology="SW(16384)",
        bandwidth_Bps=(_400G_BPS,),
        settings=SwitchSettings(port_speed_Bps=_400G_BPS),
    ),
}
"""By name; a plan names one in ``fabric.realization.preset``."""


def preset(name: str) -> Preset:
    """The preset of a name.

    Raises
    ------
    UnknownName
        With a did-you-mean.

    Examples
    --------
    >>> preset("routing-64x32").settings.n_spines
    32
    """
    if name not in PRESETS:
        raise unknown_name("fabric preset", name, PRESETS)
    return PRESETS[name]


def preset_design(name: str) -> RealizedDesign:
    """A preset as a design of its own.

    Raises
    ------
    UnknownName
        For a name that is no preset.

    Examples
    --------
    >>> preset_design("rail-8x400G").topology.n_npus
    256
    """
    chosen = preset(name)
    topology = parse_topology(chosen.topology)
    switches = tuple(
        chosen.settings if dimension.block is Block.SWITCH else None
        for dimension in topology.dimensions
    )
    return realize(topology, chosen.bandwidth_Bps, Realization(switches, notes=chosen.notes))


def preset_fabric(name: str) -> Clos:
    """The switches of a preset as a fabric for ``flows``.

    Raises
    ------
    UnknownName
        For a name that is no preset.

    Examples
    --------
    >>> preset_fabric("pod-16384").n_switches
    {'leaf': 512, 'spine': 512, 'core': 256}
    """
    return _clos(preset_design(name).dimensions[-1])


def _clos(built: RealizedDimension) -> Clos:
    if not isinstance(built.fabric, Clos):
        raise TypeError("the outermost dimension of a preset is a switch")
    return built.fabric
