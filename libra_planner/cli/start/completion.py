"""``libra-planner completion``: scripts that complete commands, flags, files and bundled names."""

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
        if kinds := getattr(action.type, "kinds", ()):
            names = " ".join(name for kind in kinds for name in bundled.names(kind))
            setattr(action, "complete", _names_and_files(names))  # noqa: B010 - shtab reads it.
    print(shtab.complete(parser, shell=options.shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        inside = action.choices.values() if isinstance(action.choices, Mapping) else ()
        for one in inside:
            if isinstance(one, argparse.ArgumentParser):
                yield from _actions(one)


def _names_and_files(names: str) -> dict[str, object]:
    """How each shell completes one of some names, or a path."""
    function = f"_libra_planner_{crc32(names.encode()):x}"
    bash = f'{function}() {{ compgen -W "{names}" -- "$1"; compgen -f -- "$1"; }}'
    return {
        "bash": function,
        "zsh": f"{{compadd -- {names}; _files}}",
        "fish": f"(printf '%s\\n' {names}; __fish_complete_path (commandline -ct))",
        "preamble": {"bash": bash},
    }
