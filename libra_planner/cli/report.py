"""``libra-planner report``: designs compared for those who buy them."""

from __future__ import annotations

import argparse
import sys

from libra_planner.cli.streams import print_json
from libra_planner.plain_text import visible
from libra_planner.studies.reports import Report, report
from libra_planner.views.report.compose import report_payload
from libra_planner.views.report.decision import decision_section


def answer(options: argparse.Namespace) -> None:
    """Write the files that the options ask for, and print what the report decides."""
    names = ("formats", "settings", "baseline", "tokens", "check", "seeds", "parts")
    asked = {name: getattr(options, name) for name in (*names, "allow_missing")}
    written = report(options.designs, options.output, **asked)
    for path in written.kept:
        print(visible(f"Kept what was there as {path}."), file=sys.stderr)
    for path in written.others:
        print(visible(f"Left as it was, of another report: {path}."), file=sys.stderr)
    if options.json:
        print_json(report_payload(written.comparison, written.files))
    else:
        _print(written)


def _print(written: Report) -> None:
    section = decision_section(written.comparison, ())
    for warning in section.warnings:
        print(visible(f"Warning: {warning}"))
    for card in section.cards:
        print(visible(f"{card.title}: {card.answer} ({card.figure}). {card.reason}"))
    for text in section.paragraphs:
        print(visible(text))
    for path in written.files:
        print(visible(str(path)))
