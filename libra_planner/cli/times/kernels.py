"""``libra-planner kernels``: one kernel from flags, or a CSV file of them."""

from __future__ import annotations

import argparse
from dataclasses import replace

from libra_planner.api.clusters.cases import answered_kernels
from libra_planner.api.clusters.systems import SHAPE, Kernel, answered_kernel
from libra_planner.cli.arguments.making import flag_of
from libra_planner.cli.streams import answer, answer_cases
from libra_planner.errors import SpecError

_PLACE = "libra-planner kernels"
_FLAGS = {column: flag_of(name) for name, column in SHAPE.items()} | {
    **{name: flag_of(name) for name in ("op", "dtype", "pass")},
    "gpu_type": "--npu",
}


def kernels(options: argparse.Namespace) -> None:
    """``libra-planner kernels``."""
    given = {name: getattr(options, name) for name in SHAPE}
    if options.csv is None:
        found = _kernel(options, {name: x for name, x in given.items() if x is not None})
        answer(options, found.to_dict, found.blocks())
        return
    others = given | {name: getattr(options, name) for name in ("npu", "op", "causal", "burst")}
    if named := [flag_of(name) for name, value in others.items() if value]:
        got = f"got {', '.join(named)} beside --csv, which has no use for it"
        raise SpecError.at(_PLACE, got, "", "leave one of them out")
    answer_cases(options, answered_kernels(options.csv, options.catalogue))


def _kernel(options: argparse.Namespace, given: dict[str, int]) -> Kernel:
    """The kernel that the options ask for."""
    if options.npu is None or options.op is None:
        fix = "give them, or a file of kernels with --csv"
        raise SpecError.at(_PLACE, "got no --npu and --op", "expected both", fix)
    cells = {SHAPE[name]: str(value) for name, value in given.items()}
    cells |= {"gpu_type": options.npu, "op": options.op, "dtype": options.dtype}
    cells |= {"pass": options.way, "causal": str(options.causal)}
    try:
        return answered_kernel(cells, options.catalogue, burst=options.burst)
    except SpecError as error:
        raise SpecError(
            *(replace(x, path=_FLAGS.get(x.path, x.path)) for x in error.faults)
        ) from None
