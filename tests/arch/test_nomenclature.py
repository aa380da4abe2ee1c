"""docs/nomenclature.md lists every dimensional field of the core's data types."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.arch.test_imports import CORE, _modules, _name, tree_of

ROOT = Path(__file__).parents[2]
UNITS = re.compile(r"_(s|bytes|bytes_per_s|usd|Bps|GBps|per_s|w|flops|fraction)$|^n_")


def _dimensional_fields() -> set[tuple[str, str]]:
    found = set()
    for path in _modules():
        if _name(path) not in CORE:
            continue
        module = ".".join(path.relative_to(ROOT / "libra_planner").with_suffix("").parts)
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for line in node.body:
                    name = getattr(getattr(line, "target", None), "id", None) or (
                        line.name if isinstance(line, ast.FunctionDef) else ""
                    )
                    if UNITS.search(name):
                        found.add((name, module))
    return found


def test_nomenclature_is_complete_and_has_nothing_that_is_gone() -> None:
    text = (ROOT / "docs" / "nomenclature.md").read_text()
    rows = set(
        re.findall(r"^\|[^|]*\| `(\w+)` \|[^|]*\|[^|]*\| `([\w.]+)` \|$", text, re.MULTILINE)
    )
    fields = _dimensional_fields()
    assert sorted(fields - rows) == []
    assert sorted(rows - fields) == []
