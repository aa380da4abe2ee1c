"""Figures of results: the frontier, bandwidth along an axis, a heat map of two axes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.files import output
from libra_planner.plain_text import visible
from libra_planner.sweeps.results import Results

_DATELESS: dict[str, dict[str, None]] = {
    ".svg": {"Date": None},
    ".png": {},
    ".pdf": {"CreationDate": None},
}
"""Formats, and what keeps the date out of them."""
_SETTINGS: Any = {
    "svg.hashsalt": "libra-planner",
    "svg.fonttype": "none",
    "text.parse_math": False,  # A $ in a name is a $.
    "text.usetex": False,
}
_PER_MILLION = 1e-6
_MOST_TICKS = 40
_MOST_LETTERS = 40


def plot(results: Results, files: Sequence[str], *, x: str | None, y: str | None) -> None:
    """Write one figure to files.

    Parameters
    ----------
    results : what to show.
    files : paths that end in .svg, .png or .pdf.
    x, y : axes. Neither: time and cost of all designs and their frontier; x: bandwidths of
        the fastest design at each of its values; both: the least time at each pair of values.

    Raises
    ------
    SpecError
        For other file formats, unknown axes, or paths that cannot be written.
    """
    for file in files:
        if Path(file).suffix not in _DATELESS:
            expected = f"expected a name ending in {', '.join(_DATELESS)}"
            raise SpecError(Fault(f"got {file!r}", expected, "", "", Place("--plot")))
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
        if x and y:
            _heat_map(results, figure, axes, x, y)
        elif x:
            _split(results, axes, x)
        else:
            _frontier(results, axes)
        for file in files:
            with output(Path(file)) as image:
                kind = Path(file).suffix
                # The same results give the same bytes: no date inside (C12).
                figure.savefig(image, format=kind[1:], metadata=_DATELESS[kind])


def _frontier(results: Results, axes: Any) -> None:
    time, cost = results.time_column, results.need("cost_usd")
    query = f"SELECT {cost}, {time} FROM designs WHERE {results.ranked} ORDER BY row"
    front = [(row[cost], row[time]) for row in results.pareto().dicts()]
    every, best = (
        np.array(points, dtype=np.float64).reshape(-1, 2).T * [[_PER_MILLION], [1]]
        for points in (results.sql(query).rows, front)
    )
    axes.plot(*every, ".", color="0.75", label="designs")
    axes.plot(*best, "-o", markersize=3, drawstyle="steps-pre", label="frontier")
    axes.set(xlabel="cost, M$", ylabel=_label(time))
    axes.legend()


def _fastest(results: Results, names: Sequence[str], wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Columns of the fastest design at each combination of the values of some axes."""
    for name in names:
        if name not in results.axes:
            expected, fix = "expected an axis of the sweep", closest(name, results.axes)
            raise SpecError(Fault(f"got {name!r}", expected, fix, "", Place("--x, --y")))
    return results.fastest(names, wanted).dicts()


def _split(results: Results, axes: Any, x: str) -> None:
    labels = [name for name in results.columns if name.startswith("bandwidth_dim")]
    results.need("bandwidth_dim1_GBps")
    rows = _fastest(results, [x], labels)
    values = [row[x] for row in rows]
    places = values if all(isinstance(v, int | float) for v in values) else range(len(values))
    heights = np.array([[row[label] or 0.0 for label in labels] for row in rows], dtype=np.float64)
    names = [label.split("_")[1] for label in labels]
    axes.stackplot(list(places), heights.T, labels=names)
    if places is not values:
        axes.set_xticks(*_ticks(values), rotation=90)
    axes.set(xlabel=visible(x), ylabel="bandwidth of the fastest design, GB/s per NPU")
    axes.legend(loc="upper left")


def _heat_map(results: Results, figure: Any, axes: Any, x: str, y: str) -> None:
    time = results.time_column
    rows = _fastest(results, [x, y], [time])
    across, up = (list(dict.fromkeys(sorted(row[name] for row in rows))) for name in (x, y))
    grid = np.full((len(up), len(across)), np.nan)
    for row in rows:
        grid[up.index(row[y]), across.index(row[x])] = row[time]
    image = axes.imshow(grid, origin="lower", aspect="auto")
    axes.set_xticks(*_ticks(across), rotation=90)
    axes.set_yticks(*_ticks(up))
    axes.set(xlabel=visible(x), ylabel=visible(y))
    figure.colorbar(image, label=f"least {_label(time)}")


def _ticks(values: Sequence[Any]) -> tuple[list[int], list[str]]:
    """Places and labels of values that stand in a row: of very many, only some.

    >>> _ticks([10, 20, 30])
    ([0, 1, 2], ['10', '20', '30'])
    """
    places = list(range(0, len(values), -(-len(values) // _MOST_TICKS)))
    return places, [_label_of(str(values[place])) for place in places]


def _label_of(value: str) -> str:
    """A value beside an axis, without what a picture cannot show; of a long one the beginning."""
    text = visible(value)
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."


def _label(time: str) -> str:
    what = "step time, s" if time.endswith("step_time_s") else "seconds per sequence"
    return f"effective {what}" if time.startswith("effective") else what
