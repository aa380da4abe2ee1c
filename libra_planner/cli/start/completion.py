"""``libra-planner completion``: scripts that complete commands, flags, names and paths."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from zlib import crc32

import shtab

from libra_planner.cli.arguments.commands import command_names
from libra_planner.cli.main import command_parser
from libra_planner.reading import bundled


def completion(options: argparse.Namespace) -> None:
    """Print the script of a shell."""
    parser = command_parser(command_names())
    for action in _actions(parser):
        if found := _completed(action):
            setattr(action, "complete", found)  # noqa: B010 - shtab reads it.
    print(shtab.complete(parser, shell=options.shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        inside = action.choices.values() if isinstance(action.choices, Mapping) else ()
        for one in inside:
            if isinstance(one, argparse.ArgumentParser):
                yield from _actions(one)


_NAMED = {"DESIGN": bundled.PLANS, "FABRIC": bundled.FLOW_FABRICS}
"""Kinds of bundled files that an argument may name, by what the help calls it."""
_FILES = (
    *("CASES", "CONFIG", "CSV", "FILE", "KERNELS", "LOG", "OUT", "OUT.csv", "PLAN", "QUOTES"),
    *("RUNS", "SYSTEM", "TABLE.csv", "WORKLOAD"),
)
"""What the help calls paths of files."""


def _completed(action: argparse.Action) -> Mapping[str, object]:
    """How an argument is completed: a run directory, a file, or a bundled name; else nothing."""
    called = str(action.metavar)
    kinds = getattr(action.type, "kinds", ())
    if not action.option_strings:
        kinds = kinds or _NAMED.get(called, ())
    if kinds:
        return _names_and_files(" ".join(name for kind in kinds for name in bundled.names(kind)))
    if called == "DIR":
        return shtab.DIRECTORY
    return shtab.FILE if called in _FILES else {}


def _names_and_files(names: str) -> dict[str, object]:
    """How each shell completes one of some names, or a path."""
    # Of a function with "files" in its name bash writes a slash behind folders.
    function = f"_libra_planner_files_{crc32(names.encode()):x}"
    bash = f'{function}() {{ compgen -W "{names}" -- "$1"; compgen -f -- "$1"; }}'
    return {
        "bash": function,
        "zsh": f"{{compadd -- {names}; _files}}",
        "fish": f"(printf '%s\\n' {names}; __fish_complete_path (commandline -ct))",
        "preamble": {"bash": bash},
    }
