"""Progress of long commands where stderr is no terminal: lines for a log (docs/check.md)."""

from __future__ import annotations

import pytest

from libra_planner.cli import streams


class _Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    found = _Clock()
    monkeypatch.setattr(streams, "time", found)
    return found


def test_a_log_has_a_line_every_ten_seconds_and_the_time_that_is_left(clock, capsys) -> None:
    write = streams.progress_of("single failures")
    for done in range(1, 1001):
        clock.now_s = done * 0.25
        write(done, 1000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 24  # 250 s, and nothing of the end.
    assert lines[0] == "40 of 1,000 single failures, about 4 min left"
    assert lines[-1] == "960 of 1,000 single failures"


def test_what_is_done_at_once_leaves_no_line(clock, capsys) -> None:
    seeds, strategies = streams.progress_of("seeds"), streams.search_progress()
    for done in range(1, 11):
        clock.now_s += 0.5
        seeds(done, 10)
        strategies("strategies have a bound", done, 10)
    assert not capsys.readouterr().err


def test_a_search_tells_only_what_is_asked_for(clock, capsys) -> None:
    write = streams.search_progress("points")
    clock.now_s = 20.0
    write("strategies have a bound", 1, 10)
    write("points", 2, 25)
    assert capsys.readouterr().err == "2 of 25 points\n"


def test_a_log_of_a_search_tells_no_time_that_is_left(clock, capsys) -> None:
    """Bounds take microseconds each and optima seconds: 20 s for 2 of 25,000 are no 4,000 min."""
    write = streams.search_progress()
    for what, done in (("strategies have a bound", 2), ("fabrics optimised", 3)):
        clock.now_s += 20.0
        write(what, done, 25000)
    told = capsys.readouterr().err
    assert told == "2 of 25,000 strategies have a bound\n3 of 25,000 fabrics optimised\n"
