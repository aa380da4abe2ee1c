"""What a buyer is told and can rely on: warnings, names, folders, a workbook at other prices."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import openpyxl
import pytest

from libra_planner.cli.main import main
from libra_planner.errors import SpecError
from libra_planner.inputs.parts import load_parts
from libra_planner.views.cells import Section
from libra_planner.views.report.compose import documents, is_own_table, report_payload
from libra_planner.views.report.decision import decision_section
from tests.comparisons import compared_by
from tests.unit.test_procurement_workbook import EXAMPLES, Sheets, _cell_of, _same, _stored

ROOT = Path(__file__).parents[2]
PARTS = (ROOT / "cost_models" / "parts.yaml").read_text()
ONE, TWO, THIN = (
    str(ROOT / "examples" / "reports" / f"{name}.yaml")
    for name in ("one_nic", "two_nics", "oversubscribed")
)


def _compared(*arguments: str):
    return compared_by(*arguments)


def _repriced(text: str, name: str, usd: float) -> str:
    pattern = rf"(  {name}:\n(?:    .*\n)*?    price:(?: {{|\n      )amount: )[\d.]+"
    changed, n = re.subn(pattern, rf"\g<1>{usd}", text)
    assert n == 1
    return changed


def test_a_workbook_at_other_prices_is_the_report_made_at_them(tmp_path) -> None:
    """Every formula: bills, changes, linear model, run and its swings, drivers, discounts."""
    prices = {"nic-400g": 1550.55, "switch-64x400g": 69033.33, "optic-400g-sr4": 651.21}
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
    break_evens = {address[0] for sheet, address in kept if sheet == "Sensitivity"}
    assert break_evens == {"G", "H"}  # Of each part: in dollars, and as a factor.


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


def test_an_oversubscription_that_no_time_counts_is_warned_of() -> None:
    text = "Design B: the step time does not count that dim2 pod is oversubscribed 2:1"
    found = decision_section(_compared(ONE, THIN))
    assert [text in warning for warning in _but_memory(found)] == [True]
    assert "neither faster nor slower" in found.cards[2].reason
    assert _but_memory(decision_section(_compared(ONE, THIN, "--check", "greedy"))) == []


def _but_memory(section: Section) -> list[str]:
    """Its warnings but those of what the NPUs hold."""
    return [warning for warning in section.warnings if "needs ZeRO" not in warning]


def test_a_tier_bought_in_two_ways_is_warned_of(tmp_path) -> None:
    """A ring of the pod is links per GB/s, its switch NICs, switches, optics and fibres."""
    text = Path(ONE).read_text().replace("SW(128)", "RI(128)")
    (tmp_path / "ring.yaml").write_text(re.sub(r" *realization:.*\n", "", text))
    found = decision_section(_compared(ONE, str(tmp_path / "ring.yaml"), TWO))
    (warning,) = _but_memory(found)
    assert warning.startswith("Tier pod is not bought alike: as parts in A, C, per GB/s in B,")


def test_presets_are_where_a_plan_starts() -> None:
    text = documents(_compared(THIN), ("md",))["report.md"]
    assert "preset, where the plan says nothing else: nodes of 8 GPUs" in text


@pytest.mark.parametrize(("named", "index"), [("oversubscribed", 1), ("b", 1), (ONE, 0)])
def test_a_baseline_is_a_letter_a_name_or_an_argument(named, index) -> None:
    assert _compared(ONE, THIN, "--baseline", named).baseline == index


def test_designs_have_the_names_that_their_buyer_gives_them(tmp_path) -> None:
    names = (f"One rail={ONE}", f" Half = {THIN}@450,50", TWO)
    found = _compared(*names, "--baseline", "One rail")
    section = decision_section(found)
    made = report_payload(found, [])
    assert [one["name"] for one in made["designs"]] == ["One rail", "Half", "two_nics"]
    assert made["designs"][1]["source"] == "oversubscribed @ 450,50"
    assert found.baseline == 0
    assert "B (Half)" in section.lead[0]
    assert section.cards[0].answer == "B: Half"
    page = documents(found, ("md",))["report.md"]
    assert all(f"| {name} |" in page for name in ("A (One rail)", "B (Half)", "C (two\\_nics)"))
    assert "B is Half, oversubscribed @ 450,50 (a given vector)" in page
    folder = tmp_path / "a=1"  # A file is a file.
    folder.mkdir()
    (folder / "p.yaml").write_text(Path(ONE).read_text())
    assert _compared(f"{folder}/p.yaml@450,50").candidates[0].proposal.name == "p @ 450,50"


@pytest.mark.parametrize(
    ("named", "text"),
    [
        (f"={ONE}", "expected NAME=PLAN"),
        ("Full=", "expected NAME=PLAN"),
        (f"b={ONE}", "got the name 'b' of design A, expected another name than a letter"),
    ],
)
def test_names_that_name_nothing_or_another_design_are_refused(named, text) -> None:
    with pytest.raises(SpecError, match=text):
        _compared(named, THIN)


def test_a_name_that_is_given_twice_is_refused() -> None:
    with pytest.raises(SpecError, match="got the name 'full' of designs A and B"):
        _compared(f"Full={ONE}", f"full={THIN}")


def test_switches_are_counted_by_network(run) -> None:
    """What check counts is the training network of the bill and the switches between NPUs."""
    done = run("check", "0e_rails_2to1", "--policy", "spray")
    said = re.findall(r"In all, training network: (\d+) switches, ([\d,]+) cables", done.out)
    network, cables = (int(n.replace(",", "")) for n in said[0])
    of_nodes = re.findall(r"node or rack: (\d+) switches, ([\d,]+) cables", done.out)
    inside, cables_inside = (int(n.replace(",", "")) for n in of_nodes[0])
    counts = [
        int(n.replace(",", ""))
        for n in re.findall(r"cables [a-z-]+(?:, in the server)? +([\d,]+)", done.out)
    ]
    assert sum(counts) == cables + cables_inside
    assert cables_inside == 2048
    page = documents(_compared("0e_rails_2to1"), ("csv",))["report-facility.csv"]
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(page))}
    assert int(rows["of them training network"]) == network
    assert int(rows["Scale-up switches between NPUs"]) == inside
    parts = [int(rows[f"of them {name} network"]) for name in ("training", "frontend", "storage")]
    assert int(rows["Switches, all networks"]) == sum(parts)


def test_a_baseline_of_two_designs_is_refused() -> None:
    text = "--baseline: got 'one_nic', the name of A and C, expected one design; name its letter"
    with pytest.raises(SpecError, match=re.escape(text)):
        _compared(ONE, THIN, ONE, "--baseline", "one_nic")


def test_assumptions_say_how_much_money_rests_on_each() -> None:
    """Sums by hand over the lines of the bill; the assumed prices add up to their share."""
    found = _compared(ONE, THIN)
    one = found.candidates[found.chosen]
    design = report_payload(found, [])["designs"][found.chosen]
    rows = {x["what"]: x["usd"] for x in design["assumed_quantities"]}
    by_group = {group: float(one.bill.of(group).total_usd) for group in ("frontend", "storage")}
    assert {f"{name} network": rows[f"{name} network"] for name in by_group} == {
        f"{name} network": usd for name, usd in by_group.items()
    }
    spares = sum(x.n_spares * x.part.price.usd for x in one.bill.lines)
    assert rows["Spares"] == float(spares)
    cables = ("optic", "copper", "active_optical", "fibre")
    assert rows["Cable lengths"] == float(
        sum(x.extended_usd for x in one.bill.lines if x.part.kind in cables)
    )
    assert [*rows.values()] == sorted(rows.values(), reverse=True)
    prices = design["assumed_prices"]
    assert sum(x["usd"] for x in prices) == pytest.approx(design["assumed_usd"])
    assert [x["usd"] for x in prices] == sorted((x["usd"] for x in prices), reverse=True)
    made = documents(found, ("csv",))
    table = list(csv.DictReader(io.StringIO(made["report-assumptions.csv"])))
    money = {row["What"]: float(row[f"$ that rest on it, {one.letter}"] or 0) for row in table}
    assert {name: money[name] for name in rows} == rows
    assert [*money.values()] == sorted(money.values(), reverse=True)
    assert "report-assumed-prices.csv" in made


def test_numbers_of_csv_files_are_numbers() -> None:
    made = documents(_compared(ONE, "--check", "greedy"), ("csv", "md"))
    # Rings: one flow leaves each leaf, on one of its 32 uplinks: FIM 193.75 %, the floor as well.
    assert made["report-check.csv"].splitlines()[2].endswith(",1.9375,1.9375")
    assert "FIM beside an efficiency of 100% costs nothing" in made["report.md"]
    assert not any("float64" in text for text in made.values())


@pytest.mark.parametrize("named", ["file", "file/inside", ""])
def test_a_folder_that_is_none_is_refused_before_the_designs_are_read(named, tmp_path, run) -> None:
    (tmp_path / "file").write_text("mine")
    done = run("report", "nowhere.yaml", "-o", f"{tmp_path}/{named}" if named else "")
    assert done.code == 2
    assert done.err.startswith("--output: got ")
    assert (tmp_path / "file").read_text() == "mine"


def test_tables_of_an_earlier_report_are_kept_as_bak(tmp_path, run) -> None:
    """A folder never holds orders of another report; what may be a user's own stays."""
    assert run("report", ONE, THIN, "--formats", "csv,md", "-o", tmp_path).code == 0
    (tmp_path / "report-notes.csv").write_text("mine")
    before = (tmp_path / "report-bill-b.csv").read_text()
    (tmp_path / "report-linear-b.csv").rename(tmp_path / "elsewhere.csv")
    (tmp_path / "report-linear-b.csv").symlink_to(tmp_path / "elsewhere.csv")
    assert run("report", ONE, "--formats", "md", "-o", tmp_path).code == 0
    assert (tmp_path / "report-bill-b.csv").is_file()  # No table takes its place.
    done = run("report", ONE, "--formats", "csv", "-o", tmp_path)
    assert not (tmp_path / "report-bill-b.csv").exists()
    assert (tmp_path / "report-bill-b.csv.bak").read_text() == before
    left = ("report-linear-b.csv", "report-notes.csv", "report.md")
    said = [x for x in done.err.splitlines() if x.startswith("Left")]
    assert said == [f"Left as it was, of another report: {tmp_path}/{name}." for name in left]
    assert all((tmp_path / name).is_file() for name in left)


def test_every_table_of_a_report_has_a_name_that_it_knows_again() -> None:
    names = {*documents(_compared(ONE, THIN, "--check", "greedy"), ("csv",))}
    names |= {*documents(_compared(ONE), ("csv",))}
    assert len(names) > 15
    assert [name for name in sorted(names) if not is_own_table(name)] == []


def test_many_files_that_are_kept_are_told_in_one_line(tmp_path, run) -> None:
    """Else dozens of paths scroll the decision away."""
    assert run("report", THIN, "--formats", "csv", "-o", tmp_path).code == 0
    again = run("report", ONE, "--formats", "csv", "-o", tmp_path)
    n = len([*tmp_path.glob("*.bak")])
    assert n > 3
    assert again.err.splitlines() == [
        f"Kept what {n} files were as *.bak beside them, in {tmp_path}."
    ]


@pytest.mark.parametrize(
    ("price", "text"),
    [
        (
            "amount: 659\n      currency: CHF\n",
            "got 'CHF', expected USD; add CHF to exchange_rates",
        ),
        (
            "amount: 0.004\n      low: 0.004\n",
            "got 0.004 USD, which is $0.00, expected at least half a cent",
        ),
    ],
)
def test_prices_that_cannot_be_counted_are_refused(price, text, tmp_path) -> None:
    (tmp_path / "p.yaml").write_text(PARTS.replace("amount: 659\n      low: 659\n", price, 1))
    with pytest.raises(SpecError, match=re.escape(text)):
        load_parts(str(tmp_path / "p.yaml"))


def test_a_row_without_an_optimum_is_named(tmp_path, run) -> None:
    """Its plan is a file that is gone when the message is read."""
    axes = 'axes:\n  constraints.1: ["pod == 50 GB/s", "total == 10 GB/s"]\n'
    (tmp_path / "sweep.yaml").write_text(f"base: {ONE}\n{axes}")
    sweep = ["sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "runs", "--workers", "0"]
    assert run(*sweep).code == 0
    done = run("report", f"{tmp_path}/runs:1", "-o", tmp_path / "out")
    assert done.code == 3
    assert done.err.startswith("plan of row 1 of runs:")


def test_a_result_whose_plan_has_changed_is_refused(tmp_path, capsys) -> None:
    """Another budget leaves the figures at a vector as they are; another batch does not."""
    text = (EXAMPLES / "01_gpt3_4d.yaml").read_text()
    plan, result = tmp_path / "p.yaml", tmp_path / "r.json"
    plan.write_text(text)
    assert main(["optimize", str(plan), "--json"]) == 0
    result.write_text(capsys.readouterr().out)
    command = ["report", f"{plan}@{result}", "-o", str(tmp_path / "out"), "--formats", "md"]
    assert main(command) == 0
    capsys.readouterr()
    plan.write_text(re.sub(r"global_batch: \d+", "global_batch: 512", text))
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "r.json" in said
    assert "step_time_s: got 0.722411781" in said
    assert "has changed since: make the result anew" in said
    assert main([*command, "--set", "global_batch=8192"]) == 0
