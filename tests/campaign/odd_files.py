"""Files of every other kind, given where a command expects one of its own."""

from __future__ import annotations

import json
from random import Random

from tests.campaign.case import Case
from tests.campaign.settings import settings

_WORDS = (
    "workload",
    "kind",
    "fabric",
    "tiers",
    "axes",
    "base",
    "a,b,c",
    "true",
    "1",
    "[",
    "{",
    ": ",
    "\n",
)


def content(random: Random) -> bytes:
    """What is in the file."""
    draw = random.choice(
        (
            lambda: random.randbytes(random.choice((1, 30, 3000))),
            lambda: b"",
            lambda: b"\n" * random.choice((1, 999)),
            lambda: b"a" * random.choice((10, 70_000, 1_000_001)),
            lambda: b"\xef\xbb\xbf" + _words(random).encode(),
            lambda: _words(random).encode("utf-16"),
            lambda: _words(random).encode("utf-32-be"),
            lambda: _words(random).encode(),
            lambda: "\r".join(_words(random)).encode(),
            lambda: json.dumps(_value(random, 4)).encode(),
            lambda: b"{" + b'"a":[' * 20_000,
            lambda: b"9" * random.choice((400, 5000)),
            lambda: b"\x89PNG\r\n\x1a\n" + random.randbytes(300),
            lambda: b"PK\x03\x04" + random.randbytes(300),
            lambda: b"PAR1" + random.randbytes(300) + b"PAR1",
            lambda: b"a: &a [x]\n" + b"".join(b"k%d: [*a, *a]\n" % i for i in range(50)),
            _laughs,
            lambda: b"k: " + b"x, " * 20_000,
        )
    )
    return draw()


def _words(random: Random) -> str:
    return "".join(random.choice(_WORDS) for _ in range(random.choice((1, 5, 40))))


def _laughs() -> bytes:
    """Nine levels of ten references each."""
    lines = ["a0: &a0 [ha]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    return "\n".join(lines).encode()


def _value(random: Random, depth: int) -> object:
    kind = random.randrange(7 if depth else 4)
    if kind < 4:
        return random.choice(
            (None, True, -1, 0, 1e300, 10**30, "", "x", "gpt3", "a\u202eb\x1b[2J", "\n")
        )
    if kind == 4:
        return [_value(random, depth - 1) for _ in range(random.randrange(4))]
    return {random.choice(_WORDS): _value(random, depth - 1) for _ in range(random.randrange(5))}


_PATHS = (
    "a.pipe",
    "a.loop",
    ".",
    "..",
    "folder",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/proc/self/mem",
    "a" * 300,
    "~nobody/x",
    "-",
    "-o",
    "plan.yaml/",
    "\udcff.yaml",
)


def path_case(random: Random) -> Case:
    """A sound input, of whose paths one is no file of its kind."""
    setting = random.choice(settings())
    arguments = list(setting.command(random))
    files = {key: value.encode() for key, value in setting.files.items()}
    places = [i for i, one in enumerate(arguments) if i and not one.startswith("-")]
    arguments[random.choice(places)] = random.choice((*_PATHS, *files))
    files |= {"a.pipe": b"", "a.loop": b"", "folder/x": b""}
    return Case(f"paths of {arguments[0]}", tuple(arguments), files)


def odd_case(random: Random) -> Case:
    """A sound input of which one file is none of its kind."""
    setting = random.choice(settings())
    files = {key: value.encode() for key, value in setting.files.items()}
    files[random.choice(sorted(files))] = content(random)
    return Case(f"odd {setting.name}", setting.command(random), files)
