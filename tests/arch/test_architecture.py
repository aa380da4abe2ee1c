"""The page about the rooms says what the code is."""

from __future__ import annotations

from docs import architecture


def test_the_page_and_its_picture_are_what_the_code_says() -> None:
    for path, text in architecture.files().items():
        assert path.read_text(encoding="utf-8") == text, "run python docs/architecture.py"
