"""Bills of the optima of a sweep: those of ``report``, to the cent (C22)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import libra_planner as lp
from libra_planner.api.sweeps import SweepResults
from libra_planner.errors import SpecError
from libra_planner.procurement.bill import Bill, Line, Part
from libra_planner.reading.bundled import folder
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.solver import Solver
from libra_planner.sweeps.spec import chunk_between, job_of, load_sweep
from libra_planner.units import format_usd
from libra_planner.views.sweeps.best import best_rows
from libra_planner.views.sweeps.points import Points
from libra_planner.views.sweeps.remarks import remarks

EXAMPLE = Path(__file__).parents[2] / "examples" / "08_rails.yaml"
SWEEP = """\
base: plan.yaml
axes:
  nic: [25, 50]
  taper: [1, 2, 4]
set:
  constraints: ["leaf <= {nic} GB/s", "taper(spine) == {taper}"]
columns: [step_time_s, cost_usd, bandwidth, bill_usd, bill_low_usd, bill_high_usd, bill_fabric_usd, bill_message]
"""


def _rows(run, folder: Path, sweep: str = SWEEP, plan: str = "") -> list[dict]:
    shutil.copy(EXAMPLE, folder / "plan.yaml")
    with (folder / "plan.yaml").open("a") as file:
        file.write(plan)
    (folder / "sweep.yaml").write_text(sweep)
    done = run("sweep", "run", folder / "sweep.yaml", "-o", folder / "run")
    assert done.code == 0, done.err
    query = "select * from designs order by row"
    return list(run("sweep", "show", folder / "run", "--sql", query, "--json").payload["rows"])


def test_the_bill_of_a_row_is_that_of_its_report(run, tmp_path) -> None:
    """Six combinations of NIC and taper, each with the exact bill of its whole parts."""
    rows = _rows(run, tmp_path)
    assert len(rows) == 6
    for row in (rows[0], rows[4]):
        design = f"{tmp_path}/run:{row['row']}"
        flags = ("-o", tmp_path / "out", "--formats", "csv", "--json")
        [one] = run("report", design, *flags).payload["designs"]
        assert row["bill_usd"] == one["total_usd"]
        assert row["bill_low_usd"] == one["cost_usd_low"]
        assert row["bill_high_usd"] == one["cost_usd_high"]
        assert row["bill_fabric_usd"] == one["usd_by_group"]["network"]
    # A thinner spine is cheaper, and the faster NIC dearer.
    by_nic = {nic: [r["bill_usd"] for r in rows if r["nic"] == nic] for nic in (25, 50)}
    assert by_nic[50] == sorted(by_nic[50], reverse=True)
    assert by_nic[50][0] > by_nic[25][0]


def test_a_design_that_cannot_be_built_says_why(run, tmp_path) -> None:
    """Two NICs of 400 Gbit/s have 64 links down and 64 up of a leaf of 64 ports."""
    [row] = _rows(run, tmp_path, SWEEP.replace("[25, 50]", "[100]").replace("[1, 2, 4]", "[1]"))
    assert row["status"] == "optimal"
    assert row["bill_usd"] is None
    assert "128 ports, expected at most the radix, 64" in row["bill_message"]


def test_bills_of_a_sweep_have_the_quotes_and_npus_of_their_plans(run, tmp_path) -> None:
    header = "item,price,seller,date\n"
    (tmp_path / "q.csv").write_text(f"{header}nic-400g,1000,Acme,2026-11-02\n")
    sweep = SWEEP.replace("  nic: [25, 50]", "  npu.name: [h100-sxm, h200-sxm]").replace(
        "leaf <= {nic} GB/s", "leaf <= 50 GB/s"
    )
    plain = _rows(run, tmp_path, sweep)
    shutil.rmtree(tmp_path / "run")
    quoted = _rows(run, tmp_path, sweep, "quotes: q.csv\n")
    n_nics = 2048 + 41  # 2 % spares
    for before, after in zip(plain, quoted, strict=True):
        assert before["bill_usd"] - after["bill_usd"] == pytest.approx(n_nics * 499)
    by_npu = {row["npu.name"]: row["bill_usd"] for row in plain if row["taper"] == 1}
    n_npus = 2048 + 21  # 1 % spares; $32,000 and $27,500 each
    assert by_npu["h200-sxm"] - by_npu["h100-sxm"] == pytest.approx(n_npus * 4500)


def test_rows_of_different_quotes_are_compared_at_one_file(run, tmp_path, monkeypatch) -> None:
    """What the refusal says to write is run: both rows then have the price of that file."""
    monkeypatch.chdir(tmp_path)
    header = "item,price,seller,date\n"
    for name, usd in (("a.csv", 1000), ("b.csv", 1100)):
        Path(name).write_text(f"{header}nic-400g,{usd},Acme,2026-11-02\n")
    sweep = "base: 0e_rails_2to1\naxes: {quotes: [a.csv, b.csv]}\n"
    Path("sweep.yaml").write_text(f"{sweep}columns: [step_time_s, cost_usd, bill_usd]\n")
    run("sweep", "run", "sweep.yaml", "-o", "run")
    rows = Results.at("run").sql("SELECT bill_usd FROM designs ORDER BY row").rows
    refused = run("report", "run:0", "run:1", "-o", "out")
    assert refused.code == 2
    assert "got different quotes: a.csv of run row 0, b.csv of run row 1" in refused.err
    assert "give one file to all by --prices" in refused.err
    flags = ("-o", "out", "--formats", "md", "--json", "--prices", "b.csv")
    designs = run("report", "run:0", "run:1", *flags).payload["designs"]
    assert [one["total_usd"] for one in designs] == [rows[1][0]] * 2
    assert rows[1][0] - rows[0][0] == pytest.approx(100 * (2048 + 41))
    in_python = lp.report(["run:0", "run:1"], "out", formats="md", prices="b.csv")
    assert [float(one.bill.total_usd) for one in in_python.comparison.candidates] == [
        rows[1][0]
    ] * 2
    with pytest.raises(SpecError, match="give one file to all by prices"):
        lp.report(["run:0", "run:1"], "out", formats="md")


FIXED = """\
base: plan.yaml
axes: {nic: [12.5, 25, 100]}
set:
  constraints: ["leaf == {nic} GB/s", "taper(spine) == 1"]
  fabric.realization: {port_speed: 400 Gbps}
columns: [step_time_s, cost_usd, bandwidth, bill_usd, bill_message]
"""


PLACED = (
    "Times hold for servers of a job next to each other (placement contiguous), thin tapers "
    "most of all"
)


def test_bills_beyond_what_is_asked_have_their_own_time(run, tmp_path) -> None:
    """Fixed ports of 400 Gbit/s: every row buys 50 GB/s, and its bill stands beside that time."""
    rows = _rows(run, tmp_path, FIXED)
    assert [row["bill_excess_percent"] for row in rows[:2]] == pytest.approx([300, 100])
    assert [row["bill_usd"] is None for row in rows] == [False, False, True]
    assert rows[0]["billed_step_time_s"] < rows[0]["step_time_s"]
    flags = ("-o", tmp_path / "out", "--json")
    [one] = run("report", f"{tmp_path}/run:0", *flags).payload["designs"]
    assert rows[0]["billed_step_time_s"] == one["billed_step_time_s"]
    short = run("sweep", "show", tmp_path / "run", "--pareto")
    assert short.err.startswith("Remarks: no bill in 1 of 3 rows; at random places of a job's ")
    assert "; bills buy more bandwidth than is " in short.err
    assert short.err.endswith(". --remarks says why, and what to do\n")
    assert len(short.err.splitlines()) == 1
    shown = run("sweep", "show", tmp_path / "run", "--pareto", "--remarks")
    assert shown.out == short.out
    assert "billed" in shown.out
    # Two prices stand side by side: neither is called cost alone.
    assert "Bill: all whole parts that are bought. Network cost: bandwidths" in shown.out
    assert "frontier of billed step time and bill" in shown.out
    assert "in 2 of 2 rows with a bill, at most 300 % more" in shown.err
    assert 'fabric.realization.port_speed: "{nic * 8} Gbps"' in shown.err
    assert "no bill: 1 of 3 rows: fabric.realization (dim2): got a leaf" in shown.err
    by_plan = run("sweep", "show", tmp_path / "run", "--pareto", "--by", "ideal", "--json")
    assert [row["row"] for row in by_plan.payload["rows"]] == [2, 1, 0]
    # Ports that follow the axis make bills of what is asked for.
    mended = FIXED.replace("400 Gbps", '"{nic * 8} Gbps"').replace(", 100]", "]")
    shutil.rmtree(tmp_path / "run")
    for row in _rows(run, tmp_path, mended):
        assert row["bill_excess_percent"] == 0
        assert row["billed_step_time_s"] == row["step_time_s"]
    said = run("sweep", "show", tmp_path / "run").err.splitlines()
    assert [line.partition(":")[0] for line in said] == [PLACED, "Remarks"]
    assert "bills buy" not in " ".join(said)


UNSOLD = """\
base: plan.yaml
axes: {nic: [50, 62.5, 87.5, 100]}
set:
  constraints: ["leaf == {nic} GB/s", "taper(spine) == 1"]
  fabric.realization.port_speed: "{nic * 8} Gbps"
columns: [step_time_s, bill_usd]
"""


def test_ports_that_nobody_sells_are_said(run, tmp_path) -> None:
    """Bills of 500, 700 and 800 Gbit/s pay for the same parts, and run as their plans say."""
    sold, half, seven, fast = _rows(run, tmp_path, UNSOLD)
    assert half["bill_usd"] == seven["bill_usd"] == fast["bill_usd"] > sold["bill_usd"]
    excess = [one["bill_excess_percent"] for one in (sold, half, seven, fast)]
    assert excess == pytest.approx([0, 60, 100 / 7, 0])
    assert seven["billed_step_time_s"] == seven["step_time_s"] > fast["billed_step_time_s"]
    text = (
        "nobody sells ports of 700 Gbit/s: dim2 leaf and dim3 spine pay for 800 Gbit/s and run "
        "at 700 Gbit/s"
    )
    assert [one["bill_note"] for one in (sold, seven, fast)] == [None, text, None]
    shown = run("sweep", "show", tmp_path / "run", "--remarks").err
    assert "2 of 4 bills, most often (1): nobody sells ports of 500 Gbit/s" in shown
    # A report, optimize and a plan with prices: bill say the same.
    own = tmp_path / "row.yaml"
    run("sweep", "design", tmp_path / "run", 2, "-o", own)
    flags = ("-o", tmp_path / "out", "--json")
    [one] = run("report", own, *flags).payload["designs"]
    assert one["bill_note"] == text
    assert f"The bill of A: {text}." in (tmp_path / "out" / "report.html").read_text()
    assert f"{text}. Give a port_speed" in " ".join(run("optimize", own).out.split())


def test_rows_without_a_price_have_no_figures_of_a_bill(run, tmp_path) -> None:
    """Nobody sells ports of 900 Gbit/s: no time on them is the least of the sweep."""
    sweep = UNSOLD.replace("87.5, 100", "112.5").replace("bill_usd]", "bill_usd, bill_message]")
    rows = _rows(run, tmp_path, sweep)
    assert "no price is known" in rows[2]["bill_message"]
    assert [row["bill_usd"] is None for row in rows] == [False, False, True]
    of_bills = [name for name in rows[2] if name.startswith("bill") and name != "bill_message"]
    assert {"billed_step_time_s", "billed_seconds_per_sequence", "bill_excess_percent"} <= {
        *of_bills
    }
    assert [rows[2][name] for name in of_bills] == [None] * len(of_bills)
    shown = run("sweep", "show", tmp_path / "run", "--remarks").err
    assert "asks for in 1 of 2 rows with a bill, at most 60 % more" in shown


def test_rows_without_a_bill_are_told_and_have_no_place_beside_the_best(run, tmp_path) -> None:
    """Columns name the bill and not its message; ports of 900 Gbit/s are the fastest, unsold."""
    rows = _rows(run, tmp_path, UNSOLD.replace("87.5, 100", "112.5"))
    assert min(rows, key=lambda row: row["step_time_s"]) is rows[2]
    assert "no price is known" in rows[2]["bill_message"]
    shown = run("sweep", "show", tmp_path / "run")
    assert "Best among the 2 rows with a bill: fastest" in shown.out
    assert "no bill in 1 of 3 rows" in shown.err
    assert "no bill: 1 of 3 rows: no price is known" in str(SweepResults.at(tmp_path / "run", None))


def test_a_run_without_messages_of_bills_counts_the_rows_without_one(run, tmp_path) -> None:
    """As runs of earlier versions are."""
    _rows(run, tmp_path, UNSOLD.replace("87.5, 100", "112.5"))
    results = Results.at(tmp_path / "run", None)
    del results.manifest["schema"]["bill_message"]
    assert any(
        line.startswith("1 of 3 rows have an optimum and no bill") for line in remarks(results)
    )


def test_only_parts_that_are_all_faster_are_beyond_the_ports() -> None:
    """A dimension carries what the slowest of its parts does."""
    parts = {name: Part(name, name, "", port_speed_Bps=100e9) for name in ("nic", "switch")}
    lines = [Line("network", f"dim2 leaf, {x}", parts[x], 1, speed_Bps=50e9) for x in parts]
    assert [one.sold_Bps for one in Bill(tuple(lines)).faster_parts] == [100e9]
    exact = replace(lines[0], part=replace(parts["nic"], port_speed_Bps=50e9))
    assert Bill((*lines[1:], exact)).faster_parts == Bill((exact, *lines[1:])).faster_parts == ()


def test_the_frontier_with_fim_is_of_bills(run, tmp_path) -> None:
    """NICs of 700 Gbit/s save in the plan's own cost alone: those of 800 beat them."""
    sweep = UNSOLD.replace("50, 62.5, ", "").replace("bill_usd]", "cost_usd, bill_usd]")
    rows = _rows(run, tmp_path, f"{sweep}check: {{policy: ecmp, seeds: 1}}\n")
    assert rows[0]["cost_usd"] < rows[1]["cost_usd"]
    assert rows[0]["bill_usd"] == rows[1]["bill_usd"]
    shown = run("sweep", "show", tmp_path / "run", "--pareto", "--fim", "--json")
    assert [row["row"] for row in shown.payload["rows"]] == [1]
    words = run("sweep", "show", tmp_path / "run", "--pareto", "--fim").out
    assert "frontier of effective step time, bill and FIM" in words
    linear = run("sweep", "show", tmp_path / "run", "--pareto", "--fim", "--by", "ideal", "--json")
    assert [row["row"] for row in linear.payload["rows"]] == [1, 0]


def test_links_of_another_speed_are_not_routed_again(tmp_path) -> None:
    """Ports of 800 Gbit/s after those of 700: the same figures as routed alone, to the bit."""
    shutil.copy(EXAMPLE, tmp_path / "plan.yaml")
    text = UNSOLD.replace("50, 62.5, ", "").replace(", bill_usd]", "]")
    (tmp_path / "sweep.yaml").write_text(f"{text}check: {{policy: ecmp, seeds: 1}}\n")
    sweep = load_sweep(tmp_path / "sweep.yaml")
    both, alone = Solver(job_of(sweep)), Solver(job_of(sweep))
    found = both.solved(chunk_between(sweep, 0, 2))
    assert both.n_routed == 1
    fast = alone.solved(chunk_between(sweep, 1, 2))
    assert alone.n_routed == 1
    for name in ("fim_percent", "fim_floor_percent", "effective_step_time_s"):
        assert getattr(found, name)[1] == getattr(fast, name)[0]


def test_a_part_is_read_without_threads(run, tmp_path) -> None:
    """A thread of Arrow's that still holds a file while Python ends aborts the process."""
    _rows(run, tmp_path, UNSOLD)
    code = (
        "import os, pathlib, sys, pyarrow.parquet\n"
        "from libra_planner.sweeps.store import table_of\n"
        "before = os.listdir('/proc/self/task')\n"
        "table_of(pathlib.Path(sys.argv[1]), ['row'])\n"
        "sys.exit(os.listdir('/proc/self/task') != before)\n"
    )
    part = tmp_path / "run" / "part-000000.parquet"
    assert subprocess.run([sys.executable, "-c", code, str(part)], check=False).returncode == 0


def test_degrees_that_divide_nothing_name_their_filter(run, tmp_path) -> None:
    """The filter that is named leaves just those rows out."""
    text = """\
base: 0e_rails_2to1
axes: {tp: [3, 8]}
set: {parallelism: {tp: "{tp}", pp: 4, dp: "{2048 / (4 * tp)}"}}
"""
    _rows(run, tmp_path, text)
    said = run("sweep", "show", tmp_path / "run", "--remarks").err
    named = "where: 2048 % (4 * tp) == 0"
    assert f"expected a whole number. To leave such rows out: {named}" in said
    shutil.rmtree(tmp_path / "run")
    [row] = _rows(run, tmp_path, f"{text}{named}\n")
    assert (row["tp"], row["status"]) == (8, "optimal")


NEAR = """\
base: 0e_rails_2to1
axes: {nic: [12.5, 25, 50], taper: {from: 1, to: 8, n: 7}}
set:
  constraints: ["leaf == {nic} GB/s", "taper(spine) == {taper}"]
  fabric.realization: {port_speed: "{nic * 8} Gbps"}
columns: [step_time_s, cost_usd, bill_usd]
"""


def test_the_cheapest_of_those_that_are_about_as_fast_is_named(run, tmp_path) -> None:
    """Against all rows, one by one; and the error of steps is said without its columns."""
    rows = _rows(run, tmp_path, NEAR)
    told = run("sweep", "show", tmp_path / "run", "--remarks")
    shown = told.err
    assert re.search(r"^Step times may be \d+ % shorter to \d+ % longer where runs", shown, re.M)
    assert "step_time_low_s" not in shown
    [line] = [
        line for line in told.out.splitlines() if line.startswith("Cheapest near the fastest:")
    ]
    least = min(row["billed_step_time_s"] for row in rows)
    for text, within in (("0.1 %", 1.001), ("1 %", 1.01)):
        near = [row for row in rows if row["billed_step_time_s"] <= within * least]
        best = min(near, key=lambda row: (row["bill_usd"], row["billed_step_time_s"]))
        values = f"(nic {best['nic']:.4g}, taper {best['taper']:.4g}; "
        assert f"within {text} row {best['row']} {values}" in line
    page = tmp_path / "page.html"
    run("sweep", "show", tmp_path / "run", "--html", page)
    products = [row["billed_step_time_s"] * row["bill_usd"] for row in rows]
    n = sum(one <= 1.001 * min(products) for one in products)
    [row] = re.findall(rf"Best per dollar: [^<(]*\(row (\d+), in a tie of {n} de", page.read_text())
    assert products[int(row)] == pytest.approx(min(products), rel=1e-9)
    assert line.split(" (")[0] in page.read_text()


def test_a_row_is_a_plan_only_of_the_files_of_its_run(run, tmp_path) -> None:
    """A workload that changed after the run would answer for another model."""
    book = tmp_path / "prices.yaml"
    shutil.copy(folder("cost-models") / "clos-2026.yaml", book)
    sweep = SWEEP.replace("set:", "set:\n  cost_model: ./prices.yaml")
    _rows(run, tmp_path, sweep)
    there = tmp_path / "row.yaml"
    assert run("sweep", "design", tmp_path / "run", 0, "-o", there).code == 0
    again = run("sweep", "design", tmp_path / "run", 0, "-o", there)
    assert (again.code, "add --force" in again.err) == (2, True)
    book.write_text(f"{book.read_text()}\n# changed\n")
    for refused in (
        run("sweep", "design", tmp_path / "run", 0, "-o", there, "--force"),
        run("report", f"{tmp_path}/run:0", "-o", tmp_path / "out"),
    ):
        assert refused.code == 2
        assert "got another prices.yaml than the sweep was run with" in refused.err


def test_of_equal_bills_the_first_row_is_the_best(run, tmp_path) -> None:
    """Rows of one NIC differ in the plan's own cost alone, the dearer one first: no bill moves."""
    priced = '  fixed_cost: "{npu_price * 2048} $"\ncolumns:'
    sweep = SWEEP.replace("taper: [1, 2, 4]", "npu_price: [40000, 30000]")
    sweep = sweep.replace("{taper}", "2").replace("columns:", priced)
    _rows(run, tmp_path, sweep)
    for asked, rows in (((), [0, 1, 2, 3]), (("--pareto",), [0])):
        shown = run("sweep", "show", tmp_path / "run", *asked, "--json")
        assert [row["row"] for row in shown.payload["rows"]] == rows
    page = tmp_path / "page.html"
    assert run("sweep", "show", tmp_path / "run", "--html", page).code == 0
    assert re.search(
        r"Best per dollar: nic \d+ \(row \d, in a tie of \d designs within 0.1%\)\.<",
        page.read_text(),
    )
    said = run("sweep", "show", tmp_path / "run", "--remarks").err
    assert "4 rows are within 0.1% of the best billed step time: rows 0, 1, 2" in said
    assert "Axis npu_price changes the plan's cost and no bill" in said
    again = run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run")
    assert said in again.err  # One measure of both.


def test_only_an_axis_of_prices_is_told_to_be_quoted(run, tmp_path) -> None:
    """A bandwidth that ends at the same whole ports changes no price."""
    sweep = SWEEP.replace("nic: [25, 50]", "nic: [48, 50]").replace("[1, 2, 4]", "[2]")
    _rows(run, tmp_path, sweep)
    found = Results.at(tmp_path / "run", by=None)
    rows = found.sql("SELECT count(DISTINCT cost_usd), count(DISTINCT bill_usd) FROM designs").rows
    assert rows == ((2, 1),)
    assert not [text for text in remarks(found) if "no bill" in text]


SHAPES = """\
base: 0e_rails_2to1
axes:
  shape:
    topologies: ["SW(8)_[SW(8)_SW(8)]", "SW(8)_[SW(32)_SW(2)]"]
    tiers: [node, leaf, spine]
  nic: [25, 50]
set:
  fabric.topology: "{shape}"
  parallelism: {tp: 8, pp: 2, dp: 32, zero: 1}
  global_batch: 512
  fidelity: ideal
  constraints: ["leaf == {nic} GB/s", "taper(spine) == 2"]
columns: [step_time_s, cost_usd]
"""


def test_linear_costs_say_that_bills_decide_between_equal_rows(run, tmp_path) -> None:
    """The bills that are named are those of the same sweep with bills, bandwidths kept or not."""
    for columns in ("[step_time_s, cost_usd]", "[step_time_s, cost_usd, bandwidth]"):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        _rows(run, tmp_path, SHAPES.replace("[step_time_s, cost_usd]", columns))
        shown = run("sweep", "show", tmp_path / "run", "--remarks")
        assert "Costs are linear, and bills of whole parts may order rows otherwise: " in shown.err
        assert "write columns: [..., bill_usd]" in shown.err
        named = re.search(
            r"fastest row (\d) \([^()]*; row (\d) is equal in time and linear cost: "
            r"row \2 has the least bill, (\$\S+)\)",
            shown.out,
        )
        assert named is not None, shown.out
    page = tmp_path / "page.html"
    assert run("sweep", "show", tmp_path / "run", "--html", page).code == 0
    assert f"Row {named[1]}; row {named[2]} is equal in time and linear" in page.read_text()
    assert "bills of whole parts may order rows otherwise" in page.read_text()
    shutil.rmtree(tmp_path / "run")
    rows = _rows(run, tmp_path, SHAPES.replace("cost_usd]", "cost_usd, bill_usd]"))
    own, other = (rows[int(named[k])] for k in (1, 2))
    assert other["bill_usd"] < own["bill_usd"]
    assert named[3] == format_usd(other["bill_usd"])
    shown = run("sweep", "show", tmp_path / "run", "--remarks")
    assert "Costs are linear" not in shown.err
    assert "is equal in" not in shown.out


def test_an_axis_that_changes_nothing_is_said_and_fills_no_list(run, tmp_path) -> None:
    """One of its rows stands for all; an axis that moves bills is not such a one."""
    _rows(run, tmp_path, SHAPES)
    shown = run("sweep", "show", tmp_path / "run", "--remarks")
    assert "Axis shape changes neither the step time nor the linear cost\n" in shown.err
    assert "(step time), each with 1 equal row of other shape" in shown.out
    top = run("sweep", "show", tmp_path / "run", "--top", "5", "--json").payload["rows"]
    assert sorted(row["nic"] for row in top) == [25, 25, 50, 50]  # Programs have all of them.
    shutil.rmtree(tmp_path / "run")
    _rows(run, tmp_path, SHAPES.replace("cost_usd]", "cost_usd, bill_usd]"))
    shown = run("sweep", "show", tmp_path / "run", "--remarks")
    assert "changes neither" not in shown.err
    assert "equal row" not in shown.out
    top = run("sweep", "show", tmp_path / "run", "--top", "5", "--json").payload["rows"]
    assert len(top) == 4


def test_equal_rows_that_cannot_be_built_are_told_apart(run, tmp_path) -> None:
    """A plane of 128 leaves is more than spines join: such a row has no bill, alone or beside."""
    whole = ["set: {constraints: ['leaf == {nic} GB/s', 'taper(spine) == 2']", "fidelity: ideal"]
    text = f"base: 0e_rails_2to1\naxes: {{nic: [25]}}\n{', '.join(whole)}}}\n"
    wide = text.replace("}\n", "}\n", 1).replace("set: {", 'set: {fabric.topology: "{shape}", ')
    shapes = 'shape: {topologies: ["SW(8)_[SW(16)_SW(16)]"], tiers: [node, leaf, spine]}, nic'
    _rows(run, tmp_path, wide.replace("nic:", f"{shapes}:", 1))
    assert "bill_usd" not in run("sweep", "show", tmp_path / "run", "--remarks").err
    shutil.rmtree(tmp_path / "run")
    both = shapes.replace('"]', '", "SW(8)_[SW(32)_SW(8)]"]')
    _rows(run, tmp_path, wide.replace("nic:", f"{both}:", 1))
    shown = run("sweep", "show", tmp_path / "run", "--remarks")
    assert "columns: [..., bill_usd]" in shown.err
    assert re.search(r"row 1 has the least bill, \$\S+, no bill for row 0\)", shown.out)


def test_of_rows_that_are_equal_by_the_plan_the_cheapest_bill_is_named(run, tmp_path) -> None:
    """The first shape, of small leaves, is dearer to buy."""
    text = SHAPES.replace("cost_usd]", "cost_usd, bill_usd]")
    rows = _rows(run, tmp_path, text)
    bills = {row["row"]: row["bill_usd"] for row in rows if row["nic"] == 50}
    least = min(bills, key=bills.__getitem__)
    assert least > min(bills)
    found = Results.at(tmp_path / "run", by="ideal")
    assert next(iter(best_rows(found))) == found.top(1).rows[0][0] == least


UNBUILT = """\
base: 0e_rails_2to1
axes: {radix: [16, 64, 128], wiring: [top_of_rack, rail], nic: [25, 50, 100]}
set:
  constraints: ["leaf == {nic} GB/s", "taper(spine) == 2", "cost <= 82 M$"]
  fabric.realization: {port_speed: "{nic * 8} Gbps", switch_radix: "{radix}", wiring: "{wiring}"}
where: nic < 100 or radix == 16
columns: [step_time_s, cost_usd, bandwidth, bill_usd]
objective: performance
"""


def test_rows_that_nobody_can_buy_come_behind_equal_ones_in_every_view(run, tmp_path) -> None:
    """Small leaves have no bill, those of 128 cost more; bills at 50 GB/s break the rule."""
    text = UNBUILT.replace(', "cost <= 82 M$"', ', "cost <= {82 if nic == 50 else 99} M$"')
    rows = _rows(run, tmp_path, text)
    of_50 = [row for row in rows if row["nic"] == 50]
    assert [row["bill_usd"] is None for row in of_50] == [True, True, True, False, True, False]
    bought = [row["row"] for row in of_50 if row["bill_usd"] is not None]
    assert all(row["bill_over_rule_usd"] > 0 for row in of_50 if row["row"] in bought)
    found = Results.at(tmp_path / "run", "ideal", ["nic <= 50"])
    named = min(bought, key=lambda row: rows[row]["bill_usd"])
    assert [row for row, *_ in found.top(6).rows] == [
        *sorted(bought, key=lambda row: rows[row]["bill_usd"]),
        *(row["row"] for row in of_50 if row["row"] not in bought),
    ]
    assert next(iter(best_rows(found))) == named
    assert found.pareto().dicts()[0]["row"] == found.grouped("nic").dicts()[1]["best_row"] == named
    few = found.listed(["row", "step_time_s", "cost_usd", "nic"], among=found.everything())
    points = Points.of(found, few)
    assert [points.rows[front[0]]["row"] for front in points.fronts.values()] == [named]
    whole = ("sweep", "show", tmp_path / "run", "--by", "ideal")
    shown = run(*whole, "--where", "nic <= 50").out
    assert "5 more are equal, 4 with no bill, 1 with a bill that breaks its rule on cost)" in shown
    assert "5 more are equal, 4 with no bill)" in shown
    assert f"{named} " in shown
    # The fastest of all has no equal with a bill: that is said in its place.
    assert "it has no bill; row 5 is equal, with no bill)" in run(*whole).out
    run(*whole, "--where", "nic <= 50", "--html", tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert f"Row {named}; 5 more are equal, 4 with no bill, 1 with a bill that breaks" in page
    assert "wiring rail" in page  # The cards name the wiring that can be built.


def test_every_card_of_a_page_has_its_rows_and_broken_rules(run, tmp_path) -> None:
    """Of two models, of groups, and of one model: what the lines of the command say."""
    text = UNBUILT.replace("82 M$", "{75 if nic == 25 else 81} M$").replace("[16, 64, 128]", "[64]")
    text = text.replace("where: nic < 100 or radix == 16\n", "").replace(", 100]", "]")
    models = "axes: {workload: [llama3-70b, llama3-8b], "
    degrees = "set:\n  parallelism: {tp: 4, cp: 2, pp: 4, dp: 64}"
    two = text.replace("axes: {", models).replace("set:", degrees)
    rows = _rows(run, tmp_path, two)
    bought = [row["row"] for row in rows if row["bill_usd"] is not None]
    assert all(row["bill_over_rule_usd"] > 0 for row in rows if row["row"] in bought)
    broken = "Its bill breaks its rule on cost. "
    for more in ((), ("--group-by", "nic")):
        run("sweep", "show", tmp_path / "run", *more, "--html", tmp_path / "out.html")
        page = (tmp_path / "out.html").read_text()
        for cheap, fast in (bought[:2], bought[2:]):
            assert (
                f"Row {cheap}. {broken}Fastest among the 4 rows with a bill: row {fast}, " in page
            )
        assert page.count(", its bill breaks its rule on cost. Cheapest: the same.") == 2
    shutil.rmtree(tmp_path / "run")
    _rows(run, tmp_path, text)
    run("sweep", "show", tmp_path / "run", "--group-by", "nic", "--html", tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert "nic 25 (row 2, its bill breaks its rule on cost)." in page
    assert f"Row 2. {broken}" in page
    assert f"Row 3. {broken}" in page


def test_two_objectives_of_one_design_are_equal_in_their_bills(run, tmp_path) -> None:
    """Rules fix its bandwidths: the rows are the same purchase."""
    text = SHAPES.replace('"SW(8)_[SW(8)_SW(8)]", ', "")
    _rows(run, tmp_path, f"{text}objective: [performance, performance_per_cost]\n")
    shown = run("sweep", "show", tmp_path / "run")
    assert re.search(r"row \d is equal in time, linear cost and bill\)", shown.out)


SERVERS = """\
base: plan.yaml
axes: {node: [100, 450, 900]}
set: {constraints: ["node == {node} GB/s", "leaf == 50 GB/s", "spine == 25 GB/s"]}
columns: [step_time_s, cost_usd, bandwidth, bill_usd]
"""


def test_servers_with_other_links_than_the_priced_one_are_said(run, tmp_path) -> None:
    """The words of the report stand in the row, the remark has their number, the best is marked."""
    plan = re.sub("  scale_up: .*\n", "", EXAMPLE.read_text())
    (tmp_path / "own.yaml").write_text(plan)
    rows = _rows(run, tmp_path, SERVERS.replace("plan.yaml", "own.yaml"))
    assert [row["bill_over_server_GBps"] for row in rows] == [None, None, pytest.approx(450)]
    assert "asks for 100.00 GB/s: its times are at what it asks for" in rows[0]["bill_note"]
    assert not rows[1]["bill_note"]
    assert "carry 900.00 GB/s" in rows[2]["bill_note"]
    shown = run("sweep", "show", tmp_path / "run", "--remarks")
    assert "1 of 3 rows ask for more than the priced server has, such as row 2: links" in shown.err
    assert "1 of 3 rows ask for less than the priced server has, such as row 0: the" in shown.err
    words = "Best among the 2 rows with a bill of servers that are sold: fastest, best per dollar"
    assert f"{words} and cheapest row 1 (" in shown.out
    assert Results.at(tmp_path / "run", by=None).pareto().rows[0][0] == 1
    page = run("sweep", "show", tmp_path / "run", "--html", tmp_path / "page.html")
    assert page.code == 0
    for row in (rows[0], rows[2]):
        report = run("report", f"{tmp_path}/run:{row['row']}", "-o", tmp_path / "out")
        assert row["bill_note"] in report.out.replace("\n", " ")


def test_pictures_say_which_designs_nobody_sells(run, tmp_path) -> None:
    """The page as the terminal does, figures and groups with the reason, by any columns."""
    (tmp_path / "own.yaml").write_text(re.sub("  scale_up: .*\n", "", EXAMPLE.read_text()))
    _rows(run, tmp_path, SERVERS.replace("plan.yaml", "own.yaml"))
    show, page, figure = (
        ("sweep", "show", tmp_path / "run"),
        tmp_path / "p.html",
        tmp_path / "f.svg",
    )
    columns = "--columns", "node,bill_usd,billed_seconds_per_sequence"
    for more in ((), columns):
        run(*show, "--html", page, "--plot", figure, *more)
        text = page.read_text()
        data = re.search('<script id="data" type="application/json">(.*?)</script>', text, re.S)
        assert json.loads(data[1])["unsold"] == [2]
        cards = text[: text.index("<details")]
        assert "among the 2 rows with a bill of servers that are sold" in cards
        assert "x: no such server is priced, no rank" in figure.read_text()
    run(*show, "--plot", figure, "--x", "node")
    assert "Left out: 1 of 3 designs: no such server is priced" in figure.read_text()
    words = (
        "Groups without a best row hold 1 optimal design without a rank: no such server is priced"
    )
    assert words in run(*show, "--group-by", "node").out


def test_work_per_dollar_is_not_of_a_server_that_nobody_sells(run, tmp_path) -> None:
    """The time at 900 GB/s over the bill of a server with 450 is a figure of no design."""
    text = """\
base:
  workload: llama3-8b
  parallelism: {tp: 4, pp: 2, dp: 64}
  global_batch: 512
  npu: h100-sxm
  fabric: {topology: "SW(8)_SW(64)", tiers: [node, leaf]}
  cost_model: clos-2026
  fixed_cost: {npu: h100-sxm, per_npu: 6 k$}
  constraints: ["node == {node} GB/s", "leaf == 50 GB/s"]
axes: {node: [100, 450, 900]}
columns: [step_time_s, cost_usd, bandwidth, bill_usd, tokens_per_s_per_MUSD]
"""
    rows = _rows(run, tmp_path, text)
    assert [row["tokens_per_s_per_MUSD"] is None for row in rows] == [False, False, True]


def test_servers_that_nobody_sells_are_said_without_bills(run, tmp_path) -> None:
    plan = re.sub("  scale_up: .*\n", "", EXAMPLE.read_text())
    (tmp_path / "own.yaml").write_text(plan)
    text = SERVERS.replace("plan.yaml", "own.yaml").replace(", bill_usd]", ", notes]")
    _rows(run, tmp_path, text)
    said = run("sweep", "show", tmp_path / "run", "--remarks").err
    asks = (
        "1 of 3 rows asks between the NPUs of a server for more than the 450.00 GB/s of the server"
    )
    assert f"{asks} of h100-sxm (nvlink4-8), the" in said, said[:400]
    assert re.search(r"fastest \(row 2\).* among them: nobody sells", said), said[:400]
