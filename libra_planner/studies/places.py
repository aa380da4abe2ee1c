"""Where the faults of a design on its links stand in its plan."""

from __future__ import annotations

import re
from dataclasses import replace

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.plan.realization import KEY
from libra_planner.problem import Problem
from libra_planner.reading.document import Document, Key, read_document

_BUILT = re.compile(r"fabric\.realization \((?P<label>\w+)\)(\.(?P<key>\w+))?")
"""Path of a fault of a dimension that cannot be built."""


def placed(
    error: SpecError, plan: str, problem: Problem, *, vector: str | None = None
) -> SpecError:
    """The error with a place on every fault: the plan, and the line of what cannot be built.

    Faults of the design itself are those of ``vector``, where it has another place than the plan.
    """
    document = read_document(plan)
    faults = (_placed(fault, document, problem) for fault in error.faults)
    return SpecError(*(fault.located(Place(vector or document.file)) for fault in faults))


def _placed(fault: Fault, document: Document, problem: Problem) -> Fault:
    found = _BUILT.match(fault.path)
    if fault.place is not None:
        return fault
    if found is None:  # Of a key of the plan, or of the design.
        return replace(fault, place=document.key_places.get(tuple(fault.path.split("."))))
    dim = list(problem.topology.labels).index(found["label"])
    names = [found["label"], problem.topology.tiers[dim]]
    common: list[Key] = [(*KEY, found["key"]), KEY] if problem.links.networks[dim] else []
    keys: list[Key] = [(*KEY, name, found["key"]) for name in names] + common[:1]
    keys += [(*KEY, name) for name in names] + common[1:] + [("fabric", "topology")]
    place = next((document.key_places[key] for key in keys if key in document.key_places), None)
    return replace(fault, place=place or Place(document.file))
