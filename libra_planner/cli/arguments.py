"""What every command is called and takes; imports nothing that takes time.

``--help`` loads no command, and what a command takes is listed only where the command is named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from os.path import abspath
from typing import Any

Argument = tuple[Sequence[str], Mapping[str, Any]]
"""Names of an argument, and the rest of what ``add_argument`` takes."""
Arguments = Iterable[Argument | list[Argument]]
"""In the order of the help; of those in a list only one can be given."""
Commands = Mapping[str, tuple[str, str, Callable[[], "Arguments | Commands"]]]
"""By name: a command's function (``module:function``), what it does, and what it takes."""

_MANY = 10**6


def whole(least: int, most: int) -> Callable[[str], int]:
    """What reads a whole number of an option."""

    def read(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) < 20
        if not (digits and least <= int(text) <= most):
            expected = f"expected a whole number from {least} to {most}"
            raise argparse.ArgumentTypeError(f"got {text!r}, {expected}")
        return int(text)

    return read


def _text(names: str, metavar: str, what: str, **more: Any) -> Argument:
    return names.split(), {"metavar": metavar, "help": what} | more


def _number(names: str, least: int, most: int, what: str, **more: Any) -> Argument:
    return names.split(), {"type": whole(least, most), "metavar": "N", "help": what} | more


def _switch(name: str, what: str, **more: Any) -> Argument:
    return [name], {"action": "store_true", "help": what} | more


def _choice(name: str, choices: Sequence[str], what: str | None = None, **more: Any) -> Argument:
    return [name], {"choices": choices, "help": what} | more


def _settings(subject: str = "the plan") -> tuple[Argument, ...]:
    what = f"override a value of {subject}; KEY is a dotted path, VALUE is YAML or JSON"
    more: dict[str, Any] = {"dest": "settings", "action": "append", "default": []}
    return _text("--set", "KEY=VALUE", what, **more), _JSON


_PRICES = "CSV or YAML file of your quotes, merged over price books, parts and NPUs"
_DAY = "day on which the quotes must hold, YYYY-MM-DD"


def _quotes() -> tuple[Argument, ...]:
    """The user's prices, as settings of a plan; the file is in the working directory."""
    more: dict[str, Any] = {"dest": "settings", "action": "append", "default": []}
    file = "quotes={}".format
    return (
        _text("--prices", "QUOTES", _PRICES, type=lambda x: file(json.dumps(abspath(x))), **more),
        _text("--as-of", "DAY", _DAY, type="as_of={}".format, **more),
    )


_BANDWIDTH = "GB/s per NPU of every dimension, innermost first"
_JSON = _switch("--json", "print one JSON object")
_PLAN = (_text("plan", "PLAN", "plan file (YAML)"), *_settings(), *_quotes())
_SWEEP = _text("plan", "SWEEP", "sweep file (YAML)")
_DIRECTORY = _text("directory", "DIR", "run directory")
_GROUPS = _switch("--groups", "FIM of every ECMP group too")
_SEEDS = (
    "statistics of N routings, with seeds from --seed on; default: the mean of 10 routings, fewer "
    "where flows are very many"
)
_DRAWS = (
    _number("--seeds", 1, _MANY, _SEEDS),
    _number("--seed", 0, 2**32 - 1, "seed of one routing, or with --seeds of the first"),
)
_PLACEMENT = "of the job's NPUs (default: the plan's, else contiguous)"
_SOURCE_PORTS = "UDP source ports: each queue pair its own, or one for all (default: the plan's)"
_TRAFFIC = (
    *_DRAWS,
    _number("--queue-pairs", 1, 128, "per connection (default: the plan's, else 1)"),
    _number("--npus-per-address", 1, 1024, "that share an IP address (default: same)"),
    _choice("--source-ports", ("own", "shared"), _SOURCE_PORTS),
    _choice("--placement", ("contiguous", "rail", "random"), _PLACEMENT),
)


def _failures(when: str, most: int, default: int | None = 0) -> tuple[Argument, ...]:
    cables, spines = f"cables between switches that fail, {when}", f"spines that fail, {when}"
    return (
        _number("--fail-links", 0, _MANY, cables, default=default),
        _number("--fail-spines", 0, _MANY, spines, default=default),
        _number("--busiest", 0, most, "busiest links to show; default 5", default=5),
    )


def _policy(name: str, before: str = "", after: str = "", **more: Any) -> Iterable[Argument]:
    """How flows find their paths."""
    from libra_planner.routing.policy import HASHES, OPTIONS, POLICIES, readers

    *others, last = POLICIES
    what = f"{before}{', '.join(others)} or {last}{after}"
    yield _text(name, "POLICY", what, dest="policy", **more)
    for option, about in OPTIONS.items():
        flag, what = flag_of(option), about.format(", ".join(readers(option)))
        if option == "hash":
            yield _choice(flag, HASHES, what)
        elif option == "time_limit":
            yield _text(flag, "S", what, type=float)
        else:
            yield _switch(flag, what)


def _optimize() -> Arguments:
    goal = "of the designs' links: iterate with what they deliver; "
    return *_PLAN, *_policy("--routing", goal), *_TRAFFIC


def _evaluate() -> Arguments:
    return *_PLAN, _text("--bandwidth", "B1,B2,...", _BANDWIDTH, required=True)


def _check() -> Arguments:
    what = "plan file (YAML); several are jobs that share the outermost dimension"
    once = "also every single cable and spine failed, worst first"
    algorithms = (
        "where the plan names none: what NCCL runs (default), the faster of ring and "
        "halving-doubling, or what NCCL runs beside the times of all others"
    )
    return (
        _text("plans", "PLAN", what, nargs="+"),
        *_settings(),
        *_quotes(),
        _text("--bandwidth", "B1,B2,...", f"{_BANDWIDTH}; without it the plan's optimum"),
        *_policy("--policy", after="; default ecmp", default="ecmp"),
        *_TRAFFIC,
        _choice("--algorithms", ("library", "fastest", "compare"), algorithms, default="library"),
        *_failures("drawn for every seed", _MANY),
        _switch("--n-1", once, dest="single_failures"),
        _text("--trace", "SRC-DST", "show one flow hop by hop"),
        _GROUPS,
    )


def _pareto() -> Arguments:
    points = _number("--points", 2, 1000, "2 to 1000 points; default 25", default=25)
    return *_PLAN, _switch("--csv", "print CSV (instead of --json)"), points


def _collective() -> Arguments:
    clock = (
        "messages take whole multiples of this, rounded down (default 1 as in ASTRA-sim; 0 for "
        "none)"
    )
    split = "balanced: also the best split of the data over orders of the dimensions"
    kinds, schedules = ("hierarchical", "balanced"), ("hierarchical", "ring", "direct")
    size = "full vector, such as 64MiB (for an all-gather the gathered result)"
    system = (
        "instead of TOPOLOGY: as measured on nodes of an NPU, such as h100-sxm, or on your own "
        "(a file of calibrate)"
    )
    blocks = "ring, direct, direct1, halving_doubling or default, each"
    return (
        _text("topology", "TOPOLOGY", "such as RI(4)_SW(8)", nargs="?"),
        _text("--kind", "KIND", "all-reduce, reduce-scatter, all-gather or all-to-all"),
        _text("--size", "SIZE", size),
        _text("--bandwidth", "B1,B2,...", _BANDWIDTH),
        _text("--latency-ns", "NS", "latency per hop, one number or one per dimension (default 0)"),
        _text("--chunks", "N", "equal parts of the vector, or auto for the fastest (default 1)"),
        _text("--algorithms", "A1,A2,...", blocks),
        _text("--csv", "CASES", "file of collectives; the other values become its defaults"),
        _text("--system", "NPU", system),
        _number("--nodes", 1, _MANY, "of a --system; default 1"),
        _number("--npus-per-node", 1, 1024, "that take part; default: all of a node"),
        _text("--nics", "NxSPEED", "of a node of a --system, such as 8x400Gbps"),
        _choice("--interconnect", ("infiniband", "ethernet"), "default infiniband"),
        _text("--clock-ns", "NS", clock, default="1"),
        _switch("--in-network", "switches reduce (all-reduce)"),
        _choice("--schedule", schedules, "who sends to whom; ideal figures only", default=None),
        _choice("--scheduler", kinds, split, default=kinds[0]),
        _JSON,
    )


def _calibrate() -> Arguments:
    logs = "output of nccl-tests, or CSV files with gpu_type and time_s"
    npu = "whose runs count (default: the only one in the files)"
    network = "default: what the files say, else infiniband"
    kind = "of logs that do not name it, such as all-reduce"
    return (
        _text("--nccl", "LOG", logs, nargs="+", action="extend"),
        _text("--kernels", "CSV", "measured kernels"),
        _text("--runs", "CSV", "measured training runs"),
        _text("--npu", "NPU", npu),
        _text("--nics", "NxSPEED", "of a node, such as 8x400Gbps"),
        _choice("--interconnect", ("infiniband", "ethernet"), network),
        _text("--kind", "KIND", kind),
        _text("--name", "NAME", "of the system (default: the name of the file)"),
        _text("--as-of", "DAY", "day of the measurements, YYYY-MM-DD; default today"),
        _text("-o --output", "SYSTEM", "system file to write (YAML)", required=True),
        _JSON,
    )


def _kernels() -> Arguments:
    burst = "at the clock of a run too short for power to limit it, as serving frameworks measure"
    counts = {
        "--m": "rows of a multiply",
        "--n": "columns of its result",
        "--k": "its depth",
        "--groups": "equal multiplies of one call, such as those of experts; default 1",
        "--batch": "sequences of attention, or multiplies of one call; default 1",
        "--heads": "of attention",
        "--kv-heads": "of its keys and values; default: as many as heads",
        "--seq-q": "queries of a sequence",
        "--seq-kv": "keys of a sequence; default: as many as queries",
        "--head-dim": "width of queries and keys",
        "--head-dim-v": "width of values; default: that of keys",
        "--rows": "of norms, softmax and activations",
        "--cols": "numbers of a row",
    }
    shape = [_number(name, 1, 10**12, what) for name, what in counts.items()]
    return (
        _text("--csv", "KERNELS", "file of kernels; adds predicted_time_s and message"),
        _text("--npu", "NPU", "such as h100-sxm"),
        _text("--op", "OP", "gemm, attention, rms_norm, gelu ..."),
        *shape,
        _switch("--causal", "attention in which a token sees only those before it"),
        _text("--dtype", "TYPE", "bf16 (default), fp16, fp8 ...", default="bf16"),
        _choice("--pass", ("fwd", "bwd", "fwd+bwd"), "default fwd", default="fwd", dest="way"),
        _switch("--burst", burst),
        _text("--catalogue", "FILE", "NPU catalogue: a name or a path"),
        _JSON,
    )


def _sweep_run() -> Arguments:
    directory = "run directory; one of the same sweep is finished"
    workers = "processes on this machine; 0 (default) works in this one"
    return (
        _SWEEP,
        _text("-o --output", "DIR", directory, required=True),
        [
            _number("--workers", 0, 1024, workers, default=0),
            _text("--scheduler", "tcp://HOST:PORT", "a dask scheduler to use"),
        ],
        _switch("--json-progress", "print one JSON object per update"),
    )


def _sweep_show() -> Arguments:
    fim = "with --pareto: frontier of time, cost and FIM, of a sweep with check:"
    times = (
        "times to rank by: of the plan's model (default without --fim), or on the links (default "
        "with --fim), of a sweep with check:"
    )
    figure = "write a figure (.svg, .png, .pdf): the frontier; with --x bandwidths; with both a map"
    return (
        _DIRECTORY,
        [
            _switch("--pareto", "frontier of time and cost"),
            _number("--top", 1, 10**9, "best N designs (default 10)"),
            _text("--sql", "QUERY", "DuckDB's SQL over the table designs"),
            _text("--group-by", "AXIS", "best design for each value of an axis"),
        ],
        _switch("--fim", fim),
        _choice("--by", ("ideal", "effective"), times),
        [_text("--csv", "OUT", "write CSV (- for stdout); alone, all rows"), _JSON],
        _text("--plot", "OUT", figure, nargs="+"),
        _text("--x", "AXIS", "axis of the figure"),
        _text("--y", "AXIS", "second axis of the figure"),
    )


def _sweep_design() -> Arguments:
    row = _number("row", 0, 10**12, "number of the row", metavar="ROW")
    to = _text("-o --output", "PLAN", "plan to write (- for stdout)", required=True)
    return _DIRECTORY, row, to


_SWEEPS: Commands = {
    "plan": ("sweep:plan", "How many designs, how long, how big.", lambda: (_SWEEP, _JSON)),
    "run": ("sweep:run", "Solve all designs, or what is missing of them.", _sweep_run),
    "show": ("sweep:show", "Best designs, frontier, SQL, CSV and figures.", _sweep_show),
    "design": ("sweep:design", "Write a row as a plan for optimize.", _sweep_design),
}


def _flows() -> Arguments:
    table = "CSV file flow_id,src,dst,bytes[,via][,src_port][,collective]"
    return (
        _text("fabric", "FABRIC", "fabric file (YAML) or preset", nargs="?"),
        _text("flows", "FLOWS", table, nargs="?"),
        *_DRAWS,
        # Without defaults, so that what is given can be told from what is not.
        *_failures("drawn per seed", 1000, None),
        _text(
            "--rates", "OUT.csv", "write flow_id,rate_GBps,finish_s of every flow (- for stdout)"
        ),
        _text("--trace", "FLOW_ID", "show one flow hop by hop"),
        _text("--hops", "TABLE.csv", "measured hops flow,switch,egress[,layer] instead of FLOWS"),
        _text("--interfaces", "TABLE.csv", "with --hops: all interfaces switch,egress[,layer]"),
        *_policy("--policy", after="; default ecmp"),
        _switch("--compare", "all policies that find paths in one table, with their usual options"),
        _switch("--fim-only", "no rates and completion times"),
        _GROUPS,
        _JSON,
    )


def _fabric() -> Arguments:
    from libra_planner.fabric.cluster import WIRINGS

    taper = (
        "bandwidth down over bandwidth up of neighbouring tiers, from the leaf out: 1, or 1,7 for "
        "7:1 between spine and core"
    )
    port_up = "of a link between switches (default: a port's)"
    per_fibre = "transceivers of a cable: 2, or 1 for modules of two links (twin-port cages)"
    return (
        _number("--hosts", 1, _MANY, "servers to join", required=True),
        _number("--npus-per-host", 1, 1024, "each with a NIC of its own; default 8", default=8),
        _number("--nics-per-host", 1, 1024, "where NPUs share NICs, or have several"),
        _text("--nic", "SPEED", "of one NIC over all planes, such as 400Gbps", required=True),
        _number("--radix", 2, 4096, "ports of a switch; default 64", default=64),
        _text("--port", "SPEED", "of a switch's port (default: a NIC's in one plane)"),
        _text("--port-up", "SPEED", port_up),
        _text("--taper", "T1[,T2]", taper, default="1"),
        _choice("--wiring", WIRINGS, "how leaves serve the NICs", default=WIRINGS[0]),
        _number("--planes", 1, 64, "equal networks that share every NIC's bandwidth", default=1),
        _number("--reserve", 0, _MANY, "positions of hosts that stay free", default=0),
        _number("--management-links", 0, _MANY, "links to the fabric's managers", default=0),
        _number("--host-ports-per-leaf", 1, 4096, "at most, where racks are the limit"),
        _number("--transceivers-per-fibre", 1, 2, per_fibre, default=2),
        _text("--parts", "CATALOGUE", "parts catalogue: a name or a path", default="parts"),
        _text("--prices", "QUOTES", _PRICES),
        _text("--as-of", "DAY", _DAY),
        _JSON,
    )


def _list() -> Arguments:
    files = ("workloads", "cost-models", "npu-catalogues", "parts", "fabrics", "examples", "sweeps")
    return _choice("kind", (*files, "npus", "scale-ups")), _JSON


def _schema() -> Arguments:
    formats = ("plan", "workload", "price-book", "npu-catalogue", "parts", "sweep", "system")
    return (_choice("format", formats),)


def _report() -> Arguments:
    designs = (
        "PLAN (its optimum), PLAN@B1,B2,... in GB/s, PLAN@RESULT.json, RESULT.json, or DIR:ROW of "
        "a sweep"
    )
    seeds = "routings of --check that figures are the mean of; default 10, fewer of very many flows"
    baseline = "show differences against it: its letter (A first) or name"
    return (
        _text("designs", "DESIGN", designs, nargs="+"),
        _text("-o --output", "DIR", "folder to write to", required=True),
        _text("--formats", "F1,F2,...", "of html, xlsx, csv, md and pdf; default all but pdf"),
        _text("--baseline", "DESIGN", baseline),
        _text("--tokens", "N", "tokens of a training run, such as 15e12; default 1e12"),
        _text("--check", "POLICY", "route the collectives over the links, such as ecmp"),
        _number("--seeds", 1, 1000, seeds),
        _text("--parts", "CATALOGUE", "parts catalogue: a name or a path", default="parts"),
        _switch("--allow-missing", "total without the parts that have no price"),
        *_settings("every plan"),
        *_quotes(),
    )


def _import_libra() -> Arguments:
    return (
        _text("--network", "FILE", "LIBRA's network .yml", required=True),
        _text("--workload", "FILE", "LIBRA's workload .txt", required=True),
        _text("--communicator", "FILE", "LIBRA's communicator .yml", required=True),
        _text("--cost-model", "FILE", "LIBRA's cost model .yml", required=True),
        _text("-o --output", "PLAN", "plan to write", required=True),
    )


_LIBRA = "Write a plan, a workload and a price book from LIBRA's four input files."
_IMPORTS: Commands = {"libra": ("bundled:import_libra", _LIBRA, _import_libra)}


def _tui() -> Arguments:
    return (
        _text("plan", "PLAN", "plan file (YAML); the first example without it", nargs="?"),
        _switch("--web", "serve it to browsers on this machine (extra [web])"),
        _number("--port", 1, 65535, "of --web; default 8000", default=8000, metavar=None),
    )


_OPTIMIZE = "Find the bandwidth of every dimension that is best for the plan's objective."
_EVALUATE = "Step time and cost of a given bandwidth vector."
_CHECK = "Step time of a design on real links, as a routing policy loads them."
_FRONTIER = "The time/cost frontier of a plan: the fastest design at each of a range of costs."
_COLLECTIVES = "Time of a single collective, or of a CSV file of them."
_KERNELS = "Time of a single kernel, such as a matrix multiply, or of a CSV file of them."
_REFIT = "Fit the constants of measured collectives to your own cluster."
_MANY_PLANS = "Optimise a plan under every combination of the values of its axes."
_FLOW_LIST = "Imbalance, rates and completion times of a list of flows over a fabric."
_NETWORK = "Size the network of a cluster: switches, cables, transceivers, power and price."
_DESIGNS = "Compare one to ten designs for those who buy them: bill of materials, costs, run."
_FORMAT = "Print the JSON Schema of a file format, for editors."
_COCKPIT = "Open the architect's cockpit: a plan as a form, bars, plots, links, sweeps, reports."
COMMANDS: Commands = {
    "optimize": ("design:optimize", _OPTIMIZE, _optimize),
    "evaluate": ("design:evaluate", _EVALUATE, _evaluate),
    "check": ("check:check", _CHECK, _check),
    "pareto": ("design:pareto", _FRONTIER, _pareto),
    "collective": ("times.collective:collective", _COLLECTIVES, _collective),
    "kernels": ("times.kernels:kernels", _KERNELS, _kernels),
    "calibrate": ("times.calibrate:calibrate", _REFIT, _calibrate),
    "sweep": ("", _MANY_PLANS, lambda: _SWEEPS),
    "flows": ("flows:flows", _FLOW_LIST, _flows),
    "fabric": ("fabric:fabric", _NETWORK, _fabric),
    "report": ("report:report", _DESIGNS, _report),
    "list": ("bundled:list_bundled", "List what is bundled.", _list),
    "schema": ("bundled:schema", _FORMAT, _schema),
    "import": ("", "Read another tool's files.", lambda: _IMPORTS),
    "tui": ("tui:cockpit", _COCKPIT, _tui),
}
"""In the order of the help."""


def add_commands(
    parser: argparse.ArgumentParser, commands: Commands, named: Sequence[str], metavar: str
) -> None:
    """Add commands, of which those that are ``named`` get their arguments."""
    added = parser.add_subparsers(required=True, metavar=metavar)
    for name, (call, text, arguments) in commands.items():
        about = None if name == "import" else text
        one = added.add_parser(name, help=text, description=about, allow_abbrev=False)
        one.set_defaults(call=call)
        if name in named:
            _fill(one, arguments(), named)


def _fill(parser: Any, arguments: Arguments | Commands, named: Sequence[str]) -> None:
    if isinstance(arguments, Mapping):
        add_commands(parser, arguments, named, "FORMAT" if arguments is _IMPORTS else "ACTION")
        return
    for one in arguments:
        if isinstance(one, list):
            _fill(parser.add_mutually_exclusive_group(), one, named)
        else:
            parser.add_argument(*one[0], **one[1])


def flag_of(name: str) -> str:
    """The flag of an option.

    >>> flag_of("time_limit")
    '--time-limit'
    """
    return f"--{name.replace('_', '-')}"


def first_given(options: argparse.Namespace, names: Iterable[str]) -> str:
    """The flag of the first of some options that is given; empty without one."""
    values = {name: getattr(options, name) for name in names}
    given = (flag_of(name) for name, one in values.items() if one is not None and one is not False)
    return next(given, "")
