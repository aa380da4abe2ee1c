"""What the search for a plan's strategy found, beside whatever is said of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libra_planner.search.best import SearchResult

TIES_UNKNOWN = "Ties cannot be told: no measured class says how far off such times are"
"""Of strategies, where the rule of ties (C23) has no class."""
FLATTERED = (
    "The predicted best of many is often one whose error flatters it: of measured pairs with it "
    "only two of three come in the predicted order"
)
"""What bands of time mean for the best of a search (docs/accuracy.md)."""


def search_counts(found: SearchResult) -> dict[str, Any]:
    """How much of the space was looked at, and how."""
    names = ("n_candidates", "n_not_fitting", "n_cut", "n_solved", "n_unproven")
    return {name: getattr(found, name) for name in names} | {"certified": found.is_certified}


def found_payload(found: SearchResult | None) -> dict[str, Any]:
    """The key ``search`` of JSON; nothing of a plan that says its degrees."""
    return {} if found is None else {"search": search_counts(found)}


def found_blocks(found: SearchResult | None) -> Iterator[str]:
    """How many strategies were compared, and how much of them is proven."""
    if found is not None:
        yield from ("", *verdict(found))


def optimum_blocks(found: SearchResult | None) -> Iterator[str]:
    """The same beside a plan's optimum, with the commands that compare other strategies."""
    yield from links_blocks(found)
    if found is not None and found.best and found.n_candidates - found.n_not_fitting > 1:
        yield (
            "Others may be nearly as good, and the best of many is often one whose error flatters "
            "it: search PLAN ranks them"
        )


def links_blocks(found: SearchResult | None) -> Iterator[str]:
    """The same beside times on real links, which no search compares."""
    yield from found_blocks(found)
    if found is not None:
        yield from in_the_model(found)


def in_the_model(found: SearchResult) -> Iterator[str]:
    """Where another strategy may be the best."""
    if found.best:
        yield (
            "On links another strategy may be better: optimize PLAN --routing ecmp checks the "
            "likely ones there"
        )


def verdict(found: SearchResult, bold: tuple[str, str] = ("[bold]", "[/]")) -> Iterator[str]:
    """What became of all strategies, and whether the best is proven; ``bold`` are its marks."""
    start, end = bold
    worked_out = f"{found.n_solved:,} {'was' if found.n_solved == 1 else 'were'} worked out in full"
    yield (
        f"{found.n_candidates:,} strategies: {found.n_not_fitting:,} do not fit an NPU's memory, "
        f"{found.n_cut:,} cannot be among the best, {worked_out}"
    )
    if found.is_certified and found.best:
        yield f"{start}Proven{end}: no other strategy of the space is better in the model."
    elif not found.is_certified:
        stopped = " (stopped)" if found.was_stopped else ""
        yield f"{start}Not proven{end}{stopped}: {found.n_unproven:,} strategies may be better."
