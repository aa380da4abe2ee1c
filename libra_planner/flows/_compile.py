"""Compilation of the loops that arrays cannot express; only kernel modules import this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile on first use; keep the machine code on disk where there is a folder for it.

    Numba raises RuntimeError if it may write to none of its cache folders: then every process
    compiles for itself.
    """
    try:
        return numba.njit(cache=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(function)  # type: ignore[no-any-return]
