"""Widgets of the cockpit, and the style sheet of all that is seen."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def _paragraphs() -> dict[str, str]:
    text = Path(__file__).parents[1].joinpath("cockpit.tcss").read_text(encoding="utf-8")
    return {one.split(maxsplit=1)[0]: one for one in text.strip().split("\n\n")}


def rules_of(name: str) -> str:
    """What the style sheet says of a class."""
    return _paragraphs()[name]
