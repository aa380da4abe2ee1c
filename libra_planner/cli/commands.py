"""What each command does: call the library, print the result."""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import INTERRUPTED, Fault, Place, SpecError
from libra_planner.units import BYTES_PER_S_PER_GBPS

if TYPE_CHECKING:
    from libra_planner.problem import Problem

_LEAST_GBPS, _MOST_GBPS = 1e-12, 1e9
"""Sizes of a bandwidth beyond which a number is a slip of the keyboard."""

_PIPE_WIDTH = 200
"""Columns when stdout is not a terminal: nothing wraps."""


def optimize(options: argparse.Namespace) -> None:
    """``libra-planner optimize``."""
    with _uncollected():
        from libra_planner.evaluation import evaluated
        from libra_planner.spec.plan import load_plan

    problem = load_plan(options.plan, options.settings)
    with _uncollected():
        from libra_planner.optimizer.catalogue import CatalogueDesign
        from libra_planner.optimizer.optimize import solve
        from libra_planner.optimizer.shadow import price_sensitivity, shadow_prices

    solution = solve(problem)
    problem, design = solution.problem, solution.design
    shadow = shadow_prices(problem, solution)
    evaluation = evaluated(problem, design.bandwidth_bytes_per_s)
    if options.json:
        from libra_planner.report.catalogue import catalogue_payload
        from libra_planner.report.payload import optimize_payload, worth_payload

        payload = optimize_payload(problem, design, evaluation)
        payload |= worth_payload(shadow, price_sensitivity(problem, solution))
        if isinstance(design, CatalogueDesign):
            payload |= catalogue_payload(problem, design)
        _print_json(payload)
    else:
        from libra_planner.report.terminal import print_catalogue, print_result

        print_result(_console(), problem, evaluation, design, shadow)
        if isinstance(design, CatalogueDesign):
            print_catalogue(_console(), problem, design)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Import without garbage collection, and leave what was imported out of later ones.

    Modules make many objects and no garbage; one full collection over cvxpy's takes as
    long as four solves. An interrupt ends the process at once: raised inside a half
    imported library it would come out as something else.
    """
    before = signal.signal(signal.SIGINT, _leave)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        signal.signal(signal.SIGINT, before)


def _leave(_signal: int, _frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def evaluate(options: argparse.Namespace) -> None:
    """``libra-planner evaluate``."""
    with _uncollected():
        from libra_planner.evaluation import evaluated
        from libra_planner.problem import fastest_alternative
        from libra_planner.spec.plan import load_plan

    problem = load_plan(options.plan, options.settings)
    place = Place(f"{options.plan}: --bandwidth")
    bandwidth = _bandwidth_bytes_per_s(options.bandwidth, problem, place)
    try:
        problem = fastest_alternative(problem, bandwidth)
        evaluation = evaluated(problem, bandwidth)
    except SpecError as error:
        raise error.located(place) from None
    if options.json:
        from libra_planner.report.payload import evaluate_payload

        _print_json(evaluate_payload(problem, evaluation))
    else:
        from libra_planner.report.terminal import print_result

        print_result(_console(), problem, evaluation)


def _bandwidth_bytes_per_s(text: str, problem: Problem, place: Place) -> Any:
    import numpy as np

    parts = text.split(",")
    n_dims = problem.topology.n_dims
    if len(parts) != n_dims:
        expected = f"expected {n_dims}, one for each dimension of {problem.topology}"
        fix = "separate GB/s by commas, innermost first"
        raise SpecError(Fault(f"got {len(parts)} numbers", expected, fix, "", place))
    values = [_gigabytes_per_s(part, place) for part in parts]
    return np.array(values) * BYTES_PER_S_PER_GBPS


def _gigabytes_per_s(text: str, place: Place) -> float:
    from libra_planner.spec.document import scalar

    value = scalar(text.strip())
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (value == 0 or _LEAST_GBPS <= value <= _MOST_GBPS):
        fix = "write GB/s without a unit, such as 300,100,75,25"
        expected = f"expected 0 or a number from {_LEAST_GBPS:g} to {_MOST_GBPS:g}"
        raise SpecError(Fault(f"got {text!r}", expected, fix, "", place))
    return abs(float(value))


def pareto(options: argparse.Namespace) -> None:
    """``libra-planner pareto``."""
    from libra_planner.cli.pareto import run

    with _uncollected():
        import libra_planner.optimizer.pareto  # noqa: F401
    run(options, _console)


def collective(options: argparse.Namespace) -> None:
    """``libra-planner collective``."""
    with _uncollected():
        from libra_planner.cli.collective import answer

    answer(options, _console)


def flows(options: argparse.Namespace) -> None:
    """``libra-planner flows``."""
    with _uncollected():
        from libra_planner.cli.flows import answer

    answer(options, _console)


def list_bundled(options: argparse.Namespace) -> None:
    """``libra-planner list``."""
    from libra_planner.spec import bundled

    folder = bundled.folder(options.kind)
    rows = {name: folder / f"{name}.yaml" for name in bundled.names(options.kind)}
    if options.json:
        _print_json({options.kind: {name: str(path) for name, path in rows.items()}})
        return
    width = max(len(name) for name in rows)
    for name, path in rows.items():
        text = str(path) if options.kind == "examples" else _first_comment(path)
        print(f"{name:<{width}}  {text}")


def _first_comment(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def schema(options: argparse.Namespace) -> None:
    """``libra-planner schema``."""
    from libra_planner.spec.schema import json_schema

    _print_json(json_schema(options.format))


def import_libra(options: argparse.Namespace) -> None:
    """``libra-planner import libra``."""
    from libra_planner.interop.libra import LibraFiles
    from libra_planner.interop.libra import import_libra as import_files

    names = (options.network, options.workload, options.communicator, options.cost_model)
    written, kept = import_files(LibraFiles(*map(Path, names)), Path(options.output))
    for path in written:
        print(path)
    for path in kept:
        print(f"Kept what was there as {path}.", file=sys.stderr)
    print("The plan has no rules yet: add e.g. 'total == 300 GB/s'.", file=sys.stderr)


def _print_json(payload: dict[str, Any]) -> None:
    print(json.dumps(payload, indent=2, allow_nan=False))


def _console() -> Any:
    from libra_planner.report.terminal import PlainConsole

    return PlainConsole(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
