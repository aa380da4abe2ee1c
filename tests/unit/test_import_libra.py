"""``import libra``: what it writes reads back, and what it refuses to write over."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from libra_planner.reading.document import read_document
from tests.oracles.libra_tables import optima, write_files

ROW = next(row for row in optima() if row["id"] == "100")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return write_files(tmp_path, ROW)


def _edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


@pytest.mark.parametrize("tier", ["1e5", "0o17", "no", "null", "a: b", "日本", "- x", "#1"])
def test_names_of_any_kind_read_back(tier: str, files: list[str], tmp_path: Path, run) -> None:
    quoted = json.dumps(tier, ensure_ascii=False)
    _edit(tmp_path, "n.yml", "InterNode", quoted)
    _edit(tmp_path, "m.yml", "InterNode", quoted)
    _edit(tmp_path, "w.txt", "softmax1", tier.replace(" ", ""))
    plan = tmp_path / "plan.yaml"
    assert run("import", "libra", *files, "-o", plan).code == 0
    assert read_document(plan).value["fabric"]["tiers"][2] == tier
    result = run("optimize", plan, "--json", "--set", 'constraints=["total == 100 GB/s"]')
    assert result.code == 0, result.err
    assert result.payload["step_time_s"] == pytest.approx(float(ROW["optimum"]) * 1e-9)


def test_all_faults_of_all_files_at_once(files: list[str], tmp_path: Path, run) -> None:
    _edit(tmp_path, "n.yml", "Ring, FullyConnected", "Rng, [FullyConnected]")
    _edit(tmp_path, "c.yml", "4, 4, -1, -1", "4, 0, -1, true")
    _edit(tmp_path, "m.yml", "2.00001", "free")
    _edit(tmp_path, "w.txt", "K1 -1 9375000", "K1 -1 soon")
    result = run("import", "libra", *files, "-o", tmp_path / "plan.yaml")
    assert result.code == 2
    lines = result.err.splitlines()
    for file, n_faults in (("n.yml", 2), ("c.yml", 4), ("m.yml", 1), ("w.txt", 1)):
        assert sum(line.startswith(str(tmp_path / file)) for line in lines) == n_faults, lines
    assert not (tmp_path / "plan.yaml").exists()


def test_a_fabric_of_too_many_npus_has_a_place(files: list[str], tmp_path: Path, run) -> None:
    _edit(tmp_path, "n.yml", "32 ]", "999999999999 ]")
    result = run("import", "libra", *files, "-o", tmp_path / "plan.yaml")
    assert result.code == 2
    assert f"{tmp_path}/n.yml:2:12: NpusCount: got" in result.err


def test_it_never_writes_over_its_inputs(files: list[str], tmp_path: Path, run) -> None:
    before = (tmp_path / "n.yml").read_text()
    result = run("import", "libra", *files, "-o", tmp_path / "n.yml")
    assert result.code == 2
    assert "got an input file as output" in result.err
    assert (tmp_path / "n.yml").read_text() == before


def test_it_never_replaces_a_pipe_nor_waits_for_its_reader(
    files: list[str], tmp_path: Path, run
) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    result = run("import", "libra", *files, "-o", pipe)
    assert result.code == 2
    assert "a pipe or device that nobody reads" in result.err
    assert pipe.is_fifo()
    assert sorted(p.name for p in tmp_path.glob("*pipe*")) == ["pipe.yaml"]


@pytest.mark.parametrize("output", ["", ".", "/", "no/such/folder/plan.yaml"])
def test_paths_that_are_no_files(output: str, files: list[str], run) -> None:
    result = run("import", "libra", *files, "-o", output)
    assert result.code == 2
    assert "Traceback" not in result.err


def test_importing_twice_is_the_same_as_once(files: list[str], tmp_path: Path, run) -> None:
    plan = tmp_path / "plan.yaml"
    run("import", "libra", *files, "-o", plan)
    first = plan.read_bytes()
    assert run("import", "libra", *files, "-o", plan).code == 0
    assert plan.read_bytes() == first
    assert list(tmp_path.glob("*.bak")) == []


def test_an_edited_plan_is_kept_when_it_is_imported_again(
    files: list[str], tmp_path: Path, run
) -> None:
    plan = tmp_path / "plan.yaml"
    run("import", "libra", *files, "-o", plan)
    edited = plan.read_text().replace("constraints: []", "constraints: [total == 5 GB/s]")
    plan.write_text(edited)
    result = run("import", "libra", *files, "-o", plan)
    assert result.code == 0
    assert f"Kept what was there as {plan}.bak." in result.err
    assert (tmp_path / "plan.yaml.bak").read_text() == edited
