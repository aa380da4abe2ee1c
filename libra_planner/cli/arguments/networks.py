"""What the command that sizes a network takes."""

from __future__ import annotations

from libra_planner import allowed
from libra_planner.cli.arguments.making import (
    DAY,
    JSON,
    PARTS,
    PRICES,
    Arguments,
    Once,
    choice,
    number,
    text,
)


def fabric() -> Arguments:
    """Of ``fabric``."""
    from libra_planner.fabric.cluster import WIRING_NAMES

    taper = (
        "bandwidth down over bandwidth up of neighbouring tiers, from the leaf out: 1, or 1,7 for "
        "7:1 between spine and core"
    )
    npus, managers = "each with a NIC of its own; default 8", "links to the fabric's managers"
    planes = "equal networks that share every NIC's bandwidth"
    port_up = "of a link between switches (default: a port's)"
    return (
        number("--hosts", *allowed.HOSTS, "servers to join; or --npus"),
        number("--npus", *allowed.NPUS, "NPUs to join, whose hosts are full; instead of --hosts"),
        number("--npus-per-host", *allowed.NPUS_PER_HOST, npus, default=8),
        number("--nics-per-host", *allowed.NICS_PER_HOST, "where NPUs share NICs, or have several"),
        text("--nic", "SPEED", "of one NIC over all planes, such as 400Gbps", required=True),
        number(
            "--radix --switch-radix", *allowed.RADIX, "ports of a switch; default 64", default=64
        ),
        text("--port", "SPEED", "of a switch's port (default: a NIC's in one plane)"),
        text("--port-up", "SPEED", port_up),
        text("--taper", "T1[,T2]", taper, default="1"),
        choice("--wiring", WIRING_NAMES, "how leaves serve the NICs", default=WIRING_NAMES[0]),
        number("--planes", *allowed.PLANES, planes, default=1),
        number("--reserve", *allowed.RESERVE, "positions of hosts that stay free", default=0),
        number("--management-links", *allowed.MANAGEMENT_LINKS, managers, default=0),
        *_parts(),
        JSON,
    )


def _parts() -> Arguments:
    """What it is built from."""
    per_fibre = "transceivers of a cable: 2, or 1 for modules of two links (twin-port cages)"
    part = (
        "part that is bought, such as switch=switch-64x400g, of kind nic, switch, optic, copper or "
        "active_optical; others are chosen by price; repeatable"
    )
    return (
        number(
            "--host-ports-per-leaf",
            *allowed.HOST_PORTS_PER_LEAF,
            "at most, where racks are the limit",
        ),
        number("--transceivers-per-fibre", *allowed.TRANSCEIVERS_PER_FIBRE, per_fibre, default=2),
        text("--part", "KIND=NAME", part, action="append", default=[]),
        PARTS,
        text("--prices", "QUOTES", PRICES, action=Once),
        text("--as-of", "DAY", DAY),
    )
