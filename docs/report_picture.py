"""Draw docs/report.png: the first page of the first report of procurement.md, in a browser."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from libra_planner.cli.main import main as planner

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1180, 1075
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")


def main() -> None:
    """Make the report, look at it as wide as a page, and save it in few colours."""
    text = (HERE / "procurement.md").read_text(encoding="utf-8")
    command = re.findall(r"^libra-planner (report .*) -o ", text, re.MULTILINE)[0]
    words = [word.replace("examples/", f"{HERE.parent}/examples/") for word in shlex.split(command)]
    browser = shutil.which("chromium") or "chromium-browser"
    with tempfile.TemporaryDirectory() as folder:
        if planner([*words, "-o", folder, "--formats", "html"]):
            raise SystemExit("the report was not made")
        shot = Path(folder) / "shot.png"
        size = f"--window-size={WIDTH},{HEIGHT}"
        where = (f"--user-data-dir={folder}/profile", f"--screenshot={shot}", size)
        page = f"file://{folder}/report.html"
        subprocess.run([browser, *FLAGS, *where, "--hide-scrollbars", page], check=True)
        Image.open(shot).quantize(32).save(HERE / "report.png", optimize=True)


if __name__ == "__main__":
    main()
