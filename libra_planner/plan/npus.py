"""NPU catalogues: NPUs by any of their names, and the scale-up domains that join them (C14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from libra_planner.errors import Fault, SpecError, UnknownName, close_names, unknown_name
from libra_planner.fabric.scale_up import TORUS, ScaleUpDomain
from libra_planner.files import read_text
from libra_planner.plan.options import Speed
from libra_planner.reading import bundled
from libra_planner.reading.document import parse_document
from libra_planner.reading.models import (
    AsOf,
    Confidence,
    Count,
    FileModel,
    Model,
    Price,
    Rate,
    SourceText,
    Text,
    core_fields,
    validated,
)
from libra_planner.units import BYTES_PER_S_PER_GBPS
from libra_planner.workload.kernels import RANGES, KernelConstants, Kernels


class NpuPriceSpec(Model):
    """Price of one NPU, and how sure it is.

    Parameters
    ----------
    usd : Price of one NPU, USD.
    low_usd : Lowest price that sources say, USD; without it the price itself.
    high_usd : Highest price that sources say, USD; without it the price itself.
    """

    usd: Annotated[Price, Field(gt=0)]
    low_usd: Annotated[Price, Field(gt=0)] | None = None
    high_usd: Annotated[Price, Field(gt=0)] | None = None
    confidence: Confidence
    as_of: AsOf
    source: SourceText

    @model_validator(mode="after")
    def _in_order(self) -> NpuPriceSpec:
        low, high = self.low_usd or self.usd, self.high_usd or self.usd
        if not low <= self.usd <= high:
            got = f"got low_usd {low:g}, usd {self.usd:g}, high_usd {high:g}"
            raise ValueError(f"{got}, expected low_usd <= usd <= high_usd")
        return self


class CatalogueNpuSpec(Model):
    """One NPU; peak rates are dense (without structured sparsity).

    Parameters
    ----------
    vendor_name : Full name of the product, as bills print it.
    aliases : Other names; case, spaces, dashes and the vendor make no difference.
    read_as : Names that people give it, though its variants share them: notes say so.
    peak_TFLOPps : Peak 10^12 floating-point operations per second, by data type.
    memory_GB : Usable memory, 1e9 bytes.
    memory_source : Where memory_GB is from.
    memory_bandwidth_GBps : Bandwidth of its memory, 1e9 bytes per second.
    n_cores : Cores that work on tiles side by side, such as streaming multiprocessors.
    kernels : Name of the constants of its kernels; without it those that are typical.
    kernels_measured : Data types whose kernels were measured on it.
    scale_up : Names of the scale-up domains that it comes in.
    tdp_W : Thermal design power, W: its power in bills, racks and energy, and what slows its clock
        in training. Without it bills count 0 W, and the clock is not slowed.
    as_of : When its sources were read.
    source : Where the peak rates are from, and all figures that sources does not name.
    sources : Where other figures are from, by their key.
    price : Price of one NPU; without it bills list the NPU as missing.
    """

    vendor_name: Text
    aliases: list[Text] = Field([])
    read_as: list[Text] = Field([])
    peak_TFLOPps: Annotated[dict[Text, Rate], Field(min_length=1)]
    memory_GB: Rate
    memory_source: Text | None = None
    memory_bandwidth_GBps: Rate | None = None
    n_cores: Count | None = None
    kernels: Text | None = None
    kernels_measured: list[Text] = Field([])
    scale_up: list[Text] = Field([])
    tdp_W: Rate | None = None
    as_of: Text | None = None
    source: Text
    sources: dict[Text, Text] = Field({})
    price: NpuPriceSpec | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What else it is called."""
        return (*self.aliases, *self.read_as)


class ScaleUpSpec(Model):
    """A part that joins NPUs; the innermost dimensions of a fabric are its links.

    Parameters
    ----------
    description : What the part is, such as NVLink 4 and NVSwitch.
    joined_by : How: a switch, direct links from each to each, or rings along the axes of a torus.
    n_npus : Most NPUs of one domain.
    npu_Bps : Bandwidth of one NPU over all its links, one direction, such as 450 GB/s.
    server : Server of the parts catalogue whose price holds it; without one the price book prices
        its links.
    power_w : Power of one domain, W, beside that of the server.
    n_axes : Axes of a torus.
    multiple_of : Number of which the rings of a torus are multiples; others have no link around.
    n_npus_sold : NPUs that are sold together; by default those of a whole domain.
    as_of : When its source was read, such as 2026-11.
    """

    description: Text
    joined_by: Literal["switch", "fully_connected", "torus"]
    n_npus: Annotated[Count, Field(ge=2)]
    npu_Bps: Speed = Field(alias="bandwidth")
    server: Text | None = None
    power_w: Annotated[float, Field(ge=0, le=1e9)] = Field(default=0.0, alias="power_W")
    n_axes: Annotated[int, Field(ge=1, le=6)] = 1
    multiple_of: Count = 1
    n_npus_sold: Count | None = None
    as_of: Text | None = None
    source: SourceText

    @model_validator(mode="after")
    def _axes(self) -> ScaleUpSpec:
        if self.n_axes > 1 and self.joined_by != TORUS:
            raise ValueError(f"got n_axes of a {self.joined_by}, expected it of a torus only")
        return self


class KernelSpec(Model):
    """What kernels of a family of NPUs reach.

    Parameters
    ----------
    constants : By name; others have their typical value.
    as_of : When its source was read, such as 2026-11.
    """

    constants: dict[Text, float]
    as_of: Text | None = None
    source: SourceText

    @model_validator(mode="after")
    def _physical(self) -> KernelSpec:
        for name, value in self.constants.items():
            if name not in RANGES:
                raise ValueError(f"got {name}, expected one of {', '.join(RANGES)}")
            low, high = RANGES[name]
            if not low <= value <= high:
                raise ValueError(f"got {name} {value:g}, expected {low:g} to {high:g}")
        return self


class NpuCatalogueSpec(FileModel):
    """NPUs by name, and the scale-up domains that join them, with their sources.

    Parameters
    ----------
    npus : NPUs by name, such as h100-sxm.
    scale_up : Parts that join NPUs by name, such as nvlink4-8; plans write it under
        fabric.scale_up.
    kernels : What kernels of a family of NPUs reach, by its name.
    """

    kind: Literal["npu_catalogue"]
    source: SourceText
    as_of: AsOf
    npus: Annotated[dict[Text, CatalogueNpuSpec], Field(min_length=1)]
    scale_up: dict[Text, ScaleUpSpec] = Field({})
    kernels: dict[Text, KernelSpec] = Field({})

    @model_validator(mode="after")
    def _families_are_known(self) -> NpuCatalogueSpec:
        for name, npu in self.npus.items():
            if npu.kernels is not None and npu.kernels not in self.kernels:
                known = ", ".join(self.kernels) or "no family at all"
                raise ValueError(f"got kernels {npu.kernels!r} of {name}, expected {known}")
        return self

    @model_validator(mode="after")
    def _names_tell_apart(self) -> NpuCatalogueSpec:
        owners: dict[str, str] = {}
        for name, npu in self.npus.items():
            for one in (name, *npu.names):
                other = owners.setdefault(_plain(one), name)
                if other != name:
                    raise ValueError(f"got {one!r} for {name} and for {other}, expected one NPU")
        return self


BUNDLED_CATALOGUE = "npus"
"""The NPU catalogue that a plan means when it names none."""

_REMARK = re.compile(r"\s*\(.*\)\s*$")
_VENDOR = re.compile(r"^(nvidia|amd|google)[^a-z0-9]*", re.I)


def _plain(name: str) -> str:
    """A name without what makes no difference."""
    said = _VENDOR.sub("", _REMARK.sub("", name).replace("(Ampere)", ""))
    return re.sub("[^a-z0-9]", "", said.casefold())


def npu_named(name: str, npus: Mapping[str, CatalogueNpuSpec]) -> str | None:
    """The NPU's name in a catalogue, however it is written; ``None`` where none has it.

    Examples
    --------
    >>> npus = catalogue().npus
    >>> [npu_named(x, npus) for x in ("A100-80GB", "NVIDIA A100-SXM4-80GB (4x100Gb)", "h100", "x")]
    ['a100-sxm-80gb', 'a100-sxm-80gb', 'h100-sxm', None]
    """
    if name in npus:
        return name
    meant = _plain(name)
    found = (one for one, npu in npus.items() if meant in map(_plain, (one, *npu.names)))
    return next(found, None) if meant else None


def npus_like(name: str, npus: Mapping[str, CatalogueNpuSpec]) -> list[str]:
    """The NPUs of which a name begins with it: those that it can stand for.

    Examples
    --------
    >>> npus_like("h100", catalogue().npus), npus_like("TPU", catalogue().npus)
    (['h100-sxm', 'h100-96gb'], ['tpu-v4', 'tpu-v5e', 'tpu-v5p'])
    """
    meant = _plain(name)
    if not meant:
        return []
    begins = {
        name: (_plain(x).startswith(meant) for x in (name, *npus[name].aliases)) for name in npus
    }
    return [name for name in npus if any(begins[name])]


def canonical_name(name: str, catalogue_name: str | None, beside: Path | None) -> str:
    """The name that a catalogue gives an NPU; the same where it has none."""
    return npu_named(name, catalogue(catalogue_name, beside).npus) or name


def name_notes(names: Iterable[str]) -> tuple[str, ...]:
    """What of the names of NPUs is not read, or could mean another one, for people.

    >>> name_notes(["h100", "h100-sxm"])
    ('NPU h100 is read as h100-sxm, not as h100-96gb',)
    """
    npus, notes = catalogue().npus, []
    for name in dict.fromkeys(names):
        if remark := _REMARK.search(name):
            notes.append(f"NPU {name!r}: {remark.group().strip()} is a remark and not read")
        found = npu_named(name, npus)
        others = [one for one in npus_like(name, npus) if one != found]
        if found and others and _plain(name) in map(_plain, npus[found].read_as):
            bare = _REMARK.sub("", name)
            notes.append(f"NPU {bare} is read as {found}, not as {' or '.join(others)}")
    return tuple(notes)


def catalogue(name: str | None = None, beside: Path | None = None) -> NpuCatalogueSpec:
    """A catalogue, by its name or path; the bundled one where it has none.

    Raises
    ------
    SpecError
        For a file that is none.
    """
    file = bundled.resolve("npu-catalogues", name or BUNDLED_CATALOGUE, beside)
    return _catalogue(file, read_text(file))


@lru_cache(maxsize=16)
def _catalogue(path: Path, text: str) -> NpuCatalogueSpec:
    """What a file holds: kept by its text, so a changed file is read anew."""
    return validated(NpuCatalogueSpec, parse_document(text, str(path)))


def catalogue_npu(
    name: str, catalogue_name: str | None, beside: Path | None, *, path: str
) -> CatalogueNpuSpec:
    """An NPU of a catalogue.

    Parameters
    ----------
    name : the NPU, by any of its names; a remark in brackets after it is not read.
    catalogue_name : path of the catalogue; ``None`` for the bundled one.
    beside : folder that a path is relative to.
    path : dotted path of the NPU's name in the plan, for errors.

    Raises
    ------
    SpecError
        For a name that is not in the catalogue, or a file that is none.

    Examples
    --------
    >>> catalogue_npu("H100-80GB", None, None, path="npu.name").peak_TFLOPps["bf16"]
    989.4
    """
    npus = catalogue(catalogue_name, beside).npus
    found = npu_named(name, npus)
    if found is not None:
        return npus[found].model_copy(deep=True)
    if bundled.is_path(name):
        fix = f"write 'catalogue: {name}' and the name of one of its NPUs"
        raise SpecError(Fault(f"got the path {name!r}", "expected a name", fix, path))
    if len(several := npus_like(name, npus)) > 1:
        fix = f"write {', '.join(several[:-1])} or {several[-1]}"
        raise UnknownName(Fault(f"got {name!r}", f"expected one of {len(several)} NPUs", fix, path))
    stem = Path(catalogue_name or BUNDLED_CATALOGUE).stem
    raise UnknownName(replace(unknown_npu(f"NPU of the catalogue {stem}", name, npus), path=path))


def unknown_npu(kind: str, name: str, npus: Iterable[str]) -> Fault:
    """What is wrong with a name that no NPU has, near to a whole name or to its first part.

    >>> unknown_npu("NPU", "b2000", ["b200-sxm", "gb200"]).fix
    'did you mean b200-sxm?'
    """
    heads = {one: one.split("-")[0] for one in npus}
    close = close_names(name, dict.fromkeys([*heads, *heads.values()]))
    near = [one for one, head in heads.items() if one in close or head in close]
    (fault,) = unknown_name(kind, name, heads).faults
    return replace(fault, fix=f"did you mean {' or '.join(near)}?") if near else fault


def npu_kernels(
    name: str, catalogue_name: str | None = None, beside: Path | None = None, *, path: str = ""
) -> Kernels:
    """Times of the kernels of an NPU of a catalogue (C18); parameters as :func:`catalogue_npu`.

    Raises
    ------
    SpecError
        For an NPU that is not in the catalogue, or whose memory bandwidth is not.

    Examples
    --------
    >>> h100 = npu_kernels("h100-sxm")
    >>> h100.is_measured("bf16"), npu_kernels("mi300x").is_measured("bf16")
    (True, False)
    """
    npu = catalogue_npu(name, catalogue_name, beside, path=path)
    if npu.memory_bandwidth_GBps is None:
        got = f"got {name} without memory_bandwidth_GBps"
        raise SpecError(Fault(got, "expected it: kernels move bytes", "add it", path))
    family = catalogue(catalogue_name, beside).kernels.get(npu.kernels or "")
    return Kernels(
        {dtype: 1e12 * peak for dtype, peak in npu.peak_TFLOPps.items()},
        npu.memory_bandwidth_GBps * BYTES_PER_S_PER_GBPS,
        npu.n_cores or Kernels.n_cores,
        KernelConstants(**family.constants) if family else KernelConstants(),
        frozenset(npu.kernels_measured),
    )


def scale_up_domain(
    name: str, catalogue_name: str | None = None, beside: Path | None = None
) -> ScaleUpDomain:
    """A scale-up domain of a catalogue.

    Raises
    ------
    UnknownName
        For a name that is not in the catalogue.

    Examples
    --------
    >>> domain = scale_up_domain("nvl72")
    >>> domain.n_npus, domain.npu_Bps, domain.server
    (72, 900000000000.0, 'server-nvl72')
    """
    known = catalogue(catalogue_name, beside).scale_up
    if name not in known:
        raise unknown_name("scale-up domain of the NPU catalogue", name, known)
    return ScaleUpDomain(name=name, **core_fields(known[name], ScaleUpDomain))
