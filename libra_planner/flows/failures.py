"""Fabrics with links and spines that failed at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.flows.fabric import Clos, Indices

_DRAW = 0x4641494C
"""Keeps the draws of failures apart from those of headers."""


def with_failures(fabric: Clos, *, n_links: int = 0, n_spines: int = 0, seed: int = 0) -> Clos:
    """The fabric after random cables and spines failed, besides what has failed in it already.

    Parameters
    ----------
    fabric : what fails.
    n_links : cables between switches, of those that work; both directions fail.
    n_spines : spines of all pods; all their cables fail. They fail before the cables do.
    seed : draws which (C12).

    Raises
    ------
    SpecError
        For more spines or cables than there are.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> with_failures(fabric, n_links=1).failed.size, with_failures(fabric, n_spines=1).failed.size
    (2, 4)
    """
    rng = np.random.default_rng([seed, _DRAW])
    n_all = fabric.n_switches.get("spine", 0)
    if n_spines > n_all:
        raise SpecError(Fault(f"got {n_spines} failed spines", f"expected at most {n_all}"))
    down = np.zeros(fabric.n_links, dtype=np.bool_)
    down[fabric.failed] = True
    up = _up_links(fabric)
    spines = rng.choice(n_all, n_spines, replace=False)
    down[up[np.isin(_spine_of(fabric, up), spines)]] = True
    working = up[~down[up]]
    if n_links > working.size:
        got = f"got {n_links} failed links"
        raise SpecError(Fault(got, f"expected at most the {working.size} that work"))
    down[rng.choice(working, n_links, replace=False)] = True
    broken = up[down[up]]
    failed = np.concatenate([fabric.failed, broken, fabric.reverse(broken)])
    return replace(fabric, failed=np.unique(failed))


def _up_links(fabric: Clos) -> Indices:
    """Links from switches to the tier above."""
    layers = [layer for layer in fabric.layers if layer.name in ("leaf_up", "spine_up")]
    return np.concatenate([np.zeros(0, dtype=np.int64), *(_indices(x.links) for x in layers)])


def _indices(links: slice) -> Indices:
    return np.arange(links.start, links.stop, dtype=np.int64)


def _spine_of(fabric: Clos, links: Indices) -> Indices:
    """Spine, over all pods, at one end of each link."""
    if not links.size:
        return links
    leaf_up = fabric.layer("leaf_up")
    leaf, uplink = np.divmod(links - leaf_up.start, fabric.n_uplinks)
    spine = leaf // fabric.n_leaves * fabric.n_spines + uplink // fabric.n_parallel
    if not fabric.n_cores:
        return spine
    above = (links - fabric.layer("spine_up").start) // fabric.n_core_links
    found: Indices = np.where(links < leaf_up.start + leaf_up.n_links, spine, above)
    return found
