"""``libra-planner calibrate``: the model's constants, fitted to a user's cluster."""

from __future__ import annotations

import argparse

from libra_planner.api.clusters.systems import calibrated
from libra_planner.cli.streams import answer, tell_kept

_ASKED = ("kernels", "runs", "npu", "nics", "interconnect", "kind", "name", "as_of")
"""Options that are the arguments of the same names."""


def calibrate(options: argparse.Namespace) -> None:
    """``libra-planner calibrate``."""
    asked = {name: getattr(options, name) for name in _ASKED}
    found = calibrated(options.output, nccl=options.nccl or (), **asked)
    answer(options, found.to_dict, found.blocks())
    tell_kept(found.kept)
