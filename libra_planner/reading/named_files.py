"""Files that a plan names beside itself: its model, prices, quotes, measured systems."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from libra_planner.reading.bundled import is_path
from libra_planner.reading.document import Key, leaves, value_at

_KEYS = ("workload", "cost_model", "catalogue", "system")
_QUOTES = "quotes"
"""Names nothing that is bundled."""


def may_name_file(key: Key) -> bool:
    """Whether a key of a plan may name a file."""
    return bool(key) and key[-1] in (*_KEYS, _QUOTES)


def names_file(key: Key, name: Any) -> bool:
    """Whether what stands under a key of a plan names a user's file, not a bundled one.

    >>> [names_file(("workload",), name) for name in ("gpt3", "./own.yaml", None)]
    [False, True, False]
    >>> names_file(("quotes",), "quotes.csv")
    True
    """
    is_text = may_name_file(key) and isinstance(name, str)
    return is_text and (key[-1] == _QUOTES or is_path(name))


def named_files(value: Any) -> Iterator[tuple[Key, str]]:
    """The users' files that a plan names, with their keys."""
    return (leaf for leaf in leaves(value) if names_file(*leaf))


def absolute_files(value: Any, beside: Path) -> Iterator[tuple[Key, str]]:
    """Absolute paths of the files that a plan names, with their keys.

    Parameters
    ----------
    value : the plan.
    beside : folder that its paths are relative to.
    """
    return ((key, str((beside / name).resolve())) for key, name in named_files(value))


def movable(value: Any, beside: Path) -> Any:
    """A copy of a plan that holds wherever it is put: its paths are absolute."""
    found = copy.deepcopy(value)
    for (*parents, last), path in absolute_files(value, beside):
        value_at(found, parents)[last] = path
    return found


def plan_text(value: Any, beside: Path) -> str:
    """A plan that holds wherever it is put, as YAML."""
    value = movable(value, beside)
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000))
