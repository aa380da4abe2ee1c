"""Values of axes in few words, and in order."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from libra_planner.plain_text import visible
from libra_planner.sweeps.axes import cell
from libra_planner.sweeps.columns import Column
from libra_planner.sweeps.figures.frontiers import SAME
from libra_planner.sweeps.figures.tables import sql_name
from libra_planner.sweeps.figures.texts import as_in_file
from libra_planner.sweeps.results import Results
from libra_planner.units import BYTE_STEPS, UNITS, USD_STEPS, time_unit

_LONGEST_LIST = 64
"""Letters of a list of values beyond which it is a number of values."""
_MOST_DIGITS = 6
_FEW_DIGITS, _DIGITS, _MANY_DIGITS = 3, 6, 12
_FIRST_DEGREES = ("tp", "cp", "ep", "pp", "dp")


def in_order(values: set[Any]) -> list[Any]:
    """Values of an axis from small to large, or by the alphabet.

    >>> in_order({"b", 10, 9, "a"})
    [9, 10, 'a', 'b']
    """
    return sorted(values, key=lambda x: (isinstance(x, str), x is None, x if x is not None else 0))


def degree_words(text: str) -> str:
    """A map of degrees as people say it; any other text as it is.

    >>> degree_words("{cp: 2, dp: 32, pp: 4, tp: 4}"), degree_words("auto")
    ('tp 4, cp 2, pp 4, dp 32', 'auto')
    """
    inner = re.fullmatch(r"\{([\w.]+: [^{}\[\],:]+(?:, [\w.]+: [^{}\[\],:]+)*)\}", text)
    if inner is None:
        return text
    pairs = dict(one.split(": ") for one in inner[1].split(", "))
    first = [name for name in _FIRST_DEGREES if name in pairs]
    return ", ".join(f"{name} {pairs[name]}" for name in dict.fromkeys([*first, *pairs]))


def tier_names(results: Results) -> list[str]:
    """Names of the tiers of all plans of a sweep, innermost first; empty where they differ."""
    spec = results.manifest["spec"]
    fabric = spec["base"].get("fabric")
    own = fabric.get("tiers") if isinstance(fabric, dict) else None
    of_axes = [names for _, _, tiers in spec["axes"] for names in tiers.values()]
    lists = of_axes or [own]
    known = all(isinstance(one, list) and one == lists[0] for one in lists)
    return [visible(str(name)) for name in lists[0]] if known else []


def cut_apart(texts: Sequence[str], most: int) -> list[str]:
    """Texts of at most so many letters each, cut where they are alike so that they still differ.

    Where that is impossible they are whole.

    >>> cut_apart(["SW(8)_[SW(32)_SW(8)]", "SW(8)_[SW(64)_SW(4)]", "RI(4)"], 14)
    ['SW(\N{HORIZONTAL ELLIPSIS}32)_SW(8)]', 'SW(\N{HORIZONTAL ELLIPSIS}64)_SW(4)]', 'RI(4)']
    """
    long = {text for text in texts if len(text) > most}
    if not long:
        return [*texts]
    alike = (len({*letters}) == 1 for letters in zip(*long, strict=False))
    n_same = sum(takewhile(bool, alike)) if len(long) > 1 else 0
    found = {text: _cut(text, most, n_same) if text in long else text for text in texts}
    is_clear = len({*found.values()}) == len(found)
    return [found[text] if is_clear else text for text in texts]


def _cut(text: str, most: int, n_same: int) -> str:
    """A text without a middle part, first of its first ``n_same`` letters."""
    n_left_out = len(text) - most + 1
    begin = max(0, n_same - n_left_out) if n_left_out <= n_same else most // 2
    return f"{text[:begin]}\N{HORIZONTAL ELLIPSIS}{text[begin + n_left_out :]}"


def token_words(rows: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> str:
    """How many tokens a sequence has, where rows differ in it; empty where they do not, or no row
    tells.

    Parameters
    ----------
    rows : of results, by their columns.
    axes : of the sweep, of which one may tell.

    Examples
    --------
    >>> rates = ("a", 8192.0, 1.0), ("a", 4096.0, 2.0), ("b", 8192.0, 0.5)
    >>> keys = ("model", "tokens_per_s", "seconds_per_sequence")
    >>> token_words([dict(zip(keys, one)) for one in rates], ["model"])
    'a sequence has 8,192 tokens (a), 4,096 (b)'
    """
    found = [(row, n) for row in rows if (n := _tokens(row))]
    counts = dict.fromkeys(n for _, n in found)
    if len(counts) < 2:
        return ""
    for axis in axes:
        told = dict.fromkeys((str(row[axis]), n) for row, n in found if axis in row)
        if told and len({value for value, _ in told}) == len(told):
            first, *others = ((f"{n:,}", visible(value)) for value, n in told)
            more = (f"{n} ({value})" for n, value in others)
            return f"a sequence has {', '.join([f'{first[0]} tokens ({first[1]})', *more])}"
    return f"a sequence has {min(counts):,} to {max(counts):,} tokens"


def _tokens(row: Mapping[str, Any]) -> int:
    """Tokens of a sequence; 0 where the row does not tell."""
    per_s, seconds = row.get("tokens_per_s"), row.get("seconds_per_sequence")
    return round(per_s * seconds) if per_s and seconds else 0


def axis_words(name: str, values: Sequence[Any]) -> str:
    """An axis with its number of values and, of numbers, their ends.

    >>> axis_words("nic", [25, 50, 100]), axis_words("shape", ["a", "b"])
    ('nic (3 values, 25 to 100)', 'shape (a, b)')
    >>> axis_words("parallelism", ["auto", {"dp": 64, "tp": 8}])
    'parallelism (auto; tp 8, dp 64)'
    """
    if all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        ends = f"{min(values):.12g} to {max(values):.12g}"
        return f"{visible(name)} ({len(values):,} values, {ends})"
    texts = [visible(as_in_file(cell(value))) for value in values]
    words = [degree_words(text) for text in texts]
    short = ("; " if words != texts else ", ").join(words)
    inside = short if len(short) <= _LONGEST_LIST else f"{len(values):,} values"
    return f"{visible(name)} ({inside})"


def scaled(column: Column, largest: float) -> tuple[float, str]:
    """What a column's values are multiplied by, and the unit they have then.

    Parameters
    ----------
    column : of results, by which its values have their SI unit.
    largest : of its values.

    Examples
    --------
    >>> scaled(Column("step_time_s"), 0.25), scaled(Column("cost_usd"), 2e9)
    ((1000.0, 'ms'), (1e-09, 'B$'))
    """
    unit = column.unit_name
    if unit == "s":
        unit_s, name = time_unit(largest)
        return 1 / unit_s, name
    steps = {"USD": USD_STEPS, "bytes": BYTE_STEPS}.get(unit)
    if steps is None:
        return 1.0, unit
    factor, name = next((step for step in steps if largest >= step[0]), steps[-1])
    return 1 / factor, f"{name}$" if unit == "USD" else name


def digits_apart(values: Sequence[float], most_exact: int | None = None) -> int:
    """Digits after the point that tell values apart, or, up to so many, all that they have.

    >>> digits_apart([3.72013, 3.80]), digits_apart([25, 6.254], 2), digits_apart([1, 300])
    (4, 2, 0)
    """
    if all(value == int(value) for value in values):
        return 0
    if most_exact is not None:
        ends = (f"{value:.{most_exact}f}".rstrip("0").partition(".")[2] for value in values)
        return max(map(len, ends))
    largest = max(map(abs, values))
    spread = max(values) - min(values) or largest
    wanted = max(math.ceil(2 - math.log10(spread)), 3 - math.floor(math.log10(largest)))
    return min(_MOST_DIGITS, max(0, wanted))


def axis_digits(values: Sequence[Any]) -> int:
    """Digits after the point of values that a sweep file gives, six digits of each.

    >>> axis_digits([25, 6.25]), axis_digits([10, 50 / 3]), axis_digits([1, 2])
    (2, 4, 0)
    """
    ends = [len(f"{value:.6g}".partition(".")[2].partition("e")[0]) for value in values]
    return min(_MOST_DIGITS, max(ends, default=0))


def n_digits(values: Iterable[Any]) -> int:
    """Significant digits that tell values of an axis apart.

    All that a file gives, up to six; of what steps give three and more.

    >>> n_digits([1.25, 100]), n_digits([1 + 7 * i / 93 for i in range(94)]), n_digits(["a"])
    (12, 3, 12)
    """
    numbers = {float(value) for value in values if is_number(value)}
    texts = (f"{value:.{_MANY_DIGITS}g}".partition("e")[0] for value in numbers)
    if all(sum(map(str.isdigit, text.lstrip("-0."))) <= _DIGITS for text in texts):
        return _MANY_DIGITS
    least = max(_FEW_DIGITS, len(f"{max(map(abs, numbers)):.0f}"))  # No 1.2e+03.
    enough = (
        n
        for n in range(least, _MANY_DIGITS)
        if len({f"{x:.{n}g}" for x in numbers}) == len(numbers)
    )
    return next(enough, _MANY_DIGITS)


def proportional(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether one figure is a multiple of another one; both may be missing.

    >>> proportional([1.0, None, 2.0], [3.0, None, 6.0]), proportional([1.0, 2.0], [1.0, 1.0])
    (True, False)
    """
    pairs = [(a, b) for a, b in zip(values, others, strict=True) if (a, b) != (None, None)]
    if not pairs or not all(a and b for a, b in pairs):
        return False
    ratios = [a / b for a, b in pairs]
    return bool(max(ratios) <= min(ratios) * (1 + SAME))


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def plain(value: Any) -> Any:
    """A value for JSON and for people."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) or value is None else visible(as_in_file(str(value)))


def axis_units(results: Results) -> dict[str, str]:
    """Units of axes: what the plan writes behind each of their placeholders, as ``{nic} GB/s``."""
    spec = results.manifest["spec"]
    text = json.dumps(spec["base"])
    found = {}
    for axis in results.axes:
        uses = re.findall(rf"\{{\s*{re.escape(axis)}\s*\}}\s*([A-Za-z$%/]*)", text)
        if len({*uses}) == 1 and any(uses[0] in kind for kind in UNITS.values()):
            found[axis] = uses[0]
    return found


def axis_title(results: Results, axis: str) -> str:
    """An axis of a figure, with its unit."""
    unit = axis_units(results).get(axis)
    return f"{visible(axis)}, {unit}" if unit else visible(axis)


def swept_words(results: Results) -> tuple[str, str]:
    """The name of a sweep, and what it sweeps."""
    manifest = results.manifest
    base, axes = manifest["spec"]["base"], manifest["spec"]["axes"]
    fabric = base.get("fabric")
    topology = fabric.get("topology") if isinstance(fabric, dict) else None
    fixed = [one for one in (base.get("workload"), topology) if isinstance(one, str)]
    what = " on ".join(visible(one) for one in fixed if "{" not in one)
    kept = {name: _kept(results, name, values) for name, values, *_ in axes}
    over = ", ".join(axis_words(name, some) for name, some in kept.items() if len(some) > 1)
    n_all = manifest["n_designs"]
    n_own = n_all if results.kept is None and not results.where else results.n_rows
    n = f"{n_own:,} of {n_all:,}" if n_own < n_all and not results.where else f"{n_own:,}"
    words = f"{n} designs over {over}" if over else f"{n} design{'' if n == '1' else 's'}"
    words += f" where {' and '.join(map(visible, results.where))}" if results.where else ""
    return visible(results.name), f"{what}: {words}" if what else words


def _kept(results: Results, axis: str, values: Sequence[Any]) -> Sequence[Any]:
    """Values of an axis that ``where`` leaves, of a run that is finished."""
    if axis not in results.columns or results.n_parts_done < results.manifest["n_parts"]:
        return values
    left = {row[0] for row in results.sql(f"SELECT DISTINCT {sql_name(axis)} FROM designs").rows}
    return [x for x in values if (cell(x) if isinstance(x, dict | list) else x) in left] or values
