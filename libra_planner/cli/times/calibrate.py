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
from libra_planner.studies.kernel_calibration import kernel_refit, read_measured_kernels
from libra_planner.views.times.calibration import calibration_blocks, calibration_payload

_PLACE = "libra-planner calibrate"
_MOST_NAMES = 3


def calibrate(options: argparse.Namespace) -> None:
    """``libra-planner calibrate``."""
    if options.runs:
        got = "got --runs: training runs are not available yet"
        raise SpecError.at(_PLACE, got, "expected --nccl or --kernels", "leave it out")
    if not options.nccl and not options.kernels:
        fix = "give --nccl LOG or --kernels CSV"
        raise SpecError.at(_PLACE, "got nothing to fit", "expected measurements", fix)
    path, as_of, cluster = Path(options.output), _as_of(options), _cluster(options)
    npu = _npu(options.npu) if options.npu else None
    fitted, kernels, notes = None, None, list[str]()
    if options.nccl:
        runs = read_measured_runs(options.nccl, cluster)
        with located("--nccl"):
            fitted = calibration(runs.runs)
        npu, notes = _npu(runs.npu), [*runs.notes]
    if options.kernels:
        npu, rows, said = read_measured_kernels(options.kernels, npu)
        with located("--kernels"):
            kernels = kernel_refit(rows)
        notes += said
    origin = Origin(options.name or path.stem, npu or "", _source(options), as_of)
    kept = write_files({path: system_text(origin, fitted, kernels)})
    found = origin, fitted, kernels, notes, str(path)
    answer(options, lambda: calibration_payload(*found), calibration_blocks(*found))
    tell_kept(kept)


def _cluster(options: argparse.Namespace) -> Cluster:
    if options.npu is not None and options.nccl:
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
    files = [*(options.nccl or ()), *([options.kernels] if options.kernels else ())]
    names = [Path(one).name for one in dict.fromkeys(files)]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def _as_of(options: argparse.Namespace) -> str:
    if options.as_of is None:
        return date.today().isoformat()
    try:
        return day(options.as_of)
    except ValueError as error:
        raise SpecError.at("--as-of", str(error)) from None
