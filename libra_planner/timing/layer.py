"""The time of one layer under a training loop, contention for shared dimensions included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from libra_planner.timing.expression import (
    ZERO,
    Array,
    Constant,
    Labelled,
    Node,
    add,
    maximum,
    scale,
    transfers,
)
from libra_planner.timing.loop_terms import (
    Duration,
    LoopTerm,
    Multiple,
    Overlap,
    Quantity,
    Serial,
    multiples,
)

_ROUNDING = 1e-12
"""Relative difference that adding up traffic in another order can make."""


@dataclass(frozen=True)
class Load:
    """What a layer does of one quantity in a step.

    Parameters
    ----------
    name : what reports call it, such as ``weight grad DP``.
    time : its time, all executions together.
    traffic_bytes : what an NPU sends for it, shape (n_dims,).
    """

    name: str
    time: Node
    traffic_bytes: Array = field(repr=False)


@dataclass(frozen=True)
class Layer:
    """One operator of a workload (C5), or a whole step.

    Parameters
    ----------
    loads : the quantities that take time.
    n_dims : dimensions of the fabric.
    n_executions : how often a duration in the loop counts.
    contention : whether overlapped communication competes for shared dimensions (C5).
    """

    loads: Mapping[Quantity, Load]
    n_dims: int
    n_executions: int = 1
    contention: bool = True

    def time(self, term: LoopTerm) -> Node:
        """The layer's time under a loop.

        Examples
        --------
        Two seconds of gradients, of which 1.5 on the first dimension, beside 1 s of compute:

        >>> from libra_planner.timing.loop_terms import NAMES
        >>> compute, gradient = NAMES["weight_grad.compute"], NAMES["weight_grad.dp"]
        >>> sent = np.array([150.0, 200.0])
        >>> none = np.zeros(2)
        >>> loads = {compute: Load("compute", Constant(1.0), none),
        ...          gradient: Load("weight grad DP", transfers(sent), sent)}
        >>> Layer(loads, 2).time(Overlap((compute, gradient)))
        Maximum(terms=(Constant(seconds=1.0), Transfer(...), Transfer(...)))
        """
        if isinstance(term, Quantity):
            load = self.loads.get(term)
            return ZERO if load is None else load.time
        if isinstance(term, Duration):
            return Constant(term.seconds * self.n_executions)
        if isinstance(term, Multiple):
            return scale(term.factor, self.time(term.term))
        sides = [self.time(side) for side in term.terms]
        if isinstance(term, Serial):
            return add(sides)
        return maximum([*sides, self._shared(term)] if self.contention else sides)

    def _shared(self, overlap: Overlap) -> Node:
        """max over shared d of (traffic_d of all sides) / B_d (C5).

        A dimension is shared where all sides together send more than any one of them.
        """
        together = self._traffic(overlap)
        alone = np.max([self._traffic(side) for side in overlap.terms], axis=0)
        shared = together > alone * (1 + _ROUNDING)
        if not shared.any():
            return ZERO
        loads = [self.loads[key] for key in multiples(overlap) if key in self.loads]
        names = [load.name for load in loads if load.traffic_bytes[shared].any()]
        label = f"contention of {' and '.join(dict.fromkeys(names))}"
        return Labelled(label, transfers(np.where(shared, together, 0.0)))

    def _traffic(self, term: LoopTerm) -> Array:
        total = np.zeros(self.n_dims)
        for key, factor in multiples(term).items():
            if key in self.loads:
                total = total + factor * self.loads[key].traffic_bytes
        return total
