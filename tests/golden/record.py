"""Record what every command prints and writes, and compare two recordings.

Before and after a rebuild, to see that nothing that anybody reads has changed::

    git worktree add /somewhere/old COMMIT
    python -m tests.golden.record --code /somewhere/old --out old
    python -m tests.golden.record --out new
    python -m tests.golden.record --compare old new

Elapsed times, what an estimate looks at while its time lasts, and temporary paths are masked,
nothing else. Workbooks are recorded as their
XML and parquet files as their rows, so that a difference can be read.
"""

from __future__ import annotations

import argparse
import fnmatch
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

ROOT = Path(__file__).parents[2]
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")
_MASKS = (
    (re.compile(r"^(About )\S+ \S+(?= on one core| in [\d,]+ files)", re.M), r"\1<estimate>"),
    (re.compile(r"^Tried: .*", re.M), "Tried: <as many as time allows>"),
    (re.compile(r"about [\d,]+ different designs"), "about <estimate> different designs"),
    (re.compile(r"^([\d,]+) in \S+ \S+, [\d,]+ designs/s$", re.M), r"\1 in <time>, <speed>"),
    (
        re.compile(r'"(core_s|elapsed_s|designs_per_s|left_s)": [^,}\n]+'),
        r'"\1": "<time>"',
    ),
    (  # What ``sweep plan --json`` estimates.
        re.compile(
            r'("core_s": .*\n +"size_bytes": ).*(\n +"statuses": )\{[^}]*\}(.*\n +"n_routed": ).*'
        ),
        r'\1"<estimate>",\2"<as many as time allows>"\3"<estimate>",',
    ),
    (re.compile(r'"checksum": "[0-9a-f]+"'), '"checksum": "<of paths>"'),
)
"""What another run makes anew."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, or compare; the exit code is 1 where a figure or a word differs."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", type=Path, help="folder of the recording")
    parser.add_argument("--code", type=Path, default=ROOT, help="checkout to record; default this")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="such as 'check/*'")
    parser.add_argument("--jobs", type=int, default=2, help="processes; default 2")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"))
    options = parser.parse_args(arguments)
    if options.compare:
        from tests.golden.compare import compare

        return compare(*options.compare, only=options.only)
    if options.out is None:
        parser.error("give --out or --compare")
    record(options.out, options.code.resolve(), only=options.only, n_jobs=options.jobs)
    return 0


def record(out: Path, code: Path, *, only: str = "*", n_jobs: int = 2) -> None:
    """Write one folder for every case."""
    from tests.golden.cases import cases

    chosen = [case for case in cases() if fnmatch.fnmatch(case.name, only)]
    queue: SimpleQueue[Any] = SimpleQueue()
    for case in chosen:
        queue.put(case)
    started, failures = time.monotonic(), []

    def work() -> None:
        server = _Server(code)
        try:
            while True:
                try:
                    case = queue.get_nowait()
                except Empty:
                    return
                begun = time.monotonic()
                try:
                    _record_case(case, out, code, server)
                except Exception as error:
                    failures.append(f"{case.name}: {error!r}")
                elapsed = time.monotonic() - begun
                if elapsed > 5.0:
                    print(f"{elapsed:6.1f} s  {case.name}", file=sys.stderr)
        finally:
            server.end()

    workers = [threading.Thread(target=work) for _ in range(n_jobs)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    print(f"{len(chosen)} cases of {code} in {time.monotonic() - started:.0f} s")
    if failures:
        raise SystemExit("\n".join(failures))


def _record_case(case: Any, out: Path, code: Path, server: _Server) -> None:
    """Run the commands of a case in a new folder, and keep what they say and write."""
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder, target = Path(name) / "work", out / case.name
        shutil.copytree(code / "examples", folder / "examples")
        for file, text in case.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        given = _state(folder)
        found: dict[str, str] = {}
        commands = [("screen", *case.screen)] if case.screen else list(case.commands)
        for number, command in enumerate(commands, 1):
            result, stdout, stderr = server.answer(command, folder)
            found[f"{number}.command"] = f"{shlex.join(command)}\nexit code {result}\n"
            found[f"{number}.out"] = stdout
            found[f"{number}.err"] = stderr
        for path in sorted(folder.rglob("*")):
            relative = str(path.relative_to(folder))
            if path.is_file() and given.get(relative) != _stamp(path):
                found |= {f"files/{key}": text for key, text in _readable(path, relative)}
        if target.exists():
            shutil.rmtree(target)
        for key, text in found.items():
            if text:
                file = target / key
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(_masked(text, folder, code), encoding="utf-8", errors="replace")


def _decoded(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _state(folder: Path) -> dict[str, Any]:
    return {str(p.relative_to(folder)): _stamp(p) for p in folder.rglob("*") if p.is_file()}


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _masked(text: str, folder: Path, code: Path) -> str:
    """The text without what another run or place makes anew."""
    for path, name in ((folder.resolve(), "<work>"), (folder, "<work>"), (code, "<code>")):
        text = text.replace(str(path), name)
    for pattern, other in _MASKS:
        text = pattern.sub(other, text)
    return text


def _readable(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """A written file as texts by name."""
    data = path.read_bytes()
    if path.suffix == ".parquet":
        yield f"{name}.txt", _rows(data)
    elif path.suffix == ".xlsx":
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            for member in book.namelist():
                text = book.read(member).decode("utf-8", "replace")
                yield f"{name}/{member}", text.replace("><", ">\n<")
    elif path.name != ".lock":
        yield name, _decoded(path)


def _rows(data: bytes) -> str:
    """Columns with their types, and every row on a line of its own."""
    from pyarrow import BufferReader
    from pyarrow.parquet import read_table

    table = read_table(BufferReader(data))
    lines = [f"{field.name}: {field.type}" for field in table.schema]
    lines.append(f"metadata: {sorted(map(bytes.decode, table.schema.metadata or {}))}")
    lines += [json.dumps(row, default=str) for row in table.to_pylist()]
    return "\n".join(lines) + "\n"


class _Server:
    """A process with the libraries loaded, from which every command is a fork."""

    def __init__(self, code: Path) -> None:
        surroundings = {
            **{key: value for key, value in os.environ.items() if key != "COLUMNS"},
            **dict.fromkeys(_ONE_THREAD, "1"),
            "PYTHONPATH": str(code),
            "PYTHONHASHSEED": "0",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", str(code)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=surroundings,
            cwd=tempfile.gettempdir(),
            text=True,
        )

    def answer(self, command: Sequence[str], folder: Path) -> tuple[str, str, str]:
        """Exit code, stdout and stderr of a command in a folder."""
        out, err = folder.parent / "stdout", folder.parent / "stderr"
        request = {"command": list(command), "folder": str(folder)}
        request |= {"out": str(out), "err": str(err)}
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("no pipes")
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        code = self.process.stdout.readline().strip()
        return code, _decoded(out), _decoded(err)

    def end(self) -> None:
        """No more commands."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def _serve(code: str) -> None:
    """Answer requests until there are no more."""
    import importlib

    sys.path = [path for path in sys.path if path != str(Path(__file__).parent)]
    os.nice(10)
    for name in (
        *("numpy", "scipy.optimize", "scipy.sparse", "cvxpy", "clarabel", "pydantic", "yaml"),
        *("ruamel.yaml", "rich.console", "rich.table", "numba", "pandas", "pyarrow.parquet"),
        *("duckdb", "jinja2", "xlsxwriter", "matplotlib"),
    ):
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _child(request, code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _child(request: dict[str, Any], code: str) -> None:
    """Be the command, and end."""
    import runpy
    import traceback

    for path, number in ((request["out"], 1), (request["err"], 2)):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["folder"])
    os.environ["XDG_STATE_HOME"] = str(Path(request["folder"]).parent / "state")
    command, result = request["command"], 0
    sys.argv = ["libra-planner", *command]
    try:
        if command[:1] == ["screen"]:
            _screen(command[1:], code)
        else:
            runpy.run_module("libra_planner", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        result = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        result = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(result)


def _screen(keys: Sequence[str], code: str) -> None:
    """Print a screen of the cockpit after keys, as the checkout's own tests read it."""
    sys.path.insert(0, code)
    from tests.tui.conftest import drive

    async def walk(driver: Any) -> None:
        for key in keys:
            await (driver.idle() if key == "idle" else driver.press(key))
        await driver.idle()
        text = driver.screen_text()
        print("\n".join(line.rstrip() for line in text.splitlines()))

    drive(Path("plan.yaml"), walk, (156, 40))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        _serve(sys.argv[2])
    else:
        raise SystemExit(main())
