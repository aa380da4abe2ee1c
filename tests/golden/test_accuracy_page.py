"""docs/accuracy.md is what its script writes, as far as no fit is repeated."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_code_says(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "docs" / "accuracy.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for fit in ("halves_errors", "held_out_errors"):
        monkeypatch.setattr(script, fit, lambda runs, *_: [(run, 0.0) for run in runs])
        monkeypatch.setattr(script, f"kernel_{fit}", lambda rows, *_: np.zeros(len(rows)))
    no_fit = "step_held_out_errors"
    monkeypatch.setattr(script, no_fit, lambda steps, *_: [(step, 0.0) for step in steps])
    written = (ROOT / "docs" / "accuracy.md").read_text().splitlines()
    expected = script.page().splitlines()
    assert len(written) == len(expected)
    for line, wanted in zip(written, expected, strict=True):
        held_out = "| the other half" in line or "| other " in line
        told = wanted.split(" 0.0% ")[0]
        assert line == wanted or (held_out and line.startswith(told))


def test_the_picture_of_steps_is_current() -> None:
    from docs.accuracy_training import picture

    assert (ROOT / "docs" / "accuracy-training.svg").read_text() == picture()
