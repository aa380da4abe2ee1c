"""Designs compared for those who buy them: their figures, and the files that tell them."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from libra_planner import allowed
from libra_planner.costs.quotes import Quote
from libra_planner.errors import (
    Fault,
    Place,
    PlannerError,
    SpecError,
    UnknownName,
    closest,
    located,
    refuse,
)
from libra_planner.files import near_path
from libra_planner.inputs.parts import (
    BUNDLED_PARTS,
    Catalogue,
    InputFile,
    input_file,
    load_parts,
    plan_context,
)
from libra_planner.plan.quotes import today
from libra_planner.procurement.bill import NPU, Part
from libra_planner.procurement.bought.placements import checked_otherwise
from libra_planner.procurement.bought.refills import PLAN
from libra_planner.procurement.bought.servers import server_with
from libra_planner.procurement.candidate import (
    Candidate,
    Proposal,
    StrategyOnLinks,
    at_same_offers,
    candidate,
)
from libra_planner.procurement.lines import Book, FabricShop
from libra_planner.procurement.ranking import Comparison, Origin, budget_swings, ranking, swings
from libra_planner.routing.policy import Policy
from libra_planner.studies.checks import placed
from libra_planner.studies.designs import GivenDesign, given_design
from libra_planner.studies.ported import ported_design
from libra_planner.workload.operations import Covers

if TYPE_CHECKING:
    from libra_planner.search.best import Progress as SearchProgress

MOST_DESIGNS = 10
N_STRATEGIES = 5
"""Strategies that a report ranks where they are searched."""

LETTERS = "ABCDEFGHIJ"
DEFAULT_TOKENS = 10**12
_MOST_TOKENS = allowed.TOKENS[1]
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
    parts: str = BUNDLED_PARTS
    allow_missing: bool = False

    @property
    def command(self) -> str:
        """What makes the same report; where it is written to makes no difference."""
        words = ["libra-planner", "report", *self.designs]
        for setting in self.settings:
            words += _option(setting)
        for flag in ("baseline", "tokens", "check", "seeds"):
            if getattr(self, flag) is not None:
                words += [f"--{flag}", str(getattr(self, flag))]
        words += self.parts_words
        words += ["--allow-missing"] if self.allow_missing else []
        return shlex.join([*words, "-o", "report"])

    @property
    def parts_words(self) -> list[str]:
        """The option of a catalogue that is not the bundled one."""
        return ["--parts", self.parts] if self.parts != BUNDLED_PARTS else []


def _option(setting: str) -> tuple[str, str]:
    """A setting as the option that says it: files of prices by their own."""
    key, _, value = setting.partition("=")
    if key == "as_of":
        return "--as-of", value
    if key == "quotes":
        with suppress(ValueError):  # YAML says more than JSON does.
            path = str(json.loads(value))
            if os.path.isabs(path):  # Others are relative to their plans.
                return "--prices", near_path(path)
    return "--set", setting


def compared(question: Question, progress: SearchProgress | None = None) -> Comparison:
    """The designs with all their figures.

    ``progress`` is told of searches for strategies that plans leave open.

    Raises
    ------
    PlannerError
        For a design that cannot be read, evaluated or built, or parts without a price.
    """
    n_tokens, policy = _n_tokens(question.tokens), _policy(question)
    with located("--parts"):
        study = _Study(question, n_tokens, policy, load_parts(question.parts), progress)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return study.comparison(Path(scratch))
        except PlannerError as error:
            # A row's plan is gone when its fault is read: the row is named instead.
            plan = re.escape(scratch) + r"/(.+?)-(\d+)\.yaml"
            error.args = (re.sub(plan, r"plan of row \2 of \1", str(error)),)
            raise


@dataclass(frozen=True)
class _Study:
    """A question, and what its texts mean."""

    question: Question
    n_tokens: int
    policy: Policy | None
    catalogue: Catalogue
    progress: SearchProgress | None = None

    def comparison(self, scratch: Path) -> Comparison:
        question, catalogue = self.question, self.catalogue
        settings, parts = question.settings, question.parts
        read = partial(given_design, n_best=N_STRATEGIES, progress=self.progress)
        given = [read(text, settings, scratch, parts) for text in question.designs]
        _refuse_different_quotes(given)
        _refuse_letters(given)
        baseline = _baseline(question.baseline, given)
        _refuse_tokens_of_parts(question.tokens, given)
        _refuse_few_tokens(question.tokens, self.n_tokens, given)
        files: dict[InputFile, None] = {}
        pairs = zip(LETTERS, given, strict=False)
        designs = tuple(self._candidate(letter, design, files) for letter, design in pairs)
        tell = self.progress and partial(self.progress, "designs are checked at another placement")
        candidates = checked_otherwise(at_same_offers(designs), tell)
        npus = catalogue.npu_catalogue
        files[input_file("parts catalogue", question.parts, catalogue.path)] = None
        files |= {input_file("parts catalogue, base", x.stem, x): None for x in catalogue.bases}
        files[input_file("NPU catalogue", npus.stem, npus)] = None
        if not question.allow_missing:  # Else totals without them were asked for.
            missing = {part.name: (part, one) for one in candidates for part in one.bill.missing}
            refuse(self._missing(part, one) for part, one in missing.values())
        versions = {"libra-planner": version("libra-planner"), "python": platform.python_version()}
        versions |= {name: version(name) for name in _COMPUTED_WITH}
        hashes = tuple((file.role, file.name, file.sha256) for file in files)
        return Comparison(
            candidates=candidates,
            baseline=baseline,
            ranking=ranking(candidates),
            swings=swings(candidates),
            budgets=budget_swings(candidates),
            is_default_tokens=question.tokens is None,
            origin=Origin(
                question.command, tuple(versions.items()), hashes, today(), question.parts
            ),
        )

    def _candidate(
        self, letter: str, design: GivenDesign, files: dict[InputFile, None]
    ) -> Candidate:
        """A design with its figures; what it rests on is put among the files."""
        design, on_links = self._ported(design)
        assumed, problem = self.catalogue.assumptions, design.problem
        context = plan_context(
            design.plan,
            design.settings,
            npu_spare_fraction=assumed.npu.spare_fraction,
            shown=design.shown_plan,
        )
        files |= dict.fromkeys(context.files)
        if design.result is not None:
            files[input_file("result", design.result, Path(design.result))] = None
        parts = self.catalogue.parts
        server = server_with(problem.scale_up, parts, assumed.server)
        book = Book(problem.prices.parts, context.book_as_of, context.book_source)
        proposal = Proposal(
            letter=letter,
            name=design.name,
            problem=problem,
            bandwidth_Bps=design.bandwidth_Bps,
            optimized=design.optimized,
            shop=FabricShop(parts, replace(assumed, server=server), book, problem.prices.quotes),
            npu=context.npu,
            found=design.found,
            source=design.source,
            plan=near_path(design.shown_plan) if design.is_own_plan else PLAN,
            options=self._options(design),
            on_links=on_links,
            swept_check=design.swept_check,
        )
        with placed(design.plan, problem, vector=design.text):
            return candidate(proposal, n_tokens=self.n_tokens, policy=self.policy, seeds=self.seeds)

    def _options(self, design: GivenDesign) -> str:
        """What optimizes its plan on links as this question checks them."""
        question, opened = self.question, design.opened
        settings = design.settings if opened is None else opened.settings
        words = [word for setting in settings for word in _option(setting)]
        words += question.parts_words
        words += ["--routing", question.check] if question.check else []
        words += ["--seeds", str(question.seeds)] if question.seeds is not None else []
        return shlex.join(words)

    def _ported(self, design: GivenDesign) -> tuple[GivenDesign, StrategyOnLinks | None]:
        """A design with the strategy that is the best on the ports of its bill, if it is open."""
        with placed(design.plan, design.problem, vector=design.text):
            return ported_design(
                design,
                self.catalogue.parts,
                policy=self.policy,
                seeds=self.seeds,
                n_best=N_STRATEGIES,
                progress=self.progress,
            )

    @property
    def seeds(self) -> tuple[int, ...] | None:
        """Of the check."""
        return None if self.question.seeds is None else tuple(range(self.question.seeds))

    def _missing(self, part: Part, one: Candidate) -> Fault:
        """What is wrong with a part that has no price."""
        place, otherwise = str(self.catalogue.path), "or total without it by --allow-missing"
        if part.kind == NPU:
            got, fix = f"got the NPU {part.name} without a price", "add one to its NPU catalogue"
            expected, path, place = "expected one", "", one.proposal.problem.text.source
        elif part.name not in self.catalogue.parts.by_name:
            got, fix = f"got no {part.name}", "add one with its price"
            expected, path = "expected one", "parts"
        else:
            got, fix = "got no price", "add it with its confidence"
            expected, path = f"expected that of a part in use ({part.kind})", f"parts.{part.name}"
        return Fault(got, expected, f"{fix}, {otherwise}", path, Place(place))


def _n_tokens(text: str | None) -> int:
    """Tokens of a run."""
    if text is None:
        return DEFAULT_TOKENS
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= _MOST_TOKENS:
        expected = f"expected 1 to {_MOST_TOKENS:g} tokens"
        raise SpecError.at("--tokens", f"got {text!r}", expected, "write e.g. 15e12")
    return int(value)


def _refuse_tokens_of_parts(text: str | None, given: list[GivenDesign]) -> None:
    """Refuse a run that is asked for, of a workload that is part of a step (C21).

    Raises
    ------
    SpecError
        With the reason and the fix, once for each workload.
    """
    if text is None:
        return
    problems = {one.problem.workload_name: one.problem for one in given}
    expected = "expected a whole step, as a run is so many of them"
    with located("--tokens"):
        refuse(
            Fault(
                f"got {text} for {name}, which is part of a step",
                expected,
                f"{problem.step.fix}, or remove --tokens",
            )
            for name, problem in problems.items()
            if problem.step.covers is Covers.PART
        )


def _refuse_few_tokens(text: str | None, n_tokens: int, given: list[GivenDesign]) -> None:
    """Refuse a run that is asked for of fewer tokens than a step: mostly a unit was left out.

    Raises
    ------
    SpecError
        With the tokens of a step.
    """
    steps = [one.problem.step.tokens_per_step or 0 for one in given]
    if text is None or n_tokens >= max(steps):
        return
    got = f"got {text}, fewer tokens than one step has"
    trillions = float(text)
    expected = f"expected {max(steps):,} or more"
    fix = f"write {trillions:g}e12 for {trillions:g} trillion" if trillions < _MOST_MEANT else ""
    raise SpecError.at("--tokens", got, expected, fix or "write e.g. 15e12")


_MOST_MEANT = 1000
"""Trillions of tokens that somebody may have meant."""


def _refuse_different_quotes(given: list[GivenDesign]) -> None:
    """Refuse plans of different quotes: a part has one price in a comparison."""
    files: dict[tuple[Quote, ...], tuple[str, str]] = {}
    for one in given:
        quotes = one.problem.prices.quotes
        files.setdefault(quotes, (one.name, quotes[0].file if quotes else "none"))
    if len(files) > 1:
        named = ", ".join(f"{file} of {name}" for name, file in files.values())
        fix = (
            "give one file to all by --prices (of several sellers of a part the cheapest counts), "
            "or write a report of each"
        )
        raise SpecError.at("--prices", f"got different quotes: {named}", "expected one file", fix)


def _refuse_letters(given: list[GivenDesign]) -> None:
    """Refuse the letter of one design as the name of another, and a name given twice."""
    letters = LETTERS[: len(given)]
    expected, fix = "expected another name than a letter of the designs", "choose another one"
    pairs = list(zip(letters, given, strict=True))
    faults = [
        Fault(f"got the name {one.name!r} of design {letter}", expected, fix, "", Place(one.text))
        for letter, one in pairs
        if one.name != one.source and one.name.upper() in {*letters} - {letter}
    ]
    first: dict[str, tuple[str, GivenDesign]] = {}
    for letter, one in pairs:
        before, other = first.setdefault(one.name.casefold(), (letter, one))
        if other is not one and {one.name, other.name} - {one.source, other.source}:
            got = f"got the name {one.name!r} of designs {before} and {letter}"
            faults.append(Fault(got, "expected another one", fix, "", Place(one.text)))
    refuse(faults)


def _policy(question: Question) -> Policy | None:
    """The routing policy to check with."""
    if question.check is None and question.seeds is not None:
        got, fix = f"got {question.seeds} without --check", "add a policy, such as --check ecmp"
        raise SpecError.at("--seeds", got, "expected both", fix)
    if question.check is None:
        return None
    with located("--check"):
        policy = Policy(question.check)
        if not policy.kind.finds_paths:
            raise SpecError(Fault(f"got {policy.name}", "expected a policy that finds paths"))
        return policy


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
        raise SpecError.at("--baseline", got, "expected one design", fix)
    fix = closest(text, dict.fromkeys([*letters, *names, *texts]))
    raise UnknownName.at("--baseline", f"got {text!r}", "expected one of the designs", fix)
