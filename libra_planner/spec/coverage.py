"""Whether a workload file holds a whole training step or a part of one (C21)."""

from __future__ import annotations

from dataclasses import replace

from libra_planner.errors import Fault, SpecError
from libra_planner.reading.document import Document
from libra_planner.spec.models import TableSpec, TransformerSpec
from libra_planner.workload.operations import Covers, Workload

_A_WHOLE_MODEL = "train a workload of a whole step, such as 'workload: gpt3'"


def covered(workload: Workload, spec: TransformerSpec | TableSpec, file: str) -> Workload:
    """The workload with what its file says it covers, and the fix where that is a part.

    Parameters
    ----------
    workload : as generated or listed.
    spec, file : what it was read from.
    """
    if spec.covers is not None:
        workload = replace(workload, covers=Covers(spec.covers))
    is_step = workload.covers is Covers.STEP
    return workload if is_step else replace(workload, step_fix=_step_fix(spec, file))


def _step_fix(spec: TransformerSpec | TableSpec, file: str) -> str:
    """What to write to have a whole step."""
    if spec.covers is not None or (isinstance(spec, TransformerSpec) and spec.table == "libra"):
        return _A_WHOLE_MODEL
    if isinstance(spec, TransformerSpec):
        return f"add 'vocabulary' to the architecture in {file}: embedding and logits are missing"
    return (
        f"if {file} lists a whole step, add 'covers: step' and 'tokens_per_step: N' to it, "
        f"else {_A_WHOLE_MODEL}"
    )


def check_covers(spec: TransformerSpec, document: Document) -> None:
    """Refuse to call a whole step what lacks embedding and logits.

    Raises
    ------
    SpecError
        For ``covers: step`` without a vocabulary, or in LIBRA's layout.
    """
    if spec.covers != "step" or (spec.architecture.vocabulary and spec.table != "libra"):
        return
    fix = "add 'vocabulary' to the architecture"
    fix += ", and remove 'table: libra'" if spec.table == "libra" else ""
    expected = "expected part: the step has no embedding and no logits (C21)"
    place = document.place(("covers",))
    raise SpecError(Fault("got step", expected, f"{fix}, or remove covers", "covers", place))
