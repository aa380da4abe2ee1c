"""Whether the cables to hosts of a plan can be plugged in the racks of the parts catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from libra_planner.errors import SpecError
from libra_planner.fabric.topology import TOP_OF_RACK
from libra_planner.problem import Problem
from libra_planner.step.expression import Array
from libra_planner.step.model_training import ModelTraining
from libra_planner.views.bought.built import built

if TYPE_CHECKING:
    from libra_planner.procurement.bill import Part


def rack_notes(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> Iterator[str]:
    """That cables to hosts cannot be plugged, as a report says; or which racks a bill takes.

    Nothing of a plan without leaves on top of racks, or of an NPU whose power is not known here.

    Parameters
    ----------
    problem : from a plan.
    bandwidth_bytes_per_s : per NPU, shape (n_dims,).

    Examples
    --------
    >>> import libra_planner as lp
    >>> racks = "fabric.realization={wiring: top_of_rack, npus_per_rack: 32, port_speed: 400 Gbps}"
    >>> sizes = "fabric.topology=SW(8)_[SW(4)_SW(64)]"
    >>> plan = lp.load_plan("0e_rails_2to1", [racks, sizes])
    >>> [note.split(",")[0] for note in rack_notes(plan, [450e9, 50e9, 25e9])]
    ['a rack holds 8 NPUs beside a leaf']
    """
    if any(one is not None and one.wiring == TOP_OF_RACK for one in problem.links.switches):
        yield from _notes(problem, tuple(map(float, bandwidth_bytes_per_s)))


@lru_cache(maxsize=64)
def _notes(problem: Problem, bandwidth_bytes_per_s: tuple[float, ...]) -> tuple[str, ...]:
    """The same, found once: text and JSON ask for it."""
    try:
        npu = _npu(problem)
        bills, purchase = built(problem, bandwidth_bytes_per_s)
        room = bills.system(problem, purchase, npu)[1]
    except (SpecError, LookupError):
        return ()  # What cannot be built, or named, is told elsewhere.
    return tuple(one.note for one in room.leaf_racks if one.note)


def _npu(problem: Problem) -> Part | None:
    """The NPU of a plan as a part; ``None`` for that of the parts catalogue.

    Raises
    ------
    LookupError
        For an NPU that is in no bundled catalogue, or that only the plan's money knows.
    """
    from libra_planner.inputs.parts import npu_part
    from libra_planner.plan.npus import catalogue

    trainings = problem.step.trainings
    names = {one.npu_name for one in trainings if isinstance(one, ModelTraining)} - {""}
    if not names and not problem.fixed_cost_usd:
        return None
    [name] = names if len(names) == 1 else [""]
    return npu_part(name, catalogue().npus[name], 0.0)
