"""What is ordered from whom: every part once, by seller and currency, in every format (C22)."""

from __future__ import annotations

import csv
import io
import random
import shutil
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest

from libra_planner.costs.currencies import RATES
from libra_planner.costs.quotes import Quote, cheapest, quote_warnings, without_end
from libra_planner.procurement.advice import offers_in_hand
from libra_planner.procurement.quotes import orders
from libra_planner.procurement.readiness import quote_of
from libra_planner.units import short_usd
from libra_planner.views.report.compose import decision_lines, documents, report_payload
from libra_planner.views.report.decision import decision_section
from tests.comparisons import compared_by
from tests.unit.test_procurement_workbook import Sheets, _cell_of, _same, _stored

REPORTS = Path(__file__).parents[2] / "examples" / "reports"
NAMES = [str(REPORTS / f"{name}.yaml") for name in ("one_nic", "two_nics")]
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
    euro = f"Switches GmbH EUR {euros['amount']:,.2f} at 1.08 (rate of 2026-11-09) = "
    assert f"{euro}${euros['usd']:,.2f}" in said
    page = files["report.html"]
    assert "Design A: order of Switches GmbH" in page
    assert "Unit price, JPY" in page
    for currency in ("USD", "EUR"):  # Two orders of one seller are told apart.
        assert f"Design A: order of NPU Inc in {currency}" in page
    places = [page.index(f"Bill of materials of design {x}") for x in "AB"]
    assert (places[0] > places[1]) == (comparison.chosen == 1)  # The one to buy comes first.


@pytest.mark.parametrize("seed", range(3))
def test_orders_in_euros_are_the_same_money_in_dollars_everywhere(seed, tmp_path) -> None:
    """What a buyer checks by hand: sums of a seller at its rate, lines at their price, totals."""
    draw, path = random.Random(seed), tmp_path / "quotes.csv"
    rate = Decimal(draw.randint(10_000, 14_000)) / 10_000
    items = ("nic-400g", "switch-64x400g", "switch-64x200g", "fibre-om4", "optic-400g-sr4")
    head = "item,price,currency,rate,seller,date,support"
    rows = [
        f"{item},{draw.randint(2_000, 4_000_000) / 100},EUR,{rate},{draw.choice('MN')} GmbH,2026-11-02,"
        f"{draw.randint(1, 1_000) / 100}"
        for item in items
    ]
    path.write_text("\n".join([head, *rows]))
    found = compared_by(*NAMES, "--prices", str(path))
    written = documents(found, ("csv",))
    for one, told in zip(found.candidates, report_payload(found, [])["designs"], strict=True):
        bill = _rows(written, f"report-bill-{one.letter.lower()}.csv")
        assert sum(Decimal(row["Extended"]) for row in bill[:-1]) == Decimal(bill[-1]["Extended"])
        for row in bill[:-1]:
            n_bought = int(row["Quantity"]) + int(row["Spare"])
            assert n_bought * Decimal(row["Unit price"]) == Decimal(row["Extended"])
        euros = [order for order in orders(one.bill) if order.currency == "EUR"]
        assert sum(len(order.lines) for order in euros) >= 3
        for order in euros:
            assert order.amount == round(order.amount, 2)
            assert order.amount * rate == order.total_usd
        sums = _rows(written, f"report-orders-{one.letter.lower()}.csv")
        for row in sums[:-1]:
            exact = Decimal(row["Amount"]) * Decimal(row["Rate, $"] or 1)
            assert exact == Decimal(row["Total, $"])
        assert sum(Decimal(row["Total, $"]) for row in sums[:-1]) == one.bill.total_usd
        assert told["total_usd"] == float(one.bill.total_usd)


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
    assert sheets.value(sheet, at) == pytest.approx(38000 * 1.08)
    sheets.known.clear()
    sheets.book[sheet][at].value = 39000 * 1.08
    order = next(x for x in orders(comparison.candidates[0].bill) if x.seller == "Switches GmbH")
    n_bought = next(x.n_bought for x in order.lines if x.part.name == "switch-64x400g")
    book = sheets.book["Orders"]
    head = next(cell.row for cell in book["A"] if cell.value == "Design A: order of Switches GmbH")
    row = next(i for i in range(head, head + 9) if book[f"A{i}"].value == "switch-64x400g")
    last = next(i for i in range(head, head + 9) if book[f"A{i}"].value == "Total")
    assert sheets.value("Orders", f"E{row}") == 39000
    assert sheets.value("Orders", f"H{last}") == float(order.amount) + 1000 * n_bought
    more_usd = sheets.value("Orders", f"I{last}") - float(order.total_usd)
    assert more_usd == pytest.approx(1080 * n_bought)


def test_support_of_networks_is_said_beside_their_price(comparison) -> None:
    """It is a group of the bill by itself, of no network: of NICs and switches here."""
    bill = comparison.candidates[comparison.chosen].bill
    support = sum(x.extended_usd for x in bill.of("support").lines)
    assert {x.part.name for x in bill.of("support").lines} == {
        "support of nic-400g",
        "support of switch-64x400g",
    }
    [said] = [text for text in _said(comparison) if text.startswith("Networks are")]
    assert f"; support of their parts is ${support / 1000:.0f}k more." in said


def test_a_rate_that_would_choose_another_seller_says_so(tmp_path) -> None:
    """41,040 with 2,700 of support against 46,500: as dear at 46,500/40,500 dollars a euro."""
    path = tmp_path / "quotes.csv"
    path.write_text(OFFERS)
    found = compared_by(str(REPORTS / "one_nic.yaml"), "--prices", str(path))
    made = documents(found, ("xlsx", "csv"))
    [row] = _rows(made, "report-rates.csv")
    ends = (row["Same sellers from"], float(row["to"]), row["At this value"])
    assert ends == ("", pytest.approx(46500 / 40500), "the same sellers")
    sheets = Sheets(made["report.xlsx"])
    sheet, at = _cell_of(sheets, "Prices", "1 EUR in USD", "B")
    for rate, said in ((1.14, "the same sellers"), (1.15, "ANOTHER SELLER IS CHEAPER")):
        sheets.book[sheet][at].value = rate
        sheets.known.clear()
        assert sheets.value(sheet, at.replace("B", "E")).startswith(said)
        # The twin: which quote a report at that rate would count.
        path.write_text(OFFERS.replace("1.08", str(rate)))
        [one] = compared_by(str(REPORTS / "one_nic.yaml"), "--prices", str(path)).candidates
        seller = next(
            x.part.price.seller for x in one.bill.lines if x.part.name == "switch-64x400g"
        )
        assert (seller == "Acme") == (rate == 1.15)


def test_without_quotes_nothing_is_ordered_from_anybody() -> None:
    found = compared_by(str(REPORTS / "one_nic.yaml"))
    assert not any(name.startswith("report-order") for name in documents(found, ("csv",)))
    [order] = report_payload(found, [])["designs"][0]["orders"]
    assert (order["seller"], order["is_quoted"]) == (None, False)
    assert order["usd"] == float(found.candidates[0].bill.total_usd)


def test_what_nobody_quotes_is_open_where_others_are_quoted(comparison) -> None:
    """Beside the share that is assumed: also a paper's price has no seller."""
    one = comparison.candidates[comparison.chosen]
    parts = [x for order in orders(one.bill) if not order.seller for x in order.lines]
    first, second, third, *others = sorted(parts, key=lambda x: -x.total_usd)
    prices = [f"{x.part.name}, {short_usd(float(x.total_usd))}" for x in (first, second, third)]
    rest = f"{len(others)} more, {short_usd(float(sum(x.total_usd for x in others)))}"
    assert others
    found = report_payload(comparison, [])["decision"]["recommendation"]
    assert not found["is_ready"]
    [point] = [text for text in found["open_points"] if text.startswith("not quoted: ")]
    assert point.startswith(f"not quoted: {prices[0]} (assumed price); {prices[1]} (")
    assert point.endswith(f"; {rest}")
    said = " ".join(found["sentences"])
    assert f"- {point}" in said
    ends = "The first quote ends on 2099-12-20 (switch-64x400g, switch-64x200g)."
    assert ends in said
    names = ", ".join(
        x.part.name for order in orders(one.bill) for x in order.lines if x.part.n_lead_days is None
    )
    assert "The longest lead time is 112 days (switch-64x400g); nobody says that of " in said
    assert f"nobody says that of {', '.join(names.split(', ')[:4])}" in said


UNLIKE = """\
item,price,unit,currency,rate,seller,date,valid_until,support
nic-400g,1400,,,,NetA,2026-11-12,,
nic-400g,1260,,EUR,1.09,NetB,2026-11-05,2099-12-15,95
switch-64x400g,38000,,EUR,1.09,NetB,2026-11-05,2099-12-15,2500
switch-64x400g,33000,,,,NetA,2026-08-01,2099-10-31,
rack,3900,,,,CableCo,2026-11-05,,
tax,8.25,percent,,,State,2026-11-02,,
"""


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """A quote without support is cheaper than another with it, and two have no last day."""
    path = tmp_path_factory.mktemp("unlike") / "quotes.csv"
    path.write_text(UNLIKE)
    return compared_by(str(REPORTS / "one_nic.yaml"), "--prices", str(path))


SUPPORTED = "quotes no support, NetB does ($1,476.95 with it, $1,400 here): not like for like"


def test_a_quote_without_support_is_told_from_one_with_it(unlike) -> None:
    """$1,400 against 1,260 + 95 EUR, $1,476.95: the support is in one of them alone."""
    payload, said = report_payload(unlike, []), SUPPORTED
    points = payload["decision"]["recommendation"]["open_points"]
    assert f"nic-400g: NetA {said}" in points
    assert f"quotes.csv:2: nic-400g: NetA {said}" in payload["decision"]["warnings"]
    whys = {(x["item"], x["seller"]): x["why"] for x in payload["offers"]}
    assert whys["nic-400g", "NetA"] == f"counts: the cheapest that holds; {said}"
    assert whys["nic-400g", "NetB"] == "no: dearer with support"


def test_an_offer_with_support_or_one_that_is_over_is_like_for_like() -> None:
    whole = Quote("n", 30.0, "Whole", "2026-11-02", "2026-11-20", support_usd=2.0, day="2026-11-23")
    bare = Quote("n", 28.0, "Bare", "2026-11-02", day="2026-11-23")
    assert not cheapest([whole, bare]).unlike
    assert cheapest([replace(whole, valid_until=None), bare]).unlike
    assert not cheapest([replace(whole, usd=20.0, valid_until=None), bare]).unlike


def test_quotes_without_a_last_day_are_named_where_others_have_one(unlike) -> None:
    found = report_payload(unlike, [])["decision"]["recommendation"]
    assert "2 quotes have no last day (nic-400g of NetA, rack of CableCo)" in found["open_points"]
    said = " ".join(found["sentences"])
    ends = "The first quote ends on 2099-10-31 (switch-64x400g); nobody says the last day of "
    assert ends + "nic-400g, rack." in said
    bare = Quote("n", 28.0, "Acme", "2026-11-02")
    assert not without_end([bare], [bare])


def test_without_quotes_nothing_is_open_for_want_of_one() -> None:
    found = report_payload(compared_by(str(REPORTS / "one_nic.yaml")), [])["decision"]
    points = found["recommendation"]["open_points"]
    assert not [text for text in points if "not quoted" in text]
    assert "quoted" not in " ".join(found["recommendation"]["sentences"]).replace(
        "published or quoted", ""
    ).replace("once quoted", "")


AVERAGES = {
    "AUD": (0.6644, 1.0359),
    "CAD": (1 / 1.3494, 1 / 0.9995),
    "CHF": (1 / 0.9937, 1 / 0.8984),
    "CNY": (1 / 7.0809, 1 / 6.1478),
    "DKK": (1 / 7.0786, 1 / 5.6151),
    "EUR": (1.0534, 1.3297),
    "GBP": (1.2371, 1.6484),
    "HKD": (1 / 7.8376, 1 / 7.7524),
    "INR": (1 / 82.5708, 1 / 53.37),
    "JPY": (1 / 140.5001, 1 / 79.82),
    "KRW": (1 / 1306.7637, 1 / 1052.29),
    "NOK": (1 / 10.5659, 1 / 5.8181),
    "SEK": (1 / 10.6089, 1 / 6.5124),
    "SGD": (1 / 1.38, 1 / 1.2492),
    "TWD": (1 / 33.9134, 1 / 27.9366),
}
"""Least and most annual average, 2012 to 2023: federalreserve.gov/releases/g5a, of 4 January 2016,
1 November 2021 and 1 February 2024, which leave out 2016."""


def test_rates_of_years_lie_inside_the_bands_and_their_inverses_outside() -> None:
    assert {*RATES} == {*AVERAGES}
    for name, (low, high) in RATES.items():
        least, most = AVERAGES[name]
        assert low <= 0.9 * least, name
        assert high >= 1.1 * most, name
        if name in ("EUR", "CHF", "AUD", "CAD"):  # Near a dollar, where most inverses are far.
            continue
        assert not low <= 1 / least <= high, name
        assert not low <= 1 / most <= high, name


@pytest.mark.parametrize(
    ("currency", "rate", "text"),
    [
        (
            "EUR",
            0.926,
            "EUR is at 0.926 USD, outside 0.94 to 1.6 {}; 1 / 0.926 is 1.08: it may be",
        ),
        (
            "JPY",
            150.0,
            "JPY is at 150 USD, outside 0.005 to 0.015 {}; 1 / 150 is 0.006667: it may be",
        ),
        ("gbp", 12.7, "gbp is at 12.7 USD, outside 1.05 to 1.85 {}: check it"),
        ("EUR", 1.08, ""),
        ("XYZ", 1e5, ""),
    ],
)
def test_a_rate_that_is_not_plausible_is_doubted_once(currency, rate, text) -> None:
    quotes = [
        Quote(f"n{i}", 10.0, "Acme", "2026-11-02", currency=currency, rate=rate, file=f"q.csv:{i}")
        for i in (2, 3)
    ]
    found = quote_warnings(quotes)
    assert len(found) == (text != "")
    assumed = "(assumed: a tenth around the yearly averages since 2012)"
    assert all(f"q.csv:2: {text.format(assumed)}" in one for one in found)


def test_nobody_signs_at_a_rate_that_is_upside_down(tmp_path) -> None:
    (tmp_path / "quotes.csv").write_text(QUOTES.replace("EUR,1.08", "EUR,0.926"))
    found = compared_by(str(REPORTS / "one_nic.yaml"), "--prices", str(tmp_path / "quotes.csv"))
    made = report_payload(found, [])["decision"]
    assert any("EUR is at 0.926 USD" in text for text in made["recommendation"]["open_points"])
    assert sum("EUR is at 0.926" in text for text in made["warnings"]) == 1


def test_every_reason_not_to_sign_is_named(tmp_path) -> None:
    """A rate, two prices of one order, a fraction as tax: one reason each, in every design."""
    wrong = QUOTES.replace("EUR,1.08", "EUR,0.5").replace("tax,8.25", "tax,0.0825")
    wrong = wrong.replace("nic-400g,1234567", "nic-400g,2000").replace("38000", "80")
    (tmp_path / "quotes.csv").write_text(wrong)
    names = (str(REPORTS / f"{name}.yaml") for name in ("one_nic", "two_nics"))
    found = compared_by(*names, "--prices", str(tmp_path / "quotes.csv"))
    made = report_payload(found, [])["decision"]["recommendation"]
    begins = (
        "nic-400g is quoted at $13.20, 1/114 of the lowest",
        "switch-64x400g is quoted at $40.00, 1/",
        "EUR is at 0.5 USD",
        "tax is 0.0825%",
        "the model of B does not fit",
    )
    points = [x for x in made["open_points"] if x.startswith(begins)]
    assert len(points) == len(begins)
    assert made["sentences"][0].startswith("Do not sign yet, for 5 reasons. The best of these is ")


OFFERS = """\
item,price,currency,rate,seller,date,valid_until,part_number,lead_time_days,support,discount,note
nic-400g,1500,,,Acme,2026-11-05,2099-12-24,CX7,45,60,8,offer 4711
nic-400g,1450,,,NPU Inc,2026-11-02,2099-12-31,MCX,60,,,
switch-64x400g,40000,EUR,1.08,Switches GmbH,2026-11-10,2099-12-20,SL-64Q,112,2500,5,
switch-64x400g,45500,,,Acme,2026-11-05,2099-12-24,A-64Q,60,1000,,
"""


def test_offers_say_their_note_and_what_they_would_change(tmp_path) -> None:
    """8 % off $1,500 is $1,380, and 5 % off 40,000 EUR are $41,040: as if these were asked."""
    path = tmp_path / "quotes.csv"
    path.write_text(OFFERS)
    found = compared_by(str(REPORTS / "one_nic.yaml"), "--prices", str(path))
    offers = {(x["item"], x["seller"]): x for x in report_payload(found, [])["offers"]}
    nic, switch = offers["nic-400g", "Acme"], offers["switch-64x400g", "Switches GmbH"]
    assert (nic["amount"], nic["usd"], nic["discount_fraction"]) == (1380, 1380, 0.08)
    assert (switch["amount"], switch["usd"]) == (38000, 41040)
    assert nic["note"] == "1500 USD less 8%; offer 4711"
    assert switch["note"] == "40000 EUR less 5% at 1.08 USD"
    [one] = found.candidates
    counts = {
        name: [x for x in one.bill.lines if x.part.name == name]
        for name in ("nic-400g", "switch-64x400g")
    }
    bought = {name: sum(x.n_bought for x in lines) for name, lines in counts.items()}
    in_use = {name: sum(x.n_units for x in lines) for name, lines in counts.items()}
    assert nic["counts"]
    assert nic["change_usd"] is None
    dearer = bought["nic-400g"] * 70 - in_use["nic-400g"] * 60
    assert offers["nic-400g", "NPU Inc"]["change_usd"] == dearer
    moved = bought["switch-64x400g"] * (45500 - 41040) + in_use["switch-64x400g"] * (1000 - 2700)
    assert offers["switch-64x400g", "Acme"]["change_usd"] == moved
    # The twin: the report at that offer alone.
    path.write_text("\n".join(row for row in OFFERS.splitlines() if "Switches GmbH" not in row))
    [other] = compared_by(str(REPORTS / "one_nic.yaml"), "--prices", str(path)).candidates
    assert float(other.bill.total_usd - one.bill.total_usd) == moved
    rows = _rows(documents(found, ("csv",)), "report-offers.csv")
    acme = next(x for x in rows if x["Seller"] == "Acme" and x["Part"] == "switch-64x400g")
    assert acme["Part number"] == "A-64Q"
    assert acme["In its place, A"].endswith("k more, 60 days instead of 112 days")
    assert acme["In its place, A"].startswith(f"${moved / 1e3:.0f}")


def test_an_order_has_the_offer_its_list_price_and_its_discount(tmp_path) -> None:
    """A buyer writes an order from it: what is ordered, at which price, on which offer."""
    path = tmp_path / "quotes.csv"
    path.write_text(OFFERS.replace("40000,EUR", "40000.333,EUR"))
    found = compared_by(str(REPORTS / "one_nic.yaml"), "--prices", str(path))
    ordered = report_payload(found, [])["designs"][0]["orders"]
    parts = {x["item"]: x for order in ordered for x in order["parts"]}
    nic, switch = parts["nic-400g"], parts["switch-64x400g"]
    assert (nic["note"], nic["date"], nic["valid_until"]) == (
        "offer 4711",
        "2026-11-05",
        "2099-12-24",
    )
    assert (nic["list_price"], nic["discount_fraction"], nic["unit_price"]) == (1500, 0.08, 1380)
    assert nic["description"] == "NIC with one port of 400 Gbit/s"
    assert (switch["list_price"], switch["note"]) == (40000.333, None)
    # 40,000.333 less 5 % is 38,000.31635: an order has cents.
    assert switch["unit_price"] == 38000.32
    assert parts["rack"]["date"] is None
    files = documents(found, ("csv", "md"))
    rows = [row for i in (1, 2) for row in _rows(files, f"report-order-a-{i}.csv")]
    [row] = [row for row in rows if row["Part"] == "switch-64x400g"]
    assert (row["Unit price, EUR"], row["List price, EUR"]) == ("38000.32", "40000.33")
    assert (row["Discount"], row["Quoted on"]) == ("0.05", "2026-11-10")
    assert "| Offer |" in files["report.md"]


def test_an_order_of_cables_has_their_lengths(comparison, files) -> None:
    """The lines of the bill are the twin: their notes say the same metres."""
    one = comparison.candidates[0]
    lines = [x for x in one.bill.lines if x.part.name == "fibre-om4"]
    by_length: Counter[float] = Counter()
    for line in lines:
        by_length[float(line.note.split()[0])] += line.n_bought
    assert len(by_length) > 1
    ordered = report_payload(comparison, [])["designs"][0]["orders"]
    [fibre] = [x for order in ordered for x in order["parts"] if x["item"] == "fibre-om4"]
    assert {x["length_m"]: x["n"] for x in fibre["lengths"]} == by_length
    assert sum(by_length.values()) == fibre["n_bought"]
    page = files["report.html"]
    assert "measure before you order" in page
    # Its bill leaves to orders what they say, so that notes have room.
    bill = page[page.index('id="table-bill-a"') :].split("</table>")[0]
    assert "section Orders" in page
    assert ("Part number" in bill, ">Note<" in bill, ">Seller<" in bill) == (False, True, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OFFERS.replace("1450", '"$1,450.00"'), ":3: price: got '$1,450.00', expected a number; write 1450"),
        (OFFERS.replace(",60,8,", ',"60 $",8,'), ":2: support: got '60 $', expected a number; write 60"),
        (OFFERS.replace("1450", '"1.450,00"'), ":3: price: got '1.450,00', expected a number; write 1450.00\n"),
        (OFFERS.replace("1450", '"520,00"'), ":3: price: got '520,00', expected a number; write 520.00"),
        (OFFERS.replace(",MCX,60", ",MCX,12-16 weeks"), ":3: lead_time_days: got '12-16 weeks', expected a whole number; write 112: it is in whole days"),
        (OFFERS.replace(",60,8,", ",60,100,"), ":2: discount: got 100, expected less than 100; write percent off the price, such as 8\n"),
        (OFFERS.replace(",1500,", ",0,"), ":2: price: got 0, expected more than 0\n"),
        (OFFERS.replace("discount", "rebate"), ":1: got the column 'rebate', expected a known column; known: item, price, seller, date, unit, currency, rate, valid_until, note, part_number, lead_time_days, support, discount, moq, payment_terms, incoterm, chosen"),
        (OFFERS.replace("discount", "discnt"), ":1: got the column 'discnt', expected a known column; did you mean discount?"),
    ],
)  # fmt: skip
def test_what_is_no_quote_is_told_with_its_fix(text, said, tmp_path, plan, run) -> None:
    path = tmp_path / "quotes.csv"
    path.write_text(text)
    done = run("optimize", plan(), "--prices", path)
    assert done.code == 2
    assert f"{path}{said}" in done.err


def test_a_plan_as_quotes_is_refused_in_one_line(plan, run) -> None:
    path = plan()
    done = run("optimize", path, "--prices", path)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"{path}: got a plan, expected quotes; give a CSV file")


def test_a_discount_that_is_rather_a_fraction_is_doubted() -> None:
    one = Quote("nic-400g", 1499.4, "Acme", "2026-11-02", discount_fraction=0.0004)
    [said] = quote_warnings([one])
    assert "discount of nic-400g is 0.04%: if that is a fraction, write the percent" in said


TERMS = """\
item,price,seller,date,moq,payment_terms,incoterm
nic-400g,1450,NPU Inc,2026-11-02,2000,30 days net,DAP Austin
switch-64x400g,45500,Acme,2026-11-05,10,,
"""


def test_terms_of_purchase_are_told_as_given_and_small_orders_are_open(tmp_path) -> None:
    """1,045 NICs with spares are fewer than 2,000; all switches are more than 10."""
    (tmp_path / "q.csv").write_text(TERMS)
    words = ("--prices", str(tmp_path / "q.csv"), "--as-of", "2026-11-10")
    found = compared_by(str(REPORTS / "one_nic.yaml"), *words)
    [one] = found.candidates
    bought = {x.part.name: x.n_bought for order in orders(one.bill) for x in order.lines}
    assert (bought["nic-400g"], bought["switch-64x400g"] > 10) == (1045, True)
    recommendation = report_payload(found, [])["decision"]["recommendation"]
    told = (
        "nic-400g: A buys 1,045, and NPU Inc sells 2,000 or more (moq); the whole least order "
        "costs $1.38M more"
    )
    assert [x for x in recommendation["open_points"] if "moq" in x] == [told]
    assert recommendation["sentences"][0].startswith("Do not sign yet, for 2 reasons. ")
    assert told in decision_section(found).points
    assert sum(told in text for text in recommendation["sentences"]) == 1
    [offer] = (x for x in report_payload(found, [])["offers"] if x["item"] == "nic-400g")
    given = (2000, "30 days net", "DAP Austin")
    assert (offer["moq"], offer["payment_terms"], offer["incoterm"]) == given
    files = documents(found, ("csv", "xlsx"))
    rows = [*csv.DictReader(io.StringIO(files["report-offers.csv"]))]
    said = {x["Part"]: (x["Least order"], x["Payment"], x["Incoterm"]) for x in rows}
    assert said == {"nic-400g": ("2000", *given[1:]), "switch-64x400g": ("10", "", "")}
    cells = [*openpyxl.load_workbook(io.BytesIO(files["report.xlsx"]))["Offers"].values]
    assert any("DAP Austin" in row for row in cells)
    orders_of_a = [text for name, text in files.items() if name.startswith("report-order-a-")]
    assert sum("DAP Austin" in text for text in orders_of_a) == 1


def test_prices_are_called_quoted_where_every_one_is(tmp_path) -> None:
    plain = compared_by(NAMES[0]).candidates[0].bill
    rows = [
        f"{line.part.name},{line.part.unit_usd},Acme,2026-11-02"
        for order in orders(plain)
        for line in order.lines
    ]
    for n_left_out, said in ((0, "quoted"), (1, "published or quoted")):
        # All but the last, whose price is published.
        kept = sorted(rows, key=lambda row: row.startswith("nic-400g"))[: len(rows) - n_left_out]
        (tmp_path / "q.csv").write_text("\n".join(["item,price,seller,date", *kept]))
        found = compared_by(NAMES[0], "--prices", str(tmp_path / "q.csv"))
        text = " ".join(decision_section(found).lead)
        assert f"Every price of it is {said}." in text


BULK = """\
item,price,seller,date,moq,chosen
nic-400g,1100,Bulk,2026-11-05,{moq},
nic-400g,1450,NPU Inc,2026-11-02,,
nic-400g,1490,Acme,2026-11-02,,
"""


def _bulk(tmp_path, moq: int, *names: str, chosen: str = ""):
    text = BULK.format(moq=moq).replace("Bulk,2026-11-05,1045,", f"Bulk,2026-11-05,1045,{chosen}")
    (tmp_path / "q.csv").write_text(text)
    return compared_by(*names, "--prices", str(tmp_path / "q.csv"), "--as-of", "2026-11-10")


@pytest.mark.parametrize(("moq", "seller", "usd"), [(1045, "Bulk", 1100), (1046, "NPU Inc", 1450)])
def test_an_offer_counts_where_its_least_order_is_met(moq, seller, usd, tmp_path) -> None:
    """1,045 NICs are bought: the price of 1,046 or more is nobody's, and no offer in hand."""
    found = _bulk(tmp_path, moq, NAMES[0])
    [one] = found.candidates
    [price] = {x.part.price for x in one.bill.lines if x.part.name == "nic-400g"}
    assert (price.seller, price.usd) == (seller, usd)
    assert ("from 1,045 units on" in price.source) == (seller == "Bulk")
    made = report_payload(found, [])
    assert not any("moq" in x for x in made["decision"]["recommendation"]["open_points"])
    why = {x["seller"]: (x["why"], x["change_usd"]) for x in made["offers"]}
    assert made["decision"]["recommendation"].get("offers_in_hand", []) == []
    if seller == "Bulk":
        assert why["NPU Inc"] == ("no: dearer", 1045 * 350)
        return
    assert why["Bulk"] == ("no: sells from 1,046; 1,045 are needed", None)
    assert why["NPU Inc"] == ("counts: the cheapest that holds and can be ordered", None)
    assert quote_of(found, "nic-400g").next_offer.seller == "Acme"


def test_a_least_order_that_is_chosen_or_alone_counts_and_is_open(tmp_path) -> None:
    text = BULK.format(moq=5000).replace(",5000,", ",5000,yes")
    for rows in (text, "\n".join(text.splitlines()[:2])):
        (tmp_path / "q.csv").write_text(rows)
        words = ("--prices", str(tmp_path / "q.csv"), "--as-of", "2026-11-10")
        found = compared_by(NAMES[0], *words)
        [price] = {x.part.price for x in found.bill.lines if x.part.name == "nic-400g"}
        assert price.seller == "Bulk"
        points = report_payload(found, [])["decision"]["recommendation"]["open_points"]
        told = "nic-400g: A buys 1,045, and Bulk sells 5,000 or more (moq)"
        assert any(x.startswith(told) for x in points)
        assert not any("least order of" in x for x in points)
        for text in (documents(found, ("md",))["report.md"], "\n".join(decision_lines(found, []))):
            assert "Do not sign yet" in text
            assert told in text.replace("\\", "")
            assert text.replace("\\", "").count(told) == 1


def test_a_least_order_above_the_need_that_costs_less_is_open(tmp_path) -> None:
    """1,500 NICs at $900 are $1.35M, and the 1,045 that are bought $1.52M; 2,000 are dearer."""
    told = (
        "the least order of 1,500 costs $1.35M, $165k less than the 1,045 that are bought at $1,450"
    )
    text = BULK.replace("1100", "900")
    for moq, said in ((1500, told), (2000, "the least order of 2,000 costs $1.80M, $285k more")):
        (tmp_path / "q.csv").write_text(text.format(moq=moq))
        words = ("--prices", str(tmp_path / "q.csv"), "--as-of", "2026-11-10")
        found = compared_by(NAMES[0], *words)
        made = report_payload(found, [])
        [offer] = (x for x in made["offers"] if x["seller"] == "Bulk")
        assert offer["least_order_change_usd"] == moq * 900 - 1045 * 1450
        rows = csv.DictReader(io.StringIO(documents(found, ("csv",))["report-offers.csv"]))
        [row] = (x for x in rows if x["Seller"] == "Bulk")
        assert row["In its place, A"].startswith(said)
        points = made["decision"]["recommendation"]["open_points"]
        assert (f"nic-400g of Bulk: {told}" in points) == (moq == 1500)
    [price] = {x.part.price for x in found.bill.lines if x.part.name == "nic-400g"}
    assert price.seller == "NPU Inc"  # What is bought stays.


def test_in_a_comparison_a_part_has_the_price_that_every_design_can_order_at(tmp_path) -> None:
    """Two NICs of each NPU are 2,089 with spares: enough for Bulk, and one NIC is not."""
    found = _bulk(tmp_path, 2000, *NAMES)
    bills = [one.bill for one in found.candidates]
    n_bought = [sum(x.n_bought for x in b.lines if x.part.name == "nic-400g") for b in bills]
    assert n_bought[0] < 2000 <= n_bought[1]
    prices = {x.part.price.seller for b in bills for x in b.lines if x.part.name == "nic-400g"}
    assert prices == {"NPU Inc"}
    [alone] = _bulk(tmp_path, 2000, NAMES[1]).candidates
    assert bills[1].total_usd - alone.bill.total_usd == 350 * n_bought[1]
    offer = (
        next(x for x in offers_in_hand(found) if x.offer.seller == "Bulk")
        if (found.chosen == 1)
        else None
    )
    assert offer is None or offer.reason == "sells from 2,000; not every design needs so many"


def test_every_design_may_take_the_whole_least_order_of_an_offer(tmp_path) -> None:
    """At $600 from 2,000 on B would be best if A kept its NICs; the whole order is less for A."""
    (tmp_path / "q.csv").write_text(BULK.replace("1100", "600").format(moq=2000))
    found = compared_by(*NAMES, "--prices", str(tmp_path / "q.csv"), "--as-of", "2026-11-10")
    a, b = (float(one.bill.total_usd) for one in found.candidates)
    n_a, n_b = (
        sum(x.n_bought for x in one.bill.lines if x.part.name == "nic-400g")
        for one in found.candidates
    )
    assert (found.chosen, n_a < 2000 <= n_b) == (0, True)
    a_s, b_s = found.times_s
    b_then = (b - n_b * (1450 - 600)) * b_s
    assert (a - n_a * 1450 + 2000 * 600) * a_s < b_then < a * a_s
    said = report_payload(found, [])["decision"]["recommendation"]
    assert said["offers_in_hand"] == []
    [told] = (x for x in said["open_points"] if x.startswith("nic-400g of Bulk"))
    less = short_usd(n_a * 1450 - 2000 * 600)
    bought = f"the {n_a:,} that are bought at $1,450"
    assert told.endswith(f"the least order of 2,000 costs $1.20M, {less} less than {bought}")


@pytest.mark.parametrize(("usd", "bulk_usd", "is_moved"), [(1450, 1100, False), (4000, 2010, True)])
def test_an_offer_that_one_design_alone_can_order_is_an_open_point(
    usd, bulk_usd, is_moved, tmp_path
) -> None:
    """B meets 2,080 and A does not: the page says what B alone would pay, and who is best then."""
    text = BULK.replace("1450", str(usd)).replace("1490", "4100").replace("1100", str(bulk_usd))
    (tmp_path / "q.csv").write_text(text.format(moq=2080))
    found = compared_by(*NAMES, "--prices", str(tmp_path / "q.csv"), "--as-of", "2026-11-10")
    a, b = found.candidates
    n_b = sum(x.n_bought for x in b.bill.lines if x.part.name == "nic-400g")
    saved = n_b * (usd - bulk_usd)
    then = float(b.bill.total_usd) - saved
    more = then - float(a.bill.total_usd)
    work = found.times_s[1] * then / (found.times_s[0] * float(a.bill.total_usd))
    end = f"A stays best per dollar: it costs {short_usd(more)} less than B and does {work - 1:.1%}"
    if is_moved:
        end = f"B would be best per dollar: it costs {short_usd(more)} more than A and does "
        end += f"{1 / work - 1:.1%}"
    assert (found.chosen, work < 1) == (0, is_moved)
    told = (
        f"B alone buys enough of nic-400g for ${bulk_usd:,} of Bulk (2,080 or more), and a part "
        f"has one price here: its bill is then {short_usd(saved)} less, and {end} more work per "
        "dollar"
    )
    said = report_payload(found, [])["decision"]["recommendation"]
    assert [x for x in said["open_points"] if "Bulk" in x] == [told]
    assert sum(f"- {told}" in x for x in decision_lines(found, [])) == 1


WAITS = """\
item,price,seller,date,valid_until,lead_time_days,moq
switch-64x400g,40000,Slow,2026-11-02,,126,
switch-64x400g,52000,Soon,2026-11-02,,70,
switch-64x400g,55000,Dear,2026-11-02,,40,
switch-64x400g,41000,Gone,2026-11-02,2026-11-05,20,
switch-64x400g,39000,Bulk,2026-11-02,,20,9999
nic-400g,1450,Slow,2026-11-02,,{nic_days},
"""


@pytest.mark.parametrize(("nic_days", "then"), [(98, "98 days (nic-400g)"), (126, "")])
def test_the_cheapest_offer_that_is_sooner_stands_beside_the_longest_lead_time(
    nic_days, then, tmp_path
) -> None:
    """Of offers that can be ordered; none where another part waits as long."""
    (tmp_path / "q.csv").write_text(WAITS.format(nic_days=nic_days))
    words = ("--prices", str(tmp_path / "q.csv"), "--as-of", "2026-11-10")
    found = compared_by(NAMES[0], *words)
    [bill] = (one.bill for one in found.candidates)
    n = sum(x.n_bought for x in bill.lines if x.part.name == "switch-64x400g")
    share = n * 12000 / float(bill.total_usd)
    told = f"Soon offers switch-64x400g in 70 days for {short_usd(n * 12000)} more ({share:.2%}): "
    said = " ".join(decision_section(found).lead)
    assert (f"{told}then the longest is {then}." in said) == bool(then)
    assert ("then the longest is" in said) == bool(then)
    [one] = report_payload(found, [])["considered"]
    keys = ("longest_lead_days", "sooner_seller", "sooner_change_usd", "sooner_longest_lead_days")
    sooner = ("Soon", n * 12000, 98) if then else (None, None, None)
    assert tuple(one[key] for key in keys) == (126, *sooner)


OTHER = """\
kind: parts
base: parts
source: offers
as_of: "2026-11"
parts:
  wide:
    kind: switch
    description: a switch of 64 ports of 400 Gbit/s
    port_speed: 400 Gbps
    n_ports: 64
    power_W: 747
    rack_units: 1
    spare_fraction: 0.02
    price: {amount: 60000, confidence: quoted, as_of: "2026-11", source: offer 1}
"""


def test_an_offer_that_cannot_be_ordered_chooses_no_part(tmp_path) -> None:
    """Wide switches at $30,000 are sold from 500 on, else at $70,000: the other one is bought."""
    (tmp_path / "own.yaml").write_text(OTHER)
    rows = ("wide,30000,Bulk,2026-11-02,500", "wide,70000,Acme,2026-11-02,")
    more = "switch-64x400g,45500,Acme,2026-11-02,"
    (tmp_path / "q.csv").write_text("\n".join(["item,price,seller,date,moq", *rows, more]))
    given = ("--parts", str(tmp_path / "own.yaml"), "--prices", str(tmp_path / "q.csv"))
    [one] = compared_by(NAMES[0], *given).candidates
    bought = {x.part.name: x.part.unit_usd for x in one.bill.lines if x.part.n_ports == 64}
    assert bought["switch-64x400g"] == 45500
    assert "wide" not in bought


def test_a_first_page_has_bold_words_and_the_networks_of_what_is_not_quoted(files) -> None:
    page = files["report.html"].partition('<div class="rest">')[0]
    assert "<b>Not in this price:</b> building" in page
    assert "<b>Orders before tax:</b> " in page
    assert ", frontend and storage networks)" in page


def test_messages_name_a_quotes_file_as_it_is_written_from_here(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.csv").write_text("item,price,currency,rate,seller,date\nnic-400g,9,eur,1,A,2026-11-02")
    done = run("report", NAMES[0], "--prices", "q.csv", "-o", "r")
    assert "q.csv:2: currency: got 'eur'" in done.err
    assert str(tmp_path) not in done.err
    shutil.copy(NAMES[0], "clos.yaml")
    assert "did you mean clos.yaml?" in run("report", "clos.yml", "-o", "r").err
