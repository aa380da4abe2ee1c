"""The first page on paper: its open points are counted, and its signature has room there."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from libra_planner.procurement.readiness import blocked, open_points
from libra_planner.views.cells import Section, table
from libra_planner.views.report.compose import decision_lines, documents
from libra_planner.views.report.decision import decision_section
from libra_planner.views.report.page.room import MONEY, PAGE, above, fitted, height, page_texts
from libra_planner.views.report.page.signing import sign_by
from tests.comparisons import compared_by

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
RAILS = "0e_rails_2to1"
LONG = "the network that the team of the north building asked for, with spines at "
DESIGNS = {
    "1:1": f"{RAILS}@450,50,50",
    "2:1": RAILS,
    "4:1": f"{RAILS}@450,50,12.5",
    "200G 2:1": f"{RAILS}@450,25,12.5",
    "200G 1:1": f"{RAILS}@450,25,25",
    "fast": f"{RAILS}@450,100,25",
    "faster": f"{RAILS}@450,100,50",
    "fastest": f"{RAILS}@450,100,100",
    "8:1": f"{RAILS}@450,50,6.25",
    "200G 4:1": f"{RAILS}@450,25,6.25",
}
QUOTES = """\
item,price,seller,date,valid_until,lead_time_days,moq,chosen
h100-sxm,27000,Servers Inc,2026-11-02,2026-11-20,60,,
server-8npu,36500,Servers Inc,2026-11-02,2026-12-31,60,400,
nic-400g,1450,Servers Inc,2026-11-02,2026-12-31,60,5000,
nic-400g,1390,Bulk Co,2026-11-02,2026-12-31,60,9000,
switch-64x400g,52000,Acme,2026-11-05,2026-12-24,112,300,yes
switch-64x400g,47000,Beta,2026-11-05,2026-11-24,90,,
switch-64x200g,22000,Acme,2026-11-05,2026-11-24,98,,
optic-400g-sr4,410,Optics4U,2026-11-05,2026-11-24,45,,
optic-400g-sr4,600,Acme,2026-11-05,2026-12-24,45,,
optic-200g-sr4,2.10,Acme,2026-11-05,2026-12-24,45,,
"""
"""Expired, below least orders, chosen though dearer, and one of them a hundredth of its price."""


def _designs(*names: str, prefix: str = "") -> list[str]:
    return [f"{prefix}{name}={DESIGNS[name]}" for name in names]


@pytest.fixture
def quotes(monkeypatch, tmp_path) -> list[str]:
    """On the day on which some quotes are over; nobody says --as-of, which refuses these."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795867200")  # 2026-11-28
    (tmp_path / "quotes.csv").write_text(QUOTES)
    return ["--prices", str(tmp_path / "quotes.csv")]


CASES = {
    "two": (_designs("2:1", "4:1"), True, ()),
    "three, checked": (_designs("2:1", "4:1", "200G 2:1"), True, ("--check", "ecmp")),
    "rules broken": (_designs("200G 1:1", "1:1", "fast"), True, ()),
    "names of one word": (
        _designs("2:1", "4:1", prefix=LONG.replace(" ", "_")[:50]),
        True,
        (),
    ),
    "four of long names": (
        _designs("2:1", "4:1", "200G 2:1", "200G 1:1", prefix=LONG),
        True,
        ("--baseline", "A"),
    ),
    "six": (_designs(*[*DESIGNS][:6]), True, ()),
    "six without quotes": (_designs(*[*DESIGNS][:6]), False, ()),
    "ten of long names": (_designs(*DESIGNS, prefix=LONG), True, ()),
}


def _compared(name: str, quotes: list[str]):
    designs, has_quotes, options = CASES[name]
    seeds = ("--seeds", "2") if "--check" in options else ()
    return compared_by(*designs, *(quotes if has_quotes else ()), *options, *seeds)


@pytest.mark.parametrize("name", CASES)
def test_what_stands_above_a_signature_fits_one_page_and_nothing_is_lost(name, quotes) -> None:
    section = decision_section(_compared(name, quotes))
    page = above(section)
    assert height(page) <= PAGE
    assert {*page_texts(page), *section.behind} == {*page_texts(section)}
    assert page.tables[0].key == "considered"
    assert bool(section.pointer) == (
        bool(section.behind) or any(x.is_behind and x.key != "against" for x in section.tables)
    )


def test_more_than_a_page_holds_goes_behind_the_signature_with_a_pointer() -> None:
    """Warnings and points first, money last; a page of hardly any room keeps its first table."""
    texts = {kind: tuple(f"{kind} {i} {'x' * 150}" for i in range(30)) for kind in "wpb"}
    rows = [["x", "y"]] * 10
    tables = (
        table("considered", "All designs", ["Design", "Price"], rows),
        table("would-change", "What would change", ["If", "then"], rows),
        table(MONEY, "What the prices are made of", ["Group", "A"], rows),
    )
    asked = Section(
        "decision", "R", "D", lead=("Buy A.",), warnings=texts["w"], short_points=texts["p"],
        brief=texts["b"], tables=tables, points_title="30 points are open before an order:",
    )  # fmt: skip
    found = fitted(asked)
    page = above(found)
    assert height(page) <= PAGE < height(asked)
    assert page.warnings == texts["w"][: len(page.warnings)] != ()
    assert page.brief == ()
    assert [x.key for x in page.tables] == ["considered"]
    n_warnings, n_points = (30 - len(x) for x in (page.warnings, page.short_points))
    told = [f"{n} {kind}s" for n, kind in ((n_warnings, "warning"), (n_points, "open point")) if n]
    assert found.pointer == (
        f'More on page 2: {", ".join(told)}, 30 remarks, "What would change", '
        '"What the prices are made of".'
    )
    alone = fitted(asked, page=200)
    assert above(alone).tables == ()
    assert height(above(alone)) <= 200
    few = replace(asked, warnings=(), short_points=texts["p"][:1], brief=texts["b"][:1])
    assert fitted(few).pointer == ""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not installed")
@pytest.mark.parametrize("name", CASES)
def test_paper_has_the_signature_on_its_first_page_and_no_later(name, quotes, tmp_path) -> None:
    page = documents(_compared(name, quotes), ("html",))["report.html"]
    for size in ("A4", "letter"):
        texts = _printed(page.replace("size: A4 portrait", f"size: {size} portrait"), tmp_path)
        assert [i for i, text in enumerate(texts) if "Signature" in text] == [0], size


def _printed(page: str, folder: Path) -> list[str]:
    """The text of every page that a browser prints."""
    (folder / "one.html").write_text(page)
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--disable-background-networking", f"--user-data-dir={folder / 'profile'}",
               f"--print-to-pdf={folder / 'one.pdf'}", f"file://{folder}/one.html"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    told = ["pdftotext", folder / "one.pdf", "-"]
    found = subprocess.run(told, check=True, capture_output=True, text=True, timeout=60)
    return found.stdout.removesuffix("\f").split("\f")


@pytest.mark.parametrize("name", ["two", "three, checked", "ten of long names"])
def test_the_day_to_sign_by_stands_right_above_the_signature(name, tmp_path) -> None:
    """However little room the page has; nothing where no quote has an end."""
    (tmp_path / "own.csv").write_text(
        "item,price,seller,date,valid_until,lead_time_days\n"
        "server-8npu,30000,Servers Inc,2026-11-02,,91\n"
        "nic-400g,1400,NorthNet,2026-11-02,2026-12-20,84\n"
        "nic-200g,900,NorthNet,2026-11-02,2026-12-20,84\n"
    )
    given = ["--prices", str(tmp_path / "own.csv"), "--as-of", "2026-11-20"]
    designs, _, options = CASES[name]
    seeds = ("--seeds", "2") if "--check" in options else ()
    page = documents(compared_by(*designs, *given, *options, *seeds), ("html",))["report.html"]
    first = " ".join(_printed(page, tmp_path)[0].split())
    [said] = re.findall(r"(Sign by 2026-12-20: .*? \(server-?8npu\))\. Name ", first)
    assert said.startswith("Sign by 2026-12-20: the first quote (NorthNet, nic-")
    assert " ends then; longest lead time 91 days " in said


def test_nothing_says_by_when_to_sign_where_no_offer_ends(tmp_path) -> None:
    designs = CASES["two"][0]
    assert sign_by(compared_by(*designs)) == ""
    file = tmp_path / "own.csv"
    offer = "item,price,seller,date,valid_until\nserver-8npu,30000,Servers Inc,2026-11-02,"
    file.write_text(offer)
    assert sign_by(compared_by(*designs, "--prices", str(file))) == ""
    file.write_text(f"{offer}2026-11-10\n")
    assert sign_by(compared_by(*designs, "--prices", str(file))) == (
        "Ask for new quotes before you sign: the first one (Servers Inc, server-8npu) ended on "
        "2026-11-10."
    )


def test_open_points_are_counted_at_the_headline_and_each_is_said_once(quotes) -> None:
    found = _compared("two", quotes)
    section, every = decision_section(found), [*open_points(found)]
    n_grave = len(blocked(found))
    assert section.points_title == (
        f"{len(every)} points are open before an order; the first {n_grave} forbid it:"
    )
    assert n_grave > 2
    assert section.points == tuple(every)
    assert any("h100-sxm of Servers Inc, expired on 2026-11-20" in x for x in every)
    page = documents(found, ("html",))["report.html"]
    first = re.sub("</?b>", "", page.split('class="sign"')[0].split('class="lead"')[1])
    for one in section.short_points:
        assert first.count(one.replace("'", "&#39;")) == 1
    assert first.count("expired on 2026-11-20") == 1
    head = first.split("<table")[0]
    assert head.count("<p") == 1  # The count alone stands between the headline and the table.
    lines = [*decision_lines(found, [Path("r/report.html")])]
    assert lines[1] == section.points_title
    assert [x for x in lines if x.startswith("- ")] == [f"- {x}" for x in section.short_points]


def test_a_page_says_each_sentence_once(quotes) -> None:
    """The run, the first quote's end and the assumed share stood above and again as bullets."""
    found = compared_by(*_designs("1:1", "200G 2:1"), *quotes, "--tokens", "15e12")
    page = documents(found, ("html",))["report.html"]
    section = decision_section(found)
    sentences = [one for text in section.brief for one in re.split(r"(?<=\.)\s", text)]
    heads = ("15 trillion tokens take", "The first quote ends on", "Its 263 racks")
    told = [one for one in sentences if one.startswith(heads)]
    assert len(told) >= 2
    text = re.sub("<[^>]*>", "", page.split('id="decision"')[1].split("</section>")[0])
    for one in told:
        assert text.count(one) == 1
