"""Write docs/architecture.md and its picture from the code: the rooms, who asks whom, a plan's way.

Run ``python docs/architecture.py`` after a change of the rooms; a test compares the files with what
this script would write, so that they cannot go stale.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tests.arch.test_imports import LAYERS, tree_of

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "libra_planner"

WAY = (
    ("libra_planner.plan.problem", "load_plan", "a plan file is read"),
    ("libra_planner.problem", "Problem", "what it says in numbers: step time, prices, rules"),
    ("libra_planner.optimizer.optimize", "optimize", "the best bandwidth, with its proof"),
    ("libra_planner.evaluation", "evaluate", "step time and cost of a bandwidth"),
    ("libra_planner.check.links", "link_check", "the same on whole links, flows routed"),
    ("libra_planner.views.design", "design_blocks", "what people read, for every medium"),
)
"""The way of a plan: module, name in it, what it does. Each is looked up when this runs."""

_WIDTH, _BOX, _GAP, _ROW = 960, 60, 12, 92


@dataclass(frozen=True)
class Room:
    """A folder of the package, or the modules beside the folders on one layer.

    Parameters
    ----------
    name : as people call it.
    parts : first parts of module names below the package.
    layer : 0 at the bottom.
    purpose : first line of its docstring.
    n_modules : modules that hold code.
    """

    name: str
    parts: tuple[str, ...]
    layer: int
    purpose: str
    n_modules: int


def rooms() -> list[Room]:
    """All rooms, the lowest layer first."""
    found = []
    for layer, names in enumerate(LAYERS):
        folders = [name for name in names if (PACKAGE / name).is_dir()]
        modules = tuple(name for name in names if name not in folders)
        found += [_folder(name, layer) for name in folders]
        if len(modules) > 1:
            purpose = f"Modules that ask nothing: {', '.join(modules)}"
            found.append(Room("base", modules, layer, purpose, len(modules)))
        elif modules:
            purpose = _purpose(PACKAGE / f"{modules[0]}.py")
            found.append(Room(modules[0], modules, layer, purpose, 1))
    return found


def _folder(name: str, layer: int) -> Room:
    files = [path for path in (PACKAGE / name).rglob("*.py") if "_data" not in path.parts]
    n_modules = sum(path.name != "__init__.py" for path in files)
    return Room(name, (name,), layer, _purpose(PACKAGE / name / "__init__.py"), n_modules)


def _purpose(path: Path) -> str:
    """First line of a module's docstring."""
    text = ast.get_docstring(tree_of(path)) or ""
    return re.sub(r":\w+:`~?([\w.]+\.)?(\w+)`", r"\2", text.split("\n")[0]).rstrip(".")


def imports(listed: Sequence[Room]) -> dict[Room, set[Room]]:
    """Which rooms a room imports from, itself apart."""
    home = {part: room for room in listed for part in room.parts}
    found: dict[Room, set[Room]] = {room: set() for room in listed}
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part in home:
            asked = {home[name] for name in _imported(path) if name in home}
            found[home[part]] |= asked - {home[part]}
    return found


def _imported(path: Path) -> Iterator[str]:
    """First parts of the modules of the package that a module imports."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("libra_planner"):
            parts = str(node.module).split(".")
            yield from parts[1:2] or (alias.name for alias in node.names)


def arrows(asked: Mapping[Room, set[Room]]) -> list[tuple[Room, Room]]:
    """The imports that do not follow from others: what the picture can show."""
    reach: dict[Room, set[Room]] = {}
    for room in sorted(asked, key=lambda room: room.layer):
        reach[room] = set().union(asked[room], *(reach.get(one, set()) for one in asked[room]))
    return [
        (room, below)
        for room in asked
        for below in sorted(asked[room], key=lambda one: one.name)
        if not any(below in reach[one] for one in asked[room] if one is not below)
    ]


def picture(listed: Sequence[Room]) -> str:
    """The rooms as SVG, upper layers above; the plan's way in numbers."""
    spots = _spots(listed)
    height = (max(y for _, y, _ in spots.values())) + _BOX + _GAP
    lines = [_line(spots[one], spots[other]) for one, other in arrows(imports(listed))]
    boxes = [_box(room, *spots[room], _stops(room)) for room in listed]
    style = (
        "<style>text{font:12px sans-serif;fill:#1b1f24}.b{font-weight:bold;font-size:14px}"
        ".w{fill:#0a5;font-weight:bold}rect{fill:#f6f8fa;stroke:#57606a}"
        ".on{stroke:#0a5;stroke-width:2.5}path{fill:none;stroke:#8c959f}</style>"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">'
    back = f'<rect width="{_WIDTH}" height="{height}" style="fill:#fff;stroke:none"/>'
    return "\n".join([head, style, back, *lines, *boxes, "</svg>", ""])


def _spots(listed: Sequence[Room]) -> dict[Room, tuple[float, float, float]]:
    """Left edge, top and width of every room: above all that it asks, as low as that allows."""
    asked, floors = imports(listed), dict[Room, int]()
    for room in listed:
        floors[room] = 1 + max((floors[one] for one in asked[room] if one in floors), default=0)
    spots = {}
    for row, floor in enumerate(range(max(floors.values()), 0, -1)):
        here = [room for room in listed if floors[room] == floor]
        width = min((_WIDTH - _GAP) / len(here) - _GAP, 560)
        left = (_WIDTH - len(here) * (width + _GAP) + _GAP) / 2
        for i, room in enumerate(here):
            spots[room] = (left + i * (width + _GAP), _GAP + row * _ROW, width)
    return spots


def _line(one: tuple[float, float, float], other: tuple[float, float, float]) -> str:
    x, y = one[0] + one[2] / 2, one[1] + _BOX
    to_x, to_y = other[0] + other[2] / 2, other[1]
    bend = (to_y - y) / 2
    curve = (x, y + bend, to_x, to_y - bend, to_x, to_y)
    return f'<path d="M{x:.0f} {y:.0f}C{" ".join(f"{value:.0f}" for value in curve)}"/>'


def _stops(room: Room) -> str:
    """Numbers of the plan's stops in a room."""
    return " ".join(
        f"({i})" for i, (module, _, _) in enumerate(WAY, 1) if module.split(".")[1] in room.parts
    )


def _box(room: Room, x: float, y: float, width: float, stops: str) -> str:
    mark = ' class="on"' if stops else ""
    lines = textwrap.wrap(room.purpose, int(width / 6.2), max_lines=2)
    return "".join(
        [
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_BOX}" rx="6"{mark}/>',
            _text(x + 8, y + 18, room.name, 'class="b"'),
            _text(x + width - 8, y + 18, stops, 'text-anchor="end" class="w"'),
            *(_text(x + 8, y + 36 + 15 * i, line, "") for i, line in enumerate(lines)),
        ]
    )


def _text(x: float, y: float, text: str, attributes: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {attributes}>{escape(text)}</text>'


def page(listed: Sequence[Room]) -> str:
    """The page as Markdown."""
    asked = imports(listed)
    rows = [
        f"| `{room.name}` | {room.purpose} | {room.n_modules} | "
        f"{', '.join(f'`{one.name}`' for one in sorted(asked[room], key=_order)) or 'nothing'} |"
        for room in sorted(listed, key=_order)
    ]
    stops = [f"{i}. {_stop(*stop)}" for i, stop in enumerate(WAY, 1)]
    return "\n".join(
        [
            "# Architecture",
            "",
            "`python docs/architecture.py` writes this page and its picture from the code; a test "
            "fails when they differ.",
            "",
            "![The rooms of libra_planner](architecture.svg)",
            "",
            "A room asks only rooms below it. A line is an import that does not follow from other "
            "lines. Green rooms are the way of a plan:",
            "",
            *stops,
            "",
            "| room | what it is for | modules | asks |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _order(room: Room) -> tuple[int, str]:
    return -room.layer, room.name


def _stop(module: str, name: str, what: str) -> str:
    """A stop of the way; fails where the code has no such name."""
    found = getattr(importlib.import_module(module), name)
    kind = "type" if inspect.isclass(found) else "function"
    return f"`{name}` ({kind} in `{module}`): {what}."


def files() -> dict[Path, str]:
    """What this script writes."""
    listed = rooms()
    return {HERE / "architecture.md": page(listed), HERE / "architecture.svg": picture(listed)}


def main() -> None:
    """Write the page and its picture."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
