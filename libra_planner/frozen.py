"""Frozen values: what is worked out from their fields is kept, and never travels with them."""

from __future__ import annotations

from typing import Any, ClassVar


class Frozen:
    """Base of frozen dataclasses that keep what they have worked out (``cached_property``).

    Pickled are the fields alone; another process works the rest out again.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getstate__(self) -> dict[str, Any]:
        """The fields."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}
