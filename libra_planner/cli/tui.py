"""``libra-planner tui``: the cockpit."""

from __future__ import annotations

import argparse
import signal
from functools import partial

from libra_planner.cli.arguments import Commands, command, whole


def add_tui(commands: Commands) -> None:
    """Add ``tui``."""
    text = "Open the architect's cockpit: a plan as a form, bars, plots, links, sweeps, reports."
    parser = command(commands, "tui", cockpit, text)
    what = "plan file (YAML); the first example without it"
    parser.add_argument("plan", metavar="PLAN", nargs="?", help=what)
    what = "serve it to browsers on this machine (extra [web])"
    parser.add_argument("--web", action="store_true", help=what)
    parser.add_argument("--port", type=whole(1, 65535), default=8000, help="of --web; default 8000")


def cockpit(options: argparse.Namespace) -> None:
    """``libra-planner tui``."""
    from libra_planner.tui.launch import run, serve

    signal.signal(signal.SIGINT, signal.default_int_handler)  # Its loop has a handler of its own.
    if options.web:
        serve(options.plan, options.port, partial(print, flush=True))
    else:
        run(options.plan)
