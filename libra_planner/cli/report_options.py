"""Values of the options of ``libra-planner report``, each refused by the option's name."""

from __future__ import annotations

import argparse
from pathlib import Path

from libra_planner.cli.designs import GivenDesign
from libra_planner.errors import Fault, Place, SpecError, UnknownName, closest
from libra_planner.routing.policy import Policy
from libra_planner.views.report.compose import DEFAULT_FORMATS, FORMATS
from libra_planner.workload.operations import Covers

LETTERS = "ABCDEFGHIJ"
DEFAULT_TOKENS = 10**12
_MOST_TOKENS = 10**18


def formats(text: str | None) -> tuple[str, ...]:
    """The formats that a list names, in its order."""
    if text is None:
        return DEFAULT_FORMATS
    given = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    unknown = [name for name in given if name not in FORMATS]
    if unknown:
        fault = Fault(f"got {unknown[0]!r}", "expected known formats", closest(unknown[0], FORMATS))
        raise UnknownName(fault.located(Place("--formats")))
    return given


def n_tokens(text: str | None) -> int:
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


def refuse_tokens_of_parts(text: str | None, given: list[GivenDesign]) -> None:
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


def policy(options: argparse.Namespace) -> Policy | None:
    """The routing policy to check with."""
    if options.check is None and options.seeds is not None:
        fix = "add a policy, such as --check ecmp"
        fault = Fault(f"got {options.seeds} without --check", "expected both", fix)
        raise SpecError(fault.located(Place("--seeds")))
    if options.check is None:
        return None
    try:
        policy = Policy(options.check)
        if not policy.kind.finds_paths:
            raise SpecError(Fault(f"got {policy.name}", "expected a policy that finds paths"))
        return policy
    except SpecError as error:
        raise error.located(Place("--check")) from None


def baseline(text: str | None, given: list[GivenDesign]) -> int | None:
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


def folder(text: str) -> Path:
    """The folder to write to; what cannot be one is refused before anything is computed."""
    folder = Path(text)
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not text or (there.exists() and not there.is_dir()):
        got = f"got the file {there}" if text else "got no name"
        fault = Fault(got, "expected a folder to write to", "name another one")
        raise SpecError(fault.located(Place("--output")))
    return folder


def documents_in(folder: Path) -> list[Path]:
    """Reports other than tables that stand in a folder."""
    paths = (folder / f"report.{suffix}" for suffix in FORMATS)
    return [path for path in paths if path.is_file()]
