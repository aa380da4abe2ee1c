"""A module that registers a block and a policy when it is imported, as worker processes do."""

from tests import extensions

extensions.add()
