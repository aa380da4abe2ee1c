"""Collects the faults of a file's independent parts, so that all are reported at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from libra_planner.errors import DataNotFound, Fault, SpecError
from libra_planner.spec.document import Document, Key
from libra_planner.spec.settings import dotted_key

Result = TypeVar("Result")


@dataclass
class FaultCollector:
    """Faults found so far in a document.

    Parameters
    ----------
    document : the file.
    prefix : part of it that keys and the paths of faults are relative to.
    faults : what was found, in order; shared by the collectors of its parts.
    """

    document: Document
    prefix: Key = ()
    faults: list[Fault] = field(default_factory=list)

    def under(self, *key: str | int) -> FaultCollector:
        """The collector of a part of the document; its faults join these."""
        return FaultCollector(self.document, self.prefix + key, self.faults)

    def attempt(self, key: Key, build: Callable[[], Result]) -> Result | None:
        """What ``build`` returns, or its faults noted with their places."""
        try:
            return build()
        except SpecError as error:
            missing = isinstance(error, DataNotFound)
            self.faults += [self._located(fault, key, missing=missing) for fault in error.faults]
            return None

    def required(self, part: Result | None) -> Result:
        """The part, if nothing at all is wrong; else raises all faults."""
        if self.faults or part is None:
            raise SpecError(*dict.fromkeys(self.faults))  # Some are found on two ways.
        return part

    def present(self, part: Result | None) -> Result:
        """Stop only when this very part is missing; other faults can wait for company."""
        return part if part is not None else self.required(part)

    def _located(self, fault: Fault, key: Key, *, missing: bool) -> Fault:
        """A fault at its place in the file; one inside another file keeps that file's place."""
        if missing:
            fault = Fault(f"{fault.got} ({fault.place})", fault.expected, fault.fix)
        if fault.place:
            return fault
        at = self.prefix + (dotted_key(fault.path) if fault.path else key)
        return Fault(
            fault.got,
            fault.expected,
            fault.fix,
            ".".join(map(str, at)),
            self.document.place(at),
        )
