"""Files that commands write: behind links, into devices and pipes, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from libra_planner.errors import DataNotFound
from libra_planner.files import output, write_files
from libra_planner.reading.bundled import example, folder
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from libra_planner.tui.disk.files import recent_plans, remember, save_plan
from tests.conftest import Outcome

Run = Callable[..., Outcome]

FLOWS = folder("examples") / "flows"
RATES = ["flows", FLOWS / "flowtracer_fabric.yaml", FLOWS / "flowtracer_flows.csv", "--rates"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("outputs")
    base = yaml.safe_load(example("01_gpt3_4d").read_text()) | {
        "constraints": ["total == {b} GB/s"]
    }
    (here / "sweep.yaml").write_text(yaml.safe_dump({"base": base, "axes": {"b": [100, 200]}}))
    run_sweep(load_sweep(here / "sweep.yaml"), here / "run")
    return here / "run"


def _link(tmp_path: Path, name: str, *, content: str | None = "before\n") -> tuple[Path, Path]:
    """A link and the file behind it, in another folder, two links away."""
    (tmp_path / "elsewhere").mkdir()
    file, link = tmp_path / "elsewhere" / name, tmp_path / name
    if content is not None:
        file.write_text(content)
    (tmp_path / "between").symlink_to(file)
    link.symlink_to("between")
    return link, file


@pytest.mark.parametrize("content", ["before\n", None], ids=["a file", "nothing yet"])
def test_rates_are_written_behind_links(content: str | None, run: Run, tmp_path: Path) -> None:
    link, file = _link(tmp_path, "rates.csv", content=content)
    assert run(*RATES, link).code == 0
    assert link.is_symlink()
    assert file.read_text().startswith("flow_id,")
    kept = [path.read_text() for path in tmp_path.rglob("*.bak")]
    assert kept == ([] if content is None else [content])


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("rows.csv", ["sweep", "show", "DIR", "--csv"]),
        ("front.svg", ["sweep", "show", "DIR", "--plot"]),
        ("page.html", ["sweep", "show", "DIR", "--html"]),
        ("row.yaml", ["sweep", "design", "DIR", "1", "--force", "-o"]),
    ],
)
def test_results_of_a_sweep_are_written_behind_links(
    name: str, command: list[str], run: Run, directory: Path, tmp_path: Path
) -> None:
    link, file = _link(tmp_path, name)
    words = [str(directory) if word == "DIR" else word for word in command]
    assert run(*words, link).code == 0
    assert link.is_symlink()
    assert file.read_text() != "before\n"


def test_reports_are_written_behind_links(run: Run, tmp_path: Path) -> None:
    link, file = _link(tmp_path, "report.md")
    assert (
        run("report", example("02_performance_per_cost"), "-o", tmp_path, "--formats", "md").code
        == 0
    )
    assert link.is_symlink()
    assert file.read_text().startswith("# ")


def test_plans_and_what_the_cockpit_remembers_are_written_behind_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, file = _link(tmp_path, "plan.yaml")
    save_plan(example("01_gpt3_4d"), ("objective=cost",), link)
    assert link.is_symlink()
    assert "objective: cost" in file.read_text()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "libra-planner").mkdir()
    (tmp_path / "libra-planner" / "recent.json").symlink_to(tmp_path / "kept.json")
    remember("/a.yaml")
    assert (tmp_path / "libra-planner" / "recent.json").is_symlink()
    assert list(recent_plans()) == ["/a.yaml"]


def test_links_that_lead_to_themselves_are_named(run: Run, tmp_path: Path) -> None:
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    outcome = run(*RATES, loop)
    assert outcome.code == 2
    assert outcome.err.startswith(f"{loop}: got 'Too many levels of symbolic links'")
    assert loop.is_symlink()


def test_devices_are_written_into(run: Run, tmp_path: Path) -> None:
    link = tmp_path / "null.csv"
    link.symlink_to(os.devnull)
    for path in (Path(os.devnull), link):
        outcome = run(*RATES, path)
        assert outcome.code == 0
        assert "Kept" not in outcome.err
    assert Path(os.devnull).is_char_device()
    assert link.is_symlink()
    assert list(tmp_path.iterdir()) == [link]


def test_standard_output_is_written_into(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    for path in (Path("/dev/stdout"), tmp_path / "link", Path("/dev/fd/1")):
        print("before", flush=False)
        assert write_files({path: "text\n"}) == []
        assert capfd.readouterr().out == "before\ntext\n"
    assert Path("/dev/stdout").is_symlink()


def test_a_pipe_is_written_into(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        assert run(*RATES, pipe).code == 0
        assert reader.read().startswith("flow_id,")
    assert pipe.is_fifo()


def test_permissions_stay_and_copies_have_them_too(tmp_path: Path) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text("old")
    file.chmod(0o600)
    assert write_files({file: "new"}) == [tmp_path / "secret.yaml.bak"]
    assert [path.stat().st_mode & 0o777 for path in sorted(tmp_path.iterdir())] == [0o600, 0o600]


def test_a_write_that_fails_leaves_all_as_it_was(tmp_path: Path) -> None:
    kept = tmp_path / "a.csv"
    kept.write_text("old")
    with pytest.raises(DataNotFound, match=r"missing/b.csv: got 'No such file"):
        write_files({kept: "new", tmp_path / "missing" / "b.csv": "new"})
    with pytest.raises(TypeError), output(kept) as file:
        file.writelines([b"half of it", "no bytes"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert kept.read_text() == "old"


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match="/dev/full: got 'No space left on device'"):
        write_files({Path("/dev/full"): "text"})


def test_a_dash_is_stdout_which_has_nothing_else(
    run: Run, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rest = ["sweep", "design", directory, "1", "-o"]
    for name, command in (
        ("rates.csv", [*RATES[:-1], "--seed", "1", "--rates"]),
        ("all.csv", ["sweep", "show", directory, "--csv"]),
        ("row.yaml", rest),
    ):
        assert run(*command, name).code == 0
        outcome = run(*command, "-")
        assert (outcome.code, outcome.out) == (0, (tmp_path / name).read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.csv", "rates.csv", "row.yaml"]


def test_rates_of_one_routing_of_many_on_stdout(run: Run) -> None:
    outcome = run(*RATES, "-", "--seeds", "2", "--policy", "ecmp")
    assert outcome.out.startswith("flow_id,rate_GBps,finish_s\n")
    assert outcome.err == "stdout has the rates of seed 0.\n"


def test_a_folder_that_cannot_be_made_is_called_that(run) -> None:
    result = run("report", "01_gpt3_4d", "-o", "/proc/nowhere", "--formats", "md")
    said = (
        "/proc/nowhere: got a folder that cannot be made (No such file or directory), expected a "
    )
    assert (result.code, said in result.err) == (2, True)
