"""From a key to the changed screen of the cockpit, beside a letter in a trivial Textual program.

Every kind of key on every screen, at two sizes, in fresh processes: at rest, while the plan is
read and the solver loaded, and with an optimisation and a check of links running all the time.
``python benchmarks/keystrokes.py [RUNS]``; ``PYTHONPATH`` chooses the version that is measured.

Columns of three are median, 99th percentile and maximum: CPU of the main thread in ms, from the
key until the screen stands still, with all that work begun by the key brings back; the same over
a table of Rich printed beside it, since other processes slow a machine by a factor of two; time
to the first change of the screen, ms; and to when a next key would have had its turn at the latest.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from textual import events
from textual.app import App, ComposeResult
from textual.keys import _character_to_key
from textual.widgets import Input

from libra_planner.reading.bundled import example
from libra_planner.tui.app import Cockpit
from libra_planner.tui.launch import SWITCH_INTERVAL_S
from libra_planner.tui.screens.links import check_links
from libra_planner.tui.session import best_design
from libra_planner.tui.work import run_apart

SIZES = ((80, 24), (200, 60))
LOOK_S = 0.005
QUIET_CPU_S = 5e-4
QUIET_S = 0.04
DEBOUNCE_S = 0.2

WALK = {
    "design": "plus plus minus down up > < right e u U ctrl+r",
    "design, focus": "f down down up tab shift+tab escape b",
    "design, field": "f tab 1 2 backspace left right 0 enter escape u b",
    "design, dialogs": "? pagedown escape ctrl+p o p t escape a x escape enter 5 escape O escape",
    "design, optimum": "S escape o plus o u p",
    "themes": "t t",
    "tabs first": "f2 f3 f4 f5 f6 f1",
    "tabs": "f2 f3 f4 f5 f6 f1",
    "compare": "f2 B right left d f1 p f2 enter u",
    "frontier": "f3 down down up pagedown end home l l enter u",
    "fabric": "f4 y y N n down pagedown end enter escape h down h tab escape f1 plus f4",
    "sweep": "f5 i x backspace down escape c v ] [ tab",
    "report": "f6 space down space tab down space tab a backspace escape w",
    "tabs, filled": "f2 f3 f4 f5 f6 f1",
}
"""Keys of every screen, in an order that brings them about."""

HURRIED = "plus f2 ? escape f4 f1 f 1 backspace escape b minus ctrl+p escape e t f3 down f1 u"
"""Keys from the first picture on, while the plan is read and the solver loaded."""

NAMES = {"?": "question_mark", ">": "greater_than_sign", "<": "less_than_sign"}


class Meter:
    """Times of one running application."""

    def __init__(self, app: App[Any]) -> None:
        self.app = app
        self.updates: list[float] = []
        self.stall_s = self.own_cpu_s = 0.0

    async def press(self, key: str, pause_s: float = 0.0) -> dict[str, float]:
        """A key, until the screen stands still, not before a pause after which typing is taken."""
        unit_s = reference()
        self.updates.clear()
        self.stall_s = self.own_cpu_s = 0.0
        start_s, cpu_s = time.perf_counter(), time.thread_time()
        self.send(key)
        await self.still(pause_s)
        spent_s = time.thread_time() - cpu_s - self.own_cpu_s
        first = self.updates[0] - start_s if self.updates else 0.0
        return {
            "cpu": spent_s,
            "wall": first,
            "stall": self.stall_s,
            "unit": min(unit_s, reference()),
        }

    def send(self, key: str) -> None:
        """What a terminal's driver does with a key."""
        name = NAMES.get(key, _character_to_key(key) if len(key) == 1 else key)
        assert self.app._driver
        self.app._driver.send_message(events.Key(name, key if len(key) == 1 else None))

    async def still(self, pause_s: float = 0.0) -> None:
        """Wait until nothing runs and the main thread has nothing left to do."""
        quiet, end_s = 0.0, time.perf_counter() + pause_s
        while quiet < QUIET_S or time.perf_counter() < end_s:
            before_s, cpu_s = time.perf_counter(), time.thread_time()
            await asyncio.sleep(LOOK_S)
            after_s = time.thread_time()
            self.stall_s = max(self.stall_s, time.perf_counter() - before_s - LOOK_S)
            busy = after_s - cpu_s > QUIET_CPU_S or self.waited_for()
            quiet = 0.0 if busy else quiet + LOOK_S
            self.own_cpu_s += time.thread_time() - after_s

    def waited_for(self) -> bool:
        """Whether work is under way that the key may have begun."""
        workshop = getattr(self.app, "workshop", None)
        running = workshop.running() if workshop else []
        return any(ticket.kind not in ("warm", "loading", "busy") for ticket in running)


def reference() -> float:
    """CPU seconds of a piece of work that is always the same: printing a table."""
    table = Table(*"abcd")
    for i in range(20):
        table.add_row(*(f"{i * j:.3f}" for j in range(4)))
    console = Console(file=io.StringIO(), width=80)
    start_s = time.thread_time()
    console.print(table)
    return time.thread_time() - start_s


class Painted(App[int]):
    """An application that renders everything it would send to a terminal, and notes when."""

    meter: Meter

    @property
    def is_headless(self) -> bool:
        return False

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if renderable is not None and hasattr(self, "meter"):
            self.meter.updates.append(time.perf_counter())


class Measured(Painted, Cockpit):
    """The cockpit."""


class Trivial(Painted):
    """A line to type into."""

    def compose(self) -> ComposeResult:
        yield Input()


async def walked(width: int, height: int, state: str) -> list[dict[str, Any]]:
    """Times of every key of a walk."""
    app = Measured(example("01_gpt3_4d"))
    begun_s = time.perf_counter()
    found: list[dict[str, Any]] = []
    async with app.run_test(size=(width, height)):
        app.meter = meter = Meter(app)
        found.append(
            {"kind": "first paint", "cpu": 0.0, "wall": time.perf_counter() - begun_s, "stall": 0.0}
        )
        app.workshop.start("loading", "", call=partial(run_apart, nothing), done=lambda _: None)
        keys = [("", key) for key in 2 * HURRIED.split()]
        if state != "import":
            while app.session.problem is None or loading(app):
                await asyncio.sleep(LOOK_S)
            await meter.still()
            keys = [(part, key) for part, keys in WALK.items() for key in keys.split()]
        for part, key in keys:
            if state == "busy":
                keep_busy(app)
            elif state == "import" and not loading(app):
                break
            typing = DEBOUNCE_S if part == "design, field" else 0.0
            found.append({"kind": f"{part}: {key}", **await meter.press(key, typing)})
        app.workshop.cancel_all()
    return found


def painted(begun_s: float) -> dict[str, Any]:
    """Time to the first picture, once everything for that is imported."""
    return {"kind": "first paint", "wall": time.perf_counter() - begun_s}


def loading(app: Cockpit) -> bool:
    """Whether anything is still imported, here or where the solver is."""
    return any(ticket.kind in ("warm", "loading") for ticket in app.workshop.running())


def nothing(_progress: object) -> None:
    """Work that is done once the solver is loaded."""


def keep_busy(app: Cockpit) -> None:
    """An optimisation and a check of links, one after the other, until the application is left."""
    if any(ticket.kind == "busy" for ticket in app.workshop.running()):
        return
    problem, bandwidth = app.session.problem, app.session.bandwidth_bytes_per_s

    def call(ticket: Any) -> None:
        while not ticket.cancelled:
            run_apart(partial(best_design, problem), ticket)
            run_apart(partial(check_links, problem, bandwidth, "ecmp", 0), ticket)

    app.workshop.start("busy", "", call=call, done=lambda _: None)


async def trivial(width: int, height: int) -> list[dict[str, Any]]:
    """Times of letters typed into a trivial application."""
    app, begun_s = Trivial(), time.perf_counter()
    async with app.run_test(size=(width, height)):
        first = painted(begun_s)
        app.meter = Meter(app)
        return [first] + [{"kind": "trivial", **await app.meter.press(key)} for key in "abcdefghij"]


STATES = ("rest", "import", "busy")


def child(width: int, height: int, state: str) -> None:
    """One walk; a line of JSON per key."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    call = trivial(width, height) if state == "trivial" else walked(width, height, state)
    for one in asyncio.run(call):
        print(json.dumps(one))


def in_child(width: int, height: int, state: str) -> list[dict[str, Any]]:
    """A walk in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_STATE_HOME": folder, "OMP_NUM_THREADS": "1"}
        here = os.path.dirname(os.path.abspath(__file__))
        program = f"import sys; sys.path.append({here!r}); import keystrokes; keystrokes.child"
        command = [sys.executable, "-c", f"{program}({width}, {height}, {state!r})"]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=True
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(name: str, found: Sequence[dict[str, float]]) -> str:
    """A line of the table."""
    columns = [[1e3 * one["cpu"] for one in found], [one["cpu"] / one["unit"] for one in found]]
    columns += [[1e3 * one[key] for one in found] for key in ("wall", "stall")]
    return f"| {name:30} | {len(found):4} | " + " | ".join(map(spread, columns)) + " |"


def spread(values: Sequence[float]) -> str:
    """Median, 99th percentile, maximum."""
    ranked = sorted(values)
    high = ranked[min(int(0.99 * len(ranked)), len(ranked) - 1)]
    return f"{median(ranked):5.1f} {high:6.1f} {ranked[-1]:6.1f}"


def main(n_runs: int) -> None:
    """Print a table for each size and state: all keys, then each kind, slowest first."""
    for width, height in SIZES:
        for state in ("trivial", *STATES):
            kinds: dict[str, list[dict[str, float]]] = defaultdict(list)
            for one in (one for _ in range(n_runs) for one in in_child(width, height, state)):
                kinds[one.pop("kind")].append(one)
            print(f"{width}x{height} {state}: first paint", end=" ")
            print(spread([one["wall"] * 1e3 for one in kinds.pop("first paint")]), "ms")
            print(row("all", [one for found in kinds.values() for one in found]))
            for name in sorted(kinds, key=lambda name: -max(x["cpu"] for x in kinds[name])):
                print(row(name, kinds[name]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
