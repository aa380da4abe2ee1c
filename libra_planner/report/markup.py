"""Names from files in rich's markup."""

from __future__ import annotations

from rich import markup

from libra_planner.plain_text import visible


def escape(text: str) -> str:
    r"""Text that is shown as it is: no markup, no control characters, on one line.

    >>> print(escape("[red]a\x1b[2J"))
    \[red]a\x1b[2J
    """
    return markup.escape(visible(text))
