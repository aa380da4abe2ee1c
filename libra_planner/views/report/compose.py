"""A comparison as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from libra_planner.views.cells import Chart, Report, Section, printable
from libra_planner.views.report.basis import (
    check_section,
    origin_section,
    price_section,
    risk_section,
)
from libra_planner.views.report.bills import bill_section, prices_moved
from libra_planner.views.report.comparison import Comparison
from libra_planner.views.report.decision import decision_section
from libra_planner.views.report.designs import comparison_section
from libra_planner.views.report.operation import facility_section, run_section
from libra_planner.views.report.sensitivity import sensitivity_section


def report(comparison: Comparison, charts: dict[str, Chart]) -> Report:
    """The document, the same for every format.

    Parameters
    ----------
    comparison : what it says.
    charts : by key: ``cost``, ``frontier`` (absent where times cannot be compared) and
        ``tornado``; empty for formats without pictures.
    """
    first = tuple(charts[key] for key in ("cost", "frontier") if key in charts)
    swings = tuple(charts[key] for key in ("tornado",) if key in charts)
    bills = [bill_section(comparison, i) for i in range(len(comparison.candidates))]
    checked = check_section(comparison)
    sections = [
        decision_section(comparison, first),
        comparison_section(comparison),
        run_section(comparison),
        sensitivity_section(comparison, swings),
        *bills,
        facility_section(comparison),
        *([checked] if checked else []),
        risk_section(comparison),
        price_section(comparison),
        origin_section(comparison),
    ]
    return Report(
        _title(comparison),
        _subtitle(comparison),
        tuple(map(_printable, sections)),
        prices_moved(comparison),
    )


def _printable(section: Section) -> Section:
    """The section with texts that can be shown: plans and catalogues may hold anything."""
    return replace(
        section,
        paragraphs=tuple(map(printable, section.paragraphs)),
        warnings=tuple(map(printable, section.warnings)),
    )


def _title(comparison: Comparison) -> str:
    n = len(comparison.candidates)
    return "Network procurement report: " + ("one design" if n == 1 else f"{n} designs")


def _subtitle(comparison: Comparison) -> str:
    text = "; ".join(f"{one.letter} = {one.proposal.name}" for one in comparison.candidates)
    base = comparison.baseline
    return text if base is None else f"{text}; differences against {comparison.letters[base]}"


FORMATS = ("html", "xlsx", "csv", "md", "pdf")
"""What a report can be written as; pdf needs the extra of that name."""

DEFAULT_FORMATS = FORMATS[:4]


def documents(comparison: Comparison, formats: Sequence[str]) -> dict[str, str | bytes]:
    """Contents of every file by its name; no name holds anything from a user's file.

    Parameters
    ----------
    comparison : what the report says.
    formats : some of :data:`FORMATS`.
    """
    from libra_planner.views.renderers.html import html
    from libra_planner.views.renderers.text import csv_text, markdown
    from libra_planner.views.renderers.workbook import workbook
    from libra_planner.views.report.charts import charts

    pictures = charts(comparison) if {"html", "pdf"} & set(formats) else {}
    whole = report(comparison, pictures)
    found: dict[str, str | bytes] = {}
    if "html" in formats:
        found["report.html"] = html(whole)
    if "xlsx" in formats:
        found["report.xlsx"] = workbook(whole)
    if "md" in formats:
        found["report.md"] = markdown(whole)
    if "csv" in formats:
        found |= {f"report-{table.key}.csv": csv_text(table) for table in whole.tables}
    if "pdf" in formats:
        found["report.pdf"] = _pdf(html(whole))
    return found


def _pdf(page: str) -> bytes:
    """The page as PDF; its charts' lines in a colour of their own, as print has no variables."""
    from libra_planner.errors import DataNotFound, Fault

    try:
        from weasyprint import HTML
    except ImportError:
        fix = "pip install 'libra-planner[pdf]', or print report.html to PDF in a browser"
        raise DataNotFound(Fault("got no weasyprint", "expected it for pdf", fix)) from None
    return bytes(HTML(string=page.replace(": var(--line)", ": #aaaaaa")).write_pdf())
