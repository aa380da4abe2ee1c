"""What callers give: plans where plans are wanted, and faults in words of Python."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.problem import Problem

if TYPE_CHECKING:
    from libra_planner.inputs.plans import SearchedPlan
    from libra_planner.reading.document import Source

Settings: TypeAlias = str | Sequence[str] | Mapping[str, Any]
"""Overrides of a plan: ``key=value`` texts, or a dict of dotted keys."""

P = ParamSpec("P")
R = TypeVar("R")

_SET = re.compile(r"--set (\S+?)([,;.]?)(?=\s|$)")
_FLAG = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
_NAMES = {"n_1": "single_failures", "workers": "n_workers", "chunks": "n_chunks"}
"""Names in Python of options that have another one there."""


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
    text = text.replace("separate them by spaces", "write a list of them")
    if "--" not in text:
        return text.removeprefix("libra-planner ") if text.startswith("libra-planner ") else text
    text = _SET.sub(lambda one: _setting(one[1]) + one[2], text)
    return _FLAG.sub(lambda one: _name(one[1]), text)


def _setting(text: str) -> str:
    return f"settings=[{text!r}]" if "=" in text else f"settings: {text}"


def _name(flag: str) -> str:
    name = flag.replace("-", "_")
    return _NAMES.get(name, name)


def vector_Bps(
    problem: Problem, bandwidth_bytes_per_s: Any, bandwidth_GBps: Any, function: str
) -> Any:
    """A vector that is given in one of two units, in byte/s.

    Raises
    ------
    SpecError
        For both, none, or what holds no numbers.
    """
    import numpy as np

    if (bandwidth_bytes_per_s is None) == (bandwidth_GBps is None):
        got = "got none" if bandwidth_GBps is None else "got two vectors"
        numbers = ", ".join(["100"] * problem.topology.n_dims)
        fix = f"write bandwidth_GBps=[{numbers}]"
        expected = "expected one number for each dimension, innermost first"
        raise SpecError(Fault(got, expected, fix, function))
    given = bandwidth_bytes_per_s if bandwidth_GBps is None else bandwidth_GBps
    try:
        vector = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = ", ".join(["100"] * problem.topology.n_dims)
        expected, fix = "expected a list of numbers", f"write bandwidth_GBps=[{numbers}]"
        raise SpecError(Fault(f"got {given!r}", expected, fix, function)) from None
    return vector if bandwidth_GBps is None else vector * 1e9
