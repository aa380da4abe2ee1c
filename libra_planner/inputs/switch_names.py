"""Names of switches and of their ports, as tracers and switch operating systems write them."""

from __future__ import annotations

import re

_KINDS = (
    r"(?:\w*gig(?:abit)?e(?:thernet)?|ethernet|eth|et|xe|ge|fe|ae|po|port-?channel|port|swp|bond|lag"
    r"|gi|te|tw|fo|hu|fh|en[ops])"
)
_PORT = re.compile(rf"{_KINDS}[-_ ]?\d+(?:[/:.,s-]\d+)*", re.IGNORECASE)
"""Such as ``Ethernet1/49``, ``et-0/0/1``, ``swp1s0``, ``HundredGigE0/0/0/3``."""

_ON_DEVICE = re.compile(rf"(.*?[^\W_].*?)[\s:/|@,._-]+({_PORT.pattern})", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)[\W_]*[0-9]+\D*")
_WORD = re.compile(r"[^\W\d_]+")
_TIERS = ("host", "leaf", "spine", "core")


def is_port(name: str) -> bool:
    """Whether a name is that of a port, and of no switch.

    >>> [is_port(name) for name in ("Ethernet1/49", "et-0/0/1", "swp1s0", "leaf1", "et")]
    [True, True, True, False, False]
    """
    return _PORT.fullmatch(name.strip()) is not None


def device(name: str) -> str:
    """A switch without the port that is named after it.

    >>> device("leaf1:Ethernet1/49"), device("pod1-leaf2 et-0/0/1"), device("leaf-12")
    ('leaf1', 'pod1-leaf2', 'leaf-12')
    """
    match = _ON_DEVICE.fullmatch(name.strip())
    return match[1] if match else name.strip()


def tier(switch: str) -> str:
    """The tier that a switch's name says: a word for one in it, else what is before its number.

    The last of several such words counts. Small letters.

    >>> tier("Leaf3"), tier("dc1-spine-12.net"), tier("core"), tier("tor-7"), tier("t0-4")
    ('leaf', 'spine', 'core', 'tor', 't0')
    """
    known: list[str] = [word for word in _WORD.findall(switch.casefold()) if word in _TIERS]
    if known:
        return known[-1]
    match = _NUMBERED.fullmatch(switch)
    before: str = match[1] if match else ""
    return (before or switch).casefold()
