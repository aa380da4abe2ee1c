"""Modules that are imported beside the interface, before the first use of what needs them."""

from __future__ import annotations

import gc
from importlib import import_module

from libra_planner.tui.actions import SCREENS
from libra_planner.tui.work import Ticket

FIGURES = ("evaluation", "timing.explanation", "report.payload")
"""What showing a design's figures needs."""

OTHERS = (
    "optimizer.shadow",
    "flows.check",
    "report.hotspot",
    "report.check",
    "sweep.results",
    *(f"tui.screens.{name}" for name in SCREENS),
)
"""The other screens, and what comes back to them from the solver."""


def load(names: tuple[str, ...], ticket: Ticket) -> None:
    """Import modules of ours, looking for no garbage meanwhile, until it is cancelled."""
    gc.disable()
    try:
        for name in names:
            if ticket.cancelled:
                return
            import_module(f"libra_planner.{name}")
    finally:
        gc.enable()
