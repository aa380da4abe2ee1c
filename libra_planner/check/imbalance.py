"""Which dimension of a check routes worse than it has to (C10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from libra_planner.check.delivered import DimensionReport


def worst_dimension(dimensions: Sequence[DimensionReport]) -> DimensionReport | None:
    """The dimension whose routing could avoid most FIM; ``None`` where no flow crosses switches.

    A ring over few links leaves the others idle under any routing: its FIM is its floor.
    """
    known = [one for one in dimensions if not np.isnan(one.fim_percent).all()]
    return max(known, key=avoidable_fim_percent) if known else None


def avoidable_fim_percent(one: DimensionReport) -> float:
    """Mean FIM of a dimension beyond its floor; all of it where packets are sprayed."""
    return float(one.fim_percent.mean() - np.nan_to_num(one.fim_floor_percent))
