"""What drives the cost, and what moves the ranking: prices, budgets, discounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from operator import ge

from libra_planner.procurement.advice import FARTHEST
from libra_planner.procurement.bill import (
    ZERO,
    VolumeDiscount,
    discounted_usd,
    discounts_of_lines,
)
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import SWING_FRACTION, BudgetSwing, Comparison, Swing
from libra_planner.procurement.readiness import quote_of, used_in
from libra_planner.views import cells
from libra_planner.views.cells import (
    Cell,
    Section,
    Table,
    Value,
    number,
    round_delta_usd,
    round_usd,
    table_of,
)
from libra_planner.views.report.bills import group_cell, line_cell, price_cell, price_sum
from libra_planner.views.report.recommendation import offer_text

_SHARE_SHOWN = Decimal("0.0005")
"""Share of a design's price below which a price is no driver."""


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
    for i, one in enumerate(comparison.candidates):
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
    for i, one in enumerate(comparison.candidates):
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
        label = f"Budgets at {budget.factor:.0%}"
        times = [number(one.step_time_s * 1000 if one else None, 3) for one in budget.candidates]
        prices = [round_usd(one.bill.total_usd if one else None) for one in budget.candidates]
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
    headings = ["", *letters, "Ranking"]
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
    designs, tiers = comparison.candidates, comparison.shop.assumptions.volume_discounts
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
    headings = ["Discounts up to", *comparison.letters]
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
