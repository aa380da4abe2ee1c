"""Bases of frozen values: what is worked out is kept, and lists of rows are as Python's lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

R = TypeVar("R")


class Frozen:
    """Base of frozen dataclasses that keep what they have worked out (``cached_property``).

    Pickled are the fields alone; another process works the rest out again.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getstate__(self) -> dict[str, Any]:
        """The fields."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


class Rows(Generic[R]):
    """Base of results that are lists of rows: ``len``, loops, indices and slices are of ``rows``.

    Examples
    --------
    >>> class Two(Rows[str]):
    ...     rows = ("a", "b")
    >>> len(Two()), list(Two()), Two()[-1], Two()[:1]
    (2, ['a', 'b'], 'b', ('a',))
    """

    if TYPE_CHECKING:

        @property
        def rows(self) -> Sequence[R]:
            """What the result is a list of."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.rows[index]
