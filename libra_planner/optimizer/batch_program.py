"""Thousands of problems of one structure as arrays, and problems grouped by structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.optimizer.batch_scaled import Index
from libra_planner.optimizer.batch_structure import (
    Key,
    Structure,
    is_transfer,
    numbers,
)
from libra_planner.problem import Problem, StepTimeLimit
from libra_planner.step.expression import Array
from libra_planner.step.training import plain_step

_MEANING = MappingProxyType(
    {
        "time_numbers": "bytes above 0, seconds and factors of 0 or more, all finite",
        "coefficients": "finite numbers",
        "bounds": "finite numbers",
        "price_usd_per_Bps": "finite prices of 0 or more",
        "fixed_cost_usd": "finite costs of 0 or more",
        "limit_s": "times above 0, infinite for none",
    }
)
"""The arrays of a batch, and what they may hold."""


@dataclass(frozen=True)
class BatchProgram:
    """n designs of one structure: one problem's names and shape, and the numbers of each design.

    Every array has the designs on its first axis; broadcast views are welcome.

    Parameters
    ----------
    template : names, topology, senses of the rules, objective, and the tree of the step time.
    time_numbers : numbers of the merged tree (``template.step_time.merged``) in its order:
        bytes of transfers, seconds of constants, factors; shape (n, n_numbers).
    coefficients : left sides of the rules, shape (n, n_rules, n_dims), per byte/s. Rules over
        cost hold prices: :meth:`priced` changes both.
    bounds : their right sides, shape (n, n_rules), SI.
    price_usd_per_Bps : shape (n, n_dims).
    fixed_cost_usd : shape (n,).
    limit_s : the tightest bound on step time, shape (n,); infinite where there is none.

    Examples
    --------
    A sweep over the total bandwidth:

    >>> import libra_planner as lp
    >>> base = lp.load_plan(lp.example("01_gpt3_4d"))
    >>> program = BatchProgram.repeated(base, 3)
    >>> program = replace(program, bounds=np.array([[3e11], [4e11], [5e11]]))
    >>> program.problem(2).rules[0].bound
    500000000000.0
    """

    template: Problem
    time_numbers: Array
    coefficients: Array
    bounds: Array
    price_usd_per_Bps: Array
    fixed_cost_usd: Array
    limit_s: Array

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit the template or hold numbers without a meaning."""
        if not fits_a_batch(self.template):
            got = "got purchasable options, an open number of chunks or a relative group"
            raise SpecError(Fault(got, "expected none of these in a batch", "use batch_optimize"))
        faults = self._shape_faults() or self._number_faults()
        if faults:
            raise SpecError(*faults)

    @property
    def n(self) -> int:
        """Designs."""
        return len(self.bounds)

    @property
    def structure(self) -> Structure:
        """The shape of the step time."""
        return Structure(self.template.step_time.merged, self.template.topology.n_dims)

    @property
    def senses(self) -> tuple[str, ...]:
        """Sense of every rule."""
        return tuple(rule.sense for rule in self.template.rules)

    @classmethod
    def repeated(cls, problem: Problem, n: int) -> BatchProgram:
        """One problem n times, for ``dataclasses.replace`` to vary its numbers."""
        one = cls.of([problem])
        return one._changed(lambda array: np.broadcast_to(array, (n, *array.shape[1:])))

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> BatchProgram:
        """Problems of one structure: equal :func:`shape_key` and :func:`rest_of_key`."""
        template, n = problems[0], len(problems)
        n_dims, n_rules = template.topology.n_dims, len(template.rules)
        coefficients = [[rule.coefficients for rule in problem.rules] for problem in problems]
        bounds = [[rule.bound for rule in problem.rules] for problem in problems]
        trees = {id(p.step_time): p.step_time.merged for p in problems}
        found = {key: numbers(tree) for key, tree in trees.items()}
        limits = [[limit.limit_s for limit in problem.step_time_limits] for problem in problems]
        return cls(
            template=template,
            time_numbers=np.array([found[id(p.step_time)] for p in problems], dtype=np.float64),
            coefficients=np.array(coefficients, dtype=np.float64).reshape(n, n_rules, n_dims),
            bounds=np.array(bounds, dtype=np.float64).reshape(n, n_rules),
            price_usd_per_Bps=np.array([p.price_usd_per_Bps for p in problems], dtype=np.float64),
            fixed_cost_usd=np.array([p.fixed_cost_usd for p in problems], dtype=np.float64),
            limit_s=np.array([min(limit, default=np.inf) for limit in limits]),
        )

    def part(self, which: slice | Index) -> BatchProgram:
        """Some of the designs."""
        return self._changed(lambda array: array[which])

    def priced(self, price_usd_per_Bps: Array, fixed_cost_usd: Array) -> BatchProgram:
        """The designs at other prices, shapes (n, n_dims) and (n,), rules over cost included."""
        coefficients, bounds = np.array(self.coefficients), np.array(self.bounds)
        for k, rule in enumerate(self.template.rules):
            if rule.cost_factor:
                coefficients[:, k] = rule.cost_factor * price_usd_per_Bps
                bounds[:, k] -= rule.cost_factor * (fixed_cost_usd - self.fixed_cost_usd)
        return replace(
            self,
            coefficients=coefficients,
            bounds=bounds,
            price_usd_per_Bps=price_usd_per_Bps,
            fixed_cost_usd=fixed_cost_usd,
        )

    def problem(self, i: int) -> Problem:
        """Design i's problem."""
        template, limit_s = self.template, float(self.limit_s[i])
        rules = tuple(
            replace(rule, coefficients=tuple(map(float, row)), bound=float(bound))
            for rule, row, bound in zip(
                template.rules, self.coefficients[i], self.bounds[i], strict=True
            )
        )
        limit = min(
            template.step_time_limits,
            key=lambda limit: limit.limit_s,
            default=StepTimeLimit("step_time", limit_s),
        )
        time = self.structure.expression(self.time_numbers[i])
        return replace(
            template,
            step=plain_step(time, template.workload_name),
            rules=rules,
            prices=replace(
                template.prices,
                usd_per_Bps=tuple(self.price_usd_per_Bps[i].tolist()),
                fixed_usd=float(self.fixed_cost_usd[i]),
            ),
            step_time_limits=(replace(limit, limit_s=limit_s),) if np.isfinite(limit_s) else (),
        )

    def _changed(self, change: Callable[[Array], Array]) -> BatchProgram:
        return BatchProgram(self.template, *(change(getattr(self, name)) for name in _MEANING))

    def _shape_faults(self) -> list[Fault]:
        n, n_dims, n_rules = self.n, self.template.topology.n_dims, len(self.template.rules)
        expected: dict[str, tuple[int, ...]] = {
            "time_numbers": (n, len(numbers(self.template.step_time.merged))),
            "coefficients": (n, n_rules, n_dims),
            "bounds": (n, n_rules),
            "price_usd_per_Bps": (n, n_dims),
            "fixed_cost_usd": (n,),
            "limit_s": (n,),
        }
        shapes = {name: getattr(self, name).shape for name in expected}
        return [
            Fault(f"got an array of shape {shapes[name]}", f"expected {shape}", path=name)
            for name, shape in expected.items()
            if shapes[name] != shape
        ]

    def _number_faults(self) -> list[Fault]:
        moved = np.array([*is_transfer(self.template.step_time.merged)], dtype=bool)
        finite = {name: bool(np.isfinite(getattr(self, name)).all()) for name in _MEANING}
        least = {name: float(getattr(self, name).min(initial=np.inf)) for name in _MEANING}
        fine = {name: finite[name] and least[name] >= 0 for name in _MEANING}
        fine |= {"coefficients": finite["coefficients"], "bounds": finite["bounds"]}
        fine["limit_s"] = least["limit_s"] > 0
        fine["time_numbers"] &= bool((self.time_numbers[:, moved] > 0).all())
        return [
            Fault("got a number out of range", f"expected {_MEANING[name]}", path=name)
            for name in _MEANING
            if not fine[name]
        ]


def fits_a_batch(problem: Problem) -> bool:
    """Whether a problem is one convex program with no choice outside of it."""
    return not (problem.options or problem.alternatives or problem.group_objective != "weighted")


def rest_of_key(problem: Problem) -> Key:
    """The structure but for the step time's."""
    return (
        problem.topology.n_dims,
        problem.objective,
        bool(problem.step_time_limits),
        tuple(rule.sense for rule in problem.rules),
    )
