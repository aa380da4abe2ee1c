"""Sound inputs with their text spoiled: lines, words, numbers, characters, nesting."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.campaign.case import Case
from tests.campaign.grammar import plan_case
from tests.campaign.settings import settings

NUMBERS = (
    *(
        "0",
        "-0",
        "-1",
        "1",
        "0.5",
        "2.5",
        "3",
        "-1e-9",
        "1e-300",
        "1e-320",
        "1e308",
        "1e309",
        "1e999",
    ),
    *("nan", ".nan", "NaN", ".inf", "-.inf", "inf", "1_000", "0x10", "0o17", "1e5", "+4", "007"),
    *("9" * 25, "9" * 5000, "-" + "9" * 5000, "0." + "0" * 5000 + "1", "1e" + "9" * 20, "٣", "½"),
    *("9007199254740993", "18446744073709551616", "999999999", "12:30:45", "2026-01-01", "1/0"),
)
WORDS = (
    *(
        "null",
        "~",
        "true",
        "no",
        "''",
        "[]",
        "{}",
        "[1, 2]",
        "{a: 1}",
        "!!python/name:os.system",
        "&a *a",
    ),
    *(
        "*a",
        "<<",
        "- - -",
        "|",
        ">",
        "? x",
        "? [a]: b",
        "!!binary aGk=",
        "!!set {a}",
        "%",
        "@",
        "`",
        "\t",
    ),
    *(
        "dim1",
        "dim9",
        "total",
        "cost",
        "step_time",
        "GB/s",
        "Gbps",
        "$",
        "$$x^2$$",
        "{x}",
        "{",
        "}",
        "{{7}}",
    ),
    *(
        "./nowhere.yaml",
        ".",
        "..",
        "/",
        "/dev/null",
        "/dev/zero",
        "~nobody/x",
        "a" * 5000,
        "../" * 3000,
    ),
    *(
        "=1+1",
        "-x",
        "+x",
        "@x",
        "[/a]",
        "[bold]x[/bold]",
        "<b>&amp;",
        "%s%n",
        "{0}",
        "\\x00",
        "\\u202e",
    ),
)
ODD = (
    *(
        "\x00",
        "\x07",
        "\x1b[2J",
        "\x1b]0;x\x07",
        "\x7f",
        "\x85",
        "\x9b2J",
        "\r",
        "\u2028",
        "\u202e",
        "\u200f",
    ),
    *(
        "\ufeff",
        "\u00a0",
        "\u3000",
        "é",
        "日本",
        "🙂",
        "\u0301",
        "'",
        '"',
        "#",
        ":",
        ",",
        "\\",
        "\v",
        "\f",
    ),
    *("\ud800", "\uffff", "%", "{", "[", "]", "}", "&", "*", "!", "|", ">", "-", "?", "\t", "  "),
)

_TOKEN = re.compile(r"[\w./-]+|[^\w\s]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def spoiled(random: Random, text: str) -> str:
    """The text after one to three mutations."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = random.choice(_MUTATIONS)(random, text)
    return text


def _line_gone(random: Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = random.randrange(len(lines))
    return "".join(lines[:at] + lines[at + random.randint(1, 3) :])


def _line_again(random: Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    lines.insert(random.randrange(len(lines) + 1), random.choice(lines))
    return "".join(lines)


def _lines_swapped(random: Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def _indented(random: Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = random.randrange(len(lines))
    lines[at] = random.choice(("  ", " ", "\t", "- ")) + lines[at]
    return "".join(lines)


def _replaced(pattern: re.Pattern[str], values: tuple[str, ...]) -> Callable[[Random, str], str]:
    """One match of the pattern becomes one of the values, or another match."""

    def mutation(random: Random, text: str) -> str:
        found = list(pattern.finditer(text))
        if not found:
            return text + random.choice(values)
        one = random.choice(found)
        new = random.choice(values) if random.random() < 0.7 else random.choice(found)[0]
        return text[: one.start()] + new + text[one.end() :]

    return mutation


def _word_gone(random: Random, text: str) -> str:
    found = list(_TOKEN.finditer(text))
    if not found:
        return ""
    one = random.choice(found)
    return text[: one.start()] + text[one.end() :]


def _odd_character(random: Random, text: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(ODD) * random.choice((1, 1, 1, 3)) + text[at:]


def _cut(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def _nested(random: Random, text: str) -> str:
    """Deep nesting in place of a word."""
    depth = random.choice((5, 101, 30_000))
    deep = random.choice(("[" * depth, "{a: " * depth, "[" * depth + "]" * depth, "- " * depth))
    return _replaced(_TOKEN, (deep,))(random, text)


def _many(random: Random, text: str) -> str:
    """One line a thousand times, with and without a name of its own."""
    lines = text.splitlines(keepends=True) or [""]
    at = random.randrange(len(lines))
    more = [
        f"k{i}{lines[at].lstrip()}" if random.random() < 0.5 else lines[at] for i in range(1000)
    ]
    return "".join(lines[:at] + more + lines[at:])


_MUTATIONS: tuple[Callable[[Random, str], str], ...] = (
    _line_gone,
    _line_again,
    _lines_swapped,
    _indented,
    *[_replaced(_NUMBER, NUMBERS)] * 4,
    *[_replaced(_TOKEN, WORDS)] * 2,
    _replaced(_TOKEN, ODD),
    _replaced(re.compile(r"[A-Za-z_]\w+"), WORDS),
    _word_gone,
    _odd_character,
    _odd_character,
    _cut,
    _nested,
    _many,
)


def mutated_case(random: Random) -> Case:
    """A sound input of which one file is spoiled."""
    setting = random.choice(settings())
    name = random.choice(setting.spoiled)
    text = spoiled(random, setting.files[name])
    files = {key: value.encode() for key, value in setting.files.items()}
    files[name] = text.encode("utf-8", "surrogatepass")
    return Case(f"spoiled {setting.name}", setting.command(random), files)


def mutated_plan_case(random: Random) -> Case:
    """A plan by grammar, spoiled."""
    case = plan_case(random)
    text = spoiled(random, case.files["plan.yaml"].decode())
    return replace(
        case,
        kind=f"spoiled {case.kind}",
        files={"plan.yaml": text.encode("utf-8", "surrogatepass")},
    )


def argument_case(random: Random) -> Case:
    """A sound input, of whose arguments one is spoiled."""
    setting = random.choice(settings())
    arguments = list(setting.command(random))
    if random.random() < 0.4:
        arguments += random.choice(_OPTIONS)
    at = random.randrange(1, len(arguments))
    arguments[at] = spoiled(random, arguments[at]).replace("\x00", "")
    files = {key: value.encode() for key, value in setting.files.items()}
    return Case(f"arguments of {arguments[0]}", tuple(map(_given, arguments)), files)


def _given(argument: str) -> str:
    """As the system would give it: what is no text comes as lone surrogates of its bytes."""
    return argument.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


_OPTIONS = (
    ["--set", "constraints.0=total == 300 GB/s"],
    ["--set", "parallelism.tp=16"],
    ["--set", "fabric.topology=RI(4)_FC(8)_RI(4)_SW(32)"],
    ["--seeds", "2"],
    ["--seed", "5"],
    ["--policy", "ecmp"],
    ["--points", "3"],
    ["--tokens", "15e12"],
)
