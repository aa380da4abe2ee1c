"""``report``: totals in every format, hostile text, missing prices, bad input, same bytes."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest

from libra_planner.cli.main import main
from libra_planner.inputs.parts import load_parts
from libra_planner.procurement.ranking import run_swings
from libra_planner.reading.bundled import folder
from libra_planner.views.cells import Report, Section, printable, table, usd
from libra_planner.views.renderers.html import html as page
from libra_planner.views.renderers.text import csv_text, escaped, markdown
from libra_planner.views.renderers.workbook import workbook
from libra_planner.views.report.compose import documents, report
from tests.comparisons import compared_by
from tests.conftest import PLAN

EXAMPLES = Path(__file__).parents[2] / "examples"
DESIGNS = [
    str(EXAMPLES / "01_gpt3_4d.yaml"),
    str(EXAMPLES / "02_performance_per_cost.yaml"),
    f"{EXAMPLES / '01_gpt3_4d.yaml'}@300,100,75,25",
]
WHOLE = str(EXAMPLES / "reports" / "one_nic.yaml")
"""All layers, embedding and logits; the designs above are of LIBRA's tables, parts of a step."""

HOSTILE = [
    "=1+1", "=cmd|'/c calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", "../../etc/passwd", "a|b", "[x](javascript:alert(1))", "$x$",
    "&amp;", "`rm`", "{{7*7}}", "'", '"', "[c3]", "[bill-a/t8]",
]  # fmt: skip


SHOWN = [printable(text) for text in HOSTILE]


def _compared(*arguments: str):
    return compared_by(*arguments)


@pytest.fixture(scope="module")
def three():
    """Three designs with a baseline."""
    return _compared(*DESIGNS, "--baseline", "A")


@pytest.fixture(scope="module")
def files(three):
    """The same as files."""
    return documents(three, ("html", "xlsx", "csv", "md"))


class _Page(html.parser.HTMLParser):
    """Tables by id as rows of texts; all tags, and attributes that could load something."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.tags: Counter[str] = Counter()
        self.loads: list[str] = []
        self.captions = self.scopes = 0
        self._rows: list[list[str]] | None = None
        self._inside = False

    def handle_starttag(self, tag, attrs) -> None:
        given = dict(attrs)
        self.tags[tag] += 1
        self.loads += [v for k, v in given.items() if k in ("src", "href", "xlink:href", "data")]
        self.captions += tag == "caption"
        self.scopes += "scope" in given
        if tag == "table":
            self._rows = self.tables.setdefault(given["id"].removeprefix("table-"), [])
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append("")
            self._inside = True

    def handle_endtag(self, tag) -> None:
        self._inside = self._inside and tag not in ("td", "th")

    def handle_data(self, data) -> None:
        if self._inside:
            self._rows[-1][-1] += data


def _page(text: str) -> _Page:
    parsed = _Page()
    parsed.feed(text)
    return parsed


def _money(text: str) -> Decimal:
    return Decimal(text.replace("\u2212", "-").replace("$", "").replace(",", "").replace("*", ""))


def _bill_rows(rows: list[list[str]]) -> tuple[list[Decimal], Decimal]:
    """Extended prices of the lines, and the total, of a bill with its headings."""
    at = rows[0].index("Extended")
    *lines, total = rows[1:]
    return [_money(line[at]) for line in lines], _money(total[at])


def test_totals_are_the_sum_of_their_lines_to_the_cent_in_every_format(three, files) -> None:
    shown = _page(files["report.html"]).tables
    book = openpyxl.load_workbook(io.BytesIO(files["report.xlsx"]), data_only=True)
    for one in three.candidates:
        letter = one.letter.lower()
        expected = one.bill.total_usd
        assert expected == sum(line.extended_usd for line in one.bill.lines)
        text = files[f"report-bill-{letter}.csv"]
        found = [list(csv.reader(io.StringIO(text))), shown[f"bill-{letter}"]]
        found.append(
            _markdown_table(files["report.md"], f"Bill of materials of design {one.letter}")
        )
        for rows in found:
            lines, total = _bill_rows(rows)
            assert (len(lines), sum(lines), total) == (len(one.bill.lines), expected, expected)
        sheet = list(book[f"Design {one.letter}"].iter_rows(values_only=True))
        body = sheet[3 : 3 + len(one.bill.lines)]
        cents = [Decimal(repr(row[8])).quantize(Decimal("0.01")) for row in body]
        total = sheet[3 + len(body)][8]
        assert sum(cents) == expected == Decimal(repr(total)).quantize(Decimal("0.01"))
        groups = {row[0]: _money(row[1]) for row in shown[f"groups-{letter}"][1:]}
        assert groups.pop("Total") == expected == sum(groups.values())


def _markdown_table(text: str, caption: str) -> list[list[str]]:
    lines = text.split(f"**{caption}**\n\n")[1].split("\n\n", maxsplit=1)[0].splitlines()
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    clean = [[cell.replace("\\", "") for cell in row] for row in rows]
    return [clean[0], *clean[2:]]


OFF_PAGE = {"bill-": ("W each", "kW", "Share"), "price": ("Kind", "Seller", "Valid until")}
"""What a page leaves to workbook and CSV, so that a bill fits a screen."""


def test_the_same_figures_stand_in_every_format(files) -> None:
    shown = _page(files["report.html"]).tables
    for key, rows in shown.items():
        text = list(csv.reader(io.StringIO(files[f"report-{key}.csv"])))
        columns = [i for i, name in enumerate(text[0]) if name not in OFF_PAGE.get(key[:5], ())]
        text = [[row[i] for i in columns] for row in text]
        assert text[0] == rows[0], key
        assert [len(row) for row in text] == [len(row) for row in rows], key
        assert [row[0].lstrip("'") for row in text] == [row[0] for row in rows], key


def test_differences_against_the_baseline_add_up(three, files) -> None:
    base, b, _ = three.candidates
    rows = list(csv.reader(io.StringIO(files["report-changes-b.csv"])))
    *lines, total = [Decimal(row[-1]) for row in rows[1:]]
    assert sum(lines) == total == b.bill.total_usd - base.bill.total_usd
    money = _page(files["report.html"]).tables["money"]
    assert money[0] == ["", "B", "B vs A", "C", "C vs A", "A"]  # B is the one to buy.
    assert money[1][2] == "\u22123.3%"
    assert money[1][4] == "+0.3%"


def test_the_page_needs_nothing_else_and_can_be_read_aloud(files) -> None:
    parsed = _page(files["report.html"])
    assert all(link.startswith("#") for link in parsed.loads)
    assert not re.search(r"@import|url\((?!#)|https?://(?!www\.w3\.org)", _without_sources(files))
    assert parsed.captions == parsed.tags["table"] == len(parsed.tables)
    n_heads = sum(len(rows[0]) + len(rows) - 1 for rows in parsed.tables.values())
    assert parsed.scopes == n_heads
    assert "prefers-color-scheme: dark" in files["report.html"]
    assert "@media print" in files["report.html"]
    assert parsed.tags["svg"] == 4
    ids = re.findall(r'\bid="([^"]+)"', files["report.html"])
    assert len(ids) == len(set(ids))


def _without_sources(files) -> str:
    """The page without the addresses that it cites as text."""
    return re.sub(r"<td[^>]*>[^<]*</td>", "", files["report.html"])


def test_the_same_input_gives_the_same_bytes(three, files) -> None:
    again = _compared(*DESIGNS, "--baseline", "A")
    assert documents(again, ("html", "xlsx", "csv", "md")) == files


def test_decisions_are_those_of_the_figures(three) -> None:
    totals = [float(one.bill.total_usd) for one in three.candidates]
    times = [one.evaluation.real_link_step_time_s for one in three.candidates]
    products = [t * c for t, c in zip(totals, times, strict=True)]
    ranks = three.ranking
    assert ranks.cheapest == totals.index(min(totals)) == 1
    assert ranks.fastest == times.index(min(times)) == 2
    assert ranks.best_per_usd == products.index(min(products)) == 1
    decision = report(three, {}).sections[0]
    assert [card.title for card in decision.cards] == ["Cheapest", "Fastest", "Best per dollar"]
    for card in decision.cards:
        assert re.search(r"\d", card.reason), card


# --- Text that wants to be something else ------------------------------------------------


def _hostile_report() -> Report:
    rows = [[text, text, usd(Decimal("1.00"))] for text in HOSTILE]
    one = table("bill-a", HOSTILE[6], HOSTILE[:3], rows, total=["=1", "", usd(Decimal("1.00"))])
    section = Section(
        "s", HOSTILE[6], "Sheet", tuple(HOSTILE), warnings=tuple(HOSTILE), tables=(one,)
    )
    return Report(HOSTILE[6], "\n".join(HOSTILE), (section,))


def test_text_never_becomes_html() -> None:
    parsed = _page(page(_hostile_report()))
    assert parsed.tags["script"] == 1
    assert parsed.tags["img"] == 0
    assert [row[0] for row in parsed.tables["bill-a"][1:-1]] == SHOWN


def test_text_never_becomes_a_formula_of_a_workbook() -> None:
    book = openpyxl.load_workbook(io.BytesIO(workbook(_hostile_report())))
    cells = [cell for row in book["Sheet"].iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    assert not any(cell.hyperlink for cell in cells)
    assert [cell.value for cell in book["Sheet"]["A"]][3 : 3 + len(HOSTILE)] == SHOWN


def test_text_never_becomes_a_formula_of_a_csv_file() -> None:
    text = csv_text(_hostile_report().tables[0])
    rows = list(csv.reader(io.StringIO(text)))
    assert not any(cell.lstrip(" ")[:1] in "=+-@\t\r" and cell for row in rows for cell in row)
    assert [row[0].removeprefix("'") for row in rows[1:-1]][:8] == SHOWN[:8]
    negative = table("t", "t", ["a", "b"], [["x", usd(Decimal("-1.5"))]])
    assert csv_text(negative).splitlines()[1] == "x,-1.50"  # A number stays one.


def test_text_never_becomes_markup() -> None:
    text = markdown(_hostile_report())
    assert "<script>" not in text.replace("\\<", "")
    assert "](javascript" not in text.replace("\\]", "")
    assert {
        line.count("|") - line.count("\\|") for line in text.splitlines() if line[:2] == "| "
    } == {4}
    assert escaped("# head") == "\\# head"
    assert escaped("2026. x") == "2026\\. x"


def test_hostile_file_names_stay_names(tmp_path, run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["=1+1.yaml", "<script>alert(1)<.yaml", "-x@.yaml", "a\x07b.yaml"]
    for name in names:
        Path(name).write_text(PLAN)
    done = run("report", *(f"./{name}" for name in names), "-o", "out")
    assert done.code == 0, done.err
    written = [path.name for path in Path("out").iterdir()]
    assert all(re.fullmatch(r"report[a-z-]*\.(html|csv|md|xlsx)", name) for name in written)
    assert sorted(path.name for path in Path().iterdir()) == sorted([*names, "out"])
    text = Path("out/report.html").read_text()
    assert _page(text).tags["script"] == 1
    assert "\x07" not in text


def test_a_hostile_catalogue_stays_text(tmp_path) -> None:
    bundled = (folder("parts") / "parts.yaml").read_text()
    hostile = bundled.replace("NIC with one port of 200 Gbit/s", '"=1+1<script>x</script>"')
    hostile = hostile.replace("  nic-200g:", "  '=nic<script>$a$':")
    (tmp_path / "p.yaml").write_text(hostile)
    found = _compared(DESIGNS[0], "--parts", str(tmp_path / "p.yaml"))
    made = documents(found, ("html", "xlsx", "csv", "md"))
    assert _page(made["report.html"]).tags["script"] == 1
    assert "'=nic<script>$a$" in made["report-bill-a.csv"]
    book = openpyxl.load_workbook(io.BytesIO(made["report.xlsx"]))
    names = [cell.value for cell in book["Prices"]["A"] if cell.data_type == "s"]
    assert "=nic<script>$a$" in names


# --- Missing prices -----------------------------------------------------------------------


@pytest.fixture
def unpriced(tmp_path) -> Path:
    """A catalogue in which 200 Gbit/s NICs have no price, and no switch is sold."""
    text = (folder("parts") / "parts.yaml").read_text()
    text = re.sub(r"(  nic-200g:\n(?:    .*\n)*?)    price:\n(?:      .*\n)*", r"\1", text)
    text = re.sub(r"  switch-\w+:\n(?:    .*\n)*", "", text)
    path = tmp_path / "unpriced.yaml"
    path.write_text(text)
    return path


def test_missing_prices_are_listed_and_nothing_is_written(unpriced, run, tmp_path) -> None:
    done = run("report", DESIGNS[0], "-o", tmp_path / "out", "--parts", unpriced)
    assert done.code == 2
    lines = done.err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{unpriced}: parts.nic-200g: got no price")
    assert "parts: got no switch of 64 ports at 200 Gbit/s, expected one" in lines[1]
    assert all("--allow-missing" in line for line in lines)
    assert not (tmp_path / "out").exists()


def test_an_npu_without_a_price_is_the_plans(plan, run, tmp_path) -> None:
    rented = PLAN.replace("gpt3-libra", "gpt3") + (
        "global_batch: 1024\nnpu: {name: tpu-v5p, efficiency_fraction: 0.5}\n"
    )
    path = plan(text=rented)
    done = run("report", path, "-o", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith(f"{path}: got the NPU tpu-v5p without a price")
    found = _compared(str(path), "--allow-missing")
    risks = " ".join(report(found, {}).sections[-3].paragraphs)
    assert "No power is known for tpu-v5p" in risks


def test_designs_that_lack_different_prices_are_warned_of(unpriced) -> None:
    found = _compared(
        DESIGNS[0], f"{DESIGNS[0]}@300,50,50,50", "--parts", str(unpriced), "--allow-missing"
    )
    decision = report(found, {}).sections[0]
    assert "lack different prices" in " ".join(decision.warnings)
    assert all("without: " in c.figure or "incomplete" in c.figure for c in decision.cards[::2])


def test_totals_without_missing_prices_say_so_everywhere(unpriced, three) -> None:
    found = _compared(DESIGNS[0], "--parts", str(unpriced), "--allow-missing")
    names = [part.name for part in found.missing]
    assert names == ["nic-200g", "switch of 64 ports at 200 Gbit/s"]
    [whole] = three.candidates[:1]
    [one] = found.candidates
    lost = {line.part.name for line in one.bill.lines if line.extended_usd is None}
    assert lost == set(names)
    assert one.bill.total_usd == sum(x.extended_usd for x in one.bill.lines if x.extended_usd)
    assert one.bill.total_usd < whole.bill.total_usd
    made = documents(found, ("html", "xlsx", "csv", "md"))
    for text in (made["report.html"], made["report.md"].replace("\\", "")):
        assert (
            "Prices are missing: every total is without nic-200g, switch of 64 ports at 200 Gbit/s"
            in text
        )
        assert "without: nic-200g" in text
        assert "Total of the lines with a price" in text
    assert "Total of the lines with a price" in made["report-bill-a.csv"]
    assert "no price" in made["report-prices.csv"]


# --- Inputs ---------------------------------------------------------------------------------


def test_a_result_finds_its_plan(tmp_path, run) -> None:
    plan_path = tmp_path / "p.yaml"
    plan_path.write_text(PLAN)
    result = run("evaluate", plan_path, "--bandwidth", "300,100,75,25", "--json").payload
    result.pop("plan")  # It is the path; a result may have been moved.
    (tmp_path / "r.json").write_text(json.dumps(result))
    (tmp_path / "own.json").write_text(json.dumps(result | {"plan": "p.yaml"}))
    given = [
        f"{plan_path}@{tmp_path / 'r.json'}",
        f"{tmp_path / 'own.json'}",
        f"{plan_path}@300,100,75,25",
    ]
    found = _compared(*given)
    assert len({one.bill.total_usd for one in found.candidates}) == 1
    assert not any(one.proposal.optimized for one in found.candidates)
    assert {role for role, _, _ in found.origin.files} >= {"plan", "result", "workload"}
    lonely = run("report", tmp_path / "r.json", "-o", tmp_path / "out")
    assert lonely.code == 2
    assert "does not name its plan" in lonely.err


@pytest.fixture
def result(plan, run) -> Path:
    """A result of a plan p.yaml of its own batch, beside it."""
    path = plan(text=PLAN.replace("gpt3-libra", "gpt3") + "global_batch: 1024\n", name="p.yaml")
    found = run("evaluate", path, "--bandwidth", "300,100,75,25", "--set", "global_batch=2048",
                "--json").payload  # fmt: skip
    (path.parent / "r.json").write_text(json.dumps(found))
    return path.parent / "r.json"


def test_the_settings_of_a_result_are_applied(result) -> None:
    plan_path = result.parent / "p.yaml"
    moved = result.parent / "elsewhere"
    moved.mkdir()
    (moved / "r.json").write_text(result.read_text())
    (moved / "p.yaml").write_text(plan_path.read_text())
    given = [f"{plan_path}@{result}", str(result), f"{moved / 'p.yaml'}@{moved / 'r.json'}"]
    found = _compared(*given, f"{plan_path}@300,100,75,25")
    *theirs, plain = [one.evaluation.step_time_s for one in found.candidates]
    expected = json.loads(result.read_text())["step_time_s"]
    assert theirs == pytest.approx([expected] * 3)
    assert plain < 0.9 * expected
    again = _compared(str(result), "--set", "global_batch=1024").candidates[0]
    assert again.evaluation.step_time_s == pytest.approx(plain)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"workload": "llama"}, "workload: got 'llama', expected that of the plan, gpt3"),
        ({"plan": "/gone/q.yaml"}, "plan: got a result of /gone/q.yaml, expected one of "),
        ({"set": "a=1"}, "set: got another set, expected a list of key=value"),
    ],
)
def test_a_result_of_something_else_is_refused(changed, text, result, run, tmp_path) -> None:
    result.write_text(json.dumps(json.loads(result.read_text()) | changed))
    done = run("report", f"{result.parent / 'p.yaml'}@{result}", "-o", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith(f"{result}: {text}")


def test_a_result_whose_plan_is_gone_is_named(result, run, tmp_path) -> None:
    plan_path = result.parent / "p.yaml"
    plan_path.rename(result.parent / "q.yaml")
    done = run("report", result, "-o", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith(f"{result}: plan: got no such file {plan_path}, expected the plan")
    assert f"write PLAN.yaml@{result}" in done.err


def test_an_unknown_catalogue_is_the_options(run, tmp_path) -> None:
    done = run("report", DESIGNS[0], "--parts", "nope", "-o", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith("--parts: got 'nope', expected a bundled parts catalogue")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([f"{DESIGNS[0]}@1,2"], "got 2 numbers, expected 4"),
        ([f"{DESIGNS[0]}@"], "expected PLAN@BANDWIDTHS"),
        ([f"{DESIGNS[0]}@9,0,9,9"], f"{DESIGNS[0]}@9,0,9,9: got 0 GB/s for dim2"),
        (["nowhere.yaml"], "nowhere.yaml: got no such file"),
        ([str(EXAMPLES)], "got a directory, expected a plan or result"),
        ([*DESIGNS[:2], "--baseline", "Z"], "--baseline: got 'Z', expected one of the designs"),
        ([DESIGNS[0], "--tokens", "0"], "--tokens: got '0'"),
        ([DESIGNS[0], "--tokens", "nan"], "--tokens: got 'nan'"),
        ([DESIGNS[0], "--formats", "doc"], "--formats: got 'doc'"),
        ([DESIGNS[0], "--check", "pinned"], "--check: got pinned"),
        ([DESIGNS[0], "--check", "emcp"], "did you mean ecmp?"),
        ([DESIGNS[0], "--parts", "parst"], "did you mean parts?"),
        ([DESIGNS[0], "--seeds", "5"], "--seeds: got 5 without --check, expected both"),
        ([DESIGNS[2]] * 11, "got 11 designs, expected one to 10"),
    ],
)
def test_bad_input_is_named(arguments, text, run, tmp_path) -> None:
    done = run("report", *arguments, "-o", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert text in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("kind: nic\n", "kind: nick\n", "parts.nic-100g.kind: got 'nick'"),
        ("port_speed: 100 Gbps", "port_speed: 100", "got 100 without a unit"),
        ("port_speed: 100 Gbps", "port_speed: 100 GHz", "parts.nic-100g.port_speed: got the unit"),
        ("cable: fibre-om4", "cable: fibre-om5", "did you mean fibre-om4?"),
        (
            "amount: 659\n",
            "amount: 659\n      currency: EUR\n",
            "parts.nic-100g.price.currency: got 'EUR'",
        ),
        ("amount: 659\n", "amount: -659\n", "expected more than 0"),
        ("server: server-8npu ", "server: rack ", "assumptions.server: got 'rack'"),
        ("name: h100-sxm", "name: h300-sxm", "got 'h300-sxm'"),
        ("    n_npus: 8\n", "", "got a server without n_npus"),
        ("spare_fraction: 0.02", "spare_fraction: 2", "expected at most 1"),
    ],
)
def test_faults_of_a_catalogue_have_their_place(old, new, text, tmp_path) -> None:
    bundled = (
        (folder("parts") / "parts.yaml")
        .read_text()
        .replace("server: server-8npu\n", "server: server-8npu \n")
    )
    assert old in bundled
    path = tmp_path / "p.yaml"
    path.write_text(bundled.replace(old, new))
    with pytest.raises(Exception, match=re.escape(text)) as caught:
        load_parts(str(path))
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: ", str(caught.value))


def test_other_currencies_are_converted(tmp_path) -> None:
    text = (folder("parts") / "parts.yaml").read_text()
    rates = "exchange_rates: {EUR: {usd: 1.085, as_of: '2026-11', source: test}}\nparts:"
    text = text.replace("\nparts:", f"\n{rates}", 1).replace(
        "amount: 659\n", "amount: 659\n      currency: EUR\n"
    )
    (tmp_path / "p.yaml").write_text(text)
    price = load_parts(str(tmp_path / "p.yaml")).parts.by_name["nic-100g"].price
    assert price.usd == Decimal("715.015")  # Exact: totals of an order in euros add up.
    assert "659 EUR at 1.085 USD" in price.source


def test_every_price_says_how_sure_it_is(files) -> None:
    rows = list(csv.DictReader(io.StringIO(files["report-prices.csv"])))
    assert {row["Confidence"] for row in rows} == {"assumed", "published"}  # The book's links are.
    assert all(row["Source of the price"] and row["As of"] for row in rows)
    free = [row["Part"] for row in rows if not float(row["Unit price"])]
    assert all("included in server-8npu" in name for name in free)


def test_designs_of_the_same_model_are_warned_of_together(plan) -> None:
    other = str(plan(text=PLAN + "fidelity: pipelined\nchunks: 4\n", name="o.yaml"))
    found = _compared(DESIGNS[0], other, f"{DESIGNS[0]}@300,100,75,25")
    [warning] = [w for w in report(found, {}).sections[0].warnings if "different models" in w]
    [first, second] = warning.split("of a design: ")[1].split("; ")
    assert first.startswith("A, C: ")
    assert second.startswith("B: ")


def test_designs_of_other_work_are_not_called_faster(plan, run) -> None:
    other = plan(
        ("gpt3-libra", "msft-1t-libra"), ("tp: 16, dp: 256", "tp: 128, dp: 32"), name="o.yaml"
    )
    found = _compared(DESIGNS[0], str(other))
    assert (found.ranking.fastest, found.ranking.best_per_usd) == (None, None)
    assert "same work" in " ".join(report(found, {}).sections[0].warnings)


def test_a_checked_design_counts_at_its_effective_time(plan) -> None:
    text = (
        PLAN.replace("RI(4)_FC(8)_RI(4)_SW(32)", "FC(8)_SW(128)")
        .replace(
            "tiers: [chiplet, package, node, pod]",
            "tiers: [node, pod]\n  realization: {preset: rail-8x400G}",
        )
        .replace("tp: 16, dp: 256", "tp: 8, dp: 128")
        .replace("workload: gpt3-libra", "workload: gpt3\nglobal_batch: 1024")
    )
    found = _compared(str(plan(text=text)), "--check", "ecmp", "--seeds", "2")
    [one] = found.candidates
    assert one.step_time_s == pytest.approx(one.check.effective_step_time_s.mean())
    assert one.step_time_s > one.evaluation.step_time_s
    keys = [section.key for section in report(found, {}).sections]
    assert "check" in keys
    assert one.run.work_s == pytest.approx(one.run.n_steps * one.step_time_s)


def test_assumptions_of_a_run_move_its_cost() -> None:
    [one] = _compared(WHOLE, "--tokens", "15e12").candidates
    swings = run_swings(one)
    _, dear = swings["electricity price"]
    assert dear.cost_usd - one.run.cost_usd == pytest.approx(0.2 * one.run.energy_usd)
    assert swings["years of use"][0].hardware_usd == pytest.approx(one.run.hardware_usd / 0.8)
    for name in ("failure rates", "checkpoint time", "restart time"):
        low, high = (run.expected_s for run in swings[name])
        assert low < one.run.expected_s < high


def test_json_says_what_was_written(run, tmp_path) -> None:
    done = run("report", DESIGNS[2], "-o", tmp_path / "out", "--formats", "md", "--json")
    assert done.payload["files"] == [str(tmp_path / "out" / "report.md")]
    [design] = done.payload["designs"]
    assert design["total_usd"] == pytest.approx(sum(design["usd_by_group"].values()), abs=1e-6)
    assert (tmp_path / "out" / "report.md").read_text().startswith("# Network procurement report")


def test_pdf_without_its_extra_says_what_to_install(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    monkeypatch.setattr("libra_planner.api.reports.compared", lambda *_: pytest.fail("computed"))
    done = run("report", DESIGNS[2], "-o", tmp_path / "out", "--formats", "html,pdf")
    assert done.code == 2
    assert done.err.startswith("--formats: got no weasyprint, expected it for pdf; pip install")
    assert "libra-planner[pdf]" in done.err


@pytest.mark.parametrize(("name", "meant"), [("excel", "xlsx"), ("Markdown", "md")])
def test_a_format_by_what_people_call_it_is_told_by_its_name(run, tmp_path, name, meant) -> None:
    done = run("report", DESIGNS[2], "-o", tmp_path / "out", "--formats", name)
    assert f"--formats: got {name!r}, expected known formats; did you mean {meant}?" in done.err


def test_nothing_is_written_where_something_cannot_be(tmp_path, run) -> None:
    (tmp_path / "out" / "report.xlsx").mkdir(parents=True)
    done = run("report", DESIGNS[2], "-o", tmp_path / "out")
    assert done.code == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.xlsx"]


def test_help_loads_nothing_heavy(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    assert "--allow-missing" in capsys.readouterr().out


def test_budgets_move_only_optima(three) -> None:
    assert [budget.factor for budget in three.budgets] == [0.8, 1.2]
    for budget in three.budgets:
        moved = [one.evaluation.bandwidth_bytes_per_s.sum() for one in budget.candidates]
        before = [one.evaluation.bandwidth_bytes_per_s.sum() for one in three.candidates]
        assert moved[0] == pytest.approx(budget.factor * before[0])
        assert moved[2] == before[2]


def test_rows_of_a_sweep_are_designs(tmp_path, run) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    sweep = "base: plan.yaml\naxes:\n  constraints.0: [total == 300 GB/s, total == 500 GB/s]\n"
    (tmp_path / "sweep.yaml").write_text(sweep)
    done = run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "runs", "--workers", "0")
    assert done.code == 0, done.err
    row = f"{tmp_path / 'runs'}:0"
    rule = "constraints.0=total == 300 GB/s"
    (tmp_path / "r.json").write_text(
        run("optimize", tmp_path / "plan.yaml", "--set", rule, "--json").out
    )
    found = _compared(row, f"{tmp_path / 'r.json'}")
    assert found.candidates[0].proposal.name == "runs row 0"
    assert len({one.bill.total_usd for one in found.candidates}) == 1
    assert ("plan", row) in {file[:2] for file in found.origin.files}
    for text in (f"{tmp_path / 'runs'}:7", str(tmp_path / "runs")):
        refused = run("report", text, "-o", tmp_path / "out")
        assert refused.code == 2
        assert "row" in refused.err
