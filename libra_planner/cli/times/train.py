"""``libra-planner train``: a training step from flags, or a CSV file of runs."""

from __future__ import annotations

import argparse

from libra_planner.api.clusters.cases import answered_runs
from libra_planner.api.training import TrainingStep
from libra_planner.cli.arguments.making import flag_of, on_flag
from libra_planner.cli.streams import answer, answer_cases
from libra_planner.errors import SpecError
from libra_planner.inputs.training.planned import fastest_microbatch, planned_run
from libra_planner.inputs.training.rows import OPTIONS, TrainingRun, asked_run
from libra_planner.plan.systems import System, load_system

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
        raise type(error)(*(on_flag(x, OPTIONS, _PLACE) for x in error.faults)) from None
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


def _answer_file(options: argparse.Namespace) -> None:
    given = [x for x in OPTIONS if getattr(options, x) is not None]
    if given:
        flags = ", ".join(map(flag_of, given))
        got = f"got {flags} beside --csv, whose rows say that"
        raise SpecError.at(_PLACE, got, "", "leave one of them out")
    cases = answered_runs(options.csv, _system(options), options.attention_flops)
    answer_cases(options, cases, "predicted time")
