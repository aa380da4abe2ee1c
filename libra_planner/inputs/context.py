"""What a report needs of a plan beside its problem: its NPU, price book, files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from libra_planner.inputs.parts import npu_part
from libra_planner.plan.models import PlanSpec
from libra_planner.plan.system import BUNDLED_CATALOGUE, FixedCostParts, NamedNpuSpec, catalogue_npu
from libra_planner.plan.training import plan_spec
from libra_planner.procurement.parts import Part
from libra_planner.reading import bundled
from libra_planner.reading.document import apply_settings, read_document
from libra_planner.reading.faults import validated
from libra_planner.reading.prices import PriceBookSpec


@dataclass(frozen=True)
class InputFile:
    """A file that a report rests on.

    Parameters
    ----------
    role, name : such as plan, and the name it was given by.
    sha256 : of its bytes.
    """

    role: str
    name: str
    sha256: str


def input_file(role: str, name: str, path: Path) -> InputFile:
    """A file with the hash of its bytes."""
    return InputFile(role, name, hashlib.sha256(path.read_bytes()).hexdigest())


@dataclass(frozen=True)
class PlanContext:
    """What a plan says to a buyer.

    Parameters
    ----------
    npu : the NPU it names; ``None`` where it names none.
    book_as_of, book_source : of its price book.
    files : all that it reads.
    """

    npu: Part | None
    book_as_of: str
    book_source: str
    files: tuple[InputFile, ...] = field(repr=False)


def plan_context(
    path: str | Path,
    settings: Sequence[str] = (),
    *,
    npu_spare_fraction: float = 0.0,
    shown: str | None = None,
) -> PlanContext:
    """What a valid plan says beside its problem.

    Parameters
    ----------
    path, settings : as :func:`~libra_planner.plan.problem.load_plan` takes them.
    npu_spare_fraction : spares of the NPU over those in use.
    shown : what to call the plan's file, if not by its path.

    Raises
    ------
    SpecError
        For a plan that is not valid.

    Examples
    --------
    >>> context = plan_context(bundled.example("02_performance_per_cost"))
    >>> context.npu.name, context.book_as_of
    ('h100-sxm', '2024-05')
    """
    document = read_document(path)
    apply_settings(document, settings)
    spec, beside = plan_spec(document), Path(path).parent
    book = bundled.resolve("cost-models", spec.cost_model, beside)
    read = validated(PriceBookSpec, read_document(book))
    files = [
        input_file("plan", shown or str(path), Path(path)),
        input_file("price book", spec.cost_model, book),
    ]
    entries = [spec] if isinstance(spec, PlanSpec) else spec.workloads
    for name in dict.fromkeys(entry.workload for entry in entries):
        files.append(input_file("workload", name, bundled.resolve("workloads", name, beside)))
    npu_name, catalogue = _npu(spec.fixed_cost, [entry.npu for entry in entries])
    npu = None
    if npu_name is not None:
        found = catalogue_npu(npu_name, catalogue, beside, path="npu.name")
        npu = npu_part(npu_name, found, npu_spare_fraction)
        file = catalogue or BUNDLED_CATALOGUE
        resolved = bundled.resolve("npu-catalogues", file, beside)
        files.append(input_file("NPU catalogue", file, resolved))
    return PlanContext(npu, read.as_of, read.source, tuple(files))


def _npu(fixed_cost: object, npus: Sequence[object]) -> tuple[str | None, str | None]:
    """Name and catalogue of the NPU that a plan buys, else of the one it computes with."""
    if isinstance(fixed_cost, FixedCostParts) and fixed_cost.npu is not None:
        return fixed_cost.npu, fixed_cost.catalogue
    named = [npu for npu in npus if isinstance(npu, NamedNpuSpec)]
    if named and len({npu.name for npu in named}) == 1:
        return named[0].name, named[0].catalogue
    return None, None
