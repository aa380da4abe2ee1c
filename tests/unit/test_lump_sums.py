"""Money that a bill counts once, such as freight, and currencies that do not exist (C22)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from libra_planner.costs.currencies import CODES, RATES
from tests.unit.test_procurement_workbook import Sheets

HEAD = "item,price,unit,currency,rate,seller,date,valid_until\n"
LUMPS = (
    "freight,900000,lump,,,Cargo Co,2026-11-02,2099-12-31\n"
    "freight,800000,lump,,,Slow Boats,2026-11-02,2026-11-03\n"
    "structured cabling,250000,lump,EUR,1.08,Cables Co,2026-11-02,2099-12-31\n"
)
TAX = "tax,10,percent,,,State,2026-11-02,\n"
DESIGNS = ("0e_rails_2to1@450,25,12.5", "0e_rails_2to1@450,50,25")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _report(run, text: str, *words: str):
    Path("q.csv").write_text(HEAD + text)
    return run("report", *(words or DESIGNS), "--prices", "q.csv", "-o", "r", "--json")


def test_a_lump_sum_is_counted_once_in_every_design(folder, run) -> None:
    """The cheapest that holds, in dollars: 900,000 and 250,000 x 1.08; tax is over it, too."""
    bare = _report(run, TAX).payload["designs"]
    found = _report(run, TAX + LUMPS).payload["designs"]
    for before, after in zip(bare, found, strict=True):
        assert after["total_usd"] - before["total_usd"] == 1_170_000
        assert after["tax_usd"] - before["tax_usd"] == 117_000
        assert after["usd_by_group"]["services"] == 1_170_000
        orders = {(x["seller"], x["currency"]): x for x in after["orders"]}
        freight, cabling = orders["Cargo Co", "USD"], orders["Cables Co", "EUR"]
        assert [(x["item"], x["n_bought"]) for x in freight["parts"]] == [("freight", 1)]
        assert (cabling["amount"], cabling["usd"]) == (250_000, 270_000)
        assert sum(x["usd"] for x in after["orders"]) == pytest.approx(after["total_usd"])


def test_every_format_has_lump_sums_and_the_workbook_computes_them(folder, run) -> None:
    assert _report(run, TAX + LUMPS).code == 0
    rows = list(csv.DictReader(Path("r/report-bill-a.csv").read_text().splitlines()))
    [freight] = [row for row in rows if row["Part"] == "freight"]
    assert (freight["Group"], freight["Extended"]) == ("services", "900000.00")
    scope = Path("r/report.md").read_text().split("Not in this price: ")[1].split("\n")[0]
    assert " Lump sums in it: freight, structured cabling. " in scope
    assert "freight" not in scope.split(".")[0]
    sheets = Sheets(Path("r/report.xlsx").read_bytes())
    found = {place: sheets.value(*place) for place in sheets.formulas()}
    assert 900_000 in found.values()
    assert 270_000 in found.values()


def test_a_lump_sum_has_no_lead_time(folder, run) -> None:
    """Nobody is asked for that of freight; one that a file gives is refused."""
    head = HEAD.replace("valid_until", "valid_until,lead_time_days")
    rows = [f"{row}," for row in LUMPS.splitlines()] + ["nic-200g,900,each,,,A,2026-11-02,,30"]
    Path("q.csv").write_text(head + "\n".join(rows) + "\n")
    done = run("report", DESIGNS[0], "--prices", "q.csv", "-o", "r", "--formats", "csv")
    [told] = [x for x in done.out.splitlines() if "The longest lead time is 30 days" in x]
    assert "freight" not in told.split("longest lead time")[1]
    orders = [*csv.DictReader(Path("r/report-order-a-1.csv").read_text().splitlines())]
    orders += [*csv.DictReader(Path("r/report-order-a-2.csv").read_text().splitlines())]
    days = {row["Part"]: row["Lead time, days"] for row in orders}
    assert (days["nic-200g"], days["freight"]) == ("30", "")
    Path("q.csv").write_text(head + rows[0] + "14\n")
    wrong = run("report", DESIGNS[0], "--prices", "q.csv", "-o", "r")
    assert "lead_time_days: got lead_time_days of freight, a lump sum, expected none" in wrong.err


def test_the_bill_of_an_optimizer_holds_lump_sums(folder, run) -> None:
    Path("q.csv").write_text(HEAD + LUMPS)
    bare = run("optimize", "0b_bill", "--json").payload
    found = run("optimize", "0b_bill", "--prices", "q.csv", "--json").payload
    before, after = (sorted(x["usd"] for x in one["bill"]["options"]) for one in (bare, found))
    assert [usd - least for usd, least in zip(after, before, strict=True)] == [1_170_000] * 18


def test_a_network_alone_does_not_use_lump_sums(folder, run) -> None:
    Path("q.csv").write_text(HEAD + LUMPS)
    words = ("fabric", "--hosts", "64", "--nic", "400Gbps")
    bare, found = run(*words, "--json"), run(*words, "--prices", "q.csv", "--json")
    assert found.payload["cost_usd"] == bare.payload["cost_usd"]
    said = run(*words, "--prices", "q.csv").out
    assert "Quotes that this network does not use: freight, structured cabling" in said


def test_a_part_that_the_bill_buys_is_no_unused_quote(folder, run) -> None:
    """64 hosts buy 512 NICs and spares: too few for one offer, so that the other one counts."""
    Path("q.csv").write_text(
        "item,price,seller,date,moq\n"
        "nic-400g,1400,Acme,2026-11-02,2000\nnic-400g,1500,NicCo,2026-11-02,\n"
        "rack,900,Acme,2026-11-02,\n"
    )
    words = ("fabric", "--hosts", "64", "--nic", "400Gbps", "--prices", "q.csv")
    assert run(*words, "--json").payload["unused_quotes"] == ["rack"]
    assert "Quotes that this network does not use: rack\n" in run(*words).out


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("freight,3,percent,,,C,2026-11-02,", "item: got 'freight', expected a part of"),
        ("freight,9,,,,C,2026-11-02,", "such as freight, has the unit lump"),
        ("nic-400g,9,lump,,,C,2026-11-02,", "unit: got nic-400g, a part of a catalogue, lump"),
        ("tax,9,lump,,,C,2026-11-02,", "unit: got tax, a share of everything, lump"),
        ("leaf.nic,9,lump,,,C,2026-11-02,", "unit: got leaf.nic, a part of a tier, lump"),
        ("nic-400g,9,,EURO,1.08,C,2026-11-02,", "currency: got 'EURO', expected a currency"),
        ("nic-400g,9,,EURO,1.08,C,2026-11-02,", "did you mean EUR?"),
        ("nic-400g,9,,eur,1.08,C,2026-11-02,", "did you mean EUR?"),
        ("nic-400g,9,,RMB,0.14,C,2026-11-02,", "did you mean CNY?"),
        ("nic-400g,9,,XXX,1.08,C,2026-11-02,", "write e.g. EUR"),
    ],
)
def test_what_is_no_lump_sum_and_no_currency_is_refused_once(row, said, folder, run) -> None:
    found = _report(run, f"{row}\n")
    assert found.code == 2
    [line] = found.err.strip().splitlines()
    assert "q.csv:2: " in line
    assert said in line


def test_a_rate_is_checked_by_the_code_of_its_currency(folder, run) -> None:
    assert {*RATES} < CODES
    found = _report(run, "nic-200g,1000,,EUR,0.92,C,2026-11-02,\n")
    assert "EUR is at 0.92 USD, outside 0.94 to 1.6" in found.err


def test_rates_of_a_catalogue_have_codes_too(folder, run) -> None:
    Path("parts.yaml").write_text(
        "kind: parts\nbase: parts\nsource: s\nas_of: '2026-11'\n"
        "exchange_rates: {EURO: {usd: 1.08, as_of: '2026-11', source: s}}\n"
    )
    found = run("report", DESIGNS[0], "--parts", "parts.yaml", "-o", "r")
    assert found.code == 2
    assert "did you mean EUR?" in found.err


def test_a_share_in_percent_is_the_tax(run, tmp_path) -> None:
    path = tmp_path / "q.csv"

    def said(text: str) -> str:
        path.write_text(text)
        return run("report", "0e_rails_2to1", "--prices", path, "-o", tmp_path / "out").err

    assert "write tax," in said("item,price,seller,date,unit\nVAT,19,A,2026-11-01,percent\n")
    wrong = said("part,price,seller,date\nnic-400g,1400,A,2026-11-01\n")
    assert "got the column 'part', expected a known column; is it item?" in wrong
