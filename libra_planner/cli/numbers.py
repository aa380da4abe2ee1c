"""Numbers on the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence

_NEGATIVE = re.compile(r"-[.0-9]")


def whole(least: int, most: int) -> Callable[[str], int]:
    """What reads a whole number of an option."""

    def read(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) < 20
        if not (digits and least <= int(text) <= most):
            expected = f"expected a whole number from {least} to {most}"
            raise argparse.ArgumentTypeError(f"got {text!r}, {expected}")
        return int(text)

    return read


def joined_negatives(arguments: Sequence[str]) -> list[str]:
    """Arguments with lists that begin with a minus joined to their flag.

    ``argparse`` takes ``-1,3`` for an option and says no more than that a value is missing.

    >>> joined_negatives(["check", "p.yaml", "--bandwidth", "-1,3"])
    ['check', 'p.yaml', '--bandwidth=-1,3']
    """
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--bandwidth" and _NEGATIVE.match(argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined
