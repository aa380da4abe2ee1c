"""Names that are escape sequences and markup reach no terminal from the cockpit."""

from __future__ import annotations

from pathlib import Path

import yaml

from libra_planner.reading.bundled import folder
from tests.tui.conftest import PLAN, Driver, drive
from tests.unit.test_hostile_text import CONTROLS, HOSTILE


def test_no_screen_shows_what_a_terminal_would_obey(plan_file: Path) -> None:
    book = yaml.safe_load((folder("cost-models") / "libra-ispass24.yaml").read_text())
    book["tiers"][HOSTILE] = book["tiers"]["chiplet"]
    (plan_file.parent / "book.yaml").write_text(yaml.safe_dump(book))
    plan = yaml.safe_load(PLAN) | {"cost_model": "book.yaml"}
    plan["fabric"]["tiers"][0] = HOSTILE
    plan_file.write_text(yaml.safe_dump(plan))

    async def walk(driver: Driver) -> None:
        for keys in ("", "2", "3", "5", "1 question_mark", "escape ctrl+p", "escape"):
            await driver.press(*keys.split())
            await driver.idle()
            shown = driver.screen_text()
            assert not CONTROLS.search(shown), keys
        assert "Total" in shown  # Of the name.

    drive(plan_file, walk)
