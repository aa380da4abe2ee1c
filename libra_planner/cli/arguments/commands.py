"""All commands with what they take.

``--help`` loads no command, and what a command takes is listed only where the command is named.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from libra_planner import allowed
from libra_planner.cli.arguments import networks, times
from libra_planner.cli.arguments.helping import PROGRAM, examples_text, usage
from libra_planner.cli.arguments.making import (
    BANDWIDTH,
    JSON,
    Argument,
    Arguments,
    Commands,
    Once,
    Titled,
    choice,
    flag_of,
    given,
    number,
    number_or_share,
    plan_prices,
    switch,
    text,
)
from libra_planner.cli.arguments.sweeps import SWEEP_ACTIONS
from libra_planner.reading.bundled import FLOW_LISTS, PLANS


def _settings(subject: str = "the plan") -> tuple[Argument, ...]:
    what = f"override a value of {subject}; KEY is a dotted path, VALUE is YAML or JSON"
    more: dict[str, Any] = {"dest": "settings", "action": "append", "default": []}
    return text("--set", "KEY=VALUE", what, **more), JSON


_PLAN_FILE = "plan file (YAML), or a bundled plan's name: list examples"
_PLAN: tuple[Argument | Titled, ...] = (
    given("plan", "PLAN", _PLAN_FILE, PLANS),
    *_settings(),
    Titled("prices", plan_prices()),
)
_GROUPS = switch("--groups", "FIM of every ECMP group too")
_SEEDS = (
    "statistics of N routings, with seeds from --seed on; default: the mean of 10 routings, fewer "
    "where flows are very many"
)
_DRAWS = (
    number("--seeds", *allowed.SEEDS, _SEEDS),
    number("--seed", *allowed.SEED, "seed of one routing, or with --seeds of the first"),
)
_PLACEMENT = "of the job's NPUs (default: the plan's, else contiguous)"
_SOURCE_PORTS = "UDP source ports: each queue pair its own, or one for all (default: the plan's)"
_TRAFFIC = (
    *_DRAWS,
    number("--queue-pairs", *allowed.QUEUE_PAIRS, "per connection (default: the plan's, else 1)"),
    number(
        "--npus-per-address", *allowed.NPUS_PER_ADDRESS, "that share an IP address (default: same)"
    ),
    choice("--source-ports", allowed.SOURCE_PORTS, _SOURCE_PORTS),
    choice("--placement", allowed.PLACEMENTS, _PLACEMENT),
)


def _failures(when: str, most: int, default: int | None = 0) -> tuple[Argument, ...]:
    cables, spines = f"cables between switches that fail, {when}", f"spines that fail, {when}"
    return (
        number_or_share("--fail-links", *allowed.FAILED, cables, default=default),
        number("--fail-spines", *allowed.FAILED, spines, default=default),
        number("--busiest", 0, most, "busiest links to show; default 5", default=5),
    )


def _policy(name: str, before: str = "", after: str = "", **more: Any) -> Iterable[Argument]:
    """How flows find their paths."""
    from libra_planner.routing.policy import OPTIONS, POLICIES, option_words

    *others, last = POLICIES
    what = f"{before}{', '.join(others)} or {last}{after}"
    yield text(name, "POLICY", what, dest="policy", **more)
    for option in OPTIONS:
        flag, what = flag_of(option), option_words(option)
        if option == "hash":
            yield choice(flag, allowed.HASHES, what)
        elif option == "time_limit":
            yield text(flag, "S", what, type=float)
        else:
            yield switch(flag, what)


def _init() -> Arguments:
    quotes = "also write a CSV file for your sellers' prices, to fill in"
    own = "also write the model's shape, with a comment on every key, to edit into your own"
    return (
        text("--model", "NAME", "bundled model, or a workload file: list workloads"),
        text("--workload", "FILE", own),
        text("--npu", "NAME", "such as h100-sxm: list npus"),
        text("--npus --gpus", "N", "NPUs in all"),
        text("--nic", "SPEED", "of the one NIC of an NPU, such as 400Gbps; default: the usual one"),
        text("--taper", "T", "links down over links up of a leaf; open: the best; default 1"),
        text("--wiring", "W", "rail_optimized, rail_only, or top_of_rack (a Clos); default rails"),
        number("--global-batch", 1, 10**7, "sequences per step; default: about as many as NPUs"),
        text("--prices", "QUOTES", quotes, action=Once),
        text("-o --output", "PLAN", "plan to write; default plan.yaml", default="plan.yaml"),
        switch("--force", "write over files that are there"),
    )


def _optimize() -> Arguments:
    goal = "of the designs' links: iterate with what they deliver; "
    return (
        *_PLAN,
        Titled("the best design on its links, by --routing", [*_policy("--routing", goal)]),
        Titled("traffic, with --routing", _TRAFFIC),
    )


def _evaluate() -> Arguments:
    return *_PLAN, text("--bandwidth", "B1,B2,...", f"{BANDWIDTH}; or behind the plan: PLAN@B1,B2")


def _check() -> Arguments:
    what = f"{_PLAN_FILE}; several are jobs that share the outermost dimension"
    once = "also every single cable, spine and core failed, by kind and worst first"
    algorithms = (
        "where the plan names none: what NCCL runs (default), the faster of ring and "
        "halving-doubling, or what NCCL runs beside the times of all others"
    )
    return (
        given("plans", "PLAN", what, PLANS, nargs="+"),
        *_settings(),
        text("--bandwidth", "B1,B2,...", f"{BANDWIDTH}; without it the plan's optimum"),
        switch("--brief", "no tables of single collectives, layers, links and parts"),
        *_failures("drawn for every seed", allowed.MANY),
        switch("--n-1", once, dest="single_failures"),
        text("--trace", "SRC-DST", "show one flow hop by hop"),
        _GROUPS,
        Titled("routing", [*_policy("--policy", after="; default ecmp", default="ecmp")]),
        Titled(
            "traffic",
            [
                *_TRAFFIC,
                choice(
                    "--algorithms", allowed.ALGORITHMS, algorithms, default=allowed.ALGORITHMS[0]
                ),
            ],
        ),
        Titled("prices", plan_prices()),
    )


def _pareto() -> Arguments:
    points = number("--points", *allowed.POINTS, "2 to 1000 points; default 25", default=25)
    return *_PLAN, switch("--csv", "print CSV (instead of --json)"), points


def _flows() -> Arguments:
    table = "CSV file flow_id,src,dst,bytes[,via][,src_port][,collective]"
    several = "all policies that find paths in one table, with their usual options"
    compare = switch("--compare", several)
    hops = text("--hops", "TABLE.csv", "hops flow,switch,egress[,layer] instead of FLOWS")
    interfaces = text("--interfaces", "TABLE.csv", "all of them: switch,egress[,layer]")
    return (
        text("fabric", "FABRIC", "fabric file (YAML) or preset: list fabrics", nargs="?"),
        given("flows", "FLOWS", table, FLOW_LISTS, nargs="?"),
        # Without defaults, so that what is given can be told from what is not.
        *_failures("drawn per seed", 1000, None),
        text("--rates", "OUT.csv", "write flow_id,rate_GBps,finish_s of every flow (- for stdout)"),
        text("--trace", "FLOW_ID", "show one flow hop by hop"),
        switch("--fim-only", "no rates and completion times"),
        _GROUPS,
        JSON,
        Titled("routing", [*_DRAWS, *_policy("--policy", after="; default ecmp"), compare]),
        Titled("a measured fabric", [hops, interfaces]),
    )


LISTED = {
    "examples": "plans to optimize, check, search or report",
    "sweeps": "plans under all combinations of values: sweep run",
    "reports": "plans of the sample report",
    "workloads": "models to train",
    "npus": "NPUs, with their memory, rates and other names",
    "scale-ups": "what joins NPUs: NVLink domains, tori",
    "clusters": "networks for train --fabric and search --fabric",
    "cost-models": "price books, per GB/s",
    "npu-catalogues": "files of NPUs and scale-up domains",
    "parts": "catalogues of switches, cables, servers",
    "fabrics": "published networks for flows and fabric.realization.preset",
    "flow-fabrics": "fabric files for flows",
    "flow-lists": "lists of flows for flows",
}
"""What ``list`` lists, by the name of its kind."""


def _list() -> Arguments:
    return choice("kind", tuple(LISTED), ", ".join(LISTED), metavar="KIND", nargs="?"), JSON


def _schema() -> Arguments:
    formats = (
        "plan",
        "workload",
        "price-book",
        "npu-catalogue",
        "parts",
        "quotes",
        "sweep",
        "system",
    )
    return (choice("format", formats, ", ".join(formats), metavar="FORMAT"),)


def _report() -> Arguments:
    designs = (
        "PLAN (its optimum), PLAN@B1,B2,... in GB/s, PLAN@RESULT.json, RESULT.json, or DIR:ROW of "
        "a sweep; 'NAME=' before it names it"
    )
    seeds = "routings of --check that figures are the mean of; default 10, fewer of very many flows"
    baseline = "show differences against it: its letter (A first) or name"
    return (
        text("designs", "DESIGN", designs, nargs="+"),
        text("-o --output", "DIR", "folder to write to", required=True),
        text("--formats", "F1,F2,...", "of html, xlsx, csv, md and pdf; default all but pdf"),
        text("--baseline", "DESIGN", baseline),
        text("--tokens", "N", "tokens of a training run, such as 15e12; default 1e12"),
        text("--check", "POLICY", "route the collectives over the links, such as ecmp"),
        number("--seeds", *allowed.REPORT_SEEDS, seeds),
        switch("--allow-missing", "total without the parts that have no price"),
        *_settings("every plan"),
        Titled("prices", plan_prices()),
    )


def _import_libra() -> Arguments:
    return (
        text("--network", "FILE", "LIBRA's network .yml", required=True),
        text("--workload", "FILE", "LIBRA's workload .txt", required=True),
        text("--communicator", "FILE", "LIBRA's communicator .yml", required=True),
        text("--cost-model", "FILE", "LIBRA's cost model .yml", required=True),
        text("-o --output", "PLAN", "plan to write", required=True),
    )


def _import_huggingface() -> Arguments:
    tokens = "of a sequence in training; default 4,096, or what the model takes if less"
    return (
        text("config", "CONFIG", "config.json of a language model on Hugging Face"),
        text("-o --output", "WORKLOAD", "workload to write", required=True),
        number("--sequence-tokens", 1, 10**9, tokens),
    )


_LIBRA = "Write a plan, a workload and a price book from LIBRA's four input files."
_HUGGINGFACE = "Write a workload from the config.json of a model on Hugging Face."
_IMPORTS: Commands = {
    "libra": ("bundled:import_libra", _LIBRA, _import_libra),
    "huggingface": ("bundled:import_huggingface", _HUGGINGFACE, _import_huggingface),
}


def _completion() -> Arguments:
    shells = ("bash", "zsh", "fish")
    return (choice("shell", shells, "bash, zsh or fish", metavar="SHELL"),)


def _tui() -> Arguments:
    return (
        given("plan", "PLAN", f"{_PLAN_FILE}; the first example without it", PLANS, nargs="?"),
        switch("--web", "serve it to browsers on this machine (extra [web])"),
        number("--port", 1, 65535, "of --web; default 8000", default=8000, metavar=None),
    )


_FIRST = "Write a first plan, with comments; asks what flags do not say."
_OPTIMIZE = "Find the best bandwidth of every dimension, with a proof."
_EVALUATE = "Time and price a given bandwidth vector."
_CHECK = "Time a design on real links, as a routing policy loads them."
_FRONTIER = "Find the fastest design at each of a range of costs."
_COLLECTIVES = "Time a collective, or every row of a CSV file of them."
_KERNELS = "Time a kernel, such as a matrix multiply, or a file of them."
_TRAINING = "Time a training step, or every row of a CSV file of runs."
_BEST_STRATEGY = "Find the best parallelism of all that fit, with a proof."
_REFIT = "Fit the model's constants to measurements of your cluster."
_MANY_PLANS = "Optimise a plan for all combinations of values of its axes."
_FLOW_LIST = "Route a list of flows: imbalance, rates, completion times."
_NETWORK = "Size a cluster's network: switches, cables, power, price."
_DESIGNS = "Compare one to ten designs for those who buy: bill, costs."
_FORMAT = "Print the JSON Schema of a file format, for editors."
_SHELLS = "Print a script that completes commands, flags and names."
_COCKPIT = "Open the cockpit: fabric, bars, plots, sweeps, reports."
COMMANDS: Commands = {
    "init": ("start.init:init", _FIRST, _init),
    "optimize": ("design:optimize", _OPTIMIZE, _optimize),
    "evaluate": ("design:evaluate", _EVALUATE, _evaluate),
    "check": ("check:check", _CHECK, _check),
    "pareto": ("design:pareto", _FRONTIER, _pareto),
    "train": ("times.train:train", _TRAINING, times.train),
    "search": ("times.search:search", _BEST_STRATEGY, times.search),
    "collective": ("times.collective:collective", _COLLECTIVES, times.collective),
    "kernels": ("times.kernels:kernels", _KERNELS, times.kernels),
    "calibrate": ("times.calibrate:calibrate", _REFIT, times.calibrate),
    "sweep": ("", _MANY_PLANS, lambda: SWEEP_ACTIONS),
    "flows": ("flows:flows", _FLOW_LIST, _flows),
    "fabric": ("fabric:fabric", _NETWORK, networks.fabric),
    "report": ("report:report", _DESIGNS, _report),
    "list": ("bundled:list_bundled", "List what is bundled.", _list),
    "schema": ("bundled:schema", _FORMAT, _schema),
    "completion": ("start.completion:completion", _SHELLS, _completion),
    "import": ("", "Read another tool's files.", lambda: _IMPORTS),
    "tui": ("tui:cockpit", _COCKPIT, _tui),
}
"""In the order of the help."""


def flags_of(named: Sequence[str], commands: Commands = COMMANDS) -> list[str]:
    """Flags of the command that a command line names; none where it names no command."""
    name = next((one for one in named if one in commands), None)
    if name is None:
        return []
    arguments = commands[name][2]()
    if isinstance(arguments, Mapping):
        return flags_of(named, arguments)
    names = (name for names, _ in _single(arguments) for name in names)
    return ["--help", *(name for name in names if name.startswith("-"))]


def command_of(named: Sequence[str], commands: Commands = COMMANDS) -> str:
    """The command that a command line names, with its action; empty for none.

    >>> command_of(["sweep", "run", "a.yaml"]), command_of(["--help"])
    ('sweep run', '')
    """
    name = next((one for one in named if one in commands), "")
    inside = commands[name][2]() if name else ()
    action = command_of(named, inside) if isinstance(inside, Mapping) else ""
    return f"{name} {action}".strip()


def owners_of(flag: str) -> list[str]:
    """Commands that have an option.

    >>> owners_of("--hosts")
    ['fabric']
    """
    return [name for name in COMMANDS if flag in flags_of([name])]


def _single(arguments: Arguments) -> Iterator[Argument]:
    """Arguments without what some have in common."""
    for one in arguments:
        if isinstance(one, Titled):
            yield from _single(one.arguments)
        elif isinstance(one, list):
            yield from one
        else:
            yield one


def command_names(commands: Commands = COMMANDS) -> list[str]:
    """Names of all commands and of their actions."""
    names = list(commands)
    for _, _, arguments in commands.values():
        inside = arguments()
        names += command_names(inside) if isinstance(inside, Mapping) else []
    return names


def add_commands(
    parser: argparse.ArgumentParser, commands: Commands, named: Sequence[str], metavar: str
) -> None:
    """Add commands, of which those that are ``named`` get their arguments."""
    title = f"{metavar.lower()}s"
    added = parser.add_subparsers(required=True, metavar=metavar, title=title)
    for name, (call, what, arguments) in commands.items():
        about = None if name == "import" else what
        one = added.add_parser(name, help=what, description=about, allow_abbrev=False)
        one.set_defaults(call=call)
        one.epilog = examples_text(one.prog.removeprefix(f"{PROGRAM} "))
        if name in named:
            _fill(one, arguments(), named)


def _fill(parser: Any, arguments: Arguments | Commands, named: Sequence[str]) -> None:
    if isinstance(arguments, Mapping):
        add_commands(parser, arguments, named, "FORMAT" if arguments is _IMPORTS else "ACTION")
        return
    arguments = list(arguments)
    if isinstance(parser, argparse.ArgumentParser):
        parser.usage = usage(parser.prog, _single(arguments))
        options = {name: own for names, own in _single(arguments) for name in names}
        vars(parser)["options"] = options  # What it says of one without a value.
    for one in arguments:
        if isinstance(one, Titled):
            _fill(parser.add_argument_group(one.title), one.arguments, named)
        elif isinstance(one, list):
            _fill(parser.add_mutually_exclusive_group(), one, named)
        else:
            parser.add_argument(*one[0], **one[1])
