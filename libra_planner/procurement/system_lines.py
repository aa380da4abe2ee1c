"""Lines of a bill around the fabric: NPUs, servers, frontend and storage networks, racks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from libra_planner.fabric.construction import Realization, SwitchSettings
from libra_planner.fabric.parts import design_parts
from libra_planner.fabric.realization import realize
from libra_planner.fabric.topology import parse_topology
from libra_planner.procurement.assumptions import Assumptions, SideNetwork
from libra_planner.procurement.bill import COMPUTE, FACILITY, Bill, Line
from libra_planner.procurement.fabric_lines import FabricShop
from libra_planner.procurement.parts import NIC, NPU, SERVER, SWITCH, Part
from libra_planner.procurement.purchase import Purchase


@dataclass(frozen=True)
class Facility:
    """Rack power and space.

    Parameters
    ----------
    n_servers, server_w : NPU servers, and what one draws with its NPUs and NICs.
    n_servers_per_rack : what power and space of a rack allow; 0 if not even one.
    limited_by : ``power`` or ``space``, whichever is reached first.
    n_server_racks, n_switch_racks : racks of each.
    it_w : all parts in use.
    rack_w : power limit of a rack.
    floor_m2 : of all racks, with their share of the aisles.
    """

    n_servers: int
    server_w: float
    n_servers_per_rack: int
    limited_by: str
    n_server_racks: int
    n_switch_racks: int
    it_w: float
    rack_w: float
    floor_m2: float

    @property
    def n_racks(self) -> int:
        """All racks."""
        return self.n_server_racks + self.n_switch_racks

    @property
    def fits(self) -> bool:
        """Whether a rack can power and hold a server."""
        return self.n_servers_per_rack > 0


def system_bill(
    bought: Purchase, shop: FabricShop, npu: Part | None = None
) -> tuple[Bill, Facility]:
    """The whole bill of a design, and the racks that it needs.

    Parameters
    ----------
    bought : its links and their parts.
    shop : where everything is bought.
    npu : the plan's NPU; by default that of the assumptions.

    Raises
    ------
    SpecError
        For more servers than three tiers of a frontend or storage network join.
    """
    assumed = shop.assumptions
    n_npus = bought.design.topology.n_npus
    n_servers = -(-n_npus // max(1, assumed.server.n_npus))
    lines = [
        Line(COMPUTE, "all", npu or assumed.npu, n_npus),
        Line(COMPUTE, "all", assumed.server, n_servers),
        *shop.lines(bought),
    ]
    for network in assumed.side_networks:
        lines += _side_lines(network, n_servers, shop)
    bill = Bill(tuple(lines))
    facility = _facility(bill, assumed, n_servers)
    racks = Line(FACILITY, "all", assumed.rack, facility.n_racks)
    return Bill((*bill.lines, racks)), facility


def _side_lines(network: SideNetwork, n_servers: int, shop: FabricShop) -> Iterator[Line]:
    """NICs, switches and cables of a network that joins all servers; none for a single one."""
    if n_servers < 2 or not network.n_ports_per_server:
        return
    settings = SwitchSettings(
        switch_radix=network.switch_radix,
        port_speed_Bps=network.port_speed_Bps,
        oversubscription=network.oversubscription,
    )
    topology = parse_topology(f"SW({n_servers})", [network.name])
    speed_Bps = network.n_ports_per_server * network.port_speed_Bps
    design = realize(topology, [speed_Bps], Realization((settings,)))
    [built], [parts] = design.dimensions, design_parts(design).dimensions
    named = replace(built, label=network.name)
    yield from shop.scale_out_lines(named, parts, network.name)


def _facility(bill: Bill, assumed: Assumptions, n_servers: int) -> Facility:
    """Servers by what a rack powers and holds; switches and their optics by the same."""
    rack = assumed.rack
    n_units = int(rack.n_rack_units * assumed.usable_rack_fraction)
    in_servers = [line for line in bill.lines if line.part.kind in (NPU, SERVER, NIC)]
    # Every optic of a host sits in a NIC's port; all are counted with the switches instead.
    servers_w = sum(line.power_w for line in in_servers)
    server_w = servers_w / n_servers
    by_power = int(rack.power_limit_w // server_w) if server_w else n_servers
    by_space = n_units // max(1, assumed.server.n_rack_units)
    per_rack = min(by_power, by_space)
    switches = [line for line in bill.lines if line.part.kind == SWITCH]
    height = sum(line.n_units * line.part.n_rack_units for line in switches)
    switches_w = bill.power_w - servers_w
    n_switch_racks = max(
        -(-height // n_units) if n_units else 0,
        int(-(-switches_w // rack.power_limit_w)) if rack.power_limit_w else 0,
    )
    n_server_racks = -(-n_servers // max(1, per_rack))
    return Facility(
        n_servers=n_servers,
        server_w=server_w,
        n_servers_per_rack=per_rack,
        limited_by="power" if by_power <= by_space else "space",
        n_server_racks=n_server_racks,
        n_switch_racks=n_switch_racks,
        it_w=bill.power_w,
        rack_w=rack.power_limit_w,
        floor_m2=(n_server_racks + n_switch_racks) * assumed.floor_m2_per_rack,
    )
