"""Run the random tests with cases that nobody has seen: ``python -m tests.explore``.

``pytest`` alone draws the same cases every time. This draws new ones, and three times as many
where a test says :func:`tests.conftest.random_cases`, by a seed that it prints first; ``--seed``
repeats them. Other arguments go to pytest, such as the files to run. Keep what it finds: add the
case to its test as an ``@example``.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Sequence

import pytest


def main(arguments: Sequence[str]) -> int:
    """Run the tests; returns pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description=__doc__)
    parser.add_argument("--seed", type=int, metavar="N", help="default: a random one, printed")
    options, others = parser.parse_known_args(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"Seed {seed}: python -m tests.explore --seed {seed} {' '.join(others)}", flush=True)
    profile = ["--hypothesis-profile=explore", f"--hypothesis-seed={seed}"]
    return int(pytest.main(["-m", "hypothesis", *profile, *others]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
