"""The environment of processes that are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Let processes that are started meanwhile have some variables.

    >>> with variables({"LIBRA_EXAMPLE": "1"}):
    ...     os.environ["LIBRA_EXAMPLE"]
    '1'
    >>> "LIBRA_EXAMPLE" in os.environ
    False
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def same_imports() -> dict[str, str]:
    """Variables of an interpreter that is to import from where this one does.

    With ``-m`` and ``-c`` it looks into the working directory first: a file there of the name of
    any module would be run in its place.
    """
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def planner_command(*arguments: str) -> list[str]:
    """Words that start ``libra-planner``; the working directory has no modules of it.

    >>> planner_command("list", "examples")[1:]
    ['-P', '-m', 'libra_planner', 'list', 'examples']
    """
    return [sys.executable, "-P", "-m", "libra_planner", *arguments]
