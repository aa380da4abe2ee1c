"""The cockpit without a terminal: started, fed with keys, looked at."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from libra_planner.cli.main import main
from libra_planner.reading import bundled
from libra_planner.tui.app import Cockpit
from libra_planner.tui.screens.plan_form import FieldRow
from tests.conftest import Outcome

WHOLE = """\
workload: llama3-8b
parallelism: {tp: 2, dp: 64}
global_batch: 512
npu: h100-sxm
fabric: {topology: "SW(8)_[SW(16)]", tiers: [node, leaf], scale_up: nvlink4-8}
cost_model: clos-2026
constraints: [leaf == 50 GB/s]
"""

PLAN = """\
# A plan of the tests.
workload: gpt3-libra     # LIBRA's table
fabric:
  topology: RI(4)_FC(8)_RI(4)_SW(32)
  tiers: [chiplet, package, node, pod]   # prices
parallelism: {tp: 16, dp: 256}
cost_model: libra-ispass24

constraints:
  - total == 500 GB/s    # the budget
  - dim1 >= dim2
"""

PATIENCE_S = 60.0
"""No test waits for a time, only for an event; this only ends a test that hangs."""


@dataclass
class Driver:
    """A running cockpit."""

    app: Cockpit
    pilot: Pilot[int]

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            await self.pilot.press(key)

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds.

        A pause of the pilot sends a message to every widget and draws the screen: it is there to
        raise what the app raised, and a look every 20 ms does without.
        """
        async with asyncio.timeout(PATIENCE_S):
            for turn in itertools.count():
                if holds():
                    return
                await (asyncio.sleep(0.02) if turn % 10 else self.pilot.pause(0.02))

    async def idle(self) -> None:
        """Wait until nothing runs and the plan is read."""
        await self.pilot.pause(0.2)  # Typing is taken after a pause.
        await self.until(
            lambda: (
                not [one for one in self.app.workshop.running() if one.kind != "warm"]
                and self.app.session.reading is not None
            )
        )
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Put text into the field that has the focus."""
        field = self.app.focused
        assert isinstance(field, Input)
        field.value = text
        await self.pilot.pause()

    def focus_key(self, key: str) -> None:
        """Focus the field of a key of the plan's form."""
        self.app.design.add_class("-form")  # One column shows the form instead of the figures.
        rows = self.app.design.query(FieldRow)
        next(row for row in rows if row.field.key == key).editor.focus()

    def text(self, selector: str) -> str:
        """What a widget shows."""
        return str(self.app.screen.query_one(selector).render())

    def screen_text(self) -> str:
        """Everything on the screen, as one would read it."""
        width, height = self.app.size
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in strips[:height])[: (width + 1) * height]


Start = Callable[..., Any]


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    """A plan of one's own."""
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN, encoding="utf-8")
    return path


ODD_PATHS = (
    "~nosuchuser/x.yaml",
    "~\0/x.yaml",
    "x" * 5000,
    f"{'d/' * 3000}x.yaml",
    f"{'n' * 251}.yaml",
    "nul\0.yaml",
    "loop",
    "loop/x.yaml",
    "plan.yaml/x.yaml",
    "/",
    ".",
    "~",
    "[/a].yaml",
)
"""What a person may type where a path is asked for; ``loop`` is a link to itself."""


@pytest.fixture
def odd_plan(tmp_path: Path) -> Path:
    """A plan whose names look like markup, beside a link that leads to itself."""
    book = (bundled.folder("cost-models") / "libra-ispass24.yaml").read_text(encoding="utf-8")
    text = PLAN.replace("libra-ispass24", "'[b].yaml'")
    for tier, name in (("chiplet", "'[/a]'"), ("node", "'[red]n[/]'"), ("pod", "'[@click=x]'")):
        text, book = text.replace(tier, name), book.replace(f"  {tier}:", f"  {name}:")
    (tmp_path / "[b].yaml").write_text(book, encoding="utf-8")
    (tmp_path / "loop").symlink_to("loop")
    path = tmp_path / "[plan].yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def command(*arguments: str | Path) -> Outcome:
    """Run ``libra-planner`` while a cockpit has stdout and stderr for itself."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Outcome(code, out.getvalue(), err.getvalue())


@asynccontextmanager
async def cockpit(path: Path, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Driver]:
    """A cockpit that has read its plan."""
    app = Cockpit(path)
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot)
        await driver.idle()
        yield driver
        app.workshop.cancel_all()


def drive(
    path: Path, walk: Callable[[Driver], Awaitable[None]], size: tuple[int, int] = (120, 40)
) -> None:
    """Run a journey."""

    async def run() -> None:
        async with cockpit(path, size) as driver:
            await walk(driver)

    asyncio.run(run())
