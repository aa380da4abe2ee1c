"""Arguments that several commands share, and what they mean; imports nothing that takes time."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.routing.policy import HASHES, OPTIONS, POLICIES, Policy, policy_with, readers

if TYPE_CHECKING:
    from libra_planner.studies.checks import LinkQuestion

BANDWIDTH = "GB/s per NPU of every dimension, innermost first"
SEEDS = (
    "statistics of N routings, with seeds from --seed on; default: the mean of 10 routings, fewer "
    "where flows are very many"
)
SEED = "seed of one routing, or with --seeds of the first"
_NEGATIVE = re.compile(r"-[.0-9]")


class Commands(Protocol):
    """What commands are added to."""

    def add_parser(self, name: str, **about: Any) -> Any:
        """Have one more."""


def command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    """A command that calls ``run`` with its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add one plan, and settings of it."""
    parser.add_argument("plan", metavar="PLAN", help="plan file (YAML)")
    add_settings(parser)


def add_settings(parser: argparse.ArgumentParser, subject: str = "the plan") -> None:
    """Add ``--set`` for values of the subject, and ``--json``."""
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"override a value of {subject}; KEY is a dotted path, VALUE is YAML or JSON",
    )
    add_json(parser)


class Takes(Protocol):
    """A parser, or a group of a parser's arguments."""

    def add_argument(self, *flags: str, action: str, help: str) -> Any:  # noqa: A002
        """Have one more."""


def add_json(parser: Takes) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_traffic(parser: argparse.ArgumentParser) -> None:
    """Draws of the routing, and how NPUs use their NICs."""
    for flag, default, numbers, what in (
        ("--seeds", None, whole(1, 1_000_000), SEEDS),
        ("--seed", None, whole(0, 2**32 - 1), SEED),
        ("--queue-pairs", None, whole(1, 128), "per connection (default: the plan's, else 1)"),
        ("--npus-per-address", None, whole(1, 1024), "that share an IP address (default: same)"),
    ):
        parser.add_argument(flag, type=numbers, default=default, metavar="N", help=what)
    parser.add_argument(
        "--placement",
        choices=("contiguous", "rail", "random"),
        help="of the job's NPUs (default: the plan's, else contiguous)",
    )


def add_policy(parser: argparse.ArgumentParser, name: str = "--policy", goal: str = "") -> None:
    """How flows find their paths."""
    *names, last = POLICIES
    default = None if goal else Policy().name
    text = f"{goal}{', '.join(names)} or {last}" + ("" if goal else f"; default {default}")
    parser.add_argument(name, dest="policy", default=default, metavar="POLICY", help=text)
    kinds: dict[str, dict[str, Any]] = {
        "hash": {"choices": HASHES},
        "time_limit": {"type": float, "metavar": "S"},
    }
    for option, about in OPTIONS.items():
        what = about.format(", ".join(readers(option)))
        kind = kinds.get(option, {"action": "store_true"})
        parser.add_argument(f"--{option.replace('_', '-')}", help=what, **kind)


def whole(least: int, most: int) -> Callable[[str], int]:
    """What reads a whole number of an option."""

    def read(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) < 20
        if not (digits and least <= int(text) <= most):
            expected = f"expected a whole number from {least} to {most}"
            raise argparse.ArgumentTypeError(f"got {text!r}, {expected}")
        return int(text)

    return read


def joined_negatives(arguments: Sequence[str]) -> list[str]:
    """Arguments with lists that begin with a minus joined to their flag.

    ``argparse`` takes ``-1,3`` for an option and says no more than that a value is missing.

    >>> joined_negatives(["check", "p.yaml", "--bandwidth", "-1,3"])
    ['check', 'p.yaml', '--bandwidth=-1,3']
    """
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--bandwidth" and _NEGATIVE.match(argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def policy_of(options: argparse.Namespace, *, flag: str = "--policy", file: str = "") -> Policy:
    """The routing policy that the options name.

    Parameters
    ----------
    flag : the option with its name.
    file : that faults begin with.

    Raises
    ------
    SpecError
        For an unknown one, and for options that it does not read.
    """
    before = f"{file}: " if file else ""

    def placed(fault: Fault) -> Fault:
        name = flag if fault.path == "policy" else flag_of(fault.path)
        return replace(fault, path="", place=Place(f"{before}{name}"))

    try:
        policy = policy_with(vars(options), said=flag)
    except SpecError as error:
        raise type(error)(*map(placed, error.faults)) from None
    if not policy.kind.reads_headers and getattr(options, "npus_per_address", None) is not None:
        expected = f"expected {' or '.join(readers('hash'))}: no other policy reads addresses"
        fault = Fault(f"got {flag} {policy.name}", expected, "leave one out", "npus_per_address")
        raise SpecError(placed(fault))
    return policy


def flag_of(name: str) -> str:
    """The flag of an option.

    >>> flag_of("time_limit")
    '--time-limit'
    """
    return f"--{name.replace('_', '-')}"


def link_question(options: argparse.Namespace, policy: Policy) -> LinkQuestion:
    """What the options ask about links."""
    from libra_planner.studies.checks import LinkQuestion

    names = {*LinkQuestion.__dataclass_fields__} - {"policy", "settings"}
    asked = {name: value for name, value in vars(options).items() if name in names}
    return LinkQuestion(policy, tuple(options.settings), **asked)


def source(options: argparse.Namespace) -> dict[str, Any]:
    """The plan and its settings, with which a result can be used again."""
    return {"plan": str(Path(options.plan).resolve()), "set": options.settings}
