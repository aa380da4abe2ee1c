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
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from libra_planner.errors import SpecError
from libra_planner.tui import launch
from tests.conftest import Outcome
from tests.tui.conftest import PLAN

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
    assert run("tui", "nofile.yaml").err.startswith("nofile.yaml: got no such file, expected one")


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


@dataclass(frozen=True)
class Served:
    """A running ``tui --web``: the address that it printed."""

    url: str
    port: int

    @property
    def token(self) -> str:
        return self.url.split("/")[3]


@contextmanager
def served(plan: Path, state: Path, stderr: IO[str] | None = None) -> Iterator[Served]:
    """``tui --web`` on a free port, run as the installed program is: not from where it stands."""
    pytest.importorskip("textual_serve")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "XDG_STATE_HOME": str(state)}
    command = [sys.executable, "-P", "-m", "libra_planner", "tui", str(plan), "--web"]
    child = subprocess.Popen(
        [*command, "--port", str(port)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    try:
        assert child.stdout is not None
        yield Served(child.stdout.readline().removeprefix("Serving at ").strip(), port)
    finally:
        child.terminate()
        child.communicate(timeout=10)


def _answers(host: str, port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((host, port)) == 0


def _other_addresses() -> list[str]:
    """This machine's addresses that others can reach."""
    found = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout
    return [one for one in found.split() if re.fullmatch(r"[\d.]+", one) and one != "127.0.0.1"]


def test_the_web_server_is_on_loopback_only(web: Served) -> None:
    assert not any(_answers(address, web.port) for address in _other_addresses())


def test_a_port_in_use_is_said(web: Served, run: Callable[..., Outcome]) -> None:
    outcome = run("tui", "--web", "--port", web.port)
    assert outcome.code == 2
    assert outcome.err.startswith(
        f"libra-planner tui: --web: got port {web.port}, which cannot be had ("
    )
    assert len(outcome.err.splitlines()) == 1


def test_the_address_has_a_secret_of_its_own(web: Served) -> None:
    assert re.fullmatch(rf"http://127\.0\.0\.1:{web.port}/[\w-]{{43}}/", web.url)
    assert web_door().token != web_door().token


def web_door() -> Any:
    from libra_planner.tui.web import Door

    return Door("127.0.0.1", 80)


def test_browsers_do_not_name_the_usual_port() -> None:
    pytest.importorskip("textual_serve")
    assert (web_door().host, web_door().origin) == ("127.0.0.1", "http://127.0.0.1")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("web")
    plan = folder / "plan.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    with served(plan, folder / "state") as found:
        yield found


async def _status(url: str, headers: dict[str, str], *, socket: bool = False) -> int:
    """What the server answers; a socket that opens is 101."""
    import aiohttp

    async with aiohttp.ClientSession() as session:
        if not socket:
            async with session.get(url, headers=headers) as answer:
                return answer.status
        try:
            async with session.ws_connect(url, headers=headers):
                return 101
        except aiohttp.WSServerHandshakeError as error:
            return error.status


def strangers(web: Served) -> Iterator[tuple[str, str, dict[str, str], bool]]:
    """Requests that nobody makes who opened the printed address: name, URL, headers, socket."""
    base, ours = f"http://127.0.0.1:{web.port}", {"Origin": f"http://127.0.0.1:{web.port}"}
    wrong = f"{base}/{web.token[:-1]}{'A' if web.token[-1] != 'A' else 'B'}"
    for path in ("/", "/ws", "/static/js/textual.js", "/download/1", "//ws", "/%2e/ws"):
        yield "no token", base + path, ours, path == "/ws"
    for path in ("/", "/ws", "/static/js/textual.js", "/download/1", "/elsewhere"):
        yield "wrong token", wrong + path, ours, path == "/ws"
    yield "token of nothing", f"{base}//ws", ours, True
    yield "token in the query", f"{base}/ws?token={web.token}", ours, True
    yield "socket of no origin", f"{web.url}ws", {}, True
    for path in ("", "ws", "static/js/textual.js", "download/1"):
        for host in (
            "evil.example",
            f"evil.example:{web.port}",
            f"localhost:{web.port}",
            "127.0.0.1",
        ):
            yield "other host", web.url + path, {**ours, "Host": host}, path == "ws"
        for origin in (
            "http://evil.example",
            "null",
            "",
            f"https://127.0.0.1:{web.port}",
            f"http://127.0.0.1:{web.port + 1}",
            f"http://127.0.0.1:{web.port}.evil.example",
        ):
            yield "other origin", web.url + path, {"Origin": origin}, path == "ws"
    rebound = f"evil.example:{web.port}"
    yield "rebound", f"{web.url}ws", {"Host": rebound, "Origin": f"http://{rebound}"}, True


def test_strangers_are_refused(web: Served) -> None:
    """Another page, a name that was bound to this machine, a guess: none gets in."""
    asked = list(strangers(web))

    async def answers() -> list[int]:
        return [await _status(url, headers, socket=ws) for _, url, headers, ws in asked]

    got = asyncio.run(answers())
    let_in = [(one[:3], code) for one, code in zip(asked, got, strict=True) if code != 403]
    assert not let_in


def _raw_status(port: int, request: str) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        client.sendall(f"{request}\r\n\r\n".encode())
        return client.recv(1000).split()[1].decode()


def test_requests_of_no_path_are_answered_and_not_told_of(plan_file: Path, tmp_path: Path) -> None:
    """Whoever reaches the port cannot write to the terminal of whom it belongs to."""
    with (tmp_path / "err").open("w") as err, served(plan_file, tmp_path / "s", err) as here:
        host = f"Host: 127.0.0.1:{here.port}"
        asked = {
            f"OPTIONS * HTTP/1.1\r\n{host}": "403",
            f"CONNECT evil:80 HTTP/1.1\r\n{host}": "403",
            f"GET * HTTP/1.1\r\n{host}": "400",
            f"GET / HTTP/1.1\r\n{host}\r\n{host}": "400",
            "nonsense": "400",
        }
        got = {request: _raw_status(here.port, request) for request in asked}
    assert got == asked
    assert (tmp_path / "err").read_text() == ""


def test_only_bad_requests_are_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("textual_serve")
    from aiohttp.http_exceptions import BadHttpMessage
    from aiohttp.log import server_logger

    from libra_planner.tui.web import _no_word_of_bad_requests

    with _no_word_of_bad_requests():
        for fault in (BadHttpMessage("x"), RuntimeError("ours")):
            server_logger.error("told of", exc_info=fault)
    server_logger.error("after", exc_info=BadHttpMessage("x"))
    assert [record.message for record in caplog.records] == ["told of", "after"]


async def _painted(url: str, origin: str) -> bytes:
    """What the cockpit sends to a browser until its figures are there."""
    import aiohttp

    data = b""
    async with (
        asyncio.timeout(PATIENCE_S),
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}ws?width=100&height=30", origin=origin) as screen,
    ):
        while b"Step time" not in data:
            message = await screen.receive()
            assert message.type is aiohttp.WSMsgType.BINARY, message
            data += message.data
    return data


def test_the_printed_address_opens_the_cockpit(web: Served, tmp_path: Path) -> None:
    """The page, its files and its socket, as the page itself names them."""
    import aiohttp

    async def page() -> tuple[str, list[int]]:
        async with aiohttp.ClientSession() as session, session.get(web.url) as answer:
            text = await answer.text()
        files = re.findall(rf'"({re.escape(web.url)}static/[^"]+)"', text)
        return text, [await _status(url, {}) for url in files]

    text, codes = asyncio.run(page())
    assert codes == [200] * 3
    assert f'"{web.url}ws"'.replace("http", "ws", 1) in text
    assert b"GB/s" in asyncio.run(_painted(web.url, f"http://127.0.0.1:{web.port}"))


def test_files_where_it_is_started_are_not_run(plan_file: Path, tmp_path: Path) -> None:
    """Nor by the process that each browser gets."""
    for name in ("libra_planner.py", "multiprocessing.py", "yaml.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    with served(plan_file, tmp_path / "state") as here:
        asyncio.run(_painted(here.url, f"http://127.0.0.1:{here.port}"))
    assert not (tmp_path / "ran").exists()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser(profile: Path) -> Iterator[int]:
    """A headless Chromium on an empty page; the port of its debugger."""
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--window-size=1200,800",
    ]
    command += ["--enable-unsafe-swiftshader", f"--user-data-dir={profile}"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    command += ["--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank"]
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


class Page:
    """A page as the debugger tells of it: what it asks for, what the cockpit sends to it."""

    def __init__(self, debugger: Any) -> None:
        self._debugger, self._n = debugger, 0
        self.asked_for: list[str] = []
        self.sent = b""

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the debugger answers; what it tells meanwhile is kept."""
        self._n += 1
        await self._debugger.send_json({"id": self._n, "method": method, "params": parameters})
        while True:
            message: dict[str, Any] = await self._told()
            if message.get("id") == self._n:
                return dict(message["result"])

    async def until_sent(self, text: str) -> None:
        """Wait until the cockpit has sent a text."""
        while text.encode() not in self.sent:
            await self._told()

    async def value(self, expression: str) -> Any:
        """Of an expression in the page."""
        answer = await self.ask("Runtime.evaluate", expression=expression)
        return answer["result"].get("value")

    async def _told(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._debugger.receive_json()
        method, told = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.asked_for.append(told["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.asked_for.append(told["url"])
        elif method == "Network.webSocketFrameReceived" and told["response"]["opcode"] == 2:
            self.sent += base64.b64decode(told["response"]["payloadData"])
        return message


async def browsed(port: int, url: str) -> tuple[Page, str, bytes]:
    """The page, its title and its picture, after a key that nothing was clicked for."""
    import aiohttp

    async with aiohttp.ClientSession() as session, asyncio.timeout(3 * PATIENCE_S):
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            [about] = [one for one in await answer.json() if one["type"] == "page"]
        async with session.ws_connect(about["webSocketDebuggerUrl"], max_msg_size=0) as debugger:
            page = Page(debugger)
            await page.ask("Network.enable")
            await page.ask("Page.navigate", url=url)
            await page.until_sent("Step time")
            while not await page.value("document.activeElement.matches('textarea')"):
                await asyncio.sleep(0.1)
            for kind in ("keyDown", "keyUp"):
                await page.ask("Input.dispatchKeyEvent", type=kind, key="?", text="?")
            await page.until_sent("On this screen")
            picture = b""
            while len(picture) < _PAINTED_BYTES:  # What was sent is painted a moment later.
                answer = await page.ask("Page.captureScreenshot")
                picture = base64.b64decode(answer["data"])
            return page, await page.value("document.title"), picture


_PAINTED_BYTES = 40_000
"""The page that waits for the cockpit is a quarter of that."""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_the_cockpit_and_keys_work_at_once(plan_file: Path, tmp_path: Path) -> None:
    with (
        served(plan_file, tmp_path / "state") as here,
        browser(tmp_path / "profile") as debugger,
    ):
        page, title, picture = asyncio.run(browsed(debugger, here.url))
    (tmp_path / "page.png").write_bytes(picture)
    assert title == "libra-planner"
    ours = (here.url, here.url.replace("http", "ws", 1), "data:")
    assert len(page.asked_for) >= 4
    assert not [one for one in page.asked_for if not one.startswith(ours)]
