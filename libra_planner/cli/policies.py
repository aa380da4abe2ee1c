"""The routing policy that options name, and the options that belong to a policy."""

from __future__ import annotations

import argparse

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.flows.policy import Policy

_POLICIES_OF = {
    "hash": ("ecmp",),
    "shared_seed": ("ecmp",),
    "enhanced": ("ecmp",),
    "per_collective": ("greedy", "edge_coloring"),
    "time_limit": ("ilp",),
}
"""Policies that read an option; ``None`` or ``False`` is one that is not given."""

POLICY_OPTIONS = tuple(_POLICIES_OF)
"""Options that belong to a policy."""


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
    given = {name: value for name in _POLICIES_OF if (value := getattr(options, name))}
    if options.time_limit is not None:
        given["time_limit"] = options.time_limit
    try:
        policy = Policy(options.policy)
    except SpecError as error:
        raise error.located(Place(f"{before}{flag}")) from None
    for name in given:
        if policy.name not in _POLICIES_OF[name]:
            place = Place(f"{before}{flag_of(name)}")
            raise SpecError(_not_read(policy, _POLICIES_OF[name], flag).located(place))
    if "time_limit" in given:
        given["time_limit_s"] = given.pop("time_limit")
    try:
        return Policy(options.policy, **given)
    except SpecError as error:
        raise error.located(Place(f"{before}--time-limit")) from None


def _not_read(policy: Policy, readers: tuple[str, ...], flag: str) -> Fault:
    return Fault(f"got {flag} {policy.name}", f"expected {' or '.join(readers)}", "leave one out")


def flag_of(name: str) -> str:
    """The flag of an option.

    >>> flag_of("time_limit")
    '--time-limit'
    """
    return f"--{name.replace('_', '-')}"
