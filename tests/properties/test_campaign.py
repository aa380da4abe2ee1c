"""A short campaign: always the same cases. ``python -m tests.campaign`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.case import Case, Outcome
from tests.campaign.runner import tried
from tests.campaign.verdict import faults

_SEED, _N_CASES = 14, 50


def test_whatever_is_given_is_answered_or_refused_in_plain_lines(tmp_path: Path) -> None:
    finds = [one for one in tried(_SEED, range(_N_CASES), tmp_path) if one.faults]
    said = [f"{one.case.command}: {fault}" for one in finds for fault in one.faults]
    assert not said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(0, '{"a": 1}', "", 0.1), None),
        (Outcome(0, '{"a": NaN}', "", 0.1), "JSON: NaN is no number"),
        (Outcome(0, "{}", "x.py:3: RuntimeWarning: divide by zero", 0.1), "RuntimeWarning"),
        (Outcome(0, "{}", "a\x1b[2J", 0.1), "stderr has a raw 0x1b"),
        (Outcome(0, "{}", "", 11.0), "took 11.0 s"),
        (Outcome(1, "", "ValueError: no", 0.1), "exit code 1: ValueError: no"),
        (Outcome(2, "", "plan.yaml:1:1: a: got b", 0.1), None),
        (Outcome(2, "", "plan.yaml: a: got b", 0.1), "no line"),
        (Outcome(3, "", "plan.yaml: a: got b", 0.1), "no line"),
        (Outcome(2, "", "", 0.1), "refused without a word"),
        (Outcome(2, "", "something is wrong", 0.1), "no place"),
    ],
)
def test_what_may_not_be_is_told(outcome: Outcome, expected: str | None) -> None:
    case = Case("plan", ("optimize", "plan.yaml", "--json"), {"plan.yaml": b""})
    found = list(faults(case, outcome))
    assert expected in found[0] if expected else not found
