"""A comparison as a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from libra_planner.costs.quotes import quote_warnings
from libra_planner.evaluation import TimeModel
from libra_planner.procurement.advice import (
    BreakEven,
    HandOffer,
    break_evens,
    neighbours,
    offers_in_hand,
    steps,
    untold,
)
from libra_planner.procurement.bought.split_rails import split_rails
from libra_planner.procurement.bought.twins import tied
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.readiness import open_points, rate_doubts, used_in
from libra_planner.registry import Registry
from libra_planner.views import cells
from libra_planner.views.cells import Chart, Report, Section, attributes
from libra_planner.views.design import bandwidths_GBps
from libra_planner.views.report import basis
from libra_planner.views.report.against import considered_payload
from libra_planner.views.report.bills import bill_section, choices_payload, prices_moved
from libra_planner.views.report.charts import chart_sheet
from libra_planner.views.report.charts import charts as drawn
from libra_planner.views.report.costs import cost_payload, with_cost
from libra_planner.views.report.decision import decision_section, range_sentences
from libra_planner.views.report.designs import (
    Ends,
    comparison_section,
    facility_section,
    mfu,
    mfu_ends,
    tokens_ends,
)
from libra_planner.views.report.offers import (
    day_text,
    offer_section,
    offers_payload,
    order_section,
    orders_payload,
)
from libra_planner.views.report.routed.checks import check_section
from libra_planner.views.report.routed.placing import design_placement, placement_payload
from libra_planner.views.report.runs import run_ends, run_section
from libra_planner.views.report.sensitivity import sensitivity_section
from libra_planner.views.report.strategies import on_links_payload, strategy_section
from libra_planner.views.spread import figures
from libra_planner.views.training.found import found_payload
from libra_planner.views.training.memory import memory_figures

SectionMaker: TypeAlias = Callable[[Comparison, Mapping[str, Chart]], Iterable[Section]]
"""What makes sections of a comparison and of charts by key; none where they do not apply."""

SECTIONS: Registry[SectionMaker] = Registry("section of reports")
"""What makes each section of a report, in order."""


def register(name: str, make: SectionMaker) -> None:
    """Let reports have a section more, behind the others.

    Raises
    ------
    ValueError
        For a name that another section has.
    """
    SECTIONS.add(make, name)


def _section(make: Callable[[Comparison], Section | None], *keys: str) -> SectionMaker:
    """What makes one section, where it applies, with the charts of these keys."""

    def made(comparison: Comparison, charts: Mapping[str, Chart]) -> Iterator[Section]:
        if section := make(comparison):
            yield replace(section, charts=tuple(charts[key] for key in keys if key in charts))

    return made


def _bills(comparison: Comparison, _: Mapping[str, Chart]) -> Iterable[Section]:
    """The bill of the design to buy, then those of the others."""
    designs = comparison.candidates
    first = [designs[comparison.chosen]]
    ordered = [*first, *(one for one in designs if one is not first[0])]
    return (with_cost(bill_section(comparison, one), one) for one in ordered)


for _name, _make in (
    ("decision", _section(decision_section, "waterfall", "cost", "frontier")),
    ("comparison", _section(comparison_section)),
    ("run", _section(run_section)),
    ("sensitivity", _section(sensitivity_section, "tornado")),
    ("bills", _bills),
    ("orders", _section(order_section)),
    ("offers", _section(offer_section)),
    ("facility", _section(facility_section)),
    ("checks", _section(check_section)),
    ("strategies", _section(strategy_section)),
    ("risks", _section(basis.risk_section)),
    ("prices", _section(basis.price_section)),
    ("origin", _section(basis.origin_section)),
):
    register(_name, _make)


def report(comparison: Comparison, charts: dict[str, Chart]) -> Report:
    """The document, the same for every format.

    Parameters
    ----------
    comparison : what it says.
    charts : by key: ``cost``, ``frontier`` (absent where times cannot be compared) and
        ``tornado``; empty for formats without pictures.
    """
    n, base = len(comparison.candidates), comparison.baseline
    title = "Network procurement report: " + ("one design" if n == 1 else f"{n} designs")
    # Of several designs the first table has the names.
    names = [f"{one.letter} = {one.proposal.name}." for one in comparison.candidates if n == 1]
    against = "" if base is None else f"Differences are against {comparison.letters[base]}."
    subtitle = " ".join(filter(None, (*names, against, day_text(comparison))))
    sections = (one for make in SECTIONS.values() for one in make(comparison, charts))
    return Report(
        title,
        subtitle,
        tuple(map(_printable, sections)),
        prices_moved(comparison),
        (chart_sheet(comparison),),
        is_signed=True,
    )


def _printable(section: Section) -> Section:
    """The section with texts that can be shown: plans and catalogues may hold anything."""
    return replace(
        section,
        lead=tuple(map(cells.printable, section.lead)),
        points_title=cells.printable(section.points_title),
        points=tuple(map(cells.printable, section.points)),
        short_points=tuple(map(cells.printable, section.short_points)),
        behind=tuple(map(cells.printable, section.behind)),
        pointer=cells.printable(section.pointer),
        sign_by=cells.printable(section.sign_by),
        tabled=tuple(map(cells.printable, section.tabled)),
        brief=tuple(map(cells.printable, section.brief)),
        paragraphs=tuple(map(cells.printable, section.paragraphs)),
        warnings=tuple(map(cells.printable, section.warnings)),
    )


FORMATS = ("html", "xlsx", "csv", "md", "pdf")
"""What a report can be written as; pdf needs the extra of that name."""

DEFAULT_FORMATS = FORMATS[:4]


_OWN_TABLES = (
    *("against", "assumed-prices", "assumptions", "budgets", "check", "considered", "designs"),
    *("difference", "discounts", "drivers", "facility", "money", "money-by-group", "offers"),
    *("origin", "prices", "prices-moved", "rates", "run", "run-moved", "strategies"),
    *("would-change", r"(bill|changes|cost|groups|linear|orders|tax)-[a-z]", r"order-[a-z]-\d+"),
)
"""Keys of the tables of reports, as patterns."""


def is_own_table(name: str) -> bool:
    """Whether a file of this name is surely a table of a report, and nothing that a user wrote.

    >>> is_own_table("report-order-b-12.csv"), is_own_table("report-notes.csv")
    (True, False)
    """
    return re.fullmatch(rf"report-({'|'.join(_OWN_TABLES)})\.csv", name) is not None


def documents(comparison: Comparison, formats: Sequence[str]) -> dict[str, str | bytes]:
    """Contents of every file by its name; no name holds anything from a user's file.

    Parameters
    ----------
    comparison : what the report says.
    formats : some of :data:`FORMATS`.
    """
    from libra_planner.views.renderers.html import html, pdf
    from libra_planner.views.renderers.text import csv_text, markdown
    from libra_planner.views.renderers.workbook import workbook

    pictures = drawn(comparison) if {"html", "pdf"} & set(formats) else {}
    whole = report(comparison, pictures)
    found: dict[str, str | bytes] = {}
    for suffix, write in (("html", html), ("xlsx", workbook), ("md", markdown)):
        if suffix in formats:
            found[f"report.{suffix}"] = write(whole)
    if "csv" in formats:
        found |= {f"report-{table.key}.csv": csv_text(table) for table in whole.tables}
    if "pdf" in formats:
        found["report.pdf"] = pdf(html(whole))
    return found


def doubt_lines(comparison: Comparison) -> Iterator[str]:
    """What stderr has of quotes that do not hold today, and of figures that may be slips."""
    found = (*quote_warnings(used_in(comparison)), *rate_doubts(comparison))
    yield from (f"Warning: {text}." for text in found)


def decision_lines(comparison: Comparison, files: Sequence[Path]) -> Iterator[str]:
    """What ``report`` prints: what its first page says, and the files that say more.

    All that is said of the decision where no file but tables is written.
    """
    section = decision_section(comparison)
    page = replace(section, lead=(*section.lead[:1], *section.brief), points=section.short_points)
    is_short = any(path.suffix != ".csv" for path in files)
    shown = page if is_short else section
    yield from shown.said
    yield from (f"Warning: {warning}" for warning in section.warnings)
    if is_short:
        # Sentences of what the page has as tables.
        told = ("", *page.lead, *section.warnings)
        yield from (text for text in section.tabled if text not in told)
        yield "Bills, notes and the rest:"
    else:
        for card in section.cards:
            yield f"{card.title}: {card.answer} ({card.figure}). {card.reason}"
        yield from section.paragraphs
    yield from file_lines(files)


def file_lines(files: Sequence[Path]) -> Iterator[str]:
    """The files of a report: each by its name, and of many tables how many and where.

    >>> list(file_lines([Path("r/report.md"), *(Path(f"r/report-{x}.csv") for x in "abcd")]))
    ['r/report.md', '4 tables: r/report-*.csv']
    """
    tables = [path for path in files if path.suffix == ".csv"]
    is_many = len(tables) > _MOST_TABLES
    yield from (str(path) for path in files if not is_many or path not in tables)
    if is_many:
        yield f"{len(tables)} tables: {tables[0].parent / 'report-*.csv'}"


_MOST_TABLES = 3
"""Tables that are named one by one."""


def report_payload(comparison: Comparison, files: Sequence[Path]) -> dict[str, Any]:
    """What ``report --json`` prints.

    Parameters
    ----------
    comparison : what the report says.
    files : that it was written to.
    """
    ranks, letters = comparison.ranking, comparison.letters
    picks = attributes(ranks, "cheapest", "fastest", "best_per_usd")
    section = decision_section(comparison)
    basis_text, *others = section.paragraphs
    cards = [attributes(card, "title", "answer", "figure", "reason") for card in section.cards]
    return {
        "files": [str(path) for path in files],
        **{name: None if i is None else letters[i] for name, i in picks.items()},
        "ranked_by": f"step time {ranks.ranked_by}",
        "order_note": ranks.order_note or None,
        "price_ranges": list(range_sentences(comparison)),
        "missing_prices": [part.name for part in comparison.missing],
        "day": comparison.origin.day,
        "offers": offers_payload(comparison),
        "decision": {
            "recommendation": _recommendation(comparison, section),
            "cards": cards,
            "warnings": section.warnings,
            "text": [*dict.fromkeys(filter(None, [basis_text, ranks.order_note, *others]))],
        },
        "n_tokens": comparison.candidates[0].n_tokens if comparison.has_run else None,
        "considered": considered_payload(comparison),
        "designs": [_design(one) for one in comparison.candidates],
    }


def _recommendation(comparison: Comparison, section: Section) -> dict[str, Any]:
    """What to buy, against what, and what would change that."""
    letters, reference = comparison.letters, comparison.reference
    one, found = comparison.candidates[comparison.chosen], dict[str, Any]()
    if reference is not None:
        way = steps(comparison.candidates[reference], one)
        found = {
            "against": letters[reference],
            "differences": [
                {
                    **attributes(step, "kinds", "n_units", "places"),
                    "change_usd": float(step.change_usd),
                }
                for step in way
            ],
            "break_evens": [_break_even(x) for x in break_evens(comparison)],
            "untold": [letters[i] for i in untold(comparison)],
            "offers_in_hand": [_in_hand(letters, x) for x in offers_in_hand(comparison)],
            "neighbours": [
                {"design": letters[x.index], "roles": x.roles} for x in neighbours(comparison)
            ],
            "ties": [letters[i] for i in tied(comparison, comparison.chosen, with_prices=True)],
        }
    return {
        "design": one.letter,
        "by": comparison.criterion,
        "is_ready": not any(open_points(comparison)),
        "open_points": list(open_points(comparison)),
        "placement": placement_payload(comparison),
        "sentences": list(section.said),
        **found,
    }


def _in_hand(letters: Sequence[str], found: HandOffer) -> dict[str, Any]:
    """An offer that does not count, what to buy at it, and what it saves of the design now."""
    offer = found.offer
    return {
        **attributes(offer, "item", "seller", "usd", "support_usd", "valid_until"),
        **attributes(found, "reason", "condition"),
        "best": letters[found.best],
        "change_usd": float(found.change_usd),
    }


def _break_even(found: BreakEven) -> dict[str, Any]:
    """A price at which another design is the one to buy, and the offer that counts before it."""
    other = found.next_offer
    return {
        "price": found.price_name,
        "factor": found.factor,
        "best": found.then,
        "next_seller": other.seller if other else None,
        "next_offer_usd": other.usd if other else None,
    }


def _design(one: Candidate) -> dict[str, Any]:
    low_usd, high_usd = map(float, one.bill.ends_usd)
    run, by_group = one.run, one.bill.usd_by(lambda line: line.group)
    return {
        "design": one.letter,
        **attributes(one.proposal, "name", "source", "optimized"),
        "bandwidth_GBps": bandwidths_GBps(one.proposal.bandwidth_Bps),
        "billed_GBps": bandwidths_GBps(one.bought.design.bandwidth_Bps),
        **attributes(one.evaluation, "step_time_s", "real_link_step_time_s"),
        "billed_step_time_s": one.step_time_by(TimeModel.BILLED),
        "bill_note": one.bill.faster_text or None,
        **_on_links(one),
        "ranked_step_time_s": one.step_time_s,
        "plan_cost": cost_payload(one),
        "linear_network_cost_usd": one.linear_network_usd,
        "linear_cost_in_servers_usd": float(one.linear_in_servers_usd),
        "total_usd": float(one.bill.total_usd),
        "cost_usd_low": low_usd,
        "cost_usd_high": high_usd,
        "assumed_usd": float(one.bill.assumed_usd),
        "tax_usd": float(one.bill.tax_usd) if one.bill.tax_fraction else None,
        "total_with_tax_usd": float(one.bill.with_tax_usd) if one.bill.tax_fraction else None,
        "orders": orders_payload(one),
        "parts_that_fit": choices_payload(one),
        **basis.assumed_payload(one),
        "usd_by_group": {group: float(usd) for group, usd in by_group.items()},
        "power_w": one.bill.power_w,
        "covers": one.proposal.problem.step.covers,
        "tokens_per_s": 1 / one.token_time_s if one.token_time_s else None,
        "run_not_available": cells.PART_OF_A_STEP if one.proposal.is_part else None,
        "expected_run_s": cells.finite(run.expected_s if run else None),
        "run_cost_usd": cells.finite(run.cost_usd if run else None),
        "mfu": mfu(one),
        **_limits(one),
        "band": None if one.band_s is None else one.error_source,
        **found_payload(one.proposal.found),
        **on_links_payload(one),
        **_bands(one),
    }


def _on_links(one: Candidate) -> dict[str, Any]:
    """Step times under the policy, and where the servers of a job are; null without a check."""
    times_s = () if one.check is None else one.check.effective_step_time_s
    return {
        **figures("effective_step_time_s", times_s, statistics=False),
        "n_seeds": None if one.check is None else len(times_s),
        **design_placement(one),
    }


def _limits(one: Candidate) -> dict[str, Any]:
    """Whether its memory suffices; whether rails share no switch, and how many more nodes fit."""
    found = split_rails(one)
    room = None if found is None else found.n_more_nodes
    rails = {"rails_share_no_switch": found is not None, "n_more_nodes": room}
    return memory_figures(one.proposal.problem) | rails


def _bands(one: Candidate) -> dict[str, float | None]:
    """Ends of figures by the error band of the step (C23); null without a measured class."""
    bands: dict[str, Ends] = {
        "step_time_{}_s": one.band_s,
        "tokens_per_s_{}": tokens_ends(one),
        "mfu_{}": mfu_ends(one),
        "expected_run_{}_s": run_ends("expected_s")(one),
        "run_cost_usd_{}": run_ends("cost_usd")(one),
    }
    return {
        name.format(side): None if ends is None else cells.finite(ends[i])
        for name, ends in bands.items()
        for i, side in enumerate(("low", "high"))
    }
