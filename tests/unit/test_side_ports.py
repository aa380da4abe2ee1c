"""Ports of the frontend and storage networks that are left for what no bill holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from libra_planner.procurement.readiness import blocked, open_points
from libra_planner.units import short_usd
from libra_planner.views.report.recommendation import scope_text
from tests.comparisons import compared_by

RAILS = "0e_rails_2to1@450,25,12.5"


def _with(folder: Path, text: str):
    path = folder / "parts.yaml"
    path.write_text(f"kind: parts\nbase: parts\nassumptions: {{{text}}}\n")
    return compared_by(RAILS, "--parts", str(path)).candidates[0]


def _leaves(one, group: str) -> tuple[int, int]:
    """Switches of a network's leaves, and their free ports."""
    [line] = [x for x in one.bill.of(group).lines if x.tier == f"{group}, leaf"]
    return line.n_units, line.n_free_ports


def test_a_network_without_a_free_port_is_told_with_what_room_costs(tmp_path) -> None:
    """256 servers on leaves of 32: all 8 x 64 ports are used. The price is a whole second bill's."""
    one = _with(tmp_path, "")
    assert _leaves(one, "storage") == (8, 0)
    assert _leaves(one, "frontend")[1] > 0
    larger = _with(tmp_path, "storage: {reserve: 1}")
    more = short_usd(float(larger.bill.total_usd - one.bill.total_usd))
    told = scope_text(one)
    assert "No leaf port of the storage network (512) is free for storage systems" in told
    assert f"costs {more} more (reserve under storage in --parts)" in told
    assert "No leaf port" not in scope_text(larger)


@pytest.mark.parametrize("reserve", [1, 16, 33])
def test_reserved_positions_stay_free_of_servers(reserve, tmp_path) -> None:
    one = _with(tmp_path, f"storage: {{reserve: {reserve}}}")
    assert _leaves(one, "storage")[1] >= reserve
    [nics] = [x for x in one.bill.of("storage").lines if x.part.kind == "nic"]
    assert nics.n_units == 256


def test_a_rule_that_whole_ports_break_forbids_an_order_as_any_other() -> None:
    """50 Gbps for 50 GB/s: ports of 50 GB/s break it by far more than a vector of 6.5 GB/s."""
    rules = ("--set", "constraints=[leaf == 50 Gbps, taper(spine) == 2]")
    for design in ("0e_rails_2to1", "0e_rails_2to1@450,6.5,3.25"):
        found = compared_by(design, *rules)
        assert any("leaf == 50 Gbps" in reason for reason in blocked(found))
        [told] = [point for point in open_points(found) if "leaf == 50 Gbps" in point]
        assert told in blocked(found)
