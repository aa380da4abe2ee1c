"""The shape of a purchasable link in a plan (pydantic, frozen, nothing extra)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

_Usd: TypeAlias = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class LinkOptionSpec(BaseModel):
    """A port that can be bought, how many of it an NPU may have, and what they cost."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # What is skipped here is read in spec.catalogue, whose messages name the fix.
    speed: SkipValidation[str] = Field(
        description="Bandwidth of one port, one direction, such as 400 Gbit/s or 50 GB/s."
    )
    ports: SkipValidation[int | str | list[int]] = Field(
        default=1, description="Ports per NPU: a number, a list, or a range such as 1..4."
    )
    usd_per_port: _Usd | None = Field(
        default=None,
        description="Price of a port for one NPU: NIC, cable, optics and its share of the switch.",
    )
    usd_per_npu: SkipValidation[float | list[float] | None] = Field(
        default=None, description="Volume prices: of all ports of one NPU, one for each count."
    )
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="What the supplier calls it."
    )


LinkOptionsSpec: TypeAlias = dict[
    Annotated[str, Field(min_length=1)], SkipValidation[list[str | LinkOptionSpec]]
]
"""Options by dimension; each entry is read on its own in :mod:`libra_planner.spec.catalogue`."""
