"""What the README shows is what the commands print."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from libra_planner.cli.main import command_parser
from libra_planner.plan.problem import load_plan

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GROUPS = (ROOT / "docs" / "groups.md").read_text(encoding="utf-8")
COLLECTIVES = (ROOT / "docs" / "collectives.md").read_text(encoding="utf-8")
FLOWS = (ROOT / "docs" / "flows.md").read_text(encoding="utf-8")
CHECK = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
PROCUREMENT = (ROOT / "docs" / "procurement.md").read_text(encoding="utf-8")
OBJECTIVES = (ROOT / "docs" / "objectives.md").read_text(encoding="utf-8")


def _consoles() -> list[tuple[str, list[str]]]:
    texts = GROUPS + COLLECTIVES + OBJECTIVES + FLOWS + CHECK
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", texts, re.DOTALL)
    return [(command, output.splitlines()) for command, output in blocks]


@pytest.mark.parametrize(("command", "shown"), _consoles())
def test_console_blocks(command: str, shown: list[str], run, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "libra-planner"
    printed = [line.rstrip() for line in run(*arguments).out.splitlines()]
    assert printed[: len(shown)] == shown


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(workload.*?)```", README, re.DOTALL))
def test_plans_of_the_readme_run(text: str, tmp_path: Path, run) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    result = run("optimize", tmp_path / "plan.yaml", "--json")
    assert result.code == 0, result.err


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_main_command_names_a_bundled_example() -> None:
    assert (ROOT / "examples" / "0e_rails_2to1.yaml").is_file()
    assert "libra-planner optimize 0e_rails_2to1" in README


def test_figures_of_the_readme_are_those_of_the_pages() -> None:
    accuracy, speed = ((ROOT / "docs" / name).read_text() for name in ("accuracy.md", "speed.md"))
    (n, error) = re.search(
        r"\| all that are fitted \| these rows \| (\d+) \| (\d+)\.\d%", accuracy
    ).groups()
    assert f"{error} % off on average over {n} published runs" in README
    (seconds,) = re.search(r"\| 1,000,000 designs of GPT-3 .* \| (\d+) s \|", speed).groups()
    assert f"a million designs of GPT-3 take {seconds} s" in README


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(README.split()) <= 720


def _reports() -> list[list[str]]:
    found = re.findall(r"^libra-planner report .*", PROCUREMENT, re.MULTILINE)
    return [shlex.split(command)[1:] for command in found]


@pytest.mark.parametrize("command", _reports())
def test_reports_that_are_shown_are_of_whole_steps(command: list[str], monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    options = command_parser(command).parse_args(command)
    plans = {design.partition("@")[0].rpartition("=")[2] for design in options.designs}
    for plan in plans:
        problem = load_plan(plan, options.settings)
        assert (problem.step.covers, problem.step.tokens_per_step is None) == ("step", False), plan
        assert all(memory.fits for memory in problem.step.memories.values()), plan


def test_the_schema_beside_the_examples_is_current(run) -> None:
    """Keys, required keys and descriptions; the rest depends on pydantic's version."""

    def essence(schema: dict) -> dict:
        models = {"plan": schema, **schema["$defs"]}
        return {
            name: (
                sorted(model.get("required", [])),
                {key: value.get("description") for key, value in model["properties"].items()},
            )
            for name, model in models.items()
        }

    kept = json.loads((ROOT / "examples" / "plan.schema.json").read_text())
    assert essence(run("schema", "plan").payload) == essence(kept)
