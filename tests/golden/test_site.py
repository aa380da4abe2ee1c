"""Every command of the README, the tutorials, how-to pages and reproductions runs, and prints what they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import libra_planner as lp

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("howto/*.md"), DOCS / "reproduced.md"]),
]
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)

_SAVED = r"Save this as `([\w.]+)`:\n\n```(?:yaml|json|text)\n(.*?)```"


def _text(page: Path) -> str:
    """A page; of the handbook of sweeps what is run of it."""
    text = page.read_text(encoding="utf-8")
    return text.split("\n## ")[1] if page.name == "sweeps.md" and page.parent == DOCS else text


def _commands(page: Path) -> list[tuple[str, list[str]]]:
    """Commands of a page, each with the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for line in "\n".join(_BLOCK.findall(_text(page))).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line:
            found[-1][1].append(line.rstrip())
    return found


SHOWN = [page for page in PAGES if _commands(page)]
HANDBOOK = DOCS / "sweeps.md"
"""Its first section is run; what follows has larger sweeps."""


@pytest.mark.parametrize("page", [*SHOWN, HANDBOOK], ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page: Path, run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved = re.findall(_SAVED, _text(page), re.DOTALL)
    for text in re.findall(r"```text\n(item,price.*?)```", _text(page), re.DOTALL):
        if text not in dict(saved).values():
            (tmp_path / "quotes.csv").write_text(text, encoding="utf-8")
    for name, text in saved:
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command, shown in _commands(page):
        program, *arguments = shlex.split(command)
        assert program == "libra-planner"
        result = run(*arguments)
        assert result.code == 0, (command, result.err)
        printed = [line.rstrip() for line in (result.out + result.err).splitlines()]
        assert [line for line in shown if line not in printed] == [], command


def test_figures_in_the_prose_of_tutorials_are_printed_today(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    sweeps = (DOCS / "tutorials" / "sweeps.md").read_text(encoding="utf-8")
    assert run("sweep", "run", "13_tapers", "-o", "tapers").code == 0
    rows = {(row.nic, row.taper): row for row in lp.sweep_results("tapers").to_frame().itertuples()}
    slow, fast = rows[25, 8], rows[100, 1]
    assert f"from {slow.step_time_s:.2f} s to {fast.step_time_s:.2f} s" in sweeps
    assert f"by {100 * (1 - fast.step_time_s / slow.step_time_s):.0f} %" in sweeps
    assert f"from ${slow.cost_usd / 1e6:.0f}M to ${fast.cost_usd / 1e6:.0f}M" in sweeps
    assert rows[25, 4].row == 2

    (_, strategies), *_ = re.findall(_SAVED, sweeps, re.DOTALL)
    Path("strategies.yaml").write_text(strategies, encoding="utf-8")
    assert run("sweep", "run", "strategies.yaml", "-o", "strategies").code == 0
    found = lp.sweep_results("strategies")
    assert len(found.pareto().rows) == 9
    frame = found.to_frame().set_index(["tp", "nic", "taper"])
    assert set(frame.loc[2].status) == {"infeasible"}
    assert (frame.loc[8].billed_step_time_s > frame.loc[4].billed_step_time_s).all()
    dear, cheap = frame.loc[4, 100, 1], frame.loc[4, 25, 4]
    assert round(1 / (1 - cheap.bill_usd / dear.bill_usd)) == 6
    assert round(100 * (1 - dear.billed_step_time_s / cheap.billed_step_time_s)) == 2

    page = DOCS / "tutorials" / "procurement.md"
    text, (command, _), *_ = page.read_text(encoding="utf-8"), *_commands(page)
    said = run(*shlex.split(command)[1:], "--formats", "csv").out
    (assumed,) = re.findall(r"(\d+)% of the price of C is assumed", said)
    assert f"{assumed} % of that price is assumed" in text
    changes = Path("report/report-would-change.csv").read_text(encoding="utf-8")
    (factor,) = re.findall(r"price of nic-200g,.*\((\d\.\d\d)x\)", changes)
    (shorter,) = re.findall(r"step time of B,.*\(-(\d\.\d)%\)", changes)
    assert f"{factor} times as much as listed" in text
    assert f"{shorter} % shorter" in text


def test_the_own_model_of_its_page_is_what_init_writes(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = DOCS / "howto" / "own-model.md"
    (command, _), *_ = _commands(page)
    assert run(*shlex.split(command)[1:]).code == 0
    (shown,) = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert shown in (tmp_path / "own.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*PAGES, HANDBOOK], ids=lambda page: page.stem)
def test_other_commands_are_understood(page: Path) -> None:
    """What a page tells to type has flags and commands that exist."""
    from libra_planner.cli.main import command_parser

    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    for line in re.findall(r"^libra-planner .*$", blocks, re.MULTILINE):
        words = shlex.split(line, comments=True)[1:]
        command_parser(words).parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("strategies.md", "search.md")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
