"""``libra-planner``: arguments, exit codes and where output goes.

Modules are imported inside the commands, so that ``--help`` loads nothing and
``evaluate`` never loads a solver.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from libra_planner import __version__
from libra_planner.cli.arguments import add_json, add_settings
from libra_planner.cli.failures import BAD_INPUT, exit_code_of
from libra_planner.cli.numbers import joined_negatives, whole
from libra_planner.cli.streams import safe_stderr
from libra_planner.cli.sweep_arguments import add_sweep
from libra_planner.cli.tui_arguments import add_tui
from libra_planner.plain_text import short_text, visible
from libra_planner.processes import kept_interrupts

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_LONGEST_MESSAGE = 2000
"""Letters of what is wrong with the arguments."""


def main(
    arguments: Sequence[str] | None = None, *, at_interrupt: Callable[[int], int] = int
) -> int:
    """Run one command; returns the exit code (0, 2, 3, 4 or 130; 1 for our own faults).

    ``at_interrupt`` is asked for the code after an interrupt, while all that was interrupted is
    still in memory: to end the process there.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # A terminal without Unicode still gets it all.
    with safe_stderr():
        return _exit_code(sys.argv[1:] if arguments is None else arguments, at_interrupt)


def _exit_code(arguments: Sequence[str], at_interrupt: Callable[[int], int]) -> int:
    if sys.stdout is None:
        print("libra-planner: cannot write the result: stdout is closed", file=sys.stderr)
        return BAD_INPUT
    options = argparse.Namespace()
    try:
        with kept_interrupts():
            _run(arguments, options)
    except (Exception, KeyboardInterrupt) as error:
        code = exit_code_of(error, arguments, getattr(options, "plan", None))
        return code if isinstance(error, Exception) else at_interrupt(code)
    return 0


def _run(arguments: Sequence[str], options: argparse.Namespace) -> None:
    try:
        _parser().parse_args(joined_negatives(arguments), options)
    except SystemExit:
        sys.stdout.flush()  # Of --help and --version.
        raise
    options.run(options)
    sys.stdout.flush()


class _Parser(argparse.ArgumentParser):
    """A parser that does not hide that it cannot write, and shows what it was given."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(short_text(message, _LONGEST_MESSAGE)))

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if message:
            (file or sys.stderr).write(message)


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="libra-planner",
        description="Plans the network bandwidth of AI training clusters.",
        epilog="exit codes: 0 done, 2 bad input, 3 infeasible or ill-posed, "
        "4 not certified, 130 interrupted; 1 is a fault of libra-planner",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_optimize(commands)
    _add_evaluate(commands)
    _add_check(commands)
    _add_pareto(commands)
    _add_collective(commands)
    add_sweep(commands, _command)
    _add_flows(commands)
    _add_report(commands)
    _add_list(commands)
    _add_schema(commands)
    _add_import(commands)
    add_tui(commands, _command)
    return parser


_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_SEEDS = (
    "statistics of N routings, with seeds from --seed on; default: the mean of 10 routings, fewer "
    "where flows are very many"
)
_SEED = "seed of one routing, or with --seeds of the first"


def _command(commands: _Commands, name: str, run: str, text: str) -> argparse.ArgumentParser:
    """A subcommand that calls ``libra_planner.cli.commands.<run>``."""

    def call(options: argparse.Namespace) -> None:
        from libra_planner.cli import commands as implementations

        getattr(implementations, run)(options)

    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, allow_abbrev=False
    )
    parser.set_defaults(run=call)
    return parser


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="plan file (YAML)")
    add_settings(parser)


def _add_optimize(commands: _Commands) -> None:
    text = "Find the bandwidth of every dimension that is best for the plan's objective."
    parser = _command(commands, "optimize", "optimize", text)
    _add_plan(parser)
    _add_policy(parser, "--routing", "of the designs' links: iterate with what they deliver; ")
    _add_traffic(parser)


def _add_evaluate(commands: _Commands) -> None:
    text = "Step time and cost of a given bandwidth vector."
    parser = _command(commands, "evaluate", "evaluate", text)
    _add_plan(parser)
    parser.add_argument(
        "--bandwidth",
        required=True,
        metavar="B1,B2,...",
        help="GB/s per NPU of every dimension, innermost first",
    )


def _add_check(commands: _Commands) -> None:
    text = "Step time of a design on real links, as a routing policy loads them."
    parser = _command(commands, "check", "check", text)
    what = "plan file (YAML); several are jobs that share the outermost dimension"
    parser.add_argument("plans", metavar="PLAN", nargs="+", help=what)
    add_settings(parser)
    what = "GB/s per NPU of every dimension, innermost first; without it the plan's optimum"
    parser.add_argument("--bandwidth", metavar="B1,B2,...", help=what)
    _add_policy(parser)
    _add_traffic(parser)
    for flag, default, what in (
        ("--fail-links", 0, "cables between switches that fail, drawn for every seed"),
        ("--fail-spines", 0, "spines that fail, drawn for every seed"),
        ("--busiest", 5, "busiest links to show; default 5"),
    ):
        numbers = whole(0, 10**6)
        parser.add_argument(flag, type=numbers, default=default, metavar="N", help=what)
    what = "also every single cable and spine failed, worst first"
    parser.add_argument("--n-1", dest="single_failures", action="store_true", help=what)
    parser.add_argument("--trace", metavar="SRC-DST", help="show one flow hop by hop")
    parser.add_argument("--groups", action="store_true", help="FIM of every ECMP group too")


def _add_traffic(parser: argparse.ArgumentParser) -> None:
    """Draws of the routing, and how NPUs use their NICs."""
    for flag, default, numbers, what in (
        ("--seeds", None, whole(1, 1_000_000), _SEEDS),
        ("--seed", None, whole(0, 2**32 - 1), _SEED),
        ("--queue-pairs", None, whole(1, 128), "per connection (default: the plan's, else 1)"),
        ("--npus-per-address", None, whole(1, 1024), "that share an IP address (default: same)"),
    ):
        parser.add_argument(flag, type=numbers, default=default, metavar="N", help=what)
    parser.add_argument(
        "--placement",
        choices=("contiguous", "rail", "random"),
        help="of the job's NPUs (default: the plan's, else contiguous)",
    )


def _add_pareto(commands: _Commands) -> None:
    text = "The time/cost frontier of a plan: the fastest design at each of a range of costs."
    parser = _command(commands, "pareto", "pareto", text)
    _add_plan(parser)
    parser.add_argument("--csv", action="store_true", help="print CSV (instead of --json)")
    parser.add_argument(
        "--points",
        type=whole(2, 1000),
        default=25,
        metavar="N",
        help="2 to 1000 points; default 25",
    )


def _add_collective(commands: _Commands) -> None:
    text = "Time of a single collective, or of a CSV file of them."
    parser = _command(commands, "collective", "collective", text)
    parser.add_argument("topology", metavar="TOPOLOGY", nargs="?", help="such as RI(4)_SW(8)")
    for flag, metavar, what in (
        ("--kind", "KIND", "all-reduce, reduce-scatter, all-gather or all-to-all"),
        ("--size", "SIZE", "full vector, such as 64MiB (for an all-gather the gathered result)"),
        ("--bandwidth", "B1,B2,...", "GB/s per NPU of every dimension, innermost first"),
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


def _add_flows(commands: _Commands) -> None:
    text = "Imbalance, rates and completion times of a list of flows over a fabric."
    parser = _command(commands, "flows", "flows", text)
    parser.add_argument("fabric", metavar="FABRIC", nargs="?", help="fabric file (YAML) or preset")
    what = "CSV file flow_id,src,dst,bytes[,via][,src_port][,collective]"
    parser.add_argument("flows", metavar="FLOWS", nargs="?", help=what)
    for flag, default, numbers, what in (
        ("--seeds", None, whole(1, 1_000_000), _SEEDS),
        ("--seed", None, whole(0, 2**32 - 1), _SEED),
        ("--fail-links", 0, whole(0, 10**6), "cables between switches that fail, drawn per seed"),
        ("--fail-spines", 0, whole(0, 10**6), "spines that fail, drawn per seed"),
        ("--busiest", 5, whole(0, 1000), "busiest links to show; default 5"),
    ):
        parser.add_argument(flag, type=numbers, default=default, metavar="N", help=what)
    for flag, metavar, what in (
        (
            "--rates",
            "OUT.csv",
            "write flow_id,rate_GBps,finish_s of every flow (- for stdout)",
        ),
        ("--trace", "FLOW_ID", "show one flow hop by hop"),
        ("--hops", "TABLE.csv", "measured hops flow,switch,egress[,layer] instead of FLOWS"),
        ("--interfaces", "TABLE.csv", "with --hops: all interfaces switch,egress[,layer]"),
    ):
        parser.add_argument(flag, metavar=metavar, help=what)
    _add_policy(parser)
    # None, so that what is given can be told from what is not: cli/flows.py knows the defaults.
    parser.set_defaults(policy=None, seeds=None, seed=None, fail_links=None, fail_spines=None)
    parser.add_argument("--fim-only", action="store_true", help="no rates and completion times")
    parser.add_argument("--groups", action="store_true", help="FIM of every ECMP group too")
    add_json(parser)


def _add_policy(parser: argparse.ArgumentParser, name: str = "--policy", goal: str = "") -> None:
    """How flows find their paths."""
    from libra_planner.routing.policy import HASHES, OPTIONS, POLICIES, Policy, readers

    *names, last = POLICIES
    default = None if goal else Policy().name
    text = f"{goal}{', '.join(names)} or {last}" + ("" if goal else f"; default {default}")
    parser.add_argument(name, dest="policy", default=default, metavar="POLICY", help=text)
    kinds: dict[str, dict[str, Any]] = {
        "hash": {"choices": HASHES},
        "time_limit": {"type": float, "metavar": "S"},
    }
    for option, about in OPTIONS.items():
        what = about.format(", ".join(readers(option)))
        kind = kinds.get(option, {"action": "store_true"})
        parser.add_argument(f"--{option.replace('_', '-')}", help=what, **kind)


def _add_report(commands: _Commands) -> None:
    from libra_planner.cli.report_arguments import add_arguments

    text = "Compare one to ten designs for those who buy them: bill of materials, costs, run."
    add_arguments(_command(commands, "report", "report", text))


def _add_list(commands: _Commands) -> None:
    parser = _command(commands, "list", "list_bundled", "List what is bundled.")
    kinds = ("workloads", "cost-models", "npu-catalogues", "parts", "fabrics", "examples", "sweeps")
    parser.add_argument("kind", choices=kinds)
    add_json(parser)


def _add_schema(commands: _Commands) -> None:
    text = "Print the JSON Schema of a file format, for editors."
    parser = _command(commands, "schema", "schema", text)
    formats = ("plan", "workload", "price-book", "npu-catalogue", "parts", "sweep")
    parser.add_argument("format", choices=formats)


def _add_import(commands: _Commands) -> None:
    parser = commands.add_parser("import", help="Read another tool's files.", allow_abbrev=False)
    formats = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    text = "Write a plan, a workload and a price book from LIBRA's four input files."
    libra = _command(formats, "libra", "import_libra", text)
    for name, what in (
        ("network", "network .yml"),
        ("workload", "workload .txt"),
        ("communicator", "communicator .yml"),
        ("cost-model", "cost model .yml"),
    ):
        libra.add_argument(f"--{name}", required=True, metavar="FILE", help=f"LIBRA's {what}")
    libra.add_argument("-o", "--output", required=True, metavar="PLAN", help="plan to write")
