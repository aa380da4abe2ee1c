"""How every screen looks, at two sizes: its text, and with the recorded Textual its SVG too.

``SNAPSHOTS=write pytest tests/tui/test_snapshots.py`` records them anew; look at what changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest
import textual

FOLDER = Path(__file__).parent / "snapshots"
SIZES = ((80, 24), (200, 60))


def _screenshots() -> ModuleType:
    path = Path(__file__).parents[2] / "docs" / "screenshots.py"
    spec = importlib.util.spec_from_file_location("screenshots", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCREENSHOTS = _screenshots()


def _versions() -> str:
    from importlib.metadata import version

    return f"textual {textual.__version__} rich {version('rich')} plot {version('textual-plot')}"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCREENSHOTS.SCENES)
def test_screens_look_as_recorded(name: str, size: tuple[int, int], tmp_path: Path) -> None:
    Path("plan.yaml").write_text(SCREENSHOTS.plan_text(name), encoding="utf-8")
    svg, text = asyncio.run(SCREENSHOTS.picture(name, size, []))
    digest = hashlib.sha256(svg.encode()).hexdigest()
    file = FOLDER / f"{name}-{size[0]}x{size[1]}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        FOLDER.mkdir(exist_ok=True)
        file.write_text(f"{_versions()}\n{digest}\n{text}\n", encoding="utf-8")
    versions, recorded, recorded_text = file.read_text(encoding="utf-8").split("\n", 2)
    assert text == recorded_text.removesuffix("\n")
    if versions == _versions():
        assert digest == recorded, "the colours or styles of the screen changed"
