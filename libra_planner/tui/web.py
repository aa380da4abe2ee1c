"""The cockpit for browsers on this machine: for whoever has the printed address, nobody else.

A browser lets any page open a WebSocket to any address, this machine's own too, and a name that a
stranger gave this machine's number (DNS rebinding) makes his page count as ours. The cockpit
writes files, so that every request shows three things: it asks for the address that is served,
it comes from a page of that address, and it knows a secret that is drawn anew at every start.
"""

from __future__ import annotations

import inspect
import logging
import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp_jinja2
import jinja2
from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import server_logger
from aiohttp.typedefs import Handler
from textual_serve.server import Server

_HTTP_PORT = 80
_TOKEN_BYTES = 32
_PATIENCE_S = 1.0
"""Time that open pages have when the server is interrupted."""
_REFUSED = "Refused: open the address that 'libra-planner tui --web' printed when it started.\n"


@dataclass(frozen=True)
class Door:
    """What lets a request in.

    Parameters
    ----------
    address, port : that are served.
    token : stands in the path of everything. A cookie would go to other ports of the machine too.
    """

    address: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES), repr=False)

    @property
    def host(self) -> str:
        """As browsers name it: without the port that they take by themselves."""
        return self.address if self.port == _HTTP_PORT else f"{self.address}:{self.port}"

    @property
    def origin(self) -> str:
        """What browsers call a page of ours."""
        return f"http://{self.host}"

    @property
    def url(self) -> str:
        """The page."""
        return f"{self.origin}{self.path('/')}"

    def path(self, name: str) -> str:
        """Where something is served; ``name`` begins with a slash."""
        return f"/{self.token}{name}"

    def admits(self, request: web.Request) -> bool:
        """Whether a request is for this address, from a page of it, and knows the token."""
        hosts, origins = (request.headers.getall(name, []) for name in (hdrs.HOST, hdrs.ORIGIN))
        # Only a page's own files come without an origin: a browser always names that of a socket.
        named = [self.origin] if origins or hdrs.UPGRADE in request.headers else []
        got = request.path.removeprefix("/").split("/")[0].encode(errors="replace")
        is_known = secrets.compare_digest(got, self.token.encode())
        return is_known and hosts == [self.host] and origins == named


def serve(command: list[str], door: Door, say: Callable[[str], object]) -> None:
    """Run a command of Textual's for every browser that comes, until interrupted.

    Parameters
    ----------
    command : the program and its arguments.
    door : where, and who may come in.
    say : takes what a person is to know once browsers can come.
    """

    def ready(_text: str) -> None:
        say(f"Serving at {door.url}\nKeep the address to yourself. Ctrl+C ends it.")

    server = Server(shlex.join(command), door.address, door.port, "libra-planner", door.origin)
    with _no_word_of_bad_requests():
        web.run_app(
            application(server, door),
            host=door.address,
            port=door.port,
            print=ready,
            access_log=None,  # It would have the token in it.
            shutdown_timeout=_PATIENCE_S,
        )


@contextmanager
def _no_word_of_bad_requests() -> Iterator[None]:
    """Leave requests that are no HTTP, which anybody can send, off the terminal; not our faults."""
    server_logger.addFilter(_is_of_ours)
    try:
        yield
    finally:
        server_logger.removeFilter(_is_of_ours)


def _is_of_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def application(server: Server, door: Door) -> web.Application:
    """The pages of textual-serve behind a door."""

    @web.middleware
    async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not door.admits(request):
            raise web.HTTPForbidden(text=_REFUSED)
        return await handler(request)

    app = web.Application(middlewares=[gate])
    aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(Path(__file__).parent))

    @aiohttp_jinja2.template("cockpit.html")
    async def page(request: web.Request) -> Any:
        """Our own page, which asks for nothing from elsewhere and takes keys without a click."""
        return await inspect.unwrap(Server.handle_index)(server, request)

    app.add_routes(
        [
            web.get(door.path("/"), page),
            web.get(door.path("/ws"), server.handle_websocket, name="websocket"),
            web.get(door.path("/download/{key}"), server.handle_download),
            web.static(door.path("/static"), server.statics_path, name="static"),
        ]
    )
    return app
