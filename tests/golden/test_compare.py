"""Two recordings: what differs, and what differs in last digits only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.cases import cases
from tests.golden.compare import compare


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("took 1.5 s\n", "took 1.5 s\n", 0, "0 files differ, 0 more"),
        ("took 1.5000000000001 s\n", "took 1.5 s\n", 0, "0 files differ, 1 more"),
        ("took 1.500001 s\n", "took 1.5 s\n", 1, "+took 1.5 s"),
        ("took 1.5 s\n", "took 1.5 h\n", 1, "+took 1.5 h"),
        ("$1,000\n", "$1,001\n", 1, "1 files differ"),
        ("took 1.5 s\n", None, 1, "only in the old one"),
    ],
)
def test_differences_are_told(
    old: str, new: str | None, code: int, said: str, tmp_path: Path, capsys
) -> None:
    for name, text in (("old", old), ("new", new)):
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "1.out").write_text(text)
    assert compare(tmp_path / "old", tmp_path / "new") == code
    assert said in capsys.readouterr().out


def test_cases_have_names_of_their_own() -> None:
    assert len({case.name for case in cases()}) == len(cases()) > 200
