"""``libra-planner collective``: one collective from flags, or a CSV file of them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from libra_planner.cli.arguments import BANDWIDTH, Commands, add_json, command
from libra_planner.cli.streams import print_json, show
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.processes import uncollected

if TYPE_CHECKING:
    from libra_planner.inputs.collectives import CaseFile, Given
    from libra_planner.studies.collectives import SolvedCollective

_FLAGS = {
    "kind": "--kind",
    "size_bytes": "--size",
    "topology": "TOPOLOGY",
    "bandwidth_GBps": "--bandwidth",
    "latency_ns": "--latency-ns",
    "chunks": "--chunks",
    "algorithms": "--algorithms",
}
_MOST_CLOCK_NS = 1e6
_ADDED = ("time_s", "ideal_time_s")
_ADDED_BALANCED = ("balanced_time_s", "balanced_gain", "aggregate_bound_s")


def add_collective(commands: Commands) -> None:
    """Add ``collective``."""
    text = "Time of a single collective, or of a CSV file of them."
    parser = command(commands, "collective", collective, text)
    parser.add_argument("topology", metavar="TOPOLOGY", nargs="?", help="such as RI(4)_SW(8)")
    for flag, metavar, what in (
        ("--kind", "KIND", "all-reduce, reduce-scatter, all-gather or all-to-all"),
        ("--size", "SIZE", "full vector, such as 64MiB (for an all-gather the gathered result)"),
        ("--bandwidth", "B1,B2,...", BANDWIDTH),
        ("--latency-ns", "NS", "latency per hop, one number or one per dimension (default 0)"),
        ("--chunks", "N", "equal parts of the vector, or auto for the fastest (default 1)"),
        ("--algorithms", "A1,A2,...", "ring, direct, direct1, halving_doubling or default, each"),
        ("--csv", "CASES", "file of collectives; the other values become its defaults"),
    ):
        parser.add_argument(flag, metavar=metavar, help=what)
    parser.add_argument(
        "--clock-ns",
        default="1",
        metavar="NS",
        help="messages take whole multiples of this, rounded down (default 1 as in ASTRA-sim; "
        "0 for none)",
    )
    parser.add_argument("--in-network", action="store_true", help="switches reduce (all-reduce)")
    parser.add_argument(
        "--scheduler",
        choices=("hierarchical", "balanced"),
        default="hierarchical",
        help="balanced: also the best split of the data over orders of the dimensions",
    )
    add_json(parser)


def collective(options: argparse.Namespace) -> None:
    """``libra-planner collective``."""
    with uncollected():
        from libra_planner.inputs.collectives import REQUIRED, Given, parse_case, parse_number
        from libra_planner.studies.collectives import solved_collective
        from libra_planner.views.collective import collective_blocks, collective_payload

    given = _given(options)
    clock_ns = parse_number(Given(options.clock_ns, Place("--clock-ns")), 0.0, _MOST_CLOCK_NS)
    if options.csv is not None:
        _answer_file(options, given, clock_ns)
        return
    missing = [_FLAGS[name] for name in REQUIRED if name not in given]
    if missing:
        fix = "give them, or a file of collectives with --csv"
        place = Place("libra-planner collective")
        raise SpecError(Fault(f"got no {', '.join(missing)}", "", fix, "", place))
    case = parse_case(given, in_network=options.in_network)
    solved = solved_collective(case, clock_ns=clock_ns, balanced=options.scheduler == "balanced")
    if options.json:
        print_json(collective_payload(case, solved.times, solved.schedule))
    else:
        show(collective_blocks(case, solved.times, solved.schedule))


def _given(options: argparse.Namespace) -> dict[str, Given]:
    """Values given as flags, by the name of their column."""
    from libra_planner.inputs.collectives import Given

    texts = {
        name: getattr(options, "topology" if flag == "TOPOLOGY" else flag[2:].replace("-", "_"))
        for name, flag in _FLAGS.items()
    }
    return {
        name: Given(text, Place(_FLAGS[name]), in_file=False)
        for name, text in texts.items()
        if text is not None
    }


def _answer_file(options: argparse.Namespace, given: dict[str, Given], clock_ns: float) -> None:
    from libra_planner.inputs.collectives import read_case_file
    from libra_planner.studies.collectives import solved_collective
    from libra_planner.views.collective import collective_payload

    added = _ADDED + (_ADDED_BALANCED if options.scheduler == "balanced" else ())
    file = read_case_file(options.csv, given, in_network=options.in_network, reserved=added)
    balanced = options.scheduler == "balanced"
    solved = [solved_collective(one, clock_ns=clock_ns, balanced=balanced) for one in file.cases]
    if options.json:
        cases = [collective_payload(one.case, one.times, one.schedule) for one in solved]
        print_json({"cases": cases})
        return
    _print_csv(file, added, solved)


def _print_csv(file: CaseFile, added: tuple[str, ...], solved: list[SolvedCollective]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*file.columns, *added])
    for cells, one in zip(file.rows, solved, strict=True):
        figures: list[Any] = [one.times.time_s, one.times.ideal_time_s]
        if one.schedule is not None:
            figures += [one.schedule.time_s, one.schedule.gain, one.schedule.aggregate_bound_s]
        writer.writerow([*cells, *map(repr, figures)])
