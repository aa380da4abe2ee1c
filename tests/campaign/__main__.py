"""``python -m tests.campaign [--seconds 600] [--seed N]``."""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests import campaign
from tests.campaign.runner import Tried, tried
from tests.campaign.verdict import UNPROVEN

_WIDTH = 300
_FIND = "FIND"


def main(arguments: Sequence[str]) -> int:
    """Run cases until the time is over; 1 if any found something."""
    options = _options(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    folder = Path(options.keep or f"{tempfile.gettempdir()}/campaign-{seed}").resolve()
    print(f"Seed {seed}, finds in {folder}", flush=True)
    faulthandler.enable()
    counts, end_s = Counter[tuple[str, str]](), time.monotonic() + options.seconds
    for one in tried(seed, itertools.count(options.first), folder):
        counts[one.case.kind.split()[0], _ending(one)] += 1
        _say(one)
        if counts.total() % 100 == 0:
            print(f"{counts.total():,} cases", flush=True)
        if time.monotonic() > end_s:
            break
    gc.unfreeze()  # DuckDB's objects, which complain when they are not freed before the end.
    for (kind, ending), count in sorted(counts.items()):
        print(f"{kind:<12} {ending:<7} {count:>7,}")
    finds = sum(count for (_, ending), count in counts.items() if ending == _FIND)
    print(f"{counts.total():,} cases, {finds} finds; seed {seed}")
    return int(finds > 0)


def _ending(one: Tried) -> str:
    return _FIND if one.faults else f"exit {one.outcome.code}"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaign",
        description=campaign.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=600, metavar="S", help="default 600")
    parser.add_argument("--seed", type=int, metavar="N", help="default: a random one, printed")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="case to begin with")
    parser.add_argument("--keep", metavar="DIR", help="folder of finds; default /tmp/campaign-SEED")
    return parser.parse_args(arguments)


def _say(one: Tried) -> None:
    if not one.faults:
        if one.outcome.code == UNPROVEN:
            print(f"Case {one.number} ({one.case.kind}) could not be certified", flush=True)
        return
    print(f"\nFIND {one.number} ({one.case.kind}, {one.outcome.taken_s:.1f} s)")
    for fault in one.faults:
        print(f"  {_short(fault)}")
    print(f"  cd {one.folder} && {_short(one.case.command)}", flush=True)


def _short(text: str) -> str:
    """The text without its middle; ``command.txt`` in the folder has all of a command."""
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH // 2]} ... {text[-_WIDTH // 2 :]}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
