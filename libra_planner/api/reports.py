"""Reports in Python: designs compared, in the files that tell of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner import allowed
from libra_planner.allowed import Each, Flag, Kind, Number, Text, Whole
from libra_planner.api.designs import OneDesign
from libra_planner.api.given import (
    Settings,
    own_overrides_of,
    path_given,
    save_plan,
    setting_texts,
    source_of,
    takes,
)
from libra_planner.api.shown import Shown
from libra_planner.errors import DataNotFound, SpecError, UnknownName, closest
from libra_planner.files import write_files
from libra_planner.problem import Problem
from libra_planner.procurement.ranking import Comparison
from libra_planner.studies.reports import MOST_DESIGNS, Question, compared
from libra_planner.units import gigabytes_per_s
from libra_planner.views.cells import Block, escape
from libra_planner.views.report.compose import (
    DEFAULT_FORMATS,
    FORMATS,
    decision_lines,
    documents,
    is_own_table,
    report_payload,
)

if TYPE_CHECKING:
    from libra_planner.search.best import Progress as SearchProgress


OF_REPORTS: dict[str, Kind] = {
    "tokens": Number(*allowed.TOKENS, reads_text=True),
    "check": Text("a policy such as 'ecmp'"),
    "baseline": Text("a design's letter or name"),
    "seeds": Whole(*allowed.REPORT_SEEDS),
    "allow_missing": Flag(),
    "formats": Each(Text("formats such as 'html'")),
}
"""What arguments of reports take."""


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """A report that was written, and what it says.

    Parameters
    ----------
    comparison : what it says.
    files : that were written.
    kept : what was there of an earlier report, and is now called ``.bak``.
    others : files that may be of another report and stand in the folder, untouched.
    """

    comparison: Comparison = field(repr=False)
    files: tuple[Path, ...]
    kept: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()

    table = "designs"

    def headline(self) -> str:
        """It in one line."""
        first = self.files[0]
        n = len(self.files) - 1
        return f"{first}{f' and {n} other file' + 's' * (n > 1) if n else ''}"

    def blocks(self) -> Iterator[Block]:
        """What ``report`` prints: the decision, and the files."""
        yield from map(escape, decision_lines(self.comparison, self.files))

    def to_dict(self) -> dict[str, Any]:
        """What ``report --json`` prints."""
        return report_payload(self.comparison, self.files)


@takes(OF_REPORTS)
def report(
    designs: Sequence[str | Path | Problem | OneDesign],
    folder: str | Path,
    *,
    formats: str | Sequence[str] | None = None,
    settings: Settings = (),
    baseline: str | None = None,
    tokens: str | float | None = None,
    check: str | None = None,
    seeds: int | None = None,
    parts: str = "parts",
    allow_missing: bool = False,
    prices: str | Path | None = None,
    progress: SearchProgress | None = None,
) -> Report:
    """Compare one to ten designs, and write the report of them into a folder.

    Parameters
    ----------
    designs : plans (their optima) by path, name or as ``load_plan`` gives them, what ``optimize``
        and ``evaluate`` give (plans with
        settings, or from a dict, are saved in the folder as ``design-1.yaml`` and so on),
        ``PLAN@300,100`` in GB/s, ``RESULT.json`` as ``save`` writes it, ``DIR:ROW`` of a sweep;
        ``Full spine=PLAN`` has a name of its own.
    folder, formats, progress : as :func:`written_report` has them.
    settings, baseline, tokens, check, seeds, parts, allow_missing : as
        :class:`~libra_planner.studies.reports.Question` has them.
    prices : file of quotes over the prices of all designs, in place of their own.

    Raises
    ------
    PlannerError
        For a design that cannot be read, evaluated or built, or parts without a price.

    Examples
    --------
    >>> import tempfile
    >>> designs = ["02_performance_per_cost", "02_performance_per_cost@300,100,75,25"]
    >>> with tempfile.TemporaryDirectory() as there:
    ...     written = report(designs, there, formats="md")
    >>> [path.name for path in written.files], written.comparison.ranking.cheapest
    (['report.md'], 0)
    """
    if isinstance(designs, str | Path | Problem | OneDesign):
        raise TypeError("report: got one design, expected a list; write lp.report([...], folder)")
    path_given(parts, "report", "a parts catalogue")
    if prices is not None:
        path_given(prices, "report", "quotes", "a path")
    plans = {i: plan for i, one in enumerate(designs) if (plan := _plan_of(one)) is not None}
    own = {i: plan for i, plan in plans.items() if _is_own(plan)}
    saved = {i: Path(folder) / f"design-{i + 1}.yaml" for i in own}
    files = {i: str(saved.get(i) or source_of(plan)) for i, plan in plans.items()}
    texts = tuple(_text(one, files.get(i)) for i, one in enumerate(designs))
    n_tokens = tokens if tokens is None or isinstance(tokens, str) else f"{tokens:.17g}"
    quotes = () if prices is None else (f"quotes={json.dumps(str(Path(prices).resolve()))}",)
    own_settings = (*setting_texts(settings), *quotes)
    asked = texts, own_settings, baseline, n_tokens, check, seeds, parts, allow_missing
    for i, path in saved.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        save_plan(own[i], path)
    try:
        return written_report(Question(*asked), folder, formats, progress)
    except BaseException:  # Nothing is left half-written.
        for path in saved.values():
            path.unlink()
        raise


def written_report(
    question: Question,
    folder: str | Path,
    formats: str | Sequence[str] | None = None,
    progress: SearchProgress | None = None,
) -> Report:
    """The report of one to ten designs, written into a folder.

    Parameters
    ----------
    question : which designs, and what is asked of them.
    folder : to write to; it is made where it is not there.
    formats : of html, xlsx, csv, md and pdf, a list or with commas; by default all but pdf.
    progress : is told of searches for strategies that plans leave open.

    Raises
    ------
    PlannerError
        For a design that cannot be read, evaluated or built, or parts without a price.
    """
    n = len(question.designs)
    if not 1 <= n <= MOST_DESIGNS:
        got, expected = f"got {n} designs", f"expected one to {MOST_DESIGNS}"
        raise SpecError.at("libra-planner report", got, expected, "compare fewer")
    chosen = _formats(formats)
    if "pdf" in chosen:  # Said before anything is computed.
        from libra_planner.views.renderers.html import pdf_writer

        pdf_writer()
    target = _folder(str(folder))
    comparison = compared(question, progress)
    contents = {target / name: data for name, data in documents(comparison, chosen).items()}
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = f"got a folder that cannot be made ({error.strerror})"
        expected, fix = "expected a folder to write to", "name another one"
        raise DataNotFound.at(str(target), got, expected, fix) from None
    kept = write_files(contents)
    documents_there = filter(Path.is_file, (target / f"report.{suffix}" for suffix in FORMATS))
    others = {*target.glob("report-*.csv"), *documents_there} - {*contents}
    if "csv" in chosen:  # A folder holds the orders of one report alone.
        moved = {path: copy for path in sorted(others) if (copy := _set_aside(path))}
        kept, others = [*kept, *moved.values()], others - {*moved}
    return Report(comparison, tuple(contents), tuple(kept), tuple(sorted(others)))


def _set_aside(path: Path) -> Path | None:
    """Call a table of an earlier report .bak; ``None`` for what stays.

    That is what may be a user's own: another name, a link, a file that cannot be renamed.
    """
    if not is_own_table(path.name) or path.is_symlink() or not path.is_file():
        return None
    try:
        return path.replace(path.with_name(f"{path.name}.bak"))
    except OSError:
        return None


def _is_own(plan: Problem) -> bool:
    """Whether a plan is no file as it is: from a dict, or with settings."""
    return bool(own_overrides_of(plan)) or not isinstance(source_of(plan), str | Path)


def _plan_of(design: object) -> Problem | None:
    """The plan of a design that is no text."""
    if isinstance(design, OneDesign):
        return design.plan
    return design if isinstance(design, Problem) else None


def _text(design: object, file: str | None) -> str:
    """A design as a report's argument has it, so that the report can say how it was made."""
    if file is None:
        path_given(design, "report", "designs", "a plan, a result, a path or a bundled name")
        return str(design)
    if not isinstance(design, OneDesign) or design.is_optimum:
        return file
    speeds = design.figures.bandwidth_bytes_per_s
    return f"{file}@{','.join(f'{gigabytes_per_s(speed):.17g}' for speed in speeds)}"


def _formats(listed: str | Sequence[str] | None) -> tuple[str, ...]:
    """The formats that a list names, or a text with commas, in its order."""
    if listed is None:
        return DEFAULT_FORMATS
    parts = listed.split(",") if isinstance(listed, str) else listed
    given = tuple(dict.fromkeys(part.strip() for part in parts))
    if not given:
        fix = f"write one or more of {', '.join(FORMATS)}"
        raise SpecError.at("--formats", "got no formats", "expected some", fix)
    for name in given:
        if name not in FORMATS:
            meant = _OTHER_NAMES.get(name.lower(), "")
            fix = f"did you mean {meant}?" if meant else closest(name, FORMATS)
            got = f"got {name!r}"
            raise UnknownName.at("--formats", got, "expected known formats", fix)
    return given


_OTHER_NAMES = {"excel": "xlsx", "xls": "xlsx", "workbook": "xlsx", "markdown": "md"}
"""Formats by what people call them."""


def _folder(text: str) -> Path:
    """The folder to write to; what cannot be one is refused before anything is computed."""
    folder = Path(text)
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not text or (there.exists() and not there.is_dir()):
        got = f"got the file {there}" if text else "got no name"
        raise SpecError.at("--output", got, "expected a folder to write to", "name another one")
    return folder
