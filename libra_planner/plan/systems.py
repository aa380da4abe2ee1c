"""System files: the law of measured collectives with the constants of a user's cluster (C20)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from libra_planner.errors import Fault, SpecError, closest, refuse
from libra_planner.fits import ErrorRow, Refit, Told
from libra_planner.plan.npus import CatalogueNpuSpec, catalogue, npu_named
from libra_planner.plan.quotes import Date
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, Key, read_document
from libra_planner.reading.models import Count, FileModel, Model, SourceText, Text, validated
from libra_planner.reading.value_faults import path_of
from libra_planner.step.collectives.fitting import Calibration
from libra_planner.step.collectives.measured import (
    MOST_RANKS,
    PUBLISHED,
    PUBLISHED_BANDS,
    RANGES,
    Bands,
    Constants,
    measured_npu,
)
from libra_planner.workload.clock import RANGES as STEP_RANGES
from libra_planner.workload.clock import STEP_CONSTANTS, StepConstants
from libra_planner.workload.kernels import RANGES as KERNEL_RANGES
from libra_planner.workload.kernels import KernelConstants, Kernels

Share: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Band: TypeAlias = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]


class ErrorSpec(Model):
    """Mean absolute errors of some measured runs, as shares of their times: 0.15 is 15 %.

    Parameters
    ----------
    before : Mean absolute error under the published constants, a share: 0.15 is 15 %.
    after : Mean absolute error under the constants of this file, a share.
    held_out : Mean absolute error of each half of the runs under constants of the other half, a
        share: what to expect of runs that were not measured. Without it, after is what to expect.
    n : Runs that these errors are of.
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
    """Errors by class: in a domain or across domains, from 64 MiB on or below.

    Parameters
    ----------
    inside_large : Errors inside one scale-up domain, from 64 MiB on.
    inside_small : Errors inside one scale-up domain, below 64 MiB.
    across_large : Errors across several domains, from 64 MiB on.
    across_small : Errors across several domains, below 64 MiB.
    """

    inside_large: ErrorSpec | None = None
    inside_small: ErrorSpec | None = None
    across_large: ErrorSpec | None = None
    across_small: ErrorSpec | None = None


class ErrorsSpec(Model):
    """Errors of what was refitted.

    Parameters
    ----------
    collectives : Errors of all measured collectives.
    kernels : Errors of all measured kernels.
    steps : Errors of all measured training runs.
    classes : Errors of collectives by class; a class that is not here keeps its published band.
        Without this key every class has the errors of all collectives.
    step_bands : What nine of ten errors of steps stay below, a share, by kind, such as dense bf16;
        a kind that is not here keeps its published band.
    """

    collectives: ErrorSpec | None = None
    kernels: ErrorSpec | None = None
    steps: ErrorSpec | None = None
    classes: ClassesSpec | None = None
    step_bands: dict[str, Band] = Field(default={})


class MeasuredSpec(Model):
    """What the runs cover; beyond it the published bands count where they are wider.

    Parameters
    ----------
    kinds : Kinds of collectives that were measured, such as all-reduce; none stands for all.
    most_ranks : Most ranks of a measured run.
    """

    kinds: list[Text] = Field(default=[])
    most_ranks: Count = MOST_RANKS


class SystemSpec(FileModel):
    """A user's cluster: constants of collectives, kernels and steps, refitted to its runs.

    Parameters
    ----------
    name : Name of the cluster, as results print it.
    npu : NPU that was measured, such as h100-sxm.
    source : What the constants were fitted to, such as names of logs.
    as_of : Day of the fit, such as 2026-11-23.
    collectives : Constants of collectives that the runs tell, in s or as a share.
    published : Constants of collectives that they do not tell, as they were published then.
    kernels : Constants of kernels that the measurements tell (C18).
    kernels_published : Constants of kernels that they do not tell, as they were published then.
    steps : Constants of whole training steps that the runs tell (C18).
    steps_published : Constants of whole steps that they do not tell, as they were published then.
    error : What to expect of predicted times (C23).
    measured : What the runs cover.
    """

    kind: Literal["system"]
    name: Text
    npu: Text
    source: SourceText
    as_of: Date
    collectives: dict[str, float] = Field({})
    published: dict[str, float] = Field({})
    kernels: dict[str, float] = Field({})
    kernels_published: dict[str, float] = Field({})
    steps: dict[str, float] = Field({})
    steps_published: dict[str, float] = Field({})
    error: ErrorsSpec = ErrorsSpec()
    measured: MeasuredSpec = MeasuredSpec()


@dataclass(frozen=True)
class System:
    """A system file, read.

    Parameters
    ----------
    name, as_of : of the file.
    npu : as the file writes it; it was measured.
    constants, bands : of the law of measured collectives.
    kernels, steps : constants of its kernels and steps; ``None`` where nobody measured them.
    step_bands : what nine of ten errors of steps stay below, by kind.
    """

    name: str
    npu: str
    as_of: str
    constants: Constants
    bands: Bands
    kernels: KernelConstants | None = None
    steps: StepConstants | None = None
    step_bands: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its name and day, for people."""
        return f"{self.name} ({self.as_of})"

    @property
    def holds(self) -> str:
        """What it has constants for, for people."""
        own = "" if self.constants == PUBLISHED else "collectives"
        return " and ".join(filter(None, (own, self.computes))) or "none"

    @property
    def computes(self) -> str:
        """What of compute it has constants for, for people; empty for nothing."""
        held = {"kernels": self.kernels, "steps": self.steps}
        return " and ".join(name for name, one in held.items() if one is not None)

    @property
    def step_constants(self) -> StepConstants:
        """Of steps; the published ones where nobody measured them."""
        return self.steps or STEP_CONSTANTS

    def is_of(self, npu: str, npus: Mapping[str, CatalogueNpuSpec] | None = None) -> bool:
        """Whether an NPU is the one that was measured.

        Parameters
        ----------
        npu : by any of its names.
        npus : of the catalogue that has them; ``None`` for the bundled one.
        """
        known = catalogue().npus if npus is None else npus
        own, other = (npu_named(name, known) or name for name in (self.npu, npu))
        return own == other

    def kernels_with(self, usual: Kernels) -> Kernels:
        """Kernels of its NPU with its constants, where it has them."""
        return usual if self.kernels is None else replace(usual, constants=self.kernels)


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
        if not (spec.kernels or spec.steps):  # Of NPUs whose collectives nobody measured, too.
            measured_npu(spec.npu)
    except SpecError as error:
        faults += (fault.located(document.place(("npu",)), "npu") for fault in error.faults)
    refuse(faults)
    own = {**spec.kernels_published, **spec.kernels}
    steps = {**spec.steps_published, **spec.steps}
    constants = replace(PUBLISHED, **spec.published, **spec.collectives)
    bands = replace(
        PUBLISHED_BANDS,
        **_band_fractions(spec.error),
        source=f"{spec.name}, {spec.as_of}" if spec.error.collectives else PUBLISHED_BANDS.source,
        kinds=tuple(spec.measured.kinds),
        n_most_ranks=spec.measured.most_ranks,
    )
    return System(
        spec.name,
        spec.npu,
        spec.as_of,
        constants,
        bands,
        KernelConstants(**own) if own else None,
        StepConstants(**steps) if steps else None,
        spec.error.step_bands,
    )


def is_system_file(name: str) -> bool:
    """Whether a system is a file's path, not the name of an NPU.

    >>> is_system_file("ours.yaml"), is_system_file("h100-sxm")
    (True, False)
    """
    return bundled.is_path(name)


_LAWS: Mapping[str, tuple[str, Mapping[str, tuple[float, float]]]] = {
    "collectives": ("published", RANGES),
    "kernels": ("kernels_published", KERNEL_RANGES),
    "steps": ("steps_published", STEP_RANGES),
}
"""Keys of constants that were fitted: the key of the others, and the ranges of both."""


def _constant_faults(document: Document) -> Iterator[Fault]:
    """Constants that a law has not, has twice, or never has."""
    for told, (others, ranges) in _LAWS.items():
        fitted: Mapping[str, float] = document.value.get(told) or {}
        kept: Mapping[str, float] = document.value.get(others) or {}
        for part, values in ((told, fitted), (others, kept)):
            for name, value in values.items():
                key: Key = (part, name)
                if fault := _constant_fault(name, value, ranges):
                    place = document.place(key) if name in ranges else document.key_place(key)
                    yield fault.located(place, path_of(key))
        for name in fitted.keys() & kept.keys():
            got, expected = f"got {name} twice", "expected it as fitted or as published"
            key = (others, name)
            yield Fault(got, expected, "remove one", path_of(key), document.key_place(key))


def _constant_fault(
    name: str, value: float, ranges: Mapping[str, tuple[float, float]]
) -> Fault | None:
    if name not in ranges:
        return Fault(f"got {name!r}", "expected a constant of the law", closest(name, ranges))
    low, high = ranges[name]
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


@dataclass(frozen=True)
class Refits:
    """What was refitted to a user's measurements; ``None`` for what was not.

    Parameters
    ----------
    collectives, kernels, steps : of the law of measured collectives, of kernels, and of steps.
    """

    collectives: Calibration | None = None
    kernels: Refit | None = None
    steps: Refit | None = None

    @property
    def parts(self) -> Mapping[str, Refit]:
        """Those there are, by their key in the file."""
        own = self.collectives.refit if self.collectives else None
        held = {"collectives": own, "kernels": self.kernels, "steps": self.steps}
        return {key: part for key, part in held.items() if part is not None}

    def system(self, origin: Origin) -> System:
        """A system with these constants and published bands."""
        own = {key: dict(part.told.values) for key, part in self.parts.items()}
        return System(
            origin.name,
            origin.npu,
            origin.as_of,
            Constants(**own["collectives"]) if "collectives" in own else PUBLISHED,
            PUBLISHED_BANDS,
            KernelConstants(**own["kernels"]) if "kernels" in own else None,
            StepConstants(**own["steps"]) if "steps" in own else None,
        )


def system_text(origin: Origin, found: Refits) -> str:
    """The file that :func:`load_system` reads."""
    return "\n".join(_lines(origin, found)) + "\n"


def _lines(origin: Origin, found: Refits) -> Iterator[str]:
    yield "# Constants of one cluster, by libra-planner calibrate."
    yield "kind: system"
    for key in ("name", "npu", "source", "as_of"):
        yield f"{key}: {json.dumps(getattr(origin, key), ensure_ascii=False)}"
    for key, part in found.parts.items():
        yield from _constant_lines(key, part.told)
    yield "error:"
    yield from (f"  {key}: {_errors(part.rows[0])}" for key, part in found.parts.items())
    if found.steps is not None and found.steps.bands:
        yield "  step_bands:"
        yield from (f"    {kind}: {band:.3g}" for kind, band in found.steps.bands.items())
    if found.collectives is not None:
        yield from _coverage_lines(found.collectives)


def _constant_lines(key: str, told: Told) -> Iterator[str]:
    """What measurements tell, and what they do not."""
    others, _ = _LAWS[key]
    for name, is_told in ((key, True), (others, False)):
        held = {x: value for x, value in told.values.items() if (x in told.unsure) == is_told}
        about = "the measurements tell" if is_told else "they do not tell"
        yield from (f"{name}:  # what {about}",) if held else ()
        yield from (f"  {x}: {value!r}" for x, value in held.items())


def _coverage_lines(fitted: Calibration) -> Iterator[str]:
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
