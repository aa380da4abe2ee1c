"""Pinned designs side by side: rows of texts, deltas to a baseline in words, not in colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem
    from libra_planner.tui.plans import Pin

OTHER_WORK = "other work"
"""Step times of different work are not compared (C6)."""


@dataclass(frozen=True)
class ComparedRow:
    """One figure of every pinned design, and its delta to the baseline's (empty for that one)."""

    name: str
    texts: tuple[str, ...]
    deltas: tuple[str, ...]


def compared(pins: Sequence[Pin], baseline: int) -> list[ComparedRow]:
    """Rows from top to bottom.

    Parameters
    ----------
    pins : one or more.
    baseline : index of the one that the others are compared to.
    """
    return [*_figures(pins, baseline), *_dimensions(pins, baseline), *_settings(pins)]


def _figures(pins: Sequence[Pin], baseline: int) -> Iterator[ComparedRow]:
    from libra_planner.units import format_time, format_usd

    figures: list[tuple[str, Callable[[Pin], float | None], Callable[[float], str]]] = [
        ("step time", _of(lambda e: e.step_time_s), format_time),
        ("  compute", _of(lambda e: e.compute_s), format_time),
        ("  exposed comm.", _of(lambda e: e.communication_s), format_time),
        ("time / sequence", _per_sequence_s, format_time),
        ("network cost", _of(lambda e: e.network_cost_usd), format_usd),
        ("system cost", _of(lambda e: e.cost_usd if e.fixed_cost_usd else None), format_usd),
        ("time x cost", _of(lambda e: e.step_time_s * e.cost_usd), lambda x: f"{format_usd(x)} s"),
        ("speedup vs equal", _of(lambda e: e.speedup_vs_equal), _ratio),
        ("perf/cost vs equal", _of(lambda e: e.perf_per_cost_vs_equal), _ratio),
    ]
    for name, figure, shown in figures:
        values = [figure(pin) for pin in pins]
        if any(value is not None for value in values):
            texts = tuple("-" if value is None else shown(value) for value in values)
            timed = name in ("step time", "  compute", "  exposed comm.", "time x cost")
            yield ComparedRow(name, texts, _deltas(pins, values, baseline, same_work=timed))
    broken = tuple(_broken(pin) for pin in pins)
    yield ComparedRow("rules", broken, ("",) * len(pins))


def _of(figure: Callable[[Evaluation], float | None]) -> Callable[[Pin], float | None]:
    return lambda pin: figure(pin.evaluation)


def _per_sequence_s(pin: Pin) -> float | None:
    """What designs with different work are ranked by (C6)."""
    n_sequences = pin.problem.n_sequences
    return pin.evaluation.step_time_s / n_sequences if n_sequences else None


def _ratio(value: float) -> str:
    return f"{value:.3f}x"


def _broken(pin: Pin) -> str:
    n = len(pin.evaluation.violated)
    return f"{n} BROKEN" if n else "met"


def _deltas(
    pins: Sequence[Pin], values: Sequence[float | None], baseline: int, *, same_work: bool
) -> tuple[str, ...]:
    base = values[baseline]
    return tuple(
        ""
        if i == baseline or value is None or base is None
        else OTHER_WORK
        if same_work and work(pins[i].problem) != work(pins[baseline].problem)
        else delta(value, base)
        for i, value in enumerate(values)
    )


def delta(value: float, base: float) -> str:
    """A change in percent, with its sign.

    >>> delta(1.1, 1.0), delta(0.5, 1.0), delta(2.0, 2.0), delta(1.0, 0.0)
    ('+10.00 %', '-50.00 %', 'same', 'new')
    """
    if value == base:
        return "same"
    return f"{100 * (value / base - 1):+.2f} %" if base else "new"


def work(problem: Problem) -> tuple[object, ...]:
    """What a step does: step times of different work do not compare (C6)."""
    names = tuple((member.name, member.weight) for member in problem.members)
    batch = tuple(text for text in problem.settings if "sequences" in text)
    return problem.workload_name, names, batch


def _dimensions(pins: Sequence[Pin], baseline: int) -> Iterator[ComparedRow]:
    from libra_planner.units import format_bandwidth

    n_dims = max(len(pin.bandwidth_GBps) for pin in pins)
    labels = max((pin.problem.topology.labels for pin in pins), key=len)
    for i in range(n_dims):
        values = [b[i] if i < len(b) else None for b in (pin.bandwidth_GBps for pin in pins)]
        exact = [pin.evaluation.bandwidth_bytes_per_s for pin in pins]
        texts = tuple(format_bandwidth(b[i]) if i < len(b) else "-" for b in exact)
        deltas = _deltas(pins, values, baseline, same_work=False)
        yield ComparedRow(f"{labels[i]}", texts, deltas)


def _settings(pins: Sequence[Pin]) -> Iterator[ComparedRow]:
    none = ("",) * len(pins)
    yield ComparedRow("workload", tuple(pin.problem.workload_name for pin in pins), none)
    yield ComparedRow("topology", tuple(str(pin.problem.topology) for pin in pins), none)
    for i in range(max(len(pin.problem.settings) for pin in pins)):
        yield ComparedRow(
            "" if i else "settings", tuple(_nth(pin.problem.settings, i) for pin in pins), none
        )
    rules = [_rules(pin.problem) for pin in pins]
    for i in range(max(map(len, rules))):
        yield ComparedRow(f"rule {i + 1}", tuple(_nth(texts, i) for texts in rules), none)


def _nth(texts: Sequence[str], i: int) -> str:
    return texts[i] if i < len(texts) else ""


def _rules(problem: Problem) -> list[str]:
    texts = [rule.text for rule in problem.rules] + [one.text for one in problem.step_time_limits]
    return list(dict.fromkeys(texts))
