"""Values of a sweep's columns as people read them."""

from __future__ import annotations

import json
from typing import Any

from libra_planner.units import format_usd

_LONGEST_FRACTION = 6
"""Digits after the point that a value of an axis has on screen."""
BETWEEN_NOTES = " | "
"""Between two notes of a row."""
_LONGEST = 48
"""Letters of a message on screen before it is cut."""


def plain(value: Any) -> str:
    """What has no unit: six digits.

    >>> plain(0.703430123), plain(True), plain(12)
    ('0.70343', 'yes', '12')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def over_rule(usd: float) -> str:
    """What a bill has beyond a rule on cost, or leaves of it.

    >>> over_rule(7.18e6), over_rule(-6.5e6)
    ('$7.18M', '$6.50M under')
    """
    return format_usd(usd) if usd >= 0 else f"{format_usd(-usd)} under"


def as_in_file(value: Any) -> str:
    """A value of an axis with the digits that a file gives, or six of what steps give.

    >>> as_in_file(1234567.5), as_in_file(0.30000000000000004), as_in_file(26.8421052632)
    ('1234567.5', '0.3', '26.8421')
    >>> as_in_file('{"tp": 8, "rest": "auto"}')
    '{tp: 8, rest: auto}'
    """
    if not isinstance(value, float):
        return _as_yaml(value) if str(value).startswith(_OPENING) else plain(value)
    text = f"{value:.12g}"
    return f"{value:.6g}" if len(text.partition(".")[2]) > _LONGEST_FRACTION else text


_OPENING = ("{", "[")


def _as_yaml(text: str) -> str:
    """A map or a list, of which results have the JSON, as a file writes it."""
    try:
        return _flow(json.loads(text))
    except ValueError:
        return text


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) else json.dumps(value)


def cut(value: Any) -> str:
    """A message in as many letters as a table has room for.

    >>> cut("a message"), len(cut("a" * 99))
    ('a message', 48)
    """
    text = in_one_line(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def in_one_line(value: Any) -> str:
    """A whole message, without line breaks."""
    return " ".join(str(value).split())


def short_objective(value: str) -> str:
    """An objective as on the first screen."""
    return {"performance": "perf", "performance_per_cost": "perf/cost"}.get(value, value)
