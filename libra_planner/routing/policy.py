"""Routing policies: the registry of what they are, and one with its settings.

Commands list policies before they load numpy, so that this module imports nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from numbers import Real
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

from libra_planner.allowed import HASHES
from libra_planner.errors import Fault, SpecError, UnknownName, wrong_word
from libra_planner.registry import Registry


@dataclass(frozen=True)
class PolicyKind:
    """What a policy is.

    Parameters
    ----------
    name : what users write.
    finder : where what finds the paths is, such as ``package.module:function``. It is
        called with a fabric, its flows, and by name whichever it takes of ``where`` (the flows'
        :func:`~libra_planner.fabric.clos.hops`), ``seed``, ``policy`` and each of its settings.
        It returns a :class:`~libra_planner.fabric.clos.Choice`, with a
        :class:`~libra_planner.routing.loads.Bound` of it or without one, or
        the :class:`~libra_planner.routing.routes.Routing` of sprayed flows.
    options : of :data:`OPTIONS`, those that it reads.
    is_drawn : whether another seed gives other paths.
    knows_all_flows : whether paths are given with all flows in view; else every switch decides
        by itself.
    keeps_flows_whole : whether all packets of a flow take one path, so that FIM has a floor.
    finds_paths : whether flows do not have to bring their paths.
    is_search : whether it tries so much that people notice the time.
    """

    name: str
    finder: str
    options: tuple[str, ...] = ()
    is_drawn: bool = False
    knows_all_flows: bool = True
    keeps_flows_whole: bool = True
    finds_paths: bool = True
    is_search: bool = False

    @property
    def reads_headers(self) -> bool:
        """Whether addresses and ports decide about paths."""
        return "hash" in self.options

    @cached_property
    def _finder_and_names(self) -> tuple[Callable[..., Any], tuple[str, ...]]:
        found = resolve_name(self.finder)
        return found, tuple(signature(found).parameters)

    def found(self, fabric: Any, flows: Any, known: Mapping[str, Any]) -> Any:
        """What the finder returns for flows; ``known`` holds what it may take beside them."""
        finder, names = self._finder_and_names
        return finder(fabric, flows, **{name: known[name] for name in names if name in known})


POLICIES: Registry[PolicyKind] = Registry("policy")
"""Policies by name."""


def register(kind: PolicyKind) -> PolicyKind:
    """Let users name a policy.

    Raises
    ------
    ValueError
        For a name that another policy has.
    """
    POLICIES.add(kind, kind.name)
    return kind


_ECMP = ("hash", "shared_seed", "enhanced")
_BALANCE = ("per_collective", "count_flows")
_ROOM = "libra_planner.routing"
for _kind in (
    PolicyKind("ecmp", f"{_ROOM}.ecmp:ecmp", _ECMP, is_drawn=True, knows_all_flows=False),
    PolicyKind("pinned", f"{_ROOM}.routes:pinned", knows_all_flows=False, finds_paths=False),
    PolicyKind("spray", f"{_ROOM}.routes:spray", knows_all_flows=False, keeps_flows_whole=False),
    PolicyKind("greedy", f"{_ROOM}.assignment:greedy", _BALANCE),
    PolicyKind("edge_coloring", f"{_ROOM}.assignment:edge_coloring", _BALANCE),
    PolicyKind("ilp", f"{_ROOM}.integer:min_max_ilp", ("time_limit",), is_search=True),
    PolicyKind(
        "two_level_max_min",
        f"{_ROOM}.fairness:two_level_max_min",
        ("time_limit",),
        is_search=True,
    ),
    PolicyKind("annealing", f"{_ROOM}.assignment:annealing", is_drawn=True, is_search=True),
):
    register(_kind)

OPTIONS = MappingProxyType(
    {
        "hash": "{}: the switches' hash; crc and xor are linear, so that a seed only shifts them "
        "(default murmur)",
        "shared_seed": "{}: one hash seed for all switches, which polarizes",
        "enhanced": "{}: hash the queue pair too",
        "per_collective": "{}: balance each collective by itself",
        "count_flows": "{}: balance numbers of flows, and not bytes, where sizes differ",
        "time_limit": "{}: seconds that a search may take; default 10",
    }
)
"""Options beside a policy's name, and what each is, for the policies that read it."""


def readers(option: str) -> list[str]:
    """The policies that read an option.

    >>> readers("per_collective")
    ['greedy', 'edge_coloring']
    """
    return [kind.name for kind in POLICIES.values() if option in kind.options]


def option_words(option: str) -> str:
    """What an option is, with the policies that read it.

    >>> option_words("enhanced")
    'ecmp: hash the queue pair too'
    """
    return OPTIONS[option].format(", ".join(readers(option)))


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
    count_flows : whether these two balance numbers of flows where flows differ in size.
    time_limit_s : of ``ilp``.

    Raises
    ------
    UnknownName
        For a name, or a hash function, that is none of these.
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
    count_flows: bool = False
    time_limit_s: float = 10.0

    def __post_init__(self) -> None:
        POLICIES[self.name]
        if self.hash not in HASHES:
            raise UnknownName(wrong_word(self.hash, HASHES, "hash"))
        if isinstance(self.time_limit_s, bool) or not isinstance(self.time_limit_s, Real):
            expected, fix = "expected a number of seconds", "write e.g. time_limit_s=10"
            raise SpecError(Fault(f"got {self.time_limit_s!r}", expected, fix, "time_limit_s"))
        if not self.time_limit_s > 0:
            got = f"got a time limit of {self.time_limit_s:g} s"
            raise SpecError(Fault(got, "expected > 0", path="time_limit_s"))

    @property
    def kind(self) -> PolicyKind:
        """What it is."""
        return POLICIES[self.name]


def policy_with(options: Mapping[str, Any], *, said: str = "policy") -> Policy:
    """The policy of options as users give them.

    Parameters
    ----------
    options : ``policy`` and any of :data:`OPTIONS`; ``None`` and ``False`` are not given.
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
    given = {key: options.get(key) for key in OPTIONS}
    given = {key: value for key, value in given.items() if value is not None and value is not False}
    for key in given:
        if key not in POLICIES[name].options:
            expected = f"expected {' or '.join(readers(key))}"
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
