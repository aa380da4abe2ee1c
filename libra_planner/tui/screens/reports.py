"""Procurement reports of chosen designs, as ``libra-planner report`` writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from libra_planner.tui.plans import Pin, Report
from libra_planner.tui.work import Ticket, run_apart

FORMATS = ("html", "xlsx", "csv", "md", "pdf")


def write_report(
    pins: Sequence[Pin], folder: Path, formats: Sequence[str], *, policy: str | None, ticket: Ticket
) -> dict[str, Any]:
    """Write the designs' plans and the report of them into a folder.

    Returns
    -------
    What ``report --json`` prints, with the ``files``.

    Raises
    ------
    PlannerError
        As the command does; each report is written in a process of its own.
    """
    from libra_planner.files import write_files

    folder.mkdir(parents=True, exist_ok=True)
    plans = {folder / f"{_file_name(pin.name)}.yaml": pin for pin in pins}
    write_files({path: plan_text(pin) for path, pin in plans.items()})
    designs = [f"{path}@{_vector(pin)}" for path, pin in plans.items()]
    return run_apart(partial(_report_payload, designs, folder, ",".join(formats), policy), ticket)


def _report_payload(
    designs: Sequence[str], folder: Path, formats: str, policy: str | None, _progress: Report
) -> dict[str, Any]:
    from libra_planner.studies.reports import report
    from libra_planner.views.report.compose import report_payload

    written = report(designs, folder, formats=formats, check=policy, allow_missing=True)
    return report_payload(written.comparison, written.files)


def decision(payload: Mapping[str, Any], pins: Sequence[str], n_cells: int) -> RenderableType:
    """The answers of a report with figures and reasons, what is wrong with them, and the files.

    Parameters
    ----------
    payload : what ``report --json`` prints.
    pins : names of the designs, in its order.
    n_cells : width that there is; cards stand side by side where it suffices.
    """
    named = [*zip(payload["designs"], pins, strict=True)]
    answers = {f"{one['design']}: {one['name']}": f"{one['design']}: {pin}" for one, pin in named}
    letters = [f"{one['design']} = {pin}" for one, pin in named]
    said, after = payload["decision"], Text()
    warnings = [
        Text("Warning: ", "bold reverse").append(text, "bold not reverse")
        for text in said["warnings"]
    ]
    for text in said["text"]:
        after.append(f"{text}\n")
    after.append(f"Designs: {'; '.join(letters)}\n\n")
    after.append_text(_files(payload["files"]))
    cards = [
        card | {"answer": answers.get(card["answer"], card["answer"])} for card in said["cards"]
    ]
    return Group(*warnings, _card_grid(cards, n_cells), after)


def _card_grid(cards: Sequence[Mapping[str, str]], n_cells: int) -> RenderableType:
    """Boxes side by side, or paragraphs where there is no room for them."""
    if n_cells < _LEAST_CARD * len(cards):
        return Group(*map(_paragraph, cards))
    grid = Table.grid(expand=True)
    for _ in cards:
        grid.add_column(ratio=1)
    grid.add_row(*map(_box, cards))
    return grid


def _paragraph(card: Mapping[str, str]) -> RenderableType:
    text = Text(f"{card['title']}: {card['answer']}\n", "bold")
    text.append(card["figure"], "bold cyan").append(f". {card['reason']}", "not bold")
    return text


def _box(card: Mapping[str, str]) -> RenderableType:
    text = Text(f"{card['answer']}\n", "bold").append(f"{card['figure']}\n", "bold cyan")
    text.append(card["reason"], "not bold")
    return Panel(text, title=Text(card["title"], "bold"), title_align="left", padding=(0, 1))


_LEAST_CARD = 36
"""Cells that a card needs beside others."""


def _files(files: Sequence[str]) -> Text:
    """Folder and documents line by line; tables, of which there are many, in one."""
    tables = [file for file in files if file.endswith(".csv")]
    text = Text("Written to ", "bold").append(f"{Path(files[0]).parent}\n")
    text.append("".join(f"  {file}\n" for file in files if file not in tables), "not bold")
    if tables:
        text.append(f"  {len(tables)} tables as CSV: {_PATTERN}", "not bold")
    return text


_PATTERN = "report-*.csv"
"""Names of a report's tables."""


def _file_name(name: str) -> str:
    """A pinned design's name as a file's.

    >>> _file_name("2 my plan@home")
    '2_my_plan_home'
    """
    return re.sub(r"[^\w.-]+", "_", name)


def _vector(pin: Pin) -> str:
    return ",".join(repr(value) for value in pin.bandwidth_GBps)


def plan_text(pin: Pin) -> str:
    """A pinned design's plan with its edits and comments, paths made absolute."""
    from libra_planner.files import read_text
    from libra_planner.tui.files import edited_text

    settings = (*pin.settings_now(), *_absolute(pin))
    return edited_text(read_text(pin.path), settings, str(pin.path))


def _absolute(pin: Pin) -> list[str]:
    """Settings that let relative paths hold from any folder."""
    from libra_planner.reading import bundled
    from libra_planner.sweeps.template import named_files

    beside = pin.path.resolve().parent
    return [
        f"{'.'.join(map(str, key))}={json.dumps(str(beside / name))}"
        for key, name in named_files(pin.value)
        if isinstance(name, str) and bundled.is_path(name) and not Path(name).is_absolute()
    ]
