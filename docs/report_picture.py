"""Draw docs/report.png and docs/sweep-page.png: pages that a browser opens, at the top."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from libra_planner.cli.main import main as planner

HERE = Path(__file__).parent
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars")
OFFLINE = ("--disable-background-networking", "--disable-component-update", "--disable-sync")


def main() -> None:
    """Make the first report of procurement.md and the page of tutorials/sweeps.md."""
    text = (HERE / "procurement.md").read_text(encoding="utf-8")
    command = re.findall(r"^libra-planner (report .*) -o ", text, re.MULTILINE)[0]
    words = [word.replace("examples/", f"{HERE.parent}/examples/") for word in shlex.split(command)]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        make([*words, "-o", folder, "--formats", "html"])
        draw(f"{folder}/report.html", (1180, 1340), HERE / "report.png")
        make(["sweep", "run", "13_tapers", "-o", "tapers"])
        make(["sweep", "show", "tapers", "--html", "tapers.html"])
        draw(f"{folder}/tapers.html", (1180, 1400), HERE / "sweep-page.png")


def make(words: list[str]) -> None:
    """Run a command."""
    if planner(words):
        raise SystemExit(f"failed: {shlex.join(words)}")


def draw(page: str, size: tuple[int, int], to: Path) -> None:
    """A page in a browser, in 256 colours: those of thin lines too, so that they stay apart."""
    browser = shutil.which("chromium") or "chromium-browser"
    with tempfile.TemporaryDirectory() as folder:
        shot = f"{folder}/shot.png"
        where = (f"--user-data-dir={folder}/profile", f"--screenshot={shot}")
        window = f"--window-size={size[0]},{size[1]}"
        subprocess.run([browser, *FLAGS, *OFFLINE, *where, window, f"file://{page}"], check=True)
        Image.open(shot).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
            to, optimize=True
        )


if __name__ == "__main__":
    main()
