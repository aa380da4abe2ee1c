"""A comparison as files: names of our own, each written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from libra_planner.report.documents.compose import report
from libra_planner.report.documents.inputs import Comparison

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
    from libra_planner.report.documents.charts import charts
    from libra_planner.report.documents.page import html
    from libra_planner.report.documents.text import csv_text, markdown
    from libra_planner.report.documents.workbook import workbook

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
