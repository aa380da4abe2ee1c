"""Ports of the networks beside the training fabric that are left for what no bill holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from libra_planner.errors import SpecError
from libra_planner.plain_text import joined
from libra_planner.procurement.bill import SWITCH, Bill, Part
from libra_planner.procurement.lines import FabricShop, Purchase, system_bill
from libra_planner.units import short_usd


@dataclass(frozen=True)
class FullNetwork:
    """A network whose leaves have no free port: nothing but its servers can be plugged in.

    Parameters
    ----------
    name : such as storage.
    n_ports : of its leaves.
    room_usd : what the bill has more with one position of a server left free; ``None`` for a
        network that cannot be larger.
    """

    name: str
    n_ports: int
    room_usd: Decimal | None


def full_networks(
    bill: Bill, bought: Purchase, shop: FabricShop, npu: Part | None
) -> Iterator[FullNetwork]:
    """The frontend and storage networks without a free port on a leaf.

    Parameters
    ----------
    bill : of a design.
    bought, shop, npu : what it is made of, as :func:`~libra_planner.procurement.lines.system_bill`.
    """
    assumed = shop.assumptions
    for i, side in enumerate(assumed.side_networks):
        switches = [x for x in bill.of(side.name).lines if x.part.kind == SWITCH]
        leaves = [x for x in switches if x.tier.endswith(_LEAF)]
        if not leaves or any(x.n_free_ports for x in leaves):
            continue
        sides = list(assumed.side_networks)
        sides[i] = replace(side, n_reserved=side.n_reserved + 1)
        roomy = replace(shop, assumptions=replace(assumed, side_networks=tuple(sides)))
        try:
            more_usd = system_bill(bought, roomy, npu)[0].total_usd - bill.total_usd
        except SpecError:
            more_usd = None
        yield FullNetwork(side.name, sum(x.n_ports for x in leaves), more_usd)


_LEAF = "leaf"


def full_text(found: Sequence[FullNetwork]) -> str:
    """What cannot be plugged in, and what room for it costs; empty where all have room.

    >>> print(full_text([FullNetwork("storage", 64, Decimal(61200))]))
    No leaf port of the storage network (64) is free for storage systems, head nodes or a link to \
the site: the next larger one costs $61.2k more (reserve under storage in --parts).
    """
    if not found:
        return ""
    names = joined([f"{one.name} network ({one.n_ports:,})" for one in found], "and")
    text = f"No leaf port of the {names} is free for {_OTHERS}"
    costs = [short_usd(float(one.room_usd)) for one in found if one.room_usd is not None]
    if len(costs) < len(found):
        return f"{text}."
    larger = "the next larger one costs" if len(found) == 1 else "the next larger ones cost"
    where = joined([one.name for one in found], "and")
    return f"{text}: {larger} {joined(costs, 'and')} more (reserve under {where} in --parts)."


_OTHERS = "storage systems, head nodes or a link to the site"
