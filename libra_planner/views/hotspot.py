"""The round that costs a step most, as JSON-ready values."""

from __future__ import annotations

from typing import Any

from libra_planner.check.hotspot import Hotspot, TracedFlow
from libra_planner.views.flows import MOST_NAMED, busiest_links, group_rows, hop_rows
from libra_planner.views.spread import number


def hotspot_payload(
    hot: Hotspot, *, n_busiest: int, groups: bool = False, traced: TracedFlow | None = None
) -> dict[str, Any]:
    """The key ``hotspot`` of ``check --json``."""
    payload: dict[str, Any] = {
        "dimension": hot.phase.label,
        "collectives": list(dict.fromkeys(user.label for user in hot.users)),
        "round": hot.worst.name,
        "slowdown": number(hot.worst.time_s / hot.worst.ideal_s),
        "busiest_links": link_rows(hot, n_busiest),
    }
    if hot.routed is not None and groups:
        payload["groups"] = group_rows(hot.routed)
    if traced is not None:
        payload["trace"] = {
            "flow": traced.routed.flows.ids[traced.number],
            "dimension": traced.label,
            "round": traced.round_name,
            "hops": hop_rows(traced.routed, traced.number),
        }
    return payload


def link_rows(hot: Hotspot, n: int) -> list[dict[str, Any]]:
    """The busiest links, with the number of groups whose flows are on them."""
    if hot.routed is None:
        return []
    return [_with_groups(row) for row in busiest_links(hot.routed, n)]


def _with_groups(row: dict[str, Any]) -> dict[str, Any]:
    found = row.pop("collectives", {})
    return row | {"n_groups": len(found), "groups": dict(list(found.items())[:MOST_NAMED])}
