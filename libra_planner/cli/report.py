"""``libra-planner report``: designs compared for those who buy them."""

from __future__ import annotations

import argparse
import sys

from libra_planner.api.reports import written_report
from libra_planner.cli.streams import judge_search, print_json, say, search_progress, tell_kept
from libra_planner.studies.reports import Question
from libra_planner.views.report.compose import decision_lines, doubt_lines


def report(options: argparse.Namespace) -> None:
    """``libra-planner report``."""
    asked = {name: getattr(options, name) for name in Question.__dataclass_fields__}
    for name in ("designs", "settings"):
        asked[name] = tuple(asked[name])
    written = written_report(Question(**asked), options.output, options.formats, search_progress())
    tell_kept(written.kept)
    say((f"Left as it was, of another report: {path}." for path in written.others), sys.stderr)
    if options.json:  # Else it stands in what is printed.
        say(doubt_lines(written.comparison), sys.stderr)
        print_json(written.to_dict())
    else:
        say(decision_lines(written.comparison, written.files))
    for one in written.comparison.candidates:
        judge_search(one.proposal.found)
