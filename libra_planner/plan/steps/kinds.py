"""Which steps a workload can be: that of a whole model with kernels, or a part with a share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from libra_planner.errors import DataNotFound, Fault, SpecError
from libra_planner.plan import models, prices
from libra_planner.plan.workloads import transformer_of
from libra_planner.reading import bundled

_OF_LIBRA = "-libra"
"""Ending of the names of LIBRA's tables: some layers of a model."""
SHARE = 0.4
"""Efficiency fraction of examples in messages."""


def can_be_whole(path: Path) -> bool:
    """Whether a workload file is a transformer with embedding and logits.

    Raises
    ------
    SpecError
        For a file that is missing, or wrong in itself: nobody knows what it would be.
    """
    shape = transformer_of(path)
    return shape is not None and shape.has_logits


def whole_model_like(path: Path) -> str:
    """The bundled whole model of the same name, else one for an example."""
    name = path.stem.removesuffix(_OF_LIBRA)
    return name if name in bundled.names("workloads") else "gpt3"


def npu_name(entry: models.TrainingSpec) -> str:
    """The NPU of a plan as it writes it, else one for an example."""
    return entry.npu.name if isinstance(entry.npu, prices.NamedNpuSpec) else "h100-sxm"


def unsearchable(spec: models.PlanSpec, beside: Path) -> Iterator[Fault]:
    """All that keeps a plan from a search of its strategy: it needs the step of a whole model."""
    expected = "expected the step of a whole model for a search"
    npu = spec.npu
    if not isinstance(npu, prices.NamedNpuSpec) or npu.efficiency_fraction is not None:
        got = "got nothing" if npu is None else "got an efficiency_fraction"
        is_named = isinstance(npu, prices.NamedNpuSpec)
        got = got if npu is None or is_named else "got an NPU without a name"
        yield Fault(got, expected, f"write npu: {npu_name(spec)}", "npu")
    yield from _part_faults(spec, beside, expected)
    if spec.training_loop is not None:
        without = "expected none: a search hides what overlap says"
        yield Fault("got a training_loop", without, "remove it", "training_loop")


def _part_faults(spec: models.PlanSpec, beside: Path, expected: str) -> Iterator[Fault]:
    """A workload that is no whole model; of a file that is wrong, what is wrong with it."""
    try:
        path = bundled.resolve("workloads", spec.workload, beside)
        is_whole = can_be_whole(path)
    except DataNotFound:  # The plan tells it, at its own line.
        return
    except SpecError as error:
        yield from error.faults
        return
    if not is_whole:
        fix = f"name a whole model, such as 'workload: {whole_model_like(path)}'"
        yield Fault(f"got {path.stem}, no whole transformer", expected, fix, "workload")
