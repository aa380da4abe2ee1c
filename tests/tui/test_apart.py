"""Solver work in processes of its own: what comes back, what ends it, what it leaves alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from textual.message import Message

from libra_planner.errors import Fault, Infeasible, Place, PlannerError, SpecError, UnknownName
from libra_planner.reading.bundled import example, names
from libra_planner.tui.disk.readings import read_plan
from libra_planner.tui.screens.links import check_links
from libra_planner.tui.session import Report, best_design, frontier
from libra_planner.tui.work import Cancelled, Progress, Ticket, get_ready, run_apart

ROOT = Path(__file__).parents[2]


def ticket(post: Callable[[Message], object] = lambda _: None) -> Ticket:
    return Ticket("test", "", post)


@pytest.fixture(autouse=True, scope="module")
def _begun() -> None:
    get_ready()


def reports(progress: Report) -> int:
    progress(1, 3)
    progress(3, 3)
    return os.getpid()


def test_work_is_done_elsewhere_and_reports_its_progress() -> None:
    seen: list[Message] = []
    assert run_apart(reports, ticket(seen.append)) != os.getpid()
    words = [one.words for one in seen if isinstance(one, Progress)]
    assert words == ["1 of 3", "3 of 3"]


@pytest.mark.parametrize("name", [name for name in names("examples") if name.startswith("0")])
def test_a_design_is_the_same_to_the_last_bit(name: str) -> None:
    """Of every example: its problem goes there and its optimum comes back, functions and all."""
    problem = read_plan(example(name), ()).problem
    assert problem is not None
    here = best_design(problem, lambda *_: None)
    there = run_apart(partial(best_design, problem), ticket())
    assert here.design.bandwidth_bytes_per_s.tolist() == there.design.bandwidth_bytes_per_s.tolist()
    assert here.evaluation.step_time_s == there.evaluation.step_time_s
    assert here.evaluation.exact_step_time_s == there.evaluation.exact_step_time_s
    assert here.shadow == there.shadow
    bandwidth = here.design.bandwidth_bytes_per_s
    assert float(there.problem.step_time.seconds(bandwidth)) == float(
        here.problem.step_time.seconds(bandwidth)
    )


def test_links_and_frontiers_are_the_same_to_the_last_bit() -> None:
    problem = read_plan(example("07_check"), ()).problem
    assert problem is not None
    bandwidth = best_design(problem, lambda *_: None).design.bandwidth_bytes_per_s
    check = partial(check_links, problem, bandwidth, "ecmp", 3)
    here, there = check(lambda *_: None), run_apart(check, ticket())
    assert here.hot is not None
    assert there.hot is not None
    assert np.array_equal(here.hot.routed.report.counts, there.hot.routed.report.counts)
    assert np.array_equal(
        here.checked.report.effective_step_time_s, there.checked.report.effective_step_time_s
    )
    points = partial(frontier, problem, 5)
    costs = [point.cost_usd for point in points(lambda *_: None)]
    assert [point.cost_usd for point in run_apart(points, ticket())] == costs


def faulty(_progress: Report) -> None:
    raise UnknownName(Fault("got a", "expected b", "write b", "x", Place("f.yaml", 3, 5)))


def infeasible(_progress: Report) -> None:
    raise Infeasible("nothing fits", ("rule 1",))


def broken(_progress: Report) -> None:
    raise ZeroDivisionError("no such thing")


def test_errors_come_back_as_what_they_are() -> None:
    with pytest.raises(UnknownName) as unknown:
        run_apart(faulty, ticket())
    assert unknown.value.faults[0].place == Place("f.yaml", 3, 5)
    assert str(unknown.value) == "f.yaml:3:5: x: got a, expected b; write b"
    with pytest.raises(Infeasible) as clash:
        run_apart(infeasible, ticket())
    assert clash.value.conflict == ("rule 1",)
    with pytest.raises(PlannerError, match="unexpected ZeroDivisionError: no such thing"):
        run_apart(broken, ticket())


def killed(_progress: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def left(_progress: Report) -> None:
    os._exit(3)


def test_a_process_that_dies_says_how() -> None:
    with pytest.raises(PlannerError, match=r"killed by signal 9 before .*lack of memory"):
        run_apart(killed, ticket())
    with pytest.raises(PlannerError, match=r"ended with 3 before it had an answer$"):
        run_apart(left, ticket())


def endless(path: Path, progress: Report) -> None:
    path.write_text(str(os.getpid()))
    progress(0, 1)
    while True:
        signal.pause()


def test_cancelling_kills(tmp_path: Path) -> None:
    """Even work that never looks up; twice, as the second piece must not miss the first."""
    for name in "ab":
        begun = threading.Event()
        work = ticket(lambda _, begun=begun: begun.set())
        raised: list[Exception] = []

        def run(work: Ticket = work, name: str = name, raised: list[Exception] = raised) -> None:
            try:
                run_apart(partial(endless, tmp_path / name), work)
            except Cancelled as error:
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert begun.wait(60)
        work.cancel()
        thread.join(60)
        assert len(raised) == 1
        assert not psutil.pid_exists(int((tmp_path / name).read_text()))
    assert run_apart(reports, ticket())


def prints(_progress: Report) -> None:
    os.write(1, b"on the terminal")
    print("on the terminal", file=sys.stderr, flush=True)


PRINT = """
from libra_planner.tui.work import get_ready, run_apart
from libra_planner.tui.work import Ticket
from tests.tui.test_apart import prints

print("begin", flush=True)
run_apart(prints, Ticket("test", "", lambda _: None))
print("end")
"""


def test_nothing_it_prints_reaches_the_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("begin\nend\n", "")


def test_a_killed_server_takes_its_work_along_and_is_replaced(tmp_path: Path) -> None:
    file, server = tmp_path / "pid", forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]

    def kill(_message: Message) -> None:
        os.kill(server, signal.SIGKILL)

    with pytest.raises(PlannerError, match="before it had an answer"):
        run_apart(partial(endless, file), ticket(kill))
    end_s = time.monotonic() + 30
    while psutil.pid_exists(int(file.read_text())):
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert run_apart(reports, ticket())


ODD = """
import sys
from textual.app import App
from libra_planner.tui.work import get_ready, run_apart
from libra_planner.tui.work import Ticket
from tests.tui.test_apart import reports

def main():
    get_ready()
    run_apart(reports, Ticket("test", "", lambda _: None))
    {then}
    run_apart(reports, Ticket("test", "", lambda _: None))
    print("end")

def lose_tracker():
    import os, signal, time
    from multiprocessing.resource_tracker import _resource_tracker
    from textual.app import _PrintCapture
    sys.stderr = _PrintCapture(App(), stderr=True)
    os.kill(_resource_tracker._pid, signal.SIGKILL)
    while _resource_tracker._check_alive():
        time.sleep(0.01)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("then", "variables", "files"),
    [
        ("lose_tracker()", (), ()),
        ("pass", ("TMPDIR",), ()),
        ("pass", (), ("duckdb.py", "random.py")),
    ],
    ids=["no tracker", "no room for the name of a socket", "modules in the working directory"],
)
def test_odd_surroundings(
    tmp_path: Path, then: str, variables: tuple[str, ...], files: tuple[str, ...]
) -> None:
    """In another interpreter: what work is forked from lasts as long as the interpreter does."""
    script, folder = tmp_path / "script.py", tmp_path / ("x" * 120)
    script.write_text(ODD.format(then=then))
    folder.mkdir()
    for name in files:
        (folder / name).write_text("raise ValueError('not the one')")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)} | dict.fromkeys(variables, str(folder))
    command: list[Any] = [sys.executable, script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("end\n", "")


def test_without_a_working_directory_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(
        PlannerError, match=r"cannot be started .* working directory is still there"
    ):
        run_apart(reports, ticket())


WALK = """
import asyncio, sys
import psutil
from pathlib import Path
from libra_planner.tui.app import Cockpit
from libra_planner.reading.bundled import example

async def walk():
    app = Cockpit(example("01_gpt3_4d"))
    async with app.run_test(size=(120, 40)) as pilot:
        async def idle():
            await pilot.pause(0.3)
            while app.session.problem is None or app.workshop.running():
                await pilot.pause(0.02)
            await pilot.pause()
        for keys in ("o", "3", "4", "n", "5 c", "1 p 2 6"):
            await idle()
            await pilot.press(*keys.split())
        await idle()
        assert app.session.optimum is not None
        assert len(app.screen_stack) == 1
        await pilot.press("1", "o")
    return [child.pid for child in psutil.Process().children(recursive=True)]

def main():
    print(*asyncio.run(walk()))
    print(*sys.modules)

main()
"""


def test_the_interface_never_loads_a_solver_and_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    command: list[Any] = [sys.executable, "-c", WALK]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    children, modules = done.stdout.splitlines()
    heavy = {"cvxpy", "scipy", "clarabel", "numba", "duckdb", "pandas", "pyarrow", "matplotlib"}
    assert not heavy & set(modules.split())
    assert children
    end_s = time.monotonic() + 30
    while any(psutil.pid_exists(int(pid)) for pid in children.split()):
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_spec_errors_say_the_same_after_pickling() -> None:
    import pickle

    error = SpecError(Fault("got 1", "expected 2"), Fault("got 3"))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.faults == error.faults
