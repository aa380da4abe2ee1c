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
