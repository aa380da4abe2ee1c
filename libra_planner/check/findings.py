"""What a check of a design's links finds: by dimension, by phase, and for the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from libra_planner.check.phases import PhaseReport
from libra_planner.check.schedules import Choice, PhaseKey
from libra_planner.fabric.clos import Array, Indices
from libra_planner.fabric.realization import RealizedDesign, RealizedDimension
from libra_planner.routing.policy import Policy
from libra_planner.workload.communication import Communication


@dataclass(frozen=True)
class DimensionReport:
    """One dimension under the step's collectives.

    Parameters
    ----------
    label, tier : such as dim4 and pod.
    asked_Bps, bandwidth_Bps : per NPU: of the design, and of its whole links.
    ideal_efficiency : share of ``bandwidth_Bps`` that collectives get, by bytes, with every
        packet sprayed; nan without traffic, mean over random placements.
    efficiency : the same under the policy, shape (n_seeds,).
    fim_percent : mean over the collectives' rounds by bytes, shape (n_seeds,); nan where no
        flow crosses switches.
    fim_floor_percent : the least that any routing of whole flows can reach; nan for ``spray``.
    """

    label: str
    tier: str
    asked_Bps: float
    bandwidth_Bps: float
    ideal_efficiency: float
    efficiency: Array = field(repr=False)
    fim_percent: Array = field(repr=False)
    fim_floor_percent: float = float("nan")


@dataclass(frozen=True)
class PhaseSpread:
    """Figures of a phase by seed.

    Parameters
    ----------
    efficiency, slowdown, fim_percent : as of a :class:`~libra_planner.check.phases.PhaseReport`,
        shape (n_seeds,).
    """

    efficiency: Array
    slowdown: Array
    fim_percent: Array


def phase_spread(reports: Sequence[PhaseReport]) -> PhaseSpread:
    """The figures of a phase's reports."""
    return PhaseSpread(
        efficiency=np.array([one.efficiency for one in reports]),
        slowdown=np.array([one.slowdown for one in reports]),
        fim_percent=np.array([one.fim_percent for one in reports]),
    )


@dataclass(frozen=True)
class CheckReport:
    """A design under a routing policy.

    Parameters
    ----------
    policy, seeds : what routed.
    is_drawn : whether another seed gives other figures; else one routing stands for all seeds.
    design : the links.
    ideal_step_time_s : by the plan's model, in which dimensions deliver all their bandwidth.
    spray_step_time_s : on the whole links, with every packet sprayed; mean over random
        placements.
    effective_step_time_s : on the whole links under the policy, shape (n_seeds,).
    dimensions : innermost first.
    keys, phases : of the first seed: the distinct phases on switches, with the collectives that
        they serve.
    spreads : their figures of all seeds.
    choices : the algorithm of each phase, and what else could have run.
    """

    policy: Policy
    seeds: Indices
    is_drawn: bool
    design: RealizedDesign = field(repr=False)
    ideal_step_time_s: float
    spray_step_time_s: float
    effective_step_time_s: Array
    dimensions: tuple[DimensionReport, ...]
    keys: tuple[PhaseKey, ...] = field(repr=False)
    phases: tuple[tuple[PhaseReport, tuple[Communication, ...]], ...] = field(repr=False)
    spreads: tuple[PhaseSpread, ...] = field(repr=False)
    choices: tuple[Choice, ...] = field(repr=False)

    @property
    def n_routings(self) -> int:
        """Routings that were made: one for all seeds where nothing is drawn."""
        return len(self.seeds) if self.is_drawn else 1

    @property
    def slowdown(self) -> Array:
        """Effective over ideal step time, shape (n_seeds,)."""
        return self.effective_step_time_s / self.ideal_step_time_s

    @property
    def fim_percent(self) -> Array:
        """Of the most unbalanced dimension, shape (n_seeds,); nan where no flow has a choice."""
        return _worst(np.stack([one.fim_percent for one in self.dimensions]))

    @property
    def fim_floor_percent(self) -> float:
        """The least that any routing of whole flows can reach; nan as for a dimension."""
        return float(_worst(np.array([one.fim_floor_percent for one in self.dimensions])))


def _worst(figures: Array) -> Array:
    """Largest over the dimensions, the first axis; nan where all are."""
    known = ~np.isnan(figures)
    worst = np.where(known, figures, -np.inf).max(axis=0)
    return np.where(known.any(axis=0), worst, np.nan)


def dimension_report(
    built: RealizedDimension,
    sent: Array,
    *,
    routed: Sequence[Array],
    sprayed: Sequence[Array],
    fim_percent: Sequence[float],
    floor_percent: float,
) -> DimensionReport:
    """A dimension's figures from those of its collectives.

    Parameters
    ----------
    built : the links.
    sent : bytes of each collective in a step, shape (n_collectives,).
    routed, sprayed : factors on their times, for each seed of the same shape.
    fim_percent, floor_percent : of each seed, and of the best routing.
    """

    def efficiency(factors: Array) -> float:
        return float(sent.sum() / (sent @ factors)) if sent.sum() else float("nan")

    return DimensionReport(
        label=built.label,
        tier=built.tier,
        asked_Bps=built.asked_Bps,
        bandwidth_Bps=built.bandwidth_Bps,
        ideal_efficiency=float(np.mean([efficiency(factors) for factors in sprayed])),
        efficiency=np.array([efficiency(factors) for factors in routed]),
        fim_percent=np.array(fim_percent),
        fim_floor_percent=floor_percent,
    )
