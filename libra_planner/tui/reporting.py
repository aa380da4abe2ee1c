"""Procurement reports of chosen designs, written by ``libra-planner report``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from libra_planner.tui.child import run_command
from libra_planner.tui.plans import Pin
from libra_planner.tui.work import Ticket

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
        As the command does.
    """
    from libra_planner.files import write_files

    folder.mkdir(parents=True, exist_ok=True)
    plans = {folder / f"{_file_name(pin.name)}.yaml": pin for pin in pins}
    write_files({path: plan_text(pin) for path, pin in plans.items()})
    designs = [f"{path}@{_vector(pin)}" for path, pin in plans.items()]
    options = ["-o", str(folder), "--formats", ",".join(formats), "--allow-missing", "--json"]
    options += ["--check", policy] if policy else []
    payload: dict[str, Any] = json.loads(run_command(["report", *designs, *options], ticket))
    return payload


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
    from libra_planner.tui.saving import edited_text

    settings = (*pin.settings_now(), *_absolute(pin))
    return edited_text(read_text(pin.path), settings, str(pin.path))


def _absolute(pin: Pin) -> list[str]:
    """Settings that let relative paths hold from any folder."""
    from libra_planner.spec import bundled
    from libra_planner.sweep.template import named_files

    beside = pin.path.resolve().parent
    return [
        f"{'.'.join(map(str, key))}={json.dumps(str(beside / name))}"
        for key, name in named_files(pin.value, ())
        if isinstance(name, str) and bundled.is_path(name) and not Path(name).is_absolute()
    ]
