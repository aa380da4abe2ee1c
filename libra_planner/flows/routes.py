"""Which links every flow crosses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Routes:
    """Which links each flow crosses, in compressed rows.

    Parameters
    ----------
    start : shape (n_flows + 1,); the hops of flow f are ``start[f]`` to ``start[f + 1]``. A flow
        without hops stays on its node.
    link : shape (n_hops,), the directed link of every hop, in the order of the path.
    fraction : shape (n_hops,), the share of the flow on that link, over 0 and up to 1: 1 for a
        single path, 1/k where packets are sprayed over k links.

    Raises
    ------
    ValueError
        Where shapes do not fit, a link is negative, or a fraction is not in (0, 1].

    Examples
    --------
    Flow 0 crosses links 0 and 2, flow 1 is sprayed over links 1 and 2.

    >>> routes = Routes(np.array([0, 2, 4]), np.array([0, 2, 1, 2]), np.array([1, 1, 0.5, 0.5]))
    >>> routes.counts(3)
    array([1. , 0.5, 1.5])
    """

    start: NDArray[np.integer]
    link: NDArray[np.integer]
    fraction: NDArray[np.float64]

    def __post_init__(self) -> None:
        n_hops = len(self.link)
        if self.start.ndim != 1 or not len(self.start) or self.start[0] != 0:
            raise ValueError("start must be one row that begins with 0")
        if np.any(np.diff(self.start) < 0) or self.start[-1] != n_hops:
            raise ValueError(f"start must rise to the number of hops, {n_hops}")
        if self.link.shape != (n_hops,) or self.fraction.shape != (n_hops,):
            raise ValueError(f"link and fraction must have shape ({n_hops},)")
        if n_hops and self.link.min() < 0:
            raise ValueError(f"got link {self.link.min()}, expected 0 or more")
        if not np.all((self.fraction > 0) & (self.fraction <= 1)):
            raise ValueError("fractions must be over 0 and up to 1")

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return len(self.start) - 1

    def counts(self, n_links: int) -> NDArray[np.float64]:
        """Flows on every link: sums of fractions, whole numbers for single paths.

        Parameters
        ----------
        n_links : links of the fabric; higher than any in ``link``.

        Returns
        -------
        counts : shape (n_links,).
        """
        counts = np.bincount(self.link, weights=self.fraction, minlength=n_links)
        if len(counts) > n_links:
            raise ValueError(f"got link {len(counts) - 1}, expected less than {n_links}")
        return counts.astype(np.float64, copy=False)  # Without hops bincount counts in integers.

    def of(self, flow: int) -> NDArray[np.integer]:
        """Links of one flow, in the order of its path."""
        return self.link[self.start[flow] : self.start[flow + 1]]


def single_paths(links: ArrayLike) -> Routes:
    """Routes of flows that take one path each.

    Parameters
    ----------
    links : integers, shape (n_flows, max_hops), the links of every flow in the order of its path,
        -1 where there is no hop.

    Examples
    --------
    >>> routes = single_paths([[3, 0, 5], [3, 5, -1], [-1, -1, -1]])
    >>> routes.start, routes.of(1), routes.of(2)
    (array([0, 3, 5, 5]), array([3, 5], dtype=int32), array([], dtype=int32))
    """
    table = np.asarray(links)
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
        raise ValueError(f"got {table.dtype}{table.shape}, expected integers (n_flows, max_hops)")
    is_hop = table != -1
    start = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(is_hop.sum(axis=1), out=start[1:])
    link = table[is_hop].astype(np.int32)
    return Routes(start, link, np.ones(len(link)))
