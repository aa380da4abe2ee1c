"""Where a step's time goes: which operation waits on which dimension, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from libra_planner.step.expression import (
    Array,
    Form,
    Labelled,
    Maximum,
    Node,
    Root,
    Scaled,
    Sum,
    TimeExpression,
    Transfer,
    compute_s,
    forms_of,
    numbers,
    seconds_of,
)

COMPUTE = "compute"
"""Label of time spent computing."""

_UNLABELLED = "communication"
"""Label of transfers in an expression that has no labels."""

_TIE = 1e-9
"""Relative difference below which two terms of a maximum count as equally long."""


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
    """Shares of step time, longest first; they add up to the step time.

    Where several dimensions of a collective are equally long they are reported
    together; where whole branches tie, the first counts. Of a communication that takes
    longer than the compute beside it, what is longer is exposed.

    Parameters
    ----------
    step : the time expression.
    bandwidth_bytes_per_s : one design, shape (n_dims,).

    Examples
    --------
    >>> from libra_planner.step.expression import Constant, add, transfers
    >>> tree = add([Constant(1.0), Labelled("dp all-reduce", transfers([200.0, 50.0]))])
    >>> critical_path(TimeExpression(tree, 2), np.array([100.0, 25.0]))[0]
    Share(label='dp all-reduce', dims=(0, 1), seconds=2.0)
    """
    walker = _Exposure(step.structure.reciprocals(bandwidth_bytes_per_s))
    totals: dict[tuple[str, tuple[int, ...]], float] = {(COMPUTE, ()): step.compute_s}
    for share in walker.exposed(step.root, 1.0, None):
        key = (share.label, share.dims)
        totals[key] = totals.get(key, 0.0) + share.seconds
    found = (Share(label, dims, seconds) for (label, dims), seconds in totals.items() if seconds)
    return tuple(sorted(found, key=lambda share: -share.seconds))


@dataclass(frozen=True)
class _Exposure:
    reciprocals: Mapping[Form, Array]

    def value(self, node: Node) -> float:
        return float(seconds_of(node, iter(numbers(node)), self.reciprocals))

    def exposed(self, node: Node, factor: float, label: str | None) -> Iterable[Share]:
        """Shares of ``factor`` times what a node takes above its compute."""
        if isinstance(node, Transfer | Root):
            yield Share(label or _UNLABELLED, _dims(node), factor * self.value(node))
        elif isinstance(node, Labelled):
            yield from self.exposed(node.term, factor, node.label)
        elif isinstance(node, Scaled):
            yield from self.exposed(node.term, factor * node.factor, label)
        elif isinstance(node, Sum):
            for term in node.terms:
                yield from self.exposed(term, factor, label)
        elif isinstance(node, Maximum):
            yield from self._longest(node, factor, label)
        elif label is not None:
            yield Share(label, (), factor * node.seconds)

    def _longest(self, node: Maximum, factor: float, label: str | None) -> Iterable[Share]:
        values = [self.value(term) for term in node.terms]
        top = max(values)
        tied = [t for t, v in zip(node.terms, values, strict=True) if v >= top * (1 - _TIE)]
        compute, own = (compute_s(n) if label is None else 0.0 for n in (node, tied[0]))
        if all(isinstance(term, Transfer) for term in tied):
            dims = sorted({i for t in tied if isinstance(t, Transfer) for i in _dims(t)})
            yield Share(label or _UNLABELLED, tuple(dims), factor * (top - compute))
        elif top > own:
            # What the longest term communicates beside the compute of another is hidden.
            exposed = (top - compute) / (top - own)
            yield from self.exposed(tied[0], factor * exposed, label)


def _dims(leaf: Transfer | Root) -> tuple[int, ...]:
    together = np.sum(forms_of(leaf), axis=0)
    return tuple(i for i, coefficient in enumerate(together) if coefficient > 0)
