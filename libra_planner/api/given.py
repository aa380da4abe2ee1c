"""What callers give: plans where plans are wanted, and faults in words of Python."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from libra_planner import allowed
from libra_planner.allowed import Flag, Kind, OneOf, Text, Whole, WholeOrShare, refuse_wrong
from libra_planner.errors import (
    Fault,
    IllPosed,
    Infeasible,
    Place,
    SolverFailed,
    SpecError,
    closest,
)
from libra_planner.problem import Problem
from libra_planner.reading.bundled import name_of
from libra_planner.routing.policy import Policy, policy_with

if TYPE_CHECKING:
    from libra_planner.inputs.plans import OpenedPlan, SearchedPlan
    from libra_planner.reading.document import Source

Settings: TypeAlias = str | Sequence[str] | Mapping[str, Any]
"""Overrides of a plan: ``key=value`` texts, or a dict of dotted keys."""

P = ParamSpec("P")
R = TypeVar("R")

_SET = re.compile(r"--set (?:'([^']*)'|(\S+?))([,;.]?)(?=\s|$)")
_FLAG = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
_NAMES = {"n_1": "single_failures", "workers": "n_workers", "chunks": "n_chunks"}
"""Names in Python of options that have another one there."""
_OWN_NAMES = {
    "output": ("folder",),
    "html": ("path",),
    "sql": ("query",),
    "group_by": ("axis",),
    "set": ("settings",),
    "points": ("n_points",),
    "top": ("n_best", "n"),
    "pass": ("way",),
}
"""The same of functions that have that argument."""
_PHRASES = {
    "give the -o of sweep run": "give the directory of lp.sweep",
    "give -o a new directory": "give another directory",
    "give -o another path": "give another directory",
    "libra-planner sweep run FILE -o DIRECTORY": "lp.sweep(FILE, DIRECTORY)",
    "add --force to replace it": "add overwrite=True to replace it",
    "separate them by spaces": "write a list of them",
    "libra-planner sweep run takes it": "lp.sweep(FILE, DIRECTORY) runs it",
    "libra-planner optimize takes it": "lp.load_plan reads it",
}


OF_LINKS: dict[str, Kind] = {
    "placement": OneOf(allowed.PLACEMENTS),
    "source_ports": OneOf(allowed.SOURCE_PORTS),
    "algorithms": OneOf(allowed.ALGORITHMS),
    "seeds": Whole(*allowed.SEEDS),
    "seed": Whole(*allowed.SEED),
    "queue_pairs": Whole(*allowed.QUEUE_PAIRS),
    "npus_per_address": Whole(*allowed.NPUS_PER_ADDRESS),
    "fail_links": WholeOrShare(*allowed.FAILED),
    "fail_spines": Whole(*allowed.FAILED),
    "single_failures": Flag(),
    "trace": Text("a flow such as '0-8'"),
}
"""What arguments of checks take."""


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
    from libra_planner.reading.document import python_value, read_document

    if isinstance(settings, Mapping):
        values = read_document(settings, "settings").value.items()
        return tuple(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values)
    texts = (settings,) if isinstance(settings, str) else python_value(settings)
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        got = f"settings: got a value of type {type(settings).__name__}"
        raise TypeError(f"{got}, expected 'key=value' texts, or a dict of dotted keys to values")
    return tuple(texts)


def opened_again(plan: Problem, function: str) -> OpenedPlan:
    """What a plan was read from, read again.

    Raises
    ------
    SpecError
        For a plan that says something else by now.
    """
    from libra_planner.inputs.plans import open_plan

    opened = open_plan(source_of(plan), own_overrides_of(plan), parts=plan.prices.catalogue)
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


def plan_given(value: object, function: str, number: int | None = None) -> None:
    """Refuse what is no plan.

    Parameters
    ----------
    value : what is given.
    function : of this package, which takes a plan, or a list of them.
    number : its place in such a list.

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
        plan = f"lp.load_plan({name!r})"
        fix = f"write lp.{function}({plan})" if number is None else f"write {plan} in its place"
        got = f"the path {name!r}"
    elif isinstance(value, Mapping):
        plan = "lp.load_plan(...)"
        fix = f"write lp.{function}({plan})" if number is None else f"write {plan} around it"
        got = "a dict"
    else:
        got, fix = (
            f"a value of type {type(value).__name__}",
            "lp.load_plan makes one of a path, a name or a dict",
        )
    at = "" if number is None else f" at place {number} of the list"
    raise TypeError(f"{function}: got {got}{at}, expected a plan; {fix}")


def policy_of(policy: str | Policy) -> Policy:
    """The policy of a name; a fault has the argument's."""
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str):
        got = f"got a value of type {type(policy).__name__}"
        raise SpecError(Fault(got, "expected a name such as 'ecmp', or a Policy", "", "policy"))
    return policy_with({"policy": policy})


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
    """The function with faults in words of Python where a command would name its options.

    An argument that it does not have is refused with the one that was meant.
    """

    @functools.wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        names = _parameters(function)
        if not any(one.kind is Parameter.VAR_KEYWORD for one in names.values()):
            refuse_unknown(function.__name__, kwargs, [name for name in names if name != "self"])
        try:
            return function(*args, **kwargs)
        except SpecError as error:
            spoken = (_in_python(fault, names) for fault in error.faults)
            raise type(error)(*spoken) from None
        except (Infeasible, IllPosed, SolverFailed) as error:
            error.args = (words(str(error), names),)
            raise

    return told


def takes(
    kinds: Mapping[str, Kind], beside: Callable[..., Any] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A :func:`pythonic` function that refuses values that are not what its arguments take.

    ``None`` is taken where it is a default, or where an annotation has it.

    Parameters
    ----------
    kinds : by the names of arguments, those in ``**asked`` too.
    beside : whose parameters those in ``**asked`` are.
    """

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        spoken = pythonic(function)

        @functools.wraps(function)
        def told(*args: P.args, **kwargs: P.kwargs) -> R:
            refuse_wrong(kinds, _values(function, beside, args, kwargs))
            return spoken(*args, **kwargs)

        TAKEN[f"{function.__module__}.{function.__qualname__}"] = kinds
        return told

    return checked


TAKEN: dict[str, Mapping[str, Kind]] = {}
"""What arguments take, by the function."""


@functools.cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    return signature(function).parameters


def _values(
    function: Callable[..., Any], beside: Callable[..., Any] | None, args: Any, kwargs: Any
) -> dict[str, Any]:
    """Values that callers give, by the names of arguments, without ``None`` where that is taken."""
    names = _parameters(function)
    known = {**(_parameters(beside) if beside else {}), **names}
    return _without_none(dict(zip(names, args, strict=False)) | kwargs, known)


def _without_none(given: Mapping[str, Any], known: Mapping[str, Parameter]) -> dict[str, Any]:
    return {
        name: value
        for name, value in given.items()
        if value is not None or (name in known and not _takes_none(known[name]))
    }


def _takes_none(parameter: Parameter) -> bool:
    return parameter.default is None or "None" in f"{parameter.annotation}"


def refuse_asked(
    function: str,
    kinds: Mapping[str, Kind],
    asked: Mapping[str, Any],
    of: Callable[..., Any],
    but: Container[str] = (),
) -> None:
    """Refuse arguments that another callable does not have, or that it cannot take.

    Parameters
    ----------
    function : that they are given to.
    kinds : by argument.
    asked : the arguments.
    of, but : whose parameters they are, without some.

    Raises
    ------
    TypeError
        For a name that is none, with what was meant.
    SpecError
        For values that are wrong.
    """
    known = _parameters(of)
    refuse_unknown(function, asked, [name for name in known if name not in but])
    refuse_wrong(kinds, _without_none(asked, known))


def refuse_unknown(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse arguments that are none.

    Raises
    ------
    TypeError
        With what was meant.
    """
    for name in given:
        if name not in known:
            raise TypeError(f"{function}: got the argument {name!r}; {closest(name, known)}")


def _in_python(fault: Fault, names: Container[str]) -> Fault:
    got, expected, fix = (words(text, names) for text in (fault.got, fault.expected, fault.fix))
    place = fault.place
    if place is not None:
        file, rest = (
            place.file.partition(": ")[::2] if ".yaml: " in place.file else (place.file, "")
        )
        own = name_of(file) + (f": {rest}" if rest else "")  # Of a bundled file no long path.
        place = Place(words(own, names), place.line, place.column)
    return replace(fault, got=got, expected=expected, fix=fix, place=place)


def words(text: str, names: Container[str] = ()) -> str:
    """Options of commands as arguments.

    Parameters
    ----------
    text : that names options.
    names : arguments of the function that says it.

    >>> words("leave them out, e.g. with --set fabric.link_options=null")
    "leave them out, e.g. with settings=['fabric.link_options=null']"
    >>> words("write --set 'constraints.0=spine == 50 GB/s'")
    "write settings=['constraints.0=spine == 50 GB/s']"
    >>> words("add a policy, such as --check ecmp"), words("a.yaml: --fail-links, --n-1")
    ('add a policy, such as check ecmp', 'a.yaml: fail_links, single_failures')
    """
    for ours, in_python in _PHRASES.items():
        text = text.replace(ours, in_python)
    if "--" not in text:
        return text.removeprefix("libra-planner ") if text.startswith("libra-planner ") else text
    text = _SET.sub(lambda one: _setting(one[1] or one[2]) + one[3], text)
    return _FLAG.sub(lambda one: _name(one[1], names), text)


def _setting(text: str) -> str:
    return f"settings=[{text!r}]" if "=" in text else f"settings: {text}"


def _name(flag: str, names: Container[str]) -> str:
    name = flag.replace("-", "_")
    own = next((one for one in _OWN_NAMES.get(name, ()) if one in names), name)
    return _NAMES.get(name, own)


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
        For both, none, what holds no numbers, a number below 0, or more GB/s than any NPU will
        have.
    """
    import numpy as np

    name = "bandwidth_bytes_per_s" if bandwidth_GBps is None else "bandwidth_GBps"
    given = bandwidth_bytes_per_s if bandwidth_GBps is None else bandwidth_GBps
    unit_Bps, n = 1.0 if bandwidth_GBps is None else 1e9, problem.topology.n_dims
    numbers = _numbers_in(given)
    shown = numbers if len(numbers) == n else ["100"] * n
    fix = f"write bandwidth_GBps=[{', '.join(shown)}]"
    expected = f"expected {n} numbers, one for each dimension, innermost first"
    if bandwidth_bytes_per_s is not None and bandwidth_GBps is not None:
        got = "got bandwidth_bytes_per_s and bandwidth_GBps"
        raise SpecError(Fault(got, "expected one of both", "leave one out", function))
    if given is None:
        raise SpecError(Fault("got no bandwidth", expected, fix, function))
    if numbers:
        raise SpecError(Fault(f"got {name}={given!r}, which is text", expected, fix, function))
    try:
        vector = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (n,) or any(isinstance(one, bool) for one in given):
        n_given = len(vector) if vector.ndim == 1 else 0
        count = f", {n_given} numbers" if n_given not in (0, 1, n) else ""
        raise SpecError(Fault(f"got {name}={given!r}{count}", expected, fix, function))
    if wrong := np.flatnonzero(~(vector >= 0)).tolist():
        got = f"got {name}={given!r}, {vector[wrong[0]]:g} at place {wrong[0]}"
        raise SpecError(Fault(got, "expected 0 or more", "", function))
    if bandwidth_GBps is not None and (vector[np.isfinite(vector)] > _MOST_GBPS).any():
        got = f"got bandwidth_GBps={given!r}, at most {np.nanmax(vector):g} GB/s"
        in_GBps = ", ".join(f"{x / 1e9:g}" for x in vector.tolist())
        fix = f"write bandwidth_bytes_per_s, or bandwidth_GBps=[{in_GBps}]"
        raise SpecError(Fault(got, f"expected {_MOST_GBPS:g} GB/s or less", fix, function))
    return vector * unit_Bps


_MOST_GBPS = 1e6
"""Of a dimension of an NPU; a vector with more must have been meant in byte/s."""
