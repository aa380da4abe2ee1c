"""What a buyer is told and can rely on: warnings, names, folders, a workbook at other prices."""

from __future__ import annotations

import io
import re
from pathlib import Path

import openpyxl

from libra_planner.cli.main import _parser
from libra_planner.cli.report import compared
from libra_planner.report.documents.files import documents
from tests.unit.test_procurement_workbook import Sheets, _cell_of, _same, _stored

ROOT = Path(__file__).parents[2]
PARTS = (ROOT / "cost_models" / "parts.yaml").read_text()
ONE, TWO, THIN = (
    str(ROOT / "examples" / "reports" / f"{name}.yaml")
    for name in ("one_nic", "two_nics", "oversubscribed")
)


def _compared(*arguments: str):
    return compared(_parser().parse_args(["report", *arguments, "-o", "unused"]))


def _repriced(text: str, name: str, usd: float) -> str:
    pattern = rf"(  {name}:\n(?:    .*\n)*?    price:(?: {{|\n      )amount: )[\d.]+"
    changed, n = re.subn(pattern, rf"\g<1>{usd}", text)
    assert n == 1
    return changed


def test_a_workbook_at_other_prices_is_the_report_made_at_them(tmp_path) -> None:
    """Every formula: bills, changes, linear model, run and its swings, drivers, discounts."""
    prices = {"nic-400g": 1650.55, "switch-64x400g": 36333.33, "optic-400g-sr4": 351.21}
    text = PARTS.replace(
        "from_units: 100, discount_fraction: 0.03", "from_units: 9, discount_fraction: 0.025"
    )
    (tmp_path / "then.yaml").write_text(text)
    for name, usd in prices.items():
        text = _repriced(text, name, usd)
    (tmp_path / "now.yaml").write_text(text)
    then, now = (
        documents(
            _compared(ONE, THIN, TWO, "--baseline", "A", "--parts", str(tmp_path / name)),
            ("xlsx", "md"),
        )
        for name in ("then.yaml", "now.yaml")
    )
    assert "2.5% from 9 units" in then["report.md"]
    sheets, expected = Sheets(then["report.xlsx"]), _stored(now["report.xlsx"])
    before = _stored(then["report.xlsx"])
    for name, usd in prices.items():
        sheet, address = _cell_of(sheets, "Prices", name, "D")
        sheets.book[sheet][address].value = usd
    places = [place for place in sheets.formulas() if place[1] != "A1"]
    moved = [place for place in places if not _same(expected[place], before[place])]
    assert len(moved) > 150
    for place in places:
        found = sheets.value(*place)
        # Rounding of sums of amounts that are rounded themselves.
        assert _same(found, expected[place]) or abs(found - expected[place]) < 0.011, place
    kept = {  # Nothing else of money is left behind.
        place
        for place, value in before.items()
        if isinstance(value, float) and value != expected[place] and place not in set(places)
    }
    assert {sheet for sheet, _ in kept} <= {"Sensitivity", "Prices"}
    assert len([place for place in kept if place[0] == "Sensitivity"]) < 20  # Break-evens.


def test_tables_that_formulas_point_into_cannot_be_sorted() -> None:
    data = documents(_compared(ONE, THIN), ("xlsx",))["report.xlsx"]
    book = openpyxl.load_workbook(io.BytesIO(data))
    for name in ("Prices", "Design A", "Design B"):
        assert book[name].auto_filter.ref is None
        assert book[name].freeze_panes == "B4"


def test_equal_figures_of_different_parts_stay_formulas() -> None:
    """Two designs of one price differ as soon as a price moves that only one of them pays."""
    found = _compared(ONE, ONE, "--baseline", "A")
    sheets = Sheets(documents(found, ("xlsx",))["report.xlsx"])
    sheet, address = _cell_of(sheets, "Comparison", "Price of everything", "D")
    assert sheets.book[sheet][address].data_type == "f"
    assert sheets.value(sheet, address) == 0
