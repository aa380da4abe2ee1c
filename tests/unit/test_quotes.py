"""A user's quotes over price books and catalogues: ``--prices`` (C22)."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import openpyxl
import pytest

import libra_planner as lp
from libra_planner.errors import SpecError
from libra_planner.plan.quotes import load_quotes
from tests.conftest import PLAN

HEADER = "item,price,currency,unit,rate,seller,date,valid_until,note\n"
QUOTES = (
    HEADER
    + """pod.nic,28,,per GB/s,,Acme,2026-11-02,2026-12-31,offer 4711
nic-400g,1400,,,,Acme,2026-11-02,2026-12-31,
switch-64x400g,30000,EUR,each,1.1,Switches Ltd,2026-10-15,,
H100-80GB,25000,,each,,NPU Inc,2026-10-15,,
"""
)
SYSTEM = PLAN + "fixed_cost: {npu: h100-sxm}\n"


@pytest.fixture
def quotes(tmp_path):
    def write(text: str = QUOTES, name: str = "quotes.csv") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_tier_is_priced_by_its_quote(plan, quotes, run) -> None:
    """C7: 4,096 NPUs x 50 GB/s x 28 for the NIC where the book has 31.6."""
    quotes()
    path = plan(text=f"{PLAN}quotes: quotes.csv\n")
    flags = ("--bandwidth", "10,10,10,50", "--json")
    costs = [
        run("evaluate", one, *flags).payload["cost_usd"] for one in (path, plan(name="b.yaml"))
    ]
    assert costs[1] - costs[0] == pytest.approx(4096 * 50 * (31.6 - 28))
    notes = run("evaluate", path, *flags).payload["notes"]
    used, unused = (note for note in notes if "pod.nic" in note or "do not use" in note)
    source = "quote of Acme, 2026-11-02, valid until 2026-12-31 (offer 4711)"
    assert used == f"pod.nic at 28 USD per GB/s: {source}"
    rest = "nic-400g, switch-64x400g, h100-sxm"
    assert unused == f"quotes that the linear prices do not use, but a bill of parts may: {rest}"


@pytest.mark.parametrize("command", ["optimize", "evaluate", "check", "pareto"])
def test_every_command_that_prices_takes_quotes(command, plan, quotes, run, monkeypatch) -> None:
    """The file is relative to the working directory, not to the plan."""
    file = quotes()
    monkeypatch.chdir(file.parent)
    path = plan(text=SYSTEM)
    more = ["--bandwidth", "300,100,75,25"] if command in ("evaluate", "check") else []
    done = run(command, path, *more, "--prices", file.name)
    assert done.code == 0
    assert "quotes of quotes.csv" in done.out


def test_npus_are_quoted_by_any_of_their_names(plan, quotes) -> None:
    problem = lp.load_plan(plan(text=f"{SYSTEM}quotes: {quotes()}\n"))
    assert problem.fixed_cost_usd == 4096 * 25000
    assert "h100-sxm at 25000 USD each: quote of NPU Inc, 2026-10-15" in problem.text.notes


def test_a_bill_has_its_quotes(quotes, run) -> None:
    """64 hosts of 8: 512 NICs and 11 spares, 24 switches and 1 spare at 30,000 EUR."""
    flags = ("fabric", "--hosts", "64", "--nic", "400Gbps", "--prices", quotes())
    text = run(*flags).out
    assert f"${523 * 1400:,}.00" in text
    payload = run(*flags, "--json").payload
    plain = run(*flags[:-2], "--json").payload
    nics, switches = 523 * (1499 - 1400), 25 * (69760 - 33000)
    assert plain["cost_usd"] - payload["cost_usd"] == pytest.approx(nics + switches)
    assert payload["quotes"]["switch-64x400g"].endswith("(30000 EUR at 1.1 USD)")
    assert payload["unused_quotes"] == ["pod.nic", "h100-sxm"]
    # A quote has no range.
    fewer = plain["cost_usd_high"] - payload["cost_usd_high"]
    assert fewer == pytest.approx(523 * (2188 - 1400) + switches)


def test_a_report_says_which_prices_are_quotes(quotes, run, tmp_path) -> None:
    example = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"
    flags = ("report", example, "--prices", quotes(), "-o", tmp_path / "out", "--formats", "csv,md")
    payload = run(*flags, "--json").payload
    [said] = [line for line in payload["decision"]["text"] if "quotes.csv" in line]
    assert said.startswith("4 prices of quotes.csv count here")
    why = {one["item"]: one["why"] for one in payload["offers"]}
    assert why.pop("pod.nic") == "counts in the plan's linear cost alone"  # NICs are parts there.
    assert {*why.values()} == {"counts: the only one"}
    rows = csv.DictReader(io.StringIO((tmp_path / "out" / "report-prices.csv").read_text()))
    prices = {row["Part"]: row for row in rows}
    assert Decimal(prices["switch-64x400g"]["Unit price"]) == 33000
    assert prices["nic-400g"]["Confidence"] == "quoted"
    assert prices["nic-400g"]["As of"] == "2026-11-02"
    assert "quotes.csv" in (tmp_path / "out" / "report.md").read_text()


def test_a_catalogue_of_ones_own_can_be_quoted(quotes, run, tmp_path) -> None:
    root = Path(__file__).parents[2]
    text = (root / "cost_models" / "parts.yaml").read_text().replace("nic-400g", "our-nic")
    (tmp_path / "ours.yaml").write_text(text)
    file = quotes(HEADER + "our-nic,1000,,,,Acme,2026-11-02,,\n")
    flags = ("-o", tmp_path / "out", "--formats", "md", "--prices", file)
    example = root / "examples" / "reports" / "one_nic.yaml"
    assert run("report", example, *flags, "--parts", tmp_path / "ours.yaml").code == 0
    done = run("report", example, *flags)
    assert done.code == 2
    assert done.err.startswith(f"{file}:2: item: got 'our-nic', expected a part of the catalogue")


def test_plans_of_different_quotes_are_not_compared(plan, quotes, run, tmp_path) -> None:
    quotes()
    one, other = plan(text=PLAN), plan(text=f"{PLAN}quotes: quotes.csv\n", name="b.yaml")
    done = run("report", one, other, "-o", tmp_path / "out")
    assert done.code == 2
    assert "got different quotes: none of plan, quotes.csv of b" in done.err


OFFERS = """item,price,unit,currency,rate,seller,date,valid_until,part_number,lead_time_days,support
nic-400g,1400,,,,Acme,2026-11-02,2026-12-31,ACM-400,70,120
switch-64x400g,30000,,EUR,1.1,Switches Ltd,2026-10-15,2026-10-31,SL-64Q,112,2500
tax,8.25,percent,,,State,2026-11-02,,,,
"""
"""What else sellers say: numbers, lead times, support for all years of use; and tax."""


def test_offers_fill_columns_and_lines_of_their_own(quotes, run, tmp_path) -> None:
    """1,024 NICs and 21 spares, 40 switches and 2: support is of those in use."""
    example = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"
    flags = ("report", example, "-o", tmp_path / "out", "--formats", "csv,md,html,xlsx", "--json")
    plain = run(*flags).payload["designs"][0]
    headings = (tmp_path / "out" / "report-bill-a.csv").read_text().splitlines()[0]
    assert "Part number" not in headings
    assert plain["tax_usd"] is None
    payload = run(*flags, "--prices", quotes(OFFERS)).payload
    [design] = payload["designs"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "report-bill-a.csv").read_text())))
    bill = {row["Part"]: row for row in rows}
    nics, switches = (
        sum(int(row["Quantity"]) for row in rows if row["Part"] == name)
        for name in ("nic-400g", "switch-64x400g")
    )
    assert bill["support of nic-400g"]["Extended"] == f"{nics * 120:.2f}"
    assert bill["support of switch-64x400g"]["Extended"] == f"{switches * 2750:.2f}"
    assert design["usd_by_group"]["support"] == nics * 120 + switches * 2750
    total = sum(Decimal(row["Extended"]) for row in rows[:-1])
    assert Decimal(repr(design["total_usd"])) == total
    assert design["tax_usd"] == float(
        (total * Decimal("0.0825")).quantize(Decimal("0.01"), ROUND_HALF_UP)
    )
    assert design["total_with_tax_usd"] == pytest.approx(design["total_usd"] + design["tax_usd"])
    switch = bill["switch-64x400g"]
    assert (switch["Part number"], switch["Lead time, days"]) == ("SL-64Q", "112")
    assert switch["Valid until"] == "2026-10-31"
    said = " ".join(payload["decision"]["recommendation"]["sentences"])
    assert re.search(r"\$\S+ before tax \(\$\S+ to \$\S+ with 8.25% tax\) for", said)
    assert "- 1 quote does not hold" in said
    assert "taxes" not in said
    assert "The first quote ended on 2026-10-31 (switch-64x400g)." in said
    assert (
        "The longest lead time is 112 days (switch-64x400g); nobody says that of h100-sxm" in said
    )
    late = "switch-64x400g of Switches Ltd, expired on 2026-10-31"
    assert f"quotes.csv:3: {late}, does not hold on 2026-11-23" in payload["decision"]["warnings"]
    assert f"- 1 quote does not hold on 2026-11-23: {late}" in said
    assert said.startswith("Do not sign yet, for 2 reasons. A (one_nic) costs ")
    assert not payload["decision"]["recommendation"]["is_ready"]


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (149900, "nic-400g is quoted at $149,900, 69 times the highest listed price"),
        (14.0, "nic-400g is quoted at $14.00, 1/107 of the lowest listed price ($1,499 to $2,188)"),
        (300, "nic-400g is quoted at $300, 1/5 of the lowest listed price"),
        (10940, "nic-400g is quoted at $10,940, 5 times the highest listed price"),
        (500, ""),
        (6564, ""),  # Three times $2,188.
    ],
)
def test_a_price_far_from_what_is_listed_is_doubted(usd, text, quotes, run, tmp_path) -> None:
    example = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"
    flags = ("-o", tmp_path / "out", "--formats", "md", "--json", "--prices")
    done = run("report", example, *flags, quotes(f"{HEADER}nic-400g,{usd},,,,A,2026-11-24,,\n"))
    said = [x for x in done.payload["decision"]["warnings"] if "listed" in x]
    assert len(said) == (text != "")
    assert all(f"quotes.csv:2: {text}" in x and x in done.err for x in said)
    assert "does not hold on 2026-11-23" in done.err  # Of tomorrow.
    open_points = done.payload["decision"]["recommendation"]["open_points"]
    assert any("nic-400g of A, dated 2026-11-24, in the future" in point for point in open_points)
    # Beyond a factor of five nobody should sign; from three on a warning asks.
    assert any("listed price" in point for point in open_points) == (usd in (149900, 14.0))


def test_a_second_file_of_quotes_is_refused(quotes, run) -> None:
    """The second replaced the first without a word, and its rows were dropped."""
    file = quotes(f"{HEADER}nic-400g,1400,,,,A,2026-11-02,,\n")
    for command in (("report", "x.yaml"), ("fabric", "--hosts", "64", "--nic", "400Gbps")):
        done = run(*command, "--prices", file, "--prices", file)
        assert done.code == 2
        assert "got --prices twice, expected one, as the second would replace" in done.err
        assert done.err.rstrip().endswith("put all rows into one file")


def test_currencies_whose_letters_changed_places_are_named_first(quotes, run, plan) -> None:
    file = quotes(f"{HEADER}nic-400g,1400,GPB,,1.3,A,2026-11-02,,\n")
    assert "did you mean GBP?" in run("optimize", plan(), "--prices", file).err


def test_a_slip_of_ten_of_a_switch_is_warned_of() -> None:
    """A tenth of what is paid is a fourth of the lowest listed price; list prices are near."""
    from libra_planner.costs.quotes import Quote
    from libra_planner.inputs.parts import BUNDLED_PARTS
    from libra_planner.plan.quotes import known_items

    known = {x: one for x, one in known_items(None, BUNDLED_PARTS).items() if one}
    for item, listed in known.items():
        for usd in (0.6 * listed.low_usd, listed.low_usd, listed.high_usd, 1.6 * listed.high_usd):
            assert not Quote(item, usd, "A", "d", listed=listed).remarks
    slip = Quote("switch-128x400g", 8100.0, "A", "d", listed=known["switch-128x400g"])
    assert slip.remarks[0].startswith("switch-128x400g is quoted at $8,100, 1/4.4 of the lowest")
    assert slip.doubts == ()


def test_a_catalogue_may_hold_offers_and_tax(run, tmp_path) -> None:
    text = (Path(__file__).parents[2] / "cost_models" / "parts.yaml").read_text()
    name, price = "  nic-400g:\n    kind: nic\n", "      amount: 1499\n"
    assert name in text
    assert text.count(price) == 1
    text = text.replace(name, f"{name}    part_number: N-1\n    lead_time_days: 30\n")
    text = text.replace(price, f"{price}      support: 100\n      valid_until: 2026-12-24\n")
    text = text.replace("\nassumptions:\n", "\nassumptions:\n  tax_percent: 19\n")
    (tmp_path / "p.yaml").write_text(text)
    example = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"
    flags = ("report", example, "--parts", tmp_path / "p.yaml", "-o", tmp_path / "out", "--json")
    [design] = run(*flags, "--formats", "md").payload["designs"]
    assert design["usd_by_group"]["support"] == 1024 * 100
    assert design["tax_usd"] == pytest.approx(0.19 * design["total_usd"])
    bill = (tmp_path / "out" / "report.md").read_text()
    assert all(text in bill for text in ("N-1", "2026-12-24", "Total before tax"))


def test_yaml_and_csv_are_the_same(plan, quotes) -> None:
    rows = csv.DictReader(io.StringIO(QUOTES))
    entries = "\n".join(
        "- {" + ", ".join(f"{key}: {value}" for key, value in row.items() if value) + "}"
        for row in rows
    )
    files = quotes(), quotes(f"kind: quotes\nquotes:\n{entries}\n", "quotes.yaml")
    csv_quotes, yaml_quotes = (
        lp.load_plan(plan(text=f"{SYSTEM}quotes: {file}\n")).prices.quotes for file in files
    )
    assert csv_quotes == yaml_quotes
    assert len(csv_quotes) == 4


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("pod.nik,28,,per GB/s,,A,2026-11-02,,", "got 'pod.nik'"),
        ("pod.nik,28,,per GB/s,,A,2026-11-02,,", "did you mean pod.nic?"),
        ("node.nic,28,,per GB/s,,A,2026-11-02,,", "got 'node.nic'"),  # Nodes have none (C14).
        ("nic-400gg,28,,,,A,2026-11-02,,", "did you mean nic-400g?"),
        ('nic-400g,"1,400",,,,A,2026-11-02,,', "price: got '1,400', expected a number"),
        ("nic-400g,0,,,,A,2026-11-02,,", "price: got 0, expected more than 0"),
        ("nic-400g,1400,EUR,,,A,2026-11-02,,", "got EUR without a rate"),
        ("nic-400g,1400,,,1.1,A,2026-11-02,,", "got the rate 1.1 of USD, expected none"),
        ("nic-400g,1400,,,,A,2.11.2026,,", "date: got '2.11.2026', expected a date"),
        ("nic-400g,1400,,,,A,2026-11-02,2026-11-01,", "got valid_until 2026-11-01"),
        ("nic-400g,1400,,per GB/s,,A,2026-11-02,,", "expected its price each"),
        ("pod.nic,28,,,,A,2026-11-02,,", "expected its price per GB/s"),
        ("nic-400g,1400,,,,,2026-11-02,,", "seller"),
        ("tax,8.25,,,,A,2026-11-02,,", "expected its price percent"),
        ("tax,825,,percent,,A,2026-11-02,,", "expected at most 100 percent"),
        ("nic-400g,1400,,percent,,A,2026-11-02,,", "expected its price each"),
    ],
)
def test_faults_have_file_and_line(row, text, plan, quotes, run) -> None:
    file = quotes(f"{HEADER}\n{row}\n")
    done = run("optimize", plan(), "--prices", file)
    assert done.code == 2
    assert done.err.startswith(f"{file}:3: ")
    assert text in done.err


@pytest.mark.parametrize(
    ("column", "text", "fix"),
    [
        ("moq", "9k", "write 9000"),
        ("moq", '"9,000"', "write 9000"),
        ("moq", "9.5 K", "write 9500"),
        ("moq", "9e3", "write 9000"),
        ("moq", "9000pcs", "write 9000"),
        ("moq", "12.5", "write whole units"),
        ("moq", "2m", "write whole units"),
        ("price", "$36.5k", "write 36500"),
        ("price", '"1,2 Mio EUR"', "write 1200000"),
    ],
)
def test_a_number_with_its_thousands_is_told_as_the_whole_number(
    column, text, fix, plan, quotes, run
):
    own = {"price": "1400", "moq": ""} | {column: text}
    file = quotes(
        f"item,price,seller,date,moq\nnic-400g,{own['price']},A,2026-11-02,{own['moq']}\n"
    )
    done = run("optimize", plan(), "--prices", file)
    assert done.code == 2
    assert done.err.rstrip().endswith(fix)


def test_all_faults_at_once(plan, quotes, run) -> None:
    rows = ("pod.nik,28,,,,A,2026-11-02,,", "nic-400g,x,,,,A,2026-11-02,,")
    file = quotes(HEADER + "\n".join((*rows, rows[1].replace("x", "9"))) + "\n")
    lines = run("optimize", plan(), "--prices", file).err.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{file}:{n}" for n in (2, 3, 4)]


def test_rows_to_be_filled_in_count_for_nothing(plan, quotes, run) -> None:
    file = quotes(QUOTES + "nic-200g,,,each,,,,,\noptic-200g-sr4,,,each,,,,,\n")
    payload = run("optimize", plan(), "--prices", file, "--json").payload
    said = "rows of quotes.csv without a price count for nothing: nic-200g, optic-200g-sr4"
    assert said in payload["notes"]
    assert (
        payload["cost_usd"]
        == run("optimize", plan(), "--prices", quotes(), "--json").payload["cost_usd"]
    )


GERMAN = """\
item;price;unit;currency;rate;seller;date;support
nic-400g;1190,50;each;EUR;1,165;Nordnetz, GmbH;2026-11-02;12,5
switch-64x400g;"1.234.567,25";each;;;Acme;2026-11-02;
optic-400g-sr4;0,125;each;;;Acme;2026-11-02;
fibre-om4;38;each;;;Acme;2026-11-02;
"""
"""What Excel writes where the comma is the decimal point."""


def test_a_file_with_semicolons_has_decimal_commas(tmp_path) -> None:
    """The twin: the same figures with commas between cells and points in numbers."""
    english = GERMAN.replace(", GmbH", " GmbH").replace('"1.234.567,25"', "1234567.25")
    english = english.replace(",", ".").replace(";", ",")
    found = []
    for name, text in (("de.csv", GERMAN), ("en.csv", english)):
        (tmp_path / name).write_text(text)
        found.append(load_quotes(name, dict.fromkeys(_ITEMS), tmp_path, "2026-11-28"))
    german, plain = ({x.item: (x.usd, x.support_usd, x.rate) for x in own} for own in found)
    assert german == plain
    assert german["nic-400g"] == (1386.9325, 14.5625, 1.165)
    assert next(x.seller for x in found[0]) == "Nordnetz, GmbH"


_ITEMS = ("nic-400g", "switch-64x400g", "optic-400g-sr4", "fibre-om4")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("1.190", "write 1190, or 1,19 for"),
        ("1,190", "write 1190, or 1,19 for"),
        ("12.125", "write 12125, or 12,1250 for"),
    ],
)
def test_figures_of_two_readings_beside_semicolons_are_refused(text, fix, tmp_path) -> None:
    (tmp_path / "q.csv").write_text(GERMAN.replace("1190,50", text))
    with pytest.raises(SpecError) as refused:
        load_quotes("q.csv", dict.fromkeys(_ITEMS), tmp_path, "2026-11-28")
    assert f"q.csv:2: price: got '{text}'" in str(refused.value)
    assert fix in str(refused.value)
    smaller = fix.split("or ")[1].split(" ")[0]
    (tmp_path / "q.csv").write_text(GERMAN.replace("1190,50", smaller))
    [nic, *_] = load_quotes("q.csv", dict.fromkeys(_ITEMS), tmp_path, "2026-11-28")
    assert nic.amount == pytest.approx(float(text.replace(",", ".")), abs=0.006)


def test_decimal_commas_need_semicolons(tmp_path) -> None:
    (tmp_path / "q.csv").write_text('item,price,seller,date\nnic-400g,"1190,50",A,2026-11-02\n')
    with pytest.raises(SpecError, match=r"write 1190\.50"):
        load_quotes("q.csv", dict.fromkeys(_ITEMS), tmp_path, "2026-11-28")


SEVERAL = (
    HEADER
    + """nic-400g,1400,,,,Acme,2026-11-02,2026-12-31,
nic-400g,1350,,,,Beta,2026-11-03,,
nic-400g,1200,,,,Gamma,2026-09-01,2026-10-31,
nic-400g,1100,EUR,,1.5,Delta,2026-11-01,,
"""
)
"""Of one NIC: the cheapest has expired, and 1,100 EUR are $1,650."""


def test_of_several_sellers_the_cheapest_that_holds_counts(quotes, run, tmp_path) -> None:
    """64 hosts of 8: 512 NICs and 11 spares at $1,350."""
    fabric = ("fabric", "--hosts", "64", "--nic", "400Gbps", "--prices")
    one = quotes(HEADER + "nic-400g,1350,,,,Beta,2026-11-03,,\n", "one.csv")
    payload, alone = (run(*fabric, file, "--json").payload for file in (quotes(SEVERAL), one))
    assert payload["cost_usd"] == alone["cost_usd"]
    assert f"${523 * 1350:,}.00" in run(*fabric, quotes(SEVERAL)).out
    also = "$1,200 of Gamma (expired on 2026-10-31), $1,400 of Acme, $1,650 of Delta"
    assert payload["quotes"] == {"nic-400g": f"quote of Beta, 2026-11-03; also quoted: {also}"}
    assert payload["warnings"] == []
    example = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"
    flags = ("-o", tmp_path / "out", "--formats", "csv,md,xlsx", "--prices", quotes(SEVERAL))
    said = run("report", example, *flags, "--json").payload["decision"]
    assert f"Also quoted: nic-400g ({also})." in " ".join(said["text"])
    assert not any("Gamma" in text for text in said["warnings"])
    assert f"also quoted: {also}" in (tmp_path / "out" / "report-prices.csv").read_text()
    sheet = openpyxl.load_workbook(tmp_path / "out" / "report.xlsx")["Prices"]
    assert any(f"also quoted: {also}" in str(x.value) for row in sheet.rows for x in row)


def test_support_counts_where_sellers_are_compared(quotes, run) -> None:
    header, day = "item,price,seller,date,support,valid_until\n", "2026-11-02"
    rows = f"nic-400g,1400,Acme,{day},,\nnic-400g,1350,Beta,{day},60,\n"
    flags = ("fabric", "--hosts", "64", "--nic", "400Gbps", "--json", "--prices")
    found = run(*flags, quotes(header + rows)).payload["quotes"]["nic-400g"]
    assert found.startswith("quote of Acme")
    assert found.endswith("also quoted: $1,350 and $60.00 for support of Beta")


def test_where_none_holds_the_cheapest_of_those_that_ended_last_counts(
    quotes, run, tmp_path
) -> None:
    """Not $1,100 of August: $1,350 with support is less than $1,400, both of November."""
    rows = """nic-400g,1100,OldCo,2026-08-01,2026-08-31,
nic-400g,1400,Acme,2026-09-02,2026-11-20,
nic-400g,1320,Beta,2026-09-03,2026-11-20,30
"""
    file = quotes("item,price,seller,date,valid_until,support\n" + rows)
    example = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"
    flags = ("-o", tmp_path / "out", "--formats", "csv", "--json", "--prices", file)
    payload = run("report", example, *flags).payload
    assert {one["seller"]: one["why"] for one in payload["offers"]} == {
        "OldCo": "no: expired on 2026-08-31",
        "Acme": "no: expired on 2026-11-20",
        "Beta": "counts: the cheapest of those that ended last; expired on 2026-11-20",
    }
    said = payload["decision"]["recommendation"]["sentences"]
    assert any(text.startswith("Do not sign yet") for text in said)


def test_a_seller_quotes_an_item_once(plan, quotes, run) -> None:
    twice = QUOTES + "h100-sxm,24000,,each,,npu inc,2026-10-16,,\n"
    done = run("optimize", plan(), "--prices", quotes(twice))
    said = "got h100-sxm of npu inc twice (first on line 5), expected one quote of each seller"
    assert said in done.err
    done = run(
        "optimize", plan(), "--prices", quotes(OFFERS + "tax,9,percent,,,City,2026-11-02,,,,\n")
    )
    assert "got tax twice (first on line 4), expected one of it" in done.err


def test_on_a_day_the_others_stand_in_for_a_quote_that_is_over(quotes, run) -> None:
    flags = ("fabric", "--hosts", "8", "--nic", "400Gbps", "--json", "--prices")
    found = run(*flags, quotes(SEVERAL), "--as-of", "2027-01-01").payload["quotes"]["nic-400g"]
    assert found.startswith("quote of Beta")
    assert "$1,400 of Acme (expired on 2026-12-31)" in found
    both = "".join(SEVERAL.splitlines(keepends=True)[i] for i in (0, 1, 3))
    done = run(*flags, quotes(both), "--as-of", "2027-01-01")
    assert done.code == 2
    assert "quotes.csv:2: valid_until: got a quote of nic-400g that was valid until" in done.err


def test_fabric_and_bills_of_options_warn_as_reports_do(quotes, run) -> None:
    late = HEADER + "nic-400g,14000,,,,Acme,2026-09-02,2026-10-31,\n"
    fabric = ("fabric", "--hosts", "8", "--nic", "400Gbps", "--prices", quotes(late))
    found = run(*fabric, "--json").payload["warnings"]
    assert [text.split(": ", 1)[1][:40] for text in found] == [
        "nic-400g of Acme, expired on 2026-10-31,",
        "nic-400g is quoted at $14,000, 6.4 times",
    ]
    assert all(f"Warning: {text}" in run(*fabric).out for text in found)
    notes = run("optimize", "0b_bill", "--prices", quotes(late), "--json").payload["notes"]
    assert set(found) <= set(notes)


def test_a_quote_must_hold_on_the_day_of_the_purchase(plan, quotes, run) -> None:
    file = quotes()
    assert run("optimize", plan(), "--prices", file, "--as-of", "2026-12-31").code == 0
    done = run("optimize", plan(), "--prices", file, "--as-of", "2027-01-01")
    assert done.code == 2
    assert done.err.startswith(
        f"{file}:2: valid_until: got a quote of pod.nic that was valid until"
    )
    assert len(done.err.splitlines()) == 2
    done = run(
        "fabric", "--hosts", "8", "--nic", "400Gbps", "--prices", file, "--as-of", "2027-01-01"
    )
    assert "expected one that holds on 2027-01-01" in done.err


def test_a_day_without_quotes_is_refused(plan, run) -> None:
    done = run("optimize", plan(), "--as-of", "2026-12-31")
    assert "got 2026-12-31 without quotes" in done.err
    done = run("fabric", "--hosts", "8", "--nic", "400Gbps", "--as-of", "soon")
    assert done.err.startswith("--as-of: as_of: got 'soon', expected a date")


def test_a_sweep_over_price_books_keeps_the_quotes(plan, quotes, tmp_path, run) -> None:
    quotes(HEADER + "pod.nic,28,,per GB/s,,Acme,2026-11-02,,\n")
    plan(text=f"{PLAN}quotes: quotes.csv\n")
    (tmp_path / "sweep.yaml").write_text(
        "base: plan.yaml\naxes:\n  cost_model: [libra-ispass24]\n  b: [300, 500]\n"
        'set: {constraints: ["total == {b} GB/s"]}\n'
    )
    assert run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run").code == 0
    rows = run("sweep", "show", tmp_path / "run", "--json").payload
    found = sorted(row["cost_usd"] for row in rows["rows"])
    problems = [
        lp.load_plan(tmp_path / "plan.yaml", f"constraints=[total == {b} GB/s]") for b in (300, 500)
    ]
    expected = [p.cost_usd(lp.optimize(p).bandwidth_bytes_per_s) for p in problems]
    assert found == pytest.approx(sorted(expected), rel=1e-6)


def test_every_offer_stands_in_a_report_with_its_reason(quotes, run, tmp_path) -> None:
    """1,024 NICs and 21 spares are ordered from Acme at $1,400; nobody else is asked."""
    chosen = SEVERAL.replace("note\n", "note,chosen\n").replace(
        "2026-12-31,\n", "2026-12-31,,yes\n"
    )
    rows = [f"{row}," if row.endswith(",") else row for row in chosen.splitlines()]
    example = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"
    flags = ("-o", tmp_path / "out", "--formats", "csv,html,xlsx", "--json", "--prices")
    payload = run("report", example, *flags, quotes("\n".join(rows) + "\n")).payload
    found = {one["seller"]: (one["counts"], one["why"]) for one in payload["offers"]}
    assert found == {
        "Acme": (True, "counts: chosen in the file"),
        "Beta": (False, "no: cheaper, but the file chooses another"),
        "Gamma": (False, "no: expired on 2026-10-31"),
        "Delta": (False, "no: dearer"),
    }
    table = csv.DictReader(io.StringIO((tmp_path / "out" / "report-offers.csv").read_text()))
    assert [(row["Seller"], row["Counts"]) for row in table] == [
        (x, y[1]) for x, y in found.items()
    ]
    [design] = payload["designs"]
    orders = {one["seller"]: one["usd"] for one in design["orders"]}
    bill = csv.DictReader(io.StringIO((tmp_path / "out" / "report-bill-a.csv").read_text()))
    nics = [row for row in bill if row["Part"] == "nic-400g"]
    assert {row["Seller"] for row in nics} == {"Acme"}
    assert orders["Acme"] == sum(float(row["Extended"]) for row in nics)
    assert sum(orders.values()) == pytest.approx(design["total_usd"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Made on 2026-11-23, quotes held as of 2026-11-23" in page
    assert "counts, of nic-400g the one that the file" in page
    chosen = "The file chooses nic-400g at $1,400 of Acme; $1,350 of Beta is less."
    assert page.index(chosen) < page.index('class="sign"')
    acme = f"${orders['Acme']:,.2f}".removesuffix(".00")
    assert f"<b>Orders:</b> Acme {acme}, not quoted $" in page


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("nic-400g,14000,Beta,2026-11-02,", "nic-400g is quoted at $14,000, 6.4 times the highest"),
        ("nic-400g,1450,Beta,2026-11-02,2900", "support of nic-400g is $2,900, 2 times its price"),
        ("tax,0.0825,State,2026-11-02,", "tax is 0.0825%: if that is a fraction"),
        ("h100-sxm,70000,Beta,2026-11-02,", "h100-sxm is quoted at $70,000, 2."),
        (
            "server-8npu,290000,Beta,2026-11-02,",
            "server-8npu is quoted at $290,000, 7.8 times the highest listed price ($37,200), "
            "which is of a server without its NPUs and NICs (docs/howto/own-quotes.md)",
        ),
    ],
)
def test_figures_of_every_offer_are_doubted(row, said, quotes, run, tmp_path) -> None:
    """Also of those that lose; an NPU at more than twice its listed price."""
    unit = "percent" if row.startswith("tax") else ""
    first = "item,price,seller,date,support,unit\nnic-400g,1400,Acme,2026-11-02,,\n"
    file, example = quotes(f"{first}{row},{unit}\n"), "0d_llama3_70b@450,50,50"
    flags = ("-o", tmp_path / "out", "--formats", "md", "--json", "--prices", file)
    warnings = run("report", example, *flags).payload["decision"]["warnings"]
    assert [x for x in warnings if x.startswith(f"quotes.csv:3: {said}")]


def test_between_rows_and_what_is_no_text(quotes, plan, run) -> None:
    head = "item,price,seller,date,currency,rate,chosen\n"
    row = "nic-400g,1400,{},2026-11-02,EUR,{},yes\n"
    done = run(
        "optimize", plan(), "--prices", quotes(head + row.format("A", 1.1) + row.format("B", 2))
    )
    assert [line.split(": ", 1)[1][:32] for line in done.err.splitlines()] == [
        "rate: got EUR at 2 USD, on line ",
        "chosen: got two quotes of nic-40",
    ]
    file = quotes()
    file.write_bytes(b"PK\x03\x04\xff")
    done = run("optimize", plan(), "--prices", file)
    assert done.err.startswith(f"--prices: quotes: got an Excel workbook ({file}), expected a text")
    done = run(
        "optimize", plan(), "--prices", quotes("item,price,seller,date\nnic-400g,,,\ntax,,,\n")
    )
    assert "got 2 rows without a price, such as nic-400g" in done.err


ONE_NIC = Path(__file__).parents[2] / "examples" / "reports" / "one_nic.yaml"


def test_what_is_wrong_alike_on_several_lines_is_said_once(quotes, run, tmp_path) -> None:
    rows = "".join(
        f"{item},1450,{currency},,,Acme,2026-11-02,,\n"
        for item, currency in [
            ("nic-400g", "EUR"),
            ("nic-200g", "EUR"),
            ("switch-64x400g", "GBP"),
            ("optic-400g-sr4", "EUR"),
        ]
    )
    file = quotes(HEADER + rows)
    done = run("report", ONE_NIC, "--prices", file, "-o", tmp_path / "out")
    assert done.code == 2
    euros, pounds = done.err.splitlines()
    assert euros == (
        f"{file}:2: got EUR without a rate; say in the column rate what one EUR is worth in USD "
        "(also lines 3, 5)"
    )
    assert pounds.startswith(f"{file}:4: got GBP without a rate; ")


def test_a_part_that_the_catalogue_lacks_is_added_as_the_message_says(
    quotes, run, tmp_path
) -> None:
    """By the file of the page that it names, with the item of the quote."""
    file = quotes(HEADER + "optic-2x400g-sr4,1100,,,,Acme,2026-11-02,,\n")
    done = run("report", ONE_NIC, "--prices", file, "-o", tmp_path / "out")
    assert done.code == 2
    assert "did you mean optic-400g-sr4 or optic-200g-sr4? For another part, write " in done.err
    assert "write optic-2x400g-sr4 under parts: of a file with kind: parts and base: parts" in (
        done.err
    )
    [anchor] = re.findall(r"docs/prices\.md#([a-z-]+)", done.err)
    page = (Path(__file__).parents[2] / "docs" / "prices.md").read_text()
    title = anchor.replace("-", " ").capitalize()
    text = page.split(f"### {title}\n")[1]
    parts, offers = re.findall(r"```(?:yaml|text)\n(.*?)```", text, re.DOTALL)[:2]
    (tmp_path / "my_parts.yaml").write_text(parts)
    (tmp_path / "my_quotes.csv").write_text(offers)
    given = ("--parts", tmp_path / "my_parts.yaml", "--prices", tmp_path / "my_quotes.csv")
    flags = ("--formats", "csv", "-o", tmp_path / "out")
    assert run("report", "0e_rails_2to1", *given, *flags).code == 0
    bill = (tmp_path / "out" / "report-bill-a.csv").read_text()
    assert "\nour-nic-400g," in bill.replace("\r\n", "\n")


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_file_of_quotes_without_the_ending_of_one_is_read_by_its_first_line(
    run, tmp_path, separator
) -> None:
    text = HEADER + "nic-400g,1000,,,,Acme,2026-11-02,,\n"
    (tmp_path / "offers").write_text(text.replace(",", separator))
    done = run("optimize", "0e_rails_2to1", "--prices", tmp_path / "offers")
    assert done.code == 0
    assert "quotes that the linear prices do not use, but a bill of parts may: nic-400g" in (
        done.out.replace("\n", " ")
    )


def _own_part(tmp_path: Path) -> tuple[str | Path, ...]:
    """Options of a file with a part that the catalogue lacks, cheap, and of a quote of it."""
    (tmp_path / "own_parts.yaml").write_text(
        "kind: parts\nbase: parts\nsource: datasheets\nas_of: '2026-11'\nparts:\n"
        "  our-nic-400g: {kind: nic, description: ours, port_speed: 400 Gbps, power_W: 25}\n"
    )
    offers = "item,price,seller,date\nour-nic-400g,700,Acme,2026-11-02\n"
    (tmp_path / "own.csv").write_text(offers)
    return "--parts", tmp_path / "own_parts.yaml", "--prices", tmp_path / "own.csv"


@pytest.mark.parametrize(
    "command",
    [
        ["optimize"],
        ["evaluate", "--bandwidth", "450,50,25"],
        ["check", "--bandwidth", "450,50,25", "--seeds", "1"],
        ["pareto", "--points", "2"],
        ["search", "--top", "1", "--set", "parallelism=auto"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_that_takes_prices_takes_the_parts_that_they_name(
    run, tmp_path, command
) -> None:
    name, *flags = command
    parts, file, *prices = _own_part(tmp_path)
    done = run(name, "0e_rails_2to1", *flags, *prices)
    assert done.code == 2
    assert "got 'our-nic-400g'" in done.err
    assert "and add --parts FILE;" in done.err
    assert run(name, "0e_rails_2to1", *flags, *prices, parts, file).code == 0


def test_whole_parts_beside_a_linear_price_are_of_the_catalogue_that_is_given(
    run, tmp_path
) -> None:
    """A NIC at $700 in place of one of $1,499."""
    parts, file, *prices = _own_part(tmp_path)
    design = ("evaluate", "0e_rails_2to1", "--bandwidth", "450,50,25", "--json")
    dear = json.loads(run(*design).out)["bill_fabric_usd"]
    cheap = json.loads(run(*design, *prices, parts, file).out)["bill_fabric_usd"]
    assert dear - cheap == pytest.approx(2048 * 799, rel=0.05)  # And spares.
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(Path(file).read_text().replace("description: ours, ", ""))
    assert "wrong.yaml:6:17: parts.our-nic-400g.description: got nothing" in (
        run(*design, *prices, parts, wrong).err
    )


@pytest.mark.parametrize(("usd", "is_told"), [(11.0, True), (0.011, True), (1.08, False)])
def test_a_rate_of_a_catalogue_that_is_far_off_stops_the_signature(
    run, tmp_path, usd, is_told
) -> None:
    (tmp_path / "own.yaml").write_text(
        "kind: parts\nbase: parts\nsource: offers\nas_of: '2026-11'\n"
        f"exchange_rates: {{EUR: {{usd: {usd}, as_of: '2026-11-02', source: ECB}}}}\n"
        "parts:\n  nic-400g:\n    price: {amount: 1400, currency: EUR, confidence: quoted, "
        "as_of: '2026-11', source: offer 1}\n"
    )
    flags = ("--parts", tmp_path / "own.yaml", "-o", tmp_path / "out", "--formats", "md")
    done = run("report", "0e_rails_2to1", *flags)
    said = f"- EUR is at {usd:g} USD, outside 0.94 to 1.6 (assumed: "
    assert (said in done.out) == is_told == ("Do not sign yet" in done.out)
    made = run("report", "0e_rails_2to1", *flags, "--json")
    assert (said.replace("- ", "Warning: ") in made.err) == is_told
