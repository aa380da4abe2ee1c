"""What columns of users are computed from: checked when they are registered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from libra_planner.errors import close_names


def refuse_inputs(
    key: str, inputs: Sequence[str], values: Callable[..., Any], known: Sequence[str]
) -> None:
    """Refuse a column of arrays that solved designs do not have, or that its function lacks.

    Parameters
    ----------
    key : its name.
    inputs : names of the arrays that it is computed from.
    values : what computes it from these.
    known : names that there are.

    Raises
    ------
    ValueError
        With the names that there are.

    Examples
    --------
    >>> refuse_inputs("mine", ("step_time_s",), abs, ["step_time_s", "cost_usd"])
    >>> refuse_inputs("mine", ("step_tme_s",), abs, ["step_time_s", "cost_usd"])
    Traceback (most recent call last):
    ValueError: column 'mine': got 'step_tme_s' to compute it from, expected arrays of solved \
designs: step_time_s, cost_usd; did you mean step_time_s?
    """
    for name in inputs:
        if name not in known:
            expected = f"expected arrays of solved designs: {', '.join(known)}"
            close = close_names(name, known)
            fix = f"; did you mean {' or '.join(close)}?" if close else ""
            got = f"column {key!r}: got {name!r} to compute it from"
            raise ValueError(f"{got}, {expected}{fix}")
    try:
        taken = signature(values)
    except (TypeError, ValueError):  # Of some functions that are no Python nobody knows it.
        return
    try:
        taken.bind(*inputs)
    except TypeError as error:
        got = f"got a function that does not take ({', '.join(inputs)})"
        raise ValueError(f"column {key!r}: {got}: {error}") from None
