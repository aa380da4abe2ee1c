"""``libra-planner``: arguments, exit codes and where output goes.

A command's module is loaded where the command is run: ``--help`` loads none, and ``evaluate`` never
a solver.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, NoReturn

from libra_planner import __version__
from libra_planner.cli.arguments.commands import (
    COMMANDS,
    add_commands,
    command_of,
    flags_of,
    owners_of,
)
from libra_planner.cli.arguments.helping import PROGRAM, formatter, help_text
from libra_planner.cli.arguments.making import find_files
from libra_planner.cli.streams import BAD_INPUT, exit_code_of, safe_stderr
from libra_planner.errors import close_names
from libra_planner.plain_text import joined, short_text, visible
from libra_planner.processes import kept_interrupts, uncollected

_NEGATIVE = re.compile(r"-[.0-9]")
_WRONG_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)
_WRONG_FLAG = re.compile(r"unrecognized arguments:.*?(--?[a-z][^ =]*)", re.DOTALL)
_STRAY = re.compile(r"unrecognized arguments: ([^\s-].*)", re.DOTALL)
_STRAY_SETTING = re.compile(r"unrecognized arguments: ([A-Za-z][\w.]*=\S+)")
_NO_VALUE = re.compile(r"argument (?:\S+/)?(--?[a-z][^ :]*): expected one argument")
_QUOTED = re.compile(r"[\w-]+")
_SHAPES = {
    "--size": re.compile(r"[0-9.]+[kKMGT]?i?B"),
    "--bandwidth": re.compile(r"[0-9.]+(,[0-9.]+)+"),
}
"""What values of options look like."""
_ELSEWHERE = {"--npu": "--system", "--nic": "--fabric"}
"""Options of some commands, and those of others that say the same."""
_RULES = {"--taper": "; in a plan it is a rule, such as taper(spine) == 2"}
"""What plans say in place of an option of other commands."""
_LONGEST_MESSAGE = 2000
"""Letters of what is wrong with the arguments."""


def main(
    arguments: Sequence[str] | None = None, *, at_interrupt: Callable[[int], int] = int
) -> int:
    """Run one command; returns the exit code (0, 2, 3, 4 or 130; 1 for our own faults).

    ``at_interrupt`` is asked for the code after an interrupt, while all that was interrupted is
    still in memory: to end the process there.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # A terminal without Unicode still gets it all.
    with safe_stderr():
        return _exit_code(sys.argv[1:] if arguments is None else arguments, at_interrupt)


def _exit_code(arguments: Sequence[str], at_interrupt: Callable[[int], int]) -> int:
    if sys.stdout is None:
        print("libra-planner: cannot write the result: stdout is closed", file=sys.stderr)
        return BAD_INPUT
    options = argparse.Namespace()
    try:
        with kept_interrupts():
            _run(arguments, options)
    except (Exception, KeyboardInterrupt) as error:
        code = exit_code_of(error, arguments, getattr(options, "plan", None))
        return code if isinstance(error, Exception) else at_interrupt(code)
    return 0


def _run(arguments: Sequence[str], options: argparse.Namespace) -> None:
    try:
        parser = command_parser(arguments)
        if not arguments:
            parser.print_help(sys.stderr)
            raise SystemExit(BAD_INPUT)
        parser.parse_args(_joined_negatives(arguments), options)
    except SystemExit:
        sys.stdout.flush()  # Of --help and --version.
        raise
    find_files(options)
    with uncollected():
        run = resolve_name(f"libra_planner.cli.{options.call}")
    run(options)
    sys.stdout.flush()


def _joined_negatives(arguments: Sequence[str]) -> list[str]:
    """Arguments with lists that begin with a minus joined to their flag.

    ``argparse`` takes ``-1,3`` for an option and says no more than that a value is missing.

    >>> _joined_negatives(["check", "p.yaml", "--bandwidth", "-1,3"])
    ['check', 'p.yaml', '--bandwidth=-1,3']
    """
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--bandwidth" and _NEGATIVE.match(argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


_SAID_FOR = {"prices": ("parts", "cost-models"), "quotes": ("parts",), "models": ("workloads",)}
"""Choices that other words stand for, which are not spelled alike."""


class _Parser(argparse.ArgumentParser):
    """A parser that does not hide that it cannot write, and shows what it was given."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=formatter, **settings)

    command: str = ""
    """The command that is named, with the program's name."""

    flags: Sequence[str] = ()
    """Of the command that is named, to suggest one for a wrong one."""

    options: Mapping[str, Mapping[str, Any]] = {}
    """What each option of the command is, to say what one takes that has no value."""

    whole_help = ""
    """Of the program, which lists its commands in its own way."""

    def format_help(self) -> str:
        return self.whole_help or super().format_help()

    def error(self, message: str) -> NoReturn:
        near = f"; did you mean {' or '.join(meant)}?" if (meant := self._meant(message)) else ""
        if not near and (found := _WRONG_FLAG.search(message)):
            near = _elsewhere_text(found[1])
        if self.command:  # What no command takes is found by the parser of the program.
            self.prog, self.usage = self.command, f"{self.command} [options]"
        super().error(visible(short_text(message, _LONGEST_MESSAGE)) + near + self._value(message))

    def _value(self, message: str) -> str:
        """What an option takes that was given without a value."""
        found = _NO_VALUE.search(message)
        option = self.options.get(found[1]) if found else None
        if found is None or option is None:
            return ""
        choices = ",".join(map(str, option.get("choices", ())))
        value = f"{{{choices}}}" if choices else option.get("metavar")
        return f"; write {found[1]} {value}: {option['help']}"

    def _meant(self, message: str) -> list[str]:
        """What a wrong command, choice or flag may stand for."""
        if found := _WRONG_CHOICE.search(message):
            choices = _QUOTED.findall(found[2])
            if known := [x for x in _SAID_FOR.get(found[1], ()) if x in choices]:
                return known
            return close_names(found[1], choices)
        if (found := _STRAY_SETTING.search(message)) and "--set" in self.flags:
            return [f"--set {found[1]}"]
        if found := _STRAY.search(message):
            flagged = [_flagged(word, self.flags) for word in found[1].split()]
            return [" ".join(filter(None, flagged))] if any(flagged) else []
        found = _WRONG_FLAG.search(message)
        return _close_flags(found[1], self.flags) if found else []

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            (file or sys.stderr).write(message)


def _close_flags(word: str, flags: Sequence[str]) -> list[str]:
    """Flags that a wrong one begins, or has the initials of, with or without an s; else near ones.

    >>> _close_flags("--json", ["--json-progress", "--jobs"])
    ['--json-progress']
    >>> _close_flags("--gbs", ["--gpus", "--global-batch"]), _close_flags("--gpu", ["--gpus"])
    (['--global-batch'], ['--gpus'])
    """
    if begun := [flag for flag in flags if flag.startswith(f"{word}-")]:
        return begun
    if _ELSEWHERE.get(word) in flags:
        return [_ELSEWHERE[word]]
    names = [flag.removeprefix("--").split("-") for flag in flags]
    initials = ["".join(part[:1] for part in name) if name[1:] else "" for name in names]
    letters = word.lstrip("-")
    if word in _RULES or (word not in flags and owners_of(word)):
        return []
    meant = {letters, letters.removesuffix("s")} - {""}
    return [x for x, own in zip(flags, initials, strict=True) if own in meant] or close_names(
        word, flags
    )


def _elsewhere_text(flag: str) -> str:
    """Which commands have an option, and what a plan says in its place; empty where none does.

    >>> _elsewhere_text("--hosts"), _elsewhere_text("--no-such")
    ('; --hosts belongs to fabric', '')
    """
    owners = owners_of(flag)
    if not owners:
        return ""
    listed = joined(owners, "and") if owners[1:] else owners[0]
    return f"; {flag} belongs to {listed}{_RULES.get(flag, '')}"


def _flagged(word: str, flags: Sequence[str]) -> str:
    """The option that a word which stands alone is of, with the word; empty where none is known.

    >>> _flagged("llama3-405b", ["--model", "--npu"]), _flagged("llama3-405b", ["--npu"])
    ('--model llama3-405b', '')
    >>> [_flagged(word, ["--kind", "--size"]) for word in ("allreduce", "64MiB", "3,1")]
    ['--kind all-reduce', '--size 64MiB', '']
    """
    from libra_planner.fabric.blocks import CollectiveKind
    from libra_planner.plan.npus import catalogue
    from libra_planner.reading import bundled

    for flag, shape in _SHAPES.items():
        if flag in flags and shape.fullmatch(word):
            return f"{flag} {word}"
    known = {"--kind": tuple(CollectiveKind), "--model": bundled.names("workloads")}
    known["--npu"] = tuple(catalogue().npus)
    meant = {flag: close_names(word, names) for flag, names in known.items() if flag in flags}
    return next((f"{flag} {name}" for flag, names in meant.items() for name in names[:1]), "")


def command_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """What reads a command line; it knows the arguments of the commands that are named there."""
    parser = _Parser(prog=PROGRAM, allow_abbrev=False)
    parser.whole_help = help_text({name: about for name, (_, about, _) in COMMANDS.items()})
    parser.add_argument("--version", action="version", version=__version__)
    parser.flags = flags_of(arguments)
    parser.command = f"{PROGRAM} {name}" if (name := command_of(arguments)) else ""
    add_commands(parser, COMMANDS, arguments, "COMMAND")
    return parser
