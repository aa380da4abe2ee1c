"""``libra-planner tui``: the cockpit."""

from __future__ import annotations

import argparse
import signal
from functools import partial

from libra_planner.tui.launch import run, serve


def cockpit(options: argparse.Namespace) -> None:
    """``libra-planner tui``."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Its loop has a handler of its own.
    if options.web:
        serve(options.plan, options.port, partial(print, flush=True))
    else:
        run(options.plan)
