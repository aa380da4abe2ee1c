"""What uniform hashing of flows on equal links gives (C10): a table, and closed forms."""

from __future__ import annotations

from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlog1py

_F64 = NDArray[np.float64]

TABLE = [
    (8, 8, 68.72, 22.3, 2.60),
    (16, 4, 33.78, 15.1, 1.54),
    (16, 8, 50.60, 15.3, 2.10),
    (32, 8, 36.54, 10.8, 1.77),
    (64, 16, 37.83, 7.5, 1.98),
    (256, 16, 19.21, 3.7, 1.47),
    (256, 32, 27.48, 3.8, 1.80),
    (1000, 16, 9.78, nan, 1.229),
    (1024, 32, 13.85, 1.9, 1.38),
]
"""Exact means and 4,000 trials of uniform hashing, given with C10 and not made by this package.

Flows, links, mean FIM in %, its sd in points (nan where none is given), mean of max over mean.
"""


def expected_fim_percent(n_flows: ArrayLike, n_links: ArrayLike) -> _F64:
    """Mean FIM of flows that each choose one of equal links at random (C10).

    Twice the mean absolute deviation of a binomial over its mean, by de Moivre:
    2 v (1-p) C(n,v) p^v (1-p)^(n-v) / (n p) * 100 with p = 1/k and v = floor(n/k) + 1.

    Parameters
    ----------
    n_flows, n_links : n >= 0 and k >= 1, that broadcast.

    Returns
    -------
    float64, nan for no flows.

    Examples
    --------
    >>> round(float(expected_fim_percent(32, 8)), 2)
    36.54
    """
    n, k = np.broadcast_arrays(np.asarray(n_flows, float), np.asarray(n_links, float))
    v = np.floor(n / k) + 1
    # v C(n,v) = n C(n-1,v-1), and the n cancels: with one link the logarithm of C is then 0.
    log_choose = gammaln(np.maximum(n, 1)) - gammaln(v) - gammaln(np.maximum(n - v, 0) + 1)
    log_term = log_choose - (v - 1) * np.log(k) + xlog1py(np.maximum(n - v, 0) + 1, -1 / k)
    return np.asarray(np.where(n > 0, 200 * np.exp(log_term), np.nan))


def worst_fim_percent(n_links: ArrayLike) -> _F64:
    """FIM with all flows on one of K equal links: 200 (K-1)/K.

    Examples
    --------
    >>> float(worst_fim_percent(4))
    150.0
    """
    k = np.asarray(n_links, float)
    return np.asarray(200 * (k - 1) / k)


def best_integer_fim_percent(n_flows: ArrayLike, n_links: ArrayLike) -> _F64:
    """Least FIM of N whole flows on K equal links, N = qK + r: 200 r (K-r)/(K N).

    Returns
    -------
    float64, nan for no flows.

    Examples
    --------
    >>> float(best_integer_fim_percent(5, 4)), float(best_integer_fim_percent(8, 4))
    (30.0, 0.0)
    """
    n, k = np.asarray(n_flows, float), np.asarray(n_links, float)
    with np.errstate(invalid="ignore"):
        return np.asarray(200 * (n % k) * (k - n % k) / (k * n))
