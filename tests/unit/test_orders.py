"""What is ordered from whom: every part once, by seller and currency, in every format (C22)."""

from __future__ import annotations

import csv
import io
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from libra_planner.procurement.quotes import orders
from libra_planner.views.report.compose import documents, report_payload
from tests.comparisons import compared_by
from tests.unit.test_procurement_workbook import Sheets, _cell_of, _same, _stored

REPORTS = Path(__file__).parents[2] / "examples" / "reports"
QUOTES = """\
item,price,unit,currency,rate,seller,date,valid_until,part_number,lead_time_days,support
h100-sxm,26500,,,,NPU Inc,2026-11-02,2099-12-31,H100-80,75,
nic-400g,1234567,,JPY,0.0066,Kaisha,2026-11-05,2099-12-24,CX7,45,6000
switch-64x400g,38000,,EUR,1.08,Switches GmbH,2026-11-10,2099-12-20,SL-64Q,112,2500
switch-64x200g,20000.55,,EUR,1.08,Switches GmbH,2026-11-09,2099-12-20,SL-64D,98,
fibre-om4,38,,,,NPU Inc,2026-11-05,2099-12-24,OM4,14,
optic-400g-sr4,540,,EUR,1.08,NPU Inc,2026-11-05,2099-12-24,,14,
tax,8.25,percent,,,State,2026-11-02,,,,
"""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """Two designs at quotes of three sellers, one of them in two currencies."""
    path = tmp_path_factory.mktemp("orders") / "quotes.csv"
    path.write_text(QUOTES)
    names = (str(REPORTS / f"{name}.yaml") for name in ("one_nic", "two_nics"))
    return compared_by(*names, "--prices", str(path))


@pytest.fixture(scope="module")
def files(comparison) -> dict[str, str | bytes]:
    return documents(comparison, ("xlsx", "csv", "html"))


def _rows(files, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files[name])))


def test_an_order_has_every_part_once_with_the_units_of_all_lines(comparison, files) -> None:
    """Sums by part over the rows of the bill's own file, which knows nothing of orders."""
    for one in comparison.candidates:
        letter = one.letter.lower()
        bill = _rows(files, f"report-bill-{letter}.csv")[:-1]
        units: Counter[str] = Counter()
        usd: Counter[tuple[str, str]] = Counter()
        for row in bill:
            units[row["Part"]] += int(row["Quantity"]) + int(row["Spare"])
            usd[row["Seller"]] += Decimal(row["Extended"])
        sums = _rows(files, f"report-orders-{letter}.csv")
        found: Counter[str] = Counter()
        for i, row in enumerate(sums[:-1], start=1):
            found["" if row["Seller"] == "not quoted" else row["Seller"]] += Decimal(
                row["Total, $"]
            )
            for part in _rows(files, f"report-order-{letter}-{i}.csv")[:-1]:
                assert int(part["Quantity"]) == units.pop(part["Part"])
        assert found == usd
        assert Decimal(sums[-1]["Total, $"]) == one.bill.total_usd
        left = {name for name in units if not name.startswith("support of")}
        assert all("included in" in name for name in left)
    assert len([row for row in bill if row["Part"] == "fibre-om4"]) > 2


def test_an_order_is_in_the_currency_of_its_quotes(comparison, files) -> None:
    """By hand: units of the bill times what the seller asks, and its support of those in use."""
    [design, _] = report_payload(comparison, [])["designs"]
    by_seller = {(x["seller"], x["currency"]): x for x in design["orders"]}
    assert {*by_seller} == {
        ("NPU Inc", "USD"),
        ("Kaisha", "JPY"),
        ("Switches GmbH", "EUR"),
        ("NPU Inc", "EUR"),
        (None, "USD"),
    }
    [nic] = by_seller["Kaisha", "JPY"]["parts"]
    in_use = sum(
        x.n_units for x in comparison.candidates[0].bill.lines if x.part.name == "nic-400g"
    )
    assert (nic["unit_price"], nic["n_bought"]) == (1234567, in_use + -(-in_use // 50))
    yen = nic["n_bought"] * 1234567 + in_use * 6000
    assert by_seller["Kaisha", "JPY"]["amount"] == yen
    assert by_seller["Kaisha", "JPY"]["usd"] == pytest.approx(yen * 0.0066, rel=1e-6)
    euros = by_seller["Switches GmbH", "EUR"]
    assert (euros["rate"], euros["rate_day"]) == (1.08, "2026-11-09")
    assert euros["amount"] * 1.08 == pytest.approx(euros["usd"], rel=1e-6)
    assert by_seller[None, "USD"]["is_quoted"] is False
    said = next(text for text in _said(comparison) if "Orders" in text)
    euro = f"Switches GmbH EUR {euros['amount'] / 1e6:.2f}M at 1.08 (rate of 2026-11-09) = "
    assert f"{euro}${euros['usd'] / 1e6:.2f}M" in said
    page = files["report.html"]
    assert "Design A: order of Switches GmbH" in page
    assert "Unit price, JPY" in page


def _said(comparison) -> list[str]:
    return report_payload(comparison, [])["decision"]["recommendation"]["sentences"]


def test_orders_of_the_workbook_follow_its_bill_and_its_prices(comparison, files) -> None:
    sheets, stored = Sheets(files["report.xlsx"]), _stored(files["report.xlsx"])
    places = [place for place in sheets.formulas() if place[0] == "Orders"]
    assert len(places) > 50
    for place in places:
        assert _same(sheets.value(*place), stored[place]), place
    sheets = Sheets(files["report.xlsx"])
    sheet, at = _cell_of(sheets, "Prices", "switch-64x400g", "D")
    assert sheets.book[sheet][at].value == pytest.approx(38000 * 1.08)
    sheets.book[sheet][at].value = 39000 * 1.08
    order = next(x for x in orders(comparison.candidates[0].bill) if x.seller == "Switches GmbH")
    n_bought = next(x.n_bought for x in order.lines if x.part.name == "switch-64x400g")
    book = sheets.book["Orders"]
    head = next(cell.row for cell in book["A"] if cell.value == "Design A: order of Switches GmbH")
    row = next(i for i in range(head, head + 9) if book[f"A{i}"].value == "switch-64x400g")
    last = next(i for i in range(head, head + 9) if book[f"A{i}"].value == "Total")
    assert sheets.value("Orders", f"D{row}") == 39000
    assert sheets.value("Orders", f"G{last}") == float(order.amount) + 1000 * n_bought
    more_usd = sheets.value("Orders", f"H{last}") - float(order.total_usd)
    assert more_usd == pytest.approx(1080 * n_bought)


def test_without_quotes_nothing_is_ordered_from_anybody() -> None:
    found = compared_by(str(REPORTS / "one_nic.yaml"))
    assert not any(name.startswith("report-order") for name in documents(found, ("csv",)))
    [order] = report_payload(found, [])["designs"][0]["orders"]
    assert (order["seller"], order["is_quoted"]) == (None, False)
    assert order["usd"] == float(found.candidates[0].bill.total_usd)
