"""``python -m libra_planner``."""

import os
import sys


def _put_working_directory_last() -> None:
    """Look for modules there last, where ``-m`` looks first: it holds other people's files.

    A checkout that is not installed is still found.
    """
    try:
        here = os.getcwd()
    except OSError:  # It was deleted.
        return
    if not sys.flags.safe_path and sys.path[:1] == [here]:
        sys.path.append(sys.path.pop(0))


_put_working_directory_last()

from libra_planner.cli.entry import run  # noqa: E402

run()
