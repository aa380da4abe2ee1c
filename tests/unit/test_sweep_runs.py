"""Runs of sweeps: resumed after kill -9, dead workers, refusals; nothing lost, nothing twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
import yaml

import libra_planner as lp
from libra_planner.errors import DataNotFound, SpecError
from libra_planner.reading.bundled import folder as bundled_folder
from libra_planner.search.best import SearchRun
from libra_planner.sweeps import runner
from libra_planner.sweeps import workers as pool
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.runner import Progress, manifest_of, run_sweep
from libra_planner.sweeps.spec import Sweep, load_sweep
from libra_planner.sweeps.store import RunDirectory
from libra_planner.sweeps.template import design_plan
from tests.conftest import Outcome

N_PARTS = 24
SWEEP = {
    "base": "01_gpt3_4d",
    "axes": {"budget": {"from": 100, "to": 579, "step": 1}},
    "set": {"constraints": ["total == {budget} GB/s", "pod <= 40 GB/s"]},
    "designs_per_part": 20,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(SWEEP))
    return path


@pytest.fixture
def sweep(file: Path) -> Sweep:
    return load_sweep(file)


def _command(file: Path, folder: Path, *more: str) -> list[str]:
    where = ["sweep", "run", str(file), "-o", str(folder), "--json-progress", *more]
    return [sys.executable, "-m", "libra_planner", *where]


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def _check(folder: Path, reference: Path) -> None:
    """The very files of a run that nothing happened to, and nothing else."""
    assert _bytes(folder) == _bytes(reference)
    rows = [pq.read_table(path).column("row").to_pylist() for path in sorted(folder.glob("part-*"))]
    assert [row for part in rows for row in part] == list(range(480))
    assert not list(folder.glob(".part-*"))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(SWEEP))
    run_sweep(load_sweep(path), folder / "run")
    assert len(_bytes(folder / "run")) == N_PARTS
    return folder / "run"


@pytest.fixture
def folder(reference: Path, tmp_path: Path) -> Path:
    """A finished run of one's own."""
    return Path(shutil.copytree(reference, tmp_path / "run"))


def test_a_run_killed_at_random_moments_goes_on(
    file: Path, tmp_path: Path, reference: Path
) -> None:
    """Kills after a random number of parts and some time, then a run to the end."""
    folder, rng = tmp_path / "run", random.Random(5)
    for workers in ("0", "1", "0"):
        process = subprocess.Popen(
            _command(file, folder, "--workers", workers), stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(rng.randint(2, 4)):
            process.stdout.readline()
        time.sleep(rng.uniform(0, 0.01))
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        _, alive = psutil.wait_procs(children, timeout=10)
        assert not alive  # Workers die with their parent.
    before = len(_bytes(folder))
    assert 0 < before < N_PARTS
    progress = run_sweep(load_sweep(file), folder)
    assert progress.n_before + progress.n_solved == 480
    _check(folder, reference)


def test_a_killed_worker_is_replaced(sweep: Sweep, tmp_path: Path, reference: Path) -> None:
    killed = []

    def watch(progress: Progress) -> None:
        if progress.n_parts_done in (2, 9):
            children = psutil.Process().children()
            victim = next(one for one in children if "spawn_main" in " ".join(one.cmdline()))
            victim.kill()
            killed.append(victim.pid)

    run_sweep(sweep, tmp_path / "run", n_workers=2, watch=watch)
    assert len(killed) == 2
    _check(tmp_path / "run", reference)


def test_a_part_that_kills_its_workers_ends_the_run(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_serve", _dies)
    monkeypatch.setattr(pool, "MOST_TRIES", 2)
    with pytest.raises(SpecError, match="got 2 workers killed over part 0"):
        run_sweep(sweep, tmp_path / "run", n_workers=1)


def _dies(connection: object, *_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_interrupt_keeps_what_is_done(file: Path, tmp_path: Path, reference: Path) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(
        _command(file, folder, "--workers", "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in range(3):
        line = process.stdout.readline()
    assert json.loads(line)["n_parts_done"] == 2
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run the same command again" in err
    assert "Traceback" not in err
    assert 2 <= len(_bytes(folder)) < N_PARTS
    run_sweep(load_sweep(file), folder)
    _check(folder, reference)


def test_an_interrupt_while_workers_start_is_one_line(file: Path, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group: workers that still import say nothing."""
    process = subprocess.Popen(
        _command(file, tmp_path / "run", "--workers", "2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # Of the start, right before workers are started.
    while len(psutil.Process(process.pid).children()) < 2:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "interrupted"


def test_an_interrupt_during_a_start_comes_after_it() -> None:
    started = []

    def start() -> None:
        with pool._interrupts_held():
            assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
            os.kill(os.getpid(), signal.SIGINT)
            started.append(True)

    with pytest.raises(KeyboardInterrupt):
        start()
    assert started == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_broken_and_missing_parts_are_done_again(
    sweep: Sweep, folder: Path, reference: Path
) -> None:
    (folder / "part-000003.parquet").write_bytes(b"PAR1 cut off")
    (folder / "part-000004.parquet").write_bytes(_bytes(folder)["part-000004.parquet"][:-10])
    (folder / "part-000005.parquet").unlink()
    (folder / ".part-xyz").write_bytes(b"left by a killed run")
    progress = run_sweep(sweep, folder)
    assert (progress.n_before, progress.n_solved) == (420, 60)
    _check(folder, reference)


def test_a_part_in_the_place_of_another_is_done_again(
    sweep: Sweep, folder: Path, reference: Path
) -> None:
    (folder / "part-000003.parquet").write_bytes(_bytes(folder)["part-000007.parquet"])
    progress = run_sweep(sweep, folder)
    assert (progress.n_before, progress.n_solved) == (460, 20)
    _check(folder, reference)


def test_a_part_of_another_sweep_is_named_and_done_again(
    file: Path, sweep: Sweep, folder: Path, tmp_path: Path, reference: Path
) -> None:
    """Its rows are the same, its figures are not."""
    other = tmp_path / "other.yaml"
    other.write_text(file.read_text().replace("pod <= 40", "pod <= 30"))
    run_sweep(load_sweep(other), tmp_path / "other")
    (folder / "part-000003.parquet").write_bytes(_bytes(tmp_path / "other")["part-000003.parquet"])
    for ask in (Results.at(folder).everything, lambda: design_plan(RunDirectory(folder), 61)):
        with pytest.raises(SpecError, match=r"part-000003\.parquet: got a part of another sweep"):
            ask()
    assert run_sweep(sweep, folder).n_solved == 20
    _check(folder, reference)


@pytest.mark.parametrize(
    ("old", "new"), [("total ==", "total <="), ('"n_designs": 4', '"n_designs": 3')]
)
def test_a_changed_manifest_is_refused(old: str, new: str, sweep: Sweep, folder: Path) -> None:
    manifest = folder / "_manifest.json"
    assert old in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(old, new))
    for ask in (
        lambda: Results.at(folder),
        lambda: design_plan(RunDirectory(folder), 0),
        lambda: run_sweep(sweep, folder),
    ):
        with pytest.raises(DataNotFound, match=r"got a changed _manifest\.json"):
            ask()


def _forged(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A manifest that was changed and given the checksum of what it says now."""
    file = folder / "_manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["checksum"]
    change(manifest)
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    checksum = hashlib.sha256(text.encode()).hexdigest()
    file.write_text(json.dumps(manifest | {"checksum": checksum}))


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("spec"),
        lambda manifest: manifest.pop("n_designs"),
        lambda manifest: manifest.update(schema=[1]),
        lambda manifest: manifest.update(n_parts="many"),
        lambda manifest: manifest["spec"].update(axes=[["budget", [1]]]),
        lambda manifest: manifest["spec"].update(axes=[["budget", [1], {"x": []}]]),
        lambda manifest: manifest["spec"].update(designs_per_part=0),
        lambda manifest: manifest["spec"].update(base=[]),
        lambda manifest: manifest["spec"].update(slots=[[["constraints", 99], "text", None]]),
        lambda manifest: manifest["spec"].update(slots=[[["workload"], "axis", "nobody"]]),
    ],
)
def test_a_forged_manifest_is_refused(
    change: Callable[[dict[str, Any]], object], run: Callable[..., Outcome], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump({**SWEEP, "axes": {"budget": [300]}}))
    run_sweep(load_sweep(file), folder)
    _forged(folder, change)
    for command in (
        ("sweep", "show", folder),
        ("sweep", "show", folder, "--csv", "-"),
        ("sweep", "design", folder, "0", "-o", tmp_path / "plan.yaml"),
        ("report", f"{folder}:0", "-o", tmp_path / "made"),
        ("sweep", "run", file, "-o", folder),
    ):
        result = run(*command)
        assert result.code == 2
        assert result.err.startswith(f"{folder}: got a changed _manifest.json (")
        assert result.err.count("\n") == 1


def test_directories_of_earlier_versions_show_and_resume(
    sweep: Sweep, run: Callable[..., Outcome], folder: Path, reference: Path
) -> None:
    (folder / "_manifest.json").rename(folder / "manifest.json")
    shown = run("sweep", "show", folder, "--json")
    assert len(shown.payload["rows"]) == 10
    (folder / "part-000003.parquet").unlink()
    assert run_sweep(sweep, folder).n_solved == 20
    _check(folder, reference)
    assert not (folder / "manifest.json").exists()


@pytest.mark.parametrize("text", ["[" * 30_000, '{"format": ' + "9" * 5000 + "}"])
def test_a_manifest_that_is_none(text: str, run: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "_manifest.json").write_text(text)
    result = run("sweep", "show", tmp_path)
    assert result.code == 2
    assert result.err.startswith(f"{tmp_path}: got no readable _manifest.json")


@pytest.mark.parametrize("where", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_part_damaged_in_the_middle_is_done_again(
    where: float, sweep: Sweep, folder: Path, reference: Path
) -> None:
    """One bit in a page, in its header, or in the footer, of which parquet has no checksum."""
    path = folder / "part-000003.parquet"
    damaged = bytearray(path.read_bytes())
    damaged[int(where * len(damaged))] ^= 4
    path.write_bytes(damaged)
    progress = run_sweep(sweep, folder)
    assert (progress.n_before, progress.n_solved) == (460, 20)
    _check(folder, reference)


def test_another_sweep_never_mixes_in(
    file: Path, sweep: Sweep, folder: Path, tmp_path: Path
) -> None:
    before = _bytes(folder)
    file.write_text(yaml.safe_dump(SWEEP | {"designs_per_part": 30}))
    with pytest.raises(SpecError, match=r"got the directory of another sweep \(different design"):
        run_sweep(load_sweep(file), folder)
    old = manifest_of(sweep) | {"hash": "0", "version": "0.0"}
    RunDirectory(tmp_path / "old").claim(old)
    RunDirectory(tmp_path / "old").part_path(0).touch()  # Without any it is free.
    with pytest.raises(SpecError, match=r"another sweep \(made by version 0.0\)"):
        run_sweep(sweep, tmp_path / "old")
    assert _bytes(folder) == before


def test_a_changed_file_of_the_plan_is_another_sweep(file: Path, tmp_path: Path) -> None:
    book = (bundled_folder("cost-models") / "libra-ispass24.yaml").read_text()
    (tmp_path / "book.yaml").write_text(book)
    plan = yaml.safe_load((bundled_folder("examples") / "01_gpt3_4d.yaml").read_text())
    base = {"base": plan | {"cost_model": "book.yaml"}}
    file.write_text(yaml.safe_dump(SWEEP | base | {"axes": {"budget": [100]}}))
    run_sweep(load_sweep(file), tmp_path / "run")
    (tmp_path / "book.yaml").write_text(book.replace("link: 7.8", "link: 8.8"))
    with pytest.raises(SpecError, match=r"different files that the plan names \(book\.yaml\)"):
        run_sweep(load_sweep(file), tmp_path / "run")


def test_directories_that_are_refused(sweep: Sweep, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(SpecError, match=r"got a directory with other files \(thesis.tex\)"):
        run_sweep(sweep, folder)
    with pytest.raises(DataNotFound, match="got 'Not a directory'"):
        run_sweep(sweep, folder / "thesis.tex" / "run")
    (tmp_path / "run").mkdir()
    with (
        RunDirectory(tmp_path / "run").locked(),
        pytest.raises(SpecError, match="got a directory that another run is writing to"),
    ):
        run_sweep(sweep, tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]


@pytest.mark.parametrize("n_done", [3, N_PARTS])
def test_a_directory_that_is_removed_in_mid_run_is_no_result(
    n_done: int, sweep: Sweep, tmp_path: Path
) -> None:
    folder = tmp_path / "run"

    def watch(progress: Progress) -> None:
        if progress.n_parts_done == n_done:
            shutil.rmtree(folder)

    with pytest.raises(DataNotFound, match=r"parts removed while|got 'No such file") as caught:
        run_sweep(sweep, folder, watch=watch)
    assert "run the same command again" in str(caught.value)


@pytest.mark.parametrize("name", [os.fsdecode(b"a\xffb"), "back\\slash", "a'b [c]*", "new\nline"])
def test_directories_of_any_name(name: str, run: Callable[..., Outcome], tmp_path: Path) -> None:
    """Results there are found again, read, and turned into plans."""
    file, folder = tmp_path / "sweep.yaml", tmp_path / name
    budgets = {**SWEEP, "axes": {"budget": [300, 400, 500]}, "designs_per_part": 1}
    file.write_text(yaml.safe_dump(budgets))
    assert run("sweep", "run", file, "-o", folder).code == 0
    again = run("sweep", "run", file, "-o", folder)
    assert (again.code, " (3 were there)\n" in again.out) == (0, True)
    shown = run("sweep", "show", folder, "--sql", "SELECT row, budget FROM designs", "--json")
    assert [row["budget"] for row in shown.payload["rows"]] == [300, 400, 500]
    assert run("sweep", "design", folder, "1", "-o", tmp_path / "row.yaml").code == 0
    assert "total == 400 GB/s" in (tmp_path / "row.yaml").read_text()
    secret = f"SELECT * FROM read_text('{file}')"
    assert run("sweep", "show", folder, "--sql", secret).code == 2


def test_a_csv_that_cannot_be_written_leaves_no_file(
    tmp_path: Path, file: Path, folder: Path
) -> None:
    show = ["sweep", "show", str(folder), "--csv", str(tmp_path / "all.csv")]
    result = subprocess.run(
        [sys.executable, "-m", "libra_planner", *show],
        capture_output=True,
        text=True,
        preexec_fn=_small_files,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{tmp_path / 'all.csv'}: got 'File too large'")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "sweep.yaml"]


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_full_disk_ends_in_one_line(workers: str, file: Path, tmp_path: Path) -> None:
    """No file may grow beyond 10 kB: the manifest fits, no part does."""
    folder = tmp_path / "run"
    file.write_text(yaml.safe_dump(SWEEP | {"designs_per_part": 240}))
    result = subprocess.run(
        _command(file, folder, "--workers", workers),
        capture_output=True,
        text=True,
        preexec_fn=_small_files,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert result.returncode == 2, result.stderr
    assert result.stderr == (
        f"{folder}: got 'File too large', expected a directory to write results to; make room or "
        f"give another directory, and run the same command again\n"
    )
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "_manifest.json"]
    assert run_sweep(load_sweep(file), folder).n_solved == 480


@pytest.fixture
def scheduler() -> Iterator[tuple[str, Callable[[], subprocess.Popen[bytes]]]]:
    """A dask scheduler as a process of its own, and what starts workers for it."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]],
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        processes.append(process)
        return process

    port = _free_port()
    start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show")
    address = f"tcp://127.0.0.1:{port}"
    more = ("--nworkers", "1", "--nthreads", "1", "--no-dashboard", "--no-nanny")
    yield address, lambda: start("worker", address, *more, "--host", "127.0.0.1")
    for process in processes:
        process.kill()
    for process in processes:
        process.communicate()


def _free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_cluster_loses_a_worker_and_nothing_else(
    sweep: Sweep,
    tmp_path: Path,
    reference: Path,
    scheduler: tuple[str, Callable[[], subprocess.Popen[bytes]]],
) -> None:
    address, start_worker = scheduler
    workers = [start_worker(), start_worker()]

    def watch(progress: Progress) -> None:
        if progress.n_parts_done == 3:
            workers[0].kill()

    run_sweep(sweep, tmp_path / "run", scheduler=address, watch=watch)
    assert workers[0].wait(10) == -signal.SIGKILL
    _check(tmp_path / "run", reference)


def test_a_scheduler_that_dies_in_mid_run_loses_nothing(
    sweep: Sweep,
    file: Path,
    tmp_path: Path,
    reference: Path,
    scheduler: tuple[str, Callable[[], subprocess.Popen[bytes]]],
) -> None:
    """In a process of its own: what distributed logs on the way is not shown either."""
    address, start_worker = scheduler
    start_worker()
    port = int(address.rpartition(":")[2])
    (owner,) = (one.pid for one in psutil.Process().children() if f"{port}" in one.cmdline())
    command = _command(file, tmp_path / "run", "--scheduler", address)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(3):
            process.stdout.readline()
        os.kill(owner, signal.SIGKILL)
        errors = process.stderr.read()
        assert process.wait(timeout=60) == 2
    assert errors.startswith(f"{address}: got no more answers from the scheduler (")
    assert errors.endswith("run the same command again: what is done is kept\n")
    assert errors.count("\n") == 1
    assert run_sweep(sweep, tmp_path / "run").n_before >= 2
    _check(tmp_path / "run", reference)


def test_a_cluster_without_workers_says_so(
    sweep: Sweep,
    tmp_path: Path,
    reference: Path,
    scheduler: tuple[str, Callable[[], subprocess.Popen[bytes]]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("libra_planner.sweeps.workers.WORKERS_S", 0.2)
    address, start_worker = scheduler
    timer = threading.Timer(4.0, start_worker)
    timer.start()
    run_sweep(sweep, tmp_path / "run", scheduler=address)
    timer.join()
    said = f"{address}: no workers yet; the sweep begins when one joins\n"
    assert said in capfd.readouterr().err
    _check(tmp_path / "run", reference)


@pytest.mark.parametrize(
    "address", ["nonsense", "localhost:8786", "tcp://", "tcp://host", "http://h:1"]
)
def test_what_is_no_address(
    address: str, run: Callable[..., Outcome], file: Path, tmp_path: Path
) -> None:
    outcome = run("sweep", "run", file, "-o", tmp_path / "run", "--scheduler", address)
    assert outcome.code == 2
    assert outcome.err == (
        f"--scheduler: got '{address}', expected the address of a dask scheduler, such as "
        f"tcp://host:8786\n"
    )


def test_a_scheduler_that_is_not_there(
    run: Callable[..., Outcome], file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libra_planner.sweeps.workers.CONNECT_S", 0.5)
    address = f"tcp://127.0.0.1:{_free_port()}"
    outcome = run("sweep", "run", file, "-o", tmp_path / "run", "--scheduler", address)
    assert outcome.code == 2
    assert outcome.err.startswith(f"--scheduler: got '{address}'")


def test_a_changed_file_inside_a_map_of_an_axis_is_another_sweep(tmp_path: Path) -> None:
    """The workloads of a group, which an axis gives as a list of maps."""
    own = (bundled_folder("workloads") / "gpt3-libra.yaml").read_text()
    (tmp_path / "own.yaml").write_text(own)
    plan = yaml.safe_load((bundled_folder("examples") / "03_group.yaml").read_text())
    other = {**plan["workloads"][0], "workload": "./own.yaml"}
    groups = [plan["workloads"], [other, *plan["workloads"][1:]]]
    text = yaml.safe_dump({"base": plan, "axes": {"workloads": groups}})
    (tmp_path / "sweep.yaml").write_text(text)
    sweep = load_sweep(tmp_path / "sweep.yaml")
    run_sweep(sweep, tmp_path / "run")
    (tmp_path / "own.yaml").write_text(f"{own}\n# changed\n")
    with pytest.raises(SpecError, match=r"different files"):
        run_sweep(load_sweep(tmp_path / "sweep.yaml"), tmp_path / "run")


@pytest.mark.parametrize("begins", ["search", "later"])
def test_an_interrupted_search_leaves_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    """Ctrl-C before or after the first strategy: no row says that strategies are not proven."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SearchRun, "bound" if begins == "search" else "tighten", interrupted)
    plan = {"base": "0d_llama3_70b", "set": {"parallelism": "auto", "npu": "h100-sxm"}}
    for call in (
        lambda: lp.sweep(plan | {"axes": {"global_batch": [1024]}}, tmp_path / "run"),
        lambda: lp.load_plan("0d_llama3_70b", {"parallelism": "auto"}),
        lambda: lp.load_plan("0d_llama3_70b").search(),
        lambda: lp.load_plan("0d_llama3_70b").search_pareto(3),
        lambda: lp.search(model="llama3-8b", npu="h100-sxm", gpus=16, global_batch=64),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()
    assert not _bytes(tmp_path / "run")


def test_an_interrupt_that_a_library_swallows_leaves_no_part(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = runner.solve_part

    def swallowed(*given: Any) -> Any:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return solve(*given)

    monkeypatch.setattr(runner, "solve_part", swallowed)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, tmp_path / "run")
    assert not _bytes(tmp_path / "run")
