"""Options and arguments of commands, as data."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os.path import abspath
from typing import Any, NamedTuple

from libra_planner.allowed import SHARE_WORDS, is_share
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.reading import bundled

Argument = tuple[Sequence[str], Mapping[str, Any]]
"""Names of an argument, and the rest of what ``add_argument`` takes."""


class Titled(NamedTuple):
    """Arguments that stand in the help under a title of their own."""

    title: str
    arguments: Sequence[Argument | list[Argument]]


Arguments = Iterable[Argument | list[Argument] | Titled]
"""In the order of the help; of those in a list only one can be given."""
Commands = Mapping[str, tuple[str, str, Callable[[], "Arguments | Commands"]]]
"""By name: a command's function (``module:function``), what it does, and what it takes."""


def whole(least: int, most: int) -> Callable[[str], int]:
    """What reads a whole number of an option."""

    def read(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) < 20
        if not (digits and least <= int(text) <= most):
            expected = f"expected a whole number from {least} to {most}"
            raise argparse.ArgumentTypeError(f"got {text!r}, {expected}")
        return int(text)

    return read


def text(names: str, metavar: str, what: str, **more: Any) -> Argument:
    """An option of any text; a name without dashes is an argument."""
    return names.split(), {"metavar": metavar, "help": what} | more


class GivenFile(str):
    """What was written for a file; the file is looked for when all arguments are read."""

    kinds: Sequence[str] = ()

    def path(self) -> str:
        """The file itself, as :func:`~libra_planner.reading.bundled.given_file` finds it."""
        return bundled.given_file(str(self), self.kinds)


def given(name: str, metavar: str, what: str, kinds: Sequence[str], **more: Any) -> Argument:
    """An argument that is a path, or the name of a bundled file of some kinds."""
    return text(name, metavar, what, type=type("GivenFile", (GivenFile,), {"kinds": kinds}), **more)


def find_files(options: argparse.Namespace) -> None:
    """Put the files in the place of what was written for them, and the vector of a design.

    Raises
    ------
    SpecError
        For a name that is no file and not bundled, or a design where a plan is meant.
    """
    _split_designs(options)
    for name, value in vars(options).items():
        if isinstance(value, GivenFile):
            setattr(options, name, value.path())
        elif isinstance(value, list):
            paths = [one.path() if isinstance(one, GivenFile) else one for one in value]
            setattr(options, name, paths)


def _split_designs(options: argparse.Namespace) -> None:
    """Make ``PLAN@B1,B2`` the plan and ``--bandwidth``, for commands that have that."""
    for name, value in list(vars(options).items()):
        written = value if isinstance(value, list) else [value]
        files = [one for one in written if isinstance(one, GivenFile)]
        parts = [bundled.design_parts(one) for one in files]
        if not any(vector for _, vector in parts):
            continue
        one_for_all = getattr(options, "bandwidth", None) or max(vector for _, vector in parts)
        for file, (plan, vector) in zip(files, parts, strict=True):
            if not hasattr(options, "bandwidth"):
                _refuse_design(file, plan)
            _refuse_vector(file, plan, vector, one_for_all)
        options.bandwidth = one_for_all
        alone = [type(file)(plan) for file, (plan, _) in zip(files, parts, strict=True)]
        setattr(options, name, alone if isinstance(value, list) else alone[0])


def _refuse_design(file: GivenFile, plan: str) -> None:
    """Refuse a design where a plan alone is meant."""
    if file.kinds == bundled.SWEEPS:
        raise SpecError.at(file, "got a design", "expected a sweep", f"write {plan}")
    fix = f"write {plan}; evaluate, check and report take {file}"
    raise SpecError.at(file, "got a design", "expected a plan", fix)


def _refuse_vector(file: GivenFile, plan: str, vector: str, one_for_all: str) -> None:
    """Refuse a result in a vector's place, or another vector than the one of the command."""
    if vector.endswith(".json"):
        got, fix = "got a result", f"write --bandwidth with its bandwidth_GBps, or report {file}"
        raise SpecError.at(file, got, f"expected {plan}@B1,B2,... in GB/s", fix)
    if vector != one_for_all:
        got = f"got {vector or 'no vector'} here, and {one_for_all} elsewhere"
        fix = f"write {plan}@{one_for_all}, or one --bandwidth alone"
        raise SpecError.at(file, got, "expected one vector for all", fix)


def number(names: str, least: int, most: int, what: str, **more: Any) -> Argument:
    """An option of a whole number."""
    return names.split(), {"type": whole(least, most), "metavar": "N", "help": what} | more


def number_or_share(names: str, least: int, most: int, what: str, **more: Any) -> Argument:
    """The same, or a share such as ``5%``, which stays text."""
    count = whole(least, most)

    def read(text: str) -> int | str:
        if is_share(text):
            return text
        try:
            return count(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}{SHARE_WORDS}") from None

    return names.split(), {"type": read, "metavar": "N|P%", "help": what} | more


def switch(name: str, what: str, **more: Any) -> Argument:
    """An option that is given or not."""
    return [name], {"action": "store_true", "help": what} | more


def choice(name: str, choices: Sequence[str], what: str | None = None, **more: Any) -> Argument:
    """An option of one of a few words."""
    return [name], {"choices": choices, "help": what} | more


def flag_of(name: str) -> str:
    """The flag of an option.

    >>> flag_of("time_limit")
    '--time-limit'
    """
    return f"--{name.replace('_', '-')}"


def on_flag(fault: Fault, columns: Mapping[str, str], otherwise: str) -> Fault:
    """A fault of a column as one of its flag.

    Parameters
    ----------
    fault : what is wrong, its path ends with the column.
    columns : by option.
    otherwise : place of what no option says.
    """
    if fault.place is not None:
        return fault
    names = {name: name for name in columns} | {column: name for name, column in columns.items()}
    name = names.get(fault.path.rpartition(".")[2])
    return replace(fault, path="", place=Place(flag_of(name) if name else otherwise))


def first_given(options: argparse.Namespace, names: Iterable[str]) -> str:
    """The flag of the first of some options that is given; empty without one."""
    values = {name: getattr(options, name) for name in names}
    given = (flag_of(name) for name, one in values.items() if one is not None and one is not False)
    return next(given, "")


BANDWIDTH = "GB/s per NPU of every dimension, innermost first"
"""What a list of bandwidths is."""
JSON = switch("--json", "print one JSON object")
"""How to get JSON."""
PRICES = "CSV or YAML file of your quotes, merged over price books, parts and NPUs"
"""What a file of quotes is."""
DAY = "day on which the quotes must hold, YYYY-MM-DD"
"""What the day of quotes is."""
PARTS = text("--parts", "CATALOGUE", "parts catalogue: a name or a path", default="parts")
"""Which parts there are to buy, and to quote."""


class Once(argparse.Action):
    """An option that is given once, as a second one would replace it; to a list it is added."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        _flag: str | None = None,
    ) -> None:
        """Set or add the value.

        Raises
        ------
        SpecError
            For an option that stands before, too.
        """
        flag = self.option_strings[0]
        given: frozenset[str] = getattr(namespace, _GIVEN, frozenset())
        if flag in given:
            got, fix = f"got {flag} twice", "put all rows into one file"
            fix = fix if flag == "--prices" else "remove one"
            raise SpecError.at(
                flag, got, "expected one, as the second would replace the first", fix
            )
        setattr(namespace, _GIVEN, given | {flag})
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*before, values] if isinstance(before, list) else values)


def plan_prices() -> tuple[Argument, ...]:
    """The user's prices, as settings of a plan, and their parts; files are in this folder."""
    more: dict[str, Any] = {"dest": "settings", "action": Once, "default": []}
    file = "quotes={}".format
    return (
        text("--prices", "QUOTES", PRICES, type=lambda x: file(json.dumps(abspath(x))), **more),
        text("--as-of", "DAY", DAY, type="as_of={}".format, **more),
        PARTS,
    )


def parts_words(options: argparse.Namespace) -> tuple[str, ...]:
    """The option of a catalogue that is not the bundled one.

    >>> parts_words(argparse.Namespace(parts="own.yaml"))
    ('--parts', 'own.yaml')
    """
    return ("--parts", options.parts) if options.parts != PARTS[1]["default"] else ()


_GIVEN = "_given"
"""Where a namespace has the options that were given."""
