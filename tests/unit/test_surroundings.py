"""What the machine does to a command: paths, permissions, pipes, disks; one line, exit 2."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from libra_planner.cli.streams import exit_code_of
from tests.conftest import Outcome

ROOT = Path(__file__).parents[2]
NOT_UTF_8 = os.fsdecode(b"a\xffb")
TOO_LONG = "x" * 300


def _command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "libra_planner", *map(str, arguments)]


def _ran(*arguments: str | Path, **settings: object) -> Outcome:
    """A command in a process of its own, which must end by itself."""
    found = subprocess.run(  # type: ignore[call-overload]
        _command(*arguments), capture_output=True, text=True, timeout=60, check=False, **settings
    )
    return Outcome(found.returncode, found.stdout, found.stderr)


def _failed(error: BaseException, monkeypatch: pytest.MonkeyPatch, run, plan) -> Outcome:
    def raising(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("libra_planner.cli.design.open_plan", raising)
    return run("evaluate", plan(), "--bandwidth", "1")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "there/x"),
            "there/x: got 'Permission denied'; allow it with chmod, or give another path",
        ),
        (OSError(errno.ELOOP, "Too many", "x"), "x: got 'Too many'; remove the loop of symbolic"),
        (OSError(errno.ENAMETOOLONG, "File name too long", b"x"), "x: got 'File name too long'; "),
        (OSError("odd"), "{plan}: got 'odd'; check the path"),
        (RuntimeError("Symlink loop from '/a/b'"), "/a/b: got a loop of symbolic links; remove"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "no"), "{plan}: got bytes that are not UTF-8"),
        (MemoryError(), "{plan}: got too little memory; "),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "{plan}: got 'Broken pipe'"),
    ],
)
def test_what_the_system_refuses_is_one_line(
    error: BaseException, message: str, monkeypatch, run, plan
) -> None:
    result = _failed(error, monkeypatch, run, plan)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(message.format(plan=plan()))
    assert result.err.count("\n") == 1


def test_our_own_faults_keep_their_traceback_and_ask_for_a_report(monkeypatch, run, plan) -> None:
    result = _failed(ZeroDivisionError("of ours"), monkeypatch, run, plan)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Traceback (most recent call last):\n")
    *_, error, last = result.err.splitlines()
    assert error == "ZeroDivisionError: of ours"
    assert last.startswith("libra-planner: this is a fault of libra-planner, not of your input")
    assert "please report it with the command, the plan and the lines above" in last


def test_a_working_directory_that_is_gone_is_named(monkeypatch, tmp_path: Path, capsys) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    error = FileNotFoundError(errno.ENOENT, "No such file or directory")
    assert exit_code_of(error, [], None) == 2
    assert capsys.readouterr().err.startswith(
        "libra-planner: got a working directory that was removed, expected one that is there; "
    )


@pytest.mark.parametrize(
    "command",
    [
        "optimize {odd}",
        "report {odd} -o made",
        "report {plan}@{odd} -o made",
        "report {plan} -o {odd}/x",
        "sweep show {odd}",
        "sweep run {sweep} -o {odd}/x",
        "sweep design {odd} 0 -o x.yaml",
        "collective --csv {odd}",
        "import libra --network {odd} --workload {odd} --communicator {odd} --cost-model {odd} "
        "-o {odd}",
    ],
)
@pytest.mark.parametrize("odd", [TOO_LONG, "loop"], ids=["long", "loop"])
def test_paths_that_no_system_has(
    command: str, odd: str, monkeypatch, tmp_path: Path, run, plan
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "pool")
    (tmp_path / "pool").symlink_to(tmp_path / "loop")
    names = {"odd": odd, "plan": plan(), "sweep": ROOT / "examples" / "10_budgets.yaml"}
    result = run(*(part.format(**names) for part in command.split()))
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert "fault of libra-planner" not in result.err


@pytest.mark.parametrize(
    "command",
    [
        "optimize {plan} --json",
        "optimize {plan} --set constraints.0={odd}",
        "sweep show {odd} --sql {odd}",
        "report {plan} -o {folder}/{odd}",
        "report {plan} -o {folder} --baseline {odd}",
    ],
)
def test_bytes_that_are_not_utf_8(command: str, tmp_path: Path, run, plan) -> None:
    path = plan(name=f"{NOT_UTF_8}.yaml")
    names = {"odd": NOT_UTF_8, "plan": path, "folder": tmp_path / "made"}
    result = run(*(part.format(**names) for part in command.split()))
    assert result.code in (0, 2)
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "command", ["optimize {pipe}", "sweep plan {pipe}", "report {plan}@{pipe}.json -o made"]
)
def test_a_named_pipe_is_not_waited_for(command: str, tmp_path: Path, plan) -> None:
    for name in ("pipe", "pipe.json"):
        os.mkfifo(tmp_path / name)
    names = {"pipe": tmp_path / "pipe", "plan": plan()}
    result = _ran(*(part.format(**names) for part in command.split()))
    assert result.code == 2
    assert result.err.endswith(": got a named pipe, expected a file; save it to a file\n")


def test_a_pipe_of_the_shell_is_read_once(plan, run) -> None:
    with plan().open() as file:
        assert (
            _ran("evaluate", "/dev/stdin", "--bandwidth", "100,100,100,100", stdin=file).code == 0
        )
    reading, writing = os.pipe()
    os.write(writing, plan().read_bytes())
    os.close(writing)
    try:
        path = f"/dev/fd/{reading}"
        assert run("evaluate", path, "--bandwidth", "100,100,100,100").code == 0
        result = run("evaluate", path, "--bandwidth", "100,100,100,100")
        assert result.code == 2
        assert result.err.startswith(f"{path}: got nothing from a pipe")
    finally:
        os.close(reading)


def _without_powers() -> None:
    """Let the superuser be held by permissions as everybody else is."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
@pytest.mark.parametrize(
    "command",
    ["report {plan} -o {locked}/made", "report {locked}/run:0 -o made", "sweep show {locked}/run"],
)
def test_a_folder_that_may_not_be_read(command: str, tmp_path: Path, plan) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0)
    names = {"locked": locked, "plan": plan()}
    try:
        result = _ran(
            *(part.format(**names) for part in command.split()), preexec_fn=_without_powers
        )
    finally:
        locked.chmod(0o700)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"{locked}")
    assert "Permission denied" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("command", ["--version", "--help", "optimize --help"])
def test_help_that_cannot_be_written(command: str) -> None:
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            _command(*command.split()), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 2
    assert found.stderr == "libra-planner: cannot write the result: No space left on device\n"
