"""A comparison as a document."""

from __future__ import annotations

from dataclasses import replace

from libra_planner.report.documents.basis import (
    check_section,
    origin_section,
    price_section,
    risk_section,
)
from libra_planner.report.documents.bills import bill_section
from libra_planner.report.documents.cells import Chart, Report, Section, printable
from libra_planner.report.documents.comparison import comparison_section
from libra_planner.report.documents.decision import decision_section
from libra_planner.report.documents.inputs import Comparison
from libra_planner.report.documents.live import prices_moved
from libra_planner.report.documents.operation import facility_section, run_section
from libra_planner.report.documents.sensitivity import sensitivity_section


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
