"""The shape of a plan for several workloads on one fabric."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from libra_planner.reading.fields import Text
from libra_planner.spec.models import CommonSpec, PlanSpec, TrainingSpec


class MemberSpec(TrainingSpec):
    """One workload of a group."""

    weight: Annotated[float, Field(ge=1e-6, le=1e6)] = Field(
        default=1.0, description="Its share of the group; shares are divided by their sum."
    )
    name: Text | None = Field(
        default=None, description="What reports call it; by default the workload's name."
    )


class GroupPlanSpec(CommonSpec):
    """A plan for several workloads on one fabric."""

    workloads: Annotated[list[MemberSpec], Field(min_length=1, max_length=100)] = Field(
        description="Instead of workload: what the fabric is for, each with its parallelism."
    )
    group_objective: Literal["weighted", "relative", "worst_case"] = Field(
        default="weighted",
        description="weighted: the mean step time; relative, worst_case: the mean or the "
        "largest of step time over each workload's own optimum.",
    )


AnyPlanSpec: TypeAlias = PlanSpec | GroupPlanSpec
