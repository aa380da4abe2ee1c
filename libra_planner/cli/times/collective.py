"""``libra-planner collective``: one collective from flags, or a CSV file of them."""

from __future__ import annotations

import argparse
import csv
import sys
from functools import partial

from libra_planner import allowed
from libra_planner.api.clusters.cases import answered_systems
from libra_planner.api.collectives import Collective, solved_collective
from libra_planner.cli.arguments.making import flag_of
from libra_planner.cli.streams import answer, answer_cases, print_json
from libra_planner.errors import Place, SpecError
from libra_planner.inputs import collectives as inputs
from libra_planner.inputs import runs

_FLAGS = ("--kind", "--size", "TOPOLOGY", "--bandwidth", "--latency-ns", "--chunks", "--algorithms")
"""What gives the values that have a column of their own in a file, in its order."""
_ADDED = ("time_s", "ideal_time_s")
_ADDED_BALANCED = ("balanced_time_s", "balanced_gain", "aggregate_bound_s")


def collective(options: argparse.Namespace) -> None:
    """``libra-planner collective``."""
    if options.system is not None:
        _refuse(options, "--system", *_OF_TOPOLOGIES, "csv")
        _answer_run(options)
        return
    if options.csv is not None and runs.is_run_file(options.csv):
        _refuse(options, "a file of systems", *_OF_TOPOLOGIES, *_OF_SYSTEMS, "kind", "size")
        answer_cases(options, answered_systems(options.csv))
        return
    _refuse(options, "a topology", *_OF_SYSTEMS)
    flags = dict(zip(inputs.COLUMNS, _FLAGS, strict=True))
    texts = {name: getattr(options, _attribute(flag)) for name, flag in flags.items()}
    given = {
        name: inputs.Given(text, Place(flags[name]), in_file=False)
        for name, text in texts.items()
        if text is not None
    }
    clock = inputs.Given(options.clock_ns, Place("--clock-ns"))
    clock_ns = inputs.parse_number(clock, *allowed.CLOCK_NS)
    balanced = options.scheduler == "balanced"
    inside = {"in_network": options.in_network, "schedule": options.schedule}
    solve = partial(solved_collective, clock_ns=clock_ns, balanced=balanced)
    if options.csv is not None:
        added = _ADDED + _ADDED_BALANCED * balanced
        file = inputs.read_case_file(options.csv, given, **inside, reserved=added)
        _answer_file(options, file, added, list(map(solve, file.cases)))
        return
    missing = [flags[name] for name in inputs.REQUIRED if name not in given]
    if missing:
        got, fix = f"got no {', '.join(missing)}", "give them, or a file of collectives with --csv"
        raise SpecError.at("libra-planner collective", got, "", fix)
    solved = solve(inputs.parse_case(given, **inside))
    answer(options, solved.to_dict, solved.blocks())


_OF_TOPOLOGIES = (
    *("topology", "bandwidth", "latency_ns", "chunks", "algorithms"),
    *("clock_ns", "in_network", "schedule", "scheduler"),
)
_OF_SYSTEMS = ("nodes", "npus_per_node", "nics", "interconnect")


def _refuse(options: argparse.Namespace, subject: str, *names: str) -> None:
    """Refuse options that mean nothing beside a subject."""
    usual = {"clock_ns": "1", "scheduler": "hierarchical"}
    given = [x for x in names if getattr(options, x) not in (None, False, usual.get(x))]
    if given:
        flags = ", ".join("TOPOLOGY" if name == "topology" else flag_of(name) for name in given)
        got = f"got {flags} beside {subject}, which has no use for it"
        raise SpecError.at("libra-planner collective", got, "", "leave one of them out")


def _answer_run(options: argparse.Namespace) -> None:
    """A collective on a system that is named."""
    place = "libra-planner collective"
    if options.kind is None or options.size is None:
        raise SpecError.at(place, "got --system without --kind and --size", "", "give both")
    from libra_planner.api.clusters.systems import answered_collective  # It loads far more.

    size = inputs.size_of(inputs.Given(options.size, Place("--size"), in_file=False))
    nodes, asked = options.nodes or 1, {name: getattr(options, name) for name in _OF_SYSTEMS[1:]}
    found = answered_collective(options.system, options.kind, size, nodes=nodes, **asked)
    answer(options, found.to_dict, found.blocks())


def _attribute(flag: str) -> str:
    return flag.strip("-").replace("-", "_").lower()


def _answer_file(
    options: argparse.Namespace,
    file: inputs.CaseFile,
    added: tuple[str, ...],
    solved: list[Collective],
) -> None:
    if options.json:
        print_json({"cases": [one.to_dict() for one in solved]})
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*file.columns, *added])
    for cells, one in zip(file.rows, solved, strict=True):
        figures = ["", repr(one.ideal.time_s)]
        if one.times is not None:
            figures = [repr(one.times.time_s), repr(one.times.ideal_time_s)]
        if one.schedule is not None:
            best = one.schedule
            figures += map(repr, (best.time_s, best.gain, best.aggregate_bound_s))
        writer.writerow([*cells, *figures])
    if n_without := sum(one.times is None for one in solved):
        rows = f"{n_without:,} of {len(solved):,} rows have no exact time"
        why = "where tiers share a port, and of rings over all ranks, only ideal times are told"
        print(f"{rows}: {why}", file=sys.stderr)
