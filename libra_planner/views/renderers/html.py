"""A document as one HTML file that needs nothing else."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from libra_planner.errors import DataNotFound, Fault
from libra_planner.views.cells import MINUS, Cell, Report, numeric_columns

_TEMPLATE = Path(__file__).with_name("page.html.j2")


def html(report: Report) -> str:
    """The document as HTML: styles, script and pictures inline.

    Every text is escaped by the template; only the charts, which this package draws, are not.
    """
    return str(_template().render(report=report, shown=_shown, numeric=numeric_columns))


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))


def _shown(cell: Cell) -> str:
    text = cell.shown
    return text if cell.is_text else text.replace("-", MINUS)


def pdf(page: str) -> bytes:
    """The page as PDF; its charts' lines in a colour of their own, as print has no variables."""
    try:
        from weasyprint import HTML
    except ImportError:
        fix = "pip install 'libra-planner[pdf]', or print report.html to PDF in a browser"
        raise DataNotFound(Fault("got no weasyprint", "expected it for pdf", fix)) from None
    return bytes(HTML(string=page.replace(": var(--line)", ": #aaaaaa")).write_pdf())
