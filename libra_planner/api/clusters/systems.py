"""Collectives and kernels on systems that are named, and constants fitted to a user's own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from libra_planner import allowed
from libra_planner.allowed import Flag, Kind, Number, OneOf, Text, Whole
from libra_planner.api.given import path_given, refuse_unknown, takes
from libra_planner.api.shown import Shown
from libra_planner.errors import Fault, SpecError, located
from libra_planner.files import write_files
from libra_planner.inputs import runs
from libra_planner.inputs.kernel_rows import KernelRow, kernel_row
from libra_planner.inputs.measured_runs import Cluster, read_measured_runs
from libra_planner.inputs.training.clusters import nics_of
from libra_planner.plan.npus import catalogue as npu_catalogue
from libra_planner.plan.npus import npu_named
from libra_planner.plan.options import nic_bytes_per_s
from libra_planner.plan.quotes import day
from libra_planner.plan.steps.notes import extrapolated
from libra_planner.plan.systems import Origin, Refits, is_system_file, load_system, system_text
from libra_planner.step.collectives.measured import (
    INFINIBAND,
    PUBLISHED,
    NicsUnknown,
    Ranks,
    extrapolations,
    measured_npu,
    scale_up,
    told_faster_fraction,
)
from libra_planner.units import GBIT_PER_S_BPS, format_bytes, format_time
from libra_planner.views.cells import Block
from libra_planner.views.times.calibration import calibration_blocks, calibration_payload
from libra_planner.views.times.collective import run_blocks, run_payload
from libra_planner.views.times.kernels import kernel_blocks, kernel_payload

_MOST_NAMES = 3
_NO_TAPER = (
    "every NIC has its full speed between nodes, no taper, as in the measured clusters; a plan has "
    "tapers (fidelity: calibrated)"
)
SHAPE = {
    **{name: name for name in ("m", "n", "k", "groups", "batch", "rows", "cols")},
    "heads": "heads_q",
    "kv_heads": "heads_kv",
    "seq_q": "seq_q",
    "seq_kv": "seq_kv",
    "head_dim": "head_dim_qk",
    "head_dim_v": "head_dim_v",
}
"""Columns of a file of kernels, by the options and arguments that give the same."""
OF_SYSTEMS: dict[str, Kind] = {
    "system": Text("an NPU such as 'h100-sxm', or the file of a system"),
    "kind": Text("a collective such as 'all-reduce'"),
    "size_bytes": Number(*allowed.BYTES),
    "nodes": Whole(*allowed.NODES),
    "npus_per_node": Whole(*allowed.NPUS_PER_NODE),
    "nics": Text("a text such as '8x400Gbps'"),
    "interconnect": OneOf(allowed.INTERCONNECTS),
}
"""What arguments of collectives on named systems take."""
_NPU = Text("an NPU such as 'h100-sxm'")
OF_KERNELS: dict[str, Kind] = {
    **dict.fromkeys(SHAPE, Whole(*allowed.KERNEL_COUNT)),
    "op": Text("a kernel such as 'gemm'"),
    "npu": _NPU,
    "dtype": Text("a data type such as 'bf16'"),
    "way": OneOf(allowed.PASSES),
    "causal": Flag(),
    "burst": Flag(),
}
"""What arguments of kernels take."""


@dataclass(frozen=True, repr=False)
class SystemCollective(Shown):
    """A collective on a system that is named, as its library was measured."""

    run: runs.Run
    notes: tuple[str, ...] = ()
    """What is assumed, and in what it is beyond the measured runs."""

    @property
    def time_s(self) -> float:
        """By the law of measured collectives (C20)."""
        return self.run.time_s

    @property
    def time_band_s(self) -> tuple[float, float]:
        """The same at the ends of its error band (C23)."""
        margin = 1 + self.run.error_fraction
        return self.time_s / margin, self.time_s * margin

    def headline(self) -> str:
        """It in one line."""
        run = self.run
        where = f"{run.ranks.n:,} NPUs"
        return f"{run.kind} of {format_bytes(run.size_bytes)} on {where}; {format_time(run.time_s)}"

    def blocks(self) -> Iterator[Block]:
        """What ``collective --system`` prints."""
        yield from run_blocks(self.run, self.notes)

    def to_dict(self) -> dict[str, Any]:
        """What ``collective --system --json`` prints."""
        return run_payload(self.run, self.notes)


def _law(system: str) -> tuple[str, Mapping[str, Any]]:
    """The NPU of a system, and the constants and bands of its file where it has one."""
    if not is_system_file(system):
        return system, {}
    found = load_system(system)
    return found.npu, {"constants": found.constants, "bands": found.bands}


def node_nic_Bps(text: str | None) -> float:
    """The bandwidth of all NICs of a node that an option gives; 0 without it.

    >>> node_nic_Bps("8x400Gbps")
    400000000000.0
    """
    if text is None:
        return 0.0
    number, _, speed = text.replace("X", "x", 1).partition("x")
    if not (number.isascii() and number.isdigit() and speed):
        expected = "expected a number of NICs and their speed"
        raise SpecError.at("--nics", f"got {text!r}", expected, "write e.g. 8x400Gbps")
    with located("--nics"):
        return int(number) * nic_bytes_per_s(speed)


def _usual_nics(npu: str) -> str:
    """NICs of a node, as users write them."""
    name = npu_named(npu, npu_catalogue().npus) or npu
    return f"{scale_up(npu).n_per_node}x{nics_of(name).Bps / GBIT_PER_S_BPS:g}Gbps"


def answered_collective(
    system: str,
    kind: str,
    size_bytes: float,
    *,
    nodes: int = 1,
    npus_per_node: int | None = None,
    nics: str | None = None,
    interconnect: str | None = None,
) -> SystemCollective:
    """What ``collective --system`` answers; :func:`system_collective` says the rest."""
    npu, law = _law(system)
    with located("--system"):
        links = scale_up(npu)
    per_node, network = npus_per_node or links.n_per_node, interconnect or INFINIBAND
    assumed: tuple[str, ...] = ()
    with located("libra-planner collective"):
        try:
            ranks = Ranks(links, nodes, per_node, node_nic_Bps(nics), network)
        except NicsUnknown:
            usual = _usual_nics(npu)
            assumed = (f"assumed NICs of a node: {usual}; --nics says others",)
            ranks = Ranks(links, nodes, per_node, node_nic_Bps(usual), network)
    beyond = list(extrapolations(measured_npu(npu), size_bytes, ranks))
    notes = (*assumed, *([extrapolated(beyond)] if beyond else ()))
    if ranks.n_domains > 1:
        notes = (_NO_TAPER, *notes)
    with located("--kind"):
        named = runs.kind_named(kind)
    run = runs.Run(named, size_bytes, ranks, **law)
    return SystemCollective(run, (*_told_notes(npu, run), *notes))


def _told_notes(npu: str, run: runs.Run) -> Iterator[str]:
    """What is told of such a run beyond the published law, of whose fit it is no part."""
    if run.constants != PUBLISHED:
        return
    more = told_faster_fraction(measured_npu(npu), run.kind, run.ranks, run.size_bytes)
    if more:
        least = format_time(run.time_s / (1 + more))
        yield (
            f"{run.ranks.n} {measured_npu(npu)} in one node were told to reach up to {more:.0%} "
            f"more bandwidth than this law: {least} here, below the range (docs/accuracy.md)"
        )


@takes(OF_SYSTEMS)
def system_collective(
    system: str,
    kind: str,
    size_bytes: float,
    *,
    nodes: int = 1,
    npus_per_node: int | None = None,
    nics: str | None = None,
    interconnect: str | None = None,
) -> SystemCollective:
    """A collective on nodes of an NPU, as NCCL was measured (C20).

    Parameters
    ----------
    system : an NPU such as ``h100-sxm``, or a file of ``calibrate``.
    kind : such as ``all-reduce``; ``send-recv`` too.
    size_bytes : the full vector; of an all-gather the gathered result.
    nodes, npus_per_node : that take part; all NPUs of a node by default.
    nics : of a node, such as ``8x400Gbps``; those that are usual by default.
    interconnect : ``infiniband`` (default) or ``ethernet``.

    Raises
    ------
    SpecError
        For what is unknown, or was never measured.

    Examples
    --------
    >>> system_collective("h100-sxm", "all-reduce", 2**30, nodes=4, nics="8x400Gbps")
    <SystemCollective: all-reduce of 1.074 GB on 32 NPUs; 6.289 ms>
    """
    return answered_collective(
        system,
        kind,
        size_bytes,
        nodes=nodes,
        npus_per_node=npus_per_node,
        nics=nics,
        interconnect=interconnect,
    )


@dataclass(frozen=True, repr=False)
class Kernel(Shown):
    """One kernel on one NPU."""

    row: KernelRow

    @property
    def time_s(self) -> float:
        """Predicted."""
        return self.row.time_s

    def headline(self) -> str:
        """It in one line."""
        row = self.row
        return f"{row.op} in {row.call.dtype} on {row.npu}; {format_time(row.time_s)}"

    def blocks(self) -> Iterator[Block]:
        """What ``kernels`` prints."""
        yield from kernel_blocks(self.row)

    def to_dict(self) -> dict[str, Any]:
        """What ``kernels --json`` prints."""
        return kernel_payload(self.row)


def answered_kernel(
    cells: Mapping[str, str], catalogue: str | None = None, *, burst: bool = False
) -> Kernel:
    """The kernel of cells by their columns."""
    row = kernel_row(cells, catalogue)
    return Kernel(replace(row, call=replace(row.call, is_burst=burst)))


@takes(OF_KERNELS)
def kernel(
    op: str,
    *,
    npu: str,
    dtype: str = "bf16",
    way: str = "fwd",
    causal: bool = False,
    burst: bool = False,
    catalogue: str | None = None,
    **shape: int,
) -> Kernel:
    """The time of a kernel, such as a matrix multiply (C18).

    Parameters
    ----------
    op : ``gemm``, ``attention``, ``rms_norm``, ``gelu`` ...
    npu : such as ``h100-sxm``.
    dtype : ``bf16``, ``fp16``, ``fp8`` ...
    way : ``fwd``, ``bwd`` or ``fwd+bwd``.
    causal : attention in which a token sees only those before it.
    burst : at the clock of a run too short for power to limit it.
    catalogue : of NPUs; the bundled one without it.
    shape : ``m``, ``n``, ``k``, ``groups``, ``batch``, ``heads``, ``kv_heads``, ``seq_q``,
        ``seq_kv``, ``head_dim``, ``head_dim_v``, ``rows``, ``cols``, as the command has them.

    Raises
    ------
    SpecError
        For what is unknown or not modelled.
    TypeError
        For an argument that is none.

    Examples
    --------
    >>> kernel("gemm", npu="h100-sxm", m=4096, n=8192, k=8192)
    <Kernel: gemm in bf16 on h100-sxm; 768.586 us>
    """
    refuse_unknown("kernel", shape, tuple(SHAPE))
    cells = {SHAPE[name]: str(value) for name, value in shape.items()}
    cells |= {"gpu_type": npu, "op": op, "dtype": dtype, "pass": way, "causal": str(causal)}
    try:
        return answered_kernel(cells, catalogue, burst=burst)
    except SpecError as error:
        raise type(error)(*map(_of_argument, error.faults)) from None


def _of_argument(fault: Fault) -> Fault:
    """A fault of a column as one of its argument."""
    columns = {column: name for name, column in SHAPE.items()} | {"gpu_type": "npu", "pass": "way"}
    return replace(fault, path=columns.get(fault.path, fault.path))


@dataclass(frozen=True, repr=False)
class Calibration(Shown):
    """Constants that were fitted to measurements, and what they miss.

    Parameters
    ----------
    origin : of the system.
    found : the fits.
    notes : what was left out.
    path : of the system file that was written.
    kept : where files are now that stood in its place.
    """

    origin: Origin
    found: Refits
    notes: tuple[str, ...]
    path: Path
    kept: tuple[Path, ...] = ()

    table = "errors"

    def headline(self) -> str:
        """It in one line."""
        parts = ", ".join(f"{key} of {part.rows[0].n}" for key, part in self.found.parts.items())
        return f"{self.path}; constants of {self.origin.npu} fitted: {parts} measurements"

    def blocks(self) -> Iterator[Block]:
        """What ``calibrate`` prints."""
        yield from calibration_blocks(self.origin, self.found, self.notes, str(self.path))

    def to_dict(self) -> dict[str, Any]:
        """What ``calibrate --json`` prints."""
        return calibration_payload(self.origin, self.found, self.notes, str(self.path))


def calibrated(
    output: str | Path,
    *,
    nccl: Sequence[str | Path] = (),
    kernels: str | Path | None = None,
    runs: str | Path | None = None,
    npu: str | None = None,
    nics: str | None = None,
    interconnect: str | None = None,
    kind: str | None = None,
    name: str | None = None,
    as_of: str | None = None,
) -> Calibration:
    """What ``calibrate`` fits and writes; :func:`calibrate` says the rest."""
    if not nccl and not kernels and not runs:
        fix = "give --nccl LOG, --kernels CSV or --runs CSV"
        place = "libra-planner calibrate"
        raise SpecError.at(place, "got nothing to fit", "expected measurements", fix)
    logs, path = list(map(str, nccl)), Path(output)
    files = [*logs, *(str(one) for one in (kernels, runs) if one)]
    _refuse_input(path, files)
    origin = Origin(name or path.stem, "", _source(files), _as_of(as_of))
    cluster = _cluster(npu, nics, interconnect, kind, has_logs=bool(logs))
    found, known, notes = _fits(origin, cluster, logs, kernels, runs)
    origin = replace(origin, npu=known or "")
    kept = write_files({path: system_text(origin, found)})
    return Calibration(origin, found, tuple(notes), path, tuple(kept))


def _refuse_input(path: Path, files: Sequence[str]) -> None:
    """Refuse to write the system over measurements."""
    for one in map(Path, files):
        if path.is_file() and one.is_file() and path.samefile(one):
            got, expected = f"got {path}, which holds measurements", "expected another file"
            raise SpecError.at("--output", got, expected, "write e.g. --output system.yaml")


def _fits(
    origin: Origin,
    cluster: Cluster,
    logs: list[str],
    kernels: str | Path | None,
    runs: str | Path | None,
) -> tuple[Refits, str | None, list[str]]:
    """All fits, the NPU, and what was left out; later ones stand on those before."""
    from libra_planner.step.collectives.fitting import calibration
    from libra_planner.studies.kernel_calibration import kernel_refit, read_measured_kernels
    from libra_planner.studies.step_calibration import read_measured_steps, runs_npu, step_refit

    with located("--npu"):
        npu = _npu(cluster.npu) if cluster.npu else None
    found, notes = Refits(), list[str]()
    if logs:
        measured = read_measured_runs(logs, cluster)
        with located("--nccl"):
            found = replace(found, collectives=calibration(measured.runs))
        npu, notes = _npu(measured.npu), [*measured.notes]
    if kernels:
        npu, rows, said = read_measured_kernels(str(kernels), npu)
        with located("--kernels"):
            found = replace(found, kernels=kernel_refit(rows))
        notes += said
    if runs:
        npu, file = runs_npu(str(runs), npu)
        system = found.system(replace(origin, npu=npu))
        steps, said = read_measured_steps(str(runs), file, npu, system)
        with located("--runs"):
            found = replace(found, steps=step_refit(steps))
        notes += said
    return found, npu, notes


def _cluster(
    npu: str | None, nics: str | None, interconnect: str | None, kind: str | None, *, has_logs: bool
) -> Cluster:
    if npu is not None and has_logs:
        with located("--npu"):
            measured_npu(npu)
    with located("--kind"):
        named = runs.kind_named(kind) if kind else ""
    return Cluster(npu, node_nic_Bps(nics), interconnect, named)


def _npu(name: str) -> str:
    """The NPU by its name in the catalogue, where that has it."""
    return npu_named(name, npu_catalogue().npus) or measured_npu(name).lower()


def _source(files: Sequence[str]) -> str:
    """The files, by their names."""
    names = [Path(one).name for one in dict.fromkeys(files)]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def _as_of(text: str | None) -> str:
    if text is None:
        return date.today().isoformat()
    try:
        return day(text)
    except ValueError as error:
        raise SpecError.at("--as-of", str(error)) from None


@takes(OF_SYSTEMS, calibrated)
def calibrate(output: str | Path, **asked: Any) -> Calibration:
    """Fit the model's constants to measurements of a cluster, and write a system file.

    Parameters
    ----------
    output : system file to write; what is there is kept as ``.bak``.
    asked : ``nccl`` (logs of nccl-tests, or CSV files), ``kernels``, ``runs`` (CSV files), ``npu``,
        ``nics``, ``interconnect``, ``kind``, ``name``, ``as_of``, as the command has them.

    Raises
    ------
    SpecError
        For files that are wrong, or too few measurements.
    """
    refuse_unknown("calibrate", asked, tuple(inspect.signature(calibrated).parameters))
    path_given(output, "calibrate", "the system file to write", "a path")
    logs = asked.get("nccl") or ()
    asked |= {"nccl": (logs,) if isinstance(logs, str | Path) else logs}
    return calibrated(output, **asked)
