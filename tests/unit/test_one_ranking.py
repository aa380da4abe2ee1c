"""One ranking in every view, by the step time that knows most of the links (C6)."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from libra_planner.evaluation import TimeModel
from libra_planner.procurement.ranking import ranking, times_s
from libra_planner.views.report.compose import documents, report_payload
from libra_planner.views.report.decision import decision_section
from tests.comparisons import compared_by

EXAMPLES = Path(__file__).parents[2] / "examples"
PARTIAL = [
    str(EXAMPLES / "01_gpt3_4d.yaml"),
    str(EXAMPLES / "02_performance_per_cost.yaml"),
    f"{EXAMPLES / '01_gpt3_4d.yaml'}@300,100,75,25",
]
"""TP 16 takes 4 x 2 of the 8 NPUs of dim2: a group has only its own links there."""

WHOLE_GROUPS = [
    str(EXAMPLES / "reports" / f"{name}.yaml") for name in ("one_nic", "oversubscribed")
]
_CHECKED = ("--check", "spray", "--set", "algorithms=[default, halving_doubling]")
OWN_MS = [796.875, 786.176, 779.575]


def _compared(*arguments: str):
    return compared_by(*arguments)


@pytest.fixture(scope="module")
def three():
    """Fastest A, C, B by the ideal model and C, B, A on their own links."""
    return _compared(*PARTIAL)


@pytest.fixture(scope="module")
def checked():
    """As fast as one another until somebody routes the flows over half the uplinks.

    A ring leaves a leaf only once: it does not miss the other half.
    """
    return _compared(*WHOLE_GROUPS, *_CHECKED)


def test_cards_tables_and_chart_follow_own_links(three) -> None:
    ranks = three.ranking
    times_ms = [1000 * one.evaluation.real_link_step_time_s for one in three.candidates]
    assert times_ms == pytest.approx(OWN_MS, abs=5e-4)
    assert times_s(three.candidates)[0] == pytest.approx([ms / 1000 for ms in times_ms])
    products = [
        ms * float(one.bill.total_usd) for ms, one in zip(times_ms, three.candidates, strict=True)
    ]
    assert three.letters[ranks.fastest] == "C"
    assert ranks.best_per_usd == products.index(min(products))
    fastest = decision_section(three).cards[1]
    assert fastest.figure == "779.575 ms per step on partial groups' own links"
    made = documents(three, ("csv", "html", "md", "xlsx"))
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(made["report-designs.csv"]))}
    own = [float(x) for x in rows["Step time on partial groups' own links, ms"]]
    assert [float(x) for x in rows["Step time that ranks, ms"]] == own
    header = next(csv.reader(io.StringIO(made["report-designs.csv"])))[1:]
    assert header[own.index(min(own))].startswith("C")
    assert header[0].startswith(three.letters[three.chosen])
    title = "Price against step time on partial groups&#39; own links"
    assert title in made["report.html"]


def test_of_designs_as_fast_the_cheaper_one_is_the_fastest_in_any_order() -> None:
    """Half the uplinks take nothing off a step that nobody has checked on its links."""
    for names in (WHOLE_GROUPS, WHOLE_GROUPS[::-1]):
        found = _compared(*names)
        totals = [one.bill.total_usd for one in found.candidates]
        assert len({one.step_time_s for one in found.candidates}) == 1
        least = totals.index(min(totals))
        assert (found.ranking.fastest, found.chosen) == (least, least)
        card = decision_section(found).cards[1]
        saved = float(max(totals) - min(totals)) / 1e6
        other = found.letters[1 - least]
        assert card.reason.startswith(f"As fast as {other}, and ${saved:.2f}M cheaper.")
    # Of designs that are alike in all the name counts, and no letter.
    twins = [f"{name}={WHOLE_GROUPS[0]}" for name in ("Zulu", "Alpha")]
    found = _compared(*twins)
    assert {*found.ranking.picks.values(), found.chosen} == {1}
    assert "would be" not in " ".join(decision_section(found).lead)
    assert "its name comes first" in decision_section(found).cards[1].reason


def test_models_that_disagree_are_named_with_both_orders(three) -> None:
    note = (
        "The models disagree on the order: fastest first A, C, B by the plan's model, but C, B, A "
        "on partial groups' own links"
    )
    made = documents(three, ("html", "md", "xlsx"))
    book = openpyxl.load_workbook(io.BytesIO(made["report.xlsx"]))
    cells = [str(cell.value) for row in book["Decision"] for cell in row]
    assert any(text.startswith(note) for text in cells)
    assert note in made["report.md"]
    page = re.sub("</?b>", "", made["report.html"])
    assert note in page.replace("&#39;", "'")
    assert any(text.startswith(note) for text in decision_section(three).lead)


def test_the_speedup_stands_beside_what_equal_bandwidth_is(run) -> None:
    """Equal bandwidth that is faster, costs more and breaks the rules is nothing to buy."""
    plan = str(EXAMPLES / "06_catalogue.yaml")
    made = documents(_compared(plan, PARTIAL[0]), ("csv", "html", "md", "xlsx"))
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(made["report-designs.csv"]))}
    broken, kept = rows["Equal bandwidth in every dimension"]
    assert broken == "125.00 GB/s each: 775.045 ms, $34.51M, breaks the rules"
    assert f"({broken})" in " ".join(run("optimize", plan).out.split())
    assert "breaks" not in kept
    book = openpyxl.load_workbook(io.BytesIO(made["report.xlsx"]))
    assert broken in [cell.value for sheet in book for row in sheet for cell in row]
    assert broken in made["report.html"]
    assert broken in made["report.md"].replace("\\", "")


def test_json_and_terminal_say_the_same(run, tmp_path) -> None:
    command = ("report", *PARTIAL, "-o", tmp_path, "--formats", "md")
    payload, text = run(*command, "--json").payload, run(*command).out
    assert (payload["fastest"], payload["ranked_by"]) == (
        "C",
        "step time on partial groups' own links",
    )
    assert payload["order_note"] in text
    assert payload["order_note"] in payload["decision"]["text"]
    ranked = [1000 * one["ranked_step_time_s"] for one in payload["designs"]]
    assert ranked == pytest.approx(OWN_MS, abs=5e-4)
    page = (tmp_path / "report.md").read_text().replace("\\", "")
    assert "**Fastest: C: 01_gpt3_4d @ 300,100,75,25** (779.575 ms per step" in page


def test_the_workbook_ranks_by_the_same_time(three) -> None:
    (verdict,) = decision_section(three).live
    letters, ranks = three.letters, three.ranking
    assert verdict.value.endswith(f"best per dollar {letters[ranks.best_per_usd]}")
    assert all(f"*{time!r}" in verdict.expression for time in times_s(three.candidates)[0])


def test_flips_and_budgets_follow_own_links(three) -> None:
    """A break-even is where products of price and own-link time are equal."""
    times, _ = times_s(three.candidates)
    totals = [float(one.bill.total_usd) for one in three.candidates]
    best = three.ranking.best_per_usd
    flips = [s for s in three.swings if s.break_even[1].endswith("best per dollar")]
    assert flips
    for swing in flips:
        factor, text = swing.break_even
        other = three.letters.index(text[0])
        worth = [
            times[i] * (totals[i] + (factor - 1) * float(swing.usd_by_design[i]))
            for i in (best, other)
        ]
        assert worth[0] == pytest.approx(worth[1], rel=1e-9)
    assert {budget.before.ranked_by for budget in three.budgets} == {TimeModel.OWN_LINKS}
    assert all(budget.before == three.ranking for budget in three.budgets)


def test_runs_and_tokens_follow_own_links() -> None:
    whole = ("--set", "workload=gpt3", "--set", "global_batch=8192")
    for one in _compared(*PARTIAL[:2], *whole).candidates:
        own_s = one.evaluation.real_link_step_time_s
        assert own_s > one.evaluation.step_time_s
        assert one.run.work_s == one.run.n_steps * own_s
        assert one.token_time_s == pytest.approx(own_s / (8192 * 2048))


def test_checked_times_rank_where_all_are_checked(checked) -> None:
    assert checked.ranking.ranked_by is TimeModel.CHECKED
    first, second = (one.evaluation.step_time_s for one in checked.candidates)
    assert first == pytest.approx(second, rel=1e-9)
    assert not checked.ranking.order_note  # Of equals in the model no two change places.
    effective = [float(one.check.effective_step_time_s.mean()) for one in checked.candidates]
    scale = 1024 * 2048
    assert times_s(checked.candidates)[0] == pytest.approx([s / scale for s in effective])
    assert "on the links as checked" in decision_section(checked).cards[1].figure


def test_designs_of_one_bill_take_one_time() -> None:
    """15 GB/s are bought as a NIC of 25 GB/s, and run as fast as a check finds these links."""
    plan, spray = str(EXAMPLES / "0d_llama3_70b.yaml"), ("--check", "spray")
    vectors = "450,15,4.5", "450,25,4.6875", "450,50,50"
    designs = [f"{plan}@{vector}" for vector in vectors]
    found = _compared(*designs)
    asked, whole, _ = found.candidates
    assert asked.bill == whole.bill
    assert asked.evaluation.step_time_s > whole.evaluation.step_time_s
    assert found.ranking.ranked_by is TimeModel.BILLED
    times, _ = times_s(found.candidates)
    assert times[0] == pytest.approx(times[1], rel=1e-12)
    routed = [one.check.spray_step_time_s for one in _compared(*designs, *spray).candidates]
    assert [one.step_time_s for one in found.candidates] == pytest.approx(routed, rel=1e-9)
    [text] = [x for x in decision_section(found).paragraphs if x.startswith("Ports")]
    assert text.startswith("Ports are sold whole: A has 25 GB/s per NPU in leaf where 15 is asked")
    assert "B has" not in text
    design = report_payload(found, [])["designs"][0]
    assert design["billed_GBps"] == pytest.approx([450, 25, 4.6875])
    assert design["ranked_step_time_s"] == design["billed_step_time_s"] < design["step_time_s"]


def test_one_unchecked_design_makes_no_check_count(checked) -> None:
    a, b = checked.candidates
    found = ranking([a, replace(b, check=None)])
    assert found.ranked_by is TimeModel.PLAN
    assert (found.fastest, found.order_note) == (1, "")  # The cheaper one of two as fast.
    model_s = a.evaluation.step_time_s / (1024 * 2048)
    assert times_s([a, replace(b, check=None)])[0] == pytest.approx([model_s, model_s])


def test_without_partial_groups_the_model_ranks() -> None:
    found = _compared(*WHOLE_GROUPS)
    assert (found.ranking.ranked_by, found.ranking.order_note) == (TimeModel.PLAN, "")
    text = decision_section(found).paragraphs[0]
    assert text.startswith("Step times are by the plan's model:")


def test_the_design_to_buy_is_the_first_column_of_every_table(checked) -> None:
    """Where it was last, a screen of 1,400 pixels cut it off. Its figures move with its letter."""
    assert checked.candidates[checked.chosen].letter == "B"
    turned = _compared(*reversed(WHOLE_GROUPS), *_CHECKED)
    assert turned.candidates[turned.chosen].letter == "A"
    files = [documents(one, ("csv",)) for one in (checked, turned)]
    for name in ("designs", "money", "drivers", "prices-moved", "discounts"):
        first, second = ([*csv.reader(io.StringIO(x[f"report-{name}.csv"]))] for x in files)
        at = next(i for i, cell in enumerate(second[0]) if cell[:1] == "A")
        assert first[0][at][:1] == "B"
        assert [row[at] for row in first[1:]] == [row[at] for row in second[1:]]
