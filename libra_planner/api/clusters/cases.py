"""CSV files of training runs, kernels and collectives: every row with its answer."""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from libra_planner import allowed
from libra_planner.allowed import OneOf
from libra_planner.api.given import path_given, pythonic, takes
from libra_planner.api.shown import Shown
from libra_planner.errors import SpecError
from libra_planner.views.cells import Block, escape, table

if TYPE_CHECKING:
    import pandas as pd

    from libra_planner.inputs.training.memory import RunMemory
    from libra_planner.inputs.training.planned import PlannedRun
    from libra_planner.inputs.training.rows import TrainingRun
    from libra_planner.plan.systems import System
    from libra_planner.workload.transformer import AttentionFlops

_MOST_SHOWN = 5


@dataclass(frozen=True, repr=False)
class Cases(Shown):
    """The rows of a CSV file, each with its answer, or why there is none.

    Parameters
    ----------
    columns, rows : those of the file, and what was added; texts, as the command prints them.
    found : what answers every row.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    found: tuple[Any, ...] = field(repr=False)

    table = "cases"
    what: ClassVar[str] = "rows"

    @abstractmethod
    def payload(self, one: Any) -> dict[str, Any]:
        """An answer as ``--json`` has it."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_without(self) -> int:
        """Rows without an answer."""
        return sum(isinstance(one, SpecError) for one in self.found)

    def headline(self) -> str:
        """It in one line."""
        without = f"; {self.n_without:,} without an answer" if self.n_without else ""
        return f"{len(self):,} {self.what}{without}"

    def blocks(self) -> Iterator[Block]:
        """The first rows."""
        yield self.headline()
        rows = [[escape(text) for text in row] for row in self.rows[:_MOST_SHOWN]]
        yield table("", "First rows", self.columns, rows, left=self.columns)

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        cases = [
            {"message": str(one)} if isinstance(one, SpecError) else self.payload(one)
            for one in self.found
        ]
        return {"cases": cases}

    def csv(self) -> str:
        """The file with what was added, as the command prints it."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows((self.columns, *self.rows))
        return text.getvalue()

    def to_frame(self, key: str | None = None) -> pd.DataFrame:
        """The file with what was added as a pandas frame; with ``key`` as ``to_dict`` has it."""
        if key is not None:
            return super().to_frame(key)
        import pandas as pd

        return pd.read_csv(io.StringIO(self.csv()))


@dataclass(frozen=True, repr=False)
class RunCases(Cases):
    """Training runs with their predicted steps."""

    attention_flops: AttentionFlops = "full"

    what = "runs"

    def payload(self, one: Any) -> dict[str, Any]:
        """What ``train --json`` prints of it."""
        from libra_planner.views.times.training import training_payload

        return training_payload(one, self.attention_flops)


@dataclass(frozen=True, repr=False)
class KernelCases(Cases):
    """Kernels with their predicted times."""

    what = "kernels"

    def payload(self, one: Any) -> dict[str, Any]:
        """What ``kernels --json`` prints of it."""
        from libra_planner.views.times.kernels import kernel_payload

        return kernel_payload(one)


@dataclass(frozen=True, repr=False)
class CollectiveCases(Cases):
    """Collectives on named systems with their times."""

    what = "collectives"

    def payload(self, one: Any) -> dict[str, Any]:
        """What ``collective --system --json`` prints of it."""
        from libra_planner.views.times.collective import run_payload

        return run_payload(one)


def answered_runs(
    path: str | Path, system: System | None = None, attention_flops: AttentionFlops = "full"
) -> RunCases:
    """What ``train --csv`` adds to a table of runs."""
    from libra_planner.inputs.training.rows import ADDED, read_training_file
    from libra_planner.views.times.training import run_cells

    file = read_training_file(path)
    found = tuple(_planned(run, system) for run in file.runs)
    cells = [run_cells(one, _memory(run, one)) for run, one in zip(file.runs, found, strict=True)]
    rows = tuple((*row, *more) for row, more in zip(file.rows, cells, strict=True))
    return RunCases((*file.columns, *ADDED), rows, found, attention_flops)


def _planned(run: TrainingRun | SpecError, system: System | None) -> PlannedRun | SpecError:
    from libra_planner.inputs.training.planned import planned_run

    if isinstance(run, SpecError):
        return run
    try:
        found = planned_run(run, system=system)
        _ = found.step_time_s
    except SpecError as error:
        return error
    return found


def _memory(run: TrainingRun | SpecError, found: PlannedRun | SpecError) -> RunMemory | None:
    """Memory of a run that has no time, where its source says enough for that."""
    from libra_planner.inputs.training.memory import run_memory

    if isinstance(run, SpecError) or not isinstance(found, SpecError):
        return None
    try:
        return run_memory(run)
    except SpecError:
        return None


def answered_kernels(path: str | Path, catalogue: str | None = None) -> KernelCases:
    """What ``kernels --csv`` adds to a table of kernels."""
    from libra_planner.inputs.kernel_rows import read_kernel_file

    file = read_kernel_file(path, catalogue)
    rows = tuple((*row, *told) for row, told in zip(file.rows, file.answers(), strict=True))
    return KernelCases((*file.columns, "predicted_time_s", "message"), rows, file.kernels)


def answered_systems(path: str | Path) -> CollectiveCases:
    """What ``collective --csv`` adds to a table of collectives on named systems."""
    from libra_planner.inputs.runs import read_run_file

    file = read_run_file(path)
    added = "predicted_time_s" if "time_s" in file.columns else "time_s"
    rows = tuple((*row, *told) for row, told in zip(file.rows, file.answers(), strict=True))
    return CollectiveCases((*file.columns, added, "message"), rows, file.runs)


@takes({"attention_flops": OneOf(allowed.ATTENTION_FLOPS)})
def train_table(
    path: str | Path, *, system: str | None = None, attention_flops: AttentionFlops = "full"
) -> Cases:
    """A CSV file of training runs with predicted times, throughput, memory and messages.

    Parameters
    ----------
    path : the file; its columns are those of ``train --csv``.
    system : a file of ``calibrate``.
    attention_flops : ``full`` or ``causal`` (C18).

    Raises
    ------
    SpecError
        For a file without the columns that tell a run. A row without an answer has a message.
    """
    from libra_planner.plan.systems import load_system

    path_given(path, "train_table", "a CSV file", "a path")
    return answered_runs(path, None if system is None else load_system(system), attention_flops)


@pythonic
def kernel_table(path: str | Path, *, catalogue: str | None = None) -> Cases:
    """A CSV file of kernels with predicted times and messages.

    Parameters
    ----------
    path : the file; its columns are those of ``kernels --csv``.
    catalogue : of NPUs; the bundled one without it.

    Raises
    ------
    SpecError
        For a file without the columns that tell a kernel. A row without an answer has a message.
    """
    path_given(path, "kernel_table", "a CSV file", "a path")
    return answered_kernels(path, catalogue)


@pythonic
def collective_table(path: str | Path) -> Cases:
    """A CSV file of collectives on named systems with times and messages.

    Parameters
    ----------
    path : the file; its columns are those of ``collective --csv`` with ``gpu_type``.

    Raises
    ------
    SpecError
        For a file without the columns that tell a collective. A row without an answer has a
        message.
    """
    path_given(path, "collective_table", "a CSV file", "a path")
    return answered_systems(path)
