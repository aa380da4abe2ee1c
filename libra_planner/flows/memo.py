"""Results that are kept by all that decides about them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

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
