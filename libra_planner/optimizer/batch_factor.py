"""Small dense symmetric systems, thousands at a time, the designs on the last axis.

LAPACK called once per matrix of 6 x 6 spends its time on the calls. Here the loop is over the
pivots and every operation runs over all designs.
"""

from __future__ import annotations

import numpy as np

from libra_planner.step.expression import Array

_DEPENDENT = 1e-13
"""Pivot, over its own diagonal entry, below which a row depends on those before it."""


def factored(matrix: Array) -> Array:
    """L and D of ``matrix = L D L^T`` in one array, shape (k, k, n), in the place of ``matrix``.

    Without pivoting: for positive definite matrices and for ``[[M, E^T], [E, 0]]`` with
    M positive definite, where every order of pivots exists. The variable of a row that
    depends on rows before it becomes 0.

    Examples
    --------
    >>> solved(factored(np.array([[2.0, 1.0], [1.0, 3.0]])[:, :, None]), np.array([[3.0], [4.0]]))
    array([[1.],
           [1.]])
    """
    k = len(matrix)
    size = np.abs(matrix[np.arange(k), np.arange(k)])
    for i in range(k):
        pivot = matrix[i, i]
        dependent = np.abs(pivot) <= _DEPENDENT * size[i]
        if dependent.any():
            pivot[dependent] = np.inf
        if i + 1 < k:
            column = matrix[i + 1 :, i] / pivot
            matrix[i + 1 :, i + 1 :] -= column[:, None] * matrix[i + 1 :, i][None]
            matrix[i + 1 :, i] = column
    return matrix


def solved(factors: Array, right: Array) -> Array:
    """Solutions of the factored systems for right sides of shape (k, n)."""
    x = right.copy()
    k = len(x)
    for i in range(k - 1):
        x[i + 1 :] -= factors[i + 1 :, i] * x[i]
    x /= factors[np.arange(k), np.arange(k)]
    for i in range(k - 1, 0, -1):
        x[:i] -= factors[i, :i] * x[i]
    return x
