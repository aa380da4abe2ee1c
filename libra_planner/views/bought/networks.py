"""What other networks of the same hosts cost: on other switches, rails, leaves or groups."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from libra_planner.costs.prices import ASSUMED
from libra_planner.costs.quotes import Quote
from libra_planner.fabric.cluster import ClusterNetwork, ClusterOrder
from libra_planner.procurement.bill import SWITCH, Bill
from libra_planner.procurement.bought.refills import tiers_text
from libra_planner.procurement.rails import power_text
from libra_planner.units import GBIT_PER_S_BPS, format_line_rate, format_usd
from libra_planner.views.links import counted

_MUCH = 0.2
"""Share of the cost that another wiring saves, from which it stands under the title."""


def rails_line(bill: Bill, rails_usd: float | None, *, is_much: bool) -> Iterator[str]:
    """What separate rails would save, where that is much or where it is less; else nothing."""
    total_usd = float(bill.total_usd)
    if rails_usd is None or bill.missing or rails_usd >= total_usd:
        return
    if is_much is (rails_usd <= (1 - _MUCH) * total_usd):
        begin, end = ("[bold]The same command with ", "[/]") if is_much else ("", "")
        costs = f"costs {format_usd(rails_usd)}, {format_usd(total_usd - rails_usd)} less"
        yield (
            f"{begin}--wiring rail_only {costs}{end}: every rail is a network "
            f"of its own, and NPUs of different rails meet inside of their hosts"
        )


def switches_line(
    order: ClusterOrder,
    bill: Bill,
    found: tuple[ClusterNetwork, Bill] | None,
    quotes: Sequence[Quote],
    *,
    is_much: bool,
) -> Iterator[str]:
    """What other switches would save, where that is much or where it is less; else nothing."""
    if found is None or bill.missing:
        return
    network, other = found
    total_usd, usd = float(bill.total_usd), float(other.total_usd)
    share = 1 - usd / total_usd
    if share < _MATERIAL or is_much is (share < _MUCH):
        return
    begin, end = ("[bold]", "[/]") if is_much else ("", "")
    built = tiers_text({tier: n for tier, n in network.clos.n_switches.items() if n})
    drawn = power_text(bill, other)
    power = f", and draws {drawn}" if drawn else ""
    yield (
        f"{begin}The same command with {shlex.join(_switch_words(order, network.order))} has "
        f"{built} and costs {format_usd(usd)}, {format_usd(total_usd - usd)} less{power}{end}: "
        f"{_switches_text(order, network, other, quotes)}"
    )


def _switch_words(order: ClusterOrder, other: ClusterOrder) -> list[str]:
    """Options that make the switches of an order those of another."""
    speed = f"{other.speed_Bps / GBIT_PER_S_BPS:.12g}Gbps"
    port = [] if other.speed_Bps == order.speed_Bps else ["--port", speed]
    is_same = other.switch_radix == order.switch_radix
    return [*port, *([] if is_same else ["--radix", f"{other.switch_radix}"])]


def _switches_text(
    order: ClusterOrder, network: ClusterNetwork, bill: Bill, quotes: Sequence[Quote]
) -> str:
    """What other switches are, how links of NICs reach them, and what is not sure of their bill."""
    other = network.order
    link, port = (format_line_rate(x) for x in (order.nic_Bps / order.n_planes, other.speed_Bps))
    n_links = other.settings.n_hosts_per_port
    switch = next(line.part for line in bill.lines if line.part.kind == SWITCH)
    split = f", {n_links} links of {link} on a port of {port} (breakout)" if n_links > 1 else ""
    prices = [(line.part.name, line.part.price) for line in bill.lines]
    assumed = dict.fromkeys(name for name, x in prices if x and x.confidence == ASSUMED)
    guess = f", {' and '.join(assumed)} at assumed prices" if assumed else ""
    is_asked = not quotes or (switch.price is not None and switch.price.is_quoted)
    listed = "" if is_asked else ", which your quotes do not have: list price, no support"
    plain = ", those that split as plain ones" if n_links > 1 else ""
    served = counted(network.clos.hosts_per_leaf, "link")
    return (
        f"{switch.name}{listed}{split}; optics and cables are counted{plain}{guess}. "
        f"A leaf then serves {served} of NICs"
    )


def groups_line(groups: tuple[ClusterNetwork, float] | None, total_usd: float) -> Iterator[str]:
    """The same hosts in equal groups on the leaves, as a plan has them."""
    if groups is None:
        return
    network, usd = groups
    n_nodes = network.order.most_hosts_per_leaf
    found = tiers_text({tier: n for tier, n in network.clos.n_switches.items() if n})
    more = f"{format_usd(abs(usd - total_usd))} {'more' if usd > total_usd else 'less'}"
    if network.sizes:
        stack = "_".join(f"SW({size})" for size in network.sizes)
        yield (
            f"Leaves and pods hold no equal groups of hosts here; in a plan they do, and it builds "
            f"other switches: [{stack}] has {found} for {format_usd(usd)}, {more}"
        )
    elif network.shape.n_pods == 1:  # Under cores init gives every rail its spines.
        yield (
            f"Leaves hold no equal groups of hosts here; in a plan, as init writes them, they do: "
            f"--host-ports-per-leaf {n_nodes} sizes that, {found} for {format_usd(usd)}, {more}"
        )


_MANY_FREE, _MATERIAL = 0.25, 0.01
"""Share of leaf ports, and of a cost, from which free ports are worth a word."""


def racks_line(
    network: ClusterNetwork, total_usd: float, racks: tuple[ClusterNetwork, float] | None
) -> Iterator[str]:
    """What fewer leaves would save, each for all NICs of its hosts, where many ports are free."""
    n_leaves, n_free = network.clos.total_leaves, network.free_ports["leaf"]
    n_ports = n_leaves * network.order.switch_radix
    if racks is None or n_free < _MANY_FREE * n_ports or racks[0].clos.total_leaves >= n_leaves:
        return
    other, usd = racks
    if total_usd - usd >= _MATERIAL * total_usd:
        found = tiers_text({tier: n for tier, n in other.clos.n_switches.items() if n})
        yield (
            f"{n_free:,} of {n_ports:,} ports of leaves are free, as every rail has leaves of its "
            f"own: --wiring top_of_rack needs {found} and costs {format_usd(usd)}, "
            f"{format_usd(total_usd - usd)} less (a step may take longer: not checked)"
        )
