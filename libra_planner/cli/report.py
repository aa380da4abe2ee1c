"""``libra-planner report``: designs compared for those who buy them."""

from __future__ import annotations

import argparse
import platform
import re
import shlex
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from libra_planner.cli import report_options as values
from libra_planner.cli.designs import GivenDesign, given_design
from libra_planner.cli.report_options import LETTERS
from libra_planner.cli.routing import placed
from libra_planner.cli.streams import print_json
from libra_planner.errors import DataNotFound, Fault, Place, PlannerError, SpecError
from libra_planner.files import write_files
from libra_planner.inputs.context import InputFile, input_file, plan_context
from libra_planner.inputs.parts import Catalogue, load_parts
from libra_planner.plain_text import visible
from libra_planner.procurement.candidate import Candidate, Proposal, candidate
from libra_planner.procurement.lines import Book, FabricShop
from libra_planner.procurement.parts import NPU, Part
from libra_planner.procurement.ranking import budget_swings, ranking, swings
from libra_planner.routing.policy import Policy
from libra_planner.views.cells import PART_OF_A_STEP
from libra_planner.views.report.comparison import Comparison, Origin
from libra_planner.views.report.compose import documents
from libra_planner.views.report.decision import decision_section
from libra_planner.views.spread import figures

MOST_DESIGNS = 10

_COMPUTED_WITH = ("numpy", "scipy", "cvxpy", "clarabel")


def answer(options: argparse.Namespace) -> None:
    """Write the files that the options ask for, and print what the report decides."""
    n = len(options.designs)
    if n > MOST_DESIGNS:
        got, expected = f"got {n} designs", f"expected one to {MOST_DESIGNS}"
        raise SpecError(Fault(got, expected, "compare fewer", "", Place("libra-planner report")))
    formats = values.formats(options.formats)
    folder = values.folder(options.output)
    comparison = compared(options)
    contents = {folder / name: data for name, data in documents(comparison, formats).items()}
    _make(folder)
    for path in write_files(contents):
        print(visible(f"Kept what was there as {path}."), file=sys.stderr)
    for path in sorted({*folder.glob("report-*.csv"), *values.documents_in(folder)} - {*contents}):
        print(visible(f"Left as it was, of another report: {path}."), file=sys.stderr)
    if options.json:
        print_json(_payload(comparison, list(contents)))
    else:
        _print(comparison, list(contents))


def compared(options: argparse.Namespace) -> Comparison:
    """The designs with all their figures.

    Raises
    ------
    PlannerError
        For a design that cannot be read, evaluated or built, or parts without a price.
    """
    n_tokens = values.n_tokens(options.tokens)
    policy = values.policy(options)
    catalogue = _catalogue(options.parts)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return _of_designs(options, n_tokens, policy, catalogue, Path(scratch))
        except PlannerError as error:
            # A row's plan is gone when its fault is read: the row is named instead.
            plan = re.escape(scratch) + r"/(.+?)-(\d+)\.yaml"
            error.args = (re.sub(plan, r"plan of row \2 of \1", str(error)),)
            raise


def _of_designs(
    options: argparse.Namespace,
    n_tokens: int,
    policy: Policy | None,
    catalogue: Catalogue,
    scratch: Path,
) -> Comparison:
    given = [given_design(text, options.settings, scratch) for text in options.designs]
    baseline = values.baseline(options.baseline, given)
    values.refuse_tokens_of_parts(options.tokens, given)
    files: dict[InputFile, None] = {}
    found = []
    for letter, design in zip(LETTERS, given, strict=False):
        proposal = _proposal(letter, design, catalogue, files)
        found.append(_candidate(proposal, design, policy, options, n_tokens))
    files[input_file("parts catalogue", options.parts, catalogue.path)] = None
    files[input_file("NPU catalogue", catalogue.npu_catalogue.stem, catalogue.npu_catalogue)] = None
    candidates = tuple(found)
    _refuse_missing(candidates, catalogue, options)
    return Comparison(
        candidates=candidates,
        baseline=baseline,
        ranking=ranking(candidates),
        swings=swings(candidates),
        budgets=budget_swings(candidates, n_tokens),
        n_tokens=n_tokens,
        is_default_tokens=options.tokens is None,
        catalogue_source=catalogue.parts.source,
        catalogue_as_of=catalogue.parts.as_of,
        origin=Origin(
            _command(options),
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
    options: argparse.Namespace,
    n_tokens: int,
) -> Candidate:
    seeds = None if options.seeds is None else tuple(range(options.seeds))
    try:
        return candidate(proposal, n_tokens=n_tokens, policy=policy, seeds=seeds)
    except SpecError as error:
        raise placed(error, design.plan, proposal.problem, vector=design.text) from None


def _refuse_missing(
    candidates: tuple[Candidate, ...], catalogue: Catalogue, options: argparse.Namespace
) -> None:
    """Parts without a price end the command, unless totals without them were asked for."""
    if options.allow_missing:
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


def _command(options: argparse.Namespace) -> str:
    """What makes the same report; where it is written to makes no difference."""
    words = ["libra-planner", "report", *options.designs]
    for setting in options.settings:
        words += ["--set", setting]
    for flag in ("baseline", "tokens", "check"):
        if getattr(options, flag) is not None:
            words += [f"--{flag}", getattr(options, flag)]
    if options.seeds is not None:
        words += ["--seeds", str(options.seeds)]
    words += ["--parts", options.parts] if options.parts != "parts" else []
    words += ["--allow-missing"] if options.allow_missing else []
    return shlex.join(words)


def _payload(comparison: Comparison, paths: list[Path]) -> dict[str, Any]:
    ranks, letters = comparison.ranking, comparison.letters

    def letter(index: int | None) -> str | None:
        return None if index is None else letters[index]

    return {
        "files": [str(path) for path in paths],
        "cheapest": letter(ranks.cheapest),
        "fastest": letter(ranks.fastest),
        "best_per_usd": letter(ranks.best_per_usd),
        "ranked_by": f"step time {ranks.ranked_by}",
        "order_note": ranks.order_note or None,
        "missing_prices": [part.name for part in comparison.missing],
        "decision": _decision(comparison),
        "n_tokens": comparison.n_tokens if comparison.has_run else None,
        "designs": [_design(one) for one in comparison.candidates],
    }


def _decision(comparison: Comparison) -> dict[str, Any]:
    """The answers with their reasons, as the report words them."""
    section = decision_section(comparison, ())
    cards = [
        {"title": card.title, "answer": card.answer, "figure": card.figure, "reason": card.reason}
        for card in section.cards
    ]
    return {"cards": cards, "warnings": section.warnings, "text": section.paragraphs}


def _effective(one: Candidate) -> dict[str, Any]:
    """The step time on the links, mean over the routings, and its spread."""
    samples = () if one.check is None else one.check.effective_step_time_s
    found = figures("effective_step_time_s", samples, statistics=False)
    return found | {"n_seeds": None if one.check is None else len(samples)}


def _design(one: Candidate) -> dict[str, Any]:
    run = one.run
    return {
        "design": one.letter,
        "name": one.proposal.name,
        "optimized": one.proposal.optimized,
        "step_time_s": one.evaluation.step_time_s,
        "real_link_step_time_s": one.evaluation.real_link_step_time_s,
        **_effective(one),
        "ranked_step_time_s": one.step_time_s,
        "linear_network_cost_usd": one.evaluation.network_cost_usd,
        "linear_cost_in_servers_usd": float(one.linear_in_servers_usd),
        "total_usd": float(one.bill.total_usd),
        "assumed_usd": float(one.bill.assumed_usd),
        "usd_by_group": {
            group: float(one.bill.of(group).total_usd)
            for group in dict.fromkeys(line.group for line in one.bill.lines)
        },
        "power_w": one.bill.power_w,
        "covers": one.proposal.problem.covers,
        "tokens_per_s": 1 / one.token_time_s if one.token_time_s else None,
        "run_not_available": PART_OF_A_STEP if one.proposal.is_part else None,
        "expected_run_s": run.expected_s if run and run.expected_s < float("inf") else None,
        "run_cost_usd": run.cost_usd if run and run.cost_usd < float("inf") else None,
    }


def _print(comparison: Comparison, paths: list[Path]) -> None:
    section = decision_section(comparison, ())
    for warning in section.warnings:
        print(visible(f"Warning: {warning}"))
    for card in section.cards:
        print(visible(f"{card.title}: {card.answer} ({card.figure}). {card.reason}"))
    for text in section.paragraphs:
        print(visible(text))
    for path in paths:
        print(visible(str(path)))
