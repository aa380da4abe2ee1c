"""Paths over direct links, as flows of connected NPUs take them."""

from __future__ import annotations

import numpy as np

from libra_planner.fabric.blocks import FULLY_CONNECTED
from libra_planner.fabric.clos import Indices
from libra_planner.fabric.realization import Direct

SHORTER, NEXT, PREVIOUS = 0, 1, -1
"""Ways round a ring."""


def direct_links_of(
    fabric: Direct, src: Indices, dst: Indices, way: Indices | int = SHORTER
) -> Indices:
    """Links that flows between two NPUs of one group cross, in order; -1 after the last.

    Parameters
    ----------
    src, dst : different NPUs of one group, shape (n_flows,).
    way : for rings, of each flow or of all: :data:`SHORTER`, :data:`NEXT` or
        :data:`PREVIOUS`. Of two equally short ways NPUs at even positions take the next, the
        others the previous one, which loads both directions alike.

    Returns
    -------
    Shape (n_flows, most hops).

    Examples
    --------
    >>> from libra_planner.fabric.blocks import RING
    >>> ring = Direct(RING, 4, n_hosts=4, bandwidth_Bps=100e9)
    >>> direct_links_of(ring, np.array([0, 0]), np.array([2, 3]))
    array([[ 0,  1],
           [ 4, -1]])
    """
    src, dst = np.asarray(src, dtype=np.int64), np.asarray(dst, dtype=np.int64)
    ahead = (_position_of(fabric, dst) - _position_of(fabric, src)) % fabric.size
    if fabric.block == FULLY_CONNECTED:
        return (src * (fabric.size - 1) + ahead - 1)[:, None]
    return _ring_links(fabric, src, ahead, np.broadcast_to(np.asarray(way), src.shape))


def _ring_links(fabric: Direct, src: Indices, ahead: Indices, way: Indices) -> Indices:
    position, n = _position_of(fabric, src), fabric.size
    tie_goes_on = (2 * ahead == n) & (position % 2 == 0)
    goes_on = np.where(way == SHORTER, (2 * ahead < n) | tie_goes_on, way == NEXT)
    n_hops = np.where(goes_on, ahead, n - ahead)
    hop = np.arange(n_hops.max(initial=0))
    step = np.where(goes_on, 1, -1)[:, None] * hop
    at = _group_of(fabric, src)[:, None] + (position[:, None] + step) % n * fabric.n_inner
    links = at + np.where(goes_on, 0, fabric.n_hosts)[:, None]
    return np.where(hop < n_hops[:, None], links, -1)


def _position_of(fabric: Direct, npu: Indices) -> Indices:
    """Position of each NPU in its group, 0 .. n-1."""
    return npu // fabric.n_inner % fabric.size


def _group_of(fabric: Direct, npu: Indices) -> Indices:
    """First NPU of each NPU's group, which tells groups apart."""
    return npu - _position_of(fabric, npu) * fabric.n_inner
