"""The workbook's formulas: recomputed here, by LibreOffice, and after a price has changed."""

from __future__ import annotations

import html
import io
import math
import re
import shutil
import subprocess
import zipfile
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.utils import get_column_letter, range_boundaries

from libra_planner.procurement.advice import steps
from libra_planner.views.renderers import workbook as writer
from libra_planner.views.report.compose import documents
from tests.comparisons import compared_by

EXAMPLES = Path(__file__).parents[2] / "examples"
REFERENCE = re.compile(r"(?:'([^']+)'!)?(\$?[A-Z]{1,2}\$?\d+(?::\$?[A-Z]{1,2}\$?\d+)?)")


class Sheets:
    """Formulas of a workbook, computed one by one: the slow twin of what is stored."""

    def __init__(self, data: bytes) -> None:
        self.book = openpyxl.load_workbook(io.BytesIO(data))
        self.known: dict[tuple[str, str], Any] = {}

    def value(self, sheet: str, address: str) -> Any:
        key = (sheet, address)
        if key not in self.known:
            cell = self.book[sheet][address]
            if cell.data_type != "f":
                self.known[key] = "" if cell.value is None else cell.value
            else:
                self.known[key] = self._computed(sheet, cell.value[1:])
        return self.known[key]

    def _computed(self, sheet: str, formula: str) -> Any:
        text = REFERENCE.sub(
            lambda match: f"R({(match[1] or sheet)!r}, {match[2].replace('$', '')!r})", formula
        )
        text = re.sub(r"(?<![<>=])=(?!=)", "==", text).replace("&", "+")
        text = re.sub(r'^IF\((R\([^)]*\)==""),"",(.*)\)$', r'"" if \1 else (\2)', text)
        names = {"R": self._cells, "SUM": _sum, "SUMIF": _sumif, "ROUND": _round}
        names |= {"MIN": min, "MAX": max, "IF": lambda holds, then, other: then if holds else other}
        names |= {"ABS": abs, "N": lambda value: value or 0, "NA": lambda: float("nan")}
        names |= {"ISNUMBER": lambda value: isinstance(value, float | int)}
        names |= {"IFERROR": lambda value, other: other if value != value else value}
        names |= {"AND": lambda *values: all(values)}
        return eval(text, {"__builtins__": {}}, names)

    def _cells(self, sheet: str, reference: str) -> Any:
        if ":" not in reference:
            return self.value(sheet, reference)
        left, top, right, bottom = range_boundaries(reference)
        return [
            self.value(sheet, f"{get_column_letter(column)}{row}")
            for row in range(top, bottom + 1)
            for column in range(left, right + 1)
        ]

    def formulas(self) -> list[tuple[str, str]]:
        cells = (cell for sheet in self.book for row in sheet.iter_rows() for cell in row)
        return [(cell.parent.title, cell.coordinate) for cell in cells if cell.data_type == "f"]


def _numbers(values: Any) -> list[float]:
    flat = [x for value in values for x in (value if isinstance(value, list) else [value])]
    return [x for x in flat if not isinstance(x, str)]


def _sum(*values: Any) -> float:
    return sum(_numbers(values))


def _sumif(where: list[Any], wanted: Any, values: list[Any]) -> float:
    return sum(_numbers(v for at, v in zip(where, values, strict=True) if at == wanted))


def _round(value: float, digits: int) -> float:
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def _comparison(*arguments: str):
    designs = [
        str(EXAMPLES / "01_gpt3_4d.yaml"),
        f"{EXAMPLES / '02_performance_per_cost.yaml'}@300,100,75,25",
    ]
    return compared_by(*designs, *arguments)


@pytest.fixture(scope="module")
def comparison():
    """Two designs with differences against the first."""
    return _comparison("--baseline", "A")


@pytest.fixture(scope="module")
def data(comparison) -> bytes:
    """Their workbook."""
    return documents(comparison, ("xlsx",))["report.xlsx"]


def _stored(data: bytes) -> dict[tuple[str, str], Any]:
    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
    return {(s.title, c.coordinate): c.value for s in book for row in s.iter_rows() for c in row}


def _same(found: Any, stored: Any, rel: float = 1e-12) -> bool:
    if isinstance(found, str) or stored is None:
        return bool(found == (stored or ""))
    return bool(found == pytest.approx(stored, rel=rel, abs=1e-9))


def test_formulas_give_the_values_that_are_stored(data) -> None:
    sheets, stored = Sheets(data), _stored(data)
    formulas = sheets.formulas()
    assert len(formulas) > 300
    for place in formulas:
        assert _same(sheets.value(*place), stored[place]), place


def _cell_of(sheets: Sheets, sheet: str, label: str, column: str) -> tuple[str, str]:
    cells = sheets.book[sheet]["A"]
    return sheet, f"{column}{next(cell.row for cell in cells if cell.value == label)}"


def test_a_changed_price_moves_every_total(comparison, data) -> None:
    """The NIC of 200 Gbit/s for $100 more: on its lines, in the bill and in the comparison."""
    sheets = Sheets(data)
    price = _cell_of(sheets, "Prices", "nic-200g", "D")
    sheets.book[price[0]][price[1]].value += 100
    for one, column, sheet in zip(  # The design to buy comes first, then its difference.
        comparison.candidates, "DB", ("Design A", "Design B"), strict=True
    ):
        n_nics = one.bill.n_bought_by_part()["nic-200g"]
        expected = float(one.bill.total_usd) + 100 * n_nics
        assert n_nics > 0
        assert sheets.value(*_cell_of(sheets, sheet, "Total", "I")) == pytest.approx(expected)
        place = _cell_of(sheets, "Comparison", "Price of everything", column)
        assert sheets.value(*place) == pytest.approx(expected)


@pytest.mark.parametrize("left", [None, "on request"])
def test_a_price_that_is_taken_away_is_not_free(left, comparison, data) -> None:
    """Totals are #N/A, here nan, and the cell takes no text."""
    sheets = Sheets(data)
    sheet, at = _cell_of(sheets, "Prices", "nic-200g", "D")
    [rule] = [x for x in sheets.book[sheet].data_validations.dataValidation if at in x.sqref]
    assert (rule.type, rule.operator, rule.formula1) == ("decimal", "greaterThanOrEqual", "0")
    sheets.book[sheet][at].value = left
    for name in ("Design A", "Design B"):
        assert math.isnan(sheets.value(*_cell_of(sheets, name, "Total", "I")))
    assert "IFERROR(" in "".join(str(x.value) for x in sheets.book["Decision"]["A"])
    assert str(sheets.value("Decision", "A2")).startswith("As printed: ")


def test_a_changed_price_moves_the_run_the_drivers_and_the_verdict(comparison, data) -> None:
    """Fibres for $100 more: hardware of a run is paid by the time that it takes."""
    sheets, stored = Sheets(data), _stored(data)
    one = comparison.candidates[0]
    price = _cell_of(sheets, "Prices", "fibre-om4", "D")
    sheets.book[price[0]][price[1]].value += 100
    n_fibres = one.bill.n_bought_by_part()["fibre-om4"]
    place = _cell_of(sheets, "Sensitivity", "fibre-om4", "B")
    assert sheets.value(*place) - stored[place] == pytest.approx(100 * n_fibres)
    place = _cell_of(sheets, "Comparison", "of it with assumed prices", "B")
    assert sheets.value(*place) - stored[place] == pytest.approx(100 * n_fibres)


def test_the_ends_of_all_sources_follow_the_prices(comparison, data) -> None:
    """A price of one's own above its range: all is dearer by it, and the lowest by less."""
    sheets, stored = Sheets(data), _stored(data)
    one = comparison.candidates[0]
    part = next(x.part for x in one.bill.lines if x.part.name == "nic-200g")
    low, high = (float(usd) for usd in part.price.ends_usd)
    now, own, n = float(part.unit_usd), high + 50, one.bill.n_bought_by_part()["nic-200g"]
    assert low <= now <= high
    sheet, at = _cell_of(sheets, "Prices", "nic-200g", "D")
    sheets.book[sheet][at].value = own
    ends = ("Price of everything, lowest of all sources", "Price of everything")
    ends += ("Price of everything, highest of all sources",)
    places = [_cell_of(sheets, "Comparison", title, "D") for title in ends]
    moved = [sheets.value(*place) - stored[place] for place in places]
    assert moved == pytest.approx([0, n * (own - now), n * (own - high)], abs=1e-6)
    found = [sheets.value(*place) for place in places]
    assert found == sorted(found)


def test_titles_say_that_words_are_of_the_prices_before(data) -> None:
    sheets, stored = Sheets(data), _stored(data)
    static = ["Decision", "Comparison", "Run", "Sensitivity", "Assumptions", "Design A", "Design B"]
    for name in static:
        assert sheets.value(name, "A1") == stored[name, "A1"]
        assert "CHANGED" not in stored[name, "A1"]
    price = _cell_of(sheets, "Prices", "nic-200g", "D")
    sheets.known.clear()
    sheets.book[price[0]][price[1]].value += 0.01
    for name in static:
        assert sheets.value(name, "A1").startswith(stored[name, "A1"] + " - PRICES CHANGED")
        # Where a price that is taken away makes an error, the title says so, too.
        assert str(sheets.book[name]["A1"].value).startswith("=IF(IFERROR(")
    [first] = sheets.book["Decision"].row_breaks.brk
    assert str(sheets.book["Decision"].cell(first.id + 1, 1).value).startswith("What ")


def test_the_verdict_follows_the_prices() -> None:
    """The oversubscribed design is cheaper; of equals, where all is free, it counts, too."""
    plans = [str(EXAMPLES / "reports" / f"{x}.yaml") for x in ("one_nic", "oversubscribed")]
    found = compared_by(*plans)
    sheets = Sheets(documents(found, ("xlsx",))["report.xlsx"])
    (row,) = [c.row for c in sheets.book["Decision"]["A"] if "At the prices" in str(c.value)]
    text = "At the prices of this workbook: cheapest {}, best per dollar {}"
    ranking = found.ranking
    letters = [found.letters[ranking.cheapest], found.letters[ranking.best_per_usd]]
    assert sheets.value("Decision", f"A{row}") == text.format(*letters) == text.format("B", "B")
    sheets.known.clear()
    for cell in sheets.book["Prices"]["D"]:
        if isinstance(cell.value, float | int):
            cell.value = 0.0
    assert sheets.value("Decision", f"A{row}") == text.format("B", "B")


def test_the_run_follows_the_prices() -> None:
    """Hardware of a run is paid by the time that it takes."""
    plan = str(EXAMPLES / "reports" / "one_nic.yaml")
    (one,) = (found := compared_by(plan)).candidates
    data = documents(found, ("xlsx",))["report.xlsx"]
    sheets, stored = Sheets(data), _stored(data)
    price = _cell_of(sheets, "Prices", "nic-400g", "D")
    sheets.book[price[0]][price[1]].value += 100
    life_s = one.proposal.shop.assumptions.amortisation_s
    dearer = 100 * one.bill.n_bought_by_part()["nic-400g"] * one.run.expected_s / life_s
    n_million_tokens = one.run.n_tokens / 1e6
    for label, expected, within in (
        ("Hardware, by time", dearer, 0.02),
        ("Cost of the run", dearer, 0.02),
        ("per NPU-hour", dearer / one.run.npu_hours, 1e-9),
        ("per million tokens, $", dearer / n_million_tokens, 1e-9),
    ):
        place = _cell_of(sheets, "Run", label, "B")
        assert sheets.value(*place) - stored[place] == pytest.approx(expected, abs=within), label


def test_a_missing_price_can_be_written_in(tmp_path) -> None:
    text = (Path(__file__).parents[2] / "cost_models" / "parts.yaml").read_text()
    text = re.sub(r"(  nic-200g:\n(?:    .*\n)*?)    price:\n(?:      .*\n)*", r"\1", text)
    (tmp_path / "p.yaml").write_text(text)
    found = _comparison("--parts", str(tmp_path / "p.yaml"), "--allow-missing")
    data = documents(found, ("xlsx",))["report.xlsx"]
    sheets, stored, one = Sheets(data), _stored(data), found.candidates[0]
    total = _cell_of(sheets, "Design A", "Total of the lines with a price", "I")
    assert sheets.value(*total) == pytest.approx(float(one.bill.total_usd))
    for place in sheets.formulas():
        assert _same(sheets.value(*place), stored[place]), place
    sheets.known.clear()
    price = _cell_of(sheets, "Prices", "nic-200g", "D")
    sheets.book[price[0]][price[1]].value = 10.0
    n_nics = one.bill.n_bought_by_part()["nic-200g"]
    assert sheets.value(*total) == pytest.approx(float(one.bill.total_usd) + 10 * n_nics)


def test_a_bill_that_is_the_baselines_changes_nothing() -> None:
    """Without lines there is nothing to add up, and no formula whose range holds itself."""
    plan = str(EXAMPLES / "01_gpt3_4d.yaml")
    found = compared_by(plan, plan, "--baseline", "A")
    made = documents(found, ("xlsx", "csv", "md"))
    sheets = Sheets(made["report.xlsx"])
    sheet, address = _cell_of(sheets, "Design B", "Difference of the totals", "G")
    assert (sheets.book[sheet][address].data_type, sheets.value(sheet, address)) == ("n", 0)
    stored = _stored(made["report.xlsx"])
    for place in sheets.formulas():  # One that refers to itself would not end.
        assert _same(sheets.value(*place), stored[place]), place
    assert "Nothing changes: the bill is that of A." in made["report.md"].replace("\\", "")
    assert made["report-changes-b.csv"].splitlines()[1:] == ["Difference of the totals,,,,,,0.00"]


ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""
"""LibreOffice's setting that it computes every workbook that it opens."""


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_libreoffice_finds_the_same_values(comparison, data, tmp_path, monkeypatch) -> None:
    """From a workbook whose stored values are all wrong, so that it has to compute them."""
    stored = _stored(data)
    monkeypatch.setattr(writer, "_cached", lambda cell: 12345.0)
    (tmp_path / "r.xlsx").write_bytes(documents(comparison, ("xlsx",))["report.xlsx"])
    (tmp_path / "profile" / "user").mkdir(parents=True)
    (tmp_path / "profile" / "user" / "registrymodifications.xcu").write_text(ALWAYS)
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless"]
    command += ["--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", str(tmp_path / "out")]
    subprocess.run(
        [*command, str(tmp_path / "r.xlsx")], check=True, capture_output=True, timeout=120
    )
    found = _stored((tmp_path / "out" / "r.xlsx").read_bytes())
    for place in Sheets(data).formulas():
        assert _same(found[place], stored[place], 1e-9), place


def test_sheets_have_frozen_headings_and_formats(data) -> None:
    book = openpyxl.load_workbook(io.BytesIO(data))
    assert book.sheetnames == [
        "Decision", "Charts", "Comparison", "Run", "Sensitivity", "Design B", "Design A", "Facility",
        "Assumptions", "Prices", "Origin",
    ]  # fmt: skip
    assert all(book[name].freeze_panes == "B4" for name in book.sheetnames[1:])
    assert book["Design A"]["I4"].number_format == "$#,##0.00;-$#,##0.00"
    assert book.properties.created.year == 2020


def test_amounts_have_room_and_long_texts_have_lines(data) -> None:
    """An amount that is wider than its column is shown as ###, a text runs over the next row."""
    book, n_amounts, n_wrapped = openpyxl.load_workbook(io.BytesIO(data), data_only=True), 0, 0
    for sheet in book:
        columns = sheet.column_dimensions.values()
        widths = {i: one.width for one in columns for i in range(one.min, one.max + 1)}
        for cell in (cell for row in sheet.iter_rows(min_row=4) for cell in row):
            width = widths[cell.column]
            if isinstance(cell.value, float | int) and "$" in cell.number_format:
                n_amounts += 1
                pattern = cell.number_format
                is_whole = pattern.startswith("[>=1000]") and cell.value >= 1000
                n_digits = 0 if is_whole or ".00" not in pattern else 2
                shown = f"${cell.value:,.{n_digits}f}"
                assert len(shown) <= width, (sheet.title, cell.coordinate)
            elif cell.alignment.wrap_text and cell.coordinate not in sheet.merged_cells:
                n_wrapped += 1
                room = width * (sheet.row_dimensions[cell.row].height or 15) / 15
                assert 0.9 * len(str(cell.value)) <= room, (sheet.title, cell.coordinate)
    assert n_amounts > 300
    assert n_wrapped > 10


def test_differences_of_shares_are_points(comparison, data) -> None:
    """Shares of the networks in the price: their plain difference, in hundredths."""
    _, stored = Sheets(data), _stored(data)
    sheet, address = _cell_of(Sheets(data), "Comparison", "Share of all networks in the price", "C")
    row = address[1:]
    one, other = stored[sheet, f"D{row}"], stored[sheet, f"B{row}"]
    assert one != other
    assert stored[sheet, address] == pytest.approx(100 * (other - one))
    text = documents(comparison, ("md", "csv"))
    line = next(x for x in text["report.md"].splitlines() if "Share of all networks" in x)
    assert f"{100 * (other - one):+.1f} pp" in line
    line = next(x for x in text["report-money.csv"].splitlines() if "Share of all networks" in x)
    assert float(line.split(",")[2]) == pytest.approx(other - one)


def test_charts_are_the_workbooks_own_and_follow_its_prices(comparison, data) -> None:
    """The way from A to B begins at one price and ends at the other, at any price of a NIC."""
    sheets = Sheets(data)
    charts = sheets.book["Charts"]._charts
    assert [type(chart).__name__ for chart in charts] == ["BarChart", "BarChart", "ScatterChart"]
    named = [one.val.numRef.f for chart in charts[:2] for one in chart.series]
    named += [one.yVal.numRef.f for one in charts[2].series]
    assert all(text.startswith("'Charts'!$") for text in named)
    base, one = (comparison.candidates[i] for i in (comparison.reference, comparison.chosen))
    last = 4 + len(steps(base, one))
    for usd in (0, 500):
        sheets.known.clear()
        price = _cell_of(sheets, "Prices", "nic-200g", "D")
        sheets.book[price[0]][price[1]].value += usd
        end = sheets.value("Charts", f"G{last + 1}")
        assert sheets.value("Charts", f"C{last}") == pytest.approx(end)
        assert end == pytest.approx(
            sheets.value(*_cell_of(sheets, f"Design {one.letter}", "Total", "I"))
        )


TWO_SELLERS = """item,price,unit,currency,rate,seller,date,valid_until,support
nic-400g,1350,each,,,Beta,2026-11-03,2026-12-15,40
nic-400g,1400,each,,,Acme,2026-11-02,2026-12-31,
nic-400g,1290,each,,,Gamma,2026-09-01,2026-10-31,
switch-64x400g,30000,each,EUR,1.1,Switches Ltd,2026-10-15,2026-12-31,
switch-64x400g,34000,each,,,Acme,2026-10-15,2026-12-31,
"""


@pytest.mark.parametrize(
    ("part", "price", "is_dearer"),
    [
        ("", 0, False),
        ("nic-400g", 1360, False),  # With 40 for support as dear as Acme's 1,400.
        ("nic-400g", 1360.5, True),
        ("support of nic-400g", 60, True),
        ("switch-64x400g", 34000, False),
        ("switch-64x400g", 34001, True),
        ("1 EUR in USD", 1.2, True),
    ],
)
def test_a_price_above_another_sellers_is_told(tmp_path, part, price, is_dearer) -> None:
    """In the decision, and beside the price; an offer that is over does not count."""
    file = tmp_path / "q.csv"
    file.write_text(TWO_SELLERS)
    plan = str(EXAMPLES / "reports" / "one_nic.yaml")
    found = compared_by(plan, "--prices", str(file), "--as-of", "2026-11-24")
    sheets = Sheets(documents(found, ("xlsx",))["report.xlsx"])
    if part:
        column = "B" if part.startswith("1 EUR") else "D"
        sheet, address = _cell_of(sheets, "Prices", part, column)
        sheets.book[sheet][address] = price
    sellers = [cell for cell in sheets.book["Decision"]["A"] if "SELLER" in str(cell.value)]
    (said,) = (sheets.value("Decision", cell.coordinate) for cell in sellers)
    assert said.startswith("ANOTHER SELLER IS CHEAPER") == is_dearer
    heads = next(row for row in sheets.book["Prices"] if row[0].value == "Part")
    (at,) = (cell.column_letter for cell in heads if cell.value == "At this price")
    own = part.removeprefix("support of ").replace("1 EUR in USD", "switch-64x400g")
    own = own or "nic-400g"
    word = sheets.value(*_cell_of(sheets, "Prices", own, at))
    assert word == ("ANOTHER SELLER IS CHEAPER" if is_dearer else "the same seller")


@pytest.mark.parametrize("part", ["switch-64x400g", "rack"])
def test_a_price_that_is_taken_away_leaves_sellers_open(tmp_path, part) -> None:
    """Also of a part that one seller offers: no total of the workbook is known then."""
    (tmp_path / "q.csv").write_text(TWO_SELLERS)
    plan, file = str(EXAMPLES / "reports" / "one_nic.yaml"), str(tmp_path / "q.csv")
    found = compared_by(plan, "--prices", file, "--as-of", "2026-11-24")
    sheets = Sheets(documents(found, ("xlsx",))["report.xlsx"])
    sheet, address = _cell_of(sheets, "Prices", part, "D")
    sheets.book[sheet][address].value = None
    sheets.known.clear()
    cells = [cell for cell in sheets.book["Decision"]["A"] if "SELLER" in str(cell.value)]
    (said,) = (sheets.value("Decision", cell.coordinate) for cell in cells)
    assert said.startswith("A price or a rate is missing")
    heads = next(row for row in sheets.book["Prices"] if row[0].value == "Part")
    (at,) = (cell.column_letter for cell in heads if cell.value == "At this price")
    word = sheets.value(*_cell_of(sheets, "Prices", "switch-64x400g", at))
    assert (word == "the same seller") == (part == "rack")


def _printed_width(sheet) -> float:
    """Characters of the columns that paper has."""
    widths = {
        i: one.width
        for one in sheet.column_dimensions.values()
        for i in range(one.min, one.max + 1)
    }
    if not sheet.print_area:
        return sum(widths.values())
    least, _, most, _ = openpyxl.utils.range_boundaries(sheet.print_area.split("!")[1])
    return sum(width for i, width in widths.items() if least <= i <= most)


def test_letters_of_printed_sheets_have_seven_points(comparison) -> None:
    """A4, landscape, has 784 points: of a column of n characters 5.25 n + 3.75 at 11 points."""
    data = documents(comparison, ("xlsx",))["report.xlsx"]
    for sheet in openpyxl.load_workbook(io.BytesIO(data)):
        total, scale = _printed_width(sheet), sheet.page_setup.scale or 100
        is_fitted = (
            sheet.sheet_properties.pageSetUpPr and sheet.sheet_properties.pageSetUpPr.fitToPage
        )
        if is_fitted:
            assert 11 * min(1, 784 / (5.25 * total)) >= 6.7, sheet.title
            assert not sheet.page_setup.fitToHeight
        else:
            assert 11 * scale / 100 >= 7
            assert 5.25 * total * scale / 100 <= 784, sheet.title
        assert sheet.page_setup.orientation == "landscape"


def test_bills_are_printed_one_page_wide_and_charts_are_never_cut(comparison) -> None:
    """Quantity and line total stand on one sheet of paper; what has no room stays in the book."""
    book = openpyxl.load_workbook(io.BytesIO(documents(comparison, ("xlsx",))["report.xlsx"]))
    sheet = book["Design A"]
    heads = {cell.value: cell.column for row in sheet.iter_rows(max_row=4) for cell in row}
    _, _, last, last_row = openpyxl.utils.range_boundaries(sheet.print_area.split("!")[1])
    assert sheet.sheet_properties.pageSetUpPr.fitToPage
    assert heads["Part"] < heads["Quantity"] < heads["Extended"] == last < heads["W each"]
    (aside,) = (x.row for x in sheet["A"] if str(x.value).startswith("Design A: the cost that opt"))
    assert last_row < aside
    charts = book["Charts"]
    ends = [one.id for one in charts.row_breaks.brk]
    starts = [one.anchor._from.row for one in charts._charts]
    assert starts[1:] == ends == [21, 41]
    assert all(one.anchor.to.row < end for one, end in zip(charts._charts, ends, strict=False))


def test_labels_of_the_way_have_a_sign_and_enough_digits(data) -> None:
    """Racks at -$5,000 read $0.01M and -0.00. Changes stand on white, as their bars are thin."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        text = book.read("xl/charts/chart1.xml").decode()
    labels = re.findall(r"<c:dLbls>.*?</c:dLbls>", text)
    signs = [re.search(r'"( [-+])?"\$', html.unescape(one))[1] for one in labels]
    assert signs == [" -", " +", None]
    assert all('"k"' in html.unescape(one) for one in labels)
    assert ['<a:srgbClr val="FFFFFF"/></a:solidFill></c:spPr>' in one for one in labels] == [
        True,
        True,
        False,
    ]
