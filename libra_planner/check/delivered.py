"""What links deliver of their bandwidth to the collectives and sends of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from libra_planner.check.sends import factors_of
from libra_planner.check.traffic import User
from libra_planner.fabric.clos import Array
from libra_planner.step.collectives.models import Slowdown


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
