"""A module that registers a block and a policy where it is asked for, as in worker processes."""

import os

from libra_planner.registry import PLUGINS
from tests import extensions

if __name__ in os.environ.get(PLUGINS, "").split(","):  # Not where tests are collected.
    extensions.add()
