"""The time expression: step time as a tree over the bandwidth of every dimension.

Nodes are constants, transfers ``bytes / (non-negative linear form of bandwidths)``, their square
roots, sums, maxima and non-negative scalings, so every expression is convex and
non-increasing in bandwidth by construction (DESIGN section 2). One tree evaluates
over arrays of designs here, is lifted to linear rows for the solvers in
:mod:`libra_planner.optimizer.programs.dimensionless` and explains itself: which operation waits on
which dimension, and for how long.

Compute counts in full, as the step time without communication; communication counts where
it is exposed, so that what hides behind compute or other communication does not appear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.frozen import Frozen


class _Sized(Frozen):
    """What every node has."""

    @cached_property
    def size_and_shape(self) -> tuple[float, object]:
        """Size and shape, so that terms that differ only in size merge.

        Collectives over one group have proportional traffic, and so may have whole layers. The
        size adds up seconds and bytes alike: any measure will do. Shares are compared to 13
        digits.
        """
        parts: list[tuple[float, object]] = []
        _add_parts(parts, 1.0, self)
        total = sum(size for size, _ in parts) or 1.0  # A label may stand on nothing.
        return total, tuple([(f"{size / total:.13g}", key) for size, key in parts])


@dataclass(frozen=True)
class Constant(_Sized):
    """A time that no bandwidth changes, seconds."""

    seconds: float


@dataclass(frozen=True)
class Transfer(_Sized):
    """``n_bytes / sum_i coefficients_i * B_i`` seconds.

    ``coefficients`` is the linear form, shape (n_dims,), non-negative and not all zero.
    """

    n_bytes: float
    coefficients: tuple[float, ...]


@dataclass(frozen=True)
class Root(_Sized):
    """``size / sqrt(sum_i coefficients_i * B_i)`` seconds (C20).

    Parameters
    ----------
    size : s (byte/s)^1/2, above 0.
    coefficients : of the linear form, shape (n_dims,).
    beside : of a second linear form whose root divides too, such as 1/C; ``None`` without one.
    """

    size: float
    coefficients: tuple[float, ...]
    beside: tuple[float, ...] | None = None

    @property
    def forms(self) -> tuple[tuple[float, ...], ...]:
        """Its one or two linear forms."""
        return (self.coefficients,) if self.beside is None else (self.coefficients, self.beside)


@dataclass(frozen=True)
class Sum(_Sized):
    """Terms one after the other."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Maximum(_Sized):
    """Terms at the same time: the longest counts."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Scaled(_Sized):
    """``factor`` (0 or more) times a term."""

    factor: float
    term: Node


@dataclass(frozen=True)
class Labelled(_Sized):
    """A term with the name of the operation class it belongs to."""

    label: str
    term: Node


Node: TypeAlias = Constant | Transfer | Root | Sum | Maximum | Scaled | Labelled


def _add_parts(parts: list[tuple[float, object]], factor: float, node: object) -> None:
    """Append a tree as a flat list: sizes of the leaves, and what stands between them."""
    if isinstance(node, Constant):
        parts.append((factor * node.seconds, Constant))
    elif isinstance(node, Transfer):
        parts.append((factor * node.n_bytes, node.coefficients))
    elif isinstance(node, Root):
        parts.append((factor * node.size, (Root, node.forms)))
    elif isinstance(node, Scaled):
        _add_parts(parts, factor * node.factor, node.term)
    elif isinstance(node, Labelled):
        parts.append((0.0, node.label))
        _add_parts(parts, factor, node.term)
    elif isinstance(node, Sum | Maximum):
        parts.append((0.0, (type(node), len(node.terms))))
        for term in node.terms:
            _add_parts(parts, factor, term)


ZERO = Constant(0.0)


def leaf(node: Node) -> tuple[float, object]:
    """Size and key of a leaf: of two with one key the larger always takes longer."""
    if isinstance(node, Constant):
        return node.seconds, Constant
    if isinstance(node, Root):
        return node.size, (Root, node.forms)
    return (node.n_bytes, node.coefficients) if isinstance(node, Transfer) else (0.0, node)


Array: TypeAlias = NDArray[np.float64]
Form: TypeAlias = tuple[float, ...]
"""A linear form of the bandwidths: its coefficients, shape (n_dims,)."""
Mask: TypeAlias = NDArray[np.bool_]

_BLOCK_ROWS = 8192
"""Designs evaluated at a time: the temporaries of one block stay in the cache."""


def transfers(bytes_by_dim: Iterable[float]) -> Node:
    """Time of a collective that uses all its dimensions at once: max_i bytes_i / B_i (C4).

    Dimensions without traffic contribute nothing, even at 0 GB/s (C9).

    >>> transfers([24.0, 0.0])
    Transfer(n_bytes=24.0, coefficients=(1.0, 0.0))
    """
    traffic = list(bytes_by_dim)
    leaves: list[Node] = []
    for i, n_bytes in enumerate(traffic):
        if n_bytes > 0:
            one_hot = tuple(1.0 if j == i else 0.0 for j in range(len(traffic)))
            leaves.append(Transfer(float(n_bytes), one_hot))
    return maximum(leaves)


def add(terms: Iterable[Node]) -> Node:
    """Sum of terms, flattened, constants folded and proportional terms merged into one.

    >>> leaf = Transfer(6.0, (1.0,))
    >>> add([leaf, Constant(1.0), add([leaf, Constant(2.0)])])
    Sum(terms=(Constant(seconds=3.0), Transfer(n_bytes=12.0, coefficients=(1.0,))))
    """
    seconds = 0.0
    others: list[tuple[float, Node]] = []
    for factor, node in _flat(1.0, terms):
        if isinstance(node, Constant):
            seconds += factor * node.seconds
        else:
            others.append((factor, node))
    kept_terms = ([Constant(seconds)] if seconds else []) + _merged(others)
    if len(kept_terms) < 2:
        return kept_terms[0] if kept_terms else ZERO
    return Sum(tuple(kept_terms))


def _merged(terms: Sequence[tuple[float, Node]]) -> list[Node]:
    """Multiples of nodes, those of one shape as one."""
    if len(terms) == 1:
        return [scale(*terms[0])]
    kept: dict[object, tuple[Node, float]] = {}
    factors: dict[object, list[float]] = {}
    for factor, node in terms:
        size, shape = node.size_and_shape
        _, kept_size = kept.setdefault(shape, (node, size))
        factors.setdefault(shape, []).append(factor * (size / kept_size))
    return [scale(sum(factors[shape]), node) for shape, (node, _) in kept.items()]


def maximum(terms: Iterable[Node]) -> Node:
    """The longest of terms (of none, zero), flattened, of like leaves only the largest.

    >>> maximum([Constant(1.0), maximum([Transfer(2.0, (1.0,)), Constant(3.0)])])
    Maximum(terms=(Constant(seconds=3.0), Transfer(n_bytes=2.0, coefficients=(1.0,))))
    """
    longest: dict[object, tuple[float, Node]] = {}
    for term in terms:
        for branch in term.terms if isinstance(term, Maximum) else (term,):
            size, key = leaf(branch)
            if key not in longest or size > longest[key][0]:
                longest[key] = size, branch
    distinct = [term for _, term in longest.values() if term != ZERO]
    if len(distinct) < 2:
        return distinct[0] if distinct else ZERO
    return Maximum(tuple(distinct))


def scale(factor: float, term: Node) -> Node:
    """``factor`` times a term, folded into leaves and maxima of leaves.

    >>> scale(3.0, transfers([2.0]))
    Transfer(n_bytes=6.0, coefficients=(1.0,))
    """
    if factor == 1.0:
        return term
    return _scaled(factor, ZERO if factor == 0.0 else term)


def _scaled(factor: float, term: Node) -> Node:
    if isinstance(term, Constant | Transfer | Root):
        return _scaled_leaf(factor, term)
    if isinstance(term, Maximum) and all(isinstance(t, Constant | Transfer) for t in term.terms):
        return Maximum(tuple(scale(factor, t) for t in term.terms))
    if isinstance(term, Labelled):
        return Labelled(term.label, scale(factor, term.term))
    if isinstance(term, Scaled):
        return scale(factor * term.factor, term.term)
    return Scaled(factor, term)


def _scaled_leaf(factor: float, leaf: Constant | Transfer | Root) -> Node:
    if isinstance(leaf, Constant):
        return Constant(factor * leaf.seconds)
    if isinstance(leaf, Transfer):
        return Transfer(factor * leaf.n_bytes, leaf.coefficients)
    return replace(leaf, size=factor * leaf.size)


def _flat(factor: float, terms: Iterable[Node]) -> Iterable[tuple[float, Node]]:
    for term in terms:
        if isinstance(term, Sum):
            yield from _flat(factor, term.terms)
        elif isinstance(term, Scaled):
            yield from _flat(factor * term.factor, (term.term,))
        else:
            yield factor, term


def unlabelled(node: Node) -> Node:
    """The same tree without labels, merged again across classes: what solvers see."""
    if isinstance(node, Labelled):
        return unlabelled(node.term)
    if isinstance(node, Scaled):
        return scale(node.factor, unlabelled(node.term))
    if isinstance(node, Sum):
        return add(unlabelled(term) for term in node.terms)
    if isinstance(node, Maximum):
        return maximum(unlabelled(term) for term in node.terms)
    return node


def compute_s(node: Node) -> float:
    """What a node takes if communication, latency included, takes nothing: seconds."""
    if isinstance(node, Constant):
        return node.seconds
    if isinstance(node, Transfer | Root | Labelled):
        return 0.0
    if isinstance(node, Scaled):
        return node.factor * compute_s(node.term)
    combine = sum if isinstance(node, Sum) else max
    return float(combine(map(compute_s, node.terms)))


def terms_of(node: Node) -> tuple[Node, ...]:
    """What stands below a node."""
    if isinstance(node, Constant | Transfer | Root):
        return ()
    return (node.term,) if isinstance(node, Scaled | Labelled) else node.terms


def with_terms(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node of which each term is changed."""
    if isinstance(node, Scaled | Labelled):
        return replace(node, term=change(node.term))
    if isinstance(node, Sum | Maximum):
        return type(node)(tuple(map(change, node.terms)))
    return node


def leaves(node: Node) -> Iterator[Transfer | Root]:
    """All transfers and roots of a tree, in order, repeats included."""
    if isinstance(node, Transfer | Root):
        yield node
    for term in terms_of(node):
        yield from leaves(term)


def transfers_of(node: Node) -> Iterator[Transfer]:
    """All transfers of a tree without its roots."""
    return (leaf for leaf in leaves(node) if isinstance(leaf, Transfer))


def owned_numbers(node: Node) -> Iterator[tuple[Node, float]]:
    """Every number of a tree (seconds, bytes, factors) in its order, with whose it is."""
    if isinstance(node, Constant):
        yield node, node.seconds
    elif isinstance(node, Transfer):
        yield node, node.n_bytes
    elif isinstance(node, Root):
        yield node, node.size
    elif isinstance(node, Scaled):
        yield node, node.factor
    for term in terms_of(node):
        yield from owned_numbers(term)


def numbers(node: Node) -> list[float]:
    """Seconds, bytes and factors of a tree in its order."""
    return [number for _, number in owned_numbers(node)]


def seconds_of(node: Node, values: Iterator[Any], reciprocals: Mapping[Form, Array]) -> Any:
    """Time of a tree with other numbers; ``reciprocals`` are 1 / (bytes/s) of every form."""
    if isinstance(node, Constant):
        return next(values)
    if isinstance(node, Transfer):
        return next(values) * reciprocals[node.coefficients]
    if isinstance(node, Root):
        return next(values) * np.prod([np.sqrt(reciprocals[form]) for form in node.forms], axis=0)
    if isinstance(node, Scaled):
        factor = next(values)
        return factor * seconds_of(node.term, values, reciprocals)
    total, *rest = (seconds_of(term, values, reciprocals) for term in terms_of(node))
    combine = np.maximum if isinstance(node, Maximum) else np.add
    for part in rest:
        total = combine(total, part)
    return total


@dataclass(frozen=True)
class Structure(Frozen):
    """A time expression without its numbers.

    Parameters
    ----------
    root : any expression of the structure; its numbers do not matter.
    n_dims : dimensions of the fabric.

    Examples
    --------
    >>> step = TimeExpression(add([Constant(1.0), transfers([24.0, 6.0])]), 2)
    >>> numbers(step.merged)
    [1.0, 24.0, 6.0]
    >>> step.structure.seconds(np.array([[1.0], [48.0], [6.0]]), np.array([[6.0], [2.0]]))
    array([9.])
    """

    root: Node
    n_dims: int

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The distinct linear forms, in order of appearance."""
        return tuple(dict.fromkeys(form for leaf in leaves(self.root) for form in forms_of(leaf)))

    @cached_property
    def has_roots(self) -> bool:
        """Whether any leaf is a root."""
        return any(isinstance(leaf, Root) for leaf in leaves(self.root))

    @cached_property
    def touching(self) -> Structure:
        """The structure with two leaves in place of every root: see :meth:`touching_numbers`."""
        return Structure(_touching(self.root), self.n_dims)

    def touching_numbers(self, values: Array, bandwidth_bytes_per_s: Array) -> Array:
        """Numbers of :attr:`touching` with which it is never below, and touches at a vector.

        With theta = sqrt(x/y) there, 1/sqrt(x y) <= (theta/x + 1/(theta y))/2 by the means of two
        numbers; y is 1 for a single form. Both have the same tangent at the vector: a bound that
        linearises the one is a bound of the other.

        Parameters
        ----------
        values : numbers, shape (n_numbers, n).
        bandwidth_bytes_per_s : above 0 where there are roots, shape (n_dims, n).

        Examples
        --------
        >>> step = TimeExpression(Root(8.0, (1.0,)), 1)
        >>> b = np.array([[4.0]])
        >>> near = step.structure.touching_numbers(np.array([step.numbers]), b)
        >>> near.tolist(), step.structure.touching.seconds(near, b), step.seconds(b)
        ([[8.0], [2.0]], array([4.]), array([4.]))
        """
        found: list[Array] = []
        for (owner, _), value in zip(owned_numbers(self.root), values, strict=True):
            if not isinstance(owner, Root):
                found.append(value)
                continue
            first, *second = (_form_value(form, bandwidth_bytes_per_s) for form in owner.forms)
            theta = np.sqrt(first / second[0]) if second else np.sqrt(first)
            found += [value * theta / 2, value / theta / 2]
        return np.array(found)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What all expressions of the structure have in common."""
        return _shape(self.root)

    @property
    def rows(self) -> Array:
        """The linear forms, shape (n_forms, n_dims)."""
        return np.array(self.forms, dtype=np.float64).reshape(-1, self.n_dims)

    @property
    def dims_with_traffic(self) -> Mask:
        """Whether any transfer uses a dimension, shape (n_dims,)."""
        return np.asarray((self.rows > 0).any(axis=0))

    def reciprocals(self, bandwidth_bytes_per_s: Array) -> dict[Form, Array]:
        """1 over every form at bandwidths of shape (n_dims, ...)."""
        with np.errstate(divide="ignore"):
            return {form: 1.0 / _form_value(form, bandwidth_bytes_per_s) for form in self.forms}

    def seconds(self, values: Iterable[Any], bandwidth_bytes_per_s: Array) -> Array:
        """Step time, (n,), of numbers (n_numbers, n) or the same for all, and (n_dims, n)."""
        time: Array = seconds_of(self.root, iter(values), self.reciprocals(bandwidth_bytes_per_s))
        return time

    def least_s(self, values: Array) -> Array:
        """Step time at infinite bandwidth, shape (n,)."""
        return self.seconds(values, np.full((self.n_dims, 1), np.inf))

    def expression(self, values: Array) -> TimeExpression:
        """One design's expression, of its numbers, shape (n_numbers,)."""
        return TimeExpression(_rebuilt(self.root, iter(values)), self.n_dims)


def forms_of(leaf: Transfer | Root) -> tuple[Form, ...]:
    """The linear forms that a leaf divides by."""
    return leaf.forms if isinstance(leaf, Root) else (leaf.coefficients,)


def _touching(node: Node) -> Node:
    if isinstance(node, Root):
        other = Constant(0.0) if node.beside is None else Transfer(0.0, node.beside)
        return Sum((Transfer(0.0, node.coefficients), other))
    return with_terms(node, _touching)


def _shape(node: Node) -> tuple[object, ...]:
    form = forms_of(node) if isinstance(node, Transfer | Root) else ()
    return (type(node), *form, *map(_shape, terms_of(node)))


def _form_value(form: Form, bandwidth: Array) -> Any:
    used = [factor * row for factor, row in zip(form, bandwidth, strict=True) if factor]
    return sum(used[1:], start=used[0])


def _rebuilt(node: Node, values: Iterator[float]) -> Node:
    if isinstance(node, Constant):
        return Constant(float(next(values)))
    if isinstance(node, Transfer):
        return Transfer(float(next(values)), node.coefficients)
    if isinstance(node, Root):
        return replace(node, size=float(next(values)))
    if isinstance(node, Scaled):
        node = Scaled(float(next(values)), node.term)
    return with_terms(node, lambda term: _rebuilt(term, values))


@dataclass(frozen=True)
class TimeExpression(Frozen):
    """Step time T(B) in seconds as a function of bandwidth B in bytes/s, shape (n_dims,).

    Examples
    --------
    >>> step = TimeExpression(add([Constant(1.0), transfers([200.0, 50.0])]), n_dims=2)
    >>> step.seconds(np.array([[100.0, 50.0], [100.0, 10.0]]))
    array([3., 6.])
    """

    root: Node
    n_dims: int

    @cached_property
    def merged(self) -> Node:
        """The tree without labels, identical terms merged."""
        return unlabelled(self.root)

    @cached_property
    def structure(self) -> Structure:
        """The merged tree without its numbers."""
        return Structure(self.merged, self.n_dims)

    @cached_property
    def numbers(self) -> list[float]:
        """The numbers of the merged tree in its order."""
        return numbers(self.merged)

    @cached_property
    def forms(self) -> Array:
        """Distinct linear forms of the leaves, shape (n_forms, n_dims)."""
        return self.structure.rows

    @property
    def dims_with_traffic(self) -> Mask:
        """Whether any transfer uses a dimension, shape (n_dims,)."""
        return self.structure.dims_with_traffic

    @cached_property
    def least_s(self) -> float:
        """Step time at infinite bandwidth: what is left is compute and latency."""
        return float(self.seconds(np.full(self.n_dims, np.inf)))

    @cached_property
    def compute_s(self) -> float:
        """Step time if communication took none, its latency included."""
        return compute_s(self.root)

    def seconds(self, bandwidth_bytes_per_s: Array) -> Array:
        """Step time of each design; infinite where traffic meets 0 GB/s.

        Parameters
        ----------
        bandwidth_bytes_per_s : shape (n_designs, n_dims) or (n_dims,).

        Returns
        -------
        Seconds, shape (n_designs,) or ().

        Raises
        ------
        SpecError
            For a wrong number of dimensions or a bandwidth that is negative or NaN.
        """
        bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
        if bandwidth.ndim not in (1, 2) or bandwidth.shape[-1] != self.n_dims:
            got = f"got an array of shape {bandwidth.shape}"
            expected = f"expected one bandwidth for each of {self.n_dims} dimensions"
            raise SpecError(Fault(got, expected))
        if bandwidth.size and not bandwidth.min() >= 0:
            raise SpecError(Fault("got a negative or NaN bandwidth", "expected 0 or more"))
        rows = bandwidth.reshape(-1, self.n_dims)
        result = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS] + 0.0  # turns -0.0 into 0.0
            result[start : start + _BLOCK_ROWS] = self.structure.seconds(self.numbers, block.T)
        return result.reshape(bandwidth.shape[:-1])
