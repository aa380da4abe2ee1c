"""First steps: bundled names in the place of files."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from libra_planner.errors import DataNotFound
from libra_planner.reading.bundled import example, given_file

ROOT = Path(__file__).parents[2]


def test_bundled_names_stand_for_files(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    vector = ("--bandwidth", "300,100,75,25", "--json")
    named = json.loads(run("evaluate", "01_gpt3_4d", *vector).out)
    assert named == json.loads(run("evaluate", example("01_gpt3_4d"), *vector).out)
    assert run("sweep", "plan", "10_budgets").out.startswith("74 designs")
    assert "FIM" in run("flows", "flowtracer_fabric", "flowtracer_flows", "--fim-only").out
    written = run("report", "one_nic@450,50", "two_nics@450,100", "-o", "r", "--formats", "md")
    assert written.code == 0, written.err
    page = Path("r/report.md").read_text()
    assert r"A (one\_nic @ 450,50)" in page
    assert "is 14.6% slower" in page
    assert r"B (two\_nics @ 450,100)" in page


def test_a_file_in_the_working_directory_comes_before_a_bundled_one(plan, monkeypatch) -> None:
    own = plan(name="01_gpt3_4d")
    monkeypatch.chdir(own.parent)
    assert given_file("01_gpt3_4d") == "01_gpt3_4d"
    own.unlink()
    assert given_file("01_gpt3_4d") == str(example("01_gpt3_4d"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("optimize 08_rail", "08_rail: got no such file, .*; did you mean 08_rails?"),
        ("optimize mine", "mine: got no such file, .*; did you mean mine.yaml?"),
        ("optimize d", "d: got no such file, .*; did you mean d.yaml?"),
        ("optimize zzz.yaml", "zzz.yaml: got no such file, expected one; check the path"),
        ("optimize min.yaml", "min.yaml: got no such file, expected one; did you mean mine.yaml?"),
        ("optimize zzz", "; see libra-planner list examples"),
        ("optimize 10_budgets", "got the name of a bundled sweep, expected a plan"),
        ("sweep plan 01_gpt3_4d", "got the name of a bundled plan, expected a sweep"),
        ("report one_nik -o r", "did you mean one_nic?"),
        ("check examples/08_rails.yaml", "the bundled one needs no path: write 08_rails"),
        ("flows flowtracer_fabrik f.csv", "did you mean flowtracer_fabric?"),
        ("flows flowtracer_fabric flow_lists", "and no bundled list of flows of that name"),
    ],
)
def test_wrong_names_get_a_suggestion(arguments, message, run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "d.yaml").touch()
    result = run(*arguments.split())
    assert (result.code, result.out) == (2, "")
    before, _, after = message.rpartition(".*")
    assert result.err.startswith(before)
    assert after in result.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("optimise x", "optimize"),
        ("swep run x", "sweep"),
        ("sweep shwo x", "show"),
        ("list workload", "workloads"),
        ("optimize 08_rails --jsn", "--json"),
        ("sweep show r --paretto", "--pareto"),
        ("check 08_rails --polcy=ecmp", "--policy"),
    ],
)
def test_wrong_commands_and_flags_get_a_suggestion(arguments: str, meant: str, run) -> None:
    result = run(*arguments.split())
    assert (result.code, result.out) == (2, "")
    assert result.err.endswith(f"; did you mean {meant}?\n")


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        ("optimize 0e_rails_2to1 --set global_batch=x", "0e_rails_2to1: --set global_batch: got"),
        ("check 0e_rails_2to1 --set parallelism.tp=3", "0e_rails_2to1:3:14: parallelism: got tp 3"),
        ("report 08_rails@1,2,3 -o r --set npu=[]", "08_rails: --set npu: got"),
    ],
)
def test_messages_name_a_bundled_plan_as_it_was_written(arguments, begins, run) -> None:
    """And not the folder that it is installed in; a path stays the path that it is."""
    result = run(*arguments.split())
    assert (result.code, result.err.startswith(begins)) == (2, True), result.err
    path = str(example("0e_rails_2to1"))
    if "optimize" in arguments:
        assert run("optimize", path, "--set", "global_batch=x").err.startswith(f"{path}: --set")


def test_a_path_to_nothing_names_the_bundled_file() -> None:
    assert given_file("/no/such/08_rails.yaml") == "/no/such/08_rails.yaml"
    with pytest.raises(DataNotFound, match="write 08_rails"):
        given_file("plans/08_rails.yaml")


def test_bash_completes_commands_names_and_paths(run, tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(run("completion", "bash").out)
    subprocess.run(["bash", "-n", str(script)], check=True)
    page = (ROOT / "docs/howto/completion.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"```bash\n(.*)\n```", page)
    (tmp_path / "tapers").mkdir()
    (tmp_path / "taps.yaml").touch()
    words = {
        "optimi": ["optimize"],
        "optimize 0e": ["0e_rails_2to1"],
        "optimize tap": ["tapers", "taps.yaml"],
        "sweep show tap": ["tapers"],
        "sweep design tap": ["tapers"],
        "sweep run 13_tapers -o tap": ["tapers"],
        "sweep show tapers --html tap": ["tapers", "taps.yaml"],
        "report tap": ["tapers", "taps.yaml"],
        "report 0e": ["0e_rails_2to1"],
    }
    asked = [line.replace("libra-planner completion bash", f"cat {script}")]
    for one in words:
        asked += [f"COMP_WORDS=(libra-planner {one}); COMP_CWORD={len(one.split())}"]
        asked += ["_shtab_libra_planner; echo ${COMPREPLY[@]}"]
    said = subprocess.check_output(["bash", "-c", "; ".join(asked)], text=True, cwd=tmp_path)
    assert [sorted(one.split()) for one in said.splitlines()] == list(words.values())
    for shell in ("zsh", "fish"):
        told = run("completion", shell).out
        assert "0b_bill" in told
        assert re.search(r"run directory:_files -/|__fish_complete_directories.*run direc", told)
