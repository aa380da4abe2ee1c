"""Draw docs/optimize.svg: what ``libra-planner optimize`` prints in a terminal."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.highlighter import NullHighlighter

import libra_planner as lp
from libra_planner.views.design import design_blocks
from libra_planner.views.renderers.terminal import show


def main() -> None:
    """Run the first example of the README and save the terminal as a picture."""
    problem = lp.load_plan(lp.example("0d_llama3_70b"))
    design = lp.optimize(problem)
    console = Console(record=True, width=108, file=io.StringIO(), force_terminal=True)
    console.highlighter = NullHighlighter()
    evaluation = lp.evaluate(problem, design.bandwidth_bytes_per_s)
    show(console, design_blocks(problem, evaluation, design))
    title = "libra-planner optimize examples/0d_llama3_70b.yaml"
    picture = console.export_svg(title=title, unique_id="optimize")
    Path(__file__).with_name("optimize.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
