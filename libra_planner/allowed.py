"""The words, and the ranges of numbers, that options of commands and arguments in Python take.

Commands list them before they load numpy, so that this module imports nothing of the kind.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import Any, Protocol

from libra_planner.errors import Fault, refuse, wrong_word

MANY = 10**6
"""The most that most counts are taken for."""

PLACEMENTS = ("contiguous", "rail", "random")
"""How a job's NPUs sit on the switches; the first is the default, as of all words here."""
SOURCE_PORTS = ("own", "shared")
"""UDP source ports: each queue pair its own, or one for all."""
ALGORITHMS = ("library", "fastest", "compare")
"""What runs in a check where a plan names no algorithm."""
HASHES = ("murmur", "crc32", "crc16", "xor")
"""The hash functions of switches. Only ``murmur`` is not linear (C10)."""
INTERCONNECTS = ("infiniband", "ethernet")
"""What joins the nodes of measured clusters."""
COLLECTIVE_SCHEDULES = ("hierarchical", "ring", "direct")
"""Who sends to whom in a collective (C13)."""
PASSES = ("fwd", "bwd", "fwd+bwd")
"""Passes of a kernel."""
MATRIX_TYPES = ("bf16", "fp16", "fp8", "fp4")
"""Data types of the matrix multiplies of a training step."""
ATTENTION_FLOPS = ("full", "causal")
"""What of attention counts as work (C18)."""
ZERO_STAGES = ("0", "1", "2", "3")
RECOMPUTED = ("none", "selective", "full")
"""Activations that are computed again."""
PIPELINE_SCHEDULES = ("1f1b", "zb-h1", "zb-h2")

SEEDS = (1, MANY)
SEED = (0, 2**32 - 1)
QUEUE_PAIRS = (1, 128)
NPUS_PER_ADDRESS = (1, 1024)
FAILED = (0, MANY)
"""Cables, or spines, that fail."""
POINTS = (2, 1000)
"""Of a frontier."""
STRATEGIES = (1, 1000)
"""That a search ranks."""
REPORT_SEEDS = (1, 1000)
RUN_COUNT = (1, 10**7)
"""Degrees, batches and sizes of a model."""
KERNEL_COUNT = (1, 10**12)
"""Rows and columns of a kernel."""
TAPER = (1.0, 1000.0)
"""Links down over links up of a leaf."""
CHUNKS = (1, 65_536)
"""Equal parts of a collective's vector."""
BYTES = (0.001, 1e18)
LATENCY_NS = (0.0, 1e12)
NODES = (1, MANY)
NPUS_PER_NODE = (1, 1024)
NPUS_PER_HOST = (1, 1024)
NICS_PER_HOST = (1, 1024)
HOSTS = (1, MANY)
NPUS = (1, MANY)
RADIX = (2, 4096)
PLANES = (1, 64)
RESERVE = (0, MANY)
MANAGEMENT_LINKS = (0, MANY)
HOST_PORTS_PER_LEAF = (1, 4096)
TRANSCEIVERS_PER_FIBRE = (1, 2)
WORKERS = (0, 1024)
"""Processes of a sweep."""
BEST = (1, 10**9)
"""Designs of a sweep that are listed."""
ROW = (0, 10**12)
"""Of a sweep."""
CLOCK_NS = (0.0, 1e6)
TOKENS = (1.0, 1e18)
"""Of a training run."""


class Kind(Protocol):
    """What an argument takes."""

    def fault(self, name: str, value: Any) -> Fault | None:
        """What is wrong with a value; ``None`` for nothing."""


@dataclass(frozen=True)
class OneOf:
    """One of a few words; a whole number counts as its text.

    >>> OneOf(("0", "1")).fault("zero", 1), str(OneOf(("0", "1")).fault("zero", 7))
    (None, 'zero: got 7, expected 0 or 1')
    """

    words: tuple[str, ...]

    def fault(self, name: str, value: Any) -> Fault | None:
        """What is wrong with a value; ``None`` for nothing."""
        text = value if isinstance(value, str) or not is_whole(value) else f"{value}"
        known = isinstance(text, str) and text in self.words
        return None if known else wrong_word(value, self.words, name)


@dataclass(frozen=True)
class Whole:
    """A whole number of a range.

    Parameters
    ----------
    least, most : its ends.
    words : that may stand in its place.

    >>> str(Whole(1, 128).fault("queue_pairs", "4"))
    "queue_pairs: got '4', expected a whole number from 1 to 128; write queue_pairs=4"
    """

    least: int
    most: int
    words: tuple[str, ...] = ()

    def fault(self, name: str, value: Any) -> Fault | None:
        """What is wrong with a value; ``None`` for nothing."""
        if isinstance(value, str) and value in self.words:
            return None
        if self.takes(value):
            return None
        expected = f"expected a whole number from {self.least:,} to {self.most:,}"
        return Fault(
            f"got {value!r}", " or ".join((expected, *self.words)), _fix(self, name, value), name
        )

    def takes(self, value: Any) -> bool:
        """Whether a value is a whole number in the range."""
        return is_whole(value) and bool(self.least <= value <= self.most)


_SHARE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)%", re.ASCII)
SHARE_WORDS = ", or a share of them such as 5%"
"""What may stand in the place of some counts, for messages."""


def is_share(value: Any) -> bool:
    """Whether a value is a share such as ``5%``: above 0 and up to 100 %.

    >>> is_share("5%"), is_share("2.5%"), is_share("0%"), is_share(5)
    (True, True, False, False)
    """
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    return match is not None and 0 < Fraction(match[1]) <= 100


def counted_share(value: int | str, n: int) -> int:
    """A count, or so many of ``n`` as a share of them is, rounded up.

    >>> counted_share(3, 96), counted_share("5%", 96), counted_share("7%", 100)
    (3, 5, 7)
    """
    if isinstance(value, int):
        return value
    return math.ceil(Fraction(value.removesuffix("%")) * n / 100)


class WholeOrShare(Whole):
    """A whole number of a range, or a share such as ``5%``.

    >>> str(WholeOrShare(0, 9).fault("fail_links", "5 %"))
    "fail_links: got '5 %', expected a whole number from 0 to 9, or a share of them such as 5%"
    """

    def fault(self, name: str, value: Any) -> Fault | None:
        """What is wrong with a value; ``None`` for nothing."""
        found = None if is_share(value) else super().fault(name, value)
        return found and replace(found, expected=f"{found.expected}{SHARE_WORDS}")


@dataclass(frozen=True)
class Number:
    """A number of a range.

    Parameters
    ----------
    least, most : its ends.
    reads_text : whether text is taken too, which is read elsewhere, such as ``64MiB``.

    >>> str(Number(0, 10).fault("latency_s", float("nan")))
    'latency_s: got nan, expected a number from 0 to 10'
    """

    least: float
    most: float
    reads_text: bool = False

    def fault(self, name: str, value: Any) -> Fault | None:
        """What is wrong with a value; ``None`` for nothing."""
        if isinstance(value, str) and self.reads_text:
            return None
        if self.takes(value):
            return None
        expected = f"expected a number from {self.least:g} to {self.most:g}"
        return Fault(f"got {value!r}", expected, _fix(self, name, value), name)

    def takes(self, value: Any) -> bool:
        """Whether a value is a number in the range."""
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return is_number and bool(self.least <= value <= self.most)


@dataclass(frozen=True)
class Each:
    """One value of a kind, or a list of them."""

    kind: Kind

    def fault(self, name: str, value: Any) -> Fault | None:
        """What is wrong with the first value that is; ``None`` for nothing."""
        several = not isinstance(value, str | bytes) and hasattr(value, "__iter__")
        found = (self.kind.fault(name, one) for one in (value if several else (value,)))
        return next((fault for fault in found if fault is not None), None)


@dataclass(frozen=True)
class Text:
    """Text, whatever it says.

    >>> str(Text("a speed such as 400Gbps").fault("nic", 400))
    'nic: got 400, expected a speed such as 400Gbps'
    """

    what: str

    def fault(self, name: str, value: Any) -> Fault | None:
        """What is wrong with a value; ``None`` for nothing."""
        is_text = isinstance(value, str) and value.strip()
        return None if is_text else Fault(f"got {value!r}", f"expected {self.what}", "", name)


@dataclass(frozen=True)
class Flag:
    """Yes or no.

    >>> str(Flag().fault("causal", "no"))
    "causal: got 'no', expected True or False"
    """

    def fault(self, name: str, value: Any) -> Fault | None:
        """What is wrong with a value; ``None`` for nothing."""
        # Of numpy too, whose truth values are none of Python's.
        if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
            return None
        return Fault(f"got {value!r}", "expected True or False", "", name)


def is_whole(value: Any) -> bool:
    """Whether a value counts: a whole number of Python or numpy, and no truth value.

    >>> is_whole(2), is_whole(True), is_whole(2.0), is_whole("2")
    (True, False, False, False)
    """
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _fix(kind: Whole | Number, name: str, value: Any) -> str:
    """The number that a text holds, or that a float is, where the argument takes that."""
    if isinstance(value, float):
        return f"write {name}={int(value)}" if value.is_integer() and kind.takes(int(value)) else ""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return ""
    number = int(number) if number.is_integer() else number
    return f"write {name}={number}" if kind.takes(number) else ""


def refuse_wrong(kinds: Mapping[str, Kind], given: Mapping[str, Any]) -> None:
    """Refuse all arguments that are not what they should be, by their names.

    Raises
    ------
    SpecError
        With a fault for each.
    """
    found = (kinds[name].fault(name, value) for name, value in given.items() if name in kinds)
    refuse(fault for fault in found if fault is not None)
