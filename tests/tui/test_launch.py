"""Starting the cockpit: without a terminal, in a terminal, served to a browser on this machine."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from libra_planner.errors import SpecError
from libra_planner.tui import launch
from tests.conftest import Outcome

PATIENCE_S = 60.0


def wait_until(holds: Callable[[], object]) -> None:
    """Wait for an event; the limit only ends a test that hangs."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_without_a_terminal_it_says_so(run: Callable[..., Outcome], plan_file: Path) -> None:
    outcome = run("tui", plan_file)
    assert outcome.code == 2
    assert outcome.err.startswith(f"{plan_file}: got no terminal")


@pytest.mark.parametrize("closed", ["stdin", "stdout", "stderr"])
def test_a_closed_stream_is_no_terminal(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the last the cockpit would run unseen: Textual draws there."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys, closed, None)
    monkeypatch.setattr("libra_planner.tui.app.Cockpit.run", lambda _: 0)
    with pytest.raises(SpecError, match="got no terminal"):
        launch.run(None)


def test_bad_ports_are_refused(run: Callable[..., Outcome]) -> None:
    assert run("tui", "--web", "--port", "70000").code == 2


def test_the_application_imports_neither_solver_nor_plans_before_it_paints() -> None:
    program = "import sys, libra_planner.tui.app; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "textual" in loaded
    assert not {"cvxpy", "scipy", "numba", "pydantic", "duckdb", "pandas"} & set(loaded)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_it_runs_in_tmux(size: tuple[int, int], plan_file: Path, tmp_path: Path) -> None:
    server = ["tmux", "-L", f"libra-planner-{os.getpid()}", "-f", "/dev/null"]

    def tmux(*arguments: str) -> str:
        done = subprocess.run([*server, *arguments], capture_output=True, text=True, check=False)
        return done.stdout

    command = f"{sys.executable} -m libra_planner tui {plan_file}; echo left with $?; sleep 60"
    root = Path(__file__).parents[2]
    environment = [f"-ePYTHONPATH={root}", f"-eXDG_STATE_HOME={tmp_path / 'state'}"]
    tmux(
        "new-session",
        "-d",
        "-s",
        "t",
        *environment,
        "-x",
        str(size[0]),
        "-y",
        str(size[1]),
        command,
    )
    try:
        wait_until(lambda: "Step time" in tmux("capture-pane", "-p", "-t", "t"))
        tmux("send-keys", "-t", "t", "o")
        wait_until(lambda: "Proven optimal" in tmux("capture-pane", "-p", "-t", "t"))
        tmux("send-keys", "-t", "t", "F2")
        wait_until(lambda: "Nothing is pinned" in tmux("capture-pane", "-p", "-t", "t"))
        tmux("send-keys", "-t", "t", "q")
        wait_until(lambda: "left with 0" in tmux("capture-pane", "-p", "-t", "t"))
        assert "Traceback" not in tmux("capture-pane", "-p", "-t", "t")
    finally:
        tmux("kill-server")


@contextmanager
def served(plan: Path, state: Path) -> Iterator[int]:
    """``tui --web`` on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "XDG_STATE_HOME": str(state)}
    command = [sys.executable, "-m", "libra_planner", "tui", str(plan), "--web"]
    child = subprocess.Popen(
        [*command, "--port", str(port)], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: _answers("127.0.0.1", port))
        yield port
    finally:
        child.terminate()
        child.wait(10)


def _answers(host: str, port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((host, port)) == 0


def _other_addresses() -> list[str]:
    """This machine's addresses that others can reach."""
    found = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout
    return [one for one in found.split() if re.fullmatch(r"[\d.]+", one) and one != "127.0.0.1"]


def test_the_web_server_is_on_loopback_only(plan_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("textual_serve")
    with served(plan_file, tmp_path / "state") as port:
        assert not any(_answers(address, port) for address in _other_addresses())


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser(profile: Path, url: str) -> Iterator[int]:
    """A headless Chromium on a page; the port of its debugger."""
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1200,800",
    ]
    command += ["--enable-unsafe-swiftshader", f"--user-data-dir={profile}"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    command += ["--remote-debugging-port=0", "--remote-allow-origins=*", url]
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
    try:
        ports = profile / "DevToolsActivePort"
        wait_until(ports.exists)
        wait_until(lambda: ports.read_text().splitlines())
        yield int(ports.read_text().splitlines()[0])
    finally:
        child.terminate()
        child.wait(10)


async def picture(port: int, url: str) -> bytes:
    """The page, once the cockpit has sent its first bytes and its figures."""
    import aiohttp

    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE_S):
        pages: list[dict[str, str]] = []
        while not pages:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = [page for page in await answer.json() if page["url"].startswith(url)]
        async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as debugger:
            begun = "document.body?.classList.contains('-first-byte')"
            while not await _asked(debugger, "Runtime.evaluate", expression=begun):
                await asyncio.sleep(0.2)
            await asyncio.sleep(3)
            return base64.b64decode(await _asked(debugger, "Page.captureScreenshot"))


async def _asked(debugger: Any, method: str, **parameters: Any) -> Any:
    await debugger.send_json({"id": 1, "method": method, "params": parameters})
    answer = (await debugger.receive_json())["result"]
    return answer["data"] if "data" in answer else answer["result"].get("value")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_the_cockpit(plan_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("textual_serve")
    with served(plan_file, tmp_path / "state") as port:
        url = f"http://127.0.0.1:{port}/"
        with browser(tmp_path / "profile", url) as debugger:
            data = asyncio.run(picture(debugger, url))
    (tmp_path / "page.png").write_bytes(data)
    assert len(data) > 40_000  # The page that waits for the cockpit is a quarter of that.
