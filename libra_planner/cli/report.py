"""``libra-planner report``: designs compared for those who buy them."""

from __future__ import annotations

import argparse
import sys

from libra_planner.cli.streams import judge_search, print_json, say, search_progress, tell_kept
from libra_planner.procurement.ranking import Comparison
from libra_planner.studies import reports
from libra_planner.views.report.compose import report_payload
from libra_planner.views.report.decision import decision_section

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
    section = decision_section(written.comparison)
    say(section.lead)
    say(f"Warning: {warning}" for warning in section.warnings)
    say(f"{card.title}: {card.answer} ({card.figure}). {card.reason}" for card in section.cards)
    say((*section.paragraphs, *map(str, written.files)))
    _judge(written.comparison)


def _judge(comparison: Comparison) -> None:
    for one in comparison.candidates:
        judge_search(one.proposal.found)
