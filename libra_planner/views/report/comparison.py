"""What a report is made of: the designs, what was asked for, and where it all came from."""

from __future__ import annotations

from dataclasses import dataclass, field

from libra_planner.procurement.bill import Bill, Part
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import BudgetSwing, Ranking, Swing, times_s
from libra_planner.views.cells import PART_OF_A_STEP


@dataclass(frozen=True)
class Origin:
    """How the report can be made again.

    Parameters
    ----------
    command : that was given.
    versions : of this program and what it computes with, by name.
    files : role, name and SHA-256 of every input.
    """

    command: str
    versions: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Comparison:
    """Everything that a report says.

    Parameters
    ----------
    candidates : one to ten designs.
    baseline : index of the design that the others are compared with; ``None`` for none.
    ranking, swings, budgets : of the designs.
    n_tokens : of a training run; ``is_default_tokens`` where nobody asked for it.
    catalogue_source, catalogue_as_of : of the parts catalogue.
    origin : for the last section.
    """

    candidates: tuple[Candidate, ...]
    baseline: int | None
    ranking: Ranking
    swings: tuple[Swing, ...] = field(repr=False)
    budgets: tuple[BudgetSwing, ...] = field(repr=False)
    n_tokens: int
    is_default_tokens: bool
    catalogue_source: str
    catalogue_as_of: str
    origin: Origin = field(repr=False)

    @property
    def letters(self) -> list[str]:
        """A, B, C, ..."""
        return [one.letter for one in self.candidates]

    @property
    def bill(self) -> Bill:
        """Lines of all designs."""
        return Bill(tuple(line for one in self.candidates for line in one.bill.lines))

    @property
    def missing(self) -> tuple[Part, ...]:
        """Parts without a price in any design."""
        return self.bill.missing

    @property
    def without(self) -> str:
        """What totals leave out, in words; empty where they are whole."""
        names = ", ".join(part.name for part in self.missing)
        return f"without: {names}" if names else ""

    @property
    def times_s(self) -> list[float] | None:
        """Times of the same work by design, where they can be compared."""
        return times_s(self.candidates)[0]

    @property
    def has_run(self) -> bool:
        """Whether the run of any design is known."""
        return any(one.run for one in self.candidates)

    @property
    def chosen(self) -> int:
        """The design that the charts show in detail: the best per dollar, else the cheapest."""
        best = self.ranking.best_per_usd
        return self.ranking.cheapest if best is None else best


def run_refusal(comparison: Comparison) -> tuple[str, ...]:
    """Why no run is told of designs whose workload is part of a step, and the fix (C21)."""
    parts = [one for one in comparison.candidates if one.proposal.is_part]
    if not parts:
        return ()
    fixes = "; ".join(dict.fromkeys(one.proposal.problem.step.fix for one in parts))
    return (
        f"Tokens per second, days and dollars of a run are {PART_OF_A_STEP} "
        f"({', '.join(one.letter for one in parts)}). To have them: {fixes}.",
    )


def time_basis(comparison: Comparison) -> str:
    """Which step time there is, and what of the report follows it."""
    per_usd = comparison.ranking.best_per_usd is not None
    known = {
        "the ranking": per_usd and len(comparison.candidates) > 1,
        "tokens per second": any(one.token_time_s for one in comparison.candidates),
        "work per dollar": per_usd,
        "the run": comparison.has_run,
    }
    *most, last = [name for name, is_known in known.items() if is_known] or [""]
    text = f"Step times are {comparison.ranking.ranked_by}"
    if not last:
        return f"{text}."
    verb = "follow" if most or last == "tokens per second" else "follows"
    return f"{text}: {', '.join(most)}{' and ' if most else ''}{last} {verb} them."
