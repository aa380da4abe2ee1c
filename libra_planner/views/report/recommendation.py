"""What to buy in one sentence, what differs from the baseline, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, Set

from libra_planner.costs.quotes import Quote
from libra_planner.evaluation import TimeModel
from libra_planner.files import near_path
from libra_planner.inputs.parts import BUNDLED_PARTS
from libra_planner.procurement.advice import (
    FARTHEST,
    Step,
    break_evens,
    main_part,
    price_rivals,
    steps,
)
from libra_planner.procurement.bill import SUPPORT
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.quotes import orders
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.readiness import (
    assumed_fraction,
    best_sprayed,
    blocked,
    is_mostly_assumed,
    unquoted_text,
    unrouted_text,
    used_in,
)
from libra_planner.procurement.run import HOUR_S
from libra_planner.units import format_time
from libra_planner.views import cells
from libra_planner.views.cells import Cell, Table, Value, number, round_delta_usd, round_usd, table
from libra_planner.views.cluster import free_ports_text
from libra_planner.views.plan import no_class_text
from libra_planner.views.report.against import against_lines, choice_notes, named
from libra_planner.views.report.bills import (
    LEFT_OUT,
    group_cell,
    lines_sum,
    rules_of_ports,
    words_of_kind,
)
from libra_planner.views.report.designs import Ends, mfu, mfu_ends
from libra_planner.views.report.offers import before_tax, network_text, order_text
from libra_planner.views.report.runs import run_ends, tokens_text
from libra_planner.views.report.strategies import on_links_text

_DAY_S = 24 * HOUR_S
_NIC_PLACE = "host"
"""Where every NIC is: no place to name."""
_MOST_BREAK_EVENS, _MOST_RIVALS = 4, 2
"""Rows of what would change the decision, the nearest first: a page has to hold the signature."""
N_FIGURES = 2
"""Rows of the table of differences before those of parts."""


def price_text(one: Candidate) -> str:
    """The price as far as it is known: between its ends, about what it is, or exactly."""
    ends = [round_usd(usd).shown for usd in one.bill.ends_usd]
    if len({*ends}) > 1:
        return " to ".join(ends)
    is_exact = not one.bill.assumed_usd
    return (
        f"${one.bill.total_usd:,.2f}"
        if is_exact
        else f"about {round_usd(one.bill.total_usd).shown}"
    )


def lead(comparison: Comparison) -> Iterator[str]:
    """What to buy, why, and how sure its price is."""
    one, other = _pair(comparison)
    npu = one.proposal.npu or one.proposal.shop.assumptions.npu
    missing = ", ".join(part.name for part in one.bill.missing)
    price = price_text(one) + (f" without {missing}" if missing else "") + _tax_text(one)
    what = f"{price} for {one.n_npus:,} {npu.name}, {_speed(comparison, one)}."
    stop, reasons = _stop(comparison), blocked(comparison)
    if other is None:
        yield f"{stop}{named(one)} costs {what}"
    else:
        buy = "The best of these is" if reasons else "Buy"
        quoted = ", once quoted" if is_mostly_assumed(one.bill) and not reasons else ""
        yield f"{stop}{buy} {named(one)}{quoted}: {what}"
    yield scope_text(one)
    yield " ".join(filter(None, (network_text(one), order_text(one))))
    if one.check is None:
        yield _unchecked_text(comparison)
    if text := on_links_text(comparison.candidates):
        yield text
    if text := unrouted_text(comparison):
        yield f"Open: {text}."
    yield from (*against_lines(comparison), *choice_notes(comparison))
    yield from rules_of_ports(one)
    if free := one.free_ports:
        ports = f"{free.n_free_ports:,} of {free.n_ports:,} {free.tier} ports are free"
        saved = f"a network of fewer switches costs {round_usd(free.saved_usd).shown} less"
        yield f"Open: {ports}; {saved}."
    if comparison.ranking.order_note:
        yield comparison.ranking.order_note
    yield f"{_certainty(one)} {band_text(one)}"
    if text := " ".join((*_run(one), *_offers(comparison, one))):
        yield text


def _unchecked_text(comparison: Comparison) -> str:
    """That a report has no check, and what the sweeps of its rows found."""
    one, other = _pair(comparison)
    if found := one.proposal.swept_check:
        known = ((x.letter, x.proposal.swept_check) for x in comparison.candidates)
        times = [f"{letter} {format_time(y.step_time_s)}" for letter, y in known if y]
        return (
            f"Times here are by the plan's model. By the sweep's check, on the links: "
            f"{', '.join(times)} a step. To compare by those, add {found.options}."
        )
    does = "may reverse this" if other else "may take longer"
    return f"Not checked on its links yet: routing by hash (ECMP) {does}; add --check ecmp."


def free_ports_line(comparison: Comparison) -> str:
    """How many ports of the design to buy stay free, and what sizes fewer; empty for few."""
    one, words = comparison.candidates[comparison.chosen], _price_words(comparison)
    free = one.free_ports
    return "" if free is None else f"Open for {one.letter}: {free_ports_text(free, words)}"


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
    """Why not to sign: the only reason, or how many :func:`points` has; empty for none."""
    reasons = blocked(comparison)
    if len(reasons) > 1:
        return f"Do not sign yet, for {len(reasons)} reasons. "
    return f"Do not sign yet: {reasons[0]}. " if reasons else ""


def points(comparison: Comparison) -> tuple[str, ...]:
    """Why not to sign, where there are several reasons."""
    reasons = blocked(comparison)
    return reasons if len(reasons) > 1 else ()


def scope_text(one: Candidate) -> str:
    """What the price leaves out."""
    support = () if one.bill.of(SUPPORT).lines else ("support",)
    taxes = () if one.bill.tax_fraction else ("taxes",)
    return f"Not in this price: {', '.join((*LEFT_OUT, 'freight', *support, *taxes))}."


def _pair(comparison: Comparison) -> tuple[Candidate, Candidate | None]:
    """The design to buy, and the one that it is held against."""
    designs, reference = comparison.candidates, comparison.reference
    return designs[comparison.chosen], None if reference is None else designs[reference]


def _speed(comparison: Comparison, one: Candidate) -> str:
    text = f"{format_time(one.step_time_by(comparison.ranking.ranked_by))} a step"
    if one.token_time_s:
        text += f", {1e-6 / one.token_time_s:,.2f} M tokens/s"
    return text


def band_text(one: Candidate) -> str:
    """How far its time may be off, and its speed and run with it (C23)."""
    if one.band_s is None:
        return f"Its step time has no error band: {no_class_text(one.proposal.problem)}."
    low, high = map(format_time, one.band_s)
    return f"Its step takes {low} to {high}, as {one.error_source} are off."


_QUANTITIES = 'Its quantities rest on the values in "Risks and assumptions", not on quotes.'
"""What a bill may assume though it assumes no price."""


def _certainty(one: Candidate) -> str:
    """What the price rests on."""
    bill, share = one.bill, assumed_fraction(one.bill)
    rest = unquoted_text(one)
    but = f" Not quoted: {rest}." if rest else ""
    if not share:
        return f"Every price of it is published or quoted.{but} {_QUANTITIES}"
    names = ", ".join(part.name for part in bill.without_range)
    without = f" (of {names} nobody says a range)" if names else ""
    ask = ": ask for quotes before you sign" if is_mostly_assumed(bill) else ""
    part = f"{share:.0%}" if share >= 0.01 else "Under 1%"  # "0%" would deny what it names.
    return f"{part} of its price is assumed{without}{ask}.{but}"


def _run(one: Candidate) -> Iterator[str]:
    """Days and dollars of the run, and MFU, with what their bands say (C23)."""
    if one.run is None or not math.isfinite(one.run.expected_s):
        return
    days, ends = one.run.expected_s / _DAY_S, run_ends("expected_s")(one)
    between = _between(ends, lambda x: f"{x / _DAY_S:,.1f}")
    text = f"{tokens_text(one.n_tokens)} take {days:,.1f} days{between}"
    cost = _between(run_ends("cost_usd")(one), lambda x: round_usd(x).shown)
    text += f" and {round_usd(one.run.cost_usd).shown}{cost} of hardware and electricity"
    text += before_tax(one)
    if found := mfu(one):
        text += f", at an MFU of {found:.1%}{_between(mfu_ends(one), lambda x: f'{x:.1%}')}"
    yield f"{text[:1].upper()}{text[1:]}."


def _between(ends: Ends, shown: Callable[[float], str]) -> str:
    """The ends of a band in brackets; empty for none."""
    return "" if ends is None else f" ({shown(ends[0])} to {shown(ends[1])})"


def _day(comparison: Comparison) -> str:
    """On which quotes have to hold."""
    quotes = comparison.shop.quotes
    return quotes[0].day if quotes else comparison.origin.day


def _chosen(comparison: Comparison, bought: Set[str]) -> Iterator[str]:
    """What the file chooses though another seller asks less; nothing of what is not bought."""
    for quote in used_in(comparison):
        holding = [x for x in quote.others if not x.when and x.worth_usd < quote.worth_usd]
        if quote.is_chosen and holding and quote.item in bought:
            least = min(holding, key=lambda x: x.worth_usd)
            own, other = (f"{_unit_usd(x.usd)} of {x.seller}" for x in (quote, least))
            yield f"The file chooses {quote.item} at {own}; {other} is less."


def _offers(comparison: Comparison, one: Candidate) -> Iterator[str]:
    """Until when quotes hold, and how long parts take, where anybody says."""
    today = _day(comparison)
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
    days = [(x.n_lead_days, x.name) for x in parts if x.n_lead_days is not None]
    if days:
        longest = max(days, key=lambda pair: pair[0])
        unknown = [x.name for x in parts if x.n_lead_days is None]
        but = f"; nobody says that of {_listed(unknown)}" if unknown else ""
        yield f"The longest lead time is {longest[0]} days ({longest[1]}){but}."


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
    return f" before tax ({_with_tax(one)} with {100 * bill.tax_fraction:.4g}% tax)"


def _with_tax(one: Candidate) -> str:
    bill = one.bill
    ends = [round_usd(float(usd) * (1 + bill.tax_fraction)).shown for usd in bill.ends_usd]
    if len({*ends}) > 1:
        return " to ".join(ends)
    return ends[0] if bill.assumed_usd else f"${bill.with_tax_usd:,.2f}"


def difference_table(comparison: Comparison) -> Table | None:
    """The lines that differ from the baseline, and their sum; none of a single design."""
    one, base = _pair(comparison)
    if base is None:
        return None
    rows: list[list[Value]] = [
        *_figures(comparison, base, one),
        *(_step_row(step, base, one) for step in steps(base, one)),
    ]
    totals = [round_usd(x.bill.total_usd, group_cell(x, "total")) for x in (base, one)]
    moved = round_delta_usd(one.bill.total_usd - base.bill.total_usd, "[c2]-[c1]")
    return table(
        "difference",
        f"From {base.letter} to {one.letter}",
        ["What", base.letter, one.letter, "Difference"],
        rows,
        total=[f"Price of everything{before_tax(one)}", *totals, moved],
        note="Units with spares, of the lines that differ.",
    )


def _figures(comparison: Comparison, base: Candidate, one: Candidate) -> Iterator[list[Value]]:
    """What the money is for."""
    pairs = [
        ("Step time, s", [x.step_time_by(comparison.ranking.ranked_by) for x in (base, one)], 3),
        ("Power, kW", [x.bill.power_w / 1000 for x in (base, one)], 0),
    ]
    for name, (before, after), digits in pairs:
        change = cells.delta(after / before - 1 if before else None)
        yield [name, number(before, digits), number(after, digits), change]


def _step_row(step: Step, base: Candidate, one: Candidate) -> list[Value]:
    sums = [lines_sum(x, lambda line: line.part.kind in step.kinds) for x in (base, one)]
    change = round_delta_usd(step.change_usd, f"{sums[1] or 0}-{sums[0] or 0}")
    units = step.n_units or (None, None)
    counts = [
        Cell("" if n is None else n, kind="count" if n is not None else cells.TEXT) for n in units
    ]
    return [step_name(step) + _other_part(step, base, one), *counts, change]


def _other_part(step: Step, base: Candidate, one: Candidate) -> str:
    """Which part takes another's place, where most money of a kind goes to another one."""
    names = [main_part(x, step.kinds[0]) for x in (base, one)] if step.n_units else []
    is_other = all(names) and len({*names}) > 1
    return f" ({names[0]} to {names[1]})" if is_other else ""


def step_name(step: Step, n_most: int = 9) -> str:
    """What differs, in words: of many kinds the first few."""
    names = ", ".join(map(words_of_kind, step.kinds[:n_most]))
    names += ", ..." if len(step.kinds) > n_most else ""
    is_one = len(step.places) == 1 and step.places != (_NIC_PLACE,)
    names += f" at {step.places[0]}" if is_one else ""
    return names[:1].upper() + names[1:]


def change_table(comparison: Comparison) -> Table | None:
    """What would have to be otherwise for another design to be the one to buy."""
    if len(comparison.candidates) == 1:
        return None
    rows = [*_prices(comparison), *_ranges(comparison), *_times(comparison), *_budgets(comparison)]
    note = (
        "Each by itself, all else as it is; the nearest prices of all. "
        f"A price beyond {FARTHEST:g} times, or a tenth, is not listed."
    )
    if not rows:
        note = f"No price within {FARTHEST:g} times or a tenth, and no budget by 20%."
    headings = ["If this changes", "from", "to", "then"]
    rows = [*_routing(comparison), *rows]
    return table("would-change", "What would change the decision", headings, rows, note=note)


def _routing(comparison: Comparison) -> Iterator[list[Value]]:
    """What routing decides: unknown without a check, else what spraying would choose."""
    one = comparison.candidates[comparison.chosen]
    if one.check is None:
        found = one.proposal.swept_check
        then = f"{format_time(found.step_time_s)} a step" if found else "not known yet"
        yield ["routing over the links", "not checked", "ecmp", then]
        return
    best, policy = best_sprayed(comparison), one.check.policy.name
    if best is not None and policy != "spray":
        stays = "stays" if best == comparison.chosen else "is"
        then = f"{comparison.letters[best]} {stays} {comparison.criterion}"
        yield ["routing over the links", policy, "spray", then]


def _prices(comparison: Comparison) -> Iterator[list[Value]]:
    for found in [*break_evens(comparison)][:_MOST_BREAK_EVENS]:
        then = f"{found.then} is {comparison.criterion}"
        if found.unit_usd is None:
            yield [f"prices of {found.price_name}", "today's", f"{found.factor:.2f}x", then]
            continue
        now = float(found.unit_usd)
        to = f"{_unit_usd(now * found.factor)} ({found.factor:.2f}x)"
        then += offer_text(found.next_offer)
        yield [f"price of {found.price_name}", _unit_usd(now), to, then]


def offer_text(offer: Quote | None) -> str:
    """What keeps a price from rising so far: another seller's offer; empty for none."""
    return f", unless you then buy of {offer.seller} at {_unit_usd(offer.usd)}" if offer else ""


def _unit_usd(usd: float) -> str:
    """Price of one: dollars, and cents of what costs little."""
    return f"${usd:,.0f}" if usd >= _MANY_USD else f"${usd:,.2f}"


_MANY_USD = 100


def _ranges(comparison: Comparison) -> Iterator[list[Value]]:
    rivals = sorted(price_rivals(comparison), key=lambda x: -x.lead_fraction)
    for one in rivals[:_MOST_RIVALS]:
        then = f"{comparison.letters[one.other]} leads by up to {one.lead_fraction:.1%}"
        yield ["all prices, within their ranges", "as listed", "the ends", then]


def _times(comparison: Comparison) -> Iterator[list[Value]]:
    """How much faster the next best would have to be."""
    if comparison.times_s is None or len(comparison.eligible) == 1:
        return
    one, other, *_ = comparison.eligible
    if not comparison.worth[other]:
        return
    step_s = comparison.candidates[other].step_time_by(comparison.ranking.ranked_by)
    factor = comparison.worth[one] / comparison.worth[other]
    letter = comparison.letters[other]
    to = f"{format_time(step_s * factor)} ({factor - 1:+.1%})"
    yield [f"step time of {letter}", format_time(step_s), to, f"{letter} is {comparison.criterion}"]


def _budgets(comparison: Comparison) -> Iterator[list[Value]]:
    name = comparison.criterion
    for budget in comparison.budgets:
        if budget.ranking is None:
            continue
        now, then = (ranks.picks[name] for ranks in (budget.before, budget.ranking))
        if then is not None and then != now:
            checked = comparison.ranking.ranked_by is TimeModel.CHECKED
            basis = ", before the check" if checked else ""
            what = f"{comparison.letters[then]} is {name}{basis}"
            yield ["all budgets of the plans", "100%", f"{budget.factor:.0%}", what]
