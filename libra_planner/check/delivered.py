"""What links deliver of their bandwidth to the collectives and sends of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from libra_planner.check.stages import User
from libra_planner.fabric.clos import Array
from libra_planner.step.collectives.models import Slowdown
from libra_planner.workload.operations import Communication, Send


@dataclass(frozen=True)
class SentBytes:
    """What an NPU sends in a step.

    Parameters
    ----------
    users : collectives and sends.
    sent_bytes : of each, shape (n_users, n_dims); 0 where its group does not span the dimension.
    """

    users: tuple[User, ...]
    sent_bytes: Array = field(repr=False)

    @classmethod
    def of_users(cls, users: Sequence[User], bytes_of: Callable[[User], Array]) -> Self:
        """What the users send, whose bytes by dimension a check knows (C3, C13)."""
        rows = [bytes_of(one) * one.count * (np.array(one.group.sizes) > 1) for one in users]
        return cls(tuple(users), np.array(rows))

    def efficiency(self, slowdown: Slowdown, dim: int) -> float:
        """Share of a dimension's whole links that they get, by bytes; nan without any."""
        sent = self.sent_bytes[:, dim] if self.users else np.zeros(0)
        factors = [factors_of(slowdown, one)[dim] for one in self.users]
        return float(sent.sum() / (sent @ factors)) if sent.sum() else float("nan")


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

    @property
    def sprayed_Bps(self) -> float:
        """What collectives get of the whole links with every packet sprayed: at most all of it.

        Sends that find others' links idle take less than the model counts (an efficiency above
        1), and do so at no more bandwidth than the links have.
        """
        return self.bandwidth_Bps * float(np.fmin(self.ideal_efficiency, 1.0))

    def got_Bps(self, efficiency: Array) -> Array:
        """The same by the efficiency of routings: what routing costs is taken off.

        >>> twice, lossy = np.array([2.0]), np.array([1.5])
        >>> core = DimensionReport("dim4", "core", 16e9, 17e9, 2.0, twice, np.zeros(1))
        >>> core.sprayed_Bps, core.got_Bps(twice), core.got_Bps(lossy)
        (17000000000.0, array([1.7e+10]), array([1.275e+10]))
        """
        return self.bandwidth_Bps * self.share(efficiency)

    def share(self, efficiency: Array) -> Array:
        """The same as a share of the whole links, 1 at most."""
        found: Array = efficiency / np.fmax(self.ideal_efficiency, 1.0)
        return found


def factors_of(slowdown: Slowdown, one: Communication | Send) -> Array:
    """What a slowdown says of a collective or a send, shape (n_dims,)."""
    if isinstance(one, Send):
        return slowdown.send_factors_of(one.group)
    return slowdown.factors_of(one.collective, one.group)
