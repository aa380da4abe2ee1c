"""A short campaign: always the same cases. ``python -m tests.campaign`` is the long one."""

from __future__ import annotations

from pathlib import Path

from tests.campaign.runner import tried

_SEED, _N_CASES = 14, 120


def test_whatever_is_given_is_answered_or_refused_in_plain_lines(tmp_path: Path) -> None:
    finds = [one for one in tried(_SEED, range(_N_CASES), tmp_path) if one.faults]
    said = [f"{one.case.command}: {fault}" for one in finds for fault in one.faults]
    assert not said
