"""Measured collectives of a user's cluster: logs of nccl-tests, and CSV files with times (C20)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from libra_planner.errors import Fault, Place, SpecError, located, refuse
from libra_planner.files import read_text
from libra_planner.inputs.nccl_tests import MOST_BYTES, NcclTest, named_kind, read_nccl_log
from libra_planner.inputs.runs import Run, cell_number, is_run_file, read_run_file
from libra_planner.step.collectives.fitting import MeasuredRun
from libra_planner.step.collectives.measured import (
    INFINIBAND,
    SIZES,
    NicsUnknown,
    Ranks,
    measured_npu,
    scale_up,
)
from libra_planner.workload.volumes import SEND_RECV

TIME = "time_s"


@dataclass(frozen=True)
class Cluster:
    """What a user says of a cluster beside its logs.

    Parameters
    ----------
    npu : whose runs count; ``None`` for the only one that there is.
    node_nic_Bps : of all NICs of a server; 0 where nobody says.
    network : ``None`` for what the files say, else InfiniBand.
    kind : of logs that do not name it.
    """

    npu: str | None = None
    node_nic_Bps: float = 0.0
    network: str | None = None
    kind: str = ""


@dataclass(frozen=True)
class MeasuredRuns:
    """What files hold.

    Parameters
    ----------
    npu : of all runs, as the user or the files write it.
    notes : what was left out.
    """

    npu: str
    runs: tuple[MeasuredRun, ...] = field(repr=False)
    notes: tuple[str, ...] = ()


def read_measured_runs(paths: Sequence[str], cluster: Cluster) -> MeasuredRuns:
    """Runs of all files, each a log of nccl-tests or a CSV file with ``gpu_type`` and ``time_s``.

    Raises
    ------
    SpecError
        With the faults of all files: what is no measurement, several NPUs, unknown NICs.
    """
    faults, parts = list[Fault](), list[MeasuredRuns]()
    for path in dict.fromkeys(paths):
        try:
            parts.append(_file_runs(path, cluster))
        except SpecError as error:
            faults += error.faults
    refuse(faults)
    npus = dict.fromkeys(measured_npu(part.npu) for part in parts)
    if len(npus) > 1:
        got, fix = f"got {' and '.join(npus)}", f"write e.g. --npu {next(iter(npus))}"
        raise SpecError.at("--nccl", got, "expected runs of one NPU", fix)
    runs = tuple(run for part in parts for run in part.runs)
    kept = tuple(run for run in runs if SIZES[0] <= run.size_bytes <= SIZES[1])
    notes = [note for part in parts for note in part.notes]
    if len(kept) < len(runs):
        notes.append(
            f"left out (below 1 KiB or over 16 GiB): {len(runs) - len(kept):,} of the runs"
        )
    return MeasuredRuns(cluster.npu or parts[0].npu, kept, tuple(notes))


def _file_runs(path: str, cluster: Cluster) -> MeasuredRuns:
    if _is_csv(path):
        return _csv_runs(path, cluster)
    found, faults = list[MeasuredRun](), list[Fault]()
    tests = read_nccl_log(path)
    for i, test in enumerate(tests):
        try:
            with located(test.place):
                found += _test_runs(test, f"{path}#{i}", cluster)
        except SpecError as error:
            faults += error.faults
    refuse(faults)
    return MeasuredRuns(tests[0].npus[0], tuple(found))


def _is_csv(path: str) -> bool:
    """Whether a file is CSV by its name, or by the column ``gpu_type`` in its first line."""
    if Path(path).suffix.lower() == ".csv":
        return True
    return "gpu_type" in read_text(path, most_bytes=MOST_BYTES).partition("\n")[0]


def _test_runs(test: NcclTest, curve: str, cluster: Cluster) -> Iterator[MeasuredRun]:
    if cluster.npu is not None and measured_npu(test.npus[0]) != measured_npu(cluster.npu):
        raise SpecError(Fault(f"got {test.npus[0]}", f"expected {cluster.npu}, as --npu says"))
    kind = test.kind or cluster.kind or named_kind(Path(test.place.file).name)
    if not kind:
        expected = "expected all_reduce_perf or the like in the log or its name"
        raise SpecError(Fault("got no kind of collective", expected, "write --kind all-reduce"))
    if cluster.kind not in ("", kind):
        raise SpecError(Fault(f"got a log of {kind}", f"expected {cluster.kind}, as --kind says"))
    if fault := test.kind_fault(kind):
        raise SpecError(fault)
    network = cluster.network or test.network or INFINIBAND
    ranks = Ranks(scale_up(test.npus[0]), *test.nodes, cluster.node_nic_Bps, network)
    if kind == SEND_RECV and ranks.n_domains > 1:
        got, expected = "got sendrecv_perf on several domains", "expected all ranks to send across"
        raise SpecError(Fault(got, f"{expected}; there one of each does", "leave it out"))
    for row in test.rows:
        yield MeasuredRun(kind, row.size_bytes, ranks, row.time_s, curve)


def _csv_runs(path: str, cluster: Cluster) -> MeasuredRuns:
    """Rows of the NPU that is meant; those whose NICs nobody knows are left out, and said."""
    if not is_run_file(path):
        raise SpecError.at(path, "got no column gpu_type", "expected measured collectives")
    file = read_run_file(path, cluster.node_nic_Bps)
    if TIME not in file.columns:
        raise SpecError.at(path, f"got no column {TIME}", "expected the measured times in s")
    found, faults = list[MeasuredRun](), list[Fault]()
    no_nics, npus, n_others = list[Place](), dict[str, str](), 0
    for at, row, asked in zip(file.lines, file.rows, file.runs, strict=True):
        cells, place = dict(zip(file.columns, row, strict=True)), Place(path, at)
        try:
            npu = _npu(cells["gpu_type"], cluster)
            if npu is None:
                n_others += 1
                continue
            found.append(_csv_run(cells, asked, cluster))
            npus[npu] = cells["gpu_type"]
        except NicsUnknown:
            no_nics.append(place)
        except SpecError as error:
            faults += error.located(place).faults
    refuse(faults)
    if len(npus) != 1:
        got, fix = f"got {', '.join(npus) or 'no run'}", "write e.g. --npu h100-sxm"
        raise SpecError.at(path, got, "expected runs of one NPU, with their NICs", fix)
    notes = [f"left out: {n_others:,} rows of other NPUs in {path}"] * bool(n_others)
    if no_nics:
        what = f"left out: {len(no_nics):,} rows of several domains without NICs"
        notes.append(f"{what} (the first at {no_nics[0]}); --nics 8x400Gbps gives them")
    return MeasuredRuns(next(iter(npus.values())), tuple(found), tuple(notes))


def _csv_run(cells: Mapping[str, str], asked: Run | SpecError, cluster: Cluster) -> MeasuredRun:
    if isinstance(asked, SpecError):
        raise asked
    time_s, ranks = cell_number(cells, TIME), asked.ranks
    if cluster.network is not None:
        ranks = replace(ranks, network=cluster.network)
    curve = cells.get("curve_id") or f"{asked.kind} among {ranks.n}"
    return MeasuredRun(asked.kind, asked.size_bytes, ranks, time_s, curve)


def _npu(name: str, cluster: Cluster) -> str | None:
    """The measured NPU of a row; ``None`` where it is another one than the user means."""
    if cluster.npu is None:
        return measured_npu(name)
    try:
        found = measured_npu(name)
    except SpecError:
        return None
    return found if found == measured_npu(cluster.npu) else None
