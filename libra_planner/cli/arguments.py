"""Arguments that several commands share."""

from __future__ import annotations

import argparse


def add_settings(parser: argparse.ArgumentParser, subject: str = "the plan") -> None:
    """Add ``--set`` for values of the subject, and ``--json``."""
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"override a value of {subject}; KEY is a dotted path, VALUE is YAML or JSON",
    )
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
