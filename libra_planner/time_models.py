"""Which model a step time is of, and in which order each model puts designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

_TIE = 1e-9
"""Relative difference below which two times are equal."""


class TimeModel(StrEnum):
    """What a step time is of, from the least to the most that is known of the links."""

    PLAN = "by the plan's model"
    OWN_LINKS = "on partial groups' own links"
    CHECKED = "on the links as checked"


def order(names: Sequence[str], values: Sequence[float]) -> str:
    """The names from the least value to the largest; equal ones are joined.

    >>> order("ABC", [2.0, 3.0, 1.0]), order("ABC", [2.0, 1.0, 2.0])
    ('C, A, B', 'B, A = C')
    """
    ranked = sorted(zip(values, names, strict=True), key=lambda pair: pair[0])
    text, before = "", 0.0
    for value, name in ranked:
        joint = " = " if value - before <= _TIE * value else ", "
        text += f"{joint if text else ''}{name}"
        before = value
    return text


def order_note(what: str, names: Sequence[str], values: Mapping[TimeModel, Sequence[float]]) -> str:
    """The orders of models that disagree, in words; empty where all agree.

    Parameters
    ----------
    what : whose order, such as ``fastest first``.
    names : of the designs.
    values : of every design by each model that is known; the least is the best.

    Examples
    --------
    >>> times = {TimeModel.PLAN: [1.0, 2.0], TimeModel.OWN_LINKS: [4.0, 3.0]}
    >>> order_note("fastest first", "AB", times)
    "fastest first A, B by the plan's model, but B, A on partial groups' own links"
    """
    by_order: dict[str, list[TimeModel]] = {}
    for model, figures in values.items():
        by_order.setdefault(order(names, figures), []).append(model)
    if len(by_order) < 2:
        return ""
    clauses = (f"{text} {' and '.join(models)}" for text, models in by_order.items())
    return f"{what} {', but '.join(clauses)}"
