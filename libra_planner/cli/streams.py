"""stdout, for data, and stderr, for messages."""

from __future__ import annotations

import json
from typing import Any


def print_json(payload: dict[str, Any]) -> None:
    """Print one JSON object (RFC 8259: no NaN, no infinity)."""
    print(json.dumps(payload, indent=2, allow_nan=False))
