"""NPU catalogues, and the fixed cost of a system: what no bandwidth changes (C8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from libra_planner.errors import Fault, SpecError, UnknownName, unknown_name
from libra_planner.spec import bundled
from libra_planner.spec.document import read_document
from libra_planner.spec.faults import validated
from libra_planner.spec.system_models import CatalogueNpuSpec, FixedCostParts, NpuCatalogueSpec
from libra_planner.units import format_usd

BUNDLED_CATALOGUE = "npus"
"""The NPU catalogue that a plan means when it names none."""


@dataclass(frozen=True)
class FixedCost:
    """Cost of the NPUs and the rest of the system.

    Parameters
    ----------
    usd : the whole of it.
    notes : what of it is an assumption.
    """

    usd: float = 0.0
    notes: tuple[str, ...] = ()


def fixed_cost(
    spec: float | FixedCostParts | None, n_npus: int, beside: Path | None = None
) -> FixedCost:
    """Fixed cost of a system: n_npus * (price of an NPU + per_npu) + rest.

    Parameters
    ----------
    spec : what the plan says; a number is USD.
    n_npus : NPUs of the fabric.
    beside : folder of the plan.

    Raises
    ------
    SpecError
        For an NPU that is not in the catalogue or has no price there.

    Examples
    --------
    >>> fixed_cost(FixedCostParts(per_npu="3 k$", rest="20 M$"), 1000).usd
    23000000.0
    """
    if spec is None:
        return FixedCost()
    if not isinstance(spec, FixedCostParts):
        return FixedCost(spec)
    price_usd, notes = (0.0, ()) if spec.npu is None else _price(spec, spec.npu, beside)
    per_npu_usd = price_usd + (spec.per_npu or 0.0)
    return FixedCost(n_npus * per_npu_usd + (spec.rest or 0.0), notes)


def _price(spec: FixedCostParts, name: str, beside: Path | None) -> tuple[float, tuple[str, ...]]:
    """USD of one NPU, and a note unless the price is published."""
    price = catalogue_npu(name, spec.catalogue, beside, path="fixed_cost").price
    if price is None:
        expected = "expected an NPU with a price in the catalogue"
        fix = "leave npu out and give its price as 'per_npu'"
        raise SpecError(Fault(f"got {name!r}", expected, fix, "fixed_cost.npu"))
    if price.confidence == "published":
        return price.usd, ()
    shown = f"{price.confidence} NPU price: {format_usd(price.usd)} for {name} ({price.as_of})"
    return price.usd, (f"{shown}; source: {price.source}",)


def catalogue_npu(
    name: str, catalogue: str | None, beside: Path | None, *, path: str
) -> CatalogueNpuSpec:
    """An NPU of a catalogue.

    Parameters
    ----------
    name : the NPU.
    catalogue : path of the catalogue; ``None`` for the bundled one.
    beside : folder that a path is relative to.
    path : dotted path of the part of the plan that names the NPU, for errors.

    Raises
    ------
    SpecError
        For a name that is not in the catalogue, or a file that is none.

    Examples
    --------
    >>> catalogue_npu("h100-sxm", None, None, path="npu").peak_TFLOPps["bf16"]
    989.4
    """
    file = bundled.resolve("npu-catalogues", catalogue or BUNDLED_CATALOGUE, beside)
    npus = validated(NpuCatalogueSpec, read_document(file)).npus
    if name in npus:
        return npus[name]
    if bundled.is_path(name):
        fix = f"write 'catalogue: {name}' and the name of one of its NPUs under npu"
        raise SpecError(Fault(f"got the path {name!r}", "expected a name", fix, f"{path}.npu"))
    (fault,) = unknown_name(f"NPU of the catalogue {file.stem}", name, npus).faults
    raise UnknownName(replace(fault, path=f"{path}.npu"))
