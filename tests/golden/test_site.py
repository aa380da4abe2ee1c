"""Every command of the README, the tutorials, how-to pages and reproductions runs, and prints what they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("howto/*.md"), DOCS / "reproduced.md"]),
]
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def _commands(page: Path) -> list[tuple[str, list[str]]]:
    """Commands of a page, each with the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for line in "\n".join(_BLOCK.findall(page.read_text(encoding="utf-8"))).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line:
            found[-1][1].append(line.rstrip())
    return found


SHOWN = [page for page in PAGES if _commands(page)]


@pytest.mark.parametrize("page", SHOWN, ids=[page.stem for page in SHOWN])
def test_commands_print_what_the_page_shows(page: Path, run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command, shown in _commands(page):
        program, *arguments = shlex.split(command)
        assert program == "libra-planner"
        result = run(*arguments)
        assert result.code == 0, (command, result.err)
        printed = [line.rstrip() for line in (result.out + result.err).splitlines()]
        assert [line for line in shown if line not in printed] == [], command


def test_the_own_model_of_its_page_is_what_init_writes(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = DOCS / "howto" / "own-model.md"
    (command, _), *_ = _commands(page)
    assert run(*shlex.split(command)[1:]).code == 0
    (shown,) = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert shown in (tmp_path / "own.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_other_commands_are_understood(page: Path) -> None:
    """What a page tells to type has flags and commands that exist."""
    from libra_planner.cli.main import command_parser

    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    for line in re.findall(r"^libra-planner .*$", blocks, re.MULTILINE):
        words = shlex.split(line)[1:]
        command_parser(words).parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("strategies.md", "search.md")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
