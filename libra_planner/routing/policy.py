"""Routing policies: their names and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from libra_planner.errors import Fault, SpecError, unknown_name

POLICIES = (
    "ecmp",
    "pinned",
    "spray",
    "greedy",
    "edge_coloring",
    "ilp",
    "two_level_max_min",
    "annealing",
)

POLICY_OPTIONS = MappingProxyType(
    {
        "hash": ("ecmp",),
        "shared_seed": ("ecmp",),
        "enhanced": ("ecmp",),
        "per_collective": ("greedy", "edge_coloring"),
        "time_limit": ("ilp",),
    }
)
"""Options beside a policy's name, and the policies that read each."""


@dataclass(frozen=True)
class Policy:
    """How flows find their paths.

    Parameters
    ----------
    name : one of :data:`POLICIES`.
    hash : the switches' hash function under ``ecmp``: murmur, crc32, crc16 or xor.
    shared_seed : whether all switches hash with one seed, which polarizes.
    enhanced : whether the hash reads the queue pair too.
    per_collective : whether ``greedy`` and ``edge_coloring`` balance each collective by
        itself (collective-aware load balancing).
    time_limit_s : of ``ilp``.

    Raises
    ------
    UnknownName
        For a name that is none of these.
    SpecError
        For a time limit that is not above 0.

    Examples
    --------
    >>> Policy("ecmp", hash="crc32")
    Policy(name='ecmp', hash='crc32', shared_seed=False, enhanced=False, ...)
    """

    name: str = "ecmp"
    hash: str = "murmur"
    shared_seed: bool = False
    enhanced: bool = False
    per_collective: bool = False
    time_limit_s: float = 10.0

    def __post_init__(self) -> None:
        if self.name not in POLICIES:
            raise unknown_name("policy", self.name, POLICIES)
        if not self.time_limit_s > 0:
            raise SpecError(Fault(f"got a time limit of {self.time_limit_s:g} s", "expected > 0"))

    @property
    def keeps_flows_whole(self) -> bool:
        """Whether all packets of a flow take one path, so that FIM has a floor."""
        return self.name != "spray"

    @property
    def is_drawn(self) -> bool:
        """Whether another seed gives other paths."""
        return self.name in ("ecmp", "annealing")


def policy_with(options: Mapping[str, Any], *, said: str = "policy") -> Policy:
    """The policy of options as users give them.

    Parameters
    ----------
    options : ``policy`` and any of :data:`POLICY_OPTIONS`; ``None`` and ``False`` are not given.
    said : what users call the policy's own option.

    Raises
    ------
    SpecError
        For an unknown policy, an option that it does not read, or a wrong value; the path of
        each fault is the option.

    Examples
    --------
    >>> policy_with({"policy": "greedy", "per_collective": True, "hash": None}).per_collective
    True
    """
    name = options["policy"]
    _made("policy", name)
    given = {key: options.get(key) for key in POLICY_OPTIONS}
    given = {key: value for key, value in given.items() if value is not None and value is not False}
    for key in given:
        if name not in POLICY_OPTIONS[key]:
            expected = f"expected {' or '.join(POLICY_OPTIONS[key])}"
            raise SpecError(Fault(f"got {said} {name}", expected, "leave one out", key))
    if "time_limit" in given:
        given["time_limit_s"] = given.pop("time_limit")
    return _made("time_limit", name, **given)


def _made(option: str, name: str, **given: Any) -> Policy:
    """A policy; its faults are those of an option."""
    try:
        return Policy(name, **given)
    except SpecError as error:
        raise type(error)(*(replace(fault, path=option) for fault in error.faults)) from None
