"""Whether another wiring of a plan's rails, or other switches, cost less at equal bandwidths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from libra_planner.errors import SpecError
from libra_planner.problem import Problem
from libra_planner.step.expression import Array
from libra_planner.views.bought.built import built


def wiring_notes(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> Iterator[str]:
    """What another wiring and other switches save, and the edits that make them of the plan.

    Nothing under ``prices: bill``, where wirings are no options.

    Parameters
    ----------
    problem : from a plan.
    bandwidth_bytes_per_s : per NPU, shape (n_dims,).

    Examples
    --------
    >>> import libra_planner as lp
    >>> sizes = "fabric.topology=SW(8)_[SW(32)_SW(2)]"
    >>> plan = lp.load_plan("0e_rails_2to1", [sizes, "parallelism.dp=16"])
    >>> [note.partition(", $")[0] for note in wiring_notes(plan, [450e9, 50e9, 25e9])]
    ['rails of one switch each, without spines, have the same bandwidths for $1.22M less']
    """
    if len(problem.topology.stacks) <= 1 and problem.prices.bills is None:
        yield from _notes(problem, tuple(map(float, bandwidth_bytes_per_s)))


@lru_cache(maxsize=64)
def _notes(problem: Problem, bandwidth_bytes_per_s: tuple[float, ...]) -> tuple[str, ...]:
    """The same, found once: text and JSON ask for it."""
    from libra_planner.procurement.rails import cheaper_networks

    try:
        bills, purchase = built(problem, bandwidth_bytes_per_s)
        others = cheaper_networks(purchase, bills.shop(problem), problem.text.rules)
    except SpecError:
        return ()  # What cannot be built is told elsewhere.
    return tuple(found.text for found in others)
