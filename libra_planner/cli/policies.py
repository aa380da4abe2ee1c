"""The routing policy that options name, and the options that belong to a policy."""

from __future__ import annotations

import argparse
from dataclasses import replace

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.routing.policy import Policy, policy_with, readers


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
