"""What drives the cost, and what moves the ranking: prices, budgets, discounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from operator import ge

from libra_planner.costs.quotes import Quote
from libra_planner.evaluation import TimeModel
from libra_planner.procurement.advice import (
    FARTHEST,
    HandOffer,
    break_evens,
    offers_in_hand,
    price_rivals,
)
from libra_planner.procurement.bill import ZERO, VolumeDiscount
from libra_planner.procurement.bought.placements import is_placeable
from libra_planner.procurement.bought.twins import unequal
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import SWING_FRACTION, BudgetSwing, Comparison, Swing
from libra_planner.procurement.readiness import best_sprayed, quote_of, used_in
from libra_planner.procurement.terms.discounts import discounted_usd, discounts_of_lines
from libra_planner.units import format_time, unit_price_text
from libra_planner.views import cells
from libra_planner.views.cells import (
    Cell,
    Section,
    Table,
    Value,
    number,
    round_delta_usd,
    round_usd,
    table,
    table_of,
)
from libra_planner.views.report.bills import group_cell, line_cell, price_cell, price_sum
from libra_planner.views.report.offers import before_tax
from libra_planner.views.report.routed.placing import placement_row

_SHARE_SHOWN = Decimal("0.0005")
"""Share of a design's price below which a price is no driver."""
_MOST_BREAK_EVENS, _MOST_RIVALS, _MOST_OFFERS = 4, 2, 2
"""Rows of what would change the decision, the nearest first: a page has to hold the signature."""


def sensitivity_section(comparison: Comparison) -> Section:
    """Drivers, prices and budgets up and down, volume discounts."""
    least = [_SHARE_SHOWN * one.bill.total_usd for one in comparison.candidates]
    shown = [swing for swing in comparison.swings if any(map(ge, swing.usd_by_design, least))]
    tables = [_drivers(comparison, shown), _swing_table(comparison, shown)]
    tables += [_budget_table(comparison)] if comparison.budgets else []
    title = "What drives the cost, and what would change the decision"
    text = (
        f"Each price moves by {SWING_FRACTION:.0%} while all others stay. The break-even is the "
        "price nearest to today's at which another design becomes cheapest or best per dollar."
    )
    if any(quote.next_offer for quote in used_in(comparison)):
        text += " A rise is of all sellers of a part: where another offer holds, you can take it."
    tables += _discounts(comparison)
    return Section("sensitivity", title, "Sensitivity", (text,), tables=(*tables,), is_static=True)


def _drivers(comparison: Comparison, shown: list[Swing]) -> Table:
    columns: dict[str, Callable[[Swing], Value]] = {"Price": lambda swing: swing.price_name}
    for i in comparison.order:
        one = comparison.candidates[i]
        columns[f"{one.letter}, $"] = partial(_amount, one, i)
        columns[f"{one.letter}, share"] = partial(_share, one, i)
    caption = "What drives the cost, spares included"
    return table_of(caption, shown, columns, key="drivers", is_sortable=True, is_folded=True)


def _amount(one: Candidate, i: int, swing: Swing) -> Cell:
    return round_usd(swing.usd_by_design[i], price_sum(one, swing.price_name))


def _share(one: Candidate, i: int, swing: Swing) -> Cell:
    share, formula = one.bill.fraction_of(swing.usd_by_design[i]), price_sum(one, swing.price_name)
    is_known = formula and share is not None
    return cells.percent(share, 1, f"{formula}/{group_cell(one, 'total')}" if is_known else "")


def _swing_table(comparison: Comparison, shown: list[Swing]) -> Table:
    columns: dict[str, Callable[[Swing], Value]] = {
        "Price": lambda swing: swing.price_name,
        "Unit price": lambda swing: cells.usd(
            swing.unit_usd, price_cell(comparison, swing.price_name)
        ),
    }
    for i in comparison.order:
        one = comparison.candidates[i]
        columns[f"{one.letter}, ± $"] = partial(_change, one, i)
    if len(comparison.candidates) > 1:
        columns |= {
            "Ranking within the swing": lambda swing: "; ".join(swing.flips) or "holds",
            "Break-even": _break_even_usd,
            "Factor": lambda swing: number(_near(swing)[0], 3 if _near(swing)[0] else 1),
            "There": partial(_there, comparison),
        }
    caption = f"Each price by ±{SWING_FRACTION:.0%}"
    return table_of(caption, shown, columns, key="prices-moved", is_sortable=True, is_folded=True)


def _change(one: Candidate, i: int, swing: Swing) -> Cell:
    formula = price_sum(one, swing.price_name)
    return round_usd(swing.change_usd(i), f"{formula}*{SWING_FRACTION!r}" if formula else "")


def _near(swing: Swing) -> tuple[float | None, str]:
    """The factor on a price at which the ranking changes, if it is not too far away, and how."""
    factor, text = swing.break_even
    is_near = factor is not None and 1 / FARTHEST <= factor <= FARTHEST
    return (factor, text) if is_near else (None, f"nothing within {FARTHEST:g}x")


def _there(comparison: Comparison, swing: Swing) -> str:
    """What the ranking is there, and the offer of another seller that counts before."""
    usd, text = _break_even_usd(swing).value, _near(swing)[1]
    quote = quote_of(comparison, swing.price_name)
    if quote is None or usd is None:
        return text
    return text + offer_text(quote.offer_before(float(usd)))


def _break_even_usd(swing: Swing) -> Cell:
    factor, unit_usd = _near(swing)[0], swing.unit_usd
    return cells.usd(
        None if factor is None or unit_usd is None else unit_usd * Decimal(repr(factor))
    )


def _budget_table(comparison: Comparison) -> Table:
    rows: list[list[Value]] = []
    for budget in comparison.budgets:
        found = [budget.candidates[i] for i in comparison.order]
        label = f"Budgets at {budget.factor:.0%}"
        times = [number(one.step_time_s * 1000 if one else None, 3) for one in found]
        prices = [round_usd(one.bill.total_usd if one else None) for one in found]
        rows.append([f"{label}: step time, ms", *times, ""])
        rows.append([f"{label}: price of everything", *prices, _moved(comparison, budget)])
    before, letters = comparison.budgets[0].before, comparison.letters
    picks = ", ".join(f"{name} {letters[i]}" for name, i in before.picks.items() if i is not None)
    # Where the check makes another ranking than that which budgets move.
    otherwise = f", which rank the designs as they are otherwise than the check: {picks}"
    note = (
        "Only designs that are the optimum of their plan move; the others stay as they are. Step "
        f"times are {before.ranked_by}{otherwise if before != comparison.ranking else ''}. No "
        "value: nothing meets the plan's rules any more."
    )
    caption = f"Budgets (total bandwidth, cost) by ±{SWING_FRACTION:.0%}, optimised again"
    headings = ["", *(one.letter for one in comparison.ordered), "Ranking"]
    return cells.table("budgets", caption, headings, rows, note=note)


def _moved(comparison: Comparison, budget: BudgetSwing) -> str:
    if budget.ranking is None:
        return "a design is missing"
    changes = [
        f"{name}: {comparison.letters[i]}"
        for name, i in budget.ranking.picks.items()
        if i is not None and i != budget.before.picks[name]
    ]
    return "; ".join(changes) or "holds"


def _discounts(comparison: Comparison) -> list[Table]:
    """What volume discounts take off, by tier; none where they take nothing off any design."""
    designs, tiers = comparison.ordered, comparison.shop.assumptions.volume_discounts
    rows: list[list[Value]] = []
    before = [ZERO for _ in designs]
    for i, tier in enumerate(tiers, start=1):
        title = f"and {100 * tier.discount_fraction:g}% from {tier.n_units:,} units"
        moved = [discounted_usd(one.bill, tiers[:i]) - one.bill.total_usd for one in designs]
        if moved != before:
            cut = [
                _discounted(one, tiers[:i], usd) for one, usd in zip(designs, moved, strict=True)
            ]
            rows.append([title if rows else title.removeprefix("and "), *cut])
        before = moved
    if not rows:
        return []
    caption = "What volume discounts would take off the price of everything"
    note = (
        "Assumed tiers, one after another. Units of a part count together over all its lines; each "
        "part gets the largest discount that it reaches. Links per GB/s get none, nor do quotes: "
        "they are prices for this order."
    )
    headings = ["Discounts up to", *(one.letter for one in designs)]
    return [cells.table("discounts", caption, headings, rows, note=note, is_folded=True)]


def _discounted(one: Candidate, tiers: Sequence[VolumeDiscount], moved_usd: Decimal) -> Value:
    """What the first tiers take off; units reach a discount whatever the prices are."""
    terms = []
    for i, share in enumerate(discounts_of_lines(one.bill, tiers)):
        kept, of = (1 - share).as_integer_ratio()
        at = line_cell(one, i)
        if share:
            terms.append(f"ROUND(N({at})*{kept}/{of},2)-N({at})")
    return round_delta_usd(moved_usd, "+".join(terms))


def change_table(comparison: Comparison) -> Table | None:
    """What would have to be otherwise for another design to be the one to buy."""
    if len(comparison.candidates) == 1:
        return None
    prices = *_prices(comparison), *_hand_rows(comparison)
    rows = [*prices, *_ranges(comparison), *_times(comparison), *_budgets(comparison)]
    note = (
        "Each by itself, all else as it is; the nearest prices of all. "
        f"A price beyond {FARTHEST:g} times, or a tenth, is not listed."
    )
    if not rows:
        note = f"No price within {FARTHEST:g} times or a tenth, and no budget by 20%."
    headings = ["If this changes", "from", "to", "then"]
    rows = [*_routing(comparison), *placement_row(comparison), *rows]
    note = f"{note} {workload_text(comparison, is_brief=True)}"
    return table("would-change", "What would change the decision", headings, rows, note=note)


def _routing(comparison: Comparison) -> Iterator[list[Value]]:
    """What routing decides: unknown without a check, else what spraying would choose."""
    one = comparison.candidates[comparison.chosen]
    if one.check is None:
        found = one.proposal.swept_check
        then = f"{format_time(found.step_time_s)} a step" if found else "not known yet"
        placed = ", placement" if any(map(is_placeable, comparison.candidates)) else ""
        yield [f"routing over the links{placed}", "not checked", "ecmp", then]
        return
    best, policy = best_sprayed(comparison), one.check.policy.name
    if best is not None and policy != "spray":
        stays = "stays" if best == comparison.chosen else "is"
        then = f"{comparison.letters[best]} {stays} {comparison.criterion}"
        yield ["routing over the links", policy, "spray", then]


def change_lines(comparison: Comparison, *, is_brief: bool = False) -> Iterator[str]:
    """Offers in hand that would change the decision or its price, and what all of it is for.

    Parameters
    ----------
    is_brief : without what to write for another workload.
    """
    for one in offers_in_hand(comparison)[:_MOST_OFFERS]:
        what = f"{one.offer.item} at {_asked_text(one, one.offer)} ({_whose(one)})"
        yield f"{what}, {one.condition}, {_consequence(comparison, one)}."
    if len(comparison.candidates) > 1:
        yield workload_text(comparison, is_brief=is_brief)


def workload_text(comparison: Comparison, *, is_brief: bool = False) -> str:
    """For which workloads the decision holds; unless in brief, what decides for several."""
    names = dict.fromkeys(x.proposal.problem.workload_name for x in comparison.candidates)
    more = "" if is_brief else "; workloads in a plan decides for several (docs/groups.md)"
    return f"It holds for {' and '.join(names)}: another model may need another tier more{more}."


def _hand_rows(comparison: Comparison) -> Iterator[list[Value]]:
    for one in offers_in_hand(comparison)[:_MOST_OFFERS]:
        to = f"{_asked_text(one, one.offer)} ({_whose(one)})"
        then = f"{one.condition}: {_consequence(comparison, one)}"
        yield [f"price of {one.offer.item}", _asked_text(one, one.counts), to, then]


def _asked_text(one: HandOffer, quote: Quote) -> str:
    """What one costs, and its support where either of both offers has any."""
    has_support = one.offer.support_usd or one.counts.support_usd
    support = f" and {unit_price_text(quote.support_usd)} for support" if has_support else ""
    return f"{unit_price_text(quote.usd)}{support}"


def _whose(one: HandOffer) -> str:
    return f"{one.offer.seller}, {one.reason}"


def _consequence(comparison: Comparison, one: HandOffer) -> str:
    """What an offer in hand makes of the decision, and of the price of the design to buy now."""
    chosen = comparison.candidates[comparison.chosen]
    how = "less" if one.change_usd < 0 else "more"
    moved = f"{round_usd(abs(one.change_usd)).shown} {how}{before_tax(chosen)}"
    if one.best == comparison.chosen:
        return f"makes {chosen.letter} cost {moved}"
    best = f"makes {comparison.letters[one.best]} {comparison.criterion}"
    return f"{best}; {chosen.letter} costs {moved}" if one.change_usd else best


def _prices(comparison: Comparison) -> Iterator[list[Value]]:
    for found in [*break_evens(comparison)][:_MOST_BREAK_EVENS]:
        then = f"{found.then} is {comparison.criterion}"
        if found.unit_usd is None:
            yield [f"prices of {found.price_name}", "today's", f"{found.factor:.2f}x", then]
            continue
        now = float(found.unit_usd)
        to = f"{unit_price_text(now * found.factor)} ({found.factor:.2f}x)"
        then += offer_text(found.next_offer)
        yield [f"price of {found.price_name}", unit_price_text(now), to, then]


def offer_text(offer: Quote | None) -> str:
    """What keeps a price from rising so far: another seller's offer; empty for none."""
    return (
        f", unless you then buy of {offer.seller} at {unit_price_text(offer.usd)}" if offer else ""
    )


def _ranges(comparison: Comparison) -> Iterator[list[Value]]:
    rivals = sorted(price_rivals(comparison), key=lambda x: -x.lead_fraction)
    for one in rivals[:_MOST_RIVALS]:
        then = f"{comparison.letters[one.other]} leads by up to {one.lead_fraction:.1%}"
        yield ["all prices, within their ranges", "as listed", "the ends", then]


def _times(comparison: Comparison) -> Iterator[list[Value]]:
    """How much faster the next best would have to be."""
    kept = unequal(comparison)
    if comparison.times_s is None or len(kept) == 1:
        return
    one, other, *_ = kept
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
