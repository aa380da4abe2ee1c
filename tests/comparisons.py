"""Comparisons of designs as the arguments of ``libra-planner report`` ask for them."""

from __future__ import annotations

from libra_planner.cli.main import command_parser
from libra_planner.procurement.ranking import Comparison
from libra_planner.studies.reports import Question, compared


def compared_by(*arguments: str) -> Comparison:
    """The comparison of designs and options on a command line."""
    command = ["report", *arguments, "-o", "unused"]
    options = vars(command_parser(command).parse_args(command))
    names = ("baseline", "tokens", "check", "seeds", "parts", "allow_missing")
    asked = {name: options[name] for name in names}
    return compared(Question(tuple(options["designs"]), tuple(options["settings"]), **asked))
