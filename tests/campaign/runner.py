"""Draw cases one after another; keep those that find something."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.campaign.case import Case, Outcome, outcome
from tests.campaign.grammar import plan_case
from tests.campaign.kept import kept_case
from tests.campaign.mutations import argument_case, mutated_case, mutated_plan_case
from tests.campaign.odd_files import odd_case, path_case
from tests.campaign.runs import run_case
from tests.campaign.settings import ROUTED
from tests.campaign.verdict import faults

Draw = Callable[[Random], Case]

DRAWS: dict[str, tuple[float, Draw]] = {
    "plans": (4, plan_case),
    "kept": (2, kept_case),
    "spoiled": (5, mutated_case),
    "spoiled plans": (1, mutated_plan_case),
    "arguments": (1, argument_case),
    "odd": (1, odd_case),
    "paths": (0.5, path_case),
    "runs": (0.7, run_case),
}
"""Kinds of cases, with their shares."""

_FREED_EVERY = 50


@dataclass(frozen=True)
class Tried:
    """A case with its outcome and what is wrong with it."""

    number: int
    case: Case
    outcome: Outcome
    faults: tuple[str, ...]
    folder: Path


def drawn(seed: int, number: int) -> Case:
    """Case of this number: of the seed, and of nothing before it."""
    random = Random(f"{seed}:{number}")
    shares, draws = zip(*DRAWS.values(), strict=True)
    return random.choices(draws, shares)[0](random)


def tried(seed: int, numbers: Iterable[int], folder: Path) -> Iterator[Tried]:
    """Cases with their outcomes; the folders of those without a fault are removed.

    That of the running case is there from its start, in case the process is killed.
    """
    _compile(folder / "compiled")
    for number in numbers:
        case, own = drawn(seed, number), folder / f"{seed}-{number}"
        case.write(own)
        came = outcome(case, own)
        wrong = (*faults(case, came), *case.also(came, own))
        if wrong:
            _keep(own, came, wrong)
        else:
            shutil.rmtree(own)
        yield Tried(number, case, came, wrong, own)
        if number % _FREED_EVERY == 0:
            gc.unfreeze()  # What commands leave out of collections, as they are about to end.
            gc.collect()


def _compile(folder: Path) -> None:
    """Compile the loops that route, which takes some seconds once: no case is to blame for it."""
    for policy in ("ecmp", "greedy", "edge_coloring"):
        command = ("flows", "f.yaml", "f.csv", "--policy", policy)
        case = Case("sound", command, {name: text.encode() for name, text in ROUTED.items()})
        case.write(folder)
        assert outcome(case, folder, most_s=300).code == 0
    shutil.rmtree(folder)


def _keep(folder: Path, came: Outcome, wrong: tuple[str, ...]) -> None:
    texts = {"stdout.txt": came.out, "stderr.txt": came.err, "faults.txt": "\n".join(wrong)}
    for name, text in texts.items():
        (folder / name).write_text(text, errors="surrogateescape")
