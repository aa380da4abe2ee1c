"""System files: the law of measured collectives with the constants of a user's cluster (C20)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from libra_planner.errors import Fault, SpecError, closest, refuse
from libra_planner.plan.quotes import Date
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, Key, read_document
from libra_planner.reading.models import Count, Model, Text, path_of, validated
from libra_planner.step.collectives.fitting import CONSTANTS, Calibration, ErrorRow
from libra_planner.step.collectives.measured import (
    MOST_RANKS,
    PUBLISHED,
    PUBLISHED_BANDS,
    RANGES,
    Bands,
    Constants,
    measured_npu,
)

Share: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class ErrorSpec(Model):
    """Mean absolute errors of some measured runs.

    Parameters
    ----------
    before, after : under the published constants, and under those of the file.
    held_out : of either half of the runs under constants of the other half.
    n : of runs.
    """

    before: Share
    after: Share
    held_out: Share | None = None
    n: Count

    @property
    def band_fraction(self) -> float:
        """What to expect of other runs: the error of runs that were held out, where it is known."""
        return self.after if self.held_out is None else self.held_out


class ClassesSpec(Model):
    """Errors by class: in a domain or across domains, from 64 MiB on or below."""

    inside_large: ErrorSpec | None = None
    inside_small: ErrorSpec | None = None
    across_large: ErrorSpec | None = None
    across_small: ErrorSpec | None = None


class ErrorsSpec(Model):
    """Errors of what was refitted.

    Parameters
    ----------
    collectives : of all runs.
    classes : the same by class; a class that is not here keeps its published band.
    """

    collectives: ErrorSpec | None = None
    classes: ClassesSpec | None = None


class MeasuredSpec(Model):
    """What the runs cover; beyond it the published bands count where they are wider.

    Parameters
    ----------
    kinds : of collectives.
    most_ranks : of a run.
    """

    kinds: list[Text] = Field(default=[])
    most_ranks: Count = MOST_RANKS


class SystemSpec(Model):
    """A user's cluster: constants of the law of measured collectives, refitted to its runs.

    Parameters
    ----------
    npu : whose collectives were measured, such as h100-sxm.
    source : what they were fitted to.
    as_of : when.
    collectives : constants that the runs tell.
    published : constants that they do not tell, as they were when the others were fitted.
    error : what to expect of predicted times (C23).
    measured : what the runs cover.
    """

    kind: Literal["system"]
    name: Text
    npu: Text
    source: Text
    as_of: Date
    collectives: dict[str, float] = Field({})
    published: dict[str, float] = Field({})
    error: ErrorsSpec = ErrorsSpec()
    measured: MeasuredSpec = MeasuredSpec()


@dataclass(frozen=True)
class System:
    """A system file, read.

    Parameters
    ----------
    name, as_of : of the file.
    npu : as the file writes it; its collectives were measured.
    constants, bands : of the law of measured collectives.
    """

    name: str
    npu: str
    as_of: str
    constants: Constants
    bands: Bands


def load_system(name: str, beside: Path | None = None) -> System:
    """Read a system file.

    Parameters
    ----------
    name, beside : its path, and the folder that it is relative to.

    Raises
    ------
    SpecError
        With every fault found: unknown constants, and such that are outside their ranges.
    """
    document = read_document(Path(beside or "", name))
    spec, faults = validated(SystemSpec, document), list(_constant_faults(document))
    try:
        measured_npu(spec.npu)
    except SpecError as error:
        faults += (fault.located(document.place(("npu",)), "npu") for fault in error.faults)
    refuse(faults)
    constants = replace(PUBLISHED, **spec.published, **spec.collectives)
    bands = replace(
        PUBLISHED_BANDS,
        **_band_fractions(spec.error),
        source=f"{spec.name}, {spec.as_of}" if spec.error.collectives else PUBLISHED_BANDS.source,
        kinds=tuple(spec.measured.kinds),
        n_most_ranks=spec.measured.most_ranks,
    )
    return System(spec.name, spec.npu, spec.as_of, constants, bands)


def is_system_file(name: str) -> bool:
    """Whether a system is a file's path, not the name of an NPU.

    >>> is_system_file("ours.yaml"), is_system_file("h100-sxm")
    (True, False)
    """
    return bundled.is_path(name)


def _constant_faults(document: Document) -> Iterator[Fault]:
    """Constants that the law has not, has twice, or never has."""
    parts = {name: document.value.get(name) or {} for name in ("collectives", "published")}
    for part, values in parts.items():
        for name, value in values.items():
            key: Key = (part, name)
            if fault := _constant_fault(name, value, parts if part == "published" else {}):
                place = document.place(key) if name in CONSTANTS else document.key_place(key)
                yield fault.located(place, path_of(key))


def _constant_fault(
    name: str, value: float, others: Mapping[str, Mapping[str, float]]
) -> Fault | None:
    if name not in CONSTANTS:
        return Fault(f"got {name!r}", "expected a constant of the law", closest(name, CONSTANTS))
    if name in others.get("collectives", {}):
        return Fault(f"got {name} twice", "expected it as fitted or as published", "remove one")
    low, high = RANGES[name]
    if not low <= value <= high:
        return Fault(f"got {value:g}", f"expected {low:g} to {high:g}, which is physical")
    return None


def _band_fractions(errors: ErrorsSpec) -> dict[str, float]:
    """Bands by the field of :class:`Bands`; those of all runs where no classes are told apart."""
    names = ClassesSpec.model_fields
    if errors.classes is not None:
        found = {name: getattr(errors.classes, name) for name in names}
    else:
        found = dict.fromkeys(names, errors.collectives)
    return {f"{name}_fraction": one.band_fraction for name, one in found.items() if one}


@dataclass(frozen=True)
class Origin:
    """Where constants are from.

    Parameters
    ----------
    name, npu : of the system.
    source, as_of : the measurements, and their day.
    """

    name: str
    npu: str
    source: str
    as_of: str


def system_text(origin: Origin, fitted: Calibration) -> str:
    """The file that :func:`load_system` reads."""
    return "\n".join(_lines(origin, fitted)) + "\n"


def _lines(origin: Origin, fitted: Calibration) -> Iterator[str]:
    told, constants = fitted.fit.unsure, fitted.constants
    yield "# The law of measured collectives with the constants of one cluster, by calibrate."
    yield "kind: system"
    for key in ("name", "npu", "source", "as_of"):
        yield f"{key}: {json.dumps(getattr(origin, key), ensure_ascii=False)}"
    for key, about in (("collectives", "the runs tell"), ("published", "they do not tell")):
        names = [name for name in CONSTANTS if (name in told) == (key == "collectives")]
        values = (f"  {name}: {getattr(constants, name):g}" for name in names)
        yield from (f"{key}:  # what {about}", *values) if names else ()
    yield "error:"
    yield f"  collectives: {_errors(fitted.total)}"
    classes = fitted.classes
    yield "  classes:" if classes else "  classes: {}  # too few runs: the published bands hold"
    yield from (f"    {name}: {_errors(row)}" for name, row in classes.items())
    kinds = dict.fromkeys(run.kind for run in fitted.runs)
    yield "measured:"
    yield f"  kinds: [{', '.join(kinds)}]"
    yield f"  most_ranks: {max(run.ranks.n for run in fitted.runs)}"


def _errors(row: ErrorRow) -> str:
    held_out = "" if row.held_out is None else f", held_out: {row.held_out:.3g}"
    return f"{{before: {row.before:.3g}, after: {row.after:.3g}{held_out}, n: {row.n}}}"
