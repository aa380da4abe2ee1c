"""What callers give: plans where plans are wanted, and faults in words of Python."""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.problem import Problem

if TYPE_CHECKING:
    from libra_planner.inputs.plans import OpenedPlan, SearchedPlan
    from libra_planner.reading.document import Source

Settings: TypeAlias = str | Sequence[str] | Mapping[str, Any]
"""Overrides of a plan: ``key=value`` texts, or a dict of dotted keys."""

P = ParamSpec("P")
R = TypeVar("R")

_SET = re.compile(r"--set (\S+?)([,;.]?)(?=\s|$)")
_FLAG = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
_NAMES = {"n_1": "single_failures", "workers": "n_workers", "chunks": "n_chunks"}
"""Names in Python of options that have another one there."""
_PHRASES = {
    "separate them by spaces": "write a list of them",
    "libra-planner sweep run takes it": "lp.sweep(FILE, DIRECTORY) runs it",
    "libra-planner optimize takes it": "lp.load_plan reads it",
}


def source_of(problem: Problem) -> Source:
    """The file, or the map, that a plan was read from."""
    source: Source = getattr(problem, "source", None) or problem.text.source
    return source


def overrides_of(problem: Problem) -> tuple[str, ...]:
    """The ``key=value`` settings that a plan was read with."""
    found: tuple[str, ...] = getattr(problem, "overrides", ())
    return found


def own_overrides_of(problem: Problem) -> tuple[str, ...]:
    """The same without the degrees that a search has found: what the caller gave."""
    overrides = overrides_of(problem)
    return overrides[:-1] if getattr(problem, "found", None) is not None else overrides


def setting_texts(settings: Settings) -> tuple[str, ...]:
    """Overrides as ``--set`` has them.

    >>> setting_texts("parallelism.tp=8"), setting_texts({"parallelism.tp": 8, "objective": "cost"})
    (('parallelism.tp=8',), ('parallelism.tp=8', 'objective="cost"'))
    """
    if isinstance(settings, Mapping):
        from libra_planner.reading.document import read_document

        values = read_document(settings).value.items()
        return tuple(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values)
    return (settings,) if isinstance(settings, str) else tuple(settings)


def opened_again(plan: Problem, function: str) -> OpenedPlan:
    """What a plan was read from, read again.

    Raises
    ------
    SpecError
        For a plan that says something else by now.
    """
    from libra_planner.inputs.plans import open_plan

    opened = open_plan(source_of(plan), own_overrides_of(plan))
    refuse_changed(plan, opened.base, function)
    return opened


def refuse_changed(plan: Problem, read: Problem, function: str) -> None:
    """Refuse a plan that says something else than what it was read from."""
    names = ("rules", "step_time_limits", "objective", "topology")
    changed = [name for name in names if getattr(plan, name) != getattr(read, name)]
    changed += [] if plan.prices.usd_per_Bps == read.prices.usd_per_Bps else ["prices"]
    if changed:
        got = f"got a plan whose {', '.join(changed)} were changed after it was read"
        fix = "give the changes to lp.load_plan as settings"
        raise SpecError(Fault(got, "expected it as its file says", fix, function))


def yaml_path(path: str | PathLike[str]) -> Path:
    """A path to write YAML to.

    Raises
    ------
    SpecError
        For another ending.
    """
    to = Path(path)
    if to.suffix not in (".yaml", ".yml"):
        raise SpecError(Fault(f"got {str(path)!r}", "expected a name ending in .yaml"))
    return to


def save_plan(problem: Problem, path: str | PathLike[str]) -> Path:
    """Write what a plan was read from, with its settings, as a YAML file; paths are absolute.

    Raises
    ------
    SpecError
        For a name that does not end in .yaml, a path that cannot be written, or a plan that was
        changed since.
    """
    from libra_planner.files import write_text
    from libra_planner.reading.named_files import plan_text

    to, opened = yaml_path(path), opened_again(problem, "save")
    write_text(str(to), plan_text(opened.document.value, opened.beside))
    return to


def plan_value(problem: Problem, function: str) -> Any:
    """What a plan was read from, with its settings, as a dict; paths are absolute."""
    from libra_planner.reading.named_files import movable

    opened = opened_again(problem, function)
    return movable(opened.document.value, opened.beside)


def searched_of(problem: Problem) -> SearchedPlan:
    """A plan with the search for its strategy, if there was one."""
    from libra_planner.inputs.plans import SearchedPlan

    return SearchedPlan(problem, overrides_of(problem), getattr(problem, "found", None))


def plan_given(value: object, function: str) -> None:
    """Refuse what is no plan.

    Raises
    ------
    TypeError
        With what to write instead.

    Examples
    --------
    >>> plan_given("plan.yaml", "optimize")
    Traceback (most recent call last):
    TypeError: optimize: got the path 'plan.yaml', expected a plan; write
    lp.optimize(lp.load_plan('plan.yaml'))
    """
    if isinstance(value, Problem):
        return
    if isinstance(value, str | PathLike):
        name = str(value)
        got, fix = f"the path {name!r}", f"write lp.{function}(lp.load_plan({name!r}))"
    elif isinstance(value, Mapping):
        got, fix = "a dict", f"write lp.{function}(lp.load_plan(...))"
    else:
        got, fix = (
            f"a value of type {type(value).__name__}",
            "lp.load_plan makes one of a path, a name or a dict",
        )
    raise TypeError(f"{function}: got {got}, expected a plan; {fix}")


def path_given(
    value: object, function: str, what: str, kinds: str = "a path or a bundled name"
) -> None:
    """Refuse what is no path.

    Raises
    ------
    TypeError
        With what to write instead.

    Examples
    --------
    >>> path_given(None, "sweep", "the sweep's file")
    Traceback (most recent call last):
    TypeError: sweep: got a value of type NoneType, expected the sweep's file: a path or a bundled
    name
    """
    if isinstance(value, str | PathLike):
        return
    got = "a plan" if isinstance(value, Problem) else f"a value of type {type(value).__name__}"
    source = source_of(value) if isinstance(value, Problem) else {}
    fix = "" if isinstance(source, Mapping) else f"; give its path {str(source)!r}"
    raise TypeError(f"{function}: got {got}, expected {what}: {kinds}{fix}")


def whole_given(value: object, name: str, function: str) -> None:
    """Refuse what is no whole number.

    Raises
    ------
    TypeError
        With what to write instead.

    Examples
    --------
    >>> whole_given("5", "n_points", "pareto")
    Traceback (most recent call last):
    TypeError: pareto: got n_points='5', expected a whole number; write n_points=5
    """
    try:
        is_whole = not isinstance(value, bool) and operator.index(value) is not None  # type: ignore[arg-type]
    except TypeError:
        is_whole = False
    if not is_whole:
        fix = f"; write {name}={value}" if isinstance(value, str) and value.isdecimal() else ""
        raise TypeError(f"{function}: got {name}={value!r}, expected a whole number{fix}")


def pythonic(function: Callable[P, R]) -> Callable[P, R]:
    """The function with faults in words of Python where a command would name its options."""

    @functools.wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SpecError as error:
            raise type(error)(*map(_in_python, error.faults)) from None

    return told


def _in_python(fault: Fault) -> Fault:
    got, expected, fix = map(words, (fault.got, fault.expected, fault.fix))
    place = fault.place
    if place is not None:
        place = Place(words(place.file), place.line, place.column)
    return replace(fault, got=got, expected=expected, fix=fix, place=place)


def words(text: str) -> str:
    """Options of commands as arguments.

    >>> words("leave them out, e.g. with --set fabric.link_options=null")
    "leave them out, e.g. with settings=['fabric.link_options=null']"
    >>> words("add a policy, such as --check ecmp"), words("a.yaml: --fail-links, --n-1")
    ('add a policy, such as check ecmp', 'a.yaml: fail_links, single_failures')
    """
    for ours, in_python in _PHRASES.items():
        text = text.replace(ours, in_python)
    if "--" not in text:
        return text.removeprefix("libra-planner ") if text.startswith("libra-planner ") else text
    text = _SET.sub(lambda one: _setting(one[1]) + one[2], text)
    return _FLAG.sub(lambda one: _name(one[1]), text)


def _setting(text: str) -> str:
    return f"settings=[{text!r}]" if "=" in text else f"settings: {text}"


def _name(flag: str) -> str:
    name = flag.replace("-", "_")
    return _NAMES.get(name, name)


def _numbers_in(given: object) -> list[str]:
    """The numbers of a vector that is given as text, or as a list of texts; else nothing."""
    one = given.strip("[]() ").split(",") if isinstance(given, str) else given
    if not isinstance(one, list | tuple) or not all(isinstance(x, str) for x in one):
        return []
    return [text.strip().removesuffix("GB/s").strip() for text in one]


def vector_Bps(
    problem: Problem, bandwidth_bytes_per_s: Any, bandwidth_GBps: Any, function: str
) -> Any:
    """A vector that is given in one of two units, in byte/s.

    Raises
    ------
    SpecError
        For both, none, what holds no numbers, or more GB/s than any NPU will have.
    """
    import numpy as np

    name = "bandwidth_bytes_per_s" if bandwidth_GBps is None else "bandwidth_GBps"
    given = bandwidth_bytes_per_s if bandwidth_GBps is None else bandwidth_GBps
    unit_Bps, n = 1.0 if bandwidth_GBps is None else 1e9, problem.topology.n_dims
    numbers = _numbers_in(given)
    shown = numbers if len(numbers) == n else ["100"] * n
    fix = f"write bandwidth_GBps=[{', '.join(shown)}]"
    expected = f"expected {n} numbers, one for each dimension, innermost first"
    if (bandwidth_bytes_per_s is None) == (bandwidth_GBps is None):
        got = "got none" if bandwidth_GBps is None else "got two vectors"
        raise SpecError(Fault(got, expected, fix, function))
    if numbers:
        raise SpecError(Fault(f"got {name}={given!r}, which is text", expected, fix, function))
    try:
        vector = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (n,):
        raise SpecError(Fault(f"got {name}={given!r}", expected, fix, function))
    if bandwidth_GBps is not None and (vector[np.isfinite(vector)] > _MOST_GBPS).any():
        got = f"got bandwidth_GBps={given!r}, at most {np.nanmax(vector):g} GB/s"
        in_GBps = ", ".join(f"{x / 1e9:g}" for x in vector.tolist())
        fix = f"write bandwidth_bytes_per_s, or bandwidth_GBps=[{in_GBps}]"
        raise SpecError(Fault(got, f"expected {_MOST_GBPS:g} GB/s or less", fix, function))
    return vector * unit_Bps


_MOST_GBPS = 1e6
"""Of a dimension of an NPU; a vector with more must have been meant in byte/s."""
