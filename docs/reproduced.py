"""Draws the plot of docs/reproduced.md and prints its table: ``examples/14_libra_study.yaml``."""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd

import libra_planner as lp
from libra_planner.costs.prices import network_price_usd_per_Bps
from libra_planner.fabric.topology import parse_topology
from libra_planner.plan.prices import load_price_book

ROOT = Path(__file__).parents[1]
_TIERS = {3: ("package", "node", "pod"), 4: ("chiplet", "package", "node", "pod")}


def study() -> pd.DataFrame:
    """Every design of the study, with its speedup and its gain per dollar over equal bandwidth.

    Equal bandwidth costs the budget times the mean price of a dimension.
    """
    with tempfile.TemporaryDirectory() as folder:
        lp.sweep(ROOT / "examples" / "14_libra_study.yaml", f"{folder}/run")
        files = sorted(Path(folder, "run").rglob("*.parquet"))
        designs = pd.concat(map(pd.read_parquet, files))
    price = designs["shape"].map({shape: _mean_price(shape) for shape in set(designs["shape"])})
    equal_usd = designs["budget"] * 1e9 * price
    designs["gain_per_dollar"] = designs["speedup_vs_equal"] * equal_usd / designs["cost_usd"]
    return designs


def _mean_price(shape: str) -> float:
    """Of a byte/s, USD, over the dimensions of a topology."""
    topology = parse_topology(shape, tiers=_TIERS[shape.count("_") + 1])
    return float(
        network_price_usd_per_Bps(topology, load_price_book("libra-ispass24", ROOT)).mean()
    )


def drawn(designs: pd.DataFrame, file: Path) -> None:
    """The plot: speedup of the fastest, gain of the best per dollar, by budget."""
    matplotlib.use("svg")
    figures = (("performance", "speedup_vs_equal"), ("performance_per_cost", "gain_per_dollar"))
    titles = ("Step time: times as fast", "Performance per dollar: times as good")
    figure, plots = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for plot, title, (objective, column) in zip(plots, titles, figures, strict=True):
        for (model, shape), line in designs[designs["objective"] == objective].groupby(
            ["model", "shape"]
        ):
            style = "-" if shape.count("_") == 3 else "--"
            name = f"{str(model).removesuffix('-libra')}, {shape.count('_') + 1}D"
            plot.plot(line["budget"], line[column], style, label=name, linewidth=1.2)
        plot.set_title(f"{title} as equal bandwidth", fontsize=9)
        plot.set_xlabel("GB/s per NPU, all dimensions together", fontsize=8)
        plot.tick_params(labelsize=7)
    plots[0].legend(fontsize=6)
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    found = study()
    drawn(found, ROOT / "docs" / "reproduced-libra.svg")
    for objective, column in (
        ("performance", "speedup_vs_equal"),
        ("performance_per_cost", "gain_per_dollar"),
    ):
        some = found[found["objective"] == objective]
        table = some.pivot_table(index=["model", "shape"], values=column, aggfunc=["min", "max"])
        print(objective, table.round(3).to_string(), sep="\n")
        print(some.nlargest(1, column)[["model", "shape", "budget", column]].to_string())
