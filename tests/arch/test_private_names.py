"""No private name of a library is imported, read, set or overridden anywhere in the package."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "libra_planner"
DOCUMENTED = {"os._exit", "_fields", "_replace", "_asdict"}
"""Names that their documentation tells of: the last three of every named tuple."""
BY_PYTHON = re.compile(
    r"_abc_\w+|_(default|watch|validate|compute)_\w+|_reactives|_computes"
    r"|_css_\w+|_inherit_\w+|_merged_bindings|_decorated_\w+"
)
"""Names that Python and Textual give every class that is made of one of theirs."""
FOR_TYPES_ONLY = {"_typeshed"}
"""A module that exists for type checkers."""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _own_names(path: Path) -> frozenset[str]:
    """Attributes that a module gives its classes and objects."""
    return frozenset(_given_names(path))


def _given_names(path: Path) -> Iterator[str]:
    yield from _stored(_tree(path))
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            for line in node.body:
                targets = getattr(line, "targets", [getattr(line, "target", None)])
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def _stored(tree: ast.Module) -> Iterator[str]:
    """Attributes that ``self`` or a class is given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] if ast.unparse(node.value) in ("self", "cls") else []


def _imported(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _private_imports(path: Path) -> Iterator[str]:
    for line, name in _imported(path):
        is_ours = name.split(".")[0] in ("libra_planner", *FOR_TYPES_ONLY)
        if not is_ours and any(map(_is_private, name.split("."))):
            yield f"{path}:{line} imports {name}"


def _private_reads(path: Path, everybodys: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.Attribute) or not _is_private(node.attr):
            continue
        text, value = ast.unparse(node), ast.unparse(node.value)
        own = everybodys if value in ("self", "cls", "super()") else _own_names(path)
        if node.attr not in own and not DOCUMENTED & {text, node.attr}:
            yield f"{path}:{node.lineno} reads {text}"


def test_no_private_name_of_a_library_is_imported_or_read() -> None:
    everybodys = frozenset().union(*map(_own_names, _modules()))
    assert not [wrong for path in _modules() for wrong in _private_imports(path)]
    assert not [wrong for path in _modules() for wrong in _private_reads(path, everybodys)]


def _classes() -> Iterator[type]:
    """Classes of the cockpit, the one room whose classes are kinds of a library's."""
    for path in sorted((PACKAGE / "tui").rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        if name.endswith(("forks", "web")):  # One is loaded in a process of its own, one at choice.
            continue
        module = import_module(name.removesuffix(".__init__"))
        yield from (
            one
            for one in vars(module).values()
            if isinstance(one, type) and one.__module__ == module.__name__
        )


@cache
def _private_names(kind: type) -> frozenset[str]:
    """Private names that a class has or gives its objects."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # Written in C.
        tree = ast.Module([], [])
    names = {*vars(kind), *_stored(tree)}
    return frozenset(name for name in names if _is_private(name) and not BY_PYTHON.fullmatch(name))


def test_no_private_name_of_a_library_is_overridden() -> None:
    """Not by a method, and not by an attribute that happens to have the same name."""
    for one in _classes():
        theirs: set[str] = set()
        for base in one.__mro__:
            if base.__module__.split(".")[0] not in ("libra_planner", "builtins", "typing"):
                theirs |= _private_names(base)
        assert not _private_names(one) & theirs, one
