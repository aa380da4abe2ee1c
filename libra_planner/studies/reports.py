"""Designs compared for those who buy them: their figures, and the files that tell them."""

from __future__ import annotations

import platform
import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from libra_planner.errors import (
    DataNotFound,
    Fault,
    Place,
    PlannerError,
    SpecError,
    UnknownName,
    closest,
)
from libra_planner.files import write_files
from libra_planner.inputs.parts import Catalogue, InputFile, input_file, load_parts, plan_context
from libra_planner.procurement.bill import NPU, Part
from libra_planner.procurement.candidate import Candidate, Proposal, candidate
from libra_planner.procurement.lines import Book, FabricShop
from libra_planner.procurement.ranking import budget_swings, ranking, swings
from libra_planner.routing.policy import Policy
from libra_planner.studies.designs import GivenDesign, given_design
from libra_planner.studies.places import placed
from libra_planner.views.report.comparison import Comparison, Origin
from libra_planner.views.report.compose import DEFAULT_FORMATS, FORMATS, documents
from libra_planner.workload.operations import Covers

MOST_DESIGNS = 10
LETTERS = "ABCDEFGHIJ"
DEFAULT_TOKENS = 10**12
_MOST_TOKENS = 10**18
_COMPUTED_WITH = ("numpy", "scipy", "cvxpy", "clarabel")


@dataclass(frozen=True)
class Question:
    """What a report is asked to compare; the options of the command have the same names.

    Parameters
    ----------
    designs : as :func:`~libra_planner.studies.designs.given_design` reads them.
    settings : of every plan, ``key=value``.
    baseline : letter or name of the design that the others are compared with.
    tokens : of a training run, as text; ``None`` for :data:`DEFAULT_TOKENS`.
    check : name of the routing policy to check with; ``None`` for no check.
    seeds : routings of the check.
    parts : parts catalogue, a name or a path.
    allow_missing : whether totals may leave out parts that have no price.
    """

    designs: tuple[str, ...]
    settings: tuple[str, ...] = ()
    baseline: str | None = None
    tokens: str | None = None
    check: str | None = None
    seeds: int | None = None
    parts: str = "parts"
    allow_missing: bool = False

    @property
    def command(self) -> str:
        """What makes the same report; where it is written to makes no difference."""
        words = ["libra-planner", "report", *self.designs]
        for setting in self.settings:
            words += ["--set", setting]
        for flag in ("baseline", "tokens", "check", "seeds"):
            if getattr(self, flag) is not None:
                words += [f"--{flag}", str(getattr(self, flag))]
        words += ["--parts", self.parts] if self.parts != "parts" else []
        words += ["--allow-missing"] if self.allow_missing else []
        return shlex.join(words)


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Parameters
    ----------
    comparison : what it says.
    files : that were written.
    kept : what was there under their names, and is now called something else.
    others : files of another report that stand in the folder, untouched.
    """

    comparison: Comparison = field(repr=False)
    files: tuple[Path, ...]
    kept: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()


def report(
    designs: Sequence[str],
    folder: str | Path,
    *,
    formats: str | None = None,
    settings: Sequence[str] = (),
    baseline: str | None = None,
    tokens: str | float | None = None,
    check: str | None = None,
    seeds: int | None = None,
    parts: str = "parts",
    allow_missing: bool = False,
) -> Report:
    """Compare one to ten designs, and write the report of them into a folder.

    Parameters
    ----------
    designs : plans (their optima), ``PLAN@300,100`` in GB/s, ``PLAN@RESULT.json``,
        ``RESULT.json``, or ``DIR:ROW`` of a sweep.
    folder : to write to; it is made where it is not there.
    formats : of html, xlsx, csv, md and pdf, with commas; by default all but pdf.
    settings, baseline, tokens, check, seeds, parts, allow_missing : as :class:`Question` has them.

    Raises
    ------
    PlannerError
        For a design that cannot be read, evaluated or built, or parts without a price.

    Examples
    --------
    >>> import tempfile
    >>> from libra_planner.reading.bundled import example
    >>> plan = str(example("02_performance_per_cost"))
    >>> with tempfile.TemporaryDirectory() as there:
    ...     written = report([plan, f"{plan}@300,100,75,25"], there, formats="md")
    >>> [path.name for path in written.files], written.comparison.ranking.cheapest
    (['report.md'], 0)
    """
    n = len(designs)
    if not 1 <= n <= MOST_DESIGNS:
        got, expected = f"got {n} designs", f"expected one to {MOST_DESIGNS}"
        raise SpecError(Fault(got, expected, "compare fewer", "", Place("libra-planner report")))
    chosen = _formats(formats)
    target = _folder(str(folder))
    text = tokens if tokens is None or isinstance(tokens, str) else f"{tokens:.17g}"
    question = Question(
        tuple(designs), tuple(settings), baseline, text, check, seeds, parts, allow_missing
    )
    comparison = compared(question)
    contents = {target / name: data for name, data in documents(comparison, chosen).items()}
    _make(target)
    kept = tuple(write_files(contents))
    others = {*target.glob("report-*.csv"), *_documents_in(target)} - {*contents}
    return Report(comparison, tuple(contents), kept, tuple(sorted(others)))


def compared(question: Question) -> Comparison:
    """The designs with all their figures.

    Raises
    ------
    PlannerError
        For a design that cannot be read, evaluated or built, or parts without a price.
    """
    n_tokens = _n_tokens(question.tokens)
    policy = _policy(question)
    catalogue = _catalogue(question.parts)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return _of_designs(question, n_tokens, policy, catalogue, Path(scratch))
        except PlannerError as error:
            # A row's plan is gone when its fault is read: the row is named instead.
            plan = re.escape(scratch) + r"/(.+?)-(\d+)\.yaml"
            error.args = (re.sub(plan, r"plan of row \2 of \1", str(error)),)
            raise


def _of_designs(
    question: Question,
    n_tokens: int,
    policy: Policy | None,
    catalogue: Catalogue,
    scratch: Path,
) -> Comparison:
    given = [given_design(text, question.settings, scratch) for text in question.designs]
    baseline = _baseline(question.baseline, given)
    _refuse_tokens_of_parts(question.tokens, given)
    files: dict[InputFile, None] = {}
    found = []
    for letter, design in zip(LETTERS, given, strict=False):
        proposal = _proposal(letter, design, catalogue, files)
        found.append(_candidate(proposal, design, policy, question, n_tokens))
    files[input_file("parts catalogue", question.parts, catalogue.path)] = None
    files[input_file("NPU catalogue", catalogue.npu_catalogue.stem, catalogue.npu_catalogue)] = None
    candidates = tuple(found)
    _refuse_missing(candidates, catalogue, question)
    return Comparison(
        candidates=candidates,
        baseline=baseline,
        ranking=ranking(candidates),
        swings=swings(candidates),
        budgets=budget_swings(candidates),
        n_tokens=n_tokens,
        is_default_tokens=question.tokens is None,
        catalogue_source=catalogue.parts.source,
        catalogue_as_of=catalogue.parts.as_of,
        origin=Origin(
            question.command,
            (
                ("libra-planner", version("libra-planner")),
                ("python", platform.python_version()),
                *((name, version(name)) for name in _COMPUTED_WITH),
            ),
            tuple((file.role, file.name, file.sha256) for file in files),
        ),
    )


def _proposal(
    letter: str,
    design: GivenDesign,
    catalogue: Catalogue,
    files: dict[InputFile, None],
) -> Proposal:
    assumed = catalogue.assumptions
    spares = assumed.npu.spare_fraction
    context = plan_context(
        design.plan, design.settings, npu_spare_fraction=spares, shown=design.shown_plan
    )
    files |= dict.fromkeys(context.files)
    if design.result is not None:
        files[input_file("result", design.result, Path(design.result))] = None
    book = Book(design.problem.prices.parts, context.book_as_of, context.book_source)
    return Proposal(
        letter=letter,
        name=design.name,
        problem=design.problem,
        bandwidth_Bps=design.bandwidth_Bps,
        optimized=design.optimized,
        shop=FabricShop(catalogue.parts, assumed, book),
        npu=context.npu,
    )


def _candidate(
    proposal: Proposal,
    design: GivenDesign,
    policy: Policy | None,
    question: Question,
    n_tokens: int,
) -> Candidate:
    seeds = None if question.seeds is None else tuple(range(question.seeds))
    try:
        return candidate(proposal, n_tokens=n_tokens, policy=policy, seeds=seeds)
    except SpecError as error:
        raise placed(error, design.plan, proposal.problem, vector=design.text) from None


def _refuse_missing(
    candidates: tuple[Candidate, ...], catalogue: Catalogue, question: Question
) -> None:
    """Parts without a price end the command, unless totals without them were asked for."""
    if question.allow_missing:
        return
    found = {part.name: (part, one) for one in candidates for part in one.bill.missing}
    faults = [_missing(part, one, catalogue) for part, one in found.values()]
    if faults:
        raise SpecError(*faults)


def _missing(part: Part, one: Candidate, catalogue: Catalogue) -> Fault:
    place, otherwise = Place(str(catalogue.path)), "or total without it by --allow-missing"
    if part.kind == NPU:
        fix = f"add one to its NPU catalogue, {otherwise}"
        plan = Place(one.proposal.problem.source)
        return Fault(f"got the NPU {part.name} without a price", "expected one", fix, "", plan)
    if part.name not in catalogue.parts.by_name:
        fix = f"add one with its price, {otherwise}"
        return Fault(f"got no {part.name}", "expected one", fix, "parts", place)
    expected = f"expected that of a part in use ({part.kind})"
    fix = f"add it with its confidence, {otherwise}"
    return Fault("got no price", expected, fix, f"parts.{part.name}", place)


def _catalogue(name: str) -> Catalogue:
    try:
        return load_parts(name)
    except SpecError as error:
        raise error.located(Place("--parts")) from None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = f"got {error.strerror!r}"
        fault = Fault(got, "expected a folder to write to", "", "", Place(str(folder)))
        raise DataNotFound(fault) from None


def _formats(text: str | None) -> tuple[str, ...]:
    """The formats that a list names, in its order."""
    if text is None:
        return DEFAULT_FORMATS
    given = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    unknown = [name for name in given if name not in FORMATS]
    if unknown:
        fault = Fault(f"got {unknown[0]!r}", "expected known formats", closest(unknown[0], FORMATS))
        raise UnknownName(fault.located(Place("--formats")))
    return given


def _n_tokens(text: str | None) -> int:
    """Tokens of a run."""
    if text is None:
        return DEFAULT_TOKENS
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= _MOST_TOKENS:
        fix = "write e.g. 15e12"
        fault = Fault(f"got {text!r}", f"expected 1 to {_MOST_TOKENS:g} tokens", fix)
        raise SpecError(fault.located(Place("--tokens")))
    return int(value)


def _refuse_tokens_of_parts(text: str | None, given: list[GivenDesign]) -> None:
    """Refuse a run that is asked for, of a workload that is part of a step (C21).

    Raises
    ------
    SpecError
        With the reason and the fix, once for each workload.
    """
    problems = {one.problem.workload_name: one.problem for one in given}.values()
    faults = [
        Fault(
            f"got {text} for {problem.workload_name}, which is part of a step",
            "expected a whole step, as a run is so many of them",
            f"{problem.step.fix}, or remove --tokens",
            "",
            Place("--tokens"),
        )
        for problem in problems
        if problem.covers is Covers.PART
    ]
    if text is not None and faults:
        raise SpecError(*faults)


def _policy(question: Question) -> Policy | None:
    """The routing policy to check with."""
    if question.check is None and question.seeds is not None:
        fix = "add a policy, such as --check ecmp"
        fault = Fault(f"got {question.seeds} without --check", "expected both", fix)
        raise SpecError(fault.located(Place("--seeds")))
    if question.check is None:
        return None
    try:
        policy = Policy(question.check)
        if not policy.kind.finds_paths:
            raise SpecError(Fault(f"got {policy.name}", "expected a policy that finds paths"))
        return policy
    except SpecError as error:
        raise error.located(Place("--check")) from None


def _baseline(text: str | None, given: list[GivenDesign]) -> int | None:
    """The design that a letter, the argument itself, or the name that it is shown by, means."""
    if text is None:
        return None
    letters = LETTERS[: len(given)]
    texts, names = [design.text for design in given], [design.name for design in given]
    if text in texts:
        return texts.index(text)
    if text.upper() in list(letters):
        return letters.index(text.upper())
    if names.count(text) == 1:
        return names.index(text)
    if text in names:
        which = [letter for letter, name in zip(letters, names, strict=True) if name == text]
        got, fix = f"got {text!r}, the name of {' and '.join(which)}", "name its letter"
        raise SpecError(Fault(got, "expected one design", fix, "", Place("--baseline")))
    known = dict.fromkeys([*letters, *names, *texts])
    fault = Fault(f"got {text!r}", "expected one of the designs", closest(text, list(known)))
    raise UnknownName(fault.located(Place("--baseline")))


def _folder(text: str) -> Path:
    """The folder to write to; what cannot be one is refused before anything is computed."""
    folder = Path(text)
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not text or (there.exists() and not there.is_dir()):
        got = f"got the file {there}" if text else "got no name"
        fault = Fault(got, "expected a folder to write to", "name another one")
        raise SpecError(fault.located(Place("--output")))
    return folder


def _documents_in(folder: Path) -> list[Path]:
    """Reports other than tables that stand in a folder."""
    paths = (folder / f"report.{suffix}" for suffix in FORMATS)
    return [path for path in paths if path.is_file()]
