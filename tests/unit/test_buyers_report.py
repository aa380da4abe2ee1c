"""Reports of first plans with a buyer's own prices: what strict readers of them asked for."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path

import pytest

QUOTES = """item,price,unit,currency,rate,seller,date,valid_until,support
h100-sxm,26500,each,,,NPU Inc,2026-11-02,2026-12-31,
nic-400g,1380,each,,,Acme,2026-11-05,2026-12-24,60
switch-64x400g,38000,each,EUR,1.08,Switches GmbH,2026-11-10,2026-12-20,2500
optic-400g-sr4,540,each,,,Acme,2026-11-05,2026-12-24,
fibre-om4,38,each,,,Acme,2026-11-05,2026-12-24,
tax,8.25,percent,,,State,2026-11-02,,
"""


@pytest.fixture
def bought(tmp_path, monkeypatch, run):
    """A folder with quotes and the plans of 128 nodes at 1:1 and 4:1, by the names that they get.

    Their strategy is given: nothing is searched.
    """
    monkeypatch.chdir(tmp_path)
    Path("q.csv").write_text(QUOTES)
    for taper in ("1", "4"):
        asked = ("--model", "llama3-70b", "--npu", "h100-sxm", "--npus", "1024", "--taper", taper)
        assert run("init", *asked, "--nic", "400Gbps", "-o", f"t{taper}.yaml").code == 0
        plan = Path(f"t{taper}.yaml")
        text = plan.read_text().replace("parallelism: auto", "parallelism: {tp: 4, pp: 4, dp: 64}")
        plan.write_text(text)
    return tmp_path


def test_the_command_of_a_report_makes_the_same_report(bought, run) -> None:
    files = ("Full=t1.yaml", "Quarter 4:1=t4.yaml", "--prices", "q.csv", "--baseline", "A")
    given = ("report", *files, "--as-of", "2026-11-24", "-o", "r")
    assert run(*given).code == 0
    said = [*csv.reader(io.StringIO(Path("r/report-origin.csv").read_text()))][1][1]
    assert said == (
        "libra-planner report Full=t1.yaml 'Quarter 4:1=t4.yaml' --prices q.csv "
        "--as-of 2026-11-24 --baseline A -o report"
    )
    assert run(*shlex.split(said)[1:]).code == 0
    for path in Path("r").iterdir():
        assert (Path("report") / path.name).read_bytes() == path.read_bytes(), path.name
