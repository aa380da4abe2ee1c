"""``libra-planner train``: a training step from flags, or a CSV file of runs."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from libra_planner.api.training import TrainingStep
from libra_planner.cli.arguments.making import flag_of
from libra_planner.cli.streams import answer, print_json
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.inputs.training.memory import RunMemory, run_memory
from libra_planner.inputs.training.planned import PlannedRun, fastest_microbatch, planned_run
from libra_planner.inputs.training.rows import (
    ADDED,
    OPTIONS,
    TrainingRun,
    asked_run,
    read_training_file,
)
from libra_planner.plan.systems import System, load_system
from libra_planner.views.times.training import run_cells

_FLAGS = {column: flag_of(option) for option, column in OPTIONS.items()}
_AUTO = "auto"
_PLACE = "libra-planner train"


def train(options: argparse.Namespace) -> None:
    """``libra-planner train``."""
    if options.csv is not None:
        _answer_file(options)
        return
    system = _system(options)
    try:
        run = _asked(options)
        plan = fastest_microbatch if options.microbatch == _AUTO else planned_run
        planned = plan(run, is_row=False, system=system)
    except SpecError as error:
        raise type(error)(*map(_flagged, error.faults)) from None
    step = TrainingStep(planned, options.attention_flops)
    answer(options, step.to_dict, step.blocks())


def _system(options: argparse.Namespace) -> System | None:
    return None if options.system is None else load_system(options.system)


def _asked(options: argparse.Namespace) -> TrainingRun:
    """The run that the flags tell."""
    if options.npu is None:
        raise SpecError.at(_PLACE, "got no --npu", "", "give one: 'list npus', or --csv RUNS")
    given = {name: getattr(options, name) for name in OPTIONS}
    return asked_run({name: value for name, value in given.items() if value != _AUTO})


def _flagged(fault: Fault) -> Fault:
    """A fault of a column as one of its flag."""
    if fault.place is not None:
        return fault
    flag = _FLAGS.get(fault.path.rpartition(".")[2], _PLACE)
    return replace(fault, path="", place=Place(flag))


def _answer_file(options: argparse.Namespace) -> None:
    given = [x for x in OPTIONS if getattr(options, x) is not None]
    if given:
        flags = ", ".join(map(flag_of, given))
        got = f"got {flags} beside --csv, whose rows say that"
        raise SpecError.at(_PLACE, got, "", "leave one of them out")
    file, system = read_training_file(options.csv), _system(options)
    if options.json:
        cases = map(partial(_case, options, system), file.runs)
        print_json({"cases": list(cases)})
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*file.columns, *ADDED])
    n_without = 0
    for row, run in zip(file.rows, file.runs, strict=True):
        found = _planned(run, system)
        n_without += isinstance(found, SpecError)
        writer.writerow([*row, *run_cells(found, _memory(run, found))])
    for line in _summary(n_without, len(file.runs)):
        print(line, file=sys.stderr)


def _summary(n_without: int, n_runs: int) -> Iterator[str]:
    if n_without:
        said = "the column message says why"
        yield f"{n_without:,} of {n_runs:,} rows have no predicted time; {said}"


def _planned(run: TrainingRun | SpecError, system: System | None) -> PlannedRun | SpecError:
    if isinstance(run, SpecError):
        return run
    try:
        found = planned_run(run, system=system)
        _ = found.step_time_s
    except SpecError as error:
        return error
    return found


def _memory(run: TrainingRun | SpecError, found: PlannedRun | SpecError) -> RunMemory | None:
    """Memory of a run that has no time, where its source says enough for that."""
    if isinstance(run, SpecError) or not isinstance(found, SpecError):
        return None
    try:
        return run_memory(run)
    except SpecError:
        return None


def _case(
    options: argparse.Namespace, system: System | None, run: TrainingRun | SpecError
) -> dict[str, Any]:
    found = _planned(run, system)
    if isinstance(found, SpecError):
        return {"message": str(found)}
    return TrainingStep(found, options.attention_flops).to_dict()
