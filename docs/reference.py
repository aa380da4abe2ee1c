"""Reference pages, written from the code: ``python docs/reference.py``.

A line ``<!-- code: PART WORDS -->`` of a page stands before what the function of that part in
:data:`PARTS` returns for the words. The site makes its own, with the docstrings of Python, and
stops where the repository's pages are not today's.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import inspect
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import libra_planner as lp
from docs.json_words import unit_of, words_of
from libra_planner.cli.arguments.commands import COMMANDS
from libra_planner.cli.main import command_parser, main
from libra_planner.inputs.schema import json_schema
from libra_planner.sweeps.axes import sweep_schema
from libra_planner.sweeps.columns import COLUMNS

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference"
_MARK = re.compile(
    r"^<!-- code: (\w[\w-]*)((?: \S+)*) -->$(?:\n\n.*?\n\n^<!-- end of code -->$)?",
    re.MULTILINE | re.DOTALL,
)
"""A mark, and what stands in the repository after it."""
_RUN = re.compile(r"^(\| `.*) \| [^|]* \|$", re.MULTILINE)
"""A line of a table of JSON: its last cell is a figure of one run."""


def connect(app: Any) -> None:
    """Let Sphinx fill pages as it reads them."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _parameters_as_text, priority=1)


def _read(_app: Any, name: str, source: list[str]) -> None:
    """Fill a page, and warn where the repository's differs in more than figures of runs."""
    from sphinx.util.logging import getLogger

    page = source[0]
    if _without_figures(page) != _without_figures(written(page)):
        getLogger(__name__).warning("%s is not today's: run python docs/reference.py", name)
    source[0] = filled(page)


def _without_figures(page: str) -> str:
    return _RUN.sub(r"\1 |", page) if "<!-- code: json" in page else page


def filled(page: str) -> str:
    """A page with all its marks replaced, and links to pages that stand elsewhere on the site."""
    page = page.replace("](search.md", "](strategies.md")  # search.html is Sphinx's own.
    return _MARK.sub(lambda mark: _part(mark[1], mark[2]), page)


def written(page: str) -> str:
    """A page as the repository has it: marks stay, and what they stand for follows them."""

    def one(mark: re.Match[str]) -> str:
        text = names() if mark[1] == "python" else _part(mark[1], mark[2])
        return f"<!-- code: {mark[1]}{mark[2]} -->\n\n{text}\n\n<!-- end of code -->"

    return _MARK.sub(one, page)


@functools.cache
def _part(name: str, words: str) -> str:
    return PARTS[name](*shlex.split(words))


def _parameters_as_text(_app: Any, _what: str, _name: str, _one: Any, _o: Any, lines: Any) -> None:
    """Write what a docstring says of a parameter under it: beside it stands its type."""
    inside = False
    found = []
    for at, line in enumerate(lines):
        if lines[at + 1 : at + 2] and re.fullmatch(r"-{4,}", lines[at + 1]):
            inside = line.strip() in ("Parameters", "Attributes")
        about = re.fullmatch(r"([\w*]+(?:, [\w*]+)*) : (.*)", line) if inside else None
        found += [about[1], f"    {about[2]}"] if about else [line]
    lines[:] = found


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    text = re.sub(r" \(C\d+\)", "", str(text))  # Of the conventions, which contributors read.
    parts = " ".join(text.split()).replace("|", "\\|").split("`")  # Every second one is code.
    return "`".join(x if i % 2 else x.replace("<", "&lt;") for i, x in enumerate(parts))


# Keys of files, from their JSON Schemas.


def keys(name: str, heading: str) -> str:
    """The keys of a kind of file: dotted name, what it takes, default, meaning."""
    schema = sweep_schema() if name == "sweep" else json_schema(name)
    if "properties" in schema:
        return _keys(schema, schema["$defs"], heading)
    kinds = [schema["$defs"][one["$ref"].rpartition("/")[2]] for one in schema["anyOf"]]
    texts = [_keys(one, schema["$defs"], f"{heading}#") for one in kinds]
    return "\n\n".join(
        f"{heading} {_kind(one)}\n\n{text}" for one, text in zip(kinds, texts, strict=True)
    )


def _kind(model: Mapping[str, Any]) -> str:
    return f"`kind: {model['properties']['kind']['const']}`"


def _keys(model: Mapping[str, Any], shapes: Mapping[str, Any], heading: str) -> str:
    """Keys that stand alone, then those of every map."""
    parts: dict[str, list[list[str]]] = {"": []}
    for key, takes, default, about in _rows(model, shapes, ""):
        first = re.match(r"`(\w+)", key)
        parts.setdefault(first[1] if first and re.search(r"[.\[]", key) else "", []).append(
            [
                key,
                f"{takes}; default {default}".replace("; default required", ", required")
                if default
                else takes,
                about,
            ]
        )
    head = ["key", "takes", "meaning"]
    others = [f"{heading} {name}\n\n{table(head, rows)}" for name, rows in parts.items() if name]
    return "\n\n".join([table(head, parts[""]), *others])


def _rows(model: Mapping[str, Any], shapes: Mapping[str, Any], before: str) -> Iterator[list[str]]:
    for key, one in model.get("properties", {}).items():
        if one is False:
            continue
        default = "required" if key in model.get("required", ()) else _value(one.get("default"))
        yield [f"`{before}{key}`", _takes(one, shapes), default, one.get("description", "")]
        seen: set[str] = set()
        for inner, part in _models(one, shapes, f"{before}{key}"):
            for row in _rows(part, shapes, f"{inner}."):
                if row[0] not in seen:  # Of two shapes of one key, what both have stands once.
                    seen.add(row[0])
                    yield row


def _value(default: Any) -> str:
    if default in (None, []) or isinstance(default, dict):
        return ""
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _models(
    one: Mapping[str, Any], shapes: Mapping[str, Any], name: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Maps that a value can be, with the dotted name of their place."""
    if "$ref" in one:
        model = shapes[one["$ref"].rpartition("/")[2]]
        if "properties" in model:
            yield name, model
    for choice in (*one.get("anyOf", ()), *one.get("oneOf", ())):
        yield from _models(choice, shapes, name)
    if isinstance(one.get("items"), dict):
        yield from _models(one["items"], shapes, f"{name}[]")
    if isinstance(one.get("additionalProperties"), dict):
        yield from _models(one["additionalProperties"], shapes, f"{name}.NAME")


def _takes(one: Mapping[str, Any], shapes: Mapping[str, Any]) -> str:
    """What a value may be, in a few words."""
    found = _kinds(one, shapes)
    return " or ".join(dict.fromkeys(kind for kind in found if kind != "nothing"))


def _kinds(one: Mapping[str, Any], shapes: Mapping[str, Any]) -> Iterator[str]:
    choices = (*one.get("anyOf", ()), *one.get("oneOf", ()))
    if choices:
        for choice in choices:
            yield from _kinds(choice, shapes)
    elif "$ref" in one:
        model = shapes[one["$ref"].rpartition("/")[2]]
        yield from ["a map"] if "properties" in model else _kinds(model, shapes)
    elif "const" in one:
        yield f"`{one['const']}`"
    elif "enum" in one:
        yield ", ".join(f"`{value}`" for value in one["enum"])
    else:
        yield _plain(one, shapes)


def _plain(one: Mapping[str, Any], shapes: Mapping[str, Any]) -> str:
    kind = one.get("type", "anything")
    if kind == "array":
        inner = _takes(one["items"], shapes) if isinstance(one.get("items"), dict) else ""
        return f"a list: {inner}" if inner else "a list"
    if kind == "integer":
        return f"a whole number{_range(one)}"
    words = {"object": "a map", "string": "text", "number": f"a number{_range(one)}"}
    words |= {"boolean": "`true`, `false`", "null": "nothing"}
    return words.get(kind, kind) if isinstance(kind, str) else "a value"


def _range(one: Mapping[str, Any]) -> str:
    least, most = one.get("minimum", one.get("exclusiveMinimum")), one.get("maximum")
    if most is not None and most < 1e6 and least is not None:
        return f" from {least:g} to {most:g}"
    return f" of at least {least:g}" if least is not None and least > -1e6 else ""


# The command line, from what reads it.


def commands() -> str:
    """Every command with all its flags."""
    return "\n\n".join(_command([name]) for name in COMMANDS)


def _command(words: list[str]) -> str:
    parser = _parser(words)
    inner = [name for one in parser._actions if _is_inner(one) for name in one.choices or ()]
    if inner:
        return "\n\n".join(_command([*words, name]) for name in inner)
    shown = [one for one in parser._actions if one.dest != "help"]
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    parts = [f"## {' '.join(words)}", parser.description or "", f"```text\n{_folded(usage)}\n```"]
    if shown:
        parts.append(table(["argument", "meaning"], [_argument(one) for one in shown]))
    return "\n\n".join(part for part in parts if part)


def _folded(usage: str) -> str:
    """A usage line of several lines, cut between arguments."""
    lines, line = [], ""
    for word in re.findall(r"\[[^\]]*\]|\S+", usage):
        if len(line) + len(word) > 88:
            lines.append(line)
            line = "   "
        line = f"{line} {word}".strip() if not line.strip() and not lines else f"{line} {word}"
    return "\n".join([*lines, line])


def _is_inner(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command."""
    parser = command_parser(words)
    for word in words:
        (inner,) = [one for one in parser._actions if _is_inner(one)]
        parser = dict(inner.choices or {})[word]
    return parser


def _argument(one: argparse.Action) -> list[str]:
    formatter = argparse.HelpFormatter("")
    value = formatter._format_args(one, one.metavar or one.dest.upper()) if one.nargs != 0 else ""
    names = ", ".join(one.option_strings)
    shown = f"{names} {value}" if names else value
    about = (one.help or "") % {"default": one.default} if one.help else ""
    about = re.sub(r"(?<![`\w])(--[a-z][\w-]*)", r"`\1`", about)
    return [f"`{shown.strip()}`", f"{about}{' (required)' if one.required and names else ''}"]


# Columns of sweeps.


def columns() -> str:
    """All columns of a sweep's results."""
    when = {
        "always": "always",
        "default": "unless `columns` leaves it out",
        "asked": "if `columns` names it",
        "checked": "with `check`",
        "searched": "with `parallelism: auto`",
        "on links": "with both",
        "billed": "beside any bill",
        "of_work": "where models vary, or `columns` names it",
    }
    rows = [
        [f"`{one.name}`", f"`{one.key}`", when[one.kept], one.dtype, one.meaning]
        for one in COLUMNS.values()
    ]
    return table(["column", "in `columns`", "in results", "type", "meaning"], rows)


# Python.


def python() -> str:
    """Every public name: one rubric each."""
    kinds = {name: getattr(lp, name) for name in lp.__all__}
    is_class = {name: isinstance(one, type) for name, one in kinds.items()}
    faults = {name for name, one in kinds.items() if is_class[name] and issubclass(one, Exception)}
    functions = [name for name in kinds if not is_class[name]]
    types = [name for name in kinds if is_class[name] and name not in faults]
    return "\n\n".join(
        [
            "## Functions",
            *(_documented("function", name) for name in sorted(functions)),
            "## Results and settings",
            *(_documented("class", name, ":members:") for name in sorted(types)),
            "## Errors",
            *(_documented("exception", name) for name in sorted(faults)),
        ]
    )


def names() -> str:
    """Every public name with its first sentence, for those who have no site."""
    rows = []
    for name in sorted(lp.__all__, key=lambda name: (isinstance(getattr(lp, name), type), name)):
        one = getattr(lp, name)
        given = "" if isinstance(one, type) else f"({', '.join(inspect.signature(one).parameters)})"
        about = (inspect.getdoc(one) or "").partition("\n")[0]
        about = re.sub(r":\w+:`~?([^`]*)`", lambda role: f"`{role[1].rpartition('.')[2]}`", about)
        rows.append([f"`{name}{given}`", about])
    return table(["name", "what it is"], rows)


def _documented(kind: str, name: str, *options: str) -> str:
    lines = [f".. auto{kind}:: libra_planner.{name}", *(f"   {one}" for one in options)]
    return "\n".join(["```{eval-rst}", *lines, "```"])


# JSON, from what commands print.


_FILES = {
    "hops.csv": "flow,switch,egress\n1,leaf0,a\n1,spine0,x\n1,leaf1,h\n"
    "2,leaf0,b\n2,spine1,x\n2,leaf1,h\n",
    "fabric.yaml": "kind: leaf_spine\nleaves: 2\nspines: 2\nhosts_per_leaf: 2\n"
    "host_link: 50 GB/s\nuplink: 50 GB/s\n",
    "flows.csv": "flow_id,src,dst,bytes\n1,0,2,1000000\n2,1,3,1000000\n",
    "bytes.csv": "gpu_type,nodes,gpus_per_node,nics_per_node,nic_gbps,collective,"
    "message_bytes,time_s\n"
    + "".join(f"H100,4,8,8,400,all_reduce,{2**i},{2e-5 + 2**i / 2e11}\n" for i in range(16, 32)),
}
"""What examples read, by name."""


_TIMED = ("core_s",)
"""Keys whose values are of the machine."""


def payload(*words: str) -> str:
    """The keys of a command's ``--json``, as one run of it has them; ``OUT`` is a folder."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in _FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        os.environ["XDG_STATE_HOME"] = folder
        if words[:2] == ("sweep", "show"):
            _printed(["sweep", "run", "13_tapers", "-o", words[2]])
        told = _printed([*words, "--json"]).replace(f"{folder}/", "").replace(f"{ROOT}/", "")
    command = f"```sh\nlibra-planner {shlex.join(words)} --json\n```"
    rows = [
        [f"`{name}`", unit_of(name), words_of(name), "" if name in _TIMED else f"`{_short(value)}`"]
        for name, value in _payload_rows(json.loads(told), "")
    ]
    return f"{command}\n\n{table(['key', 'unit', 'meaning', 'in this run'], rows)}"


def _printed(words: Sequence[str]) -> str:
    """What a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(words)
    gc.unfreeze()  # A command leaves what it imports to the end of its process.
    if code:
        raise RuntimeError(f"exit {code}: {' '.join(words)}: {said.getvalue()}")
    return out.getvalue()


def _payload_rows(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and all(map(_is_key, value)):
        for key, inner in value.items():
            yield from _payload_rows(inner, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        merged: dict[str, Any] = {}
        for one in value:
            merged |= {k: v for k, v in one.items() if merged.get(k) is None}
        yield from _payload_rows(merged, f"{name}[]")
    else:
        yield name, value


def _is_key(key: str) -> bool:
    return bool(re.fullmatch(r"[a-zA-Z_]\w*", key))


def _short(value: Any) -> str:
    text = json.dumps(_rounded(value), ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _rounded(value: Any) -> Any:
    """Numbers with six digits, so that a page is the same on all machines."""
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


PARTS: Mapping[str, Callable[..., str]] = {
    "keys": keys,
    "commands": commands,
    "columns": columns,
    "python": python,
    "json": payload,
}


if __name__ == "__main__":
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
