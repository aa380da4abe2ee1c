"""A cluster's network that is sized without a plan: the JSON of ``fabric --json``, and text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from libra_planner.costs.prices import QUOTED
from libra_planner.costs.quotes import Quote, quote_warnings, unpriced_note
from libra_planner.errors import SpecError
from libra_planner.fabric.cluster import TIERS, WIRINGS, ClusterNetwork, ClusterOrder
from libra_planner.fabric.parts import HOST_LEAF
from libra_planner.fabric.topology import TOP_OF_RACK
from libra_planner.procurement.bill import OPTIC, SUPPORT, Bill, Line, Price
from libra_planner.procurement.bought.cages import open_module_texts, unlike_module_texts
from libra_planner.procurement.bought.choices import choice_text, open_choices
from libra_planner.procurement.bought.refills import PLAN, Refill, tiers_text
from libra_planner.procurement.cluster import FreePorts
from libra_planner.procurement.quotes import used_quotes
from libra_planner.units import GBIT_PER_S_BPS, format_line_rate, format_usd
from libra_planner.views.bought.networks import groups_line, racks_line, rails_line, switches_line
from libra_planner.views.bought.whole_ports import bits_words
from libra_planner.views.cells import Block, Table, Value, count, escape, round_usd, table, usd
from libra_planner.views.links import counted, planes_text, plural


def known_cost_words(bill: Bill) -> str:
    """What a network costs, in few words, as far as prices are known."""
    if not bill.missing:
        return format_usd(float(bill.total_usd))
    return f"at least {format_usd(float(bill.total_usd))}" if bill.total_usd else "no price"


def cluster_payload(
    network: ClusterNetwork,
    bill: Bill,
    n_per_fibre: int,
    grown: ClusterNetwork | SpecError,
    quotes: Sequence[Quote] = (),
) -> dict[str, Any]:
    """What ``fabric --json`` prints.

    Parameters
    ----------
    network, bill : what is built, and what it costs.
    n_per_fibre : how transceivers are counted.
    grown : the same for one more host, or why there is none.
    quotes : a user's.
    """
    order, clos = network.order, network.clos
    modules = network.transceivers(n_per_fibre)
    return {
        "hosts": order.n_hosts,
        "nics": order.n_hosts * order.n_nics_per_host,
        "wiring": order.wiring,
        "networks": order.n_networks,
        **_counts(network),
        "pods": clos.total_pods,
        "host_ports_per_leaf": clos.hosts_per_leaf,
        "uplinks_per_leaf": clos.n_uplinks,
        "taper": list(network.tapers),
        "transceivers": sum(modules.values()),
        **{f"transceivers_{place}": n for place, n in modules.items()},
        "power_W": bill.power_w,
        "cost_usd": None if bill.missing else float(bill.total_usd),
        **_ends(bill),
        "tax_usd": float(bill.tax_usd) if bill.tax_fraction and not bill.missing else None,
        "missing_prices": [part.name for part in bill.missing],
        "assumed_usd": float(bill.assumed_usd),
        "quotes": {line.part.name: price.source for line, price in _quoted(bill)},
        "unused_quotes": unused_items(bill, quotes),
        "warnings": quote_warnings(used_quotes(bill, quotes)),
        "open_points": list(_open_texts(network, bill, n_per_fibre)),
        "one_more_host": _change(network, grown),
        "free_ports": network.free_ports,
        "room_for_hosts": network.n_more_hosts,
        "growth": {what: _step_row(network, n) for what, n in _steps(network).items()},
    }


def _steps(network: ClusterNetwork) -> dict[str, int]:
    """Hosts of the next steps of growth: the first without room, and those of one more pod."""
    n_pods = network.clos.n_pods
    pod = {"one_more_pod": network.order.n_positions // n_pods} if n_pods > 1 else {}
    return {"beyond_room": network.n_more_hosts + 1} | pod


def _step_row(network: ClusterNetwork, n_more: int) -> dict[str, Any] | None:
    """What a step adds, and the links that it moves; ``None`` where it cannot be built."""
    grown = network.order.grown(n_more)
    if isinstance(grown, SpecError):
        return None
    moved = {f"moved_{x.replace('-', '_')}": n for x, n in network.moved_links(grown).items()}
    return {"hosts": grown.order.n_hosts, "added": _change(network, grown), **moved}


def _ends(bill: Bill) -> dict[str, float | None]:
    """The cost with every price at one end of what sources say."""
    ends = (None, None) if bill.missing else map(float, bill.ends_usd)
    return dict(zip(("cost_usd_low", "cost_usd_high"), ends, strict=True))


def _counts(network: ClusterNetwork) -> dict[str, int]:
    """Switches, links and cables by tier and layer, and of all."""
    switches = {tier: network.clos.n_switches.get(tier, 0) for tier in TIERS}
    counts = switches | {"switches": sum(switches.values())}
    for what, layers in (("links", network.links), ("cables", network.cables)):
        counts |= {f"{what}_{joins.replace('-', '_')}": n for joins, n in layers.items()}
        counts[what] = sum(layers.values())
    return counts


def _change(network: ClusterNetwork, grown: ClusterNetwork | SpecError) -> dict[str, Any] | None:
    """What more there is; ``None`` where it cannot be built."""
    if isinstance(grown, SpecError):
        return None
    before = _counts(network)
    return {name: n - before[name] for name, n in _counts(grown).items() if n != before[name]}


def _modules_line(network: ClusterNetwork, n_per_fibre: int) -> str:
    modules = network.transceivers(n_per_fibre)
    places = ", ".join(f"{n:,} in {place}" for place, n in modules.items() if n)
    return f"Transceivers, all cables fibres: [bold]{sum(modules.values()):,}[/] ({places})"


def _open_texts(network: ClusterNetwork, bill: Bill, n_per_fibre: int) -> Iterator[str]:
    """What a seller has to be asked about the modules of a network."""
    is_split = any(cable.n_per_port > 1 for cable in network.cable_parts())
    counted_so = "" if n_per_fibre == 1 or is_split else f" ({_TWIN} counts them)"
    yield from (f"{text}{counted_so}" for text in open_module_texts(bill))
    yield from unlike_module_texts(bill)
    for part in bill.missing:
        if n_per_fibre == 1 and part.kind == OPTIC:
            yield (
                f"the catalogue has no {part.name}: add one with a price, or leave out {_TWIN}, "
                f"so that every port has a module of its own"
            )


_TWIN = "--transceivers-per-fibre 1"
"""The option for modules of two links."""


def cluster_blocks(
    network: ClusterNetwork,
    bill: Bill,
    n_per_fibre: int,
    grown: ClusterNetwork | SpecError,
    quotes: Sequence[Quote] = (),
    rails_usd: float | None = None,
    groups: tuple[ClusterNetwork, float] | None = None,
    racks: tuple[ClusterNetwork, float] | None = None,
    nic: str = "",
    switches: tuple[ClusterNetwork, Bill] | None = None,
) -> Iterator[Block]:
    """The network as a picture from the cores down, what it is made of, and how it grows.

    Where separate rails (``rails_usd``) save much, that stands first, else last. ``groups`` is the
    network of equal groups and its cost, where it is another, and ``racks`` that of leaves for all
    NICs of their hosts. ``nic`` is the speed as it was asked. ``switches`` is the cheapest network
    of other switches, and its bill.
    """
    order = network.order
    yield _title(order)
    yield from rails_line(bill, rails_usd, is_much=True)
    yield from switches_line(order, bill, switches, quotes, is_much=True)
    yield ""
    yield from _picture(network)
    yield _modules_line(network, n_per_fibre)
    yield ""
    yield _bill_table(bill)
    yield ""
    assumed = bill.assumed_usd / bill.total_usd if bill.total_usd else 1
    total = f"[bold]{format_usd(float(bill.total_usd))}[/]"
    names = " and ".join(part.name or "cables" for part in bill.missing)
    share = f"; {assumed:.0%} of it at assumed prices; [bold]{bill.power_w / 1e3:,.1f} kW[/]"
    if not bill.total_usd:
        yield f"[bold]No price[/] is known of {names or 'any part'}"
    elif bill.missing:
        yield f"At least {total} with spares, without {names}: no price is known{share}"
    else:
        yield f"{total}{_range(bill)} with spares{share}"
    yield "Of the training network alone: no NPUs, servers, frontend and storage networks;"
    yield "in plans these share its stock of spares, which can be a few more there"
    if bill.tax_fraction:
        taxed = format_usd(float(bill.with_tax_usd))
        yield f"With {100 * bill.tax_fraction:.4g}% tax [bold]{taxed}[/]"
    yield from (f"Note: {words}" for words in bits_words(order.nic_Bps, written=nic))
    if order.n_planes > 1:
        yield f"{order.n_planes} planes: {planes_text(order.nic_Bps, order.n_planes)}"
    for name, source in {line.part.name: price.source for line, price in _quoted(bill)}.items():
        yield escape(f"{name}: {source}")
    yield from map(escape, map(choice_text, open_choices(bill)))
    yield from (escape(f"Open: {text}") for text in _open_texts(network, bill, n_per_fibre))
    yield from map(escape, _quote_lines(bill, quotes))
    yield from _growth(network, grown)
    total_usd = float(bill.total_usd)
    yield from () if bill.missing else groups_line(groups, total_usd)
    yield from () if bill.missing else racks_line(network, total_usd, racks)
    yield from rails_line(bill, rails_usd, is_much=False)
    yield from switches_line(order, bill, switches, quotes, is_much=False)


def _title(order: ClusterOrder) -> str:
    """What a network joins."""
    n_nics = order.n_hosts * order.n_nics_per_host
    planes = f", {order.n_planes} planes" if order.n_planes > 1 else ""
    return (
        f"[bold]{counted(order.n_hosts, 'host')}[/], {counted(n_nics, 'NIC')} of "
        f"{format_line_rate(order.nic_Bps)}{planes}, {order.wiring}, "
        f"switches of {order.switch_radix} ports"
    )


def _quote_lines(bill: Bill, quotes: Sequence[Quote]) -> Iterator[str]:
    """What is wrong with a user's quotes, and which do not count."""
    yield from (f"Warning: {text}" for text in quote_warnings(used_quotes(bill, quotes)))
    if unused := unused_items(bill, quotes):
        yield f"Quotes that this network does not use: {', '.join(unused)}"
    if note := unpriced_note(quotes):
        yield f"{note[:1].upper()}{note[1:]}"


def unused_items(bill: Bill, quotes: Sequence[Quote]) -> list[str]:
    """Items that a user quotes and a bill has none of."""
    used = {quote.item for quote in used_quotes(bill, quotes)}  # Another seller may count there.
    return [quote.item for quote in quotes if quote.item not in used]


def _quoted(bill: Bill) -> Iterator[tuple[Line, Price]]:
    """Lines at a user's quotes."""
    for line in bill.lines:
        price = line.part.price
        if price is not None and price.confidence == QUOTED and line.part.kind != SUPPORT:
            yield line, price


def _picture(network: ClusterNetwork) -> Iterator[str]:
    """Tiers from the cores down, and the links between them."""
    clos, order = network.clos, network.order
    pods = f"{clos.total_pods:,} pods of " if clos.n_cores else ""
    per_pod = {"leaf": clos.n_leaves, "spine": clos.n_spines}
    layers = list(zip(network.links.items(), (clos.host_Bps, *[clos.uplink_Bps] * 2), strict=True))
    tapers = [None, *network.tapers]
    shares = f", {order.n_networks} separate networks" if order.n_networks > 1 else ""
    for i, (tier, n) in reversed(list(enumerate(clos.n_switches.items()))):
        inside = f" ({pods}{per_pod[tier]:,})" if pods and tier in per_pod else ""
        yield f"  [bold]{n:>8,} {plural(tier, n)}[/]{inside}{shares}"
        shares = ""
        (joins, n_links), speed_Bps = layers[i]
        taper = tapers[i] if i < len(tapers) else None
        ratio = "" if taper is None else f", {taper:.4g}:1"
        cables = network.cables[joins]
        joined = "" if cables == n_links else f" in {counted(cables, 'cable')}"
        links = f"{counted(n_links, 'link')} of {format_line_rate(speed_Bps)}"
        yield f"           │ {links}{joined}{ratio}"
    hosts, nics = plural("host", order.n_hosts), counted(order.n_nics_per_host, "NIC")
    yield f"  [bold]{order.n_hosts:>8,} {hosts}[/] of {nics}"
    yield ""


def _bill_table(bill: Bill) -> Table:
    rows = (
        (
            *(line.tier, line.part.name, count(line.n_units), count(line.n_spares)),
            *(_usd(line), line.part.price.confidence if line.part.price else ""),
        )
        for line in bill.lines
    )
    headings = ("where", "part", "units", "spares", "cost", "confidence")
    return table("", "Bill of materials", headings, rows, left=(*headings[:2], headings[-1]))


def _usd(line: Line) -> Value:
    return "no price" if line.extended_usd is None else usd(line.extended_usd)


def _range(bill: Bill) -> str:
    low_usd, high_usd = map(float, bill.ends_usd)
    ends = f"{format_usd(low_usd)} to {format_usd(high_usd)}"
    return f" ({ends}, as sources of prices differ)" if low_usd < high_usd else ""


def _growth(network: ClusterNetwork, grown: ClusterNetwork | SpecError) -> Iterator[str]:
    """Free ports, one more host, and the next steps."""
    free = ", ".join(f"{n:,} on {plural(tier, 2)}" for tier, n in network.free_ports.items())
    n_more = network.n_more_hosts
    yield f"Free ports: {free}; room for {counted(n_more, 'more host')} with no cable moved"
    yield _step(network, "One more host", grown, moves=not n_more)
    names = {"beyond_room": f"{n_more + 1:,} more hosts", "one_more_pod": "One more pod"}
    for what, n in _steps(network).items():
        if n > 1:
            more = f" ({counted(n, 'host')})" * (what == "one_more_pod")
            yield _step(network, names[what] + more, network.order.grown(n), moves=True)


def _step(
    network: ClusterNetwork, name: str, grown: ClusterNetwork | SpecError, *, moves: bool
) -> str:
    if isinstance(grown, SpecError):
        verb = "does" if name.startswith("One") else "do"
        return f"{name} {verb} not fit: {grown.faults[0].got}"
    change = _change(network, grown) or {}
    words = {**{tier: tier for tier in TIERS}, "cables": "cable"}
    changed = [(change[name], what) for name, what in words.items() if name in change]
    more = ", ".join(f"{n:+,} {plural(what, abs(n))}" for n, what in changed)
    equal = ", as all pods are equal" if grown.clos.n_cores and "leaf" in change else ""
    return f"{name}: {more}{equal}{_moved(network, grown) if moves else ''}"


def _moved(network: ClusterNetwork, grown: ClusterNetwork) -> str:
    """Links that a larger network moves, in words."""
    moved, links = network.moved_links(grown), network.links
    hosts, n_hosts = moved.pop(HOST_LEAF), links.pop(HOST_LEAF)
    most = "at most " * bool(grown.clos.n_cores)
    found = (sum(moved.values()), sum(links.values()), "between switches")
    parts = [found, (hosts, n_hosts, "of hosts")]
    said = [f"{most}{n:,} of {total:,} links {what}" for n, total, what in parts if n]
    return f"; {' and '.join(said)} move" if said else "; no cable moves"


def free_ports_text(
    found: FreePorts, words: Sequence[str] = (), plan: str = PLAN, *, is_brief: bool = False
) -> str:
    """What a design pays for free ports, and how to have fewer switches.

    That is a plan where one has them, else the command that sizes such a network.

    Parameters
    ----------
    found : of the design.
    words : options of other commands that say where prices are from.
    plan : the path or the name of the design's plan.
    is_brief : without a plan whose model does not know its leaves: the command alone.
    """
    network, of = found.network, f"{found.n_free_ports:,} of {found.n_ports:,} ports"
    free, saved = round_usd(found.usd).shown, round_usd(found.less_usd).shown
    head = f"{of} of its {plural(found.tier, 2)} stay free, {free} of their price. "
    nodes = f"The same {network.order.n_hosts:,} nodes need {tiers_text(found.n_switches)}"
    tapers = " and ".join(f"{taper:.4g}:1" for taper in network.tapers)
    at = f" at {tapers}" * bool(tapers)
    command = shlex.join(fabric_command(network.order, (*part_words(found.parts), *words)))
    refill = found.refill
    if refill is None:
        return f"{head}{nodes}{at}, {saved} less{found.caution}: {command}. {_as_plan(network)}"
    is_same = refill.n_switches == {k: n for k, n in network.clos.n_switches.items() if n}
    bill = f"{at * is_same}, a bill that is {saved} less{found.caution}: "
    if is_brief and not refill.is_stack:
        return f"{head}{nodes}{bill}{command}. {_UNEQUAL}"
    sizes = f" {command} sizes it." * is_same
    return f"{head}{nodes}{bill}{_refill_text(refill, plan)}{sizes}"


_UNEQUAL = "Its leaves hold no equal groups: a report names the plan to check."


def _refill_text(found: Refill, plan: str) -> str:
    """The plan of a refill, and what its model knows of it."""
    if found.is_stack:
        return f"{found.words(plan)} fills the leaves with equal groups."
    taper = f"{found.oversubscription:.4g}:1" if found.oversubscription else ""
    costs = f" Its model does not know that its leaves are {taper}: --check does." * bool(taper)
    return f"{found.words(plan)}.{costs}"


def _as_plan(network: ClusterNetwork) -> str:
    """Whether a plan can have a network, whose tiers are equal groups."""
    shape, n_hosts = network.shape, network.order.n_hosts
    n_nodes, rest = divmod(n_hosts, shape.leaves_per_rail)
    if shape.n_pods > 1 or rest or network.order.wiring == TOP_OF_RACK:
        return "Its leaves hold no equal groups, as a plan has them, so its step is not known."
    if shape.leaves_per_rail == 1:
        return f"A plan has its leaves as SW({n_nodes})."
    return f"A plan has it as [SW({n_nodes})_SW({shape.leaves_per_rail})]."


def part_words(parts: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Options of the command that name parts.

    >>> part_words([("switch", ("switch-64x400g",))])
    ['--part', 'switch=switch-64x400g']
    """
    return [word for kind, names in parts for x in names for word in ("--part", f"{kind}={x}")]


def fabric_command(order: ClusterOrder, words: Sequence[str] = ()) -> list[str]:
    """The words of the command that sizes the network of an order."""

    def speed(Bps: float | None) -> str:
        return "" if Bps is None else f"{Bps / GBIT_PER_S_BPS:.12g}Gbps"

    usual = ClusterOrder(1)
    npus = order.n_nics_per_host
    asked = {
        "--npus-per-host": "" if npus == usual.n_nics_per_host else f"{npus}",
        "--nic": speed(order.nic_Bps),
        "--taper": ",".join(f"{taper:.12g}" for taper in order.tapers),
        "--radix": "" if order.switch_radix == usual.switch_radix else f"{order.switch_radix}",
        "--port": speed(order.port_Bps),
        "--port-up": speed(order.uplink_Bps),
        "--wiring": "" if order.wiring == WIRINGS[0] else order.wiring,
        "--planes": "" if order.n_planes == 1 else f"{order.n_planes}",
        "--host-ports-per-leaf": f"{order.most_hosts_per_leaf or ''}",
    }
    given = [word for flag, value in asked.items() if value for word in (flag, value)]
    return ["libra-planner", "fabric", "--hosts", f"{order.n_hosts}", *given, *words]
