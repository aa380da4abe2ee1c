"""Routing policies: their names and settings."""

from __future__ import annotations

from dataclasses import dataclass

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
