"""``libra-planner init``: a first plan, from flags or from questions on a terminal."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from libra_planner.cli.streams import PROGRAM, say, tell_kept
from libra_planner.errors import Place, SpecError, located
from libra_planner.fabric.topology import TOP_OF_RACK
from libra_planner.files import STDOUT, refuse_existing, write_files, write_text
from libra_planner.inputs.first.nics import unsold_words
from libra_planner.inputs.first.plan import (
    OPEN,
    FirstPlan,
    check_model,
    check_npus,
    nic_Bps,
    npu_choice,
    taper_of,
)
from libra_planner.inputs.first.quotes import quotes_text
from libra_planner.inputs.first.wiring import USUAL, wired, wiring_of
from libra_planner.inputs.first.workload import workload_text
from libra_planner.inputs.training.clusters import nics_of
from libra_planner.plan.npus import catalogue, scale_up_domain
from libra_planner.procurement.cluster import FreePorts
from libra_planner.reading.bundled import is_path
from libra_planner.units import GBIT_PER_S_BPS
from libra_planner.views.cluster import free_ports_text

_EXAMPLE = f"{PROGRAM} init --model llama3-70b --npu h100-sxm --npus 2048 --nic 400Gbps --taper 2"

Answers = Mapping[str, str]
"""By flag, as they were typed."""


@dataclass(frozen=True)
class _Question:
    """What a plan needs to know.

    Parameters
    ----------
    flag : that answers it without being asked.
    text : of the question.
    usual : answer of who only presses Enter; from the answers before.
    check : raises for a wrong answer; from the answers before and this one.
    is_needed : whether a plan cannot do without.
    is_asked : whether the answers before leave it open.
    doubt : why an answer that holds is asked for again; only a flag takes it. Empty for nothing.
    """

    flag: str
    text: str
    usual: Callable[[Answers], str]
    check: Callable[[Answers, str], object]
    is_needed: bool = False
    is_asked: Callable[[Answers], bool] = lambda _: True
    doubt: Callable[[Answers, str], str] = lambda *_: ""


_NO = "no"
"""Says that no file of an own model is wanted."""


def _own_file(text: str) -> None:
    if text != _NO and not text.endswith((".yaml", ".yml")):
        expected = f"expected a YAML file to write, or {_NO}"
        raise SpecError.at("--workload", f"got {text!r}", expected, "write e.g. own.yaml")


def _model(_: Answers, text: str) -> None:
    check_model(text, Path())


def _count(text: str) -> int:
    digits = text.replace(",", "").strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits)):
        raise SpecError.at("--npus", f"got {text!r}", "expected a whole number", "write e.g. 2048")
    return int(digits)


def _wiring(given: Answers, text: str) -> object:
    domain = catalogue().npus[npu_choice(given["--npu"])].scale_up[0]
    size = scale_up_domain(domain).n_npus
    n_nodes = _count(given["--npus"]) // size
    return wired(wiring_of(text), n_nodes, size, taper_of(given["--taper"]))


_QUESTIONS = (
    _Question(
        "--model",
        "Model to train (list workloads), or a workload file",
        lambda _: "llama3-70b",
        _model,
        True,
    ),
    _Question(
        "--workload",
        "Take it as it is, or write its shape to a file, to make it your own: e.g. own.yaml",
        lambda _: _NO,
        lambda _, text: _own_file(text),
        is_asked=lambda given: not is_path(given["--model"]),
    ),
    _Question(
        "--npu", "NPU (list npus)", lambda _: "h100-sxm", lambda _, text: npu_choice(text), True
    ),
    _Question(
        "--npus",
        "NPUs in all",
        lambda _: "2048",
        lambda given, text: check_npus(npu_choice(given["--npu"]), _count(text)),
        True,
    ),
    _Question(
        "--nic",
        "Speed of the NIC of an NPU",
        lambda given: _usual_nic(given["--npu"]),
        lambda given, text: nic_Bps(npu_choice(given["--npu"]), text),
        doubt=lambda given, text: unsold_words(nic_Bps(npu_choice(given["--npu"]), text)),
    ),
    _Question(
        "--taper",
        f"Taper at the spines: links down over links up of a leaf, or {OPEN} to choose the best",
        lambda _: "1",
        lambda _, text: taper_of(text),
    ),
    _Question(
        "--wiring",
        f"Wiring: rails (NPU i of every node on leaf i: {USUAL}), or a Clos ({TOP_OF_RACK})",
        lambda _: USUAL,
        _wiring,
    ),
)


def _usual_nic(npu: str) -> str:
    return f"{nics_of(npu_choice(npu)).Bps / GBIT_PER_S_BPS:g}Gbps"


def init(options: argparse.Namespace) -> None:
    """``libra-planner init``."""
    _refuse_existing(options)
    given = {one.flag: getattr(options, one.flag.removeprefix("--")) for one in _QUESTIONS}
    asks = sys.stdin is not None and sys.stdin.isatty()
    missing = [one.flag for one in _QUESTIONS if one.is_needed and given[one.flag] is None]
    if missing and not asks:
        expected = "expected it: without a terminal nothing can be asked"
        got = f"got no {' and no '.join(missing)}"
        raise SpecError.at(f"{PROGRAM} init", got, expected, f"write e.g. {_EXAMPLE}")
    answers: dict[str, str] = {}
    for question in _QUESTIONS:
        text = given[question.flag]
        if text is None:
            usual = question.usual(answers)
            is_open = asks and missing and question.is_asked(answers)
            text = _answer(question, answers, usual) if is_open else usual
        else:
            _check(question, answers, text)
        answers[question.flag] = text
    options.workload = None if answers["--workload"] == _NO else answers["--workload"]
    _refuse_existing(options)
    _write(options, answers)


def _refuse_existing(options: argparse.Namespace) -> None:
    """Refuse to write over a file that nobody allows to be lost."""
    given = (options.output, options.workload, options.prices)
    names = [name for name in given if name not in (None, _NO, STDOUT)]
    for flag, name, usual in (
        ("--workload", options.workload, "own.yaml"),
        ("--prices", options.prices, "quotes.csv"),
    ):
        if name and [*map(os.path.abspath, names)].count(os.path.abspath(name)) > 1:
            expected = "expected a file of its own"
            raise SpecError.at(flag, f"got {name}", expected, f"write e.g. {usual}")
    if options.prices == STDOUT or not (options.prices or "a.csv").lower().endswith(".csv"):
        expected = "expected a CSV file to write"
        raise SpecError.at("--prices", f"got {options.prices}", expected, "write e.g. quotes.csv")
    for name in names:
        refuse_existing(name, is_forced=options.force)


def _check(question: _Question, answers: Answers, text: str) -> None:
    with located(Place(question.flag)):
        question.check(answers, text)


def _answer(question: _Question, answers: Answers, usual: str) -> str:
    """An answer that holds; the question is asked until there is one."""
    while True:
        print(f"{question.text} [{usual}]: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print(file=sys.stderr)
            got, fix = "got no answer", f"answer, or write e.g. {_EXAMPLE}"
            raise SpecError.at(question.flag, got, "", fix)
        text = line.strip() or usual
        try:
            _check(question, answers, text)
            doubt = question.doubt(answers, text)
            if not doubt:
                return text
            say(
                (f"{question.flag}: {doubt} If you mean it, give it as {question.flag}.",),
                sys.stderr,
            )
        except SpecError as error:
            say(str(error).splitlines(), sys.stderr)


def _write(options: argparse.Namespace, answers: Answers) -> None:
    """Write the plan, and the file for quotes, both or none."""
    plan = Path("plan.yaml" if options.output == STDOUT else options.output)
    folder, model = plan.parent, answers["--model"]
    first = FirstPlan(
        os.path.relpath(model, folder) if is_path(model) else model,
        npu_choice(answers["--npu"]),
        _count(answers["--npus"]),
        nic_Bps(npu_choice(answers["--npu"]), answers["--nic"]),
        taper_of(answers["--taper"]),
        options.global_batch,
        os.path.relpath(options.prices, folder) if options.prices else "",
        asked_wiring=answers["--wiring"],
    )
    first, wasted = first.checked(plan.name, folder)
    beside = {Path(options.prices): quotes_text(first)} if options.prices else {}
    if options.workload:
        own = Path(options.workload)
        beside = {own: workload_text(own.name, first.model, folder), **beside}
        first = replace(first, model=f"./{Path(os.path.relpath(own, folder)).as_posix()}")
    text = first.text(plan.name)
    if options.output == STDOUT:
        write_text(STDOUT, text)
        tell_kept(write_files(beside))
        return
    kept = write_files({plan: text, **beside})
    say(map(str, (plan, *beside)))
    tell_kept(kept)
    if options.workload:
        say((f"{options.workload} is {model} now: edit it into your own.",), sys.stderr)
    say(_network_words(first, wasted, options.output), sys.stderr)
    if options.prices:
        ask = f"Fill in {options.prices} (rows left empty count for nothing), then add"
        say(
            (f"{ask} --prices {shlex.quote(options.prices)} to optimize, check or report.",),
            sys.stderr,
        )
    command = shlex.join([PROGRAM, "optimize", options.output])
    say((f"next: {command}",), sys.stderr)


def _network_words(first: FirstPlan, wasted: FreePorts | None, plan: str) -> Iterator[str]:
    """What became of the taper, and what stays free."""
    if first.n_groups == 1 and first.taper != 1:
        yield f"All {first.n_nodes} nodes share a leaf of every rail: there is no taper."
    if first.asked_taper is not None:
        yield (
            f"Whole links make {first.taper:.4g}:1 at the spines, the next below the "
            f"{first.asked_taper:g}:1 asked for: the plan has that."
        )
    for words in first.notes:
        yield f"{words[:1].upper()}{words[1:].removesuffix('.')}."
    if wasted is not None:
        yield f"At list prices {free_ports_text(wasted, plan=plan, is_brief=True)}"
