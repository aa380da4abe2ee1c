"""What a result is of."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def given(options: argparse.Namespace) -> dict[str, Any]:
    """The plan and its settings, with which a result can be used again."""
    return {"plan": str(Path(options.plan).resolve()), "set": options.settings}
