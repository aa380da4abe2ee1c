"""The direction of imports, what stays lazy, and house rules that a program can check."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "libra_planner"

# Layers from the bottom; a module may import from its own layer and those below.
LAYERS = [
    [
        "errors",
        "allowed",
        "frozen",
        "units",
        "files",
        "plain_text",
        "processes",
        "registry",
        "fits",
    ],
    ["fabric"],
    ["workload"],
    ["step", "costs"],
    ["quantities"],
    ["problem"],
    ["evaluation"],
    ["optimizer"],
    ["search"],
    ["routing"],
    ["check"],
    ["procurement"],
    ["reading"],
    ["plan"],
    ["inputs"],
    ["sweeps"],
    ["interop"],
    ["views"],
    ["studies"],
    ["api"],
    ["cli", "tui"],
]
CORE = {name for layer in LAYERS[:12] for name in layer}
ALLOWED_IN_CORE = {"numpy", "scipy", "libra_planner", *sys.stdlib_module_names}


def _modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


def _name(path: Path) -> str:
    """First part of a module's path below the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    """A module's syntax tree; tests look at the same ones many times."""
    return ast.parse(path.read_text())


@cache
def _imports(path: Path) -> tuple[str, ...]:
    return tuple(_found_imports(tree_of(path)))


def _found_imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {node.module}"
            yield str(node.module)


def _rank(name: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if name in layer)


def test_every_module_has_a_layer() -> None:
    known = {name for layer in LAYERS for name in layer}
    assert {_name(path) for path in _modules()} - known == {"__init__", "__main__"}


def test_imports_point_down_the_layers() -> None:
    for path in _modules():
        if _name(path) in ("__init__", "__main__"):
            continue
        for imported in _imports(path):
            if imported.startswith("libra_planner."):
                target = imported.split(".")[1]
                assert _rank(target) <= _rank(_name(path)), f"{path} imports {imported}"


def test_the_core_imports_numpy_scipy_and_the_standard_library_only() -> None:
    for path in _modules():
        if _name(path) not in CORE:
            continue
        for imported in _imports(path):
            root = imported.split(".")[0]
            if _name(path) == "optimizer" and root in ("cvxpy", "clarabel"):
                continue
            if _name(path) == "routing" and root == "numba":
                continue
            assert root in ALLOWED_IN_CORE, f"{path} imports {imported}"


def test_only_the_routing_imports_numba() -> None:
    for path in _modules():
        roots = {imported.split(".")[0] for imported in _imports(path)}
        assert "numba" not in roots or _name(path) == "routing", path


CALLABLES = {"Callable", "partial", "FunctionType", "MethodType"}
"""What no field of the core is annotated with, nor by a name that stands for one."""


def _aliases(tree: ast.Module) -> dict[str, set[str]]:
    """Names in the annotations that a module's own names stand for."""
    found: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                found[target.id] = _names(value)
    return found


def _names(node: ast.expr) -> set[str]:
    parts = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return parts | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def _stored_callables(tree: ast.Module, aliases: dict[str, set[str]]) -> Iterator[str]:
    """Fields of dataclasses that hold code: by their annotation, or by their default."""
    for one in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        if not any("dataclass" in _names(decorator) for decorator in one.decorator_list):
            continue
        for field in (node for node in one.body if isinstance(node, ast.AnnAssign)):
            meant, left = set(), _names(field.annotation)
            while left - meant:
                meant |= left
                left = set().union(*(aliases.get(name, set()) for name in meant))
            if meant & CALLABLES or isinstance(field.value, ast.Lambda):
                yield f"{one.name}.{ast.unparse(field.target)}"


def test_the_core_stores_no_callables() -> None:
    """A function that a value holds is a call that imports do not show."""
    trees = {path: tree_of(path) for path in _modules() if _name(path) in CORE}
    aliases: dict[str, set[str]] = {}
    for tree in trees.values():
        aliases |= _aliases(tree)
    found = {name for tree in trees.values() for name in _stored_callables(tree, aliases)}
    assert not found


def test_numba_is_loaded_only_to_find_rates() -> None:
    program = "import sys, libra_planner, libra_planner.routing.rates; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    assert "libra_planner.routing.rates" in result.stdout.split()
    assert "numba" not in result.stdout.split()


def test_there_are_no_import_cycles() -> None:
    graph = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): set(_imports(path))
        for path in _modules()
        if _name(path) != "__init__"
    }
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail, module])
        if module in done or module not in graph:
            return
        for imported in graph[module]:
            visit(imported, (*trail, module))
        done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize(
    ("arguments", "forbidden"),
    [
        (
            ["--help"],
            {"numpy", "scipy", "cvxpy", "pydantic", "yaml", "rich", "textual", "pandas", "numba"},
        ),
        (["list", "examples"], {"numpy", "scipy", "cvxpy"}),
        (["list", "workloads"], {"scipy", "cvxpy", "numba", "textual", "pandas"}),
        (
            ["evaluate", "examples/01_gpt3_4d.yaml", "--bandwidth", "300,100,75,25"],
            {"cvxpy", "scipy", "clarabel", "textual", "pandas"},
        ),
        (["optimize", "examples/01_gpt3_4d.yaml", "--json"], {"rich", "textual", "pandas"}),
        (
            ["sweep", "plan", "examples/10_budgets.yaml"],
            {"cvxpy", "duckdb", "matplotlib", "distributed", "rich", "textual"},
        ),
        (
            ["sweep", "show", "examples"],
            {"cvxpy", "scipy", "pyarrow", "matplotlib", "distributed", "rich", "textual"},
        ),
        (
            ["collective", "RI(4)", "--kind=ar", "--size=1MB", "--bandwidth=1", "--json"],
            {"cvxpy", "scipy", "clarabel", "pydantic", "yaml", "rich", "textual", "pandas"},
        ),
    ],
)
def test_commands_load_only_what_they_need(arguments: list[str], forbidden: set[str]) -> None:
    program = (
        "import sys\nfrom libra_planner.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not forbidden & set(result.stderr.split())


def test_house_rules() -> None:
    """No print, exit, eval or assert below the command line; nothing swallowed."""
    for path in _modules():
        for node in ast.walk(tree_of(path)):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            assert not isinstance(node, ast.Assert), where
            if isinstance(node, ast.ExceptHandler):
                assert not all(isinstance(line, ast.Pass) for line in node.body), where
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                banned = {"eval", "exec", "exit"} | (set() if _name(path) == "cli" else {"print"})
                assert node.func.id not in banned, where


def test_public_functions_and_classes_are_documented() -> None:
    for path in _modules():
        tree = tree_of(path)
        assert ast.get_docstring(tree), path
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
            if public:
                assert ast.get_docstring(node), f"{path}:{node.lineno} {node.name}"


def _code_lines(text: str) -> set[int]:
    """Numbers of the lines that hold code: no blank ones, no comments, no docstrings."""
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent and token.string:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def test_folders_hold_few_modules() -> None:
    for folder in {path.parent for path in _modules()}:
        n_modules = len(list(folder.glob("*.py")))
        assert n_modules <= 14, folder


def test_modules_and_functions_stay_small() -> None:
    for path in _modules():
        assert len(_code_lines(path.read_text())) <= 360, path
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[1:] if ast.get_docstring(node) else node.body
                length = first[-1].end_lineno - first[0].lineno + 1 if first else 0
                assert length <= 40, f"{path}:{node.lineno} {node.name} has {length} lines"
