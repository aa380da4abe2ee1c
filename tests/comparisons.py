"""Comparisons of designs as the arguments of ``libra-planner report`` ask for them."""

from __future__ import annotations

from libra_planner.cli.main import _parser
from libra_planner.studies.reports import Question, compared
from libra_planner.views.report.comparison import Comparison


def compared_by(*arguments: str) -> Comparison:
    """The comparison of designs and options on a command line."""
    options = vars(_parser().parse_args(["report", *arguments, "-o", "unused"]))
    names = ("baseline", "tokens", "check", "seeds", "parts", "allow_missing")
    asked = {name: options[name] for name in names}
    return compared(Question(tuple(options["designs"]), tuple(options["settings"]), **asked))
