"""``libra-planner report``: designs compared for those who buy them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from libra_planner.cli.arguments import Commands, add_settings, command, whole
from libra_planner.cli.streams import print_json, tell_kept
from libra_planner.plain_text import visible
from libra_planner.processes import uncollected

if TYPE_CHECKING:
    from libra_planner.studies.reports import Report


def add_report(commands: Commands) -> None:
    """Add ``report``."""
    text = "Compare one to ten designs for those who buy them: bill of materials, costs, run."
    parser = command(commands, "report", report, text)
    what = (
        "PLAN (its optimum), PLAN@B1,B2,... in GB/s, PLAN@RESULT.json, RESULT.json, or DIR:ROW of "
        "a sweep"
    )
    parser.add_argument("designs", metavar="DESIGN", nargs="+", help=what)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write to")
    for flag, metavar, text in (
        ("--formats", "F1,F2,...", "of html, xlsx, csv, md and pdf; default all but pdf"),
        (
            "--baseline",
            "DESIGN",
            "show differences against it: its letter (A first) or name",
        ),
        ("--tokens", "N", "tokens of a training run, such as 15e12; default 1e12"),
        ("--check", "POLICY", "route the collectives over the links, such as ecmp"),
    ):
        parser.add_argument(flag, metavar=metavar, help=text)
    what = "routings of --check that figures are the mean of; default 10, fewer of very many flows"
    parser.add_argument("--seeds", type=whole(1, 1000), metavar="N", help=what)
    parser.add_argument(
        "--parts", default="parts", metavar="CATALOGUE", help="parts catalogue: a name or a path"
    )
    parser.add_argument(
        "--allow-missing", action="store_true", help="total without the parts that have no price"
    )
    add_settings(parser, "every plan")


def report(options: argparse.Namespace) -> None:
    """``libra-planner report``."""
    with uncollected():
        import libra_planner.optimizer.optimize  # noqa: F401
        from libra_planner.studies import reports
        from libra_planner.views.report.compose import report_payload

    names = ("formats", "settings", "baseline", "tokens", "check", "seeds", "parts")
    asked = {name: getattr(options, name) for name in (*names, "allow_missing")}
    written = reports.report(options.designs, options.output, **asked)
    tell_kept(written.kept)
    for path in written.others:
        print(visible(f"Left as it was, of another report: {path}."), file=sys.stderr)
    if options.json:
        print_json(report_payload(written.comparison, written.files))
    else:
        _print(written)


def _print(written: Report) -> None:
    from libra_planner.views.report.decision import decision_section

    section = decision_section(written.comparison, ())
    for warning in section.warnings:
        print(visible(f"Warning: {warning}"))
    for card in section.cards:
        print(visible(f"{card.title}: {card.answer} ({card.figure}). {card.reason}"))
    for text in section.paragraphs:
        print(visible(text))
    for path in written.files:
        print(visible(str(path)))
