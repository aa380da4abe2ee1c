"""A document as one HTML file that needs nothing else."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from libra_planner.errors import DataNotFound
from libra_planner.views.cells import MINUS, Cell, Report, numeric_columns


def html(report: Report, template: str = "page.html.j2", **more: Any) -> str:
    """The document as HTML: styles, script and pictures inline.

    Every text is escaped by the template; only the charts, which this package draws, are not.

    Parameters
    ----------
    report : the document.
    template : the page, or one that extends it.
    more : values for that one's blocks.
    """
    found = _templates().get_template(template)
    return str(found.render(report=report, shown=_shown, numeric=numeric_columns, **more))


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(cell: Cell) -> str:
    text = cell.shown
    return text if cell.is_text else text.replace("-", MINUS)


def pdf(page: str) -> bytes:
    """The page as PDF; its charts' lines in a colour of their own, as print has no variables."""
    return bytes(pdf_writer()(string=page.replace(": var(--line)", ": #aaaaaa")).write_pdf())


def pdf_writer() -> Any:
    """What writes a page as PDF.

    Raises
    ------
    DataNotFound
        Where it is not installed.
    """
    try:
        from weasyprint import HTML
    except ImportError:
        fix = "pip install 'libra-planner[pdf]', or print report.html to PDF in a browser"
        raise DataNotFound.at(
            "--formats", "got no weasyprint", "expected it for pdf", fix
        ) from None
    return HTML
