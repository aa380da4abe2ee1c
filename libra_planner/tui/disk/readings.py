"""What comes of reading a plan: its text as it was on disk, values, faults, numbers."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import Fault, PlannerError, SpecError
from libra_planner.files import read_text
from libra_planner.reading.document import Document, apply_setting, parse_document, read_document
from libra_planner.reading.named_files import named_files
from libra_planner.tui.starts import starting_GBps

if TYPE_CHECKING:
    from libra_planner.problem import Problem


@dataclass(frozen=True)
class Reading:
    """What came of reading a plan with some settings.

    Parameters
    ----------
    settings : the settings it was read with.
    problem : the plan in numbers; ``None`` where it has faults.
    faults : everything that is wrong.
    document : values and their lines; ``None`` where the file is no YAML.
    fingerprint : the same for the same plan with the same files that it names, whenever read.
    start_GBps : a design to begin with.
    text : of the file, which the settings stand on; ``None`` where it cannot be read.
    files : digests of that text and of the files that the plan names, as they were read.
    """

    settings: tuple[str, ...]
    problem: Problem | None
    faults: tuple[Fault, ...]
    document: Document | None
    fingerprint: bytes = b""
    start_GBps: tuple[float, ...] = ()
    text: str | None = None
    files: Mapping[Path, bytes] = field(default_factory=dict)


def settings_between(
    value: dict[str, Any], wanted: dict[str, Any], defaults: dict[str, Any]
) -> tuple[str, ...]:
    """Settings that turn one plan's values into another's; what that one lacks is its default.

    >>> settings_between({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": ["x"]}, {"c": 0})
    ('b=["x"]', 'c=0')
    """
    target = {key: defaults.get(key) for key in value} | wanted
    changed = [key for key in target if key not in value or value[key] != target[key]]
    return tuple(f"{key}={json.dumps(target[key])}" for key in changed)


def search_words(what: str, done: int, n: int) -> str:
    """How far a search for strategies is, by what its search counts, for a line of 80 cells.

    >>> search_words("fabrics optimised", 43, 693)
    '43 optimised, 650 left'
    >>> search_words("fabrics optimised, best so far 3.7 s with tp 8", 4, 9)
    '4 optimised, 5 left, best 3.7 s'
    >>> search_words("strategies have a bound", 1024, 55588)
    '1,024 of 55,588 strategies have a bound'
    """
    from libra_planner.search.best import BEST_SO_FAR, OPTIMISED

    if what.startswith(OPTIMISED):
        best = what.removeprefix(OPTIMISED).partition(" with ")[0].replace(BEST_SO_FAR, ", best ")
        return f"{done:,} optimised, {n - done:,} left{best}"
    return f"{done:,} of {n:,} {what.replace(' that may', ' may')}"


def read_plan(
    path: Path,
    settings: tuple[str, ...],
    progress: Callable[..., None] | None = None,
    text: str | None = None,
) -> Reading:
    """Read a plan as every command does, and keep its faults instead of raising them.

    ``progress`` is told of a search for the strategy, and may end it by an exception. With
    ``text`` that is what the file says, whatever stands in it by now.
    """
    from libra_planner.inputs.plans import load_plan

    def searched(what: str, done: int, n: int) -> None:
        if progress is not None:
            progress(done, n, search_words(what, done, n))

    text = file_text(path) if text is None else text
    document = plan_document(path, settings, text)
    files = {} if text is None else digests(path, text, document)
    problem: Problem | None = None
    faults: tuple[Fault, ...] = ()
    start_GBps: tuple[float, ...] = ()
    try:
        problem = load_plan(path, settings, progress=searched, text=text)
        start_GBps = starting_GBps(problem)
    except SpecError as error:
        faults = error.faults
    except PlannerError as error:
        faults = (Fault(str(error), is_whole=True),)
    found = fingerprint(files, document) if problem else b""
    return Reading(settings, problem, faults, document, found, start_GBps, text, files)


def file_text(path: Path) -> str | None:
    """What stands in a plan's file; ``None`` where it cannot be read."""
    try:
        return read_text(path)
    except PlannerError:
        return None


def changed_keys(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Keys that one file has otherwise than another, or that only one has.

    >>> changed_keys({"a": 1, "b": 2}, {"b": 3, "c": 4})
    ['b', 'c', 'a']
    """
    return [key for key in now | before if now.get(key) != before.get(key)]


def digest(data: bytes) -> bytes:
    """Of a file's content: the same for the same one, as text or as bytes."""
    return hashlib.sha256(data.removeprefix(codecs.BOM_UTF8)).digest()


def digest_of(path: Path) -> bytes:
    """Of what stands in a file now; nothing where it is gone."""
    try:
        return digest(path.read_bytes())
    except OSError:
        return b""


def digests(path: Path, text: str, document: Document | None) -> dict[Path, bytes]:
    """Of a plan's text, and of the files that the plan names as they are now."""
    named = named_files(document.value if document else None)
    return {path: digest(text.encode())} | {
        path.parent / name: digest_of(path.parent / name) for _, name in named
    }


def fingerprint(files: Mapping[Path, bytes], document: Document | None) -> bytes:
    """Of all that a plan says and all files that it names; nothing where one is gone."""
    named = list(files.values())[1:]
    value = document.value if document else None
    said = repr((value, named)).encode(errors="backslashreplace")
    return digest(said) if all(named) else b""


def plan_document(
    path: Path, settings: tuple[str, ...], text: str | None = None
) -> Document | None:
    """Values and lines; an edit that cannot be applied is left out (it is among the faults).

    With ``text`` that is what the file says.
    """
    try:
        document = read_document(path) if text is None else parse_document(text, str(path))
    except SpecError:
        return None
    for setting in settings:
        try:
            apply_setting(document, setting)
        except SpecError:
            continue
    return document


def plan_values(
    path: Path, settings: tuple[str, ...] = (), text: str | None = None
) -> dict[str, Any]:
    """What a plan says, as :func:`plan_document` reads it; nothing where it is no map."""
    document = plan_document(path, settings, text)
    return document.value if document and isinstance(document.value, dict) else {}
