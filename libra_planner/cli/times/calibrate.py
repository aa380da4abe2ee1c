"""``libra-planner calibrate``: the law of measured collectives, fitted to a user's cluster."""

from __future__ import annotations

import argparse
from dataclasses import replace
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
from libra_planner.plan.systems import Origin, Refits, system_text
from libra_planner.step.collectives.fitting import calibration
from libra_planner.step.collectives.measured import measured_npu
from libra_planner.studies.kernel_calibration import kernel_refit, read_measured_kernels
from libra_planner.studies.step_calibration import read_measured_steps, runs_npu, step_refit
from libra_planner.views.times.calibration import calibration_blocks, calibration_payload

_PLACE = "libra-planner calibrate"
_MOST_NAMES = 3


def calibrate(options: argparse.Namespace) -> None:
    """``libra-planner calibrate``."""
    if not options.nccl and not options.kernels and not options.runs:
        fix = "give --nccl LOG, --kernels CSV or --runs CSV"
        raise SpecError.at(_PLACE, "got nothing to fit", "expected measurements", fix)
    path, as_of, cluster = Path(options.output), _as_of(options), _cluster(options)
    origin = Origin(options.name or path.stem, "", _source(options), as_of)
    npu = _npu(options.npu) if options.npu else None
    found, notes = Refits(), list[str]()
    if options.nccl:
        runs = read_measured_runs(options.nccl, cluster)
        with located("--nccl"):
            found = replace(found, collectives=calibration(runs.runs))
        npu, notes = _npu(runs.npu), [*runs.notes]
    if options.kernels:
        npu, rows, said = read_measured_kernels(options.kernels, npu)
        with located("--kernels"):
            found = replace(found, kernels=kernel_refit(rows))
        notes += said
    if options.runs:
        npu, file = runs_npu(options.runs, npu)
        system = found.system(replace(origin, npu=npu))
        steps, said = read_measured_steps(options.runs, file, npu, system)
        with located("--runs"):
            found = replace(found, steps=step_refit(steps))
        notes += said
    origin = replace(origin, npu=npu or "")
    kept = write_files({path: system_text(origin, found)})
    shown = origin, found, notes, str(path)
    answer(options, lambda: calibration_payload(*shown), calibration_blocks(*shown))
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
    files = [*(options.nccl or ()), *filter(None, (options.kernels, options.runs))]
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
