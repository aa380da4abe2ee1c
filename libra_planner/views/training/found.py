"""What the search for a plan's strategy found, beside whatever a command says of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libra_planner.search.best import SearchResult


def found_payload(found: SearchResult | None) -> dict[str, Any]:
    """The key ``search`` of JSON; nothing of a plan that says its degrees."""
    if found is None:
        return {}
    from libra_planner.views.times.search import search_counts

    return {"search": search_counts(found)}


def found_blocks(found: SearchResult | None) -> Iterator[str]:
    """How many strategies were compared, and how much of them is proven."""
    if found is None:
        return
    from libra_planner.views.times.search import verdict

    yield from ("", *verdict(found))
