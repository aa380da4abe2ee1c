"""Bundled data: workloads, price books and examples by name, or the user's own by path."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from libra_planner.errors import DataNotFound, Fault, Place, SpecError, UnknownName, close_names


class _Kind(NamedTuple):
    what: str
    folder: str
    line: str = ""
    """Tells its files from others in the folder."""
    ending: str = ".yaml"


_STREAM = "-"
"""What other programs call their input."""
_PACKAGE = Path(__file__).resolve().parent.parent
_KINDS = {
    "workloads": _Kind("workload", "workloads"),
    "cost-models": _Kind("price book", "cost_models", "kind: price_book"),
    "npu-catalogues": _Kind("NPU catalogue", "cost_models", "kind: npu_catalogue"),
    "parts": _Kind("parts catalogue", "cost_models", "kind: parts"),
    "clusters": _Kind("list of clusters", "cost_models", "kind: clusters"),
    "examples": _Kind("plan", "examples"),
    "reports": _Kind("plan of a report", "examples/reports"),
    "sweeps": _Kind("sweep", "examples", "axes:"),
    "flow-fabrics": _Kind("fabric for flows", "examples/flows"),
    "flow-lists": _Kind("list of flows", "examples/flows", ending=".csv"),
}

PLANS = ("examples", "reports")
"""Kinds of bundled plans."""
SWEEPS = ("sweeps",)
"""Kinds of bundled sweeps."""
_LEAST_BEGIN = 4
"""Letters and digits that names have to share at their begin to be alike."""
_TAKEN = {
    "sweeps": "libra-planner sweep run takes it",
    "examples": "libra-planner optimize takes it",
}
"""What takes a bundled file that stands in another one's place."""
FLOW_FABRICS, FLOW_LISTS = ("flow-fabrics",), ("flow-lists",)
"""Kinds of what ``flows`` takes."""


@lru_cache
def folder(kind: str) -> Path:
    """Where bundled files of a kind live: inside the wheel, or the checkout's top level.

    Raises
    ------
    DataNotFound
        When the installation lacks its data.
    """
    name = _KINDS[kind].folder
    for candidate in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise DataNotFound(Fault(f"got no bundled {name}", "", "reinstall libra-planner"))


def names(kind: str) -> list[str]:
    """Names of the bundled files of a kind, sorted."""
    paths = folder(kind).glob(f"*{_KINDS[kind].ending}")
    return sorted(path.stem for path in paths if _is_of(kind, path))


def _is_of(kind: str, path: Path) -> bool:
    lines = path.read_text(encoding="utf-8").splitlines()
    if kind == "examples":  # Of plans: what is no sweep.
        return _KINDS["sweeps"].line not in lines
    return not _KINDS[kind].line or _KINDS[kind].line in lines


def is_path(name: str) -> bool:
    """Whether a plan means a path rather than the name of a bundled file."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def resolve(kind: str, name: str, beside: Path | None) -> Path:
    """The file that a name or path in a plan means.

    A name with a slash or a .yaml ending is a path, relative to the plan (``beside``).

    Raises
    ------
    UnknownName
        For a name that is not bundled.
    """
    if is_path(name):
        return (beside / name) if beside else Path(name)
    if path := _found(kind, name):
        return path
    near = _near(name, known := names(kind))
    fix = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    fix += " (or give a path ending in .yaml)"
    raise UnknownName(Fault(f"got {name!r}", f"expected a bundled {_KINDS[kind].what}", fix))


def _near(name: str, known: Sequence[str]) -> Sequence[str]:
    """The known names that begin as a name does, or it as they do; else those that look like it
    or that it abbreviates.

    Examples
    --------
    >>> _near("gpt-3-175b", ["gpt3", "gpt-1.7b"]), _near("qwen3-235b", ["qwen3-235b-a22b"])
    (['gpt3'], ['qwen3-235b-a22b'])
    >>> _near("dsv3", ["deepseek-v3", "dlrm-mlperf"])
    ['deepseek-v3']
    """
    key, plain = _plain(name), {one: _plain(one) for one in known}
    begun = [one for one, text in plain.items() if _starts(text, key) or _starts(key, text)]
    same = [one for one, text in plain.items() if text == key]
    short = [one for one, text in plain.items() if _abbreviates(key, text)]
    return same or begun or close_names(name, known) or short


def _abbreviates(key: str, text: str) -> bool:
    """Whether letters of a text were left out, but not its first and no digit.

    >>> _abbreviates("dsv3", "deepseekv3"), _abbreviates("dv3", "deepseekv31")
    (True, False)
    """
    rest = iter(text)
    digits = [re.sub("[^0-9]", "", one) for one in (key, text)]
    is_shorter = len(key) >= _LEAST_BEGIN and key[0] == text[0] and digits[0] == digits[1]
    return is_shorter and all(letter in rest for letter in key)


def _plain(name: str) -> str:
    """Letters and digits alone."""
    return re.sub("[^a-z0-9]", "", name.lower())


def _starts(text: str, begin: str) -> bool:
    return len(begin) >= _LEAST_BEGIN and text.startswith(begin)


def _found(kind: str, name: str) -> Path | None:
    """The bundled file of a name; letters count, whatever the file system says."""
    path = folder(kind) / f"{name}{_KINDS[kind].ending}"
    return path if path.name in os.listdir(path.parent) and _is_of(kind, path) else None


def given_file(name: str | Path, kinds: Sequence[str] = PLANS) -> str:
    """The file that a user's argument means: a path, or a bundled file by its name.

    A file of that name in the working directory comes first. A name with a slash or a dot is a
    path; whether it is there is for its reader to say.

    Parameters
    ----------
    name : the argument.
    kinds : of the bundled files that it may mean.

    Raises
    ------
    UnknownName
        For a name that is neither, with what it may have meant; for a path to nothing where a
        bundled file has its name.

    Examples
    --------
    >>> given_file("08_rails") == str(example("08_rails")), given_file("./plan.yaml")
    (True, './plan.yaml')
    """
    path, text = Path(name), str(name)
    if os.path.lexists(path):
        return text
    if not is_path(text) and "." not in text:
        for kind in kinds:
            if found := _found(kind, text):
                return str(found)
        raise UnknownName(_unknown(text, kinds))
    bundled = [path.stem for kind in kinds if not path.is_absolute() and _found(kind, path.stem)]
    if not bundled:
        return text
    expected, fix = "expected one", f"the bundled one needs no path: write {path.stem}"
    raise DataNotFound(Fault("got no such file", expected, fix, "", Place(text)))


def design_parts(text: str) -> tuple[str, str]:
    """The plan of a design, and what stands behind its last @; a file whose name has one is a file.

    Raises
    ------
    SpecError
        Where one of them is empty.

    Examples
    --------
    >>> design_parts("plan.yaml@450,50"), design_parts("plan.yaml")
    (('plan.yaml', '450,50'), ('plan.yaml', ''))
    """
    if "@" not in text or os.path.isfile(text):
        return text, ""
    plan, _, suffix = text.rpartition("@")
    if not plan or not suffix:
        fix = "write e.g. plan.yaml@300,100,75,25"
        raise SpecError.at(text, f"got {text!r}", "expected PLAN@BANDWIDTHS", fix)
    return plan, suffix


def name_of(path: str | Path, kinds: Sequence[str] = PLANS) -> str:
    """What a user writes for a file: a bundled one's name, else its path.

    >>> name_of(example("08_rails")), name_of("./plan.yaml")
    ('08_rails', './plan.yaml')
    """
    file = Path(path)
    is_bundled = any(file.parent == folder(kind) for kind in kinds)
    return file.stem if is_bundled else str(path)


def as_named(message: str, arguments: Sequence[str]) -> str:
    """A message whose lines begin with the names of bundled files that a user wrote, not paths.

    Parameters
    ----------
    message : of one fault a line.
    arguments : what the user wrote; behind an ``@`` stands a design.

    Examples
    --------
    >>> as_named(f"{example('08_rails')}: --set npu: got 3", ["optimize", "08_rails"])
    '08_rails: --set npu: got 3'
    """
    names_written = (one.rpartition("@")[0] or one for one in arguments)
    plain = [one for one in names_written if one and not is_path(one) and "." not in one]
    kinds = (*PLANS, *SWEEPS, *FLOW_FABRICS, *FLOW_LISTS)
    try:
        found = {path: one for one in plain for kind in kinds if (path := _found(kind, one))}
    except (DataNotFound, OSError):  # An installation without its data says so itself.
        return message
    for path, name in found.items():
        if not os.path.lexists(name):
            message = re.sub(f"^{re.escape(str(path))}(?=:)", name, message, flags=re.MULTILINE)
    return message


def _unknown(name: str, kinds: Sequence[str]) -> Fault:
    """What is wrong with a name that is neither a file nor bundled."""
    what = _KINDS[kinds[0]].what
    if name == _STREAM:
        fix = "write /dev/stdin to read it from a pipe, with absolute paths in it"
        return Fault("got -, which is no file", f"expected a {what}", fix, "", Place(name))
    wrong = [kind for kind in _KINDS if kind not in kinds and _found(kind, name)]
    if wrong:
        got = f"got the name of a bundled {_KINDS[wrong[0]].what}"
        return Fault(got, f"expected a {what}", _TAKEN.get(wrong[0], ""), "", Place(name))
    ending = _KINDS[kinds[0]].ending
    files = [file for file in os.listdir() if file.endswith(ending)]
    known = [*(one for kind in kinds for one in names(kind)), *sorted(files)]
    near = [f"{name}{ending}"] if f"{name}{ending}" in files else _near(name, known)
    fix = f"did you mean {' or '.join(near)}?" if near else f"see libra-planner list {kinds[0]}"
    run, _, row = name.rpartition(":")
    if kinds[0] in PLANS and row.isdigit() and os.path.isdir(run):
        design = f"libra-planner sweep design {run} {row} -o plan.yaml"
        return Fault(
            "got a row of a sweep", f"expected a {what}", f"write {design}", "", Place(name)
        )
    return Fault(f"got no such file, and no bundled {what} of that name", "", fix, "", Place(name))


def example(name: str) -> Path:
    """Path of a bundled example plan.

    Raises
    ------
    UnknownName
        For a name that is not bundled.

    Examples
    --------
    >>> example("01_gpt3_4d").name
    '01_gpt3_4d.yaml'
    """
    return resolve("examples", name, None)
