"""Draw docs/tui-*.svg: every screen of the cockpit, as keys bring it about."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import TextArea

import libra_planner as lp
from libra_planner.tui.app import Cockpit

SIZE = (156, 40)
FIRST = (130, 42)
"""Of the picture that a reader sees first: two columns, so that its letters stay large."""
SIZES = ((80, 24), (120, 40), (200, 60))
"""Of the pictures that are made to be looked at."""

SCENES = {
    "cockpit": ["o", "idle"],
    "design": ["o", "idle"],
    "compare": ["p", "o", "idle", "p", "2"],
    "frontier": ["3", "idle", "up", "up"],
    "fabric": ["o", "idle", "4", "idle"],
    "sweep": ["5", "axes"],
    "report": ["p", "o", "idle", "p", "6"],
    "search": ["7"],
}
"""Keys of each screen; ``idle`` waits for work, ``axes`` writes the sweep of the picture."""

RUN = {"sweep": ["g", "idle"], "report": ["w", "idle"], "search": ["g", "idle"]}
"""What the pictures show beyond the scene; its speed or paths are another's every time."""

AXES = """\
base: plan.yaml
axes:
  budget: {from: 100, to: 1000, step: 25}
set:
  constraints: ["total == {budget} GB/s"]
objective: [performance, performance_per_cost]
"""


SEARCHED = """\
workload: llama3-8b
parallelism: {tp: 2, dp: 64}
global_batch: 512
npu: h100-sxm
fabric: {topology: "SW(8)_[SW(16)]", tiers: [node, leaf], scale_up: nvlink4-8}
cost_model: clos-2026
objective: performance_per_cost
fixed_cost: {npu: h100-sxm, per_npu: 6 k$}
constraints: [leaf <= 50 GB/s]
"""


def plan_text(name: str = "") -> str:
    """Example 01 with racks whose switches are all joined, so that there are paths to choose."""
    if name == "search":
        return SEARCHED
    if name == "cockpit":  # The case of the README and the tutorials.
        return lp.example("0e_rails_2to1").read_text(encoding="utf-8")
    text = lp.example("01_gpt3_4d").read_text(encoding="utf-8")
    wiring = "  realization: {wiring: top_of_rack}      # leaves hold neighbours\n"
    return text.replace("parallelism:", f"{wiring}parallelism:", 1)


async def idle(app: Cockpit, pilot: Pilot[int]) -> None:
    """Wait until the plan is read and nothing runs."""
    await pilot.pause(0.2)
    while app.session.reading is None or [x for x in app.workshop.running() if x.kind != "warm"]:
        await pilot.pause(0.02)
    await pilot.pause(0.2)


async def picture(name: str, size: tuple[int, int], keys: list[str]) -> tuple[str, str]:
    """The SVG of a screen after its scene and more keys, and its text; the plan is ./plan.yaml."""
    app = Cockpit(Path("plan.yaml"))
    async with app.run_test(size=size) as pilot:
        await idle(app, pilot)
        for key in SCENES[name] + keys:
            if key == "idle":
                await idle(app, pilot)
            elif key == "axes":
                app.screen.query_one(TextArea).text = AXES
            else:
                await pilot.press(key)
        app.design.draw()  # It waits for keys to pause.
        app.say("")
        await pilot.pause(0.3)
        svg = app.export_screenshot(title="libra-planner tui", simplify=True)
        strips: Any = app.screen._compositor.render_strips()
        text = "\n".join(strip.text.rstrip() for strip in strips)
        app.workshop.cancel_all()
    return re.sub(r"terminal-\d+", "terminal", svg), text


def draw(folder: Path, sizes: Mapping[str, tuple[int, int]]) -> None:
    """Draw every screen at sizes, by what the names of the files end with."""
    for ending, size in sizes.items():
        for name in SCENES:
            Path("plan.yaml").write_text(plan_text(name), encoding="utf-8")
            fits = FIRST if name == "cockpit" and not ending else size
            svg, _ = asyncio.run(picture(name, fits, RUN.get(name, [])))
            (folder / f"tui-{name}{ending}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    """Draw them all, away from one's own files; in a folder, if one is given, at three sizes."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parent
    named = {f"-{width}x{height}": (width, height) for width, height in SIZES}
    with tempfile.TemporaryDirectory() as away:
        os.chdir(away)
        os.environ["XDG_STATE_HOME"] = away
        draw(folder, named if len(sys.argv) > 1 else {"": SIZE})


if __name__ == "__main__":
    main()
