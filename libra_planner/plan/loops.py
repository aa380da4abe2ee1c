"""Training loops that a plan writes out or names: text into a tree of the core; parsed, never run.

Grammar (docs/loops.md)::

    sum     = product ("+" product)*
    product = factor (("*" | "/") factor)*        one time; the other factors are numbers
    factor  = number | number unit | name | "max" "(" sum ("," sum)* ")" | "(" sum ")"
    name    = phase | phase "." part
    phase   = "forward" | "backward" | "input_grad" | "weight_grad"
    part    = "compute" | "tp" | "cp" | "ep" | "dp" | "linear" | "attention" | "experts" | "other"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from libra_planner.errors import Fault, SpecError, UnitError, UnknownName, closest
from libra_planner.reading.models import Kind, Model
from libra_planner.reading.tokens import Token, token_pattern, tokens
from libra_planner.step import layers
from libra_planner.units import UNITS

MAX_NESTING = 20
"""Deepest brackets of an expression."""

_FACTORS = (1e-9, 1e9)
_SECONDS = (1e-12, 1e12)
"""Factors and durations that an expression may use beside 0; the rest is a slip."""

_NOT_CONVEX = "expected sums, max and multiples of 0 or more"
_TOKEN = token_pattern(word=r"[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_0-9]+)*", sign="[-+*/(),]")


def parse_loop(text: str) -> layers.LoopTerm:
    """The tree of a loop's expression.

    Raises
    ------
    SpecError
        For text outside the grammar, with the reason and the position.

    Examples
    --------
    >>> parse_loop("2 * forward.tp + 50 ms")
    Serial(terms=(Multiple(factor=2.0, term=Quantity(...)), Duration(seconds=0.05)))
    """
    parser = _LoopParser(text, list(tokens(text, _TOKEN)))
    term = parser.sum()
    if parser.next.text:
        raise parser.fault(f"{parser.next}", "expected '+', '*', '/' or the end")
    for factor, leaf in _leaves(term):
        if factor and not _FACTORS[0] <= factor <= _FACTORS[1]:
            what = str(leaf) if isinstance(leaf, layers.Quantity) else "a duration"
            expected = f"expected 0 or a factor from {_FACTORS[0]:g} to {_FACTORS[1]:g}"
            raise SpecError(Fault(f"got {factor:g} times {what} in {text!r}", expected))
    return term


def _leaves(term: layers.LoopTerm, factor: float = 1.0) -> Iterator[tuple[float, layers.LoopTerm]]:
    """Durations and quantities with the product of the factors before them."""
    if isinstance(term, layers.Serial | layers.Overlap):
        for inner in term.terms:
            yield from _leaves(inner, factor)
    elif isinstance(term, layers.Multiple):
        yield from _leaves(term.term, factor * term.factor)
    else:
        yield factor, term


@dataclass
class _LoopParser:
    text: str
    tokens: list[Token]
    depth: int = 0

    @property
    def next(self) -> Token:
        return self.tokens[0]

    def take(self) -> Token:
        return self.tokens.pop(0) if len(self.tokens) > 1 else self.next

    def fault(self, got: str, expected: str = "", fix: str = "", at: int = 0) -> SpecError:
        where = f"at character {at or self.next.at} of {self.text!r}"
        return SpecError(Fault(f"got {got} {where}", expected, fix))

    def sum(self) -> layers.LoopTerm:
        terms = [self.product()]
        while self.next.text in ("+", "-"):
            if self.next.text == "-":
                raise self._difference()
            self.take()
            terms.append(self.product())
        return layers.Serial(tuple(terms)) if len(terms) > 1 else terms[0]

    def _difference(self) -> SpecError:
        reason = "a difference is not convex and non-increasing in bandwidth"
        return self.fault("'-'", f"{_NOT_CONVEX}: {reason}")

    def product(self) -> layers.LoopTerm:
        start, first = self.next, self.factor()
        number, term = (first, None) if isinstance(first, float) else (1.0, first)
        while self.next.text in ("*", "/"):
            operator, at = self.take().text, self.next.at
            factor = self.factor()
            if operator == "/":
                if not isinstance(factor, float):
                    reason = f"{_NOT_CONVEX}: one over a time grows with bandwidth"
                    raise self.fault("a division by a time", reason, at=at)
                if not factor:
                    raise self.fault("a division by 0", at=at)
                number /= factor
            elif isinstance(factor, float):
                number *= factor
            elif term is None:
                term = factor
            else:
                raise self.fault("a time multiplied by a time", _NOT_CONVEX, at=at)
        if term is None:
            fix = f"write {start.text} us, or {start.text} * forward"
            raise self.fault(f"{start} without a unit or name", "expected a time", fix, start.at)
        return term if number == 1.0 else layers.Multiple(number, term)

    def factor(self) -> layers.LoopTerm | float:
        token = self.take()
        if token.kind == "number":
            return self._number(token)
        if token.kind == "word":
            return self._longest(token) if self.next.text == "(" else self._named(token)
        if token.text == "(":
            terms = self._bracket(token)
            if len(terms) > 1:
                raise self.fault("several terms in brackets", "", "write max(...)", token.at)
            return terms[0]
        self.tokens.insert(0, token)
        if token.text == "-":
            raise self._difference()
        raise self.fault(f"{token}", "expected a quantity such as forward.tp, a number or max(")

    def _number(self, token: Token) -> layers.LoopTerm | float:
        """A number, or a duration where a unit follows."""
        number = float(token.text)
        if self.next.kind != "word" and self.next.text != "(":
            return number
        unit = self.take()
        if unit.text in (*layers.NAMES, "max", "(") or self.next.text == "(":
            got = f"'{token.text} {unit.text}'"
            raise self.fault(got, "expected '*' between them", "write it", token.at)
        if unit.text not in UNITS["time"]:
            fix = closest(unit.text, UNITS["time"])
            error = self.fault(f"the unit {unit}", "expected one of time", fix, unit.at)
            raise UnitError(*error.faults)
        seconds = number * UNITS["time"][unit.text]
        if seconds and not _SECONDS[0] <= seconds <= _SECONDS[1]:
            expected = f"expected 0 or {_SECONDS[0]:g} to {_SECONDS[1]:g} s"
            raise self.fault(f"'{token.text} {unit.text}'", expected, at=token.at)
        return layers.Duration(seconds)

    def _named(self, token: Token) -> layers.LoopTerm:
        if token.text not in layers.NAMES:
            fix = closest(token.text, layers.NAMES)
            error = self.fault(f"the name {token}", "expected a quantity", fix, token.at)
            raise UnknownName(*error.faults)
        return layers.NAMES[token.text]

    def _longest(self, token: Token) -> layers.LoopTerm:
        if token.text != "max":
            reason = ": a minimum is not convex in bandwidth" if token.text == "min" else ""
            raise self.fault(f"the function {token}", f"{_NOT_CONVEX}{reason}", at=token.at)
        terms = self._bracket(self.take())
        return layers.Overlap(tuple(terms)) if len(terms) > 1 else terms[0]

    def _bracket(self, opening: Token) -> list[layers.LoopTerm]:
        """The terms between brackets, separated by commas."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.fault(f"brackets nested deeper than {MAX_NESTING}", at=opening.at)
        terms = [self.sum()]
        while self.next.text == ",":
            self.take()
            terms.append(self.sum())
        if self.next.text != ")":
            raise self.fault(f"{self.next}", "expected '+', '*' or ')'")
        self.take()
        self.depth -= 1
        return terms


Expression: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000)]

BubbleFraction: TypeAlias = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]


class WrittenLoopSpec(Model):
    """A loop of the plan's own: an expression per layer, or over the whole step.

    Parameters
    ----------
    layer : Time of one layer, such as 'forward + max(backward, 50 us)'.
    step : Time of the step, over the sums of all layers.
    """

    layer: Expression | None = None
    step: Expression | None = None

    @model_validator(mode="before")
    @classmethod
    def _whole_expression(cls, value: Any) -> Any:
        """In {braces} YAML splits text without quotes at its commas."""
        if isinstance(value, dict) and any(")" in str(key) for key in value):
            raise ValueError("got an expression split at a comma, expected it in quotes")
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> WrittenLoopSpec:
        given = self.given("layer", "step")
        if len(given) != 1:
            got = "both" if given else "neither"
            raise ValueError(f"got {got} of layer and step, expected one of them")
        return self


LoopSpec: TypeAlias = Annotated[
    Annotated[Literal["no_overlap", "tp_dp_overlap", "async_dp"], Tag(Kind.LOOP_NAME)]
    | Annotated[WrittenLoopSpec, Tag(Kind.LOOP_TEXT)],
    Discriminator(
        lambda one: Kind.LOOP_TEXT if isinstance(one, dict | WrittenLoopSpec) else Kind.LOOP_NAME
    ),
]


_ABSENT = re.compile(r"\.(?:cp|ep)\b")


def loop_notes(spec: str | WrittenLoopSpec) -> tuple[str, ...]:
    """What a step of tp and dp alone makes of a loop's names, for people.

    >>> loop_notes(WrittenLoopSpec(layer="forward + backward + forward.cp"))
    ('cp and ep of the training loop are 0: this plan has tp and dp alone',)
    """
    written = "" if isinstance(spec, str) else f"{spec.layer or spec.step}"
    said = "cp and ep of the training loop are 0: this plan has tp and dp alone"
    return (said,) if _ABSENT.search(written) else ()


def loop_settings(spec: str | WrittenLoopSpec, loop: layers.TrainingLoop) -> list[str]:
    """What a plan chose, for people to read.

    >>> from libra_planner.step.layers import LOOPS
    >>> loop_settings("async_dp", layers.TrainingLoop(LOOPS["async_dp"], bubble_fraction=0.1))
    ['loop async_dp with contention', 'pipeline bubble 10%']
    """
    name = f"loop {spec}" if isinstance(spec, str) else "loop of the plan's own"
    if loop.overlapped:
        name += f" {'with' if loop.contention else 'without'} contention"
    bubble = loop.bubble_fraction
    return [name, f"pipeline bubble {100 * bubble:.3g}%"] if bubble else [name]
