"""Run directories of a small sweep: shown in every way, and spoiled."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from random import Random

from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from tests.campaign.case import Case
from tests.campaign.mutations import WORDS, spoiled
from tests.campaign.odd_files import content
from tests.campaign.settings import SWEEP

_SHOWN = (
    "sweep show run --json",
    "sweep show run --pareto",
    "sweep show run --group-by budget --json",
    "sweep show run --csv -",
    "sweep show run --plot a.svg --x budget",
    "sweep show run --html a.html",
    "sweep run s.yaml -o run",
    "sweep design run 3 --force -o made.yaml",
    "report run:2 -o out --formats csv",
)
_QUERIES = (
    "SELECT budget, min(cost_usd) FROM designs GROUP BY 1",
    "SELECT 1/0, 'nan'::DOUBLE, 1e308*10 FROM designs",
    "SELECT * FROM read_csv('/etc/passwd')",
    "COPY designs TO 'x.csv'",
    "SELECT range(3), {'a': 1}, NULL, DATE '2026-01-01', chr(27)",
    "SELECT",
)


@cache
def _run() -> dict[str, bytes]:
    """The files of a run, by path."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s.yaml").write_text(SWEEP)
        run_sweep(load_sweep(folder / "s.yaml"), folder / "run")
        return {
            str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()
        }


def run_case(random: Random) -> Case:
    """A command over a run directory of which one file, or one argument, may be spoiled."""
    files, arguments = dict(_run()), random.choice(_SHOWN).split()
    if random.random() < 0.25:
        query = random.choice(_QUERIES)
        query = spoiled(random, query).replace("\x00", "") if random.random() < 0.5 else query
        arguments = ["sweep", "show", "run", "--sql", query, "--json"]
    elif random.random() < 0.2:
        arguments[random.randrange(2, len(arguments))] = random.choice(WORDS)
    else:
        name = random.choice(sorted(files))
        files[name] = _spoiled(random, name, files[name])
    given = tuple(
        one.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape") for one in arguments
    )
    return Case(f"runs {arguments[1]}", given, files)


def _spoiled(random: Random, name: str, data: bytes) -> bytes:
    if random.random() < 0.3:
        return content(random)
    if name.endswith((".json", ".yaml")):
        return spoiled(random, data.decode()).encode("utf-8", "surrogatepass")
    at = random.randrange(len(data) + 1)
    return (
        data[:at]
        + random.randbytes(random.choice((0, 1, 9)))
        + data[at + random.choice((0, 1, 9)) :]
    )
