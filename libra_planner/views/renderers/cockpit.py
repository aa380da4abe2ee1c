"""The cockpit: tables in the style of its panels."""

from __future__ import annotations

from collections.abc import Mapping

import rich.table
from rich.console import JustifyMethod
from rich.text import Text

from libra_planner.views.cells import Table


def panel_table(table: Table, names: Mapping[str, str] | None = None) -> rich.table.Table:
    """A table that stands in a panel, which has a title of its own.

    Parameters
    ----------
    table : with ``is_wrapped`` what stands on the left may be wrapped.
    names : short headings by those of the columns that are shown, in their order; all of them
        as they are where it is not given.
    """
    names = dict(zip(table.headings, table.headings, strict=True)) if names is None else names
    shown = rich.table.Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for name, short in names.items():
        is_left = name in table.left
        justify: JustifyMethod = "left" if is_left else "right"
        shown.add_column(short, justify=justify, no_wrap=not (is_left and table.is_wrapped))
    places = [table.headings.index(name) for name in names]
    for row in table.rows:
        shown.add_row(*(Text(row[i].shown) for i in places))
    return shown
