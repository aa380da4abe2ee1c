"""Building blocks of dimensions: each is one class, and what is registered can be written."""

from __future__ import annotations

from libra_planner.fabric.blocks.base import Algorithm, Block, CollectiveKind, DirectBlock, Span
from libra_planner.fabric.blocks.fully_connected import FullyConnected
from libra_planner.fabric.blocks.ring import Ring
from libra_planner.fabric.blocks.switch import Switch
from libra_planner.registry import Registry

__all__ = [
    "BLOCKS",
    "FULLY_CONNECTED",
    "RING",
    "SWITCH",
    "Algorithm",
    "Block",
    "CollectiveKind",
    "DirectBlock",
    "FullyConnected",
    "Ring",
    "Span",
    "Switch",
    "register",
]

BLOCKS: Registry[type[Block]] = Registry("building block", str.casefold)
"""Kinds of dimensions by their notation."""

RING, FULLY_CONNECTED, SWITCH = Ring(), FullyConnected(), Switch()


def register(block: type[Block]) -> type[Block]:
    """Let topologies name a block; a decorator for its class.

    Raises
    ------
    TypeError
        For a class that leaves a question of :class:`Block` open.
    ValueError
        For a notation or a long name that another block has.
    """
    missing = sorted(block.__abstractmethods__)
    missing += [x for x in ("notation", "long_name", "about") if not hasattr(block, x)]
    if missing:
        raise TypeError(f"block {block.__name__} does not define {', '.join(missing)}")
    BLOCKS.add(block, block.notation, block.long_name)
    return block


for _block in (Ring, FullyConnected, Switch):
    register(_block)
