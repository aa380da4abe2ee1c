"""How sure the prices of a book are (C22), and where it is said."""

from __future__ import annotations

import libra_planner as lp

BOOK = """kind: price_book
source: test
confidence: quoted
as_of: "2026-11"
unit: USD per GB/s
tiers:
  chiplet: {link: 2.0}
  package: {link: 4.0}
  node: {link: 4.0, confidence: published}
  pod: {link: 7.8, switch: 18.0, nic: 31.6, confidence: assumed}
"""


def test_a_tier_may_be_less_sure_than_its_book(plan, tmp_path) -> None:
    (tmp_path / "book.yaml").write_text(BOOK)
    problem = lp.load_plan(plan(("libra-ispass24", "book.yaml")))
    assert problem.settings[-1] == (
        "prices book (2026-11, chiplet, package quoted; node published; pod assumed)"
    )
    assert [(part.tier, part.confidence) for part in problem.prices.parts][-4:] == [
        ("node", "published"),
        *[("pod", "assumed")] * 3,
    ]


def test_a_book_that_says_nothing_is_assumed(plan, tmp_path) -> None:
    (tmp_path / "book.yaml").write_text(BOOK.replace("confidence: quoted\n", ""))
    problem = lp.load_plan(plan(("libra-ispass24", "book.yaml")))
    assert "chiplet, package, pod assumed" in problem.settings[-1]


def test_the_list_of_books_says_how_sure_they_are(run) -> None:
    listed = run("list", "cost-models").out
    assert "(2024-05, published)" in listed
    assert "libra-ispass24" in run("list", "cost-models", "--json").payload["cost-models"]
