"""Where a step's time goes: which operation waits on which dimension, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isinf
from typing import TypeAlias

import numpy as np

from libra_planner.step.expression import (
    Array,
    Constant,
    Form,
    Labelled,
    Maximum,
    Node,
    Root,
    Scaled,
    Sum,
    TimeExpression,
    Transfer,
    forms_of,
    numbers,
    seconds_of,
)

COMPUTE = "compute"
"""Label of time spent computing."""

_UNLABELLED = "communication"
"""Label of transfers in an expression that has no labels."""

_TIE = 1e-9
"""Relative difference below which dimensions of a collective count as equally long."""
_ROUNDING = 1e-12
"""Relative difference of equal times."""

_Key: TypeAlias = tuple[str, tuple[int, ...]]
"""Operation class and dimensions."""


@dataclass(frozen=True)
class Share:
    """Exposed time of one operation class waiting on ``dims``.

    Parameters
    ----------
    label : operation class, such as ``forward TP all-reduce``.
    dims : dimensions (from 0) that bind together; empty for compute and latency.
    seconds : what it adds to the step time.
    """

    label: str
    dims: tuple[int, ...]
    seconds: float


def critical_path(step: TimeExpression, bandwidth_bytes_per_s: Array) -> tuple[Share, ...]:
    """Shares of step time, longest first; they add up to the step time (C5).

    Let all communication grow evenly from nothing to its own time: what the step becomes longer
    by at each moment is the share of what it waits for then (Aumann and Shapley's way to share a
    cost). So the shares change smoothly with bandwidth. What hides behind compute or behind other
    communication has none. Where several dimensions of a collective are equally long they are
    reported together.

    Parameters
    ----------
    step : the time expression.
    bandwidth_bytes_per_s : one design, shape (n_dims,).

    Examples
    --------
    >>> from libra_planner.step.expression import add, transfers
    >>> tree = add([Constant(1.0), Labelled("dp all-reduce", transfers([200.0, 50.0]))])
    >>> critical_path(TimeExpression(tree, 2), np.array([100.0, 25.0]))[0]
    Share(label='dp all-reduce', dims=(0, 1), seconds=2.0)

    Work of 3 s and 2 s of TP, beside 6 s of sends: the step waits for TP until both have grown to
    3/4 and take 4.5 s, then for sends.

    >>> tp, sends = Labelled("TP", transfers([2.0])), Labelled("sends", transfers([6.0]))
    >>> step = TimeExpression(Maximum((add([Constant(3.0), tp]), sends)), 1)
    >>> [(one.label, one.seconds) for one in critical_path(step, np.array([1.0]))]
    [('compute', 3.0), ('TP', 1.5), ('sends', 1.5)]
    """
    walker = _Growth(step.structure.reciprocals(bandwidth_bytes_per_s))
    totals: dict[_Key, float] = {(COMPUTE, ()): step.compute_s}
    for key, seconds in walker.grown(step.root, 1.0):
        totals[key] = totals.get(key, 0.0) + seconds
    found = (Share(*key, seconds) for key, seconds in totals.items() if seconds)
    return tuple(sorted(found, key=lambda share: -share.seconds))


@dataclass(frozen=True)
class _Line:
    """A time while communication grows to a fraction ``end`` of its own: a straight line.

    Parameters
    ----------
    end : where the line ends.
    at_0_s : where it would begin, without communication.
    rates_s : what it grows by, by operation class and dimensions.
    """

    end: float
    at_0_s: float
    rates_s: Mapping[_Key, float]

    @cached_property
    def rate_s(self) -> float:
        """What it grows by."""
        return sum(self.rates_s.values())

    def seconds(self, grown: float) -> float:
        """The time at a fraction."""
        return self.at_0_s + grown * self.rate_s if grown else self.at_0_s


@dataclass(frozen=True)
class _Growth:
    """Times as communication grows, each a convex run of lines."""

    reciprocals: Mapping[Form, Array]

    def grown(self, node: Node, factor: float) -> Iterator[tuple[_Key, float]]:
        """What communication adds to ``factor`` times a node, by operation class."""
        if isinstance(node, Scaled):
            yield from self.grown(node.term, factor * node.factor)
        elif isinstance(node, Sum):
            for term in node.terms:
                yield from self.grown(term, factor)
        else:
            start = 0.0
            for line in self.lines(node, None):
                for key, rate_s in line.rates_s.items():
                    yield key, factor * (line.end - start) * rate_s
                start = line.end

    def lines(self, node: Node, label: str | None) -> list[_Line]:
        """The time of a node; what stands under a label grows, latency included."""
        if isinstance(node, Labelled):
            return self.lines(node.term, node.label)
        if isinstance(node, Scaled):
            return [_total([line], node.factor) for line in self.lines(node.term, label)]
        if not isinstance(node, Sum | Maximum):
            return [self._line(node, label)]
        found = _side_by_side([self.lines(term, label) for term in node.terms])
        if isinstance(node, Sum):
            return [_total(beside) for _, beside in found]
        return [line for start, beside in found for line in _longest(start, beside)]

    def _line(self, leaf: Constant | Transfer | Root, label: str | None) -> _Line:
        if isinstance(leaf, Constant):
            if label is None:
                return _Line(1.0, leaf.seconds, {})
            return _Line(1.0, 0.0, {(label, ()): leaf.seconds})
        whole_s = float(seconds_of(leaf, iter(numbers(leaf)), self.reciprocals))
        return _Line(1.0, 0.0, {(label or _UNLABELLED, _dims(leaf)): whole_s})


def _side_by_side(found: Sequence[Sequence[_Line]]) -> Iterator[tuple[float, list[_Line]]]:
    """Where each stretch begins on which all are straight, and their lines on it."""
    start = 0.0
    for end in sorted({line.end for lines in found for line in lines}):
        here = (next(line for line in lines if line.end >= end) for lines in found)
        yield start, [replace(line, end=end) for line in here]
        start = end


def _total(lines: Sequence[_Line], factor: float = 1.0) -> _Line:
    """Lines one after the other."""
    rates_s: dict[_Key, float] = {}
    for line in lines:
        for key, rate_s in line.rates_s.items():
            rates_s[key] = rates_s.get(key, 0.0) + factor * rate_s
    return _Line(lines[0].end, factor * sum(line.at_0_s for line in lines), rates_s)


def _longest(start: float, lines: Sequence[_Line]) -> Iterator[_Line]:
    """The longest of lines at every fraction from ``start``: each that is, up to the next."""
    end = lines[0].end
    while start < end:
        top_s = max(line.seconds(start) for line in lines)
        tied = [one for one in lines if one.seconds(start) >= top_s * (1 - _ROUNDING)]
        endless = [one for one in lines if isinf(one.rate_s)]  # Traffic meets 0 GB/s.
        line = max([*tied, *endless], key=lambda one: one.rate_s)
        steeper = [one for one in lines if one.rate_s > line.rate_s]
        crossings = ((line.at_0_s - one.at_0_s) / (one.rate_s - line.rate_s) for one in steeper)
        start = min((x for x in crossings if x > start), default=end)
        yield replace(_together(line, tied), end=min(start, end))


def _together(line: _Line, tied: Sequence[_Line]) -> _Line:
    """One collective's transfer with the dimensions of those that take as long."""
    if line.at_0_s or len(line.rates_s) != 1:
        return line
    ((label, _), seconds) = next(iter(line.rates_s.items()))
    equal = [
        dims
        for one in tied
        if not one.at_0_s and len(one.rates_s) == 1 and one.rate_s >= seconds * (1 - _TIE)
        for other, dims in one.rates_s
        if other == label
    ]
    dims = tuple(sorted({dim for several in equal for dim in several}))
    return replace(line, rates_s={(label, dims): seconds})


def _dims(leaf: Transfer | Root) -> tuple[int, ...]:
    together = np.sum(forms_of(leaf), axis=0)
    return tuple(i for i, coefficient in enumerate(together) if coefficient > 0)
