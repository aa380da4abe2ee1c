"""What holds of every plan that can be solved: checked on plans by grammar.

No feasible vector beats the optimum; the order of rules and the units they are written in change
nothing; more bandwidth is never slower, higher prices are never cheaper.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

import libra_planner as lp
from libra_planner.errors import Infeasible, PlannerError
from libra_planner.reading.bundled import folder
from tests.campaign.case import Case, Outcome
from tests.campaign.grammar import plan

_SAME = 1e-9
_N_POINTS = 40
_UNITS = {"GB/s": ("Gbps", 8), "ms": ("s", Decimal("1e-3")), "M$": ("$", 10**6)}
_AMOUNT = re.compile(r"([\d.]+(?:e[+-]?\d+)?) (GB/s|ms|M\$)")


def kept_case(random: Random) -> Case:
    """A plan to optimize, and the same one written in other ways."""
    made = plan(random) | {"cost_model": "./prices.yaml"}
    rules = list(made["constraints"])
    permuted = random.sample(rules, len(rules))
    renamed = [_AMOUNT.sub(_renamed, rule) for rule in rules]
    book = yaml.safe_load((folder("cost-models") / "libra-ispass24.yaml").read_text())
    files: dict[str, Any] = {
        "plan.yaml": made,
        "permuted.yaml": made | {"constraints": permuted},
        "renamed.yaml": made | {"constraints": renamed},
        "dear.yaml": made | {"cost_model": "./dearer.yaml"},
        "prices.yaml": book,
        "dearer.yaml": book | {"tiers": _dearer(random, book["tiers"])},
    }
    written = {name: json.dumps(value, indent=1).encode() for name, value in files.items()}
    return Case("kept", ("optimize", "plan.yaml", "--json"), written, also=_unkept)


def _renamed(amount: re.Match[str]) -> str:
    unit, factor = _UNITS[amount[2]]
    return f"{Decimal(amount[1]) * factor:f} {unit}"


def _dearer(random: Random, tiers: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {
            part: price if isinstance(price, str) else price * random.choice((1, 1.1, 3))
            for part, price in prices.items()
        }
        for name, prices in tiers.items()
    }


def _unkept(outcome: Outcome, folder: Path) -> Iterator[str]:
    """What does not hold of the plan, if it has an optimum."""
    if outcome.code:
        return
    payload = json.loads(outcome.out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            yield from _otherwise_written(payload, folder)
            yield from _beaten(payload, folder)
            yield from _slower(payload, folder)
            yield from _cheaper(payload, folder)
        except Exception as error:
            yield f"{type(error).__name__}: {error}"


def _otherwise_written(payload: dict[str, Any], folder: Path) -> Iterator[str]:
    for name in ("permuted.yaml", "renamed.yaml"):
        design = lp.optimize(lp.load_plan(folder / name))
        room = _SAME + max(design.optimality_gap, payload["optimality_gap"])
        if abs(design.objective / payload["objective"] - 1) > room:
            yield f"{name}: optimum {design.objective!r}, of plan.yaml {payload['objective']!r}"


def _beaten(payload: dict[str, Any], folder: Path) -> Iterator[str]:
    problem = lp.load_plan(folder / "plan.yaml")
    if problem.purchasable:
        return
    optimum = np.array(payload["bandwidth_GBps"]) * 1e9
    for point in _points(problem, optimum):
        found = lp.evaluate(problem, point)
        if found.objective is None:  # It needs each workload's own optimum.
            return
        if not found.violated and found.objective < payload["lower_bound"] * (1 - 1e-12):
            yield f"{found.objective!r} at {(point / 1e9).tolist()} beats {payload['objective']!r}"
            return


def _points(problem: lp.Problem, start: np.ndarray) -> Iterator[np.ndarray]:
    """Vectors under the linear rules: each a random step from the start or from the last one."""
    draws = np.random.default_rng(0)
    n_dims = len(start)
    equal = np.array([rule.coefficients for rule in problem.rules if rule.sense == "=="])
    signs = {"<=": 1.0, ">=": -1.0}
    rows = [(np.array(r.coefficients), r) for r in problem.rules if r.sense in signs]
    left = np.array([signs[r.sense] * row for row, r in rows] + list(-np.eye(n_dims)))
    most = np.array([signs[r.sense] * r.bound for _, r in rows] + [0.0] * n_dims)
    free = _null_space(equal.reshape(-1, n_dims))
    here = start
    for number in range(_N_POINTS if free.size else 0):
        direction = free @ draws.normal(size=free.shape[1])
        direction *= np.linalg.norm(start) / np.linalg.norm(direction)
        speed, room = left @ direction, most - left @ here
        steps = room[speed > 0] / speed[speed > 0]
        longest = min(10.0, float(steps.min(initial=np.inf)))
        here = here + direction * max(longest, 0.0) * draws.random() ** 2
        if (here > 0).all():
            yield here
        if number % 8 == 7:
            here = start


def _null_space(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what changes no equality, shape (n_dims, n_free)."""
    _, sizes, basis = np.linalg.svd(np.vstack([rows, np.zeros((1, rows.shape[1]))]))
    rank = int((sizes > 1e-9 * sizes.max(initial=0.0)).sum())
    return np.asarray(basis[rank:].T)


def _slower(payload: dict[str, Any], folder: Path) -> Iterator[str]:
    problem, draws = lp.load_plan(folder / "plan.yaml"), np.random.default_rng(1)
    least = np.array(payload["bandwidth_GBps"]) * 1e9
    if not (least > 0).all():
        return
    before = lp.evaluate(problem, least)
    for _ in range(4):
        more = least * np.where(draws.random(len(least)) < 0.5, 1.0, draws.uniform(1, 3))
        after = lp.evaluate(problem, more)
        for name in ("step_time_s", "own_links_step_time_s"):
            if getattr(after, name) > getattr(before, name) * (1 + 1e-12):
                yield f"{name} {getattr(after, name)!r} with more than {getattr(before, name)!r} has"


def _cheaper(payload: dict[str, Any], folder: Path) -> Iterator[str]:
    try:
        dear = lp.load_plan(folder / "dear.yaml")
        optimum = np.array(payload["bandwidth_GBps"]) * 1e9
        cost_usd = lp.evaluate(dear, optimum).cost_usd
        if cost_usd < payload["cost_usd"] * (1 - 1e-12):
            yield f"higher prices: {cost_usd!r}, not {payload['cost_usd']!r} USD"
        design = lp.optimize(dear)
    except Infeasible:
        return
    except PlannerError as error:
        yield f"dear.yaml: {error}"
        return
    if design.objective < payload["lower_bound"] * (1 - _SAME):
        yield f"higher prices: optimum {design.objective!r}, not {payload['objective']!r}"
