"""What the actions of ``sweep`` take."""

from __future__ import annotations

from libra_planner import allowed
from libra_planner.cli.arguments.making import (
    JSON,
    Arguments,
    Commands,
    choice,
    given,
    number,
    switch,
    text,
)
from libra_planner.reading.bundled import SWEEPS

_SWEEP = given("plan", "SWEEP", "sweep file (YAML), or a bundled one's name: list sweeps", SWEEPS)
_DIRECTORY = text("directory", "DIR", "run directory")


def _sweep_run() -> Arguments:
    directory = "run directory; one of the same sweep is finished"
    workers = "processes on this machine; 0 (default) works in this one"
    return (
        _SWEEP,
        text("-o --output", "DIR", directory, required=True),
        [
            number("--workers", *allowed.WORKERS, workers, default=0),
            text("--scheduler", "tcp://HOST:PORT", "a dask scheduler to use"),
        ],
        switch("--json-progress", "print one JSON object per update"),
    )


def _sweep_show() -> Arguments:
    fim = "with --pareto: frontier of time, cost and FIM, of a sweep with check:"
    times = (
        "what to rank by: time and cost of the plan's model, the time on the links (default "
        "where the sweep has check:), or the bill and the time on what it buys (default where it "
        "has bill_usd alone)"
    )
    where = "only designs that meet it, such as 'nic >= 50', as in where: of a sweep; repeatable"
    page = "write one page that opens offline: table, scatter, parallel axes; alone, all designs"
    figure = (
        "write a figure (.svg, .png, .pdf): the frontier; with --x bandwidths; with both a map, or "
        "a line where --y is a column"
    )
    second = "second axis of the figure; or a column of numbers, such as tokens_per_s_per_MUSD"
    return (
        _DIRECTORY,
        [
            switch("--pareto", "frontier of time and cost"),
            number("--top", *allowed.BEST, "best N designs (default 10)"),
            text("--sql", "QUERY", "DuckDB's SQL over the table designs"),
            text("--group-by", "AXES", "best designs of each value of axes, such as npus,gpu"),
        ],
        text("--where", "FILTER", where, action="append", default=[]),
        text("--sort", "COLUMNS", "order by columns, with commas; 'NAME desc': largest first"),
        text("--columns", "COLUMNS", "columns to print, with commas"),
        switch("--fim", fim),
        choice("--by", ("ideal", "effective", "bill"), times),
        [text("--csv", "OUT", "write CSV (- for stdout); alone, all rows"), JSON],
        text("--html", "OUT", page),
        text("--plot", "OUT", figure, nargs="+"),
        switch("--plot-all", "with --plot: designs far from the frontier, too"),
        text("--x", "AXIS", "axis of the figure"),
        text("--y", "AXIS", second),
        switch("--remarks", "print all remarks on the rows instead of one line"),
    )


def _sweep_design() -> Arguments:
    row = number("row", *allowed.ROW, "number of the row", metavar="ROW")
    to = text("-o --output", "PLAN", "plan to write (- for stdout)", required=True)
    return _DIRECTORY, row, to, switch("--force", "write over a file that is there; .bak keeps it")


SWEEP_ACTIONS: Commands = {
    "plan": ("sweep:plan", "How many designs, how long, how big.", lambda: (_SWEEP, JSON)),
    "run": ("sweep:run", "Solve all designs, or what is missing of them.", _sweep_run),
    "show": ("sweep:show", "Best designs, frontier, SQL, CSV, figures and a page.", _sweep_show),
    "design": ("sweep:design", "Write a row as a plan for optimize.", _sweep_design),
}
"""In the order of the help."""
