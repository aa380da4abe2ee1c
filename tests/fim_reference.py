"""What uniform hashing of flows on equal links gives (C10): closed forms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlog1py

_F64 = NDArray[np.float64]


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
