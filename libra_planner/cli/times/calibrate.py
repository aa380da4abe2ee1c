"""``libra-planner calibrate``: the law of measured collectives, fitted to a user's cluster."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

from libra_planner.cli.streams import answer, tell_kept
from libra_planner.cli.times.collective import node_nic_Bps
from libra_planner.errors import SpecError, located
from libra_planner.files import write_files
from libra_planner.inputs.measured_runs import Cluster, read_measured_runs
from libra_planner.inputs.runs import kind_named
from libra_planner.plan.npus import catalogue, npu_named
from libra_planner.plan.quotes import day
from libra_planner.plan.systems import Origin, system_text
from libra_planner.step.collectives.fitting import calibration
from libra_planner.step.collectives.measured import measured_npu
from libra_planner.views.times.calibration import calibration_blocks, calibration_payload

_PLACE = "libra-planner calibrate"
_MOST_NAMES = 3


def calibrate(options: argparse.Namespace) -> None:
    """``libra-planner calibrate``."""
    for name in ("kernels", "runs"):
        if getattr(options, name):
            got = f"got --{name}, which is not available yet"
            raise SpecError.at(_PLACE, got, "expected --nccl alone", "leave it out")
    if not options.nccl:
        raise SpecError.at(_PLACE, "got nothing to fit", "expected measurements", "give --nccl LOG")
    found = read_measured_runs(options.nccl, _cluster(options))
    with located("--nccl"):
        fitted = calibration(found.runs)
    path = Path(options.output)
    origin = Origin(options.name or path.stem, _npu(found.npu), _source(options), _as_of(options))
    kept = write_files({path: system_text(origin, fitted)})
    answer(
        options,
        lambda: calibration_payload(origin, fitted, found.notes, str(path)),
        calibration_blocks(origin, fitted, found.notes, str(path)),
    )
    tell_kept(kept)


def _cluster(options: argparse.Namespace) -> Cluster:
    if options.npu is not None:
        with located("--npu"):
            measured_npu(options.npu)
    with located("--kind"):
        kind = kind_named(options.kind) if options.kind else ""
    return Cluster(options.npu, node_nic_Bps(options.nics), options.interconnect, kind)


def _npu(name: str) -> str:
    """The NPU by its name in the catalogue, where that has it."""
    return npu_named(name, catalogue().npus) or measured_npu(name).lower()


def _source(options: argparse.Namespace) -> str:
    """The files, by their names."""
    names = [Path(one).name for one in dict.fromkeys(options.nccl)]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def _as_of(options: argparse.Namespace) -> str:
    if options.as_of is None:
        return date.today().isoformat()
    try:
        return day(options.as_of)
    except ValueError as error:
        raise SpecError.at("--as-of", str(error)) from None
