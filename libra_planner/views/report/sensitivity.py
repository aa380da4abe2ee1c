"""What drives the cost, and what moves the ranking: prices, budgets, discounts."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

from libra_planner.procurement.bill import discounted_usd, discounts_of_lines
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import SWING_FRACTION, BudgetSwing, Ranking, Swing
from libra_planner.views.cells import (
    Cell,
    Chart,
    Section,
    Table,
    Value,
    number,
    percent,
    table,
    table_of,
    usd,
)
from libra_planner.views.report.bills import group_cell, line_cell, price_cell, price_sum
from libra_planner.views.report.comparison import Comparison
from libra_planner.views.report.designs import design_columns, design_row

_FARTHEST = 10.0
"""Factor on a price beyond which a break-even tells nothing."""

_SHARE_SHOWN = Decimal("0.0005")
"""Share of a design's price below which a price is no driver."""


def sensitivity_section(comparison: Comparison, charts: tuple[Chart, ...]) -> Section:
    """Drivers, prices and budgets up and down, volume discounts."""
    tables = [_drivers(comparison), _swing_table(comparison)]
    if comparison.budgets:
        tables.append(_budget_table(comparison))
    tables.append(_discounts(comparison))
    swing = f"{SWING_FRACTION:.0%}"
    return Section(
        key="sensitivity",
        title="What drives the cost, and what would change the decision",
        sheet="Sensitivity",
        paragraphs=(
            f"Each price moves by {swing} while all others stay. The break-even is the price "
            "nearest to today's at which another design becomes cheapest or best per dollar.",
        ),
        charts=charts,
        tables=tuple(tables),
        is_static=True,
    )


def _shown(comparison: Comparison) -> list[Swing]:
    """Prices that matter to any design."""
    totals = [one.bill.total_usd for one in comparison.candidates]
    return [
        swing
        for swing in comparison.swings
        if any(
            amount >= _SHARE_SHOWN * total
            for amount, total in zip(swing.usd_by_design, totals, strict=True)
        )
    ]


def _drivers(comparison: Comparison) -> Table:
    columns: dict[str, Callable[[Swing], Value]] = {"Price": lambda swing: swing.price_name}
    for i, one in enumerate(comparison.candidates):
        columns[f"{one.letter}, $"] = partial(_amount, one, i)
        columns[f"{one.letter}, share"] = partial(_share, one, i)
    caption, shown = "What drives the cost, spares included", _shown(comparison)
    return table_of(caption, shown, columns, key="drivers", is_sortable=True)


def _amount(one: Candidate, i: int, swing: Swing) -> Cell:
    return usd(swing.usd_by_design[i], price_sum(one, swing.price_name))


def _share(one: Candidate, i: int, swing: Swing) -> Cell:
    total, formula = one.bill.total_usd, price_sum(one, swing.price_name)
    share = f"{formula}/{group_cell(one, 'total')}" if formula and total else ""
    return percent(float(swing.usd_by_design[i] / total) if total else None, 1, share)


def _swing_table(comparison: Comparison) -> Table:
    columns: dict[str, Callable[[Swing], Value]] = {
        "Price": lambda swing: swing.price_name,
        "Unit price": lambda swing: usd(swing.unit_usd, price_cell(comparison, swing.price_name)),
    }
    for i, one in enumerate(comparison.candidates):
        columns[f"{one.letter}, ± $"] = partial(_change, one, i)
    if len(comparison.candidates) > 1:
        columns |= {
            "Ranking within the swing": lambda swing: "; ".join(swing.flips) or "holds",
            "Break-even": lambda swing: usd(_break_even_usd(swing)),
            "Factor": lambda swing: number(_near(swing), 3 if _near(swing) else 1),
            "There": lambda swing: swing.break_even[1] if _near(swing) else _NOTHING,
        }
    caption, shown = f"Each price by ±{SWING_FRACTION:.0%}", _shown(comparison)
    return table_of(caption, shown, columns, key="prices-moved", is_sortable=True)


def _change(one: Candidate, i: int, swing: Swing) -> Cell:
    formula = price_sum(one, swing.price_name)
    return usd(swing.change_usd(i), f"{formula}*{SWING_FRACTION!r}" if formula else "")


def _near(swing: Swing) -> float | None:
    """The factor on a price at which the ranking changes, if it is not too far away."""
    factor, _ = swing.break_even
    return factor if factor and 1 / _FARTHEST <= factor <= _FARTHEST else None


_NOTHING = f"nothing within {_FARTHEST:g}x"


def _break_even_usd(swing: Swing) -> Decimal | None:
    factor, unit_usd = _near(swing), swing.unit_usd
    return None if factor is None or unit_usd is None else unit_usd * Decimal(repr(factor))


def _budget_table(comparison: Comparison) -> Table:
    rows: list[list[Value]] = []
    for budget in comparison.budgets:
        label = f"Budgets at {budget.factor:.0%}"
        times = [number(one.step_time_s * 1000 if one else None, 3) for one in budget.candidates]
        prices = [usd(one.bill.total_usd if one else None) for one in budget.candidates]
        rows.append([f"{label}: step time, ms", *times, ""])
        rows.append([f"{label}: price of everything", *prices, _moved(comparison, budget)])
    caption = f"Budgets (total bandwidth, cost) by ±{SWING_FRACTION:.0%}, optimised again"
    note = (
        "Only designs that are the optimum of their plan move; the others stay as they are. Step "
        f"times are {comparison.budgets[0].before.ranked_by}"
        f"{_before(comparison)}. No value: nothing meets the plan's rules any more."
    )
    headings = ["", *comparison.letters, "Ranking"]
    return table("budgets", caption, headings, rows, note=note)


def _before(comparison: Comparison) -> str:
    """The ranking that budgets move, where the check makes another one of it."""
    before = comparison.budgets[0].before
    if before == comparison.ranking:
        return ""
    pairs = _pairs(before, comparison.ranking)
    picks = [f"{name} {comparison.letters[i]}" for name, i, _ in pairs if i is not None]
    return f", which rank the designs as they are otherwise than the check: {', '.join(picks)}"


def _moved(comparison: Comparison, budget: BudgetSwing) -> str:
    if budget.ranking is None:
        return "a design is missing"
    then, now = budget.ranking, budget.before
    changes = [
        f"{name}: {comparison.letters[index]}"
        for name, index, before in _pairs(then, now)
        if index is not None and index != before
    ]
    return "; ".join(changes) or "holds"


def _pairs(then: Ranking, now: Ranking) -> list[tuple[str, int | None, int | None]]:
    return [
        ("cheapest", then.cheapest, now.cheapest),
        ("fastest", then.fastest, now.fastest),
        ("best per dollar", then.best_per_usd, now.best_per_usd),
    ]


def _discounts(comparison: Comparison) -> Table:
    tiers = comparison.candidates[0].proposal.shop.assumptions.volume_discounts

    def totals(n: int) -> list[Value]:
        return [_discounted(one, n) for one in comparison.candidates]

    list_price = [
        usd(one.bill.total_usd, group_cell(one, "total")) for one in comparison.candidates
    ]
    rows = [design_row(comparison, "List price", list_price)]
    for i, tier in enumerate(tiers, start=1):
        title = f"and {100 * tier.discount_fraction:g}% from {tier.n_units:,} units"
        rows.append(design_row(comparison, title, totals(i)))
    caption = "Price of everything with volume discounts, one tier after another"
    note = (
        "Assumed tiers. Units of a part count together over all its lines; each part gets the "
        "largest discount that it reaches. Links per GB/s get none."
    )
    headings = ["Discounts up to", *design_columns(comparison)]
    return table("discounts", caption, headings, rows, note=note)


def _discounted(one: Candidate, n_tiers: int) -> Value:
    """A total at the first tiers; units reach a discount whatever the prices are."""
    tiers = one.proposal.shop.assumptions.volume_discounts[:n_tiers]
    terms = []
    for i, share in enumerate(discounts_of_lines(one.bill, tiers)):
        kept, of = (1 - share).as_integer_ratio()
        at = line_cell(one, i)
        terms.append(f"ROUND(N({at})*{kept}/{of},2)" if share else at)
    return usd(discounted_usd(one.bill, tiers), f"SUM({','.join(terms)})")
