"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from typing import Any, Protocol


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


class Takes(Protocol):
    """A parser, or a group of a parser's arguments."""

    def add_argument(self, *flags: str, action: str, help: str) -> Any:  # noqa: A002
        """Have one more."""


def add_json(parser: Takes) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
