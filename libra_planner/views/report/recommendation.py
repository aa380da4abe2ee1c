"""What to buy in one sentence, what differs from the baseline, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, Set

from libra_planner.costs.quotes import quote_warnings
from libra_planner.files import near_path
from libra_planner.inputs.parts import BUNDLED_PARTS
from libra_planner.plain_text import joined
from libra_planner.procurement.advice import untold
from libra_planner.procurement.bill import SERVICES, SUPPORT
from libra_planner.procurement.bought.rewirings import (
    wiring_lines,
)
from libra_planner.procurement.bought.side_ports import full_text
from libra_planner.procurement.bought.split_rails import split_text
from libra_planner.procurement.bought.twins import is_order_within_error, untwinned_ties
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.quotes import orders
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.readiness import (
    RACK_POWER,
    assumed_fraction,
    assumed_text,
    blocked,
    broken_texts,
    is_all_quoted,
    is_mostly_assumed,
    open_points,
    resting_usd,
    told_free_ports,
    used_in,
)
from libra_planner.procurement.run import HOUR_S
from libra_planner.procurement.terms.lead_times import later_text, lead_time, sooner
from libra_planner.units import format_time, format_usd, short_usd, unit_price_text
from libra_planner.views.cells import round_usd
from libra_planner.views.cluster import free_ports_text
from libra_planner.views.plan import no_class_text
from libra_planner.views.report.against import (
    against_lines,
    choice_notes,
    named,
    tie_text,
)
from libra_planner.views.report.bills import (
    LEFT_OUT,
    rules_of_ports,
)
from libra_planner.views.report.designs import Ends, mfu, mfu_ends
from libra_planner.views.report.offers import before_tax, exact_text, network_text, order_text
from libra_planner.views.report.page.signing import today_of
from libra_planner.views.report.routed.placing import placement_text
from libra_planner.views.report.runs import run_ends, tokens_text
from libra_planner.views.report.sensitivity import change_lines
from libra_planner.views.report.strategies import technology_text
from libra_planner.views.training.step import COUNTED

_DAY_S = 24 * HOUR_S


def price_text(one: Candidate, factor: float = 1.0) -> str:
    """The price as far as it is known: between its ends, about what it is, or in four digits.

    "About" is a price of which a part is assumed, and nobody says between what that lies.

    Parameters
    ----------
    factor : on it, such as 1.0825 with tax.
    """
    ends = [round_usd(float(usd) * factor).shown for usd in one.bill.ends_usd]
    if len({*ends}) > 1:
        return f"{'about ' * bool(one.bill.without_range)}{' to '.join(ends)}"
    if one.bill.assumed_usd:
        return f"about {round_usd(float(one.bill.total_usd) * factor).shown}"
    return format_usd(float(one.bill.total_usd) * factor)


def lead(comparison: Comparison) -> Iterator[str]:
    """What to buy, why, and how sure its price is."""
    one, other = _pair(comparison)
    npu = (one.proposal.npu or one.proposal.shop.assumptions.npu).name
    if one.proposal.npu is None:
        npu += " (assumed: its plan names no NPU)"
    missing = ", ".join(part.name for part in one.bill.missing)
    price = price_text(one) + (f" without {missing}" if missing else "") + _tax_text(one)
    what = f"{price} for {one.n_npus:,} {npu}, {_speed(comparison, one)}."
    stop = _stop(comparison)
    if other is None:
        yield f"{stop}{named(one)} costs {what}"
    else:
        yield f"{stop}{_choice(comparison)}{what}"
    yield f"{scope_text(one)} {technology_text(one)}".rstrip()
    yield " ".join(filter(None, (network_text(one), order_text(one), exact_text(one))))
    yield from (*_swept(comparison), *filter(None, [placement_text(comparison)]))
    yield from (*against_lines(comparison), *choice_notes(comparison), *_limits(comparison))
    yield from rules_of_ports(one)
    if comparison.ranking.order_note and not is_order_within_error(comparison):
        yield comparison.ranking.order_note
    yield f"{_certainty(comparison)} {_no_band(comparison) or band_text(one)}".strip()
    if text := " ".join((*_run(one), *_offers(comparison, one))):
        yield text
    yield from change_lines(comparison)


def brief(comparison: Comparison) -> Iterator[str]:
    """The lead behind its first sentence in few words; a page has the rest behind its signature."""
    one, _ = _pair(comparison)
    if text := _no_band(comparison):
        yield text
    yield from _swept(comparison)
    yield scope_text(one)
    yield from filter(None, [placement_text(comparison)])
    if text := " ".join(filter(None, (order_text(one), exact_text(one)))):
        yield text
    yield " ".join(filter(None, (technology_text(one), network_text(one))))
    yield from (*choice_notes(comparison), *_limits(comparison))
    yield from rules_of_ports(one)
    if comparison.ranking.order_note and not is_order_within_error(comparison):
        yield comparison.ranking.order_note
    yield from filter(None, [_certainty(comparison, is_brief=True)])
    if text := " ".join(_offers(comparison, one)):
        yield text
    yield from _run(one)
    yield from change_lines(comparison, is_brief=True)


def _choice(comparison: Comparison) -> str:
    """What to buy, and what the model's error leaves beside it: all but price and speed."""
    one, reasons = comparison.candidates[comparison.chosen], blocked(comparison)
    found = untwinned_ties(comparison, comparison.chosen, with_prices=True)
    ties = [comparison.letters[i] for i in found]
    if reasons:
        tie = f", in a tie with {joined(ties, 'and')} within the model's error" if ties else ""
        return f"The best of these is {named(one)}{tie}: "
    quoted = ", once quoted" if is_mostly_assumed(one.bill) else ""
    if not ties:
        return f"Buy {named(one)}{quoted}: "
    tie = f"or {joined(ties, 'or')}, a tie within the model's error"
    return f"Buy {named(one)}{quoted}, {tie}: {one.letter} costs "


def _swept(comparison: Comparison) -> Iterator[str]:
    """What the sweeps of rows found on their links, where a report has no check."""
    one = comparison.candidates[comparison.chosen]
    if one.check is None and (found := one.proposal.swept_check):
        known = ((x.letter, x.proposal.swept_check) for x in comparison.candidates)
        times = [f"{letter} {format_time(y.step_time_s)}" for letter, y in known if y]
        yield (
            f"Times here are by the plan's model. By the sweep's check, on the links: "
            f"{', '.join(times)} a step. To compare by those, add {found.options}."
        )


def free_ports_lines(comparison: Comparison) -> Iterator[str]:
    """How many ports stay free where that is open, and how to have fewer switches."""
    words = _price_words(comparison)
    for one, found, _ in told_free_ports(comparison):
        yield f"Open for {one.letter}: {free_ports_text(found, words, one.proposal.plan)}"
    yield from wiring_lines(comparison)


def _price_words(comparison: Comparison) -> list[str]:
    """Options of other commands that say where the prices of a comparison are from."""
    quotes, origin = comparison.shop.quotes, comparison.origin
    words = []
    if origin.parts != BUNDLED_PARTS:
        words += ["--parts", near_path(origin.parts)]
    if quotes and quotes[0].place:
        words += ["--prices", near_path(quotes[0].place.file)]
        words += ["--as-of", quotes[0].day] if quotes[0].day != origin.day else []
    return words


def _stop(comparison: Comparison) -> str:
    """Not to sign, and for how many of the open points; empty for none."""
    n = len(blocked(comparison))
    return f"Do not sign yet, for {n} reason{'s' * (n > 1)}. " if n else ""


def points_title(comparison: Comparison) -> str:
    """How many points are open, and how many of them speak against signing at all."""
    n, first = len([*open_points(comparison)]), len(blocked(comparison))
    if not n:
        return "No point is open before an order."
    count = "1 point is" if n == 1 else f"{n} points are"
    forbid = "it forbids" if n == 1 else "the first forbids" if first == 1 else ""
    forbid = forbid or (f"all {n} forbid" if n == first else f"the first {first} forbid")
    return f"{count} open before an order{f'; {forbid} it' if first else ''}:"


def points(comparison: Comparison) -> tuple[str, ...]:
    """What is open, in full."""
    return tuple(open_points(comparison))


def short_points(comparison: Comparison) -> tuple[str, ...]:
    """The same in the words of a first page, which only counts what concerns other designs."""
    short = tuple(open_points(comparison, is_brief=True))
    n = len(points(comparison)) - len(short)
    more = (f"{n} more about other designs, in the notes",) if n else ()
    return (*short, *more)


def tabled(comparison: Comparison) -> tuple[str, ...]:
    """What of the lead and the warnings the points, or the tables of several designs, say, too."""
    doubts = [*_told_as_points(comparison)]
    if len(comparison.candidates) < 2:
        return tuple(doubts)
    ties = tie_text(comparison, comparison.chosen, with_prices=True).strip()
    said = (*against_lines(comparison), ties, *change_lines(comparison, is_brief=True))
    return (*said, *rule_warnings(comparison), *doubts)


def _told_as_points(comparison: Comparison) -> Iterator[str]:
    """Warnings of quotes that points say, without file and line."""
    used, said = used_in(comparison), " ".join(points(comparison))
    late = [f"{x.item} of {x.seller}, {x.when}" for x in used if x.when]
    of_figures = (text for x in used for text in (*x.doubts, x.unlike) if text and text in said)
    told = (*late, *of_figures)
    yield from (x for x in quote_warnings(used) if any(text in x for text in told))


def rule_warnings(comparison: Comparison) -> Iterator[str]:
    """Designs whose bandwidths break rules of their plans; the first reason not to sign is told."""
    broken: dict[tuple[str, ...], list[str]] = {}
    for i, one in enumerate(comparison.candidates):
        if one.evaluation.violated and i != comparison.chosen:
            broken.setdefault(broken_texts(one), []).append(one.letter)
    for rules, letters in broken.items():
        who = f"Designs {joined(letters, 'and')} break" if len(letters) > 1 else letters[0]
        verb = "" if len(letters) > 1 else " breaks"
        yield f"{who}{verb} rules of the plan at the bandwidth asked for: {'; '.join(rules)}."


def scope_text(one: Candidate) -> str:
    """What the price leaves out and its networks have no port for, and the lump sums in it."""
    support = () if one.bill.of(SUPPORT).lines else ("support",)
    taxes = () if one.bill.tax_fraction else ("taxes",)
    services = [line.part.name for line in one.bill.of(SERVICES).lines]
    words = " ".join(services).casefold()
    left_out = (x for x in (*LEFT_OUT, "freight", *support, *taxes) if x not in words)
    text = f"Not in this price: {', '.join(left_out)}."
    lumps = f"Lump sums in it: {', '.join(services)}." if services else ""
    return " ".join(filter(None, (text, lumps, full_text(one.full_networks))))


def _pair(comparison: Comparison) -> tuple[Candidate, Candidate | None]:
    """The design to buy, and the one that it is held against."""
    designs, reference = comparison.candidates, comparison.reference
    return designs[comparison.chosen], None if reference is None else designs[reference]


def _speed(comparison: Comparison, one: Candidate) -> str:
    text = f"{format_time(one.step_time_by(comparison.ranking.ranked_by))} a step"
    if one.token_time_s:
        text += f", {1e-6 / one.token_time_s:,.2f} M tokens/s"
    return text


def _no_band(comparison: Comparison) -> str:
    """That the time of the design to buy has no band, and what cannot be told then; or empty."""
    one = comparison.candidates[comparison.chosen]
    return " ".join((band_text(one), *_untold(comparison))) if one.band_s is None else ""


def _untold(comparison: Comparison) -> Iterator[str]:
    """Which designs may be the best for all that is known of errors."""
    best, found, worth = comparison.chosen, untold(comparison), comparison.worth
    if not found:
        return
    letters = joined([comparison.letters[i] for i in (best, *found)], "or")
    apart = max(abs(worth[i] / worth[best] - 1) for i in found)
    by = f"they differ by {'up to ' * (len(found) > 1)}{apart:.1%} in work per dollar"
    yield (
        f"Whether {letters} is {comparison.criterion} cannot be told then: {by}, and step times "
        "may be off by more."
    )


def band_text(one: Candidate) -> str:
    """How far its time may be off, and its speed and run with it (C23)."""
    if one.band_s is None:
        return f"Its step time has no error band: {no_class_text(one.proposal.problem)}."
    low, high = map(format_time, one.band_s)
    return f"Its step takes {low} to {high}, as {one.error_source} are off."


_QUANTITIES = 'Its quantities rest on the values in "Risks and assumptions", not on quotes.'
"""What a bill may assume though it assumes no price."""


def _certainty(comparison: Comparison, *, is_brief: bool = False) -> str:
    """What the price rests on; unless in brief, with the key that says it."""
    one = comparison.candidates[comparison.chosen]
    bill, share = one.bill, assumed_fraction(one.bill)
    racks = _racks_text(one, "" if is_brief else " (power_limit_W in --parts)")
    if not share:
        sure = "quoted" if is_all_quoted(one) else "published or quoted"
        return f"Every price of it is {sure}. {_QUANTITIES}{racks}"
    if is_mostly_assumed(bill):  # That is an open point.
        return racks.strip()
    names = ", ".join(part.name for part in bill.without_range)
    without = f" (of {names} nobody says a range)" if names else ""
    return f"{assumed_text(bill).capitalize()} of its price is assumed{without}.{racks}"


def _racks_text(one: Candidate, key: str) -> str:
    """Racks that rest on an assumed power, and their money; empty where that is next to nothing."""
    usd, rack = resting_usd(one, RACK_POWER), one.proposal.shop.assumptions.rack
    if usd * _LEAST_RACKS < one.bill.total_usd:
        return ""
    racks, power = f"{one.facility.n_racks:,} racks", f"{rack.power_limit_w / 1000:g} kW"
    money = short_usd(float(usd))
    return f" Its {racks} ({money}) rest on {power} each, assumed{key}."


_LEAST_RACKS = 200
"""Racks below this part of the price are not told."""


def _run(one: Candidate) -> Iterator[str]:
    """Days and dollars of the run, and MFU, with what their bands say (C23)."""
    if one.run is None or not math.isfinite(one.run.expected_s):
        return
    days, ends = one.run.expected_s / _DAY_S, run_ends("expected_s")(one)
    between = _between(ends, lambda x: f"{x / _DAY_S:,.1f}")
    text = f"{tokens_text(one.n_tokens)} take {days:,.1f} days with failures{between}"
    cost = _between(run_ends("cost_usd")(one), lambda x: round_usd(x).shown)
    text += f" and {round_usd(one.run.cost_usd).shown}{cost} of hardware and electricity"
    text += before_tax(one)
    if found := mfu(one):
        between = _between(mfu_ends(one), lambda x: f"{x:.1%}")
        text += f", at an MFU of {found:.1%}{between}, {COUNTED}"
    yield f"{text[:1].upper()}{text[1:]}."


def _between(ends: Ends, shown: Callable[[float], str]) -> str:
    """The ends of a band in brackets; empty for none."""
    return "" if ends is None else f" ({shown(ends[0])} to {shown(ends[1])})"


def _chosen(comparison: Comparison, bought: Set[str]) -> Iterator[str]:
    """What the file chooses though another seller asks less; nothing of what is not bought."""
    for quote in used_in(comparison):
        holding = [x for x in quote.others if x.can_be_ordered and x.worth_usd < quote.worth_usd]
        if quote.is_chosen and holding and quote.item in bought:
            least = min(holding, key=lambda x: x.worth_usd)
            own, other = (f"{unit_price_text(x.usd)} of {x.seller}" for x in (quote, least))
            yield f"The file chooses {quote.item} at {own}; {other} is less."


def _offers(comparison: Comparison, one: Candidate) -> Iterator[str]:
    """Until when quotes hold, and how long parts take, where anybody says."""
    today = today_of(comparison)
    parts = [line.part for order in orders(one.bill) for line in order.lines]
    quoted = [(x.price, x.name) for x in parts if x.price and x.price.is_quoted]
    offers = [(x.price, x.name) for x in parts if x.price and x.price.valid_until]
    if offers:
        day = min(price.valid_until or "" for price, _ in offers)
        verb = "ended" if today and day < today else "ends"
        names = [name for price, name in offers if price.valid_until == day]
        bare = [name for price, name in quoted if not price.valid_until]
        but = f"; nobody says the last day of {_listed(bare)}" if bare else ""
        yield f"The first quote {verb} on {day} ({_listed(names)}){but}."
    yield from _chosen(comparison, {x.name for x in parts})
    found = lead_time(one)
    if found.n_lead_days is not None:
        but = f"; nobody says that of {_listed(found.unknown)}" if found.unknown else ""
        yield f"The longest lead time is {found.n_lead_days} days ({found.part}){but}."
        if other := sooner(comparison, comparison.chosen):
            yield f"{other.text}."
    if text := later_text(comparison):
        yield f"{text}."


def _limits(comparison: Comparison) -> Iterator[str]:
    """What the design to buy cannot do that another one can."""
    if text := split_text(comparison):
        yield f"{text}."


def _listed(names: Sequence[str]) -> str:
    """Names of parts; of many the first and how many more."""
    more = f", {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


_MOST_NAMES = 4


def _tax_text(one: Candidate) -> str:
    """The price with tax behind the one without, as far as it is known; empty without tax."""
    bill = one.bill
    if not bill.tax_fraction:
        return ""
    taxed = price_text(one, 1 + bill.tax_fraction).removeprefix("about ")
    return f" before tax ({taxed} with {100 * bill.tax_fraction:.4g}% tax)"
