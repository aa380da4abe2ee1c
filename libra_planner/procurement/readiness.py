"""What has to be settled before the design to buy is signed for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from libra_planner.costs.prices import ASSUMED, SAME_SPEED
from libra_planner.costs.quotes import Quote, without_end
from libra_planner.plain_text import joined
from libra_planner.procurement import bill as kinds
from libra_planner.procurement.bill import ZERO, Bill, Line, Part
from libra_planner.procurement.bought.cages import (
    link_ends_in_cages,
    open_module_texts,
    splitter_texts,
    unlike_module_texts,
)
from libra_planner.procurement.bought.changes import (
    before_text,
    first_text,
    passed_at,
    passes_alone,
    stays_text,
)
from libra_planner.procurement.bought.placements import placement_points
from libra_planner.procurement.bought.refills import tiers_text
from libra_planner.procurement.bought.rewirings import short_wiring_texts, wiring_texts
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.cluster import FreePorts
from libra_planner.procurement.quotes import Order, OrderLine, orders, used_quotes
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.terms.least_orders import least_order_texts
from libra_planner.procurement.terms.withheld import withheld, withheld_texts
from libra_planner.step.memory_use import MemoryUse, fit_text
from libra_planner.units import short_usd

_MOST_ASSUMED = 0.5
"""Share of a price above which it has to be quoted first."""


def blocked(comparison: Comparison) -> tuple[str, ...]:
    """Why nobody should sign for the design to buy; nothing where nothing is known against it.

    Quotes, missing prices and orders below a least order of the other designs count, too: what to
    buy rests on them.
    """
    one = comparison.candidates[comparison.chosen]
    memories = one.proposal.problem.step.memories.values()
    reasons = {
        f"{one.letter} breaks {' and '.join(broken_texts(one))} of its plan": bool(
            one.evaluation.violated
        ),
        **{
            f"the whole ports of {one.letter} break {x.rule} ({x.amount}) of its plan": True
            for x in one.built_beyond
        },
        f"the model of {one.letter} does not fit its NPUs": any(x.fits is False for x in memories),
        f"no rack powers a server of {one.letter}": not one.facility.n_servers_per_rack,
    }
    names = ", ".join(part.name for part in comparison.missing)
    reasons[f"no price of {names}"] = bool(names)
    reasons |= dict.fromkeys((f"{one.letter}: {x}" for x in one.facility.rack_faults), True)
    found = [reason for reason, holds in reasons.items() if holds]
    doubts = dict.fromkeys((*_of_quotes(used_in(comparison)), *rate_doubts(comparison)))
    return (*doubts, *moq_texts(comparison), *found)


def rate_doubts(comparison: Comparison) -> tuple[str, ...]:
    """Rates of exchange of the parts catalogue that bills rest on and that may be slips."""
    lines = (line for one in comparison.candidates for line in one.bill.lines)
    found = (line.part.price.doubt for line in lines if line.part.price)
    return tuple(dict.fromkeys(filter(None, found)))


def memory_texts(one: Candidate, of: str = "") -> Iterator[str]:
    """Models that fit the NPUs of a design by less than such figures are off, in words.

    Parameters
    ----------
    one : the design.
    of : whose, such as " of D", behind the model's name where there are several.
    """
    memories = one.proposal.problem.step.memories
    for name, use in memories.items():
        if isinstance(use, MemoryUse) and use.fits and not use.is_certain:
            yield fit_text(use, f" {name}{of}" if len(memories) > 1 else of)


def broken_texts(one: Candidate) -> tuple[str, ...]:
    """Rules of the plan that the bandwidth asked for breaks, and what breaks them, in words."""
    return tuple(f"{x.rule} ({x.amount})" for x in one.evaluation.violated)


def _used(one: Candidate) -> list[Quote]:
    """The quotes that the bill of a design rests on."""
    shop = one.proposal.shop
    tiers = [part.quote.item for part in shop.book.prices if part.quote]
    return used_quotes(one.bill, shop.quotes, tiers)


def used_in(comparison: Comparison) -> list[Quote]:
    """The quotes that any design rests on."""
    used = (quote for one in comparison.candidates for quote in _used(one))
    return list(dict.fromkeys(used))


def quote_of(comparison: Comparison, item: str) -> Quote | None:
    """The quote that counts for a part; ``None`` where nobody has quoted it."""
    return next((quote for quote in used_in(comparison) if quote.item == item), None)


def _of_quotes(quotes: Sequence[Quote]) -> Iterator[str]:
    """Quotes that do not hold on their day, and every figure that is in doubt, each once."""
    if late := [quote for quote in quotes if quote.when]:
        what = "1 quote does not hold" if len(late) == 1 else f"{len(late)} quotes do not hold"
        late.sort(key=lambda quote: quote.valid_until or quote.date)
        told = [f"{x.item} of {x.seller}, {x.when}" for x in late[:_MOST_TOLD]]
        told += [f"{len(late) - _MOST_TOLD} more"] * (len(late) > _MOST_TOLD)
        yield f"{what} on {late[0].day}: {'; '.join(told)}"
    yield from dict.fromkeys(doubt for quote in quotes for doubt in quote.doubts)


def assumed_fraction(bill: Bill) -> float:
    """Share of the price of everything, before tax, whose prices are assumed."""
    return bill.fraction_of(bill.assumed_usd) or 0.0


def assumed_text(bill: Bill) -> str:
    """The same in words: "0%" would deny what it is said of.

    >>> assumed_text(Bill(()))
    '0%'
    """
    share = assumed_fraction(bill)
    return f"{share:.0%}" if share >= _LEAST_TOLD or not share else "under 1%"


_LEAST_TOLD = 0.01


def is_mostly_assumed(bill: Bill) -> bool:
    """Whether more than half of a price is assumed."""
    return assumed_fraction(bill) > _MOST_ASSUMED


def is_all_quoted(one: Candidate) -> bool:
    """Whether somebody offers everything that a design buys."""
    found = orders(one.bill)
    return bool(found) and all(order.is_quoted for order in found)


def unquoted(one: Candidate) -> tuple[OrderLine, ...]:
    """What is bought without a quote, dearest first; nothing where nobody has quoted anything.

    What has no price at all is no part of it.
    """
    found = orders(one.bill)
    if not any(order.is_quoted for order in found):
        return ()
    lines = (line for order in found if not order.is_quoted for line in order.lines)
    return tuple(sorted((x for x in lines if x.part.price), key=lambda x: -x.total_usd))


def unquoted_text(comparison: Comparison) -> str:
    """The same of the design to buy, such as "optic-200g-sr4, $206k (published price)"; or empty.

    With quotes of parts of the same kinds that no design uses: one may be of the wrong part.
    """
    found = unquoted(comparison.candidates[comparison.chosen])
    told = [
        f"{x.part.name}, {short_usd(float(x.total_usd))} ({_confidence(x)} price{_side(x)})"
        for x in found
    ]
    if len(told) > _MOST_TOLD:
        usd = sum((line.total_usd for line in found[_MOST_TOLD:]), ZERO)
        told[_MOST_TOLD:] = [f"{len(found) - _MOST_TOLD} more, {short_usd(float(usd))}"]
    return "; ".join(told) + _misplaced_text(comparison, {x.part.kind for x in found})


def _misplaced_text(comparison: Comparison, wanted: Collection[str]) -> str:
    """Quotes of parts that no design buys, and of whose kinds one lacks a quote; empty for none.

    Parameters
    ----------
    wanted : kinds of the parts that nobody has quoted.
    """
    shop, used = comparison.shop, {quote.item for quote in used_in(comparison)}
    parts = ((x, shop.parts.by_name.get(x.item)) for x in shop.quotes if x.item not in used)
    found = [quote for quote, part in parts if part is not None and part.kind in wanted]
    if not found:
        return ""
    names = joined([quote.item for quote in found[:_MOST_TOLD]], "and")
    return f" ({found[0].file} quotes {names}, which no design uses)"


def _side(line: OrderLine) -> str:
    """Of which networks beside the training network a part is alone; empty for any other one."""
    groups = [*dict.fromkeys(x.group for x in line.lines)]
    if not all(x in (kinds.FRONTEND, kinds.STORAGE) for x in groups):
        return ""
    return f", {joined(groups, 'and')} network{'s' * (len(groups) > 1)}"


def order_texts(comparison: Comparison) -> Iterator[str]:
    """Least orders that the design to buy would pay less with, and those that others meet alone."""
    found = withheld(comparison, used_in(comparison))
    yield from least_order_texts(comparison, used_in(comparison), {one.offer for one in found})
    yield from withheld_texts(comparison, found)


def moq_texts(comparison: Comparison) -> Iterator[str]:
    """Orders of fewer units than their sellers sell, by any design, in words.

    One text for each offer; the design to buy comes first in it.
    """
    found: dict[str, list[tuple[Candidate, OrderLine, Order]]] = {}
    chosen = comparison.chosen
    for one in sorted(comparison.candidates, key=lambda x: x.letter != comparison.letters[chosen]):
        for order in orders(one.bill):
            for line in order.lines:
                if line.n_below_moq:
                    found.setdefault(line.part.name, []).append((one, line, order))
    for name, short in found.items():
        (_, line, order), *_ = short
        price = line.part.price
        if price is not None:
            buys = joined([f"{one.letter} buys {x.n_bought:,}" for one, x, _ in short], "and")
            usd = (short_usd(float(x.n_below_moq * price.usd)) for _, x, _ in short)
            more = joined([*dict.fromkeys(usd)], "and")
            yield (
                f"{name}: {buys}, and {order.seller} sells {price.moq:,} or more (moq); the whole "
                f"least order costs {more} more"
            )


def _confidence(line: OrderLine) -> str:
    return line.part.price.confidence if line.part.price else ""


_MOST_TOLD = 3
"""Parts without a quote that are named."""


def open_points(comparison: Comparison, *, is_brief: bool = False) -> Iterator[str]:
    """What has to be settled before anybody signs; nothing where the design is ready.

    Parameters
    ----------
    is_brief : in the words of a first page, which of other designs has those alone that would be
        the one to buy.
    """
    one = comparison.candidates[comparison.chosen]
    yield from blocked(comparison)
    if is_mostly_assumed(one.bill):
        names = ", ".join(part.name for part in one.bill.without_range)
        without = f" (of {names} nobody says a range)" if names else ""
        share = f"{assumed_text(one.bill)} of the price of {one.letter} is assumed{without}"
        yield f"{share}: ask for quotes before you sign"
    if text := unquoted_text(comparison):
        yield f"not quoted: {text}"
    yield from memory_texts(one, f" of {one.letter}")
    yield from order_texts(comparison)
    own = _used(one)
    yield from (f"{quote.item}: {quote.seller} {quote.unlike}" for quote in own if quote.unlike)
    if text := without_end(own, one.proposal.shop.quotes):
        yield text
    if one.check is None:
        yield unchecked_text(comparison)
    if text := unrouted_text(comparison):
        yield text
    yield from placement_points(comparison, is_brief=is_brief)
    yield from (short_free_ports_texts if is_brief else free_ports_texts)(comparison)
    yield from (short_wiring_texts if is_brief else wiring_texts)(comparison)
    yield from open_module_texts(one.bill) if is_brief else cage_texts(one)
    yield from unlike_module_texts(one.bill)


def unchecked_text(comparison: Comparison) -> str:
    """That nobody checked the design to buy on its links, and what that may do."""
    one = comparison.candidates[comparison.chosen]
    does = "may reverse this" if len(comparison.candidates) > 1 else "may take longer"
    check = f": routing by hash (ECMP) {does}; add --check ecmp"
    if swept := one.proposal.swept_check:
        model = f"the step time of {one.letter} is by the plan's model"
        return f"{model}; its sweep checked it on its links, as told below: add {swept.options}"
    return f"the step time of {one.letter} is not checked on its links yet{check}"


def free_ports_texts(comparison: Comparison) -> Iterator[str]:
    """Free ports of the design to buy, and of others where fewer switches change the order.

    The order is of designs that all have fewer switches, those without free ports as they are.
    """
    for one, found, end in told_free_ports(comparison):
        yield free_ports_text(one, found, f": {end}" if end else "")


def short_free_ports_texts(comparison: Comparison) -> Iterator[str]:
    """The same for a first page: of the others those that alone would be the one to buy."""
    for one, found, end in told_free_ports(comparison, is_brief=True):
        free = f"{found.n_free_ports:,} of {found.n_ports:,} {found.tier} ports of {one.letter}"
        less = f"{tiers_text(found.n_switches)} cost {short_usd(float(found.less_usd))} less"
        plan = f" as {found.refill.topology}" if found.refill else ""
        yield f"{free} are free: {less}{plan}{found.caution}{end and f', and {end}'}"


def told_free_ports(
    comparison: Comparison, *, is_brief: bool = False
) -> Iterator[tuple[Candidate, FreePorts, str]]:
    """Those designs, their free ports, and whom fewer switches would put them before, in words.

    Of the one to buy, and of those that would come before another one or, alone, before that one.

    Parameters
    ----------
    is_brief : whether what comes before the one to buy alone counts.
    """
    best, ports = comparison.chosen, [one.free_ports for one in comparison.candidates]
    less_usd = [found.less_usd if found else ZERO for found in ports]
    for i in comparison.order:
        one, found, passed = comparison.candidates[i], ports[i], passed_at(comparison, i, less_usd)
        is_first = passes_alone(comparison, i, less_usd)
        if found and (i == best or is_first or (passed and not is_brief)):
            ends = first_text(comparison.candidates[best], passed), before_text(passed)
            end = f"{one.letter} {ends[not is_brief]}" if ends[not is_brief] else ""
            stays = f"with fewer switches of its own {stays_text(comparison)}"
            yield one, found, end or (stays if is_first else "")


def free_ports_text(one: Candidate, found: FreePorts, first: str = "") -> str:
    """What fewer switches save, and the plan that has them.

    Parameters
    ----------
    one, found : a design, and its free ports.
    first : before whom that would put it, in words.
    """
    free = f"{found.n_free_ports:,} of {found.n_ports:,} {found.tier} ports of {one.letter}"
    fewer = f"a network of fewer switches ({tiers_text(found.n_switches)})"
    plan = f"; its plan is {found.refill.short(one.proposal.plan)}" if found.refill else ""
    less = f"{short_usd(float(found.less_usd))} less{found.caution}"
    return f"{free} are free, and {fewer} costs {less}{first}{plan}"


def shared_cages(one: Candidate) -> dict[tuple[str, int, str], int]:
    """Link ends in cages of several ports, as :func:`link_ends_in_cages` has them."""
    return link_ends_in_cages(one.bill)


def cage_texts(one: Candidate) -> Iterator[str]:
    """That modules or cables are counted where their sellers count others, in words."""
    for (switch, n_ports, module), n_ends in shared_cages(one).items():
        yield (
            f"one module for each link end is assumed, and {switch} has {n_ports} ports in a cage: "
            f"{n_ends:,} {module} at its ports would be modules or cables of {n_ports} links, with "
            "another part number, count and price. Ask its seller, and add its optic to the parts "
            f"catalogue with links_per_module: {n_ports}: bills then count it"
        )
    yield from splitter_texts(one.bill)


def unrouted_text(comparison: Comparison) -> str:
    """Whose open strategies may be beaten on links by others, and how to find out; or empty."""
    slowed = [
        one
        for one in comparison.candidates
        if one.proposal.found is not None
        and one.check is not None
        and (one.proposal.on_links is None or one.proposal.on_links.n_left)
        and one.step_time_s > one.billed.step_time_s * (1 + SAME_SPEED)
    ]
    if not slowed:
        return ""
    whose = joined([one.letter for one in slowed], "and")
    text = f"strategies of {whose} were not all searched on links"
    first = next((one for one in slowed if one.proposal.optimized), None)
    if first is None:
        return f"{text}: try another one by --set parallelism, as search PLAN lists them"
    own, result = first.proposal, f"{first.letter.lower()}.json"
    optimize = " ".join(filter(None, ("libra-planner optimize", own.plan, own.options)))
    again = f"report {own.plan}@{result} in place of {first.letter}"
    return f"{text}, another may reverse this: {optimize} --json > {result}, then {again}"


def best_sprayed(comparison: Comparison) -> int | None:
    """The design to buy if packets were sprayed, from the same check; ``None`` without one."""
    checks = [one.check for one in comparison.candidates]
    worth = {
        i: value * check.spray_step_time_s / comparison.candidates[i].step_time_s
        for i, (value, check) in enumerate(zip(comparison.worth, checks, strict=True))
        if check is not None and i in comparison.eligible
    }
    if comparison.times_s is None or len(worth) < len(comparison.eligible):
        return None
    return min(worth, key=worth.__getitem__)


NO_NPU = "NPU, where a plan names none"
"""The quantity that plans which name an NPU do not rest on."""

SPARES = "Spares"
"""The quantity whose money is a share of its lines."""

RACKED = "NPUs in a rack with their leaf"
"""The quantity that decides whether cables to hosts are short."""

RACK_POWER = "Power of a rack"
"""The quantity that decides how many servers stand in a rack, where space does not."""

QUANTITIES: Mapping[str, Callable[[Candidate, Line], bool]] = {
    NO_NPU: lambda one, x: x.part.kind == kinds.NPU and one.proposal.npu is None,
    "Server": lambda _, x: x.part.kind == kinds.SERVER,
    RACKED: lambda one, x: x.tier in one.facility.racked_tiers,
    "Cable lengths": lambda _, x: x.part.kind in kinds.CABLING,
    "frontend network": lambda _, x: x.group == kinds.FRONTEND,
    "storage network": lambda _, x: x.group == kinds.STORAGE,
    RACK_POWER: lambda one, x: x.part.kind == kinds.RACK and one.facility.rests_on_power,
    "Usable height of a rack": lambda one, x: (
        x.part.kind == kinds.RACK and one.facility.rests_on_space
    ),
    SPARES: lambda _, x: x.n_spares > 0,
}
"""Lines of a bill that would change with a quantity, by its name. A line may rest on several."""


def resting_usd(one: Candidate, name: str) -> Decimal:
    """What the lines cost that rest on an assumed quantity; of spares these alone.

    Parameters
    ----------
    one : the design.
    name : one of :data:`QUANTITIES`.
    """
    lines = [x for x in one.bill.lines if QUANTITIES[name](one, x) and x.part.unit_usd]
    counts = [x.n_spares if name == SPARES else x.n_bought for x in lines]
    return sum((n * (x.part.unit_usd or ZERO) for n, x in zip(counts, lines, strict=True)), ZERO)


@dataclass(frozen=True)
class AssumedPrice:
    """A price that is an estimate, and what a bill has at it.

    Parameters
    ----------
    part : what it is of.
    n_bought : units of all lines, spares included.
    usd : what they cost.
    """

    part: Part
    n_bought: int
    usd: Decimal


def assumed_prices(one: Candidate) -> tuple[AssumedPrice, ...]:
    """The assumed prices of a bill, those of most money first; they add up to what is assumed."""
    found: dict[str, list[Line]] = {}
    for line in one.bill.lines:
        price = line.part.price
        if price and price.confidence == ASSUMED and line.extended_usd:
            found.setdefault(line.part.name, []).append(line)
    prices = (
        AssumedPrice(
            lines[0].part,
            sum(x.n_bought for x in lines),
            sum((x.extended_usd or ZERO for x in lines), ZERO),
        )
        for lines in found.values()
    )
    return tuple(sorted(prices, key=lambda x: (-x.usd, x.part.name)))
