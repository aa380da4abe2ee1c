"""Workloads that are part of a step: no tokens per second, days or dollars of a run (C21)."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path

import openpyxl
import pytest
from rich.console import Console

import libra_planner as lp
from libra_planner.tui.screens.report import decision
from libra_planner.views.report.compose import documents
from tests.comparisons import compared_by

EXAMPLES = Path(__file__).parents[2] / "examples"
PART, WHOLE = str(EXAMPLES / "01_gpt3_4d.yaml"), str(EXAMPLES / "reports" / "one_nic.yaml")
SAID = "not available: the workload is part of a step"
TABLE = """\
kind: table
source: test
operations:
  - {layer: a, phase: forward, compute_ms: 5}
  - {layer: a, phase: weight_grad, collective: {kind: all-reduce, size_bytes: 1e9}}
"""
PLAN = """\
workload: ./w.yaml
fabric: {topology: SW(16), tiers: [pod]}
parallelism: {tp: 1, dp: 16}
cost_model: libra-ispass24
constraints: [total == 50 GB/s]
"""
RUN_KEYS = ("tokens_per_s", "expected_run_s", "run_cost_usd")


@pytest.fixture
def own(tmp_path):
    """A plan of a workload file that is written here."""

    def write(workload: str, plan: str = PLAN) -> str:
        (tmp_path / "w.yaml").write_text(workload)
        (tmp_path / "plan.yaml").write_text(plan)
        return str(tmp_path / "plan.yaml")

    return write


def _report(run, tmp_path, *designs):
    return run("report", *designs, "-o", tmp_path / "out", "--formats", "md", "--json")


def test_no_view_tells_a_run_of_a_part(run, tmp_path) -> None:
    done = run("report", PART, WHOLE, "-o", tmp_path, "--baseline", "A")
    assert done.code == 0, done.err
    assert SAID in done.out
    made = {path.suffix: path for path in tmp_path.glob("report.*")}
    book = openpyxl.load_workbook(io.BytesIO(made[".xlsx"].read_bytes()))
    cells = {sheet.title: [str(c.value) for row in sheet for c in row] for sheet in book}
    assert all(any(SAID in text for text in cells[name]) for name in ("Decision", "Run"))
    for text in (made[".html"].read_text(), made[".md"].read_text()):
        assert f"Tokens per second, days and dollars of a run are {SAID} (A)" in text
    for name, label in (("designs", "Tokens per second"), ("run", "Cost of the run")):
        lines = (tmp_path / f"report-{name}.csv").read_text().splitlines()
        (row,) = [line.split(",") for line in lines if line.startswith(f"{label},")]
        own = [one[:1] for one in lines[0].split(",")]
        assert (row[own.index("A")], float(row[own.index("B")]) > 0) == (SAID, True)


def test_a_report_of_parts_alone_holds_no_figure_of_a_run() -> None:
    found = compared_by(PART)
    made = documents(found, ("md", "csv"))
    run_table = made["report-run.csv"].split("\r\n")[1:-1]
    assert [line.endswith(SAID) for line in run_table] == [True, True]
    assert "report-run-moved.csv" not in made
    text = made["report.md"]
    assert "per token" not in text
    assert "## The training run\n" in text
    for said in ("trillion", "run as it will", "the run follow", "tokens per second, work"):
        assert said not in text
    assert text.count("links: work per dollar follows them.") == 2


def test_json_has_nulls_and_the_reason(run, tmp_path) -> None:
    part, whole = _report(run, tmp_path, PART, WHOLE).payload["designs"]
    assert [part[key] for key in RUN_KEYS] == [None] * 3
    assert (part["covers"], part["run_not_available"]) == ("part", SAID)
    assert all(whole[key] > 0 for key in RUN_KEYS)
    assert (whole["covers"], whole["run_not_available"]) == ("step", None)
    assert whole["tokens_per_s"] == pytest.approx(1024 * 2048 / whole["step_time_s"])


def test_no_view_says_that_a_run_follows_where_there_is_none(run, tmp_path, own) -> None:
    done = _report(run, tmp_path, PART)
    basis, firmness, *_ = done.payload["decision"]["text"]
    assert basis == "Step times are on partial groups' own links: work per dollar follows them."
    assert (done.payload["n_tokens"], firmness) == (None, "One design: nothing is ranked.")
    assert run("report", PART, "-o", tmp_path / "out", "--formats", "html,xlsx").code == 0
    assert basis in html.unescape((tmp_path / "out" / "report.html").read_text())
    book = openpyxl.load_workbook(tmp_path / "out" / "report.xlsx")
    cells = [str(cell.value) for sheet in book for row in sheet for cell in row]
    for text in ((tmp_path / "out" / "report.html").read_text(), "\n".join(cells)):
        assert "The training run" in text
        assert "trillion" not in text
        assert "tokens per second, work" not in text
    payload = _report(run, tmp_path, PART, f"{PART}@300,100,75,25").payload
    assert payload["decision"]["text"][0].endswith(": the ranking and work per dollar follow them.")
    payload = _report(run, tmp_path, PART, own(TABLE)).payload  # Other work: nothing follows.
    assert payload["fastest"] is None
    assert payload["decision"]["text"][0] == "Step times are on partial groups' own links."


def test_what_follows_the_step_time_of_a_whole_step(run, tmp_path) -> None:
    payload = _report(run, tmp_path, WHOLE).payload
    assert payload["n_tokens"] == 10**12
    followers = "tokens per second, work per dollar and the run follow them."
    assert payload["decision"]["text"][0] == f"Step times are by the plan's model: {followers}"
    payload = _report(run, tmp_path, PART, WHOLE).payload
    assert payload["n_tokens"] == 10**12


def test_the_cockpit_says_it_on_its_report_screen(run, tmp_path) -> None:
    payload = _report(run, tmp_path, PART).payload
    screen = Console(width=120, record=True, file=io.StringIO())
    screen.print(decision(payload, ["1 mine"], 120))
    assert SAID in " ".join(screen.export_text().split())


def test_a_run_that_is_asked_for_is_refused_with_the_fix(run, tmp_path, own) -> None:
    plan = own(TABLE)
    done = run("report", PART, plan, WHOLE, "--tokens", "15e12", "-o", tmp_path / "out")
    assert done.code == 2
    first, second = done.err.splitlines()
    assert first.startswith("--tokens: got 15e12 for gpt3-libra, which is part of a step")
    assert "'workload: gpt3'" in first
    assert "w.yaml lists a whole step, add 'covers: step' and 'tokens_per_step: N'" in second
    assert not (tmp_path / "out").exists()


def test_listed_operations_are_a_part_until_their_file_says_otherwise(run, tmp_path, own) -> None:
    done = _report(run, tmp_path, own(TABLE))
    (warning,) = done.payload["decision"]["warnings"]
    assert re.search(rf"{SAID} \(A\).*w\.yaml lists a whole step, add 'covers: step'", warning)
    done = _report(run, tmp_path, own(TABLE + "covers: step\ntokens_per_step: 32768\n"))
    (one,) = done.payload["designs"]
    assert one["covers"] == "step"
    assert one["tokens_per_s"] == pytest.approx(32768 / one["step_time_s"])


@pytest.mark.parametrize(
    ("workload", "covers"),
    [("gpt3", "step"), ("msft-1t", "step"), ("turing-nlg", "step"), ("gpt3-libra", "part"),
     ("msft-1t-libra", "part"), ("turing-nlg-libra", "part"), ("resnet50-libra", "part")],
)  # fmt: skip
def test_what_the_bundled_workloads_cover(workload, covers, own) -> None:
    batch = "global_batch: 64\n" if covers == "step" else ""
    plan = own(TABLE, PLAN.replace("./w.yaml", workload) + batch)
    assert lp.load_plan(plan).step.covers == covers


def test_a_group_with_one_part_is_a_part(own) -> None:
    entries = "- {workload: gpt3, parallelism: {dp: 16}, global_batch: 64}"
    group = f"workloads:\n  {entries}\n  - {{workload: gpt3-libra, parallelism: {{dp: 16}}}}\n"
    rest = re.sub(r"(workload|parallelism): .*\n", "", PLAN)
    assert lp.load_plan(own(TABLE, group + rest)).step.covers == "part"
    alone = group.splitlines(keepends=True)[:2]
    assert lp.load_plan(own(TABLE, "".join(alone) + rest)).step.covers == "step"


SHAPE = "{n_layers: 4, hidden: 256, n_heads: 4, sequence_tokens: 128}"
GENERATED = f"""\
kind: transformer
source: test
architecture: {SHAPE}
compute: {{macs_per_s: 1e14}}
sequences_per_replica: 4
"""
WITH_LOGITS = GENERATED.replace("128}", "128, vocabulary: 1000}")


def test_a_transformer_without_embedding_and_logits_is_a_part(own) -> None:
    problem = lp.load_plan(own(GENERATED))
    assert problem.step.covers == "part"
    assert "add 'vocabulary' to the architecture" in problem.step.fix
    whole = lp.load_plan(own(WITH_LOGITS))
    assert (whole.step.covers, whole.step.tokens_per_step) == ("step", 16 * 4 * 128)
    assert lp.load_plan(own(WITH_LOGITS + "covers: part\n")).step.covers == "part"


@pytest.mark.parametrize("text", [GENERATED, WITH_LOGITS + "table: libra\n"])
def test_a_transformer_without_logits_cannot_be_called_a_step(text, own, run) -> None:
    done = run("evaluate", own(f"{text}covers: step\n"), "--bandwidth", "50")
    assert done.code == 2
    assert re.search(r"w\.yaml:\d+:9: covers: got step, expected part: .*; add 'voc", done.err)


def test_parts_of_one_batch_are_ranked_by_step_time(run, tmp_path, own) -> None:
    """Not by tokens, of which a part has none; the batch tells the same work."""
    other = own("", Path(PART).read_text().replace("tp: 16, dp: 256", "tp: 32, dp: 128"))
    payload = _report(run, tmp_path, PART, other).payload
    assert payload["fastest"] in ("A", "B")
    (tmp_path / "half.yaml").write_text(Path(PART).read_text().replace("8192", "4096"))
    payload = _report(run, tmp_path, PART, tmp_path / "half.yaml").payload
    assert (payload["fastest"], payload["best_per_usd"]) == (None, None)


def test_what_is_less_than_a_twentieth_of_a_percent_is_one_row(run) -> None:
    """The rows add up to the step, and none of them is listed as 0.0 %."""
    found = run("optimize", "0e_rails_2to1", "--json").payload
    short = [
        *(one["time_s"] for one in found["bottlenecks"]),
        *(found["time"][part] for part in ("bubble_s", "uneven_stages_s", "optimizer_s")),
    ]
    n = sum(seconds < 5e-4 * found["step_time_s"] for seconds in short)
    text = run("optimize", "0e_rails_2to1").out
    table = text.split("Step time, all layers together")[1].split("\n\n")[0]
    [folded] = [row for row in table.splitlines() if f"{n} shorter ones" in row]
    assert n > 1
    rows = table.splitlines()[2:]
    assert not any(row.rstrip().endswith(" 0.0%") for row in rows if row != folded)
    shares = [float(row.split()[-1].rstrip("%")) for row in rows if row.strip()]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    # What the table has in rows of its own the headline does not repeat.
    [exposed] = [line for line in text.splitlines() if line.startswith("Of it")]
    assert "pipeline bubble" in table
    assert "pipeline bubble" not in exposed
