"""Files of another kind in the place of a plan or a sweep: named in one line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.reading.document import Document, Key


def of_quotes(model: type[BaseModel], value: Any, place: Place) -> Iterator[Fault]:
    """A CSV file of quotes in the place of a plan."""
    head = value.split()[0].split(",") if isinstance(value, str) and value.strip() else []
    if "fabric" in model.model_fields and {"item", "price"} <= {*head}:
        yield Fault("got quotes", f"expected {_PLAN}", _PRICED, "", place)


def refuse_other_kind(model: type[BaseModel], document: Document, key: Key = ()) -> None:
    """Refuse a file of another kind in the place of a plan or a sweep, in one line.

    Raises
    ------
    SpecError
        Which names the kind, and what takes it.
    """
    value = document.at(key)
    fault = of_other_kind(model, value, document.place(key)) if isinstance(value, dict) else None
    if fault is not None:
        raise SpecError(fault) from None


_PRICED = "a command takes it beside a plan: PLAN --prices FILE"
_PLAN, _SWEEP = "a plan", "a sweep (base and axes)"
_TAKEN: Mapping[str, str] = {
    **dict.fromkeys(("transformer", "cnn", "dlrm", "table"), "a plan names it: workload: ./FILE"),
    "price_book": "a plan names it: cost_model: ./FILE",
    "npu_catalogue": "a plan names it: npu: {name: NPU, catalogue: ./FILE}",
    "system": "a plan names it: system: ./FILE",
    "parts": "report, fabric and their like take it: --parts FILE",
    "leaf_spine": "libra-planner flows takes it",
    "quotes": _PRICED,
}
"""What takes files by their kind."""


def _of_result(value: Mapping[str, Any], expected: str, place: Place) -> Fault | None:
    """What a command printed with ``--json``, in the place of what it was asked about."""
    timed = value.keys() & {"step_time_s", "effective_step_time_s"}
    if "fabric" in value or not (timed and "bandwidth_GBps" in value):
        return None
    plan, changed = value.get("plan"), value.get("set")
    fix = "give the plan that it is of"
    if isinstance(plan, str):
        settings = changed if isinstance(changed, list) else []
        beside = "".join(f" --set {shlex.quote(str(one))}" for one in settings)
        fix = f"its plan is {shlex.quote(plan)}{beside}"
    return Fault("got a result that a command printed with --json", expected, fix, "", place)


def of_other_kind(model: type[BaseModel], value: Mapping[str, Any], place: Place) -> Fault | None:
    """Another file in the place of a plan or a sweep; ``None`` for other faults."""
    known = model.model_fields.keys()
    is_plan, is_sweep = "fabric" in known, {"base", "axes"} <= known
    expected, kind = f"expected {_PLAN if is_plan else _SWEEP}", value.get("kind")
    if (is_plan or is_sweep) and (result := _of_result(value, expected, place)):
        return result
    if is_plan and {"base", "axes"} <= value.keys():
        return Fault(f"got {_SWEEP}", expected, "libra-planner sweep run takes it", "", place)
    if is_sweep and "fabric" in value and not {"base", "axes"} & value.keys():
        fix = "libra-planner optimize takes it; a sweep names it: base: FILE, axes: {...}"
        return Fault(f"got {_PLAN}", expected, fix, "", place)
    if (is_plan or is_sweep) and isinstance(kind, str) and kind in _TAKEN:
        return Fault(f"got a file of kind {kind}", expected, _TAKEN[kind], "", place)
    return None
