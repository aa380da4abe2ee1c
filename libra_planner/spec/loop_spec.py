"""The part of a plan that says how compute and communication follow one another."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from libra_planner.errors import SpecError
from libra_planner.reading.fields import LOOP_NAME, LOOP_TEXT, Model
from libra_planner.spec.loops import parse_loop
from libra_planner.step.loops import LOOPS, TrainingLoop, overlapped

Expression: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000)]

BubbleFraction: TypeAlias = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]


class WrittenLoopSpec(Model):
    """A loop of the plan's own: an expression per layer, or over the whole step."""

    layer: Expression | None = Field(
        default=None, description="Time of one layer, such as 'forward + max(backward, 50 us)'."
    )
    step: Expression | None = Field(
        default=None, description="Time of the step, over the sums of all layers."
    )

    @model_validator(mode="before")
    @classmethod
    def _whole_expression(cls, value: Any) -> Any:
        """In {braces} YAML splits text without quotes at its commas."""
        if isinstance(value, dict) and any(")" in str(key) for key in value):
            raise ValueError("got an expression split at a comma, expected it in quotes")
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> WrittenLoopSpec:
        if (self.layer is None) == (self.step is None):
            given = "neither" if self.layer is None else "both"
            raise ValueError(f"got {given} of layer and step, expected one of them")
        return self


def _kind(value: Any) -> str:
    return LOOP_TEXT if isinstance(value, dict | WrittenLoopSpec) else LOOP_NAME


LoopSpec: TypeAlias = Annotated[
    Annotated[Literal["no_overlap", "tp_dp_overlap", "async_dp"], Tag(LOOP_NAME)]
    | Annotated[WrittenLoopSpec, Tag(LOOP_TEXT)],
    Discriminator(_kind),
]


def training_loop(
    spec: str | WrittenLoopSpec, *, contention: bool, bubble_fraction: float
) -> TrainingLoop:
    """The loop of a plan.

    Raises
    ------
    SpecError
        For an expression outside the grammar.
    """
    if isinstance(spec, str):
        return TrainingLoop(LOOPS[spec], True, contention, bubble_fraction)
    key, text = ("layer", spec.layer) if spec.layer is not None else ("step", spec.step or "")
    try:
        term = parse_loop(text)
    except SpecError as error:
        faults = (replace(fault, path=f"training_loop.{key}") for fault in error.faults)
        raise type(error)(*faults) from None
    return TrainingLoop(term, key == "layer", contention, bubble_fraction)


def loop_settings(spec: str | WrittenLoopSpec, loop: TrainingLoop) -> list[str]:
    """What a plan chose, for people to read.

    >>> loop_settings("async_dp", TrainingLoop(LOOPS["async_dp"], bubble_fraction=0.1))
    ['loop async_dp with contention', 'pipeline bubble 10%']
    """
    name = f"loop {spec}" if isinstance(spec, str) else "loop of the plan's own"
    if overlapped(loop.term):
        name += f" {'with' if loop.contention else 'without'} contention"
    bubble = loop.bubble_fraction
    return [name, f"pipeline bubble {100 * bubble:.3g}%"] if bubble else [name]
