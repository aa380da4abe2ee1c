"""cvxpy in a third of its time: without scipy.stats, which no program of a plan needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

_STATISTICS = "scipy.stats"


@contextmanager
def statistics_when_used() -> Iterator[None]:
    """Let what is imported here have ``scipy.stats.entropy`` without loading scipy.stats.

    cvxpy imports this one function for an atom of quantum physics; scipy.stats takes longer to
    load than all the rest of cvxpy. The function loads it when it is called, and any other name
    of the module does so at once.
    """
    if _STATISTICS in sys.modules:
        yield
        return
    stand_in = _StandIn(_STATISTICS)
    sys.modules[_STATISTICS] = stand_in
    try:
        yield
    finally:
        if sys.modules.get(_STATISTICS) is stand_in:
            del sys.modules[_STATISTICS]


class _StandIn(ModuleType):
    """scipy.stats, as long as nothing but ``entropy`` is asked for."""

    @staticmethod
    def entropy(*arguments: Any, **named: Any) -> Any:
        """Call scipy's function of this name."""
        return import_module(_STATISTICS).entropy(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # The import itself asks for ``__path__``.
            raise AttributeError(name)
        if sys.modules.get(_STATISTICS) is self:
            del sys.modules[_STATISTICS]
        return getattr(import_module(_STATISTICS), name)
