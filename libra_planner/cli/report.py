"""``libra-planner report``: designs compared for those who buy them."""

from __future__ import annotations

import argparse
import sys

from libra_planner.cli.streams import judge_search, print_json, say, search_progress, tell_kept
from libra_planner.procurement.ranking import Comparison
from libra_planner.studies import reports
from libra_planner.views.report.compose import decision_lines, report_payload

_NAMES = ("formats", "settings", "baseline", "tokens", "check", "seeds", "parts", "allow_missing")


def report(options: argparse.Namespace) -> None:
    """``libra-planner report``."""
    asked = {name: getattr(options, name) for name in _NAMES}
    written = reports.report(options.designs, options.output, **asked, progress=search_progress())
    tell_kept(written.kept)
    say((f"Left as it was, of another report: {path}." for path in written.others), sys.stderr)
    if options.json:
        print_json(report_payload(written.comparison, written.files))
        _judge(written.comparison)
        return
    say(decision_lines(written.comparison, written.files))
    _judge(written.comparison)


def _judge(comparison: Comparison) -> None:
    for one in comparison.candidates:
        judge_search(one.proposal.found)
