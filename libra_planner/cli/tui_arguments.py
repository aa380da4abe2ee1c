"""Arguments of ``libra-planner tui``; imports nothing that takes time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from libra_planner.cli.numbers import whole


def add_tui(commands: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "Open the architect's cockpit: a plan as a form, bars, plots, links, sweeps, reports."
    parser = command(commands, "tui", "cockpit", text)
    what = "plan file (YAML); the first example without it"
    parser.add_argument("plan", metavar="PLAN", nargs="?", help=what)
    what = "serve it to browsers on this machine (extra [web])"
    parser.add_argument("--web", action="store_true", help=what)
    parser.add_argument("--port", type=whole(1, 65535), default=8000, help="of --web; default 8000")
