"""A design with broken cables and spines: many draws, and every single failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from libra_planner.check.links import LinkCheck
from libra_planner.check.report import Progress, n_routings
from libra_planner.errors import Disconnected, Fault, SpecError
from libra_planner.fabric.clos import Array, Clos
from libra_planner.fabric.failures import cable_failures, fail, single_failures, with_failed
from libra_planner.fabric.realization import RealizedDesign
from libra_planner.routing.policy import Policy


@dataclass(frozen=True)
class FailureCase:
    """A design with something broken.

    Parameters
    ----------
    name : what is: ``seed 3``, or such as ``dim4: leaf 0 - spine 5``.
    step_time_s : effective; infinite where hosts are cut off.
    fim_percent : of the most unbalanced dimension; nan where hosts are cut off.
    disconnected : names hosts that no path joins any more; empty if all are joined.
    """

    name: str
    step_time_s: float
    fim_percent: float
    disconnected: str = ""


@dataclass(frozen=True)
class FailureStudy:
    """A design with nothing broken, and with each of several failures.

    Parameters
    ----------
    whole_step_time_s : effective step time of the whole fabric, mean over the same seeds.
    cases : in the order of the draws, or worst first for single failures.
    """

    whole_step_time_s: float
    cases: tuple[FailureCase, ...] = field(repr=False)

    @property
    def step_time_s(self) -> Array:
        """Of the cases in which all hosts are joined, shape (n_joined,)."""
        return np.array([case.step_time_s for case in self.cases if not case.disconnected])

    @property
    def fim_percent(self) -> Array:
        """Of the cases in which all hosts are joined, shape (n_joined,)."""
        return np.array([case.fim_percent for case in self.cases if not case.disconnected])

    @property
    def n_disconnected(self) -> int:
        """Cases that cut hosts off."""
        return sum(bool(case.disconnected) for case in self.cases)


def drawn_failures(
    check: LinkCheck,
    policy: Policy,
    *,
    n_links: int = 0,
    n_spines: int = 0,
    seeds: Iterable[int] | None = None,
    progress: Progress | None = None,
) -> FailureStudy:
    """Draw failures for every seed, in each dimension with several tiers of switches.

    Parameters
    ----------
    check : the design.
    n_links, n_spines : cables between switches and spines that fail in each such dimension.
    seeds : of the draws, and of the routing; by default 10 or fewer, by the number of flows.
    progress : called with finished and all seeds.

    Raises
    ------
    SpecError
        For a design without links between switches, or with fewer than are to fail.
    """
    listed = list(range(n_routings(check.n_drawn_flows(Policy()))) if seeds is None else seeds)
    check = check.scheduled(policy, seeds=listed)
    dims = _layered(check.design)
    whole = check.report(policy, seeds=listed).effective_step_time_s.mean()
    cases = []
    for i, seed in enumerate(listed):
        design = check.design
        for dim in dims:
            fabric = fail(
                design.dimensions[dim].clos, n_links=n_links, n_spines=n_spines, seed=seed + dim
            )
            design = _with_fabric(design, dim, fabric)
        cases.append(_case(check, design, policy, seed, f"seed {seed}"))
        if progress is not None:
            progress(i + 1, len(listed))
    return FailureStudy(float(whole), tuple(cases))


def every_single_failure(
    check: LinkCheck, policy: Policy, *, seed: int = 0, progress: Progress | None = None
) -> FailureStudy:
    """The N-1 study: each cable between switches and each spine alone, worst first.

    Raises
    ------
    SpecError
        For a design without links between switches.
    """
    designs = list(_single(check.design))
    check = check.scheduled(policy, seeds=[seed])
    whole = float(check.report(policy, seeds=[seed]).effective_step_time_s[0])
    cases = []
    for i, (name, dim, links) in enumerate(designs):
        fabric = with_failed(check.design.dimensions[dim].clos, links)
        cases.append(_case(check, _with_fabric(check.design, dim, fabric), policy, seed, name))
        if progress is not None:
            progress(i + 1, len(designs))
    return FailureStudy(whole, tuple(sorted(cases, key=lambda case: -case.step_time_s)))


def _single(design: RealizedDesign) -> Iterator[tuple[str, int, np.ndarray]]:
    for dim in _layered(design):
        for name, links in single_failures(design.dimensions[dim].clos):
            yield f"{design.dimensions[dim].label}: {name}", dim, links


def _case(
    check: LinkCheck, design: RealizedDesign, policy: Policy, seed: int, name: str
) -> FailureCase:
    try:
        report = replace(check, design=design).report(policy, seeds=[seed])
    except Disconnected as error:
        return FailureCase(name, float("inf"), float("nan"), str(error))
    return FailureCase(name, float(report.effective_step_time_s[0]), float(report.fim_percent[0]))


def _layered(design: RealizedDesign) -> list[int]:
    """Dimensions with links between switches."""
    dims = [
        dim
        for dim, built in enumerate(design.dimensions)
        if isinstance(built.fabric, Clos) and len(cable_failures(built.fabric))
    ]
    if not dims:
        got = f"got failures for {design.topology}, which has no links between switches"
        fix = "a dimension of one switch has none: see fabric.realization"
        raise SpecError(Fault(got, "expected a leaf-spine dimension", fix))
    return dims


def _with_fabric(design: RealizedDesign, dim: int, fabric: Clos) -> RealizedDesign:
    built = list(design.dimensions)
    built[dim] = replace(built[dim], fabric=fabric)
    return replace(design, dimensions=tuple(built))
