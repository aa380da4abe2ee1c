"""What rows of sweeps say of money and work, and how to ask for some of them."""

from __future__ import annotations

import copy
import html
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.errors import SpecError
from libra_planner.sweeps import solver
from libra_planner.sweeps.figures.typed import TypedTable

EXAMPLE = Path(__file__).parents[2] / "examples" / "08_rails.yaml"
QUOTED = """\
base: plan.yaml
axes: {nic: [25, 50], quotes: [low.csv, high.csv]}
set:
  constraints: ["leaf == {nic} GB/s", "taper(spine) == 2"]
columns: [step_time_s, cost_usd]
"""
UNUSED = (
    "uotes that the linear prices do not use, but a bill of parts may: nic-400g. cost_usd, rules on "
    "cost and optima where cost counts are without them. To count them write prices: bill under set"
)
TYPED = TypedTable(
    ["#", "tp", "cp", "tokens/s", "step", "cost", "recompute", "GB", "MFU"],
    [
        ["1", "8", "1", "7,965,942", "4.212 s", "$23.88M", "none", "85.2 ?", "32.9%"],
        ["=2", "16", "8", "790.5", "969.500 ms", "$2.10M", "full", "70.1", "29.0%"],
        ["=3", "4", "8", "-", "1.000 s", "$998.0k", "none", "70.1", ""],
    ],
    ["", "", "", "", "step_time_s", "", "", "", ""],
)


@pytest.fixture
def swept(run: Any, tmp_path: Path) -> Callable[[str], Path]:
    """Run a sweep over a plan with quotes beside it; its directory."""
    shutil.copy(EXAMPLE, tmp_path / "plan.yaml")
    for name, usd in (("low", 1200), ("high", 2000)):
        text = f"item,price,seller,date\nnic-400g,{usd},Acme,2026-11-02\n"
        (tmp_path / f"{name}.csv").write_text(text)

    def there(text: str) -> Path:
        (tmp_path / "sweep.yaml").write_text(text)
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        done = run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run")
        assert done.code == 0, done.err
        return tmp_path / "run"

    return there


def test_quotes_that_linear_prices_do_not_use_are_said(run, tmp_path, swept) -> None:
    """Once by `plan`, `run`, `show --remarks`, the page and Python, in the words of `optimize`."""
    there, file = swept(QUOTED), tmp_path / "sweep.yaml"
    planned = run("sweep", "plan", file).err
    assert " ".join(planned.split()).count(f"Note: q{UNUSED}") == 1
    assert run("sweep", "plan", file, "--json").payload["notes"] == [f"q{UNUSED}"]
    assert f"Note: q{UNUSED}" in str(lp.sweep_plan(file))
    assert run("sweep", "run", file, "-o", there).err.count(f"Q{UNUSED}") == 1
    assert run("sweep", "show", there, "--remarks").err.count(f"Q{UNUSED}") == 1
    lp.sweep_results(there).to_html(tmp_path / "page.html")
    assert f"Q{UNUSED}" in (tmp_path / "page.html").read_text()
    run("sweep", "design", there, 0, "-o", tmp_path / "row.yaml")
    note = UNUSED.split(". cost_usd", maxsplit=1)[0]
    assert f"q{note}" in run("optimize", tmp_path / "row.yaml", "--json").payload["notes"]
    # Files that have changed since are of no row: nothing is said of them.
    (tmp_path / "low.csv").unlink()
    assert UNUSED not in run("sweep", "show", there, "--remarks").err


def test_quotes_that_a_row_uses_are_not_said(run, swept, tmp_path) -> None:
    """A quote of a tier counts in linear prices."""
    tier = "item,price,unit,seller,date\nleaf.nic,28,per GB/s,Acme,2026-11-02\n"
    for name in ("low", "high"):
        (tmp_path / f"{name}.csv").write_text(tier)
    assert "linear prices do not use" not in run("sweep", "show", swept(QUOTED), "--remarks").err


BUDGETS = """\
base: plan.yaml
axes: {budget: [75, 90]}
set:
  constraints: ["leaf <= 50 GB/s", "taper(spine) == 2", "budget"]
  fixed_cost: {per_npu: "32 k$"}
columns: [step_time_s, cost_usd, bill_usd, bill_fabric_usd]
"""


@pytest.mark.parametrize(
    ("rule", "fixed", "n_over", "name"),
    [
        ("cost <= {budget} M$", True, 1, "bill_usd"),
        ("0 M$ >= 2 * cost - {budget * 2} M$", True, 1, "bill_usd"),
        ("cost <= {budget - 65} M$", False, 1, "bill_fabric_usd"),
        ("cost >= 70 M$", True, 0, "bill_usd"),
    ],
)
def test_bills_beyond_a_rule_on_cost_are_said(run, swept, rule, fixed, n_over, name) -> None:
    """Of the system, or of the network where the plan has no fixed cost."""
    text = BUDGETS.replace('"budget"', f'"{rule}"')
    if not fixed:
        text = text.replace('  fixed_cost: {per_npu: "32 k$"}\n', "")
    there = swept(
        text
        if "{budget" in rule
        else text.replace("budget: [75, 90]", "npu.name: [h100-sxm, h200-sxm]")
    )
    rows = lp.sweep_results(there).sql("SELECT * FROM designs ORDER BY row").dicts()
    less = 0 if fixed else 65
    for row in rows if n_over else ():
        assert row["bill_over_rule_usd"] == pytest.approx(row[name] - 1e6 * (row["budget"] - less))
    over = [row["row"] for row in rows if (row["bill_over_rule_usd"] or 0) > 0]
    assert len(over) == n_over
    shown = run("sweep", "show", there, "--remarks")
    by = "their bill" if fixed else "the training fabric of their bill"
    said = f"1 of 2 rows cost more by {by} than their rule cost <= allows"
    assert (said in shown.err) is bool(n_over)
    assert ("bounds linear prices; to bound the bill write prices: bill" in shown.err) is bool(over)
    # No such row is the cheapest without that word.
    best = next(line for line in shown.out.splitlines() if line.startswith("Best"))
    assert ("its bill breaks its rule on cost" in best) is bool(over)


TIED = """\
base: 0e_rails_2to1
axes: {cap: [74, 80], taper: [2, 4]}
set: {constraints: ["leaf == 25 GB/s", "taper(spine) == {taper}", "cost <= {cap} M$"]}
columns: [step_time_s, cost_usd, bill_usd]
where: not (cap == 74 and taper == 2)
"""


def test_of_equal_designs_the_one_that_keeps_its_rule_is_the_best(run, tmp_path) -> None:
    """Rows 0 and 2 are the same design; its bill is within the second cap alone."""
    (tmp_path / "tied.yaml").write_text(TIED)
    there = tmp_path / "run"
    ran = run("sweep", "run", tmp_path / "tied.yaml", "-o", there)
    assert re.search(
        r"cheapest row 2 \([^()]*; row 0 is equal, with a bill that breaks its rule on cost\)",
        ran.out,
    )
    assert "its bill breaks" not in ran.out
    first, other = run("sweep", "show", there, "--group-by", "cap", "--json").payload["rows"]
    rows = lp.sweep_results(there).to_frame()
    assert first["best_bill_over_rule_usd"] == pytest.approx(first["best_bill_usd"] - 74e6)
    assert other["best_bill_over_rule_usd"] < 0
    # The best row is the fastest: another one has the least bill.
    assert (other["best_bill_usd"], other["least_bill_usd"]) == (rows.bill_usd[1], rows.bill_usd[2])
    assert other["least_bill_usd"] < other["best_bill_usd"]
    shown = run("sweep", "show", there, "--group-by", "cap").out
    assert " its bill  breaks its rule by  least bill" in shown
    assert f"${(rows.bill_usd[0] - 74e6) / 1e3:.2f}k" in shown


BOTH = """\
base: 0e_rails_2to1
axes: {objective: [performance, performance_per_cost], taper: [1, 4]}
set: {constraints: ["leaf <= 50 GB/s", "taper(spine) == {taper}"]}
columns: [step_time_s, cost_usd, tokens_per_s]
"""


def test_tokens_at_the_billed_time_divide_by_the_bill(run, tmp_path) -> None:
    """As work per dollar does; ``tokens_per_s`` is at the bandwidth that is asked for."""
    text = BOTH.replace("tokens_per_s]", "tokens_per_s, tokens_per_s_per_MUSD, bill_usd]")
    (tmp_path / "paid.yaml").write_text(f"{text}".replace("performance, ", ""))
    assert run("sweep", "run", tmp_path / "paid.yaml", "-o", tmp_path / "run").code == 0
    query = (
        "SELECT billed_tokens_per_s * billed_step_time_s / (tokens_per_s * step_time_s) AS one, "
        "billed_tokens_per_s / bill_usd * 1e6 / tokens_per_s_per_MUSD AS other FROM designs"
    )
    there = ("sweep", "show", tmp_path / "run")
    rows = run(*there, "--sql", query, "--json").payload["rows"]
    assert [*rows[0].values()] == pytest.approx([1, 1])
    assert re.search(r" billed tok/s +billed tok/s/M\$ ", run(*there, "--top", "2").out)
    grouped = run(*there, "--group-by", "taper").out
    assert " its billed tok/s/M$ " in grouped
    assert " its tok/s/M$ " in run(*there, "--by", "ideal", "--group-by", "taper").out


def test_titles_say_that_rows_of_an_objective_rank_by_time_and_cost(run, tmp_path) -> None:
    """The first row of ``performance_per_cost`` is seldom the fastest; its work per dollar shows."""
    (tmp_path / "both.yaml").write_text(BOTH)
    there = tmp_path / "run"
    assert run("sweep", "run", tmp_path / "both.yaml", "-o", there).code == 0
    top = run("sweep", "show", there, "--top", "1").out
    assert "(step time; performance_per_cost: step time x system cost)" in top
    own = ("sweep", "show", there, "--where", "objective == 'performance_per_cost'")
    assert "(step time x system cost)" in run(*own, "--top", "1").out
    assert "(step time)" in run(*own[:-1], "objective == 'performance'", "--top", "1").out
    grouped = run(*own, "--group-by", "objective", "--json").payload["rows"]
    rows = lp.sweep_results(there).to_frame()
    [best] = [rows.iloc[one["best_row"]] for one in grouped]
    assert grouped[0]["best_tokens_per_s_per_MUSD"] == pytest.approx(
        best.tokens_per_s / best.cost_usd * 1e6
    )
    assert "objective by step time x system cost" in run(*own, "--group-by", "taper").out
    assert " its tok/s/M$ " in run(*own, "--group-by", "taper").out


def test_the_best_of_rows_without_any_bill_says_what_ranks_them(run, tmp_path) -> None:
    text = TIED.replace("[74, 80]", "[90]").replace("25 GB/s", "200 GB/s").replace("90", "900")
    text = text.replace("set: {", 'set: {fabric.realization.port_speed: "1600 Gbps", ')
    (tmp_path / "unsold.yaml").write_text(text)
    ran = run("sweep", "run", tmp_path / "unsold.yaml", "-o", tmp_path / "run")
    assert "Best (linear system cost; no row has a bill): fastest row" in ran.out
    head = run("sweep", "show", tmp_path / "run").out.splitlines()
    assert not any("bill " in line for line in head if not line.startswith("Best"))


def test_a_card_of_the_page_says_that_a_bill_breaks_its_rule(run, swept, tmp_path) -> None:
    there = swept(BUDGETS.replace('"budget"', '"cost <= {budget} M$"'))
    run("sweep", "show", there, "--html", tmp_path / "page.html")
    assert "Row 0. Its bill breaks its rule on cost." in (tmp_path / "page.html").read_text()
    # A plan at the prices of its bill keeps its rule.
    bill = BUDGETS.replace('"budget"', '"cost <= {budget} M$"').replace(
        '  fixed_cost: {per_npu: "32 k$"}\n',
        "  prices: bill\n  fabric.bill_options: {nics: [1 x 400 Gbps]}\n",
    )
    rows = lp.sweep_results(swept(bill.replace("[75, 90]", "[100]"))).sql("SELECT * FROM designs")
    assert rows.dicts()[0]["bill_over_rule_usd"] <= 0


MODELS = """\
base: 0e_rails_2to1
axes: {workload: [llama3-70b, llama3-8b], taper: [1, 2]}
set:
  constraints: ["leaf == 50 GB/s", "taper(spine) == {taper}"]
  parallelism: {tp: 4, cp: 2, pp: 4, dp: 64}
columns: [step_time_s, cost_usd, COLUMNS]
"""
WORK = "communication_s, tokens_per_s_per_MUSD, effective_tokens_per_s_per_MUSD"


def test_rows_have_the_work_per_second_of_optimize(run, swept, tmp_path) -> None:
    """Models vary: tokens/s and MFU come by themselves, and are shown."""
    there = swept(MODELS.replace("COLUMNS", WORK))
    rows = lp.sweep_results(there).to_frame().to_dict("records")
    assert [row["status"] for row in rows] == ["optimal"] * 4
    for row in rows[::3]:
        run("sweep", "design", there, row["row"], "-o", tmp_path / "row.yaml", "--force")
        best = lp.load_plan(tmp_path / "row.yaml").optimize()
        assert row["tokens_per_s"] == pytest.approx(best.tokens_per_s, rel=1e-12)
        assert row["mfu_percent"] == pytest.approx(100 * best.mfu, rel=1e-12)
        assert row["communication_s"] == pytest.approx(best.communication_s, rel=1e-9)
        per_dollar = best.tokens_per_s / best.cost_usd * 1e6
        assert row["tokens_per_s_per_MUSD"] == pytest.approx(per_dollar, rel=1e-12)
        assert row["effective_tokens_per_s_per_MUSD"] != row["tokens_per_s_per_MUSD"]
    shown = run("sweep", "show", there, "--pareto").out
    assert "tokens/s" in shown
    assert "MFU %" in shown


def test_work_per_dollar_is_of_the_bill_where_a_sweep_has_bills(run, swept) -> None:
    """And on links of what is bought; one model has tokens/s only where it is asked for."""
    one = MODELS.replace("[llama3-70b, llama3-8b]", "[llama3-70b]").replace("[1, 2]", "[2]")
    text = one.replace("COLUMNS", f"bill_usd, {WORK}") + "check: {policy: ecmp, seeds: 1}\n"
    [row] = lp.sweep_results(swept(text)).everything().dicts()
    assert "tokens_per_s" not in row
    tokens = 1024 * 8192 / row["bill_usd"] * 1e6
    assert row["tokens_per_s_per_MUSD"] == pytest.approx(tokens / row["billed_step_time_s"])
    per_effective = tokens / row["effective_step_time_s"]
    assert row["effective_tokens_per_s_per_MUSD"] == pytest.approx(per_effective)
    asked = one.replace("COLUMNS", "tokens_per_s, mfu_percent")
    [row] = lp.sweep_results(swept(asked)).everything().dicts()
    assert row["tokens_per_s"] * row["step_time_s"] == pytest.approx(1024 * 8192)


def test_steps_that_are_no_whole_model_have_no_tokens(swept) -> None:
    text = QUOTED.replace("cost_usd]", "tokens_per_s, mfu_percent, communication_s]")
    for row in lp.sweep_results(swept(text)).everything().dicts():
        assert (row["tokens_per_s"], row["mfu_percent"]) == (None, None)
        assert 0 < row["communication_s"] < row["step_time_s"]


NICS = """\
base: plan.yaml
axes: {nic: [25, 50], taper: [1, 2, 4]}
set:
  constraints: ["leaf == {nic} GB/s", "taper(spine) == {taper}"]
  fabric.realization.port_speed: "{nic * 8} Gbps"
columns: [step_time_s, cost_usd, bill_usd, message]
"""


def test_designs_are_filtered_sorted_and_picked(run, swept, tmp_path) -> None:
    """In the language of `where` of a sweep; figures with units, as usual."""
    there = swept(NICS)
    every = lp.sweep_results(there).everything().dicts()
    fast = sorted((row for row in every if row["nic"] >= 50), key=lambda row: row["bill_usd"])
    asked = ("--where", "nic >= 50", "--sort", "bill_usd", "--columns", "nic,taper,bill_usd")
    wanted = [{name: row[name] for name in ("nic", "taper", "bill_usd")} for row in fast]
    assert run("sweep", "show", there, *asked, "--json").payload["rows"] == wanted
    lines = run("sweep", "show", there, *asked).out.splitlines()
    assert lines[0] == "sweep, 3 designs where nic >= 50"
    assert lines[2].split() == ["GB/s", "taper", "bill"]
    bills = [f"${row['bill_usd'] / 1e6:.2f}M" for row in fast]
    assert [line.split() for line in lines[3:6]] == [
        ["50", f"{row['taper']:g}", bill] for row, bill in zip(fast, bills, strict=True)
    ]
    csv = run("sweep", "show", there, *asked, "--csv", "-").out.splitlines()
    assert csv[0] == "nic,taper,bill_usd"
    assert len(csv) == 4
    down = run("sweep", "show", there, "--sort", "bill_usd desc, row", "--columns", "row", "--json")
    dearest = sorted(every, key=lambda row: (-row["bill_usd"], row["row"]))
    assert down.payload["rows"] == [{"row": row["row"]} for row in dearest]
    run("sweep", "show", there, "--where", "nic >= 50", "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "3 designs over taper (3 values, 1 to 4) where nic &gt;= 50" in page


def test_what_is_best_is_of_the_designs_that_are_asked_for(run, swept) -> None:
    """Frontier, best lines, remarks and SQL leave the other rows out; filters add up."""
    there = swept(NICS)
    flags = ("--where", "taper >= 2", "--where", "nic < 50")
    assert [
        row["row"]
        for row in run("sweep", "show", there, *flags, "--pareto", "--json").payload["rows"]
    ] == [2]  # As fast as row 1, and cheaper.
    query = "SELECT count(*) AS n FROM designs"
    assert run("sweep", "show", there, *flags, "--sql", query, "--json").payload["rows"] == [
        {"n": 2}
    ]
    best = run("sweep", "show", there, *flags).out
    assert "Best: fastest, best per dollar and cheapest row 2 (" in best
    # A design without a value meets no filter on it, whatever the filter.
    assert run("sweep", "show", there, "--where", "message != 'x'").err == "no designs\n"
    assert run("sweep", "show", there, "--where", "nic / (taper - 2) > 0", "--json", "--columns",
               "taper").payload["rows"] == [{"taper": 4}] * 2  # fmt: skip
    text = run("sweep", "show", there, "--where", "status == 'optimal' and unique", "--json")
    assert text.code == 2  # The sweep did not keep that column.
    assert "write columns" not in text.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--where", "nik >= 50"), "--where: got the name 'nik' in 'nik >= 50', expected a column; did you mean nic?"),
        (("--where", "nic"), "--where: got 'nic', a number, expected a comparison"),
        (("--where", "nic >="), "--where: got 'nic >=' (invalid syntax)"),
        (("--where", "2 > 1"), "--where: got '2 > 1', expected a column in it"),
        (("--sort", "bill_us"), "--sort: got no column 'bill_us', expected one of the results; did you mean bill_usd?"),
        (("--sort", "bill_usd down"), "--sort: got 'bill_usd down', expected NAME, or NAME desc"),
        (("--columns", "row,tapr"), "--columns: got no column 'tapr', expected one of the results; did you mean taper?"),
        (("--columns", "mfu_percent"), "write columns: [..., mfu_percent] in the sweep"),
        (("--sort", "row", "--group-by", "nic"), "--sort: got --sort with --group-by, expected one of them"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_of_designs_is_refused(run, swept, flags, said) -> None:
    done = run("sweep", "show", swept(NICS.replace(", bill_usd", ", bill_usd")), *flags)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_frames_of_some_rows(swept) -> None:
    results = lp.sweep_results(swept(NICS))
    every = results.to_frame()
    for key in ("pareto", "top"):
        assert [*results.to_frame(key).columns] == [*every.columns]
    assert results.to_frame("pareto")["row"].tolist() == [
        row["row"] for row in results.pareto().dicts()
    ]
    assert [results.to_frame("top", n=n).shape[0] for n in (1, 2)] == [1, 2]
    best = results.to_frame("best")
    assert [*best.columns] == [*every.columns, "best_in"]
    assert best["row"].iloc[0] == results.pareto().dicts()[0]["row"]
    assert {word for words in best["best_in"] for word in words.split(", ")} == {
        "fastest", "best per dollar", "cheapest",
    }  # fmt: skip
    fast = results.to_frame(where="nic >= 50")
    assert fast.equals(every[every["nic"] >= 50].reset_index(drop=True))
    assert results.to_frame("best", where=["nic < 50", "taper >= 2"])["row"].tolist() == [2]
    some = lp.sweep_results(results.directory.path, where="row == 2")
    assert repr(some) == "<SweepResults: 1 design over nic, taper where row == 2: 1 optimal>"
    with pytest.raises(lp.PlannerError, match="got 'bst', expected everything, best, pareto, top"):
        results.to_frame("bst")
    with pytest.raises(lp.PlannerError, match=r"where: got the name 'nik'.*did you mean nic"):
        results.to_frame(where="nik >= 50")
    with pytest.raises(TypeError, match=r"at: got 2, expected a run directory; rows are what"):
        results.at(2)


def test_an_answer_shows_its_rows(swept) -> None:
    answer = lp.sweep_results(swept(NICS)).sql("SELECT * FROM designs ORDER BY row")
    head, *lines = repr(answer).splitlines()
    assert head == f"<Answer: 6 rows of {len(answer.columns)} columns>"
    assert len(lines) == 7
    assert lines[0].split()[0] == "row"
    assert max(map(len, lines)) < 120


def test_an_optimum_has_the_money_of_json() -> None:
    best = lp.load_plan("0e_rails_2to1").optimize()
    assert best.bill_fabric_usd == best.to_dict()["bill_fabric_usd"] > best.network_cost_usd
    ideal = lp.load_plan("01_gpt3_4d")
    found = ideal.evaluate(bandwidth_GBps=[300, 100, 75, 25])
    assert found.bill_fabric_usd == found.to_dict()["bill_fabric_usd"]


def test_columns_that_are_named_are_shown_however_narrow_the_terminal(
    swept, run, monkeypatch
) -> None:
    """Long texts are letters with a legend; nothing else makes room."""
    monkeypatch.setenv("COLUMNS", "40")
    there = swept(QUOTED)
    names = ["row", "quotes", "nic", "objective", "status", "step_time_s", "cost_usd"]
    shown = run("sweep", "show", there, "--columns", ",".join(names)).out.splitlines()
    [head] = [line for line in shown if line.startswith(" row")]
    for word in ("quotes", "GB/s", "objective", "status", "step time", "network cost"):
        assert word in head
    assert len(head) > 50


def test_files_over_a_bundled_plan_are_beside_the_sweep(run, tmp_path, monkeypatch) -> None:
    """Of a file its folder, of a map the working directory."""
    quotes = "item,price,seller,date\nnic-400g,1200,Acme,2026-11-02\n"
    (tmp_path / "own.csv").write_text(quotes)
    text = "base: 0e_rails_2to1\naxes: {taper: [2, 4]}\n"
    text += 'set: {quotes: own.csv, constraints: ["leaf == 50 GB/s", "taper(spine) == {taper}"]}\n'
    (tmp_path / "sweep.yaml").write_text(text)
    assert run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run").code == 0
    monkeypatch.chdir(tmp_path)
    rules = ["leaf == 50 GB/s", "taper(spine) == {taper}"]
    spec = {"base": "0e_rails_2to1", "axes": {"taper": [2, 4]}}
    found = lp.sweep({**spec, "set": {"quotes": "own.csv", "constraints": rules}}, "mapped")
    assert len(found.to_frame()) == 2


def test_rows_have_the_notes_of_their_plans(run, tmp_path, swept) -> None:
    """What `optimize` notes of the plan of each row; what only some plans note is a remark."""
    degrees = "[{tp: 8, cp: 2, pp: 8, dp: 16}, {tp: 2, cp: 4, pp: 4, dp: 64}, {tp: 3, dp: 5}]"
    there = swept(f"base: 0e_rails_2to1\naxes: {{parallelism: {degrees}}}\n")
    query = "SELECT row, status, notes FROM designs ORDER BY row"
    rows = run("sweep", "show", there, "--sql", query, "--json").payload["rows"]
    assert [row["status"] for row in rows] == ["optimal", "optimal", "invalid"]
    assert rows[2]["notes"] is None
    for row in rows[:2]:
        run("sweep", "design", there, row["row"], "-o", tmp_path / "row.yaml", "--force")
        notes = run("optimize", tmp_path / "row.yaml", "--json").payload["notes"]
        own = row["notes"].split(" | ")
        assert own == [note for note in notes if note in own]
        assert {note for note in notes if note.startswith("calibrated")} <= set(own)
    more = set(rows[1]["notes"].split(" | ")) - set(rows[0]["notes"].split(" | "))
    said = run("sweep", "show", there, "--remarks").err
    assert more
    for note in more:
        assert note.startswith("calibrated extrapolates: ")
        assert f"Row 1: {note}\n" in said
    assert "notes of some plans" in run("sweep", "show", there).err


@pytest.mark.parametrize("columns", ["[step_time_s, cost_usd]", "[step_time_s, notes]"])
def test_notes_that_all_rows_share_are_one_remark(run, tmp_path, swept, columns) -> None:
    """A tier that costs nothing is said once, with and without a column of notes."""
    there = swept(
        "base: 0e_rails_2to1\naxes: {budget: [100, 200, 300]}\nset:\n  cost_model: clos-2026\n"
        "  fabric.scale_up: null\n  constraints: ['total == {budget} GB/s', 'taper(spine) == 2']\n"
        f"columns: {columns}\n"
    )
    said = run("sweep", "show", there, "--remarks").err
    run("sweep", "design", there, 0, "-o", tmp_path / "row.yaml")
    notes = run("optimize", tmp_path / "row.yaml", "--json").payload["notes"]
    free = next(note for note in notes if "costs nothing in clos-2026" in note)
    assert said.count(f"In all rows: {free}\n") == 1
    assert "in all rows: " in run("sweep", "show", there).err
    lp.sweep_results(there).to_html(tmp_path / "page.html")
    assert f"In all rows: {free}" in html.unescape((tmp_path / "page.html").read_text())


def test_bests_beyond_the_third_have_their_ties_named(run, swept) -> None:
    """Two models and two objectives have four bests, each of two rows: quotes change nothing."""
    there = swept(
        "base: plan.yaml\naxes: {workload: [gpt3, gpt-145.6b], quotes: [low.csv, high.csv]}\n"
        "objective: [performance, performance_per_cost]\ncolumns: [step_time_s, cost_usd]\n"
        "set: {constraints: ['leaf == 50 GB/s', 'taper(spine) == 2']}\n"
    )
    said = run("sweep", "show", there, "--remarks").err
    (line,) = re.findall("Several rows .*", said)
    assert re.fullmatch(r"Several rows are within 0\.1% also of the best .* of gpt3", line)


def test_every_reason_of_failed_rows_is_said(run, swept) -> None:
    """Two rows need too much memory, by different figures, and one may cost too little."""
    there = swept(
        "base: 0e_rails_2to1\naxes: {tp: [1, 8], nic: [25, 50], cap: [80, 1]}\n"
        "set:\n  parallelism: {tp: '{tp}', cp: 2, pp: '{4 if nic == 25 else 2}', "
        "dp: '{1024 / tp / (4 if nic == 25 else 2)}'}\n"
        "  constraints: ['leaf == {nic} GB/s', 'taper(spine) == 8', 'cost <= {cap} M$']\n"
    )
    said = run("sweep", "show", there, "--remarks").err
    assert re.search(r"^infeasible: 6 of 8 rows, most often \(4\): .* does not fit: ", said, re.M)
    assert re.search(r"^infeasible, 2 rows, such as 5: no bandwidth vector meets ", said, re.M)
    assert said.count("does not fit") == 1
    assert "\nAll reasons: libra-planner sweep show " in said
    shown = run("sweep", "show", there).err
    assert shown.startswith("Remarks: infeasible in 6 of 8 rows; ")


def test_fabrics_of_different_tiers_have_rules_of_their_own(run, swept, tmp_path) -> None:
    """As the page of sweeps does it; an axis of tapers names that way."""
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
    (text,) = re.findall(
        r"```yaml\n(.*?)```", page.partition("Fabrics of different tiers")[2], re.S
    )[:1]
    rows = lp.sweep_results(swept(text)).sql("SELECT * FROM designs ORDER BY row").dicts()
    assert [row["status"] for row in rows] == ["optimal"] * 3
    assert [row["rule"] for row in rows][1:] == ["taper(spine) == 1", "taper(spine) == 2"]
    tapers = re.sub(r"rule: .*", "taper: [1, 2]", re.sub("where: .*\n", "", text))
    there = swept(tapers.replace("{rule}", "taper(spine) == {taper}"))
    fix = "may be an axis of whole texts, such as rule: ['taper(spine) == 2', 'leaf >= 0 GB/s']"
    assert fix in run("sweep", "show", there, "--remarks").err
    assert fix in run("sweep", "plan", tmp_path / "sweep.yaml").err
    chosen = "{'taper(spine) == 2' if n_dims(shape) == 3 else taper}"
    (tmp_path / "sweep.yaml").write_text(tapers.replace("{rule}", chosen))
    refused = run("sweep", "plan", tmp_path / "sweep.yaml")
    assert refused.code == 2
    assert "got 'taper', a number in" in refused.err
    assert (
        f"both values of an if are of one kind, here a text; what only some designs have {fix}"
        in (refused.err)
    )


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("tp 8", [0]),
        ("tp=8", [0]),
        ("TP == 8 and cp >= 1", [0]),
        ("tp 16 cp 8", [1]),
        ("tp in (8, 4)", [0, 2]),
        ("tp * cp == 128", [1]),
        ("step < 1 s", [1]),
        ("step <= 969.5 ms", [1]),
        ("step_time_s > 2", [0]),
        ("tokens/s > 1,000", [0]),
        ("cost < $5M", [1, 2]),
        ("GB >= 80", [0]),
        ("mfu > 30%", [0]),
        ("recompute none", [0, 2]),
        ("recompute != 'none'", [1]),
        ("none", [0, 2]),
        ("8", [0, 1, 2]),
        ("zzz", []),
        ("", [0, 1, 2]),
    ],
)
def test_a_table_on_screen_is_filtered_as_the_results_of_a_sweep(
    typed: str, chosen: list[int]
) -> None:
    """By the figures that are shown, with their units; plain words are looked for in a row."""
    assert TYPED.chosen(typed) == chosen


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("tq == 8", "got the name 'tq' in 'tq == 8', expected a column; known: #, tp, cp"),
        ("tp ==", "got 'tp ==' (invalid syntax), expected an expression"),
        ("tp == none", "got the name 'none' in 'tp == none', expected a column"),
        ("rec", "got 'rec', expected words of a row, or a comparison; write e.g. tp <= 8"),
    ],
)
def test_a_filter_on_screen_that_is_wrong_says_so_by_the_headings(typed: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        TYPED.chosen(typed)
    assert said in str(caught.value)


def test_one_reason_has_one_wording() -> None:
    """A batch looks at some designs a second time: their message names rules, others' none."""
    n = 3
    blank = dict.fromkeys(
        ("objective", "lower_bound", "step_time_s", "cost_usd", "unique", "resolved")
    )
    figures = {name: np.zeros(n) for name in blank}
    own = {"status": np.full(n, "infeasible", object), "bandwidth_bytes_per_s": np.zeros((n, 2))}
    solved = SimpleNamespace(**figures, **own, messages={1: "got a rule none can meet"})
    result = copy.deepcopy(solved)
    result.message = np.full(n, "", object)
    result.equal_step_time_s = np.zeros(n)
    solver._put(result, np.arange(n), solved, np.zeros(n))  # type: ignore[arg-type]
    assert set(result.message) == {solver.NO_BANDWIDTH}
