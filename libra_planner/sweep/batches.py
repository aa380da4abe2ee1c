"""Designs of a chunk gathered into batches of one structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import SpecError
from libra_planner.optimizer.batch_program import BatchProgram, rest_of_key
from libra_planner.optimizer.batch_structure import Key, shape_key
from libra_planner.sweep.cases import Case, ParsedLine
from libra_planner.sweep.chunks import Chunk
from libra_planner.timing.expression import Array

Rows = NDArray[np.intp]

_ARRAYS = tuple(field.name for field in fields(BatchProgram))[1:]


@dataclass(frozen=True)
class Piece:
    """Designs of one case whose rules have one shape.

    Parameters
    ----------
    case : their case.
    rows : which designs of the chunk, shape (n,).
    program : them as a batch.
    lines : parsed lines of constraints; line i of design j is ``lines[i][line_codes[i, j]]``.
    line_codes : shape (n_lines, n).
    """

    case: Case
    rows: Rows
    program: BatchProgram
    lines: tuple[tuple[ParsedLine, ...], ...]
    line_codes: Rows

    @property
    def key(self) -> Key:
        """Equal for pieces that one batch can hold."""
        template = self.program.template
        units = tuple(rule.unit for rule in template.rules)
        return (shape_key(template.step_time.merged), *rest_of_key(template), units)

    def rule_texts(self, i: int) -> list[str]:
        """The rules of the piece's design i as text, in the order of its program's."""
        found = (line[code] for line, code in zip(self.lines, self.line_codes[:, i], strict=True))
        return [rule.text for line in found for rule in (*line.rules, *line.limits)]


def grouped(codes: NDArray[np.intp]) -> list[Rows]:
    """Designs by their column of codes, shape (n_codes, n_designs), in order.

    >>> [rows.tolist() for rows in grouped(np.array([[0, 1, 0], [2, 2, 2]]))]
    [[0, 2], [1]]
    """
    if not len(codes) or (codes == codes[:, :1]).all():
        return [np.arange(codes.shape[1])]
    _, inverse = np.unique(codes, axis=1, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(inverse, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)


def pieces(case: Case, chunk: Chunk, rows: Rows, failed: dict[int, str]) -> Iterator[Piece]:
    """The designs ``rows`` of a chunk as batches; what is wrong goes into ``failed``."""
    fixed_usd = np.full(chunk.n, case.base.fixed_cost_usd)
    for same in _by_values(chunk, rows, case.fixed_cost_axes):
        usd = case.fixed_cost_usd(_values(chunk, case.fixed_cost_axes, same[0]))
        if isinstance(usd, SpecError):
            failed |= dict.fromkeys(map(int, same), str(usd))
        else:
            fixed_usd[same] = usd
    lines: list[list[ParsedLine]] = []
    codes = np.zeros((len(case.lines), chunk.n), dtype=np.intp)
    for i in range(len(case.lines)):
        found = _line(case, chunk, rows, i, fixed_usd, codes[i], failed)
        lines.append(found)
    fine = np.array([row for row in rows if int(row) not in failed], dtype=np.intp)
    shapes = [_shape_codes(line, codes[i, fine]) for i, line in enumerate(lines)]
    for same in grouped(np.array(shapes).reshape(len(lines), len(fine))) if len(fine) else ():
        yield _piece(case, fine[same], fixed_usd, lines, codes)


def _by_values(chunk: Chunk, rows: Rows, names: frozenset[str]) -> list[Rows]:
    """Designs with equal values of some axes."""
    columns = [column.codes[rows] for column in chunk.columns if column.name in names]
    return [rows[same] for same in grouped(np.array(columns).reshape(-1, len(rows)))]


def _values(chunk: Chunk, names: frozenset[str], row: int) -> dict[str, object]:
    columns = (column for column in chunk.columns if column.name in names)
    return {column.name: column.values[column.codes[row]] for column in columns}


def _line(
    case: Case,
    chunk: Chunk,
    rows: Rows,
    i: int,
    fixed_usd: Array,
    codes: Rows,
    failed: dict[int, str],
) -> list[ParsedLine]:
    """Line i for all designs: its distinct readings, and in ``codes`` which one each has."""
    found: list[ParsedLine] = []
    names = case.line_axes(i)
    for same in _by_values(chunk, rows, names):
        values = _values(chunk, names, same[0])
        line = case.line(i, values, float(fixed_usd[same[0]]))
        if isinstance(line, SpecError):
            for row in map(int, same):
                failed[row] = "\n".join(filter(None, [failed.get(row), str(line)]))
        else:
            codes[same] = len(found)
            found.append(line)
    return found


def _shape_codes(lines: Sequence[ParsedLine], codes: Rows) -> Rows:
    """Which shape each design's reading of a line has, as a number."""
    numbered: dict[object, int] = {}
    of_line = [numbered.setdefault(line.shape, len(numbered)) for line in lines]
    return np.array(of_line, dtype=np.intp)[codes]


def _piece(
    case: Case, rows: Rows, fixed_usd: Array, lines: list[list[ParsedLine]], codes: Rows
) -> Piece:
    own = codes[:, rows]
    firsts = [line[own[i, 0]] for i, line in enumerate(lines)]
    template = replace(
        case.base,
        rules=tuple(rule for line in firsts for rule in line.rules),
        step_time_limits=tuple(limit for line in firsts for limit in line.limits),
    )
    n, n_dims = len(rows), template.topology.n_dims
    limits = [_taken([line.limit_s for line in lines[i]], own[i]) for i in range(len(lines))]
    with_rules = [i for i, line in enumerate(firsts) if line.rules]
    program = BatchProgram(
        template=template,
        time_numbers=_repeated(np.array(case.time_numbers), n),
        coefficients=_joined(lines, own, with_rules, "coefficients", (n, 0, n_dims)),
        bounds=_joined(lines, own, with_rules, "bounds", (n, 0)),
        price_usd_per_Bps=_repeated(np.asarray(template.price_usd_per_Bps), n),
        fixed_cost_usd=fixed_usd[rows],
        limit_s=np.min([np.full(n, np.inf), *limits], axis=0),
    )
    return Piece(case, rows, program, tuple(map(tuple, lines)), own)


def _repeated(row: Array, n: int) -> Array:
    return np.broadcast_to(row, (n, len(row)))


def _taken(values: Sequence[float], codes: Rows) -> Array:
    return np.array(values, dtype=np.float64)[codes]


def _joined(
    lines: list[list[ParsedLine]],
    codes: Rows,
    which: Sequence[int],
    name: str,
    empty: tuple[int, ...],
) -> Array:
    """An array of all lines' rules, the designs first."""
    parts = [_stack(lines[i], codes[i], name) for i in which]
    return np.concatenate([np.empty(empty), *parts], axis=1)


def _stack(line: list[ParsedLine], codes: Rows, name: str) -> Array:
    """Readings of one line by design; readings of another shape are not asked for."""
    shape = line[codes[0]].shape
    place = np.cumsum([reading.shape == shape for reading in line]) - 1
    same = [getattr(reading, name) for reading in line if reading.shape == shape]
    stacked: Array = np.array(same)[place[codes]]
    return stacked


def merged(parts: Sequence[Piece]) -> BatchProgram:
    """Pieces of one key as one batch."""
    if len(parts) == 1:
        return parts[0].program

    def joined(name: str) -> Array:
        return np.concatenate([getattr(part.program, name) for part in parts])

    return BatchProgram(parts[0].program.template, *map(joined, _ARRAYS))
