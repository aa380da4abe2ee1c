"""The other side of :mod:`~libra_planner.tui.work`: a process that has loaded the solver.

Importing this module where :data:`LOADS` is set loads it, which is how ``multiprocessing`` has
the process prepared that work is forked from; anywhere else it only defines what work does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import threading
import time
from importlib import import_module
from multiprocessing.connection import Connection

from libra_planner.errors import PlannerError

PROGRESS, RESULT, ERROR = "progress", "result", "error"
"""Kinds of messages from a process at work."""

LOADS = "LIBRA_PLANNER_LOADS_SOLVER"
"""Variable in the environment of the process that work is forked from."""

MODULES = (
    "libra_planner.optimizer.optimize",
    "libra_planner.optimizer.shadow",
    "libra_planner.routing.kernels.assignment",
    "libra_planner.routing.kernels.rates",
    "libra_planner.plan.problem",
    "libra_planner.sweeps.runner",
    "libra_planner.tui.screens.links",
    "libra_planner.tui.session",
    "libra_planner.tui.screens.sweeps",
    "duckdb",
)
_NICENESS = 5
"""The interface comes first where there are fewer cores than work."""

_LOOK_S = 0.5
"""Pause between two looks whether the parent is there."""

_PATIENCE_S = 3.0
"""Time in which the loops of routing are loaded if they have been compiled before."""


def run(sender: Connection, work: bytes) -> None:
    """The life of a process at work: one call, whose result or error is sent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The cockpit's to handle.
    _hush()
    _follow(os.getppid())
    try:
        kind, found = RESULT, pickle.loads(work)(lambda *done: sender.send((PROGRESS, done)))
    except Exception as error:
        # What it says, where it cannot be made again from its parts.
        known = error if isinstance(error, PlannerError) else None
        kind, found = ERROR, known or PlannerError(f"unexpected {type(error).__name__}: {error}")
    with contextlib.suppress(OSError):  # The cockpit was left meanwhile.
        sender.send((kind, pickle.dumps(found)))


def _hush() -> None:
    """Let nothing that a library prints come between the interface and its terminal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)


def _follow(parent: int) -> None:
    """End this process when its parent ends, whatever it is about."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _load() -> None:
    """Import everything, and have the loops of routing in memory if they are on disk.

    On a new machine they have to be compiled, which takes long: a process beside this one does
    so, for the next time, and nothing waits for it.
    """
    for name in MODULES:
        import_module(name)
    parent, child = os.getpid(), os.fork()
    if child == 0:
        _follow(parent)
        with contextlib.suppress(Exception):
            _route()
        os._exit(0)
    end_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end_s:
        if os.waitpid(child, os.WNOHANG)[0]:
            _route()
            return
        time.sleep(0.01)


def _route() -> None:
    """Checks of links that need all loops, of a fabric as small as can be."""
    import numpy as np

    from libra_planner.reading.bundled import example
    from libra_planner.routing.policy import POLICIES
    from libra_planner.tui.disk.readings import read_plan
    from libra_planner.tui.screens.links import check_links
    from libra_planner.tui.starts import equal_split_GBps
    from libra_planner.units import BYTES_PER_S_PER_GBPS

    small = ("fabric.topology=SW(4)_SW(16)", "parallelism.tp=4", "parallelism.dp=16")
    problem = read_plan(example("07_check"), small).problem
    if problem is not None:
        bandwidth = [each * BYTES_PER_S_PER_GBPS for each in equal_split_GBps(problem)]
        for kind in POLICIES.values():  # Those that have loops of their own.
            if kind.finds_paths and kind.keeps_flows_whole and "time_limit" not in kind.options:
                check_links(problem, np.array(bandwidth), kind.name, 0, lambda *_: None)


if os.environ.get(LOADS):
    _hush()
    os.nice(_NICENESS)
    _load()
    gc.freeze()  # Every process at work shares it: none looks for garbage there.
