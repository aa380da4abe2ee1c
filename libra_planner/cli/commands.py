"""What each command does: call the library, print the result."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from libra_planner.cli.streams import print_json
from libra_planner.errors import INTERRUPTED, Fault, Place, SpecError
from libra_planner.plain_text import visible
from libra_planner.routing.policy import OPTIONS

_PIPE_WIDTH = 200
"""Columns when stdout is not a terminal: nothing wraps."""


def optimize(options: argparse.Namespace) -> None:
    """``libra-planner optimize``."""
    with _uncollected():
        from libra_planner.evaluation import evaluated
        from libra_planner.plan.problem import load_plan

    _refuse_without_routing(options)
    problem = load_plan(options.plan, options.settings)
    if options.policy is not None:
        with _uncollected():
            from libra_planner.cli.routed import answer
        answer(options, problem, _console)
        return
    with _uncollected():
        from libra_planner.optimizer.catalogue import CatalogueDesign
        from libra_planner.optimizer.optimize import solve
        from libra_planner.optimizer.shadow import price_sensitivity, shadow_prices

    solution = solve(problem)
    problem, design = solution.problem, solution.design
    shadow = shadow_prices(problem, solution)
    evaluation = evaluated(problem, design.bandwidth_bytes_per_s)
    if options.json:
        from libra_planner.cli.given import given
        from libra_planner.views.design import optimize_payload
        from libra_planner.views.worth import catalogue_payload, worth_payload

        payload = given(options) | optimize_payload(problem, design, evaluation)
        payload |= worth_payload(shadow, price_sensitivity(problem, solution))
        if isinstance(design, CatalogueDesign):
            payload |= catalogue_payload(problem, design)
        print_json(payload)
    else:
        from libra_planner.views.cells import escape
        from libra_planner.views.design import design_blocks
        from libra_planner.views.renderers.terminal import show
        from libra_planner.views.worth import catalogue_lines

        show(_console(), design_blocks(problem, evaluation, design, shadow))
        if isinstance(design, CatalogueDesign):
            show(_console(), ["", *map(escape, catalogue_lines(problem, design))])


def _refuse_without_routing(options: argparse.Namespace) -> None:
    """Refuse settings of a routing policy without one."""
    drawn = ("seeds", "seed", "queue_pairs", "npus_per_address", "placement")
    values = {name: getattr(options, name) for name in (*OPTIONS, *drawn)}
    given = [name for name, value in values.items() if not (value is None or value is False)]
    if options.policy is None and given:
        got = f"got --{given[0].replace('_', '-')} without --routing"
        place = Place(options.plan)
        raise SpecError(Fault(got, "expected a policy", "add --routing ecmp", "", place))


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
        from libra_planner.plan.problem import load_plan
        from libra_planner.problem import fastest_alternative
        from libra_planner.studies.designs import bandwidth_bytes_per_s

    problem = load_plan(options.plan, options.settings)
    place = Place(f"{options.plan}: --bandwidth")
    bandwidth = bandwidth_bytes_per_s(options.bandwidth, problem, place)
    try:
        problem = fastest_alternative(problem, bandwidth)
        evaluation = evaluated(problem, bandwidth)
    except SpecError as error:
        raise error.located(place) from None
    if options.json:
        from libra_planner.cli.given import given
        from libra_planner.views.design import evaluate_payload

        print_json(given(options) | evaluate_payload(problem, evaluation))
    else:
        from libra_planner.views.design import design_blocks
        from libra_planner.views.renderers.terminal import show

        show(_console(), design_blocks(problem, evaluation))


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


def sweep(options: argparse.Namespace) -> None:
    """``libra-planner sweep``."""
    from libra_planner.cli import sweep as actions

    with _uncollected():
        if options.action in ("plan", "run"):
            import libra_planner.sweeps.runner  # noqa: F401
    getattr(actions, options.action)(options)


def flows(options: argparse.Namespace) -> None:
    """``libra-planner flows``."""
    with _uncollected():
        from libra_planner.cli.flows import answer

    answer(options, _console)


def check(options: argparse.Namespace) -> None:
    """``libra-planner check``."""
    with _uncollected():
        from libra_planner.cli.check import answer

        if options.bandwidth is None:
            import libra_planner.optimizer.optimize  # noqa: F401
    answer(options, _console)


def report(options: argparse.Namespace) -> None:
    """``libra-planner report``."""
    with _uncollected():
        import libra_planner.optimizer.optimize  # noqa: F401
        from libra_planner.cli.report import answer

    answer(options)


def list_bundled(options: argparse.Namespace) -> None:
    """``libra-planner list``."""
    from libra_planner.reading import bundled

    if options.kind == "fabrics":
        _list_fabrics(options)
        return
    folder = bundled.folder(options.kind)
    rows = {name: folder / f"{name}.yaml" for name in bundled.names(options.kind)}
    if options.json:
        print_json({options.kind: {name: str(path) for name, path in rows.items()}})
        return
    width = max(len(name) for name in rows)
    for name, path in rows.items():
        text = str(path) if options.kind in ("examples", "sweeps") else _first_comment(path)
        print(f"{name:<{width}}  {text}")


def _list_fabrics(options: argparse.Namespace) -> None:
    """Fabrics by name, for ``flows`` and for ``fabric.realization.preset``."""
    from libra_planner.fabric.realization import PRESETS

    rows = {name: {"note": one.note, "assumed": one.assumed} for name, one in PRESETS.items()}
    if options.json:
        print_json({"fabrics": rows})
        return
    width = max(len(name) for name in rows)
    for name, row in rows.items():
        print(f"{name:<{width}}  {row['note']} (assumed: {row['assumed']})")


def _first_comment(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def schema(options: argparse.Namespace) -> None:
    """``libra-planner schema``."""
    from libra_planner.inputs.schema import json_schema

    if options.format == "sweep":
        from libra_planner.sweeps.axes import sweep_schema

        print_json(sweep_schema())
        return
    print_json(json_schema(options.format))


def import_libra(options: argparse.Namespace) -> None:
    """``libra-planner import libra``."""
    from libra_planner.interop.libra import LibraFiles
    from libra_planner.interop.libra import import_libra as import_files

    names = (options.network, options.workload, options.communicator, options.cost_model)
    written, kept = import_files(LibraFiles(*map(Path, names)), Path(options.output))
    for path in written:
        print(visible(str(path)))
    for path in kept:
        print(visible(f"Kept what was there as {path}."), file=sys.stderr)
    print("The plan has no rules yet: add e.g. 'total == 300 GB/s'.", file=sys.stderr)


def cockpit(options: argparse.Namespace) -> None:
    """``libra-planner tui``."""
    from libra_planner.tui.launch import run, serve

    signal.signal(signal.SIGINT, signal.default_int_handler)  # Its loop has a handler of its own.
    if options.web:
        serve(options.plan, options.port, partial(print, flush=True))
    else:
        run(options.plan)


def _console() -> Any:
    from libra_planner.views.renderers.terminal import PlainConsole

    return PlainConsole(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
