"""What options say about routing, read."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from libra_planner.cli.arguments.making import flag_of
from libra_planner.errors import Fault, Place, SpecError

if TYPE_CHECKING:
    from libra_planner.routing.policy import Policy
    from libra_planner.studies.checks import LinkQuestion


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
    from libra_planner.routing.policy import policy_with, readers

    before = f"{file}: " if file else ""

    def placed(fault: Fault) -> Fault:
        name = flag if fault.path == "policy" else flag_of(fault.path)
        return replace(fault, path="", place=Place(f"{before}{name}"))

    try:
        policy = policy_with(vars(options), said=flag)
    except SpecError as error:
        raise type(error)(*map(placed, error.faults)) from None
    asked = [
        x for x in ("npus_per_address", "source_ports") if getattr(options, x, None) is not None
    ]
    if not policy.kind.reads_headers and asked:
        expected = f"expected {' or '.join(readers('hash'))}: no other policy reads addresses"
        fault = Fault(f"got {flag} {policy.name}", expected, "leave one out", asked[0])
        raise SpecError(placed(fault))
    return policy


def link_question(options: argparse.Namespace, policy: Policy) -> LinkQuestion:
    """What the options ask about links."""
    from libra_planner.studies.checks import LinkQuestion

    names = {*LinkQuestion.__dataclass_fields__} - {"policy", "settings"}
    asked = {name: value for name, value in vars(options).items() if name in names}
    return LinkQuestion(policy, tuple(options.settings), **asked)
