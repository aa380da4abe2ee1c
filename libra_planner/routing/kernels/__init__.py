"""Compiled loops that arrays cannot express, and their compilation; only kernels import numba."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numba

from libra_planner.processes import kept_interrupts

_Function = TypeVar("_Function", bound=Callable[..., Any])


def part(function: _Function) -> _Function:
    """Compile as a part of the functions of the same module that are called from Python."""
    return numba.njit(error_model="numpy")(function)  # type: ignore[no-any-return]


def kept(function: _Function) -> _Function:
    """Compile on first use, and keep the machine code on disk where there is a folder for it.

    Numba looks for one in NUMBA_CACHE_DIR, beside the module, and in the user's cache folder, and
    raises RuntimeError if it may write to none of them: then every process compiles for itself.
    These functions take plain tuples, arrays and numbers only: the folder's index names their
    types, and with a class of ours in it the index of an older version might not be readable.
    Parts are of the same module, as numba looks for changes there only.
    """
    try:
        compiled = numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        compiled = part(function)
    return interruptible(compiled)  # type: ignore[no-any-return]


def interruptible(compiled: Any) -> Any:
    """A function whose first calls compile it: the compiler swallows an interrupt now and then."""

    @functools.wraps(compiled)
    def called(*arguments: Any) -> Any:
        with kept_interrupts():
            return compiled(*arguments)

    return called
