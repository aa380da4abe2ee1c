"""``libra-planner kernels``: one kernel from flags, or a CSV file of them."""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import replace
from functools import partial

from libra_planner.cli.arguments.making import flag_of
from libra_planner.cli.streams import answer, print_json
from libra_planner.errors import SpecError
from libra_planner.inputs.kernel_rows import (
    KernelFile,
    KernelRow,
    kernel_row,
    read_kernel_file,
)
from libra_planner.views.times.kernels import kernel_blocks, kernel_payload

_PLACE = "libra-planner kernels"
_SHAPE = {
    **{name: name for name in ("m", "n", "k", "groups", "batch", "rows", "cols")},
    "heads": "heads_q",
    "kv_heads": "heads_kv",
    "seq_q": "seq_q",
    "seq_kv": "seq_kv",
    "head_dim": "head_dim_qk",
    "head_dim_v": "head_dim_v",
}
"""Columns of a file, by the options that give the same."""
_FLAGS = {column: flag_of(name) for name, column in _SHAPE.items()} | {
    **{name: flag_of(name) for name in ("op", "dtype", "pass")},
    "gpu_type": "--npu",
}


def kernels(options: argparse.Namespace) -> None:
    """``libra-planner kernels``."""
    given = {name: getattr(options, name) for name in _SHAPE}
    if options.csv is None:
        row = _row(options, {name: value for name, value in given.items() if value is not None})
        answer(options, partial(kernel_payload, row), kernel_blocks(row))
        return
    others = given | {name: getattr(options, name) for name in ("npu", "op", "causal", "burst")}
    if named := [flag_of(name) for name, value in others.items() if value]:
        got = f"got {', '.join(named)} beside --csv, which has no use for it"
        raise SpecError.at(_PLACE, got, "", "leave one of them out")
    _answer_file(options, read_kernel_file(options.csv, options.catalogue))


def _row(options: argparse.Namespace, given: dict[str, int]) -> KernelRow:
    """The kernel that the options ask for."""
    if options.npu is None or options.op is None:
        fix = "give them, or a file of kernels with --csv"
        raise SpecError.at(_PLACE, "got no --npu and --op", "expected both", fix)
    cells = {_SHAPE[name]: str(value) for name, value in given.items()}
    cells |= {"gpu_type": options.npu, "op": options.op, "dtype": options.dtype}
    cells |= {"pass": options.way, "causal": str(options.causal)}
    try:
        row = kernel_row(cells, options.catalogue)
    except SpecError as error:
        raise SpecError(
            *(replace(x, path=_FLAGS.get(x.path, x.path)) for x in error.faults)
        ) from None
    return replace(row, call=replace(row.call, is_burst=options.burst))


def _answer_file(options: argparse.Namespace, file: KernelFile) -> None:
    if options.json:
        print_json({"cases": list(map(_case, file.kernels))})
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*file.columns, "predicted_time_s", "message"])
    writer.writerows([*row, *found] for row, found in zip(file.rows, file.answers(), strict=True))
    if n_without := sum(isinstance(one, SpecError) for one in file.kernels):
        n = len(file.kernels)
        said = f"{n_without:,} of {n:,} rows have no time; the column message says why"
        print(said, file=sys.stderr)


def _case(row: KernelRow | SpecError) -> dict[str, object]:
    return {"message": str(row)} if isinstance(row, SpecError) else kernel_payload(row)
