"""Logs of nccl-tests: what ``all_reduce_perf`` and its like print, in any of their versions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from libra_planner.errors import Fault, Place, got_several, refuse, shown
from libra_planner.files import read_text
from libra_planner.step.collectives.measured import ETHERNET, sent_bytes
from libra_planner.workload.operations import CollectiveKind
from libra_planner.workload.volumes import SEND_RECV

MOST_BYTES = 100_000_000
"""Largest log read: those with NCCL_DEBUG=INFO are long."""

_KINDS = {
    "all_reduce": CollectiveKind.ALL_REDUCE.value,
    "all_gather": CollectiveKind.ALL_GATHER.value,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER.value,
    "alltoall": CollectiveKind.ALL_TO_ALL.value,
    "sendrecv": SEND_RECV,
}
_PREFIX = re.compile(r"\s*(\[\d+(,\d+)?\](<std(out|err)>:)?|\d+:)?\s*")
"""What mpirun and srun put before each line, to say which rank printed it."""
_PROGRAM = re.compile(r"\b([a-z]+(?:_[a-z]+)?)_perf(?:_mpi)?\b")
_START = re.compile(r"#?\s*nThread \d+ nGpus \d+")
_RANK = re.compile(
    r"#?\s*Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.*\S)"
)
_NUMBER = re.compile(r"\d+\.?\d*(e[-+]?\d+)?", re.ASCII)
_TYPE = re.compile(r"[a-z][a-z0-9_]*")
_ETHERNET = re.compile(r"NET/.*(/RoCE\b|OFI|FasTrak|Socket : Using)")
_WRONG = ("#wrong", "error")
"""Names of the column that counts wrong results, new and old."""


@dataclass(frozen=True)
class Row:
    """Out of place: a line of the table."""

    line: int
    size_bytes: float
    time_s: float
    algorithm_GBps: float
    bus_GBps: float


@dataclass
class NcclTest:
    """One test of a log.

    Parameters
    ----------
    place : where it begins.
    kind : of its collective; empty where the log does not say.
    hosts, npus : of every rank.
    network : of the NICs, where NCCL said it.
    """

    place: Place
    kind: str = ""
    hosts: list[str] = field(default_factory=list)
    npus: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    network: str | None = None

    @property
    def nodes(self) -> tuple[int, int]:
        """Servers, and ranks of each."""
        return len(set(self.hosts)), len(self.hosts) // max(1, len(set(self.hosts)))

    def faults(self) -> Iterator[Fault]:
        """What makes it no test of one kind of NPU, equally many on each server."""
        if not self.rows:
            yield Fault("got no row of results", "expected the table of a test that ran to its end")
        if not self.hosts:
            expected = "expected a line '# Rank 0 ...' for each NPU"
            yield Fault("got no ranks", expected, "keep the head of the log")
            return
        if len(set(self.npus)) > 1:
            got = f"got {' and '.join(sorted(set(self.npus)))}"
            yield Fault(got, "expected NPUs of one kind")
        by_host = Counter(self.hosts)
        if len(set(by_host.values())) > 1:
            (most, n_most), (least, n_least) = by_host.most_common()[0], by_host.most_common()[-1]
            got = f"got {n_most} NPUs on {most} and {n_least} on {least}"
            yield Fault(got, "expected equally many on every server")

    def kind_fault(self, kind: str) -> Fault | None:
        """Where its bus bandwidths are those of another kind, or of other ranks."""
        known = [row for row in self.rows if row.algorithm_GBps >= 1]
        if not known or len(self.hosts) < 2:
            return None
        ratio = median(row.bus_GBps / row.algorithm_GBps for row in known)
        expected = sent_bytes(kind, 1.0, len(self.hosts))
        if abs(ratio / expected - 1) <= 0.02:
            return None
        got = f"got bus bandwidths of {ratio:.3g} times the algorithm bandwidth"
        wanted = f"expected {expected:.3g} of {kind} among {len(self.hosts)} ranks"
        return Fault(got, wanted, "give the kind and the whole head of the log")


def read_nccl_log(path: str | Path) -> list[NcclTest]:
    """The tests of a log, in order.

    Raises
    ------
    SpecError
        For rows that are cut off or contradict themselves, wrong results, ranks that each ran a
        test of their own, and collectives that the law does not know.
    """
    reader = _Reader(str(path))
    for line, text in enumerate(read_text(path, most_bytes=MOST_BYTES).splitlines(), 1):
        reader.read(line, text[_PREFIX.match(text).end() :].rstrip())  # type: ignore[union-attr]
    faults = list(reader.faults)
    for test in reader.tests:
        faults += (fault.located(test.place) for fault in test.faults())
    if not reader.tests:
        expected = "expected what nccl-tests print, or CSV with the column gpu_type"
        faults.append(Fault("got no test", expected, place=Place(str(path))))
    refuse(faults)
    return reader.tests


@dataclass
class _Reader:
    """Goes through a log line by line."""

    file: str
    tests: list[NcclTest] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    program: str = ""
    network: str | None = None

    def read(self, line: int, text: str) -> None:
        place, words = Place(self.file, line), text.lstrip("# ").split()
        if "Collective test concluded" in text:
            self.program = ""
        elif found := _PROGRAM.search(text):
            self.program = found[1]
            if self.tests and not self.tests[-1].rows:
                self.tests[-1].kind = self._kind(place)
        elif _ETHERNET.search(text):
            self.network = ETHERNET
        elif _START.match(text):
            self._test(place)
        elif found := _RANK.match(text):
            self._rank(place, *found.groups())
        else:
            self._table(place, words)

    def _table(self, place: Place, words: list[str]) -> None:
        """A line of the table, its head or its end; anything else is none of ours."""
        if words[:2] == ["size", "count"]:
            self._test(place)
            self.columns = words
        elif words[:4] == ["Out", "of", "bounds", "values"]:
            self.columns = []
            if words[-1] == "FAILED":
                self._note(place, "got wrong results", "expected a test that passes")
        elif words and words[0].isdigit() and (self.columns or _is_row(words)):
            self._row(place, words)

    def _test(self, place: Place) -> NcclTest:
        """The test that goes on, or a new one where the last one has its results."""
        if not self.tests or self.tests[-1].rows:
            kind = self._kind(place) if self.program else ""
            self.tests.append(NcclTest(place, kind, network=self.network))
            self.program, self.columns = "", []
        return self.tests[-1]

    def _kind(self, place: Place) -> str:
        if self.program not in _KINDS:
            got, fix = f"got {self.program}_perf", "leave the log out"
            self._note(place, got, f"expected one of {', '.join(_KINDS)}", fix)
        return _KINDS.get(self.program, "")

    def _rank(self, place: Place, rank: str, group: str | None, host: str, npu: str) -> None:
        test = self._test(place)
        if int(group or 0):
            self._note(place, "got several groups", "expected one that all ranks take part in")
        elif int(rank) != len(test.hosts):
            fix = "build nccl-tests with MPI=1, and keep the whole head of the log"
            self._note(place, f"got rank {rank}", f"expected rank {len(test.hosts)}", fix)
        test.hosts.append(host)
        test.npus.append(npu)

    def _row(self, place: Place, words: Sequence[str]) -> None:
        if not self.columns:
            self._note(place, "got a row", "expected the line 'size count type ...' before it")
            return
        names = self.columns
        wrong = next((i for i, name in enumerate(names) if name in _WRONG), len(names) - 1)
        if "time" not in names or len(words) <= wrong:
            got, fix = got_several(len(words), "cell"), "let one rank print at a time"
            self._note(place, got, f"expected {len(names)}: {' '.join(names[: wrong + 1])}", fix)
            return
        cells = [words[names.index(name)] for name in ("size", "time", "algbw", "busbw")]
        if bad := [cell for cell in cells if not _NUMBER.fullmatch(cell)]:
            self._note(place, f"got {shown(bad[0])}", "expected a number")
            return
        size, time_us, algorithm, bus = map(float, cells)
        fault = _row_fault(size, time_us, algorithm, words[wrong])
        if fault:
            self.faults.append(fault.located(place))
        elif place.line is not None:
            self.tests[-1].rows.append(Row(place.line, size, time_us / 1e6, algorithm, bus))

    def _note(self, place: Place, got: str, expected: str, fix: str = "") -> None:
        self.faults.append(Fault(got, expected, fix, place=place))


def _is_row(words: Sequence[str]) -> bool:
    """Whether a line is one of a table whose head is not there."""
    return len(words) > 5 and words[1].isdigit() and bool(_TYPE.fullmatch(words[2]))


def _row_fault(size: float, time_us: float, algorithm_GBps: float, wrong: str) -> Fault | None:
    """A row that is no measurement: no time, wrong results, figures that contradict each other."""
    if not time_us:
        return Fault("got a time of 0", "expected more")
    if _NUMBER.fullmatch(wrong) and float(wrong) >= 1:
        return Fault(f"got {wrong} wrong results", "expected 0: the test failed")
    found_GBps = size / time_us / 1e3
    if abs(found_GBps - algorithm_GBps) > 0.006 + 0.01 * algorithm_GBps:
        got = f"got {algorithm_GBps:g} GB/s for {size:,.0f} B in {time_us:g} us"
        return Fault(got, f"expected {found_GBps:.2f}: size over time")
    return None


def named_kind(name: str) -> str:
    """The kind that the name of a file says; empty where it names none.

    >>> named_kind("all-reduce_n4.log"), named_kind("run7.log")
    ('all-reduce', '')
    """
    plain = re.sub(r"[^a-z]", "", name.lower())
    return next((kind for key, kind in _KINDS.items() if key.replace("_", "") in plain), "")
