"""What rows of sweeps say of money and work, and how to ask for some of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import libra_planner as lp

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
