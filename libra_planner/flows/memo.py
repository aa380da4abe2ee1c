"""What checks of many designs have in common, kept by all that decides about it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from libra_planner.flows.phases import RoundReport
    from libra_planner.timing.expression import TimeExpression

Value = TypeVar("Value")


@dataclass
class Memo(Generic[Value]):
    """Results by key, those used last.

    Parameters
    ----------
    most : results to keep.
    n_made : results made so far.

    Examples
    --------
    >>> squares = Memo(most=2)
    >>> [squares.of(x, lambda: x * x) for x in (2, 3, 2, 4)], squares.n_made
    ([4, 9, 4, 16], 3)
    """

    most: int
    n_made: int = 0
    _found: OrderedDict[Hashable, Value] = field(default_factory=OrderedDict, repr=False)

    def of(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The result of a key, made if it is not there."""
        if key in self._found:
            self._found.move_to_end(key)
            return self._found[key]
        value = self._found[key] = make()
        self.n_made += 1
        if len(self._found) > self.most:
            self._found.popitem(last=False)
        return value


@dataclass(frozen=True)
class CheckMemo:
    """What checks of designs share where the links differ in nothing but their speed.

    Parameters
    ----------
    rounds : of a phase, by all that decides about them.
    steps : step times with collectives slowed down by factors, as expressions in bandwidth.
    """

    rounds: Memo[tuple[RoundReport, ...]] = field(default_factory=lambda: Memo(4096))
    steps: Memo[TimeExpression] = field(default_factory=lambda: Memo(256))
