"""What is wrong with the outcome of a case: nothing may be."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

from tests.campaign.case import MOST_S, Case, Outcome

ANSWERED, BAD_INPUT, NO_OPTIMUM, UNPROVEN = 0, 2, 3, 4

_RAW = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]"
)
_WARNING = re.compile(r"^.*(?:\b[A-Z][a-z]+Warning\b|Traceback|Exception ignored).*$", re.MULTILINE)
_PLACED = re.compile(r"[^\n]+?(?::\d+(?::\d+)?)?: \S")
_WHOLE = re.compile(
    r"--[a-z]|more faults like|got (?:an empty|a larger|no such) file|got a directory|not UTF-8|an Excel workbook|as output|those of the fabric"
)
"""Faults that are no line's."""
_MORE = re.compile(r"(?:\S+: )?\.\.\. and [\d,]+ more|.*[\d,]+ more faults?")


def faults(case: Case, outcome: Outcome) -> Iterator[str]:
    """One line for each thing that may not be."""
    if outcome.code not in (ANSWERED, BAD_INPUT, NO_OPTIMUM, UNPROVEN):
        last = [line for line in outcome.err.splitlines() if "this is a fault of" not in line][-1:]
        yield f"exit code {outcome.code}: {' | '.join(last)}"
    elif outcome.taken_s > MOST_S:
        yield f"took {outcome.taken_s:.1f} s"
    if found := _WARNING.search(outcome.err):
        yield f"stderr has {found[0]!r}"
    for name, text in (("stdout", outcome.out), ("stderr", outcome.err)):
        if raw := _RAW.search(text):
            yield f"{name} has a raw {unicodedata.name(raw[0], hex(ord(raw[0])))}"
    if outcome.code == ANSWERED and "--json" in case.arguments:
        yield from _json_faults(outcome.out)
    if outcome.code == BAD_INPUT:
        yield from _refusal_faults(outcome)
    if outcome.code in (BAD_INPUT, NO_OPTIMUM):
        yield from _lineless(case, outcome)


def _json_faults(text: str) -> Iterator[str]:
    try:
        json.loads(text, parse_constant=_refused)
    except ValueError as error:
        yield f"JSON: {error}"


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _refusal_faults(outcome: Outcome) -> Iterator[str]:
    """Every line begins with a file and, where there is one, the line."""
    if outcome.out:
        yield f"refused after printing {outcome.out[:40]!r}"
    if not outcome.err.strip():
        yield "refused without a word"
    if outcome.err.startswith("usage: "):
        return
    for line in outcome.err.splitlines():
        if not (_PLACED.match(line) or _MORE.match(line)):
            yield f"no place in the line {line[:100]!r}"


def _lineless(case: Case, outcome: Outcome) -> Iterator[str]:
    """Faults of a file that do not say its line."""
    texts = [name for name in case.files if name.endswith((".yaml", ".yml", ".csv", ".txt"))]
    for line in outcome.err.splitlines():
        name = next((name for name in texts if line.startswith(f"{name}: ")), None)
        if name and not _WHOLE.search(line):
            yield f"no line in {line[:200]!r}"
